//! Runs statements: one executor for each SQL thread, with a connection and a statement cache of its own.

mod actor;
mod call;
mod compile;
mod define;
mod describe;
mod named;
mod opened;
mod parts;
mod refresh;
mod routine;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use dialect::Chosen;
use dialect::lateral::LATERAL;
use pgcatalog::function::like::{self, LikeStyle};
use pgcatalog::function::order;
use pgcatalog::system::{Server, System, sequence_tables};
use pgcatalog::{began, sequence};
use rapidhash::fast::RapidHasher;
use sqlite::Connection;
use sqltext::literals::StatementText;
use store::definition::SqlType;
use store::scalar::zone::{self, Zone};
use store::value::{Value, ValueRef};
use store::{Catalog, Store, Table};

use crate::cache::Cache;
use crate::compute;
use crate::core::{Core, check_count};
use crate::describe::ColumnDescription;
use crate::done::{Done, Nobody, RowSink};
use crate::error::{SqlError, state};
use crate::function;
use crate::limits::{GIVEN_UP_MAX, Limits, STATEMENT_BYTES_MAX};
use crate::meter;
use crate::plan::Plan;
use crate::session::{Session, TransactionStatus};
use crate::table::{Cancel, LateralModule, MissingKey, Sight, TableModule, register_session_functions};
use crate::text::kind::{StatementKind, kind_of};
use crate::text::rows::{Rows, rows_of};
use crate::text::transaction::{Control, control, ending};
use crate::transaction;
use opened::Shapes;

/// Runs SQL statements against a store. It stays on the thread that made it.
pub struct Executor {
    core: Core,
    /// The plans of the executor in force, native or SQLite alone.
    cache: Cache,
    /// Those of the other one: a session may choose otherwise than the next.
    other_cache: Cache,
    shapes: Shapes,
    /// The tables that the connection knows, by their registered name in lower case.
    registered: HashMap<String, Arc<Table>>,
    /// The names of the views that it knows.
    views: Vec<String>,
    /// The sequences that the connection knows, with their queries.
    sequences: Vec<(String, String)>,
    /// The enum types whose orders it knows.
    orders: HashSet<u16>,
    /// The time zone for which plans were made, and what `LIKE` means in them.
    meaning: (Option<Zone>, LikeStyle),
    /// Where they look for names without a schema.
    path: Option<Arc<[String]>>,
    /// The definitions of the tables that the connection knows, for who looks nowhere in particular.
    base: Arc<Catalog>,
    /// How many functions and procedures are being called, one by the other.
    depth: usize,
    /// Calls by their text, with the types that the client chose; they go with the plans.
    calls: HashMap<Box<str>, Rc<call::Ready>, BuildHasherDefault<RapidHasher<'static>>>,
}

/// Knows whether an answer began, for then a statement cannot start again.
struct Answering<'o> {
    out: &'o mut dyn RowSink,
    began: bool,
}

impl RowSink for Answering<'_> {
    fn columns(&mut self, columns: &[ColumnDescription]) {
        self.began = true;
        self.out.columns(columns);
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.out.row(values)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("cached", &self.cache.len()).finish_non_exhaustive()
    }
}

/// Lets every thread that writes to a store compute what the definitions of its tables ask for: defaults, generated
/// columns, checks. What opens a store calls this before it lets anybody write: tables of an earlier process are
/// written through memcached's protocol before there is a statement.
pub fn compute_definitions(store: &Arc<Store>) {
    store.set_compute(compute::maker(store));
}

