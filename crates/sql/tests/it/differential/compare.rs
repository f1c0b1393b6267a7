//! Whether two answers are the same, and two errors of one class.

use std::fmt::Write as _;

use store::value::{Value, ValueRef};

use crate::common::show;

/// NULL, numbers by value, texts, blobs; then integers before equal floats, so that a list has one order.
fn total(a: &[Value], b: &[Value]) -> std::cmp::Ordering {
    a.iter()
        .zip(b)
        .map(|(a, b)| ValueRef::compare(a.as_ref(), b.as_ref()))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

pub(crate) fn compare(
    mut native: Vec<Vec<Value>>,
    mut ours: Vec<Vec<Value>>,
    ordered: bool,
    folds: bool,
) -> Result<(), String> {
    if folds {
        fold(&mut native);
        fold(&mut ours);
    }
    if !ordered {
        native.sort_by(|a, b| total(a, b));
        ours.sort_by(|a, b| total(a, b));
    }
    let same = native.len() == ours.len()
        && native
            .iter()
            .zip(&ours)
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b)));
    if same {
        return Ok(());
    }
    let mut message = String::new();
    let print = |rows: &[Vec<Value>]| {
        rows.iter()
            .map(|row| {
                row.iter()
                    .map(|value| format!("{}:{}", show(value), class(value)))
                    .collect::<Vec<_>>()
                    .join(",")
            })
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let _ = write!(message, "native [{}]\n-- ours   [{}]", print(&native), print(&ours));
    Err(message)
}

/// Makes texts the same that a collation may take for equal.
fn fold(rows: &mut [Vec<Value>]) {
    for value in rows.iter_mut().flatten() {
        if let Value::Text(text) = value {
            *text = text.trim_end_matches(' ').to_ascii_lowercase();
        }
    }
}

fn class(value: &Value) -> &'static str {
    match value {
        Value::Null => "n",
        Value::Integer(_) => "i",
        Value::Real(_) => "r",
        Value::Text(_) => "t",
        Value::Blob(_) => "b",
    }
}

/// Equal in value; `DISTINCT`, `min` and `GROUP BY` may pick any of several equal values (1 or 1.0).
fn same_value(a: &Value, b: &Value) -> bool {
    ValueRef::compare(a.as_ref(), b.as_ref()).is_eq()
}

/// A row that its table does not take.
const REFUSED_ROW: &[&str] = &["23505", "23502", "23514", "22P02", "22003"];

/// What SQLite's words for an error say of it, and the SQLSTATEs of that class.
const CLASSES: &[(&str, &[&str])] = &[
    // Which of several bad rows, or of several faults of one, is met first is up to the implementation.
    ("UNIQUE constraint failed", REFUSED_ROW),
    ("NOT NULL constraint failed", REFUSED_ROW),
    ("CHECK constraint failed", REFUSED_ROW),
    ("cannot store", REFUSED_ROW),
    ("integer overflow", &["22003"]),
    ("no such column", &["42703"]),
    ("no such table", &["42P01"]),
    ("no such function", &["42883"]),
    ("ambiguous column name", &["42702"]),
    ("ON CONFLICT clause does not match", &["42P10"]),
    ("malformed JSON", &["22032"]),
    ("syntax error", &["42601"]),
    ("generated column", &["428C9"]),
    ("misuse of", &["42803", "42P20"]),
    ("BY term out of range", &["42601", "42P10"]),
    ("values for", &["42601"]),
];

/// Whether this error says that a text is no number, or that values of two types are not compared or in one column.
pub(crate) fn is_of_types(state: &str, message: &str) -> bool {
    let numbers = ["smallint", "integer", "bigint", "real", "double precision", "numeric"];
    match state {
        "42883" => {
            let call = |rest: &str| rest.ends_with(") does not exist");
            message.starts_with("operator does not exist: ")
                || message.strip_prefix("function ").is_some_and(call)
        }
        "22P02" => {
            numbers.iter().any(|ty| message.starts_with(&format!("invalid input syntax for type {ty}:")))
        }
        "42804" => message.ends_with("cannot be matched"),
        _ => false,
    }
}

/// Whether our error is of the class of SQLite's.
pub(crate) fn same_class(native: &str, ours: &str) -> Result<(), String> {
    let class = CLASSES.iter().find(|(words, _)| native.contains(words));
    match class {
        Some((_, states)) if states.contains(&ours) => Ok(()),
        Some((_, states)) => Err(format!("native: {native}; we: {ours}, not one of {states:?}")),
        None => Err(format!("native: {native}; we: {ours}; a class for these words is missing")),
    }
}
