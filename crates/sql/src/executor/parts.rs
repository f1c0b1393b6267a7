//! From the text of a statement whose common table expressions write to its parts.

use dialect::Chosen;
use store::definition::SqlType;

use super::Executor;
use crate::describe::ColumnDescription;
use crate::error::{SqlError, state};
use crate::prepared::Prepared;
use crate::text::kind::kind_of;
use crate::text::parts::{Common, Parts, Piece};
use crate::text::token::{Tokens, quoted_name};

impl Executor {
    /// Compiles each part as a statement of its own, in which a common table expression that writes is what it
    /// returned.
    pub(super) fn prepare_compound(&self, sql: &str, chosen: Chosen<'_>) -> Result<Prepared, SqlError> {
        let internal = || SqlError::new(state::INTERNAL, "the statement has no parts");
        let parts = Parts::of(sql).ok_or_else(internal)?;
        if !parts.counted {
            return Err(SqlError::not_supported("a parameter without a number in a WITH that writes")
                .with_hint("write $1, $2"));
        }
        let mut known = Known { recursive: parts.recursive, ..Known::default() };
        let (mut writes, mut values) = (Vec::new(), parts.parameters);
        for common in &parts.commons {
            if !common.writes {
                known.commons.push(common.whole.to_owned());
                continue;
            }
            refuse_nested(common)?;
            let prepared = self.prepare_part(sql, &known, common.body, chosen)?;
            match prepared.plan().columns() {
                Some(columns) => {
                    known.commons.push(stand_in(common, columns, values));
                    values += columns.len();
                }
                None => known.silent.push(common.name.to_owned()),
            }
            writes.push(prepared);
        }
        let main = self.prepare_part(sql, &known, parts.main, chosen)?;
        Ok(Prepared::compound(writes, main, parts.parameters))
    }

    fn prepare_part(
        &self,
        sql: &str,
        known: &Known,
        part: Piece<'_>,
        chosen: Chosen<'_>,
    ) -> Result<Prepared, SqlError> {
        let head = known.head();
        let text = format!("{head}{}", part.sql);
        let placed = |error| known.explained(placed(error, (&head, sql, part.start)));
        let kind = kind_of(&text).map_err(placed)?;
        self.prepare(kind, &text, chosen, None).map_err(placed)
    }
}

/// What stands before a part.
#[derive(Debug, Default)]
struct Known {
    recursive: bool,
    commons: Vec<String>,
    /// Names of those that return nothing.
    silent: Vec<String>,
}

impl Known {
    fn head(&self) -> String {
        match (&self.commons[..], self.recursive) {
            ([], _) => String::new(),
            (commons, false) => format!("WITH {} ", commons.join(", ")),
            (commons, true) => format!("WITH RECURSIVE {} ", commons.join(", ")),
        }
    }

    /// A name that is not found may be that of a part that returns nothing.
    fn explained(&self, error: SqlError) -> SqlError {
        let is_named = |name: &&String| error.message.contains(&format!("\"{}\"", name.trim_matches('"')));
        match self.silent.iter().find(is_named) {
            Some(name) if error.state == state::UNKNOWN_TABLE => {
                let name = name.trim_matches('"');
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                SqlError { position: error.position, ..SqlError::new(state::NOT_SUPPORTED, message) }
            }
            _ => error,
        }
    }
}

fn refuse_nested(common: &Common<'_>) -> Result<(), SqlError> {
    // PostgreSQL 15 has it as a statement only.
    if Tokens::new(common.body.sql).next().is_some_and(|first| first.is("MERGE")) {
        return Err(SqlError::new(state::NOT_SUPPORTED, "MERGE not supported in WITH query"));
    }
    if !common.nested {
        return Ok(());
    }
    Err(SqlError::not_supported("a WITH of its own in a common table expression that writes")
        .with_hint("write its queries before it, in the outer WITH"))
}

/// An error of a part, at its place in the user's text.
fn placed(error: SqlError, (head, sql, start): (&str, &str, usize)) -> SqlError {
    let (head, before) = (head.chars().count(), sql.get(..start).map_or(0, |before| before.chars().count()));
    let position = error.position.and_then(|position| position.checked_sub(head).filter(|at| *at > 0));
    SqlError { position: position.map(|position| position + before), ..error }
}

/// A common table expression of what another has returned: arrays in parameters behind so many.
fn stand_in(common: &Common<'_>, columns: &[ColumnDescription], parameters: usize) -> String {
    let list = |of: &dyn Fn(usize) -> String| (0..columns.len()).map(of).collect::<Vec<_>>().join(", ");
    let arrays = list(&|at| format!("${}::text[]", parameters + at + 1));
    let names = list(&|at| format!("column{}", at + 1));
    let items = list(&|at| {
        let column = &columns[at];
        format!("{} AS {}", typed(column.ty, at), quoted_name(&column.label))
    });
    let named = common.columns.unwrap_or_default();
    format!("{} {named} AS (SELECT {items} FROM unnest({arrays}) AS sqlcached_part ({names}))", common.name)
}

/// The text of a column as a value of its type. One of an enum type is a text to the other parts.
fn typed(ty: SqlType, at: usize) -> String {
    let column = format!("column{}", at + 1);
    let texts = [SqlType::Text, SqlType::Varchar, SqlType::Bpchar, SqlType::Unknown];
    if texts.contains(&ty) || ty.enumeration().is_some() {
        column
    } else {
        format!("CAST({column} AS {})", ty.sql_name())
    }
}
