//! Random statements over random tables: an answer whose tags no change carries must be the same, byte for byte. The
//! changes are those that PostgreSQL's own stream tells.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use inspect::{Bound, Catalogue, Dependences, Verdict, inspect};

use crate::server::{Connection, PostgreSql};
use crate::statement::{Generator, Statement};
use crate::stream::{PUBLICATION, Stream};

/// Statements of a database, and changes of it.
const STATEMENTS: usize = 30;
const CHANGES: usize = 25;

/// SQLSTATE of a statement that took longer than `statement_timeout`.
const CANCELLED: &str = "57014";

/// Larger answers take the test's time, and say no more.
const ROWS_MAX: usize = 200;

/// How long databases are made, where SECONDS does not say it.
const SECONDS: u64 = 8;

#[test]
fn answers_without_a_changed_tag_stay_the_same() {
    run(&PostgreSql::start());
}

#[test]
fn answers_of_version_17_stay_the_same() {
    if let Some(server) = PostgreSql::start_17() {
        run(&server);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment says what to replay, and a clock when to stop"
)]
fn run(server: &PostgreSql) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("SEED").unwrap_or_else(|| fastrand::u64(..1_000_000));
    let seconds = Duration::from_secs(number("SECONDS").unwrap_or(SECONDS));
    let begin = Instant::now();
    let mut session = server.connect("me");
    let mut writer = server.connect("me");
    writer.rows("SET search_path = r");
    session.rows("SET search_path = r");
    session.rows("SET statement_timeout = '50ms'");
    let mut stream = Stream::begin(&mut writer);
    let mut seen = Seen::default();
    for seed in first.. {
        println!("SEED={seed}");
        database([&mut session, &mut writer], &mut stream, seed, &mut seen);
        if begin.elapsed() >= seconds {
            break;
        }
    }
    println!("{seen:?}");
    assert!(seen.guarded > 0 && seen.kept > 0 && seen.changed > 0, "{seen:?}");
}

/// What the test has seen, so that it is known to have tested something.
#[derive(Debug, Default)]
struct Seen {
    databases: usize,
    statements: usize,
    /// Statements with a tag of a column.
    guarded: usize,
    /// Answers of these that a change of one of their tables left alone.
    kept: usize,
    /// Answers that a change dropped, and those that were really others then.
    dropped: usize,
    changed: usize,
}

/// A statement with its answer.
struct Held {
    statement: Statement,
    dependences: Dependences,
    tags: BTreeSet<String>,
    answer: Vec<Vec<Option<String>>>,
}

fn database(sessions: [&mut Connection; 2], stream: &mut Stream, seed: u64, seen: &mut Seen) {
    let [session, writer] = sessions;
    let mut generator = Generator::new(seed);
    writer.rows("DROP SCHEMA IF EXISTS r CASCADE; CREATE SCHEMA r");
    for definition in generator.definitions() {
        writer.rows(&definition);
    }
    for _ in 0..15 {
        writer.rows(&generator.change());
    }
    stream.changes(writer);
    let statements =
        (0..STATEMENTS).filter_map(|_| held([&mut *session, &mut *writer], generator.statement(), seed));
    let mut all: Vec<Held> = statements.collect();
    seen.databases += 1;
    seen.statements += all.len();
    seen.guarded += all.iter().filter(|held| is_guarded(held)).count();
    for _ in 0..CHANGES {
        let change = generator.change();
        writer.rows(&change);
        let changes = stream.changes(writer);
        all.retain_mut(|held| {
            let reads = changes.iter().any(|change| change.is_of(&held.dependences));
            // That it reads no other table than was found is looked at now and then.
            if !reads && fastrand::u32(..10) > 0 {
                return true;
            }
            let Some(answer) = answer(session, &held.statement) else { return false };
            if changes.iter().any(|change| change.drops(&held.dependences, &held.tags)) {
                seen.dropped += 1;
                seen.changed += usize::from(answer != held.answer);
                held.answer = answer;
            } else {
                seen.kept += usize::from(reads);
                assert_eq!(
                    answer, held.answer,
                    "SEED={seed}\n{change}\n{}\n{:?}\n{:?}\n{changes:?}",
                    held.statement.sql, held.tags, held.dependences
                );
            }
            true
        });
    }
}

fn is_guarded(held: &Held) -> bool {
    held.tags.iter().any(|tag| tag.ends_with(".*"))
}

fn held(sessions: [&mut Connection; 2], statement: Statement, seed: u64) -> Option<Held> {
    let [session, writer] = sessions;
    let found = inspect(writer, &statement.sql, &[], PUBLICATION);
    let Ok(Verdict::Kept(dependences)) = found else {
        panic!("SEED={seed}\n{}\n{found:?}", statement.sql);
    };
    let bound: Vec<Bound<'_>> = statement.parameters.iter().map(|value| bound(value.as_deref())).collect();
    let tags = dependences.tags(&bound).unwrap().into_iter().collect();
    let answer = answer(session, &statement)?;
    Some(Held { statement, dependences, tags, answer })
}

fn bound(value: Option<&str>) -> Bound<'_> {
    value.map_or(Bound::Null, |value| Bound::Text(value.as_bytes()))
}

/// The rows in an order of their own, for no order is promised among equal ones. `None`: there are too many, or they
/// take too long.
fn answer(session: &mut Connection, statement: &Statement) -> Option<Vec<Vec<Option<String>>>> {
    let sql = statement.executable();
    match session.query(&sql) {
        Ok(rows) if rows.len() > ROWS_MAX => None,
        Ok(mut rows) => {
            rows.sort();
            Some(rows)
        }
        Err(failure) if failure.state == CANCELLED => None,
        Err(failure) => panic!("{}\n{sql}", failure.message),
    }
}
