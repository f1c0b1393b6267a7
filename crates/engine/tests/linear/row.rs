//! One row as a sequential object: what each command makes of it, and how it is answered.

use super::{Answer, Op, Seen, Ttl};

/// What can be seen of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    value: Vec<u8>,
    flags: u32,
    ttl: Ttl,
    /// The column that memcached does not show.
    n: i64,
    stale: bool,
    leased: bool,
    /// The CAS value, once somebody has seen it.
    cas: Option<u64>,
}

/// The row, and the greatest CAS value that was seen of its versions: none is given out twice, and later ones are
/// greater.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    row: Option<Row>,
    cas_seen: u64,
}

fn text(value: u64) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The number that memcached reads in a value: what stands before its first space.
fn leading_number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.split(' ').next()?.parse().ok()
}

impl Row {
    /// As one that is stored whole.
    fn new(value: u64, flags: u32, exptime: u64) -> Self {
        let (value, ttl) = (text(value), Ttl::of(exptime));
        Self { value, flags, ttl, n: 0, stale: false, leased: false, cas: None }
    }

    /// Another version, which is fresh.
    fn rewrite(&mut self) {
        (self.stale, self.leased, self.cas) = (false, false, None);
    }

    /// What a command makes of a row that is there. Those that read leave it as it is.
    fn change(&mut self, op: &Op) -> Answer {
        match op {
            Op::Append(byte) => {
                self.value.push(*byte);
                self.rewrite();
            }
            Op::Prepend(byte) => {
                self.value.insert(0, *byte);
                self.rewrite();
            }
            Op::Incr(_) | Op::Decr(_) | Op::MetaIncr { .. } => return self.calculate(op),
            Op::GetAndTouch(exptime) | Op::Touch(exptime) => self.ttl = Ttl::of(*exptime),
            Op::MetaGet | Op::Near => self.leased |= self.stale,
            Op::MetaGetAndTouch(exptime) => {
                self.leased |= self.stale;
                self.ttl = Ttl::of(*exptime);
            }
            Op::Invalidate | Op::UpdateStale => {
                self.rewrite();
                self.stale = true;
            }
            Op::Upsert { value } | Op::UpdateValue(value) => {
                self.value = text(*value);
                self.rewrite();
            }
            Op::AddToN(by) => {
                self.n += by;
                self.rewrite();
            }
            Op::UpdateTtl(exptime) => (self.ttl, self.cas) = (Ttl::of(*exptime), None),
            Op::Claim if self.leased => return Answer::Not,
            Op::Claim => self.leased = true,
            _ => {}
        }
        Answer::Done
    }

    /// A number stays what it was: stale, or somebody's to refresh.
    fn calculate(&mut self, op: &Op) -> Answer {
        let Some(old) = leading_number(&self.value) else { return Answer::NoNumber };
        let new = match op {
            Op::Decr(delta) => old.saturating_sub(*delta),
            Op::Incr(delta) | Op::MetaIncr { delta, .. } => old.wrapping_add(*delta),
            _ => old,
        };
        if let Op::MetaIncr { exptime, .. } = op {
            self.ttl = Ttl::of(*exptime);
        }
        let width = self.value.len();
        self.value = format!("{new:<width$}").into_bytes();
        self.cas = None;
        Answer::Number(new)
    }

    /// Whether what was seen, but for the CAS value, is what is there.
    fn shows(&self, seen: &Seen) -> bool {
        seen.value.as_ref().is_none_or(|value| *value == self.value)
            && seen.flags.is_none_or(|flags| flags == self.flags)
            && seen.ttl.is_none_or(|ttl| ttl == self.ttl)
            && seen.n.is_none_or(|n| n == self.n)
            && seen.stale.is_none_or(|stale| stale == self.stale)
            && seen.leased.is_none_or(|leased| leased == self.leased)
            && seen.won.is_none_or(|won| won == (self.stale && !self.leased))
    }
}

impl State {
    /// The state after an operation; `None`: it cannot have been answered so.
    pub(crate) fn after(&self, op: &Op, answer: &Answer) -> Option<Self> {
        let (mut next, expected) = self.apply(op);
        let fits = match answer {
            Answer::Unknown => true,
            Answer::Row(seen) => expected == Answer::Done && next.bind(seen, self.row.as_ref(), op),
            answer => *answer == expected,
        };
        fits.then_some(next)
    }

    /// What an operation does, and how it is answered but for what it shows.
    fn apply(&self, op: &Op) -> (Self, Answer) {
        let mut next = self.clone();
        let there = self.row.is_some();
        let (applies, row) = match *op {
            Op::Set { value, flags, exptime } => (true, Some(Row::new(value, flags, exptime))),
            Op::Add { value, flags, exptime } => (!there, Some(Row::new(value, flags, exptime))),
            Op::Replace { value, flags, exptime } => (there, Some(Row::new(value, flags, exptime))),
            Op::Cas { cas, value, flags, exptime } => {
                if self.row.as_ref().is_some_and(|row| row.cas != Some(cas)) {
                    return (next, Answer::Exists);
                }
                (there, Some(Row::new(value, flags, exptime)))
            }
            Op::Insert { value, n } => (!there, Some(Row { n, ..Row::new(value, 0, 0) })),
            Op::Upsert { value } if !there => (true, Some(Row::new(value, 0, 0))),
            Op::Delete | Op::SqlDelete => (there, None),
            Op::DeleteSoon(seconds) => (self.row.as_ref().is_some_and(|row| row.ttl.is_below(seconds)), None),
            _ => {
                let answer = next.row.as_mut().map_or(Answer::Not, |row| row.change(op));
                return (next, answer);
            }
        };
        if applies {
            next.row = row;
        }
        (next, if applies { Answer::Done } else { Answer::Not })
    }

    /// Whether what was seen is what is there. A CAS value that is seen first belongs to the version from then on.
    fn bind(&mut self, seen: &Seen, before: Option<&Row>, op: &Op) -> bool {
        let Self { row: Some(row), cas_seen } = self else { return false };
        // The row as it was before the lease was taken.
        let shown = match op {
            Op::MetaGet | Op::Near | Op::MetaGetAndTouch(_) => before.unwrap_or(row),
            _ => &*row,
        };
        match (seen.cas, row.cas) {
            _ if !shown.shows(seen) => false,
            (None, _) => true,
            (Some(cas), Some(known)) => cas == known,
            (Some(cas), None) => {
                let is_new = cas > *cas_seen;
                (row.cas, *cas_seen) = (Some(cas), cas.max(*cas_seen));
                is_new
            }
        }
    }
}
