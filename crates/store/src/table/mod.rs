//! A table as one definition describes it, and the state that lives on when the definition changes: its segments, its
//! counters, what is known of its rows.

pub(crate) mod catalog;
pub(crate) mod dropped;
pub(crate) mod due;
pub mod ghost;
pub(crate) mod lookups;
pub(crate) mod operations;
pub(crate) mod queue;
pub(crate) mod refresh;
pub(crate) mod removal_cause;
pub(crate) mod removal_event;
pub(crate) mod row_count;
pub(crate) mod rules;
pub(crate) mod sealed;
pub(crate) mod sequence;
pub(crate) mod standing;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use arena::{SegmentId, TableId};
use parking_lot::Mutex;

use crate::clock::{TICKS_PER_SECOND, Tick, moment_after};
use crate::codec::KeyCodec;
use crate::definition::{ColumnDef, Mode, OnLag, TableDef, TypeMismatch};
use crate::error::WriteError;
use crate::index::Index;
use crate::index::elements::{ElementKeys, ElementsOf};
use crate::limits::ELEMENTS_MAX;
use crate::row::RowBuf;
use crate::row::layout::RowLayout;
use crate::row::request::Expiry;
use crate::scalar::{Refusal, SqlType};
use crate::table::due::{AT_ONCE, Due};
use crate::table::ghost::Ghost;
use crate::table::lookups::Lookups;
use crate::table::operations::Operations;
use crate::table::queue::{QUEUES, Queues};
use crate::table::refresh::Refreshes;
use crate::table::removal_cause::RemovalCause;
use crate::table::row_count::RowCount;
use crate::value::{Value, ValueRef};

/// One table under one definition; a handle of a statement or a worker. Immutable but for the shared state.
#[derive(Debug)]
pub struct Table {
    /// See [`Table::number`].
    number: u64,
    def: TableDef,
    layout: RowLayout,
    /// A NOT NULL column without default, besides key and value, which a memcached `set` cannot fill.
    missing_default: Option<String>,
    /// The columns' types, which are read from their declaration once.
    types: Vec<SqlType>,
    /// Whether a write has expressions to compute.
    computes: bool,
    /// The columns whose default is an expression.
    computed_defaults: Vec<usize>,
    /// The column that the server numbers.
    identity: Option<usize>,
    indexes: Vec<Arc<Index>>,
    /// See [`Table::renews`].
    renews: bool,
    /// See [`Table::may_withhold`].
    may_withhold: bool,
    /// The schema version that rows are written under; 0: a materialized view's, which nobody writes by this handle.
    writes_under: u32,
    /// See [`Table::reads_through`].
    reads_through: bool,
    /// See [`Table::replicates_rows`].
    replicates_rows: bool,
    /// See [`Table::watches_writes`].
    watches_writes: bool,
    /// See [`Table::likeness`].
    likeness: Option<u64>,
    pub(crate) state: Arc<TableState>,
}

/// The next table's number.
static TABLES: AtomicU64 = AtomicU64::new(1);

