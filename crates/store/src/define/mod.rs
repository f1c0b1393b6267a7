//! Definitions: tables and indexes come, change and go by one swap of the catalogue, in the arena and in memory.

pub(crate) mod access;
pub(crate) mod alter;
pub(crate) mod dropped;
pub(crate) mod enums;
pub(crate) mod indexes;
pub(crate) mod namespaces;
pub(crate) mod routines;
pub(crate) mod rules;
pub(crate) mod sequences;
pub(crate) mod servers;
pub(crate) mod sharing;
pub(crate) mod take_back;
pub(crate) mod views;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Arena, Arenas, Entry, TableId};

use crate::define::alter::check_relation_name;
use crate::define::namespaces::unknown_namespace;
use crate::define::sharing::open_arenas;
use crate::definition::{ColumnDef, DefinitionError, TableDef, TableOptions};
use crate::error::{DdlError, ddl};
use crate::files::shared_path_beside;
use crate::index::Index;
use crate::schema::catalogue::{Definitions, built_in, catalog_of, indexes_of, read_catalogue};
use crate::store::{Opened, Store, StoreError, StoreOptions};
use crate::table::catalog::{Apart, BUILT_IN, Catalog, found};
use crate::table::removal_cause::RemovalCause;
use crate::table::sequence::Sequence;
use crate::table::{Table, TableState};

/// Edits the options of a table; gets its columns, for an option may name one.
pub type OptionsChange<'a> = dyn FnMut(&mut TableOptions, &[ColumnDef]) -> Result<(), DefinitionError> + 'a;

/// The share of the memory that tables may have for themselves, in per cent: the rest is for hash index, ordered
/// indexes and tables that reserve nothing.
const RESERVED_PER_CENT: u64 = 75;

impl Store {
    /// Opens the arena of an earlier process, or a new one. Rows are served at once;
    /// [`Recovery::recover`](crate::Recovery::recover) is to be called by a thread that has the time.
    pub fn open(options: &StoreOptions) -> Result<Opened, StoreError> {
        Self::open_with(options, options.path.as_deref().map(shared_path_beside))
    }

    /// As [`Store::open`], with the file of the tables that other processes may read; none where there shall be no
    /// such.
    pub fn open_with(options: &StoreOptions, shared: Option<PathBuf>) -> Result<Opened, StoreError> {
        let (arena, start) = open_arenas(options, shared.as_deref()).map_err(StoreError::Arena)?;
        let (found, emptied) =
            read_catalogue(&arena).unwrap_or_else(|| (Definitions::of(vec![built_in()]), Vec::new()));
        let Definitions { tables, views, enums, namespaces, sequences, routines, servers, followed, open: _ } =
            found;
        let handles = tables.into_iter().map(|def| Arc::new(load(&arena, def))).collect();
        let views = views.into_iter().map(Arc::new).collect();
        let enums = enums.into_iter().map(Arc::new).collect();
        let namespaces = namespaces.into_iter().map(Arc::new).collect();
        let sequences = sequences.into_iter().map(|def| Arc::new(Sequence::new(def))).collect();
        let routines = routines.into_iter().map(Arc::new).collect();
        let servers = servers.into_iter().map(Arc::new).collect();
        let apart = Apart { views, enums, namespaces, sequences, routines, servers };
        let catalog = catalog_of(1, handles, apart).map_err(StoreError::Catalogue)?;
        let store = Arc::new(Self::assemble(arena, options, shared, catalog));
        store.followed.lock().0 = followed;
        store.find_shared()?;
        // First: after a death in between, the same rows go again.
        let is_emptied = |table: &&Arc<Table>| emptied.contains(&table.id().0);
        store.catalog().tables().filter(is_emptied).for_each(|table| store.flush(table));
        store.save(&store.catalog()).map_err(|error| unsaved(options, &error))?;
        store.begin_recovery();
        store.checkpoint(store.now());
        store.resume_flush();
        store.share_memory(store.now());
        Ok(Opened { store, start })
    }

    /// Makes a table. Rows of the built-in table whose keys it answers to are removed.
    pub fn create_table(&self, def: TableDef) -> Result<Arc<Table>, DdlError> {
        self.create_table_claiming(def).map(|(table, _)| table)
    }

