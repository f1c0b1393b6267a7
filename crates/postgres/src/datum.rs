//! Values on their way, in the five shapes that the engine knows.

/// A value of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum<'a> {
    /// No value.
    Null,
    /// A whole number, and what is kept as one: truth values, counts.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text, and what is kept as text: times, JSON, UUIDs.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// See [`Datum::Integer`].
    Integer(i64),
    /// See [`Datum::Real`].
    Real(f64),
    /// See [`Datum::Text`].
    Text(String),
    /// See [`Datum::Bytes`].
    Bytes(Vec<u8>),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As people read it.
    #[default]
    Text,
    /// As the type has it, big-endian.
    Binary,
}

impl Format {
    /// The number that stands for it.
    pub fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// What a number stands for.
    pub fn of(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Text),
            1 => Some(Self::Binary),
            _ => None,
        }
    }
}

/// Why a value cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// The SQLSTATE.
    pub state: &'static str,
    /// In words.
    pub message: String,
}

impl ValueError {
    pub(crate) fn new(state: &'static str, message: String) -> Self {
        Self { state, message }
    }

    /// Text that is no value of the type.
    #[cold]
    pub(crate) fn syntax(type_oid: u32, text: &str) -> Self {
        let shown: String = text.chars().take(100).collect();
        let name = crate::oid::name(type_oid);
        Self::new("22P02", format!("invalid input syntax for type {name}: \"{shown}\""))
    }

    /// Bytes that are no value of the type.
    #[cold]
    pub(crate) fn binary(type_oid: u32) -> Self {
        let name = crate::oid::name(type_oid);
        Self::new("22P03", format!("incorrect binary data format for type {name}"))
    }

    /// A number beyond the type.
    #[cold]
    pub(crate) fn range(type_oid: u32) -> Self {
        let name = crate::oid::name(type_oid);
        Self::new("22003", format!("value out of range for type {name}"))
    }
}
