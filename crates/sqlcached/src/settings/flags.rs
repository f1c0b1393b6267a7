//! The command line: one flag a setting, and the few that are no settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::chosen::Given;
use super::{ALL, Kind, Section, Setting, of_section};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Serve, with these settings and this configuration file.
    Serve { given: Given, config: Option<PathBuf> },
    /// Print the commented default configuration file.
    PrintConfig,
}

/// Reads a command line, the program's name first. The error is clap's: it also carries `--help` and `-V`.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, clap::Error> {
    let matches = command().try_get_matches_from(arguments)?;
    if matches.get_flag("print-config") {
        return Ok(Request::PrintConfig);
    }
    let given = ALL.iter().filter_map(|setting| given_by(setting, &matches)).collect();
    Ok(Request::Serve { given, config: matches.get_one::<PathBuf>("config").cloned() })
}

fn given_by(setting: &'static Setting, matches: &ArgMatches) -> Option<(&'static str, (String, String))> {
    let text = match setting.kind {
        Kind::Count { .. } => Some(matches.get_count(setting.name)).filter(|count| *count > 0)?.to_string(),
        _ => matches.get_one::<String>(setting.name)?.clone(),
    };
    let flag = match setting.letter {
        Some(letter) => format!("the flag -{letter}, --{}", setting.flag()),
        None => format!("the flag --{}", setting.flag()),
    };
    Some((setting.name, (text, flag)))
}

fn command() -> Command {
    let mut command = Command::new("sqlcached")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A cache that memcached clients and SQL use at once.")
        .after_help(
            "Each setting may also stand in the configuration file under its name with underscores, or in the \
             environment as SQLCACHED_<NAME>. A flag goes before the environment, the environment before the file.",
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("PATH")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Configuration file to read; also SQLCACHED_CONFIG."),
        )
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Prints a configuration file with every setting, explained, and its default."),
        );
    for section in Section::ALL {
        for setting in of_section(section) {
            command = command.arg(argument(setting).help_heading(section.title()));
        }
    }
    command
}

fn argument(setting: &'static Setting) -> Arg {
    let default = match setting.default {
        "off" | "0" | "none" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let mut argument = Arg::new(setting.name)
        .long(setting.flag())
        .help(format!("{}{default}", setting.help))
        .aliases(setting.aliases.iter().copied())
        .alias(setting.name);
    if let Some(letter) = setting.letter {
        argument = argument.short(letter);
    }
    match setting.kind {
        Kind::Count { .. } => argument.action(ArgAction::Count),
        Kind::Switch => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("on").value_name("on|off")
        }
        kind => {
            argument.value_name(kind.placeholder()).allow_hyphen_values(true).overrides_with(setting.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, Request, command, parse};

    fn given(line: &str) -> Given {
        let words = std::iter::once("sqlcached").chain(line.split_whitespace()).map(Into::into);
        match parse(words).unwrap() {
            Request::Serve { given, .. } => given,
            Request::PrintConfig => panic!("not asked"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn memcached_command_lines_work() {
        for line in [
            "-p 11300 -m 256 -c 100 -t 2 -I 2m -l 127.0.0.1 -s /tmp/x -a 0700 -vv",
            "-p11300 -m256 -c100 -t2 -I2m -l127.0.0.1 -s/tmp/x -a0700 -v -v",
            "--port=11300 --memory-limit=256 --conn-limit=100 --threads=2 --max-item-size=2m --listen=127.0.0.1 \
             --unix-socket=/tmp/x --unix-mask=0700 --verbose --verbose",
            "--port 11300 --memory_mb 256 --max_connections 100 --threads 2 --max_item_size 2m \
             --listen_addresses 127.0.0.1 --unix_socket_path /tmp/x --unix_socket_permissions 0700 --verbosity -v",
        ] {
            let given = given(line);
            let texts: Vec<_> = given.iter().map(|(name, (text, _))| format!("{name}={text}")).collect();
            assert_eq!(
                texts.join(" "),
                "listen_addresses=127.0.0.1 max_connections=100 max_item_size=2m memory_mb=256 port=11300 threads=2 \
                 unix_socket_path=/tmp/x unix_socket_permissions=0700 verbosity=2",
                "{line}"
            );
        }
    }

    #[test]
    fn a_switch_alone_is_on() {
        assert_eq!(given("--cold")["cold"].0, "on");
        assert_eq!(given("--cold=off")["cold"].0, "off");
    }
}
