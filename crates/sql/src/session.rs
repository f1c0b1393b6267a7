//! What the SQL layer keeps for a client between its statements. No SQLite in it: any executor can serve any session.

use std::sync::Arc;
use std::time::Duration;

use dialect::Chosen;
use pgcatalog::Effect;
use pgcatalog::function::like::LikeStyle;
use pgcatalog::sequence::{self, Numbers};
use pgcatalog::session::{Asker, Identity, OwnSettings};
use store::Catalog;
use store::definition::RoutineDef;
use store::scalar::zone::Zone;
use store::value::Value;

use crate::error::{SqlError, state};
use crate::facts::Facts;
use crate::held::Allowance;
use crate::limits::NOTICES_MAX;
use crate::table::Cancel;
use crate::told::{Teller, Told, ToldRows};
use crate::transaction::Block;

/// Where a session stands between two statements, as PostgreSQL's `ReadyForQuery` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Each statement is a transaction of its own.
    #[default]
    Idle,
    /// `BEGIN` was given.
    InBlock,
    /// A statement of the block failed: all but `ROLLBACK` and `ROLLBACK TO` are refused.
    Failed,
}

/// Something that a client should know beside the answer of a statement that worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `WARNING` or `NOTICE`.
    pub severity: &'static str,
    /// The SQLSTATE.
    pub state: &'static str,
    /// What happened.
    pub message: String,
    /// What to do about it, where there is something.
    pub hint: Option<String>,
}

/// The isolation that statements have, whatever level was asked for: each sees what was committed when it began, and
/// what its transaction wrote.
pub(crate) const ISOLATION: &str = "read committed";

/// As whom a session's statements run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Actor {
    pub(crate) identity: Arc<Identity>,
    /// See [`Session::path`].
    pub(crate) path: Option<Arc<[String]>>,
    /// The same.
    pub(crate) own_path: Option<Arc<[String]>>,
    /// The function whose body it is, where that does not run as its caller.
    pub(crate) body: Option<Arc<RoutineDef>>,
}

/// One client's session: its open transaction, and what its statements have to say beside their answers.
#[derive(Debug, Default)]
pub struct Session {
    /// The transaction, from `BEGIN` to its end.
    pub(crate) block: Option<Box<Block>>,
    /// Whether transactions to come are `READ ONLY`.
    default_read_only: bool,
    /// The level that transactions to come are asked to have.
    default_isolation: Option<&'static str>,
    /// Nothing outlives a statement: it has no session of its own.
    single: bool,
    /// In the place of the executor's limit.
    statement_timeout: Option<Duration>,
    /// The same.
    native: Option<bool>,
    /// When the statement began of which the next one is a piece.
    began_us: Option<u64>,
    /// Where it is; none is UTC.
    zone: Option<Zone>,
    /// What `LIKE` means to it.
    like: LikeStyle,
    /// Who speaks, and where it looks for names without a schema: by `path`, else, where there is a schema that is
    /// called like the role, by `own_path`.
    actor: Actor,
    /// The numbers of sequences that it was given.
    numbers: Arc<Numbers>,
    notices: Vec<Notice>,
    /// What its statements wrote.
    pub(crate) facts: Facts,
    /// The settings of the session, as its owner reports them.
    settings: Arc<OwnSettings>,
    effects: Vec<Effect>,
    /// What other caches are to hear now.
    told: Vec<Told>,
    /// Who tells them before it takes effect, where rows travel.
    teller: Option<Arc<dyn Teller>>,
    /// What the time zone is called.
    zone_name: Option<Box<str>>,
    /// It applies what another cache has told, and tells nobody.
    silent: bool,
    /// The cancel flag while a statement is described: nothing runs then that has a flag of its own.
    cancel: Cancel,
    /// What it may hold; made for it when it begins a transaction and nobody gave it one.
    allowance: Option<Arc<Allowance>>,
}

impl Session {
    /// A session without a transaction.
    pub fn new() -> Self {
        Self::default()
    }

