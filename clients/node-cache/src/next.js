"use strict";

const { readFileSync } = require("node:fs");
const path = require("node:path");
const v8 = require("node:v8");
const { SqlcachedError } = require("./errors.js");
const limits = require("./limits.js");
const { Notices } = require("./notices.js");
const { Table } = require("./table.js");
const { TagTimes } = require("./tag_times.js");

/** Flags of a value that `v8.serialize` made, with the version of what is in it. */
const FORMAT = 0x4e01;

/** The header in which Next names the tags of a page. */
const HEADER = "x-next-cache-tags";

/** Entries of a Next application, and when its tags were revalidated. `next build` connects to nothing. */
class Entries {
  constructor(options = {}) {
    const given = typeof options === "string" ? { location: options } : options;
    const { table = "next", options: ofTable = {}, onError, ...connection } = given;
    this.table = new Table(connection, table, ofTable);
    this.times = new TagTimes(connection, `${table}_tags`);
    this.notices = new Notices(onError);
    this.begun = new Begun();
  }

  get isOff() {
    return process.env.NEXT_PHASE === "phase-production-build";
  }

  /** What was stored; undefined if it is missing, or if its tags or others have expired since. With `isStale` if it is to be made again. */
  async read(key, isOfIt, tags = []) {
    if (this.isOff) return undefined;
    const now = Date.now();
    const found = await this.notices.attempt(() => this.fresh(key, isOfIt, tags), undefined);
    if (found === undefined || found.isStale) this.begun.note(key, now);
    return found;
  }

  async fresh(key, isOfIt, tags) {
    if (!((await this.table.removals.areSent()) && (await this.times.areSent()))) return undefined;
    const item = await this.table.item(key);
    if (item === undefined) return undefined;
    const entry = await this.loaded(key, item, isOfIt);
    if (entry === undefined) return undefined;
    const state = await this.times.state([...entry.tags, ...tags], entry.made);
    return state === "expired" ? undefined : { ...entry, isStale: state === "stale" };
  }

  /** What does not load is removed. */
  async loaded(key, { data, flags }, isOfIt) {
    try {
      const entry = flags === FORMAT ? v8.deserialize(data) : null;
      if (typeof entry?.made === "number" && Array.isArray(entry.tags) && isOfIt(entry.value)) return entry;
    } catch {
      // The bytes are none of v8's.
    }
    this.notices.tell(new SqlcachedError(`an entry of ${this.table.name} did not load and was removed`));
    await this.table.delete(key);
    return undefined;
  }

  /** Stores an entry, for `expire` seconds. `made` is when its making began. */
  async write(key, value, tags, expire, made = this.begun.take(key)) {
    if (this.isOff) return;
    const ttl = Math.min(typeof expire === "number" && expire >= 0 ? expire : limits.YEAR, limits.YEAR) * 1_000;
    const data = v8.serialize({ value, tags, made });
    await this.notices.attempt(() => this.table.set(key, data, ttl, tags, FORMAT), false);
  }

  /**
   * Expires what has one of these tags, or with `durations` makes it stale and lets it expire later. If it cannot be sent,
   * it throws: then it is kept, and this process reads nothing until it got through.
   */
  async revalidate(tags, durations) {
    if (this.isOff || tags.length === 0) return;
    // Next makes it stale first where it may be served once more.
    const isAtOnce = durations === undefined || durations.expire === 0;
    const told = [this.times.set(tags, durations)];
    if (isAtOnce) told.push(this.table.deleteTags(tags));
    const failed = (await Promise.allSettled(told)).find(({ status }) => status === "rejected");
    if (failed) throw failed.reason;
  }
}

/** When the making of entries began that are not stored yet: what was made of older data than a revalidation is expired. */
class Begun {
  constructor() {
    this.times = new Map();
  }

  note(key, now) {
    if (this.times.has(key)) return;
    if (this.times.size >= limits.BEGUN) this.times.delete(this.times.keys().next().value);
    this.times.set(key, now);
  }

