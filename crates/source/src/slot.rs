//! The slot from which a source streams, and whether rows from before may be believed.
//!
//! A temporary slot goes with its connection, and nothing from before is believed. A named one keeps its place at the
//! source: rows stay over a reconnect and over a restart, if the stream goes on exactly where they stopped following
//! it. [`Followed`] says where that was. It is compared with what the source says at every start; whatever differs is
//! named, and then rows from before are not believed.

use engine::{Engine, SourceState};
use store::Followed;
use store::definition::ServerDef;

use crate::error::Error;
use crate::limits::{ANSWER_TIMEOUT, FEEDBACK_INTERVAL, SLOT_FREE_WAIT, STREAM_WAIT};
use crate::login::stream_name;
use crate::pgoutput::{literal, quoted};
use crate::time::now;
use crate::wire::{COPY_BOTH, Connection, ERROR, error_of, row_of};

/// PostgreSQL 17: slots may be copied to standbys.
const COPIES_SLOTS: i32 = 170_000;

/// The column of a slot's state, which versions before 13 do not have.
pub(crate) const STATUS: &str = "to_jsonb(s) ->> 'wal_status'";

/// Classes of SQLSTATE that say what is wrong with something in the log: data, a feature, a name, an internal error.
/// All others (resources, an operator, input and output) may be over the next time.
const LASTING: &[&str] = &["0A", "22", "42", "XX"];

/// A stream that begins.
pub(crate) struct Begun {
    /// The slot's name.
    pub(crate) slot: String,
    /// Of a named slot: what rows here follow from now on.
    pub(crate) followed: Option<Followed>,
    /// The targets whose rows have followed it so far, by their names; `None`: no rows from before are believed.
    pub(crate) believed: Option<Vec<String>>,
    /// Where the source's log ends now.
    pub(crate) end: u64,
}

/// The connections of a stream that begins.
pub(crate) struct Begin<'b> {
    pub(crate) engine: &'b Engine,
    pub(crate) server: &'b ServerDef,
    pub(crate) state: &'b SourceState,
    pub(crate) must_stop: &'b dyn Fn() -> bool,
    pub(crate) publication: &'b str,
    /// What the publication tells, as [`crate::check::published`] has it.
    pub(crate) published: &'b str,
    pub(crate) beside: &'b mut Connection,
    pub(crate) changes: &'b mut Connection,
}

