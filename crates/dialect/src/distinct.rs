//! `SELECT DISTINCT ON (keys)`: of the rows that have the same keys, the first one in the order of the query.
//!
//! SQLite has no such words. The rows get a number within their keys, and those numbered 1 are the result. A key or a
//! term of the order is a column more, unless it is one of the result's already.

use sqltext::ast::{Expr, OrderBy, OrderByKind, OrderBySort, Select};
use sqltext::error::state;
use sqltext::token::{Kind, quoted_name};

use super::equals::collated;
use super::out::Out;
use super::scope::Column;
use super::{Item, Step, Stop, Translator, nulls};

/// What the rows are called in the new text; a name that nobody gives a table.
const ROWS: &str = "\"rows of distinct on\"";

/// Columns that the result does not have.
#[derive(Default)]
struct Further<'a> {
    text: Out<'a>,
    count: usize,
}

impl<'a> Translator<'a, '_> {
    pub(super) fn first_rows(
        &mut self,
        select: &Select,
        keys: &[Expr],
        order: Option<&OrderBy>,
    ) -> Step<Out<'a>> {
        let word = self.peek_at(1);
        let mut rows = self.select(select)?;
        let (list_end, resume) = (self.list_end, self.at);
        let items = self.queries.last().cloned().flatten().unwrap_or_default();
        let Some(columns) = self.columns_of_items(&items) else {
            let message = "SELECT DISTINCT ON with * of unknown columns is not supported; name the columns";
            return Err(self.error_at(word, state::NOT_SUPPORTED, message));
        };
        let mut further = Further::default();
        self.at = self.distinct_keys;
        let keys = self.key_columns(keys, &columns, &mut further)?;
        self.at = resume;
        let order = self.order_columns(order, &columns, &mut further)?;
        self.name_all(&columns);
        let own: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
        let added = (0..further.count).map(|at| format!("x{at}"));
        let all: Vec<String> = own.iter().cloned().chain(added).collect();
        let given: Vec<String> = own
            .iter()
            .zip(&columns)
            .map(|(own, (name, _))| format!("{own} AS {}", quoted_name(name)))
            .collect();
        rows.insert(list_end, further.text);
        let before = format!(
            "SELECT {} FROM (SELECT *, row_number() OVER (PARTITION BY {}{order}) AS n FROM \
             (WITH {ROWS}({}) AS (",
            given.join(", "),
            keys.join(", "),
            all.join(", "),
        );
        Ok(rows.wrapped(&before, &format!(") SELECT * FROM {ROWS})) WHERE n = 1{order}")))
    }

    /// The keys in parentheses, as columns.
    fn key_columns(
        &mut self,
        keys: &[Expr],
        columns: &[Column],
        further: &mut Further<'a>,
    ) -> Step<Vec<String>> {
        self.sign("(")?;
        let mut found = Vec::with_capacity(keys.len());
        for (at, key) in keys.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
            }
            found.push(self.sorting_column(key, columns, further)?);
        }
        Ok(found)
    }

    /// `ORDER BY` by columns; empty where there is none.
    fn order_columns(
        &mut self,
        order: Option<&OrderBy>,
        columns: &[Column],
        further: &mut Further<'a>,
    ) -> Step<String> {
        let Some(OrderBy { kind, .. }) = order else { return Ok(String::new()) };
        let OrderByKind::Expressions(terms) = kind else { return Err(Stop::Unknown) };
        self.keyword("ORDER")?;
        self.keyword("BY")?;
        let mut text = String::from(" ORDER BY ");
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
                text.push_str(", ");
            }
            text.push_str(&self.sorting_column(&term.expr, columns, further)?);
            let options = &term.options;
            while let Some(word) =
                self.peek().filter(|word| word.is_any(&["ASC", "DESC", "NULLS", "FIRST", "LAST"]))
            {
                self.at += 1;
                text.push(' ');
                text.push_str(word.text);
            }
            if options.nulls_first.is_none() {
                text.push_str(nulls::words(matches!(options.sort, Some(OrderBySort::Desc))));
            }
        }
        Ok(text)
    }

    /// A column of the result by its name or number, or one more.
    fn sorting_column(&mut self, expr: &Expr, columns: &[Column], further: &mut Further<'a>) -> Step<String> {
        let own = match expr {
            Expr::Identifier(name) => {
                columns.iter().position(|(own, _)| own.eq_ignore_ascii_case(&name.value))
            }
            Expr::Value(_) => self
                .peek()
                .filter(|token| token.kind == Kind::Number)
                .and_then(|token| token.text.parse::<usize>().ok()?.checked_sub(1))
                .filter(|at| *at < columns.len()),
            _ => None,
        };
        if let Some(at) = own {
            self.at += 1;
            let column = collated(Out::made(format!("c{at}"), 0).of_type(columns[at].1));
            return Ok(column.sql());
        }
        let column = collated(self.expression(expr)?);
        further.text.push_str(", ");
        further.text.push(column);
        further.count += 1;
        Ok(format!("x{}", further.count - 1))
    }

    /// The result's columns are no longer those of a table, so a star is told column by column.
    fn name_all(&mut self, columns: &[Column]) {
        let Some(Some(items)) = self.queries.last_mut() else { return };
        if items.iter().any(|item| item.star) {
            *items = columns
                .iter()
                .map(|(name, ty)| Item { ty: *ty, label: Some(name.clone()), ..Item::default() })
                .collect();
        }
    }
}
