//! Calls that return rows, where SQLite cannot run them as they stand: in the list of a `SELECT`, and in `FROM` with
//! names of their own for the columns.
//!
//! `SELECT unnest(a), b FROM t` becomes a join of `t` with the table of the array's elements, which decodes the array
//! once. `FROM unnest(a) AS t(x)` becomes `FROM unnest(a) AS t`, and `x` becomes
//! `t.value`. The field of a row, `(f(x)).n`, is taken out of the JSON that stands for the row.

use std::collections::HashMap;

use pgcatalog::limits::UNNEST_ARRAYS_MAX;
use pgcatalog::system::{UNNEST, row_function, unnest_column, unnest_subscript};

use super::token::{Kind, Token, Tokens, unquoted};

/// More levels of parentheses than real statements have; deeper ones are left as they are.
const DEPTH_MAX: usize = 100;
/// More such calls in `FROM` than real statements have: each is one walk through the statement.
const TABLES_MAX: usize = 64;

/// Words that end the list of a `SELECT` or its `FROM`.
const CLAUSES: &[&str] = &[
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "WINDOW",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "RETURNING",
];
/// Words that cannot be the name given to a table.
const NOT_ALIAS: &[&str] = &[
    "ON", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "USING", "WITH", "SET", "AS",
    "LATERAL",
];
/// Calls that may stand in the list of a `SELECT`.
const IN_LIST: &[&str] = &["unnest", "generate_subscripts", "_pg_expandarray"];

/// What a call of the list is in its row of the table of elements.
fn value_of(function: &str, table: &str, array: usize) -> String {
    let (element, number) = (unnest_column(array), unnest_subscript(array));
    match function {
        "unnest" => format!("{table}.{element}"),
        "generate_subscripts" => format!("{table}.{number}"),
        _ => {
            format!("_row_expand({table}.{element}, iif({table}.{number} IS NULL, NULL, {table}.ordinality))")
        }
    }
}

/// The statement as SQLite can run it; `None` where it can as it stands.
pub(crate) fn rewritten(sql: &str) -> Option<String> {
    let tokens: Vec<Token<'_>> = Tokens::new(sql).collect();
    let mentions = tokens.iter().zip(tokens.iter().skip(1)).any(|(name, open)| {
        open.is_sign("(") && is_plain(name) && row_function(&unquoted(name.text)).is_some()
    });
    let fields = tokens
        .windows(3)
        .any(|three| three[0].is_sign(")") && three[1].is_sign(".") && three[2].kind == Kind::Word);
    if !mentions && !fields {
        return None;
    }
    let mut pass = Pass { sql, tokens: &tokens, edits: Vec::new(), made: 0, named: 0 };
    pass.fields();
    pass.scope(0, tokens.len(), 0);
    Some(pass.finish())
}

fn is_plain(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Quoted)
}

/// A piece of the text that becomes another.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

struct Pass<'t, 'a> {
    sql: &'a str,
    tokens: &'t [Token<'a>],
    edits: Vec<Edit>,
    /// Tables made so far, which need names.
    made: usize,
    /// Calls in `FROM` so far.
    named: usize,
}

impl Pass<'_, '_> {
    fn edit(&mut self, start: usize, end: usize, text: impl Into<String>) {
        self.edits.push(Edit { start, end, text: text.into() });
    }

    fn finish(mut self) -> String {
        // Edits at one place stay in the order in which they were made.
        self.edits.sort_by_key(|edit| (edit.start, edit.end));
        let mut out = String::with_capacity(self.sql.len() + 64);
        let mut at = 0;
        for edit in &self.edits {
            if edit.start < at {
                continue;
            }
            out.push_str(&self.sql[at..edit.start]);
            out.push_str(&edit.text);
            at = edit.end;
        }
        out.push_str(&self.sql[at..]);
        out
    }

