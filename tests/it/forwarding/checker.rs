//! Many sessions read through a cache what they and others write, there and at the source itself.
//!
//! Each *team* has a schema of its own, and the same texts in all of them. Its *owner* alone writes there. So after
//! each write the source has one answer to each text, and a session that has written must get this one: a direct
//! connection asks for it. A write that went to the source itself is to be seen in a while. *Fillers* read the same
//! meanwhile, so that answers are under way when changes arrive. A standby that stalls holds commits back, so that
//! changes arrive before the source shows them. After each round all stands still, and every answer is compared.
//!
//! `SEED=n` replays a run as far as threads allow. `CHECKED_SECONDS=600` asks for a longer one.

mod standby;
mod texts;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::talk::{Answer, Talk};
use super::{SETTINGS, Shop};
use crate::drivers::place::Place;
use crate::sources::{psql, until};

use standby::Standby;
use texts::{DEFINITIONS, EMPTYING, KEYS, READS, TABLES, WRITES};

/// The usual run. The environment's `CHECKED_SECONDS` changes it.
const SECONDS: u64 = 16;

/// A round: then all is compared, and something breaks.
const ROUND: Duration = Duration::from_secs(4);

/// Texts that are read in a round: few, so that each comes often enough to be kept.
const TEXTS: usize = 8;

const TEAMS: u64 = 3;

/// How often a text is read until its answer is kept, if it ever is.
const KEPT_AFTER: u32 = 30;

/// Keys that are written into texts.
const LITERALS: i32 = 2;

/// How old an answer may be that does not come from before an own write: what `max_lag` says, and time for a machine
/// that does much else.
const LAG: Duration = Duration::from_secs(10);

/// How long a definition may take to be noticed: looks each 2 s, on such a machine.
const NOTICED: Duration = Duration::from_secs(12);

/// Definitions change seldom, for each drops all answers.
const DEFINITIONS_EACH: Duration = Duration::from_millis(1_500);

/// What a run came to.
#[derive(Debug, Default)]
struct Figures {
    writes: AtomicU64,
    /// Reads that had to be right at once.
    exact: AtomicU64,
    /// Reads that had to be right in a while, and how often it took more than one.
    later: AtomicU64,
    repeated: AtomicU64,
    fills: AtomicU64,
    definitions: AtomicU64,
    compared: AtomicU64,
}

fn count(counter: &AtomicU64) {
    // Relaxed: a count.
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The owner of a team's schema.
struct Owner<'r> {
    team: u64,
    through: Talk,
    direct: Talk,
    random: fastrand::Rng,
    reads: &'r [&'static str],
    figures: &'r Figures,
    /// Whoever writes, what was acknowledged is seen.
    is_exact: bool,
    /// Writes that the stream may not have brought yet are of before this moment.
    late_until: Option<Instant>,
    /// The same of definitions.
    noticed_until: Option<Instant>,
    /// What was written last, for who looks for an error.
    log: Vec<String>,
}

fn path(team: u64) -> String {
    format!("-c search_path=team_{team}")
}

impl<'r> Owner<'r> {
    fn new(run: &'r Run, team: u64, seed: u64) -> Self {
        let connect = |place: &Place| Talk::try_with(place, &path(team)).unwrap();
        Self {
            team,
            through: connect(&run.shop.through),
            direct: connect(&run.shop.direct),
            random: fastrand::Rng::with_seed(seed),
            reads: &run.reads,
            figures: &run.figures,
            is_exact: run.is_exact,
            late_until: None,
            noticed_until: None,
            log: Vec::new(),
        }
    }

    fn work(&mut self, until: Instant, defines: bool) {
        let mut defined = Instant::now();
        while Instant::now() < until {
            match self.random.u32(0..100) {
                0..30 => self.write_through(WRITES),
                30..40 if self.is_exact => self.write_under_a_kept_answer(),
                30..40 => self.write_directly(WRITES),
                41..43 if defines => self.write_through(EMPTYING),
                43 if defines => self.write_directly(EMPTYING),
                40 if defines && defined.elapsed() > DEFINITIONS_EACH => {
                    defined = Instant::now();
                    self.define();
                }
                _ => {}
            }
            for _ in 0..self.random.usize(1..8) {
                self.read();
            }
        }
    }

    fn chosen(&mut self, from: &[&str]) -> String {
        let text = from[self.random.usize(..from.len())];
        let mut key = || self.random.i32(1..=KEYS).to_string();
        text.replace("{id}", &key())
            .replace("{to}", &key())
            .replace("{y}", &key())
            .replace("{team}", &format!("p{}", self.team))
    }

    /// Runs statements one by one: what is prepared for two phases ends outside of any transaction. One that fails ends
    /// them, as in an application.
    fn run(&mut self, text: &str, where_from: &str, talk: impl Fn(&Self) -> &Talk) {
        self.log.push(format!("{where_from}: {text}"));
        let one_by_one = !text.starts_with("DO");
        let all: Vec<&str> = if one_by_one { text.split("; ").collect() } else { vec![text] };
        for sql in all {
            if talk(self).simple(sql).is_err() {
                let _none = talk(self).simple("ROLLBACK");
                break;
            }
        }
        count(&self.figures.writes);
    }

