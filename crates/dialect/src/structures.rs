//! Operators and functions of JSON and of arrays: which of PostgreSQL's they are depends on the types of their sides.

use pgcatalog::shape::HIDDEN;
use sqltext::ast::Expr;
use sqltext::token::{Token, quoted_name, sql_literal};
use store::definition::SqlType;
use store::value::Value;

use super::binding::Binding;
use super::equals::{collated_as, has_one_spelling};
use super::out::{Form, Out, call};
use super::scope::{Relation, Source};
use super::{Step, Stop, Translator, numeric, texts, types};
use crate::lowered::Node;
use sqltext::error::{SqlError, state};

/// No operator takes sides of these types.
const UNDEFINED_FUNCTION: &str = "42883";
/// A value is of another type than its place.
const MISMATCH: &str = "42804";
/// The type of a side is not known, and which operator is meant depends on it.
const AMBIGUOUS: &str = "42725";

/// Whether values of this type are made of others.
pub(super) fn is_structure(ty: Option<SqlType>) -> bool {
    ty.is_some_and(|ty| ty.is_array() || matches!(ty, SqlType::Json | SqlType::Jsonb))
}

fn is_integer(ty: SqlType) -> bool {
    matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
}

pub(super) fn is_number(ty: Option<SqlType>) -> bool {
    types::arithmetic(ty, ty).is_some()
}

/// A literal, a parameter or NULL of no type, which takes the type that the operator wants.
fn is_untyped(out: &Out<'_>) -> bool {
    let open = match &*out.form {
        Form::Literal(_) | Form::Parameter(_) => true,
        Form::List(parts) => parts.len() == 1 && is_untyped(&parts[0]),
        _ => out.text().trim().eq_ignore_ascii_case("NULL"),
    };
    open && out.ty.is_none()
}

/// The text of a JSON value (`->>`) as SQLite's `->>` gives it: a truth where it is compared with one, a number where
/// it is cast to one.
pub(super) fn as_value(out: Out<'_>) -> Out<'_> {
    match *out.form {
        Form::Extract(value) => value,
        _ => out,
    }
}

/// The two sides, a JSON value's text as a truth where the other side is one.
pub(super) fn side_by_side<'a>(left: Out<'a>, right: Out<'a>) -> (Out<'a>, Out<'a>) {
    if right.ty == Some(SqlType::Bool) {
        (as_value(left), right)
    } else if left.ty == Some(SqlType::Bool) {
        (left, as_value(right))
    } else {
        (left, right)
    }
}

/// Two sides of a comparison. Of JSON values the numbers may have zeros at the end, which do not count. Beside a value
/// without numbers a column stays as it is, for an index may have it.
pub(super) fn compared<'a>(left: Out<'a>, right: Out<'a>) -> (Out<'a>, Out<'a>) {
    let sides = [&left, &right];
    let json = sides.iter().any(|side| side.ty == Some(SqlType::Jsonb));
    if !json || sides.iter().any(|side| has_one_spelling(side)) {
        return (left, right);
    }
    (collated_as(left, Some(SqlType::Jsonb)), right)
}

