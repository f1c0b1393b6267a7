//! Every bound of this crate, with its reason.

use std::ffi::c_int;
use std::time::Duration;

/// Longest text of a statement: SQLite's own maximum is a thousand times this, real ones are far smaller.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;
/// Prepared statements kept by one executor: an application has some dozens, and each takes about 2 KiB and up.
pub const CACHED_STATEMENTS_MAX: usize = 256;
/// Longer texts are most likely made for one use and are not kept.
pub const CACHED_STATEMENT_BYTES_MAX: usize = 64 << 10;
/// Texts without their literals of which is known which of these are parameters: some for each statement kept.
pub(crate) const SHAPES_MAX: usize = 1_024;
/// Longest text under which a statement is counted: enough to recognise it.
pub const NORMALIZED_BYTES_MAX: usize = 2_048;
/// Most rows that one statement writes: its new rows wait on the heap until all are computed.
pub const ROWS_PER_STATEMENT_MAX: usize = 1_000_000;
/// Most bytes of new rows that one statement holds until it applies them.
pub const BYTES_PER_STATEMENT_MAX: usize = 256 << 20;
/// Most rows that one transaction of several statements writes: its list waits on the heap for `COMMIT`.
pub const ROWS_PER_TRANSACTION_MAX: usize = 1_000_000;
/// Most bytes that the list of one transaction takes, what its savepoints keep included.
pub const BYTES_PER_TRANSACTION_MAX: usize = 256 << 20;
/// Most bytes that one session holds between its statements, in open transactions, cursors, portals and prepared
/// statements together: one transaction of the largest size, or four cursors of the largest default result.
pub const SESSION_BYTES_MAX: usize = 256 << 20;
/// Most bytes that all sessions hold so together: a client may sleep in a transaction for hours.
pub const SESSIONS_BYTES_MAX: usize = 1 << 30;
/// Buffers for new rows that a cached `INSERT` of many rows keeps for its next run: as many rows as programs that fill
/// tables commonly send at once.
pub(crate) const BULK_WRITES_KEPT: usize = 1_024;
/// Notices that a session keeps until somebody takes them; a statement has one or two.
pub const NOTICES_MAX: usize = 64;
/// Rows that a part of a statement gives to the others, or to the client: they are kept until all is written. As many
/// as move in a tenth of a second.
pub(crate) const PART_ROWS_MAX: usize = 100_000;
/// Bytes of such rows: a quarter of what SQLite may take for one statement.
pub(crate) const PART_BYTES_MAX: usize = 16 << 20;
/// How often a statement that lost a race is computed again. Each loss means that another writer won, so only
/// a permanent storm on one row comes near.
pub const RETRIES_MAX: usize = 10_000;
/// How often `COMMIT` computes blind statements again while others overtake it, before it lets writers of its rows
/// wait. One lost race in ten is much for a page that two processes fill, so that the next step is taken once in 10^8
/// times.
pub const OVERTAKEN_MAX: usize = 8;
/// How often it does so where writers wait. They go on when they waited for too long, which a slow condition brings
/// about.
pub const FIRM_COMMITS_MAX: usize = 16;
/// How often a statement starts again because what it read was given up, as when all rows of a table were removed in
/// one step. One that needs more than there is room to keep fails each time, and should fail soon.
pub(crate) const GIVEN_UP_MAX: u32 = 3;
/// Who waits until another has refreshed a view looks so often whether its own time is over.
pub(crate) const REFRESH_LOOK: Duration = Duration::from_millis(50);
/// How long the query of a materialized view may take where the view does not say: others wait for the refresher.
pub const REFRESH_TIMEOUT: Duration = Duration::from_mins(1);
/// Views within views that `CREATE TABLE ... AS` looks through for what its columns hold: people nest two or three, and
/// each may name several.
pub(crate) const NESTED_VIEWS_MAX: usize = 4;
/// SQLite operations that the expressions of a table's definition may take for one row: about a millisecond, for which
/// a memcached worker waits.
pub(crate) const EXPRESSION_OPERATIONS_MAX: u64 = 100_000;
/// SQLite's heap for the expressions of one row: some copies of the largest value that is usual.
pub(crate) const EXPRESSION_HEAP_BYTES_MAX: usize = 32 << 20;
/// The same for the expressions of a row: a call of one of SQLite's functions is an operation, and may go through all
/// of a large value.
pub(crate) const EXPRESSION_PROGRESS_OPERATIONS: c_int = 32;
/// How long the expressions of one row may keep their thread: a hundred times what usual ones take, and little enough
/// that clients of the same worker do not give up.
pub(crate) const EXPRESSION_TIME_MAX: Duration = Duration::from_millis(100);

