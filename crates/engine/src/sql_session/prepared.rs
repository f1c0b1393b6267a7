//! Prepared statements.

use std::collections::HashMap;
use std::sync::Arc;

use rapidhash::fast::RandomState;
use sql::{Allowance, ColumnDescription, Description, Held, SqlError, SqlType};

use super::utility::Utility;
use crate::limits::{HELD_FROM_BYTES, NAME_BYTES_MAX, PREPARED_BYTES_MAX, PREPARED_STATEMENT_BYTES};

/// A statement that waits for values.
#[derive(Debug)]
pub struct Prepared {
    text: Box<str>,
    body: Body,
    parameters: Vec<SqlType>,
    /// The same by number, as clients see them.
    parameter_oids: Vec<u32>,
    columns: Option<Vec<ResultColumn>>,
    /// The types that the client chose, where they change what the statement means.
    chosen: Box<[Option<SqlType>]>,
    tag: &'static str,
}

/// What runs it.
#[derive(Debug)]
pub(crate) enum Body {
    /// Nothing: there is no statement.
    Empty,
    /// The SQL layer.
    Sql,
    /// The session itself.
    Utility(Utility),
}

/// A column of a prepared statement's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The column.
    pub column: ColumnDescription,
    /// Its type's number.
    pub type_oid: u32,
    /// Its type's size.
    pub size: i16,
}

impl ResultColumn {
    fn new(column: ColumnDescription) -> Self {
        Self { type_oid: column.ty.oid(), size: column.ty.size(), column }
    }
}

impl Prepared {
    /// A statement of the SQL layer.
    pub(crate) fn new(text: &str, description: Description) -> Self {
        let Description { parameters, columns, chosen, tag } = description;
        let parameter_oids = parameters.iter().map(|ty| ty.oid()).collect();
        let columns = columns.map(|columns| columns.into_iter().map(ResultColumn::new).collect());
        let (text, chosen) = (text.into(), chosen.into());
        Self { text, body: Body::Sql, parameters, parameter_oids, columns, chosen, tag }
    }

    /// A statement that the session answers, with the parameters of the query in it, and the columns of its rows if it
    /// gives any.
    pub(crate) fn utility(
        text: &str,
        utility: Utility,
        parameters: Vec<SqlType>,
        columns: Option<Vec<ColumnDescription>>,
    ) -> Self {
        let description = Description { parameters, columns, ..Description::default() };
        Self { body: Body::Utility(utility), ..Self::new(text, description) }
    }

    /// Whether it is `FETCH`.
    #[inline]
    pub(crate) fn is_fetch(&self) -> bool {
        matches!(self.body, Body::Utility(Utility::Fetch { .. }))
    }

    /// No statement at all.
    pub(crate) fn empty() -> Self {
        let nothing = Description::default();
        Self { body: Body::Empty, ..Self::new("", nothing) }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// See [`sql::Description::chosen`].
    pub(crate) fn chosen(&self) -> &[Option<SqlType>] {
        &self.chosen
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The types of its parameters.
    pub fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }

    /// Their numbers.
    pub fn parameter_oids(&self) -> &[u32] {
        &self.parameter_oids
    }

    /// The columns of its rows; none for a statement that gives none.
    pub fn columns(&self) -> Option<&[ResultColumn]> {
        self.columns.as_deref()
    }

    /// The columns as the SQL layer has them.
    pub(crate) fn owned_columns(&self) -> Option<Vec<ColumnDescription>> {
        self.columns.as_ref().map(|columns| columns.iter().map(|column| column.column.clone()).collect())
    }

    /// PostgreSQL's word for it.
    pub(crate) fn tag(&self) -> &'static str {
        self.tag
    }

    /// What it takes of the session's allowance.
    fn bytes(&self) -> usize {
        let columns = self.columns.iter().flatten();
        let names: usize =
            columns.map(|column| size_of::<ResultColumn>() + column.column.name.len() * 2).sum();
        // A statement that the session answers keeps the query in it a second time.
        let texts = if matches!(self.body, Body::Utility(_)) { 2 } else { 1 };
        PREPARED_STATEMENT_BYTES
            + self.text.len() * texts
            + (self.parameters.len() + self.chosen.len()) * 8
            + names
    }
}

/// The types that a client chose, by their numbers; 0 leaves it open.
pub(crate) fn chosen_types(types: impl Iterator<Item = u32>) -> Result<Vec<Option<SqlType>>, SqlError> {
    types
        .map(|oid| match SqlType::of_oid(oid) {
            None if oid != 0 => Err(SqlError::new("42704", format!("type with OID {oid} does not exist"))),
            Some(SqlType::Unknown) | None => Ok(None),
            known => Ok(known),
        })
        .collect()
}

/// A session's prepared statements.
#[derive(Debug)]
pub(crate) struct Statements {
    unnamed: Option<Arc<Prepared>>,
    /// By a hash that a client cannot foresee, and that costs a fifth of the standard one.
    named: HashMap<Box<str>, Arc<Prepared>, RandomState>,
    /// What the named ones take of the session's allowance.
    held: Held,
    /// What the unnamed one takes of it; nothing where it is short.
    unnamed_held: Held,
}

impl Statements {
    pub(crate) fn new(allowance: &Arc<Allowance>) -> Self {
        Self {
            unnamed: None,
            named: HashMap::default(),
            held: allowance.account(),
            unnamed_held: allowance.account(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, name: &str) -> Result<&Arc<Prepared>, SqlError> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) };
        found.ok_or_else(|| unknown(name))
    }

    pub(crate) fn put(&mut self, name: &str, prepared: Prepared) -> Result<(), SqlError> {
        if name.is_empty() {
            self.unnamed = None;
            let bytes = prepared.bytes();
            self.unnamed_held.try_set(if bytes < HELD_FROM_BYTES { 0 } else { bytes })?;
            self.unnamed = Some(Arc::new(prepared));
            return Ok(());
        }
        if self.named.contains_key(name) {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        check_name(name)?;
        let bytes = self.held.bytes() + prepared.bytes() + name.len();
        if bytes > PREPARED_BYTES_MAX {
            let message = format!(
                "prepared statements of this session take more than {PREPARED_BYTES_MAX} bytes; it has {}",
                self.named.len()
            );
            return Err(SqlError::new("53400", message).with_hint("DEALLOCATE unused ones"));
        }
        self.held.try_set(bytes)?;
        self.named.insert(name.into(), Arc::new(prepared));
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.unnamed = None;
        self.named = HashMap::default();
        self.held.set(0);
        self.unnamed_held.set(0);
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        if name.is_empty() {
            self.unnamed_held.set(0);
            return self.unnamed.take().is_some();
        }
        let removed = self.named.remove(name);
        if let Some(prepared) = &removed {
            let less = self.held.bytes().saturating_sub(prepared.bytes() + name.len());
            self.held.set(less);
        }
        removed.is_some()
    }
}

/// Names take memory too.
pub(crate) fn check_name(name: &str) -> Result<(), SqlError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(SqlError::new("42622", format!("a name has {} bytes; the limit is {NAME_BYTES_MAX}", name.len())))
}

#[cold]
pub(crate) fn unknown(name: &str) -> SqlError {
    if name.is_empty() {
        return SqlError::new("26000", "unnamed prepared statement does not exist");
    }
    SqlError::new("26000", format!("prepared statement \"{name}\" does not exist"))
}
