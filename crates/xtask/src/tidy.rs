//! What a compiler does not check: file sizes, characters, leftovers, words that belong to one machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::Outcome;
use crate::metadata::root;

/// A longer file has more than one job.
const LINES_MAX: usize = 900;

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

/// Files under version control and new ones that are not ignored, relative to the root.
pub(crate) fn tracked_files() -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let listing = String::from_utf8_lossy(&output.stdout);
    Ok(listing
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect())
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
        if extension == "rs" && line.contains(concat!("allow(clippy::", "undocumented_unsafe")) {
            complain("every unsafe block has its proof".to_owned());
        }
    }
    found
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
        ] {
            assert_eq!(complaints(name, &text).len(), count, "{text:?}");
        }
    }
}
