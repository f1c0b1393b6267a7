//! Does what other caches have said, and what is to be done when they cannot be heard: by a session like any other's.
//!
//! Invalidations commute, and may be done once more. What cannot be done empties its table: too much is forgotten
//! rather than too little.

use std::sync::Arc;

use engine::{
    Bus, ClientSink, ColumnDescription, CopyOptions, Distrust, Engine, Formats, KeyChange, Operation,
    Outcome, RowSink, Said, SqlError, SqlSession, SqlThreadContext, SqlType, TableName, ValueRef,
};
use store::{Catalog, GivePlace, Replica, Table, WriteError, Writer, write_as};

use crate::rejoin::{Page, Put, Standing, Tables, Wanted};

/// See the module.
pub(crate) struct Applier {
    engine: Arc<Engine>,
    bus: Arc<Bus>,
    session: SqlSession,
    context: SqlThreadContext,
    /// The session's time zone, and whether `LIKE` is SQLite's in it.
    meaning: (Option<Box<str>>, bool),
    /// The tables that hear the bus, by the definitions of this generation.
    known: (u64, Vec<Arc<Table>>),
    /// How often rows had gone when it was asked last which are lacking.
    losses: u64,
    /// The tables whose rows this applier has let go since, each once, and how often.
    lost: (Vec<Arc<str>>, u64),
}

impl Applier {
    pub(crate) fn new(engine: &Arc<Engine>, bus: &Arc<Bus>) -> Self {
        let session = SqlSession::bus(Arc::clone(engine));
        let context = SqlThreadContext::new(engine.context());
        let (engine, bus) = (Arc::clone(engine), Arc::clone(bus));
        let (meaning, known) = ((None, false), (0, Vec::new()));
        let mut own =
            Self { engine, bus, session, context, meaning, known, losses: 0, lost: (Vec::new(), 0) };
        let catalog = own.engine.store().catalog();
        own.known = (catalog.generation, own.tables(&catalog));
        own
    }

    /// A table that hears the bus from now on did not before: what it has may have missed something.
    pub(crate) fn adopt_tables(&mut self) {
        let catalog = self.engine.store().catalog();
        if catalog.generation == self.known.0 {
            return;
        }
        let now = self.tables(&catalog);
        let (_, before) = std::mem::replace(&mut self.known, (catalog.generation, now.clone()));
        for table in now {
            let is_known = |own: &Arc<Table>| own.is_same(&table) && own.likeness() == table.likeness();
            if !before.iter().any(is_known) {
                self.distrust(&table, true);
            }
        }
    }

    /// Does what a message says.
    pub(crate) fn apply(&mut self, operations: &[Operation]) {
        let _peer = write_as(Writer::Peer);
        let catalog = self.engine.store().catalog();
        for operation in operations {
            if self.apply_one(&catalog, operation) {
                self.bus.update(|facts| match operation {
                    Operation::Row { .. } => facts.rows_heard += 1,
                    _ => facts.invalidated += 1,
                });
            }
        }
    }

    /// What this cache has told comes back. What others have told before it was spared where it was written here, and
    /// has to be done away with where it was not: rows that it chooses by a condition, for example. `again`: it came
    /// back before.
    pub(crate) fn apply_own(&mut self, operations: &[Operation], again: bool) {
        let _peer = write_as(Writer::Peer);
        let catalog = self.engine.store().catalog();
        for operation in operations {
            if !again {
                self.bus.outbox.note_back(operation);
            }
            let is_done = match operation {
                Operation::Row { .. } => true,
                Operation::Key { change, .. } => *change == KeyChange::Delete,
                Operation::Statement { .. } | Operation::Whole { .. } => false,
            };
            let named = catalog.table(&operation.table().name);
            if !is_done && named.is_some_and(|table| table.replicates_rows()) {
                let _done = self.apply_one(&catalog, operation);
            }
        }
    }

    /// Says whether it is done.
    fn apply_one(&mut self, catalog: &Catalog, operation: &Operation) -> bool {
        let TableName { name, likeness } = operation.table();
        // A table that is not here has no rows that could be old.
        let Some(table) = catalog.table(name).filter(|table| self.is_of_this_bus(table)) else {
            return false;
        };
        let done = if table.likeness() == Some(*likeness) {
            self.carry_out(table, operation)
        } else {
            Err("it has other columns, another key, another type or another option replicated in the cache that told \
                 of it"
                .to_owned())
        };
        if let Err(why) = &done {
            self.give_up(table, why);
        }
        done.is_ok()
    }

