//! `INSERT` and `REPLACE`.

use sqlite::Statement;
use store::value::Value;
use store::{View, WriteError};

use super::batch::{Batch, Constraint, Current, listed};
use super::before::Before;
use super::plan::Run;
use super::taken::{broken, null_in, taken};
use super::target::{Draft, Target};
use crate::error::{SqlError, state};
use crate::table::{ListRow, NEW_ROWS, OLD_ROWS};
use crate::text::rows::Rows;

/// A compiled `INSERT`.
#[derive(Debug)]
pub(crate) struct InsertPlan {
    /// What each value of a source row is assigned to.
    pub(crate) targets: Vec<Target>,
    pub(crate) source: Source,
    pub(crate) conflict: OnConflict,
}

impl InsertPlan {
    /// Whether its rows come from the client alone, and nothing that is there decides what becomes of them.
    pub(crate) fn puts(&self) -> bool {
        matches!(self.conflict, OnConflict::Abort) && !matches!(self.source, Source::Query(_))
    }
}

/// Where the rows come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// `VALUES` of literals and parameters only.
    Values(Vec<Vec<Operand>>),
    /// Anything else, as a query.
    Query(Statement),
    /// `DEFAULT VALUES`
    Defaults,
}

/// A value that needs no computing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Literal(Value),
    /// Its number, from 0.
    Parameter(usize),
}

impl Operand {
    pub(crate) fn value<'a>(&'a self, parameters: &'a [Value]) -> &'a Value {
        static NULL: Value = Value::Null;
        match self {
            Self::Literal(value) => value,
            Self::Parameter(number) => parameters.get(*number).unwrap_or(&NULL),
        }
    }
}

/// What happens to a row whose key or unique value is taken.
#[derive(Debug)]
pub(crate) enum OnConflict {
    /// The statement fails, and writes nothing.
    Abort,
    /// `OR FAIL`: the statement fails, and the rows before this one are written.
    Fail,
    /// `OR IGNORE`: the row is left out.
    Ignore,
    /// `OR REPLACE`: the other row goes.
    Replace,
    /// `ON CONFLICT ...`, clause by clause.
    Upsert(Vec<UpsertClause>),
}

/// One `ON CONFLICT` clause.
#[derive(Debug)]
pub(crate) struct UpsertClause {
    /// The constraint it is for; `None`: any.
    pub(crate) target: Option<Constraint>,
    /// `None`: `DO NOTHING`.
    pub(crate) update: Option<UpsertUpdate>,
}

impl UpsertClause {
    fn names(&self, constraint: Constraint) -> bool {
        self.target.is_none_or(|target| target == constraint)
    }
}

/// `DO UPDATE SET ... WHERE ...`: one row with the condition and then the values.
#[derive(Debug)]
pub(crate) struct UpsertUpdate {
    pub(crate) statement: Statement,
    pub(crate) targets: Vec<Target>,
}

impl InsertPlan {
    /// Whether the statement decides by what is there, its own rows included.
    pub(crate) fn looks_for_conflicts(&self) -> bool {
        !matches!(self.conflict, OnConflict::Abort)
    }

    /// Computes the list. `verify`: an earlier one was lost, so look at the keys that must be free.
    pub(crate) fn compute(
        &mut self,
        run: &Run<'_>,
        view: &View<'_>,
        batch: &mut Batch,
        verify: bool,
    ) -> Result<(), SqlError> {
        let Self { targets, source, conflict } = self;
        let Drafts { rows, misfit } = run.core.sight.lend(view, || drafts(run, targets, source))?;
        let misfit = misfit.map(|error| error.of_row(rows.len()));
        for (at, draft) in rows.into_iter().enumerate() {
            match run.core.sight.lend(view, || insert(run, view, batch, conflict, draft, verify)) {
                Err(error) if matches!(conflict, OnConflict::Fail) && error.breaks_constraint() => {
                    batch.stop(error);
                    return Ok(());
                }
                inserted => inserted.map_err(|error| error.of_row(at))?,
            }
        }
        misfit.map_or(Ok(()), Err)
    }
}

/// The rows of a source.
#[derive(Default)]
struct Drafts {
    rows: Vec<Draft>,
    /// Why the row behind them is none: a value that its column does not take. The rows before it come first.
    misfit: Option<SqlError>,
}

