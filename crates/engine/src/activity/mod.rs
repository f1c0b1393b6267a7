//! What the system tables show of the daemon: its sessions, its statements, its settings.
//!
//! Counting a statement is a few additions on words that its thread has at hand; everything that costs more is done
//! when a statement is met for the first time, or when somebody reads the tables.

mod flush_to_come;
mod happened;
mod history;
mod invalidations;
mod kept;
mod sessions;
mod slow;
mod statements;

use std::sync::Arc;

use parking_lot::Mutex;
use sql::{Done, Invalidated, SettingFacts, SqlError};
use store::value::Value;
use store::{Clock, Store};

use crate::audit::Audit;

pub(crate) use flush_to_come::FlushToCome;
pub(crate) use happened::Who;
use history::History;
pub(crate) use invalidations::Happening;
use invalidations::Invalidations;
pub(crate) use sessions::{Presence, Sessions};
pub(crate) use slow::Ended;
use slow::SlowLog;
pub(crate) use statements::{Concern, Counted, KnownStatements, Statements};

/// All of it. Each part has a lock of its own, held for a moment.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(crate) statements: Statements,
    /// Those by which somebody watches the server; nothing shows them.
    pub(crate) unlisted: Statements,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) slow: SlowLog,
    pub(crate) invalidations: Invalidations,
    audit: Arc<Audit>,
    history: History,
    settings: Mutex<Vec<SettingFacts>>,
}

impl Activity {
    /// Nothing yet, in the time of this clock.
    pub(crate) fn new(clock: &Clock, audit: Arc<Audit>) -> Self {
        Self {
            statements: Statements::default(),
            unlisted: Statements::default(),
            sessions: Arc::new(Sessions::new(clock.clone())),
            slow: SlowLog::new(clock.clone()),
            invalidations: Invalidations::new(clock.clone()),
            audit,
            history: History::new(clock.now_ns()),
            settings: Mutex::default(),
        }
    }

    /// Takes note of a statement that ended, if it was slow or made rows invalid. What a transaction made invalid is
    /// noted when it commits: it is returned.
    #[cold]
    pub(crate) fn note(
        &self,
        store: &Store,
        counted: &Counted,
        (text, values): (&str, &[Value]),
        (result, took): (&Result<Done, SqlError>, Option<u64>),
        who: &Arc<Who>,
    ) -> Option<Happening> {
        if let Some(took_ns) = took.filter(|took| self.slow.is_slow(*took)) {
            self.slow.keep(&Ended { query: counted.query(), text, values, took_ns, result }, who);
        }
        let Invalidated { table, rows, how } = result.as_ref().ok()?.invalidated?;
        let (statement, parameters) = if self.slow.value_bytes() == 0 {
            (Arc::clone(counted.query()), None)
        } else {
            let (text, parameters) = self.slow.shown(counted.query(), text, values);
            (text.into(), parameters)
        };
        let catalog = store.catalog();
        let table = catalog.tables().find(|own| own.id() == table).map(|own| own.name().to_owned());
        Some(Happening { who: Arc::clone(who), statement, parameters, table, how, rows, took_ns: took })
    }

    /// Takes note of rows that were made invalid.
    pub(crate) fn keep(&self, what: Happening) {
        self.note_early(&what);
        self.invalidations.keep(what);
    }

    /// The same in the audit log alone, which leaves out nothing: a transaction has more invalidations than are kept
    /// until it commits.
    pub(crate) fn note_early(&self, what: &Happening) {
        let (by, table) = (what.who.by(), what.table.as_deref());
        self.audit.note_invalidation(&by, &what.statement, table, what.rows);
    }

    /// Takes note of a statement that succeeded, if the audit log has such.
    #[inline]
    pub(crate) fn note_done(&self, who: impl FnOnce() -> Arc<Who>, statement: &str, tag: &str) {
        if self.audit.is_on() {
            self.audit.note_done(&who().by(), statement, tag);
        }
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
