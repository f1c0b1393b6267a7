//! From answers to bytes. Each function appends to the buffer it is given and cannot fail, and no text that is
//! passed to it can end a line early and so be taken for an answer of its own.

use crate::limits::{DIGITS_MAX, ERROR_TEXT_MAX};
use crate::malformed::Malformed;
use crate::request::Dump;

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
    /// `incr` or `decr` of a value that is no number.
    NonNumeric,
    /// There is no room for the value.
    OutOfMemory,
    /// The value is longer than the table or the memory allows, found when it was stored.
    TooLarge,
    /// `cache_memlimit` cannot be followed.
    MemlimitAdjustFailed,
    /// `shutdown` without the flag that allows it.
    ShutdownNotEnabled,
    /// `flush_all` where it is switched off.
    FlushNotAllowed,
    /// A stream that is not offered.
    NotAllowed(Dump),
    /// The answer to a connection beyond the limit, before it is closed.
    TooManyConnections,
    /// No such command.
    Error,
    /// What the peer did wrong.
    ClientError(&'a str),
    /// What the server could not do.
    ServerError(&'a str),
}

/// Appends a reply.
#[inline]
pub fn compose(reply: &Reply<'_>, out: &mut Vec<u8>) {
    match *reply {
        Reply::Number(value) => number_line(b"", value, out),
        Reply::Changed(rows) => number_line(b"OK ", rows, out),
        Reply::Version(version) => text_line(b"VERSION ", version, out),
        Reply::ClientError(message) => text_line(b"CLIENT_ERROR ", message, out),
        Reply::ServerError(message) => text_line(b"SERVER_ERROR ", message, out),
        ref fixed => out.extend_from_slice(fixed_line(fixed)),
    }
}

/// The replies that are always the same.
fn fixed_line(reply: &Reply<'_>) -> &'static [u8] {
    match reply {
        Reply::Stored => b"STORED\r\n",
        Reply::NotStored => b"NOT_STORED\r\n",
        Reply::Exists => b"EXISTS\r\n",
        Reply::NotFound => b"NOT_FOUND\r\n",
        Reply::Deleted => b"DELETED\r\n",
        Reply::Touched => b"TOUCHED\r\n",
        Reply::Ok => b"OK\r\n",
        Reply::Reset => b"RESET\r\n",
        Reply::End => b"END\r\n",
        Reply::MetaNoop => b"MN\r\n",
        Reply::NonNumeric => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        Reply::OutOfMemory => b"SERVER_ERROR out of memory storing object\r\n",
        Reply::TooLarge => b"SERVER_ERROR object too large for cache\r\n",
        Reply::MemlimitAdjustFailed => b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
        Reply::ShutdownNotEnabled => b"SERVER_ERROR: shutdown not enabled\r\n",
        Reply::FlushNotAllowed => b"CLIENT_ERROR flush_all not allowed\r\n",
        Reply::NotAllowed(Dump::Metadump) => b"ERROR metadump not allowed\r\n",
        Reply::NotAllowed(Dump::Mgdump) => b"ERROR key dump not allowed\r\n",
        Reply::NotAllowed(Dump::Watch) => b"CLIENT_ERROR watch commands not allowed\r\n",
        Reply::TooManyConnections => b"ERROR Too many open connections\r\n",
        Reply::Error => b"ERROR\r\n",
        Reply::Number(_)
        | Reply::Changed(_)
        | Reply::Version(_)
        | Reply::ClientError(_)
        | Reply::ServerError(_) => b"",
    }
}

/// Appends the line before a value: `VALUE <key> <flags> <bytes> [<cas>]`. The value and [`value_end`] follow.
#[inline]
pub fn value_header(key: &[u8], flags: u32, bytes: usize, cas: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number(u64::from(flags), out);
    out.push(b' ');
    number(u64::try_from(bytes).unwrap_or(u64::MAX), out);
    if let Some(cas) = cas {
        out.push(b' ');
        number(cas, out);
    }
    value_end(out);
}

/// Appends the line end behind a value.
#[inline]
pub fn value_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Appends `STAT <name> <value>`.
pub fn stat(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"STAT ");
    text(name, out);
    out.push(b' ');
    text(value, out);
    value_end(out);
}

/// Appends `STAT <name> <value>` with a number.
pub fn stat_number(name: &str, value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"STAT ");
    text(name, out);
    out.push(b' ');
    number_line(b"", value, out);
}

