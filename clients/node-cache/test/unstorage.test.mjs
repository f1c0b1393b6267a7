/** The driver for unstorage, through unstorage itself. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createStorage, prefixStorage } from "unstorage";
import { UnavailableError } from "../src/index.mjs";
import sqlcached from "../src/unstorage.mjs";
import { Daemon, isLeft } from "./daemon.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.end());

const storage = (table, more = {}) => {
  const driver = sqlcached({ ...daemon.at, table, ...more });
  return { driver, storage: createStorage({ driver }) };
};
const life = async (table) => (await daemon.sql(`SELECT _ttl AS n FROM ${table}`))[0]?.n;

test("every call", async () => {
  const { storage: all } = storage("calls");
  assert.equal(await all.hasItem("s1:a"), false);
  assert.equal(await all.getItem("s1:a"), null);
  assert.equal(await all.getItemRaw("s1:a"), null);
  await all.setItem("s1:a", "test_data");
  await all.setItem("s2:a", "test_data");
  await all.setItem("s3:a?q=1", "test_data");
  assert.equal(await all.hasItem("s1:a"), true);
  assert.equal(await all.getItem("s1:a"), "test_data");
  assert.equal(await all.getItem("s3:a?q=2"), "test_data", "unstorage cuts what follows the question mark");
  assert.deepEqual((await all.getKeys()).sort(), ["s1:a", "s2:a", "s3:a"]);
  assert.deepEqual(await all.getKeys("s1"), ["s1:a"]);
  await all.removeItem("s1:a");
  assert.deepEqual((await all.getKeys()).sort(), ["s2:a", "s3:a"]);
  for (const value of [{ a: [1, null, "ä"] }, 17, true, false, "", "null", "text \0", [1, 2]]) {
    await all.setItem("value", value);
    assert.deepEqual(await all.getItem("value"), value === "null" ? null : value, JSON.stringify(value));
  }
  await all.setItems([{ key: "m:1", value: "one" }, { key: "m:2", value: { two: 2 } }]); // prettier-ignore
  assert.deepEqual(await all.getItems(["m:1", "m:2", "m:3"]), [
    { key: "m:1", value: "one" },
    { key: "m:2", value: { two: 2 } },
    { key: "m:3", value: null },
  ]);
  await all.clear();
  assert.deepEqual(await all.getKeys(), []);
  await all.dispose();
});

test("raw values keep their bytes", async () => {
  const { storage: all } = storage("raw");
  const bytes = new Uint8Array([0, 1, 255, 13, 10]);
  for (const value of [bytes, bytes.buffer, Buffer.from(bytes), new DataView(bytes.buffer)]) {
    await all.setItemRaw("data:raw.bin", value);
    assert.deepEqual(await all.getItemRaw("data:raw.bin"), Buffer.from(bytes));
  }
  await all.setItemRaw("part", bytes.subarray(1, 3));
  assert.deepEqual(await all.getItemRaw("part"), Buffer.from([1, 255]));
  await all.setItemRaw("text", "ä");
  assert.deepEqual(await all.getItemRaw("text"), Buffer.from("ä"));
  await all.setItem("json", { a: 1 });
  assert.deepEqual(await all.getItemRaw("json"), Buffer.from('{"a":1}'));
  await assert.rejects(all.setItemRaw("object", { a: 1 }), TypeError);
});

test("keys and removals below a base", async () => {
  const { storage: all, driver } = storage("bases");
  const names = Array.from({ length: 230 }, (_, number) => `in:k${number}`);
  await Promise.all([...names, "in", "in2:a", "im:a", "io:a"].map((name) => all.setItem(name, 1)));
  assert.deepEqual((await all.getKeys("in")).sort(), names.sort());
  const part = prefixStorage(all, "in");
  assert.equal((await part.getKeys()).length, 230);
  // unstorage itself asks a driver to clear a base only where the base is a mount's.
  await driver.clear("in:");
  assert.deepEqual((await all.getKeys()).sort(), ["im:a", "in", "in2:a", "io:a"]);
});

test("two drivers of one table, and a mount", async () => {
  const { storage: shop } = storage("shared", { base: "shop" });
  const { storage: blog } = storage("shared", { base: "blog:" });
  shop.mount("cache", sqlcached({ ...daemon.at, table: "mounted" }));
  await shop.setItem("a", "of the shop");
  await blog.setItem("a", "of the blog");
  await shop.setItem("cache:a", "mounted");
  assert.deepEqual([await shop.getItem("a"), await blog.getItem("a"), await shop.getItem("cache:a")], ["of the shop", "of the blog", "mounted"]);
  assert.deepEqual((await shop.getKeys()).sort(), ["a", "cache:a"]);
  assert.deepEqual(await daemon.sql("SELECT key FROM shared ORDER BY key"), [{ key: "blog:a" }, { key: "shop:a" }]);
  await shop.clear();
  assert.deepEqual(await blog.getKeys(), ["a"]);
});

test("times to live are seconds, and meta data tell them", async () => {
  const { storage: all } = storage("lives", { ttl: 100 });
  await all.setItem("a", "12345");
  assert.ok(isLeft(await life("lives"), 100));
  await all.setItem("a", "äbc", { ttl: 3_000 });
  const meta = await all.getMeta("a");
  assert.ok(isLeft(meta.ttl, 3_000) && meta.size === 4 && Math.abs(Date.now() - meta.mtime) < 60_000, JSON.stringify(meta));
  await all.setMeta("a", { mine: 1 });
  assert.equal((await all.getMeta("a")).mine, 1);
  for (const ttl of [1e12, Number.MAX_SAFE_INTEGER, 0.4]) {
    await all.setItem("b", "value", { ttl });
    assert.equal(await all.getItem("b"), "value", String(ttl));
  }
  for (const ttl of [0, -1, -1e12]) {
    await all.setItem("b", "value");
    await all.setItem("b", "value", { ttl });
    assert.equal(await all.getItem("b"), null, String(ttl));
  }
  assert.equal(Object.keys(await all.getMeta("missing")).length, 0);
});

test("tags leave with their rows", async () => {
  const { storage: all, driver } = storage("tagged");
  await Promise.all(Array.from({ length: 1_000 }, (_, number) => all.setItem(`k${number}`, number, { tags: [`p:${number}`, "all", 'a "{}"'] })));
  assert.equal(await driver.invalidateTags(["p:17"]), 1);
  assert.equal(await all.getItem("k17"), null);
  assert.equal(await driver.invalidateTags(["p:18"], { soft: true }), 1);
  assert.equal(await all.getItem("k18"), null);
  assert.equal((await all.getKeys()).length, 998);
  assert.equal(await driver.invalidateTags(['a "{}"']), 999);
  assert.equal((await daemon.sql("SELECT count(*) AS n FROM tagged"))[0].n, 0);
});

test("any key", async () => {
  const { driver } = storage("keys");
  for (const key of ["a b", "\0", "ä", "'", "%", "k\r\nflush_all", "k".repeat(2_000)]) {
    await driver.setItem(key, "value");
    assert.equal(await driver.getItem(key), "value");
    assert.deepEqual(await driver.getKeys(), [key]);
    await driver.removeItem(key);
    assert.equal(await driver.hasItem(key), false);
  }
});

test("while the daemon is away a read finds nothing and a write throws", async () => {
  const told = [];
  const { storage: all, driver } = storage("away", { onError: (error) => told.push(error) });
  await all.setItem("a", "old", { tags: ["t"] });
  await all.setItem("b", "good");
  await daemon.kill();
  assert.equal(await all.getItem("a"), null);
  assert.equal(await all.hasItem("a"), false);
  assert.deepEqual(await all.getKeys(), []);
  await assert.rejects(all.setItem("c", "new"), UnavailableError);
  await assert.rejects(driver.invalidateTags(["t"]), UnavailableError);
  await assert.rejects(all.removeItem("d"), UnavailableError);
  assert.equal(told.length, 1, "one a minute");
  await daemon.start();
  await daemon.until(async () => (await all.getItem("b")) === "good", "the removals got through");
  assert.equal(await all.getItem("a"), null);
});

test("a value that is too large is an error", async () => {
  const { storage: all } = storage("large");
  await assert.rejects(all.setItem("a", "x".repeat(3 << 20)), /too large/);
  assert.equal(await all.getItem("a"), null);
});
