//! Metrics as Prometheus reads them: its text format 0.0.4, or OpenMetrics 1.0.0 for those who accept it.

use std::fmt::{self, Write as _};

use engine::{Measured, Metric, MetricKind, Spread};
use hyper::header::HeaderValue;

/// One of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    OpenMetrics,
}

impl Format {
    /// The format that somebody who says `Accept` prefers; the older one where both are as good.
    pub(super) fn wanted(accept: Option<&HeaderValue>) -> Self {
        let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (mut open, mut text) = (0.0_f32, 0.0_f32);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut version) = (1.0, "1.0.0");
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => version = value.trim().trim_matches('"'),
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if version == "1.0.0" => open = open.max(quality),
                "text/plain" | "text/*" | "*/*" => text = text.max(quality),
                _ => {}
            }
        }
        if open > text { Self::OpenMetrics } else { Self::Text }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a family of samples is called and means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// All samples of a scrape.
#[derive(Debug)]
pub(super) struct Page {
    format: Format,
    text: String,
    /// The family of the last sample.
    last: &'static str,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::new(), last: "" }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Adds a sample of one of the server's own metrics. Those of one metric come together.
    pub(super) fn add(&mut self, metric: &'static Metric, labels: &[&str], value: Measured<'_>) {
        let Metric { name, kind, labels: names, help, .. } = *metric;
        self.add_to(&Family { name, kind, labels: names, help }, labels, value);
    }

    /// Adds a sample.
    pub(super) fn add_to(&mut self, family: &Family, labels: &[&str], value: Measured<'_>) {
        if self.last != family.name {
            self.last = family.name;
            self.head(family);
        }
        // Writing to a String never fails.
        let _written = match value {
            Measured::Count(count) => {
                self.sample(family, "", labels, None).and_then(|()| writeln!(self.text, " {count}"))
            }
            Measured::Real(real) => {
                self.sample(family, "", labels, None).and_then(|()| writeln!(self.text, " {real}"))
            }
            Measured::Spread(spread) => self.histogram(family, labels, spread),
        };
    }

    fn histogram(&mut self, family: &Family, labels: &[&str], spread: &Spread) -> fmt::Result {
        for (bound, count) in spread.cumulative() {
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
            self.sample(family, "_bucket", labels, Some(&bound))?;
            writeln!(self.text, " {count}")?;
        }
        self.sample(family, "_sum", labels, None)?;
        writeln!(self.text, " {}", spread.sum_ns as f64 / 1e9)?;
        self.sample(family, "_count", labels, None)?;
        writeln!(self.text, " {}", spread.count())
    }

    /// A sample's name and labels; `bound`: the upper one of its bucket.
    fn sample(&mut self, family: &Family, part: &str, labels: &[&str], bound: Option<&str>) -> fmt::Result {
        write!(self.text, "{}{part}", family.name)?;
        let mut open = '{';
        let named = family.labels.iter().copied().zip(labels.iter().copied());
        for (name, value) in named.chain(bound.map(|bound| ("le", bound))) {
            self.text.push(open);
            open = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            self.escape(value);
            self.text.push('"');
        }
        if open == ',' {
            self.text.push('}');
        }
        Ok(())
    }

    /// In OpenMetrics a counter's family is called without its ending.
    fn head(&mut self, family: &Family) {
        let name = match self.format {
            Format::OpenMetrics => family.name.strip_suffix("_total").unwrap_or(family.name),
            Format::Text => family.name,
        };
        let (kind, help) = (family.kind.name(), family.help);
        let _written = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn escape(&mut self, value: &str) {
        for letter in value.chars() {
            match letter {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                letter => self.text.push(letter),
            }
        }
    }

    /// The whole page.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted() {
        let wanted = |accept: &'static str| Format::wanted(Some(&HeaderValue::from_static(accept)));
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(wanted(prometheus), Format::OpenMetrics);
        assert_eq!(wanted("application/openmetrics-text;version=0.0.1,text/plain;q=0.5"), Format::Text);
        assert_eq!(
            wanted("text/plain, application/openmetrics-text; version=\"1.0.0\"; q=0.9"),
            Format::Text
        );
        assert_eq!(wanted("application/openmetrics-text; q=0"), Format::Text);
        assert_eq!(wanted("*/*"), Format::Text);
        assert_eq!(Format::wanted(None), Format::Text);
    }

    #[test]
    fn both_formats() {
        let family = Family {
            name: "a_things_total",
            kind: MetricKind::Counter,
            labels: &["table", "cause"],
            help: "Things.",
        };
        let page = |format| {
            let mut page = Page::new(format);
            page.add_to(&family, &["x\"\\\n<b>", "y"], Measured::Count(7));
            page.add_to(&family, &["z", "y"], Measured::Real(0.5));
            page.finish()
        };
        let samples = "a_things_total{table=\"x\\\"\\\\\\n<b>\",cause=\"y\"} 7\na_things_total{table=\"z\",cause=\"y\"} 0.5\n";
        let text = format!("# HELP a_things_total Things.\n# TYPE a_things_total counter\n{samples}");
        let open = format!("# HELP a_things Things.\n# TYPE a_things counter\n{samples}# EOF\n");
        assert_eq!(page(Format::Text), text);
        assert_eq!(page(Format::OpenMetrics), open);
    }
}
