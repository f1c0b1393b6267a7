//! Who may do what: one table of commands and privileges, looked at in one place.

use sql::Rights;

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
    /// Writing what was read: the answer depends on the row before.
    ReadWrite = 32,
    /// SQL statements.
    Sql = 4,
    /// Counters and settings.
    Monitor = 8,
    /// What concerns everybody.
    Administer = 16,
}

/// A set of privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Privileges(u8);

impl Command {
    /// The table: which privilege each command takes. A new command does not compile without its line.
    pub const fn takes(self) -> Privilege {
        match self {
            Self::Get => Privilege::Read,
            Self::Store | Self::Delete | Self::Touch => Privilege::Write,
            Self::GetAndTouch | Self::Arithmetic => Privilege::ReadWrite,
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

impl Privileges {
    /// What a peer has before it says who it is.
    pub(crate) const NONE: Self = Self(0);

    /// Those that rights bring. Everybody who was let in may give statements; what they need of tables is compared when
    /// they run.
    pub(crate) fn of(rights: Rights) -> Self {
        let Rights { superuser, reads, writes, monitors, signals: _ } = rights;
        let each = [
            (superuser || reads, Privilege::Read),
            (superuser || writes, Privilege::Write),
            (superuser || reads && writes, Privilege::ReadWrite),
            (true, Privilege::Sql),
            (superuser || monitors, Privilege::Monitor),
            (superuser, Privilege::Administer),
        ];
        Self(each.iter().filter(|(has, _)| *has).fold(0, |all, (_, privilege)| all | *privilege as u8))
    }

    /// Whether it is among them.
    #[inline]
    pub(crate) const fn has(self, privilege: Privilege) -> bool {
        self.0 & privilege as u8 != 0
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
        let none = Rights::NONE;
        let roles = [
            (Rights::ALL, &ALL[..]),
            (none, &[Command::Sql]),
            (Rights { reads: true, ..none }, &[Command::Get, Command::Sql]),
            (
                Rights { writes: true, ..none },
                &[Command::Store, Command::Delete, Command::Touch, Command::Sql],
            ),
            (
                Rights { reads: true, writes: true, ..none },
                &[
                    Command::Get,
                    Command::GetAndTouch,
                    Command::Store,
                    Command::Delete,
                    Command::Arithmetic,
                    Command::Touch,
                    Command::Sql,
                ],
            ),
            (Rights { monitors: true, ..none }, &[Command::Stats, Command::Sql]),
            (Rights { signals: true, ..none }, &[Command::Sql]),
        ];
        for (rights, allowed) in roles {
            for command in ALL {
                let has = Privileges::of(rights).has(command.takes());
                assert_eq!(has, allowed.contains(&command), "{rights:?} {command:?}");
                assert!(!Privileges::NONE.has(command.takes()));
            }
        }
    }
}
