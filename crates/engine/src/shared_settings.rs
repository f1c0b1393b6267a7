//! Settings that the daemon has and that a session may change for itself: what both tables say of them.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSetting {
    /// Its name.
    pub name: &'static str,
    /// What it is where nobody sets it.
    pub default: &'static str,
}

/// How long a statement may run.
pub const STATEMENT_TIMEOUT: SharedSetting = SharedSetting { name: "statement_timeout", default: "30s" };
/// Whether statements that need no SQLite are run without it.
pub const NATIVE_EXECUTION: SharedSetting = SharedSetting { name: "native_execution", default: "on" };
