//! Types whose texts say neither which values are equal nor which is less: SQLite gets what compares them.

use pgcatalog::function::order;
use store::definition::SqlType;

use super::Translator;
use super::binding::Binding;
use super::out::{Out, call};

/// Whether equal values of a type have several spellings.
pub(super) fn has_spellings(ty: Option<SqlType>) -> bool {
    ty.is_some_and(order::has_spellings)
}

/// A value whose equals SQLite is to find, where they have several spellings.
pub(super) fn keyed(out: Out<'_>) -> Out<'_> {
    if has_spellings(out.ty) { collated(out) } else { out }
}

/// A value as SQLite is to sort and compare it.
pub(super) fn collated(out: Out<'_>) -> Out<'_> {
    let ty = out.ty;
    collated_as(out, ty)
}

/// The same of a value that is to be one of this type.
pub(super) fn collated_as(out: Out<'_>, ty: Option<SqlType>) -> Out<'_> {
    let Some(collation) = ty.and_then(order::collation) else { return out };
    let (own, label) = (out.ty, out.label.clone());
    let mut collated = out.left_of(Binding::Collate);
    collated.push_str(&format!(" COLLATE {collation}"));
    collated.label = label;
    collated.of_type(own).bound(Binding::Collate)
}

/// Whether a JSON value is written there that has no number in it: its equals have the same text.
pub(super) fn has_one_spelling(out: &Out<'_>) -> bool {
    let text = out.text();
    let mut in_string = false;
    let mut escaped = false;
    let is_number = |byte: u8| byte.is_ascii_digit();
    out.is_literal()
        && !text.bytes().any(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            in_string ^= ends;
            !in_string && is_number(byte)
        })
}

impl<'a> Translator<'a, '_> {
    /// What SQLite sorts by in the place of a value. A column of labels has their order itself, and an index may.
    pub(super) fn sort_key(&self, by: Out<'a>) -> Out<'a> {
        match by.ty {
            Some(SqlType::Interval) => call("interval_order", [by]),
            Some(SqlType::Enum(_)) if self.is_stored_column(&by) => by,
            _ => collated(by),
        }
    }

    /// Two sides of which one is to be less than the other.
    pub(super) fn in_order(&self, left: Out<'a>, right: Out<'a>) -> [Out<'a>; 2] {
        let ty = left.ty.or(right.ty);
        // Of `jsonb` and of spans others make what is compared.
        let ready = ty.is_none_or(|ty| matches!(ty, SqlType::Jsonb | SqlType::Interval));
        let labels = matches!(ty, Some(SqlType::Enum(_)));
        if ready || (labels && [&left, &right].iter().any(|side| self.is_stored_column(side))) {
            return [left, right];
        }
        [collated_as(left, ty), right]
    }
}
