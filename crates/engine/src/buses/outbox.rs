//! What a bus has not acknowledged: in the order in which it took effect here, and bounded.
//!
//! One parcel is under way at a time. What comes meanwhile goes into the next. Of a table with very many, one word is
//! kept: all of its rows.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use sql::SqlError;

use super::operation::{KeyChange, Operation, TableName};
use super::receipt::Receipt;
use super::under_way::UnderWay;
use crate::limits::{
    ACKNOWLEDGE_NS, OUTBOX_BYTES_MAX, OUTBOX_KEYS_MAX, OUTBOX_ROW_BYTES_MAX, OUTBOX_ROWS_MAX,
    PARCEL_BYTES_MAX,
};

/// Called when something was put in.
type Notice = Arc<dyn Fn() + Send + Sync>;

/// See the module.
#[derive(Default)]
pub struct Outbox {
    /// The name of its bus.
    bus: Box<str>,
    state: Mutex<State>,
    notice: Mutex<Option<Notice>>,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    loads: HashMap<TableName, Load>,
    /// Those who wait for the parcel that is under way.
    waiting: Vec<Waiting>,
    /// When the oldest of that parcel was put in; none: none is under way.
    under_way: Option<u64>,
    /// When the oldest and the newest row in it were put in that were not withdrawn.
    rows_under_way: Option<(u64, u64)>,
    /// When the newest row was put in that was withdrawn.
    withdrawn_to: Option<u64>,
    /// With so many entries it is time to look for those that nobody waits for any more.
    swept_at: usize,
    /// Keys that were written here, until that comes back of the stream.
    rows: UnderWay,
}

/// What one command or transaction told.
struct Entry {
    operations: Vec<Operation>,
    waiting: Option<Waiting>,
    since_ns: u64,
}

struct Waiting {
    receipt: Arc<Receipt>,
    /// When the first of what it waits for was put in.
    since_ns: u64,
    until_ns: u64,
}

impl Waiting {
    /// Whether anybody else has the receipt. Who wants no answer has given it back.
    fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.receipt) > 1
    }
}

/// What waits of one table.
#[derive(Default)]
struct Load {
    operations: usize,
    bytes: usize,
    /// All of its rows are in it, so no invalidation need be.
    whole: bool,
}

impl Load {
    /// Whether an operation more is too much.
    fn is_full_for(&self, operation: &Operation, (count, bytes): (usize, usize)) -> bool {
        self.operations >= count || self.bytes + operation.bytes() > bytes
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("operations", &self.len()).finish_non_exhaustive()
    }
}

impl Outbox {
    /// That of a bus.
    pub(super) fn of(bus: &str) -> Self {
        Self { bus: bus.into(), ..Self::default() }
    }

    /// Calls this from now on when something was put in.
    pub fn on_push(&self, notice: impl Fn() + Send + Sync + 'static) {
        *self.notice.lock() = Some(Arc::new(notice));
    }

    /// Puts in what took effect here. `receipt`: who waits for the bus to have it.
    pub fn push(&self, operations: Vec<Operation>, receipt: Option<Arc<Receipt>>, now_ns: u64) {
        self.push_behind(operations, receipt, now_ns, now_ns);
    }

    /// The same for who waits for the rows, too, that were put in since then.
    pub(super) fn push_behind(
        &self,
        operations: Vec<Operation>,
        receipt: Option<Arc<Receipt>>,
        since_ns: u64,
        now_ns: u64,
    ) {
        let until_ns = now_ns.saturating_add(ACKNOWLEDGE_NS);
        let waiting = receipt.map(|receipt| Waiting { receipt, since_ns, until_ns });
        self.state.lock().push(operations, waiting, now_ns);
        let notice = self.notice.lock().clone();
        if let Some(notice) = notice {
            notice();
        }
    }

    /// Puts in what a key is now, or that all rows of a table are gone, in a table whose rows travel. The caller holds
    /// the lock by which that came to be.
    pub fn push_row(&self, operation: Operation, now_ns: u64) {
        self.state.lock().push_row(operation, now_ns);
        let notice = self.notice.lock().clone();
        if let Some(notice) = notice {
            notice();
        }
    }

