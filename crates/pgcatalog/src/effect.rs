//! What a statement's functions ask of the session: a read computes them, the session carries them out.

/// Something to do once the statement has worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// `pg_notify(channel, payload)`: as `NOTIFY`.
    Notify {
        /// Where.
        channel: String,
        /// What.
        payload: String,
    },
    /// `set_config(name, value, is_local)`: as `SET` or `SET LOCAL`; no value is the default.
    Set {
        /// The setting.
        name: String,
        /// Its value, found good.
        value: Option<String>,
        /// Up to the end of the transaction.
        local: bool,
    },
    /// A warning of a function.
    Warn {
        /// Its SQLSTATE.
        state: &'static str,
        /// What it says.
        message: String,
    },
}
