//! The one table of settings.
//!
//! Each row is a constant; [`ALL`] is the table. From it come the flags and `--help` ([`flags`]), the environment
//! variables, the configuration file's parser ([`file`]), the commented default file and `docs/settings.md`
//! ([`documents`]), the manual page and the completions of shells (`manual`). To add a setting, add a constant and name
//! it in [`ALL`].
//!
//! A setting given in several places is taken from the first of: flag, environment, file, default.

pub(crate) mod chosen;
pub(crate) mod documents;
pub(crate) mod file;
pub(crate) mod flags;
#[cfg(test)]
mod manual;
mod memcached;
pub(crate) mod value;

use engine::shared_settings;

pub(crate) use chosen::Chosen;
pub(crate) use value::{ANY_PORT, Address, Kind, NEVER, SettingError, Value};

/// One setting: how it is named, what it accepts, what it does.
#[derive(Debug)]
pub(crate) struct Setting {
    /// PostgreSQL's name if it has the same setting; the long flag has hyphens for underscores.
    pub(crate) name: &'static str,
    /// memcached's letter, if memcached has the same setting.
    pub(crate) letter: Option<char>,
    /// memcached's long names that differ from ours; understood, not shown.
    pub(crate) aliases: &'static [&'static str],
    /// memcached's flag that switches it off.
    pub(crate) opposite: Option<(char, &'static str)>,
    /// What values look like.
    pub(crate) kind: Kind,
    /// The default value, written as in the file.
    pub(crate) default: &'static str,
    /// SIGHUP applies a new value.
    pub(crate) reloadable: bool,
    /// Its heading.
    pub(crate) section: Section,
    /// What it does, in a sentence or two.
    pub(crate) help: &'static str,
}

/// The headings of `--help`, the file and the document, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Network,
    Access,
    Memory,
    Sql,
    Log,
}

