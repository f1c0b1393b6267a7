//! Arrays, which are JSON here: `= ANY (...)`, `ARRAY[...]`, subscripts.

use sqltext::ast::{Expr, Query};
use sqltext::token::Token;
use store::definition::SqlType;

use crate::lowered::Node;

use super::binding::Binding;
use super::expression::{Pattern, one_of, pattern};
use super::out::{Form, Out, call, served_call};
use super::structures::array_part;
use super::{Step, Translator};
use sqltext::error::state;

impl<'a> Translator<'a, '_> {
    /// `left operator ANY (...)` or `ALL (...)`, from the parenthesis on.
    pub(super) fn quantified(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        all: bool,
        right: &Expr,
    ) -> Step<Out<'a>> {
        let list = match right {
            Expr::Subquery(_) => self.expression(right)?,
            _ => self.list(std::slice::from_ref(right))?,
        };
        let equal = operator.text == "=" || operator.text == "==";
        let unequal = operator.text == "<>" || operator.text == "!=";
        let out = if (equal && !all) || (unequal && all) {
            self.among_elements(left, list, all, operator.start)?
        } else {
            let (left, list) = self.beside_elements(left, list)?;
            self.compared_with_each(&left, list, operator, all)?
        };
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    /// Whether the left side is one of an array's elements, or is not.
    pub(super) fn among_elements(
        &mut self,
        left: Out<'a>,
        list: Out<'a>,
        negated: bool,
        from: usize,
    ) -> Step<Out<'a>> {
        let (mut left, list) = self.beside_elements(left, list)?;
        if !negated && is_stored(&list) && left.ty.is_none_or(|ty| list.ty == ty.array()) {
            return Ok(served_call("array_has", [list, left]));
        }
        let mut elements = elements(list, from);
        let node = one_of(left.take_node(), elements.take_node());
        left = left.left_of(Binding::Equality).bound(Binding::Equality);
        left.push_str(if negated { " NOT IN " } else { " IN " });
        left.push(elements);
        Ok(if negated { left } else { left.meaning(node) })
    }

    /// A value and an array in parentheses, each with the type that the other says.
    fn beside_elements(&mut self, left: Out<'a>, list: Out<'a>) -> Step<(Out<'a>, Out<'a>)> {
        let (mut left, mut list) = (left, list);
        // An array that is written out needs no query for its elements, and one that is stored may have an index.
        let written = match &*list.form {
            Form::List(parts) => {
                let array = |only: &&Out<'_>| parts.len() == 1 && (is_written(only) || is_stored(only));
                parts.first().filter(array).cloned()
            }
            _ => None,
        };
        list = written.unwrap_or(list);
        if let Some(ty) = left.ty {
            self.suggest_array(&mut list, ty)?;
        } else if let Some(ty) = list.ty.filter(|ty| ty.is_array()) {
            self.suggest(&mut left, ty.scalar())?;
        }
        Ok((left, list))
    }

    /// The other comparisons, element by element.
    fn compared_with_each(
        &mut self,
        left: &Out<'a>,
        list: Out<'a>,
        operator: Token<'a>,
        all: bool,
    ) -> Step<Out<'a>> {
        if matches!(*list.form, Form::Query { .. }) {
            let message =
                format!("{} ANY or ALL of a subquery is not supported; use min() or max()", operator.text);
            return Err(self.error_at(Some(operator), state::NOT_SUPPORTED, message));
        }
        // The left side is a row of its own, so that no name in it means a column of the elements.
        let begin = if all { "NOT EXISTS (SELECT 1 FROM (SELECT" } else { "EXISTS (SELECT 1 FROM (SELECT" };
        let mut out = Out::made(begin, operator.start);
        out.push(left.clone().wrapped("(", ")"));
        out.push_str(" AS one) AS side, json_each(");
        out.push(as_array(list));
        let not = if all { "NOT" } else { "" };
        let sign = pattern(operator.text).unwrap_or(operator.text);
        let element = Out::made("elements.value", operator.start);
        let element = match Pattern::of(operator) {
            Some(kind) => kind.meant(element, None),
            None => element,
        };
        out.push_str(&format!(") AS elements WHERE {not} (side.one {sign} {}))", element.text()));
        Ok(out)
    }

    /// Tells the type of an array's elements.
    pub(super) fn suggest_array(&mut self, list: &mut Out<'a>, element: SqlType) -> Step<()> {
        if let Form::Array(_) = *list.form {
            return self.suggest_elements(list, element);
        }
        match element.array() {
            Some(array) => self.suggest(list, array),
            None => Ok(()),
        }
    }

    /// `ARRAY(SELECT ...)`
    pub(super) fn array_of_query(&mut self, query: &Query) -> Step<Out<'a>> {
        self.keyword("ARRAY")?;
        let query = self.subquery(query)?;
        let ty = query.ty.and_then(SqlType::array);
        let out =
            query.wrapped("(WITH elements(value) AS ", " SELECT json_group_array(value) FROM elements)");
        Ok(out.of_type(ty).labelled("array"))
    }

    /// `ARRAY[a, b]`
    pub(super) fn array(&mut self, elements: &[Expr]) -> Step<Out<'a>> {
        let word = self.token()?;
        if !word.is("ARRAY") {
            return Err(self.error_at(Some(word), state::SYNTAX, "ARRAY[ is not closed"));
        }
        self.sign("[")?;
        let mut parts = Vec::with_capacity(elements.len());
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
            }
            parts.push(self.expression(element)?);
        }
        self.sign("]")?;
        let element = parts.iter().find_map(|part| part.ty);
        for part in &mut parts {
            if let Some(ty) = element {
                self.suggest(part, ty)?;
            }
        }
        // Arrays within arrays stay JSON.
        let ty = element.map_or(SqlType::Text, |ty| ty).array();
        Ok(array_of(parts, word.start).of_type(ty).labelled("array"))
    }

    /// `[n:m]` behind an array.
    pub(super) fn slice(
        &mut self,
        array: Out<'a>,
        first: Option<&Expr>,
        last: Option<&Expr>,
    ) -> Step<Out<'a>> {
        let open = self.sign("[")?;
        let mut bounds = Vec::with_capacity(2);
        for (bound, end) in [(first, ":"), (last, "]")] {
            let mut out = match bound {
                Some(bound) => self.expression(bound)?,
                None => Out::made("NULL", open.start),
            };
            self.sign(end)?;
            self.suggest(&mut out, SqlType::Int4)?;
            bounds.push(out);
        }
        let (ty, label) = (array.ty, array.label.clone());
        let parts = [array].into_iter().chain(bounds);
        let mut out = Out::joined(parts, ",").wrapped("array_slice(", ")").of_type(ty);
        out.label = label;
        Ok(out)
    }

    /// `array && array`
    pub(super) fn overlaps(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let (mut left, mut right) = (left, right);
        let array = [left.ty, right.ty].into_iter().flatten().find(|ty| ty.is_array());
        let Some(array) = array else { return Err(self.no_operator(&left, operator, &right)) };
        for side in [&mut left, &mut right] {
            self.suggest_array(side, array.scalar())?;
        }
        Ok(served_call("array_overlaps", [left, right]).typed(SqlType::Bool).labelled("?column?"))
    }

    /// `[n]` behind an array; PostgreSQL counts from 1.
    pub(super) fn subscript(&mut self, array: Out<'a>, number: &Expr) -> Step<Out<'a>> {
        self.sign("[")?;
        let mut number = self.expression(number)?;
        self.sign("]")?;
        let label = array.label.clone();
        if array.ty == Some(SqlType::Jsonb) {
            // A key, or the number of an element, counted from 0.
            self.suggest(&mut number, SqlType::Text)?;
            let mut out = array.left_of(Binding::Join);
            out.push_str(" ->");
            out.push(number.right_of(Binding::Join));
            out.label = label;
            return Ok(out.typed(SqlType::Jsonb).bound(Binding::Join));
        }
        self.suggest(&mut number, SqlType::Int4)?;
        if array.ty == Some(SqlType::Name) {
            // A name is an array of letters, which are counted from 0.
            let mut out = call("substr", [array, number.wrapped("(", ") + 1, 1")]).typed(SqlType::Char);
            out.label = label;
            return Ok(out);
        }
        let ty = array.ty.map(|ty| match ty {
            SqlType::Int2Vector => SqlType::Int2,
            SqlType::OidVector => SqlType::Oid,
            ty => ty.scalar(),
        });
        let mut out = call("array_element", [array, number]).of_type(ty);
        out.label = label;
        Ok(out)
    }
}

