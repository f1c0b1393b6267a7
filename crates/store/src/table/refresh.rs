//! What is known of the refreshes of a materialized view.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::clock::{NEVER, TICKS_PER_SECOND, Tick, moment_after};
use crate::limits::{
    REFRESH_AGAIN_TICKS, REFRESH_AGAIN_TICKS_MAX, REFRESH_JITTER, REFRESH_PAUSE_TICKS, REFRESH_REST,
};
use crate::table::standing::Standing;
use crate::table::{Table, ticks};

/// What the refreshes of a view did since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefreshFigures {
    /// How often it was refreshed, or that was tried.
    pub refreshes: u64,
    /// How often it failed.
    pub errors: u64,
    /// Time of all of them.
    pub total_ns: u64,
    /// When the query of the rows of now began, in milliseconds since 1970.
    pub last_refresh_ms: Option<i64>,
    /// Time of the last one.
    pub last_ns: u64,
    /// Rows that the last one wrote or removed.
    pub last_changed: u64,
    /// Why it failed last; none after one that worked.
    pub last_error: Option<String>,
}

/// One refresh.
#[derive(Clone, Debug, Default)]
pub struct Refresh {
    /// When its query began.
    pub began: Tick,
    /// The same, in milliseconds since 1970.
    pub began_ms: i64,
    /// How long it took.
    pub ns: u64,
    /// Rows that were written or removed.
    pub changed: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// Where the tables stood that have the view refreshed, before its query began.
    pub seen: Vec<Option<Standing>>,
}

/// The refreshes of a view.
#[derive(Debug, Default)]
pub(crate) struct Refreshes {
    /// Held by who refreshes it.
    running: Mutex<()>,
    /// Its rows may be other than those of its query. Relaxed: as old as the last look of the refresher.
    stale: AtomicBool,
    /// The tick at which the query of its rows began; 0: another process asked it. Relaxed: a figure of this moment.
    as_of: AtomicU32,
    /// How often tables of its source changed, or may have changed. Release by who has read a change in the stream,
    /// Acquire by who begins a refresh: a refresh that counted the change asks the source after that showed it.
    changes: AtomicU64,
    plan: Mutex<Plan>,
}

/// When it is refreshed next.
#[derive(Debug, Default)]
struct Plan {
    /// The end of the last refresh; 0: there was none.
    ended: Tick,
    /// It is not refreshed before.
    rests_until: Tick,
    /// How many failed, one after the other.
    failures: u32,
    /// The part of its time after which it is refreshed, in thousandths.
    jitter: u64,
    /// A refresh was asked for.
    asked: bool,
    /// Where the tables stood before the last refresh; none: unknown.
    seen: Option<Vec<Option<Standing>>>,
    figures: RefreshFigures,
}

impl Plan {
    /// When its time comes.
    fn by_time(&self, refresh_ms: Option<u64>) -> Option<Tick> {
        let refresh = u64::from(ticks(Some(refresh_ms?)));
        let part = refresh.saturating_mul(self.jitter.max(REFRESH_JITTER)) / 1_000;
        Some(if self.ended == 0 { 0 } else { moment_after(self.ended, part) })
    }

    /// So long after the last refresh, or the last that failed.
    fn rest(&self, ns: u64) -> u64 {
        let rest = (ns / crate::clock::TICK_NS).saturating_mul(REFRESH_REST);
        match self.failures {
            0 => rest.max(u64::from(REFRESH_PAUSE_TICKS)),
            failures => {
                let again = u64::from(REFRESH_AGAIN_TICKS) << (failures - 1).min(u32::from(u8::MAX) >> 3);
                rest.max(again.min(u64::from(REFRESH_AGAIN_TICKS_MAX)))
            }
        }
    }
}

