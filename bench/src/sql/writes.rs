//! Upserts into a table with two indexes, and the deletion of a page and of a user, beside PostgreSQL and beside
//! memcached clients that know every key.

use crate::client::Client;
use crate::clock;
use crate::failure::{Context, Failure, Result};
use crate::pages::{self, Fragment};
use crate::postgres::Wire;
use crate::protocol::Protocol;
use crate::report::Report;
use crate::server::{Kind, Server};

use super::{Bench, Column, Goal, HEAD, keep, rows};

/// Operations of one repetition.
const UPSERTS: u64 = 2_000;
const PAGES_TIMED: u64 = 300;
const USERS_TIMED: u64 = 50;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Upsert,
    Page,
    User,
}

const LINES: [Line; 3] = [Line::Upsert, Line::Page, Line::User];

/// The prepared statements by the names that lines give them.
const STATEMENTS: [(&str, &str); 3] = [
    (
        "upsert",
        "INSERT INTO fragments (key, page_id, user_id, body) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO UPDATE \
         SET page_id = excluded.page_id, user_id = excluded.user_id, body = excluded.body",
    ),
    ("page", "DELETE FROM fragments WHERE page_id = $1"),
    ("user", "DELETE FROM fragments WHERE user_id = $1"),
];

/// A server with the data set in it.
struct Subject<'s> {
    server: &'s Server,
    way: Way,
    column: Column,
}

/// How statements, or what stands for them, get there.
enum Way {
    Sql(Wire),
    Memcached(Client),
}

impl Line {
    fn name(self) -> &'static str {
        match self {
            Self::Upsert => "upsert, two indexes",
            Self::Page => "delete a page (3.3 rows)",
            Self::User => "delete a user (100 rows)",
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Self::Upsert => "upsert",
            Self::Page => "page",
            Self::User => "user",
        }
    }

    /// How many operations a repetition has, and how many different ones there are.
    fn counts(self) -> (u64, u64) {
        match self {
            Self::Upsert => (UPSERTS, pages::ROWS),
            Self::Page => (PAGES_TIMED, pages::PAGES),
            Self::User => (USERS_TIMED, pages::USERS),
        }
    }

    fn owner(self, fragment: &Fragment) -> u64 {
        match self {
            Self::Upsert => fragment.number,
            Self::Page => fragment.page,
            Self::User => fragment.user,
        }
    }

    fn goals(self, kind: &Kind) -> Vec<Goal> {
        let (postgresql, memcached) = match self {
            Self::Upsert => (0.4, None),
            Self::Page => (0.4, Some(1.2)),
            Self::User => (0.25, Some(0.5)),
        };
        let beside = memcached.map(|reach| Goal::new(kind.label(), "memcached", reach));
        [Goal::new(kind.label(), "postgresql", postgresql)].into_iter().chain(beside).collect()
    }
}

/// Measures every line and adds the table.
pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let servers = bench.start(&bench.everyone(), report);
    let all = pages::fragments();
    let mut subjects = Vec::new();
    for server in &servers {
        report.progress(&format!("fill {}", server.label));
        subjects.push(Subject::fill(server, &all)?);
    }
    let mut table = Vec::new();
    for line in LINES {
        table.extend(measure(bench, line, &mut subjects, &all, report)?);
    }
    report.say("\n## Writes\n");
    report.say(&format!(
        "{} rows, {} pages, {} users, both indexed; each statement prepared once, one client over TCP. PostgreSQL's \
         table is UNLOGGED. memcached: the keys are known to the client, and their deletes sent in one write.",
        pages::ROWS,
        pages::PAGES,
        pages::USERS
    ));
    report.table(&HEAD, &table);
    Ok(())
}