/// What survives a change of definition: rows, limits, counters.
#[derive(Debug)]
pub(crate) struct TableState {
    pub(crate) id: TableId,
    /// Set by `DROP` under every shard's eyes: a writer checks it under the shard lock.
    pub(crate) gone: AtomicBool,
    /// The schema version that writers must know; who writes by an older one is refused. Release/Acquire: read under
    /// the shard lock, where the change of a definition passes when it has been raised.
    pub(crate) schema: AtomicU32,
    /// Indexes that every write keeps, also those still being built.
    pub(crate) maintained: Maintained,
    pub(crate) queues: Queues,
    /// When a segment may come due.
    pub(crate) due: Due,
    /// Serialises eviction within the table; taken before the queue lock.
    pub(crate) evicting: Mutex<Cursors>,
    pub(crate) ghost: Mutex<Ghost>,
    /// Whether the ghost ever took a key in; spares writers its lock before.
    pub(crate) ghost_used: AtomicBool,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    pub(crate) lookups: Lookups,
    /// The last flush: rows of smaller stamp were flushed, while others below `flushed_below` had their operations.
    /// Relaxed: it tells causes apart, not the dead from the living.
    pub(crate) emptied_below: AtomicU64,
    /// The last removal of all rows in one step: a statement that began before fails when it reads the table.
    /// `u64::MAX` when the table was dropped: then every statement fails. Relaxed: stored before `flushed_below`, which
    /// is looked at first.
    pub(crate) removed_below: AtomicU64,
    /// What expiry rules did. Taken for a moment, by who runs them and who asks.
    pub(crate) rules: Mutex<Vec<rules::RuleState>>,
    /// Made when `max_ops` is set for the first time.
    pub(crate) operations: OnceLock<Box<Operations>>,
    /// Those of a materialized view.
    pub(crate) refreshes: OnceLock<Box<Refreshes>>,
    pub(crate) row_count: RowCount,
    /// See [`Table::is_whole`]: how many rows had been evicted when the source's were all here; `u64::MAX`: they are
    /// not. Relaxed: the rows are published before, each with an ordering of its own.
    pub(crate) whole_at: AtomicU64,
    /// See [`Table::is_behind`]. Relaxed: it says of a moment that nobody can tell from the next.
    pub(crate) behind: AtomicBool,
    pub(crate) next_row_id: AtomicI64,
    /// The next number of an identity column.
    pub(crate) next_number: AtomicI64,
    /// Numbers of an identity column below this one may have been given out, and the definitions say so.
    pub(crate) numbers_below: AtomicI64,
}

/// The indexes that every write keeps. A write to a table without one asks one word, where a look at the list would
/// take two exchanges. A table whose rows other caches are to have is asked for by the same word.
#[derive(Debug, Default)]
pub(crate) struct Maintained {
    /// There may be some, or each write is told. Release and Acquire, but what counts is the shard lock, under which
    /// writers ask and through which a change of definitions passes.
    any: AtomicBool,
    /// Each write is told to other caches, which takes the same way.
    travels: AtomicBool,
    list: ArcSwap<Vec<Arc<Index>>>,
}

impl Maintained {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(crate) fn load(&self) -> Guard<Arc<Vec<Arc<Index>>>> {
        self.list.load()
    }

    /// Replaces the list; the caller holds the lock of definitions.
    pub(crate) fn store(&self, list: Arc<Vec<Arc<Index>>>) {
        self.list.store(list);
        self.settle();
    }

    /// Says whether each write is told; the caller holds the lock of definitions.
    fn set_travels(&self, travels: bool) {
        // Relaxed: only who changes definitions looks at it.
        if self.travels.swap(travels, Ordering::Relaxed) != travels {
            self.settle();
        }
    }

    fn settle(&self) {
        let any = !self.list.load().is_empty() || self.travels.load(Ordering::Relaxed);
        self.any.store(any, Ordering::Release);
    }
}

/// Where row-by-row eviction stands in the segment it took from each queue.
#[derive(Debug, Default)]
pub(crate) struct Cursors(pub(crate) [Option<Cursor>; QUEUES]);

/// A place in a sealed segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) segment: SegmentId,
    pub(crate) word: u32,
}

/// The rules of the table, as numbers that a hot path compares: one cache line. Relaxed: a rule that changes takes
/// effect soon.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Limits {
    /// Rows of smaller stamp are flushed, or had all the operations that `max_ops` gives them; in a dropped table that
    /// is every row. Release/Acquire: who saw the flush acknowledged sees the number.
    pub(crate) flushed_below: AtomicU64,
    /// Rows of smaller stamp without a deadline of their own are older than `ttl`.
    pub(crate) aged_below: AtomicU64,
    /// The tick for which `aged_below` was computed.
    pub(crate) aged_at: AtomicU32,
    /// 0 = no `ttl`.
    pub(crate) ttl_ticks: AtomicU32,
    /// `ttl` and `stale_for` together; 0 = no `ttl`.
    pub(crate) gone_ticks: AtomicU32,
    /// How long a row may be served stale after its deadline.
    pub(crate) stale_ticks: AtomicU32,
    /// Rows whose deadline was this tick or an earlier one are not served stale: they were gone when the rule came.
    pub(crate) stale_from: AtomicU32,
    /// The tick of a flush to come; 0 = none. Release/Acquire: it is taken back when `flushed_below` says what it did.
    pub(crate) flush_at: AtomicU32,
    /// `u64::MAX` = no limit.
    pub(crate) rows_max: AtomicU64,
    /// 0 = no `max_ops`.
    pub(crate) ops_max: AtomicU64,
    /// `u64::MAX` = no `max_memory`.
    pub(crate) memory_max: AtomicU64,
}

