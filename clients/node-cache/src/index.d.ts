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

export class SqlcachedError extends Error {}
/** The daemon cannot be reached, or did not answer in time. */
export class UnavailableError extends SqlcachedError {}
/** The daemon refused a command. */
export class RefusedError extends SqlcachedError {}
/** A statement failed. */
export class StatementError extends SqlcachedError {
  readonly sqlstate: string;
}
