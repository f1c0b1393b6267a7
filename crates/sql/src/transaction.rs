//! Transactions of several statements: `BEGIN` to `COMMIT`, and what lies between.
//!
//! A transaction is a list ([`WriteSet`]). Its statements see the list laid over the store, nobody else sees anything
//! of it, and it holds no lock: `COMMIT` is one commit of the whole list, which the store checks and applies or
//! refuses.

use store::{CHOSEN_ROWS_MAX, Catalog, Moved, Store, Table, Write, WriteError, WriteSet};

use crate::core::Core;
use crate::define::Undoing;
use crate::done::Done;
use crate::error::{SqlError, state};
use crate::held::Held;
use crate::journal::{Journal, Reach, bytes_of};
use crate::limits::{BYTES_PER_TRANSACTION_MAX, ROWS_PER_TRANSACTION_MAX};
use crate::session::{ISOLATION, Session, TransactionStatus};
use crate::text::transaction::{Control, Modes, misplaced};
use crate::told::ToTell;

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) own: WriteSet,
    /// What `COMMIT` computes again.
    pub(crate) journal: Journal,
    /// How `ROLLBACK` takes its definitions back.
    pub(crate) undoing: Undoing,
    /// The client did not begin it: it sent several statements together.
    pub(crate) together: bool,
    /// Set while a statement has the list, too: whatever ends it in an unforeseen way ends the transaction.
    pub(crate) failed: bool,
    pub(crate) read_only: bool,
    /// The level that was asked for.
    pub(crate) isolation: Option<&'static str>,
    /// A statement was run: what the transaction may do is settled.
    used: bool,
    /// The definitions that the list was made under.
    generation: u64,
    /// What the list takes of the session's allowance.
    held: Held,
    /// The views that it refreshed, which did not see what it wrote.
    refreshed: Vec<String>,
    /// What other caches hear when it commits.
    pub(crate) to_tell: ToTell,
}

impl Block {
    fn new(read_only: bool, isolation: Option<&'static str>, held: Held) -> Self {
        let (own, journal) = (WriteSet::default(), Journal::default());
        let (undoing, together) = (Undoing::default(), false);
        let (failed, used, generation) = (false, false, 0);
        let (refreshed, to_tell) = (Vec::new(), ToTell::default());
        Self {
            own,
            journal,
            undoing,
            together,
            failed,
            read_only,
            isolation,
            used,
            generation,
            held,
            refreshed,
            to_tell,
        }
    }

    /// Takes note of a view that was refreshed; it is refreshed again when this transaction has written.
    pub(crate) fn refreshed(&mut self, view: &str) {
        if !self.refreshed.iter().any(|known| known == view) {
            self.refreshed.push(view.to_owned());
        }
    }

    /// Counts what the list takes now.
    pub(crate) fn count(&mut self) {
        self.held.set(self.bytes());
    }

    /// The list for a statement, by the definitions of this moment. Until it is taken back the transaction counts as
    /// failed.
    pub(crate) fn lend(&mut self, catalog: &Catalog) -> Result<WriteSet, SqlError> {
        if self.generation != catalog.generation {
            self.own.rebase(catalog).map_err(moved)?;
            self.generation = catalog.generation;
        }
        self.used = true;
        self.failed = true;
        Ok(std::mem::take(&mut self.own))
    }

    /// Takes the list back, with what the statement wrote if it `worked`. An error leaves the list as it was before the
    /// statement.
    pub(crate) fn take_back(
        &mut self,
        own: WriteSet,
        writes: Vec<Write>,
        reach: Reach,
        worked: bool,
    ) -> Result<(), SqlError> {
        self.own = own;
        let read = self.own.take_read();
        self.check_room(&writes)?;
        self.lay(writes, reach, read, worked);
        self.count();
        self.failed = false;
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.own.bytes() + self.journal.bytes() + self.undoing.bytes()
    }

    /// How many savepoints it has.
    pub(crate) fn savepoints(&self) -> usize {
        self.own.savepoints()
    }

