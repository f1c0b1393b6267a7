//! What a table holds, as a sample shows it: the prefixes of its keys, and its largest rows.
//!
//! The sample has the same size whatever the table has, and its rows are those of neighbouring groups of the hash
//! index, where keys lie by their hashes. So a look at ten million rows costs what one at ten thousand does. Only who
//! may read a table is shown its keys.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use store::definition::Privileges;
use store::value::{Value, ValueRef};
use store::{RowBuf, Table};

use super::super::System;
use super::super::relation::tables_of;
use super::super::rows::{Rows, int, text};
use crate::limits::{
    LARGEST_ROWS, PREFIXES_SHOWN, SAMPLE_GROUPS, SAMPLE_KEY_BYTES, SAMPLE_ROWS, SAMPLED_TABLES,
};

/// What ends the prefix of a key: the first of these that the key has.
const SEPARATORS: [char; 6] = [':', '/', '|', '.', '_', '-'];

/// How much of a table is looked at.
#[derive(Clone, Copy)]
struct Budget {
    rows: usize,
    groups: u64,
}

/// `sqlcached_prefixes`
pub(super) fn prefixes(system: &System, rows: &mut Rows) {
    each_table(system, rows.table_name().map(ToOwned::to_owned).as_deref(), |table, budget| {
        let mut all: HashMap<Box<str>, Counted> = HashMap::new();
        let mut sum = Counted::default();
        sample(system, table, budget, |row| {
            let bytes = row.size() as u64;
            sum.add(bytes);
            let key = first_of_key(table, row);
            let prefix = prefix_of(&key, table.def().primary_key.len() > 1);
            match all.get_mut(prefix) {
                Some(counted) => counted.add(bytes),
                None => all.entry(prefix.into()).or_default().add(bytes),
            }
        });
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable_by(|(one, a), (other, b)| b.bytes.cmp(&a.bytes).then_with(|| one.cmp(other)));
        let stats = table.stats();
        for (prefix, counted) in all.into_iter().take(PREFIXES_SHOWN) {
            rows.add([
                ("table_name", text(table.name())),
                ("prefix", text(&prefix)),
                ("rows", int(scaled(counted.rows, sum.rows, stats.rows))),
                ("bytes", int(scaled(counted.bytes, sum.bytes, stats.bytes))),
                ("mean_bytes", int(counted.bytes / counted.rows.max(1))),
                ("sampled", int(counted.rows)),
            ]);
        }
    });
}

/// `sqlcached_largest`
pub(super) fn largest(system: &System, rows: &mut Rows) {
    each_table(system, rows.table_name().map(ToOwned::to_owned).as_deref(), |table, budget| {
        let mut largest = BinaryHeap::new();
        sample(system, table, budget, |row| {
            let bytes = row.size();
            let is_larger = |least: &Reverse<(usize, String)>| least.0.0 < bytes;
            if largest.len() < LARGEST_ROWS || largest.peek().is_some_and(is_larger) {
                largest.push(Reverse((bytes, key_of(table, row))));
            }
            if largest.len() > LARGEST_ROWS {
                largest.pop();
            }
        });
        for Reverse((bytes, key)) in largest.into_sorted_vec() {
            let key = if table.def().primary_key.is_empty() { Value::Null } else { text(&key) };
            rows.add([("table_name", text(table.name())), ("key", key), ("bytes", int(bytes))]);
        }
    });
}

/// Rows and their bytes.
#[derive(Clone, Copy, Default)]
struct Counted {
    rows: u64,
    bytes: u64,
}

impl Counted {
    fn add(&mut self, bytes: u64) {
        self.rows += 1;
        self.bytes += bytes;
    }
}

/// A part of a sample as a part of the whole.
fn scaled(part: u64, sampled: u64, whole: u64) -> u64 {
    let whole = u128::from(part) * u128::from(whole) / u128::from(sampled.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// Visits the table that the statement names, or those with the most bytes, each with a part of the budget.
fn each_table(system: &System, named: Option<&str>, mut visit: impl FnMut(&Arc<Table>, Budget)) {
    let (catalog, holder) = (system.catalog(), system.identity().holder());
    let is_wanted = |table: &&Arc<Table>| {
        named.is_none_or(|name| table.name() == name) && holder.on_rows(table.def()).has(Privileges::SELECT)
    };
    let mut tables: Vec<_> = tables_of(&catalog).into_iter().filter(is_wanted).collect();
    tables.sort_by_cached_key(|table| Reverse(table.stats().bytes));
    tables.truncate(SAMPLED_TABLES);
    let parts = tables.len().max(1);
    let budget = Budget { rows: SAMPLE_ROWS / parts, groups: SAMPLE_GROUPS / parts as u64 };
    for table in tables {
        visit(table, budget);
    }
}

/// Visits some rows of a table, fairly chosen.
fn sample(system: &System, table: &Arc<Table>, budget: Budget, mut visit: impl FnMut(&RowBuf)) {
    let store = system.store();
    let view = store.own_view();
    let mut scan = view.sample(table, store.clock().precise_ns(), budget.groups);
    let mut row = RowBuf::new();
    for _ in 0..budget.rows {
        // A table that is emptied at this moment has no more rows to show.
        if !scan.next(&view, &mut row).unwrap_or(false) {
            return;
        }
        visit(&row);
    }
}

/// The first column of a row's key, as a text.
fn first_of_key<'r>(table: &'r Table, row: &'r RowBuf) -> Cow<'r, str> {
    table.def().primary_key.first().map_or(Cow::Borrowed(""), |&column| shown(table.column(row, column)))
}

/// A row's key, as a text that has an end.
fn key_of(table: &Table, row: &RowBuf) -> String {
    let columns = table.def().primary_key.iter().map(|&column| shown(table.column(row, column)));
    columns.collect::<Vec<_>>().join(", ")
}

/// A column of a key as a text that has an end.
pub(super) fn shown(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Null => Cow::Borrowed("NULL"),
        ValueRef::Integer(number) => Cow::Owned(number.to_string()),
        ValueRef::Real(number) => Cow::Owned(number.to_string()),
        ValueRef::Text(text) => Cow::Borrowed(cut(text)),
        ValueRef::Blob(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(SAMPLE_KEY_BYTES)]),
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(SAMPLE_KEY_BYTES)]
}

/// The part of a key that many keys have in common: up to its first separator. Of a key of several columns it is the
/// first; of one without a separator there is none.
fn prefix_of(key: &str, of_several: bool) -> &str {
    if of_several {
        return key;
    }
    let end = |&separator: &char| key.find(separator).map(|at| at + separator.len_utf8());
    SEPARATORS.iter().find_map(end).map_or("", |end| &key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_with_a_separator() {
        for (key, prefix) in [
            ("user:17:profile", "user:"),
            ("a_b:17", "a_b:"),
            ("views/17.html", "views/"),
            ("session-17", "session-"),
            ("17", ""),
            ("", ""),
            (":", ":"),
        ] {
            assert_eq!(prefix_of(key, false), prefix, "{key}");
        }
        assert_eq!(prefix_of("a:b", true), "a:b");
        assert_eq!(cut(&"\u{e9}".repeat(SAMPLE_KEY_BYTES)).len(), SAMPLE_KEY_BYTES);
    }

    #[test]
    fn parts_of_a_sample() {
        assert_eq!(scaled(1, 4, 10_000_000), 2_500_000);
        assert_eq!(scaled(0, 0, 10), 0);
        assert_eq!(scaled(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}
