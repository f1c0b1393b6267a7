//! The tables of the system: PostgreSQL's catalogue, `information_schema`, and the server's own figures.
//!
//! They are read-only virtual tables. A statement that names one has its rows computed once, from the store's catalogue
//! and from what the [`Server`] around it knows; cursors find rows in them by equality with any column. Clients learn
//! from them which tables, columns, indexes and types there are, so their columns are those of PostgreSQL 15
//! (`columns.txt`); a table about something that does not exist here is empty.

mod array;
mod columns;
mod comments;
mod content;
mod functions;
mod members;
mod module;
mod oid;
mod relation;
mod rows;
mod series;
mod server;
mod time;
mod unnest;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use sqlite::Connection;
use sqltext::error::{SqlError, state};
use store::definition::SqlType;
use store::{Catalog, Store};

use self::columns::LAYOUTS;
use self::module::{Content, SystemModule};
use self::rows::Rows;
use self::server::NoServer;
use crate::advisory::LockCall;
use crate::effect::Effect;
use crate::limits::EFFECTS_MAX;
use crate::sequence::Numbers;
use crate::session::{Asker, Identity, OwnSettings};

pub use self::functions::{is_allowed as is_function, preset as preset_setting, private_setting};
pub use self::members::JSONB_EACH;
pub use self::oid::{FIRST_USER_OID, oid_of_table};
pub use self::relation::modifier;
pub use self::series::{MOMENT_SERIES, RowColumn, RowFunction, is_rows_table, row_function, rows_table};
pub use self::server::{
    BUS_STATES, BusFacts, Counts, DefaultGrants, EncryptionFacts, FetchFacts, ForwardedFacts, HistoryFacts,
    HotKeyFacts, InvalidationFacts, NodeFacts, OWNER, RefusalFacts, RoleCounts, RoleFacts, SOURCE_STATES,
    Server, SessionFacts, SettingFacts, SlowFacts, SourceColumn, SourceFacts, SourceNote, SourceRows,
    StatementFacts, out_of_reach,
};
pub use self::unnest::{NAME as UNNEST, column as unnest_column, subscript as unnest_subscript};

/// A system table by its place in [`LAYOUTS`], and the only table of the user's of which rows are wanted.
type Asked = (usize, Option<String>);

/// What the system tables of one connection tell, for the statement that runs.
#[derive(Debug)]
pub struct System {
    store: Arc<Store>,
    catalog: RefCell<Arc<Catalog>>,
    server: RefCell<Arc<dyn Server>>,
    /// Rows computed for this statement.
    contents: RefCell<HashMap<Asked, Rc<Content>>>,
    /// Whose statement it is.
    identity: RefCell<Arc<Identity>>,
    /// What its session set.
    settings: RefCell<Arc<OwnSettings>>,
    /// What numbers its session was given before.
    numbers: RefCell<Arc<Numbers>>,
    /// The client has a session, which can do what functions ask.
    lasting: Cell<bool>,
    /// What the statement's functions asked for.
    effects: RefCell<Vec<Effect>>,
    /// How often they called for advisory locks.
    lock_calls: Cell<usize>,
    /// Why a function refused.
    failure: RefCell<Option<SqlError>>,
}

/// What the row of a sequence is made of: functions that ask for no privilege, because reading the row does.
pub const SEQUENCE_LAST: &str = "_sequence_last";
/// See [`SEQUENCE_LAST`].
pub const SEQUENCE_CALLED: &str = "_sequence_called";

/// The sequences that can be read as a table of one row: the name of each in the store, and the query for that row.
pub fn sequence_tables(catalog: &Catalog) -> Vec<(String, String)> {
    let row = |sequence: relation::SequenceFacts| {
        let name = store::definition::qualified(sequence.namespace.as_deref(), &sequence.name);
        let oid = sequence.oid;
        let query = format!(
            "SELECT {SEQUENCE_LAST}({oid}) AS last_value, 0 AS log_cnt, {SEQUENCE_CALLED}({oid}) AS is_called"
        );
        (name, query)
    };
    let taken = |name: &str| catalog.table(name).is_some() || catalog.view(name).is_some();
    relation::all_sequences(catalog).into_iter().map(row).filter(|(name, _)| !taken(name)).collect()
}

impl System {
    /// The catalogue of a store that no server stands around yet.
    pub fn new(store: Arc<Store>) -> Rc<Self> {
        let catalog = store.catalog();
        Rc::new(Self {
            store,
            catalog: RefCell::new(catalog),
            server: RefCell::new(Arc::new(NoServer)),
            contents: RefCell::default(),
            identity: RefCell::default(),
            settings: RefCell::default(),
            numbers: RefCell::default(),
            lasting: Cell::new(false),
            effects: RefCell::default(),
            lock_calls: Cell::new(0),
            failure: RefCell::default(),
        })
    }

