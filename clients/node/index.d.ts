/** A key or a value: bytes, or text that is sent as UTF-8. */
export type Bytes = Buffer | Uint8Array | string

/** What a column holds; integers beyond 2^53 are BigInts. */
export type Value = null | number | bigint | string | Buffer

/** What a statement takes. */
export type Parameter = Value | boolean | undefined | Uint8Array

export type Row = Record<string, Value>

export interface Options {
  /** The daemon's Unix socket; without it where a daemon of this user has it by default. */
  socket?: string
  /** The file of shared memory; without it the daemon is asked. */
  arena?: string
  /** Seconds that an answer may take. */
  timeout?: number
}

export interface WriteOptions {
  /** 32 bits that come back with the value. */
  flags?: number
  /** memcached's: 0 never, up to 30 days in seconds, above that a Unix time. */
  expire?: number
}

export interface Lookup {
  /** `stale`: invalidated, and not refreshed yet; `due`: it expires soon. */
  state: 'hit' | 'stale' | 'due' | 'miss'
  value: Buffer | null
  flags: number
  /** The number that changes whenever the value does. */
  cas: bigint
  /** Which client is asked to refresh it. */
  renewal: 'you' | 'another' | 'nobody'
}

/** The fields of every rejected promise and every exception of this package, besides the message. */
export interface SqlcachedError extends Error {
  /** A number of sqlcached.h. */
  status: number
  /** Five characters when a statement failed. */
  sqlstate: string
}

/** By memcached's keys: the table with the longest prefix answers. */
export class Client {
  constructor(options?: Options)
  /** From shared memory only, at once: null for a miss, undefined if only the daemon knows. */
  peek(key: Bytes): Buffer | null | undefined
  /** As lookup, from shared memory only, at once: undefined if only the daemon knows. */
  glance(key: Bytes): Lookup | undefined
  /** From shared memory, or from the daemon; null for a miss. */
  get(key: Bytes): Promise<Buffer | null>
  lookup(key: Bytes): Promise<Lookup>
  /** As lookup. It also reserves a missing value for so many seconds, so that one client is asked to compute it. */
  claim(key: Bytes, seconds: number): Promise<Lookup>
  /** The values of the existing keys. */
  getMany<K extends Bytes>(keys: Iterable<K>): Promise<Map<K, Buffer>>
  set(key: Bytes, value: Bytes, options?: WriteOptions): Promise<true>
  /** Whether the key was missing, so that the value was stored. */
  add(key: Bytes, value: Bytes, options?: WriteOptions): Promise<boolean>
  /** Whether the CAS was still this one, so that the value was stored. */
  cas(key: Bytes, value: Bytes, cas: bigint, options?: WriteOptions): Promise<boolean>
  /** The new number; null if the key is missing. */
  increment(key: Bytes, delta?: number): Promise<bigint | null>
  /** Whether the key existed. */
  delete(key: Bytes): Promise<boolean>
  /** Rows, or the number of changed rows. */
  sql(statement: string, ...parameters: Parameter[]): Promise<Row[] | number>
  table(name: string): Table
}

/** By a table's own keys; the parts of a composite key are joined with `:`. */
export interface Table {
  peek(key: Bytes): Buffer | null | undefined
  glance(key: Bytes): Lookup | undefined
  get(key: Bytes): Promise<Buffer | null>
  lookup(key: Bytes): Promise<Lookup>
  getMany<K extends Bytes>(keys: Iterable<K>): Promise<Map<K, Buffer>>
  row(key: Bytes): Promise<Row | null>
  /** As get. If another client is asked to compute the row, it waits for the row, at most so many seconds. */
  wait(key: Bytes, seconds: number): Promise<Buffer | null>
}
