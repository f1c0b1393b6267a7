//! Functions: those with words between their arguments, those that are tables, and what the others return.

use sqltext::ast::{
    CeilFloorKind, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Ident, Value as Literal, WindowSpec, WindowType,
};
use sqltext::literals::bare;
use sqltext::token::{Kind, Token, unquoted};
use store::definition::SqlType;

use super::equals::keyed;
use super::nulls::Sorted;
use super::numeric::Numbers;
use super::out::{Form, Out, call};
use super::structures::{OF_JSONB, OF_NO_ROWS, OF_ROWS, argument_for};
use super::types::{Told, common, is_text};
use super::{Step, Stop, Translator, moments, numeric, types};
use crate::lowered::Node;
use pgcatalog::function::{self, Returns, Spans, order};
use sqltext::error::{SqlError, state};

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
    ("row_to_json", "json"),
    ("bool_and", "min"),
    ("every", "min"),
    ("bool_or", "max"),
    ("chr", "char"),
    ("char_length", "length"),
    ("character_length", "length"),
];

/// What a function is called in SQLite; the name is in lower case.
pub(super) fn renamed(name: &str) -> &str {
    RENAMED.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
}

/// How the names of functions of SQL/JSON's paths begin.
const OF_PATHS: &str = "jsonb_path_";

/// Functions whose arguments are of one type, which is what they return.
const AGREEING: &[&str] = &["coalesce", "greatest", "least", "nullif", "ifnull"];

/// Functions that take numbers only, where SQLite's of the same name take a text for one.
const OF_NUMBERS: &[&str] = &[
    "abs",
    "avg",
    "cbrt",
    "ceil",
    "ceiling",
    "degrees",
    "exp",
    "floor",
    "ln",
    "log",
    "mod",
    "power",
    "radians",
    "round",
    "sign",
    "sqrt",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "trunc",
    "var_pop",
    "var_samp",
    "variance",
];

