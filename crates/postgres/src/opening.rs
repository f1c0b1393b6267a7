//! The first packet of a connection: encryption asked for, a statement to be cancelled, or a session to begin.

use bytes::BytesMut;
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::startup::{GssEncRequest, SecretKey, SslRequest, Startup};
use pgwire::messages::{DecodeContext, Message, ProtocolVersion};

use crate::limits::OPENING_BYTES_MAX;

/// The newest protocol that is spoken: 3.2. Its number's low half.
pub const NEWEST_MINOR: u16 = 2;

/// What the first bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Not a whole packet yet.
    Incomplete,
    /// The client asks whether it may encrypt by TLS or GSSAPI. The answer is one byte; another packet follows.
    Encryption {
        /// Bytes of the packet.
        consumed: usize,
        /// By which of them.
        by: Encryption,
    },
    /// A statement of another connection shall stop. There is no answer.
    Cancel {
        /// The number of that connection.
        process: i32,
        /// What only its owner knows.
        secret: Vec<u8>,
    },
    /// A session begins.
    Startup {
        /// Bytes of the packet.
        consumed: usize,
        /// The low half of the protocol's number.
        minor: u16,
        /// Names and values.
        parameters: Vec<(String, String)>,
    },
    /// No PostgreSQL client, or one of another age.
    Refused(Refusal),
}

/// What a client would encrypt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// TLS.
    Tls,
    /// GSSAPI.
    Gss,
}

/// What a client's first byte is that begins with TLS itself.
pub const TLS_FIRST: u8 = 0x16;

/// Why a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A length that no opening packet has; what memcached or web clients send reads as a huge one.
    Length,
    /// A protocol of another number.
    Version {
        /// Its high half.
        major: u16,
        /// Its low half.
        minor: u16,
    },
    /// Parameters that are not pairs of texts.
    Layout,
}

/// The packet's length and its code.
const HEAD: usize = 8;

/// Looks at what has arrived on a new connection.
pub fn parse(input: &[u8]) -> Opening {
    let Some(length) = input.first_chunk().map(|word| i32::from_be_bytes(*word)) else {
        return Opening::Incomplete;
    };
    let length = usize::try_from(length).ok().filter(|length| (HEAD..=OPENING_BYTES_MAX).contains(length));
    let Some(length) = length else { return Opening::Refused(Refusal::Length) };
    let Some(packet) = input.get(..length) else { return Opening::Incomplete };
    if SslRequest::is_ssl_request_packet(packet) {
        return Opening::Encryption { consumed: length, by: Encryption::Tls };
    }
    if GssEncRequest::is_gss_enc_request_packet(packet) {
        return Opening::Encryption { consumed: length, by: Encryption::Gss };
    }
    if CancelRequest::is_cancel_request_packet(packet) {
        return cancel(packet);
    }
    let (major, minor) =
        (u16::from_be_bytes([packet[4], packet[5]]), u16::from_be_bytes([packet[6], packet[7]]));
    if major != 3 {
        return Opening::Refused(Refusal::Version { major, minor });
    }
    startup(packet, minor)
}

/// What a client sends to prove its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof<'i> {
    /// Not a whole message yet.
    Incomplete,
    /// A message: a password, or a part of an exchange.
    Message {
        /// Bytes of the message.
        consumed: usize,
        /// What it carries.
        body: &'i [u8],
    },
    /// Another message, or a longer one than these are.
    Broken,
}

/// Looks at what has arrived of a client that must prove its role.
pub fn proof(input: &[u8]) -> Proof<'_> {
    const LENGTH: usize = 4;
    match input.first() {
        None => return Proof::Incomplete,
        Some(b'p') => {}
        Some(_) => return Proof::Broken,
    }
    let Some(length) = input[1..].first_chunk().map(|word| i32::from_be_bytes(*word)) else {
        return Proof::Incomplete;
    };
    let length = usize::try_from(length).ok().filter(|length| (LENGTH..=OPENING_BYTES_MAX).contains(length));
    let Some(length) = length else { return Proof::Broken };
    match input.get(1 + LENGTH..=length) {
        Some(body) => Proof::Message { consumed: 1 + length, body },
        None => Proof::Incomplete,
    }
}

/// The mechanism that a client chose, and its first message.
pub fn first_of_exchange(body: &[u8]) -> Option<(&str, &[u8])> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let mechanism = std::str::from_utf8(&body[..end]).ok()?;
    let (length, data) = body[end + 1..].split_first_chunk()?;
    // -1: none, which no mechanism here begins with.
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    (data.len() == length).then_some((mechanism, data))
}

/// The password that a client shows.
pub fn password(body: &[u8]) -> Option<&str> {
    let text = body.strip_suffix(&[0]).filter(|text| !text.contains(&0))?;
    std::str::from_utf8(text).ok()
}

fn cancel(packet: &[u8]) -> Opening {
    // Keys of any length are bytes from 3.2 on, and four bytes are that too.
    let context = DecodeContext::new(ProtocolVersion::PROTOCOL3_2);
    match CancelRequest::decode(&mut BytesMut::from(packet), &context) {
        Ok(Some(CancelRequest { pid, secret_key: SecretKey::Bytes(secret), .. })) => {
            Opening::Cancel { process: pid, secret: secret.to_vec() }
        }
        _ => Opening::Refused(Refusal::Layout),
    }
}

fn startup(packet: &[u8], minor: u16) -> Opening {
    // Names and values are texts with a zero behind each, and one more zero ends them.
    let body = &packet[HEAD..];
    if std::str::from_utf8(body).is_err() || !(body == [0] || body.ends_with(&[0, 0])) {
        return Opening::Refused(Refusal::Layout);
    }
    let context = DecodeContext::default();
    match Startup::decode(&mut BytesMut::from(packet), &context) {
        Ok(Some(startup)) => Opening::Startup {
            consumed: packet.len(),
            minor,
            parameters: startup.parameters.into_iter().collect(),
        },
        _ => Opening::Refused(Refusal::Layout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs() {
        assert_eq!(proof(b""), Proof::Incomplete);
        assert_eq!(proof(b"p\0\0\0"), Proof::Incomplete);
        assert_eq!(proof(b"p\0\0\0\x06x"), Proof::Incomplete);
        assert_eq!(proof(b"p\0\0\0\x06x\0rest"), Proof::Message { consumed: 7, body: b"x\0" });
        for broken in [&b"Q"[..], b"p\0\0\0\x03", b"p\xff\xff\xff\xff", b"p\0\0\x27\x11"] {
            assert_eq!(proof(broken), Proof::Broken, "{broken:?}");
        }
        assert_eq!(password(b"secret\0"), Some("secret"));
        assert_eq!((password(b"secret"), password(b"a\0b\0"), password(b"\xff\0")), (None, None, None));
        assert_eq!(first_of_exchange(b"X\0\0\0\0\x02ab"), Some(("X", &b"ab"[..])));
        for wrong in [&b"X"[..], b"X\0\0\0\0", b"X\0\0\0\0\x03ab", b"X\0\xff\xff\xff\xff", b"\xff\0\0\0\0\0"]
        {
            assert_eq!(first_of_exchange(wrong), None, "{wrong:?}");
        }
    }
}
