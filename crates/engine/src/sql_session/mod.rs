//! A SQL session: what a client of a protocol with sessions of its own has between two statements.
//!
//! Prepared statements, portals and cursors, settings, the open transaction. Any SQL thread can serve any session,
//! one at a time: what belongs to the thread is its [`SqlThreadContext`], what belongs to the client is here.

mod as_json;
mod copy;
mod effects;
mod execute;
mod fetching;
mod lock;
mod portal;
mod prepared;
mod reader;
mod rows;
mod run;
pub(crate) mod settings;
mod split;
mod telling;
mod thread_context;
mod utility;
mod waiting;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::Authenticated;
use sql::{
    Allowance, Cancel, ColumnDescription, EncryptionFacts, Held, Holder, Identity, Look, Privileges, RowSink,
    SqlError, TransactionStatus,
};
use store::Table;
use store::definition::{MappingDef, ServerDef};
use store::value::Value;

pub use as_json::{JsonStatement, error_as_json};
use copy::CopyIn;
pub use copy::{CopyLayout, CopyOptions};
pub(crate) use effects::check_notification;
use fetching::Fetching;
pub use portal::{Formats, Portal};
use portal::{Portals, State};
use prepared::Statements;
pub use prepared::{Prepared, ResultColumn};
use rows::Rows;
pub use rows::too_large as result_too_large;
use settings::Settings;
pub use thread_context::SqlThreadContext;
use utility::Utility;

use crate::activity::{Happening, Presence, Who};
use crate::advisory::Wake;
use crate::buses::Receipt;
use crate::channels::{Inbox, Notification, Overflown};
use crate::counters::Counter;
use crate::engine::{Engine, SERVER_PROCESS};
use crate::session::Session;
use crate::shared_settings::STATEMENT_TIMEOUT;

/// What the protocol of its usual clients is called.
const POSTGRESQL: &str = "postgresql";

/// Takes what a statement gives to a client.
pub trait ClientSink: RowSink {
    /// The rows to come are data of a `COPY TO STDOUT`, in this layout.
    /// `cancel` stops a sink that waits for its client.
    fn begin_copy(&mut self, options: &CopyOptions, cancel: &Cancel);
}

/// What a statement ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done: its tag, and a count where the tag has one.
    Complete {
        /// PostgreSQL's words for it.
        tag: &'static str,
        /// Rows given or changed.
        count: Option<u64>,
    },
    /// There are more rows.
    Suspended,
    /// There was no statement.
    Empty,
    /// Rows are to come from the client: see [`SqlSession::copy_columns`].
    CopyIn,
    /// It must wait for a lock. The session is woken when [`SqlSession::is_waiting`] says that it need not any more;
    /// then the same statement is run again.
    Waiting,
}

/// What the open transaction had done when a savepoint was made.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Settings that it had changed.
    changes: usize,
    /// What it had announced.
    pending: usize,
    /// Advisory locks that it had taken.
    locks: usize,
    /// What it had made invalid.
    happened: usize,
}

/// A client's session.
pub struct SqlSession {
    engine: Arc<Engine>,
    session: Session,
    /// What it may hold between its statements.
    allowance: Arc<Allowance>,
    sql: sql::Session,
    statements: Statements,
    portals: Portals,
    settings: Settings,
    /// How values are shown.
    look: Look,
    cancel: Cancel,
    copy: Option<Box<CopyIn>>,
    inbox: Option<Arc<Inbox>>,
    /// Calls the session back.
    wake: Option<Wake>,
    /// Its statement waits for an advisory lock.
    waiting: bool,
    /// What its statement has asked for at a source.
    fetching: Option<Box<Fetching>>,
    /// What took effect and is to be answered when buses have it.
    receipts: Vec<Arc<Receipt>>,
    /// Tables that read through, to which the open transaction wrote.
    spoiled: Vec<Arc<Table>>,
    /// Statements under way are a part of something that cannot wait.
    at_once: bool,
    /// It has ever listened: only then is there anything to look for.
    listening: bool,
    /// What the open transaction announces, listens to or ends listening to when it commits.
    pending: Vec<Utility>,
    /// What that takes of the allowance, and the settings that the transaction changed.
    pending_held: Held,
    /// For each savepoint of the open transaction, what it had done.
    marks: Vec<Mark>,
    /// Statements that the client sent together were made one transaction.
    implicit: bool,
    /// What its connection is encrypted with, until others see it.
    encryption: Option<EncryptionFacts>,
    /// The protocol that its client speaks.
    protocol: &'static str,
    /// What others see of it; none for a session that nobody introduced.
    presence: Option<Presence>,
    /// The same for what happened.
    who: Option<Arc<Who>>,
    /// What the open transaction made invalid, until it commits.
    happened: Vec<Happening>,
    /// Its statements come by HTTP.
    by_http: bool,
    /// Its statements are counted and listed. Those by which a program watches the server are not: they would be the
    /// most frequent ones of a server at rest.
    listed: bool,
}

