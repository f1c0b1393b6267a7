//! The store's limits, each with its reason.

/// Bytes of the largest row that a reader of another process copies: to copy it takes a tenth of a millisecond, in
/// which its memory is hardly ever recycled.
pub(crate) const READER_ROW_BYTES_MAX: usize = 1 << 20;

/// Longest lead of an encoded value: a number's 8 bytes, or a length of up to 4.
pub(crate) const LEAD_BYTES_MAX: usize = 8;

/// Columns of a key that is made without memory of its own: few keys have more.
pub(crate) const KEY_COLUMNS_AT_HAND: usize = 8;

/// Most bytes of a sort key's whole number: 64 bits of whole part and one for the fraction.
pub(crate) const WHOLE_BYTES_MAX: usize = 9;

/// Rows in one commit at most: the list, its marks and its redo record take about 300 bytes a row of heap and arena.
pub const COMMIT_ROWS_MAX: usize = 4_000_000;

/// Rows that a transaction reads to write them later: each is remembered with its key until the end, some hundred
/// bytes.
pub const CHOSEN_ROWS_MAX: usize = 16_384;

/// Commits of more rows always keep old versions: a statement should not wait for them to be swapped.
pub(crate) const UNKEPT_ROWS_MAX: usize = 1_024;

/// Rows of a commit up to which it holds the locks of all their shards, in place of marks: a writer that comes to one
/// of these shards waits for about a tenth of a millisecond at most, if the rows are cold.
pub(crate) const LOCKED_ROWS_MAX: usize = 128;

/// Bytes of such a commit's rows, old and new ones. Each may be copied under the locks, for its index entries and for
/// statements that began before: some thirty microseconds.
pub(crate) const LOCKED_BYTES_MAX: usize = 256 << 10;

/// Bytes of index entries that a list of removals has of its rows at most. Those of arrays are many, and all of one
/// index leave under one hold of its lock: some two thousand.
pub(crate) const CARRIED_BYTES_MAX: usize = 64 << 10;

/// Expiry rules of one table at most: each is a search of its own, again and again.
pub(crate) const RULES_MAX: usize = 32;

/// Most slots of a table, those of dropped columns among them: each costs every later row a byte.
pub const SLOTS_MAX: u16 = 4_096;

/// Tables at most: the arena has a line of words for each.
pub const TABLES_MAX: u16 = 4_096;

/// Most changes of a table's definition: one in each second of 68 years.
pub(crate) const SCHEMA_MAX: u32 = i32::MAX as u32;

/// Most columns of a table that was defined before: an arena with wider tables is none of ours.
pub const COLUMNS_MAX: usize = 2000;

/// Most columns of a table that is defined now. SQLite's limit is 2,000, the hidden columns of each row are among them,
/// and some room is left for more of these.
pub const COLUMNS_DEFINED_MAX: usize = 1_980;

/// Most columns of a primary key or index, as in PostgreSQL.
pub const KEY_COLUMNS_MAX: usize = 32;

/// Most indexes of a table: each costs every write a step.
pub const INDEXES_MAX: usize = 64;

/// Longest name of a table, column or index, as in PostgreSQL.
pub const NAME_BYTES_MAX: usize = 63;

/// Longest comment on a table, column, index or view: some pages of text. All definitions are written at each change.
pub const COMMENT_BYTES_MAX: usize = 8 << 10;

/// Most enum types: all definitions are written at each change, and clients load them all.
pub const ENUM_TYPES_MAX: usize = 1_000;

/// Most schemas: tools list them all, and a search path tries each of its own.
pub const NAMESPACES_MAX: usize = 1_000;

/// Most functions and procedures: all definitions are written at each change.
pub const ROUTINES_MAX: usize = 1_000;

/// Most foreign servers: each that a table names has a thread and two connections.
pub const SERVERS_MAX: usize = 64;

/// Most user mappings of a server: one is used by the server itself, the others are kept for tools.
pub(crate) const SERVER_MAPPINGS_MAX: usize = 64;
/// Cached queries of one server: each text that comes new is compared with all of them.
pub(crate) const CACHED_QUERIES_MAX: usize = 256;
/// Bytes of the statement of one. All of them are written with each definition of their server.
pub(crate) const CACHED_QUERY_BYTES_MAX: usize = 16 << 10;

