//! Passwords that were right before. A client that connects for each request would cost a millisecond each time, and a
//! stolen memory image must not show a password: so what is remembered is an HMAC under a key of this process.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::limits::KNOWN_PASSWORDS_MAX;
use crate::random;
use crate::verifier::{Key, Verifier, sign};

/// See the module. Failures are never remembered.
#[derive(Debug)]
pub struct KnownPasswords {
    key: Key,
    known: Mutex<HashSet<Key>>,
}

impl Default for KnownPasswords {
    fn default() -> Self {
        Self { key: random(), known: Mutex::default() }
    }
}

impl KnownPasswords {
    /// Whether this password was right before for this role and verifier. A new password of the role is another
    /// verifier.
    pub fn has(&self, role: &str, verifier: &Verifier, password: &str) -> bool {
        let mark = self.mark(role, verifier, password);
        self.known.lock().contains(&mark)
    }

    /// Remembers one that was right.
    pub fn add(&self, role: &str, verifier: &Verifier, password: &str) {
        let mark = self.mark(role, verifier, password);
        let mut known = self.known.lock();
        if known.len() >= KNOWN_PASSWORDS_MAX {
            known.clear();
        }
        known.insert(mark);
    }

    fn mark(&self, role: &str, verifier: &Verifier, password: &str) -> Key {
        // Each part has one length, or ends with a zero, which no name has.
        sign(&self.key, &[role.as_bytes(), b"\0", &verifier.stored_key, password.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_is_known() {
        let (known, verifier) = (KnownPasswords::default(), Verifier::derive("x"));
        assert!(!known.has("a", &verifier, "x"));
        known.add("a", &verifier, "x");
        assert!(known.has("a", &verifier, "x"));
        assert!(!known.has("a", &verifier, "y") && !known.has("b", &verifier, "x"));
        assert!(!known.has("a", &Verifier::derive("x"), "x"));
    }
}
