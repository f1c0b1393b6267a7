//! What a memcached command is answered with, before it becomes bytes.

use std::borrow::Cow;

use store::WriteError;

/// The outcome of a memcached command. The protocol crate knows the words for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The value was stored.
    Stored,
    /// The condition of `add`, `replace`, `append` or `prepend` did not hold.
    NotStored,
    /// `cas`: somebody has changed the value.
    Exists,
    /// There is no such key.
    NotFound,
    /// The key is gone.
    Deleted,
    /// The expiry time is new.
    Touched,
    /// Done.
    Ok,
    /// Counters begin again.
    Reset,
    /// The result of arithmetic.
    Number(u64),
    /// The value is no number to count with.
    NotANumber,
    /// The value is longer than the limit.
    TooLarge,
    /// There is no room for the value.
    OutOfMemory,
    /// The peer may not do this, or nobody may.
    NotAllowed(&'static str),
    /// The peer did something wrong.
    ClientError(Cow<'static, str>),
    /// The server cannot do it.
    ServerError(Cow<'static, str>),
}

impl Answer {
    /// The answer to a wrong use of a command that only test builds have.
    #[cfg(debug_assertions)]
    pub(crate) const fn client_error(message: &'static str) -> Self {
        Self::ClientError(Cow::Borrowed(message))
    }

    pub(crate) const fn server_error(message: &'static str) -> Self {
        Self::ServerError(Cow::Borrowed(message))
    }
}

/// The one place where a refused write becomes memcached's words.
impl From<WriteError> for Answer {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::TooLarge { .. } => Self::TooLarge,
            WriteError::Full => Self::OutOfMemory,
            WriteError::Key(message) => Self::ClientError(message.into()),
            // A row that others kept changing, a constraint with its name, a value that does not fit its column.
            error => Self::ServerError(error.to_string().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_writes_in_memcached_words() {
        let table: Vec<(WriteError, &str)> = vec![
            (WriteError::TooLarge { bytes: 2, limit: 1 }, "TooLarge"),
            (WriteError::Full, "OutOfMemory"),
            (
                WriteError::Unique { index: "by_page".into(), write: 0 },
                "SERVER duplicate key value violates unique constraint \"by_page\"",
            ),
            (
                WriteError::NotNull("page".into()),
                "SERVER null value in column \"page\" violates not-null constraint",
            ),
            (WriteError::Key("no key".into()), "CLIENT no key"),
            (WriteError::Type("no number".into()), "SERVER no number"),
            (WriteError::TableGone, "SERVER the table was dropped meanwhile"),
        ];
        for (error, expected) in table {
            let words = match Answer::from(error) {
                Answer::ClientError(message) => format!("CLIENT {message}"),
                Answer::ServerError(message) => format!("SERVER {message}"),
                other => format!("{other:?}"),
            };
            assert_eq!(words, expected);
        }
    }
}
