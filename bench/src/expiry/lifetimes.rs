//! Mixes of times to live: hits, and how much of the memory holds rows that are still alive.
//!
//! The seven days that the statistics cover pass in a quarter of the run's length, times to live with them. Each
//! request goes to both servers: a read, and a write where it missed. New objects come at the cluster's rate, but never
//! fewer than one in [`NEW_LEAST`]: what would be asked for more often is a hit in any cache. The memory lies between
//! what all objects take and what those alive take, so that a cache that gives back what ended holds the rest.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::clock;
use crate::failure::Result;
use crate::load::{KEY_BYTES, key, value};
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::{digits, thousands};

use super::Bench;
use super::clusters::{CLUSTERS, COVERED, Cluster};

/// Requests a second: what one load thread asks of two servers on two busy cores.
const RATE: f64 = 30_000.0;
/// Keys in one read.
const BATCH: usize = 64;
/// One request in so many, at least, is for a new object.
const NEW_LEAST: f64 = 0.1;
/// What any cache takes for a row beside key and value, about: the memory is chosen by it.
const BESIDE_BYTES: usize = 50;
/// memcached counts in whole seconds, and what lives for one may end at once.
const LIFE_LEAST_SECONDS: f64 = 2.0;
/// Parts of the run after each of which the rows are counted: a day each.
const DAYS: u64 = 7;
/// Days that fill the cache and do not count.
const WARM_UP: u64 = 2;
/// Keeps the keys apart from those of other parts.
const SPACE: u64 = 23;

/// A cluster's load, the same for both servers.
struct Mix {
    cluster: Cluster,
    objects: u64,
    new_share: f64,
    /// Seconds of the run for each of the cluster's.
    scale: f64,
    random: fastrand::Rng,
    value: Vec<u8>,
}

/// One server and what was seen of it.
struct Subject {
    server: Server,
    client: Client,
    requests: u64,
    hits: u64,
    /// Live rows by the memory, in per cent, at the end of each day that counts.
    live: Vec<f64>,
}

/// The clusters one after the other.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    let length_ns = bench.length_ns / CLUSTERS.len() as u64;
    for cluster in CLUSTERS {
        let memory_mib = memory_mib(&cluster, length_ns);
        let mut subjects = Vec::new();
        for server in bench.start_both(memory_mib, report)? {
            let client = Client::connect(server.nearest())?;
            subjects.push(Subject { server, client, requests: 0, hits: 0, live: Vec::new() });
        }
        report.progress(&format!("{}: {memory_mib} MiB", cluster.name));
        drive(&mut Mix::new(cluster, length_ns), &mut subjects, memory_mib, length_ns)?;
        for subject in &subjects {
            keep(subject, &cluster, report);
            rows.push(row(subject, &cluster, memory_mib, &subjects));
        }
    }
    report.say("\n## Mixes of times to live\n");
    report.say(&format!(
        "Seven days in {} s, {} requests a second, at least {:.0} % of them for new objects; both servers get the same \
         requests and write what misses. *Hits* without the first two days. *Live*: keys and values of rows that are \
         there and alive, by the memory limit, at the end of each day; mean, and least.",
        digits(clock::seconds(length_ns)),
        thousands(RATE),
        NEW_LEAST * 100.0
    ));
    report.table(&["mix", "-m, MiB", "server", "requests", "hits, %", "live, %", "least, %", "reach"], &rows);
    Ok(())
}

/// Between what all objects and what those alive take.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred MiB")]
fn memory_mib(cluster: &Cluster, length_ns: u64) -> u64 {
    let objects = RATE * clock::seconds(length_ns) * cluster.new_share.max(NEW_LEAST);
    let bytes = objects * (cluster.key_bytes.max(KEY_BYTES) + cluster.value_bytes + BESIDE_BYTES) as f64;
    let share = (cluster.living_mb / cluster.all_mb).sqrt();
    ((bytes * share) as u64 >> 20).max(8)
}

impl Mix {
    fn new(cluster: Cluster, length_ns: u64) -> Self {
        Self {
            cluster,
            objects: 0,
            new_share: cluster.new_share.max(NEW_LEAST),
            scale: clock::seconds(length_ns) / COVERED,
            random: fastrand::Rng::with_seed(0x5eed),
            value: value(cluster.value_bytes),
        }
    }

    /// The object that is asked for next.
    fn next(&mut self) -> u64 {
        if self.objects == 0 || self.random.f64() < self.new_share {
            self.objects += 1;
            return self.objects;
        }
        let even = self.random.f64();
        self.objects + 1 - self.cluster.rank(self.objects, even)
    }

    /// The key of an object, as long as the cluster's are.
    fn key(&self, object: u64) -> Vec<u8> {
        let mut text = vec![b'k'; self.cluster.key_bytes.saturating_sub(KEY_BYTES)];
        text.extend_from_slice(&key(SPACE, object));
        text
    }

