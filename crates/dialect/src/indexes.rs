//! What an index serves that SQLite cannot ask a virtual table, in words that it can.
//!
//! The planner asks a virtual table about columns only. An indexed expression is a hidden column of its table, so the
//! column is written in the place of the expression wherever the query filters, groups or sorts by it. The predicate of
//! a partial index is a hidden column that is true in the rows of the index: where a condition contains the predicate,
//! that this column is true is added to it. Both say the same of each row, so the answer does not change.
//!
//! `INDEXED BY` names an index that SQLite looks for among its own. It becomes an argument of the table, as in `t(-3)`,
//! which the planner's question to the table carries: the table then answers with this index or not at all.

use pgcatalog::predicate::predicate_of;
use sqltext::error::{SqlError, state};
use sqltext::token::{Token, Tokens, quoted_name};
use store::Table;
use store::definition::{ColumnKind, SqlType};
use store::scalar::zone;

use super::names::Found;
use super::out::{Form, Out};
use super::scope::{Relation, Scope, Source};
use super::spelling::{Word, compared, conjuncts, mirrored, not_null, words};
use super::{Item, Step, Translator};
use crate::lowered::{Indexed, Node};

/// What a table may be read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// Anything but an index: the primary key stays, as in SQLite the row's number does.
    NoIndex,
    /// The index at this position; behind the last one, the primary key.
    Index(usize),
}

impl Forced {
    /// What a table's argument says; those from 0 on are the executor's lists.
    pub fn of_argument(argument: i64) -> Option<Self> {
        match argument {
            0.. => None,
            -1 => Some(Self::NoIndex),
            below => usize::try_from(below.checked_add(2)?.checked_neg()?).ok().map(Self::Index),
        }
    }

    /// The argument that says it.
    pub fn argument(self) -> i64 {
        match self {
            Self::NoIndex => -1,
            Self::Index(at) => -2 - i64::try_from(at).unwrap_or(i64::MAX >> 1),
        }
    }

    /// What a clause asks for.
    pub fn of_clause(table: &Table, clause: &Indexed) -> Result<Self, SqlError> {
        let Indexed::By(name) = clause else { return Ok(Self::NoIndex) };
        let indexes = table.indexes();
        if let Some(at) = indexes.iter().position(|index| index.name().eq_ignore_ascii_case(name)) {
            return Ok(Self::Index(at));
        }
        let is_key = table.def().is_key_name(name);
        if is_key && !table.def().has_row_id() {
            return Ok(Self::Index(indexes.len()));
        }
        let message = format!("table \"{}\" has no index \"{name}\"", table.name());
        Err(SqlError::new(state::UNKNOWN_OBJECT, message))
    }
}

/// A hidden column of a table that the clause under way may use.
#[derive(Debug)]
pub(super) struct Hidden {
    /// What the query calls the table; `None`: it calls another one so, too.
    table: Option<String>,
    /// The column as an expression.
    column: String,
    /// Its own name.
    name: String,
    /// What it holds.
    wanted: Vec<Word>,
    /// The same with the sides of a comparison exchanged.
    exchanged: Option<Vec<Word>>,
    /// It says whether the row is in a partial index.
    predicate: bool,
    /// The column that says where it is NULL.
    pub(super) absence: Option<String>,
}

impl Hidden {
    /// Whether an expression is this one, over columns of the table.
    fn is(&self, wanted: &[Word], here: &[Word]) -> bool {
        let mut rest = here;
        for word in wanted {
            if let Some(clear) = word.column {
                match self.behind_qualifier(rest, clear) {
                    Some(column) => rest = column,
                    None => return false,
                }
            }
            match rest.split_first() {
                Some((first, behind)) if word.same(first) => rest = behind,
                _ => return false,
            }
        }
        rest.is_empty()
    }

