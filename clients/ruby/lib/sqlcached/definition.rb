# frozen_string_literal: true

require "json"

module Sqlcached
  # The table of a cache: keys, values, tags. `SELECT key, body, tags, _ttl FROM rails` in psql shows it.
  #
  # The key's prefix is the table's name and a colon. It is ordered, so that keys that begin alike are found without a
  # scan.
  class Definition
    attr_reader :name, :prefix

    # `options` are those of the table: `ttl`, `max_memory`, `min_memory`, `max_rows`, `stale_for`, ...
    def initialize(name, options = {})
      @name = name.to_s
      unless @name.match?(/\A[A-Za-z_][A-Za-z0-9_]{0,62}\z/)
        raise ArgumentError, "'#{name}' is no name of a table: letters, digits and _, at most 63"
      end

      @options = options.transform_keys(&:to_s)
      @options.each_key { |option| raise ArgumentError, "'#{option}' is no option of a table" unless option.match?(/\A[a-z_]+\z/) }
      @prefix = "#{@name}:"
    end

    # Whether rows without a deadline of their own get one from the table.
    def ttl?
      @options.key?("ttl")
    end

    # The name as an identifier of SQL.
    def quoted
      "\"#{name}\""
    end

    def statements
      with = { "prefix" => prefix, "value" => "body", "tags" => "tags", "ordered" => true }.merge(@options)
      options = with.map { |option, value| "#{option} = #{literal(value)}" }.join(", ")
      [
        "CREATE TABLE IF NOT EXISTS #{quoted} (key TEXT PRIMARY KEY, body ANY, tags TEXT[]) WITH (#{options})",
        "CREATE INDEX IF NOT EXISTS \"#{name}_tags\" ON #{quoted} USING gin (tags)"
      ]
    end

    # Makes sure of the table on a new connection: the daemon may be another one than before, and the tables of an
    # earlier one may be gone. Without its table memcached's commands would go to the built-in one.
    def ensure(connection)
      return if there?(connection)

      statements.each { |text| run(connection, text) }
    rescue StatementError => why
      raise unless why.sqlstate == StatementError::FORBIDDEN

      raise RefusedError, "a superuser must make the table #{name}:\n#{statements.join(";\n")}"
    end

    private

    def there?(connection)
      rows = run(connection, "SELECT options FROM sqlcached_tables WHERE table_name = ?", name)
      return false if rows.empty?

      have = JSON.parse(rows[0]["options"].to_s)
      missing = ["prefix=#{prefix}", "value=body", "tags=tags"] - have
      return true if missing.empty?

      raise RefusedError, "the table #{name} is not of this cache, it lacks #{missing.join(", ")}"
    end

    def run(connection, text, *parameters)
      connection.send(Protocol.statement(text, parameters))
      Protocol.rows(connection)
    end

    def literal(value)
      case value
      when true then "on"
      when false then "off"
      when Numeric then value.to_s
      else "'#{value.to_s.gsub("'", "''")}'"
      end
    end
  end
end
