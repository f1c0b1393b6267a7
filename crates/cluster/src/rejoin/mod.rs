//! A cache that is new, or that did not believe its rows any more, takes those of another cache.
//!
//! `words` are the bytes that two caches exchange beside the stream, `take` what the one does that lacks rows, `notes`
//! what it hears of them meanwhile, and `give` what the other one does. None of them does I/O, and none of them keeps
//! a lock or a row from one step to the next. Each step reads or puts in what takes a millisecond or two, between two
//! messages of the stream.

mod give;
mod notes;
mod take;
mod words;

use engine::{Operation, Replica, TableName};
use store::GivePlace;

use crate::carrier::To;
use crate::chain::Seen;
use crate::follow::Follower;
use give::Give;
#[cfg(test)]
pub(crate) use take::Check;
#[cfg(test)]
pub(crate) use take::Settled;
use take::Take;
pub(crate) use take::{Out, Put, Wanted};
pub(crate) use words::Word;
use words::{Ask, Given, What};

/// What a table of a certain name is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is none, or it has lost rows itself.
    Lacks,
    /// It is another one.
    Differs,
    /// It has so many rows.
    Has(u64),
}

/// Rows that are given, each with its key, and where to go on.
pub(crate) type Page = (Vec<(Box<[u8]>, Replica)>, Option<GivePlace>);

/// The rows of a cache.
pub(crate) trait Tables {
    fn standing(&self, table: &TableName) -> Standing;

    /// Whether something was done here that may change any key of a table, and is under way.
    fn changes_any_key(&self, table: &TableName) -> bool;

    /// Some rows from a place on, without those of which a write of this cache is under way. None: there is no such
    /// place.
    fn read(&self, table: &TableName, from: Option<GivePlace>) -> Option<Page>;

    /// Puts in rows where there are none.
    fn put(&mut self, table: &TableName, rows: &[(Box<[u8]>, Replica)]) -> Put;
}

/// How far the stream was heard, and when that is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'f> {
    pub(crate) follower: &'f Follower,
    pub(crate) now_ns: u64,
    /// Whether the rows here may be believed.
    pub(crate) fresh: bool,
}

impl At<'_> {
    /// The history, where it is known and what was heard of it is not too old.
    fn seen(&self) -> Option<Seen> {
        self.follower.seen().filter(|_| self.fresh)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Rejoin {
    take: Take,
    give: Give,
}

impl Rejoin {
    /// Of a cache with this number.
    pub(crate) fn new(own: u64) -> Self {
        Self { take: Take::new(own), give: Give::default() }
    }

    #[cfg(test)]
    pub(crate) fn omit(&mut self, check: Option<Check>) {
        self.take.omits = check;
    }

    /// Whether no rows are lacking here, and nobody waits for rows.
    pub(crate) fn is_idle(&self) -> bool {
        self.take.is_idle() && self.give.is_idle()
    }

    /// Rows of these tables are lacking, and of no others.
    pub(crate) fn want(&mut self, tables: Vec<Wanted>) {
        self.take.want(tables);
    }

    /// The stream has said this, and it was done.
    pub(crate) fn note(&mut self, sequence: u64, operations: &[Operation]) {
        self.take.note(sequence, operations);
    }

    /// Hears a word of another cache. Returns what is answered at once.
    pub(crate) fn hear(&mut self, word: Word, at: At<'_>, tables: &impl Tables) -> Option<Out> {
        let Word { node, what } = word;
        match what {
            // Who does not know how far it has heard says nothing, and is asked again.
            What::Wants(table) => at.seen().map(|_| Out::Say(To::One(node), offer(&table, tables))),
            What::Asks(ask) => {
                self.give.hear(node, ask, at.now_ns);
                None
            }
            what => {
                self.take.hear(node, what, at.now_ns);
                None
            }
        }
    }

    /// Does one step of what is to be done. Returns what comes of it, and whether there is more to do at once.
    pub(crate) fn turn<T: Tables>(&mut self, at: At<'_>, tables: &mut T) -> (Vec<Out>, bool) {
        let Some(seen) = at.seen() else {
            self.take.pause();
            return (std::mem::take(&mut self.take.outs), false);
        };
        // What is under way may change any row, and nobody can say which.
        let can_give =
            |ask: &Ask, tables: &T| ask.at_least <= seen.sequence && !tables.changes_any_key(&ask.table);
        if let Some((node, ask)) = self.give.next(at.now_ns, |ask| can_give(ask, &*tables)) {
            self.take.outs.push(Out::Say(To::One(node), answer(ask, seen, tables)));
        }
        self.put_due(at, tables);
        self.take.turn(at.follower, at.now_ns);
        (std::mem::take(&mut self.take.outs), self.give.has_next(|ask| can_give(ask, &*tables)))
    }

    fn put_due(&mut self, at: At<'_>, tables: &mut impl Tables) {
        let due = self.take.due((at.follower, at.now_ns), |table| tables.changes_any_key(table));
        if let Some(due) = due {
            let put = tables.put(&due.table, &due.rows);
            self.take.note_put(&due, put, at.follower, at.now_ns);
        }
    }
}

/// Whether this cache has what another one lacks.
fn offer(table: &TableName, tables: &impl Tables) -> What {
    let name = table.name.clone();
    match tables.standing(table) {
        Standing::Has(rows) => What::Offers { table: name, rows },
        Standing::Differs => What::Differs { table: name },
        Standing::Lacks => What::Lacks { table: name },
    }
}

/// Rows that were asked for, as they are now.
fn answer(ask: Ask, seen: Seen, tables: &impl Tables) -> What {
    let Ask { number, table, from, .. } = ask;
    let has = matches!(tables.standing(&table), Standing::Has(_));
    let page = if has { tables.read(&table, from) } else { None };
    page.map_or(What::Refuses { number }, |(rows, next)| What::Gives(Given { number, seen, rows, next }))
}
