//! The stream of one MariaDB: from a place in its binary log to deletes here.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use store::definition::ServerDef;

use super::check::check;
use super::columns::{columns_of, describe};
use super::event::{Event, Read, Reader, Rows};
use super::login::connect;
use super::place::Place;
use super::row::{Table, each};
use super::statement::{Meaning, may_be_about, meaning};
use super::table::TableMap;
use super::wire::{Connection, END, ERROR, OK, error_of};
use crate::apply::Applier;
use crate::batch::{Batch, Keys};
use crate::error::Error;
use crate::follow::{Definitions, Following};
use crate::limits::{ANSWER_TIMEOUT, FEEDBACK_INTERVAL, PREPARED_MAX, SILENCE, STREAM_WAIT};
use crate::plan::{Plan, Routes};
use crate::row::Relation;
use crate::settle::Snapshot;
use crate::source::Source;
use crate::time::now;

/// The command that asks for the log.
const DUMP: u8 = 0x12;
/// What is said before: a sign of life each second, that we know checksums, and that we know MariaDB's events.
const BEFORE: &str =
    "SET @master_heartbeat_period = 1000000000, @master_binlog_checksum = @@global.binlog_checksum,
    @mariadb_slave_capability = 4";
/// Numbers of servers from here on are seldom given by hand.
const SERVER_IDS: u32 = 1 << 31;

/// Where the log is that readers of the source see by now.
pub(super) fn shown_place(beside: &mut Connection) -> Result<Place, Error> {
    place_of(&beside.query("SHOW STATUS LIKE 'Binlog_snapshot_%'")?)
}

/// The place that the rows of `SHOW STATUS` tell.
pub(super) fn place_of(rows: &[Vec<Option<String>>]) -> Result<Place, Error> {
    let value = |name: &str| {
        let row = rows.iter().find(|row| row.first().is_some_and(|own| own.as_deref() == Some(name)))?;
        row.get(1)?.clone()
    };
    let file = value("Binlog_snapshot_file").unwrap_or_default();
    let offset = value("Binlog_snapshot_position").and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(Place { file, offset })
        .filter(Place::is_sound)
        .ok_or_else(|| Error::connection("the source does not say where its binary log is"))
}

/// A connection that streams from a place on, and the first packet of it.
pub(super) fn begin(server: &ServerDef, place: &Place) -> Result<(Connection, Bytes), Error> {
    let mut changes = connect(server)?;
    changes.query(BEFORE)?;
    let chosen = server.option("server_id").and_then(|id| id.parse().ok());
    let id = chosen.unwrap_or_else(|| fastrand::u32(SERVER_IDS..));
    let offset = u32::try_from(place.offset).unwrap_or(u32::MAX);
    let body = [&offset.to_le_bytes()[..], &[0, 0], &id.to_le_bytes(), place.file.as_bytes()].concat();
    changes.command(DUMP, &body)?;
    let first = changes.answer(now() + ANSWER_TIMEOUT).map_err(|error| {
        if error.state != "42501" {
            return error;
        }
        let user = server.mapping().and_then(|mapping| mapping.user()).unwrap_or("root");
        error.with_hint(format!("GRANT REPLICATION SLAVE ON *.* TO {user} on the source"))
    })?;
    Ok((changes, first))
}

