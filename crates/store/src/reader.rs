//! Tables of another process, read in its arena: the definitions and rules of the store without the store.
//!
//! Everything that ends a row without a store of its own (deadline, `ttl`, flush) is decided here by the reader's own
//! clock, which is the owner's: the monotonic one of the machine, in ticks of the arena. So a row that has ended is
//! not served even if its owner stopped before it noticed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use arena::{ArenaError, Ends, Hash, Lookup, RowHead, RowRead, TableId, Ticket};
use parking_lot::Mutex;

use crate::clock::{Clock, NEVER, Tick, moment_after, moment_at, moment_so_old, ticks_between};
use crate::codec::{KeyCodec, KeyError};
use crate::definition::TableDef;
use crate::files::hits_path;
use crate::limits::READER_ROW_BYTES_MAX;
use crate::row::RowBuf;
use crate::row::layout::RowLayout;
use crate::row::renewal::Freshness;
use crate::rows::read::value_span;
use crate::schema::catalogue::{Shown, read_shown};
use crate::table::catalog::BUILT_IN;
use crate::table::{ticks, ttl_ticks};
use crate::value::ValueRef;

/// Lookups before a reader leaves a row to its owner: each lost one means that the row was replaced meanwhile.
const LOOKUP_ATTEMPTS: usize = 16;
/// The owner gives a sign of life sixteen times a second. After this silence a reader asks whether the file that it
/// has is still the one in use.
const SILENCE_NS: u64 = 2_000_000_000;

/// The arena of another process, as tables.
#[derive(Debug)]
pub struct Reader {
    arena: arena::Reader,
    clock: Clock,
    definitions: ArcSwap<Definitions>,
    /// Held by the one thread that reads new definitions.
    loading: Mutex<()>,
    /// Until when the file is known to be the one in use, whatever its owner's silence.
    known_until_ns: AtomicU64,
}

/// The tables of one moment.
#[derive(Debug)]
pub struct Definitions {
    number: u64,
    /// By name in lower case.
    tables: HashMap<String, Arc<SharedTable>>,
    /// The longest first.
    prefixes: Vec<Prefix>,
}

/// A prefix of memcached keys and its table; none for one that is not in this arena.
type Prefix = (Box<[u8]>, Option<Arc<SharedTable>>);

/// A table as one who reads it sees it, by one definition.
#[derive(Debug)]
pub struct SharedTable {
    id: TableId,
    number: u64,
    def: TableDef,
    layout: RowLayout,
    rules: Rules,
    flushed: Flushed,
}

/// The stamp below which rows are dead since the moment of a flush that the owner has not carried out: it is a moment
/// late, or not there.
#[derive(Debug, Default)]
struct Flushed {
    /// The moment.
    at: AtomicU32,
    below: AtomicU64,
}

/// The options that say when a row is due, stale and gone.
#[derive(Debug)]
struct Rules {
    /// In ticks, and so is `grace`.
    refresh: u32,
    grace: u32,
    stale_from: Tick,
    /// By age, for rows without a deadline of their own: written so long ago they are due, stale, gone.
    due: Age,
    stale: Age,
    gone: Age,
}

/// An age, and the stamp below which rows have reached it.
#[derive(Debug)]
struct Age {
    /// In ticks; 0: no row reaches it.
    span: u32,
    /// The tick for which `below` was found.
    at: AtomicU32,
    below: AtomicU64,
}

/// What there is to know of a row that was found, but its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it stands between its write and its end.
    pub freshness: Freshness,
    /// Somebody refreshes it, until this tick; 0: nobody does.
    pub lease: Tick,
    /// The client's 32 bits.
    pub client_flags: u32,
    /// The CAS value.
    pub cas: u64,
    /// The number of the write that made this version.
    pub stamp: u64,
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The row.
    Hit(Seen),
    /// There is none.
    Miss,
    /// The arena does not say: the row is too large to copy, was replaced again and again, or definitions changed while
    /// it was read. Its owner knows.
    Unanswered,
}

/// A key whose lines are on their way, by its hash.
#[derive(Clone, Copy, Debug)]
pub struct Ahead(Hash);

thread_local! {
    /// A row, for values that are not stored as the bytes that a client gets.
    static ROW: RefCell<RowBuf> = RefCell::default();
}

impl Reader {
    /// Opens the arena at a path, whose file must belong to one of these users.
    pub fn open(path: &Path, owners: &[u32], clock: Clock) -> Result<Self, ArenaError> {
        let mut arena = arena::Reader::open(path, owners)?;
        if arena.is_shared() {
            // Who may not write it is told of nothing: its reads count no more than those of a private table would.
            let _untold = arena.tell_hits(&hits_path(path), owners);
        }
        let definitions = ArcSwap::from_pointee(Definitions::load(&arena));
        let known_until_ns = AtomicU64::new(clock.now_ns() + SILENCE_NS);
        Ok(Self { arena, clock, definitions, loading: Mutex::new(()), known_until_ns })
    }

