//! Conversions: what `value::type` does, one function for each type.

use sqlite::meter;
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::scalar::{accept, simple};
use store::value::{Affinity, Value};

use super::def::Now;
use super::moment::of_word;
use super::text::hex;
use crate::limits::NODE_UNITS;

/// What the function's name begins with; the type's name follows.
pub(crate) const PREFIX: &str = "cast_";
/// The conversion of arrays, whatever their elements are.
const ARRAY: &str = "cast_array";

/// The functions with the types that they make.
pub(super) fn all() -> impl Iterator<Item = (String, Option<SqlType>)> {
    let scalars = SqlType::all().map(|ty| (format!("{PREFIX}{}", ty.name().trim_matches('"')), Some(ty)));
    scalars.chain([(ARRAY.to_owned(), None)])
}

/// Whether it is one of them.
pub(super) fn is_cast(name: &str) -> bool {
    all().any(|(own, _)| own.eq_ignore_ascii_case(name))
}

/// Converts a value to a type; without one, to an array of anything.
pub(super) fn convert(now: Now, ty: Option<SqlType>, value: Value) -> Result<Value, SqlError> {
    use SqlType::{Bool, Bytea, Date, Int2, Int4, Int8, Oid, Regtype, Time, Timestamp, Timestamptz, Timetz};
    if value.is_null() {
        return Ok(value);
    }
    if ty.is_some_and(SqlType::is_array) {
        take_elements_of(&value)?;
    }
    if let (Some(SqlType::Jsonb), Value::Text(json)) = (ty, &value) {
        super::jsonb::take_form(json)?;
    }
    let Some(ty) = ty else {
        if let Some(vector) = of_vector(&value) {
            return Ok(vector);
        }
        let text = SqlType::Unknown.array().or_else(|| SqlType::Text.array());
        return array(&value, text);
    };
    match (ty, value) {
        (Bool, Value::Integer(integer)) => Ok(Value::Integer(i64::from(integer != 0))),
        (Int2 | Int4 | Int8 | Oid, value) => integer(ty, value),
        (Timestamptz | Timestamp | Date | Time | Timetz, Value::Text(text)) => {
            let text = match of_word(now, &text) {
                Some(moment) if ty == Timestamptz => moment,
                Some(moment) => super::moment::local(&moment)?,
                None => text,
            };
            Ok(accept(ty, Value::Text(text))?)
        }
        (SqlType::Numeric, value) => Ok(Value::Text(store::scalar::numeric::of_value(&value)?.text())),
        (Bytea, Value::Text(text)) => Ok(accept(Bytea, Value::Text(text))?),
        (Regtype, Value::Integer(oid)) => {
            let known = u32::try_from(oid).ok().and_then(SqlType::of_oid);
            Ok(Value::Text(known.map_or_else(|| oid.to_string(), SqlType::sql_name)))
        }
        (SqlType::Regnamespace, Value::Integer(oid)) => Ok(Value::from(match oid {
            11 => "pg_catalog",
            2200 => "public",
            _ => return Ok(Value::Text(oid.to_string())),
        })),
        (ty, Value::Blob(bytes)) if is_text(ty) => Ok(Value::Text(format!("\\x{}", hex(&bytes)))),
        (SqlType::Bpchar, value) => Ok(simple::without_blanks(value.with_affinity(Affinity::Text))),
        (ty, value) if is_text(ty) => Ok(value.with_affinity(Affinity::Text)),
        (ty, value) => Ok(accept(ty, value)?),
    }
}

/// Types that any value can be written as.
fn is_text(ty: SqlType) -> bool {
    !matches!(
        ty,
        SqlType::Bool
            | SqlType::Float4
            | SqlType::Float8
            | SqlType::Numeric
            | SqlType::Bytea
            | SqlType::Uuid
            | SqlType::Json
            | SqlType::Jsonb
            | SqlType::Timestamptz
            | SqlType::Timestamp
            | SqlType::Date
            | SqlType::Time
            | SqlType::Timetz
            | SqlType::Interval
    )
}

