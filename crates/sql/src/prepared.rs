//! A compiled statement with what its text says of its parameters and columns.

use dialect::{Chosen, Item, ParameterType, Translated};
use pgcatalog::function::{Caller, bound, is_formed};
use pgcatalog::session::Identity;
use store::definition::SqlType;
use store::value::Value;

use crate::core::Core;
use crate::describe::{ColumnDescription, Description};
use crate::done::{Done, RowSink};
use crate::error::SqlError;
use crate::needs::Needs;
use crate::plan::Plan;
use crate::plan::compound::Compound;
use crate::plan::explain::EXPLAIN;
use crate::session::Session;
use crate::tell::Tells;
use crate::text::rows::Rows;
use crate::write::Given;

/// What the cache keeps.
#[derive(Debug)]
pub(crate) struct Prepared {
    plan: Plan,
    parameters: Vec<ParameterType>,
    /// Whether a value may have to be converted before it is bound.
    converts: Converts,
    /// Lists of types that clients chose and that make no difference to it, the last of them.
    alike: Vec<Box<[Option<SqlType>]>>,
    notice: Option<&'static str>,
    needs: Needs,
    /// What other caches hear of each run.
    tells: Option<Box<Tells>>,
}

/// Which values of a statement's parameters are not bound as they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Converts {
    #[default]
    None,
    Texts,
    All,
}

impl Converts {
    #[inline]
    fn some_of(self, values: &[Value]) -> bool {
        match self {
            Self::None => false,
            Self::Texts => values.iter().any(|value| matches!(value, Value::Text(_))),
            Self::All => true,
        }
    }
}

/// Lists of chosen types that a statement remembers to make no difference: one for each width of a few numbers.
const ALIKE_MAX: usize = 8;

impl Prepared {
    /// A statement that the dialect looked at; `sql` is the text that it looked at, `chosen` what the client said of
    /// its parameters.
    pub(crate) fn translated(
        mut plan: Plan,
        translated: Translated,
        needs: Needs,
        sql: &str,
        chosen: Chosen<'_>,
    ) -> Self {
        let Translated { parameters, items, notice, .. } = translated;
        let ty = |number: usize| type_of_parameter(number, &parameters, chosen);
        let explains = plan.head().1 == EXPLAIN;
        if let Some(columns) = plan.columns_mut() {
            // The list is that of the statement which is explained.
            let items = if explains { &[] } else { &items[..] };
            let starred = items.iter().any(|item| item.star);
            let all = if starred { Item::expanded(items) } else { None };
            let items = all.as_deref().filter(|all| all.len() == columns.len()).unwrap_or(items);
            for (column, item) in placed(columns.len(), items) {
                refine(&mut columns[column], item, &ty, sql);
            }
            settle(columns);
        }
        let converts = parameters.iter().map(|known| converts(*known)).max().unwrap_or_default();
        Self { plan, parameters, converts, alike: Vec::new(), notice, needs, tells: None }
    }

    /// It, of which other caches hear this each time.
    pub(crate) fn telling(self, tells: Option<Box<Tells>>) -> Self {
        Self { tells, ..self }
    }

    /// One whose parts were prepared by themselves: each converts what it is given.
    pub(crate) fn compound(writes: Vec<Self>, main: Self, count: usize) -> Self {
        let parts = || writes.iter().chain([&main]);
        let known =
            |at: usize| parts().filter_map(|part| part.parameters.get(at)).find(|known| known.ty.is_some());
        let parameters = (0..count).map(|at| known(at).copied().unwrap_or_default()).collect();
        let notice = parts().find_map(|part| part.notice);
        let mut needs = Needs::default();
        parts().for_each(|part| needs.join(&part.needs));
        let tells = Tells::of_parts(parts().filter_map(|part| part.tells.as_deref()));
        let plan = Plan::Compound(Box::new(Compound::new(writes, main, count)));
        Self { plan, parameters, converts: Converts::None, alike: Vec::new(), notice, needs, tells }
    }

    /// The plan itself.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Refuses a session that may not run it.
    #[inline]
    pub(crate) fn check_needs(&self, core: &Core, identity: &Identity) -> Result<(), SqlError> {
        self.needs.check(core, identity)
    }

