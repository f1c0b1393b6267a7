//! What a peer sends that must prove its role before anything else: memcached's ASCII authentication, which is a `set`
//! of a user and a password, and SASL of the binary protocol, PLAIN or an exchange in several steps.

use crate::Then;
use crate::binary::{HEADER_BYTES, Header, Id, Status};
use crate::limits::{LINE_MAX, LOGIN_BYTES_MAX, LOGIN_LINE_MIN, MECHANISM_MAX};
use crate::token::unsigned;

/// How a peer is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a `set`.
    Set,
    /// As an `ms`.
    MetaSet,
    /// As this frame.
    Binary(Id),
}

/// What the first bytes of the input are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login<'i> {
    /// Not whole yet.
    Incomplete,
    /// Nothing that could be answered: the connection is closed.
    Nothing,
    /// A line that proves nothing, and memcached's answer to it.
    Refused {
        /// How many bytes of the input it took.
        consumed: usize,
        /// The answer, with its line end.
        answer: &'static str,
        /// What becomes of the connection.
        then: Then,
    },
    /// A frame that proves nothing.
    RefusedFrame {
        /// How many bytes of the input it took.
        consumed: usize,
        /// What its answer repeats.
        id: Id,
        /// The answer.
        status: Status,
        /// What becomes of the connection.
        then: Then,
    },
    /// The peer asks which mechanisms there are.
    Mechanisms {
        /// How many bytes of the input it took.
        consumed: usize,
        /// What its answer repeats.
        id: Id,
    },
    /// The peer asks for the version.
    Version {
        /// How many bytes of the input it took.
        consumed: usize,
        /// What its answer repeats.
        id: Id,
    },
    /// A user and a password.
    Password {
        /// How many bytes of the input they took.
        consumed: usize,
        /// The user.
        user: &'i [u8],
        /// The password.
        password: &'i [u8],
        /// How it is answered.
        form: Form,
    },
    /// An exchange begins, by another mechanism than PLAIN.
    Begin {
        /// How many bytes of the input it took.
        consumed: usize,
        /// What its answer repeats.
        id: Id,
        /// The mechanism that the peer chose.
        mechanism: &'i [u8],
        /// Its first message.
        message: &'i [u8],
    },
    /// It goes on.
    Step {
        /// How many bytes of the input it took.
        consumed: usize,
        /// What its answer repeats.
        id: Id,
        /// The next message.
        message: &'i [u8],
    },
}

/// The answer to a password that is wrong.
pub const FAILURE: &str = "CLIENT_ERROR authentication failure\r\n";
/// The answer to a command that comes before the password.
const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated\r\n";
const TOO_LONG: &str = "CLIENT_ERROR auth token too long\r\n";
const BAD_END: &str = "CLIENT_ERROR bad command line termination\r\n";
const BAD_FORMAT: &str = "CLIENT_ERROR bad authentication token format\r\n";

/// The mechanism that shows the password.
pub const PLAIN: &str = "PLAIN";

/// What the first line of `input` is, by the text protocol.
pub fn text(input: &[u8]) -> Login<'_> {
    let looked_at = input.get(..=LINE_MAX).unwrap_or(input);
    let Some((line, rest)) = split_at_byte(looked_at, b'\n').map(|(line, _)| input.split_at(line.len()))
    else {
        return if input.len() > LINE_MAX { Login::Nothing } else { Login::Incomplete };
    };
    let (line, rest) = (line.trim_ascii_end(), rest.get(1..).unwrap_or_default());
    let begin = input.len().saturating_sub(rest.len());
    if line.len() < LOGIN_LINE_MIN {
        return Login::Nothing;
    }
    let Some((form, bytes)) = set_of(line) else {
        return Login::Refused { consumed: begin, answer: UNAUTHENTICATED, then: Then::Continue };
    };
    if bytes > LOGIN_BYTES_MAX {
        return Login::Refused { consumed: begin, answer: TOO_LONG, then: Then::Close };
    }
    let consumed = begin.saturating_add(bytes).saturating_add(2);
    let Some(data) = input.get(begin..consumed) else { return Login::Incomplete };
    let refused = |answer| Login::Refused { consumed, answer, then: Then::Continue };
    let Some(token) = data.strip_suffix(b"\r\n") else { return refused(BAD_END) };
    match split_at_byte(token, b' ') {
        Some((user, password)) => Login::Password { consumed, user, password, form },
        None => refused(BAD_FORMAT),
    }
}

