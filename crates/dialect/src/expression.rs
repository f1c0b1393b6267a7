//! Expressions: operators with what stands on their left and right.
//!
//! Most operators are SQLite's too and are copied; the walk only looks at the types of their sides. The others become
//! functions or operators that mean the same.

use sqltext::ast::{
    AccessExpr, BinaryOperator, CastKind, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Query, SelectItem, SetExpr, Subscript, UnaryOperator,
};
use sqltext::token::{Token, sql_literal};
use store::definition::{NUMERIC_COLLATION, SqlType};

use super::binding::Binding;
use super::equals::keyed;
use super::out::{Form, Out, call, served_call};
use super::types::Told;
use super::{Step, Stop, Translator, go_on, indexes, moments, numeric, structures, types};
use crate::lowered::{Node, Operator};
use pgcatalog::function::like::{self, LikeStyle};
use sqltext::error::state;
use sqltext::token::unquoted;

/// What an expression with an operator behind its first operand has there; `None` for all others.
fn first_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => Some(left),
        Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::InUnnest { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::Collate { expr, .. }
        | Expr::Cast { expr, kind: CastKind::DoubleColon, .. }
        | Expr::AtTimeZone { timestamp: expr, .. }
        | Expr::CompoundFieldAccess { root: expr, .. }
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr)
        | Expr::IsDistinctFrom(expr, _)
        | Expr::IsNotDistinctFrom(expr, _) => Some(expr),
        _ => None,
    }
}

