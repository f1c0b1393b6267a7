# frozen_string_literal: true

require "action_dispatch"
require "action_dispatch/middleware/session/abstract_store"
require "active_support/core_ext/marshal"
require "sqlcached"

module ActionDispatch
  module Session
    # Sessions of Rails in a table of sqlcached, whose rows know their user.
    #
    #     config.session_store :sqlcached_store, location: "127.0.0.1:11211", principal: ->(session) { session["user_id"] }
    #
    # `principal` names the user of a session; without it the session's `user_id` does. `expire_after` is the time after
    # the last use. The other options are those of the connection and of Rack.
    #
    # While the daemon is away a request has an empty session, which is not written in the place of the stored one.
    class SqlcachedStore < AbstractSecureStore
      # How a session of this request is written: by its id, so that one that somebody ended does not come back.
      LOADED = "sqlcached.session.loaded"
      UNREADABLE = Object.new.freeze
      OWN = %i[table table_options principal sessions].freeze
      private_constant :LOADED, :UNREADABLE, :OWN

      attr_reader :sessions

      def initialize(app, options = {})
        connection = options.slice(*Sqlcached::Options::NAMES)
        table = options.slice(:table, :table_options).compact
        @sessions = options[:sessions] || Sqlcached::Sessions.new(connection, **table)
        @principal = options[:principal] || ->(session) { session["user_id"] }
        super(app, options.except(*Sqlcached::Options::NAMES, *OWN))
      end

      def find_session(request, sid)
        session = sid && stored(sid)
        request.set_header(LOADED, session.equal?(UNREADABLE) ? UNREADABLE : sid.private_id) if session
        return [sid, {}] if session.equal?(UNREADABLE)

        session ? [sid, session] : [generate_sid, {}]
      end

      def write_session(request, sid, session, options)
        loaded = request.get_header(LOADED)
        return false if loaded.equal?(UNREADABLE)

        mode = loaded == sid.private_id ? "R" : "S"
        done = sessions.table.attempt(false) do
          sessions.write(sid.private_id, session, options[:expire_after]&.to_f, @principal.call(session), mode: mode)
        end
        done && sid
      end

      def delete_session(request, sid, options)
        sessions.table.attempt(nil) { sessions.delete(sid.private_id) }
        request.delete_header(LOADED)
        options[:drop] ? nil : generate_sid
      end

      private

      def stored(sid)
        sessions.table.attempt(UNREADABLE) { sessions.read(sid.private_id) }
      end
    end
  end
end
