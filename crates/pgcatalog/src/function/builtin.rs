//! SQLite's own functions: those that a statement may call.
//!
//! It is a list, so that a new version of SQLite adds none unseen. Not here: what loads code, reads settings of the
//! build, reaches into full-text tables, or reports the last write of a connection that never writes.

use store::definition::SqlType;

use super::def::{FunctionDef, Numeric, Returns, Run, Source, Spans};
use super::{patch, search, text};

const INT: Returns = Returns::Type(SqlType::Int8);
const INT4: Returns = Returns::Type(SqlType::Int4);
const REAL: Returns = Returns::Type(SqlType::Float8);
const TEXT: Returns = Returns::Type(SqlType::Text);
const BLOB: Returns = Returns::Type(SqlType::Bytea);
const JSON: Returns = Returns::Type(SqlType::Json);
const BOOL: Returns = Returns::Type(SqlType::Bool);
const SAME: Returns = Returns::Argument;
const COMMON: Returns = Returns::Common;

const fn sqlite(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    meaning: &'static str,
    example: &'static str,
    answer: &'static str,
) -> FunctionDef {
    FunctionDef {
        name,
        arguments,
        returns,
        types: &[],
        source: Source::Sqlite,
        numeric: None,
        of_floats: None,
        of_spans: None,
        meaning,
        example,
        answer,
    }
}

/// A function in place of SQLite's, for calls with this many arguments.
const fn anew(run: Run, arguments: i32, known: FunctionDef) -> FunctionDef {
    FunctionDef { source: Source::Own(run, arguments, arguments), ..known }
}

/// Numbers.
#[rustfmt::skip]
pub(super) const NUMBERS: &[FunctionDef] = &[
    sqlite("abs", "(number)", SAME, "without its sign", "abs(-3)", "3").numeric(Numeric::Exact("numeric_abs")).of_floats("float_abs"),
    sqlite("random", "()", INT, "a random integer of 64 bits, as SQLite's (PostgreSQL's is a fraction)", "typeof(random())", "integer"),
    sqlite("round", "(number, decimals)", SAME, "rounded", "round(2.567, 1)", "2.6").numeric(Numeric::Exact("numeric_round")).of_floats("float_even"),
    sqlite("sign", "(number)", INT4, "-1, 0 or 1", "sign(-5)", "-1").numeric(Numeric::Exact("numeric_sign")).of_floats("float_sign"),
];

