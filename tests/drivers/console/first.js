// How long the console takes to its first figures, in Debian's Chromium. CONSOLE_URL: where it is. Prints the median of
// some loads for each page, in milliseconds, without and with what the browser keeps of the files.
"use strict";

const { chromium } = require("playwright-core");

const LOADS = 5;
// A page, and what is there when its first figures are.
const PAGES = {
  overview: ["", () => /\d/.test(document.querySelector("#strip")?.textContent ?? "")],
  tables: ["#/tables", () => document.querySelectorAll("#tables tbody tr").length > 100],
};

// From the beginning of the navigation to the frame that shows the figures.
async function once(page, url, shown) {
  await page.goto("about:blank");
  await page.goto(url, { waitUntil: "commit" });
  await page.waitForFunction(shown, null, { polling: "raf", timeout: 60000 });
  return page.evaluate(() => performance.now());
}

const median = (all) => all.sort((one, other) => one - other)[Math.floor(all.length / 2)];

async function main() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const answer = {};
  for (const [name, [hash, shown]] of Object.entries(PAGES)) {
    const url = process.env.CONSOLE_URL + hash;
    const fresh = [];
    for (let load = 0; load < LOADS; load += 1) {
      const context = await browser.newContext();
      fresh.push(await once(await context.newPage(), url, shown));
      await context.close();
    }
    const page = await browser.newPage();
    const again = [];
    for (let load = 0; load <= LOADS; load += 1) again.push(await once(page, url, shown));
    answer[name] = { first: Math.round(median(fresh)), again: Math.round(median(again.slice(1))) };
  }
  await browser.close();
  console.log(JSON.stringify(answer));
}

main().catch((why) => { console.error(why); process.exit(1); });
