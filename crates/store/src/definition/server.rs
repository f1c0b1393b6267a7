//! A foreign server: a database that rows here are made of, and as whom it is asked.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::{DefinitionError, NAME_BYTES_MAX, check_name, nearest, parse_span};
use crate::limits::{BUS_SERVERS_MAX, CACHED_QUERIES_MAX, CACHED_QUERY_BYTES_MAX, STREAM_BYTES_MAX};
use crate::limits::{FETCH_CONNECTIONS_MAX, SERVER_MAPPINGS_MAX, SERVER_OPTION_BYTES_MAX};

/// What kind of database a server is: its foreign-data wrapper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrapper {
    /// PostgreSQL.
    #[default]
    Postgres,
    /// MariaDB.
    MariaDb,
    /// NATS: no database, but a bus on which caches hear each other.
    Nats,
}

impl Wrapper {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::MariaDb, Self::Nats];

    /// The name that statements have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
            Self::Nats => "nats",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether its servers have this option.
    fn has_option(self, name: &str) -> bool {
        match self {
            Self::Postgres => !MARIADB_ALONE.contains(&name) && !NATS_ALONE.contains(&name),
            Self::MariaDb => SHARED.contains(&name) || MARIADB_ALONE.contains(&name),
            Self::Nats => SHARED_WITH_BUS.contains(&name) || NATS_ALONE.contains(&name),
        }
    }

    /// The option without which nobody knows where a server of it is.
    fn needs_option(self) -> Option<&'static str> {
        (self == Self::Nats).then_some(SERVERS)
    }
}

/// The options that both kinds of servers have.
const SHARED: &[&str] = &["host", "port", "dbname", "sslmode", "sslrootcert", "connect_timeout", "max_lag"];
/// Those that only MariaDB has.
const MARIADB_ALONE: &[&str] = &["server_id"];
/// Those that a bus has, too.
const SHARED_WITH_BUS: &[&str] = &["sslrootcert", "connect_timeout", "max_lag"];
/// Those that only NATS has.
const NATS_ALONE: &[&str] = &[SERVERS, STREAM, "replicas"];
/// Those that a PostgreSQL has that is a bus.
const POSTGRES_BUS: &[&str] = &[BUS, STREAM];
/// Says that a PostgreSQL is a bus.
const BUS: &str = "bus";
/// The name by which caches hear each other on a bus.
const STREAM: &str = "stream";
/// Where a bus is.
const SERVERS: &str = "servers";

/// What stands where a secret was.
pub const MASK: &str = "********";

/// An option, and whether a value is one that it may have.
struct OptionRule {
    name: &'static str,
    allows: fn(&str) -> bool,
    expected: &'static str,
}

