# class Commented; end
require "set"

module Store
  VERSION = "1.2"
  lower = 3

  class Error < StandardError; end

  class Cache::Entry
    def initialize(key)
      @key = key
    end
  end

  class Cache
    DEFAULTS = { size: 10 }.freeze
    attr_reader :size

    class << self
      def open(path)
        new(path).tap { |c| c.load! }
      end

      private

      def hidden; end
    end

    def self.build(*args, &block)
      text = <<~END
        def not_there
        end
      END
      new(*args)
    end

    def [](key)
      @entries[key]
    end

    def size=(value)
      @size = value
    end

    def empty?
      each { |e| return false if e }
      true
    end
  end
end

def helper(name) = name.to_s