    /// The moment at which a read begins. `None`: the file is no longer the one in use, and nothing it says counts.
    #[inline]
    pub fn begin(&self) -> Option<Tick> {
        let now_ns = self.clock.now_ns();
        let silent = now_ns.saturating_sub(self.arena.last_heartbeat_ns()) > SILENCE_NS;
        if !self.arena.is_in_use() || (silent && !self.is_still_in_use(now_ns)) {
            return None;
        }
        Some(moment_at(now_ns.saturating_sub(self.arena.epoch_ns())))
    }

    /// Whether an owner that is silent left this file to the next one, by its path: a stop or a crash changes nothing
    /// in what was acknowledged, and the next owner takes this very file over or puts another in its place.
    #[cold]
    fn is_still_in_use(&self, now_ns: u64) -> bool {
        // Relaxed: it only spares a system call.
        if now_ns < self.known_until_ns.load(Ordering::Relaxed) {
            return true;
        }
        let still = self.arena.is_at_its_path();
        if still {
            self.known_until_ns.store(now_ns + SILENCE_NS, Ordering::Relaxed);
        }
        still
    }

    /// The file that is read.
    pub fn path(&self) -> &Path {
        self.arena.path()
    }

    /// The tables in force.
    pub fn definitions(&self) -> Arc<Definitions> {
        let number = self.arena.definitions();
        let known = self.definitions.load();
        if known.number == number { Arc::clone(&known) } else { self.reload() }
    }

    #[cold]
    fn reload(&self) -> Arc<Definitions> {
        // Who comes meanwhile reads for itself: to wait could be for ever in a child that was forked meanwhile.
        let Some(_one) = self.loading.try_lock() else { return Arc::new(Definitions::load(&self.arena)) };
        if self.definitions.load().number != self.arena.definitions() {
            self.definitions.store(Arc::new(Definitions::load(&self.arena)));
        }
        self.definitions.load_full()
    }

    /// Whether a table's definition is the one in force.
    #[inline]
    pub fn is_current(&self, table: &SharedTable) -> bool {
        table.number == self.arena.definitions()
    }

    /// Appends the value column of the row under an encoded key, as a memcached client gets it.
    #[inline]
    pub fn value(&self, table: &SharedTable, key: &[u8], now: Tick, out: &mut Vec<u8>) -> Found {
        self.value_ahead(table, self.ahead(table, key), key, now, out)
    }

    /// As [`Reader::value`], for a key that was asked for ahead.
    #[inline]
    pub fn value_ahead(
        &self,
        table: &SharedTable,
        ahead: Ahead,
        key: &[u8],
        now: Tick,
        out: &mut Vec<u8>,
    ) -> Found {
        let begin = out.len();
        self.find(table, ahead, key, now, |read| {
            out.truncate(begin);
            match value_span(table.layout.shape(), read) {
                Some((offset, len)) => read.copy_payload(offset, len, out),
                None => table.print_value(*read, out),
            }
        })
    }

    /// Copies the row under an encoded key.
    pub fn row(&self, table: &SharedTable, key: &[u8], now: Tick, row: &mut RowBuf) -> Found {
        self.find(table, self.ahead(table, key), key, now, |read| {
            // Whether the copy is whole is asked by `find`.
            let _whole = row.load(read);
        })
    }