    fn check_room(&self, writes: &[Write]) -> Result<(), SqlError> {
        let more: usize = writes.iter().map(bytes_of).sum();
        if self.own.changes() + writes.len() > ROWS_PER_TRANSACTION_MAX {
            let message = format!("the transaction writes more than {ROWS_PER_TRANSACTION_MAX} rows");
            return Err(SqlError::new(state::TOO_LARGE, message).with_hint("commit in between"));
        }
        if self.bytes() + more > BYTES_PER_TRANSACTION_MAX {
            let message = format!("the transaction holds more than {BYTES_PER_TRANSACTION_MAX} bytes");
            return Err(SqlError::new(state::TOO_LARGE, message).with_hint("commit in between"));
        }
        self.held.check_room(more)
    }

    /// Forgets what was written to a table: it was emptied, which no `ROLLBACK` takes back.
    pub(crate) fn forget(&mut self, table: &Table) {
        self.own.forget(table);
        self.forget_steps(|id| id == table.id());
        self.count();
    }

    /// Forgets what was written to tables that a statement of this transaction dropped.
    pub(crate) fn forget_dropped(&mut self, catalog: &Catalog) {
        self.own.forget_dropped(catalog);
        self.forget_steps(|id| catalog.tables().all(|table| table.id() != id));
        self.count();
    }
}

pub(crate) fn moved(why: Moved) -> SqlError {
    match why {
        Moved::Dropped(table) => {
            let message = format!("table \"{table}\", which the transaction wrote, was dropped meanwhile");
            SqlError::new(state::UNKNOWN_TABLE, message)
        }
        Moved::Redefined(table) => {
            let message = format!("table \"{table}\", which the transaction wrote, has other columns now");
            SqlError::new(state::LOST, message).with_hint("run the transaction again")
        }
    }
}

/// Why a transaction was not committed.
pub(crate) fn refused(error: WriteError) -> SqlError {
    match error {
        WriteError::Lost(rows) => {
            let message = format!(
                "could not serialize access: other clients changed {} of the rows that the transaction wrote",
                rows.len()
            );
            SqlError::new(state::LOST, message).with_hint("run the transaction again")
        }
        other => other.into(),
    }
}

/// Carries out a statement about the transaction itself.
pub(crate) fn run(store: &Store, session: &mut Session, control: Control) -> Result<Done, SqlError> {
    if session.is_single() {
        let message = "each statement is a transaction of its own in memcached's protocol";
        return Err(SqlError::new(state::NOT_SUPPORTED, message)
            .with_hint("use a PostgreSQL client for transactions of several statements"));
    }
    let tag = match control {
        Control::Begin { modes, start } => {
            begin(session, modes)?;
            if start { "START TRANSACTION" } else { "BEGIN" }
        }
        Control::Commit { chain } => commit(store, session, chain)?,
        Control::Rollback { chain } => {
            let mut ended = end_block(session, "ROLLBACK", chain)?;
            if let Some(block) = &mut ended {
                let failed = block.undoing.roll_back();
                say_undone(session, &failed);
            }
            begin_next(session, if chain { ended } else { None });
            "ROLLBACK"
        }
        Control::Savepoint(name) => {
            own_block(session, "SAVEPOINT")?;
            session.allowance().check_room(name.len())?;
            let block = own_block(session, "SAVEPOINT")?;
            block.journal.savepoint(&name);
            block.undoing.savepoint(&name);
            block.to_tell.savepoint(&name);
            block.own.savepoint(name);
            "SAVEPOINT"
        }
        Control::Release(name) => {
            let block = own_block(session, "RELEASE SAVEPOINT")?;
            found_savepoint(block.own.release(&name), &name)?;
            block.journal.release(&name);
            block.undoing.release(&name);
            block.to_tell.release(&name);
            "RELEASE"
        }
        Control::RollbackTo(name) => {
            roll_back_to(session, &name)?;
            "ROLLBACK"
        }
        Control::SetTransaction(modes) => {
            set_transaction(session, modes)?;
            "SET"
        }
        Control::SetDefaults(modes) => {
            say_isolation(session, modes);
            if let Some(level) = modes.isolation {
                session.set_default_isolation(level);
            }
            session.set_default_read_only(modes.read_only.unwrap_or_else(|| session.default_read_only()));
            "SET"
        }
    };
    if let Some(block) = &mut session.block {
        block.count();
    }
    Ok(Done::of_nobody(tag))
}

