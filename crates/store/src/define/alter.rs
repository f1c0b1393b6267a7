//! Definitions that change under live readers and writers.
//!
//! A change is one swap of the catalogue. Who reads goes on by the definition that it has: rows are read through any
//! later or earlier one (`codec.rs`). Who writes must not: a row written by old rules would lack a computed column or
//! break a new check. So the table's schema version rises, a writer with an older one is refused under the lock where
//! it would have published, and makes its write again; the change goes on when every lock has been passed once.
//!
//! What a new column needs of the rows that are there is computed row by row, while everybody else reads and writes;
//! until it is done the column is pending, and nobody sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena::{Arena, Hash, TableId};

use crate::define::check_namespace;
use crate::definition::{CheckDef, ColumnDef, DefinitionError, TableDef, ViewDef};
use crate::error::{DdlError, WriteError, ddl};
use crate::index::Index;
use crate::patience;
use crate::patience::{OPERATIONS_PER_LOOK, ROWS_PER_LOOK};
use crate::row::RowBuf;
use crate::schema::catalogue::indexes_of;
use crate::schema::compute::{Made, Task};
use crate::store::Store;
use crate::table::Table;
use crate::table::catalog::{Apart, BUILT_IN, Catalog, found};
use crate::value::ValueRef;

/// Edits a table's definition.
pub type TableChange<'a> = dyn FnMut(&mut TableDef) -> Result<(), DefinitionError> + 'a;

impl Store {
    /// Changes a table's definition in what needs nothing of its rows. Indexes keep their number and order.
    pub fn alter_table(&self, name: &str, change: &mut TableChange<'_>) -> Result<Arc<Table>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = alterable(&catalog, name)?;
        let mut def = table.def().clone();
        change(&mut def)?;
        check_new_names(&catalog, table, &def)?;
        self.redefine(table, def)
    }

