//! `SELECT`: its list of columns, and what its `FROM` lists.

use sqltext::ast::{
    Distinct, Expr, FunctionArg, GroupByExpr, JoinConstraint, JoinOperator, NamedWindowExpr, Select,
    SelectItem, TableAlias, TableFactor, TableWithJoins,
};
use sqltext::error::state;
use sqltext::token::{Kind, Token};

use super::calls::{Argument, argument_of};
use super::equals::keyed;
use super::joined::joined;
use super::numeric::Digits;
use super::out::{Form, Out};
use super::outputs::Output;
use super::rows::Spread;
use super::schemas::Elsewhere;
use super::scope::{Relation, Source, StarColumn};
use super::types::Told;
use super::{Item, Plain, Step, Stop, Translator, indexes, numeric, objects};
use crate::lowered::{self, Joined, Listed, Named, Node};
use pgcatalog::function;
use pgcatalog::system::{self, is_function, row_function};
use sqltext::literals::bare;
use sqltext::token::{quoted_name, unquoted};

/// The words of a join.
const JOINS: &[&str] = &["NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "JOIN"];

/// What may stand behind a list of columns.
const END_OF_LIST: &[&str] = &["FROM", "UNION", "INTERSECT", "EXCEPT"];

/// What a `FROM` became, and where it begins and ends.
pub(super) struct Tables<'a> {
    begin: usize,
    end: usize,
    word: Out<'a>,
    out: Out<'a>,
    plain: Option<lowered::Tables>,
}

/// What a list of columns became.
#[derive(Default)]
struct Columns<'a> {
    items: Vec<Item>,
    listed: Vec<Listed>,
    outputs: Vec<Output<'a>>,
    out: Out<'a>,
}

impl<'a> Columns<'a> {
    /// Adds what a star became.
    fn add_made(&mut self, text: &str, from: usize, outputs: impl IntoIterator<Item = Output<'a>>) {
        self.out.push(Out::made(text, from));
        self.outputs.extend(outputs);
        self.listed.push(Listed::All(None));
    }
}

