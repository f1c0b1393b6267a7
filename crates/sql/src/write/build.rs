//! From the tree of a statement that writes to its plan: the queries that compute it, as text, compiled.

use std::sync::Arc;

use pgcatalog::predicate::predicate_of;
use sqlite3_parser::ast::{
    Expr, FromClause, Indexed, InsertBody, Limit, Name, OneSelect, QualifiedName, ResolveType, ResultColumn,
    Select, Set, SortedColumn, Stmt, Upsert, UpsertDo, UpsertIndex, With,
};
use store::Table;
use store::definition::TableDef;

use super::batch::Constraint;
use super::change::{ChangeKind, ChangePlan, Picked, UpdateConflict};
use super::insert::{InsertPlan, OnConflict, Operand, Source, UpsertClause, UpsertUpdate};
use super::plan::{Returning, Verb, WritePlan};
use super::target::Target;
use super::view::TableView;
use crate::core::{Core, check_schema};
use crate::error::{SqlError, state};
use crate::native::{self, NativePlan};
use crate::rewrite::{Forced, same_expression};
use crate::table::{NEW_ROWS, OLD_ROWS, Shape, Shown};
use crate::text::literal::{parameter_of, value_of};
use crate::text::parameter::numbered;
use crate::text::parse::{Sql, with_tree};
use crate::text::token::{Tokens, quoted_name, unquoted};

/// Compiles a statement that writes.
pub(crate) fn build(core: &Core, sql: &str) -> Result<WritePlan, SqlError> {
    Ok(build_for_both(core, sql)?.0)
}

/// The same, with what it needs no SQLite for.
pub(crate) fn build_for_both(core: &Core, sql: &str) -> Result<(WritePlan, Option<NativePlan>), SqlError> {
    let numbered = numbered(sql)?;
    let plan = |tree: &Stmt<'_>| {
        let mut plan = build_tree(core, tree, numbered.count)?;
        plan.rolls_back = rolls_back(tree);
        let native = if core.native { native::of_change(core, tree, &plan) } else { None };
        Ok((plan, native))
    };
    with_tree(&numbered.sql, plan).map_err(|error| relocated(error, sql))
}

fn rolls_back(tree: &Stmt<'_>) -> bool {
    matches!(
        tree,
        Stmt::Insert { or_conflict: Some(ResolveType::Rollback), .. }
            | Stmt::Update { or_conflict: Some(ResolveType::Rollback), .. }
    )
}

/// Errors speak of the text as it was sent, not of what was made of it.
fn relocated(mut error: SqlError, sql: &str) -> SqlError {
    if error.state == state::SYNTAX && error.position.is_some() {
        // The text with numbered parameters may be longer; the one that was sent has the same mistake.
        return with_tree(sql, |_| Ok(())).err().unwrap_or(error);
    }
    error.position = None;
    core_position(error, sql)
}

/// Finds the name that an error is about in the statement.
fn core_position(error: SqlError, sql: &str) -> SqlError {
    let named = [state::UNKNOWN_COLUMN, state::UNKNOWN_TABLE].contains(&error.state);
    let name = error.message.split('"').nth(1).filter(|_| named).map(str::to_owned);
    let name = name.and_then(|name| name.rsplit('.').next().map(str::to_owned));
    let token = name.and_then(|name| {
        crate::text::token::Tokens::new(sql).find(|token| unquoted(token.text).eq_ignore_ascii_case(&name))
    });
    match token {
        Some(token) => error.at(sql, token.start),
        None => error,
    }
}

