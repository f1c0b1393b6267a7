// The console of a cache on a bus, in Debian's Chromium. CONSOLE_URL: where it is.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

async function main() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(process.env.CONSOLE_URL);
  const shows = (id, words) => page.waitForFunction(
    ([table, wanted]) => wanted.every((word) => document.getElementById(table).textContent.includes(word)), [id, words], { timeout: 120000 });
  await shows("buses", ["lag ms", "breaks", "bus", "streaming"]);
  await shows("nodes", ["heard ms ago", "this one"]);
  assert.strictEqual(await page.$eval("#others", (section) => section.hidden), false);
  await browser.close();
  assert.deepStrictEqual(errors, []);
  console.log("shown");
}

main().catch((why) => { console.error(why); process.exit(1); });