    /// The words from a column's own name on; `None` where it may be another table's.
    fn behind_qualifier<'w>(&self, here: &'w [Word], clear: bool) -> Option<&'w [Word]> {
        match here {
            [name, point, behind @ ..] if point.is_sign(".") => {
                let own = self.table.as_deref()?;
                name.name().is_some_and(|name| name.eq_ignore_ascii_case(own)).then_some(behind)
            }
            _ => clear.then_some(here),
        }
    }

    /// Whether an expression is what the column holds.
    fn holds(&self, here: &[Word]) -> bool {
        let exchanged = || self.exchanged.as_ref().is_some_and(|wanted| self.is(wanted, here));
        !self.predicate && (self.is(&self.wanted, here) || exchanged())
    }

    /// Whether a row for which all these conditions hold is in the partial index.
    fn follows_from(&self, given: &[&[Word]]) -> bool {
        let follows = |wanted: &[Word]| {
            let exchanged = mirrored(wanted);
            let operand = not_null(wanted);
            given.iter().any(|given| {
                self.is(wanted, given)
                    || exchanged.as_ref().is_some_and(|wanted| self.is(wanted, given))
                    || operand.is_some_and(|operand| compared(given).any(|side| self.is(operand, side)))
            })
        };
        self.predicate && conjuncts(&self.wanted).into_iter().all(follows)
    }
}

