//! The two texts made from the table: the default configuration file and `docs/settings.md`.

use std::fmt::Write;

use super::{Section, Setting, of_section};

/// The columns of a comment in the file.
const WIDTH: usize = 100;

/// A configuration file in which every setting is explained and commented out at its default.
pub(crate) fn configuration_file() -> String {
    let mut text = String::from(
        "# sqlcached's configuration. Use it with: sqlcached --config FILE\n\
         #\n\
         # Every setting is shown with its default; remove the # to change it. A flag or an environment variable\n\
         # overrides this file. SIGHUP reads the file again and applies the settings marked [reload].\n",
    );
    for section in Section::ALL {
        let _ = write!(text, "\n# --- {} ---\n", section.title());
        for setting in of_section(section) {
            text.push('\n');
            for line in wrapped(&explained(setting), WIDTH) {
                let _ = writeln!(text, "# {line}");
            }
            let _ = writeln!(text, "#{} = {}", setting.name, quoted(setting));
        }
    }
    text
}

/// `docs/settings.md`. The test that compares the page can also write it.
#[cfg(test)]
pub(crate) fn reference() -> String {
    let mut text = String::from(
        "# Settings\n\n\
         You can give a setting as a flag, as an environment variable, or in a configuration file (`--config FILE`). \
         `sqlcached --print-config` prints such a file: [sqlcached.toml](sqlcached.toml). A flag overrides the \
         environment, and the environment overrides the file.\n\n\
         Sizes take `k`, `m`, `g`. Times take `ms`, `s`, `min`, `h`; a plain number is in milliseconds. SIGHUP applies \
         new values of the settings marked *reload*. The others change at the next start.\n\n\
         This page is generated from the table in `crates/sqlcached/src/settings/mod.rs`, and a test compares them.\n",
    );
    for section in Section::ALL {
        let _ = write!(text, "\n## {}\n\n", section.title());
        text.push_str("| Setting | Flag | Environment | Default | Meaning |\n|---|---|---|---|---|\n");
        for setting in of_section(section) {
            let letter = setting.letter.map_or_else(String::new, |letter| format!("`-{letter}`, "));
            let opposite = setting
                .opposite
                .map_or_else(String::new, |(letter, long)| format!("; off: `-{letter}`, `--{long}`"));
            let reload = if setting.reloadable { " *reload*" } else { "" };
            let _ = writeln!(
                text,
                "| `{}` | {letter}`--{}`{opposite} | `{}` | `{}` | {} Allowed: {}.{reload} |",
                setting.name,
                setting.flag(),
                setting.variable(),
                setting.default,
                setting.help,
                setting.kind.allowed(),
            );
        }
    }
    text.push_str(&super::memcached::reference());
    text
}

fn explained(setting: &Setting) -> String {
    let flag = match setting.letter {
        Some(letter) => format!("-{letter}"),
        None => format!("--{}", setting.flag()),
    };
    let reload = if setting.reloadable { " [reload]" } else { "" };
    format!("{} Allowed: {}. Flag: {flag}.{reload}", setting.help, setting.kind.allowed())
}

fn quoted(setting: &Setting) -> String {
    match (setting.kind.is_bare(), setting.default) {
        (true, "off") => "false".to_owned(),
        (true, "on") => "true".to_owned(),
        (true, bare) => bare.to_owned(),
        (false, text) => format!("\"{text}\""),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.len() + word.len() < width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{ALL, Chosen, file, manual};
    use super::{configuration_file, reference};

    /// `UPDATE=1 cargo test -p sqlcached documents` writes them again.
    fn agrees(path: &str, text: &str) {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        #[allow(clippy::disallowed_methods, reason = "a test's own switch, no setting")]
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(&path, text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "{path} is out of date: UPDATE=1 cargo test -p sqlcached documents");
    }

    #[test]
    fn the_checked_in_documents_agree() {
        agrees("docs/sqlcached.toml", &configuration_file());
        agrees("docs/settings.md", &reference());
        agrees("packaging/sqlcached.1", &manual::page());
        for (shell, path) in manual::COMPLETIONS {
            agrees(&format!("packaging/{path}"), &manual::completions(shell));
        }
    }

    #[test]
    fn the_default_file_says_the_defaults() {
        let text = configuration_file();
        let bare: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with([' ', '-']) && rest.contains(" = ") => format!("{rest}\n"),
                _ => "\n".to_owned(),
            })
            .collect();
        let given = file::parse("f", &bare).unwrap();
        assert_eq!(given.len(), ALL.len());
        assert!(Chosen::new(&[&given]).unwrap().changed(&Chosen::new(&[]).unwrap()).is_empty());
        assert!(file::parse("f", &text).unwrap().is_empty());
    }
}
