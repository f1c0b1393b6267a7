//! What was refused to whom: the last refusals, and how often each role logged in, failed and was refused.
//!
//! Both are bounded: the list by its length, the counts by the roles that there are. What a peer may make up, such as
//! the name of a role, is cut off and never counted by itself.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sql::token::Tokens;
use sql::{RefusalFacts, RoleCounts, normalized};
use store::Clock;

use crate::audit::Audit;
use crate::limits::{REFUSAL_TEXT_BYTES_MAX, REFUSALS_KEPT};

/// See the module.
#[derive(Debug)]
pub struct Refusals {
    clock: Clock,
    audit: Arc<Audit>,
    last: Mutex<VecDeque<RefusalFacts>>,
    by_role: Mutex<HashMap<String, Counts>>,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    logins: u64,
    failures: u64,
    refusals: u64,
}

/// Of all roles together, for `stats`.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Passwords of memcached's clients that were right or wrong.
    pub(crate) passwords: AtomicU64,
    /// Those that were wrong.
    pub(crate) wrong_passwords: AtomicU64,
    /// Commands and statements that were refused, by every protocol.
    pub(crate) refusals: AtomicU64,
}

/// A peer that was not let in.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'f> {
    /// The role that it named, if it named one.
    pub role: Option<&'f str>,
    /// Its address; `None`: a Unix socket.
    pub address: Option<IpAddr>,
    /// `memcached` or `postgresql`.
    pub protocol: &'static str,
    /// Why.
    pub reason: &'f str,
}

impl Refusals {
    /// None yet, in the time of this clock.
    pub(crate) fn new(clock: Clock, audit: Arc<Audit>) -> Self {
        Self { clock, audit, last: Mutex::default(), by_role: Mutex::default(), totals: Totals::default() }
    }

    /// A role was let in.
    pub(crate) fn note_login(&self, role: &str, address: Option<IpAddr>, protocol: &'static str) {
        self.count(role, |counts| counts.logins += 1);
        self.audit.note_login(role, address, protocol);
    }

    /// A memcached client has shown a password, or a part of a proof that ends an exchange.
    pub fn note_password(&self, right: bool) {
        // Relaxed: counts for people to look at.
        self.totals.passwords.fetch_add(1, Ordering::Relaxed);
        self.totals.wrong_passwords.fetch_add(u64::from(!right), Ordering::Relaxed);
    }

    /// A peer was not let in. `exists`: there is such a role.
    #[cold]
    pub(crate) fn note_failure(&self, failure: Failure<'_>, exists: bool) {
        let role = failure.role.unwrap_or_default();
        if exists {
            self.count(role, |counts| counts.failures += 1);
        }
        self.keep(RefusalFacts {
            at_ms: self.unix_ms(),
            role: cut(role),
            address: failure.address.map(|address| address.to_string()),
            protocol: failure.protocol,
            request: "connect".to_owned(),
            reason: cut(failure.reason),
        });
    }

    fn count(&self, role: &str, change: impl FnOnce(&mut Counts)) {
        let mut all = self.by_role.lock();
        match all.get_mut(role) {
            Some(counts) => change(counts),
            None => change(all.entry(role.to_owned()).or_default()),
        }
    }

    fn unix_ms(&self) -> i64 {
        i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX)
    }

    fn keep(&self, refused: RefusalFacts) {
        self.audit.note_refused(&refused);
        let mut last = self.last.lock();
        if last.len() >= REFUSALS_KEPT {
            last.pop_front();
        }
        last.push_back(refused);
    }

    /// Forgets the counts of roles that are gone.
    pub(crate) fn retain(&self, exists: impl Fn(&str) -> bool) {
        self.by_role.lock().retain(|role, _| exists(role));
    }

    /// The last refusals, the newest last.
    pub(crate) fn last(&self) -> Vec<RefusalFacts> {
        self.last.lock().iter().cloned().collect()
    }

    /// The counts of each of these roles.
    pub(crate) fn counts<'r>(&self, roles: impl Iterator<Item = &'r str>) -> Vec<RoleCounts> {
        let all = self.by_role.lock();
        let of = |role: &str| {
            let Counts { logins, failures, refusals } = all.get(role).copied().unwrap_or_default();
            RoleCounts { role: role.to_owned(), logins, failures, refusals }
        };
        roles.map(of).collect()
    }

    /// Of all roles together.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }
}

/// Where a session comes from, to note what it is refused.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) protocol: &'static str,
}

impl Trail {
    /// The session of a role was refused something.
    #[cold]
    pub(crate) fn note(&self, role: &str, request: &str, reason: &str) {
        // Relaxed: a count for people to look at.
        self.refusals.totals.refusals.fetch_add(1, Ordering::Relaxed);
        self.refusals.count(role, |counts| counts.refusals += 1);
        self.refusals.keep(RefusalFacts {
            at_ms: self.refusals.unix_ms(),
            role: cut(role),
            address: self.address.map(|address| address.to_string()),
            protocol: self.protocol,
            request: cut(request),
            reason: cut(reason),
        });
    }

    /// The same of a statement, without its values: of one about roles only its first words are kept.
    #[cold]
    pub(crate) fn note_statement(&self, role: &str, statement: &str, reason: &str) {
        let about_roles = auth::statement::read(statement).is_ok_and(|read| read.is_some());
        let shown = if about_roles {
            let words = Tokens::new(statement).take(2).map(|word| word.text.to_ascii_uppercase());
            words.collect::<Vec<_>>().join(" ")
        } else {
            normalized(statement)
        };
        self.note(role, &shown, reason);
    }
}

/// A text with its end cut off where it is long.
fn cut(text: &str) -> String {
    let mut end = text.len().min(REFUSAL_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_bound() {
        let refusals = Refusals::new(Clock::System, Arc::new(Audit::new(Clock::System)));
        for at in 0..REFUSALS_KEPT + 10 {
            let role = format!("{at}{}", "x".repeat(REFUSAL_TEXT_BYTES_MAX));
            let failure = Failure { role: Some(&role), address: None, protocol: "postgresql", reason: "no" };
            refusals.note_failure(failure, false);
        }
        let last = refusals.last();
        assert_eq!(last.len(), REFUSALS_KEPT);
        assert!(last.iter().all(|one| one.role.len() <= REFUSAL_TEXT_BYTES_MAX));
        assert!(last[0].role.starts_with("10"), "{}", last[0].role);
        // Roles that do not exist are not counted by their names.
        assert!(refusals.by_role.lock().is_empty());
        refusals.note_login("a", None, "memcached");
        refusals.retain(|_| false);
        assert!(refusals.by_role.lock().is_empty());
    }

    #[test]
    fn values_are_not_kept() {
        let refusals = Arc::new(Refusals::new(Clock::System, Arc::new(Audit::new(Clock::System))));
        let trail = Trail { refusals: Arc::clone(&refusals), address: None, protocol: "postgresql" };
        for statement in [
            "SELECT v FROM t WHERE k = 'hidden'",
            "ALTER ROLE chief PASSWORD 'hidden'",
            "CREATE USER x PASSWORD 'hidden'",
            "INSERT INTO t VALUES ('hidden', $$hidden$$, E'hidden')",
        ] {
            trail.note_statement("a", statement, "permission denied");
            let last = refusals.last().pop().unwrap();
            assert!(!last.request.contains("hidden") && !last.request.is_empty(), "{}", last.request);
        }
    }
}
