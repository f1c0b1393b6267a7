//! A session's settings, as `SET` and `SHOW` know them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sql::{LikeStyle, Look, OwnSettings, SqlError, zone};
use store::scalar::interval::Style;

use crate::limits::SETTING_BYTES_MAX;
use crate::shared_settings::{NATIVE_EXECUTION, STATEMENT_TIMEOUT, SharedSetting};

/// What a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    /// Any text.
    Text,
    /// `on` and `off`, and PostgreSQL's other words for them.
    Switch,
    /// A switch that has one position here: the other is refused.
    Always(bool),
    /// A number in this range.
    Number(i64, i64),
    /// A time, in milliseconds or with a unit.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text whose first word, up to a comma, is one of these; others would change what results look like.
    First(&'static [&'static str]),
    /// A name of UTF-8, in which PostgreSQL reads letters and digits only.
    Utf8,
    /// The name of a time zone, or how far it is from UTC.
    Zone,
    /// Nothing: it is a fact.
    Fixed,
}

/// A setting that there is.
#[derive(Debug)]
struct Known {
    /// As it is reported to clients; found in any case.
    name: &'static str,
    default: &'static str,
    accepts: Accepts,
    /// Each change is reported to clients.
    reported: bool,
}

const fn known(name: &'static str, default: &'static str, accepts: Accepts) -> Known {
    Known { name, default, accepts, reported: false }
}

const fn reported(name: &'static str, default: &'static str, accepts: Accepts) -> Known {
    Known { name, default, accepts, reported: true }
}

/// A setting of the daemon, which a session may change for itself.
const fn shared(setting: SharedSetting, accepts: Accepts) -> Known {
    known(setting.name, setting.default, accepts)
}

const ISOLATION: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];
const INTERVAL_STYLES: &[&str] = &["postgres", "postgres_verbose", "sql_standard", "iso_8601"];
const MESSAGES: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];

/// Every setting, in the order of `SHOW ALL`. Those that PostgreSQL has for its planner, its disks and its replicas are
/// accepted where tools set them without asking, and mean nothing here.
const KNOWN: &[Known] = &[
    reported("application_name", "", Accepts::Text),
    known("backslash_quote", "safe_encoding", Accepts::Text),
    known("bytea_output", "hex", Accepts::Word(&["hex"])),
    known("check_function_bodies", "on", Accepts::Switch),
    reported("client_encoding", "UTF8", Accepts::Utf8),
    known("client_min_messages", "notice", Accepts::Word(MESSAGES)),
    reported("DateStyle", "ISO, MDY", Accepts::First(&["iso", "mdy", "dmy", "ymd"])),
    known("default_table_access_method", "heap", Accepts::Text),
    known("default_tablespace", "", Accepts::Text),
    known("default_transaction_deferrable", "off", Accepts::Switch),
    known("default_transaction_isolation", "read committed", Accepts::Word(ISOLATION)),
    reported("default_transaction_read_only", "off", Accepts::Switch),
    known("escape_string_warning", "on", Accepts::Switch),
    known("extra_float_digits", "1", Accepts::Number(-15, 3)),
    known("idle_in_transaction_session_timeout", "0", Accepts::Time),
    known("idle_session_timeout", "0", Accepts::Time),
    reported("in_hot_standby", "off", Accepts::Fixed),
    reported("integer_datetimes", "on", Accepts::Fixed),
    reported("IntervalStyle", "postgres", Accepts::Word(INTERVAL_STYLES)),
    reported("is_superuser", "on", Accepts::Fixed),
    known("jit", "off", Accepts::Switch),
    known("lc_collate", "C", Accepts::Fixed),
    known("lc_ctype", "C", Accepts::Fixed),
    known("lc_messages", "C", Accepts::Text),
    known("lc_monetary", "C", Accepts::Text),
    known("lc_numeric", "C", Accepts::Text),
    known("lc_time", "C", Accepts::Text),
    known("like_style", "postgresql", Accepts::Word(&["postgresql", "sqlite"])),
    known("lock_timeout", "0", Accepts::Time),
    known("max_identifier_length", "63", Accepts::Fixed),
    shared(NATIVE_EXECUTION, Accepts::Switch),
    known("role", "none", Accepts::Text),
    known("row_security", "on", Accepts::Switch),
    known("search_path", "\"$user\", public", Accepts::Text),
    reported("server_encoding", "UTF8", Accepts::Fixed),
    reported("server_version", SERVER_VERSION, Accepts::Fixed),
    known("server_version_num", "150000", Accepts::Fixed),
    reported("session_authorization", "sqlcached", Accepts::Text),
    reported("standard_conforming_strings", "on", Accepts::Always(true)),
    shared(STATEMENT_TIMEOUT, Accepts::Time),
    known("synchronize_seqscans", "on", Accepts::Switch),
    known("synchronous_commit", "off", Accepts::Text),
    reported("TimeZone", "UTC", Accepts::Zone),
    known("transaction_isolation", "read committed", Accepts::Fixed),
    known("transaction_read_only", "off", Accepts::Fixed),
    // What newer dumps say at their beginning.
    known("transaction_timeout", "0", Accepts::Word(&["0"])),
    known("work_mem", "64MB", Accepts::Text),
    known("xmloption", "content", Accepts::Text),
];

