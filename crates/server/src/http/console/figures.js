// The server's figures over time, as sqlcached_history has them: the last seconds, and the last minutes before these.
import { look, named } from "./ask.js";
import { moment } from "./words.js";

const COLUMNS = `at, seconds, hits, misses, gets, sets, deletes, others, postgresql_statements + memcached_statements + http_statements AS statements,
  expired, evicted, invalidated, flushed, read_bytes, written_bytes, cpu_ms, connections, rows, row_bytes, segment_bytes, index_bytes, tables`;
// As many points as the server keeps, by their seconds.
const KEPT = { 1: 300, 60: 1440 };
// A stretch that is longer is shown in minutes, in milliseconds.
const IN_SECONDS = 20 * 60_000;

const rings = { 1: [], 60: [] };

function take(resolution, rows) {
  const points = rows.map((row) => ({ ...row, when: row.at, moment: moment(row.at), tables: JSON.parse(row.tables) }));
  rings[resolution] = [...rings[resolution], ...points].slice(-KEPT[resolution]);
}

// Reads what is newer than the newest point that is here.
async function follow(resolution) {
  const last = rings[resolution].at(-1);
  const [newer, parameters] = last ? ["AND at > $1", [last.when]] : ["", []];
  const statement = `SELECT ${COLUMNS} FROM sqlcached_history WHERE resolution = ${resolution} ${newer} ORDER BY at`;
  const answer = await look(statement, parameters);
  // Another answer may have been faster.
  if (rings[resolution].at(-1) === last) take(resolution, named(answer));
}

export const followSeconds = () => follow(1);
export const followMinutes = () => follow(60);
export const last = () => rings[1].at(-1);
export const has = (resolution) => rings[resolution].length > 0;

// The last seconds together, of this many.
export const lastly = (seconds) => rings[1].filter(({ moment: at }) => at > (last()?.moment ?? 0) - seconds * 1000);

// The points between two moments, with one more at each end, so that a line does not end within the chart.
export function between(from, to) {
  const [seconds, minutes] = [rings[1], rings[60]];
  const begin = seconds.length && to - from <= IN_SECONDS ? seconds[0].moment - 1000 * seconds[0].seconds : Infinity;
  const all = [...minutes.filter((point) => point.moment <= begin), ...begin < Infinity ? seconds : []];
  const first = all.findIndex((point) => point.moment >= from);
  const end = all.findIndex((point) => point.moment > to);
  return first < 0 ? [] : all.slice(Math.max(0, first - 1), end < 0 ? all.length : end + 1);
}

const share = (hits, misses) => hits + misses > 0 ? hits / (hits + misses) : NaN;
const each = (point, ...names) => Object.fromEntries(names.map((name) => [name, point[name] / point.seconds]));

// What the charts show of a point.
export const hitRatio = ({ hits, misses }) => ({ "hit ratio": share(hits, misses) });
export const operations = (point) => each(point, "gets", "sets", "deletes", "others", "statements");
export const removed = (point) => each(point, "expired", "evicted", "invalidated", "flushed");
export const network = (point) => ({ received: point.read_bytes / point.seconds, sent: point.written_bytes / point.seconds });
export const processor = (point) => ({ cpu: point.cpu_ms / 1000 / point.seconds });
export function memory({ tables, segment_bytes: all }) {
  const others = all - Object.values(tables).reduce((sum, own) => sum + own, 0);
  return others > 0 ? { ...tables, "all others": others } : tables;
}

// What was counted in some points under these names.
export const sum = (points, ...names) => points.reduce((all, point) => names.reduce((own, name) => own + point[name], all), 0);
