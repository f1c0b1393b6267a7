//! Columns of which a group has many values: SQLite shows that of one of its rows, and PostgreSQL refuses them.

use pgcatalog::function::{self, ONLY_ROW};
use sqltext::ast::{
    CaseWhen, Distinct, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    OrderByExpr, Select, SelectItem, Value, WindowType,
};
use sqltext::error::state;
use sqltext::literals::bare;
use sqltext::token::{Kind, Token, tokens, unquoted};

use super::calls::renamed;
use super::names::Found;
use super::nulls::output_meant;
use super::outputs::Output;
use super::scope::{Relation, Source};
use super::{Step, Translator};

/// What a list and `HAVING` show.
#[derive(Default)]
struct Shown {
    /// An aggregate, which makes groups of the rows.
    aggregate: bool,
    /// The first column that is neither grouped nor in an aggregate, as `table.column`.
    loose: Option<(String, String)>,
}

impl Translator<'_, '_> {
    /// Refuses a column of a grouped query that its groups do not have one value of. `order`: the terms that sort it;
    /// `from`: where the clause begins that is next to be refused. Says whether the query is a grouped one.
    pub(super) fn check_grouped(
        &self,
        select: &Select,
        order: &[OrderByExpr],
        outputs: &[Output<'_>],
        from: usize,
    ) -> Step<bool> {
        let GroupByExpr::Expressions(terms, _) = &select.group_by else { return Ok(false) };
        if self.served {
            return Ok(false);
        }
        let meant = |term| self.meant(bare(term), select, outputs);
        let parts = terms.iter().flat_map(|term| match bare(term) {
            Expr::Tuple(parts) => parts.iter().collect(),
            _ => vec![term],
        });
        let Some(grouped) = parts.map(meant).collect::<Option<Vec<&Expr>>>() else { return Ok(false) };
        let mut shown = Shown { aggregate: !terms.is_empty() || select.having.is_some(), loose: None };
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    self.look(expr, &grouped, &mut shown);
                }
                SelectItem::Wildcard(_) => self.look_at_star(None, &grouped, &mut shown),
                SelectItem::QualifiedWildcard(kind, _) => {
                    let name = kind.to_string();
                    self.look_at_star(name.strip_suffix(".*"), &grouped, &mut shown);
                }
                SelectItem::ExprWithAliases { .. } => {}
            }
        }
        if let Some(having) = &select.having {
            self.look(having, &grouped, &mut shown);
        }
        let is_listed = |term: &&OrderByExpr| output_meant(&term.expr, outputs).is_some();
        for term in order.iter().filter(|term| !is_listed(term)) {
            self.look(&term.expr, &grouped, &mut shown);
        }
        let Some((table, column)) = shown.loose.filter(|_| shown.aggregate) else {
            return Ok(shown.aggregate);
        };
        let is_named =
            |token: &&sqltext::token::Token<'_>| unquoted(token.text).eq_ignore_ascii_case(&column);
        let place = self.tokens[from..].iter().find(is_named).or_else(|| self.tokens.get(from)).copied();
        let message = format!(
            "column \"{table}.{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        Err(self.error_at(place, state::GROUPING, message))
    }

    /// The same of the terms that sort a query, of which it is known whether it is grouped without them.
    pub(super) fn check_sorted(
        &self,
        select: &Select,
        order: &[OrderByExpr],
        outputs: &[Output<'_>],
    ) -> Step<()> {
        if matches!(select.distinct, Some(Distinct::Distinct)) && !self.is_kept() {
            self.check_distinct(select, order, outputs)?;
        }
        // An aggregate may stand there alone.
        let is_column = |term: &OrderByExpr| {
            matches!(bare(&term.expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
        };
        if self.grouped || !order.iter().all(is_column) {
            self.check_grouped(select, order, outputs, self.at)?;
        }
        Ok(())
    }

    /// Refuses an order by what is no column of a `SELECT DISTINCT`: several rows that are one there may differ in it.
    fn check_distinct(&self, select: &Select, order: &[OrderByExpr], outputs: &[Output<'_>]) -> Step<()> {
        let has_star = select
            .projection
            .iter()
            .any(|item| !matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }));
        let scope = self.scopes.innermost();
        let joins = scope.is_some_and(|scope| scope.merged);
        let unknown = has_star
            && scope.is_none_or(|scope| {
                joins || scope.relations.iter().any(|relation| self.columns_in(relation).is_none())
            });
        let is_listed = |term: &&OrderByExpr| {
            let mut term = bare(&term.expr);
            while let Expr::Collate { expr, .. } = term {
                term = bare(expr);
            }
            let name = match term {
                Expr::Value(_) => return true,
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) if has_star || joins => parts.last(),
                _ => None,
            };
            let is_called = |name: &str| outputs.iter().any(|output| output.is_called(name));
            name.is_some_and(|name| is_called(&name.value) || unknown)
                || select.projection.iter().any(|item| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        self.is_same(bare(expr), term)
                    }
                    _ => false,
                })
        };
        if order.iter().all(|term| is_listed(&term)) {
            return Ok(());
        }
        let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
        Err(self.error_at(self.peek(), "42P10", message))
    }

    /// Refuses aggregates and windows in the `RETURNING` that is next: it is computed of one row.
    pub(super) fn check_returning(&self) -> Step<()> {
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        // Whether a query stands in the parentheses that are open.
        let mut within = Vec::new();
        for (at, token) in rest.iter().enumerate() {
            let next = rest.get(at + 1);
            if token.is_sign("(") {
                let queries = within.last() == Some(&true);
                within.push(
                    queries || next.is_some_and(|next| next.is_any(&["SELECT", "WITH", "VALUES", "TABLE"])),
                );
            } else if token.is_sign(")") {
                if within.pop().is_none() {
                    return Ok(());
                }
            } else if within.last() != Some(&true) && next.is_some_and(|next| next.is_sign("(")) {
                let name = unquoted(token.text).to_ascii_lowercase();
                let call = &rest[at + 1..];
                let (commas, end) = extent(call);
                let is_called = matches!(token.kind, Kind::Word | Kind::Quoted)
                    && !at.checked_sub(1).is_some_and(|before| rest[before].is_sign("."));
                // `max(a, b)` is none.
                let several = commas > 0 && matches!(name.as_str(), "max" | "min");
                let kind = if is_called && !several { function::kind(renamed(&name)) } else { "f" };
                let mut behind = call.get(end..).unwrap_or_default();
                if let [word, open, ..] = behind
                    && word.is("FILTER")
                    && open.is_sign("(")
                {
                    behind = behind.get(1 + extent(&behind[1..]).1..).unwrap_or_default();
                }
                if is_called && behind.first().is_some_and(|word| word.is("OVER")) {
                    let message = "window functions are not allowed in RETURNING";
                    return Err(self.error_at(Some(*token), "42P20", message));
                }
                if kind == "a" {
                    let message = "aggregate functions are not allowed in RETURNING";
                    return Err(self.error_at(Some(*token), state::GROUPING, message));
                }
            }
        }
        Ok(())
    }

    /// What a term of `GROUP BY` means: a column of the list by its number, or by a name that no table has. None: that
    /// is not known.
    fn meant<'e>(&self, term: &'e Expr, select: &'e Select, outputs: &[Output<'_>]) -> Option<&'e Expr> {
        let place = match term {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => number.parse().ok()?,
                _ => return Some(term),
            },
            Expr::Identifier(name) if self.owner(None, &name.value).is_none() => {
                Output::place_of(outputs, &name.value)?
            }
            _ => return Some(term),
        };
        match select.projection.get(usize::checked_sub(place, 1)?)? {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(bare(expr)),
            _ => None,
        }
    }

    fn look(&self, expr: &Expr, grouped: &[&Expr], shown: &mut Shown) {
        let expr = bare(expr);
        if grouped.iter().any(|term| self.is_same(term, expr)) {
            return;
        }
        let mut look = |part: &Expr| self.look(part, grouped, shown);
        match expr {
            Expr::Identifier(name) => self.look_at_column(None, &name.value, grouped, shown),
            Expr::CompoundIdentifier(parts) => {
                if let [.., table, column] = &parts[..] {
                    self.look_at_column(Some(&table.value), &column.value, grouped, shown);
                }
            }
            Expr::Function(function) => self.look_at_call(function, grouped, shown),
            Expr::BinaryOp { left, right, .. } => {
                for part in [left, right] {
                    look(part);
                }
            }
            Expr::UnaryOp { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::IsNull(expr)
            | Expr::IsNotNull(expr)
            | Expr::IsTrue(expr)
            | Expr::IsFalse(expr)
            | Expr::Extract { expr, .. }
            | Expr::Collate { expr, .. }
            | Expr::InSubquery { expr, .. } => look(expr),
            Expr::Between { expr, low, high, .. } => {
                for part in [expr, low, high] {
                    look(part);
                }
            }
            Expr::Like { expr, pattern, .. } | Expr::ILike { expr, pattern, .. } => {
                for part in [expr, pattern] {
                    look(part);
                }
            }
            Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).for_each(look),
            Expr::Tuple(parts) => parts.iter().for_each(look),
            Expr::Case { operand, conditions, else_result, .. } => {
                let when = conditions.iter().flat_map(|CaseWhen { condition, result }| [condition, result]);
                operand.as_deref().into_iter().chain(when).chain(else_result.as_deref()).for_each(look);
            }
            // A query sees its own tables first, and other expressions are rare.
            _ => {}
        }
    }

    fn look_at_call(&self, call: &Function, grouped: &[&Expr], shown: &mut Shown) {
        let name =
            call.name.0.last().map_or_else(String::new, |part| unquoted(&part.to_string()).to_lowercase());
        let name = renamed(&name);
        let arguments = match &call.args {
            FunctionArguments::List(list) => &list.args[..],
            _ => &[],
        };
        // `max(a, b)` is none.
        let several = arguments.len() > 1 && matches!(name, "max" | "min");
        if call.over.is_none() && !several && (function::kind(name) == "a" || name == ONLY_ROW) {
            // One of columns that are all of the query around is that query's.
            let mut inside = Shown::default();
            arguments.iter().filter_map(expr_of).for_each(|expr| self.look(expr, &[], &mut inside));
            shown.aggregate |= inside.loose.is_some() || !arguments.iter().any(names_a_column);
            return;
        }
        arguments.iter().filter_map(expr_of).for_each(|expr| self.look(expr, grouped, shown));
        if let Some(WindowType::WindowSpec(window)) = &call.over {
            let order = window.order_by.iter().map(|term| &term.expr);
            window.partition_by.iter().chain(order).for_each(|expr| self.look(expr, grouped, shown));
        }
    }

    fn look_at_column(&self, table: Option<&str>, name: &str, grouped: &[&Expr], shown: &mut Shown) {
        let Some(relation) = self.owner(table, name) else { return };
        if shown.loose.is_none() && !self.is_of_grouped_key(relation, grouped) {
            shown.loose = Some((relation.name.clone(), name.to_lowercase()));
        }
    }

    fn look_at_star(&self, table: Option<&str>, grouped: &[&Expr], shown: &mut Shown) {
        let Some(scope) = self.scopes.innermost() else { return };
        let meant = |relation: &&Relation| table.is_none_or(|name| relation.name.eq_ignore_ascii_case(name));
        for relation in scope.relations.iter().filter(meant) {
            for (column, _) in self.columns_in(relation).unwrap_or_default() {
                if !self.has(grouped, relation, &column) {
                    self.look_at_column(Some(&relation.name), &column, grouped, shown);
                }
            }
        }
    }

    /// The table of the query that a column is of. None: no single one.
    pub(super) fn owner(&self, table: Option<&str>, name: &str) -> Option<&Relation> {
        let scope = self.scopes.innermost()?;
        let has = |relation: &&Relation| {
            table.is_none_or(|table| relation.name.eq_ignore_ascii_case(table))
                && matches!(self.column_in(relation, name), Found::Is(_))
        };
        let mut owners = scope.relations.iter().filter(has);
        // What `USING` joins is a column of both.
        owners.next().filter(|_| owners.next().is_none())
    }

    pub(super) fn column_of<'e>(&self, expr: &'e Expr) -> Option<(&Relation, &'e str)> {
        let (table, name) = match bare(expr) {
            Expr::Identifier(name) => (None, &name.value),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [.., table, name] => (Some(table.value.as_str()), &name.value),
                _ => return None,
            },
            _ => return None,
        };
        Some((self.owner(table, name)?, name))
    }

    /// Whether all of a table's primary key is grouped: a group has one row of it.
    fn is_of_grouped_key(&self, relation: &Relation, grouped: &[&Expr]) -> bool {
        let Source::Named(table) = &relation.source else { return false };
        let Some(table) = self.names.table(table) else {
            // The catalogue's tables have the key `oid`, and their own ways.
            return !self.names.is_view(table);
        };
        let (key, columns) = (&table.def().primary_key, &table.def().columns);
        !key.is_empty() && key.iter().all(|&at| self.has(grouped, relation, &columns[at].name))
    }

    /// Whether a term of `GROUP BY` is a column of a table.
    fn has(&self, grouped: &[&Expr], relation: &Relation, name: &str) -> bool {
        let is = |(own, column): (&Relation, &str)| {
            std::ptr::eq(own, relation) && column.eq_ignore_ascii_case(name)
        };
        // What `USING` joins is grouped for each of its tables.
        let joins = self.scopes.innermost().is_some_and(|scope| scope.merged);
        let is_joined = |term: &Expr| match term {
            Expr::Identifier(own) => joins && own.value.eq_ignore_ascii_case(name),
            _ => false,
        };
        grouped.iter().any(|term| is_joined(term) || self.column_of(term).is_some_and(is))
    }

    fn is_same(&self, one: &Expr, other: &Expr) -> bool {
        match (self.column_of(one), self.column_of(other)) {
            (Some((table, name)), Some((of, called))) => {
                std::ptr::eq(table, of) && name.eq_ignore_ascii_case(called)
            }
            (None, None) => self.spelled(one) == self.spelled(other),
            _ => false,
        }
    }

    /// The words of an expression, without what the same one may be spelled with: parentheses, the case of words, the
    /// names of tables, and the many names of types, as in `CAST`.
    fn spelled(&self, expr: &Expr) -> Vec<String> {
        let text = bare(expr).to_string();
        let all = tokens(&text);
        let is_table = |name: &str| {
            let relations = self.scopes.innermost().into_iter().flat_map(|scope| &scope.relations);
            relations.into_iter().any(|relation| relation.name.eq_ignore_ascii_case(name))
        };
        let mut words = Vec::new();
        let mut at = 0;
        while let Some(token) = all.get(at) {
            at += 1;
            let is_before_point = all.get(at).is_some_and(|next| next.is_sign("."));
            if token.is_sign("::") || token.is("AS") {
                // A type has several words, and perhaps numbers in parentheses: up to the next sign.
                at += all[at..].iter().take_while(|token| token.kind != Kind::Sign).count();
            } else if is_before_point && is_table(&unquoted(token.text)) {
                at += 1;
            } else if !token.is("CAST") && !["(", ")"].iter().any(|sign| token.is_sign(sign)) {
                words.push(token.text.trim_matches(['\'', '"']).to_lowercase());
            }
        }
        words
    }
}

/// How many commas stand in the parentheses that are next, and not deeper, and where they end.
fn extent(tokens: &[Token<'_>]) -> (usize, usize) {
    let (mut depth, mut commas) = (0_usize, 0);
    for (at, token) in tokens.iter().enumerate() {
        commas += usize::from(depth == 1 && token.is_sign(","));
        depth += usize::from(token.is_sign("("));
        depth = depth.saturating_sub(usize::from(token.is_sign(")")));
        if depth == 0 {
            return (commas, at + 1);
        }
    }
    (commas, tokens.len())
}

fn expr_of(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Whether an argument may name a column: it has a word in it.
fn names_a_column(argument: &FunctionArg) -> bool {
    let words = [Kind::Word, Kind::Quoted];
    tokens(&argument.to_string()).iter().any(|token| words.contains(&token.kind))
}
