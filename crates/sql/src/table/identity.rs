//! The hidden column `_row`: what a write must know of the version that it replaces.

use store::{Expiry, Renewal, RowBuf};

/// Key, version, deadline, flags and renewal of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The CAS value: the write is lost if the row's differs by then.
    pub(crate) cas: u64,
    /// The number of the write that made the version, from which its age is known; 0 before it is committed.
    pub(crate) stamp: u64,
    /// The row's expiry word as it was read.
    pub(crate) expiry: u32,
    /// The deadline of a version after it that leaves it as it is.
    pub(crate) deadline: Expiry,
    /// The memcached client's flags.
    pub(crate) client_flags: u32,
    /// Whether it is stale, and who refreshes it.
    pub(crate) renewal: Renewal,
    /// The encoded primary key.
    pub(crate) key: Vec<u8>,
}

/// The expiry word of a row that never expires, whatever its table says.
const NEVER: u32 = u32::MAX;
/// Whose a deadline is: the row's own, or that of the version which it replaces.
const ITS_OWN: u8 = 0;
const KEPT: u8 = 1;
const KEPT_OR: u8 = 2;
/// Bytes before the key.
const HEAD_BYTES: usize = 31;

impl Identity {
    /// As a blob: numbers, then the key.
    #[cfg(test)]
    fn encode(&self, out: &mut Vec<u8>) {
        let numbers = (self.cas, self.stamp, self.expiry, self.client_flags);
        Self::write(numbers, self.deadline, self.renewal, &self.key, out);
    }

    /// That of a row.
    pub(crate) fn of_row(row: &RowBuf) -> Self {
        Self {
            cas: row.cas(),
            stamp: row.stamp(),
            expiry: row.expiry(),
            deadline: row.deadline(),
            client_flags: row.client_flags(),
            renewal: row.renewal(),
            key: row.key().to_vec(),
        }
    }

    /// The blob of a row.
    pub(crate) fn encode_row(row: &RowBuf, out: &mut Vec<u8>) {
        let numbers = (row.cas(), row.stamp(), row.expiry(), row.client_flags());
        Self::write(numbers, row.deadline(), row.renewal(), row.key(), out);
    }

    fn write(
        numbers: (u64, u64, u32, u32),
        deadline: Expiry,
        renewal: Renewal,
        key: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (cas, stamp, expiry, client_flags) = numbers;
        let kind = match deadline {
            Expiry::Kept(_) => KEPT,
            Expiry::KeptOr(_) => KEPT_OR,
            _ => ITS_OWN,
        };
        out.clear();
        out.extend_from_slice(&cas.to_le_bytes());
        out.extend_from_slice(&stamp.to_le_bytes());
        out.extend_from_slice(&expiry.to_le_bytes());
        out.extend_from_slice(&client_flags.to_le_bytes());
        out.extend_from_slice(&renewal.lease.unwrap_or(0).to_le_bytes());
        let lease = u8::from(renewal.lease.is_some()) | u8::from(renewal.same_lease) << 1;
        out.extend_from_slice(&[lease, u8::from(renewal.stale), kind]);
        out.extend_from_slice(key);
    }

    /// Back from a blob; `None` when it is not one of ours.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, key) = bytes.split_at_checked(HEAD_BYTES)?;
        let (cas, rest) = head.split_first_chunk::<8>()?;
        let (stamp, rest) = rest.split_first_chunk::<8>()?;
        let (expiry, rest) = rest.split_first_chunk::<4>()?;
        let (flags, rest) = rest.split_first_chunk::<4>()?;
        let (lease, rest) = rest.split_first_chunk::<4>()?;
        let [has_lease, stale, kind] = *rest.first_chunk::<3>()?;
        let lease_word = (has_lease & 1 != 0).then(|| u32::from_le_bytes(*lease));
        let expiry = u32::from_le_bytes(*expiry);
        let deadline = match kind {
            KEPT => Expiry::Kept(expiry),
            KEPT_OR => Expiry::KeptOr(expiry),
            _ => expiry_of_word(expiry),
        };
        Some(Self {
            cas: u64::from_le_bytes(*cas),
            stamp: u64::from_le_bytes(*stamp),
            expiry,
            deadline,
            client_flags: u32::from_le_bytes(*flags),
            renewal: Renewal { stale: stale != 0, lease: lease_word, same_lease: has_lease & 2 != 0 },
            key: key.to_vec(),
        })
    }
}

/// What a row's expiry word says.
fn expiry_of_word(word: u32) -> Expiry {
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
        Expiry::At(tick) | Expiry::Kept(tick) | Expiry::KeptOr(tick) => tick,
        Expiry::Now => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_the_blob() {
        for lease in [None, Some(0), Some(9)] {
            let renewal = Renewal { stale: true, lease, same_lease: lease.is_some() };
            let key = b"k".to_vec();
            let deadline = Expiry::Kept(NEVER);
            let identity =
                Identity { cas: 7, stamp: 8, expiry: NEVER, deadline, client_flags: 3, renewal, key };
            let mut bytes = Vec::new();
            identity.encode(&mut bytes);
            assert_eq!(Identity::decode(&bytes), Some(identity));
            assert_eq!(Identity::decode(&bytes[..30]), None);
        }
    }
}