impl<'a> Translator<'a, '_> {
    /// Begins a clause that filters, groups or sorts the rows of the query under way. `joined`: it is the condition of
    /// the relation with this number, which is asked of real rows.
    ///
    /// A hidden column is NULL where an outer join puts NULLs in the place of a row, which the expression need not be.
    /// So what is asked of such a row stays as it is, but for the condition of its own join.
    pub(super) fn begin_clause(&mut self, joined: Option<usize>) {
        self.hidden.clear();
        let Some(scope) = self.scopes.innermost().filter(|scope| self.by_index && !scope.all_optional) else {
            return;
        };
        let mut hidden = Vec::new();
        for (at, relation) in scope.relations.iter().enumerate() {
            if let Source::Named(table) = &relation.source
                && (!relation.optional || joined == Some(at))
                && let Some(table) = self.names.table(table)
                && table.def().columns.iter().any(|column| column.hidden)
            {
                self.add_hidden(scope, relation, table, &mut hidden);
            }
        }
        self.hidden = hidden;
    }

    pub(super) fn end_clause(&mut self) {
        self.hidden.clear();
    }

    /// The hidden columns of a table's indexes.
    fn add_hidden(&self, scope: &Scope, relation: &Relation, table: &Table, found: &mut Vec<Hidden>) {
        let def = table.def();
        let called = &relation.name;
        let once =
            scope.relations.iter().filter(|other| other.name.eq_ignore_ascii_case(called)).count() == 1;
        for index in &def.indexes {
            for at in index.reads() {
                let column = &def.columns[at];
                let Some(sql) = column.generated.as_ref().filter(|_| column.hidden).map(|made| &made.sql)
                else {
                    continue;
                };
                // It was computed in UTC.
                if sql.contains("zoned_") && zone::current().is_some() {
                    continue;
                }
                let predicate = index.predicate == Some(at);
                let Some(sql) = (if predicate { predicate_of(sql) } else { Some(sql.as_str()) }) else {
                    continue;
                };
                let mut wanted = words(Tokens::new(sql));
                self.find_columns(scope, relation, table, &mut wanted);
                found.push(Hidden {
                    table: once.then(|| called.clone()),
                    column: format!("{}.{}", quoted_name(called), quoted_name(&column.name)),
                    name: column.name.clone(),
                    exchanged: mirrored(&wanted),
                    wanted,
                    predicate,
                    absence: self.absence_in(relation, at),
                });
            }
        }
    }

    /// Says which of these words are columns of a table; a name before a parenthesis is a function.
    fn find_columns(&self, scope: &Scope, relation: &Relation, table: &Table, words: &mut [Word]) {
        for at in 0..words.len() {
            let calls = words.get(at + 1).is_some_and(|next| next.is_sign("("));
            if let Some(name) = words[at].name()
                && !calls
                && table.def().column_index(name).is_some()
            {
                let other = |other: &Relation| {
                    !std::ptr::eq(other, relation) && !matches!(self.column_in(other, name), Found::No)
                };
                let clear = !scope.merged && !scope.relations.iter().any(other);
                words[at].column = Some(clear);
            }
        }
    }

    /// An expression of a clause: the column of an index in the place of it, where one holds it.
    pub(super) fn by_index(&self, out: Out<'a>) -> Out<'a> {
        let longest = self.hidden.iter().map(|hidden| hidden.wanted.len()).max();
        // Each column may have a qualifier, and there may be some parentheses.
        let Some(_) = longest.filter(|longest| out.len() <= 4 * longest) else { return out };
        let words = out.words();
        match self.hidden.iter().find(|hidden| hidden.holds(&words)) {
            // An array in a column may have an index over its elements.
            Some(hidden) if out.ty.is_some_and(SqlType::is_array) => {
                let name = hidden.name.clone();
                out.instead(&hidden.column).meaning(Node::Column { table: None, name })
            }
            Some(hidden) => out.instead(&hidden.column),
            None => out,
        }
    }

    /// The hidden column that stands for an expression.
    pub(super) fn hidden_of(&self, out: &Out<'_>) -> Option<&Hidden> {
        self.hidden.first()?;
        let text = out.text();
        self.hidden.iter().find(|hidden| hidden.column == text.trim())
    }

    /// A condition, with the predicates that it implies of partial indexes.
    pub(super) fn with_predicates(&self, condition: Out<'a>) -> Out<'a> {
        if !self.hidden.iter().any(|hidden| hidden.predicate) {
            return condition;
        }
        let words = condition.words();
        let given = conjuncts(&words);
        let mut out = condition;
        for hidden in self.hidden.iter().filter(|hidden| hidden.follows_from(&given)) {
            out = out.narrowed(&hidden.column);
        }
        out
    }

    /// Writes a table's name with the argument that says by which index it is read; the clause was taken. False: the
    /// clause is SQLite's to judge.
    pub(super) fn forced(&self, table: &Source, clause: &Indexed, place: Token<'a>) -> Step<Option<Forced>> {
        let Source::Named(name) = table else { return Ok(None) };
        if !self.by_index {
            return Ok(None);
        }
        if let Some(table) = self.names.table(name) {
            let forced = Forced::of_clause(table, clause);
            return forced.map(Some).map_err(|error| error.at(self.sql, place.start).into());
        }
        match clause {
            Indexed::By(index) if self.names.is_view(name) => {
                let message = format!("a view has no index \"{index}\"");
                Err(self.error_at(Some(place), state::UNKNOWN_OBJECT, message))
            }
            _ => Ok(None),
        }
    }
}

/// Whether `(a, b) IN (SELECT ...)` may miss rows.
///
/// SQLite offers a virtual table each part of the row as an equality, and compares what comes back with a value that
/// has lost the type of its column: text that reads as a number then misses that number. Where that may be, the
/// condition is kept from the planner: a unary plus stands before it, and the query's rows are looked up one by one.
pub(super) fn may_miss(row: &Out<'_>, columns: Option<&[Item]>) -> bool {
    let Form::List(parts) = &*row.form else { return false };
    if parts.len() < 2 {
        return false;
    }
    let mut texts = parts.iter().enumerate().filter(|(_, part)| may_be_text(part));
    match columns {
        Some(columns) if columns.len() == parts.len() && columns.iter().all(|column| !column.star) => {
            texts.any(|(at, _)| columns[at].counts)
        }
        _ => texts.next().is_some(),
    }
}

/// Only of a column it is known that it holds nothing but numbers or bytes.
fn may_be_text(part: &Out<'_>) -> bool {
    let kind = part.ty.filter(|_| matches!(part.node(), Some(Node::Column { .. }))).map(SqlType::kind);
    kind.is_none_or(|kind| matches!(kind, ColumnKind::Text | ColumnKind::Any))
}

/// Whether what a query gives may have the type of a column of numbers.
pub(super) fn counts(out: &Out<'_>) -> bool {
    let plain = || matches!(*out.form, Form::Parameter(_)) || out.is_literal();
    let number = |ty: SqlType| !matches!(ty.kind(), ColumnKind::Text | ColumnKind::Blob);
    out.ty.is_none_or(number) && !plain()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_what_is_forced() {
        for forced in [Forced::NoIndex, Forced::Index(0), Forced::Index(63)] {
            assert_eq!(Forced::of_argument(forced.argument()), Some(forced));
        }
        assert_eq!(Forced::of_argument(0), None);
        assert_eq!(Forced::of_argument(1), None);
        assert_eq!(Forced::of_argument(i64::MIN), Some(Forced::Index(9_223_372_036_854_775_806)));
    }
}
