//! Definitions: tables and indexes come, change and go by one swap of the catalogue, in the arena and in memory.

pub(crate) mod alter;
pub(crate) mod dropped;
pub(crate) mod indexes;
pub(crate) mod sharing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Arena, Arenas, Entry, Hash, Location, TableId};

use crate::clock::Tick;
use crate::define::alter::{ROWS_PER_LOOK, check_relation_name, refused as refused_by};
use crate::define::sharing::{open_arenas, shared_path_beside};
use crate::definition::{ColumnDef, DefinitionError, IndexDef, TableDef, TableOptions, ViewDef};
use crate::error::{DdlError, WriteError};
use crate::index::{Index, entry_of};
use crate::patience;
use crate::row::RowBuf;
use crate::rows::write::EQUAL_MAX;
use crate::schema::catalogue::{catalog_of, read_catalogue};
use crate::store::{Opened, Store, StoreError, StoreOptions};
use crate::table::catalog::{BUILT_IN, Catalog};
use crate::table::leaving::Leaving;
use crate::table::{Table, TableState};

/// Edits the options of a table; gets its columns, for an option may name one.
pub type OptionsChange<'a> = dyn FnMut(&mut TableOptions, &[ColumnDef]) -> Result<(), DefinitionError> + 'a;

/// The share of the memory that tables may have for themselves, in per cent: the rest is for hash index, ordered
/// indexes and tables that reserve nothing.
const RESERVED_PER_CENT: u64 = 75;
/// Number of the built-in table.
pub(crate) const BUILT_IN_ID: TableId = TableId(1);

/// What became of a row on its way into a new index.
enum Entered {
    Done,
    /// A unique value stands in another row.
    Taken,
    /// A commit has spoken for its unique value and is swapping its rows in.
    Busy,
}

impl Store {
    /// Opens the arena of an earlier process, or a new one. Rows are served at once; [`Store::recover`] is to be called
    /// by a thread that has the time.
    pub fn open(options: &StoreOptions) -> Result<Opened, StoreError> {
        Self::open_with(options, options.path.as_deref().map(shared_path_beside))
    }

    /// As [`Store::open`], with the file of the tables that other processes may read; none where there shall be no
    /// such.
    pub fn open_with(options: &StoreOptions, shared: Option<PathBuf>) -> Result<Opened, StoreError> {
        let (arena, start) = open_arenas(options, shared.as_deref()).map_err(StoreError::Arena)?;
        let (tables, views) = read_catalogue(&arena).unwrap_or_else(|| (vec![built_in()], Vec::new()));
        let handles = tables.into_iter().map(|def| Arc::new(load(&arena, def))).collect();
        let views = views.into_iter().map(Arc::new).collect();
        let store = Arc::new(Self::assemble(arena, options, shared, catalog_of(1, handles, views)));
        store.find_shared()?;
        store.save(&store.catalog()).map_err(|error| unsaved(options, &error))?;
        store.begin_recovery();
        store.checkpoint(store.now());
        store.resume_flush();
        store.share_memory();
        Ok(Opened { store, start })
    }

