//! Asks the source for rows by their keys: one query for all, and the snapshot that it was read in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{FETCH_TIMEOUT_MS, FetchBatch};
use store::Table;
use store::definition::ServerDef;

use super::Ask;
use super::answer::{Answer, Form, Taken, form_of, key_text};
use crate::error::Error;
use crate::login::{Purpose, connect};
use crate::query::{Cells, array};
use crate::settle::Snapshot;
use crate::wire::Connection;

/// Columns before those of the query: the snapshot, and whether the server only replays.
const FIRST: usize = 2;

/// A connection that asks for rows.
pub(crate) struct Asker {
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

/// The query with its snapshot, which comes also where no row does.
pub(super) fn with_snapshot(query: &str) -> String {
    format!(
        "SELECT s.*, q.* FROM (SELECT pg_catalog.pg_current_snapshot()::text AS snapshot,
             pg_catalog.pg_is_in_recovery() AS replays) s LEFT JOIN LATERAL (\n{query}\n) q ON true"
    )
}

impl Asker {
    /// Connects.
    pub(crate) fn connect(server: &ServerDef) -> Result<Self, Error> {
        let connection = connect(server, Purpose::Questions)?;
        Ok(Self { connection, questions: HashMap::new(), prepared: 0, timeout: Duration::ZERO })
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
        let mut taken = Taken::default();
        self.connection.fetch(&question.name, &parameters, deadline, &mut |cells| {
            taken.take(cells)?;
            answer.snapshot = snapshot_of(cells)?;
            answer.add(table, &cells[FIRST..])
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
        let given = described.columns.get(FIRST..).unwrap_or_default();
        let form = Arc::new(form_of(table.def(), given)?);
        self.questions.insert(number, Question { name, form: Arc::clone(&form) });
        Ok(form)
    }
}

impl Ask for Asker {
    /// A key that the source's types cannot have makes its query fail: then the others are asked for without it.
    fn ask(&mut self, batch: &FetchBatch, deadline: Instant) -> Result<Answer, Error> {
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

fn snapshot_of(cells: &Cells<'_>) -> Result<Option<Snapshot>, Error> {
    let [Some(text), Some(replays), ..] = cells else { return Ok(None) };
    if *replays == b"t" {
        return Ok(None);
    }
    let snapshot = std::str::from_utf8(text).ok().and_then(Snapshot::read);
    snapshot.map(Some).ok_or_else(|| Error::connection("a snapshot of the source cannot be read"))
}

/// The keys as the query takes them: an array for each column of the key.
fn lists(table: &Table, keys: &[&[u8]]) -> Result<Vec<String>, Error> {
    let def = table.def();
    let texts = |(at, &column): (usize, &usize)| {
        let oid = def.columns[column].sql_type().oid();
        let text = |key: &&[u8]| key_text(table, key, at, oid);
        let texts: Vec<String> = keys.iter().map(text).collect::<Result<_, _>>()?;
        Ok(array(texts.iter().map(String::as_str)))
    };
    def.primary_key.iter().enumerate().map(texts).collect()
}
