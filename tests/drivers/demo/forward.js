// The demo of forwarding as somebody uses it, in Debian's Chromium. DEMO_URL: where it is.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

const BROWSER = "/usr/bin/chromium";
const url = process.env.DEMO_URL;
// A machine that does much else takes its time.
const PATIENCE = 120000;

const state = async () => (await fetch(`${url}state`)).json();
const until = (page, check, argument) => page.waitForFunction(check, argument, { timeout: PATIENCE });
// The cells of the statement whose text has these words, once it is in this state.
async function statement(page, words, wanted) {
  const found = ([has, is]) => [...document.querySelectorAll("#statements tbody tr")].some((row) =>
    row.cells[0].textContent.includes(has) && row.cells[1].textContent === is);
  await until(page, found, [words, wanted]);
  const { statements } = await state();
  return statements.find((kind) => kind.statement.includes(words) && kind.state === wanted);
}

const CHECKS = {
  // Figures of a thousand and more have a comma.
  async visitors(page) {
    await page.click("#load");
    await until(page, () => document.querySelectorAll("#sides section").length === 2);
    await until(page, () => [...document.querySelectorAll("#sides dd:last-of-type")].every((cell) => /[2-9][0-9]|,/.test(cell.textContent)));
  },

  async statements(page) {
    const dashboard = await statement(page, "SUM(", "kept");
    assert.strictEqual(dashboard.depends, "public.product, public.sale");
    const product = await statement(page, 'FROM "product" WHERE', "kept");
    assert.strictEqual(product.depends, "public.product(id)");
    const offer = await statement(page, 'FROM "offer"', "refused");
    assert.match(offer.reason, /tells the time/);
    const sale = await statement(page, 'FROM "sale" WHERE', "kept");
    assert.match(sale.cure, /REPLICA IDENTITY FULL/);
    // What is kept is used.
    await until(page, () => [...document.querySelectorAll("#statements tr.kept")].some((row) => /[0-9][0-9]/.test(row.cells[6].textContent)));
  },

  async edits(page) {
    for (const product of ["7", "8", "7"]) {
      const { same } = await state();
      await page.fill("#product", product);
      await page.click("#edit");
      await until(page, (before) => parseInt(document.getElementById("verdict").textContent, 10) > before, same);
      const text = await page.textContent("#log tbody tr");
      assert.match(text, new RegExp(`UPDATE product SET price = [0-9.]+ WHERE id = ${product}.*ms.*yes`));
    }
  },

  async differing(page) {
    await page.click("#editing");
    const { same } = await state();
    await until(page, (wanted) => parseInt(document.getElementById("verdict").textContent, 10) >= wanted, same + 3);
    assert.strictEqual((await state()).differing, 0, "both shops show the same");
  },

  async strangers() {
    const post = (headers, body) => fetch(`${url}edit`, { method: "POST", headers, body });
    const json = { "Content-Type": "application/json" };
    assert.strictEqual((await post({ "Content-Type": "text/plain" }, '{"product": 1}')).status, 403);
    assert.strictEqual((await post(json, '{"product": 21}')).status, 400);
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
