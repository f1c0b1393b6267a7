"use strict";

const { Client } = require("./client.js");
const { RefusedError, StatementError } = require("./errors.js");
const limits = require("./limits.js");
const { Memory } = require("./memory.js");
const protocol = require("./protocol.js");
const { Removals } = require("./removals.js");
const { after, text } = require("./text.js");

/** Flags of a row that is only the place of a value. */
const PLACE = 32;

/** A table of the daemon whose rows are named by a text: it is made where it is missing, and its rows are read and removed. */
class Rows {
  /**
   * @param shape `key`, `value`: the names of these columns; `columns`: all of them as a statement defines them;
   *   `index`: what is indexed, and how; `options`: those of the table; `pending`: removals that are kept at most
   */
  constructor(connection, name, options, shape) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) throw new TypeError(`'${name}' is no name of a table`);
    for (const option of Object.keys(options)) {
      if (!/^[a-z_]+$/.test(option)) throw new TypeError(`'${option}' is no option of a table`);
    }
    this.name = name;
    this.prefix = `${name}:`;
    this.shape = shape;
    const { sharedMemory = false, ...asked } = typeof connection === "string" ? { location: connection } : connection;
    this.memory = sharedMemory === false ? null : new Memory(sharedMemory);
    this.own = { prefix: this.prefix, value: shape.value, ...shape.options, ...(this.memory && { shared_memory: true }) };
    this.options = options;
    this.client = new Client(asked, (opened) => this.ensure(opened));
    this.removals = new Removals((statement, parameters) => this.changed(statement, parameters), `DELETE FROM "${name}"`, shape.pending);
  }

  // The table.

  statements() {
    const literal = (value) =>
      typeof value === "boolean" ? (value ? "on" : "off") : typeof value === "number" ? value : `'${String(value).replaceAll("'", "''")}'`;
    const options = Object.entries({ ...this.own, ...this.options }).map(([name, value]) => `${name} = ${literal(value)}`);
    const { columns, index } = this.shape;
    return [
      `CREATE TABLE IF NOT EXISTS "${this.name}" (${columns}) WITH (${options.join(", ")})`,
      `CREATE INDEX IF NOT EXISTS "${this.name}_${index.column}" ON "${this.name}" USING ${index.using} (${index.column})`,
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
    const wanted = ["prefix", "value", "tags"].filter((option) => option in this.own).map((option) => `${option}=${this.own[option]}`);
    const missing = wanted.filter((option) => !have.includes(option));
    if (missing.length > 0) throw new RefusedError(`the table ${this.name} is not of this cache, it lacks ${missing.join(", ")}`);
  }

  /** Runs a statement that does the same when it runs twice. If the table is gone, it is made, and the statement runs again. */
  async sql(statement, parameters = []) {
    const run = () => this.client.ask(protocol.statement(statement, parameters), protocol.rows);
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof StatementError && error.saysNoTable)) throw error;
    }
    await this.client.attempt((connection) => this.ensure(connection));
    return run();
  }

  async changed(statement, parameters = []) {
    const result = await this.sql(statement, parameters);
    return typeof result === "number" ? result : result.length;
  }

  async count() {
    return (await this.sql(`SELECT count(*) AS n FROM "${this.name}"`))[0].n;
  }

  // Rows by key.

  /** The key as meta commands send it, and its flag; null if it is too long for them. */
  wire(key) {
    const name = this.prefix + text(key);
    return key !== "" && Buffer.byteLength(name) <= limits.KEY ? protocol.named(name) : null;
  }

  /** The bytes of a row and its flags; undefined if it is missing, stale or the place of a value that is being made. */
  async item(key) {
    const name = this.wire(key);
    const near = name === null ? undefined : this.memory?.look(this.prefix + text(key));
    const item = near !== undefined ? near : name === null ? await this.row(key) : await this.client.ask(`mg ${name[0]}${name[1]} v f c\r\n`, protocol.item);
    // Who only reads leaves it to others to make the value again.
    if (item?.won) await this.leave(key, item.cas);
    return item === null || item.stale || item.flags === PLACE ? undefined : item;
  }

  /** Leaves the claim of a version to the next who asks: its place goes, and a value that is there may be made again. */
  async leave(key, cas) {
    const version = `WHERE ${this.shape.key} = ? AND _cas = CAST(? AS BIGINT)`;
    const place = await this.changed(`DELETE FROM "${this.name}" ${version} AND _flags = ${PLACE}`, [text(key), cas]);
    if (place === 0) await this.sql(`UPDATE "${this.name}" SET _leased = FALSE ${version}`, [text(key), cas]);
  }

  /** A row whose key is too long for memcached's protocol; null if it is missing. */
  async row(key) {
    const { key: column, value } = this.shape;
    const columns = `${value} AS data, _flags AS flags, CAST(_cas AS TEXT) AS cas, _stale AS stale`;
    const rows = await this.sql(`SELECT ${columns} FROM "${this.name}" WHERE ${column} = ?`, [text(key)]);
    if (rows.length === 0) return null;
    const [{ data, flags, cas, stale }] = rows;
    return { data: Buffer.from(data), flags, cas, stale: Boolean(stale), won: false };
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

  /** Gives a row a new deadline, in milliseconds; whether it is there. */
  async touch(key, ttl) {
    const name = this.wire(key);
    if (name !== null) return this.client.ask(`mg ${name[0]}${name[1]} T${this.exptime(ttl)}\r\n`, protocol.done);
    return (await this.changed(`UPDATE "${this.name}" SET _ttl = ? WHERE ${this.shape.key} = ?`, [seconds(ttl), text(key)])) > 0;
  }

  /** A page of rows whose key begins so, behind a key: their key, data and flags. */
  page(prefix, last, what) {
    const { key, value } = this.shape;
    const begin = text(prefix);
    const end = begin === "" ? null : after(begin);
    const more = end === null ? "" : ` AND ${key} < ?`;
    const columns = what === "keys" ? key : `${key} AS key, ${value} AS data, _flags AS flags`;
    return this.sql(
      `SELECT ${columns} FROM "${this.name}" WHERE ${key} ${last === null ? ">=" : ">"} ?${more} AND NOT _stale AND _flags <> ${PLACE} ORDER BY ${key} LIMIT ${limits.PAGE}`,
      end === null ? [last ?? begin] : [last ?? begin, end],
    );
  }

  // Removals.

  ofKeys(keys) {
    return [`DELETE FROM "${this.name}" WHERE ${this.shape.key} IN (${keys.map(() => "?").join(", ")})`, keys.map(text)];
  }

  /** Removes rows; how many. */
  deleteKeys(keys) {
    return this.removals.send(...this.ofKeys(keys));
  }

  /** Removes all rows whose key begins so; how many. */
  deletePrefix(prefix) {
    if (prefix === "") return this.removals.send(`DELETE FROM "${this.name}"`, []);
    const [begin, end] = [text(prefix), after(text(prefix))];
    const { key } = this.shape;
    const more = end === null ? ["", [begin]] : [` AND ${key} < ?`, [begin, end]];
    return this.removals.send(`DELETE FROM "${this.name}" WHERE ${key} >= ?${more[0]}`, more[1]);
  }
}

/** The deadline that a statement is given: NULL for none. */
function seconds(ttl) {
  return ttl === undefined ? null : Math.min(Math.ceil(ttl / 1000), limits.TTL);
}

module.exports = { Rows, PLACE, seconds };