    /// Whether it is an `INSERT` in which these rows may stand in the place of its one row of parameters.
    pub(crate) fn takes(&self, rows: &Rows<'_>) -> bool {
        self.plan.takes(rows)
    }

    /// The tables and views that it names.
    pub(crate) fn relations(&self) -> Vec<String> {
        self.needs.relations()
    }

    /// The plan itself, to run it apart.
    pub(crate) fn plan_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// What it takes and gives. What a client chose for a parameter stands.
    pub(crate) fn description(&self, chosen: &[Option<SqlType>]) -> Description {
        let (count, tag) = self.plan.head();
        let ty = |at: usize| type_of_parameter(at, &self.parameters, chosen).unwrap_or(SqlType::Text);
        let columns = self.plan.columns().map(<[_]>::to_vec);
        Description { parameters: (0..count).map(ty).collect(), columns, tag, chosen: Vec::new() }
    }

    /// Whether a client that chooses these types says what the statement says itself, or was found to mean the same.
    pub(crate) fn agrees(&self, chosen: Chosen<'_>) -> bool {
        self.says(chosen) || self.alike.iter().any(|alike| **alike == *chosen)
    }

    /// Takes note that the statement is the same with these types.
    pub(crate) fn note_agreement(&mut self, chosen: Chosen<'_>) {
        if chosen.len() <= self.parameters.len() && !self.agrees(chosen) {
            self.alike.truncate(ALIKE_MAX - 1);
            self.alike.insert(0, chosen.into());
        }
    }

    fn says(&self, chosen: Chosen<'_>) -> bool {
        let same = |(at, ty): (usize, &Option<SqlType>)| {
            ty.is_none() || self.parameters.get(at).is_some_and(|known| known.ty == *ty)
        };
        chosen.iter().enumerate().all(same)
    }

    /// Runs it, whoever asks.
    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        if self.converts.some_of(parameters)
            && let Some(converted) = self.converted(core, parameters)?
        {
            return self.plan.run(core, Given::Parameters(&converted), out);
        }
        self.plan.run(core, Given::Parameters(parameters), out)
    }

    /// The values as their types store them; `None`: as they are.
    pub(crate) fn converted(&self, core: &Core, values: &[Value]) -> Result<Option<Vec<Value>>, SqlError> {
        let now = core.sight.now();
        let mut converted: Option<Vec<Value>> = None;
        for (at, (value, known)) in values.iter().zip(&self.parameters).enumerate() {
            let Some(ty) = known.ty else { continue };
            if let Some(own) = ty.enumeration().and_then(|id| core.catalog.enum_of(id)) {
                let value = value.clone();
                let value = if ty.is_array() { own.accept_array(value)? } else { own.accept(value)? };
                converted.get_or_insert_with(|| values.to_vec())[at] = value;
            } else if let Some(value) =
                bound(now, ty, known.cast || is_text_beside(*known, ty, value), value)?
            {
                converted.get_or_insert_with(|| values.to_vec())[at] = value;
            }
        }
        Ok(converted)
    }
}

/// Which of a parameter's values have to be converted.
fn converts(known: ParameterType) -> Converts {
    match known.ty {
        Some(ty) if known.cast || ty.enumeration().is_some() => Converts::All,
        Some(ty) if is_formed(ty) || is_compared(known, ty) => Converts::Texts,
        _ => Converts::None,
    }
}

/// Whether a parameter is compared with a number.
fn is_compared(known: ParameterType, ty: SqlType) -> bool {
    known.compared && ty.is_number()
}

