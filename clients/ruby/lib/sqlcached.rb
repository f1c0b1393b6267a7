# frozen_string_literal: true

# Caches and sessions of Rails in sqlcached.
module Sqlcached; end

require_relative "sqlcached/version"
require_relative "sqlcached/errors"
require_relative "sqlcached/limits"
require_relative "sqlcached/options"
require_relative "sqlcached/keys"
require_relative "sqlcached/item"
require_relative "sqlcached/connection"
require_relative "sqlcached/protocol"
require_relative "sqlcached/client"
require_relative "sqlcached/definition"
require_relative "sqlcached/wire"
require_relative "sqlcached/notices"
require_relative "sqlcached/removals"
require_relative "sqlcached/table"
require_relative "sqlcached/lease"
require_relative "sqlcached/fetching"
require_relative "sqlcached/pattern"
require_relative "sqlcached/sessions"

# Rails finds its cache store by the name of a file. The session store must be there under its name. (The module of caches
# must not: Rails would not load its own then.)
module ActionDispatch
  module Session
    autoload :SqlcachedStore, "action_dispatch/middleware/session/sqlcached_store"
  end
end