/// The source's rows. All are computed before the first is looked at, so that a source which reads the table
/// itself sees none of them.
fn drafts(run: &Run<'_>, targets: &[Target], source: &mut Source) -> Result<Drafts, SqlError> {
    let store = &run.core.store;
    let base = Draft::defaults(run.table);
    let mut found = Drafts::default();
    let drafts = &mut found.rows;
    match source {
        Source::Defaults => drafts.push(base),
        Source::Values(rows) => {
            let count = run.rows.map_or(rows.len(), Rows::len);
            drafts.reserve(count);
            for row in 0..count {
                let mut draft = base.clone();
                let assigned = targets.iter().enumerate().try_for_each(|(at, target)| {
                    draft.assign(store, run.table, *target, value_of(run, rows, row, at))
                });
                if let Err(error) = assigned {
                    found.misfit = Some(error);
                    break;
                }
                drafts.push(draft);
            }
        }
        Source::Query(statement) => {
            let mut bytes = 0;
            let misfit = &mut found.misfit;
            run.query(statement, &mut |row| {
                if misfit.is_some() {
                    return Ok(());
                }
                let mut draft = base.clone();
                let assigned = targets.iter().enumerate().try_for_each(|(column, target)| {
                    draft.assign(store, run.table, *target, row.value(column).to_owned())
                });
                if let Err(error) = assigned {
                    *misfit = Some(error);
                    return Ok(());
                }
                bytes += draft_bytes(&draft);
                check_size(drafts.len(), bytes)?;
                drafts.push(draft);
                Ok(())
            })?;
        }
    }
    Ok(found)
}

/// A value of a row of `VALUES`, or of the rows that stand in the place of its one.
fn value_of(run: &Run<'_>, rows: &[Vec<Operand>], row: usize, at: usize) -> Value {
    match run.rows {
        Some(given) => given.value(row, at).to_owned(),
        None => rows[row][at].value(run.parameters).clone(),
    }
}

fn draft_bytes(draft: &Draft) -> usize {
    let bytes = draft.values.iter().map(|value| match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    });
    bytes.sum::<usize>() + draft.values.len() * size_of::<Value>()
}

/// Refuses a statement that writes too much, before it writes another row.
pub(crate) fn check_size(rows: usize, bytes: usize) -> Result<(), SqlError> {
    use crate::limits::{BYTES_PER_STATEMENT_MAX, ROWS_PER_STATEMENT_MAX};
    if rows >= ROWS_PER_STATEMENT_MAX || bytes > BYTES_PER_STATEMENT_MAX {
        let message = format!(
            "the statement writes more than {ROWS_PER_STATEMENT_MAX} rows or {BYTES_PER_STATEMENT_MAX} bytes; split it"
        );
        return Err(SqlError::new(state::TOO_LARGE, message));
    }
    Ok(())
}

/// Puts one row into the list, or does what the statement says about the row in its way.
fn insert(
    run: &Run<'_>,
    view: &View<'_>,
    batch: &mut Batch,
    conflict: &mut OnConflict,
    mut draft: Draft,
    verify: bool,
) -> Result<(), SqlError> {
    if matches!(conflict, OnConflict::Replace) {
        take_defaults(run, &mut draft);
    }
    let ignore = matches!(conflict, OnConflict::Ignore);
    match batch.complete(&run.core.store, &mut draft, true) {
        Err(error) if ignore && is_broken_constraint(&error) => return Ok(()),
        completed => completed.map_err(|error| broken(run, error, &draft.values))?,
    }
    if let Some(column) = draft.null_column(run.table) {
        return if ignore { Ok(()) } else { Err(null_in(run, column, &draft.values)) };
    }
    let (key, payload) = batch.encode(&run.core.store, &draft)?;
    match conflict {
        OnConflict::Abort => {
            if batch.holds(&key) || (verify && batch.current(view, &key)?.is_some()) {
                return Err(taken(run, Constraint::Primary, Some(&draft.values)));
            }
            put(batch, view, key, Before::Absent, draft, payload)
        }
        OnConflict::Fail => match batch.conflict(view, &key, &draft, None, |_| true)? {
            Some((constraint, _)) => Err(taken(run, constraint, Some(&draft.values))),
            None => put(batch, view, key, Before::Absent, draft, payload),
        },
        OnConflict::Ignore => match batch.conflict(view, &key, &draft, None, |_| true)? {
            Some(_) => Ok(()),
            None => put(batch, view, key, Before::Absent, draft, payload),
        },
        OnConflict::Replace => replace(view, batch, key, draft, payload),
        OnConflict::Upsert(clauses) => {
            // What a clause names is looked at first, in the order of the clauses; what none names is an error.
            for clause in &mut *clauses {
                let names = |constraint| clause.names(constraint);
                if let Some((_, other)) = batch.conflict(view, &key, &draft, None, names)? {
                    return upsert(run, view, batch, clause, &draft, &other);
                }
            }
            match unnamed_conflict(view, batch, clauses, &key, &draft)? {
                _ if batch.is_outrun() => Ok(()),
                // A row that came since then is not looked for: the store refuses the list, and it is computed again.
                None => put(batch, view, key, Before::Absent, draft, payload),
                Some(constraint) => Err(taken(run, constraint, Some(&draft.values))),
            }
        }
    }
}

/// A constraint that the row breaks and no clause names. A row that came after the clauses were looked at, and that one
/// of them names, is a race that was lost.
fn unnamed_conflict(
    view: &View<'_>,
    batch: &mut Batch,
    clauses: &[UpsertClause],
    key: &[u8],
    draft: &Draft,
) -> Result<Option<Constraint>, SqlError> {
    let named = |constraint| clauses.iter().any(|clause| clause.names(constraint));
    let found = batch.conflict(view, key, draft, None, |constraint| !named(constraint))?;
    let Some((constraint, other)) = found else { return Ok(None) };
    if batch.stands_in_way(&other, key, draft, named)
        || batch.conflict(view, key, draft, None, named)?.is_some()
    {
        batch.note_outrun();
    }
    Ok(Some(constraint))
}

