//! Statements and queries: their clauses, in the order of the text.

use sqltext::ast::{
    Cte, Delete, Distinct, FromTable, GroupByExpr, Insert, LimitClause, OrderBy, OrderByExpr, OrderByKind,
    Query, SetExpr, Statement, TableWithJoins, Update, UpdateTableFromKind, Values, With,
};
use sqltext::conflict::Tail;
use store::definition::SqlType;

use super::out::{Form, Out};
use super::scope::{Known, Relation, Source};
use super::types::Told;
use super::{Item, Step, Stop, Translator};
use sqltext::error::state;
use sqltext::token::unquoted;

impl<'a> Translator<'a, '_> {
    pub(super) fn statement(&mut self, statement: &Statement, tail: &Tail) -> Step<Out<'a>> {
        match statement {
            Statement::Query(query) => match &*query.body {
                SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                    let mut out = self.with(query.with.as_ref())?;
                    out.push(self.statement(statement, tail)?);
                    Ok(out)
                }
                _ => self.query(query, None).map(|(out, _)| out),
            },
            Statement::Insert(insert) => self.insert_statement(insert, tail),
            Statement::Update(update) => self.update_statement(update),
            Statement::Delete(delete) => self.delete_statement(delete),
            Statement::Explain { statement, .. } => {
                let mut out = Out::default();
                self.pass_words(&["EXPLAIN", "QUERY", "PLAN"], &mut out);
                out.push(self.statement(statement, tail)?);
                Ok(out)
            }
            _ => Err(Stop::Unknown),
        }
    }

    fn insert_statement(&mut self, insert: &Insert, tail: &Tail) -> Step<Out<'a>> {
        self.scopes.begin();
        let mut out = self.insert()?;
        match &insert.source {
            Some(source) => {
                let known = self.scopes.known();
                out.push(self.query(source, None)?.0);
                self.scopes.back_to(known);
            }
            None => self.pass_words(&["DEFAULT", "VALUES"], &mut out),
        }
        if self.ends_in_from
            && !tail.conflicts.is_empty()
            && let Some(on) = self.peek()
        {
            // SQLite's grammar would read a join's condition here.
            out.push(Out::made("WHERE true", on.start));
        }
        for conflict in &tail.conflicts {
            out.push(self.conflict(conflict)?);
        }
        if let Some(items) = insert.returning.as_ref().or(tail.returning.as_ref()) {
            out.push(self.returning(items)?);
        }
        Ok(out)
    }

    fn update_statement(&mut self, update: &Update) -> Step<Out<'a>> {
        self.scopes.begin();
        let mut out = Out::default();
        let words = ["UPDATE", "OR", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE"];
        self.pass_words(&words, &mut out);
        let table = self.written_table(&update.table, &mut out)?;
        let set = self.at;
        let from = match &update.from {
            Some(UpdateTableFromKind::AfterSet(tables)) => Some(self.tables_ahead(tables)?),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(Stop::Unknown),
            None => None,
        };
        self.at = set;
        self.pass_word("SET", &mut out)?;
        let table = self.names.table(&table).cloned();
        self.assignments(&update.assignments, table.as_deref(), &mut out)?;
        self.then_tables(from, &mut out)?;
        if let Some(condition) = &update.selection {
            self.pass_word("WHERE", &mut out)?;
            out.push(self.condition(condition)?);
        }
        self.changed_rows((update.returning.as_ref(), &update.order_by, update.limit.as_ref()), &mut out)?;
        Ok(out)
    }

    fn delete_statement(&mut self, delete: &Delete) -> Step<Out<'a>> {
        self.scopes.begin();
        let mut out = Out::default();
        self.pass_words(&["DELETE", "FROM"], &mut out);
        let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
        let [table] = &tables[..] else { return Err(Stop::Unknown) };
        self.written_table(table, &mut out)?;
        if delete.using.is_some() {
            let message = "DELETE ... USING is not supported; use WHERE ... IN (SELECT ...)";
            return Err(self.error_at(self.peek(), state::NOT_SUPPORTED, message));
        }
        if let Some(condition) = &delete.selection {
            self.pass_word("WHERE", &mut out)?;
            out.push(self.condition(condition)?);
        }
        self.changed_rows((delete.returning.as_ref(), &delete.order_by, delete.limit.as_ref()), &mut out)?;
        Ok(out)
    }

    /// The table of an `UPDATE` or `DELETE`; returns its own name.
    fn written_table(&mut self, table: &TableWithJoins, out: &mut Out<'a>) -> Step<String> {
        if !table.joins.is_empty() {
            return Err(Stop::Unknown);
        }
        self.take_word("ONLY");
        let (name, mut parts, _) = self.qualified()?;
        out.push(name);
        let own = parts.pop().unwrap_or_default();
        let alias = match &table.relation {
            sqltext::ast::TableFactor::Table { alias, args: None, .. } => alias.as_ref(),
            _ => return Err(Stop::Unknown),
        };
        let alias = self.table_alias_copied(alias, out)?;
        // What a WITH calls so is not written.
        let source = Source::Named(own.to_lowercase());
        self.scopes.add(Relation::new(alias.unwrap_or_else(|| own.clone()), source));
        Ok(own)
    }

    /// What stands at the end of an `UPDATE` or `DELETE`.
    fn changed_rows(
        &mut self,
        (returning, order, limit): (
            Option<&Vec<sqltext::ast::SelectItem>>,
            &[OrderByExpr],
            Option<&sqltext::ast::Expr>,
        ),
        out: &mut Out<'a>,
    ) -> Step<()> {
        if let Some(items) = returning {
            out.push(self.returning(items)?);
        }
        if !order.is_empty() {
            self.pass_words(&["ORDER", "BY"], out);
            out.push(self.terms(order, Some(true))?);
        }
        if let Some(limit) = limit {
            self.pass_word("LIMIT", out)?;
            out.push(self.expression(limit)?);
        }
        Ok(())
    }

    /// A query within a statement; `common`: that of a `WITH` which begins.
    pub(super) fn inner_query(
        &mut self,
        query: &Query,
        common: Option<(&str, &[String])>,
    ) -> Step<(Out<'a>, Vec<Item>)> {
        let known = self.scopes.known();
        self.queries.push(None);
        let (targets, spread) = (self.targets.take(), self.spread.take());
        let (out, _) = self.query(query, common)?;
        (self.targets, self.spread) = (targets, spread);
        self.scopes.back_to(known);
        Ok((out, self.queries.pop().flatten().unwrap_or_default()))
    }

    /// A query; what is known of its tables stays.
    fn query(&mut self, query: &Query, common: Option<(&str, &[String])>) -> Step<(Out<'a>, Known)> {
        let mut out = self.with(query.with.as_ref())?;
        let known = self.scopes.known();
        out.push(self.body(&query.body, common)?);
        if let Some(order) = &query.order_by {
            self.ends_in_from = false;
            out.push(self.order(order)?);
        }
        if query.limit_clause.is_some() || query.fetch.is_some() {
            self.ends_in_from = false;
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
            out.push(self.limits(limit, offset, query.fetch.as_ref())?);
        }
        if !query.locks.is_empty() {
            out.push(self.locking()?);
        }
        Ok((out, known))
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

    /// What a query is made of. The arms of `UNION` and its like are no recursion: there may be many.
    fn body(&mut self, body: &SetExpr, common: Option<(&str, &[String])>) -> Step<Out<'a>> {
        let mut arms = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { left, right, .. } = first {
            arms.push(&**right);
            first = left;
        }
        let known = self.scopes.known();
        let mut out = self.arm(first)?;
        if let Some((name, columns)) = common.filter(|_| !arms.is_empty()) {
            // The other arms may read what the first gives.
            let items = self.queries.last().cloned().flatten().unwrap_or_default();
            let source = self.source_of_items(&items, columns);
            self.scopes.add_common(Relation::new(name.to_owned(), source));
        }
        while let Some(arm) = arms.pop() {
            self.scopes.end(known);
            self.pass_words(&["UNION", "EXCEPT", "INTERSECT", "ALL", "DISTINCT"], &mut out);
            out.push(self.body(arm, None)?);
        }
        Ok(out)
    }

    fn arm(&mut self, arm: &SetExpr) -> Step<Out<'a>> {
        match arm {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Values(values) => self.values(values),
            SetExpr::Query(query) => {
                self.ends_in_from = false;
                self.query_in_parentheses(query).map(|(out, _)| out)
            }
            _ => Err(Stop::Unknown),
        }
    }

    /// The words of `SELECT` before its list.
    pub(super) fn distinct(&mut self, distinct: Option<&Distinct>, out: &mut Out<'a>) -> Step<()> {
        let word = self.peek();
        self.pass_words(&["DISTINCT", "ALL"], out);
        if let Some(Distinct::On(_)) = distinct {
            let message = "SELECT DISTINCT ON is not supported; use row_number() OVER (PARTITION BY ...)";
            return Err(self.error_at(word, state::NOT_SUPPORTED, message));
        }
        Ok(())
    }

    pub(super) fn group(&mut self, group: &GroupByExpr, out: &mut Out<'a>) -> Step<()> {
        let GroupByExpr::Expressions(terms, modifiers) = group else { return Err(Stop::Unknown) };
        if !modifiers.is_empty() {
            return Err(Stop::Unknown);
        }
        if terms.is_empty() {
            return Ok(());
        }
        self.pass_words(&["GROUP", "BY"], out);
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", out)?;
            }
            out.push(match self.term_shown(false) {
                Some(number) => number,
                None => self.expression(term)?,
            });
        }
        Ok(())
    }

    fn order(&mut self, order: &OrderBy) -> Step<Out<'a>> {
        let OrderByKind::Expressions(terms) = &order.kind else { return Err(Stop::Unknown) };
        let mut out = Out::default();
        self.pass_words(&["ORDER", "BY"], &mut out);
        out.push(self.terms(terms, Some(true))?);
        Ok(out)
    }

    /// Terms with the words of their order; `shown`: they may name columns that are shown exactly, and are an order's.
    pub(super) fn terms(&mut self, terms: &[OrderByExpr], shown: Option<bool>) -> Step<Out<'a>> {
        let mut out = Out::default();
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut out)?;
            }
            out.push(match shown.and_then(|order| self.term_shown(order)) {
                Some(number) => number,
                None => self.expression(&term.expr)?,
            });
            self.pass_words(&["ASC", "DESC", "NULLS", "FIRST", "LAST"], &mut out);
        }
        Ok(out)
    }

    /// The rows of `VALUES`.
    fn values(&mut self, values: &Values) -> Step<Out<'a>> {
        self.ends_in_from = false;
        let mut out = Out::default();
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
                let items = parts.iter().enumerate().map(item_of_row).collect();
                self.add_arm(items);
            }
            out.push(row);
        }
        Ok(out)
    }

    /// The columns of one more arm of the query that is under way.
    pub(super) fn add_arm(&mut self, items: Vec<Item>) {
        match self.queries.last_mut() {
            Some(Some(known)) => Item::join_arm(known, &items),
            Some(query) => *query = Some(items),
            None => {}
        }
    }
}

fn item_of_row((at, part): (usize, &Out<'_>)) -> Item {
    Item {
        star: false,
        columns: None,
        ty: part.ty,
        parameter: part.parameter(),
        label: Some(format!("column{}", at + 1)),
        mixed: false,
        told: Told::of(part),
    }
}
