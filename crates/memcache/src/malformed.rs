//! What is wrong with a request, and the line that says so.

/// The rule that a request broke. [`Malformed::line`] is the answer that memcached's clients expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// No such command, or one that takes other arguments.
    UnknownCommand,
    /// Too few arguments, a key that is too long or holds control characters, a number that is none.
    CommandLine,
    /// Arguments that are not as they should be, in commands that say only that.
    BadCommandLine,
    /// The value is not followed by a line end where its length says.
    DataChunk,
    /// An expiry time that is no number.
    Exptime,
    /// `incr` or `decr` by something that is no 64-bit number.
    Delta,
    /// The value is longer than the limit.
    ValueTooLarge,
    /// The statement is longer than the limit.
    StatementTooLarge,
    /// The parameters are longer than the limit.
    ParametersTooLarge,
    /// A line longer than the limit; where it ends is unknown, so the connection is closed.
    LineTooLong,
    /// A request of another protocol; the connection is closed.
    OtherProtocol,
    /// `delete` with arguments that it does not take.
    DeleteUsage,
    /// `stats detail` with something else than `on`, `off` or `dump`.
    StatsDetailUsage,
    /// `stats cachedump` with a class that cannot be.
    SlabClass,
}

impl Malformed {
    /// The answer, with its line end; empty where memcached closes the connection without a word.
    pub fn line(self) -> &'static [u8] {
        match self {
            Self::UnknownCommand => b"ERROR\r\n",
            Self::CommandLine => b"CLIENT_ERROR bad command line format\r\n",
            Self::BadCommandLine => b"CLIENT_ERROR bad command line\r\n",
            Self::DataChunk => b"CLIENT_ERROR bad data chunk\r\n",
            Self::Exptime => b"CLIENT_ERROR invalid exptime argument\r\n",
            Self::Delta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
            Self::ValueTooLarge => b"SERVER_ERROR object too large for cache\r\n",
            Self::StatementTooLarge => b"ERROR 54000 statement is longer than sql_statement_max\r\n",
            Self::ParametersTooLarge => b"ERROR 54000 parameters are longer than sql_parameters_max\r\n",
            Self::LineTooLong | Self::OtherProtocol => b"",
            Self::DeleteUsage => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Self::StatsDetailUsage => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
            Self::SlabClass => b"CLIENT_ERROR Illegal slab id\r\n",
        }
    }
}

/// What becomes of the connection after a malformed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next request follows.
    Continue,
    /// The bytes that follow cannot be trusted: answer and close.
    Close,
}
