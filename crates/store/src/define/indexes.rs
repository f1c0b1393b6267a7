//! Ordered indexes come and go, while reads and writes go on.

use std::sync::Arc;

use crate::definition::{ColumnDef, IndexDef, within};
use crate::error::{DdlError, ddl};
use crate::index::Index;
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::{BUILT_IN, found};

impl Store {
    /// Makes an ordered index over the rows that are there.
    pub fn create_index(&self, table: &str, index: IndexDef) -> Result<(), DdlError> {
        self.create_index_with(table, Vec::new(), &move |_| index.clone())
    }

    /// Makes an ordered index that reads hidden columns of its own: they are added, computed for every row, and given
    /// to `index` by their positions.
    pub fn create_index_with(
        &self,
        table: &str,
        hidden: Vec<ColumnDef>,
        index: &dyn Fn(&[usize]) -> IndexDef,
    ) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = found(&catalog, table)?;
        let expected: Vec<usize> = (0..hidden.len()).map(|at| table.def().columns.len() + at).collect();
        let new = index(&expected);
        if catalog.index_owner(&table.def().qualified(&new.name)).is_some() {
            return Err(ddl("42P07", format!("index \"{}\" exists already", new.name)));
        }
        if hidden.is_empty() {
            return self.build_index(table, new, &[]);
        }
        if table.name() == BUILT_IN {
            return Err(ddl(
                "0A000",
                format!(
                    "an index of expressions on the built-in table; create a table with a prefix (\"{BUILT_IN}\" holds all other keys)"
                ),
            ));
        }
        let (table, positions) = self.add_pending(table, hidden)?;
        let built = self.build_index(&table, index(&positions), &positions);
        if built.is_err() {
            self.remove_pending(&table)?;
        }
        built
    }

    /// Fills an index and puts it in force, together with its columns.
    fn build_index(&self, table: &Arc<Table>, index: IndexDef, hidden: &[usize]) -> Result<(), DdlError> {
        let mut def = table.def().clone();
        for &at in hidden {
            def.columns[at].pending = false;
        }
        def.indexes.push(index.clone());
        def.validate()?;
        let index = Arc::new(Index::new(index, &def));
        self.maintain(table, |indexes| indexes.push(Arc::clone(&index)));
        if let Err(error) = self.fill_index(table, &index, true) {
            self.maintain(table, |indexes| indexes.retain(|own| own.name() != index.name()));
            return Err(error);
        }
        let mut indexes = table.indexes().to_vec();
        indexes.push(Arc::clone(&index));
        let changed = Table::new(def, indexes, Arc::clone(&table.state));
        let installed = self.replace(&self.catalog(), changed);
        if installed.is_err() {
            self.maintain(table, |indexes| indexes.retain(|own| own.name() != index.name()));
        }
        installed.map(|_| ())
    }

    /// Removes an ordered index, and the hidden columns that were its own.
    pub fn drop_index(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let owner = catalog
            .index_owner(name)
            .ok_or_else(|| ddl("42704", format!("index \"{name}\" does not exist")))?;
        let mut def = owner.def().clone();
        let name = within(owner.def().namespace.as_deref(), name).unwrap_or(name);
        let Some(at) = def.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name)) else {
            return Err(ddl(
                "2BP01",
                format!("index \"{name}\" belongs to the primary key; drop the table, or set ordered = off"),
            ));
        };
        let gone = def.indexes.remove(at);
        let of_name = |index: &Arc<Index>| index.name().eq_ignore_ascii_case(name);
        let kept = owner.indexes().iter().filter(|index| !of_name(index)).cloned().collect();
        let table = self.replace(&catalog, Table::new(def, kept, Arc::clone(&owner.state)))?;
        let dropped = owner.indexes().iter().find(|index| of_name(index));
        // Before writers leave it alone: an entry that nobody keeps would soon name other bytes.
        dropped.inspect(|index| index.retire());
        self.maintain(owner, |indexes| indexes.retain(|index| !of_name(index)));
        dropped.inspect(|index| index.retire());
        self.drop_hidden(&table, &gone)
    }

    fn drop_hidden(&self, table: &Table, index: &IndexDef) -> Result<(), DdlError> {
        let mut def = table.def().clone();
        let mut hidden: Vec<usize> = index.reads().filter(|&column| def.columns[column].hidden).collect();
        if hidden.is_empty() {
            return Ok(());
        }
        hidden.sort_unstable();
        for at in hidden.into_iter().rev() {
            def.remove_column(at);
        }
        self.redefine(table, def).map(|_| ())
    }
}
