# frozen_string_literal: true

module Sqlcached
  # What is logged: an error each time, a warning of each kind once a minute.
  class Notices
    def initialize(options)
      @log = options.log
      @lock = Mutex.new
      @next = {}
    end

    def warn(kind, why)
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      due = @lock.synchronize do
        next false if now < @next.fetch(kind, 0)

        @next[kind] = now + Limits::WARN_EVERY
      end
      write(:warn, "#{kind}: #{why.message}") if due
    end

    def error(text)
      write(:error, text)
    end

    private

    # `log` is a logger, or a function of a level and a text. Rails' own logger is asked for late: an application sets it
    # after its cache.
    def write(level, text)
      text = "sqlcached: #{text}"
      return @log.call(level, text) if @log.respond_to?(:call)

      logger = @log || (defined?(::Rails.logger) && ::Rails.logger)
      logger ? logger.public_send(level, text) : Kernel.warn(text)
    end
  end
end
