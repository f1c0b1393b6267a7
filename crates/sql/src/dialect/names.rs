//! What the names of a statement stand for, as far as types go.
//!
//! No scopes are built: a name has a type when all tables that the statement names agree on it. Where they do not, it
//! has none, and what depends on it is as the user wrote it.

use std::collections::HashMap;
use std::sync::Arc;

use store::definition::SqlType;
use store::{Catalog, Table};

use super::token::{Kind, Token};
use crate::system;
use crate::table::HIDDEN;
use crate::text::token::unquoted;

/// Types of columns by their names in lower case; `None`: they differ.
#[derive(Debug, Default)]
pub(super) struct Names {
    columns: HashMap<String, Option<SqlType>>,
    tables: HashMap<String, Arc<Table>>,
}

impl Names {
    /// The columns of all tables that the statement may be about.
    pub(super) fn of(catalog: &Catalog, tokens: &[Token<'_>]) -> Self {
        let mut names = Self::default();
        for token in tokens.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) {
            let name = unquoted(token.text).to_lowercase();
            if names.tables.contains_key(&name) {
                continue;
            }
            if let Some(table) = catalog.table(&name) {
                names.add(table);
            } else {
                for (column, ty) in system::columns_of(&name) {
                    names.add_column(column, Some(ty));
                }
            }
        }
        if !names.tables.is_empty() {
            for (name, _, _) in HIDDEN.iter().filter(|(_, _, meaning)| meaning.is_some()) {
                names.columns.insert((*name).to_owned(), Some(SqlType::Int8));
            }
        }
        names
    }

    /// A table that the statement is about.
    pub(super) fn add(&mut self, table: &Arc<Table>) {
        if self.tables.insert(table.name().to_lowercase(), Arc::clone(table)).is_none() {
            self.add_columns(table);
        }
    }

    fn add_columns(&mut self, table: &Table) {
        for (at, column) in table.def().columns.iter().enumerate() {
            self.add_column(&column.name, Some(table.column_type(at)).filter(|ty| *ty != SqlType::Unknown));
        }
    }

    fn add_column(&mut self, name: &str, ty: Option<SqlType>) {
        let known = self.columns.entry(name.to_lowercase()).or_insert(ty);
        if *known != ty {
            *known = None;
        }
    }

    /// The type of a column of this name.
    pub(super) fn column(&self, name: &str) -> Option<SqlType> {
        self.columns.get(&name.to_lowercase()).copied().flatten()
    }

    /// Whether a column is called so.
    pub(super) fn is_column(&self, name: &str) -> bool {
        self.columns.contains_key(&name.to_lowercase())
    }

    /// A table of the statement.
    pub(super) fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(&name.to_lowercase())
    }

    /// All of them.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }
}
