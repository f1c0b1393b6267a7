//! Stores the rows that were fetched, by a session like any other's.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::{
    Cancel, ClientSink, ColumnDescription, CopyOptions, Engine, FetchBatch, FetchQueue, Fetched, FetchedRow,
    Formats, Outcome, RowSink, SqlError, SqlSession, SqlThreadContext, TransactionStatus, Value, ValueRef,
    WantedKey,
};
use store::{Freshness, Table, codec};

use super::answer::{Answer, Form};
use crate::error::Error;
use crate::gate::{Gate, Pass};
use crate::plan::{name_of, quoted};
use crate::values::encode;

/// A session of a thread that fetches.
pub(super) struct Filler {
    engine: Arc<Engine>,
    session: SqlSession,
    context: SqlThreadContext,
    /// The table whose statements are prepared, and they.
    ready: Option<(u64, Statements)>,
}

/// The statements of a table.
struct Statements {
    insert: Arc<str>,
    /// The value that memcached's clients get of the row with a key.
    value: Option<String>,
}

/// What is to become of the row of a key.
enum Place {
    /// There is none.
    Free,
    /// There is one that is to be refreshed, with this CAS value.
    Due(u64),
    /// There is one.
    Taken,
}

/// The names of the prepared statements.
const INSERT: &str = "insert";
const REMOVE: &str = "remove";
const VALUE: &str = "value";

impl Filler {
    pub(super) fn new(engine: &Arc<Engine>) -> Self {
        let session = SqlSession::local(Arc::clone(engine));
        let context = SqlThreadContext::new(engine.context());
        Self { engine: Arc::clone(engine), session, context, ready: None }
    }

    /// Stores what was fetched, and tells everybody who waits.
    pub(super) fn fill(
        &mut self,
        batch: &FetchBatch,
        answer: &Answer,
        (queue, gate): (&FetchQueue, &Gate),
        pass: &Pass,
    ) -> Result<(), Error> {
        let of_ours = |error: SqlError| Error::new(error.state, error.message);
        self.prepare(&batch.table, &answer.form).map_err(of_ours)?;
        let mut failed = Ok(());
        for wanted in &batch.keys {
            let row = answer.rows.get(&*wanted.key);
            let done = self.meet(batch, wanted, row, (answer, queue, gate, pass));
            let (fetched, stored) = done.unwrap_or_else(|error| {
                self.roll_back();
                failed = Err(of_ours(error));
                (Fetched::Failed, false)
            });
            queue.arrive(&batch.table, wanted, &fetched, stored);
        }
        // Everybody knows already; the error is what the source's row shows.
        failed
    }

    /// Stores the row of one key, if it may be; or that there is none. The second: it is stored.
    fn meet(
        &mut self,
        batch: &FetchBatch,
        wanted: &WantedKey,
        row: Option<&Vec<Value>>,
        (answer, queue, gate, pass): (&Answer, &FetchQueue, &Gate, &Pass),
    ) -> Result<(Fetched, bool), SqlError> {
        let table = &batch.table;
        let storing = queue.storing();
        let held = gate.hold();
        let shown = |snapshot| held.lets_in(pass, snapshot, table.number(), &wanted.key);
        let may = answer.snapshot.as_ref().is_some_and(shown)
            && queue.is_wanted(table, wanted)
            && !table.is_behind()
            && self.is_in_force(table);
        match (row, may) {
            (None, may) => {
                if may {
                    queue.remember_absent(table, wanted, self.engine.store().clock().now_ns());
                }
                Ok((Fetched::Absent, false))
            }
            (Some(values), true) => {
                let stored = self.store(table, &wanted.key, values, &answer.form)?;
                Ok((Fetched::Look, stored))
            }
            (Some(values), false) => {
                drop((held, storing));
                Ok((self.answer(table, values, &answer.form)?, false))
            }
        }
    }

    /// Whether the definition by which it was fetched is still that of the table.
    fn is_in_force(&self, table: &Table) -> bool {
        let catalog = self.engine.store().catalog();
        catalog.table(table.name()).is_some_and(|own| own.number() == table.number())
    }

    /// False: there is another one.
    fn store(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        values: &[Value],
        form: &Form,
    ) -> Result<bool, SqlError> {
        match self.place_of(table, key) {
            Place::Taken => Ok(false),
            Place::Free => Ok(self.run(INSERT, values.to_vec())? > 0),
            Place::Due(cas) => {
                let mut parameters: Vec<Value> = form.key.iter().map(|&at| values[at].clone()).collect();
                parameters.push(Value::Integer(cas.cast_signed()));
                self.run_text("BEGIN")?;
                let removed = self.run(REMOVE, parameters)? > 0;
                let stored = removed && self.run(INSERT, values.to_vec())? > 0;
                self.run_text(if stored { "COMMIT" } else { "ROLLBACK" })?;
                Ok(stored)
            }
        }
    }

