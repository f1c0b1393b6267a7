//! Where a site keeps its fragments, and what it does to them when something was edited.

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::postgres::Wire;
use crate::protocol::Protocol;
use crate::server::Server;

use super::model::{Edit, Fragment};

/// Bytes of a fragment.
const BODY_BYTES: usize = 1_000;

/// How an edit is made known to the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invalidation {
    /// `flush_all`.
    Flush,
    /// The fragments' keys begin with a number, which an edit raises: the old ones are never asked for again.
    Generation,
    /// A statement that names what was edited.
    Statement,
}

impl Invalidation {
    /// What a server can do.
    pub(super) fn of(server: &Server) -> Vec<Self> {
        match (server.protocol, &server.sql) {
            (Protocol::Memcached, Some(_)) => vec![Self::Statement],
            (Protocol::Memcached, None) => vec![Self::Flush, Self::Generation],
            _ => Vec::new(),
        }
    }

    /// What tables call it.
    pub(super) fn label(self, server: &str) -> String {
        match self {
            Self::Flush => format!("{server}, flush_all"),
            Self::Generation => format!("{server}, generation in the keys"),
            Self::Statement => format!("{server}, a statement"),
        }
    }
}

/// A site's cache.
#[derive(Debug)]
pub(super) struct Fragments {
    client: Client,
    sql: Option<Wire>,
    invalidation: Invalidation,
    generation: u64,
    body: Vec<u8>,
}

/// Prepared statements by their names.
const STATEMENTS: [(&str, &str); 3] = [
    ("page", "DELETE FROM parts WHERE page_id = $1 OR (section_id = $2 AND part = 'navigation')"),
    ("user", "DELETE FROM parts WHERE user_id = $1"),
    ("template", "DELETE FROM parts WHERE part = 'header'"),
];

/// The columns are read out of the keys that memcached's clients use.
const TABLE: &str = "CREATE TABLE parts (key TEXT PRIMARY KEY, body TEXT NOT NULL, \
     part TEXT AS (split_part(key, ':', 1)), page_id INT AS (split_part(key, ':', 2)), \
     section_id INT AS (split_part(key, ':', 3)), user_id INT AS (split_part(key, ':', 4))) \
     WITH (prefix = 'p/', value = 'body')";
/// One for each way to ask.
const INDEXES: [&str; 4] = [
    "CREATE INDEX parts_page ON parts (page_id)",
    "CREATE INDEX parts_section ON parts (section_id, part)",
    "CREATE INDEX parts_user ON parts (user_id)",
    "CREATE INDEX parts_part ON parts (part)",
];

impl Fragments {
    /// An empty cache.
    pub(super) fn open(server: &Server, invalidation: Invalidation) -> Result<Self> {
        let mut client = Client::connect(&server.address)?;
        let mut sql = None;
        if invalidation == Invalidation::Statement {
            let address = server.sql.as_ref().ok_or_else(|| Failure::new("no PostgreSQL listener"))?;
            let mut wire = Wire::connect(address)?;
            wire.run("DROP TABLE IF EXISTS parts")?;
            for definition in [TABLE].iter().chain(&INDEXES) {
                wire.run(definition)?;
            }
            for (name, text) in STATEMENTS {
                wire.prepare(name, text)?;
            }
            sql = Some(wire);
        } else {
            client.out.extend_from_slice(b"flush_all\r\n");
            client.send()?;
            client.expect(b"OK")?;
        }
        Ok(Self { client, sql, invalidation, generation: 0, body: vec![b'x'; BODY_BYTES] })
    }

    /// Looks for all of them with one request; which are missing.
    pub(super) fn get(&mut self, fragments: &[Fragment]) -> Result<Vec<Fragment>> {
        let keys: Vec<String> = fragments.iter().map(|fragment| self.key(fragment)).collect();
        self.client.out.extend_from_slice(b"get");
        for key in &keys {
            self.client.out.push(b' ');
            self.client.out.extend_from_slice(key.as_bytes());
        }
        self.client.out.extend_from_slice(b"\r\n");
        self.client.send()?;
        let mut missing: Vec<(&String, Fragment)> = keys.iter().zip(fragments.iter().copied()).collect();
        self.client.read_values(|found, _| missing.retain(|(key, _)| key.as_bytes() != found))?;
        Ok(missing.into_iter().map(|(_, fragment)| fragment).collect())
    }

    /// Stores what was made.
    pub(super) fn set(&mut self, fragments: &[Fragment]) -> Result<()> {
        for fragment in fragments {
            let head = format!("set {} 0 0 {}\r\n", self.key(fragment), self.body.len());
            self.client.out.extend_from_slice(head.as_bytes());
            self.client.out.extend_from_slice(&self.body);
            self.client.out.extend_from_slice(b"\r\n");
        }
        self.client.send()?;
        fragments.iter().try_for_each(|_| self.client.expect(b"STORED"))
    }

    /// Something was edited.
    pub(super) fn edited(&mut self, edit: Edit) -> Result<()> {
        match (self.invalidation, &mut self.sql) {
            (Invalidation::Flush, _) => {
                self.client.out.extend_from_slice(b"flush_all\r\n");
                self.client.send()?;
                self.client.expect(b"OK")
            }
            (Invalidation::Generation, _) => {
                self.generation += 1;
                Ok(())
            }
            (Invalidation::Statement, Some(wire)) => delete(wire, edit),
            (Invalidation::Statement, None) => Err(Failure::new("no PostgreSQL listener")),
        }
    }

    fn key(&self, fragment: &Fragment) -> String {
        match self.invalidation {
            Invalidation::Generation => format!("g{}/{}", self.generation, fragment.key()),
            Invalidation::Flush | Invalidation::Statement => format!("p/{}", fragment.key()),
        }
    }
}

fn delete(wire: &mut Wire, edit: Edit) -> Result<()> {
    let mut run = |name: &str, numbers: &[u64]| {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let parameters: Vec<&[u8]> = numbers.iter().map(String::as_bytes).collect();
        wire.execute(name, &parameters).map(|_| ())
    };
    match edit {
        Edit::Page { page, section } => run("page", &[page, section]),
        Edit::User { user } => run("user", &[user]),
        Edit::Template => run("template", &[]),
    }
}
