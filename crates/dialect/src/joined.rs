//! What `*` stands for where tables are joined by `USING` or `NATURAL`: a column that is joined is there once, and
//! such columns come first, as in PostgreSQL. SQLite has them where the left table has them.

use pgcatalog::function::order;
use sqltext::ast::{JoinConstraint, JoinOperator, ObjectName, TableFactor};
use sqltext::error::{SqlError, state};
use sqltext::token::quoted_name;

use super::scope::{Relation, StarColumn};
use super::{Step, Stop, Translator, types};

impl Translator<'_, '_> {
    /// The columns of an entry of a `FROM` that was just taken; `first`: the number of its first table.
    pub(super) fn columns_of_entry(&mut self, factor: &TableFactor, first: usize) -> Option<Vec<StarColumn>> {
        let nested = self.joined.take();
        match factor {
            TableFactor::NestedJoin { alias, .. } => nested.filter(|_| alias.is_none()),
            _ => self.columns_of_relation(self.scopes.innermost()?.relations.get(first)?),
        }
    }

    fn columns_of_relation(&self, relation: &Relation) -> Option<Vec<StarColumn>> {
        let column = |name: &str, own: &str| {
            let text = if relation.name.is_empty() {
                quoted_name(own)
            } else {
                format!("{}.{}", quoted_name(&relation.name), quoted_name(own))
            };
            StarColumn { name: name.to_owned(), text, ty: self.type_in(relation, name) }
        };
        if relation.renamed.is_empty() {
            let columns = self.columns_in(relation).filter(|columns| !columns.is_empty())?;
            return Some(columns.iter().map(|(name, _)| column(name, name)).collect());
        }
        Some(relation.renamed.iter().map(|(name, own)| column(name, own)).collect())
    }

    /// Refuses columns that are joined by their name and are of types that nothing compares. Of two kinds of moments,
    /// and of types with several spellings, SQLite would compare the texts.
    pub(super) fn check_joined(
        &self,
        left: Option<&[StarColumn]>,
        right: Option<&[StarColumn]>,
        operator: &JoinOperator,
    ) -> Step<()> {
        let (Some(left), Some(right)) = (left, right) else { return Ok(()) };
        let of = |columns: &[StarColumn], name: &str| columns.iter().find(|column| is(column, name))?.ty;
        for name in names_joined(left, right, operator).unwrap_or_default() {
            let (Some(ours), Some(theirs)) = (of(left, &name), of(right, &name)) else { continue };
            let mismatch = types::have_no_type(ours, theirs).then_some((ours, theirs));
            self.refuse_mismatch("JOIN/USING", mismatch, self.peek())?;
            let widens = types::one_widens(Some(ours), Some(theirs));
            if widens || [ours, theirs].into_iter().any(order::has_spellings) {
                let (one, other) = (ours.sql_name(), theirs.sql_name());
                let message = format!("JOIN ... USING columns of {one} and {other} is not supported");
                let error = SqlError::new(state::NOT_SUPPORTED, message);
                let hint = format!("compare them with ON, as in ON a.{name} = b.{name}");
                return Err(Stop::Error(error.with_hint(hint)));
            }
        }
        Ok(())
    }

    /// Whether `*` is next and what it stands for is known.
    pub(super) fn next_is_star_of_joined(&self) -> bool {
        let scope = self.scopes.innermost();
        self.next_is_sign(0, "*") && scope.is_some_and(|scope| scope.merged && scope.star.is_some())
    }
}

/// The columns of two sides that are joined; `None`: they are not known.
pub(super) fn joined(
    left: Option<Vec<StarColumn>>,
    right: Option<Vec<StarColumn>>,
    operator: &JoinOperator,
) -> Option<Vec<StarColumn>> {
    let (mut left, mut right) = (left?, right?);
    let names = names_joined(&left, &right, operator)?;
    let mut all = Vec::with_capacity(left.len() + right.len());
    for name in names {
        let (of_left, of_right) = (taken(&mut left, &name)?, taken(&mut right, &name)?);
        all.push(match operator {
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => {
                StarColumn { name: of_left.name, ..of_right }
            }
            JoinOperator::FullOuter(_) => {
                let text = format!("coalesce({}, {})", of_left.text, of_right.text);
                StarColumn { text, ty: of_left.ty.filter(|ty| of_right.ty == Some(*ty)), ..of_left }
            }
            _ => of_left,
        });
    }
    all.append(&mut left);
    all.append(&mut right);
    Some(all)
}

/// The names by which two sides are joined.
fn names_joined(left: &[StarColumn], right: &[StarColumn], operator: &JoinOperator) -> Option<Vec<String>> {
    let (JoinOperator::Join(on)
    | JoinOperator::Inner(on)
    | JoinOperator::Left(on)
    | JoinOperator::LeftOuter(on)
    | JoinOperator::Right(on)
    | JoinOperator::RightOuter(on)
    | JoinOperator::FullOuter(on)
    | JoinOperator::CrossJoin(on)) = operator
    else {
        return None;
    };
    match on {
        JoinConstraint::Using(names) => names.iter().map(name_of).collect(),
        JoinConstraint::Natural => {
            let both = |own: &&StarColumn| right.iter().any(|other| is(other, &own.name));
            Some(left.iter().filter(both).map(|own| own.name.clone()).collect())
        }
        JoinConstraint::On(_) | JoinConstraint::None => Some(Vec::new()),
    }
}

fn name_of(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(|name| name.value.clone())
}

fn is(column: &StarColumn, name: &str) -> bool {
    column.name.eq_ignore_ascii_case(name)
}

/// The only column of this name.
fn taken(columns: &mut Vec<StarColumn>, name: &str) -> Option<StarColumn> {
    let at = columns.iter().position(|column| is(column, name))?;
    let column = columns.remove(at);
    columns.iter().all(|other| !is(other, name)).then_some(column)
}