/// `a NOT GLOB b`, which the tree has as `NOT (a GLOB b)`.
fn without_not(expr: &Expr) -> Option<&Expr> {
    use BinaryOperator::{Glob, Match, Regexp};
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => match &**expr {
            matched @ Expr::BinaryOp { op: Glob | Match | Regexp, .. } => Some(matched),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Translator<'a, '_> {
    /// An expression. A chain of operators is no recursion: it may be long.
    pub(super) fn expression(&mut self, expr: &Expr) -> Step<Out<'a>> {
        go_on()?;
        let prefix = self.peek().is_some_and(|token| token.is("NOT"));
        let mut chain = Vec::new();
        let mut first = expr;
        loop {
            if !prefix && let Some(matched) = without_not(first) {
                first = matched;
            }
            let Some(next) = first_of(first) else { break };
            chain.push(first);
            first = next;
        }
        let mut out = self.operand(first)?;
        loop {
            self.pass_collation();
            out = self.by_index(out);
            let Some(expr) = chain.pop() else { return Ok(out) };
            out = self.combined(out, expr)?;
        }
    }

    /// The condition of a query's rows; `joined`: of the relation with this number.
    pub(super) fn condition_by_index(&mut self, condition: &Expr, joined: Option<usize>) -> Step<Out<'a>> {
        self.begin_clause(joined);
        let out = self.condition(condition)?;
        let out = self.with_predicates(out);
        self.end_clause();
        Ok(out)
    }

    /// An operator with its right side, behind a left one.
    fn combined(&mut self, left: Out<'a>, expr: &Expr) -> Step<Out<'a>> {
        match expr {
            Expr::BinaryOp { op, right, .. } => {
                let operator = self.operator()?;
                self.binary(left, operator, op, right)
            }
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
                let operator = self.operator()?;
                let quantifier = self.token()?;
                self.quantified(left, operator, quantifier.is("ALL"), right)
            }
            Expr::InList { list, .. } => self.in_list(left, list),
            Expr::InSubquery { subquery, .. } => self.in_query(left, subquery),
            Expr::InUnnest { array_expr, .. } => {
                let by_row = self.by_index && indexes::may_miss(&left, None);
                let mut out = left.left_of(Binding::Equality);
                self.pass_words(&["NOT", "IN"], &mut out);
                out.push(self.expression(array_expr)?);
                Ok(membership(out, by_row))
            }
            Expr::Between { low, high, .. } => self.between(left, low, high),
            Expr::Like { any: true, pattern, negated, escape_char: None, .. }
            | Expr::ILike { any: true, pattern, negated, escape_char: None, .. } => {
                let array = if let Expr::Nested(array) = &**pattern { array } else { pattern };
                self.like_any_or_all(left, *negated, array)
            }
            Expr::Like { pattern, negated, escape_char: None, .. }
            | Expr::ILike { pattern, negated, escape_char: None, .. }
                if array_of_all(pattern).is_some() =>
            {
                self.like_any_or_all(left, *negated, array_of_all(pattern).unwrap_or(pattern))
            }
            Expr::Like { any: false, pattern, escape_char, .. }
            | Expr::ILike { any: false, pattern, escape_char, .. } => {
                self.likes(left, pattern, escape_char.as_deref())
            }
            Expr::SimilarTo { .. } => {
                let word = if self.take_word("NOT") { self.peek_at(0) } else { self.peek() };
                let message = "SIMILAR TO is not supported; use ~ with a regular expression";
                Err(self.error_at(word, state::NOT_SUPPORTED, message))
            }
            Expr::Cast { .. } => {
                self.sign("::")?;
                let ty = self.type_name()?;
                self.cast(left, &ty)
            }
            Expr::AtTimeZone { time_zone, .. } => self.at_time_zone(left, time_zone),
            Expr::Collate { .. } => {
                let (mut ty, label) = (left.ty, left.label.clone());
                let stored = self.is_stored_column(&left);
                let mut out = left.left_of(Binding::Collate);
                self.pass(&mut out);
                self.pass_schema();
                if self.peek().is_some_and(|token| token.text == NUMERIC_COLLATION) {
                    // A view's text has it around what was computed.
                    ty = Some(SqlType::Numeric);
                }
                self.pass(&mut out);
                out.label = label;
                let out = out.of_type(ty).bound(Binding::Collate);
                // Its affinity stays, by which SQLite converts what stands beside it.
                Ok(if stored { out.formed(Form::Collated) } else { out })
            }
            Expr::CompoundFieldAccess { access_chain, .. } => self.parts(left, access_chain),
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => self.is(left, Some(right)),
            _ => self.is(left, None),
        }
    }

    fn binary(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Step<Out<'a>> {
        use BinaryOperator as Op;
        match op {
            Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq => {
                let right = self.expression(right)?;
                self.compared(left, operator, right)
            }
            Op::And | Op::Or => {
                let right = self.expression(right)?;
                let mut sides = [structures::as_value(left), structures::as_value(right)];
                for side in &mut sides {
                    self.suggest(side, SqlType::Bool)?;
                    self.check_truth(side, operator)?;
                }
                Ok(self.infixed(sides, operator).typed(SqlType::Bool))
            }
            Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo => {
                let right = self.expression(right)?;
                self.arithmetic(left, operator, right)
            }
            Op::PGExp => {
                let right = self.expression(right)?;
                Ok(numeric::power(left, right).labelled("?column?"))
            }
            Op::Glob | Op::Regexp | Op::Match => {
                self.at -= 1;
                self.likes(left, right, None)
            }
            Op::Overlaps | Op::PGCustomBinaryOperator(_) => Err(Stop::Unknown),
            _ => {
                let right = self.expression(right)?;
                self.other(left, operator, right)
            }
        }
    }

    /// `moment AT TIME ZONE zone`
    fn at_time_zone(&mut self, left: Out<'a>, zone: &Expr) -> Step<Out<'a>> {
        for word in ["AT", "TIME", "ZONE"] {
            self.keyword(word)?;
        }
        let zone = self.expression(zone)?;
        let is_date = left.ty == Some(SqlType::Date);
        // A date is a moment to it: its first, where the session is.
        let left = if is_date { moments::widened(left, SqlType::Timestamptz) } else { left };
        let zoned = left.ty == Some(SqlType::Timestamptz);
        let ty = if zoned { SqlType::Timestamp } else { SqlType::Timestamptz };
        let name = if zone.ty == Some(SqlType::Interval) { "timezone_away" } else { "timezone" };
        Ok(call(name, [zone, left]).typed(ty).labelled("timezone"))
    }

    /// `[n]` and `.field` behind an operand. What is a column's name was taken with it.
    fn parts(&mut self, whole: Out<'a>, parts: &[AccessExpr]) -> Step<Out<'a>> {
        let mut out = whole;
        for part in parts {
            match part {
                AccessExpr::Subscript(Subscript::Index { index }) => out = self.subscript(out, index)?,
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                    out = self.slice(out, lower_bound.as_ref(), upper_bound.as_ref())?;
                }
                AccessExpr::Dot(Expr::Identifier(_)) if self.next_is_sign(0, ".") => {
                    self.at += 1;
                    let field = unquoted(self.token()?.text).to_lowercase();
                    // A row is JSON here.
                    out = out.left_of(Binding::Join);
                    out = out.wrapped("(", &format!(" ->> '$.{field}')")).labelled(&field);
                }
                AccessExpr::Dot(Expr::Identifier(_)) => {}
                AccessExpr::Subscript(Subscript::Slice { .. }) | AccessExpr::Dot(_) => {
                    return Err(Stop::Unknown);
                }
            }
        }
        Ok(out)
    }

    pub(super) fn infixed(&self, sides: [Out<'a>; 2], operator: Token<'a>) -> Out<'a> {
        let binding = Binding::of(operator);
        let [left, right] = sides;
        let (mut out, mut right) = (left.left_of(binding), right.right_of(binding));
        let node = Operator::spelled(operator.text)
            .map(|known| Node::Binary(known, Box::new([out.take_node(), right.take_node()])));
        out.push(self.copied(operator));
        out.push(right);
        let out = out.labelled("?column?").bound(binding);
        match node {
            Some(node) => out.meaning(node),
            None => out,
        }
    }

    /// The same with another operator in place of the one that stands there.
    fn replaced(sides: [Out<'a>; 2], operator: &str) -> Out<'a> {
        let [left, right] = sides;
        let mut out = left.left_of(Binding::Equality);
        out.push_str(&format!(" {operator} "));
        out.push(right.right_of(Binding::Equality));
        out.labelled("?column?").bound(Binding::Equality)
    }

    /// `left [NOT] LIKE ANY (array)` or `ALL (array)`, from its first word on.
    fn like_any_or_all(&mut self, left: Out<'a>, negated: bool, array: &Expr) -> Step<Out<'a>> {
        let mut left = left;
        self.suggest(&mut left, SqlType::Text)?;
        self.take_word("NOT");
        let word = self.token()?;
        let all = self.token()?.is("ALL");
        self.likes_each(left, (word, negated), all, array)
    }

    fn likes(&mut self, left: Out<'a>, pattern: &Expr, escape: Option<&Expr>) -> Step<Out<'a>> {
        let mut out = left;
        self.suggest(&mut out, SqlType::Text)?;
        let operator = self.peek_at(usize::from(self.peek().is_some_and(|token| token.is("NOT"))));
        out = self.filled_up(out, Some(pattern), operator.ok_or(Stop::Unknown)?)?;
        out = out.left_of(Binding::Equality);
        self.pass_words(&["NOT"], &mut out);
        let word = self.token()?;
        if word.is("ILIKE") {
            out.push_str(" LIKE");
        } else {
            out.push(self.copied(word));
        }
        let mut pattern = self.expression(pattern)?;
        self.suggest(&mut pattern, SqlType::Text)?;
        let Some(kind) = Pattern::of(word) else {
            out.push(pattern.right_of(Binding::Equality));
            if let Some(escape) = escape {
                self.pass_word("ESCAPE", &mut out)?;
                out.push(self.expression(escape)?.right_of(Binding::Order));
            }
            return Ok(tested(out));
        };
        if escape.is_some() {
            self.keyword("ESCAPE")?;
        }
        let escape = escape.map(|escape| self.expression(escape)).transpose()?;
        out.push(kind.meant(pattern, escape).right_of(Binding::Equality));
        Ok(tested(out))
    }

    fn in_query(&mut self, left: Out<'a>, query: &Query) -> Step<Out<'a>> {
        if let Some(array) = unnested(query) {
            let negated = self.take_word("NOT");
            let word = self.keyword("IN")?;
            self.sign("(")?;
            // `SELECT unnest`
            self.at += 2;
            let list = self.list(std::slice::from_ref(array))?;
            self.sign(")")?;
            let operator = Token { text: "=", ..word };
            return Ok(truth(self.among_elements(left, list, negated, operator)?));
        }
        let mut out = Out::default();
        let word = self.peek().ok_or(Stop::Unknown)?;
        self.pass_words(&["NOT", "IN"], &mut out);
        let (mut rows, columns) = self.query_in_parentheses(query)?;
        let (mut left, theirs) = (left, if let [column] = &columns[..] { column.ty } else { None });
        if let (Some(ours), Some(theirs)) = (left.ty, theirs) {
            if types::are_strangers(ours, theirs) {
                return Err(self.no_operator(&left, word, &Out::default().typed(theirs)));
            }
            left = moments::widened(left, theirs);
            if types::widens(theirs, ours) {
                let wide = format!(" SELECT {}(value) FROM moments)", types::cast_name(ours));
                rows = rows.wrapped("(WITH moments(value) AS ", &wide);
            }
        }
        let by_row = self.by_index && indexes::may_miss(&left, Some(&columns));
        out.push(rows);
        let mut whole = keyed(left).left_of(Binding::Equality);
        whole.push(out);
        Ok(membership(whole, by_row))
    }

    /// `IS NULL`, `IS TRUE`, `IS DISTINCT FROM`...
    fn is(&mut self, left: Out<'a>, right: Option<&Expr>) -> Step<Out<'a>> {
        if let Some(right) = right {
            return self.is_distinct(left, right);
        }
        let mut out = left;
        let node = Node::IsNull(Box::new(out.take_node()));
        out = out.left_of(Binding::Equality);
        let first = self.token()?;
        out.push(self.copied(first));
        if first.is_any(&["ISNULL", "NOTNULL"]) {
            return Ok(tested(out).meaning(negation(node, first.is("NOTNULL"))));
        }
        let negated = first.is("NOT") || self.peek().is_some_and(|token| token.is("NOT"));
        self.pass_words(&["NOT"], &mut out);
        let null = self.peek().is_some_and(|token| token.is_any(&["UNKNOWN", "NULL"]));
        if self.take_word("UNKNOWN") {
            out.push_str(" NULL");
        } else {
            self.pass(&mut out);
        }
        let out = tested(out);
        Ok(if null { out.meaning(negation(node, negated)) } else { out })
    }

    /// Operators of PostgreSQL's widest class: patterns, JSON, concatenation.
    fn other(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let ours = left.ty;
        let mut sides = [left, right];
        if let Some(pattern) = pattern(operator.text) {
            for side in &mut sides {
                self.suggest(side, SqlType::Text)?;
            }
            let [left, right] = sides;
            sides = [self.filled_up(left, None, operator)?, right];
            if let Some(kind) = Pattern::of(operator) {
                let [left, right] = sides;
                sides = [left, kind.meant(right, None)];
            }
            return Ok(Self::replaced(sides, pattern).typed(SqlType::Bool));
        }
        let [left, right] = sides;
        Ok(match operator.text {
            "@>" => self.contains(left, operator, right)?,
            "<@" => self.contains(right, operator, left)?,
            "#>" => call("jsonb_extract_path_list", [structures::with_last_keys(left), right])
                .typed(SqlType::Jsonb)
                .labelled("?column?"),
            "#>>" if ours == Some(SqlType::Jsonb) => {
                let value = call("jsonb_extract_path_list", [left, right]);
                call("jsonb_value_text", [value]).typed(SqlType::Text).labelled("?column?")
            }
            "#>>" => call("jsonb_extract_path_list_text", [structures::with_last_keys(left), right])
                .typed(SqlType::Text)
                .labelled("?column?"),
            "#-" => self.without_path(left, operator, right)?,
            "?" | "?|" | "?&" => self.has_keys(left, operator, right)?,
            "&&" => self.overlaps(left, operator, right)?,
            "@@" => {
                let message = format!("operator {} is not supported", operator.text);
                return Err(self.error_at(Some(operator), state::NOT_SUPPORTED, message));
            }
            "->" => {
                let left = structures::with_last_keys(left);
                let ty = if ours == Some(SqlType::Jsonb) { SqlType::Jsonb } else { SqlType::Json };
                self.infixed([left, right], operator).typed(ty)
            }
            "->>" => self.json_text(structures::with_last_keys(left), operator, right),
            "||" => self.joined(left, operator, right)?,
            "<<" | ">>" => self.shifted(left, operator, right)?,
            "&" | "|" => {
                // Bits are those of integers, also where a side is written as a decimal number.
                let ty = types::arithmetic(left.ty, right.ty).filter(|ty| types::is_integer(*ty));
                self.infixed([left, right], operator).typed(ty.unwrap_or(SqlType::Int8))
            }
            _ => self.infixed([left, right], operator).typed(SqlType::Int8),
        })
    }

    /// `left << right`, `left >> right`: the left side's type says how many bits there are, and the right side is taken
    /// by their number.
    fn shifted(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let (mut left, mut right) = (left, right);
        self.suggest(&mut left, SqlType::Int8)?;
        self.suggest(&mut right, SqlType::Int4)?;
        let ty = left.ty.unwrap_or(SqlType::Int8);
        if left.ty.is_none() || right.ty.is_none() {
            // A value of no type is any value of SQLite's.
            return Ok(self.infixed([left, right], operator).typed(SqlType::Int8));
        }
        if !types::is_integer(ty) || right.ty.is_some_and(|ty| !types::is_integer(ty)) {
            return Err(self.no_operator(&left, operator, &right));
        }
        let name = if operator.text == "<<" { "shift_left" } else { "shift_right" };
        let bits = Out::made(
            match ty {
                SqlType::Int2 => "16",
                SqlType::Int4 => "32",
                _ => "64",
            },
            operator.start,
        );
        Ok(call(name, [left, right, bits]).typed(ty).labelled("?column?"))
    }

    /// `whole @> part`: of arrays where one side is one, of JSON documents otherwise.
    fn contains(&mut self, whole: Out<'a>, operator: Token<'a>, part: Out<'a>) -> Step<Out<'a>> {
        let (mut whole, mut part) = (whole, part);
        let array = [whole.ty, part.ty].into_iter().flatten().find(|ty| ty.is_array());
        let Some(array) = array else {
            for side in [&mut whole, &mut part] {
                self.suggest(side, SqlType::Jsonb)?;
            }
            return Ok(call("jsonb_contains", [whole, part]).typed(SqlType::Bool).labelled("?column?"));
        };
        self.check_arrays(&whole, operator, &part)?;
        for side in [&mut whole, &mut part] {
            self.suggest_array(side, array.scalar())?;
        }
        Ok(served_call("array_contains", self.same_spelling([whole, part])?)
            .typed(SqlType::Bool)
            .labelled("?column?"))
    }

    /// `+`, `-`, `*`, `/` and `%`, of numbers and of moments.
    fn arithmetic(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let sign = operator.text;
        let (mut left, mut right) = structures::side_by_side(left, right);
        if structures::is_structure(left.ty) || structures::is_structure(right.ty) {
            return self.structure_arithmetic(left, operator, right);
        }
        if types::is_moment(left.ty) || types::is_moment(right.ty) {
            let float = Out::default().typed(SqlType::Float8);
            let sides = [numeric::compared(left, &float), numeric::compared(right, &float)];
            if !types::has_moment_operator(sides[0].ty, sign, sides[1].ty) {
                let told = sides.map(|side| side.ty.map_or_else(String::new, SqlType::sql_name));
                let message = format!("operator does not exist: {} {sign} {}", told[0], told[1]);
                return Err(self.error_at(Some(operator), "42883", message));
            }
            return self.moments(sides, sign);
        }
        let text_beside = |text: &Out<'_>, other: &Out<'_>| {
            text.ty.is_some_and(types::is_text) && (other.ty.is_some() || Told::of(other).is_open())
        };
        let texts = !self.is_kept() && (text_beside(&left, &right) || text_beside(&right, &left));
        if texts || [&left, &right].iter().any(|side| side.ty.is_some_and(types::is_no_number)) {
            return Err(self.no_operator(&left, operator, &right));
        }
        if let Some(ty) = left.ty {
            self.number_beside(&mut right, ty)?;
        }
        if let Some(ty) = right.ty {
            self.number_beside(&mut left, ty)?;
        }
        if sign == "%" && types::is_of_floats(left.ty, right.ty) {
            return Err(self.no_operator(&left, operator, &right));
        }
        if let Some(out) = numeric::computed(&left, sign, &right) {
            return Ok(out);
        }
        let ty = types::arithmetic(left.ty, right.ty);
        if let Some(out) = numeric::bounded(&left, sign, &right) {
            return Ok(out);
        }
        let divided = numeric::divided(&left, sign, &right);
        let mut out = self.infixed([left, right], operator);
        if let Some(divided) = divided {
            out = divided.labelled("?column?").meaning(out.take_node());
        }
        let out = numeric::of_floats(out, ty);
        Ok(if sign == "%" { out } else { numeric::fitted(out) })
    }

    /// A side of an operator whose other side is of this type, or an element of an array of it: a text is a number.
    pub(super) fn number_beside(&mut self, side: &mut Out<'a>, ty: SqlType) -> Step<()> {
        if let Form::Literal(text) = &*side.form
            && ty.is_number()
        {
            let value = self.value_of(ty, text, side.start())?;
            *side = Out::made(sql_literal(&value), side.start()).typed(ty);
            return Ok(());
        }
        self.suggest(side, ty)
    }

    /// Arithmetic of moments and spans.
    fn moments(&mut self, sides: [Out<'a>; 2], sign: &str) -> Step<Out<'a>> {
        let [mut left, mut right] = sides;
        let (meant_left, meant_right) = types::moment_sides(left.ty, right.ty, sign);
        if let Some(ty) = meant_left {
            self.suggest(&mut left, ty)?;
        }
        if let Some(ty) = meant_right {
            self.suggest(&mut right, ty)?;
        }
        // A moment with a zone counts from what the other one is in the session's zone.
        if sign == "-" && [left.ty, right.ty].contains(&Some(SqlType::Timestamptz)) {
            (left, right) = (moments::of_calendar(left), moments::of_calendar(right));
        }
        let ty = types::moment_result(left.ty, right.ty, sign);
        let (time, span) = (Some(SqlType::Time), Some(SqlType::Interval));
        if left.ty == span && right.ty == time && sign == "+" {
            std::mem::swap(&mut left, &mut right);
        }
        let name = match sign {
            "+" if left.ty == time && right.ty == span => "time_plus",
            "-" if left.ty == time && right.ty == span => "time_minus",
            "+" => "moment_plus",
            "-" => "moment_minus",
            "*" => "interval_times",
            _ => "interval_divided",
        };
        Ok(call(name, [left, right]).of_type(ty).labelled("?column?"))
    }
}

/// The array of a query that is no more than `SELECT unnest(array)`.
fn unnested(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && select.distinct.is_none()
        && select.from.is_empty()
        && select.selection.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(terms, _) if terms.is_empty());
    let [SelectItem::UnnamedExpr(Expr::Function(function))] = &select.projection[..] else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] = &list.args[..] else { return None };
    let [name] = &function.name.0[..] else { return None };
    let unnest = name.as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case("unnest"));
    (bare && unnest && function.over.is_none() && function.filter.is_none()).then_some(array)
}

/// The array of `ALL (array)`, which the tree has as a function.
fn array_of_all(pattern: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = pattern else { return None };
    let [name] = &function.name.0[..] else { return None };
    let is_all = name
        .as_ident()
        .is_some_and(|name| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all"));
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] = &list.args[..] else { return None };
    is_all.then_some(array)
}

/// What `NOT` before its word makes of a condition.
pub(super) fn negation(node: Node, negated: bool) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}

/// `left IN (list)`
pub(super) fn one_of(left: Node, list: Node) -> Node {
    match list {
        Node::List(list) => Node::In(Box::new(left), list),
        _ => Node::Other,
    }
}

/// `left IN right`; `by_row`: the planner is not to look into it.
fn membership(out: Out<'_>, by_row: bool) -> Out<'_> {
    if by_row { truth(out.wrapped("+(", ")")) } else { tested(out) }
}

/// Something that holds or does not.
fn truth(out: Out<'_>) -> Out<'_> {
    out.typed(SqlType::Bool).labelled("?column?")
}

/// The same, where SQLite's operator of a test is the outermost.
pub(super) fn tested(out: Out<'_>) -> Out<'_> {
    truth(out).bound(Binding::Equality)
}

/// How a pattern of `LIKE` and its like is meant.
#[derive(Clone, Copy)]
pub(super) enum Pattern {
    Like,
    Ilike,
    /// SQLite's.
    Sqlite,
}

impl Pattern {
    /// Behind a word or sign; `None`: that is another operator.
    pub(super) fn of(operator: Token<'_>) -> Option<Self> {
        if operator.is("ILIKE") || matches!(operator.text, "~~*" | "!~~*") {
            Some(Self::Ilike)
        } else if operator.is("LIKE") || matches!(operator.text, "~~" | "!~~") {
            Some(if like::style() == LikeStyle::Sqlite { Self::Sqlite } else { Self::Like })
        } else {
            None
        }
    }

    /// The pattern as SQLite is given it.
    pub(super) fn meant<'a>(self, pattern: Out<'a>, escape: Option<Out<'a>>) -> Out<'a> {
        let name = match self {
            Self::Like if escape.is_none() => return pattern,
            Self::Like => like::LIKE_PATTERN,
            Self::Ilike => like::ILIKE_PATTERN,
            Self::Sqlite => like::SQLITE_PATTERN,
        };
        match escape {
            Some(escape) => call(name, [pattern, escape]),
            None => call(name, [pattern]),
        }
    }
}

/// What SQLite calls an operator that matches patterns.
pub(super) fn pattern(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "~" => "REGEXP",
        "~*" => "MATCH",
        "!~" => "NOT REGEXP",
        "!~*" => "NOT MATCH",
        "~~" | "~~*" => "LIKE",
        "!~~" | "!~~*" => "NOT LIKE",
        word if word.eq_ignore_ascii_case("ILIKE") => "LIKE",
        _ => return None,
    })
}
