//! What a table is: columns, keys, indexes and options, and the rules a definition must meet.
//!
//! A [`TableDef`] is written to the arena's catalogue as JSON, so fields may be added with a default but
//! never change their meaning.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::limits::CHECKS_MAX;
pub use crate::limits::COLUMNS_DEFINED_MAX;
pub use crate::limits::COLUMNS_MAX;
pub use crate::limits::COMMENT_BYTES_MAX;
pub use crate::limits::ENUM_TYPES_MAX;
pub use crate::limits::FOREIGN_KEYS_MAX;
pub use crate::limits::GRANTS_MAX;
pub use crate::limits::INDEXES_MAX;
pub use crate::limits::KEY_COLUMNS_MAX;
pub use crate::limits::NAME_BYTES_MAX;
pub use crate::limits::NAMESPACES_MAX;
pub use crate::limits::ROUTINES_MAX;
use crate::limits::SCHEMA_MAX;
pub use crate::limits::SEQUENCES_MAX;
pub use crate::limits::SERVERS_MAX;
pub use crate::limits::TABLES_MAX;
use crate::scalar;
use crate::value::Value;
use namespace::check_qualified;

pub mod access;
mod alike;
mod alter;
mod bus;
mod collation;
mod column;
mod copied;
mod depends;
mod enumeration;
mod foreign;
mod index;
mod materialized;
mod namespace;
mod nearest;
mod options;
mod routine;
mod rule;
mod sequence;
mod server;
mod types;
pub mod units;
mod view;

pub use crate::scalar::{Element, SqlType};
pub use access::{Access, Grant, Privileges};
pub use alter::SLOTS_MAX;
pub use bus::{Acknowledge, Replicated};
pub use collation::{Collation, NUMERIC as NUMERIC_COLLATION};
pub use column::{ColumnDef, ColumnKind, Generated, Identity, TypeMismatch};
pub use copied::Copied;
pub use depends::Dependence;
pub use enumeration::EnumDef;
pub use foreign::ForeignKey;
pub use index::IndexDef;
pub use materialized::MaterializedDef;
pub use namespace::{NamespaceDef, qualified};
pub(crate) use namespace::{own_name, within};
pub use nearest::nearest;
pub use options::{Mode, OPTIONS, OnChange, OnLag, OptionDef, TableOptions, parse_span, print_span};
pub use routine::{ParameterMode, Returns, RoutineDef, RoutineParameter, RoutineStatement};
pub use rule::ExpiryRule;
pub use sequence::{Place, SequenceDef};
pub use server::{CACHES, CachedQueryDef, FRESHNESSES, MASK, MappingDef, ServerDef, ServerOption, Wrapper};
pub use view::{ViewColumn, ViewDef};

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDef {
    /// The number that rows bear; never reused while a row of it may live.
    pub id: u16,
    /// The version of the columns that a segment's rows were written under.
    pub schema: u32,
    /// Its name, unique among all tables and views: [`TableDef::own_name`] is the one in its schema.
    pub name: String,
    /// Its schema; none is `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// All columns in the order declared.
    pub columns: Vec<ColumnDef>,
    /// Positions of the key columns in key order; empty means a hidden integer row id.
    pub primary_key: Vec<usize>,
    /// Secondary indexes.
    #[serde(default)]
    pub indexes: Vec<IndexDef>,
    /// What stood in `WITH (...)`.
    #[serde(default)]
    pub options: TableOptions,
    /// The query whose rows are its own: it is a materialized view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialized: Option<Box<MaterializedDef>>,
    /// Conditions that every row meets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckDef>,
    /// Conditions by which rows expire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExpiryRule>,
    /// Foreign keys, which nobody enforces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// What `COMMENT ON` says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Who owns it, and what was granted of it.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
    /// What was granted of the numbers of its identity column; `None`: nothing ever was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers_grants: Option<Vec<Grant>>,
    /// The name of the primary key's constraint, where it is not made of the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// The primary key's constraint was dropped. Rows stay under their keys, so these stay unique.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key_dropped: bool,
    /// The places in payloads, once columns came or went; `None`: one for each payload column, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Slots>,
    /// Numbers of an identity column below this one may have been given out; raised before they are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub numbers_below: i64,
    /// The first number of an identity column; 0 is 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub numbers_from: i64,
}

