//! What is wrong with a request, and the line that says so.

/// The rule that a request broke. [`Malformed::compose`] writes the answer that memcached's clients expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// No such command, or one that takes other arguments.
    UnknownCommand,
    /// Too few arguments, a key that is too long or holds control characters, a number that is none.
    CommandLine,
    /// `stats cachedump` without class and limit.
    TooFewArguments,
    /// The value is not followed by a line end where its length says.
    DataChunk,
    /// An expiry time that is no number.
    Exptime,
    /// `incr` or `decr` by something that is no 64-bit number.
    Delta,
    /// The value is longer than the limit.
    ValueTooLarge,
    /// A line longer than the limit; where it ends is unknown, so the connection is closed.
    LineTooLong,
    /// A request of HTTP: somebody took this for a web server. Closed; what is answered is for the server to say, which
    /// knows where HTTP is spoken.
    Http,
    /// `delete` with arguments that it does not take.
    DeleteUsage,
    /// `stats detail` with something else than `on`, `off` or `dump`.
    StatsDetailUsage,
    /// `stats cachedump` with a class that cannot be.
    SlabClass,
    /// `cache_memlimit` below memcached's least.
    MemlimitTooSmall,
    /// `cache_memlimit` with a number that can only be bytes.
    MemlimitInBytes,
    /// `shutdown` with something else than `graceful`.
    ShutdownMode,
    /// A slab class that memcached cannot have, or no class at all.
    BadClass,
    /// `slabs reassign` with a class that memcached cannot have.
    SlabsClass,
    /// `slabs reassign` from a class to itself.
    SlabsSame,
    /// `slabs reassign`: there is no page to move.
    SlabsNoSpare,
    /// `lru_crawler sleep` with more than a second.
    CrawlerSleep,
    /// An unknown flag of a meta command.
    MetaLetter,
    /// A meta command's flag that comes twice.
    MetaDuplicate,
    /// `md` or `ma` with a flag that is unknown, comes twice, or has a malformed token.
    MetaFlag,
    /// More flags than a meta command can have.
    MetaFlags,
    /// A token of a meta command that is no number, or cannot be sent back.
    MetaToken,
    /// An opaque longer than its limit.
    MetaOpaque,
    /// A key that is to be base64 and is not.
    MetaKey,
    /// A mode that is not one letter.
    MetaModeLength,
    /// A mode that `ms` does not have.
    MetaSetMode,
    /// A mode that `ma` does not have.
    MetaArithmeticMode,
    /// `sql` or `sqlp` without the lengths they need.
    SqlUsage,
    /// `call` without a name and a length.
    CallUsage,
    /// A statement or its parameters are not followed by a line end where their length says.
    SqlDataChunk,
    /// The statement is longer than the limit.
    StatementTooLarge {
        /// The declared length.
        bytes: u64,
        /// `sql_statement_max`.
        limit: usize,
    },
    /// The parameters are longer than the limit.
    ParametersTooLarge {
        /// The declared length.
        bytes: u64,
        /// `sql_parameters_max`.
        limit: usize,
    },
}

impl Malformed {
    /// The answers that are always the same. The words are memcached's where it has the same error: client
    /// libraries compare them.
    pub(crate) fn fixed_line(self) -> &'static [u8] {
        match self {
            Self::UnknownCommand => b"ERROR\r\n",
            Self::CommandLine => b"CLIENT_ERROR bad command line format\r\n",
            Self::TooFewArguments => b"CLIENT_ERROR bad command line\r\n",
            Self::DataChunk => b"CLIENT_ERROR bad data chunk\r\n",
            Self::Exptime => b"CLIENT_ERROR invalid exptime argument\r\n",
            Self::Delta => b"CLIENT_ERROR invalid numeric delta argument\r\n",
            Self::ValueTooLarge => b"SERVER_ERROR object too large for cache\r\n",
            Self::LineTooLong => b"CLIENT_ERROR line too long\r\n",
            Self::DeleteUsage => {
                b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Self::StatsDetailUsage => b"CLIENT_ERROR usage: stats detail on|off|dump\r\n",
            Self::SlabClass => b"CLIENT_ERROR Illegal slab id\r\n",
            Self::MemlimitTooSmall => b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
            Self::MemlimitInBytes => b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n",
            Self::ShutdownMode => b"CLIENT_ERROR invalid shutdown mode\r\n",
            Self::BadClass => b"BADCLASS invalid class id\r\n",
            Self::SlabsClass => b"BADCLASS invalid src or dst class id\r\n",
            Self::SlabsSame => b"SAME src and dst class are identical\r\n",
            Self::SlabsNoSpare => b"NOSPARE source class has no spare pages\r\n",
            Self::CrawlerSleep => b"CLIENT_ERROR sleep must be one second or less\r\n",
            Self::MetaLetter => b"CLIENT_ERROR invalid flag\r\n",
            Self::MetaDuplicate => b"CLIENT_ERROR duplicate flag\r\n",
            Self::MetaFlag => b"CLIENT_ERROR invalid or duplicate flag\r\n",
            Self::MetaFlags => b"CLIENT_ERROR options flags are too long\r\n",
            Self::MetaToken => b"CLIENT_ERROR bad token in command line format\r\n",
            Self::MetaOpaque => b"CLIENT_ERROR opaque token too long\r\n",
            Self::MetaKey => b"CLIENT_ERROR error decoding key\r\n",
            Self::MetaModeLength => b"CLIENT_ERROR incorrect length for M token\r\n",
            Self::MetaSetMode => b"CLIENT_ERROR invalid mode for ms M token\r\n",
            Self::MetaArithmeticMode => b"CLIENT_ERROR invalid mode for ma M token\r\n",
            Self::SqlUsage => {
                b"ERROR 08P01 usage: sql <bytes> or sqlp <statement bytes> <parameter bytes>, then the data\r\n"
            }
            Self::CallUsage => b"ERROR 08P01 usage: call <name> <bytes>, then the arguments as a JSON array\r\n",
            Self::SqlDataChunk => b"ERROR 08P01 the data does not end where its length says\r\n",
            Self::Http | Self::StatementTooLarge { .. } | Self::ParametersTooLarge { .. } => b"",
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