/// Appends a line of `stats cachedump`: `ITEM <key> [<bytes> b; <exptime> s]`. The time is Unix seconds, 0 is never.
pub fn item(key: &[u8], bytes: usize, exptime: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ITEM ");
    line_bytes(key, out);
    out.extend_from_slice(b" [");
    number(u64::try_from(bytes).unwrap_or(u64::MAX), out);
    out.extend_from_slice(b" b; ");
    number(exptime, out);
    out.extend_from_slice(b" s]\r\n");
}

/// Appends one row of a SQL result: JSON text, on one line whatever white space it holds. A line end in JSON can
/// only stand between its parts (in a string it is escaped), so a space means the same.
pub fn sql_row(json: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(json.as_ref());
    if let Some(row) = out.get_mut(start..) {
        for at in memchr::memchr2_iter(b'\r', b'\n', json.as_ref()) {
            if let Some(byte) = row.get_mut(at) {
                *byte = b' ';
            }
        }
    }
    value_end(out);
}

/// Appends `ERROR <sqlstate> <message>` on one line.
pub fn sql_error(sqlstate: &str, message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ERROR ");
    text(sqlstate, out);
    text_line(b" ", message, out);
}

/// Appends a number in decimal.
#[inline]
pub fn number(value: u64, out: &mut Vec<u8>) {
    // Flags and short lengths are most of what is written.
    if let (Ok(digit), true) = (u8::try_from(value), value < 10) {
        out.push(b'0' | digit);
        return;
    }
    let mut digits = [b'0'; DIGITS_MAX];
    let mut rest = value;
    let mut used = 0usize;
    // Two digits a step: the division is what takes time, and each waits for the one before.
    for pair in digits.rchunks_exact_mut(2) {
        let two = u8::try_from(rest % 100).unwrap_or_default();
        rest /= 100;
        if let [tens, ones] = pair {
            *tens = b'0' | (two / 10);
            *ones = b'0' | (two % 10);
        }
        used = used.saturating_add(2);
        if rest == 0 {
            used = used.saturating_sub(usize::from(two < 10));
            break;
        }
    }
    let start = DIGITS_MAX.saturating_sub(used);
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

impl Malformed {
    /// Appends the answer with its line end; nothing where the connection is closed without a word.
    pub fn compose(self, out: &mut Vec<u8>) {
        match self {
            Self::StatementTooLarge { bytes, limit } => {
                let message = format!("statement is {bytes} bytes; the limit is {limit} (sql_statement_max)");
                sql_error("54000", &message, out);
            }
            Self::ParametersTooLarge { bytes, limit } => {
                let message =
                    format!("parameters are {bytes} bytes; the limit is {limit} (sql_parameters_max)");
                sql_error("54000", &message, out);
            }
            _ => out.extend_from_slice(self.fixed_line()),
        }
    }
}

fn number_line(before: &[u8], value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    number(value, out);
    value_end(out);
}

fn text_line(before: &[u8], message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    text(message, out);
    value_end(out);
}

/// Appends text of bounded length without anything that could end the line.
pub(crate) fn text(message: &str, out: &mut Vec<u8>) {
    let mut end = message.len().min(ERROR_TEXT_MAX);
    while !message.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    line_bytes(message.as_bytes().get(..end).unwrap_or_default(), out);
}

/// Appends bytes with a space for each control character: a message may quote what the peer has sent.
fn line_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(reply: Reply<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        compose(&reply, &mut out);
        out
    }

    #[test]
    fn each_reply_is_the_line_that_clients_expect() {
        for (reply, expected) in [
            (Reply::Stored, &b"STORED\r\n"[..]),
            (Reply::NotStored, b"NOT_STORED\r\n"),
            (Reply::Exists, b"EXISTS\r\n"),
            (Reply::NotFound, b"NOT_FOUND\r\n"),
            (Reply::Deleted, b"DELETED\r\n"),
            (Reply::Touched, b"TOUCHED\r\n"),
            (Reply::Ok, b"OK\r\n"),
            (Reply::Reset, b"RESET\r\n"),
            (Reply::End, b"END\r\n"),
            (Reply::MetaNoop, b"MN\r\n"),
            (Reply::Number(0), b"0\r\n"),
            (Reply::Number(u64::MAX), b"18446744073709551615\r\n"),
            (Reply::Version("1.6.45"), b"VERSION 1.6.45\r\n"),
            (Reply::Changed(17), b"OK 17\r\n"),
            (Reply::NonNumeric, b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
            (Reply::OutOfMemory, b"SERVER_ERROR out of memory storing object\r\n"),
            (Reply::TooLarge, b"SERVER_ERROR object too large for cache\r\n"),
            (Reply::MemlimitAdjustFailed, b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"),
            (Reply::ShutdownNotEnabled, b"SERVER_ERROR: shutdown not enabled\r\n"),
            (Reply::FlushNotAllowed, b"CLIENT_ERROR flush_all not allowed\r\n"),
            (Reply::NotAllowed(Dump::Metadump), b"ERROR metadump not allowed\r\n"),
            (Reply::NotAllowed(Dump::Mgdump), b"ERROR key dump not allowed\r\n"),
            (Reply::NotAllowed(Dump::Watch), b"CLIENT_ERROR watch commands not allowed\r\n"),
            (Reply::TooManyConnections, b"ERROR Too many open connections\r\n"),
            (Reply::Error, b"ERROR\r\n"),
            (Reply::ClientError("bad"), b"CLIENT_ERROR bad\r\n"),
            (Reply::ServerError("full"), b"SERVER_ERROR full\r\n"),
        ] {
            assert_eq!(composed(reply), expected, "{reply:?}");
        }
    }

    #[test]
    fn values_have_a_header_with_and_without_cas() {
        let mut out = Vec::new();
        value_header(b"key", u32::MAX, 1_048_576, None, &mut out);
        value_header(b"k", 0, 0, Some(u64::MAX), &mut out);
        value_end(&mut out);
        let expected = b"VALUE key 4294967295 1048576\r\nVALUE k 0 0 18446744073709551615\r\n\r\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut numbers = vec![0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, u64::MAX, u64::MAX - 1];
        for exponent in 0..20 {
            numbers.extend([10u64.pow(exponent), 10u64.pow(exponent) - 1, 10u64.pow(exponent) + 1]);
        }
        for _ in 0..10_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            numbers.push(random >> (random & 63));
        }
        for value in numbers {
            let mut out = Vec::new();
            number(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn statistics_and_items_are_lines() {
        let mut out = Vec::new();
        stat("version", "1.6.45", &mut out);
        stat_number("pid", 4711, &mut out);
        item(b"key", 5, 0, &mut out);
        assert_eq!(out, b"STAT version 1.6.45\r\nSTAT pid 4711\r\nITEM key [5 b; 0 s]\r\n");
    }

    #[test]
    fn no_text_ends_its_line() {
        let mut out = Vec::new();
        sql_error("42601", "near \"x\r\nSTORED\": \tsyntax\0 error", &mut out);
        assert_eq!(out, b"ERROR 42601 near \"x  STORED\":  syntax  error\r\n");
        out.clear();
        compose(&Reply::ServerError("a\nb\rc"), &mut out);
        assert_eq!(out, b"SERVER_ERROR a b c\r\n");
        out.clear();
        sql_row("{\"a\":\r\n1}", &mut out);
        sql_row(b"{\"b\":\"\\n\"}", &mut out);
        assert_eq!(out, b"{\"a\":  1}\r\n{\"b\":\"\\n\"}\r\n");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let message = "\u{e9}".repeat(ERROR_TEXT_MAX);
        let mut out = Vec::new();
        sql_error("XX000", &format!("x{message}"), &mut out);
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.len(), "ERROR XX000 \r\n".len() + ERROR_TEXT_MAX - 1);
    }
}
