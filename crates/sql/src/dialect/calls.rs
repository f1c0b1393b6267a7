//! Functions: those with words between their arguments, those that are tables, and what the others return.

use store::definition::SqlType;

use super::expression::{call, power};
use super::out::{Form, Out};
use super::structures::{OF_NO_ROWS, argument_for};
use super::types::{Told, common};
use super::{Step, Translator, numeric};
use crate::error::state;
use crate::text::token::quoted_name;
use pgcatalog::function::{self, Returns};
use pgcatalog::limits::UNNEST_ARRAYS_MAX;
use pgcatalog::system::{UNNEST, unnest_column};
use sqltext::token::{Kind, Token};

/// Functions that PostgreSQL calls otherwise, and that need no other arguments.
const RENAMED: &[(&str, &str)] = &[
    ("array_agg", "json_group_array"),
    ("json_agg", "json_group_array"),
    ("jsonb_agg", "json_group_array"),
    ("json_object_agg", "json_group_object"),
    ("jsonb_object_agg", "json_group_object"),
    ("json_build_object", "json_object"),
    ("jsonb_build_object", "json_object"),
    ("json_build_array", "json_array"),
    ("jsonb_build_array", "json_array"),
    ("jsonb_array_length", "json_array_length"),
    ("jsonb_typeof", "json_typeof"),
    ("jsonb_strip_nulls", "json_strip_nulls"),
    ("jsonb_pretty", "json_pretty"),
    ("array_to_json", "json"),
    ("bool_and", "min"),
    ("every", "min"),
    ("bool_or", "max"),
    ("chr", "char"),
    ("char_length", "length"),
    ("character_length", "length"),
];

/// Functions that are rewritten as tables.
pub(super) const TABLES: &[&str] = &["generate_series", "unnest"];

/// Functions whose arguments are of one type, which is what they return.
const AGREEING: &[&str] = &["coalesce", "greatest", "least", "nullif", "ifnull"];