/// What stands before a byte and behind it.
fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let (before, from) = bytes.split_at_checked(memchr::memchr(byte, bytes)?)?;
    Some((before, from.get(1..)?))
}

/// The kind of a line that stores a value, and the bytes of its value.
fn set_of(line: &[u8]) -> Option<(Form, usize)> {
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (verb, _key) = (words.next()?, words.next()?);
    let number = |word: &[u8]| unsigned(word).and_then(|number| usize::try_from(number).ok());
    match verb {
        b"set" => {
            let (_flags, _exptime, bytes) = (words.next()?, words.next()?, words.next()?);
            Some((Form::Set, number(bytes)?)).filter(|_| words.next().is_none())
        }
        b"ms" => Some((Form::MetaSet, number(words.next()?)?)),
        _ => None,
    }
}

const VERSION: u8 = 0x0b;
const SASL_LIST: u8 = 0x20;
const SASL_AUTH: u8 = 0x21;
const SASL_STEP: u8 = 0x22;

/// What the first frame of `input` is, by the binary protocol.
pub fn frame(input: &[u8]) -> Login<'_> {
    let Some((header, rest)) = Header::split(input) else { return Login::Incomplete };
    if !header.is_request() {
        return Login::Nothing;
    }
    let id = header.id;
    let whole = HEADER_BYTES.saturating_add(header.body);
    let refused = |status, then| Login::RefusedFrame { consumed: whole.min(input.len()), id, status, then };
    let is_sasl = [SASL_AUTH, SASL_STEP].contains(&id.opcode);
    let known = is_sasl || [VERSION, SASL_LIST].contains(&id.opcode);
    let (Some(_), true) = (header.value(), known) else {
        return refused(Status::NotAllowed, Then::Close);
    };
    let bounds = header.body <= LOGIN_BYTES_MAX && header.key <= MECHANISM_MAX;
    if header.extras > 0 || !bounds || (!is_sasl && header.body > 0) {
        return refused(Status::InvalidArguments, Then::Close);
    }
    let Some(body) = rest.get(..header.body) else { return Login::Incomplete };
    match id.opcode {
        VERSION => return Login::Version { consumed: whole, id },
        SASL_LIST => return Login::Mechanisms { consumed: whole, id },
        _ => {}
    }
    let (mechanism, message) = body.split_at_checked(header.key).unwrap_or_default();
    if id.opcode == SASL_STEP {
        return Login::Step { consumed: whole, id, message };
    }
    if mechanism != PLAIN.as_bytes() {
        return Login::Begin { consumed: whole, id, mechanism, message };
    }
    match plain(message) {
        Some((user, password)) => Login::Password { consumed: whole, user, password, form: Form::Binary(id) },
        None => refused(Status::NotAllowed, Then::Continue),
    }
}