impl<'a> Translator<'a, '_> {
    /// A call with all that stands behind it.
    pub(super) fn function(&mut self, function: &Function) -> Step<Out<'a>> {
        if let Some(own) = self.own_function() {
            return self.own_value(&own, function);
        }
        let list = match &function.args {
            FunctionArguments::Subquery(query) => return self.array_of_query(query),
            FunctionArguments::None => return self.constant(false)?.ok_or(Stop::Unknown),
            FunctionArguments::List(list) => list,
        };
        if let Some(constant) = self.constant(true)? {
            return Ok(constant);
        }
        let (out, mut parts, token) = self.qualified()?;
        let name = parts.pop().unwrap_or_default();
        if token.kind == Kind::Word && name.eq_ignore_ascii_case("row") && parts.is_empty() {
            let parts: Option<Vec<Expr>> = list.args.iter().map(|arg| expression_of(arg).cloned()).collect();
            return Ok(self.list(&parts.ok_or(Stop::Unknown)?)?.labelled("row"));
        }
        if !function.within_group.is_empty() {
            return self.ordered_set(&name, token, list, function);
        }
        if parts.is_empty() && Self::is_distinct_texts(&name, list) {
            return self.distinct_texts(list, function);
        }
        let arguments = list.args.iter().map(argument_of).collect::<Option<Vec<_>>>().ok_or(Stop::Unknown)?;
        if let Some(value) = self.spread_call(token, &name, &arguments)? {
            return Ok(value);
        }
        let begin = self.at;
        if parts.is_empty() && token.kind == Kind::Word && ends_with_arguments(function) {
            if let Some(object) = self.object_of_arrays(&name.to_ascii_lowercase(), &arguments)? {
                return Ok(object);
            }
            self.at = begin;
        }
        self.call(out, &name, token, &arguments, Some((list, function)))
    }

    /// A call from the parenthesis on; `out` is the name as it was written.
    pub(super) fn call(
        &mut self,
        out: Out<'a>,
        name: &str,
        token: Token<'a>,
        list: &[Argument<'_>],
        behind: Option<(&FunctionArgumentList, &Function)>,
    ) -> Step<Out<'a>> {
        let mut lower = name.to_ascii_lowercase();
        let bare = token.kind == Kind::Word;
        if bare && lower.starts_with(OF_PATHS) {
            let message = format!("{lower} is not supported");
            let error = SqlError::new(state::NOT_SUPPORTED, message).at(self.sql, token.start);
            let hint = "take parts of the value with #> and ->, or its elements with jsonb_array_elements";
            return Err(Stop::Error(error.with_hint(hint)));
        }
        let mut out = out;
        if let Some(function) = with_path(&lower, list).filter(|_| bare) {
            lower = function.to_owned();
            out = Out::made(function, token.start);
        }
        let mut out = match RENAMED.iter().find(|(from, _)| bare && *from == lower) {
            Some((_, to)) => Out::made(to, token.start),
            None if bare && lower == "pg_typeof" => Out::default(),
            None => out,
        };
        let open = self.sign("(")?;
        let clauses = behind.map_or(&[][..], |(list, _)| &list.clauses);
        let Arguments { told: arguments, only, inner, numeric, ordered, from_start } =
            self.arguments(&lower, list, clauses)?;
        if bare && function::is_ordered(&lower) && clauses.is_empty() {
            let message = format!("WITHIN GROUP is required for ordered-set aggregate {lower}");
            return Err(self.error_at(Some(token), "42809", message));
        }
        if bare
            && matches!(lower.as_str(), "to_json" | "to_jsonb")
            && arguments.iter().any(|told| told.is_json())
        {
            // It is JSON already.
            out = Out::made("json", token.start);
        }
        if bare && lower == "int8_fit" && inner.text().trim_start().starts_with("int8_fit(") {
            // A view's text has it around arithmetic.
            self.sign(")")?;
            return Ok(inner.typed(SqlType::Int8));
        }
        if numeric == Numbers::Refused {
            let message = format!("function {lower} does not take numeric");
            let refused = SqlError::new("42883", message).at(self.sql, token.start);
            return Err(Stop::Error(refused.with_hint("cast the number to the type that is meant")));
        }
        if bare && lower == "substring" && arguments.get(1).is_some_and(|second| second.is_pattern()) {
            if arguments.len() > 2 {
                return Err(self.error_at(
                    Some(token),
                    state::NOT_SUPPORTED,
                    "a regular expression of SQL is not supported",
                ));
            }
            out = Out::made("regexp_substr", token.start);
        } else if bare && matches!(lower.as_str(), "substr" | "substring") && !from_start {
            out = Out::made("text_part", token.start);
        }
        if let (
            true,
            Numbers::Exact(function) | Numbers::Float(function) | Numbers::Spans(Spans::Function(function)),
        ) = (bare, numeric)
        {
            out = Out::made(function, token.start);
        }
        if bare
            && lower == "age"
            && arguments.first().is_some_and(|argument| argument.ty == Some(SqlType::Xid))
        {
            // Of a transaction, not of a moment.
            "xid_age".clone_into(&mut lower);
            out = Out::made("xid_age", token.start);
        }
        if bare && ordered {
            out = Out::made(format!("{lower}_of"), token.start);
        }
        if bare && lower == "format" && is_postgresqls_pattern(&inner.text()) {
            out = Out::made("format_values", token.start);
        }
        let node = only.map(|argument| argument.called(out.text().trim()));
        out.push(self.copied(open));
        out.push(inner);
        self.pass_sign(")", &mut out)?;
        if let Some((_, function)) = behind {
            self.behind_call(function, &mut out)?;
        }
        if bare && lower == "pg_typeof" {
            return Ok(type_of_argument(out, &arguments));
        }
        if let Some(node) = node.filter(|_| behind.is_none_or(|(_, function)| ends_with_arguments(function)))
        {
            out = out.meaning(node);
        }
        if let Some((_, empty)) = OF_NO_ROWS.iter().find(|(name, _)| bare && *name == lower) {
            out = out.wrapped("nullif(", &format!(", '{empty}')"));
        }
        if bare && OF_JSONB.contains(&lower.as_str()) {
            out = out.wrapped("cast_jsonb(", ")");
        }
        let ty = if lower == "timezone" {
            let zoned = arguments.get(1).is_some_and(|moment| moment.ty == Some(SqlType::Timestamptz));
            Some(if zoned { SqlType::Timestamp } else { SqlType::Timestamptz })
        } else if lower == "unnest" {
            arguments.first().and_then(|array| array.ty).map(SqlType::scalar)
        } else {
            function::returns(&lower).and_then(|returns| returned(returns, &arguments))
        };
        // A date is a moment to it.
        let zoned = lower == "date_trunc" && (arguments.len() > 2 || ty == Some(SqlType::Date));
        let ty = if zoned { Some(SqlType::Timestamptz) } else { ty };
        Ok(numbered(out.of_type(ty), &lower, numeric).labelled(label_of(&lower)))
    }

    /// The arguments, and what is known of their types.
    fn arguments(
        &mut self,
        name: &str,
        list: &[Argument<'_>],
        clauses: &[FunctionArgumentClause],
    ) -> Step<Arguments<'a>> {
        let mut all = Out::default();
        let distinct = self.peek().is_some_and(|token| token.is("DISTINCT"));
        let bare = self.peek().is_some_and(|token| !token.is_any(&["DISTINCT", "ALL"])) && clauses.is_empty();
        self.pass_words(&["DISTINCT", "ALL"], &mut all);
        let mut parts: Vec<Out<'a>> = Vec::new();
        let mut commas = Vec::new();
        for (at, argument) in list.iter().enumerate() {
            if at > 0 {
                commas.push(self.sign(",")?);
            }
            parts.push(self.argument(name, (at, argument))?);
        }
        if list.iter().any(|argument| matches!(argument, Argument::Named(..))) {
            parts = Self::in_their_places(name, list, parts)?;
        }
        let clauses = self.clauses_of_call(clauses)?;
        self.agree(name, &mut parts)?;
        let types = parts.iter().map(Told::of).collect();
        let numeric = Numbers::of(name, &parts);
        for part in &mut parts {
            *part = numeric.argument(name, std::mem::take(part), distinct);
            if distinct {
                *part = keyed(std::mem::take(part));
            }
        }
        let from_start = is_from_start(parts.get(1), parts.get(2));
        let ordered = type_compared(name, &parts);
        if let Some(ty) = ordered.filter(|_| self.of_row) {
            // What is computed for each row knows no labels but those of its own columns.
            let message = format!(
                "{name} of {} is not supported in the expression of a column or a check",
                ty.sql_name()
            );
            let error = SqlError::new(state::NOT_SUPPORTED, message);
            return Err(Stop::Error(error.with_hint("use CASE with < and =")));
        }
        if let Some(ty) = ordered {
            parts.push(Out::made(ty.oid().to_string(), 0));
        }
        if bare
            && matches!(name, "min" | "max")
            && let [part] = &mut parts[..]
            && part.ty != Some(SqlType::Interval)
        {
            let value = std::mem::take(part);
            *part = self.sort_key(value);
        }
        let only = if bare { Only::of(&mut parts, list) } else { None };
        for (at, part) in parts.into_iter().enumerate() {
            match at.checked_sub(1).map(|before| commas.get(before)) {
                Some(Some(comma)) => all.push(self.copied(*comma)),
                Some(None) => all.push_str(","),
                None => {}
            }
            all.push(part);
        }
        all.push(clauses);
        Ok(Arguments { told: types, only, inner: all, numeric, ordered: ordered.is_some(), from_start })
    }

    /// What an aggregate may have behind its arguments.
    fn clauses_of_call(&mut self, clauses: &[FunctionArgumentClause]) -> Step<Out<'a>> {
        let mut out = Out::default();
        for clause in clauses {
            let FunctionArgumentClause::OrderBy(terms) = clause else { return Err(Stop::Unknown) };
            self.pass_words(&["ORDER", "BY"], &mut out);
            out.push(self.terms(terms, &[], Sorted::Results)?.0);
        }
        Ok(out)
    }

    /// One argument.
    fn argument(&mut self, name: &str, (at, argument): (usize, &Argument<'_>)) -> Step<Out<'a>> {
        let argument = match argument {
            Argument::Value(value) => Some(*value),
            Argument::Named(_, value) => {
                // The name, and `=>` or `:=`.
                self.at += 2;
                Some(*value)
            }
            Argument::Star => None,
        };
        let Some(argument) = argument else {
            if OF_ROWS.contains(&name)
                && let Some(row) = self.star_of_row()?
            {
                return Ok(argument_for(name, at, row));
            }
            let mut out = Out::default();
            while !self.next_is_sign(0, ")") && !self.next_is_sign(0, ",") && self.peek().is_some() {
                self.pass(&mut out);
            }
            return Ok(out);
        };
        let row = if OF_ROWS.contains(&name) { self.whole_row(argument)? } else { None };
        let around = self.row_of;
        if OF_ROWS.contains(&name) && matches!(bare(argument), Expr::Subquery(_)) {
            self.row_of = Some(self.queries.len() + 1);
        }
        let mut argument = match row {
            Some(row) => row,
            None => self.expression(argument)?,
        };
        self.row_of = around;
        if at == 1
            && matches!(name, "jsonb_set_path" | "jsonb_insert_path")
            && let Some(texts) = SqlType::Text.array()
        {
            self.suggest(&mut argument, texts)?;
        }
        if name == "array_agg" {
            self.check_element(argument.ty, self.peek())?;
        }
        Ok(argument_for(name, at, argument))
    }

    /// `t.*` as the row that it is.
    fn star_of_row(&mut self) -> Step<Option<Out<'a>>> {
        if !self.next_is_sign(1, ".") || !self.next_is_sign(2, "*") {
            return Ok(None);
        }
        let Some(name) = self.peek() else { return Ok(None) };
        let row = self.whole_row(&Expr::Identifier(Ident::new(unquoted(name.text))))?;
        self.at += if row.is_some() { 2 } else { 0 };
        Ok(row)
    }

    /// Arguments in the order of the function's parameters. In the place of one that may be left out stands 0.
    fn in_their_places(name: &str, list: &[Argument<'_>], parts: Vec<Out<'a>>) -> Step<Vec<Out<'a>>> {
        let unfit = || {
            let message = format!("function {name} with these arguments does not exist");
            let error = SqlError::new(state::UNKNOWN_FUNCTION, message);
            Stop::Error(error.with_hint("its parameters have other names, or another number"))
        };
        let Some((known, fewest)) = function::parameters(name) else { return Err(unfit()) };
        let mut given: Vec<Option<Out<'a>>> = vec![None; known.len()];
        let mut last = 0;
        for (at, (argument, part)) in list.iter().zip(parts).enumerate() {
            let at = match argument {
                Argument::Named(named, _) => known.iter().position(|own| own.eq_ignore_ascii_case(named)),
                _ => Some(at),
            };
            let slot = at.and_then(|at| given.get_mut(at)).filter(|slot| slot.is_none()).ok_or_else(unfit)?;
            *slot = Some(part);
            last = last.max(at.unwrap_or_default());
        }
        given.truncate(last + 1);
        let slots = given.into_iter().enumerate();
        slots
            .map(|(at, slot)| match slot {
                Some(part) => Ok(part),
                None if at >= fewest => Ok(Out::made("0", 0).typed(SqlType::Int4)),
                None => Err(unfit()),
            })
            .collect()
    }

    /// Tells arguments their types.
    fn agree(&mut self, name: &str, parts: &mut [Out<'a>]) -> Step<()> {
        if AGREEING.contains(&name) {
            let mismatch = types::mismatch(parts.iter().map(|part| part.ty));
            if name == "nullif" && mismatch.is_some() {
                // It is a comparison.
                let equal = self.peek().map(|token| Token { text: "=", ..token }).ok_or(Stop::Unknown)?;
                return Err(self.no_operator(&parts[0], equal, &parts[1]));
            }
            self.refuse_mismatch(&name.to_uppercase(), mismatch, self.peek())?;
            let wider = |one: SqlType, other| {
                types::arithmetic(Some(one), Some(other)).unwrap_or_else(|| types::wider_moment(one, other))
            };
            let Some(ty) = parts.iter().filter_map(|part| part.ty).reduce(wider) else { return Ok(()) };
            for part in parts {
                if ty.is_number() {
                    self.value_as(part, ty)?;
                }
                self.suggest(part, ty)?;
                *part = moments::widened(std::mem::take(part), ty);
            }
            return Ok(());
        }
        if name == "age" {
            self.agree_on_moment(parts)?;
        }
        // PostgreSQL takes a parameter for a pattern, unless it is declared as a number.
        if name == "substring"
            && let [_, second, ..] = parts
            && second.ty.is_none()
            && second.parameter().is_some()
        {
            self.suggest(second, SqlType::Text)?;
        }
        let counts = |part: &Out<'a>| {
            let texts = name == "substring" && part.ty.is_some_and(types::is_text);
            texts || part.ty.is_none_or(|ty| types::is_integer(ty) || ty == SqlType::Unknown)
        };
        if matches!(name, "substr" | "substring") && !parts.iter().skip(1).all(counts) {
            return Err(self.no_function(name, parts));
        }
        for (part, ty) in parts.iter_mut().zip(function::argument_types(name)) {
            self.suggest(part, *ty)?;
        }
        let strange = |(part, ty): (&Out<'a>, &SqlType)| {
            let spans = part.ty == Some(SqlType::Interval) && function::takes_spans(name);
            ty.is_number() && part.ty.is_some_and(types::is_no_number) && !spans
        };
        let is_text = |part: &Out<'a>| part.ty.is_some_and(types::is_text);
        let numbers = if OF_NUMBERS.contains(&name) { parts.len() } else { 0 };
        if parts.iter().zip(function::argument_types(name)).any(strange)
            || (!self.is_kept() && parts[..numbers].iter().any(is_text))
        {
            return Err(self.no_function(name, parts));
        }
        Ok(())
    }

    /// Two moments of which one says how the other is meant that has no type: without a zone only beside such a one.
    fn agree_on_moment(&mut self, parts: &mut [Out<'a>]) -> Step<()> {
        let has = |parts: &[Out<'a>], ty| parts.iter().any(|part| part.ty == Some(ty));
        let local = has(parts, SqlType::Timestamp) && !has(parts, SqlType::Timestamptz);
        for part in parts.iter_mut().filter(|part| part.ty.is_none()) {
            self.suggest(part, if local { SqlType::Timestamp } else { SqlType::Timestamptz })?;
        }
        if has(parts, SqlType::Timestamptz) {
            for part in parts {
                *part = moments::of_calendar(std::mem::take(part));
            }
        }
        Ok(())
    }

    /// The error for a function that takes no values of these types.
    pub(super) fn no_function(&self, name: &str, arguments: &[Out<'a>]) -> Stop {
        let told = |part: &Out<'_>| part.ty.map_or_else(|| "unknown".to_owned(), SqlType::sql_name);
        let types: Vec<String> = arguments.iter().map(told).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        self.error_at(self.peek(), state::UNKNOWN_FUNCTION, message)
    }

    /// `FILTER (...)`, `OVER (...)` behind a call.
    pub(super) fn behind_call(&mut self, function: &Function, out: &mut Out<'a>) -> Step<()> {
        if let Some(condition) = &function.filter {
            self.pass_word("FILTER", out)?;
            self.pass_sign("(", out)?;
            self.pass_word("WHERE", out)?;
            out.push(self.expression(condition)?);
            self.pass_sign(")", out)?;
        }
        // `NULLS` alone belongs to the order that the call is sorted by.
        if self.peek().is_some_and(|token| token.is_any(&["IGNORE", "RESPECT"])) {
            self.pass(out);
            self.pass_word("NULLS", out)?;
        }
        match &function.over {
            None => Ok(()),
            Some(WindowType::NamedWindow(_)) => {
                self.pass_word("OVER", out)?;
                self.pass(out);
                Ok(())
            }
            Some(WindowType::WindowSpec(window)) => {
                self.pass_word("OVER", out)?;
                self.window(window, out)
            }
        }
    }

    /// `(PARTITION BY a ORDER BY b ROWS ...)`
    pub(super) fn window(&mut self, window: &WindowSpec, out: &mut Out<'a>) -> Step<()> {
        self.pass_sign("(", out)?;
        if window.window_name.is_some() {
            self.pass(out);
        }
        if !window.partition_by.is_empty() {
            self.pass_words(&["PARTITION", "BY"], out);
            for (at, term) in window.partition_by.iter().enumerate() {
                if at > 0 {
                    self.pass_sign(",", out)?;
                }
                out.push(keyed(self.expression(term)?));
            }
        }
        if !window.order_by.is_empty() {
            self.pass_words(&["ORDER", "BY"], out);
            out.push(self.terms(&window.order_by, &[], Sorted::Results)?.0);
        }
        while !self.next_is_sign(0, ")") && self.peek().is_some() {
            self.pass(out);
        }
        self.pass_sign(")", out)
    }

    /// Calls with words between their arguments, and such as the grammar has under their names.
    pub(super) fn worded_call(&mut self, expr: &Expr) -> Step<Out<'a>> {
        match expr {
            Expr::Extract { expr, .. } => self.extract(expr),
            Expr::Position { expr, r#in } => self.position(expr, r#in),
            Expr::Substring { expr, substring_from, substring_for, special, .. } => {
                let (from, count) = (substring_from.as_deref(), substring_for.as_deref());
                if *special || (from.is_none() && count.is_none()) {
                    return self.plain_call([Some(&**expr), from, count].into_iter().flatten());
                }
                self.substring(expr, from, count)
            }
            Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
                if trim_where.is_none() && trim_what.is_none() {
                    let characters = trim_characters.iter().flatten();
                    return self.plain_call([&**expr].into_iter().chain(characters));
                }
                self.trim(trim_what.as_deref(), expr)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.overlay([expr, overlay_what, overlay_from], overlay_for.as_deref())
            }
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => match field {
                CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => self.plain_call([&**expr]),
                _ => Err(Stop::Unknown),
            },
            _ => Err(Stop::Unknown),
        }
    }

    fn plain_call<'e>(&mut self, arguments: impl IntoIterator<Item = &'e Expr>) -> Step<Out<'a>> {
        let token = self.token()?;
        let arguments: Vec<Argument<'_>> = arguments.into_iter().map(Argument::Value).collect();
        self.call(self.copied(token), token.text, token, &arguments, None)
    }

    /// An argument behind a word.
    fn behind(&mut self, word: &str, argument: &Expr) -> Step<Out<'a>> {
        self.keyword(word)?;
        self.expression(argument)
    }

    /// `extract(field FROM moment)`
    fn extract(&mut self, moment: &Expr) -> Step<Out<'a>> {
        self.keyword("EXTRACT")?;
        self.sign("(")?;
        let field = self.token()?;
        if !matches!(field.kind, Kind::Word | Kind::Text) {
            return Err(Stop::Unknown);
        }
        let moment = self.behind("FROM", moment)?;
        self.sign(")")?;
        let field = Out::made(format!("'{}'", field.text.trim_matches('\'').to_lowercase()), field.start);
        Ok(call("date_part", [field, moment]).typed(SqlType::Numeric).formed(Form::Float).labelled("extract"))
    }

    /// `position(part IN text)`
    fn position(&mut self, part: &Expr, text: &Expr) -> Step<Out<'a>> {
        self.keyword("POSITION")?;
        self.sign("(")?;
        let mut part = self.expression(part)?;
        let mut text = self.behind("IN", text)?;
        self.sign(")")?;
        self.suggest(&mut part, SqlType::Text)?;
        self.suggest(&mut text, SqlType::Text)?;
        Ok(call("instr", [text, part]).typed(SqlType::Int4).labelled("position"))
    }

    /// `substring(text FROM start FOR count)` or `substring(text FROM pattern)`
    fn substring(&mut self, text: &Expr, from: Option<&Expr>, count: Option<&Expr>) -> Step<Out<'a>> {
        self.token()?;
        self.sign("(")?;
        let mut text = self.expression(text)?;
        let from = from.map(|from| self.behind("FROM", from)).transpose()?;
        let count = count.map(|count| self.behind("FOR", count)).transpose()?;
        self.sign(")")?;
        self.suggest(&mut text, SqlType::Text)?;
        let start = text.start();
        let ty = text.ty.unwrap_or(SqlType::Text);
        let from = from.unwrap_or_else(|| Out::made("1", start));
        let pattern = Told::of(&from).is_pattern();
        let name = if is_from_start(Some(&from), count.as_ref()) { "substr" } else { "text_part" };
        let out = match count {
            Some(count) => call(name, [text, from, count]),
            None if pattern => call("regexp_substr", [text, from]),
            None => call(name, [text, from]),
        };
        Ok(out.typed(ty).labelled("substring"))
    }

    /// `trim(BOTH characters FROM text)`
    fn trim(&mut self, characters: Option<&Expr>, text: &Expr) -> Step<Out<'a>> {
        self.keyword("TRIM")?;
        self.sign("(")?;
        let side = self.peek().filter(|token| token.is_any(&["LEADING", "TRAILING", "BOTH"]));
        self.at += usize::from(side.is_some());
        let (name, label) = match side {
            Some(side) if side.is("LEADING") => ("ltrim", "ltrim"),
            Some(side) if side.is("TRAILING") => ("rtrim", "rtrim"),
            _ => ("trim", "btrim"),
        };
        let characters = characters.map(|characters| self.expression(characters)).transpose()?;
        self.take_word("FROM");
        let text = self.expression(text)?;
        let out = match characters {
            Some(characters) => call(name, [text, characters]),
            None => call(name, [text]),
        };
        self.sign(")")?;
        Ok(out.typed(SqlType::Text).labelled(label))
    }

    /// `overlay(text PLACING other FROM start FOR count)`
    fn overlay(&mut self, [text, other, from]: [&Expr; 3], count: Option<&Expr>) -> Step<Out<'a>> {
        self.keyword("OVERLAY")?;
        self.sign("(")?;
        let text = self.expression(text)?;
        let other = self.behind("PLACING", other)?;
        let from = self.behind("FROM", from)?;
        let out = match count {
            Some(count) => call("overlay", [text, other, from, self.behind("FOR", count)?]),
            None => call("overlay", [text, other, from]),
        };
        self.sign(")")?;
        Ok(out.typed(SqlType::Text))
    }
}

