//! The lines that one reading process gives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::clock;
use crate::failure::{Failure, Result};
use crate::load::value;
use crate::plot::Bars;
use crate::report::{Figure, Report};
use crate::summary::{Summary, digits};

use super::readers::{Bound, Lmdb, Memcached, Ours, Peer, TOGETHER};
use super::{Candidate, Extent};

/// Reads of a slice of a row that stays in the processor's caches.
const HOT_SLICE: u64 = 500_000;
/// Reads of a slice at random.
const RANDOM_SLICE: u64 = 200_000;
/// Reads of a slice over a socket: each takes a hundred times as long.
const REMOTE_SLICE: u64 = 10_000;
/// Rows written by a slice.
const WRITE_SLICE: u64 = 10_000;
/// Rows of the tables that are written.
const WRITTEN_ROWS: u64 = 100_000;
/// Writes of a pipeline, or of a transaction.
const WRITES_TOGETHER: u64 = 100;
/// Rows of a table that is written while one of them is read, and bytes of each.
const BUSY_ROWS: u64 = 10_000;
const BUSY_BYTES: usize = 1_000;

/// What every peer showed on one line, the first of them ours.
struct Line<'r> {
    name: String,
    unit: &'static str,
    peers: Vec<(String, Vec<f64>)>,
    report: &'r mut Report,
}

impl<'r> Line<'r> {
    fn new(name: String, unit: &'static str, report: &'r mut Report) -> Self {
        report.progress(&name);
        Self { name, unit, peers: Vec::new(), report }
    }

    /// One more figure of a peer.
    fn push(&mut self, peer: String, value: f64) {
        match self.peers.iter_mut().find(|(label, _)| *label == peer) {
            Some((_, figures)) => figures.push(value),
            None => self.peers.push((peer, vec![value])),
        }
    }

    /// Keeps, tells and draws them.
    fn end(self, picture: &str) -> Result<()> {
        let Some((_, ours)) = self.peers.first() else { return Ok(()) };
        let by_ours = |figures: &[f64]| {
            let Summary { median, low, high } = Summary::of_ratios(figures, ours);
            format!("{} ({}-{})", digits(median), digits(low), digits(high))
        };
        let mut rows = Vec::new();
        for (label, figures) in &self.peers {
            for (repetition, &value) in figures.iter().enumerate() {
                let (line, server, metric) = (self.name.as_str(), label.as_str(), self.unit);
                self.report.figure(&Figure { line, server, repetition, metric, value });
            }
            let Summary { median, low, high } = Summary::of(figures);
            let figure = format!("{} ({}-{})", digits(median), digits(low), digits(high));
            rows.push(vec![label.clone(), figure, by_ours(figures)]);
        }
        self.report.table(&[&self.name, self.unit, "by the first"], &rows);
        let rows = self.peers.iter().map(|(label, figures)| (label.clone(), Summary::of(figures))).collect();
        let bars = Bars { title: self.name.clone(), unit: self.unit, rows };
        self.report.picture(picture, bars.svg()?);
        Ok(())
    }
}

/// Processor time of one of many reads by this thread.
fn cpu(slice: u64, mut read: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = clock::thread_cpu_ns();
    for _ in 0..slice {
        read()?;
    }
    Ok((clock::thread_cpu_ns() - began) as f64 / slice as f64)
}

/// Wall time of one of many operations.
fn wall(slice: u64, mut act: impl FnMut() -> Result<()>) -> Result<f64> {
    let began = clock::now_ns();
    for _ in 0..slice {
        act()?;
    }
    Ok((clock::now_ns() - began) as f64 / slice as f64)
}

/// Ours, then the others.
fn in_turn<'p>(
    ours: &'p mut [Ours],
    others: &'p mut [&mut dyn Peer],
) -> impl Iterator<Item = &'p mut dyn Peer> {
    let ours = ours.iter_mut().map(|ours| ours as &mut dyn Peer);
    ours.chain(others.iter_mut().map(|other| &mut **other as &mut dyn Peer))
}

/// A slice of reads by each peer in turn.
fn reads(
    line: &mut Line<'_>,
    ours: &mut [Ours],
    others: &mut [&mut dyn Peer],
    slice: u64,
    mut next: impl FnMut() -> u64,
) -> Result<()> {
    let mut out = Vec::new();
    for peer in in_turn(ours, others) {
        let figure = if peer.is_remote() {
            wall(REMOTE_SLICE.min(slice), || peer.read(next(), &mut out))?
        } else {
            cpu(slice, || peer.read(next(), &mut out))?
        };
        line.push(peer.label(), figure);
    }
    Ok(())
}

