//! `CREATE TABLE`: from the tree to a definition.

use sqlite3_parser::ast::{
    ColumnConstraint, ColumnDefinition, CreateTableBody, Expr, Id, NamedTableConstraint, QualifiedName,
    ResolveType, SortedColumn, TableConstraint,
};
use store::definition::{
    CheckDef, Collation, ColumnDef, ColumnKind, Generated, Identity, IndexDef, TableDef,
};

use super::index::index_form;
use super::prepare::{IDENTITY_ALWAYS, IDENTITY_BY_DEFAULT};
use super::{Defined, Undo, check_column_name, check_table_name, of_query};
use crate::compute::{check_definition, mentions};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::literal::value_of;
use crate::text::parse::Sql;
use crate::text::storage::Setting;
use crate::text::token::{quoted_name, unquoted};

pub(super) fn create(
    core: &Core,
    if_not_exists: bool,
    name: &QualifiedName<'_>,
    body: &CreateTableBody<'_>,
    settings: &[Setting],
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE TABLE";
    let name = unquoted(name.name.0);
    if if_not_exists && core.catalog.table(&name).is_some() {
        return Ok(Defined::present(TAG, &name));
    }
    check_table_name(&name)?;
    let mut maker = TableMaker::new(&name);
    let mut fill = None;
    match body {
        CreateTableBody::ColumnsAndConstraints { columns, constraints, .. } => {
            for column in columns {
                maker.column(column)?;
            }
            for constraint in constraints.unwrap_or_default() {
                maker.constraint(constraint)?;
            }
        }
        CreateTableBody::AsSelect(select) => {
            maker.def.columns = of_query::columns(core, select)?;
            fill = Some((name.clone(), format!("INSERT INTO {} {}", quoted_name(&name), Sql(*select))));
        }
    }
    let def = maker.finish(settings)?;
    match core.store.create_table(def) {
        Err(error) if error.state == state::DUPLICATE_TABLE && if_not_exists => {
            Ok(Defined::present(TAG, &name))
        }
        Err(error) => Err(error.into()),
        Ok(table) => Ok(Defined { fill, undo: Undo::Table(table), ..TAG.into() }),
    }
}

/// Gathers a table's definition.
#[derive(Debug)]
pub(super) struct TableMaker {
    pub(super) def: TableDef,
    /// What `UNIQUE` names; their indexes get their names last.
    unique: Vec<IndexDef>,
    /// The collations that `PRIMARY KEY (a COLLATE ...)` names; empty: the columns' own.
    key_collations: Vec<Option<Collation>>,
}

impl TableMaker {
    pub(super) fn new(name: &str) -> Self {
        Self::of(TableDef::new(name, Vec::new(), Vec::new()))
    }

    /// A maker that goes on with a table that is there.
    pub(super) fn of(def: TableDef) -> Self {
        Self { def, unique: Vec::new(), key_collations: Vec::new() }
    }

