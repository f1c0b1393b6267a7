//! One cache, its costs, and the readers beside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::clock;
use crate::failure::{Failure, Result};
use crate::histogram::Histogram;
use crate::pages::{self, Fragment};
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::Summary;

use super::cache::{Cache, Owner, Way, ways};
use super::statements::{Sqlite, Table};

/// What one expiry cost, as the mean of those of one repetition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Server CPU.
    pub(super) cpu_us: f64,
    /// From request to answer: the median of the repetition.
    pub(super) wall_us: f64,
    /// The 99th percentile.
    pub(super) p99_us: f64,
    /// Pages that all readers together read meanwhile.
    pub(super) reads_per_second: f64,
    /// How long a reader waited.
    pub(super) read_p99_us: f64,
}

impl Cost {
    /// One after the other.
    pub(super) fn plus(self, then: Self) -> Self {
        let wall_us = self.wall_us + then.wall_us;
        Self { cpu_us: self.cpu_us + then.cpu_us, wall_us, p99_us: wall_us, ..self }
    }
}

/// What is done in one repetition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) owner: Owner,
    /// How many owners expire.
    pub(super) count: u64,
    pub(super) repetition: usize,
    /// Clients that read meanwhile.
    pub(super) readers: usize,
}

/// A cache with the data set in it.
pub(super) struct Subject<'a> {
    pub(super) label: String,
    /// Where it runs; `None` for SQLite, which is in this process.
    pub(super) server: Option<&'a Server>,
    way: Option<Way>,
    /// It fills the server; others on the same server find its rows.
    pub(super) owns_data: bool,
    pub(super) cache: Box<dyn Cache>,
    /// One for each repetition of the line under way.
    pub(super) costs: Vec<Cost>,
}

impl<'a> Subject<'a> {
    /// A way on a server.
    pub(super) fn on_server(server: &'a Server, way: Way) -> Result<Self> {
        Ok(Self {
            label: way.label(&server.label),
            server: Some(server),
            way: Some(way),
            owns_data: ways(server).first() == Some(&way),
            cache: way.open(server)?,
            costs: Vec::new(),
        })
    }

    /// SQLite in this process.
    pub(super) fn sqlite() -> Result<Self> {
        let cache = Box::new(Table::new(Sqlite::open()?));
        let label = "sqlite, in this process".into();
        Ok(Self { label, server: None, way: None, owns_data: true, cache, costs: Vec::new() })
    }

    /// For what does not depend on the way.
    pub(super) fn server_label(&self) -> &str {
        self.server.map_or(self.label.as_str(), |server| server.label.as_str())
    }

    /// The processor time that something takes: the server's, or of SQLite this thread's.
    fn metered<T>(&mut self, act: impl FnOnce(&mut dyn Cache) -> Result<T>) -> Result<(T, f64)> {
        let (before, own) = (self.server.map(Server::cpu).transpose()?, clock::thread_cpu_ns());
        let done = act(self.cache.as_mut())?;
        let own = clock::thread_cpu_ns() - own;
        let ns = match (self.server, &before) {
            (Some(server), Some(before)) => server.cpu_since(before)?,
            _ => own,
        };
        Ok((done, ns as f64 / 1e3))
    }

    /// Does something once.
    pub(super) fn timed(&mut self, act: impl FnOnce(&mut dyn Cache) -> Result<()>) -> Result<Cost> {
        let (wall_us, cpu_us) = self.metered(|cache| {
            let began = clock::now_ns();
            act(cache)?;
            Ok((clock::now_ns() - began) as f64 / 1e3)
        })?;
        Ok(Cost { cpu_us, wall_us, p99_us: wall_us, ..Cost::default() })
    }

    /// Expires owners one after the other, keeps what it cost, and brings their rows back.
    pub(super) fn expire(&mut self, trial: &Trial, all: &[Fragment], report: &mut Report) -> Result<()> {
        let first = trial.repetition as u64 * trial.count % trial.owner.population();
        let range = first..first + trial.count;
        let chosen = pages::chosen(all, |row| range.contains(&trial.owner.number(row)));
        let batches: Vec<(u64, Vec<Fragment>)> = range
            .map(|number| (number, pages::chosen(&chosen, |row| trial.owner.number(row) == number)))
            .collect();
        let stop = &AtomicBool::new(false);
        let (server, way) = (self.server, self.way);
        let cost = thread::scope(|scope| {
            let readers: Vec<_> = (0..trial.readers)
                .map(|seed| scope.spawn(move || read_pages(server, way, seed, all, stop)))
                .collect();
            let cost = self.expire_batches(trial, &batches);
            // Relaxed: it carries no data; the readers are joined.
            stop.store(true, Ordering::Relaxed);
            let mut cost = cost?;
            for reader in readers {
                let reads = reader.join().map_err(|_| Failure::new("a reader panicked"))??;
                cost.reads_per_second += reads.per_second;
                cost.read_p99_us = cost.read_p99_us.max(reads.p99_us);
            }
            Ok::<_, Failure>(cost)
        })?;
        self.cache.refill(&chosen)?;
        let line = if trial.readers == 0 { "idle" } else { "beside readers" };
        let line = format!("{} {line}", trial.owner.name());
        keep(&line, &self.label, trial.repetition, "expire", Some(&cost), report);
        self.costs.push(cost);
        Ok(())
    }

