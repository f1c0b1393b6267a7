//! Who is connected with a session of SQL, and what they do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use sql::{Cancel, EncryptionFacts, Identity, SessionFacts, TransactionStatus};
use store::Clock;

use super::statements::Counted;

/// One session as others see it, for as long as it lasts.
#[derive(Debug)]
pub(crate) struct Presence {
    sessions: Arc<Sessions>,
    shown: Arc<Shown>,
}

/// What is shown of a session.
#[derive(Debug)]
struct Shown {
    identity: Identity,
    address: Option<String>,
    protocol: &'static str,
    encryption: Option<EncryptionFacts>,
    application: String,
    /// What stops its statement.
    cancel: Cancel,
    /// Somebody ended it: its listener closes it when it looks next.
    ended: AtomicBool,
    started_ms: i64,
    /// Held for a moment by the session's own thread, and by a reader of the tables.
    now: Mutex<Now>,
    statements: AtomicU64,
}

/// What a session does.
#[derive(Clone, Debug, Default)]
struct Now {
    statement: Option<Arc<Counted>>,
    running: bool,
    status: TransactionStatus,
    query_started_ms: Option<i64>,
    transaction_started_ms: Option<i64>,
    changed_ms: Option<i64>,
}

/// All sessions by their number.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    by_number: Mutex<BTreeMap<i32, Weak<Shown>>>,
}

impl Sessions {
    /// None yet.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, by_number: Mutex::default() }
    }

    fn wall_ms(&self) -> i64 {
        i64::try_from(self.clock.unix_ms()).unwrap_or(i64::MAX)
    }

    /// All of this moment.
    pub(crate) fn all(&self) -> Vec<SessionFacts> {
        self.by_number.lock().values().filter_map(Weak::upgrade).map(|shown| shown.facts()).collect()
    }

    /// Stops what a session does; false where there is none of this number.
    pub(crate) fn cancel(&self, pid: i32) -> bool {
        let shown = self.by_number.lock().get(&pid).and_then(Weak::upgrade);
        shown.inspect(|shown| shown.cancel.cancel()).is_some()
    }

    /// Ends a session, and what it does; false where there is none of this number.
    pub(crate) fn terminate(&self, pid: i32) -> bool {
        let shown = self.by_number.lock().get(&pid).and_then(Weak::upgrade);
        // Relaxed: a mark by itself, which the listener looks at again and again.
        let end = |shown: &Arc<Shown>| {
            shown.ended.store(true, Ordering::Relaxed);
            shown.cancel.cancel();
        };
        shown.inspect(end).is_some()
    }
}

impl Presence {
    /// Shows a session to others.
    pub(crate) fn new(
        sessions: &Arc<Sessions>,
        identity: Identity,
        application: String,
        (address, protocol, encryption): (Option<String>, &'static str, Option<EncryptionFacts>),
        cancel: Cancel,
    ) -> Self {
        let started_ms = sessions.wall_ms();
        let now = Now { changed_ms: Some(started_ms), ..Now::default() };
        let number = identity.pid;
        let shown = Arc::new(Shown {
            identity,
            address,
            protocol,
            encryption,
            application,
            cancel,
            ended: AtomicBool::new(false),
            started_ms,
            now: Mutex::new(now),
            statements: AtomicU64::new(0),
        });
        sessions.by_number.lock().insert(number, Arc::downgrade(&shown));
        Self { sessions: Arc::clone(sessions), shown }
    }

    /// Whether somebody ended it.
    pub(crate) fn is_ended(&self) -> bool {
        // Relaxed: see `Sessions::terminate`.
        self.shown.ended.load(Ordering::Relaxed)
    }

    /// A statement begins.
    #[inline]
    pub(crate) fn begin(&self, statement: &Arc<Counted>) {
        let at = self.sessions.wall_ms();
        let mut now = self.shown.now.lock();
        if !now.statement.as_ref().is_some_and(|last| Arc::ptr_eq(last, statement)) {
            now.statement = Some(Arc::clone(statement));
        }
        now.running = true;
        now.query_started_ms = Some(at);
        now.changed_ms = Some(at);
        // Relaxed: a figure for people.
        self.shown.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// It ended.
    #[inline]
    pub(crate) fn end(&self, status: TransactionStatus) {
        let mut now = self.shown.now.lock();
        now.running = false;
        if status == TransactionStatus::Idle {
            now.transaction_started_ms = None;
        } else if now.status == TransactionStatus::Idle {
            now.transaction_started_ms = now.query_started_ms;
        }
        now.status = status;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut sessions = self.sessions.by_number.lock();
        let number = self.shown.identity.pid;
        // Another session may have the number by now.
        if sessions.get(&number).is_some_and(|shown| std::ptr::eq(shown.as_ptr(), Arc::as_ptr(&self.shown))) {
            sessions.remove(&number);
        }
    }
}

impl Shown {
    fn facts(&self) -> SessionFacts {
        let now = self.now.lock().clone();
        let state = match (now.running, now.status) {
            (true, _) => "active",
            (false, TransactionStatus::Idle) => "idle",
            (false, TransactionStatus::InBlock) => "idle in transaction",
            (false, TransactionStatus::Failed) => "idle in transaction (aborted)",
        };
        SessionFacts {
            pid: self.identity.pid,
            user: self.identity.user.clone(),
            database: self.identity.database.clone(),
            application: self.application.clone(),
            address: self.address.clone(),
            encryption: self.encryption.clone(),
            protocol: self.protocol,
            state,
            query: now.statement.map(|counted| counted.query().to_string()).unwrap_or_default(),
            started_ms: self.started_ms,
            query_started_ms: now.query_started_ms,
            transaction_started_ms: now.transaction_started_ms,
            state_changed_ms: now.changed_ms,
            statements: self.statements.load(Ordering::Relaxed),
        }
    }
}