/// What stands between two commas of a call.
pub(super) enum Argument<'e> {
    Value(&'e Expr),
    /// `name => value`
    Named(&'e str, &'e Expr),
    /// `*` or `t.*`
    Star,
}

impl<'e> Argument<'e> {
    pub(super) fn value(&self) -> Option<&'e Expr> {
        match self {
            Self::Value(value) => Some(value),
            Self::Named(..) | Self::Star => None,
        }
    }
}

/// An argument as this walk knows it; `None`: it does not.
pub(super) fn argument_of(argument: &FunctionArg) -> Option<Argument<'_>> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(Argument::Value(value)),
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::Wildcard) => {
            Some(Argument::Star)
        }
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some(Argument::Named(&name.value, value))
        }
        _ => None,
    }
}

/// What PostgreSQL calls a column of it.
fn label_of(function: &str) -> &str {
    if function == "trim" {
        return "btrim";
    }
    function
        .strip_suffix("_path")
        .filter(|name| matches!(*name, "jsonb_set" | "jsonb_insert"))
        .unwrap_or(function)
}

/// The function of ours for one that has a path of PostgreSQL's: SQLite's of the same name begins with `$`.
fn with_path(name: &str, list: &[Argument<'_>]) -> Option<&'static str> {
    let function = match name {
        "jsonb_set" => "jsonb_set_path",
        "jsonb_insert" => "jsonb_insert_path",
        _ => return None,
    };
    let of_sqlite = match list.get(1)?.value()? {
        Expr::Value(path) => {
            matches!(&path.value, Literal::SingleQuotedString(path) if path.starts_with('$'))
        }
        _ => false,
    };
    (!of_sqlite).then_some(function)
}

pub(super) fn expression_of(argument: &FunctionArg) -> Option<&Expr> {
    argument_of(argument)?.value()
}

/// What stands between the parentheses of a call.
struct Arguments<'a> {
    told: Vec<Told>,
    only: Option<Only>,
    inner: Out<'a>,
    numeric: Numbers,
    /// The last of them says the type whose values the function compares.
    ordered: bool,
    /// As a part of a text they begin within it.
    from_start: bool,
}

/// Whether it is written that a part of a text begins within it and is not shorter than nothing: SQLite counts what
/// lies before the first character from the end.
fn is_from_start(start: Option<&Out<'_>>, count: Option<&Out<'_>>) -> bool {
    let number = |out: &Out<'_>| out.text().trim().parse::<i64>().ok();
    start.and_then(number).is_some_and(|start| start >= 1)
        && count.is_none_or(|count| number(count).is_some_and(|count| count >= 0))
}

/// The type by whose order or equality a function chooses, where the texts of its values do not say it.
fn type_compared(name: &str, parts: &[Out<'_>]) -> Option<SqlType> {
    let special = |ty: &SqlType| order::collation(*ty).is_some() && *ty != SqlType::Interval;
    match name {
        "greatest" | "least" => parts.iter().filter_map(|part| part.ty).find(special),
        "array_position" | "array_remove" | "array_replace" => {
            parts.first()?.ty.filter(|ty| order::has_spellings(*ty)).map(SqlType::scalar)
        }
        _ => None,
    }
}

/// The only argument of a call.
enum Only {
    Star,
    Value(Node),
}

impl Only {
    fn of(parts: &mut [Out<'_>], list: &[Argument<'_>]) -> Option<Self> {
        match (parts, list) {
            ([part], [Argument::Value(_)]) => Some(Self::Value(part.take_node())),
            ([part], [Argument::Star]) if part.text().trim() == "*" => Some(Self::Star),
            _ => None,
        }
    }

    fn called(self, name: &str) -> Node {
        let arguments = match self {
            Self::Star => Vec::new(),
            Self::Value(node) => vec![node],
        };
        Node::Call { name: name.to_owned(), arguments }
    }
}

/// Whether nothing stands behind the arguments of a call.
fn ends_with_arguments(function: &Function) -> bool {
    function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty()
}

/// Whether the arguments of `format` begin with a pattern that only PostgreSQL's has a meaning for: SQLite's is C's.
fn is_postgresqls_pattern(arguments: &str) -> bool {
    let pattern = arguments.trim_start().strip_prefix('\'').and_then(|rest| rest.split('\'').next());
    pattern.is_some_and(|pattern| ["%I", "%L", "$s", "$I", "$L"].iter().any(|form| pattern.contains(form)))
}

/// A call that was made, typed by the function's own line.
pub(super) fn finished_call<'a>(out: Out<'a>, name: &str, arguments: &[Told], numeric: Numbers) -> Out<'a> {
    let ty = function::returns(name).and_then(|returns| returned(returns, arguments));
    numbered(out.of_type(ty), name, numeric).labelled(name)
}

