//! Where writes of rows that travel meet their bus.

use std::cell::RefCell;
use std::sync::Arc;

use store::{Clock, Replica, RowBuf, RowTap, Table, Time};

use super::operation::{KeyChange, Operation, TableName};
use super::receipt::Receipt;
use super::{Bus, Buses};
use crate::limits::ROW_BYTES_MAX;

/// Puts what a store hears into the outboxes of its buses.
#[derive(Debug)]
pub(crate) struct Tap {
    buses: Arc<Buses>,
    clock: Clock,
}

thread_local! {
    /// The buses on which this thread's writes are under way, and nobody waits for them yet; each with when the first
    /// of them was told.
    static TOLD: RefCell<Vec<(Arc<Bus>, u64)>> = const { RefCell::new(Vec::new()) };
    /// What is told before the first row that this thread writes: which rows its statement changes.
    static FIRST: RefCell<Vec<(Arc<Bus>, Operation)>> = const { RefCell::new(Vec::new()) };
}

impl Tap {
    pub(crate) fn new(buses: &Arc<Buses>, clock: &Clock) -> Self {
        Self { buses: Arc::clone(buses), clock: clock.clone() }
    }

    fn bus_of(&self, table: &Table) -> Option<Arc<Bus>> {
        Some(self.buses.named(table.def().options.bus.as_deref()?, &self.clock))
    }

    fn tell(&self, table: &Table, what: impl FnOnce(TableName) -> Operation) {
        let (Some(bus), Some(name)) = (self.bus_of(table), TableName::of(table)) else { return };
        // From here on the statement takes effect.
        tell_first();
        let now_ns = bus.now_ns();
        bus.outbox.push_row(what(name), now_ns);
        note_told(bus, now_ns);
    }
}

/// Keeps back what is to be told before the first row that this thread writes.
pub(crate) fn hold_first(bus: Arc<Bus>, operation: Operation) {
    FIRST.with_borrow_mut(|first| first.push((bus, operation)));
}

/// The statement is over. One that changed nothing here may change rows elsewhere; one that failed does not.
pub(crate) fn end_first(changed: bool) {
    if changed {
        tell_first();
    } else {
        FIRST.with_borrow_mut(Vec::clear);
    }
}

fn tell_first() {
    for (bus, operation) in FIRST.take() {
        let now_ns = bus.now_ns();
        bus.outbox.push(vec![operation], None, now_ns);
        note_told(bus, now_ns);
    }
}

/// This thread has told something on a bus at this time, for which its client is to wait.
pub(crate) fn note_told(bus: Arc<Bus>, now_ns: u64) {
    TOLD.with_borrow_mut(|told| {
        if !told.iter().any(|(known, _)| Arc::ptr_eq(known, &bus)) {
            told.push((bus, now_ns));
        }
    });
}

impl RowTap for Tap {
    fn wrote(&self, time: &Time, table: &Table, key: &[u8], row: Option<&RowBuf>) {
        let row = row.map(|row| Replica::of(time, table, row));
        self.tell(table, |table| match row {
            Some(row) if row.bytes() <= ROW_BYTES_MAX => {
                Operation::Row { table, key: key.into(), row: Box::new(row) }
            }
            // The others do without a row that fits no message.
            _ => Operation::Key { table, key: key.into(), change: KeyChange::Delete },
        });
    }

    fn emptied(&self, table: &Table) {
        self.tell(table, |table| Operation::Whole { table });
    }

    fn is_under_way(&self, table: &Table, key: Option<&[u8]>) -> bool {
        self.bus_of(table).is_some_and(|bus| bus.outbox.is_under_way(table.name(), key))
    }
}

/// Who waits until the buses have what this thread has written since it asked last; none: there is nothing.
pub(crate) fn take_receipt() -> Option<Arc<Receipt>> {
    TOLD.with_borrow_mut(|told| {
        if told.is_empty() {
            return None;
        }
        let receipt = Arc::new(Receipt::new(told.len()));
        for (bus, since_ns) in told.drain(..) {
            // Behind all of it.
            bus.outbox.push_behind(Vec::new(), Some(Arc::clone(&receipt)), since_ns, bus.now_ns());
        }
        Some(receipt)
    })
}