/// Texts.
#[rustfmt::skip]
pub(super) const TEXTS: &[FunctionDef] = &[
    sqlite("char", "(code, ...)", TEXT, "the characters of these codes; also `chr`", "char(72, 105)", "Hi"),
    sqlite("concat", "(value, ...)", TEXT, "all of them; NULL is nothing", "concat('a', NULL, 1)", "a1").numeric(Numeric::Text),
    sqlite("concat_ws", "(separator, value, ...)", TEXT, "all of them with a separator between; NULLs are left out", "concat_ws('-', 'a', NULL, 'b')", "a-b").numeric(Numeric::Text),
    sqlite("format", "(pattern, value, ...)", TEXT, "a pattern with values, as C's printf", "format('%s=%d', 'a', 5)", "a=5").numeric(Numeric::Text),
    sqlite("glob", "(pattern, text)", BOOL, "what `text GLOB pattern` asks", "glob('a*', 'abc')", "1"),
    sqlite("hex", "(value)", TEXT, "its bytes in hexadecimal digits", "hex('ab')", "6162").numeric(Numeric::Nearest),
    anew(search::instr, 2, sqlite("instr", "(text, part)", INT4, "where the part begins, from 1; 0: nowhere", "instr('abc', 'c')", "3")),
    sqlite("length", "(text or bytes)", INT4, "characters of a text, bytes of bytes; also `char_length`", "length('abc')", "3").numeric(Numeric::Nearest),
    anew(text::lower, 1, sqlite("lower", "(text)", TEXT, "in lower case", "lower('AB')", "ab")),
    anew(search::ltrim, 2, sqlite("ltrim", "(text, characters)", TEXT, "without these characters, or blanks, at its beginning", "ltrim('  a')", "a")),
    sqlite("octet_length", "(value)", INT4, "its bytes", "octet_length('abc')", "3").numeric(Numeric::Nearest),
    sqlite("printf", "(pattern, value, ...)", TEXT, "as `format`", "printf('%05.1f', 3.14159)", "003.1").numeric(Numeric::Nearest),
    sqlite("quote", "(value)", TEXT, "as a literal in SQL", "quote('it''s')", "'it''s'").numeric(Numeric::Nearest),
    anew(search::replace, 3, sqlite("replace", "(text, part, other)", TEXT, "with each part replaced", "replace('abcabc', 'b', 'x')", "axcaxc")),
    anew(search::rtrim, 2, sqlite("rtrim", "(text, characters)", TEXT, "without these characters, or blanks, at its end", "rtrim('a  ')", "a")),
    sqlite("soundex", "(text)", TEXT, "how it sounds in English", "soundex('Robert')", "R163"),
    sqlite("substr", "(text, start, count)", Returns::Part, "a part, from 1; from the end if start is negative", "substr('abcdef', 2, 3)", "bcd"),
    sqlite("substring", "(text, start, count)", Returns::Part, "as `substr`; also `substring(text FROM start FOR count)`", "substring('abcdef' from 2 for 3)", "bcd"),
    anew(search::trim, 2, sqlite("trim", "(text, characters)", TEXT, "without these characters, or blanks, at both ends; also `trim(BOTH characters FROM text)`", "trim(both 'x' from 'xax')", "a")),
    sqlite("unhex", "(text)", BLOB, "bytes of hexadecimal digits", "hex(unhex('00ff'))", "00FF"),
    sqlite("unicode", "(text)", INT4, "the code of the first character", "unicode('A')", "65"),
    sqlite("unistr", "(text)", TEXT, "with `\\uXXXX` as characters", "unistr('\\u0041')", "A"),
    sqlite("unistr_quote", "(value)", TEXT, "as a literal in SQL, with escapes where they are needed", "unistr_quote('a')", "'a'").numeric(Numeric::Nearest),
    anew(text::upper, 1, sqlite("upper", "(text)", TEXT, "in upper case", "upper('ab')", "AB")),
];

/// Dates and times, in SQLite's way: a moment is a text, `now` is the clock's.
#[rustfmt::skip]
pub(super) const DATES: &[FunctionDef] = &[
    sqlite("date", "(moment, modifier, ...)", TEXT, "the date of a moment", "date('2026-11-21 20:00')", "2026-11-21").numeric(Numeric::Nearest),
    sqlite("datetime", "(moment, modifier, ...)", TEXT, "date and time of day", "datetime('2026-11-21', '+1 day')", "2026-11-22 00:00:00").numeric(Numeric::Nearest),
    sqlite("julianday", "(moment, modifier, ...)", REAL, "days since noon of 24 November 4714 BC", "julianday('2000-01-01 12:00')", "2451545.0").numeric(Numeric::Nearest),
    sqlite("strftime", "(pattern, moment, modifier, ...)", TEXT, "written by a pattern", "strftime('%Y/%m', '2026-11-21')", "2026/11").numeric(Numeric::Nearest),
    sqlite("time", "(moment, modifier, ...)", TEXT, "the time of day", "time('2026-11-21 20:05')", "20:05:00").numeric(Numeric::Nearest),
    sqlite("timediff", "(moment, earlier)", TEXT, "the time between", "timediff('2026-11-21', '2026-11-20')", "+0000-00-01 00:00:00.000").numeric(Numeric::Nearest),
    sqlite("unixepoch", "(moment, modifier, ...)", INT, "Unix seconds", "unixepoch('1970-01-02')", "86400").numeric(Numeric::Nearest),
];