fn build_tree(core: &Core, tree: &Stmt<'_>, parameters: usize) -> Result<WritePlan, SqlError> {
    match tree {
        Stmt::Insert { with, or_conflict, tbl_name, columns, body, returning } => {
            let writer = Writer::new(core, tbl_name, with.as_ref(), parameters)?;
            writer.insert(*or_conflict, columns.as_deref().map(|names| &names[..]), body, *returning)
        }
        Stmt::Update {
            with,
            or_conflict,
            tbl_name,
            sets,
            indexed,
            from,
            where_clause,
            returning,
            order_by,
            limit,
        } => {
            let writer = Writer::new(core, tbl_name, with.as_ref(), parameters)?;
            let rows = Rows {
                indexed: writer.forced(indexed.as_ref())?,
                from: from.as_ref(),
                condition: where_clause.as_ref(),
                order: order_by.unwrap_or_default(),
                limit: *limit,
            };
            writer.update(*or_conflict, sets, &rows, *returning)
        }
        Stmt::Delete { with, tbl_name, indexed, where_clause, returning, order_by, limit } => {
            let writer = Writer::new(core, tbl_name, with.as_ref(), parameters)?;
            let rows = Rows {
                indexed: writer.forced(indexed.as_ref())?,
                from: None,
                condition: where_clause.as_ref(),
                order: order_by.unwrap_or_default(),
                limit: *limit,
            };
            writer.delete(&rows, *returning)
        }
        _ => Err(SqlError::new(state::SYNTAX, "a statement that writes was expected")),
    }
}

/// Which rows an `UPDATE` or `DELETE` is about.
struct Rows<'t> {
    indexed: Option<Forced>,
    from: Option<&'t FromClause<'t>>,
    condition: Option<&'t Expr<'t>>,
    order: &'t [SortedColumn<'t>],
    limit: Option<&'t Limit<'t>>,
}

/// The table that is written and what the statement calls it.
struct Writer<'t> {
    core: &'t Core,
    table: Arc<Table>,
    /// Where it is written through a view.
    view: Option<TableView>,
    shape: Shape,
    /// As expressions name it: quoted.
    name: String,
    with: Option<&'t With<'t>>,
    parameters: usize,
}

impl<'t> Writer<'t> {
    fn new(
        core: &'t Core,
        name: &QualifiedName<'_>,
        with: Option<&'t With<'t>>,
        parameters: usize,
    ) -> Result<Self, SqlError> {
        let view = core.catalog.view(&unquoted(name.name.0)).filter(|_| check_schema(name).is_ok());
        let view = view.map(|view| TableView::of(core, view)).transpose()?;
        let table = match &view {
            Some(view) => Arc::clone(&view.table),
            None => core.table(name)?,
        };
        let shape = Shape::of(&table);
        let called = name.alias.as_ref().unwrap_or(&name.name);
        Ok(Self { core, table, view, shape, name: quoted_name(&unquoted(called.0)), with, parameters })
    }

    /// What `INDEXED BY` asks for.
    fn forced(&self, indexed: Option<&Indexed<'_>>) -> Result<Option<Forced>, SqlError> {
        let named = |name: Option<&str>| Forced::named(&self.table, name).map(Some);
        match indexed {
            Some(_) if self.view.is_some() => Err(SqlError::not_supported("INDEXED BY of a view")),
            None => Ok(None),
            Some(Indexed::NotIndexed) => named(None),
            Some(Indexed::IndexedBy(name)) => named(Some(&unquoted(name.0))),
        }
    }