    /// A session that holds memory of this allowance.
    pub fn within(allowance: Arc<Allowance>) -> Self {
        Self { allowance: Some(allowance), ..Self::default() }
    }

    /// Says what stops the description of a statement, as it stops the statement.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = cancel;
    }

    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub(crate) fn allowance(&mut self) -> &Arc<Allowance> {
        self.allowance.get_or_insert_with(Allowance::alone)
    }

    /// Says that the next statements are pieces of one that began so many microseconds after 1970, and so have its
    /// moment; none: each has its own.
    pub fn set_began_us(&mut self, us: Option<u64>) {
        self.began_us = us;
    }

    pub(crate) fn began_us(&self) -> Option<u64> {
        self.began_us
    }

    /// The time zone that moments without an offset are of.
    pub(crate) fn zone(&self) -> Option<Zone> {
        self.zone
    }

    /// Changes that; none is UTC.
    pub fn set_zone(&mut self, zone: Option<Zone>) {
        self.zone = zone;
    }

    /// What `LIKE` means to it.
    pub(crate) fn like(&self) -> LikeStyle {
        self.like
    }

    /// Changes that.
    pub fn set_like(&mut self, style: LikeStyle) {
        self.like = style;
    }

    /// Where it looks for names without a schema; none: in `public`.
    pub(crate) fn path(&self, catalog: &Catalog) -> Option<&Arc<[String]>> {
        let actor = &self.actor;
        let role = || catalog.namespace(&actor.identity.role).and(actor.own_path.as_ref());
        actor.path.as_ref().or_else(|| if catalog.namespaces().is_empty() { None } else { role() })
    }

    /// Changes that; none: in the schema that is called like the role, if there is one, and in `public`. An empty list
    /// finds nothing.
    pub fn set_path(&mut self, path: Option<Vec<String>>) {
        let nowhere = |path: Vec<String>| if path.is_empty() { vec![String::new()] } else { path };
        self.actor.path = path.map(|path| nowhere(path).into());
    }

    /// Who speaks.
    pub fn identity(&self) -> &Identity {
        &self.actor.identity
    }

    /// As whom its statements run.
    pub(crate) fn actor(&self) -> Actor {
        self.actor.clone()
    }

    /// Lets them run as somebody else. Returns as whom they ran.
    pub(crate) fn act_as(&mut self, actor: Actor) -> Actor {
        std::mem::replace(&mut self.actor, actor)
    }

    /// Says what its time zone is called.
    pub fn set_zone_name(&mut self, name: Option<&str>) {
        self.zone_name = name.map(Into::into);
    }

    /// Says who tells other caches of rows that travel before they are changed.
    pub fn set_teller(&mut self, teller: Arc<dyn Teller>) {
        self.teller = Some(teller);
    }

    /// Has it tell other caches nothing: what it does they have told.
    pub fn silence(&mut self) {
        self.silent = true;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Takes what other caches are to hear of what took effect.
    #[inline]
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// Other caches hear of this when it takes effect: now, or by `COMMIT`, which may compute it again.
    pub(crate) fn tell(&mut self, told: impl Iterator<Item = Told>) {
        if self.silent {
            return;
        }
        let (zone, like) = (self.zone, self.like);
        for told in told {
            let told = Told { zone, like, ..told };
            match &mut self.block {
                Some(block) if block.journal.again => {}
                Some(block) => block.to_tell.push(told),
                None if told.table.replicates_rows() => {}
                None => self.told.push(told),
            }
        }
    }

    /// A statement is about to change these rows. Where they travel, other caches hear which before they hear what they
    /// are now; those of a transaction by `COMMIT`. What each cache would understand otherwise is refused: some would
    /// keep rows that the others have changed. Says whether [`Self::end_telling`] is to be called.
    pub(crate) fn begin_telling(&self, told: impl Iterator<Item = Told>) -> Result<bool, SqlError> {
        if self.silent {
            return Ok(false);
        }
        let (zone, like) = (self.zone, self.like);
        let told = told.filter(|told| told.table.replicates_rows()).map(|told| Told { zone, like, ..told });
        let told: Vec<Told> = told.collect();
        if let Some(told) = told.iter().find(|told| matches!(told.what, ToldRows::All)) {
            return Err(unclear(told.table.name()));
        }
        Ok(self.block.is_none() && self.tell_first(told))
    }

    /// The transaction is about to take effect.
    pub(crate) fn begin_telling_block(&mut self) -> bool {
        let told = self.block.as_mut().map(|block| block.to_tell.take_first());
        told.is_some_and(|told| self.tell_first(told))
    }

    /// Says whether there is anything to tell.
    pub(crate) fn tell_first(&self, told: Vec<Told>) -> bool {
        let teller = self.teller.as_ref().filter(|_| !told.is_empty());
        if let Some(teller) = teller {
            teller.tell_first(told, self.zone_name.as_deref());
        }
        teller.is_some()
    }

    /// What was about to change has changed, or not.
    pub(crate) fn end_telling(&self, changed: bool) {
        if let Some(teller) = &self.teller {
            teller.end(changed);
        }
    }

    /// Other caches hear of this, which took effect.
    pub(crate) fn tell_all(&mut self, told: Vec<Told>) {
        self.told.extend(told);
    }

    /// Says to its transaction which statement has just worked.
    pub(crate) fn name_step(&mut self, sql: &str, values: &[Value], types: Chosen<'_>) {
        if let Some(block) = &mut self.block {
            block.name_step(sql, (values, types), self.actor.body.as_ref());
        }
    }

    /// Says who speaks, once it is known.
    pub fn set_identity(&mut self, identity: Identity) {
        self.actor.own_path = Some([identity.role.clone(), "public".to_owned()].into());
        self.actor.identity = Arc::new(identity);
    }

    /// Says what the session set, for `current_setting()`.
    pub fn set_own_settings(&mut self, settings: Arc<OwnSettings>) {
        self.settings = settings;
    }

    /// It, as the catalogue shows it.
    pub(crate) fn asker(&self) -> Asker<'_> {
        let (identity, settings, numbers) = (&self.actor.identity, &self.settings, &self.numbers);
        Asker { identity, settings, numbers, lasting: !self.single }
    }

    /// Takes note of the numbers that a statement was given, whether it worked or not.
    #[cold]
    pub(crate) fn note_numbers(&mut self, given: Numbers) {
        let numbers = Arc::make_mut(&mut self.numbers);
        for (numbered, number) in given {
            sequence::put(numbers, numbered, number);
        }
    }

    /// Takes what the last statement asked of its session, if it worked.
    #[inline]
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn set_effects(&mut self, effects: Vec<Effect>) {
        self.effects = effects;
    }

    /// A session for a protocol whose clients share connections and see no status: `BEGIN` is refused there.
    pub fn for_single_statements() -> Self {
        Self { single: true, ..Self::default() }
    }

    /// Where it stands.
    pub fn status(&self) -> TransactionStatus {
        match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.failed => TransactionStatus::Failed,
            Some(_) => TransactionStatus::InBlock,
        }
    }

    /// How many savepoints the open transaction has.
    pub fn savepoints(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.savepoints())
    }

    /// Takes what the statements since the last call had to say.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// How many notices there are.
    pub(crate) fn notices(&self) -> usize {
        self.notices.len()
    }

    /// Forgets those behind the first so many: they were given before.
    pub(crate) fn forget_notices(&mut self, first: usize) {
        self.notices.truncate(first);
    }

    /// The open transaction is made of statements that were sent together.
    pub fn set_together(&mut self) {
        if let Some(block) = &mut self.block {
            block.together = true;
        }
    }

    /// The level of isolation that was asked for. Statements run at [`ISOLATION`] all the same, and a notice said so.
    pub fn isolation(&self) -> &'static str {
        let asked = self.block.as_ref().and_then(|block| block.isolation);
        asked.or(self.default_isolation).unwrap_or(ISOLATION)
    }

    /// The level of transactions that ask for none (`default_transaction_isolation`).
    pub fn default_isolation(&self) -> &'static str {
        self.default_isolation.unwrap_or(ISOLATION)
    }

    /// Changes that.
    pub fn set_default_isolation(&mut self, level: &'static str) {
        self.default_isolation = Some(level);
    }

    /// Whether the transaction, or a statement outside of one, may only read.
    pub fn read_only(&self) -> bool {
        self.block.as_ref().map_or(self.default_read_only, |block| block.read_only)
    }

    /// Whether transactions to come may only read (`default_transaction_read_only`).
    pub fn default_read_only(&self) -> bool {
        self.default_read_only
    }

    /// Changes that.
    pub fn set_default_read_only(&mut self, read_only: bool) {
        self.default_read_only = read_only;
    }

    /// Stops statements after this time in the place of the executor's limit, which `None` gives back. As in
    /// PostgreSQL, zero is no limit.
    pub fn set_statement_timeout(&mut self, timeout: Option<Duration>) {
        self.statement_timeout = timeout;
    }

    /// When a statement is stopped, where the executor's limit is this.
    pub fn statement_timeout(&self, limit: Option<Duration>) -> Option<Duration> {
        self.statement_timeout.or(limit).filter(|timeout| !timeout.is_zero())
    }

    /// Says whether statements that need no SQLite are run without it, in the place of the executor's own choice, which
    /// `None` gives back.
    pub fn set_native(&mut self, native: Option<bool>) {
        self.native = native;
    }

    /// Whether they are, where the executor's choice is this.
    pub fn native(&self, choice: bool) -> bool {
        self.native.unwrap_or(choice)
    }

    /// Drops the transaction, if there is one; called for a client that is gone or slept too long.
    pub fn roll_back(&mut self) {
        self.block = None;
    }

    /// Makes the transaction refuse everything but its end.
    pub fn fail(&mut self) {
        if let Some(block) = &mut self.block {
            block.failed = true;
        }
    }

    pub(crate) fn is_single(&self) -> bool {
        self.single
    }

    /// Refuses a statement that writes where only reading is allowed. `tag` names it.
    pub fn check_writable(&self, tag: &str) -> Result<(), SqlError> {
        if self.read_only() {
            let message = format!("cannot execute {tag} in a read-only transaction");
            return Err(SqlError::new(state::READ_ONLY, message));
        }
        Ok(())
    }

    /// Something went otherwise than a client may think.
    pub fn warn(&mut self, state: &'static str, message: impl Into<String>) {
        self.say("WARNING", state, message.into(), None);
    }

    /// Something that is worth knowing.
    pub fn note(&mut self, message: impl Into<String>, hint: &str) {
        self.say("NOTICE", state::SUCCESS, message.into(), Some(hint.to_owned()));
    }

    /// The same of a kind that has an SQLSTATE of its own.
    pub(crate) fn notice(&mut self, state: &'static str, message: impl Into<String>) {
        self.say("NOTICE", state, message.into(), None);
    }

    fn say(&mut self, severity: &'static str, state: &'static str, message: String, hint: Option<String>) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(Notice { severity, state, message, hint });
        }
    }
}

/// A condition that chooses other rows in another cache, of a table whose rows travel.
fn unclear(table: &str) -> SqlError {
    let message = format!(
        "the other caches cannot be told which rows of table \"{table}\" this statement changes (replicated = 'rows')"
    );
    SqlError::new(state::NOT_SUPPORTED, message).with_hint(
        "write one condition of the table's own columns, constants and parameters; or SELECT the keys first, and change \
         the rows by them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_may_move_between_threads() {
        fn sent<T: Send>(_: T) {}
        sent(Session::new());
    }

    #[test]
    fn notices_are_bounded() {
        let mut session = Session::new();
        for _ in 0..=NOTICES_MAX {
            session.warn("25P01", "again");
        }
        assert_eq!(session.take_notices().len(), NOTICES_MAX);
        assert_eq!(session.take_notices(), []);
    }
}
