//! A content management system caches the fragments of its pages. Something is edited every half a second, and the
//! cache must not show what was. memcached's users throw away more than was edited; a statement throws away just that.
//!
//! Views and edits come in the same order for all. What the cache costs is measured. Making a fragment again is not
//! done but counted, with a price for each: so the figures do not depend on a database that nobody has.

mod fragments;
mod model;

use hashbrown::HashSet;

use crate::clock;
use crate::failure::{Failure, Result};
use crate::histogram::Histogram;
use crate::plot::{Axis, Chart, Series};
use crate::report::{Figure, Report};
use crate::server::{Kind, Server};
use crate::summary::{Summary, digits, thousands};

use super::lab::{Lab, interleaved};
use fragments::{Fragments, Invalidation};
use model::{Site, VIEWS_PER_EDIT, VIEWS_PER_SECOND};

/// Memory limit of each cache.
const MEMORY_MIB: u64 = 512;
/// What making a fragment costs the application and its database.
const MAKING_NS: u64 = 5_000_000;
/// The same in milliseconds.
const MAKING_MS: f64 = MAKING_NS as f64 / 1e6;
/// Seconds of site time that pass before anything counts: the caches fill.
const WARM_UP_SECONDS: u64 = 60;
/// Seconds of site time drawn.
const DRAWN_SECONDS: usize = 120;

/// One cache's repetition.
#[derive(Clone, Debug, Default)]
struct Outcome {
    views: u64,
    made: u64,
    /// Fragments served although they had been edited.
    stale: u64,
    /// Time of a page: what the cache took as measured, and what was made at its price.
    pages: Histogram,
    /// Time of a page in the cache alone.
    cache: Histogram,
    edits: Histogram,
    server_cpu_ns: u64,
    /// Fragments made in each second.
    by_second: Vec<f64>,
}

/// A cache and how it is told of edits.
struct Subject<'s> {
    server: &'s Server,
    invalidation: Invalidation,
    label: String,
    outcomes: Vec<Outcome>,
}

/// Plays the site's time on each cache.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let servers = lab.start_all(&[Kind::Memcached], &lab.setup(MEMORY_MIB), report);
    let seconds = lab.effort.of(60, 180, 600);
    report.say(&format!(
        "\n{} pages in {} sections for {} users of {} roles; five fragments a page, asked for with one `get`; \
         {VIEWS_PER_SECOND} views and {} edits a second, of 20 edits 15 of a page (its content, its section's navigation), 4 \
         of a user, 1 of the header. Making a fragment is counted as {MAKING_MS} ms. {seconds} s of site time after \
         {WARM_UP_SECONDS} s to fill the cache.",
        model::PAGES,
        model::SECTIONS,
        model::USERS,
        model::ROLES,
        VIEWS_PER_SECOND / VIEWS_PER_EDIT
    ));
    let mut subjects = Vec::new();
    for server in &servers {
        for invalidation in Invalidation::of(server) {
            let label = invalidation.label(&server.label);
            subjects.push(Subject { server, invalidation, label, outcomes: Vec::new() });
        }
    }
    // What is made is the same in each repetition; only times differ.
    let repetitions = lab.repetitions.min(lab.effort.of(1, 3, 3));
    interleaved(repetitions, &mut subjects, |subject, repetition| {
        let outcome = play(subject, seconds)?;
        report.progress(&format!("{}: {} fragments made", subject.label, thousands(outcome.made as f64)));
        keep(&subject.label, repetition, &outcome, report);
        subject.outcomes.push(outcome);
        Ok(())
    })?;
    table(&subjects, report);
    report.picture("3-load", load_over_time(&subjects)?);
    match subjects.iter().flat_map(|subject| &subject.outcomes).map(|outcome| outcome.stale).sum() {
        0 => Ok(()),
        stale => Err(Failure::new(format!("{stale} fragments were served after they had been edited"))),
    }
}

