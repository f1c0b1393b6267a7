//! `UPDATE` and `DELETE`: a query finds the rows, and for an update computes the new values.

use std::collections::HashSet;

use sqlite::{Row, Statement};
use store::View;
use store::value::ValueRef;

use super::batch::{Batch, Constraint, listed};
use super::before::Before;
use super::head::{HeadColumn, NewHead};
use super::insert::is_broken_constraint;
use super::plan::Run;
use super::taken::{broken, null_in, taken};
use super::target::{Draft, Target};
use crate::core::Core;
use crate::done::Invalidation;
use crate::error::{SqlError, state};
use crate::table::{Identity, ListRow};

/// A compiled `UPDATE` or `DELETE`.
///
/// The query's first column is the row's identity. All columns of the table follow, where they are needed: for
/// an update with the new values in the place of those assigned. Last come the values for a row's head.
#[derive(Debug)]
pub(crate) struct ChangePlan {
    pub(crate) statement: Statement,
    /// The same query for picked rows only; none where the statement's rows depend on each other (`LIMIT`).
    pub(crate) picked: Option<Picked>,
    /// It has a `LIMIT`.
    pub(crate) limited: bool,
    /// It is a clause of a `MERGE`: a row that is met twice is an error.
    pub(crate) merges: bool,
    pub(crate) kind: ChangeKind,
}

/// A query that only a lost race needs, so it is compiled when that happens.
#[derive(Debug)]
pub(crate) enum Picked {
    /// As text.
    Text(String),
    /// Compiled.
    Ready(Statement),
}

impl Picked {
    fn statement(&mut self, core: &Core) -> Result<&mut Statement, SqlError> {
        if let Self::Text(sql) = self {
            *self = Self::Ready(core.compile(sql)?);
        }
        match self {
            Self::Ready(statement) => Ok(statement),
            Self::Text(_) => Err(SqlError::new(state::INTERNAL, "a query was not compiled")),
        }
    }
}

/// What happens to the rows found.
#[derive(Debug)]
pub(crate) enum ChangeKind {
    /// They are removed. `columns` says that the query has the table's columns too, for `RETURNING`.
    Delete {
        /// See above.
        columns: bool,
    },
    /// They are replaced.
    Update {
        /// Which of the table's columns are assigned; the others keep their value without a conversion.
        assigned: Vec<bool>,
        /// What the columns after those of the table are assigned to.
        heads: Vec<HeadColumn>,
        conflict: UpdateConflict,
    },
}

/// What happens to a row whose new key or unique value is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateConflict {
    /// The statement fails, and writes nothing.
    Abort,
    /// The statement fails, and the rows before this one are written.
    Fail,
    /// The row stays as it is.
    Ignore,
    /// The other row goes.
    Replace,
}

/// A row that the query found.
struct Found {
    identity: Identity,
    /// The new row, or for a delete that returns rows the old one.
    draft: Option<Draft>,
    /// Whether the statement looked at deadlines or leases.
    by_times: bool,
}

impl ChangePlan {
    pub(crate) fn tag(&self) -> &'static str {
        match self.kind {
            ChangeKind::Delete { .. } => "DELETE",
            ChangeKind::Update { .. } => "UPDATE",
        }
    }

    pub(crate) fn looks_for_conflicts(&self) -> bool {
        matches!(
            self.kind,
            ChangeKind::Update {
                conflict: UpdateConflict::Fail | UpdateConflict::Ignore | UpdateConflict::Replace,
                ..
            }
        )
    }

    /// What becomes of its rows, if it makes them invalid.
    pub(crate) fn invalidates(&self) -> Option<Invalidation> {
        match &self.kind {
            ChangeKind::Delete { .. } => Some(Invalidation::Deleted),
            ChangeKind::Update { heads, .. } => {
                heads.contains(&HeadColumn::Stale).then_some(Invalidation::Stale)
            }
        }
    }

    /// Whether it only deletes rows or makes them stale, whatever they hold. With a `LIMIT` it means just the rows that
    /// it found.
    pub(crate) fn is_blind(&self) -> bool {
        let marks = match &self.kind {
            ChangeKind::Delete { .. } => true,
            ChangeKind::Update { assigned, heads, conflict } => {
                let time = |head: &HeadColumn| {
                    matches!(head, HeadColumn::Stale | HeadColumn::Ttl | HeadColumn::ExpiresAt)
                };
                *conflict == UpdateConflict::Abort
                    && !assigned.contains(&true)
                    && heads.contains(&HeadColumn::Stale)
                    && heads.iter().all(time)
            }
        };
        marks && !self.limited
    }

    /// Whether rows that were lost can be computed again by themselves.
    pub(crate) fn can_pick(&self) -> bool {
        self.picked.is_some()
    }

    /// Computes the list, or adds to it the rows of these keys.
    pub(crate) fn compute(
        &mut self,
        run: &Run<'_>,
        view: &View<'_>,
        batch: &mut Batch,
        lost: Option<&[Vec<u8>]>,
    ) -> Result<(), SqlError> {
        let sight = &run.core.sight;
        let statement = match (lost, &mut self.picked) {
            (Some(keys), Some(picked)) => {
                sight.set_picked(keys.to_vec());
                picked.statement(run.core)?
            }
            _ => &mut self.statement,
        };
        let (kind, merges) = (&self.kind, self.merges);
        let found = sight.lend(view, || found(run, statement, kind, merges));
        sight.set_picked(Vec::new());
        let found = found?;
        if merges && found.iter().any(|found| batch.has(&found.identity.key)) {
            return Err(merged_twice());
        }
        match kind {
            ChangeKind::Delete { .. } => delete(batch, found),
            ChangeKind::Update { heads, conflict: UpdateConflict::Abort, .. } => {
                update(run, view, batch, heads, found)
            }
            ChangeKind::Update { heads, conflict, .. } => {
                update_in_turn(run, view, batch, found, (heads.as_slice(), *conflict))
            }
        }
    }
}

