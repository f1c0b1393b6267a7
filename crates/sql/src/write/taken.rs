//! The error for a value of a key or unique index that another row has. It says the value, as PostgreSQL does, to who
//! may read it.

use std::fmt::Write as _;

use pgcatalog::identifier;
use store::Table;
use store::definition::{ColumnDef, Privileges, SqlType};
use store::value::Value;

use super::batch::Constraint;
use super::plan::Run;
use crate::error::SqlError;

/// The error for a row of these values.
#[cold]
pub(super) fn taken(run: &Run<'_>, constraint: Constraint, values: Option<&[Value]>) -> SqlError {
    let def = run.table.def();
    let (name, columns) = match constraint {
        Constraint::Primary => (def.key_name().into_owned(), &def.primary_key),
        Constraint::Index(at) => {
            let index = &run.table.indexes()[at];
            (index.name().to_owned(), &index.def().columns)
        }
    };
    let error = SqlError::unique(&name);
    let detail =
        values.filter(|_| may_read(run, columns)).and_then(|values| key_of(run.table, columns, values));
    match detail {
        Some(key) => error.with_detail(format!("Key {key} already exists.")),
        None => error,
    }
}

/// Whether the session may read these columns: what they hold is said to nobody else.
fn may_read(run: &Run<'_>, columns: &[usize]) -> bool {
    let (def, holder) = (run.table.def(), run.core.system.identity().holder());
    let granted = |at: &usize| holder.on_column(&def.columns[*at].grants).0.has(Privileges::SELECT);
    holder.on(&def.access).0.has(Privileges::SELECT) || columns.iter().all(granted)
}

/// `(a, b)=(1, x)`
fn key_of(table: &Table, columns: &[usize], values: &[Value]) -> Option<String> {
    let (mut names, mut shown) = (Vec::new(), Vec::new());
    for &at in columns {
        names.push(name_of(&table.def().columns[at]));
        shown.push(text_of(table.column_type(at), values.get(at)?)?);
    }
    (!names.is_empty()).then(|| format!("({})=({})", names.join(", "), shown.join(", ")))
}

/// A column's name, or the expression that it was made for.
fn name_of(column: &ColumnDef) -> String {
    match &column.generated {
        Some(generated) if column.hidden => generated.sql.clone(),
        _ => identifier(&column.name),
    }
}

/// A value as clients are shown it; `None` where that depends on more than its type.
fn text_of(ty: SqlType, value: &Value) -> Option<String> {
    Some(match (ty, value) {
        (_, Value::Null) => "null".to_owned(),
        (ty, _) if ty.is_array() => return None,
        (SqlType::Bool, Value::Integer(truth)) => if *truth == 0 { "f" } else { "t" }.to_owned(),
        (_, Value::Integer(number)) => number.to_string(),
        (_, Value::Real(number)) => number.to_string(),
        (SqlType::Timestamptz | SqlType::Interval, Value::Text(_)) => return None,
        (_, Value::Text(text)) => text.clone(),
        (_, Value::Blob(bytes)) => bytes.iter().fold("\\x".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    })
}
