//! A column: its type, what its values are, and where they come from.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::enumeration::{EnumDef, by_id};
use super::{Collation, DefinitionError, Grant, SqlType, types};
use crate::scalar::numeric::Modifier;
use crate::scalar::{self, Refusal};
use crate::value::{Affinity, Value, ValueRef};

/// What a column's values are, after its declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnKind {
    /// 64-bit integers; booleans are 0 and 1.
    Integer,
    /// 64-bit floats.
    Real,
    /// UTF-8 text.
    Text,
    /// Bytes.
    Blob,
    /// Decimal numbers (`NUMERIC`, `DECIMAL`), as texts of all their digits.
    Numeric,
    /// Anything, kept as it comes.
    Any,
}

impl ColumnKind {
    /// The kind of a type as written in `CREATE TABLE`; a type we do not know is 42704.
    ///
    /// Names are compared whole and in any case; what stands in parentheses is ignored (`VARCHAR(20)`).
    /// No type at all means [`ColumnKind::Any`].
    pub fn of_declared(declared: &str) -> Result<Self, DefinitionError> {
        types::kind_of(declared)
    }

    /// The conversion that SQLite applies for this kind.
    pub fn affinity(self) -> Affinity {
        match self {
            Self::Integer => Affinity::Integer,
            Self::Real => Affinity::Real,
            Self::Text | Self::Numeric => Affinity::Text,
            Self::Blob | Self::Any => Affinity::Blob,
        }
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Its name; names differ by more than ASCII case.
    pub name: String,
    /// The declared type as the user wrote it, for clients that ask.
    pub declared: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// Whether NULL is refused (23502, by whoever applies the write).
    pub not_null: bool,
    /// The value of a row that names none; `None` is NULL.
    pub default: Option<Value>,
    /// The expression whose value a row takes that names none, where it is not one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_sql: Option<String>,
    /// How its texts compare.
    #[serde(default, skip_serializing_if = "Collation::is_binary")]
    pub collation: Collation,
    /// What computes it; nobody else writes it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Generated>,
    /// Whether the server numbers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Made for an index: an indexed expression, or the predicate of a partial index. Users do not see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Still being computed for rows that were there before it: users do not see it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// Its place in payloads, once the table was altered; before that its rank among the payload columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u16>,
    /// Its value in rows that were written before it was added; `None` is NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Value>,
    /// What `COMMENT ON` says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What was granted of this column alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// The enum type of its values, or of the elements of its arrays.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_id")]
    pub enumeration: Option<Arc<EnumDef>>,
}

/// What computes a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// The expression, as SQL over the table's other columns.
    pub sql: String,
    /// Whether it was declared `STORED`. Both kinds are computed when a row is written, for the expression is
    /// deterministic and an index needs the value when the row goes.
    pub stored: bool,
}

/// How the server numbers a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// Where a row names no value.
    ByDefault,
    /// Always; a row that names a value is refused.
    Always,
    /// As [`Identity::ByDefault`], of a column that was declared `SERIAL`: clients are shown a default of `nextval`.
    Serial,
}

impl ColumnDef {
    /// A nullable column without default, of the type as declared.
    pub fn new(name: &str, declared: &str) -> Result<Self, DefinitionError> {
        Ok(Self::of_kind(name, declared, ColumnKind::of_declared(declared)?))
    }

    /// The same of an enum type or of arrays of it.
    pub fn of_enum(name: &str, enumeration: &Arc<EnumDef>, array: bool) -> Self {
        let collation = if array { Collation::Binary } else { Collation::Enum(enumeration.id) };
        Self {
            collation,
            enumeration: Some(Arc::clone(enumeration)),
            ..Self::of_kind(name, &declared_enum(enumeration, array), ColumnKind::Text)
        }
    }

    /// Takes over the enum type as it is now.
    pub(crate) fn resolve(&mut self, enumeration: &Arc<EnumDef>) {
        let array = self.sql_type().is_array();
        self.declared = declared_enum(enumeration, array);
        self.enumeration = Some(Arc::clone(enumeration));
    }

    fn of_kind(name: &str, declared: &str, kind: ColumnKind) -> Self {
        Self {
            name: name.into(),
            declared: declared.into(),
            kind,
            not_null: false,
            default: None,
            default_sql: None,
            collation: if kind == ColumnKind::Numeric { Collation::Numeric } else { Collation::Binary },
            generated: None,
            identity: None,
            hidden: false,
            pending: false,
            slot: None,
            absent: None,
            comment: None,
            grants: Vec::new(),
            enumeration: None,
        }
    }

