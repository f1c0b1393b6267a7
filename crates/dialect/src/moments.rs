//! Moments that become those of another type: a date, a time of the clock, a time in its zone.

use store::definition::SqlType;
use store::scalar::zone;

use super::out::{Out, call};
use super::types;

/// A value, which may be a moment, as one of this type.
pub(super) fn converted(out: Out<'_>, ty: SqlType) -> Out<'_> {
    let zoned = out.ty == Some(SqlType::Timestamptz) && zone::current().is_some();
    if zoned { of_zoned(out, ty) } else { call(&types::cast_name(ty), [out]) }
}

/// The same, if it is a moment that becomes one of this type beside others; its name stays.
pub(super) fn widened(out: Out<'_>, ty: SqlType) -> Out<'_> {
    if !out.ty.is_some_and(|own| types::widens(own, ty)) {
        return out;
    }
    let label = out.label.clone();
    let mut wide = converted(out, ty).typed(ty);
    wide.label = label;
    wide
}

/// A date or a moment of the calendar as a moment with a zone; anything else as it is.
pub(super) fn of_calendar(out: Out<'_>) -> Out<'_> {
    widened(out, SqlType::Timestamptz)
}

/// A moment with a zone as it is where the session is, which has another zone than UTC.
fn of_zoned(out: Out<'_>, ty: SqlType) -> Out<'_> {
    match ty {
        SqlType::Timestamp => call("zoned_local", [out]),
        SqlType::Date | SqlType::Time => call(&types::cast_name(ty), [call("zoned_local", [out])]),
        SqlType::Timetz => call(&types::cast_name(ty), [call("zoned_text", [out])]),
        _ => call(&types::cast_name(ty), [out]),
    }
}
