//! What goes to standard error, and how much of it.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{Handle, Layer};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// The target of lines that are no warnings and are written at every verbosity: what an operator asked for has
/// happened.
pub(crate) const NOTICE: &str = "notice";

/// Changes the level of a running log.
#[derive(Debug)]
pub(crate) struct Log {
    handle: Handle<Targets, Registry>,
}

impl Log {
    /// Starts the log of this process.
    pub(crate) fn start(verbosity: u64) -> Self {
        let (filter, handle) = Layer::new(lines_of(verbosity));
        // Colours are for people: a file or a journal would keep them as noise.
        let colours = std::io::stderr().is_terminal();
        let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
        tracing_subscriber::registry().with(filter).with(lines).init();
        Self { handle }
    }

    /// Logs more or less from now on.
    pub(crate) fn set(&self, verbosity: u64) {
        // It fails only when the log is gone, and then there is nobody to tell.
        let _gone = self.handle.reload(lines_of(verbosity));
    }
}

fn lines_of(verbosity: u64) -> Targets {
    let level = level(verbosity);
    Targets::new().with_default(level).with_target(NOTICE, level.max(LevelFilter::INFO))
}

fn level(verbosity: u64) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}
