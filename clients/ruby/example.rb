require "sqlcached"
require "active_support/cache"

cache = ActiveSupport::Cache.lookup_store(:sqlcached_store, "127.0.0.1:#{ENV.fetch("SQLCACHED_PORT", 11211)}", { table: "example" })
cache.write("page/17", "hello", expires_in: 600, tags: ["product:17", "shop"])
puts cache.read("page/17")

# All that shows the product, whatever its keys are.
cache.delete_tagged("product:17")
raise "still there" if cache.read("page/17")

# Of all processes that miss the value at once, one computes it.
raise "not computed" unless cache.fetch("sum") { 1 + 1 } == 2
