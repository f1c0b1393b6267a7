//! Facts about the machine, for the head of a report.

use std::fs;

/// What was going on beside us: read at the start and at the end of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// Ticks of all cores.
    all: u64,
    /// Ticks the hypervisor gave to others.
    stolen: u64,
}

impl Noise {
    /// As of now.
    pub(crate) fn sample() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        Self { all: ticks.iter().take(8).sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// What happened since, in words.
    pub(crate) fn since(self) -> String {
        let now = Self::sample();
        let share = 100.0 * (now.stolen - self.stolen) as f64 / (now.all - self.all).max(1) as f64;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').take(2).collect::<Vec<_>>().join(" / ");
        format!(
            "{share:.1} % of the processor time stolen by the host; load average {load} (1 / 5 minutes, our two processes included)"
        )
    }
}

/// Processor, cores, memory and kernel.
pub(crate) fn describe() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}, {cores} cores, {} GiB, Linux {}",
        model.unwrap_or("unknown processor").trim(),
        kib >> 20,
        kernel.trim()
    )
}