    /// Makes a table. Rows of the built-in table whose keys it answers to are removed.
    pub fn create_table(&self, mut def: TableDef) -> Result<Arc<Table>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        check_relation_name(&catalog, &def.name)?;
        def.check_width(0)?;
        def.validate()?;
        check_index_names(&catalog, &def)?;
        check_prefix(&catalog, &def, None)?;
        self.check_reserves(&catalog, &def)?;
        def.schema = 1;
        def.numbers_below = 0;
        let table = self.empty_table(&catalog, def)?;
        self.install(catalog.tables().cloned().chain([Arc::clone(&table)]).collect())?;
        self.claim_prefix(&table);
        Ok(table)
    }

    /// Removes a table and its rows.
    pub fn drop_table(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = found(&catalog, name)?;
        if table.name() == BUILT_IN {
            return Err(ddl("42501", format!("table \"{BUILT_IN}\" is built in; use TRUNCATE to empty it")));
        }
        self.install(catalog.tables().filter(|other| other.id() != table.id()).cloned().collect())?;
        self.bury(table);
        Ok(())
    }

    /// Makes a table's rows invisible at once.
    pub fn truncate(&self, table: &Table) {
        self.flush(table);
    }

    /// Changes a table's options.
    pub fn set_options(&self, name: &str, change: &mut OptionsChange<'_>) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = found(&catalog, name)?;
        let mut def = table.def().clone();
        change(&mut def.options, &table.def().columns)?;
        self.keep_ended(table, &mut def.options);
        def.validate()?;
        if def.options.value != table.def().options.value
            || def.options.ordered != table.def().options.ordered
        {
            return Err(ddl(
                "0A000",
                "value and ordered cannot change after the table was created; create a new table".into(),
            ));
        }
        if table.name() == BUILT_IN && def.options.prefix != table.def().options.prefix {
            return Err(ddl(
                "42501",
                format!("table \"{BUILT_IN}\" holds all keys without the prefix of another table"),
            ));
        }
        check_prefix(&catalog, &def, Some(table.id()))?;
        if def.options.shared_memory != table.def().options.shared_memory {
            self.change_file(&catalog, table, def)?;
            self.claim_new_prefix(name);
            return Ok(());
        }
        self.check_reserves(&catalog, &def)?;
        // What has expired under the old rule stays dead, in the next process too.
        self.arena.set_aged_below(table.id(), self.aged_below(&table.state, self.now()));
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        if let Err(error) = self.replace(&catalog, changed) {
            table.state.apply(table.def());
            return Err(error);
        }
        self.claim_new_prefix(name);
        Ok(())
    }

    /// A table that was given other options takes the keys that it answers to now.
    fn claim_new_prefix(&self, name: &str) {
        if let Some(table) = self.catalog().table(name) {
            self.claim_prefix(table);
        }
    }

    /// What tables have for themselves leaves room for the others.
    fn check_reserves(&self, catalog: &Catalog, def: &TableDef) -> Result<(), DdlError> {
        let Some(own) = def.options.min_memory else { return Ok(()) };
        let others = catalog.tables().filter(|table| table.id().0 != def.id);
        let taken: u64 = others.filter_map(|table| table.def().options.min_memory).sum();
        let limit = self.memory_bytes().saturating_mul(RESERVED_PER_CENT) / 100;
        if taken.saturating_add(own) > limit {
            let message = format!(
                "min_memory of all tables would be {} bytes; the limit is {limit}, {RESERVED_PER_CENT} % of the memory",
                taken.saturating_add(own)
            );
            return Err(ddl("53200", message));
        }
        Ok(())
    }

    pub(crate) fn replace(&self, catalog: &Catalog, changed: Table) -> Result<Arc<Table>, DdlError> {
        let id = changed.id();
        let changed = Arc::new(changed);
        let others = catalog.tables().filter(|table| table.id() != id).cloned();
        self.install(others.chain([Arc::clone(&changed)]).collect())?;
        Ok(changed)
    }

    /// Puts these tables in the place of those that are.
    pub(crate) fn install(&self, tables: Vec<Arc<Table>>) -> Result<(), DdlError> {
        self.install_all(tables, self.catalog().views().cloned().collect())
    }

    /// Writes the definitions to the arena, then swaps the catalogue: after a crash in between the new ones hold.
    pub(crate) fn install_all(
        &self,
        tables: Vec<Arc<Table>>,
        views: Vec<Arc<ViewDef>>,
    ) -> Result<(), DdlError> {
        let generation = self.generation() + 1;
        let catalog = catalog_of(generation, tables, views);
        self.save(&catalog)?;
        self.spread_flush(&catalog);
        self.catalog.store(Arc::new(catalog));
        // Release: pairs with the Acquire in `generation`.
        self.generation.store(generation, Ordering::Release);
        Ok(())
    }

    /// Changes the indexes that writes keep. Every writer that began before has left its shard when this returns, and
    /// every commit has ended that spoke for unique values before.
    pub(crate) fn maintain(&self, table: &Table, change: impl FnOnce(&mut Vec<Arc<Index>>)) {
        let mut indexes = Vec::clone(&table.state.maintained.load());
        change(&mut indexes);
        table.state.maintained.store(Arc::new(indexes));
        drop(self.committing.write());
        for shard in &self.shards {
            drop(shard.lock());
        }
    }

    /// Enters every row that is there into a new index, a few buckets at a time. `check`: unique values are proved.
    pub(crate) fn fill_index(&self, table: &Table, index: &Index, check: bool) -> Result<(), DdlError> {
        let mut row = RowBuf::new();
        let mut key = Vec::new();
        let now = self.now();
        let (mut refused, mut canceled) = (false, false);
        let mut looks = 0_u64;
        // Rows whose unique value a commit is just swapping in somewhere: entered when it has ended.
        let mut busy: Vec<(Hash, Vec<u8>)> = Vec::new();
        self.each_row(table.id(), |hash, location| {
            looks += 1;
            canceled |= looks.is_multiple_of(ROWS_PER_LOOK) && patience::must_stop();
            if refused || canceled {
                return false;
            }
            if !self.load_stable(location, &mut row) || !index.holds(&row) {
                return true;
            }
            if !check {
                index.sort_key(&row, &mut key);
                index.tree.write().insert(&key, entry_of(hash, location), &index.rows(&self.arena));
                return true;
            }
            match self.enter_row(table, index, hash, &row, &mut key, now) {
                Entered::Done => {}
                Entered::Taken => refused = true,
                Entered::Busy => busy.push((hash, row.key().to_vec())),
            }
            true
        });
        for (hash, row_key) in busy {
            while !refused && !canceled && !self.enter_by_key(table, index, hash, &row_key, &mut refused, now)
            {
                std::thread::yield_now();
            }
        }
        if canceled {
            return Err(refused_by(&WriteError::Canceled));
        }
        if refused {
            return Err(ddl(
                "23505",
                format!(
                    "could not create unique index \"{}\": more than one row has the same value",
                    index.name()
                ),
            ));
        }
        Ok(())
    }

    /// Enters the current version of a key into a new index. False: a commit is still busy with its unique value.
    fn enter_by_key(
        &self,
        table: &Table,
        index: &Index,
        hash: Hash,
        key: &[u8],
        refused: &mut bool,
        now: Tick,
    ) -> bool {
        let shard = self.shard(hash).lock();
        let mut row = RowBuf::new();
        let found = self.arena.find(&shard.token, hash, table.id(), key);
        if !found.is_some_and(|entry| self.load_stable(entry.location, &mut row)) {
            return true;
        }
        let entered = self.enter_row(table, index, hash, &row, &mut Vec::new(), now);
        *refused |= matches!(entered, Entered::Taken);
        !matches!(entered, Entered::Busy)
    }

    /// Enters one row, whose shard is locked, into a new index.
    fn enter_row(
        &self,
        table: &Table,
        index: &Index,
        hash: Hash,
        row: &RowBuf,
        key: &mut Vec<u8>,
        now: Tick,
    ) -> Entered {
        if !index.holds(row) {
            return Entered::Done;
        }
        let entry = entry_of(hash, row.location());
        let unique = index.sort_key(row, key) && self.is_live(table, row.head(), now);
        let rows = index.rows(&self.arena);
        let mut tree = index.tree.write();
        let mut equal = Vec::new();
        if unique {
            tree.equal(key, &rows, EQUAL_MAX, &mut equal);
        }
        let rival = |&at: &u64| at != entry && self.holds_values(table, Location::from_bits(at), now);
        if equal.iter().any(rival) {
            return Entered::Taken;
        }
        if unique && !equal.contains(&entry) && !self.claim_reserved(index, key) {
            return Entered::Busy;
        }
        tree.insert(key, entry, &rows);
        Entered::Done
    }

    /// Visits the rows of a table under their shard's lock, each once, until `visit` says that it is enough.
    fn each_row(&self, id: TableId, mut visit: impl FnMut(Hash, Location) -> bool) {
        let shape = self.arena.scan_shape(id);
        let mut locations = Vec::new();
        let mut key = Vec::new();
        for group in 0..shape.groups {
            let shard = self.shard_at(Arena::shard_of_group(group)).lock();
            locations.clear();
            self.arena.scan_group(&shard.token, shape, group, id, &mut locations);
            for &location in &locations {
                let Some(read) = self.arena.row(location).filter(|row| row.head().table == id) else {
                    continue;
                };
                key.clear();
                read.copy_key(&mut key);
                if !visit(self.arena.hash(id, &key), location) {
                    return;
                }
            }
        }
    }

    /// Rows of the built-in table under keys that a table now answers to would be out of reach: they go.
    fn claim_prefix(&self, table: &Table) {
        let Some(prefix) = table.def().options.prefix.as_deref().filter(|prefix| !prefix.is_empty()) else {
            return;
        };
        let catalog = self.catalog();
        let built_in = catalog.built_in();
        let shape = self.arena.scan_shape(built_in.id());
        let (mut locations, mut key) = (Vec::new(), Vec::new());
        for group in 0..shape.groups {
            let mut shard = self.shard_at(Arena::shard_of_group(group)).lock();
            locations.clear();
            self.arena.scan_group(&shard.token, shape, group, built_in.id(), &mut locations);
            for &location in &locations {
                let Some(read) = self.arena.row(location).filter(|row| row.head().table == built_in.id())
                else {
                    continue;
                };
                key.clear();
                read.copy_key(&mut key);
                if !key.starts_with(prefix.as_bytes()) {
                    continue;
                }
                let hash = self.arena.hash(built_in.id(), &key);
                if let Some(slot) = self.arena.find_location(&shard.token, hash, location) {
                    self.unpublish(&mut shard, built_in, Entry { slot, location }, Leaving::Invalidated);
                }
            }
        }
    }
}

