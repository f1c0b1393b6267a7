//! Bounds, each with its reason.

/// Announcements and settings that the functions of one statement ask for: each is compared with those before it.
pub const EFFECTS_MAX: usize = 1_000;
/// Longest text that a function makes of a short one (`repeat`, `lpad`), as long as SQLite's own values may be here.
pub const TEXT_BYTES_MAX: usize = 256 << 20;
/// Longest regular expression, far beyond what people write.
pub const PATTERN_BYTES_MAX: usize = 4 << 10;
/// What a regular expression may become when it is compiled: `(a{1000}){1000}` is short and would be huge.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 1 << 20;
/// Compiled regular expressions that a thread keeps: a statement has one or two, compiling one takes microseconds.
pub const PATTERNS_KEPT: usize = 64;
/// Members or elements of one level that the functions of JSON take apart: each becomes an entry on the heap. Arrays
/// have the same bound.
pub const JSON_MEMBERS_MAX: usize = 1_000_000;
/// Arrays that one `unnest` takes side by side, one for each column of a bulk insert: PostgreSQL's functions take as
/// many arguments.
pub const UNNEST_ARRAYS_MAX: usize = 100;
/// Units of work for an element of a JSON value: it is allocated, filled, compared.
pub const NODE_UNITS: usize = 32;
/// Names of time zones that are looked up once and stay: the list has six hundred, and offsets are few.
pub const ZONES_MAX: usize = 4_096;
/// Longest name with database and schema that is looked for: three names of 63 bytes, each of them a quote, fit.
pub const QUALIFIED_BYTES_MAX: usize = 512;
/// Bytes of a pattern of `LIKE` that is kept for the next row: what people write. Taken apart it is a hundred times as
/// long.
pub const LIKE_PATTERN_KEPT_BYTES: usize = 1 << 10;
/// Digits of a power of a decimal number before it is rounded: more would take milliseconds to multiply.
pub const POWER_DIGITS_MAX: u64 = 20_000;
/// Digits before the point of a power of e of a decimal number: more would take milliseconds to sum up.
pub const EXPONENTIAL_DIGITS_MAX: f64 = 1_000.0;
/// Rows that one look at `sqlcached_prefixes` or `sqlcached_largest` reads: a share of the whole is then right to a
/// hundredth, and the look takes some milliseconds whatever the table has.
pub const SAMPLE_ROWS: usize = 16 << 10;
/// Groups of the hash index that are searched for these rows. A table with few rows among many of others has fewer of
/// them in so many.
pub const SAMPLE_GROUPS: u64 = 32 << 10;
/// Tables that share one sample where the statement names none: the largest.
pub const SAMPLED_TABLES: usize = 32;
/// Prefixes of a table that are shown: more are no longer few keys' common part.
pub const PREFIXES_SHOWN: usize = 100;
/// Rows of a table that `sqlcached_largest` shows.
pub const LARGEST_ROWS: usize = 100;
/// Bytes of each column of a key that are shown: memcached's keys have 250 at most.
pub const SAMPLE_KEY_BYTES: usize = 256;