impl Executor {
    /// An executor on this thread, with a private connection.
    pub fn new(store: Arc<Store>, limits: Limits) -> Result<Self, SqlError> {
        let sight = Rc::new(Sight::new(Arc::clone(&store)));
        let connection = Connection::open(Rc::<Sight>::clone(&sight))?;
        let catalog = store.catalog();
        let [cache, other_cache] = [(); 2].map(|()| Cache::new(limits.cached_statements));
        let system = System::new(Arc::clone(&store));
        system.register(&connection)?;
        function::register(&connection, &sight)?;
        compute_definitions(&store);
        register_session_functions(&connection, &sight)?;
        connection.register(LATERAL, LateralModule::new(&connection, &sight))?;
        let (own, since, written, alone, shared) = (None, 0, RefCell::default(), false, RefCell::default());
        let native = limits.native;
        let core = Core {
            store,
            sight,
            catalog,
            connection,
            system,
            limits,
            native,
            own,
            since,
            written,
            alone,
            shared,
        };
        let (registered, views, shapes) = (HashMap::new(), Vec::new(), Shapes::default());
        let sequences = Vec::new();
        let (orders, meaning) = (HashSet::new(), Default::default());
        let base = Arc::clone(&core.catalog);
        let mut executor = Self {
            core,
            base,
            cache,
            other_cache,
            shapes,
            registered,
            views,
            sequences,
            orders,
            meaning,
            path: None,
            depth: 0,
            calls: HashMap::default(),
        };
        executor.register_tables()?;
        Ok(executor)
    }

    /// Changes what later statements may do.
    pub fn set_limits(&mut self, limits: Limits) {
        self.cache.set_capacity(limits.cached_statements);
        self.other_cache.set_capacity(limits.cached_statements);
        self.core.limits = limits;
    }

    /// Says whether the next statement is run again when rows were fetched that it misses.
    pub fn want_missing(&self, wanted: bool) {
        self.core.sight.missing.want(wanted);
    }

    /// The keys that the last statement missed in tables that read through.
    pub fn take_missing(&self) -> Vec<MissingKey> {
        self.core.sight.missing.take()
    }

    /// Names the daemon around the store, whose sessions, statements and settings the system tables show.
    pub fn set_server(&mut self, server: Arc<dyn Server>) {
        self.core.system.set_server(server);
    }

    pub(crate) fn server(&self) -> Arc<dyn Server> {
        self.core.system.server()
    }

    /// Runs one statement of a session.
    ///
    /// The statement sees the store as it is when it begins, and its writes are applied whole or not at all. Within
    /// a transaction it sees that transaction's writes too, and its own are applied by `COMMIT`.
    #[inline]
    pub fn execute(
        &mut self,
        session: &mut Session,
        sql: &str,
        parameters: &[Value],
        cancel: &Cancel,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        self.execute_text(session, &StatementText::new(sql), (parameters, &[]), cancel, out)
    }

    /// The same of a text of which the literals may be known, with types that the client chose for the parameters,
    /// beside their values: those of [`Description::chosen`].
    pub fn execute_text(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        parameters: (&[Value], &[Option<SqlType>]),
        cancel: &Cancel,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        self.refresh()?;
        self.choose_executor(session);
        self.core.system.begin(&self.core.catalog, session.asker());
        session.set_effects(Vec::new());
        let timeout = session.statement_timeout(self.core.limits.statement_timeout);
        self.core.sight.start_watch(&self.core.limits, timeout, cancel);
        if let Some(us) = session.began_us() {
            began::resume(us);
        }
        let heap_bytes = self.core.limits.heap_bytes_max;
        self.core.sight.set_facts(session.facts);
        let policy = Rc::<Sight>::clone(&self.core.sight);
        sequence::begin(session.asker().identity, session.read_only());
        let result =
            meter::statement(policy, heap_bytes, || self.run_current(session, text, parameters, out));
        began::end();
        session.facts = self.core.sight.facts();
        if let Some(given) = sequence::end() {
            session.note_numbers(given);
        }
        if let Ok(done) = &result {
            session.facts.note(done);
            session.set_effects(self.core.system.take_effects());
        }
        result.map_err(|error| {
            let cause = self.core.sight.take_failure().or_else(|| self.core.system.take_failure());
            let cause = cause.or_else(sequence::take_refusal);
            let partial = error.partial || cause.as_ref().is_some_and(|cause| cause.partial);
            if !partial {
                session.fail();
            }
            cause.unwrap_or(error)
        })
    }

    /// Forgets the plans: the same words mean something else now.
    #[cold]
    fn change_meaning(&mut self, meaning: (Option<Zone>, LikeStyle)) {
        self.meaning = meaning;
        self.cache.clear();
        self.other_cache.clear();
        self.shapes.clear();
        self.calls.clear();
    }

