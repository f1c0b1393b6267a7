"use strict";

const { UnavailableError } = require("./errors.js");
const limits = require("./limits.js");
const protocol = require("./protocol.js");
const { PLACE, Rows, seconds } = require("./rows.js");
const { original, text } = require("./text.js");

/** Flags: text, and bytes without a flag. */
const TEXT = 16;

const SHAPE = {
  key: "key",
  value: "body",
  columns: "key TEXT PRIMARY KEY, body ANY, tags TEXT[]",
  index: { column: "tags", using: "gin" },
  options: { tags: "tags", ordered: true },
};

/** The rows of a cache: keys, values, tags. */
class Table extends Rows {
  constructor(connection, name, options = {}) {
    super(connection, name, options, SHAPE);
  }

  // Rows by key.

  /** The value of a row, as text or bytes; undefined if it is missing or stale, or may not be read. */
  async get(key) {
    if (!(this.removals.isEmpty || (await this.removals.areSent()))) return undefined;
    const item = await this.item(key);
    return item === undefined ? undefined : valueOf(item);
  }

  /** Stores a row, without a deadline if `ttl` (milliseconds) is undefined. `flags` tell what its value is. */
  async set(key, value, ttl, tags = [], flags = typeof value === "string" ? TEXT : 0) {
    try {
      const command = this.storing(key, value, flags, ttl, tags);
      if (command === null) return (await this.put(key, value, ttl, tags, flags)) > 0;
      return await this.client.ask(protocol.storing(command, value), protocol.done);
    } catch (error) {
      // An old row must not be read any more.
      if (error instanceof UnavailableError) this.removals.keep(...this.ofKeys([key]));
      throw error;
    }
  }

  // Places of values that are being made.

  /** All that the daemon says of a row; null if it is missing. `won`: who asked is to make a stale value again. */
  async look(key) {
    const name = this.wire(key);
    return name === null ? this.row(key) : this.client.ask(`mg ${name[0]}${name[1]} v f c\r\n`, protocol.item);
  }

  /**
   * Takes the place of a missing row together with its tags; its version, or null if somebody was there. `whose` is what the
   * place has for a value: if the answer is lost, one finds that it is one's own.
   */
  async reserve(key, tags, whose) {
    const command = this.storing(key, whose, PLACE, limits.LEASE * 1_000, tags, " ME c");
    if (command !== null) return this.client.ask(`${command}${whose}\r\n`, protocol.version);
    await this.sql(
      `INSERT INTO "${this.name}" (key, body, tags, _flags, _ttl) VALUES (?, ?, ?, ${PLACE}, ${limits.LEASE}) ON CONFLICT (key) DO NOTHING`,
      [text(key), whose, tags.map(text)],
    );
    const row = await this.row(key);
    return row !== null && isPlaceOf(row, whose) ? row.cas : null;
  }

  /** Stores a row if it is still this version: it was not removed or written since. Whether it was stored. */
  async fill(key, value, ttl, tags, flags, cas) {
    const command = this.storing(key, value, flags, ttl, tags, ` C${cas}`);
    if (command !== null) return this.client.ask(protocol.storing(command, value), protocol.done);
    const changed = await this.changed(
      `UPDATE "${this.name}" SET body = ?, tags = ?, _flags = ?, _ttl = ? WHERE key = ? AND _cas = CAST(? AS BIGINT)`,
      [Buffer.from(value), tags.map(text), flags, seconds(ttl), text(key), cas],
    );
    return changed > 0;
  }

  /** The line of the command that stores a row; null if it goes by a statement only. */
  storing(key, value, flags, ttl, tags, more = "") {
    const name = this.wire(key);
    if (name === null || tags.some((tag) => tag === "" || /[\x00-\x20\x7f,]|\p{Surrogate}/u.test(tag))) return null;
    const list = tags.length === 0 ? "" : ` L${tags.join(",")}`;
    const line = `ms ${name[0]} ${Buffer.byteLength(value)}${name[1]} F${flags} T${this.exptime(ttl)}${more}${list}\r\n`;
    return Buffer.byteLength(line) <= limits.LINE ? line : null;
  }

  put(key, value, ttl, tags, flags) {
    const list = tags.length === 0 ? null : tags.map(text);
    const isWhole = typeof value === "string" && !value.includes("\0") && !/\p{Surrogate}/u.test(value);
    return this.changed(`REPLACE INTO "${this.name}" (key, body, tags, _flags, _ttl) VALUES (?, ?, ?, ?, ?)`, [
      text(key),
      isWhole ? value : Buffer.from(value),
      list,
      flags,
      seconds(ttl),
    ]);
  }

  /** The keys and values that begin so, page after page. */
  async *entries(prefix) {
    if (!(await this.removals.areSent())) return;
    for (let last = null, rows; (rows = await this.page(prefix, last)).length > 0; last = rows.at(-1).key) {
      for (const row of rows) yield [original(row.key), valueOf(row)];
    }
  }

  /** When a row was written, its bytes and the seconds that it has left; nothing of a row that is missing. */
  async about(key) {
    if (!(await this.removals.areSent())) return {};
    const found = await this.sql(
      `SELECT _age AS age, _ttl AS ttl, octet_length(body) AS size FROM "${this.name}" WHERE key = ? AND NOT _stale`,
      [text(key)],
    );
    if (found.length === 0) return {};
    const [{ age, ttl, size }] = found;
    return { mtime: new Date(Date.now() - age * 1_000), size, ...(ttl === null ? {} : { ttl }) };
  }

  /** The keys that begin so. */
  async keys(prefix) {
    const found = [];
    if (!(await this.removals.areSent())) return found;
    for (let last = null, rows; (rows = await this.page(prefix, last, "keys")).length > 0; last = rows.at(-1).key) {
      for (const row of rows) found.push(original(row.key));
    }
    return found;
  }

  // Removals.

  /** Removes a row; whether it was there. */
  async delete(key) {
    const name = this.wire(key);
    try {
      if (name !== null) return await this.client.ask(`md ${name[0]}${name[1]}\r\n`, protocol.done);
    } catch (error) {
      if (error instanceof UnavailableError) this.removals.keep(...this.ofKeys([key]));
      throw error;
    }
    return (await this.deleteKeys([key])) > 0;
  }

  /** Removes all rows with one of these tags; how many. With `soft` they become stale. */
  deleteTags(tags, soft = false) {
    if (tags.length === 0) return Promise.resolve(0);
    const verb = soft ? `UPDATE "${this.name}" SET _stale = TRUE` : `DELETE FROM "${this.name}"`;
    return this.removals.send(`${verb} WHERE tags && ?`, [[...new Set(tags.map(text))]]);
  }
}

/** Whether a row is the place that somebody took. */
function isPlaceOf({ data, flags }, whose) {
  return flags === PLACE && data.toString() === whose;
}

/** The value of a row: its flags say whether it is text. */
function valueOf({ data, flags }) {
  return flags === TEXT ? data.toString() : Buffer.from(data);
}

module.exports = { Table, TEXT, isPlaceOf };
