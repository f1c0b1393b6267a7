//! Many sessions read through the cache as fast as they can, while another one writes: no answer is older than its
//! freshness promises.
//!
//! Each row has a version, which its only writer raises. A reader notes the version that is certain before it asks, and
//! must not be answered an older one. Certain is what was acknowledged: by any session where `checked` or `commit` is
//! promised, and a while ago else. A session that writes always sees what it wrote.
//!
//! `READS=10000000` asks for more, with each freshness.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::Builder;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::talk::Talk;
use super::{SETTINGS, Shop};
use crate::drivers::place::Place;
use crate::sources::until;

/// The usual run of each freshness. The environment's `READS` changes it.
const READS: u64 = 40_000;

/// Rows: few, so that an answer is read often before it is dropped.
const KEYS: usize = 12;

/// Those from here on are read by a statement that takes so long that sessions wait for each other's answers.
const SLOW_FROM: usize = 10;

/// Threads of readers, sessions of each, and reads that a session sends at once.
const THREADS: usize = 2;
const SESSIONS: usize = 12;
const AT_ONCE: usize = 4;

/// One in so many reads and writes is of a slow row.
const SLOW_EACH: u32 = 64;

/// The pause between two writes.
const PAUSE: Duration = Duration::from_millis(1);

/// How old an answer may be of what another session wrote: what `max_lag` says, and time for a machine that does much
/// else.
const LAG: Duration = Duration::from_secs(10);

const MADE: &str = "CREATE TABLE thing (id INT PRIMARY KEY, ver BIGINT); INSERT INTO thing SELECT n, 0 FROM generate_series(0, 11) n";
const WRITE: &str = "UPDATE thing SET ver = $2 WHERE id = $1";
const READ: &str = "SELECT ver FROM thing WHERE id = $1";
const SLOW: &str = "SELECT t.ver FROM thing t, generate_series(1, 20000) n WHERE t.id = $1 GROUP BY t.ver HAVING count(*) > 1";

/// What is known of versions while all work.
#[derive(Default)]
struct Versions {
    /// The version of each row that a reader must see.
    certain: [AtomicI64; KEYS],
    reads: AtomicU64,
    writes: AtomicU64,
    stop: AtomicBool,
}

impl Versions {
    fn goes_on(&self) -> bool {
        // Relaxed: whoever reads it a little later stops a little later.
        !self.stop.load(Ordering::Relaxed)
    }
}

async fn connect(place: &Place, options: &str) -> Client {
    let mut config = Config::new();
    config.host("127.0.0.1").port(place.port).user(place.user).dbname(place.database).options(options);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn key(random: &mut fastrand::Rng) -> usize {
    let slow = random.u32(..SLOW_EACH) == 0;
    if slow { random.usize(SLOW_FROM..KEYS) } else { random.usize(..SLOW_FROM) }
}

/// A session's statements, prepared.
struct Session {
    client: Client,
    read: Statement,
    slow: Statement,
}

impl Session {
    async fn new(place: &Place, options: &str) -> Self {
        let client = connect(place, options).await;
        let (read, slow) = (client.prepare(READ).await.unwrap(), client.prepare(SLOW).await.unwrap());
        Self { client, read, slow }
    }

    async fn version(&self, key: usize) -> i64 {
        let statement = if key < SLOW_FROM { &self.read } else { &self.slow };
        let row = self.client.query_one(statement, &[&i32::try_from(key).unwrap()]).await.unwrap();
        row.get(0)
    }

    async fn read(&self, versions: &Versions, key: usize) {
        // Acquire: pairs with the Release of the writer, which had heard of its commit.
        let certain = versions.certain[key].load(Ordering::Acquire);
        let found = self.version(key).await;
        assert!(found >= certain, "row {key} was {found}, and before it was asked for it was {certain}");
        versions.reads.fetch_add(1, Ordering::Relaxed);
    }
}

fn readers(place: &Place, options: &str, versions: &Versions, seed: u64) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sessions = join_all((0..SESSIONS).map(|_| Session::new(place, options))).await;
        let works = sessions.iter().enumerate().map(|(at, session)| async move {
            let mut random = fastrand::Rng::with_seed(seed ^ at as u64);
            while versions.goes_on() {
                join_all((0..AT_ONCE).map(|_| session.read(versions, key(&mut random)))).await;
            }
        });
        join_all(works).await;
    });
}