impl Begin<'_> {
    /// Has the stream begin, with the slot that the server names or one of its own. `None`: it was to stop meanwhile.
    pub(crate) fn begin(&mut self) -> Result<Option<Begun>, Error> {
        match self.server.option("slot") {
            Some(slot) => self.named(slot),
            None => self.temporary(),
        }
    }

    fn temporary(&mut self) -> Result<Option<Begun>, Error> {
        let slot = format!("sqlcached_{}_{:08x}", std::process::id(), fastrand::u32(..));
        let how = format!("{} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT", quoted(&slot));
        if self.make(&how)?.is_none() {
            return Ok(None);
        }
        self.start(&slot)?;
        Ok(Some(Begun { slot, followed: None, believed: None, end: 0 }))
    }

    fn named(&mut self, slot: &str) -> Result<Option<Begun>, Error> {
        let (engine, server) = (self.engine, self.server);
        let origin = Origin::of(self.changes)?;
        let life = life(self.beside)?;
        let found = Found::of(self.beside, slot)?;
        let known = engine.store().followed(&server.name);
        let doubt = doubt(known.as_ref(), slot, (&origin, &life), self.published, found.as_ref());
        if let Some(doubt) = &doubt {
            // First: after a death in between, nothing of it is believed.
            engine.store().note_followed(&server.name, None).map_err(|error| {
                Error::new(error.state, format!("definitions cannot be written: {}", error.message))
            })?;
            if known.is_some() {
                tracing::warn!(source = %server.name, "rows from before are not believed: {doubt}");
                self.state.update(|facts| facts.last_break = Some(doubt.clone()));
            }
        }
        let Some(position) = self.obtain(slot, found.as_ref())? else { return Ok(None) };
        self.start(slot)?;
        self.warn_of_size()?;
        let known = known.filter(|_| doubt.is_none());
        let (lsn, believed) =
            (known.as_ref().map_or(position, |known| known.lsn), known.map(|known| known.targets));
        let followed = Followed {
            server: server.name.clone(),
            slot: slot.to_owned(),
            system: origin.system,
            timeline: origin.timeline,
            lsn,
            life,
            published: self.published.to_owned(),
            // The stream notes them when it begins.
            targets: Vec::new(),
        };
        let (slot, followed) = (slot.to_owned(), Some(followed));
        Ok(Some(Begun { slot, followed, believed, end: origin.end }))
    }

    /// Has the slot ready to stream, and returns where it stands. One whose log is gone is replaced.
    fn obtain(&mut self, slot: &str, found: Option<&Found>) -> Result<Option<u64>, Error> {
        if let Some(found) = found {
            if !found.lost {
                self.free(slot, found)?;
                return Ok(Some(found.confirmed));
            }
            self.changes.query(&format!("DROP_REPLICATION_SLOT {}", quoted(slot)))?;
        }
        let how = how_made(self.beside, self.server, slot)?;
        self.make(&how)
    }

    /// Makes a slot, and returns where it begins. That waits for transactions that are open on the source; `None`: it
    /// was to stop meanwhile.
    fn make(&mut self, how: &str) -> Result<Option<u64>, Error> {
        self.changes.ask(&format!("CREATE_REPLICATION_SLOT {how}"))?;
        let (mut begins, mut say_at) = (0, now() + FEEDBACK_INTERVAL);
        loop {
            if (self.must_stop)() {
                return Ok(None);
            }
            if now() >= say_at {
                say_at = now() + FEEDBACK_INTERVAL;
                say_wait(self.beside, self.state)?;
            }
            match self.changes.next_within(STREAM_WAIT)? {
                Some(frame) if frame.tag == ERROR => return Err(of_slot(error_of(&frame.body))),
                Some(frame) if frame.tag == b'D' => {
                    begins =
                        row_of(&frame.body)?.get(1).and_then(|text| lsn_of(text.as_deref()?)).unwrap_or(0);
                }
                Some(frame) if frame.tag == b'Z' => return Ok(Some(begins)),
                _ => {}
            }
        }
    }

    fn start(&mut self, slot: &str) -> Result<(), Error> {
        self.changes.ask(&format!(
            "START_REPLICATION SLOT {} LOGICAL 0/0 (proto_version '1', publication_names {}, messages 'true')",
            quoted(slot),
            literal(&quoted(self.publication)),
        ))?;
        let frame = self.changes.answer(now() + ANSWER_TIMEOUT).map_err(of_slot)?;
        if frame.tag == COPY_BOTH { Ok(()) } else { Err(Error::connection("the stream does not begin")) }
    }

    /// Ends an earlier connection of this very process that the source believes in still: its network was cut.
    fn free(&mut self, slot: &str, found: &Found) -> Result<(), Error> {
        // Both: the number may be another's by now, and caches may have one name.
        let own = self.state.facts().stream_process;
        let is_own = found.holder.as_deref() == Some(stream_name(self.server));
        let Some(pid) = found.active.filter(|pid| is_own && own == Some(*pid)) else {
            return found.refuse_used(slot);
        };
        self.beside.query(&format!("SELECT pg_terminate_backend({pid})"))?;
        let until = now() + SLOT_FREE_WAIT;
        while now() < until {
            match Found::of(self.beside, slot)? {
                Some(found) if found.active == Some(pid) => std::thread::sleep(STREAM_WAIT),
                _ => break,
            }
        }
        Ok(())
    }

    /// What nobody reads holds the source's log, until its disk is full.
    fn warn_of_size(&mut self) -> Result<(), Error> {
        if let Some((message, hint)) = size_note(self.beside)? {
            tracing::warn!(source = %self.server.name, "{message}; {hint}");
        }
        Ok(())
    }
}

/// Says in `sqlcached_sources` for which transactions a slot waits that is being made.
pub(crate) fn say_wait(beside: &mut Connection, state: &SourceState) -> Result<(), Error> {
    if let Some(said) = wait_of_slot(beside)? {
        state.update(|facts| facts.last_error = Some(said));
    }
    Ok(())
}

