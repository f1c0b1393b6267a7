//! What values of PostgreSQL's types look like inside the five kinds: the spellings taken, the one form kept.

pub mod array;
pub mod float;
pub mod interval;
pub mod jsonb;
pub mod moment;
pub mod numeric;
pub mod simple;
mod sql_type;
pub mod zone;

use crate::value::{Affinity, NAN, Value};
use interval::Interval;
pub use sql_type::{Element, SqlType};

/// Why a value is none of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The SQLSTATE that PostgreSQL gives in this case.
    pub state: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Refusal {
    /// A refusal with its SQLSTATE.
    pub fn new(state: &'static str, message: impl Into<String>) -> Self {
        Self { state, message: message.into() }
    }

    fn moment(text: &str) -> Self {
        Self::new("22007", format!("invalid date or time: \"{}\"", shortened(text)))
    }

    fn field(text: &str) -> Self {
        Self::range(format!("date/time field value out of range: \"{}\"", shortened(text)))
    }

    fn range(message: impl Into<String>) -> Self {
        Self::new("22008", message)
    }

    fn syntax(ty: SqlType, text: &str) -> Self {
        let message = format!("invalid input syntax for type {}: \"{}\"", ty.sql_name(), shortened(text));
        Self::new("22P02", message)
    }

    fn of_kind(ty: SqlType, value: &Value) -> Self {
        let kind = match value {
            Value::Blob(_) => "bytes",
            Value::Text(text) => return Self::syntax(ty, text),
            Value::Integer(integer) => return Self::syntax(ty, &integer.to_string()),
            Value::Real(real) => return Self::syntax(ty, &real.to_string()),
            Value::Null => "NULL",
        };
        Self::new("22P02", format!("type {} does not take {kind}", ty.sql_name()))
    }
}

/// As much of a text as a message quotes.
fn shortened(text: &str) -> &str {
    const SHOWN_CHARS: usize = 40;
    text.char_indices().nth(SHOWN_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Whether values of the right kind still have to be looked at: their text has a form of its own.
pub fn has_form(ty: SqlType) -> bool {
    !matches!(
        ty,
        SqlType::Int4
            | SqlType::Int8
            | SqlType::Oid
            | SqlType::Float4
            | SqlType::Float8
            | SqlType::Numeric
            | SqlType::Text
            | SqlType::Varchar
            | SqlType::Name
            | SqlType::Xml
            | SqlType::Inet
            | SqlType::Cidr
            | SqlType::Unknown
    )
}

fn is_nan(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.trim().eq_ignore_ascii_case(NAN),
        Value::Real(real) => real.is_nan(),
        _ => false,
    }
}

/// The value in the form that a column of this type stores. NULL is NULL in every type.
///
/// Numbers are converted where nothing is lost. `INT` and `INTEGER` hold 64 bits, as SQLite's do, and memcached's
/// counters with them; the width of `SMALLINT` is meant by whoever writes it, and kept.
pub fn accept(ty: SqlType, value: Value) -> Result<Value, Refusal> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if ty.is_array() {
        return array::accept(ty.scalar(), value);
    }
    match ty {
        SqlType::Bool => simple::boolean(&value),
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Oid => simple::integer(ty, value),
        SqlType::Float4 | SqlType::Float8 if is_nan(&value) => Ok(Value::from(NAN)),
        SqlType::Float4 | SqlType::Float8 => simple::of_affinity(ty, value, Affinity::Real),
        SqlType::Numeric => numeric::accept(None, value),
        SqlType::Bytea => simple::bytes(value),
        SqlType::Uuid => simple::uuid(&value),
        SqlType::Json => simple::json(ty, value, false),
        SqlType::Jsonb => simple::json(ty, value, true),
        SqlType::Timestamptz => simple::text_form(ty, value, moment::timestamptz),
        SqlType::Timestamp => simple::text_form(ty, value, moment::timestamp),
        SqlType::Date => simple::text_form(ty, value, moment::date),
        SqlType::Time => simple::text_form(ty, value, moment::time),
        SqlType::Timetz => simple::text_form(ty, value, moment::timetz),
        SqlType::Interval => simple::text_form(ty, value, |text| Interval::parse(text).map(Interval::write)),
        SqlType::Unknown => Ok(value),
        SqlType::Bpchar => simple::of_affinity(ty, value, Affinity::Text).map(simple::without_blanks),
        _ => simple::of_affinity(ty, value, Affinity::Text),
    }
}
