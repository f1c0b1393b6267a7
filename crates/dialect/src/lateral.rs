//! `LATERAL (SELECT ...)`: a query that names columns of the tables before it, which SQLite does not have.
//!
//! It becomes a call of a table of ours, whose arguments are the query's text and what the text takes from outside:
//! there they are parameters. Its columns have names of that table, which the statement's names become.

use sqltext::ast::{Query, TableAlias};
use sqltext::error::state;
use sqltext::token::{Token, quoted_name, sql_literal};
use store::value::Value;

use super::out::Out;
use super::scope::{Relation, Source};
use super::{Step, Translator, numeric};

/// What the table is called.
pub const LATERAL: &str = "_lateral";
/// Columns of such a query: more than people write, and each costs a little in every plan.
pub const COLUMNS_MAX: usize = 64;
/// What such a query takes from outside: SQLite's functions have no more arguments than 127.
pub const TAKEN_MAX: usize = 32;

/// A query that is under way.
#[derive(Debug)]
pub(super) struct Lateral<'a> {
    /// How many queries there are around it: their columns, and parameters, are outside.
    around: usize,
    /// How many queries of a `WITH` there are around it.
    common: usize,
    word: Token<'a>,
    /// What it takes from outside, as the text there has it.
    taken: Vec<Out<'a>>,
    /// It takes more than it may.
    too_much: bool,
}

/// The name of a column of the table that a `LATERAL` query becomes: none that a user's table has by accident.
pub fn column_name(at: usize) -> String {
    format!("_lateral_column{at}")
}

impl<'a> Translator<'a, '_> {
    /// From the word on.
    pub(super) fn lateral(
        &mut self,
        query: &Query,
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<()> {
        let word = self.keyword("LATERAL")?;
        let known = self.scopes.known();
        let (around, common) = (known.queries(), known.commons());
        self.laterals.push(Lateral { around, common, word, taken: Vec::new(), too_much: false });
        self.sign("(")?;
        self.is_table = true;
        let made = self.inner_query(query, None);
        let lateral = self.laterals.pop();
        let (inner, items) = made?;
        let end = self.sign(")")?;
        let Some(lateral) = lateral.filter(|lateral| !lateral.taken.is_empty()) else {
            let mut query = Out::made("(", word.start);
            query.push(inner);
            query.push(self.copied(end));
            return self.derived(query, &items, alias, out);
        };
        let refused = |message: String| self.error_at(Some(word), state::NOT_SUPPORTED, message);
        if lateral.too_much {
            return Err(refused(format!(
                "a LATERAL query that names more than {TAKEN_MAX} columns of other tables"
            )));
        }
        let columns = self.columns_of_items(&items);
        let Some(columns) = columns.filter(|columns| columns.len() <= COLUMNS_MAX) else {
            return Err(refused(format!(
                "a LATERAL query of unknown columns, or of more than {COLUMNS_MAX}"
            )));
        };
        let text = sql_literal(&Value::Text(inner.sql()));
        let mut call = Out::made(format!("{LATERAL}({text}"), word.start);
        for taken in lateral.taken {
            call.push_str(",");
            call.push(taken);
        }
        let (name, given) = self.alias_taken(alias)?;
        let name = name.unwrap_or_default();
        call.push_str(&format!(") AS {}", quoted_name(&name)));
        out.push(call);
        let mut columns = columns;
        for (column, given) in columns.iter_mut().zip(given) {
            column.0 = given;
        }
        let own = |(at, (name, _)): (usize, &(String, _))| (name.clone(), column_name(at));
        let renamed = columns.iter().enumerate().map(own).collect();
        let relation = Relation::new(name, Source::Query(Some(columns)));
        self.scopes.add(Relation { renamed, ..relation });
        Ok(())
    }

    /// A name or a parameter as the innermost query has it: what is outside of a `LATERAL` query is a parameter there.
    /// `around`: how many queries are around what it means.
    pub(super) fn taken_from_outside(&mut self, out: Out<'a>, around: usize) -> Out<'a> {
        self.taken_by(self.laterals.len(), out, around)
    }

    fn taken_by(&mut self, laterals: usize, out: Out<'a>, around: usize) -> Out<'a> {
        let Some(at) = laterals.checked_sub(1).filter(|at| around < self.laterals[*at].around) else {
            return out;
        };
        let (ty, form, label, from) = (out.ty, out.form.clone(), out.label.clone(), out.start());
        let decimal = numeric::is_exact(&out);
        let outside = self.taken_by(at, out, around);
        let lateral = &mut self.laterals[at];
        let text = outside.text();
        let known = lateral.taken.iter().position(|known| known.text().trim() == text.trim());
        let number = known.unwrap_or(lateral.taken.len());
        if known.is_none() {
            lateral.taken.push(outside);
            lateral.too_much |= lateral.taken.len() > TAKEN_MAX;
        }
        let inner = Out::made(format!("?{}", number + 1), from).of_type(ty);
        // A parameter does not say how it compares.
        let mut inner = if decimal { numeric::settled(inner) } else { inner.formed(*form) };
        inner.label = label;
        inner
    }

    /// Refuses to read a query of a `WITH` that is outside of a `LATERAL` query: its text is none of that.
    pub(super) fn check_common(&self, name: &str) -> Step<()> {
        let Some(at) = self.scopes.place_of_common(name) else { return Ok(()) };
        match self.laterals.iter().rev().find(|lateral| at < lateral.common) {
            Some(lateral) => {
                let message = format!("a LATERAL query that reads \"{name}\" of WITH is not supported");
                Err(self.error_at(Some(lateral.word), state::NOT_SUPPORTED, message))
            }
            None => Ok(()),
        }
    }
}
