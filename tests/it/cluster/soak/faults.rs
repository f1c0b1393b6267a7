//! What fails, one after the other, each until all caches hear the bus again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::super::nats::Nats;
use super::super::relay::Relay;
use super::super::{define, figure, state};
use super::ledger::Ledger;
use super::{Kinds, Machines};
use crate::drivers::place::SqlDaemon;
use crate::sources::until;

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillCache,
    EndCache,
    PauseCache,
    CutCache,
    KillServer,
    PauseServer,
    /// While a cache is away.
    Purge,
    RemoveStream,
    Garbage,
}

impl Fault {
    const ALL: &[Self] = &[
        Self::KillCache,
        Self::EndCache,
        Self::PauseCache,
        Self::CutCache,
        Self::KillServer,
        Self::PauseServer,
        Self::Purge,
        Self::RemoveStream,
        Self::Garbage,
    ];
}

/// The servers of NATS, and the caches, of which the first reaches them by a relay.
pub(super) struct OnNats {
    servers: Vec<Nats>,
    relay: Relay,
    caches: Vec<SqlDaemon>,
    kinds: Kinds<Fault>,
    happened: BTreeMap<String, usize>,
    /// The longest time until no cache believed its rows any more after the stream was removed.
    believed: Duration,
    /// The longest time until each had found out what had happened.
    found: Duration,
}

impl OnNats {
    pub(super) fn start(servers: Vec<Nats>, caches: usize) -> Self {
        let relay = Relay::to(servers[0].port);
        let urls: Vec<String> = servers.iter().map(Nats::url).collect();
        let bus = |urls: &str| format!("servers '{urls}', replicas '{}', connect_timeout '1'", servers.len());
        let caches = (0..caches)
            .map(|at| {
                let daemon = SqlDaemon::start(&[]);
                define(&daemon, &bus(&if at == 0 { relay.url() } else { urls.join(",") }));
                daemon
            })
            .collect();
        let own = Self {
            servers,
            relay,
            caches,
            kinds: Kinds::of(Fault::ALL),
            happened: BTreeMap::new(),
            believed: Duration::ZERO,
            found: Duration::ZERO,
        };
        own.until_all_hear();
        own
    }

    /// Three servers need some time until they agree who answers.
    fn ask(&self, what: &str) {
        until(what, || self.servers[0].ask(what, "").contains("\"success\":true"));
    }

    fn remove_stream(&mut self) {
        let figures = |name| self.caches.iter().map(|cache| figure(cache, name)).collect::<Vec<_>>();
        let (breaks, emptied) = (figures("breaks"), figures("emptied"));
        let all_grew =
            |name, before: &[u64]| figures(name).iter().zip(before).all(|(now, before)| now > before);
        self.ask("DELETE.sqlc");
        let began = Instant::now();
        until("nobody believes the rows", || all_grew("emptied", &emptied));
        let believed = began.elapsed();
        until("all find the break", || all_grew("breaks", &breaks));
        self.believed = self.believed.max(believed);
        self.found = self.found.max(began.elapsed());
    }

    fn until_all_hear(&self) {
        until("all caches hear the bus", || self.caches.iter().all(|cache| state(cache) == "streaming"));
    }
}

impl Machines for OnNats {
    fn sockets(&self) -> Vec<PathBuf> {
        self.caches.iter().map(|cache| cache.daemon.socket()).collect()
    }

    fn faults(&self) -> usize {
        self.happened.values().sum()
    }

    fn summary(&self) -> String {
        let Self { happened, believed, found, .. } = self;
        format!(
            "{happened:?}, rows of a removed stream were believed for {believed:?} at most, and the break was found after {found:?}"
        )
    }

    fn fail(&mut self, ledger: &Ledger, random: &mut fastrand::Rng) {
        let fault = self.kinds.next(random);
        let (cache, server) = (random.usize(..self.caches.len()), random.usize(..self.servers.len()));
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
            Fault::KillServer => {
                self.servers[server].kill();
                self.servers[server].start_again();
            }
            Fault::PauseServer => {
                self.servers[server].signal("STOP");
                thread::sleep(pause);
                self.servers[server].signal("CONT");
            }
            Fault::Purge => {
                self.caches[cache].daemon.kill();
                self.ask("PURGE.sqlc");
                self.caches[cache].daemon.restart();
            }
            Fault::RemoveStream => ledger.without_promise(|| self.remove_stream()),
            Fault::Garbage => {
                self.servers[server].publish("sqlc.told", b"garbage", false);
            }
        }
        self.until_all_hear();
        *self.happened.entry(format!("{fault:?}")).or_default() += 1;
    }
}
