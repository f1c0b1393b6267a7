//! What is shown: lines of a width, made of the last two looks.

use std::cmp::Reverse;
use std::time::Duration;

use super::source::{News, Sample, TableFigures};
use crate::span::span;

/// Columns and lines of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u16,
    pub(super) height: u16,
}

/// Lines beside the tables: the strip, the heads, the hot keys, the invalidations.
const LINES_BESIDE: usize = 17;

/// Tables that are shown whatever the terminal's height: what is below them gives way first.
const TABLES_AT_LEAST: usize = 5;

/// Columns of a table's figures behind its name.
const FIGURES_WIDTH: usize = 66;

/// By what tables are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Operations,
    Hits,
    Rows,
    Bytes,
    Evictions,
    Name,
}

impl Order {
    /// Each with its name and its key.
    pub(super) const NAMES: [(&'static str, char, Self); 6] = [
        ("operations", 'o', Self::Operations),
        ("hits", 'h', Self::Hits),
        ("rows", 'r', Self::Rows),
        ("bytes", 'b', Self::Bytes),
        ("evictions", 'e', Self::Evictions),
        ("name", 'n', Self::Name),
    ];

    /// The order of a name.
    pub(super) fn named(name: &str) -> Self {
        Self::NAMES.iter().find(|(own, ..)| *own == name).map_or(Self::Operations, |(_, _, order)| *order)
    }

    /// The order of a key.
    pub(super) fn of_key(key: char) -> Option<Self> {
        Self::NAMES.iter().find(|(_, own, _)| *own == key).map(|(_, _, order)| *order)
    }

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, _, order)| *order == self).map_or("", |(name, ..)| name)
    }
}

/// What is known, and how it is shown.
#[derive(Debug)]
pub(super) struct View {
    title: String,
    pub(super) order: Order,
    last: Option<Sample>,
    before: Option<Sample>,
    /// Why the last question was not answered.
    lost: Option<String>,
}

/// A table's figures in a second of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    hits: f64,
    misses: f64,
    written: f64,
    evicted: f64,
    invalidated: f64,
}

impl View {
    pub(super) fn new(title: &str, order: Order) -> Self {
        Self { title: title.to_owned(), order, last: None, before: None, lost: None }
    }

    /// Takes an answer. True: there are two to compare.
    pub(super) fn take(&mut self, news: News) -> bool {
        match news {
            Ok(sample) => {
                // Figures of a server that was started again begin again.
                let newer = |before: &Sample| before.uptime_s <= sample.uptime_s;
                self.before = self.last.take().filter(newer);
                self.last = Some(sample);
                self.lost = None;
            }
            Err(why) => self.lost = Some(why),
        }
        self.before.is_some() && self.lost.is_none()
    }

    /// The lines, none longer than the width, no more than the height.
    pub(super) fn lines(&self, size: Size) -> Vec<String> {
        let mut lines = self.strip();
        if let Some(sample) = &self.last {
            let room = usize::from(size.height).saturating_sub(LINES_BESIDE).max(TABLES_AT_LEAST);
            lines.extend(self.tables(sample, usize::from(size.width), room));
            lines.push(String::new());
            lines.push("HOT KEY OF        READS  WRITES  SHARE  KEY, LAST MINUTE".to_owned());
            lines.extend(sample.hot.iter().map(|own| {
                let (table, share) = (clipped(&own.table, 14), format!("{:.1}%", 100.0 * own.share));
                let [reads, writes] = [own.reads, own.writes].map(|number| count(number as f64));
                format!("{table:<14}  {reads:>7}  {writes:>6}  {share:>5}  {}", own.key)
            }));
            lines.push(String::new());
            lines.push("INVALIDATED  BY                ROWS  STATEMENT".to_owned());
            lines.extend(sample.invalidations.iter().map(|own| {
                let statement: Vec<&str> = own.statement.split_whitespace().collect();
                let role = clipped(&own.role, 14);
                format!("{:<11}  {role:<14}  {:>6}  {}", own.at, count(own.rows as f64), statement.join(" "))
            }));
        }
        lines.truncate(usize::from(size.height));
        lines.iter().map(|line| clipped(line, usize::from(size.width))).collect()
    }

    /// State, figures of the whole server, and what may be pressed.
    fn strip(&self) -> Vec<String> {
        let state = match (&self.lost, &self.last) {
            (Some(why), _) => format!("DISCONNECTED: {why}; asking again"),
            (None, None) => "connecting".to_owned(),
            (None, Some(sample)) => {
                format!("up {}", span(Duration::try_from_secs_f64(sample.uptime_s).unwrap_or_default()))
            }
        };
        let mut lines = vec![format!("sqlcached {}  {state}", self.title)];
        if let Some(sample) = &self.last {
            let second = &sample.second;
            lines.push(format!(
                "hit ratio {}   operations {}/s   evictions {}/s   connections {}",
                ratio(second.hits, second.misses),
                count(second.operations),
                count(second.evicted),
                second.connections
            ));
            lines.push(format!(
                "memory {} of {}   rows {}   sorted by {}",
                bytes(second.bytes),
                sample.memory_limit,
                count(second.rows as f64),
                self.order.name()
            ));
        }
        lines.push(String::new());
        lines
    }

