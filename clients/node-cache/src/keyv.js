"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const { EventEmitter } = require("node:events");
const { SqlcachedError } = require("./errors.js");
const { Table, key: keyOf, valueOf } = require("./table.js");

/** Milliseconds between two errors of a daemon that is away, which fails thousands of times a second. */
const TELL_EVERY = 60_000;

/**
 * A store for Keyv, and so for cache-manager and cacheable. While the daemon is away a read is a miss and a write is
 * false; an event `error` tells it, at most once a minute.
 */
class KeyvSqlcached extends EventEmitter {
  /**
   * @param options a location, or options: those of the connection, `table`, and `options` of the table
   */
  constructor(options = {}) {
    super();
    const { table = "keyv", options: ofTable = {}, ...connection } = typeof options === "string" ? { location: options } : options;
    this.table = new Table(connection, table, ofTable);
    // Keyv iterates over stores whose dialect it knows.
    this.opts = { dialect: "postgres", url: `sqlcached://${this.table.client.options.location}` };
    this.namespace = undefined;
    this.tags = new AsyncLocalStorage();
    this.told = -Infinity;
  }

  async get(key) {
    return this.attempt(() => this.table.get(key), undefined);
  }

  getMany(keys) {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  /** Stores a value for `ttl` milliseconds. `tags` are names by which `invalidateTags` removes it. */
  async set(key, value, ttl, tags = this.tags.getStore() ?? []) {
    const data = typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value);
    if (data === undefined) throw new TypeError(`a value of the type ${typeof value} cannot be stored`);
    // Keyv says no deadline as undefined, null or 0.
    if (typeof ttl === "number" && ttl < 0) {
      await this.delete(key);
      return true;
    }
    return this.attempt(() => this.table.set(key, data, ttl || undefined, tags), false);
  }

  setMany(entries) {
    return Promise.all(entries.map(({ key, value, ttl }) => this.set(key, value, ttl)));
  }

  async delete(key) {
    return this.attempt(() => this.table.delete(key), false);
  }

  async deleteMany(keys) {
    return (await Promise.all(keys.map((key) => this.delete(key)))).some(Boolean);
  }

  /** Removes the values of this namespace; without one it empties the table. */
  async clear() {
    await this.attempt(() => this.table.deletePrefix(this.namespace ? `${this.namespace}:` : ""), 0);
  }

  async has(key) {
    return (await this.get(key)) !== undefined;
  }

  hasMany(keys) {
    return Promise.all(keys.map((key) => this.has(key)));
  }

  /** The keys and values of a namespace. */
  async *iterator(namespace) {
    const prefix = namespace ? `${namespace}:` : "";
    for (let last = null, rows; (rows = await this.table.page(prefix, last)).length > 0; last = rows.at(-1).key) {
      for (const row of rows) yield [keyOf(row.key), valueOf(row)];
    }
  }

  disconnect() {
    return this.table.client.disconnect();
  }

  // Beyond Keyv.

  /** What is stored within `work`, by whatever library, has these tags. */
  tagged(tags, work) {
    return this.tags.run([...(this.tags.getStore() ?? []), ...tags], work);
  }

  /**
   * Removes all values with one of these tags; how many. With `soft` they become stale. If it cannot be sent, it throws:
   * then it is kept, and this process reads nothing until it got through.
   */
  invalidateTags(tags, { soft = false } = {}) {
    return this.table.deleteTags(tags, soft);
  }

  async attempt(work, answer) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SqlcachedError)) throw error;
      const now = performance.now();
      if (now - this.told >= TELL_EVERY && this.listenerCount("error") > 0) {
        this.told = now;
        this.emit("error", error);
      }
      return answer;
    }
  }
}

module.exports = { KeyvSqlcached, default: KeyvSqlcached };
