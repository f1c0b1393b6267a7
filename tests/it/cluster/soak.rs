//! Caches on a bus where everything fails: no invalidation that was acknowledged is missing in a cache that says it is
//! fresh since later. `INVALIDATIONS` says how many there are, `SEED` which faults come.

mod faults;
mod ledger;
mod link;
mod network;
mod postgres;

use std::thread;
use std::time::Duration;

use super::nats::Nats;
use crate::seed;
use faults::OnNats;
use ledger::{Ledger, STRIPES};
use link::Link;
use network::OnNetwork;
use postgres::OnPostgreSql;

/// Keys of a stripe are sent together.
const STRIPE: usize = 200;
const CACHES: usize = 3;
/// Two that invalidate, so that there is always one under way.
const WRITERS: usize = 2;

/// The bus and the caches, and what may happen to them.
trait Machines {
    fn sockets(&self) -> Vec<std::path::PathBuf>;

    /// Has the next fault come, and waits until all caches hear the bus again.
    fn fail(&mut self, ledger: &Ledger, random: &mut fastrand::Rng);

    /// How many have come.
    fn faults(&self) -> usize;

    fn summary(&self) -> String;
}

/// Kinds of faults in an order by chance, each once before one comes again.
struct Kinds<F: 'static> {
    all: &'static [F],
    left: Vec<F>,
}

impl<F: Copy> Kinds<F> {
    fn of(all: &'static [F]) -> Self {
        Self { all, left: Vec::new() }
    }

    fn next(&mut self, random: &mut fastrand::Rng) -> F {
        if self.left.is_empty() {
            self.left = self.all.to_vec();
            random.shuffle(&mut self.left);
        }
        self.left.pop().expect("there are some")
    }
}

/// Invalidates all keys of a stripe in some cache, and writes down what was acknowledged.
fn write(ledger: &Ledger, sockets: &[std::path::PathBuf], mut random: fastrand::Rng) {
    let mut links: Vec<Link> = sockets.iter().map(|path| Link::to(path)).collect();
    while !ledger.is_over() {
        let (stripe, cache) = (random.usize(..STRIPES), random.usize(..CACHES));
        // One that somebody fills is left to him.
        let Some(versions) = ledger.raise(stripe) else { continue };
        let keys = stripe * STRIPE..(stripe + 1) * STRIPE;
        let commands = keys.clone().map(|key| format!("delete page:{key}\r\n")).collect::<Vec<_>>().concat();
        if !links[cache].send(&commands) {
            thread::sleep(Duration::from_millis(10));
            continue;
        }
        for (key, version) in keys.zip(versions) {
            let Some(answer) = links[cache].line() else { break };
            if answer == "DELETED" || answer == "NOT_FOUND" {
                ledger.note(key, version);
            } else {
                assert!(answer.starts_with("SERVER_ERROR the bus has not acknowledged it"), "{answer}");
            }
        }
    }
}

/// Stores the versions of now, while nobody raises them.
fn store(ledger: &Ledger, sockets: &[std::path::PathBuf], mut random: fastrand::Rng) {
    let mut links: Vec<Link> = sockets.iter().map(|path| Link::to(path)).collect();
    while !ledger.is_over() {
        let (stripe, cache) = (random.usize(..STRIPES), random.usize(..CACHES));
        let versions = ledger.hold(stripe);
        let line = |(at, version): (usize, &u64)| {
            let (key, value) = (stripe * STRIPE + at, version.to_string());
            format!("set page:{key} 0 0 {}\r\n{value}\r\n", value.len())
        };
        let commands: String = versions.iter().enumerate().map(line).collect();
        let sent = links[cache].send(&commands);
        // Until it has answered or is gone, it may store them at any time.
        let whole = sent && (0..STRIPE).all(|_| links[cache].line().is_some());
        drop(versions);
        if !whole {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Looks in a cache for what was acknowledged before the moment since which it is fresh.
fn check(ledger: &Ledger, cache: usize, socket: &std::path::Path) {
    let mut link = Link::to(socket);
    let mut next = 0;
    while !ledger.is_checked(next) {
        let Some((began, lag)) = link.lag() else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let Some(fresh) = began.checked_sub(lag) else { continue };
        let due = ledger.due(cache, &mut next, fresh);
        if due.is_empty() {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        for some in due.chunks(STRIPE) {
            // What could not be looked up is not counted.
            let Some(rows) = link.get(some.iter().map(|own| own.key)) else { break };
            for own in some {
                let found = rows.iter().find(|(key, _)| *key == own.key);
                ledger.count(cache, own, found.map(|(_, version)| *version));
            }
        }
    }
}

/// A thread that fails ends all of them.
fn guarded(ledger: &Ledger, what: impl FnOnce()) {
    let _over = ledger.over_at_panic();
    what();
}

/// So many invalidations, and each kind of fault so often.
fn soak(mut machines: impl Machines, invalidations: usize, faults: usize) {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let ledger = Ledger::default();
    let sockets = machines.sockets();
    thread::scope(|scope| {
        let (ledger, sockets) = (&ledger, &sockets);
        for _ in 0..WRITERS {
            let random = random.fork();
            scope.spawn(move || guarded(ledger, || write(ledger, sockets, random)));
        }
        let filler = random.fork();
        scope.spawn(move || guarded(ledger, || store(ledger, sockets, filler)));
        for (cache, socket) in sockets.iter().enumerate() {
            scope.spawn(move || guarded(ledger, || check(ledger, cache, socket)));
        }
        let _over = ledger.over_at_panic();
        while !ledger.is_over() && (ledger.acknowledged() < invalidations || machines.faults() < faults) {
            machines.fail(ledger, &mut random);
        }
        ledger.end();
    });
    println!("{}; {}", ledger.summary(), machines.summary());
    ledger.judge(CACHES);
}

/// As many as the environment says, or so many.
fn told(usual: usize) -> usize {
    std::env::var("INVALIDATIONS").map_or(usual, |number| number.parse().expect("INVALIDATIONS is a number"))
}

#[test]
fn nothing_acknowledged_is_missing() {
    soak(OnNats::start(vec![Nats::start(&[])], CACHES), told(20_000), 5);
}

#[test]
fn nothing_acknowledged_is_missing_on_three_servers() {
    soak(OnNats::start(Nats::three().into(), CACHES), told(20_000), 5);
}

#[test]
fn nothing_acknowledged_is_missing_on_postgresql() {
    soak(OnPostgreSql::start(CACHES), told(20_000), 6);
}

/// Each server and each cache on a machine of its own, on a network that fails.
#[test]
fn nothing_acknowledged_is_missing_on_a_network_that_fails() {
    match OnNetwork::start(CACHES) {
        Some(machines) => soak(machines, told(20_000), 10),
        None => crate::skipped("network namespaces need root"),
    }
}
