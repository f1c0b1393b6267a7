//! What the server sends, appended to a buffer.

use bytes::{Bytes, BytesMut};
use pgwire::messages::Message;
use pgwire::messages::copy::{CopyInResponse, CopyOutResponse};
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{ErrorResponse, NoticeResponse, NotificationResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};

use crate::datum::{Datum, Format, ValueError};
use crate::encode::encode;
use crate::integer;

/// What a session may do next, as `ReadyForQuery` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Outside a transaction.
    Idle,
    /// In a transaction.
    InBlock,
    /// In a transaction that failed.
    Failed,
}

/// A column of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// The table that it comes from, 0 for none.
    pub table: u32,
    /// Its number there, from 1; 0 for none.
    pub column: u16,
    /// Its type.
    pub type_oid: u32,
    /// The type's size in bytes, -1 when it varies.
    pub size: i16,
    /// What the type has in parentheses, as `atttypmod` has it; -1: nothing.
    pub modifier: i32,
    /// How its values are written.
    pub format: Format,
}

/// How grave a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The connection ends.
    Fatal,
    /// Something to know.
    Notice,
    /// Something to mind.
    Warning,
}

/// An error or a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// How grave it is.
    pub severity: Severity,
    /// The SQLSTATE.
    pub state: &'a str,
    /// In words.
    pub message: &'a str,
    /// What more there is to say.
    pub detail: Option<&'a str>,
    /// A way out.
    pub hint: Option<&'a str>,
    /// Where in the statement, as a character counted from 1.
    pub position: Option<usize>,
    /// Where it happened, when not in a statement.
    pub context: Option<&'a str>,
    /// The table whose constraint was violated, behind its schema.
    pub table: Option<(&'a str, &'a str)>,
    /// The column that has no value.
    pub column: Option<&'a str>,
    /// The constraint that was violated.
    pub constraint: Option<&'a str>,
    /// The function of PostgreSQL's source that says so, where clients go by it.
    pub routine: Option<&'a str>,
}

/// Appends a message that is sent once in a while. One that exceeds `pgwire`'s limits, which only a description of
/// some thousand names could, is left out; such a result is refused before.
fn cold(message: &impl Message, out: &mut Vec<u8>) {
    let mut bytes = BytesMut::new();
    if message.encode(&mut bytes).is_ok() {
        out.extend_from_slice(&bytes);
    }
}

/// The answer to a wish for encryption: there is none.
pub fn no_encryption(out: &mut Vec<u8>) {
    out.push(b'N');
}

/// TLS begins with the next byte.
pub fn encryption(out: &mut Vec<u8>) {
    out.push(b'S');
}

/// The client is who it says it is.
pub fn authentication_ok(out: &mut Vec<u8>) {
    cold(&Authentication::Ok, out);
}

/// The client must prove its role by one of these mechanisms.
pub fn authentication_sasl(mechanisms: &[&str], out: &mut Vec<u8>) {
    cold(&Authentication::SASL(mechanisms.iter().map(|name| (*name).to_owned()).collect()), out);
}

/// The server's part of the exchange, which goes on.
pub fn authentication_continue(data: &str, out: &mut Vec<u8>) {
    cold(&Authentication::SASLContinue(Bytes::copy_from_slice(data.as_bytes())), out);
}

/// The server's last part of the exchange.
pub fn authentication_final(data: &str, out: &mut Vec<u8>) {
    cold(&Authentication::SASLFinal(Bytes::copy_from_slice(data.as_bytes())), out);
}

/// The client must show its password.
pub fn authentication_password(out: &mut Vec<u8>) {
    cold(&Authentication::CleartextPassword, out);
}

/// The newest protocol that the server speaks, and what it does not know of what was asked for.
pub fn negotiate_protocol(minor: u16, unknown: Vec<String>, out: &mut Vec<u8>) {
    cold(&NegotiateProtocolVersion::new(3 << 16 | i32::from(minor), unknown), out);
}

/// A parameter's value, at the start and when it changes.
pub fn parameter_status(name: &str, value: &str, out: &mut Vec<u8>) {
    cold(&ParameterStatus::new(name.to_owned(), value.to_owned()), out);
}

/// What a cancel request must name. Four bytes of secret up to protocol 3.0.
pub fn backend_key(process: i32, secret: &[u8], out: &mut Vec<u8>) {
    cold(&BackendKeyData::new(process, SecretKey::Bytes(Bytes::copy_from_slice(secret))), out);
}

/// The columns of a result.
pub fn row_description<'a>(fields: impl Iterator<Item = Field<'a>>, out: &mut Vec<u8>) {
    let fields = fields.map(|field| {
        FieldDescription::new(
            field.name.to_owned(),
            field.table.cast_signed(),
            field.column.cast_signed(),
            field.type_oid,
            field.size,
            field.modifier,
            field.format.code(),
        )
    });
    cold(&RowDescription::new(fields.collect()), out);
}

/// The types of a statement's parameters.
pub fn parameter_description(types: &[u32], out: &mut Vec<u8>) {
    let mark = begin(b't', out);
    // The number of parameters is limited to what fits.
    out.extend_from_slice(&u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes());
    for oid in types {
        out.extend_from_slice(&oid.to_be_bytes());
    }
    end(mark, out);
}

