//! A server asked in one of its protocols by the load program, and sweeps over such loads.

use crate::address::Address;
use crate::failure::{Failure, Result};
use crate::figures::Figures;
use crate::load::{Load, Until, Workload};
use crate::plot::{Axis, Chart, Series, Wall};
use crate::postgres::{self, Wire};
use crate::protocol::{Operation, Protocol};
use crate::report::Report;
use crate::server::Server;
use crate::summary::{Summary, digits, thousands};

use super::lab::interleaved;

/// A server in one of its protocols.
#[derive(Clone, Debug)]
pub(super) struct Face<'s> {
    /// Where it runs.
    pub(super) server: &'s Server,
    /// What is spoken.
    pub(super) protocol: Protocol,
    /// What tables call it.
    pub(super) label: String,
}

/// What one face showed under one load.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Whose it is.
    pub(super) label: String,
    /// One for each repetition.
    pub(super) figures: Vec<Figures>,
}

/// A load on every face.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// For the list of all figures.
    pub(super) line: String,
    /// What is asked for.
    pub(super) workload: Workload,
    /// Open connections.
    pub(super) connections: usize,
    /// Requests sent before the first answer is waited for.
    pub(super) depth: u64,
    /// When a repetition ends.
    pub(super) until: Until,
}

/// The protocols in which servers answer to the load program: memcached's or Redis' first, then PostgreSQL's.
pub(super) fn faces<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Vec<Face<'s>> {
    let mut faces = Vec::new();
    for server in servers {
        let original = server.protocol == Protocol::Postgres;
        if matches!(server.protocol, Protocol::Memcached | Protocol::Resp) {
            faces.push(Face { server, protocol: server.protocol, label: server.label.clone() });
        }
        if server.sql.is_some() {
            let label = if original { server.label.clone() } else { format!("{} SQL", server.label) };
            faces.push(Face { server, protocol: Protocol::Postgres, label });
        }
    }
    faces
}

impl Face<'_> {
    fn address(&self) -> Result<&Address> {
        match self.protocol {
            Protocol::Postgres => {
                self.server.sql.as_ref().ok_or_else(|| Failure::new("no PostgreSQL listener"))
            }
            _ => Ok(&self.server.address),
        }
    }

    /// Opens connections.
    pub(super) fn connect(&self, connections: usize) -> Result<Load> {
        Load::connect(self.address()?, self.protocol, connections)
    }

    /// Makes the table that a face of PostgreSQL's protocol needs, and is empty afterwards. In PostgreSQL itself its
    /// values are not compressed: the load program's are all alike and would shrink to nothing.
    pub(super) fn define(&self, unlogged: bool) -> Result<()> {
        if self.protocol != Protocol::Postgres {
            return Ok(());
        }
        let original = self.server.protocol == Protocol::Postgres;
        let table = if original && unlogged { "CREATE UNLOGGED TABLE" } else { "CREATE TABLE" };
        let mut wire = Wire::connect(self.address()?)?;
        wire.run("DROP TABLE IF EXISTS points")?;
        wire.run(&postgres::POINTS.replace("CREATE TABLE", table))?;
        if original {
            wire.run("ALTER TABLE points ALTER COLUMN value SET STORAGE EXTERNAL")?;
        }
        Ok(())
    }

    /// Stores every key of a workload; databases then learn what they have.
    pub(super) fn fill(&self, workload: &Workload, times: usize) -> Result<()> {
        let mut load = self.connect(4)?;
        for _ in 0..times {
            load.fill(workload)?;
        }
        if self.server.protocol == Protocol::Postgres {
            Wire::connect(self.address()?)?.run("VACUUM ANALYZE points")?;
        }
        Ok(())
    }

    fn measure(&self, point: &Point) -> Result<Figures> {
        let mut load = self.connect(point.connections)?;
        Figures::measure(self.server, &mut load, &point.workload, point.depth, point.until)
    }
}

/// Measures points one after the other on every face, in turn. The points of a repetition are made by `points`: an
/// insert has to find its keys absent each time. A face that fails is left out from then on, with a line that says why.
pub(super) fn measure(
    repetitions: usize,
    faces: &mut Vec<Face<'_>>,
    report: &mut Report,
    points: impl Fn(usize) -> Vec<Point>,
) -> Result<Vec<Vec<Outcome>>> {
    let empty = || faces.iter().map(|face| Outcome { label: face.label.clone(), figures: Vec::new() });
    let mut outcomes: Vec<Vec<Outcome>> = points(0).iter().map(|_| empty().collect()).collect();
    let mut ended: Vec<String> = Vec::new();
    interleaved(repetitions, faces, |face, repetition| {
        if ended.contains(&face.label) {
            return Ok(());
        }
        for (point, outcomes) in points(repetition).iter().zip(&mut outcomes) {
            match face.measure(point) {
                Ok(figures) => {
                    figures.keep(&point.line, &face.label, repetition, report);
                    let own = outcomes.iter_mut().filter(|outcome| outcome.label == face.label);
                    own.for_each(|outcome| outcome.figures.push(figures));
                }
                Err(failure) => {
                    report.say(&format!("{} ends at {}: {failure}\n", face.label, point.line));
                    ended.push(face.label.clone());
                    return Ok(());
                }
            }
        }
        Ok(())
    })?;
    faces.retain(|face| !ended.contains(&face.label));
    for outcomes in &mut outcomes {
        outcomes.retain(|outcome| !ended.contains(&outcome.label));
    }
    report.progress(points(0).last().map_or("", |point| point.line.as_str()));
    Ok(outcomes)
}