    fn is_sign(&self, at: usize, sign: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_sign(sign))
    }

    fn is_word(&self, at: usize, words: &[&str]) -> bool {
        self.tokens.get(at).is_some_and(|token| words.iter().any(|word| token.is(word)))
    }

    /// The place of the parenthesis that closes the one at `open`.
    fn close(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Sign if token.is_sign("(") => depth += 1,
                Kind::Sign if token.is_sign(")") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The place of the parenthesis that opens the one closed at `close`.
    fn open(&self, close: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in (0..=close).rev() {
            let token = &self.tokens[at];
            match token.kind {
                Kind::Sign if token.is_sign(")") => depth += 1,
                Kind::Sign if token.is_sign("(") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// `(row).field` is a member of the JSON that stands for the row.
    fn fields(&mut self) {
        for close in 0..self.tokens.len().saturating_sub(2) {
            let field = &self.tokens[close + 2];
            if !self.is_sign(close, ")") || !self.is_sign(close + 1, ".") || field.kind != Kind::Word {
                continue;
            }
            let Some(open) = self.open(close) else { continue };
            // Behind a name the parenthesis is a call's, and a call's field needs one more.
            if open.checked_sub(1).is_some_and(|before| self.tokens[before].kind == Kind::Quoted) {
                continue;
            }
            let (start, end, point) = (self.tokens[open].start, field.end(), self.tokens[close].end());
            let path = format!(" ->> '$.{}')", field.text.to_ascii_lowercase());
            self.edit(start, start, "(");
            self.edit(point, end, path);
        }
    }

    /// Everything between two parentheses, or the whole statement.
    fn scope(&mut self, begin: usize, end: usize, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let mut at = begin;
        while at < end {
            if self.is_sign(at, "(") {
                let close = self.close(at).unwrap_or(end).min(end);
                self.scope(at + 1, close, depth + 1);
                at = close;
            } else if self.is_word(at, &["SELECT"]) {
                self.select(at, end);
            }
            at += 1;
        }
    }

    /// The place of the next clause word of the query at this level, or `end`.
    fn clause_end(&self, begin: usize, end: usize) -> usize {
        let mut at = begin;
        while at < end {
            if self.is_sign(at, "(") {
                at = self.close(at).unwrap_or(end);
            } else if self.is_word(at, CLAUSES) || self.is_sign(at, ";") {
                // `IS DISTINCT FROM`, `trim(.. FROM ..)` have the word in another sense.
                let distinct =
                    self.is_word(at, &["FROM"]) && at > begin && self.is_word(at - 1, &["DISTINCT"]);
                if !distinct {
                    return at;
                }
            }
            at += 1;
        }
        end
    }

    /// The place behind the whole query, its relatives by `UNION` left out.
    fn query_end(&self, begin: usize, end: usize) -> usize {
        let mut at = begin;
        while at < end {
            if self.is_sign(at, "(") {
                at = self.close(at).unwrap_or(end);
            } else if self.is_word(at, &["UNION", "EXCEPT", "INTERSECT"]) || self.is_sign(at, ";") {
                return at;
            }
            at += 1;
        }
        end
    }

    fn select(&mut self, select: usize, end: usize) {
        let list_end = self.clause_end(select + 1, end);
        let query_end = self.query_end(select + 1, end);
        let from = self.is_word(list_end, &["FROM"]).then_some(list_end);
        let from_end = from.map_or(list_end, |from| self.clause_end(from + 1, end));
        if let Some(from) = from {
            self.from(from, from_end, select, query_end);
        }
        self.list(select + 1, list_end, from_end, from.is_some());
    }

    /// Gives the tables of a `FROM` their columns' names.
    fn from(&mut self, from: usize, from_end: usize, select: usize, query_end: usize) {
        let mut at = from + 1;
        while at < from_end {
            let open = at + 1;
            let name = self.tokens[at];
            let item = self.is_sign(open, "(") && is_plain(&name) && !self.is_sign(at - 1, ".");
            let starts = self.is_word(at - 1, &["FROM", "JOIN", "LATERAL"]) || self.is_sign(at - 1, ",");
            let function = row_function(&unquoted(name.text)).filter(|_| item && starts);
            if let (Some(function), Some(close)) = (function, self.close(open))
                && self.named < TABLES_MAX
            {
                self.named += 1;
                if self.is_word(at - 1, &["LATERAL"]) {
                    let lateral = self.tokens[at - 1];
                    self.edit(lateral.start, lateral.end(), "");
                }
                at = self.table(function.name, function.columns, close, (select, query_end));
            } else if self.is_sign(at, "(") {
                at = self.close(at).unwrap_or(from_end);
            }
            at += 1;
        }
    }

    /// What stands behind a call in `FROM`: `[WITH ORDINALITY] [AS] alias [(column, ...)]`. Returns the last place.
    fn table(
        &mut self,
        function: &str,
        columns: &[&str],
        close: usize,
        (select, query_end): (usize, usize),
    ) -> usize {
        let mut at = close + 1;
        let ordinality = self.is_word(at, &["WITH"]) && self.is_word(at + 1, &["ORDINALITY"]);
        if ordinality {
            at += 2;
        }
        let alias_at = at + usize::from(self.is_word(at, &["AS"]));
        let alias = self.tokens.get(alias_at).filter(|token| {
            is_plain(token) && !self.is_word(alias_at, CLAUSES) && !self.is_word(alias_at, NOT_ALIAS)
        });
        let name = alias.map_or_else(|| function.to_owned(), |alias| unquoted(alias.text));
        let mut last = if alias.is_some() { alias_at } else { at - 1 };
        let mut names = HashMap::new();
        let real = columns.iter().copied().chain(ordinality.then_some("ordinality"));
        let list = (alias.is_some() && self.is_sign(last + 1, "(")).then(|| self.close(last + 1)).flatten();
        if let Some(list_end) = list {
            let given = self.tokens[last + 2..list_end].iter().filter(|token| is_plain(token));
            names.extend(given.zip(real).map(|(given, real)| (unquoted(given.text).to_lowercase(), real)));
            last = list_end;
        } else if let [column] = columns {
            names.insert(name.to_lowercase(), *column);
        }
        let start = self.tokens[close].end();
        self.edit(start, self.tokens[last].end(), format!(" AS \"{name}\""));
        self.rename(select, query_end, (close + 1, last + 1), &name, &names);
        last
    }

    /// Puts the real names of a table's columns in the place of those that the statement gave.
    fn rename(
        &mut self,
        begin: usize,
        end: usize,
        (own_begin, own_end): (usize, usize),
        table: &str,
        names: &HashMap<String, &str>,
    ) {
        let items = self.items(begin, self.clause_end(begin + 1, end));
        for at in (begin..end).filter(|at| !(own_begin..own_end).contains(at)) {
            let token = self.tokens[at];
            let Some(column) = Some(token)
                .filter(is_plain)
                .and_then(|token| names.get(&unquoted(token.text).to_lowercase()))
            else {
                continue;
            };
            let qualified = self.is_sign(at.wrapping_sub(1), ".");
            let owner =
                qualified && at >= 2 && unquoted(self.tokens[at - 2].text).eq_ignore_ascii_case(table);
            if self.is_sign(at + 1, ".") || self.is_sign(at + 1, "(") || (qualified && !owner) {
                continue;
            }
            if self.is_word(at.wrapping_sub(1), &["AS"]) {
                continue;
            }
            // A name that is a whole item of the list names the result's column.
            let first = if qualified { at - 2 } else { at };
            let is_item =
                items.contains(&first) && (self.is_sign(at + 1, ",") || self.is_word(at + 1, &["FROM"]));
            let label = if is_item { format!(" AS {}", token.text) } else { String::new() };
            let text = if owner { format!("\"{column}\"") } else { format!("\"{table}\".\"{column}\"") };
            self.edit(token.start, token.end(), text + &label);
        }
    }

    /// Where the items of the list behind `SELECT` begin.
    fn items(&self, select: usize, list_end: usize) -> Vec<usize> {
        let mut found = vec![select + 1];
        let mut at = select + 1;
        while at < list_end {
            if self.is_sign(at, "(") {
                at = self.close(at).unwrap_or(list_end);
            } else if self.is_sign(at, ",") {
                found.push(at + 1);
            }
            at += 1;
        }
        found
    }

    /// Calls in the list of a `SELECT`: each row of its `FROM` is there once for each row of the longest call.
    fn list(&mut self, begin: usize, end: usize, from_end: usize, has_from: bool) {
        let table = format!("_rows{}", self.made);
        let mut arrays: Vec<String> = Vec::new();
        let mut at = begin;
        while at < end {
            let is_query = self.is_sign(at, "(") && self.is_word(at + 1, &["SELECT", "WITH"]);
            if is_query {
                at = self.close(at).unwrap_or(end);
            } else if let Some(close) = self.list_call(at, &table, &mut arrays) {
                at = close;
            }
            at += 1;
        }
        if arrays.is_empty() {
            return;
        }
        self.made += 1;
        let join = if has_from { "," } else { " FROM" };
        let place = self.tokens[from_end - 1].end();
        let text = format!("{join} {UNNEST}({}) AS {table}", arrays.join(", "));
        self.edit(place, place, text);
    }

    /// One call of a list; its array is put among those of the list. Returns the place of the call's end.
    fn list_call(&mut self, at: usize, table: &str, arrays: &mut Vec<String>) -> Option<usize> {
        let name = self.tokens[at];
        let function =
            IN_LIST.iter().find(|known| is_plain(&name) && **known == unquoted(name.text).to_lowercase())?;
        if !self.is_sign(at + 1, "(") {
            return None;
        }
        let close = self.close(at + 1)?;
        let array_end = self.argument_end(at + 2, close);
        if array_end <= at + 2 {
            // A call without arguments is SQLite's to refuse.
            return None;
        }
        let array = &self.sql[self.tokens[at + 2].start..self.tokens[array_end - 1].end()];
        let known = arrays.iter().position(|known| known == array);
        let place = known.unwrap_or(arrays.len());
        if place >= UNNEST_ARRAYS_MAX {
            return None;
        }
        if known.is_none() {
            arrays.push(array.to_owned());
        }
        // A second argument is the dimension, of which there is one.
        self.edit(name.start, self.tokens[close].end(), value_of(function, table, place));
        Some(close)
    }

    /// The place behind the first argument of a call.
    fn argument_end(&self, begin: usize, close: usize) -> usize {
        let mut at = begin;
        while at < close {
            if self.is_sign(at, "(") {
                at = self.close(at).unwrap_or(close);
            } else if self.is_sign(at, ",") {
                return at;
            }
            at += 1;
        }
        close
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_become_joins() {
        for (sql, expected) in [
            ("SELECT a FROM t", None),
            (
                "SELECT b, unnest(a) AS x FROM t WHERE b > 1",
                Some("SELECT b, _rows0._element0 AS x FROM t, _unnest(a) AS _rows0 WHERE b > 1"),
            ),
            (
                "SELECT unnest(i.k) n, generate_subscripts(i.k, 1) AS ord FROM (SELECT 1) i",
                Some(
                    "SELECT _rows0._element0 n, _rows0._number0 AS ord FROM (SELECT 1) i, _unnest(i.k) AS _rows0",
                ),
            ),
            ("SELECT unnest('{a}')", Some("SELECT _rows0._element0 FROM _unnest('{a}') AS _rows0")),
            (
                "SELECT (_pg_expandarray(i.k)).n FROM i",
                Some(
                    "SELECT ((_row_expand(_rows0._element0, iif(_rows0._number0 IS NULL, NULL, _rows0.ordinality))) ->> '$.n') FROM i, _unnest(i.k) AS _rows0",
                ),
            ),
            ("SELECT x FROM unnest(e) AS t(x)", Some("SELECT \"t\".\"value\" AS x FROM unnest(e) AS \"t\"")),
            (
                "SELECT k.attnum, k.ord FROM LATERAL unnest(c) WITH ORDINALITY AS k(attnum, ord) WHERE ord > 1",
                Some(
                    "SELECT k.\"value\" AS attnum, k.\"ordinality\" AS ord FROM  unnest(c) AS \"k\" WHERE \"k\".\"ordinality\" > 1",
                ),
            ),
            (
                "(SELECT 'x.' || x FROM unnest(r) x) x",
                Some("(SELECT 'x.' || \"x\".\"value\" FROM unnest(r) AS \"x\") x"),
            ),
            (
                "SELECT * FROM generate_series(0, 3) s, p WHERE p[s] = 1",
                Some("SELECT * FROM generate_series(0, 3) AS \"s\", p WHERE p[\"s\".\"value\"] = 1"),
            ),
        ] {
            assert_eq!(rewritten(sql).as_deref(), expected, "{sql}");
        }
    }
}
