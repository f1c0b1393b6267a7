/** Libraries over the store for Keyv: cache-manager 7 and cacheable 2. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createCache } from "cache-manager";
import { Cacheable } from "cacheable";
import Keyv from "keyv";
import { KeyvSqlcached } from "../src/keyv.mjs";
import { Daemon } from "./daemon.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.end());

const open = (table, more = {}) => {
  const store = new KeyvSqlcached({ ...daemon.at, table });
  return { store, keyv: new Keyv({ store, ...more }) };
};
const count = async (table) => (await daemon.sql(`SELECT count(*) AS n FROM ${table}`))[0].n;

test("cache-manager: every call, and another process sees it", async () => {
  const [cache, other] = [1, 2].map(() => createCache({ stores: [open("manager").keyv], ttl: 600_000 }));
  for (const value of ["text", 17, { a: [1, "ä", null] }, false, ""]) {
    await cache.set("k", value);
    assert.deepEqual(await other.get("k"), value);
  }
  await cache.mset([{ key: "a", value: 1 }, { key: "b", value: 2, ttl: 60_000 }]); // prettier-ignore
  assert.deepEqual(await other.mget(["a", "b", "missing"]), [1, 2, undefined]);
  const left = (await other.ttl("b")) - Date.now();
  assert.ok(left > 0 && left <= 61_000, String(left));
  await cache.mdel(["a", "b"]);
  assert.deepEqual(await other.mget(["a", "b"]), [undefined, undefined]);
  let calls = 0;
  const make = async () => ++calls;
  assert.deepEqual([await cache.wrap("w", make), await other.wrap("w", make), calls], [1, 1, 1]);
  await other.del("w");
  assert.equal(await cache.wrap("w", make), 2);
  await cache.clear();
  assert.equal(await count("manager"), 0);
  await Promise.all([cache.disconnect(), other.disconnect()]);
});

test("cache-manager: a fast store before ours, and tags", async () => {
  const { store, keyv } = open("tiered");
  const cache = createCache({ stores: [new Keyv({ ttl: 5 }), keyv] });
  await store.tagged(["product:17"], () => cache.wrap("page", async () => "made"));
  assert.equal(await cache.get("page"), "made");
  assert.equal(await store.invalidateTags(["product:17"]), 1);
  await daemon.until(async () => (await cache.get("page")) === undefined, "the fast store's five milliseconds are over");
});

test("cacheable: two layers, and what each instance sees", async () => {
  const make = () => new Cacheable({ secondary: open("layers").keyv, ttl: "10m" });
  const [one, two] = [make(), make()];
  await one.set("k", { a: 1 });
  assert.deepEqual(await two.get("k"), { a: 1 });
  await one.setMany([{ key: "a", value: 1 }, { key: "b", value: 2 }]); // prettier-ignore
  assert.deepEqual(await two.getMany(["a", "b", "missing"]), [1, 2, undefined]);
  assert.equal(await one.has("a"), true);
  assert.equal(await one.take("a"), 1);
  assert.equal(await make().get("a"), undefined);
  let calls = 0;
  const value = async (cache) => cache.getOrSet("made", async () => ++calls);
  assert.deepEqual([await value(one), await value(make()), calls], [1, 1, 1]);
  await one.deleteMany(["b", "made"]);
  assert.equal(await make().get("b"), undefined);
  await one.clear();
  assert.equal(await count("layers"), 0);
});

test("ten callers at once make one value", async () => {
  const cache = createCache({ stores: [open("stampede").keyv] });
  let calls = 0;
  const made = () => cache.wrap("k", async () => ++calls, 600_000);
  assert.deepEqual(await Promise.all(Array.from({ length: 10 }, made)), Array(10).fill(1));
});

test("while the daemon is away both go on without it", async () => {
  const { store, keyv } = open("away");
  const told = [];
  store.on("error", (error) => told.push(error.name));
  const cache = createCache({ stores: [keyv] });
  const layers = new Cacheable({ secondary: open("away_layers").keyv });
  await daemon.kill();
  assert.equal(await cache.get("k"), undefined);
  assert.equal(await cache.wrap("k", async () => "made"), "made");
  await layers.set("k", "near");
  assert.equal(await layers.get("k"), "near");
  assert.deepEqual(told, ["UnavailableError"], "one a minute");
  await daemon.start();
  await daemon.until(async () => (await cache.set("k", "new")) && (await cache.get("k")) === "new", "it is used again");
});
