/// <reference types="node" />

/** Where the daemon is. Times are milliseconds. */
export interface ConnectionOptions {
  /** `host:port`, or the path of a Unix socket; `127.0.0.1:11211` by default. */
  location?: string;
  user?: string;
  password?: string;
  /** `true`, or options of `tls.connect`. */
  tls?: boolean | import("node:tls").ConnectionOptions;
  /** 5000 by default. */
  timeout?: number;
  /** 1000 by default. */
  connectTimeout?: number;
}

export type Parameter = null | boolean | number | string | Buffer | string[];
export type Row = Record<string, null | number | string | Buffer>;

/** Requests to one daemon, over one connection. */
export class Client {
  constructor(options?: string | ConnectionOptions);
  /** Runs a statement: its rows, or the number of rows that it changed. Parameters are `?`. */
  sql(text: string, ...parameters: Parameter[]): Promise<Row[] | number>;
  disconnect(): Promise<void>;
}

/** How rows are read and written. */
export interface TableConnection extends ConnectionOptions {
  /**
   * Reads rows from shared memory, for a daemon on this machine: needs the package `@sqlcached/shared-memory`. `true`, or
   * where the daemon has its socket and its file of shared memory.
   */
  sharedMemory?: boolean | { socket?: string; arena?: string };
}

export interface CacheOptions extends TableConnection {
  /** `cache` by default. */
  table?: string;
  /** Options of the table: `ttl`, `max_memory`, `min_memory`, `max_rows`, ... They count when it is made. */
  options?: Record<string, string | number | boolean>;
  /** Is called at most once a minute while the daemon is away; by default Node prints a warning. */
  onError?: (error: Error) => void;
}

export interface ValueOptions {
  /** Milliseconds; without it there is no deadline. */
  ttl?: number;
  /** Names by which `invalidateTags` removes the value. */
  tags?: string[];
}

/** Values by key with tags, without a framework: text, bytes, or what JSON can hold. */
export class Cache {
  constructor(options?: string | CacheOptions);
  get(key: string): Promise<any>;
  set(key: string, value: unknown, options?: ValueOptions): Promise<boolean>;
  delete(key: string): Promise<boolean>;
  /** The value, or what `make` makes of it. Of all who ask at once, in all processes, one makes it and the others wait. */
  getOrSet<Value>(key: string, make: () => Value | Promise<Value>, options?: ValueOptions): Promise<Value>;
  /** Removes all values with one of these tags; how many. With `soft` they become stale. */
  invalidateTags(tags: string[], options?: { soft?: boolean }): Promise<number>;
  disconnect(): Promise<void>;
}

export class SqlcachedError extends Error {}
/** The daemon cannot be reached, or did not answer in time. */
export class UnavailableError extends SqlcachedError {}
/** The daemon refused a command. */
export class RefusedError extends SqlcachedError {}
/** A statement failed. */
export class StatementError extends SqlcachedError {
  readonly sqlstate: string;
}
