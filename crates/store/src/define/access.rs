//! Who may do what with tables, views and sequences. Rows are not touched, and nobody who reads or writes waits.

use std::sync::Arc;

use crate::definition::{Access, GRANTS_MAX, Grant, ViewDef};
use crate::error::{DdlError, ddl};
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::{Apart, found};
use crate::table::sequence::Sequence;

/// The privileges of a table: those of all of it, and those of each column beside its name.
#[derive(Debug)]
pub struct TableAccess<'d> {
    /// Of all of it.
    pub whole: &'d mut Access,
    /// Of single columns, in the order of the table. Views and sequences have none.
    pub columns: Vec<(&'d str, &'d mut Vec<Grant>)>,
}

/// Edits the privileges of a table, view or sequence.
pub type AccessChange<'a> = dyn FnMut(&mut TableAccess<'_>) -> Result<(), DdlError> + 'a;

impl Store {
    /// Changes who may do what with a table, view or sequence.
    pub fn change_access(&self, name: &str, change: &mut AccessChange<'_>) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        if catalog.view(name).is_some() {
            return self.change_view_access(name, change);
        }
        if let Some(sequence) = catalog.sequence(name) {
            return self.change_sequence_access(sequence, change);
        }
        let table = found(&catalog, name)?;
        let mut def = table.def().clone();
        let columns = def.columns.iter_mut().filter(|column| column.is_visible());
        let columns = columns.map(|column| (column.name.as_str(), &mut column.grants)).collect();
        change(&mut TableAccess { whole: &mut def.access, columns })?;
        let of_columns: usize = def.columns.iter().map(|column| column.grants.len()).sum();
        check_count(name, def.access.grants.as_ref().map_or(0, Vec::len) + of_columns)?;
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed).map(drop)
    }

    /// Changes who may do what with the numbers of a table's identity column. Their owner is the table's.
    pub fn change_numbers_access(&self, table: &str, change: &mut AccessChange<'_>) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = found(&catalog, table)?;
        let mut def = table.def().clone();
        let mut access = def.numbers_access();
        change(&mut TableAccess { whole: &mut access, columns: Vec::new() })?;
        check_count(table.name(), access.grants.as_ref().map_or(0, Vec::len))?;
        def.numbers_grants = access.grants;
        let changed = Table::new(def, table.indexes().to_vec(), Arc::clone(&table.state));
        self.replace(&catalog, changed).map(drop)
    }

    fn change_sequence_access(
        &self,
        sequence: &Arc<Sequence>,
        change: &mut AccessChange<'_>,
    ) -> Result<(), DdlError> {
        let catalog = self.catalog();
        let mut access = sequence.def().access.clone();
        change(&mut TableAccess { whole: &mut access, columns: Vec::new() })?;
        check_count(&sequence.def().name, access.grants.as_ref().map_or(0, Vec::len))?;
        let mut apart = catalog.apart();
        apart.sequences.retain(|other| !Arc::ptr_eq(other, sequence));
        apart.sequences.push(Arc::new(sequence.with_access(access)));
        self.install_all(catalog.tables().cloned().collect(), apart)
    }

    fn change_view_access(&self, name: &str, change: &mut AccessChange<'_>) -> Result<(), DdlError> {
        let catalog = self.catalog();
        let mut views: Vec<Arc<ViewDef>> = catalog.views().cloned().collect();
        for view in views.iter_mut().filter(|view| view.name.eq_ignore_ascii_case(name)) {
            let view = Arc::make_mut(view);
            change(&mut TableAccess { whole: &mut view.access, columns: Vec::new() })?;
            check_count(name, view.access.grants.as_ref().map_or(0, Vec::len))?;
        }
        self.install_all(catalog.tables().cloned().collect(), Apart { views, ..catalog.apart() })
    }
}

fn check_count(name: &str, count: usize) -> Result<(), DdlError> {
    if count <= GRANTS_MAX {
        return Ok(());
    }
    let message =
        format!("\"{name}\" has {count} grants; the limit is {GRANTS_MAX}: grant to a role of many members");
    Err(ddl("54000", message))
}