/// What clients believe that they speak with: drivers decide by its number what to ask for.
const SERVER_VERSION: &str = "15.0 (sqlcached)";

/// A session's settings.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// What differs from the defaults.
    values: BTreeMap<&'static str, String>,
    /// What the server's own defaults differ in, and what the client asked for at its start.
    starting: BTreeMap<&'static str, String>,
    /// What the open transaction changed: the setting, its value before, and whether its end takes it back in any
    /// case.
    undo: Vec<(&'static str, Option<String>, bool)>,
    /// Settings whose change is to be reported to the client.
    changed: Vec<&'static str>,
    /// What differs from the defaults, as the SQL layer reads it; made again after a change.
    shown: Option<Arc<OwnSettings>>,
}

impl Settings {
    /// The value in force; none for a setting that does not exist.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let known = find(name)?;
        let value = self.values.get(known.name).or_else(|| self.starting.get(known.name));
        Some(value.map_or(known.default, String::as_str))
    }

    /// The name as it is shown.
    pub(crate) fn shown_name(name: &str) -> Option<&'static str> {
        find(name).map(|known| known.name)
    }

    /// Every setting with its value.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KNOWN.iter().map(|known| (known.name, self.get(known.name).unwrap_or(known.default)))
    }

    /// Those that are reported to clients at the start.
    pub(crate) fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.all().filter(|(name, _)| find(name).is_some_and(|known| known.reported))
    }

    /// Says what a setting is when nobody sets it, which `RESET` goes back to.
    pub(crate) fn start_with(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let known = find(name).ok_or_else(|| unknown(name))?;
        let value = checked(known, value)?;
        self.starting.insert(known.name, value);
        self.shown = None;
        Ok(())
    }

    /// States a fact.
    pub(crate) fn report(&mut self, name: &'static str, value: String) {
        self.starting.insert(name, value);
        self.shown = None;
    }

    /// The same, unless the client asked for something else at its start.
    pub(crate) fn report_if_unset(&mut self, name: &'static str, value: String) {
        let shown = milliseconds(&value).map_or(value, shown_time);
        self.starting.entry(name).or_insert(shown);
        self.shown = None;
    }

    /// Changes a setting; no value is its default. `in_block`: a transaction is open, and may take the change back.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
        in_block: bool,
    ) -> Result<(), SqlError> {
        let (known, value) = changeable(name, value)?;
        if in_block {
            self.undo.push((known.name, self.values.get(known.name).cloned(), local));
        }
        self.put(known.name, value);
        Ok(())
    }

    /// What differs from the defaults.
    pub(crate) fn own(&mut self) -> Arc<OwnSettings> {
        let Self { values, starting, shown, .. } = self;
        let own = || {
            let set = starting.iter().chain(values.iter());
            Arc::new(set.map(|(name, value)| (*name, value.clone())).collect())
        };
        Arc::clone(shown.get_or_insert_with(own))
    }

    /// Sets everything back.
    pub(crate) fn reset_all(&mut self, in_block: bool) {
        let names: Vec<&'static str> = self.values.keys().copied().collect();
        for name in names {
            if in_block {
                self.undo.push((name, self.values.get(name).cloned(), false));
            }
            self.put(name, None);
        }
    }

    /// The transaction has ended: what was local goes back, and after a rollback everything.
    pub(crate) fn end_block(&mut self, rolled_back: bool) {
        for (name, before, local) in std::mem::take(&mut self.undo).into_iter().rev() {
            if local || rolled_back {
                self.put(name, before);
            }
        }
    }

    /// How many changes the open transaction made so far.
    pub(crate) fn changes(&self) -> usize {
        self.undo.len()
    }

    /// Takes back what the open transaction changed since it had made so many changes.
    pub(crate) fn roll_back_to(&mut self, changes: usize) {
        for (name, before, _) in self.undo.split_off(changes.min(self.undo.len())).into_iter().rev() {
            self.put(name, before);
        }
    }

    /// The settings that are to be reported to the client since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|name| (name, self.get(name).unwrap_or("").to_owned())).collect()
    }

    /// What `LIKE` means.
    pub(crate) fn like(&self) -> LikeStyle {
        if self.get("like_style") == Some("sqlite") { LikeStyle::Sqlite } else { LikeStyle::Postgresql }
    }

    /// The schemas in which names are looked for; none: nobody said anything else than usual.
    pub(crate) fn path(&self, role: &str) -> Option<Vec<String>> {
        let own = self.values.get("search_path").or_else(|| self.starting.get("search_path"))?;
        let path = names(own);
        let own = |name: String| if name == "$user" { role.to_owned() } else { name };
        (path != ["$user", "public"]).then(|| path.into_iter().map(own).collect())
    }

    /// How values are shown.
    pub(crate) fn look(&self) -> Look {
        let own = |name: &'static str| self.values.get(name).or_else(|| self.starting.get(name));
        let zone = own("TimeZone").and_then(|name| zone::find(name).ok()).and_then(|found| found.zone);
        let style = own("IntervalStyle").and_then(|word| Style::of_word(word)).unwrap_or_default();
        Look { zone, style }
    }

    /// Whether a message of this severity is wanted.
    pub(crate) fn wants(&self, severity: &str) -> bool {
        match self.get("client_min_messages") {
            Some("error") => false,
            Some("warning") => severity == "WARNING",
            _ => true,
        }
    }

    /// A time; none when it is 0 or not a time.
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        milliseconds(self.get(name)?).filter(|time| *time > 0).map(Duration::from_millis)
    }

    /// A time that this session set itself; 0 is no limit.
    pub(crate) fn own_time(&self, name: &'static str) -> Option<Duration> {
        let value = self.values.get(name).or_else(|| self.starting.get(name))?;
        milliseconds(value).map(Duration::from_millis)
    }

    /// The level of isolation of transactions that ask for none.
    pub(crate) fn isolation(&self) -> &'static str {
        let set = self.get("default_transaction_isolation");
        ISOLATION.iter().find(|level| set == Some(level)).unwrap_or(&"read committed")
    }

    /// A switch that this session set itself.
    pub(crate) fn own_switch(&self, name: &'static str) -> Option<bool> {
        let value = self.values.get(name).or_else(|| self.starting.get(name))?;
        Some(value == "on")
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("on")
    }

    fn put(&mut self, name: &'static str, value: Option<String>) {
        self.shown = None;
        let before = self.values.get(name).cloned();
        match value {
            Some(value) => self.values.insert(name, value),
            None => self.values.remove(name),
        };
        if before.as_deref() != self.values.get(name).map(String::as_str)
            && find(name).is_some_and(|known| known.reported)
            && !self.changed.contains(&name)
        {
            self.changed.push(name);
        }
    }
}

