//! `NUMERIC`: arithmetic without rounding to floats.
//!
//! An expression of such a type is two texts. One is a number, as SQLite compares, sorts and stores it: it stands
//! wherever nothing more is known. The other is exact, a decimal text: it stands in further arithmetic, in what a
//! statement returns, and in what a column is assigned.
//!
//! Literals with a point, and arithmetic of these and of integers alone, stay SQLite's floats.

use sqltext::token::sql_literal;
use sqltext::token::{Kind, Token};
use store::definition::SqlType;
use store::value::Value;

use super::out::{Form, Out, call};
use super::{Translator, types};

/// Functions that are others where their first argument is `NUMERIC`.
const FUNCTIONS: &[(&str, &str)] = &[
    ("abs", "numeric_abs"),
    ("avg", "numeric_avg"),
    ("ceil", "numeric_ceil"),
    ("ceiling", "numeric_ceil"),
    ("div", "numeric_quotient"),
    ("floor", "numeric_floor"),
    ("mod", "numeric_remainder"),
    ("round", "numeric_round"),
    ("sum", "numeric_sum"),
    ("trunc", "numeric_trunc"),
];

/// Functions that give one of their values as it is.
const CHOOSING: &[&str] = &["min", "max", "first_value", "last_value", "lag", "lead", "nth_value"];

/// The exact function in the place of this one.
pub(super) fn function_for(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// Whether SQLite computes it in floats though its type is `NUMERIC`.
pub(super) fn is_float(out: &Out<'_>) -> bool {
    match &*out.form {
        Form::Number(_) | Form::Float => true,
        Form::List(parts) => parts.len() == 1 && is_float(&parts[0]),
        _ => false,
    }
}

/// Whether it is to be computed with exactly.
pub(super) fn is_exact(out: &Out<'_>) -> bool {
    out.ty == Some(SqlType::Numeric) && !is_float(out)
}

/// Whether equal values of it are equal texts.
pub(super) fn has_one_scale(out: &Out<'_>) -> bool {
    scale_of(out).is_some()
}

/// The digits behind the point that all of its values have.
fn scale_of(out: &Out<'_>) -> Option<u16> {
    match &*out.form {
        Form::Column(scale) | Form::Scaled(scale) | Form::Renamed(_, Some(scale)) => Some(*scale),
        Form::List(parts) if parts.len() == 1 => scale_of(&parts[0]),
        _ => None,
    }
}

/// The form of what gives one of the values of this argument.
pub(super) fn chosen_of<'a>(name: &str, argument: &Out<'a>) -> Option<Form<'a>> {
    CHOOSING.contains(&name).then(|| scale_of(argument)).flatten().map(Form::Scaled)
}