    fn place_of(&self, table: &Table, key: &[u8]) -> Place {
        let store = self.engine.store();
        let now = store.now();
        match store.look(table, key, now, false) {
            None => Place::Free,
            Some((meta, _)) if store.freshness(table, &meta, now) == Freshness::Fresh => Place::Taken,
            Some((meta, _)) => Place::Due(meta.cas),
        }
    }

    /// A row that is not stored: what memcached's clients get of it is seen within a transaction that does not commit.
    fn answer(&mut self, table: &Arc<Table>, values: &[Value], form: &Form) -> Result<Fetched, SqlError> {
        let Some((_, Statements { insert, value })) = &self.ready else { return Ok(Fetched::Failed) };
        let (insert, has_value) = (Arc::clone(insert), value.is_some());
        let mut row = FetchedRow { insert, values: values.to_vec(), value: None };
        if has_value {
            let key: Vec<Value> = form.key.iter().map(|&at| values[at].clone()).collect();
            self.run_text("BEGIN")?;
            // A row that is to be refreshed is in the way.
            if let Some(encoded) = encode(table, key.iter().cloned())
                && let Place::Due(cas) = self.place_of(table, &encoded)
            {
                let mut parameters = key.clone();
                parameters.push(Value::Integer(cas.cast_signed()));
                self.run(REMOVE, parameters)?;
            }
            if self.run(INSERT, values.to_vec())? == 0 {
                self.run_text("ROLLBACK")?;
                return Ok(Fetched::Look);
            }
            let mut found = Found::default();
            self.run_into(VALUE, key, &mut found)?;
            self.run_text("ROLLBACK")?;
            row.value = found.0;
        }
        Ok(Fetched::Row(Arc::new(row)))
    }

    fn prepare(&mut self, table: &Arc<Table>, form: &Form) -> Result<(), SqlError> {
        if self.ready.as_ref().is_some_and(|(number, _)| *number == table.number()) {
            return Ok(());
        }
        self.ready = None;
        let def = table.def();
        let name = name_of(def);
        let columns: Vec<String> = form.columns.iter().map(|&at| quoted(&def.columns[at].name)).collect();
        let places: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
        let insert = format!(
            "INSERT INTO {name} ({}) VALUES ({}) ON CONFLICT DO NOTHING",
            columns.join(", "),
            places.join(", ")
        );
        let mut key = String::new();
        for (at, &column) in def.primary_key.iter().enumerate() {
            let and = if at == 0 { "" } else { " AND " };
            let _infallible = write!(key, "{and}{} = ${}", quoted(&def.columns[column].name), at + 1);
        }
        let cas = def.primary_key.len() + 1;
        self.parse(INSERT, &insert)?;
        self.parse(REMOVE, &format!("DELETE FROM {name} WHERE {key} AND _cas = ${cas}"))?;
        let value = def.options.value.map(|value| quoted(&def.columns[value].name));
        let value = value.map(|value| format!("SELECT {value} FROM {name} WHERE {key}"));
        if let Some(value) = &value {
            self.parse(VALUE, value)?;
        }
        self.ready = Some((table.number(), Statements { insert: insert.into(), value }));
        Ok(())
    }

    fn parse(&mut self, name: &str, text: &str) -> Result<(), SqlError> {
        self.session.close_statement(name);
        self.session.parse(&mut self.context, name, text, std::iter::empty())
    }

    fn run(&mut self, name: &str, values: Vec<Value>) -> Result<u64, SqlError> {
        self.run_into(name, values, &mut Found::default())
    }

    fn run_into(&mut self, name: &str, values: Vec<Value>, sink: &mut Found) -> Result<u64, SqlError> {
        let prepared = Arc::clone(self.session.prepared(name)?);
        self.session.bind("", prepared, values, Formats::Text)?;
        let outcome = self.session.execute(&mut self.context, "", 0, false, sink)?;
        if self.session.status() == TransactionStatus::Idle {
            self.session.sync(&mut self.context)?;
        }
        let Outcome::Complete { count, .. } = outcome else { return Ok(0) };
        Ok(count.unwrap_or(0))
    }

    fn run_text(&mut self, sql: &str) -> Result<(), SqlError> {
        self.session.run_text(&mut self.context, sql, true, &mut Found::default()).map(drop)
    }

    fn roll_back(&mut self) {
        if self.session.status() != TransactionStatus::Idle && self.run_text("ROLLBACK").is_err() {
            self.session = SqlSession::local(Arc::clone(&self.engine));
            self.ready = None;
        }
    }
}

/// The value of the one column of the one row that a statement gives.
#[derive(Default)]
struct Found(Option<Vec<u8>>);

impl RowSink for Found {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if let [value, ..] = values
            && *value != ValueRef::Null
        {
            let mut bytes = Vec::new();
            codec::write_as_text(*value, &mut bytes);
            self.0 = Some(bytes);
        }
        Ok(())
    }
}

impl ClientSink for Found {
    fn begin_copy(&mut self, _: &CopyOptions, _: &Cancel) {}
}
