//! Caches with a statement for it: our tables and PostgreSQL's, MariaDB's, SQLite's.

use crate::failure::{Context, Failure, Result};
use crate::mariadb;
use crate::pages::{self, Fragment};
use crate::postgres;
use crate::protocol::Protocol;
use crate::server::Server;

use super::cache::{Cache, Owner};

/// A connection that runs statements.
pub(super) trait Database: Send {
    /// The definitions of table and indexes.
    fn definitions(&self) -> Vec<String>;
    /// What deletes all rows fastest.
    fn delete_all(&self) -> &'static str;
    /// Runs a statement.
    fn run(&mut self, statement: &str) -> Result<u64>;
    /// Prepares all [`Prepared`]; the table is there.
    fn prepare(&mut self) -> Result<()>;
    /// Runs one with its parameter; the rows it deleted.
    fn execute(&mut self, statement: Prepared, number: u64) -> Result<u64>;
    /// What is to be run after a fill.
    fn settle(&self) -> Option<&'static str> {
        None
    }
}

/// Statements with one number as parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Prepared {
    ExpirePage,
    ExpireUser,
    ReadPage,
}

impl Prepared {
    const ALL: [Self; 3] = [Self::ExpirePage, Self::ExpireUser, Self::ReadPage];

    fn text(self) -> &'static str {
        match self {
            Self::ExpirePage => pages::EXPIRE_PAGE,
            Self::ExpireUser => pages::EXPIRE_USER,
            Self::ReadPage => "SELECT body FROM fragments WHERE page_id = ?",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ExpirePage => "page",
            Self::ExpireUser => "user",
            Self::ReadPage => "read",
        }
    }
}

/// The data set in a database's table.
#[derive(Debug)]
pub(super) struct Table<D> {
    database: D,
    prepared: bool,
}

impl<D: Database> Table<D> {
    /// Over a connection.
    pub(super) fn new(database: D) -> Self {
        Self { database, prepared: false }
    }

    fn execute(&mut self, statement: Prepared, number: u64) -> Result<u64> {
        if !self.prepared {
            self.database.prepare()?;
            self.prepared = true;
        }
        self.database.execute(statement, number)
    }
}

impl<D: Database> Cache for Table<D> {
    fn define(&mut self) -> Result<()> {
        self.database.run("DROP TABLE IF EXISTS fragments")?;
        for definition in self.database.definitions() {
            self.database.run(&definition)?;
        }
        Ok(())
    }

    fn expire_all(&mut self) -> Result<()> {
        self.database.run(self.database.delete_all())?;
        Ok(())
    }

    fn refill(&mut self, rows: &[Fragment]) -> Result<()> {
        for statement in pages::inserts(rows) {
            self.database.run(&statement)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        if let Some(statement) = self.database.settle() {
            self.database.run(statement)?;
        }
        Ok(())
    }

    fn expire(&mut self, owner: Owner, number: u64, _rows: &[Fragment]) -> Result<u64> {
        let statement = match owner {
            Owner::Page => Prepared::ExpirePage,
            Owner::User => Prepared::ExpireUser,
        };
        self.execute(statement, number)
    }

    fn read(&mut self, page: u64, _rows: &[Fragment]) -> Result<()> {
        self.execute(Prepared::ReadPage, page)?;
        Ok(())
    }
}

/// Ours, and PostgreSQL with tables that nothing makes durable.
#[derive(Debug)]
pub(super) struct PostgreSql {
    wire: postgres::Wire,
    /// It is PostgreSQL itself.
    original: bool,
}

impl PostgreSql {
    pub(super) fn connect(server: &Server) -> Result<Self> {
        let address = server.sql.as_ref().ok_or_else(|| Failure::new("no PostgreSQL listener"))?;
        let original = server.protocol == Protocol::Postgres;
        Ok(Self { wire: postgres::Wire::connect(address)?, original })
    }
}

impl Database for PostgreSql {
    fn definitions(&self) -> Vec<String> {
        let table = if self.original { "CREATE UNLOGGED TABLE" } else { "CREATE TABLE" };
        pages::DEFINITIONS.iter().map(|text| text.replace("CREATE TABLE", table)).collect()
    }

