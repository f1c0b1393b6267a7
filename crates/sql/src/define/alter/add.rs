//! `ALTER TABLE ... ADD`: columns and constraints.

use sqlite3_parser::ast::{CreateTableBody, Stmt};
use store::definition::{CheckDef, ColumnDef, TableDef};
use store::value::Value;

use super::{Change, rest_of_change};
use crate::compute::check_definition;
use crate::define::table::TableMaker;
use crate::error::{SqlError, state};
use crate::text::parse::with_tree;
use crate::text::storage::Reader;
use crate::text::token::quoted_name;

/// Words that begin a constraint.
const CONSTRAINTS: &[&str] = &["CONSTRAINT", "CHECK", "UNIQUE", "PRIMARY", "FOREIGN"];

impl Change<'_> {
    /// `ADD [COLUMN] [IF NOT EXISTS] definition`, `ADD [CONSTRAINT name] constraint`
    pub(super) fn add(&self, reader: &mut Reader<'_, '_>) -> Result<(), SqlError> {
        if reader.peek().is_some_and(|token| CONSTRAINTS.iter().any(|word| token.is(word))) {
            return self.add_constraint(rest_of_change(reader));
        }
        let _ = reader.keyword("COLUMN");
        let if_not_exists = reader.keyword("IF").is_ok();
        if if_not_exists {
            reader.keyword("NOT")?;
            reader.keyword("EXISTS")?;
        }
        self.add_column(rest_of_change(reader), if_not_exists)
    }

    fn add_column(&self, text: &str, if_not_exists: bool) -> Result<(), SqlError> {
        let def = self.def()?;
        let (made, unique) = column_definition(&def.name, text)?;
        let [column] = made.columns.as_slice() else {
            return Err(SqlError::new(state::SYNTAX, "the definition of one column was expected"));
        };
        if def.column_index(&column.name).is_some() {
            let message = format!("column \"{}\" of table \"{}\" exists already", column.name, def.name);
            let error = SqlError::new(state::DUPLICATE_COLUMN, message);
            return if if_not_exists { Ok(()) } else { Err(error) };
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
            self.add_unique(&column.name, &name)?;
        }
        Ok(())
    }

    /// The constraint of a column that was added, with its name or none.
    fn add_unique(&self, column: &str, name: &str) -> Result<(), SqlError> {
        let named =
            if name.is_empty() { String::new() } else { format!("CONSTRAINT {} ", quoted_name(name)) };
        self.add_constraint(&format!("{named}UNIQUE ({})", quoted_name(column)))
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

    fn add_constraint(&self, text: &str) -> Result<(), SqlError> {
        let def = self.def()?;
        let (checks, indexes) = (def.checks.len(), def.indexes.len());
        let mut maker = TableMaker::of(def);
        let key = maker.def.primary_key.clone();
        with_tree(&format!("CREATE TABLE t (c, {text})"), |tree| match tree {
            Stmt::CreateTable {
                body: CreateTableBody::ColumnsAndConstraints { constraints: Some([constraint]), .. },
                ..
            } => maker.constraint(constraint),
            _ => Err(SqlError::new(state::SYNTAX, "one constraint was expected")),
        })
        .map_err(|error| SqlError { position: None, ..error })?;
        if maker.def.primary_key != key {
            return Err(SqlError::not_supported("ADD PRIMARY KEY").with_hint(
                "rows are stored under their key; create a new table and INSERT INTO it ... SELECT",
            ));
        }
        let whole = maker.finish(&[])?;
        for check in &whole.checks[checks..] {
            refuse_known_name(&whole.checks[..checks], check)?;
            self.core.store.add_check(&self.table, check)?;
        }
        for index in &whole.indexes[indexes..] {
            self.core.store.create_index(&self.table, index.clone())?;
        }
        Ok(())
    }
}

/// The definition of one column, as that of a table of it alone, and the names of its `UNIQUE`s.
fn column_definition(table: &str, text: &str) -> Result<(TableDef, Vec<String>), SqlError> {
    let mut maker = TableMaker::new(table);
    let parsed = with_tree(&format!("CREATE TABLE t ({text})"), |tree| match tree {
        Stmt::CreateTable {
            body: CreateTableBody::ColumnsAndConstraints { columns, constraints: None, .. },
            ..
        } => columns.iter().try_for_each(|column| maker.column(column)),
        _ => Err(SqlError::new(state::SYNTAX, "the definition of one column was expected")),
    });
    parsed.map_err(|error| SqlError { position: None, ..error })?;
    let unique = maker.take_unique();
    Ok((maker.def, unique))
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
