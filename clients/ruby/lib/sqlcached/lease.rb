# frozen_string_literal: true

module Sqlcached
  # One computes: of all who miss a value at once, one is asked to compute it; the others wait for it. A value whose row
  # was invalidated or written meanwhile is refused, because it was computed from what was there before.
  class Lease
    # What is not known yet, where nil means that there is no row.
    UNKNOWN = Object.new.freeze

    # The version that was claimed; nil if the value is not to be stored.
    attr_reader :cas

    def initialize(table, key, tags, refresh = 0)
      @table = table
      @key = key
      @tags = tags
      @refresh = refresh
      @cas = nil
      @reserved = false
      @forced = false
    end

    # Asks for a value, or for the claim to compute it. `item` is what a moment ago was there. The block says what a row is
    # worth: that is the result, or nil if the caller is to compute the value.
    def take(item = UNKNOWN, &worth)
      found = nil
      pause = Limits::PAUSE_MIN
      last = now + Limits::LEASE_WAIT
      # Whoever waited long enough computes the value for itself, and does not store it.
      until @table.attempt(true) { known?(item) { |there| found = worth.call(there) } }
        return nil if now > last

        sleep(pause)
        pause = [pause * 1.5, Limits::PAUSE_MAX].min
        item = UNKNOWN
      end
      found
    end

    # Takes over a claim that was made in another way.
    def claimed(cas, reserved: false)
      @cas = cas
      @reserved = reserved
      !cas.nil?
    end

    # The claim is another's who insists. If it does not hold, neither value may stay.
    def forced
      @forced = true
    end

    # The version that was claimed, for one who stores the value itself.
    def hand_over
      cas = @cas
      @cas = nil
      cas
    end

    # Stores the value, unless the row was invalidated or written since the claim. Whether it was stored.
    def fill(data, flags, ttl)
      cas = hand_over
      stored = !cas.nil? && !@table.set(@key, data, flags, ttl, @tags, cas: cas).nil?
      @table.delete(@key) if @forced && !stored
      stored
    end

    # Takes the place of a missing row, or of one version of it. Whether that was possible.
    def reserve(cas)
      claimed(@table.reserve(@key, @tags, Limits::LEASE, cas), reserved: true)
    end

    # Leaves the place, or the claim of a value that is there, to the next who asks.
    def give_up
      cas = hand_over or return
      @table.attempt(false) { @reserved ? @table.delete_version(@key, cas) : @table.leave(@key, cas) }
    end

    private

    # Whether it is known what to do: return the value, or compute it.
    def known?(item)
      return true unless @table.readable?

      item = @table.item(@key, @refresh) if item.equal?(UNKNOWN)
      return reserve(nil) if item.nil?
      # A place is near its deadline from the beginning, and is claimed already, unless it was invalidated softly.
      return claimed(item.cas, reserved: item.reserved?) if item.won && (item.stale || !item.reserved?)
      return false if item.reserved?

      # What is there may have expired by Rails' clock, or be of another version: then it leaves for the new value.
      !yield(item).nil? || reserve(item.cas)
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
