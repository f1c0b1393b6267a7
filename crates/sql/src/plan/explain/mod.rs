//! `EXPLAIN`: how a statement is run, in PostgreSQL's shape.
//!
//! The steps are SQLite's, of the query that computes the statement's rows. A statement that runs without SQLite goes
//! to its rows in the same way, and the first line says so.

mod shape;
mod tree;

use dialect::lowered::{Listed, Node as Expression, Select, Verb, Write};
use store::definition::SqlType;
use store::value::{Value, ValueRef};

use crate::core::Core;
use crate::describe::ColumnDescription;
use crate::done::{ComputedBy, Done, DoneKind, RowSink};
use crate::error::{SqlError, state};
use crate::plan::Plan;
use crate::query::ReadPlan;
use crate::text::explain::{Explain, Format};
use shape::Report;
use tree::{ALL_ROWS, Actual, GROUPS, Node, Step};

/// What such a statement is called.
pub(crate) const EXPLAIN: &str = "EXPLAIN";

/// What the steps of SQLite's do not say of a statement.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// What it does to which table.
    writes: Option<(&'static str, String)>,
    grouped: bool,
    aggregated: bool,
    limited: bool,
}

impl Form {
    pub(crate) fn of_write(write: &Write) -> Self {
        let verb = match write.verb {
            Verb::Insert(_) => "Insert",
            Verb::Update(_) => "Update",
            Verb::Delete(_) => "Delete",
            Verb::Merge(_) => "Merge",
        };
        Self { writes: Some((verb, write.table.name.clone())), ..Self::default() }
    }

    pub(crate) fn of_select(select: &Select) -> Self {
        let aggregates = |listed: &Listed| matches!(listed, Listed::Value(of, _) if is_aggregate(of));
        Self {
            writes: None,
            grouped: !select.group.is_empty(),
            aggregated: select.list.iter().any(aggregates),
            limited: select.limit.is_some() || select.offset.is_some(),
        }
    }

    /// The whole plan around that of the rows.
    fn around(&self, rows: Node) -> Node {
        let mut plan = rows;
        if self.grouped && !plan.has(GROUPS) {
            plan = Node::new(GROUPS).above(plan);
        } else if self.aggregated && !self.grouped {
            plan = Node::new(ALL_ROWS).above(plan);
        }
        if self.limited {
            plan = Node::new("Limit").above(plan);
        }
        match &self.writes {
            Some((verb, table)) => {
                let node = Node { operation: Some(verb), ..Node::new("ModifyTable") };
                Node { relation: Some(table.clone()), ..node }.above(plan)
            }
            None => plan,
        }
    }
}

