"use strict";

const { randomUUID } = require("node:crypto");
const { setTimeout: pause } = require("node:timers/promises");
const limits = require("./limits.js");
const { Notices } = require("./notices.js");
const { PLACE } = require("./rows.js");
const { Table, TEXT, isPlaceOf } = require("./table.js");

/** Flags of a value that is JSON. */
const JSON_TEXT = 17;

/**
 * Values by key with tags, without a framework. While the daemon is away a read is a miss and a write is false, with a
 * warning once a minute.
 */
class Cache {
  /** @param options a location, or options: those of the connection, `table`, `options` of the table, `onError` */
  constructor(options = {}) {
    const given = typeof options === "string" ? { location: options } : options;
    const { table = "cache", options: ofTable = {}, onError, ...connection } = given;
    this.table = new Table(connection, table, ofTable);
    this.notices = new Notices(onError);
    this.making = new Map();
  }

  /** The value; undefined if there is none. */
  async get(key) {
    const { removals } = this.table;
    const found = await this.notices.attempt(
      async () => (removals.isEmpty || (await removals.areSent()) ? this.table.item(key) : undefined),
      undefined,
    );
    return found === undefined ? undefined : this.loaded(key, found);
  }

  /** Stores text, bytes, or what JSON can hold, for `ttl` milliseconds; without it there is no deadline. */
  set(key, value, { ttl, tags = [] } = {}) {
    const [data, flags] = written(value);
    if (ttl !== undefined && ttl <= 0) return this.delete(key);
    return this.notices.attempt(() => this.table.set(key, data, ttl, tags, flags), false);
  }

  delete(key) {
    return this.notices.attempt(() => this.table.delete(key), false);
  }

  /**
   * The value, or what `make` makes of it. Of all who ask at once, in all processes, one makes it and the others wait. If it is
   * invalidated meanwhile it is returned and not stored, as it was made of what was there before.
   */
  getOrSet(key, make, options = {}) {
    const same = this.making.get(key);
    if (same !== undefined) return same;
    const made = this.found(key, make, options).finally(() => this.making.delete(key));
    this.making.set(key, made);
    return made;
  }

  /**
   * Removes all values with one of these tags; how many. With `soft` one caller of `getOrSet` makes each again, and the others
   * get the old one. If it cannot be sent, it throws: then it is kept, and this process reads nothing until it got through.
   */
  invalidateTags(tags, { soft = false } = {}) {
    return this.table.deleteTags(tags, soft);
  }

  disconnect() {
    return this.table.client.disconnect();
  }

  async found(key, make, { ttl, tags = [] }) {
    const end = performance.now() + limits.LEASE_WAIT;
    const self = randomUUID();
    for (let wait = limits.PAUSE_MIN; ; wait = Math.min(wait * 1.5, limits.PAUSE_MAX)) {
      const { item, cas, isOver } = await this.notices.attempt(() => this.look(key, tags, self), { isOver: true });
      if (item !== undefined) {
        const value = await this.loaded(key, item);
        if (value !== undefined) return value;
      }
      if (cas !== undefined) return this.filled(key, make, ttl, tags, cas);
      // Who waited long enough makes the value for itself, and does not store it.
      if (isOver || performance.now() > end) return make();
      await pause(wait);
    }
  }

  /** The value, or the version that is to be filled, or nothing while another one makes it. */
  async look(key, tags, self) {
    if (!(await this.table.removals.areSent())) return { isOver: true };
    const item = await this.table.look(key);
    if (item === null) return { cas: (await this.table.reserve(key, tags, self)) ?? undefined };
    if ((item.stale && item.won) || isPlaceOf(item, self)) return { cas: item.cas };
    return item.flags === PLACE ? {} : { item };
  }

  async filled(key, make, ttl, tags, cas) {
    let value;
    try {
      value = await make();
      const [data, flags] = written(value);
      await this.notices.attempt(() => this.table.fill(key, data, ttl, tags, flags, cas), false);
    } catch (error) {
      await this.notices.attempt(() => this.table.leave(key, cas), undefined);
      throw error;
    }
    return value;
  }

  /** A value that does not load is removed. */
  async loaded(key, { data, flags }) {
    if (flags === TEXT) return data.toString();
    if (flags !== JSON_TEXT) return Buffer.from(data);
    try {
      return JSON.parse(data);
    } catch (error) {
      this.notices.tell(error);
      await this.delete(key);
      return undefined;
    }
  }
}

function written(value) {
  if (typeof value === "string") return [value, TEXT];
  if (value instanceof Uint8Array) return [Buffer.from(value), 0];
  const data = JSON.stringify(value);
  if (data === undefined) throw new TypeError(`a value of the type ${typeof value} cannot be stored`);
  return [data, JSON_TEXT];
}

module.exports = { Cache };