/// Streams until it is to stop or something breaks. Rows here from before the stream are gone when it streams.
pub(crate) fn run(source: &Source, applier: &mut Applier) -> Result<(), Error> {
    let server = &source.server;
    let plan = Plan::of(&source.engine.store().catalog(), &server.name);
    let mut beside = connect(server)?;
    let depends: Vec<_> = plan.targets.iter().map(|target| target.on.clone()).collect();
    check(&mut beside, server, &depends)?;
    let checked = beside.query("SELECT @@global.binlog_checksum")?;
    let checked = checked.first().and_then(|row| row.first()?.as_deref()) != Some("NONE");
    // All before this place is seen by who reads the source from now on, and all behind it is streamed.
    let place = shown_place(&mut beside)?;
    let (changes, first) = begin(server, &place)?;
    // Whoever reads from now on sees all before the place: nothing of it is waited for.
    source.gate.follow(Vec::new());
    let mut follow = Following::new(source, applier, plan);
    follow.received = place.number();
    // Only now: a row that was stored before may be older than the first change.
    let emptied = follow.distrust(|_| true, Vec::new())?;
    let began = now();
    source.state.update(|facts| {
        facts.heard = Some(began);
        facts.source_lsn = place.number();
        facts.log = Some(place.log().to_owned());
        facts.unsettled = 0;
        facts.emptied += emptied;
        facts.last_error = None;
    });
    follow.advance();
    source.enter("streaming");
    let mut stream = Streaming {
        follow,
        beside,
        changes,
        reader: Reader::new(checked),
        tables: HashMap::new(),
        group: Group::None,
        prepared: HashMap::new(),
        place,
        redefined: false,
        sign: None,
        asked: began,
        heard: began,
        pulse: began,
    };
    let result = stream.run(first);
    stream.changes.end();
    stream.beside.end();
    result
}

/// Which events belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// None is under way.
    None,
    /// A statement that is one by itself comes next.
    Statement,
    /// A transaction.
    Transaction,
}

struct Streaming<'s> {
    follow: Following<'s>,
    /// For questions beside the stream.
    beside: Connection,
    changes: Connection,
    reader: Reader,
    /// The tables of the log that something depends on, by their numbers there.
    tables: HashMap<u64, Table>,
    group: Group,
    /// What prepared transactions invalidate if they take effect.
    prepared: HashMap<String, Batch>,
    /// How far the log was read.
    place: Place,
    /// A table that is depended on was redefined.
    redefined: bool,
    /// A place that the source had shown at a time, and that the stream has not reached.
    sign: Option<(u64, Instant)>,
    /// When the source was asked last what it shows.
    asked: Instant,
    /// All that the source had shown at this time has come.
    heard: Instant,
    /// When anything came.
    pulse: Instant,
}