/// What `CREATE SERVER ... OPTIONS` may say.
const SERVER_OPTIONS: &[OptionRule] = &[
    OptionRule { name: "host", allows: is_text, expected: "a name, an address or a directory" },
    OptionRule { name: "port", allows: is_port, expected: "a port" },
    OptionRule { name: "dbname", allows: is_text, expected: "a name" },
    OptionRule { name: "publication", allows: is_text, expected: "a name" },
    OptionRule {
        name: "sslmode",
        allows: |value| SSL_MODES.contains(&value),
        expected: "disable, require, verify-ca or verify-full",
    },
    OptionRule { name: "sslrootcert", allows: is_text, expected: "a file" },
    OptionRule { name: "connect_timeout", allows: is_seconds, expected: "seconds" },
    OptionRule { name: "check_rate", allows: is_count, expected: "rows a second" },
    OptionRule { name: "server_id", allows: is_server_id, expected: "a number from 1 to 4294967295" },
    OptionRule { name: "max_lag", allows: is_span, expected: "a time, such as '5 s'" },
    OptionRule {
        name: "slot",
        allows: is_slot,
        expected: "a name of at most 63 lower-case letters, digits and underscores",
    },
    OptionRule { name: BUS, allows: is_switch, expected: "on or off" },
    OptionRule { name: "failover", allows: is_switch, expected: "on or off" },
    OptionRule {
        name: SERVERS,
        allows: is_bus_servers,
        expected: "addresses with commas between them, such as 'nats://a:4222,nats://b:4222' or 'tls://a:4222'",
    },
    OptionRule { name: STREAM, allows: is_stream, expected: "a name of at most 32 letters, digits, - and _" },
    OptionRule {
        name: "replicas",
        allows: |value| ["1", "3", "5"].contains(&value),
        expected: "1, 3 or 5: how many NATS servers keep each message",
    },
    OptionRule {
        name: "cache",
        allows: |value| CACHES.contains(&value),
        expected: "off, named or auto: which answers of forwarded statements are kept",
    },
    OptionRule {
        name: FRESHNESS,
        allows: |value| FRESHNESSES.contains(&value),
        expected: "own, stream, checked or commit: how fresh answers of forwarded statements are",
    },
    OptionRule {
        name: "standby_name",
        allows: is_slot,
        expected: "a name of at most 63 lower-case letters, digits and underscores",
    },
    OptionRule { name: "fetch_connections", allows: is_connections, expected: "a number from 1 to 64" },
];

/// What `CREATE USER MAPPING ... OPTIONS` may say.
const MAPPING_OPTIONS: &[OptionRule] = &[
    OptionRule { name: "user", allows: is_text, expected: "a name" },
    OptionRule { name: PASSWORD, allows: |_| true, expected: "a text" },
];

const PASSWORD: &str = "password";
const FRESHNESS: &str = "freshness";

/// The values of `cache`: nothing is kept, what is named, all that may be.
pub const CACHES: [&str; 3] = ["off", "named", "auto"];
/// The values of `freshness`, from the first, which is usual.
pub const FRESHNESSES: [&str; 4] = ["own", "stream", "checked", "commit"];
const SSL_MODES: &[&str] = &["disable", "require", "verify-ca", "verify-full"];

/// An option and its value.
pub type ServerOption = (String, String);

/// A database that is a source of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerDef {
    /// Tells it from every other one of now.
    pub id: u16,
    /// Its name, unique among servers.
    pub name: String,
    /// `FOREIGN DATA WRAPPER`
    #[serde(default, skip_serializing_if = "Wrapper::is_default")]
    pub wrapper: Wrapper,
    /// `TYPE`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `VERSION`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it is, in the order in which that was said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ServerOption>,
    /// As whom it is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<MappingDef>,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
    /// Statements whose answers are kept by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<CachedQueryDef>,
}

/// A statement that clients send to a server, and whose answers are kept: `CREATE CACHED QUERY`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedQueryDef {
    /// Its name, unique on its server.
    pub name: String,
    /// Its text; `$1` stands for any parameter or literal.
    pub statement: String,
    /// How its answers are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ServerOption>,
}

/// As whom a role asks a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingDef {
    /// Tells it from the others of its server.
    pub id: u16,
    /// The role; `None`: everybody who has none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Name and password there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ServerOption>,
}

/// A log or a panic message shows no secret.
impl fmt::Debug for MappingDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<ServerOption> = self.shown().collect();
        f.debug_struct("MappingDef")
            .field("role", &self.role)
            .field("options", &shown)
            .finish_non_exhaustive()
    }
}

impl MappingDef {
    /// Its options as anybody may see them.
    pub fn shown(&self) -> impl Iterator<Item = ServerOption> + '_ {
        self.options.iter().map(|(name, value)| {
            let value = if name == PASSWORD { MASK } else { value };
            (name.clone(), value.to_owned())
        })
    }

    /// The name there.
    pub fn user(&self) -> Option<&str> {
        option(&self.options, "user")
    }

    /// The password there.
    pub fn password(&self) -> Option<&str> {
        option(&self.options, PASSWORD)
    }
}

