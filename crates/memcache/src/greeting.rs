//! Clients of other protocols on memcached's port.

/// A protocol that is not spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stranger {
    /// TLS: a handshake record.
    Tls,
    /// PostgreSQL: a start-up packet, or the request for encryption before it.
    Postgres,
    /// Redis: a command as an array of strings.
    Redis,
}

/// Whose protocol the first bytes of a connection belong to, if they are certainly not ours. None of these sends a
/// line end early, and their clients wait for an answer, so a connection that begins so is closed at once instead
/// of being waited for. Only the beginning of a connection can be judged: later the same bytes may be the rest
/// of a value whose length was wrong.
pub fn stranger(first: &[u8]) -> Option<Stranger> {
    match first {
        [0x16, 0x03, 0x00..=0x04, ..] => Some(Stranger::Tls),
        // Length, then the version or a request code; no start-up packet is longer than 10,000 bytes.
        [0, 0, 0..=0x27, _, 0, 3, 0, ..] | [0, 0, 0, 8, 0x04, 0xd2, 0x16, _, ..] => Some(Stranger::Postgres),
        [b'*', b'0'..=b'9', ..] => Some(Stranger::Redis),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_known_by_their_first_bytes() {
        for (first, expected) in [
            (&b"\x16\x03\x01\x02\x00\x01\x00"[..], Some(Stranger::Tls)),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", Some(Stranger::Postgres)),
            (b"\0\0\0\x54\0\x03\0\0user\0", Some(Stranger::Postgres)),
            (b"\x80\x0b\0\0\0\0\0\0", None),
            (b"*1\r\n$4\r\nPING\r\n", Some(Stranger::Redis)),
            (b"get key\r\n", None),
            (b"GET / HTTP/1.1\r\n", None),
            (b"", None),
            (b"\0", None),
            (b"\x16", None),
        ] {
            assert_eq!(stranger(first), expected, "{}", first.escape_ascii());
        }
    }
}
