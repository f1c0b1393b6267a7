//! What a statement is answered with when it fails: a SQLSTATE as PostgreSQL has it, and words that help.

use std::fmt;

use store::definition::{DefinitionError, TypeMismatch};
use store::scalar::Refusal;
use store::{DdlError, ReadError, WriteError};

use crate::token::Token;

/// Why a statement failed. Nothing of it was applied, unless it said `OR FAIL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The SQLSTATE.
    pub state: &'static str,
    /// What is wrong and, where there is something to do, what.
    pub message: String,
    /// Where in the statement's text, as a character counted from 1.
    pub position: Option<usize>,
    /// What more there is to say of it. Boxed once more, so that results stay small.
    pub detail: Option<Box<String>>,
    /// A way out, where one is known.
    pub hint: Option<String>,
    /// Where it happened, when that is not a place of the statement: a line of `COPY`'s data. Boxed once more, as the
    /// table is.
    pub context: Option<Box<String>>,
    /// The table whose constraint was violated, behind its schema. Boxed once more, so that results stay small.
    pub table: Option<Box<(String, String)>>,
    /// Which of the rows that an `INSERT` was given is to blame, counted from 0.
    pub row: Option<u32>,
    /// What the statement wrote before stands, and so does its transaction: `OR FAIL`.
    pub partial: bool,
}

/// The SQLSTATEs that we give ourselves. The store's refusals are mapped below, SQLite's in crate `sqlite`.
pub mod state {
    /// Nothing is wrong.
    pub const SUCCESS: &str = "00000";
    /// Something to know; the statement worked.
    pub const WARNING: &str = "01000";
    /// A feature that this version does not have.
    pub const NOT_SUPPORTED: &str = "0A000";
    /// The number of parameters differs from the statement's.
    pub const PROTOCOL: &str = "08P01";
    /// An expression of a table's definition that has no value for a row.
    pub const BAD_EXPRESSION: &str = store::BAD_EXPRESSION;
    /// An identity column that has reached its last number.
    pub const NUMBERS_EXHAUSTED: &str = "2200H";
    /// A value beyond its range.
    pub const OUT_OF_RANGE: &str = "22003";
    /// NULL where a value must be.
    pub const NULL_NOT_ALLOWED: &str = "22004";
    /// A function was called with something it cannot take.
    pub const BAD_PARAMETER: &str = "22023";
    /// What must be done once would be done twice.
    pub const CARDINALITY: &str = "21000";
    /// A parameter that does not exist.
    pub const UNKNOWN_PARAMETER: &str = "42P02";
    /// A function or procedure that cannot be.
    pub const BAD_ROUTINE: &str = "42P13";
    /// A privilege that such an object does not have, or one that others depend on.
    pub const INVALID_GRANT: &str = "0LP01";
    /// A value that is no value of the type.
    pub const BAD_VALUE: &str = "22P02";
    /// NULL where it must not be.
    pub const NOT_NULL: &str = "23502";
    /// A key or unique value that is taken.
    pub const UNIQUE: &str = "23505";
    /// A row that does not belong into its table.
    pub const CHECK: &str = "23514";
    /// A transaction is open already, or too far on for this.
    pub const ACTIVE_TRANSACTION: &str = "25001";
    /// A write where only reading is allowed.
    pub const READ_ONLY: &str = "25006";
    /// No transaction is open.
    pub const NO_TRANSACTION: &str = "25P01";
    /// The transaction failed and was not ended yet.
    pub const FAILED_TRANSACTION: &str = "25P02";
    /// No such savepoint.
    pub const NO_SAVEPOINT: &str = "3B001";
    /// A row that others kept changing.
    pub const LOST: &str = "40001";
    /// Forbidden here.
    pub const FORBIDDEN: &str = "42501";
    /// Not SQL.
    pub const SYNTAX: &str = "42601";
    /// A name that nothing may have.
    pub const BAD_NAME: &str = "42602";
    /// A column twice.
    pub const DUPLICATE_COLUMN: &str = "42701";
    /// A column that the server makes.
    pub const READ_ONLY_COLUMN: &str = "428C9";
    /// A column or a value of a single row where a group has one.
    pub const GROUPING: &str = "42803";
    /// No such column.
    pub const UNKNOWN_COLUMN: &str = "42703";
    /// A constraint that is there already.
    pub const DUPLICATE_OBJECT: &str = "42710";
    /// Something that others depend on.
    pub const DEPENDED_ON: &str = "2BP01";
    /// No such index.
    pub const UNKNOWN_OBJECT: &str = "42704";
    /// A name that the system keeps for itself.
    pub const RESERVED_NAME: &str = "42939";
    /// A conflict target without a unique index.
    pub const BAD_TARGET: &str = "42P10";
    /// No such table.
    pub const UNKNOWN_TABLE: &str = "42P01";
    /// A table, an index or a view that is there already.
    pub const DUPLICATE_TABLE: &str = "42P07";
    /// A schema that is there already.
    pub const DUPLICATE_SCHEMA: &str = "42P06";
    /// No such schema.
    pub const UNKNOWN_SCHEMA: &str = "3F000";
    /// An expression that cannot stand in a definition.
    pub const BAD_EXPRESSION_PLACE: &str = "42P17";
    /// A definition that makes no sense.
    pub const BAD_DEFINITION: &str = "42P16";
    /// A view where a table is written.
    pub const NOT_A_TABLE: &str = "42809";
    /// No function or procedure of this name.
    pub const UNKNOWN_FUNCTION: &str = "42883";
    /// No memory.
    pub const OUT_OF_MEMORY: &str = "53200";
    /// A session holds more than it may.
    pub const SESSION_FULL: &str = "53400";
    /// Over a limit.
    pub const TOO_LARGE: &str = "54000";
    /// A statement too deeply nested or too wide.
    pub const TOO_COMPLEX: &str = "54001";
    /// Stopped by its timeout or by request.
    pub const CANCELED: &str = "57014";
    /// It has not come so far yet.
    pub const NOT_IN_STATE: &str = "55000";
    /// The rows that a statement needs were given up.
    pub const SNAPSHOT_TOO_OLD: &str = "72000";
    /// A mistake of ours.
    pub const INTERNAL: &str = "XX000";
    /// Memory was damaged.
    pub const CORRUPT: &str = "XX001";
}

