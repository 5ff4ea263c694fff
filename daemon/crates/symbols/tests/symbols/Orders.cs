using System;

namespace Shop.Orders
{
    // class Commented { }
    public delegate void Changed(object sender);

    public enum State { Open, Closed }

    public interface IOrder
    {
        decimal Total { get; }
        void Close();
    }

    public record Line(string Sku, int Count);
    public readonly record struct Money(decimal Amount);

    public partial class Order : IOrder
    {
        private readonly string _name = "}";
        public decimal Total => Sum(_lines);
        public State State { get; private set; } = State.Open;

        public Order(string name)
        {
            _name = name;
        }

        public void Close()
        {
            int Twice(int n) => n * 2;
            State = State.Closed;
        }

        public async Task<T> LoadAsync<T>(string id) where T : class, new()
        {
            return await Fetch<T>($"{id}");
        }

        private class Builder
        {
            public Builder With(int n) { return this; }
        }
    }

    public partial class Order
    {
        public static Order operator +(Order a, Order b) => a;
        public void Reopen() { }
    }

    public struct Point { public int X; public int Norm() => X; }
}
