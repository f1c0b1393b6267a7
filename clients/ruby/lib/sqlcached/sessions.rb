# frozen_string_literal: true

module Sqlcached
  # Sessions in a table, whose rows know their user.
  #
  #     sessions = Sqlcached::Sessions.new("127.0.0.1:11211")
  #     sessions.logout_everywhere(17)
  #
  # Other tables cannot evict sessions below the table's `min_memory`, and `flush_all` leaves them.
  class Sessions
    OPTIONS = { "min_memory" => "8 MB", "flush" => false }.freeze

    # Seconds that a session lives after its last use, if nothing else is said: two weeks.
    LIFETIME = 1_209_600

    attr_reader :table

    def initialize(connection = nil, table: "rails_sessions", table_options: {})
      options = OPTIONS.merge(table_options.transform_keys(&:to_s))
      @table = Table.new(connection, Definition.new(table, options), expendable: false)
    end

    # Ends all sessions of a user, but one; how many. If that cannot be sent, it is kept, this process reads no session
    # until it got through, and the caller gets the error.
    def logout_everywhere(principal, keep: nil)
      count = @table.delete_rows("? = ANY (tags) AND key <> ?", [Keys.text(principal.to_s), Keys.text(private_id(keep))])
      count or raise UnavailableError, "#{@table.options}: the removal waits until the daemon is back"
    end

    # How many sessions a user has.
    def count(principal)
      text = "SELECT count(*) AS n FROM #{@table.definition.quoted} WHERE ? = ANY (tags)"
      @table.sql(text, [Keys.text(principal.to_s)]).first["n"]
    end

    # The data of a session; nil if there is none. An error if it cannot be read.
    def read(id)
      raise UnavailableError, "a removal waits until the daemon is back" unless @table.readable?

      item = @table.get(id) or return nil
      Marshal.load(item.data)
    rescue TypeError, ArgumentError => why
      # A class of the application that is not loaded yet is no broken session.
      raise if why.message.start_with?("undefined class/module")

      @table.drop(id, item.cas, why)
      nil
    end

    # Stores a session; with `mode: "R"` only if it is there still. Whether it was stored.
    def write(id, data, seconds, principal, mode: "S")
      tags = principal.nil? || principal.to_s.empty? ? [] : [principal.to_s]
      !@table.set(id, Marshal.dump(data), Item::SERIALIZED, seconds || LIFETIME, tags, mode: mode).nil?
    end

    # Removes sessions. What cannot be sent is kept.
    def delete(*ids)
      @table.delete_many(ids)
    end

    private

    # Rows have the digest of what the browser knows.
    def private_id(id)
      id.respond_to?(:private_id) ? id.private_id : id.to_s
    end
  end
end
