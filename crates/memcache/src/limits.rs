//! How long each part of a request may be. Every limit is a setting with one of these constants as its default.

/// Bytes in a key. memcached's own limit, which client libraries check before they send.
pub const KEY_MAX: usize = 250;

/// Bytes of a command line without its line end. memcached gives up on a line after 2,048 bytes; no command but
/// the retrievals comes near it (the longest is a `cas` with a 250-byte key: 340 bytes).
pub const LINE_MAX: usize = 2048;

/// Bytes of a `get`, `gets`, `gat` or `gats` line. memcached has no bound, so that a page can fetch thousands of
/// keys at once; this one is room for 4,000 keys of the greatest length and still a small buffer.
pub const RETRIEVAL_LINE_MAX: usize = 1 << 20;

/// Bytes of a value: memcached's `-I` default.
pub const VALUE_MAX: usize = 1 << 20;

/// Bytes of a SQL statement, and of the JSON array of its parameters: SQLite's own default for a statement is
/// a million, and a bulk `INSERT` of a thousand rows of 1 KiB is about that.
pub const SQL_STATEMENT_MAX: usize = 1 << 20;

/// Bytes of the JSON array of parameters that goes with a statement: one value of the default greatest length,
/// written with escapes, and some small ones.
pub const SQL_PARAMETERS_MAX: usize = 4 << 20;

/// The largest number of data bytes any request may declare, whatever the settings say. It is memcached's bound
/// (a signed 32-bit length), and keeps each sum of lengths far from overflow.
pub const DATA_MAX: u64 = 0x7fff_fffd;

/// The longest body that a binary frame may declare. What is longer is no value that any setting allows, and a length
/// that is out of step is mostly far above; up to here the bytes of a refused frame are counted off.
pub(crate) const BINARY_BODY_MAX: usize = 1 << 30;

/// Bytes of the text of an error. Clients keep the line in a buffer of their own, and libmemcached's has 2,048.
pub(crate) const ERROR_TEXT_MAX: usize = 1024;

/// Digits of the largest 64-bit number.
pub(crate) const DIGITS_MAX: usize = 20;

/// The least memory limit in MiB that memcached takes.
pub(crate) const MEMLIMIT_MIN: u64 = 8;

/// A memory limit in MiB above this can only have been meant as bytes; memcached's number.
pub(crate) const MEMLIMIT_MAX: u64 = 1_000_000_000;

/// The highest level of memcached's mover of pages.
pub(crate) const AUTOMOVE_MAX: u32 = 2;

/// The longest sleep of memcached's crawler, in microseconds.
pub(crate) const CRAWLER_SLEEP_MAX: u32 = 1_000_000;

/// Spaces before a command that is longer than [`Limits::line_max`]; memcached's number. It keeps the question
/// "is this a retrieval?" about such a line short.
pub(crate) const LEADING_SPACES_MAX: usize = 100;

/// Flags in one command; memcached's bound of 20 words with the command and its key.
pub(crate) const META_FLAGS_MAX: usize = 18;

/// Bytes of a user and a password, and of a frame that carries them; memcached's number.
pub(crate) const LOGIN_BYTES_MAX: usize = 16 << 10;

/// The longest name of a SASL mechanism; memcached's.
pub(crate) const MECHANISM_MAX: usize = 32;

/// Bytes of a line before authentication: below is no command that could carry a password; memcached's number.
pub(crate) const LOGIN_LINE_MIN: usize = 6;

/// Bytes of an opaque, with its letter.
pub(crate) const META_OPAQUE_MAX: usize = 32;

/// The limits a [`Parser`](crate::Parser) holds its peer to. Reaching one is an error to that peer alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in a key; see [`KEY_MAX`].
    pub key_max: usize,
    /// Bytes in a command line; see [`LINE_MAX`].
    pub line_max: usize,
    /// Bytes in a retrieval line of many keys; see [`RETRIEVAL_LINE_MAX`].
    pub retrieval_line_max: usize,
    /// Bytes in a value; see [`VALUE_MAX`].
    pub value_max: usize,
    /// Bytes in a SQL statement; see [`SQL_STATEMENT_MAX`].
    pub sql_statement_max: usize,
    /// Bytes in a statement's parameters; see [`SQL_PARAMETERS_MAX`].
    pub sql_parameters_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_max: KEY_MAX,
            line_max: LINE_MAX,
            retrieval_line_max: RETRIEVAL_LINE_MAX,
            value_max: VALUE_MAX,
            sql_statement_max: SQL_STATEMENT_MAX,
            sql_parameters_max: SQL_PARAMETERS_MAX,
        }
    }
}
