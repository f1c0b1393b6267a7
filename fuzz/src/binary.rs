//! What must hold for every stream of bytes of memcached's binary protocol.
//!
//! The functions here are run by libFuzzer through `fuzz_targets/binary.rs`, and on the stable toolchain by the
//! tests of the `memcache` crate, which include this file.

use memcache::binary::{
    Command, Condition, HEADER_BYTES, Id, MAGIC, Parsed, Request, Status, parse, receiving,
};
use memcache::{Limits, Then};

/// Runs one input: the first byte chooses limits and cuts, the rest is the stream.
pub fn fuzz_binary(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else { return };
    let limits = if choice & 1 == 0 { Limits::default() } else { small_limits() };
    let whole = transcript(&limits, [stream]);
    assert_eq!(whole, transcript(&limits, stream.chunks(1)), "byte by byte");
    let cut = 2 + usize::from(choice >> 1) % 40;
    assert_eq!(whole, transcript(&limits, stream.chunks(cut)), "pieces of {cut}");
}

/// Limits that inputs of a few dozen bytes reach.
pub fn small_limits() -> Limits {
    Limits { key_max: 8, value_max: 16, ..Limits::default() }
}

/// Everything that a connection understands of a stream that arrives in these pieces, in words.
pub fn transcript<'a>(limits: &Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut connection = Connection::new(limits);
    for piece in pieces {
        connection.receive(piece);
    }
    connection.transcript
}

/// A connection as a server would keep it, and the checks of every step.
struct Connection<'a> {
    limits: &'a Limits,
    buffer: Vec<u8>,
    swallow: usize,
    needed: usize,
    closed: bool,
    transcript: Vec<String>,
}

impl<'a> Connection<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self { limits, buffer: Vec::new(), swallow: 0, needed: 1, closed: false, transcript: Vec::new() }
    }

    fn receive(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
        while !self.closed {
            let swallowed = self.swallow.min(self.buffer.len());
            self.buffer.drain(..swallowed);
            self.swallow -= swallowed;
            if self.buffer.is_empty() || !self.step() {
                return;
            }
        }
    }

    /// Parses once; `false` if more bytes are wanted.
    fn step(&mut self) -> bool {
        let parsed = parse(self.limits, &self.buffer);
        if self.buffer.len() < self.needed {
            assert!(!matches!(parsed, Parsed::Complete { .. }), "{} bytes were needed", self.needed);
        }
        let consumed = match parsed {
            Parsed::Complete { request, consumed } => {
                check_request(self.limits, &request);
                assert_eq!(self.buffer[..consumed].len(), written(&request).len(), "nothing is left out");
                check_round_trip(self.limits, &request);
                self.transcript.push(describe(&request));
                consumed
            }
            Parsed::Refused { id, status, consumed, swallow, then, invalidate } => {
                let mut answer = Vec::new();
                id.refuse(status, &mut answer);
                check_answer(&answer, status);
                let key = invalidate.map(|key| key.escape_ascii().to_string());
                self.transcript.push(format!("{status:?} {swallow} {then:?} {key:?}"));
                self.swallow = swallow;
                self.closed = then == Then::Close;
                consumed
            }
            Parsed::Incomplete { needed } => {
                assert!(needed > self.buffer.len(), "more is needed than is there");
                let most = HEADER_BYTES + 20 + self.limits.key_max + self.limits.value_max;
                assert!(needed <= most, "{needed} bytes are beyond the limits");
                check_value(self.limits, &self.buffer, needed);
                self.needed = needed;
                return false;
            }
            Parsed::OutOfStep => {
                assert_ne!(self.buffer[0], MAGIC);
                self.transcript.push("out of step".into());
                self.closed = true;
                return false;
            }
        };
        assert!(0 < consumed && consumed <= self.buffer.len(), "progress within the input");
        self.buffer.drain(..consumed);
        self.needed = 1;
        true
    }
}

/// A value that is received in place belongs to the request that the whole frame would have been.
fn check_value(limits: &Limits, input: &[u8], needed: usize) {
    let Some(begun) = receiving(limits, input) else { return };
    assert_eq!(begun.head + begun.bytes, needed);
    assert_eq!(&input[begun.head..], begun.request.value);
    let mut whole = input.to_vec();
    whole.resize(needed, b'.');
    let Parsed::Complete { request, consumed } = parse(limits, &whole) else {
        panic!("not whole: {begun:?}")
    };
    assert_eq!(consumed, needed);
    assert_eq!(request, Request { value: &whole[begun.head..], ..begun.request });
}