impl SqlSession {
    /// A session of this program's own, and of somebody on this machine where no roles are kept.
    pub fn local(engine: Arc<Engine>) -> Self {
        Self::with(engine, Session::local())
    }

    /// A session that applies the changes of a source.
    pub fn source(engine: Arc<Engine>) -> Self {
        let mut session = Self::local(engine);
        let identity = Identity { is_source: true, ..session.sql.identity().clone() };
        session.sql.set_identity(identity);
        session
    }

    /// A session that applies what another cache has told, and tells nobody of it.
    pub fn bus(engine: Arc<Engine>) -> Self {
        let mut session = Self::local(engine);
        session.sql.silence();
        session
    }

    /// A session of somebody who was let in.
    pub fn of(engine: Arc<Engine>, who: &Authenticated, address: Option<IpAddr>) -> Self {
        Self::by(engine, who, address, POSTGRESQL)
    }

    /// The same by a protocol of this name.
    pub fn by(
        engine: Arc<Engine>,
        who: &Authenticated,
        address: Option<IpAddr>,
        protocol: &'static str,
    ) -> Self {
        let session = Session::of(who, &engine.access, address, protocol);
        let mut session = Self::with(engine, session);
        session.protocol = protocol;
        session.by_http = protocol != POSTGRESQL;
        session
    }

    /// A result, counted if it is an error of a statement that is counted.
    fn counted<T>(&self, context: &SqlThreadContext, result: Result<T, SqlError>) -> Result<T, SqlError> {
        if self.listed && result.is_err() {
            context.context().count(Counter::SqlErrors, 1);
        }
        result
    }

    fn with(engine: Arc<Engine>, session: Session) -> Self {
        let allowance = Allowance::new(engine.held(), engine.options().session_bytes_max);
        let (cancel, mut sql) = (Cancel::new(), sql::Session::within(Arc::clone(&allowance)));
        sql.set_cancel(cancel.clone());
        sql.set_teller(Arc::<Engine>::clone(&engine));
        Self {
            engine,
            session,
            sql,
            statements: Statements::new(&allowance),
            portals: Portals::default(),
            settings: Settings::default(),
            look: Look::default(),
            cancel,
            copy: None,
            inbox: None,
            wake: None,
            waiting: false,
            fetching: None,
            receipts: Vec::new(),
            spoiled: Vec::new(),
            at_once: false,
            listening: false,
            pending: Vec::new(),
            pending_held: allowance.account(),
            allowance,
            marks: Vec::new(),
            implicit: false,
            encryption: None,
            protocol: POSTGRESQL,
            presence: None,
            who: None,
            happened: Vec::new(),
            by_http: false,
            listed: true,
        }
    }

