//! Fills whose sizes move from tiny to large and back. A cache that gives memory to sizes for good cannot follow; here
//! any segment takes rows of any size.

use std::collections::VecDeque;
use std::io::Write as _;

use crate::client::Client;
use crate::clock;
use crate::failure::Result;
use crate::load::{KEY_BYTES, key, value};
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::{digits, thousands};

use super::Bench;

/// The smallest and largest values of each stage, one after the other.
const STAGES: [(usize, usize); 9] = [
    (50, 150),
    (500, 1_500),
    (5_000, 15_000),
    (50_000, 150_000),
    (170_000, 500_000),
    (50_000, 150_000),
    (5_000, 15_000),
    (500, 1_500),
    (50, 150),
];
/// Bytes that are sent before their answers are read: a fill of any size is a few requests long.
const BATCH_BYTES: usize = 256 << 10;
/// How often the server is asked what it holds.
const SAMPLE_NS: u64 = 100_000_000;
/// What live rows are to take of the memory for rows, in per cent.
const REACH: f64 = 90.0;
/// Of the memory limit, what the newest rows that are asked for have together in keys and values: so much of any size
/// has room with what a row costs beside.
const ASKED_SHARE: f64 = 0.5;
/// Keys asked for at once.
const ASK: usize = 100;
/// Keeps the keys apart from those of other parts.
const SPACE: u64 = 22;

/// One server with what was written to it.
struct Subject {
    server: Server,
    client: Client,
    /// Numbers and sizes of the newest values, newest last.
    newest: VecDeque<(u64, usize)>,
    newest_bytes: u64,
    written: u64,
    random: fastrand::Rng,
    sampled_ns: u64,
}

/// What a stage showed on one server.
#[derive(Clone, Copy, Debug)]
struct Seen {
    sets: u64,
    refused: u64,
    /// Per cent of the memory for rows that live rows take, once as many bytes as it has were written.
    turned: Option<f64>,
    /// The least of it from then on.
    lowest: f64,
    arena_most: u64,
    private_most: u64,
    newest_there: f64,
}

/// What a server says of its memory.
#[derive(Clone, Copy, Debug)]
struct Fill {
    live: u64,
    /// The limit without the hash index, where that counts towards it.
    area: u64,
}

/// The stages on ours and on memcached, which gets as many values of each.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut subjects = Vec::new();
    for server in bench.start_both(bench.memory_mib, report)? {
        report.say(&format!("- {}: `{}`", server.label, server.command));
        subjects.push(Subject::new(server)?);
    }
    let value = value(STAGES.iter().map(|stage| stage.1).max().unwrap_or(0));
    let stage_ns = bench.length_ns / STAGES.len() as u64;
    let mut rows = Vec::new();
    for (number, &stage) in STAGES.iter().enumerate() {
        let mut sets = None;
        for subject in &mut subjects {
            report.progress(&format!("{} to {} B: {}", stage.0, stage.1, subject.server.label));
            let seen = subject.fill(bench, stage, stage_ns, sets, &value)?;
            sets = sets.or(Some(seen.sets));
            keep(&seen, number, &subject.server.label, report);
            rows.push(row(&seen, stage, &subject.server.label, bench));
        }
    }
    report.say("\n## Sizes that move\n");
    report.say(&format!(
        "New keys are written one after the other, {} MiB of memory, {} s a stage and at least one turnover (as many \
         bytes as the limit). *Live*: bytes of live rows with their overhead, by the limit less the hash index where \
         that is within it; after one turnover of the stage, and the least from then on, asked ten times a second. \
         *Committed*: blocks of the arena's file, beside the limit, and private pages of the process. *Newest*: how many \
         of the newest rows are there, of those whose keys and values have {:.0} % of the limit together.",
        bench.memory_mib,
        digits(clock::seconds(stage_ns)),
        ASKED_SHARE * 100.0
    ));
    let head = [
        "values, B",
        "server",
        "sets",
        "refused",
        "live, %",
        "least, %",
        "reach",
        "committed, MiB",
        "private, MiB",
        "newest, %",
    ];
    report.table(&head, &rows);
    Ok(())
}

fn keep(seen: &Seen, stage: usize, server: &str, report: &mut Report) {
    let line = format!("sizes stage {stage}");
    for (metric, value) in [
        ("sets", seen.sets as f64),
        ("refused", seen.refused as f64),
        ("live_percent", seen.turned.unwrap_or(f64::NAN)),
        ("live_percent_least", seen.lowest),
        ("arena_bytes", seen.arena_most as f64),
        ("private_bytes", seen.private_most as f64),
        ("newest_percent", seen.newest_there),
    ] {
        report.figure(&Figure { line: &line, server, repetition: 0, metric, value });
    }
}

fn row(seen: &Seen, stage: (usize, usize), label: &str, bench: &Bench) -> Vec<String> {
    let mebibytes = |bytes: u64| digits(bytes as f64 / f64::from(1 << 20));
    let within = seen.arena_most <= bench.memory_mib << 20;
    let (committed, reach) = if seen.arena_most == 0 {
        (String::new(), String::new())
    } else {
        let holds = seen.turned.is_some_and(|live| live >= REACH);
        (
            format!("{}{}", mebibytes(seen.arena_most), if within { "" } else { " too many" }),
            format!(">= {REACH:.0} {}", if holds { "holds" } else { "missed" }),
        )
    };
    vec![
        format!("{}-{}", thousands(stage.0 as f64), thousands(stage.1 as f64)),
        label.to_owned(),
        thousands(seen.sets as f64),
        seen.refused.to_string(),
        seen.turned.map_or_else(String::new, digits),
        digits(seen.lowest),
        reach,
        committed,
        mebibytes(seen.private_most),
        digits(seen.newest_there),
    ]
}