impl<'a> Translator<'a, '_> {
    /// A call from the parenthesis on; `out` is the name as it was written.
    pub(super) fn call(&mut self, out: Out<'a>, name: &str, token: Token<'a>) -> Step<Out<'a>> {
        let lower = name.to_ascii_lowercase();
        let bare = token.kind == Kind::Word;
        let mut out = match RENAMED.iter().find(|(from, _)| bare && *from == lower) {
            Some((_, to)) => Out::made(to, token.start),
            None => out,
        };
        let Some(open) = self.take() else { return Ok(out) };
        let Arguments { told: arguments, inner, numeric } = self.deeper(|own| own.arguments(&lower))?;
        if bare
            && matches!(lower.as_str(), "to_json" | "to_jsonb")
            && arguments.iter().any(|told| told.is_json())
        {
            // It is JSON already.
            out = Out::made("json", token.start);
        }
        if let (true, Numbers::Exact, Some(function)) = (bare, &numeric, numeric::function_for(&lower)) {
            out = Out::made(function, token.start);
        }
        out.push(self.copied(open));
        out.push(inner);
        self.close(&mut out);
        self.behind_call(&mut out)?;
        if let Some((_, empty)) = OF_NO_ROWS.iter().find(|(name, _)| bare && *name == lower) {
            out = out.wrapped("nullif(", &format!(", '{empty}')"));
        }
        let ty = if lower == "row" {
            None
        } else if lower == "unnest" {
            arguments.first().and_then(|array| array.ty).map(SqlType::scalar)
        } else {
            function::returns(&lower).and_then(|returns| returned(returns, &arguments))
        };
        Ok(numbered(out.of_type(ty), &lower, numeric).labelled(&lower))
    }

    /// The arguments, and what is known of their types.
    fn arguments(&mut self, name: &str) -> Step<Arguments<'a>> {
        let mut all = Out::default();
        if self.peek().is_some_and(|token| token.is_any(&["SELECT", "WITH", "VALUES"])) {
            // `EXISTS (SELECT ...)`
            self.queries.push(None);
            let query = self.sequence()?;
            self.queries.pop();
            return Ok(Arguments { told: Vec::new(), inner: query, numeric: Numbers::Any });
        }
        let mut distinct = false;
        if let Some(word) = self.peek().filter(|token| token.is_any(&["DISTINCT", "ALL"])) {
            self.at += 1;
            distinct = word.is("DISTINCT");
            all.push(self.copied(word));
        }
        let mut parts: Vec<Out<'a>> = Vec::new();
        let mut commas = Vec::new();
        let mut numeric = Numbers::Floats;
        loop {
            let part = self.argument(name, parts.len(), distinct, &mut numeric)?;
            parts.push(part);
            match self.peek().filter(|token| token.is_sign(",")) {
                Some(comma) => {
                    self.at += 1;
                    commas.push(comma);
                }
                None => break,
            }
        }
        self.agree(name, &mut parts)?;
        if name == "coalesce" && parts.iter().any(numeric::is_exact) {
            numeric = Numbers::Chosen(call(name, [numeric::listed(&parts)]));
        }
        let types = parts.iter().map(Told::of).collect();
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                all.push(self.copied(commas[at - 1]));
            }
            all.push(part);
        }
        Ok(Arguments { told: types, inner: all, numeric })
    }

    /// One argument, with what an aggregate may have behind it.
    fn argument(
        &mut self,
        name: &str,
        at: usize,
        distinct: bool,
        numeric: &mut Numbers<'a>,
    ) -> Step<Out<'a>> {
        let Some(argument) = self.expression(power::ANYTHING)? else { return self.sequence_part() };
        let mut argument = argument_for(name, at, argument);
        if numeric::is_exact(&argument) {
            *numeric = match (&numeric, numeric::chosen_of(name, &argument)) {
                (Numbers::Exact, _) => Numbers::Exact,
                (_, Some(form)) if at == 0 => Numbers::Of(form),
                _ if at == 0 && numeric::function_for(name).is_some() => Numbers::Exact,
                _ => Numbers::Any,
            };
        }
        // Of equal numbers with other digits each would count.
        let exactly =
            (at == 0 || matches!(name, "div" | "mod")) && (!distinct || numeric::has_one_scale(&argument));
        if exactly && matches!(numeric, Numbers::Exact) {
            let ty = argument.ty;
            argument = numeric::exact(argument).of_type(ty);
        }
        if self.peek().is_none_or(|token| token.is_sign(",") || token.is_sign(")")) {
            return Ok(argument);
        }
        let (ty, label) = (argument.ty, argument.label.take());
        argument.push(self.sequence_part()?);
        argument.label = label;
        Ok(argument.of_type(ty))
    }

    /// Tells arguments their types.
    fn agree(&mut self, name: &str, parts: &mut [Out<'a>]) -> Step<()> {
        if AGREEING.contains(&name) {
            let Some(ty) = parts.iter().find_map(|part| part.ty) else { return Ok(()) };
            for part in parts {
                self.suggest(part, ty)?;
            }
            return Ok(());
        }
        for (part, ty) in parts.iter_mut().zip(function::argument_types(name)) {
            self.suggest(part, *ty)?;
        }
        Ok(())
    }

    /// `FILTER (...)`, `OVER (...)`, `WITHIN GROUP (...)` behind a call.
    fn behind_call(&mut self, out: &mut Out<'a>) -> Step<()> {
        loop {
            let Some(word) = self.peek() else { return Ok(()) };
            let called = self.next_is_sign(1, "(");
            if word.is("OVER") && self.peek_at(1).is_some_and(|token| token.kind != Kind::Sign || called) {
                self.at += 1;
                out.push(self.copied(word));
                if !called && let Some(window) = self.take() {
                    out.push(self.copied(window));
                    continue;
                }
            } else if word.is("FILTER") && called {
                self.at += 1;
                out.push(self.copied(word));
            } else if word.is("WITHIN") && self.peek_at(1).is_some_and(|token| token.is("GROUP")) {
                return Err(self.error_at(Some(word), state::NOT_SUPPORTED, "WITHIN GROUP is not supported"));
            } else {
                return Ok(());
            }
            if let Some(inner) = self.parenthesis()? {
                out.push(inner);
            }
        }
    }

    /// Calls with words between their arguments; the parenthesis is next but one.
    pub(super) fn special_call(&mut self, token: Token<'a>) -> Step<Option<Out<'a>>> {
        let begin = self.at;
        self.at += 1;
        let special = match token.text.to_ascii_lowercase().as_str() {
            "cast" => self.cast_call(token)?,
            "extract" => self.extract()?,
            "position" => self.position()?,
            "substring" => self.substring()?,
            "trim" => self.trim()?,
            "overlay" => self.overlay()?,
            "row" => {
                let row = self.parenthesis()?;
                return Ok(row.map(|row| row.labelled("row")));
            }
            _ => None,
        };
        if special.is_none() {
            self.at = begin;
        }
        Ok(special)
    }

    /// An argument behind a word, if the word is there.
    fn behind(&mut self, word: &str) -> Step<Option<Out<'a>>> {
        if self.take_word(word) { self.expression(power::OTHER) } else { Ok(None) }
    }

    /// `extract(field FROM moment)`
    fn extract(&mut self) -> Step<Option<Out<'a>>> {
        self.at += 1;
        let Some(field) = self.take().filter(|token| matches!(token.kind, Kind::Word | Kind::Text)) else {
            return Ok(None);
        };
        if !self.take_word("FROM") {
            return Ok(None);
        }
        let Some(moment) = self.expression(power::ANYTHING)? else { return Ok(None) };
        if !self.take_sign(")") {
            return Ok(None);
        }
        let field = Out::made(format!("'{}'", field.text.trim_matches('\'').to_lowercase()), field.start);
        Ok(Some(call("date_part", [field, moment]).typed(SqlType::Numeric).labelled("extract")))
    }

    /// `position(part IN text)`
    fn position(&mut self) -> Step<Option<Out<'a>>> {
        self.at += 1;
        let Some(mut part) = self.expression(power::OTHER)? else { return Ok(None) };
        let Some(mut text) = self.behind("IN")? else { return Ok(None) };
        if !self.take_sign(")") {
            return Ok(None);
        }
        self.suggest(&mut part, SqlType::Text)?;
        self.suggest(&mut text, SqlType::Text)?;
        Ok(Some(call("instr", [text, part]).typed(SqlType::Int4).labelled("position")))
    }

    /// `substring(text FROM start FOR count)` or `substring(text FROM pattern)`
    fn substring(&mut self) -> Step<Option<Out<'a>>> {
        self.at += 1;
        let Some(mut text) = self.expression(power::OTHER)? else { return Ok(None) };
        let (from, count) = (self.behind("FROM")?, self.behind("FOR")?);
        if (from.is_none() && count.is_none()) || !self.take_sign(")") {
            return Ok(None);
        }
        self.suggest(&mut text, SqlType::Text)?;
        let start = text.start();
        let ty = text.ty.unwrap_or(SqlType::Text);
        let from = from.unwrap_or_else(|| Out::made("1", start));
        let pattern = matches!(*from.form, super::out::Form::Literal(_));
        let out = match count {
            Some(count) => call("substr", [text, from, count]),
            None if pattern => call("regexp_substr", [text, from]),
            None => call("substr", [text, from]),
        };
        Ok(Some(out.typed(ty).labelled("substring")))
    }

    /// `trim(BOTH characters FROM text)`
    fn trim(&mut self) -> Step<Option<Out<'a>>> {
        self.at += 1;
        let side = self.peek().filter(|token| token.is_any(&["LEADING", "TRAILING", "BOTH"]));
        self.at += usize::from(side.is_some());
        let (name, label) = match side {
            Some(side) if side.is("LEADING") => ("ltrim", "ltrim"),
            Some(side) if side.is("TRAILING") => ("rtrim", "rtrim"),
            _ => ("trim", "btrim"),
        };
        let characters = self.expression(power::OTHER)?;
        let text = self.behind("FROM")?;
        if (side.is_none() && text.is_none()) || !self.take_sign(")") {
            return Ok(None);
        }
        let out = match (characters, text) {
            (Some(characters), Some(text)) => call(name, [text, characters]),
            (Some(text), None) | (None, Some(text)) => call(name, [text]),
            (None, None) => return Ok(None),
        };
        Ok(Some(out.typed(SqlType::Text).labelled(label)))
    }

    /// `overlay(text PLACING other FROM start FOR count)`
    fn overlay(&mut self) -> Step<Option<Out<'a>>> {
        self.at += 1;
        let Some(text) = self.expression(power::OTHER)? else { return Ok(None) };
        let Some(other) = self.behind("PLACING")? else { return Ok(None) };
        let Some(from) = self.behind("FROM")? else { return Ok(None) };
        let count = self.behind("FOR")?;
        if !self.take_sign(")") {
            return Ok(None);
        }
        let out = match count {
            Some(count) => call("overlay", [text, other, from, count]),
            None => call("overlay", [text, other, from]),
        };
        Ok(Some(out.typed(SqlType::Text)))
    }

    /// A function that PostgreSQL users write in `FROM`.
    pub(super) fn table_function(&mut self, token: Token<'a>) -> Step<Option<Out<'a>>> {
        let name = token.text.to_ascii_lowercase();
        let begin = self.at;
        match name.as_str() {
            name if TABLES.contains(&name) => {}
            "json_array_elements"
            | "jsonb_array_elements"
            | "json_array_elements_text"
            | "jsonb_array_elements_text"
            | "jsonb_each_text"
            | "json_each_text" => {
                self.at += 1;
                return Ok(Some(Out::made("json_each", token.start)));
            }
            _ => return Ok(None),
        }
        self.at += 2;
        let mut arguments = Vec::new();
        while let Some(argument) = self.expression(power::ANYTHING)? {
            arguments.push(argument);
            if !self.take_sign(",") {
                break;
            }
        }
        let closed = self.take_sign(")");
        if closed && name == "unnest" && arguments.len() > 1 {
            return self.side_by_side(arguments, token).map(Some);
        }
        if !closed || self.peek().is_some_and(|token| token.is("WITH")) {
            self.at = begin;
            return Ok(None);
        }
        let (alias, column) = if let Some((alias, columns)) = self.alias_with_columns() {
            (alias, columns.into_iter().next().unwrap_or_else(|| name.clone()))
        } else {
            let alias = self.table_alias().unwrap_or_else(|| name.clone());
            (alias.clone(), alias)
        };
        let ty = match arguments.first() {
            Some(argument) if name == "unnest" => argument.ty.map(SqlType::scalar),
            Some(argument) => argument.ty,
            None => None,
        };
        if let Some(ty) = ty {
            self.learned.names.insert(column.to_lowercase(), ty);
        }
        let rows = if name == "unnest" {
            unnest(arguments, &column)
        } else {
            self.series(arguments, &column, token)?
        };
        let Some(mut rows) = rows else { return Ok(None) };
        rows.push_str(&format!(" AS {}", quoted_name(&alias)));
        Ok(Some(rows))
    }

    /// `unnest(a, b) [WITH ORDINALITY] [AS] name [(x, y)]`, behind the parenthesis: a column for each array.
    fn side_by_side(&mut self, arrays: Vec<Out<'a>>, token: Token<'a>) -> Step<Out<'a>> {
        if arrays.len() > UNNEST_ARRAYS_MAX {
            let message = format!("unnest takes at most {UNNEST_ARRAYS_MAX} arrays");
            return Err(self.error_at(Some(token), "54023", message));
        }
        let ordinality = self.take_words(&["WITH", "ORDINALITY"]);
        let (alias, given) = match self.alias_with_columns() {
            Some(named) => named,
            None => (self.table_alias().unwrap_or_else(|| "unnest".to_owned()), Vec::new()),
        };
        if given.len() > arrays.len() + usize::from(ordinality) {
            let (there, wanted) = (arrays.len() + usize::from(ordinality), given.len());
            let message =
                format!("table \"{alias}\" has {there} columns available but {wanted} columns specified");
            return Err(self.error_at(Some(token), "42P10", message));
        }
        let name_of = |at: usize, default: &str| given.get(at).cloned().unwrap_or_else(|| default.to_owned());
        let mut columns = Vec::new();
        for (at, array) in arrays.iter().enumerate() {
            let name = name_of(at, "unnest");
            if let Some(ty) = array.ty {
                self.learned.names.insert(name.to_lowercase(), ty.scalar());
            }
            columns.push(format!("{} AS {}", unnest_column(at), quoted_name(&name)));
        }
        if ordinality {
            let name = name_of(arrays.len(), "ordinality");
            self.learned.names.insert(name.to_lowercase(), SqlType::Int8);
            columns.push(format!("ordinality AS {}", quoted_name(&name)));
        }
        let as_array = |array: Out<'a>| {
            if array.ty.is_some_and(SqlType::is_array) { array } else { call("cast_array", [array]) }
        };
        let before = format!("(SELECT {} FROM {UNNEST}(", columns.join(", "));
        let mut rows = Out::joined(arrays.into_iter().map(as_array), ",").wrapped(&before, "))");
        rows.push_str(&format!(" AS {}", quoted_name(&alias)));
        Ok(rows)
    }

    /// `generate_series(first, last, step)` of integers, or of moments.
    fn series(&mut self, arguments: Vec<Out<'a>>, column: &str, token: Token<'a>) -> Step<Option<Out<'a>>> {
        let mut arguments = arguments.into_iter();
        let (Some(mut first), Some(mut last)) = (arguments.next(), arguments.next()) else { return Ok(None) };
        let mut step = arguments.next().unwrap_or_else(|| Out::made("1", token.start).typed(SqlType::Int4));
        let moments = super::types::is_moment(first.ty) || super::types::is_moment(last.ty);
        if moments {
            self.suggest(&mut step, SqlType::Interval)?;
            // Dates become moments with their first step, so they begin as such.
            for bound in [&mut first, &mut last] {
                if bound.ty == Some(SqlType::Date) {
                    *bound = call("cast_timestamp", [std::mem::take(bound)]).typed(SqlType::Timestamp);
                }
            }
        }
        for bound in [&mut first, &mut last] {
            self.suggest(bound, if moments { SqlType::Timestamptz } else { SqlType::Int8 })?;
        }
        let name = quoted_name(column);
        let mut out = Out::made("(WITH RECURSIVE bounds(a, z, s) AS (SELECT ", token.start);
        out.push(first);
        out.push_str(",");
        out.push(last);
        out.push_str(",");
        out.push(step);
        let (next, down) =
            if moments { ("moment_plus(v, s)", "interval_seconds(s) < 0") } else { ("v + s", "s < 0") };
        out.push_str(&format!(
            "), series(v) AS (SELECT a FROM bounds WHERE iif({down}, a >= z, a <= z) UNION ALL SELECT {next} FROM series, \
             bounds WHERE iif({down}, {next} >= z, {next} <= z)) SELECT v AS {name} FROM series)"
        ));
        Ok(Some(out))
    }
}