    /// The mapping by which a role's sessions work at a server: its own, the owner's for who may act as that, or
    /// everybody's.
    ///
    /// # Errors
    ///
    /// Nobody said as whom this role works there.
    pub fn mapping_at<'s>(&self, server: &'s ServerDef, role: &str) -> Result<&'s MappingDef, SqlError> {
        let owns = self.session.holder().owns(&server.access);
        let own = server.mapping_of(Some(role));
        let found = own.or_else(|| if owns { server.mapping() } else { server.mapping_of(None) });
        found.ok_or_else(|| {
            let message = format!("user mapping not found for user \"{role}\", server \"{}\"", server.name);
            SqlError::new("42704", message).with_hint(format!(
                "CREATE USER MAPPING FOR {role} SERVER {} OPTIONS (user '...', password '...')",
                server.name
            ))
        })
    }

    /// Says what its connection is encrypted with, before it begins.
    pub fn set_encryption(&mut self, encryption: EncryptionFacts) {
        self.encryption = Some(encryption);
    }

    /// Begins: who speaks, and what they want the settings to be. `timeout` is how long statements may run unless the
    /// session says otherwise, `address` where the client is.
    pub fn start(
        &mut self,
        mut identity: Identity,
        address: Option<String>,
        timeout: Option<Duration>,
        settings: &[(String, String)],
    ) -> Result<(), SqlError> {
        let timeout = timeout.map_or_else(|| "0".to_owned(), |timeout| format!("{}ms", timeout.as_millis()));
        let Holder { rights, roles } = self.session.holder();
        (identity.rights, identity.roles) = (rights, roles);
        self.settings.report("session_authorization", identity.user.clone());
        self.start_as(&identity.user);
        for (name, value) in settings {
            self.check_role(&identity.user, name, Some(value))?;
            self.settings.start_with(name, value)?;
        }
        let application = self.settings.get("application_name").unwrap_or("").to_owned();
        self.introduce(identity, &application, address);
        self.apply_settings();
        self.settings.report_if_unset(STATEMENT_TIMEOUT.name, timeout);
        self.sql.set_own_settings(self.settings.own());
        Ok(())
    }

    /// Begins with the settings of a role. One that is not good any more does not keep it out, as in PostgreSQL.
    fn start_as(&mut self, role: &str) {
        let access = self.engine.access.current();
        let Some(own) = access.roles.as_ref().and_then(|roles| roles.get(role)) else { return };
        for (name, value) in &own.settings {
            let done =
                self.check_role(role, name, Some(value)).and_then(|()| self.settings.start_with(name, value));
            if let Err(error) = done {
                tracing::warn!(
                    role,
                    setting = name,
                    "a setting of the role is passed over: {}",
                    error.message
                );
            }
        }
    }

    /// Says who speaks, how the client calls itself, and from where; others see the session from now on.
    fn introduce(&mut self, identity: Identity, application: &str, address: Option<String>) {
        self.sql.set_identity(identity.clone());
        let (role, pid) = (identity.user.clone(), Some(identity.pid));
        self.who = Some(Arc::new(Who { role, pid, address: address.clone(), protocol: self.protocol }));
        self.presence = Some(Presence::new(
            &self.engine.activity.sessions,
            identity,
            application.to_owned(),
            (address, self.protocol, self.encryption.take()),
            self.cancel.clone(),
        ));
    }

    /// Where what is announced to this session comes in. `wake` is called after each, from any thread.
    pub fn set_wake(&mut self, wake: Box<dyn Fn() + Send + Sync>) {
        let wake: Wake = Arc::from(wake);
        self.wake = Some(Arc::clone(&wake));
        self.inbox = Some(Inbox::new(&self.allowance, Box::new(move || wake())));
    }

    /// The settings that are reported to clients at the start.
    pub fn reported_settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.settings.reported()
    }

    /// Those of them that changed since the last call.
    #[inline]
    pub fn take_changed_settings(&mut self) -> Vec<(&'static str, String)> {
        self.settings.take_changed()
    }

    /// Whether somebody ended it (`pg_terminate_backend`).
    pub fn is_ended(&self) -> bool {
        self.presence.as_ref().is_some_and(Presence::is_ended)
    }

    /// How long it may sleep: in a transaction, and outside.
    pub fn idle_timeout(&self) -> Option<Duration> {
        let name = match self.status() {
            TransactionStatus::Idle => "idle_session_timeout",
            _ => "idle_in_transaction_session_timeout",
        };
        self.settings.time(name)
    }

    /// How the values of its results are shown.
    #[inline]
    pub fn look(&self) -> Look {
        self.look
    }

    /// What stops its statement.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Whether it is in a transaction.
    #[inline]
    pub fn status(&self) -> TransactionStatus {
        self.sql.status()
    }

    /// What its statements had to say beside their answers.
    #[inline]
    pub fn take_notices(&mut self) -> Vec<sql::Notice> {
        let mut notices = self.sql.take_notices();
        notices.retain(|notice| self.settings.wants(notice.severity));
        notices
    }

    /// Whether more was announced to it than may wait.
    #[inline]
    pub fn has_lost_notifications(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.is_overflown())
    }

    /// What was announced to it, a piece at a time; `None`: nothing waits, or a transaction is open. An error:
    /// more than may wait.
    #[inline]
    pub fn take_notifications(&mut self) -> Result<Option<impl Iterator<Item = Notification>>, Overflown> {
        let taken = match &self.inbox {
            Some(inbox) if self.listening && self.sql.status() == TransactionStatus::Idle => inbox.take()?,
            _ => return Ok(None),
        };
        if taken.is_empty() {
            return Ok(None);
        }
        self.session.refresh(&self.engine.access);
        Ok(Some(taken.into_iter().filter(|notification| self.may_hear(notification))))
    }

    /// Whether a notification is for it. A session hears of rows that left a table if it may read the table.
    fn may_hear(&self, notification: &Notification) -> bool {
        notification.process != SERVER_PROCESS || self.check_announced(&notification.channel, true).is_ok()
    }

    /// Refuses a channel on which a table announces its rows that the session may not read. `announced`: a table did,
    /// so one that is gone by now is refused too.
    fn check_announced(&self, channel: &str, announced: bool) -> Result<(), SqlError> {
        let holder = self.session.holder();
        if holder.rights.superuser {
            return Ok(());
        }
        let catalog = self.engine.store.catalog();
        let announces = |table: &&Arc<Table>| table.def().options.notify.as_deref() == Some(channel);
        let mut announcing = catalog.tables().filter(announces).peekable();
        if announced && announcing.peek().is_none() {
            return Err(SqlError::new("42501", format!("permission denied for channel {channel}")));
        }
        match announcing.find(|table| !holder.on_rows(table.def()).has(Privileges::SELECT)) {
            None => Ok(()),
            Some(table) => {
                Err(SqlError::new("42501", format!("permission denied for table {}", table.name())))
            }
        }
    }

    /// Prepares a statement under a name; the empty name is taken again and again. `types` are those parameters'
    /// types that the client chose, by their numbers.
    pub fn parse(
        &mut self,
        context: &mut SqlThreadContext,
        name: &str,
        text: &str,
        types: impl Iterator<Item = u32>,
    ) -> Result<(), SqlError> {
        self.cancel.reset();
        let chosen = prepared::chosen_types(types);
        let prepared = chosen.and_then(|chosen| self.prepare(context, text, &chosen));
        let result = prepared.and_then(|prepared| self.statements.put(name, prepared));
        if let Err(error) = &result {
            self.session.note_failed(text, error);
        }
        self.counted(context, result)
    }

    /// A prepared statement.
    #[inline]
    pub fn prepared(&self, name: &str) -> Result<&Arc<Prepared>, SqlError> {
        self.statements.get(name)
    }

    /// Makes a portal of a prepared statement and values for its parameters.
    #[inline]
    pub fn bind(
        &mut self,
        portal: &str,
        prepared: Arc<Prepared>,
        values: Vec<Value>,
        formats: Formats,
    ) -> Result<(), SqlError> {
        let prepared = if prepared.is_fetch() { self.fetch_again(&prepared)? } else { prepared };
        self.portals.put(portal, Portal::new(prepared, values, formats), &self.allowance)
    }

    /// `FETCH` may be prepared before its cursor is declared, and then has the columns of the cursor that there is now.
    #[cold]
    fn fetch_again(&self, prepared: &Prepared) -> Result<Arc<Prepared>, SqlError> {
        let Some(utility) = utility::read(prepared.text())? else {
            return Err(SqlError::new("XX000", "a prepared FETCH is no FETCH"));
        };
        let columns = self.columns_of(&utility)?;
        Ok(Arc::new(Prepared::utility(prepared.text(), utility, Vec::new(), columns)))
    }

    /// A portal.
    #[inline]
    pub fn portal(&self, name: &str) -> Result<&Portal, SqlError> {
        self.portals.get(name)
    }

    /// An emptied list for the values of the next portal.
    #[inline]
    pub fn recycled_values(&mut self) -> Vec<Value> {
        self.portals.recycled_values()
    }

    /// Runs a portal, up to so many rows; 0 is all. `more`: other requests come before the client's `Sync`, and are one
    /// transaction with it.
    #[inline]
    pub fn execute(
        &mut self,
        context: &mut SqlThreadContext,
        name: &str,
        max_rows: u32,
        more: bool,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        let mut portal = self.portals.take(name)?;
        let joined = if more || self.implicit { self.join_portal(context, &portal) } else { Ok(()) };
        let result = joined.and_then(|()| self.run_portal(context, &mut portal, max_rows, sink));
        if let Err(error) = &result {
            self.session.note_failed(portal.prepared.text(), error);
        }
        self.portals.give_back(name, portal);
        self.counted(context, result)
    }

    /// The client has ended a group of requests: what they wrote is committed, unless one failed or the client has a
    /// transaction of its own. Outside a transaction its portals end with it.
    #[inline]
    pub fn sync(&mut self, context: &mut SqlThreadContext) -> Result<(), SqlError> {
        let mut result = Ok(());
        if self.implicit {
            result = self.end_together(context);
        }
        if self.sql.status() == TransactionStatus::Idle {
            self.portals.end_block(false);
        }
        result
    }

    /// A request failed: a transaction that is open can only be rolled back, unless the statement said that what it
    /// wrote before stands. Statements that were sent together are one, whatever they say.
    pub fn fail(&mut self, error: &SqlError) {
        if !error.partial || self.implicit {
            self.sql.fail();
        }
    }

    /// Forgets a prepared statement; one that does not exist is forgotten already.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Forgets a portal.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    fn prepare(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        chosen: &[Option<sql::SqlType>],
    ) -> Result<Prepared, SqlError> {
        let text = split::single(text)?;
        if text.is_empty() {
            return Ok(Prepared::empty());
        }
        if let Some(utility) = utility::read(text)? {
            let columns = match &utility {
                Utility::Explain { head, name, .. } => {
                    let prepared = Arc::clone(self.statements.get(name)?);
                    let text = execute::explained(head, &prepared)?;
                    context.executor()?.describe(&self.sql, &text, prepared.chosen())?.columns
                }
                utility => self.columns_of(utility)?,
            };
            let parameters = match &utility {
                Utility::Declare { text, .. } => {
                    context.executor()?.describe(&self.sql, text, chosen)?.parameters
                }
                _ => Vec::new(),
            };
            return Ok(Prepared::utility(text, utility, parameters, columns));
        }
        let description = context.executor()?.describe(&self.sql, text, chosen)?;
        Ok(Prepared::new(text, description))
    }

    /// Room for a result that stays.
    fn kept(&self) -> Kept {
        Kept(Rows::new(self.engine.options().result_size_max, self.allowance.account()))
    }

    #[inline]
    fn run_portal(
        &mut self,
        context: &mut SqlThreadContext,
        portal: &mut Portal,
        max_rows: u32,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        match portal.state {
            State::Fresh if max_rows == 0 || portal.prepared.columns().is_none() => {
                portal.state = State::Ended;
                let outcome = self.run_prepared(context, &portal.prepared, &portal.values, sink);
                if matches!(outcome, Ok(Outcome::Waiting)) {
                    portal.state = State::Fresh;
                }
                outcome
            }
            State::Fresh => match self.keep_rows(context, portal)? {
                Outcome::Waiting => Ok(Outcome::Waiting),
                _ => portal.replay(max_rows, sink),
            },
            State::Rows { .. } => portal.replay(max_rows, sink),
            State::Ended => portal.again(),
        }
    }

    /// Runs a portal that has not begun, and keeps what it gives.
    fn keep_rows(
        &mut self,
        context: &mut SqlThreadContext,
        portal: &mut Portal,
    ) -> Result<Outcome, SqlError> {
        let mut rows = self.kept();
        let outcome = self.run_prepared(context, &portal.prepared, &portal.values, &mut rows)?;
        if outcome != Outcome::Waiting {
            rows.0.complete();
            portal.state = State::Rows { rows: rows.0, next: 0 };
        }
        Ok(outcome)
    }
}

impl fmt::Debug for SqlSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, waiting) = (self.sql.status(), self.waiting);
        f.debug_struct("SqlSession")
            .field("status", &status)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        if let Some(inbox) = &self.inbox {
            self.engine.channels.unlisten(None, inbox);
        }
        self.engine.locks.forget(self.sql.identity().pid);
    }
}

/// Keeps rows, as a portal and a cursor want them.
struct Kept(Rows);

impl RowSink for Kept {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.0.columns(columns);
    }

    fn row(&mut self, values: &[store::value::ValueRef<'_>]) -> Result<(), SqlError> {
        self.0.row(values)
    }
}

impl ClientSink for Kept {
    /// A `COPY` gives no rows to keep.
    fn begin_copy(&mut self, _options: &CopyOptions, _cancel: &Cancel) {}
}

/// For a statement that gives no rows.
struct NoRows;

impl RowSink for NoRows {
    fn columns(&mut self, _columns: &[ColumnDescription]) {}

    fn row(&mut self, _values: &[store::value::ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}
