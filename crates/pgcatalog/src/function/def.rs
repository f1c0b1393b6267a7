//! What is written down of each function.

use sqlite::meter;
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::value::{Affinity, Value};

/// What a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Always this.
    Type(SqlType),
    /// Whatever the value is: nothing is known before.
    Open,
    /// What its first argument is.
    Argument,
    /// What its second argument is.
    Second,
    /// What all of its arguments have in common.
    Common,
    /// What the values among its arguments have in common, where conditions stand before them, as in `iif`.
    Chosen,
    /// Bytes of bytes, text of anything else.
    Part,
    /// An array of what its argument is.
    Array,
    /// An array of texts.
    Texts,
    /// The sum of values of that.
    Sum,
    /// Their mean.
    Average,
}

/// What a function does with decimal numbers. A function that does not say it takes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numeric {
    /// This function computes them exactly.
    Exact(&'static str),
    /// The same, and it computes integers too.
    Wide(&'static str),
    /// It takes the text that the number is.
    Text,
    /// It takes the nearest integer or float, as PostgreSQL's function of floats does.
    Nearest,
    /// What it gives is one of its arguments.
    Chosen,
}

/// What a function becomes whose arguments are intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// This function takes its place.
    Function(&'static str),
    /// It compares keys of them, and what it finds is the interval of that key.
    Keys,
}

/// The moment and place of a call.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// When the statement began, in microseconds since 1970.
    pub us: i64,
}

/// On whose behalf functions are called.
pub trait Caller: 'static {
    /// The moment of the call.
    fn now(&self) -> Now;
    /// Keeps an error that SQLite can carry only the words of, and returns these.
    fn fail(&self, error: SqlError) -> String;
}

/// A function in Rust.
pub(super) type Run = fn(Now, &[Value]) -> Result<Value, SqlError>;

/// Where a function comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// SQLite has it.
    Sqlite,
    /// It is of groups, and its module registers it.
    Group,
    /// It is here; with the fewest and most arguments (-1: any number).
    Own(Run, i32, i32),
    /// It is here, its answer is JSON, and functions that build JSON take it for that; with how many arguments.
    Json(Run, i32),
    /// It is here, is called also with NULL, and its answer may differ each time where the flag says so.
    Raw(Run, i32, i32, bool),
}

/// One function: all that the registration, the allow-list, the types and the user's page are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionDef {
    pub name: &'static str,
    /// What is told of it, behind its name.
    pub arguments: &'static str,
    pub returns: Returns,
    /// The types of its first arguments, for parameters that stand there.
    pub types: &'static [SqlType],
    pub source: Source,
    /// What it does with decimal numbers; `None`: it takes none.
    pub numeric: Option<Numeric>,
    /// The function that takes its place where its argument is a float, which may be NaN or infinite.
    pub of_floats: Option<&'static str>,
    /// What becomes of it where its argument is an interval, which SQLite would take for a text.
    pub of_spans: Option<Spans>,
    pub meaning: &'static str,
    /// An expression and its answer; a test compares them.
    pub example: &'static str,
    pub answer: &'static str,
}

impl FunctionDef {
    /// The same, which takes decimal numbers so.
    pub(super) const fn numeric(self, numeric: Numeric) -> Self {
        Self { numeric: Some(numeric), ..self }
    }

    /// The same, for which another stands where the argument is a float.
    pub(super) const fn of_floats(self, function: &'static str) -> Self {
        Self { of_floats: Some(function), ..self }
    }

    /// The same, of intervals.
    pub(super) const fn of_spans(self, spans: Spans) -> Self {
        Self { of_spans: Some(spans), ..self }
    }
}

/// A text argument: numbers as SQLite writes them, bytes where they are UTF-8.
pub(super) fn text(values: &[Value], at: usize) -> Result<String, SqlError> {
    meter::take(length_of(values.get(at)))?;
    match values.get(at) {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(Value::Blob(bytes)) => String::from_utf8(bytes.clone())
            .map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\"")),
        Some(Value::Null) | None => Ok(String::new()),
        Some(number) => match number.clone().with_affinity(Affinity::Text) {
            Value::Text(text) => Ok(text),
            _ => Ok(String::new()),
        },
    }
}

/// Bytes of a text or of bytes.
pub(super) fn length_of(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Text(text)) => text.len(),
        Some(Value::Blob(bytes)) => bytes.len(),
        _ => 0,
    }
}

/// Bytes: those of a text are its own.
pub(super) fn bytes(values: &[Value], at: usize) -> Result<Vec<u8>, SqlError> {
    match values.get(at) {
        Some(Value::Blob(bytes)) => {
            meter::take(bytes.len())?;
            Ok(bytes.clone())
        }
        _ => text(values, at).map(String::into_bytes),
    }
}

/// A whole number; a missing argument is none.
pub(super) fn integer(values: &[Value], at: usize) -> Result<Option<i64>, SqlError> {
    let Some(value) = values.get(at) else { return Ok(None) };
    match value.clone().with_affinity(Affinity::Integer) {
        Value::Integer(integer) => Ok(Some(integer)),
        #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
        Value::Real(real) => Ok(Some(real.round() as i64)),
        Value::Null => Ok(None),
        _ => Err(SqlError::new(state::BAD_VALUE, "a whole number was expected")),
    }
}

/// A number.
pub(super) fn real(values: &[Value], at: usize) -> Result<f64, SqlError> {
    match values.get(at).cloned().unwrap_or_default().with_affinity(Affinity::Real) {
        Value::Real(real) => Ok(real),
        Value::Integer(integer) => Ok(integer as f64),
        Value::Text(text) if let Some(special) = super::float::of_word(&text) => Ok(special),
        _ => Err(SqlError::new(state::BAD_VALUE, "a number was expected")),
    }
}

/// A length that a result may have.
pub(super) fn length(values: &[Value], at: usize) -> Result<usize, SqlError> {
    let length = integer(values, at)?.unwrap_or(0).max(0);
    usize::try_from(length).ok().filter(|length| *length <= crate::limits::TEXT_BYTES_MAX).ok_or_else(|| {
        let limit = crate::limits::TEXT_BYTES_MAX;
        SqlError::new(state::TOO_LARGE, format!("requested length too large; the limit is {limit} bytes"))
    })
}
