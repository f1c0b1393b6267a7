//! Asks the source for rows by their keys: one query for all, and the snapshot that it was read in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{FETCH_TIMEOUT_MS, FetchBatch, Value};
use postgres::{Datum, Format};
use store::Table;
use store::value::ValueRef;

use crate::error::Error;
use crate::limits::{FETCH_BYTES_MAX, FETCH_ROWS_MAX};
use crate::query::{Cells, Described, array};
use crate::settle::Snapshot;
use crate::values::{encode, value};
use crate::wire::Connection;

/// Columns before those of the query: the snapshot, and whether the server only replays.
const FIRST: usize = 2;

/// A connection that asks for rows.
pub(super) struct Asker {
    connection: Connection,
    /// What was prepared on it, by the table's number.
    questions: HashMap<u64, Question>,
    /// How many statements were.
    prepared: u64,
    /// What the source was told to give up after.
    timeout: Duration,
}

/// The query of a table as this connection has it.
struct Question {
    name: String,
    form: Arc<Form>,
}

/// How the rows of a query are rows of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Our column for each of the query's.
    pub(super) columns: Vec<usize>,
    /// Where the columns of the key stand among the query's.
    pub(super) key: Vec<usize>,
}

/// A row by its key, as our table encodes it.
type Row = (Vec<u8>, Vec<Value>);

/// What came.
pub(super) struct Answer {
    /// None: it does not say what was visible, as a server that only replays the log of another one.
    pub(super) snapshot: Option<Snapshot>,
    pub(super) form: Arc<Form>,
    /// By the key as our table encodes it.
    pub(super) rows: HashMap<Vec<u8>, Vec<Value>>,
}

/// The query with its snapshot, which comes also where no row does.
pub(super) fn with_snapshot(query: &str) -> String {
    format!(
        "SELECT s.*, q.* FROM (SELECT pg_catalog.pg_current_snapshot()::text AS snapshot,
             pg_catalog.pg_is_in_recovery() AS replays) s LEFT JOIN LATERAL (\n{query}\n) q ON true"
    )
}

impl Asker {
    pub(super) fn over(connection: Connection) -> Self {
        Self { connection, questions: HashMap::new(), prepared: 0, timeout: Duration::ZERO }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.connection.is_broken()
    }

    /// Whether the source has ended it meanwhile.
    pub(super) fn is_gone(&mut self) -> bool {
        !matches!(self.connection.next_within(Duration::from_millis(1)), Ok(None))
    }

    pub(super) fn end(&mut self) {
        self.connection.end();
    }

    /// Asks for the rows of a batch. A key that the source's types cannot have makes its query fail: then the others
    /// are asked for without it.
    pub(super) fn ask(&mut self, batch: &FetchBatch, deadline: Instant) -> Result<Answer, Error> {
        let keys: Vec<&[u8]> = batch.keys.iter().map(|wanted| &*wanted.key).collect();
        let table = &batch.table;
        self.give_up_after(table, deadline)?;
        match self.ask_prepared(table, &keys, deadline) {
            // A table of the source was altered, or something between us and it keeps no statements.
            Err(error) if ["0A000", "26000"].contains(&error.state.as_str()) && !self.is_broken() => {
                self.questions.remove(&table.number());
                self.ask_prepared(table, &keys, deadline)
            }
            asked => asked,
        }
    }

    fn ask_prepared(&mut self, table: &Table, keys: &[&[u8]], deadline: Instant) -> Result<Answer, Error> {
        let form = self.prepare(table, deadline)?;
        let mut answer = Answer { snapshot: None, form, rows: HashMap::new() };
        self.ask_for(table, keys, deadline, &mut answer)?;
        Ok(answer)
    }

    fn ask_for(
        &mut self,
        table: &Table,
        keys: &[&[u8]],
        deadline: Instant,
        answer: &mut Answer,
    ) -> Result<(), Error> {
        match self.ask_once(table, keys, deadline, answer) {
            // A data exception.
            Err(error) if error.state.starts_with("22") && !self.is_broken() => match keys.len() {
                // No row has such a key. But no snapshot says so: it is not remembered.
                0 | 1 => {
                    answer.snapshot = None;
                    Ok(())
                }
                count => {
                    let (one, other) = keys.split_at(count / 2);
                    self.ask_for(table, one, deadline, answer)?;
                    let first = answer.snapshot.take();
                    self.ask_for(table, other, deadline, answer)?;
                    // The earlier snapshot speaks for both.
                    answer.snapshot = first.filter(|_| answer.snapshot.is_some());
                    Ok(())
                }
            },
            asked => asked,
        }
    }

    fn ask_once(
        &mut self,
        table: &Table,
        keys: &[&[u8]],
        deadline: Instant,
        answer: &mut Answer,
    ) -> Result<(), Error> {
        let Some(question) = self.questions.get(&table.number()) else { return Ok(()) };
        let lists = lists(table, keys)?;
        let parameters: Vec<_> = lists.iter().map(|list| Some(list.as_bytes())).collect();
        let (mut count, mut bytes, form) = (0, 0, Arc::clone(&answer.form));
        self.connection.fetch(&question.name, &parameters, deadline, &mut |cells| {
            count += 1;
            if count > FETCH_ROWS_MAX {
                let message = "the query gives more rows than keys were asked for";
                return Err(Error::new("54000", message)
                    .with_hint("it needs a condition by its parameters, such as WHERE id = ANY($1)"));
            }
            bytes += cells.iter().flatten().map(|cell| cell.len()).sum::<usize>();
            if bytes > FETCH_BYTES_MAX {
                return Err(Error::new("54000", format!("the rows have more than {FETCH_BYTES_MAX} bytes")));
            }
            answer.snapshot = snapshot_of(cells)?;
            let Some((key, values)) = row_of(table, &form, &cells[FIRST..])? else { return Ok(()) };
            if answer.rows.insert(key, values).is_some() {
                return Err(Error::new("21000", "the query gives several rows of one key"));
            }
            Ok(())
        })
    }