    /// The names of the `UNIQUE`s that were met; an empty one is none.
    pub(super) fn take_unique(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unique).into_iter().map(|index| index.name).collect()
    }

    pub(super) fn column(&mut self, definition: &ColumnDefinition<'_>) -> Result<(), SqlError> {
        let name = unquoted(definition.col_name.0);
        check_column_name(&name)?;
        let declared = definition.col_type.as_ref().map_or_else(String::new, |of| Sql(of).to_string());
        let mut column = new_column(&name, &declared)?;
        let at = self.def.columns.len();
        for constraint in definition.constraints {
            let named = constraint.name.as_ref().map(|name| unquoted(name.0));
            match &constraint.constraint {
                ColumnConstraint::PrimaryKey { conflict_clause, .. } => {
                    refuse_conflict_clause(*conflict_clause)?;
                    if !self.def.primary_key.is_empty() {
                        return Err(two_keys(&self.def.name));
                    }
                    self.def.primary_key = vec![at];
                    column.not_null = true;
                }
                ColumnConstraint::NotNull { nullable, conflict_clause } => {
                    refuse_conflict_clause(*conflict_clause)?;
                    column.not_null |= !*nullable;
                }
                ColumnConstraint::Unique(conflict_clause) => {
                    refuse_conflict_clause(*conflict_clause)?;
                    self.unique.push(IndexDef::new(named.unwrap_or_default(), vec![at], true));
                }
                ColumnConstraint::Default(expression) => set_default(&mut column, expression),
                ColumnConstraint::Check(expression) => {
                    let sql = Sql(expression).to_string();
                    let name = named.unwrap_or_else(|| self.check_name(Some(&name)));
                    self.def.checks.push(CheckDef { name, sql, not_null: None });
                }
                ColumnConstraint::Collate { collation_name } => {
                    column.collation = collation(&unquoted(collation_name.0))?;
                }
                ColumnConstraint::ForeignKey { .. } | ColumnConstraint::Defer(_) => {
                    return Err(no_foreign_keys("REFERENCES"));
                }
                ColumnConstraint::Generated { expr, typ } => set_generated(&mut column, expr, typ.as_ref())?,
            }
        }
        self.def.columns.push(column);
        Ok(())
    }

    pub(super) fn constraint(&mut self, constraint: &NamedTableConstraint<'_>) -> Result<(), SqlError> {
        let named = constraint.name.as_ref().map(|name| unquoted(name.0));
        match &constraint.constraint {
            TableConstraint::PrimaryKey { columns, conflict_clause, .. } => {
                refuse_conflict_clause(*conflict_clause)?;
                if !self.def.primary_key.is_empty() {
                    return Err(two_keys(&self.def.name));
                }
                let key = self.key_columns(columns)?;
                (self.def.primary_key, self.key_collations) = (key.columns, key.collations);
                for &column in &self.def.primary_key {
                    self.def.columns[column].not_null = true;
                }
            }
            TableConstraint::Unique { columns, conflict_clause } => {
                refuse_conflict_clause(*conflict_clause)?;
                let index = self.key_columns(columns)?;
                self.unique.push(IndexDef { name: named.unwrap_or_default(), unique: true, ..index });
            }
            TableConstraint::Check(expression, _) => {
                let sql = Sql(expression).to_string();
                let name = named.unwrap_or_else(|| self.check_name(self.only_column(&sql).as_deref()));
                self.def.checks.push(CheckDef { name, sql, not_null: None });
            }
            TableConstraint::ForeignKey { .. } => return Err(no_foreign_keys("FOREIGN KEY")),
        }
        Ok(())
    }

    /// Columns of a key: expressions belong into indexes.
    fn key_columns(&self, list: &[SortedColumn<'_>]) -> Result<IndexDef, SqlError> {
        let form = index_form(&self.def, list)?;
        if form.hidden.is_empty() {
            return Ok(form.index);
        }
        Err(SqlError::not_supported("an expression in a key")
            .with_hint("CREATE UNIQUE INDEX takes expressions"))
    }

    /// The one column that an expression reads, if it is one.
    fn only_column(&self, sql: &str) -> Option<String> {
        let mut read = self.def.columns.iter().filter(|column| mentions(sql, &column.name));
        let first = read.next()?;
        read.next().is_none().then(|| first.name.clone())
    }

    /// `table_column_check`, as PostgreSQL names it, with a number where that name is taken.
    fn check_name(&self, column: Option<&str>) -> String {
        let parts: Vec<&str> =
            [Some(self.def.name.as_str()), column, Some("check")].into_iter().flatten().collect();
        free_name(parts.join("_"), |name| {
            self.def.checks.iter().any(|check| check.name.eq_ignore_ascii_case(name))
        })
    }

    /// The definition, with the indexes that stand for `UNIQUE`.
    pub(super) fn finish(mut self, settings: &[Setting]) -> Result<TableDef, SqlError> {
        for (name, value) in settings {
            self.def.options.set(name, value, &self.def.columns)?;
        }
        self.number_the_key();
        self.unique.splice(..0, self.collated_key());
        for unique in std::mem::take(&mut self.unique) {
            // The primary key is unique already.
            let is_key = unique.columns == self.def.primary_key && self.is_binary(&unique);
            let known = self.def.indexes.iter().any(|index| is_same_constraint(index, &unique));
            if !is_key && !known {
                let name =
                    if unique.name.is_empty() { self.unique_name(&unique.columns) } else { unique.name };
                self.def.indexes.push(IndexDef { name, constraint: true, ..unique });
            }
        }
        check_made_columns(&self.def)?;
        self.def.validate()?;
        check_definition(&self.def)?;
        Ok(self.def)
    }

    /// The unique index of a key whose texts are not compared by their bytes: rows lie under the bytes of their key, so
    /// two of them may have what is one key.
    fn collated_key(&self) -> Option<IndexDef> {
        let key = IndexDef {
            collations: self.key_collations.clone(),
            ..IndexDef::new(String::new(), self.def.primary_key.clone(), true)
        };
        (!self.is_binary(&key) && !self.def.indexes.iter().any(|index| is_same_constraint(index, &key)))
            .then_some(key)
    }

    /// Whether an index compares texts by their bytes.
    fn is_binary(&self, index: &IndexDef) -> bool {
        (0..index.columns.len()).all(|at| index.collation(at, &self.def.columns).is_binary())
    }

    /// `INTEGER PRIMARY KEY` numbers its rows, as in SQLite.
    fn number_the_key(&mut self) {
        let &[key] = self.def.primary_key.as_slice() else { return };
        let column = &mut self.def.columns[key];
        let plain = column.default.is_none() && column.default_sql.is_none() && column.generated.is_none();
        if plain && column.identity.is_none() && column.declared.eq_ignore_ascii_case("INTEGER") {
            column.identity = Some(Identity::ByDefault);
        }
    }

    /// `table_a_b_key`, as PostgreSQL names it, with a number where that name is taken.
    fn unique_name(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|&column| self.def.columns[column].name.as_str()).collect();
        free_name(format!("{}_{}_key", self.def.name, names.join("_")), |name| {
            self.def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
        })
    }
}