/// The exact text of an operand.
pub(super) fn exact(out: Out<'_>) -> Out<'_> {
    if let Some(scale) = scale_of(&out) {
        return out.wrapped("numeric_scaled(", &format!(", {scale})"));
    }
    let start = out.start();
    match *out.form {
        Form::Exact(inner) => inner,
        Form::Number(text) => Out::made(sql_literal(&Value::Text(text)), start),
        Form::List(mut parts) if parts.len() == 1 => exact(parts.remove(0)),
        _ => out,
    }
}

/// The same as a number, with its exact text kept beside.
pub(super) fn settled(exact: Out<'_>) -> Out<'_> {
    let number = exact.clone().wrapped("CAST(numeric_number(", ") AS NUMERIC)").typed(SqlType::Numeric);
    number.formed(Form::Exact(exact)).labelled("?column?")
}

/// What is assigned to a column of this type.
pub(super) fn assigned(out: Out<'_>, ty: SqlType) -> Out<'_> {
    if is_assigned_exactly(&out, ty) { exact(out).typed(SqlType::Numeric) } else { out }
}

/// A value as it is written: with the digits that it has.
pub(super) fn written(out: Out<'_>) -> Out<'_> {
    exact(out).wrapped("CAST(", " AS TEXT)").typed(SqlType::Text)
}

/// The exact function for an operator.
fn operation(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "+" => "numeric_add",
        "-" => "numeric_subtract",
        "*" => "numeric_multiply",
        "/" => "numeric_divide",
        "%" => "numeric_remainder",
        _ => return None,
    })
}

/// Arithmetic of two sides, if one of them is exact and none is a float.
pub(super) fn computed<'a>(left: &Out<'a>, sign: &str, right: &Out<'a>) -> Option<Out<'a>> {
    let floats = |out: &Out<'_>| matches!(out.ty, Some(SqlType::Float4 | SqlType::Float8));
    if (!is_exact(left) && !is_exact(right)) || floats(left) || floats(right) {
        return None;
    }
    let function = operation(sign)?;
    Some(settled(call(function, [exact(left.clone()), exact(right.clone())])))
}

/// What a sign before it makes of it.
pub(super) fn signed<'a>(sign: &str, inner: &Out<'a>, out: Out<'a>) -> Out<'a> {
    if inner.ty != Some(SqlType::Numeric) || sign == "~" {
        return out;
    }
    match &*inner.form {
        Form::Number(text) if sign == "-" => out.formed(Form::Number(format!("-{text}"))),
        Form::Number(text) => out.formed(Form::Number(text.clone())),
        _ if is_float(inner) => out.formed(Form::Float),
        _ if sign == "-" => {
            let zero = Out::made("0", inner.start());
            settled(call("numeric_subtract", [zero, exact(inner.clone())]))
        }
        _ => inner.clone(),
    }
}

/// A number that a text spells, for a side beside a `NUMERIC` one: the comparison is one of numbers.
pub(super) fn compared<'a>(side: Out<'a>, other: &Out<'_>) -> Out<'a> {
    match &*side.form {
        Form::Literal(text) if is_exact(other) && side.ty.is_none() => {
            match store::scalar::numeric::parse(text) {
                Some(_) => {
                    let number = Out::made(text.trim(), side.start()).typed(SqlType::Numeric);
                    number.labelled("?column?")
                }
                None => side,
            }
        }
        _ => side,
    }
}

/// Which columns of the result are exact texts, so that their names and numbers elsewhere in the statement stand for
/// numbers.
#[derive(Debug, Default)]
pub(super) struct Shown<'a> {
    items: Vec<(usize, Option<String>, Out<'a>)>,
}

impl<'a> Shown<'a> {
    fn named(&self, name: &str) -> Option<&Out<'a>> {
        let is_it =
            |given: &Option<String>| given.as_deref().is_some_and(|given| given.eq_ignore_ascii_case(name));
        self.items.iter().find(|(_, given, _)| is_it(given)).map(|(_, _, number)| number)
    }

    fn numbered(&self, number: &str) -> Option<&Out<'a>> {
        let place: usize = number.parse().ok()?;
        self.items.iter().find(|(at, _, _)| at + 1 == place).map(|(_, _, number)| number)
    }
}

/// Whether the columns of a statement's outermost query may be texts: nothing compares them with each other.
pub(super) fn may_show(tokens: &[Token<'_>]) -> bool {
    let reads =
        tokens.first().is_some_and(|token| token.is_any(&["SELECT", "WITH", "INSERT", "UPDATE", "DELETE"]));
    let compares = |token: &Token<'_>| token.is_any(&["UNION", "EXCEPT", "INTERSECT"]);
    // The statement, not the function.
    let replaces = tokens.windows(2).any(|pair| pair[0].is("REPLACE") && !pair[1].is_sign("("));
    let distinct = tokens.windows(2).any(|pair| pair[0].is("SELECT") && pair[1].is("DISTINCT"));
    // A parameter without a number may stand in one place only.
    let unnumbered = |token: &Token<'_>| token.kind == Kind::Parameter && token.text == "?";
    reads && !distinct && !replaces && !tokens.iter().any(|token| compares(token) || unnumbered(token))
}

impl<'a> Translator<'a, '_> {
    /// A column of the result, exact where it may be.
    pub(super) fn shown_exactly(&mut self, column: Out<'a>, at: usize) -> Out<'a> {
        // A column of a table is shown with its digits by whoever writes the row.
        let plain = matches!(*column.form, Form::Column(_));
        if !self.shows || self.queries.len() != 1 || plain || !has_digits(&column) {
            return column;
        }
        let label = column.label.clone();
        self.shown.items.push((at, label.clone(), column.clone()));
        let mut out = exact(column).typed(SqlType::Numeric);
        out.label = label;
        out
    }

    /// A column that is assigned to one of this type, exact where it may be.
    pub(super) fn assigned_column(&mut self, column: Out<'a>, ty: SqlType, at: usize) -> Out<'a> {
        if !self.shows || !is_assigned_exactly(&column, ty) {
            return column;
        }
        let label = column.label.clone();
        self.shown.items.push((at, label.clone(), column.clone()));
        let mut out = assigned(column, ty);
        out.label = label;
        out
    }

    /// Remembers that a name stands for floats though they are told as `NUMERIC`.
    pub(super) fn learn_float(&mut self, name: &str) {
        self.learned.insert(float_key(name), SqlType::Numeric);
    }

    pub(super) fn is_float_name(&self, name: &str) -> bool {
        self.learned.contains_key(&float_key(name))
    }

    /// The name given to a column that is shown exactly.
    pub(super) fn name_shown(&mut self, at: usize, alias: &str) {
        if let Some(last) = self.shown.items.last_mut().filter(|(place, _, _)| *place == at) {
            last.1 = Some(alias.to_owned());
        }
    }

    /// A name that stands for a column shown exactly, as the number that it is.
    pub(super) fn number_named(&self, name: &str) -> Option<Out<'a>> {
        (self.queries.len() == 1).then(|| self.shown.named(name)).flatten().cloned()
    }

    /// A whole term of the outermost `ORDER BY` or `GROUP BY` that is the name or number of a column shown exactly.
    pub(super) fn term_shown(&mut self, order: bool) -> Option<Out<'a>> {
        let token = self.peek()?;
        let behind = self.peek_at(1);
        let alone = behind.is_none_or(|next| {
            matches!(next.text, "," | ";" | ")")
                || next.is_any(&[
                    "ASC", "DESC", "NULLS", "LIMIT", "OFFSET", "FETCH", "FOR", "ORDER", "HAVING", "WINDOW",
                ])
        });
        let found = match token.kind {
            _ if !alone => None,
            Kind::Number => self.shown.numbered(token.text),
            Kind::Word | Kind::Quoted => {
                let name = sqltext::token::unquoted(token.text);
                if order || !self.names.is_column(&name) { self.shown.named(&name) } else { None }
            }
            _ => None,
        };
        let found = found?.clone();
        self.at += 1;
        Some(found)
    }
}