/// The site's time on one cache. Beside it stands a list of what it may hold, which finds what is served too long.
fn play(subject: &Subject<'_>, seconds: u64) -> Result<Outcome> {
    let mut cache = Fragments::open(subject.server, subject.invalidation)?;
    let mut site = Site::new();
    let mut fresh = HashSet::new();
    let mut outcome = Outcome::default();
    let mut cpu = subject.server.cpu()?;
    for view in 0..(WARM_UP_SECONDS + seconds) * VIEWS_PER_SECOND {
        if view == WARM_UP_SECONDS * VIEWS_PER_SECOND {
            outcome = Outcome::default();
            cpu = subject.server.cpu()?;
        }
        let (edit, view) = site.next();
        let mut edit_ns = 0;
        if let Some(edit) = edit {
            let began = clock::now_ns();
            cache.edited(edit)?;
            edit_ns = clock::now_ns() - began;
            fresh.retain(|fragment| !edit.touches(fragment));
        }
        let wanted = view.fragments();
        let began = clock::now_ns();
        let missing = cache.get(&wanted)?;
        if !missing.is_empty() {
            cache.set(&missing)?;
        }
        let took = clock::now_ns() - began;
        outcome.stale +=
            wanted.iter().filter(|one| !missing.contains(*one) && !fresh.contains(*one)).count() as u64;
        fresh.extend(missing.iter().copied());
        outcome.view(took, missing.len() as u64, edit.map(|_| edit_ns));
    }
    outcome.server_cpu_ns = subject.server.cpu_since(&cpu)?;
    Ok(outcome)
}

impl Outcome {
    fn view(&mut self, cache_ns: u64, made: u64, edit_ns: Option<u64>) {
        if self.views.is_multiple_of(VIEWS_PER_SECOND) {
            self.by_second.push(0.0);
        }
        if let Some(second) = self.by_second.last_mut() {
            *second += made as f64;
        }
        self.views += 1;
        self.made += made;
        self.cache.record(cache_ns);
        self.pages.record(cache_ns + made * MAKING_NS);
        if let Some(ns) = edit_ns {
            self.edits.record(ns);
        }
    }
}

fn keep(server: &str, repetition: usize, outcome: &Outcome, report: &mut Report) {
    let figures = [
        ("fragments_made", outcome.made as f64),
        ("page_p50_ms", outcome.pages.percentile(0.5) as f64 / 1e6),
        ("page_p99_ms", outcome.pages.percentile(0.99) as f64 / 1e6),
        ("cache_p50_us", outcome.cache.percentile(0.5) as f64 / 1e3),
        ("cache_p99_us", outcome.cache.percentile(0.99) as f64 / 1e3),
        ("edit_p50_us", outcome.edits.percentile(0.5) as f64 / 1e3),
        ("server_cpu_us_a_page", outcome.server_cpu_ns as f64 / 1e3 / outcome.views.max(1) as f64),
    ];
    for (metric, value) in figures {
        report.figure(&Figure { line: "site", server, repetition, metric, value });
    }
}

fn table(subjects: &[Subject<'_>], report: &mut Report) {
    let median = |subject: &Subject<'_>, figure: &dyn Fn(&Outcome) -> f64| {
        digits(Summary::of(&subject.outcomes.iter().map(figure).collect::<Vec<_>>()).median)
    };
    let rows: Vec<Vec<String>> = subjects
        .iter()
        .map(|subject| {
            vec![
                subject.label.clone(),
                median(subject, &|one| one.made as f64),
                median(subject, &|one| 100.0 * one.made as f64 / (5 * one.views.max(1)) as f64),
                median(subject, &|one| one.pages.percentile(0.5) as f64 / 1e6),
                median(subject, &|one| one.pages.percentile(0.99) as f64 / 1e6),
                median(subject, &|one| one.by_second.iter().copied().fold(0.0, f64::max)),
                median(subject, &|one| one.edits.percentile(0.5) as f64 / 1e3),
                median(subject, &|one| one.server_cpu_ns as f64 / 1e3 / one.views.max(1) as f64),
            ]
        })
        .collect();
    let head = [
        "who",
        "fragments made",
        "% of those shown",
        "page p50 ms",
        "p99 ms",
        "most made in a second",
        "an edit, us",
        "server CPU us a page",
    ];
    report.table(&head, &rows);
}

/// What the application has to make, second by second: the same in each repetition.
fn load_over_time(subjects: &[Subject<'_>]) -> Result<String> {
    let line = |subject: &Subject<'_>| {
        let seconds =
            subject.outcomes.first().map(|outcome| outcome.by_second.as_slice()).unwrap_or_default();
        let work = |made: &f64| Summary::of(&[made * MAKING_MS / 1e3]);
        let points = seconds.iter().take(DRAWN_SECONDS).enumerate();
        let points = points.map(|(second, made)| (second as f64, work(made))).collect();
        Series { label: subject.label.clone(), points }
    };
    let chart = Chart {
        title: "Making fragments again: load on the application".into(),
        x: Axis::linear("seconds"),
        y: Axis::linear("processors busy making fragments"),
        series: subjects.iter().map(line).collect(),
        walls: Vec::new(),
    };
    chart.svg()
}