/// An answer is one frame, and its text is that of its status.
fn check_answer(answer: &[u8], status: Status) {
    assert!(answer.len() > HEADER_BYTES && answer[0] == 0x81);
    assert_eq!(u16::from_be_bytes([answer[6], answer[7]]), status as u16);
    let body = u32::from_be_bytes([answer[8], answer[9], answer[10], answer[11]]);
    assert_eq!(body as usize + HEADER_BYTES, answer.len());
    assert_eq!(&answer[HEADER_BYTES..], status.text().as_bytes());
}

/// The rules of the protocol that every accepted request keeps.
fn check_request(limits: &Limits, request: &Request<'_>) {
    assert!(request.key.len() <= limits.key_max, "a key is within its limit");
    assert!(request.value.len() <= limits.value_max, "a value is within its limit");
    let has_key = !matches!(
        request.command,
        Command::Flush { .. } | Command::Noop | Command::Version | Command::Quit | Command::Stat
    );
    assert!(!has_key || !request.key.is_empty(), "a key is not empty");
    let stores = matches!(request.command, Command::Store { .. } | Command::Join { .. });
    assert!(stores || request.value.is_empty(), "a value is stored");
}

/// A request written as a client would write it is parsed to itself.
fn check_round_trip(limits: &Limits, request: &Request<'_>) {
    let bytes = written(request);
    assert_eq!(parse(limits, &bytes), Parsed::Complete { request: *request, consumed: bytes.len() });
}

/// The opcode of a command.
pub fn opcode(command: &Command, quiet: bool) -> u8 {
    let (loud, silent) = match command {
        Command::Get { with_key: false } => (0x00, 0x09),
        Command::Get { with_key: true } => (0x0c, 0x0d),
        Command::GetAndTouch { with_key: false, .. } => (0x1d, 0x1e),
        Command::GetAndTouch { with_key: true, .. } => (0x23, 0x24),
        Command::Touch { .. } => (0x1c, 0x1c),
        Command::Store { condition: Condition::Set, .. } => (0x01, 0x11),
        Command::Store { condition: Condition::Add, .. } => (0x02, 0x12),
        Command::Store { condition: Condition::Replace, .. } => (0x03, 0x13),
        Command::Delete => (0x04, 0x14),
        Command::Arithmetic { decrement: false, .. } => (0x05, 0x15),
        Command::Arithmetic { decrement: true, .. } => (0x06, 0x16),
        Command::Quit => (0x07, 0x17),
        Command::Flush { .. } => (0x08, 0x18),
        Command::Noop => (0x0a, 0x0a),
        Command::Version => (0x0b, 0x0b),
        Command::Join { append: true } => (0x0e, 0x19),
        Command::Join { append: false } => (0x0f, 0x1a),
        Command::Stat => (0x10, 0x10),
    };
    if quiet { silent } else { loud }
}

/// The extras of a command.
fn extras(command: &Command) -> Vec<u8> {
    match *command {
        Command::GetAndTouch { exptime, .. } | Command::Touch { exptime } => exptime.to_be_bytes().to_vec(),
        Command::Flush { exptime } => exptime.map_or_else(Vec::new, |exptime| exptime.to_be_bytes().to_vec()),
        Command::Store { flags, exptime, .. } => [flags.to_be_bytes(), exptime.to_be_bytes()].concat(),
        Command::Arithmetic { delta, initial, exptime, .. } => {
            let numbers = [delta.to_be_bytes(), initial.to_be_bytes()].concat();
            [numbers, exptime.unwrap_or(u32::MAX).to_be_bytes().to_vec()].concat()
        }
        _ => Vec::new(),
    }
}

/// A frame with these lengths and this body.
pub fn frame(id: Id, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut frame = vec![MAGIC, id.opcode];
    frame.extend(u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
    frame.extend([u8::try_from(extras.len()).unwrap_or(u8::MAX), 0, 0, 0]);
    let body = extras.len() + key.len() + value.len();
    frame.extend(u32::try_from(body).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend(id.opaque);
    frame.extend(cas.to_be_bytes());
    [frame, extras.to_vec(), key.to_vec(), value.to_vec()].concat()
}

/// The bytes of a request.
pub fn written(request: &Request<'_>) -> Vec<u8> {
    let id = Id { opcode: opcode(&request.command, request.quiet), ..request.id };
    frame(id, request.cas, &extras(&request.command), request.key, request.value)
}

/// A request in words, for tables of expected outcomes.
pub fn describe(request: &Request<'_>) -> String {
    let Request { id, command, quiet, cas, key, value } = request;
    let mut words = format!("{command:?} '{}'", key.escape_ascii());
    if !value.is_empty() {
        words += &format!(" = '{}'", value.escape_ascii());
    }
    if *cas > 0 {
        words += &format!(" cas={cas}");
    }
    if *quiet {
        words += " quiet";
    }
    words + &format!(" #{}", u32::from_be_bytes(id.opaque))
}
