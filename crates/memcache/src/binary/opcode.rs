//! What each opcode asks for, and what its frame must hold.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Get, `GetK`: the value, flags and CAS of a key.
    Get {
        /// The answer repeats the key.
        with_key: bool,
    },
    /// GAT, `GATK`: as Get, and the value has a new expiry time.
    GetAndTouch {
        /// The answer repeats the key.
        with_key: bool,
        /// The new expiry time; see [`Command::Store`].
        exptime: u32,
    },
    /// Touch: a new expiry time; flags and CAS are answered.
    Touch {
        /// The new expiry time; see [`Command::Store`].
        exptime: u32,
    },
    /// Set, Add, Replace.
    Store {
        /// Under which condition; a CAS in the request counts instead of it.
        condition: Condition,
        /// The peer's own 32 bits, given back with the value.
        flags: u32,
        /// 0 is never; up to 2,592,000 is seconds from now; above is a Unix time. There are no negative ones.
        exptime: u32,
    },
    /// Append; otherwise Prepend. Flags and expiry time of the value stay as they are.
    Join {
        /// Append.
        append: bool,
    },
    /// Delete.
    Delete,
    /// Decrement; otherwise Increment.
    Arithmetic {
        /// Decrement.
        decrement: bool,
        /// How much to add or take away.
        delta: u64,
        /// What a missing number begins with.
        initial: u64,
        /// The expiry time of a number that is made; none: a missing number is not made.
        exptime: Option<u32>,
    },
    /// Flush: everything stored until now, or until a moment to come, is gone.
    Flush {
        /// When, written as an expiry time; none is now.
        exptime: Option<u32>,
    },
    /// Stat, of the subject that the key says.
    Stat,
    /// Noop: the peer learns that everything before it was answered.
    Noop,
    /// Version.
    Version,
    /// Quit: the connection is closed, with an answer unless it is quiet.
    Quit,
}

/// Under which condition a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    Set,
    /// If the key is not there.
    Add,
    /// If the key is there.
    Replace,
}

/// The expiry time that says: do not make a missing number.
const MAKE_NOTHING: u32 = u32::MAX;

/// An opcode: what it asks for, and whether quietly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opcode {
    kind: Kind,
    pub(super) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Get {
        with_key: bool,
    },
    GetAndTouch {
        with_key: bool,
    },
    Touch,
    Store(Condition),
    Join {
        append: bool,
    },
    Delete,
    Arithmetic {
        decrement: bool,
    },
    Flush,
    Stat,
    Noop,
    Version,
    Quit,
    /// The list of SASL's mechanisms.
    SaslList,
    /// A step of SASL: the key is the mechanism.
    Sasl,
}

impl Opcode {
    /// The table of opcodes. What is not in it is unknown, as to memcached: so are the verbosity (1b) and the commands
    /// on ranges (30 to 3c), which memcached's header file names.
    #[inline]
    pub(super) fn of(opcode: u8) -> Option<Self> {
        let (kind, quiet) = match opcode {
            0x00 => (Kind::Get { with_key: false }, false),
            0x01 => (Kind::Store(Condition::Set), false),
            0x02 => (Kind::Store(Condition::Add), false),
            0x03 => (Kind::Store(Condition::Replace), false),
            0x04 => (Kind::Delete, false),
            0x05 => (Kind::Arithmetic { decrement: false }, false),
            0x06 => (Kind::Arithmetic { decrement: true }, false),
            0x07 => (Kind::Quit, false),
            0x08 => (Kind::Flush, false),
            0x09 => (Kind::Get { with_key: false }, true),
            0x0a => (Kind::Noop, false),
            0x0b => (Kind::Version, false),
            0x0c => (Kind::Get { with_key: true }, false),
            0x0d => (Kind::Get { with_key: true }, true),
            0x0e => (Kind::Join { append: true }, false),
            0x0f => (Kind::Join { append: false }, false),
            0x10 => (Kind::Stat, false),
            0x11 => (Kind::Store(Condition::Set), true),
            0x12 => (Kind::Store(Condition::Add), true),
            0x13 => (Kind::Store(Condition::Replace), true),
            0x14 => (Kind::Delete, true),
            0x15 => (Kind::Arithmetic { decrement: false }, true),
            0x16 => (Kind::Arithmetic { decrement: true }, true),
            0x17 => (Kind::Quit, true),
            0x18 => (Kind::Flush, true),
            0x19 => (Kind::Join { append: true }, true),
            0x1a => (Kind::Join { append: false }, true),
            0x1c => (Kind::Touch, false),
            0x1d => (Kind::GetAndTouch { with_key: false }, false),
            0x1e => (Kind::GetAndTouch { with_key: false }, true),
            0x20 => (Kind::SaslList, false),
            0x21 | 0x22 => (Kind::Sasl, false),
            0x23 => (Kind::GetAndTouch { with_key: true }, false),
            0x24 => (Kind::GetAndTouch { with_key: true }, true),
            _ => return None,
        };
        Some(Self { kind, quiet })
    }