/// The setting with the value as it is kept, unless it cannot be changed to that.
fn changeable(name: &str, value: Option<&str>) -> Result<(&'static Known, Option<String>), SqlError> {
    let known = find(name).ok_or_else(|| unknown(name))?;
    if known.accepts == Accepts::Fixed {
        let message = format!("parameter \"{}\" cannot be changed", known.name);
        return Err(SqlError::new("55P02", message));
    }
    Ok((known, value.map(|value| checked(known, value)).transpose()?))
}

/// What a session's setting would be after this.
pub(crate) fn after(name: &str, value: Option<&str>) -> Result<String, SqlError> {
    let (known, value) = changeable(name, value)?;
    Ok(value.unwrap_or_else(|| known.default.to_owned()))
}

/// Every setting with its value where nobody sets it.
pub(crate) fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN.iter().map(|known| (known.name, known.default))
}

/// The value of a setting that nobody set; none for a name that is no setting.
pub(crate) fn default_of(name: &str) -> Option<&'static str> {
    find(name).map(|known| known.default)
}

fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name))
}

#[cold]
pub(crate) fn unknown(name: &str) -> SqlError {
    let error = SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""));
    match name.to_lowercase().as_str() {
        "tables" | "indexes" | "columns" | "databases" | "schemas" => error.with_hint(
            "in psql, \\dt lists the tables and \\di the indexes; elsewhere: SELECT * FROM sqlcached_tables",
        ),
        _ => error,
    }
}

