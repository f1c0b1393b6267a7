//! What the system tables ask of the daemon around the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sqltext::error::{SqlError, state};

use crate::advisory::{LockCall, LockFacts};
use crate::session::{Holder, Rights};
use sqltext::grant::Kind;
use store::Table;
use store::definition::{Grant, MaterializedDef, ServerDef, TableDef};
use store::value::ValueRef;

/// A client's session, as `pg_stat_activity` and `sqlcached_sessions` show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// The number by which a cancel request names it.
    pub pid: i32,
    /// Who speaks.
    pub user: String,
    /// The database that the client named when it connected.
    pub database: String,
    /// What the client calls itself (`application_name`).
    pub application: String,
    /// The client's address; none on a Unix socket.
    pub address: Option<String>,
    /// What its connection is encrypted with.
    pub encryption: Option<EncryptionFacts>,
    /// `postgresql` or `memcached`.
    pub protocol: &'static str,
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: &'static str,
    /// The statement that runs, or the last one.
    pub query: String,
    /// Unix milliseconds: when it connected.
    pub started_ms: i64,
    /// Unix milliseconds: when its last statement began.
    pub query_started_ms: Option<i64>,
    /// Unix milliseconds: when its transaction began.
    pub transaction_started_ms: Option<i64>,
    /// Unix milliseconds: when its state changed.
    pub state_changed_ms: Option<i64>,
    /// Statements so far.
    pub statements: u64,
}

/// What is to be known of a source, and what to do about it there.
pub type SourceNote = (String, &'static str);

/// A column that a query of a source gives: its name, and the number of its type.
pub type SourceColumn = (String, u32);

/// Takes the rows that a query of a source gives.
pub trait SourceRows {
    /// A row, whose values are as the columns' types have them here.
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError>;
    /// Whether the query is to go on: asked while nothing comes. An error ends it.
    fn look(&mut self) -> Result<(), SqlError>;
}

/// What a source may do.
pub const SOURCE_STATES: [&str; 5] = ["connecting", "copying", "streaming", "lagging", "lost"];

/// A database behind the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceFacts {
    /// The foreign server.
    pub name: String,
    /// One of [`SOURCE_STATES`].
    pub state: &'static str,
    /// Unix milliseconds: since when.
    pub since_ms: i64,
    /// The slot from which it streams.
    pub slot: Option<String>,
    /// The name of its log, where that is in numbered files: a place has the number in its upper half.
    pub log: Option<String>,
    /// How far its log was read.
    pub received_lsn: u64,
    /// How far that was applied.
    pub applied_lsn: u64,
    /// Where the source's log ended when that was last heard.
    pub source_lsn: u64,
    /// The process of the source that streams, or did last.
    pub stream_process: Option<u32>,
    /// When the last sign of life that came back was sent.
    pub heard: Option<std::time::Instant>,
    /// Milliseconds that the last sign of life took from the source to here.
    pub lag_ms: Option<f64>,
    /// Changes of tables that something depends on.
    pub events: u64,
    /// Rows here that they invalidated one by one.
    pub invalidated: u64,
    /// Transactions that invalidated something.
    pub transactions: u64,
    /// Groups of transactions that were applied once, and that the source did not show yet.
    pub unsettled: u64,
    /// How often the connection was made again.
    pub reconnects: u64,
    /// How often a table was emptied because the source was not followed.
    pub emptied: u64,
    /// What became of the log that its slot needs, as the source says it.
    pub wal_status: Option<String>,
    /// Why rows from before a connection were not believed, last.
    pub last_break: Option<String>,
    /// Rows that became those of the source.
    pub updated: u64,
    /// Rows with a value that fits no column here.
    pub misfits: u64,
    /// Rows that the checker compared.
    pub checked: u64,
    /// Rows that differed, and still did when they were looked at again.
    pub differing: u64,
    /// Why it was lost last.
    pub last_error: Option<String>,
    /// Rows that were fetched for clients that missed them.
    pub fetches: FetchFacts,
}

/// What became of the rows of a source that clients missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchFacts {
    /// Queries for them.
    pub queries: u64,
    /// Rows that were stored.
    pub fills: u64,
    /// Rows that were answered and not stored, because a change was under way.
    pub refused: u64,
    /// Keys that got no answer: the queue was full, the time over, the source away, or an error of the query.
    pub failed: u64,
}

impl SourceFacts {
    /// Whether its changes are applied as they come, be it late.
    pub fn follows(&self) -> bool {
        matches!(self.state, "streaming" | "lagging")
    }