/// What stands between the parentheses of a call.
struct Arguments<'a> {
    told: Vec<Told>,
    inner: Out<'a>,
    numeric: Numbers<'a>,
}

/// What the arguments say of a result that is `NUMERIC`.
enum Numbers<'a> {
    /// None of them is exact: SQLite computes it in floats.
    Floats,
    /// One of them is exact.
    Any,
    /// The function is to compute exactly, and they are given so.
    Exact,
    /// The result is one of them, which all have a form.
    Of(Form<'a>),
    /// The result is one of them; this is the call of their exact texts.
    Chosen(Out<'a>),
}

/// A call's result with what is known of its digits.
fn numbered<'a>(out: Out<'a>, name: &str, numeric: Numbers<'a>) -> Out<'a> {
    // These give texts, when they are called by their names too.
    let own = name.starts_with("numeric_") && name != "numeric_number";
    match numeric {
        Numbers::Exact => numeric::settled(out),
        _ if own && out.ty == Some(SqlType::Numeric) => numeric::settled(out),
        _ if out.ty != Some(SqlType::Numeric) => out,
        Numbers::Of(form) => out.formed(form),
        Numbers::Chosen(exact) => out.formed(Form::Exact(exact)),
        Numbers::Floats if function::returns(name) != Some(Returns::Type(SqlType::Numeric)) => {
            out.formed(Form::Float)
        }
        Numbers::Floats | Numbers::Any => out,
    }
}

/// `unnest(array)` as a query of its elements.
fn unnest<'a>(arguments: Vec<Out<'a>>, column: &str) -> Option<Out<'a>> {
    let array = arguments.into_iter().next()?;
    let known = array.ty.is_some_and(SqlType::is_array);
    let array = if known { array } else { call("cast_array", [array]) };
    let before = format!("(SELECT value AS {} FROM json_each(", quoted_name(column));
    Some(array.wrapped(&before, "))"))
}