/// A JSON text of which each object has a key once, with its last value: SQLite's operators take the first.
pub(super) fn with_last_keys(out: Out<'_>) -> Out<'_> {
    let written = out.ty == Some(SqlType::Json) && !matches!(*out.form, Form::Extract(_));
    if written { call("json_last_keys", [out]).typed(SqlType::Json) } else { out }
}

/// A value as JSON functions of SQLite have to be given it, so that it is what PostgreSQL makes of its type: a truth,
/// JSON within JSON, a moment in ISO's form.
pub(super) fn json_part(out: Out<'_>) -> Out<'_> {
    let label = out.label.clone();
    let start = out.start();
    let mut part = match (out.ty, &*out.form) {
        (Some(SqlType::Numeric), Form::Number(digits)) => {
            Out::made(format!("json('{digits}')"), start).typed(SqlType::Json)
        }
        _ => part_of_type(out),
    };
    part.label = label;
    part
}

/// The same, of a type that says how.
fn part_of_type(out: Out<'_>) -> Out<'_> {
    match out.ty {
        Some(SqlType::Bool) => json_truth(out),
        Some(ty) if ty.is_array() && texts::is_moment(ty.scalar()) => {
            texts::in_json(out).wrapped("json(", ")").typed(SqlType::Json)
        }
        Some(ty) if ty.is_array() && matches!(ty.scalar(), SqlType::Float4 | SqlType::Float8) => {
            out.wrapped("json(json_numbers(", "))").typed(SqlType::Json)
        }
        Some(ty) if ty.is_array() || matches!(ty, SqlType::Json | SqlType::Jsonb) => {
            out.wrapped("json(", ")").typed(SqlType::Json)
        }
        Some(SqlType::Numeric) if numeric::is_exact(&out) => {
            numeric::exact(out).wrapped("json(json_number(", "))").typed(SqlType::Json)
        }
        Some(SqlType::Float4 | SqlType::Float8 | SqlType::Numeric) => {
            out.wrapped("json(json_number(", "))").typed(SqlType::Json)
        }
        Some(ty) if texts::is_moment(ty) => texts::in_json(out),
        Some(SqlType::Timetz) => numeric::shown(out),
        Some(SqlType::Bytea) => out.wrapped("cast_text(", ")").typed(SqlType::Text),
        _ => out,
    }
}

/// An element of an array.
pub(super) fn array_part(out: Out<'_>) -> Out<'_> {
    let start = out.start();
    match &*out.form {
        Form::Number(digits) => Out::made(format!("json('{digits}')"), start).typed(SqlType::Numeric),
        _ if out.ty == Some(SqlType::Bool) => json_truth(out),
        _ => out,
    }
}

/// A truth as JSON has it.
fn json_truth(out: Out<'_>) -> Out<'_> {
    out.wrapped("json(CASE (", ") WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)").typed(SqlType::Json)
}

/// A key of a JSON object, which is a text.
fn json_key(out: Out<'_>) -> Out<'_> {
    match out.ty {
        Some(SqlType::Bool | SqlType::Timetz) => numeric::shown(out),
        Some(ty) if texts::is_moment(ty) => texts::in_json(out),
        Some(ty) if !types::is_text(ty) => call("cast_text", [out]).typed(SqlType::Text),
        _ => out,
    }
}

/// What an argument of this function has to be given as.
pub(super) fn argument_for<'a>(function: &str, at: usize, argument: Out<'a>) -> Out<'a> {
    match function {
        "json_build_object" | "jsonb_build_object" if at.is_multiple_of(2) => json_key(argument),
        "json_object_agg" | "jsonb_object_agg" if at == 0 => json_key(argument),
        "json_build_object" | "jsonb_build_object" | "json_object_agg" | "jsonb_object_agg"
        | "json_build_array" | "jsonb_build_array" | "json_agg" | "jsonb_agg" | "to_json" | "to_jsonb"
        | "row_to_json" | "array_to_json" => json_part(argument),
        "concat" | "concat_ws" | "format" if argument.ty == Some(SqlType::Bool) => {
            argument.wrapped("CASE (", ") WHEN 1 THEN 't' WHEN 0 THEN 'f' END").typed(SqlType::Text)
        }
        "concat" | "concat_ws" | "quote_literal" | "quote_nullable" => texts::float(numeric::shown(argument)),
        "format" if at > 0 => texts::float(numeric::shown(argument)),
        "array_to_string" if at == 0 && argument.ty == SqlType::Timestamptz.array() => {
            let ty = argument.ty;
            texts::zoned(argument).of_type(ty)
        }
        "array_agg" => {
            let ty = argument.ty;
            array_part(argument).of_type(ty)
        }
        _ => argument,
    }
}

/// Functions of groups with what SQLite's give for no rows, where PostgreSQL's give NULL.
pub(super) const OF_NO_ROWS: &[(&str, &str)] = &[
    ("array_agg", "[]"),
    ("json_agg", "[]"),
    ("jsonb_agg", "[]"),
    ("json_object_agg", "{}"),
    ("jsonb_object_agg", "{}"),
];

/// Functions that may be given the row of a table.
pub(super) const OF_ROWS: &[&str] = &[
    "row_to_json",
    "to_json",
    "to_jsonb",
    "json_agg",
    "jsonb_agg",
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
    "json_object_agg",
    "jsonb_object_agg",
    "count",
];

/// Functions of SQLite's JSON whose results have PostgreSQL's type `jsonb`, and so its form.
pub(super) const OF_JSONB: &[&str] = &[
    "jsonb_agg",
    "jsonb_object_agg",
    "jsonb_build_object",
    "jsonb_build_array",
    "jsonb_strip_nulls",
    "to_jsonb",
];

impl<'a> Translator<'a, '_> {
    /// `+`, `-`, `*`, `/` and `%` where a side is JSON or an array.
    pub(super) fn structure_arithmetic(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        right: Out<'a>,
    ) -> Step<Out<'a>> {
        match (left.ty, operator.text) {
            (Some(SqlType::Jsonb), "-") => self.without(left, operator, right),
            // SQLite computes with the number that the JSON is.
            (Some(SqlType::Json), _) if is_number(right.ty) => Ok(self.infixed([left, right], operator)),
            (_, _) if is_number(left.ty) && right.ty == Some(SqlType::Json) => {
                Ok(self.infixed([left, right], operator))
            }
            _ => Err(self.no_operator(&left, operator, &right)),
        }
    }

    /// `jsonb - key`, `jsonb - index`, `jsonb - keys`
    fn without(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let mut right = right;
        if is_untyped(&right) {
            self.suggest(&mut right, SqlType::Text)?;
            return Ok(removal("jsonb_delete", left, right));
        }
        match right.ty {
            Some(ty) if ty.is_array() && types::is_text(ty.scalar()) => {
                Ok(removal("jsonb_delete_keys", left, right))
            }
            Some(ty) if types::is_text(ty) || is_integer(ty) => Ok(removal("jsonb_delete", left, right)),
            _ => Err(self.no_operator(&left, operator, &right)),
        }
    }

    /// `jsonb #- path`
    pub(super) fn without_path(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        right: Out<'a>,
    ) -> Step<Out<'a>> {
        let (mut left, mut right) = (left, right);
        if is_untyped(&left) {
            self.suggest(&mut left, SqlType::Jsonb)?;
            left.ty = Some(SqlType::Jsonb);
        }
        if is_untyped(&right)
            && let Some(texts) = SqlType::Text.array()
        {
            self.suggest(&mut right, texts)?;
            right.ty = Some(texts);
        }
        let path = right.ty.is_some_and(|ty| ty.is_array() && types::is_text(ty.scalar()));
        if left.ty != Some(SqlType::Jsonb) || !path {
            return Err(self.no_operator(&left, operator, &right));
        }
        Ok(removal("jsonb_delete_path", left, right))
    }

    /// `jsonb ? key`, `jsonb ?| keys`, `jsonb ?& keys`
    pub(super) fn has_keys(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let (mut left, mut right) = (left, right);
        if is_untyped(&left) {
            self.suggest(&mut left, SqlType::Jsonb)?;
            left.ty = Some(SqlType::Jsonb);
        }
        let one = operator.text == "?";
        let wanted = if one { Some(SqlType::Text) } else { SqlType::Text.array() };
        if let Some(wanted) = wanted.filter(|_| is_untyped(&right)) {
            self.suggest(&mut right, wanted)?;
            right.ty = Some(wanted);
        }
        let texts = right.ty.is_some_and(|ty| ty.is_array() != one && types::is_text(ty.scalar()));
        if left.ty != Some(SqlType::Jsonb) || !texts {
            return Err(self.no_operator(&left, operator, &right));
        }
        let function = match operator.text {
            "?" => "jsonb_exists",
            "?|" => "jsonb_exists_any",
            _ => "jsonb_exists_all",
        };
        Ok(call(function, [left, right]).typed(SqlType::Bool).labelled("?column?"))
    }

    /// A table's name in the place of an argument: its row as a JSON object. `None`: it is no such name.
    pub(super) fn whole_row(&mut self, argument: &Expr) -> Step<Option<Out<'a>>> {
        let Expr::Identifier(name) = argument else { return Ok(None) };
        let Some(columns) = self.columns_of_row(&name.value) else { return Ok(None) };
        let token = self.token()?;
        let table = self.name_copied(token);
        let mut members = Vec::with_capacity(2 * columns.len());
        for (column, ty) in columns {
            members.push(Out::made(sql_literal(&Value::from(column.as_str())), token.start));
            let own = self.column_of_row(&name.value, &column);
            let mut value = table.clone();
            value.push_str(&format!(".{}", quoted_name(&own)));
            members.push(json_part(value.of_type(ty)));
        }
        let row = Out::joined(members, ",").wrapped("json_object(", ")");
        let row = match self.scopes.optional(&name.value) {
            None => row,
            Some(relation) => {
                let Some(there) = self.never_null(relation) else { return Err(self.no_row(token)) };
                let mut there_is = table;
                there_is.push_str(&format!(".{} IS NOT NULL THEN ", quoted_name(&there)));
                there_is.push(row);
                there_is.wrapped("CASE WHEN ", " END")
            }
        };
        Ok(Some(row.typed(SqlType::Json).labelled(&name.value)))
    }

    /// A column of a table that every row has a value in.
    fn never_null(&self, relation: &Relation) -> Option<String> {
        let Source::Named(own) = &relation.source else { return None };
        let def = self.names.table(own)?.def();
        match def.visible_columns().find(|(_, column)| column.not_null) {
            Some((_, column)) => Some(self.column_of_row(&relation.name, &column.name)),
            // Of the row's head.
            None => Some("_cas".to_owned()),
        }
    }

    fn no_row(&self, token: Token<'a>) -> Stop {
        let message =
            format!("the row of {}, which an outer join may leave without one, is not supported", token.text);
        let error = SqlError::new(state::NOT_SUPPORTED, message).at(self.sql, token.start);
        Stop::Error(error.with_hint("name its columns, one of them in count(); or join a table with a key"))
    }

    /// `||` of JSON, of arrays, and of texts.
    pub(super) fn joined(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let is_array = |ty: Option<SqlType>| ty.is_some_and(SqlType::is_array);
        if is_array(left.ty) || is_array(right.ty) {
            return self.joined_arrays(left, operator, right);
        }
        if left.ty == Some(SqlType::Jsonb) || right.ty == Some(SqlType::Jsonb) {
            let texts = left.ty.is_some_and(types::is_text) || right.ty.is_some_and(types::is_text);
            if !texts {
                return self.joined_json(left, operator, right);
            }
        } else if left.ty == Some(SqlType::Json) && right.ty == Some(SqlType::Json) {
            return Err(self.no_operator(&left, operator, &right));
        }
        if [&left, &right].iter().any(|side| side.ty == Some(SqlType::Bytea)) {
            let (mut left, mut right) = (left, right);
            for side in [&mut left, &mut right] {
                if is_untyped(side) {
                    self.suggest(side, SqlType::Bytea)?;
                    side.ty = Some(SqlType::Bytea);
                }
            }
            let [ours, theirs] = [&left, &right].map(|side| side.ty == Some(SqlType::Bytea));
            if !(ours && theirs) {
                let known = if ours { right.ty } else { left.ty };
                if known.is_some_and(|ty| !types::is_text(ty)) {
                    return Err(self.no_operator(&left, operator, &right));
                }
                let text = |side: Out<'a>| {
                    let bytes = side.ty == Some(SqlType::Bytea);
                    if bytes { call("cast_text", [side]) } else { side }
                };
                return Ok(self.infixed([text(left), text(right)], operator).typed(SqlType::Text));
            }
            return Ok(self
                .infixed([left, right], operator)
                .wrapped("CAST(", " AS BLOB)")
                .typed(SqlType::Bytea));
        }
        let mut sides = [left, right].map(|side| texts::float(numeric::shown(side)));
        for side in &mut sides {
            self.suggest(side, SqlType::Text)?;
        }
        Ok(self.infixed(sides, operator).typed(SqlType::Text))
    }

    fn joined_json(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let mut sides = [left, right];
        for side in &mut sides {
            if is_untyped(side) {
                self.suggest(side, SqlType::Jsonb)?;
                side.ty = Some(SqlType::Jsonb);
            }
        }
        if sides.iter().any(|side| side.ty != Some(SqlType::Jsonb)) {
            return Err(self.no_operator(&sides[0], operator, &sides[1]));
        }
        Ok(call("jsonb_concat", sides).typed(SqlType::Jsonb).labelled("?column?"))
    }

    fn joined_arrays(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let array = left.ty.filter(|ty| ty.is_array()).or(right.ty).unwrap_or(SqlType::Json);
        let (mut left, mut right) = (left, right);
        for side in [&mut left, &mut right] {
            if is_untyped(side) {
                self.suggest(side, array)?;
                side.ty = Some(array);
            }
        }
        let element = |out: &Out<'_>| out.ty.map(SqlType::scalar);
        let ty = match (element(&left), element(&right)) {
            (Some(ours), Some(theirs)) => common_element(ours, theirs).and_then(SqlType::array),
            _ => None,
        };
        let Some(ty) = ty else { return Err(self.no_operator(&left, operator, &right)) };
        let as_array = |side: Out<'a>| {
            if side.ty.is_some_and(SqlType::is_array) {
                return side;
            }
            call("json_array", [array_part(side)])
        };
        let out = call("array_cat", [as_array(left), as_array(right)]);
        Ok(out.typed(ty).labelled("?column?"))
    }

    /// The error for an operator that no types like these have; or for one that cannot be chosen, as a side has no
    /// type that is known.
    pub(super) fn no_operator(&self, left: &Out<'a>, operator: Token<'a>, right: &Out<'a>) -> Stop {
        let name = |side: &Out<'_>| side.ty.map_or_else(|| "unknown".to_owned(), SqlType::sql_name);
        let open = |side: &Out<'_>| side.ty.is_none() && !is_untyped(side);
        let words = format!("{} {} {}", name(left), operator.text, name(right));
        let error = if open(left) || open(right) {
            SqlError::new(AMBIGUOUS, format!("operator is not unique: {words}"))
                .with_hint("the type of a side is not known; add a cast, as in value::text")
        } else {
            SqlError::new(UNDEFINED_FUNCTION, format!("operator does not exist: {words}"))
                .with_hint("no operator takes these types; you might need to add a cast, as in value::jsonb")
        };
        Stop::Error(error.at(self.sql, operator.start))
    }

    /// `json ->> key`, which is a text whatever the value is. A path that begins with `$` is SQLite's, and so is the
    /// value that it gives.
    pub(super) fn json_text(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Out<'a> {
        let path = matches!(&*right.form, Form::Literal(text) if text.starts_with('$'));
        let value = self.infixed([left.clone(), right.clone()], operator).of_type(None);
        if path {
            return value;
        }
        let function = if left.ty == Some(SqlType::Jsonb) { "jsonb_value_text" } else { "json_value_text" };
        let mut inner = left.left_of(Binding::Join);
        inner.push_str(" ->");
        inner.push(right.right_of(Binding::Join));
        // The affinity makes it compare as a text with what has no type.
        let out = inner.wrapped(&format!("CAST({function}("), ") AS TEXT)").typed(SqlType::Text);
        out.formed(Form::Extract(value)).labelled("?column?")
    }

    /// A condition: the value of a JSON text, which may be a truth.
    pub(super) fn condition(&mut self, condition: &Expr) -> Step<Out<'a>> {
        let word = self.at.checked_sub(1).and_then(|before| self.tokens.get(before)).copied();
        let out = as_value(self.expression(condition)?);
        if let Some(word) = word {
            self.check_truth(&out, word)?;
        }
        Ok(out)
    }

    /// Whether what is read is kept: a definition goes on meaning what it meant when it was made.
    pub(super) fn is_kept(&self) -> bool {
        self.served || self.defines || self.of_row
    }

    /// Refuses what is known to be no truth. A number that is written is one, as SQLite has it, and so is a column of a
    /// row's head. `word`: what it is an argument of.
    pub(super) fn check_truth(&self, out: &Out<'a>, word: Token<'a>) -> Step<()> {
        if let Form::List(parts) = &*out.form
            && let [only] = &parts[..]
        {
            return self.check_truth(only, word);
        }
        let is_head = |name: &str| HIDDEN.iter().any(|(hidden, ..)| hidden.eq_ignore_ascii_case(name));
        let is_column = matches!(out.node(), Some(Node::Column { .. }));
        // What is told as a text for want of a type may be a truth.
        let is_open = out.parameter().is_some()
            || out.is_literal()
            || (out.ty.is_some_and(types::is_text) && !is_column)
            || matches!(out.node(), Some(Node::Column { name, .. }) if is_head(name));
        let Some(ty) = out.ty.filter(|ty| !matches!(ty, SqlType::Bool | SqlType::Unknown)) else {
            return Ok(());
        };
        if is_open || self.is_kept() {
            return Ok(());
        }
        let word = if word.is("ON") { "JOIN/ON".to_owned() } else { word.text.to_uppercase() };
        let message = format!("argument of {word} must be type boolean, not type {}", ty.sql_name());
        let error = SqlError::new(MISMATCH, message).at(self.sql, self.skip_blank(out.start()));
        Err(Stop::Error(error.with_hint("compare the value, as in value <> 0")))
    }
}

fn removal<'a>(function: &str, left: Out<'a>, right: Out<'a>) -> Out<'a> {
    call(function, [left, right]).typed(SqlType::Jsonb).labelled("?column?")
}

/// The type of an array's elements that takes both.
fn common_element(ours: SqlType, theirs: SqlType) -> Option<SqlType> {
    if ours == theirs || (types::is_text(ours) && types::is_text(theirs)) {
        return Some(ours);
    }
    types::arithmetic(Some(ours), Some(theirs))
}
