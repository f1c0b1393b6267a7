//! What an inspection finds, and what it asks.

use postgres::oid;

/// Asks the source. The connection works as the client's user, with its `search_path` and settings set, outside a
/// transaction.
pub trait Catalogue {
    /// Rows of one or several statements in the simple protocol, as texts; those of the last that has rows.
    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure>;

    /// The OIDs of the types of a text's parameters (`Parse` and `Describe`); `given`: those that the client
    /// named, 0 for one that it left open.
    fn parameter_types(&mut self, sql: &str, given: &[u32]) -> Result<Vec<u32>, Failure>;
}

/// An error of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its SQLSTATE.
    pub state: String,
    /// Its message.
    pub message: String,
}

/// Whether a statement's answers may be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may; and what they depend on.
    Kept(Dependences),
    /// They may not.
    Refused(Refusal),
}

/// Why an answer may not be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, a sentence without its point: "table shop.item is not in publication cache".
    pub reason: String,
    /// What would help, where something does: "ALTER PUBLICATION cache ADD TABLE shop.item".
    pub cure: Option<String>,
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), cure: None }
    }

    pub(crate) fn with_cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(cure.into()), ..self }
    }
}

/// Why an inspection ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The source says no.
    Failed(Failure),
    /// The answer may not be kept.
    Refused(Refusal),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What the answers of a statement depend on, whatever its parameters are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependences {
    /// The types of its parameters.
    pub parameter_types: Vec<u32>,
    /// Every table that it reads, also through views.
    pub relations: Vec<Relation>,
    /// Each place where it reads one; equal ones are told once.
    pub occurrences: Vec<Occurrence>,
    /// Settings of which the value belongs into the key: those that `current_setting('name')` names.
    pub settings: Vec<String>,
    /// Whether the texts of this session are UTF-8, as those of the stream are. If not, only ASCII is compared.
    pub is_utf8: bool,
}

/// A table that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Its OID, by which tags name it.
    pub oid: u32,
    /// Its name with that of its schema, in quotes where they need some.
    pub name: String,
    /// It and all its partitions and children: the stream tells a change under one of these OIDs.
    pub leaves: Vec<u32>,
}

/// A place where a table is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The table's OID.
    pub relation: u32,
    /// The condition outside of which its rows do not count.
    pub guard: Option<Guard>,
    /// What would give it a guard: a column that the stream does not tell.
    pub note: Option<String>,
}

/// A condition `column = one of the values`. The answer stays the same if all other rows leave the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The column.
    pub column: String,
    /// How its values are written.
    pub kind: GuardKind,
    /// With what it is compared.
    pub values: Vec<Operand>,
}

/// How values of a column are written in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// `smallint`, `integer`, `bigint`
    Integer,
    /// `text`, `varchar`
    Text,
    /// `char(n)`: filled with blanks up to so many characters.
    Char(usize),
    /// `uuid`
    Uuid,
    /// `boolean`
    Bool,
    /// `date`, in the style ISO.
    Date,
    /// `timestamp`
    Timestamp,
    /// `timestamptz`, in UTC.
    Timestamptz,
    /// `numeric`, without zeros at the end of its fraction; see [`told`](crate::told).
    Numeric,
    /// `bytea`, in hexadecimal digits.
    Bytes,
    /// An enum: its labels.
    Enum,
}

impl GuardKind {
    /// How a value of this type is read that a column of this kind is compared with: an integer is a `numeric`, too.
    pub(crate) fn of_value(self, type_oid: u32) -> Self {
        let is_integer = matches!(type_oid, oid::INT2 | oid::INT4 | oid::INT8);
        if self == Self::Numeric && is_integer { Self::Integer } else { self }
    }
}

/// What a guard's column is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The parameter of this number, from 0.
    Parameter(usize),
    /// Each element of the array that is the parameter of this number, from 0.
    Elements(usize),
    /// A value, as the stream tells it.
    Literal(String),
}
