//! The configuration file: TOML, one `name = value` a line.

use store::definition::{OPTIONS, nearest};
use toml::Value as Toml;

use super::chosen::Given;
use super::{ALL, Setting, SettingError, by_name};

/// Reads the text of a file called `path`.
pub(crate) fn parse(path: &str, text: &str) -> Result<Given, SettingError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        SettingError {
            name: "config".to_owned(),
            place: format!("{path} line {line}"),
            given: text.lines().nth(line - 1).unwrap_or("").trim().to_owned(),
            allowed: format!("TOML says: {}", error.message()),
        }
    })?;
    let mut given = Given::new();
    for (name, value) in &table {
        let place = format!("{path}{}", line_of(text, name));
        let Some(setting) = by_name(name) else {
            return Err(SettingError {
                name: name.clone(),
                place,
                given: value.to_string(),
                allowed: unknown(name, value),
            });
        };
        let Some(text) = written(value) else {
            let allowed = format!("allowed is {}", setting.kind.allowed());
            return Err(SettingError { name: name.clone(), place, given: value.to_string(), allowed });
        };
        given.insert(setting.name, (text, place));
    }
    Ok(given)
}

/// A value as a flag would be written.
fn written(value: &Toml) -> Option<String> {
    match value {
        Toml::String(text) => Some(text.clone()),
        Toml::Integer(number) => Some(number.to_string()),
        Toml::Boolean(on) => Some(if *on { "on" } else { "off" }.to_owned()),
        Toml::Array(list) => {
            list.iter().map(written).collect::<Option<Vec<_>>>().map(|words| words.join(","))
        }
        _ => None,
    }
}

/// ` line N` of the assignment or the section, for the message.
fn line_of(text: &str, name: &str) -> String {
    let assigns = |line: &str| {
        let (line, ends) = match line.trim_start().strip_prefix('[') {
            Some(section) => (section.trim_start_matches(['[', ' ']), [']', '.']),
            None => (line.trim_start(), ['=', '.']),
        };
        line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(ends))
    };
    text.lines().position(assigns).map_or_else(String::new, |index| format!(" line {}", index + 1))
}

/// What to say of a name that is none: what it is elsewhere, or the nearest one, if one is near.
fn unknown(name: &str, value: &Toml) -> String {
    if value.is_table() {
        return "the file has no sections; write each setting as name = value, without a line in brackets"
            .to_owned();
    }
    if OPTIONS.iter().any(|option| option.name == name) {
        return format!(
            "{name} is an option of a table: CREATE TABLE ... WITH ({name} = ...), or ALTER TABLE ... SET ({name} = ...)"
        );
    }
    match nearest(name, names()) {
        Some(near) => format!("there is no such setting; did you mean {}?", near.name),
        None => "there is no such setting; --print-config lists them".to_owned(),
    }
}

/// Every name by which somebody may look for a setting: ours, and memcached's.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    let own = ALL.iter().map(|setting| (setting.name, *setting));
    own.chain(ALL.iter().flat_map(|setting| setting.aliases.iter().map(|alias| (*alias, *setting))))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn values_may_be_bare_or_quoted() {
        let given = parse(
            "f",
            "port = 1\nmax_item_size = '2m'\ncold = true\nlisten_addresses = ['::1', '127.0.0.1']\n",
        )
        .unwrap();
        let texts: Vec<_> = given.iter().map(|(name, (text, _))| format!("{name}={text}")).collect();
        assert_eq!(texts, ["cold=on", "listen_addresses=::1,127.0.0.1", "max_item_size=2m", "port=1"]);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            (
                "\nprot = 1",
                "prot: '1' (from f line 2) is not allowed; there is no such setting; did you mean port?",
            ),
            (
                "memory_limit = 64",
                "memory_limit: '64' (from f line 1) is not allowed; there is no such setting; did you mean memory_mb?",
            ),
            (
                "\n[connections]\nport = 1",
                "connections: '{ port = 1 }' (from f line 2) is not allowed; the file has no sections; write each setting as \
                 name = value, without a line in brackets",
            ),
            (
                "ttl = 5",
                "ttl: '5' (from f line 1) is not allowed; ttl is an option of a table: CREATE TABLE ... WITH (ttl = ...), \
                 or ALTER TABLE ... SET (ttl = ...)",
            ),
            (
                "encryption = 'high'",
                "encryption: '\"high\"' (from f line 1) is not allowed; there is no such setting; --print-config lists them",
            ),
            (
                "port = 1.5",
                "port: '1.5' (from f line 1) is not allowed; allowed is a whole number from 0 to 65535, or -1",
            ),
        ] {
            assert_eq!(parse("f", text).unwrap_err().to_string(), message);
        }
        let message = parse("f", "threads = 2\nport = = 1\n").unwrap_err().to_string();
        assert!(message.starts_with("config: 'port = = 1' (from f line 2)"), "{message}");
    }
}
