//! Who is in a segment, and how much room it has, when it is given away under those who know it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::{Rig, Value, tiny, warm};
use crate::failpoint::{Point, disarm, step_in};
use crate::{Arenas, BLOCK_UNITS, Location, RowParts, SegmentId, UNIT_BYTES};

/// Units of the runs that are recycled.
const RUN: u32 = BLOCK_UNITS;

fn arenas() -> Arc<Arenas> {
    Arc::new(Arenas::new(tiny(8 << 20), None))
}

/// A run with one row, which begins in its sixth unit; nobody writes to it any more.
fn run_with_a_row(arenas: &Arenas) -> (SegmentId, Location) {
    let run = arenas.allocate(RUN, &Rig::tag(), 0).unwrap();
    let before = arenas.of(run).reserve(run, 5 * UNIT_BYTES).unwrap();
    arenas.of(before).write_filler(before, 5 * UNIT_BYTES);
    arenas.of(run).release(run);
    let parts = RowParts {
        table: super::TABLE,
        multi: false,
        stale: false,
        expiry: 0,
        lease: None,
        client_flags: 0,
        cas: None,
        key: b"key",
        payload: &[&[7; 5000]],
    };
    let location = arenas.of(run).reserve(run, parts.total_bytes()).unwrap();
    assert_eq!(location.unit(), run.0 + 5);
    arenas.of(location).write_row(location, &parts);
    arenas.of(location).stamp_row(location, 1);
    arenas.of(run).release(run);
    (run, location)
}

fn give_back(arenas: &Arenas, run: SegmentId) {
    arenas.of(run).seal(run);
    assert!(arenas.of(run).close(run));
    arenas.of(run).recycle(run);
}

/// Makes a unit a segment of its own, with one writer in it.
fn write_in(arenas: &Arenas, unit: u32) -> SegmentId {
    let fresh = || arenas.allocate(1, &Rig::tag(), 0).unwrap();
    let own = (0..2 * RUN).map(|_| fresh()).find(|segment| segment.0 == unit).unwrap();
    arenas.of(own).reserve(own, 4096).unwrap();
    own
}

/// Whoever held a row in a unit that was a tail, and found it recycled, took the count of the writer who had come
/// there meanwhile: the segment was emptied and given away under a writer, who published into somebody else's memory.
#[test]
fn a_row_of_a_recycled_run_takes_no_count_of_who_came_after() {
    let arenas = arenas();
    let (run, location) = run_with_a_row(&arenas);
    let row = arenas.of(location).row(location).unwrap();
    give_back(&arenas, run);
    let (mine, others) = (Rc::new(Cell::new(None)), Arc::clone(&arenas));
    let came = Rc::clone(&mine);
    step_in(Point::Held, move || came.set(Some(write_in(&others, location.unit()))));
    assert!(arenas.pin(&row, 0, 8).is_none(), "its memory was recycled");
    assert!(disarm() == 1 || mine.get().is_some());
    let mine = mine.get().unwrap_or_else(|| write_in(&arenas, location.unit()));
    assert_eq!(arenas.of(mine).writers(mine), 1, "who writes is counted");
    arenas.of(mine).seal(mine);
    assert!(!arenas.of(mine).close(mine), "a segment with a writer in it is not closed");
    arenas.of(mine).release(mine);
    assert!(arenas.of(mine).close(mine));
}

/// The same with the run given away between the look at its head and the hold: then what begins there now is held, and
/// let go without a trace.
#[test]
fn a_hold_of_what_was_given_away_leaves_no_trace() {
    let arenas = arenas();
    let (run, location) = run_with_a_row(&arenas);
    let row = arenas.of(location).row(location).unwrap();
    let others = Arc::clone(&arenas);
    step_in(Point::Pin, move || {
        give_back(&others, run);
        assert_eq!(write_in(&others, run.0), run);
    });
    assert!(arenas.pin(&row, 0, 8).is_none(), "its memory was recycled");
    assert_eq!((disarm(), arenas.of(run).writers(run), arenas.of(run).is_sealed(run)), (0, 1, false));
    arenas.of(run).release(run);
    arenas.of(run).seal(run);
    assert!(arenas.of(run).close(run));
}

