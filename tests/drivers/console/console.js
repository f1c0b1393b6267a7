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
const WIDTHS = [400, 1280, 2560];

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

const address = (...parts) => `${url}#/${parts.map(encodeURIComponent).join("/")}`;

// Opens a page of the console.
async function go(page, ...parts) {
  await page.goto(address(...parts));
  await page.waitForSelector(`body[data-page="${parts[0] || "overview"}"]`);
}

async function live(page) {
  await go(page, "");
  await page.waitForSelector("#state[data-state=live]");
  await page.waitForFunction(() => document.querySelectorAll("#strip dd").length === 8);
}

async function ask(page, statement) {
  await page.fill("#statement", statement);
  await page.press("#statement", "Control+Enter");
  await page.waitForFunction(() => !/^(|running)$/.test(document.querySelector("#outcome")?.textContent ?? "") && document.querySelector("#stop").disabled);
  return page.textContent("#outcome");
}

const cells = (page, table) => page.$$eval(`#${table} tbody tr`, (rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const said = (page, place, text) => page.waitForFunction(([own, words]) => document.querySelector(own)?.textContent.includes(words), [place, text]);
const points = (page) => page.$$eval("#charts figure", (charts) => charts.map((chart) => Number(chart.dataset.points)));

const CHECKS = {
  async figures(page) {
    await go(page, "tables");
    await page.waitForFunction((name) => [...document.querySelectorAll("#tables td:first-child")].some((cell) => cell.textContent === name), CANARY);
    const tables = await cells(page, "tables");
    assert.ok(tables.some(([name]) => name === "memcached"), JSON.stringify(tables));
    await page.fill("#filter", "MEMCACHED");
    assert.deepStrictEqual((await cells(page, "tables")).map(([name]) => name), ["memcached"]);
    await page.fill("#filter", "nothing of this name");
    assert.deepStrictEqual(await cells(page, "tables"), [["no row has these words"]]);
    await page.fill("#filter", "");
    await page.click("#tables th:first-child button");
    const names = (await cells(page, "tables")).map(([name]) => name);
    assert.deepStrictEqual(names, [...names].sort());
    // A rate is none before there were two looks, and a number then.
    await page.waitForFunction(() => document.querySelector("#tables tbody tr td:last-child").textContent === "0");
    await live(page);
    await page.hover("#charts figure:first-child canvas");
    await page.waitForSelector("#charts figure:first-child .key em");
  },

  // What was before the page was opened, and who invalidated what.
  async history(page) {
    await page.waitForFunction(() => Number(document.querySelector("#charts figure").dataset.points) > 2);
    // After a reload they are there at once.
    await page.reload();
    await page.waitForSelector("#state[data-state=live]");
    await page.waitForSelector("#charts figure:last-child[data-points]");
    const all = await points(page);
    assert.ok(all.every((own) => own > 1), `${all} points`);
    await page.selectOption("#range", "86400000");
    assert.match(page.url(), /span=86400000/);
    await page.selectOption("#range", "300000");
    await page.waitForSelector("#marks .mark.deleted");
    await said(page, "#verdict", "Last invalidation");
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
    await go(page, "invalidations");
    await said(page, "#sqlcached_invalidations", CANARY);
  },

  // A part of the time, by the keys and by the mouse; a reload shows it, too.
  async zoom(page) {
    await live(page);
    await page.focus("#charts canvas");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector("#charts figure:last-child .key em");
    await page.keyboard.press("+");
    await page.waitForFunction(() => document.querySelector("#range").value === "part");
    const part = await page.textContent("#part");
    assert.match(part, / to /);
    assert.match(page.url(), /from=\d+&to=\d+/);
    await axe(page);
    await page.reload();
    await page.waitForSelector("#state[data-state=live]");
    assert.strictEqual(await page.textContent("#part"), part);
    await page.focus("#charts canvas");
    await page.keyboard.press("Shift+ArrowLeft");
    assert.notStrictEqual(await page.textContent("#part"), part);
    await page.keyboard.press("0");
    await page.waitForFunction(() => document.querySelector("#range").value === "300000");
    const { x, y, width } = await page.locator("#charts canvas").first().boundingBox();
    await page.mouse.move(x + width * 0.6, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.9, y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction(() => document.querySelector("#range").value === "part");
    const [from, to] = ["from", "to"].map((name) => Number(new URLSearchParams(page.url().split("?")[1]).get(name)));
    assert.ok(Math.abs((to - from) / 1000 - 90) < 30, `${(to - from) / 1000} seconds`);
    await page.keyboard.press("0");
  },

  // Each page has an address: a reload shows it again, and the browser goes back. The keyboard reaches all of them.
  async navigation(page) {
    await live(page);
    await page.focus("#title");
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForSelector("body[data-page=tables] #tables");
    assert.strictEqual(await page.evaluate(() => document.activeElement.id), "title");
    await page.reload();
    await page.waitForSelector("body[data-page=tables] #tables");
    await page.goBack();
    await page.waitForSelector("body[data-page=overview]");
    await page.goForward();
    await page.waitForSelector("body[data-page=tables]");
    await page.keyboard.press("?");
    await said(page, "#details-title", "Keys");
    await axe(page);
    const wanted = await page.$$eval("#pages a", (links) => links.map((link) => link.textContent));
    const listed = await page.$$eval("#details-body td", (all) => all.map((cell) => cell.textContent));
    assert.deepStrictEqual(wanted.filter((title) => !listed.includes(title)), []);
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    assert.strictEqual(await page.evaluate(() => document.activeElement.id), "statement");
    await page.keyboard.press("Escape");
    await page.goto(`${url}#/no such page`);
    await page.waitForSelector("body[data-page=overview]");
  },

  // A table opens what is in it; the keyboard does, too.
  async tables(page) {
    for (const [table, key] of [["memcached", "k9"], [CANARY, CANARY], [SCRIPT, "<script>"]]) {
      await go(page, "tables");
      await page.locator("#tables td:first-child a").filter({ hasText: table }).focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction((name) => document.querySelector("#title").textContent === name, table);
      await said(page, "main", "owner");
      await said(page, "main [aria-label=Columns]", table === "memcached" ? "flags" : "k");
      await said(page, "main [aria-label=Indexes]", "pkey");
      await axe(page);
      await page.click("text=Keys and sizes");
      await said(page, "main", key);
      // How long rows have to live: all of them, in one bar or several.
      await page.waitForSelector("table[aria-label='Times to live'] tbody tr");
      const lives = await page.$$eval("table[aria-label='Times to live'] tbody tr", (rows) => rows.map((row) => row.textContent));
      assert.ok(lives.length > 0 && lives.every((life) => /^(up to|more than|without end)/.test(life)), JSON.stringify(lives));
      assert.match(await page.textContent(".oldest"), /^Oldest row: written \d+ (s|min|h)/);
      await axe(page);
    }
    await go(page, "table", "none");
    await said(page, "main", "there is no table of this name");
  },

  // Rows are found by values that are parameters, and deleted after it was said how many there are.
  async rows(page) {
    await go(page, "table", CANARY, "rows");
    await said(page, "#rows-words", "rows 1 to");
    await page.click("text=Add a condition");
    await page.selectOption("[aria-label=Column]", "v");
    await page.fill("[aria-label=Value]", "' OR 1 = 1 --");
    await page.keyboard.press("Enter");
    await said(page, "#rows-words", "no row");
    await page.fill("[aria-label=Value]", CANARY);
    await page.keyboard.press("Enter");
    await said(page, "#rows", CANARY);
    assert.deepStrictEqual((await cells(page, "rows")).map(([key]) => key), [CANARY]);
    // The address keeps the condition.
    await page.reload();
    await said(page, "#rows-words", "rows 1 to 1, the last");
    assert.strictEqual(await page.inputValue("[aria-label=Value]"), CANARY);
    await page.click("#delete-all");
    await said(page, "#cost", "1 row will be deleted");
    const asked = await page.textContent("#details-body");
    assert.ok(asked.includes('WHERE "v" = $1') && asked.includes(`$1 = ${CANARY}`) && /Scan|Index|native/i.test(asked), asked);
    await axe(page);
    assert.strictEqual(await page.evaluate(() => document.activeElement.id), "keep");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#details:not([open])", { state: "attached" });
    assert.deepStrictEqual((await cells(page, "rows")).map(([key]) => key), [CANARY]);
  },

  async slow(page) {
    for (const [name, words] of [["slow", CANARY], ["rules", "there is no expiry rule"], ["refusals", "nobody was refused"], ["buses", "no table names a bus"],
      ["sources", "no table names a source"], ["forwarded", "no statement was forwarded"], ["keys", "k"], ["sessions", "no SQL client is connected"], ["settings", "memory_mb"]]) {
      await go(page, name);
      await said(page, "main", words);
    }
    // A row opens all that is known of it.
    await go(page, "statements");
    await page.waitForSelector("#sqlcached_statements td button.link");
    await page.locator("#sqlcached_statements td button.link").first().click();
    await said(page, "#details-body", "native calls");
    await axe(page);
    await page.click("#close");
  },

  // What the page asks for its figures is in no list of the server.
  async own(page) {
    await go(page, "statements");
    await page.waitForSelector("#sqlcached_statements tbody tr");
    const listed = (await cells(page, "sqlcached_statements")).flat().join("\n");
    assert.ok(!/sqlcached_(history|tables|invalidations|limits)/.test(listed), listed);
    await ask(page, "SELECT count(*) FROM sqlcached_slow WHERE statement LIKE '%sqlcached_history%' AND statement NOT LIKE '%sqlcached_slow%'");
    assert.deepStrictEqual(await cells(page, "result"), [["0"]]);
  },

  // What is written once more in colours is what is in the box, to the last sign.
  async colours(page) {
    await go(page, "sql");
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
    // The box is on every page, and its result on its own.
    await go(page, "roles");
    assert.match(await ask(page, "SELECT 9007199254740993 AS big, 1.50::numeric AS n, true AS t, NULL AS none, '\\x00ff'::bytea AS raw"), /^SELECT 1 in/);
    assert.deepStrictEqual(await cells(page, "result"), [["9007199254740993", "1.5", "true", "NULL", "AP8="]]);
    assert.match(await ask(page, "SELECT nothing FROM memcached"), /^42703: .*nothing/);
    // The place of the error is in letters of one width, and the result of another statement is gone.
    assert.strictEqual(await page.textContent("#caret"), "SELECT nothing FROM memcached\n       ^");
    assert.match(await page.$eval("#caret", (own) => getComputedStyle(own).fontFamily), /monospace/);
    assert.strictEqual(await page.$("#result"), null);
    assert.match(await ask(page, "DELETE FROM memcached"), /^25006: /);
    await page.check("#write");
    assert.match(await ask(page, "DELETE FROM memcached WHERE key = 'none'"), /^DELETE 0 in/);
    await page.uncheck("#write");
    assert.match(await ask(page, "SELECT key FROM memcached WHERE key = 'none'"), /^SELECT 0 in/);
    assert.deepStrictEqual(await cells(page, "result"), [["no rows"]]);
    await page.click("#explain");
    await page.waitForFunction(() => /native|sqlite/.test(document.querySelector("#result td")?.textContent));
    const kept = (await cells(page, "earlier")).flat();
    assert.ok(kept.includes("SELECT nothing FROM memcached"), JSON.stringify(kept));
    assert.ok(decodeURIComponent(new URL(page.url()).hash).includes("key = 'none'"));
  },

  // A statement that was saved is there after a reload. A link brings it, and does not run it.
  async saved(page) {
    await page.fill("#statement", `SELECT 1 AS "${CANARY}"`);
    await page.fill("#save-name", CANARY);
    await page.press("#save-name", "Enter");
    await said(page, "#saved", CANARY);
    await page.goto(address("sql", "DELETE FROM memcached"));
    await page.reload();
    assert.strictEqual(await page.inputValue("#statement"), "DELETE FROM memcached");
    assert.match(await page.textContent("#outcome"), /has not run/);
    await page.locator("#saved a").click();
    await page.waitForFunction((text) => document.querySelector("#statement").value === text, `SELECT 1 AS "${CANARY}"`);
    await page.click("#saved button >> text=forget");
    assert.deepStrictEqual(await cells(page, "saved"), [["nothing is saved in this browser"]]);
    // The links of earlier versions bring a statement, too.
    await page.goto(`${url}#${encodeURIComponent("SELECT 'old link'")}`);
    await page.waitForFunction(() => document.querySelector("#statement").value === "SELECT 'old link'");
  },

  async drawing(page) {
    await ask(page, `SELECT '${CANARY.replaceAll("'", "''")}' AS name, 3 AS n UNION ALL SELECT 'b', 1`);
    await page.click("#as-chart");
    assert.deepStrictEqual((await cells(page, "result-place")).map((row) => row.slice(0, 2)), [[CANARY, "3"], ["b", "1"]]);
    await axe(page);
    await ask(page, "SELECT now() - n * interval '1 s' AS at, n * 2 AS cpu_ms FROM generate_series(1, 9) AS g(n)");
    await page.waitForSelector("#result-place figure canvas");
    await said(page, "#result-place", "cpu_ms");
    await axe(page);
    await page.click("#as-table");
    await page.waitForSelector("#result td");
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
    assert.strictEqual(await page.title(), "sqlcached: SQL");
    assert.strictEqual(await page.$$eval("img", (images) => images.length), 0);
  },

  async saving(page) {
    await ask(page, "SELECT 'a\"b,c' AS q, 1 AS n");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#csv")]);
    assert.strictEqual(fs.readFileSync(await download.path(), "utf8"), "q,n\r\n\"a\"\"b,c\",1\r\n");
  },
};

async function axe(page) {
  // In the page's own world: its policy lets no other script in.
  await page.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepStrictEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], page.url());
}

async function narrow(page, where) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  assert.ok(!wide, `${where}: the page is wider than the window`);
}

