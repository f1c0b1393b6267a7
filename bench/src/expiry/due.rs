//! A million rows that end in the same second: who waits, and when their memory is back.

use std::io::Write as _;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::clock;
use crate::failure::{Failure, Result};
use crate::load::{key, value};
use crate::report::{Figure, Report};
use crate::server::Server;
use crate::summary::{Summary, digits};

use super::Bench;
use super::others::Others;

/// Rows that end together.
const ROWS: u64 = 1_000_000;
/// Bytes of each value.
const VALUE_BYTES: usize = 32;
/// Room for all of them.
const MEMORY_MIB: u64 = 512;
/// Rows sent before their answers are read.
const BATCH: u64 = 500;
/// The rows end so long after the first was written; a machine that cannot write them meanwhile is too busy.
const LEAD_SECONDS: u64 = 25;
/// The time before the end that counts as undisturbed, and the one after it as disturbed.
const WINDOW_NS: u64 = 1_000_000_000;
/// Between the undisturbed time and the end.
const MARGIN_NS: u64 = 100_000_000;
/// How often the server is asked what it holds, before and after.
const GLANCE: Duration = Duration::from_millis(20);
/// Memory that is not back after this time is not waited for.
const PATIENCE_NS: u64 = 5_000_000_000;
/// Memory is back when no more than this part of it is left.
const LEFT: f64 = 0.05;
/// Keeps the keys apart from those of other parts.
const SPACE: u64 = 21;

/// What one repetition showed.
struct Seen {
    undisturbed_us: f64,
    disturbed_us: f64,
    /// Milliseconds until the memory was back; none if it was not waited for any longer.
    back_ms: Option<f64>,
}

/// Both servers in turn, each started again for each repetition.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut seen: Vec<(String, Vec<Seen>)> = Vec::new();
    for repetition in 0..bench.repetitions {
        for server in bench.start_both(MEMORY_MIB, report)? {
            report.progress(&format!("a million rows due: {}, {}", server.label, repetition + 1));
            let one = measure(&server)?;
            keep(&one, &server.label, repetition, report);
            match seen.iter_mut().find(|(label, _)| *label == server.label) {
                Some((_, all)) => all.push(one),
                None => seen.push((server.label.clone(), vec![one])),
            }
        }
    }
    let rows: Vec<Vec<String>> = seen.iter().map(|(label, all)| row(label, all)).collect();
    report.say("\n## A million rows due in the same second\n");
    report.say(&format!(
        "{ROWS} rows of 16 B + {VALUE_BYTES} B with one absolute expiry time; another client reads and writes two \
         thousand times a second. p99 of its waits in the second before and in the second after, and the time until no \
         more than {:.0} % of the rows' memory is left. Medians of {} repetitions; quartiles in brackets.",
        LEFT * 100.0,
        bench.repetitions
    ));
    report.table(
        &["server", "p99 before, us", "p99 after, us", "ratio", "reach", "memory back, ms", "reach"],
        &rows,
    );
    Ok(())
}

fn keep(seen: &Seen, server: &str, repetition: usize, report: &mut Report) {
    let line = "a million due";
    for (metric, value) in [
        ("p99_before_us", seen.undisturbed_us),
        ("p99_after_us", seen.disturbed_us),
        ("memory_back_ms", seen.back_ms.unwrap_or(f64::INFINITY)),
    ] {
        report.figure(&Figure { line, server, repetition, metric, value });
    }
}

