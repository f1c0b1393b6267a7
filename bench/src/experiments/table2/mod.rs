//! 100,000 fragments of 30,000 pages for 1,000 users: everything expires, one page does, one user does.
//!
//! memcached cannot find what belongs to a page. An application flushes everything and makes it again, or keeps an
//! index of keys of its own and deletes one by one or in a batch; here that index is free. Redis keeps the index in
//! sets, as frameworks' tagged caches do. The others have a statement for it.

mod cache;
mod key_value;
mod measure;
mod statements;

use crate::failure::Result;
use crate::pages::{self, Fragment};
use crate::plot::Bars;
use crate::report::Report;
use crate::server::{Kind, Server};
use crate::summary::{Summary, digits, thousands};

use super::lab::{Lab, interleaved};
use cache::Owner;
use measure::{Cost, Subject, Trial};

/// Memory limit of each cache.
const MEMORY_MIB: u64 = 256;
/// Clients that read while rows expire.
const READERS: usize = 8;
/// What applications without an index do to expire a page.
const COARSE: &str = "memcached, flush and refill";
/// The tables' head.
const HEAD: [&str; 5] = ["who", "CPU us", "wall us (quartiles)", "p99 us", "less CPU than flush and refill"];

/// Measures everything, pages and users, idle and beside readers.
pub(super) fn run(lab: &Lab, report: &mut Report) -> Result<()> {
    let peers = [Kind::Memcached, Kind::Redis, Kind::PostgreSql, Kind::MariaDb];
    let servers = lab.start_all(&peers, &lab.setup(MEMORY_MIB), report);
    report.say(&format!(
        "\n{} rows of {} pages and {} users, both indexed; one client over TCP, statements prepared; SQLite in this \
         process. The CPU of a client that keeps an index of keys is not counted.",
        thousands(pages::ROWS as f64),
        thousands(pages::PAGES as f64),
        thousands(pages::USERS as f64)
    ));
    let all = pages::fragments();
    let mut subjects = subjects(&servers, &all, report)?;
    let coarse = everything(lab, &mut subjects, &all, report)?;
    for owner in [Owner::Page, Owner::User] {
        idle(lab, owner, &mut subjects, &all, coarse.as_ref(), report)?;
    }
    for owner in [Owner::Page, Owner::User] {
        beside_readers(lab, owner, &mut subjects, &all, report)?;
    }
    Ok(())
}

fn subjects<'a>(servers: &'a [Server], all: &'a [Fragment], report: &mut Report) -> Result<Vec<Subject<'a>>> {
    let mut subjects = Vec::new();
    for server in servers {
        for way in cache::ways(server) {
            subjects.push(Subject::on_server(server, way)?);
        }
    }
    subjects.push(Subject::sqlite()?);
    for subject in subjects.iter_mut().filter(|subject| subject.owns_data) {
        report.progress(&format!("fill {}", subject.label));
        subject.cache.define()?;
        subject.cache.refill(all)?;
        subject.cache.settle()?;
    }
    Ok(subjects)
}