fn load(arena: &Arenas, def: TableDef) -> Table {
    let id = TableId(def.id);
    let state = Arc::new(TableState::new(id));
    // Rows that are not proved yet are not in its indexes either.
    let whole = arena.is_proved();
    let index = |index| if whole { Index::new(index, &def) } else { Index::unfilled(index, &def) };
    let indexes: Vec<Arc<Index>> = indexes_of(&def).map(|def| Arc::new(index(def))).collect();
    state.maintained.store(Arc::new(indexes.clone()));
    let dead_below = arena.dead_below(id);
    state.limits.flushed_below.store(dead_below, Ordering::Release);
    state.census.begin(dead_below);
    state.emptied_below.store(dead_below, Ordering::Relaxed);
    state.limits.aged_below.store(arena.aged_below(id), Ordering::Relaxed);
    state.limits.flush_at.store(arena.flush_at(id), Ordering::Release);
    // Nobody writes yet.
    state.schema.store(def.schema, Ordering::Relaxed);
    state.numbers_below.store(def.numbers_below, Ordering::Relaxed);
    state.next_number.store(def.numbers_below.max(1), Ordering::Relaxed);
    Table::new(def, indexes, state)
}

/// The ordered indexes of a table: those defined, and the primary key's where it is composite or asked for.
pub(crate) fn indexes_of(def: &TableDef) -> impl Iterator<Item = IndexDef> {
    let ordered = def.primary_key.len() > 1 || (def.options.ordered && !def.has_row_id());
    let key = ordered.then(|| IndexDef::new(format!("{}_pkey", def.name), def.primary_key.clone(), false));
    key.into_iter().chain(def.indexes.clone())
}