    fn is_of_this_bus(&self, table: &Table) -> bool {
        let bus = table.def().options.bus.as_deref();
        bus.is_some_and(|bus| bus.eq_ignore_ascii_case(self.bus.name()))
    }

    fn carry_out(&mut self, table: &Arc<Table>, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Key { key, change, .. } => self.change_key(table, key, *change),
            Operation::Row { key, row, .. } => {
                self.engine.put_told_row(table, key, row).map(drop).map_err(|error| error.to_string())
            }
            Operation::Statement { said, .. } => self.say(said).map_err(|error| error.message),
            // Row by row where some are spared, which a TRUNCATE would not do.
            Operation::Whole { .. } if table.replicates_rows() => {
                self.run(&format!("DELETE FROM {}", name_of(table))).map_err(|error| error.message)
            }
            Operation::Whole { .. } => {
                self.run(&Distrust::of(table.def(), &name_of(table)).empties).map_err(|error| error.message)
            }
        }
    }

    fn change_key(&self, table: &Arc<Table>, key: &[u8], change: KeyChange) -> Result<(), String> {
        self.engine.change_told_key(table, key, change).map_err(|error| error.to_string())
    }

    /// Runs a statement with the meaning that it had where it was said.
    fn say(&mut self, said: &Said) -> Result<(), SqlError> {
        self.mean(said)?;
        let types = said.types.iter().map(|ty| ty.map_or(0, SqlType::oid));
        self.session.parse(&mut self.context, "", &said.text, types)?;
        let prepared = Arc::clone(self.session.prepared("")?);
        self.session.bind("", prepared, said.values.clone(), Formats::Text)?;
        let outcome = self.session.execute(&mut self.context, "", 0, false, &mut Nobody)?;
        self.session.sync(&mut self.context)?;
        match outcome {
            Outcome::Complete { .. } => Ok(()),
            _ => Err(SqlError::new("XX000", "the statement did not end")),
        }
    }

    fn mean(&mut self, said: &Said) -> Result<(), SqlError> {
        if self.meaning.0 != said.zone {
            let zone = said.zone.as_deref().unwrap_or("UTC").replace('\'', "''");
            self.run(&format!("SET TimeZone TO '{zone}'"))?;
            self.meaning.0.clone_from(&said.zone);
        }
        if self.meaning.1 != said.like_of_sqlite {
            let style = if said.like_of_sqlite { "sqlite" } else { "postgresql" };
            self.run(&format!("SET like_style TO {style}"))?;
            self.meaning.1 = said.like_of_sqlite;
        }
        Ok(())
    }

    /// What was said of a table cannot be done: any of its rows may be meant.
    fn give_up(&mut self, table: &Arc<Table>, why: &str) {
        let why = format!("table \"{}\": {why}", table.name());
        tracing::warn!(bus = %self.bus.name(), "what another cache has told cannot be applied, so the table is emptied: {why}");
        self.bus.update(|facts| {
            facts.unapplied += 1;
            facts.last_unapplied = Some(why);
        });
        self.distrust(table, true);
    }

    /// Rows of all tables of the bus may have missed something: they go, or are stale, as each table says.
    pub(crate) fn distrust_all(&mut self, lost: bool) {
        for table in self.tables(&self.engine.store().catalog()) {
            self.distrust(&table, lost);
        }
    }

    fn tables(&self, catalog: &Catalog) -> Vec<Arc<Table>> {
        catalog.tables().filter(|table| self.is_of_this_bus(table)).cloned().collect()
    }

    fn distrust(&mut self, table: &Arc<Table>, lost: bool) {
        // Before they go: who puts in rows that were given sees that some went since, and takes them back.
        if table.replicates_rows() {
            self.bus.want(table.name());
            self.note_loss(table.name());
        }
        // No row is spared, and no other cache hears of it.
        let _local = write_as(Writer::Local);
        let distrust = Distrust::of(table.def(), &name_of(table));
        if distrust.make_stale(lost, |sql| self.run(sql)).is_some() {
            self.bus.note_stale(self.engine.store().last_stamp());
        } else if let Err(error) = self.run(&distrust.empties) {
            // A table that is gone has no rows.
            if error.state != "42P01" {
                tracing::error!(bus = %self.bus.name(), error = %error.message, "a table was not emptied");
            }
        }
        self.bus.update(|facts| facts.emptied += 1);
    }

    fn note_loss(&mut self, table: &str) {
        let (tables, times) = &mut self.lost;
        *times += 1;
        if !tables.iter().any(|own| **own == *table) {
            tables.push(table.into());
        }
    }

    /// The tables of which rows are lacking, if any went since that was asked last. Those of which some went come last:
    /// one that is emptied again and again is not to hold up the others.
    pub(crate) fn newly_wanted(&mut self) -> Option<Vec<Wanted>> {
        if self.bus.losses() == self.losses {
            return None;
        }
        let (names, losses) = self.bus.wanted();
        let (lost, times) = std::mem::take(&mut self.lost);
        // Another thread lets go of all.
        let all = losses - self.losses > times;
        self.losses = losses;
        let catalog = self.engine.store().catalog();
        let mut tables = Vec::new();
        for name in names {
            match catalog.table(&name).filter(|table| self.is_given(table)).and_then(|own| TableName::of(own))
            {
                Some(table) => tables.push(Wanted { table, anew: all || lost.contains(&name) }),
                None => self.bus.settle_wanted(&name, losses),
            }
        }
        tables.sort_by_key(|wanted| wanted.anew);
        Some(tables)
    }

    /// No more rows of a table are looked for, if none went since.
    pub(crate) fn settle_wanted(&self, table: &str) {
        self.bus.settle_wanted(table, self.losses);
    }

    /// Whether caches give one another rows of a table.
    fn is_given(&self, table: &Table) -> bool {
        table.replicates_rows() && self.is_of_this_bus(table)
    }

    /// A table as another cache names it, if it is the same here.
    fn alike(&self, named: &TableName) -> Option<Arc<Table>> {
        let catalog = self.engine.store().catalog();
        let table = catalog.table(&named.name).filter(|table| self.is_given(table))?;
        (table.likeness() == Some(named.likeness)).then(|| Arc::clone(table))
    }

    fn put_given(&self, table: &Arc<Table>, rows: &[(Box<[u8]>, Replica)]) -> (u64, Result<(), WriteError>) {
        let _peer = write_as(Writer::Peer);
        let (stale_to, mut taken) = (self.bus.stale_to(), 0);
        for (key, row) in rows {
            match self.engine.put_given_row(table, key, row, stale_to) {
                Ok(put) => taken += u64::from(put),
                // Each cache has a limit of its own.
                Err(WriteError::TooLarge { .. }) => {}
                Err(error) => return (taken, Err(error)),
            }
        }
        (taken, Ok(()))
    }

    /// Says to the tables that want to know it whether their bus is followed.
    pub(crate) fn tell_tables(&self, behind: bool) {
        for table in self.tables(&self.engine.store().catalog()) {
            table.set_behind(behind && table.def().options.on_lag.looks_at_source());
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        self.session.run_text(&mut self.context, sql, true, &mut Nobody).map(drop)
    }
}

