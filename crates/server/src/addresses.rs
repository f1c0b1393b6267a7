//! How many connections each address has, so that one client's leak keeps no others out.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

/// Connections by the address of their peers. Those by a socket's file have none, and are not counted.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<HashMap<IpAddr, usize>>);

impl Addresses {
    /// Counts one more connection, also where there is no limit (0): one may come while it is open. False: the address
    /// has that many.
    pub(crate) fn add(&self, address: IpAddr, most: usize) -> bool {
        let mut all = self.0.lock();
        let count = all.entry(address).or_default();
        if most > 0 && *count >= most {
            return false;
        }
        *count += 1;
        true
    }

    /// One of them is closed.
    pub(crate) fn remove(&self, address: IpAddr) {
        let mut all = self.0.lock();
        if let Some(count) = all.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                all.remove(&address);
            }
        }
    }
}