    fn delete_all(&self) -> &'static str {
        "TRUNCATE fragments"
    }

    fn run(&mut self, statement: &str) -> Result<u64> {
        Ok(self.wire.run(statement)?.affected)
    }

    fn prepare(&mut self) -> Result<()> {
        for statement in Prepared::ALL {
            self.wire.prepare(statement.name(), &statement.text().replace('?', "$1"))?;
        }
        Ok(())
    }

    fn execute(&mut self, statement: Prepared, number: u64) -> Result<u64> {
        Ok(self.wire.execute(statement.name(), &[number.to_string().as_bytes()])?.affected)
    }

    fn settle(&self) -> Option<&'static str> {
        self.original.then_some("VACUUM ANALYZE fragments")
    }
}

/// MariaDB with the MEMORY engine.
#[derive(Debug)]
pub(super) struct MariaDb {
    wire: mariadb::Wire,
    prepared: Vec<mariadb::Prepared>,
}

impl MariaDb {
    pub(super) fn connect(server: &Server) -> Result<Self> {
        let mut wire = mariadb::Wire::connect(&server.address)?;
        wire.run("CREATE DATABASE IF NOT EXISTS bench")?;
        wire.run("USE bench")?;
        wire.run("SET SESSION max_heap_table_size = 1073741824")?;
        Ok(Self { wire, prepared: Vec::new() })
    }
}

impl Database for MariaDb {
    /// Trees for the indexes that have many rows for a value; MEMORY's hash indexes are slow there. `KEY` is a
    /// reserved word.
    fn definitions(&self) -> Vec<String> {
        let table = "CREATE TABLE fragments (`key` VARCHAR(40) PRIMARY KEY, page_id INT NOT NULL, user_id INT NOT NULL, \
             body VARCHAR(120) NOT NULL, INDEX USING BTREE (page_id), INDEX USING BTREE (user_id)) ENGINE = MEMORY";
        vec![table.to_owned()]
    }

    fn delete_all(&self) -> &'static str {
        "TRUNCATE TABLE fragments"
    }

    fn run(&mut self, statement: &str) -> Result<u64> {
        let statement = statement.replacen("fragments (key,", "fragments (`key`,", 1);
        Ok(self.wire.run(&statement)?.affected)
    }

    fn prepare(&mut self) -> Result<()> {
        for statement in Prepared::ALL {
            self.prepared.push(self.wire.prepare(statement.text())?);
        }
        Ok(())
    }

    fn execute(&mut self, statement: Prepared, number: u64) -> Result<u64> {
        let prepared = self.prepared.get(statement as usize).copied();
        let prepared = prepared.ok_or_else(|| Failure::new("the statement is not prepared"))?;
        Ok(self.wire.execute(prepared, number)?.affected)
    }
}

/// SQLite in this process' memory.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: rusqlite::Connection,
}

impl Sqlite {
    pub(super) fn open() -> Result<Self> {
        let connection = rusqlite::Connection::open_in_memory().context(|| "open SQLite".into())?;
        Ok(Self { connection })
    }
}

impl Database for Sqlite {
    fn definitions(&self) -> Vec<String> {
        pages::DEFINITIONS.map(str::to_owned).to_vec()
    }

    fn delete_all(&self) -> &'static str {
        "DELETE FROM fragments"
    }

    fn run(&mut self, statement: &str) -> Result<u64> {
        let changed = self.connection.execute(statement, []).context(|| "SQLite".into())?;
        Ok(changed as u64)
    }

    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn execute(&mut self, statement: Prepared, number: u64) -> Result<u64> {
        let mut prepared = self.connection.prepare_cached(statement.text()).context(|| "SQLite".into())?;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let changed = prepared.execute([number]).context(|| "SQLite".into())?;
        Ok(changed as u64)
    }
}
