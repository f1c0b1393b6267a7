//! Queries of indexed expressions, and of the rows of partial indexes.
//!
//! The planner asks a virtual table about columns only. An indexed expression is a hidden column of its table, so it is
//! put in the place of the expression wherever the query filters, groups or sorts by it. The predicate of a partial
//! index is a hidden column that is true in the rows of the index: where a condition contains the predicate, that this
//! column is true is added to it. Both say the same of each row, so the answer does not change.

use std::ops::Range;

use pgcatalog::predicate::predicate_of;
use store::Table;
use store::definition::ColumnDef;

use super::Edit;
use super::piece::{COMPARISONS, Piece, bare, comparison, conjuncts, mirrored, outside, pieces};
use super::scope::{Query, Source, Text};
use crate::text::token::quoted_name;

/// Whether a table has what this module is for.
pub(super) fn concerns(table: &Table) -> bool {
    table.def().columns.iter().any(|column| column.hidden)
}

/// Adds what brings a query's indexes into play.
///
/// A hidden column is NULL where an outer join puts NULLs in the place of a row, which the expression need not be. So
/// what is asked of such a row stays as it is, but for the condition of its own join, which is asked of real rows.
pub(super) fn edit(text: &Text<'_>, query: &Query<'_>, edits: &mut Vec<Edit>) {
    if query.all_optional {
        return;
    }
    for (at, source) in query.sources.iter().enumerate() {
        let Some(table) = source.table.filter(|table| concerns(table)) else { continue };
        let reader = Reader { query, at, table };
        for (range, of) in &query.conditions {
            if !source.optional || *of == Some(at) {
                reader.expressions(text, range, edits);
                reader.predicates(text, range, edits);
            }
        }
        for range in query.orders.iter().filter(|_| !source.optional) {
            reader.expressions(text, range, edits);
        }
    }
}

/// One table of a query.
struct Reader<'r, 'c> {
    query: &'r Query<'c>,
    /// Its place among the query's sources.
    at: usize,
    table: &'r Table,
}

impl Reader<'_, '_> {
    /// The hidden columns of this table's indexes, with the text of what they hold.
    fn hidden(&self, predicates: bool) -> impl Iterator<Item = (&ColumnDef, &str)> {
        let def = self.table.def();
        def.indexes.iter().flat_map(move |index| {
            index.reads().filter(move |&at| (index.predicate == Some(at)) == predicates).filter_map(
                move |at| {
                    let column = &def.columns[at];
                    let sql = column.generated.as_ref().filter(|_| column.hidden)?.sql.as_str();
                    Some((column, if predicates { predicate_of(sql)? } else { sql }))
                },
            )
        })
    }

    fn column(&self, column: &ColumnDef) -> String {
        format!("{}.{}", quoted_name(&self.source().name), quoted_name(&column.name))
    }

