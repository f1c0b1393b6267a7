//! A compiled statement with what its text told of its parameters and columns.

use store::definition::SqlType;
use store::value::Value;

use crate::describe::{Description, OwnedColumn};
use crate::dialect::{Item, ParameterType, Translated};
use crate::error::SqlError;
use crate::executor::{Core, Done, Plan, RowSink};
use crate::function::{Caller, Now, bound, is_formed};
use crate::session::Session;
use crate::text::rows::Rows;
use crate::write::Given;

/// What the cache keeps.
#[derive(Debug)]
pub(crate) struct Prepared {
    plan: Plan,
    parameters: Vec<ParameterType>,
    /// Whether a value may have to be converted before it is bound.
    converts: bool,
    /// Columns that are bare parameters: what a client chooses for these is what they are.
    echoed: Vec<(usize, usize)>,
    notice: Option<&'static str>,
}

impl Prepared {
    /// A statement of which nothing is known beside its plan.
    pub(crate) fn new(mut plan: Plan) -> Self {
        if let Some(columns) = plan.columns_mut() {
            settle(columns);
        }
        Self { plan, parameters: Vec::new(), converts: false, echoed: Vec::new(), notice: None }
    }

    /// A statement that the dialect looked at; `sql` is the text that it looked at.
    pub(crate) fn translated(mut plan: Plan, translated: Translated, sql: &str) -> Self {
        let Translated { parameters, items, notice, .. } = translated;
        let mut echoed = Vec::new();
        if let Some(columns) = plan.columns_mut() {
            for (column, item) in placed(columns.len(), &items) {
                refine(&mut columns[column], item, &parameters, sql);
                echoed.extend(item.parameter.map(|parameter| (column, parameter)));
            }
            settle(columns);
        }
        let converts = parameters.iter().any(|known| known.ty.is_some_and(|ty| known.cast || is_formed(ty)));
        Self { plan, parameters, converts, echoed, notice }
    }

    /// The plan itself.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether it needs no SQLite.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.plan, Plan::Direct(_))
    }

    /// Whether it is an `INSERT` in which these rows may stand in the place of its one row of parameters.
    pub(crate) fn takes(&self, rows: &Rows<'_>) -> bool {
        matches!(&self.plan, Plan::Write(plan) if plan.takes(rows))
    }

    /// The plan itself, to run it apart.
    pub(crate) fn plan_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// What it takes and gives. What a client chose for a parameter stands.
    pub(crate) fn description(&self, chosen: &[Option<SqlType>]) -> Description {
        let (count, tag) = self.plan.head();
        let ty = |at: usize| {
            let known = self.parameters.get(at).and_then(|parameter| parameter.ty);
            chosen.get(at).copied().flatten().or(known).unwrap_or(SqlType::Text)
        };
        let mut columns = self.plan.columns().map(<[_]>::to_vec);
        for (column, parameter) in &self.echoed {
            if let Some(column) = columns.as_mut().and_then(|columns| columns.get_mut(*column)) {
                column.ty = ty(*parameter);
            }
        }
        Description { parameters: (0..count).map(ty).collect(), columns, tag }
    }

    fn run(&mut self, core: &Core, parameters: &[Value], out: &mut dyn RowSink) -> Result<Done, SqlError> {
        if self.converts
            && let Some(converted) = self.converted(core.sight.now(), parameters)?
        {
            return self.plan.run(core, Given::Parameters(&converted), out);
        }
        self.plan.run(core, Given::Parameters(parameters), out)
    }

    /// The values as their types store them; `None`: as they are.
    fn converted(&self, now: Now, values: &[Value]) -> Result<Option<Vec<Value>>, SqlError> {
        let mut converted: Option<Vec<Value>> = None;
        for (at, (value, known)) in values.iter().zip(&self.parameters).enumerate() {
            let Some(ty) = known.ty else { continue };
            if let Some(value) = bound(now, ty, known.cast, value)? {
                converted.get_or_insert_with(|| values.to_vec())[at] = value;
            }
        }
        Ok(converted)
    }
}

impl Core {
    /// Runs a prepared statement for a session.
    pub(crate) fn run_prepared(
        &mut self,
        session: &mut Session,
        prepared: &mut Prepared,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        self.run_with(session, prepared, |core, prepared| prepared.run(core, parameters, out))
    }

    /// Runs a prepared `INSERT` that takes these rows.
    pub(crate) fn run_rows(
        &mut self,
        session: &mut Session,
        prepared: &mut Prepared,
        rows: &Rows<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        self.run_with(session, prepared, |core, prepared| prepared.plan.run(core, Given::Rows(rows), out))
    }

    fn run_with(
        &mut self,
        session: &mut Session,
        prepared: &mut Prepared,
        body: impl FnOnce(&Self, &mut Prepared) -> Result<Done, SqlError>,
    ) -> Result<Done, SqlError> {
        if let Some(notice) = prepared.notice {
            session.note(notice, "");
        }
        let writes = prepared.plan().writes();
        let result = self.within(session, writes, |core| body(core, prepared));
        if result.as_ref().is_err_and(SqlError::breaks_constraint) && prepared.plan().rolls_back() {
            session.roll_back();
        }
        result
    }
}

/// Which columns of a result the items of its list are. A `*` takes what the others leave, if it is the only one.
fn placed(columns: usize, items: &[Item]) -> Vec<(usize, &Item)> {
    let stars = items.iter().filter(|item| item.star).count();
    let named = items.len() - stars;
    if named > columns || (stars == 0 && named != columns) {
        return Vec::new();
    }
    let first_star = items.iter().position(|item| item.star).unwrap_or(items.len());
    let last_star = items.iter().rposition(|item| item.star).map_or(items.len(), |at| at + 1);
    let before = items[..first_star].iter().enumerate();
    let behind = items[last_star..]
        .iter()
        .enumerate()
        .map(|(at, item)| (columns - (items.len() - last_star) + at, item));
    before.chain(behind).collect()
}

/// Tells a column what the text tells of it; what it is by its table stands.
fn refine(column: &mut OwnedColumn, item: &Item, parameters: &[ParameterType], sql: &str) {
    if item.mixed {
        (column.ty, column.table) = (SqlType::Unknown, None);
    }
    if column.ty == SqlType::Unknown {
        let parameter = item.parameter.and_then(|number| parameters.get(number)?.ty);
        column.ty = item.ty.or(parameter).unwrap_or(SqlType::Unknown);
    }
    if let Some(label) = &item.label {
        column.label.clone_from(label);
    }
    // An expression goes by its text, unless that is not the user's any more.
    if !sql.contains(&column.name) {
        column.name.clone_from(&column.label);
    }
}

/// What is not known is text.
fn settle(columns: &mut [OwnedColumn]) {
    for column in columns.iter_mut().filter(|column| column.ty == SqlType::Unknown) {
        column.ty = SqlType::Text;
    }
}
