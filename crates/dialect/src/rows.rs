//! Calls that return rows, where SQLite cannot run them as they stand: in the list of a `SELECT`, and in `FROM` with
//! names of their own for the columns.
//!
//! `SELECT unnest(a), b FROM t` becomes a join of `t` with the table of the array's elements, which decodes the array
//! once. `FROM f(a) AS t(x)` becomes `FROM f(a) AS t`, and `x` becomes `t.value`.

use sqltext::ast::TableAlias;
use sqltext::token::{Kind, Token};
use store::definition::SqlType;

use super::calls::Argument;
use super::out::{Form, Out};
use super::scope::{Relation, Source};
use super::{Step, Translator};
use pgcatalog::limits::UNNEST_ARRAYS_MAX;
use pgcatalog::system::{UNNEST, row_function, unnest_column, unnest_subscript};
use sqltext::token::{quoted_name, unquoted};

/// Calls that may stand in the list of a `SELECT`.
const IN_LIST: &[&str] = &["unnest", "generate_subscripts", "_pg_expandarray"];

/// The arrays whose elements are rows of the `SELECT` that is under way.
#[derive(Debug, Default)]
pub(super) struct Spread<'a> {
    /// What the table of their elements is called.
    table: String,
    arrays: Vec<Out<'a>>,
}

impl<'a> Spread<'a> {
    /// The table behind the others: each of their rows is there once for each row of the longest array.
    pub(super) fn joined(self, has_from: bool) -> Option<Out<'a>> {
        let first = self.arrays.first()?.start();
        let join = if has_from { "," } else { " FROM" };
        let mut out = Out::made(format!("{join} {UNNEST}("), first);
        out.push(Out::joined(self.arrays, ", "));
        out.push_str(&format!(") AS {}", self.table));
        Some(out)
    }

    /// The place of an array among them; `None`: there are too many.
    fn place(&mut self, array: Out<'a>) -> Option<usize> {
        let text = array.text();
        let known = self.arrays.iter().position(|known| known.text().trim() == text.trim());
        if known.is_none() && self.arrays.len() < UNNEST_ARRAYS_MAX {
            self.arrays.push(array);
            return Some(self.arrays.len() - 1);
        }
        known
    }
}

/// What a call of the list is in its row of the table of elements.
fn value_of(function: &str, table: &str, array: usize) -> String {
    let (element, number) = (unnest_column(array), unnest_subscript(array));
    match function {
        "unnest" => format!("{table}.{element}"),
        "generate_subscripts" => format!("{table}.{number}"),
        _ => {
            format!("_row_expand({table}.{element}, iif({table}.{number} IS NULL, NULL, {table}.ordinality))")
        }
    }
}

impl<'a> Translator<'a, '_> {
    /// A call of the list of a `SELECT` that stands for rows, from its parenthesis on.
    pub(super) fn spread_call(
        &mut self,
        token: Token<'a>,
        name: &str,
        list: &[Argument<'_>],
    ) -> Step<Option<Out<'a>>> {
        let Some(function) = IN_LIST.iter().find(|known| name.eq_ignore_ascii_case(known)) else {
            return Ok(None);
        };
        // A call without arguments is SQLite's to refuse.
        let [Argument::Value(array), rest @ ..] = list else { return Ok(None) };
        let Some(mut spread) = self.spread.take() else { return Ok(None) };
        let begin = self.at;
        self.sign("(")?;
        let array = self.expression(array)?;
        for argument in rest {
            // The dimension, of which there is one.
            self.sign(",")?;
            if let Argument::Value(dimension) = argument {
                self.expression(dimension)?;
            }
        }
        self.sign(")")?;
        let ty = array.ty.filter(|_| *function == "unnest").map(SqlType::scalar);
        if spread.arrays.is_empty() {
            spread.table = format!("_rows{}", self.made);
            self.made += 1;
        }
        let place = spread.place(array);
        let out = place.map(|place| {
            Out::made(value_of(function, &spread.table, place), token.start).of_type(ty).labelled(function)
        });
        self.spread = Some(spread);
        if out.is_none() {
            self.at = begin;
        }
        Ok(out)
    }

    /// What stands behind a call of such a function in `FROM`: `[WITH ORDINALITY] [AS] alias [(column, ...)]`.
    pub(super) fn rows_named(
        &mut self,
        function: &str,
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<bool> {
        let Some(function) = row_function(function) else { return Ok(false) };
        let ordinality = self.take_words(&["WITH", "ORDINALITY"]);
        let (name, given) = self.alias_taken(alias)?;
        let name = name.unwrap_or_else(|| function.name.to_owned());
        let real = function.columns.iter().copied().chain(ordinality.then_some("ordinality"));
        let mut relation = Relation::new(name.clone(), Source::Query(None));
        relation.renamed = match function.columns {
            [column] if given.is_empty() => vec![(name.clone(), *column)],
            _ => given.into_iter().zip(real).collect(),
        };
        self.scopes.add(relation);
        out.push_str(&format!(" AS {}", quoted_name(&name)));
        Ok(true)
    }

    /// A name that such a function was given for one of its columns.
    pub(super) fn renamed(&self, qualifier: Option<&str>, name: &str, token: Token<'a>) -> Option<Out<'a>> {
        let meant = |relation: &&Relation| {
            qualifier.is_none_or(|qualifier| relation.name.eq_ignore_ascii_case(qualifier))
        };
        let relations = self.scopes.around().flat_map(|relations| relations.iter().filter(meant));
        let (table, column) = relations
            .flat_map(|relation| relation.renamed.iter().map(move |renamed| (&relation.name, renamed)))
            .find(|(_, (given, _))| given.eq_ignore_ascii_case(name))
            .map(|(table, (_, column))| (table, *column))?;
        let text = format!("{}.{}", quoted_name(table), quoted_name(column));
        let written =
            if token.kind == Kind::Word { unquoted(token.text).to_lowercase() } else { name.to_owned() };
        let ty = self.column_type(qualifier, name);
        let out = Out::made(text, token.start).of_type(ty).labelled(&written);
        Some(out.formed(Form::Renamed(token.text)))
    }
}