/// Writes until all was read. `lag`: how long after its commit a version is certain.
fn writer(place: &Place, options: &str, versions: &Versions, lag: Duration, wanted: u64) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = Session::new(place, options).await;
        let write = session.client.prepare(WRITE).await.unwrap();
        let mut random = fastrand::Rng::with_seed(crate::seed());
        let mut committed: VecDeque<(Instant, usize, i64)> = VecDeque::new();
        for version in 1_i64.. {
            // Relaxed: counts.
            if versions.reads.load(Ordering::Relaxed) >= wanted || !versions.goes_on() {
                break;
            }
            let key = key(&mut random);
            session.client.execute(&write, &[&i32::try_from(key).unwrap(), &version]).await.unwrap();
            versions.writes.fetch_add(1, Ordering::Relaxed);
            committed.push_back((Instant::now(), key, version));
            while let Some((_, key, version)) = committed.pop_front_if(|(at, ..)| at.elapsed() >= lag) {
                // Release: pairs with the Acquire of readers.
                versions.certain[key].store(version, Ordering::Release);
            }
            assert_eq!(session.version(key).await, version, "a session sees what it wrote");
            tokio::time::sleep(PAUSE).await;
        }
    });
}

/// Has the source be asked what both statements depend on.
fn warm(shop: &Shop) {
    let mut talk = Talk::with(&shop.through);
    until("answers of both are kept", || {
        for sql in [READ, SLOW] {
            talk.prepared(sql, 0).unwrap();
        }
        shop.count("kept", READ) > 0 && shop.count("kept", SLOW) > 0
    });
}

/// Reads with a freshness. `through`: the writer works through the cache, too.
fn check(freshness: &str, through: bool, lag: Duration) {
    let wanted = std::env::var("READS").map_or(READS, |text| text.parse().expect("READS is a number"));
    let name = if freshness == "commit" { ", standby_name 'cache'" } else { "" };
    let shop = Shop::start_with(&format!("cache 'auto', freshness '{freshness}'{name}"), MADE, SETTINGS, &[]);
    shop.follow();
    if freshness == "commit" {
        shop.set_standbys("ANY 1 (cache)");
        // It is a change of definitions: what was prepared before it is forwarded.
        shop.notice();
    }
    warm(&shop);
    let versions = Versions::default();
    let writes_at = if through { &shop.through } else { &shop.direct };
    thread::scope(|scope| {
        let versions = &versions;
        let readers: Vec<_> = (0..THREADS as u64)
            .map(|seed| {
                let place = &shop.through;
                scope.spawn(move || readers(place, "", versions, seed))
            })
            .collect();
        let writing = scope.spawn(move || writer(writes_at, "", versions, lag, wanted));
        let written = writing.join();
        versions.stop.store(true, Ordering::Relaxed);
        let read: Vec<_> = readers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        assert!(written.is_ok() && read.iter().all(Result::is_ok), "an old version was read: see above");
    });
    println!("{}", shop.facts());
    let (hits, joined) = (shop.count("hits", "SELECT"), shop.count("joined", "SELECT"));
    let (reads, writes) = (versions.reads.into_inner(), versions.writes.into_inner());
    println!("{freshness}: {reads} reads, {hits} hits, {joined} joined, {writes} writes");
    assert!(hits > 0 && writes > 0, "nothing was tested");
    if freshness == "commit" {
        shop.set_standbys("");
    }
}

#[test]
fn no_version_is_older_than_own_promises() {
    check("own", true, LAG);
}

#[test]
fn no_version_is_older_than_stream_promises() {
    check("stream", false, LAG);
}

#[test]
fn no_version_is_older_than_checked_promises() {
    check("checked", false, Duration::ZERO);
}

#[test]
fn no_version_is_older_than_commit_promises() {
    check("commit", false, Duration::ZERO);
}
