//! How long an address waits for the answer to a failure: longer with each one.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

use crate::limits::{ADDRESSES_MAX, FAILURE_DELAY_MAX_MS, FAILURE_DELAY_MS, FAILURES_FORGOTTEN_MS};

/// The failures of each address. Peers of Unix sockets count as one.
#[derive(Debug, Default)]
pub struct Failures {
    by_address: Mutex<HashMap<Option<IpAddr>, Failed>>,
}

#[derive(Clone, Copy, Debug)]
struct Failed {
    /// In milliseconds, of the caller's clock.
    last: u64,
    count: u32,
}

impl Failures {
    /// Counts a failure at a moment, in milliseconds. Returns for how many milliseconds its answer waits.
    pub fn count(&self, address: Option<IpAddr>, now: u64) -> u64 {
        let mut all = self.by_address.lock();
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            all.retain(|_, failed| now.saturating_sub(failed.last) < FAILURES_FORGOTTEN_MS);
            if all.len() >= ADDRESSES_MAX {
                let oldest = all.iter().min_by_key(|(_, failed)| failed.last).map(|(address, _)| *address);
                oldest.map(|oldest| all.remove(&oldest));
            }
        }
        let failed = all.entry(address).or_insert(Failed { last: now, count: 0 });
        if now.saturating_sub(failed.last) >= FAILURES_FORGOTTEN_MS {
            failed.count = 0;
        }
        failed.last = now;
        let delay = FAILURE_DELAY_MS.checked_shl(failed.count).unwrap_or(FAILURE_DELAY_MAX_MS);
        failed.count = (failed.count + 1).min(16);
        delay.min(FAILURE_DELAY_MAX_MS)
    }

    /// An address has shown a right proof.
    pub fn forget(&self, address: Option<IpAddr>) {
        self.by_address.lock().remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_wait_longer_and_longer() {
        let failures = Failures::default();
        let one = Some("10.0.0.1".parse().unwrap());
        let waits: Vec<u64> = (0..8).map(|at| failures.count(one, at)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(failures.count(None, 9), 100);
        failures.forget(one);
        assert_eq!(failures.count(one, 10), 100);
        assert_eq!(failures.count(one, 11), 200);
        assert_eq!(failures.count(one, 11 + FAILURES_FORGOTTEN_MS), 100);
    }

    #[test]
    fn the_table_has_a_bound() {
        let failures = Failures::default();
        for at in 0..u32::try_from(ADDRESSES_MAX).unwrap() + 10 {
            failures.count(Some(IpAddr::from(at.to_be_bytes())), u64::from(at));
        }
        assert_eq!(failures.by_address.lock().len(), ADDRESSES_MAX);
    }
}