    /// Adds a column that is computed for every row.
    pub fn add_generated(&self, name: &str, column: ColumnDef) -> Result<Arc<Table>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = alterable(&catalog, name)?;
        let (table, positions) = self.add_pending(table, vec![column])?;
        let mut def = table.def().clone();
        for at in positions {
            def.columns[at].pending = false;
        }
        self.redefine(&table, def)
    }

    /// Gives a column another definition, and every row the value of an expression in it, which `column` is generated
    /// by. An index must not order rows by the old one meanwhile.
    pub fn replace_column(
        &self,
        name: &str,
        old: &str,
        column: ColumnDef,
        finished: ColumnDef,
    ) -> Result<Arc<Table>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = alterable(&catalog, name)?;
        let (table, positions) = self.add_pending(table, vec![column])?;
        let mut def = table.def().clone();
        let old = def.column_index(old);
        if let (Some(old), &[new]) = (old, positions.as_slice()) {
            let slot = def.columns[new].slot;
            let grants = def.columns[old].grants.clone();
            def.columns[old] = ColumnDef { slot, grants, ..finished };
            def.columns.remove(new);
        }
        match self.redefine(&table, def) {
            Ok(table) => Ok(table),
            Err(error) => {
                self.remove_pending(&table)?;
                Err(error)
            }
        }
    }

    /// Adds a condition that every row must meet, and proves it of those that are there.
    pub fn add_check(&self, name: &str, check: &CheckDef) -> Result<Arc<Table>, DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let table = alterable(&catalog, name)?;
        let before = table.def().checks.clone();
        let mut def = table.def().clone();
        def.checks.push(check.clone());
        let table = self.redefine(table, def)?;
        let proved = self.prove(&table);
        let mut def = table.def().clone();
        match (&proved, &check.not_null) {
            // The check stood for the column's NOT NULL.
            (Ok(()), Some(column)) => {
                def.checks = before;
                if let Some(at) = def.column_index(column) {
                    def.columns[at].not_null = true;
                }
            }
            (Ok(()), None) => return Ok(table),
            (Err(_), _) => def.checks = before,
        }
        let table = self.redefine(&table, def)?;
        proved.map(|()| table).map_err(|error| unmet(&error, check))
    }

    /// Makes a view; `replace` takes the place of one of its name.
    pub fn create_view(&self, mut view: ViewDef, replace: bool) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        if !replace || catalog.view(&view.name).is_none() {
            check_relation_name(&catalog, &view.name)?;
            check_namespace(&catalog, view.namespace.as_deref())?;
        }
        let of_open = self.open.lock().last_view();
        view.id = catalog.views().map(|view| view.id).max().unwrap_or(0).max(of_open) + 1;
        let others = catalog.views().filter(|other| !other.name.eq_ignore_ascii_case(&view.name)).cloned();
        let views = others.chain([Arc::new(view.clone())]).collect();
        self.install_all(catalog.tables().cloned().collect(), Apart { views, ..catalog.apart() })
    }

    /// Says something of a view, which stays the one that it is.
    pub fn comment_view(&self, name: &str, comment: Option<&str>) -> Result<(), DdlError> {
        self.alter_view(name, &mut |view| view.comment = comment.map(ToOwned::to_owned))
    }

    /// Changes a view, which stays the one that it is: its name, its text.
    pub fn alter_view(&self, name: &str, change: &mut dyn FnMut(&mut ViewDef)) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let Some(before) = catalog.view(name) else {
            return Err(ddl("42P01", format!("view \"{name}\" does not exist")));
        };
        let mut view = ViewDef::clone(before);
        change(&mut view);
        view.id = before.id;
        if !view.name.eq_ignore_ascii_case(name) {
            check_relation_name(&catalog, &view.name)?;
            check_namespace(&catalog, view.namespace.as_deref())?;
        }
        let altered = Arc::new(view);
        let of_now = |own: &Arc<ViewDef>| Arc::clone(if own.id == altered.id { &altered } else { own });
        let views = catalog.views().map(of_now).collect();
        self.install_all(catalog.tables().cloned().collect(), Apart { views, ..catalog.apart() })
    }

    /// Removes a view.
    pub fn drop_view(&self, name: &str) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        if catalog.view(name).is_none() {
            return Err(ddl("42P01", format!("view \"{name}\" does not exist")));
        }
        let views = catalog.views().filter(|view| !view.name.eq_ignore_ascii_case(name)).cloned().collect();
        self.install_all(catalog.tables().cloned().collect(), Apart { views, ..catalog.apart() })
    }

    /// Puts a changed definition in force for readers and writers. When this returns, nobody publishes a row by an
    /// earlier one any more.
    pub(crate) fn redefine(&self, table: &Table, mut def: TableDef) -> Result<Arc<Table>, DdlError> {
        def.schema = table.def().schema + 1;
        def.check_width(table.def().columns.len())?;
        def.validate()?;
        let renewed = indexes_of(&def).zip(table.indexes());
        let renewed: Vec<Arc<Index>> =
            renewed.map(|(index, old)| Arc::new(old.renewed(index, &def))).collect();
        let schema = def.schema;
        let catalog = self.catalog();
        let changed = Table::new(def, renewed.clone(), Arc::clone(&table.state));
        let changed = self.replace(&catalog, changed)?;
        // Release: pairs with the Acquire under the shard lock, where writers look.
        table.state.schema.store(schema, Ordering::Release);
        self.maintain(table, |indexes| *indexes = renewed);
        Ok(changed)
    }

    /// Adds columns that nobody sees yet, and computes them for every row; if that fails, they go again.
    pub(crate) fn add_pending(
        &self,
        table: &Arc<Table>,
        columns: Vec<ColumnDef>,
    ) -> Result<(Arc<Table>, Vec<usize>), DdlError> {
        let mut def = table.def().clone();
        let mut positions = Vec::with_capacity(columns.len());
        for column in columns {
            positions.push(def.add_column(ColumnDef { pending: true, ..column })?);
        }
        let table = self.redefine(table, def)?;
        match self.compute_rows(&table) {
            Ok(()) => Ok((table, positions)),
            Err(error) => {
                self.remove_pending(&table)?;
                Err(refused(&error))
            }
        }
    }

    /// Takes columns away that were never seen.
    pub(crate) fn remove_pending(&self, table: &Table) -> Result<Arc<Table>, DdlError> {
        let mut def = table.def().clone();
        while let Some(at) = def.columns.iter().rposition(|column| column.pending) {
            def.remove_column(at);
        }
        self.redefine(table, def)
    }

    /// Computes what rows lack that were written before a column was added.
    fn compute_rows(&self, table: &Table) -> Result<(), WriteError> {
        let of_view = table.def().materialized.as_ref().map(|_| table.of_refresh());
        let table = of_view.as_deref().unwrap_or(table);
        self.each_copied(table.id(), |hash, row| {
            loop {
                let Some(payload) = self.completed_payload(table, row)? else { return Ok(()) };
                if !self.is_live(table, row.head(), self.now())
                    || self.rewrite_row(table, hash, row, &payload)?
                {
                    return Ok(());
                }
                // Another version stands there by now, or the same one in another place.
                let key = row.key().to_vec();
                if !self.read(table, &key, self.now(), row) {
                    return Ok(());
                }
            }
        })?;
        // A commit that is under way may have replaced rows before they were computed, and it keeps them as they were
        // for statements that do not see it. Whoever meets the new columns is to begin after it.
        drop(self.committing.write());
        Ok(())
    }

    /// Proves the table's checks of every row.
    fn prove(&self, table: &Table) -> Result<(), WriteError> {
        self.each_copied(table.id(), |_, row| {
            if !self.is_live(table, row.head(), self.now()) {
                return Ok(());
            }
            let columns = table.def().columns.len();
            let values: Vec<ValueRef<'_>> = (0..columns).map(|at| table.column(row, at)).collect();
            let task = Task { table, values: &values, defaults: &[], checks: true };
            self.complete(&task, &mut Made::new())
        })
    }

    /// Visits copies of the rows of a table with no lock held.
    fn each_copied(
        &self,
        id: TableId,
        mut visit: impl FnMut(Hash, &mut RowBuf) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let shape = self.arena.of(id).scan_shape();
        let (mut locations, mut rows) = (Vec::new(), Vec::new());
        let mut looks = 0_u64;
        for group in 0..shape.groups {
            {
                let shard = self.shard_at(Arena::shard_of_group(group)).lock();
                locations.clear();
                self.arena.of(id).scan_group(&shard.token, shape, group, id, &mut locations);
                for &location in &locations {
                    let mut row = RowBuf::new();
                    if self.load_stable(location, &mut row) && row.head().table == id {
                        rows.push(row);
                    }
                }
            }
            for mut row in rows.drain(..) {
                looks += 1;
                if looks.is_multiple_of(ROWS_PER_LOOK) && patience::must_stop(OPERATIONS_PER_LOOK) {
                    return Err(WriteError::Canceled);
                }
                visit(self.arena.of(id).hash(id, row.key()), &mut row)?;
            }
        }
        Ok(())
    }
}

