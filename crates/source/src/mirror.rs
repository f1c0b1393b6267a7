//! Mirrors: a table of the source is copied in a snapshot, and followed from there.
//!
//! A slot of its own gives the snapshot, and says up to which place of the log it shows what was committed. The
//! stream may be behind that place: then it brings changes that the copy has already, and these are passed over. When
//! the stream has passed that place, the mirror is the source's table of that moment, and is whole. Before,
//! statements that read it are refused.

use std::time::{Duration, Instant};

use engine::SourceState;
use store::TableId;
use store::definition::{Copied, ServerDef};

use crate::apply::Applier;
use crate::change::Field;
use crate::error::Error;
use crate::fit;
use crate::limits::{ANSWER_TIMEOUT, COPY_PAUSES, COPY_ROWS, FEEDBACK_INTERVAL, STREAM_WAIT};
use crate::login::{Purpose, connect};
use crate::pgoutput::{literal, quoted};
use crate::plan::{Plan, Target};
use crate::slot::say_wait;
use crate::time::now;
use crate::wire::{COPY_DATA, Connection, ERROR, error_of, row_of};

/// The tag of the sign that the next question may come.
const READY: u8 = b'Z';

/// What to do about a table that does not fit.
const MORE_MEMORY: &str = "give the daemon more memory, or mirror fewer columns";

/// How far a mirror is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// It is copied from this moment on.
    Due(Instant),
    /// It is whole when the stream has passed this place, if no more than so many rows were evicted.
    Behind(u64, u64),
    /// It has all rows, and had this many evicted before.
    Whole(u64),
}

struct Mirror {
    table: TableId,
    copied: Copied,
    stage: Stage,
    /// The pause behind a copy that fails.
    pause: Duration,
}

/// The mirrors of a stream.
#[derive(Default)]
pub(crate) struct Mirrors {
    each: Vec<Mirror>,
}

impl Mirrors {
    /// The number of a target that is to be copied now.
    pub(crate) fn due(&mut self, plan: &Plan) -> Option<usize> {
        let mut before = std::mem::take(&mut self.each);
        for target in plan.targets.iter().filter(|target| target.is_mirror()) {
            let Some(copied) = &target.copied else { continue };
            let is_it = |own: &Mirror| own.table == target.table.id() && own.copied == *copied;
            let own = before.iter().position(is_it).map(|at| before.swap_remove(at));
            self.each.push(own.unwrap_or_else(|| Mirror {
                table: target.table.id(),
                copied: copied.clone(),
                stage: Stage::Due(now()),
                pause: COPY_PAUSES.0,
            }));
        }
        let time = now();
        let is_due = |target: &Target| {
            self.find(target).is_some_and(|own| matches!(own.stage, Stage::Due(at) if at <= time))
        };
        plan.targets.iter().position(is_due)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    fn find(&self, target: &Target) -> Option<&Mirror> {
        self.each.iter().find(|own| target.is_mirror() && own.table == target.table.id())
    }

    fn set(&mut self, target: &Target, stage: Stage) {
        for own in self.each.iter_mut().filter(|own| own.table == target.table.id()) {
            own.stage = stage;
        }
    }

    /// It was copied, and is whole when the stream has passed this place.
    pub(crate) fn copied(&mut self, target: &Target, Copy { point, evicted }: Copy) {
        self.set(target, Stage::Behind(point, evicted));
    }

    /// It is not what the source's table is: nobody reads it until it is copied again, which waits longer each time.
    pub(crate) fn fail(&mut self, target: &Target) {
        target.table.set_whole(false);
        for own in self.each.iter_mut().filter(|own| own.table == target.table.id()) {
            own.stage = Stage::Due(now() + own.pause);
            own.pause = (own.pause * 2).min(COPY_PAUSES.1);
        }
    }

    /// Whether it has its rows, so that changes are of use.
    pub(crate) fn is_followed(&self, target: &Target) -> bool {
        self.find(target).is_some_and(|own| !matches!(own.stage, Stage::Due(_)))
    }

    /// Whether its copy has what was committed at this place of the log.
    pub(crate) fn has(&self, target: &Target, at: u64) -> bool {
        self.find(target).is_some_and(|own| matches!(own.stage, Stage::Behind(point, _) if at < point))
    }

    /// Whether a copy waits for the stream.
    pub(crate) fn is_behind(&self) -> bool {
        self.each.iter().any(|own| matches!(own.stage, Stage::Behind(..)))
    }

    /// The stream is applied so far. Returns the targets of which rows were evicted.
    pub(crate) fn advance<'p>(&mut self, plan: &'p Plan, applied: u64) -> Vec<&'p Target> {
        let mut evicted = Vec::new();
        for target in plan.targets.iter().filter(|target| target.is_mirror()) {
            match self.find(target).map(|own| own.stage) {
                Some(Stage::Behind(_, before) | Stage::Whole(before)) if target.table.evicted() != before => {
                    evicted.push(target);
                }
                Some(Stage::Behind(point, before)) if applied >= point => {
                    self.set(target, Stage::Whole(before));
                    target.table.set_whole(true);
                    tracing::info!("{} has all rows of {}", target.table.name(), target.on);
                }
                // The source was not followed for a while, and no change is missing.
                Some(Stage::Whole(_)) if !target.table.is_whole() => target.table.set_whole(true),
                _ => {}
            }
        }
        evicted
    }
}

