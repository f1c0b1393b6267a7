// Pictures of the console for README.md and docs/operations.md: a daemon of its own with a small shop's load for a minute.
// Arguments: the program, the folder for the pictures. The load is the same in each run.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const { chromium } = require("playwright-core");

const [program, folder] = process.argv.slice(2);
// The charts show five minutes, and most of them are filled.
const SECONDS = Number(process.env.CONSOLE_SECONDS || 240);
const TICK_MS = 50;
const PRODUCTS = 4000;

// Numbers that are the same in each run.
let state = 20261124;
function random(below) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state % below;
}
// A few products are asked for much more often than the others.
const popular = () => Math.floor(PRODUCTS * (random(1_000_000) / 1_000_000) ** 4);

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function connect(port) {
  for (let tries = 0; tries < 200; tries += 1) {
    const socket = net.connect(port, "127.0.0.1");
    const connected = await new Promise((resolve) => socket.once("connect", () => resolve(true)).once("error", () => resolve(false)));
    if (connected) return socket;
    await rest(50);
  }
  throw new Error("the daemon does not answer");
}

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const SCHEMA = [
  "CREATE TABLE fragment (product INT, block TEXT, html TEXT, PRIMARY KEY (product, block)) WITH (prefix = 'fragment:', value = 'html', ttl = '10 min')",
  "CREATE INDEX fragment_product ON fragment (product)",
  "CREATE TABLE session (id TEXT PRIMARY KEY, uid INT, data TEXT) WITH (prefix = 'session:', value = 'data', ttl = '30 min')",
  "CREATE INDEX session_uid ON session (uid)",
  "CREATE TABLE price_list (region TEXT PRIMARY KEY, prices TEXT) WITH (prefix = 'prices:', value = 'prices', stale_for = '1 min')",
  "CREATE EXPIRY RULE abandoned ON session WHEN uid = 0 EVERY '5 s'",
];
const BLOCKS = ["head", "gallery", "price", "reviews"];

class Shop {
  constructor(socket) { this.socket = socket; this.answers = ""; socket.on("data", (bytes) => { this.answers += bytes; }); }

  sql(statement) { this.socket.write(`sql ${Buffer.byteLength(statement)}\r\n${statement}\r\n`); }

  set(key, bytes) { this.socket.write(`set ${key} 0 0 ${bytes} noreply\r\n${"x".repeat(bytes)}\r\n`); }

  // One look at a page: what is missing is made.
  view() {
    const keys = BLOCKS.map((block) => `fragment:${popular()}:${block}`);
    keys.push(`session:${random(900).toString(16)}`, `prices:${random(12)}`);
    this.answers = "";
    this.socket.write(`get ${keys.join(" ")}\r\n`);
    return keys;
  }

  fill(keys) {
    for (const key of keys) {
      if (this.answers.includes(`VALUE ${key} `)) continue;
      if (key.startsWith("fragment")) this.set(key, 300 + random(4000));
      else if (key.startsWith("session")) this.set(key, 120);
      else this.set(key, 9000);
    }
  }
}

async function load(shops, until) {
  const begun = Date.now();
  for (let tick = 0; Date.now() < until; tick += 1) {
    // Visitors come in waves.
    const waves = 6 + Math.round(4 * Math.sin((Date.now() - begun) / 7000));
    for (let wave = 0; wave < waves; wave += 1) {
      for (const shop of shops) {
        const keys = shop.view();
        await rest(1);
        shop.fill(keys);
      }
    }
    const [shop] = shops;
    if (tick % 23 === 5) shop.sql(`DELETE FROM fragment WHERE product = ${popular()}`);
    if (tick % 20 === 10) shop.sql("UPDATE session SET uid = 1 + abs(random()) % 300 WHERE uid IS NULL");
    if (tick % 60 === 30) shop.sql(`DELETE FROM session WHERE uid = ${random(300)}`);
    if (tick % 140 === 90) shop.sql("UPDATE price_list SET _stale = TRUE WHERE region < '6'");
    if (tick % 170 === 110) shop.sql("UPDATE session SET uid = 0 WHERE length(id) = 1");
    if (tick % 400 === 260) shop.sql("DELETE FROM fragment WHERE block = 'reviews'");
    if (tick % 31 === 0) shop.sql("SELECT block, count(*), sum(length(html)) FROM fragment GROUP BY block");
    await rest(TICK_MS);
  }
}

async function shoot(browser, url, name, options, prepare = async () => {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector("#state[data-state=live]");
  await page.waitForSelector("#marks .mark");
  await rest(3500);
  await prepare(page);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
  await context.close();
}

// A part of the console, for the pictures of its documents.
const go = (page, url, hash) => page.goto(`${url}#/${hash}`);

const PICTURES = {
  console: ["light", 1180],
  "console-table": ["dark", 820, async (page, url) => {
    await go(page, url, "table/fragment");
    await page.waitForSelector("main [aria-label=Indexes] tbody tr:nth-child(2)");
  }],
  "console-invalidation": ["light", 820, async (page) => {
    await page.locator("#marks .mark").last().click();
    await page.waitForSelector("#details-body dl");
  }],
  "console-sql": ["dark", 820, async (page) => {
    await page.fill("#statement", "SELECT block, count(*) AS rows, sum(length(html)) AS bytes\n  FROM fragment\n GROUP BY block ORDER BY bytes DESC");
    await page.press("#statement", "Control+Enter");
    await page.click("#as-chart:not([disabled])");
    await page.waitForSelector(".bars tbody tr");
  }],
  "console-delete": ["light", 820, async (page, url) => {
    await go(page, url, `table/fragment/rows?where=${encodeURIComponent(JSON.stringify([["product", "=", "17"]]))}`);
    await page.waitForSelector("#rows tbody tr");
    await page.click("#delete-all");
    await page.waitForSelector("#delete");
  }],
};

async function main() {
  fs.mkdirSync(folder, { recursive: true });
  const [port, http] = [await freePort(), await freePort()];
  const flags = ["-p", port, "-s", "none", "--arena", "none", "--sql-port", "0", "--http-port", http, "-m", "64", "--log-min-duration-statement", "3"];
  const daemon = spawn(program, flags.map(String), { stdio: "ignore" });
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const shops = [];
    for (let number = 0; number < 4; number += 1) shops.push(new Shop(await connect(port)));
    SCHEMA.forEach((statement) => shops[0].sql(statement));
    await rest(500);
    const url = `http://127.0.0.1:${http}/`;
    const running = load(shops, Date.now() + (SECONDS + 60) * 1000);
    await rest(SECONDS * 1000);
    for (const [name, [colorScheme, height, prepare]] of Object.entries(PICTURES)) {
      await shoot(browser, url, name, { viewport: { width: 1200, height }, colorScheme }, prepare && ((page) => prepare(page, url)));
    }
    await shoot(browser, url, "console-phone", { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
    await running;
  } finally {
    await browser.close();
    daemon.kill();
  }
}

main().catch((error) => { console.error(error); process.exit(1); });
