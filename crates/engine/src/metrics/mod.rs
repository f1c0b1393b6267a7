//! The server's figures as metrics. One table says what each is called, what it counts and where it is read; the HTTP
//! listener writes it in Prometheus' formats, and `docs/operations.md` lists it.

mod figures;
mod table;

use crate::answer::Answer;
use crate::engine::Engine;
use crate::latency::Spread;
use crate::privilege::Command;
use crate::session::Session;

use figures::Figures;
pub use table::METRICS;

/// How the values of a metric behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only rises, until the server starts again.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Counts of what was measured, by how large it was.
    Histogram,
}

impl MetricKind {
    /// Prometheus' word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A line of the table.
#[derive(Debug)]
pub struct Metric {
    /// Its name, with the unit, and with `_total` where it is a counter.
    pub name: &'static str,
    /// How its values behave.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it is, in a sentence.
    pub help: &'static str,
    /// Reads it.
    read: fn(&Figures<'_>, &mut Give<'_>),
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured<'m> {
    /// Of something that is counted.
    Count(u64),
    /// Of something that is measured.
    Real(f64),
    /// Of a histogram.
    Spread(&'m Spread),
}

/// Takes the values of a metric: those of its labels, and what was measured.
type Give<'g> = dyn FnMut(&[&str], Measured<'_>) + 'g;

impl Session {
    /// Gives each metric with the values of its labels.
    pub fn metrics(
        &self,
        engine: &Engine,
        give: &mut dyn FnMut(&'static Metric, &[&str], Measured<'_>),
    ) -> Result<(), Answer> {
        self.allow(Command::Stats)?;
        let figures = Figures::of(engine);
        for metric in METRICS {
            (metric.read)(&figures, &mut |labels, measured| give(metric, labels, measured));
        }
        Ok(())
    }
}
