// The console: which page is shown, the keys, and the turn of each second in which the page asks for its figures.
import { look, Refused } from "./ask.js";
import { address, at, button, close, link, make, open } from "./dom.js";
import * as editor from "./editor.js";
import { lists } from "./lists.js";
import { overview } from "./overview.js";
import { explain, query, stop, submit } from "./query.js";
import { attend, isAway, tellState } from "./state.js";
import { table } from "./table.js";
import { tables } from "./tables.js";

const PERIOD = 1000;
// All pages: a page has a name in the address, a title, a key after "g", and what opens it. A page of another has no
// link of its own.
const PAGES = [overview, query, tables, table, ...lists];

let page = null;
let shown = null;
let turns = 0;
// The turn that is under way, of which page.
let turning = null;

// --- Pages ---------------------------------------------------------------------------------------------------------

// What an address names: a page, its parts, what is asked of it. An address of another kind is a statement.
function place() {
  const hash = location.hash.slice(1);
  try {
    if (hash && !hash.startsWith("/")) return { name: "sql", parts: [decodeURIComponent(hash)], query: {} };
    const [path, asked = ""] = hash.replace(/^\//, "").split("?");
    const [name, ...parts] = path.split("/").map(decodeURIComponent);
    return { name, parts, query: Object.fromEntries(new URLSearchParams(asked)) };
  } catch { return { name: "", parts: [], query: {} }; }
}

function show(moved) {
  const wanted = place();
  shown = PAGES.find(({ name }) => name === wanted.name) ?? overview;
  page = shown.open(wanted);
  turns = 0;
  const title = make("h2", { id: "title", tabIndex: -1 }, page.title ?? shown.title);
  const words = make("p", { id: "refused", className: "error", role: "status", hidden: true });
  at("main").replaceChildren(title, words, ...[page.box].flat());
  document.title = `sqlcached: ${shown.title}`;
  document.body.dataset.page = shown.name || "overview";
  for (const own of at("pages").querySelectorAll("a")) {
    if (own.dataset.page === (shown.of ?? shown.name)) own.setAttribute("aria-current", "page"); else own.removeAttribute("aria-current");
  }
  at("menu").open = false;
  // Who walks with the keyboard goes on in the page; who types in the box stays there.
  if (moved && document.activeElement !== at("statement")) title.focus({ preventScroll: true });
  turn();
}

function drawPages() {
  at("pages").append(...PAGES.filter(({ of }) => !of).map(({ name, title, key }) =>
    make("li", {}, link(title, address(name), { "data-page": name, "aria-keyshortcuts": key ? `g ${key}` : undefined }))));
}

// --- Turns ---------------------------------------------------------------------------------------------------------

// One turn of the page: what it asks in this second. A turn that is still under way is not begun again.
async function turn() {
  const own = page;
  if (document.hidden || turning === own) return;
  turning = own;
  const wasAway = isAway();
  try {
    // A page that asks for nothing asks whether the server is there.
    await attend(Promise.all([own.turn?.(turns), own.quiet ? look("SELECT 1") : null]));
    at("refused").hidden = true;
    // Who was away has other tables, and all is asked for again.
    turns = isAway() || wasAway && turns > 0 ? 0 : turns + 1;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    at("refused").textContent = error.message;
    at("refused").hidden = false;
  } finally {
    if (turning === own) turning = null;
  }
}

async function run() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PERIOD));
    tellState();
    turn();
  }
}

// --- Keys ----------------------------------------------------------------------------------------------------------

// The keys by where they are pressed. Those of the pages stand in their table.
const KEYS = [
  ["", () => [["/", "to the box for SQL"], ["?", "this list"], ...PAGES.filter(({ key }) => key).map(({ key, title }) => [`g ${key}`, title])]],
  ["In the box for SQL", () => [["Ctrl Enter", "run the statement"], ["Ctrl Space", "complete the word"], ["Escape", "leave the box"]]],
  ["On a chart", () => [
    ["Left, Right", "the point before, the next point"], ["+, -", "closer, farther"], ["Shift Left, Shift Right", "earlier, later"],
    ["0, Escape", "the whole time again"],
  ]],
  ["On the timeline", () => [["Left, Right", "the mark before, the next mark"], ["Enter", "open it"]]],
];

const keyLine = ([keys, words]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, keys)), make("td", {}, words));

function openKeys() {
  open("Keys", ...KEYS.flatMap(([where, lines]) =>
    [where && make("h3", {}, where), make("table", { className: "keys" }, make("tbody", {}, ...lines().map(keyLine)))]));
}

// Whether "g" was the key before, which waits for the key of a page.
let going = false;

function press(event) {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const wanted = going && PAGES.find(({ key }) => key === event.key);
  going = event.key === "g" && !going;
  const act = wanted ? () => { location.hash = address(wanted.name); } : { "/": () => at("statement").focus(), "?": openKeys }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

// --- The start -----------------------------------------------------------------------------------------------------

editor.listen(submit);
at("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
at("explain").addEventListener("click", explain);
at("stop").addEventListener("click", stop);
at("skip").addEventListener("click", () => at("title").focus());
at("keys").addEventListener("click", openKeys);
at("details-close").append(button("Close", close, { id: "close" }));
document.addEventListener("keydown", press);
document.addEventListener("visibilitychange", turn);
addEventListener("hashchange", () => show(true));
for (const again of [matchMedia("(prefers-color-scheme: dark)"), globalThis]) {
  again.addEventListener(again === globalThis ? "resize" : "change", () => page.draw?.());
}
drawPages();
show(false);
run();
