//! Advisory locks as functions name them: `pg_advisory_lock(key)` and similar ones.

/// What a lock is called: one number of 64 bits, or two of 32 bits. They never name the same lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockKey {
    /// The upper half of the one number, or the first of two.
    pub upper: u32,
    /// The lower half, or the second.
    pub lower: u32,
    /// There are two numbers.
    pub pair: bool,
}

impl LockKey {
    /// The lock of one number.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "its two halves, as pg_locks shows them"
    )]
    pub fn one(key: i64) -> Self {
        Self { upper: (key >> 32) as u32, lower: key as u32, pair: false }
    }

    /// The lock of two numbers.
    pub fn two(first: i32, second: i32) -> Self {
        Self { upper: first.cast_unsigned(), lower: second.cast_unsigned(), pair: true }
    }
}

/// Who else may hold it meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Nobody.
    Exclusive,
    /// Others that share it.
    Shared,
}

impl LockMode {
    /// Whether two sessions cannot hold a lock so at once.
    pub fn conflicts(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }

    /// PostgreSQL's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "ExclusiveLock",
            Self::Shared => "ShareLock",
        }
    }
}

/// When it is released, if nobody does it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockScope {
    /// When the session ends.
    Session,
    /// When the transaction ends.
    Transaction,
}

/// What a function asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockCall {
    /// The lock, now or not at all.
    Try(LockKey, LockMode, LockScope),
    /// The lock; the statement waits until it is free.
    Wait(LockKey, LockMode, LockScope),
    /// The end of a session's lock.
    Unlock(LockKey, LockMode),
    /// The end of all of them.
    UnlockAll,
}

/// A lock that is held or waited for, as `pg_locks` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockFacts {
    /// Its name.
    pub key: LockKey,
    /// How.
    pub mode: LockMode,
    /// The session's number.
    pub pid: i32,
    /// Unix milliseconds since when it waits; none where it holds the lock.
    pub waits_since_ms: Option<i64>,
}
