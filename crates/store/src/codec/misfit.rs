//! Why a memcached key is no key of a table, in words for who wrote it.

use std::fmt::Write as _;

use super::KeyError;
use super::key::SEPARATOR;
use crate::definition::{ColumnKind, TableDef};
use crate::limits::SHOWN_CHARS_MAX;

/// How memcached's clients write the keys of a table: `frag:<page INT>:<part TEXT>`.
pub fn key_shape(table: &TableDef) -> String {
    let mut shape = table.options.prefix.clone().unwrap_or_default();
    for (at, &column) in table.primary_key.iter().enumerate() {
        let column = &table.columns[column];
        let separator = if at > 0 { ":" } else { "" };
        let _ = write!(shape, "{separator}<{} {}>", column.name, column.declared);
    }
    shape
}

/// Why a text, the prefix taken off, is no key of a table: names the table, how its keys are written, and the part that
/// does not fit.
pub fn misfit(table: &TableDef, text: &[u8], error: KeyError) -> String {
    let shape = key_shape(table);
    let why = match error {
        KeyError::TooFewParts { columns } => {
            let parts = text.split(|&byte| byte == SEPARATOR).count();
            format!("it has {parts} of {columns} parts")
        }
        KeyError::NotCanonical { column } => not_canonical(table, text, column),
        other => other.to_string(),
    };
    format!("table {}: the key must be {shape}; {why}", table.own_name())
}

fn not_canonical(table: &TableDef, text: &[u8], column: usize) -> String {
    let part =
        text.splitn(table.primary_key.len(), |&byte| byte == SEPARATOR).nth(column).unwrap_or_default();
    let kind = table.primary_key.get(column).map_or(ColumnKind::Text, |&column| table.columns[column].kind);
    let text = String::from_utf8_lossy(part);
    let problem = match kind {
        ColumnKind::Integer if text.parse::<i64>().is_ok() => "not in the number's shortest form",
        ColumnKind::Integer if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
            "too large"
        }
        ColumnKind::Integer => "not a whole number",
        _ if text.parse::<f64>().is_ok() => "not in the number's only form",
        _ => "not a number",
    };
    format!("'{}' is {problem}", shown(&text))
}

/// A part of a key as a message shows it.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::KeyCodec;
    use crate::definition::ColumnDef;

    #[test]
    fn the_message_names_table_prefix_and_part() {
        let columns = [("page", "INT"), ("part", "TEXT"), ("price", "REAL")];
        let columns = columns.map(|(name, declared)| ColumnDef::new(name, declared).unwrap());
        let mut table = TableDef::new("frag", columns.to_vec(), vec![0, 2, 1]);
        table.options.prefix = Some("frag:".into());
        let long = format!("{}:1:x", "9".repeat(60));
        for (text, why) in [
            ("None:1:a", "'None' is not a whole number"),
            ("007:1:a", "'007' is not in the number's shortest form"),
            ("1.5:1:a", "'1.5' is not a whole number"),
            ("7:x:a", "'x' is not a number"),
            ("7:1e0:a", "'1e0' is not in the number's only form"),
            ("7", "it has 1 of 3 parts"),
            (&long, "'9999999999999999999999999999999999999999...' is too large"),
        ] {
            let error = KeyCodec::new(&table).from_text(text.as_bytes(), &mut Vec::new()).unwrap_err();
            let expected =
                format!("table frag: the key must be frag:<page INT>:<price REAL>:<part TEXT>; {why}");
            assert_eq!(misfit(&table, text.as_bytes(), error), expected, "{text}");
        }
    }
}
