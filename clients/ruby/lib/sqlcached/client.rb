# frozen_string_literal: true

require "set"

module Sqlcached
  # Requests to one daemon: memcached's meta commands and statements.
  #
  #     client = Sqlcached::Client.new("127.0.0.1:11211")
  #     client.sql("DELETE FROM page WHERE product = ?", 17)
  #
  # Each thread that asks has a connection for the time of its request; a process keeps some of them.
  class Client
    attr_reader :options

    # `begin_with` is called with each new connection, before anything else.
    def initialize(options = nil, &begin_with)
      @options = Options.of(options)
      @begin_with = begin_with
      @lock = Mutex.new
      @idle = []
      @away_until = 0.0
    end

    # Runs one statement: its rows, or the number of rows that it changed. Parameters are `?`. An array is an array of
    # SQL, text that is not UTF-8 is a BYTEA.
    def sql(text, *parameters)
      statement(text, parameters)
    end

    def statement(text, parameters, again: true)
      request = Protocol.statement(text, parameters)
      run(again: again) do |connection|
        connection.send(request)
        Protocol.rows(connection)
      end
    end

    # memcached's `stats`.
    def stats
      run do |connection|
        connection.send("stats\r\n")
        Protocol.stats(connection)
      end
    end

    # Does something with a connection. One that had died is replaced; with `again: false` only if that was seen before
    # anything was sent, because the command must not be executed twice.
    def run(again: true, &work)
      connection = take
      if connection.used && !again && !connection.alive?
        connection.close
        connection = take
      end
      used = connection.used
      begin
        on(connection, &work)
      rescue UnavailableError
        raise unless used && again

        # The others that waited were closed by the same restart.
        close
        on(take, &work)
      end
    end

    # Closes the connections that nobody uses. They open again by themselves.
    def close
      idle = @lock.synchronize { @idle.tap { @idle = [] } }
      idle.each(&:close)
    end

    private

    # Only a connection whose answers were read to their end is used again.
    def on(connection, &work)
      whole = false
      result = connection.run(&work)
      whole = true
      result
    rescue RefusedError
      whole = true
      raise
    ensure
      whole ? give(connection) : connection.close
    end

    def give(connection)
      kept = @lock.synchronize { @idle.size < Limits::IDLE && @idle.push(connection) }
      connection.close unless kept
    end

    # After a fork what is idle is the parent's.
    def take
      loop do
        connection = @lock.synchronize { @idle.pop } or return reached
        return connection if connection.process == Process.pid

        connection.close
      end
    end

    # A host that does not even refuse costs a second; nobody waits for it twice in a second. One that takes a connection
    # and ends it is about to restart.
    def reached
      from = now
      raise UnavailableError, "#{options}: there was no answer a moment ago" if from < @away_until

      connection = Connection.new(options)
      begun(connection) || begun(Connection.new(options), last: true)
    rescue UnavailableError
      @away_until = now + Limits::RETRY if now - from > options.connect_timeout / 2
      raise
    end

    # A connection that is ready for requests; nil if it broke before.
    def begun(connection, last: false)
      whole = false
      connection.run { |stream| login(stream) } if options.user
      connection.run { |stream| @begin_with.call(stream) } if @begin_with
      whole = true
      connection
    rescue UnavailableError
      raise if last || !connection.ended?

      nil
    ensure
      connection.close unless whole
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def login(connection)
      login = "#{options.user} #{options.password}"
      connection.send("set login 0 0 #{login.bytesize}\r\n#{login}\r\n")
      line = connection.line
      raise connection.refused(line) unless line == "STORED"
    end
  end
end
