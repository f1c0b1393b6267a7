/** The handlers of Next, called as Next calls them. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import v8 from "node:v8";
import { cacheHandler, cacheHandlers } from "../src/next.mjs";
import { Daemon, isLeft } from "./daemon.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.end());

/** Two servers: each has its own handlers. */
const servers = (table, more = {}) =>
  [1, 2].map(() => {
    const options = { ...daemon.at, table, ...more };
    return { use: cacheHandlers(options), pages: new (cacheHandler(options))({}) };
  });
const stream = (...chunks) => new Blob(chunks).stream();
const entry = (text, tags = [], more = {}) =>
  Promise.resolve({ value: stream(text), tags, stale: 300, timestamp: Date.now(), expire: 3_600, revalidate: 900, ...more });
const textOf = async (found) => found && new Response(found.value).text();
const page = (html, tags) => ({ kind: "APP_PAGE", html, rscData: Buffer.from([0, 255]), headers: { "x-next-cache-tags": tags }, status: 200,
  segmentData: new Map([["/a", Buffer.from("a")]]) }); // prettier-ignore
const data = (body, tags = []) => ({ kind: "FETCH", data: { headers: {}, body, status: 200, url: "" }, revalidate: 900, tags });
const count = async (table) => (await daemon.sql(`SELECT count(*) AS n FROM ${table}`))[0].n;
/** The clock is beyond this moment: a revalidation and an entry of one millisecond are not told apart. */
const later = async () => {
  const now = Date.now();
  await daemon.until(() => Date.now() > now, "a millisecond has passed");
};

test("use cache: an entry of one server is read in the other, again and again", async () => {
  const [one, two] = servers("entries");
  assert.equal(await one.use.get("k", []), undefined);
  await one.use.set("k", entry("hello", ["t"]));
  for (const server of [one, two, two]) {
    const found = await server.use.get("k", []);
    assert.equal(await textOf(found), "hello");
    assert.deepEqual([found.tags, found.stale, found.expire, found.revalidate], [["t"], 300, 3_600, 900]);
  }
  assert.equal(await one.use.getExpiration(["t"]), Infinity);
  const [{ n }] = await daemon.sql("SELECT _ttl AS n FROM entries");
  assert.ok(isLeft(n, 3_600));
});

test("use cache: who asks while an entry is made waits for it, and one that fails is none", async () => {
  const [{ use }] = servers("pending");
  let finish;
  const stored = use.set("k", new Promise((resolve) => (finish = resolve)));
  const asked = use.get("k", []);
  finish(await entry("late"));
  await stored;
  assert.equal(await textOf(await asked), "late");
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error("half of it")) });
  await use.set("broken", entry("", [], { value: broken }));
  assert.equal(await use.get("broken", []), undefined);
  await use.set("rejected", Promise.reject(new Error("not made")));
  assert.equal(await use.get("rejected", []), undefined);
  await use.set("dynamic", entry("at once", [], { expire: 0 }));
  assert.equal(await use.get("dynamic", []), undefined);
});

test("use cache: tags of the entry and of the request", async () => {
  const [one, two] = servers("use_tags");
  for (const tag of ["t", "a b", 'a"b', "{a,b}", "\\", "\0", "ä", "t".repeat(3_000)]) {
    await one.use.set("k", entry("old", [tag, "more"]));
    await one.use.set("soft", entry("old", ["more"]));
    await later();
    await two.use.updateTags([tag]);
    assert.equal(await one.use.get("k", []), undefined, tag);
    assert.equal(await textOf(await one.use.get("soft", [])), "old");
    assert.equal(await one.use.get("soft", [tag]), undefined);
    await later();
    await one.use.set("soft", entry("new", ["more"]));
    assert.equal(await textOf(await two.use.get("soft", [tag])), "new");
  }
});

test("use cache: what was made of older data than a revalidation is not served", async () => {
  const [one, two] = servers("use_late");
  const made = await entry("old", ["t"]);
  await later();
  await two.use.updateTags(["t"]);
  await one.use.set("k", Promise.resolve(made));
  assert.equal(await two.use.get("k", []), undefined);
});

