//! A PostgreSQL with a table in it, and a daemon that follows it.

use std::thread;
use std::time::Duration;

use crate::clock;
use crate::cores::Cores;
use crate::failure::{Failure, Result};
use crate::postgres::Wire;
use crate::server::{Kind, Server, Setup};

/// Nothing that is waited for here takes longer.
const PATIENCE_NS: u64 = 300_000_000_000;
/// How often it is looked at.
const GLANCE: Duration = Duration::from_millis(1);
/// The daemon's memory in MiB: a million rows and their indexes.
const MEMORY_MIB: u64 = 1024;

/// Both servers, and a connection to each.
pub(super) struct Shop {
    pub(super) database: Server,
    pub(super) daemon: Server,
    pub(super) source: Wire,
    pub(super) cache: Wire,
}

impl Shop {
    /// A database with so many products, and a daemon that knows it as the server `pg`.
    pub(super) fn open(kind: &Kind, products: u64) -> Result<Self> {
        // As sources are: a commit is seen once its log is flushed, and can be held back by a standby.
        let extra = ["wal_level=logical", "fsync=off", "synchronous_commit=on", "max_wal_size=4GB"];
        let extra = extra.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect();
        let database = Server::start(&Kind::PostgreSql, &Setup { extra, ..Setup::new(0, Cores::free()) })?;
        let setup = Setup { sql_listener: true, ..Setup::new(MEMORY_MIB, Cores::free()) };
        let daemon = Server::start(kind, &setup)?;
        let sql = daemon.sql.clone().ok_or_else(|| Failure::new("the daemon has no SQL port"))?;
        let (source, cache) = (Wire::connect(&database.address)?, Wire::connect(&sql)?);
        let mut shop = Self { database, daemon, source, cache };
        shop.source.run(&format!(
            "CREATE TABLE product (id INT PRIMARY KEY, version INT NOT NULL, price INT NOT NULL);
             INSERT INTO product SELECT n, 0, n FROM generate_series(1, {products}) n;
             CREATE PUBLICATION cache FOR TABLE product"
        ))?;
        let port = match &shop.database.address {
            crate::address::Address::Tcp(address) => address.port(),
            other => return Err(Failure::new(format!("a database at {other}"))),
        };
        shop.cache.run(&format!(
            "CREATE SERVER pg FOREIGN DATA WRAPPER postgres
                 OPTIONS (host '127.0.0.1', port '{port}', dbname 'postgres', publication 'cache', max_lag '1 min');
             CREATE USER MAPPING FOR PUBLIC SERVER pg OPTIONS (user 'postgres', password 'none')"
        ))?;
        Ok(shop)
    }

    /// Makes a table here, and waits until its source is followed.
    pub(super) fn create(&mut self, table: &str) -> Result<()> {
        self.cache.run(table)?;
        self.until("the source is followed", "SELECT state = 'streaming' FROM sqlcached_sources")
    }

    /// Waits until a query of the daemon says `t`.
    pub(super) fn until(&mut self, what: &str, query: &str) -> Result<()> {
        let began = clock::now_ns();
        while self.fact(query)? != "t" {
            if clock::now_ns() - began > PATIENCE_NS {
                let error = self.fact("SELECT last_error FROM sqlcached_sources")?;
                return Err(Failure::new(format!("it was waited too long until {what}: {error}")));
            }
            thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// The one value that a query of the daemon gives.
    pub(super) fn fact(&mut self, query: &str) -> Result<String> {
        one(&mut self.cache, query)
    }

    /// The same as a number.
    pub(super) fn figure(&mut self, query: &str) -> Result<f64> {
        let text = self.fact(query)?;
        text.parse().map_err(|_| Failure::new(format!("{query}: {text}")))
    }

    /// Waits until all that the source has committed by now is applied here.
    pub(super) fn settle(&mut self) -> Result<()> {
        let lsn = one(&mut self.source, "SELECT pg_current_wal_lsn()")?;
        applied(&mut self.cache, &lsn)
    }
}

/// Waits until the source's log is applied so far.
pub(super) fn applied(cache: &mut Wire, lsn: &str) -> Result<()> {
    match one(cache, &format!("SELECT wait_for_source('pg', '{lsn}', '1 min')"))?.as_str() {
        "t" => Ok(()),
        _ => Err(Failure::new(format!("{lsn} is not applied within a minute"))),
    }
}

/// The first value of the first row.
pub(super) fn one(wire: &mut Wire, query: &str) -> Result<String> {
    let rows = wire.rows(query)?;
    let value = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
    Ok(value.unwrap_or_default())
}