    /// Bytes of the source's log that were not applied.
    pub fn lag_bytes(&self) -> u64 {
        let end = self.source_lsn.max(self.received_lsn);
        if self.log.is_some() && end >> 32 != self.applied_lsn >> 32 {
            // How long the files before are is not known: at least what is in the last one was not applied.
            return end & 0xffff_ffff;
        }
        end.saturating_sub(self.applied_lsn)
    }
}

/// A statement that clients send through this program to a database behind, in one state of their sessions there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedFacts {
    /// The foreign server.
    pub server: String,
    /// Tells it from the others of its server; 0: it is none that a state matters to.
    pub number: u64,
    /// Its text.
    pub statement: String,
    /// The cached query that it is.
    pub name: Option<String>,
    /// As whom it works at the source.
    pub user: String,
    /// `new`, `asked`, `kept` or `refused`.
    pub state: &'static str,
    /// Why its answers are not kept.
    pub reason: Option<String>,
    /// What would change that, or have its answers depend on less.
    pub cure: Option<String>,
    /// What its answers depend on: tables, with the column whose values tell which of their rows.
    pub depends: Vec<String>,
    /// Executions that the source answered.
    pub forwarded: u64,
    /// How long that took, in microseconds.
    pub forwarded_us: u64,
    /// Executions that were answered here.
    pub hits: u64,
    /// Those of them that waited for the answer of another session's execution.
    pub joined: u64,
    /// Answers that were kept.
    pub kept: u64,
    /// Answers that were not, for what they depend on changed meanwhile.
    pub late: u64,
}

/// What the connection to a bus may do.
pub const BUS_STATES: [&str; 5] = ["connecting", "joining", "streaming", "lagging", "lost"];

/// A bus on which caches tell one another which rows are not valid any more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusFacts {
    /// The foreign server.
    pub name: String,
    /// One of [`BUS_STATES`].
    pub state: &'static str,
    /// Unix milliseconds: since when.
    pub since_ms: i64,
    /// This cache among the others on it; another number at each start.
    pub node: u64,
    /// The stream's history: another number is another history.
    pub epoch: Option<u64>,
    /// The last message that was applied.
    pub applied: u64,
    /// The last message of this cache that the bus has.
    pub sent: u64,
    /// Milliseconds since the newest of its own messages that came back was sent.
    pub lag_ms: Option<f64>,
    /// Operations that the bus has not acknowledged.
    pub outbox: u64,
    /// Messages of this cache that the bus has acknowledged.
    pub published: u64,
    /// Invalidations of other caches that were applied.
    pub invalidated: u64,
    /// Rows of other caches that were applied.
    pub rows_heard: u64,
    /// Rows of other caches that it had not heard of and were put in.
    pub rows_taken: u64,
    /// Rows that were given to other caches that lacked them.
    pub rows_given: u64,
    /// Tables of which it lacks rows that others may have.
    pub tables_wanted: u64,
    /// How often the history was found broken, and all tables were distrusted.
    pub breaks: u64,
    /// Operations that could not be applied: their tables were emptied instead.
    pub unapplied: u64,
    /// How often a table was emptied, or its rows made stale, because the bus was not followed.
    pub emptied: u64,
    /// How often the connection was made again.
    pub reconnects: u64,
    /// Other caches on it that have the name of this one.
    pub namesakes: u64,
    /// Why the history was found broken, last.
    pub last_break: Option<String>,
    /// Why an operation could not be applied, last.
    pub last_unapplied: Option<String>,
    /// Why it was lost last.
    pub last_error: Option<String>,
}

impl BusFacts {
    /// Whether what others tell is applied as it comes, be it late.
    pub fn follows(&self) -> bool {
        matches!(self.state, "streaming" | "lagging")
    }
}

/// A cache that is heard on a bus.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// The foreign server.
    pub bus: String,
    /// Its number, another one at each of its starts.
    pub node: u64,
    /// How it calls itself.
    pub name: String,
    /// Whether it is this one.
    pub own: bool,
    /// Whether it is another one that has the name of this one.
    pub namesake: bool,
    /// The last message that it had applied when it was last heard.
    pub applied: Option<u64>,
    /// Milliseconds that it was behind.
    pub lag_ms: u64,
    /// Operations that it had not sent.
    pub outbox: u64,
    /// Milliseconds since it was heard.
    pub heard_ms: u64,
}