/// Whether a constraint says of the same columns the same as another.
fn is_same_constraint(index: &IndexDef, other: &IndexDef) -> bool {
    index.constraint && index.columns == other.columns && index.collations == other.collations
}

/// A name that is not taken: this one, or the first with a number behind it.
fn free_name(name: String, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1..).map(|number: u32| format!("{name}{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}

/// A column of a declared type; PostgreSQL's serial types are integers that the server numbers.
fn new_column(name: &str, declared: &str) -> Result<ColumnDef, SqlError> {
    let serial = match declared.to_ascii_uppercase().as_str() {
        "SERIAL" | "SERIAL4" => Some("INTEGER"),
        "BIGSERIAL" | "SERIAL8" => Some("BIGINT"),
        "SMALLSERIAL" | "SERIAL2" => Some("SMALLINT"),
        _ => None,
    };
    let mut column = ColumnDef::new(name, serial.unwrap_or(declared))?;
    if serial.is_some() {
        column.identity = Some(Identity::ByDefault);
        column.not_null = true;
    }
    Ok(column)
}

/// A literal is kept as a value; anything else is computed for each row.
pub(super) fn set_default(column: &mut ColumnDef, expression: &Expr<'_>) {
    (column.default, column.default_sql) = match value_of(expression) {
        Some(value) => (Some(column.accept(value.clone()).unwrap_or(value)), None),
        None => (None, Some(Sql(expression).to_string())),
    };
}

fn set_generated(
    column: &mut ColumnDef,
    expression: &Expr<'_>,
    kind: Option<&Id<'_>>,
) -> Result<(), SqlError> {
    let identity = match expression {
        Expr::Id(id) => unquoted(id.0),
        Expr::Name(name) => unquoted(name.0),
        _ => String::new(),
    };
    if identity == IDENTITY_ALWAYS || identity == IDENTITY_BY_DEFAULT {
        if column.kind != ColumnKind::Integer {
            let message = format!("identity column \"{}\" must be of an integer type", column.name);
            return Err(SqlError::new("22023", message));
        }
        let always = identity == IDENTITY_ALWAYS;
        column.identity = Some(if always { Identity::Always } else { Identity::ByDefault });
        column.not_null = true;
        return Ok(());
    }
    let stored = match kind.map(|kind| kind.0.to_ascii_uppercase()).as_deref() {
        None | Some("VIRTUAL") => false,
        Some("STORED") => true,
        Some(other) => {
            let message = format!("a generated column is STORED or VIRTUAL, not {other}");
            return Err(SqlError::new(state::SYNTAX, message));
        }
    };
    column.generated = Some(Generated { sql: Sql(expression).to_string(), stored });
    Ok(())
}

/// What the server makes of a row can be neither its key nor what memcached clients write; one column is numbered.
fn check_made_columns(def: &TableDef) -> Result<(), SqlError> {
    let bad = |message: String| Err(SqlError::new(state::BAD_DEFINITION, message));
    for (at, column) in def.columns.iter().enumerate() {
        let made = column.generated.is_some();
        if made && (column.default.is_some() || column.default_sql.is_some() || column.identity.is_some()) {
            return bad(format!("generated column \"{}\" cannot have a DEFAULT or an IDENTITY", column.name));
        }
        if made && def.is_key(at) {
            return bad(format!("generated column \"{}\" cannot be part of the primary key", column.name));
        }
        if made && def.options.value == Some(at) {
            return bad(format!(
                "generated column \"{}\" cannot be the value column of memcached clients",
                column.name
            ));
        }
    }
    if def.columns.iter().filter(|column| column.identity.is_some()).count() > 1 {
        return Err(SqlError::not_supported("a second identity column"));
    }
    Ok(())
}

/// A collation by its name.
pub(super) fn collation(name: &str) -> Result<Collation, SqlError> {
    Collation::of_name(name).ok_or_else(|| {
        SqlError::new(state::UNKNOWN_OBJECT, format!("collation \"{name}\" does not exist"))
            .with_hint("there are BINARY, NOCASE and RTRIM")
    })
}

fn no_foreign_keys(what: &str) -> SqlError {
    SqlError::not_supported(what)
        .with_hint("rows of a cache expire and are evicted; keep the constraint in the database")
}

fn two_keys(table: &str) -> SqlError {
    SqlError::new(
        state::BAD_DEFINITION,
        format!("multiple primary keys for table \"{table}\" are not allowed"),
    )
}

fn refuse_conflict_clause(clause: Option<ResolveType>) -> Result<(), SqlError> {
    match clause {
        None | Some(ResolveType::Abort) => Ok(()),
        Some(_) => {
            Err(SqlError::not_supported("ON CONFLICT in a definition").with_hint("write it in the INSERT"))
        }
    }
}