impl Section {
    pub(crate) const ALL: [Self; 5] = [Self::Network, Self::Access, Self::Memory, Self::Sql, Self::Log];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Network => "Connections",
            Self::Access => "Access",
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
    help: "TCP port for memcached clients and the sql command; 0 switches TCP off, -1 takes any free port. If you give \
           only a path for the Unix socket (-s), TCP is off, for sql_port, too.",
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
    help: "Addresses to listen on, separated by commas, with or without a port (127.0.0.1:11212). Other addresses than \
           loopback ones need rules that ask for a proof (hba_file, roles_file). With ssl = on, notls: before an address \
           switches TLS off for its memcached clients, and mtls: demands a certificate of them.",
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
           path switches TCP off if neither port nor listen_addresses are given.",
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
    help: "TCP port for PostgreSQL clients; 0 switches it and its Unix socket off, -1 takes any free port. If you do not \
           give it and the port is in use, the daemon starts without it and logs a warning.",
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

pub(crate) static HTTP_PORT: Setting = Setting {
    name: "http_port",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Port,
    default: "11280",
    reloadable: false,
    section: Section::Network,
    help: "TCP port for HTTP: the console, metrics and health (docs/operations.md); 0 switches it off, -1 takes any free port. If you do \
           not give it and the port is in use, the daemon starts without it and logs a warning.",
};

pub(crate) static HTTP_LISTEN_ADDRESSES: Setting = Setting {
    name: "http_listen_addresses",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Addresses,
    default: "127.0.0.1",
    reloadable: false,
    section: Section::Network,
    help: "Addresses to listen on for HTTP; listen_addresses is for the other protocols. Other addresses than loopback ones \
           need roles_file and a rule that ends in: password protocol=http.",
};

pub(crate) static HTTP_HOSTS: Setting = Setting {
    name: "http_hosts",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Names,
    default: "none",
    reloadable: false,
    section: Section::Network,
    help: "Names by which HTTP clients may call the server, separated by commas. Its addresses and localhost need not be \
           listed. A request to another name is refused, so that no web page can read what the server answers.",
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
    help: "Access to the Unix sockets, as an octal mode like that of chmod.",
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
    help: "Largest number of open connections; one more gets an error and is closed.",
};

pub(crate) static MAX_CONNECTIONS_PER_ADDRESS: Setting = Setting {
    name: "max_connections_per_address",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Number { min: 0, max: 1_000_000 },
    default: "0",
    reloadable: true,
    section: Section::Network,
    help: "Largest number of open connections from one IP address; one more gets an error and is closed. 0 is no \
           limit but max_connections. Connections by the Unix sockets and to the HTTP port are not counted.",
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
    help: "Closes a connection that has sent nothing for this long; 0 never closes it.",
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
    help: "Whether memcached clients may use watch, which reports other clients' commands.",
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
    help: "Whether memcached clients may stop the daemon with the command shutdown.",
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
    help: "Connections that wait in the kernel until they are accepted.",
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
    help: "Counts commands by the part of the key before this character (stats detail). With none a client can switch the \
           counting on; the character is then the colon.",
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
    help: "User to switch to if root starts the daemon; otherwise the user does not change.",
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
    help: "File with the process id while the daemon serves.",
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
    help: "Whether old rows are evicted for new ones when memory is full; off: a write without room is refused.",
};

pub(crate) static MEMORY_MB: Setting = Setting {
    name: "memory_mb",
    letter: Some('m'),
    aliases: &["memory-limit"],
    opposite: None,
    kind: Kind::Mebibytes { min: 1, max: 16 << 20 },
    default: "64",
    reloadable: false,
    section: Section::Memory,
    help: "Memory for rows and their indexes, in MiB; rows that do not fit are evicted. A smaller number than 8 means 8.",
};

pub(crate) static DEAD_MEMORY_PERCENT: Setting = Setting {
    name: "dead_memory_percent",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Number { min: 10, max: 1_000 },
    default: "200",
    reloadable: true,
    section: Section::Memory,
    help: "Dead memory that a table may keep, in per cent of its live rows, before sparse segments are compacted although \
           memory is free. Dead rows are those that were overwritten, deleted or expired. Less saves memory, more spares \
           the copying of rows.",
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
    help: "Largest value or row that can be stored.",
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
    help: "File that holds the rows and survives a stop of the daemon; auto is <port>.arena in a private directory under \
           /dev/shm, or is named after the Unix socket if there is no port. none keeps the rows in the daemon's own \
           memory; so does auto with port -1.",
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
    help: "File that holds the tables WITH (shared_memory = on). It is created with the first of them; its owner can write \
           and its group can read it. auto is the arena's name with .shared, none forbids such tables.",
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
    help: "Whether rows and the hash index are kept on pages of 2 MiB; try uses small pages if the system has no large ones.",
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
    help: "Starts empty even if the arena could be used again.",
};

pub(crate) static HBA_FILE: Setting = Setting {
    name: "hba_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with the rules of who may connect, in the form of pg_hba.conf. Without one, everybody on this machine may.",
};

pub(crate) static IDENT_FILE: Setting = Setting {
    name: "ident_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with the maps that rules use (map=name): which roles a user of the system or a certificate may have, in the \
           form of pg_ident.conf.",
};

pub(crate) static ROLES_FILE: Setting = Setting {
    name: "roles_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File in which the daemon keeps roles and what proves their passwords. If it is missing, the daemon makes it, with \
           one superuser called like the user who runs the daemon. Without the setting there are no roles, and every name is that of a superuser.",
};

pub(crate) static AUTH_FILE: Setting = Setting {
    name: "auth_file",
    letter: Some('Y'),
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with a line user:password for each user, as memcached has it. Memcached clients must prove then that they are \
           one of them; each may do everything.",
};

pub(crate) static AUTHENTICATION_TIMEOUT: Setting = Setting {
    name: "authentication_timeout",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Time { min: 1_000, max: HOUR_MS },
    default: "10s",
    reloadable: true,
    section: Section::Access,
    help: "A client that has not agreed on keys (TLS) and proved its role after this time is disconnected.",
};

pub(crate) static ENABLE_SASL: Setting = Setting {
    name: "enable_sasl",
    letter: Some('S'),
    aliases: &[],
    opposite: None,
    kind: Kind::Switch,
    default: "off",
    reloadable: true,
    section: Section::Access,
    help: "Memcached clients must prove a role or user, by either of memcached's protocols, even where a rule trusts them. \
           It needs roles_file or auth_file.",
};

pub(crate) static SSL: Setting = Setting {
    name: "ssl",
    letter: Some('Z'),
    aliases: &["enable-ssl"],
    opposite: None,
    kind: Kind::Switch,
    default: "off",
    reloadable: false,
    section: Section::Access,
    help: "TLS: memcached clients must speak it on TCP ports; clients of PostgreSQL's protocol and of HTTP may. Rules (hostssl, \
           hostnossl) say who must.",
};

pub(crate) static SSL_CERT_FILE: Setting = Setting {
    name: "ssl_cert_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with the server's certificate and those between it and its authority, in PEM.",
};

pub(crate) static SSL_KEY_FILE: Setting = Setting {
    name: "ssl_key_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with the private key, in PEM without a passphrase; nobody else may be able to read it. With none the key is in \
           ssl_cert_file.",
};

pub(crate) static SSL_CA_FILE: Setting = Setting {
    name: "ssl_ca_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with the authorities that may have signed clients' certificates, in PEM. Clients are asked for a certificate \
           then; rules (cert, clientcert) and ssl_verify_mode say who must have one.",
};

pub(crate) static SSL_CRL_FILE: Setting = Setting {
    name: "ssl_crl_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Access,
    help: "File with lists of certificates that the authorities in ssl_ca_file have revoked, in PEM, one of each authority. A \
           client with such a certificate is refused, and so is every one of an authority whose list is missing or too old.",
};

pub(crate) static SSL_VERIFY_MODE: Setting = Setting {
    name: "ssl_verify_mode",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Number { min: 0, max: 3 },
    default: "1",
    reloadable: true,
    section: Section::Access,
    help: "Certificates of memcached clients, where there is ssl_ca_file: 0 does not ask for one, 1 asks, 2 and 3 demand one.",
};

pub(crate) static SSL_MIN_PROTOCOL_VERSION: Setting = Setting {
    name: "ssl_min_protocol_version",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Word { words: &["TLSv1.2", "TLSv1.3"] },
    default: "TLSv1.2",
    reloadable: true,
    section: Section::Access,
    help: "The oldest version of TLS that clients may speak.",
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
    help: "File with SQL statements, separated by semicolons. At each start, whatever \
           it defines and is not there is made; what is there keeps its rows.",
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
    name: shared_settings::STATEMENT_TIMEOUT.name,
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Time { min: 0, max: HOUR_MS },
    default: shared_settings::STATEMENT_TIMEOUT.default,
    reloadable: true,
    section: Section::Sql,
    help: "Stops a SQL statement that has run for this long; 0 never stops it.",
};

pub(crate) static NATIVE_EXECUTION: Setting = Setting {
    name: shared_settings::NATIVE_EXECUTION.name,
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Switch,
    default: shared_settings::NATIVE_EXECUTION.default,
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
    help: "Largest result of a SQL statement, in bytes sent.",
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
    help: "Amount of logging to standard error: 0 the start and warnings, 1 also reloads and refusals, 2 debugging, 3 \
           everything. As a flag, repeat -v for each step.",
};

pub(crate) static LOG_MIN_DURATION_STATEMENT: Setting = Setting {
    name: "log_min_duration_statement",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::TimeOrNever { max: HOUR_MS },
    default: "-1",
    reloadable: true,
    section: Section::Log,
    help: "Logs SQL statements that take this long or longer, and shows the last of them in sqlcached_slow; 0 takes all, -1 \
           none. Literals are shown as ?, and parameters are left out: see log_parameter_max_length.",
};

pub(crate) static AUDIT_FILE: Setting = Setting {
    name: "audit_file",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Path { words: &["none"] },
    default: "none",
    reloadable: true,
    section: Section::Log,
    help: "File to which the daemon adds a line of JSON for each login, refusal, definition, grant and invalidation \
           by a client (docs/security.md). SIGHUP opens it again.",
};

pub(crate) static LOG_PARAMETER_MAX_LENGTH: Setting = Setting {
    name: "log_parameter_max_length",
    letter: None,
    aliases: &[],
    opposite: None,
    kind: Kind::Size { min: 0, max: KIB },
    default: "0",
    reloadable: true,
    section: Section::Log,
    help: "Bytes of each parameter that the log of slow statements, sqlcached_slow and sqlcached_invalidations show, and then \
           statements with their literals; 0 shows none of these, so that no value of a row gets there.",
};

/// The table.
pub(crate) static ALL: &[&Setting] = &[
    &PORT,
    &LISTEN_ADDRESSES,
    &UNIX_SOCKET_PATH,
    &SQL_PORT,
    &SQL_SOCKET_DIR,
    &HTTP_PORT,
    &HTTP_LISTEN_ADDRESSES,
    &HTTP_HOSTS,
    &UNIX_SOCKET_PERMISSIONS,
    &MAX_CONNECTIONS,
    &MAX_CONNECTIONS_PER_ADDRESS,
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
    &HBA_FILE,
    &IDENT_FILE,
    &ROLES_FILE,
    &AUTH_FILE,
    &AUTHENTICATION_TIMEOUT,
    &ENABLE_SASL,
    &SSL,
    &SSL_CERT_FILE,
    &SSL_KEY_FILE,
    &SSL_CA_FILE,
    &SSL_CRL_FILE,
    &SSL_VERIFY_MODE,
    &SSL_MIN_PROTOCOL_VERSION,
    &MEMORY_MB,
    &EVICTIONS,
    &DEAD_MEMORY_PERCENT,
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
    &LOG_MIN_DURATION_STATEMENT,
    &LOG_PARAMETER_MAX_LENGTH,
    &AUDIT_FILE,
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