/// A call's result with what is known of its digits.
fn numbered<'a>(out: Out<'a>, name: &str, numeric: Numbers) -> Out<'a> {
    // These give texts, when they are called by their names too.
    let own = name.starts_with("numeric_") && name != "numeric_number";
    if own && out.ty == Some(SqlType::Numeric) {
        return numeric::settled(out);
    }
    let out = match numeric {
        Numbers::Exact(function) => match function::returns(function) {
            Some(Returns::Type(ty)) => out.typed(ty),
            _ => out.typed(SqlType::Numeric),
        },
        Numbers::Float(function) => match function::returns(function) {
            Some(Returns::Type(ty)) => out.typed(ty),
            _ => out.typed(SqlType::Float8),
        },
        Numbers::Spans(Spans::Keys) => out.wrapped("interval_of_key(", ")").typed(SqlType::Interval),
        Numbers::Spans(Spans::Function(_)) => out.typed(SqlType::Interval),
        _ => out,
    };
    let out = numeric.result(out, function::returns(name) == Some(Returns::Type(SqlType::Numeric)));
    if out.ty.is_some_and(is_text) { numeric::collated(out) } else { out }
}

/// `pg_typeof(value)`: the text says the type, and the value is computed for nothing.
fn type_of_argument<'a>(call: Out<'a>, arguments: &[Told]) -> Out<'a> {
    let told = arguments.first().copied().unwrap_or_default();
    let unknown = if told.is_open() { SqlType::Unknown } else { SqlType::Text };
    let oid = told.ty.unwrap_or(unknown).oid();
    call.wrapped("iif(0, ", &format!(", {oid})")).typed(SqlType::Regtype).labelled("pg_typeof")
}

/// What a function returns, given its arguments.
fn returned(returns: Returns, arguments: &[Told]) -> Option<SqlType> {
    use SqlType::{Bytea, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Text};
    let argument = arguments.first().and_then(|argument| argument.ty);
    match returns {
        Returns::Type(ty) => Some(ty),
        Returns::Open => None,
        Returns::Argument => argument,
        Returns::Second => arguments.get(1).and_then(|argument| argument.ty),
        Returns::Common => common(arguments),
        Returns::Chosen => common(&chosen(arguments)),
        Returns::Part => Some(if argument == Some(Bytea) { Bytea } else { Text }),
        Returns::Texts => Text.array(),
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
