//! The values that conditions ask for, as the columns hold them.

use store::Table;
use store::definition::ColumnKind;
use store::value::{Value, ValueRef};

use crate::table::{Sought, is_plain, sought};
use crate::write::Operand;

/// Conditions of a statement at most: their values are gathered on the stack.
pub(super) const CONDITIONS_MAX: usize = 8;

/// Gives `body` what the columns hold where the conditions are true; `None` where no row can match.
pub(super) fn with_values<T>(
    table: &Table,
    equals: &[(usize, Operand)],
    parameters: &[Value],
    body: impl FnOnce(Option<&[ValueRef<'_>]>) -> T,
) -> T {
    let kind = |column: usize| table.def().columns[column].kind;
    let given = equals.iter().map(|(column, operand)| (kind(*column), operand.value(parameters).as_ref()));
    with_stored(given, body)
}

/// The same of values and the kinds of the columns that they are looked for in.
#[inline]
pub(super) fn with_stored<'v, T>(
    given: impl ExactSizeIterator<Item = (ColumnKind, ValueRef<'v>)> + Clone,
    body: impl FnOnce(Option<&[ValueRef<'_>]>) -> T,
) -> T {
    let count = given.len();
    let mut converted = Vec::new();
    for (kind, value) in given.clone().filter(|&(kind, value)| !is_plain(kind, value)) {
        match stored(kind, value.to_owned()) {
            Some(value) => converted.push(value),
            None => return body(None),
        }
    }
    let mut converted = converted.iter();
    let mut values = [ValueRef::Null; CONDITIONS_MAX];
    for (place, (kind, value)) in values.iter_mut().zip(given) {
        let other = if is_plain(kind, value) { None } else { converted.next() };
        *place = other.map_or(value, Value::as_ref);
    }
    body(values.get(..count))
}

/// What a column of this kind holds where it equals the value; `None`: nothing does.
fn stored(kind: ColumnKind, value: Value) -> Option<Value> {
    match sought(kind, value, true) {
        // Text is stored as text; bytes that are text were never equal to it.
        Sought::Value(Value::Blob(bytes)) if kind == ColumnKind::Text => {
            std::str::from_utf8(&bytes).is_err().then_some(Value::Blob(bytes))
        }
        Sought::Value(value) => Some(value),
        Sought::Nothing | Sought::Unclear => None,
    }
}
