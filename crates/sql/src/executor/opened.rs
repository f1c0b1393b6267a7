//! Statements that were there before with other literals: they are compiled once for all.
//!
//! What a client writes into the text is taken out and handed over as parameters, where a statement can take it so. The
//! types that numbers have by their size are chosen for these, as drivers choose them; a text has the type of what it
//! stands beside. Whatever goes wrong before the first row, the statement as it stands reports better, with its place.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use rapidhash::fast::RapidHasher;
use sqltext::Tree;
use sqltext::limits::PARAMETERS_MAX;
use sqltext::literals::{Constant, Literals, StatementText, constants};
use store::Catalog;
use store::definition::{ColumnKind, SqlType};
use store::scalar::numeric::Modifier;
use store::value::Value;

use super::describe::key_of;
use super::{Done, Executor, RowSink};
use crate::error::SqlError;
use crate::limits::{CACHED_STATEMENT_BYTES_MAX, SHAPES_MAX};
use crate::session::Session;
use crate::write::Given;

/// What all texts of one key have in common.
#[derive(Debug)]
struct Shape {
    /// Which literals are parameters.
    free: Box<[bool]>,
    /// Under which the plan of all of them is kept; `None` where it depends on literals that are not free.
    plan: Option<Box<str>>,
}

impl Shape {
    fn of(literals: &Literals<'_>, tree: Option<&Tree<'_>>) -> Self {
        let free = tree.map(|tree| literals.free(tree)).unwrap_or_default();
        let all = !free.contains(&false);
        let plan = all.then(|| key_of(&literals.opened(&free), &types_of(literals, &free)).into());
        Self { free: free.into(), plan }
    }
}

/// The shapes of texts by their key. Cleared when a definition changes.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: HashMap<Box<str>, Rc<Shape>, BuildHasherDefault<RapidHasher<'static>>>,
    /// Literals of indexed expressions and of the conditions of partial indexes: a text that has one of them may mean
    /// such an index, which is found by what is written.
    kept: Option<Vec<Constant<'static>>>,
    /// Whether a column keeps the zeros at the end of a number.
    scales: Option<bool>,
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The shape of a text, and its tree if the shape was not known; `None` where no literal is a parameter.
    fn of<'s>(
        &mut self,
        sql: &'s str,
        literals: &Literals<'s>,
        key: &str,
    ) -> Option<(Rc<Shape>, Option<Box<Tree<'s>>>)> {
        let takes_any = |shape: &Shape| shape.free.contains(&true);
        if let Some(known) = self.known.get(key) {
            return takes_any(known).then(|| (Rc::clone(known), None));
        }
        let tree = sqltext::parse_tokens(sql, literals.tokens().to_vec()).ok().map(Box::new);
        let shape = Rc::new(Shape::of(literals, tree.as_deref()));
        if key.len() <= CACHED_STATEMENT_BYTES_MAX {
            if self.known.len() >= SHAPES_MAX {
                self.known.clear();
            }
            self.known.insert(key.into(), Rc::clone(&shape));
        }
        takes_any(&shape).then_some((shape, tree))
    }

    fn keeps_scale(&mut self, catalog: &Catalog) -> bool {
        *self.scales.get_or_insert_with(|| keeps_scale(catalog))
    }

    /// Whether a value must stay in the text.
    fn keeps(&mut self, catalog: &Catalog, value: &Constant<'_>) -> bool {
        // Beside bytes it may be their spelling, which a parameter of no type is not.
        let bytes = matches!(value, Constant::Text(text) if text.contains('\\'));
        bytes || self.kept.get_or_insert_with(|| constants_of(catalog)).contains(value)
    }
}

/// Whether a column of decimal numbers takes as many digits behind the point as it is given.
fn keeps_scale(catalog: &Catalog) -> bool {
    let mut columns = catalog.tables().flat_map(|table| &table.def().columns);
    columns
        .any(|column| column.kind == ColumnKind::Numeric && Modifier::of_declared(&column.declared).is_none())
}

