//! The version: where it stands, how another one is written there, and what CHANGELOG.md says of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::install;
use crate::metadata::{root, tracked_files};

/// The heading in CHANGELOG.md of what is not released yet.
const UNRELEASED: &str = "## Unreleased";

/// Folders and files that name the version; elsewhere the same number is another one's.
const PLACES: [&str; 6] = ["Cargo.toml", "README.md", "clients/", "docs/", "examples/", "ops/"];

/// Files in these folders that list the versions of others.
const LOCKS: [&str; 2] = ["package-lock.json", "Cargo.lock"];

/// Writes another version everywhere, and turns what is unreleased in CHANGELOG.md into its section.
pub(crate) fn change(wanted: &str) -> Result<(), String> {
    if numbers(wanted).is_none() {
        return Err(format!("'{wanted}' is no version; it has three numbers, as 0.2.0"));
    }
    let is = install::version()?;
    let changed = |path: &Path, new: fn(&str, &str, &str) -> String| {
        let full = root().join(path);
        let Ok(old) = fs::read_to_string(&full) else { return Ok(()) };
        let text = new(&old, &is, wanted);
        if text == old {
            return Ok(());
        }
        println!("{}", path.display());
        fs::write(&full, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    for path in tracked_files()?.iter().filter(|path| names_the_version(path)) {
        changed(path, replaced)?;
    }
    changed(Path::new("CHANGELOG.md"), |text, _, wanted| released(text, wanted, &today()))?;
    // Cargo.lock has the versions of our own crates, too.
    let mut update = crate::metadata::cargo();
    let updated = update.args(["update", "--workspace", "--offline", "--quiet"]).status();
    if updated.is_ok_and(|status| status.success()) {
        Ok(())
    } else {
        Err("cargo update --workspace failed".into())
    }
}

/// What CHANGELOG.md says of a version, without its heading.
pub(crate) fn notes(changelog: &str, version: &str) -> Result<String, String> {
    let heading = format!("## {version} ");
    section(changelog, &heading, version)
}

/// The same of what is not released yet, for a trial.
pub(crate) fn trial_notes(changelog: &str, version: &str) -> Result<String, String> {
    notes(changelog, version).or_else(|_| section(changelog, UNRELEASED, version))
}

fn section(changelog: &str, heading: &str, version: &str) -> Result<String, String> {
    let mut lines = changelog.lines().skip_while(|line| !line.starts_with(heading));
    let Some(title) = lines.next() else {
        return Err(format!(
            "CHANGELOG.md has no heading '{heading}'; 'make version VERSION={version}' makes it"
        ));
    };
    let own: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let text = own.join("\n");
    if text.trim().is_empty() {
        return Err(format!("CHANGELOG.md says nothing of {version}"));
    }
    Ok(format!("# sqlcached {}\n\n{}\n", title.trim_start_matches("## "), text.trim()))
}

fn names_the_version(path: &Path) -> bool {
    let name = path.to_string_lossy();
    PLACES.iter().any(|place| name.starts_with(place)) && !LOCKS.iter().any(|lock| name.ends_with(lock))
}

/// The lines about us, with the other version.
fn replaced(text: &str, is: &str, wanted: &str) -> String {
    let ours = |line: &str| line.contains("sqlcached") || line.to_lowercase().contains("version");
    let lines = text.split_inclusive('\n');
    lines.map(|line| if ours(line) { line.replace(is, wanted) } else { line.to_owned() }).collect()
}

/// CHANGELOG.md with the section of a version, and an empty one for what comes.
fn released(text: &str, wanted: &str, date: &str) -> String {
    text.replacen(UNRELEASED, &format!("{UNRELEASED}\n\n## {wanted} ({date})"), 1)
}

fn today() -> String {
    let date = Command::new("date").args(["--utc", "+%Y-%m-%d"]).output();
    date.map_or_else(|_| String::new(), |said| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let numbers: Option<Vec<u32>> = version.split('.').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n- More.\n\n## 0.1.0 (2026-01-01)\n\n- First.\n";

    #[test]
    fn a_section_becomes_the_notes() {
        let text = released(CHANGELOG, "0.2.0", "2026-02-02");
        assert_eq!(notes(&text, "0.2.0").unwrap(), "# sqlcached 0.2.0 (2026-02-02)\n\n- More.\n");
        assert_eq!(notes(&text, "0.1.0").unwrap(), "# sqlcached 0.1.0 (2026-01-01)\n\n- First.\n");
        assert!(notes(&text, "0.3.0").is_err());
        // Released twice, the second has nothing to say.
        assert!(
            notes(&released(&text, "0.2.1", "2026-02-03"), "0.2.1").unwrap_err().contains("says nothing")
        );
    }

    #[test]
    fn only_our_version_is_replaced() {
        let text = "sqlcached_0.1.0-1_amd64.deb\n  \"version\": \"0.1.0\",\nleft-pad 0.1.0\n";
        let new = "sqlcached_0.2.0-1_amd64.deb\n  \"version\": \"0.2.0\",\nleft-pad 0.1.0\n";
        assert_eq!(replaced(text, "0.1.0", "0.2.0"), new);
        assert_eq!(numbers("0.2.0"), Some([0, 2, 0]));
        assert_eq!([numbers("0.2"), numbers("v0.2.0"), numbers("")], [None; 3]);
    }

    /// Each package of a client names the version in a file of its own.
    #[test]
    fn every_package_has_the_version_of_the_project() {
        let is = install::version().unwrap();
        let lines = |path: &str, begin: &str| {
            let text = fs::read_to_string(root().join(path)).unwrap();
            let line = text.lines().map(str::trim).find(|line| line.starts_with(begin));
            line.map_or_else(|| panic!("{path} has no {begin}"), ToOwned::to_owned)
        };
        for (path, begin) in [
            ("clients/node/package.json", "\"version\":"),
            ("clients/node-cache/package.json", "\"version\":"),
            ("clients/php/composer.json", "\"version\":"),
            ("clients/perl/lib/Sqlcached.pm", "our $VERSION"),
            ("clients/django/pyproject.toml", "version ="),
            ("clients/django/django_sqlcached/__init__.py", "__version__"),
            ("clients/dogpile/pyproject.toml", "version ="),
            ("clients/dogpile/dogpile_sqlcached/__init__.py", "__version__"),
            ("clients/ruby/lib/sqlcached/version.rb", "VERSION"),
            ("clients/java/pom.xml", "<version>"),
            ("clients/java/client/pom.xml", "<version>"),
        ] {
            let line = lines(path, begin);
            assert!(line.contains(&is), "{path}: {line}, and the project has {is}");
        }
    }
}