/// What is known of an encrypted connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptionFacts {
    /// `TLSv1.3` or `TLSv1.2`.
    pub version: &'static str,
    /// The cipher's name.
    pub cipher: String,
    /// Bits of its key.
    pub bits: i32,
    /// Subject, number and issuer of the client's certificate, if it has one.
    pub client: Option<[String; 3]>,
}

/// What was counted of one statement, by its text with the literals taken out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementFacts {
    /// The text with `?` in the place of literals.
    pub query: String,
    /// How often it ran.
    pub calls: u64,
    /// How often it failed.
    pub errors: u64,
    /// Nanoseconds of all runs.
    pub total_ns: u64,
    /// Nanoseconds of the shortest run.
    pub min_ns: u64,
    /// Nanoseconds of the longest run.
    pub max_ns: u64,
    /// Rows returned or written.
    pub rows: u64,
    /// How its rows are found, as `EXPLAIN QUERY PLAN` says it; none for a definition.
    pub plan: Option<String>,
    /// How many of the runs that worked needed no SQLite.
    pub native_calls: u64,
    /// How many of them SQLite computed.
    pub sqlite_calls: u64,
}

/// One setting, as `SHOW ALL`, `pg_settings` and `sqlcached_settings` show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingFacts {
    /// Its name.
    pub name: String,
    /// Its value, as `SHOW` prints it.
    pub setting: String,
    /// What the value counts: `ms`, `kB`; none for a pure number or a word.
    pub unit: Option<String>,
    /// The value of a daemon that was told nothing.
    pub default: String,
    /// `default`, `configuration file`, `command line`, `session`.
    pub source: String,
    /// What it means, in one sentence.
    pub description: String,
    /// What it is about.
    pub category: String,
    /// It tells where a file is: for those who may read all settings.
    pub private: bool,
}

/// A role.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleFacts {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// It may do everything.
    pub superuser: bool,
    /// It has the rights of the roles that it is a member of.
    pub inherit: bool,
    /// It may change roles.
    pub create_role: bool,
    /// `CREATEDB`
    pub create_db: bool,
    /// It may connect.
    pub login: bool,
    /// `REPLICATION`
    pub replication: bool,
    /// `BYPASSRLS`
    pub bypass_rls: bool,
    /// Connections at once; -1: any number.
    pub connection_limit: i32,
    /// Unix milliseconds: when its password ends.
    pub valid_until_ms: Option<i64>,
    /// What is stored of its password.
    pub verifier: Option<String>,
    /// The roles that it is a member of, and whether it may grant them.
    pub member_of: Vec<(u32, bool)>,
    /// The settings that its sessions begin with, as `name=value`.
    pub settings: Vec<String>,
    /// What it may do.
    pub rights: Rights,
    /// The roles whose privileges it has: itself, and those that it inherits from.
    pub privileges_of: Arc<[String]>,
}

impl Default for RoleFacts {
    fn default() -> Self {
        Self {
            oid: 0,
            name: String::new(),
            superuser: false,
            inherit: false,
            create_role: false,
            create_db: false,
            login: false,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            valid_until_ms: None,
            verifier: None,
            member_of: Vec::new(),
            settings: Vec::new(),
            rights: Rights::NONE,
            privileges_of: Arc::default(),
        }
    }
}

/// What is granted of objects when a role makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultGrants {
    /// The role.
    pub owner: String,
    /// Where they are made; none: anywhere.
    pub schema: Option<String>,
    /// What they are.
    pub kind: Kind,
    /// What is granted.
    pub grants: Vec<Grant>,
}

/// A key that memcached's clients use much: estimates of the last minute.
#[derive(Clone, Debug)]
pub struct HotKeyFacts {
    /// Its table.
    pub table: Arc<Table>,
    /// The key as the table has it.
    pub key: Box<[u8]>,
    /// Commands that read it.
    pub reads: u64,
    /// Commands that wrote, changed or removed it.
    pub writes: u64,
    /// Commands on all keys of the table.
    pub table_uses: u64,
}

/// A statement that took long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowFacts {
    /// Unix milliseconds: when it ended.
    pub at_ms: i64,
    /// The role that connected.
    pub role: String,
    /// The number of its session; none where it has none.
    pub pid: Option<i32>,
    /// The client's address; none on a Unix socket.
    pub address: Option<String>,
    /// `postgresql`, `memcached` or `http`.
    pub protocol: &'static str,
    /// Its text, without literals unless these were asked for.
    pub statement: String,
    /// Its parameters, if they were asked for.
    pub parameters: Option<String>,
    /// Nanoseconds that it took.
    pub took_ns: u64,
    /// Rows returned or written.
    pub rows: u64,
    /// The SQLSTATE with which it failed.
    pub error: Option<&'static str>,
}

