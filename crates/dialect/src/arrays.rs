//! Arrays, which are JSON here: `= ANY (...)`, `ARRAY[...]`, subscripts.

use pgcatalog::function::order;
use sqltext::ast::{Expr, Query};
use sqltext::token::Token;
use store::definition::SqlType;

use crate::lowered::Node;

use super::binding::Binding;
use super::calls::Argument;
use super::equals::{collated_as, has_spellings};
use super::expression::{Pattern, one_of, pattern};
use super::out::{Form, Out, call, served_call};
use super::structures::array_part;
use super::{Step, Translator, moments, numeric, types};
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
            Expr::Subquery(query) => self.subquery(query)?,
            _ => self.list(std::slice::from_ref(right))?,
        };
        let equal = operator.text == "=" || operator.text == "==";
        let unequal = operator.text == "<>" || operator.text == "!=";
        let out = if (equal && !all) || (unequal && all) {
            self.among_elements(left, list, all, operator)?
        } else {
            let (left, list) = self.beside_elements(left, list, operator)?;
            let sign = pattern(operator.text).unwrap_or(operator.text);
            self.compared_with_each(&left, list, (operator, sign), all)?
        };
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    /// Whether the left side is one of an array's elements, or is not.
    pub(super) fn among_elements(
        &mut self,
        left: Out<'a>,
        list: Out<'a>,
        negated: bool,
        operator: Token<'a>,
    ) -> Step<Out<'a>> {
        let from = operator.start;
        let (mut left, list) = self.beside_elements(left, list, operator)?;
        if let Form::Array(parts) = &*list.form
            && !parts.is_empty()
        {
            return self.among(left, operator, parts.clone(), negated);
        }
        if compares_decimals(&left, &list) {
            return self.compared_with_each(
                &left,
                list,
                (operator, if negated { "<>" } else { "=" }),
                negated,
            );
        }
        if !negated && is_stored(&list) && left.ty.is_none_or(|ty| list.ty == ty.array()) {
            return Ok(served_call("array_has", [list, left]));
        }
        let element = match *list.form {
            Form::Query { .. } => list.ty,
            _ => list.ty.filter(|ty| ty.is_array()).map(SqlType::scalar),
        };
        if has_spellings(element) {
            left = collated_as(left, element);
        }
        let mut elements = elements(list, from);
        let node = one_of(left.take_node(), elements.take_node());
        left = left.left_of(Binding::Equality).bound(Binding::Equality);
        left.push_str(if negated { " NOT IN " } else { " IN " });
        left.push(elements);
        Ok(if negated { left } else { left.meaning(node) })
    }

    /// A value and an array in parentheses, each with the type that the other says.
    fn beside_elements(
        &mut self,
        left: Out<'a>,
        list: Out<'a>,
        operator: Token<'a>,
    ) -> Step<(Out<'a>, Out<'a>)> {
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
        let element = list.ty.filter(|ty| ty.is_array()).map(SqlType::scalar);
        self.check_elements(&left, operator, &Out::default().of_type(element))?;
        if let Some(ty) = left.ty {
            self.suggest_array(&mut list, ty)?;
        } else if let Some(ty) = list.ty.filter(|ty| ty.is_array()) {
            if ty.scalar().is_number() {
                self.value_as(&mut left, ty.scalar())?;
            }
            self.suggest(&mut left, ty.scalar())?;
        }
        Ok((left, list))
    }

    /// Refuses elements that no operator compares with the other side.
    fn check_elements(&self, left: &Out<'a>, operator: Token<'a>, right: &Out<'a>) -> Step<()> {
        match (left.ty, right.ty) {
            (Some(ours), Some(theirs)) if types::have_no_type(ours, theirs) => {
                Err(self.no_operator(left, operator, right))
            }
            _ => Ok(()),
        }
    }

    /// Refuses two arrays whose elements no operator compares.
    pub(super) fn check_arrays(&self, left: &Out<'a>, operator: Token<'a>, right: &Out<'a>) -> Step<()> {
        let element = |array: &Out<'a>| {
            let ty = array.ty.filter(|ty| ty.is_array() && !is_open(array));
            Out::default().of_type(ty.map(SqlType::scalar))
        };
        let (ours, theirs) = (element(left), element(right));
        // An element is found by what is written: `1` is not `1.0`.
        let apart = |ours: SqlType, theirs: SqlType| {
            let numbers = ours.is_number() && theirs.is_number();
            numbers && ours != theirs && !(types::is_integer(ours) && types::is_integer(theirs))
        };
        if ours.ty.zip(theirs.ty).is_some_and(|(ours, theirs)| apart(ours, theirs)) {
            return Err(self.no_operator(left, operator, right));
        }
        if let Some(ty) = [ours.ty, theirs.ty].into_iter().flatten().find(|ty| order::has_spellings(*ty)) {
            let message =
                format!("operator {} of arrays of {} is not supported", operator.text, ty.sql_name());
            return Err(self.error_at(Some(operator), state::NOT_SUPPORTED, message));
        }
        self.check_elements(&ours, operator, &theirs)
    }

    /// `left [NOT] LIKE ANY (...)` or `ALL (...)`, from the parenthesis on.
    pub(super) fn likes_each(
        &mut self,
        left: Out<'a>,
        (word, negated): (Token<'a>, bool),
        all: bool,
        right: &Expr,
    ) -> Step<Out<'a>> {
        let list = self.list(std::slice::from_ref(right))?;
        let (left, list) = self.beside_elements(left, list, word)?;
        let sign = if negated { "NOT LIKE" } else { "LIKE" };
        let out = self.compared_with_each(&left, list, (word, sign), all)?;
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    /// The other comparisons, element by element.
    fn compared_with_each(
        &mut self,
        left: &Out<'a>,
        list: Out<'a>,
        (operator, sign): (Token<'a>, &str),
        all: bool,
    ) -> Step<Out<'a>> {
        if matches!(*list.form, Form::Query { .. }) {
            let message =
                format!("{} ANY or ALL of a subquery is not supported; use min() or max()", operator.text);
            return Err(self.error_at(Some(operator), state::NOT_SUPPORTED, message));
        }
        let element = Out::made("elements.value", operator.start);
        let (mut left, mut element) = (left.clone(), element);
        if let Some(kind) = Pattern::of(operator) {
            element = kind.meant(element, None);
        } else if compares_decimals(&left, &list) {
            (left, element) = (numeric::decimal(left), numeric::settled(element));
        }
        let ty = list.ty.filter(|ty| ty.is_array()).map(SqlType::scalar);
        let orders = matches!(sign, "<" | "<=" | ">" | ">=");
        let one = Out::made("side.one", operator.start);
        let one = if orders || has_spellings(ty) { collated_as(one, ty) } else { one };
        let holds = format!("({} {sign} {})", one.text(), element.text());
        // The first element by which it is decided; else one of which nothing is known.
        let (decided, answer, otherwise) =
            if all { (format!("min{holds} = 0"), 0, 1) } else { (format!("max{holds} = 1"), 1, 0) };
        // Both sides are rows of their own, so that no name in them means a column of the elements.
        let mut out = Out::made("(SELECT CASE WHEN max(side.list) IS NULL THEN NULL", operator.start);
        out.push_str(&format!(" WHEN {decided} THEN {answer}"));
        out.push_str(&format!(" WHEN count(elements.key) > count{holds} THEN NULL ELSE {otherwise} END"));
        out.push_str(" FROM (SELECT");
        out.push(left.wrapped("(", ")"));
        out.push_str(" AS one,");
        out.push(as_array(list).wrapped("(", ")"));
        out.push_str(" AS list) AS side LEFT JOIN json_each(side.list) AS elements)");
        Ok(out)
    }

    /// Two sides that are compared as wholes: of a decimal number within an array one has several spellings.
    pub(super) fn same_spelling(&mut self, sides: [Out<'a>; 2]) -> Step<[Out<'a>; 2]> {
        let of_arrays = |side: &Out<'a>| side.ty.is_none_or(|ty| ty.is_array() && ty.scalar().is_number());
        if !sides.iter().any(is_numeric) || !sides.iter().all(of_arrays) {
            return Ok(sides);
        }
        let [mut left, mut right] = sides;
        for side in [&mut left, &mut right] {
            self.suggest_array(side, SqlType::Numeric)?;
        }
        Ok([left, right].map(|side| {
            let ty = side.ty;
            call("numeric_array_key", [side]).of_type(ty)
        }))
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

    /// Refuses elements that arrays, which are JSON in the store, cannot hold.
    pub(super) fn check_element(&self, ty: Option<SqlType>, place: Option<Token<'a>>) -> Step<()> {
        if ty != Some(SqlType::Bytea) {
            return Ok(());
        }
        let message = "arrays of bytea are not supported; encode(x, 'hex') gives texts";
        Err(self.error_at(place, state::NOT_SUPPORTED, message))
    }

    /// `ARRAY(SELECT ...)`
    pub(super) fn array_of_query(&mut self, query: &Query) -> Step<Out<'a>> {
        self.keyword("ARRAY")?;
        let word = self.peek();
        let query = self.subquery(query)?;
        self.check_element(query.ty, word)?;
        // What has no other type is a text.
        let ty = query.ty.unwrap_or(SqlType::Text).array();
        let out =
            query.wrapped("(WITH elements(value) AS ", " SELECT json_group_array(value) FROM elements)");
        Ok(out.of_type(ty).labelled("array"))
    }

    /// `json_object(keys)` or `json_object(keys, values)`, which are arrays of texts; `None`: they are keys and values
    /// themselves, as SQLite has it.
    pub(super) fn object_of_arrays(&mut self, name: &str, list: &[Argument<'_>]) -> Step<Option<Out<'a>>> {
        if !matches!(name, "json_object" | "jsonb_object") || !(1..=2).contains(&list.len()) {
            return Ok(None);
        }
        self.sign("(")?;
        let mut parts = Vec::with_capacity(list.len());
        for (at, argument) in list.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
            }
            let Argument::Value(value) = argument else { return Ok(None) };
            parts.push(self.expression(value)?);
        }
        self.sign(")")?;
        let is_array = |part: &Out<'_>| match &*part.form {
            Form::Literal(text) => part.ty.is_none() && text.trim_start().starts_with('{'),
            _ => part.ty.is_some_and(SqlType::is_array),
        };
        if !parts.first().is_some_and(is_array) {
            return Ok(None);
        }
        let strange =
            |part: &Out<'_>| part.ty.is_some_and(|ty| !ty.is_array() || !types::is_text(ty.scalar()));
        if parts.iter().any(strange) {
            return Err(self.no_function(name, &parts));
        }
        let mut out = Out::joined(parts, ",").wrapped("json_object_of(", ")");
        if name == "jsonb_object" {
            out = out.wrapped("cast_jsonb(", ")");
        }
        let ty = if name == "jsonb_object" { SqlType::Jsonb } else { SqlType::Json };
        Ok(Some(out.typed(ty).labelled(name)))
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
        self.refuse_mismatch("ARRAY", types::mismatch(parts.iter().map(|part| part.ty)), Some(word))?;
        let element = parts.iter().filter_map(|part| part.ty).reduce(types::wider_moment);
        self.check_element(element, Some(word))?;
        for part in &mut parts {
            if let Some(ty) = element {
                self.suggest(part, ty)?;
                *part = moments::widened(std::mem::take(part), ty);
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
        self.check_arrays(&left, operator, &right)?;
        for side in [&mut left, &mut right] {
            self.suggest_array(side, array.scalar())?;
        }
        Ok(served_call("array_overlaps", self.same_spelling([left, right])?)
            .typed(SqlType::Bool)
            .labelled("?column?"))
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
        if ty == Some(SqlType::Numeric) {
            out = numeric::settled(out);
        }
        out.label = label;
        Ok(out)
    }
}

/// Whether it is an array of decimal numbers.
fn is_numeric(out: &Out<'_>) -> bool {
    out.ty.is_some_and(|ty| ty.is_array() && ty.scalar() == SqlType::Numeric)
}

/// Whether it is a column of arrays whose elements an index may have.
fn is_stored(out: &Out<'_>) -> bool {
    const INDEXED: [SqlType; 5] =
        [SqlType::Text, SqlType::Varchar, SqlType::Int2, SqlType::Int4, SqlType::Int8];
    let of_these = out.ty.is_some_and(|ty| ty.is_array() && INDEXED.contains(&ty.scalar()));
    of_these && matches!(out.node(), Some(Node::Column { .. }))
}

/// Whether decimal numbers are compared, whose texts differ where the numbers are equal.
fn compares_decimals(left: &Out<'_>, list: &Out<'_>) -> bool {
    let numbers = list.ty.is_some_and(|ty| ty.is_array() && ty.scalar().is_number());
    is_numeric(list) || (numbers && numeric::is_exact(left))
}

/// Whether it is an array whose elements are written out and have no type: they take that of what they stand beside.
pub(super) fn is_open(array: &Out<'_>) -> bool {
    matches!(&*array.form, Form::Array(parts) if parts.iter().all(|part| part.ty.is_none()))
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
            // Nobody knows what is in an array that is NULL, so it has an element that nobody knows.
            let mut out = Out::made("(SELECT value FROM json_each(coalesce(", from);
            out.push(as_array(list));
            out.push_str(", '[null]')))");
            out
        }
    }
}

/// An array in parentheses as JSON, whatever form its text has.
fn as_array(list: Out<'_>) -> Out<'_> {
    let known = list.ty.is_some_and(SqlType::is_array) || matches!(*list.form, Form::Array(_));
    if known { list } else { call("cast_array", [list]) }
}
