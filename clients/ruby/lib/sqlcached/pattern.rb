# frozen_string_literal: true

module Sqlcached
  # Rows whose key matches a pattern. The daemon judges what it understands as Ruby does; the rest is judged here, page by
  # page.
  class Pattern
    # What means the same to Ruby and to the daemon: characters, groups, alternatives, repetitions, simple sets, anchors.
    SAME = %r{\A(?:[^\\\[\](]|\\[Az]|\\[^A-Za-z0-9]|\((?!\?)|\(\?:|\[\^?(?:[^\\\[\]&^])+\])*\z}
    GLOB_PART = /\\.|\[\^?[^\\\[\]^]+\]|[*?]|./m

    # `pattern` is a Regexp, or a text as Redis has it: `*`, `?`, `[ab]`, `[^a-z]`, and `\` before what is meant itself.
    def initialize(table, pattern)
      @table = table
      @pattern = pattern
    end

    # Removes the rows; how many, or nil if it waits.
    def delete
      condition = @pattern.is_a?(Regexp) ? by_expression : by_glob
      return judged unless condition

      @table.delete_rows(*condition)
    rescue UnavailableError
      raise
    rescue StatementError
      # An expression that the daemon does not take.
      judged
    end

    private

    def by_glob
      glob = parts.map { |part| part.size == 2 && part[0] == "\\" ? "[#{part[1]}]" : literal(part) }.join
      glob.bytesize <= Limits::GLOB && !glob.include?("[^]") ? ["key GLOB ?", [glob]] : nil
    end

    # A bracket that begins no set means itself.
    def literal(part)
      part == "[" ? "[[]" : part
    end

    def parts
      @pattern.scan(GLOB_PART)
    end

    def by_expression
      return nil unless @pattern.source.match?(SAME) && (@pattern.options & Regexp::EXTENDED).zero?

      # Ruby's ^ and $ are those of lines, which is `m` elsewhere. Its point matches a line end only with /m, which is `s`.
      flags = "m#{"i" if @pattern.options & Regexp::IGNORECASE != 0}#{"s" if @pattern.options & Regexp::MULTILINE != 0}"
      # Without letters beyond ASCII both mean the same by upper and lower case.
      return nil if flags.include?("i") && !@pattern.source.ascii_only?

      source = @pattern.source.gsub("\\/", "/")
      ["key ~ ?", ["(?#{flags})#{source}"]]
    end

    def expression
      return @pattern if @pattern.is_a?(Regexp)

      source = parts.map do |part|
        case part
        when "*" then ".*"
        when "?" then "."
        when /\A\[.+\]\z/m then part.gsub("&", "\\\\&")
        when /\A\\(.)\z/m then Regexp.escape(Regexp.last_match(1))
        else Regexp.escape(part)
        end
      end
      Regexp.new("\\A#{source.join}\\z", Regexp::MULTILINE)
    end

    # Reads all keys, in their order. Where they cannot be read, all rows are removed: none may stay that matches.
    def judged
      matcher = expression
      count = 0
      last = nil
      while (keys = page(last)).any?
        last = keys.last
        found = keys.grep(matcher)
        next if found.empty?

        removed = @table.delete_rows("key IN (#{(["?"] * found.size).join(", ")})", found) or return nil
        count += removed
      end
      count
    rescue UnavailableError
      @table.clear
    end

    def page(last)
      condition = last ? " WHERE key > ?" : ""
      text = "SELECT key FROM #{@table.definition.quoted}#{condition} ORDER BY key LIMIT #{Limits::PAGE}"
      @table.sql(text, last ? [last] : []).map { |row| row["key"] }
    end
  end
end
