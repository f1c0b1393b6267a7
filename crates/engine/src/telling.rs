//! Where invalidations meet the bus: what took effect here is put into the outbox of its table's bus.

use std::sync::Arc;
use std::time::Duration;

use sql::{Teller, Told};
use store::definition::Acknowledge;
use store::scalar::zone::Zone;
use store::{Edit, Edited, Expect, Expiry, GivePlace, Mark, NoSuchPlace, Replica, Table, WriteError};

use crate::buses::{
    Bus, KeyChange, Operation, Receipt, TableName, end_first, hold_first, note_told, take_receipt,
};
use crate::engine::Engine;
use crate::exptime::seconds_ahead;
use crate::limits::GIVE_LIMITS;
use crate::thread_context::{Route, ThreadContext};

impl Engine {
    /// The bus on which other caches hear of a table.
    pub(crate) fn bus_of(&self, table: &Table) -> Option<Arc<Bus>> {
        let name = table.def().options.bus.as_deref()?;
        Some(self.buses.named(name, self.store.clock()))
    }

    /// Tells what took effect together, in a session of this time zone. Who waits for the buses to have it gets a
    /// receipt; none: nobody need wait.
    #[cold]
    pub(crate) fn tell(&self, told: Vec<Told>, zone: (Option<Zone>, Option<&str>)) -> Option<Arc<Receipt>> {
        let each = told.into_iter().filter_map(|told| {
            let (bus, waits) = (self.bus_of(&told.table)?, waits(&told.table));
            Some((bus, Operation::of(told, zone)?, waits))
        });
        send(each)
    }

    /// `flush_all` has emptied the tables that it empties.
    #[cold]
    pub(crate) fn tell_flush(&self) -> Option<Arc<Receipt>> {
        let catalog = self.store.catalog();
        if !catalog.has_told() {
            return None;
        }
        // Those whose rows travel were told by the flush itself.
        let is_told = |table: &&Arc<Table>| table.def().is_flushed() && !table.replicates_rows();
        let flushed = catalog.tables().filter(is_told);
        let each = flushed.filter_map(|table| {
            let whole = Operation::Whole { table: TableName::of(table)? };
            Some((self.bus_of(table)?, whole, waits(table)))
        });
        send(each)
    }

    /// Does to a row what another cache has told.
    pub fn change_told_key(
        &self,
        table: &Arc<Table>,
        key: &[u8],
        change: KeyChange,
    ) -> Result<(), WriteError> {
        let (store, now) = (&self.store, self.store.now());
        if table.replicates_rows() {
            return self.change_replica(table, key, change);
        }
        match change {
            KeyChange::Delete | KeyChange::Withdraw => {
                store.delete(table, key, Expect::Anything, now).map(drop)
            }
            KeyChange::Stale(seconds) => self.make_stale(table, key, seconds, Expect::Anything),
        }
    }

    /// The same where the rows travel: what was written here and is under way is spared.
    fn change_replica(&self, table: &Arc<Table>, key: &[u8], change: KeyChange) -> Result<(), WriteError> {
        let (store, now) = (&self.store, self.store.now());
        match change {
            KeyChange::Delete | KeyChange::Withdraw => store.remove_replica(table, key, now).map(drop),
            KeyChange::Stale(seconds) => {
                // Looked at first: what is written after that is another version.
                let Some((seen, _)) = store.look(table, key, now, false) else { return Ok(()) };
                if store.is_replica_under_way(table, key) {
                    return Ok(());
                }
                self.make_stale(table, key, seconds, Expect::Stamp(seen.stamp))
            }
        }
    }

    fn make_stale(
        &self,
        table: &Arc<Table>,
        key: &[u8],
        seconds: Option<u32>,
        expect: Expect,
    ) -> Result<(), WriteError> {
        let (store, now) = (&self.store, self.store.now());
        let expiry = seconds.map(|seconds| match seconds {
            0 => Expiry::Now,
            _ => Expiry::At(store.tick_after(Duration::from_secs(u64::from(seconds)))),
        });
        let how = Edit { expect, expiry, mark: Mark::Stale, ..Edit::default() };
        store.edit_item(table, key, &how, now, &mut |_, _| Edited::Same).map(drop)
    }

    /// Gives a key the row that another cache has told. False: a write of this cache is under way, and decides.
    pub fn put_told_row(&self, table: &Arc<Table>, key: &[u8], row: &Replica) -> Result<bool, WriteError> {
        self.store.put_replica(table, key, row, self.store.now())
    }

