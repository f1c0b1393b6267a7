//! Checks beyond the compiler's: file sizes, widths, characters, leftovers, the place of limits, words that belong to
//! one machine.

use std::fs;

use crate::metadata::{root, tracked_files};
use crate::{Outcome, prose};

/// A longer file has more than one job.
const LINES_MAX: usize = 900;

/// Columns of a comment; `rustfmt` holds the code.
const COMMENT_COLUMNS_MAX: usize = 120;

/// The crates whose limits all stand in `limits.rs`, each with its reason. A crate is added when it is clean.
const LIMITED: &[&str] =
    &["arena", "client", "client-c", "engine", "memcache", "postgres", "server", "sqlcached", "store"];

/// Reads every source file that git knows.
pub(crate) fn check() -> Outcome {
    let files = match tracked_files() {
        Ok(files) => files,
        Err(why) => return Outcome::broken(why),
    };
    let mut failures = Vec::new();
    let mut passed = 0;
    for file in files {
        let name = file.display().to_string();
        let Ok(text) = fs::read_to_string(root().join(&file)) else { continue };
        let complaints = complaints(&name, &text);
        if complaints.is_empty() {
            passed += 1;
        }
        failures.extend(complaints.into_iter().map(|(line, why)| format!("{name}:{line}: {why}")));
    }
    Outcome::new(passed, failures)
}

/// The one place that renames over a file: others forgot the mode, followed links or shared a name.
const REPLACES: &str = "crates/sqlcached/src/replace.rs";

/// Whether a line of the project's programs renames a file.
fn replaces_a_file(name: &str, line: &str) -> bool {
    let exempt = [REPLACES, "crates/xtask/", "fuzz/", "bench/"].iter().any(|place| name.starts_with(place));
    let words = ["fs::rename(", "renameat", ".persist("];
    !exempt
        && !name.contains("/tests/")
        && !name.starts_with("tests/")
        && words.iter().any(|word| line.contains(word))
}

fn complaints(name: &str, text: &str) -> Vec<(usize, String)> {
    let extension = name.rsplit('.').next().unwrap_or("");
    let is_code = matches!(extension, "rs" | "py" | "sh" | "pl" | "toml");
    let mut found = Vec::new();
    if extension == "rs" && text.lines().count() > LINES_MAX {
        found.push((1, format!("longer than {LINES_MAX} lines; split it by job")));
    }
    for (index, line) in text.lines().enumerate() {
        let mut complain = |why: String| found.push((index + 1, why));
        if is_code && !line.is_ascii() {
            complain("a character outside ASCII".to_owned());
        }
        if line.ends_with([' ', '\t']) && is_code {
            complain("white space at the end".to_owned());
        }
        for word in leftovers().iter().filter(|word| line.contains(word.as_str())) {
            complain(format!("'{word}' belongs in an issue or nowhere"));
        }
        if let Some(word) = machine_words().into_iter().find(|word| line.contains(word)) {
            complain(format!("'{word}' is true on one machine only"));
        }
        if extension == "rs" && replaces_a_file(name, line) {
            complain(format!("files are replaced by {REPLACES} alone"));
        }
        if extension == "rs" {
            rust_complaints(name, line).for_each(complain);
        }
    }
    found
}

fn rust_complaints<'a>(name: &'a str, line: &'a str) -> impl Iterator<Item = String> + 'a {
    let is_comment = line.trim_start().starts_with("//");
    let wide = is_comment && line.len() > COMMENT_COLUMNS_MAX;
    let idioms = prose::idioms(if is_comment { line } else { "" });
    let unproved = line.contains(concat!("allow(clippy::", "undocumented_unsafe"));
    let astray = limit(line).filter(|_| is_limited(name));
    [
        wide.then(|| format!("a comment of more than {COMMENT_COLUMNS_MAX} columns")),
        unproved.then(|| "every unsafe block has its proof".to_owned()),
        astray.map(|limit| format!("{limit} belongs in the crate's limits.rs")),
    ]
    .into_iter()
    .flatten()
    .chain(idioms.map(|(idiom, plain)| format!("'{idiom}': write {plain}")))
}

/// The name of a limit that a line of a module declares.
fn limit(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
    let name = rest.strip_prefix("const ")?.split(':').next()?;
    (name.ends_with("_MAX") || name.ends_with("_LIMIT") || name.starts_with("MAX_")).then_some(name)
}

/// Whether a file is a source of a crate whose limits stand in one place, and not that place.
fn is_limited(name: &str) -> bool {
    let inside = name.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
    inside.is_some_and(|(krate, file)| LIMITED.contains(&krate) && file != "limits.rs")
}

/// Marks of unfinished work, put together here so that this file does not trip over itself.
fn leftovers() -> [String; 4] {
    [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["todo", "!("]].map(|parts| parts.concat())
}

/// The beginnings of paths that exist on somebody's own machine.
fn machine_words() -> [&'static str; 4] {
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")]
}

#[cfg(test)]
mod tests {
    use super::complaints;

    #[test]
    fn each_rule_is_seen() {
        for (name, text, count) in [
            ("a.rs", "fn main() {}\n".to_owned(), 0),
            ("a.rs", "// caf\u{e9}\n".to_owned(), 1),
            ("a.md", "caf\u{e9}\n".to_owned(), 0),
            ("a.rs", format!("// TO{}: later\n", "DO"), 1),
            ("a.rs", "let x = 1; \n".to_owned(), 1),
            ("a.rs", "//\n".repeat(901), 1),
            ("a.md", format!("cd /wo{}here\n", "rk/"), 1),
            ("a.rs", format!("    /// {}\n", "x".repeat(112)), 0),
            ("a.rs", format!("    /// {}\n", "x".repeat(113)), 1),
            ("crates/engine/src/a.rs", "pub(crate) const KEYS_MAX: usize = 1;\n".to_owned(), 1),
            ("crates/engine/src/limits.rs", "pub(crate) const KEYS_MAX: usize = 1;\n".to_owned(), 0),
            ("crates/engine/tests/a.rs", "const KEYS_MAX: usize = 1;\n".to_owned(), 0),
            ("crates/engine/src/a.rs", "const KEYS: usize = 1;\n".to_owned(), 0),
            ("crates/engine/src/a.rs", "std::fs::rename(a, b)?;\n".to_owned(), 1),
            ("crates/sqlcached/src/replace.rs", "fs::rename(a, b)?;\n".to_owned(), 0),
            ("tests/it/a.rs", "fs::rename(a, b)?;\n".to_owned(), 0),
        ] {
            assert_eq!(complaints(name, &text).len(), count, "{text:?}");
        }
    }
}