/// Under what a name is learned that stands for floats: no name has such a beginning.
fn float_key(name: &str) -> String {
    format!("\0{}", name.to_lowercase())
}

/// What an operator's result is, where SQLite computes it.
pub(super) fn of_floats(out: Out<'_>, ty: Option<SqlType>) -> Out<'_> {
    let is_numeric = ty == Some(SqlType::Numeric);
    let out = out.of_type(ty);
    if is_numeric && types::arithmetic(ty, ty).is_some() { out.formed(Form::Float) } else { out }
}

/// Whether its exact text has other digits than the number.
pub(super) fn has_digits(out: &Out<'_>) -> bool {
    is_exact(out) && (scale_of(out).is_some() || matches!(&*out.form, Form::Exact(_)) || is_exact_list(out))
}

fn is_exact_list(out: &Out<'_>) -> bool {
    matches!(&*out.form, Form::List(parts) if parts.len() == 1 && has_digits(&parts[0]))
}

/// Literals with more digits than a float keeps.
fn is_long(text: &str) -> bool {
    store::scalar::numeric::parse(text)
        .is_some_and(|number| number.digits() > store::scalar::numeric::EXACT_DIGITS)
}

/// Whether a column of this type is assigned an exact text rather than the number.
pub(super) fn is_assigned_exactly(out: &Out<'_>, ty: SqlType) -> bool {
    ty == SqlType::Numeric
        && match &*out.form {
            Form::Exact(_) => true,
            Form::Number(text) => is_long(text),
            Form::List(parts) => parts.len() == 1 && is_assigned_exactly(&parts[0], ty),
            _ => false,
        }
}

/// Exact texts with commas between.
pub(super) fn listed<'a>(parts: &[Out<'a>]) -> Out<'a> {
    Out::joined(parts.iter().cloned().map(exact), ",")
}

/// A value as text to be joined with others: a boolean is a word.
pub(super) fn shown(out: Out<'_>) -> Out<'_> {
    if out.ty == Some(SqlType::Bool) {
        let label = out.label.clone();
        let mut shown =
            out.wrapped("CASE (", ") WHEN 1 THEN 'true' WHEN 0 THEN 'false' END").typed(SqlType::Text);
        shown.label = label;
        return shown;
    }
    if has_digits(&out) {
        return written(out);
    }
    if out.ty == Some(SqlType::Jsonb) {
        return call("jsonb_text", [out]).typed(SqlType::Text);
    }
    if super::objects::is_number(out.ty) {
        return super::objects::named(out).typed(SqlType::Text);
    }
    out
}