    /// Whether what was written here to a key did not come back of the stream yet. None asks for any key.
    pub fn is_under_way(&self, table: &str, key: Option<&[u8]>) -> bool {
        self.state.lock().rows.has(table, key)
    }

    /// Whether something was done here that may change any key of a table, and did not come back of the stream yet.
    pub fn changes_any_key(&self, table: &str) -> bool {
        self.state.lock().rows.has_broad(table)
    }

    /// One of our own came back of the stream.
    pub fn note_back(&self, operation: &Operation) {
        self.state.lock().rows.remove(operation);
    }

    /// What was sent before does not come back any more.
    pub fn forget_sent(&self) {
        let mut state = self.state.lock();
        let waiting = state.entries.iter().flat_map(|entry| &entry.operations);
        state.rows = UnderWay::of(waiting);
    }

    /// Whether a row of the parcel that is under way comes too late by now. Then all of its rows are to be withdrawn,
    /// and who waits for one of them hears so.
    pub fn withdraws(&self, now_ns: u64) -> bool {
        let mut state = self.state.lock();
        let late = state.rows_under_way.take_if(|(oldest, _)| is_late(*oldest, now_ns));
        if let Some((_, newest)) = late {
            state.note_withdrawn(newest);
        }
        late.is_some()
    }

    /// Takes out the next parcel, of about so many bytes; none: there is nothing, or one is under way. What one
    /// transaction told is in one parcel. A row that waited too long is withdrawn.
    pub fn take(&self, bytes: usize, now_ns: u64) -> Option<Vec<Operation>> {
        let (parcel, answered) = self.state.lock().take(bytes, now_ns);
        self.settle(answered);
        parcel
    }

    /// The bus has the parcel that was under way.
    pub fn note_delivered(&self) {
        let waiting = {
            let mut state = self.state.lock();
            (state.under_way, state.rows_under_way) = (None, None);
            state.delivered()
        };
        self.settle(waiting);
    }

    /// Answers those for whom the bus has all that they wait for, and those of whom a row may have been withdrawn.
    fn settle(&self, waiting: Vec<(Waiting, bool)>) {
        for (Waiting { receipt, .. }, withdrawn) in waiting {
            receipt.settle(if withdrawn { Err(unheard(&self.bus)) } else { Ok(()) });
        }
    }

    /// What is over when the bus has all that was put in before.
    pub fn when_delivered(&self, now_ns: u64) -> Arc<Receipt> {
        let receipt = Arc::new(Receipt::new(1));
        self.push(Vec::new(), Some(Arc::clone(&receipt)), now_ns);
        receipt
    }

    /// Ends the waits that have taken too long. What is told stays, and goes when it can.
    pub(super) fn expire(&self, now_ns: u64) {
        let over = self.state.lock().expire(now_ns);
        self.settle(over.into_iter().map(|waiting| (waiting, true)).collect());
    }

    /// Operations that wait, without those under way.
    pub fn len(&self) -> usize {
        self.state.lock().loads.values().map(|load| load.operations).sum()
    }

    /// Whether there is nothing that the bus has not acknowledged.
    pub fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.under_way.is_none() && state.entries.is_empty()
    }

    /// When the oldest of what the bus has not acknowledged was put in.
    pub fn oldest_ns(&self) -> Option<u64> {
        let state = self.state.lock();
        // Who only waits has nothing to tell.
        let first = state.entries.iter().find(|entry| !entry.operations.is_empty());
        state.under_way.or_else(|| first.map(|entry| entry.since_ns))
    }
}

/// Whether what was put in then comes too late now: who waits for it has heard so.
fn is_late(since_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(since_ns) >= ACKNOWLEDGE_NS
}

#[cold]
fn unheard(bus: &str) -> SqlError {
    let message = format!("bus \"{bus}\" has not acknowledged it in {} s", ACKNOWLEDGE_NS / 1_000_000_000);
    SqlError::new("HV000", message)
        .with_detail(
            "It took effect here, and is told to the other caches as soon as the bus can be reached. A row that \
             travels is removed everywhere then: another cache may have written it since.",
        )
        .with_hint("SELECT state, last_error FROM sqlcached_buses says why")
}