/// One row that is read again and again.
pub(super) fn hot(of: &[Candidate], bytes: usize, extent: Extent<'_>, report: &mut Report) -> Result<()> {
    let (mut ours, lmdb) = (Ours::each(of, extent.folder, 1, bytes)?, Lmdb::fill(extent.folder, 1, bytes)?);
    let (mut bound, mut memcached) = (Bound::fill(1, bytes), Memcached::start(1, bytes)?);
    let mut line = Line::new(format!("Reads of one row of {bytes} B"), "ns", report);
    let (mut lmdb, mut out) = (lmdb.reader(), Vec::new());
    for _ in 0..extent.slices {
        let others: &mut [&mut dyn Peer] = &mut [&mut lmdb, &mut bound, &mut memcached];
        reads(&mut line, &mut ours, others, HOT_SLICE, || 0)?;
        for ours in &mut ours {
            let label = format!("{}, wall time", ours.label());
            line.push(label, wall(HOT_SLICE, || ours.read(0, &mut out))?);
        }
    }
    line.end(&format!("shared-hot-{bytes}"))
}

/// Many rows, one after the other at random and several together.
pub(super) fn random(
    of: &[Candidate],
    rows: u64,
    bytes: usize,
    extent: Extent<'_>,
    report: &mut Report,
) -> Result<()> {
    let (mut ours, lmdb) =
        (Ours::each(of, extent.folder, rows, bytes)?, Lmdb::fill(extent.folder, rows, bytes)?);
    let mut bound = Bound::fill(rows, bytes);
    let name = format!("Reads of {rows} rows of {bytes} B at random");
    let mut line = Line::new(name, "ns", report);
    let (mut lmdb, mut random, mut seen) = (lmdb.reader(), fastrand::Rng::with_seed(0x5eed), 0);
    for _ in 0..extent.slices {
        let others: &mut [&mut dyn Peer] = &mut [&mut lmdb, &mut bound];
        reads(&mut line, &mut ours, others, RANDOM_SLICE, || random.u64(..rows))?;
        for ours in &ours {
            let together = cpu(RANDOM_SLICE / TOGETHER as u64, || {
                let indexes = std::array::from_fn(|_| random.u64(..rows));
                ours.read_together(&indexes, &mut seen)
            })?;
            line.push(format!("{}, {TOGETHER} together, each", ours.label()), together / TOGETHER as f64);
        }
    }
    line.end(&format!("shared-random-{bytes}"))
}

/// Rows of 1 KiB replaced at random places: one at a time, and many in a pipeline or transaction.
pub(super) fn writes(of: &[Candidate], extent: Extent<'_>, report: &mut Report) -> Result<()> {
    let bytes = 1 << 10;
    let (mut ours, lmdb) = (
        Ours::each(of, extent.folder, WRITTEN_ROWS, bytes)?,
        Lmdb::fill(extent.folder, WRITTEN_ROWS, bytes)?,
    );
    let mut memcached = Memcached::start(WRITTEN_ROWS, bytes)?;
    let (mut lmdb, mut random, value) = (lmdb.reader(), fastrand::Rng::with_seed(0x5eed), value(bytes));
    for together in [1, WRITES_TOGETHER] {
        let name = format!("Writes of 1 KiB, {together} together, wall time of each");
        let mut line = Line::new(name, "ns", report);
        for _ in 0..extent.slices {
            for peer in in_turn(&mut ours, &mut [&mut lmdb, &mut memcached]) {
                let batch = wall(WRITE_SLICE / together, || {
                    peer.write(random.u64(..WRITTEN_ROWS - together), together, &value)
                })?;
                line.push(peer.label(), batch / together as f64);
            }
        }
        line.end(&format!("shared-writes-{together}"))?;
    }
    Ok(())
}

/// A row that is read while another thread writes as fast as the daemon takes it: other rows, and this one too.
pub(super) fn beside_a_writer(of: &[Candidate], extent: Extent<'_>, report: &mut Report) -> Result<()> {
    let mut ours = Ours::each(of, extent.folder, BUSY_ROWS, BUSY_BYTES)?;
    let mut line = Line::new(format!("Reads of one row of {BUSY_BYTES} B beside a writer"), "ns", report);
    let mut out = Vec::new();
    for _ in 0..extent.slices {
        for ours in &mut ours {
            let label = ours.label();
            line.push(format!("{label}, nobody writes"), cpu(HOT_SLICE, || ours.read(0, &mut out))?);
            line.push(format!("{label}, a writer at full speed"), read_beside_a_writer(ours)?);
        }
    }
    line.end("shared-beside-a-writer")
}

/// Processor time of a read of the first row while the daemon is written to.
fn read_beside_a_writer(ours: &mut Ours) -> Result<f64> {
    let (mut writing, end) = (Ours::at(ours.client.socket())?, AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<()> {
            let (mut random, value) = (fastrand::Rng::with_seed(7), value(BUSY_BYTES));
            // Relaxed: a hint to stop.
            while !end.load(Ordering::Relaxed) {
                writing.write(random.u64(..BUSY_ROWS - WRITES_TOGETHER), WRITES_TOGETHER, &value)?;
            }
            Ok(())
        });
        let mut out = Vec::new();
        let figure = cpu(HOT_SLICE, || ours.read(0, &mut out));
        end.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| Failure::new("the writer panicked"))??;
        figure
    })
}