fn measure(
    bench: &Bench,
    line: Line,
    subjects: &mut [Subject<'_>],
    all: &[Fragment],
    report: &mut Report,
) -> Result<Vec<Vec<String>>> {
    let able = |subject: &Subject<'_>| line != Line::Upsert || matches!(subject.way, Way::Sql(_));
    for repetition in 0..bench.repetitions {
        for turn in 0..subjects.len() {
            let index = (turn + repetition) % subjects.len();
            let Some(subject) = subjects.get_mut(index).filter(|subject| able(subject)) else { continue };
            subject.measure(line, all, repetition as u64)?;
            keep(line.name(), &subject.column, repetition, report);
        }
    }
    report.progress(line.name());
    let goals: Vec<Goal> = bench.ours.iter().flat_map(|kind| line.goals(kind)).collect();
    let mut columns = Vec::new();
    for subject in subjects.iter_mut().filter(|subject| able(subject)) {
        let empty = Column { subject: subject.column.subject.clone(), ..Column::default() };
        columns.push(std::mem::replace(&mut subject.column, empty));
    }
    Ok(rows(line.name(), &columns, &goals, |column| &column.cpu_ns))
}

impl<'s> Subject<'s> {
    fn fill(server: &'s Server, all: &[Fragment]) -> Result<Self> {
        let way = match &server.sql {
            Some(address) => {
                let mut wire = Wire::connect(address)?;
                let unlogged = server.protocol == Protocol::Postgres;
                for definition in pages::DEFINITIONS {
                    let table = if unlogged { "CREATE UNLOGGED TABLE" } else { "CREATE TABLE" };
                    wire.run(&definition.replace("CREATE TABLE", table))?;
                }
                for (name, text) in STATEMENTS {
                    wire.prepare(name, text)?;
                }
                Way::Sql(wire)
            }
            None => Way::Memcached(Client::connect(&server.address)?),
        };
        let column = Column { subject: server.label.clone(), ..Column::default() };
        let mut subject = Self { server, way, column };
        subject.refill(all)?;
        if let Way::Sql(wire) = &mut subject.way
            && server.protocol == Protocol::Postgres
        {
            wire.run("VACUUM ANALYZE fragments")?;
        }
        Ok(subject)
    }

    fn refill(&mut self, rows: &[Fragment]) -> Result<()> {
        match &mut self.way {
            Way::Sql(wire) => {
                for statement in pages::inserts(rows) {
                    wire.run(&statement)?;
                }
            }
            Way::Memcached(client) => {
                for rows in rows.chunks(1_000) {
                    for row in rows {
                        let body = row.body();
                        let head = format!("set {} 0 0 {}\r\n{body}\r\n", row.key(), body.len());
                        client.out.extend_from_slice(head.as_bytes());
                    }
                    client.send()?;
                    for _ in rows {
                        expect(client, b"STORED")?;
                    }
                }
            }
        }
        Ok(())
    }

    /// One repetition; what it deleted comes back afterwards.
    fn measure(&mut self, line: Line, all: &[Fragment], repetition: u64) -> Result<()> {
        let (count, owners) = line.counts();
        let first = repetition * count % owners;
        let chosen = pages::chosen(all, |row| (first..first + count).contains(&line.owner(row)));
        let batches: Vec<Vec<Fragment>> = (first..first + count)
            .map(|owner| pages::chosen(&chosen, |row| line.owner(row) == owner))
            .collect();
        let before = self.server.cpu_ns()?;
        let began = clock::now_ns();
        let mut affected = 0;
        for (owner, rows) in (first..).zip(&batches) {
            affected += self.way.once(line, owner, rows).context(|| self.server.label.clone())?;
        }
        let wall = clock::now_ns() - began;
        let cpu = self.server.cpu_ns()? - before;
        if affected != chosen.len() as u64 {
            return Err(Failure::new(format!("{}: {affected} rows for {}", line.name(), chosen.len())));
        }
        if line != Line::Upsert {
            self.refill(&chosen)?;
        }
        self.column.cpu_ns.push(cpu as f64 / count as f64);
        self.column.per_second.push(count as f64 / clock::seconds(wall));
        Ok(())
    }
}

impl Way {
    /// One operation; how many rows it wrote or deleted.
    fn once(&mut self, line: Line, owner: u64, rows: &[Fragment]) -> Result<u64> {
        match (self, line, rows) {
            (Self::Sql(wire), Line::Upsert, [row]) => {
                let (page, user) = (row.page.to_string(), row.user.to_string());
                let (key, body) = (row.key(), row.body());
                let parameters = [key.as_bytes(), page.as_bytes(), user.as_bytes(), body.as_bytes()];
                Ok(wire.execute(line.statement(), &parameters)?.affected)
            }
            (Self::Sql(wire), ..) => {
                Ok(wire.execute(line.statement(), &[owner.to_string().as_bytes()])?.affected)
            }
            (Self::Memcached(client), ..) => {
                for row in rows {
                    client.out.extend_from_slice(format!("delete {}\r\n", row.key()).as_bytes());
                }
                client.send()?;
                for _ in rows {
                    expect(client, b"DELETED")?;
                }
                Ok(rows.len() as u64)
            }
        }
    }
}

fn expect(client: &mut Client, word: &[u8]) -> Result<()> {
    let line = client.read_line()?;
    if line == word {
        Ok(())
    } else {
        Err(Failure::new(format!("memcached answered {}", line.escape_ascii())))
    }
}
