//! Calls that return rows, in `FROM` and in the list of a `SELECT`.
//!
//! A call that names no column is a query in the place of a table, whose columns have the names that the statement
//! gave. A call that names columns of the tables before it must be the table itself: only then does SQLite let it
//! see them. Its columns keep their own names, and `x` of `FROM f(a) AS t(x)` becomes `t.value`.
//!
//! `SELECT unnest(a), b FROM t` becomes a join of `t` with the table of the array's elements, which decodes the array
//! once. Where the list has several such calls their rows stand side by side, as PostgreSQL has it.

use sqltext::ast::{Expr, TableAlias};
use sqltext::token::{Kind, Token};
use store::definition::SqlType;

use super::calls::Argument;
use super::out::{Form, Out, call};
use super::scope::{Column, Relation, Source};
use super::{Step, Translator, numeric, types};
use pgcatalog::limits::UNNEST_ARRAYS_MAX;
use pgcatalog::system::{
    JSONB_EACH, MOMENT_SERIES, RowFunction, UNNEST, row_function, rows_table, unnest_column, unnest_subscript,
};
use sqltext::error::state;
use sqltext::token::{quoted_name, unquoted};

/// Calls that the list of a `SELECT` takes from a table of arrays.
const OF_ARRAYS: &[&str] = &["unnest", "generate_subscripts", "_pg_expandarray"];

/// What the row's number is called.
const ORDINALITY: &str = "ordinality";

/// A call as a table of SQLite, from which its columns can be taken.
pub(super) struct Rows<'a> {
    pub(super) call: Out<'a>,
    pub(super) columns: Vec<RowsColumn>,
    /// Its only column keeps its name whatever the table is called.
    pub(super) named: bool,
    /// It names columns of other tables.
    pub(super) open: bool,
}

pub(super) struct RowsColumn {
    pub(super) name: String,
    /// What it is called in SQLite's table.
    pub(super) own: String,
    pub(super) ty: Option<SqlType>,
}

/// A call of a list: the array whose elements it gives, or a table, of which a column has its values.
struct ListRows<'a> {
    call: Out<'a>,
    column: String,
    ty: Option<SqlType>,
}

/// What the calls of the list of the `SELECT` that is under way become.
#[derive(Debug, Default)]
pub(super) struct Spread<'a> {
    /// What the table of their rows is called.
    table: String,
    /// The only call of the list.
    call: Option<Out<'a>>,
    /// Or what stands side by side.
    arrays: Vec<Out<'a>>,
}

impl<'a> Spread<'a> {
    /// The table behind the others: each of their rows is there once for each of its rows.
    pub(super) fn joined(self, has_from: bool) -> Option<Out<'a>> {
        let first = self.call.as_ref().or_else(|| self.arrays.first())?.start();
        let join = if has_from { "," } else { " FROM" };
        let mut out = Out::made(join, first);
        if let Some(call) = self.call {
            out.push(call);
        } else {
            out.push_str(&format!(" {UNNEST}("));
            out.push(Out::joined(self.arrays, ", "));
            out.push_str(")");
        }
        out.push_str(&format!(" AS {}", self.table));
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
        "generate_subscripts" => format!("{table}.{number}"),
        "_pg_expandarray" => {
            format!("_row_expand({table}.{element}, iif({table}.{number} IS NULL, NULL, {table}.ordinality))")
        }
        _ => format!("{table}.{element}"),
    }
}

/// Our table for a function, by its name in lower case.
fn table_of(name: &str) -> Option<&'static RowFunction> {
    row_function(if name == "jsonb_each" { JSONB_EACH } else { name })
}

