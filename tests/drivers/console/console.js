// The console as somebody uses it, in Debian's Chromium. CONSOLE_URL: where it is. CONSOLE_DAEMON: its process;
// CONSOLE_STARTS: what starts it again, as JSON.
"use strict";

const assert = require("node:assert");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const { chromium } = require("playwright-core");

// A loaded machine may need this long for one step, in milliseconds.
const PATIENCE = 60000;
const BROWSER = "/usr/bin/chromium";
const url = process.env.CONSOLE_URL;
// What the test has put into the tables' names, a value, a column's name and a statement.
const CANARY = "<img src=x onerror=document.title='taken'>";
const SCRIPT = "<script>document.title='taken'</script>";

async function watched(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const seen = { errors: [], elsewhere: [] };
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("blob:")) seen.elsewhere.push(request.url());
  });
  return { context, page, seen };
}

async function live(page) {
  await page.goto(url);
  await page.waitForSelector("#state[data-state=live]");
  await page.waitForFunction(() => document.querySelectorAll("#strip dd").length === 8);
}

async function ask(page, statement) {
  await page.fill("#statement", statement);
  await page.press("#statement", "Control+Enter");
  await page.waitForFunction(() => !/^(|running)$/.test(document.querySelector("#outcome").textContent));
  return page.textContent("#outcome");
}