/// Rows that a run of an expiry rule keeps in mind before it lets them go: more are found by another search.
pub(crate) const RULE_SLICE_ROWS: usize = 65_536;
/// Bytes of them.
pub(crate) const RULE_SLICE_BYTES: usize = 16 << 20;
/// Longest search of an expiry rule, its rests included: other rules wait for it.
pub(crate) const RULE_TIMEOUT: Duration = Duration::from_mins(5);
/// The server's own work is done for so long at a time: less than what clients notice.
pub(crate) const BACKGROUND_WORK: Duration = Duration::from_millis(1);
/// And then rests for so long, so that it takes a quarter of one processor.
pub(crate) const BACKGROUND_REST: Duration = Duration::from_millis(3);

/// `LATERAL` queries that run within one another: each takes some of the thread's stack.
pub(crate) const LATERAL_DEPTH_MAX: usize = 8;

/// Bounds that a setting may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A statement that runs longer is stopped (57014); `None` is no limit.
    pub statement_timeout: Option<Duration>,
    /// A statement that makes SQLite work longer than this many operations is stopped (57014); `None` is no
    /// limit. For tests, which want to stop without a clock.
    pub operations_max: Option<u64>,
    /// SQLite's heap for one statement: sorts, groups, values under way (53200 beyond).
    pub heap_bytes_max: usize,
    /// Prepared statements kept.
    pub cached_statements: usize,
    /// Statements that need no SQLite are run without it, unless their session says otherwise.
    pub native: bool,
    /// These are the server's own statements, for which nobody waits: they rest in between, and are no operations on
    /// the tables.
    pub background: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement_timeout: Some(Duration::from_secs(30)),
            operations_max: None,
            heap_bytes_max: 64 << 20,
            cached_statements: CACHED_STATEMENTS_MAX,
            native: true,
            background: false,
        }
    }
}

/// Clauses of a `MERGE`: each is a query that has the conditions of those before it. People write two or three.
pub(crate) const MERGE_CLAUSES_MAX: usize = 32;

/// Terms of a `GROUP BY` that is computed without SQLite: each column of the list is compared with each of them.
pub(crate) const GROUP_TERMS_MAX: usize = 32;

/// Bytes of a value that a message shows: as many as PostgreSQL's messages do.
pub(crate) const SHOWN_BYTES_MAX: usize = 64;

/// Statements of a function or procedure: what does more is a program of its client's.
pub(crate) const ROUTINE_STATEMENTS_MAX: usize = 64;

/// Parameters of a function or procedure, PostgreSQL's.
pub(crate) const ROUTINE_PARAMETERS_MAX: usize = 100;

/// Functions and procedures that call one another: each takes some of its thread's stack.
pub(crate) const CALLS_DEEP_MAX: usize = 16;

/// Texts of calls that an executor keeps ready; a client has few, and each takes some kilobytes.
pub(crate) const CALLS_KEPT_MAX: usize = 256;

/// How often a call runs again because others changed its rows meanwhile, before it is refused.
pub(crate) const CALLS_AGAIN_MAX: usize = 8;

/// Rows that a transaction committed before a definition and that `ROLLBACK` removes one by one; of more, all rows of
/// the table go. They are kept by their keys.
pub(crate) const UNDONE_ROWS_MAX: usize = 65_536;

/// Keys that a statement has fetched of a source at a time; it is run again then, and asks for the next.
pub(crate) const MISSING_KEYS_MAX: usize = 1_000;

/// Statements of a transaction that other caches are told one by one; of more, all rows of their tables are told.
pub(crate) const TOLD_IN_BLOCK_MAX: usize = 1_000;

/// Bytes of a statement and its values that other caches are told: a message of NATS has room for a megabyte, and a
/// list of keys that is longer costs each cache more than to empty the table.
pub(crate) const TOLD_BYTES_MAX: usize = 64 << 10;
