//! Keys that a thread sampled, until the housekeeping takes them.

use parking_lot::Mutex;

use crate::limits::SAMPLES_BYTES_MAX;
use crate::privilege::Command;

/// Bytes before each key: whether it was written, for how many commands it stands, its length.
const HEAD_BYTES: usize = 3;

/// What a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) writes: bool,
    /// For how many commands it stands.
    pub(crate) times: u8,
}

/// The buffer of one thread: samples one behind the other, heads and keys.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<Vec<u8>>);

impl Samples {
    /// Adds a sample. It is dropped where the buffer is full or the housekeeping has it at this moment: a worker never
    /// waits.
    pub(crate) fn add(&self, key: &[u8], command: Command, stands_for: u32) {
        let (Ok(len), Ok(times)) = (u8::try_from(key.len()), u8::try_from(stands_for)) else { return };
        let Some(mut samples) = self.0.try_lock() else { return };
        if samples.len() + HEAD_BYTES + key.len() <= SAMPLES_BYTES_MAX {
            samples.extend_from_slice(&[u8::from(command.writes()), times, len]);
            samples.extend_from_slice(key);
        }
    }

    /// Moves all samples behind others.
    pub(crate) fn take_into(&self, all: &mut Vec<u8>) {
        all.append(&mut self.0.lock());
    }
}

/// The samples of a buffer.
pub(crate) fn each(mut samples: &[u8]) -> impl Iterator<Item = (&[u8], Used)> {
    std::iter::from_fn(move || {
        let (&[writes, times, len], rest) = samples.split_first_chunk::<HEAD_BYTES>()?;
        let (key, rest) = rest.split_at_checked(usize::from(len))?;
        samples = rest;
        Some((key, Used { writes: writes != 0, times }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_until_the_buffer_is_full() {
        let (samples, mut all) = (Samples::default(), Vec::new());
        samples.add(b"one", Command::Get, 1);
        samples.add(&[b'k'; 250], Command::Set, 64);
        samples.add(&[b'k'; 256], Command::Get, 1);
        samples.take_into(&mut all);
        let long = [b'k'; 250];
        let expected =
            [(&b"one"[..], Used { writes: false, times: 1 }), (&long[..], Used { writes: true, times: 64 })];
        assert_eq!(each(&all).collect::<Vec<_>>(), expected);
        for _ in 0..SAMPLES_BYTES_MAX {
            samples.add(b"two", Command::Delete, 1);
        }
        all.clear();
        samples.take_into(&mut all);
        assert_eq!(all.len(), SAMPLES_BYTES_MAX / 6 * 6);
    }
}