fn begin(session: &mut Session, modes: Modes) -> Result<(), SqlError> {
    if session.block.is_some() {
        session.warn(state::ACTIVE_TRANSACTION, "there is already a transaction in progress");
        return set_transaction(session, modes);
    }
    say_isolation(session, modes);
    let read_only = modes.read_only.unwrap_or_else(|| session.default_read_only());
    session.block = Some(Box::new(Block::new(read_only, modes.isolation, session.allowance().account())));
    Ok(())
}

/// The statements of a function or procedure that is called alone are a transaction.
pub(crate) fn begin_call(session: &mut Session) {
    let read_only = session.default_read_only();
    session.block = Some(Box::new(Block::new(read_only, None, session.allowance().account())));
}

/// Its end.
pub(crate) fn commit_call(store: &Store, session: &mut Session) -> Result<(), SqlError> {
    commit(store, session, false).map(drop)
}

/// A level is accepted, and what it is answered with is true.
fn say_isolation(session: &mut Session, modes: Modes) {
    let asked = modes.isolation.filter(|asked| *asked != ISOLATION && *asked != "read uncommitted");
    if let Some(asked) = asked {
        session.note(
            format!("isolation level {asked} is not available; statements run at {ISOLATION}"),
            "COMMIT fails (40001) if another client changed a row that the transaction wrote",
        );
    }
}

fn set_transaction(session: &mut Session, modes: Modes) -> Result<(), SqlError> {
    let Some(block) = &mut session.block else {
        session.warn(state::NO_TRANSACTION, "SET TRANSACTION can only be used in transaction blocks");
        return Ok(());
    };
    if block.used && modes.isolation.is_some() {
        let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
        return Err(SqlError::new(state::ACTIVE_TRANSACTION, message));
    }
    if block.used && block.read_only && modes.read_only == Some(false) {
        let message = "transaction read-write mode must be set before any query";
        return Err(SqlError::new(state::ACTIVE_TRANSACTION, message));
    }
    block.read_only = modes.read_only.unwrap_or(block.read_only);
    block.isolation = modes.isolation.or(block.isolation);
    say_isolation(session, modes);
    Ok(())
}

/// Ends the transaction and gives it; a warning if there is none.
fn end_block(session: &mut Session, what: &str, chain: bool) -> Result<Option<Box<Block>>, SqlError> {
    let ended = std::mem::take(&mut session.block);
    if ended.is_none() && chain {
        return Err(misplaced(&format!("{what} AND CHAIN")));
    }
    if ended.is_none() {
        session.warn(state::NO_TRANSACTION, "there is no transaction in progress");
    }
    Ok(ended)
}

fn commit(store: &Store, session: &mut Session, chain: bool) -> Result<&'static str, SqlError> {
    let Some(mut block) = end_block(session, "COMMIT", chain)? else { return Ok("COMMIT") };
    let tag = if block.failed { "ROLLBACK" } else { "COMMIT" };
    if block.failed {
        let failed = block.undoing.roll_back();
        say_undone(session, &failed);
    } else {
        let writes = std::mem::take(&mut block.own).into_writes();
        let telling = session.tell_first(block.to_tell.take_first());
        let result = store.commit(&writes);
        if telling {
            session.end_telling(result.is_ok());
        }
        result.map_err(refused)?;
        session.tell_all(block.to_tell.take());
        if !writes.is_empty() {
            let catalog = store.catalog();
            let views = block.refreshed.iter().filter_map(|view| catalog.table(view));
            views.for_each(|view| view.ask_for_refresh());
        }
        if let Err(error) = block.undoing.keep() {
            session.warn(state::WARNING, format!("a restart would undo the definitions: {}", error.message));
        }
    }
    begin_next(session, if chain { Some(block) } else { None });
    Ok(tag)
}

