//! What a client sends, once the connection is open.

use crate::datum::Format;
use crate::limits::{MESSAGE_BYTES_MAX, SMALL_MESSAGE_BYTES_MAX};

/// What was found at the beginning of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parsed<'i> {
    /// Not a whole message yet; so many bytes would be one, as far as that is known.
    Incomplete {
        /// How many bytes the input must hold at least.
        needed: usize,
    },
    /// One message and how long it is.
    Complete {
        /// What it asks for, or what is wrong with it.
        request: Request<'i>,
        /// Its bytes.
        consumed: usize,
    },
    /// Something that is no message: where the next one begins is unknown.
    Broken(Broken),
}

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A type that the protocol does not have.
    Type(u8),
    /// A length below its own four bytes, or beyond the limit for the type.
    Length {
        /// The type.
        kind: u8,
        /// What was announced.
        length: i32,
    },
}

/// A message that is a whole, but not a right one. The connection goes on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The SQLSTATE.
    pub state: &'static str,
    /// In words.
    pub message: &'static str,
    /// Whether it belongs to the extended protocol, where what follows is skipped up to `Sync`.
    pub extended: bool,
}

/// What a prepared statement or a portal is called by `Describe` and `Close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'i> {
    /// A prepared statement.
    Statement(&'i str),
    /// A portal.
    Portal(&'i str),
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request<'i> {
    /// Statements as text, to be run at once.
    Query(&'i str),
    /// Prepare a statement.
    Parse(Parse<'i>),
    /// Make a portal of a prepared statement.
    Bind(Bind<'i>),
    /// Say what a statement takes and gives.
    Describe(Target<'i>),
    /// Run a portal.
    Execute {
        /// Its name.
        portal: &'i str,
        /// Rows wanted; 0 is all.
        max_rows: u32,
    },
    /// Forget a statement or a portal.
    Close(Target<'i>),
    /// Send what there is.
    Flush,
    /// The end of a group of requests.
    Sync,
    /// The end of the connection.
    Terminate,
    /// A piece of `COPY FROM STDIN`.
    CopyData(&'i [u8]),
    /// Its end.
    CopyDone,
    /// Its end, because the client failed.
    CopyFail(&'i str),
    /// An answer to a question for a password; nobody asked.
    Password,
    /// A call of a function by number, which the protocol keeps for old clients.
    FunctionCall,
    /// A message that breaks a rule.
    Malformed(Malformed),
}

/// A statement to prepare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parse<'i> {
    /// Its name; empty is the unnamed one.
    pub name: &'i str,
    /// Its text.
    pub sql: &'i str,
    types: &'i [u8],
}

impl Parse<'_> {
    /// The types of its parameters as far as the client says; 0 leaves it open.
    pub fn types(&self) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        self.types.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
    }
}

/// A portal to make. Its parts were checked and lie in the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bind<'i> {
    /// The portal's name.
    pub portal: &'i str,
    /// The prepared statement's.
    pub statement: &'i str,
    parameter_formats: &'i [u8],
    parameters: &'i [u8],
    count: usize,
    result_formats: &'i [u8],
}

impl<'i> Bind<'i> {
    /// How many parameters there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The parameters with their formats; none is NULL.
    pub fn parameters(&self) -> impl Iterator<Item = (Format, Option<&'i [u8]>)> + '_ {
        let mut cursor = Cursor { rest: self.parameters };
        (0..self.count).map(move |at| {
            let value = cursor.value().unwrap_or_default();
            (format_at(self.parameter_formats, at), value)
        })
    }

    /// The formats of the result's columns.
    pub fn result_formats(&self) -> Formats<'i> {
        Formats(self.result_formats)
    }
}

/// A list of formats: none is text for all, one is for all, else one for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats<'i>(&'i [u8]);

impl Formats<'_> {
    /// The format of a column.
    pub fn of(&self, column: usize) -> Format {
        format_at(self.0, column)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len() / 2
    }
}

#[inline]
fn format_at(codes: &[u8], at: usize) -> Format {
    let at = if codes.len() == 2 { 0 } else { at * 2 };
    // The high byte of 0 and 1 is 0, as was checked.
    if codes.get(at + 1) == Some(&1) { Format::Binary } else { Format::Text }
}

/// Finds the first message of `input`.
#[inline]
pub fn parse(input: &[u8]) -> Parsed<'_> {
    let Some(head) = input.first_chunk::<5>() else { return Parsed::Incomplete { needed: 5 } };
    let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let Some(longest) = longest(head[0]) else { return Parsed::Broken(Broken::Type(head[0])) };
    let inner = usize::try_from(length).ok().filter(|length| (4..=longest).contains(length));
    let Some(inner) = inner else { return Parsed::Broken(Broken::Length { kind: head[0], length }) };
    let Some(body) = input.get(5..=inner) else { return Parsed::Incomplete { needed: inner + 1 } };
    let request = request(head[0], body).unwrap_or_else(|(state, message)| {
        Request::Malformed(Malformed { state, message, extended: is_extended(head[0]) })
    });
    Parsed::Complete { request, consumed: inner + 1 }
}

/// The longest message of a type, none for a type that does not exist.
#[inline]
fn longest(kind: u8) -> Option<usize> {
    match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' => Some(MESSAGE_BYTES_MAX),
        b'E' | b'D' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => Some(SMALL_MESSAGE_BYTES_MAX),
        _ => None,
    }
}

fn is_extended(kind: u8) -> bool {
    matches!(kind, b'P' | b'B' | b'D' | b'C' | b'E' | b'H')
}

/// A rule that a message breaks: SQLSTATE and words.
type Rule = (&'static str, &'static str);

const SHORT: Rule = ("08P01", "insufficient data left in message");
const LONG: Rule = ("08P01", "invalid message format: bytes after its end");
const NOT_UTF8: Rule = ("22021", "invalid byte sequence for encoding \"UTF8\"");
const FORMAT: Rule = ("22023", "unsupported format code; 0 is text and 1 is binary");
const FORMAT_COUNT: Rule = (
    "08P01",
    "bind message has a number of parameter formats that is neither 0, 1 nor its number of parameters",
);
const TARGET: Rule =
    ("08P01", "invalid subtype of a describe or close message; S is a statement and P a portal");

#[inline]
fn request(kind: u8, body: &[u8]) -> Result<Request<'_>, Rule> {
    let mut cursor = Cursor { rest: body };
    let request = match kind {
        b'B' => return bind(cursor).map(Request::Bind),
        b'E' => {
            let portal = cursor.text()?;
            // A negative number means all rows too, as PostgreSQL reads it.
            let max_rows = u32::try_from(cursor.word()?.cast_signed()).unwrap_or(0);
            Request::Execute { portal, max_rows }
        }
        b'S' => Request::Sync,
        b'D' => Request::Describe(cursor.target()?),
        b'C' => Request::Close(cursor.target()?),
        b'H' => Request::Flush,
        b'Q' => Request::Query(cursor.text()?),
        b'P' => {
            let (name, sql) = (cursor.text()?, cursor.text()?);
            let count = usize::from(cursor.short()?);
            Request::Parse(Parse { name, sql, types: cursor.take(count * 4)? })
        }
        b'X' => Request::Terminate,
        b'd' => return Ok(Request::CopyData(body)),
        b'c' => Request::CopyDone,
        b'f' => Request::CopyFail(cursor.text()?),
        b'p' => return Ok(Request::Password),
        _ => return Ok(Request::FunctionCall),
    };
    if cursor.rest.is_empty() { Ok(request) } else { Err(LONG) }
}

