//! `CREATE TABLE (LIKE table INCLUDING ...)`.

use std::sync::Arc;

use sqltext::definition::Like;
use store::Table;
use store::definition::{ColumnDef, IndexDef};

use super::Note;
use super::alter::renamed_table;
use super::table::TableMaker;
use crate::core::Core;
use crate::error::SqlError;

impl TableMaker<'_> {
    /// Puts the columns of another table behind those that are there. Of its options none comes along but for
    /// `INCLUDING STORAGE`; a prefix never does, for it belongs to one table.
    pub(super) fn like(&mut self, core: &Core, like: &Like) -> Result<(), SqlError> {
        let name = &like.table.text;
        let table = core.catalog.table(name).ok_or_else(|| SqlError::unknown_table(name))?;
        let positions: Vec<(usize, usize)> = table
            .def()
            .visible_columns()
            .enumerate()
            .map(|(rank, (at, _))| (at, self.def.columns.len() + rank))
            .collect();
        let columns = table.def().visible_columns().map(|(_, column)| copied(column, like));
        let from = self.def.columns.len();
        self.def.columns.extend(columns);
        if like.including.constraints {
            self.def
                .checks
                .extend(table.def().checks.iter().filter(|check| check.not_null.is_none()).cloned());
        }
        let own = self.def.own_name().to_owned();
        let generated = self.def.columns[from..].iter_mut().filter_map(|column| column.generated.as_mut());
        let expressions = generated.map(|generated| &mut generated.sql);
        for sql in expressions.chain(self.def.checks.iter_mut().map(|check| &mut check.sql)) {
            *sql = renamed_table(sql, table.def().own_name(), &own);
        }
        if like.including.indexes {
            self.indexes_like(table, &positions);
        }
        if like.including.storage {
            self.def.options = table.def().options.clone();
            (self.def.options.prefix, self.def.options.value, self.def.options.tags) = (None, None, None);
        }
        Ok(())
    }

    /// Keys and indexes of whole columns. Those of expressions read columns that only their table has, so a notice
    /// names each of them.
    fn indexes_like(&mut self, table: &Arc<Table>, positions: &[(usize, usize)]) {
        let place = |at: &usize| positions.iter().find(|(from, _)| from == at).map(|&(_, to)| to);
        let def = table.def();
        if let Some(key) = def.primary_key.iter().map(place).collect::<Option<Vec<_>>>()
            && self.def.primary_key.is_empty()
        {
            self.def.primary_key = key;
        }
        for index in &def.indexes {
            let columns = index.columns.iter().map(place).collect::<Option<Vec<_>>>();
            let elements = index.elements.map(|at| place(&at));
            match columns.filter(|_| index.predicate.is_none() && elements != Some(None)) {
                Some(columns) => {
                    let (name, elements) = (String::new(), elements.flatten());
                    self.copied.push(IndexDef { name, columns, elements, ..index.clone() });
                }
                None => self.notes.push(Note::hinted(
                    format!("index \"{}\" is not copied", index.name),
                    "it has an expression or a condition; create it for the new table",
                )),
            }
        }
    }
}

/// A column with as much of it as is to be copied.
fn copied(column: &ColumnDef, like: &Like) -> ColumnDef {
    // What was granted of a column is its own table's.
    let mut copy = ColumnDef { slot: None, absent: None, grants: Vec::new(), ..column.clone() };
    if !like.including.defaults {
        (copy.default, copy.default_sql) = (None, None);
    }
    if !like.including.generated {
        copy.generated = None;
    }
    if !like.including.identity {
        copy.identity = None;
    }
    copy
}