impl CachedQueryDef {
    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        option(&self.options, name)
    }
}

impl ServerDef {
    /// Whether it is one that the store can hold.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        check_name("server", &self.name)?;
        let rules: Vec<&OptionRule> =
            SERVER_OPTIONS.iter().filter(|rule| self.has_option(rule.name)).collect();
        check_options(&self.options, &rules)?;
        self.validate_stream()?;
        if let Some(name) = self.wrapper.needs_option().filter(|name| self.option(name).is_none()) {
            let message = format!("server \"{}\" needs the option {name}", self.name);
            return Err(DefinitionError::new("HV00B", message));
        }
        if self.mappings.len() > SERVER_MAPPINGS_MAX {
            let message =
                format!("server \"{}\" has more than {SERVER_MAPPINGS_MAX} user mappings", self.name);
            return Err(DefinitionError::new("54000", message));
        }
        let rules: Vec<&OptionRule> = MAPPING_OPTIONS.iter().collect();
        self.mappings.iter().try_for_each(|mapping| check_options(&mapping.options, &rules))?;
        self.validate_queries()
    }

    /// Whether it carries what caches tell each other, rather than having rows.
    pub fn is_bus(&self) -> bool {
        match self.wrapper {
            Wrapper::Nats => true,
            Wrapper::Postgres => self.option(BUS) == Some("on"),
            Wrapper::MariaDb => false,
        }
    }

    fn has_option(&self, name: &str) -> bool {
        if self.wrapper == Wrapper::Postgres && self.is_bus() {
            return SHARED.contains(&name) || POSTGRES_BUS.contains(&name);
        }
        self.wrapper.has_option(name)
    }

    /// A PostgreSQL has a slot of the stream's name.
    fn validate_stream(&self) -> Result<(), DefinitionError> {
        match self.option(STREAM) {
            Some(name) if self.wrapper == Wrapper::Postgres && !is_slot(name) => {
                let message = "invalid value for option \"stream\"; expected: lower-case letters, digits and \
                    underscores, for a slot of the database has this name";
                Err(DefinitionError::new("HV024", message.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn validate_queries(&self) -> Result<(), DefinitionError> {
        if self.queries.len() > CACHED_QUERIES_MAX {
            let message =
                format!("server \"{}\" has more than {CACHED_QUERIES_MAX} cached queries", self.name);
            return Err(DefinitionError::new("54000", message));
        }
        let rules: Vec<&OptionRule> = SERVER_OPTIONS.iter().filter(|rule| rule.name == FRESHNESS).collect();
        for query in &self.queries {
            check_name("cached query", &query.name)?;
            check_options(&query.options, &rules)?;
            if query.statement.len() > CACHED_QUERY_BYTES_MAX {
                let message =
                    format!("the statement of a cached query has at most {CACHED_QUERY_BYTES_MAX} bytes");
                return Err(DefinitionError::new("54000", message));
            }
        }
        Ok(())
    }

    /// Whether another definition is of the same source, asked in the same way: it may have other cached queries.
    pub fn is_same_source(&self, other: &Self) -> bool {
        let Self { id, name, wrapper, kind, version, options, mappings, access, queries: _ } = self;
        let own = (id, name, wrapper, kind, version, options, mappings, access);
        let Self { id, name, wrapper, kind, version, options, mappings, access, queries: _ } = other;
        own == (id, name, wrapper, kind, version, options, mappings, access)
    }

    /// A cached query of this name.
    pub fn query(&self, name: &str) -> Option<&CachedQueryDef> {
        self.queries.iter().find(|query| query.name == name)
    }

    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        option(&self.options, name)
    }

    /// The mapping of a role, and no other one's.
    pub fn mapping_of(&self, role: Option<&str>) -> Option<&MappingDef> {
        self.mappings.iter().find(|mapping| mapping.role.as_deref() == role)
    }

    /// The mapping by which this server connects: its owner's, else everybody's, and where nobody owns it the first.
    pub fn mapping(&self) -> Option<&MappingDef> {
        let Some(owner) = self.access.owner.as_deref() else {
            return self.mapping_of(None).or_else(|| self.mappings.first());
        };
        self.mapping_of(Some(owner)).or_else(|| self.mapping_of(None))
    }
}

fn option<'o>(options: &'o [ServerOption], name: &str) -> Option<&'o str> {
    options.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn all_of(rules: &[&OptionRule]) -> String {
    let known: Vec<&str> = rules.iter().map(|rule| rule.name).collect();
    format!("valid here are: {}", known.join(", "))
}

fn check_options(options: &[ServerOption], rules: &[&OptionRule]) -> Result<(), DefinitionError> {
    for (at, (name, value)) in options.iter().enumerate() {
        let Some(rule) = rules.iter().find(|rule| rule.name == name) else {
            let near = nearest(name, rules.iter().map(|rule| (rule.name, rule.name)));
            let advice = near.map_or_else(|| all_of(rules), |near| format!("did you mean {near}?"));
            return Err(DefinitionError::new("HV00D", format!("invalid option \"{name}\"; {advice}")));
        };
        if options[..at].iter().any(|(other, _)| other == name) {
            return Err(DefinitionError::new("42710", format!("option \"{name}\" provided more than once")));
        }
        if value.len() > SERVER_OPTION_BYTES_MAX || value.contains('\0') || !(rule.allows)(value) {
            let message = format!("invalid value for option \"{name}\"; expected: {}", rule.expected);
            return Err(DefinitionError::new("HV024", message));
        }
    }
    Ok(())
}

fn is_text(value: &str) -> bool {
    !value.is_empty()
}

fn is_port(value: &str) -> bool {
    value.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_count(value: &str) -> bool {
    value.parse::<u32>().is_ok()
}

fn is_connections(value: &str) -> bool {
    value.parse().is_ok_and(|count| (1..=FETCH_CONNECTIONS_MAX).contains(&count))
}

fn is_seconds(value: &str) -> bool {
    value.parse::<u16>().is_ok_and(|seconds| seconds > 0)
}

fn is_server_id(value: &str) -> bool {
    value.parse::<u32>().is_ok_and(|id| id > 0)
}

fn is_span(value: &str) -> bool {
    parse_span(value).is_ok()
}

/// Each with a scheme, so that nobody takes a plain connection for an encrypted one.
fn is_bus_servers(value: &str) -> bool {
    let is_one = |one: &str| {
        let one = one.trim();
        let rest = one.strip_prefix("nats://").or_else(|| one.strip_prefix("tls://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', '/', ' ']))
    };
    value.split(',').count() <= BUS_SERVERS_MAX && value.split(',').all(is_one)
}

/// It is a part of subjects, where dots, stars and blanks mean something else.
fn is_stream(value: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=STREAM_BYTES_MAX).contains(&value.len()) && value.bytes().all(allowed)
}

/// PostgreSQL names slots so.
fn is_slot(value: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&value.len()) && value.bytes().all(allowed)
}

fn is_switch(value: &str) -> bool {
    ["on", "off"].contains(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(options: &[(&str, &str)]) -> ServerDef {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (wrapper, mappings, access) = (Wrapper::default(), Vec::new(), Access::default());
        ServerDef {
            id: 1,
            name: "pg".into(),
            wrapper,
            kind: None,
            version: None,
            options,
            mappings,
            access,
            queries: Vec::new(),
        }
    }

    #[test]
    fn options_are_checked() {
        let refused = |options: &[(&str, &str)]| server(options).validate().map_err(|error| error.sqlstate);
        assert_eq!(refused(&[("host", "db"), ("port", "5432"), ("max_lag", "5 s")]), Ok(()));
        assert_eq!(refused(&[("hots", "db")]), Err("HV00D"));
        assert_eq!(refused(&[("port", "0")]), Err("HV024"));
        assert_eq!(refused(&[("port", "70000")]), Err("HV024"));
        assert_eq!(refused(&[("sslmode", "prefer")]), Err("HV024"));
        assert_eq!(refused(&[("max_lag", "soon")]), Err("HV024"));
        assert_eq!(refused(&[("host", "a"), ("host", "b")]), Err("42710"));
        assert_eq!(refused(&[("server_id", "7")]), Err("HV00D"));
        let mariadb = |options: &[(&str, &str)]| {
            let server = ServerDef { wrapper: Wrapper::MariaDb, ..server(options) };
            server.validate().map_err(|error| error.sqlstate)
        };
        assert_eq!(mariadb(&[("host", "db"), ("server_id", "7")]), Ok(()));
        assert_eq!(mariadb(&[("server_id", "0")]), Err("HV024"));
        assert_eq!(mariadb(&[("publication", "cache")]), Err("HV00D"));
        assert_eq!(refused(&[("host", &"x".repeat(SERVER_OPTION_BYTES_MAX + 1))]), Err("HV024"));
    }

    #[test]
    fn a_database_that_is_a_bus_is_nothing_else() {
        let bus = |options: &[(&str, &str)]| {
            let server = server(&[&[("bus", "on")], options].concat());
            (server.is_bus(), server.validate().map_err(|error| error.sqlstate))
        };
        assert_eq!(bus(&[("host", "db"), ("stream", "sqlc"), ("max_lag", "15 s")]), (true, Ok(())));
        assert_eq!(bus(&[("publication", "cache")]), (true, Err("HV00D")));
        assert_eq!(bus(&[("slot", "cache")]).1, Err("HV00D"));
        assert_eq!(bus(&[("stream", "Sqlc-1")]).1, Err("HV024"));
        let off = server(&[("bus", "off"), ("publication", "cache")]);
        assert!(!off.is_bus() && off.validate().is_ok());
        assert_eq!(server(&[("stream", "sqlc")]).validate().map_err(|error| error.sqlstate), Err("HV00D"));
        let mariadb = ServerDef { wrapper: Wrapper::MariaDb, ..server(&[("bus", "on")]) };
        assert_eq!(mariadb.validate().map_err(|error| error.sqlstate), Err("HV00D"));
    }

    #[test]
    fn a_bus_says_where_it_is() {
        let refused = |options: &[(&str, &str)]| {
            let server = ServerDef { wrapper: Wrapper::Nats, ..server(options) };
            server.validate().map_err(|error| error.sqlstate)
        };
        let servers = ("servers", "nats://a:4222, tls://b:4222");
        assert_eq!(refused(&[servers, ("stream", "sqlc"), ("replicas", "3"), ("max_lag", "15 s")]), Ok(()));
        assert_eq!(refused(&[("stream", "sqlc")]), Err("HV00B"));
        for servers in ["a:4222", "nats://", "nats://a,", "nats://user:secret@a", "http://a"] {
            assert_eq!(refused(&[("servers", servers)]), Err("HV024"), "{servers}");
        }
        assert_eq!(refused(&[servers, ("stream", "a.b")]), Err("HV024"));
        assert_eq!(refused(&[servers, ("replicas", "2")]), Err("HV024"));
        assert_eq!(refused(&[servers, ("host", "db")]), Err("HV00D"));
    }

    #[test]
    fn secrets_are_not_printed() {
        let options =
            vec![("user".to_owned(), "app".to_owned()), ("password".to_owned(), "hidden".to_owned())];
        let mut server = server(&[]);
        server.mappings.push(MappingDef { id: 1, role: None, options });
        let printed = format!("{server:?}");
        assert!(
            printed.contains("app") && printed.contains(MASK) && !printed.contains("hidden"),
            "{printed}"
        );
        assert_eq!(server.mapping().and_then(MappingDef::password), Some("hidden"));
    }
}
