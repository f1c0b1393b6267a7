//! Who runs the statements: our executor, and a private connection of SQLite's.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef as NativeRef};
use sql::{Cancel, ColumnDescription, Executor, Limits, RowSink, Session, SqlError};
use store::value::{Value, ValueRef};

use crate::failure::{Context, Result};
use crate::inside;

/// Runs statements and counts the rows of their answers.
pub(crate) trait Side {
    /// What follows the columns in `CREATE TABLE`.
    fn storage(&self) -> &'static str;

    /// Runs a statement, compiled at its first use; how many rows it answered with or wrote.
    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<u64>;

    /// Runs a statement that is used once.
    fn define(&mut self, sql: &str) -> Result<()>;

    /// What stands around the writes of a first fill: a list of a million writes is none of ours.
    fn fill(&self) -> Option<[&'static str; 2]> {
        None
    }
}

/// Our executor on a store of its own.
pub(crate) struct Ours {
    executor: Executor,
    session: Session,
    cancel: Cancel,
}

impl Ours {
    pub(crate) fn open(memory_mib: u64) -> Result<Self> {
        let store = inside::open(memory_mib)?;
        let limits = Limits { statement_timeout: None, ..Limits::default() };
        let executor = Executor::new(Arc::clone(&store), limits).context(|| "open an executor".into())?;
        Ok(Self { executor, session: Session::new(), cancel: Cancel::new() })
    }
}

impl Side for Ours {
    fn storage(&self) -> &'static str {
        ""
    }

    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<u64> {
        let mut count = Count::default();
        let done = self
            .executor
            .execute(&mut self.session, sql, values, &self.cancel, &mut count)
            .context(|| sql.into())?;
        Ok(done.affected)
    }

    fn define(&mut self, sql: &str) -> Result<()> {
        let mut count = Count::default();
        self.executor
            .execute(&mut self.session, sql, &[], &self.cancel, &mut count)
            .context(|| sql.into())
            .map(|_| ())
    }
}

/// Looks at every value, as an encoder would.
#[derive(Default)]
struct Count(usize);

impl RowSink for Count {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> std::result::Result<(), SqlError> {
        self.0 += values.iter().map(size).sum::<usize>();
        Ok(())
    }
}

fn size(value: &ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(text) => text.len(),
        ValueRef::Blob(bytes) => bytes.len(),
        _ => 8,
    }
}

/// Plain SQLite, with statements prepared once and kept.
pub(crate) struct Native {
    statements: HashMap<&'static str, rusqlite::Statement<'static>>,
    connection: &'static rusqlite::Connection,
    storage: &'static str,
    seen: usize,
}

impl Native {
    pub(crate) fn open(storage: &'static str) -> Result<Self> {
        let connection = rusqlite::Connection::open_in_memory().context(|| "open SQLite".into())?;
        // A statement borrows its connection; both live to the end of the program.
        let connection = Box::leak(Box::new(connection));
        Ok(Self { statements: HashMap::new(), connection, storage, seen: 0 })
    }
}

impl Side for Native {
    fn storage(&self) -> &'static str {
        self.storage
    }

    fn fill(&self) -> Option<[&'static str; 2]> {
        Some(["BEGIN", "COMMIT"])
    }

    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<u64> {
        let statement = match self.statements.entry(sql) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(self.connection.prepare(sql).context(|| sql.into())?)
            }
        };
        let columns = statement.column_count();
        let values = rusqlite::params_from_iter(values.iter().map(bound));
        if columns == 0 {
            return Ok(statement.execute(values).context(|| sql.into())? as u64);
        }
        let mut found = 0;
        let mut rows = statement.query(values).context(|| sql.into())?;
        while let Some(row) = rows.next().context(|| sql.into())? {
            found += 1;
            for column in 0..columns {
                self.seen += match row.get_ref(column).context(|| sql.into())? {
                    NativeRef::Text(bytes) | NativeRef::Blob(bytes) => bytes.len(),
                    _ => 8,
                };
            }
        }
        Ok(found)
    }

    fn define(&mut self, sql: &str) -> Result<()> {
        self.connection.execute(sql, ()).context(|| sql.into()).map(|_| ())
    }
}

fn bound(value: &Value) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        Value::Null => NativeRef::Null,
        Value::Integer(integer) => NativeRef::Integer(*integer),
        Value::Real(real) => NativeRef::Real(*real),
        Value::Text(text) => NativeRef::Text(text.as_bytes()),
        Value::Blob(bytes) => NativeRef::Blob(bytes),
    })
}
