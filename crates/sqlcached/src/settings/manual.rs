//! The manual page and the completions of shells, made from the same command line as `--help`.
//!
//! They lie under `packaging/`, and packages install them from there. `UPDATE=1 cargo test -p sqlcached documents`
//! writes them again.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{ALL, Kind, flags};
use crate::top;

/// The file of each shell's completions, under the name by which the shell finds it.
pub(super) const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "completions/sqlcached"),
    (Shell::Zsh, "completions/_sqlcached"),
    (Shell::Fish, "completions/sqlcached.fish"),
];

/// Where the daemon's files are if settings do not say otherwise, and what each holds.
const FILES: &[(&str, &str)] = &[
    ("/etc/sqlcached/sqlcached.toml", "The settings of the service. sqlcached --print-config prints one."),
    ("/etc/default/sqlcached", "Flags of the service: OPTIONS=\"-m 256 -c 4096\"."),
    ("/dev/shm/sqlcached-<uid>/<port>.arena", "The rows. A start attaches them again, so a restart is warm."),
    ("/dev/shm/sqlcached-<uid>/<port>.arena.shared", "The tables that other processes may read in place."),
    (
        "/dev/shm/sqlcached-<uid>/<port>.arena.history",
        "The history of the server's figures (sqlcached_history).",
    ),
    ("/dev/shm/sqlcached-<uid>/<port>.sock", "The Unix socket for memcached clients."),
];

/// What it does when it gets a signal.
const SIGNALS: &[(&str, &str)] = &[
    (
        "SIGHUP",
        "Reads settings, roles, rules and certificates again. The log says what changed, and what waits for a start.",
    ),
    ("SIGTERM, SIGINT", "Finishes the running requests and stops. The rows stay for the next start."),
];

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "It stopped as it was asked to."),
    ("1", "It could not start: a port or a file is in use, or there is not enough memory."),
    ("2", "A setting is wrong."),
];

const DESCRIPTION: &str = "sqlcached keeps cached data in tables. Clients of memcached read and write them by key, and \
    clients of PostgreSQL by SQL. So one statement expires or deletes all rows of a page, a user or a tag.";

const ENVIRONMENT: &str = "Each setting is also a variable SQLCACHED_<NAME>, with the long flag's name in capitals and \
    underscores: SQLCACHED_MEMORY_MB=256. A flag goes before the environment, the environment before the file.";

const SEE_ALSO: &str =
    "memcached(1), psql(1), sqlcached(3), systemctl(1). The documentation is in /usr/share/doc/sqlcached.";

/// `sqlcached.1`.
pub(super) fn page() -> String {
    let command = flags::command()
        .about("a cache server for memcached clients and SQL")
        .override_usage("sqlcached [OPTION]...");
    let man = Man::new(command);
    // No date: the page changes only if what it says does.
    let mut page =
        format!(".TH SQLCACHED 1 \"\" \"sqlcached {}\" \"sqlcached\"\n", env!("CARGO_PKG_VERSION"))
            .into_bytes();
    man.render_name_section(&mut page).unwrap();
    man.render_synopsis_section(&mut page).unwrap();
    paragraph("DESCRIPTION", DESCRIPTION).to_writer(&mut page).unwrap();
    man.render_options_section(&mut page).unwrap();
    list("COMMANDS", &[("sqlcached top", top::ABOUT)]).to_writer(&mut page).unwrap();
    options_of(&top::command()).to_writer(&mut page).unwrap();
    paragraph("ENVIRONMENT", ENVIRONMENT).to_writer(&mut page).unwrap();
    list("FILES", FILES).to_writer(&mut page).unwrap();
    list("SIGNALS", SIGNALS).to_writer(&mut page).unwrap();
    list("EXIT STATUS", EXIT_STATUS).to_writer(&mut page).unwrap();
    paragraph("SEE ALSO", SEE_ALSO).to_writer(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

fn paragraph(title: &str, text: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]).text([roman(text)]);
    section
}

fn list(title: &str, lines: &[(&str, &str)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (name, says) in lines {
        section.control("TP", []).text([bold(*name)]).text([roman(*says)]);
    }
    section
}

/// The flags of a command of its own.
fn options_of(command: &Command) -> Roff {
    let mut section = Roff::new();
    section.control("SS", [format!("Options of sqlcached {}", command.get_name()).as_str()]);
    for argument in command.get_arguments() {
        let short = argument.get_short().map_or_else(String::new, |letter| format!("-{letter}, "));
        let long = argument.get_long().unwrap_or_default();
        let value = argument.get_value_names().filter(|_| argument.get_action().takes_values());
        let value = value.map_or_else(String::new, |names| format!(" {}", names.join(" ")));
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        section.control("TP", []).text([bold(format!("{short}--{long}{value}"))]).text([roman(help)]);
    }
    section
}

/// What a shell reads to complete a command line.
pub(super) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut hinted(flags::command()), "sqlcached", &mut script);
    String::from_utf8(script).unwrap()
}

/// The flags with what a shell may offer as their values, and of their help what fits beside them. The daemon itself
/// checks values by [`Kind::parse`], whose messages say more than clap's.
fn hinted(command: Command) -> Command {
    ALL.iter().copied().fold(command, |command, setting| {
        command.mut_arg(setting.name, |argument| {
            offering(argument.help(first_sentence(setting.help)), setting.kind)
        })
    })
}

fn offering(argument: Arg, kind: Kind) -> Arg {
    match kind {
        Kind::Switch => argument.value_parser(PossibleValuesParser::new(["on", "off"])),
        Kind::Word { words } => argument.value_parser(PossibleValuesParser::new(words)),
        Kind::Path { .. } => argument.value_hint(ValueHint::AnyPath),
        Kind::User => argument.value_hint(ValueHint::Username),
        Kind::Count { .. } => argument,
        _ => argument.value_hint(ValueHint::Other),
    }
}

fn first_sentence(help: &'static str) -> &'static str {
    let end = [". ", "; "].iter().filter_map(|end| help.find(end)).min();
    end.map_or_else(|| help.trim_end_matches('.'), |end| &help[..end])
}

mod tests {
    use std::process::Command;

    use clap_complete::Shell;

    use super::{completions, page};

    /// What bash offers for a line whose last word is being typed.
    fn offered(words: &[&str]) -> Vec<String> {
        let last = words.len();
        let script = format!(
            "{}\nCOMP_WORDS=(sqlcached {}); COMP_CWORD={last}; _sqlcached sqlcached '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            completions(Shell::Bash),
            words.join(" "),
            words[last - 1],
            if last > 1 { words[last - 2] } else { "sqlcached" },
        );
        let said = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        assert!(said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_completes_flags_and_their_values() {
        assert_eq!(offered(&["--mem"]), ["--memory-mb"]);
        assert_eq!(offered(&["--huge-pages", "t"]), ["try"]);
        assert_eq!(offered(&["--flush-enabled", "o"]), ["on", "off"]);
        assert!(offered(&["--arena", "/et"]).contains(&"/etc".to_owned()));
    }

    #[test]
    fn the_page_is_sound_for_groff() {
        let path = std::env::temp_dir().join(format!("sqlcached-manual-{}.1", std::process::id()));
        std::fs::write(&path, page()).unwrap();
        let said = Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(&path).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(said.status.success() && said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
        assert!(
            String::from_utf8_lossy(&said.stdout).contains("a cache server for memcached clients and SQL")
        );
    }
}