const _: () = assert!(size_of::<Limits>() == 64, "one cache line");

/// Counted as it happens. Relaxed: figures for people.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Rows by queue, counting those whose end nobody noticed yet.
    pub(crate) rows: [AtomicU64; QUEUES],
    /// Units of segments by queue.
    pub(crate) units: [AtomicU64; QUEUES],
    pub(crate) bytes: AtomicU64,
    pub(crate) written: AtomicU64,
    /// Rows that left, by why.
    pub(crate) left: [AtomicU64; RemovalCause::COUNT],
}

/// A table's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Rows, counting those that expired but were not yet cleared away.
    pub rows: u64,
    /// Bytes of these rows in the arena.
    pub bytes: u64,
    /// Bytes of the table's segments.
    pub segment_bytes: u64,
    /// Writes of rows since the start.
    pub written: u64,
    /// Rows evicted because room was needed.
    pub evicted: u64,
    /// Rows cleared away after their time came.
    pub expired: u64,
    /// Rows that left, by why; [`TableStats::left`] names them.
    by_cause: [u64; RemovalCause::COUNT],
    /// Operations since `max_ops` was set.
    pub operations: u64,
    /// Lookups by a whole key that found a live row, since the start.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
}

impl TableStats {
    /// Rows that left for this reason and were cleared away.
    pub fn left(&self, leaving: RemovalCause) -> u64 {
        self.by_cause[leaving as usize]
    }
}

impl Table {
    pub(crate) fn new(def: TableDef, indexes: Vec<Arc<Index>>, state: Arc<TableState>) -> Self {
        state.apply(&def);
        let unfilled = |&column: &usize| {
            let own = &def.columns[column];
            own.not_null && !own.has_default() && def.options.value != Some(column)
        };
        let missing_default = def
            .payload_columns()
            .iter()
            .find(|column| unfilled(column))
            .map(|&column| def.columns[column].name.clone());
        let types = def.columns.iter().map(ColumnDef::sql_type).collect();
        let identity = def.identity();
        // A number is given to each row, so none has a payload made beforehand.
        let computes = def.computes() || identity.is_some_and(|at| !def.is_key(at));
        let computed = |&at: &usize| def.columns[at].default_sql.is_some() && !def.is_key(at);
        let computed_defaults = (0..def.columns.len()).filter(computed).collect();
        let layout = RowLayout::new(&def);
        let renews = def.options.refresh_before_ms.is_some() || def.options.stale_for_ms.is_some();
        let may_withhold = renews || def.options.on_lag == OnLag::Fail;
        let writes_under = if def.materialized.is_some() { 0 } else { def.schema };
        let reads_through = def.options.query.is_some();
        let replicates_rows = def.replicates_rows();
        let watches_writes = reads_through || replicates_rows;
        let likeness = def.options.bus.is_some().then(|| def.likeness());
        Self {
            // Relaxed: only that no two are the same.
            number: TABLES.fetch_add(1, Ordering::Relaxed),
            def,
            layout,
            missing_default,
            types,
            computes,
            computed_defaults,
            identity,
            indexes,
            renews,
            may_withhold,
            writes_under,
            reads_through,
            replicates_rows,
            watches_writes,
            likeness,
            state,
        }
    }

