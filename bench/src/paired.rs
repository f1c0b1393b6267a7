//! Lines measured on several servers in turn: what one operation costs ours, by what it costs a peer in the same
//! repetition.

use std::path::PathBuf;

use crate::address::Address;
use crate::cores::Cores;
use crate::failure::{Failure, Result};
use crate::figures::Figures;
use crate::load::{Blend, Load, Shape, Sizes, Until, Workload};
use crate::machine;
use crate::protocol::Protocol;
use crate::report::Report;
use crate::server::{Kind, Server, Setup};
use crate::summary::{Summary, digits, thousands};

/// What every comparison of this kind is told.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "comparison")]
pub(crate) struct Options {
    /// Our program, written PATH or LABEL=PATH; more than one are compared with each other.
    #[arg(long, value_name = "[LABEL=]PATH")]
    pub(crate) sqlcached: Vec<String>,
    /// A server of ours that runs already (HOST:PORT or a Unix socket), in place of one started here.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) server: Option<Address>,
    /// Repetitions of each measurement, each beside the peer's.
    #[arg(long, default_value_t = 7)]
    pub(crate) repetitions: usize,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 0.6)]
    pub(crate) seconds: f64,
    /// Let the scheduler place server and load.
    #[arg(long)]
    pub(crate) unpinned: bool,
    /// Where the results go, in a folder named after the day.
    #[arg(long, default_value = "bench/results")]
    pub(crate) results: PathBuf,
}

/// Who takes part and how.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Our builds.
    ours: Vec<Kind>,
    /// A server that runs already.
    running: Option<Address>,
    /// Where servers and load run.
    pub(crate) cores: Cores,
    /// Repetitions of each measurement.
    pub(crate) repetitions: usize,
    slice_ns: u64,
}

impl Bench {
    /// As the command line says.
    pub(crate) fn new(options: &Options) -> Self {
        let cores =
            if options.unpinned || options.server.is_some() { Cores::free() } else { Cores::choose() };
        let ours = match options.server {
            Some(_) => Vec::new(),
            None => crate::builds(&options.sqlcached),
        };
        Self {
            ours,
            running: options.server.clone(),
            cores,
            repetitions: options.repetitions.max(1),
            slice_ns: crate::nanoseconds(options.seconds),
        }
    }

    /// A setup of one server thread on the cores of this comparison.
    pub(crate) fn setup(&self, memory_mib: u64) -> Setup {
        Setup::new(memory_mib, self.cores)
    }

    /// Our builds, where none was said to run already.
    pub(crate) fn builds(&self) -> &[Kind] {
        &self.ours
    }

    /// Our servers, started or found; one that cannot be had is skipped with a line.
    pub(crate) fn start_ours(&self, setup: &Setup, report: &mut Report) -> Vec<Server> {
        let mut servers = Vec::new();
        for kind in &self.ours {
            servers.extend(Self::start(kind, setup, report));
        }
        if let Some(address) = &self.running {
            match Server::running(address, Protocol::Memcached) {
                Ok(server) => servers.push(server),
                Err(failure) => report.say(&format!("{address}: skipped: {failure}")),
            }
        }
        servers
    }

    /// A peer or a build of ours; `None` after a line that says why.
    pub(crate) fn start(kind: &Kind, setup: &Setup, report: &mut Report) -> Option<Server> {
        match Server::start(kind, setup) {
            Ok(server) => Some(server),
            Err(failure) => {
                report.say(&format!("{}: skipped: {failure}", kind.label()));
                None
            }
        }
    }

    /// Machine, versions and what the figures are, at the head of a report.
    pub(crate) fn introduce(&self, title: &str, report: &mut Report) {
        report.say(&format!("# {title}\n"));
        report.say(&format!("Machine: {}; {}.", machine::describe(), self.cores.describe()));
        for kind in self.ours.iter().chain([&Kind::Memcached, &Kind::Redis]) {
            let version = kind.version().unwrap_or_else(|| "not found".into());
            report.say(&format!("- {}: {version}", kind.label()));
        }
        report.say(&format!(
            "\nMedians of {} paired, interleaved repetitions; in brackets the quartiles of the ratios.",
            self.repetitions
        ));
    }
}

/// One line of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What tables call it.
    pub(crate) name: String,
    /// What is sent.
    pub(crate) workload: Workload,
    /// How.
    pub(crate) shape: Shape,
    /// Over the Unix socket.
    pub(crate) unix: bool,
}