impl State {
    fn push(&mut self, mut operations: Vec<Operation>, waiting: Option<Waiting>, now_ns: u64) {
        if operations.iter().map(Operation::bytes).sum::<usize>() > PARCEL_BYTES_MAX {
            operations = wholes(&operations);
        }
        let mut kept = Vec::with_capacity(operations.len());
        for operation in operations {
            self.add(operation, (OUTBOX_KEYS_MAX, OUTBOX_BYTES_MAX), &mut kept);
        }
        for operation in &kept {
            self.rows.add_broad(operation);
        }
        // With nothing in it, it waits for what was put in before.
        if !kept.is_empty() || waiting.is_some() {
            self.entries.push_back(Entry { operations: kept, waiting, since_ns: now_ns });
        }
        if self.entries.len() > self.swept_at {
            self.sweep();
        }
    }

    /// Drops the entries that tell nothing and that nobody waits for: behind a whole table a client that wants no
    /// answer adds one with each command. It is done when there are twice as many as the last time, so it costs little.
    fn sweep(&mut self) {
        let counts =
            |own: &Entry| !own.operations.is_empty() || own.waiting.as_ref().is_some_and(Waiting::is_awaited);
        self.entries.retain(counts);
        self.swept_at = 2 * self.entries.len() + OUTBOX_KEYS_MAX;
    }

    fn push_row(&mut self, operation: Operation, now_ns: u64) {
        let load = self.loads.entry(operation.table().clone()).or_default();
        // What is told of its rows from now on comes behind that.
        load.whole = false;
        // Where rows come faster than the bus takes them, the others do without.
        let operation = match operation {
            Operation::Row { table, key, .. } if load.bytes > OUTBOX_ROW_BYTES_MAX / 2 => {
                Operation::Key { table, key, change: KeyChange::Delete }
            }
            operation => operation,
        };
        let mut kept = Vec::with_capacity(1);
        self.add(operation, (OUTBOX_ROWS_MAX, OUTBOX_ROW_BYTES_MAX), &mut kept);
        for operation in &kept {
            self.rows.add(operation);
        }
        self.entries.push_back(Entry { operations: kept, waiting: None, since_ns: now_ns });
    }

    fn add(&mut self, operation: Operation, most: (usize, usize), kept: &mut Vec<Operation>) {
        let load = self.loads.entry(operation.table().clone()).or_default();
        if load.whole {
            return;
        }
        let is_full = load.is_full_for(&operation, most);
        let operation =
            if is_full { Operation::Whole { table: operation.table().clone() } } else { operation };
        if let Operation::Whole { table } = &operation {
            // What was told of its rows before is said by it, too.
            *load = Load { whole: true, ..Load::default() };
            for entry in &mut self.entries {
                for own in entry.operations.extract_if(.., |own| own.table() == table) {
                    self.rows.remove(&own);
                }
            }
            kept.retain(|own| own.table() != table);
            self.entries.retain(|entry| !entry.operations.is_empty() || entry.waiting.is_some());
        }
        if let Some(load) = self.loads.get_mut(operation.table()) {
            load.operations += 1;
            load.bytes += operation.bytes();
        }
        kept.push(operation);
    }

    fn note_withdrawn(&mut self, since_ns: u64) {
        self.withdrawn_to = self.withdrawn_to.max(Some(since_ns));
    }

    /// Those who wait for the parcel, each with whether a row that it waits for may have been withdrawn.
    fn delivered(&mut self) -> Vec<(Waiting, bool)> {
        let to = self.withdrawn_to;
        let withdrawn = |waiting: Waiting| {
            let may_be = to.is_some_and(|to| waiting.since_ns <= to);
            (waiting, may_be)
        };
        mem::take(&mut self.waiting).into_iter().map(withdrawn).collect()
    }

