//! Operands: literals, names, parameters, parentheses, and what may stand behind them.

use sqltext::ast::{CaseWhen, Expr, Query, UnaryOperator};
use sqltext::token::sql_literal;
use sqltext::token::{self, Kind, Token};
use store::definition::SqlType;
use store::scalar;
use store::value::Value;

use super::binding::Binding;
use super::out::{Form, Out, call, signed_node};
use super::types::Told;
use super::{Item, Step, Stop, Translator, cast, moments, numeric, structures, types};
use crate::lowered::Node;
use sqltext::error::{SqlError, state};
use sqltext::limits::PARAMETERS_MAX;
use sqltext::token::unquoted;

/// Words that are functions without parentheses, and what they are.
const NILADIC: &[(&str, &str, SqlType)] = &[
    ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", SqlType::Timestamptz),
    ("CURRENT_DATE", "CURRENT_DATE", SqlType::Date),
    ("CURRENT_TIME", "CURRENT_TIME", SqlType::Timetz),
    ("LOCALTIMESTAMP", "localtimestamp()", SqlType::Timestamp),
    ("LOCALTIME", "localtime()", SqlType::Time),
    ("CURRENT_USER", "current_user()", SqlType::Name),
    ("SESSION_USER", "session_user()", SqlType::Name),
    ("CURRENT_ROLE", "current_role()", SqlType::Name),
    ("USER", "current_user()", SqlType::Name),
    ("CURRENT_CATALOG", "current_catalog()", SqlType::Name),
    ("CURRENT_SCHEMA", "current_schema()", SqlType::Name),
];

/// What is known of the results of a `CASE`.
#[derive(Default)]
struct Results {
    ty: Option<SqlType>,
    parameters: Vec<usize>,
    told: Vec<Told>,
}

