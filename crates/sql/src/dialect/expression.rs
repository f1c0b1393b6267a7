//! Expressions, by the precedence of their operators.
//!
//! Most operators are SQLite's too and are copied; the pass only looks at the types of their sides. The others become
//! functions or operators that mean the same.

use store::definition::SqlType;

use super::out::{Form, Out};
use super::{Step, Translator, numeric, structures, types};
use crate::error::state;
use sqltext::token::{Kind, Token};

/// How tightly operators bind, as PostgreSQL has it; higher is tighter.
pub(super) mod power {
    pub(in super::super) const ANYTHING: u8 = 0;
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(in super::super) const NOT: u8 = 3;
    pub(super) const IS: u8 = 4;
    pub(super) const COMPARE: u8 = 5;
    pub(super) const LIKE: u8 = 6;
    pub(in super::super) const OTHER: u8 = 7;
    pub(super) const ADD: u8 = 8;
    pub(super) const MULTIPLY: u8 = 9;
    pub(super) const POWER: u8 = 10;
    pub(super) const ZONE: u8 = 11;
    pub(super) const COLLATE: u8 = 12;
    pub(in super::super) const SIGN: u8 = 13;
}

/// Comparisons by a word.
const LIKES: &[&str] = &["LIKE", "ILIKE", "GLOB", "REGEXP", "MATCH", "SIMILAR", "IN", "BETWEEN"];