impl Line {
    /// A line named by what is sent, and how.
    pub(crate) fn of(workload: Workload, shape: Shape, unix: bool) -> Self {
        let Workload { sizes: Sizes::Fixed(bytes) | Sizes::Geometric(bytes), .. } = workload;
        let what = match workload.blend {
            Blend::Alike => workload.operation.word().to_owned(),
            Blend::SetIn(share) => format!("mix {}:1", share - 1),
            Blend::Together(keys) => format!("get of {keys} keys"),
        };
        let socket = if unix { "unix " } else { "" };
        Self { name: format!("{socket}{what} {bytes} B pipeline {}", shape.depth), workload, shape, unix }
    }
}

/// Who is measured on a line, and what is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'s> {
    /// The peer, if there is one, and our builds.
    pub(crate) servers: &'s [&'s Server],
    /// The first server is the peer.
    pub(crate) with_peer: bool,
    /// The ratio to reach.
    pub(crate) reach: f64,
}

/// The columns of the table that [`measure`] makes rows of.
pub(crate) const HEAD: [&str; 9] =
    ["line", "server", "CPU ns/op", "ratio to peer", "reach", "ops/s", "p50 us", "p99 us", "load CPU ns/op"];

/// A server with its open connections.
struct Subject<'s> {
    server: &'s Server,
    load: Load,
    figures: Vec<Figures>,
}

/// One line on all servers, interleaved; the order changes from repetition to repetition.
pub(crate) fn measure(
    bench: &Bench,
    line: &Line,
    side: &Side<'_>,
    report: &mut Report,
) -> Result<Vec<Vec<String>>> {
    let mut subjects = Vec::new();
    for &server in side.servers {
        let load = Load::connect(address(server, line.unix)?, server.protocol, line.shape.connections)?;
        subjects.push(Subject { server, load, figures: Vec::new() });
    }
    for repetition in 0..bench.repetitions {
        for turn in 0..subjects.len() {
            let index = (turn + repetition) % subjects.len();
            if let Some(subject) = subjects.get_mut(index) {
                let figures = subject.measure(line, bench.slice_ns)?;
                figures.keep(&line.name, &subject.server.label, repetition, report);
                subject.figures.push(figures);
            }
        }
    }
    report.progress(&line.name);
    let peer = if side.with_peer { subjects.first() } else { None };
    Ok(subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| {
            let peer = peer.filter(|_| index > 0);
            row(line, subject, peer, side.reach)
        })
        .collect())
}

fn address(server: &Server, unix: bool) -> Result<&Address> {
    let socket = server.socket.as_ref().filter(|_| unix);
    match (unix, socket) {
        (false, _) => Ok(&server.address),
        (true, Some(socket)) => Ok(socket),
        (true, None) => Err(Failure::new(format!("{} has no Unix socket", server.label))),
    }
}

impl Subject<'_> {
    fn measure(&mut self, line: &Line, slice_ns: u64) -> Result<Figures> {
        let until = Until::Elapsed(slice_ns);
        Figures::measure(self.server, &mut self.load, &line.workload, line.shape.depth, until)
    }

    fn summary(&self, figure: impl Fn(&Figures) -> f64) -> Summary {
        Summary::of(&self.column(figure))
    }

    fn column(&self, figure: impl Fn(&Figures) -> f64) -> Vec<f64> {
        self.figures.iter().map(figure).collect()
    }
}

fn row(line: &Line, subject: &Subject<'_>, peer: Option<&Subject<'_>>, reach: f64) -> Vec<String> {
    let (ratio, reach) = match peer {
        Some(peer) => {
            let ours = subject.column(|figures| figures.server_ns);
            at_most(&Summary::of_ratios(&ours, &peer.column(|figures| figures.server_ns)), reach)
        }
        None => (String::new(), String::new()),
    };
    vec![
        line.name.clone(),
        subject.server.label.clone(),
        digits(subject.summary(|figures| figures.server_ns).median),
        ratio,
        reach,
        thousands(subject.summary(|figures| figures.per_second).median),
        digits(subject.summary(|figures| figures.p50_us).median),
        digits(subject.summary(|figures| figures.p99_us).median),
        digits(subject.summary(|figures| figures.load_ns).median),
    ]
}

/// A ratio with its quartiles, and whether it is as small as it should be.
pub(crate) fn at_most(ratio: &Summary, reach: f64) -> (String, String) {
    let verdict = if ratio.median <= reach { "holds" } else { "missed" };
    (spread(ratio), format!("<= {reach:.2} {verdict}"))
}

/// A ratio with its quartiles, and whether it is as large as it should be.
pub(crate) fn at_least(ratio: &Summary, reach: f64) -> (String, String) {
    let verdict = if ratio.median >= reach { "holds" } else { "missed" };
    (spread(ratio), format!(">= {reach:.2} {verdict}"))
}

fn spread(ratio: &Summary) -> String {
    format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high)
}
