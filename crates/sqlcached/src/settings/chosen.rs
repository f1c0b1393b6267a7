//! The values in force: for each setting, the first of flag, environment, file, default.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use engine::SettingFacts;

use super::{ALL, Address, Kind, Setting, SettingError, Value};

/// What one place gives: texts by the setting's name, each with words that say where it stood.
pub(crate) type Given = BTreeMap<&'static str, (String, String)>;

/// What the place of a setting begins with that a word behind memcached's `-o` gave.
pub(super) const EXTENDED_FLAG: &str = "the flag -o ";

/// A checked value for every setting.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    values: BTreeMap<&'static str, Choice>,
}

/// What was chosen for one setting.
#[derive(Debug, Clone)]
struct Choice {
    value: Value,
    /// As it was given.
    text: String,
    /// Words that say where it stood.
    place: String,
    /// Somebody gave it; it is not the default.
    given: bool,
}

impl Chosen {
    /// Takes each setting from the first place that gives it.
    pub(crate) fn new(places: &[&Given]) -> Result<Self, SettingError> {
        let mut values = BTreeMap::new();
        for setting in ALL {
            let fallback = (setting.default.to_owned(), "the default".to_owned());
            let found = places.iter().find_map(|given| given.get(setting.name));
            let (text, place) = found.unwrap_or(&fallback);
            let value = setting.kind.parse(text).map_err(|allowed| SettingError {
                name: setting.name.to_owned(),
                place: place.clone(),
                given: text.clone(),
                allowed: format!("allowed is {allowed}"),
            })?;
            let (text, place, given) = (text.clone(), place.clone(), found.is_some());
            values.insert(setting.name, Choice { value, text, place, given });
        }
        Ok(Self { values })
    }

    /// The value of a setting.
    pub(crate) fn value(&self, setting: &Setting) -> &Value {
        const NOTHING: &Value = &Value::Number(0);
        self.values.get(setting.name).map_or(NOTHING, |choice| &choice.value)
    }

    /// Whether somebody gave a value, be it the default.
    pub(crate) fn is_given(&self, setting: &Setting) -> bool {
        self.values.get(setting.name).is_some_and(|choice| choice.given)
    }

    /// Whether a word behind memcached's `-o` gave it.
    pub(crate) fn is_given_by_word(&self, setting: &Setting) -> bool {
        self.values.get(setting.name).is_some_and(|choice| choice.place.starts_with(EXTENDED_FLAG))
    }

    /// The number of a number, count or size.
    pub(crate) fn number(&self, setting: &Setting) -> u64 {
        self.value(setting).number()
    }

    /// As [`Chosen::number`], for what counts things in memory.
    pub(crate) fn count(&self, setting: &Setting) -> usize {
        usize::try_from(self.number(setting)).unwrap_or(usize::MAX)
    }

    /// A span of time; none when the setting is 0.
    pub(crate) fn time(&self, setting: &Setting) -> Option<Duration> {
        Some(self.value(setting).time()).filter(|time| !time.is_zero())
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, setting: &Setting) -> bool {
        matches!(self.value(setting), Value::Switch(true))
    }

    /// Whether a setting that takes words has this one.
    pub(crate) fn is_word(&self, setting: &Setting, word: &str) -> bool {
        matches!(self.value(setting), Value::Word(chosen) if *chosen == word)
    }

    /// The path, or the word that stands for one.
    pub(crate) fn path(&self, setting: &Setting) -> &Path {
        match self.value(setting) {
            Value::Path(path) => path,
            _ => Path::new(""),
        }
    }

    /// The addresses to listen on.
    pub(crate) fn addresses(&self, setting: &Setting) -> &[Address] {
        match self.value(setting) {
            Value::Addresses(list) => list,
            _ => &[],
        }
    }

    /// All settings as the system tables show them.
    pub(crate) fn facts(&self) -> Vec<SettingFacts> {
        let shown = |setting: &&Setting| {
            let choice = self.values.get(setting.name)?;
            Some(SettingFacts {
                name: setting.name.to_owned(),
                setting: match setting.kind {
                    // Whoever reads it there counts in its unit, as for PostgreSQL's own settings.
                    Kind::Mebibytes { .. } => choice.value.number().to_string(),
                    _ => choice.text.clone(),
                },
                unit: None,
                default: setting.default.to_owned(),
                source: choice.place.clone(),
                description: setting.help.to_owned(),
                category: setting.section.title().to_owned(),
                private: matches!(setting.kind, Kind::Path { .. }),
            })
        };
        ALL.iter().filter_map(shown).collect()
    }

    /// The settings whose value differs between two choices, in the table's order.
    pub(crate) fn changed(&self, other: &Self) -> Vec<&'static Setting> {
        ALL.iter().copied().filter(|setting| self.value(setting) != other.value(setting)).collect()
    }
}

/// The settings among the variables of an environment.
pub(crate) fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Given {
    let mut given = Given::new();
    for setting in ALL {
        let variable = setting.variable();
        if let Some(text) = lookup(&variable) {
            given.insert(setting.name, (text, format!("the environment variable {variable}")));
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_CONNECTIONS, PORT, THREADS};
    use super::{Chosen, Given, from_environment};

    fn given(name: &'static str, text: &str, place: &str) -> Given {
        Given::from([(name, (text.to_owned(), place.to_owned()))])
    }

    #[test]
    fn the_first_place_wins() {
        let flags = given("port", "1", "the flag -p");
        let mut environment = from_environment(|name| (name == "SQLCACHED_THREADS").then(|| "2".to_owned()));
        environment.extend(given("port", "3", "elsewhere"));
        let mut file = given("threads", "5", "the file");
        file.extend(given("max_connections", "6", "the file"));
        let chosen = Chosen::new(&[&flags, &environment, &file]).unwrap();
        assert_eq!(chosen.number(&PORT), 1);
        assert_eq!(chosen.number(&THREADS), 2);
        assert_eq!(chosen.number(&MAX_CONNECTIONS), 6);
    }

    #[test]
    fn an_error_names_setting_place_value_and_what_is_allowed() {
        let error = Chosen::new(&[&given("port", "eleven", "the flag -p")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "port: 'eleven' (from the flag -p) is not allowed; allowed is a whole number from 0 to 65535, or -1"
        );
    }

    #[test]
    fn changes_are_listed() {
        let before = Chosen::new(&[]).unwrap();
        let after = Chosen::new(&[&given("threads", "9", "the file")]).unwrap();
        let names: Vec<_> = before.changed(&after).iter().map(|setting| setting.name).collect();
        assert_eq!(names, ["threads"]);
    }
}
