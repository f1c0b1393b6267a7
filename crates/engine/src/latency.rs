//! How long commands take, by listener and class.
//!
//! One command of a thread in so many is timed, and stands for the others: looking at the clock twice is a tenth of
//! what a `get` takes. The time is that in the engine, without the socket and the parser. Buckets double, so finding
//! one is an instruction.

use std::sync::atomic::{AtomicU64, Ordering};

use sql::{Done, SqlError};

/// Buckets with an upper bound: from 256 ns, each twice the one before, up to 8.6 s. One more takes the rest.
pub(crate) const BOUNDS: usize = 26;
/// The first bound, as a power of two of nanoseconds.
const FIRST_BOUND: u32 = 8;

/// Every class with the listener that its commands come by, in the order of [`Class`].
pub(crate) const CLASSES: [(&str, &str); 13] = [
    ("memcached", "get"),
    ("memcached", "set"),
    ("memcached", "delete"),
    ("memcached", "other"),
    ("memcached", "sql_read"),
    ("memcached", "sql_write"),
    ("memcached", "sql_other"),
    ("postgresql", "sql_read"),
    ("postgresql", "sql_write"),
    ("postgresql", "sql_other"),
    ("http", "sql_read"),
    ("http", "sql_write"),
    ("http", "sql_other"),
];

/// A line of [`CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(usize);

impl Class {
    pub(crate) const GET: Self = Self(0);
    pub(crate) const SET: Self = Self(1);
    pub(crate) const DELETE: Self = Self(2);
    pub(crate) const OTHER: Self = Self(3);
    /// The first class of statements by each listener.
    pub(crate) const MEMCACHED_SQL: Self = Self(4);
    pub(crate) const POSTGRESQL_SQL: Self = Self(7);
    pub(crate) const HTTP_SQL: Self = Self(10);

    /// The class of a statement by how it ended, among those of its listener.
    pub(crate) fn of_statement(self, result: &Result<Done, SqlError>) -> Self {
        let tag = result.as_ref().map_or("", |done| done.tag);
        Self(
            self.0
                + match tag {
                    "SELECT" => 0,
                    "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "TRUNCATE TABLE" => 1,
                    _ => 2,
                },
        )
    }
}

/// The times of one class of commands on one thread. Relaxed throughout: figures for people.
#[derive(Debug)]
struct Times {
    buckets: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

/// All of one thread, which alone writes them.
#[derive(Debug)]
pub(crate) struct Latencies([Times; CLASSES.len()]);

/// The sums over all threads of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Commands by bucket: those that took no longer than its bound, and longer than the bound before.
    pub buckets: [u64; BOUNDS + 1],
    /// Nanoseconds of all commands.
    pub sum_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let times =
            || Times { buckets: [const { AtomicU64::new(0) }; BOUNDS + 1], sum_ns: AtomicU64::new(0) };
        Self(std::array::from_fn(|_| times()))
    }

    /// Takes note of a command that stands for so many.
    pub(crate) fn note(&self, class: Class, took_ns: u64, stands_for: u32) {
        let Times { buckets, sum_ns } = &self.0[class.0];
        let add = |word: &AtomicU64, by: u64| {
            word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        };
        add(&buckets[bucket_of(took_ns)], u64::from(stands_for));
        add(sum_ns, took_ns.saturating_mul(u64::from(stands_for)));
    }

    /// Adds what this thread has of a class.
    pub(crate) fn add_to(&self, class: usize, spread: &mut Spread) {
        let Times { buckets, sum_ns } = &self.0[class];
        for (sum, word) in spread.buckets.iter_mut().zip(buckets) {
            *sum += word.load(Ordering::Relaxed);
        }
        spread.sum_ns = spread.sum_ns.wrapping_add(sum_ns.load(Ordering::Relaxed));
    }
}

impl Spread {
    /// Each bound in seconds, with how many commands took no longer; last all of them, without a bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let mut sum = 0;
        self.buckets.iter().enumerate().map(move |(at, count)| {
            sum += count;
            let bound = (1_u64 << FIRST_BOUND << at) as f64 / 1e9;
            ((at < BOUNDS).then_some(bound), sum)
        })
    }

    /// All commands.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

fn bucket_of(took_ns: u64) -> usize {
    // What is exactly a bound is within it.
    let bits = u64::BITS - (took_ns.max(1) - 1).leading_zeros();
    (bits.saturating_sub(FIRST_BOUND) as usize).min(BOUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double() {
        for (took, bucket) in [
            (0, 0),
            (1, 0),
            (256, 0),
            (257, 1),
            (512, 1),
            (513, 2),
            (1 << 33, 25),
            ((1 << 33) + 1, 26),
            (u64::MAX, 26),
        ] {
            assert_eq!(bucket_of(took), bucket, "{took}");
        }
    }

    #[test]
    fn sums_are_cumulative() {
        let latencies = Latencies::new();
        latencies.note(Class::GET, 300, 64);
        latencies.note(Class::GET, 100, 64);
        latencies.note(Class::SET, u64::MAX, 1);
        let mut spread = Spread::default();
        latencies.add_to(0, &mut spread);
        let all: Vec<_> = spread.cumulative().collect();
        assert_eq!(all[..2], [(Some(256e-9), 64), (Some(512e-9), 128)]);
        assert_eq!(all.last(), Some(&(None, 128)));
        assert_eq!((spread.count(), spread.sum_ns), (128, 25_600));
        let done = Ok(Done { affected: 0, ..done("DELETE") });
        assert_eq!(Class::HTTP_SQL.of_statement(&done), Class(11));
        let failed = Err(SqlError::new("42601", "no"));
        assert_eq!(CLASSES[Class::POSTGRESQL_SQL.of_statement(&failed).0], ("postgresql", "sql_other"));
    }

    fn done(tag: &'static str) -> Done {
        let (kind, by) = (sql::DoneKind::Write, sql::ComputedBy::Nobody);
        Done { kind, affected: 0, tag, by, invalidated: None }
    }
}