impl<'a> Translator<'a, '_> {
    /// A call of the list of a `SELECT` that stands for rows, from its parenthesis on.
    pub(super) fn spread_call(
        &mut self,
        token: Token<'a>,
        name: &str,
        list: &[Argument<'_>],
    ) -> Step<Option<Out<'a>>> {
        if self.spread.is_none() || list.is_empty() {
            return Ok(None);
        }
        let name = name.to_ascii_lowercase();
        let known = table_of(&name).is_some_and(|function| function.columns.len() == 1);
        let (of_arrays, begin) = (OF_ARRAYS.contains(&name.as_str()), self.at);
        if !known && !of_arrays {
            return Ok(None);
        }
        // A call within a call is one of a table that is not there yet.
        let Some(mut spread) = self.spread.take() else { return Ok(None) };
        let found = self.rows_of_list(token, &name, list, of_arrays)?;
        let Some(ListRows { call: array, column, ty }) = found else {
            (self.spread, self.at) = (Some(spread), begin);
            return Ok(None);
        };
        let value = if of_arrays {
            self.name_spread(&mut spread);
            let value = spread.place(array).map(|place| value_of(&name, &spread.table, place));
            self.spread = Some(spread);
            value
        } else {
            self.spread_out(spread, array, &column)
        };
        if value.is_none() {
            self.at = begin;
        }
        let value = value.map(|value| Out::made(value, token.start).of_type(ty));
        let numbers = ty == Some(SqlType::Numeric);
        Ok(value.map(|value| if numbers { numeric::settled(value) } else { value }.labelled(&name)))
    }

    fn name_spread(&mut self, spread: &mut Spread<'a>) {
        if spread.table.is_empty() {
            spread.table = format!("_rows{}", self.made);
            self.made += 1;
        }
    }

    /// A column of the table that a call of the list is, in each of its rows; `None`: there are too many.
    pub(super) fn spread_out(
        &mut self,
        mut spread: Spread<'a>,
        call: Out<'a>,
        column: &str,
    ) -> Option<String> {
        self.name_spread(&mut spread);
        let value = if self.alone {
            spread.call = Some(call);
            Some(format!("{}.{column}", spread.table))
        } else {
            let array = call.wrapped(&format!("(SELECT json_group_array({column}) FROM"), ")");
            spread.place(array).map(|place| value_of("", &spread.table, place))
        };
        self.spread = Some(spread);
        value
    }

    /// The array of a call of the list, or the table that it is, with the type of its values.
    fn rows_of_list(
        &mut self,
        token: Token<'a>,
        name: &str,
        list: &[Argument<'_>],
        of_arrays: bool,
    ) -> Step<Option<ListRows<'a>>> {
        let Some(values) = list.iter().map(Argument::value).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        if !of_arrays {
            let Some(Rows { call, mut columns, .. }) = self.rows_of(token, name, &values)? else {
                return Ok(None);
            };
            let RowsColumn { own: column, ty, .. } = columns.swap_remove(0);
            return Ok(Some(ListRows { call, column, ty }));
        }
        let mut arguments = self.arguments_of_rows(&values)?.into_iter();
        let Some(array) = arguments.next() else { return Ok(None) };
        // Behind it stands the dimension, of which there is one.
        let ty = match name {
            "unnest" => array.ty.map(SqlType::scalar),
            "generate_subscripts" => Some(SqlType::Int4),
            _ => None,
        };
        Ok(Some(ListRows { call: array, column: String::new(), ty }))
    }

    /// `(a, b)` behind the name of a function.
    fn arguments_of_rows(&mut self, values: &[&Expr]) -> Step<Vec<Out<'a>>> {
        self.sign("(")?;
        let mut arguments = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
            }
            arguments.push(self.expression(value)?);
        }
        self.sign(")")?;
        Ok(arguments)
    }

    /// A call from its parenthesis on; `None`: it is none that returns rows, and nothing was taken.
    pub(super) fn rows_of(
        &mut self,
        token: Token<'a>,
        name: &str,
        values: &[&Expr],
    ) -> Step<Option<Rows<'a>>> {
        let Some(function) = table_of(name) else { return Ok(None) };
        let before = self.columns_named;
        let mut arguments = self.arguments_of_rows(values)?;
        let open = self.columns_named != before;
        if name.starts_with("jsonb_")
            && let Some(json) = arguments.first_mut()
        {
            self.suggest(json, SqlType::Jsonb)?;
        }
        match name {
            "unnest" => self.arrays_side_by_side(arguments, open, token),
            "generate_series" => self.series(function, arguments, open, token),
            _ => {
                let mut call = Out::made(format!("{}(", rows_table(function)), token.start);
                call.push(Out::joined(arguments, ","));
                call.push_str(")");
                let column = |column: &pgcatalog::system::RowColumn| RowsColumn {
                    name: if function.named { column.name } else { name }.to_owned(),
                    own: column.name.to_owned(),
                    ty: column.ty(),
                };
                let columns = function.columns.iter().map(column).collect();
                Ok(Rows { call, columns, named: function.named, open })
            }
        }
        .map(Some)
    }

    /// `unnest(a, b)`: a column for each array.
    fn arrays_side_by_side(&self, arrays: Vec<Out<'a>>, open: bool, token: Token<'a>) -> Step<Rows<'a>> {
        if arrays.is_empty() {
            return Err(self.error_at(Some(token), state::SYNTAX, "unnest needs more arguments"));
        }
        if arrays.len() > UNNEST_ARRAYS_MAX {
            let message = format!("unnest takes at most {UNNEST_ARRAYS_MAX} arrays");
            return Err(self.error_at(Some(token), "54023", message));
        }
        let column = |(at, array): (usize, &Out<'a>)| RowsColumn {
            name: "unnest".to_owned(),
            own: unnest_column(at),
            ty: array.ty.map(element_of),
        };
        let columns = arrays.iter().enumerate().map(column).collect();
        let known = |array: &Out<'a>| {
            array.ty.is_some_and(|ty| ty.is_array() || matches!(ty, SqlType::Int2Vector | SqlType::OidVector))
        };
        let as_array = |array: Out<'a>| if known(&array) { array } else { call("cast_array", [array]) };
        let mut out = Out::made(format!("{UNNEST}("), token.start);
        out.push(Out::joined(arrays.into_iter().map(as_array), ","));
        out.push_str(")");
        Ok(Rows { call: out, columns, named: false, open })
    }

    /// `generate_series(first, last, step)` of numbers, or of moments.
    fn series(
        &mut self,
        function: &RowFunction,
        arguments: Vec<Out<'a>>,
        open: bool,
        token: Token<'a>,
    ) -> Step<Rows<'a>> {
        let mut arguments = arguments.into_iter();
        let (Some(mut first), Some(mut last)) = (arguments.next(), arguments.next()) else {
            return Err(self.error_at(Some(token), state::SYNTAX, "generate_series needs more arguments"));
        };
        let mut step = arguments.next();
        let moments = types::is_moment(first.ty) || types::is_moment(last.ty);
        let (table, ty) = if moments {
            let ty = if [&first, &last].iter().any(|bound| bound.ty == Some(SqlType::Timestamp)) {
                SqlType::Timestamp
            } else {
                SqlType::Timestamptz
            };
            // Dates become moments with their first step, so they begin as such.
            for bound in [&mut first, &mut last] {
                self.suggest(bound, ty)?;
                if bound.ty == Some(SqlType::Date) {
                    *bound = call(&types::cast_name(ty), [std::mem::take(bound)]).typed(ty);
                }
            }
            (MOMENT_SERIES, Some(ty))
        } else {
            let known = [&first, &last].iter().find_map(|bound| bound.ty).unwrap_or(SqlType::Int8);
            for bound in [&mut first, &mut last] {
                self.suggest(bound, known)?;
            }
            let step = step.as_ref().map_or(Some(SqlType::Int4), |step| step.ty);
            let ty = types::arithmetic(types::arithmetic(first.ty, last.ty), step);
            (function.name, ty.or(first.ty))
        };
        if let Some(step) = &mut step {
            self.suggest(step, if moments { SqlType::Interval } else { SqlType::Int8 })?;
        }
        let mut out = Out::made(format!("_{table}("), token.start);
        out.push(Out::joined([first, last].into_iter().chain(step), ","));
        out.push_str(")");
        let column = RowsColumn { name: "generate_series".to_owned(), own: "value".to_owned(), ty };
        Ok(Rows { call: out, columns: vec![column], named: false, open })
    }

    /// A call in `FROM`, with what stands behind it: `[WITH ORDINALITY] [AS] alias [(column, ...)]`.
    pub(super) fn rows_in_from(
        &mut self,
        rows: Rows<'a>,
        function: &str,
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<()> {
        let token = self.peek();
        let ordinality = self.take_words(&["WITH", "ORDINALITY"]);
        let (name, given) = self.alias_taken(alias)?;
        let Rows { call, mut columns, named, open } = rows;
        if let ([column], Some(name), false) = (&mut columns[..], &name, named) {
            column.name.clone_from(name);
        }
        let row = if let [column] = &columns[..] { Some(column.own.clone()) } else { None };
        if ordinality {
            let own = ORDINALITY.to_owned();
            columns.push(RowsColumn { name: own.clone(), own, ty: Some(SqlType::Int8) });
        }
        let name = name.unwrap_or_else(|| function.to_owned());
        if given.len() > columns.len() {
            let (there, wanted) = (columns.len(), given.len());
            let message =
                format!("table \"{name}\" has {there} columns available but {wanted} columns specified");
            return Err(self.error_at(token, "42P10", message));
        }
        for (column, given) in columns.iter_mut().zip(given) {
            column.name = given;
        }
        let known: Vec<Column> = columns.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let mut relation = Relation::new(name.clone(), Source::Query(Some(known)));
        let quoted = quoted_name(&name);
        if open {
            relation.renamed = columns.into_iter().map(|column| (column.name, column.own)).collect();
            relation.row = row;
            out.push(call);
        } else {
            relation.row = row.and_then(|_| Some(columns.first()?.name.clone()));
            let list: Vec<String> = columns
                .iter()
                .map(|column| format!("{} AS {}", quoted_name(&column.own), quoted_name(&column.name)))
                .collect();
            out.push(call.wrapped(&format!("(SELECT {} FROM", list.join(", ")), ")"));
        }
        out.push_str(&format!(" AS {quoted}"));
        self.scopes.add(relation);
        Ok(())
    }

    /// A name that a function's column was given, or a table of one column that stands for its value.
    /// Also says how many queries are around it.
    pub(super) fn renamed(
        &self,
        qualifier: Option<&str>,
        name: &str,
        token: Token<'a>,
    ) -> Option<(Out<'a>, usize)> {
        let meant = |relation: &&Relation| {
            qualifier.is_none_or(|qualifier| relation.name.eq_ignore_ascii_case(qualifier))
        };
        let queries = self.scopes.known().queries();
        for (within, relations) in self.scopes.around().enumerate() {
            let renamed = relations.iter().filter(meant).find_map(|relation| {
                let mut pairs = relation.renamed.iter();
                let found = pairs.find(|(given, _)| given.eq_ignore_ascii_case(name))?;
                Some((relation, &found.1))
            });
            let known = renamed.is_none() && self.has_column(relations, qualifier, name);
            let row = || {
                let whole = relations.iter().find(|relation| relation.name.eq_ignore_ascii_case(name));
                whole.filter(|_| qualifier.is_none()).and_then(|whole| Some((whole, whole.row.as_ref()?)))
            };
            let Some((relation, own)) = renamed.or_else(|| if known { None } else { row() }) else {
                if known {
                    return None;
                }
                continue;
            };
            let text = format!("{}.{}", quoted_name(&relation.name), quoted_name(own));
            let written =
                if token.kind == Kind::Word { unquoted(token.text).to_lowercase() } else { name.to_owned() };
            let ty = self.type_in(relation, name).or_else(|| self.type_in(relation, own));
            let mut out = Out::made(text, token.start).of_type(ty);
            if ty == Some(SqlType::Numeric) {
                out = numeric::settled(out);
            }
            return Some((out.labelled(&written).formed(Form::Renamed(token.text)), queries - within - 1));
        }
        None
    }
}

/// The type of an array's elements.
fn element_of(array: SqlType) -> SqlType {
    match array {
        SqlType::Int2Vector => SqlType::Int2,
        SqlType::OidVector => SqlType::Oid,
        array => array.scalar(),
    }
}
