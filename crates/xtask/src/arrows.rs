//! Which crate may use which. The directions are the architecture: a protocol crate knows no store, the store
//! knows no socket and no SQLite, and nothing below the session can be reached around it.

use std::fs;

use serde_json::Value;

use crate::Outcome;
use crate::metadata::{metadata, packages, root, text};

/// A crate, the crates of ours it may use, and whether it may hold `unsafe` code.
type Rule = (&'static str, &'static [&'static str], bool);

/// Every crate of the workspace. A new crate fails the check until somebody has thought about its place.
const RULES: &[Rule] = &[
    ("arena", &[], true),
    ("memcache", &[], false),
    ("postgres", &[], false),
    ("store", &["arena"], false),
    ("sqltext", &["store"], false),
    ("auth", &["sqltext"], false),
    ("inspect", &["postgres", "sqltext"], false),
    ("sqlite", &["sqltext", "store"], true),
    ("pgcatalog", &["sqlite", "sqltext", "store"], false),
    ("dialect", &["pgcatalog", "sqltext", "store"], false),
    ("sql", &["dialect", "pgcatalog", "sqlite", "sqltext", "store"], false),
    ("sqlcached-client", &["store"], false),
    ("sqlcached-client-c", &["sqlcached-client"], true),
    ("sqlcached-python", &["sqlcached-client"], false),
    ("engine", &["auth", "store", "sql"], false),
    ("server", &["engine", "forward", "memcache", "postgres", "store"], false),
    ("forward", &["engine", "inspect", "postgres", "sqltext", "store"], false),
    ("source", &["engine", "forward", "inspect", "postgres", "store"], false),
    ("cluster", &["engine", "source", "store"], false),
    ("sqlcached", &["server", "source", "cluster", "engine", "forward", "store", "sqlcached-client"], false),
    (
        "sqlcached-bench",
        &["sqlcached", "sqlcached-client", "server", "engine", "memcache", "sql", "store", "arena"],
        false,
    ),
    ("xtask", &[], false),
];

/// Compares the manifests and the sources with [`RULES`].
pub(crate) fn check() -> Outcome {
    let metadata = match metadata(false) {
        Ok(metadata) => metadata,
        Err(why) => return Outcome::broken(why),
    };
    let ours: Vec<&str> = packages(&metadata).iter().map(|package| text(package, "name")).collect();
    let mut passed = 0;
    let mut failures = Vec::new();
    for package in packages(&metadata) {
        let name = text(package, "name");
        let Some((_, allowed, may_be_unsafe)) = RULES.iter().find(|(rule, ..)| *rule == name) else {
            failures.push(format!("crate {name} has no place in crates/xtask/src/arrows.rs"));
            continue;
        };
        for used in uses(package, &ours) {
            if allowed.contains(&used) {
                passed += 1;
            } else {
                failures.push(format!("{name} uses {used}; it may use only {allowed:?}"));
            }
        }
        if !may_be_unsafe {
            match forbids_unsafe(package) {
                Ok(count) => passed += count,
                Err(why) => failures.push(why),
            }
        }
    }
    Outcome::new(passed, failures)
}

/// Our own crates among a package's dependencies, those for tests included.
fn uses<'a>(package: &'a Value, ours: &[&str]) -> Vec<&'a str> {
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    let name = text(package, "name");
    dependencies
        .iter()
        .map(|used| text(used, "name"))
        .filter(|used| ours.contains(used) && *used != name)
        .collect()
}

/// Every library and program of the package opens with `#![forbid(unsafe_code)]`.
fn forbids_unsafe(package: &Value) -> Result<usize, String> {
    let targets = package["targets"].as_array().map_or(&[][..], Vec::as_slice);
    let mut count = 0;
    for target in targets {
        let kinds = target["kind"].as_array().map_or(&[][..], Vec::as_slice);
        if !kinds.iter().any(|kind| kind == "lib" || kind == "bin") {
            continue;
        }
        let path = text(target, "src_path");
        let source = fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))?;
        if !source.contains("#![forbid(unsafe_code)]") {
            return Err(format!("{path} does not say #![forbid(unsafe_code)]"));
        }
        count += 1;
    }
    Ok(count)
}
