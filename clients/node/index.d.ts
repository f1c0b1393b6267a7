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
  /** `stale`: invalidated, and nobody has made it anew; `due`: it ends soon. */
  state: 'hit' | 'stale' | 'due' | 'miss'
  value: Buffer | null
  flags: number
  /** The number that changes whenever the value does. */
  cas: bigint
  /** Who was told to make it anew. */
  renewal: 'you' | 'another' | 'nobody'
}

/** What every rejected promise and every exception of this package bears, besides its message. */
export interface SqlcachedError extends Error {
  /** A number of sqlcached.h. */
  status: number
  /** Five characters when a statement failed. */
  sqlstate: string
}

/** By memcached's keys: the table with the longest prefix answers. */
export class Client {
  constructor(options?: Options)
  /** From shared memory alone, at once: null for a miss, undefined where only the daemon can tell. */
  peek(key: Bytes): Buffer | null | undefined
  /** From shared memory, or else from the daemon; null for a miss. */
  get(key: Bytes): Promise<Buffer | null>
  lookup(key: Bytes): Promise<Lookup>
  /** As lookup, and takes a missing value's place for so many seconds: of all who ask, one makes it. */
  claim(key: Bytes, seconds: number): Promise<Lookup>
  /** Those that are there. */
  getMany<K extends Bytes>(keys: Iterable<K>): Promise<Map<K, Buffer>>
  set(key: Bytes, value: Bytes, options?: WriteOptions): Promise<true>
  /** Whether there was none, so that it was written. */
  add(key: Bytes, value: Bytes, options?: WriteOptions): Promise<boolean>
  /** Whether the CAS was still this one, so that it was written. */
  cas(key: Bytes, value: Bytes, cas: bigint, options?: WriteOptions): Promise<boolean>
  /** The new number; null where there is none. */
  increment(key: Bytes, delta?: number): Promise<bigint | null>
  /** Whether there was something. */
  delete(key: Bytes): Promise<boolean>
  /** Rows, or how many were changed. */
  sql(statement: string, ...parameters: Parameter[]): Promise<Row[] | number>
  table(name: string): Table
}

/** By a table's own keys; the parts of a composite key are joined with `:`. */
export interface Table {
  peek(key: Bytes): Buffer | null | undefined
  get(key: Bytes): Promise<Buffer | null>
  lookup(key: Bytes): Promise<Lookup>
  getMany<K extends Bytes>(keys: Iterable<K>): Promise<Map<K, Buffer>>
  row(key: Bytes): Promise<Row | null>
  /** As get, and while another client was told to make the row it waits until it has, at most so many seconds. */
  wait(key: Bytes, seconds: number): Promise<Buffer | null>
}
