//! A query that stands for a value: of more rows than one PostgreSQL refuses the statement, where SQLite takes the
//! first.
//!
//! Such a query is put into another, whose aggregate takes one row and refuses the second. A query that cannot give two
//! rows stays as it is: most are of that kind, and it is the cheaper one.

use pgcatalog::function::{self, ONLY_ROW};
use pgcatalog::system::row_function;
use sqltext::ast::{
    BinaryOperator, Expr, Fetch, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, LimitClause,
    Query, Select, SelectItem, SetExpr, TableFactor, Value,
};
use sqltext::literals::bare;
use store::Table;

use super::calls::renamed;
use super::out::Out;
use super::{Item, Step, Translator};

/// What the rows of such a query are called: no table has this name.
const ROWS: &str = "\"rows of a value\"";

impl<'a> Translator<'a, '_> {
    /// A query in parentheses that stands for a value, or for several side by side.
    pub(super) fn value_of_query(&mut self, query: &Query) -> Step<Out<'a>> {
        let may_give_more = !self.served && self.may_give_more(query);
        let (out, items) = self.subquery_with_items(query)?;
        if !may_give_more {
            return Ok(out);
        }
        let width = Item::expanded(&items).map_or(0, |all| all.len());
        if width == 0 {
            return Ok(out);
        }
        let list = |of: &dyn Fn(usize) -> String| (0..width).map(of).collect::<Vec<_>>().join(", ");
        let names = list(&|at| format!("c{at}"));
        let values = list(&|at| format!("{ONLY_ROW}(c{at})"));
        let (ty, form, label) = (out.ty, (*out.form).clone(), out.label.clone());
        let before = format!("(WITH {ROWS}({names}) AS ");
        let whole = out.wrapped(&before, &format!(" SELECT {values} FROM {ROWS})"));
        let mut whole = whole.of_type(ty).formed(form);
        whole.label = label;
        Ok(whole)
    }

    /// Whether a query may give two rows.
    fn may_give_more(&self, query: &Query) -> bool {
        if is_limited(query) {
            return false;
        }
        match &*query.body {
            SetExpr::Select(select) => !self.gives_one(select),
            SetExpr::Values(values) => values.rows.len() > 1,
            SetExpr::Query(inner) => self.may_give_more(inner),
            _ => true,
        }
    }

    fn gives_one(&self, select: &Select) -> bool {
        let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(terms, _) if terms.is_empty());
        if grouped {
            return false;
        }
        let mut listed = select.projection.iter().map(expression_of);
        if select.from.is_empty() {
            return listed.all(|expr| expr.is_some_and(|expr| !gives_rows(expr)));
        }
        listed.any(|expr| expr.is_some_and(aggregates)) || self.is_by_key(select)
    }

    /// Whether it reads one table by all columns of its key, or of something that is unique.
    fn is_by_key(&self, select: &Select) -> bool {
        let [from] = &select.from[..] else { return false };
        let TableFactor::Table { name, alias, args: None, .. } = &from.relation else { return false };
        let own = name.0.last().and_then(|part| part.as_ident()).map(|name| name.value.as_str());
        let (Some(own), Some(condition), true) = (own, &select.selection, from.joins.is_empty()) else {
            return false;
        };
        let spreads = select.projection.iter().any(|item| expression_of(item).is_none_or(gives_rows));
        let table = self.names.table(own).filter(|_| name.0.len() == 1 && !spreads);
        let called = alias.as_ref().map_or(own, |alias| alias.name.value.as_str());
        table.is_some_and(|table| {
            let mut equal = Vec::new();
            gather_equal(condition, table, called, &mut equal);
            let all = |columns: &[usize]| !columns.is_empty() && columns.iter().all(|at| equal.contains(at));
            let unique = table.indexes().iter().map(|index| index.def()).any(|index| {
                index.unique && index.predicate.is_none() && index.elements.is_none() && all(&index.columns)
            });
            unique || all(&table.def().primary_key)
        })
    }
}

/// The columns of a table that a condition has equal to something that is the same for all of its rows.
fn gather_equal(condition: &Expr, table: &Table, called: &str, equal: &mut Vec<usize>) {
    let Expr::BinaryOp { left, op, right } = bare(condition) else { return };
    match op {
        BinaryOperator::And => {
            gather_equal(left, table, called, equal);
            gather_equal(right, table, called, equal);
        }
        BinaryOperator::Eq => {
            let column = |expr: &Expr| column_of(bare(expr), table, called);
            for (one, other) in [(left, right), (right, left)] {
                if let Some(at) = column(one).filter(|_| is_of_others(bare(other), called)) {
                    equal.push(at);
                }
            }
        }
        _ => {}
    }
}

fn column_of(expr: &Expr, table: &Table, called: &str) -> Option<usize> {
    let name = match expr {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [of, name] if of.value.eq_ignore_ascii_case(called) => name,
            _ => return None,
        },
        _ => return None,
    };
    table.def().column_index(&name.value)
}

/// Whether an expression says nothing of a table's row: a literal, a parameter, a column of another table.
fn is_of_others(expr: &Expr, called: &str) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Cast { expr, .. } => is_of_others(bare(expr), called),
        Expr::CompoundIdentifier(parts) => {
            parts.len() == 2 && parts.first().is_some_and(|of| !of.value.eq_ignore_ascii_case(called))
        }
        _ => false,
    }
}

/// Whether it says itself that it gives no more than one row.
fn is_limited(query: &Query) -> bool {
    let limit = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.as_ref(),
        Some(LimitClause::OffsetCommaLimit { limit, .. }) => Some(limit),
        None => None,
    };
    let fetched = |fetch: &Fetch| !fetch.percent && fetch.quantity.as_ref().is_none_or(is_one);
    limit.is_some_and(is_one) || query.fetch.as_ref().is_some_and(fetched)
}

fn is_one(count: &Expr) -> bool {
    let Expr::Value(value) = bare(count) else { return false };
    matches!(&value.value, Value::Number(number, _) if number == "1" || number == "0")
}

fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(bare(expr)),
        _ => None,
    }
}

/// Whether an expression may be a call that gives rows: one whose function is not known may.
fn gives_rows(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let name = function.name.to_string().to_ascii_lowercase();
    row_function(&name).is_some() || name == "unnest" || function::returns(&name).is_none()
}

/// Whether an aggregate is in an expression, as far as this looks.
fn aggregates(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let name = renamed(&name);
            let FunctionArguments::List(list) = &function.args else { return false };
            // `max(a, b)` is none.
            let several = list.args.len() > 1 && matches!(name, "max" | "min");
            if function.over.is_none() && !several && (function::kind(name) == "a" || name == ONLY_ROW) {
                return true;
            }
            let mut inner = list.args.iter().filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            });
            function.over.is_none() && inner.any(aggregates)
        }
        Expr::BinaryOp { left, right, .. } => aggregates(left) || aggregates(right),
        Expr::UnaryOp { expr, .. } | Expr::Cast { expr, .. } => aggregates(expr),
        _ => false,
    }
}
