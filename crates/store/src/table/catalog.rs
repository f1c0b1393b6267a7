//! All tables at one moment: found by name, by index name, and by the prefix of a memcached key.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::definition::{EnumDef, ExpiryRule, ViewDef};
use crate::error::{DdlError, ddl};
use crate::table::Table;

/// Name of the table in which memcached keys live that no other table answers to.
pub const BUILT_IN: &str = "memcached";

/// What is defined beside the tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    pub(crate) views: Vec<Arc<ViewDef>>,
    pub(crate) enums: Vec<Arc<EnumDef>>,
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
    /// Prefix and table, the longest prefix first, so that the first match is the right one.
    prefixes: Vec<(Box<[u8]>, Arc<Table>)>,
}

impl Catalog {
    pub(crate) fn new(
        generation: u64,
        built_in: Arc<Table>,
        others: impl IntoIterator<Item = Arc<Table>>,
        Apart { views, mut enums }: Apart,
    ) -> Self {
        enums.sort_by_key(|own| own.id);
        let mut catalog = Self {
            generation,
            built_in: Arc::clone(&built_in),
            tables: BTreeMap::new(),
            views: views.into_iter().map(|view| (view.name.to_lowercase(), view)).collect(),
            enums: enums.into(),
            prefixes: Vec::new(),
        };
        for table in others.into_iter().chain([built_in]) {
            if let Some(prefix) = table.def().options.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                catalog.prefixes.push((prefix.as_bytes().into(), Arc::clone(&table)));
            }
            catalog.tables.insert(table.name().to_lowercase(), table);
        }
        catalog.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        catalog
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
        Apart { views: self.views().cloned().collect(), enums: self.enums.to_vec() }
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

    /// An expiry rule by its name, and its table.
    pub fn rule(&self, name: &str) -> Option<(&Arc<Table>, &ExpiryRule)> {
        let rules = self.tables().flat_map(|table| table.def().rules.iter().map(move |rule| (table, rule)));
        rules.into_iter().find(|(_, rule)| rule.name.eq_ignore_ascii_case(name))
    }

    /// The table that an index belongs to.
    pub fn index_owner(&self, index: &str) -> Option<&Arc<Table>> {
        self.tables().find(|table| table.indexes().iter().any(|own| own.name().eq_ignore_ascii_case(index)))
    }
}

pub(crate) fn found<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>, DdlError> {
    catalog.table(name).ok_or_else(|| ddl("42P01", format!("table \"{name}\" does not exist")))
}
