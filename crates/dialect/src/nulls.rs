//! Where rows without a value come in an order: behind all others, and before them with `DESC`, as PostgreSQL has them.
//! SQLite has them the other way round, and so have the indexes.
//!
//! An index gives the order nevertheless: of a column that cannot be NULL the order is asked for as it stands, and in
//! front of another one stands the hidden column that says where it is NULL. Words for the place of NULL, which SQLite
//! has, too, would have it sort all rows.

use sqltext::ast::{BinaryOperator, Expr, GroupByExpr, OrderByExpr, OrderBySort, SetExpr, Value};
use sqltext::literals::bare;

use pgcatalog::shape::{has_absence, name_of_absence};
use sqltext::token::quoted_name;

use super::Translator;
use super::out::Out;
use super::outputs::Output;
use super::scope::{Relation, Source};
use crate::lowered::Node;

/// What is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sorted {
    /// Rows of the tables of the query under way, or of their joins.
    Rows,
    /// What comes of these: groups, different rows, the arguments of a function.
    Results,
    /// The rows of several queries.
    Arms,
}

impl Sorted {
    /// What the rows of a query are.
    pub(super) fn of(body: &SetExpr) -> Self {
        let SetExpr::Select(select) = body else { return Self::Arms };
        let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(terms, _) if terms.is_empty());
        let plain = select.distinct.is_none() && select.having.is_none() && ungrouped;
        if plain { Self::Rows } else { Self::Results }
    }
}

/// How the place of NULL in an order is said.
#[derive(Debug)]
pub(super) enum Wording {
    /// Not at all, for there is none.
    Nothing,
    /// By words behind the term.
    Behind(&'static str),
    /// By a term in front of it.
    InFront(String),
}

/// The words for an order in which NULL comes first, or last.
pub(super) fn words(first: bool) -> &'static str {
    if first { " NULLS FIRST" } else { " NULLS LAST" }
}