/// A snapshot of the source, as a slot exports it.
struct Snapshot {
    /// All that was committed before this place of the log is seen.
    point: u64,
    name: String,
}

/// Called now and then while a table is copied; false: it is to stop.
type Pulse<'p> = dyn FnMut() -> Result<bool, Error> + 'p;

/// A copy that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// It has all that was committed before this place of the log.
    point: u64,
    /// Rows of the table that were evicted before.
    evicted: u64,
}

/// Copies a table. None: it was to stop. `pulse` is called now and then.
pub(crate) fn copy(
    (server, state): (&ServerDef, &SourceState),
    applier: &mut Applier,
    target: &Target,
    pulse: &mut Pulse<'_>,
) -> Result<Option<Copy>, Error> {
    let Some(copied) = &target.copied else { return Ok(None) };
    let mut slot = connect(server, Purpose::Changes)?;
    let mut reader = connect(server, Purpose::Questions)?;
    fit::check(&mut reader, target.table.def(), copied)?;
    let Some(snapshot) = export(&mut slot, (&mut reader, state), pulse)? else { return Ok(None) };
    reader.query("SET row_security = off")?;
    reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    reader.query(&format!("SET TRANSACTION SNAPSHOT {}", literal(&snapshot.name)))?;
    // The snapshot is the reader's now, and the slot holds no log any more.
    slot.end();
    let evicted = target.table.evicted();
    let rows = fill(applier, target, copied, &mut reader, pulse)?;
    reader.end();
    let Some(rows) = rows else { return Ok(None) };
    tracing::info!(source = %server.name, rows, "{} was copied", target.on);
    Ok(Some(Copy { point: snapshot.point, evicted }))
}

/// Makes a slot for a snapshot. That waits for transactions that are open on the source.
fn export(
    slot: &mut Connection,
    (beside, state): (&mut Connection, &SourceState),
    pulse: &mut Pulse<'_>,
) -> Result<Option<Snapshot>, Error> {
    let name = format!("sqlcached_copy_{}_{:08x}", std::process::id(), fastrand::u32(..));
    slot.ask(&format!(
        "CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT",
        quoted(&name)
    ))?;
    let (mut row, mut say_at) = (Vec::new(), now() + FEEDBACK_INTERVAL);
    loop {
        if !pulse()? {
            return Ok(None);
        }
        if now() >= say_at {
            say_at = now() + FEEDBACK_INTERVAL;
            say_wait(beside, state)?;
        }
        let Some(frame) = slot.next_within(STREAM_WAIT)? else { continue };
        match frame.tag {
            ERROR => return Err(error_of(&frame.body)),
            b'D' => row = row_of(&frame.body)?,
            READY => break,
            _ => {}
        }
    }
    let text = |at: usize| row.get(at).and_then(Option::as_deref);
    let point = text(1).and_then(place_of);
    match (point, text(2)) {
        (Some(point), Some(name)) => Ok(Some(Snapshot { point, name: name.to_owned() })),
        _ => Err(Error::connection("the source exported no snapshot")),
    }
}

