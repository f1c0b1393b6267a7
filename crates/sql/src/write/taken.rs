//! The errors for a value of a key or unique index that another row has, and for a row that breaks another rule of its
//! table. They say the values, as PostgreSQL does, to who may read them.

use std::fmt::Write as _;

use pgcatalog::identifier;
use store::definition::{ColumnDef, Privileges, SqlType};
use store::scalar::array::braces;
use store::scalar::jsonb::spaced;
use store::scalar::zone;
use store::value::Value;
use store::{Table, WriteError};

use super::batch::Constraint;
use super::insert::is_broken_constraint;
use super::plan::Run;
use super::plan::refused;
use crate::error::SqlError;
use crate::limits::SHOWN_BYTES_MAX;

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

/// The error for a row of these values that has NULL where it must not, or breaks a check.
#[cold]
pub(super) fn broken(run: &Run<'_>, error: WriteError, values: &[Value]) -> SqlError {
    let of_row = is_broken_constraint(&error);
    let error = refused(run.table, error);
    match row_of(run, values).filter(|_| of_row) {
        Some(row) => error.with_detail(format!("Failing row contains {row}.")),
        None => error,
    }
}

/// The error for the first column of such a row that is NULL and must not be.
#[cold]
pub(super) fn null_in(run: &Run<'_>, column: usize, values: &[Value]) -> SqlError {
    broken(run, WriteError::NotNull(run.table.def().columns[column].name.clone()), values)
}

/// `(1, x)`: a whole row, or what the session may read of it.
fn row_of(run: &Run<'_>, values: &[Value]) -> Option<String> {
    let columns = run.table.def().columns.iter().enumerate().filter(|(_, column)| !column.hidden);
    let all: Vec<usize> = columns.map(|(at, _)| at).collect();
    let readable: Vec<usize> = all.iter().copied().filter(|at| may_read(run, &[*at])).collect();
    let shown = |at: usize| Some(shortened(text_of(run.table.column_type(at), values.get(at)?)?));
    let row = readable.iter().map(|&at| shown(at)).collect::<Option<Vec<_>>>()?.join(", ");
    if readable.is_empty() {
        return None;
    }
    if readable.len() == all.len() {
        return Some(format!("({row})"));
    }
    let names = readable.iter().map(|&at| identifier(&run.table.def().columns[at].name));
    Some(format!("({}) = ({row})", names.collect::<Vec<_>>().join(", ")))
}

/// A value as a message shows it, which is the beginning of a long one.
fn shortened(text: String) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text;
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)])
}

/// Whether the session may read these columns: what they hold is said to nobody else.
fn may_read(run: &Run<'_>, columns: &[usize]) -> bool {
    let (def, holder) = (run.table.def(), run.core.system.identity().holder());
    let granted = |at: &usize| holder.on_column(&def.columns[*at].grants).0.has(Privileges::SELECT);
    holder.on(&def.access).0.has(Privileges::SELECT) || columns.iter().all(granted)
}

/// `(a, b)=(1, x)`
pub(super) fn key_of(table: &Table, columns: &[usize], values: &[Value]) -> Option<String> {
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
        (ty, Value::Text(json)) if ty.is_array() => braces(json)?,
        (SqlType::Jsonb, Value::Text(json)) => spaced(json),
        (SqlType::Bool, Value::Integer(truth)) => if *truth == 0 { "f" } else { "t" }.to_owned(),
        (_, Value::Integer(number)) => number.to_string(),
        (_, Value::Real(number)) => number.to_string(),
        // Stored in UTC; a session of another zone is not shown another hour than it means.
        (SqlType::Timestamptz, Value::Text(moment)) if zone::current().is_none() => {
            moment.strip_suffix(":00").unwrap_or(moment).to_owned()
        }
        (SqlType::Timestamptz | SqlType::Interval, Value::Text(_)) => return None,
        (_, Value::Text(text)) => text.clone(),
        (_, Value::Blob(bytes)) => bytes.iter().fold("\\x".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    })
}