// Pages of rows; one row is deleted by its key, and some by a condition.
async function deleting(browser) {
  const { context, page, seen } = await watched(browser, {});
  await go(page, "table", "many", "rows");
  await said(page, "#rows-words", "rows 1 to 50");
  await page.click("#turns >> text=Next");
  await said(page, "#rows-words", "rows 51 to 100");
  await page.goBack();
  await said(page, "#rows-words", "rows 1 to 50");
  const [[first, group]] = await cells(page, "rows");
  await page.click("#rows tbody tr:first-child button");
  await said(page, "#cost", "1 row will be deleted");
  await page.click("#delete");
  await said(page, "#rows-words", "1 row deleted in");
  assert.notStrictEqual((await cells(page, "rows"))[0][0], first);
  await page.click("text=Add a condition");
  await page.selectOption("[aria-label=Column]", "page");
  await page.fill("[aria-label=Value]", group);
  await page.click("text=Show rows");
  await said(page, "#rows-words", "rows 1 to 9, the last");
  await page.click("#delete-all");
  await said(page, "#cost", "9 rows will be deleted");
  await page.click("#delete");
  await said(page, "#rows-words", "9 rows deleted in");
  assert.deepStrictEqual(await cells(page, "rows"), [["no row is like this"]]);
  assert.deepStrictEqual([seen.errors, seen.elsewhere], [[], []]);
  await context.close();
}

