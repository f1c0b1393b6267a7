# frozen_string_literal: true

require "json"

module Sqlcached
  # memcached's protocol as this package needs it: requests as bytes, answers as values.
  module Protocol
    class << self
      # The request of a statement.
      def statement(text, parameters)
        array = JSON.generate(parameters.map { |value| parameter(value) })
        "sqlp #{text.bytesize} #{array.bytesize}\r\n#{text}\r\n#{array}\r\n".b
      rescue JSON::GeneratorError => why
        raise RefusedError, "a parameter cannot be sent: #{why.message}"
      end

      # The answer of a statement.
      def rows(connection)
        rows = []
        until (line = connection.line) == "END"
          if line.start_with?("{")
            rows << row(connection, line)
          elsif (found = /\AOK (\d+)\z/n.match(line))
            return Integer(found[1], 10)
          else
            raise connection.refused(line)
          end
        end
        rows
      end

      def stats(connection)
        found = {}
        until (line = connection.line) == "END"
          word, name, value = line.split(" ", 3)
          raise connection.refused(line) unless word == "STAT"

          found[name] = value.to_s
        end
        found
      end

      # A key as meta commands send it, with the flag that says how. The row has its true text.
      def key(key)
        key.b.match?(/[\x00-\x20\x7f]/n) ? "#{[key].pack("m0")} b" : key
      end

      # The answer of `mg` with the flags `v f c`; nil for a miss.
      def item(connection)
        line = connection.line
        line == "EN" ? nil : value(connection, line)
      end

      # The answers of many `mg` with `v f q` and their place as opaque, behind them `mn`: items by place.
      def items(connection)
        found = {}
        refusal = nil
        until (line = connection.line) == "MN"
          next refusal ||= line unless line.start_with?("VA ")

          item = value(connection, line)
          found[item.place] = item
        end
        raise connection.refused(refusal) if refusal

        found
      end

      # Whether a command was done, that is answered with one line.
      def done?(connection, line)
        case line[0, 2]
        when "HD" then true
        when "NS", "EX", "NF", "EN" then false
        else raise connection.refused(line)
        end
      end

      # What quiet commands answered before their `mn`.
      def refusals(connection)
        found = []
        until (line = connection.line) == "MN"
          found << line
        end
        found
      end

      private

      def parameter(value)
        case value
        when Array then JSON.generate(value)
        when String then text(value)
        when Integer, Float, true, false, nil then value
        else value.to_s
        end
      end

      # The daemon's texts have no NUL.
      def text(value)
        Keys.text?(value) && !value.include?("\0") ? value.dup.force_encoding(Encoding::UTF_8) : { base64: [value].pack("m0") }
      end

      def row(connection, line)
        JSON.parse(line.force_encoding(Encoding::UTF_8)).transform_values do |value|
          value.is_a?(Hash) && value["base64"].is_a?(String) ? value["base64"].unpack1("m") : value
        end
      rescue JSON::ParserError
        raise connection.strange("a row that is no JSON")
      end

      def value(connection, line)
        words = line.split(" ")
        raise connection.refused(line) unless words[0] == "VA" && words[1]&.match?(/\A\d+\z/n)

        item = Item.new(connection.block(words[1].to_i))
        say(item, words)
        item
      end

      # A hundred keys are a hundred of these, so no text is made where a byte tells.
      def say(item, words)
        at = 1
        while (word = words[at += 1])
          case word.getbyte(0)
          when 0x66 then item.flags = word.byteslice(1..).to_i
          when 0x63 then item.cas = word.byteslice(1..)
          when 0x4f then item.place = word.byteslice(1..).to_i
          when 0x57 then item.won = true
          when 0x58 then item.stale = true
          end
        end
      end
    end
  end
end
