//! All tables at one moment: found by name, by index name, and by the prefix of a memcached key.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::definition::{
    EnumDef, ExpiryRule, NamespaceDef, RoutineDef, ServerDef, TableDef, ViewDef, own_name, qualified, within,
};
use crate::error::{DdlError, ddl};
use crate::table::Table;
use crate::table::sequence::Sequence;

/// The schema of all that has none of its own.
const PUBLIC: &str = "public";

/// Name of the table in which memcached keys live that no other table answers to.
pub const BUILT_IN: &str = "memcached";

/// What is defined beside the tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    pub(crate) views: Vec<Arc<ViewDef>>,
    pub(crate) enums: Vec<Arc<EnumDef>>,
    pub(crate) namespaces: Vec<Arc<NamespaceDef>>,
    pub(crate) sequences: Vec<Arc<Sequence>>,
    pub(crate) routines: Vec<Arc<RoutineDef>>,
    pub(crate) servers: Vec<Arc<ServerDef>>,
}

/// An immutable picture of all definitions.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Changes with every definition; statement caches are keyed by it.
    pub generation: u64,
    built_in: Arc<Table>,
    /// By name in lower case.
    tables: BTreeMap<String, Arc<Table>>,
    /// By name in lower case.
    views: BTreeMap<String, Arc<ViewDef>>,
    /// By their numbers.
    enums: Arc<[Arc<EnumDef>]>,
    /// The schemas beside `public`, by name.
    namespaces: Arc<[Arc<NamespaceDef>]>,
    /// By name.
    sequences: Arc<[Arc<Sequence>]>,
    /// Functions and procedures, by name.
    routines: Arc<[Arc<RoutineDef>]>,
    /// Foreign servers, by name.
    servers: Arc<[Arc<ServerDef>]>,
    /// Where names without a schema are looked for; empty: in `public`.
    path: Arc<[String]>,
    /// The tables with a bound of their own on rows, memory or operations, by name.
    limited: Vec<Arc<Table>>,
    /// The tables with expiry rules, by name: somebody asks for them at each tick.
    ruled: Vec<Arc<Table>>,
    /// The materialized views, for the same reason.
    materialized: Vec<Arc<Table>>,
    /// Prefix and table, the longest prefix first, so that the first match is the right one.
    prefixes: Vec<(Box<[u8]>, Arc<Table>)>,
    /// Whether single columns were granted of any table.
    grants_columns: bool,
    /// Whether any table mirrors one of a source.
    has_mirrors: bool,
    /// Whether any table may refuse who reads it.
    has_refusing: bool,
    has_told: bool,
}

