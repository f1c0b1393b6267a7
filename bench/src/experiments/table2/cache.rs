//! A cache with the data set in it, whatever it is made of.

use crate::failure::Result;
use crate::pages::{self, Fragment};
use crate::protocol::Protocol;
use crate::server::Server;

use super::super::lab::Effort;
use super::key_value::{Memcached, Redis};
use super::statements::{MariaDb, PostgreSql, Table};

/// A connection to a cache.
pub(super) trait Cache: Send {
    /// Makes tables, where there are any.
    fn define(&mut self) -> Result<()>;
    /// Everything expires.
    fn expire_all(&mut self) -> Result<()>;
    /// Stores rows.
    fn refill(&mut self, rows: &[Fragment]) -> Result<()>;
    /// What databases want to do after a fill and before their first query.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
    /// The rows of one page or user expire. `rows` are those rows, for caches that know only keys; the answer is how
    /// many were there.
    fn expire(&mut self, owner: Owner, number: u64, rows: &[Fragment]) -> Result<u64>;
    /// Reads the fragments of one page, of which some may be gone.
    fn read(&mut self, page: u64, rows: &[Fragment]) -> Result<()>;
}

/// Whose rows expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A page's, 3.3 rows.
    Page,
    /// A user's, 100 rows.
    User,
}

impl Owner {
    /// For lists and file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::User => "user",
        }
    }

    /// For headings.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Page => "One page (3.3 rows)",
            Self::User => "One user (100 rows)",
        }
    }

    /// How many there are.
    pub(super) fn population(self) -> u64 {
        match self {
            Self::Page => pages::PAGES,
            Self::User => pages::USERS,
        }
    }

    /// How many expire in one repetition; a divisor of all there are.
    pub(super) fn count(self, effort: Effort) -> u64 {
        match self {
            Self::Page => effort.of(100, 200, 300),
            Self::User => effort.of(20, 50, 50),
        }
    }

    /// The one that a row belongs to.
    pub(super) fn number(self, row: &Fragment) -> u64 {
        match self {
            Self::Page => row.page,
            Self::User => row.user,
        }
    }
}

/// A way to expire rows on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// memcached: a request for each key, each waiting for the one before.
    KeyByKey,
    /// memcached: all deletes sent at once.
    Batch,
    /// Redis: a set of keys for each page and user.
    TagSets,
    /// PostgreSQL's protocol.
    Statement,
    /// MariaDB's.
    MariaDb,
}

impl Way {
    /// What tables call it.
    pub(super) fn label(self, server: &str) -> String {
        match self {
            Self::KeyByKey => format!("{server}, key by key"),
            Self::Batch => format!("{server}, one batch"),
            Self::TagSets => format!("{server}, tag sets"),
            Self::Statement if server == "postgresql" => format!("{server}, UNLOGGED"),
            Self::Statement => server.to_owned(),
            Self::MariaDb => format!("{server}, MEMORY"),
        }
    }

    /// Connects.
    pub(super) fn open(self, server: &Server) -> Result<Box<dyn Cache>> {
        Ok(match self {
            Self::KeyByKey => Box::new(Memcached::connect(server, false)?),
            Self::Batch => Box::new(Memcached::connect(server, true)?),
            Self::TagSets => Box::new(Redis::connect(server)?),
            Self::Statement => Box::new(Table::new(PostgreSql::connect(server)?)),
            Self::MariaDb => Box::new(Table::new(MariaDb::connect(server)?)),
        })
    }
}

/// The ways on one server. The first one fills it.
pub(super) fn ways(server: &Server) -> Vec<Way> {
    match (server.protocol, &server.sql) {
        (Protocol::Resp, _) => vec![Way::TagSets],
        (Protocol::MariaDb, _) => vec![Way::MariaDb],
        (Protocol::Memcached | Protocol::Binary, None) => vec![Way::KeyByKey, Way::Batch],
        (_, Some(_)) | (Protocol::Postgres, None) => vec![Way::Statement],
    }
}