/// The table of the memcached keys that no other table answers to.
pub(crate) fn built_in() -> TableDef {
    let column = |name: &str| ColumnDef {
        not_null: true,
        ..ColumnDef::new(name, "TEXT").unwrap_or_else(|_| unreachable!("TEXT is a type"))
    };
    let options = TableOptions { prefix: Some(String::new()), value: Some(1), ..TableOptions::default() };
    TableDef {
        id: BUILT_IN_ID.0,
        options,
        ..TableDef::new(BUILT_IN, vec![column("key"), column("value")], vec![0])
    }
}

pub(crate) fn found<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>, DdlError> {
    catalog.table(name).ok_or_else(|| ddl("42P01", format!("table \"{name}\" does not exist")))
}

pub(crate) fn check_index_names(catalog: &Catalog, def: &TableDef) -> Result<(), DdlError> {
    match def.indexes.iter().find(|index| catalog.index_owner(&index.name).is_some()) {
        Some(index) => Err(ddl("42P07", format!("index \"{}\" exists already", index.name))),
        None => Ok(()),
    }
}

/// Two tables must not answer to the same keys.
fn check_prefix(catalog: &Catalog, def: &TableDef, own: Option<TableId>) -> Result<(), DdlError> {
    let Some(prefix) = &def.options.prefix else { return Ok(()) };
    let taken =
        |table: &&Arc<Table>| Some(table.id()) != own && table.def().options.prefix.as_ref() == Some(prefix);
    match catalog.tables().find(taken) {
        Some(table) => Err(ddl("42P07", format!("prefix '{prefix}' belongs to table \"{}\"", table.name()))),
        None => Ok(()),
    }
}

/// Definitions that cannot be written at a start.
fn unsaved(options: &StoreOptions, error: &DdlError) -> StoreError {
    let arena = options.path.as_deref().unwrap_or_else(|| Path::new("anonymous memory"));
    StoreError::Catalogue(ddl(error.state, format!("{}: {}", arena.display(), error.message)))
}

pub(crate) fn ddl(state: &'static str, message: String) -> DdlError {
    DdlError { state, message }
}

impl From<DefinitionError> for DdlError {
    fn from(error: DefinitionError) -> Self {
        Self { state: error.sqlstate, message: error.message }
    }
}
