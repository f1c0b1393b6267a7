//! What SQLite says of a definition: it is carried out once in an empty database of its own, whose tables are native.
//!
//! So everything that SQLite refuses in a definition is refused here with SQLite's words: columns that are not there,
//! subqueries, functions whose answer changes, a generated column that depends on itself, an unknown collation.

use std::rc::Rc;
use std::sync::Weak;

use pgcatalog::function::{self, Caller, Now};
use sqlite::{Connection, Failure, Statement, Unrestricted};
use store::Clock;
use store::definition::{ColumnDef, ColumnKind, IndexDef, TableDef};

use super::Computer;
use super::plan::TablePlan;
use crate::error::SqlError;
use crate::text::token::quoted_name;

/// Proves a table's expressions: SQLite takes them where they stand, and they call nothing that is forbidden.
pub(crate) fn check_definition(def: &TableDef) -> Result<(), SqlError> {
    if !def.computes() {
        return Ok(());
    }
    let connection = Connection::open(Rc::new(Unrestricted))?;
    function::register(&connection, &Rc::new(Nobody))?;
    super::register_orders(&connection, def)?;
    carry_out(&connection, "PRAGMA trusted_schema = ON")?;
    carry_out(&connection, &create_table(def))?;
    for index in def.indexes.iter().filter(|index| index.reads().any(|at| def.columns[at].hidden)) {
        carry_out(&connection, &create_index(def, index))?;
    }
    let computer = Computer::new(Clock::System, Weak::new())?;
    TablePlan::new(&computer.connection, &computer.row, def)?;
    let defaults = def.columns.iter().filter_map(|column| column.default_sql.as_ref());
    defaults
        .into_iter()
        .try_for_each(|sql| Statement::prepare(&computer.connection, &format!("SELECT {sql}")).map(|_| ()))?;
    Ok(())
}

/// No statement is run, so no function is called.
struct Nobody;

impl Caller for Nobody {
    fn now(&self) -> Now {
        Now { us: 0 }
    }

    fn fail(&self, error: SqlError) -> String {
        error.message
    }
}

fn carry_out(connection: &Rc<Connection>, sql: &str) -> Result<(), SqlError> {
    let (statement, _) = Statement::prepare(connection, sql)?;
    let Some(mut statement) = statement else { return Ok(()) };
    statement.run(std::iter::empty(), &mut |_| Ok::<(), Failure>(()))?;
    Ok(())
}

fn create_table(def: &TableDef) -> String {
    let columns = def.columns.iter().filter(|column| !column.hidden).map(native_column);
    let checks = def.checks.iter();
    let checks = checks.map(|check| format!("CONSTRAINT {} CHECK ({})", quoted_name(&check.name), check.sql));
    let parts: Vec<String> = columns.chain(checks).collect();
    format!("CREATE TABLE {} ({})", quoted_name(def.own_name()), parts.join(", "))
}

fn native_column(column: &ColumnDef) -> String {
    let (name, kind) = (quoted_name(&column.name), type_name(column.kind));
    let collation = column.collation.name();
    let default = column.default_sql.as_ref().map_or_else(String::new, |sql| format!(" DEFAULT ({sql})"));
    let generated =
        column.generated.as_ref().map_or_else(String::new, |generated| format!(" AS ({})", generated.sql));
    format!("{name} {kind} COLLATE {collation}{default}{generated}")
}

fn type_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Integer => "INTEGER",
        ColumnKind::Real => "REAL",
        ColumnKind::Text | ColumnKind::Numeric => "TEXT",
        ColumnKind::Blob | ColumnKind::Any => "BLOB",
    }
}

fn create_index(def: &TableDef, index: &IndexDef) -> String {
    let source = |at: usize| match &def.columns[at] {
        ColumnDef { hidden: true, generated: Some(generated), .. } => format!("({})", generated.sql),
        column => quoted_name(&column.name),
    };
    let columns: Vec<String> = index.named().iter().map(|&at| source(at)).collect();
    let condition = index.predicate.map_or_else(String::new, |at| format!(" WHERE {}", source(at)));
    let (name, table) = (quoted_name(&index.name), quoted_name(def.own_name()));
    format!("CREATE INDEX {name} ON {table} ({}){condition}", columns.join(", "))
}