test("a profile makes stale first, and of two revalidations none takes back the other", async () => {
  const [one, two] = servers("profiles");
  const store = async () => {
    await one.use.set("k", entry("old", ["t"]));
    await later();
  };
  const seen = async () => (await two.use.get("k", []))?.revalidate;
  await store();
  assert.equal(await seen(), 900);
  await one.use.updateTags(["t"], { expire: 3_600 });
  assert.equal(await seen(), -1);
  await one.use.updateTags(["t"]);
  assert.equal(await seen(), undefined);
  // An expiry that came due holds when a later one is announced.
  await later();
  await store();
  await one.use.updateTags(["t"], { expire: 0.001 });
  await later();
  await later();
  assert.equal(await seen(), undefined);
  await one.use.updateTags(["t"], { expire: 3_600 });
  assert.equal(await seen(), undefined);
  // What is made in the millisecond of a revalidation counts as made before it.
  await later();
  await store();
  assert.equal(await seen(), 900);
  await one.use.updateTags(["t"], {});
  assert.equal(await seen(), -1);
});

test("pages: a value of one server is read in the other", async () => {
  const [one, two] = servers("pages");
  const context = { kind: "APP_PAGE" };
  assert.equal(await one.pages.get("/a", context), null);
  const value = page("<p>hello</p>", "t,_N_T_/a");
  const before = Date.now();
  await one.pages.set("/a", value, { cacheControl: { revalidate: 60, expire: 600 } });
  const found = await two.pages.get("/a", context);
  assert.deepEqual(found.value, value);
  assert.ok(Buffer.isBuffer(found.value.rscData) && found.value.segmentData instanceof Map);
  assert.deepEqual(found.cacheControl, { revalidate: 60, expire: 600 });
  assert.ok(found.lastModified >= before - 60_000 && found.lastModified <= Date.now());
  const [{ n }] = await daemon.sql("SELECT _ttl AS n FROM pages");
  assert.ok(isLeft(n, 600));
  await two.pages.set("/none", null, {});
  assert.equal((await one.pages.get("/none", context)).value, null);
});

test("pages: revalidateTag, by a name or several, at once or by a profile", async () => {
  const [one, two] = servers("page_tags");
  const context = { kind: "APP_PAGE" };
  const store = async (revalidate) => {
    for (const name of ["a", "b"]) await one.pages.set(`/${name}`, page(name, `${name},_N_T_/${name}`), { cacheControl: { revalidate } });
    await later();
  };
  for (const tags of ["a", ["a"], "_N_T_/a", ["missing", "a"]]) {
    await store(60);
    await two.pages.revalidateTag(tags);
    // Who misses it begins to make it, and what is begun in the millisecond of a revalidation counts as begun before it.
    await later();
    assert.equal(await one.pages.get("/a", context), null);
    assert.equal((await one.pages.get("/b", context)).value.html, "b");
    await later();
  }
  assert.equal(await count("page_tags"), 1);
  for (const revalidate of [60, false]) {
    await store(revalidate);
    await two.pages.revalidateTag("a", { expire: 3_600 });
    const found = await one.pages.get("/a", context);
    // Next makes a page again whose time is over, and serves it once more.
    assert.ok(found.value.html === "a" && found.lastModified + found.cacheControl.revalidate * 1_000 < Date.now(), String(revalidate));
    await later();
  }
});

test("data: tags of the question count, and a late value is expired", async () => {
  const [one, two] = servers("data");
  const context = { kind: "FETCH", tags: ["t"], softTags: ["_N_T_/a"] };
  await one.pages.set("k", data("old"), { fetchCache: true, tags: ["t"] });
  assert.equal((await two.pages.get("k", context)).value.data.body, "old");
  await later();
  await two.pages.revalidateTag("_N_T_/a");
  assert.equal(await one.pages.get("k", context), null);
  assert.equal((await one.pages.get("k", { kind: "FETCH", tags: ["t"], softTags: [] })).value.data.body, "old");
  // Both began to make it again before the next revalidation.
  assert.equal(await two.pages.get("late", context), null);
  await later();
  await one.pages.revalidateTag("t");
  await two.pages.set("late", data("old"), { fetchCache: true, tags: ["t"] });
  assert.equal(await one.pages.get("late", context), null);
  await later();
  assert.equal(await two.pages.get("late", context), null);
  await two.pages.set("late", data("new"), { fetchCache: true, tags: ["t"] });
  assert.equal((await one.pages.get("late", context)).value.data.body, "new");
  // A page and data of one name are two entries.
  await one.pages.set("k", page("p", "x"), {});
  assert.equal((await one.pages.get("k", { kind: "APP_PAGE" })).value.html, "p");
});