#[inline]
fn bind(mut cursor: Cursor<'_>) -> Result<Bind<'_>, Rule> {
    let (portal, statement) = (cursor.text()?, cursor.text()?);
    let parameter_formats = cursor.formats()?;
    let count = usize::from(cursor.short()?);
    let formats = parameter_formats.len() / 2;
    if formats > 1 && formats != count {
        return Err(FORMAT_COUNT);
    }
    let from = cursor.rest;
    for _ in 0..count {
        cursor.value()?;
    }
    let parameters = &from[..from.len() - cursor.rest.len()];
    let result_formats = cursor.formats()?;
    if !cursor.rest.is_empty() {
        return Err(LONG);
    }
    Ok(Bind { portal, statement, parameter_formats, parameters, count, result_formats })
}

/// What is left of a message's body.
struct Cursor<'i> {
    rest: &'i [u8],
}

impl<'i> Cursor<'i> {
    #[inline]
    fn take(&mut self, count: usize) -> Result<&'i [u8], Rule> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn short(&mut self) -> Result<u16, Rule> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    #[inline]
    fn word(&mut self) -> Result<u32, Rule> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Text up to a zero byte.
    #[inline]
    fn text(&mut self) -> Result<&'i str, Rule> {
        let end = memchr::memchr(0, self.rest).ok_or(SHORT)?;
        let text = std::str::from_utf8(&self.rest[..end]).map_err(|_| NOT_UTF8)?;
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    #[inline]
    fn formats(&mut self) -> Result<&'i [u8], Rule> {
        let count = usize::from(self.short()?);
        let codes = self.take(count * 2)?;
        if codes.chunks_exact(2).all(|code| code[0] == 0 && code[1] <= 1) { Ok(codes) } else { Err(FORMAT) }
    }

    /// A value with its length before it; -1 is NULL.
    #[inline]
    fn value(&mut self) -> Result<Option<&'i [u8]>, Rule> {
        match self.word()?.cast_signed() {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| SHORT)?).map(Some),
        }
    }

    fn target(&mut self) -> Result<Target<'i>, Rule> {
        let kind = self.take(1)?[0];
        let name = self.text()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            _ => Err(TARGET),
        }
    }
}
