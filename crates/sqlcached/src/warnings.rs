//! What a start warns of: things that work now and will surprise somebody later.

use std::fs;
use std::path::Path;

use store::definition::nearest;
use tracing::warn;

use crate::place::{MEMORY_FILES, Places};
use crate::settings::{ALL, file};
use crate::{CONFIG_VARIABLE, SOCKET_VARIABLE, background};

/// What the names of our variables begin with.
const OURS: &str = "SQLCACHED_";

/// The first user of a person: systemd's logind removes the files of nobody below.
const PERSONS_FROM: u32 = 1_000;

/// The files that configure logind. If two of them set an option, the later one wins.
const LOGIND: &[&str] = &[
    "/usr/lib/systemd/logind.conf.d",
    "/etc/systemd/logind.conf",
    "/run/systemd/logind.conf.d",
    "/etc/systemd/logind.conf.d",
];

/// Warns of all that.
#[allow(clippy::disallowed_methods, reason = "names of the environment that no setting has")]
pub(crate) fn warn_of(places: &Places, memory_mb: u64) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names {
        if let Some(why) = unknown_variable(&name) {
            warn!("the environment variable {name} has no effect: {why}");
        }
    }
    let Some(arena) = &places.arena else { return };
    let folder = arena.parent().unwrap_or_else(|| Path::new("/"));
    if let Ok(found) = rustix::fs::statvfs(folder)
        && let Some(why) = too_large(memory_mb, found.f_blocks.saturating_mul(found.f_frsize) >> 20)
    {
        warn!("memory_mb: {} is on a file system of {why}", arena.display());
    }
    let user = rustix::process::geteuid().as_raw();
    if user >= PERSONS_FROM && arena.starts_with(MEMORY_FILES) && is_removed_at_logout() {
        warn!(
            "systemd removes {} when the user {user} logs out (RemoveIPC of logind.conf), and the rows with it; write \
             RemoveIPC=no into /etc/systemd/logind.conf, or run sqlcached as a system user",
            arena.display()
        );
    }
}

/// What to say of a variable that looks like a setting's and is none.
fn unknown_variable(name: &str) -> Option<String> {
    let own = name.strip_prefix(OURS)?;
    let known = ALL.iter().any(|setting| setting.variable() == name);
    if known || [CONFIG_VARIABLE, SOCKET_VARIABLE, background::MARK].contains(&name) {
        return None;
    }
    let near = nearest(own, file::names());
    Some(match near {
        Some(setting) => format!("there is no such setting; did you mean {}?", setting.variable()),
        None => "there is no such setting; --help lists them".to_owned(),
    })
}

/// What to say of more memory than a file system has, both in MiB.
fn too_large(memory_mb: u64, size_mb: u64) -> Option<String> {
    (memory_mb > size_mb).then(|| {
        format!(
            "{size_mb} MiB, less than the {memory_mb} MiB that rows may take: when it is full, rows are evicted; lower -m, \
             enlarge it, or choose another file (--arena)"
        )
    })
}

/// Whether logind does so here: it is systemd's default, and Debian's.
fn is_removed_at_logout() -> bool {
    if !Path::new("/run/systemd/system").exists() {
        return false;
    }
    let mut texts = Vec::new();
    for place in LOGIND.iter().map(Path::new) {
        if let Ok(text) = fs::read_to_string(place) {
            texts.push(text);
        }
        let Ok(entries) = fs::read_dir(place) else { continue };
        let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        texts.extend(files.iter().filter_map(|path| fs::read_to_string(path).ok()));
    }
    removes(&texts)
}

/// What the last of these files says; yes without a word.
fn removes(texts: &[String]) -> bool {
    let lines = texts.iter().flat_map(|text| text.lines());
    let mut said =
        lines.filter_map(|line| line.trim().strip_prefix("RemoveIPC")?.trim_start().strip_prefix('='));
    said.next_back()
        .is_none_or(|word| !["no", "false", "off", "0"].contains(&word.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::{removes, too_large, unknown_variable};

    #[test]
    fn a_variable_that_is_no_setting_is_named() {
        assert_eq!(unknown_variable("SQLCACHED_PORT"), None);
        assert_eq!(unknown_variable("SQLCACHED_CONFIG"), None);
        assert_eq!(unknown_variable("SQLCACHED_SOCKET"), None);
        assert_eq!(unknown_variable(crate::background::MARK), None);
        assert_eq!(unknown_variable("PATH"), None);
        let why = unknown_variable("SQLCACHED_MEMORY").unwrap();
        assert_eq!(why, "there is no such setting; did you mean SQLCACHED_MEMORY_MB?");
        assert!(unknown_variable("SQLCACHED_FROBNICATE").unwrap().ends_with("--help lists them"));
    }

    #[test]
    fn more_memory_than_the_file_system_has_is_named() {
        assert_eq!(too_large(64, 64), None);
        assert!(too_large(65, 64).unwrap().starts_with("64 MiB, less than the 65 MiB"));
    }

    #[test]
    fn the_last_word_of_logind_counts() {
        for (texts, expected) in [
            (&[][..], true),
            (&["[Login]\n#RemoveIPC=no\n"][..], true),
            (&["[Login]\nRemoveIPC=no\n"][..], false),
            (&["RemoveIPC = No\n", "RemoveIPC=yes\n"][..], true),
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(removes(&texts), expected, "{texts:?}");
        }
    }
}
