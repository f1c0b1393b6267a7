//! Numbers of sequences: `nextval` wherever it is called, and what the statement under way was given.
//!
//! The thread that writes a row computes its defaults, on its own connection. So the thread notes what a statement was
//! given, between the begin and the end of the statement.

use std::cell::RefCell;
use std::sync::Arc;

use sqltext::error::{SqlError, state};
use sqltext::token::{Kind, Token, text_of, tokens, unquoted};
use store::definition::{Access, Identity as Numbering, Place, Privileges, TableDef};
use store::{Catalog, Sequence, Store, Table};

use crate::names::{name_parts, qualified};
pub use crate::numbers::{Numbered, Numbers};
use crate::session::{Holder, Identity};

thread_local! {
    /// The statement under way; none: there is none.
    static STATEMENT: RefCell<Option<Statement>> = const { RefCell::new(None) };
}

/// What is known of numbers in a statement.
#[derive(Debug, Default)]
struct Statement {
    /// What it was given.
    given: Numbers,
    /// Who gives it.
    identity: Option<Arc<Identity>>,
    /// It may only read.
    read_only: bool,
    /// Why it was refused a number where only a text can be returned.
    refused: Option<SqlError>,
}

/// Begins to note what a statement of somebody is given. `read_only`: it may only read, so it is given nothing.
pub fn begin(identity: &Arc<Identity>, read_only: bool) {
    STATEMENT.with_borrow_mut(|statement| {
        let statement = statement.get_or_insert_default();
        statement.given.clear();
        statement.refused = None;
        statement.read_only = read_only;
        statement.identity = Some(Arc::clone(identity));
    });
}

/// The statement goes on as somebody else's.
pub fn act_as(identity: &Arc<Identity>) {
    STATEMENT.with_borrow_mut(|statement| {
        if let Some(statement) = statement {
            statement.identity = Some(Arc::clone(identity));
        }
    });
}

/// The statement has ended. Returns what it was given.
#[must_use]
pub fn end() -> Option<Numbers> {
    STATEMENT.with_borrow_mut(|statement| {
        let statement = statement.as_mut()?;
        statement.identity = None;
        statement.read_only = false;
        (!statement.given.is_empty()).then(|| std::mem::take(&mut statement.given))
    })
}

/// Whose statement is under way, for the expressions of a definition that ask for it; none: it is no statement.
pub fn speaker() -> Option<Arc<Identity>> {
    STATEMENT.with_borrow(|statement| statement.as_ref()?.identity.clone())
}

impl Statement {
    /// Whose privileges count: those of anybody but a superuser.
    fn asked(&self) -> Option<&Identity> {
        self.identity.as_deref().filter(|identity| !identity.rights.superuser)
    }
}

/// Why the last statement was refused a number.
pub fn take_refusal() -> Option<SqlError> {
    STATEMENT.with_borrow_mut(|statement| statement.as_mut()?.refused.take())
}

/// Takes note of a number.
pub fn note(numbered: Numbered, number: i64) {
    STATEMENT.with_borrow_mut(|statement| {
        if let Some(statement) = statement {
            put(&mut statement.given, numbered, number);
        }
    });
}

/// Refuses the number of a column that was declared `SERIAL` to a statement whose role may not take it. Numbers of
/// `GENERATED ... AS IDENTITY` need no privilege, as in PostgreSQL, and neither does what is no statement.
pub fn allow_number(table: &Table) -> Result<(), SqlError> {
    let def = table.def();
    match def.identity() {
        Some(at) if def.columns[at].identity == Some(Numbering::Serial) => {}
        _ => return Ok(()),
    }
    STATEMENT.with_borrow_mut(|statement| {
        let Some(statement) = statement else { return Ok(()) };
        let Some(identity) = statement.asked() else { return Ok(()) };
        if identity.holder().on(&def.numbers_access()).0.has_any(TAKES) {
            return Ok(());
        }
        let error = denied(&name_of_numbers(def).unwrap_or_default());
        statement.refused = Some(error.clone());
        Err(error)
    })
}

/// Refuses what changes a sequence to a statement that may only read.
fn check_writable(function: &str) -> Result<(), SqlError> {
    STATEMENT.with_borrow_mut(|statement| match statement {
        Some(statement) if statement.read_only => {
            let message = format!("cannot execute {function}() in a read-only transaction");
            let error = SqlError::new(state::READ_ONLY, message);
            statement.refused = Some(error.clone());
            Err(error)
        }
        _ => Ok(()),
    })
}

