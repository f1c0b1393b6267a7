//! What is true of the keys, what was acknowledged, and what was found.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::STRIPE;

pub(super) const STRIPES: usize = 20;

/// An invalidation that a bus has acknowledged.
#[derive(Clone, Copy)]
pub(super) struct Acknowledged {
    pub(super) key: usize,
    version: u64,
    when: Instant,
}

/// See the module.
pub(super) struct Ledger {
    versions: [Mutex<[u64; STRIPE]>; STRIPES],
    acknowledged: Mutex<Vec<Acknowledged>>,
    /// Those before this one may be lost with a stream.
    begin: AtomicUsize,
    /// The stream is being removed.
    muted: AtomicBool,
    over: AtomicBool,
    checked: [AtomicUsize; 3],
    /// Those that were not looked for in a cache, because they may be lost with a stream.
    passed_over: [AtomicUsize; 3],
    /// Old rows that were found.
    old: Mutex<Vec<String>>,
    failed: AtomicBool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            versions: std::array::from_fn(|_| Mutex::new([1; STRIPE])),
            acknowledged: Mutex::default(),
            begin: AtomicUsize::new(0),
            muted: AtomicBool::new(false),
            over: AtomicBool::new(false),
            checked: std::array::from_fn(|_| AtomicUsize::new(0)),
            passed_over: std::array::from_fn(|_| AtomicUsize::new(0)),
            old: Mutex::default(),
            failed: AtomicBool::new(false),
        }
    }
}

/// Ends everything when its thread fails.
pub(super) struct Over<'l>(&'l Ledger);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
            self.0.end();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub(super) fn over_at_panic(&self) -> Over<'_> {
        Over(self)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// New versions of a stripe, which is what an invalidation is about; none: somebody stores the old ones.
    pub(super) fn raise(&self, stripe: usize) -> Option<[u64; STRIPE]> {
        let mut versions = self.versions[stripe].try_lock().ok()?;
        versions.iter_mut().for_each(|version| *version += 1);
        Some(*versions)
    }

    /// The versions of a stripe, which stay until this goes.
    pub(super) fn hold(&self, stripe: usize) -> MutexGuard<'_, [u64; STRIPE]> {
        locked(&self.versions[stripe])
    }

    pub(super) fn note(&self, key: usize, version: u64) {
        locked(&self.acknowledged).push(Acknowledged { key, version, when: Instant::now() });
    }

    pub(super) fn acknowledged(&self) -> usize {
        locked(&self.acknowledged).len()
    }

    /// Whether all was looked for up to this one, and nothing comes any more. Nothing is looked for after a failure.
    pub(super) fn is_checked(&self, next: usize) -> bool {
        self.is_over() && (self.failed.load(Ordering::SeqCst) || next >= self.acknowledged())
    }

    /// What was acknowledged before a moment, from `next` on, for a cache.
    pub(super) fn due(&self, cache: usize, next: &mut usize, fresh: Instant) -> Vec<Acknowledged> {
        if self.muted.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let all = locked(&self.acknowledged);
        let begin = (*next).max(self.begin.load(Ordering::SeqCst));
        self.passed_over[cache].fetch_add(begin - *next, Ordering::SeqCst);
        let end = begin + all[begin..].iter().take_while(|own| own.when < fresh).count();
        *next = end;
        all[begin..end].to_vec()
    }

    /// What a cache has of a key whose invalidation it has heard.
    pub(super) fn count(&self, cache: usize, own: &Acknowledged, found: Option<u64>) {
        self.checked[cache].fetch_add(1, Ordering::SeqCst);
        if let Some(found) = found.filter(|found| *found < own.version) {
            let (key, version) = (own.key, own.version);
            locked(&self.old).push(format!(
                "cache {cache} has version {found} of key {key}, and {version} was acknowledged {:?} ago",
                own.when.elapsed()
            ));
        }
    }

    /// While this runs, what was acknowledged may be lost, and all caches have to notice it.
    pub(super) fn without_promise(&self, lose: impl FnOnce()) {
        self.muted.store(true, Ordering::SeqCst);
        lose();
        let end = self.acknowledged();
        self.begin.store(end, Ordering::SeqCst);
        self.muted.store(false, Ordering::SeqCst);
    }

    pub(super) fn summary(&self) -> String {
        let checked: Vec<usize> = self.checked.iter().map(|own| own.load(Ordering::SeqCst)).collect();
        let (all, old) = (self.acknowledged(), locked(&self.old).len());
        format!("{all} acknowledged, looked for in the caches: {checked:?}, not applied: {old}")
    }

    pub(super) fn judge(&self, caches: usize) {
        let old = locked(&self.old).clone();
        assert!(old.is_empty(), "{} old rows, the first: {}", old.len(), old[0]);
        for (checked, passed_over) in self.checked[..caches].iter().zip(&self.passed_over) {
            let due = self.acknowledged() - passed_over.load(Ordering::SeqCst);
            assert!(checked.load(Ordering::SeqCst) * 4 > due, "few were looked for: {}", self.summary());
        }
    }
}
