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
    if SslRequest::is_ssl_request_packet(packet) || GssEncRequest::is_gss_enc_request_packet(packet) {
        return Opening::Encryption { consumed: length };
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
