//! How spans are written.

use super::Interval;

/// A style of writing spans (`IntervalStyle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// `1 year 2 mons 3 days 04:05:06`: the form that is stored.
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    Verbose,
    /// `1-2 3 4:05:06`
    Standard,
    /// `P1Y2M3DT4H5M6S`
    Iso,
}

impl Style {
    /// The style of a setting's word.
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "postgres" => Self::Postgres,
            "postgres_verbose" => Self::Verbose,
            "sql_standard" => Self::Standard,
            "iso_8601" => Self::Iso,
            _ => return None,
        })
    }
}

/// A span in the units in which it is written; all of a part have one sign.
struct Fields {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// Seconds with their fraction.
    us: i64,
}

impl Interval {
    /// In a style of PostgreSQL.
    pub fn write_as(self, style: Style) -> String {
        let fields = Fields {
            years: self.months / 12,
            months: self.months % 12,
            days: self.days,
            hours: self.us / 3_600_000_000,
            minutes: self.us / 60_000_000 % 60,
            us: self.us % 60_000_000,
        };
        match style {
            Style::Postgres => self.write(),
            Style::Verbose => fields.verbose(),
            Style::Standard => fields.standard(),
            Style::Iso => fields.iso(),
        }
    }
}

impl Fields {
    fn all(&self) -> [i64; 6] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.us]
    }

    fn iso(&self) -> String {
        let part = |count: i64, unit: char| if count == 0 { String::new() } else { format!("{count}{unit}") };
        let date = [part(self.years, 'Y'), part(self.months, 'M'), part(self.days, 'D')].concat();
        let sign = if self.us < 0 { "-" } else { "" };
        let last = if self.us == 0 { String::new() } else { format!("{sign}{}S", seconds(self.us, false)) };
        let time = [part(self.hours, 'H'), part(self.minutes, 'M'), last].concat();
        match (date.is_empty(), time.is_empty()) {
            (true, true) => "PT0S".to_owned(),
            (_, true) => format!("P{date}"),
            _ => format!("P{date}T{time}"),
        }
    }

    /// The first part says which way it goes; `ago` behind all is backwards.
    fn verbose(&self) -> String {
        let Some(first) = self.all().into_iter().find(|count| *count != 0) else { return "@ 0".to_owned() };
        let before = first < 0;
        let mut parts = vec!["@".to_owned()];
        let units = ["year", "mon", "day", "hour", "min"];
        for (count, unit) in self.all().into_iter().zip(units).filter(|(count, _)| *count != 0) {
            let count = if before { -count } else { count };
            let plural = if count == 1 { "" } else { "s" };
            parts.push(format!("{count} {unit}{plural}"));
        }
        if self.us != 0 {
            let sign = if (self.us < 0) == before { "" } else { "-" };
            let plural = if self.us.abs() == 1_000_000 { "" } else { "s" };
            parts.push(format!("{sign}{} sec{plural}", seconds(self.us, false)));
        }
        if before {
            parts.push("ago".to_owned());
        }
        parts.join(" ")
    }

    /// One sign for all where that says it, else one for each part.
    fn standard(&self) -> String {
        let (negative, positive) =
            (self.all().iter().any(|part| *part < 0), self.all().iter().any(|part| *part > 0));
        let (far, near) =
            (self.years != 0 || self.months != 0, self.all()[2..].iter().any(|part| *part != 0));
        let sign = |negative: bool| if negative { '-' } else { '+' };
        let [years, months, days, hours, minutes, _] = self.all().map(i64::abs);
        let clock = format!("{hours}:{minutes:02}:{}", seconds(self.us, true));
        if !negative && !positive {
            return "0".to_owned();
        }
        if (negative && positive) || (far && near) {
            let time = self.hours < 0 || self.minutes < 0 || self.us < 0;
            let (far, near) = (sign(self.years < 0 || self.months < 0), sign(self.days < 0));
            return format!("{far}{years}-{months} {near}{days} {}{clock}", sign(time));
        }
        let minus = if negative { "-" } else { "" };
        if far {
            format!("{minus}{years}-{months}")
        } else if days != 0 {
            format!("{minus}{days} {clock}")
        } else {
            format!("{minus}{clock}")
        }
    }
}

/// Seconds without their sign, with as many decimals as it takes.
fn seconds(us: i64, filled: bool) -> String {
    let us = us.abs();
    let mut text = if filled { format!("{:02}", us / 1_000_000) } else { (us / 1_000_000).to_string() };
    if us % 1_000_000 != 0 {
        text.push_str(format!(".{:06}", us % 1_000_000).trim_end_matches('0'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_the_styles_of_postgresql() {
        for (text, postgres, iso, verbose, standard) in [
            (
                "1 year 2 mons 3 days 04:05:06.7",
                "1 year 2 mons 3 days 04:05:06.7",
                "P1Y2M3DT4H5M6.7S",
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs",
                "+1-2 +3 +4:05:06.7",
            ),
            (
                "-1 day +02:03",
                "-1 days +02:03:00",
                "P-1DT2H3M",
                "@ 1 day -2 hours -3 mins ago",
                "+0-0 -1 +2:03:00",
            ),
            ("0", "00:00:00", "PT0S", "@ 0", "0"),
            ("-1 year -2 mons", "-1 years -2 mons", "P-1Y-2M", "@ 1 year 2 mons ago", "-1-2"),
            ("3 days", "3 days", "P3D", "@ 3 days", "3 0:00:00"),
            ("-00:00:01.5", "-00:00:01.5", "PT-1.5S", "@ 1.5 secs ago", "-0:00:01.5"),
            ("1 day 1 second", "1 day 00:00:01", "P1DT1S", "@ 1 day 1 sec", "1 0:00:01"),
            ("1 mon -1 day", "1 mon -1 days", "P1M-1D", "@ 1 mon -1 days", "+0-1 -1 +0:00:00"),
            ("100:00:00", "100:00:00", "PT100H", "@ 100 hours", "100:00:00"),
            ("-3 days -02:00", "-3 days -02:00:00", "P-3DT-2H", "@ 3 days 2 hours ago", "-3 2:00:00"),
        ] {
            let span = Interval::parse(text).unwrap();
            let styles = [Style::Postgres, Style::Iso, Style::Verbose, Style::Standard];
            let found = styles.map(|style| span.write_as(style));
            assert_eq!(found, [postgres, iso, verbose, standard], "{text}");
            assert_eq!(Interval::parse(&found[0]), Ok(span), "{text}");
        }
    }
}