/// Longest value of an option of a server or user mapping: a path, or a token that stands for a password.
pub(crate) const SERVER_OPTION_BYTES_MAX: usize = 4 << 10;

/// Most tables that rows depend on: each change of one is looked for in all that name it.
pub(crate) const DEPENDENCES_MAX: usize = 32;

/// Longest text of `depends`: some dozens of tables with their columns.
pub(crate) const DEPENDS_BYTES_MAX: usize = 4 << 10;

/// Shortest time between two refreshes of a materialized view that is refreshed by the clock: below it a view is better
/// refreshed when a table changes.
pub(crate) const REFRESH_MS_MIN: u64 = 1_000;

/// The share of the memory that all materialized views may take, in per cent: their rows are not evicted, and the rest
/// is for rows that are.
pub(crate) const VIEWS_PER_CENT: u64 = 50;

/// How long after a change a view is refreshed at the earliest, in ticks, so that changes that come together are one.
pub(crate) const REFRESH_PAUSE_TICKS: u32 = 1;

/// A view that tables have refreshed rests so many times as long as the refresh took, so that refreshing takes a
/// quarter of one processor at most.
pub(crate) const REFRESH_REST: u64 = 3;

/// The first pause after a refresh that failed, in ticks; each further one is twice as long, ...
pub(crate) const REFRESH_AGAIN_TICKS: u32 = 16;

/// ... up to this one: a minute.
pub(crate) const REFRESH_AGAIN_TICKS_MAX: u32 = 60 * 16;

/// Least part of its time after which a view is refreshed, in thousandths: views of the same time go apart.
pub(crate) const REFRESH_JITTER: u64 = 900;
/// Longest text of `query`: a query with many joins.
pub(crate) const QUERY_BYTES_MAX: usize = 16 << 10;

/// Most `fetch_connections` of a server: PostgreSQL lets some hundred in, and the application needs the most of them.
pub(crate) const FETCH_CONNECTIONS_MAX: usize = 64;

/// Longest `miss_ttl` and `fetch_timeout`: what is not there is remembered in the daemon's own memory, and who waits
/// keeps a connection.
pub(crate) const FETCH_MS_MAX: u64 = 3_600_000;

/// Most sequences: all definitions are written at each change, and for each thousand numbers that one gives out.
pub const SEQUENCES_MAX: usize = 1_000;

/// Most labels of an enum type: a comparison looks through them.
pub(crate) const ENUM_LABELS_MAX: usize = 1_000;

/// Most checks of a table: each is computed for every row that is written.
pub const CHECKS_MAX: usize = 1_000;

/// Most foreign keys of a table: as many as it may have indexes.
pub const FOREIGN_KEYS_MAX: usize = INDEXES_MAX;

/// Most grants of a table or view, those of its columns among them: the catalogue is written whole with each change.
pub const GRANTS_MAX: usize = 256;

/// Longest prefix: memcached keys end at 250 bytes, and a row's own part needs room behind it.
pub(crate) const PREFIX_BYTES_MAX: usize = 200;

/// Longest ttl: a hundred years, well inside the 32 bits of a row's expiry word.
pub(crate) const TTL_MS_MAX: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// Most leaves that come to a node of an ordered index with one entry: it may make all of a window of four as wide as
/// can be.
pub(crate) const NEW_LEAVES_MAX: usize = 8;

/// Entries of two neighbouring blocks that are joined into one: no more, so that it does not split again soon.
pub(crate) const JOINED_MAX: usize = 96;

/// Most shared bytes that a leaf of an ordered index skips: enough for a scheme, a host and a path.
pub(crate) const SHARED_MAX: usize = 64;

/// Bytes of the widest head of a leaf's entries: one word.
pub(crate) const HEAD_MAX: usize = 8;

/// Entries of an ordered index that came last and are remembered: more than come while a scan hands out what it read
/// at once.
pub(crate) const RECENT_ARRIVALS_MAX: usize = 512;

