//! Results: shown while they come, and kept as CSV (every repetition) and Markdown (medians).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clock;
use crate::failure::{Context, Result};

/// A report in the making.
#[derive(Debug)]
pub(crate) struct Report {
    name: &'static str,
    csv: String,
    markdown: String,
}

/// One figure of one repetition, as a row of the CSV file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure<'a> {
    /// Which line of the experiment.
    pub(crate) line: &'a str,
    /// Which server.
    pub(crate) server: &'a str,
    /// Which repetition.
    pub(crate) repetition: usize,
    /// What was measured, with its unit.
    pub(crate) metric: &'a str,
    /// The figure.
    pub(crate) value: f64,
}

impl Report {
    /// An empty report of this name.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, csv: "line,server,repetition,metric,value\n".into(), markdown: String::new() }
    }

    /// Adds a paragraph, and shows it.
    pub(crate) fn say(&mut self, text: &str) {
        println!("{text}");
        self.markdown.push_str(text);
        self.markdown.push('\n');
    }

    /// Shows what is going on, without keeping it.
    #[expect(clippy::unused_self, reason = "progress belongs to the report that it is shown between")]
    pub(crate) fn progress(&self, text: &str) {
        println!("  .. {text}");
    }

    /// Keeps one figure.
    pub(crate) fn figure(&mut self, figure: &Figure<'_>) {
        let Figure { line, server, repetition, metric, value } = figure;
        // A write to a string cannot fail.
        let _ = writeln!(self.csv, "{line},{server},{repetition},{metric},{value}");
    }

    /// Adds a table whose columns are as wide as their widest cell, and shows it.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain(head.get(column).map(|cell| cell.chars().count())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        let mut text = String::new();
        for row in [&head, &rule].into_iter().chain(rows) {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(text, "| {cell:<width$} ");
            }
            text.push_str("|\n");
        }
        self.say(&format!("\n{text}"));
    }

    /// Writes both files below `folder/<date>/` and returns the Markdown's path.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf> {
        let (date, time) = clock::today();
        let folder = folder.join(date);
        fs::create_dir_all(&folder).context(|| folder.display().to_string())?;
        let markdown = folder.join(format!("{}-{time}.md", self.name));
        let csv = folder.join(format!("{}-{time}.csv", self.name));
        fs::write(&markdown, &self.markdown).context(|| markdown.display().to_string())?;
        fs::write(&csv, &self.csv).context(|| csv.display().to_string())?;
        Ok(markdown)
    }
}