    fn source(&self) -> &Source<'_> {
        &self.query.sources[self.at]
    }

    fn expressions(&self, text: &Text<'_>, range: &Range<usize>, edits: &mut Vec<Edit>) {
        let here = pieces(text, range.clone(), Some(self.query.at));
        for (column, sql) in self.hidden(false) {
            let known = Text::new(sql);
            let known = pieces(&known, 0..known.tokens.len(), None);
            let known = bare(&known);
            let exchanged = mirrored(known);
            for at in 0..here.len() {
                let spellings = [Some(known), exchanged.as_deref()];
                let length =
                    spellings.into_iter().flatten().find_map(|known| self.matches(known, &here[at..]));
                let Some(length) = length else { continue };
                if stands_alone(known, &here[..at], here.get(at + length)) {
                    let (from, to) = (here[at].from, here[at + length - 1].to);
                    edits.push(Edit::replace(from, to, self.column(column)));
                }
            }
        }
    }

    /// Adds to a condition that predicates hold which it implies.
    fn predicates(&self, text: &Text<'_>, range: &Range<usize>, edits: &mut Vec<Edit>) {
        let here = pieces(text, range.clone(), Some(self.query.at));
        let (Some(first), Some(last)) = (here.first(), here.last()) else { return };
        let given = conjuncts(&here);
        for (column, sql) in self.hidden(true) {
            let known = Text::new(sql);
            let known = pieces(&known, 0..known.tokens.len(), None);
            if conjuncts(&known)
                .into_iter()
                .all(|wanted| given.iter().any(|given| self.implies(given, wanted)))
            {
                edits.push(Edit::insert(first.from, "("));
                edits.push(Edit::insert(last.to, format!(") AND ({} = 1)", self.column(column))));
            }
        }
    }

    /// Whether a condition cannot hold unless the wanted one does.
    fn implies(&self, given: &[Piece<'_>], wanted: &[Piece<'_>]) -> bool {
        let is = |wanted: &[Piece<'_>]| self.matches(wanted, given) == Some(given.len());
        if is(wanted) || mirrored(wanted).is_some_and(|exchanged| is(&exchanged)) {
            return true;
        }
        let [operand @ .., is, not, null] = wanted else { return false };
        let not_null = is.is("IS") && not.is("NOT") && null.is("NULL");
        not_null && self.is_compared(given, bare(operand))
    }

    /// Whether a condition compares this operand, so that it is not true where the operand is NULL.
    fn is_compared(&self, given: &[Piece<'_>], operand: &[Piece<'_>]) -> bool {
        let Some(at) = comparison(given) else { return false };
        let by_sign = COMPARISONS.iter().any(|(sign, _)| given[at].is_sign(sign));
        let by_word = given[at].is_any(&["IN", "LIKE", "GLOB", "BETWEEN"]);
        let whole = |side: &[Piece<'_>]| {
            let side = bare(side);
            self.matches(operand, side) == Some(side.len())
        };
        ((by_sign || by_word) && whole(&given[..at])) || (by_sign && whole(&given[at + 1..]))
    }

    /// How many pieces from here on are the expression, over columns of this table.
    fn matches(&self, known: &[Piece<'_>], pieces: &[Piece<'_>]) -> Option<usize> {
        let mut at = 0;
        for (place, wanted) in known.iter().enumerate() {
            if self.is_column(wanted, known.get(place + 1)) {
                at += self.qualifier(pieces.get(at..)?, wanted)?;
            }
            if !wanted.same(pieces.get(at)?) {
                return None;
            }
            at += 1;
        }
        Some(at)
    }

    /// Whether a piece of an expression is a column of the table; a name before a parenthesis is a function.
    fn is_column(&self, piece: &Piece<'_>, next: Option<&Piece<'_>>) -> bool {
        piece.is_name()
            && !next.is_some_and(|next| next.is_sign("("))
            && self.table.def().column_index(&piece.name()).is_some()
    }

    /// How many pieces name this table before a column; `None` where the column is another's.
    fn qualifier(&self, pieces: &[Piece<'_>], column: &Piece<'_>) -> Option<usize> {
        let own = &self.source().name;
        let named = self.query.sources.iter().filter(|source| source.name.eq_ignore_ascii_case(own)).count();
        if let [name, point, ..] = pieces
            && point.is_sign(".")
        {
            return (named == 1 && name.name().eq_ignore_ascii_case(own)).then_some(2);
        }
        // A statement in which another source has a column of this name is refused: `rewrite::rewritten` proves that.
        let name = column.name();
        let other = self.query.sources.iter().enumerate().any(|(at, source)| {
            at != self.at && source.table.is_some_and(|table| table.def().column_index(&name).is_some())
        });
        (!other && !self.query.merged && named == 1).then_some(0)
    }
}

/// Whether an expression between these pieces is an operand of its own: what binds tighter than its own operators must
/// not reach into it.
fn stands_alone(known: &[Piece<'_>], before: &[Piece<'_>], after: Option<&Piece<'_>>) -> bool {
    const BEFORE: &[&str] = &["AND", "OR", "BY", "WHEN", "THEN", "ELSE", "CASE"];
    const AFTER: &[&str] = &["AND", "OR", "ASC", "DESC", "WHEN", "THEN", "ELSE", "END", "NULLS"];
    // Behind comparisons of every kind only an operand stands that binds tighter.
    const COMPARED: &[&str] = &["IN", "IS", "NOT", "LIKE", "GLOB", "BETWEEN", "ISNULL", "NOTNULL"];
    let loose = |piece: &Piece<'_>| piece.compares() || piece.is_any(&["AND", "OR"]);
    let operand = outside(known, loose).next().is_none();
    // The AND of a BETWEEN joins operands only.
    if !operand && before.iter().any(|piece| piece.is("BETWEEN")) {
        return false;
    }
    let signs: Vec<&str> = COMPARISONS.iter().map(|(sign, _)| *sign).collect();
    let before = before.last().is_none_or(|piece| {
        piece.is_any_sign(&["(", ","])
            || piece.is_any(BEFORE)
            || (operand && (piece.is_any_sign(&signs) || piece.is("BETWEEN")))
    });
    let after = after.is_none_or(|piece| {
        piece.is_any_sign(&[")", ","])
            || piece.is_any(AFTER)
            || (operand && (piece.is_any_sign(&signs) || piece.is_any(COMPARED)))
    });
    before && after
}