impl Refreshes {
    /// Takes note of a refresh that ended.
    fn note(&self, refresh: Refresh, now: Tick) {
        let mut plan = self.plan.lock();
        let Refresh { began, began_ms, ns, changed, error, seen } = refresh;
        plan.failures = if error.is_some() { plan.failures.saturating_add(1) } else { 0 };
        plan.rests_until = moment_after(now, plan.rest(ns));
        plan.ended = now;
        plan.jitter = REFRESH_JITTER + ns % (1_001 - REFRESH_JITTER);
        let figures = &mut plan.figures;
        figures.refreshes += 1;
        figures.total_ns += ns;
        figures.last_ns = ns;
        figures.errors += u64::from(error.is_some());
        figures.last_error = error;
        if figures.last_error.is_none() {
            (figures.last_refresh_ms, figures.last_changed) = (Some(began_ms), changed);
            (plan.asked, plan.seen) = (false, Some(seen));
            self.as_of.store(began, Ordering::Relaxed);
        }
        self.stale.store(plan.figures.last_error.is_some(), Ordering::Relaxed);
    }
}

impl Table {
    fn refreshes(&self) -> Option<&Refreshes> {
        self.state.refreshes.get().map(|refreshes| &**refreshes)
    }

    /// Keeps others from refreshing this view; none: somebody does, after so long a wait too.
    pub fn begin_refresh(&self, patience: Duration) -> Option<MutexGuard<'_, ()>> {
        self.refreshes()?.running.try_lock_for(patience)
    }

    /// Whether nobody refreshes this view at this moment.
    pub(crate) fn is_refreshed_now(&self) -> bool {
        self.refreshes().is_some_and(|refreshes| refreshes.running.is_locked())
    }

    /// Whether it is time to refresh this view; `standing` is where its tables stand. Whatever waits makes it stale.
    pub(crate) fn is_refresh_due(&self, now: Tick, standing: &[Option<Standing>]) -> bool {
        let Some(refreshes) = self.refreshes() else { return false };
        let options = &self.def().options;
        let plan = refreshes.plan.lock();
        let changed = options.refresh_on.is_some() && plan.seen.as_deref() != Some(standing);
        let by_time = plan.by_time(options.refresh_ms).is_some_and(|due| due <= now);
        let by_itself = options.refresh_ms.is_some() || options.refresh_on.is_some();
        let wanted = changed || by_time || plan.asked || (by_itself && plan.failures > 0);
        if wanted {
            refreshes.stale.store(true, Ordering::Relaxed);
        }
        wanted && plan.rests_until <= now
    }

    /// A table of its source changed, or may have.
    pub fn note_source_change(&self) {
        if let Some(refreshes) = self.refreshes() {
            // Release: pairs with the Acquire of `source_standing`.
            refreshes.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Where the tables of its source stand.
    pub(crate) fn source_standing(&self) -> Standing {
        // Acquire: pairs with the Release of `note_source_change`.
        Standing::of_changes(
            self.refreshes().map_or(0, |refreshes| refreshes.changes.load(Ordering::Acquire)),
        )
    }

    /// Asks for a refresh as soon as may be.
    pub fn ask_for_refresh(&self) {
        if let Some(refreshes) = self.refreshes() {
            refreshes.plan.lock().asked = true;
        }
    }

    pub(crate) fn note_refresh(&self, refresh: Refresh, now: Tick) {
        if let Some(refreshes) = self.refreshes() {
            refreshes.note(refresh, now);
        }
    }

    /// What its refreshes did since the start; none: it is a table.
    pub fn refresh_figures(&self) -> Option<RefreshFigures> {
        self.refreshes().map(|refreshes| refreshes.plan.lock().figures.clone())
    }

    /// Seconds until the next refresh by time, if there is one.
    pub fn refreshed_in(&self, now: Tick) -> Option<u64> {
        let plan = self.refreshes()?.plan.lock();
        let due = plan.by_time(self.def().options.refresh_ms)?.max(plan.rests_until);
        Some(crate::clock::ticks_between(now, due) / TICKS_PER_SECOND)
    }

    /// Whether the rows of this view may be other than those of its query: a table changed, its time has come, or the
    /// last refresh failed. False for a table.
    pub fn is_stale_view(&self) -> bool {
        self.refreshes().is_some_and(|refreshes| refreshes.stale.load(Ordering::Relaxed))
    }

    /// The tick at which the query of this view's rows began, if that was in this process.
    pub fn as_of(&self) -> Option<Tick> {
        let as_of = self.refreshes()?.as_of.load(Ordering::Relaxed);
        Some(as_of).filter(|&tick| tick != 0 && tick != NEVER)
    }
}
