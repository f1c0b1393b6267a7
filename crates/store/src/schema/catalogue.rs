//! The definitions as bytes in the arena.
//!
//! JSON: a list of tables; where there is more, an object of tables, views and types. Fields that are not there have
//! their defaults, so older definitions still load.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Arenas, CatalogueError, TableId};
use serde::{Deserialize, Serialize};

use crate::definition::{
    ColumnDef, EnumDef, IndexDef, NamespaceDef, RoutineDef, SequenceDef, ServerDef, TableDef, TableOptions,
    ViewDef, within,
};
use crate::error::{DdlError, ddl};
use crate::limits::VIEW_ID_MAX;
use crate::schema::Schema;
use crate::schema::followed::Followed;
use crate::schema::open::{Before, take_back, undo};
use crate::table::catalog::{Apart, BUILT_IN, Catalog};
use crate::table::{Table, TableState};

/// All definitions, as they are written.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Definitions {
    pub(crate) tables: Vec<TableDef>,
    #[serde(default)]
    pub(crate) views: Vec<ViewDef>,
    #[serde(default)]
    pub(crate) enums: Vec<EnumDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) namespaces: Vec<NamespaceDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sequences: Vec<SequenceDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) routines: Vec<RoutineDef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<ServerDef>,
    /// How far sources were followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) followed: Vec<Followed>,
    /// What was there before the definitions of open transactions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<Before>,
}

impl Definitions {
    /// Of tables and nothing else.
    pub(crate) fn of(tables: Vec<TableDef>) -> Self {
        let (views, enums, namespaces) = (Vec::new(), Vec::new(), Vec::new());
        let (sequences, routines) = (Vec::new(), Vec::new());
        let (servers, followed, open) = (Vec::new(), Vec::new(), Vec::new());
        Self { tables, views, enums, namespaces, sequences, routines, servers, followed, open }
    }

    /// Those of a catalogue.
    fn now(catalog: &Catalog) -> Self {
        Self {
            views: catalog.views().map(|view| view.as_ref().clone()).collect(),
            enums: catalog.enums().iter().map(|own| own.as_ref().clone()).collect(),
            namespaces: catalog.namespaces().iter().map(|own| own.as_ref().clone()).collect(),
            sequences: catalog.sequences().iter().map(|own| own.written()).collect(),
            routines: catalog.routines().iter().map(|own| own.as_ref().clone()).collect(),
            servers: catalog.servers().iter().map(|own| own.as_ref().clone()).collect(),
            ..Self::of(catalog.tables().map(|table| written(table)).collect())
        }
    }

    /// Whether there are tables and nothing else.
    fn is_of_tables(&self) -> bool {
        self.views.is_empty()
            && self.enums.is_empty()
            && self.namespaces.is_empty()
            && self.sequences.is_empty()
            && self.routines.is_empty()
            && self.servers.is_empty()
            && self.followed.is_empty()
            && self.open.is_empty()
    }
}

/// What readers of an arena are shown: the tables in it, and the prefixes of others that take keys from these.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) tables: Vec<TableDef>,
    #[serde(default)]
    pub(crate) private: Vec<String>,
}

impl Schema {
    /// Writes the definitions to the arena.
    pub(crate) fn save(&self, catalog: &Catalog) -> Result<(), DdlError> {
        let bytes = self.written(catalog)?;
        let shown = serde_json::to_vec(&shown(catalog)).map_err(|error| ddl("XX000", error.to_string()))?;
        self.arena.set_catalogue(&bytes, &shown).map_err(refusal)
    }

    /// Writes what readers of shared memory are not shown, where nothing else has changed.
    pub(crate) fn save_private(&self, catalog: &Catalog) -> Result<(), DdlError> {
        self.arena.private().set_catalogue(&self.written(catalog)?).map_err(refusal)
    }

