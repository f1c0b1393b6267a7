# frozen_string_literal: true

# The behaviours that Rails asks of its own stores, from its source.
require_relative "../preamble"
require "active_support/dependencies"
require "active_support/testing/time_helpers"
require Place.suites("activesupport/test/cache/behaviors")

class ActiveSupport::TestCase
  include ActiveSupport::Testing::MethodCallAssertions
end

class StoreOfRailsTest < ActiveSupport::TestCase
  # What went wrong is told beside the failures of tests.
  def lookup_store(options = {})
    ActiveSupport::Cache.lookup_store(:sqlcached_store, Place.location,
                                      { table: "suite", namespace: @namespace, log: Place::TELL, **Place::PATIENT }.merge(options))
  end

  setup do
    @namespace = "test-#{SecureRandom.hex}"
    @cache = lookup_store(expires_in: 60)
    @peek = lookup_store(expires_in: 60)
    @cache.logger = ActiveSupport::Logger.new(File::NULL)
  end

  teardown do
    @cache.clear
    [@cache, @peek].each { |cache| cache.table.close }
  end
end

class CommonBehaviorTest < StoreOfRailsTest
  include CacheStoreBehavior
  include CacheStoreVersionBehavior
  include CacheStoreCoderBehavior
  include CacheDeleteMatchedBehavior
  include LocalCacheBehavior
  include CacheIncrementDecrementBehavior
  include CacheInstrumentationBehavior
  include AutoloadingCacheBehavior
  include EncodedKeyCacheBehavior

  # The daemon is asked at a port where nobody listens.
  include FailureSafetyBehavior

  def test_large_string_with_default_compression_settings
    assert_compressed(LARGE_STRING)
  end

  def test_large_object_with_default_compression_settings
    assert_compressed(LARGE_OBJECT)
  end

  private

  def emulating_unavailability
    yield ActiveSupport::Cache.lookup_store(:sqlcached_store, "127.0.0.1:1", { table: "suite", namespace: @namespace, log: ->(*) {} })
  end
end

# What Rails asks of its store on memcached, in its own words.
class RawValuesTest < StoreOfRailsTest
  def test_raw_values
    cache = lookup_store(raw: true)
    cache.write("foo", 2)
    assert_equal "2", cache.read("foo")
    cache.write("foo", Marshal.dump([]))
    assert_equal Marshal.dump([]), cache.read("foo")
    cache.with_local_cache do
      cache.write("foo", 2)
      assert_equal "2", cache.read("foo")
    end
  end

  def test_read_returns_a_different_object_each_time
    @cache.write("foo", "bar")
    value = @cache.read("foo")
    value << "bingo"
    assert_equal "bar", @cache.read("foo")
  end
end
