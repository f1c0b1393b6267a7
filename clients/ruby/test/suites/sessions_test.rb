# frozen_string_literal: true

# Rails' own tests of its two session stores: that on a cache, with ours as the cache, and that on memcached, with our
# session store in its place.
require_relative "../preamble"
$LOAD_PATH.unshift(Place.suites("actionpack/test"))
ENV["MT_CPU"] = "0"
require "action_controller"
require "action_dispatch"

# Rails' frame of its tests names browsers, which need a program that Debian may not have. No test here uses one.
ActionDispatch.send(:remove_const, :SystemTestCase)
class ActionDispatch::SystemTestCase < ActiveSupport::TestCase
  def self.driven_by(*, **); end
end
require "abstract_unit"
require "active_support/cache/sqlcached_store"
require "action_dispatch/middleware/session/sqlcached_store"

# The tests name a private method of Rack::Test that later versions do not have: cookies by their names.
class Rack::Test::CookieJar
  def hash_for
    @cookies.to_h { |cookie| [cookie.name, cookie] }
  end
end

# The tests ask whether memcached is there. Its place is taken by a daemon that is.
module Dalli
  DalliError = Class.new(RuntimeError)
  RingError = Class.new(DalliError)

  class Client
    def initialize(*); end

    def stats
      { "localhost:11211" => Sqlcached::Client.new(Place.location).stats }
    end
  end
end
$LOADED_FEATURES << "dalli.rb"

# Our store with the options that the tests have for memcached.
class SessionsInPlaceOfMemcached < ActionDispatch::Session::SqlcachedStore
  def initialize(app, options = {})
    super(app, { key: options[:key], location: Place.location, table: "suite_sessions", log: Place::TELL, **Place::PATIENT })
  end
end
ActionDispatch::Session.send(:remove_const, :MemCacheStore)
ActionDispatch::Session::MemCacheStore = SessionsInPlaceOfMemcached

# The tests of the store on a cache make a cache of the process's memory.
class CacheInPlaceOfMemory < ActiveSupport::Cache::SqlcachedStore
  def initialize
    super(Place.location, table: "suite_session_cache", log: Place::TELL, **Place::PATIENT)
  end
end
ActiveSupport::Cache.send(:remove_const, :MemoryStore)
ActiveSupport::Cache::MemoryStore = CacheInPlaceOfMemory

require Place.suites("actionpack/test/dispatch/session/cache_store_test")
require Place.suites("actionpack/test/dispatch/session/mem_cache_store_test")
