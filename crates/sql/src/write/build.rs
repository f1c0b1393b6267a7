//! From the pieces of a statement that writes to its plan: the queries that compute it, as text, compiled.

use std::sync::Arc;

use dialect::lowered::{
    self, Conflict, ConflictTarget, ConflictUpdate, Indexed, Insert, Node, Resolve, Rows, Set, Term, Values,
    Write,
};
use dialect::{Forced, same_expression};
use pgcatalog::predicate::predicate_of;
use store::Table;
use store::definition::TableDef;

use super::batch::Constraint;
use super::change::{ChangeKind, ChangePlan, Picked, UpdateConflict};
use super::head::HeadColumn;
use super::insert::{InsertPlan, OnConflict, Operand, Source, UpsertClause, UpsertUpdate};
use super::plan::{Returning, Verb, WritePlan};
use super::target::Target;
use super::view::TableView;
use crate::core::{Core, is_main};
use crate::error::{SqlError, state};
use crate::table::{Column, Head, NEW_ROWS, OLD_ROWS, Shape, Shown};
use crate::text::token::{Token, Tokens, quoted_name, unquoted};

/// Compiles a statement that writes.
pub(crate) fn build(core: &Core, write: &Write) -> Result<WritePlan, SqlError> {
    let writer = Writer::new(core, write)?;
    match &write.verb {
        lowered::Verb::Insert(insert) => writer.insert(insert),
        lowered::Verb::Update(update) => writer.update(update),
        lowered::Verb::Delete(delete) => writer.delete(delete),
        lowered::Verb::Merge(merge) => writer.merge(merge),
    }
}

/// Errors speak of the text as it was sent, not of what was made of it: they show the name or word that they are about
/// there.
pub(crate) fn placed(mut error: SqlError, sql: &str) -> SqlError {
    error.position = None;
    let quoted = error.message.split('"').nth(1).unwrap_or_default();
    let (named, word) = match error.state {
        state::UNKNOWN_COLUMN | state::UNKNOWN_TABLE => (quoted.rsplit('.').next(), None),
        state::SYNTAX if error.message.starts_with("near \"") => (None, Some(quoted)),
        _ => (None, None),
    };
    let is_meant = |token: &Token<'_>| {
        named.is_some_and(|name| unquoted(token.text).eq_ignore_ascii_case(name)) || word == Some(token.text)
    };
    match Tokens::new(sql).find(is_meant) {
        Some(token) if word.is_some() => SqlError::syntax(sql, &token),
        Some(token) => error.at(sql, token.start),
        None => error,
    }
}

/// The table that is written and what the statement calls it.
pub(super) struct Writer<'t> {
    pub(super) core: &'t Core,
    pub(super) write: &'t Write,
    table: Arc<Table>,
    /// Where it is written through a view.
    view: Option<TableView>,
    shape: Shape,
    /// As expressions name it: quoted.
    name: String,
}

impl<'t> Writer<'t> {
    fn new(core: &'t Core, write: &'t Write) -> Result<Self, SqlError> {
        let named = &write.table;
        let view = core.catalog.view(&named.name).filter(|_| is_main(named.schema.as_deref()));
        let view = view.map(|view| TableView::of(core, view)).transpose()?;
        let table = match &view {
            Some(view) => Arc::clone(&view.table),
            None => core.table(named)?,
        };
        table.check_changeable()?;
        let shape = Shape::of(&table);
        let name = quoted_name(named.alias.as_ref().unwrap_or(&named.name));
        Ok(Self { core, write, table, view, shape, name })
    }

    /// What `INDEXED BY` asks for.
    fn forced(&self, indexed: Option<&Indexed>) -> Result<Option<Forced>, SqlError> {
        match indexed {
            Some(_) if self.view.is_some() => Err(SqlError::not_supported("INDEXED BY of a view")),
            clause => clause.map(|clause| Forced::of_clause(&self.table, clause)).transpose(),
        }
    }