/// What a sweep over one quantity showed.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// What is swept.
    x: Axis,
    points: Vec<(f64, Vec<Outcome>)>,
    /// Limits met on the way.
    pub(super) walls: Vec<Wall>,
}

impl Sweep {
    /// Nothing yet.
    pub(super) fn new(x: Axis) -> Self {
        Self { x, points: Vec::new(), walls: Vec::new() }
    }

    /// The outcomes at the next place.
    pub(super) fn push(&mut self, x: f64, outcomes: Vec<Outcome>) {
        self.points.push((x, outcomes));
    }

    /// A chart of one figure.
    pub(super) fn chart(&self, title: &str, y: Axis, figure: fn(&Figures) -> f64) -> Result<String> {
        let mut series: Vec<Series> = Vec::new();
        for (x, outcomes) in &self.points {
            for outcome in outcomes {
                let point = (*x, outcome.summary(figure));
                match series.iter_mut().find(|series| series.label == outcome.label) {
                    Some(series) => series.points.push(point),
                    None => series.push(Series { label: outcome.label.clone(), points: vec![point] }),
                }
            }
        }
        let (title, x, walls) = (title.to_owned(), self.x.clone(), self.walls.clone());
        Chart { title, x, y, series, walls }.svg()
    }

    /// A table of all figures; ratios are by `peer`, of server CPU, paired.
    pub(super) fn table(&self, peer: &str, report: &mut Report) {
        let ratio = format!("by {peer}");
        let head = [
            self.x.label.as_str(),
            "who",
            "ops/s",
            "CPU ns/op",
            &ratio,
            "p50 us",
            "p99 us",
            "load CPU ns/op",
        ];
        let mut rows = Vec::new();
        for (x, outcomes) in &self.points {
            let than = outcomes.iter().find(|outcome| outcome.label == peer);
            for outcome in outcomes {
                rows.push(outcome.row(*x, than.filter(|than| than.label != outcome.label)));
            }
        }
        report.table(&head, &rows);
    }
}

impl Outcome {
    /// Median and quartiles of one figure.
    pub(super) fn summary(&self, figure: fn(&Figures) -> f64) -> Summary {
        Summary::of(&self.column(figure))
    }

    fn column(&self, figure: fn(&Figures) -> f64) -> Vec<f64> {
        self.figures.iter().map(figure).collect()
    }

    fn row(&self, x: f64, than: Option<&Self>) -> Vec<String> {
        let ratio = than.map(|than| {
            let cpu = |figures: &Figures| figures.server_ns;
            let ratio = Summary::of_ratios(&self.column(cpu), &than.column(cpu));
            format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high)
        });
        vec![
            thousands(x),
            self.label.clone(),
            thousands(self.summary(|figures| figures.per_second).median),
            thousands(self.summary(|figures| figures.server_ns).median),
            ratio.unwrap_or_default(),
            digits(self.summary(|figures| figures.p50_us).median),
            digits(self.summary(|figures| figures.p99_us).median),
            thousands(self.summary(|figures| figures.load_ns).median),
        ]
    }
}

/// Stores all keys of `workload` that were not there before, then reads, in each repetition; the outcomes of both. The
/// workload's space is the first of as many as there are repetitions.
pub(super) fn insert_and_read(
    repetitions: usize,
    faces: &mut Vec<Face<'_>>,
    workload: &Workload,
    connections: usize,
    reads: Until,
    line: &str,
    report: &mut Report,
) -> Result<(Vec<Outcome>, Vec<Outcome>)> {
    let points = |repetition: usize| {
        let point = |operation: Operation, until| Point {
            line: format!("{} {line}", if operation == Operation::Set { "insert" } else { "read" }),
            workload: Workload { operation, space: workload.space + repetition as u64, ..workload.clone() },
            connections,
            depth: 1,
            until,
        };
        vec![point(Operation::Set, Until::EveryKeyOnce), point(Operation::Get, reads)]
    };
    let mut outcomes = measure(repetitions, faces, report, points)?.into_iter();
    Ok((outcomes.next().unwrap_or_default(), outcomes.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Sweep};
    use crate::figures::Figures;
    use crate::plot::Axis;

    fn outcome(label: &str, costs: [f64; 2]) -> Outcome {
        let figures = costs.map(|server_ns| Figures {
            server_ns,
            load_ns: 1.0,
            per_second: 1e9 / server_ns,
            wall_ms: 1.0,
            p50_us: 1.0,
            p99_us: 2.0,
            p999_us: 3.0,
            longest_us: 4.0,
        });
        Outcome { label: label.into(), figures: figures.to_vec() }
    }

    #[test]
    fn ratios_are_those_of_the_same_repetition() {
        let (ours, peer) = (outcome("ours", [10.0, 30.0]), outcome("peer", [100.0, 100.0]));
        assert_eq!(
            ours.row(1_000.0, Some(&peer))[..5],
            ["1,000", "ours", "66,666,667", "20", "0.20 (0.15-0.25)"]
        );
        assert_eq!(peer.row(1.0, None)[4], "");
    }

    #[test]
    fn a_chart_has_a_line_for_everybody_who_was_anywhere() {
        let mut sweep = Sweep::new(Axis::linear("clients"));
        sweep.push(1.0, vec![outcome("ours", [1.0, 1.0]), outcome("ends early", [2.0, 2.0])]);
        sweep.push(2.0, vec![outcome("ours", [2.0, 2.0])]);
        let svg = sweep.chart("Reads", Axis::linear("ns"), |figures| figures.server_ns).unwrap();
        assert!(svg.contains("ours") && svg.contains("ends early"));
    }
}
