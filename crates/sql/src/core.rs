//! What all statements of an executor share: the store, the connection, what they see of the one and ask of the other.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use dialect::lowered::Named;
use pgcatalog::shape::type_of;
use pgcatalog::system::{self, System};
use sqlite::{Connection, Failure, Row, Statement};
use store::definition::SqlType;
use store::value::Value;
use store::{Catalog, Change, Expect, Moment, Removals, Store, Table, View, Write, WriteError, WriteSet};

use crate::describe::ColumnDescription;
use crate::error::{SqlError, state};
use crate::limits::Limits;
use crate::table::{HIDDEN, Sight};
use crate::text::kind::refuse_tail;

/// What all statements of an executor share.
pub(crate) struct Core {
    pub(crate) store: Arc<Store>,
    pub(crate) sight: Rc<Sight>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) connection: Rc<Connection>,
    pub(crate) system: Rc<System>,
    pub(crate) limits: Limits,
    /// Whether the statement is run without SQLite where it needs none.
    pub(crate) native: bool,
    /// While a statement of a transaction runs: what the transaction wrote before.
    pub(crate) own: Option<WriteSet>,
    /// The newest stamp before that statement began.
    pub(crate) since: u64,
    /// While a statement of a transaction runs: what it wrote itself, laid over when it has worked.
    pub(crate) written: RefCell<Vec<Write>>,
    /// That statement is a transaction by itself.
    pub(crate) alone: bool,
    /// What all parts of a statement see.
    pub(crate) shared: RefCell<Option<Moment>>,
}

/// Parts of a statement see the same, until this ends.
pub(crate) struct Shared<'c>(&'c Core);

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.0.shared.take();
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}

pub(crate) fn check_count(given: usize, taken: usize) -> Result<(), SqlError> {
    if given == taken {
        return Ok(());
    }
    let message = format!("{given} parameters were given, but the statement takes {taken}");
    Err(SqlError::new(state::PROTOCOL, message))
}

