//! Clauses that PostgreSQL spells otherwise.

use sqltext::token::sql_literal;
use sqltext::token::{Kind, Token};
use store::Table;
use store::definition::{ColumnDef, Identity, SqlType, TableDef};

use super::expression::{call, power};
use super::out::{Form, Out};
use super::{Step, Translator, numeric, types};
use crate::error::state;
use crate::text::token::{quoted_name, unquoted};

/// The label of the word `DEFAULT` where a value is expected.
pub(super) const DEFAULT: &str = "default";

/// A statement that asked for locks gets this notice.
const NOT_LOCKED: &str = "rows are not locked by SELECT ... FOR UPDATE or SHARE: the first to commit wins, and a \
                          transaction that read what has changed answers 40001 when it writes the row";

/// What a value of an `INSERT` is assigned to.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    pub(super) ty: Option<SqlType>,
    /// The column's default as SQL.
    default: Option<String>,
}

impl Target {
    /// A column of a table by its name; one that is not there is for others to complain about.
    fn of(table: &Table, name: &str) -> Self {
        table.def().column_index(name).map_or_else(Self::default, |at| Self::column(table, at))
    }

    fn column(table: &Table, at: usize) -> Self {
        Self {
            ty: Some(table.column_type(at)).filter(|ty| *ty != SqlType::Unknown),
            default: default_sql(&table.def().columns[at]),
        }
    }

    /// Its default, in the place of the word.
    fn default_at<'a>(&self, from: usize) -> Out<'a> {
        Out::made(self.default.as_deref().unwrap_or("NULL"), from)
    }
}

/// Whether it is the word `DEFAULT`.
fn is_default(out: &Out<'_>) -> bool {
    out.label.as_deref() == Some(DEFAULT)
}

/// Whether truths are assigned to this type as words.
fn value_is_shown(ty: SqlType) -> bool {
    matches!(ty, SqlType::Text | SqlType::Varchar | SqlType::Bpchar | SqlType::Name)
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
        if token.is("SET") {
            return self.assignments(token).map(Some);
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
                    self.learned.names.insert(column.to_lowercase(), ty);
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

    /// `FOR UPDATE`, `FOR SHARE` and their weaker forms: nothing is locked, and the statement says so.
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
        let targets = match columns {
            Some(columns) => columns.iter().map(|name| Target::of(&table, name)).collect(),
            None => assignable(table.def()).map(|at| Target::column(&table, at)).collect(),
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
        if !parts.iter().any(is_default) {
            return row;
        }
        let from = row.start();
        let parts = parts.iter().enumerate().map(|(at, part)| {
            if !is_default(part) {
                return part.clone();
            }
            targets.get(at).map_or_else(|| Out::made("NULL", from), |target| target.default_at(from))
        });
        let mut out = Out::made("(", from);
        out.push(Out::joined(parts, ","));
        out.push_str(")");
        out
    }

    /// `SET a = value, (b, c) = (value, value)`: the names are columns of the table that is written, and each value
    /// becomes one of its column's type. It is no comparison: a column is never converted to the value's type.
    fn assignments(&mut self, keyword: Token<'a>) -> Step<Out<'a>> {
        let table = self.scopes.written(self.at).and_then(|name| self.names.table(name)).cloned();
        let target =
            |name: &str| table.as_ref().map_or_else(Target::default, |table| Target::of(table, name));
        let mut out = self.taken(keyword);
        loop {
            let names = match self.named_columns(&mut out) {
                Some(names) => names,
                None => match self.peek().filter(|name| matches!(name.kind, Kind::Word | Kind::Quoted)) {
                    Some(name) => {
                        out.push(self.taken(name));
                        vec![unquoted(name.text)]
                    }
                    None => return Ok(out),
                },
            };
            let Some(equals) = self.peek().filter(|token| token.is_sign("=")) else { return Ok(out) };
            out.push(self.taken(equals));
            let Some(value) = self.expression(power::ANYTHING)? else { return Ok(out) };
            let targets: Vec<Target> = names.iter().map(|name| target(name)).collect();
            out.push(self.assigned(value, &targets)?);
            match self.peek().filter(|token| token.is_sign(",")) {
                Some(comma) => out.push(self.taken(comma)),
                None => return Ok(out),
            }
        }
    }

    /// What is assigned to one column, or to several.
    fn assigned(&mut self, value: Out<'a>, targets: &[Target]) -> Step<Out<'a>> {
        let mut value = value;
        if let [target] = targets
            && !matches!(&*value.form, Form::List(parts) if parts.first().is_some_and(is_default))
        {
            if is_default(&value) {
                return Ok(target.default_at(value.start()));
            }
            if let Some(ty) = target.ty {
                self.assign(&mut value, ty)?;
                value = numeric::assigned(value, ty);
            }
            return Ok(value);
        }
        let types: Vec<Option<SqlType>> = targets.iter().map(|target| target.ty).collect();
        self.assign_list(&mut value, &types)?;
        Ok(Self::defaulted(value, targets))
    }

    /// Something that becomes the value of a column of this type.
    pub(super) fn assign(&mut self, value: &mut Out<'a>, ty: SqlType) -> Step<()> {
        self.suggest(value, ty)?;
        if types::converts_on_assignment(value.ty, ty) {
            let label = value.label.take();
            let whole = std::mem::take(value);
            *value = if value_is_shown(ty) {
                types::shown(whole)
            } else {
                call(&types::cast_name(ty), [whole]).typed(ty)
            };
            value.label = label;
        }
        Ok(())
    }

    /// The parts of a list become the values of columns of these types, one each.
    pub(super) fn assign_list(&mut self, list: &mut Out<'a>, types: &[Option<SqlType>]) -> Step<()> {
        let Form::List(parts) = &*list.form else { return Ok(()) };
        let converts = |(part, ty): (&Out<'a>, &Option<SqlType>)| {
            ty.is_some_and(|ty| types::converts_on_assignment(part.ty, ty))
        };
        if !parts.iter().zip(types).any(converts) {
            return self.suggest_list(list, types);
        }
        let mut parts = parts.clone();
        for (part, ty) in parts.iter_mut().zip(types) {
            if let Some(ty) = ty {
                self.assign(part, *ty)?;
                *part = numeric::assigned(std::mem::take(part), *ty);
            }
        }
        let mut out = Out::made("(", list.start());
        out.push(Out::joined(parts.iter().cloned(), ","));
        out.push_str(")");
        *list = out.formed(Form::List(parts));
        Ok(())
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
