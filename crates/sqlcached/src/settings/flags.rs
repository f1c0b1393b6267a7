//! The command line: one flag a setting, and the few that are no settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};
use store::definition::nearest;

use super::chosen::Given;
use crate::top;

use super::{ALL, Kind, Section, Setting, file, memcached, of_section};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Serve, with these settings and this configuration file.
    Serve {
        given: Given,
        config: Option<PathBuf>,
        /// memcached's flags that were given and mean nothing here, each with why.
        ignored: Vec<String>,
        /// In the background.
        background: bool,
    },
    /// Print the commented default configuration file.
    PrintConfig,
    /// Print under which terms it may be used.
    PrintLicense,
    /// Show the figures of a running server.
    Top(ArgMatches),
}

/// Reads a command line, the program's name first. The error is clap's: it also carries `--help` and `-V`.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, clap::Error> {
    let matches = command().try_get_matches_from(arguments).map_err(suggest)?;
    if let Some((top::NAME, asked)) = matches.subcommand() {
        return Ok(Request::Top(asked.clone()));
    }
    if matches.get_flag("print-config") {
        return Ok(Request::PrintConfig);
    }
    if matches.get_flag("license") {
        return Ok(Request::PrintLicense);
    }
    let mut given: Given = ALL.iter().filter_map(|setting| given_by(setting, &matches)).collect();
    let ignored = memcached::take(&matches, &mut given)
        .map_err(|why| command().error(ErrorKind::ValueValidation, why))?;
    let config = matches.get_one::<PathBuf>("config").cloned();
    Ok(Request::Serve { given, config, ignored, background: memcached::wants_background(&matches) })
}

/// Names the flag nearest to one that does not exist, as `--help` writes it. Clap's own choice may be a name that is
/// understood and not shown, or a flag that begins alike.
fn suggest(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    error.remove(ContextKind::SuggestedArg);
    let command = command();
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return error };
    let shown = command.get_arguments().filter_map(Arg::get_long).map(|long| (long, long.to_owned()));
    let aliases = file::names().map(|(name, setting)| (name, setting.flag()));
    let word = wrong.trim_start_matches('-').to_owned();
    if let Some(near) = nearest(&word, shown.chain(aliases)) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{near}")));
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.clone().render_usage()));
    }
    error
}

fn given_by(setting: &'static Setting, matches: &ArgMatches) -> Option<(&'static str, (String, String))> {
    let text = match setting.kind {
        Kind::Count { .. } => Some(matches.get_count(setting.name)).filter(|count| *count > 0)?.to_string(),
        // memcached listens on all of them.
        Kind::Addresses => {
            let given: Vec<&str> = matches.get_many::<String>(setting.name)?.map(String::as_str).collect();
            given.join(",")
        }
        _ => matches.get_one::<String>(setting.name)?.clone(),
    };
    let flag = match setting.letter {
        Some(letter) => format!("the flag -{letter}, --{}", setting.flag()),
        None => format!("the flag --{}", setting.flag()),
    };
    Some((setting.name, (text, flag)))
}