/// A place of the log: `0/14FFA38`.
fn place_of(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |text| u32::from_str_radix(text, 16).ok().map(u64::from);
    Some(part(high)? << 32 | part(low)?)
}

/// Fills the table with all rows that the reader sees. Returns how many there are; none: it was to stop.
fn fill(
    applier: &mut Applier,
    target: &Target,
    copied: &Copied,
    reader: &mut Connection,
    pulse: &mut Pulse<'_>,
) -> Result<Option<u64>, Error> {
    applier.begin_copy(target).map_err(of_copy)?;
    let names = names_of(copied);
    let (schema, table) = (quoted(&copied.on.schema), quoted(&copied.on.table));
    reader.ask(&format!("COPY (SELECT {} FROM {schema}.{table}) TO STDOUT", names.join(", ")))?;
    let (mut rows, mut heard, evicted) = (0_u64, now(), target.table.evicted());
    loop {
        if rows.is_multiple_of(COPY_ROWS) {
            if target.table.evicted() != evicted {
                return Err(Error::new("53200", "rows were evicted").with_hint(MORE_MEMORY));
            }
            if !pulse()? {
                return Ok(None);
            }
        }
        let Some(frame) = reader.next_within(STREAM_WAIT)? else {
            if heard.elapsed() > ANSWER_TIMEOUT {
                return Err(Error::connection("the source does not send the rest of the table"));
            }
            if !pulse()? {
                return Ok(None);
            }
            continue;
        };
        match frame.tag {
            ERROR => return Err(of_reader(error_of(&frame.body), target)),
            COPY_DATA => {
                applier.copy_row(target, fields_of(&frame.body)).map_err(of_copy)?;
                rows += 1;
                if rows.is_multiple_of(COPY_ROWS) {
                    heard = now();
                }
            }
            READY => return Ok(Some(rows)),
            _ => {}
        }
    }
}

/// The columns that are copied, as a query names them. A key is read as text: the text of a `char(n)` has no trailing
/// blanks.
pub(crate) fn names_of(copied: &Copied) -> Vec<String> {
    let name = |(at, (theirs, _)): (usize, &(String, usize))| {
        let name = quoted(theirs);
        if at < copied.key_len() { format!("{name}::text") } else { name }
    };
    copied.columns.iter().enumerate().map(name).collect()
}

fn of_reader(error: Error, target: &Target) -> Error {
    if error.state == "42501" {
        return error
            .with_hint(format!("GRANT SELECT ON {} on the source to the user of the mapping", target.on));
    }
    error
}

fn of_copy(error: engine::SqlError) -> Error {
    let memory = matches!(error.state, "53200" | "54000");
    let made = Error::new(error.state, error.message);
    if memory { made.with_hint(MORE_MEMORY) } else { made }
}

/// The values of a line of `COPY`.
fn fields_of(line: &[u8]) -> Box<[Field]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.split(|byte| *byte == b'\t').map(field_of).collect()
}

fn field_of(text: &[u8]) -> Field {
    if text == b"\\N" {
        return Field::Null;
    }
    if !text.contains(&b'\\') {
        return Field::Text(text.into());
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'\\' => match rest.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(other) => *other,
                None => b'\\',
            },
            byte => *byte,
        };
        plain.push(byte);
    }
    Field::Text(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = |text: &str| Field::Text(text.as_bytes().into());
        assert_eq!(
            *fields_of(b"1\ta\\tb\\\\N\\n\t\\N\t\n"),
            [text("1"), text("a\tb\\N\n"), Field::Null, text("")]
        );
        assert_eq!(*fields_of(b"\\x41\n"), [text("x41")]);
        assert_eq!(*fields_of(b"\\\\x41\n"), [text("\\x41")]);
    }

    #[test]
    fn places_are_read() {
        assert_eq!(place_of("1/14FFA38"), Some(0x1_014F_FA38));
        assert_eq!([place_of("14FFA38"), place_of("0/x"), place_of("")], [None; 3]);
    }
}
