//! The search for an order: Wing and Gong's, with Lowe's memory of configurations. It tries every operation that may
//! come next, and drops what it has tried before.

use std::collections::HashSet;

use super::row::State;
use super::{Answer, Event};

/// Operations of one window: a configuration has a bit for each.
const WINDOW_MAX: usize = 64;

/// The states in which a window may have ended that began in one of these; none: no order explains it.
pub(crate) fn ends(begins: &HashSet<State>, events: &[Event]) -> HashSet<State> {
    assert!(events.len() <= WINDOW_MAX, "{} operations in a window", events.len());
    let sure = |(at, event): (usize, &Event)| if event.answer == Answer::Unknown { 0 } else { 1_u64 << at };
    let all = events.iter().enumerate().map(sure).fold(0, |all, bit| all | bit);
    let (mut tried, mut ends) = (HashSet::new(), HashSet::new());
    let mut open: Vec<(u64, State)> = begins.iter().map(|state| (0, state.clone())).collect();
    while let Some((done, state)) = open.pop() {
        if !tried.insert((done, state.clone())) {
            continue;
        }
        if done & all == all {
            ends.insert(state.clone());
        }
        for at in candidates(events, done) {
            if let Some(next) = state.after(&events[at].op, &events[at].answer) {
                open.push((done | 1 << at, next));
            }
        }
    }
    ends
}

/// The operations that may come next, when those of these bits are done.
fn candidates(events: &[Event], done: u64) -> impl Iterator<Item = usize> {
    let left = move |at: usize| done & (1 << at) == 0;
    let waits =
        |(at, event): (usize, &Event)| (left(at) && event.answer != Answer::Unknown).then_some(event.ended);
    // What began after another had ended comes after it.
    let first_end = events.iter().enumerate().filter_map(waits).min().unwrap_or(u64::MAX);
    // What was under way when the server died happened before its next start, or not at all.
    let is_over = move |event: &Event| {
        let later = |(at, other): (usize, &Event)| !left(at) && other.began > event.ended;
        event.answer == Answer::Unknown && events.iter().enumerate().any(later)
    };
    let may_come =
        move |&(at, event): &(usize, &Event)| left(at) && event.began < first_end && !is_over(event);
    events.iter().enumerate().filter(may_come).map(|(at, _)| at)
}

/// How many of the operations, in the order of their beginning, no order explains any more.
pub(crate) fn first_unexplained(begins: &HashSet<State>, events: &[Event]) -> usize {
    let is_explained = |upto: &usize| {
        let cut = events.iter().take(*upto).map(|event| event.ended).max().unwrap_or(0);
        let before: Vec<Event> = events.iter().filter(|event| event.ended <= cut).cloned().collect();
        !ends(begins, &before).is_empty()
    };
    (1..=events.len()).find(|upto| !is_explained(upto)).unwrap_or(0)
}