/// Whether these digits, with their point, are those of a zero.
fn is_zero(digits: &str) -> bool {
    digits.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

/// A literal with all its digits and no exponent; as it is where it has more of them than a decimal number.
fn digits_of(literal: &str) -> String {
    let number = scalar::numeric::of_value(&Value::from(literal));
    number.map_or_else(|_| literal.to_owned(), |number| number.text())
}

impl<'a> Translator<'a, '_> {
    /// One operand with what stands before it.
    pub(super) fn operand(&mut self, expr: &Expr) -> Step<Out<'a>> {
        match expr {
            Expr::Value(_) => self.value(),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => match self.constant(false)? {
                Some(out) => Ok(out),
                None => self.name(),
            },
            Expr::Wildcard(_) => {
                let star = self.sign("*")?;
                Ok(self.copied(star))
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.not(expr),
            // A literal with its sign is one parameter in the place of it.
            Expr::UnaryOp { .. } if self.peek().is_some_and(|token| token.kind == Kind::Parameter) => {
                self.value()
            }
            Expr::UnaryOp { expr, .. } => self.signed(expr),
            Expr::Nested(inner) => self.list(std::slice::from_ref(inner)),
            Expr::Tuple(parts) => self.list(parts),
            Expr::Subquery(query) => self.value_of_query(query),
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Array(array) => self.array(&array.elem),
            Expr::Interval(_) | Expr::TypedString(_) => self.typed_literal(),
            Expr::Cast { expr, .. } => self.cast_call(expr),
            Expr::Function(function) => self.function(function),
            _ => self.worded_call(expr),
        }
    }

    /// A literal or parameter.
    fn value(&mut self) -> Step<Out<'a>> {
        let Some(token) = self.peek() else { return Err(Stop::Unknown) };
        match token.kind {
            Kind::Text | Kind::Foreign => self.literal(token),
            Kind::Blob => {
                let bytes = self.taken(token).typed(SqlType::Bytea).labelled("?column?");
                Ok(bytes.formed(Form::Blob))
            }
            Kind::Number => Ok(self.number(token)),
            Kind::Parameter => self.parameter(token),
            _ => self.constant(false)?.ok_or(Stop::Unknown),
        }
    }

    pub(super) fn taken(&mut self, token: Token<'a>) -> Out<'a> {
        self.at += 1;
        self.copied(token)
    }

    /// A text, in SQLite's spelling.
    fn literal(&mut self, token: Token<'a>) -> Step<Out<'a>> {
        self.at += 1;
        let Some(text) = token::text_of(&token) else {
            if token.kind == Kind::Text {
                return Ok(self.copied(token));
            }
            return Err(self.error_at(Some(token), "22025", "the text has an escape without a character"));
        };
        let out = if token.kind == Kind::Text {
            self.copied(token)
        } else {
            Out::made(sql_literal(&Value::Text(text.clone())), token.start)
        };
        Ok(out.formed(Form::Literal(text)).labelled("?column?"))
    }

    fn number(&mut self, token: Token<'a>) -> Out<'a> {
        let ty = match token.text.parse::<i64>() {
            Ok(small) if i32::try_from(small).is_ok() => SqlType::Int4,
            Ok(_) => SqlType::Int8,
            Err(_) if token.text.starts_with("0x") || token.text.starts_with("0X") => SqlType::Int8,
            Err(_) => SqlType::Numeric,
        };
        let out = self.taken(token).typed(ty).labelled("?column?");
        if ty == SqlType::Numeric { out.formed(Form::Number(digits_of(token.text))) } else { out }
    }

    /// Each parameter has its number: the pieces of a statement that writes are compiled apart.
    pub(super) fn parameter(&mut self, token: Token<'a>) -> Step<Out<'a>> {
        let Some(number) = self.parameters.number(&token) else {
            if self.writes {
                return Err(self.unknown_parameter(token));
            }
            return Ok(self.taken(token).labelled("?column?"));
        };
        let out = self.numbered(number);
        let ty = self.parameters.ty(number);
        let out = out.labelled("?column?").of_type(ty).formed(Form::Parameter(number));
        if !self.laterals.is_empty() {
            return Ok(self.taken_from_outside(out, 0));
        }
        Ok(out.meaning(Node::Parameter(number)))
    }

    fn unknown_parameter(&self, token: Token<'a>) -> Stop {
        if token.text.get(1..).and_then(|digits| digits.parse::<usize>().ok()) == Some(0) {
            return self.error_at(Some(token), state::SYNTAX, "parameters are numbered from 1");
        }
        self.error_at(Some(token), state::TOO_COMPLEX, format!("more parameters than {PARAMETERS_MAX}"))
    }

    /// `-a`, `+a`, `~a`
    fn signed(&mut self, inner: &Expr) -> Step<Out<'a>> {
        let token = self.token()?;
        if !matches!(token.text, "-" | "+" | "~") {
            return Err(Stop::Unknown);
        }
        let sign = self.copied(token);
        let digits = self.peek().filter(|next| next.kind == Kind::Number);
        let mut inner = self.expression(inner)?;
        // A decimal zero has no sign; SQLite's would.
        if token.text == "-" && matches!(&*inner.form, Form::Number(digits) if is_zero(digits)) {
            return Ok(inner);
        }
        let node = match inner.take_node() {
            Node::Value(Value::Integer(_) | Value::Real(_)) => {
                digits.and_then(|digits| signed_node(token.text, digits.text))
            }
            node => (token.text == "-").then(|| Node::Negative(Box::new(node))),
        };
        if inner.ty.is_some_and(types::is_text) && !self.is_kept() {
            let message = format!("operator does not exist: {} text", token.text);
            let error = SqlError::new("42883", message).at(self.sql, token.start);
            return Err(Stop::Error(
                error.with_hint("cast the text to the number that is meant, as in value::int"),
            ));
        }
        // A truth is a number to SQLite's signs.
        let ty = inner.ty.map(|ty| if ty == SqlType::Bool { SqlType::Int4 } else { ty });
        if ty == Some(SqlType::Interval) && token.text == "-" {
            let back = Out::made("-1", token.start);
            return Ok(call("interval_times", [inner, back]).of_type(ty).labelled("?column?"));
        }
        let mut out = sign;
        // The grammar puts a collation to the operand next to it, SQLite to the signed one; that is all the same.
        inner = inner.left_of(Binding::Collate);
        out.push(inner.clone());
        out = out.of_type(ty).meaning(node.unwrap_or(Node::Other)).bound(Binding::Sign);
        Ok(numeric::signed(token.text, &inner, out).labelled("?column?"))
    }

    /// `(a, b)`
    pub(super) fn list(&mut self, list: &[Expr]) -> Step<Out<'a>> {
        let mut out = Out::default();
        self.pass_sign("(", &mut out)?;
        let mut parts = Vec::with_capacity(list.len());
        for (at, part) in list.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut out)?;
            }
            let mut part = self.expression(part)?;
            out.push(part.without_node());
            parts.push(part);
        }
        self.pass_sign(")", &mut out)?;
        if let [only] = &parts[..] {
            out = out.of_type(only.ty);
            out.label.clone_from(&only.label);
            out.named_by_cast = only.named_by_cast;
        }
        Ok(out.formed(Form::List(parts)))
    }

    /// A query in parentheses that stands for what it gives.
    pub(super) fn subquery(&mut self, query: &Query) -> Step<Out<'a>> {
        Ok(self.subquery_with_items(query)?.0)
    }

    /// The same with its columns.
    pub(super) fn subquery_with_items(&mut self, query: &Query) -> Step<(Out<'a>, Vec<Item>)> {
        let (out, items) = self.query_in_parentheses(query)?;
        let first = items.first().cloned().unwrap_or_default();
        let ty = self.type_of(&first);
        let floats = ty == Some(SqlType::Numeric) && !first.is_decimal();
        let mut out = out.of_type(ty).formed(Form::Query { floats });
        out.label = first.label;
        Ok((out, items))
    }

    /// A query in parentheses, and its columns.
    pub(super) fn query_in_parentheses(&mut self, query: &Query) -> Step<(Out<'a>, Vec<Item>)> {
        let mut out = Out::default();
        self.pass_sign("(", &mut out)?;
        let (inner, items) = self.inner_query(query, None)?;
        out.push(inner);
        self.pass_sign(")", &mut out)?;
        Ok((out, items))
    }

    /// The type of a query's column, where it is known.
    pub(super) fn type_of(&self, item: &Item) -> Option<SqlType> {
        item.ty.or_else(|| item.parameter.and_then(|number| self.parameters.ty(number)))
    }

    fn not(&mut self, inner: &Expr) -> Step<Out<'a>> {
        let mut out = Out::default();
        let word = self.peek();
        self.pass_word("NOT", &mut out)?;
        let mut inner = structures::as_value(self.expression(inner)?);
        self.suggest(&mut inner, SqlType::Bool)?;
        if let Some(word) = word {
            self.check_truth(&inner, word)?;
        }
        let node = Node::Not(Box::new(inner.take_node()));
        out.push(inner.left_of(Binding::Not));
        Ok(out.typed(SqlType::Bool).labelled("?column?").meaning(node).bound(Binding::Not))
    }

    /// `[NOT] EXISTS (SELECT ...)`
    fn exists(&mut self, query: &Query, negated: bool) -> Step<Out<'a>> {
        let mut out = Out::default();
        if negated {
            self.pass_word("NOT", &mut out)?;
        }
        self.pass_word("EXISTS", &mut out)?;
        out.push(self.query_in_parentheses(query)?.0);
        Ok(out.typed(SqlType::Bool).labelled(if negated { "?column?" } else { "exists" }))
    }

    /// Words that are values. `called`: a parenthesis follows.
    pub(super) fn constant(&mut self, called: bool) -> Step<Option<Out<'a>>> {
        let Some(token) = self.peek().filter(|token| token.kind == Kind::Word) else { return Ok(None) };
        if self.next_is_sign(1, ".") {
            return Ok(None);
        }
        if token.is_any(&["TRUE", "FALSE"]) {
            return Ok(Some(self.taken(token).typed(SqlType::Bool).named("bool", true)));
        }
        if token.is("NULL") {
            return Ok(Some(self.taken(token).formed(Form::Null).labelled("?column?")));
        }
        if token.is("DEFAULT") {
            return Ok(Some(self.taken(token).labelled(super::clauses::DEFAULT)));
        }
        let Some((word, text, ty)) = NILADIC.iter().find(|(word, _, _)| token.is(word)) else {
            return Ok(None);
        };
        if self.names.is_column(token.text) {
            return Ok(None);
        }
        self.at += 1;
        let mut digits = None;
        if called {
            // `current_timestamp(3)`; `current_schema()` is the function itself.
            self.sign("(")?;
            digits = self.peek().filter(|token| token.kind == Kind::Number).map(|token| token.text);
            self.at += usize::from(digits.is_some());
            self.sign(")")?;
        }
        let out = Out::made(text, token.start);
        let out = match digits {
            Some(digits) if *ty != SqlType::Name => out.wrapped("moment_round(", &format!(", {digits})")),
            _ => out,
        };
        Ok(Some(out.typed(*ty).labelled(&word.to_lowercase())))
    }

    /// `interval '1 day'`, `timestamp with time zone '...'`: a type before a literal.
    fn typed_literal(&mut self) -> Step<Out<'a>> {
        let ty = self.type_name()?;
        let literal = self.token()?;
        if !matches!(literal.kind, Kind::Text | Kind::Foreign) {
            return Err(Stop::Unknown);
        }
        self.at -= 1;
        let mut literal = self.literal(literal)?;
        if ty.ty == SqlType::Interval
            && let Some(field) = self.interval_field()
            && let Form::Literal(text) = &*literal.form
            && text.trim().parse::<f64>().is_ok()
        {
            let text = format!("{} {field}", text.trim());
            let counted = Out::made(sql_literal(&Value::Text(text.clone())), literal.start());
            literal = counted.formed(Form::Literal(text));
        }
        self.cast(literal, &ty)
    }

    /// `INTERVAL '1' DAY`: the last field is the unit of a number without one.
    fn interval_field(&mut self) -> Option<&'a str> {
        const FIELDS: &[&str] = &["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
        let mut last = None;
        while let Some(token) = self.peek().filter(|token| token.is_any(FIELDS)) {
            last = Some(token.text);
            self.at += 1;
            self.take_word("TO");
        }
        last
    }

    /// A name with what qualifies it: its text, its parts, and its last token.
    pub(super) fn qualified(&mut self) -> Step<(Out<'a>, Vec<String>, Token<'a>)> {
        let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted);
        self.pass_schema();
        let mut last = self.token()?;
        if !is_name(&last) {
            return Err(Stop::Unknown);
        }
        let mut out = self.name_copied(last);
        let mut parts = vec![unquoted(last.text)];
        while self.next_is_sign(0, ".")
            && let Some(next) = self.peek_at(1).filter(is_name)
        {
            self.pass(&mut out);
            self.at += 1;
            out.push(self.name_copied(next));
            parts.push(unquoted(next.text));
            last = next;
        }
        Ok((out, parts, last))
    }

    /// A column.
    fn name(&mut self) -> Step<Out<'a>> {
        let (mut out, mut parts, last) = self.qualified()?;
        self.columns_named += 1;
        let name = parts.pop().unwrap_or_default();
        let qualifier = parts.pop();
        if let Some((renamed, around)) = self.renamed(qualifier.as_deref(), &name, last) {
            return Ok(self.taken_from_outside(renamed, around));
        }
        if qualifier.is_none() && self.is_given_alone(&name) {
            let message = format!("column \"{name}\" does not exist");
            let error = SqlError::new(state::UNKNOWN_COLUMN, message).at(self.sql, last.start);
            let hint =
                "WHERE does not know the names that the list of the SELECT gives; write the expression";
            return Err(Stop::Error(error.with_hint(hint)));
        }
        let ty = self.column_type(qualifier.as_deref(), &name);
        if parts.is_empty() {
            out = out.meaning(Node::Column { table: qualifier.clone(), name: name.clone() });
        }
        if ty == Some(SqlType::Numeric) && !self.names.is_column(&name) && self.is_float_name(&name) {
            out = out.formed(Form::Float);
        }
        let label = if last.kind == Kind::Word { name.to_lowercase() } else { name.clone() };
        let label = self.spelling(&label);
        let out = out.of_type(ty).labelled(&label);
        if self.laterals.is_empty() {
            return Ok(out);
        }
        let around = self.queries_around(qualifier.as_deref(), &name);
        Ok(self.taken_from_outside(out, around))
    }

    /// A column's name as its table has it: SQLite shows that one.
    fn spelling(&self, name: &str) -> String {
        let mut columns = self.names.tables().flat_map(|table| table.def().columns.iter());
        columns
            .find(|column| column.name.eq_ignore_ascii_case(name))
            .map_or(name, |column| &column.name)
            .to_owned()
    }

    /// `CASE ... END`
    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Step<Out<'a>> {
        let mut out = Out::default();
        let word = self.peek().ok_or(Stop::Unknown)?;
        self.pass_word("CASE", &mut out)?;
        // Without an operand each WHEN is a condition.
        let operand = operand.map(|operand| self.expression(operand)).transpose()?;
        let (mut whens, mut thens) = (Vec::new(), Vec::new());
        let mut results = Results::default();
        for CaseWhen { condition, result } in conditions {
            let mut words = [Out::default(), Out::default()];
            self.pass_word("WHEN", &mut words[0])?;
            let mut when = self.expression(condition)?;
            if operand.is_none() {
                when = structures::as_value(when);
                self.suggest(&mut when, SqlType::Bool)?;
            }
            whens.push(when);
            self.pass_word("THEN", &mut words[1])?;
            thens.push((words, self.result(result, &mut results)?));
        }
        if let Some(operand) = operand {
            let (operand, compared) = self.cases(&operand, word, whens)?;
            if let Some(operand) = operand {
                out.push(operand);
            }
            whens = compared;
        }
        let mut otherwise_words = Out::default();
        let otherwise = match otherwise {
            Some(otherwise) => {
                self.pass_word("ELSE", &mut otherwise_words)?;
                Some(self.result(otherwise, &mut results)?)
            }
            None => None,
        };
        self.refuse_mismatch("CASE", types::mismatch(results.told.iter().map(|told| told.ty)), Some(word))?;
        let ty = types::common(&results.told).unwrap_or(SqlType::Text);
        let exact = ty == SqlType::Numeric;
        // It is called like what stands behind `ELSE`, if that has a name of its own.
        let own = otherwise.as_ref().filter(|otherwise| !otherwise.named_by_cast);
        let own = own.and_then(|otherwise| otherwise.label.clone()).filter(|label| label != "?column?");
        // Each with the digits that it is written with.
        let digits =
            |result| if exact { numeric::exact_literal(result) } else { moments::widened(result, ty) };
        for (when, ([word, then], result)) in whens.into_iter().zip(thens) {
            for part in [word, when, then, digits(result)] {
                out.push(part);
            }
        }
        if let Some(otherwise) = otherwise {
            out.push(otherwise_words);
            out.push(digits(otherwise));
        }
        self.pass_word("END", &mut out)?;
        for number in results.parameters {
            self.parameters.suggest(number, results.ty.unwrap_or(SqlType::Text));
        }
        if exact {
            out = numeric::settled(call("numeric_of", [out]));
        }
        Ok(numeric::collated(out.typed(ty)).named(own.as_deref().unwrap_or("case"), own.is_none()))
    }

    /// One result of a `CASE`.
    fn result(&mut self, result: &Expr, results: &mut Results) -> Step<Out<'a>> {
        let mut out = self.expression(result)?;
        if let Some(ty) = results.ty {
            self.suggest(&mut out, ty)?;
        }
        results.ty = results.ty.or(out.ty);
        results.parameters.extend(out.parameter());
        results.told.push(Told::of(&out));
        Ok(out)
    }

    /// Something that is compared with a value of this type, or assigned to it, or must be one.
    pub(super) fn suggest(&mut self, out: &mut Out<'a>, ty: SqlType) -> Step<()> {
        match &*out.form {
            Form::Parameter(number) => {
                self.parameters.suggest(*number, ty);
                out.ty = self.parameters.ty(*number);
            }
            Form::Literal(text) => {
                if let Some(formed) = self.formed_literal(text, ty, out.start())? {
                    let label = out.label.take();
                    *out = formed;
                    out.label = label;
                }
            }
            Form::Array(_) if ty.is_array() => self.suggest_elements(out, ty.scalar())?,
            // Of something computed that may be a float nothing says that it is decimal.
            Form::List(parts)
                if parts.len() == 1
                    && ty == SqlType::Numeric
                    && matches!(*parts[0].form, Form::Computed | Form::List(_)) => {}
            // What has a type already keeps it.
            Form::List(parts)
                if parts.len() == 1
                    && (parts[0].ty.is_none() || matches!(*parts[0].form, Form::Array(_))) =>
            {
                let parts = parts.clone();
                self.suggest_parts(out, parts, &[Some(ty)])?;
                out.ty = Some(ty);
            }
            _ => {}
        }
        Ok(())
    }

    /// A literal in the form that values of this type have; `None`: as it is.
    fn formed_literal(&mut self, text: &str, ty: SqlType, from: usize) -> Step<Option<Out<'a>>> {
        if !scalar::has_form(ty) || ty == SqlType::Json {
            if ty.is_number() {
                // SQLite would keep a text that is no number, and find it greater than all numbers.
                self.value_of(ty, text, from)?;
            }
            return Ok(None);
        }
        if types::is_moment(Some(ty)) && cast::needs_clock(text) {
            let literal = Out::made(sql_literal(&Value::from(text)), from);
            return Ok(Some(call(&types::cast_name(ty), [literal]).typed(ty)));
        }
        let value = self.value_of(ty, text, from)?;
        Ok(Some(Out::made(sql_literal(&value), from).typed(ty)))
    }

    pub(super) fn skip_blank(&self, from: usize) -> usize {
        let rest = self.sql.get(from..).unwrap_or_default();
        from + rest.len() - rest.trim_start().len()
    }

    /// All parts of a list are of this type.
    pub(super) fn suggest_all(&mut self, list: &mut Out<'a>, ty: SqlType) -> Step<()> {
        let Form::List(parts) = &*list.form else { return Ok(()) };
        let parts = parts.clone();
        let types = vec![Some(ty); parts.len()];
        self.suggest_parts(list, parts, &types)
    }

    /// The parts of a list have these types, one each.
    pub(super) fn suggest_list(&mut self, list: &mut Out<'a>, types: &[Option<SqlType>]) -> Step<()> {
        let Form::List(parts) = &*list.form else { return Ok(()) };
        let parts = parts.clone();
        self.suggest_parts(list, parts, types)
    }

    /// A list of rows, `((1, 2), (3, 4))`, whose parts have these types.
    pub(super) fn suggest_rows(&mut self, list: &mut Out<'a>, types: &[Option<SqlType>]) -> Step<()> {
        let Form::List(rows) = &*list.form else { return Ok(()) };
        let mut rows = rows.clone();
        for row in &mut rows {
            self.suggest_list(row, types)?;
        }
        let mut out = Out::made("(", list.start());
        out.push(Out::joined(rows.iter().cloned(), ","));
        out.push_str(")");
        *list = out.formed(Form::List(rows));
        Ok(())
    }

    pub(super) fn suggest_elements(&mut self, array: &mut Out<'a>, ty: SqlType) -> Step<()> {
        let Form::Array(parts) = &*array.form else { return Ok(()) };
        let (mut parts, from) = (parts.clone(), array.start());
        for part in &mut parts {
            self.number_beside(part, ty)?;
        }
        let label = array.label.take();
        *array = super::arrays::array_of(parts, from).of_type(ty.array());
        array.label = label;
        Ok(())
    }

    fn suggest_parts(
        &mut self,
        list: &mut Out<'a>,
        parts: Vec<Out<'a>>,
        types: &[Option<SqlType>],
    ) -> Step<()> {
        let mut parts = parts;
        let mut changed = false;
        for (part, ty) in parts.iter_mut().zip(types) {
            let Some(ty) = ty else { continue };
            let literal = matches!(*part.form, Form::Literal(_) | Form::Array(_) | Form::List(_));
            if numeric::is_assigned_exactly(part, *ty) {
                *part = numeric::assigned(std::mem::take(part), *ty);
                changed = true;
                continue;
            }
            self.suggest(part, *ty)?;
            changed |= literal;
        }
        if changed {
            let label = list.label.take();
            let mut out = Out::made("(", list.start());
            out.push(Out::joined(parts.iter().cloned(), ","));
            out.push_str(")");
            *list = out.of_type(list.ty);
            list.label = label;
        }
        *list.form = Form::List(parts);
        Ok(())
    }
}
