//! Who may do what: one table of commands and privileges, looked at in one place.

/// What a session may be asked to do. Every entry of [`crate::Session`] names one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reading values by key.
    Get,
    /// Reading values and changing their deadlines.
    GetAndTouch,
    /// Storing values.
    Store,
    /// Removing a key.
    Delete,
    /// `incr` and `decr`.
    Arithmetic,
    /// Changing a deadline.
    Touch,
    /// Removing everything.
    FlushAll,
    /// Reading counters and settings.
    Stats,
    /// Setting counters back.
    StatsReset,
    /// A SQL statement.
    Sql,
    /// Listing keys.
    DumpKeys,
    /// Seeing what others do.
    Watch,
    /// Changing what concerns everybody while the server runs.
    Configure,
    /// Stopping the server.
    Shutdown,
}

/// What a role grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Privilege {
    /// Reading rows.
    Read = 1,
    /// Writing rows.
    Write = 2,
    /// Reading and writing, definitions included, by SQL.
    Sql = 4,
    /// Counters and settings.
    Monitor = 8,
    /// What concerns everybody.
    Administer = 16,
}

/// A named set of privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    name: &'static str,
    /// The bits of the privileges that it holds.
    granted: u8,
}

impl Command {
    /// The table: which privilege each command takes. A new command does not compile without its line.
    pub const fn takes(self) -> Privilege {
        match self {
            Self::Get => Privilege::Read,
            Self::GetAndTouch | Self::Store | Self::Delete | Self::Arithmetic | Self::Touch => {
                Privilege::Write
            }
            Self::Sql => Privilege::Sql,
            Self::Stats => Privilege::Monitor,
            Self::FlushAll
            | Self::StatsReset
            | Self::DumpKeys
            | Self::Watch
            | Self::Configure
            | Self::Shutdown => Privilege::Administer,
        }
    }
}

impl Role {
    /// Everybody on this machine whom the socket lets in; it may do everything. The only role as long as the daemon
    /// serves loopback addresses and Unix sockets only.
    pub const LOCAL: Self = Self { name: "local", granted: u8::MAX };

    /// A role that may do nothing: what a peer is before it says who it is.
    pub const NOBODY: Self = Self { name: "nobody", granted: 0 };

    /// Its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether it holds what the command takes.
    #[inline]
    pub const fn may(self, command: Command) -> bool {
        self.granted & command.takes() as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Command; 14] = [
        Command::Get,
        Command::GetAndTouch,
        Command::Store,
        Command::Delete,
        Command::Arithmetic,
        Command::Touch,
        Command::FlushAll,
        Command::Stats,
        Command::StatsReset,
        Command::Sql,
        Command::DumpKeys,
        Command::Watch,
        Command::Configure,
        Command::Shutdown,
    ];

    #[test]
    fn each_cell_of_the_table() {
        for command in ALL {
            assert!(Role::LOCAL.may(command));
            assert!(!Role::NOBODY.may(command));
            let reader = Role { name: "reader", granted: Privilege::Read as u8 };
            assert_eq!(reader.may(command), command == Command::Get);
        }
    }
}