    /// Whatever was written before is seen from now on, also what went to the source itself.
    fn write_through(&mut self, texts: &[&str]) {
        let text = self.chosen(texts);
        self.run(&text, "through", |own| &own.through);
        self.late_until = None;
    }

    fn write_directly(&mut self, texts: &[&str]) {
        let text = self.chosen(texts);
        self.run(&text, "directly", |own| &own.direct);
        self.late_until = (!self.is_exact).then(|| Instant::now() + LAG);
    }

    /// Writes at the source while an answer is kept that may depend on it, and reads that at once.
    fn write_under_a_kept_answer(&mut self) {
        let (sql, key, way) = self.chosen_read();
        for _ in 0..KEPT_AFTER {
            let _kept = ask(&mut self.through, sql, key, way);
            if self.through.simple("SHOW sqlcached.last_answer") == Ok(vec!["cache".to_owned()]) {
                break;
            }
        }
        self.write_directly(WRITES);
        self.compare(sql, key, way);
    }

    fn define(&mut self) {
        let text = self.chosen(DEFINITIONS);
        self.run(&text, "defined", |own| &own.direct);
        count(&self.figures.definitions);
        self.noticed_until = Some(Instant::now() + NOTICED);
    }

    fn chosen_read(&mut self) -> (&'static str, i32, u32) {
        let sql = self.reads[self.random.usize(..self.reads.len())];
        (sql, self.random.i32(1..=KEYS), self.random.u32(..3))
    }

    fn read(&mut self) {
        let (sql, key, way) = self.chosen_read();
        self.compare(sql, key, way);
    }