    /// Tells this table under this definition from all others of the process, for what is kept by it: another table
    /// may have its id by then.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The greatest number that was given out in this column, or noted; none if there is none yet.
    pub fn last_number(&self) -> Option<i64> {
        // Relaxed: a figure of this moment.
        let next = self.state.next_number.load(Ordering::Relaxed);
        (next > 1).then(|| next - 1)
    }

    /// The column that the server numbers.
    pub(crate) fn identity(&self) -> Option<usize> {
        self.identity
    }

    /// The columns outside the key whose default is an expression.
    pub(crate) fn computed_defaults(&self) -> &[usize] {
        &self.computed_defaults
    }

    /// Whether a row was written with every computed column in it.
    pub(crate) fn has_computed(&self, row: &RowBuf) -> bool {
        self.def.slots.is_none() || !self.computes || {
            let computed = self.def.columns.iter().enumerate().filter(|(_, own)| own.generated.is_some());
            computed.into_iter().all(|(at, _)| self.layout.has(row, at))
        }
    }

    /// One column of an encoded key; damaged bytes read as NULL.
    pub(crate) fn key_column<'a>(&'a self, key: &'a [u8], column: usize) -> ValueRef<'a> {
        self.layout.key_column(key, column)
    }

    /// Whether the table was dropped.
    pub(crate) fn is_gone(&self) -> bool {
        self.state.gone.load(Ordering::Acquire)
    }

    /// Refuses a writer whose table was dropped or redefined.
    pub(crate) fn check_current(&self) -> Result<(), WriteError> {
        if self.is_gone() {
            return Err(WriteError::TableGone);
        }
        if self.writes_under < self.state.schema.load(Ordering::Acquire) {
            return Err(self.not_current());
        }
        Ok(())
    }

    #[cold]
    fn not_current(&self) -> WriteError {
        self.check_changeable().err().unwrap_or(WriteError::TableChanged)
    }

    /// Refuses who removes a row of a materialized view, or of a table that was dropped.
    pub(crate) fn check_removable(&self) -> Result<(), WriteError> {
        if self.is_gone() { Err(WriteError::TableGone) } else { self.check_changeable() }
    }

    /// A handle that may write a materialized view.
    pub(crate) fn written_by_refresh(self) -> Self {
        Self { writes_under: self.def.schema, ..self }
    }

    /// Refuses a writer of a materialized view.
    pub fn check_changeable(&self) -> Result<(), WriteError> {
        if self.writes_under == 0 { Err(WriteError::View(self.def.name.clone())) } else { Ok(()) }
    }

    /// Whether a write has expressions to compute.
    #[inline]
    pub(crate) fn computes(&self) -> bool {
        self.computes
    }

    /// The definition.
    pub fn def(&self) -> &TableDef {
        &self.def
    }

    /// The table's number in the arena.
    pub fn id(&self) -> TableId {
        self.state.id
    }

    /// Whether another one is this table under another definition.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// The table's name as it was declared.
    pub fn name(&self) -> &str {
        &self.def.name
    }

    /// What PostgreSQL clients are told of a column.
    pub fn column_type(&self, column: usize) -> SqlType {
        self.types.get(column).copied().unwrap_or(SqlType::Unknown)
    }

    /// Converts a value to what a column stores; see [`TableDef::accept`].
    pub fn accept(&self, column: usize, value: Value) -> Result<Value, TypeMismatch> {
        match &value {
            Value::Text(text) if let Some(integer) = self.plain_integer(column, text) => {
                Ok(Value::Integer(integer))
            }
            _ => {
                let accepted = self.def.accept(column, value)?;
                self.check_elements(column, accepted.as_ref())?;
                Ok(accepted)
            }
        }
    }

