//! What is written down for the next process: how far the stream was heard, which is never ahead of the rows, and
//! whether something was not sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Bus, Engine, Operation, TableName};
use store::definition::Acknowledge;
use store::{Followed, Table};

use crate::broken::Origin;
use crate::chain::{Noted, Seen};
use crate::limits::OWES_AFTER_NS;

/// Stands among the tables before the stamp up to which the bus has what was written here to tables whose rows travel.
const TOLD: &str = "told ";

/// Stands among the tables if this cache may have told its clients of invalidations that no other cache has heard.
const OWES: &str = "owes";

/// Stands among the tables before the name of one of which rows are lacking that other caches may have.
const WANTS: &str = "wants ";

/// What a process before has left.
#[derive(Debug, Default)]
pub(crate) struct Believed {
    /// How far it had heard; none: nobody knows what its rows have missed.
    pub(crate) heard: Option<Noted>,
    /// Which log that was; none: nobody knows.
    pub(crate) origin: Option<Origin>,
    /// It may have something to tell, which is lost.
    pub(crate) owes: bool,
    /// Rows that travel and were written later may be known to nobody else.
    pub(crate) told_stamp: u64,
    /// Tables of which rows were lacking.
    pub(crate) wants: Vec<String>,
}

/// A place in the stream, and what is to be known to go on there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) heard: Noted,
    pub(crate) origin: Origin,
    /// The newest stamp then.
    pub(crate) stamp: u64,
    /// Tables of which rows were lacking then. What was put in later is not there for the next process.
    pub(crate) wants: Vec<Arc<str>>,
}

pub(crate) fn read(engine: &Engine, bus: &str) -> Believed {
    let Some(followed) = engine.store().followed(bus) else { return Believed::default() };
    let owes = followed.targets.iter().any(|target| target == OWES);
    let mut known = followed.targets.clone();
    known.retain(|target| target != OWES && ![TOLD, WANTS].iter().any(|word| target.starts_with(word)));
    let wants = followed.targets.iter().filter_map(|target| target.strip_prefix(WANTS));
    let wants = wants.map(str::to_owned).collect();
    let told = followed.targets.iter().find_map(|target| target.strip_prefix(TOLD));
    let told_stamp = told.and_then(|stamp| stamp.parse().ok()).unwrap_or(0);
    let heard = (known == targets(engine, bus)).then(|| heard_of(&followed)).flatten();
    let origin = heard.map(|_| Origin { system: followed.system.clone(), timeline: followed.timeline });
    Believed { heard, origin, owes, told_stamp, wants }
}

/// The place in the stream that was written down.
fn heard_of(followed: &Followed) -> Option<Noted> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (chain, hash) = followed.published.split_once(' ')?;
    let seen = Seen { sequence: followed.lsn, chain: number(chain)?, epoch: number(&followed.life)? };
    Some(Noted { seen, hash: number(hash)? })
}

/// Whether it is written down that something was not sent.
pub(crate) fn owes(engine: &Engine, bus: &str) -> bool {
    engine.store().followed(bus).is_some_and(|followed| followed.targets.iter().any(|target| target == OWES))
}

/// Nothing of what was written down is believed, whatever comes now.
pub(crate) fn forget(engine: &Engine, bus: &str) {
    write_down(engine, bus, None);
}

/// Writes down a place, unless nothing new is known, and whether something was not sent.
pub(crate) fn write(engine: &Engine, bus: &Bus, place: Option<Place>) {
    let oldest = bus.outbox.oldest_ns();
    let waits = oldest.is_some_and(|oldest| bus.now_ns().saturating_sub(oldest) > OWES_AFTER_NS);
    // A client that was answered at once is not told when its word is lost with this process.
    let answers = !bus.is_stopping() && tables(engine, bus.name()).iter().any(|table| is_local(table));
    let owes = waits || answers;
    if place.is_none() && !owes {
        return;
    }
    let mut targets = targets(engine, bus.name());
    if owes {
        targets.push(OWES.to_owned());
    }
    let mut followed = Followed { server: bus.name().to_owned(), targets, ..Followed::default() };
    if let Some(Place { heard: Noted { seen, hash }, origin, stamp, wants }) = place {
        followed.targets.push(format!("{TOLD}{stamp}"));
        // Of some that were whole then rows may be lacking now.
        let all: BTreeSet<Arc<str>> = wants.into_iter().chain(bus.wanted().0).collect();
        followed.targets.extend(all.iter().map(|table| format!("{WANTS}{table}")));
        (followed.lsn, followed.life) = (seen.sequence, format!("{:x}", seen.epoch));
        followed.published = format!("{:x} {hash:x}", seen.chain);
        let Origin { system, timeline } = origin;
        (followed.system, followed.timeline) = (system, timeline);
    }
    write_down(engine, bus.name(), Some(followed));
}

fn write_down(engine: &Engine, bus: &str, followed: Option<Followed>) {
    if let Err(error) = engine.store().note_followed(bus, followed) {
        tracing::error!(bus, "what was heard cannot be written down: {}", error.message);
    }
}

/// Other caches hear that any row may be meant: what was to be told them is lost.
pub(crate) fn tell_all_rows(engine: &Engine, bus: &Arc<Bus>) {
    let tables = tables(engine, bus.name());
    let all = tables.iter().filter_map(|table| Some(Operation::Whole { table: TableName::of(table)? }));
    bus.outbox.push(all.collect(), None, bus.now_ns());
}

/// The tables whose rows travel.
pub(crate) fn replicated(engine: &Engine, bus: &str) -> Vec<Arc<Table>> {
    tables(engine, bus).into_iter().filter(|table| table.replicates_rows()).collect()
}

fn is_local(table: &Table) -> bool {
    table.def().options.acknowledge == Acknowledge::Local
}

fn tables(engine: &Engine, bus: &str) -> Vec<Arc<Table>> {
    let is_own = |table: &&Arc<Table>| {
        table.def().options.bus.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(bus))
    };
    engine.store().catalog().tables().filter(is_own).cloned().collect()
}

/// The tables that hear the bus. Another table of a name has another number.
fn targets(engine: &Engine, bus: &str) -> Vec<String> {
    let mut all: Vec<String> = tables(engine, bus)
        .iter()
        .map(|table| format!("{} {} {:x}", table.id().0, table.name(), table.likeness().unwrap_or_default()))
        .collect();
    all.sort();
    all
}
