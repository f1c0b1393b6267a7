//! The checker: samples of rows here are compared with the source's, so that a fault of the stream, of a fill or of
//! this program is seen before users see it.
//!
//! A sample is read at the source, and compared when the stream has passed the place of the log at which it was read.
//! What changes meanwhile differs without a fault. So a row is asked for again, and only counts if the source has the
//! same values as before, and those here still differ.

use std::collections::HashMap;

use engine::Value;
use store::{RowBuf, TableId};

use crate::apply::Applier;
use crate::change::{Field, Key};
use crate::error::Error;
use crate::limits::{CHECKED_ROWS_MAX, SAMPLE_GROUPS, SAMPLE_ROWS};
use crate::mirror::names_of;
use crate::pgoutput::{literal, quoted};
use crate::plan::{Plan, Target};
use crate::wire::Connection;

/// A row as the source has it.
type Theirs = Box<[Field]>;

/// What was found so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) checked: u64,
    pub(crate) differing: u64,
}

/// Rows that were read at the source.
struct Sample {
    table: TableId,
    /// All that was committed before this place of the log is seen.
    point: u64,
    /// For each key the row, unless there is none.
    rows: HashMap<Key, Option<Theirs>>,
}

/// Compares.
pub(crate) struct Checker {
    /// Rows in a round.
    rate: usize,
    round: usize,
    sample: Option<Sample>,
    /// Rows that differed.
    suspects: HashMap<(TableId, Key), Suspect>,
}

/// A row that differed when it was looked at last.
struct Suspect {
    /// What the source had.
    theirs: Option<Theirs>,
    counted: bool,
}

impl Checker {
    /// Of so many rows in a round.
    pub(crate) fn new(rate: usize) -> Self {
        Self { rate: rate.min(CHECKED_ROWS_MAX), round: 0, sample: None, suspects: HashMap::new() }
    }

    /// A round: compares what was read in the one before, if the stream is so far, and reads another sample.
    pub(crate) fn round(
        &mut self,
        plan: &Plan,
        (applier, source): (&mut Applier, &mut Connection),
        applied: u64,
    ) -> Result<Found, Error> {
        let mut found = Found::default();
        if self.rate == 0 || self.sample.as_ref().is_some_and(|sample| sample.point > applied) {
            return Ok(found);
        }
        if let Some(sample) = self.sample.take()
            && let Some(target) = plan.targets.iter().find(|own| own.table.id() == sample.table)
            && is_checked(target)
        {
            found = self.compare(target, applier, sample);
        }
        let checked: Vec<&Target> = plan.targets.iter().filter(|target| is_checked(target)).collect();
        self.round = self.round.wrapping_add(1);
        if let Some(target) = checked.get(self.round % checked.len().max(1)) {
            let keys = self.keys(target, applier);
            self.sample = self.read(target, source, &keys)?;
        }
        Ok(found)
    }

    /// Keys of rows that are here: first those that differed.
    fn keys(&self, target: &Target, applier: &Applier) -> Vec<Key> {
        let table = target.table.id();
        let suspects = self.suspects.keys().filter(|(of, _)| *of == table).map(|(_, key)| key.clone());
        let mut keys: Vec<Key> = suspects.take(self.rate.div_ceil(2)).collect();
        for groups in SAMPLE_GROUPS {
            if keys.len() < self.rate {
                let mut found = sampled(target, applier, groups);
                fastrand::shuffle(&mut found);
                keys.extend(found.into_iter().take(self.rate - keys.len()));
            }
        }
        keys
    }