    /// Refuses a value of more elements than an index over them holds of a row.
    fn check_elements(&self, column: usize, value: ValueRef<'_>) -> Result<(), TypeMismatch> {
        let ValueRef::Text(text) = value else { return Ok(()) };
        if ElementKeys::most_in(text.len()) <= ELEMENTS_MAX
            || !self.def.indexes.iter().any(|index| index.elements == Some(column))
            || ElementKeys::of(value, ElementsOf::column(self.column_type(column))).len() <= ELEMENTS_MAX
        {
            return Ok(());
        }
        let message = format!("an index over elements takes {ELEMENTS_MAX} different ones of a row");
        Err(self.def.columns[column].mismatch(value, Refusal { state: "54000", message }))
    }

    /// The number that a column of plain integers makes of a text in the shortest form, as most that become one are.
    pub fn plain_integer(&self, column: usize, text: &str) -> Option<i64> {
        let digits = matches!(self.column_type(column), SqlType::Int4 | SqlType::Int8)
            && matches!(text.as_bytes(), [b'0'] | [b'1'..=b'9', ..])
            && text.bytes().all(|byte| byte.is_ascii_digit());
        // One that does not fit is not the shortest form of an integer.
        if digits { text.parse().ok() } else { None }
    }

    /// How keys are encoded.
    pub fn keys(&self) -> &KeyCodec {
        self.layout.keys()
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.layout
    }

    pub(crate) fn missing_default(&self) -> Option<&str> {
        self.missing_default.as_deref()
    }

    pub(crate) fn has_unique(&self) -> bool {
        self.state.maintained.load().iter().any(|index| index.def().unique)
    }

    /// The ordered indexes a query may use, the ordered primary key among them.
    pub fn indexes(&self) -> &[Arc<Index>] {
        &self.indexes
    }

    /// Whether its rows are refreshed before or after their time by one client for all, by `refresh_before` or
    /// `stale_for`.
    #[inline]
    pub fn renews(&self) -> bool {
        self.renews
    }

    /// Whether a `get` may miss a row that is there: where one client refreshes rows for all, and where nobody reads
    /// while the source is not followed.
    #[inline]
    pub fn may_withhold(&self) -> bool {
        self.may_withhold
    }

    /// Whether missing rows are fetched from its source (`query`).
    #[inline]
    pub fn reads_through(&self) -> bool {
        self.reads_through
    }

    /// Whether other caches are told which of its rows are not valid any more (`bus`).
    #[inline]
    pub fn is_told(&self) -> bool {
        self.likeness.is_some()
    }

    /// Whether other caches have its rows, too (`replicated = 'rows'`).
    #[inline]
    pub fn replicates_rows(&self) -> bool {
        self.replicates_rows
    }

    /// Whether somebody is to know of each command that writes: who fetches missing rows, or other caches.
    #[inline]
    pub fn watches_writes(&self) -> bool {
        self.watches_writes
    }

    /// What it has in common with the tables of its name in the other caches ([`TableDef::likeness`]); none: no other
    /// cache hears of it.
    pub fn likeness(&self) -> Option<u64> {
        self.likeness
    }

    /// Counts a lookup of a row by its whole key.
    #[inline]
    pub fn count_lookup(&self, hit: bool) {
        self.state.lookups.count(hit);
    }

    /// Rows, counting those that expired but were not yet cleared away.
    pub fn rows(&self) -> u64 {
        self.state.counters.rows()
    }

    /// Counters of this moment.
    pub fn stats(&self) -> TableStats {
        let counters = &self.state.counters;
        let by_cause = std::array::from_fn(|cause| counters.left[cause].load(Ordering::Relaxed));
        let [hits, misses] = self.state.lookups.totals();
        let sum = |causes: &[RemovalCause]| causes.iter().map(|cause| by_cause[*cause as usize]).sum();
        TableStats {
            rows: counters.rows(),
            bytes: counters.bytes.load(Ordering::Relaxed),
            segment_bytes: counters.segment_bytes(),
            written: counters.written.load(Ordering::Relaxed),
            evicted: sum(RemovalCause::EVICTED),
            expired: sum(RemovalCause::EXPIRED),
            by_cause,
            operations: self.state.operations.get().map_or(0, |operations| operations.total()),
            hits,
            misses,
        }
    }