    fn tables(&self, sample: &Sample, width: usize, room: usize) -> Vec<String> {
        let name_width = width.saturating_sub(FIGURES_WIDTH).clamp(12, 40);
        let head = format!(
            "{:<name_width$} {:>7} {:>9} {:>7} {:>8} {:>8} {:>9} {:>10}",
            "TABLE", "ROWS", "BYTES", "HIT%", "GET/s", "WRITE/s", "EVICT/s", "INVALID/s"
        );
        let mut tables: Vec<(&TableFigures, Rates)> =
            sample.tables.iter().map(|table| (table, self.rates(sample, table))).collect();
        tables.sort_by(|(one, at), (other, with)| self.compare((one, at), (other, with)));
        let line = |(table, rates): &(&TableFigures, Rates)| {
            format!(
                "{:<name_width$} {:>7} {:>9} {:>7} {:>8} {:>8} {:>9} {:>10}",
                clipped(&table.name, name_width),
                count(table.rows as f64),
                bytes(table.bytes),
                ratio(rates.hits, rates.misses),
                count(rates.hits + rates.misses),
                count(rates.written),
                count(rates.evicted),
                count(rates.invalidated)
            )
        };
        let left = tables.len().saturating_sub(room);
        let mut lines: Vec<String> = [head].into_iter().chain(tables.iter().take(room).map(line)).collect();
        if left > 0 {
            lines.push(format!("... and {left} more"));
        }
        lines
    }

    fn compare(&self, one: (&TableFigures, &Rates), other: (&TableFigures, &Rates)) -> std::cmp::Ordering {
        let key = |(table, rates): (&TableFigures, &Rates)| match self.order {
            Order::Operations => rates.hits + rates.misses + rates.written,
            Order::Hits => rates.hits,
            Order::Rows => table.rows as f64,
            Order::Bytes => table.bytes as f64,
            Order::Evictions => rates.evicted,
            Order::Name => 0.0,
        };
        let by_key = Reverse(Total(key(one))).cmp(&Reverse(Total(key(other))));
        by_key.then_with(|| one.0.name.cmp(&other.0.name))
    }

    /// What changed since the look before. A table that was not there began with nothing.
    fn rates(&self, sample: &Sample, table: &TableFigures) -> Rates {
        let Some(before) = &self.before else { return Rates::default() };
        let seconds = match (sample.taken, before.taken) {
            (Some(now), Some(then)) => now.duration_since(then).max(Duration::from_millis(1)).as_secs_f64(),
            _ => 1.0,
        };
        let nothing = TableFigures::default();
        let then = before.tables.iter().find(|own| own.name == table.name).unwrap_or(&nothing);
        // A table that was made again under its name has less than before.
        let rate = |now: i64, then: i64| (now - then).max(0) as f64 / seconds;
        Rates {
            hits: rate(table.hits, then.hits),
            misses: rate(table.misses, then.misses),
            written: rate(table.written, then.written),
            evicted: rate(table.evicted, then.evicted),
            invalidated: rate(table.invalidated, then.invalidated),
        }
    }
}

/// A number that is never NaN, in its order.
#[derive(PartialEq)]
struct Total(f64);

impl Eq for Total {}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Total {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A text in so many columns. What could move the cursor or hide the rest is shown as a dot.
fn clipped(text: &str, width: usize) -> String {
    let shown = |letter: char| if letter.is_control() { '.' } else { letter };
    text.chars().map(shown).take(width).collect()
}

fn ratio(hits: f64, misses: f64) -> String {
    let all = hits + misses;
    if all > 0.0 { format!("{:.1}%", 100.0 * hits / all) } else { "-".to_owned() }
}

/// A count in at most six columns.
fn count(number: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e4, "k")];
    match units.iter().find(|(from, _)| number >= *from) {
        Some((_, "k")) => format!("{:.1}k", number / 1e3),
        Some((scale, unit)) => format!("{:.1}{unit}", number / scale),
        None => format!("{number:.0}"),
    }
}

