//! Runs statements: those of the SQL layer, and those that the session answers itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::Giver;
use auth::statement::RoleStatement;
use sql::{
    ColumnDescription, Done, DoneKind, Holder, Identity, Invalidation, RowSink, SqlError, SqlType,
    StatementText, TransactionStatus,
};
use store::value::{Value, ValueRef};

use super::copy::{CopyDirection, CopyIn, CopyStatement, What};
use super::effects::check_notification;
use super::execute::explained;
use super::portal::{Portal, State, bytes_of};
use super::prepared::{self, Body, Prepared, check_name};
use super::rows::Rows;
use super::settings::{self, Settings, on_off};
use super::utility::{self, Direction, Discard, RoleChange, Utility};
use super::{ClientSink, CopyOptions, Mark, NoRows, Outcome, SqlSession, SqlThreadContext};
use crate::activity::{Concern, Counted};
use crate::counters::Counter;
use crate::latency::Class;
use crate::limits::{
    HAPPENED_IN_BLOCK_MAX, LISTENED_BYTES, NOTIFICATION_BYTES, SETTING_CHANGE_BYTES, SETTINGS_BYTES_MAX,
};
use crate::privilege::Command;

/// A tag without a count.
fn done(tag: &'static str) -> Outcome {
    Outcome::Complete { tag, count: None }
}

impl SqlSession {
    /// Runs one statement as text, without parameters. `alone`: the client sent no other with it;
    /// several are one transaction, as long as nobody says otherwise.
    pub fn run_text(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        alone: bool,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        let result = self.run_one(context, text, alone, sink);
        if let Err(error) = &result {
            self.session.note_failed(text, error);
        }
        self.counted(context, result)
    }

    /// Ends the transaction that statements sent together were made, if they were.
    #[cold]
    pub(super) fn end_together(&mut self, context: &mut SqlThreadContext) -> Result<(), SqlError> {
        let end = match self.status() {
            _ if !std::mem::take(&mut self.implicit) => return Ok(()),
            TransactionStatus::Idle => return Ok(()),
            TransactionStatus::InBlock => "COMMIT",
            TransactionStatus::Failed => "ROLLBACK",
        };
        let result = self.run_sql(context, end, &[], &mut NoRows).map(|_| ());
        self.counted(context, result)
    }

    /// See [`SqlSession::join_text`].
    #[cold]
    pub(super) fn join_portal(
        &mut self,
        context: &mut SqlThreadContext,
        portal: &Portal,
    ) -> Result<(), SqlError> {
        match portal.prepared.body() {
            Body::Sql => self.join_text(context, portal.prepared.text()),
            _ => Ok(()),
        }
    }

    fn run_one(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        alone: bool,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        if let Some(utility) = utility::read(text)? {
            // Roles change for good and at once, which a transaction refuses.
            if !alone && matches!(utility, Utility::Role(_)) {
                self.end_together(context)?;
            }
            return self.run_utility(context, &utility, &[], sink);
        }
        if !alone {
            self.join_text(context, text)?;
        }
        self.run_sql(context, text, &[], sink)
    }

