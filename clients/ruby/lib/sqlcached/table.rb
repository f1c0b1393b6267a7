# frozen_string_literal: true

require "securerandom"

module Sqlcached
  # A table of the daemon as the cache and the sessions use it: rows by key, rows by tag.
  #
  # Rows whose key fits memcached's protocol go by meta commands, longer ones and unusual tags by statements. Nothing is
  # read from the table while a removal waits that could not be sent.
  class Table
    attr_reader :definition, :options, :notices

    # Values of this process that did not load. They were removed.
    attr_reader :broken

    # `expendable`: whether a row may be removed because a write failed, and all rows if there are too many removals.
    def initialize(options, definition, expendable: true)
      @options = Options.of(options)
      @definition = definition
      @expendable = expendable
      @notices = Notices.new(@options)
      @client = Client.new(@options) { |connection| definition.ensure(connection) }
      @statements = Statements.new(@client, definition)
      @removals = Removals.new(@statements, definition, @options, @notices, expendable)
      @wire = Wire.new(definition)
      @broken = 0
    end

    # Whether rows may be read: what could not be removed before is removed now.
    def readable?
      @removals.sent?
    end

    # What the block returns, or an answer in its place if the daemon cannot be asked; then a warning is logged.
    def attempt(answer)
      yield
    rescue Error => why
      notices.warn("table #{definition.name}", why)
      answer
    end

    # Removes a value that did not load. `cas` is its version; without it the row goes, whatever it is by now.
    def drop(key, cas, why)
      @broken += 1
      notices.warn("table #{definition.name}: a value did not load and was removed", why)
      attempt(false) { cas ? delete_version(key, cas) : delete(key) }
    end

    # Runs a statement. If the table is gone, it is made, and the statement runs again.
    def sql(text, parameters = [])
      @statements.run(text, parameters)
    end

    # The row; nil if it is missing, stale or reserved, or may not be read.
    def get(key)
      item = readable? ? item(key) : nil
      return nil unless item

      give_back(key, item) if item.won
      item.fresh? ? item : nil
    end

    # All that the daemon says of a row. `refresh`: seconds before the deadline in which one caller wins.
    def item(key, refresh = 0)
      name = @wire.key(key)
      return row(key) unless name

      request = "mg #{name} v f c#{" R#{refresh}" if refresh.positive?}\r\n"
      @client.run do |connection|
        connection.send(request)
        Protocol.item(connection)
      end
    end

    # The rows that are there, by key, in few round trips.
    def get_many(keys)
      return {} unless readable?

      found = {}
      keys.each_slice(Limits::KEYS) { |part| look_up(part, found) }
      found
    end

    # Stores a row, without a deadline if `ttl` is nil; with `mode: "E"` only if it is missing, with `mode: "R"` only if
    # it exists, with `cas` only in the place of that version. The version that was stored, or nil.
    def set(key, data, flags, ttl, tags = [], mode: "S", cas: nil)
      written(key) { set_version(new_version, key, data, flags, ttl, tags, mode, cas) }
    end

    # Stores rows in few round trips. `rows` has data, flags and tags by key, and the version to replace or nil; the keys
    # that were refused.
    def set_many(rows, ttl)
      batch = []
      bytes = 0
      refused = []
      rows.each do |key, (data, flags, tags, cas)|
        request = @wire.storing(key, data, flags, ttl, tags, "#{" C#{cas}" if cas} q O#{batch.size}")
        next refused.concat(stored_singly([key], rows, ttl)) unless request

        batch << [key, request]
        bytes += request.bytesize
        next if batch.size < Limits::BATCH && bytes < Limits::BATCH_BYTES

        refused.concat(store(batch, rows, ttl))
        batch = []
        bytes = 0
      end
      refused.concat(store(batch, rows, ttl))
    end

    # Takes the places of missing rows, with their tags; the versions by key.
    def reserve_many(keys, tags, seconds)
      keys.each_slice(Limits::KEYS).reduce({}) do |versions, part|
        versions.merge(reserve_batch(part.to_h { |key| [key, new_version] }, tags, seconds))
      end
    end

    # Takes the place of a missing row together with its tags, or of one version of it. The version of the place, or nil.
    def reserve(key, tags, seconds, cas = nil)
      version = set_version(new_version, key, "", 0, seconds, tags, cas ? "S" : "E", cas)
      return version if version.nil? || @wire.key(key)

      # What was removed since then is no matter: nothing was computed yet. What was stored since then is read.
      item = item(key)
      item&.reserved? ? item.cas : nil
    end

    # Removes a row; whether it was there.
    def delete(key)
      name = @wire.key(key) or return @removals.send(*@removals.of_keys([key])).to_i.positive?

      @client.run do |connection|
        connection.send("md #{name}\r\n")
        Protocol.done?(connection, connection.line)
      end
    rescue UnavailableError
      @removals.send(*@removals.of_keys([key])).to_i.positive?
    end

    # Removes one version of a row; whether it was there. A place that was reserved expires by itself.
    def delete_version(key, cas)
      if (name = @wire.key(key))
        return @client.run do |connection|
          connection.send("md #{name} C#{cas}\r\n")
          Protocol.done?(connection, connection.line)
        end
      end
      text, parameters = @removals.of_keys([key])
      @statements.changed("#{text} AND _cas = CAST(? AS BIGINT)", [*parameters, cas]).positive?
    end

    # Removes rows; how many there were, or nil if it waits.
    def delete_many(keys)
      counts = keys.each_slice(Limits::BATCH).map { |part| delete_batch(part) }
      counts.include?(nil) ? nil : counts.sum
    end

    # Gives a row a new deadline; whether it exists.
    def touch(key, ttl)
      written(key) do
        name = @wire.key(key)
        next touch_row(key, ttl) unless name

        @client.run do |connection|
          connection.send("mg #{name} T#{@wire.exptime(ttl)}\r\n")
          Protocol.done?(connection, connection.line)
        end
      end
    end

    # Adds to a number; the result. A missing one begins at 0 with these tags and this time to live. What is no number,
    # or may not be read, is nil. The row keeps its deadline and its tags.
    def add(key, delta, ttl, tags = [])
      return nil unless readable?

      name = @wire.key(key)
      number = name && delta.positive? && added(key, name, delta)
      return Integer(number, 10) if number

      Limits::ATTEMPTS.times do
        result = add_to_version(key, delta, ttl, tags)
        return result unless result == :again
      end
      raise RefusedError, "other clients change the number all the time"
    end

    # Removes all rows with one of these tags; with `soft` they become stale. How many, or nil if it waits.
    def delete_tags(tags, soft: false)
      return 0 if tags.empty?

      verb = soft ? "UPDATE #{definition.quoted} SET _stale = TRUE" : "DELETE FROM #{definition.quoted}"
      @removals.send("#{verb} WHERE tags && ?", [tags.map { |tag| Keys.text(tag) }.uniq])
    end

    # Removes all rows whose key begins so.
    def delete_prefix(prefix)
      from = Keys.text(prefix)
      to = Keys.after(from)
      to ? delete_rows("key >= ? AND key < ?", [from, to]) : delete_rows("key >= ?", [from])
    end

    # Removes the rows of a condition; how many, or nil if it waits.
    def delete_rows(condition, parameters)
      @removals.send("DELETE FROM #{definition.quoted} WHERE #{condition}", parameters)
    end

    # Empties the table, and no other, in one step. nil if it waits. `TRUNCATE` would need a right that few roles have.
    def clear
      @removals.send("DELETE FROM #{definition.quoted}", [])
    end

    # Leaves the claim to compute a version again to the next who reads it.
    def leave(key, cas)
      text = "UPDATE #{definition.quoted} SET _leased = FALSE WHERE key = ? AND _cas = CAST(? AS BIGINT)"
      @statements.changed(text, [Keys.text(key), cas])
    end

    # Closes the connections, which open again by themselves.
    def close
      @client.close
    end

    private

    # The daemon asks one reader to compute a stale value again. Who only reads leaves that to others.
    def give_back(key, item)
      return unless item

      item.reserved? ? delete_version(key, item.cas) : leave(key, item.cas)
    end

    # A write may have failed after an old row was there, which must not be read any more.
    def written(key)
      yield
    rescue UnavailableError => why
      @removals.keep(*@removals.of_keys([key]), why) if @expendable
      raise
    end

    # As `set`, with the version that the row is to have. The version, or nil.
    def set_version(version, key, data, flags, ttl, tags, mode, cas)
      condition = "#{" M#{mode}" unless mode == "S"}#{" C#{cas}" if cas} E#{version}"
      request = @wire.storing(key, data, flags, ttl, tags, condition)
      return put(key, data, flags, ttl, tags, mode, cas) ? version : nil unless request

      done = once(key, version) do |connection|
        connection.send(request)
        Protocol.done?(connection, connection.line)
      end
      done ? version : nil
    end

    # Numbers of 62 bits: SQL's have a sign.
    def new_version
      SecureRandom.random_number(1 << 62) + 1
    end

    # Sends a command that must not be executed twice. If its answer was lost, the row's version tells whether it was
    # executed.
    def once(key, version, &work)
      @client.run(again: false, &work)
    rescue UnavailableError
      item(key)&.cas == version.to_s || @client.run(again: false, &work)
    end

    # A row whose key is too long for memcached's protocol.
    def row(key)
      text = "SELECT body, _flags, CAST(_cas AS TEXT) AS cas, _stale FROM #{definition.quoted} WHERE key = ?"
      row = sql(text, [Keys.text(key)]).first or return nil

      stale = [true, 1, "t"].include?(row["_stale"])
      Item.new(row["body"].to_s, flags: row["_flags"].to_i, cas: row["cas"].to_s, stale: stale)
    end

    def look_up(keys, found)
      names = keys.map { |key| @wire.key(key) }
      request = +""
      names.each_with_index { |name, place| request << "mg #{name} v f q O#{place}\r\n" if name }
      unless request.empty?
        items = @client.run do |connection|
          connection.send(request << "mn\r\n")
          Protocol.items(connection)
        end
        items.each do |place, item|
          give_back(keys[place], item(keys[place])) if item.won
          found[keys[place]] = item if item.fresh?
        end
      end
      keys.each_with_index do |key, place|
        next if names[place]

        item = row(key)
        found[key] = item if item&.fresh?
      end
    end

    # Sends a batch of quiet commands; their answers by place.
    def batch(requests)
      lines = @client.run(again: false) do |connection|
        connection.send(requests.join << "mn\r\n")
        Protocol.refusals(connection)
      end
      lines.to_h { |line| [line[/ O(\d+)/n, 1]&.to_i, line] }
    end

    # If the answer of the batch was lost, each row tells whose it is.
    def reserve_batch(wanted, tags, seconds)
      requests = wanted.keys.each_with_index.map do |key, place|
        @wire.storing(key, "", 0, seconds, tags, " ME q O#{place} E#{wanted[key]}")
      end
      return {} if requests.compact.empty?

      refused = batch(requests.compact)
      wanted.select.with_index { |_, place| requests[place] && !refused.key?(place) && !refused.key?(nil) }
    rescue UnavailableError
      wanted.select do |key, version|
        set_version(version, key, "", 0, seconds, tags, "E", nil) || item(key)&.cas == version.to_s
      end
    end

    # Those of a batch that were refused. An error does not name its command, so then all are stored again, one by one.
    def store(batch, rows, ttl)
      return [] if batch.empty?

      keys = batch.map(&:first)
      refused = batch(batch.map(&:last))
      return stored_singly(keys, rows, ttl) if refused.key?(nil)

      refused.map { |place, _| keys[place] }
    rescue UnavailableError
      stored_singly(keys, rows, ttl)
    end

    def stored_singly(keys, rows, ttl)
      keys.reject do |key|
        data, flags, tags, cas = rows[key]
        set(key, data, flags, ttl, tags, cas: cas)
      rescue RefusedError => why
        notices.warn("table #{definition.name}: a value was refused", why)
        false
      end
    end

    def delete_batch(keys)
      names = keys.map { |key| @wire.key(key) }
      return @removals.send(*@removals.of_keys(keys)) if names.include?(nil)

      lines = @client.run do |connection|
        connection.send(names.map { |name| "md #{name} q\r\n" }.join << "mn\r\n")
        Protocol.refusals(connection)
      end
      keys.size - lines.count { |line| line.start_with?("NF") }
    rescue UnavailableError
      @removals.send(*@removals.of_keys(keys))
    end

    def touch_row(key, ttl)
      text = "UPDATE #{definition.quoted} SET _ttl = ? WHERE key = ?"
      @statements.changed(text, [@wire.deadline(ttl), Keys.text(key)]).positive?
    end

    # What the daemon adds by itself, here to one version if it is given: the number, or nil if it does not. It stops at 0,
    # and knows no sign.
    def added(key, name, delta, cas = nil)
      version = new_version
      request = "ma #{name} M#{delta.negative? ? "D" : "I"} D#{delta.abs}#{" C#{cas}" if cas} v E#{version}\r\n"
      result = once(key, version) do |connection|
        connection.send(request)
        line = connection.line
        next nil if %w[NF EX].include?(line)
        raise connection.refused(line) unless line.start_with?("VA ")

        connection.block(line.split(" ")[1].to_i)
      end
      result == true ? item(key)&.data : result
    rescue RefusedError
      nil
    end

    # Adds to the version that is there, or makes the number: the result, nil for what is no number, or `:again`.
    def add_to_version(key, delta, ttl, tags)
      item = item(key)
      if item.nil? || item.reserved?
        stored = set_version(new_version, key, delta.to_s, Item::INTEGER, ttl, tags, item ? "S" : "E", item&.cas)
        return stored ? delta : :again
      end
      return nil unless item.data.match?(/\A\s*-?\d+\s*\z/n)

      before = item.data.strip.to_i
      number = before + delta
      name = @wire.key(key)
      within = name && [before, delta.abs, number].all? { |each| each.between?(0, Limits::NUMBER) }
      return added(key, name, delta, item.cas) ? number : :again if within

      text = "UPDATE #{definition.quoted} SET body = ?, _flags = ? WHERE key = ? AND _cas = CAST(? AS BIGINT)"
      parameters = [number.to_s, Item::INTEGER, Keys.text(key), item.cas]
      @statements.changed(text, parameters, again: false).positive? ? number : :again
    end

    # As `set`, by a statement.
    def put(key, data, flags, ttl, tags, mode, cas)
      table = definition.quoted
      # Bytes stay bytes, even if they could be text.
      body = data.empty? || flags != Item::BYTES ? data : data.b
      list = tags.empty? ? nil : tags.map { |tag| Keys.text(tag) }
      values = [body, list, flags, @wire.deadline(ttl), Keys.text(key)]
      columns = "(body, tags, _flags, _ttl, key) VALUES (?, ?, ?, ?, ?)"
      return @statements.changed("REPLACE INTO #{table} #{columns}", values).positive? if mode == "S" && cas.nil?
      if mode == "E"
        return @statements.changed("INSERT INTO #{table} #{columns} ON CONFLICT DO NOTHING", values, again: false).positive?
      end

      text = "UPDATE #{table} SET body = ?, tags = ?, _flags = ?, _ttl = ?, _stale = FALSE WHERE key = ?"
      text, values = ["#{text} AND _cas = CAST(? AS BIGINT)", [*values, cas]] if cas
      @statements.changed(text, values, again: false).positive?
    end
  end
end
