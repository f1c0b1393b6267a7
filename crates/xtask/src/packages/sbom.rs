//! The list of what is linked into the program (SBOM), as CycloneDX: who has to find a crate in all that runs asks it.
//!
//! Cargo knows all of it, so it is one walk over Cargo's answer. A tool for it would be compiled for minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::{notices, written};
use crate::install;
use crate::metadata::{metadata, packages, root, text};

/// Writes the list.
pub(super) fn write(to: &Path) -> Result<(), String> {
    let (version, metadata) = (install::version()?, metadata(true)?);
    // Cargo's tree names a crate wherever it is used.
    let linked: BTreeSet<String> = notices::linked()?.into_iter().collect();
    let lock =
        std::fs::read_to_string(root().join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let hashes = hashes(&lock);
    let mut components = Vec::new();
    for package in packages(&metadata) {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let id = format!("{name} {version}");
        if linked.contains(&id) {
            let hash = hashes.get(&id).ok_or_else(|| format!("Cargo.lock has no checksum of {id}"))?;
            components.push(component(package, hash));
        }
    }
    if components.len() != linked.len() {
        return Err(format!("{} crates are linked, and {} described", linked.len(), components.len()));
    }
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": "sqlcached",
            "name": "sqlcached",
            "version": version,
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        } },
        "components": components,
    });
    written(to, &format!("{list:#}\n"))
}

fn component(package: &Value, hash: &str) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let url = format!("pkg:cargo/{name}@{version}");
    // Old crates write `MIT/Apache-2.0`, which is no expression of SPDX.
    let licence = text(package, "license").replace('/', " OR ");
    json!({
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "purl": url,
        "licenses": [{ "expression": licence }],
        "hashes": [{ "alg": "SHA-256", "content": hash }],
    })
}

/// The checksums in Cargo.lock, by name and version.
fn hashes(lock: &str) -> BTreeMap<String, String> {
    let of_package = |part: &str| {
        let field = |name: &str| {
            let line = part.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        Some((format!("{} {}", field("name")?, field("version")?), field("checksum")?))
    };
    lock.split("[[package]]").filter_map(of_package).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn checksums_are_found_by_name_and_version() {
        let lock = "[[package]]\nname = \"own\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"mio\"\nversion = \"1.2.0\"\n\
                    source = \"registry\"\nchecksum = \"ab12\"\ndependencies = [\n \"libc\",\n]\n";
        let hashes = super::hashes(lock);
        assert_eq!(hashes.into_iter().collect::<Vec<_>>(), [("mio 1.2.0".to_owned(), "ab12".to_owned())]);
    }
}