/// Definitions that could not be taken back are reported.
fn say_undone(session: &mut Session, failed: &[SqlError]) {
    for error in failed {
        session.warn(state::WARNING, format!("a definition was not taken back: {}", error.message));
    }
}

/// `AND CHAIN`: another transaction like the one that ended.
fn begin_next(session: &mut Session, ended: Option<Box<Block>>) {
    session.block = ended
        .map(|ended| Box::new(Block::new(ended.read_only, ended.isolation, session.allowance().account())));
}

fn own_block<'s>(session: &'s mut Session, what: &str) -> Result<&'s mut Block, SqlError> {
    session.block.as_deref_mut().ok_or_else(|| misplaced(what))
}

fn roll_back_to(session: &mut Session, name: &str) -> Result<(), SqlError> {
    let block = own_block(session, "ROLLBACK TO SAVEPOINT")?;
    found_savepoint(block.own.rollback_to(name), name)?;
    block.journal.roll_back_to(name);
    block.to_tell.roll_back_to(name);
    let failed = block.undoing.roll_back_to(name);
    say_undone(session, &failed);
    if session.status() == TransactionStatus::Failed
        && let Some(block) = &mut session.block
    {
        block.failed = false;
    }
    Ok(())
}

fn found_savepoint(found: bool, name: &str) -> Result<(), SqlError> {
    let missing = || SqlError::new(state::NO_SAVEPOINT, format!("savepoint \"{name}\" does not exist"));
    if found { Ok(()) } else { Err(missing()) }
}

impl Core {
    /// Runs a statement of a session, within its transaction if there is one. `writes` names a statement that writes.
    pub(crate) fn within<T>(
        &mut self,
        session: &mut Session,
        writes: Option<&'static str>,
        reach: Reach,
        body: impl FnOnce(&Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if let Some(tag) = writes {
            session.check_writable(tag)?;
        }
        let Some(block) = &mut session.block else { return body(self) };
        self.own = Some(block.lend(&self.catalog)?);
        self.since = self.store.last_stamp();
        self.written.get_mut().clear();
        let result = body(self);
        let own = self.own.take().unwrap_or_default();
        let written = self.written.take();
        let stands = result.as_ref().map_or_else(|error| error.partial, |_| true);
        block.take_back(own, if stands { written } else { Vec::new() }, reach, result.is_ok())?;
        result
    }

    /// Runs a statement whose rows are read to be written later, if `chooses`: what others change of them until then is
    /// a conflict.
    pub(crate) fn choosing<T>(
        &self,
        chooses: bool,
        body: impl FnOnce() -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let Some(own) = self.own.as_ref().filter(|_| chooses) else { return body() };
        own.begin_choosing();
        let result = body();
        if own.end_choosing() {
            return result;
        }
        let message = format!("a transaction reads at most {CHOSEN_ROWS_MAX} rows FOR UPDATE or FOR SHARE");
        let hint =
            "every row counts that the statement looks at: an index on the columns of its condition helps";
        result.and_then(|_| Err(SqlError::new(state::TOO_LARGE, message).with_hint(hint)))
    }

    /// Runs a statement that gathers what its parts write, and commits it itself.
    pub(crate) fn within_own<T>(
        &mut self,
        session: &Session,
        writes: Option<&'static str>,
        body: impl FnOnce(&Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if let Some(tag) = writes {
            session.check_writable(tag)?;
        }
        self.own = Some(WriteSet::default());
        self.alone = true;
        self.since = self.store.last_stamp();
        self.written.get_mut().clear();
        let result = body(self);
        (self.own, self.alone) = (None, false);
        self.written.get_mut().clear();
        result
    }
}
