# frozen_string_literal: true

module Sqlcached
  # A row as the daemon answers it.
  class Item
    # How the bytes became a value: by the coder of the cache, or by Marshal where the coder makes no bytes. 0 with bytes
    # is a value that another client stored.
    BYTES = 0
    SERIALIZED = 1
    MARSHALLED = 3
    INTEGER = 2
    TEXT = 16

    # `cas` changes whenever the row changes; nil if it was not asked for. `won`: this client is asked to compute the value. `place`: which of several.
    attr_accessor :data, :flags, :cas, :won, :stale, :place

    def initialize(data, flags: 0, cas: nil, stale: false)
      @data = data
      @flags = flags
      @cas = cas
      @won = false
      @stale = stale
      @place = 0
    end

    # Nothing but the place of a value that is being computed.
    def reserved?
      flags.zero? && data.empty?
    end

    # A value that may be returned.
    def fresh?
      !stale && !reserved?
    end
  end
end
