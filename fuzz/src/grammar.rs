//! Bytes to statements: each byte chooses a branch.

/// Deeper than this only first branches are taken, which do not branch further.
const DEPTH_MAX: usize = 9;

/// A statement stops growing here.
const BYTES_MAX: usize = 16 << 10;

/// What may stand for a name in braces. The first branch of each leads to an end.
#[rustfmt::skip]
const RULES: &[(&str, &[&str])] = &[
    ("statement", &[
        "SELECT {columns} FROM {from} {where} {tail}", "SELECT {columns} FROM {from} {where} {tail}",
        "INSERT {or} INTO {table} VALUES ({expr}, {expr}, {expr}) {conflict} {returning}",
        "INSERT INTO {table} (a, b) VALUES ({expr}, {expr}), ({expr}, {expr}) {conflict} {returning}",
        "INSERT INTO {table} (c, b, a) SELECT {expr}, {expr}, {expr} FROM {from} {where} {conflict}",
        "REPLACE INTO {table} SELECT * FROM {table} {where}",
        "UPDATE {or} {table} SET {column} = {expr} {where} {returning}",
        "UPDATE {table} SET {column} = {expr}, {column} = {expr} FROM {from} {where} {returning}",
        "UPDATE {table} SET ({column}, {column}) = (SELECT {expr}, {expr} FROM {from}) {where}",
        "DELETE FROM {table} {where} {returning}", "DELETE FROM {table} AS x {where} ORDER BY {expr} LIMIT {expr}",
        "{define}", "UPDATE {table} SET c = {expr}, b = {literal} {where} {returning}",
        "WITH w AS ({query}) {statement}", "EXPLAIN {statement}", "EXPLAIN QUERY PLAN {statement}",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {columns} FROM n, {from} {tail}",
        "{query} UNION ALL {query} {tail}", "{query} EXCEPT {query}", "VALUES ({expr}), ({expr})",
        "{statement}; {statement}", "{soup}{soup}{soup}", "{soup}{statement}", "SELECT {many}1{many}", "{expr}",
    ]),
    ("define", &[
        "DROP TABLE {table}", "CREATE TABLE {new} ({definition}, {definition}) {with}",
        "CREATE TABLE IF NOT EXISTS {table} ({definition}, {definition}, PRIMARY KEY ({column}, {column})) {with}",
        "CREATE {unique} INDEX {index} ON {table} ({column}, {column} DESC)", "DROP INDEX {exists} {index}",
        "CREATE {unique} INDEX {index} ON {table} ({expr})", "TRUNCATE TABLE {table}", "TRUNCATE {table}",
        "ALTER TABLE {table} SET ({option} = {expr})", "ALTER TABLE {table} RESET ({option})",
        "ALTER TABLE {table} ADD COLUMN {definition}", "ALTER TABLE {table} RENAME TO {new}",
        "DROP TABLE {exists} {table}, {table}", "CREATE VIEW {new} AS {query}", "CREATE TABLE {new} AS {query}",
        "CREATE TRIGGER x AFTER INSERT ON {table} BEGIN {statement}; END", "PRAGMA {soup}", "VACUUM INTO 'x'",
        "ATTACH 'x' AS y", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ANALYZE", "REINDEX", "SET {soup} = 1",
        "CREATE VIRTUAL TABLE x USING {table}", "CREATE TEMP TABLE {new} (a)", "COPY {table} FROM STDIN",
    ]),
    ("query", &["SELECT {columns} FROM {from} {where}", "VALUES (1, 2, 3)", "SELECT {expr}, {expr}, {expr}"]),
    ("columns", &["*", "count(*)", "{expr}", "{expr}, {expr} AS b", "x.*", "rowid", "DISTINCT {expr}", "{table}.*"]),
    ("from", &[
        "{table}", "{table}", "{table} x", "{table} x JOIN {table} y ON {expr}", "{table} x, {table} y", "({query}) x",
        "{table} x LEFT JOIN {table} y USING ({column})", "{table} NATURAL JOIN {table}", "json_each({expr})", "w",
        "generate_series(1, 5)", "pragma_table_info('t')", "{table} FULL OUTER JOIN {table} y ON {expr}", "{table}({expr})",
        "{table} INDEXED BY {index}", "sqlite_schema", "{table} x RIGHT JOIN {table} y ON x.{column} = y.{column}",
    ]),
    ("where", &[
        "", "WHERE {column} = {literal}", "WHERE {expr}", "WHERE {column} {compare} {expr} AND {column} {compare} {expr}",
        "WHERE {column} IN ({literal}, {literal}, {literal})", "WHERE {column} IN ({query})", "WHERE EXISTS ({query})",
        "WHERE {column} LIKE {literal}", "WHERE {column} BETWEEN {expr} AND {expr}", "WHERE {column} IS NULL",
        "WHERE ({column}, {column}) {compare} ({expr}, {expr})", "WHERE a = {literal} AND b = {literal}",
        "WHERE {column} IS NOT {literal} OR {column} GLOB {literal}", "WHERE NOT {expr}", "WHERE rowid = {literal}",
    ]),
    ("tail", &[
        "", "ORDER BY {expr}", "ORDER BY {column} DESC, {column}", "LIMIT {expr}", "LIMIT 2 OFFSET {expr}",
        "GROUP BY {column} HAVING {expr}", "GROUP BY {expr} ORDER BY {expr} NULLS LAST", "FOR UPDATE", "ORDER BY 1, 2",
    ]),
    ("or", &["", "OR REPLACE", "OR IGNORE", "OR ABORT", "OR ROLLBACK", "OR FAIL"]),
    ("conflict", &[
        "", "ON CONFLICT DO NOTHING", "ON CONFLICT ({column}) DO UPDATE SET {column} = {expr}",
        "ON CONFLICT (a, b) DO UPDATE SET {column} = excluded.{column} {where}", "ON CONFLICT (c) DO NOTHING",
        "ON CONFLICT (a) DO UPDATE SET {column} = {expr}, {column} = excluded.{column} {where}",
        "ON CONFLICT ON CONSTRAINT {index} DO NOTHING",
    ]),
    ("returning", &["", "RETURNING *", "RETURNING {expr}, {column}", "RETURNING count(*)", "RETURNING rowid, excluded.a"]),
    ("definition", &[
        "a INT", "{column} {type}", "{column} {type} PRIMARY KEY", "{column} {type} NOT NULL DEFAULT {literal}",
        "{column} {type} UNIQUE", "{column} {type} CHECK ({expr})", "{column} {type} REFERENCES t (a)", "{new} {type}",
        "{column} {type} DEFAULT ({expr})", "{column} {type} COLLATE NOCASE", "{column} AS ({expr})",
    ]),
    ("type", &["INT", "TEXT", "REAL", "BLOB", "NUMERIC", "ANY", "VARCHAR(20)", "BOOLEAN", "", "JSONB", "SERIAL", "FOO", "INTEGER"]),
    ("with", &["", "WITH ({option} = {literal})", "WITH ({option} = {literal}, {option} = {literal})", "STRICT", "WITHOUT ROWID"]),
    ("option", &["ttl", "prefix", "value", "ordered", "max_bytes", "max_rows", "\"no such\"", "weight", "evict"]),
    ("unique", &["", "UNIQUE"]),
    ("exists", &["", "IF EXISTS"]),
    ("table", &["t", "u", "v", "t", "u", "v", "memcached", "main.t", "\"T\"", "new1", "nowhere", "sqlite_schema", "w", "x"]),
    ("column", &[
        "a", "b", "c", "a", "b", "c", "c", "a", "b", "c", "a", "b", "c", "x.a", "y.b", "\"c\"", "key", "value", "rowid", "_cas", "_ttl", "_expires_at", "nope",
        "excluded.a", "_flags", "_age", "cas", "expires_at", "ttl",
    ]),
    ("new", &["new1", "new2", "\"\"", "sqlite_x", "\"a b\"", "pg_x", "t", "excluded", "\"; --\"", "_cas"]),
    ("index", &["t_b", "u_c", "new_i", "t_pkey", "u_pkey", "\"i i\""]),
    ("compare", &["=", "<", ">", "<=", ">=", "<>", "IS", "LIKE", "GLOB", "IS NOT DISTINCT FROM"]),
    ("expr", &[
        "{literal}", "{column}", "{column}", "{literal}", "({expr} {operator} {expr})", "{function}({expr})", "{function}({expr}, {expr})",
        "(SELECT {expr} FROM {from} {where})", "CASE WHEN {expr} THEN {expr} ELSE {expr} END", "CAST({expr} AS {type})",
        "{column} {operator} {expr}", "NOT {expr}", "-{expr}", "{expr} IN ({query})", "EXISTS ({query})", "$1", "$2",
        "{function}({function}({expr}))", "{expr} COLLATE NOCASE", "count(*)", "row_number() OVER (ORDER BY {expr})",
        "sum({expr}) OVER (PARTITION BY {column})", "({expr}, {expr})", "{expr} -> '$.a'", "x.{column}", "{soup}",
        "{function}(DISTINCT {expr})", "{function}({expr}, {expr}, {expr})", "{expr} BETWEEN {expr} AND {expr}",
        "group_concat({expr}) FILTER (WHERE {expr})", "now()", "{function}()", "{expr} IS NULL",
    ]),
    ("operator", &["+", "-", "*", "/", "%", "||", "AND", "OR", "<<", ">>", "&", "|", "=", "<", "IS", "->", "->>", "~", "REGEXP", "MATCH"]),
    ("function", &[
        "abs", "length", "upper", "hex", "zeroblob", "randomblob", "printf", "replace", "substr", "json", "json_extract",
        "date", "strftime", "sum", "max", "min", "group_concat", "total", "avg", "coalesce", "nullif", "typeof", "quote",
        "char", "unicode", "instr", "round", "like", "glob", "load_extension", "random", "sqlite_version", "json_array",
        "json_object", "json_group_array", "unhex", "ltrim", "soundex", "changes", "last_insert_rowid", "ttl", "cas",
        "expires_at", "age", "lag", "ntile", "iif", "jsonb", "json_set", "fts5", "writefile", "edit", "pow", "ceil", "format",
    ]),
    ("literal", &[
        "1", "2", "0", "-1", "NULL", "'x'", "'p'", "''", "1.5", "x'00ff'", "9223372036854775807", "-9223372036854775808",
        "9223372036854775808", "1e308", "-1e999", "'y%'", "'1'", "'5 min'", "'\u{e9}\u{1f600}'", "TRUE", "'{\"a\": [1, 2]}'",
        "'%1000000d'", "100000000", "1000000000", "'a_%_%_%_b'", "'u:'", "'c'", "'on'", "'now'", "'2020-01-01'", "'[[[['", "0x7f",
    ]),
    ("soup", &[
        " ", "(", ")", ",", ";", "'", "\"", "`", "[", "--", "/*", "*/", "\n", "\0", "$1", "$2", "?", ":a", "@b", "#", "\\", ".",
        " SELECT ", " FROM ", " NULL ", " IN ", " ON CONFLICT ", " RETURNING ", " WINDOW ", " OVER ", "*", "=", "!", "::text",
        "$999999", "?0", "$0", "E'\\n'", "$$x$$", "\u{feff}", "\u{e9}", " WITH ", " AS ", " NOT ", " GENERATED ", " ROWID ",
    ]),
    ("many", &["", "((((((((((((((((((((", "----------", "{many}{many}{many}{many}", ")", "1+(", "NOT ", "{many}{many}{many}{many}"]),
];

