# frozen_string_literal: true

# Runs a file of tests while the daemon restarts at requests that are drawn by lot:
#
#     ruby test/restarts.rb suites/cache_test.rb
#
# A restart changes no result. `SEED=7` repeats a run.
require_relative "relay"

seed = Integer(ENV.fetch("SEED") { Random.new_seed % 1_000_000_000 })
puts "SEED=#{seed}"
Daemon.new do |daemon|
  relay = Relay.new(daemon, seed)
  environment = { "SQLCACHED_PORT" => relay.port.to_s }
  done = system(environment, "ruby", File.join(__dir__, ARGV.fetch(0)), "--seed", (seed % 65_536).to_s)
  relay.close
  puts "the daemon restarted #{relay.cuts} times"
  exit(1) unless done && relay.cuts.positive?
end
