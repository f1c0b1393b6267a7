# frozen_string_literal: true

require "active_support"
require "active_support/cache"
require "active_support/core_ext/marshal"
require "active_support/core_ext/array/wrap"
require "active_support/lazy_load_hooks"
require "sqlcached"
require "sqlcached/fetch_by_lease"
require "sqlcached/fragments"

ActiveSupport.on_load(:action_view) { prepend Sqlcached::Fragments }

module ActiveSupport
  module Cache
    # A cache of Rails in a table of sqlcached.
    #
    #     config.cache_store = :sqlcached_store, "127.0.0.1:11211", { namespace: "shop", expires_in: 1.day }
    #
    # - `fetch` lets one of all processes compute a missing value. What was computed before an invalidation is refused.
    # - `write`, `fetch` and `write_multi` take `tags:`; `delete_tagged` removes all values with one of them.
    # - `delete_matched` takes a Regexp, or a text with `*` and `?`.
    # - While the daemon is away a read is a miss and a write is `false`. An invalidation that cannot be sent is kept, and
    #   nothing is read until it got through.
    class SqlcachedStore < Store
      # Raw values are text in the local cache, too.
      module LocalCacheWithRaw # :nodoc:
        private

        def write_entry(key, entry, **options)
          return super unless options[:raw] && local_cache

          raw = Entry.new(entry.value.to_s, compress: false)
          raw.expires_at = entry.expires_at
          super(key, raw, **options)
        end
      end

      prepend Strategy::LocalCache
      prepend LocalCacheWithRaw
      include Sqlcached::FetchByLease

      # What the marshalled bytes of a value raise where they were changed.
      BROKEN = [Zlib::Error, TypeError, ArgumentError].freeze

      def self.supports_cache_versioning?
        true
      end

      # The table, for statements about what is cached: `Rails.cache.table.sql("SELECT ...")`.
      attr_reader :table

      # `location` is `host:port` or the path of a Unix socket. `table` is the table's name, `table_options` are options of
      # a table that is made. The README lists the options of the connection; all others are Rails'.
      def initialize(location = nil, table: "rails", table_options: {}, **options)
        connection = options.slice(*Sqlcached::Options::NAMES)
        connection[:location] = location if location
        super(options.except(*Sqlcached::Options::NAMES))
        @table = Sqlcached::Table.new(connection, Sqlcached::Definition.new(table, table_options))
      end

      def inspect
        "#<#{self.class} table=#{table.definition.name} location=#{table.options.location} options=#{options.inspect}>"
      end

      def read(name, options = nil)
        super
      rescue *BROKEN => why
        raise unless dropped?(name, options, why)

        nil
      end

      # Removes all values with one of these tags; with `soft` they become stale: `read` misses them, and `fetch` returns
      # them to all but the one who computes them again. How many, or nil if the daemon cannot be asked.
      def delete_tagged(*tags, soft: false, **options)
        options = merged_options(options)
        names = tag_names(tags.flatten(1), options)
        local_cache&.clear
        instrument(:delete_tagged, names) do
          removed { table.delete_tags(names, soft: soft) }
        end
      end

      # Removes all values whose key matches a Regexp, or a text with `*`, `?` and sets (`[a-z]`). How many, or nil if the
      # daemon cannot be asked.
      def delete_matched(matcher, options = nil)
        options = merged_options(options)
        pattern = matcher.is_a?(Regexp) ? key_matcher(matcher, options) : glob(matcher, options)
        instrument(:delete_matched, matcher.to_s) do
          removed { Sqlcached::Pattern.new(table, pattern).delete }
        end
      end

      # Adds to a number; one that is missing begins at 0. The row keeps its deadline and its tags.
      def increment(name, amount = 1, options = nil)
        options = merged_options(options)
        instrument(:increment, name, amount: amount) { add(name, Integer(amount), options) }
      end

      def decrement(name, amount = 1, options = nil)
        options = merged_options(options)
        instrument(:decrement, name, amount: amount) { add(name, -Integer(amount), options) }
      end

      # Rows expire by themselves, so there is nothing to do.
      def cleanup(options = nil)
        nil
      end

      # Empties the table; with a namespace only that. nil if the daemon cannot be asked.
      def clear(options = nil)
        prefix = namespace_key("", merged_options(options))
        removed { prefix.empty? ? table.clear : table.delete_prefix(prefix) }
      end

      private

      def read_entry(key, **)
        fetching = Sqlcached::Fetching.current
        return read_for(fetching, key) if fetching

        item = table.attempt(nil) { table.get(key) }
        item && loaded(key, item)
      end

      def write_entry(key, entry, unless_exist: false, raw: false, expires_in: nil, race_condition_ttl: nil, tags: nil, **options)
        data, flags = payload(entry, raw)
        ttl = lifetime(expires_in, race_condition_ttl, raw)
        lease = Sqlcached::Fetching.current&.lease(key)
        table.attempt(false) do
          next lease.fill(data, flags, ttl) if lease

          names = tag_names(tags, options)
          unless_exist ? insert(key, data, flags, ttl, names) : !table.set(key, data, flags, ttl, names).nil?
        end
      end

      def delete_entry(key, **)
        removed(false) { table.delete(key) }
      end

      def delete_multi_entries(keys, **options)
        keys.each { |key| local_cache.delete_entry(key, **options) } if local_cache
        removed { table.delete_many(keys) } || 0
      end

      def read_multi_entries(names, **options)
        keys = keys_of(names, options)
        items = keys.empty? ? {} : table.attempt({}) { table.get_many(keys.keys) }
        found = {}
        items.each do |key, item|
          entry = loaded(key, item)
          name = keys[key]
          found[name] = entry.value if entry && !entry.expired? && of_version?(entry, name, options)
        rescue *BROKEN => why
          table.drop(key, item.cas, why)
        end
        fetching = Sqlcached::Fetching.current
        claim_missing(fetching, keys.reject { |_, name| found.key?(name) }.keys, options) if fetching
        found
      end

      # Names by their keys. The namespace is asked for once.
      def keys_of(names, options)
        prefix = namespace_key("", options)
        names.to_h do |name|
          key = expanded_key(name)
          key = key.dup.force_encoding(Encoding::UTF_8) unless key.encoding == Encoding::UTF_8
          [prefix + key, name]
        end
      end

      # Most entries have no version.
      def of_version?(entry, name, options)
        entry.version.nil? || !entry.mismatched?(normalize_version(name, options))
      end

      def write_multi_entries(entries, expires_in: nil, race_condition_ttl: nil, raw: false, tags: nil, **options)
        entries.each { |key, entry| local_cache.write_entry(key, entry, **options) } if local_cache
        names = tag_names(tags, options)
        rows = storable(entries).transform_values { |entry, cas| [*payload(entry, raw), names, cas] }
        ttl = lifetime(expires_in, race_condition_ttl, raw)
        refused = table.attempt(rows.keys) { table.set_many(rows, ttl) }
        refused.empty?
      end

      # Stores a value if there is none. The place of a value that is being computed is no value.
      def insert(key, data, flags, ttl, names)
        return true if table.set(key, data, flags, ttl, names, mode: "E")

        item = table.item(key)
        item&.reserved? && !table.set(key, data, flags, ttl, names, cas: item.cas).nil? || false
      end

      def add(name, amount, options)
        key = normalize_key(name, options)
        ttl = options[:expires_in]&.to_f
        table.attempt(nil) { table.add(key, amount, ttl, tag_names(options[:tags], options)) }
      end

      # What a removal returns, or an answer in its place if it waits and the application did not ask for errors.
      def removed(answer = nil, &work)
        table.options.on_failure == :raise ? work.call : table.attempt(answer, &work)
      end

      # The bytes of a value, and how they are to be read. Raw text is legible in SQL.
      def payload(entry, raw)
        if raw
          text = entry.value.to_s
          return [text, Sqlcached::Keys.text?(text) ? Sqlcached::Item::TEXT : Sqlcached::Item::BYTES]
        end
        data = serialize_entry(entry)
        data.is_a?(String) ? [data, Sqlcached::Item::SERIALIZED] : [Marshal.dump(data), Sqlcached::Item::MARSHALLED]
      end

      # The entry of a row. What does not load is removed, and is nil.
      def loaded(key, item)
        entry =
          case item.flags
          when Sqlcached::Item::SERIALIZED then deserialize_entry(item.data)
          when Sqlcached::Item::MARSHALLED then deserialize_entry(Marshal.load(item.data))
          else Entry.new(text(item), compress: false)
          end
        raise Sqlcached::BrokenValueError, "no entry of a cache" unless entry.is_a?(Entry)

        entry
      rescue StandardError => why
        table.drop(key, item.cas, why)
        nil
      end

      def text(item)
        item.flags == Sqlcached::Item::BYTES ? item.data : item.data.force_encoding(Encoding::UTF_8)
      end

      # Whether a value did not load, and was removed. Its bytes are looked at again, since the error may be another one's.
      def dropped?(name, options, why)
        key = normalize_key(name, merged_options(options))
        item = table.attempt(nil) { table.item(key) } or return false
        begin
          loaded(key, item)&.value
          false
        rescue *BROKEN
          table.drop(key, item.cas, why)
          local_cache&.delete_entry(key)
          true
        end
      end

      # Seconds until the daemon removes the row. A value that may be used beyond its deadline must still be there.
      def lifetime(expires_in, race_condition_ttl, raw)
        return nil if expires_in.nil?

        seconds = expires_in.to_f
        race_condition_ttl && seconds.positive? && !raw ? seconds + Sqlcached::Limits::RACE : seconds
      end

      # Tags are texts, or records, which name themselves as keys do. Each namespace has its own.
      def tag_names(tags, options)
        Array.wrap(tags).map { |tag| namespace_key(expanded_key(tag), options).to_s }
      end

      def glob(matcher, options)
        prefix = namespace_key("", options)
        prefix.gsub(/[*?\[\]\\]/) { |char| "\\#{char}" } + matcher.to_s
      end
    end
  end
end