/// For which transactions a slot waits that is being made. Locks tell them to everybody; a prepared one has no process.
pub(crate) fn wait_of_slot(beside: &mut Connection) -> Result<Option<String>, Error> {
    let rows = beside.query(
        "SELECT string_agg(what, ', ') FROM (
             SELECT coalesce('prepared transaction ' || quote_literal(p.gid), 'that of process ' || l.pid) AS what
             FROM pg_locks l LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
             WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
             ORDER BY age(l.transactionid) DESC LIMIT 3) oldest",
    )?;
    let all = rows.into_iter().next().and_then(|row| row.into_iter().next()?);
    Ok(all.map(|all| format!("a slot waits for transactions that are open at the source: {all}")))
}

/// What stays the same until the source recovers from a crash: it keeps its counters over a clean stop, and begins to
/// count again behind a crash, also where only one of its processes was killed.
fn life(beside: &mut Connection) -> Result<String, Error> {
    let rows = beside.query("SELECT extract(epoch FROM stats_reset) FROM pg_stat_bgwriter")?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()?).unwrap_or_default())
}

/// What is to be known of a source with a named slot, and what to do about it.
pub(crate) fn size_note(beside: &mut Connection) -> Result<Option<(String, &'static str)>, Error> {
    let rows = beside.query("SELECT current_setting('max_slot_wal_keep_size', true)")?;
    let size = rows.first().and_then(|row| row.first()?.as_deref());
    Ok((size == Some("-1")).then(|| {
        let message = "a named slot keeps the source's log while it is not read, without a limit".to_owned();
        (message, "ALTER SYSTEM SET max_slot_wal_keep_size = '10 GB' on the source limits it")
    }))
}

/// What became of the log that a slot needs.
pub(crate) fn status(beside: &mut Connection, slot: &str) -> Result<Option<String>, Error> {
    let rows = beside
        .query(&format!("SELECT {STATUS} FROM pg_replication_slots s WHERE slot_name = {}", literal(slot)))?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()?))
}

/// Removes the slot of a server that is not followed any more: nobody else would.
pub(crate) fn remove(server: &ServerDef, engine: &Engine) {
    let Some(slot) = server.option("slot") else { return };
    if let Err(error) = engine.store().note_followed(&server.name, None) {
        tracing::warn!(source = %server.name, "definitions cannot be written: {}", error.message);
    }
    let removed = crate::login::connect(server, crate::login::Purpose::Questions)
        .and_then(|mut beside| drop_slot(&mut beside, slot).map(|()| beside.end()));
    match removed {
        Ok(()) => tracing::info!(source = %server.name, "slot {slot} was removed from the source"),
        Err(error) => tracing::warn!(
            source = %server.name,
            "slot {slot} is still at the source, and keeps its log: {error}; SELECT pg_drop_replication_slot('{slot}') there"
        ),
    }
}

/// Removes a slot whose stream has ended.
pub(crate) fn drop_slot(beside: &mut Connection, slot: &str) -> Result<(), Error> {
    let free = format!(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = {}",
        literal(slot)
    );
    let until = now() + SLOT_FREE_WAIT;
    loop {
        match beside.query(&free) {
            // The source has not noticed yet that the stream ended.
            Err(error) if error.state == "55006" && now() < until => std::thread::sleep(STREAM_WAIT),
            done => return done.map(|_| ()),
        }
    }
}

/// Whether the source will give the same error each time that it reads this part of its log.
///
/// It reads the log with the definitions of that time. A publication that was missing for one change is missing there
/// for ever, though it is back by now.
pub(crate) fn is_lasting(error: &Error) -> bool {
    LASTING.iter().any(|class| error.state.starts_with(class))
}

/// Removes a named slot whose stream ended with a [lasting](is_lasting) error: the next attempt makes a new one, and
/// then no rows from before are believed.
pub(crate) fn give_up(beside: &mut Connection, server: &ServerDef, slot: &str, error: &Error) {
    tracing::warn!(
        source = %server.name,
        "the source cannot read its log behind slot {slot}: {error}. A new slot is made, and rows from before are \
         not believed"
    );
    if let Err(error) = drop_slot(beside, slot) {
        tracing::warn!(
            source = %server.name,
            "slot {slot} cannot be removed: {error}; SELECT pg_drop_replication_slot('{slot}') there"
        );
    }
}

