# frozen_string_literal: true

require_relative "preamble"
require_relative "daemon"
require_relative "relay"

# What the package's own tests share.
class OwnTest < Minitest::Test
  TABLE = "own"

  def store(location = Place.location, **options)
    ActiveSupport::Cache.lookup_store(:sqlcached_store, location, { table: self.class::TABLE, log: method(:noted), **Place::PATIENT }.merge(options))
  end

  def setup
    @notes = []
    @cache = store
    @cache.clear
  end

  def teardown
    @cache.table.close
  end

  def noted(level, text)
    @notes << [level, text]
  end

  def sql(text, *parameters)
    @cache.table.sql(text, parameters)
  end

  # How many rows the table has that can be read.
  def rows
    sql("SELECT count(*) AS n FROM #{self.class::TABLE}").first["n"]
  end

  # Moves the clock of the tests' daemon. It sees that with its next tick: a row that ends with the move is gone then.
  def passed(seconds)
    TCPSocket.open("127.0.0.1", Place::PORT) do |stream|
      stream.write("ms passed 1 T#{seconds}\r\nx\r\ndebugtime #{seconds}\r\n")
      assert_equal ["HD\r\n", "OK\r\n"], [stream.gets, stream.gets]
      Daemon.wait_until("the daemon's clock moved") do
        stream.write("mg passed\r\n")
        stream.gets == "EN\r\n"
      end
    end
  end

  def wait_until(what, &block)
    Daemon.wait_until(what, &block)
  end
end