impl<'a> Translator<'a, '_> {
    /// An expression whose operators bind at least so tightly; `None` where no operand begins.
    pub(super) fn expression(&mut self, least: u8) -> Step<Option<Out<'a>>> {
        self.deeper(|own| {
            let Some(mut left) = own.operand()? else { return Ok(None) };
            while let Some(power) = own.infix().filter(|power| *power >= least) {
                left = own.combined(left, power)?;
            }
            Ok(Some(left))
        })
    }

    /// How tightly the operator that is next binds; `None`: there is none.
    fn infix(&self) -> Option<u8> {
        let token = self.peek()?;
        match token.kind {
            Kind::Sign => sign_power(token.text),
            Kind::Word => self.word_power(&token),
            _ => None,
        }
    }

    fn word_power(&self, token: &Token<'_>) -> Option<u8> {
        let next = |word: &str| self.peek_at(1).is_some_and(|token| token.is(word));
        if token.is_any(LIKES) {
            Some(power::LIKE)
        } else if token.is("NOT") {
            let like = self.peek_at(1).is_some_and(|token| token.is_any(LIKES));
            if like { Some(power::LIKE) } else { next("NULL").then_some(power::IS) }
        } else if token.is_any(&["IS", "ISNULL", "NOTNULL"]) {
            Some(power::IS)
        } else if token.is("AND") {
            Some(power::AND)
        } else if token.is("OR") {
            // `INSERT OR REPLACE` is no operator.
            let resolves = ["REPLACE", "IGNORE", "ABORT", "FAIL", "ROLLBACK"];
            (!self.peek_at(1).is_some_and(|token| token.is_any(&resolves))).then_some(power::OR)
        } else if token.is("COLLATE") {
            Some(power::COLLATE)
        } else if token.is("AT") {
            next("TIME").then_some(power::ZONE)
        } else {
            None
        }
    }

    /// The operator that is next with its right side, behind a left one.
    fn combined(&mut self, left: Out<'a>, power: u8) -> Step<Out<'a>> {
        let Some(operator) = self.take() else { return Ok(left) };
        match power {
            power::LIKE => self.likes(left, operator),
            power::IS => self.is(left, operator),
            power::COMPARE => self.comparison(left, operator),
            power::OTHER => self.other(left, operator),
            power::ADD | power::MULTIPLY => self.arithmetic(left, operator, power),
            power::POWER => {
                let right = self.right(power, operator)?;
                Ok(call("power", [left, right]).typed(SqlType::Float8).labelled("?column?"))
            }
            power::ZONE => {
                self.at += 2;
                let zone = self.right(power, operator)?;
                let ty = if left.ty == Some(SqlType::Timestamptz) {
                    SqlType::Timestamp
                } else {
                    SqlType::Timestamptz
                };
                Ok(call("timezone", [zone, left]).typed(ty).labelled("timezone"))
            }
            power::COLLATE => {
                let (ty, label) = (left.ty, left.label.clone());
                let mut out = left;
                out.push(self.copied(operator));
                if let Some(name) = self.take() {
                    out.push(self.copied(name));
                }
                out.label = label;
                Ok(out.of_type(ty))
            }
            _ => {
                let mut sides =
                    [structures::as_value(left), structures::as_value(self.right(power, operator)?)];
                for side in &mut sides {
                    self.suggest(side, SqlType::Bool)?;
                }
                Ok(self.infixed(sides, operator).typed(SqlType::Bool))
            }
        }
    }

    /// The right side of an operator; a missing one is for SQLite to complain about.
    fn right(&mut self, power: u8, operator: Token<'a>) -> Step<Out<'a>> {
        let right = self.expression(power + 1)?;
        Ok(right.unwrap_or_else(|| Out::made("", operator.end())))
    }

    pub(super) fn infixed(&self, sides: [Out<'a>; 2], operator: Token<'a>) -> Out<'a> {
        let [mut out, right] = sides;
        out.push(self.copied(operator));
        out.push(right);
        out.labelled("?column?")
    }

    /// The same with another operator in place of the one that stands there.
    fn replaced(sides: [Out<'a>; 2], operator: &str) -> Out<'a> {
        let [mut out, right] = sides;
        out.push_str(&format!(" {operator} "));
        out.push(right);
        out.labelled("?column?")
    }

    fn comparison(&mut self, left: Out<'a>, operator: Token<'a>) -> Step<Out<'a>> {
        if let Some(quantifier) = self.peek().filter(|token| token.is_any(&["ANY", "SOME", "ALL"]))
            && self.next_is_sign(1, "(")
        {
            self.at += 1;
            return self.quantified(left, operator, quantifier.is("ALL"));
        }
        let right = self.right(power::COMPARE, operator)?;
        let sides = self.agreed(left, right)?;
        Ok(self.infixed(sides, operator).typed(SqlType::Bool))
    }

    /// Two sides that are compared: each learns from the other.
    pub(super) fn agreed(&mut self, left: Out<'a>, right: Out<'a>) -> Step<[Out<'a>; 2]> {
        let (mut left, mut right) = structures::side_by_side(left, right);
        if let (Form::List(ours), Form::List(_)) = (&*left.form, &*right.form) {
            let types: Vec<Option<SqlType>> = ours.iter().map(|part| part.ty).collect();
            self.suggest_list(&mut right, &types)?;
            return Ok([left, right]);
        }
        left = numeric::compared(left, &right);
        right = numeric::compared(right, &left);
        if let Some(ty) = left.ty {
            self.suggest(&mut right, ty)?;
        }
        if let Some(ty) = right.ty {
            self.suggest(&mut left, ty)?;
        }
        if let (Some(ours), Some(theirs)) = (left.ty, right.ty) {
            if types::widens(ours, theirs) {
                left = call(&types::cast_name(theirs), [left]).typed(theirs);
            } else if types::widens(theirs, ours) {
                right = call(&types::cast_name(ours), [right]).typed(ours);
            }
        }
        Ok([left, right])
    }

    fn likes(&mut self, left: Out<'a>, first: Token<'a>) -> Step<Out<'a>> {
        let not = first.is("NOT");
        let word = if not { self.take().unwrap_or(first) } else { first };
        let mut out = left;
        if word.is("IN") {
            return self.in_list(out, first, word);
        }
        if word.is("BETWEEN") {
            return self.between(out, first, word);
        }
        if word.is("SIMILAR") {
            return Err(self.error_at(
                Some(word),
                state::NOT_SUPPORTED,
                "SIMILAR TO is not supported; use ~ with a regular expression",
            ));
        }
        self.suggest(&mut out, SqlType::Text)?;
        if not {
            out.push(self.copied(first));
        }
        if word.is("ILIKE") {
            out.push_str(" LIKE");
        } else {
            out.push(self.copied(word));
        }
        let mut pattern = self.right(power::LIKE, word)?;
        self.suggest(&mut pattern, SqlType::Text)?;
        out.push(pattern);
        if let Some(escape) = self.peek().filter(|token| token.is("ESCAPE")) {
            self.at += 1;
            out.push(self.copied(escape));
            out.push(self.right(power::LIKE, escape)?);
        }
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    fn between(&mut self, left: Out<'a>, first: Token<'a>, word: Token<'a>) -> Step<Out<'a>> {
        let symmetric = self.take_word("SYMMETRIC");
        if symmetric {
            return Err(self.error_at(
                Some(word),
                state::NOT_SUPPORTED,
                "BETWEEN SYMMETRIC is not supported",
            ));
        }
        let low = self.right(power::LIKE, word)?;
        let [mut out, low] = self.agreed(left, low)?;
        let ty = out.ty.or(low.ty);
        if first.start != word.start {
            out.push(self.copied(first));
        }
        out.push(self.copied(word));
        out.push(low);
        if let Some(and) = self.peek().filter(|token| token.is("AND")) {
            self.at += 1;
            let mut high = self.right(power::LIKE, and)?;
            if let Some(ty) = ty {
                self.suggest(&mut high, ty)?;
            }
            out.push(self.copied(and));
            out.push(high);
        }
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    fn in_list(&mut self, left: Out<'a>, first: Token<'a>, word: Token<'a>) -> Step<Out<'a>> {
        let mut list = self.right(power::LIKE, word)?;
        let left = match &*list.form {
            Form::List(parts) => {
                let learned = parts.iter().find_map(|part| part.ty);
                let mut left = if structures::is_number(learned) { structures::as_value(left) } else { left };
                if let Some(ty) = learned {
                    self.suggest(&mut left, ty)?;
                }
                left
            }
            _ => left,
        };
        match (left.ty, &*left.form) {
            (Some(ty), _) => self.suggest_all(&mut list, ty)?,
            (None, Form::List(parts)) => {
                let types: Vec<Option<SqlType>> = parts.iter().map(|part| part.ty).collect();
                self.suggest_rows(&mut list, &types)?;
            }
            _ => {}
        }
        let mut out = left;
        if first.start != word.start {
            out.push(self.copied(first));
        }
        out.push(self.copied(word));
        out.push(list);
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    /// `IS NULL`, `IS TRUE`, `IS DISTINCT FROM`...
    fn is(&mut self, left: Out<'a>, operator: Token<'a>) -> Step<Out<'a>> {
        let mut out = left;
        let left_type = out.ty;
        out.push(self.copied(operator));
        if operator.is_any(&["ISNULL", "NOTNULL"]) {
            return Ok(out.typed(SqlType::Bool).labelled("?column?"));
        }
        while let Some(word) = self.peek().filter(|token| token.is_any(&["NOT", "DISTINCT", "FROM"])) {
            self.at += 1;
            out.push(self.copied(word));
        }
        if self.take_word("UNKNOWN") {
            out.push_str(" NULL");
        } else {
            let mut right = self.right(power::IS, operator)?;
            if let Some(ty) = left_type {
                self.suggest(&mut right, ty)?;
            }
            out.push(right);
        }
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    /// Operators of PostgreSQL's widest class: patterns, JSON, concatenation.
    fn other(&mut self, left: Out<'a>, operator: Token<'a>) -> Step<Out<'a>> {
        let ours = left.ty;
        let mut sides = [left, self.right(power::OTHER, operator)?];
        let pattern = match operator.text {
            "~" => Some("REGEXP"),
            "~*" => Some("MATCH"),
            "!~" => Some("NOT REGEXP"),
            "!~*" => Some("NOT MATCH"),
            "~~" | "~~*" => Some("LIKE"),
            "!~~" | "!~~*" => Some("NOT LIKE"),
            _ => None,
        };
        if let Some(pattern) = pattern {
            for side in &mut sides {
                self.suggest(side, SqlType::Text)?;
            }
            return Ok(Self::replaced(sides, pattern).typed(SqlType::Bool));
        }
        let [left, right] = sides;
        Ok(match operator.text {
            "@>" => self.contains(left, right)?,
            "<@" => self.contains(right, left)?,
            "#>" => call("jsonb_extract_path_list", [left, right]).typed(SqlType::Jsonb),
            "#>>" => call("jsonb_extract_path_list_text", [left, right]).typed(SqlType::Text),
            "#-" => self.without_path(left, operator, right)?,
            "&&" | "@@" => {
                let message = format!("operator {} is not supported", operator.text);
                return Err(self.error_at(Some(operator), state::NOT_SUPPORTED, message));
            }
            "->" => {
                let ty = if ours == Some(SqlType::Jsonb) { SqlType::Jsonb } else { SqlType::Json };
                self.infixed([left, right], operator).typed(ty)
            }
            "->>" => self.json_text(left, operator, right),
            "||" => self.joined(left, operator, right)?,
            _ => self.infixed([left, right], operator).typed(SqlType::Int8),
        })
    }

    /// `whole @> part`: of arrays where one side is one, of JSON documents otherwise.
    fn contains(&mut self, whole: Out<'a>, part: Out<'a>) -> Step<Out<'a>> {
        let (mut whole, mut part) = (whole, part);
        let array = [whole.ty, part.ty].into_iter().flatten().find(|ty| ty.is_array());
        let Some(array) = array else {
            for side in [&mut whole, &mut part] {
                self.suggest(side, SqlType::Jsonb)?;
            }
            return Ok(call("jsonb_contains", [whole, part]).typed(SqlType::Bool).labelled("?column?"));
        };
        for side in [&mut whole, &mut part] {
            self.suggest_array(side, array.scalar())?;
        }
        Ok(call("array_contains", [whole, part]).typed(SqlType::Bool).labelled("?column?"))
    }

    /// `+`, `-`, `*`, `/` and `%`, of numbers and of moments.
    fn arithmetic(&mut self, left: Out<'a>, operator: Token<'a>, power: u8) -> Step<Out<'a>> {
        let right = self.right(power, operator)?;
        let sign = operator.text;
        let (mut left, mut right) = structures::side_by_side(left, right);
        if structures::is_structure(left.ty) || structures::is_structure(right.ty) {
            return self.structure_arithmetic(left, operator, right);
        }
        if types::is_moment(left.ty) || types::is_moment(right.ty) {
            return self.moments(left, right, sign);
        }
        if let Some(ty) = left.ty {
            self.suggest(&mut right, ty)?;
        }
        if let Some(ty) = right.ty {
            self.suggest(&mut left, ty)?;
        }
        if let Some(out) = numeric::computed(&left, sign, &right) {
            return Ok(out);
        }
        let ty = types::arithmetic(left.ty, right.ty);
        Ok(numeric::of_floats(self.infixed([left, right], operator), ty))
    }

    /// Arithmetic of moments and spans.
    fn moments(&mut self, left: Out<'a>, right: Out<'a>, sign: &str) -> Step<Out<'a>> {
        let (mut left, mut right) = (left, right);
        let (meant_left, meant_right) = types::moment_sides(left.ty, right.ty, sign);
        if let Some(ty) = meant_left {
            self.suggest(&mut left, ty)?;
        }
        if let Some(ty) = meant_right {
            self.suggest(&mut right, ty)?;
        }
        let ty = types::moment_result(left.ty, right.ty, sign);
        let name = match sign {
            "+" => "moment_plus",
            "-" => "moment_minus",
            "*" => "interval_times",
            _ => "interval_divided",
        };
        Ok(call(name, [left, right]).of_type(ty).labelled("?column?"))
    }
}

/// A function of these.
pub(super) fn call<'a, const N: usize>(name: &str, arguments: [Out<'a>; N]) -> Out<'a> {
    Out::joined(arguments, ",").wrapped(&format!("{name}("), ")").labelled(name)
}

fn sign_power(sign: &str) -> Option<u8> {
    Some(match sign {
        "=" | "==" | "<>" | "!=" | "<" | ">" | "<=" | ">=" => power::COMPARE,
        "||" | "->" | "->>" | "#>" | "#>>" | "#-" | "@>" | "<@" | "~" | "~*" | "!~" | "!~*" | "~~"
        | "~~*" | "!~~" | "!~~*" | "&" | "|" | "<<" | ">>" | "&&" | "@@" => power::OTHER,
        "+" | "-" => power::ADD,
        "*" | "/" | "%" => power::MULTIPLY,
        "^" => power::POWER,
        _ => return None,
    })
}