    /// Whether it has all rows of a table of its source.
    pub fn is_mirror(&self) -> bool {
        self.def.options.mode == Mode::Mirror
    }

    /// Whether a mirror has all rows of the source's table. One of which a row was evicted has not.
    pub fn is_whole(&self) -> bool {
        self.state.whole_at.load(Ordering::Relaxed) == self.evicted()
    }

    /// Says of a mirror whether it has all rows.
    pub fn set_whole(&self, whole: bool) {
        let at = if whole { self.evicted() } else { u64::MAX };
        self.state.whole_at.store(at, Ordering::Relaxed);
    }

    /// Whether the table's source is further behind than it may be. Only known where the table looks at that
    /// (`on_lag`).
    pub fn is_behind(&self) -> bool {
        self.state.behind.load(Ordering::Relaxed)
    }

    /// Says whether it is.
    pub fn set_behind(&self, behind: bool) {
        self.state.behind.store(behind, Ordering::Relaxed);
    }

    /// Whether who reads it in SQL may be refused.
    pub fn may_refuse(&self) -> bool {
        self.is_mirror() || self.def.options.on_lag == OnLag::Fail
    }

    /// Whether nobody may read it now.
    pub fn fails(&self) -> bool {
        self.def.options.on_lag == OnLag::Fail && self.is_behind()
    }

    /// Rows that were evicted so far.
    pub fn evicted(&self) -> u64 {
        let left = &self.state.counters.left;
        RemovalCause::EVICTED.iter().map(|cause| left[*cause as usize].load(Ordering::Relaxed)).sum()
    }

    /// One column of a copied row; a damaged payload reads as NULL.
    pub fn column<'a>(&'a self, row: &'a RowBuf, column: usize) -> ValueRef<'a> {
        self.layout.column(row, column)
    }