fn row(label: &str, all: &[Seen]) -> Vec<String> {
    let of = |figure: fn(&Seen) -> f64| all.iter().map(figure).collect::<Vec<f64>>();
    let (before, after) = (of(|seen| seen.undisturbed_us), of(|seen| seen.disturbed_us));
    let ratio = Summary::of_ratios(&after, &before);
    let back = Summary::of(&of(|seen| seen.back_ms.unwrap_or(f64::INFINITY)));
    let verdict = |holds: bool| if holds { "holds" } else { "missed" };
    let back_text = if back.median.is_finite() {
        digits(back.median)
    } else {
        format!("more than {}", PATIENCE_NS / 1_000_000)
    };
    vec![
        label.to_owned(),
        digits(Summary::of(&before).median),
        digits(Summary::of(&after).median),
        format!("{} ({}-{})", digits(ratio.median), digits(ratio.low), digits(ratio.high)),
        format!("<= 2 {}", verdict(ratio.median <= 2.0)),
        back_text,
        format!("<= 1,000 {}", verdict(back.median <= 1_000.0)),
    ]
}

/// Fills, and watches the second in which all of it ends.
fn measure(server: &Server) -> Result<Seen> {
    let mut client = Client::connect(server.nearest())?;
    let empty = held(&mut client, server.is_ours())?;
    let due_second = clock::unix_ns() / 1_000_000_000 + LEAD_SECONDS;
    fill(&mut client, due_second)?;
    let full = held(&mut client, server.is_ours())?.saturating_sub(empty);
    let due = clock::now_ns() + (due_second * 1_000_000_000).saturating_sub(clock::unix_ns());
    let before = due.saturating_sub(WINDOW_NS + MARGIN_NS)..due - MARGIN_NS;
    if clock::now_ns() > before.start {
        return Err(Failure::new(format!("a million rows took more than {LEAD_SECONDS} s to write")));
    }
    thread::sleep(Duration::from_nanos(before.start - clock::now_ns()));
    let others = Others::begin(server.nearest())?;
    let back_ms = watch(&mut client, server.is_ours(), due, empty + portion(full))?;
    let waits = others.end()?;
    let after: Range<u64> = due..due + WINDOW_NS;
    Ok(Seen { undisturbed_us: waits.p99_us(&before), disturbed_us: waits.p99_us(&after), back_ms })
}

/// What may be left of so many bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a number of bytes")]
fn portion(bytes: u64) -> u64 {
    (bytes as f64 * LEFT) as u64
}

/// Asks what is held until it is no more than this and the disturbed time is over; milliseconds after the end.
fn watch(client: &mut Client, ours: bool, due: u64, least: u64) -> Result<Option<f64>> {
    let mut back = None;
    loop {
        let now = clock::now_ns();
        if back.is_none() && held(client, ours)? <= least {
            back = Some(clock::now_ns().saturating_sub(due) as f64 / 1e6);
        }
        if now > due + WINDOW_NS && (back.is_some() || now > due + PATIENCE_NS) {
            return Ok(back);
        }
        thread::sleep(GLANCE);
    }
}

/// Bytes that rows take: whole segments of ours; of memcached's items, for its pages stay where they are.
fn held(client: &mut Client, ours: bool) -> Result<u64> {
    let (subject, name) = if ours { ("slabs", "total_malloced") } else { ("", "bytes") };
    let found = client.stats(subject)?.into_iter().find(|(found, _)| found == name);
    Ok(found.and_then(|(_, bytes)| bytes.parse().ok()).unwrap_or(0))
}

fn fill(client: &mut Client, due_second: u64) -> Result<()> {
    let value = value(VALUE_BYTES);
    for first in (0..ROWS).step_by(usize::try_from(BATCH).unwrap_or(usize::MAX)) {
        let batch = first..ROWS.min(first + BATCH);
        for number in batch.clone() {
            client.out.extend_from_slice(b"set ");
            client.out.extend_from_slice(&key(SPACE, number));
            // A write to a vector cannot fail.
            let _ = write!(client.out, " 0 {due_second} {VALUE_BYTES}\r\n");
            client.out.extend_from_slice(&value);
            client.out.extend_from_slice(b"\r\n");
        }
        client.send()?;
        for _ in batch {
            client.expect(b"STORED")?;
        }
    }
    Ok(())
}