/// How a slot is made that stays.
fn how_made(beside: &mut Connection, server: &ServerDef, slot: &str) -> Result<String, Error> {
    let version = version_of(beside)?;
    let slot = quoted(slot);
    Ok(match server.option("failover") {
        Some("off") => format!("{slot} LOGICAL pgoutput NOEXPORT_SNAPSHOT"),
        _ if version >= COPIES_SLOTS => format!("{slot} LOGICAL pgoutput (SNAPSHOT 'nothing', FAILOVER)"),
        _ => format!("{slot} LOGICAL pgoutput NOEXPORT_SNAPSHOT"),
    })
}

fn version_of(beside: &mut Connection) -> Result<i32, Error> {
    let rows = beside.query("SELECT current_setting('server_version_num')")?;
    let version = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
    version.ok_or_else(|| Error::connection("the source does not tell its version"))
}

pub(crate) fn of_slot(error: Error) -> Error {
    match error.state.as_str() {
        "53400" => error.with_hint("raise max_replication_slots on the source"),
        "53300" => error.with_hint("raise max_wal_senders on the source"),
        "55006" => error.with_hint("name another slot: ALTER SERVER ... OPTIONS (SET slot '...')"),
        _ => error,
    }
}

/// Which log the source has, and where it ends.
struct Origin {
    system: String,
    timeline: u32,
    end: u64,
}

impl Origin {
    fn of(changes: &mut Connection) -> Result<Self, Error> {
        let rows = changes.query("IDENTIFY_SYSTEM")?;
        let cell = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref());
        let read = || {
            let system = cell(0)?.to_owned();
            Some(Self { system, timeline: cell(1)?.parse().ok()?, end: lsn_of(cell(2)?)? })
        };
        read().ok_or_else(|| Error::connection("the source does not say which one it is"))
    }
}

/// A slot as the source has it.
struct Found {
    confirmed: u64,
    /// The log behind it is gone.
    lost: bool,
    /// The process there that streams from it, and the name of whoever that serves.
    active: Option<u32>,
    holder: Option<String>,
}

impl Found {
    fn of(beside: &mut Connection, slot: &str) -> Result<Option<Self>, Error> {
        let rows = beside.query(&format!(
            "SELECT s.plugin, s.database = current_database(), {STATUS}, s.confirmed_flush_lsn, s.active_pid,
                    a.application_name, s.database,
                    pg_is_in_recovery() AND to_jsonb(s)->>'synced' = 'true'
             FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
             WHERE s.slot_name = {}",
            literal(slot)
        ))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let cell = |at: usize| row.get(at).and_then(Option::as_deref);
        if cell(0) != Some("pgoutput") || cell(1) != Some("t") {
            let of =
                cell(6).map_or_else(|| "physical".to_owned(), |database| format!("of database {database}"));
            let message =
                format!("replication slot \"{slot}\" is {of}, with the plugin {}", cell(0).unwrap_or("none"));
            return Err(of_slot(Error::new("55006", message)));
        }
        if cell(7) == Some("t") {
            let message =
                format!("replication slot \"{slot}\" is a standby's copy: it is read when that is promoted");
            return Err(Error::new("55000", message));
        }
        Ok(Some(Self {
            confirmed: cell(3).and_then(lsn_of).unwrap_or(0),
            lost: cell(2) == Some("lost"),
            active: cell(4).and_then(|pid| pid.parse().ok()),
            holder: cell(5).map(str::to_owned),
        }))
    }

    fn refuse_used(&self, slot: &str) -> Result<(), Error> {
        let Some(pid) = self.active else { return Ok(()) };
        let holder = self.holder.as_deref().filter(|name| !name.is_empty()).unwrap_or("unknown");
        let message = format!("replication slot \"{slot}\" is in use by another: process {pid} ({holder})");
        Err(of_slot(Error::new("55006", message)))
    }
}