    /// The next parcel, and who need not wait any more.
    fn take(&mut self, bytes: usize, now_ns: u64) -> (Option<Vec<Operation>>, Vec<(Waiting, bool)>) {
        if self.under_way.is_some() {
            return (None, Vec::new());
        }
        let (mut parcel, mut size) = (Vec::new(), 0);
        while let Some(entry) = self.entries.front() {
            let own: usize = entry.operations.iter().map(Operation::bytes).sum();
            if size > 0 && size + own > bytes {
                break;
            }
            size += own;
            let Some(entry) = self.entries.pop_front() else { break };
            self.under_way.get_or_insert(entry.since_ns);
            self.waiting.extend(entry.waiting);
            for operation in entry.operations {
                self.unload(&operation);
                parcel.push(self.in_time(operation, entry.since_ns, now_ns));
            }
        }
        if parcel.is_empty() {
            // They waited for what had gone out before.
            self.under_way = None;
            return (None, self.delivered());
        }
        (Some(parcel), Vec::new())
    }

    /// An operation as it is sent: a row that waited too long is withdrawn.
    fn in_time(&mut self, operation: Operation, since_ns: u64, now_ns: u64) -> Operation {
        if !matches!(operation, Operation::Row { .. }) {
            return operation;
        }
        if is_late(since_ns, now_ns) {
            self.note_withdrawn(since_ns);
            return operation.withdrawn();
        }
        // They come in the order of time.
        let oldest = self.rows_under_way.map_or(since_ns, |(oldest, _)| oldest);
        self.rows_under_way = Some((oldest, since_ns));
        operation
    }

    fn unload(&mut self, operation: &Operation) {
        let table = operation.table();
        if let Some(load) = self.loads.get_mut(table) {
            load.operations = load.operations.saturating_sub(1);
            load.bytes = load.bytes.saturating_sub(operation.bytes());
            if load.operations == 0 {
                self.loads.remove(table);
            }
        }
    }

    fn expire(&mut self, now_ns: u64) -> Vec<Waiting> {
        let mut over: Vec<Waiting> = self.waiting.extract_if(.., |own| own.until_ns <= now_ns).collect();
        for entry in &mut self.entries {
            over.extend(entry.waiting.take_if(|own| own.until_ns <= now_ns));
        }
        self.entries.retain(|entry| !entry.operations.is_empty() || entry.waiting.is_some());
        over
    }
}

