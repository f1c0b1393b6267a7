"use strict";

const { Notices } = require("./notices.js");
const { Table } = require("./table.js");

/**
 * A driver for unstorage. While the daemon is away a read finds nothing, with a warning once a minute; what writes and
 * removes throws.
 *
 * @param options a location, or options: those of the connection, `table`, `options` of the table, `base`, `ttl`
 */
function sqlcached(options = {}) {
  const given = typeof options === "string" ? { location: options } : options;
  const { table: name = "unstorage", options: ofTable = {}, base = "", ttl, onError, ...connection } = given;
  const table = new Table(connection, name, ofTable);
  const notices = new Notices(onError);
  const begin = base === "" || base.endsWith(":") ? base : `${base}:`;
  const own = (key = "") => begin + key;

  const get = (key) => notices.attempt(() => table.get(own(key)), undefined);
  const set = async (key, value, more = {}) => {
    const life = more.ttl ?? ttl;
    if (life !== undefined && life <= 0) return void (await table.delete(own(key)));
    if (!(await table.set(own(key), value, life === undefined ? undefined : life * 1_000, more.tags ?? []))) {
      throw new Error(`the value of ${key} was not stored`);
    }
  };
  const asText = (found) => (found === undefined ? null : found.toString());

  return {
    name: "sqlcached",
    options: given,
    getInstance: () => table.client,

    hasItem: async (key) => (await get(key)) !== undefined,
    getItem: async (key) => asText(await get(key)),
    getItems: (items) => Promise.all(items.map(async ({ key }) => ({ key, value: asText(await get(key)) }))),
    async getItemRaw(key) {
      const found = await get(key);
      return found === undefined ? null : Buffer.from(found);
    },
    setItem: set,
    setItems: async (items, common) => void (await Promise.all(items.map((item) => set(item.key, item.value, { ...common, ...item.options })))),
    setItemRaw: (key, value, more) => set(key, bytes(value), more),
    removeItem: async (key) => void (await table.delete(own(key))),
    async getKeys(of) {
      const found = await notices.attempt(() => table.keys(own(of)), []);
      return found.map((key) => key.slice(begin.length));
    },
    clear: async (of) => void (await table.deletePrefix(own(of))),
    getMeta: (key) => notices.attempt(() => table.about(own(key)), {}),
    dispose: () => table.client.disconnect(),

    /**
     * Removes all values with one of these tags; how many. With `soft` they become stale. If it cannot be sent, it throws:
     * then it is kept, and this process reads nothing until it got through.
     */
    invalidateTags: (tags, { soft = false } = {}) => table.deleteTags(tags, soft),
  };
}

/** Bytes of what unstorage takes for raw. */
function bytes(value) {
  if (typeof value === "string" || Buffer.isBuffer(value)) return value;
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError(`a raw value is text or bytes, and no ${typeof value}`);
}

module.exports = sqlcached;
module.exports.default = sqlcached;
