//! What the system tables show of the daemon: its sessions, its statements, its settings.
//!
//! Counting a statement is a few additions on words that its thread has at hand; everything that costs more is done
//! when a statement is met for the first time, or when somebody reads the tables.

mod sessions;
mod statements;

use std::sync::Arc;

use parking_lot::Mutex;
use sql::SettingFacts;
use store::Clock;

pub(crate) use sessions::{Presence, Sessions};
pub(crate) use statements::{Counted, KnownStatements, Statements};

/// All of it. Each part has a lock of its own, held for a moment.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(crate) statements: Statements,
    pub(crate) sessions: Arc<Sessions>,
    settings: Mutex<Vec<SettingFacts>>,
}

impl Activity {
    /// Nothing yet, in the time of this clock.
    pub(crate) fn new(clock: Clock) -> Self {
        let sessions = Arc::new(Sessions::new(clock));
        Self { statements: Statements::default(), sessions, settings: Mutex::default() }
    }

    /// Takes the settings over from whoever knows them.
    pub(crate) fn set_settings(&self, settings: Vec<SettingFacts>) {
        *self.settings.lock() = settings;
    }

    /// The settings.
    pub(crate) fn settings(&self) -> Vec<SettingFacts> {
        self.settings.lock().clone()
    }
}
