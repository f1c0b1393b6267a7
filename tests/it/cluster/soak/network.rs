//! Three servers of NATS and the caches, each on a machine of its own, and a network that fails: cables that are out,
//! packets that are lost, and halves that do not reach one another.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::super::nats::Nats;
use super::super::network::Network;
use super::super::{define, state};
use super::ledger::Ledger;
use super::{Kinds, Machines};
use crate::drivers::place::SqlDaemon;
use crate::sources::{psql, until};

const SERVERS: usize = 3;

/// Shorter and longer than what makes a connection be given up, and than `max_lag`.
const MAX_LAG: &str = "6 s";
const PAUSE_MS: std::ops::Range<u64> = 200..9_000;

#[derive(Clone, Copy, Debug)]
enum Fault {
    UnplugCache,
    UnplugServer,
    /// One that loses some packets in each direction of its connections.
    LossAtCache,
    LossAtServer,
    /// Nothing comes to it, and what it says does.
    DeafCache,
    DeafServer,
    /// One server and some caches, and the others.
    CutInTwo,
    /// Each machine alone.
    AllAlone,
    KillServer,
    KillCache,
}

impl Fault {
    const ALL: &[Self] = &[
        Self::UnplugCache,
        Self::UnplugServer,
        Self::LossAtCache,
        Self::LossAtServer,
        Self::DeafCache,
        Self::DeafServer,
        Self::CutInTwo,
        Self::AllAlone,
        Self::KillServer,
        Self::KillCache,
    ];
}

/// Servers are on the first machines, caches on the others.
pub(super) struct OnNetwork {
    servers: Vec<Nats>,
    caches: Vec<SqlDaemon>,
    kinds: Kinds<Fault>,
    happened: BTreeMap<String, usize>,
    /// It goes after those who are on it.
    network: Network,
}

impl OnNetwork {
    /// None: this user may not make networks.
    pub(super) fn start(caches: usize) -> Option<Self> {
        let network = Network::of(SERVERS + caches)?;
        let hosts: Vec<String> = (0..SERVERS).map(|machine| network.address(machine)).collect();
        let servers: Vec<Nats> = (0..SERVERS).map(|at| network.on(at, || Nats::one_of(&hosts, at))).collect();
        let urls: Vec<String> = servers.iter().map(Nats::url).collect();
        let bus = format!(
            "servers '{}', replicas '{SERVERS}', connect_timeout '1', max_lag '{MAX_LAG}'",
            urls.join(",")
        );
        let start = || {
            let daemon = SqlDaemon::start(&[]);
            define(&daemon, &bus);
            daemon
        };
        let caches = (0..caches).map(|at| network.on(SERVERS + at, start)).collect();
        let own = Self { servers, caches, kinds: Kinds::of(Fault::ALL), happened: BTreeMap::new(), network };
        own.until_all_hear();
        Some(own)
    }

    fn asked(&self, cache: usize, sql: &str) -> String {
        self.network.on(SERVERS + cache, || psql(&self.caches[cache].place, sql))
    }

    fn until_all_hear(&self) {
        let hears = |at| self.network.on(SERVERS + at, || state(&self.caches[at]) == "streaming");
        until("all caches hear the bus", || (0..self.caches.len()).all(hears));
    }

    /// Half of the caches, and one server, which is too few to go on.
    fn minority(&self, random: &mut fastrand::Rng) -> Vec<usize> {
        let mut caches: Vec<usize> = (SERVERS..SERVERS + self.caches.len()).collect();
        random.shuffle(&mut caches);
        caches.truncate(self.caches.len().div_ceil(2));
        caches.push(random.usize(..SERVERS));
        caches
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..SERVERS + self.caches.len()
    }
}

impl Machines for OnNetwork {
    fn sockets(&self) -> Vec<PathBuf> {
        self.caches.iter().map(|cache| cache.daemon.socket()).collect()
    }

    fn faults(&self) -> usize {
        self.happened.values().sum()
    }

    fn summary(&self) -> String {
        let figure = |name: &str| -> Vec<String> {
            let asked = format!("SELECT {name} FROM sqlcached_buses");
            (0..self.caches.len()).map(|at| self.asked(at, &asked)).collect()
        };
        format!("{:?}, breaks {:?}, reconnects {:?}", self.happened, figure("breaks"), figure("reconnects"))
    }

    fn fail(&mut self, _: &Ledger, random: &mut fastrand::Rng) {
        let fault = self.kinds.next(random);
        let (server, cache) = (random.usize(..SERVERS), random.usize(..self.caches.len()));
        let machine = SERVERS + cache;
        let pause = Duration::from_millis(random.u64(PAUSE_MS));
        let wait = || thread::sleep(pause);
        let part = random.f64().mul_add(0.3, 0.05);
        let minority = self.minority(random);
        let network = &self.network;
        match fault {
            Fault::UnplugCache | Fault::UnplugServer => {
                let which = if matches!(fault, Fault::UnplugCache) { machine } else { server };
                network.plug(which, false);
                wait();
                network.plug(which, true);
            }
            Fault::LossAtCache | Fault::LossAtServer | Fault::DeafCache | Fault::DeafServer => {
                let which =
                    if matches!(fault, Fault::LossAtCache | Fault::DeafCache) { machine } else { server };
                let loses = matches!(fault, Fault::LossAtCache | Fault::LossAtServer);
                network.lose(which, if loses { part } else { 1.0 });
                wait();
                network.lose(which, 0.0);
            }
            Fault::CutInTwo => {
                network.split(&minority);
                wait();
                network.split(&[]);
            }
            Fault::AllAlone => {
                self.all().for_each(|each| network.plug(each, false));
                wait();
                self.all().for_each(|each| network.plug(each, true));
            }
            Fault::KillServer => {
                let own = &mut self.servers[server];
                network.on(server, || {
                    own.kill();
                    own.start_again();
                });
            }
            Fault::KillCache => {
                let own = &mut self.caches[cache];
                network.on(machine, || {
                    own.daemon.kill();
                    own.daemon.restart();
                });
            }
        }
        self.until_all_hear();
        *self.happened.entry(format!("{fault:?}")).or_default() += 1;
    }
}
