/// <reference types="node" />

import type { StoreOptions } from "./keyv.js";

export interface NextOptions extends StoreOptions {
  /** Is called at most once a minute while the daemon is away; by default Node prints a warning. */
  onError?: (error: Error) => void;
}

export interface Durations {
  /** Seconds after which what has the tag is not served any more. */
  expire?: number;
}

/** What Next makes of the class that its option `cacheHandler` names. */
export interface IncrementalCacheHandler {
  get(key: string, context?: any): Promise<any>;
  set(key: string, value: any, context?: any): Promise<void>;
  revalidateTag(tags: string | string[], durations?: Durations): Promise<void>;
  resetRequestCache(): void;
}

export interface UseCacheEntry {
  value: ReadableStream<Uint8Array>;
  tags: string[];
  stale: number;
  timestamp: number;
  expire: number;
  revalidate: number;
}

export interface UseCacheHandler {
  get(key: string, softTags?: string[]): Promise<UseCacheEntry | undefined>;
  set(key: string, pending: Promise<UseCacheEntry>): Promise<void>;
  refreshTags(): Promise<void>;
  getExpiration(tags: string[]): Promise<number>;
  updateTags(tags: string[], durations?: Durations): Promise<void>;
}

/** The class for `cacheHandler` of next.config.js: pages, routes and what `fetch` and `unstable_cache` keep. */
export function cacheHandler(options?: string | NextOptions): new (context?: any) => IncrementalCacheHandler;

/** An object for `cacheHandlers` of next.config.js: what functions with "use cache" return. */
export function cacheHandlers(options?: string | NextOptions): UseCacheHandler;
