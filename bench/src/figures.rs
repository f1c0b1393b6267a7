//! What one repetition of a load shows: costs of the server, of the load program, and times of the clients.

use crate::failure::Result;
use crate::load::{Load, Seen, Until, Workload};
use crate::report::{Figure, Report};
use crate::server::Server;

/// A load without an end of its own runs so long before it counts.
const WARM_UP_NS: u64 = 50_000_000;

/// One repetition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Server CPU of an operation.
    pub(crate) server_ns: f64,
    /// The load program's.
    pub(crate) load_ns: f64,
    /// Operations in a second.
    pub(crate) per_second: f64,
    /// From the first request to the last answer.
    pub(crate) wall_ms: f64,
    /// Half of the batches were answered in this time.
    pub(crate) p50_us: f64,
    /// And all but one in a hundred in this.
    pub(crate) p99_us: f64,
    /// And all but one in a thousand in this.
    pub(crate) p999_us: f64,
    /// The longest that one waited, within 3 %.
    pub(crate) longest_us: f64,
}

impl Figures {
    /// Puts a load on a server.
    pub(crate) fn measure(
        server: &Server,
        load: &mut Load,
        workload: &Workload,
        depth: u64,
        until: Until,
    ) -> Result<Self> {
        if matches!(until, Until::Elapsed(_)) {
            load.run(workload, depth, Until::Elapsed(WARM_UP_NS))?;
        }
        let before = server.cpu()?;
        let seen = load.run(workload, depth, until)?;
        Ok(Self::of(&seen, server.cpu_since(&before)?))
    }

    /// Sets every key of a workload once at a rate, which leaves the server time.
    pub(crate) fn measure_at(
        server: &Server,
        load: &mut Load,
        workload: &Workload,
        per_second: u64,
    ) -> Result<Self> {
        let before = server.cpu()?;
        let seen = load.run_at(workload, per_second)?;
        Ok(Self::of(&seen, server.cpu_since(&before)?))
    }

    fn of(seen: &Seen, server_cpu_ns: u64) -> Self {
        let operations = seen.operations.max(1) as f64;
        Self {
            server_ns: server_cpu_ns as f64 / operations,
            load_ns: seen.load_cpu_ns as f64 / operations,
            per_second: operations / crate::clock::seconds(seen.wall_ns),
            wall_ms: seen.wall_ns as f64 / 1e6,
            p50_us: seen.latency.percentile(0.5) as f64 / 1e3,
            p99_us: seen.latency.percentile(0.99) as f64 / 1e3,
            p999_us: seen.latency.percentile(0.999) as f64 / 1e3,
            longest_us: seen.latency.percentile(1.0) as f64 / 1e3,
        }
    }

    /// Keeps this repetition in the report's list.
    pub(crate) fn keep(&self, line: &str, server: &str, repetition: usize, report: &mut Report) {
        let metrics = [
            ("server_cpu_ns", self.server_ns),
            ("load_cpu_ns", self.load_ns),
            ("per_second", self.per_second),
            ("wall_ms", self.wall_ms),
            ("p50_us", self.p50_us),
            ("p99_us", self.p99_us),
            ("p999_us", self.p999_us),
            ("longest_us", self.longest_us),
        ];
        for (metric, value) in metrics {
            report.figure(&Figure { line, server, repetition, metric, value });
        }
    }
}