/// `OR REPLACE` puts the default where NULL must not be.
fn take_defaults(run: &Run<'_>, draft: &mut Draft) {
    for (at, column) in run.table.def().columns.iter().enumerate() {
        if !column.not_null || !draft.values[at].is_null() || draft.defaults.contains(&at) {
            continue;
        }
        match &column.default {
            Some(default) => draft.values[at] = default.clone(),
            None if column.default_sql.is_some() => draft.defaults.push(at),
            None => {}
        }
    }
}

/// Whether a row is refused for what it holds: `OR IGNORE` leaves such a row out.
pub(super) fn is_broken_constraint(error: &WriteError) -> bool {
    matches!(error, WriteError::Check(_) | WriteError::NotNull(_))
}

fn put(
    batch: &mut Batch,
    view: &View<'_>,
    key: Vec<u8>,
    before: Before,
    draft: Draft,
    payload: Vec<u8>,
) -> Result<(), SqlError> {
    let row = batch.returns().then(|| listed(&draft, view.now()));
    if !before.was_there() {
        batch.note_inserted(&key);
    }
    let change = batch.put(key, before, draft, payload)?;
    batch.count(change, || row.unwrap_or_default());
    Ok(())
}

/// Removes the rows in the way, then puts the new one.
fn replace(
    view: &View<'_>,
    batch: &mut Batch,
    key: Vec<u8>,
    draft: Draft,
    payload: Vec<u8>,
) -> Result<(), SqlError> {
    // Its own key's row is replaced in place, whatever it is.
    while let Some((_, other)) = batch.conflict(view, &key, &draft, Some(&key), |_| true)? {
        let before = other.before(None);
        batch.remove(other.identity.key, before)?;
    }
    put(batch, view, key, Before::Anything, draft, payload)
}

/// Does what the clause says about the row in the way.
fn upsert(
    run: &Run<'_>,
    view: &View<'_>,
    batch: &mut Batch,
    clause: &mut UpsertClause,
    draft: &Draft,
    other: &Current,
) -> Result<(), SqlError> {
    let Some(update) = &mut clause.update else { return Ok(()) };
    if batch.has(&other.identity.key) {
        let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
        return Err(SqlError::new(state::CARDINALITY, message).with_hint(
            "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
        ));
    }
    let Some(new) = update.evaluate(run, view, other, draft)? else { return Ok(()) };
    store_updated(run, view, batch, other, new)
}

/// Replaces a row by its updated form, which may have another key.
fn store_updated(
    run: &Run<'_>,
    view: &View<'_>,
    batch: &mut Batch,
    current: &Current,
    mut new: Draft,
) -> Result<(), SqlError> {
    let mut key = current.identity.key.clone();
    if let Err(error) = batch.complete(&run.core.store, &mut new, false) {
        return Err(broken(run, error, &new.values));
    }
    if let Some(column) = new.null_column(run.table) {
        return Err(null_in(run, column, &new.values));
    }
    let payload = batch.encode_payload(&new, &mut key)?;
    if let Some((constraint, _)) = batch.conflict(view, &key, &new, Some(&current.identity.key), |_| true)? {
        // The row that is updated may have made room for the one in the way.
        if batch.is_current(view, current)? {
            return Err(taken(run, constraint, Some(&new.values)));
        }
        batch.note_outrun();
        return Ok(());
    }
    if key != current.identity.key {
        new.head.settle();
        batch.remove(current.identity.key.clone(), current.before(Some(&new)))?;
        return put(batch, view, key, Before::Absent, new, payload);
    }
    put(batch, view, key, current.before(Some(&new)), new, payload)
}

impl UpsertUpdate {
    /// The updated row; `None` where the clause's condition does not hold.
    fn evaluate(
        &mut self,
        run: &Run<'_>,
        view: &View<'_>,
        current: &Current,
        excluded: &Draft,
    ) -> Result<Option<Draft>, SqlError> {
        let sight = &run.core.sight;
        sight.set_list(NEW_ROWS, vec![listed(excluded, view.now())]);
        sight.set_list(OLD_ROWS, vec![current.to_list_row()]);
        let mut new: Option<Draft> = None;
        let targets = &self.targets;
        let result = run.query(&mut self.statement, &mut |row| {
            if !matches!(row.value(0), store::value::ValueRef::Integer(1)) {
                return Ok(());
            }
            let mut draft = current.to_draft();
            for (column, target) in (1..).zip(targets) {
                draft.assign(&run.core.store, run.table, *target, row.value(column).to_owned())?;
            }
            new = Some(draft);
            Ok(())
        });
        sight.set_list(NEW_ROWS, Vec::<ListRow>::new());
        sight.set_list(OLD_ROWS, Vec::<ListRow>::new());
        result.map(|()| new)
    }
}
