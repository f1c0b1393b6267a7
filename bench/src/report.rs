//! Results: shown while they come, and kept as CSV (every repetition), Markdown (medians) and SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clock;
use crate::failure::{Context, Result};

/// A report in the making.
#[derive(Debug)]
pub(crate) struct Report {
    name: &'static str,
    /// The day and the time of day at which it began: the name of its folder, and a part of its files' names.
    began: (String, String),
    csv: String,
    markdown: String,
    /// Name and content of each picture.
    pictures: Vec<(String, String)>,
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
        Self {
            name,
            began: clock::today(),
            csv: "line,server,repetition,metric,value\n".into(),
            markdown: String::new(),
            pictures: Vec::new(),
        }
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
        let (line, server) = (quoted(line), quoted(server));
        let _ = writeln!(self.csv, "{line},{server},{repetition},{metric},{value}");
    }

    /// Adds a picture below what was said last.
    pub(crate) fn picture(&mut self, name: &str, svg: String) {
        let file = format!("{}-{}-{name}.svg", self.name, self.began.1);
        let _ = writeln!(self.markdown, "\n![{name}]({file})");
        self.pictures.push((file, svg));
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

    /// Writes all files below `folder/<date>/` and returns the Markdown's path. What was written before of this
    /// report is replaced.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf> {
        let (date, time) = &self.began;
        let folder = folder.join(date);
        fs::create_dir_all(&folder).context(|| folder.display().to_string())?;
        let markdown = folder.join(format!("{}-{time}.md", self.name));
        let csv = folder.join(format!("{}-{time}.csv", self.name));
        fs::write(&markdown, &self.markdown).context(|| markdown.display().to_string())?;
        fs::write(&csv, &self.csv).context(|| csv.display().to_string())?;
        for (name, svg) in &self.pictures {
            let path = folder.join(name);
            fs::write(&path, svg).context(|| path.display().to_string())?;
        }
        Ok(markdown)
    }
}

/// A field of a CSV file: in quotes where it holds a comma.
fn quoted(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_comma_does_not_make_a_column() {
        assert_eq!(quoted("memcached"), "memcached");
        assert_eq!(quoted("memcached, \"piped\""), "\"memcached, \"\"piped\"\"\"");
    }
}
