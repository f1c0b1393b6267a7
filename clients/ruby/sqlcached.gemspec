# frozen_string_literal: true

require_relative "lib/sqlcached/version"

Gem::Specification.new do |gem|
  gem.name = "sqlcached"
  gem.version = Sqlcached::VERSION
  gem.summary = "Caches and sessions of Rails in sqlcached: tags, leases, invalidations that are not lost"
  gem.authors = ["The sqlcached authors"]
  gem.licenses = %w[MIT Apache-2.0]
  gem.required_ruby_version = ">= 3.1"
  gem.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb", "README.md"] }
  gem.add_dependency "activesupport", ">= 6.1", "< 7"
end
