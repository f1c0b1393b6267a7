//! What an answer depends on beside its statement: as whom a session works, and with which settings.
//!
//! A source reports only few of them, so it is asked, after each statement that may have changed them.

use std::sync::{Arc, LazyLock};

use inspect::literal;
use ring::digest::{Context, SHA256};

use crate::frame::put;

/// What tells two answers apart.
pub(crate) type Hash = [u8; 32];

/// Settings that are part of the key: what they change shows in values, or in what names mean.
const SETTINGS: &[&str] = &[
    "search_path",
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "bytea_output",
    "client_encoding",
    "lc_collate",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "xmlbinary",
    "xmloption",
    "array_nulls",
    "transform_null_equals",
    "timezone_abbreviations",
    "default_text_search_config",
    "quote_all_identifiers",
    "standard_conforming_strings",
    "row_security",
    OWN_CACHE,
    OWN_FRESHNESS,
];

/// What a session says of caching for itself: `SET sqlcached.cache = off`. The source keeps it as it keeps every
/// setting with a point in its name.
const OWN_CACHE: &str = "sqlcached.cache";
/// How fresh answers are for it: `SET sqlcached.freshness = checked`.
const OWN_FRESHNESS: &str = "sqlcached.freshness";

/// The columns of the answer before the settings: who it is, and what keeps a session from reading what is kept.
const BEFORE: usize = 6;

/// Where its statements' time is among them, in milliseconds. It changes no answer, and is no part of the hash.
const TIMEOUT: usize = 5;

/// The name of our statement at the source. It is prepared each time: a session may forget all of its statements.
const STATEMENT: &[u8] = b"_sqlcached_state\0";

/// Names of settings that statements read: their values are asked for, too.
pub(crate) type Names = Arc<[Box<str>]>;

/// A question for a session's state.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The settings that are asked for behind those of every session.
    pub(crate) settings: Names,
    /// The definitions of the source when it is asked.
    pub(crate) definitions: u64,
}

/// A session's state.
#[derive(Debug)]
pub struct State {
    hash: Hash,
    values: Vec<Option<String>>,
    question: Question,
}

impl State {
    /// Reads the answer to a question; none: it is none.
    pub(crate) fn read(values: Vec<Option<String>>, question: Question) -> Option<Arc<Self>> {
        if values.len() != BEFORE + SETTINGS.len() + question.settings.len() {
            return None;
        }
        let mut hash = Context::new(&SHA256);
        let is_part = |(at, _): &(usize, &Option<String>)| *at != TIMEOUT;
        for (_, value) in values[..BEFORE + SETTINGS.len()].iter().enumerate().filter(is_part) {
            add(&mut hash, value.as_deref().map(str::as_bytes));
        }
        Some(Arc::new(Self { hash: finished(hash), values, question }))
    }

    /// What tells it from others, without the settings that only some statements read.
    pub(crate) fn hash(&self) -> &Hash {
        &self.hash
    }

    /// How long the session lets a statement take, in milliseconds; none: as long as it wants.
    pub(crate) fn timeout_ms(&self) -> Option<u64> {
        self.values[TIMEOUT].as_deref()?.parse().ok().filter(|time| *time > 0)
    }

    /// Whether it was asked for under these definitions, which name the configuration of the source, too.
    pub(crate) fn is_under(&self, definitions: u64) -> bool {
        self.question.definitions == definitions
    }

    /// Whether the values of all these settings were asked for.
    pub(crate) fn has(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.place_of(name).is_some())
    }

    /// The value of a setting that a statement reads, as far as it was asked for.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.values[self.place_of(name)?].as_deref()
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        let at = self.question.settings.iter().position(|own| **own == *name)?;
        Some(BEFORE + SETTINGS.len() + at)
    }

    /// Why sessions in this state only forward, if they do.
    pub(crate) fn keeps_from_reading(&self) -> Option<&'static str> {
        let value = |at: usize| self.values[at].as_deref().unwrap_or_default();
        // The stream tells values in UTF-8, and by them answers are dropped.
        let in_utf8 = self.setting("client_encoding").is_none_or(|encoding| encoding == "UTF8");
        if value(3) != "0" {
            Some("the session has temporary tables, whose names come first")
        } else if value(4) != "read committed" {
            Some("default_transaction_isolation is not read committed")
        } else if !in_utf8 {
            Some("client_encoding is not UTF8")
        } else {
            None
        }
    }

    /// What the session says of caching.
    pub(crate) fn own_cache(&self) -> Option<&str> {
        self.setting(OWN_CACHE)
    }

    /// What the session says of freshness.
    pub(crate) fn own_freshness(&self) -> Option<&str> {
        self.setting(OWN_FRESHNESS)
    }

    /// The value of a setting.
    fn setting(&self, name: &str) -> Option<&str> {
        let at = SETTINGS.iter().position(|own| *own == name)?;
        self.values[BEFORE + at].as_deref().filter(|value| !value.is_empty())
    }

    /// Who logged in.
    pub fn login(&self) -> &str {
        self.values[0].as_deref().unwrap_or_default()
    }

    /// As whom statements work.
    pub fn user(&self) -> &str {
        self.values[1].as_deref().unwrap_or_default()
    }

    /// The settings, with which another session is in this state.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        // These are not to be set: a database has the one, and the others are only read by us.
        let settable = |name: &&str| !["lc_collate", OWN_CACHE, OWN_FRESHNESS].contains(name);
        SETTINGS
            .iter()
            .copied()
            .filter(move |name| settable(name))
            .filter_map(|name| Some((name, self.setting(name)?)))
    }
}

