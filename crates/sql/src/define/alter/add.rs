//! `ALTER TABLE ... ADD`: columns and constraints.

use sqltext::definition::{Column, Constraint, ConstraintKind, Term};
use store::definition::{CheckDef, ColumnDef, IndexDef, TableDef};
use store::value::Value;

use super::Change;
use crate::compute::check_definition;
use crate::define::Note;
use crate::define::table::{TableMaker, check_unique};
use crate::error::{SqlError, state};

impl Change<'_> {
    /// `ADD [COLUMN] [IF NOT EXISTS] definition`
    pub(super) fn add_column(&mut self, wanted: &Column, if_not_exists: bool) -> Result<(), SqlError> {
        let def = self.def()?;
        let mut maker = TableMaker::new(self.core, self.words, &def.name);
        maker.def.namespace.clone_from(&def.namespace);
        maker.column(wanted)?;
        let (unique, notes) = (maker.take_unique(), std::mem::take(&mut maker.notes));
        let made = maker.def;
        let [column] = made.columns.as_slice() else { return Ok(()) };
        if def.column_index(&column.name).is_some() {
            let message =
                format!("column \"{}\" of table \"{}\" exists already", column.name, def.own_name());
            if !if_not_exists {
                return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
            }
            let message = format!(
                "column \"{}\" of relation \"{}\" already exists, skipping",
                column.name,
                def.own_name()
            );
            self.notes.push(Note { state: state::DUPLICATE_COLUMN, message, hint: None });
            return Ok(());
        }
        check_addable(&made, column)?;
        let mut whole = def.clone();
        whole.columns.push(column.clone());
        whole.checks.extend(made.checks.iter().cloned());
        check_definition(&whole)?;
        if column.generated.is_some() {
            self.core.store.add_generated(&self.table, column.clone())?;
        } else {
            self.add_plain(column)?;
        }
        for check in &made.checks {
            self.core.store.add_check(&self.table, check)?;
        }
        for name in unique {
            self.add_unique(&column.name, name)?;
        }
        self.add_foreign_keys(&made)?;
        self.notes.extend(notes);
        Ok(())
    }

    /// The constraint of a column that was added, with its name or none.
    fn add_unique(&self, column: &str, name: String) -> Result<(), SqlError> {
        let def = self.def()?;
        let at = def.column_index(column).ok_or_else(|| SqlError::unknown_column(def.own_name(), column))?;
        let indexes = def.indexes.len();
        let mut maker = TableMaker::of(self.core, self.words, def);
        maker.add_unique(IndexDef::new(name, vec![at], true));
        self.add_indexes(&maker.finish(&[])?.indexes[indexes..])
    }

    fn add_indexes(&self, indexes: &[IndexDef]) -> Result<(), SqlError> {
        for index in indexes {
            self.core.store.create_index(&self.table, index.clone())?;
        }
        Ok(())
    }

    fn add_foreign_keys(&self, made: &TableDef) -> Result<(), SqlError> {
        let own = &self.def()?.foreign_keys;
        let new = || made.foreign_keys.iter().filter(|key| !own.contains(key)).cloned();
        if new().next().is_none() {
            return Ok(());
        }
        self.alter(|def| {
            def.foreign_keys.extend(new());
            Ok(())
        })
    }

    /// Rows that are there hold the default of this moment in the new column, and are not touched for it.
    fn add_plain(&self, column: &ColumnDef) -> Result<(), SqlError> {
        let mut column = column.clone();
        column.absent.clone_from(&column.default);
        if let Some(sql) = &column.default_sql {
            column.absent = Some(column.accept(self.value_of(sql)?)?);
        }
        let null = column.absent.as_ref().is_none_or(Value::is_null);
        let catalog = self.core.store.catalog();
        if column.not_null && null && catalog.table(&self.table).is_some_and(|table| table.rows() > 0) {
            let message = format!("column \"{}\" contains null values", column.name);
            return Err(SqlError::new(state::NOT_NULL, message).with_hint("give it a DEFAULT"));
        }
        self.alter(|def| def.add_column(column.clone()).map(|_| ()))
    }

    /// The value of an expression without columns.
    fn value_of(&self, sql: &str) -> Result<Value, SqlError> {
        let mut statement = self.core.compile(&format!("SELECT {sql}"))?;
        let mut value = Value::Null;
        self.core.run(&mut statement, &[], &mut |row| {
            value = row.value(0).to_owned();
            Ok(())
        })?;
        Ok(value)
    }

    /// `ADD PRIMARY KEY (columns)`: rows stay under the keys that they have, and the new key is a unique index of
    /// columns that are never NULL. The key that they have, if its constraint was dropped, is what it was.
    fn add_key(&mut self, def: &TableDef, name: Option<&str>, terms: &[Term]) -> Result<(), SqlError> {
        let maker = TableMaker::of(self.core, self.words, def.clone());
        if (!def.primary_key.is_empty() && !def.key_dropped) || def.added_key().is_some() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", def.own_name());
            return Err(SqlError::new(state::BAD_DEFINITION, message));
        }
        let key = maker.key_columns(terms)?;
        if key.columns == def.primary_key {
            return self.alter(|def| {
                (def.key_dropped, def.key_name) = (false, name.map(ToOwned::to_owned));
                Ok(())
            });
        }
        check_unique(def, &key.columns)?;
        for &column in &key.columns {
            self.change_not_null(&self.def()?, column, true)?;
        }
        let name = name.map_or_else(|| format!("{}_pkey", def.own_name()), ToOwned::to_owned);
        let index = IndexDef { name, unique: true, constraint: true, primary: true, ..key };
        Ok(self.core.store.create_index(&self.table, index)?)
    }

    /// `ADD [CONSTRAINT name] constraint`
    pub(super) fn add_constraint(&mut self, wanted: &Constraint) -> Result<(), SqlError> {
        let def = self.def()?;
        let (checks, indexes) = (def.checks.len(), def.indexes.len());
        if let ConstraintKind::PrimaryKey(terms) = &wanted.kind {
            return self.add_key(&def, wanted.name.as_deref(), terms);
        }
        let mut maker = TableMaker::of(self.core, self.words, def);
        maker.constraint(wanted)?;
        let notes = std::mem::take(&mut maker.notes);
        let whole = maker.finish(&[])?;
        for check in &whole.checks[checks..] {
            refuse_known_name(&whole.checks[..checks], check)?;
            self.core.store.add_check(&self.table, check)?;
        }
        self.add_indexes(&whole.indexes[indexes..])?;
        self.add_foreign_keys(&whole)?;
        self.notes.extend(notes);
        Ok(())
    }
}

/// What a column that comes later cannot be.
fn check_addable(made: &TableDef, column: &ColumnDef) -> Result<(), SqlError> {
    let what = if !made.primary_key.is_empty() {
        "ADD COLUMN with PRIMARY KEY"
    } else if column.identity.is_some() {
        "ADD COLUMN with IDENTITY"
    } else {
        return Ok(());
    };
    Err(SqlError::not_supported(what).with_hint("create a new table and INSERT INTO it ... SELECT"))
}

fn refuse_known_name(known: &[CheckDef], check: &CheckDef) -> Result<(), SqlError> {
    if known.iter().any(|other| other.name.eq_ignore_ascii_case(&check.name)) {
        return Err(SqlError::new(
            state::DUPLICATE_OBJECT,
            format!("constraint \"{}\" exists already", check.name),
        ));
    }
    Ok(())
}