/// Whether a text was given for one: it has to read as a number.
fn is_text_beside(known: ParameterType, ty: SqlType, value: &Value) -> bool {
    matches!(value, Value::Text(_)) && is_compared(known, ty)
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
        self.run_with(session, prepared, parameters, |core, prepared| prepared.run(core, parameters, out))
    }

    /// Runs a prepared `INSERT` that takes these rows.
    pub(crate) fn run_rows(
        &mut self,
        session: &mut Session,
        prepared: &mut Prepared,
        rows: &Rows<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        self.run_with(session, prepared, &[], |core, prepared| {
            prepared.plan.run(core, Given::Rows(rows), out)
        })
    }

    /// Runs one in whichever way. Other caches hear of it with these values of its parameters.
    pub(crate) fn run_with(
        &mut self,
        session: &mut Session,
        prepared: &mut Prepared,
        values: &[Value],
        body: impl FnOnce(&Self, &mut Prepared) -> Result<Done, SqlError>,
    ) -> Result<Done, SqlError> {
        prepared.check_needs(self, session.identity())?;
        let chooses = prepared.needs.locks();
        if chooses {
            session.check_writable("SELECT FOR UPDATE")?;
        }
        if let Some(notice) = prepared.notice {
            session.note(notice, "");
        }
        let (writes, reach) = (prepared.plan().writes(), prepared.plan().reach());
        let tells = prepared.tells.as_ref().filter(|_| writes.is_some());
        let telling = tells.map_or(Ok(false), |tells| session.begin_telling(tells.told(values)))?;
        let alone = matches!(prepared.plan(), Plan::Compound(_)) && session.block.is_none();
        let result = if alone {
            self.within_own(session, writes, |core| body(core, prepared))
        } else {
            self.within(session, writes, reach, |core| core.choosing(chooses, || body(core, prepared)))
        };
        if result.as_ref().is_err_and(SqlError::breaks_constraint) && prepared.plan().rolls_back() {
            session.roll_back();
        }
        let changed = result.as_ref().map_or_else(|error| error.partial, |_| true);
        if telling {
            session.end_telling(changed);
        }
        if let Some(tells) = &prepared.tells
            && writes.is_some()
            && changed
        {
            session.tell(tells.told(values));
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

/// Whether a statement is the same for a client that chose these types as for one that chose none: the same text, the
/// same types of its columns, the same conversions of its values.
pub(crate) fn are_alike(open: &Translated, closed: &Translated, chosen: Chosen<'_>) -> bool {
    let items = |of: &Translated, chosen: Chosen<'_>| {
        let ty = |item: &Item| {
            let parameter = || type_of_parameter(item.parameter?, &of.parameters, chosen);
            (item.ty.or_else(parameter).unwrap_or(SqlType::Text), item.mixed)
        };
        of.items.iter().map(ty).collect::<Vec<_>>()
    };
    // Numbers that a client says are numbers come as such, and are bound as they come.
    let is_number = |at: usize| matches!(chosen.get(at), Some(Some(ty)) if is_plain_number(*ty));
    let conversions = |of: &Translated| {
        let one = |(at, known): (usize, &ParameterType)| {
            let ty = known.ty.filter(|ty| known.cast || (is_formed(*ty) && !is_number(at)));
            (ty, known.cast)
        };
        of.parameters.iter().enumerate().map(one).collect::<Vec<_>>()
    };
    open.sql == closed.sql
        && open.lowered == closed.lowered
        && items(open, &[]) == items(closed, chosen)
        && conversions(open) == conversions(closed)
}

fn is_plain_number(ty: SqlType) -> bool {
    matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Float4 | SqlType::Float8)
}

/// The type of a parameter: what a client chose, or else what the statement says.
fn type_of_parameter(number: usize, known: &[ParameterType], chosen: Chosen<'_>) -> Option<SqlType> {
    chosen.get(number).copied().flatten().or_else(|| known.get(number)?.ty)
}

/// Gives a column what the text says of it; what its table says stands.
fn refine(
    column: &mut ColumnDescription,
    item: &Item,
    parameter: &dyn Fn(usize) -> Option<SqlType>,
    sql: &str,
) {
    if item.mixed {
        (column.ty, column.table, column.modifier) = (SqlType::Unknown, None, -1);
    }
    if column.ty == SqlType::Unknown {
        column.ty = item.ty.or_else(|| item.parameter.and_then(parameter)).unwrap_or(SqlType::Unknown);
    }
    if let Some(label) = &item.label {
        column.label.clone_from(label);
    }
    // An expression is named by its text, unless that is not the user's any more. A query's may differ from one call to
    // the next in what it compares.
    if item.query || !sql.contains(&column.name) {
        column.name.clone_from(&column.label);
    }
}

/// What is not known is text.
fn settle(columns: &mut [ColumnDescription]) {
    for column in columns.iter_mut().filter(|column| column.ty == SqlType::Unknown) {
        column.ty = SqlType::Text;
    }
}