/// Replaces one row after the other, up to the first that `OR FAIL` meets a broken constraint in.
fn update_in_turn(
    run: &Run<'_>,
    view: &View<'_>,
    batch: &mut Batch,
    found: Vec<Found>,
    how: (&[HeadColumn], UpdateConflict),
) -> Result<(), SqlError> {
    for found in found {
        match update_one(run, view, batch, found, how) {
            Err(error) if how.1 == UpdateConflict::Fail && error.breaks_constraint() => {
                batch.stop(error);
                break;
            }
            updated => updated?,
        }
    }
    Ok(())
}

#[cold]
fn merged_twice() -> SqlError {
    SqlError::new(state::CARDINALITY, "MERGE command cannot affect row a second time")
        .with_hint("Ensure that not more than one source row matches any one target row.")
}

/// Runs the query to its end before anything is changed. A row met twice (`UPDATE ... FROM`) counts once, unless rows
/// are merged.
fn found(
    run: &Run<'_>,
    statement: &mut Statement,
    kind: &ChangeKind,
    merges: bool,
) -> Result<Vec<Found>, SqlError> {
    let mut found = Vec::new();
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    // What an earlier statement looked at.
    run.core.sight.take_times_read();
    run.query(statement, &mut |row| {
        let ValueRef::Blob(blob) = row.value(0) else { return Ok(()) };
        let identity =
            Identity::decode(blob).ok_or_else(|| SqlError::new(state::INTERNAL, "a row has no identity"))?;
        if !seen.insert(identity.key.clone()) {
            return if merges { Err(merged_twice()) } else { Ok(()) };
        }
        let draft = match kind {
            ChangeKind::Delete { columns: false } => None,
            ChangeKind::Delete { columns: true } => Some(draft_of(run, &identity, row, None)?),
            ChangeKind::Update { assigned, heads, .. } => {
                let mut draft = draft_of(run, &identity, row, Some(assigned))?;
                for (column, target) in (1 + assigned.len()..).zip(heads) {
                    draft.head.assign(&run.core.store, run.table, *target, row.value(column).to_owned())?;
                }
                if !assigned.contains(&true) {
                    draft.head.keep_what_was_read(&run.core.store, run.table, &identity, heads);
                }
                Some(draft)
            }
        };
        found.push(Found { identity, draft, by_times: false });
        Ok(())
    })?;
    let by_times = run.core.sight.take_times_read();
    for found in &mut found {
        found.by_times = by_times;
    }
    Ok(found)
}

fn draft_of(
    run: &Run<'_>,
    identity: &Identity,
    row: &Row<'_>,
    assigned: Option<&[bool]>,
) -> Result<Draft, SqlError> {
    let columns = run.table.def().columns.len();
    let mut draft = Draft {
        values: vec![store::value::Value::Null; columns],
        defaults: Vec::new(),
        // A row whose columns are written is fresh; other facts of it leave that as it is.
        head: match assigned {
            Some(assigned) if !assigned.contains(&true) => NewHead::same(identity),
            _ => NewHead::fresh(identity.deadline, identity.client_flags),
        },
    };
    for column in 0..columns {
        let value = row.value(1 + column).to_owned();
        if assigned.is_some_and(|assigned| assigned[column]) {
            draft.assign(&run.core.store, run.table, Target::Stored(column), value)?;
        } else {
            draft.values[column] = value;
        }
    }
    Ok(draft)
}

