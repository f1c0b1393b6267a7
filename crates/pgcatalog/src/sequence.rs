//! Numbers of sequences: `nextval` wherever it is called, and what the statement under way was given.
//!
//! A default is computed by whoever writes the row, on its own connection. So what a statement was given is noted by
//! the thread, between the begin and the end of the statement.

use std::cell::RefCell;
use std::sync::Arc;

use sqltext::error::{SqlError, state};
use sqltext::token::{Kind, Token, text_of, tokens, unquoted};
use store::definition::Place;
use store::{Catalog, Sequence, Store, Table};

use crate::names::{name_parts, qualified};

/// Whose number it is: a sequence's of its own, or that of a table's numbered column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// The sequence of this number.
    Own(u16),
    /// The table of this number.
    Table(u16),
}

/// Numbers that were given out, each sequence's last one; the newest last.
pub type Numbers = Vec<(Numbered, i64)>;

thread_local! {
    /// What the statement under way was given; none: there is none.
    static GIVEN: RefCell<Option<Numbers>> = const { RefCell::new(None) };
}

/// Begins to note what a statement is given.
pub fn begin() {
    GIVEN.with_borrow_mut(|given| given.get_or_insert_default().clear());
}

/// What the statement was given.
#[must_use]
pub fn take() -> Option<Numbers> {
    GIVEN.with_borrow_mut(|given| given.as_mut().filter(|given| !given.is_empty()).map(std::mem::take))
}

/// Takes note of a number.
pub fn note(numbered: Numbered, number: i64) {
    GIVEN.with_borrow_mut(|given| {
        if let Some(given) = given {
            put(given, numbered, number);
        }
    });
}

/// Puts a number in the place of the one before.
pub fn put(numbers: &mut Numbers, numbered: Numbered, number: i64) {
    numbers.retain(|(known, _)| *known != numbered);
    numbers.push((numbered, number));
}

/// The number that the statement was given last, of any sequence or of this one.
pub(crate) fn given(wanted: Option<Numbered>) -> Option<i64> {
    GIVEN.with_borrow(|given| last_of(given.as_deref().unwrap_or_default(), wanted))
}

/// The last of these, of any sequence or of this one.
pub(crate) fn last_of(numbers: &[(Numbered, i64)], wanted: Option<Numbered>) -> Option<i64> {
    let is = |(known, _): &&(Numbered, i64)| wanted.is_none_or(|wanted| wanted == *known);
    numbers.iter().rev().find(is).map(|(_, number)| *number)
}

/// A sequence of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Own(Arc<Sequence>),
    Column(Arc<Table>),
}

impl Source {
    pub(crate) fn numbered(&self) -> Numbered {
        match self {
            Self::Own(own) => Numbered::Own(own.def().id),
            Self::Column(table) => Numbered::Table(table.def().id),
        }
    }

    /// The next number.
    pub(crate) fn next(&self, store: &Store) -> Result<i64, SqlError> {
        let number = match self {
            Self::Own(own) => store.next_value(own)?,
            Self::Column(table) => store.next_number(table)?,
        };
        note(self.numbered(), number);
        Ok(number)
    }

    /// The last number that was given out; none if none was.
    pub(crate) fn last(&self) -> Option<i64> {
        match self {
            Self::Own(own) => Some(own.place()).filter(|place| place.called).map(|place| place.last),
            Self::Column(table) => table.last_number(),
        }
    }

    /// Goes on behind this number, or with it if it was not given out.
    pub(crate) fn set(&self, store: &Store, number: i64, called: bool) -> Result<(), SqlError> {
        let (name, least, greatest) = match self {
            Self::Own(own) => (own.def().own_name(), own.def().min, own.def().max),
            Self::Column(table) => (table.def().own_name(), 1, i64::MAX),
        };
        if !(least..=greatest).contains(&number) {
            let message = format!(
                "setval: value {number} is out of bounds for sequence \"{name}\" ({least}..{greatest})"
            );
            return Err(SqlError::new(state::OUT_OF_RANGE, message));
        }
        match self {
            Self::Own(own) => store.set_value(own, Place { last: number, called })?,
            Self::Column(table) => store.set_number(table, number.saturating_add(i64::from(called)))?,
        }
        if called {
            note(self.numbered(), number);
        }
        Ok(())
    }
}

/// The sequence of this name in the store.
pub(crate) fn source(catalog: &Catalog, name: &str) -> Option<Source> {
    if let Some(own) = catalog.sequence(name) {
        return Some(Source::Own(Arc::clone(own)));
    }
    column_of(catalog, name).map(|(table, _)| Source::Column(table))
}

/// The numbered column whose sequence has this name in the store.
pub fn column_of(catalog: &Catalog, name: &str) -> Option<(Arc<Table>, usize)> {
    catalog.tables().find_map(|table| {
        let def = table.def();
        let at = def.identity()?;
        let own = column_sequence(table, &def.columns[at].name);
        def.qualified(&own).eq_ignore_ascii_case(name).then(|| (Arc::clone(table), at))
    })
}

/// The name of a numbered column's sequence: `table_column_seq`, as PostgreSQL names it.
pub(crate) fn column_sequence(table: &Table, column: &str) -> String {
    format!("{}_{column}_seq", table.def().own_name())
}

/// The next number of a sequence, for `nextval` in a default: the name has its schema where that is not `public`.
pub fn next_of(store: &Store, name: &str) -> Result<i64, SqlError> {
    let source = identity_of(name).and_then(|name| source(&store.catalog(), &name));
    source.ok_or_else(|| unknown(name))?.next(store)
}

/// The sequence that a session calls so, as a default names it.
pub fn named_for(catalog: &Catalog, name: &str) -> Result<String, SqlError> {
    let mut parts = name_parts(name).ok_or_else(|| unknown(name))?;
    let (own, schema) = (parts.pop().unwrap_or_default(), parts.pop());
    let is = |catalog: &Catalog, name: &str| source(catalog, name).is_some();
    let found = match &schema {
        None => Some(catalog.found_name(&own, is)),
        Some(schema) => catalog.name_in(schema, &own),
    };
    let found = found.and_then(|found| source(catalog, &found)).ok_or_else(|| unknown(name))?;
    Ok(match found {
        Source::Own(own) => qualified(own.def().namespace.as_deref(), own.def().own_name()),
        Source::Column(table) => qualified(table.def().namespace.as_deref(), &own),
    })
}

/// The name in the store of what is written with its schema where that is not `public`.
pub fn identity_of(name: &str) -> Option<String> {
    let mut parts = name_parts(name)?;
    let (own, schema) = (parts.pop()?, parts.pop());
    Some(store::definition::qualified(schema.as_deref(), &own))
}

/// A name as SQL has it, with its schema where that is not `public`.
pub fn shown(namespace: Option<&str>, name: &str) -> String {
    qualified(namespace, name)
}

/// The names in the store of the sequences whose numbers an expression takes.
pub fn named_in(sql: &str) -> Vec<String> {
    calls_in(&tokens(sql)).filter_map(|token| identity_of(&text_of(token)?)).collect()
}

/// The arguments of `nextval('name')` among these tokens.
pub(crate) fn calls_in<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'t Token<'a>> {
    tokens.windows(4).filter_map(|call| {
        let [name, open, text, close] = call else { return None };
        let calls =
            unquoted(name.text).eq_ignore_ascii_case("nextval") && open.is_sign("(") && close.is_sign(")");
        (calls && text.kind == Kind::Text).then_some(text)
    })
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_TABLE, format!("relation \"{name}\" does not exist"))
}
