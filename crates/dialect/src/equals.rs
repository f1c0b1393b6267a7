//! Types whose equal values have several spellings: SQLite gets what compares them.

use pgcatalog::function::{INTERVAL_COLLATION, JSONB_COLLATION};
use store::definition::SqlType;

use super::binding::Binding;
use super::out::{Out, call};

/// What SQLite sorts by in the place of a value: what is stored may be a text that sorts otherwise.
pub(super) fn sort_key(by: Out<'_>) -> Out<'_> {
    match by.ty {
        Some(SqlType::Interval) => call("interval_order", [by]),
        _ => keyed(by),
    }
}

/// Whether equal values of a type have several spellings.
pub(super) fn has_spellings(ty: Option<SqlType>) -> bool {
    matches!(ty, Some(SqlType::Interval | SqlType::Jsonb))
}

/// A value whose equals SQLite is to find, where they have several spellings.
pub(super) fn keyed(out: Out<'_>) -> Out<'_> {
    let collation = match out.ty {
        Some(SqlType::Interval) => INTERVAL_COLLATION,
        Some(SqlType::Jsonb) => JSONB_COLLATION,
        _ => return out,
    };
    let (ty, label) = (out.ty, out.label.clone());
    let mut keyed = out.left_of(Binding::Collate);
    keyed.push_str(&format!(" COLLATE {collation}"));
    keyed.label = label;
    keyed.of_type(ty).bound(Binding::Collate)
}