// Every page at every width, light and dark: nobody is kept out, and nothing is wider than the window.
async function everywhere(browser) {
  const { context, page, seen } = await watched(browser, {});
  await live(page);
  const names = await page.$$eval("#pages a", (links) => links.map((link) => [link.dataset.page]));
  const all = [...names, ...["", "rows", "keys"].map((side) => ["table", CANARY, side])];
  let looked = 0;
  for (const parts of all) {
    await go(page, ...parts);
    await page.waitForSelector("#state[data-state=live]");
    await page.waitForFunction(() => !/waiting for/.test(document.querySelector("main").textContent));
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        await narrow(page, `${parts.join("/")} at ${width}`);
        await axe(page);
        looked += 1;
      }
    }
  }
  assert.strictEqual(await page.$$eval("img", (images) => images.length), 0);
  assert.deepStrictEqual([seen.errors, seen.elsewhere], [[], []]);
  await context.close();
  console.log(`${all.length} pages, ${looked} times without a violation of axe-core`);
}

// Until the server answers, the page shows no figure, and says what it waits for.
async function waiting(browser) {
  const { context, page, seen } = await watched(browser, {});
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  await page.route("**/sql", async (route) => { await released; await route.continue(); });
  await go(page, "");
  assert.match(await page.textContent("#state"), /waiting for the first figures/);
  assert.doesNotMatch(await page.textContent("#strip"), /\d/);
  assert.match(await page.textContent("#timeline"), /waiting for sqlcached_invalidations/);
  await page.waitForSelector("#state[data-state=waiting]");
  await axe(page);
  await go(page, "tables");
  assert.deepStrictEqual(await cells(page, "tables"), [["waiting for sqlcached_tables"]]);
  release();
  await page.waitForSelector("#state[data-state=live]");
  await said(page, "#tables", "memcached");
  assert.deepStrictEqual(seen.errors, []);
  await context.close();
}