    fn plan(
        self,
        verb: Verb,
        returning: Option<&[ResultColumn<'_>]>,
        source_sql: String,
    ) -> Result<WritePlan, SqlError> {
        let returning = returning.map(|list| self.returning(list)).transpose()?;
        Ok(WritePlan {
            table: self.table,
            parameters: self.parameters,
            verb,
            returning,
            rolls_back: false,
            source_sql,
        })
    }

    /// The list of rows as a table of the statement's name for it.
    fn rows_of_list(&self, list: usize, name: &str) -> String {
        match &self.view {
            Some(view) => view.rows_of_list(list, name),
            None => format!("{}({list}) AS {name}", quoted_name(self.table.name())),
        }
    }

    /// A column as an expression; one that is still being made holds nothing.
    fn qualified(&self, at: usize) -> String {
        let column = &self.table.def().columns[at];
        if column.pending {
            return "NULL".to_owned();
        }
        let name = self.view.as_ref().map_or_else(|| column.name.clone(), |view| view.hidden_name(at));
        format!("{}.{}", self.name, quoted_name(&name))
    }

    fn with_clause(&self) -> String {
        self.with.map_or_else(String::new, |with| format!("{} ", Sql(with)))
    }

    fn returning(&self, list: &[ResultColumn<'_>]) -> Result<Returning, SqlError> {
        let columns: Vec<String> = list.iter().map(|column| Sql(column).to_string()).collect();
        let rows = self.rows_of_list(NEW_ROWS, &self.name);
        let sql = format!("{}SELECT {} FROM {rows}", self.with_clause(), columns.join(", "));
        let statement = self.core.compile(&sql)?;
        let columns = self.core.columns_of(&statement);
        let queries = Tokens::new(&sql).filter(|word| word.is("SELECT")).count() > 1;
        Ok(Returning { statement, queries, columns })
    }

    fn target(&self, name: &Name<'_>) -> Result<Target, SqlError> {
        self.target_named(&unquoted(name.0))
    }

    fn target_named(&self, name: &str) -> Result<Target, SqlError> {
        let name = self.view.as_ref().map_or(Ok(name), |view| view.column(name))?;
        Target::named(&self.table, &self.shape, name)
    }

    fn insert(
        self,
        or_conflict: Option<ResolveType>,
        columns: Option<&[Name<'_>]>,
        body: &InsertBody<'_>,
        returning: Option<&[ResultColumn<'_>]>,
    ) -> Result<WritePlan, SqlError> {
        let all = self.insert_targets(columns)?;
        let (source, width, upsert, sql) = match body {
            InsertBody::DefaultValues => (Source::Defaults, 0, None, "SELECT 1".to_owned()),
            InsertBody::Select(select, upsert) => {
                let (source, width, sql) = self.source(select)?;
                (source, width, *upsert, sql)
            }
        };
        if width > all.len() {
            let message =
                format!("INSERT has more expressions ({width}) than target columns ({})", all.len());
            return Err(SqlError::new(state::SYNTAX, message));
        }
        if columns.is_some() && width < all.len() && !matches!(source, Source::Defaults) {
            let message =
                format!("INSERT has more target columns ({}) than expressions ({width})", all.len());
            return Err(SqlError::new(state::SYNTAX, message));
        }
        let targets = all.into_iter().take(width).collect();
        let conflict = self.on_conflict(or_conflict, upsert)?;
        let verb = Verb::Insert(InsertPlan { targets, source, conflict });
        self.plan(verb, returning, sql)
    }

    /// The columns named, or all that can be assigned.
    fn insert_targets(&self, columns: Option<&[Name<'_>]>) -> Result<Vec<Target>, SqlError> {
        let Some(names) = columns else {
            if let Some(view) = &self.view {
                return view.columns().iter().map(|column| self.target_named(&column.name)).collect();
            }
            let assignable = |shown: &Shown| Target::named(&self.table, &self.shape, &shown.name).ok();
            return Ok(self.shape.visible().iter().filter_map(assignable).collect());
        };
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            let target = self.target(name)?;
            check_new(&targets, target, name)?;
            targets.push(target);
        }
        Ok(targets)
    }

    /// Literals and parameters are taken as they are; anything else is a query.
    fn source(&self, select: &Select<'_>) -> Result<(Source, usize, String), SqlError> {
        if self.with.is_some() && select.with.is_some() {
            return Err(SqlError::not_supported("WITH both before INSERT and before its SELECT"));
        }
        let sql = format!("{}{}", self.with_clause(), Sql(select));
        if let Some(rows) = plain_values(select) {
            let width = rows.first().map_or(0, Vec::len);
            if rows.iter().any(|row| row.len() != width) {
                return Err(SqlError::new(state::SYNTAX, "VALUES lists must all be the same length"));
            }
            return Ok((Source::Values(rows), width, sql));
        }
        let statement = self.core.compile(&sql)?;
        let width = statement.columns();
        Ok((Source::Query(statement), width, sql))
    }

    fn on_conflict(
        &self,
        resolve: Option<ResolveType>,
        upsert: Option<&Upsert<'_>>,
    ) -> Result<OnConflict, SqlError> {
        let Some(first) = upsert else {
            return Ok(match resolve {
                Some(ResolveType::Ignore) => OnConflict::Ignore,
                Some(ResolveType::Replace) => OnConflict::Replace,
                Some(ResolveType::Fail) => OnConflict::Fail,
                None | Some(ResolveType::Abort | ResolveType::Rollback) => OnConflict::Abort,
            });
        };
        if resolve.is_some() {
            return Err(SqlError::not_supported("INSERT OR ... together with ON CONFLICT"));
        }
        let mut clauses = Vec::new();
        let mut next = Some(first);
        while let Some(upsert) = next {
            clauses.push(self.upsert_clause(upsert)?);
            next = upsert.next;
        }
        Ok(OnConflict::Upsert(clauses))
    }

    fn upsert_clause(&self, upsert: &Upsert<'_>) -> Result<UpsertClause, SqlError> {
        let target = upsert.index.as_ref().map(|index| self.conflict_target(index)).transpose()?;
        let update = match &upsert.do_clause {
            UpsertDo::Nothing => None,
            UpsertDo::Set { sets, where_clause } => Some(self.upsert_update(sets, where_clause.as_ref())?),
        };
        Ok(UpsertClause { target, update })
    }

    /// The key or unique index that has exactly these columns, expressions and condition.
    fn conflict_target(&self, index: &UpsertIndex<'_>) -> Result<Constraint, SqlError> {
        let mut columns: Vec<usize> = index
            .targets
            .iter()
            .map(|target| self.conflict_column(&target.expr))
            .collect::<Result<_, _>>()?;
        columns.sort_unstable();
        let same = |other: &[usize]| {
            let mut other: Vec<usize> = other.iter().map(|&at| self.first_of_its_kind(at)).collect();
            other.sort_unstable();
            other == columns
        };
        let def = self.table.def();
        let condition = index.where_clause.as_ref().map(|condition| Sql(condition).to_string());
        // As in SQLite, the newest of those that fit. So a key that compares otherwise than by its bytes is its index,
        // which says which texts are the same.
        let unique = self.table.indexes().iter().rposition(|index| {
            let whole = index.def().predicate.is_none();
            let known = index.def().predicate.and_then(|at| predicate_of(generated_sql(def, at)?));
            let holds =
                known.zip(condition.as_deref()).is_some_and(|(known, given)| same_expression(known, given));
            index.def().unique && same(&index.def().columns) && (whole || holds)
        });
        let key = || same(&def.primary_key).then_some(Constraint::Primary);
        unique.map(Constraint::Index).or_else(key).ok_or_else(bad_target)
    }

    /// A column, or the hidden one of an indexed expression.
    fn conflict_column(&self, expression: &Expr<'_>) -> Result<usize, SqlError> {
        let def = self.table.def();
        let name = match expression {
            Expr::Id(id) => unquoted(id.0),
            Expr::Name(name) => unquoted(name.0),
            Expr::Collate(inner, _) => return self.conflict_column(inner),
            _ if self.view.is_some() => return Err(bad_target()),
            _ => return self.hidden_column(&Sql(expression).to_string()).ok_or_else(bad_target),
        };
        let own = self.view.as_ref().map_or(Ok(name.as_str()), |view| view.column(&name))?;
        def.column_index(own).ok_or_else(|| match self.target_named(&name) {
            Ok(_) => bad_target(),
            Err(error) => error,
        })
    }

    /// The first hidden column of an expression: each index has its own.
    fn hidden_column(&self, sql: &str) -> Option<usize> {
        let def = self.table.def();
        (0..def.columns.len()).find(|&at| {
            def.columns[at].hidden && generated_sql(def, at).is_some_and(|known| same_expression(known, sql))
        })
    }

    fn first_of_its_kind(&self, at: usize) -> usize {
        let def = self.table.def();
        let sql = generated_sql(def, at).filter(|_| def.columns[at].hidden);
        sql.and_then(|sql| self.hidden_column(sql)).unwrap_or(at)
    }

    /// Each expression is a query of the old row inside one of the new row, so that a bare name means the old
    /// row's column without any look-up of names here.
    fn upsert_update(
        &self,
        sets: &[Set<'_>],
        condition: Option<&Expr<'_>>,
    ) -> Result<UpsertUpdate, SqlError> {
        let old = self.rows_of_list(OLD_ROWS, &self.name);
        let new = self.rows_of_list(NEW_ROWS, "excluded");
        let of_old = |expression: &str| format!("(SELECT {expression} FROM {old})");
        let mut columns = vec![match condition {
            Some(condition) => format!("CASE WHEN {} THEN 1 ELSE 0 END", of_old(&Sql(condition).to_string())),
            None => "1".to_owned(),
        }];
        let assigned = self.assignments(sets)?;
        columns.extend(assigned.iter().map(|(_, expression)| of_old(expression)));
        let sql = format!("{}SELECT {} FROM {new}", self.with_clause(), columns.join(", "));
        let targets = assigned.into_iter().map(|(target, _)| target).collect();
        Ok(UpsertUpdate { statement: self.core.compile(&sql)?, targets })
    }

    /// `SET` as single assignments. Of several to one column, the rightmost counts, as in SQLite.
    fn assignments(&self, sets: &[Set<'_>]) -> Result<Vec<(Target, String)>, SqlError> {
        let mut assigned: Vec<(Target, String)> = Vec::new();
        for set in sets {
            for (name, expression) in set.col_names.iter().zip(split_assignment(set)?) {
                let target = self.target(name)?;
                assigned.retain(|(known, _)| *known != target);
                assigned.push((target, expression));
            }
        }
        Ok(assigned)
    }

    fn update(
        self,
        resolve: Option<ResolveType>,
        sets: &[Set<'_>],
        rows: &Rows<'_>,
        returning: Option<&[ResultColumn<'_>]>,
    ) -> Result<WritePlan, SqlError> {
        let assigned = self.assignments(sets)?;
        let mut columns = vec![format!("{}.\"_row\"", self.name)];
        let mut is_assigned = Vec::new();
        for (at, column) in self.table.def().columns.iter().enumerate() {
            let own = assigned.iter().find(|(target, _)| *target == Target::Stored(at));
            is_assigned.push(own.is_some());
            columns.push(match own {
                Some((_, expression)) => format!("({expression})"),
                // Computed again when the row is complete.
                None if column.generated.is_some() => "NULL".to_owned(),
                None => self.qualified(at),
            });
        }
        let mut heads = Vec::new();
        for (target, expression) in assigned.iter().filter(|(target, _)| !matches!(target, Target::Stored(_)))
        {
            heads.push(*target);
            columns.push(format!("({expression})"));
        }
        let conflict = match resolve {
            Some(ResolveType::Ignore) => UpdateConflict::Ignore,
            Some(ResolveType::Replace) => UpdateConflict::Replace,
            Some(ResolveType::Fail) => UpdateConflict::Fail,
            None | Some(ResolveType::Abort | ResolveType::Rollback) => UpdateConflict::Abort,
        };
        // Rows that meet each other's keys or values must be computed together.
        let moves = assigned.iter().any(|(target, _)| match target {
            Target::Stored(at) => self.table.def().is_key(*at),
            _ => false,
        });
        let alone = !moves && conflict == UpdateConflict::Abort;
        let kind = ChangeKind::Update { assigned: is_assigned, heads, conflict };
        self.change(kind, &columns, rows, alone, returning)
    }

    fn delete(self, rows: &Rows<'_>, returning: Option<&[ResultColumn<'_>]>) -> Result<WritePlan, SqlError> {
        let mut columns = vec![format!("{}.\"_row\"", self.name)];
        if returning.is_some() {
            columns.extend((0..self.table.def().columns.len()).map(|at| self.qualified(at)));
        }
        self.change(ChangeKind::Delete { columns: returning.is_some() }, &columns, rows, true, returning)
    }

    /// `alone`: each row can be computed again by itself.
    fn change(
        self,
        kind: ChangeKind,
        columns: &[String],
        rows: &Rows<'_>,
        alone: bool,
        returning: Option<&[ResultColumn<'_>]>,
    ) -> Result<WritePlan, SqlError> {
        let sql = self.query(columns, rows, None);
        let statement = self.core.compile(&sql)?;
        let pick = format!("{}.\"_pick\" = 1", self.name);
        let picked = (alone && rows.limit.is_none() && self.view.is_none())
            .then(|| Picked::Text(self.query(columns, rows, Some(&pick))));
        let limited = rows.limit.is_some();
        self.plan(Verb::Change(ChangePlan { statement, picked, limited, kind }), returning, sql)
    }

    fn query(&self, columns: &[String], rows: &Rows<'_>, pick: Option<&str>) -> String {
        let table = quoted_name(self.table.name());
        let source = match (&self.view, rows.indexed) {
            (Some(view), _) => view.rows(&self.name),
            (None, Some(forced)) => format!("{table}({}) AS {}", forced.argument(), self.name),
            (None, None) => format!("{table} AS {}", self.name),
        };
        let columns = columns.join(", ");
        let mut parts = vec![format!("{}SELECT {columns} FROM {source}", self.with_clause())];
        parts.extend(rows.from.map(|from| format!(", {}", Sql(from))));
        let condition = rows.condition.map(|condition| format!("({})", Sql(condition)));
        let conditions: Vec<&str> = pick.into_iter().chain(condition.as_deref()).collect();
        if !conditions.is_empty() {
            parts.push(format!("WHERE {}", conditions.join(" AND ")));
        }
        if !rows.order.is_empty() {
            let order: Vec<String> = rows.order.iter().map(|term| Sql(term).to_string()).collect();
            parts.push(format!("ORDER BY {}", order.join(", ")));
        }
        parts.extend(rows.limit.map(|limit| Sql(limit).to_string()));
        parts.join(" ")
    }
}

fn generated_sql(def: &TableDef, column: usize) -> Option<&str> {
    def.columns[column].generated.as_ref().map(|generated| generated.sql.as_str())
}

fn bad_target() -> SqlError {
    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    SqlError::new(state::BAD_TARGET, message)
}

fn check_new(known: &[Target], target: Target, name: &Name<'_>) -> Result<(), SqlError> {
    if known.contains(&target) {
        let message = format!("column \"{}\" specified more than once", unquoted(name.0));
        return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
    }
    Ok(())
}

/// The expression for each column of one assignment: `(a, b) = (1, 2)` and `(a, b) = (SELECT ...)` have several.
fn split_assignment(set: &Set<'_>) -> Result<Vec<String>, SqlError> {
    let columns = set.col_names.len();
    if columns == 1 {
        return Ok(vec![Sql(&set.expr).to_string()]);
    }
    match &set.expr {
        Expr::Parenthesized(values) if values.len() == columns => {
            Ok(values.iter().map(|value| Sql(value).to_string()).collect())
        }
        Expr::Subquery(select) => {
            let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
            let all = names.join(", ");
            let text = Sql(*select).to_string();
            Ok(names.iter().map(|name| format!("(WITH v({all}) AS ({text}) SELECT {name} FROM v)")).collect())
        }
        _ => Err(SqlError::new(state::SYNTAX, "number of columns does not match number of values")),
    }
}

/// `VALUES` of nothing but literals and parameters.
fn plain_values(select: &Select<'_>) -> Option<Vec<Vec<Operand>>> {
    bare_values(select)?.map(|row| row.iter().map(operand).collect()).collect()
}

/// The same where it is one row.
pub(crate) fn plain_row(select: &Select<'_>) -> Option<Vec<Operand>> {
    let mut rows = bare_values(select)?;
    let row = rows.next().filter(|_| rows.next().is_none())?;
    row.iter().map(operand).collect()
}

/// `VALUES` and nothing else.
fn bare_values<'t>(select: &'t Select<'t>) -> Option<impl Iterator<Item = &'t [Expr<'t>]>> {
    if select.with.is_some() || select.order_by.is_some() || select.limit.is_some() {
        return None;
    }
    if select.body.compounds.is_some() {
        return None;
    }
    let OneSelect::Values(rows) = &select.body.select else { return None };
    Some(rows.iter().map(sqlite3_parser::Vec::as_slice))
}

/// A value that needs no computing.
pub(crate) fn operand(expression: &Expr<'_>) -> Option<Operand> {
    parameter_of(expression).map(Operand::Parameter).or_else(|| value_of(expression).map(Operand::Literal))
}