/// The value as it is kept.
fn checked(known: &Known, value: &str) -> Result<String, SqlError> {
    let wrong = |hint: Option<String>| {
        let message = format!("invalid value for parameter \"{}\": \"{value}\"", known.name);
        SqlError { hint, ..SqlError::new("22023", message) }
    };
    if value.len() > SETTING_BYTES_MAX {
        return Err(wrong(Some(format!("values have up to {SETTING_BYTES_MAX} bytes"))));
    }
    let lower = value.trim().to_lowercase();
    match known.accepts {
        Accepts::Text | Accepts::Fixed => Ok(value.to_owned()),
        Accepts::Switch => switch(&lower).map(|on| on_off(on).to_owned()).ok_or_else(|| wrong(None)),
        Accepts::Always(only) if switch(&lower) == Some(only) => Ok(on_off(only).to_owned()),
        Accepts::Always(only) => Err(wrong(Some(format!("it is always {} here", on_off(only))))),
        Accepts::Number(from, to) => match lower.parse::<i64>() {
            Ok(number) if (from..=to).contains(&number) => Ok(number.to_string()),
            _ => Err(wrong(Some(format!("numbers from {from} to {to} are valid")))),
        },
        Accepts::Time => milliseconds(&lower).map(shown_time).ok_or_else(|| {
            wrong(Some(
                "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".".into(),
            ))
        }),
        Accepts::Word(words) if words.contains(&lower.as_str()) => Ok(lower),
        Accepts::First(words) if words.contains(&lower.split(',').next().unwrap_or("").trim()) => {
            Ok(date_style(&lower))
        }
        Accepts::Zone => match zone::find_setting(value) {
            Ok(found) => Ok(found.name),
            Err(error) => Err(wrong(error.hint)),
        },
        Accepts::Utf8 if is_utf8(&lower) => Ok(known.default.to_owned()),
        Accepts::Utf8 => Err(wrong(Some("Available values: UTF8.".to_owned()))),
        Accepts::Word(words) | Accepts::First(words) => {
            Err(wrong(Some(format!("Available values: {}.", words.join(", ")))))
        }
    }
}

/// The names of a list with commas, without the quotes around them.
fn names(list: &str) -> Vec<String> {
    let bare = |name: &str| match name.trim().strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(name) => name.replace("\"\"", "\""),
        None => name.trim().to_owned(),
    };
    list.split(',').map(bare).filter(|name| !name.is_empty()).collect()
}

