//! The licences of all that is linked into the program: their authors ask that their texts go with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::said;
use crate::metadata::{cargo, metadata, packages, text};

/// How the files begin in which crates have their licences.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Each text once, below the crates that have it.
pub(super) fn all() -> Result<String, String> {
    let linked = linked()?;
    let metadata = metadata(true)?;
    let mut crates_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::from("Linked into sqlcached:\n\n");
    for package in packages(&metadata) {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let crate_name = format!("{name} {version}");
        if !linked.contains(&crate_name) {
            continue;
        }
        let _ = writeln!(list, "{crate_name}: {}", text(package, "license"));
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap_or_else(|| Path::new("."));
        for text in texts(folder)? {
            crates_of.entry(text).or_default().push(crate_name.clone());
        }
    }
    for (text, crates) in crates_of {
        let _ = write!(list, "\n\n=== {} ===\n\n{}\n", crates.join(", "), text.trim());
    }
    Ok(list)
}

/// The crates of others, by name and version.
pub(super) fn linked() -> Result<Vec<String>, String> {
    let mut tree = cargo();
    tree.args([
        "tree",
        "--locked",
        "--package",
        "sqlcached",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let lines = said(&mut tree)?;
    let foreign = lines.lines().filter(|line| !line.contains(" (/"));
    Ok(foreign
        .map(|line| {
            line.replace(" v", " ").trim_end_matches(" (*)").trim_end_matches(" (proc-macro)").to_owned()
        })
        .collect())
}

fn texts(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_licence = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin))
    };
    Ok(paths
        .iter()
        .filter(|path| is_licence(path))
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect())
}
