//! Definitions: from the tree of `CREATE`, `DROP`, and from our own readers of `TRUNCATE` and `ALTER`, to the
//! store.

use sqlite3_parser::ast::{
    ColumnConstraint, ColumnDefinition, CreateTableBody, Expr, Name, NamedTableConstraint, QualifiedName,
    ResolveType, SortOrder, SortedColumn, Stmt, TableConstraint, Type,
};
use store::definition::{ColumnDef, IndexDef, TableDef};
use store::value::Value;

use crate::error::{SqlError, state};
use crate::executor::{Core, check_schema};
use crate::function::TABLE_FUNCTIONS;
use crate::system;
use crate::table::HIDDEN;
use crate::text::kind::StatementKind;
use crate::text::literal::value_of;
use crate::text::parse::{Sql, with_tree};
use crate::text::storage::{Alter, Setting, alter, split_parameters, truncate};
use crate::text::token::unquoted;

/// Carries out a definition and says what it was.
pub(crate) fn run(core: &Core, kind: StatementKind, sql: &str) -> Result<&'static str, SqlError> {
    match kind {
        StatementKind::Truncate => run_truncate(core, sql),
        StatementKind::Alter => run_alter(core, sql),
        _ => {
            let (text, settings) = split_parameters(sql)?;
            with_tree(&text, |tree| run_tree(core, tree, &settings))
        }
    }
}

fn run_truncate(core: &Core, sql: &str) -> Result<&'static str, SqlError> {
    let names = truncate(sql)?;
    names.iter().try_for_each(|name| system::refuse_change(name))?;
    let tables: Result<Vec<_>, _> = names
        .iter()
        .map(|name| core.catalog.table(name).ok_or_else(|| SqlError::unknown_table(name)))
        .collect();
    for table in tables? {
        core.store.truncate(table);
    }
    Ok("TRUNCATE TABLE")
}

fn run_alter(core: &Core, sql: &str) -> Result<&'static str, SqlError> {
    let (name, change) = alter(sql)?;
    system::refuse_change(&name)?;
    core.store.set_options(&name, &mut |options, columns| match &change {
        Alter::Set(settings) => {
            settings.iter().try_for_each(|(name, value)| options.set(name, value, columns))
        }
        Alter::Reset(names) => names.iter().try_for_each(|name| options.reset(name)),
    })?;
    Ok("ALTER TABLE")
}

fn run_tree(core: &Core, tree: &Stmt<'_>, settings: &[Setting]) -> Result<&'static str, SqlError> {
    if !settings.is_empty() && !matches!(tree, Stmt::CreateTable { .. }) {
        return Err(SqlError::not_supported("WITH (...) on anything but a table"));
    }
    match tree {
        Stmt::CreateTable { temporary: true, .. } => Err(SqlError::not_supported("a temporary table")
            .with_hint("rows of any table may expire: WITH (ttl = '5 min')")),
        Stmt::CreateTable { if_not_exists, tbl_name, body, .. } => {
            check_schema(tbl_name)?;
            create_table(core, *if_not_exists, tbl_name, body, settings)
        }
        Stmt::CreateIndex { unique, if_not_exists, idx_name, tbl_name, columns, where_clause } => {
            if where_clause.is_some() {
                return Err(SqlError::not_supported("an index with WHERE"));
            }
            let names = (idx_name, tbl_name);
            create_index(core, *unique, *if_not_exists, names, columns)
        }
        Stmt::DropTable { if_exists, tbl_name } => drop_table(core, *if_exists, tbl_name),
        Stmt::DropIndex { if_exists, idx_name } => drop_index(core, *if_exists, idx_name),
        Stmt::CreateView { .. } | Stmt::DropView { .. } => Err(SqlError::not_supported("a view")),
        Stmt::CreateTrigger { .. } | Stmt::DropTrigger { .. } => Err(SqlError::not_supported("a trigger")),
        Stmt::CreateVirtualTable { .. } => Err(SqlError::new(
            state::FORBIDDEN,
            "CREATE VIRTUAL TABLE is not allowed: a table is made by CREATE TABLE",
        )),
        _ => Err(SqlError::not_supported("this definition")),
    }
}

fn create_table(
    core: &Core,
    if_not_exists: bool,
    name: &QualifiedName<'_>,
    body: &CreateTableBody<'_>,
    settings: &[Setting],
) -> Result<&'static str, SqlError> {
    const TAG: &str = "CREATE TABLE";
    let name = unquoted(name.name.0);
    if if_not_exists && core.catalog.table(&name).is_some() {
        return Ok(TAG);
    }
    check_table_name(&name)?;
    let CreateTableBody::ColumnsAndConstraints { columns, constraints, .. } = body else {
        return Err(SqlError::not_supported("CREATE TABLE ... AS SELECT")
            .with_hint("create the table, then INSERT INTO it ... SELECT"));
    };
    let mut maker = TableMaker::new(&name);
    for column in columns {
        maker.column(column)?;
    }
    for constraint in constraints.unwrap_or_default() {
        maker.constraint(constraint)?;
    }
    let def = maker.finish(settings)?;
    match core.store.create_table(def) {
        Err(error) if error.state == "42P07" && if_not_exists => Ok(TAG),
        result => Ok(result.map(|_| TAG)?),
    }
}