impl<'a> Translator<'a, '_> {
    pub(super) fn select(&mut self, select: &Select) -> Step<Out<'a>> {
        self.scopes.begin();
        let wanted = self.select.begin();
        if self.peek().is_some_and(|token| token.is("TABLE")) {
            return self.rows_of_table(wanted);
        }
        let mut out = Out::default();
        self.pass_word("SELECT", &mut out)?;
        self.distinct(select.distinct.as_ref(), &mut out)?;
        let distinct_keys = self.distinct_keys;
        let list = self.at;
        let mut from = if select.from.is_empty() { None } else { Some(self.tables_ahead(&select.from)?) };
        let plain = from.as_mut().and_then(|from| from.plain.take());
        self.at = list;
        self.spread = Some(Spread::default());
        self.alone = self.rows_are_alone();
        let around = self.keyed;
        if matches!(select.distinct, Some(Distinct::Distinct)) {
            self.keyed = Some(self.queries.len());
        }
        let group_alone = self.is_group_alone(select);
        let named = self.columns_named;
        let Columns { items, listed, outputs, out: columns } = self.columns(&select.projection)?;
        self.keyed = around;
        let spread = self.spread.take();
        self.add_arm(items);
        out.push(columns);
        let list_end = out.len();
        if group_alone {
            if self.columns_named > named {
                let message = "a column of the list must stand in GROUP BY or in an aggregate function";
                return Err(self.error_at(self.tokens.get(list).copied(), state::GROUPING, message));
            }
            out.push_str(" FROM (SELECT count(*)");
        }
        self.then_tables(from, &mut out)?;
        if let Some(rows) = spread.and_then(|spread| spread.joined(!select.from.is_empty())) {
            out.push(rows);
        }
        let mut condition = None;
        if let Some(selection) = &select.selection {
            self.pass_word("WHERE", &mut out)?;
            let given = outputs.iter().filter_map(Output::given_name).map(str::to_lowercase).collect();
            let around = std::mem::replace(&mut self.given, given);
            let mut selection = self.condition_by_index(selection, None)?;
            self.given = around;
            condition = Some(selection.take_node());
            out.push(selection);
        }
        self.begin_clause(None);
        let group = self.group(&select.group_by, &outputs, &mut out)?;
        let grouped = self.check_grouped(select, &[], &outputs, list)?;
        if let Some(condition) = &select.having {
            self.pass_word("HAVING", &mut out)?;
            out.push(self.condition(condition)?);
        }
        if group_alone {
            out.push_str(")");
        }
        self.end_clause();
        self.windows(select, &mut out)?;
        let more = select.distinct.is_some() || select.having.is_some() || !select.named_window.is_empty();
        if let Some(tables) = plain.filter(|_| wanted && !more) {
            let (order, limit, offset) = (Vec::new(), None, None);
            let select = lowered::Select { list: listed, tables, condition, group, order, limit, offset };
            self.select = Plain::Found(Box::new(select));
        }
        (self.list_end, self.distinct_keys, self.outputs) = (list_end, distinct_keys, outputs);
        self.grouped = grouped;
        Ok(out)
    }

    /// Whether `HAVING` makes one group of all rows of which the list that is next shows nothing: SQLite wants to see
    /// an aggregate there.
    fn is_group_alone(&self, select: &Select) -> bool {
        let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(terms, _) if terms.is_empty());
        let list = &self.tokens[self.at..self.end_of_list()];
        let is_aggregate = |pair: &[Token<'a>]| {
            pair[1].is_sign("(") && function::kind(&unquoted(pair[0].text).to_ascii_lowercase()) == "a"
        };
        select.having.is_some() && !grouped && !list.windows(2).any(is_aggregate)
    }

    /// `TABLE name`: all of its rows.
    fn rows_of_table(&mut self, wanted: bool) -> Step<Out<'a>> {
        let word = self.token()?;
        let mut out = Out::made("SELECT * FROM", word.start);
        let table = self.table(None, &mut out)?;
        (self.outputs, self.grouped) = (self.outputs_of_star(None), false);
        self.add_arm(vec![Item { star: true, columns: self.star(None), ..Item::default() }]);
        if let Some(first) = table.filter(|_| wanted) {
            let tables = lowered::Tables { first, second: None };
            let (list, condition, group) = (vec![Listed::All(None)], None, Vec::new());
            let (order, limit, offset) = (Vec::new(), None, None);
            let select = lowered::Select { list, tables, condition, group, order, limit, offset };
            self.select = Plain::Found(Box::new(select));
        }
        Ok(out)
    }

    /// Whether the list that is next has no more than one call that gives rows.
    fn rows_are_alone(&self) -> bool {
        let list = &self.tokens[self.at..self.end_of_list()];
        let calls = list.windows(2).filter(|pair| {
            pair[1].is_sign("(")
                && (row_function(&unquoted(pair[0].text)).is_some() || self.is_own_set(pair[0]))
        });
        calls.take(2).count() < 2
    }

    fn windows(&mut self, select: &Select, out: &mut Out<'a>) -> Step<()> {
        for (at, window) in select.named_window.iter().enumerate() {
            if at == 0 {
                self.pass_word("WINDOW", out)?;
            } else {
                self.pass_sign(",", out)?;
            }
            self.pass(out);
            self.pass_word("AS", out)?;
            match &window.1 {
                NamedWindowExpr::WindowSpec(spec) => self.window(spec, out)?,
                NamedWindowExpr::NamedWindow(_) => self.pass(out),
            }
        }
        Ok(())
    }

    /// The columns behind `RETURNING`.
    pub(super) fn returning(&mut self, items: Option<&Vec<SelectItem>>) -> Step<Option<String>> {
        let Some(items) = items else { return Ok(None) };
        self.keyword("RETURNING")?;
        self.check_returning()?;
        // These are given, not assigned.
        self.targets = None;
        self.inserts = false;
        let Columns { items, out: columns, .. } = self.columns(items)?;
        if let Some(query) = self.queries.last_mut() {
            *query = Some(items);
        }
        Ok(Some(columns.sql()))
    }

    fn columns(&mut self, list: &[SelectItem]) -> Step<Columns<'a>> {
        let mut columns = Columns::default();
        for (at, column) in list.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut columns.out)?;
            }
            if self.next_is_star_of_joined() {
                self.joined_columns(&mut columns)?;
                continue;
            }
            if self.next_is_star_of_renamed() {
                self.renamed_columns(&mut columns.items, &mut columns.out)?;
                columns.listed.push(Listed::All(None));
                continue;
            }
            self.column(column, at, &mut columns)?;
        }
        Ok(columns)
    }

    /// The star of joined tables that is next, column by column.
    fn joined_columns(&mut self, columns: &mut Columns<'a>) -> Step<()> {
        let star = self.sign("*")?;
        let all = self.scopes.innermost().and_then(|scope| scope.star.clone()).unwrap_or_default();
        let text = |column: &StarColumn| format!("{} AS {}", column.text, quoted_name(&column.name));
        let texts: Vec<String> = all.iter().map(text).collect();
        let outputs: Vec<_> = all.iter().map(|own| Output::of_star(own, star.start)).collect();
        columns.add_made(&texts.join(", "), star.start, outputs);
        columns.items.extend(all.into_iter().map(|own| Item {
            ty: own.ty,
            label: Some(own.name),
            ..Item::default()
        }));
        Ok(())
    }

    /// One column of a list, behind those that are there.
    fn column(&mut self, column: &SelectItem, number: usize, columns: &mut Columns<'a>) -> Step<()> {
        let (expr, named) = match column {
            SelectItem::UnnamedExpr(expr) => (expr, false),
            SelectItem::ExprWithAlias { expr, .. } => (expr, true),
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => return self.star_column(columns),
            SelectItem::ExprWithAliases { .. } => return Err(Stop::Unknown),
        };
        let of_row = self.row_of == Some(self.queries.len());
        let row = if of_row { self.whole_row(expr)? } else { None };
        let column = match row {
            Some(row) => row,
            None => self.expression(expr)?,
        };
        let renamed = if let Form::Renamed(name) = *column.form { Some(name) } else { None };
        let alias = if named { Some(self.alias_ahead()?) } else { None };
        let own = own_name(&column).filter(|_| alias.is_none()).map(|name| (name, column.text()));
        let (mut item, mut column) = self.shown_column(column, alias.as_deref(), number)?;
        // A column that is converted is still called by its name, where others read it.
        if let Some((name, text)) = own
            && text != column.text()
        {
            let (ty, node) = (column.ty, column.take_node());
            column.push_str(&format!(" AS {}", quoted_name(&name)));
            column = column.of_type(ty).meaning(node);
            item.label = Some(name);
        }
        item.query = matches!(bare(expr), Expr::Subquery(_) | Expr::Exists { .. });
        let node = column.take_node();
        let place = columns.items.iter().all(|item| !item.star).then_some(columns.items.len() + 1);
        let output = (column.clone(), node.clone());
        columns.listed.push(Listed::Value(node, alias.clone()));
        let is_named = alias.is_some() || renamed.is_some();
        if alias.is_none()
            && let Some(name) = renamed
        {
            column.push_str(&format!(" AS {name}"));
            column.ty = item.ty;
        }
        if let Some(alias) = alias {
            let ty = column.ty;
            if self.peek().is_some_and(|token| token.is("AS")) {
                self.pass(&mut column);
            }
            let name = self.token()?;
            column.push(self.name_copied(name));
            column.ty = ty;
            if let Some(ty) = ty.or(item.ty) {
                self.learned.insert(alias.to_lowercase(), ty);
            }
            item.label = Some(alias);
        }
        columns.outputs.push(Self::output(&item, is_named, output, place));
        columns.items.push(item);
        columns.out.push(column);
        Ok(())
    }

    /// A column as it is given or assigned.
    fn shown_column(&mut self, column: Out<'a>, alias: Option<&str>, number: usize) -> Step<(Item, Out<'a>)> {
        let mut column = column;
        let target =
            self.targets.as_ref().and_then(|targets| targets.get(number)).and_then(|target| target.ty);
        if let Some(ty) = target {
            self.assign(&mut column, ty)?;
        }
        if numeric::is_float(&column)
            && let Some(alias) = alias
        {
            self.learn_float(alias);
        }
        column = match target {
            Some(_) => column,
            None if self.inserts => column,
            None if self.queries.len() == 1 && objects::is_number(column.ty) => objects::shown(column),
            None => self.column_of_arms(number, column)?,
        };
        if self.keyed == Some(self.queries.len()) {
            column = keyed(column);
        }
        let item = Item {
            star: false,
            columns: None,
            ty: column.ty,
            parameter: column.parameter(),
            label: column.label.clone(),
            query: false,
            mixed: false,
            told: Told::of(&column),
            digits: Digits::of(&column),
            typed: column.ty,
            open: Told::of(&column).is_literal(),
            counts: self.queries.len() > 1 && indexes::counts(&column),
            widens: false,
            unmatched: None,
        };
        Ok((item, column))
    }

    /// `*` or `t.*`
    fn star_column(&mut self, all: &mut Columns<'a>) -> Step<()> {
        let mut out = Out::default();
        let mut qualifier = None;
        self.pass_schema();
        while !self.next_is_sign(0, "*") {
            let name = self.token()?;
            out.push(self.copied(name));
            self.pass_sign(".", &mut out)?;
            qualifier = Some(unquoted(name.text));
        }
        self.pass(&mut out);
        let columns = self.star(qualifier.as_deref());
        all.outputs.extend(self.outputs_of_star(qualifier.as_deref()));
        all.items.push(Item { star: true, columns, ..Item::default() });
        all.listed.push(Listed::All(qualifier));
        all.out.push(out);
        Ok(())
    }

    /// The name that `AS name` or `name` gives next, which is not taken.
    fn alias_ahead(&self) -> Step<String> {
        let explicit = self.peek().is_some_and(|token| token.is("AS"));
        let name = self.peek_at(usize::from(explicit)).ok_or(Stop::Unknown)?;
        match name.kind {
            Kind::Word | Kind::Quoted => Ok(unquoted(name.text)),
            Kind::Text if explicit => Ok(unquoted(name.text)),
            _ => Err(Stop::Unknown),
        }
    }

    /// The `FROM` that stands somewhere behind this place, which is looked at first: the columns are of its tables.
    pub(super) fn tables_ahead(&mut self, tables: &[TableWithJoins]) -> Step<Tables<'a>> {
        let begin = self.place_of_from().ok_or(Stop::Unknown)?;
        self.at = begin;
        let word = self.keyword("FROM")?;
        let word = self.copied(word);
        let (out, plain) = self.tables(tables)?;
        Ok(Tables { begin, end: self.at, word, out, plain })
    }

    /// Tables with commas between.
    pub(super) fn tables(&mut self, tables: &[TableWithJoins]) -> Step<(Out<'a>, Option<lowered::Tables>)> {
        let (mut out, mut found) = (Out::default(), Vec::new());
        self.see_joins(tables);
        let mut star = Some(Vec::new());
        for (at, table) in tables.iter().enumerate() {
            if at > 0 {
                self.pass_sign(",", &mut out)?;
            }
            self.joined_tables(table, &mut out, &mut found)?;
            let columns = self.joined.take();
            star = star.zip(columns).map(|(all, columns)| [all, columns].concat());
        }
        if let Some(scope) = self.scopes.innermost_mut() {
            scope.star = star;
        }
        Ok((out, plain_tables(found)))
    }

    /// Goes past it, where it stands.
    fn then_tables(&mut self, from: Option<Tables<'a>>, out: &mut Out<'a>) -> Step<()> {
        let Some(from) = from else { return Ok(()) };
        if self.at != from.begin {
            return Err(Stop::Unknown);
        }
        out.push(from.word);
        out.push(from.out);
        self.at = from.end;
        Ok(())
    }

    /// The same without its word.
    pub(super) fn behind_tables(&mut self, from: Option<Tables<'a>>) -> Step<Option<Out<'a>>> {
        let from = from.map(|from| Tables { word: Out::default(), ..from });
        let there = from.is_some();
        let mut out = Out::default();
        self.then_tables(from, &mut out)?;
        Ok(there.then_some(out))
    }

    /// Where the next `FROM` outside parentheses is that lists tables.
    fn place_of_from(&self) -> Option<usize> {
        Some(self.end_of_list()).filter(|&end| self.tokens.get(end).is_some_and(|token| token.is("FROM")))
    }

    /// Where the list of columns that is next ends: at its `FROM`, or with its query.
    fn end_of_list(&self) -> usize {
        let mut depth = 0_usize;
        for at in self.at..self.tokens.len() {
            let token = &self.tokens[at];
            let before = |back: usize, words: &[&str]| {
                at.checked_sub(back).is_some_and(|before| self.tokens[before].is_any(words))
            };
            if token.is_sign("(") {
                depth += 1;
            } else if token.is_sign(")") {
                match depth.checked_sub(1) {
                    Some(outer) => depth = outer,
                    None => return at,
                }
            } else if depth == 0
                && token.is_any(END_OF_LIST)
                && !(before(1, &["DISTINCT"]) && before(2, &["IS", "NOT"]))
                && !before(1, &["AS"])
            {
                return at;
            }
        }
        self.tokens.len()
    }

    /// Looks ahead at how tables are joined: the conditions between them depend on it.
    fn see_joins(&mut self, tables: &[TableWithJoins]) {
        let Some(scope) = self.scopes.innermost_mut() else { return };
        for operator in tables.iter().flat_map(|table| &table.joins).map(|join| &join.join_operator) {
            let (JoinOperator::Join(on)
            | JoinOperator::Inner(on)
            | JoinOperator::Left(on)
            | JoinOperator::LeftOuter(on)
            | JoinOperator::Right(on)
            | JoinOperator::RightOuter(on)
            | JoinOperator::FullOuter(on)
            | JoinOperator::CrossJoin(on)) = operator
            else {
                continue;
            };
            scope.merged |= matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural);
            scope.all_optional |= matches!(
                operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_)
            );
        }
    }

    /// `found`: its tables, for as long as nothing else is among them.
    fn joined_tables(
        &mut self,
        tables: &TableWithJoins,
        out: &mut Out<'a>,
        found: &mut Vec<Option<Joined>>,
    ) -> Step<()> {
        let (first, merged) = (self.scopes.len(), self.scopes.innermost().is_some_and(|scope| scope.merged));
        let table = self.relation(&tables.relation, out)?;
        let mut columns = if merged { self.columns_of_entry(&tables.relation, first) } else { None };
        found.push(table.map(|table| Joined { table, left: false, on: None }));
        for join in &tables.joins {
            let begin = self.at;
            self.pass_words(JOINS, out);
            let words = &self.tokens[begin..self.at];
            let left = words.iter().any(|word| word.is("LEFT"));
            let mut plain = !words.iter().any(|word| word.is_any(&["NATURAL", "RIGHT", "FULL"]));
            let number = self.scopes.len();
            let table = self.relation(&join.relation, out)?;
            if merged {
                let right = self.columns_of_entry(&join.relation, number);
                self.check_joined(columns.as_deref(), right.as_deref(), &join.join_operator)?;
                columns = joined(columns, right, &join.join_operator);
            }
            if left {
                self.scopes.make_optional(number);
            }
            let (JoinOperator::Join(on)
            | JoinOperator::Inner(on)
            | JoinOperator::Left(on)
            | JoinOperator::LeftOuter(on)
            | JoinOperator::Right(on)
            | JoinOperator::RightOuter(on)
            | JoinOperator::FullOuter(on)
            | JoinOperator::CrossJoin(on)) = &join.join_operator
            else {
                return Err(Stop::Unknown);
            };
            let mut node = None;
            match on {
                JoinConstraint::On(condition) => {
                    self.pass_word("ON", out)?;
                    // One of several in parentheses may have no row itself.
                    let alone = matches!(join.relation, TableFactor::Table { .. });
                    let joined = if alone { number } else { usize::MAX };
                    let mut condition = self.condition_by_index(condition, Some(joined))?;
                    node = Some(condition.take_node());
                    out.push(condition);
                }
                JoinConstraint::Using(_) => {
                    plain = false;
                    self.pass_word("USING", out)?;
                    self.pass_parentheses(out)?;
                }
                JoinConstraint::Natural | JoinConstraint::None => {}
            }
            found.push(table.filter(|_| plain).map(|table| Joined { table, left, on: node }));
        }
        self.joined = columns;
        Ok(())
    }

    /// Copies parentheses in which there are names only.
    fn pass_parentheses(&mut self, out: &mut Out<'a>) -> Step<()> {
        self.pass_sign("(", out)?;
        while !self.next_is_sign(0, ")") && self.peek().is_some() {
            self.pass(out);
        }
        self.pass_sign(")", out)
    }

    /// A table, a function that is a table, a query or a join in parentheses, with the names that it is given. Returns
    /// the name of a plain table.
    pub(super) fn relation(&mut self, factor: &TableFactor, out: &mut Out<'a>) -> Step<Option<Named>> {
        match factor {
            TableFactor::Table { alias, args: None, .. } => return self.table(alias.as_ref(), out),
            TableFactor::Table { alias, args: Some(args), .. } => {
                if let Some(own) = self.own_function() {
                    return self.own_table(&own, &args.args, alias.as_ref(), out).map(|()| None);
                }
                self.pass_schema_of_function()?;
                self.rows_of_function(&arguments_of(&args.args)?, alias.as_ref(), out)
            }
            TableFactor::Function { lateral, args, alias, .. } => {
                if *lateral {
                    self.keyword("LATERAL")?;
                }
                if let Some(own) = self.own_function() {
                    return self.own_table(&own, args, alias.as_ref(), out).map(|()| None);
                }
                self.pass_schema_of_function()?;
                self.rows_of_function(&arguments_of(args)?, alias.as_ref(), out)
            }
            TableFactor::Derived { lateral: true, subquery, alias, .. } => {
                self.lateral(subquery, alias.as_ref(), out)
            }
            TableFactor::Derived { subquery, alias, .. } => {
                self.is_table = true;
                let (query, items) = self.query_in_parentheses(subquery)?;
                self.derived(query, &items, alias.as_ref(), out)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                self.pass_sign("(", out)?;
                let first = self.scopes.len();
                self.see_joins(std::slice::from_ref(table_with_joins));
                self.joined_tables(table_with_joins, out, &mut Vec::new())?;
                self.scopes.make_optional(first);
                self.pass_sign(")", out)?;
                self.table_alias_copied(alias.as_ref(), out).map(|_| ())
            }
            _ => Err(Stop::Unknown),
        }?;
        Ok(None)
    }

    fn table(&mut self, alias: Option<&TableAlias>, out: &mut Out<'a>) -> Step<Option<Named>> {
        if self.peek_at(1).is_some_and(|next| next.kind != Kind::Sign) {
            self.take_word("ONLY");
        }
        let (name, mut parts, elsewhere) = self.qualified_table(false)?;
        out.push(name);
        let behind_name = out.len();
        let mut own = parts.pop().unwrap_or_default();
        if parts.is_empty() && !self.laterals.is_empty() {
            self.check_common(&own)?;
        }
        let source = Source::Named(own.to_lowercase());
        let of_system = elsewhere.as_ref().is_some_and(|elsewhere| !elsewhere.of_user);
        let registered = own.clone();
        if let Some(Elsewhere { bare, .. }) = elsewhere.as_ref().filter(|_| alias.is_none()) {
            // Its columns are qualified by the name that it has in its schema.
            out.push_str(&format!(" AS {}", quoted_name(bare)));
            own.clone_from(bare);
        }
        let named =
            self.at + alias.map_or(0, |_| 1 + usize::from(self.peek().is_some_and(|token| token.is("AS"))));
        let alias = self.table_alias_copied(alias, out)?;
        let plain = self.at == named && !of_system;
        let common = self.scopes.common(&own).filter(|_| parts.is_empty() && elsewhere.is_none()).cloned();
        if common.is_none() && !of_system && !self.reads.contains(&registered) {
            self.reads.push(registered.clone());
        }
        let source = common.unwrap_or(source);
        let begin = self.at;
        if let Some(clause) = self.indexed_taken()? {
            let place = self.tokens[self.at - 1];
            match self.forced(&source, &clause, place)? {
                Some(forced) => {
                    out.insert(behind_name, Out::made(format!("({})", forced.argument()), place.start));
                }
                None => out.push(self.copied_from(begin)),
            }
        }
        // Columns may be named behind the alias, or an index.
        let plain = plain && self.at == begin;
        self.scopes.add(Relation::new(alias.clone().unwrap_or_else(|| own.clone()), source));
        let alias = alias.or_else(|| elsewhere.map(|_| own));
        Ok(plain.then(|| Named { schema: parts.pop(), name: registered, alias }))
    }

    /// A table's name: its text and its parts, and where SQLite knows it by another one. `written`: it is no query's.
    pub(super) fn qualified_table(
        &mut self,
        written: bool,
    ) -> Step<(Out<'a>, Vec<String>, Option<Elsewhere>)> {
        if let Some((out, elsewhere)) = self.table_elsewhere(written)? {
            return Ok((out, vec![elsewhere.registered.clone()], Some(elsewhere)));
        }
        let (out, parts, _) = self.qualified()?;
        Ok((out, parts, None))
    }

    fn rows_of_function(
        &mut self,
        arguments: &[Argument<'_>],
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<()> {
        let begin = self.at;
        let (name, mut parts, token) = self.qualified()?;
        let own = parts.pop().unwrap_or_default();
        if arguments.is_empty() && own.eq_ignore_ascii_case("pg_show_all_settings") {
            return self.settings_as_rows(&own.to_lowercase(), alias, out);
        }
        let values: Option<Vec<&Expr>> = arguments.iter().map(Argument::value).collect();
        if let Some(values) = values
            && let Some(rows) = self.rows_of(token, &own.to_ascii_lowercase(), &values)?
        {
            return self.rows_in_from(rows, &own.to_lowercase(), alias, out);
        }
        let call = self.call(name, &own, token, arguments, None)?;
        if is_scalar(&own) && !self.next_is_words(&["WITH", "ORDINALITY"]) {
            return self.row_of_call(call, &own.to_lowercase(), alias, out);
        }
        if !gives_rows(&own) {
            return Err(self.error_at(Some(token), "42883", format!("function {own}() does not exist")));
        }
        out.push(call);
        self.pass_words(&["WITH", "ORDINALITY"], out);
        let own = unquoted(self.tokens[begin].text);
        let name = self.table_alias_copied(alias, out)?;
        self.scopes.add(Relation::new(name.unwrap_or(own), Source::Query(None)));
        Ok(())
    }

    /// The function whose rows are those of `pg_settings`.
    fn settings_as_rows(&mut self, own: &str, alias: Option<&TableAlias>, out: &mut Out<'a>) -> Step<()> {
        const SETTINGS: &str = "pg_settings";
        let open = self.sign("(")?;
        self.sign(")")?;
        let (given, _) = self.alias_taken(alias)?;
        let name = given.unwrap_or_else(|| own.to_owned());
        out.push(Out::made(format!("{SETTINGS} AS {}", quoted_name(&name)), open.start));
        if !self.reads.iter().any(|read| read == SETTINGS) {
            self.reads.push(SETTINGS.to_owned());
        }
        self.scopes.add(Relation::new(name, Source::Named(SETTINGS.to_owned())));
        Ok(())
    }

    /// A function that gives one value is a table of one row, and its column is called like the table.
    fn row_of_call(
        &mut self,
        call: Out<'a>,
        name: &str,
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<()> {
        let (given, columns) = self.alias_taken(alias)?;
        let name = given.unwrap_or_else(|| name.to_owned());
        let column = columns.into_iter().next().unwrap_or_else(|| name.clone());
        let ty = call.ty;
        let (before, behind) = (quoted_name(&column), quoted_name(&name));
        out.push(call.wrapped("(SELECT ", &format!(" AS {before}) AS {behind}")));
        let item = Item { ty, label: Some(column), ..Item::default() };
        let source = self.source_of_items(&[item], &[]);
        self.scopes.add(Relation::new(name, source));
        Ok(())
    }

    /// A query in the place of a table. SQLite has no names of columns behind its name.
    pub(super) fn derived(
        &mut self,
        query: Out<'a>,
        items: &[Item],
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<()> {
        if alias.is_none_or(|alias| alias.columns.is_empty()) {
            out.push(query);
            let name = self.table_alias_copied(alias, out)?.unwrap_or_default();
            let source = self.source_of_items(items, &[]);
            self.scopes.add(Relation::new(name, source));
            return Ok(());
        }
        let (name, columns) = self.alias_taken(alias)?;
        let name = name.unwrap_or_default();
        let quoted = quoted_name(&name);
        let given: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
        let before = format!("(WITH {quoted}({}) AS ", given.join(", "));
        out.push(query.wrapped(&before, &format!(" SELECT * FROM {quoted}) AS {quoted}")));
        let source = self.source_of_items(items, &columns);
        self.scopes.add(Relation::new(name, source));
        Ok(())
    }

    /// Copies the name that a table is given; returns it.
    pub(super) fn table_alias_copied(
        &mut self,
        alias: Option<&TableAlias>,
        out: &mut Out<'a>,
    ) -> Step<Option<String>> {
        let mut name = None;
        if let Some(alias) = alias {
            self.pass_words(&["AS"], out);
            let token = self.token()?;
            out.push(self.name_copied(token));
            name = Some(unquoted(token.text));
            if !alias.columns.is_empty() {
                self.pass_parentheses(out)?;
            }
        }
        Ok(name)
    }

    /// Takes `[AS] name [(a, b)]`.
    pub(super) fn alias_taken(&mut self, alias: Option<&TableAlias>) -> Step<(Option<String>, Vec<String>)> {
        let Some(alias) = alias else { return Ok((None, Vec::new())) };
        self.take_word("AS");
        if alias.columns.is_empty() {
            return Ok((Some(unquoted(self.token()?.text)), Vec::new()));
        }
        let (name, columns) = self.name_with_columns().ok_or(Stop::Unknown)?;
        Ok((Some(name), columns))
    }

    fn name_with_columns(&mut self) -> Option<(String, Vec<String>)> {
        let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Quoted);
        let name = self.take().filter(is_name)?;
        if !self.take_sign("(") {
            return None;
        }
        let mut columns = Vec::new();
        loop {
            let column = self.take().filter(is_name)?;
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
}

/// One table or two, if nothing else was found.
fn plain_tables(found: Vec<Option<Joined>>) -> Option<lowered::Tables> {
    let mut found = found.into_iter();
    let (first, second, None) = (found.next()??, found.next(), found.next()) else { return None };
    let second = match second {
        Some(second) => Some(second?),
        None => None,
    };
    Some(lowered::Tables { first: first.table, second })
}

/// Whether a function gives one value for a call.
fn is_scalar(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !function::TABLE_FUNCTIONS.contains(&lower.as_str())
        && row_function(&lower).is_none()
        && is_function(&lower)
}

fn arguments_of(arguments: &[FunctionArg]) -> Step<Vec<Argument<'_>>> {
    arguments.iter().map(argument_of).collect::<Option<_>>().ok_or(Stop::Unknown)
}

/// Whether SQLite has a function of rows of this name. Any table can be called like one, and would be read unnoticed.
fn gives_rows(name: &str) -> bool {
    let known = |known: &&str| known.eq_ignore_ascii_case(name);
    let ours = [system::UNNEST, super::lateral::LATERAL];
    function::TABLE_FUNCTIONS.iter().chain(&ours).any(known) || system::is_rows_table(name)
}

/// The name of what is a column and nothing else.
fn own_name(column: &Out<'_>) -> Option<String> {
    match column.node() {
        Some(Node::Column { name, .. }) => Some(name.clone()),
        _ => None,
    }
}
