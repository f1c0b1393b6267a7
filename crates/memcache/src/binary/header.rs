//! The header of a frame.

/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;

/// The first byte of a request. No line of the text protocol begins with it, so it tells the protocols apart.
pub const MAGIC: u8 = 0x80;

/// The first byte of an answer.
pub(super) const ANSWER_MAGIC: u8 = 0x81;

/// What an answer repeats of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// The opcode, of a quiet command its own.
    pub opcode: u8,
    /// Four bytes that mean something to the peer alone.
    pub opaque: [u8; 4],
}

/// The header of a request. The fields for a data type and a partition are not looked at, as in memcached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) magic: u8,
    pub(crate) id: Id,
    pub(crate) cas: u64,
    /// Bytes of the extras.
    pub(crate) extras: usize,
    /// Bytes of the key.
    pub(crate) key: usize,
    /// Bytes of extras, key and value.
    pub(crate) body: usize,
}

impl Header {
    /// The header that `input` begins with, and what follows it.
    #[inline]
    pub(crate) fn split(input: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, rest) = input.split_first_chunk::<HEADER_BYTES>()?;
        let [magic, opcode, k0, k1, extras, _, _, _, b0, b1, b2, b3, o0, o1, o2, o3, cas @ ..] = *bytes;
        let header = Self {
            magic,
            id: Id { opcode, opaque: [o0, o1, o2, o3] },
            cas: u64::from_be_bytes(cas),
            extras: usize::from(extras),
            key: usize::from(u16::from_be_bytes([k0, k1])),
            body: usize::try_from(u32::from_be_bytes([b0, b1, b2, b3])).unwrap_or(usize::MAX),
        };
        Some((header, rest))
    }

    /// Whether it is that of a request.
    pub(crate) fn is_request(&self) -> bool {
        self.magic == MAGIC
    }

    /// Bytes of header, extras and key.
    #[inline]
    pub(crate) fn head(&self) -> usize {
        HEADER_BYTES.saturating_add(self.extras).saturating_add(self.key)
    }

    /// Bytes of the value; none if the body is too short for extras and key.
    #[inline]
    pub(crate) fn value(&self) -> Option<usize> {
        self.body.checked_sub(self.extras.saturating_add(self.key))
    }
}
