//! Clauses that PostgreSQL spells otherwise.

use store::definition::{ColumnDef, Identity, SqlType, TableDef};

use super::expression::power;
use super::out::{Form, Out};
use super::token::{Kind, Token};
use super::{Step, Translator};
use crate::error::state;
use crate::text::literal::sql_literal;
use crate::text::token::{quoted_name, unquoted};

/// The label of the word `DEFAULT` where a value is expected.
pub(super) const DEFAULT: &str = "default";

/// A statement that asked for locks is told so.
const NOT_LOCKED: &str = "rows are not locked by SELECT ... FOR UPDATE or SHARE: the first to commit wins, and a \
                          transaction that read what has changed answers 40001 when it writes the row";

/// What a value of an `INSERT` is assigned to.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    pub(super) ty: Option<SqlType>,
    /// The column's default as SQL.
    default: Option<String>,
}

impl<'a> Translator<'a, '_> {
    /// A clause that begins with this token; `None` for all others.
    pub(super) fn clause(&mut self, token: Token<'a>) -> Step<Option<Out<'a>>> {
        if token.kind != Kind::Word || self.next_is_sign(1, ".") {
            return Ok(None);
        }
        let next = |word: &str| self.peek_at(1).is_some_and(|token| token.is(word));
        if token.is("SELECT") || token.is("RETURNING") {
            return self.select_list(token).map(Some);
        }
        if token.is("VALUES") && self.next_is_sign(1, "(") {
            return self.values(token).map(Some);
        }
        if token.is("WITH") {
            return self.with(token).map(Some);
        }
        if token.is_any(&["LIMIT", "OFFSET"]) || (token.is("FETCH") && (next("FIRST") || next("NEXT"))) {
            return self.limits(token).map(Some);
        }
        if token.is("FOR") && (next("UPDATE") || next("SHARE") || next("NO") || next("KEY")) {
            return self.locking(token).map(Some);
        }
        if token.is("INSERT") || (token.is("REPLACE") && next("INTO")) {
            return Ok(Some(self.insert(token)));
        }
        if token.is("UPDATE") && next("ONLY") {
            self.at += 2;
            return Ok(Some(self.copied(token)));
        }
        if token.is("ON") && next("CONFLICT") && self.peek_at(2).is_some_and(|token| token.is("ON")) {
            return self.on_constraint(token).map(Some);
        }
        if token.is("USING") && !self.next_is_sign(1, "(") {
            let message = "DELETE ... USING is not supported; use WHERE ... IN (SELECT ...)";
            return Err(self.error_at(Some(token), state::NOT_SUPPORTED, message));
        }
        Ok(None)
    }

    /// `WITH [RECURSIVE] name [(columns)] AS (query), ...`: columns that are named have the types of the first arm.
    fn with(&mut self, token: Token<'a>) -> Step<Out<'a>> {
        let mut out = self.taken(token);
        if let Some(word) = self.peek().filter(|token| token.is("RECURSIVE")) {
            out.push(self.taken(word));
        }
        loop {
            let Some(name) = self.peek().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted))
            else {
                return Ok(out);
            };
            out.push(self.taken(name));
            let columns = self.named_columns(&mut out).unwrap_or_default();
            while let Some(word) = self.peek().filter(|token| token.is_any(&["AS", "NOT", "MATERIALIZED"])) {
                out.push(self.taken(word));
            }
            let Some(open) = self.peek().filter(|token| token.is_sign("(")) else { return Ok(out) };
            self.at += 1;
            let (query, items) = self.deeper(|own| own.query_behind(open))?;
            out.push(query);
            let known = items.iter().take_while(|item| !item.star).map(|item| self.type_of(item));
            let known: Vec<_> = columns.iter().zip(known).collect();
            for (column, ty) in known {
                if let Some(ty) = ty {
                    self.learned.insert(column.to_lowercase(), ty);
                }
            }
            let Some(comma) = self.peek().filter(|token| token.is_sign(",")) else { return Ok(out) };
            out.push(self.taken(comma));
        }
    }

    /// `LIMIT`, `OFFSET` and `FETCH FIRST` in any order, as SQLite's `LIMIT n OFFSET m`.
    fn limits(&mut self, first: Token<'a>) -> Step<Out<'a>> {
        let (mut limit, mut offset) = (None, None);
        loop {
            if self.take_word("LIMIT") {
                limit = if self.take_word("ALL") || self.take_word("NULL") { None } else { self.count()? };
                // SQLite's and MySQL's `LIMIT offset, count`.
                if self.take_sign(",") {
                    offset = limit.take();
                    limit = self.count()?;
                }
            } else if self.take_word("OFFSET") {
                offset = self.count()?;
                let _rows = self.take_word("ROWS") || self.take_word("ROW");
            } else if self.peek().is_some_and(|token| token.is("FETCH")) {
                self.at += 2;
                let one = self.peek().is_some_and(|token| token.is_any(&["ROW", "ROWS"]));
                limit = if one { Some(Out::made("1", first.start)) } else { self.count()? };
                self.fetch_tail()?;
            } else {
                break;
            }
        }
        let mut out = Out::made("LIMIT", first.start);
        out.push(limit.unwrap_or_else(|| Out::made("-1", first.start)));
        if let Some(offset) = offset {
            out.push_str(" OFFSET");
            out.push(offset);
        }
        Ok(out)
    }

    fn fetch_tail(&mut self) -> Step<()> {
        let _rows = self.take_word("ROWS") || self.take_word("ROW");
        if self.take_words(&["WITH", "TIES"]) {
            return Err(self.error_at(self.peek(), state::NOT_SUPPORTED, "WITH TIES is not supported"));
        }
        self.take_word("ONLY");
        Ok(())
    }

    fn count(&mut self) -> Step<Option<Out<'a>>> {
        let Some(mut count) = self.expression(power::OTHER)? else { return Ok(None) };
        self.suggest(&mut count, SqlType::Int8)?;
        Ok(Some(count))
    }

    /// `FOR UPDATE` and its relatives: nothing is locked, and the statement says so.
    fn locking(&mut self, first: Token<'a>) -> Step<Out<'a>> {
        while let Some(token) = self.peek().filter(|token| !token.is_sign(")") && !token.is_sign(";")) {
            if token.is("SKIP") {
                let message = "SKIP LOCKED is not supported: rows are not locked";
                return Err(self.error_at(Some(token), state::NOT_SUPPORTED, message));
            }
            self.at += 1;
        }
        self.notice = Some(NOT_LOCKED);
        Ok(Out::made("", first.start))
    }

    /// `INSERT INTO t (a, b)`: what follows is assigned to these.
    fn insert(&mut self, first: Token<'a>) -> Out<'a> {
        self.at += 1;
        let mut out = self.copied(first);
        while let Some(token) = self.peek() {
            self.at += 1;
            out.push(self.copied(token));
            if token.is("INTO") {
                break;
            }
        }
        let mut table = None;
        while let Some(name) = self.peek().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) {
            if name.is_any(&["VALUES", "SELECT", "WITH", "DEFAULT", "OVERRIDING"]) {
                break;
            }
            self.at += 1;
            out.push(self.copied(name));
            table = table.or_else(|| self.names.table(&unquoted(name.text)).cloned());
            if let Some(point) = self.peek().filter(|token| token.is_sign(".")) {
                self.at += 1;
                out.push(self.copied(point));
            }
        }
        let columns = self.named_columns(&mut out);
        if self.take_word("OVERRIDING") {
            self.at += 2;
        }
        let Some(table) = table else { return out };
        let target = |at: usize| {
            let column = &table.def().columns[at];
            Target {
                ty: Some(table.column_type(at)).filter(|ty| *ty != SqlType::Unknown),
                default: default_sql(column),
            }
        };
        let targets = match columns {
            Some(columns) => columns
                .iter()
                .map(|name| table.def().column_index(name).map_or_else(Target::default, target))
                .collect(),
            None => assignable(table.def()).map(target).collect(),
        };
        self.targets = Some(targets);
        out
    }

    fn named_columns(&mut self, out: &mut Out<'a>) -> Option<Vec<String>> {
        let query = self.peek_at(1).is_some_and(|token| token.is_any(&["SELECT", "WITH", "VALUES"]));
        if !self.next_is_sign(0, "(") || query {
            return None;
        }
        let mut columns = Vec::new();
        while let Some(token) = self.take() {
            out.push(self.copied(token));
            match token.kind {
                Kind::Word | Kind::Quoted => columns.push(unquoted(token.text)),
                _ if token.is_sign(")") => break,
                _ => {}
            }
        }
        Some(columns)
    }

    /// A row of `VALUES` with `DEFAULT` where it was written.
    pub(super) fn defaulted(row: Out<'a>, targets: &[Target]) -> Out<'a> {
        let Form::List(parts) = &*row.form else { return row };
        let is_default = |part: &Out<'_>| part.label.as_deref() == Some(DEFAULT);
        if !parts.iter().any(is_default) {
            return row;
        }
        let from = row.start();
        let parts = parts.iter().enumerate().map(|(at, part)| {
            if !is_default(part) {
                return part.clone();
            }
            let default = targets.get(at).and_then(|target| target.default.clone());
            Out::made(default.unwrap_or_else(|| "NULL".to_owned()), from)
        });
        let mut out = Out::made("(", from);
        out.push(Out::joined(parts, ","));
        out.push_str(")");
        out
    }

    /// The default of the column that is assigned.
    pub(super) fn default_of(&self, column: &Out<'a>) -> Out<'a> {
        let name = column.label.as_deref().unwrap_or_default();
        let default = self.names.tables().find_map(|table| {
            let at = table.def().column_index(name)?;
            default_sql(&table.def().columns[at])
        });
        Out::made(default.unwrap_or_else(|| "NULL".to_owned()), column.start())
    }

    /// `ON CONFLICT ON CONSTRAINT name` names the columns of the constraint.
    fn on_constraint(&mut self, first: Token<'a>) -> Step<Out<'a>> {
        self.at += 4;
        let name = self.take();
        let wanted = name.map(|name| unquoted(name.text)).unwrap_or_default();
        let columns = self.names.tables().find_map(|table| {
            let def = table.def();
            if wanted.eq_ignore_ascii_case(&format!("{}_pkey", table.name())) {
                return Some((table, def.primary_key.clone()));
            }
            let index =
                def.indexes.iter().find(|index| index.unique && index.name.eq_ignore_ascii_case(&wanted))?;
            Some((table, index.columns.clone()))
        });
        let Some((table, columns)) = columns.filter(|(_, columns)| !columns.is_empty()) else {
            let message = format!("constraint \"{wanted}\" does not exist");
            return Err(self.error_at(name, state::UNKNOWN_OBJECT, message));
        };
        let names: Vec<String> =
            columns.iter().map(|&at| quoted_name(&table.def().columns[at].name)).collect();
        Ok(Out::made(format!("ON CONFLICT ({})", names.join(", ")), first.start))
    }
}

/// The default of a column as SQL.
fn default_sql(column: &ColumnDef) -> Option<String> {
    let computed = || column.default_sql.as_ref().map(|sql| format!("({sql})"));
    column.default.as_ref().map(sql_literal).or_else(computed)
}

/// The columns that `INSERT` fills when it names none.
fn assignable(def: &TableDef) -> impl Iterator<Item = usize> {
    let given = |column: &ColumnDef| column.generated.is_none() && column.identity != Some(Identity::Always);
    def.visible_columns().filter(move |(_, column)| given(column)).map(|(at, _)| at)
}