/// User and password of a message of PLAIN: `authzid NUL user NUL password`. Who would act by another name is refused.
fn plain(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = message.split(|byte| *byte == 0);
    let (authzid, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = parts.next().is_none() && !user.is_empty();
    (whole && (authzid.is_empty() || authzid == user)).then_some((user, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let login = text(b"set any 0 0 8\r\nme my pw\r\nget a\r\n");
        let expected = Login::Password { consumed: 25, user: b"me", password: b"my pw", form: Form::Set };
        assert_eq!(login, expected);
        assert!(matches!(text(b"ms k 5 c\r\nme pw\r\n"), Login::Password { form: Form::MetaSet, .. }));
        for incomplete in [&b"set a 0 0 4"[..], b"set a 0 0 4\r\n", b"set a 0 0 4\r\nme p\r"] {
            assert_eq!(text(incomplete), Login::Incomplete);
        }
        let refused = |input: &[u8]| match text(input) {
            Login::Refused { answer, then, .. } => (answer, then),
            _ => ("", Then::Close),
        };
        assert_eq!(refused(b"get abc\r\n"), (UNAUTHENTICATED, Then::Continue));
        assert_eq!(refused(b"set a 0 0 4 noreply\r\n"), (UNAUTHENTICATED, Then::Continue));
        assert_eq!(refused(b"set a 0 0 16385\r\n"), (TOO_LONG, Then::Close));
        assert_eq!(refused(b"set a 0 0 99999999999999999999\r\n"), (UNAUTHENTICATED, Then::Continue));
        assert_eq!(refused(b"set a 0 0 4\r\nme pwd\r\n").0, BAD_END);
        assert_eq!(refused(b"set a 0 0 4\r\nmepw\r\n").0, BAD_FORMAT);
        assert_eq!(text(b"get\r\n"), Login::Nothing);
        assert_eq!(text(&[b'x'; LINE_MAX + 1]), Login::Nothing);
    }

    fn made(opcode: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80, opcode, 0, u8::try_from(key.len()).unwrap(), 0, 0, 0, 0, 0, 0, 0];
        bytes.push(u8::try_from(key.len() + value.len()).unwrap());
        bytes.extend([7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        [&bytes, key, value].concat()
    }

    #[test]
    fn frames() {
        let auth = made(0x21, b"PLAIN", b"\0me\0my pw");
        let id = Id { opcode: 0x21, opaque: [7; 4] };
        let (consumed, user, password) = (auth.len(), &b"me"[..], &b"my pw"[..]);
        let expected = Login::Password { consumed, user, password, form: Form::Binary(id) };
        assert_eq!(frame(&auth), expected);
        assert_eq!(frame(&auth[..auth.len() - 1]), Login::Incomplete);
        assert_eq!(frame(&auth[..10]), Login::Incomplete);
        assert!(matches!(frame(&made(0x20, b"", b"")), Login::Mechanisms { consumed: 24, .. }));
        assert!(matches!(frame(&made(0x0b, b"", b"")), Login::Version { .. }));
        let refused = |input: &[u8]| match frame(input) {
            Login::RefusedFrame { status, then, .. } => (status, then),
            _ => (Status::Done, Then::Close),
        };
        for wrong in [&b"me\0pw"[..], b"you\0me\0pw", b"\0\0pw", b"\0me\0pw\0", b""] {
            assert_eq!(
                refused(&made(0x21, b"PLAIN", wrong)),
                (Status::NotAllowed, Then::Continue),
                "{wrong:?}"
            );
        }
        let first = made(0x21, b"SCRAM-SHA-256", b"n,,n=me,r=x");
        let begun =
            Login::Begin { consumed: first.len(), id, mechanism: b"SCRAM-SHA-256", message: b"n,,n=me,r=x" };
        assert_eq!(frame(&first), begun);
        let step = made(0x22, b"SCRAM-SHA-256", b"");
        let id = Id { opcode: 0x22, opaque: [7; 4] };
        assert_eq!(frame(&step), Login::Step { consumed: step.len(), id, message: b"" });
        assert_eq!(refused(&made(0x21, &[b'x'; 33], b"x")), (Status::InvalidArguments, Then::Close));
        assert_eq!(refused(&made(0x00, b"key", b"")), (Status::NotAllowed, Then::Close));
        assert_eq!(refused(&made(0x20, b"", b"x")), (Status::InvalidArguments, Then::Close));
        let mut lying = made(0x21, b"PLAIN", b"x");
        lying[8] = 0x7f;
        assert_eq!(refused(&lying), (Status::InvalidArguments, Then::Close));
        lying = made(0x21, b"PLAIN", b"x");
        lying[3] = 20;
        assert_eq!(refused(&lying), (Status::NotAllowed, Then::Close));
        assert_eq!(frame(&[0x81; 30]), Login::Nothing);
    }
}
