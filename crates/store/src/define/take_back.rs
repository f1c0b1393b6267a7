//! What a transaction defined, and what takes it back.
//!
//! A definition takes effect at once. Rows that come meanwhile follow it, and may be none of the definition of before:
//! they are forgotten when it is in force again. Rows that were there keep their places in payloads, and so all that
//! they said before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::Arena;

use crate::define::alter::check_relation_name;
use crate::define::{check_index_names, check_namespace, check_prefix, load};
use crate::definition::SequenceDef;
use crate::error::{DdlError, ddl};
use crate::row::RowBuf;
use crate::row::request::Expect;
use crate::schema::open::Open;
use crate::store::Store;
use crate::table::Table;
use crate::table::sequence::Sequence;

/// A definition of an open transaction. It is taken back by the next start, unless it is closed.
#[derive(Debug)]
pub struct Step {
    number: u64,
    of: Transaction,
}

/// An open transaction that defined something, by the number of its first step.
#[derive(Clone, Copy, Debug)]
pub struct Transaction(u64);

impl Step {
    /// The transaction that it is of.
    pub fn transaction(&self) -> Transaction {
        self.of
    }
}

impl Store {
    /// Carries out a definition of a transaction: what was there before is written with it. Nobody else defines
    /// anything meanwhile. `of`: the transaction, if it defined something before.
    pub fn define_in_transaction<T>(&self, of: Option<Transaction>, define: impl FnOnce() -> T) -> (T, Step) {
        let _one = self.lock_definitions();
        let number = self.open.lock().begin(self.catalog(), of.map(|of| of.0));
        let step = Step { number, of: of.unwrap_or(Transaction(number)) };
        let ended = End(self);
        let result = define();
        drop(ended);
        (result, step)
    }

    /// Nobody else defines anything while this is done: what undoes a transaction's definitions leaves no moment in
    /// which others change what is half undone.
    pub fn define_alone<T>(&self, define: impl FnOnce() -> T) -> T {
        let _one = self.lock_definitions();
        self.open.lock().undoing = true;
        let ended = Undone(self);
        let result = define();
        drop(ended);
        result
    }

    /// The number of a thing that is made: its own where that is free, for one that is made again; else one that no
    /// open transaction knows.
    pub(crate) fn free_number(
        &self,
        own: u16,
        is_taken: impl Fn(u16) -> bool,
        is_open: impl Fn(&Open, u16) -> bool,
    ) -> u16 {
        if own != 0 && !is_taken(own) {
            return own;
        }
        let open = self.open.lock();
        (1..u16::MAX).find(|&id| !is_taken(id) && !is_open(&open, id)).unwrap_or(u16::MAX)
    }

    /// The definition under way commits rows of these tables first. They go if the transaction does not come to its
    /// end.
    pub fn will_write<'t>(&self, tables: impl Iterator<Item = &'t Arc<Table>>) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        self.open.lock().will_write(tables.map(|table| table.id().0));
        self.save(&self.catalog())
    }

    /// The definitions of a transaction are to stay, or are undone: in either case they are what the next start finds.
    pub fn close_steps(&self, steps: &[Step]) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let steps: Vec<u64> = steps.iter().map(|step| step.number).collect();
        let closed = self.open.lock().close(&steps);
        if closed { self.save(&self.catalog()) } else { Ok(()) }
    }

    /// Makes a table again that was dropped, under its number, with the sequences that went with it. Its rows are gone.
    pub fn revive_table(&self, gone: &Arc<Table>, own: &[SequenceDef]) -> Result<Arc<Table>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let mut def = gone.def().clone();
        check_relation_name(&catalog, &def.name)?;
        check_namespace(&catalog, def.namespace.as_deref())?;
        check_index_names(&catalog, &def)?;
        check_prefix(&catalog, &def, None)?;
        if catalog.tables().any(|table| table.id() == gone.id()) {
            return Err(ddl("55006", format!("the number of table \"{}\" is in use", def.name)));
        }
        self.share(&def)?;
        self.dropped.0.lock().tables.retain(|table| table.id() != gone.id());
        // A commit that had turned before the table was dropped puts its rows under the number.
        drop(self.committing.write());
        def.schema += 1;
        // A view without its rows must be filled first.
        if let Some(view) = &mut def.materialized {
            view.populated = false;
        }
        // Acquire: pairs with the Release of who raised it.
        def.numbers_below = gone.state.numbers_below.load(Ordering::Acquire);
        let table = Arc::new(load(&self.arena, def));
        self.flush(&table);
        let mut apart = catalog.apart();
        apart.sequences.extend(own.iter().map(|own| Arc::new(Sequence::new(own.clone()))));
        self.install_all(catalog.tables().cloned().chain([Arc::clone(&table)]).collect(), apart)?;
        Ok(table)
    }

    /// Forgets the rows of a table that were written behind this stamp and until now.
    pub fn forget_since(&self, table: &Table, since: u64) {
        let (until, now) = (self.last_stamp(), self.now());
        let shape = self.arena.of(table.id()).scan_shape();
        let (mut locations, mut keys) = (Vec::new(), Vec::new());
        for group in 0..shape.groups {
            {
                let shard = self.shard_at(Arena::shard_of_group(group)).lock();
                locations.clear();
                self.arena.of(table.id()).scan_group(&shard.token, shape, group, table.id(), &mut locations);
                for &location in &locations {
                    let mut row = RowBuf::new();
                    let loaded = self.load_stable(location, &mut row) && row.head().table == table.id();
                    if loaded && (since + 1..=until).contains(&row.head().stamp) {
                        keys.push(row.key().to_vec());
                    }
                }
            }
            for key in keys.drain(..) {
                // Whoever is in the way has a newer row there; all of them go at worst.
                if self.delete(table, &key, Expect::Anything, now).is_err() {
                    self.flush(table);
                }
            }
        }
    }
}

/// Ends the step under way, also where a definition panics.
struct End<'s>(&'s Store);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.open.lock().end(&self.0.catalog());
    }
}

/// Ends the undoing, also where it panics.
struct Undone<'s>(&'s Store);

impl Drop for Undone<'_> {
    fn drop(&mut self) {
        self.0.open.lock().undoing = false;
    }
}