/// Rows that were made invalid together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidationFacts {
    /// Unix milliseconds: the last run.
    pub at_ms: i64,
    /// The first run of those that are counted as one.
    pub since_ms: i64,
    /// The role that connected; a source's name.
    pub role: String,
    /// The number of its session; none where it has none.
    pub pid: Option<i32>,
    /// The client's address; none on a Unix socket.
    pub address: Option<String>,
    /// `postgresql`, `memcached`, `http`, `rule` or `source`.
    pub protocol: &'static str,
    /// What did it, without literals unless these were asked for.
    pub statement: String,
    /// Its parameters, if they were asked for.
    pub parameters: Option<String>,
    /// The table; none: all tables that memcached's clients reach.
    pub table: Option<String>,
    /// `deleted`, `flushed`, `stale` or `expired`.
    pub how: &'static str,
    /// How many rows.
    pub rows: u64,
    /// How often it ran.
    pub times: u64,
    /// Nanoseconds of all these runs, if they were timed.
    pub took_ns: Option<u64>,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What is counted in a point of the history. The names are those of the columns.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)* }

        impl Counts {
            /// What was counted since `before`; nothing where a sum fell.
            #[must_use]
            pub fn since(&self, before: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(before.$name),)* }
            }

            /// Each with its name.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            /// How many there are.
            pub const NUMBER: usize = [$(stringify!($name),)*].len();

            /// The counts of which [`Counts::each`] gave these, one after the other.
            pub fn from_each(next: &mut dyn FnMut() -> u64) -> Self {
                Self { $($name: next(),)* }
            }
        }
    };
}

counts! {
    /// Lookups by a whole primary key that found a row.
    hits,
    /// Lookups that found none.
    misses,
    /// Keys that memcached's clients asked for.
    gets,
    /// Their storage commands.
    sets,
    /// Their deletions.
    deletes,
    /// Their other commands.
    others,
    /// Statements of PostgreSQL's clients.
    postgresql_statements,
    /// Statements of memcached's clients.
    memcached_statements,
    /// Statements by HTTP.
    http_statements,
    /// Statements that failed.
    errors,
    /// Rows written.
    written,
    /// Rows cleared after they expired.
    expired,
    /// Rows evicted.
    evicted,
    /// Rows that clients removed.
    invalidated,
    /// Rows cleared after their table was emptied.
    flushed,
    /// Bytes received.
    read_bytes,
    /// Bytes sent.
    written_bytes,
    /// Milliseconds of processor time.
    cpu_ms,
}

/// A point of the server's history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryFacts {
    /// Unix milliseconds: its end.
    pub at_ms: i64,
    /// Seconds that a point of its ring has.
    pub resolution: u64,
    /// Seconds that it has indeed.
    pub seconds: f64,
    /// What was counted within it.
    pub counts: Counts,
    /// Connections at its end.
    pub connections: u64,
    /// Rows at its end.
    pub rows: u64,
    /// Their bytes.
    pub row_bytes: u64,
    /// Bytes of segments.
    pub segment_bytes: u64,
    /// Bytes of indexes.
    pub index_bytes: u64,
    /// The tables with the most memory, with the bytes of their segments.
    pub tables: Vec<(String, u64)>,
}

/// Something that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalFacts {
    /// Unix milliseconds: when.
    pub at_ms: i64,
    /// To whom, as the client says it.
    pub role: String,
    /// The client's address; none on a Unix socket.
    pub address: Option<String>,
    /// `postgresql` or `memcached`.
    pub protocol: &'static str,
    /// What was asked, without its values.
    pub request: String,
    /// Why.
    pub reason: String,
}

/// How often something happened to a role since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleCounts {
    /// The role.
    pub role: String,
    /// It was let in.
    pub logins: u64,
    /// It was not.
    pub failures: u64,
    /// It was refused a command or statement.
    pub refusals: u64,
}

/// The number of the superuser who owns everything.
pub const OWNER: u32 = 10;