    /// Encodes what is outside the key of a row, values in the order of the columns, none of them NULL that must not
    /// be.
    pub fn encode_payload(&self, values: &[ValueRef<'_>], payload: &mut Vec<u8>) -> Result<(), WriteError> {
        self.layout.encode_payload(values, payload)
    }

    /// Encodes the key of a row, values in the order of the columns.
    pub fn encode_key(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) -> Result<(), WriteError> {
        self.layout.encode_key(&self.def, values, key)
    }

    /// Appends the payload of a copied row with other values in columns outside the key, which meet their constraints.
    /// False: the row must be encoded whole, for it was written under another definition.
    pub fn edit_payload(
        &self,
        row: &RowBuf,
        changes: &[(usize, ValueRef<'_>)],
        payload: &mut Vec<u8>,
    ) -> Result<bool, WriteError> {
        self.layout.edit_payload(row, changes, payload)
    }

    /// Encodes a whole row, values in the order of the columns, into an empty key and payload.
    pub fn encode_row(
        &self,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        for (column, value) in self.def.columns.iter().zip(values) {
            if column.not_null && matches!(value, ValueRef::Null) {
                return Err(WriteError::NotNull(column.name.clone()));
            }
        }
        self.layout.encode(&self.def, values, key, payload)
    }

    /// Whether a row with this deadline is no row any more.
    pub(crate) fn has_ended(&self, expiry: Expiry, now: Tick) -> bool {
        match expiry {
            // The deadline of a row that is written again while it is served stale.
            Expiry::At(tick) | Expiry::KeptOr(tick) => {
                tick <= now && !self.state.limits.is_in_grace(tick, now)
            }
            other => other.has_come(now),
        }
    }
}

impl TableState {
    pub(crate) fn new(id: TableId) -> Self {
        Self {
            id,
            gone: AtomicBool::new(false),
            schema: AtomicU32::new(0),
            maintained: Maintained::default(),
            queues: Queues::new(),
            due: Due::default(),
            evicting: Mutex::default(),
            ghost: Mutex::new(Ghost::new(0)),
            ghost_used: AtomicBool::new(false),
            limits: Limits::default(),
            lookups: Lookups::default(),
            counters: Counters::default(),
            emptied_below: AtomicU64::new(0),
            removed_below: AtomicU64::new(0),
            rules: Mutex::default(),
            operations: OnceLock::new(),
            refreshes: OnceLock::new(),
            row_count: RowCount::new(),
            whole_at: AtomicU64::new(u64::MAX),
            behind: AtomicBool::new(false),
            next_row_id: AtomicI64::new(1),
            next_number: AtomicI64::new(1),
            numbers_below: AtomicI64::new(0),
        }
    }
}

impl TableState {
    /// Puts the rules of a definition in force.
    pub(crate) fn apply(&self, def: &TableDef) {
        if def.options.max_ops.is_some() {
            self.operations.get_or_init(Box::default);
        }
        if def.materialized.is_some() {
            self.refreshes.get_or_init(Box::default);
            // Above what those write under who may not write it. Release: pairs with the Acquire of writers.
            self.schema.fetch_max(1, Ordering::Release);
        }
        self.maintained.set_travels(def.replicates_rows());
        self.limits.apply(def);
        self.due.expect(AT_ONCE);
    }
}

impl Limits {
    fn apply(&self, def: &TableDef) {
        let (ttl, stale) = (ttl_ticks(def.options.ttl_ms), ticks(def.options.stale_for_ms));
        let gone = if ttl == 0 { 0 } else { ttl.saturating_add(stale) };
        self.ttl_ticks.store(ttl, Ordering::Relaxed);
        self.stale_ticks.store(stale, Ordering::Relaxed);
        self.gone_ticks.store(gone, Ordering::Relaxed);
        self.stale_from.store(def.options.stale_from, Ordering::Relaxed);
        // `aged_below` stays: what has expired does not come back when the rule is relaxed.
        self.aged_at.store(0, Ordering::Relaxed);
        self.rows_max.store(def.options.max_rows.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.ops_max.store(def.options.max_ops.unwrap_or(0), Ordering::Relaxed);
        self.memory_max.store(def.options.max_memory.unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Limits {
    /// Whether the moment of a flush has come that was not carried out yet.
    #[inline]
    pub(crate) fn is_flush_due(&self, now: Tick) -> bool {
        // Acquire: pairs with the Release of who carried one out. One comparison: none is later than every tick.
        self.flush_at.load(Ordering::Acquire).wrapping_sub(1) < now
    }

    /// Whether a row past its own deadline may still be served. One whose time ended under an earlier rule stays gone.
    #[cold]
    pub(crate) fn is_in_grace(&self, deadline: Tick, now: Tick) -> bool {
        // Relaxed: a rule that changes takes effect soon.
        let grace = self.stale_ticks.load(Ordering::Relaxed);
        now < moment_after(deadline, grace.into()) && deadline > self.stale_from.load(Ordering::Relaxed)
    }
}

/// A span of an option in ticks, rounded up; 0 where there is none.
pub(crate) fn ticks(ms: Option<u64>) -> u32 {
    let ticks = ms.map_or(0, |ms| ms.saturating_mul(TICKS_PER_SECOND).div_ceil(1_000).max(1));
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// A time to live in ticks, rounded down, for no row is to outlive it, but not to nothing; 0 where there is none.
pub(crate) fn ttl_ticks(ms: Option<u64>) -> u32 {
    let ticks = ms.map_or(0, |ms| (ms.saturating_mul(TICKS_PER_SECOND) / 1_000).max(1));
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

impl Counters {
    pub(crate) fn rows(&self) -> u64 {
        self.rows.iter().map(|rows| rows.load(Ordering::Relaxed)).sum()
    }

    /// Bytes of the table's segments.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.units() * arena::UNIT_BYTES as u64
    }

    /// Units of the table's segments.
    pub(crate) fn units(&self) -> u64 {
        self.units.iter().map(|units| units.load(Ordering::Relaxed)).sum()
    }

    /// Counts a row that left.
    pub(crate) fn count(&self, leaving: RemovalCause) {
        self.left[leaving as usize].fetch_add(1, Ordering::Relaxed);
    }
}
