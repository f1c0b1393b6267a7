//! The numbers of `enum sqlcached_status`.

use sqlcached_client::{Error, Lookup};

/// How a call came out, for C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// No such row.
    Miss = 1,
    /// A row that was invalidated.
    Stale = 2,
    /// A row that ends soon.
    Due = 3,
    /// The condition of a write did not hold.
    NotStored = 4,
    /// Waited in vain.
    Timeout = 5,
    /// Shared memory cannot tell.
    Elsewhere = 6,
    /// What was passed cannot be.
    ErrorArgument = -1,
    /// No daemon.
    ErrorUnavailable = -2,
    /// Shared memory that is not to be read.
    ErrorRefused = -3,
    /// No such table or column.
    ErrorNoTable = -4,
    /// A statement failed.
    ErrorStatement = -5,
    /// The daemon refused.
    ErrorServer = -6,
    /// A defect of ours.
    ErrorInternal = -7,
}

impl Status {
    /// What a failure of the client's is called.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Socket(_) => Self::ErrorUnavailable,
            Error::Refused(_) | Error::Protocol(_) => Self::ErrorServer,
            Error::Sql { .. } => Self::ErrorStatement,
            Error::Key(_) | Error::Unreachable(_) => Self::ErrorArgument,
            Error::NoTable(_) | Error::NoColumn(_) => Self::ErrorNoTable,
            Error::Arena(_) => Self::ErrorRefused,
            _ => Self::ErrorInternal,
        }
    }

    /// What a read came to, without its content.
    pub(crate) fn of_lookup<T>(lookup: &Lookup<T>) -> Self {
        match lookup {
            Lookup::Hit(_) => Self::Ok,
            Lookup::Stale(_) => Self::Stale,
            Lookup::Due(_) => Self::Due,
            Lookup::Miss => Self::Miss,
        }
    }
}