/// Adds a value, so that two are not taken for one, and NULL for none of them.
pub(crate) fn add(hash: &mut Context, value: Option<&[u8]>) {
    hash.update(&value.map_or(u64::MAX, |value| value.len() as u64).to_be_bytes());
    hash.update(value.unwrap_or_default());
}

pub(crate) fn finished(hash: Context) -> Hash {
    let mut out = Hash::default();
    out.copy_from_slice(hash.finish().as_ref());
    out
}

/// Asks a question, as a group of requests with a `Sync` of its own.
pub(crate) fn ask(question: &Question, out: &mut Vec<u8>) {
    static OF_ALL: LazyLock<String> = LazyLock::new(of_all);
    let more = question.settings.iter().fold(String::new(), |all, name| {
        format!("{all}, pg_catalog.current_setting({}, true)", literal(name))
    });
    put(b'C', &[b"S", STATEMENT], out);
    put(b'P', &[STATEMENT, OF_ALL.as_bytes(), more.as_bytes(), &[0, 0, 0]], out);
    put(b'B', &[b"\0", STATEMENT, &[0; 6]], out);
    put(b'E', &[b"\0", &[0; 4]], out);
    put(b'S', &[], out);
}

/// What every session is asked.
fn of_all() -> String {
    let settings = SETTINGS
        .iter()
        .fold(String::new(), |all, name| format!("{all}, pg_catalog.current_setting('{name}', true)"));
    format!(
        "SELECT session_user::pg_catalog.text, current_user::pg_catalog.text,
                pg_catalog.current_database()::pg_catalog.text, pg_catalog.pg_my_temp_schema()::pg_catalog.text,
                pg_catalog.current_setting('default_transaction_isolation'),
                (1000 OPERATOR(pg_catalog.*) EXTRACT(epoch FROM pg_catalog.current_setting('statement_timeout')::pg_catalog.interval))
                    ::pg_catalog.int8::pg_catalog.text{settings}"
    )
}

/// The values of a `DataRow`.
pub(crate) fn row_of(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut values = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        // A negative length is NULL.
        values.push(match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => None,
            Ok(length) => {
                let (value, behind) = rest.split_at_checked(length)?;
                rest = behind;
                Some(String::from_utf8_lossy(value).into_owned())
            }
        });
    }
    Some(values)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The state of a session without anything special.
    pub(crate) fn values() -> Vec<Option<String>> {
        let mut values: Vec<_> =
            ["u", "u", "shop", "0", "read committed", "0"].map(|value| Some(value.to_owned())).into();
        values.resize(BEFORE + SETTINGS.len(), None);
        values
    }

    /// That of one with these settings.
    pub(crate) fn with_settings(settings: &[(&str, &str)]) -> Arc<State> {
        let mut values = values();
        for (name, value) in settings {
            let at = SETTINGS.iter().position(|own| own == name).unwrap();
            values[BEFORE + at] = Some((*value).to_owned());
        }
        State::read(values, asking(&[])).unwrap()
    }

    fn asking(settings: &[&str]) -> Question {
        Question { settings: settings.iter().map(|name| (*name).into()).collect(), definitions: 7 }
    }

    #[test]
    fn states_differ_in_each_value() {
        let usual = State::read(values(), asking(&[])).unwrap();
        assert_eq!((usual.user(), usual.keeps_from_reading(), usual.settings().count()), ("u", None, 0));
        for at in 0..values().len() {
            let mut other = values();
            other[at] = Some("7".into());
            let other = State::read(other, asking(&[])).unwrap();
            // How long its statements may take changes no answer.
            assert_eq!(usual.hash() == other.hash(), at == TIMEOUT, "{at}");
            assert_eq!(other.timeout_ms(), (at == TIMEOUT).then_some(7), "{at}");
            let keeps = [3, 4, BEFORE + SETTINGS.iter().position(|name| *name == "client_encoding").unwrap()];
            assert_eq!(other.keeps_from_reading().is_some(), keeps.contains(&at), "{at}");
        }
        assert_eq!(with_settings(&[(OWN_CACHE, "off")]).own_cache(), Some("off"));
        assert!(State::read(values()[1..].to_vec(), asking(&[])).is_none());
    }

    #[test]
    fn settings_that_some_statements_read_are_no_part_of_the_hash() {
        let asked = asking(&["app.tenant", "app.o'clock"]);
        let mut with = values();
        with.extend([Some("7".to_owned()), None]);
        let state = State::read(with, asked.clone()).unwrap();
        assert_eq!(state.hash(), State::read(values(), asking(&[])).unwrap().hash());
        assert_eq!(
            [state.asked("app.tenant"), state.asked("app.o'clock"), state.asked("a")],
            [Some("7"), None, None]
        );
        assert!(state.has(&["app.tenant".to_owned()]) && !state.has(&["a".to_owned()]));
        assert!(State::read(values(), asked.clone()).is_none());
        assert!(state.is_under(7) && !state.is_under(8));
        let mut out = Vec::new();
        ask(&asked, &mut out);
        assert!(String::from_utf8_lossy(&out).contains("current_setting(E'app.o''clock', true)"));
    }

    #[test]
    fn rows_are_read() {
        assert_eq!(row_of(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff"), Some(vec![Some("a".to_owned()), None]));
        for cut in [&b"\0"[..], b"\0\x01", b"\0\x01\0\0\0\x09a"] {
            assert_eq!(row_of(cut), None);
        }
    }
}