/// A fraction is rounded away from zero; the width of the type is kept. The fraction of a float is rounded before.
fn integer(ty: SqlType, value: Value) -> Result<Value, SqlError> {
    let out_of_range = || SqlError::new(state::OUT_OF_RANGE, format!("{} out of range", ty.sql_name()));
    let value = match value {
        Value::Real(real) => Value::Integer(simple::whole(real.round()).ok_or_else(out_of_range)?),
        other => accept(ty, other)?,
    };
    let Value::Integer(integer) = value else { return Ok(value) };
    let fits = match ty {
        SqlType::Int2 => i16::try_from(integer).is_ok(),
        SqlType::Int4 => i32::try_from(integer).is_ok(),
        SqlType::Oid => u32::try_from(integer).is_ok(),
        _ => true,
    };
    if fits { Ok(Value::Integer(integer)) } else { Err(out_of_range()) }
}

/// What an element takes while an array is read and written.
const ELEMENT_BYTES: usize = 128;

/// A value's elements, if it is an array, are taken apart and put together again.
fn take_elements_of(value: &Value) -> Result<(), SqlError> {
    match value {
        Value::Text(text) => take_elements(text),
        _ => Ok(()),
    }
}

/// The same of an array's text.
pub(super) fn take_elements(text: &str) -> Result<(), SqlError> {
    let elements = 1 + memchr::memchr_iter(b',', text.as_bytes()).count();
    meter::take(text.len() * 3 + elements * ELEMENT_BYTES)?;
    meter::work(text.len() + elements * NODE_UNITS)
}

/// An `int2vector` or `oidvector` of the catalogue, `1 2`, as an array; none for anything else.
fn of_vector(value: &Value) -> Option<Value> {
    let Value::Text(text) = value else { return None };
    let is_so = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ');
    is_so.then(|| Value::Text(format!("[{}]", text.split_whitespace().collect::<Vec<_>>().join(","))))
}

fn array(value: &Value, ty: Option<SqlType>) -> Result<Value, SqlError> {
    match (value, ty) {
        (Value::Text(text), _) if text.trim_start().starts_with('[') => Ok(value.clone()),
        (_, Some(ty)) => {
            take_elements_of(value)?;
            Ok(accept(ty, value.clone())?)
        }
        _ => Ok(value.clone()),
    }
}

/// Whether texts for a type are put into the form that it has before they are bound.
pub fn is_formed(ty: SqlType) -> bool {
    ty == SqlType::Numeric || store::scalar::has_form(ty) && ty != SqlType::Json
}

/// Whether a parameter's text has to be converted before it is bound: the type has a form of its own.
pub fn bound(now: Now, ty: SqlType, cast: bool, value: &Value) -> Result<Option<Value>, SqlError> {
    let text = matches!(value, Value::Text(_));
    if value.is_null() || !(cast || (is_formed(ty) && text)) {
        return Ok(None);
    }
    if ty == SqlType::Numeric {
        return Ok(Some(Value::Text(store::scalar::numeric::of_value(value)?.text())));
    }
    let moments = matches!(ty, SqlType::Timestamptz | SqlType::Timestamp | SqlType::Date);
    if moments && !text {
        return Err(SqlError::new("22007", format!("a parameter of type {} is a text", ty.sql_name())));
    }
    if ty == SqlType::Bool
        && let Value::Text(text) = value
    {
        let truth = simple::truth_of(text).ok_or_else(|| {
            SqlError::new(state::BAD_VALUE, format!("invalid input syntax for type boolean: \"{text}\""))
        })?;
        return Ok(Some(Value::Integer(i64::from(truth))));
    }
    if ty.is_array() {
        return meter::part(|| {
            take_elements_of(value)?;
            Ok(Some(accept(ty, value.clone())?))
        });
    }
    convert(now, Some(ty), value.clone()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_moments_are_those_of_the_statement() {
        let now = Now { us: 86_400_000_000 * 20_000 + 5 };
        let cast = |ty, text: &str| convert(now, Some(ty), Value::from(text)).unwrap();
        assert_eq!(cast(SqlType::Timestamptz, "now"), Value::from("2024-10-04 00:00:00.000005+00:00"));
        assert_eq!(cast(SqlType::Date, "tomorrow"), Value::from("2024-10-05"));
        assert_eq!(convert(now, Some(SqlType::Int4), Value::Real(2.5)), Ok(Value::Integer(3)));
        assert_eq!(
            convert(now, Some(SqlType::Int4), Value::Integer(1 << 40)).map_err(|error| error.state),
            Err("22003")
        );
    }
}