/// The literals of all indexed expressions and predicates.
fn constants_of(catalog: &Catalog) -> Vec<Constant<'static>> {
    let columns = catalog.tables().flat_map(|table| &table.def().columns);
    let hidden = columns.filter(|column| column.hidden).filter_map(|column| column.generated.as_ref());
    hidden.flat_map(|generated| constants(&generated.sql)).collect()
}

/// What is known of the types of those that are free.
fn types_of(literals: &Literals<'_>, free: &[bool]) -> Vec<Option<SqlType>> {
    literals.values(free).map(type_of).collect()
}

/// The type that a value has by itself. That of a number with a fraction is of no parameter else: beside a decimal
/// number it is one, and beside a float it is a float.
fn type_of(value: &Constant<'_>) -> Option<SqlType> {
    match value.kind() {
        'i' => Some(SqlType::Int4),
        'l' => Some(SqlType::Int8),
        'r' => Some(SqlType::Float4),
        _ => None,
    }
}

fn value_of(value: &Constant<'_>) -> Value {
    match value {
        Constant::Integer(integer) => Value::Integer(*integer),
        Constant::Real(real) => Value::Real(*real),
        Constant::Text(text) => Value::Text(text.clone().into_owned()),
    }
}

/// Whether an error is one of what is written, not of the time, the memory or this program.
fn is_of_text(error: &SqlError) -> bool {
    ["0A", "22", "3F", "42", "54"].iter().any(|class| error.state.starts_with(class))
}

impl Executor {
    /// Runs a statement by the one that all texts have in common which differ from it in their literals; `None` where
    /// it must be taken as it stands.
    pub(super) fn run_opened(
        &mut self,
        session: &mut Session,
        text: &StatementText<'_>,
        out: &mut dyn RowSink,
    ) -> Result<Option<Done>, SqlError> {
        let Some((literals, key)) = text.literals().filter(|_| self.cache.keeps_any()) else {
            return Ok(None);
        };
        let Some((shape, tree)) = self.shapes.of(text.sql, literals, key) else { return Ok(None) };
        let Some(values) = self.taken(literals, &shape.free) else { return Ok(None) };
        let own;
        let key = if let Some(plan) = &shape.plan {
            plan
        } else {
            own = key_of(&literals.opened(&shape.free), &types_of(literals, &shape.free));
            own.as_str()
        };
        if self.cache.get(key).is_none() {
            let (opened, chosen) = (literals.opened(&shape.free), types_of(literals, &shape.free));
            match self.prepare_rows(&opened, &chosen, tree.as_deref()) {
                Ok(Some(prepared)) => self.cache.put(key, prepared),
                Err(error) if !is_of_text(&error) => return Err(error),
                _ => return Ok(None),
            }
        }
        let Self { core, cache, .. } = self;
        let Some(prepared) = cache.get(key) else { return Ok(None) };
        let Ok(converted) = prepared.converted(core, &values) else { return Ok(None) };
        let values = converted.as_deref().unwrap_or(&values);
        let run = core.run_with(session, prepared, values, |core, prepared| {
            prepared.plan_mut().run(core, Given::Parameters(values), out)
        });
        run.map(Some)
    }

    /// The values of the literals that are free; `None` where one of them must stay in the text.
    fn taken(&mut self, literals: &Literals<'_>, free: &[bool]) -> Option<Vec<Value>> {
        if literals.has_scale() && self.shapes.keeps_scale(&self.core.catalog) {
            return None;
        }
        let Self { core, shapes, .. } = self;
        let mut values = Vec::with_capacity(free.len().min(PARAMETERS_MAX));
        for value in literals.values(free) {
            if values.len() == PARAMETERS_MAX || shapes.keeps(&core.catalog, value) {
                return None;
            }
            values.push(value_of(value));
        }
        Some(values)
    }
}
