//! Messages within what was received: a type, a length, a body.

/// Bytes before a body.
pub(crate) const HEAD: usize = 5;

/// What lies at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'b> {
    /// A whole message.
    Whole(Frame<'b>),
    /// A message whose end has not come; it has so many bytes.
    Part { kind: u8, len: usize },
    /// Less than its head.
    Less,
    /// No message has such a length.
    Broken,
}

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'b> {
    pub(crate) kind: u8,
    /// All of it.
    pub(crate) bytes: &'b [u8],
}

impl<'b> Frame<'b> {
    pub(crate) fn body(&self) -> &'b [u8] {
        &self.bytes[HEAD..]
    }
}

/// Looks at the first message.
pub(crate) fn next(bytes: &[u8]) -> Next<'_> {
    let Some(&[kind, a, b, c, d]) = bytes.first_chunk::<HEAD>() else { return Next::Less };
    match usize::try_from(i32::from_be_bytes([a, b, c, d])) {
        Ok(length) if length >= 4 => match bytes.get(..=length) {
            Some(bytes) => Next::Whole(Frame { kind, bytes }),
            None => Next::Part { kind, len: length + 1 },
        },
        _ => Next::Broken,
    }
}

/// Appends a message.
pub(crate) fn put(kind: u8, body: &[&[u8]], out: &mut Vec<u8>) {
    let len: usize = body.iter().map(|part| part.len()).sum();
    out.push(kind);
    // Bodies that are made here are short.
    out.extend_from_slice(&u32::try_from(len + 4).unwrap_or(u32::MAX).to_be_bytes());
    for part in body {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found() {
        let mut bytes = Vec::new();
        put(b'Z', &[b"I"], &mut bytes);
        assert_eq!(bytes, b"Z\0\0\0\x05I");
        assert_eq!(next(&bytes), Next::Whole(Frame { kind: b'Z', bytes: b"Z\0\0\0\x05I" }));
        assert_eq!(next(&bytes[..5]), Next::Part { kind: b'Z', len: 6 });
        assert_eq!(next(&bytes[..4]), Next::Less);
        assert_eq!(next(b"Z\0\0\0\x03"), Next::Broken);
        assert_eq!(next(b"Z\xff\0\0\0"), Next::Broken);
    }
}