    /// Finds a live row and has it copied; the copy counts when this says `Hit`.
    #[inline]
    fn find(
        &self,
        table: &SharedTable,
        Ahead(hash): Ahead,
        key: &[u8],
        now: Tick,
        mut copy: impl FnMut(&RowRead<'_>),
    ) -> Found {
        for _ in 0..LOOKUP_ATTEMPTS {
            match self.arena.lookup(hash, table.id, key) {
                Lookup::Hit(read) => {
                    let seen = self.see(table, read.head(), now);
                    let small = read.head().total_bytes <= READER_ROW_BYTES_MAX;
                    if seen.is_some() && small {
                        copy(&read);
                    }
                    if read.is_valid() {
                        // The table may have been dropped since the read began, and its number given to another one,
                        // whose row this would be.
                        if !self.is_current(table) {
                            return Found::Unanswered;
                        }
                        return match seen {
                            Some(seen) if small => {
                                self.arena.note_hit(&read);
                                Found::Hit(seen)
                            }
                            Some(_) => Found::Unanswered,
                            None => Found::Miss,
                        };
                    }
                }
                Lookup::Miss => return Found::Miss,
                Lookup::Busy => {}
            }
        }
        Found::Unanswered
    }

    /// To be taken before a row is read that is to be waited for: a change in between ends the waiting at once.
    pub fn ticket(&self, table: &SharedTable, key: &[u8]) -> Ticket {
        self.arena.ticket(self.arena.hash(table.id, key))
    }

    /// Sleeps until a lease on the row ends by a write, a removal or a flush, at most so long. It may wake for another
    /// row.
    pub fn wait(&self, ticket: Ticket, at_most: Duration) {
        let _woken = self.arena.wait(ticket, at_most);
    }

    #[inline]
    fn ahead(&self, table: &SharedTable, key: &[u8]) -> Ahead {
        Ahead(self.arena.hash(table.id, key))
    }

    /// Asks memory for the index bucket of an encoded key; [`Reader::prefetch_row`] is to follow, then
    /// [`Reader::value_ahead`].
    #[inline]
    pub fn prefetch(&self, table: &SharedTable, key: &[u8]) -> Ahead {
        let ahead = self.ahead(table, key);
        self.arena.prefetch_bucket(ahead.0);
        ahead
    }

    /// Asks memory for the row whose bucket has come.
    #[inline]
    pub fn prefetch_row(&self, table: &SharedTable, ahead: Ahead) {
        self.arena.prefetch_row(ahead.0, table.id);
    }

    /// What there is to know of a row, if it is live by every rule of its table: what `Time::is_live` and
    /// `Time::freshness` say.
    #[inline]
    fn see(&self, table: &SharedTable, head: &RowHead, now: Tick) -> Option<Seen> {
        let Ends { flush_at, dead_below, aged_below } = self.arena.ends(table.id);
        if head.stamp < dead_below
            || (flush_at.wrapping_sub(1) < now && table.flushed.below(&self.arena, flush_at) > head.stamp)
        {
            return None;
        }
        let freshness = match head.expiry {
            NEVER => Freshness::Fresh,
            0 if head.stamp < aged_below => return None,
            0 => self.by_age(table, head.stamp, now)?,
            deadline => table.rules.by_deadline(deadline, now)?,
        };
        Some(Seen {
            freshness: if head.is_stale() { Freshness::Stale } else { freshness },
            lease: if now < head.lease { head.lease } else { 0 },
            client_flags: head.client_flags,
            cas: head.cas(),
            stamp: head.stamp,
        })
    }

    /// Where a row without a deadline of its own stands; `None`: it has ended.
    #[inline]
    fn by_age(&self, table: &SharedTable, stamp: u64, now: Tick) -> Option<Freshness> {
        let Rules { due, stale, gone, .. } = &table.rules;
        if gone.span == 0 {
            return Some(Freshness::Fresh);
        }
        let reached = |age: &Age| stamp < age.below(&self.arena, now);
        if reached(gone) {
            return None;
        }
        Some(if reached(stale) {
            Freshness::Stale
        } else if reached(due) {
            Freshness::Due
        } else {
            Freshness::Fresh
        })
    }
}

impl Flushed {
    #[cold]
    fn below(&self, arena: &arena::Reader, at: Tick) -> u64 {
        // Acquire: pairs with the Release below, so that the number is that of the moment.
        if self.at.load(Ordering::Acquire) == at {
            return self.below.load(Ordering::Relaxed);
        }
        // Every write is preceded by a note of its tick. Without one since the moment every row that could be found
        // before was written earlier; but one may be written now, so that answer is not kept.
        let Some(below) = arena.first_stamp_after(at - 1) else { return u64::MAX };
        // Moments do not come back, and what was dead stays so.
        self.below.fetch_max(below, Ordering::Relaxed);
        self.at.store(at, Ordering::Release);
        below
    }
}

impl Age {
    fn new(span: u32) -> Self {
        Self { span, at: AtomicU32::new(0), below: AtomicU64::new(0) }
    }

    /// Rows of smaller stamp have reached the age. Found once a tick.
    #[inline]
    fn below(&self, arena: &arena::Reader, now: Tick) -> u64 {
        // Acquire: pairs with the Release below, so that the number is that of the tick.
        if self.at.load(Ordering::Acquire) == now {
            return self.below.load(Ordering::Relaxed);
        }
        self.look_up(arena, now)
    }

