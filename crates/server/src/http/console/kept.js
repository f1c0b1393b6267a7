// What the browser keeps of statements: the last ones that ran, and those that somebody saved by a name.

const RAN = "sqlcached statements";
const SAVED = "sqlcached saved statements";
const RAN_MAX = 50;
const SAVED_MAX = 200;

function read(key) {
  try {
    const all = JSON.parse(localStorage.getItem(key));
    return Array.isArray(all) ? all : [];
  } catch { return []; }
}

// Whether the browser keeps it: it may be told to keep nothing.
function write(key, all) {
  try { localStorage.setItem(key, JSON.stringify(all)); return true; } catch { return false; }
}

export const ran = () => read(RAN).filter((text) => typeof text === "string");
export const remember = (text) => write(RAN, [text, ...ran().filter((other) => other !== text)].slice(0, RAN_MAX));

export const saved = () => read(SAVED).filter(({ name, text }) => typeof name === "string" && typeof text === "string");
const others = (name) => saved().filter((own) => own.name !== name);
const byName = (one, other) => one.name < other.name ? -1 : 1;
export const save = (name, text) => write(SAVED, [...others(name), { name, text }].sort(byName).slice(0, SAVED_MAX));
export const forget = (name) => write(SAVED, others(name));
