//! Names of the result's columns where its rows are sorted and grouped.
//!
//! PostgreSQL looks for a bare name behind `ORDER BY` among the columns of the result first, and for one behind
//! `GROUP BY` there last. SQLite does so only with names that `AS` gave: `a.id` and `count(*)` have none to it. Such a
//! column is named by its place in the list.

use sqltext::ast::{Expr, OrderByExpr};
use sqltext::token::quoted_name;

use super::equals::{collated, collated_as, has_spellings, keyed};
use super::names::Found;
use super::out::Out;
use super::scope::StarColumn;
use super::{Item, Step, Translator};
use crate::lowered::Node;

/// A column of a result, as a name may mean it.
#[derive(Clone, Debug)]
pub(super) struct Output<'a> {
    label: String,
    /// `AS` gave the label, so SQLite knows it.
    given: bool,
    /// The column as it was computed, without its label.
    out: Out<'a>,
    node: Node,
    /// Where it stands in the list, from 1; `None`: a star stands before it.
    place: Option<usize>,
}

impl Output<'_> {
    /// Where a column of this name stands in the list, from 1; `None`: nowhere, or behind a star.
    pub(super) fn place_of(outputs: &[Self], name: &str) -> Option<usize> {
        outputs.iter().find(|output| output.label.eq_ignore_ascii_case(name))?.place
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.label.eq_ignore_ascii_case(name)
    }

    /// The name that `AS` gave it.
    pub(super) fn given_name(&self) -> Option<&str> {
        self.given.then_some(self.label.as_str())
    }

    pub(super) fn place(&self) -> Option<usize> {
        self.place
    }

    /// What it is.
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// A column that a star stands for.
    pub(super) fn of_star(column: &StarColumn, from: usize) -> Self {
        let (label, out) = (column.name.clone(), Out::made(column.text.clone(), from).of_type(column.ty));
        Self { label, given: false, out, node: Node::Other, place: None }
    }
}

/// Behind which words a name stands.
#[derive(Clone, Copy)]
pub(super) enum Clause {
    Order,
    Group,
}

impl Clause {
    fn words(self) -> &'static str {
        match self {
            Self::Order => "ORDER BY",
            Self::Group => "GROUP BY",
        }
    }
}

/// The name that an expression is and nothing else, and how many parentheses are around it.
fn bare_name(expr: &Expr) -> Option<(&str, usize)> {
    match expr {
        Expr::Identifier(name) => Some((&name.value, 0)),
        Expr::Nested(inner) => bare_name(inner).map(|(name, around)| (name, around + 1)),
        _ => None,
    }
}

