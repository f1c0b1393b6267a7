# frozen_string_literal: true

module Sqlcached
  # Keys as the daemon has them: text. Bytes that are no text are written as ESC and two hexadecimal digits.
  module Keys
    ESCAPE = "\e"
    BEYOND = "\u{10FFFF}"

    class << self
      # The text of a key. Different keys have different texts, and what begins alike still does.
      def text(key)
        return key if key.encoding == Encoding::UTF_8 && key.valid_encoding? && !key.match?(/[\0\e]/)

        key = key.dup.force_encoding(Encoding::UTF_8)
        key.each_char.map { |char| plain?(char) ? char : escaped(char) }.join
      end

      # Whether bytes are text: UTF-8.
      def text?(data)
        return data.valid_encoding? if data.encoding == Encoding::UTF_8
        return true if data.ascii_only?

        data.dup.force_encoding(Encoding::UTF_8).valid_encoding?
      end

      # Bytes of an answer to be shown to people.
      def as_text(data)
        data.dup.force_encoding(Encoding::UTF_8).scrub
      end

      # The first text behind all those that begin with a prefix; nil if there is none.
      def after(prefix)
        chars = prefix.chars
        while (char = chars.pop)
          next if char == BEYOND

          # What surrogates would be is no character.
          code = char.ord + 1
          return chars.join + [code == 0xD800 ? 0xE000 : code].pack("U")
        end
        nil
      end

      private

      def plain?(char)
        char.valid_encoding? && char != "\0" && char != ESCAPE
      end

      def escaped(char)
        char.bytes.map { |byte| format("\e%02x", byte) }.join
      end
    end
  end
end