/// Segments emptied for one taken from a table that wastes memory: as many single units as the largest shared run
/// needs, some of which the rows that move take again; a millisecond where rows are small.
pub(crate) const REUSE_STEPS_MAX: usize = 3 * arena::BLOCK_UNITS as usize;

/// Evictions that wait for the next tick; those beyond it are not reported.
pub(crate) const EVICTIONS_WAITING_MAX: usize = 4_096;

/// Units that the cleaner keeps free at most, so that writers seldom make room themselves.
pub(crate) const FREE_UNITS_MAX: u64 = 256;

/// Threads that count the lookups of each table in words of their own: a pair of cache lines each, 2 KiB a table, so
/// that 4,096 tables take 8 MiB. There are four memcached workers and two SQL threads by default.
pub(crate) const COUNTING_THREADS: usize = 16;

/// Elements that the text of an array may have: each becomes a value on the heap.
pub(crate) const ARRAY_ELEMENTS_MAX: usize = 1_000_000;

/// The largest number in front of an interval's unit: nothing overflows below it.
pub(crate) const INTERVAL_COUNT_MAX: f64 = 1e9;

/// Digits that a decimal number under way may have before or behind its point. PostgreSQL has 131,072 and 16,383; more
/// than these no sum of money has, and an operation on them takes microseconds.
pub const NUMERIC_DIGITS_MAX: i64 = 1_000;

/// Levels that a JSON value may have: the readers of JSON in the functions are recursive, and stop there.
pub const JSON_DEPTH_MAX: usize = 127;

/// Greater than the number of every view: the next one has one more.
pub(crate) const VIEW_ID_MAX: u32 = u32::MAX;

/// Bytes of removal events that wait for the next tick. Beyond it a table's copies are all declared gone at once, which
/// is true of those that left and harmless for the others.
pub(crate) const REMOVALS_WAITING_BYTES_MAX: usize = 4 << 20;

/// Heap for kept versions. Beyond it the statements that need them fail with "snapshot too old".
pub(crate) const OLD_VERSIONS_BYTES_MAX: u64 = 64 << 20;

/// Commits of many rows that may be in flight at once: the arena's commit slots.
pub(crate) const COMMITS_MAX: usize = 16;

/// Statements that may run at once; SQL threads are far fewer.
pub(crate) const STATEMENTS_MAX: usize = 256;

/// Rows under one value of a unique index that a check looks at: one is live, the others expired and not yet cleared.
pub(crate) const EQUAL_ROWS_MAX: usize = 64;

/// Groups of buckets in one batch of a scan: a table with few rows of its own among many of others finds them one
/// batch apart, and between two batches it can be stopped.
pub(crate) const SCAN_GROUPS_MAX: u64 = 32 << 10;
/// Largest exponent of a number in `jsonb` that is written out as digits: all floats have less.
pub(crate) const JSONB_EXPONENT_MAX: i64 = 400;

/// Elements of one row that an index over elements holds: an entry names its element by 16 bits.
pub(crate) const ELEMENTS_MAX: usize = 1 << 16;

/// A message repeats no more characters of a key: a key may have 250 bytes, and one part of it is to be found.
pub(crate) const SHOWN_CHARS_MAX: usize = 40;

/// Digits behind the point of a time or a size; more make no difference to a millisecond of a week.
pub(crate) const PLACES_MAX: usize = 9;

/// Bytes of a word that may be a misspelt name: longer ones are none, and comparing them would take time.
pub(crate) const WORD_BYTES_MAX: usize = 64;

/// Times that a start looks through what it has to undo, where others defined something that is in the way: a thing may
/// wait for its schema or its type, and a name for the thing that has it.
pub(crate) const UNDO_PASSES: usize = 8;

/// Most servers of NATS that the definition of a bus may name: as many as the largest cluster that keeps one stream
/// has in each of a few places.
pub(crate) const BUS_SERVERS_MAX: usize = 16;

/// Most bytes of a stream's name: NATS advises against more, and it is a part of each subject.
pub(crate) const STREAM_BYTES_MAX: usize = 32;