/// While a row is held its run stays, whatever was meant for it.
#[test]
fn a_run_is_not_given_away_while_a_row_of_it_is_held() {
    let arenas = arenas();
    let (run, location) = run_with_a_row(&arenas);
    let row = arenas.of(location).row(location).unwrap();
    let others = Arc::clone(&arenas);
    step_in(Point::Held, move || {
        others.of(run).seal(run);
        assert!(!others.of(run).close(run));
    });
    let held = arenas.pin(&row, 0, 5000).unwrap();
    assert_eq!(arenas.pinned_bytes(&held), [7; 5000]);
    arenas.unpin(held);
    assert_eq!(disarm(), 0);
    give_back(&arenas, run);
}

/// A reservation was judged by a length that was read before: where the segment was given away and a shorter one began
/// in its place, the row was written over the rows of the segments behind it.
#[test]
fn a_reservation_is_judged_by_the_room_of_the_segment_that_it_enters() {
    let arenas = arenas();
    let run = arenas.allocate(RUN, &Rig::tag(), 0).unwrap();
    let others = Arc::clone(&arenas);
    step_in(Point::Reserve, move || {
        give_back(&others, run);
        assert_eq!(others.allocate(1, &Rig::tag(), 0).unwrap(), run);
    });
    assert_eq!(arenas.of(run).reserve(run, 2 * UNIT_BYTES), None, "there is one unit of room");
    assert_eq!((disarm(), arenas.of(run).used(run), arenas.of(run).writers(run)), (0, 0, 0));
    // And where it fits, it lies where the segment that it is in says.
    let others = Arc::clone(&arenas);
    step_in(Point::Reserve, move || {
        give_back(&others, run);
        assert_eq!(others.allocate(2, &Rig::tag(), 0).unwrap(), run);
    });
    assert_eq!(arenas.of(run).reserve(run, 4096), Some(Location::in_run(run.0, 0)));
    assert_eq!((disarm(), arenas.of(run).used(run), arenas.of(run).writers(run)), (0, 4096, 1));
}

/// Only where a segment begins may anybody come in: not in its tails, not in what is free again or was never used, not
/// in what recovery found no segment in.
#[test]
fn units_where_no_segment_begins_are_closed() {
    let mut rig = Rig::new(8 << 20);
    let can_hold = |rig: &Rig| -> Vec<u32> {
        let enters = |unit: &u32| {
            let segment = SegmentId(*unit);
            let held = rig.arena.pin_segment(segment);
            if held {
                rig.arena.release(segment);
            }
            held
        };
        (0..3 * RUN).filter(enters).collect()
    };
    assert_eq!(can_hold(&rig), [0; 0]);
    assert!(rig.put(super::TABLE, b"large", &Value::plain(&vec![1; 5 * UNIT_BYTES])));
    assert!(rig.put(super::TABLE, b"small", &Value::plain(b"1")));
    let heads = |rig: &Rig| -> Vec<u32> { rig.arena.segments().iter().map(|segment| segment.0).collect() };
    assert_eq!(can_hold(&rig), heads(&rig));
    // Miri has no file to read again.
    if !cfg!(miri) {
        let (again, _) = warm(&rig.arena.image());
        assert_eq!(can_hold(&Rig::over(again)), heads(&rig));
    }
    while !rig.arena.segments().is_empty() {
        rig.evict();
    }
    assert_eq!(can_hold(&rig), [0; 0]);
}

/// A panic between the hold of a value and its sending, which a worker catches, kept the value's segment until the next
/// start: it was never emptied again, whatever died in it.
#[test]
fn a_row_that_a_panic_drops_is_unpinned() {
    let arenas = arenas();
    let (run, location) = run_with_a_row(&arenas);
    let row = arenas.of(location).row(location).unwrap();
    let other = Arc::new(Arenas::new(tiny(1 << 20), None));
    for look in [
        |arenas: &Arenas, run| arenas.of(run).writers(run) == 0,
        |arenas: &Arenas, run| arenas.of(run).close(run),
    ] {
        let panics = || {
            let _held = arenas.pin(&row, 0, 8).unwrap();
            std::panic::resume_unwind(Box::new("while it is held"));
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(other.of(run).writers(run), 0, "it is not another arena's");
        assert!(look(&arenas, run));
    }
    arenas.of(run).recycle(run);
}
