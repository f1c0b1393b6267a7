# frozen_string_literal: true

module Sqlcached
  # `fetch` and `fetch_multi` of a Rails cache by lease.
  #
  # Rails reads an entry, decides whether it may be used, calls the block and writes the value. Here a claim is taken
  # before the block is called, and the write holds only if the claim does.
  module FetchByLease
    # Besides Rails' options: `tags`, and `refresh_before`, the seconds before the deadline in which one caller computes
    # the value again while the others get the old one.
    def fetch(name, options = nil, &block)
      return super unless block

      again = true
      begin
        Fetching.during(Fetching.new(refresh_of(options))) { super(name, options, &block) }
      rescue BrokenValueError
        raise unless again

        again = false
        retry
      end
    end

    def fetch_multi(*names, &block)
      return super unless block

      Fetching.during(Fetching.new) do |fetching|
        super(*names) { |*arguments| Fetching.paused { block.call(*arguments) } }
      ensure
        fetching.end
      end
    end

    private

    def refresh_of(options)
      (options && options[:refresh_before] || self.options[:refresh_before]).to_i
    end

    # Reads an entry for `fetch`, which may also use a stale one, if another caller computes it again.
    def read_for(fetching, key)
      fetching.item = item = table.attempt(Lease::UNKNOWN) { table.readable? ? table.item(key, fetching.refresh) : Lease::UNKNOWN }
      return nil if item.nil? || item.equal?(Lease::UNKNOWN) || item.reserved? || item.won

      loaded(key, item)
    end

    # One caller puts an expired entry back for `race_condition_ttl`, and computes. The others use it.
    def handle_expired_entry(entry, key, options)
      fetching = Fetching.current
      return super unless fetching && entry&.expired? && fetching.item.is_a?(Item)

      race = options[:race_condition_ttl].to_i
      return nil unless race.positive? && Time.now.to_f - entry.expires_at <= race

      entry.expires_at = Time.now + race
      cas = table.attempt(nil) do
        table.set(key, *payload(entry, options[:raw]), race * 2, tag_names(options[:tags], options), cas: fetching.item.cas)
      end
      return entry_of_other(key) unless cas

      local_cache&.write_entry(key, entry)
      lease = lease_for(key, options)
      lease.claimed(cas)
      fetching.keep(key, lease)
      nil
    end

    # Another caller has put the entry back, or has computed it.
    def entry_of_other(key)
      item = table.attempt(nil) { table.get(key) }
      entry = item && loaded(key, item)
      entry unless entry&.expired?
    end

    def get_entry_value(entry, name, options)
      super
    rescue *self.class::BROKEN => why
      raise unless dropped?(name, options, why)

      raise BrokenValueError, why.message
    end

    def save_block_result_to_cache(name, *rest, &block)
      fetching = Fetching.current or return super
      options = rest.last
      key = normalize_key(name, options)
      entry = fetching.lease(key) ? nil : claim(fetching, key, name, options)
      return get_entry_value(entry, name, options) if entry

      super(name, *rest) { |*arguments| Fetching.paused { block.call(*arguments) } }
    ensure
      fetching&.end
    end

    # Takes the claim to compute a value; an entry if another caller has computed it meanwhile.
    def claim(fetching, key, name, options)
      lease = lease_for(key, options, fetching.refresh)
      fetching.keep(key, lease)
      return force(lease, key) if options[:force]

      entry = lease.take(fetching.item) do |item|
        found = loaded(key, item)
        found unless found.nil? || found.expired? || found.mismatched?(normalize_version(name, options))
      end
      local_cache&.write_entry(key, entry) if entry
      entry
    end

    # Who insists to compute takes the claim of the version that is there, whoever else has it.
    def force(lease, key)
      item = table.attempt(Lease::UNKNOWN) { table.item(key) }
      lease.forced
      return nil if item.equal?(Lease::UNKNOWN)

      item ? lease.claimed(item.cas, reserved: item.reserved?) : table.attempt(false) { lease.reserve(nil) }
      nil
    end

    def lease_for(key, options, refresh = 0)
      Lease.new(table, key, tag_names(options[:tags], options), refresh)
    end

    # Takes the claims of missing values for `fetch_multi`. What others compute is computed here, too, and not stored.
    def claim_missing(fetching, keys, options)
      return if keys.empty?

      tags = tag_names(options[:tags], options)
      versions = table.attempt({}) { table.readable? ? table.reserve_many(keys, tags, Limits::LEASE) : {} }
      keys.each do |key|
        lease = Lease.new(table, key, tags)
        lease.claimed(versions[key], reserved: true)
        fetching.keep(key, lease)
      end
    end

    # The entries that may be stored, with the version that each replaces.
    def storable(entries)
      fetching = Fetching.current
      return entries.transform_values { |entry| [entry, nil] } unless fetching

      entries.each_with_object({}) do |(key, entry), found|
        lease = fetching.lease(key)
        cas = lease&.hand_over
        found[key] = [entry, cas] if lease.nil? || cas
      end
    end
  end
end
