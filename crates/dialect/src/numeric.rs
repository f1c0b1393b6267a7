//! `NUMERIC`: arithmetic without rounding to floats.
//!
//! A value of such a type is the text of the number. What is computed of it has a cast and a collation behind it:
//! SQLite then compares, sorts and groups by the numbers, here and wherever a query around it reads the value.
//!
//! A literal with a point is such a number where it is computed with. Compared with a column of integers it stays
//! SQLite's float: an index serves that.

use pgcatalog::function::{self, Numeric, Spans};
use sqltext::token::sql_literal;
use store::definition::{NUMERIC_COLLATION, SqlType};
use store::scalar::numeric::nearest_integer;
use store::value::{NAN, Value};

use super::binding::Binding;
use super::out::{Form, Out, call};
use super::{Translator, texts, types};

/// Functions whose arguments are of one kind: decimal numbers, if one of them is.
const AGREEING: &[&str] = &["coalesce", "nullif", "ifnull"];

/// What a call does with arguments of which one is `NUMERIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// None is: SQLite computes it in floats.
    Floats,
    /// Another function is to compute exactly, and they are given so.
    Exact(&'static str),
    /// The result is one of them.
    Chosen,
    /// It takes what they are.
    Texts,
    /// It takes numbers of SQLite's.
    Nearest,
    /// It takes no decimal numbers.
    Refused,
    /// The argument is a float, which another function takes: SQLite's does not know NaN.
    Float(&'static str),
    /// The same, where there is no such function: NaN is refused.
    Guarded,
    /// The arguments are intervals.
    Spans(Spans),
}

/// Whether it is a float to PostgreSQL. A parameter of single precision is a literal that was taken out of the text.
fn is_double(out: &Out<'_>) -> bool {
    match out.ty {
        Some(SqlType::Float4) => out.parameter().is_none(),
        ty => ty == Some(SqlType::Float8),
    }
}

impl Numbers {
    /// Of a call of this function.
    pub(super) fn of(name: &str, parts: &[Out<'_>]) -> Self {
        let of_spans = parts.iter().any(|part| part.ty == Some(SqlType::Interval));
        if let Some(spans) = function::of_spans(name).filter(|_| of_spans) {
            return Self::Spans(spans);
        }
        let first = parts.first();
        let known = function::numeric(name);
        if let (Some(ty), Some(Numeric::Exact(function))) = (first.and_then(|part| part.ty), known)
            // The sum may need more than 64 bits, and the mean more digits than a float has.
            && (name == "sum" && ty == SqlType::Int8 || name == "avg" && types::is_integer(ty))
        {
            return Self::Exact(function);
        }
        let floats = parts.iter().any(|part| matches!(part.ty, Some(SqlType::Float4 | SqlType::Float8)));
        let written = parts.iter().any(is_decimal) && parts.iter().all(is_exact_or_no_number);
        // PostgreSQL has this one for decimal numbers alone.
        let of_base = name == "log" && parts.len() == 2 && parts.iter().all(is_decimal_or_integer);
        match known {
            Some(Numeric::Exact(function)) if of_base => Self::Exact(function),
            Some(Numeric::Wide(function)) if !floats && parts.iter().all(is_decimal_or_integer) => {
                Self::Exact(function)
            }
            Some(Numeric::Exact(function)) if written => Self::Exact(function),
            Some(Numeric::Chosen) if written => Self::Chosen,
            Some(Numeric::Text) if parts.first().is_some_and(is_decimal) => Self::Texts,
            _ if !parts.iter().any(is_exact) => Self::of_floats(name, parts),
            Some(Numeric::Exact(function) | Numeric::Wide(function)) if !floats => Self::Exact(function),
            Some(Numeric::Exact(_) | Numeric::Wide(_) | Numeric::Nearest) => Self::Nearest,
            Some(Numeric::Text) => Self::Texts,
            Some(Numeric::Chosen) => Self::Chosen,
            None => Self::Refused,
        }
    }

    /// Of a call whose arguments are no decimal numbers.
    fn of_floats(name: &str, parts: &[Out<'_>]) -> Self {
        match (function::of_floats(name), parts) {
            (Some(function), [float, ..]) if is_double(float) && function::takes(function, parts.len()) => {
                Self::Float(function)
            }
            (Some(_), [float, ..]) if is_double(float) => Self::Guarded,
            _ => Self::Floats,
        }
    }

    /// An argument as the call is to be given it.
    pub(super) fn argument<'a>(self, name: &str, part: Out<'a>, distinct: bool) -> Out<'a> {
        let several = matches!(name, "min" | "max");
        match self {
            // The collation says which numbers are equal; the exact text does not have it.
            Self::Exact(_) | Self::Texts if distinct => part,
            Self::Exact(_) | Self::Texts if is_decimal(&part) => {
                let ty = part.ty;
                exact(part).of_type(ty)
            }
            Self::Chosen if AGREEING.contains(&name) || several => decimal(part),
            Self::Nearest if is_exact(&part) => nearest(part),
            Self::Spans(Spans::Keys) => call("interval_key", [part]),
            Self::Guarded if is_double(&part) => {
                let ty = part.ty;
                call("float_number", [part]).of_type(ty)
            }
            _ => part,
        }
    }

    /// What the call gives, typed.
    pub(super) fn result(self, out: Out<'_>, returns_numeric: bool) -> Out<'_> {
        match self {
            Self::Exact(_) if out.ty != Some(SqlType::Numeric) => out,
            Self::Exact(_) | Self::Chosen => settled_of(out),
            _ if out.ty != Some(SqlType::Numeric) => out,
            Self::Floats if !returns_numeric => out.formed(Form::Float),
            Self::Nearest => out.formed(Form::Float),
            _ => out,
        }
    }
}

/// What a call gives is a decimal number.
fn settled_of(out: Out<'_>) -> Out<'_> {
    let mut out = out;
    let node = out.take_node();
    settled(out).meaning(node)
}

/// Whether SQLite computes it in floats though its type is `NUMERIC`.
pub(super) fn is_float(out: &Out<'_>) -> bool {
    match &*out.form {
        Form::Number(_) | Form::Float | Form::Query { floats: true } => true,
        Form::List(parts) => parts.len() == 1 && is_float(&parts[0]),
        _ => false,
    }
}

/// Whether it is to be computed with exactly.
pub(super) fn is_exact(out: &Out<'_>) -> bool {
    out.ty == Some(SqlType::Numeric) && !is_float(out)
}

/// Whether it is a decimal number to PostgreSQL, also where SQLite would compute a float.
fn is_decimal(out: &Out<'_>) -> bool {
    out.ty == Some(SqlType::Numeric)
}

/// Whether nothing in it can be a float.
fn is_exact_or_no_number(out: &Out<'_>) -> bool {
    let open = matches!(*out.form, Form::Literal(_) | Form::Parameter(_) | Form::Null);
    is_decimal_or_integer(out) || open || out.ty.is_some_and(|ty| !ty.is_number() && ty != SqlType::Unknown)
}

fn is_decimal_or_integer(out: &Out<'_>) -> bool {
    is_decimal(out) || out.ty.is_some_and(types::is_integer)
}

/// The text of an operand, for a function or cast around it.
pub(super) fn exact(out: Out<'_>) -> Out<'_> {
    let start = out.start();
    match *out.form {
        Form::Exact(inner) => inner,
        Form::Number(text) => Out::made(sql_literal(&Value::Text(text)), start),
        Form::List(mut parts) if parts.len() == 1 => exact(parts.remove(0)),
        _ => out,
    }
}

/// Whether it is a literal with a point, or one too long for an integer.
pub(super) fn is_literal(out: &Out<'_>) -> bool {
    match &*out.form {
        Form::Number(_) => true,
        Form::List(parts) => parts.len() == 1 && is_literal(&parts[0]),
        _ => false,
    }
}

/// Such a literal as the text that it is; anything else as it is.
pub(super) fn exact_literal(out: Out<'_>) -> Out<'_> {
    if is_literal(&out) { exact(out) } else { out }
}

/// The same as SQLite has to see it, which compares it as a number.
pub(super) fn settled(exact: Out<'_>) -> Out<'_> {
    let behind = format!(" AS TEXT) COLLATE {NUMERIC_COLLATION}");
    let number = exact.clone().wrapped("CAST(", &behind).typed(SqlType::Numeric);
    number.formed(Form::Exact(exact)).labelled("?column?")
}

/// The same under its own name.
pub(super) fn settled_with_label(exact: Out<'_>) -> Out<'_> {
    let label = exact.label.clone();
    let mut settled = settled(exact);
    settled.label = label;
    settled
}

/// The nearest integer or float.
fn nearest(out: Out<'_>) -> Out<'_> {
    let label = out.label.clone();
    let mut nearest = call("numeric_number", [exact(out)]).typed(SqlType::Numeric).formed(Form::Float);
    nearest.label = label;
    nearest
}

/// A number or NULL of any type as a decimal one.
pub(super) fn decimal(out: Out<'_>) -> Out<'_> {
    let label = out.label.clone();
    let mut decimal = match (out.ty, &*out.form) {
        (_, Form::Null) => return out,
        // SQLite forgets how the column of a query in parentheses compares.
        (_, Form::Query { .. }) if is_exact(&out) => settled(out),
        _ if is_exact(&out) => return out,
        (_, Form::Number(text)) => {
            let text = text.clone();
            let literal = Out::made(sql_literal(&Value::Text(text.clone())), out.start());
            literal.typed(SqlType::Numeric).formed(Form::Number(text))
        }
        _ => settled(call("numeric_of", [exact(out)])),
    };
    decimal.label = label;
    decimal
}

/// What a column of a query's arms holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digits {
    /// Decimal numbers, as texts.
    texts: bool,
    /// Integers and floats.
    numbers: bool,
    /// Floats among these.
    reals: bool,
    /// Floats that clients get as decimal numbers.
    floats: bool,
    /// Something else.
    others: bool,
}

impl Digits {
    pub(super) fn of(out: &Out<'_>) -> Self {
        let none = Self::default();
        if is_exact(out) {
            Self { texts: true, ..none }
        } else if out.ty == Some(SqlType::Numeric) {
            Self { floats: true, ..none }
        } else if types::arithmetic(out.ty, out.ty).is_some() {
            let reals = matches!(out.ty, Some(SqlType::Float4 | SqlType::Float8));
            Self { numbers: true, reals, ..none }
        } else {
            let open = matches!(*out.form, Form::Null | Form::Parameter(_));
            Self { others: !open, ..none }
        }
    }

    /// Those of two arms.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            texts: self.texts || other.texts,
            numbers: self.numbers || other.numbers,
            reals: self.reals || other.reals,
            floats: self.floats || other.floats,
            others: self.others || other.others,
        }
    }

    /// Whether all are decimal numbers.
    pub(super) fn are_texts(self) -> bool {
        self == Self { texts: true, ..Self::default() }
    }

    /// Whether they must be made decimal numbers: some are, or a query around this one compares them.
    pub(super) fn must_be_texts(self, is_table: bool) -> bool {
        let mixed = self.texts && (self.numbers || self.floats);
        // Beside a float a literal with a point is one.
        !self.others && (mixed || (is_table && self.floats && !self.reals))
    }
}

/// What is assigned to a column of this type.
pub(super) fn assigned(out: Out<'_>, ty: SqlType) -> Out<'_> {
    if is_assigned_exactly(&out, ty) { exact(out).typed(SqlType::Numeric) } else { out }
}

/// Whether a number may have a fraction that an integer has not.
pub(super) fn has_fraction(out: &Out<'_>) -> bool {
    matches!(out.ty, Some(SqlType::Numeric | SqlType::Float4 | SqlType::Float8))
}

/// A number without its fraction: halves of decimal numbers go away from zero, those of floats to the even neighbour.
/// What SQLite computes in floats for decimal numbers is left to the conversion around it, which rounds as these do.
pub(super) fn rounded(out: Out<'_>) -> Out<'_> {
    match (&*out.form, out.ty) {
        (Form::Number(_), _) => {
            let start = out.start();
            let digits = exact(out);
            integer_literal(&digits, start).unwrap_or_else(|| call("numeric_round", [digits]))
        }
        (Form::List(parts), _) if parts.len() == 1 => rounded(parts[0].clone()),
        // A literal that was taken out of the text is a decimal number, and has this type.
        (Form::Parameter(_), Some(SqlType::Float4)) => out,
        (_, Some(SqlType::Float4 | SqlType::Float8)) => call("float_round", [out]),
        _ if is_exact(&out) => call("numeric_round", [exact(out)]),
        _ => out,
    }
}

/// Whether a decimal number is larger or smaller than any float.
pub(super) fn is_beyond_floats(digits: &str) -> bool {
    let number = digits.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = number.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    digits.parse::<f64>().is_ok_and(|float| float.is_infinite() || (float == 0.0 && !is_zero))
}

/// The integer that a literal with a point is: a float may be another one.
fn integer_of(digits: &str) -> Option<i64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    whole.parse().ok().filter(|_| fraction.bytes().all(|digit| digit == b'0'))
}

/// The text of a number, which is a literal, as a literal of the nearest integer.
fn integer_literal<'a>(digits: &Out<'a>, start: usize) -> Option<Out<'a>> {
    let text = digits.text();
    let integer = nearest_integer(text.trim().trim_matches('\''))?;
    Some(Out::made(integer.to_string(), start).typed(SqlType::Int8))
}

/// A number as the integer that a column stores.
pub(super) fn stored_integer(out: Out<'_>) -> Out<'_> {
    let rounded = rounded(out);
    // A literal stays one: it needs nobody to compute it.
    if rounded.ty == Some(SqlType::Int8) {
        return rounded;
    }
    call(&types::cast_name(SqlType::Int8), [rounded]).typed(SqlType::Int8)
}

/// Whether an array has elements that may have fractions, and a column of integers takes it.
pub(super) fn holds_fractions(out: &Out<'_>, ty: SqlType) -> bool {
    let integers = ty.is_array() && types::is_integer(ty.scalar());
    matches!(&*out.form, Form::Array(parts) if integers && parts.iter().any(has_fraction))
}

/// What is no number compares as texts do, though it was computed of decimal numbers: SQLite gives an expression the
/// first collation that stands anywhere in it.
pub(super) fn collated(out: Out<'_>) -> Out<'_> {
    if out.ty == Some(SqlType::Numeric) || !out.has(NUMERIC_COLLATION) {
        return out;
    }
    let mut collated = out.left_of(Binding::Collate);
    let node = collated.take_node();
    collated.push_str(" COLLATE BINARY");
    collated.bound(Binding::Collate).meaning(node)
}

/// A value as it is written: with the digits that it has. A cast keeps a column's collation, by which `1.5` and `1.50`
/// would be one text.
pub(super) fn written(out: Out<'_>) -> Out<'_> {
    exact(out).wrapped("CAST(", " AS TEXT) COLLATE BINARY").typed(SqlType::Text)
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

/// Arithmetic of two sides, if one of them is a decimal number and none is a float.
pub(super) fn computed<'a>(left: &Out<'a>, sign: &str, right: &Out<'a>) -> Option<Out<'a>> {
    let floats = |out: &Out<'_>| matches!(out.ty, Some(SqlType::Float4 | SqlType::Float8));
    // Beside a literal, what nothing is known of may be a float.
    let written = is_decimal_or_integer(left) && is_decimal_or_integer(right);
    let exact_one = is_exact(left) || is_exact(right) || (written && (is_decimal(left) || is_decimal(right)));
    if !exact_one || floats(left) || floats(right) {
        return None;
    }
    let function = operation(sign)?;
    Some(settled(call(function, [exact(left.clone()), exact(right.clone())])))
}

/// `a ^ b`: exact, if one side is a decimal number and none is a float.
pub(super) fn power<'a>(left: Out<'a>, right: Out<'a>) -> Out<'a> {
    let meant = |out: &Out<'_>| is_decimal(out) && out.parameter().is_none();
    if !(meant(&left) || meant(&right)) || is_double(&left) || is_double(&right) {
        return call("power", [left, right]).typed(SqlType::Float8);
    }
    settled(call("numeric_power", [exact(left), exact(right)]))
}

/// Arithmetic of floats, and of integers of 64 bits: SQLite takes NaN for zero, and goes on with floats where integers
/// end.
pub(super) fn bounded<'a>(left: &Out<'a>, sign: &str, right: &Out<'a>) -> Option<Out<'a>> {
    let function = match sign {
        "+" => "float_add",
        "-" => "float_subtract",
        "*" => "float_multiply",
        "/" => "float_divide",
        _ => return None,
    };
    let ty = types::arithmetic(left.ty, right.ty);
    let any = is_double(left) || is_double(right);
    any.then(|| call(function, [left.clone(), right.clone()]).of_type(ty).labelled("?column?"))
}

/// An integer that was computed, or an error where 64 bits do not hold it.
pub(super) fn fitted(out: Out<'_>) -> Out<'_> {
    if out.ty != Some(SqlType::Int8) {
        return out;
    }
    let mut out = out;
    let node = out.take_node();
    call("int8_fit", [out]).typed(SqlType::Int8).labelled("?column?").meaning(node)
}

/// A division of integers: where the divisor turns out to be zero it is an error, and SQLite has NULL. Nobody needs to
/// look at a literal that is not zero.
pub(super) fn divided<'a>(left: &Out<'a>, sign: &str, right: &Out<'a>) -> Option<Out<'a>> {
    let function = match sign {
        "/" => "integer_divide",
        "%" => "integer_remainder",
        _ => return None,
    };
    let is_integer = |out: &Out<'_>| out.ty.is_some_and(types::is_integer);
    let is_certain = right.is_literal() && right.text().trim().parse::<u64>().is_ok_and(|number| number > 0);
    // A column of type ANY holds texts, too.
    let may_be = |out: &Out<'_>| is_integer(out) || out.parameter().is_some();
    let are = may_be(left) && may_be(right) && (is_integer(left) || is_integer(right));
    (are && !is_certain).then(|| call(function, [left.clone(), right.clone()]))
}

/// The digits of the least integer of 64 bits.
const LEAST_INTEGER: &str = "9223372036854775808";

/// What a sign before it makes of it.
pub(super) fn signed<'a>(sign: &str, inner: &Out<'a>, out: Out<'a>) -> Out<'a> {
    if sign == "-" && is_double(inner) && (!inner.is_literal() || inner.text().contains(NAN)) {
        let back = Out::made("-1", inner.start());
        return call("float_multiply", [inner.clone(), back]).of_type(inner.ty);
    }
    if sign == "-" && inner.ty == Some(SqlType::Int8) && matches!(*inner.form, Form::Computed) {
        return fitted(out);
    }
    if inner.ty != Some(SqlType::Numeric) || sign == "~" {
        return out;
    }
    match &*inner.form {
        // The least integer is written as one that is too large, with a sign.
        Form::Number(text) if sign == "-" && text == LEAST_INTEGER => out.typed(SqlType::Int8),
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

/// A side of a comparison whose other side is this one: both are decimal numbers, or both are floats. Literals that are
/// whole numbers and parameters become texts by SQLite's own rule.
pub(super) fn compared<'a>(side: Out<'a>, other: &Out<'_>) -> Out<'a> {
    if is_exact(&side) && is_double(other) {
        return call("cast_float8", [exact(side)]).typed(SqlType::Float8);
    }
    if let (Form::Number(digits), Some(ty)) = (&*side.form, other.ty)
        && types::is_integer(ty)
        && let Some(integer) = integer_of(digits)
    {
        return Out::made(integer.to_string(), side.start()).typed(SqlType::Int8);
    }
    let open = side.ty.is_none() || side.is_literal() || side.parameter().is_some();
    let number = types::arithmetic(side.ty, side.ty).is_some();
    if !is_exact(other) || is_double(&side) || (open && !matches!(*side.form, Form::Number(_))) || !number {
        return side;
    }
    let label = side.label.clone();
    let mut decimal = decimal(side);
    decimal.label = label;
    decimal
}

/// A parameter and a literal that are decimal numbers: neither says how they compare.
pub(super) fn with_parameter<'a>(left: Out<'a>, right: Out<'a>) -> (Out<'a>, Out<'a>) {
    let parameter = |out: &Out<'_>| out.ty == Some(SqlType::Numeric) && out.parameter().is_some();
    let literal = |out: &Out<'_>| matches!(*out.form, Form::Number(_));
    if parameter(&left) && literal(&right) {
        (left, settled(exact(right)))
    } else if parameter(&right) && literal(&left) {
        (settled(exact(left)), right)
    } else {
        (left, right)
    }
}

/// A parameter that is a decimal number, beside something of which nothing is known: it may be a number of SQLite's.
pub(super) fn beside_anything<'a>(side: Out<'a>, other: &Out<'_>) -> Out<'a> {
    let known = other.ty.is_some() || !matches!(*other.form, Form::Computed | Form::Query { .. });
    if known || side.parameter().is_none() || !is_exact(&side) { side } else { nearest(side) }
}

impl Translator<'_, '_> {
    /// Remembers that a name stands for floats though they are told as `NUMERIC`.
    pub(super) fn learn_float(&mut self, name: &str) {
        self.learned.insert(float_key(name), SqlType::Numeric);
    }

    pub(super) fn is_float_name(&self, name: &str) -> bool {
        self.learned.contains_key(&float_key(name))
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

/// Whether a column of this type is assigned another text: one without a cast around it, or all digits of a literal.
pub(super) fn is_assigned_exactly(out: &Out<'_>, ty: SqlType) -> bool {
    ty == SqlType::Numeric
        && match &*out.form {
            Form::Exact(_) | Form::Number(_) => true,
            Form::List(parts) => parts.len() == 1 && is_assigned_exactly(&parts[0], ty),
            _ => false,
        }
}

/// A value as text to be joined with others: a boolean is a word.
pub(super) fn shown(out: Out<'_>) -> Out<'_> {
    if out.ty == Some(SqlType::Bool) {
        let label = out.label.clone();
        let shown = out.wrapped("CASE (", ") WHEN 1 THEN 'true' WHEN 0 THEN 'false' END");
        let mut shown = collated(shown.typed(SqlType::Text));
        shown.label = label;
        return shown;
    }
    if is_exact(&out) || is_literal(&out) {
        return written(out);
    }
    if out.ty == Some(SqlType::Jsonb) {
        return call("jsonb_text", [out]).typed(SqlType::Text);
    }
    if texts::is_written(out.ty) {
        return texts::written(out);
    }
    if super::objects::is_number(out.ty) {
        return super::objects::named(out).typed(SqlType::Text);
    }
    out
}
