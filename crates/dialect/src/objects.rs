//! Objects of the catalogue: `'t'::regclass`, `'integer'::regtype` and similar ones.
//!
//! A value of such a type is the object's number, so that it is compared with the numbers in the system tables. It
//! becomes the name where it becomes text: in a cast, and in the columns of the outermost query.

use store::definition::SqlType;

use super::out::{Out, call};

/// Whether values of a type are numbers that are shown as names. A function that is built in is its name.
pub(super) fn is_number(ty: Option<SqlType>) -> bool {
    use SqlType::{Regclass, Regnamespace, Regproc, Regrole, Regtype};
    matches!(ty, Some(Regclass | Regtype | Regnamespace | Regrole | Regproc))
}

/// The number of an object that is named.
pub(super) fn numbered(out: Out<'_>, ty: SqlType) -> Out<'_> {
    if is_number(out.ty) { out } else { call(ty.name(), [out]) }
}

/// Its name.
pub(super) fn named(out: Out<'_>) -> Out<'_> {
    let Some(ty) = out.ty else { return out };
    call(&format!("{}_name", ty.name()), [out])
}

/// Its name as a column of the result, which keeps its type.
pub(super) fn shown(out: Out<'_>) -> Out<'_> {
    let (ty, label) = (out.ty, out.label.clone());
    let mut named = named(out).of_type(ty);
    named.label = label;
    named
}
