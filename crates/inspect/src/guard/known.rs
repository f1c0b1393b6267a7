//! From facts to what is known of each column: `a.id = $1 AND a.id = b.a_id` says that `b.a_id = $1`.

use super::facts::{Column, Fact, Known, Values};

/// What is known by the facts and beforehand, in a query within others of which this much is known, the innermost
/// last.
pub(super) fn conclude(facts: &[Fact], before: &Known, around: &[Known]) -> Known {
    let mut known = before.clone();
    for fact in facts {
        if let Fact::Is(column, values) = fact {
            learn(&mut known, *column, values);
        }
    }
    // Each round but the last finds one column more.
    loop {
        let count = known.len();
        for fact in facts {
            let Fact::Same(one, other) = fact else { continue };
            if let Some(values) = of(&known, around, *one) {
                learn(&mut known, *other, &values);
            }
            if let Some(values) = of(&known, around, *other) {
                learn(&mut known, *one, &values);
            }
        }
        if known.len() == count {
            return known;
        }
    }
}

fn of(known: &Known, around: &[Known], column: Column) -> Option<Values> {
    let place = (column.table, column.number);
    match column.up {
        0 => known.get(&place).cloned(),
        up => around.get(around.len().checked_sub(up)?)?.get(&place).cloned(),
    }
}

/// Of two things that are known of one column, the one with fewer values stays.
fn learn(known: &mut Known, column: Column, values: &Values) {
    if column.up > 0 {
        return;
    }
    let entry = known.entry((column.table, column.number)).or_insert_with(|| values.clone());
    if values.operands.len() < entry.operands.len() {
        entry.clone_from(values);
    }
}

/// What two say together.
pub(super) fn both(one: &Known, other: &Known) -> Known {
    let mut all = one.clone();
    all.extend(other.iter().map(|(place, values)| (*place, values.clone())));
    all
}