impl<'a> Translator<'a, '_> {
    /// A column of a list that is no star. `place`: where it stands, if nothing before it is a star.
    pub(super) fn output(
        item: &Item,
        given: bool,
        (out, node): (Out<'a>, Node),
        place: Option<usize>,
    ) -> Output<'a> {
        Output { label: item.label.clone().unwrap_or_default(), given, out, node, place }
    }

    /// The columns of a query of several arms: only the first one's names count.
    pub(super) fn outputs_of_arms(items: &[Item]) -> Vec<Output<'a>> {
        if items.iter().any(|item| item.star) {
            return Vec::new();
        }
        let numbered = items.iter().enumerate();
        numbered
            .map(|(at, item)| {
                let out = Out::made((at + 1).to_string(), 0).of_type(item.ty);
                Self::output(item, false, (out, Node::Other), Some(at + 1))
            })
            .collect()
    }

    /// The columns that a star stands for, as far as each is of one table.
    pub(super) fn outputs_of_star(&self, qualifier: Option<&str>) -> Vec<Output<'a>> {
        let Some(scope) = self.scopes.innermost() else { return Vec::new() };
        // What `USING` joins is of no single table, and every name in it means what the star does.
        if qualifier.is_none() && scope.merged {
            return Vec::new();
        }
        let meant =
            |name: &str| qualifier.is_none_or(|own| own.eq_ignore_ascii_case(name)) && !name.is_empty();
        let mut all = Vec::new();
        for relation in scope.relations.iter().filter(|relation| meant(&relation.name)) {
            for (label, ty) in self.columns_in(relation).unwrap_or_default() {
                let text = format!("{}.{}", quoted_name(&relation.name), quoted_name(&label));
                let node = Node::Column { table: Some(relation.name.clone()), name: label.clone() };
                all.push(Output {
                    label,
                    given: false,
                    out: Out::made(text, 0).of_type(ty),
                    node,
                    place: None,
                });
            }
        }
        all
    }

    /// A term of `ORDER BY`.
    pub(super) fn order_term(&mut self, term: &OrderByExpr, outputs: &[Output<'a>]) -> Step<Out<'a>> {
        let place = self.place_ahead(&term.expr);
        if let Some(output) = outputs.iter().find(|output| output.place.is_some() && output.place == place) {
            // It stays a number, and is sorted as the column is.
            let ty = output.out.ty;
            return Ok(collated_as(self.expression(&term.expr)?, ty).of_type(None));
        }
        match bare_name(&term.expr) {
            Some(name) if !outputs.is_empty() => {
                let found = self.output_named(name.0, outputs, Clause::Order)?.cloned();
                let given = found.as_ref().is_some_and(|output| output.given);
                let out = self.named_or_computed(&term.expr, name, found)?;
                // A function around the name would have it mean another column.
                Ok(if given { collated(out).of_type(None) } else { out })
            }
            _ => self.expression(&term.expr),
        }
    }

    /// A term of `GROUP BY`.
    pub(super) fn group_term(&mut self, term: &Expr, outputs: &[Output<'a>]) -> Step<Out<'a>> {
        let place = self.place_ahead(term);
        if let Some(output) = outputs.iter().find(|output| output.place.is_some() && output.place == place)
            && has_spellings(output.out.ty)
        {
            self.at += 1;
            return Ok(keyed(output.out.clone()).meaning(Node::Other));
        }
        Ok(keyed(self.named_group_term(term, outputs)?))
    }

    /// The number of a column of the list, where a term that is next is no more than that.
    fn place_ahead(&self, term: &Expr) -> Option<usize> {
        self.peek().filter(|_| matches!(term, Expr::Value(_)))?.text.parse().ok()
    }

    fn named_group_term(&mut self, term: &Expr, outputs: &[Output<'a>]) -> Step<Out<'a>> {
        match bare_name(term) {
            Some(name) if self.is_no_input(name.0) => {
                let found = self.output_named(name.0, outputs, Clause::Group)?.cloned();
                self.named_or_computed(term, name, found)
            }
            _ => self.expression(term),
        }
    }

    /// Whether no table of the query has a column of this name.
    fn is_no_input(&self, name: &str) -> bool {
        let relations = self.scopes.around().next().unwrap_or_default();
        relations.iter().all(|relation| matches!(self.column_in(relation, name), Found::No))
    }

    /// The column of the result that a name means; `None`: none is called so.
    fn output_named<'o>(
        &self,
        name: &str,
        outputs: &'o [Output<'a>],
        clause: Clause,
    ) -> Step<Option<&'o Output<'a>>> {
        let mut called = outputs.iter().filter(|output| output.label.eq_ignore_ascii_case(name));
        let Some(first) = called.next() else { return Ok(None) };
        let meaning = self.meaning_of(first);
        if called.all(|other| self.meaning_of(other) == meaning) {
            return Ok(Some(first));
        }
        let message = format!("{} \"{name}\" is ambiguous", clause.words());
        Err(self.error_at(self.peek(), "42702", message))
    }

    /// What tells a column of a result from others of its name.
    fn meaning_of(&self, output: &Output<'a>) -> (Option<String>, String) {
        let Node::Column { table, name } = &output.node else {
            return (None, output.out.text().trim().to_owned());
        };
        let table = table.clone().or_else(|| self.table_of(name));
        (table.map(|table| table.to_lowercase()), name.to_lowercase())
    }

    /// The only table of the query that has a column of this name.
    fn table_of(&self, name: &str) -> Option<String> {
        let relations = self.scopes.around().next()?;
        let mut having =
            relations.iter().filter(|relation| matches!(self.column_in(relation, name), Found::Is(_)));
        having.next().filter(|_| having.next().is_none()).map(|relation| relation.name.clone())
    }

    /// A name that may mean a column of the result.
    fn named_or_computed(
        &mut self,
        expr: &Expr,
        (name, around): (&str, usize),
        found: Option<Output<'a>>,
    ) -> Step<Out<'a>> {
        // What is called like the column that it is means the same to SQLite.
        let is_itself = |output: &Output<'_>| {
            let Node::Column { table, name: own } = &output.node else { return false };
            !output.given && table.is_none() && own.eq_ignore_ascii_case(name)
        };
        let Some(output) = found.filter(|output| !is_itself(output)) else {
            return self.expression(expr);
        };
        self.at += around;
        let token = self.token()?;
        self.at += around;
        if output.given {
            let node = Node::Column { table: None, name: name.to_owned() };
            return Ok(self.name_copied(token).of_type(output.out.ty).meaning(node));
        }
        let is_column = matches!(output.node, Node::Column { .. });
        Ok(match output.place {
            Some(place) if !is_column => {
                let place = Out::made(place.to_string(), token.start);
                collated_as(place, output.out.ty).of_type(None).meaning(output.node)
            }
            _ => output.out.meaning(output.node),
        })
    }
}
