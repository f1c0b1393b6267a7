//! `SELECT count(*)`: of a table, by the store's own account where that is exact; under conditions, along an index.

use std::sync::Arc;

use sqlite3_parser::ast::{As, Expr, ResultColumn};
use store::definition::SqlType;
use store::value::{Value, ValueRef};
use store::{RowBuf, Table};

use super::values::with_values;
use super::{DirectPlan, WATCH_ROWS, Way};
use crate::describe::{OwnedColumn, lent};
use crate::error::SqlError;
use crate::executor::{ComputedBy, Core, Done, DoneKind, RowSink};
use crate::text::token::unquoted;

/// The column of a list that is `count(*)` and nothing else. `sql` is the statement, whose words name the column.
pub(super) fn column(list: &[ResultColumn<'_>], sql: &str) -> Option<OwnedColumn> {
    let [ResultColumn::Expr(expression, alias)] = list else { return None };
    let Expr::FunctionCallStar { name, filter_over: None } = expression else { return None };
    if !unquoted(name.0).eq_ignore_ascii_case("count") {
        return None;
    }
    let (name, label) = match alias {
        Some(As::As(alias) | As::Elided(alias)) => (unquoted(alias.0), unquoted(alias.0)),
        None => {
            let written = format!("{}(*)", name.0);
            // Written with blanks in between it is called so.
            (sql.contains(&written).then_some(written)?, "count".to_owned())
        }
    };
    Some(OwnedColumn { name, label, ty: SqlType::Int8, table: None, scale: None })
}

impl DirectPlan {
    /// Answers with the number of rows that the conditions leave.
    pub(super) fn count(
        &mut self,
        core: &Core,
        column: &OwnedColumn,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let Self { table, conditions, way, row, key, .. } = self;
        let rows = with_values(table, conditions, parameters, |values| match values {
            Some(values) => counted(core, table, *way, values, (row, key)),
            None => Ok(0),
        })?;
        out.columns(&lent(std::slice::from_ref(column)));
        out.row(&[ValueRef::Integer(rows.cast_signed())])?;
        Ok(Done { kind: DoneKind::Rows, affected: 1, tag: "SELECT", by: ComputedBy::Native })
    }
}

fn counted(
    core: &Core,
    table: &Arc<Table>,
    way: Way,
    values: &[ValueRef<'_>],
    (row, key): (&mut RowBuf, &mut Vec<u8>),
) -> Result<u64, SqlError> {
    let view = core.view();
    match way {
        Way::All => {
            if let Some(rows) = view.known_rows(table) {
                return Ok(rows);
            }
            let mut rows = view.scan(table);
            how_often(core, || Ok(rows.next(&view, row)?))
        }
        Way::Key | Way::Keys => {
            key.clear();
            let there = table.keys().encode(values, key).is_ok() && view.get(table, key, row)?;
            Ok(u64::from(there))
        }
        Way::Index(index) => {
            let mut rows = view.equal(table, &table.indexes()[index], values, false);
            how_often(core, || Ok(rows.next(&view, row)?))
        }
    }
}

/// How often `next` says that there is one more.
pub(super) fn how_often(
    core: &Core,
    mut next: impl FnMut() -> Result<bool, SqlError>,
) -> Result<u64, SqlError> {
    let mut rows = 0;
    while next()? {
        rows += 1;
        if rows % WATCH_ROWS as u64 == 0 {
            core.sight.check_watch()?;
        }
    }
    Ok(rows)
}
