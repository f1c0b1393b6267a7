//! The one table of settings.
//!
//! Each row is a constant; [`ALL`] is the table. From it come the flags and `--help` ([`flags`]), the environment
//! variables, the configuration file's parser ([`file`]), the commented default file and `docs/settings.md`
//! ([`documents`]). To add a setting, add a constant and name it in [`ALL`].
//!
//! A setting given in several places is taken from the first of: flag, environment, file, default.

pub(crate) mod chosen;
pub(crate) mod documents;
pub(crate) mod file;
pub(crate) mod flags;
mod memcached;
pub(crate) mod value;

pub(crate) use chosen::Chosen;
pub(crate) use value::{ANY_PORT, Address, Kind, SettingError, Value};

/// One setting: how it is named, what it accepts, what it does.
#[derive(Debug)]
pub(crate) struct Setting {
    /// PostgreSQL's name where it has the same thing; the long flag has hyphens for underscores.
    pub(crate) name: &'static str,
    /// memcached's letter, where memcached has the same thing.
    pub(crate) letter: Option<char>,
    /// memcached's long names that differ from ours; understood, not shown.
    pub(crate) aliases: &'static [&'static str],
    /// memcached's flag that switches it off.
    pub(crate) opposite: Option<(char, &'static str)>,
    /// What values look like.
    pub(crate) kind: Kind,
    /// The value when nobody gives one, written as in the file.
    pub(crate) default: &'static str,
    /// SIGHUP makes a new value count.
    pub(crate) reloadable: bool,
    /// Under which heading it stands.
    pub(crate) section: Section,
    /// What it is for, in one sentence.
    pub(crate) help: &'static str,
}

/// The headings of `--help`, the file and the document, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Network,
    Memory,
    Sql,
    Log,
}

impl Section {
    pub(crate) const ALL: [Self; 4] = [Self::Network, Self::Memory, Self::Sql, Self::Log];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Network => "Connections",
            Self::Memory => "Memory and the arena",
            Self::Sql => "SQL",
            Self::Log => "Log",
        }
    }
}

impl Setting {
    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("SQLCACHED_{}", self.name.to_ascii_uppercase())
    }

    /// The long flag, without its dashes.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// The least memory, in MiB: below, the segments that are open for the classes of rows leave little for rows.
pub(crate) const MEMORY_MB_MIN: u64 = 8;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// An hour; longer statements and reloads belong elsewhere.
const HOUR_MS: u64 = 3_600_000;

/// A day, for connections that may sleep.
const DAY_MS: u64 = 24 * HOUR_MS;

pub(crate) static PORT: Setting = Setting {
    name: "port",
    letter: Some('p'),
    aliases: &[],
    opposite: None,
    kind: Kind::Port,
    default: "11211",
    reloadable: false,
    section: Section::Network,
    help: "TCP port on which memcached clients and the sql command are served; 0 switches TCP off, -1 takes any free \
           port. Where only a path for the Unix socket is given (-s), TCP is off, that of sql_port too.",
};

pub(crate) static LISTEN_ADDRESSES: Setting = Setting {
    name: "listen_addresses",
    letter: Some('l'),
    aliases: &["listen"],
    opposite: None,
    kind: Kind::Addresses,
    default: "127.0.0.1",
    reloadable: false,
    section: Section::Network,
    help: "Addresses to listen on, comma-separated, each with a port of its own where it names one (127.0.0.1:11212); \
           only loopback addresses until there is authentication.",
};

pub(crate) static UNIX_SOCKET_PATH: Setting = Setting {
    name: "unix_socket_path",
    letter: Some('s'),
    aliases: &["unix-socket"],
    opposite: None,
    kind: Kind::Path { words: &["auto", "none"] },
    default: "auto",
    reloadable: false,
    section: Section::Network,
    help: "Unix socket to listen on; auto is <port>.sock in a private directory under /dev/shm, none switches it off. A \
           path switches TCP off where neither port nor listen_addresses are given.",
};

