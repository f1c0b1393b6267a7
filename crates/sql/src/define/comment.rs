//! `COMMENT ON`: kept with the definition that it is about.

use pgcatalog::system;
use sqltext::definition::{Comment, Commented, ObjectKind};
use store::definition::{COMMENT_BYTES_MAX, DefinitionError, TableDef};

use super::{Defined, Note, altered};
use crate::core::Core;
use crate::error::{SqlError, state};

const TAG: &str = "COMMENT";

pub(super) fn run(core: &Core, comment: &Comment) -> Result<Defined, SqlError> {
    // An empty comment is none, as in PostgreSQL.
    let text = comment.text.as_deref().filter(|text| !text.is_empty());
    if let Some(text) = text.filter(|text| text.len() > COMMENT_BYTES_MAX) {
        let message = format!("comment has {} bytes; the limit is {COMMENT_BYTES_MAX}", text.len());
        return Err(SqlError::new(state::TOO_LARGE, message));
    }
    match &comment.about {
        Commented::Object(ObjectKind::Table, name) => on_table(core, &name.text, &mut |def| {
            def.comment = text.map(ToOwned::to_owned);
            Ok(())
        }),
        Commented::Object(ObjectKind::Materialized, name) => {
            super::materialized::of_name(core, &name.text)?;
            on_table(core, &name.text, &mut |def| {
                def.comment = text.map(ToOwned::to_owned);
                Ok(())
            })
        }
        Commented::Object(ObjectKind::Index, name) => on_index(core, &name.text, text),
        Commented::Object(ObjectKind::View, name) => on_view(core, &name.text, text),
        Commented::Column(table, column) => on_column(core, &table.text, &column.text, text),
        Commented::Constraint(table, name) => {
            let of = core.catalog.table(&table.text).ok_or_else(|| SqlError::unknown_table(&table.text))?;
            let known = of.def().checks.iter().map(|check| &check.name);
            let known = known.chain(of.def().indexes.iter().map(|index| &index.name));
            let mut known = known.chain(of.def().foreign_keys.iter().map(|key| &key.name));
            if !known.any(|known| known.eq_ignore_ascii_case(&name.text)) {
                let message =
                    format!("constraint \"{}\" for table \"{}\" does not exist", name.text, table.text);
                return Err(SqlError::new(state::UNKNOWN_OBJECT, message));
            }
            Ok(not_kept())
        }
        Commented::Object(ObjectKind::Enum | ObjectKind::Schema | ObjectKind::Sequence, _)
        | Commented::Other => Ok(not_kept()),
    }
}

fn not_kept() -> Defined {
    let note =
        Note::hinted("the comment is not kept", "comments on tables, columns, indexes and views are kept");
    Defined::skipped(TAG, note)
}

fn on_table(
    core: &Core,
    name: &str,
    change: &mut dyn FnMut(&mut TableDef) -> Result<(), DefinitionError>,
) -> Result<Defined, SqlError> {
    system::refuse_change(name)?;
    let table = core.catalog.table(name).ok_or_else(|| SqlError::unknown_table(name))?;
    core.store.alter_table(name, change)?;
    Ok(Defined::undone_by(TAG, altered(table)))
}

fn on_column(core: &Core, table: &str, column: &str, text: Option<&str>) -> Result<Defined, SqlError> {
    if core.catalog.view(table).is_some() {
        return Ok(not_kept());
    }
    let of = core.catalog.table(table).ok_or_else(|| SqlError::unknown_table(table))?;
    let at =
        of.def().column_index(column).ok_or_else(|| SqlError::unknown_column(of.def().own_name(), column))?;
    on_table(core, table, &mut |def| {
        def.columns[at].comment = text.map(ToOwned::to_owned);
        Ok(())
    })
}

fn on_index(core: &Core, name: &str, text: Option<&str>) -> Result<Defined, SqlError> {
    let owner = core.catalog.index_owner(name).map(|table| table.name().to_owned());
    let owner = owner
        .ok_or_else(|| SqlError::new(state::UNKNOWN_OBJECT, format!("index \"{name}\" does not exist")))?;
    on_table(core, &owner, &mut |def| {
        let own = super::drop::within(def, name).unwrap_or(name).to_owned();
        let index = def.indexes.iter_mut().find(|index| index.name.eq_ignore_ascii_case(&own));
        if let Some(index) = index {
            index.comment = text.map(ToOwned::to_owned);
        }
        Ok(())
    })
}

fn on_view(core: &Core, name: &str, text: Option<&str>) -> Result<Defined, SqlError> {
    let Some(view) = core.catalog.view(name) else {
        return Err(SqlError::new(state::UNKNOWN_TABLE, format!("view \"{name}\" does not exist")));
    };
    let undo = super::Undo::ViewComment(view.name.clone(), view.comment.clone());
    core.store.comment_view(name, text)?;
    Ok(Defined::undone_by(TAG, undo))
}