/// Choices, and values about values.
#[rustfmt::skip]
pub(super) const VALUES: &[FunctionDef] = &[
    sqlite("coalesce", "(value, ...)", COMMON, "the first that is not NULL", "coalesce(NULL, 2)", "2").numeric(Numeric::Chosen),
    sqlite("if", "(condition, value, ..., other)", Returns::Chosen, "as `iif`", "if(1 > 2, 'a', 'b')", "b").numeric(Numeric::Chosen),
    sqlite("ifnull", "(value, other)", COMMON, "the other where the value is NULL", "ifnull(NULL, 1)", "1").numeric(Numeric::Chosen),
    sqlite("iif", "(condition, value, ..., other)", Returns::Chosen, "the value behind the first condition that holds", "iif(2 > 1, 'a', 'b')", "a").numeric(Numeric::Chosen),
    sqlite("likelihood", "(value, probability)", SAME, "the value, with a hint for the planner", "likelihood(1, 0.5)", "1").numeric(Numeric::Chosen),
    sqlite("likely", "(value)", SAME, "the value, with a hint for the planner", "likely(1)", "1").numeric(Numeric::Chosen),
    sqlite("nullif", "(value, other)", SAME, "NULL where both are equal", "coalesce(nullif(1, 1), 0)", "0").numeric(Numeric::Chosen).of_spans(Spans::Function("interval_nullif")),
    sqlite("randomblob", "(n)", BLOB, "n random bytes", "length(randomblob(4))", "4").numeric(Numeric::Nearest),
    sqlite("subtype", "(value)", INT4, "what SQLite notes beside a value: 74 for JSON", "subtype(json('[1]'))", "74").numeric(Numeric::Nearest),
    sqlite("typeof", "(value)", TEXT, "its kind: `null`, `integer`, `real`, `text` or `blob`", "typeof(1.5)", "real").numeric(Numeric::Nearest),
    sqlite("unlikely", "(value)", SAME, "the value, with a hint for the planner", "unlikely(0)", "0").numeric(Numeric::Chosen),
    sqlite("zeroblob", "(n)", BLOB, "n zero bytes", "hex(zeroblob(2))", "0000").numeric(Numeric::Nearest),
];

