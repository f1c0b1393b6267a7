# frozen_string_literal: true

module Sqlcached
  # A `fetch` or a `fetch_multi` that is under way in this thread (or fiber). Rails asks its store in several calls for it,
  # which share what is known here.
  class Fetching
    KEY = :sqlcached_fetching
    private_constant :KEY

    class << self
      def current
        Thread.current[KEY]
      end

      def during(fetching)
        before = Thread.current[KEY]
        Thread.current[KEY] = fetching
        yield fetching
      ensure
        Thread.current[KEY] = before
      end

      # What the application computes has its own reads and writes.
      def paused(&block)
        during(nil) { block.call }
      end
    end

    # The row that was read; `Lease::UNKNOWN` if the daemon was not asked, or did not answer.
    attr_accessor :item

    # Seconds before the deadline in which one caller computes the value again.
    attr_reader :refresh

    def initialize(refresh = 0)
      @refresh = refresh
      @item = Lease::UNKNOWN
      @leases = {}
    end

    def lease(key)
      @leases[key]
    end

    def keep(key, lease)
      @leases[key] = lease
    end

    # What was claimed and not stored is left to others.
    def end
      @leases.each_value { |lease| lease&.give_up }
    end
  end
end