pub(crate) static SQL_PORT: Setting = Setting {
    name: "sql_port",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Port,
    default: "5433",
    reloadable: false,
    section: Section::Network,
    help: "TCP port on which PostgreSQL clients are served; 0 switches this listener off, its Unix socket too, and -1 \
           takes any free port. Where it is not given and in use, the daemon starts without it, and logs that.",
};

pub(crate) static SQL_SOCKET_DIR: Setting = Setting {
    name: "sql_socket_dir",
    letter: None,
    aliases: &["unix_socket_directories"],
    opposite: None,
    kind: Kind::Path { words: &["auto", "none"] },
    default: "auto",
    reloadable: false,
    section: Section::Network,
    help: "Directory of the Unix socket for PostgreSQL clients, .s.PGSQL.<sql_port>; auto is a private directory \
           under /dev/shm, none switches the socket off.",
};

pub(crate) static UNIX_SOCKET_PERMISSIONS: Setting = Setting {
    name: "unix_socket_permissions",
    letter: Some('a'),
    aliases: &["unix-mask"],
    opposite: None,
    kind: Kind::Permissions,
    default: "0700",
    reloadable: false,
    section: Section::Network,
    help: "Who may use the Unix sockets, as chmod writes it in octal.",
};

pub(crate) static MAX_CONNECTIONS: Setting = Setting {
    name: "max_connections",
    letter: Some('c'),
    aliases: &["conn-limit"],
    opposite: None,
    kind: Kind::Number { min: 1, max: 1_000_000 },
    default: "1024",
    reloadable: true,
    section: Section::Network,
    help: "Connections served at once; one more is told so and closed.",
};

pub(crate) static THREADS: Setting = Setting {
    name: "threads",
    letter: Some('t'),
    aliases: &[],
    opposite: None,
    kind: Kind::Number { min: 1, max: 256 },
    default: "4",
    reloadable: false,
    section: Section::Network,
    help: "Threads that serve memcached commands.",
};

pub(crate) static IDLE_TIMEOUT: Setting = Setting {
    name: "idle_timeout",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Time { min: 0, max: DAY_MS },
    default: "0",
    reloadable: true,
    section: Section::Network,
    help: "Closes a connection that has sent nothing for this long; 0 lets it sleep.",
};

pub(crate) static FLUSH_ENABLED: Setting = Setting {
    name: "flush_enabled",
    letter: None,
    aliases: &[],
    opposite: Some(('F', "disable-flush-all")),
    kind: Kind::Switch,
    default: "on",
    reloadable: false,
    section: Section::Network,
    help: "Whether memcached clients may use flush_all.",
};

pub(crate) static DUMP_ENABLED: Setting = Setting {
    name: "dump_enabled",
    letter: None,
    aliases: &[],
    opposite: Some(('X', "disable-dumping")),
    kind: Kind::Switch,
    default: "on",
    reloadable: false,
    section: Section::Network,
    help: "Whether memcached clients may list keys: stats cachedump, lru_crawler metadump and mgdump.",
};

pub(crate) static WATCH_ENABLED: Setting = Setting {
    name: "watch_enabled",
    letter: None,
    aliases: &[],
    opposite: Some(('W', "disable-watch")),
    kind: Kind::Switch,
    default: "on",
    reloadable: false,
    section: Section::Network,
    help: "Whether memcached clients may watch what others do.",
};

pub(crate) static SHUTDOWN_ENABLED: Setting = Setting {
    name: "enable_shutdown",
    letter: Some('A'),
    aliases: &[],
    opposite: None,
    kind: Kind::Switch,
    default: "off",
    reloadable: false,
    section: Section::Network,
    help: "Whether memcached clients may stop the daemon with shutdown.",
};

