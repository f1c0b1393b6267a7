// Words in tables of the console, in Debian's Chromium. CONSOLE_URL: where it is. Each argument is a section, which is not
// shown without such rows, its table, and words that come there: others/buses/lag ms/streaming
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

async function main() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(process.env.CONSOLE_URL);
  for (const argument of process.argv.slice(2)) {
    const [section, table, ...words] = argument.split("/");
    await page.waitForFunction(
      ([id, wanted]) => wanted.every((word) => document.getElementById(id).textContent.includes(word)), [table, words], { timeout: 120000 });
    assert.strictEqual(await page.$eval(`#${section}`, (own) => own.hidden), false);
  }
  await browser.close();
  assert.deepStrictEqual(errors, []);
  console.log("shown");
}

main().catch((why) => { console.error(why); process.exit(1); });