    fn compare(&mut self, sql: &str, key: i32, way: u32) {
        let expected = ask(&mut self.direct, sql, key, way);
        let now = Instant::now();
        let end = [self.late_until, self.noticed_until].into_iter().flatten().max().filter(|end| *end > now);
        count(if end.is_some() { &self.figures.later } else { &self.figures.exact });
        loop {
            let found = ask(&mut self.through, sql, key, way);
            if found == expected {
                return;
            }
            let may_wait = end.is_some_and(|end| Instant::now() < end);
            assert!(
                may_wait,
                "team {} reads {sql} with {key} ({way})\nfound    {found:?}\nexpected {expected:?}\nafter\n{}",
                self.team,
                self.log[self.log.len().saturating_sub(12)..].join("\n")
            );
            count(&self.figures.repeated);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Asks in one of three ways.
fn ask(talk: &mut Talk, sql: &str, key: i32, way: u32) -> Answer {
    match way {
        // Each is a text of its own: of fewer, more are kept.
        0 => talk.simple(&literal(sql, key % LITERALS)),
        1 => talk.unprepared(sql, key),
        _ => talk.prepared(sql, key),
    }
}

fn literal(sql: &str, key: i32) -> String {
    sql.replace("$1::int[]", &format!("'{{{key},{}}}'::int[]", key + 1)).replace("$1", &key.to_string())
}

struct Run {
    shop: Shop,
    /// What is read in this round.
    reads: Vec<&'static str>,
    figures: Figures,
    /// What the source has committed is seen at once, whoever has written it.
    is_exact: bool,
}

impl Run {
    fn start(server: &str, random: &mut fastrand::Rng) -> Self {
        let root = if random.bool() { "true" } else { "false" };
        let made = (1..=TEAMS).fold(String::new(), |made, team| {
            format!("{made}CREATE SCHEMA team_{team}; SET search_path = team_{team}; {TABLES};")
        });
        let made = format!("{made} ALTER PUBLICATION cache SET (publish_via_partition_root = {root})");
        let shop = Shop::start_with(server, &made, SETTINGS, &[]);
        shop.follow();
        let is_exact = server.contains("freshness");
        Self { shop, reads: Vec::new(), figures: Figures::default(), is_exact }
    }

    /// Has the source be asked what each text depends on, however slow this machine is.
    fn warm(&self) {
        let count = |which: &str| {
            psql(&self.shop.daemon.place, &format!("SELECT count(*) FROM sqlcached_forwarded WHERE {which}"))
        };
        let known =
            || count("state = 'kept'") != "0" && count("state IN ('new', 'asked') AND forwarded > 2") == "0";
        for team in 1..=TEAMS {
            let mut talk = Talk::try_with(&self.shop.through, &path(team)).unwrap();
            until("texts are known", || {
                for sql in &self.reads {
                    (0..6).for_each(|turn| {
                        drop(ask(&mut talk, sql, turn % 2, 2 * (turn.unsigned_abs() / 2 % 2)));
                    });
                }
                known()
            });
        }
    }

    /// All teams work for a while; `defines`: they change definitions, too.
    fn work(&self, random: &mut fastrand::Rng, standby: &Standby, defines: bool) {
        let (until, stop) = (Instant::now() + ROUND, AtomicBool::new(false));
        let mut seeds: Vec<u64> = (0..=2 * TEAMS).map(|_| random.u64(..)).collect();
        thread::scope(|scope| {
            let mut stall = fastrand::Rng::with_seed(seeds.pop().unwrap());
            let stopped = &stop;
            let stalling = scope.spawn(move || standby.stall(&mut stall, stopped));
            let workers: Vec<_> = (1..=TEAMS)
                .flat_map(|team| {
                    let (own, others) = (seeds.pop().unwrap(), seeds.pop().unwrap());
                    [
                        scope.spawn(move || Owner::new(self, team, own).work(until, defines)),
                        scope.spawn(move || self.fill(team, others, until)),
                    ]
                })
                .collect();
            let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            stop.store(true, Ordering::Relaxed);
            stalling.join().unwrap();
            assert!(
                ended.iter().all(Result::is_ok),
                "an old answer was found: see above; {:?}",
                self.figures
            );
        });
    }

    /// Reads on and on, so that answers are under way whenever a change arrives.
    fn fill(&self, team: u64, seed: u64, until: Instant) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut talk = Talk::try_with(&self.shop.through, &path(team)).unwrap();
        while Instant::now() < until {
            let sql = self.reads[random.usize(..self.reads.len())];
            let _changing = ask(&mut talk, sql, random.i32(1..=KEYS), random.u32(..3));
            count(&self.figures.fills);
        }
    }

    /// Nobody writes, and all was applied: every answer is the source's.
    fn compare(&self) {
        self.shop.settle();
        for team in 1..=TEAMS {
            let connect = |place: &Place| Talk::try_with(place, &path(team)).unwrap();
            let (mut through, mut direct) = (connect(&self.shop.through), connect(&self.shop.direct));
            // A session's first read is forwarded, for its state is not known.
            through.must("SELECT 1 FROM item LIMIT 1");
            for sql in &self.reads {
                for (key, way) in (1..=KEYS).flat_map(|key| (0..3).map(move |way| (key, way))) {
                    let expected = ask(&mut direct, sql, key, way);
                    let found = ask(&mut through, sql, key, way);
                    assert_eq!(found, expected, "at rest, team {team} reads {sql} with {key} ({way})");
                    count(&self.figures.compared);
                }
            }
        }
    }

    /// Something breaks, and the source changes meanwhile: no answer of before may come back.
    fn fail(&mut self, random: &mut fastrand::Rng) {
        let changes = (1..=TEAMS).fold(String::new(), |all, team| {
            format!(
                "{all}SET synchronous_commit = local; UPDATE team_{team}.item SET ver = ver + 1; UPDATE team_{team}.note SET item_id = 3;"
            )
        });
        match random.u32(..3) {
            0 => {
                psql(
                    &self.shop.direct,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_replication WHERE application_name <> 'slow'",
                );
                psql(&self.shop.direct, &changes);
            }
            1 => {
                self.shop.daemon.daemon.kill();
                psql(&self.shop.direct, &changes);
                self.shop.daemon.daemon.restart();
            }
            _ => {
                assert!(self.shop.daemon.daemon.terminate().success());
                psql(&self.shop.direct, &changes);
                self.shop.daemon.daemon.restart();
            }
        }
        self.shop.follow();
    }
}

fn check(server: &str) {
    let seconds = std::env::var("CHECKED_SECONDS")
        .map_or(SECONDS, |text| text.parse().expect("CHECKED_SECONDS is a number"));
    let mut random = fastrand::Rng::with_seed(crate::seed());
    let mut run = Run::start(server, &mut random);
    let standby = Standby::of(&run.shop, server.contains("'commit'").then_some("cache"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut hits) = (0, 0);
    while Instant::now() < end {
        // Every other round is to be right at once.
        let defines = rounds % 2 == 1;
        run.reads = random.choose_multiple(READS.iter().copied(), TEXTS);
        run.warm();
        run.work(&mut random, &standby, defines);
        hits += run.shop.count("hits", "");
        println!("{}", run.shop.facts());
        if defines {
            run.shop.notice();
        }
        run.compare();
        run.fail(&mut random);
        run.compare();
        rounds += 1;
    }
    println!("{rounds} rounds, {hits} hits, {:?}", run.figures);
    assert!(hits > 0, "nothing was read from what is kept");
    standby.end(&run.shop);
}

/// Without a slot that stays: what was kept is not believed after a break.
#[test]
fn no_answer_is_older_than_promised() {
    check("cache 'auto'");
}

/// Every answer has what was committed before its read began.
#[test]
fn no_checked_answer_is_older_than_its_read() {
    check("cache 'auto', freshness 'checked'");
}

/// The same, where each commit waits for the cache.
#[test]
fn no_answer_is_older_than_a_commit_that_waited() {
    check("cache 'auto', freshness 'commit', standby_name 'cache'");
}

/// With one: what was kept is believed after a break, if nothing can have been missed.
#[test]
fn no_answer_is_older_than_promised_with_a_slot() {
    check("cache 'auto', slot 'cache'");
}
