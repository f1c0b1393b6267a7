//! Every package we build upon has a licence that lets anybody use sqlcached under MIT or Apache-2.0.

use serde_json::Value;

use crate::Outcome;
use crate::metadata::{metadata, packages, text};

/// Licences that ask for no more than their text. `A OR B` needs one of these, `A AND B` needs both.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Looks at each package that Cargo.lock pins for any platform.
pub(crate) fn check() -> Outcome {
    let metadata = match metadata(true) {
        Ok(metadata) => metadata,
        Err(why) => return Outcome::broken(why),
    };
    let mut failures = Vec::new();
    let mut passed = 0;
    for package in packages(&metadata) {
        match judge(package) {
            Ok(()) => passed += 1,
            Err(why) => failures.push(why),
        }
    }
    Outcome::new(passed, failures)
}

fn judge(package: &Value) -> Result<(), String> {
    let name = text(package, "name");
    let licence = text(package, "license");
    if licence.is_empty() {
        return Err(format!("{name} states no licence"));
    }
    if acceptable(licence) {
        return Ok(());
    }
    Err(format!("{name} is under '{licence}', which crates/xtask/src/licences.rs does not list"))
}

/// Judges an SPDX expression: OR binds weaker than AND, and parentheses group.
fn acceptable(expression: &str) -> bool {
    let old_style = expression.replace('/', " OR ");
    let words: Vec<String> =
        old_style.replace('(', " ( ").replace(')', " ) ").split_whitespace().map(str::to_owned).collect();
    let mut position = 0;
    let verdict = any_of(&words, &mut position);
    verdict && position == words.len()
}

fn any_of(words: &[String], position: &mut usize) -> bool {
    let mut verdict = all_of(words, position);
    while words.get(*position).is_some_and(|word| word == "OR") {
        *position += 1;
        verdict |= all_of(words, position);
    }
    verdict
}

fn all_of(words: &[String], position: &mut usize) -> bool {
    let mut verdict = one(words, position);
    while words.get(*position).is_some_and(|word| word == "AND") {
        *position += 1;
        verdict &= one(words, position);
    }
    verdict
}

fn one(words: &[String], position: &mut usize) -> bool {
    let Some(word) = words.get(*position) else { return false };
    *position += 1;
    if word == "(" {
        let verdict = any_of(words, position);
        let closed = words.get(*position).is_some_and(|word| word == ")");
        *position += 1;
        return verdict && closed;
    }
    let mut licence = word.clone();
    if words.get(*position).is_some_and(|word| word == "WITH") {
        let exception = words.get(*position + 1).map_or("", String::as_str);
        licence = format!("{word} WITH {exception}");
        *position += 2;
    }
    ALLOWED.contains(&licence.as_str())
}

#[cfg(test)]
mod tests {
    use super::acceptable;

    #[test]
    fn expressions() {
        for (expression, verdict) in [
            ("MIT", true),
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR GPL-3.0) AND GPL-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-2.0 WITH Classpath-exception-2.0", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(acceptable(expression), verdict, "{expression}");
        }
    }
}
