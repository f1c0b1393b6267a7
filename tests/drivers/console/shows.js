// Words on pages of the console, in Debian's Chromium. CONSOLE_URL: where it is; CONSOLE_ROLE: as whom, by which password.
// Each argument is a page, what has the words (the system table of a list), and words that come there:
// buses/sqlcached_buses/lag ms/streaming
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

async function main() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const [username, password] = (process.env.CONSOLE_ROLE ?? "").split(":");
  const page = await browser.newPage(username ? { httpCredentials: { username, password } } : {});
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  for (const argument of process.argv.slice(2)) {
    const [name, table, ...words] = argument.split("/");
    await page.goto(`${process.env.CONSOLE_URL}#/${decodeURIComponent(name)}`);
    await page.waitForFunction(([id, wanted]) => wanted.every((word) => document.getElementById(id)?.textContent.includes(word)), [table, words], { timeout: 120000 });
  }
  await browser.close();
  assert.deepStrictEqual(errors, []);
  console.log("shown");
}

main().catch((why) => { console.error(why); process.exit(1); });
