//! Statements that were there before with other literals: they are compiled once for all.
//!
//! What a client writes into the text is taken out and handed over as parameters, where a statement can take it so. The
//! types that numbers have by their size are chosen for these, as drivers choose them; a text has the type of what it
//! stands beside. Whatever goes wrong before the first row, the statement as it stands reports better, with its place.

use std::collections::HashMap;
use std::rc::Rc;

use sqltext::Tree;
use sqltext::limits::PARAMETERS_MAX;
use sqltext::literals::{Constant, Literals, constants};
use store::Catalog;
use store::definition::SqlType;
use store::value::Value;

use super::describe::key_of;
use super::{Done, Executor, RowSink};
use crate::error::SqlError;
use crate::limits::{CACHED_STATEMENT_BYTES_MAX, SHAPES_MAX};
use crate::session::Session;
use crate::write::Given;

/// A text whose literals were taken out.
struct Opened<'s> {
    /// It with parameters.
    text: String,
    /// What is known of their types.
    chosen: Vec<Option<SqlType>>,
    values: Vec<Value>,
    /// The tree of the text as it was written, if it was read just now.
    tree: Option<Tree<'s>>,
}

/// Which literals are parameters, by the key of a text. Cleared when a definition changes.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: HashMap<Box<str>, Rc<[bool]>>,
    /// Literals of indexed expressions and of the conditions of partial indexes: a text that has one of them may mean
    /// such an index, which is found by what is written.
    kept: Option<Vec<Constant<'static>>>,
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Which literals of a text are parameters, and its tree if that was not known; `None` where none are.
    fn of<'s>(&mut self, sql: &'s str, literals: &Literals<'s>) -> Option<(Rc<[bool]>, Option<Tree<'s>>)> {
        let key = literals.key();
        if let Some(known) = self.known.get(key.as_str()) {
            return Some((Rc::clone(known), None)).filter(|(free, _)| free.contains(&true));
        }
        let tree = sqltext::parse_tokens(sql, literals.tokens().to_vec()).ok();
        let free: Rc<[bool]> = tree.as_ref().map(|tree| literals.free(tree)).unwrap_or_default().into();
        if key.len() <= CACHED_STATEMENT_BYTES_MAX {
            if self.known.len() >= SHAPES_MAX {
                self.known.clear();
            }
            self.known.insert(key.into(), Rc::clone(&free));
        }
        Some((free, tree)).filter(|(free, _)| free.contains(&true))
    }

    /// Whether a value must stay in the text.
    fn keeps(&mut self, catalog: &Catalog, value: &Constant<'_>) -> bool {
        // Beside bytes it may be their spelling, which a parameter of no type is not.
        let bytes = matches!(value, Constant::Text(text) if text.starts_with("\\x"));
        bytes || self.kept.get_or_insert_with(|| constants_of(catalog)).contains(value)
    }
}

/// The literals of all indexed expressions and predicates.
fn constants_of(catalog: &Catalog) -> Vec<Constant<'static>> {
    let columns = catalog.tables().flat_map(|table| &table.def().columns);
    let hidden = columns.filter(|column| column.hidden).filter_map(|column| column.generated.as_ref());
    hidden.flat_map(|generated| constants(&generated.sql)).collect()
}

/// The type that a value has by itself.
fn type_of(value: &Constant<'_>) -> Option<SqlType> {
    match value.kind() {
        'i' => Some(SqlType::Int4),
        'l' => Some(SqlType::Int8),
        'r' => Some(SqlType::Float8),
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
        sql: &str,
        out: &mut dyn RowSink,
    ) -> Result<Option<Done>, SqlError> {
        let Some(Opened { text, chosen, values, tree }) = self.opened(sql) else { return Ok(None) };
        let key = key_of(&text, &chosen);
        if self.cache.get(&key).is_none() {
            match self.prepare_rows(&text, &chosen, tree.as_ref()) {
                Ok(Some(prepared)) => self.cache.put(&key, prepared),
                Err(error) if !is_of_text(&error) => return Err(error),
                _ => return Ok(None),
            }
        }
        let Self { core, cache, .. } = self;
        let Some(prepared) = cache.get(&key) else { return Ok(None) };
        let Ok(converted) = prepared.converted(core, &values) else { return Ok(None) };
        let values = converted.as_deref().unwrap_or(&values);
        let run = core.run_with(session, prepared, |core, prepared| {
            prepared.plan_mut().run(core, Given::Parameters(values), out)
        });
        run.map(Some)
    }

    /// The text with parameters; `None` where it has none.
    fn opened<'s>(&mut self, sql: &'s str) -> Option<Opened<'s>> {
        let literals = Literals::of(sql).filter(|_| self.cache.keeps_any())?;
        let (free, tree) = self.shapes.of(sql, &literals)?;
        let (text, values) = literals.opened(&free);
        let Self { core, shapes, .. } = self;
        if values.len() > PARAMETERS_MAX || values.iter().any(|value| shapes.keeps(&core.catalog, value)) {
            return None;
        }
        let chosen = values.iter().map(|value| type_of(value)).collect();
        Some(Opened { text, chosen, values: values.into_iter().map(value_of).collect(), tree })
    }
}