impl Core {
    /// What the statement sees.
    pub(crate) fn view(&self) -> View<'_> {
        match &self.own {
            None if self.limits.background => self.store.own_view(),
            None => self.store.view(),
            Some(own) => match &*self.shared.borrow() {
                Some(moment) => self.store.view_again(moment, own),
                None => self.store.view_over(own),
            },
        }
    }

    /// What one statement may take of the heap.
    pub(crate) fn heap_bytes_max(&self) -> usize {
        self.limits.heap_bytes_max
    }

    /// Whether the statement is one of a transaction: what it breaks must be reported at once, not by `COMMIT`.
    pub(crate) fn in_transaction(&self) -> bool {
        self.own.is_some()
    }

    /// Applies what a statement writes: at once, or with its transaction.
    pub(crate) fn apply(&self, writes: &mut Vec<Write>) -> Result<(), WriteError> {
        if self.own.is_none() {
            return self.store.commit(writes).map(|_| ());
        }
        // A row that was read and is gone by `COMMIT` is no conflict unless somebody removed it: the write is whole.
        for write in &mut *writes {
            let (cas, expiry, lease) = match write.expect {
                Expect::Version(cas) => (cas, None, None),
                Expect::Untouched { cas, expiry, lease } => (cas, Some(expiry), lease),
                _ => continue,
            };
            write.expect = Expect::Unremoved { cas, since: self.since, expiry, lease };
        }
        self.written.borrow_mut().append(writes);
        Ok(())
    }

    /// Lets the views that begin from now on see what this one sees, which has to last as long.
    pub(crate) fn share(&self, view: &View<'_>) -> Shared<'_> {
        *self.shared.borrow_mut() = Some(view.moment());
        Shared(self)
    }

    /// Commits what a statement has gathered that stands alone. False: others changed its rows meanwhile.
    pub(crate) fn commit_own(&self) -> Result<bool, SqlError> {
        if !self.alone {
            return Ok(true);
        }
        match self.store.commit(&self.written.take()) {
            Ok(_) => Ok(true),
            Err(WriteError::Lost(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes rows that were read: at once, or with the transaction.
    pub(crate) fn remove(&self, table: &Arc<Table>, list: &Removals) -> Result<(), WriteError> {
        if self.own.is_none() {
            return self.store.remove_all(table, list).map(|_| ());
        }
        let removal = |(key, cas): (&[u8], u64)| Write {
            table: Arc::clone(table),
            key: key.to_vec(),
            change: Change::Delete,
            expect: Expect::Version(cas),
        };
        self.apply(&mut list.iter().map(removal).collect())
    }

    /// A table that is to be written, by its name in a statement.
    pub(crate) fn table(&self, named: &Named) -> Result<Arc<Table>, SqlError> {
        if let Some(schema) = named.schema.as_deref().filter(|schema| !is_main(Some(schema))) {
            return Err(SqlError::new(state::UNKNOWN_SCHEMA, format!("schema \"{schema}\" does not exist")));
        }
        let name = &named.name;
        system::refuse_change(name)?;
        self.catalog.table(name).cloned().ok_or_else(|| match self.catalog.view(name) {
            Some(view) => SqlError::new(state::NOT_A_TABLE, format!("\"{}\" is a view", view.name))
                .with_hint("write to the table that it reads"),
            None => SqlError::unknown_table(name),
        })
    }

    /// Compiles a part of a statement, made of its own text.
    pub(crate) fn compile(&self, sql: &str) -> Result<Statement, SqlError> {
        let error = |failure: Failure| self.failed(failure.into());
        let statement = self.statement(sql, error)?;
        let statement = statement.ok_or_else(|| SqlError::new(state::SYNTAX, "a statement was expected"))?;
        if !statement.is_read_only() {
            return Err(SqlError::new(state::FORBIDDEN, "a part of the statement would write"));
        }
        Ok(statement)
    }

    /// Compiles the query of a definition in the words that serve the tables of now best. Places in errors are those of
    /// the text.
    pub(crate) fn compile_query(&self, sql: &str) -> Result<Statement, SqlError> {
        let served = dialect::view(&self.catalog, sql).and_then(|served| self.compile(&served).ok());
        served.map_or_else(|| self.compile(sql), Ok)
    }

    /// Compiles a text that is one statement; `error` says what is wrong with it.
    pub(crate) fn statement(
        &self,
        sql: &str,
        error: impl Fn(Failure) -> SqlError,
    ) -> Result<Option<Statement>, SqlError> {
        let (statement, end) = Statement::prepare(&self.connection, sql).map_err(error)?;
        refuse_tail(sql, end)?;
        Ok(statement)
    }

    /// The columns of a compiled statement, typed where they come from a table unchanged.
    pub(crate) fn columns_of(&self, statement: &Statement) -> Vec<ColumnDescription> {
        let column = |at: usize| {
            let mut column = ColumnDescription {
                ty: SqlType::Unknown,
                ..ColumnDescription::text(statement.column_name(at))
            };
            let origin = statement.origin(at).and_then(|(table, name)| {
                if let Some((ty, origin)) = system::column(&table, &name) {
                    (column.ty, column.table) = (ty, Some(origin));
                }
                let table = self.catalog.table(&table)?;
                if let Some(ty) = hidden_type(&name) {
                    column.ty = ty;
                }
                Some((table, table.def().column_index(&name)?))
            });
            if let Some((table, origin)) = origin {
                column.ty = type_of(table, origin);
                column.modifier = system::modifier(&table.def().columns[origin].declared);
                // Columns are numbered from one, as in `pg_attribute`.
                let number = u16::try_from(origin + 1).ok();
                column.table = number.map(|number| (system::oid_of_table(table), number));
            }
            column
        };
        (0..statement.columns()).map(column).collect()
    }

    /// Runs a compiled statement with as many of the parameters as it takes.
    pub(crate) fn run(
        &self,
        statement: &mut Statement,
        parameters: &[Value],
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let count = statement.parameter_count();
        let values = parameters.iter().take(count).map(Value::as_ref);
        statement.run(values, row).map_err(|error| self.failed(error))
    }

    /// An error that names a constraint, with the table that has it.
    #[cold]
    pub(crate) fn with_table(&self, error: SqlError) -> SqlError {
        let of_null = error.null_column().map(|(_, table)| table);
        let Some(name) = error.constraint().or(of_null) else { return error };
        let has = |table: &&Arc<Table>| {
            let def = table.def();
            if of_null.is_some() {
                return def.own_name() == name;
            }
            def.is_key_name(name)
                || def.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name))
                || def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
        };
        // The built-in table is in another schema than clients are told of.
        let mut users = self.catalog.tables().filter(|table| table.name() != store::BUILT_IN);
        let table = users.find(has).map(|table| {
            let def = table.def();
            let schema = def.namespace.clone().unwrap_or_else(|| "public".to_owned());
            Box::new((schema, def.own_name().to_owned()))
        });
        SqlError { table, ..error }
    }

    /// The reason that a cursor or the watch gave, if it was one of these.
    pub(crate) fn failed(&self, error: SqlError) -> SqlError {
        self.sight.take_failure().unwrap_or(error)
    }
}

/// The type of a hidden column that clients may read.
fn hidden_type(name: &str) -> Option<SqlType> {
    let readable = HIDDEN.iter().any(|(hidden, _, meaning)| *hidden == name && meaning.is_some());
    readable.then_some(SqlType::Int8)
}

/// Whether a schema is the only one, `main`.
pub(crate) fn is_main(schema: Option<&str>) -> bool {
    schema.is_none_or(|schema| schema.eq_ignore_ascii_case("main"))
}