/// Names that SQLite or this server keep for themselves.
fn check_table_name(name: &str) -> Result<(), SqlError> {
    const PREFIXES: &[&str] = &["sqlite_", "pragma_"];
    const NAMES: &[&str] =
        &["dbstat", "fts3tokenize", "bytecode", "tables_used", "sqlite_stmt", "rtree", "fts5vocab"];
    let lower = name.to_ascii_lowercase();
    let reserved = PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || system::is_reserved(&lower)
        || NAMES.contains(&lower.as_str())
        || TABLE_FUNCTIONS.contains(&lower.as_str());
    if reserved {
        return Err(SqlError::new(
            state::RESERVED_NAME,
            format!("the table name \"{name}\" is reserved; choose another"),
        ));
    }
    Ok(())
}

fn check_column_name(name: &str) -> Result<(), SqlError> {
    if HIDDEN.iter().any(|(hidden, ..)| hidden.eq_ignore_ascii_case(name)) {
        let message =
            format!("the column name \"{name}\" is reserved: every table has such a column, hidden");
        return Err(SqlError::new(state::RESERVED_NAME, message));
    }
    Ok(())
}

/// Gathers a table's definition.
struct TableMaker {
    def: TableDef,
    unique: Vec<Vec<usize>>,
}

impl TableMaker {
    fn new(name: &str) -> Self {
        let def = TableDef::new(name, Vec::new(), Vec::new());
        Self { def, unique: Vec::new() }
    }

    fn column(&mut self, definition: &ColumnDefinition<'_>) -> Result<(), SqlError> {
        let name = unquoted(definition.col_name.0);
        check_column_name(&name)?;
        let declared = definition.col_type.as_ref().map_or_else(String::new, declared_type);
        let mut column = ColumnDef::new(&name, &declared)?;
        let at = self.def.columns.len();
        for constraint in definition.constraints {
            match &constraint.constraint {
                ColumnConstraint::PrimaryKey { order, conflict_clause, auto_increment } => {
                    if *auto_increment {
                        return Err(SqlError::not_supported("AUTOINCREMENT")
                            .with_hint("a table without PRIMARY KEY numbers its rows"));
                    }
                    refuse_descending(*order)?;
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
                    self.unique.push(vec![at]);
                }
                ColumnConstraint::Default(expression) => {
                    column.default = Some(default_of(&column, expression)?);
                }
                ColumnConstraint::Check(_) => return Err(SqlError::not_supported("CHECK")),
                ColumnConstraint::Collate { .. } => {
                    return Err(SqlError::not_supported("COLLATE in a definition")
                        .with_hint("text compares by its bytes"));
                }
                ColumnConstraint::ForeignKey { .. } | ColumnConstraint::Defer(_) => {
                    return Err(SqlError::not_supported("REFERENCES").with_hint(
                        "rows of a cache come and go by themselves; leave the constraint to the database",
                    ));
                }
                ColumnConstraint::Generated { .. } => {
                    return Err(SqlError::not_supported("a generated column"));
                }
            }
        }
        self.def.columns.push(column);
        Ok(())
    }

    fn constraint(&mut self, constraint: &NamedTableConstraint<'_>) -> Result<(), SqlError> {
        match &constraint.constraint {
            TableConstraint::PrimaryKey { columns, auto_increment, conflict_clause } => {
                refuse_conflict_clause(*conflict_clause)?;
                if *auto_increment {
                    return Err(SqlError::not_supported("AUTOINCREMENT"));
                }
                if !self.def.primary_key.is_empty() {
                    return Err(two_keys(&self.def.name));
                }
                self.def.primary_key = self.columns(columns)?;
                for &column in &self.def.primary_key {
                    self.def.columns[column].not_null = true;
                }
            }
            TableConstraint::Unique { columns, conflict_clause } => {
                refuse_conflict_clause(*conflict_clause)?;
                let columns = self.columns(columns)?;
                self.unique.push(columns);
            }
            TableConstraint::Check(..) => return Err(SqlError::not_supported("CHECK")),
            TableConstraint::ForeignKey { .. } => return Err(SqlError::not_supported("FOREIGN KEY")),
        }
        Ok(())
    }