pub(crate) static LISTEN_BACKLOG: Setting = Setting {
    name: "listen_backlog",
    letter: Some('b'),
    aliases: &[],
    opposite: None,
    kind: Kind::Number { min: 1, max: 1 << 20 },
    default: "1024",
    reloadable: false,
    section: Section::Network,
    help: "Connections that the kernel holds until they are accepted.",
};

pub(crate) static STAT_DELIMITER: Setting = Setting {
    name: "stat_delimiter",
    letter: Some('D'),
    aliases: &[],
    opposite: None,
    kind: Kind::Character,
    default: "none",
    reloadable: false,
    section: Section::Network,
    help: "Counts commands by the part of their keys before this character (stats detail); none counts when a client \
           switches it on, by the colon.",
};

pub(crate) static USER: Setting = Setting {
    name: "user",
    letter: Some('u'),
    aliases: &[],
    opposite: None,
    kind: Kind::User,
    default: "none",
    reloadable: false,
    section: Section::Network,
    help: "User to become when started by root; started by somebody else the daemon stays who it is.",
};

pub(crate) static PID_FILE: Setting = Setting {
    name: "pid_file",
    letter: Some('P'),
    aliases: &["pidfile"],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: false,
    section: Section::Network,
    help: "File that holds the number of the process while it serves.",
};

pub(crate) static EVICTIONS: Setting = Setting {
    name: "evictions",
    letter: None,
    aliases: &[],
    opposite: Some(('M', "disable-evictions")),
    kind: Kind::Switch,
    default: "on",
    reloadable: false,
    section: Section::Memory,
    help: "Whether rows make room for new ones when memory is short; off, a write without room is refused.",
};

pub(crate) static MEMORY_MB: Setting = Setting {
    name: "memory_mb",
    letter: Some('m'),
    aliases: &["memory-limit"],
    opposite: None,
    kind: Kind::Number { min: 1, max: 16 << 20 },
    default: "64",
    reloadable: false,
    section: Section::Memory,
    help: "Memory for rows and their indexes, in MiB; what does not fit is evicted. Less than 8 is taken for 8.",
};

pub(crate) static MAX_ITEM_SIZE: Setting = Setting {
    name: "max_item_size",
    letter: Some('I'),
    aliases: &[],
    opposite: None,
    kind: Kind::Size { min: KIB, max: 128 * MIB },
    default: "1m",
    reloadable: false,
    section: Section::Memory,
    help: "Largest value or row that is stored.",
};

pub(crate) static ARENA: Setting = Setting {
    name: "arena",
    letter: Some('e'),
    aliases: &["memory-file"],
    opposite: None,
    kind: Kind::Path { words: &["auto", "none"] },
    default: "auto",
    reloadable: false,
    section: Section::Memory,
    help: "File that holds the rows and outlives the daemon; auto is <port>.arena in a private directory under \
           /dev/shm, named after the Unix socket's path where there is no port. none keeps the rows in the daemon's own \
           memory, and so does auto with port -1.",
};

pub(crate) static SHARED_MEMORY_FILE: Setting = Setting {
    name: "shared_memory_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["auto", "none"] },
    default: "auto",
    reloadable: false,
    section: Section::Memory,
    help: "File that holds the tables WITH (shared_memory = on), made when the first of them is, for its owner to write \
           and its group to read; auto is the arena's name and .shared, none allows no such tables.",
};

pub(crate) static HUGE_PAGES: Setting = Setting {
    name: "huge_pages",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Word { words: &["try", "off"] },
    default: "try",
    reloadable: false,
    section: Section::Memory,
    help: "Whether rows and the hash index are kept on pages of 2 MiB; try takes small ones where the system has no others.",
};

pub(crate) static COLD: Setting = Setting {
    name: "cold",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Switch,
    default: "off",
    reloadable: false,
    section: Section::Memory,
    help: "Starts empty even where the arena could be used again.",
};

pub(crate) static INIT_FILE: Setting = Setting {
    name: "init_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: false,
    section: Section::Memory,
    help: "SQL statements, separated by semicolons, that are run when the daemon starts with an empty arena.",
};