/// Implemented by the engine, which knows sessions, statements and settings. Asked while a statement runs, so it holds
/// no lock that a statement could wait for.
pub trait Server: Send + Sync + fmt::Debug {
    /// All sessions of this moment.
    fn sessions(&self) -> Vec<SessionFacts>;
    /// What was counted of each statement.
    fn statements(&self) -> Vec<StatementFacts>;
    /// All settings.
    fn settings(&self) -> Vec<SettingFacts>;
    /// Unix milliseconds: when the daemon started.
    fn started_ms(&self) -> i64;
    /// The settings of sessions with their values where nobody sets them.
    fn session_settings(&self) -> Vec<(&'static str, &'static str)>;
    /// The value that a session's setting has when nobody sets it; none for a name that is no setting.
    fn session_default(&self, name: &str) -> Option<&'static str>;
    /// What a session's setting would be after this; no value is its default. An error where it is refused.
    fn check_setting(&self, name: &str, value: Option<&str>) -> Result<String, SqlError>;
    /// Whether this can be announced.
    fn check_notification(&self, channel: &str, payload: &str) -> Result<(), SqlError>;
    /// What a session's function asks of the advisory locks; `at`: how many its statement asked before.
    fn advisory(&self, pid: i32, at: usize, call: LockCall) -> Result<bool, SqlError>;
    /// Every advisory lock that is held or waited for.
    fn advisory_locks(&self) -> Vec<LockFacts>;
    /// Stops the statement of a session; false where there is no such session.
    fn cancel(&self, pid: i32) -> bool;
    /// Ends a session; false where there is no such session.
    fn terminate(&self, pid: i32) -> bool;
    /// All roles; empty where none are kept. The one who owns everything has the number [`OWNER`].
    fn roles(&self) -> Vec<RoleFacts>;
    /// The name of the role who owns everything; none where none are kept.
    fn owner(&self) -> Option<String>;
    /// What a role may do; none where there is no such role.
    fn holder(&self, role: &str) -> Option<Holder>;
    /// Whether who has the privileges of these roles may make tables in a schema.
    fn may_create(&self, schema: &str, roles: &[String]) -> bool;
    /// The roles that may make tables in a schema; none stands for everybody.
    fn creators(&self, schema: &str) -> Vec<Option<String>>;
    /// What is granted of objects when they are made.
    fn default_grants(&self) -> Vec<DefaultGrants>;
    /// The last refusals, the newest last.
    fn refusals(&self) -> Vec<RefusalFacts>;
    /// How often each role logged in, failed and was refused.
    fn role_counts(&self) -> Vec<RoleCounts>;
    /// The last slow statements, the newest last.
    fn slow_statements(&self) -> Vec<SlowFacts>;
    /// What made rows invalid recently, the newest last.
    fn invalidations(&self) -> Vec<InvalidationFacts>;
    /// The keys that are used most, of the table of this name or of each.
    fn hot_keys(&self, table: Option<&str>) -> Vec<HotKeyFacts>;
    /// The server's figures over time.
    fn history(&self) -> Vec<HistoryFacts>;
    /// An expiry rule of a table has removed rows.
    fn note_rule(&self, table: &str, rule: &str, rows: u64, took_ns: u64);
    /// The databases behind the cache.
    fn sources(&self) -> Vec<SourceFacts>;
    /// Whether the changes of one are applied up to this place of its log; it is waited for until then, or so long.
    /// None: no table names it.
    fn source_applied(&self, name: &str, lsn: u64, wait: Duration) -> Option<bool>;
    /// The buses on which caches tell one another what is not valid any more.
    fn buses(&self) -> Vec<BusFacts>;
    /// The caches that are heard on them.
    fn nodes(&self) -> Vec<NodeFacts>;
    /// The statements that clients send through this program to the databases behind.
    fn forwarded(&self) -> Vec<ForwardedFacts>;
    /// Whether the text of a cached query may be one whose answers are kept.
    fn check_cached_query(&self, statement: &str) -> Result<(), SqlError>;
    /// Whether what a bus carried up to this message is applied; it is waited for until then, or so long. None: no
    /// table names it.
    fn bus_applied(&self, name: &str, sequence: u64, wait: Duration) -> Option<bool>;
    /// Asks such a database whether it can tell every change that a table depends on, and what its query gives.
    fn check_source(&self, server: &ServerDef, table: &TableDef) -> Result<Vec<SourceNote>, SqlError>;
    /// Asks such a database which columns a query gives.
    fn describe_query(&self, server: &ServerDef, sql: &str) -> Result<Vec<SourceColumn>, SqlError>;
    /// Has such a database run the query of a materialized view, which may take so long, and takes its rows.
    fn run_query(
        &self,
        server: &ServerDef,
        view: &MaterializedDef,
        timeout: Duration,
        rows: &mut dyn SourceRows,
    ) -> Result<(), SqlError>;
}