/// What a function returns, given its arguments.
fn returned(returns: Returns, arguments: &[Told]) -> Option<SqlType> {
    use SqlType::{Bytea, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Text};
    let argument = arguments.first().and_then(|argument| argument.ty);
    match returns {
        Returns::Type(ty) => Some(ty),
        Returns::Argument => argument,
        Returns::Second => arguments.get(1).and_then(|argument| argument.ty),
        Returns::Common => common(arguments),
        Returns::Chosen => common(&chosen(arguments)),
        Returns::Part => Some(if argument == Some(Bytea) { Bytea } else { Text }),
        Returns::Array => argument.unwrap_or(Text).array().or(Some(SqlType::Json)),
        Returns::Sum => Some(match argument {
            Some(Int2 | Int4) => Int8,
            Some(Float4 | Float8) => Float8,
            Some(Interval) => Interval,
            Some(_) => Numeric,
            None => return None,
        }),
        Returns::Average => Some(match argument {
            Some(Float4 | Float8) => Float8,
            Some(Interval) => Interval,
            _ => Numeric,
        }),
    }
}

/// The values among arguments of which every other one is a condition: behind each condition one, and at the end one
/// for when none holds.
fn chosen(arguments: &[Told]) -> Vec<Told> {
    let last = arguments.len().saturating_sub(1);
    let values = arguments.iter().enumerate().filter(|(at, _)| at % 2 == 1 || *at == last);
    values.map(|(_, value)| *value).collect()
}