/// A condition that every row meets: it may be true or NULL, and not false.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckDef {
    /// Its name, which an error says.
    pub name: String,
    /// The condition, as SQL over the table's columns.
    pub sql: String,
    /// The column that stands for `NOT NULL` while rows are looked through for a NULL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_null: Option<String>,
}

/// How many places payloads have. A place stays a column's for good; that of a dropped column is left empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// In rows written before the first column came or went.
    pub first: u16,
    /// In rows written now.
    pub now: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl TableDef {
    /// A table without indexes and options, to be given its number when it is made.
    pub fn new(name: &str, columns: Vec<ColumnDef>, primary_key: Vec<usize>) -> Self {
        Self {
            id: 0,
            schema: 1,
            name: name.to_owned(),
            namespace: None,
            columns,
            primary_key,
            indexes: Vec::new(),
            options: TableOptions::default(),
            materialized: None,
            checks: Vec::new(),
            rules: Vec::new(),
            foreign_keys: Vec::new(),
            comment: None,
            access: Access::default(),
            numbers_grants: None,
            key_name: None,
            key_dropped: false,
            slots: None,
            numbers_below: 0,
            numbers_from: 0,
        }
    }

    /// Who may do what with the numbers of its identity column: they have the table's owner.
    pub fn numbers_access(&self) -> Access {
        Access { owner: self.access.owner.clone(), grants: self.numbers_grants.clone() }
    }

    /// The position of a column that statements can name; SQL names match in any ASCII case.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        find_column(&self.columns, name)
    }

    /// Its name in its schema.
    pub fn own_name(&self) -> &str {
        own_name(self.namespace.as_deref(), &self.name)
    }

    /// The name of an index or a sequence of its own, unique among all of them.
    pub fn qualified(&self, name: &str) -> String {
        qualified(self.namespace.as_deref(), name)
    }

    /// Whether rows have no declared key but a number of their own.
    pub fn has_row_id(&self) -> bool {
        self.primary_key.is_empty()
    }

    /// The name of the primary key's constraint: `table_pkey`, as PostgreSQL names it, or its own.
    pub fn key_name(&self) -> Cow<'_, str> {
        match &self.key_name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("{}_pkey", self.own_name())),
        }
    }

    /// Whether the primary key's constraint has this name.
    pub fn is_key_name(&self, name: &str) -> bool {
        !self.primary_key.is_empty() && self.key_name().eq_ignore_ascii_case(name)
    }

    /// The unique index that a primary key is which was added to a table with rows under other keys.
    pub fn added_key(&self) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.primary)
    }

    /// Whether this column is part of the primary key.
    pub fn is_key(&self, column: usize) -> bool {
        self.primary_key.contains(&column)
    }

    /// Whether a row may have NULL in a column.
    pub fn may_be_null(&self, column: usize) -> bool {
        !self.columns[column].not_null && !self.is_key(column)
    }

    /// Positions of the columns that a row's payload holds, in the order of the table.
    pub fn payload_columns(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&column| !self.is_key(column)).collect()
    }

    /// The place of each payload column in payloads: its position and its slot.
    pub fn payload_slots(&self) -> impl Iterator<Item = (usize, usize)> {
        let ranked = self.payload_columns().into_iter().enumerate();
        ranked.map(|(rank, column)| (column, self.columns[column].slot.map_or(rank, usize::from)))
    }

    /// How many places payloads have: those written first, and those written now.
    pub fn slot_counts(&self) -> Slots {
        let columns = u16::try_from(self.columns.len() - self.primary_key.len()).unwrap_or(u16::MAX);
        self.slots.unwrap_or(Slots { first: columns, now: columns })
    }

    /// The columns that statements can name, with their positions.
    pub fn visible_columns(&self) -> impl Iterator<Item = (usize, &ColumnDef)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.is_visible())
    }

    /// The column that the server numbers.
    pub fn identity(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.identity.is_some())
    }

    /// Whether a write has anything to compute or to check that is an expression.
    pub fn computes(&self) -> bool {
        !self.checks.is_empty()
            || self.columns.iter().any(|column| column.generated.is_some() || column.default_sql.is_some())
    }

    /// Whether memcached clients can reach this table.
    pub fn answers_to_memcached(&self) -> bool {
        self.options.prefix.is_some()
    }

    /// Whether `flush_all` empties this table.
    pub fn is_flushed(&self) -> bool {
        let is_copy = self.options.mode == Mode::Mirror || self.materialized.is_some();
        self.answers_to_memcached() && !self.options.unflushed && !is_copy
    }

    /// As [`ColumnDef::accept`], and where memcached stores raw bytes, in the value and text key columns of a
    /// table with a prefix, a TEXT column also takes the blob that such bytes read back as.
    pub fn accept(&self, column: usize, value: Value) -> Result<Value, TypeMismatch> {
        let bytes = self.options.value == Some(column) || self.is_key(column);
        match value {
            Value::Blob(blob) if bytes && self.takes_raw_text(column) => Ok(match String::from_utf8(blob) {
                Ok(text) => Value::Text(text),
                Err(not_text) => Value::Blob(not_text.into_bytes()),
            }),
            value => self.columns[column].accept(value),
        }
    }

    fn takes_raw_text(&self, column: usize) -> bool {
        let own = &self.columns[column];
        self.answers_to_memcached() && own.kind == ColumnKind::Text && !scalar::has_form(own.sql_type())
    }

    /// Whether this definition makes a table that the store can hold.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        check_qualified("table", self.namespace.as_deref(), &self.name)?;
        check_name("constraint", self.key_name.as_deref().unwrap_or("key"))?;
        self.validate_columns()?;
        validate_column_list(&self.columns, &self.primary_key, "primary key")?;
        self.validate_numbers()?;
        self.validate_indexes()?;
        self.validate_options()
    }

    /// What no statement says, and a file may say wrongly: others find words and bytes by these numbers.
    fn validate_numbers(&self) -> Result<(), DefinitionError> {
        let damaged = |what: String| {
            Err(DefinitionError::new("XX001", format!("definition of table \"{}\": {what}", self.name)))
        };
        if self.id >= TABLES_MAX {
            return damaged(format!("its number is {}", self.id));
        }
        if self.schema > SCHEMA_MAX {
            return damaged(format!("it was altered {} times", self.schema));
        }
        let Slots { first, now } = self.slot_counts();
        if first > now || now > SLOTS_MAX {
            return damaged(format!("payloads have {now} places, and had {first}"));
        }
        let mut taken = vec![false; usize::from(now)];
        for (column, slot) in self.payload_slots() {
            match taken.get_mut(slot) {
                Some(taken) if !*taken => *taken = true,
                _ => return damaged(format!("column {column} has place {slot} of {now}")),
            }
        }
        Ok(())
    }

    /// Whether statements may make a table so wide; one that had as many columns before may keep them.
    pub fn check_width(&self, before: usize) -> Result<(), DefinitionError> {
        let count = self.columns.len();
        if count <= COLUMNS_DEFINED_MAX || count <= before {
            return Ok(());
        }
        let message = format!("table has {count} columns; the limit is {COLUMNS_DEFINED_MAX}");
        Err(DefinitionError::new("54011", message))
    }

    fn validate_columns(&self) -> Result<(), DefinitionError> {
        if self.columns.is_empty() {
            return Err(DefinitionError::new("42P16", format!("table \"{}\" has no columns", self.name)));
        }
        if self.columns.len() > COLUMNS_MAX {
            let count = self.columns.len();
            return Err(DefinitionError::new(
                "54011",
                format!("table has {count} columns; the limit is {COLUMNS_MAX}"),
            ));
        }
        let mut seen = std::collections::HashSet::new();
        for column in &self.columns {
            check_name("column", &column.name)?;
            if !seen.insert(column.name.to_ascii_lowercase()) {
                return Err(duplicate_column(&column.name));
            }
            if let Some(default) = &column.default {
                check_default(column, default)?;
            }
        }
        Ok(())
    }

    fn validate_indexes(&self) -> Result<(), DefinitionError> {
        if self.indexes.len() > INDEXES_MAX {
            let count = self.indexes.len();
            let message = format!("table \"{}\" has {count} indexes; the limit is {INDEXES_MAX}", self.name);
            return Err(DefinitionError::new("54000", message));
        }
        for (at, index) in self.indexes.iter().enumerate() {
            check_name("index", &index.name)?;
            if index.named().is_empty() {
                return Err(DefinitionError::new(
                    "42P16",
                    format!("index \"{}\" names no column", index.name),
                ));
            }
            if index.elements.is_some() && (index.unique || !index.columns.is_empty()) {
                let message = format!("index \"{}\" is of the elements of one array", index.name);
                return Err(DefinitionError::new("0A000", message));
            }
            let read: Vec<usize> = index.reads().collect();
            validate_column_list(&self.columns, &read, &format!("index \"{}\"", index.name))?;
            if self.indexes[..at].iter().any(|other| other.name.eq_ignore_ascii_case(&index.name)) {
                let message = format!("index \"{}\" exists already; choose another name", index.name);
                return Err(DefinitionError::new("42P07", message));
            }
        }
        Ok(())
    }

    fn validate_options(&self) -> Result<(), DefinitionError> {
        self.options.validate()?;
        self.validate_refresh()?;
        self.validate_mode()?;
        self.validate_replicated()?;
        self.validate_tags()?;
        if self.options.query.is_some() && self.has_row_id() {
            return Err(DefinitionError::invalid(
                "query needs a PRIMARY KEY: missing rows are asked for by it",
            ));
        }
        if let (Some(least), Some(most)) = (self.options.min_memory, self.options.max_memory)
            && least > most
        {
            return Err(DefinitionError::invalid("min_memory is more than max_memory".to_owned()));
        }
        let Some(prefix) = &self.options.prefix else {
            return self.validate_value();
        };
        if self.has_row_id() {
            let message =
                format!("prefix '{prefix}' needs a PRIMARY KEY: the key is the text after the prefix");
            return Err(DefinitionError::invalid(message));
        }
        if self.options.value.is_none() {
            let message = format!(
                "prefix '{prefix}' needs value = '<column>', the column that a memcached get returns"
            );
            return Err(DefinitionError::invalid(message));
        }
        self.validate_value()
    }

    fn validate_value(&self) -> Result<(), DefinitionError> {
        let Some(value) = self.options.value else {
            return Ok(());
        };
        let Some(column) = self.columns.get(value) else {
            return Err(DefinitionError::new(
                "42703",
                format!("value names column {value}, which does not exist"),
            ));
        };
        if self.is_key(value) {
            let message = format!("value column \"{}\" is part of the primary key", column.name);
            return Err(DefinitionError::invalid(message));
        }
        Ok(())
    }

    fn validate_tags(&self) -> Result<(), DefinitionError> {
        let Some(column) = self.options.tags.and_then(|tags| self.columns.get(tags)) else {
            return Ok(());
        };
        let (is_value, is_made) = (self.options.value == self.options.tags, column.generated.is_some());
        if is_value || is_made || column.sql_type() != SqlType::Text.array().unwrap_or(SqlType::Text) {
            let message = format!("tags column \"{}\" is not an ordinary column of type TEXT[]", column.name);
            return Err(DefinitionError::invalid(message));
        }
        Ok(())
    }
}

