//! Statements and queries: their clauses, in the order of the text.

use sqltext::ast::{
    Cte, Delete, Distinct, Expr, FromTable, GroupByExpr, Insert, LimitClause, OrderBy, OrderByExpr,
    OrderByKind, OrderBySort, Query, SetExpr, Statement, TableFactor, TableWithJoins, Update,
    UpdateTableFromKind, Values, With,
};
use sqltext::conflict::Tail;
use store::definition::SqlType;

use super::nulls::{Sorted, Wording};
use super::numeric::Digits;
use super::out::{Form, Out};
use super::outputs::Output;
use super::scope::{Relation, Source};
use super::types::Told;
use super::{Item, Made, Plain, Step, Stop, Translator, numeric};
use crate::lowered::{self, Indexed, Named, Node, Order, Piece, Resolve, Rows, Select, Verb, Write};
use pgcatalog::system::is_reserved;
use sqltext::error::SqlError;
use sqltext::token::{Token, unquoted};

impl<'a> Translator<'a, '_> {
    pub(super) fn statement(&mut self, statement: &Statement, tail: &Tail) -> Step<Made<'a>> {
        let (with, statement) = match statement {
            Statement::Query(query) => match &*query.body {
                SetExpr::Insert(statement)
                | SetExpr::Update(statement)
                | SetExpr::Delete(statement)
                | SetExpr::Merge(statement) => (query.with.as_ref(), statement),
                _ => {
                    if query.with.is_none() && matches!(&*query.body, SetExpr::Select(_)) {
                        self.select = Plain::Wanted;
                    }
                    let (out, [limit, offset]) = self.query(query, None)?;
                    let select =
                        self.select.take().map(|select| Box::new(Select { limit, offset, ..*select }));
                    return Ok(Made::Text(out, select));
                }
            },
            Statement::Explain { statement, .. } => {
                let mut out = Out::default();
                if self.next_is_words(&["EXPLAIN", "QUERY"]) {
                    self.pass_words(&["EXPLAIN", "QUERY", "PLAN"], &mut out);
                } else {
                    // What is explained is run by itself.
                    self.take_word("EXPLAIN");
                }
                return Ok(match self.statement(statement, tail)? {
                    Made::Text(explained, select) => {
                        out.push(explained);
                        Made::Text(out, select)
                    }
                    write @ Made::Write(_) => write,
                });
            }
            statement => (None, statement),
        };
        self.writes = true;
        let with = match with {
            Some(with) => format!("{} ", self.with(Some(with))?.sql()),
            None => String::new(),
        };
        self.scopes.begin();
        let write = match statement {
            Statement::Insert(insert) => self.insert_statement(insert, tail),
            Statement::Update(update) => self.update_statement(update, tail),
            Statement::Delete(delete) => self.delete_statement(delete, tail),
            Statement::Merge(merge) => self.merge_statement(merge),
            _ => Err(Stop::Unknown),
        }?;
        Ok(Made::Write(Box::new(Write { with, ..write })))
    }

    fn insert_statement(&mut self, insert: &Insert, tail: &Tail) -> Step<Write> {
        let (resolve, table, columns, overrides) = self.insert()?;
        let source = if let Some(source) = &insert.source {
            let known = self.scopes.known();
            let source = self.source(source)?;
            self.scopes.back_to(known);
            source
        } else {
            self.take_words(&["DEFAULT", "VALUES"]);
            lowered::Source::Defaults
        };
        let conflicts = tail.conflicts.iter().map(|conflict| self.conflict(conflict));
        let conflicts = conflicts.collect::<Step<Vec<_>>>()?;
        let returning = self.returning(insert.returning.as_ref().or(tail.returning.as_ref()))?;
        let verb = Verb::Insert(lowered::Insert { columns, overrides, source, conflicts });
        Ok(self.write(verb, table, resolve, returning))
    }

    pub(super) fn write(
        &self,
        verb: Verb,
        table: Named,
        resolve: Option<Resolve>,
        returning: Option<String>,
    ) -> Write {
        let parameters = self.parameters.count();
        Write { verb, table, with: String::new(), resolve, returning, parameters }
    }

    /// The rows of an `INSERT`.
    fn source(&mut self, source: &Query) -> Step<lowered::Source> {
        let bare = source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none();
        if let SetExpr::Values(values) = &*source.body
            && bare
        {
            let (out, rows) = self.values(values)?;
            return Ok(lowered::Source::Query { sql: out.sql(), with: false, rows: Some(rows) });
        }
        let (out, _) = self.query(source, None)?;
        Ok(lowered::Source::Query { sql: out.sql(), with: source.with.is_some(), rows: None })
    }

    fn update_statement(&mut self, update: &Update, tail: &Tail) -> Step<Write> {
        let resolve = self.resolve()?;
        let (table, indexed) = self.written_table(&update.table)?;
        let set = self.at;
        let from = match &update.from {
            Some(UpdateTableFromKind::AfterSet(tables)) => Some(self.tables_ahead(tables)?),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(Stop::Unknown),
            None => None,
        };
        self.at = set;
        self.keyword("SET")?;
        let written = self.names.table(&table.name).cloned();
        let sets = self.assignments(&update.assignments, written.as_deref())?;
        let from = self.behind_tables(from)?.map(Out::sql);
        let condition = update.selection.as_ref().map(|condition| self.found_by(condition)).transpose()?;
        let returning = self.returning(update.returning.as_ref())?;
        let rows =
            self.changed_rows((indexed, condition), &update.order_by, limits(update.limit.as_ref(), tail))?;
        let verb = Verb::Update(lowered::Update { sets, from, rows });
        Ok(self.write(verb, table, resolve, returning))
    }

    fn delete_statement(&mut self, delete: &Delete, tail: &Tail) -> Step<Write> {
        self.take_words(&["DELETE", "FROM"]);
        let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
        let [table] = &tables[..] else { return Err(Stop::Unknown) };
        let (table, indexed) = self.written_table(table)?;
        let using = match &delete.using {
            Some(tables) => {
                self.keyword("USING")?;
                Some(self.tables(tables)?.0.sql())
            }
            None => None,
        };
        let condition = delete.selection.as_ref().map(|condition| self.found_by(condition)).transpose()?;
        let returning = self.returning(delete.returning.as_ref())?;
        let rows =
            self.changed_rows((indexed, condition), &delete.order_by, limits(delete.limit.as_ref(), tail))?;
        Ok(self.write(Verb::Delete(lowered::Delete { using, rows }), table, None, returning))
    }

    /// The table of an `UPDATE` or `DELETE`, and by which index its rows are to be found.
    fn written_table(&mut self, table: &TableWithJoins) -> Step<(Named, Option<Indexed>)> {
        if table.joins.is_empty() { self.written_factor(&table.relation) } else { Err(Stop::Unknown) }
    }

    pub(super) fn written_factor(&mut self, table: &TableFactor) -> Step<(Named, Option<Indexed>)> {
        self.take_word("ONLY");
        let begin = self.peek();
        let mut named = self.table_name()?;
        self.note_unknown(&named, begin);
        let alias = match table {
            TableFactor::Table { alias, args: None, .. } => alias.as_ref(),
            _ => return Err(Stop::Unknown),
        };
        let (alias, _) = self.alias_taken(alias)?;
        let indexed = self.indexed_taken()?;
        named.alias = alias.or(named.alias);
        // What a WITH calls so is not written.
        let source = Source::Named(named.name.to_lowercase());
        let called = named.alias.as_ref().unwrap_or(&named.name);
        self.scopes.add(Relation::new(called.clone(), source));
        Ok((named, indexed))
    }

    /// Remembers that a table that is written is not there: that is said before anything of its columns.
    fn note_unknown(&mut self, named: &Named, begin: Option<Token<'a>>) {
        let elsewhere = named.schema.as_deref().is_some_and(|schema| !schema.eq_ignore_ascii_case("main"));
        if elsewhere || self.names.knows(&named.name) || is_reserved(&named.name.to_lowercase()) {
            return;
        }
        let place = begin.map_or(0, |token| token.start);
        self.missing = Some(SqlError::unknown_table(&named.name).at(self.sql, place));
    }

    /// `INDEXED BY name`, `NOT INDEXED`
    pub(super) fn indexed_taken(&mut self) -> Step<Option<Indexed>> {
        if self.take_words(&["INDEXED", "BY"]) {
            return Ok(Some(Indexed::By(unquoted(self.token()?.text))));
        }
        Ok(self.take_words(&["NOT", "INDEXED"]).then_some(Indexed::Not))
    }

    /// `WHERE condition`: which rows are changed.
    fn found_by(&mut self, condition: &Expr) -> Step<Piece> {
        self.keyword("WHERE")?;
        Ok(self.condition_by_index(condition, None)?.lowered())
    }

    /// What stands at the end of an `UPDATE` or `DELETE`.
    fn changed_rows(
        &mut self,
        (indexed, condition): (Option<Indexed>, Option<Piece>),
        order: &[OrderByExpr],
        limit: Option<(&Expr, Option<&Expr>)>,
    ) -> Step<Rows> {
        let mut rows = Rows { indexed, condition, order: None, limit: None };
        if !order.is_empty() {
            self.take_words(&["ORDER", "BY"]);
            self.begin_clause(None);
            rows.order = Some(self.terms(order, &[], Sorted::Rows)?.0.sql());
            self.end_clause();
        }
        if let Some((limit, second)) = limit {
            let word = self.keyword("LIMIT")?;
            let mut out = self.copied(word);
            out.push(self.expression(limit)?);
            if let Some(second) = second {
                self.pass(&mut out);
                out.push(self.expression(second)?);
            }
            rows.limit = Some(out.sql());
        }
        Ok(rows)
    }

    /// A query within a statement; `common`: that of a `WITH` which begins.
    pub(super) fn inner_query(
        &mut self,
        query: &Query,
        common: Option<(&str, &[String])>,
    ) -> Step<(Out<'a>, Vec<Item>)> {
        let known = self.scopes.known();
        self.queries.push(None);
        let is_table = std::mem::take(&mut self.is_table);
        self.tables.push(is_table);
        let (targets, spread, alone) = (self.targets.take(), self.spread.take(), self.alone);
        let hidden = std::mem::take(&mut self.hidden);
        let (out, _) = self.query(query, common)?;
        (self.targets, self.spread, self.alone, self.hidden) = (targets, spread, alone, hidden);
        self.scopes.back_to(known);
        self.tables.pop();
        Ok((out, self.queries.pop().flatten().unwrap_or_default()))
    }

    /// A query, and how many rows it gives and leaves out; what is known of its tables stays.
    pub(super) fn query(
        &mut self,
        query: &Query,
        common: Option<(&str, &[String])>,
    ) -> Step<(Out<'a>, [Option<Node>; 2])> {
        let mut out = self.with(query.with.as_ref())?;
        let mut counts = [None, None];
        if let SetExpr::Select(select) = &*query.body
            && let Some(Distinct::On(keys)) = &select.distinct
        {
            out.push(self.first_rows(select, keys, query.order_by.as_ref())?);
        } else {
            out.push(self.body(&query.body, common)?);
            if let Some(order) = &query.order_by {
                // That of several queries is of what they give.
                let sorted = Sorted::of(&query.body);
                let outputs = if sorted == Sorted::Arms {
                    let items = self.queries.last().and_then(Option::as_deref);
                    Self::outputs_of_arms(items.unwrap_or_default())
                } else {
                    self.begin_clause(None);
                    std::mem::take(&mut self.outputs)
                };
                if let (SetExpr::Select(select), OrderByKind::Expressions(terms)) =
                    (&*query.body, &order.kind)
                {
                    if let Some(condition) = &select.selection {
                        self.note_present(condition);
                    }
                    self.check_sorted(select, terms, &outputs)?;
                }
                out.push(self.order(order, &outputs, sorted)?);
                self.end_clause();
            }
        }
        // PostgreSQL takes them in both orders.
        let locks_first = !query.locks.is_empty() && self.peek().is_some_and(|token| token.is("FOR"));
        if locks_first {
            out.push(self.locking(query)?);
        }
        // The tree knows nothing of `LIMIT ALL`.
        if query.limit_clause.is_some() || query.fetch.is_some() || self.next_is_words(&["LIMIT", "ALL"]) {
            let (limits, known) = self.limited(query)?;
            counts = known;
            out.push(limits);
        }
        if !query.locks.is_empty() && !locks_first {
            out.push(self.locking(query)?);
        }
        Ok((out, counts))
    }

    fn limited(&mut self, query: &Query) -> Step<(Out<'a>, [Option<Node>; 2])> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit: count, offset: first, .. }) => {
                limit = count.as_ref();
                offset = first.as_ref().map(|offset| &offset.value);
            }
            Some(LimitClause::OffsetCommaLimit { offset: first, limit: count }) => {
                limit = Some(count);
                offset = Some(first);
            }
            None => {}
        }
        self.limits(limit, offset, query.fetch.as_ref())
    }

    /// `WITH [RECURSIVE] name [(columns)] AS (query), ...`
    fn with(&mut self, with: Option<&With>) -> Step<Out<'a>> {
        let mut out = Out::default();
        let Some(with) = with else { return Ok(out) };
        self.pass_words(&["WITH", "RECURSIVE"], &mut out);
        for (at, common) in with.cte_tables.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut out)?;
            }
            self.common(common, &mut out)?;
        }
        Ok(out)
    }

    /// One of its queries: columns that are named have the types of the first arm.
    fn common(&mut self, common: &Cte, out: &mut Out<'a>) -> Step<()> {
        let name = self.token()?;
        out.push(self.copied(name));
        let name = unquoted(name.text).to_lowercase();
        let columns = self.named_columns(out).unwrap_or_default();
        self.pass_words(&["AS", "NOT", "MATERIALIZED"], out);
        self.pass_sign("(", out)?;
        self.is_table = true;
        let (query, items) = self.inner_query(&common.query, Some((&name, &columns)))?;
        out.push(query);
        self.pass_sign(")", out)?;
        let known: Vec<_> =
            items.iter().take_while(|item| !item.star).map(|item| self.type_of(item)).collect();
        for (column, ty) in columns.iter().zip(known) {
            if let Some(ty) = ty {
                self.learned.insert(column.to_lowercase(), ty);
            }
        }
        let source = self.source_of_items(&items, &columns);
        self.scopes.add_common(Relation::new(name, source));
        Ok(())
    }

    /// The words of `SELECT` before its list. The keys of `DISTINCT ON` are looked at when its tables are known.
    pub(super) fn distinct(&mut self, distinct: Option<&Distinct>, out: &mut Out<'a>) -> Step<()> {
        let Some(Distinct::On(_)) = distinct else {
            self.pass_words(&["DISTINCT", "ALL"], out);
            return Ok(());
        };
        self.at += 2;
        self.distinct_keys = self.at;
        let mut depth = 0_usize;
        loop {
            let token = self.token()?;
            depth += usize::from(token.is_sign("("));
            depth = depth.saturating_sub(usize::from(token.is_sign(")")));
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// `outputs`: the columns that the query gives.
    pub(super) fn group(
        &mut self,
        group: &GroupByExpr,
        outputs: &[Output<'a>],
        out: &mut Out<'a>,
    ) -> Step<Vec<Node>> {
        let GroupByExpr::Expressions(terms, modifiers) = group else { return Err(Stop::Unknown) };
        if !modifiers.is_empty() {
            return Err(Stop::Unknown);
        }
        let mut nodes = Vec::with_capacity(terms.len());
        if terms.is_empty() {
            return Ok(nodes);
        }
        self.pass_words(&["GROUP", "BY"], out);
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", out)?;
            }
            let Expr::Tuple(parts) = term else {
                nodes.push(self.group_part(term, outputs, out)?);
                continue;
            };
            // `(a, b)` is grouped by as `a, b` is.
            self.sign("(")?;
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    self.pass_sign(",", out)?;
                }
                nodes.push(self.group_part(part, outputs, out)?);
            }
            self.sign(")")?;
        }
        Ok(nodes)
    }

    fn group_part(&mut self, part: &Expr, outputs: &[Output<'a>], out: &mut Out<'a>) -> Step<Node> {
        let mut part = self.group_term(part, outputs)?;
        let node = part.take_node();
        out.push(part);
        Ok(node)
    }

    fn order(&mut self, order: &OrderBy, outputs: &[Output<'a>], sorted: Sorted) -> Step<Out<'a>> {
        let OrderByKind::Expressions(terms) = &order.kind else { return Err(Stop::Unknown) };
        let mut out = Out::default();
        self.pass_words(&["ORDER", "BY"], &mut out);
        let (terms, nodes) = self.terms(terms, outputs, sorted)?;
        if let Plain::Found(select) = &mut self.select
            && self.queries.len() == 1
        {
            select.order = nodes;
        }
        out.push(terms);
        Ok(out)
    }

    /// Terms with the words of their order. `outputs`: the columns that a name may mean, where these are first.
    pub(super) fn terms(
        &mut self,
        terms: &[OrderByExpr],
        outputs: &[Output<'a>],
        sorted: Sorted,
    ) -> Step<(Out<'a>, Vec<Order>)> {
        let mut out = Out::default();
        let mut nodes = Vec::with_capacity(terms.len());
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut out)?;
            }
            let by = self.order_term(term, outputs)?;
            let mut by = self.sort_key(by);
            let descending = matches!(term.options.sort, Some(OrderBySort::Desc));
            let nulls_first = term.options.nulls_first.unwrap_or(descending);
            nodes.push(Order { by: by.take_node(), descending, nulls_first });
            let nulls = self.nulls_of(term, outputs, sorted, &by);
            if let Wording::InFront(absence) = &nulls {
                out.push_str(absence);
            }
            out.push(by);
            self.pass_words(&["ASC", "DESC"], &mut out);
            self.take_words(&["NULLS", "FIRST"]);
            self.take_words(&["NULLS", "LAST"]);
            if let Wording::Behind(words) = nulls {
                out.push_str(words);
            }
        }
        Ok((out, nodes))
    }

    /// The rows of `VALUES`.
    pub(super) fn values(&mut self, values: &Values) -> Step<(Out<'a>, Vec<Vec<Node>>)> {
        let mut rows = Vec::with_capacity(values.rows.len());
        let mut out = Out::default();
        let begin = self.peek();
        self.pass_word("VALUES", &mut out)?;
        let targets = self.targets.take();
        for (at, row) in values.rows.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut out)?;
            }
            let mut row = self.list(&row.content)?;
            if let Some(targets) = &targets {
                let types: Vec<Option<SqlType>> = targets.iter().map(|target| target.ty).collect();
                self.assign_list(&mut row, &types)?;
                row = Self::defaulted(row, targets);
            } else if let Form::List(parts) = &*row.form {
                let shown = !self.inserts && parts.iter().any(numeric::is_literal);
                if self.agreement.is_some() || shown {
                    let parts = parts.clone().into_iter().enumerate();
                    let parts: Vec<Out<'a>> =
                        parts.map(|(at, part)| self.column_of_arms(at, part)).collect::<Step<_>>()?;
                    let mut out = Out::made("(", row.start());
                    out.push(Out::joined(parts.iter().cloned(), ","));
                    out.push_str(")");
                    row = out.formed(Form::List(parts));
                }
                let Form::List(parts) = &*row.form else { return Err(Stop::Unknown) };
                let items = parts.iter().enumerate().map(item_of_row).collect();
                self.add_arm(items);
            }
            rows.push(match row.take_node() {
                Node::List(cells) => cells,
                _ => Vec::new(),
            });
            out.push(row);
        }
        if targets.is_none() {
            self.check_match("VALUES", begin)?;
        }
        Ok((out, rows))
    }
}

/// The numbers of a `LIMIT`.
fn limits<'e>(first: Option<&'e Expr>, tail: &'e Tail) -> Option<(&'e Expr, Option<&'e Expr>)> {
    first.map(|first| (first, tail.second_limit.as_ref()))
}

fn item_of_row((at, part): (usize, &Out<'_>)) -> Item {
    Item {
        star: false,
        columns: None,
        ty: part.ty,
        parameter: part.parameter(),
        label: Some(format!("column{}", at + 1)),
        query: false,
        mixed: false,
        told: Told::of(part),
        digits: Digits::of(part),
        typed: part.ty,
        open: Told::of(part).is_literal(),
        counts: super::indexes::counts(part),
        widens: false,
        unmatched: None,
    }
}
