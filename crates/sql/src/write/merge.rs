//! `MERGE`: its clauses as the deletions, updates and insertions that they are, over one view and into one list.
//!
//! Each clause is a query of its own. The condition of one says that no clause before it holds, so that each row of the
//! source is taken by one of them.

use dialect::lowered::{Merge, MergeAction, MergeClause, MergeInsert, Node, Piece, Rows, Set};
use store::View;

use super::batch::Batch;
use super::build::{Writer, check_width};
use super::change::{ChangeKind, ChangePlan, UpdateConflict};
use super::insert::{InsertPlan, OnConflict, Source};
use super::plan::{Run, Verb, WritePlan};
use crate::done::Invalidation;
use crate::error::{SqlError, state};
use crate::limits::MERGE_CLAUSES_MAX;

/// A compiled `MERGE`.
#[derive(Debug, Default)]
pub(crate) struct MergePlan {
    deletes: Vec<ChangePlan>,
    updates: Vec<ChangePlan>,
    inserts: Vec<InsertPlan>,
    /// How many rows its last run removed.
    removed: u64,
    /// How many rows its last run made stale.
    made_stale: u64,
}

impl MergePlan {
    /// What its last run did to rows that it made invalid, and how many they were. Where it does both, they count as
    /// deleted if one of them was.
    pub(crate) fn invalidates(&self) -> Option<(Invalidation, u64)> {
        let stale = self.updates.iter().find_map(ChangePlan::invalidates);
        let deletes = !self.deletes.is_empty() && (self.removed > 0 || stale.is_none());
        let how = if deletes { Some(Invalidation::Deleted) } else { stale };
        how.map(|how| (how, self.removed + self.made_stale))
    }

    /// Computes the list: first what goes, for rows may come under its keys. `verify`: see [`InsertPlan::compute`].
    pub(crate) fn compute(
        &mut self,
        run: &Run<'_>,
        view: &View<'_>,
        batch: &mut Batch,
        verify: bool,
    ) -> Result<(), SqlError> {
        self.deletes.iter_mut().try_for_each(|plan| plan.compute(run, view, batch, None))?;
        self.removed = batch.affected();
        self.made_stale = 0;
        for plan in &mut self.updates {
            let before = batch.affected();
            plan.compute(run, view, batch, None)?;
            if plan.invalidates().is_some() {
                self.made_stale += batch.affected() - before;
            }
        }
        self.inserts.iter_mut().try_for_each(|plan| plan.compute(run, view, batch, verify))
    }
}

