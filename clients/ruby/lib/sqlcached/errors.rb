# frozen_string_literal: true

module Sqlcached
  class Error < StandardError; end

  # The daemon cannot be asked, or did not answer to the end.
  class UnavailableError < Error; end

  # The daemon has read the request and refused it.
  class RefusedError < Error; end

  # A statement failed.
  class StatementError < RefusedError
    # The table is gone. Then `tags && ?` may be refused before that is seen: the type of a missing column is not known.
    OF_NO_TABLE = %w[42P01 42725].freeze
    FORBIDDEN = "42501"

    attr_reader :sqlstate

    # `sqlstate` is PostgreSQL's code of five characters.
    def initialize(sqlstate, message)
      @sqlstate = sqlstate
      super("#{message} (#{sqlstate})")
    end
  end

  # Bytes of the cache that do not load as a value.
  class BrokenValueError < Error; end
end