fn delete(batch: &mut Batch, found: Vec<Found>) -> Result<(), SqlError> {
    for Found { identity, draft, by_times } in found {
        let before = Before::of_change(&[], &identity, by_times, None);
        let change = batch.remove(identity.key.clone(), before)?;
        batch.count(change, || old_row(&identity, draft));
    }
    Ok(())
}

fn old_row(identity: &Identity, draft: Option<Draft>) -> ListRow {
    ListRow {
        values: draft.map(|draft| draft.values).unwrap_or_default(),
        cas: Some(identity.cas),
        expiry: identity.expiry,
        client_flags: identity.client_flags,
        renewal: identity.renewal,
    }
}

/// Replaces all rows at once: first all old keys go, then the new ones come, so that keys may change places.
fn update(
    run: &Run<'_>,
    view: &View<'_>,
    batch: &mut Batch,
    heads: &[HeadColumn],
    found: Vec<Found>,
) -> Result<(), SqlError> {
    let mut new = Vec::with_capacity(found.len());
    for Found { identity, draft, by_times } in found {
        let Some(mut draft) = draft else { continue };
        if let Err(error) = batch.complete(&run.core.store, &mut draft, false) {
            return Err(broken(run, error, &draft.values));
        }
        if let Some(column) = draft.null_column(run.table) {
            return Err(null_in(run, column, &draft.values));
        }
        let mut key = identity.key.clone();
        let payload = batch.encode_payload(&draft, &mut key)?;
        if key != identity.key {
            draft.head.settle();
            batch.remove(
                identity.key.clone(),
                Before::of_change(&[], &identity, by_times, Some(&draft.head)),
            )?;
        }
        let before = Before::of_change(heads, &identity, by_times, Some(&draft.head));
        new.push((identity, before, key, draft, payload));
    }
    for (identity, before, key, draft, payload) in new {
        if batch.holds(&key) {
            return Err(taken(run, Constraint::Primary, Some(&draft.values)));
        }
        let before = if key == identity.key {
            before
        } else if !batch.has(&key) && batch.current(view, &key)?.is_some() {
            return Err(taken(run, Constraint::Primary, Some(&draft.values)));
        } else {
            Before::Absent
        };
        let row = batch.returns().then(|| listed(&draft, view.now()));
        let change = batch.put(key, before, draft, payload)?;
        batch.count(change, || row.unwrap_or_default());
    }
    Ok(())
}

/// Replaces one row after the other, each seeing those before it.
fn update_one(
    run: &Run<'_>,
    view: &View<'_>,
    batch: &mut Batch,
    found: Found,
    (heads, conflict): (&[HeadColumn], UpdateConflict),
) -> Result<(), SqlError> {
    let Found { identity, draft: Some(mut draft), by_times } = found else { return Ok(()) };
    // An earlier row of this statement may have replaced it.
    if batch.has(&identity.key) && !batch.holds(&identity.key) {
        return Ok(());
    }
    match batch.complete(&run.core.store, &mut draft, false) {
        Err(error) if conflict == UpdateConflict::Ignore && is_broken_constraint(&error) => return Ok(()),
        completed => completed.map_err(|error| broken(run, error, &draft.values))?,
    }
    if let Some(column) = draft.null_column(run.table) {
        let ignored = conflict == UpdateConflict::Ignore;
        return if ignored { Ok(()) } else { Err(null_in(run, column, &draft.values)) };
    }
    let mut key = identity.key.clone();
    let payload = batch.encode_payload(&draft, &mut key)?;
    while let Some((constraint, other)) = batch.conflict(view, &key, &draft, Some(&identity.key), |_| true)? {
        match conflict {
            UpdateConflict::Ignore => return Ok(()),
            UpdateConflict::Replace => {}
            UpdateConflict::Fail | UpdateConflict::Abort => {
                return Err(taken(run, constraint, Some(&draft.values)));
            }
        }
        let before = other.before(None);
        batch.remove(other.identity.key, before)?;
    }
    let moves = key != identity.key;
    if moves {
        draft.head.settle();
        batch.remove(identity.key.clone(), Before::of_change(&[], &identity, by_times, Some(&draft.head)))?;
    }
    let before =
        if moves { Before::Absent } else { Before::of_change(heads, &identity, by_times, Some(&draft.head)) };
    let row = batch.returns().then(|| listed(&draft, view.now()));
    let change = batch.put(key, before, draft, payload)?;
    batch.count(change, || row.unwrap_or_default());
    Ok(())
}