    /// Takes the plans of the executor that the session wants: a plan knows by whom it is run.
    #[inline]
    fn choose_executor(&mut self, session: &Session) {
        let (zone, like) = (session.zone(), session.like());
        if zone::current() != zone {
            zone::set_current(zone);
        }
        if self.meaning.0 != zone || self.meaning.1 != like {
            self.change_meaning((zone, like));
        }
        if self.path.as_ref() != session.path(&self.core.catalog) {
            self.look_in(session.path(&self.core.catalog).cloned());
        }
        let native = session.native(self.core.limits.native);
        if native != self.core.native {
            self.core.native = native;
            std::mem::swap(&mut self.cache, &mut self.other_cache);
        }
    }

    /// Looks for names without a schema there.
    #[cold]
    fn look_in(&mut self, path: Option<Arc<[String]>>) {
        if self.path != path {
            self.path = path;
            // Later definitions than those that the connection knows would come without their tables.
            self.core.catalog = self.catalog_of_path();
            self.change_meaning(self.meaning);
        }
    }

    /// Makes the walk give words the meaning that they have in this session; a plan that is there was made so.
    fn set_words(&self) {
        like::set_style(self.meaning.1);
    }

    /// Runs a statement; one that stands alone again where a table was redefined between its compilation and its end,
    /// or where what it read was given up, for nothing of it was applied then, and no answer began.
    fn run_current(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        parameters: (&[Value], Chosen<'_>),
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let alone = session.status() == TransactionStatus::Idle;
        let mut out = Answering { out, began: false };
        let mut given_up = 0;
        loop {
            let (values, chosen) = parameters;
            let result = self.run(session, text, values, chosen, &mut out);
            let result = result.map_err(|error| self.core.with_table(error));
            let error = match result {
                Err(error) if alone && !out.began && !error.partial => error,
                result => return result,
            };
            let redefined = self.core.store.generation() != self.core.catalog.generation;
            let too_old = error.state == state::SNAPSHOT_TOO_OLD;
            given_up += u32::from(too_old);
            let again = (redefined && (too_old || error.state == state::LOST))
                || (too_old && given_up <= GIVEN_UP_MAX);
            if !again {
                return Err(error);
            }
            self.core.sight.check_watch()?;
            self.core.system.restart();
            self.refresh()?;
        }
    }

    /// Runs a statement, and says which one it was if `COMMIT` is to compute it again.
    fn run(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        parameters: &[Value],
        chosen: Chosen<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let result = self.run_once(session, text, parameters, chosen, out);
        if result.is_ok() {
            session.name_step(text.sql, parameters, chosen);
        }
        result
    }

    /// Runs a statement with the types that the client chose for its parameters, if it chose any.
    pub(crate) fn run_once(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        parameters: &[Value],
        chosen: Chosen<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        if chosen.is_empty() {
            self.run_unchosen(session, text, parameters, out)
        } else {
            self.run_chosen(session, text, parameters, chosen, out)
        }
    }

    fn run_unchosen(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let sql = text.sql;
        if session.status() == TransactionStatus::Failed {
            return self.control(session, sql);
        }
        let Self { core, cache, .. } = self;
        if let Some(prepared) = cache.get(sql) {
            return core.run_prepared(session, prepared, parameters, out);
        }
        check_size(sql)?;
        if let Some(done) = self.run_call(session, sql, parameters, &[], out)? {
            return Ok(done);
        }
        if self.core.native
            && parameters.is_empty()
            && let Some(rows) = rows_of(sql)
            && let Some(done) = self.run_rows(session, rows, out)?
        {
            return Ok(done);
        }
        if parameters.is_empty()
            && let Some(done) = self.run_opened(session, text, out)?
        {
            return Ok(done);
        }
        let kind = kind_of(sql)?;
        let mut prepared = match kind {
            StatementKind::Define => {
                check_count(parameters.len(), 0)?;
                return self.define(session, sql);
            }
            StatementKind::Block => {
                check_count(parameters.len(), 0)?;
                return self.run_block(session, sql);
            }
            StatementKind::Transaction => {
                check_count(parameters.len(), 0)?;
                return self.control(session, sql);
            }
            StatementKind::Empty => {
                return Ok(Done::of_nobody(""));
            }
            _ => self.prepare(kind, sql, &[], None)?,
        };
        let result = self.core.run_prepared(session, &mut prepared, parameters, out);
        self.cache.put(sql, prepared);
        result
    }

    /// Runs an `INSERT` of rows by the statement that they have in common; `None` where it must be taken as it stands.
    fn run_rows(
        &mut self,
        session: &mut Session,
        rows: Rows<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Option<Done>, SqlError> {
        let mut rows = rows;
        if self.cache.get(&rows.statement).is_none() {
            // What is wrong is reported of the statement as it stands.
            let Ok(prepared) = self.prepare(StatementKind::Write, &rows.statement, &[], None) else {
                return Ok(None);
            };
            self.cache.put(&rows.statement, prepared);
        }
        let Self { core, cache, .. } = self;
        let Some(prepared) = cache.get(&rows.statement).filter(|prepared| prepared.takes(&rows)) else {
            return Ok(None);
        };
        for at in prepared.plan().values_of(&[SqlType::Numeric]) {
            rows.spell_out(at);
        }
        for at in prepared.plan().values_of(&[SqlType::Int2, SqlType::Int4, SqlType::Int8]) {
            rows.round(at);
        }
        core.run_rows(session, prepared, &rows, out).map(Some)
    }

    /// The second half of `CREATE TABLE ... AS`: a table that cannot be filled goes again.
    fn fill(&mut self, session: &mut Session, table: &str, insert: &str) -> Result<Done, SqlError> {
        self.refresh()?;
        match self.run(session, &StatementText::new(insert), &[], &[], &mut Nobody) {
            Ok(done) => Ok(Done { tag: "SELECT", ..done }),
            Err(error) => {
                self.core.store.drop_table(table)?;
                Err(error)
            }
        }
    }

    /// Carries out what begins, ends or marks a transaction.
    fn control(&mut self, session: &mut Session, sql: &str) -> Result<Done, SqlError> {
        let failed = session.status() == TransactionStatus::Failed;
        let control = if failed { ending(sql) } else { control(sql) }?;
        let commits = matches!(control, Control::Commit { .. }) && !failed;
        if commits && session.block.as_ref().is_some_and(|block| block.is_blind()) {
            self.commit_again(session)?;
        }
        transaction::run(&self.core.store, session, control)
    }

    /// How a statement's rows are found, step by step; `None` where there is nothing to show.
    pub fn plan_of(&mut self, sql: &str) -> Option<String> {
        let text = format!("EXPLAIN QUERY PLAN {sql}");
        self.refresh().ok()?;
        let kind = kind_of(&text).ok()?;
        let mut prepared = self.prepare(kind, &text, &[], None).ok()?;
        let Plan::Read(read) = prepared.plan_mut() else { return None };
        let mut steps = Steps::default();
        let nothing = vec![Value::Null; read.parameters];
        read.run(&self.core, &nothing, &mut steps).ok()?;
        Some(steps.0).filter(|steps| !steps.is_empty())
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.core.store
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.core.catalog
    }

    /// Whether the statement's time is over.
    pub(crate) fn check_watch(&self) -> Result<(), SqlError> {
        self.core.sight.check_watch()
    }

    /// Takes over the store's definitions when they changed.
    pub(crate) fn refresh(&mut self) -> Result<(), SqlError> {
        if self.core.store.generation() == self.core.catalog.generation {
            return Ok(());
        }
        self.base = self.core.store.catalog();
        self.core.catalog = self.catalog_of_path();
        self.cache.clear();
        self.other_cache.clear();
        self.shapes.clear();
        self.calls.clear();
        self.register_tables()
    }

    /// The definitions, for who looks for names where the plans do.
    fn catalog_of_path(&self) -> Arc<Catalog> {
        match &self.path {
            Some(path) => Arc::new(self.base.with_path(Arc::clone(path))),
            None => Arc::clone(&self.base),
        }
    }

    /// Makes the connection know the catalogue's tables. No statement is compiled at this moment.
    fn register_tables(&mut self) -> Result<(), SqlError> {
        self.register_orders()?;
        let new = self.forget_sequences()?;
        let core = &self.core;
        let mut registered = HashMap::new();
        for table in core.catalog.tables() {
            let name = table.name().to_lowercase();
            let known = self.registered.remove(&name);
            if !known.is_some_and(|known| Arc::ptr_eq(&known, table)) {
                core.connection
                    .register(table.name(), TableModule::new(table, &core.sight, &core.connection))?;
            }
            registered.insert(name, Arc::clone(table));
        }
        for gone in self.registered.values() {
            core.connection.unregister(gone.name())?;
        }
        self.registered = registered;
        self.register_views()?;
        // Sequences are read as tables of one row.
        for (name, query) in new {
            self.core.sight.defining(|| self.core.connection.create_view(&name, &[], &query))?;
        }
        let sequences = self.sequences.iter().map(|(name, _)| name);
        let views = self.views.iter().chain(sequences).map(|name| name.to_lowercase());
        self.core.sight.set_known(self.registered.keys().cloned().chain(views));
        Ok(())
    }

    /// Makes the connection know the orders of enum types. Each compares by the list of the statement's catalogue.
    fn register_orders(&mut self) -> Result<(), SqlError> {
        let core = &self.core;
        for id in core.catalog.enums().iter().map(|own| own.id).filter(|&id| self.orders.insert(id)) {
            let system = Rc::clone(&core.system);
            let order = move |a: &str, b: &str| system.compare_labels(id, a, b);
            order::register_enum(&core.connection, id, order)?;
        }
        Ok(())
    }

    /// Makes the connection forget the sequences that are gone: their names may be others' now. Returns those that are
    /// new.
    fn forget_sequences(&mut self) -> Result<Vec<(String, String)>, SqlError> {
        let all = sequence_tables(&self.core.catalog);
        if all == self.sequences {
            return Ok(Vec::new());
        }
        let known = std::mem::replace(&mut self.sequences, all);
        let now: HashSet<&(String, String)> = self.sequences.iter().collect();
        for (gone, _) in known.iter().filter(|own| !now.contains(own)) {
            self.core.sight.defining(|| self.core.connection.drop_view(gone))?;
        }
        let known: HashSet<&(String, String)> = known.iter().collect();
        Ok(self.sequences.iter().filter(|own| !known.contains(own)).cloned().collect())
    }

    /// Makes the connection know the catalogue's views, in the words that serve the tables of now best. All are made
    /// again: SQLite remembers what `*` stood for.
    fn register_views(&mut self) -> Result<(), SqlError> {
        let core = &self.core;
        for gone in std::mem::take(&mut self.views) {
            core.sight.defining(|| core.connection.drop_view(&gone))?;
        }
        for view in core.catalog.views() {
            let text = dialect::view(&core.catalog, &view.sql);
            let sql = text.as_deref().unwrap_or(&view.sql);
            core.sight.defining(|| core.connection.create_view(&view.name, &view.columns, sql))?;
            self.views.push(view.name.clone());
        }
        Ok(())
    }
}

/// The steps of a plan, one after the other.
#[derive(Debug, Default)]
struct Steps(String);

impl RowSink for Steps {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if let Some(ValueRef::Text(step)) = values.last() {
            if !self.0.is_empty() {
                self.0.push_str("; ");
            }
            self.0.push_str(step);
        }
        Ok(())
    }
}

fn check_size(sql: &str) -> Result<(), SqlError> {
    if sql.len() > STATEMENT_BYTES_MAX {
        let message = format!("statement is {} bytes; the limit is {STATEMENT_BYTES_MAX}", sql.len());
        return Err(SqlError::new(state::TOO_LARGE, message)
            .with_hint("send values as parameters, or rows in several statements"));
    }
    if let Some(at) = sql.find('\0') {
        return Err(SqlError::new(state::SYNTAX, "a statement contains no zero byte").at(sql, at));
    }
    Ok(())
}
