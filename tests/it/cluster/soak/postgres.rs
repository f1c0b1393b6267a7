//! A PostgreSQL as the bus, and what fails there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::super::postgres::{KEEPER, cache_by, database};
use super::super::relay::Relay;
use super::super::state;
use super::ledger::Ledger;
use super::{Kinds, Machines};
use crate::drivers::place::SqlDaemon;
use crate::drivers::postgresql::PostgreSql;
use crate::sources::{asked, psql, until};

/// How old what was told may be: an outage that is meant to be short should make nobody distrust anything.
const MAX_LAG: &str = "15 s";

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillCache,
    EndCache,
    PauseCache,
    CutCache,
    KillDatabase,
    KillOneProcess,
    PauseDatabase,
    EndConnections,
    /// While a cache is away.
    DropKeeper,
    Garbage,
}

impl Fault {
    const ALL: &[Self] = &[
        Self::KillCache,
        Self::EndCache,
        Self::PauseCache,
        Self::CutCache,
        Self::KillDatabase,
        Self::KillOneProcess,
        Self::PauseDatabase,
        Self::EndConnections,
        Self::DropKeeper,
        Self::Garbage,
    ];
}

/// The database, and the caches, of which the first reaches it by a relay.
pub(super) struct OnPostgreSql {
    database: PostgreSql,
    relay: Relay,
    caches: Vec<SqlDaemon>,
    kinds: Kinds<Fault>,
    happened: BTreeMap<String, usize>,
}

impl OnPostgreSql {
    pub(super) fn start(caches: usize) -> Self {
        let database = database();
        let relay = Relay::to(database.place.port);
        let port = |at| if at == 0 { relay.port } else { database.place.port };
        let caches = (0..caches).map(|at| cache_by(port(at), MAX_LAG)).collect();
        Self { database, relay, caches, kinds: Kinds::of(Fault::ALL), happened: BTreeMap::new() }
    }

    /// The slot that keeps the messages may be copied just now.
    fn drop_keeper(&self) {
        let drops = format!("SELECT pg_drop_replication_slot('{KEEPER}')");
        until("the slot is dropped", || asked(&self.database.place, &drops).is_ok());
    }

    fn until_all_hear(&self) {
        until("all caches hear the bus", || self.caches.iter().all(|cache| state(cache) == "streaming"));
    }
}

impl Machines for OnPostgreSql {
    fn sockets(&self) -> Vec<PathBuf> {
        self.caches.iter().map(|cache| cache.daemon.socket()).collect()
    }

    fn faults(&self) -> usize {
        self.happened.values().sum()
    }

    fn summary(&self) -> String {
        let figure = |name: &str| -> Vec<String> {
            let asked = format!("SELECT {name} FROM sqlcached_buses");
            self.caches.iter().map(|cache| psql(&cache.place, &asked)).collect()
        };
        format!("{:?}, breaks {:?}, the last {:?}", self.happened, figure("breaks"), figure("last_break"))
    }

    fn fail(&mut self, _: &Ledger, random: &mut fastrand::Rng) {
        let fault = self.kinds.next(random);
        let cache = random.usize(..self.caches.len());
        let pause = Duration::from_millis(random.u64(100..2_000));
        match fault {
            Fault::KillCache => {
                self.caches[cache].daemon.kill();
                self.caches[cache].daemon.restart();
            }
            Fault::EndCache => {
                self.caches[cache].daemon.terminate();
                self.caches[cache].daemon.restart();
            }
            Fault::PauseCache => {
                self.caches[cache].daemon.signal("STOP");
                thread::sleep(pause);
                self.caches[cache].daemon.signal("CONT");
            }
            Fault::CutCache => {
                self.relay.cut(true);
                thread::sleep(pause);
                self.relay.cut(false);
            }
            Fault::KillDatabase => {
                self.database.kill_all();
                self.database.start_again();
            }
            Fault::KillOneProcess => {
                let one =
                    "SELECT pid FROM pg_stat_activity WHERE usename = 'cache' ORDER BY random() LIMIT 1";
                crate::daemon::signal(psql(&self.database.place, one).parse().unwrap(), "KILL");
                until("it serves again", || asked(&self.database.place, "SELECT 1").is_ok());
            }
            Fault::PauseDatabase => {
                self.database.signal_all("STOP");
                thread::sleep(pause);
                self.database.signal_all("CONT");
            }
            Fault::EndConnections => {
                let ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cache'";
                psql(&self.database.place, ends);
            }
            Fault::DropKeeper => {
                self.caches[cache].daemon.kill();
                self.drop_keeper();
                self.caches[cache].daemon.restart();
            }
            Fault::Garbage => {
                let says = "SELECT pg_logical_emit_message(true, 'sqlcached bus sqlcached', 'garbage')";
                psql(&self.database.place, says);
            }
        }
        self.until_all_hear();
        *self.happened.entry(format!("{fault:?}")).or_default() += 1;
    }
}