    /// Whether a row that names no value gets one.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
            || self.default_sql.is_some()
            || self.generated.is_some()
            || self.identity.is_some()
    }

    /// Whether statements can name it.
    pub fn is_visible(&self) -> bool {
        !self.hidden && !self.pending
    }

    /// The value as this column stores it: which [`scalar::accept`] decides by its declared type.
    ///
    /// NULL always fits; `NOT NULL` is checked by whoever applies the write. A BLOB column takes text as its
    /// bytes, as PostgreSQL does for a literal, because JSON parameters cannot spell a blob.
    pub fn accept(&self, value: Value) -> Result<Value, TypeMismatch> {
        let shown = TypeMismatch::shortened(value.as_ref());
        let ty = self.sql_type();
        let accepted = match (&self.enumeration, &value) {
            (Some(own), _) if ty.is_array() => own.accept_array(value),
            (Some(own), _) => own.accept(value),
            (None, Value::Integer(_) | Value::Real(_) | Value::Text(_)) if ty == SqlType::Numeric => {
                scalar::numeric::accept(Modifier::of_declared(&self.declared), value)
            }
            _ => scalar::accept(ty, value).and_then(|value| self.rounded(ty, value)),
        };
        accepted.map_err(|refusal| TypeMismatch {
            column: self.name.clone(),
            declared: self.declared.clone(),
            value: shown,
            is_enum: self.enumeration.is_some(),
            refusal,
        })
    }

    /// What is said of a value that it does not take.
    pub(crate) fn mismatch(&self, value: ValueRef<'_>, refusal: Refusal) -> TypeMismatch {
        TypeMismatch {
            column: self.name.clone(),
            declared: self.declared.clone(),
            value: TypeMismatch::shortened(value),
            is_enum: self.enumeration.is_some(),
            refusal,
        }
    }

    /// A moment or time of day with as many digits behind the second as `timestamp(3)` keeps, and an array of these or
    /// of decimal numbers.
    fn rounded(&self, ty: SqlType, value: Value) -> Result<Value, Refusal> {
        let element = ty.scalar();
        if !self.declared.contains('(') || !(scalar::moment::has_digits(element) || ty.is_array()) {
            return Ok(value);
        }
        let Value::Text(text) = value else { return Ok(value) };
        let round = |text: String| match declared_digits(&self.declared) {
            _ if element == SqlType::Numeric => {
                scalar::numeric::accept(Modifier::of_declared(&self.declared), Value::Text(text))
            }
            Some(digits) if scalar::moment::has_digits(element) => {
                scalar::moment::rounded(&text, digits).map(Value::Text)
            }
            _ => Ok(Value::Text(text)),
        };
        if ty.is_array() { scalar::array::each_text(&text, element, round) } else { round(text) }
    }

    /// What PostgreSQL clients are told of it, as its declared type has it.
    pub fn sql_type(&self) -> SqlType {
        match &self.enumeration {
            None => SqlType::of_declared(&self.declared).unwrap_or(SqlType::Unknown),
            Some(own) if self.declared.ends_with("[]") => SqlType::array_of_enum(own.id),
            Some(own) => SqlType::Enum(own.id),
        }
    }
}

/// `timestamp(3)`; `None`: it keeps all digits.
fn declared_digits(declared: &str) -> Option<u32> {
    let (inside, _) = declared.split_once('(')?.1.split_once(')')?;
    inside.trim().parse().ok().filter(|digits| *digits < scalar::moment::DIGITS)
}

/// An enum type, or arrays of it, as a column declares it.
fn declared_enum(enumeration: &EnumDef, array: bool) -> String {
    format!("{}{}", enumeration.name, if array { " []" } else { "" })
}

/// A value that does not fit its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// The column.
    pub column: String,
    /// Its type as declared.
    pub declared: String,
    /// The value, shortened for a message.
    pub value: String,
    /// Its type is an enum type, or an array of one.
    pub is_enum: bool,
    /// Why, with the SQLSTATE.
    pub refusal: Refusal,
}

impl TypeMismatch {
    /// How much of a value a message quotes.
    const SHOWN_CHARS: usize = 40;

    fn shortened(value: ValueRef<'_>) -> String {
        let text = match value {
            ValueRef::Blob(bytes) => {
                // Each byte is two characters, so this already reaches the limit.
                bytes.iter().take(Self::SHOWN_CHARS).fold(String::from("x'"), |mut hex, byte| {
                    hex.extend(
                        [byte >> 4, byte & 15]
                            .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
                    );
                    hex
                }) + "'"
            }
            // A megabyte need not be copied for its beginning.
            ValueRef::Text(text) => {
                let end = text.char_indices().nth(Self::SHOWN_CHARS).map_or(text.len(), |(end, _)| end);
                format!("'{}'", &text[..end])
            }
            other => {
                let mut printed = Vec::new();
                other.write_text(&mut printed);
                String::from_utf8_lossy(&printed).into_owned()
            }
        };
        match text.char_indices().nth(Self::SHOWN_CHARS) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_enum {
            // PostgreSQL's words, which tell all that there is to tell.
            return f.write_str(&self.refusal.message);
        }
        write!(f, "column \"{}\" of type {} does not take {}", self.column, self.declared, self.value)?;
        // Malformed is all that there is to say of the others.
        if self.refusal.state == "22P02" { Ok(()) } else { write!(f, ": {}", self.refusal.message) }
    }
}

impl std::error::Error for TypeMismatch {}