    /// Gives another cache some rows of a table whose rows travel, from a place on; none is its beginning. Returns
    /// where to go on; none: that was all.
    pub fn give_rows(
        &self,
        table: &Table,
        from: Option<GivePlace>,
        give: &mut dyn FnMut(&[u8], Replica),
    ) -> Result<Option<GivePlace>, NoSuchPlace> {
        self.store.give_rows(table, from, &GIVE_LIMITS, give)
    }

    /// Puts in a row that another cache has given, where there is none, or one that is stale and was written up to a
    /// stamp. False: there is one, or a write of this cache is under way, or its time has come.
    pub fn put_given_row(
        &self,
        table: &Table,
        key: &[u8],
        row: &Replica,
        stale_to: u64,
    ) -> Result<bool, WriteError> {
        self.store.put_given(table, key, row, (stale_to, self.store.now()))
    }
}

impl Teller for Engine {
    fn tell_first(&self, told: Vec<Told>, zone: Option<&str>) {
        for told in told {
            let own = told.zone;
            if let Some(bus) = self.bus_of(&told.table)
                && let Some(operation) = Operation::of(told, (own, zone))
            {
                hold_first(bus, operation);
            }
        }
    }

    fn end(&self, changed: bool) {
        end_first(changed);
    }
}

/// One message for each bus.
fn send(each: impl Iterator<Item = (Arc<Bus>, Operation, bool)>) -> Option<Arc<Receipt>> {
    let mut parcels: Vec<(Arc<Bus>, Vec<Operation>, bool)> = Vec::new();
    for (bus, operation, waits) in each {
        match parcels.iter_mut().find(|(known, ..)| Arc::ptr_eq(known, &bus)) {
            Some((_, operations, any)) => {
                operations.push(operation);
                *any |= waits;
            }
            None => parcels.push((bus, vec![operation], waits)),
        }
    }
    let waited = parcels.iter().filter(|(.., waits)| *waits).count();
    let receipt = (waited > 0).then(|| Arc::new(Receipt::new(waited)));
    for (bus, operations, waits) in parcels {
        let receipt = receipt.as_ref().filter(|_| waits).map(Arc::clone);
        bus.outbox.push(operations, receipt, bus.now_ns());
    }
    receipt
}

/// Whether who invalidates rows of a table waits for its bus.
fn waits(table: &Table) -> bool {
    table.def().options.acknowledge == Acknowledge::Bus
}

impl Route<'_> {
    /// A key was deleted or made stale here, whether it was here or not: others may have it.
    #[inline]
    pub(crate) fn tell(&self, change: KeyChange) -> Option<Arc<Receipt>> {
        if self.table.is_told() { self.tell_key(change) } else { None }
    }

    #[cold]
    fn tell_key(&self, change: KeyChange) -> Option<Arc<Receipt>> {
        // The row that became stale was told by the store, if it was here; another cache may have it, too.
        if self.table.replicates_rows() {
            if change != KeyChange::Delete {
                self.push_key(change);
            }
            return take_receipt();
        }
        self.push_key(change)
    }

    fn push_key(&self, change: KeyChange) -> Option<Arc<Receipt>> {
        let (Ok(key), Some(table)) = (self.key, TableName::of(self.table)) else { return None };
        let bus = self.engine.bus_of(self.table)?;
        let operation = Operation::Key { table, key: key.into(), change };
        if self.table.replicates_rows() {
            let now_ns = bus.now_ns();
            bus.outbox.push(vec![operation], None, now_ns);
            note_told(bus, now_ns);
            return None;
        }
        send(std::iter::once((bus, operation, waits(self.table))))
    }

    /// Seconds until the deadline that memcached's `exptime` names; no deadline where it names none.
    pub(crate) fn seconds_until(&self, exptime: i64) -> Option<u32> {
        let unix = || self.engine.store.clock().unix_ms() / 1_000;
        seconds_ahead(exptime, unix).map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX))
    }
}

impl ThreadContext {
    /// Whether the last command told other caches something, and its client is to be answered when the bus has it.
    /// Says so once.
    #[inline]
    pub fn take_receipt(&mut self) -> Option<Arc<Receipt>> {
        self.receipt.take()
    }

    /// The same behind what was told besides.
    #[cold]
    pub(crate) fn note_written_too(&mut self) {
        self.receipt = match (self.receipt.take(), take_receipt()) {
            (Some(told), Some(flushed)) => Some(Receipt::of_both(&told, &flushed)),
            (told, flushed) => told.or(flushed),
        };
    }

    /// The last command may have written rows that other caches are to have. Then its client waits for the bus, too.
    #[cold]
    pub(crate) fn note_written(&mut self) {
        if let Some(receipt) = take_receipt() {
            self.receipt = Some(receipt);
        }
    }
}
