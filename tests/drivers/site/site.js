// The site of the documents as a reader uses it, in Debian's Chromium. The argument is its folder.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { chromium } = require("playwright-core");

const folder = path.resolve(process.argv[2]);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png" };
let site;
const at = (page) => `${site}/${page}`;
// Pixels of a telephone, a small screen and a large one.
const WIDTHS = [400, 1280, 2560];
const PAGES = ["index.html", "docs/sql.html", "docs/settings.html", "docs/guides/night.html", "docs/performance.html"];

const CHECKS = {
  async "the first page shows the demo"(page) {
    await page.goto(at("index.html"));
    assert.match(await page.title(), /^sqlcached/);
    const demo = page.locator("img[src*=demo]");
    assert.ok(await demo.evaluate((image) => image.complete && image.naturalWidth > 0));
  },

  async "search finds what a page is about"(page) {
    for (const [words, wanted] of [["lease stampede", "docs/stampedes.html"], ["audit_file", "docs/security.html"]]) {
      await page.goto(at(`search.html?q=${encodeURIComponent(words)}`));
      await page.waitForSelector(`#search-results a[href*="${wanted}"]`);
    }
  },

  async "every document is in the navigation"(page) {
    await page.goto(at("index.html"));
    const links = await page.$$eval(".sidebar-tree a", (all) => all.map((link) => link.getAttribute("href")));
    for (const wanted of ["docs/sql.html", "docs/guides/night.html", "docs/install.html", "CHANGELOG.html"]) {
      assert.ok(links.includes(wanted), `${wanted} is not in ${links}`);
    }
  },

  async "a link leads to its heading"(page) {
    await page.goto(at("docs/README.html"));
    await page.click("a[href*='php.html#log-a-user-out-everywhere']");
    assert.match(await page.textContent("h2:target, section:target h2, section:target"), /Log a user out everywhere/);
  },

  async "pages fit a telephone and a large screen"(page) {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      for (const each of PAGES) {
        await page.goto(at(each));
        const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(over <= 0, `${each} is ${over} pixels wider than ${width}`);
      }
    }
  },
};

// A search shows the lines around what it found, which it fetches: a browser fetches nothing of a folder.
function served() {
  const server = http.createServer((request, response) => {
    const file = path.join(folder, decodeURIComponent(new URL(request.url, site).pathname));
    fs.readFile(file, (error, bytes) => {
      response.writeHead(error ? 404 : 200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream" });
      response.end(bytes);
    });
  });
  return new Promise((listens) => server.listen(0, "127.0.0.1", () => listens(server)));
}

async function main() {
  const server = await served();
  site = `http://127.0.0.1:${server.address().port}`;
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("response", (response) => response.ok() || wrong.push(`${response.status()}: ${response.url()}`));
  page.on("request", (request) => request.url().startsWith(site) || wrong.push(`asked elsewhere: ${request.url()}`));
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      await check(page);
    } catch (why) {
      wrong.push(`${name}: ${why.message}`);
    }
  }
  await browser.close();
  server.close();
  assert.deepStrictEqual(wrong, []);
  console.log(`${Object.keys(CHECKS).length} checks`);
}

main().catch((why) => { console.error(String(why.message ?? why)); process.exit(1); });
