//! Operands: literals, names, parameters, parentheses, and what may stand behind them.

use sqltext::token::sql_literal;
use sqltext::token::{self, Kind, Token};
use store::definition::SqlType;
use store::scalar;
use store::value::Value;

use super::expression::{call, power};
use super::out::{Form, Out};
use super::types::Told;
use super::{Item, Step, Stop, Translator, cast, numeric, structures, types};
use crate::error::SqlError;
use crate::text::token::unquoted;

/// Words that never begin an operand; an expression ends before them.
const RESERVED: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "COLLATE",
    "CROSS",
    "DESC",
    "DISTINCT",
    "DO",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "FETCH",
    "FOR",
    "FROM",
    "FULL",
    "GLOB",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTO",
    "IS",
    "ISNULL",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MATCH",
    "NATURAL",
    "NOTNULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "REGEXP",
    "RETURNING",
    "RIGHT",
    "SELECT",
    "SET",
    "SIMILAR",
    "THEN",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Words that are functions without parentheses, and what they are.
const NILADIC: &[(&str, &str, SqlType)] = &[
    ("CURRENT_TIMESTAMP", "now()", SqlType::Timestamptz),
    ("CURRENT_DATE", "cast_date(now())", SqlType::Date),
    ("CURRENT_TIME", "cast_timetz(now())", SqlType::Timetz),
    ("LOCALTIMESTAMP", "cast_timestamp(now())", SqlType::Timestamp),
    ("LOCALTIME", "cast_time(now())", SqlType::Time),
    ("CURRENT_USER", "current_user()", SqlType::Name),
    ("SESSION_USER", "session_user()", SqlType::Name),
    ("CURRENT_ROLE", "current_role()", SqlType::Name),
    ("CURRENT_CATALOG", "current_catalog()", SqlType::Name),
    ("CURRENT_SCHEMA", "current_schema()", SqlType::Name),
];