    /// Whether a frame may have so many bytes of extras, key and value.
    #[inline]
    pub(super) fn fits(self, extras: usize, key: usize, value: usize) -> bool {
        match self.kind {
            Kind::Get { .. } | Kind::Delete => extras == 0 && key > 0 && value == 0,
            Kind::Store(_) => extras == 8 && key > 0,
            Kind::Join { .. } | Kind::Sasl => extras == 0 && key > 0,
            Kind::GetAndTouch { .. } | Kind::Touch => extras == 4 && key > 0 && value == 0,
            Kind::Arithmetic { .. } => extras == 20 && key > 0 && value == 0,
            Kind::Flush => (extras == 0 || extras == 4) && key == 0 && value == 0,
            Kind::Stat => extras == 0 && value == 0,
            Kind::Noop | Kind::Version | Kind::Quit | Kind::SaslList => extras == 0 && key == 0 && value == 0,
        }
    }

    /// Whether it is executed. Without authentication SASL is not.
    #[inline]
    pub(super) fn is_served(self) -> bool {
        !matches!(self.kind, Kind::SaslList | Kind::Sasl)
    }

    /// Whether it brings a value to store.
    #[inline]
    pub(super) fn stores(self) -> bool {
        matches!(self.kind, Kind::Store(_) | Kind::Join { .. })
    }

    /// Whether it replaces whatever is there, so that what it could not replace is to go.
    pub(super) fn replaces_always(self) -> bool {
        self.kind == Kind::Store(Condition::Set)
    }

    /// The command with its extras, which fit; none where it is not served.
    #[inline]
    pub(super) fn command(self, extras: &[u8]) -> Option<Command> {
        Some(match self.kind {
            Kind::Get { with_key } => Command::Get { with_key },
            Kind::Store(condition) => {
                let (flags, exptime) = (number_32(extras), number_32(extras.get(4..)?));
                Command::Store { condition, flags, exptime }
            }
            Kind::GetAndTouch { with_key } => Command::GetAndTouch { with_key, exptime: number_32(extras) },
            Kind::Touch => Command::Touch { exptime: number_32(extras) },
            Kind::Join { append } => Command::Join { append },
            Kind::Delete => Command::Delete,
            Kind::Arithmetic { decrement } => {
                let (delta, initial) = (number_64(extras), number_64(extras.get(8..)?));
                let exptime = number_32(extras.get(16..)?);
                let exptime = (exptime != MAKE_NOTHING).then_some(exptime);
                Command::Arithmetic { decrement, delta, initial, exptime }
            }
            Kind::Flush => Command::Flush { exptime: (!extras.is_empty()).then(|| number_32(extras)) },
            Kind::Stat => Command::Stat,
            Kind::Noop => Command::Noop,
            Kind::Version => Command::Version,
            Kind::Quit => Command::Quit,
            Kind::SaslList | Kind::Sasl => return None,
        })
    }
}

/// The number in the first four bytes.
#[inline]
fn number_32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The number in the first eight bytes.
#[inline]
fn number_64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
