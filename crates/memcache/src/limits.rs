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
