//! The keys that are used most.

use store::definition::Privileges;
use store::value::Value;

use super::super::System;
use super::super::rows::{Rows, int, text};
use super::sampled::shown;
use crate::system::HotKeyFacts;

/// `sqlcached_hot`: only who may read a table is shown its keys.
pub(super) fn hot(system: &System, rows: &mut Rows) {
    let holder = system.identity().holder();
    let named = rows.table_name().map(ToOwned::to_owned);
    for facts in system.server().hot_keys(named.as_deref()) {
        if !holder.on_rows(facts.table.def()).has(Privileges::SELECT) {
            continue;
        }
        let Some(key) = key_of(&facts) else { continue };
        rows.add([
            ("table_name", text(facts.table.name())),
            ("key", text(&key)),
            ("reads", int(facts.reads)),
            ("writes", int(facts.writes)),
            ("share", Value::Real(share(&facts))),
        ]);
    }
}

/// The key as a text; none where the table's key has other columns now than when it was used.
fn key_of(facts: &HotKeyFacts) -> Option<String> {
    let (codec, columns) = (facts.table.keys(), 0..facts.table.def().primary_key.len());
    let column = |column| codec.column(&facts.key, column).map(|value| shown(value).into_owned());
    Some(columns.map(column).collect::<Result<Vec<_>, _>>().ok()?.join(", "))
}

/// The key's part of all commands on its table.
fn share(facts: &HotKeyFacts) -> f64 {
    (facts.reads + facts.writes) as f64 / facts.table_uses.max(1) as f64
}