/// Nobody here connects to databases behind the cache: a daemon that starts does so when its tables are made.
pub fn out_of_reach(server: &ServerDef) -> SqlError {
    let name = &server.name;
    let message =
        format!("server \"{name}\" is not connected yet: views over its tables are no part of init_file");
    SqlError::new(state::NOT_IN_STATE, message).with_hint("make the view when the daemon serves")
}

/// An executor by itself, without a daemon around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoServer;

impl Server for NoServer {
    fn sessions(&self) -> Vec<SessionFacts> {
        Vec::new()
    }

    fn statements(&self) -> Vec<StatementFacts> {
        Vec::new()
    }

    fn settings(&self) -> Vec<SettingFacts> {
        Vec::new()
    }

    fn started_ms(&self) -> i64 {
        0
    }

    fn session_settings(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn session_default(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn check_setting(&self, name: &str, _: Option<&str>) -> Result<String, SqlError> {
        let message = format!("unrecognized configuration parameter \"{name}\"");
        Err(SqlError::new(state::UNKNOWN_OBJECT, message))
    }

    fn check_notification(&self, _: &str, _: &str) -> Result<(), SqlError> {
        Err(SqlError::new(state::NOT_SUPPORTED, "no client can listen here"))
    }

    fn advisory(&self, _: i32, _: usize, _: LockCall) -> Result<bool, SqlError> {
        Err(SqlError::new(state::NOT_SUPPORTED, "no client can hold a lock here"))
    }

    fn advisory_locks(&self) -> Vec<LockFacts> {
        Vec::new()
    }

    fn cancel(&self, _: i32) -> bool {
        false
    }

    fn terminate(&self, _: i32) -> bool {
        false
    }

    fn roles(&self) -> Vec<RoleFacts> {
        Vec::new()
    }

    fn owner(&self) -> Option<String> {
        None
    }

    fn holder(&self, _: &str) -> Option<Holder> {
        None
    }

    fn may_create(&self, _: &str, _: &[String]) -> bool {
        false
    }

    fn creators(&self, _: &str) -> Vec<Option<String>> {
        Vec::new()
    }

    fn default_grants(&self) -> Vec<DefaultGrants> {
        Vec::new()
    }

    fn refusals(&self) -> Vec<RefusalFacts> {
        Vec::new()
    }

    fn role_counts(&self) -> Vec<RoleCounts> {
        Vec::new()
    }

    fn slow_statements(&self) -> Vec<SlowFacts> {
        Vec::new()
    }

    fn invalidations(&self) -> Vec<InvalidationFacts> {
        Vec::new()
    }

    fn hot_keys(&self, _: Option<&str>) -> Vec<HotKeyFacts> {
        Vec::new()
    }

    fn history(&self) -> Vec<HistoryFacts> {
        Vec::new()
    }

    fn note_rule(&self, _: &str, _: &str, _: u64, _: u64) {}

    fn source_applied(&self, _: &str, _: u64, _: Duration) -> Option<bool> {
        None
    }

    fn sources(&self) -> Vec<SourceFacts> {
        Vec::new()
    }

    fn buses(&self) -> Vec<BusFacts> {
        Vec::new()
    }

    fn nodes(&self) -> Vec<NodeFacts> {
        Vec::new()
    }

    fn forwarded(&self) -> Vec<ForwardedFacts> {
        Vec::new()
    }

    fn check_cached_query(&self, _: &str) -> Result<(), SqlError> {
        Ok(())
    }

    fn bus_applied(&self, _: &str, _: u64, _: Duration) -> Option<bool> {
        None
    }

    fn check_source(&self, _: &ServerDef, _: &TableDef) -> Result<Vec<SourceNote>, SqlError> {
        Ok(Vec::new())
    }

    fn describe_query(&self, server: &ServerDef, _: &str) -> Result<Vec<SourceColumn>, SqlError> {
        Err(out_of_reach(server))
    }

    fn run_query(
        &self,
        server: &ServerDef,
        _: &MaterializedDef,
        _: Duration,
        _: &mut dyn SourceRows,
    ) -> Result<(), SqlError> {
        Err(out_of_reach(server))
    }
}