impl<'a> Translator<'a, '_> {
    /// One operand with what stands before and behind it.
    pub(super) fn operand(&mut self) -> Step<Option<Out<'a>>> {
        let Some(token) = self.peek() else { return Ok(None) };
        let Some(mut out) = self.primary(token)? else { return Ok(None) };
        loop {
            if self.take_sign("::") {
                let ty = self.type_name()?;
                out = self.cast(out, &ty)?;
            } else if self.next_is_sign(0, "[") {
                out = self.subscript(out)?;
            } else {
                return Ok(Some(out));
            }
        }
    }

    fn primary(&mut self, token: Token<'a>) -> Step<Option<Out<'a>>> {
        match token.kind {
            Kind::Text | Kind::Foreign => self.literal(token).map(Some),
            Kind::Blob => Ok(Some(self.taken(token).typed(SqlType::Bytea).labelled("?column?"))),
            Kind::Number => Ok(Some(self.number(token))),
            Kind::Parameter => Ok(Some(self.parameter(token))),
            Kind::Quoted => self.name(token).map(Some),
            Kind::Word => self.word(token),
            Kind::Sign => self.sign(token),
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
        if ty == SqlType::Numeric { out.formed(Form::Number(token.text.to_owned())) } else { out }
    }

    fn parameter(&mut self, token: Token<'a>) -> Out<'a> {
        let out = self.taken(token).labelled("?column?");
        match self.parameters.number(token.text) {
            Some(number) => {
                let ty = self.parameters.ty(number);
                out.of_type(ty).formed(Form::Parameter(number))
            }
            None => out,
        }
    }

    fn sign(&mut self, token: Token<'a>) -> Step<Option<Out<'a>>> {
        match token.text {
            "(" => self.parenthesis(),
            "-" | "+" | "~" => {
                self.at += 1;
                let sign = self.copied(token);
                let Some(inner) = self.expression(power::SIGN)? else { return Ok(Some(sign)) };
                // A truth is a number to SQLite's signs.
                let ty = inner.ty.map(|ty| if ty == SqlType::Bool { SqlType::Int4 } else { ty });
                if ty == Some(SqlType::Interval) && token.text == "-" {
                    let back = Out::made("-1", token.start);
                    return Ok(Some(call("interval_times", [inner, back]).of_type(ty).labelled("?column?")));
                }
                let mut out = sign;
                out.push(inner.clone());
                let out = numeric::signed(token.text, &inner, out.of_type(ty));
                Ok(Some(out.labelled("?column?")))
            }
            _ => Ok(None),
        }
    }

    /// `( ... )`: an expression, a list, or a query.
    pub(super) fn parenthesis(&mut self) -> Step<Option<Out<'a>>> {
        let Some(open) = self.take() else { return Ok(None) };
        let query = self.peek().is_some_and(|token| token.is_any(&["SELECT", "WITH", "VALUES"]));
        if query {
            return self.deeper(|own| own.subquery(open)).map(Some);
        }
        let (parts, inner) = self.deeper(Self::list)?;
        let mut out = self.copied(open);
        out.push(inner);
        self.close(&mut out);
        let single = match &parts[..] {
            [only] => Some((only.ty, only.label.clone())),
            _ => None,
        };
        if let Some((ty, label)) = single {
            out = out.of_type(ty);
            out.label = label;
        }
        Ok(Some(out.formed(Form::List(parts))))
    }

    /// Takes the closing parenthesis; a missing one is for SQLite to complain about.
    pub(super) fn close(&mut self, out: &mut Out<'a>) {
        if let Some(close) = self.peek().filter(|token| token.is_sign(")")) {
            self.at += 1;
            out.push(self.copied(close));
        }
    }

    /// Expressions with commas between, and anything else that stands there as it is.
    pub(super) fn list(&mut self) -> Step<(Vec<Out<'a>>, Out<'a>)> {
        let (mut parts, mut all) = (Vec::new(), Out::default());
        loop {
            let part = self.sequence_part()?;
            parts.push(part.clone());
            all.push(part);
            match self.peek().filter(|token| token.is_sign(",")) {
                Some(comma) => all.push(self.taken(comma)),
                None => return Ok((parts, all)),
            }
        }
    }

    fn subquery(&mut self, open: Token<'a>) -> Step<Out<'a>> {
        let (out, items) = self.query_behind(open)?;
        let first = items.into_iter().next().unwrap_or_default();
        let ty = self.type_of(&first);
        let mut out = out.of_type(ty).formed(Form::Query);
        out.label = first.label;
        Ok(out)
    }

    /// A query up to its closing parenthesis, and its columns as its first arm gives them.
    pub(super) fn query_behind(&mut self, open: Token<'a>) -> Step<(Out<'a>, Vec<Item>)> {
        let place = self.at - 1;
        self.queries.push(None);
        let targets = self.targets.take();
        let inner = self.sequence()?;
        self.targets = targets;
        let items = self.queries.pop().flatten().unwrap_or_default();
        self.learn_query(place, &items);
        let mut out = self.copied(open);
        out.push(inner);
        self.close(&mut out);
        Ok((out, items))
    }

    /// The type of a query's column, where it is known.
    pub(super) fn type_of(&self, item: &Item) -> Option<SqlType> {
        item.ty.or_else(|| item.parameter.and_then(|number| self.parameters.ty(number)))
    }

    fn word(&mut self, token: Token<'a>) -> Step<Option<Out<'a>>> {
        if self.next_is_sign(1, ".") {
            return self.name(token).map(Some);
        }
        let called = self.next_is_sign(1, "(");
        if token.is("CASE") {
            return self.case().map(Some);
        }
        if token.is("ARRAY") && (called || self.next_is_sign(1, "[")) {
            self.at += 1;
            return self.array(token).map(Some);
        }
        if token.is("NOT") {
            return self.not(token).map(Some);
        }
        if called && let Some(out) = self.special_call(token)? {
            return Ok(Some(out));
        }
        if let Some(out) = self.constant(token, called) {
            return Ok(Some(out));
        }
        if let Some(out) = self.typed_literal()? {
            return Ok(Some(out));
        }
        let function = called && token.is_any(&["LEFT", "RIGHT", "GLOB", "LIKE"]);
        if token.is_any(RESERVED) && !function {
            return Ok(None);
        }
        self.name(token).map(Some)
    }

    fn not(&mut self, token: Token<'a>) -> Step<Out<'a>> {
        let mut out = self.taken(token);
        if let Some(mut inner) = self.expression(power::NOT)?.map(structures::as_value) {
            self.suggest(&mut inner, SqlType::Bool)?;
            out.push(inner);
        }
        Ok(out.typed(SqlType::Bool).labelled("?column?"))
    }

    /// Words that are values.
    fn constant(&mut self, token: Token<'a>, called: bool) -> Option<Out<'a>> {
        if token.is_any(&["TRUE", "FALSE"]) {
            return Some(self.taken(token).typed(SqlType::Bool).labelled("bool"));
        }
        if token.is("NULL") {
            return Some(self.taken(token).formed(Form::Null).labelled("?column?"));
        }
        if token.is("DEFAULT") {
            return Some(self.taken(token).labelled(super::clauses::DEFAULT));
        }
        let (word, text, ty) = NILADIC.iter().find(|(word, _, _)| token.is(word))?;
        if self.names.is_column(token.text) {
            return None;
        }
        self.at += 1;
        if called {
            // `current_timestamp(3)`: the precision is left out; `current_schema()` is the function itself.
            self.at += if self.next_is_sign(1, ")") { 2 } else { 3 };
        }
        Some(Out::made(text, token.start).typed(*ty).labelled(&word.to_lowercase()))
    }

    /// `interval '1 day'`, `timestamp with time zone '...'`: a type before a literal.
    fn typed_literal(&mut self) -> Step<Option<Out<'a>>> {
        let begin = self.at;
        let Some(ty) = self.type_before_literal() else {
            self.at = begin;
            return Ok(None);
        };
        let Some(literal) = self.peek().filter(|token| matches!(token.kind, Kind::Text | Kind::Foreign))
        else {
            self.at = begin;
            return Ok(None);
        };
        let literal = self.literal(literal)?;
        if ty.ty == SqlType::Interval {
            self.interval_fields();
        }
        self.cast(literal, &ty).map(Some)
    }

    fn type_before_literal(&mut self) -> Option<cast::TypeName> {
        let known =
            self.peek().is_some_and(|token| SqlType::of_declared(token.text).is_some() || token.is("DOUBLE"));
        if known { self.type_name().ok() } else { None }
    }

    /// `INTERVAL '1' DAY`: the fields only say what the literal may contain.
    fn interval_fields(&mut self) {
        const FIELDS: &[&str] = &["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
        while self.peek().is_some_and(|token| token.is_any(FIELDS)) {
            self.at += 1;
            self.take_word("TO");
        }
    }

    /// A column, or a function when a parenthesis follows.
    fn name(&mut self, token: Token<'a>) -> Step<Out<'a>> {
        let place = self.at;
        let mut out = self.taken(token);
        let (mut last, mut before) = (token, None);
        while self.next_is_sign(0, ".")
            && self.peek_at(1).is_some_and(|next| matches!(next.kind, Kind::Word | Kind::Quoted))
        {
            for _ in 0..2 {
                if let Some(part) = self.take() {
                    out.push(self.copied(part));
                    if part.kind != Kind::Sign {
                        before = Some(unquoted(last.text));
                        last = part;
                    }
                }
            }
        }
        let name = unquoted(last.text);
        if self.next_is_sign(0, "(") {
            return self.call(out, &name, last);
        }
        if last.start == token.start
            && !self.names.is_column(&name)
            && let Some(number) = self.number_named(&name)
        {
            return Ok(number);
        }
        let ty = self.column_type(place, before.as_deref(), &name);
        if ty == Some(SqlType::Numeric) {
            match self.names.scale(&name) {
                Some(scale) => out = out.formed(Form::Column(scale)),
                None if !self.names.is_column(&name) && self.is_float_name(&name) => {
                    out = out.formed(Form::Float);
                }
                None => {}
            }
        }
        let label = if last.kind == Kind::Word { name.to_lowercase() } else { name };
        let label = self.spelling(&label);
        Ok(out.of_type(ty).labelled(&label))
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
    fn case(&mut self) -> Step<Out<'a>> {
        self.deeper(|own| {
            let mut out = Out::default();
            let mut parameters: Vec<usize> = Vec::new();
            let mut results: Vec<Told> = Vec::new();
            // Without an operand each WHEN is a condition; one of unknown type tells nothing of them.
            let mut tested = Some(SqlType::Bool);
            let mut ty = None;
            let mut before = "CASE";
            while let Some(token) = own.take() {
                out.push(own.copied(token));
                if token.is("END") {
                    break;
                }
                let word = ["WHEN", "THEN", "ELSE"].into_iter().find(|word| token.is(word));
                before = word.unwrap_or(before);
                let Some(mut part) = own.expression(power::ANYTHING)? else { continue };
                match before {
                    "CASE" => tested = part.ty,
                    "WHEN" => {
                        if tested == Some(SqlType::Bool) {
                            part = structures::as_value(part);
                        }
                        if let Some(tested) = tested {
                            own.suggest(&mut part, tested)?;
                        }
                    }
                    _ => {
                        if let Some(ty) = ty {
                            own.suggest(&mut part, ty)?;
                        }
                        ty = ty.or(part.ty);
                        parameters.extend(part.parameter());
                        results.push(Told::of(&part));
                    }
                }
                out.push(part);
            }
            for number in parameters {
                own.parameters.suggest(number, ty.unwrap_or(SqlType::Text));
            }
            Ok(out.typed(types::common(&results).unwrap_or(SqlType::Text)).labelled("case"))
        })
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
        // Beside a BLOB a text is a text, as SQLite has it, unless it can only mean bytes.
        let text_beside = ty == SqlType::Bytea && !text.starts_with("\\x");
        if !scalar::has_form(ty) || text_beside || matches!(ty, SqlType::Json | SqlType::Jsonb) {
            return Ok(None);
        }
        if types::is_moment(Some(ty)) && cast::needs_clock(text) {
            let literal = Out::made(sql_literal(&Value::from(text)), from);
            return Ok(Some(call(&types::cast_name(ty), [literal]).typed(ty)));
        }
        let value = scalar::accept(ty, Value::from(text))
            .map_err(|refusal| Stop::Error(SqlError::from(refusal).at(self.sql, self.skip_blank(from))))?;
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
            self.suggest(part, ty)?;
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
