//! `MERGE`: which rows of a source are rows of the table, and what becomes of either kind.
//!
//! Names behind `WHEN MATCHED` mean columns of both; behind `WHEN NOT MATCHED` there is no row of the table, and names
//! mean columns of the source alone.

use sqltext::ast::{Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind};
use sqltext::error::{SqlError, state};
use store::Table;

use super::clauses::Target;
use super::out::{Form, Out};
use super::scope::Relation;
use super::{Step, Stop, Translator};
use crate::lowered::{self, Verb, Write};

/// Functions that give another value with each call. What decides about a row is computed for each clause by itself.
const VARYING: &[&str] = &[
    "clock_timestamp",
    "gen_random_uuid",
    "nextval",
    "random",
    "randomblob",
    "setval",
    "timeofday",
    "uuid_generate_v4",
];

impl Translator<'_, '_> {
    pub(super) fn merge_statement(&mut self, merge: &Merge) -> Step<Write> {
        self.keyword("MERGE")?;
        self.keyword("INTO")?;
        self.inserts = false;
        let (table, _) = self.written_factor(&merge.table)?;
        let decides = self.at;
        self.keyword("USING")?;
        let mut source = Out::default();
        self.relation(&merge.source, &mut source)?;
        self.refuse_same_name()?;
        self.keyword("ON")?;
        let on = self.condition_by_index(&merge.on, None)?.sql();
        self.refuse_varying(decides)?;
        let written = self.names.table(&table.name).cloned();
        let mut clauses = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            self.refuse_unreachable(&clauses, clause)?;
            clauses.push(self.merge_clause(clause, written.as_deref())?);
        }
        if let Some(returning) = self.peek().filter(|token| token.is("RETURNING")) {
            return Err(Stop::Error(SqlError::syntax(self.sql, &returning)));
        }
        let verb = Verb::Merge(lowered::Merge { source: source.sql(), on, clauses });
        Ok(self.write(verb, table, None, None))
    }

    /// The table and the source need different names.
    fn refuse_same_name(&self) -> Step<()> {
        let relations = self.scopes.innermost().map(|scope| &scope.relations[..]).unwrap_or_default();
        let [table, sources @ ..] = relations else { return Ok(()) };
        if sources.iter().all(|source| !source.name.eq_ignore_ascii_case(&table.name)) {
            return Ok(());
        }
        let message = format!("name \"{}\" specified more than once", table.name);
        Err(self.error_at(self.tokens.get(self.at.saturating_sub(1)).copied(), "42712", message))
    }

    /// Behind a clause without a condition no other of its kind has an effect.
    fn refuse_unreachable(&self, known: &[lowered::MergeClause], clause: &MergeClause) -> Step<()> {
        let matched = clause.clause_kind == MergeClauseKind::Matched;
        if known.iter().all(|known| known.matched != matched || known.condition.is_some()) {
            return Ok(());
        }
        let message = "unreachable WHEN clause specified after unconditional WHEN clause";
        Err(self.error_at(self.peek(), state::SYNTAX, message))
    }

    /// Refuses what may decide one way for one clause and another way for the next.
    fn refuse_varying(&self, from: usize) -> Step<()> {
        let tokens = self.tokens.get(from..self.at).unwrap_or_default();
        let calls = tokens.windows(2).find(|pair| pair[0].is_any(VARYING) && pair[1].is_sign("("));
        let Some([call, _]) = calls else { return Ok(()) };
        let message = format!("{}() in the source or a condition of MERGE is not supported", call.text);
        let error = SqlError::new(state::NOT_SUPPORTED, message).at(self.sql, call.start);
        Err(Stop::Error(error.with_hint("put its values into a table first, or call it in SET or VALUES")))
    }

    fn merge_clause(&mut self, clause: &MergeClause, table: Option<&Table>) -> Step<lowered::MergeClause> {
        let matched = match clause.clause_kind {
            MergeClauseKind::Matched => true,
            MergeClauseKind::NotMatched => false,
            // PostgreSQL has these since version 17.
            MergeClauseKind::NotMatchedByTarget | MergeClauseKind::NotMatchedBySource => {
                self.at += 3;
                return Err(Stop::Unknown);
            }
        };
        self.keyword("WHEN")?;
        self.take_word("NOT");
        self.keyword("MATCHED")?;
        let table_of_target = if matched { None } else { self.hide_first_relation() };
        let condition = match &clause.predicate {
            Some(condition) => {
                let from = self.at;
                self.keyword("AND")?;
                let condition = self.condition(condition)?.sql();
                self.refuse_varying(from)?;
                Some(condition)
            }
            None => None,
        };
        self.keyword("THEN")?;
        let action = self.merge_action(&clause.action, table)?;
        if let (Some(relation), Some(scope)) = (table_of_target, self.scopes.innermost_mut()) {
            scope.relations.insert(0, relation);
        }
        Ok(lowered::MergeClause { matched, condition, action })
    }

    fn hide_first_relation(&mut self) -> Option<Relation> {
        let scope = self.scopes.innermost_mut().filter(|scope| !scope.relations.is_empty())?;
        Some(scope.relations.remove(0))
    }

    fn merge_action(&mut self, action: &MergeAction, table: Option<&Table>) -> Step<lowered::MergeAction> {
        match action {
            MergeAction::DoNothing { .. } => {
                self.take_words(&["DO", "NOTHING"]);
                Ok(lowered::MergeAction::Nothing)
            }
            MergeAction::Delete { .. } => {
                self.keyword("DELETE")?;
                Ok(lowered::MergeAction::Delete)
            }
            MergeAction::Update(update) => {
                let sqltext::ast::MergeUpdateKind::Set(assignments) = &update.kind else {
                    return Err(Stop::Unknown);
                };
                self.keyword("UPDATE")?;
                self.keyword("SET")?;
                let sets = self.assignments(assignments, table)?;
                // Other databases have `WHERE` and `DELETE` here.
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(Stop::Unknown);
                }
                Ok(lowered::MergeAction::Update(sets))
            }
            MergeAction::Insert(insert) => self.merge_insert(insert, table).map(lowered::MergeAction::Insert),
        }
    }

    /// `INSERT [(columns)] [OVERRIDING ...] VALUES (...)`
    fn merge_insert(
        &mut self,
        insert: &MergeInsertExpr,
        table: Option<&Table>,
    ) -> Step<lowered::MergeInsert> {
        self.keyword("INSERT")?;
        let columns = self.named_columns(&mut Out::default());
        let overrides = self.overriding();
        self.keyword("VALUES")?;
        let MergeInsertKind::Values(values) = &insert.kind else { return Err(Stop::Unknown) };
        let [row] = &values.rows[..] else { return Err(Stop::Unknown) };
        let mut row = self.list(&row.content)?;
        if let Some(table) = table {
            let targets = Target::all_of(table, columns.as_deref());
            let types: Vec<_> = targets.iter().map(|target| target.ty).collect();
            self.assign_list(&mut row, &types)?;
            row = Self::defaulted(row, &targets);
        }
        if insert.insert_predicate.is_some() {
            return Err(Stop::Unknown);
        }
        let Form::List(parts) = *row.form else { return Err(Stop::Unknown) };
        let values = parts.into_iter().map(Out::sql).collect();
        Ok(lowered::MergeInsert { columns, overrides, values })
    }
}
