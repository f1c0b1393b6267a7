//! Clauses that PostgreSQL spells otherwise.

use pgcatalog::shape::{DEADLINE_OF_TABLE, HIDDEN, Head};
use sqltext::ast::{Assignment, Expr, Fetch, OrderByExpr, Query, SetExpr, TableFactor};
use sqltext::conflict::{self, Conflict};
use sqltext::token::sql_literal;
use sqltext::token::{Kind, Token};
use store::Table;
use store::definition::{ColumnDef, Identity, SqlType, TableDef, qualified};
use store::value::Value;

use super::out::{Form, Out};
use super::scope::{Relation, Source};
use super::{Step, Stop, Translator, arrays, moments, numeric, types};
use crate::lowered::{self, ConflictTarget, ConflictUpdate, Named, Node, Piece, Resolve, Set, Term, Values};
use sqltext::error::state;
use sqltext::token::{quoted_name, unquoted};

/// The label of the word `DEFAULT` where a value is expected.
pub(super) const DEFAULT: &str = "default";

/// A statement that asked for locks gets this notice.
const NOT_LOCKED: &str = "rows are not locked by SELECT ... FOR UPDATE or SHARE: the first to commit wins, and a \
                          transaction that read what has changed answers 40001 when it writes the row";

/// The words of `OR ...`.
const RESOLVED: &[(&str, Resolve)] = &[
    ("ROLLBACK", Resolve::Rollback),
    ("ABORT", Resolve::Abort),
    ("FAIL", Resolve::Fail),
    ("IGNORE", Resolve::Ignore),
    ("REPLACE", Resolve::Replace),
];