  take(key) {
    const found = this.times.get(key) ?? Date.now();
    this.times.delete(key);
    return found;
  }
}

/** The class for `cacheHandler` of next.config.js: pages, routes and what `fetch` and `unstable_cache` keep. */
function cacheHandler(options) {
  const entries = new Entries(options);
  return class {
    constructor({ serverDistDir } = {}) {
      this.build = serverDistDir === undefined ? "" : buildOf(serverDistDir);
    }

    /** A page names files of its build, so that another build does not see it. Data are of all builds. */
    key(key, isData) {
      return isData ? `data:${key}` : `page:${this.build}:${key}`;
    }

    async get(key, context = {}) {
      const isData = context.kind === "FETCH";
      const isOfIt = (value) => (value?.value?.kind === "FETCH") === isData;
      const found = await entries.read(this.key(key, isData), isOfIt, [...(context.tags ?? []), ...(context.softTags ?? [])]);
      if (found === undefined) return null;
      const { value, cacheControl } = found.value;
      return found.isStale ? stale(value, cacheControl, context.revalidate) : { value, cacheControl, lastModified: found.made };
    }

    async set(key, value, context = {}) {
      const isData = context.fetchCache === true || value?.kind === "FETCH";
      const { cacheControl } = context;
      await entries.write(this.key(key, isData), { value, cacheControl }, tagsOf(value, context), cacheControl?.expire);
    }

    async revalidateTag(tags, durations) {
      await entries.revalidate([tags].flat(), durations);
    }

    resetRequestCache() {}
  };
}

/** An entry that Next serves once more while it makes it again: it is a little older than its time. */
function stale(value, cacheControl, asked) {
  const own = value?.kind === "FETCH" ? asked || value.revalidate : cacheControl?.revalidate;
  const revalidate = typeof own === "number" ? own : 1;
  return { value, cacheControl: { ...cacheControl, revalidate }, lastModified: Date.now() - (revalidate + 1) * 1_000 };
}

function tagsOf(value, context) {
  const named = value?.headers?.[HEADER];
  const ofPage = typeof named === "string" ? named.split(",") : [];
  return [...new Set([...(context.tags ?? []), ...(value?.tags ?? []), ...ofPage])].filter((tag) => tag !== "");
}

/** The build whose files are in a folder; a server of developers has none. */
function buildOf(folder) {
  try {
    return readFileSync(path.join(folder, "..", "BUILD_ID"), "utf8").trim();
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return "";
  }
}

/** An object for `cacheHandlers` of next.config.js: what functions with "use cache" return. */
function cacheHandlers(options) {
  const entries = new Entries(options);
  const storing = new Map();

  async function store(name, pending) {
    const { value, ...about } = await pending;
    // Next never asks for an entry that expires at once.
    if (about.expire === 0) return;
    const body = await bytesOf(value);
    await entries.write(name, { about, body }, about.tags, about.expire, about.timestamp);
  }

  return {
    async get(key, softTags = []) {
      const name = `use:${key}`;
      await storing.get(name);
      const found = await entries.read(name, (value) => value?.body instanceof Uint8Array, softTags);
      if (found === undefined) return undefined;
      const { about, body } = found.value;
      return { ...about, value: new Blob([body]).stream(), ...(found.isStale ? { revalidate: -1 } : {}) };
    },

    /** Who asks for the entry meanwhile waits for it. What could not be made is not stored. */
    async set(key, pending) {
      const name = `use:${key}`;
      const stored = store(name, pending).catch(() => {});
      storing.set(name, stored);
      await stored;
      if (storing.get(name) === stored) storing.delete(name);
    },

    async refreshTags() {},

    /** Tags of a request are given to `get`. */
    getExpiration: async () => Infinity,

    updateTags: (tags, durations) => entries.revalidate(tags, durations),

    /** The same in Next 15. */
    expireTags: (...tags) => entries.revalidate(tags.flat()),
    receiveExpiredTags: async () => {},
  };
}

async function bytesOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

module.exports = { cacheHandler, cacheHandlers };