impl SqlError {
    /// The constraint that the message of an integrity violation names.
    pub fn constraint(&self) -> Option<&str> {
        let (_, name) = self.message.split_once(" constraint \"").filter(|_| self.state.starts_with("23"))?;
        name.strip_suffix('"')
    }

    /// The column, and its table, that the message of a NULL that is not allowed names.
    pub fn null_column(&self) -> Option<(&str, &str)> {
        let named =
            self.message.strip_prefix("null value in column \"").filter(|_| self.state == state::NOT_NULL)?;
        let (column, rest) = named.split_once("\" of relation \"")?;
        Some((column, rest.strip_suffix("\" violates not-null constraint")?))
    }

    /// An error with its SQLSTATE.
    pub fn new(state: &'static str, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
            position: None,
            detail: None,
            hint: None,
            context: None,
            table: None,
            row: None,
            partial: false,
        }
    }

    /// The error for a token that does not belong where it stands.
    pub fn syntax(sql: &str, token: &Token<'_>) -> Self {
        Self::new(state::SYNTAX, format!("syntax error at or near \"{}\"", token.text)).at(sql, token.start)
    }

    /// The same with a way out.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with more to say of it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(Box::new(detail.into()));
        self
    }

    /// The same, to blame on one of the rows that an `INSERT` was given.
    #[must_use]
    pub fn of_row(mut self, row: usize) -> Self {
        self.row = u32::try_from(row).ok();
        self
    }

    /// The same with a place, given in bytes of the text.
    #[must_use]
    pub fn at(mut self, sql: &str, offset: usize) -> Self {
        let before = sql.get(..offset).unwrap_or(sql);
        self.position = Some(before.chars().count() + 1);
        self
    }

    /// A feature that this version does not have.
    pub fn not_supported(what: impl fmt::Display) -> Self {
        Self::new(state::NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// A stage of a statement gave up: the one whose statement it is says why.
    #[cold]
    pub fn stopped() -> Self {
        Self::new(state::CANCELED, "the statement was stopped")
    }

    /// A statement that needs more memory than it may have.
    #[cold]
    pub fn out_of_memory() -> Self {
        Self::new(state::OUT_OF_MEMORY, "the statement needs more memory than allowed")
            .with_hint("sort or group fewer rows, or build shorter texts")
    }

    /// No such table.
    pub fn unknown_table(name: &str) -> Self {
        Self::new(state::UNKNOWN_TABLE, format!("table \"{name}\" does not exist"))
    }

    /// No such column.
    pub fn unknown_column(table: &str, column: &str) -> Self {
        let message = format!("column \"{column}\" of table \"{table}\" does not exist");
        Self::new(state::UNKNOWN_COLUMN, message)
    }

    /// A taken value of a unique index or primary key.
    pub fn unique(constraint: &str) -> Self {
        let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
        Self::new(state::UNIQUE, message)
    }

    /// A row for which a check is false.
    pub fn check(table: &str, name: &str) -> Self {
        let message = format!("new row for relation \"{table}\" violates check constraint \"{name}\"");
        Self::new(state::CHECK, message)
    }

    /// NULL in a column that does not take it.
    pub fn null_value(table: &str, column: &str) -> Self {
        let message =
            format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
        Self::new(state::NOT_NULL, message)
    }

    /// Whether a row broke a rule of its table, for which `INSERT OR ...` says what happens.
    pub fn breaks_constraint(&self) -> bool {
        [state::UNIQUE, state::NOT_NULL, state::CHECK].contains(&self.state)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.state, self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<ReadError> for SqlError {
    fn from(error: ReadError) -> Self {
        let state = match error {
            ReadError::SnapshotTooOld => state::SNAPSHOT_TOO_OLD,
            ReadError::Corrupt(_) => state::CORRUPT,
        };
        Self::new(state, error.to_string())
    }
}

impl From<WriteError> for SqlError {
    fn from(error: WriteError) -> Self {
        let message = error.to_string();
        let state = match error {
            WriteError::TooLarge { .. } | WriteError::TooManyRows { .. } => state::TOO_LARGE,
            WriteError::Full => state::OUT_OF_MEMORY,
            WriteError::View(_) => state::NOT_A_TABLE,
            WriteError::Unique { .. } => state::UNIQUE,
            // A redefined table is met by making the statement again.
            WriteError::Lost(_) | WriteError::TableChanged => state::LOST,
            WriteError::TableGone => state::UNKNOWN_TABLE,
            WriteError::Canceled => state::CANCELED,
            WriteError::NotNull(_) => state::NOT_NULL,
            WriteError::Check(_) => state::CHECK,
            WriteError::Expression { state, .. } => state,
            WriteError::Generated(_) => state::READ_ONLY_COLUMN,
            WriteError::NumbersExhausted(_) | WriteError::SequenceEnded { .. } => state::NUMBERS_EXHAUSTED,
            WriteError::Type(_) | WriteError::Key(_) => state::BAD_VALUE,
        };
        Self::new(state, message)
    }
}

impl From<DdlError> for SqlError {
    fn from(error: DdlError) -> Self {
        Self::new(error.state, error.message)
    }
}

impl From<DefinitionError> for SqlError {
    fn from(error: DefinitionError) -> Self {
        Self::new(error.sqlstate, error.message)
    }
}

impl From<Refusal> for SqlError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.state, refusal.message)
    }
}

