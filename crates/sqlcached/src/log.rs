//! What goes to standard error, and how much of it.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{DefaultFields, Format};
use tracing_subscriber::reload::Handle;
use tracing_subscriber::{Registry, fmt};

/// Changes the level of a running log.
#[derive(Debug)]
pub(crate) struct Log {
    handle: Handle<LevelFilter, Inner>,
}

/// What the level is a layer upon.
type Inner = fmt::Formatter<DefaultFields, Format, fn() -> std::io::Stderr>;

impl Log {
    /// Starts the log of this process.
    pub(crate) fn start(verbosity: u64) -> Self {
        let _ = std::marker::PhantomData::<Registry>;
        let builder = fmt::Subscriber::builder()
            .with_writer(std::io::stderr as fn() -> std::io::Stderr)
            .with_max_level(level(verbosity))
            .with_filter_reloading();
        let handle = builder.reload_handle();
        builder.init();
        Self { handle }
    }

    /// Logs more or less from now on.
    pub(crate) fn set(&self, verbosity: u64) {
        // It fails only when the log is gone, and then there is nobody to tell.
        let _gone = self.handle.reload(level(verbosity));
    }
}

fn level(verbosity: u64) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}