impl Subject {
    fn new(server: Server) -> Result<Self> {
        let client = Client::connect(server.nearest())?;
        let random = fastrand::Rng::with_seed(0x5eed);
        Ok(Self {
            server,
            client,
            newest: VecDeque::new(),
            newest_bytes: 0,
            written: 0,
            random,
            sampled_ns: 0,
        })
    }

    /// One stage: for so long and one turnover at least, or so many sets where they are told.
    fn fill(
        &mut self,
        bench: &Bench,
        (low, high): (usize, usize),
        length_ns: u64,
        sets: Option<u64>,
        value: &[u8],
    ) -> Result<Seen> {
        let limit = bench.memory_mib << 20;
        let began = clock::now_ns();
        let mut bytes = 0;
        let mut seen = Seen {
            sets: 0,
            refused: 0,
            turned: None,
            lowest: 100.0,
            arena_most: 0,
            private_most: 0,
            newest_there: 0.0,
        };
        loop {
            let done = match sets {
                Some(sets) => seen.sets >= sets,
                None => bytes > limit && clock::now_ns() - began >= length_ns,
            };
            if done {
                break;
            }
            bytes += self.send_batch((low, high), limit, value, &mut seen)?;
            let turned = bytes > limit && seen.turned.is_none();
            if turned || clock::now_ns() - self.sampled_ns > SAMPLE_NS {
                self.sample(bytes > limit, &mut seen)?;
            }
        }
        self.sample(true, &mut seen)?;
        seen.newest_there = self.ask_newest()?;
        Ok(seen)
    }

    /// Sends some values and reads the answers; bytes of their keys and values.
    fn send_batch(
        &mut self,
        (low, high): (usize, usize),
        limit: u64,
        value: &[u8],
        seen: &mut Seen,
    ) -> Result<u64> {
        let (mut bytes, mut count) = (0, 0);
        while bytes < BATCH_BYTES {
            let size = self.random.usize(low..=high);
            let out = &mut self.client.out;
            out.extend_from_slice(b"set ");
            out.extend_from_slice(&key(SPACE, self.written));
            // A write to a vector cannot fail.
            let _ = write!(out, " 0 0 {size}\r\n");
            out.extend_from_slice(value.get(..size).unwrap_or_default());
            out.extend_from_slice(b"\r\n");
            self.newest.push_back((self.written, size));
            self.newest_bytes += (KEY_BYTES + size) as u64;
            self.written += 1;
            bytes += KEY_BYTES + size;
            count += 1;
        }
        self.client.send()?;
        for _ in 0..count {
            seen.refused += u64::from(self.client.read_line()? != b"STORED");
        }
        seen.sets += count;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a number of bytes"
        )]
        let asked = (limit as f64 * ASKED_SHARE) as u64;
        while self.newest_bytes > asked {
            let Some((_, size)) = self.newest.pop_front() else { break };
            self.newest_bytes -= (KEY_BYTES + size) as u64;
        }
        Ok(bytes as u64)
    }

    fn sample(&mut self, turned: bool, seen: &mut Seen) -> Result<()> {
        let memory = self.server.memory()?;
        seen.arena_most = seen.arena_most.max(memory.arena_bytes);
        seen.private_most = seen.private_most.max(memory.private_bytes);
        if turned {
            let Fill { live, area } = self.held()?;
            let share = 100.0 * live as f64 / area.max(1) as f64;
            seen.turned.get_or_insert(share);
            seen.lowest = seen.lowest.min(share);
        }
        self.sampled_ns = clock::now_ns();
        Ok(())
    }

    fn held(&mut self) -> Result<Fill> {
        let stats = self.client.stats("")?;
        let of = |name: &str| {
            stats
                .iter()
                .find(|(found, _)| found == name)
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or(0)
        };
        // memcached's hash table lies beside its limit.
        let index = if self.server.is_ours() { of("hash_bytes") } else { 0 };
        Ok(Fill { live: of("bytes"), area: of("limit_maxbytes").saturating_sub(index) })
    }

    /// How many of the newest rows are there, in per cent.
    fn ask_newest(&mut self) -> Result<f64> {
        let (keys, _) = self.newest.as_slices();
        let mut keys = keys.to_vec();
        keys.extend_from_slice(self.newest.as_slices().1);
        let mut found = 0_u64;
        for chunk in keys.chunks(ASK) {
            // The values stay where they are: `mg` without a flag answers whether there is one.
            for (number, _) in chunk {
                self.client.out.extend_from_slice(b"mg ");
                self.client.out.extend_from_slice(&key(SPACE, *number));
                self.client.out.extend_from_slice(b"\r\n");
            }
            self.client.send()?;
            for _ in chunk {
                found += u64::from(self.client.read_line()?.starts_with(b"HD"));
            }
        }
        Ok(100.0 * found as f64 / keys.len().max(1) as f64)
    }
}
