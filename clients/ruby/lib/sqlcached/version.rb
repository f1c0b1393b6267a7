# frozen_string_literal: true

module Sqlcached
  VERSION = "0.1.0"
end
