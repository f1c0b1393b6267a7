// Statements for the server. What the page asks to show its figures is not listed there: only what somebody types is.

// Nobody answered: the server is away.
export class Away extends Error {}

// The server's answer is an error.
export class Refused extends Error {}

// Whole numbers beyond 2^53 keep their digits, where the browser shows the source of a number.
function exact(_, value, context) {
  const long = typeof value === "number" && !Number.isSafeInteger(value) && context && /^-?\d+$/.test(context.source);
  return long ? context.source : value;
}

async function send(request, signal) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request), signal };
  try {
    const response = await fetch("/sql", options);
    return [response, await response.text()];
  } catch (error) {
    throw error.name === "AbortError" ? error : new Away(error.message);
  }
}

// Runs a statement: its columns and rows. It may only read, unless `write` says otherwise.
export async function sql(statement, { write = false, parameters = [], signal, listed = true } = {}) {
  const [response, text] = await send({ statement, parameters, write, listed }, signal);
  let answer;
  try { answer = JSON.parse(text, exact); } catch { answer = { error: { message: text.trim() || response.statusText } }; }
  if (answer.error) throw Object.assign(new Refused(answer.error.message), answer.error);
  return answer;
}

// The same for the page's own figures.
export const look = (statement, parameters = []) => sql(statement, { parameters, listed: false });

// Whether the role may read the rows of a table. The page does not ask for what it may not have: that would be a refusal.
export async function mayRead(table) {
  const asked = await look("SELECT has_table_privilege(oid, 'SELECT') FROM sqlcached_tables WHERE table_name = $1", [table]);
  return asked.rows[0]?.[0] === true;
}

// Whether the role is shown what all others do (pg_monitor): each second has a row in the history, for those.
export async function monitors() {
  const asked = await look("SELECT (SELECT count(*) FROM sqlcached_history) > 0 OR now() - pg_postmaster_start_time() < interval '5 s'");
  return asked.rows[0][0] === true;
}

export const NOT_READ = "there is no such table, or your role may not read its rows";
export const NOT_SHOWN = "your role is not a member of pg_monitor, and is not shown what others do";

// A row as an object by the names of its columns.
export const named = ({ columns, rows }) => rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));

// A name as a statement has it. Values are never written into a statement: they are its parameters.
export const identifier = (name) => `"${name.replaceAll('"', '""')}"`;

// Bytes as a parameter or a value has them.
export const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
export const fromBase64 = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