impl Streaming<'_> {
    fn run(&mut self, first: Bytes) -> Result<(), Error> {
        let mut packet = Some(first);
        while !self.follow.source.must_stop() {
            while let Some(next) = packet {
                self.pulse = now();
                self.take(&next)?;
                if self.follow.has_much() {
                    self.apply()?;
                }
                packet = self.changes.take_packet()?;
            }
            self.apply()?;
            if self.group == Group::None {
                self.follow.advance();
                if !self.follow_definitions()? {
                    return Ok(());
                }
            }
            self.look_at_time()?;
            let wait = self.follow.patience().min(STREAM_WAIT);
            self.follow.gather();
            packet = self.changes.next_within(wait)?;
        }
        Ok(())
    }

    fn apply(&mut self) -> Result<(), Error> {
        // Nothing mirrors a MariaDB.
        self.follow.apply(|_| false).map(drop)
    }

    /// Goes on with the definitions of now, here and there; false: the server is another one.
    fn follow_definitions(&mut self) -> Result<bool, Error> {
        match self.follow.definitions() {
            Definitions::Same => {}
            Definitions::OtherServer => return Ok(false),
            Definitions::Changed(plan) => self.replan(plan)?,
        }
        if std::mem::take(&mut self.redefined) {
            let depends: Vec<_> = self.follow.plan.targets.iter().map(|target| target.on.clone()).collect();
            check(&mut self.beside, &self.follow.source.server, &depends)?;
        }
        Ok(true)
    }

    fn replan(&mut self, plan: Plan) -> Result<(), Error> {
        // All before this place may not be shown yet.
        self.follow.replan(plan, vec![self.place.number()])?;
        // Tables come again before their next rows. What prepared transactions invalidate has the numbers of before.
        self.tables.clear();
        self.follow.routes = Routes::default();
        self.prepared.clear();
        Ok(())
    }

    /// A packet of the stream.
    fn take(&mut self, packet: &Bytes) -> Result<(), Error> {
        match packet.first() {
            Some(&OK) => {
                let Read { end, event } = self.reader.read(&packet[1..])?;
                if let Some(end) = end {
                    self.reach(end);
                }
                self.meet(event)?;
                self.follow.received = self.place.number();
                Ok(())
            }
            Some(&ERROR) => Err(error_of(packet)),
            Some(&END) => Err(Error::connection("the source ended the stream")),
            _ => Err(Error::connection("the stream cannot be read")),
        }
    }

    /// An event ends here. Numbers of 32 bits end within a very large transaction, which then stands for all of its
    /// file.
    fn reach(&mut self, end: u64) {
        let wrapped = end < self.place.offset;
        self.place.offset = if wrapped { u64::from(u32::MAX) } else { end };
    }

    fn meet(&mut self, event: Event<'_>) -> Result<(), Error> {
        match event {
            Event::Begin { standalone } => {
                self.group = if standalone { Group::Statement } else { Group::Transaction };
            }
            Event::Commit => self.commit(),
            Event::Prepare { name } => self.prepare(name),
            Event::Table(map) => self.learn(map)?,
            Event::Rows(rows) => self.change(&rows)?,
            Event::Statement { text } => self.state(&text),
            Event::Rotate { file, offset } => return self.rotate(file, offset),
            Event::Idle { file } if file != self.place.file => {
                return Err(Error::connection("the source streams another file than it said"));
            }
            Event::Incident => {
                tracing::warn!(source = %self.follow.source.server.name, "the binary log lacks changes");
                self.change_anything();
                self.commit();
            }
            Event::Idle { .. } | Event::Other => {}
        }
        Ok(())
    }

    fn rotate(&mut self, file: String, offset: u64) -> Result<(), Error> {
        let place = Place { file, offset };
        if !place.is_sound() {
            return Err(Error::connection("the binary log goes on in a file whose name has no number"));
        }
        // A transaction that a crash of the source cut did not take effect, and is invalidated for nothing.
        if place.file != self.place.file && self.group != Group::None {
            self.commit();
        }
        self.place = place;
        Ok(())
    }

    fn commit(&mut self) {
        self.group = Group::None;
        let at = self.place.number();
        self.follow.commit(at, at);
    }

    fn prepare(&mut self, name: String) {
        self.group = Group::None;
        let batch = std::mem::take(&mut self.follow.under_way);
        // One that is not noted empties all tables when it takes effect.
        if self.prepared.len() < PREPARED_MAX {
            self.prepared.insert(name, batch);
        }
    }

    /// A statement in the log: the end of a transaction, a definition, or changes that came as text.
    fn state(&mut self, text: &str) {
        match meaning(text) {
            Meaning::Inside => self.group = Group::Transaction,
            Meaning::Nothing => self.end_statement(),
            Meaning::End => self.commit(),
            Meaning::Finish { name, commit } => {
                let batch = self.prepared.remove(&name);
                match batch {
                    Some(batch) if commit => self.follow.under_way.absorb(batch),
                    None if commit => self.change_anything(),
                    _ => {}
                }
                self.commit();
            }
            Meaning::Definition => {
                self.redefine(text);
                self.end_statement();
            }
            Meaning::Anything => {
                tracing::warn!(
                    source = %self.follow.source.server.name,
                    "a session wrote a statement into the binary log instead of rows: all tables are emptied"
                );
                self.change_anything();
                self.end_statement();
            }
        }
    }

    fn end_statement(&mut self) {
        if self.group != Group::Transaction {
            self.commit();
        }
    }

    fn change_anything(&mut self) {
        for target in 0..self.follow.plan.targets.len() {
            *self.follow.under_way.keys(target) = Keys::All;
        }
    }

    /// A definition empties what depends on the table that it may be about.
    fn redefine(&mut self, text: &str) {
        let (plan, batch) = (&self.follow.plan, &mut self.follow.under_way);
        for (target, own) in plan.targets.iter().enumerate() {
            if may_be_about(text, &own.on.schema, &own.on.table) {
                *batch.keys(target) = Keys::All;
                self.redefined = true;
            }
        }
        if self.redefined {
            self.tables.clear();
            self.follow.routes = Routes::default();
            self.follow.source.state.update(|facts| facts.events += 1);
        }
    }

    /// A table's changes come next.
    fn learn(&mut self, map: TableMap) -> Result<(), Error> {
        let is_on = |schema: &str, table: &str| schema == map.schema && table == map.name;
        let targets = &self.follow.plan.targets;
        if !targets.iter().any(|target| is_on(&target.on.schema, &target.on.table)) {
            self.tables.remove(&map.id);
            return Ok(());
        }
        if self.tables.get(&map.id).is_some_and(|known| known.map == map) {
            return Ok(());
        }
        // It had another number before.
        let routes = &mut self.follow.routes;
        self.tables.retain(|id, known| {
            let other = !is_on(&known.map.schema, &known.map.name);
            if !other {
                routes.forget(*id);
            }
            other
        });
        let mut columns = columns_of(&mut self.beside, &map.schema, &map.name)?;
        if !describe(&columns, &map) {
            columns.clear();
        }
        let spelled = |name: &str| {
            let theirs = targets.iter().flat_map(|target| target.on.columns.iter().map(|(theirs, _)| theirs));
            let found = theirs.into_iter().find(|theirs| theirs.eq_ignore_ascii_case(name));
            found.map_or_else(|| name.to_owned(), Clone::clone)
        };
        let relation = Relation {
            id: map.id,
            schema: map.schema.clone(),
            name: map.name.clone(),
            full: true,
            columns: columns.iter().map(|column| (spelled(&column.name), true)).collect(),
            types: Vec::new(),
        };
        for target in self.follow.routes.learn(&self.follow.plan, relation) {
            tracing::warn!(
                source = %self.follow.source.server.name,
                "{} does not tell the columns that {} depends on; each change of it empties the table",
                target.on,
                target.table.name()
            );
        }
        let mut wanted = vec![false; columns.len()];
        self.follow.routes.wanted(map.id).for_each(|at| wanted[at] = true);
        self.tables.insert(map.id, Table { map, columns, wanted });
        Ok(())
    }

    fn change(&mut self, rows: &Rows<'_>) -> Result<(), Error> {
        let Some(table) = self.tables.get(&rows.table) else { return Ok(()) };
        let (routes, batch) = (&self.follow.routes, &mut self.follow.under_way);
        let count = if table.wanted.contains(&true) {
            each(table, rows, |old, new| {
                routes.change(batch, rows.table, old, new);
            })?
        } else {
            u64::from(routes.truncate(batch, rows.table))
        };
        self.follow.source.state.update(|facts| facts.events += count);
        Ok(())
    }

    fn look_at_time(&mut self) -> Result<(), Error> {
        let interval = if self.follow.is_settled() { FEEDBACK_INTERVAL } else { self.follow.patience() };
        self.hear();
        if self.asked.elapsed() < interval {
            return Ok(());
        }
        self.asked = now();
        let shown = shown_place(&mut self.beside)?.number();
        if self.sign.is_none() {
            self.sign = Some((shown, self.asked));
        }
        self.follow.source.state.update(|facts| facts.source_lsn = shown);
        self.follow.settle(&Snapshot::Place(shown))?;
        self.hear();
        let max_lag = Source::max_lag(&self.follow.source.server);
        if self.pulse.elapsed() > max_lag * SILENCE {
            return Err(Error::connection("the source gives no sign of life"));
        }
        let late = self.heard.elapsed() > max_lag || self.pulse.elapsed() > max_lag;
        self.follow.source.enter(if late { "lagging" } else { "streaming" });
        Ok(())
    }

    /// Whether what the source had shown has come.
    fn hear(&mut self) {
        if let Some((_, asked)) = self.sign.filter(|(shown, _)| *shown <= self.follow.received) {
            (self.heard, self.sign) = (asked, None);
            let lag = asked.elapsed();
            self.follow.source.state.update(|facts| {
                facts.heard = Some(asked);
                facts.lag_ms = Some(lag.as_secs_f64() * 1_000.0);
            });
        }
    }
}
