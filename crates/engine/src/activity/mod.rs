//! What the system tables tell of the daemon: its sessions, its statements, its settings.
//!
//! Counting a statement is a few additions on words that its thread has at hand; everything that costs more is done
//! when a statement is met for the first time, or when somebody reads the tables.

mod sessions;
mod statements;

use parking_lot::Mutex;
use sql::{Server, SessionFacts, SettingFacts, SqlError, StatementFacts};

pub(crate) use sessions::{Presence, Sessions};
pub(crate) use statements::{Counted, KnownStatements, Statements};

use crate::engine::Engine;
use crate::sql_session::{check_notification, settings};

/// All of it. Each part has a lock of its own, held for a moment.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) statements: Statements,
    pub(crate) sessions: Sessions,
    settings: Mutex<Vec<SettingFacts>>,
}

impl Activity {
    /// Takes the settings over from whoever knows them.
    pub(crate) fn set_settings(&self, settings: Vec<SettingFacts>) {
        *self.settings.lock() = settings;
    }
}

impl Server for Engine {
    fn sessions(&self) -> Vec<SessionFacts> {
        self.activity.sessions.all()
    }

    fn statements(&self) -> Vec<StatementFacts> {
        self.activity.statements.all()
    }

    fn settings(&self) -> Vec<SettingFacts> {
        self.activity.settings.lock().clone()
    }

    fn started_ms(&self) -> i64 {
        self.started_ms
    }

    fn session_default(&self, name: &str) -> Option<&'static str> {
        if name.eq_ignore_ascii_case("native_execution") {
            return Some(settings::on_off(self.native_execution()));
        }
        settings::default_of(name)
    }

    fn check_setting(&self, name: &str, value: Option<&str>) -> Result<String, SqlError> {
        settings::after(name, value)
    }

    fn check_notification(&self, channel: &str, payload: &str) -> Result<(), SqlError> {
        check_notification(channel, payload)
    }

    fn cancel(&self, pid: i32) -> bool {
        self.activity.sessions.cancel(pid)
    }
}