    /// Seconds that an object lives in this run; the same each time that it is written.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes")]
    fn life(&self, object: u64) -> u64 {
        let even = fastrand::Rng::with_seed(object).f64();
        (self.cluster.life(even) * self.scale).round().max(LIFE_LEAST_SECONDS) as u64
    }
}

/// Sends the requests at their rate and counts the rows at the end of each day.
fn drive(mix: &mut Mix, subjects: &mut [Subject], memory_mib: u64, length_ns: u64) -> Result<()> {
    let began = clock::now_ns();
    let step_ns = crate::nanoseconds(BATCH as f64 / RATE);
    let (mut due, mut day) = (began, 0);
    while day < DAYS {
        let now = clock::now_ns();
        thread::sleep(Duration::from_nanos(due.saturating_sub(now)));
        due += step_ns;
        let mut batch: Vec<u64> = (0..BATCH).map(|_| mix.next()).collect();
        batch.sort_unstable();
        batch.dedup();
        for subject in &mut *subjects {
            subject.ask(mix, &batch, day >= WARM_UP)?;
        }
        if now - began >= length_ns / DAYS * (day + 1) {
            day += 1;
            for subject in subjects.iter_mut().filter(|_| day > WARM_UP) {
                subject.count_live(mix, memory_mib)?;
            }
        }
    }
    Ok(())
}

impl Subject {
    /// Reads a batch, then writes what missed.
    fn ask(&mut self, mix: &Mix, batch: &[u64], counts: bool) -> Result<()> {
        let keys: Vec<Vec<u8>> = batch.iter().map(|&object| mix.key(object)).collect();
        let out = &mut self.client.out;
        out.extend_from_slice(b"get ");
        out.extend_from_slice(&keys.join(&b' '));
        out.extend_from_slice(b"\r\n");
        self.client.send()?;
        let mut missing: Vec<(&[u8], u64)> =
            keys.iter().map(Vec::as_slice).zip(batch.iter().copied()).collect();
        self.client.read_values(|found, _| missing.retain(|(key, _)| *key != found))?;
        if counts {
            self.requests += batch.len() as u64;
            self.hits += (batch.len() - missing.len()) as u64;
        }
        for (key, object) in &missing {
            let out = &mut self.client.out;
            out.extend_from_slice(b"set ");
            out.extend_from_slice(key);
            // A write to a vector cannot fail.
            let _ = write!(out, " 0 {} {}\r\n", mix.life(*object), mix.value.len());
            out.extend_from_slice(&mix.value);
            out.extend_from_slice(b"\r\n");
        }
        self.client.send()?;
        // One that was refused for want of memory misses again.
        missing.iter().try_for_each(|_| self.client.read_line().map(|_| ()))
    }

    /// Lists the rows and counts those whose time has not come.
    fn count_live(&mut self, mix: &Mix, memory_mib: u64) -> Result<()> {
        self.client.out.extend_from_slice(b"lru_crawler metadump all\r\n");
        self.client.send()?;
        let now = clock::unix_ns() / 1_000_000_000;
        let mut live = 0_u64;
        loop {
            let line = String::from_utf8_lossy(self.client.read_line_feed()?).into_owned();
            if line == "END" {
                break;
            }
            let end = line.split(' ').find_map(|word| word.strip_prefix("exp=")?.parse::<i64>().ok());
            live += u64::from(end.is_some_and(|end| end < 0 || end.unsigned_abs() > now));
        }
        let bytes = live * (mix.key(0).len() + mix.value.len()) as u64;
        self.live.push(100.0 * bytes as f64 / (memory_mib << 20) as f64);
        Ok(())
    }

    fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.requests.max(1) as f64
    }

    fn live_mean(&self) -> f64 {
        self.live.iter().sum::<f64>() / self.live.len().max(1) as f64
    }
}

fn keep(subject: &Subject, cluster: &Cluster, report: &mut Report) {
    let (line, server) = (cluster.name, subject.server.label.as_str());
    report.figure(&Figure {
        line,
        server,
        repetition: 0,
        metric: "hit_percent",
        value: subject.hit_percent(),
    });
    for (day, &value) in subject.live.iter().enumerate() {
        report.figure(&Figure { line, server, repetition: day, metric: "live_percent", value });
    }
}

fn row(subject: &Subject, cluster: &Cluster, memory_mib: u64, all: &[Subject]) -> Vec<String> {
    let peer = all.iter().find(|other| other.server.label != subject.server.label);
    let reach = match peer {
        Some(peer) if subject.server.is_ours() => {
            let above = subject.hit_percent() > peer.hit_percent() && subject.live_mean() > peer.live_mean();
            format!("above memcached's {}", if above { "holds" } else { "missed" })
        }
        _ => String::new(),
    };
    vec![
        cluster.name.to_owned(),
        memory_mib.to_string(),
        subject.server.label.clone(),
        thousands(subject.requests as f64),
        format!("{:.2}", subject.hit_percent()),
        digits(subject.live_mean()),
        digits(subject.live.iter().copied().fold(f64::INFINITY, f64::min)),
        reach,
    ]
}
