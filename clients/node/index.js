'use strict'
// Clients and tables over addon.c, which has the same numbers of operations and statuses.

const addon = require('./build/sqlcached.node')

const [GET, GET_MANY, SET, ADD, CAS, INCREMENT, DELETE, SQL, CLAIM, TABLE_GET, TABLE_GET_MANY, TABLE_ROW, TABLE_WAIT] =
  Array(13).keys()

const STATES = ['hit', 'miss', 'stale', 'due', undefined, 'miss']

/** An operation; those that ask nobody for a value or a number pass the same empty ones. */
const run = (handle, operation, key, value = '', first = 0, second = 0, cas = 0n) =>
  addon.run(handle, operation, key, value, first, second, cas)

/** Many values at once, as a Map of those that are there. */
async function many(handle, operation, keys) {
  const list = [...keys]
  if (list.length === 0) return new Map()
  const values = await run(handle, operation, list)
  return new Map(list.map((key, at) => [key, values[at]]).filter(([, value]) => value !== null))
}

/** A value from shared memory, or else from the daemon. */
async function read(handle, operation, key) {
  const near = addon.peek(handle, key)
  return near === undefined ? (await run(handle, operation, key))[1] : near
}

const RENEWALS = ['nobody', 'another', 'you']
const described = ([status, value, flags, cas, renewal]) => ({
  state: STATES[status],
  value,
  flags,
  cas,
  renewal: RENEWALS[renewal],
})

/** What shared memory has of a key, or undefined. */
function glance(handle, key) {
  const near = addon.glance(handle, key)
  return near && described(near)
}

class Client {
  #handle

  constructor({ socket, arena, timeout = 0 } = {}) {
    this.#handle = addon.open(socket, arena, Math.round(timeout * 1000))
  }

  peek(key) {
    return addon.peek(this.#handle, key)
  }

  glance(key) {
    return glance(this.#handle, key)
  }

  async get(key) {
    return read(this.#handle, GET, key)
  }

  async lookup(key) {
    return described(await run(this.#handle, GET, key))
  }

  async claim(key, seconds) {
    return described(await run(this.#handle, CLAIM, key, '', seconds))
  }

  async getMany(keys) {
    return many(this.#handle, GET_MANY, keys)
  }

  async set(key, value, { flags = 0, expire = 0 } = {}) {
    return run(this.#handle, SET, key, value, flags, expire)
  }

  async add(key, value, { flags = 0, expire = 0 } = {}) {
    return run(this.#handle, ADD, key, value, flags, expire)
  }

  async cas(key, value, cas, { flags = 0, expire = 0 } = {}) {
    return run(this.#handle, CAS, key, value, flags, expire, cas)
  }

  async increment(key, delta = 1) {
    return run(this.#handle, INCREMENT, key, '', delta)
  }

  async delete(key) {
    return run(this.#handle, DELETE, key)
  }

  async sql(statement, ...parameters) {
    return run(this.#handle, SQL, statement, parameters)
  }

  table(name) {
    return new Table(addon.openTable(this.#handle, name))
  }
}

class Table {
  #handle

  constructor(handle) {
    this.#handle = handle
  }

  peek(key) {
    return addon.peek(this.#handle, key)
  }

  glance(key) {
    return glance(this.#handle, key)
  }

  async get(key) {
    return read(this.#handle, TABLE_GET, key)
  }

  async lookup(key) {
    return described(await run(this.#handle, TABLE_GET, key))
  }

  async getMany(keys) {
    return many(this.#handle, TABLE_GET_MANY, keys)
  }

  async row(key) {
    return run(this.#handle, TABLE_ROW, key)
  }

  async wait(key, seconds) {
    return (await run(this.#handle, TABLE_WAIT, key, '', Math.round(seconds * 1000)))[1]
  }
}

module.exports = { Client }