/// Why rows from before may not have followed all changes before this stream; none: they have.
fn doubt(
    known: Option<&Followed>,
    slot: &str,
    (origin, life): (&Origin, &str),
    published: &str,
    found: Option<&Found>,
) -> Option<String> {
    let Some(known) = known.filter(|known| known.slot == slot) else {
        return Some(format!("they have not followed slot {slot}"));
    };
    if known.system != origin.system {
        return Some(format!(
            "this source is another one (system {}, before {})",
            origin.system, known.system
        ));
    }
    let Some(found) = found else {
        return Some(format!("slot {slot} is missing: somebody removed it. A new one is made"));
    };
    if found.lost {
        return Some(format!(
            "slot {slot} was invalidated: the source removed the log behind it. A new one is made; \
             raise max_slot_wal_keep_size there if this happens often"
        ));
    }
    if known.timeline != origin.timeline {
        return Some(format!(
            "the source was promoted (timeline {}, before {}), and may lack commits that rows were made of",
            origin.timeline, known.timeline
        ));
    }
    if origin.end < known.lsn {
        return Some("the source's log ends before what was applied: it was restored from a copy".to_owned());
    }
    if found.confirmed > known.lsn {
        return Some(format!("somebody else has read slot {slot}: its place is not where it was left"));
    }
    if known.life != life {
        return Some(
            "the source recovered from a crash, and may lack commits that rows were made of".to_owned(),
        );
    }
    (known.published != published)
        .then(|| "the publication, or the identity or definition of a table, has changed".to_owned())
}

/// A place in the log, as PostgreSQL writes it.
pub(crate) fn lsn_of(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from(u32::from_str_radix(high, 16).ok()?) << 32 | u64::from(u32::from_str_radix(low, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Followed {
        Followed {
            server: "pg".into(),
            slot: "cache".into(),
            system: "7".into(),
            timeline: 1,
            lsn: 100,
            life: "1".into(),
            published: "p".into(),
            targets: Vec::new(),
        }
    }

    fn origin(system: &str, timeline: u32, end: u64) -> Origin {
        Origin { system: system.into(), timeline, end }
    }

    fn found(confirmed: u64, lost: bool) -> Found {
        Found { confirmed, lost, active: None, holder: None }
    }

    /// Each thing that may have happened is told from the others.
    #[test]
    fn each_doubt_has_its_reason() {
        let same = origin("7", 1, 200);
        let ask = |origin: &Origin, found: Option<Found>, published: &str| {
            doubt(Some(&known()), "cache", (origin, "1"), published, found.as_ref()).unwrap_or_default()
        };
        assert_eq!(ask(&same, Some(found(100, false)), "p"), "");
        assert_eq!(ask(&same, Some(found(60, false)), "p"), "", "changes that come once more do no harm");
        assert!(ask(&same, Some(found(101, false)), "p").contains("somebody else has read"));
        assert!(ask(&same, None, "p").contains("missing"));
        assert!(ask(&same, Some(found(100, true)), "p").contains("invalidated"));
        assert!(ask(&origin("8", 1, 200), Some(found(100, false)), "p").contains("another one"));
        assert!(ask(&origin("7", 2, 200), Some(found(100, false)), "p").contains("promoted"));
        assert!(ask(&origin("7", 1, 99), Some(found(60, false)), "p").contains("restored"));
        assert!(ask(&same, Some(found(100, false)), "q").contains("publication"));
        assert!(doubt(None, "cache", (&same, "1"), "p", None).is_some());
        assert!(doubt(Some(&known()), "other", (&same, "1"), "p", Some(&found(100, false))).is_some());
        let crashed = doubt(Some(&known()), "cache", (&same, "2"), "p", Some(&found(100, false)));
        assert!(crashed.unwrap().contains("recovered from a crash"));
    }

    #[test]
    fn errors_of_the_log_last() {
        let is_lasting = |state: &str| is_lasting(&Error::new(state, ""));
        assert!(["42704", "22P05", "0A000", "XX000"].iter().all(|state| is_lasting(state)));
        assert!(!["57P01", "53100", "08006", "55000", "58P01"].iter().any(|state| is_lasting(state)));
    }

    #[test]
    fn places_in_the_log_are_read() {
        assert_eq!(lsn_of("1/A"), Some((1 << 32) + 10));
        assert_eq!(["", "1", "x/1", "1/x", "100000000/0"].map(lsn_of), [None; 5]);
    }
}