// A page that asks for no figures by itself says all the same whether the server is there.
async function quiet(browser) {
  const { context, page, seen } = await watched(browser, {});
  for (const parts of [["sql"], ["table", "many", "rows"]]) {
    await go(page, ...parts);
    await page.waitForSelector("#state[data-state=live]");
    await page.route("**/sql", (route) => route.abort());
    await page.waitForSelector("#state[data-state=lost]");
    await page.unroute("**/sql");
    await page.waitForSelector("#state[data-state=live]");
  }
  assert.deepStrictEqual(seen.elsewhere, []);
  await context.close();
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
  const rates = await page.evaluate(async () => {
    const figures = await import("/console/figures.js");
    return figures.between(0, Date.now()).flatMap((point) => Object.values(figures.operations(point)));
  });
  assert.ok(rates.length > 0 && rates.every((rate) => rate >= 0), JSON.stringify(rates));
  assert.deepStrictEqual(seen.errors, []);
}

// The figures of the time before this moment, which the server tells.
async function before(page, moment) {
  return page.evaluate(async (end) => {
    const figures = await import("/console/figures.js");
    return figures.between(0, end).filter((point) => point.moment < end && point.gets > 0).length;
  }, moment);
}

// A page that stays open while the server goes away and comes back. What was before is there, also for a browser that was
// not.
async function restart(browser) {
  const { page, seen } = await watched(browser, {});
  await live(page);
  const killed = Date.now();
  const known = await before(page, killed);
  assert.ok(known > 0, "no point has a get");
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
    const other = await watched(browser, {});
    await live(other.page);
    await other.page.waitForFunction(() => document.querySelectorAll("#charts figure")[0].dataset.points > 0);
    assert.ok(await before(other.page, killed) > 0, "the history ended with the process");
    assert.deepStrictEqual(other.seen.errors, []);
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
        await narrow(page, `${name}: ${check}`);
        console.log(`${name}: ${check}`);
        passed += 1;
      }
      // A statement that fails is an answer of 400, which Chromium mentions.
      const errors = seen.errors.filter((text) => !/status of 400/.test(text));
      assert.deepStrictEqual(errors, []);
      assert.deepStrictEqual(seen.elsewhere, []);
      await context.close();
    }
    for (const check of [deleting, everywhere, waiting, quiet, sleep, restart]) {
      await check(browser);
      console.log(check.name);
      passed += 1;
    }
  } finally {
    await browser.close();
  }
  console.log(`${passed} checks`);
}

main().catch((error) => { console.error(error); process.exit(1); });
