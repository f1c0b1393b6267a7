# frozen_string_literal: true

module Sqlcached
  # How the rows of a table are sent: keys, deadlines and tags as memcached's commands have them.
  class Wire
    def initialize(definition)
      @prefix = definition.prefix
      @never = definition.ttl? ? Limits::FOREVER : 0
    end

    # What most keys are: they go as they are.
    PLAIN = /\A[!-~]+\z/
    private_constant :PLAIN

    # The key as meta commands send it; nil if it is too long for them.
    def key(key)
      if key.ascii_only? && key.match?(PLAIN)
        name = @prefix + key
        return name.bytesize <= Limits::KEY ? name : nil
      end
      name = "#{@prefix}#{Keys.text(key)}"
      name.bytesize <= Limits::KEY && !key.empty? ? Protocol.key(name) : nil
    end

    # The command that stores a row; nil if it goes by a statement only.
    def storing(key, data, flags, ttl, tags, more = "")
      name = key(key)
      return nil if name.nil? || !words?(tags)

      # A command that stores has the length between the key and the flags, of which one may belong to the key.
      name, form = name.split(" ", 2)
      line = "ms #{name} #{data.bytesize}#{form && " #{form}"} F#{flags} T#{exptime(ttl)}#{more}"
      line = "#{line} L#{tags.join(",")}" unless tags.empty?
      line.bytesize <= Limits::LINE ? line.b << "\r\n" << data.b << "\r\n" : nil
    end

    # A time to live as the hidden column `_ttl` takes it.
    def deadline(ttl)
      ttl && whole(ttl)
    end

    # memcached's number for a time to live.
    def exptime(ttl)
      return @never if ttl.nil?
      return -1 if ttl <= 0

      seconds = whole(ttl)
      return seconds if seconds <= Limits::MONTH

      now = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
      # memcached's clock ends in 2038.
      seconds >= Limits::FOREVER - now ? @never : seconds + now
    end

    private

    # A part of a second counts as a second: a value must not leave before its time.
    def whole(ttl)
      ttl >= Limits::TTL ? Limits::TTL : ttl.ceil.clamp(0, Limits::TTL)
    end

    # Whether tags can stand in a command: text without blanks and commas.
    def words?(tags)
      tags.all? { |tag| !tag.empty? && Keys.text?(tag) && !tag.match?(/[\x00-\x20,\x7f]/) }
    end
  end
end
