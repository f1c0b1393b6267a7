// The demo of three caches as somebody uses it, in Debian's Chromium. DEMO_URL: where it is.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

const BROWSER = "/usr/bin/chromium";
const url = process.env.DEMO_URL;
// A machine that does much else takes its time.
const PATIENCE = 120000;

const state = async () => (await fetch(`${url}state`)).json();
const until = (page, check, argument) => page.waitForFunction(check, argument, { timeout: PATIENCE });
const colour = (page, name, kind) => until(page, ([id, wanted]) => document.getElementById(id)?.className === wanted, [name, kind]);
const says = (page, name) => page.textContent(`#${name} .says`);
const click = (page, name, how) => page.click(`button[data-fail="${name} ${how}"]`);
const allGood = async (page) => { for (const name of ["cache-1", "cache-2", "cache-3"]) await colour(page, name, "good"); };
// So many more edits are acknowledged.
async function edits(page, more) {
  const wanted = (await state()).acknowledged + more;
  await until(page, (count) => parseInt(document.getElementById("verdict").textContent, 10) >= count, wanted);
}

const CHECKS = {
  async hears(page) {
    await allGood(page);
    await until(page, () => document.querySelector("#cache-1 dd:nth-of-type(2)").textContent === "3");
    await page.fill("#product", "17");
    await page.click("#edit");
    await until(page, () => /^117\d+cache-\d$/.test(document.querySelector("#log tbody tr")?.textContent));
  },

  async cut(page) {
    await page.click("#load");
    await page.click("#editing");
    await edits(page, 2);
    await click(page, "cache-2", "cut");
    await colour(page, "cache-2", "bad");
    assert.match(await says(page, "cache-2"), /^cut off, and it hears nothing/);
    await edits(page, 2);
    await click(page, "cache-2", "heal");
    await allGood(page);
  },

  async killed(page) {
    await click(page, "cache-3", "kill");
    await colour(page, "cache-3", "bad");
    await edits(page, 1);
    await click(page, "cache-3", "heal");
    await allGood(page);
  },

  async paused(page) {
    await click(page, "cache-1", "pause");
    await colour(page, "cache-1", "bad");
    await edits(page, 1);
    await click(page, "cache-1", "heal");
    await allGood(page);
  },

  async servers(page) {
    await click(page, "nats-1", "kill");
    await colour(page, "nats-1", "bad");
    await edits(page, 2);
    await click(page, "nats-1", "heal");
    await allGood(page);
  },

  async nobody() {
    const { nodes, acknowledged } = await state();
    assert.ok(acknowledged >= 9, `${acknowledged} edits`);
    for (const node of nodes) assert.ok(node.visits > 20, `${node.name}: ${node.visits} visits`);
    assert.strictEqual(nodes.reduce((sum, node) => sum + node.old, 0), 0, "nobody saw an old price");
  },

  async strangers() {
    const post = (headers, body) => fetch(`${url}fail`, { method: "POST", headers, body });
    const json = { "Content-Type": "application/json" };
    assert.strictEqual((await post({ "Content-Type": "text/plain" }, '{"name": "cache-1", "how": "kill"}')).status, 403);
    assert.strictEqual((await post(json, '{"name": "cache-1", "how": "end"}')).status, 400);
    assert.strictEqual((await post(json, '{"name": "nats-1", "how": "cut"}')).status, 400);
    assert.strictEqual((await post(json, '{"name": "cache-4", "how": "kill"}')).status, 400);
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
