//! The hidden column `_row`: what a write must know of the version that it replaces.

use store::Expiry;

/// Key, version, deadline and flags of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The CAS value: the write is lost if the row's differs by then.
    pub(crate) cas: u64,
    /// The row's expiry word as it stands in the arena.
    pub(crate) expiry: u32,
    /// The memcached client's flags.
    pub(crate) client_flags: u32,
    /// The encoded primary key.
    pub(crate) key: Vec<u8>,
}

/// The expiry word of a row that never expires, whatever its table says.
const NEVER: u32 = u32::MAX;
/// Bytes before the key.
const HEAD_BYTES: usize = 16;

impl Identity {
    /// As a blob: three numbers, then the key.
    pub(crate) fn encode(cas: u64, expiry: u32, client_flags: u32, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&cas.to_le_bytes());
        out.extend_from_slice(&expiry.to_le_bytes());
        out.extend_from_slice(&client_flags.to_le_bytes());
        out.extend_from_slice(key);
    }

    /// Back from a blob; `None` when it is not one of ours.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, key) = bytes.split_at_checked(HEAD_BYTES)?;
        let (cas, rest) = head.split_first_chunk::<8>()?;
        let (expiry, rest) = rest.split_first_chunk::<4>()?;
        let flags = rest.first_chunk::<4>()?;
        Some(Self {
            cas: u64::from_le_bytes(*cas),
            expiry: u32::from_le_bytes(*expiry),
            client_flags: u32::from_le_bytes(*flags),
            key: key.to_vec(),
        })
    }
}

/// What a row's expiry word says.
pub(crate) fn expiry_of_word(word: u32) -> Expiry {
    match word {
        0 => Expiry::Table,
        NEVER => Expiry::Never,
        tick => Expiry::At(tick),
    }
}

/// The word of a deadline, for rows that are shown before they are written.
pub(crate) fn word_of_expiry(expiry: Expiry, now: u32) -> u32 {
    match expiry {
        Expiry::Table => 0,
        Expiry::Never => NEVER,
        Expiry::At(tick) => tick,
        Expiry::Now => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_the_blob() {
        let identity = Identity { cas: 7, expiry: NEVER, client_flags: 3, key: b"k".to_vec() };
        let mut bytes = Vec::new();
        Identity::encode(7, NEVER, 3, b"k", &mut bytes);
        assert_eq!(Identity::decode(&bytes), Some(identity));
        assert_eq!(Identity::decode(&bytes[..15]), None);
    }
}
