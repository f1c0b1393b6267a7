// Numbers, times and values as people read them. A figure has one form wherever it is shown.

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit < units.length - 1) { value /= base; unit += 1; }
  const digits = unit === 0 && Number.isInteger(value) ? 0 : Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toFixed(digits) + units[unit];
}

// What was not measured is no number.
const known = (show) => (value) => Number.isFinite(Number(value)) && value !== null ? show(Number(value)) : "–";

export const count = known((value) => scaled(value, 1000, ["", " k", " M", " G", " T"]));
export const bytes = known((value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]));
export const percent = known((value) => `${(value * 100).toFixed(1)} %`);
export const milliseconds = known((value) => value.toFixed(value < 10 ? 3 : value < 100 ? 1 : 0));
export const whole = known((value) => value.toLocaleString("en"));
export const rows = (number) => `${whole(number)} ${Number(number) === 1 ? "row" : "rows"}`;

export function duration(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${Math.floor(seconds)} s`;
}
export const ago = (ms) => ms < 1500 ? "just now" : `${duration(ms / 1000)} ago`;

// PostgreSQL's form of a moment, as the browser's.
export const moment = (text) => Date.parse(text.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
// The time of a day; with the day where it is not today.
export function clock(text) {
  const time = new Date(typeof text === "string" ? moment(text) : text);
  const today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString();
}

// A value of a result: bytes as their base64, everything else as its text.
export function shown(value) {
  return typeof value === "object" && value !== null ? value.base64 ?? JSON.stringify(value) : String(value);
}

export const isNumber = (type) => /^(smallint|integer|bigint|real|double precision|numeric|oid)/.test(type);
export const isMoment = (type) => /^timestamp/.test(type);

// The name of a column as a heading: the word that docs/introspection.md has for it.
export const heading = (name) => name.replaceAll("_", " ");

// The items of an array, which comes as JSON.
function listed(value) {
  try { return JSON.parse(value).join(", "); } catch { return shown(value); }
}

// How a figure of the system tables is shown, by the name and the type of its column.
export function formOf({ name, type }) {
  if (isMoment(type)) return clock;
  if (type.endsWith("[]")) return listed;
  if (!isNumber(type) || /^(pid|oid|resolution)$/.test(name)) return shown;
  if (/(^|_)bytes$/.test(name)) return bytes;
  if (/_ms$/.test(name)) return milliseconds;
  return /^(share|hit_ratio)$/.test(name) ? percent : count;
}
