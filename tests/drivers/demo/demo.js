// The demo as somebody uses it, in Debian's Chromium. DEMO_URL: where it is. DEMO_PICTURE: a file for a picture of it.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

const BROWSER = "/usr/bin/chromium";
const url = process.env.DEMO_URL;
// Seconds of load: figures are those of the last ten.
const LOAD_SECONDS = Number(process.env.DEMO_SECONDS || 12);
const PIECES = 4;

const state = async () => (await fetch(`${url}state`)).json();
const figure = (page, half, title) => page.$$eval(`#${half} dl div`, (cells, wanted) =>
  cells.find((cell) => cell.querySelector("dt").textContent === wanted).querySelector("dd").textContent, title);
const until = (page, check, argument) => page.waitForFunction(check, argument, { timeout: 20000 });

async function iframe(page, half) {
  const frame = await (await page.$(`#${half} iframe`)).contentFrame();
  await frame.waitForSelector("#sum");
  return frame.$eval("#sum", (sum) => ({ made: Number(sum.dataset.made), pieces: Number(sum.dataset.pieces) }));
}

// Both halves show the page.
const loaded = (page, path) => Promise.all(["memcached", "sqlcached"].map((half) =>
  page.waitForResponse((answer) => answer.url().includes(`/shop/${half}/${path}/`)).then((answer) => answer.finished())));

async function visit(page, path) {
  const done = loaded(page, path);
  await page.evaluate((to) => { location.hash = to; }, path);
  await done;
}

async function edit(page, product) {
  const before = (await state()).edits[0]?.number ?? 0;
  await page.fill("#product", String(product));
  await page.click("#edit");
  await until(page, (number) => Number(document.querySelector("#log tbody tr")?.dataset.number) > number, before);
  return (await state()).edits[0];
}

