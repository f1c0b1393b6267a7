//! The values that are tried of each type: usual ones, and those at the edges.

/// A type as PostgreSQL writes it, with texts of values; NULL is tried of every type.
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) values: &'static [&'static str],
}

#[rustfmt::skip]
pub(super) const TYPES: &[Type] = &[
    Type { name: "smallint", values: &["7", "0", "-1", "32767", "-32768"] },
    Type { name: "integer", values: &["7", "0", "-1", "2147483647", "-2147483648", "3"] },
    Type { name: "bigint", values: &["7", "0", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993"] },
    Type { name: "numeric", values: &["1.005", "0", "-0.125", "2.675", "12345678901234567890", "NaN", "Infinity", "-Infinity", "0.00000000000000000001", "123456789012345.678901234567890", "-7.50", "3"] },
    Type { name: "real", values: &["1.5", "0", "-0.1", "NaN", "Infinity", "-Infinity", "3.4e38", "16777217"] },
    Type { name: "double precision", values: &["1.5", "0", "-0", "2.5", "-0.5", "NaN", "Infinity", "-Infinity", "1e308", "9007199254740993", "0.1", "5e-324", "3"] },
    Type { name: "text", values: &["abc", "", "\u{c4}\u{df}\u{20ac}x", " x ", "12", "a%_\\b", "a,b,,c"] },
    Type { name: "character varying", values: &["abc", "", " x "] },
    Type { name: "boolean", values: &["true", "false"] },
    Type { name: "date", values: &["2026-03-29", "2000-02-29", "1969-12-31", "infinity", "-infinity", "0001-01-01", "9999-12-31"] },
    Type { name: "timestamp without time zone", values: &["2026-03-29 02:30:15.123456", "2000-02-29 23:59:59.999999", "1969-12-31 00:00:00", "infinity", "0001-01-01 00:00:00", "9999-12-31 23:59:59"] },
    Type { name: "timestamp with time zone", values: &["2026-03-29 02:30:15.123456+00", "2000-02-29 23:59:59.999999+05:30", "1969-12-31 00:00:00+00", "-infinity", "9999-12-31 23:59:59+00"] },
    Type { name: "time without time zone", values: &["12:34:56.789", "00:00:00", "23:59:59.999999", "24:00:00"] },
    Type { name: "interval", values: &["1 mon 2 days 03:04:05.678", "0", "-1 day", "1 year", "25:00:00", "-00:00:00.000001", "30 days"] },
    Type { name: "bytea", values: &["\\x00ff61", "\\x"] },
    Type { name: "uuid", values: &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"] },
    Type { name: "jsonb", values: &["{\"a\": 1.10, \"b\": [1, null]}", "[]", "null", "[1, \"x\", 12345678901234567890]", "\"s\"", "1.5"] },
    Type { name: "json", values: &["{\"a\": 1.10, \"b\":null}", "[1, 2]", "null"] },
    Type { name: "integer[]", values: &["{1,NULL,3}", "{}", "{2147483647}"] },
    Type { name: "text[]", values: &["{a,NULL,\"b,c\"}", "{}", "{\"\"}"] },
    Type { name: "numeric[]", values: &["{1.10,NaN}", "{}"] },
];

pub(super) fn of_type(name: &str) -> Option<&'static Type> {
    TYPES.iter().find(|ty| ty.name == name)
}

/// A value as it stands in a statement.
pub(super) fn literal(ty: &str, value: Option<&str>) -> String {
    value.map_or_else(|| format!("NULL::{ty}"), |value| format!("'{}'::{ty}", value.replace('\'', "''")))
}

/// Texts that mean something to a function, at a place among its arguments; the type is that of its first one.
pub(super) fn words(function: &str, at: usize, first: &str) -> Option<&'static [&'static str]> {
    const NUMBERS: &[&str] = &[
        "FM9.99",
        "FM0.00",
        "9999999999999999999999D99",
        "FM999999999999999999999999999",
        "0000.0",
        "9,999.99",
        "S999",
        "",
        "FM90.999",
        "9.99EEEE",
        "MI9",
        "9V99",
    ];
    const MOMENTS: &[&str] =
        &["YYYY-MM-DD HH24:MI:SS.US", "FMMonth DDth", "IYYY-IW", "CC Q J", "Day", "", "HH12 AM TZ OF"];
    const FIELDS: &[&str] = &[
        "day",
        "week",
        "century",
        "nonsense",
        "quarter",
        "microseconds",
        "epoch",
        "isoyear",
        "hour",
        "DOW",
        "decade",
        "timezone",
        "julian",
    ];
    const ZONES: &[&str] =
        &["Asia/Tokyo", "Nowhere/City", "UTC", "+05:30", "-3", "", "europe/berlin", "EST5EDT"];
    let is_number =
        matches!(first, "smallint" | "integer" | "bigint" | "numeric" | "real" | "double precision");
    Some(match (function, at) {
        ("to_char", 1) if is_number => NUMBERS,
        ("to_char", 1) => MOMENTS,
        ("to_number", 0) => &["1,234.56", "12345678901234567890.12345", "-7", "", "x"],
        ("to_number", 1) => &["9,999.99", "99999999999999999999D99999", "S9", ""],
        ("to_date" | "to_timestamp", 0) => &["2026-02-29", "2026-11-28", "20261128", "", "x"],
        ("to_date" | "to_timestamp", 1) => &["YYYY-MM-DD", "YYYYMMDD", "YYYY-MM-DD HH24:MI", ""],
        ("date_trunc" | "date_part" | "extract", 0) => FIELDS,
        ("date_trunc", 2) | ("timezone", 0) => ZONES,
        ("encode" | "decode", 1) => &["hex", "base64", "escape", "rot13", ""],
        ("convert_from" | "convert_to", 1) => &["UTF8", "LATIN1", "nope"],
        (name, 0) if name.starts_with("regexp_") => &["order-17-b", "", "ABC abc", "\u{c4}\u{df}"],
        (name, 1) if name.starts_with("regexp_") => &["[0-9]+", "(b)(c)?", "", "(", "^a"],
        ("substring", 0) => &["order-17-b", "", "\u{c4}\u{df}\u{20ac}"],
        ("substring", 1) => &["[0-9]+", "o(.)d", "z", "", "("],
        ("string_to_array" | "split_part", 1) => &[",", "", "b"],
        _ => return None,
    })
}
