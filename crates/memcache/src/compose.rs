//! From answers to bytes. Each function appends to the buffer it is given and cannot fail.

/// An answer that is a single line without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// The value was stored.
    Stored,
    /// The condition of `add`, `replace`, `append` or `prepend` did not hold.
    NotStored,
    /// `cas`: somebody has changed the value.
    Exists,
    /// There is no such key.
    NotFound,
    /// The key is gone.
    Deleted,
    /// The expiry time is new.
    Touched,
    /// Done.
    Ok,
    /// Statistics are reset.
    Reset,
    /// The end of values, statistics or rows.
    End,
    /// The answer to `mn`.
    MetaNoop,
    /// A number: the result of `incr` and `decr`.
    Number(u64),
    /// `VERSION` and the version.
    Version(&'a str),
    /// `OK` and how many rows a SQL statement changed.
    Changed(u64),
    /// No such command.
    Error,
    /// What the peer did wrong.
    ClientError(&'a str),
    /// What the server could not do.
    ServerError(&'a str),
}

/// Appends a reply.
pub fn compose(reply: &Reply<'_>, out: &mut Vec<u8>) {
    let _ = (reply, out);
}

/// Appends the line before a value: `VALUE <key> <flags> <bytes> [<cas>]`. The value and [`value_end`] follow.
pub fn value_header(key: &[u8], flags: u32, bytes: usize, cas: Option<u64>, out: &mut Vec<u8>) {
    let _ = (key, flags, bytes, cas, out);
}

/// Appends the line end behind a value.
pub fn value_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends `STAT <name> <value>`.
pub fn stat(name: &str, value: &str, out: &mut Vec<u8>) {
    let _ = (name, value, out);
}

/// Appends `STAT <name> <value>` with a number.
pub fn stat_number(name: &str, value: u64, out: &mut Vec<u8>) {
    let _ = (name, value, out);
}

/// Appends one row of a SQL result: JSON text on one line.
pub fn sql_row(json: &str, out: &mut Vec<u8>) {
    let _ = (json, out);
}

/// Appends `ERROR <sqlstate> <message>` on one line.
pub fn sql_error(sqlstate: &str, message: &str, out: &mut Vec<u8>) {
    let _ = (sqlstate, message, out);
}

/// Appends a number in decimal.
pub fn number(value: u64, out: &mut Vec<u8>) {
    let _ = (value, out);
}