/// All rows of the tables that these are about.
fn wholes(operations: &[Operation]) -> Vec<Operation> {
    let mut tables: Vec<&TableName> = Vec::new();
    for operation in operations {
        if !tables.contains(&operation.table()) {
            tables.push(operation.table());
        }
    }
    tables.into_iter().map(|table| Operation::Whole { table: table.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::operation::KeyChange;
    use super::*;

    fn table(name: &str) -> TableName {
        TableName { name: name.into(), likeness: 1 }
    }

    fn key(name: &str, number: usize) -> Operation {
        let key = number.to_string().into_bytes().into();
        Operation::Key { table: table(name), key, change: KeyChange::Delete }
    }

    fn receipt() -> Arc<Receipt> {
        Arc::new(Receipt::new(1))
    }

    #[test]
    fn what_comes_while_a_parcel_is_under_way_goes_into_the_next() {
        let outbox = Outbox::default();
        let (first, second) = (receipt(), receipt());
        outbox.push(vec![key("a", 1)], Some(Arc::clone(&first)), 0);
        assert_eq!(outbox.take(100, 0), Some(vec![key("a", 1)]));
        outbox.push(vec![key("a", 2), key("b", 3)], Some(Arc::clone(&second)), 1);
        outbox.push(vec![key("a", 4)], None, 2);
        assert_eq!(outbox.take(100, 0), None, "one is under way");
        outbox.note_delivered();
        assert!(first.is_over() && !second.is_over());
        assert_eq!(outbox.oldest_ns(), Some(1));
        assert_eq!(outbox.take(1_000, 0), Some(vec![key("a", 2), key("b", 3), key("a", 4)]));
        assert!(!outbox.is_empty());
        outbox.note_delivered();
        assert!(second.result().is_ok() && second.is_over() && outbox.is_empty());
    }

    #[test]
    fn a_parcel_has_a_size_and_a_transaction_is_never_in_two() {
        let outbox = Outbox::default();
        outbox.push((0..5).map(|number| key("a", number)).collect(), None, 0);
        outbox.push((5..7).map(|number| key("a", number)).collect(), None, 0);
        assert_eq!(outbox.take(1, 0).map(|parcel| parcel.len()), Some(5));
        outbox.note_delivered();
        assert_eq!(outbox.take(1, 0).map(|parcel| parcel.len()), Some(2));
    }

    #[test]
    fn of_very_many_all_rows_are_told() {
        let outbox = Outbox::default();
        let waits = receipt();
        for number in 0..OUTBOX_KEYS_MAX {
            outbox.push(vec![key("a", number)], None, 0);
        }
        outbox.push(vec![key("b", 1)], None, 0);
        assert_eq!(outbox.len(), OUTBOX_KEYS_MAX + 1);
        outbox.push(vec![key("a", 0)], None, 0);
        assert_eq!(outbox.len(), 2);
        // It says enough for those to come, too, and who tells them waits for it.
        outbox.push(vec![key("a", 1)], Some(Arc::clone(&waits)), 0);
        assert_eq!(outbox.len(), 2);
        let parcel = outbox.take(PARCEL_BYTES_MAX, 0).unwrap();
        assert_eq!(parcel, [key("b", 1), Operation::Whole { table: table("a") }]);
        // What comes now came behind it.
        outbox.push(vec![key("a", 7)], None, 0);
        outbox.note_delivered();
        assert!(waits.is_over());
        assert_eq!(outbox.take(100, 0), Some(vec![key("a", 7)]));
    }

    #[test]
    fn who_wants_no_answer_takes_no_memory() {
        let outbox = Outbox::default();
        let awaited = receipt();
        outbox.push(vec![Operation::Whole { table: table("page") }], Some(Arc::clone(&awaited)), 0);
        for number in 0..100 * OUTBOX_KEYS_MAX {
            outbox.push(vec![key("page", number)], Some(receipt()), 0);
        }
        let entries = outbox.state.lock().entries.len();
        assert!(entries <= 2 * OUTBOX_KEYS_MAX, "{entries} entries");
        let late = receipt();
        outbox.push(vec![key("page", 0)], Some(Arc::clone(&late)), 0);
        assert_eq!(outbox.take(1 << 20, 0).unwrap().len(), 1);
        outbox.note_delivered();
        assert!(awaited.is_over() && late.is_over());
    }

    #[test]
    fn a_wait_ends_and_what_was_told_stays() {
        let outbox = Outbox::of("bus");
        let (early, late) = (receipt(), receipt());
        outbox.push(vec![key("a", 1)], Some(Arc::clone(&early)), 0);
        let under_way = outbox.take(100, 0);
        outbox.push(vec![key("a", 2)], Some(Arc::clone(&late)), 5);
        outbox.expire(ACKNOWLEDGE_NS);
        assert!(early.result().unwrap_err().message.contains("\"bus\"") && !late.is_over());
        outbox.expire(ACKNOWLEDGE_NS + 5);
        assert!(late.is_over());
        assert_eq!(under_way, Some(vec![key("a", 1)]));
        outbox.note_delivered();
        assert_eq!(outbox.take(100, 0), Some(vec![key("a", 2)]));
    }

    #[test]
    fn a_transaction_that_fits_no_message_tells_all_rows() {
        let outbox = Outbox::default();
        let long = vec![b'x'; PARCEL_BYTES_MAX / 100];
        let long =
            |name| Operation::Key { table: table(name), key: long.clone().into(), change: KeyChange::Delete };
        outbox.push((0..200).map(|at| long(if at % 2 == 0 { "a" } else { "b" })).collect(), None, 0);
        let wholes = ["a", "b"].map(|name| Operation::Whole { table: table(name) });
        assert_eq!(outbox.take(100, 0), Some(wholes.to_vec()));
    }
}
