//! Counters: each thread adds to its own, the sum is taken when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hot::Samples;
use crate::latency::Latencies;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident => $key:literal,)*) => {
        /// What is counted. The names that `stats` uses are beside each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $($(#[$doc])* $name,)* }

        /// Every counter with its name in `stats`, in the order of the enum.
        pub(crate) const COUNTERS: &[(Counter, &str)] = &[$((Counter::$name, $key),)*];
    };
}

counters! {
    /// Keys asked for by `get`, `gets`, `gat` and `gats`.
    CmdGet => "cmd_get",
    /// Storage commands.
    CmdSet => "cmd_set",
    /// `flush_all`.
    CmdFlush => "cmd_flush",
    /// `touch`, `gat` and `gats`, by key.
    CmdTouch => "cmd_touch",
    /// Meta commands.
    CmdMeta => "cmd_meta",
    /// SQL statements.
    CmdSql => "cmd_sql",
    /// Those of them that memcached's clients sent.
    SqlByMemcached => "cmd_sql_memcached",
    /// Those that came by HTTP.
    SqlByHttp => "cmd_sql_http",
    /// Keys found by `get` and `gets`.
    GetHits => "get_hits",
    /// Keys not found by `get` and `gets`.
    GetMisses => "get_misses",
    /// Keys asked for by `get` and `gets` whose row has ended and is still in memory.
    GetExpired => "get_expired",
    /// The same for rows that were flushed.
    GetFlushed => "get_flushed",
    /// `delete` of a key that was there.
    DeleteHits => "delete_hits",
    /// `delete` of a key that was not.
    DeleteMisses => "delete_misses",
    /// `incr` of a key that was there.
    IncrHits => "incr_hits",
    /// `incr` of a key that was not.
    IncrMisses => "incr_misses",
    /// `decr` of a key that was there.
    DecrHits => "decr_hits",
    /// `decr` of a key that was not.
    DecrMisses => "decr_misses",
    /// `cas` that stored.
    CasHits => "cas_hits",
    /// `cas` of a key that was not there.
    CasMisses => "cas_misses",
    /// `cas` that came too late.
    CasBadval => "cas_badval",
    /// `touch` of a key that was there.
    TouchHits => "touch_hits",
    /// `touch` of a key that was not.
    TouchMisses => "touch_misses",
    /// Values refused for their size.
    StoreTooLarge => "store_too_large",
    /// Values refused for want of memory.
    StoreNoMemory => "store_no_memory",
    /// Statements that failed.
    SqlErrors => "sql_errors",
    /// Bytes that peers sent.
    BytesRead => "bytes_read",
    /// Bytes sent to peers.
    BytesWritten => "bytes_written",
    /// Turns that ended early so that other connections get theirs.
    ConnYields => "conn_yields",
    /// Connections closed for being idle too long.
    IdleKicks => "idle_kicks",
    /// Connections closed for sending or reading too slowly.
    SlowKicks => "slow_kicks",
    /// Connections closed because replies wait in more memory than is allowed.
    OutputKicks => "output_kicks",
    /// Commands that panicked; each is a defect, and cost one connection.
    Panics => "panics",
}

/// How many counters there are.
pub(crate) const COUNT: usize = COUNTERS.len();

/// One thread's counters. They fill whole cache lines of their own (128 bytes: processors fetch lines in pairs), so
/// that no thread slows another by counting.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters {
    values: [AtomicU64; COUNT],
    /// How long commands take. Behind the counters, whose lines are written with each command.
    pub(crate) latencies: Latencies,
    /// Keys of the commands that were timed.
    pub(crate) samples: Samples,
}

/// The sums over all threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    values: [u64; COUNT],
}

impl Counters {
    pub(crate) fn new() -> Self {
        let values = [const { AtomicU64::new(0) }; COUNT];
        Self { values, latencies: Latencies::new(), samples: Samples::default() }
    }

    /// Adds. Only the owning thread calls this, so a plain load and store suffice.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, by: u64) {
        let value = &self.values[counter as usize];
        // Relaxed twice: one thread writes, and readers want no order with anything else.
        value.store(value.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
    }
}

impl Totals {
    pub(crate) fn zero() -> Self {
        Self { values: [0; COUNT] }
    }

    pub(crate) fn add(&mut self, counters: &Counters) {
        for (total, value) in self.values.iter_mut().zip(&counters.values) {
            // Relaxed: see `Counters::add`.
            *total = total.wrapping_add(value.load(Ordering::Relaxed));
        }
    }

    /// What was counted since `baseline`.
    pub(crate) fn since(mut self, baseline: &Self) -> Self {
        for (total, before) in self.values.iter_mut().zip(&baseline.values) {
            *total = total.wrapping_sub(*before);
        }
        self
    }

    /// One of the sums.
    pub fn of(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_enum() {
        for (position, (counter, _)) in COUNTERS.iter().enumerate() {
            assert_eq!(*counter as usize, position);
        }
    }

    #[test]
    fn sums_and_baseline() {
        let (one, two) = (Counters::new(), Counters::new());
        one.add(Counter::CmdGet, 3);
        two.add(Counter::CmdGet, 4);
        let mut before = Totals::zero();
        before.add(&one);
        two.add(Counter::Panics, 1);
        let mut all = Totals::zero();
        all.add(&one);
        all.add(&two);
        assert_eq!(all.of(Counter::CmdGet), 7);
        let since = all.since(&before);
        assert_eq!((since.of(Counter::CmdGet), since.of(Counter::Panics)), (4, 1));
    }
}