/// Everything expires and comes back; what that costs memcached is the price of coarse expiry.
fn everything(
    lab: &Lab,
    subjects: &mut [Subject<'_>],
    all: &[Fragment],
    report: &mut Report,
) -> Result<Option<Vec<Cost>>> {
    let mut owners: Vec<&mut Subject<'_>> = subjects.iter_mut().filter(|subject| subject.owns_data).collect();
    let mut costs: Vec<(Vec<Cost>, Vec<Cost>)> = vec![Default::default(); owners.len()];
    let mut numbered: Vec<_> = owners.iter_mut().zip(&mut costs).collect();
    // Filling a hundred thousand rows again takes seconds; a few are enough for a figure of seconds.
    interleaved(
        lab.repetitions.min(lab.effort.of(1, 3, 5)),
        &mut numbered,
        |(subject, (expiries, refills)), repetition| {
            expiries.push(subject.timed(|cache| cache.expire_all())?);
            refills.push(subject.timed(|cache| cache.refill(all))?);
            report.progress(&format!("everything: {}", subject.label));
            for (metric, cost) in [("expire", expiries.last()), ("refill", refills.last())] {
                measure::keep("everything", &subject.label, repetition, metric, cost, report);
            }
            Ok(())
        },
    )?;
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for (subject, (expiries, refills)) in owners.iter().zip(&costs) {
        let of = |costs: &[Cost], figure: fn(&Cost) -> f64| {
            digits(Summary::of(&costs.iter().map(figure).collect::<Vec<_>>()).median / 1e3)
        };
        rows.push(vec![
            subject.server_label().to_owned(),
            of(expiries, |cost| cost.wall_us),
            of(expiries, |cost| cost.cpu_us),
            of(refills, |cost| cost.wall_us),
            of(refills, |cost| cost.cpu_us),
        ]);
        let milliseconds: Vec<f64> = expiries.iter().map(|cost| cost.wall_us / 1e3).collect();
        bars.push((subject.server_label().to_owned(), Summary::of(&milliseconds)));
    }
    report.say("\n### Everything\n");
    report.table(&["who", "expire ms", "CPU ms", "refill ms", "CPU ms"], &rows);
    report.picture(
        "2-everything",
        Bars { title: "Expire 100,000 rows: wall time".into(), unit: "ms", rows: bars }.svg()?,
    );
    let memcached = owners.iter().position(|subject| subject.server_label() == Kind::Memcached.label());
    Ok(memcached.and_then(|index| costs.get(index)).map(|(expiries, refills)| {
        expiries.iter().zip(refills).map(|(expiry, refill)| expiry.plus(*refill)).collect()
    }))
}

/// One owner's rows expire while nobody else is served.
fn idle(
    lab: &Lab,
    owner: Owner,
    subjects: &mut [Subject<'_>],
    all: &[Fragment],
    coarse: Option<&Vec<Cost>>,
    report: &mut Report,
) -> Result<()> {
    let count = owner.count(lab.effort);
    interleaved(lab.repetitions, subjects, |subject, repetition| {
        let trial = Trial { owner, count, repetition, readers: 0 };
        subject.expire(&trial, all, report)
    })?;
    report.progress(owner.name());
    let price = coarse.map(|costs| median(costs, |cost| cost.cpu_us));
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    if let Some(costs) = coarse {
        rows.push(row(COARSE, costs, None));
        bars.push((COARSE.to_owned(), summary(costs, |cost| cost.wall_us)));
    }
    for subject in subjects {
        let costs = std::mem::take(&mut subject.costs);
        rows.push(row(&subject.label, &costs, price));
        bars.push((subject.label.clone(), summary(&costs, |cost| cost.wall_us)));
    }
    report.say(&format!("\n### {}\n", owner.title()));
    report.table(&HEAD, &rows);
    let title = format!("{}: wall time of one client", owner.title());
    report.picture(&format!("2-{}", owner.name()), Bars { title, unit: "us", rows: bars }.svg()?);
    Ok(())
}

/// The same while others read pages from the same rows.
fn beside_readers(
    lab: &Lab,
    owner: Owner,
    subjects: &mut [Subject<'_>],
    all: &[Fragment],
    report: &mut Report,
) -> Result<()> {
    let count = owner.count(lab.effort);
    let mut able: Vec<&mut Subject<'_>> =
        subjects.iter_mut().filter(|subject| subject.server.is_some()).collect();
    interleaved(lab.repetitions, &mut able, |subject, repetition| {
        let trial = Trial { owner, count, repetition, readers: READERS };
        subject.expire(&trial, all, report)
    })?;
    report.progress(&format!("{}, {READERS} readers", owner.name()));
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for subject in able {
        let costs = std::mem::take(&mut subject.costs);
        let wall = summary(&costs, |cost| cost.wall_us);
        rows.push(vec![
            subject.label.clone(),
            spread(wall),
            digits(median(&costs, |cost| cost.p99_us)),
            thousands(median(&costs, |cost| cost.reads_per_second)),
            digits(median(&costs, |cost| cost.read_p99_us)),
        ]);
        bars.push((subject.label.clone(), wall));
    }
    report.say(&format!("\n### {} while {READERS} clients read pages\n", owner.title()));
    report.table(&["who", "wall us (quartiles)", "p99 us", "pages read/s", "their p99 us"], &rows);
    let title = format!("{} beside {READERS} readers: wall time", owner.title());
    report.picture(&format!("2-{}-readers", owner.name()), Bars { title, unit: "us", rows: bars }.svg()?);
    Ok(())
}

fn row(label: &str, costs: &[Cost], price: Option<f64>) -> Vec<String> {
    let cpu = median(costs, |cost| cost.cpu_us);
    vec![
        label.to_owned(),
        digits(cpu),
        spread(summary(costs, |cost| cost.wall_us)),
        digits(median(costs, |cost| cost.p99_us)),
        price.map(|price| format!("{} times", digits(price / cpu))).unwrap_or_default(),
    ]
}

fn spread(Summary { median, low, high }: Summary) -> String {
    format!("{} ({}-{})", digits(median), digits(low), digits(high))
}

fn summary(costs: &[Cost], figure: fn(&Cost) -> f64) -> Summary {
    Summary::of(&costs.iter().map(figure).collect::<Vec<_>>())
}

fn median(costs: &[Cost], figure: fn(&Cost) -> f64) -> f64 {
    summary(costs, figure).median
}