    /// Names the daemon around the store.
    pub fn set_server(&self, server: Arc<dyn Server>) {
        *self.server.borrow_mut() = server;
    }

    /// Forgets what was computed for the statement before.
    pub fn begin(&self, catalog: &Arc<Catalog>, asker: Asker<'_>) {
        self.effects.borrow_mut().clear();
        self.lock_calls.set(0);
        self.failure.take();
        self.lasting.set(asker.lasting);
        if !Arc::ptr_eq(&self.settings.borrow(), asker.settings) {
            *self.settings.borrow_mut() = Arc::clone(asker.settings);
        }
        if !Arc::ptr_eq(&self.numbers.borrow(), asker.numbers) {
            *self.numbers.borrow_mut() = Arc::clone(asker.numbers);
        }
        self.contents.borrow_mut().clear();
        if !Arc::ptr_eq(&self.identity.borrow(), asker.identity) {
            *self.identity.borrow_mut() = Arc::clone(asker.identity);
        }
        if !Arc::ptr_eq(&self.catalog.borrow(), catalog) {
            *self.catalog.borrow_mut() = Arc::clone(catalog);
        }
    }

    /// The statement goes on as somebody else's, who is shown other rows of the system's tables.
    pub fn act_as(&self, catalog: &Arc<Catalog>, identity: &Arc<Identity>) {
        self.contents.borrow_mut().clear();
        *self.identity.borrow_mut() = Arc::clone(identity);
        *self.catalog.borrow_mut() = Arc::clone(catalog);
    }

    /// The store that it shows.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Who asks.
    pub fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.identity.borrow())
    }

    /// The role that owns everything. Where no roles are kept, it is the session's own.
    pub fn owner(&self) -> String {
        self.server().owner().unwrap_or_else(|| self.identity.borrow().user.clone())
    }

    /// The tables as the statement sees them.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// The order of two values of an enum type.
    pub fn compare_labels(&self, id: u16, a: &str, b: &str) -> Ordering {
        self.catalog.borrow().enum_of(id).map_or_else(|| a.cmp(b), |own| own.compare(a, b))
    }

    /// The name of a type as SQL spells it.
    pub fn type_name(&self, ty: SqlType) -> String {
        let own = ty.enumeration().and_then(|id| self.catalog.borrow().enum_of(id).cloned());
        let brackets = if ty.is_array() { "[]" } else { "" };
        let shown = |own: Arc<store::definition::EnumDef>| match own.namespace {
            // What is in `public` is named so where it would not be found.
            None if !self.catalog.borrow().is_visible(None, &own.name) => {
                format!("{}.{}{brackets}", content::PUBLIC_NAME, relation::shown_enum(&own))
            }
            _ => format!("{}{brackets}", relation::shown_enum(&own)),
        };
        own.map_or_else(|| ty.sql_name(), shown)
    }

    /// What knows the daemon around the store.
    pub fn server(&self) -> Arc<dyn Server> {
        Arc::clone(&self.server.borrow())
    }

    /// What numbers the session was given before this statement.
    pub(crate) fn numbers(&self) -> Arc<Numbers> {
        Arc::clone(&self.numbers.borrow())
    }

    /// What the session set.
    pub fn settings(&self) -> Arc<OwnSettings> {
        Arc::clone(&self.settings.borrow())
    }

    /// The daemon's settings that the speaker may be told.
    pub(crate) fn told_settings(&self) -> impl Iterator<Item = SettingFacts> + use<> {
        let all = self.identity().rights.settings;
        self.server().settings().into_iter().filter(move |setting| all || !setting.private)
    }

    /// What this statement gave a setting before.
    pub fn asked_setting(&self, setting: &str) -> Option<String> {
        self.effects.borrow().iter().rev().find_map(|effect| match effect {
            Effect::Set { name, value, .. } if name.eq_ignore_ascii_case(setting) => value.clone(),
            _ => None,
        })
    }

    /// Takes note of something to do when the statement has worked; the same once more is the same, so a statement
    /// that had to begin again asks for it once.
    pub fn ask(&self, effect: Effect) -> Result<(), SqlError> {
        if !self.lasting.get() {
            let message = "this function needs a session, which only PostgreSQL clients have";
            return Err(SqlError::new(state::NOT_SUPPORTED, message));
        }
        let mut effects = self.effects.borrow_mut();
        if matches!(effect, Effect::Notify { .. }) && effects.contains(&effect) {
            return Ok(());
        }
        if effects.len() >= EFFECTS_MAX {
            let message =
                format!("one statement can send or set at most {EFFECTS_MAX} notifications and settings");
            return Err(SqlError::new(state::TOO_LARGE, message));
        }
        effects.push(effect);
        Ok(())
    }

    /// The statement begins again: its functions are called once more.
    pub fn restart(&self) {
        self.lock_calls.set(0);
    }

    /// Asks for an advisory lock.
    fn advisory(&self, call: LockCall) -> Result<bool, SqlError> {
        let at = self.lock_calls.replace(self.lock_calls.get() + 1);
        let pid = if self.lasting.get() { self.identity.borrow().pid } else { 0 };
        self.server().advisory(pid, at, call)
    }

    /// What the statement asked for.
    pub fn take_effects(&self) -> Vec<Effect> {
        self.effects.take()
    }

    /// Keeps an error that SQLite can carry only the words of, and returns these.
    fn fail(&self, error: SqlError) -> String {
        let words = error.message.clone();
        *self.failure.borrow_mut() = Some(error);
        words
    }

    /// The error that a function left.
    pub fn take_failure(&self) -> Option<SqlError> {
        self.failure.take()
    }

    /// The rows of a table, computed by the first cursor that asks; `table`: the only one of the user's that they are
    /// of.
    fn content(&self, at: usize, table: Option<String>) -> Rc<Content> {
        let asked = (at, table);
        if let Some(known) = self.contents.borrow().get(&asked) {
            return Rc::clone(known);
        }
        let mut rows = Rows::new(&LAYOUTS[at], asked.1.clone());
        content::fill(self, &mut rows);
        let content = Rc::new(Content::new(rows.finish()));
        self.contents.borrow_mut().insert(asked, Rc::clone(&content));
        content
    }

    /// Makes the connection know all system tables.
    pub fn register(self: &Rc<Self>, connection: &Connection) -> Result<(), SqlError> {
        for (at, layout) in LAYOUTS.iter().enumerate() {
            connection.register(&layout.registered, SystemModule::new(at, self))?;
        }
        series::register(self, connection)?;
        unnest::register(connection)?;
        functions::register(self, connection)
    }
}