/// Every flag. The manual page and completions are made from it, too.
pub(super) fn command() -> Command {
    let mut command = Command::new("sqlcached")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A cache server for memcached clients and SQL.")
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
    command = command.arg(
        Arg::new("license").short('i').long("license").action(ArgAction::SetTrue).help("Prints the licence."),
    );
    for section in Section::ALL {
        for setting in of_section(section) {
            command = command.arg(argument(setting).help_heading(section.title()));
        }
    }
    // Behind what does something: most of them do nothing here.
    memcached::arguments(command).subcommand(top::command())
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
        Kind::Addresses => argument.action(ArgAction::Append).value_name(setting.kind.placeholder()),
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
            _ => panic!("not asked"),
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

    fn refusal(words: &[&str]) -> Option<String> {
        let words = std::iter::once("sqlcached").chain(words.iter().copied()).map(Into::into);
        parse(words).err().map(|error| error.to_string())
    }

    /// Clap knew `--memory_mb` and `--sql_port` only, which no help shows.
    #[test]
    fn a_flag_that_does_not_exist_names_the_nearest_as_the_help_writes_it() {
        for (wrong, near) in [
            ("--memroy=64", Some("--memory-mb")),
            ("--memory", Some("--memory-mb")),
            ("--memory-limt=64", Some("--memory-mb")),
            ("--sqlport=1", Some("--sql-port")),
            ("--prot=1", Some("--port")),
            ("--max-conns=5", Some("--max-connections")),
            ("--daemn", Some("--daemon")),
            ("--frobnicate", None),
        ] {
            let said = refusal(&[wrong]).unwrap();
            let tip = said.split_once("exists: '").and_then(|(_, rest)| rest.split('\'').next());
            assert_eq!(tip, near, "{said}");
        }
    }

    /// Each flag of `memcached --help`, as Debian's unit, the container image and old scripts give them.
    #[test]
    fn memcached_units_start_unchanged() {
        let line = "sqlcached -d -u memcache -P /run/memcached/memcached.pid -k -b 512 -B auto -C -f 1.25 -n 48 -L \
                    -R 20 -r -U 0 -m 64 -p 11300 -l 127.0.0.1 -F -M -A -X -W -D : -e /dev/shm/x -N 0 -c 99 -t 3 -v \
                    -o modern,idle_timeout=60,no_lru_crawler,slab_automove_freeratio=0.01 -o hashpower=20";
        let Request::Serve { given, ignored, .. } = parse(line.split_whitespace().map(Into::into)).unwrap()
        else {
            panic!("not asked")
        };
        for (name, text) in [
            ("flush_enabled", "off"),
            ("evictions", "off"),
            ("dump_enabled", "off"),
            ("watch_enabled", "off"),
            ("enable_shutdown", "on"),
            ("idle_timeout", "60s"),
            ("memory_mb", "64"),
            ("listen_backlog", "512"),
            ("stat_delimiter", ":"),
            ("user", "memcache"),
            ("pid_file", "/run/memcached/memcached.pid"),
            ("arena", "/dev/shm/x"),
        ] {
            assert_eq!(given[name].0, text, "{name}");
        }
        let letters: Vec<&str> = ignored.iter().filter_map(|why| why.split(':').next()).collect();
        assert_eq!(
            letters.join(" "),
            "-k -L -r -C -f -n -R -B -U -N -o modern -o no_lru_crawler -o slab_automove_freeratio -o hashpower"
        );
    }

    #[test]
    fn memcached_long_flags_are_known() {
        for (long, ignored) in [
            ("--daemon", 0),
            ("--lock-memory", 1),
            ("--udp-port=0", 1),
            ("--slab-growth-factor=1.1", 1),
            ("--user=memcache", 0),
            ("--pidfile=/run/x.pid", 0),
            ("--memory-file=/dev/shm/x", 0),
            ("--disable-evictions", 0),
            ("--disable-flush-all", 0),
            ("--disable-dumping", 0),
            ("--disable-watch", 0),
            ("--enable-shutdown", 0),
            ("--listen-backlog=9", 0),
            ("--extended=idle_timeout=5", 0),
            ("--extended=no_slab_automove,no_chunked_items,slab_automove,slab_automove=1", 4),
            ("--napi_ids=0", 1),
            ("--napi-ids=0", 1),
        ] {
            let parsed = parse(["sqlcached", long].map(Into::into)).unwrap();
            assert!(
                matches!(parsed, Request::Serve { ignored: found, .. } if found.len() == ignored),
                "{long}"
            );
        }
    }

    #[test]
    fn wrong_values_are_refused_though_the_flag_means_nothing() {
        for (words, message) in [
            (&["-f", "1.0"][..], "-f: '1.0' is not allowed; allowed is a number above 1"),
            (&["-f", "x"], "-f: 'x' is not allowed"),
            (&["-n", "0"], "-n: '0' is not allowed"),
            (&["-R", "few"], "-R: 'few' is not allowed"),
            (&["-U", "70000"], "-U: '70000' is not allowed"),
            (&["-B", "other"], "-B: 'other' is not allowed; allowed is auto or ascii or binary"),
            (&["-o", "slab_automove=x"], "-o slab_automove: 'x' is not allowed"),
            (&["-o", "proxy_config=x.lua"], "there is no proxy, so keys"),
            (&["-o", "hashpower=many"], "-o hashpower: 'many' is not allowed"),
            (&["-o", "modern,frobnicate"], "-o frobnicate: memcached has no such option"),
            (&["-o", "no_hashpower"], "-o no_hashpower: memcached has no such option"),
        ] {
            let refusal = refusal(words).unwrap_or_else(|| panic!("{words:?} was taken"));
            assert!(refusal.contains(message), "{words:?}: {refusal}");
        }
    }

    /// Who asks for authentication or encryption gets it.
    #[test]
    fn what_protects_is_not_ignored() {
        for line in [
            "-S -Z -o ssl_chain_cert=c,ssl_key=k,ssl_ca_cert=a,ssl_verify_mode=2,ssl_min_version=3",
            "--enable-sasl --enable-ssl -o ssl_chain_cert=c -o ssl_key=k -o ssl_ca_cert=a -o ssl_verify_mode=2 \
             -o ssl_min_version=3,ssl_session_cache,ssl_wbuf_size=4,ssl_keyformat=PEM",
        ] {
            let given = given(line);
            let texts: Vec<_> = given.iter().map(|(name, (text, _))| format!("{name}={text}")).collect();
            assert_eq!(
                texts.join(" "),
                "enable_sasl=on ssl=on ssl_ca_file=a ssl_cert_file=c ssl_key_file=k ssl_min_protocol_version=TLSv1.3 \
                 ssl_verify_mode=2",
                "{line}"
            );
        }
        assert_eq!(given("-o ssl_min_version=1")["ssl_min_protocol_version"].0, "TLSv1.2");
        for wrong in ["-ossl_verify_mode=4", "-ossl_min_version=x", "-ossl_keyformat=ENGINE", "-ossl_other"] {
            assert!(refusal(&[wrong]).is_some(), "{wrong}");
        }
    }

    /// memcached listens on the address of each `-l`, and a port may stand in it.
    #[test]
    fn addresses_add_up() {
        let line = "-l 127.0.0.1 -l 127.0.0.2:11300,[::1]:11301 --listen localhost";
        assert_eq!(given(line)["listen_addresses"].0, "127.0.0.1,127.0.0.2:11300,[::1]:11301,localhost");
    }

    #[test]
    fn a_switch_alone_is_on() {
        assert_eq!(given("--cold")["cold"].0, "on");
        assert_eq!(given("--cold=off")["cold"].0, "off");
    }
}