    /// Refuses a definition that takes what an open transaction of another's holds: then its `ROLLBACK` could not bring
    /// back what it dropped, or renamed. PostgreSQL waits for it.
    pub(crate) fn check_held(&self, new: &Catalog) -> Result<(), DdlError> {
        let others = self.open.lock().of_others();
        if others.is_empty() {
            return Ok(());
        }
        let now = Definitions::now(&self.catalog());
        let there = names(&now);
        let taken: HashSet<Taken> = names(&Definitions::now(new)).difference(&there).cloned().collect();
        for steps in &others {
            let mut before = now.clone();
            undo(&mut before, steps);
            if let Some((kind, name)) = names(&before).difference(&there).find(|held| taken.contains(*held)) {
                return Err(ddl(
                    "55006",
                    format!(
                        "the {kind} \"{name}\" is held by a transaction that has not ended; try again when it has"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The definitions as bytes.
    fn written(&self, catalog: &Catalog) -> Result<Vec<u8>, DdlError> {
        let followed = self.followed.lock().written(catalog);
        let open = self.open.lock().written(catalog);
        let all = Definitions { followed, open, ..Definitions::now(catalog) };
        let bytes =
            if all.is_of_tables() { serde_json::to_vec(&all.tables) } else { serde_json::to_vec(&all) };
        bytes.map_err(|error| ddl("XX000", error.to_string()))
    }
}

/// A table's definition with the numbers that it has given out by now.
pub(crate) fn written(table: &Table) -> TableDef {
    // Acquire: pairs with the Release of who raised it.
    let numbers_below = table.state.numbers_below.load(Ordering::Acquire);
    TableDef { numbers_below, ..table.def().clone() }
}

fn refusal(error: CatalogueError) -> DdlError {
    match error {
        CatalogueError::TooLarge(_) => ddl("53200", error.to_string()),
        CatalogueError::NoSpace => {
            ddl("53100", format!("{error}; enlarge the arena's file system (for Docker: --shm-size)"))
        }
    }
}

/// What readers of the shared arena are to know: its tables, and of the others only the prefixes that take keys from
/// these.
fn shown(catalog: &Catalog) -> Shown {
    let (shared, private): (Vec<_>, Vec<_>) = catalog.tables().partition(|table| table.id().is_shared());
    let tables: Vec<TableDef> = shared.iter().map(|table| table.def().clone()).collect();
    let prefix = |def: &TableDef| def.options.prefix.clone();
    let takes = |own: &String| tables.iter().filter_map(prefix).any(|other| own.starts_with(&other));
    let private = private.iter().filter_map(|table| prefix(table.def())).filter(takes).collect();
    Shown { tables, private }
}

/// The definitions of an earlier process, without those of its open transactions, and the numbers of the tables whose
/// rows went with these; none where they do not make sense.
pub(crate) fn read_catalogue(arena: &Arenas) -> Option<(Definitions, Vec<u16>)> {
    let bytes = arena.private().catalogue()?;
    let mut found: Definitions = serde_json::from_slice(&bytes)
        .or_else(|_| serde_json::from_slice(&bytes).map(Definitions::of))
        .ok()?;
    // Before a column is taken out of a definition, and after that.
    if !found.tables.iter().all(|def| def.validate().is_ok()) {
        return None;
    }
    found.tables.iter_mut().for_each(forget_pending);
    if !are_sound(&found) {
        return None;
    }
    if found.open.is_empty() {
        return Some((found, Vec::new()));
    }
    // Two of now are no reason against what was before: a rename may have led there.
    let twice = taken_twice(&found);
    let fits = |before: &Definitions| are_sound(before) && taken_twice(before).is_subset(&twice);
    Some(take_back(&found, fits))
}

/// What a definition takes for itself: of which kind, and its name or prefix.
type Taken = (&'static str, String);

/// Prefixes, indexes and types of which there are two of one name.
fn taken_twice(found: &Definitions) -> HashSet<Taken> {
    let mut seen = HashSet::new();
    of_tables_and_types(found).filter(|taken| !seen.insert(taken.clone())).collect()
}

/// All that definitions take.
fn names(found: &Definitions) -> HashSet<Taken> {
    let tables = found.tables.iter().map(|def| &def.name);
    let relations = tables.chain(found.views.iter().map(|own| &own.name));
    let relations =
        relations.chain(found.sequences.iter().map(|own| &own.name)).map(|name| ("relation", name));
    let schemas = found.namespaces.iter().map(|own| ("schema", &own.name));
    let routines = found.routines.iter().map(|own| ("function", &own.name));
    let servers = found.servers.iter().map(|own| ("server", &own.name));
    let others = relations.chain(schemas).chain(routines).chain(servers);
    of_tables_and_types(found).chain(others.map(|(kind, name)| (kind, name.to_lowercase()))).collect()
}

fn of_tables_and_types(found: &Definitions) -> impl Iterator<Item = Taken> {
    let prefixes = found.tables.iter().filter_map(|def| def.options.prefix.clone());
    let indexes = found.tables.iter().flat_map(|def| {
        let names: HashSet<String> =
            indexes_of(def).map(|index| index.name).chain(def.key_name.clone()).collect();
        names.into_iter().map(|name| def.qualified(&name).to_lowercase())
    });
    let types = found.enums.iter().map(|own| own.name.to_lowercase());
    let named = prefixes.map(|name| ("prefix", name)).chain(indexes.map(|name| ("index", name)));
    named.chain(types.map(|name| ("type", name)))
}

/// Whether definitions go together. A check field guards them against chance, not against who can write the file.
fn are_sound(found: &Definitions) -> bool {
    let Definitions { tables, views, enums, namespaces, sequences, routines, servers, followed: _, open: _ } =
        found;
    let mut schemas = HashSet::new();
    let schemas_are =
        namespaces.iter().all(|own| own.validate().is_ok() && schemas.insert(own.name.to_lowercase()));
    let has_schema = |namespace: Option<&str>, name: &str| {
        namespace.is_none_or(|own| schemas.contains(&own.to_lowercase())) && within(namespace, name).is_some()
    };
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    let mut types = HashSet::new();
    let enums_are = enums.iter().all(|own| {
        types.insert(own.id) && own.validate().is_ok() && has_schema(own.namespace.as_deref(), &own.name)
    });
    let tables_are = tables.iter().all(|def| {
        let has_own_id = def.id > 0 && ids.insert(def.id);
        let is_in_its_file = TableId(def.id).is_shared() == def.options.shared_memory;
        let mut enumerations = def.columns.iter().filter_map(|column| column.enumeration.as_ref());
        let has_types = enumerations.all(|own| types.contains(&own.id));
        let is_named =
            names.insert(def.name.to_lowercase()) && has_schema(def.namespace.as_deref(), &def.name);
        has_own_id && is_in_its_file && has_types && is_named && def.validate().is_ok()
    });
    let views_are = views.iter().all(|view| {
        let is_named = has_schema(view.namespace.as_deref(), &view.name);
        view.id < VIEW_ID_MAX && is_named && names.insert(view.name.to_lowercase())
    });
    let mut numbers = HashSet::new();
    let sequences_are = sequences.iter().all(|own| {
        let is_named = has_schema(own.namespace.as_deref(), &own.name);
        numbers.insert(own.id) && is_named && names.insert(own.name.to_lowercase()) && own.validate().is_ok()
    });
    let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
    let routines_are = routines.iter().all(|own| {
        let is_named = has_schema(own.namespace.as_deref(), &own.name);
        numbers.insert(own.id) && is_named && names.insert(own.name.to_lowercase()) && own.validate().is_ok()
    });
    let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
    let servers_are = servers
        .iter()
        .all(|own| numbers.insert(own.id) && names.insert(own.name.to_lowercase()) && own.validate().is_ok());
    schemas_are
        && servers_are
        && routines_are
        && sequences_are
        && enums_are
        && tables_are
        && views_are
        && tables.iter().find(|def| def.name == BUILT_IN).is_some_and(is_built_in)
}

/// Whether a definition is that of the table which memcached's clients meet: its key and its value are text.
fn is_built_in(def: &TableDef) -> bool {
    let expected = built_in();
    let own = def.columns.iter().zip(&expected.columns);
    let mut alike = own.map(|(own, expected)| {
        // What may be done with a column is no matter of its shape.
        ColumnDef { grants: Vec::new(), ..own.clone() } == *expected
    });
    def.columns.len() >= expected.columns.len()
        && alike.all(|alike| alike)
        && def.primary_key == expected.primary_key
        && def.options.value == expected.options.value
        && def.options.prefix == expected.options.prefix
}

/// The definitions that another process wrote for its readers; none where they do not make sense.
pub(crate) fn read_shown(bytes: &[u8]) -> Option<Shown> {
    let mut shown: Shown = serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_slice(bytes).map(|tables| Shown { tables, private: Vec::new() }))
        .ok()?;
    shown.tables.retain(|def| def.validate().is_ok());
    Some(shown)
}

/// Drops columns that a process which ended did not live to finish: nobody has seen them.
fn forget_pending(def: &mut TableDef) {
    while let Some(at) = def.columns.iter().rposition(|column| column.pending) {
        def.remove_column(at);
    }
    def.checks.retain(|check| check.not_null.is_none());
}

/// The catalogue of these definitions. Columns of enum types take over these as they are now.
pub(crate) fn catalog_of(
    generation: u64,
    tables: Vec<Arc<Table>>,
    apart: Apart,
) -> Result<Catalog, DdlError> {
    let resolved = tables.into_iter().map(|table| resolved(table, &apart.enums));
    let tables = resolved.collect::<Result<Vec<_>, _>>()?;
    let (own, others): (Vec<_>, Vec<_>) = tables.into_iter().partition(|table| table.name() == BUILT_IN);
    let own = own.into_iter().next().unwrap_or_else(|| {
        Arc::new(Table::new(built_in(), Vec::new(), Arc::new(TableState::new(BUILT_IN_ID))))
    });
    Ok(Catalog::new(generation, own, others, apart))
}

/// A table whose columns have the enum types of now.
fn resolved(table: Arc<Table>, enums: &[Arc<EnumDef>]) -> Result<Arc<Table>, DdlError> {
    let now = |own: &Arc<EnumDef>| enums.iter().find(|now| now.id == own.id);
    let stale = |column: &ColumnDef| {
        column.enumeration.as_ref().is_some_and(|own| now(own).is_none_or(|now| !Arc::ptr_eq(own, now)))
    };
    if !table.def().columns.iter().any(stale) {
        return Ok(table);
    }
    let mut def = table.def().clone();
    for column in &mut def.columns {
        let Some(own) = &column.enumeration else { continue };
        let now = now(own).ok_or_else(|| ddl("42704", format!("type \"{}\" does not exist", own.name)))?;
        column.resolve(now);
    }
    Ok(Arc::new(Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state))))
}

/// Number of the built-in table.
pub(crate) const BUILT_IN_ID: TableId = TableId(1);

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

/// The ordered indexes of a table: those defined, and the primary key's where it is composite or asked for.
pub(crate) fn indexes_of(def: &TableDef) -> impl Iterator<Item = IndexDef> {
    let ordered = def.primary_key.len() > 1 || (def.options.ordered && !def.has_row_id());
    let key = ordered.then(|| IndexDef::new(def.key_name(), def.primary_key.clone(), false));
    key.into_iter().chain(def.indexes.clone())
}