/// Whether a name of an encoding, in lower case, means UTF-8: `'utf-8'` with its quotes does to PostgreSQL.
pub(crate) fn is_utf8(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode"].contains(&plain.as_str())
}

/// Results are always written the ISO way; the order of day and month would only count for input that is not.
fn date_style(lower: &str) -> String {
    let order = ["dmy", "ymd"].into_iter().find(|order| lower.contains(order)).unwrap_or("mdy");
    format!("ISO, {}", order.to_uppercase())
}

fn switch(lower: &str) -> Option<bool> {
    match lower {
        "on" | "true" | "t" | "yes" | "y" | "1" => Some(true),
        "off" | "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A time in milliseconds, of a number with or without a unit.
fn milliseconds(text: &str) -> Option<u64> {
    match text.trim().strip_suffix("us") {
        Some(microseconds) => Some(microseconds.trim_end().parse::<u64>().ok()?.div_ceil(1_000)),
        None => store::definition::units::time_ms(text, 1),
    }
}

/// As PostgreSQL shows it: in the largest unit that leaves a whole number.
fn shown_time(milliseconds: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    let whole = units.iter().find(|(unit, _)| milliseconds > 0 && milliseconds.is_multiple_of(*unit));
    match whole {
        Some((unit, name)) => format!("{}{name}", milliseconds / unit),
        None if milliseconds == 0 => "0".into(),
        None => format!("{milliseconds}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_shown() {
        let mut settings = Settings::default();
        for (name, value, shown) in [
            ("statement_timeout", "1500", "1500ms"),
            ("STATEMENT_TIMEOUT", "2min", "2min"),
            ("statement_timeout", "1.5 mins", "90s"),
            ("statement_timeout", "1500us", "2ms"),
            ("statement_timeout", "0", "0"),
            ("datestyle", "iso, dmy", "ISO, DMY"),
            ("client_encoding", "utf-8", "UTF8"),
            ("extra_float_digits", "3", "3"),
            ("jit", "yes", "on"),
            ("application_name", "my App", "my App"),
        ] {
            settings.set(name, Some(value), false, false).unwrap();
            assert_eq!(settings.get(name), Some(shown), "{name}");
        }
        for (name, value, state) in [
            ("nonsense", "1", "42704"),
            ("server_version", "1", "55P02"),
            ("client_encoding", "latin1", "22023"),
            ("standard_conforming_strings", "off", "22023"),
            ("extra_float_digits", "4", "22023"),
            ("statement_timeout", "-1", "22023"),
            ("datestyle", "german", "22023"),
        ] {
            assert_eq!(settings.set(name, Some(value), false, false).unwrap_err().state, state, "{name}");
        }
    }

    #[test]
    fn transactions_take_changes_back() {
        let mut settings = Settings::default();
        settings.set("application_name", Some("a"), false, false).unwrap();
        settings.set("application_name", Some("b"), false, true).unwrap();
        settings.set("application_name", Some("c"), true, true).unwrap();
        settings.end_block(false);
        assert_eq!(settings.get("application_name"), Some("b"));
        settings.set("application_name", Some("d"), false, true).unwrap();
        settings.end_block(true);
        assert_eq!(settings.get("application_name"), Some("b"));
        let marked = settings.changes();
        settings.set("application_name", Some("e"), false, true).unwrap();
        let marked_again = settings.changes();
        settings.set("application_name", Some("f"), true, true).unwrap();
        settings.reset_all(true);
        settings.roll_back_to(marked_again);
        assert_eq!(settings.get("application_name"), Some("e"));
        settings.roll_back_to(marked);
        assert_eq!(settings.get("application_name"), Some("b"));
        settings.reset_all(false);
        assert_eq!(settings.get("application_name"), Some(""));
        assert_eq!(settings.take_changed(), [("application_name", String::new())]);
    }

    #[test]
    fn every_default_is_a_value() {
        for known in KNOWN {
            assert_eq!(checked(known, known.default).unwrap(), known.default, "{}", known.name);
        }
    }
}
