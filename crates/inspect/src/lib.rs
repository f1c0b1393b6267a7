//! On what in a PostgreSQL behind the cache the answer of a SELECT depends.
//!
//! [`inspect`] asks the source what it makes of a statement, and reads the tree: which tables, through which
//! views, by
//! which functions. An answer may be kept if it is the same as long as these tables and the settings of the
//! session are.
//! [`Dependences::tags`] names the tags of one answer, which the source's stream of changes drops. Where the
//! statement says `WHERE id = $1`, only changes of rows with this `id` do.
//!
//! All is asked through a [`Catalogue`], which has the connection; nothing here does I/O. What is not known is
//! refused, with a [`Refusal`] that says why and what would help.
//!
//! - [`may_be_read`] judges a text by itself, in `statement` and `words`.
//! - `trees` has the source parse the statement, and reads the trees of its views and of policies; `node` reads
//!   their text.
//! - `uses` collects what the nodes use; `functions`, `types` and `relations` ask the catalogue about it.
//! - `guard` finds the conditions by which rows of a table do not count.
//! - `tags` and `canonical` write the values of an answer's parameters as the stream tells them.
#![forbid(unsafe_code)]

mod canonical;
mod functions;
mod guard;
mod node;
mod relations;
mod statement;
mod tags;
mod trees;
mod types;
mod uses;
mod verdict;
mod words;

pub use canonical::{Bound, told};
pub use relations::literal;
pub use statement::may_be_read;
pub use tags::TAGS_MAX;
pub use verdict::{
    Catalogue, Dependences, Failure, Guard, GuardKind, Occurrence, Operand, Refusal, Relation, Verdict,
};

use uses::Uses;
use verdict::Stop;

/// Asks the source on what the answer of a statement depends. `given`: the types of parameters that the client
/// named, 0 for one that it left open; `publication`: what the stream tells.
pub fn inspect(
    source: &mut dyn Catalogue,
    sql: &str,
    given: &[u32],
    publication: &str,
) -> Result<Verdict, Failure> {
    if let Err(refusal) = may_be_read(sql) {
        return Ok(Verdict::Refused(refusal));
    }
    // The source takes one statement here: what follows puts the text into another one.
    let parameter_types = source.parameter_types(sql, given)?;
    source.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")?;
    let found = dependences(source, sql, parameter_types, publication);
    source.query("ROLLBACK")?;
    match found {
        Ok(dependences) => Ok(Verdict::Kept(dependences)),
        Err(Stop::Refused(refusal)) => Ok(Verdict::Refused(refusal)),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

fn dependences(
    source: &mut dyn Catalogue,
    sql: &str,
    parameter_types: Vec<u32>,
    publication: &str,
) -> Result<Dependences, Stop> {
    let mut trees = trees::of_statement(source, sql, &parameter_types)?;
    let mut uses = Uses::default();
    uses.add(&trees.statement)?;
    trees::add_relations(source, &mut trees, &mut uses)?;
    let tables = relations::load(source, &uses.relations, publication)?;
    let types = types::load(source, &uses)?;
    functions::check(source, &uses)?;
    let occurrences = guard::occurrences(&trees, &types, &tables)?;
    Ok(Dependences {
        parameter_types,
        relations: tables.into_values().map(|table| table.relation).collect(),
        occurrences,
        settings: uses.settings.into_iter().collect(),
        is_utf8: trees.is_utf8,
    })
}