const cells = (page, table) => page.$$eval(`#${table} tbody tr`, (rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

const CHECKS = {
  async figures(page) {
    await page.waitForFunction((name) => [...document.querySelectorAll("#tables td:first-child")].some((cell) => cell.textContent === name), CANARY);
    const tables = await cells(page, "tables");
    assert.ok(tables.some(([name]) => name === "memcached"), JSON.stringify(tables));
    await page.fill("#filter", "MEMCACHED");
    assert.deepStrictEqual((await cells(page, "tables")).map(([name]) => name), ["memcached"]);
    await page.fill("#filter", "nothing of this name");
    assert.deepStrictEqual(await cells(page, "tables"), [["no table has this name"]]);
    await page.fill("#filter", "");
    await page.click("#tables th:first-child button");
    const names = (await cells(page, "tables")).map(([name]) => name);
    assert.deepStrictEqual(names, [...names].sort());
    await page.hover("#charts figure:first-child canvas");
    await page.waitForSelector("#charts figure:first-child .key em");
  },

  // What was before the page was opened, and who invalidated what.
  async history(page) {
    await page.waitForFunction(() => charts.ratio.points.length > 2);
    // After a reload they are there at once.
    await page.reload();
    await page.waitForSelector("#state[data-state=live]");
    const points = await page.evaluate(() => charts.ratio.points.length);
    assert.ok(points > 1, `${points} points`);
    await page.selectOption("#range", "60");
    await page.waitForFunction(() => resolution === 60);
    await page.selectOption("#range", "1");
    await page.waitForSelector("#marks .mark.deleted");
    await page.waitForFunction(() => document.querySelector("#verdict").textContent.includes("Last invalidation"));
    assert.match(await page.textContent("#verdict"), /Last invalidation .*deleted 2 .*rows of <img/);
    await page.focus("#marks .mark[tabindex='0']");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#details[open]");
    const details = await page.textContent("#details-body");
    assert.ok(details.includes("deleted") && details.includes(CANARY) && details.includes("by memcached"), details);
    await axe(page);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#details:not([open])", { state: "attached" });
    const rows = await cells(page, "invalidations");
    assert.ok(rows.some((row) => row.includes(CANARY)), JSON.stringify(rows));
  },

  // A table opens what is in it; the keyboard does, too.
  async tables(page) {
    for (const [table, key] of [["memcached", "k9"], [CANARY, CANARY], [SCRIPT, "<script>"]]) {
      await page.focus(`#tables button[data-key="${table}"]`);
      await page.keyboard.press("Enter");
      await page.waitForFunction((text) => document.querySelector("#details-body").textContent.includes(text), key);
      assert.strictEqual(await page.textContent("#details-title"), table);
      // How long rows have to live: all of them, in one bar or several.
      const lives = await page.$$eval("#details-body [aria-label='Times to live'] tbody tr", (rows) => rows.map((row) => row.textContent));
      assert.ok(lives.length > 0 && lives.every((life) => /^(up to|more than|without end)/.test(life)), JSON.stringify(lives));
      assert.match(await page.textContent("#details-body .oldest"), /^Oldest row: written \d+ (s|min|h)/);
      await axe(page);
      await page.click("#details-close");
    }
  },

  async slow(page) {
    await page.waitForFunction((text) => document.querySelector("#slow").textContent.includes(text), CANARY);
    await page.waitForFunction(() => document.querySelector("#rules").textContent.includes("there is no expiry rule"));
    await page.waitForFunction(() => document.querySelector("#refusals").textContent.includes("nobody was refused"));
  },

  // What is written once more in colours is what is in the box, to the last sign.
  async colours(page) {
    const statement = `SELECT 'it''s', "a ""b""", $1, 42 /* ${SCRIPT}\n */ FROM t -- ${CANARY}\n`;
    await page.fill("#statement", statement);
    assert.strictEqual(await page.textContent("#paint"), `${statement}\n`);
    const parts = await page.$$eval("#paint span", (spans) => spans.map((span) => [span.className, span.textContent]));
    assert.deepStrictEqual(parts, [
      ["word", "SELECT"], ["text", "'it''s'"], ["name", '"a ""b"""'], ["value", "$1"], ["digits", "42"],
      ["note", `/* ${SCRIPT}\n */`], ["word", "FROM"], ["note", `-- ${CANARY}`],
    ]);
    await page.fill("#statement", "line and more words ".repeat(40) + "line\n".repeat(200));
    await page.press("#statement", "Control+End");
    await page.waitForFunction(() => {
      const [box, paint] = ["statement", "paint"].map((id) => document.getElementById(id).scrollTop);
      return box > 1000 && Math.abs(box - paint) < 2;
    });
    const same = await page.evaluate(() => ["statement", "paint"].map((id) => document.getElementById(id).scrollHeight));
    assert.ok(Math.abs(same[0] - same[1]) < 30, `lines break at other places: ${same}`);
    await page.fill("#statement", "'begun");
    assert.deepStrictEqual(await page.$$eval("#paint span", (spans) => spans.map((span) => span.className)), ["text"]);
  },

  async completion(page) {
    await page.fill("#statement", "SELECT * FROM memca");
    await page.press("#statement", "Control+Space");
    await page.waitForSelector("#words li");
    await axe(page);
    await page.press("#statement", "Tab");
    assert.strictEqual(await page.inputValue("#statement"), "SELECT * FROM memcached");
    await page.fill("#statement", "<im");
    await page.press("#statement", "Control+Space");
    await page.waitForSelector("#words", { state: "hidden" });
  },

  async statements(page) {
    assert.match(await ask(page, "SELECT 9007199254740993 AS big, 1.50::numeric AS n, true AS t, NULL AS none, '\\x00ff'::bytea AS raw"), /^SELECT 1 in/);
    assert.deepStrictEqual(await cells(page, "result"), [["9007199254740993", "1.5", "true", "NULL", "AP8="]]);
    assert.match(await ask(page, "SELECT nothing FROM memcached"), /42703: .*nothing[^]*\^/);
    assert.match(await ask(page, "DELETE FROM memcached"), /^25006: /);
    await page.check("#write");
    assert.match(await ask(page, "DELETE FROM memcached WHERE key = 'none'"), /^DELETE 0 in/);
    await page.uncheck("#write");
    assert.match(await ask(page, "SELECT key FROM memcached WHERE key = 'none'"), /^SELECT 0 in/);
    assert.deepStrictEqual(await cells(page, "result"), [["no rows"]]);
    await page.click("#explain");
    await page.waitForFunction(() => document.querySelector("#result td")?.textContent !== "no rows");
    const kept = await page.$$eval("#history option", (options) => options.map((option) => option.value));
    assert.ok(kept.includes("SELECT nothing FROM memcached"), JSON.stringify(kept));
    assert.ok(decodeURIComponent(new URL(page.url()).hash).includes("key = 'none'"));
  },

  async stopping(page) {
    await page.fill("#statement", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
    await page.press("#statement", "Control+Enter");
    await page.click("#stop:not([disabled])");
    await page.waitForFunction(() => document.querySelector("#outcome").textContent === "stopped");
    const left = "SELECT count(*) FROM sqlcached_sessions WHERE query LIKE '%recursive c%' AND pid <> pg_backend_pid()";
    const end = Date.now() + PATIENCE;
    do {
      assert.ok(Date.now() < end, "the statement goes on");
      await ask(page, left);
    } while ((await cells(page, "result"))[0][0] !== "0");
  },

  async canaries(page) {
    await ask(page, `SELECT k AS "${CANARY}", v FROM "${CANARY}"`);
    assert.deepStrictEqual(await cells(page, "result"), [[CANARY, CANARY]]);
    await page.waitForTimeout(2500);
    assert.strictEqual(await page.title(), "sqlcached");
    assert.strictEqual(await page.$$eval("img", (images) => images.length), 0);
  },

  async saving(page) {
    await ask(page, "SELECT 'a\"b,c' AS q, 1 AS n");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#csv")]);
    assert.strictEqual(fs.readFileSync(await download.path(), "utf8"), "q,n\r\n\"a\"\"b,c\",1\r\n");
  },

  async accessibility(page) {
    await page.evaluate(() => window.scrollTo(0, 0));
    await axe(page);
  },
};

async function axe(page) {
  // In the page's own world: its policy lets no other script in.
  await page.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepStrictEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
}

// A browser that slept for an hour shows what was, and no hour as one point.
async function sleep(browser) {
  const { page, seen } = await watched(browser, {});
  await page.clock.install();
  await live(page);
  await page.clock.runFor(3000);
  await page.clock.fastForward("01:00:00");
  await page.clock.runFor(3000);
  await page.waitForSelector("#state[data-state=live]");
  const rates = await page.evaluate(() => charts.operations.points.map(({ values }) => values.sql));
  assert.ok(rates.every((rate) => !(rate < 0)), JSON.stringify(rates));
  assert.deepStrictEqual(seen.errors, []);
}

// A page that stays open while the server goes away and comes back, perhaps with other tables.
async function restart(browser) {
  const { page, seen } = await watched(browser, {});
  await live(page);
  process.kill(Number(process.env.CONSOLE_DAEMON), "SIGKILL");
  await page.waitForSelector("#state[data-state=lost]");
  assert.match(await page.textContent("#state"), /no figures since .*Failed to fetch/);
  await axe(page);
  const [program, ...flags] = JSON.parse(process.env.CONSOLE_STARTS);
  const daemon = spawn(program, flags, { stdio: "ignore" });
  try {
    await page.waitForSelector("#state[data-state=live]");
    await page.waitForFunction(() => /^\d+ s$/.test(document.querySelector("#strip dd").textContent));
    assert.deepStrictEqual(seen.elsewhere, []);
  } finally {
    daemon.kill("SIGKILL");
  }
}

async function main() {
  const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
  let passed = 0;
  try {
    for (const [name, options] of [
      ["desktop-light", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
      ["desktop-dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
      ["phone-light", { viewport: { width: 375, height: 740 }, colorScheme: "light" }],
    ]) {
      const { context, page, seen } = await watched(browser, options);
      await live(page);
      for (const [check, run] of Object.entries(CHECKS)) {
        await run(page);
        console.log(`${name}: ${check}`);
        passed += 1;
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
      assert.ok(!wide, `${name}: the page is wider than the window`);
      // A statement that fails is an answer of 400, which Chromium mentions.
      const errors = seen.errors.filter((text) => !/status of 400/.test(text));
      assert.deepStrictEqual(errors, []);
      assert.deepStrictEqual(seen.elsewhere, []);
      await context.close();
    }
    await sleep(browser);
    await restart(browser);
    passed += 2;
  } finally {
    await browser.close();
  }
  console.log(`${passed} checks`);
}

main().catch((error) => { console.error(error); process.exit(1); });