    pub(super) fn plan(self, verb: Verb, source_sql: String) -> Result<WritePlan, SqlError> {
        let returning = self.write.returning.as_ref().map(|list| self.returning(list)).transpose()?;
        Ok(WritePlan {
            table: self.table,
            parameters: self.write.parameters,
            verb,
            returning,
            rolls_back: self.write.resolve == Some(Resolve::Rollback),
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

    fn returning(&self, list: &str) -> Result<Returning, SqlError> {
        let rows = self.rows_of_list(NEW_ROWS, &self.name);
        let sql = format!("{}SELECT {list} FROM {rows}", self.write.with);
        let statement = self.core.compile(&sql)?;
        let columns = self.core.columns_of(&statement);
        let queries = Tokens::new(&sql).filter(|word| word.is("SELECT")).count() > 1;
        let numbers = Tokens::new(&sql).any(|word| self.names_cas(word.text));
        Ok(Returning { statement, queries, numbers, columns })
    }

    /// Whether a word of a list of columns is one of the rows' CAS values, or stands for all columns and one is among
    /// them. A word of another meaning costs a number.
    fn names_cas(&self, word: &str) -> bool {
        let is_cas = |shown: &Shown| shown.column == Column::Head(Head::Cas);
        match word {
            "*" => self.shape.visible().iter().any(is_cas),
            word => self.shape.named(&unquoted(word)).is_some_and(is_cas),
        }
    }

    /// Whether the table is written through a view.
    pub(super) fn is_of_view(&self) -> bool {
        self.view.is_some()
    }

    fn target(&self, name: &str) -> Result<Target, SqlError> {
        self.target_by(name, false)
    }

    /// `overrides`: numbers that the server gives may be given instead.
    fn target_by(&self, name: &str, overrides: bool) -> Result<Target, SqlError> {
        let name = self.view.as_ref().map_or(Ok(name), |view| view.column(name))?;
        Target::named_by(&self.table, &self.shape, name, overrides)
    }

    fn insert(self, insert: &Insert) -> Result<WritePlan, SqlError> {
        let columns = insert.columns.as_deref();
        let all = self.insert_targets(columns, insert.overrides)?;
        let (source, width, sql) = self.source(&insert.source)?;
        check_width(width, all.len(), columns.is_some() && !matches!(source, Source::Defaults))?;
        let targets = all.into_iter().take(width).collect();
        let conflict = self.on_conflict(&insert.conflicts)?;
        self.plan(Verb::Insert(InsertPlan { targets, source, conflict }), sql)
    }

    /// The columns named, or all that can be assigned.
    pub(super) fn insert_targets(
        &self,
        columns: Option<&[String]>,
        overrides: bool,
    ) -> Result<Vec<Target>, SqlError> {
        let Some(names) = columns else {
            if let Some(view) = &self.view {
                return view.columns().iter().map(|column| self.target(&column.name)).collect();
            }
            let assignable = |shown: &Shown| Target::named(&self.table, &self.shape, &shown.name).ok();
            return Ok(self.shape.visible().iter().filter_map(assignable).collect());
        };
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            let target = self.target_by(name, overrides)?;
            check_new(&targets, target, name)?;
            targets.push(target);
        }
        Ok(targets)
    }

    /// Literals and parameters are taken as they are; anything else is a query. With its width and text.
    fn source(&self, source: &lowered::Source) -> Result<(Source, usize, String), SqlError> {
        let lowered::Source::Query { sql, with, rows } = source else {
            return Ok((Source::Defaults, 0, "SELECT 1".to_owned()));
        };
        if *with && !self.write.with.is_empty() {
            return Err(SqlError::not_supported("WITH both before INSERT and before its SELECT"));
        }
        let sql = format!("{}{sql}", self.write.with);
        if let Some(rows) = rows.as_deref().and_then(plain_rows) {
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

    fn on_conflict(&self, clauses: &[Conflict]) -> Result<OnConflict, SqlError> {
        let resolve = self.write.resolve;
        if clauses.is_empty() {
            return Ok(match resolve {
                Some(Resolve::Ignore) => OnConflict::Ignore,
                Some(Resolve::Replace) => OnConflict::Replace,
                Some(Resolve::Fail) => OnConflict::Fail,
                None | Some(Resolve::Abort | Resolve::Rollback) => OnConflict::Abort,
            });
        }
        if resolve.is_some() {
            return Err(SqlError::not_supported("INSERT OR ... together with ON CONFLICT"));
        }
        clauses
            .iter()
            .map(|clause| self.upsert_clause(clause))
            .collect::<Result<_, _>>()
            .map(OnConflict::Upsert)
    }

    fn upsert_clause(&self, clause: &Conflict) -> Result<UpsertClause, SqlError> {
        let target = clause.target.as_ref().map(|target| self.conflict_target(target)).transpose()?;
        let update = clause.update.as_ref().map(|update| self.upsert_update(update)).transpose()?;
        Ok(UpsertClause { target, update })
    }

    /// The key or unique index that has exactly these columns, expressions and condition.
    fn conflict_target(&self, target: &ConflictTarget) -> Result<Constraint, SqlError> {
        let mut columns: Vec<usize> =
            target.terms.iter().map(|term| self.conflict_column(term)).collect::<Result<_, _>>()?;
        columns.sort_unstable();
        let same = |other: &[usize]| {
            let mut other: Vec<usize> = other.iter().map(|&at| self.first_of_its_kind(at)).collect();
            other.sort_unstable();
            other == columns
        };
        let def = self.table.def();
        // As in SQLite, the newest of those that fit. So a key that compares otherwise than by its bytes is its index,
        // which says which texts are the same.
        let unique = self.table.indexes().iter().rposition(|index| {
            let whole = index.def().predicate.is_none();
            let known = index.def().predicate.and_then(|at| predicate_of(generated_sql(def, at)?));
            let given = target.condition.as_deref();
            let holds = known.zip(given).is_some_and(|(known, given)| same_expression(known, given));
            index.def().unique && same(&index.def().columns) && (whole || holds)
        });
        let key = || same(&def.primary_key).then_some(Constraint::Primary);
        unique.map(Constraint::Index).or_else(key).ok_or_else(bad_target)
    }

    /// A column, or the hidden one of an indexed expression.
    fn conflict_column(&self, term: &Term) -> Result<usize, SqlError> {
        let def = self.table.def();
        let Node::Column { table: None, name } = &term.piece.node else {
            let hidden = if self.view.is_some() { None } else { self.hidden_column(&term.piece.sql) };
            return hidden.ok_or_else(bad_target);
        };
        let own = self.view.as_ref().map_or(Ok(name.as_str()), |view| view.column(name))?;
        def.column_index(own).ok_or_else(|| match self.target(name) {
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
    fn upsert_update(&self, update: &ConflictUpdate) -> Result<UpsertUpdate, SqlError> {
        let old = self.rows_of_list(OLD_ROWS, &self.name);
        let new = self.rows_of_list(NEW_ROWS, "excluded");
        let of_old = |expression: &str| format!("(SELECT {expression} FROM {old})");
        let mut columns = vec![match &update.condition {
            Some(condition) => format!("CASE WHEN {} THEN 1 ELSE 0 END", of_old(condition)),
            None => "1".to_owned(),
        }];
        let assigned = self.assignments(&update.sets)?;
        columns.extend(assigned.iter().map(|(_, expression)| of_old(expression)));
        let sql = format!("{}SELECT {} FROM {new}", self.write.with, columns.join(", "));
        let targets = assigned.into_iter().map(|(target, _)| target).collect();
        Ok(UpsertUpdate { statement: self.core.compile(&sql)?, targets })
    }

    /// `SET` as single assignments. Of several to one column, the rightmost counts, as in SQLite.
    pub(super) fn assignments(&self, sets: &[Set]) -> Result<Vec<(Target, String)>, SqlError> {
        let mut assigned: Vec<(Target, String)> = Vec::new();
        for set in sets {
            for (name, expression) in set.columns.iter().zip(split_assignment(set)?) {
                let target = self.target(name)?;
                assigned.retain(|(known, _)| *known != target);
                assigned.push((target, expression));
            }
        }
        Ok(assigned)
    }

    /// The row's identity, as a column of a query.
    pub(super) fn identity(&self) -> String {
        format!("{}.\"_row\"", self.name)
    }

    /// What the query of an update gives, see [`ChangePlan`]; which columns are assigned, and what behind them.
    pub(super) fn updated_columns(
        &self,
        assigned: &[(Target, String)],
    ) -> (Vec<String>, Vec<bool>, Vec<HeadColumn>) {
        let mut columns = vec![self.identity()];
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
        for (target, expression) in assigned {
            let Target::Head(head) = target else { continue };
            heads.push(*head);
            columns.push(format!("({expression})"));
        }
        (columns, is_assigned, heads)
    }

    fn update(self, update: &lowered::Update) -> Result<WritePlan, SqlError> {
        let assigned = self.assignments(&update.sets)?;
        let (columns, is_assigned, heads) = self.updated_columns(&assigned);
        let conflict = match self.write.resolve {
            Some(Resolve::Ignore) => UpdateConflict::Ignore,
            Some(Resolve::Replace) => UpdateConflict::Replace,
            Some(Resolve::Fail) => UpdateConflict::Fail,
            None | Some(Resolve::Abort | Resolve::Rollback) => UpdateConflict::Abort,
        };
        // Rows that meet each other's keys or values must be computed together.
        let moves = assigned.iter().any(|(target, _)| match target {
            Target::Stored(at) => self.table.def().is_key(*at),
            Target::Head(_) => false,
        });
        let alone = !moves && conflict == UpdateConflict::Abort;
        let kind = ChangeKind::Update { assigned: is_assigned, heads, conflict };
        self.change(kind, &columns, (&update.rows, update.from.as_deref()), alone)
    }

    fn delete(self, delete: &lowered::Delete) -> Result<WritePlan, SqlError> {
        let returns = self.write.returning.is_some();
        let mut columns = vec![self.identity()];
        if returns {
            columns.extend((0..self.table.def().columns.len()).map(|at| self.qualified(at)));
        }
        self.change(
            ChangeKind::Delete { columns: returns },
            &columns,
            (&delete.rows, delete.using.as_deref()),
            true,
        )
    }

    /// `from`: the tables beside its own. `alone`: each row can be computed again by itself.
    fn change(
        self,
        kind: ChangeKind,
        columns: &[String],
        (rows, from): (&Rows, Option<&str>),
        alone: bool,
    ) -> Result<WritePlan, SqlError> {
        let forced = self.forced(rows.indexed.as_ref())?;
        let sql = self.query(columns, (rows, from), forced, None);
        let statement = self.core.compile(&sql)?;
        let pick = format!("{}.\"_pick\" = 1", self.name);
        let limited = rows.limit.is_some();
        let picked = (alone && !limited && self.view.is_none())
            .then(|| Picked::Text(self.query(columns, (rows, from), forced, Some(&pick))));
        self.plan(Verb::Change(ChangePlan { statement, picked, limited, merges: false, kind }), sql)
    }

    pub(super) fn query(
        &self,
        columns: &[String],
        (rows, from): (&Rows, Option<&str>),
        forced: Option<Forced>,
        pick: Option<&str>,
    ) -> String {
        let table = quoted_name(self.table.name());
        let source = match (&self.view, forced) {
            (Some(view), _) => view.rows(&self.name),
            (None, Some(forced)) => format!("{table}({}) AS {}", forced.argument(), self.name),
            (None, None) => format!("{table} AS {}", self.name),
        };
        let mut parts = vec![format!("{}SELECT {} FROM {source}", self.write.with, columns.join(", "))];
        parts.extend(from.map(|from| format!(", {from}")));
        let condition = rows.condition.as_ref().map(|condition| format!("({})", condition.sql));
        let conditions: Vec<&str> = pick.into_iter().chain(condition.as_deref()).collect();
        if !conditions.is_empty() {
            parts.push(format!("WHERE {}", conditions.join(" AND ")));
        }
        parts.extend(rows.order.as_ref().map(|order| format!("ORDER BY {order}")));
        parts.extend(rows.limit.clone());
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

/// `INSERT` gives a value to each column that it names, and no more than there are.
pub(super) fn check_width(values: usize, columns: usize, named: bool) -> Result<(), SqlError> {
    let message = if values > columns {
        format!("INSERT has more expressions ({values}) than target columns ({columns})")
    } else if named && values < columns {
        format!("INSERT has more target columns ({columns}) than expressions ({values})")
    } else {
        return Ok(());
    };
    Err(SqlError::new(state::SYNTAX, message))
}

fn check_new(known: &[Target], target: Target, name: &str) -> Result<(), SqlError> {
    if known.contains(&target) {
        let message = format!("column \"{name}\" specified more than once");
        return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
    }
    Ok(())
}

/// The expression for each column of one assignment: `(a, b) = (1, 2)` and `(a, b) = (SELECT ...)` have several.
fn split_assignment(set: &Set) -> Result<Vec<String>, SqlError> {
    match &set.values {
        Values::One(value) => Ok(vec![value.sql.clone()]),
        Values::Each(values) => Ok(values.clone()),
        Values::Query(query) => {
            let names: Vec<String> = (0..set.columns.len()).map(|column| format!("c{column}")).collect();
            let all = names.join(", ");
            Ok(names.iter().map(|name| format!("(WITH v({all}) AS {query} SELECT {name} FROM v)")).collect())
        }
        Values::Other => {
            Err(SqlError::new(state::SYNTAX, "number of columns does not match number of values"))
        }
    }
}

/// `VALUES` of nothing but literals and parameters.
fn plain_rows(rows: &[Vec<Node>]) -> Option<Vec<Vec<Operand>>> {
    rows.iter().map(|row| row.iter().map(operand).collect()).collect()
}

/// A value that needs no computing.
pub(crate) fn operand(node: &Node) -> Option<Operand> {
    match node.bare() {
        Node::Parameter(number) => Some(Operand::Parameter(*number)),
        Node::Value(value) | Node::Signed(value) => Some(Operand::Literal(value.clone())),
        Node::Truth(truth) => Some(Operand::Literal(i64::from(*truth).into())),
        _ => None,
    }
}
