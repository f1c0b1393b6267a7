//! Comparisons: which type the two sides have, and how SQLite is to see values of it.
//!
//! SQLite converts a text to a number only beside the column of a table. Beside anything that is computed it would
//! compare the text itself, which equals no number and is greater than all. So a text or a parameter of no type is made
//! a value of the other side's type here, as PostgreSQL does it.

use sqltext::ast::Expr;
use sqltext::token::{Token, sql_literal};
use store::definition::SqlType;

use super::binding::Binding;
use super::equals::{collated_as, has_spellings};
use super::expression::{negation, one_of, tested};
use super::out::{Form, Out, call};
use super::scope::Source;
use super::{Step, Stop, Translator, arrays, numeric, structures, types};
use crate::lowered::Node;

/// What a side of a comparison says of the other.
#[derive(Clone, Copy)]
struct Beside {
    ty: SqlType,
    /// SQLite has to be given the other as a value of this type: it does not convert it by itself.
    converts: bool,
}

impl<'a> Translator<'a, '_> {
    /// `left operator right`
    pub(super) fn compared(&mut self, left: Out<'a>, operator: Token<'a>, right: Out<'a>) -> Step<Out<'a>> {
        let [left, right] = self.agreed(left, operator, right)?;
        if is_order(operator) && [&left, &right].iter().all(|side| side.ty == Some(SqlType::Jsonb)) {
            let sign = call("jsonb_compare", [left, right]);
            let zero = Out::made("0", operator.start);
            return Ok(self.infixed([sign, zero], operator).typed(SqlType::Bool));
        }
        let sides = structures::compared(left, right);
        Ok(self.infixed(sides.into(), operator).typed(SqlType::Bool))
    }

    /// Two sides that are compared: each learns from the other.
    pub(super) fn agreed(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        right: Out<'a>,
    ) -> Step<[Out<'a>; 2]> {
        self.refuse_strangers(&left, operator, &right)?;
        let [left, right] = self.same_spelling([query_alone(left), query_alone(right)])?;
        let (mut left, mut right) = structures::side_by_side(left, right);
        // Two values in parentheses are values, not rows.
        if let (Form::List(ours), Form::List(theirs)) = (&*left.form, &*right.form)
            && ours.len().max(theirs.len()) > 1
        {
            let parts = ours.clone().into_iter().zip(theirs.clone());
            return if ours.len() == theirs.len() {
                self.agreed_rows(parts, &left, operator, &right)
            } else {
                Ok([left, right])
            };
        }
        left = numeric::beside_anything(self.beside_number(left, &right)?, &right);
        right = numeric::beside_anything(self.beside_number(right, &left)?, &left);
        let ours = self.told_by(&left).filter(|_| !self.keeps_texts(&left, &right));
        let theirs = self.told_by(&right).filter(|_| !self.keeps_texts(&right, &left));
        self.take_told(&mut right, ours)?;
        self.take_told(&mut left, theirs)?;
        (left, right) = numeric::with_parameter(left, right);
        if [&left, &right].iter().all(|side| side.ty == Some(SqlType::Interval)) {
            let order = |side| call("interval_order", [side]).typed(SqlType::Int8);
            return Ok([order(left), order(right)]);
        }
        if let (Some(ours), Some(theirs)) = (left.ty, right.ty) {
            if types::widens(ours, theirs) {
                left = call(&types::cast_name(theirs), [left]).typed(theirs);
            } else if types::widens(theirs, ours) {
                right = call(&types::cast_name(ours), [right]).typed(ours);
            }
        }
        let ty = left.ty.or(right.ty).filter(|ty| ty.is_array());
        if is_order(operator) {
            return Ok(self.in_order(left, right));
        }
        Ok(if has_spellings(ty) { [collated_as(left, ty), right] } else { [left, right] })
    }

    /// The same of two rows, part by part.
    fn agreed_rows(
        &mut self,
        parts: impl Iterator<Item = (Out<'a>, Out<'a>)>,
        left: &Out<'a>,
        operator: Token<'a>,
        right: &Out<'a>,
    ) -> Step<[Out<'a>; 2]> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (one, other) in parts {
            let [one, other] = self.agreed(one, operator, other)?;
            let (one, other) = structures::compared(one, other);
            ours.push(one);
            theirs.push(other);
        }
        Ok([row_of(ours, left.start()), row_of(theirs, right.start())])
    }

    /// What a side says of the one that it is compared with.
    fn told_by(&self, side: &Out<'a>) -> Option<Beside> {
        let ty = side.ty?;
        // A decimal number has a collation, by which SQLite compares the texts of others with it.
        let converts = ty.is_number() && !numeric::is_exact(side) && !self.is_stored_column(side);
        Some(Beside { ty, converts })
    }

    /// What has no type becomes a value of the type of what it is compared with.
    fn take_told(&mut self, side: &mut Out<'a>, told: Option<Beside>) -> Step<()> {
        let Some(Beside { ty, converts }) = told else { return Ok(()) };
        self.note_comparison(side);
        if converts {
            self.value_as(side, ty)?;
        }
        self.suggest(side, ty)
    }

    /// The parameters of a side, or of a list, are to be values of its type.
    fn note_comparison(&mut self, side: &Out<'a>) {
        match &*side.form {
            Form::Parameter(number) => self.parameters.note_comparison(*number),
            Form::List(parts) => parts.iter().for_each(|part| self.note_comparison(part)),
            _ => {}
        }
    }

    /// A literal or a parameter of no type as a number of this type.
    pub(super) fn value_as(&mut self, side: &mut Out<'a>, ty: SqlType) -> Step<()> {
        let label = side.label.clone();
        match &*side.form {
            Form::Literal(text) if side.ty.is_none() => {
                let value = self.value_of(ty, text, side.start())?;
                let literal = Out::made(sql_literal(&value), side.start());
                *side = if ty == SqlType::Numeric { nearest(literal) } else { literal.typed(ty) };
            }
            Form::Parameter(number) if !self.parameters.is_chosen(*number) => {
                let number = *number;
                self.parameters.suggest(number, ty);
                if self.parameters.ty(number).is_some_and(SqlType::is_number) {
                    *side = converted(std::mem::take(side), ty);
                }
            }
            Form::List(parts) if parts.len() == 1 && side.ty.is_none() => {
                let mut part = parts[0].clone();
                self.value_as(&mut part, ty)?;
                *side = part;
            }
            _ => return Ok(()),
        }
        side.label = label;
        Ok(())
    }

    /// Whether it is a column of a table, beside which SQLite converts what it is compared with.
    pub(super) fn is_stored_column(&self, out: &Out<'_>) -> bool {
        if matches!(*out.form, Form::Collated) {
            return true;
        }
        let Some(Node::Column { table, name }) = out.node() else { return false };
        for relations in self.scopes.around() {
            let named = relations.iter().filter(|relation| {
                table.as_ref().is_none_or(|table| relation.name.eq_ignore_ascii_case(table))
            });
            for relation in named {
                if self.type_in(relation, name).is_some() {
                    return matches!(&relation.source, Source::Named(own) if self.names.table(own).is_some());
                }
            }
        }
        self.scopes.around().next().is_none()
    }

    /// PostgreSQL compares no values of types that have nothing in common, and no text that has a type with a number or
    /// an interval. A column of texts is compared here with a number that is written beside it, or is a column's, as
    /// SQLite does it: the number is taken as a text.
    fn refuse_strangers(&self, left: &Out<'a>, operator: Token<'a>, right: &Out<'a>) -> Step<()> {
        let pairs = [(left, right), (right, left)];
        let known = |side: &Out<'a>| side.ty.filter(|_| !arrays::is_open(side));
        let types = known(left).zip(known(right));
        let blobs = pairs.iter().any(|(side, _)| self.is_blob(side));
        let strange = types.is_some_and(|(ours, theirs)| types::are_strangers(ours, theirs));
        let strange =
            strange && !(blobs && pairs.iter().any(|(side, _)| side.ty.is_some_and(types::is_text)));
        let refused = pairs.iter().any(|(text, number)| {
            text.ty.is_some_and(types::is_text)
                && number.ty.is_some_and(|ty| ty.is_number() || ty == SqlType::Interval)
                && if self.is_stored_column(text) { self.is_computed(number) } else { self.is_computed(text) }
        });
        if strange || refused { Err(self.no_operator(left, operator, right)) } else { Ok(()) }
    }

    /// Whether it is bytes to SQLite, whose texts are never equal to bytes: a column that was declared so, or `x'ff'`.
    fn is_blob(&self, out: &Out<'a>) -> bool {
        let declared = || self.declared_as(out).is_some_and(|declared| declared.eq_ignore_ascii_case("BLOB"));
        out.ty == Some(SqlType::Bytea) && (matches!(*out.form, Form::Blob) || declared())
    }

    /// Whether a text beside a side stays one.
    fn keeps_texts(&self, side: &Out<'a>, text: &Out<'a>) -> bool {
        let bytes = matches!(&*text.form, Form::Literal(text) if text.starts_with("\\x"));
        !bytes && self.is_blob(side)
    }

    /// Whether an operator or a function gives it: it is no column, and stands nowhere as it is.
    fn is_computed(&self, side: &Out<'a>) -> bool {
        let column = matches!(side.node(), Some(Node::Column { .. })) || self.is_stored_column(side);
        let written = side.is_literal() || side.text().trim().parse::<f64>().is_ok();
        let query = matches!(*side.form, Form::Query { .. });
        !column && !written && !query && side.parameter().is_none()
    }

    /// The left side with each of several others: all of them, and the left side for all, or for each its own where
    /// they see it as values of several types.
    fn agreed_with_each(
        &mut self,
        left: &Out<'a>,
        operator: Token<'a>,
        others: Vec<Out<'a>>,
    ) -> Step<Vec<[Out<'a>; 2]>> {
        let mut pairs = Vec::with_capacity(others.len());
        for other in others {
            let [ours, theirs] = self.agreed(left.clone(), operator, other)?;
            pairs.push(structures::compared(ours, theirs).into());
        }
        Ok(pairs)
    }

    pub(super) fn between(&mut self, left: Out<'a>, low: &Expr, high: &Expr) -> Step<Out<'a>> {
        let negated = self.take_word("NOT");
        let word = self.keyword("BETWEEN")?;
        let low = self.expression(low)?;
        self.keyword("AND")?;
        let high = self.expression(high)?;
        let [[mut out, mut low], [other, mut high]] = self.each_bound(left, word, [low, high])?;
        let json = out.ty == Some(SqlType::Jsonb) && low.ty == out.ty;
        if json || out.text() != other.text() {
            let lower = ordered([out, low], ">=", word.start);
            let upper = ordered([other, high], "<=", word.start);
            let not = if negated { "NOT (" } else { "(" };
            return Ok(tested(Out::joined([lower, upper], " AND ").wrapped(not, ")")));
        }
        let node = Node::Between(Box::new([out.take_node(), low.take_node(), high.take_node()]));
        out = out.left_of(Binding::Equality);
        out.push(Out::made(if negated { "NOT BETWEEN" } else { "BETWEEN" }, word.start));
        out.push(low.right_of(Binding::Equality));
        out.push_str(" AND");
        out.push(high.right_of(Binding::Equality));
        Ok(tested(out).meaning(negation(node, negated)))
    }

    /// A value with each of its bounds.
    fn each_bound(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        bounds: [Out<'a>; 2],
    ) -> Step<[[Out<'a>; 2]; 2]> {
        let [low, high] = bounds;
        let mut left = left;
        // A parameter has the type that the first of them has.
        for bound in [&low, &high] {
            self.take_open_type_of(&mut left, bound)?;
        }
        let first = self.agreed(left.clone(), operator, low)?;
        Ok([first, self.agreed(left, operator, high)?])
    }

    fn take_open_type_of(&mut self, side: &mut Out<'a>, other: &Out<'a>) -> Step<()> {
        if side.parameter().is_some() && side.ty.is_none() {
            self.take_told(side, self.told_by(other))
        } else {
            Ok(())
        }
    }

    /// `left [NOT] IN (...)`
    pub(super) fn in_list(&mut self, left: Out<'a>, list: &[Expr]) -> Step<Out<'a>> {
        let negated = self.take_word("NOT");
        let word = self.keyword("IN")?;
        let list = self.list(list)?;
        let mut stored = self.compares_as_stored(&left) && left.ty != Some(SqlType::Bytea);
        let Form::List(parts) = &*list.form else {
            return self.in_plain_list(left, list, negated, word.start);
        };
        // Of two kinds of moments one becomes the other first.
        stored &= !parts.iter().any(|part| types::one_widens(left.ty, part.ty));
        if stored {
            for part in parts {
                self.refuse_strangers(&left, word, part)?;
            }
            return self.in_plain_list(left, list, negated, word.start);
        }
        let parts = parts.clone();
        self.among(left, word, parts, negated)
    }

    /// Whether SQLite compares it as its type does: it is a column, or a row of them.
    fn compares_as_stored(&self, out: &Out<'a>) -> bool {
        match &*out.form {
            Form::List(parts) => parts.iter().all(|part| self.compares_as_stored(part)),
            _ => self.is_stored_column(out) && !has_spellings(out.ty),
        }
    }

    /// A column, or a row, in a list.
    fn in_plain_list(&mut self, left: Out<'a>, list: Out<'a>, negated: bool, from: usize) -> Step<Out<'a>> {
        let (mut left, mut list) = (left, list);
        self.note_comparison(&left);
        self.note_comparison(&list);
        if let Form::List(parts) = &*list.form {
            let learned = parts.iter().find_map(|part| part.ty);
            if let Some(ty) = learned {
                self.suggest(&mut left, ty)?;
            }
        }
        match (left.ty, &*left.form) {
            (Some(ty), _) => self.suggest_all(&mut list, ty)?,
            (None, Form::List(parts)) => {
                let types: Vec<Option<SqlType>> = parts.iter().map(|part| part.ty).collect();
                self.suggest_rows(&mut list, &types)?;
            }
            _ => {}
        }
        if let Form::List(parts) = &*list.form
            && let Some(exact) = parts.iter().find(|part| numeric::is_exact(part)).cloned()
        {
            left = self.beside_number(left, &exact)?;
        }
        self.decimal_list(&mut list, &left)?;
        whole_numbers(&mut list, &left);
        Ok(listed(left, list, negated, from))
    }

    /// Whether a value is one of several.
    pub(super) fn among(
        &mut self,
        left: Out<'a>,
        operator: Token<'a>,
        parts: Vec<Out<'a>>,
        negated: bool,
    ) -> Step<Out<'a>> {
        let (mut left, from) = (left, operator.start);
        for part in &parts {
            self.take_open_type_of(&mut left, part)?;
        }
        let pairs = self.agreed_with_each(&left, operator, parts)?;
        let same = |pair: &[Out<'a>; 2]| pair[0].text() == pairs[0][0].text();
        if !pairs.is_empty() && !pairs.iter().all(same) {
            let equal = |[ours, theirs]: [Out<'a>; 2]| ordered([ours, theirs], "=", from);
            let not = if negated { "NOT (" } else { "(" };
            let any = Out::joined(pairs.into_iter().map(equal), " OR ");
            return Ok(tested(any.wrapped(not, ")")));
        }
        let mut ours = None;
        let mut theirs = Vec::with_capacity(pairs.len());
        for [one, other] in pairs {
            ours.get_or_insert(one);
            theirs.push(other);
        }
        Ok(listed(ours.unwrap_or(left), row_of(theirs, from), negated, from))
    }

    /// The operand of a `CASE` with what it is compared with: one for all, or a condition for each.
    pub(super) fn cases(
        &mut self,
        operand: &Out<'a>,
        word: Token<'a>,
        whens: Vec<Out<'a>>,
    ) -> Step<(Option<Out<'a>>, Vec<Out<'a>>)> {
        let from = operand.start();
        let pairs = self.agreed_with_each(operand, word, whens)?;
        let same = |pair: &[Out<'a>; 2]| pair[0].text() == pairs[0][0].text();
        if pairs.iter().all(same) {
            let first = pairs.first().map(|[ours, _]| ours.clone());
            return Ok((first, pairs.into_iter().map(|[_, theirs]| theirs).collect()));
        }
        Ok((None, pairs.into_iter().map(|pair| ordered(pair, "=", from)).collect()))
    }

    /// `left IS [NOT] [DISTINCT FROM] right`
    pub(super) fn is_distinct(&mut self, left: Out<'a>, right: &Expr) -> Step<Out<'a>> {
        let word = self.peek().ok_or(Stop::Unknown)?;
        let mut words = Out::default();
        self.pass_words(&["IS", "NOT", "DISTINCT", "FROM"], &mut words);
        let right = self.expression(right)?;
        let [left, right] = self.agreed(left, word, right)?;
        let (left, right) = structures::compared(left, right);
        let mut out = left.left_of(Binding::Equality);
        out.push(words);
        out.push(right.right_of(Binding::Equality));
        Ok(tested(out))
    }

    /// The parts of a list that something is compared with: decimal numbers where that is one.
    fn decimal_list(&mut self, list: &mut Out<'a>, left: &Out<'a>) -> Step<()> {
        let Form::List(parts) = &*list.form else { return Ok(()) };
        if !numeric::is_exact(left) || parts.iter().all(|part| part.parameter().is_some()) {
            return Ok(());
        }
        let mut parts = parts.clone();
        for part in &mut parts {
            *part = self.beside_number(std::mem::take(part), left)?;
        }
        let mut out = Out::made("(", list.start());
        out.push(Out::joined(parts.iter().cloned(), ","));
        out.push_str(")");
        *list = out.of_type(list.ty).formed(Form::List(parts));
        Ok(())
    }

    /// A side of a comparison: a text beside a decimal number is to be one, and what is of another type becomes one.
    fn beside_number(&mut self, side: Out<'a>, other: &Out<'a>) -> Step<Out<'a>> {
        if matches!(*side.form, Form::Query { .. }) && numeric::is_exact(&side) {
            // SQLite forgets how the column of a query in parentheses compares.
            return Ok(numeric::settled(side));
        }
        match &*side.form {
            Form::Literal(text) if side.ty.is_none() && numeric::is_exact(other) => {
                let (value, label) =
                    (self.value_of(SqlType::Numeric, text, side.start())?, side.label.clone());
                let mut number = Out::made(sql_literal(&value), side.start()).typed(SqlType::Numeric);
                number.label = label;
                Ok(number)
            }
            _ => Ok(numeric::compared(side, other)),
        }
    }
}

/// Whether an operator asks which side is less.
fn is_order(operator: Token<'_>) -> bool {
    matches!(operator.text, "<" | "<=" | ">" | ">=") || operator.is("BETWEEN")
}

/// The parts of a list beside an integer: those that are whole numbers are integers, however they are written.
fn whole_numbers<'a>(list: &mut Out<'a>, left: &Out<'a>) {
    let Form::List(parts) = &*list.form else { return };
    if !left.ty.is_some_and(types::is_integer) || !parts.iter().any(numeric::is_literal) {
        return;
    }
    let parts = parts.iter().map(|part| numeric::compared(part.clone(), left)).collect();
    *list = row_of(parts, list.start()).of_type(list.ty);
}

/// A query without more parentheses around it than its own.
fn query_alone(out: Out<'_>) -> Out<'_> {
    match &*out.form {
        Form::List(parts) if parts.len() == 1 && is_query(&parts[0]) => query_alone(parts[0].clone()),
        _ => out,
    }
}

fn is_query(out: &Out<'_>) -> bool {
    match &*out.form {
        Form::List(parts) => parts.len() == 1 && is_query(&parts[0]),
        form => matches!(form, Form::Query { .. }),
    }
}

/// A text or number as a number of this type.
fn converted(out: Out<'_>, ty: SqlType) -> Out<'_> {
    if ty == SqlType::Numeric { nearest(out) } else { call(&types::cast_name(ty), [out]).typed(ty) }
}

/// A decimal number as the one of SQLite's that is nearest.
fn nearest(out: Out<'_>) -> Out<'_> {
    call("numeric_number", [out]).typed(SqlType::Numeric).formed(Form::Float)
}

/// `(a, b)`
fn row_of(parts: Vec<Out<'_>>, from: usize) -> Out<'_> {
    let mut out = Out::made("(", from);
    out.push(Out::joined(parts.iter().cloned(), ","));
    out.push_str(")");
    out.formed(Form::List(parts))
}

/// `left [NOT] IN list`
fn listed<'a>(left: Out<'a>, list: Out<'a>, negated: bool, from: usize) -> Out<'a> {
    let (mut left, mut list) = (left, list);
    let node = one_of(left.take_node(), list.take_node());
    let mut out = left.left_of(Binding::Equality);
    out.push(Out::made(if negated { "NOT IN" } else { "IN" }, from));
    out.push(list);
    tested(out).meaning(negation(node, negated))
}

/// A comparison that stands nowhere in the text.
fn ordered<'a>(sides: [Out<'a>; 2], operator: &str, from: usize) -> Out<'a> {
    let [left, right] = sides;
    let json = operator != "=" && [&left, &right].iter().all(|side| side.ty == Some(SqlType::Jsonb));
    let (left, right) =
        if json { (call("jsonb_compare", [left, right]), Out::made("0", from)) } else { (left, right) };
    let mut out = left.left_of(Binding::Order);
    out.push_str(&format!(" {operator}"));
    out.push(right.right_of(Binding::Equality));
    out
}
