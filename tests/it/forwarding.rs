//! Clients that name a foreign server as their database: what they are answered is what the database behind answers.

mod bytes;
mod caching;
mod checker;
mod faults;
mod goodbye;
mod joining;
mod pass_through;
mod pipelines;
mod talk;
mod versions;

use crate::drivers::place::{Place, SqlDaemon};
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{psql, until};

/// A daemon in front of a database with a publication `cache`, which it forwards to under the same name.
pub(crate) fn in_front_of(direct: &Place, options: &str, flags: &[&str]) -> (SqlDaemon, Place) {
    let daemon = SqlDaemon::start(flags);
    let name = direct.database;
    let through = Place { user: "postgres", database: name, ..daemon.place.clone() };
    let through = Place { memcached: None, ..through };
    let options = if options.is_empty() { String::new() } else { format!(", {options}") };
    psql(
        &daemon.place,
        &format!(
            "CREATE SERVER \"{name}\" FOREIGN DATA WRAPPER postgres OPTIONS (host '127.0.0.1', port '{}', dbname '{name}',
                 publication 'cache'{options});
             CREATE USER MAPPING FOR PUBLIC SERVER \"{name}\" OPTIONS (user 'postgres')",
            direct.port
        ),
    );
    (daemon, through)
}

/// What a source needs whose changes are streamed.
pub(crate) const SETTINGS: &[&str] =
    &["wal_level=logical", "max_prepared_transactions=8", "max_slot_wal_keep_size=1GB"];

/// A database, and a daemon that forwards to it.
struct Shop {
    /// The database as it is.
    direct: Place,
    /// The same through the daemon.
    through: Place,
    daemon: SqlDaemon,
    database: PostgreSql,
}

impl Shop {
    /// With these options of the server, as `cache 'auto'`, and after these statements at the source.
    fn start(options: &str, made: &str) -> Self {
        Self::start_with(options, made, SETTINGS, &[])
    }

    fn start_with(options: &str, made: &str, settings: &[&str], flags: &[&str]) -> Self {
        let database = PostgreSql::start_with(settings);
        let direct = database.database("shop");
        psql(&direct, "CREATE PUBLICATION cache FOR ALL TABLES");
        psql(&direct, made);
        let (daemon, through) = in_front_of(&direct, options, flags);
        Self { direct, through, daemon, database }
    }

    /// With a cache that follows.
    fn cached(made: &str) -> Self {
        let shop = Self::start("cache 'auto'", made);
        shop.follow();
        shop
    }

    /// Has the table of answers made, which the first session does, and waits until its stream follows.
    fn follow(&self) {
        psql(&self.through, "SELECT 1");
        until("the stream follows", || {
            psql(&self.daemon.place, "SELECT state FROM sqlcached_sources") == "streaming"
        });
    }

    /// Waits until all that the source has written is applied here, and shown by it.
    fn settle(&self) {
        let place = psql(&self.direct, "SELECT pg_current_wal_insert_lsn()");
        until("it is applied", || {
            let wait = format!("SELECT wait_for_source('shop', '{place}', '30 s')");
            psql(&self.daemon.place, &wait) == "t"
        });
        until("all is settled", || {
            psql(&self.daemon.place, "SELECT max(unsettled) FROM sqlcached_sources") == "0"
        });
    }

    /// Waits until the definitions of now are noticed: what was known of statements is forgotten with those of before.
    fn notice(&self) {
        let name = format!("probe_{:x}", fastrand::u64(..));
        let sql = format!("SELECT oid AS {name} FROM pg_class WHERE false");
        until("it is known", || {
            let talk = talk::Talk::with(&self.through);
            talk.must("SELECT 1");
            talk.must(&sql);
            self.count("1", &sql) > 0
        });
        psql(&self.direct, &format!("CREATE TABLE {name} ()"));
        until("definitions are noticed", || self.count("1", &sql) == 0);
    }

    /// Has commits of the source wait for these standbys.
    fn set_standbys(&self, names: &str) {
        psql(&self.direct, &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        psql(&self.direct, "SELECT pg_reload_conf()");
        until("the source has read it", || psql(&self.direct, "SHOW synchronous_standby_names") == names);
    }

    /// How many statements there are in each state, with the reasons.
    fn facts(&self) -> String {
        psql(
            &self.daemon.place,
            "SELECT state, reason, count(*), sum(hits), sum(joined), sum(kept), sum(late), sum(forwarded) FROM sqlcached_forwarded
                 GROUP BY state, reason ORDER BY state, reason",
        )
    }

    /// A number that `sqlcached_forwarded` has of all statements that begin in this way.
    fn count(&self, what: &str, text: &str) -> u64 {
        let text = text.replace('\'', "''");
        let sql = format!(
            "SELECT coalesce(sum({what}), 0) FROM sqlcached_forwarded WHERE substr(statement, 1, {}) = '{text}'",
            text.replace("''", "'").chars().count()
        );
        psql(&self.daemon.place, &sql).parse().unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}