fn is_aggregate(expression: &Expression) -> bool {
    const NAMES: &[&str] = &[
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "total",
        "numeric_sum",
        "numeric_avg",
        "group_concat",
        "string_agg",
    ];
    let Expression::Call { name, .. } = expression.bare() else { return false };
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// A statement that is explained.
#[derive(Debug)]
pub(crate) struct Explained {
    options: Explain,
    /// SQLite's steps, or its program.
    steps: ReadPlan,
    plan: Plan,
    form: Form,
    columns: Vec<ColumnDescription>,
    /// How long it took to compile, in nanoseconds.
    planning_ns: u64,
}

/// What a run came to.
struct Ran {
    done: Done,
    rows: u64,
    time_ns: u64,
}

impl Explained {
    /// `query` computes the rows of `plan`.
    pub(crate) fn new(
        core: &Core,
        options: Explain,
        query: &str,
        (plan, form): (Plan, Form),
    ) -> Result<Self, SqlError> {
        let word = if options.bytecode { "EXPLAIN" } else { "EXPLAIN QUERY PLAN" };
        let steps = ReadPlan::new(core, &format!("{word} {query}"), EXPLAIN)?;
        let column = ColumnDescription::text("QUERY PLAN".to_owned());
        let ty = if options.format == Format::Json { SqlType::Json } else { SqlType::Text };
        let columns = vec![ColumnDescription { ty, ..column }];
        Ok(Self { options, steps, plan, form, columns, planning_ns: 0 })
    }

    /// Takes note of how long it took to compile.
    pub(crate) fn note_planning(&mut self, ns: u64) {
        self.planning_ns = ns;
    }

    pub(crate) fn parameters(&self) -> usize {
        self.plan.head().0
    }

    pub(crate) fn columns(&self) -> &[ColumnDescription] {
        &self.columns
    }

    /// The statement itself, if it is run, too.
    pub(crate) fn runs(&self) -> Option<&Plan> {
        self.options.analyze.then_some(&self.plan)
    }

    pub(crate) fn run(
        &mut self,
        core: &Core,
        parameters: &[Value],
        out: &mut dyn RowSink,
    ) -> Result<Done, SqlError> {
        let ran = if self.options.analyze { Some(self.analyze(core, parameters)?) } else { None };
        let by = ran.as_ref().map_or_else(|| self.plan.computed_by(core, parameters), |ran| ran.done.by);
        let rows = if self.options.bytecode {
            self.program(core, parameters)?
        } else {
            self.report(core, parameters, by, ran.as_ref())?.rows(self.options.format)
        };
        out.columns(&self.columns);
        for row in &rows {
            out.row(&[ValueRef::Text(row)])?;
        }
        Ok(Done { kind: DoneKind::Rows, affected: rows.len() as u64, tag: EXPLAIN, by, invalidated: None })
    }

    fn analyze(&mut self, core: &Core, parameters: &[Value]) -> Result<Ran, SqlError> {
        let mut counted = Counted(0);
        let clock = core.store.clock();
        let began = clock.precise_ns();
        let done = self.plan.run(core, crate::write::Given::Parameters(parameters), &mut counted)?;
        Ok(Ran { done, rows: counted.0, time_ns: clock.precise_ns().saturating_sub(began) })
    }

    fn report(
        &mut self,
        core: &Core,
        parameters: &[Value],
        by: ComputedBy,
        ran: Option<&Ran>,
    ) -> Result<Report, SqlError> {
        let mut steps = Steps(Vec::new());
        self.steps.run(core, parameters, &mut steps)?;
        let mut plan = self.form.around(tree::plan(&steps.0));
        let time = ran.map(|ran| ran.time_ns as f64 / 1e6);
        if let Some(ran) = ran {
            let shown = time.filter(|_| self.options.shows_times());
            plan.actual = Some(Actual { rows: ran.rows, time: shown });
            // What is written are the rows of the query below.
            if let (Some(_), Some(rows)) = (&self.form.writes, plan.children.first_mut()) {
                rows.actual = Some(Actual { rows: ran.done.affected, time: shown });
            }
        }
        let summary = self.options.shows_summary();
        Ok(Report {
            executor: by.name(),
            plan,
            planning: summary.then_some(self.planning_ns as f64 / 1e6),
            execution: time.filter(|_| summary),
        })
    }

    /// The program that SQLite runs, or would run.
    fn program(&mut self, core: &Core, parameters: &[Value]) -> Result<Vec<String>, SqlError> {
        let mut program = Program(vec![format!("{:>4}  {:<13}  p1    p2    p3    p4", "addr", "opcode")]);
        self.steps.run(core, parameters, &mut program)?;
        Ok(program.0)
    }
}

/// Takes rows for their number.
struct Counted(u64);

impl RowSink for Counted {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        self.0 += 1;
        Ok(())
    }
}

/// Takes the steps of a plan: number, parent, nothing, words.
struct Steps(Vec<Step>);

impl RowSink for Steps {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let [ValueRef::Integer(number), ValueRef::Integer(parent), _, ValueRef::Text(words)] = *values else {
            return Err(SqlError::new(state::INTERNAL, "a step of a plan has another form"));
        };
        self.0.push(Step { number, parent, words: words.to_owned() });
        Ok(())
    }
}

/// Takes the lines of a program: address, operation, five operands, a comment.
struct Program(Vec<String>);

impl RowSink for Program {
    fn columns(&mut self, _: &[ColumnDescription]) {}

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let shown = |at: usize| {
            values.get(at).map_or_else(String::new, |value| {
                let mut text = Vec::new();
                value.write_text(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        let line = format!(
            "{:>4}  {:<13}  {:<4}  {:<4}  {:<4}  {}",
            shown(0),
            shown(1),
            shown(2),
            shown(3),
            shown(4),
            shown(5)
        );
        self.0.push(line.trim_end().to_owned());
        Ok(())
    }
}
