//! Values that PostgreSQL writes otherwise than they are kept: moments with a zone, and arrays.

use store::definition::SqlType;

use super::out::{Out, call};

/// Whether values of a type are, and [`written`] writes them.
pub(super) fn is_written(ty: Option<SqlType>) -> bool {
    ty.is_some_and(|ty| ty.is_array() || has_zone(ty))
}

/// Such a value as a text.
pub(super) fn written(out: Out<'_>) -> Out<'_> {
    let ty = out.ty.unwrap_or(SqlType::Unknown);
    let out = if has_zone(ty.scalar()) { zoned(out) } else { out };
    let out = if ty.is_array() { call("array_text", [out]) } else { out };
    out.typed(SqlType::Text)
}

/// A float as PostgreSQL writes it; anything else as it is. SQLite's operators and casts write it with a fraction.
pub(super) fn float(out: Out<'_>) -> Out<'_> {
    match out.ty {
        Some(SqlType::Float4) => call("float4_text", [out]).typed(SqlType::Text),
        Some(SqlType::Float8) => call("float8_text", [out]).typed(SqlType::Text),
        _ => out,
    }
}

/// A moment with a zone, or each of an array, as a text.
pub(super) fn zoned(out: Out<'_>) -> Out<'_> {
    call("zoned_text", [out])
}

/// Whether JSON has another form of a type's values than a text.
pub(super) fn is_moment(ty: SqlType) -> bool {
    matches!(ty, SqlType::Timestamp | SqlType::Timestamptz)
}

/// A moment, or each of an array, as JSON has it.
pub(super) fn in_json(out: Out<'_>) -> Out<'_> {
    call("zoned_json", [out]).typed(SqlType::Text)
}

fn has_zone(ty: SqlType) -> bool {
    matches!(ty, SqlType::Timestamptz | SqlType::Timetz)
}
