# frozen_string_literal: true

module Sqlcached
  # The removals of a table, none of which may be lost: what cannot be sent is kept, and nothing is read from the table
  # by this process until it got through.
  class Removals
    # `expendable`: whether all rows may be removed when there are too many removals to keep.
    def initialize(statements, definition, options, notices, expendable)
      @statements = statements
      @name = definition.name
      @table = definition.quoted
      @options = options
      @notices = notices
      @expendable = expendable
      @lock = Mutex.new
      @sending = Mutex.new
      @waiting = []
      @bytes = 0
      @tried = 0.0
    end

    # Whether nothing waits. What waits is sent now, at most once in a second.
    def sent?
      return true if @waiting.empty?
      return false unless due? && @sending.try_lock

      begin
        sent_all?
      ensure
        @sending.unlock
      end
    end

    # A removal that must not be lost: it is sent again to a daemon that restarts, and kept for one that stays away.
    # How many rows; nil if it waits.
    def send(text, parameters)
      # Where others wait already, the daemon was away a moment ago.
      pauses = @waiting.empty? ? Limits::RETRIES.dup : []
      begin
        @statements.changed(text, parameters)
      rescue UnavailableError => why
        pause = pauses.shift or return keep(text, parameters, why)
        sleep(pause)
        retry
      end
    end

    # Keeps a removal that cannot be sent, or logs that it is lost. The answer is nil: it waits.
    def keep(text, parameters, why)
      if @options.on_failure == :log
        @notices.error("table #{@name}: an invalidation was not sent, old rows may be read: #{why.message}")
        return nil
      end
      suspends = @waiting.empty?
      raise why unless add(text, parameters)

      @notices.error("table #{@name} is not read until an invalidation was sent: #{why.message}") if suspends
      raise why if @options.on_failure == :raise

      nil
    end

    # The removal of rows by their keys: a statement and its parameters.
    def of_keys(keys)
      ["DELETE FROM #{@table} WHERE key IN (#{(["?"] * keys.size).join(", ")})", keys.map { |key| Keys.text(key) }]
    end

    private

    def due?
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      @lock.synchronize do
        next false if now < @tried + Limits::RETRY

        @tried = now
      end
    end

    def sent_all?
      while (first = @lock.synchronize { @waiting.first })
        @statements.changed(*first)
        @lock.synchronize { forget(first) }
      end
      true
    rescue Error => why
      @notices.warn("table #{@name} is not read until its removals were sent", why)
      false
    end

    # Others may have put one removal of all rows in the place of what was sent.
    def forget(first)
      return unless @waiting.first.equal?(first)

      @waiting.shift
      @bytes -= size(first)
    end

    # Whether it is kept; not, if there are too many and the rows may not all be removed.
    def add(text, parameters)
      removal = [text, parameters]
      @lock.synchronize do
        if @bytes + size(removal) > Limits::PENDING
          next false unless @expendable

          removal = ["DELETE FROM #{@table}", []]
          @waiting = []
          @bytes = 0
        end
        @bytes += size(removal)
        @waiting.push(removal)
        true
      end
    end

    def size(removal)
      removal[0].bytesize + removal[1].sum { |parameter| parameter.to_s.bytesize }
    end
  end

  # Statements about a table, which is made again if somebody has dropped it.
  class Statements
    def initialize(client, definition)
      @client = client
      @definition = definition
    end

    # Runs a statement. If the table is gone, it is made, and the statement runs again.
    def run(text, parameters = [], again: true)
      @client.statement(text, parameters, again: again)
    rescue StatementError => why
      raise unless StatementError::OF_NO_TABLE.include?(why.sqlstate)

      @client.run { |connection| @definition.ensure(connection) }
      @client.statement(text, parameters, again: again)
    end

    # Runs a statement that writes; the number of rows.
    def changed(text, parameters = [], again: true)
      result = run(text, parameters, again: again)
      result.is_a?(Integer) ? result : result.size
    end
  end
end
