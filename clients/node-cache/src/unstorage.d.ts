/// <reference types="node" />

import type { Client } from "./index.js";
import type { StoreOptions } from "./keyv.js";

declare namespace sqlcached {
  interface DriverOptions extends StoreOptions {
    /** What the keys of this driver begin with in the table. */
    base?: string;
    /** Seconds that a value lives, where `setItem` says no other. */
    ttl?: number;
    /** Is called at most once a minute while the daemon is away; by default Node prints a warning. */
    onError?: (error: Error) => void;
  }

  interface ItemOptions {
    /** Seconds. */
    ttl?: number;
    /** Names by which `invalidateTags` removes the value. */
    tags?: string[];
  }

  interface SqlcachedDriver {
    name: string;
    options: DriverOptions;
    getInstance(): Client;
    hasItem(key: string): Promise<boolean>;
    getItem(key: string): Promise<string | null>;
    getItems(items: Array<{ key: string }>): Promise<Array<{ key: string; value: string | null }>>;
    getItemRaw(key: string): Promise<Buffer | null>;
    setItem(key: string, value: string, options?: ItemOptions): Promise<void>;
    setItems(items: Array<{ key: string; value: string; options?: ItemOptions }>, common?: ItemOptions): Promise<void>;
    setItemRaw(key: string, value: string | ArrayBuffer | ArrayBufferView, options?: ItemOptions): Promise<void>;
    removeItem(key: string): Promise<void>;
    getKeys(base?: string): Promise<string[]>;
    clear(base?: string): Promise<void>;
    getMeta(key: string): Promise<{ mtime?: Date; size?: number; ttl?: number }>;
    dispose(): Promise<void>;
    /** Removes all values with one of these tags; how many. With `soft` they become stale. */
    invalidateTags(tags: string[], options?: { soft?: boolean }): Promise<number>;
  }

  export { sqlcached as default };
  export type { DriverOptions, ItemOptions, SqlcachedDriver };
}

/** A driver for unstorage. */
declare function sqlcached(options?: string | sqlcached.DriverOptions): sqlcached.SqlcachedDriver;

export = sqlcached;