    /// Has the source end a query for which nobody waits any more.
    fn give_up_after(&mut self, table: &Table, deadline: Instant) -> Result<(), Error> {
        let said = table.def().options.fetch_timeout_ms;
        let timeout = Duration::from_millis(said.unwrap_or(FETCH_TIMEOUT_MS));
        if self.timeout != timeout {
            self.connection.ask(&format!("SET statement_timeout = {}", timeout.as_millis()))?;
            self.connection.pass_to_ready(deadline);
            self.timeout = timeout;
        }
        Ok(())
    }

    fn prepare(&mut self, table: &Table, deadline: Instant) -> Result<Arc<Form>, Error> {
        let number = table.number();
        if let Some(question) = self.questions.get(&number) {
            return Ok(Arc::clone(&question.form));
        }
        let query = table.def().options.query.as_deref().unwrap_or_default();
        self.prepared += 1;
        let name = format!("fetch_{}", self.prepared);
        let described = self.connection.prepare(&name, &with_snapshot(query), deadline)?;
        let form = Arc::new(form_of(table.def(), &described, FIRST)?);
        self.questions.insert(number, Question { name, form: Arc::clone(&form) });
        Ok(form)
    }
}

/// How the columns of a query, behind the first ones, are those of a table. They were compared when it was defined.
pub(super) fn form_of(
    def: &store::definition::TableDef,
    described: &Described,
    first: usize,
) -> Result<Form, Error> {
    let given = described.columns.get(first..).unwrap_or_default();
    let find = |(name, _): &(String, u32)| {
        def.column_index(name).ok_or_else(|| {
            let message = format!("the query gives a column {name}, which table {} does not have", def.name);
            Error::new("42703", message)
        })
    };
    let columns: Vec<usize> = given.iter().map(find).collect::<Result<_, _>>()?;
    let place = |own: &usize| {
        columns.iter().position(|column| column == own).ok_or_else(|| {
            let name = &def.columns[*own].name;
            Error::new("42703", format!("the query does not give {name}, which is in the primary key"))
        })
    };
    let key = def.primary_key.iter().map(place).collect::<Result<_, _>>()?;
    Ok(Form { columns, key })
}

fn snapshot_of(cells: &Cells<'_>) -> Result<Option<Snapshot>, Error> {
    let [Some(text), Some(replays), ..] = cells else { return Ok(None) };
    if *replays == b"t" {
        return Ok(None);
    }
    let snapshot = std::str::from_utf8(text).ok().and_then(Snapshot::read);
    snapshot.map(Some).ok_or_else(|| Error::connection("a snapshot of the source cannot be read"))
}

/// The key and the values of a row; none: it is the one that comes where there is no row.
fn row_of(table: &Table, form: &Form, cells: &Cells<'_>) -> Result<Option<Row>, Error> {
    if form.key.iter().any(|&at| cells.get(at).copied().flatten().is_none()) {
        return Ok(None);
    }
    let def = table.def();
    let read = |(&column, cell): (&usize, Option<&[u8]>)| match cell {
        None => Ok(Value::Null),
        Some(text) => {
            let own = &def.columns[column];
            let read = value(own.sql_type().oid(), text);
            read.map_err(|error| Error::new(error.state, format!("column {}: {}", own.name, error.message)))
        }
    };
    let values: Vec<Value> =
        form.columns.iter().zip(cells.iter().copied()).map(read).collect::<Result<_, _>>()?;
    let key = encode(table, form.key.iter().map(|&at| values[at].clone()))
        .ok_or_else(|| Error::new("22023", "the query gives a key that the table cannot have"))?;
    Ok(Some((key, values)))
}

/// The keys as the query takes them: an array for each column of the key.
fn lists(table: &Table, keys: &[&[u8]]) -> Result<Vec<String>, Error> {
    let def = table.def();
    let texts = |(at, &column): (usize, &usize)| {
        let oid = def.columns[column].sql_type().oid();
        let text = |key: &&[u8]| text_of(table, key, at, oid);
        let texts: Vec<String> = keys.iter().map(text).collect::<Result<_, _>>()?;
        Ok(array(texts.iter().map(String::as_str)))
    };
    def.primary_key.iter().enumerate().map(texts).collect()
}

/// One column of a key as PostgreSQL reads it.
fn text_of(table: &Table, key: &[u8], at: usize, oid: u32) -> Result<String, Error> {
    let wrong = || Error::new("22023", "a key has no text");
    let datum = match table.keys().column(key, at).map_err(|_| wrong())? {
        ValueRef::Null => Datum::Null,
        ValueRef::Integer(number) => Datum::Integer(number),
        ValueRef::Real(number) => Datum::Real(number),
        ValueRef::Text(text) => Datum::Text(text),
        ValueRef::Blob(bytes) => Datum::Bytes(bytes),
    };
    let mut out = Vec::new();
    postgres::encode(oid, Format::Text, datum, &mut out).map_err(|_| wrong())?;
    String::from_utf8(out).map_err(|_| wrong())
}
