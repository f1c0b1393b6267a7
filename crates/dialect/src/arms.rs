//! The arms of a query, `UNION` and the rows of `VALUES`: what each of them gives in a column is of one type.
//!
//! Which type that is, only the last arm tells. So the walk looks first, and begins again with what it found.

use sqltext::ast::{Distinct, Query, SetExpr};
use sqltext::token::Token;
use store::definition::SqlType;
use store::scalar;

use super::out::{Form, Out, call};
use super::scope::Relation;
use super::{Item, Step, Stop, Translator, moments, numeric, types};

/// Arms of types that have nothing in common.
const MISMATCH: &str = "42804";

impl<'a> Translator<'a, '_> {
    /// What a query is made of. The arms of `UNION` and its like are no recursion: there may be many.
    pub(super) fn body(&mut self, body: &SetExpr, common: Option<(&str, &[String])>) -> Step<Out<'a>> {
        let mut arms = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { left, right, .. } = first {
            arms.push(&**right);
            first = left;
        }
        let known = self.scopes.known();
        let (begin, word) = (self.at, self.peek());
        let (around, around_keyed) = (self.agreement.take(), self.keyed);
        self.agreement = self.agreed.get(&begin).map(|columns| (self.queries.len(), columns.clone()));
        if !arms.is_empty() {
            self.keyed = Some(self.queries.len());
        }
        let mut out = self.arm(first)?;
        if let Some((name, columns)) = common.filter(|_| !arms.is_empty()) {
            // The other arms may read what the first gives.
            let items = self.queries.last().cloned().flatten().unwrap_or_default();
            let source = self.source_of_items(&items, columns);
            self.scopes.add_common(Relation::new(name.to_owned(), source));
        }
        while let Some(arm) = arms.pop() {
            self.scopes.end(known);
            self.pass_words(&["UNION", "EXCEPT", "INTERSECT", "ALL"], &mut out);
            // What SQLite means without the word.
            self.take_word("DISTINCT");
            let columns = self.agreement.clone();
            out.push(match arm {
                SetExpr::SetOperation { .. } => self.body(arm, None)?,
                arm => self.arm(arm)?,
            });
            self.agreement = columns;
        }
        (self.agreement, self.keyed) = (around, around_keyed);
        if let SetExpr::SetOperation { op, .. } = body {
            self.check_match(&op.to_string(), word)?;
        }
        let wanted = self.columns_to_agree();
        if wanted.is_empty() || self.agreed.contains_key(&begin) {
            return Ok(out);
        }
        Err(Stop::Again(begin, wanted))
    }

    /// Refuses values of several types in a column of the query under way, which begins here.
    pub(super) fn check_match(&self, what: &str, begin: Option<Token<'a>>) -> Step<()> {
        let mut items = self.queries.last().and_then(Option::as_ref).into_iter().flatten();
        self.refuse_mismatch(what, items.find_map(|item| item.unmatched), begin)
    }

    /// Refuses values of several types of which no column or result may have both.
    pub(super) fn refuse_mismatch(
        &self,
        what: &str,
        types: Option<(SqlType, SqlType)>,
        begin: Option<Token<'a>>,
    ) -> Step<()> {
        let Some((one, other)) = types else { return Ok(()) };
        let (one, other) = (one.sql_name(), other.sql_name());
        let message = format!("{what} types {one} and {other} cannot be matched");
        Err(self.error_at(begin, MISMATCH, message))
    }

    fn arm(&mut self, arm: &SetExpr) -> Step<Out<'a>> {
        match arm {
            SetExpr::Select(select) => match &select.distinct {
                Some(Distinct::On(keys)) => self.first_rows(select, keys, None),
                _ => self.select(select),
            },
            SetExpr::Values(values) => self.values(values).map(|(out, _)| out),
            SetExpr::Query(query) => {
                // SQLite has no parentheses around an arm.
                if is_bare(query) {
                    self.sign("(")?;
                    let inner = self.arm(&query.body)?;
                    self.sign(")")?;
                    return Ok(inner);
                }
                let (inner, items) = self.query_in_parentheses(query)?;
                self.add_arm(items);
                Ok(inner.wrapped("SELECT * FROM ", ""))
            }
            _ => Err(Stop::Unknown),
        }
    }

    /// The columns of the query under way that must be of a type and are not in all of its arms.
    fn columns_to_agree(&self) -> Vec<(usize, SqlType)> {
        let is_table = self.tables.last().copied().unwrap_or(self.defines);
        let wanted = |item: &Item| match item.typed {
            _ if item.digits.must_be_texts(is_table) => Some(SqlType::Numeric),
            Some(ty) if item.open && (scalar::has_form(ty) || ty.is_number()) => Some(ty),
            Some(ty) if item.widens => Some(ty),
            _ => None,
        };
        let items = self.queries.last().and_then(Option::as_ref);
        let items = items.into_iter().flatten().enumerate();
        items.filter_map(|(at, item)| Some((at, wanted(item)?))).collect()
    }

    /// A column of a row or an arm, of the type that the others have.
    pub(super) fn column_of_arms(&mut self, at: usize, column: Out<'a>) -> Step<Out<'a>> {
        let here = self.agreement.as_ref().filter(|(depth, _)| *depth == self.queries.len());
        let wanted = here.and_then(|(_, columns)| columns.iter().find(|(column, _)| *column == at));
        let wanted = wanted.map(|(_, ty)| *ty);
        if numeric::is_exact(&column) {
            let query = matches!(*column.form, Form::Query { .. });
            return Ok(if query { numeric::settled_with_label(column) } else { column });
        }
        let label = column.label.clone();
        let mut made = match (wanted, &*column.form) {
            // A client reads the digits that were written.
            (None, _) if self.queries.len() == 1 && numeric::is_literal(&column) => {
                numeric::settled(numeric::exact(column))
            }
            (None, _) | (_, Form::Null) => return Ok(column),
            (Some(ty), Form::Literal(_)) if ty.is_number() && ty != SqlType::Numeric => {
                let mut literal = column;
                self.value_as(&mut literal, ty)?;
                literal
            }
            (Some(ty), Form::Literal(_)) if ty != SqlType::Numeric => {
                let mut literal = column;
                self.suggest(&mut literal, ty)?;
                literal
            }
            (Some(ty), _) if column.ty.is_some_and(|own| types::widens(own, ty)) => {
                moments::widened(column, ty)
            }
            (Some(SqlType::Numeric), _) => numeric::settled(call("numeric_of", [numeric::exact(column)])),
            _ => return Ok(column),
        };
        made.label = label;
        Ok(made)
    }

    /// The columns of one more arm of the query that is under way.
    pub(super) fn add_arm(&mut self, items: Vec<Item>) {
        match self.queries.last_mut() {
            Some(Some(known)) => Item::join_arm(known, &items),
            Some(query) => *query = Some(items),
            None => {}
        }
    }
}

/// Whether a query is one `SELECT` without anything behind it.
fn is_bare(query: &Query) -> bool {
    let arm = matches!(&*query.body, SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_));
    let behind = query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some();
    arm && !behind && query.with.is_none() && query.locks.is_empty()
}