/// Whether a table of the system is registered under this name, given in any case.
pub fn is_table(registered: &str) -> bool {
    LAYOUTS.iter().any(|layout| layout.registered.eq_ignore_ascii_case(registered))
}

/// The name under which a table of `information_schema` is registered.
pub fn information_table(name: &str) -> Option<&'static str> {
    let prefix = columns::INFORMATION_PREFIX;
    let is_so =
        |registered: &str| registered.strip_prefix(prefix).is_some_and(|own| own.eq_ignore_ascii_case(name));
    LAYOUTS.iter().map(|layout| layout.registered.as_str()).find(|registered| is_so(registered))
}

/// The type of a column of a system table, with the table's number and the column's; 0 for one that is in no list.
pub fn column(registered: &str, name: &str) -> Option<(SqlType, (u32, u16))> {
    let layout = LAYOUTS.iter().find(|layout| layout.registered == registered)?;
    if let Some(at) = layout.position(name) {
        return Some((layout.columns[at].ty, (layout.oid, u16::try_from(at + 1).ok()?)));
    }
    let hidden = HIDDEN.iter().find(|(hidden, _)| hidden.eq_ignore_ascii_case(name));
    hidden.map(|(_, ty)| (*ty, (layout.oid, 0)))
}

/// The columns that every system table has beside those of [`columns_of`].
pub const HIDDEN: [(&str, SqlType); 2] = [("tableoid", SqlType::Oid), ("xmin", SqlType::Xid)];

/// The columns of a system table by the name under which it is registered; none for another name.
pub fn columns_of(registered: &str) -> impl Iterator<Item = (&'static str, SqlType)> {
    let layout = LAYOUTS.iter().find(|layout| layout.registered.eq_ignore_ascii_case(registered));
    layout.into_iter().flat_map(|layout| layout.columns.iter().map(|column| (column.name, column.ty)))
}

/// Refuses to write or to change a system table.
pub fn refuse_change(name: &str) -> Result<(), SqlError> {
    if !is_table(name) {
        return Ok(());
    }
    let message = format!("\"{name}\" is a system table and can only be read");
    Err(SqlError::new(state::FORBIDDEN, message))
}

/// Whether users cannot have a table of this name.
pub fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pg_", "sqlcached_", columns::INFORMATION_PREFIX].iter().any(|prefix| name.starts_with(prefix))
}