const CHECKS = {
  async full(page) {
    await until(page, () => document.querySelectorAll("#sqlcached .map i.kept").length > 100);
    const { halves, names } = await state();
    for (const half of Object.values(halves)) assert.doesNotMatch(half.map, /-/, "every fragment was made");
    assert.strictEqual(await page.$$eval("#memcached .map i", (cells) => cells.length), names.length);
  },

  async edits(page) {
    const [before, shown] = [await state(), loaded(page, "product/17")];
    const done = await edit(page, 17);
    await shown;
    assert.strictEqual(done.removed.memcached, before.names.length, "flush_all removes everything");
    assert.strictEqual(done.removed.sqlcached, done.showing, "the statement removes what shows the product, and nothing else");
    const row = await page.$$eval("#log tbody tr:first-child td", (cells) => cells.map((cell) => Number(cell.textContent)));
    assert.deepStrictEqual(row.slice(2), [done.showing, before.names.length, done.showing]);
    // The page of the product was visited at once, in both halves.
    const [left, right] = [await iframe(page, "memcached"), await iframe(page, "sqlcached")];
    assert.deepStrictEqual(left, { made: PIECES, pieces: PIECES });
    assert.ok(right.made >= 1 && right.made < PIECES && right.pieces === PIECES, `${right.made} fragments were made again`);
    await until(page, () => document.querySelectorAll("#memcached .map i:not([class])").length === 0);
    const grid = await page.$$eval("#memcached .map i", (cells) => cells.filter((cell) => cell.className === "").length);
    assert.ok(grid > before.names.length / 2, `${grid} fragments are missing in the grid`);
  },

  async marks(page) {
    const after = await state();
    const kept = (after.names.filter((name, at) => after.halves.sqlcached.map[at] !== "-"));
    const calm = Array.from({ length: 100 }, (_, at) => at + 18).find((id) => ["product", "reviews", "also"].every((kind) => kept.includes(`${kind}:${id}`)));
    await visit(page, `product/${calm}`);
    const [left, right] = [await iframe(page, "memcached"), await iframe(page, "sqlcached")];
    // The list of what the user has seen was made by the visit before.
    assert.deepStrictEqual(left, { made: PIECES - 1, pieces: PIECES });
    assert.deepStrictEqual(right, { made: 0, pieces: PIECES });
  },

  async load(page) {
    await page.click("#load");
    await page.click("#editing");
    await page.waitForTimeout(LOAD_SECONDS * 1000);
    const { halves: { memcached, sqlcached } } = await state();
    const seen = [parseFloat(await figure(page, "memcached", "hit ratio")), parseFloat(await figure(page, "sqlcached", "hit ratio"))];
    assert.ok(memcached.totals.visits > 100 && sqlcached.totals.visits > 100, JSON.stringify([memcached.totals, sqlcached.totals]));
    assert.ok(seen[1] > seen[0] + 10, `hit ratios ${seen}`);
    assert.ok(Math.abs(seen[1] - 100 * sqlcached.hit_ratio) < 20, `the page shows ${seen[1]} %, the server counted ${sqlcached.hit_ratio}`);
    assert.ok(memcached.made_a_second > 3 * sqlcached.made_a_second, `${memcached.made_a_second} and ${sqlcached.made_a_second} a second`);
    assert.ok(memcached.queries_a_second > 2 * sqlcached.queries_a_second);
    assert.strictEqual(await figure(page, "sqlcached", "pages with an old price"), "0");
    assert.strictEqual(memcached.totals.old + sqlcached.totals.old, 0, "nobody saw an old price");
    if (process.env.DEMO_PICTURE) await page.screenshot({ path: process.env.DEMO_PICTURE, clip: { x: 0, y: 0, width: 1280, height: 900 } });
    await page.click("#editing");
    await page.click("#load");
    await until(page, () => document.querySelector("#load").getAttribute("aria-pressed") === "false");
  },

  async versions(page) {
    await page.selectOption("#way", "versions");
    await until(page, () => [...document.querySelectorAll("#memcached .map i")].every((cell) => cell.className === ""));
    await page.click("#load");
    await page.waitForTimeout(3000);
    const done = await edit(page, 17);
    const { halves, names } = await state();
    const lists = names.filter((name) => !/^(product|reviews):/.test(name)).length;
    assert.ok(done.removed.sqlcached <= done.showing && done.removed.memcached <= lists + 2, JSON.stringify(done));
    assert.ok(done.removed.memcached > done.removed.sqlcached, JSON.stringify(done));
    assert.ok(halves.memcached.requests_a_visit > halves.sqlcached.requests_a_visit, "versions are read before pages");
    await page.click("#load");
  },

  async strangers() {
    const post = (headers) => fetch(`${url}edit`, { method: "POST", headers, body: '{"product": 1}' });
    assert.strictEqual((await post({ "Content-Type": "text/plain" })).status, 403);
    assert.strictEqual((await post({ "Content-Type": "application/json" })).status, 200);
    assert.strictEqual((await fetch(`${url}shop/sqlcached/product/0/1`)).status, 404);
    assert.strictEqual((await fetch(`${url}shop/sqlcached/product/1/1000`)).status, 404);
    const wrong = await fetch(`${url}edit`, { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"product": "x"}' });
    assert.strictEqual(wrong.status, 400);
  },

  async narrow(page) {
    await page.setViewportSize({ width: 380, height: 800 });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 380, `the page is ${width} wide`);
  },
};

async function main() {
  const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 1200 } });
  const seen = { errors: [], elsewhere: [] };
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("request", (request) => request.url().startsWith(url) || seen.elsewhere.push(request.url()));
  await page.goto(url);
  for (const [name, check] of Object.entries(CHECKS)) {
    await check(page).catch((why) => { throw new Error(`${name}: ${why.stack}`); });
  }
  await browser.close();
  assert.deepStrictEqual(seen, { errors: [], elsewhere: [] });
  console.log(`${Object.keys(CHECKS).length} checks`);
}

main().catch((why) => { console.error(why); process.exit(1); });