test("pages of another build are not seen, data are", async () => {
  const folder = mkdtempSync(`${tmpdir()}/sqlcached-next-`);
  const Handler = cacheHandler({ ...daemon.at, table: "builds" });
  const of = (build) => {
    mkdirSync(`${folder}/${build}/server`, { recursive: true });
    writeFileSync(`${folder}/${build}/BUILD_ID`, build);
    return new Handler({ serverDistDir: `${folder}/${build}/server` });
  };
  const [old, fresh] = [of("old"), of("fresh")];
  await old.set("/a", page("old", ""), {});
  await old.set("k", data("old"), { fetchCache: true });
  assert.equal(await fresh.get("/a", { kind: "APP_PAGE" }), null);
  assert.equal((await fresh.get("k", { kind: "FETCH" })).value.data.body, "old");
  assert.equal((await of("old").get("/a", { kind: "APP_PAGE" })).value.html, "old");
  rmSync(folder, { recursive: true });
});

test("an entry that does not load is removed and told", async () => {
  const told = [];
  const [{ use, pages }] = servers("broken", { onError: (error) => told.push(error.message) });
  const good = v8.serialize({ value: { value: data("x") }, tags: [], made: Date.now() });
  const kinds = [["", 0x4e01], ["no bytes of v8", 0x4e01], [v8.serialize(null), 0x4e01], [v8.serialize({ made: 1 }), 0x4e01], [good, 0]]; // prettier-ignore
  await pages.get("k", { kind: "FETCH" });
  for (const [body, flags] of kinds) {
    for (const key of ["data:k", "page::k", "use:k"]) {
      await daemon.sql("REPLACE INTO broken (key, body, _flags) VALUES (?, ?, ?)", key, Buffer.from(body), flags);
    }
    assert.equal(await pages.get("k", { kind: "FETCH" }), null);
    assert.equal(await pages.get("k", { kind: "APP_PAGE" }), null);
    assert.equal(await use.get("k", []), undefined);
    assert.equal(await count("broken"), 0);
  }
  assert.equal(told.length, 2, "one a minute of each handler");
});

test("10,000 tagged entries leave nothing behind", async () => {
  const [one, two] = servers("leaves");
  for (let begin = 0; begin < 10_000; begin += 500) {
    const names = Array.from({ length: 500 }, (_, number) => `k${begin + number}`);
    await Promise.all(names.map((name) => one.use.set(name, entry(name, [name, "all"]))));
  }
  assert.equal(await count("leaves"), 10_000);
  await later();
  await two.use.updateTags(["k17"]);
  assert.equal(await count("leaves"), 9_999);
  await two.use.updateTags(["all"]);
  assert.equal(await count("leaves"), 0);
  assert.equal(await count("leaves_tags"), 2, "one row for each tag that was revalidated");
});

test("next build connects to nothing", async () => {
  process.env.NEXT_PHASE = "phase-production-build";
  try {
    const told = [];
    const options = { location: "127.0.0.1:1", onError: (error) => told.push(error) };
    const [use, pages] = [cacheHandlers(options), new (cacheHandler(options))({})];
    await use.set("k", entry("x"));
    assert.equal(await use.get("k", []), undefined);
    await use.updateTags(["t"]);
    await pages.set("/a", page("a", "t"), {});
    assert.equal(await pages.get("/a", { kind: "APP_PAGE" }), null);
    await pages.revalidateTag("t");
    assert.equal(told.length, 0);
  } finally {
    delete process.env.NEXT_PHASE;
  }
});

test("while the daemon is away entries are made again, and a revalidation is kept", async () => {
  const told = [];
  const [{ use, pages }, other] = servers("away", { onError: (error) => told.push(error) });
  await use.set("k", entry("old", ["t"]));
  await use.set("other", entry("good", ["u"]));
  await later();
  await daemon.kill();
  assert.equal(await use.get("k", []), undefined);
  await use.set("new", entry("x"));
  assert.equal(await pages.get("/a", { kind: "APP_PAGE" }), null);
  await assert.rejects(use.updateTags(["t"]), /127\.0\.0\.1/);
  assert.equal(told.length, 2, "one a minute of each handler");
  await daemon.start();
  await daemon.until(async () => (await textOf(await use.get("other", []))) === "good", "the revalidation got through");
  assert.equal(await use.get("k", []), undefined);
  assert.equal(await other.use.get("k", []), undefined);
});