    fn columns(&self, list: &[SortedColumn<'_>]) -> Result<Vec<usize>, SqlError> {
        index_columns(&self.def, list)
    }

    fn finish(mut self, settings: &[Setting]) -> Result<TableDef, SqlError> {
        for (name, value) in settings {
            self.def.options.set(name, value, &self.def.columns)?;
        }
        for columns in std::mem::take(&mut self.unique) {
            // The primary key is unique already.
            if columns != self.def.primary_key {
                let name = self.unique_name(&columns);
                self.def.indexes.push(IndexDef { constraint: true, ..IndexDef::new(name, columns, true) });
            }
        }
        Ok(self.def)
    }

    /// `table_a_b_key`, as PostgreSQL names it, with a number where that name is taken.
    fn unique_name(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|&column| self.def.columns[column].name.as_str()).collect();
        let name = format!("{}_{}_key", self.def.name, names.join("_"));
        let taken = |name: &str| self.def.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name));
        let numbered = (1..).map(|number: u32| format!("{name}{number}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
    }
}

fn declared_type(declared: &Type<'_>) -> String {
    Sql(declared).to_string()
}

/// A default is a literal; the store checks that the column takes it.
fn default_of(column: &ColumnDef, expression: &Expr<'_>) -> Result<Value, SqlError> {
    let Some(value) = value_of(expression) else {
        let what = format!("DEFAULT {} of column \"{}\"", Sql(expression), column.name);
        return Err(SqlError::not_supported(what).with_hint("a default is a number, a text, a blob or NULL"));
    };
    Ok(column.accept(value.clone()).unwrap_or(value))
}

fn two_keys(table: &str) -> SqlError {
    SqlError::new(
        state::BAD_DEFINITION,
        format!("multiple primary keys for table \"{table}\" are not allowed"),
    )
}

fn refuse_descending(order: Option<SortOrder>) -> Result<(), SqlError> {
    match order {
        Some(SortOrder::Desc) => Err(SqlError::not_supported("DESC in an index")
            .with_hint("an index is read in both directions, so leave it out")),
        _ => Ok(()),
    }
}

fn refuse_conflict_clause(clause: Option<ResolveType>) -> Result<(), SqlError> {
    match clause {
        None | Some(ResolveType::Abort) => Ok(()),
        Some(_) => {
            Err(SqlError::not_supported("ON CONFLICT in a definition").with_hint("write it in the INSERT"))
        }
    }
}

/// The columns of a key or an index, by position.
fn index_columns(def: &TableDef, list: &[SortedColumn<'_>]) -> Result<Vec<usize>, SqlError> {
    let mut columns = Vec::with_capacity(list.len());
    for item in list {
        refuse_descending(item.order)?;
        let name = match &item.expr {
            Expr::Id(id) => unquoted(id.0),
            Expr::Name(name) => unquoted(name.0),
            Expr::Collate(..) => return Err(SqlError::not_supported("COLLATE in an index")),
            _ => return Err(SqlError::not_supported("an index of an expression")),
        };
        let column = def.column_index(&name).ok_or_else(|| SqlError::unknown_column(&def.name, &name))?;
        columns.push(column);
    }
    Ok(columns)
}

fn create_index(
    core: &Core,
    unique: bool,
    if_not_exists: bool,
    (index, table): (&QualifiedName<'_>, &Name<'_>),
    columns: &[SortedColumn<'_>],
) -> Result<&'static str, SqlError> {
    const TAG: &str = "CREATE INDEX";
    check_schema(index)?;
    let name = unquoted(index.name.0);
    let table = unquoted(table.0);
    system::refuse_change(&table)?;
    let table = core.catalog.table(&table).ok_or_else(|| SqlError::unknown_table(&table))?;
    if if_not_exists && core.catalog.index_owner(&name).is_some() {
        return Ok(TAG);
    }
    let columns = index_columns(table.def(), columns)?;
    match core.store.create_index(table.name(), IndexDef::new(name, columns, unique)) {
        Err(error) if error.state == "42P07" && if_not_exists => Ok(TAG),
        result => Ok(result.map(|()| TAG)?),
    }
}

fn drop_table(core: &Core, if_exists: bool, name: &QualifiedName<'_>) -> Result<&'static str, SqlError> {
    check_schema(name)?;
    system::refuse_change(&unquoted(name.name.0))?;
    match core.store.drop_table(&unquoted(name.name.0)) {
        Err(error) if error.state == state::UNKNOWN_TABLE && if_exists => Ok("DROP TABLE"),
        result => Ok(result.map(|()| "DROP TABLE")?),
    }
}

fn drop_index(core: &Core, if_exists: bool, name: &QualifiedName<'_>) -> Result<&'static str, SqlError> {
    check_schema(name)?;
    match core.store.drop_index(&unquoted(name.name.0)) {
        Err(error) if error.state == state::UNKNOWN_OBJECT && if_exists => Ok("DROP INDEX"),
        result => Ok(result.map(|()| "DROP INDEX")?),
    }
}
