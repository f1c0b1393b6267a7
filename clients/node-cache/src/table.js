"use strict";

const { Client } = require("./client.js");
const { RefusedError, StatementError, UnavailableError } = require("./errors.js");
const limits = require("./limits.js");
const protocol = require("./protocol.js");
const { Removals } = require("./removals.js");

/** Flags: text, and bytes without a flag. */
const TEXT = 16;

/** NUL and half a surrogate pair are no text of a database. ESC marks them, and so itself. */
function text(value) {
  return value.replace(/[\0\x1b]|\p{Surrogate}/gu, (letter) => `\x1b${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The first text behind all those that begin with a prefix; null if there is none. */
function after(prefix) {
  const letters = Array.from(prefix);
  while (letters.length > 0) {
    const code = letters.pop().codePointAt(0);
    // What surrogates would be is no letter.
    if (code < 0x10ffff) return letters.join("") + String.fromCodePoint(code + 1 === 0xd800 ? 0xe000 : code + 1);
  }
  return null;
}

/** The rows of a cache: keys, values, tags. */
class Table {
  constructor(connection, name, options = {}) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) throw new TypeError(`'${name}' is no name of a table`);
    for (const option of Object.keys(options)) {
      if (!/^[a-z_]+$/.test(option)) throw new TypeError(`'${option}' is no option of a table`);
    }
    this.name = name;
    this.prefix = `${name}:`;
    this.options = options;
    this.client = new Client(connection, (opened) => this.ensure(opened));
    this.removals = new Removals((statement, parameters) => this.changed(statement, parameters), `DELETE FROM "${name}"`);
  }

  // The table.

  statements() {
    const literal = (value) =>
      typeof value === "boolean" ? (value ? "on" : "off") : typeof value === "number" ? value : `'${String(value).replaceAll("'", "''")}'`;
    const all = { prefix: this.prefix, value: "body", tags: "tags", ordered: true, ...this.options };
    const options = Object.entries(all).map(([name, value]) => `${name} = ${literal(value)}`);
    return [
      `CREATE TABLE IF NOT EXISTS "${this.name}" (key TEXT PRIMARY KEY, body ANY, tags TEXT[]) WITH (${options.join(", ")})`,
      `CREATE INDEX IF NOT EXISTS "${this.name}_tags" ON "${this.name}" USING gin (tags)`,
    ];
  }

  /** Makes sure of the table on a new connection. Without it memcached's commands would go to the built-in one. */
  async ensure(connection) {
    const sql = (statement, ...parameters) => connection.ask(protocol.statement(statement, parameters), protocol.rows());
    const found = await sql("SELECT options FROM sqlcached_tables WHERE table_name = ?", this.name);
    if (found.length === 0) {
      for (const statement of this.statements()) await sql(statement);
      return;
    }
    const have = JSON.parse(found[0].options ?? "[]");
    const missing = [`prefix=${this.prefix}`, "value=body", "tags=tags"].filter((option) => !have.includes(option));
    if (missing.length > 0) throw new RefusedError(`the table ${this.name} is not of this cache, it lacks ${missing.join(", ")}`);
  }

  /** Runs a statement. If the table is gone, it is made, and the statement runs again. */
  async sql(statement, parameters = []) {
    try {
      return await this.client.sql(statement, ...parameters);
    } catch (error) {
      if (!(error instanceof StatementError && error.saysNoTable)) throw error;
    }
    await this.ensure(await this.client.connection());
    return this.client.sql(statement, ...parameters);
  }

  async changed(statement, parameters = []) {
    const result = await this.sql(statement, parameters);
    return typeof result === "number" ? result : result.length;
  }

  // Rows by key.

  /** The key as meta commands send it, and its flag; null if it is too long for them. */
  wire(key) {
    const name = this.prefix + text(key);
    return key !== "" && Buffer.byteLength(name) <= limits.KEY ? protocol.named(name) : null;
  }

  /** The value of a row, as text or bytes; undefined if it is missing or stale, or may not be read. */
  async get(key) {
    if (!(await this.removals.areSent())) return undefined;
    const name = this.wire(key);
    if (name === null) {
      const rows = await this.sql(`SELECT body, _flags FROM "${this.name}" WHERE key = ? AND NOT _stale`, [text(key)]);
      return rows.length === 0 ? undefined : valueOf(rows[0]);
    }
    const item = await this.client.ask(`mg ${name[0]}${name[1]} v f\r\n`, protocol.item);
    if (item === null || item.stale) return undefined;
    return item.flags === TEXT ? item.data.toString() : Buffer.from(item.data);
  }

  /** Stores a row, without a deadline if `ttl` (milliseconds) is undefined. */
  async set(key, value, ttl, tags = []) {
    const isText = typeof value === "string";
    const data = isText ? Buffer.from(value) : value;
    try {
      const command = this.storing(key, data, isText, ttl, tags);
      if (command === null) return (await this.put(key, value, ttl, tags)) > 0;
      return await this.client.ask(Buffer.concat([Buffer.from(command), data, Buffer.from("\r\n")]), protocol.done);
    } catch (error) {
      // An old row must not be read any more.
      if (error instanceof UnavailableError) this.removals.keep(...this.ofKeys([key]));
      throw error;
    }
  }

  /** The line of the command that stores a row; null if it goes by a statement only. */
  storing(key, data, isText, ttl, tags) {
    const name = this.wire(key);
    if (name === null || tags.some((tag) => tag === "" || /[\x00-\x20\x7f,]|\p{Surrogate}/u.test(tag))) return null;
    const list = tags.length === 0 ? "" : ` L${tags.join(",")}`;
    const line = `ms ${name[0]} ${data.length}${name[1]} F${isText ? TEXT : 0} T${this.exptime(ttl)}${list}\r\n`;
    return Buffer.byteLength(line) <= limits.LINE ? line : null;
  }

  put(key, value, ttl, tags) {
    const deadline = ttl === undefined ? null : Math.min(Math.ceil(ttl / 1000), limits.TTL);
    const flags = typeof value === "string" ? TEXT : 0;
    const list = tags.length === 0 ? null : tags.map(text);
    const isWhole = typeof value === "string" && !value.includes("\0") && !/\p{Surrogate}/u.test(value);
    return this.changed(`REPLACE INTO "${this.name}" (key, body, tags, _flags, _ttl) VALUES (?, ?, ?, ?, ?)`, [
      text(key),
      isWhole ? value : Buffer.from(value),
      list,
      flags,
      deadline,
    ]);
  }

  /** memcached's number for milliseconds to live. A part of a second is not rounded down to none. */
  exptime(ttl) {
    const never = "ttl" in this.options ? limits.FOREVER : 0;
    if (ttl === undefined) return never;
    const seconds = Math.ceil(ttl / 1000);
    if (seconds <= limits.MONTH) return seconds;
    const now = Math.floor(Date.now() / 1000);
    // memcached's clock ends in 2038.
    return seconds >= limits.FOREVER - now ? never : seconds + now;
  }

  // Removals.

  ofKeys(keys) {
    return [`DELETE FROM "${this.name}" WHERE key IN (${keys.map(() => "?").join(", ")})`, keys.map(text)];
  }

  /** Removes a row; whether it was there. */
  async delete(key) {
    const name = this.wire(key);
    try {
      if (name !== null) return await this.client.ask(`md ${name[0]}${name[1]}\r\n`, protocol.done);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
    }
    return (await this.removals.send(...this.ofKeys([key]))) > 0;
  }

  /** Removes all rows with one of these tags; how many. With `soft` they become stale. */
  deleteTags(tags, soft = false) {
    if (tags.length === 0) return Promise.resolve(0);
    const verb = soft ? `UPDATE "${this.name}" SET _stale = TRUE` : `DELETE FROM "${this.name}"`;
    return this.removals.send(`${verb} WHERE tags && ?`, [[...new Set(tags.map(text))]]);
  }

  /** Removes all rows whose key begins so; how many. */
  deletePrefix(prefix) {
    if (prefix === "") return this.removals.send(`DELETE FROM "${this.name}"`, []);
    const [begin, end] = [text(prefix), after(text(prefix))];
    const more = end === null ? ["", [begin]] : [" AND key < ?", [begin, end]];
    return this.removals.send(`DELETE FROM "${this.name}" WHERE key >= ?${more[0]}`, more[1]);
  }

  /** A page of rows whose key begins so, behind a key. */
  async page(prefix, last) {
    if (!(await this.removals.areSent())) return [];
    const begin = text(prefix);
    const end = begin === "" ? null : after(begin);
    const more = end === null ? "" : " AND key < ?";
    const from = last === null ? ">=" : ">";
    return this.sql(
      `SELECT key, body, _flags FROM "${this.name}" WHERE key ${from} ?${more} AND NOT _stale ORDER BY key LIMIT ${limits.PAGE}`,
      end === null ? [last ?? begin] : [last ?? begin, end],
    );
  }
}

/** The key of a text of the table. */
function key(stored) {
  return stored.replace(/\x1b([0-9a-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}

/** The value of a row: its flags say whether it is text. */
function valueOf({ body, _flags: flags }) {
  return flags === TEXT ? body.toString() : Buffer.from(body);
}

module.exports = { Table, key, valueOf };