    #[cold]
    fn look_up(&self, arena: &arena::Reader, now: Tick) -> u64 {
        let begin = moment_so_old(now, self.span.into());
        let Some(moment) = begin.filter(|_| self.span > 0) else { return 0 };
        // Every write is preceded by a note of its tick. Without one since that moment, every row that could be found
        // before was written earlier; but one may be written now, so the answer is not kept.
        let Some(below) = arena.first_stamp_after(moment) else { return u64::MAX };
        self.below.fetch_max(below, Ordering::Relaxed);
        self.at.store(now, Ordering::Release);
        self.below.load(Ordering::Relaxed)
    }
}

impl Rules {
    fn of(def: &TableDef) -> Self {
        let options = &def.options;
        let (ttl, refresh) = (ttl_ticks(options.ttl_ms), ticks(options.refresh_before_ms));
        let grace = ticks(options.stale_for_ms);
        let age = |span: u32| Age::new(if ttl == 0 { 0 } else { span.max(1) });
        Self {
            refresh,
            grace,
            stale_from: options.stale_from,
            due: age(if refresh == 0 { ttl } else { ttl.saturating_sub(refresh) }),
            stale: age(ttl),
            gone: age(ttl.saturating_add(grace)),
        }
    }

    /// Where a row with a deadline of its own stands; `None`: it has ended.
    #[inline]
    fn by_deadline(&self, deadline: Tick, now: Tick) -> Option<Freshness> {
        if now < deadline {
            let due = self.refresh > 0 && ticks_between(now, deadline) <= u64::from(self.refresh);
            return Some(if due { Freshness::Due } else { Freshness::Fresh });
        }
        let in_grace = now < moment_after(deadline, self.grace.into()) && deadline > self.stale_from;
        in_grace.then_some(Freshness::Stale)
    }
}

impl Definitions {
    fn load(arena: &arena::Reader) -> Self {
        // The number first: definitions that come meanwhile have another, and are read by the next.
        let number = arena.definitions();
        let Shown { tables, private } =
            arena.catalogue().and_then(|bytes| read_shown(&bytes)).unwrap_or_default();
        // The private arena has all definitions, and the rows of private tables.
        let (tables, others): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|def| TableId(def.id).is_shared() == arena.is_shared());
        let tables: Vec<Arc<SharedTable>> =
            tables.into_iter().map(|def| Arc::new(SharedTable::new(def, number))).collect();
        let shared = tables.iter().filter_map(|table| {
            let prefix = table.def.options.prefix.as_deref()?;
            Some((prefix.as_bytes().into(), Some(Arc::clone(table))))
        });
        let others = others.into_iter().filter_map(|def| def.options.prefix);
        let private = private.into_iter().chain(others).map(|prefix| (prefix.into_bytes().into(), None));
        let mut prefixes: Vec<Prefix> = shared.chain(private).collect();
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        let tables = tables.into_iter().map(|table| (table.def.name.to_lowercase(), table)).collect();
        Self { number, tables, prefixes }
    }

    /// A table by its name, in any case; none that is not in this arena.
    pub fn table(&self, name: &str) -> Option<&Arc<SharedTable>> {
        self.tables.get(name).or_else(|| self.tables.get(&name.to_lowercase()))
    }

    /// The tables of this arena, in no order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<SharedTable>> {
        self.tables.values()
    }

    /// The table that answers to a memcached key, and the key without its prefix; none where that table is not in this
    /// arena.
    pub fn route<'k>(&self, key: &'k [u8]) -> Option<(&Arc<SharedTable>, &'k [u8])> {
        for (prefix, table) in &self.prefixes {
            if let Some(rest) = key.strip_prefix(&**prefix) {
                return table.as_ref().map(|table| (table, rest));
            }
        }
        None
    }
}

impl SharedTable {
    fn new(def: TableDef, number: u64) -> Self {
        Self {
            id: TableId(def.id),
            number,
            layout: RowLayout::new(&def),
            rules: Rules::of(&def),
            flushed: Flushed::default(),
            def,
        }
    }

    /// Its definition.
    pub fn def(&self) -> &TableDef {
        &self.def
    }

    /// Whether it is the table of the memcached keys that no other one answers to.
    pub fn is_built_in(&self) -> bool {
        self.def.name == BUILT_IN
    }

    /// How keys are encoded.
    pub fn keys(&self) -> &KeyCodec {
        self.layout.keys()
    }

    /// Appends the key that memcached text without the prefix names.
    pub fn key_from_text(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
        self.layout.keys().from_text(text, out)
    }

    /// One column of a copied row.
    pub fn column<'a>(&'a self, row: &'a RowBuf, column: usize) -> ValueRef<'a> {
        self.layout.column(row, column)
    }

    /// Appends a value that is not stored as bytes at the payload's beginning. The row comes by value: one whose
    /// address is nobody's stays in registers.
    #[cold]
    fn print_value(&self, read: RowRead<'_>, out: &mut Vec<u8>) {
        ROW.with_borrow_mut(|row| {
            if row.load(&read) {
                self.layout.write_item_value(&self.def, row, out);
            }
        });
    }
}