/// The words behind a term of an order.
pub(super) const ORDER_WORDS: &[&str] = &["ASC", "DESC", "NULLS", "FIRST", "LAST"];

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
        table.def().column_index(name).map_or_else(|| Self::of_head(name), |at| Self::column(table, at))
    }

    /// A column of the row's head.
    fn of_head(name: &str) -> Self {
        let head = HIDDEN.iter().find(|(hidden, ..)| hidden.eq_ignore_ascii_case(name));
        let default = head.and_then(|(_, head, _)| match head {
            Head::Ttl | Head::ExpiresAt => Some(sql_literal(&Value::from(DEADLINE_OF_TABLE))),
            Head::Flags => Some("0".to_owned()),
            Head::Stale | Head::Leased => Some("FALSE".to_owned()),
            _ => None,
        });
        Self { ty: None, default }
    }

    fn column(table: &Table, at: usize) -> Self {
        Self {
            ty: Some(table.column_type(at)).filter(|ty| *ty != SqlType::Unknown),
            default: default_sql(&table.def().columns[at]),
        }
    }

    /// The columns that `INSERT` fills: those that it names, or all that can be given.
    pub(super) fn all_of(table: &Table, columns: Option<&[String]>) -> Vec<Self> {
        match columns {
            Some(columns) => columns.iter().map(|name| Self::of(table, name)).collect(),
            None => assignable(table.def()).map(|at| Self::column(table, at)).collect(),
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

/// What stands before the rows of an `INSERT`: what `OR` says, the table, the columns, and whether numbers that the
/// server gives may be given instead.
pub(super) type InsertHead = (Option<Resolve>, Named, Option<Vec<String>>, bool);

impl<'a> Translator<'a, '_> {
    /// `LIMIT`, `OFFSET` and `FETCH FIRST` in any order, as SQLite's `LIMIT n OFFSET m`; and what `n` and `m` are.
    pub(super) fn limits(
        &mut self,
        count: Option<&Expr>,
        first: Option<&Expr>,
        fetch: Option<&Fetch>,
    ) -> Step<(Out<'a>, [Option<Node>; 2])> {
        let from = self.peek().map_or(0, |token| token.start);
        let (mut limit, mut offset) = (None, None);
        loop {
            if self.take_word("LIMIT") {
                if self.take_word("ALL") || self.take_word("NULL") {
                    continue;
                }
                // SQLite's and MySQL's `LIMIT offset, count`.
                let comma = self.next_count_is(first);
                if comma {
                    offset = self.count(first)?;
                    self.sign(",")?;
                }
                limit = self.count(count)?;
            } else if self.take_word("OFFSET") {
                offset = self.count(first)?;
                let _rows = self.take_word("ROWS") || self.take_word("ROW");
            } else if self.peek().is_some_and(|token| token.is("FETCH")) {
                self.at += 2;
                limit = match fetch.and_then(|fetch| fetch.quantity.as_ref()) {
                    Some(quantity) => self.count(Some(quantity))?,
                    None => Some(Out::made("1", from)),
                };
                self.fetch_tail()?;
            } else {
                break;
            }
        }
        let mut out = Out::made("LIMIT", from);
        let mut limit = limit.unwrap_or_else(|| Out::made("-1", from));
        let mut nodes = [Some(limit.take_node()), None];
        out.push(limit);
        if let Some(mut offset) = offset {
            nodes[1] = Some(offset.take_node());
            out.push_str(" OFFSET");
            out.push(offset);
        }
        Ok((out, nodes))
    }

    /// Whether a comma follows before the words of another clause: what is next is how many rows are left out.
    fn next_count_is(&self, first: Option<&Expr>) -> bool {
        let mut depth = 0_usize;
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        let end = rest.iter().find(|token| {
            let closes = token.is_sign(")") && depth == 0;
            depth += usize::from(token.is_sign("("));
            depth = depth.saturating_sub(usize::from(token.is_sign(")")));
            closes || (depth == 0 && (token.is_sign(",") || token.is_any(&["OFFSET", "FETCH", "FOR"])))
        });
        first.is_some() && end.is_some_and(|token| token.is_sign(","))
    }

    fn fetch_tail(&mut self) -> Step<()> {
        let _rows = self.take_word("ROWS") || self.take_word("ROW");
        if self.take_words(&["WITH", "TIES"]) {
            return Err(self.error_at(self.peek(), state::NOT_SUPPORTED, "WITH TIES is not supported"));
        }
        self.take_word("ONLY");
        Ok(())
    }

    fn count(&mut self, count: Option<&Expr>) -> Step<Option<Out<'a>>> {
        let Some(count) = count else { return Err(Stop::Unknown) };
        let mut count = self.expression(count)?;
        self.suggest(&mut count, SqlType::Int8)?;
        Ok(Some(count))
    }

    /// `FOR UPDATE`, `FOR SHARE` and their weaker forms: nothing is locked, and the statement says so.
    pub(super) fn locking(&mut self, query: &Query) -> Step<Out<'a>> {
        let first = self.token()?;
        self.locks.extend(locked(query));
        let ends = |token: &Token<'_>| {
            token.is_sign(")") || token.is_sign(";") || token.is_any(&["LIMIT", "OFFSET", "FETCH"])
        };
        while self.peek().is_some_and(|token| !ends(&token)) {
            self.at += 1;
        }
        self.notice = Some(NOT_LOCKED);
        Ok(Out::made("", first.start))
    }

    /// `INSERT [OR ...] INTO t [AS name] [(a, b)]`: what follows is assigned to these.
    pub(super) fn insert(&mut self) -> Step<InsertHead> {
        let resolve = self.resolve()?;
        self.keyword("INTO")?;
        let mut table = self.table_name()?;
        let own = table.name.clone();
        if self.peek().is_some_and(|token| {
            matches!(token.kind, Kind::Word | Kind::Quoted)
                && !token.is_any(&["VALUES", "SELECT", "WITH", "TABLE", "DEFAULT", "OVERRIDING"])
        }) {
            self.take_word("AS");
            table.alias = Some(unquoted(self.token()?.text));
        }
        // What a WITH calls so is not written.
        let source = Source::Named(own.to_lowercase());
        let called = table.alias.clone().unwrap_or_else(|| own.clone());
        self.scopes.add(Relation::new(called, source.clone()));
        self.scopes.add(Relation::new("excluded".to_owned(), source));
        let columns = self.named_columns(&mut Out::default());
        let overrides = self.overriding();
        if let Some(written) = self.names.table(&own).cloned() {
            self.targets = Some(Target::all_of(&written, columns.as_deref()));
            self.written = Some(written);
        }
        Ok((resolve, table, columns, overrides))
    }

    /// `OVERRIDING SYSTEM VALUE`, or `USER`: whether it is the first.
    pub(super) fn overriding(&mut self) -> bool {
        let overrides = self.next_is_words(&["OVERRIDING", "SYSTEM"]);
        if self.take_word("OVERRIDING") {
            self.at += 2;
        }
        overrides
    }

    /// The verb of an `INSERT`, `REPLACE` or `UPDATE`, and its `OR ...`.
    pub(super) fn resolve(&mut self) -> Step<Option<Resolve>> {
        let verb = self.token()?;
        if !self.take_word("OR") {
            return Ok(verb.is("REPLACE").then_some(Resolve::Replace));
        }
        let word = self.token()?;
        let known = RESOLVED.iter().find(|(known, _)| word.is(known));
        known.map(|(_, resolve)| Some(*resolve)).ok_or(Stop::Unknown)
    }

    /// A table's name, with its schema.
    pub(super) fn table_name(&mut self) -> Step<Named> {
        let (_, mut parts, elsewhere) = self.qualified_table(true)?;
        let name = parts.pop().unwrap_or_default();
        // Its columns are qualified by the name that it has in its schema.
        let alias = elsewhere.filter(|elsewhere| elsewhere.of_user).map(|elsewhere| elsewhere.bare);
        Ok(Named { schema: parts.pop(), name, alias })
    }

    pub(super) fn named_columns(&mut self, out: &mut Out<'a>) -> Option<Vec<String>> {
        let rows = self.next_is_sign(2, "(");
        let query = self
            .peek_at(1)
            .is_some_and(|token| token.is_any(&["SELECT", "WITH", "TABLE"]) || (rows && token.is("VALUES")));
        if !self.next_is_sign(0, "(") || query {
            return None;
        }
        let mut columns = Vec::new();
        while let Some(token) = self.take() {
            out.push(self.name_copied(token));
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
        let parts: Vec<Out<'a>> = parts.collect();
        let mut out = Out::made("(", from);
        out.push(Out::joined(parts.iter().cloned(), ","));
        out.push_str(")");
        out.formed(Form::List(parts))
    }

    /// `SET a = value, (b, c) = (value, value)`: the names are columns of the table that is written, and each value
    /// becomes one of its column's type. It is no comparison: a column is never converted to the value's type.
    pub(super) fn assignments(
        &mut self,
        assignments: &[Assignment],
        table: Option<&Table>,
    ) -> Step<Vec<Set>> {
        let target = |name: &String| table.map_or_else(Target::default, |table| Target::of(table, name));
        let mut sets = Vec::with_capacity(assignments.len());
        for (at, assignment) in assignments.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
            }
            let columns = self.assigned_names()?;
            self.sign("=")?;
            let value = self.expression(&assignment.value)?;
            let targets: Vec<Target> = columns.iter().map(target).collect();
            let values = values_of(self.assigned(value, &targets)?, columns.len());
            sets.push(Set { columns, values });
        }
        Ok(sets)
    }

    /// `a` or `(a, b)`
    fn assigned_names(&mut self) -> Step<Vec<String>> {
        if let Some(names) = self.named_columns(&mut Out::default()) {
            return Ok(names);
        }
        let (_, parts, _) = self.qualified()?;
        if parts.len() == 1 { Ok(parts) } else { Err(Stop::Unknown) }
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
        if !is_left_to_column(value, ty) {
            self.suggest(value, ty)?;
        }
        if ty.is_array() {
            *value = stored_integers(std::mem::take(value), ty);
            return Ok(());
        }
        if types::converts_on_assignment(value.ty, ty) {
            let label = value.label.take();
            let whole = std::mem::take(value);
            *value = if types::is_integer(ty) {
                // The column says which integers it holds.
                numeric::stored_integer(whole)
            } else if value_is_shown(ty) {
                numeric::shown(whole)
            } else {
                moments::converted(whole, ty).typed(ty)
            };
            value.label = label;
        }
        Ok(())
    }

    /// The parts of a list become the values of columns of these types, one each.
    pub(super) fn assign_list(&mut self, list: &mut Out<'a>, types: &[Option<SqlType>]) -> Step<()> {
        let Form::List(parts) = &*list.form else { return Ok(()) };
        let converts = |(part, ty): (&Out<'a>, &Option<SqlType>)| {
            ty.is_some_and(|ty| {
                types::converts_on_assignment(part.ty, ty) || numeric::holds_fractions(part, ty)
            })
        };
        if !parts.iter().zip(types).any(converts) {
            let others =
                |(part, ty): (&Out<'a>, &Option<SqlType>)| ty.filter(|ty| !is_left_to_column(part, *ty));
            let others: Vec<Option<SqlType>> = parts.iter().zip(types).map(others).collect();
            return self.suggest_list(list, &others);
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

    /// `ON CONFLICT ...`
    pub(super) fn conflict(&mut self, conflict: &Conflict) -> Step<lowered::Conflict> {
        let target = match &conflict.target {
            conflict::Target::Constraint => Some(self.on_constraint()?),
            conflict::Target::Any => {
                self.take_words(&["ON", "CONFLICT"]);
                None
            }
            conflict::Target::Terms(terms, condition) => {
                self.take_words(&["ON", "CONFLICT"]);
                Some(self.conflict_target(terms, condition.as_deref())?)
            }
        };
        let Some(update) = &conflict.update else {
            self.take_words(&["DO", "NOTHING"]);
            return Ok(lowered::Conflict { target, update: None });
        };
        self.take_words(&["DO", "UPDATE", "SET"]);
        let table = self.written.clone();
        let sets = self.assignments(&update.assignments, table.as_deref())?;
        let condition =
            update.selection.as_ref().map(|condition| self.condition_of(condition)).transpose()?;
        let condition = condition.map(|condition| condition.sql);
        Ok(lowered::Conflict { target, update: Some(ConflictUpdate { sets, condition }) })
    }

    /// `(terms) [WHERE condition]`
    fn conflict_target(&mut self, terms: &[OrderByExpr], condition: Option<&Expr>) -> Step<ConflictTarget> {
        self.sign("(")?;
        let mut found = Vec::with_capacity(terms.len());
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                self.sign(",")?;
            }
            let mut compared = &term.expr;
            while let Expr::Collate { expr, .. } = compared {
                compared = expr;
            }
            let piece = self.expression(compared)?.lowered();
            let collated = self.peek().is_some_and(|token| token.is("COLLATE"));
            while self.take_word("COLLATE") {
                self.qualified()?;
            }
            self.pass_words(ORDER_WORDS, &mut Out::default());
            found.push(Term { piece, collated });
        }
        self.sign(")")?;
        let condition = condition.map(|condition| self.condition_of(condition)).transpose()?;
        Ok(ConflictTarget { terms: found, condition: condition.map(|condition| condition.sql) })
    }

    /// `WHERE condition`
    pub(super) fn condition_of(&mut self, condition: &Expr) -> Step<Piece> {
        self.keyword("WHERE")?;
        Ok(self.condition(condition)?.lowered())
    }

    /// `ON CONFLICT ON CONSTRAINT name` names the columns of the constraint.
    fn on_constraint(&mut self) -> Step<ConflictTarget> {
        self.at += 4;
        let name = self.take();
        let wanted = name.map(|name| unquoted(name.text)).unwrap_or_default();
        let columns = self.names.tables().find_map(|table| {
            let def = table.def();
            if def.is_key_name(&wanted) && !def.key_dropped {
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
        let term = |at: usize| {
            let name = table.def().columns[at].name.clone();
            let node = Node::Column { table: None, name: name.clone() };
            Term { piece: Piece { sql: quoted_name(&name), node }, collated: false }
        };
        Ok(ConflictTarget { terms: columns.into_iter().map(term).collect(), condition: None })
    }
}

/// An array that a column stores: the elements of one of integers are rounded.
fn stored_integers(out: Out<'_>, ty: SqlType) -> Out<'_> {
    let Form::Array(parts) = &*out.form else { return out };
    if !numeric::holds_fractions(&out, ty) {
        return out;
    }
    let whole = |part| if numeric::has_fraction(&part) { numeric::stored_integer(part) } else { part };
    arrays::array_of(parts.iter().cloned().map(whole).collect(), out.start()).of_type(Some(ty))
}

/// What so many columns are set to.
fn values_of(value: Out<'_>, columns: usize) -> Values {
    if columns == 1 {
        return Values::One(value.lowered());
    }
    match *value.form {
        Form::List(parts) if parts.len() == columns => {
            Values::Each(parts.into_iter().map(Out::sql).collect())
        }
        Form::Query { .. } => Values::Query(Out::sql(value)),
        _ => Values::Other,
    }
}

/// The default of a column as SQL.
fn default_sql(column: &ColumnDef) -> Option<String> {
    let computed = || column.default_sql.as_ref().map(|sql| format!("({sql})"));
    column.default.as_ref().map(sql_literal).or_else(computed)
}

/// The columns that `INSERT` fills when it names none.
/// Whether it is a text for a column of numbers, which reads it row by row and says which one is none.
fn is_left_to_column(value: &Out<'_>, ty: SqlType) -> bool {
    ty.is_number() && matches!(*value.form, Form::Literal(_))
}

fn assignable(def: &TableDef) -> impl Iterator<Item = usize> {
    let given = |column: &ColumnDef| column.generated.is_none() && column.identity != Some(Identity::Always);
    def.visible_columns().filter(move |(_, column)| given(column)).map(|(at, _)| at)
}

/// The tables that a query locks, by their names in the store: those that `OF` names, or all that it lists.
fn locked(query: &Query) -> Vec<String> {
    let SetExpr::Select(select) = &*query.body else { return Vec::new() };
    let of: Vec<&str> = query
        .locks
        .iter()
        .flat_map(|lock| lock.of.iter().filter_map(|of| of.0.last()))
        .filter_map(|part| part.as_ident().map(|name| name.value.as_str()))
        .collect();
    let all = query.locks.iter().any(|lock| lock.of.is_none());
    let listed = select.from.iter().flat_map(|table| {
        std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
    });
    let named = listed.filter_map(|factor| match factor {
        TableFactor::Table { name, alias, args: None, .. } => {
            let parts: Vec<&str> =
                name.0.iter().filter_map(|part| part.as_ident().map(|name| name.value.as_str())).collect();
            let own = *parts.last()?;
            let called = alias.as_ref().map_or(own, |alias| alias.name.value.as_str());
            let schema = parts.len().checked_sub(2).map(|at| parts[at]).filter(|schema| *schema != "public");
            let wanted = all || of.iter().any(|name| name.eq_ignore_ascii_case(called));
            wanted.then(|| qualified(schema, own))
        }
        _ => None,
    });
    named.collect()
}
