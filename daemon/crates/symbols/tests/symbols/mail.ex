defmodule Example.Mail do
  @moduledoc """
  def not_code(x) do
  """
  use GenServer
  import Ecto.Query, only: [from: 2]

  defstruct [:id, to: "x", do: nil]

  @type outcome :: {:ok, t()} | :lost
  @typep letter :: String.t()
  @opaque id :: integer
  @callback send(letter) :: outcome
  @macrocallback expand(term) :: Macro.t()

  defmodule Queue do
    def new, do: []

    def push(queue, letter)
        when is_list(queue) do
      [letter | queue]
    end
  end

  defprotocol Describe do
    @doc "Describes it."
    def describe(value)
  end

  defimpl Describe, for: Atom do
    def describe(:end), do: "end"
    def describe(value), do: Atom.to_string(value)
  end

  defguard is_letter(value) when is_binary(value) and value != ""

  defmacro retry(times, do: block) do
    quote do
      for _ <- 1..unquote(times) do
        unquote(block)
      end
    end
  end

  defdelegate size(list), to: Enum, as: :count

  def start_link(opts \\ []) do
    handler = fn x ->
      if x > 1, do: x, else: 2
    end

    case opts do
      [] -> GenServer.start_link(__MODULE__, %{end: 1})
      _ -> Enum.map(opts, fn o -> o end)
    end

    with {:ok, a} <- handler.(1) do
      ~s(def sigil x do #{a})
    end
  end

  def valid?(%__MODULE__{id: id}), do: id > 0

  defp drop!(
         first,
         second
       ) do
    first || second || ?"
  end

  def unquote(:generated)(x), do: x

  def last(
        a,
        b
      ),
      do: a + b
end

defmodule Example.Error do
  defexception [:message]
end

defmodule Example.MailTest do
  test "a letter is sent", %{queue: queue} do
    assert Example.Mail.valid?(queue)
  end

  test "#{generated} name" do
  end
end

defimpl String.Chars, for: Example.Mail do
  def to_string(mail), do: mail.to
end