pub(crate) static SQL_THREADS: Setting = Setting {
    name: "sql_threads",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Number { min: 1, max: 256 },
    default: "2",
    reloadable: false,
    section: Section::Sql,
    help: "Threads that run SQL statements.",
};

pub(crate) static STATEMENT_TIMEOUT: Setting = Setting {
    name: "statement_timeout",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Time { min: 0, max: HOUR_MS },
    default: "30s",
    reloadable: true,
    section: Section::Sql,
    help: "Stops a SQL statement that has run for this long; 0 lets it run.",
};

pub(crate) static NATIVE_EXECUTION: Setting = Setting {
    name: "native_execution",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Switch,
    default: "on",
    reloadable: true,
    section: Section::Sql,
    help: "Runs common statements without SQLite; off lets SQLite run them all, which is slower and means the same.",
};

pub(crate) static MAX_RESULT_SIZE: Setting = Setting {
    name: "max_result_size",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Size { min: KIB, max: GIB },
    default: "64m",
    reloadable: false,
    section: Section::Sql,
    help: "Largest result of a SQL statement, as sent.",
};

pub(crate) static VERBOSITY: Setting = Setting {
    name: "verbosity",
    letter: Some('v'),
    aliases: &["verbose"],
    opposite: None,
    kind: Kind::Count { max: 3 },
    default: "0",
    reloadable: true,
    section: Section::Log,
    help: "What is logged to standard error: 0 the start and warnings, 1 also reloads and refusals, 2 debugging, 3 all; \
           as a flag, -v once for each step.",
};

/// The table.
pub(crate) static ALL: &[&Setting] = &[
    &PORT,
    &LISTEN_ADDRESSES,
    &UNIX_SOCKET_PATH,
    &SQL_PORT,
    &SQL_SOCKET_DIR,
    &UNIX_SOCKET_PERMISSIONS,
    &MAX_CONNECTIONS,
    &THREADS,
    &IDLE_TIMEOUT,
    &FLUSH_ENABLED,
    &DUMP_ENABLED,
    &WATCH_ENABLED,
    &SHUTDOWN_ENABLED,
    &LISTEN_BACKLOG,
    &STAT_DELIMITER,
    &USER,
    &PID_FILE,
    &MEMORY_MB,
    &EVICTIONS,
    &MAX_ITEM_SIZE,
    &ARENA,
    &SHARED_MEMORY_FILE,
    &HUGE_PAGES,
    &COLD,
    &INIT_FILE,
    &SQL_THREADS,
    &STATEMENT_TIMEOUT,
    &NATIVE_EXECUTION,
    &MAX_RESULT_SIZE,
    &VERBOSITY,
];

/// The rows of one heading.
pub(crate) fn of_section(section: Section) -> impl Iterator<Item = &'static Setting> {
    ALL.iter().copied().filter(move |setting| setting.section == section)
}

/// The row with this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Setting> {
    ALL.iter().copied().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, Section, of_section};

    #[test]
    fn names_and_letters_are_unique() {
        let names: BTreeSet<_> = ALL
            .iter()
            .flat_map(|setting| [setting.name].into_iter().chain(setting.aliases.iter().copied()))
            .collect();
        assert_eq!(names.len(), ALL.iter().map(|setting| 1 + setting.aliases.len()).sum::<usize>());
        let letters: Vec<_> = ALL.iter().filter_map(|setting| setting.letter).collect();
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), letters.len());
    }

    #[test]
    fn every_default_is_a_value_and_every_help_a_sentence() {
        for setting in ALL {
            setting.kind.parse(setting.default).unwrap();
            assert!(setting.help.ends_with('.'), "{}", setting.name);
        }
    }

    #[test]
    fn every_setting_stands_under_a_heading() {
        assert_eq!(Section::ALL.iter().map(|section| of_section(*section).count()).sum::<usize>(), ALL.len());
    }
}