/// JSON.
#[rustfmt::skip]
pub(super) const JSON_FUNCTIONS: &[FunctionDef] = &[
    sqlite("->", "json -> path", JSON, "the value at the path, as JSON", "'{\"a\":[1]}' -> 'a'", "[1]"),
    sqlite("->>", "json ->> path", TEXT, "the value at the path, as SQL", "'{\"a\":\"x\"}' ->> 'a'", "x"),
    sqlite("json", "(json)", JSON, "checked, without blanks", "json(' [1, 2] ')", "[1,2]"),
    sqlite("json_array", "(value, ...)", JSON, "an array of the values; also `jsonb_build_array`", "json_array(1, 'a')", "[1,\"a\"]").numeric(Numeric::Nearest),
    sqlite("json_array_insert", "(json, path, value, ...)", JSON, "with values put into arrays", "json_array_insert('[1,3]', '$[1]', 2)", "[1,2,3]").numeric(Numeric::Nearest),
    sqlite("json_array_length", "(json, path)", INT4, "how many elements it has; also `jsonb_array_length`", "json_array_length('[1,2]')", "2"),
    sqlite("json_error_position", "(text)", INT4, "where it stops to be JSON; 0: nowhere", "json_error_position('[1,')", "4"),
    sqlite("json_extract", "(json, path, ...)", Returns::Open, "the value at the path", "json_extract('{\"a\":5}', '$.a')", "5").numeric(Numeric::Nearest),
    sqlite("json_insert", "(json, path, value, ...)", JSON, "with values where nothing was", "json_insert('{\"a\":1}', '$.b', 2)", "{\"a\":1,\"b\":2}").numeric(Numeric::Nearest),
    sqlite("json_object", "(key, value, ...)", JSON, "an object; also `jsonb_build_object`", "json_object('a', 1)", "{\"a\":1}").numeric(Numeric::Nearest),
    FunctionDef { source: Source::Json(patch::json_patch, 2), ..sqlite("json_patch", "(json, patch)", JSON, "with a merge patch (RFC 7396) applied", "json_patch('{\"a\":1}', '{\"a\":2}')", "{\"a\":2}") },
    sqlite("json_pretty", "(json)", TEXT, "with line breaks; also `jsonb_pretty`", "length(json_pretty('[1]'))", "9"),
    sqlite("json_quote", "(value)", JSON, "the value as JSON", "json_quote('a')", "\"a\"").numeric(Numeric::Nearest),
    sqlite("json_remove", "(json, path, ...)", JSON, "without these", "json_remove('{\"a\":1,\"b\":2}', '$.a')", "{\"b\":2}"),
    sqlite("json_replace", "(json, path, value, ...)", JSON, "with values where others were", "json_replace('{\"a\":1}', '$.a', 2)", "{\"a\":2}").numeric(Numeric::Nearest),
    sqlite("json_set", "(json, path, value, ...)", JSON, "with values, whether others were there or not", "json_set('{\"a\":1}', '$.b', 2)", "{\"a\":1,\"b\":2}").numeric(Numeric::Nearest),
    sqlite("json_type", "(json, path)", TEXT, "its kind", "json_type('[1]', '$[0]')", "integer"),
    sqlite("json_valid", "(text, flags)", BOOL, "whether it is JSON", "json_valid('{}')", "1"),
    sqlite("jsonb", "(json)", BLOB, "as SQLite's binary JSON", "json(jsonb('[1]'))", "[1]"),
    sqlite("jsonb_array", "(value, ...)", BLOB, "as `json_array`, binary", "json(jsonb_array(1))", "[1]").numeric(Numeric::Nearest),
    sqlite("jsonb_array_insert", "(json, path, value, ...)", BLOB, "as `json_array_insert`, binary", "json(jsonb_array_insert('[2]', '$[0]', 1))", "[1,2]").numeric(Numeric::Nearest),
    sqlite("jsonb_extract", "(json, path, ...)", BLOB, "as `json_extract`, binary", "jsonb_extract('[5]', '$[0]')", "5"),
    sqlite("jsonb_insert", "(json, path, value, ...)", BLOB, "as `json_insert`, binary", "json(jsonb_insert('{}', '$.a', 1))", "{\"a\":1}").numeric(Numeric::Nearest),
    sqlite("jsonb_object", "(key, value, ...)", BLOB, "as `json_object`, binary", "json(jsonb_object('a', 1))", "{\"a\":1}").numeric(Numeric::Nearest),
    anew(patch::jsonb_patch, 2, sqlite("jsonb_patch", "(json, patch)", BLOB, "as `json_patch`, binary", "json(jsonb_patch('{}', '{\"a\":1}'))", "{\"a\":1}")),
    sqlite("jsonb_remove", "(json, path, ...)", BLOB, "as `json_remove`, binary", "json(jsonb_remove('[1,2]', '$[0]'))", "[2]"),
    sqlite("jsonb_replace", "(json, path, value, ...)", BLOB, "as `json_replace`, binary", "json(jsonb_replace('[1]', '$[0]', 2))", "[2]").numeric(Numeric::Nearest),
    sqlite("jsonb_set", "(json, path, value, ...)", BLOB, "as `json_set`, binary", "json(jsonb_set('{}', '$.a', 1))", "{\"a\":1}").numeric(Numeric::Nearest),
];

