# frozen_string_literal: true

# What all tests have in common: the gem of this tree, Debian's Rails, and where the daemon is.
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "logger"
require "active_support"
require "active_support/core_ext"
require "active_support/cache"
require "active_support/logger"
require "active_support/test_case"
require "active_support/testing/method_call_assertions"
require "minitest/autorun"
require "securerandom"
require "sqlcached"

Thread.abort_on_exception = true

# Where the tests' daemon is, and where the tests of Rails are.
module Place
  PORT = Integer(ENV.fetch("SQLCACHED_PORT"), 10)

  # A loaded machine may need more for a restart than a call waits for.
  PATIENT = { timeout: 60, connect_timeout: 60 }.freeze
  TELL = ->(level, text) { warn("#{level}: #{text}") }

  def self.location
    "127.0.0.1:#{PORT}"
  end

  def self.suites(path)
    File.join(ENV.fetch("SQLCACHED_SUITES"), "rails", path)
  end
end