impl Tables for Applier {
    fn standing(&self, table: &TableName) -> Standing {
        let catalog = self.engine.store().catalog();
        match catalog.table(&table.name).filter(|own| self.is_of_this_bus(own)) {
            None => Standing::Lacks,
            Some(own) if own.likeness() != Some(table.likeness) => Standing::Differs,
            Some(own) if self.bus.wants(own.name()) => Standing::Lacks,
            Some(own) => Standing::Has(own.rows()),
        }
    }

    fn changes_any_key(&self, table: &TableName) -> bool {
        self.bus.outbox.changes_any_key(&table.name)
    }

    fn read(&self, table: &TableName, from: Option<GivePlace>) -> Option<Page> {
        let (own, mut rows) = (self.alike(table)?, Vec::new());
        let next = self.engine.give_rows(&own, from, &mut |key, row| rows.push((key.into(), row))).ok()?;
        self.bus.update(|facts| facts.rows_given += rows.len() as u64);
        Some((rows, next))
    }

    fn put(&mut self, table: &TableName, rows: &[(Box<[u8]>, Replica)]) -> Put {
        let Some(own) = self.alike(table) else { return Put::Gone };
        let (taken, result) = self.put_given(&own, rows);
        self.bus.update(|facts| facts.rows_taken += taken);
        // Another thread does not believe the rows of before any more, and these are no younger.
        if self.bus.losses() != self.losses {
            self.distrust(&own, false);
        }
        match result {
            Ok(()) => Put::Done { taken, evicted: self.engine.store().usage().evicted },
            Err(WriteError::Full) => Put::Full,
            Err(WriteError::TableGone) => Put::Gone,
            Err(_) => Put::Wrong,
        }
    }
}

/// A table as a statement of any session names it.
fn name_of(table: &Table) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let def = table.def();
    format!("{}.{}", quoted(def.namespace.as_deref().unwrap_or("public")), quoted(def.own_name()))
}

struct Nobody;

impl RowSink for Nobody {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}

impl ClientSink for Nobody {
    fn begin_copy(&mut self, _: &CopyOptions, _: &engine::Cancel) {}
}