/// Any of these is enough to take a number.
const TAKES: Privileges = Privileges::USAGE.and(Privileges::UPDATE);

/// Any of these is enough to see which was taken.
pub(crate) const SEES: Privileges = Privileges::USAGE.and(Privileges::SELECT);

#[cold]
fn denied(name: &str) -> SqlError {
    SqlError::new(state::FORBIDDEN, format!("permission denied for sequence {name}"))
}

/// Puts a number in the place of the one before.
pub fn put(numbers: &mut Numbers, numbered: Numbered, number: i64) {
    numbers.retain(|(known, _)| *known != numbered);
    numbers.push((numbered, number));
}

/// The number that the statement was given last, of any sequence or of this one.
pub(crate) fn given(wanted: Option<Numbered>) -> Option<i64> {
    STATEMENT.with_borrow(|statement| last_of(&statement.as_ref()?.given, wanted))
}

/// The sequence whose number the session was given last.
pub(crate) fn last_given(numbers: &[(Numbered, i64)]) -> Option<(Numbered, i64)> {
    STATEMENT
        .with_borrow(|statement| statement.as_ref()?.given.last().copied())
        .or_else(|| numbers.last().copied())
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

    /// Who may do what with it.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Own(own) => own.def().access.clone(),
            Self::Column(table) => table.def().numbers_access(),
        }
    }

    /// Its name in its schema.
    fn name(&self) -> String {
        match self {
            Self::Own(own) => own.def().own_name().to_owned(),
            Self::Column(table) => name_of_numbers(table.def()).unwrap_or_default(),
        }
    }

    /// Refuses it to a role that has none of these privileges on it.
    pub(crate) fn allow(&self, holder: &Holder, any: Privileges) -> Result<(), SqlError> {
        if holder.rights.superuser || self.is_allowed(holder, any) {
            return Ok(());
        }
        Err(denied(&self.name()))
    }

    /// Whether a role has one of these privileges on it.
    pub(crate) fn is_allowed(&self, holder: &Holder, any: Privileges) -> bool {
        holder.on(&self.access()).0.has_any(any)
    }

    /// The next number, for the statement under way.
    pub(crate) fn next(&self, store: &Store) -> Result<i64, SqlError> {
        check_writable("nextval")?;
        STATEMENT.with_borrow_mut(|statement| {
            let Some(statement) = statement else { return Ok(()) };
            let Some(identity) = statement.asked() else { return Ok(()) };
            let allowed = self.allow(&identity.holder(), TAKES);
            statement.refused = allowed.clone().err().or_else(|| statement.refused.take());
            allowed
        })?;
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
        check_writable("setval")?;
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

/// Who may do what with the sequence of this name in the store.
pub fn access_of(catalog: &Catalog, name: &str) -> Option<Access> {
    source(catalog, name).map(|source| source.access())
}

/// The name in the store of the sequence of a table's numbered column.
pub fn name_of_column(table: &Table) -> Option<String> {
    name_of_numbers(table.def()).map(|own| table.def().qualified(&own))
}

/// The same in its schema.
pub fn name_of_numbers(def: &TableDef) -> Option<String> {
    def.identity().map(|at| column_sequence(def, &def.columns[at].name))
}

/// Changes who may do what with a table, a view, or a sequence of either kind.
pub fn change_access(
    store: &Store,
    name: &str,
    change: &mut store::AccessChange<'_>,
) -> Result<(), store::DdlError> {
    let catalog = store.catalog();
    match column_of(&catalog, name).filter(|_| !catalog.has(name)) {
        Some((table, _)) => store.change_numbers_access(table.name(), change),
        None => store.change_access(name, change),
    }
}

/// The numbered column whose sequence has this name in the store.
pub fn column_of(catalog: &Catalog, name: &str) -> Option<(Arc<Table>, usize)> {
    catalog.tables().find_map(|table| {
        let at = table.def().identity()?;
        name_of_column(table)?.eq_ignore_ascii_case(name).then(|| (Arc::clone(table), at))
    })
}

/// The name of a numbered column's sequence: `table_column_seq`, as PostgreSQL names it.
pub(crate) fn column_sequence(def: &TableDef, column: &str) -> String {
    format!("{}_{column}_seq", def.own_name())
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