    /// Makes statements that were sent together one transaction: begins it before the first that may write rows or
    /// defines something, and ends it before the client's own `BEGIN`.
    fn join_text(&mut self, context: &mut SqlThreadContext, text: &str) -> Result<(), SqlError> {
        let first = sql::token::Tokens::new(text).next();
        let is = |words: &[&str]| first.is_some_and(|first| words.iter().any(|word| first.is(word)));
        if is(&["BEGIN", "START"]) {
            return self.end_together(context);
        }
        let writes = is(&["WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "MERGE"]);
        let defines = is(&["CREATE", "DROP", "ALTER", "TRUNCATE", "COMMENT", "GRANT", "REVOKE", "DO"]);
        if (writes || defines) && self.status() == TransactionStatus::Idle {
            self.run_sql(context, "BEGIN", &[], &mut NoRows)?;
            self.sql.set_together();
            self.implicit = true;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn run_prepared(
        &mut self,
        context: &mut SqlThreadContext,
        prepared: &Prepared,
        values: &[Value],
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        match prepared.body() {
            Body::Sql => self.run_chosen(context, prepared.text(), values, prepared.chosen(), sink),
            Body::Empty => Ok(Outcome::Empty),
            Body::Utility(utility) => self.run_utility(context, utility, values, sink),
        }
    }

    /// Runs a statement of the SQL layer whose parameters have no types of the client's.
    pub(super) fn run_sql(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        values: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        self.run_chosen(context, text, values, &[], sink)
    }

    /// Runs a statement of the SQL layer: the gate for all of them. `chosen`: see [`sql::Description::chosen`].
    #[inline]
    fn run_chosen(
        &mut self,
        context: &mut SqlThreadContext,
        text: &str,
        values: &[Value],
        chosen: &[Option<SqlType>],
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        self.pass_gate(context)?;
        #[cfg(debug_assertions)]
        crate::testing::pass("sql session", text.as_bytes());
        let text = StatementText::new(text);
        let counted = if self.listed {
            context.context_mut().statement(&text)
        } else {
            self.engine.activity.unlisted.find(text.sql)
        };
        if counted.locks() {
            return self.run_locking(context, &counted, text.sql, (values, chosen), sink);
        }
        if !self.spoiled.is_empty() {
            self.spoil_again();
        }
        let concern = counted.concern(&self.engine.store);
        if concern != Concern::None {
            return self.run_with_source(context, (&counted, concern), &text, (values, chosen), sink);
        }
        self.run_through(context, &counted, &text, (values, chosen), sink)
    }

    /// Runs a statement from its beginning to its end.
    #[inline]
    pub(super) fn run_through(
        &mut self,
        context: &mut SqlThreadContext,
        counted: &Arc<Counted>,
        text: &StatementText<'_>,
        parameters: (&[Value], &[Option<SqlType>]),
        sink: &mut dyn RowSink,
    ) -> Result<Outcome, SqlError> {
        let before = self.sql.status();
        if let Some(presence) = &self.presence {
            presence.begin(counted);
        }
        let result = self.run_counted(context, counted, text, parameters, sink);
        if let Some(presence) = &self.presence {
            presence.end(self.sql.status());
        }
        if before != TransactionStatus::Idle {
            self.after_block(&result);
            if let Ok(done) = &result {
                self.mark(done.tag);
            }
        }
        let done = result?;
        self.note_done(counted.query(), done.tag);
        match done.tag {
            "SET" => self.follow_defaults()?,
            "DROP SCHEMA" => self.engine.access.forget_schemas(&self.engine.store)?,
            _ => {}
        }
        self.carry_out()?;
        Ok(outcome(done))
    }

    #[inline]
    fn run_counted(
        &mut self,
        context: &mut SqlThreadContext,
        counted: &Counted,
        text: &StatementText<'_>,
        parameters: (&[Value], &[Option<SqlType>]),
        sink: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let sampled = context.context_mut().is_timed_statement();
        let (own, executor) = context.tools()?;
        let (slow, store) = (&self.engine.activity.slow, &self.engine.store);
        let (result, took) = counted.run(store, executor, text.sql, sampled || slow.is_on(), |executor| {
            executor.execute_text(&mut self.sql, text, parameters, &self.cancel, sink)
        });
        if let Some(took) = took.filter(|_| sampled) {
            let class = if self.by_http { Class::HTTP_SQL } else { Class::POSTGRESQL_SQL };
            own.note_statement_time(class.of_statement(&result), took);
        }
        let invalidates = result.as_ref().is_ok_and(|done| done.invalidated.is_some());
        if invalidates || self.listed && took.is_some_and(|took| slow.is_slow(took)) {
            self.note_ended(counted, (text.sql, parameters.0), (&result, took));
        }
        self.tell_others();
        result
    }

    /// Takes note of a statement that was slow or made rows invalid. What may still be rolled back waits for `COMMIT`.
    #[cold]
    fn note_ended(
        &mut self,
        counted: &Counted,
        text: (&str, &[Value]),
        (result, took): (&Result<Done, SqlError>, Option<u64>),
    ) {
        let Some(who) = &self.who else { return };
        let activity = &self.engine.activity;
        let Some(happening) = activity.note(&self.engine.store, counted, text, (result, took), who) else {
            return;
        };
        if self.status() == TransactionStatus::Idle || happening.how == Invalidation::Flushed {
            activity.keep(happening);
        } else if self.happened.len() < HAPPENED_IN_BLOCK_MAX {
            self.happened.push(happening);
        } else {
            activity.note_early(&happening);
        }
    }

    /// Tells the audit log of a statement that succeeded. What the program does by itself is nobody's.
    #[inline]
    fn note_done(&self, statement: &str, tag: &str) {
        if let Some(who) = &self.who {
            self.engine.activity.note_done(|| Arc::clone(who), statement, tag);
        }
    }

    /// Every statement passes here.
    #[inline]
    fn pass_gate(&mut self, context: &SqlThreadContext) -> Result<(), SqlError> {
        if self.listed {
            context.context().count(Counter::CmdSql, 1);
        }
        if self.by_http && self.listed {
            context.context().count(Counter::SqlByHttp, 1);
        }
        if self.session.refresh(&self.engine.access) {
            self.follow_rights();
        }
        if self.session.allow(Command::Sql).is_err() {
            return Err(SqlError::new("42501", "permission denied"));
        }
        self.cancel.reset();
        Ok(())
    }

    /// Follows the savepoints of the open transaction: going back to one takes back settings and announcements too.
    fn mark(&mut self, tag: &str) {
        let savepoints = self.sql.savepoints();
        match tag {
            "SAVEPOINT" => {
                let locks = self.engine.locks.mark(self.sql.identity().pid);
                let (changes, pending) = (self.settings.changes(), self.pending.len());
                self.marks.push(Mark { changes, pending, locks, happened: self.happened.len() });
            }
            "ROLLBACK" => {
                self.marks.truncate(savepoints);
                if let Some(Mark { changes, pending, locks, happened }) = self.marks.last().copied() {
                    self.happened.truncate(happened);
                    self.settings.roll_back_to(changes);
                    self.pending.truncate(pending);
                    self.engine.locks.end_transaction(self.sql.identity().pid, locks);
                    self.apply_settings();
                }
            }
            _ => self.marks.truncate(savepoints),
        }
    }

    /// What the end of a transaction ends.
    fn after_block(&mut self, result: &Result<Done, SqlError>) {
        let ended = |tag| result.as_ref().is_ok_and(|done| done.tag == tag);
        let committed = ended("COMMIT");
        // `AND CHAIN` began the next one; `ROLLBACK TO` leaves its savepoint.
        let chained = ended("ROLLBACK") && self.sql.savepoints() == 0;
        if self.sql.status() != TransactionStatus::Idle && !committed && !chained {
            return;
        }
        self.implicit = false;
        self.marks.clear();
        self.engine.locks.end_transaction(self.sql.identity().pid, 0);
        self.portals.end_block(!committed);
        self.settings.end_block(!committed);
        self.pending_held.set(0);
        self.apply_settings();
        for happening in self.happened.drain(..).filter(|_| committed) {
            self.engine.activity.keep(happening);
        }
        for pending in std::mem::take(&mut self.pending) {
            if committed {
                self.announce(&pending);
            }
        }
    }

    /// `SET SESSION CHARACTERISTICS` is the SQL layer's to read, and sets what the settings have too.
    fn follow_defaults(&mut self) -> Result<(), SqlError> {
        let in_block = self.in_block();
        let defaults = [
            ("default_transaction_read_only", on_off(self.sql.default_read_only())),
            ("default_transaction_isolation", self.sql.default_isolation()),
        ];
        for (name, value) in defaults {
            if self.settings.get(name) != Some(value) {
                self.settings.set(name, Some(value), false, in_block)?;
            }
        }
        Ok(())
    }

    /// Makes the SQL layer know the settings that it heeds.
    pub(super) fn apply_settings(&mut self) {
        self.sql.set_statement_timeout(self.settings.own_time("statement_timeout"));
        self.sql.set_native(self.settings.own_switch("native_execution"));
        self.sql.set_default_isolation(self.settings.isolation());
        self.sql.set_default_read_only(self.settings.is_on("default_transaction_read_only"));
        self.sql.set_own_settings(self.settings.own());
        self.look = self.settings.look();
        if self.session.login().is_some() {
            self.follow_role();
        }
        self.sql.set_zone(self.look.zone);
        self.sql.set_zone_name(self.settings.get("TimeZone"));
        self.sql.set_like(self.settings.like());
        self.sql.set_path(self.settings.path(&self.sql.identity().role));
    }

    pub(super) fn in_block(&self) -> bool {
        self.status() != TransactionStatus::Idle
    }

    fn run_utility(
        &mut self,
        context: &mut SqlThreadContext,
        utility: &Utility,
        values: &[Value],
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        self.pass_gate(context)?;
        if self.status() == TransactionStatus::Failed {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        if let Some(tag) = utility.writes() {
            self.sql.check_writable(tag)?;
        }
        match utility {
            Utility::Set { name, value, local } => self.set(name, value.as_deref(), *local),
            Utility::SetConstraints => Ok(done("SET CONSTRAINTS")),
            Utility::Show(name) => self.show(name.as_deref(), sink),
            Utility::Reset(name) => self.reset(name.as_deref()),
            Utility::Discard(what) => self.discard(*what),
            Utility::Prepare { name, types, text } => {
                if name.is_empty() {
                    return Err(SqlError::new("42601", "a prepared statement has a name"));
                }
                let prepared = self.prepare(context, text, types)?;
                self.statements.put(name, prepared)?;
                Ok(done("PREPARE"))
            }
            Utility::Execute { name, values } => self.execute_prepared(context, name, values, sink),
            Utility::Explain { head, name, values } => {
                let (prepared, given) = self.values_given(context, name, values)?;
                let text = explained(head, &prepared)?;
                self.run_chosen(context, &text, &given, prepared.chosen(), sink)
            }
            Utility::Deallocate(name) => self.deallocate(name.as_deref()),
            Utility::Declare { name, hold, forward_only, text } => {
                let (prepared, rows) = self.declared(context, name, text, *hold, values)?;
                let cursor = Portal::cursor(Arc::new(prepared), rows, *hold, *forward_only);
                self.portals.put(name, cursor, &self.allowance)?;
                Ok(done("DECLARE CURSOR"))
            }
            Utility::Fetch { name, direction, only_move } => {
                let mut portal = self.portals.take(name).map_err(|_| no_cursor(name))?;
                let fetched = self.fetch(context, &mut portal, *direction, (!only_move).then_some(sink));
                self.portals.give_back(name, portal);
                let tag = if *only_move { "MOVE" } else { "FETCH" };
                Ok(fetched?.map_or(Outcome::Waiting, |count| Outcome::Complete { tag, count: Some(count) }))
            }
            Utility::Close(name) => self.close(name.as_deref()),
            Utility::Listen(_) | Utility::Unlisten(_) | Utility::Notify { .. } => self.channel(utility),
            Utility::Copy(copy) => self.copy(context, copy, sink),
            Utility::Lock(lock) => self.lock(context, lock),
            Utility::Role(change) => self.change_roles(context, change, sink),
        }
    }

    /// Changes the roles, for good and at once: a transaction does not take it back.
    fn change_roles(
        &mut self,
        context: &mut SqlThreadContext,
        change: &RoleChange,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        let statement = &change.statement;
        if self.in_block() {
            let message = "roles cannot be changed in a transaction, because it could not be undone";
            return Err(SqlError::new("25001", message));
        }
        if let RoleStatement::Set { name: Some(name), value: Some(value), .. } = statement {
            super::settings::after(name, Some(value))?;
        }
        let Identity { user, role, .. } = self.sql.identity().clone();
        let giver = Giver { current: &role, session: &user };
        for drop in self.engine.access.drops(statement, giver, &self.engine.store)? {
            self.run_sql(context, &drop, &[], sink)?;
        }
        self.engine.access.change_roles(statement, giver, &self.engine.store)?;
        let tag = utility::tag_of_role(statement);
        self.note_done(&change.shown, tag);
        Ok(done(tag))
    }

    /// A cursor's next rows; `None`: the session waits for a lock. A portal that a client has bound and not yet run is
    /// a cursor too.
    fn fetch(
        &mut self,
        context: &mut SqlThreadContext,
        portal: &mut Portal,
        direction: Direction,
        sink: Option<&mut dyn ClientSink>,
    ) -> Result<Option<u64>, SqlError> {
        let fresh = matches!(portal.state, State::Fresh) && portal.prepared.columns().is_some();
        if fresh && self.keep_rows(context, portal)? == Outcome::Waiting {
            return Ok(None);
        }
        let count = match sink {
            Some(sink) => portal.fetch(direction, Some(sink)),
            None => portal.fetch(direction, None),
        };
        count.map(Some)
    }

    pub(super) fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<Outcome, SqlError> {
        let in_block = self.in_block();
        if local && !in_block {
            self.sql.warn("25P01", "SET LOCAL can only be used in transaction blocks");
            return Ok(done("SET"));
        }
        self.check_role(&self.sql.identity().user, name, value)?;
        if in_block {
            self.pending_held.try_add(SETTING_CHANGE_BYTES + self.settings.get(name).map_or(0, str::len))?;
        }
        self.settings.set(name, value, local, in_block)?;
        self.apply_settings();
        Ok(done("SET"))
    }

    /// Whether the session of a user may act by a role. Where no roles are kept there is the user's only.
    pub(super) fn check_role(&self, user: &str, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let Some(role) = value.filter(|_| is("role") || is("session_authorization")) else {
            return Ok(());
        };
        if role == user || is("role") && role == "none" {
            return Ok(());
        }
        let access = self.engine.access.current();
        let roles = access.roles.as_ref().filter(|roles| roles.get(role).is_some());
        let Some(roles) = roles else {
            return Err(SqlError::new("22023", format!("role \"{role}\" does not exist")));
        };
        if is("session_authorization") {
            let error = SqlError::new("42501", "permission denied to set session authorization");
            return Err(error.with_hint("SET ROLE lets a member of a role act by it"));
        }
        if roles.rights(user).superuser || roles.is_member(user, role) {
            return Ok(());
        }
        Err(SqlError::new("42501", format!("permission denied to set role \"{role}\"")))
    }

    /// Acts by the role that the settings name.
    fn follow_role(&mut self) {
        let role = self.settings.get("role").filter(|role| *role != "none");
        self.session.set_role(role, &self.engine.access);
        self.follow_rights();
    }

    /// Lets statements to come have the session's rights.
    fn follow_rights(&mut self) {
        let (Holder { rights, roles }, known) = (self.session.holder(), self.sql.identity());
        let role = self.session.role().unwrap_or(&known.user);
        if known.rights != rights || known.roles != roles || known.role != role {
            self.sql.set_identity(Identity { rights, roles, role: role.to_owned(), ..known.clone() });
        }
    }

    fn reset(&mut self, name: Option<&str>) -> Result<Outcome, SqlError> {
        let in_block = self.in_block();
        if in_block {
            let before = name.map_or(SETTINGS_BYTES_MAX, |name| self.settings.get(name).map_or(0, str::len));
            self.pending_held.try_add(SETTING_CHANGE_BYTES + before)?;
        }
        match name {
            Some(name) => self.settings.set(name, None, false, in_block)?,
            None => self.settings.reset_all(in_block),
        }
        self.apply_settings();
        Ok(done("RESET"))
    }

    fn show(&mut self, name: Option<&str>, sink: &mut dyn RowSink) -> Result<Outcome, SqlError> {
        let columns = show_columns(name);
        sink.columns(&columns);
        let Some(name) = name else { return self.show_all(sink) };
        let own = self.engine.activity.settings();
        let daemons = own.into_iter().find(|setting| setting.name.eq_ignore_ascii_case(name));
        if daemons.as_ref().is_some_and(|own| own.private) && !self.session.holder().rights.settings {
            return Err(sql::private_setting(name));
        }
        let value = self
            .current(name)
            .or_else(|| self.settings.get(name).map(str::to_owned))
            .or_else(|| daemons.map(|own| own.setting))
            .or_else(|| sql::preset_setting(name).map(str::to_owned))
            .ok_or_else(|| settings::unknown(name))?;
        sink.row(&[ValueRef::Text(&value)])?;
        Ok(done("SHOW"))
    }

    /// The session's settings and the daemon's by their names; where both have one, the session's value holds.
    fn show_all(&self, sink: &mut dyn RowSink) -> Result<Outcome, SqlError> {
        let own = self.engine.activity.settings();
        let all = self.session.holder().rights.settings;
        let own = own.into_iter().filter(|own| all || !own.private);
        let daemons = own.map(|own| (own.name, own.setting, own.description));
        let mut rows: BTreeMap<String, [String; 3]> =
            daemons.map(|(name, value, about)| (name.to_lowercase(), [name, value, about])).collect();
        for (name, value) in self.settings.all() {
            let value = self.current(name).unwrap_or_else(|| value.to_owned());
            let row = rows.entry(name.to_lowercase()).or_default();
            (row[0], row[1]) = (name.to_owned(), value);
        }
        for row in rows.values() {
            sink.row(&row.each_ref().map(|text| ValueRef::Text(text)))?;
        }
        Ok(done("SHOW"))
    }

    /// Settings whose value is the state of the session.
    fn current(&self, name: &str) -> Option<String> {
        match name {
            "transaction_isolation" => Some(self.sql.isolation().to_owned()),
            "transaction_read_only" => Some(on_off(self.sql.read_only()).to_owned()),
            "native_execution" => Some(on_off(self.sql.native(self.engine.native_execution())).to_owned()),
            "default_transaction_isolation" => Some(self.sql.default_isolation().to_owned()),
            "default_transaction_read_only" => Some(on_off(self.sql.default_read_only()).to_owned()),
            _ => None,
        }
    }

    fn discard(&mut self, what: Discard) -> Result<Outcome, SqlError> {
        if what == Discard::All {
            if self.in_block() {
                return Err(SqlError::new("25001", "DISCARD ALL cannot run inside a transaction block"));
            }
            self.portals.clear();
            self.statements.clear();
            self.settings.reset_all(false);
            self.apply_settings();
            self.announce(&Utility::Unlisten(None));
            self.engine.locks.unlock_all(self.sql.identity().pid);
        }
        Ok(done(match what {
            Discard::All => "DISCARD ALL",
            Discard::Plans => "DISCARD PLANS",
            Discard::Sequences => "DISCARD SEQUENCES",
            Discard::Temp => "DISCARD TEMP",
        }))
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<Outcome, SqlError> {
        match name {
            None => {
                self.statements.clear();
                Ok(done("DEALLOCATE ALL"))
            }
            Some(name) if self.statements.remove(name) => Ok(done("DEALLOCATE")),
            Some(name) => Err(prepared::unknown(name)),
        }
    }

    /// The rows of a cursor, with what its query is.
    fn declared(
        &mut self,
        context: &mut SqlThreadContext,
        name: &str,
        text: &str,
        hold: bool,
        values: &[Value],
    ) -> Result<(Prepared, Rows), SqlError> {
        if !hold && !self.in_block() {
            return Err(SqlError::new("25P01", "DECLARE CURSOR can only be used in transaction blocks")
                .with_hint("declare it WITH HOLD, or use BEGIN"));
        }
        check_name(name)?;
        let prepared = self.prepare(context, text, &[])?;
        if prepared.columns().is_none() || prepared.tag() != "SELECT" {
            return Err(SqlError::new("42601", "a cursor is declared for a query"));
        }
        let mut rows = self.kept();
        self.run_at_once(context, prepared.text(), values, &mut rows)?;
        rows.0.complete();
        Ok((prepared, rows.0))
    }

    fn close(&mut self, name: Option<&str>) -> Result<Outcome, SqlError> {
        match name {
            None => {
                self.portals.clear();
                Ok(done("CLOSE CURSOR ALL"))
            }
            Some(name) if self.portals.remove(name) => Ok(done("CLOSE CURSOR")),
            Some(name) => Err(no_cursor(name)),
        }
    }

    /// `LISTEN`, `UNLISTEN`, `NOTIFY`: in a transaction when it commits.
    pub(super) fn channel(&mut self, utility: &Utility) -> Result<Outcome, SqlError> {
        let tag = match utility {
            Utility::Listen(channel) => {
                check_name(channel)?;
                self.check_announced(channel, false)?;
                if self.inbox.is_none() {
                    return Err(SqlError::new("0A000", "this connection cannot LISTEN"));
                }
                self.inbox.as_ref().map_or(Ok(()), |inbox| inbox.check_listen(channel))?;
                "LISTEN"
            }
            Utility::Notify { channel, payload } => {
                check_notification(channel, payload)?;
                "NOTIFY"
            }
            _ => "UNLISTEN",
        };
        if self.in_block() {
            if self.pending.len() >= crate::limits::PENDING_MAX {
                return Err(SqlError::new("54000", "too many notifications in one transaction"));
            }
            let bytes = match utility {
                Utility::Notify { channel, payload } => channel.len() + payload.len(),
                Utility::Listen(channel) => channel.len() + LISTENED_BYTES,
                _ => 0,
            };
            self.pending_held.try_add(bytes + NOTIFICATION_BYTES)?;
            self.pending.push(utility.clone());
        } else {
            self.announce(utility);
        }
        Ok(done(tag))
    }

    fn announce(&mut self, utility: &Utility) {
        self.listening |= matches!(utility, Utility::Listen(_));
        let channels = &self.engine.channels;
        match (utility, &self.inbox) {
            (Utility::Notify { channel, payload }, _) => {
                channels.notify(self.sql.identity().pid, channel, payload);
            }
            (Utility::Listen(channel), Some(inbox)) => channels.listen(channel, inbox),
            (Utility::Unlisten(channel), Some(inbox)) => channels.unlisten(channel.as_deref(), inbox),
            _ => {}
        }
    }

    fn copy(
        &mut self,
        context: &mut SqlThreadContext,
        copy: &CopyStatement,
        sink: &mut dyn ClientSink,
    ) -> Result<Outcome, SqlError> {
        let query = copy.what.query();
        if copy.direction == CopyDirection::Out {
            sink.begin_copy(&copy.options, &self.cancel);
            let outcome = self.run_at_once(context, &query, &[], sink)?;
            let Outcome::Complete { count, .. } = outcome else { return Ok(done("COPY")) };
            return Ok(Outcome::Complete { tag: "COPY", count });
        }
        let What::Table(table, _) = &copy.what else { return Ok(done("COPY")) };
        self.pass_gate(context)?;
        let columns = self.prepare(context, &query, &[])?;
        let columns = columns.columns().unwrap_or_default();
        let names: Vec<&str> = columns.iter().map(|column| column.column.name.as_str()).collect();
        let types = columns.iter().map(|column| column.column.ty).collect();
        let held = self.allowance.account();
        let began_us = self.engine.store.clock().unix_us();
        let begun = CopyIn::new(table, &names, (types, began_us), copy.options.clone(), held);
        // Each batch of rows is checked again.
        context.executor()?.check_allowed(&self.sql, &begun.one_row())?;
        self.copy = Some(Box::new(begun));
        Ok(Outcome::CopyIn)
    }

    /// The types of the columns that rows are to come for, and how the data looks.
    pub fn copy_columns(&self) -> Option<(&[SqlType], &CopyOptions)> {
        self.copy.as_ref().map(|copy| (&copy.types[..], &copy.options))
    }

    /// Takes a row of a `COPY FROM STDIN`, which ends in this line of the data; every so many are stored. What
    /// is no value comes as its error, with its text for the context.
    pub fn copy_row(
        &mut self,
        context: &mut SqlThreadContext,
        line: u64,
        values: impl Iterator<Item = Result<Value, SqlError>>,
    ) -> Result<(), SqlError> {
        let Some(copy) = &mut self.copy else { return Ok(()) };
        for (column, value) in values.enumerate() {
            copy.values.push(value.map_err(|error| {
                let place = copy.place(line, Some(column));
                let text = error.context.as_deref().map_or("", String::as_str);
                SqlError { context: Some(Box::new(format!("{place}: \"{text}\""))), ..error }
            })?);
        }
        copy.lines.push(line);
        let row = copy.values.len().saturating_sub(copy.types.len());
        copy.held.try_add(bytes_of(&copy.values[row..]))?;
        if copy.values.len() >= copy.rows_per_batch() * copy.types.len() {
            let rows = copy.rows_per_batch();
            return self.store_rows(context, rows);
        }
        Ok(())
    }

    /// A line of the data of the `COPY FROM STDIN` under way, as errors name it.
    pub fn copy_place(&self, line: u64) -> Option<Box<str>> {
        self.copy.as_ref().map(|copy| copy.place(line, None).into())
    }

    /// The last row has come; returns how many there were.
    pub fn copy_end(&mut self, context: &mut SqlThreadContext) -> Result<u64, SqlError> {
        let waiting = self.copy.as_ref().map_or(0, |copy| copy.values.len() / copy.types.len().max(1));
        if waiting > 0 {
            self.store_rows(context, waiting)?;
        }
        Ok(self.copy.take().map_or(0, |copy| copy.stored))
    }

    /// Gives up a `COPY FROM STDIN`; returns how many rows are stored nevertheless: outside a transaction those of the
    /// whole batches before.
    pub fn copy_abort(&mut self) -> u64 {
        let stored = self.copy.take().map_or(0, |copy| copy.stored);
        if self.in_block() { 0 } else { stored }
    }

    fn store_rows(&mut self, context: &mut SqlThreadContext, rows: usize) -> Result<(), SqlError> {
        let Some(mut copy) = self.copy.take() else { return Ok(()) };
        self.sql.set_began_us(Some(copy.began_us));
        let result = self.run_at_once(context, &copy.statement(rows), &copy.values, &mut NoRows);
        self.sql.set_began_us(None);
        let place = result.as_ref().err().and_then(|error| copy.line_of(error.row));
        let context = place.map(|line| copy.place(line, None).into());
        copy.values.clear();
        copy.lines.clear();
        copy.held.set(0);
        if result.is_ok() {
            copy.stored += rows as u64;
        }
        self.copy = Some(copy);
        result.map(|_| ()).map_err(|error| SqlError { context, ..error })
    }

    /// The columns of the rows that such a statement gives, if it gives any.
    pub(super) fn columns_of(&self, utility: &Utility) -> Result<Option<Vec<ColumnDescription>>, SqlError> {
        Ok(match utility {
            Utility::Show(name) => Some(show_columns(name.as_deref())),
            Utility::Fetch { name, only_move: false, .. } => {
                // Its cursor may be declared later.
                self.portals.get(name).ok().and_then(|cursor| cursor.prepared().owned_columns())
            }
            Utility::Execute { name, .. } => self.statements.get(name)?.owned_columns(),
            _ => None,
        })
    }
}

fn show_columns(name: Option<&str>) -> Vec<ColumnDescription> {
    let column = |name: &str| ColumnDescription {
        name: name.into(),
        label: name.into(),
        ty: SqlType::Text,
        table: None,
        modifier: -1,
    };
    match name {
        Some(name) => vec![column(Settings::shown_name(name).unwrap_or(name))],
        None => vec![column("name"), column("setting"), column("description")],
    }
}

fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

/// The outcome as it is reported to clients.
#[inline]
fn outcome(done: Done) -> Outcome {
    if done.tag.is_empty() {
        return Outcome::Empty;
    }
    let counted = matches!(done.kind, DoneKind::Rows) && !matches!(done.tag, "EXPLAIN" | "CALL")
        || matches!(done.tag, "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "MERGE");
    Outcome::Complete { tag: done.tag, count: counted.then_some(done.affected) }
}