fn bytes(number: i64) -> String {
    let units = [(1_i64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(scale, _)| number >= *scale) {
        Some((scale, unit)) => format!("{:.1} {unit}", number as f64 / *scale as f64),
        None => format!("{number} B"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::source::now;

    use super::super::source::{HotKey, Invalidation, Sample, Second, TableFigures};
    use super::{Order, Size, View, bytes, count};

    fn sample(begun: Instant, second: u64, tables: &[(&str, i64, i64)]) -> Sample {
        let figures = |&(name, rows, hits): &(&str, i64, i64)| TableFigures {
            name: name.to_owned(),
            rows,
            bytes: rows << 10,
            hits,
            misses: hits / 3,
            ..TableFigures::default()
        };
        Sample {
            taken: Some(begun + Duration::from_secs(second)),
            uptime_s: 100.0 + second as f64,
            memory_limit: "64 MB".to_owned(),
            second: Second { hits: 3.0, misses: 1.0, operations: 12_345.0, ..Second::default() },
            tables: tables.iter().map(figures).collect(),
            hot: vec![HotKey {
                table: "frag".into(),
                key: "17, \u{1b}head".into(),
                reads: 12_345,
                writes: 3,
                share: 0.123,
            }],
            invalidations: vec![Invalidation {
                at: "12:00:00".into(),
                role: "app".into(),
                rows: 5,
                statement: "DELETE FROM frag\n WHERE page = \u{1b}[31m17".into(),
            }],
        }
    }

    #[test]
    fn a_frame_fits_its_terminal() {
        let begun = now();
        let mut view = View::new("127.0.0.1:5433", Order::Operations);
        let names: Vec<String> =
            (0..60).map(|at| format!("table_with_a_long_name_{at}_{}", "x".repeat(at))).collect();
        let tables: Vec<(&str, i64, i64)> = names.iter().map(|name| (name.as_str(), 1_234_567, 99)).collect();
        assert!(!view.take(Ok(sample(begun, 0, &tables))));
        assert!(view.take(Ok(sample(begun, 1, &tables))));
        for (width, height) in [(80, 24), (132, 50), (40, 10), (10, 1), (300, 200)] {
            let lines = view.lines(Size { width, height });
            assert!(lines.len() <= usize::from(height), "{width}x{height}");
            assert!(lines.iter().all(|line| line.chars().count() <= usize::from(width)), "{lines:#?}");
        }
        let lines = view.lines(Size { width: 80, height: 24 }).join("\n");
        assert!(lines.contains("hit ratio 75.0%   operations 12.3k/s"), "{lines}");
        assert!(lines.contains("... and 53 more"), "{lines}");
        assert!(lines.contains("frag              12.3k       3  12.3%  17, .head"), "{lines}");
        assert!(lines.contains("INVALID/s"), "{lines}");
        assert!(lines.contains("DELETE FROM frag WHERE page = .[31m17"), "{lines}");
    }

    #[test]
    fn tables_are_sorted_by_their_rates() {
        let begun = now();
        let mut view = View::new("s", Order::Operations);
        view.take(Ok(sample(begun, 0, &[("a", 30, 0), ("b", 20, 0), ("c", 10, 1_000)])));
        view.take(Ok(sample(begun, 2, &[("a", 30, 0), ("b", 20, 200), ("c", 10, 1_002)])));
        let names = |view: &View| {
            let lines = view.lines(Size { width: 80, height: 40 });
            let tables = lines.iter().skip_while(|line| !line.starts_with("TABLE")).skip(1).take(3);
            tables.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<String>()
        };
        assert_eq!(names(&view), "bca");
        view.order = Order::of_key('r').unwrap();
        assert_eq!(names(&view), "abc");
        view.order = Order::named("name");
        assert_eq!(names(&view), "abc");
        assert_eq!(Order::of_key('q'), None);
    }

    #[test]
    fn a_lost_server_is_named_and_the_last_figures_stay() {
        let begun = now();
        let mut view = View::new("s", Order::Operations);
        assert!(!view.take(Err("s does not answer".into())));
        assert_eq!(
            view.lines(Size { width: 80, height: 3 })[0],
            "sqlcached s  DISCONNECTED: s does not answer; asking again"
        );
        view.take(Ok(sample(begun, 50, &[("a", 1, 5)])));
        view.take(Err("gone".into()));
        let lines = view.lines(Size { width: 80, height: 24 }).join("\n");
        assert!(lines.contains("DISCONNECTED: gone") && lines.contains("sorted by operations"), "{lines}");
        // A server that was started again counts from the beginning.
        assert!(!view.take(Ok(sample(begun, 0, &[("a", 1, 0)]))));
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(["7", "9999", "12.3k", "4.6M"], [7.0, 9_999.0, 12_345.0, 4_600_000.0].map(count));
        assert_eq!(["12 B", "1.5 KiB", "64.0 MiB"], [12, 1_536, 64 << 20].map(bytes));
    }
}