/// The bytes of an input that are not yet used up.
#[derive(Debug)]
pub struct Decisions<'a>(&'a [u8]);

impl<'a> Decisions<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 when there is none.
    fn next(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// The next statement. One in sixteen is spoiled by a byte in a random place, or cut.
    pub fn statement(&mut self) -> String {
        let spoil = self.next();
        let mut text = String::new();
        self.expand("{statement}", 0, &mut text);
        if spoil >= 16 {
            return text;
        }
        let mut bytes = text.into_bytes();
        let place = usize::from(self.next()) * (bytes.len() + 1) / 256;
        match spoil % 3 {
            0 => bytes.insert(place, self.next()),
            1 => bytes.truncate(place),
            _ => {
                let swapped = bytes.split_off(place);
                bytes.splice(0..0, swapped);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn expand(&mut self, template: &str, depth: usize, text: &mut String) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            // A brace that names no rule stands for itself.
            let Some((branches, after)) = rule(after) else {
                text.push('{');
                rest = after;
                continue;
            };
            let small = depth >= DEPTH_MAX || text.len() >= BYTES_MAX;
            let byte = if small { 0 } else { usize::from(self.next()) };
            // Early branches are the likelier ones: they are what makes sense most often.
            let choice = (branches.len() * byte * byte) >> 16;
            self.expand(branches[choice], depth + 1, text);
            rest = after;
        }
        text.push_str(rest);
    }
}

/// The branches of the rule that a template goes on with, and what follows its closing brace.
fn rule(after: &str) -> Option<(&'static [&'static str], &str)> {
    let (name, rest) = after.split_once('}')?;
    let (_, branches) = RULES.iter().find(|(rule, _)| *rule == name)?;
    Some((branches, rest))
}