/// Whether it is a column of arrays whose elements an index may have.
fn is_stored(out: &Out<'_>) -> bool {
    const INDEXED: [SqlType; 5] =
        [SqlType::Text, SqlType::Varchar, SqlType::Int2, SqlType::Int4, SqlType::Int8];
    let of_these = out.ty.is_some_and(|ty| ty.is_array() && INDEXED.contains(&ty.scalar()));
    of_these && matches!(out.node(), Some(Node::Column { .. }))
}

fn is_written(out: &Out<'_>) -> bool {
    matches!(*out.form, Form::Array(_))
}

/// The elements of `ARRAY[...]` as JSON.
pub(super) fn array_of(parts: Vec<Out<'_>>, from: usize) -> Out<'_> {
    let kept = parts.clone();
    let mut elements = Out::joined(parts.into_iter().map(array_part), ",");
    if elements.is_empty() {
        elements = Out::made("", from);
    }
    elements.wrapped("json_array(", ")").formed(Form::Array(kept))
}

/// What `IN` takes: the elements themselves where they are written out, a query, or those of the array.
fn elements(list: Out<'_>, from: usize) -> Out<'_> {
    match &*list.form {
        Form::Query { .. } => list,
        Form::Array(parts) => {
            let mut out = Out::made("(", from);
            out.push(Out::joined(parts.iter().cloned(), ","));
            out.push_str(")");
            out.formed(Form::List(parts.clone()))
        }
        _ => {
            let mut out = Out::made("(SELECT value FROM json_each(", from);
            out.push(as_array(list));
            out.push_str("))");
            out
        }
    }
}

/// An array in parentheses as JSON, whatever form its text has.
fn as_array(list: Out<'_>) -> Out<'_> {
    let known = list.ty.is_some_and(SqlType::is_array) || matches!(*list.form, Form::Array(_));
    if known { list } else { call("cast_array", [list]) }
}