/// Functions of groups; they take `FILTER (WHERE ...)`, and `OVER (...)`.
#[rustfmt::skip]
pub(super) const GROUPS: &[FunctionDef] = &[
    sqlite("avg", "(x)", Returns::Average, "the mean of a group", "(SELECT avg(value) FROM json_each('[1,2]'))", "1.5").numeric(Numeric::Exact("numeric_avg")).of_floats("float_avg").of_spans(Spans::Function("interval_avg")),
    sqlite("count", "(*) or (x)", INT, "how many rows, or values that are not NULL", "(SELECT count(*) FROM json_each('[1,2]'))", "2").numeric(Numeric::Text),
    sqlite("group_concat", "(x, separator)", TEXT, "all texts with a separator between", "(SELECT group_concat(value, '-') FROM json_each('[1,2]'))", "1-2").numeric(Numeric::Text),
    sqlite("json_group_array", "(x)", JSON, "all values as an array; also `array_agg`, `json_agg`, `jsonb_agg`", "(SELECT array_agg(value) FROM json_each('[1,2]'))", "[1,2]").numeric(Numeric::Nearest),
    sqlite("json_group_object", "(key, value)", JSON, "all pairs as an object; also `json_object_agg`, `jsonb_object_agg`", "(SELECT json_group_object(key, value) FROM json_each('{\"a\":1}'))", "{\"a\":1}").numeric(Numeric::Nearest),
    sqlite("jsonb_group_array", "(x)", BLOB, "as `json_group_array`, binary", "(SELECT json(jsonb_group_array(value)) FROM json_each('[1]'))", "[1]").numeric(Numeric::Nearest),
    sqlite("jsonb_group_object", "(key, value)", BLOB, "as `json_group_object`, binary", "(SELECT json(jsonb_group_object(key, value)) FROM json_each('{\"a\":1}'))", "{\"a\":1}").numeric(Numeric::Nearest),
    sqlite("max", "(x) or (a, b, ...)", COMMON, "the largest of a group, or of its arguments; of truths also `bool_or`", "(SELECT max(value) FROM json_each('[1,2]'))", "2").numeric(Numeric::Chosen).of_spans(Spans::Keys),
    sqlite("min", "(x) or (a, b, ...)", COMMON, "the smallest of a group, or of its arguments; of truths also `bool_and`, `every`", "(SELECT min(value) FROM json_each('[1,2]'))", "1").numeric(Numeric::Chosen).of_spans(Spans::Keys),
    sqlite("string_agg", "(x, separator)", TEXT, "all texts with a separator between", "(SELECT string_agg(value, ',' ORDER BY value DESC) FROM json_each('[\"a\",\"b\"]'))", "b,a").numeric(Numeric::Text),
    sqlite("sum", "(x)", Returns::Sum, "the sum of a group", "(SELECT sum(value) FROM json_each('[1,2]'))", "3").numeric(Numeric::Exact("numeric_sum")).of_floats("float_sum").of_spans(Spans::Function("interval_sum")),
    sqlite("total", "(x)", REAL, "the sum as a float; 0.0 of nothing", "(SELECT total(value) FROM json_each('[]'))", "0.0").numeric(Numeric::Nearest).of_floats("float_total"),
];

/// Functions of windows.
#[rustfmt::skip]
pub(super) const WINDOWS: &[FunctionDef] = &[
    sqlite("cume_dist", "() OVER ...", REAL, "the fraction of rows up to this one", "(SELECT cume_dist() OVER ())", "1.0"),
    sqlite("dense_rank", "() OVER ...", INT, "the rank without gaps", "(SELECT dense_rank() OVER ())", "1"),
    sqlite("first_value", "(x) OVER ...", SAME, "the value in the frame's first row", "(SELECT first_value(5) OVER ())", "5").numeric(Numeric::Chosen),
    sqlite("lag", "(x, n, default) OVER ...", SAME, "the value n rows before", "(SELECT lag(5, 1, 0) OVER ())", "0").numeric(Numeric::Chosen),
    sqlite("last_value", "(x) OVER ...", SAME, "the value in the frame's last row", "(SELECT last_value(5) OVER ())", "5").numeric(Numeric::Chosen),
    sqlite("lead", "(x, n, default) OVER ...", SAME, "the value n rows behind", "(SELECT lead(5, 1, 0) OVER ())", "0").numeric(Numeric::Chosen),
    sqlite("nth_value", "(x, n) OVER ...", SAME, "the value in the frame's n-th row", "(SELECT nth_value(5, 1) OVER ())", "5").numeric(Numeric::Chosen),
    sqlite("ntile", "(n) OVER ...", INT4, "which of n equal parts the row lies in", "(SELECT ntile(2) OVER ())", "1").numeric(Numeric::Nearest),
    sqlite("percent_rank", "() OVER ...", REAL, "the rank as a fraction", "(SELECT percent_rank() OVER ())", "0.0"),
    sqlite("rank", "() OVER ...", INT, "the rank; equal rows share it", "(SELECT rank() OVER ())", "1"),
    sqlite("row_number", "() OVER ...", INT, "the row's number", "(SELECT row_number() OVER ())", "1"),
];