/// Something went wrong, or something is to be known.
pub fn report(report: &Report<'_>, out: &mut Vec<u8>) {
    let severity = match report.severity {
        Severity::Error => "ERROR",
        Severity::Fatal => "FATAL",
        Severity::Notice => "NOTICE",
        Severity::Warning => "WARNING",
    };
    let position = report.position.map(|position| position.to_string());
    let parts = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(report.state)),
        (b'M', Some(report.message)),
        (b'D', report.detail),
        (b'H', report.hint),
        (b'P', position.as_deref()),
        (b'W', report.context),
        (b's', report.table.map(|(schema, _)| schema)),
        (b't', report.table.map(|(_, table)| table)),
        (b'c', report.column),
        (b'n', report.constraint),
        (b'R', report.routine),
    ];
    // A zero byte would end the text early.
    let fields = parts.iter().filter_map(|(code, text)| text.map(|text| (*code, text.replace('\0', " "))));
    match report.severity {
        Severity::Error | Severity::Fatal => cold(&ErrorResponse::new(fields.collect()), out),
        Severity::Notice | Severity::Warning => cold(&NoticeResponse::new(fields.collect()), out),
    }
}

/// Somebody announced something on a channel.
pub fn notification(process: i32, channel: &str, payload: &str, out: &mut Vec<u8>) {
    cold(&NotificationResponse::new(process, channel.to_owned(), payload.replace('\0', " ")), out);
}

/// `COPY FROM STDIN` may begin.
pub fn copy_in(format: Format, columns: usize, out: &mut Vec<u8>) {
    let columns = i16::try_from(columns).unwrap_or(i16::MAX);
    let formats = vec![format.code(); usize::try_from(columns).unwrap_or(0)];
    // A format is 0 or 1.
    cold(&CopyInResponse::new(i8::try_from(format.code()).unwrap_or(0), columns, formats), out);
}

/// `COPY TO STDOUT` begins.
pub fn copy_out(format: Format, columns: usize, out: &mut Vec<u8>) {
    let columns = i16::try_from(columns).unwrap_or(i16::MAX);
    let formats = vec![format.code(); usize::try_from(columns).unwrap_or(0)];
    cold(&CopyOutResponse::new(i8::try_from(format.code()).unwrap_or(0), columns, formats), out);
}

/// A piece of `COPY TO STDOUT`, written by `body`.
pub fn copy_data(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let mark = begin(b'd', out);
    body(out);
    end(mark, out);
}

/// The end of `COPY TO STDOUT`.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// A statement was prepared.
pub fn parse_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"1\0\0\0\x04");
}

/// A portal was made.
#[inline]
pub fn bind_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"2\0\0\0\x04");
}

/// A statement or portal was forgotten.
pub fn close_complete(out: &mut Vec<u8>) {
    out.extend_from_slice(b"3\0\0\0\x04");
}

/// A statement gives no rows.
pub fn no_data(out: &mut Vec<u8>) {
    out.extend_from_slice(b"n\0\0\0\x04");
}

/// A text without a statement was run.
pub fn empty_query(out: &mut Vec<u8>) {
    out.extend_from_slice(b"I\0\0\0\x04");
}

/// A portal has more rows.
pub fn portal_suspended(out: &mut Vec<u8>) {
    out.extend_from_slice(b"s\0\0\0\x04");
}

/// A statement has ended. The count is written behind the tag, with a zero between for `INSERT`, as ever.
#[inline]
pub fn command_complete(tag: &str, count: Option<u64>, out: &mut Vec<u8>) {
    let mark = begin(b'C', out);
    out.extend_from_slice(tag.as_bytes());
    if let Some(count) = count {
        out.extend_from_slice(if tag == "INSERT" { b" 0 " } else { b" " });
        integer::write(i64::try_from(count).unwrap_or(i64::MAX), out);
    }
    out.push(0);
    end(mark, out);
}

/// The server waits for the next request.
#[inline]
pub fn ready(status: Status, out: &mut Vec<u8>) {
    let letter = match status {
        Status::Idle => b'I',
        Status::InBlock => b'T',
        Status::Failed => b'E',
    };
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, letter]);
}

/// A row: each value with its type and format. On an error nothing of it is left in the buffer.
#[inline]
pub fn data_row<'a>(
    count: usize,
    values: impl Iterator<Item = (u32, Format, Datum<'a>)>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mark = begin(b'D', out);
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
    for (type_oid, format, datum) in values {
        if datum == Datum::Null {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        if let Err(error) = encode(type_oid, format, datum, out) {
            out.truncate(mark - 1);
            return Err(error);
        }
        let length = out.len() - at - 4;
        put_length(at, length, out);
    }
    end(mark, out);
    Ok(())
}

/// Begins a message; gives back where its length stands.
#[inline]
fn begin(kind: u8, out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    out.len() - 4
}

/// Ends the message whose length stands at `mark`.
#[inline]
fn end(mark: usize, out: &mut [u8]) {
    let length = out.len() - mark;
    put_length(mark, length, out);
}

#[inline]
fn put_length(at: usize, length: usize, out: &mut [u8]) {
    // Buffers are limited to far less than 2 GiB.
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}