impl<'a> Translator<'a, '_> {
    /// Notes the columns that are not NULL where a condition holds.
    pub(super) fn note_present(&mut self, condition: &Expr) {
        let mut present = Vec::new();
        self.add_present(condition, &mut present);
        if let Some(scope) = self.scopes.innermost_mut() {
            scope.present = present;
        }
    }

    fn add_present(&self, condition: &Expr, found: &mut Vec<(String, String)>) {
        let mut add = |expr: &Expr| {
            let first = match bare(expr) {
                Expr::Tuple(parts) => parts.first(),
                expr => Some(expr),
            };
            if let Some((relation, column)) = first.and_then(|expr| self.column_of(expr)) {
                found.push((relation.name.to_lowercase(), column.to_lowercase()));
            }
        };
        match bare(condition) {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.add_present(left, found);
                self.add_present(right, found);
            }
            // A row whose first column is NULL may still differ from another one.
            Expr::BinaryOp { left, op: BinaryOperator::NotEq, right }
                if [left, right].iter().any(|side| matches!(bare(side), Expr::Tuple(_))) => {}
            Expr::BinaryOp { left, op, right } if compares(op) => {
                add(left);
                add(right);
            }
            Expr::IsNotNull(expr)
            | Expr::Between { expr, .. }
            | Expr::InList { expr, negated: false, .. }
            | Expr::InSubquery { expr, negated: false, .. }
            | Expr::Like { expr, .. }
            | Expr::ILike { expr, .. } => add(expr),
            _ => {}
        }
    }

    /// How the place of NULL is said for a term that became `by`.
    pub(super) fn nulls_of(
        &self,
        term: &OrderByExpr,
        outputs: &[Output<'a>],
        sorted: Sorted,
        by: &Out<'_>,
    ) -> Wording {
        let descending = matches!(term.options.sort, Some(OrderBySort::Desc));
        let first = term.options.nulls_first.unwrap_or(descending);
        let never = || sorted != Sorted::Arms && !self.may_be_null(&term.expr, outputs);
        if never() {
            return Wording::Nothing;
        }
        if first != descending {
            // SQLite has it there anyway, but a view's text is read as PostgreSQL's once more.
            return Wording::Behind(words(first));
        }
        let absence =
            Some(()).filter(|()| sorted == Sorted::Rows).and_then(|()| self.absence_of(term, outputs, by));
        match absence {
            Some(column) if descending => Wording::InFront(format!(" {column} DESC, ")),
            Some(column) => Wording::InFront(format!(" {column}, ")),
            None => Wording::Behind(words(first)),
        }
    }

    /// The hidden column that says where a term is NULL.
    fn absence_of(&self, term: &OrderByExpr, outputs: &[Output<'a>], by: &Out<'_>) -> Option<String> {
        if let Some(hidden) = self.hidden_of(by) {
            return hidden.absence.clone();
        }
        let (relation, name) = self.column_meant(&term.expr, outputs)?;
        self.absence_in(relation, self.names.table(table_of(relation)?)?.def().column_index(name)?)
    }

    /// The hidden column that says where a column of a relation is NULL; `None`: there is none, or rows of the relation
    /// may be missing.
    pub(super) fn absence_in(&self, relation: &Relation, column: usize) -> Option<String> {
        let scope = self.scopes.innermost()?;
        let once = |other: &&Relation| other.name.eq_ignore_ascii_case(&relation.name);
        let table = self.names.table(table_of(relation)?)?;
        let shown = self.by_index
            && !relation.optional
            && !scope.all_optional
            && scope.relations.iter().filter(once).count() == 1
            && has_absence(table.def(), column);
        shown.then(|| format!("{}.{}", quoted_name(&relation.name), quoted_name(&name_of_absence(column))))
    }

    /// Whether a term of an order may be NULL. `outputs`: the columns that a name may mean, where these are first.
    pub(super) fn may_be_null(&self, term: &Expr, outputs: &[Output<'a>]) -> bool {
        let column = self.column_meant(term, outputs);
        column.is_none_or(|(relation, name)| !self.is_never_null(relation, name))
    }

    /// The column of a table that a term is.
    fn column_meant<'o>(
        &'o self,
        term: &'o Expr,
        outputs: &'o [Output<'a>],
    ) -> Option<(&'o Relation, &'o str)> {
        match output_meant(term, outputs).map(Output::node) {
            Some(Node::Column { table, name }) => {
                self.owner(table.as_deref(), name).map(|relation| (relation, name.as_str()))
            }
            Some(_) => None,
            None => self.column_of(term),
        }
    }

    fn is_never_null(&self, relation: &Relation, name: &str) -> bool {
        let Some(scope) = self.scopes.innermost() else { return false };
        let is = |(table, column): &(String, String)| {
            table.eq_ignore_ascii_case(&relation.name) && column.eq_ignore_ascii_case(name)
        };
        if scope.present.iter().any(is) {
            return true;
        }
        if relation.optional || scope.all_optional {
            return false;
        }
        let def = table_of(relation).and_then(|table| self.names.table(table)).map(|table| table.def());
        def.is_some_and(|def| def.column_index(name).is_some_and(|column| !def.may_be_null(column)))
    }
}

/// The column of the list that a term names.
pub(super) fn output_meant<'o, 'a>(term: &Expr, outputs: &'o [Output<'a>]) -> Option<&'o Output<'a>> {
    match bare(term) {
        Expr::Identifier(name) => outputs.iter().find(|output| output.is_called(&name.value)),
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                let place = number.parse().ok();
                outputs.iter().find(|output| output.place().is_some() && output.place() == place)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The table that a relation is.
fn table_of(relation: &Relation) -> Option<&str> {
    match &relation.source {
        Source::Named(table) => Some(table),
        Source::Query(_) => None,
    }
}

/// Whether an operator is true only of two values.
fn compares(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}