impl Catalog {
    pub(crate) fn new(
        generation: u64,
        built_in: Arc<Table>,
        others: impl IntoIterator<Item = Arc<Table>>,
        Apart { views, mut enums, mut namespaces, mut sequences, mut routines, mut servers }: Apart,
    ) -> Self {
        enums.sort_by_key(|own| own.id);
        sequences.sort_by(|one, other| one.def().name.cmp(&other.def().name));
        routines.sort_by(|one, other| one.name.cmp(&other.name));
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        namespaces.sort_by(|one, other| one.name.cmp(&other.name));
        let mut catalog = Self {
            generation,
            built_in: Arc::clone(&built_in),
            tables: BTreeMap::new(),
            views: views.into_iter().map(|view| (view.name.to_lowercase(), view)).collect(),
            enums: enums.into(),
            namespaces: namespaces.into(),
            sequences: sequences.into(),
            routines: routines.into(),
            servers: servers.into(),
            path: Arc::default(),
            limited: Vec::new(),
            ruled: Vec::new(),
            materialized: Vec::new(),
            prefixes: Vec::new(),
            grants_columns: false,
            has_mirrors: false,
            has_refusing: false,
            has_told: false,
        };
        for table in others.into_iter().chain([built_in]) {
            if let Some(prefix) = table.def().options.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                catalog.prefixes.push((prefix.as_bytes().into(), Arc::clone(&table)));
            }
            catalog.grants_columns |= table.def().columns.iter().any(|column| !column.grants.is_empty());
            catalog.has_mirrors |= table.is_mirror();
            catalog.has_refusing |= table.may_refuse();
            catalog.has_told |= table.is_told();
            catalog.tables.insert(table.name().to_lowercase(), table);
        }
        let those = |is_one: fn(&TableDef) -> bool| {
            catalog.tables().filter(|table| is_one(table.def())).cloned().collect()
        };
        (catalog.limited, catalog.ruled, catalog.materialized) = (
            those(|def| def.options.limits_itself()),
            those(|def| !def.rules.is_empty()),
            those(|def| def.materialized.is_some()),
        );
        catalog.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        catalog
    }

    /// Whether single columns were granted of any table.
    pub fn grants_columns(&self) -> bool {
        self.grants_columns
    }

    /// Whether any table mirrors one of a source.
    #[inline]
    pub fn has_mirrors(&self) -> bool {
        self.has_mirrors
    }

    /// Whether other caches hear of any table.
    #[inline]
    pub fn has_told(&self) -> bool {
        self.has_told
    }

    /// Whether any table may refuse who reads it: a mirror, and one with `on_lag = 'fail'`.
    pub fn has_refusing(&self) -> bool {
        self.has_refusing
    }

    /// A table by its name, in any case.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name).or_else(|| self.tables.get(&name.to_lowercase()))
    }

    /// A table as it is defined now: by its state, for a name may have gone to another.
    pub fn current(&self, table: &Table) -> Option<&Arc<Table>> {
        self.tables().find(|now| Arc::ptr_eq(&now.state, &table.state))
    }

    /// All tables by name.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// The tables with a bound of their own on rows, memory or operations.
    pub(crate) fn limited_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.limited.iter()
    }

    /// The tables with expiry rules.
    pub fn ruled_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.ruled.iter()
    }

    /// The materialized views.
    pub fn materialized_views(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.materialized.iter()
    }

    /// A view by its name, in any case.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewDef>> {
        self.views.get(name).or_else(|| self.views.get(&name.to_lowercase()))
    }

    /// All views by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewDef>> {
        self.views.values()
    }

    /// All enum types by their numbers.
    pub fn enums(&self) -> &Arc<[Arc<EnumDef>]> {
        &self.enums
    }

    /// An enum type by its name, in any case.
    pub fn enumeration(&self, name: &str) -> Option<&Arc<EnumDef>> {
        self.enums.iter().find(|own| own.name.eq_ignore_ascii_case(name))
    }

    /// An enum type by its number.
    pub fn enum_of(&self, id: u16) -> Option<&Arc<EnumDef>> {
        self.enums.binary_search_by_key(&id, |own| own.id).ok().map(|at| &self.enums[at])
    }

    /// What is defined beside the tables.
    pub(crate) fn apart(&self) -> Apart {
        let views = self.views().cloned().collect();
        Apart {
            views,
            enums: self.enums.to_vec(),
            namespaces: self.namespaces.to_vec(),
            sequences: self.sequences.to_vec(),
            routines: self.routines.to_vec(),
            servers: self.servers.to_vec(),
        }
    }

    /// The table of the memcached keys that no prefix claims.
    pub fn built_in(&self) -> &Arc<Table> {
        &self.built_in
    }

    /// The table that answers to a memcached key, and the key without its prefix.
    #[inline]
    pub fn route<'k>(&self, key: &'k [u8]) -> (&Arc<Table>, &'k [u8]) {
        for (prefix, table) in &self.prefixes {
            if let Some(rest) = key.strip_prefix(&**prefix) {
                return (table, rest);
            }
        }
        (&self.built_in, key)
    }

    /// The table in which memcached's clients find a key: as [`Catalog::route`] says, unless it is no key of that table
    /// and the table leaves such keys to the built-in one.
    pub fn owner(&self, key: &[u8]) -> &Arc<Table> {
        let (table, rest) = self.route(key);
        let falls = table.def().options.loose_keys && table.keys().from_text(rest, &mut Vec::new()).is_err();
        if falls { &self.built_in } else { table }
    }

    /// An expiry rule by its name, and its table.
    pub fn rule(&self, name: &str) -> Option<(&Arc<Table>, &ExpiryRule)> {
        let rules = self.tables().flat_map(|table| table.def().rules.iter().map(move |rule| (table, rule)));
        rules.into_iter().find(|(_, rule)| rule.name.eq_ignore_ascii_case(name))
    }

    /// The table that an index belongs to.
    pub fn index_owner(&self, index: &str) -> Option<&Arc<Table>> {
        self.tables().find(|table| {
            let index = within(table.def().namespace.as_deref(), index);
            let is_so = |index| table.indexes().iter().any(|own| own.name().eq_ignore_ascii_case(index));
            index.is_some_and(is_so)
        })
    }

    /// Whether an index or the constraint of a key has this name.
    pub fn has_index(&self, name: &str) -> bool {
        let of_key = |table: &Arc<Table>| {
            let own = within(table.def().namespace.as_deref(), name);
            own.is_some_and(|own| table.def().is_key_name(own))
        };
        self.index_owner(name).is_some() || self.tables().any(of_key)
    }

    /// The schemas beside `public`, by name.
    pub fn namespaces(&self) -> &[Arc<NamespaceDef>] {
        &self.namespaces
    }

    /// One of these by its name, in any case.
    pub fn namespace(&self, name: &str) -> Option<&Arc<NamespaceDef>> {
        self.namespaces.iter().find(|own| own.name.eq_ignore_ascii_case(name))
    }

    /// All sequences by name.
    pub fn sequences(&self) -> &[Arc<Sequence>] {
        &self.sequences
    }

    /// One of these by its name, in any case.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        self.sequences.iter().find(|own| own.def().name.eq_ignore_ascii_case(name))
    }

    /// All functions and procedures, by name.
    pub fn routines(&self) -> &[Arc<RoutineDef>] {
        &self.routines
    }

    /// One of these by its name, in any case.
    pub fn routine(&self, name: &str) -> Option<&Arc<RoutineDef>> {
        self.routines.iter().find(|own| own.name.eq_ignore_ascii_case(name))
    }

    /// All foreign servers, by name.
    pub fn servers(&self) -> &[Arc<ServerDef>] {
        &self.servers
    }

    /// One of these by its name, in any case.
    pub fn server(&self, name: &str) -> Option<&Arc<ServerDef>> {
        self.servers.iter().find(|own| own.name.eq_ignore_ascii_case(name))
    }

    /// What is in a schema: the names of tables, views, sequences, enum types and routines, with what they are.
    pub fn names_in<'c>(&'c self, namespace: &'c str) -> impl Iterator<Item = (&'static str, &'c str)> {
        let here =
            move |own: &Option<String>| own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(namespace));
        let tables = self.tables().filter(move |table| here(&table.def().namespace));
        let views = self.views().filter(move |view| here(&view.namespace));
        let sequences = self.sequences.iter().filter(move |own| here(&own.def().namespace));
        let enums = self.enums.iter().filter(move |own| here(&own.namespace));
        let routines = self.routines.iter().filter(move |own| here(&own.namespace));
        (tables.map(|table| ("table", table.name())))
            .chain(views.map(|view| ("view", view.name.as_str())))
            .chain(sequences.map(|own| ("sequence", own.def().name.as_str())))
            .chain(enums.map(|own| ("type", own.name.as_str())))
            .chain(routines.map(|own| (own.word(), own.name.as_str())))
    }

    /// The same definitions for a session that looks for names in these schemas.
    #[must_use]
    pub fn with_path(&self, path: Arc<[String]>) -> Self {
        Self { path, ..self.clone() }
    }

    /// The schemas in which names are looked for; empty: `public`.
    pub fn path(&self) -> &Arc<[String]> {
        &self.path
    }

    /// The name in the store of what a session calls so: `is` says which names there are. Where there is none, nothing
    /// has the name that is returned, either.
    pub fn found_name(&self, name: &str, is: impl Fn(&Self, &str) -> bool) -> String {
        let mut places = self.path.iter().filter_map(|schema| self.name_in(schema, name));
        places.find(|name| is(self, name)).unwrap_or_else(|| self.unfound(name))
    }

    /// What is in `public` and is not looked for there has another name. The built-in table is found everywhere.
    fn unfound(&self, name: &str) -> String {
        let sees_public = self.path.iter().any(|schema| schema.eq_ignore_ascii_case(PUBLIC));
        match self.path.first() {
            Some(first) if !sees_public && name != BUILT_IN => qualified(Some(first), name),
            _ => name.to_owned(),
        }
    }

    /// The name in the store of something in a schema that is `public` or one of users.
    pub fn name_in(&self, schema: &str, name: &str) -> Option<String> {
        let own = self.namespace(schema);
        let known = own.is_some() || schema.eq_ignore_ascii_case(PUBLIC);
        known.then(|| qualified(own.map(|own| own.name.as_str()), name))
    }

    /// Whether what has this name in the store is found by its own name alone.
    pub fn is_visible(&self, namespace: Option<&str>, name: &str) -> bool {
        if self.path.is_empty() {
            namespace.is_none()
        } else {
            self.found_name(own_name(namespace, name), Self::has) == name
        }
    }

    /// Whether a table, a view, an index or an enum type has this name.
    pub fn has(&self, name: &str) -> bool {
        self.table(name).is_some()
            || self.view(name).is_some()
            || self.enumeration(name).is_some()
            || self.sequence(name).is_some()
            || self.has_index(name)
    }

    /// The schema in which a session makes what it names without one; none is `public`.
    pub fn current_namespace(&self) -> Option<&Arc<NamespaceDef>> {
        let known =
            |schema: &&String| schema.eq_ignore_ascii_case(PUBLIC) || self.namespace(schema).is_some();
        self.path.iter().find(known).and_then(|schema| self.namespace(schema))
    }
}

pub(crate) fn found<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>, DdlError> {
    catalog.table(name).ok_or_else(|| ddl("42P01", format!("table \"{name}\" does not exist")))
}
