//! Who may do what: one table of commands and what they take, looked at in one place, `Session::allow`.

use sql::{Privileges, Rights};

use crate::latency::Class;

/// What a session may be asked to do. Every entry of [`crate::Session`] names one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reading values by key.
    Get,
    /// Reading values and changing their deadlines.
    GetAndTouch,
    /// Reading values, and taking the places of missing ones.
    GetOrMake,
    /// Storing values, whatever was there.
    Set,
    /// Storing values where there are none.
    Add,
    /// Storing values over others, or joined to them.
    Replace,
    /// Removing a key.
    Delete,
    /// Marking a value as stale.
    Invalidate,
    /// `incr` and `decr`.
    Arithmetic,
    /// The same, with missing numbers made.
    ArithmeticOrMake,
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

/// All commands.
pub const COMMANDS: &[Command] = &[
    Command::Get,
    Command::GetAndTouch,
    Command::GetOrMake,
    Command::Set,
    Command::Add,
    Command::Replace,
    Command::Delete,
    Command::Invalidate,
    Command::Arithmetic,
    Command::ArithmeticOrMake,
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

/// What commands take, and what sessions have: privileges on rows, and what concerns no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask(u16);

impl Mask {
    /// What a peer has before it says who it is.
    pub(crate) const NONE: Self = Self(0);
    /// SQL statements.
    const SQL: Self = Self(1 << 8);
    /// Counters and settings.
    const MONITOR: Self = Self(1 << 9);
    /// What concerns everybody.
    const ADMINISTER: Self = Self(1 << 10);

    /// Privileges on the rows of a table. Calling a function is none: its bit means something else here.
    pub(crate) const fn of_rows(privileges: Privileges) -> Self {
        Self(privileges.without(Privileges::EXECUTE).bits())
    }

    /// What rights bring. Everybody who was let in may give statements; what they need of tables is compared when they
    /// run.
    pub(crate) fn of(rights: Rights) -> Self {
        let Rights { superuser, monitors, .. } = rights;
        let monitor = if superuser || monitors { Self::MONITOR } else { Self::NONE };
        let administer = if superuser { Self::ADMINISTER } else { Self::NONE };
        Self::of_rows(rights.on_every_table()).and(Self::SQL).and(monitor).and(administer)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the other are among them.
    #[inline]
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Command {
    /// Whether it changes rows.
    #[inline]
    pub(crate) const fn writes(self) -> bool {
        const WRITING: Mask = Mask::of_rows(
            Privileges::INSERT.and(Privileges::UPDATE).and(Privileges::DELETE).and(Privileges::TRUNCATE),
        );
        self.takes().0 & WRITING.0 != 0
    }

    /// How the list of refusals calls it: by the memcached command that it is meant for.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::GetAndTouch => "gat",
            Self::GetOrMake => "mg N",
            Self::Set => "set",
            Self::Add => "add",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Invalidate => "md I",
            Self::Arithmetic => "incr",
            Self::ArithmeticOrMake => "ma N",
            Self::Touch => "touch",
            Self::FlushAll => "flush_all",
            Self::Stats => "stats",
            Self::StatsReset => "stats reset",
            Self::Sql => "sql",
            Self::DumpKeys => "lru_crawler metadump",
            Self::Watch => "watch",
            Self::Configure => "an operator's command",
            Self::Shutdown => "shutdown",
        }
    }

    /// The class of its times.
    #[inline]
    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Get | Self::GetAndTouch | Self::GetOrMake => Class::GET,
            Self::Set | Self::Add | Self::Replace => Class::SET,
            Self::Delete | Self::Invalidate => Class::DELETE,
            _ => Class::OTHER,
        }
    }

    /// The table: what each command takes. A new command does not compile without its line.
    #[inline]
    pub(crate) const fn takes(self) -> Mask {
        const SELECT: Privileges = Privileges::SELECT;
        const INSERT: Privileges = Privileges::INSERT;
        const UPDATE: Privileges = Privileges::UPDATE;
        match self {
            Self::Get => Mask::of_rows(SELECT),
            Self::GetAndTouch | Self::Arithmetic => Mask::of_rows(SELECT.and(UPDATE)),
            Self::GetOrMake | Self::ArithmeticOrMake => Mask::of_rows(SELECT.and(INSERT).and(UPDATE)),
            Self::Set => Mask::of_rows(INSERT.and(UPDATE)),
            Self::Add => Mask::of_rows(INSERT),
            Self::Replace | Self::Invalidate | Self::Touch => Mask::of_rows(UPDATE),
            Self::Delete => Mask::of_rows(Privileges::DELETE),
            Self::FlushAll => Mask::of_rows(Privileges::TRUNCATE),
            Self::Sql => Mask::SQL,
            Self::Stats => Mask::MONITOR,
            Self::StatsReset | Self::DumpKeys | Self::Watch | Self::Configure | Self::Shutdown => {
                Mask::ADMINISTER
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_of_the_table() {
        use Command as C;
        let none = Rights::NONE;
        let writing = [C::Set, C::Add, C::Replace, C::Delete, C::Invalidate, C::Touch];
        let both = [C::Get, C::GetAndTouch, C::GetOrMake, C::Arithmetic, C::ArithmeticOrMake];
        let reads_and_writes: Vec<C> = writing.into_iter().chain(both).collect();
        let roles = [
            (Rights::ALL, COMMANDS.to_vec()),
            (none, vec![]),
            (Rights { reads: true, ..none }, vec![C::Get]),
            (Rights { writes: true, ..none }, writing.to_vec()),
            (Rights { reads: true, writes: true, ..none }, reads_and_writes),
            (Rights { monitors: true, ..none }, vec![C::Stats]),
            (Rights { signals: true, ..none }, vec![]),
        ];
        for (rights, allowed) in roles {
            for &command in COMMANDS {
                let has = Mask::of(rights).has(command.takes());
                let expected = command == C::Sql || allowed.contains(&command);
                assert_eq!(has, expected, "{rights:?} {command:?}");
                assert!(!Mask::NONE.has(command.takes()));
            }
        }
    }
}