fn find_column(columns: &[ColumnDef], name: &str) -> Option<usize> {
    columns.iter().position(|column| column.is_visible() && column.name.eq_ignore_ascii_case(name))
}

fn duplicate_column(name: &str) -> DefinitionError {
    DefinitionError::new("42701", format!("column \"{name}\" is named more than once"))
}

pub(crate) fn check_name(what: &str, name: &str) -> Result<(), DefinitionError> {
    if name.is_empty() {
        return Err(DefinitionError::new("42602", format!("a {what} has an empty name")));
    }
    if name.contains('\0') {
        return Err(DefinitionError::new("42602", format!("a {what} name contains a NUL byte")));
    }
    if name.len() > NAME_BYTES_MAX {
        let message =
            format!("{what} name \"{name}\" is {} bytes long; the limit is {NAME_BYTES_MAX}", name.len());
        return Err(DefinitionError::new("42622", message));
    }
    Ok(())
}

fn validate_column_list(columns: &[ColumnDef], list: &[usize], what: &str) -> Result<(), DefinitionError> {
    if list.len() > KEY_COLUMNS_MAX {
        let message = format!("{what} has {} columns; the limit is {KEY_COLUMNS_MAX}", list.len());
        return Err(DefinitionError::new("54011", message));
    }
    for (at, &column) in list.iter().enumerate() {
        let Some(def) = columns.get(column) else {
            return Err(DefinitionError::new(
                "42703",
                format!("{what} names column {column}, which does not exist"),
            ));
        };
        if list[..at].contains(&column) {
            return Err(duplicate_column(&def.name));
        }
    }
    Ok(())
}