/// A table whose definition may change.
fn alterable<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>, DdlError> {
    let table = found(catalog, name)?;
    if table.name() == BUILT_IN {
        return Err(ddl("42501", format!("table \"{BUILT_IN}\" is built in; its columns are fixed")));
    }
    Ok(table)
}

/// A name that no table and no view has.
pub(crate) fn check_relation_name(catalog: &Catalog, name: &str) -> Result<(), DdlError> {
    if catalog.table(name).is_some() {
        return Err(ddl("42P07", format!("table \"{name}\" exists already")));
    }
    if catalog.view(name).is_some() {
        return Err(ddl("42P07", format!("view \"{name}\" exists already")));
    }
    if catalog.sequence(name).is_some() {
        return Err(ddl("42P07", format!("relation \"{name}\" already exists")));
    }
    Ok(())
}

/// New names of the table and of its indexes must be free.
fn check_new_names(catalog: &Catalog, table: &Table, def: &TableDef) -> Result<(), DdlError> {
    if !def.name.eq_ignore_ascii_case(table.name()) {
        check_relation_name(catalog, &def.name)?;
        check_namespace(catalog, def.namespace.as_deref())?;
    }
    let taken = def.indexes.iter().find(|index| {
        let owner = catalog.index_owner(&def.qualified(&index.name));
        owner.is_some_and(|owner| owner.id() != table.id())
    });
    match taken {
        Some(index) => Err(ddl("42P07", format!("index \"{}\" exists already", index.name))),
        None => Ok(()),
    }
}

/// Why the rows that are there do not meet a new definition.
pub(crate) fn refused(error: &WriteError) -> DdlError {
    let state = match error {
        WriteError::Check(_) => "23514",
        WriteError::NotNull(_) => "23502",
        WriteError::Type(_) => "22P02",
        WriteError::Expression { state, .. } => state,
        WriteError::TooLarge { .. } => "54000",
        WriteError::Canceled => "57014",
        _ => "53200",
    };
    ddl(state, error.to_string())
}

fn unmet(error: &WriteError, check: &CheckDef) -> DdlError {
    match (error, &check.not_null) {
        (WriteError::Check(_), Some(column)) => {
            ddl("23502", format!("column \"{column}\" contains null values"))
        }
        (WriteError::Check(name), None) => {
            ddl("23514", format!("check constraint \"{name}\" is violated by some row"))
        }
        (error, _) => refused(error),
    }
}