    fn expire_batches(&mut self, trial: &Trial, batches: &[(u64, Vec<Fragment>)]) -> Result<Cost> {
        let mut walls = Vec::with_capacity(batches.len());
        let (affected, cpu_us) = self.metered(|cache| {
            let mut affected = 0;
            for (number, rows) in batches {
                let began = clock::now_ns();
                affected += cache.expire(trial.owner, *number, rows)?;
                walls.push((clock::now_ns() - began) as f64 / 1e3);
            }
            Ok(affected)
        })?;
        let expected: u64 = batches.iter().map(|(_, rows)| rows.len() as u64).sum();
        if affected != expected {
            let label = &self.label;
            return Err(Failure::new(format!("{label} expired {affected} rows in place of {expected}")));
        }
        let mut latency = Histogram::default();
        for &wall in &walls {
            latency.record(nanoseconds(wall));
        }
        Ok(Cost {
            cpu_us: cpu_us / trial.count as f64,
            wall_us: Summary::of(&walls).median,
            p99_us: latency.percentile(0.99) as f64 / 1e3,
            ..Cost::default()
        })
    }
}

/// What one reader saw.
#[derive(Clone, Copy, Debug)]
struct Reads {
    per_second: f64,
    p99_us: f64,
}

/// Reads random pages until told to stop.
fn read_pages(
    server: Option<&Server>,
    way: Option<Way>,
    seed: usize,
    all: &[Fragment],
    stop: &AtomicBool,
) -> Result<Reads> {
    let (Some(server), Some(way)) = (server, way) else {
        return Err(Failure::new("a cache in this process has no other readers"));
    };
    let mut cache = way.open(server)?;
    let mut random = fastrand::Rng::with_seed(seed as u64);
    let mut latency = Histogram::default();
    let began = clock::now_ns();
    // Relaxed: see where it is stored.
    while !stop.load(Ordering::Relaxed) {
        let page = random.u64(..pages::PAGES);
        let rows = rows_of_page(all, page);
        let asked = clock::now_ns();
        cache.read(page, &rows)?;
        latency.record(clock::now_ns() - asked);
    }
    let seconds = clock::seconds(clock::now_ns() - began);
    Ok(Reads {
        per_second: latency.count() as f64 / seconds.max(1e-9),
        p99_us: latency.percentile(0.99) as f64 / 1e3,
    })
}

/// The rows of a page stand a constant number of rows apart.
fn rows_of_page(all: &[Fragment], page: u64) -> Vec<Fragment> {
    let first = usize::try_from(page).unwrap_or(usize::MAX);
    let step = usize::try_from(pages::PAGES).unwrap_or(usize::MAX);
    all.iter().skip(first).step_by(step).copied().collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time that was just measured")]
fn nanoseconds(microseconds: f64) -> u64 {
    (microseconds * 1e3) as u64
}

/// Keeps one repetition in the report's list.
pub(super) fn keep(
    line: &str,
    server: &str,
    repetition: usize,
    what: &str,
    cost: Option<&Cost>,
    report: &mut Report,
) {
    let Some(cost) = cost else { return };
    let figures = [
        ("cpu_us", cost.cpu_us),
        ("wall_us", cost.wall_us),
        ("p99_us", cost.p99_us),
        ("reads_per_second", cost.reads_per_second),
        ("read_p99_us", cost.read_p99_us),
    ];
    for (name, value) in figures.into_iter().filter(|(_, value)| *value > 0.0) {
        let metric = &format!("{what}_{name}");
        report.figure(&Figure { line, server, repetition, metric, value });
    }
}

#[cfg(test)]
mod tests {
    use super::rows_of_page;
    use crate::pages::{self, PAGES};

    #[test]
    fn the_rows_of_a_page_are_found_without_a_search() {
        let all = pages::fragments();
        for page in [0, 9_999, 10_000, PAGES - 1] {
            assert_eq!(rows_of_page(&all, page), pages::chosen(&all, |row| row.page == page));
        }
    }
}