impl Writer<'_> {
    pub(super) fn merge(self, merge: &Merge) -> Result<WritePlan, SqlError> {
        if self.is_of_view() {
            let message = format!("cannot execute MERGE on relation \"{}\"", self.write.table.name);
            return Err(SqlError::new(state::NOT_SUPPORTED, message)
                .with_detail("This operation is not supported for views.")
                .with_hint("merge into the table that it reads"));
        }
        if merge.clauses.len() > MERGE_CLAUSES_MAX {
            let message = format!("MERGE has more than {MERGE_CLAUSES_MAX} WHEN clauses");
            return Err(SqlError::new(state::TOO_COMPLEX, message));
        }
        let rows = rows_of(std::slice::from_ref(&merge.on));
        let joined = self.query(&["1".to_owned()], (&rows, Some(&merge.source)), None, None);
        // A name that may be of both is refused, also where no clause is about rows that are in both.
        self.core.compile(&joined)?;
        let mut plan = MergePlan::default();
        for (at, clause) in merge.clauses.iter().enumerate() {
            let mut conditions = not_before(&merge.clauses[..at], clause.matched);
            conditions.extend(clause.condition.clone());
            match &clause.action {
                MergeAction::Nothing => {}
                MergeAction::Delete => {
                    let columns = vec![self.identity()];
                    let kind = ChangeKind::Delete { columns: false };
                    plan.deletes.push(self.merged(merge, conditions, &columns, kind)?);
                }
                MergeAction::Update(sets) => {
                    let (columns, kind) = self.merged_update(sets)?;
                    plan.updates.push(self.merged(merge, conditions, &columns, kind)?);
                }
                MergeAction::Insert(insert) => {
                    plan.inserts.push(self.merged_insert(merge, conditions, insert)?);
                }
            }
        }
        self.plan(Verb::Merge(plan), joined)
    }

    fn merged_update(&self, sets: &[Set]) -> Result<(Vec<String>, ChangeKind), SqlError> {
        let assigned = self.assignments(sets)?;
        let (columns, assigned, heads) = self.updated_columns(&assigned);
        let conflict = UpdateConflict::Abort;
        Ok((columns, ChangeKind::Update { assigned, heads, conflict }))
    }

    /// What becomes of rows that are in both.
    fn merged(
        &self,
        merge: &Merge,
        conditions: Vec<String>,
        columns: &[String],
        kind: ChangeKind,
    ) -> Result<ChangePlan, SqlError> {
        let rows = rows_of(&[vec![merge.on.clone()], conditions].concat());
        let sql = self.query(columns, (&rows, Some(&merge.source)), None, None);
        let statement = self.core.compile(&sql)?;
        Ok(ChangePlan { statement, picked: None, limited: false, merges: true, kind })
    }

    /// New rows for those that are in the source only.
    fn merged_insert(
        &self,
        merge: &Merge,
        conditions: Vec<String>,
        insert: &MergeInsert,
    ) -> Result<InsertPlan, SqlError> {
        let columns = insert.columns.as_deref();
        let mut targets = self.insert_targets(columns, insert.overrides)?;
        check_width(insert.values.len(), targets.len(), columns.is_some())?;
        targets.truncate(insert.values.len());
        let known =
            self.query(&["1".to_owned()], (&rows_of(std::slice::from_ref(&merge.on)), None), None, None);
        let conditions = [vec![format!("NOT EXISTS ({known})")], conditions].concat();
        let sql = format!(
            "{}SELECT {} FROM {} WHERE {}",
            self.write.with,
            insert.values.join(", "),
            merge.source,
            all_of(&conditions)
        );
        let statement = self.core.compile(&sql);
        let statement = statement.map_err(|error| self.without_table(merge, insert, error))?;
        let source = Source::Query(statement);
        Ok(InsertPlan { targets, source, conflict: OnConflict::Abort })
    }
}

impl Writer<'_> {
    /// Where there is no row of the table, a column of it is another mistake than one that is not there.
    #[cold]
    fn without_table(&self, merge: &Merge, insert: &MergeInsert, error: SqlError) -> SqlError {
        let rows = rows_of(std::slice::from_ref(&merge.on));
        let joined = self.query(&insert.values, (&rows, Some(&merge.source)), None, None);
        if error.state != state::UNKNOWN_COLUMN || self.core.compile(&joined).is_err() {
            return error;
        }
        let called = self.write.table.alias.as_ref().unwrap_or(&self.write.table.name);
        let message = format!("invalid reference to FROM-clause entry for table \"{called}\"");
        SqlError::new(state::UNKNOWN_TABLE, message)
            .with_hint("behind WHEN NOT MATCHED there is no row of it; name columns of the source")
    }
}

/// That no earlier clause of the kind holds.
fn not_before(clauses: &[MergeClause], matched: bool) -> Vec<String> {
    let of_kind = clauses.iter().filter(|clause| clause.matched == matched);
    of_kind.filter_map(|clause| clause.condition.as_ref()).map(|sql| format!("({sql}) IS NOT TRUE")).collect()
}

fn all_of(conditions: &[String]) -> String {
    conditions.iter().map(|sql| format!("({sql})")).collect::<Vec<_>>().join(" AND ")
}

fn rows_of(conditions: &[String]) -> Rows {
    let condition = Piece { sql: all_of(conditions), node: Node::Other };
    Rows { condition: Some(condition), ..Rows::default() }
}
