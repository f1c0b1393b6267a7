//! Links in the documents lead somewhere: a file of ours, and a heading in it where one is named.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::metadata::{root, tracked_files};

/// Follows every relative link of every Markdown file.
pub(crate) fn check() -> Outcome {
    let files = match tracked_files() {
        Ok(files) => files,
        Err(why) => return Outcome::broken(why),
    };
    let mut passed = 0;
    let mut failures = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let Ok(text) = fs::read_to_string(root().join(file)) else { continue };
        for target in targets(&text) {
            match follow(file, target) {
                Ok(()) => passed += 1,
                Err(why) => failures.push(format!("{}: {why}", file.display())),
            }
        }
    }
    Outcome::new(passed, failures)
}

/// What stands in `](...)` outside fenced code, except addresses on the network.
fn targets(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = &rest[..end];
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target);
            }
            rest = &rest[end..];
        }
    }
    found
}

fn follow(from: &Path, target: &str) -> Result<(), String> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file: PathBuf = if path.is_empty() {
        from.to_path_buf()
    } else {
        from.parent().map_or_else(PathBuf::new, Path::to_path_buf).join(path)
    };
    let absolute = root().join(&file);
    if !absolute.exists() {
        return Err(format!("link to {target}: no such file"));
    }
    if heading.is_empty() {
        return Ok(());
    }
    let text = fs::read_to_string(&absolute).map_err(|error| format!("link to {target}: {error}"))?;
    if text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading) {
        Ok(())
    } else {
        Err(format!("link to {target}: no such heading"))
    }
}

/// The name under which a heading can be linked: lower case, hyphens for spaces, no punctuation.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{anchor, targets};

    #[test]
    fn headings_become_anchors() {
        assert_eq!(anchor("## Where do I change...?"), "where-do-i-change");
        assert_eq!(anchor("# `sql` and `sqlp`"), "sql-and-sqlp");
    }

    #[test]
    fn links_are_found_outside_code() {
        let text = "see [a](b.md) and [c](d.md#e)\n```sh\n[x](y)\n```\n[web](https://example.org)\n";
        assert_eq!(targets(text), ["b.md", "d.md#e"]);
    }
}
