//! What all experiments share: who takes part, how much is done, and how servers are started.

use std::path::PathBuf;

use crate::address::Address;
use crate::cores::Cores;
use crate::failure::Result;
use crate::protocol::Protocol;
use crate::report::Report;
use crate::server::{Kind, Server, Setup};

use super::Options;

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effort {
    /// All in three minutes.
    Quick,
    /// All in twenty.
    Usual,
    /// As long as it takes.
    Full,
}

impl Effort {
    /// One of three, by effort.
    pub(super) fn of<T>(self, quick: T, usual: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Usual => usual,
            Self::Full => full,
        }
    }
}

/// Who takes part and how much is done.
#[derive(Clone, Debug)]
pub(super) struct Lab {
    ours: Vec<Kind>,
    running: Option<(Address, Option<Address>)>,
    /// Where servers and load run.
    pub(super) cores: Cores,
    /// Repetitions of each measurement.
    pub(super) repetitions: usize,
    /// Length of one measurement that has no end of its own.
    pub(super) slice_ns: u64,
    /// How much is done.
    pub(super) effort: Effort,
    /// A folder of traces.
    pub(super) traces: Option<PathBuf>,
}

impl Lab {
    /// As the command line says.
    pub(super) fn new(options: &Options) -> Self {
        let effort = match (options.quick, options.full) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Full,
            _ => Effort::Usual,
        };
        let free = options.unpinned || options.server.is_some();
        let running = options.server.clone();
        Self {
            ours: if running.is_some() { Vec::new() } else { crate::builds(&options.sqlcached) },
            running: running.map(|address| (address, options.sql_server.clone())),
            cores: if free { Cores::free() } else { Cores::choose() },
            repetitions: options.repetitions.unwrap_or_else(|| effort.of(3, 5, 7)).max(1),
            slice_ns: crate::nanoseconds(effort.of(0.1, 0.3, 0.5)),
            effort,
            traces: options.traces.clone(),
        }
    }

    /// Everybody who may take part in some experiment.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let peers = [Kind::Memcached, Kind::Redis, Kind::PostgreSql, Kind::MariaDb];
        peers.into_iter().chain(self.ours.iter().cloned()).collect()
    }

    /// Our builds.
    pub(super) fn ours(&self) -> &[Kind] {
        &self.ours
    }

    /// Where the server of ours listens that runs already.
    pub(super) fn running(&self) -> Option<&Address> {
        self.running.as_ref().map(|(address, _)| address)
    }

    /// A setup with our PostgreSQL listener open.
    pub(super) fn setup(&self, memory_mib: u64) -> Setup {
        Setup { sql_listener: true, ..Setup::new(memory_mib, self.cores) }
    }

    /// Our builds, or the server that runs already.
    pub(super) fn start_ours(&self, setup: &Setup, report: &mut Report) -> Vec<Server> {
        let mut servers = start_each(&self.ours, setup, report);
        if let Some((address, sql)) = &self.running {
            match Server::running(address, Protocol::Memcached) {
                Ok(mut server) => {
                    server.sql.clone_from(sql);
                    report.say(&format!("- {}: {}", server.label, server.command));
                    servers.push(server);
                }
                Err(failure) => report.say(&format!("- {address}: skipped: {failure}")),
            }
        }
        servers
    }

    /// These peers, then ours.
    pub(super) fn start_all(&self, peers: &[Kind], setup: &Setup, report: &mut Report) -> Vec<Server> {
        let mut servers = start_each(peers, setup, report);
        servers.extend(self.start_ours(setup, report));
        servers
    }
}

/// A server started with this setup; `None` after a line that says why it cannot be had.
pub(super) fn start(kind: &Kind, setup: &Setup, report: &mut Report) -> Option<Server> {
    match Server::start(kind, setup) {
        Ok(server) => {
            report.say(&format!("- {}: `{}`", server.label, server.command));
            Some(server)
        }
        Err(failure) => {
            report.say(&format!("- {}: skipped: {failure}", kind.label()));
            None
        }
    }
}

/// Those of these that can be had.
pub(super) fn start_each(kinds: &[Kind], setup: &Setup, report: &mut Report) -> Vec<Server> {
    kinds.iter().filter_map(|kind| start(kind, setup, report)).collect()
}

/// Measures every subject once a repetition, beginning with another one each time.
pub(super) fn interleaved<S>(
    repetitions: usize,
    subjects: &mut [S],
    mut measure: impl FnMut(&mut S, usize) -> Result<()>,
) -> Result<()> {
    for repetition in 0..repetitions {
        for turn in 0..subjects.len() {
            let index = (turn + repetition) % subjects.len();
            if let Some(subject) = subjects.get_mut(index) {
                measure(subject, repetition)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::interleaved;

    #[test]
    fn everybody_has_a_turn_in_every_repetition_and_the_order_changes() {
        let mut seen = Vec::new();
        interleaved(3, &mut ['a', 'b', 'c'], |subject, repetition| {
            seen.push((repetition, *subject));
            Ok(())
        })
        .unwrap();
        let order: String = seen.iter().map(|(_, subject)| *subject).collect();
        assert_eq!(order, "abcbcacab");
    }
}
