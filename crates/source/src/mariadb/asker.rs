//! Asks MariaDB for rows by their keys: one query for all, within a snapshot of which its log says where it is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{FETCH_TIMEOUT_MS, FetchBatch};
use postgres::oid;
use store::Table;
use store::definition::{ServerDef, TableDef};

use super::cursor::hex;
use super::login::connect;
use super::question::Question;
use super::stream::place_of;
use super::types::type_of;
use super::wire::{Column, Connection, texts_of};
use crate::error::Error;
use crate::fetch::{Answer, Ask, Form, Taken, check_columns, form_of};
use crate::limits::ANSWER_TIMEOUT;
use crate::settle::Snapshot;
use crate::time::now;

/// All that the query sees was committed at one moment, and the log says which.
const BEGIN: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
const PLACE: &str = "SHOW STATUS LIKE 'Binlog_snapshot_%'";
const END: &str = "COMMIT";
/// Moments come in the time zone in which they are stored here.
const ZONE: &str = "SET time_zone = '+00:00'";

/// A connection that asks for rows.
pub(crate) struct Asker {
    connection: Connection,
    /// The queries of tables, by the tables' numbers.
    questions: HashMap<u64, Arc<Question>>,
    /// What the source was told to give up after.
    timeout: Duration,
}

impl Asker {
    /// Connects.
    pub(crate) fn connect(server: &ServerDef) -> Result<Self, Error> {
        let mut connection = connect(server)?;
        connection.query(ZONE)?;
        Ok(Self { connection, questions: HashMap::new(), timeout: Duration::ZERO })
    }

    fn question(&mut self, table: &Table) -> Result<Arc<Question>, Error> {
        if let Some(known) = self.questions.get(&table.number()) {
            return Ok(Arc::clone(known));
        }
        let query = table.def().options.query.as_deref().unwrap_or_default();
        let question = Arc::new(Question::read(query)?);
        self.questions.insert(table.number(), Arc::clone(&question));
        Ok(question)
    }

    /// Has the source end a query for which nobody waits any more.
    fn give_up_after(&mut self, table: &Table) -> Result<(), Error> {
        let said = table.def().options.fetch_timeout_ms;
        let timeout = Duration::from_millis(said.unwrap_or(FETCH_TIMEOUT_MS));
        if self.timeout != timeout {
            self.connection.query(&format!("SET max_statement_time = {}", timeout.as_secs_f64()))?;
            self.timeout = timeout;
        }
        Ok(())
    }

    /// The rows of a query that was sent.
    fn rows(&mut self, table: &Table, until: Instant) -> Result<Answer, Error> {
        let (mut rows, mut taken) = (Vec::new(), Taken::default());
        let columns = self.connection.result(until, &mut |cells| {
            taken.take(cells)?;
            rows.push(cells.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect::<Vec<_>>());
            Ok(())
        })?;
        let form = Arc::new(form_of(table.def(), &described(table.def(), &columns)?)?);
        let mut answer = Answer { snapshot: None, form, rows: HashMap::new() };
        for mut row in rows {
            write_bytes(table.def(), &answer.form, &mut row);
            let cells: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
            answer.add(table, &cells)?;
        }
        Ok(answer)
    }
}

impl Ask for Asker {
    /// All four statements are sent before the first answer is waited for.
    fn ask(&mut self, batch: &FetchBatch, deadline: Instant) -> Result<Answer, Error> {
        let keys: Vec<&[u8]> = batch.keys.iter().map(|wanted| &*wanted.key).collect();
        let question = self.question(&batch.table)?.for_keys(&batch.table, &keys)?;
        self.give_up_after(&batch.table)?;
        for statement in [BEGIN, PLACE, &question, END] {
            self.connection.ask(statement)?;
        }
        let begun = self.connection.result(deadline, &mut |_| Ok(()));
        let place = read_place(&mut self.connection, deadline);
        let answer = self.rows(&batch.table, deadline);
        let ended = self.connection.result(deadline, &mut |_| Ok(()));
        begun?;
        let (place, mut answer) = (place?, answer?);
        ended?;
        answer.snapshot = Some(Snapshot::Place(place));
        Ok(answer)
    }

    fn is_broken(&self) -> bool {
        self.connection.is_broken()
    }

    fn is_gone(&mut self) -> bool {
        !matches!(self.connection.next_within(Duration::from_millis(1)), Ok(None))
    }

    fn end(&mut self) {
        self.connection.end();
    }
}

/// Where the log is, of which the statement that was sent asks.
fn read_place(connection: &mut Connection, until: Instant) -> Result<u64, Error> {
    let mut rows = Vec::new();
    connection.result(until, &mut |cells| {
        rows.push(texts_of(cells));
        Ok(())
    })?;
    Ok(place_of(&rows)?.number())
}

/// Asks the source what the query of a table gives, and compares that with the table.
pub(super) fn check(connection: &mut Connection, def: &TableDef) -> Result<(), Error> {
    let query = def.options.query.as_deref().unwrap_or_default();
    let of_query = |error: Error| {
        let message = format!("query of table {}: {}", def.name, error.message);
        Error { message, ..error }
    };
    let question = Question::read(query).map_err(of_query)?;
    connection.ask(&question.for_nothing(def)?)?;
    let columns = connection.result(now() + ANSWER_TIMEOUT, &mut |_| Ok(())).map_err(|error| {
        let denied = error.state == "42501" && error.hint.is_none();
        let error = of_query(error);
        let hint = "on the source: GRANT SELECT ON the tables of the query TO the user";
        if denied { error.with_hint(hint) } else { error }
    })?;
    check_columns(def, &described(def, &columns)?).map(drop)
}

/// The columns that a query gives, with the OIDs of their types.
fn described(def: &TableDef, columns: &[Column]) -> Result<Vec<(String, u32)>, Error> {
    let one = |column: &Column| {
        let ours = def.column_index(&column.name).map(|at| def.columns[at].sql_type().oid());
        Ok((column.name.clone(), type_of(column, ours)?))
    };
    columns.iter().map(one).collect()
}

/// Bytes come as they are, and are read as PostgreSQL writes them.
fn write_bytes(def: &TableDef, form: &Form, row: &mut [Option<Vec<u8>>]) {
    for (&column, cell) in form.columns.iter().zip(row) {
        if def.columns[column].sql_type().oid() == oid::BYTEA
            && let Some(bytes) = cell
        {
            *cell = Some(format!("\\x{}", hex(bytes)).into_bytes());
        }
    }
}
