//! `SELECT count(*)`: of a table, by the store's own account where that is exact; under conditions, along an index.

use sqlite3_parser::ast::{As, Expr, ResultColumn};
use store::definition::SqlType;
use store::value::Value;
use store::{KeyBounds, View};

use super::{DirectPlan, WATCH_ROWS, Way};
use crate::describe::{OwnedColumn, lent};
use crate::error::SqlError;
use crate::executor::{Core, Done, DoneKind, RowSink};
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
    Some(OwnedColumn { name, label, ty: SqlType::Int8, table: None })
}

impl DirectPlan {
    /// Answers with the number of rows; `values` are those that the conditions ask for, `None` where no row matches.
    pub(super) fn count(
        &mut self,
        core: &Core,
        column: &OwnedColumn,
        values: Option<Vec<Value>>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let rows = match values {
            Some(values) => self.counted(core, &core.view(), values)?,
            None => 0,
        };
        out.columns(&lent(std::slice::from_ref(column)));
        out.row(&[store::value::ValueRef::Integer(rows.cast_signed())])?;
        Ok(Done { kind: DoneKind::Rows, affected: 1, tag: "SELECT" })
    }

    fn counted(&mut self, core: &Core, view: &View<'_>, values: Vec<Value>) -> Result<u64, SqlError> {
        match self.way {
            Way::All => match view.known_rows(&self.table) {
                Some(rows) => Ok(rows),
                None => self.count_scan(core, view),
            },
            Way::Key => {
                let there = self.encode_key(&values) && view.get(&self.table, &self.key, &mut self.row)?;
                Ok(u64::from(there))
            }
            Way::Index(index) => {
                let index = &self.table.indexes()[index];
                let mut rows = view.range(&self.table, index, &KeyBounds::equal(values), false);
                let row = &mut self.row;
                counted(core, || Ok(rows.next(view, row)?))
            }
        }
    }

    fn count_scan(&mut self, core: &Core, view: &View<'_>) -> Result<u64, SqlError> {
        let mut rows = view.scan(&self.table);
        let row = &mut self.row;
        counted(core, || Ok(rows.next(view, row)?))
    }
}

/// How often `next` says that there is one more.
fn counted(core: &Core, mut next: impl FnMut() -> Result<bool, SqlError>) -> Result<u64, SqlError> {
    let mut rows = 0;
    while next()? {
        rows += 1;
        if rows % WATCH_ROWS as u64 == 0 {
            core.sight.check_watch()?;
        }
    }
    Ok(rows)
}