/// A default must be a value that its column would store.
fn check_default(column: &ColumnDef, default: &Value) -> Result<(), DefinitionError> {
    match column.accept(default.clone()) {
        Ok(_) => Ok(()),
        Err(mismatch) => Err(DefinitionError::new("42804", format!("default of {mismatch}"))),
    }
}

/// Why a definition is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// The SQLSTATE that PostgreSQL gives in this case.
    pub sqlstate: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl DefinitionError {
    /// An error with its SQLSTATE.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self { sqlstate, message: message.into() }
    }

    /// 22023, an option's value that cannot be.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("22023", message)
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DefinitionError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableDef {
        let columns = vec![
            ColumnDef { not_null: true, ..ColumnDef::new("key", "TEXT").unwrap() },
            ColumnDef { default: Some(Value::Real(0.1)), ..ColumnDef::new("w", "double precision").unwrap() },
            ColumnDef::new("body", "bytea").unwrap(),
        ];
        let options =
            TableOptions { prefix: Some("frag:".into()), value: Some(2), ..TableOptions::default() };
        let indexes = vec![IndexDef::new("by_w", vec![1], false)];
        TableDef { id: 7, indexes, options, ..TableDef::new("frag", columns, vec![0]) }
    }

    #[test]
    fn a_definition_survives_json() {
        let json = serde_json::to_string(&table()).unwrap();
        assert_eq!(serde_json::from_str::<TableDef>(&json).unwrap(), table());
        assert_eq!(table().validate(), Ok(()));
    }

    #[test]
    fn faulty_definitions_are_refused() {
        type Fault = fn(&mut TableDef);
        let faults: &[(&str, Fault)] = &[
            ("42P16", |t| t.columns.clear()),
            ("42701", |t| t.columns[1].name = "KEY".into()),
            ("42703", |t| t.primary_key = vec![9]),
            ("42701", |t| t.primary_key = vec![0, 0]),
            ("42703", |t| t.indexes[0].columns = vec![3]),
            ("42P16", |t| t.indexes[0].columns.clear()),
            ("42P07", |t| t.indexes.push(IndexDef { name: "BY_W".into(), ..t.indexes[0].clone() })),
            ("42703", |t| t.options.value = Some(3)),
            ("22023", |t| t.options.value = Some(0)),
            ("22023", |t| t.options.value = None),
            ("22023", |t| t.primary_key.clear()),
            ("42622", |t| t.name = "n".repeat(NAME_BYTES_MAX + 1)),
            ("42602", |t| t.columns[0].name.clear()),
            ("42602", |t| t.columns[0].name = "a\0".into()),
            ("42804", |t| t.columns[1].default = Some(Value::from("wide"))),
            ("XX001", |t| t.id = TABLES_MAX),
            ("XX001", |t| t.schema = u32::MAX),
            ("XX001", |t| t.columns[1].slot = Some(2)),
            ("XX001", |t| t.columns[1].slot = Some(1)),
            ("XX001", |t| t.slots = Some(Slots { first: 2, now: 1 })),
            ("XX001", |t| t.slots = Some(Slots { first: 3, now: 2 })),
            ("XX001", |t| t.slots = Some(Slots { first: 2, now: u16::MAX })),
            ("22023", |t| t.options.ttl_ms = Some(u64::MAX)),
            ("22023", |t| t.options.weight = Some(0)),
            ("54011", |t| {
                t.columns =
                    (0..=COLUMNS_MAX).map(|n| ColumnDef::new(&format!("c{n}"), "INT").unwrap()).collect();
            }),
        ];
        for (at, (sqlstate, fault)) in faults.iter().enumerate() {
            let mut table = table();
            fault(&mut table);
            let error = table.validate().expect_err(&format!("fault {at}"));
            assert_eq!(error.sqlstate, *sqlstate, "fault {at}: {error}");
        }
    }

    #[test]
    fn columns_are_strict_after_affinity() {
        let column = |declared| ColumnDef::new("c", declared).unwrap();
        assert_eq!(column("INT").accept(Value::from("42")), Ok(Value::Integer(42)));
        assert_eq!(column("INT").accept(Value::Real(2.0)), Ok(Value::Integer(2)));
        assert_eq!(column("INT").accept(Value::Real(2.5)), Ok(Value::Integer(2)));
        assert_eq!(column("INT").accept(Value::Null), Ok(Value::Null));
        assert_eq!(column("REAL").accept(Value::Integer(2)), Ok(Value::Real(2.0)));
        assert_eq!(column("TEXT").accept(Value::Integer(2)), Ok(Value::from("2")));
        assert_eq!(column("BLOB").accept(Value::from("ab")), Ok(Value::Blob(b"ab".to_vec())));
        assert_eq!(column("NUMERIC").accept(Value::from("1.50")), Ok(Value::from("1.50")));
        assert_eq!(column("ANY").accept(Value::from("1.5")), Ok(Value::from("1.5")));
        assert_eq!(column("REAL").accept(Value::Real(f64::NAN)), Ok(Value::from("NaN")));
        for (declared, value) in [
            ("INT", Value::Real(1e19)),
            ("INT", Value::from("two")),
            ("REAL", Value::from("1.5x")),
            ("TEXT", Value::Blob(vec![0xff])),
            ("BLOB", Value::Integer(1)),
            ("NUMERIC", Value::from("")),
        ] {
            assert!(column(declared).accept(value.clone()).is_err(), "{declared} {value:?}");
        }
        let mismatch = column("INT").accept(Value::from("x".repeat(100))).unwrap_err();
        assert_eq!(
            mismatch.to_string(),
            format!("column \"c\" of type INT does not take '{}...", "x".repeat(39))
        );
    }

    #[test]
    fn raw_bytes_fit_where_memcached_stores_them() {
        let mut table = table();
        table.columns[2] = ColumnDef::new("body", "text").unwrap();
        for column in [0, 2] {
            assert_eq!(table.accept(column, Value::Blob(vec![0xff])), Ok(Value::Blob(vec![0xff])));
            assert_eq!(table.accept(column, Value::Blob(b"a".to_vec())), Ok(Value::from("a")));
        }
        table.options = TableOptions::default();
        assert!(table.accept(0, Value::Blob(vec![0xff])).is_err());
    }
}