    /// Reads these rows at the source. Of a mirror every other round reads rows that the source chooses, which may be
    /// missing here.
    fn read(&self, target: &Target, source: &mut Connection, keys: &[Key]) -> Result<Option<Sample>, Error> {
        let Some(copied) = &target.copied else { return Ok(None) };
        let (schema, table) = (quoted(&copied.on.schema), quoted(&copied.on.table));
        let names: Vec<String> = copied.columns.iter().map(|(theirs, _)| quoted(theirs)).collect();
        let theirs = target.is_mirror() && self.round.is_multiple_of(2);
        let which = if theirs {
            format!("TABLESAMPLE SYSTEM (1) LIMIT {}", self.rate)
        } else if keys.is_empty() {
            return Ok(None);
        } else {
            let key = |key: &Key| {
                let part = |part: &[u8]| literal(&String::from_utf8_lossy(part));
                format!("({})", key.iter().map(|own| part(own)).collect::<Vec<_>>().join(", "))
            };
            let all: Vec<String> = keys.iter().map(key).collect();
            format!("WHERE ({}) IN ({})", names[..copied.key_len()].join(", "), all.join(", "))
        };
        let selected = names_of(copied).join(", ");
        let answer = source.query(&format!("SELECT {selected} FROM {schema}.{table} {which}"))?;
        let place = source.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")?;
        let place = place.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        let point = place.ok_or_else(|| Error::connection("the place of the source's log cannot be read"))?;
        let mut rows: HashMap<Key, Option<Theirs>> =
            if theirs { HashMap::new() } else { keys.iter().map(|key| (key.clone(), None)).collect() };
        for row in answer {
            let key = row[..copied.key_len()].iter().map(|part| Some(part.as_ref()?.as_bytes().into()));
            let Some(key) = key.collect::<Option<Key>>() else { continue };
            let field =
                |text: Option<String>| text.map_or(Field::Null, |text| Field::Text(text.into_bytes().into()));
            rows.insert(key, Some(row.into_iter().map(field).collect()));
        }
        Ok(Some(Sample { table: target.table.id(), point, rows }))
    }

    fn compare(&mut self, target: &Target, applier: &mut Applier, sample: Sample) -> Found {
        let mut found = Found::default();
        for (key, theirs) in sample.rows {
            let Ok(differs) = applier.differs(target, &key, theirs.as_deref()) else { continue };
            found.checked += 1;
            let key = (sample.table, key);
            let before = self.suspects.remove(&key).filter(|before| before.theirs == theirs);
            let Some(column) = differs else { continue };
            if before.as_ref().is_some_and(|before| !before.counted) {
                found.differing += 1;
                say(target, &key.1, &column);
            }
            if self.suspects.len() < CHECKED_ROWS_MAX {
                self.suspects.insert(key, Suspect { theirs, counted: before.is_some() });
            }
        }
        found
    }
}

/// Keys of rows in some groups of the hash index.
fn sampled(target: &Target, applier: &Applier, groups: u64) -> Vec<Key> {
    let Some(copied) = &target.copied else { return Vec::new() };
    let view = applier.store().own_view();
    let mut rows = view.sample(&target.table, fastrand::u64(..), groups);
    let (mut row, mut keys) = (RowBuf::new(), Vec::new());
    while keys.len() < SAMPLE_ROWS && rows.next(&view, &mut row).unwrap_or(false) {
        let part = |(_, at): &(String, usize)| text_of(&target.table.column(&row, *at).to_owned());
        keys.extend(copied.columns[..copied.key_len()].iter().map(part).collect::<Option<Key>>());
    }
    keys
}

/// Once for each difference, without values.
fn say(target: &Target, key: &Key, column: &str) {
    let key: Vec<_> = key.iter().map(|part| String::from_utf8_lossy(part)).collect();
    let (ours, theirs) = (target.table.name(), &target.on);
    tracing::warn!("{ours} differs from {theirs}: key ({}), {column}", key.join(", "));
}

/// Whether rows here are to be what the source's are.
fn is_checked(target: &Target) -> bool {
    target.is_updated() || (target.is_mirror() && target.table.is_whole())
}

/// A value of a key as PostgreSQL reads it; NULL is none.
fn text_of(value: &Value) -> Option<Box<[u8]>> {
    let text = match value {
        Value::Null => return None,
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => bytes.iter().fold("\\x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    };
    Some(text.into_bytes().into())
}
