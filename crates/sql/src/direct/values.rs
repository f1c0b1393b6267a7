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
    conditions: &[(usize, Operand)],
    parameters: &[Value],
    body: impl FnOnce(Option<&[ValueRef<'_>]>) -> T,
) -> T {
    let given = conditions.iter().map(|(column, operand)| {
        let value = operand.value(parameters);
        let kind = table.def().columns[*column].kind;
        (kind, value, is_plain(kind, value.as_ref()))
    });
    let mut converted = Vec::new();
    for (kind, value, _) in given.clone().filter(|&(.., plain)| !plain) {
        match stored(kind, value.clone()) {
            Some(value) => converted.push(value),
            None => return body(None),
        }
    }
    let mut converted = converted.iter();
    let mut values = [ValueRef::Null; CONDITIONS_MAX];
    for (place, (_, value, plain)) in values.iter_mut().zip(given) {
        let value = if plain { Some(value) } else { converted.next() };
        *place = value.map_or(ValueRef::Null, Value::as_ref);
    }
    body(values.get(..conditions.len()))
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