    /// As [`Store::create_table`]; says also how many rows of the built-in table were removed.
    pub fn create_table_claiming(&self, mut def: TableDef) -> Result<(Arc<Table>, u64), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        check_relation_name(&catalog, &def.name)?;
        check_namespace(&catalog, def.namespace.as_deref())?;
        def.check_width(0)?;
        def.validate()?;
        check_index_names(&catalog, &def)?;
        check_prefix(&catalog, &def, None)?;
        self.check_reserves(&catalog, &def)?;
        def.schema = 1;
        def.numbers_below = 0;
        let table = self.empty_table(&catalog, def)?;
        // Nobody writes yet.
        table.state.next_number.store(table.def().numbers_from.max(1), Ordering::Relaxed);
        self.install(catalog.tables().cloned().chain([Arc::clone(&table)]).collect())?;
        let claimed = self.claim_prefix(&table);
        Ok((table, claimed))
    }

    /// Removes a table and its rows.
    pub fn drop_table(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = found(&catalog, name)?;
        if table.name() == BUILT_IN {
            return Err(ddl("42501", format!("table \"{BUILT_IN}\" is built in; use TRUNCATE to empty it")));
        }
        let mut apart = catalog.apart();
        let goes = |owner: &(u16, String)| owner.0 == table.id().0;
        apart.sequences.retain(|sequence| !sequence.def().owner.as_ref().is_some_and(goes));
        self.install_after(
            catalog.tables().filter(|other| other.id() != table.id()).cloned().collect(),
            apart,
            || self.end_table(table),
        )?;
        self.bury(table);
        Ok(())
    }

    /// Makes a table's rows invisible at once.
    pub fn truncate(&self, table: &Table) {
        self.flush(table);
    }

    /// Changes a table's options. Says how many rows of the built-in table were removed, because the table answers to
    /// their keys now.
    pub fn set_options(&self, name: &str, change: &mut OptionsChange<'_>) -> Result<u64, DdlError> {
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
        if def.source_of_view() != table.def().source_of_view() {
            let message = "the source of a materialized view cannot change; create the view again";
            return Err(ddl("0A000", message.into()));
        }
        check_prefix(&catalog, &def, Some(table.id()))?;
        if def.options.shared_memory != table.def().options.shared_memory {
            if let Some(view) = &mut def.materialized {
                view.populated = false;
            }
            self.change_file(&catalog, table, def)?;
            self.catalog().table(name).into_iter().for_each(|table| table.ask_for_refresh());
            return Ok(self.claim_new_prefix(name));
        }
        self.check_reserves(&catalog, &def)?;
        // What has expired under the old rule stays dead, in the next process too.
        self.arena.of(table.id()).set_aged_below(table.id(), self.aged_below(&table.state, self.now()));
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        if let Err(error) = self.replace(&catalog, changed) {
            table.state.apply(table.def());
            return Err(error);
        }
        Ok(self.claim_new_prefix(name))
    }

    /// A table that was given other options takes the keys that it answers to now.
    fn claim_new_prefix(&self, name: &str) -> u64 {
        self.catalog().table(name).map_or(0, |table| self.claim_prefix(table))
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

    /// Rows of the built-in table under keys that a table now answers to would be out of reach: they go. How many live
    /// ones is returned.
    fn claim_prefix(&self, table: &Table) -> u64 {
        let Some(prefix) = table.def().options.prefix.as_deref().filter(|prefix| !prefix.is_empty()) else {
            return 0;
        };
        let answers_to = |key: &[u8]| {
            let rest = key.strip_prefix(prefix.as_bytes());
            let loose = table.def().options.loose_keys;
            rest.is_some_and(|rest| !loose || table.keys().from_text(rest, &mut Vec::new()).is_ok())
        };
        let (now, mut claimed) = (self.now(), 0);
        let catalog = self.catalog();
        let built_in = catalog.built_in();
        let shape = self.arena.of(built_in.id()).scan_shape();
        let (mut locations, mut key) = (Vec::new(), Vec::new());
        for group in 0..shape.groups {
            let mut shard = self.shard_at(Arena::shard_of_group(group)).lock();
            locations.clear();
            self.arena.of(built_in.id()).scan_group(
                &shard.token,
                shape,
                group,
                built_in.id(),
                &mut locations,
            );
            for &location in &locations {
                let Some(read) =
                    self.arena.of(location).row(location).filter(|row| row.head().table == built_in.id())
                else {
                    continue;
                };
                key.clear();
                read.copy_key(&mut key);
                if !answers_to(&key) {
                    continue;
                }
                let is_live = self.is_live(built_in, read.head(), now);
                let hash = self.arena.of(built_in.id()).hash(built_in.id(), &key);
                if let Some(slot) = self.arena.of(location).find_location(&shard.token, hash, location) {
                    self.unpublish(&mut shard, built_in, Entry { slot, location }, RemovalCause::Invalidated);
                    claimed += u64::from(is_live);
                }
            }
        }
        claimed
    }
}

pub(crate) fn load(arena: &Arenas, def: TableDef) -> Table {
    let id = TableId(def.id);
    let state = Arc::new(TableState::new(id));
    // Rows that are not proved yet are not in its indexes either.
    let whole = arena.is_proved();
    let index = |index| if whole { Index::new(index, &def) } else { Index::unfilled(index, &def) };
    let indexes: Vec<Arc<Index>> = indexes_of(&def).map(|def| Arc::new(index(def))).collect();
    state.maintained.store(Arc::new(indexes.clone()));
    let dead_below = arena.of(id).dead_below(id);
    state.limits.flushed_below.store(dead_below, Ordering::Release);
    state.row_count.begin(dead_below);
    state.emptied_below.store(dead_below, Ordering::Relaxed);
    state.limits.aged_below.store(arena.of(id).aged_below(id), Ordering::Relaxed);
    state.limits.flush_at.store(arena.of(id).flush_at(id), Ordering::Release);
    // Nobody writes yet.
    state.schema.store(def.schema, Ordering::Relaxed);
    state.numbers_below.store(def.numbers_below, Ordering::Relaxed);
    state.next_number.store(def.numbers_below.max(def.numbers_from).max(1), Ordering::Relaxed);
    Table::new(def, indexes, state)
}

pub(crate) fn check_index_names(catalog: &Catalog, def: &TableDef) -> Result<(), DdlError> {
    if let Some(name) = &def.key_name
        && catalog.has_index(&def.qualified(name))
    {
        return Err(ddl("42P07", format!("relation \"{name}\" already exists")));
    }
    match def.indexes.iter().find(|index| catalog.index_owner(&def.qualified(&index.name)).is_some()) {
        Some(index) => Err(ddl("42P07", format!("index \"{}\" exists already", index.name))),
        None => Ok(()),
    }
}

/// What is made must have a schema to be in.
pub(crate) fn check_namespace(catalog: &Catalog, namespace: Option<&str>) -> Result<(), DdlError> {
    match namespace.filter(|name| catalog.namespace(name).is_none()) {
        Some(name) => Err(unknown_namespace(name)),
        None => Ok(()),
    }
}

/// Two tables must not answer to the same keys.
pub(crate) fn check_prefix(catalog: &Catalog, def: &TableDef, own: Option<TableId>) -> Result<(), DdlError> {
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