impl From<TypeMismatch> for SqlError {
    fn from(error: TypeMismatch) -> Self {
        Self::new(error.refusal.state, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_store_have_the_states_of_postgresql() {
        for (error, state) in [
            (WriteError::TooLarge { bytes: 2, limit: 1 }, "54000"),
            (WriteError::Full, "53200"),
            (WriteError::View("v".into()), "42809"),
            (WriteError::Unique { index: "t_pkey".into(), write: 0 }, "23505"),
            (WriteError::Lost(vec![0]), "40001"),
            (WriteError::TableGone, "42P01"),
            (WriteError::TableChanged, "40001"),
            (WriteError::Check("c".into()), "23514"),
            (WriteError::expression("c"), "22000"),
            (WriteError::Generated("c".into()), "428C9"),
            (WriteError::NumbersExhausted("t".into()), "2200H"),
            (WriteError::NotNull("a".into()), "23502"),
            (WriteError::Type("x".into()), "22P02"),
            (WriteError::Key("x".into()), "22P02"),
            (WriteError::TooManyRows { limit: 1 }, "54000"),
        ] {
            assert_eq!(SqlError::from(error.clone()).state, state, "{error:?}");
        }
        assert_eq!(SqlError::from(ReadError::SnapshotTooOld).state, "72000");
    }

    #[test]
    fn positions_count_characters_from_one() {
        assert_eq!(SqlError::new("42601", "x").at("s\u{e9}lect", 7).position, Some(7));
        assert_eq!(SqlError::new("42601", "x").at("select", 0).position, Some(1));
    }
}
