//! `CREATE VIEW` and `DROP VIEW`: a view's text is kept among the definitions, and each connection knows it as a view
//! of SQLite's.

use sqlite3_parser::ast::{IndexedColumn, QualifiedName, Select};
use store::definition::ViewDef;

use super::{Defined, Undo, check_table_name};
use crate::core::Core;
use crate::error::{SqlError, state};
use crate::text::parse::Sql;
use crate::text::token::{Kind, Tokens, unquoted};

/// What happens where a view of the name is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Refused,
    Kept,
    Replaced,
}

impl Existing {
    pub(super) fn of(if_not_exists: bool, replace: bool) -> Self {
        match (if_not_exists, replace) {
            (_, true) => Self::Replaced,
            (true, false) => Self::Kept,
            (false, false) => Self::Refused,
        }
    }
}

pub(super) fn create(
    core: &Core,
    existing: Existing,
    name: &QualifiedName<'_>,
    columns: Option<&[IndexedColumn<'_>]>,
    select: &Select<'_>,
) -> Result<Defined, SqlError> {
    const TAG: &str = "CREATE VIEW";
    let name = unquoted(name.name.0);
    if existing == Existing::Kept && core.catalog.view(&name).is_some() {
        return Ok(Defined::present(TAG, &name));
    }
    check_table_name(&name)?;
    let sql = Sql(select).to_string();
    if Tokens::new(&sql).any(|token| token.kind == Kind::Parameter) {
        return Err(SqlError::new(state::SYNTAX, "a view cannot have parameters"));
    }
    let columns: Vec<String> =
        columns.unwrap_or_default().iter().map(|column| unquoted(column.col_name.0)).collect();
    // Whatever is wrong with the query is told now.
    let width = core.compile(&sql)?.columns();
    if !columns.is_empty() && columns.len() != width {
        let message = format!("view \"{name}\" names {} columns, but its query has {width}", columns.len());
        return Err(SqlError::new(state::SYNTAX, message));
    }
    let view = ViewDef { id: 0, name: name.clone(), columns, sql };
    let undo = gone(core, &name).unwrap_or_else(|| Undo::View(name.clone()));
    match core.store.create_view(view, existing == Existing::Replaced) {
        Err(error) if error.state == state::DUPLICATE_TABLE && existing == Existing::Kept => {
            Ok(Defined::present(TAG, &name))
        }
        result => Ok(result.map(|()| Defined { undo, ..TAG.into() })?),
    }
}

/// Makes the view again that is there now.
fn gone(core: &Core, name: &str) -> Option<Undo> {
    core.catalog.view(name).map(|view| Undo::ViewGone(Box::new(ViewDef::clone(view))))
}

pub(super) fn drop(core: &Core, if_exists: bool, name: &QualifiedName<'_>) -> Result<Defined, SqlError> {
    const TAG: &str = "DROP VIEW";
    let name = unquoted(name.name.0);
    let undo = gone(core, &name).unwrap_or(Undo::Nothing);
    match core.store.drop_view(&name) {
        Err(error) if error.state == state::UNKNOWN_TABLE && if_exists => {
            Ok(Defined::missing(TAG, "view", &name))
        }
        result => Ok(result.map(|()| Defined { undo, ..TAG.into() })?),
    }
}
