"use strict";

const { AsyncLocalStorage } = require("node:async_hooks");
const { EventEmitter } = require("node:events");
const { Notices } = require("./notices.js");
const { Table } = require("./table.js");

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
    this.notices = new Notices((error) => this.listenerCount("error") > 0 && this.emit("error", error));
  }

  async get(key) {
    return this.notices.attempt(() => this.table.get(key), undefined);
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
    return this.notices.attempt(() => this.table.set(key, data, ttl || undefined, tags), false);
  }

  setMany(entries) {
    return Promise.all(entries.map(({ key, value, ttl }) => this.set(key, value, ttl)));
  }

  async delete(key) {
    return this.notices.attempt(() => this.table.delete(key), false);
  }

  async deleteMany(keys) {
    return (await Promise.all(keys.map((key) => this.delete(key)))).some(Boolean);
  }

  /** Removes the values of this namespace; without one it empties the table. */
  async clear() {
    await this.notices.attempt(() => this.table.deletePrefix(this.namespace ? `${this.namespace}:` : ""), 0);
  }

  async has(key) {
    return (await this.get(key)) !== undefined;
  }

  hasMany(keys) {
    return Promise.all(keys.map((key) => this.has(key)));
  }

  /** The keys and values of a namespace. */
  async *iterator(namespace) {
    yield* this.table.entries(namespace ? `${namespace}:` : "");
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
}

module.exports = { KeyvSqlcached, default: KeyvSqlcached };
