//! What the SQL layer keeps for a client between its statements. No SQLite in it: any executor can serve any session.

/// Where a session stands between two statements, as PostgreSQL's `ReadyForQuery` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Each statement is a transaction of its own.
    #[default]
    Idle,
    /// `BEGIN` was given.
    InBlock,
    /// A statement of the block failed: all but `ROLLBACK` and `ROLLBACK TO` are refused.
    Failed,
}

/// Something that a client should know beside the answer of a statement that worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `WARNING` or `NOTICE`.
    pub severity: &'static str,
    /// The SQLSTATE.
    pub state: &'static str,
    /// What happened.
    pub message: String,
    /// What to do about it, where there is something.
    pub hint: Option<String>,
}

/// Who speaks in a session, as the system tables tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number by which a cancel request names the session.
    pub pid: i32,
    /// The user that the client named.
    pub user: String,
    /// The database that the client named; there is one, called as everybody likes.
    pub database: String,
}

impl Default for Identity {
    fn default() -> Self {
        Self { pid: 0, user: "sqlcached".to_owned(), database: "sqlcached".to_owned() }
    }
}

/// One client's session: its open transaction, and what its statements have to say beside their answers.
#[derive(Debug, Default)]
pub struct Session {
    notices: Vec<Notice>,
    identity: Identity,
}

impl Session {
    /// A session without a transaction.
    pub fn new() -> Self {
        Self::default()
    }

    /// Who speaks.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Says who speaks, once it is known.
    pub fn set_identity(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Where it stands.
    pub fn status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// Takes what the statements since the last call had to say.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_may_move_between_threads() {
        fn sent<T: Send>(_: T) {}
        sent(Session::new());
    }
}
