/// <reference types="node" />

import { EventEmitter } from "node:events";
import type { TableConnection } from "./index.js";

export interface StoreOptions extends TableConnection {
  /** The store's table; `keyv` by default. */
  table?: string;
  /** Options of the table: `ttl`, `max_memory`, `min_memory`, `max_rows`, ... They count when it is made. */
  options?: Record<string, string | number | boolean>;
}

/** A store for Keyv, and so for cache-manager and cacheable. */
export class KeyvSqlcached extends EventEmitter {
  constructor(options?: string | StoreOptions);
  opts: { dialect: string; url: string };
  namespace?: string;
  get(key: string): Promise<string | Buffer | undefined>;
  getMany(keys: string[]): Promise<Array<string | Buffer | undefined>>;
  /** Stores a value for `ttl` milliseconds. `tags` are names by which `invalidateTags` removes it. */
  set(key: string, value: unknown, ttl?: number | null, tags?: string[]): Promise<boolean>;
  setMany(entries: Array<{ key: string; value: unknown; ttl?: number }>): Promise<boolean[]>;
  delete(key: string): Promise<boolean>;
  deleteMany(keys: string[]): Promise<boolean>;
  /** Removes the values of this namespace; without one it empties the table. */
  clear(): Promise<void>;
  has(key: string): Promise<boolean>;
  hasMany(keys: string[]): Promise<boolean[]>;
  iterator(namespace?: string): AsyncGenerator<[string, string | Buffer]>;
  disconnect(): Promise<void>;
  /** What is stored within `work`, by whatever library, has these tags. */
  tagged<Result>(tags: string[], work: () => Result): Result;
  /** Removes all values with one of these tags; how many. With `soft` they become stale. */
  invalidateTags(tags: string[], options?: { soft?: boolean }): Promise<number>;
}

export default KeyvSqlcached;
