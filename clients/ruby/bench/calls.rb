# frozen_string_literal: true

# Processor time of calls: of this process and of the server, in microseconds a call.
#
#     ruby bench/calls.rb 127.0.0.1:11211 "$(pidof sqlcached)" redis://127.0.0.1:6379 "$(pidof redis-server)"
#
# Without the last two, sqlcached alone.
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "active_support"
require "active_support/cache"
require "active_support/core_ext/numeric/time"
require "sqlcached"

CALLS = 5_000
VALUE = "x" * 1_000
KEYS = Array.new(100) { |number| "k#{number}" }
TAGS = %w[product:17 shop user:5].freeze

# Seconds of processor time of a process.
def spent(process)
  File.read("/proc/#{process}/stat").split(")").last.split[11, 2].sum(&:to_i) / 100.0
end

def own
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def measure(name, server, calls)
  client = own
  before = spent(server)
  calls.times { |number| yield number }
  client = (own - client) / calls * 1e6
  server = (spent(server) - before) / calls * 1e6
  puts format("%-44<name>s client %8.1<client>f  server %8.1<server>f  sum %8.1<sum>f", name: name, client: client, server: server,
                                                                                      sum: client + server)
end

def calls_of(name, cache, server)
  cache.clear
  measure("#{name} write", server, CALLS) { |number| cache.write("k#{number % 1_000}", VALUE, expires_in: 600) }
  measure("#{name} read", server, CALLS) { |number| cache.read("k#{number % 1_000}") }
  measure("#{name} read_multi(100)", server, CALLS / 10) { cache.read_multi(*KEYS) }
  measure("#{name} write_multi(100)", server, CALLS / 50) { cache.write_multi(KEYS.to_h { |key| [key, VALUE] }, expires_in: 600) }
  measure("#{name} fetch, a hit", server, CALLS) { |number| cache.fetch("k#{number % 1_000}") { VALUE } }
  measure("#{name} fetch, a miss", server, CALLS) { |number| cache.fetch("m#{number}", expires_in: 600) { VALUE } }
  measure("#{name} increment", server, CALLS) { cache.increment("n") }
  measure("#{name} delete", server, CALLS) { |number| cache.delete("m#{number}") }
end

location, server, redis, redis_server = ARGV
cache = ActiveSupport::Cache.lookup_store(:sqlcached_store, location, { table: "bench" })
calls_of("sqlcached", cache, server)
measure("sqlcached write, 3 tags", server, CALLS) { |number| cache.write("t#{number}", VALUE, tags: [*TAGS, "t#{number}"]) }
measure("sqlcached delete_tagged, one row", server, CALLS / 5) { |number| cache.delete_tagged("t#{number}") }
measure("sqlcached delete_tagged, 4,000 rows", server, 1) { cache.delete_tagged("shop") }
calls_of("Redis", ActiveSupport::Cache.lookup_store(:redis_cache_store, { url: redis, namespace: "bench" }), redis_server) if redis
