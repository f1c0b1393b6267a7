//! What lies around expressions: lists of columns, `FROM`, and everything that is copied as it stands.

use store::definition::SqlType;

use super::expression::power;
use super::out::{Form, Out};
use super::types::Told;
use super::{Item, Step, Translator, numeric};
use crate::error::state;
use crate::text::token::{quoted_name, unquoted};
use sqltext::token::{Kind, Token};

/// Words that end the tables of a `FROM`.
const AFTER_FROM: &[&str] = &[
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "FOR",
    "SET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "RETURNING",
    "ON",
    "SELECT",
    "VALUES",
];
/// Words that cannot be a column's name without `AS`.
const NO_ALIAS: &[&str] = &[
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "FOR",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "WINDOW",
    "INTO",
    "AS",
    "ON",
    "FILTER",
    "OVER",
    "WITHIN",
    "ASC",
    "DESC",
    "NULLS",
    "COLLATE",
];

impl<'a> Translator<'a, '_> {
    /// Everything up to the parenthesis that closes, or the end.
    pub(super) fn sequence(&mut self) -> Step<Out<'a>> {
        let mut out = Out::default();
        let mut from = false;
        while let Some(token) = self.peek() {
            if token.is_sign(")") {
                break;
            }
            if token.is_any(&["FROM", "JOIN"]) {
                from = true;
                self.at += 1;
                out.push(self.copied(token));
                self.table_item(&mut out)?;
                continue;
            }
            if from && token.is_sign(",") {
                self.at += 1;
                out.push(self.copied(token));
                self.table_item(&mut out)?;
                continue;
            }
            if from && token.is("ON") && self.peek_at(1).is_some_and(|next| next.is("CONFLICT")) {
                // SQLite's grammar would read a join's condition here.
                out.push(Out::made("WHERE true", token.start));
            }
            from &= !token.is_any(AFTER_FROM);
            if token.is_any(&["ORDER", "GROUP"])
                && self.peek_at(1).is_some_and(|next| next.is("BY"))
                && self.depth == 0
            {
                self.terms(token, &mut out)?;
                continue;
            }
            if token.is_any(&["WHERE", "HAVING"]) {
                self.at += 1;
                out.push(self.copied(token));
                out.push(self.condition()?.unwrap_or_default());
                continue;
            }
            if let Some(clause) = self.clause(token)? {
                out.push(clause);
                continue;
            }
            out.push(self.something(token)?);
        }
        Ok(out)
    }

    /// `ORDER BY` or `GROUP BY` of the outermost query, up to the first term that is no name of a column shown exactly.
    fn terms(&mut self, word: Token<'a>, out: &mut Out<'a>) -> Step<()> {
        let order = word.is("ORDER");
        for _ in 0..2 {
            if let Some(token) = self.take() {
                out.push(self.copied(token));
            }
        }
        loop {
            match self.term_shown(order) {
                Some(number) => out.push(number),
                None => match self.expression(power::ANYTHING)? {
                    Some(term) => out.push(term),
                    None => return Ok(()),
                },
            }
            while let Some(token) =
                self.peek().filter(|token| token.is_any(&["ASC", "DESC", "NULLS", "FIRST", "LAST"]))
            {
                out.push(self.taken(token));
            }
            let Some(comma) = self.peek().filter(|token| token.is_sign(",")) else { return Ok(()) };
            out.push(self.taken(comma));
        }
    }

    /// Up to the comma or parenthesis that ends it: mostly one expression.
    pub(super) fn sequence_part(&mut self) -> Step<Out<'a>> {
        let mut out: Option<Out<'a>> = None;
        while let Some(token) = self.peek() {
            if token.is_sign(")") || token.is_sign(",") {
                break;
            }
            let next = self.something(token)?;
            out = Some(match out {
                None => next,
                Some(mut before) => {
                    let (ty, label) = (before.ty, before.label.take());
                    before.push(next);
                    before.label = label;
                    before.of_type(ty)
                }
            });
        }
        Ok(out.unwrap_or_default())
    }

    /// An expression, or else the token as it stands.
    fn something(&mut self, token: Token<'a>) -> Step<Out<'a>> {
        if let Some(expression) = self.expression(power::ANYTHING)? {
            return Ok(expression);
        }
        self.at += 1;
        Ok(self.copied(token))
    }

    /// `SELECT` or `RETURNING` with the columns behind it.
    pub(super) fn select_list(&mut self, keyword: Token<'a>) -> Step<Out<'a>> {
        self.at += 1;
        let mut out = self.copied(keyword);
        if let Some(word) = self.peek().filter(|token| token.is_any(&["DISTINCT", "ALL"])) {
            self.at += 1;
            if self.peek().is_some_and(|token| token.is("ON")) {
                let message = "SELECT DISTINCT ON is not supported; use row_number() OVER (PARTITION BY ...)";
                return Err(self.error_at(Some(word), state::NOT_SUPPORTED, message));
            }
            out.push(self.copied(word));
        }
        if keyword.is("RETURNING") {
            // These are given, not assigned.
            self.targets = None;
            self.inserts = false;
        }
        let mut items = Vec::new();
        loop {
            // Behind a star the place of a column in the result is not known.
            let known = !items.iter().any(|item: &Item| item.star);
            let place = if known { items.len() } else { usize::MAX };
            let Some((item, column)) = self.column(items.len(), place)? else { break };
            items.push(item);
            out.push(column);
            match self.peek().filter(|token| token.is_sign(",")) {
                Some(comma) => {
                    self.at += 1;
                    out.push(self.copied(comma));
                }
                None => break,
            }
        }
        let returning = keyword.is("RETURNING");
        match self.queries.last_mut() {
            Some(Some(known)) if !returning => Item::join_arm(known, &items),
            Some(query) => *query = Some(items),
            None => {}
        }
        Ok(out)
    }

    /// One column of a list; `None` where there is none.
    fn column(&mut self, number: usize, place: usize) -> Step<Option<(Item, Out<'a>)>> {
        let star = if self.next_is_sign(0, "*") {
            1
        } else if self.next_is_sign(1, ".") && self.next_is_sign(2, "*") {
            3
        } else {
            0
        };
        if star > 0 {
            let place = self.at;
            let qualifier = (star == 3).then(|| self.peek().map(|name| unquoted(name.text))).flatten();
            let columns = self.star(place, qualifier.as_deref());
            let tokens = (0..star).filter_map(|_| self.take());
            let tokens: Vec<Token<'a>> = tokens.collect();
            let out = Out::joined(tokens.into_iter().map(|token| self.copied(token)), "");
            return Ok(Some((Item { star: true, columns, ..Item::default() }, out)));
        }
        let Some(mut column) = self.expression(power::ANYTHING)? else { return Ok(None) };
        let target =
            self.targets.as_ref().and_then(|targets| targets.get(number)).and_then(|target| target.ty);
        if let Some(ty) = target {
            self.assign(&mut column, ty)?;
        }
        if numeric::is_float(&column)
            && let Some(alias) = self.alias_ahead()
        {
            self.learn_float(&alias);
        }
        column = match target {
            Some(ty) => self.assigned_column(column, ty, place),
            None if self.inserts => column,
            None => self.shown_exactly(column, place),
        };
        let mut item = Item {
            star: false,
            columns: None,
            ty: column.ty,
            parameter: column.parameter(),
            label: column.label.clone(),
            mixed: false,
            told: Told::of(&column),
        };
        if let Some(alias) = self.alias(&mut column, NO_ALIAS) {
            if let Some(ty) = column.ty.or(item.ty) {
                self.learned.names.insert(alias.to_lowercase(), ty);
            }
            self.name_shown(place, &alias);
            item.label = Some(alias);
        }
        Ok(Some((item, column)))
    }

    /// The name that `AS name` or `name` gives next, which is not taken.
    fn alias_ahead(&mut self) -> Option<String> {
        let begin = self.at;
        let alias = self.alias(&mut Out::default(), NO_ALIAS);
        self.at = begin;
        alias
    }

    /// `AS name` or `name` behind something; pushes it and returns the name.
    fn alias(&mut self, out: &mut Out<'a>, not: &[&str]) -> Option<String> {
        let ty = out.ty;
        let with_as = self.peek().filter(|token| token.is("AS"));
        let name = self.peek_at(usize::from(with_as.is_some()))?;
        let fits = match name.kind {
            Kind::Word => with_as.is_some() || !name.is_any(not),
            Kind::Quoted => true,
            Kind::Text => with_as.is_some(),
            _ => false,
        };
        if !fits {
            return None;
        }
        if let Some(word) = with_as {
            self.at += 1;
            out.push(self.copied(word));
        }
        self.at += 1;
        out.push(self.copied(name));
        out.ty = ty;
        Some(unquoted(name.text))
    }

    /// A table, a function that is a table, or a query, with the names that it is given.
    fn table_item(&mut self, out: &mut Out<'a>) -> Step<()> {
        for word in ["LATERAL", "ONLY"] {
            if self.peek_at(1).is_some_and(|next| next.kind != Kind::Sign || next.is_sign("(")) {
                self.take_word(word);
            }
        }
        let Some(token) = self.peek() else { return Ok(()) };
        if token.is_sign("(") {
            let Some(query) = self.parenthesis()? else { return Ok(()) };
            if matches!(*query.form, Form::Query)
                && let Some((name, columns)) = self.alias_with_columns()
            {
                let name = quoted_name(&name);
                let columns: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
                let before = format!("(WITH {name}({}) AS ", columns.join(", "));
                out.push(query.wrapped(&before, &format!(" SELECT * FROM {name}) AS {name}")));
                return Ok(());
            }
            out.push(query);
            return Ok(());
        }
        if self.next_is_sign(1, "(")
            && token.kind == Kind::Word
            && let Some(table) = self.table_function(token)?
        {
            out.push(table);
        }
        Ok(())
    }

    /// `[AS] name (a, b)`, if it is next.
    pub(super) fn alias_with_columns(&mut self) -> Option<(String, Vec<String>)> {
        let begin = self.at;
        self.take_word("AS");
        let found = self.name_with_columns();
        if found.is_none() {
            self.at = begin;
        }
        found
    }

    fn name_with_columns(&mut self) -> Option<(String, Vec<String>)> {
        let name = self.take().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted))?;
        if !self.take_sign("(") {
            return None;
        }
        let mut columns = Vec::new();
        loop {
            let column = self.take().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted))?;
            columns.push(unquoted(column.text));
            // A type may follow, for a function that returns records.
            if self.peek().is_some_and(|token| token.kind == Kind::Word) {
                self.type_name().ok()?;
            }
            if !self.take_sign(",") {
                break;
            }
        }
        self.take_sign(")").then_some((unquoted(name.text), columns))
    }

    /// `name`, if it is next: another name of a table.
    pub(super) fn table_alias(&mut self) -> Option<String> {
        let begin = self.at;
        let explicit = self.take_word("AS");
        let name = self.take().filter(|token| match token.kind {
            Kind::Word => {
                explicit
                    || !token.is_any(AFTER_FROM)
                        && !token.is_any(&[
                            "JOIN", "CROSS", "LEFT", "INNER", "NATURAL", "RIGHT", "FULL", "WITH", "USING",
                        ])
            }
            Kind::Quoted => true,
            _ => false,
        });
        if name.is_none() {
            self.at = begin;
        }
        name.map(|name| unquoted(name.text))
    }

    /// The rows of `VALUES`.
    pub(super) fn values(&mut self, keyword: Token<'a>) -> Step<Out<'a>> {
        self.at += 1;
        let mut out = self.copied(keyword);
        let targets = self.targets.take();
        while self.next_is_sign(0, "(") {
            let Some(mut row) = self.parenthesis()? else { break };
            if let Some(targets) = &targets {
                let types: Vec<Option<SqlType>> = targets.iter().map(|target| target.ty).collect();
                self.assign_list(&mut row, &types)?;
                row = Self::defaulted(row, targets);
            }
            if let Form::List(parts) = &*row.form
                && let Some(query) = self.queries.last_mut()
                && targets.is_none()
            {
                let item = |(at, part): (usize, &Out<'_>)| Item {
                    star: false,
                    columns: None,
                    ty: part.ty,
                    parameter: part.parameter(),
                    label: Some(format!("column{}", at + 1)),
                    mixed: false,
                    told: Told::of(part),
                };
                let items: Vec<Item> = parts.iter().enumerate().map(item).collect();
                match query {
                    Some(known) => Item::join_arm(known, &items),
                    None => *query = Some(items),
                }
            }
            out.push(row);
            match self.peek().filter(|token| token.is_sign(",")) {
                Some(comma) => {
                    self.at += 1;
                    out.push(self.copied(comma));
                }
                None => break,
            }
        }
        Ok(out)
    }
}
