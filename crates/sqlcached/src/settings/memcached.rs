//! memcached's flags that are not settings of ours, so that memcached's units, containers and scripts start this daemon
//! unchanged. This is the table; the parser, `--help` and `docs/settings.md` come from it.
//!
//! A flag takes the same values as in memcached. If it has no meaning here, the log says so. Flags that protect (`-S`,
//! `-Y`, `-Z`) are settings: a daemon must not start without a protection that its operator asked for.

use clap::{Arg, ArgAction, ArgMatches, Command};
use store::definition::nearest;

use super::chosen::Given;
use super::{ALL, Kind, Setting};

/// The effect of a memcached flag here.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// None, and why.
    None(&'static str),
    /// The daemon goes to the background, which the start does.
    Background,
    /// It is refused, and why.
    Refused(&'static str),
    /// A setting gets the value, with this behind it.
    Sets(&'static Setting, &'static str),
    /// A setting gets the second of the pair whose first is the value.
    Maps(&'static Setting, &'static [(&'static str, &'static str)]),
}

/// What values a flag takes.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// None: it is a switch.
    Switch,
    /// As a setting's.
    Value(Kind),
    /// A number or none.
    OptionalNumber,
    /// A number above 1, with or without decimals.
    Factor,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// A memcached flag that is not a setting here.
#[derive(Debug)]
pub(super) struct Flag {
    letter: char,
    long: &'static str,
    form: Form,
    meaning: Meaning,
}

/// One of the words behind `-o`.
#[derive(Debug)]
struct Extended {
    name: &'static str,
    form: Form,
    meaning: Meaning,
}

const fn flag(letter: char, long: &'static str, form: Form, why: &'static str) -> Flag {
    Flag { letter, long, form, meaning: Meaning::None(why) }
}

const fn number(min: u64, max: u64) -> Form {
    Form::Value(Kind::Number { min, max })
}

const CLASSES: &str = "memory is not divided into slab classes";
const SUITES: &str = "every suite that is served is a strong one";
const RESUMPTION: &str = "sessions are not resumed";
const KERNEL: &str = "the daemon encrypts";
/// memcached's numbers of TLS's versions. The first two are not served; asking for them, one takes newer ones as well.
const VERSIONS: &[(&str, &str)] = &[("0", "TLSv1.2"), ("1", "TLSv1.2"), ("2", "TLSv1.2"), ("3", "TLSv1.3")];

/// The table of flags.
static FLAGS: &[Flag] = &[
    Flag { letter: 'd', long: DAEMON, form: Form::Switch, meaning: Meaning::Background },
    flag('k', "lock-memory", Form::Switch, "rows are in shared memory; the mount decides about swap"),
    flag('L', "enable-largepages", Form::Switch, "large pages are used if the system has them (huge_pages)"),
    flag('r', "enable-coredumps", Form::Switch, "the system's limit applies (ulimit -c)"),
    flag('C', "disable-cas", Form::Switch, "every row has a CAS value, which takes no extra memory"),
    flag('f', "slab-growth-factor", Form::Factor, CLASSES),
    flag('n', "slab-min-size", number(1, 1 << 30), CLASSES),
    flag('R', "max-reqs-per-event", number(1, 1 << 31), "connections take turns by a fixed limit"),
    flag(
        'B',
        "protocol",
        Form::Words(&["auto", "ascii", "binary", "auto-negotiate"]),
        "both of memcached's protocols are served; the first byte of a connection decides",
    ),
    flag('U', "udp-port", number(0, 65_535), "there is no UDP"),
    flag('N', NAPI_IDS.0, number(0, 1 << 20), "connections are distributed to the threads in turn"),
];

const fn word(name: &'static str, form: Form, why: &'static str) -> Extended {
    Extended { name, form, meaning: Meaning::None(why) }
}

const CRAWLER: &str = "expired memory is freed in whole segments, without a crawler";
const LRU: &str = "eviction is S3-FIFO";
const INDEX: &str = "the index grows step by step";
const DEFAULT: &str = "this is always on";
const STORAGE: &str = "rows stay in memory";
const PROXY: &str = "there is no proxy, so keys would not go where its configuration sends them";
const BUFFERS: &str = "buffers have fixed limits";
/// Numbers with decimals, and what else memcached's tuning takes: the machinery is not there.
const TUNING: Form = Form::Value(Kind::Path { words: &[] });
const COUNT: Form = number(0, u64::MAX);

/// The table of words behind `-o`; `no_` before one that needs no value is understood, too.
static EXTENDED: &[Extended] = &[
    Extended { name: "idle_timeout", form: COUNT, meaning: Meaning::Sets(&super::IDLE_TIMEOUT, "s") },
    word("maxconns_fast", Form::Switch, DEFAULT),
    word("modern", Form::Switch, DEFAULT),
    word("hashpower", COUNT, INDEX),
    word("hashexpand", Form::Switch, INDEX),
    word("hash_algorithm", Form::Words(&["jenkins", "murmur3", "xxh3"]), INDEX),
    word("tail_repair_time", COUNT, LRU),
    word("lru_crawler", Form::Switch, CRAWLER),
    word("lru_crawler_sleep", COUNT, CRAWLER),
    word("lru_crawler_tocrawl", COUNT, CRAWLER),
    word("lru_maintainer", Form::Switch, LRU),
    word("hot_lru_pct", COUNT, LRU),
    word("warm_lru_pct", COUNT, LRU),
    word("hot_max_factor", TUNING, LRU),
    word("warm_max_factor", TUNING, LRU),
    word("temporary_ttl", COUNT, LRU),
    word("inline_ascii_resp", Form::Switch, DEFAULT),
    word("read_buf_mem_limit", COUNT, BUFFERS),
    word("resp_obj_mem_limit", COUNT, BUFFERS),
    word("watcher_logbuf_size", COUNT, BUFFERS),
    word("worker_logbuf_size", COUNT, BUFFERS),
    word("track_sizes", Form::Switch, "SELECT counts rows by size"),
    word("sock_cookie_id", TUNING, "it belongs to another system's firewall"),
    word("slab_reassign", Form::Switch, CLASSES),
    word("slab_automove", Form::OptionalNumber, CLASSES),
    word("chunked_items", Form::Switch, CLASSES),
    word("slab_automove_ratio", TUNING, CLASSES),
    word("slab_automove_window", COUNT, CLASSES),
    word("slab_automove_freeratio", TUNING, CLASSES),
    word("slab_chunk_max", COUNT, CLASSES),
    word("slab_sizes", TUNING, CLASSES),
    word("drop_privileges", Form::Switch, "the service manager confines the daemon"),
    word("ext_path", TUNING, STORAGE),
    word("ext_page_size", COUNT, STORAGE),
    word("ext_page_count", COUNT, STORAGE),
    word("ext_wbuf_size", COUNT, STORAGE),
    word("ext_threads", COUNT, STORAGE),
    word("ext_io_depth", COUNT, STORAGE),
    word("ext_item_size", COUNT, STORAGE),
    word("ext_item_age", COUNT, STORAGE),
    word("ext_low_ttl", COUNT, STORAGE),
    word("ext_drop_unread", Form::Switch, STORAGE),
    word("ext_recache_rate", COUNT, STORAGE),
    word("ext_compact_under", COUNT, STORAGE),
    word("ext_drop_under", COUNT, STORAGE),
    word("ext_max_frag", TUNING, STORAGE),
    word("ext_max_sleep", COUNT, STORAGE),
    Extended { name: "ssl_chain_cert", form: TUNING, meaning: Meaning::Sets(&super::SSL_CERT_FILE, "") },
    Extended { name: "ssl_key", form: TUNING, meaning: Meaning::Sets(&super::SSL_KEY_FILE, "") },
    Extended { name: "ssl_ca_cert", form: TUNING, meaning: Meaning::Sets(&super::SSL_CA_FILE, "") },
    Extended {
        name: "ssl_verify_mode",
        form: number(0, 3),
        meaning: Meaning::Sets(&super::SSL_VERIFY_MODE, ""),
    },
    Extended {
        name: "ssl_min_version",
        form: number(0, 3),
        meaning: Meaning::Maps(&super::SSL_MIN_PROTOCOL_VERSION, VERSIONS),
    },
    word("ssl_keyformat", Form::Words(&["PEM"]), DEFAULT),
    word("ssl_ciphers", TUNING, SUITES),
    word("ssl_wbuf_size", COUNT, BUFFERS),
    word("ssl_session_cache", Form::Switch, RESUMPTION),
    word("ssl_kernel_tls", Form::Switch, KERNEL),
    Extended { name: "proxy_config", form: TUNING, meaning: Meaning::Refused(PROXY) },
    Extended { name: "proxy_arg", form: TUNING, meaning: Meaning::Refused(PROXY) },
    Extended { name: "proxy_uring", form: Form::Switch, meaning: Meaning::Refused(PROXY) },
];

/// The two names of a flag.
const NAPI_IDS: (&str, &str) = ("napi_ids", "napi-ids");

/// The heading in `--help`.
const HEADING: &str = "memcached's flags that are not settings here";

/// The flag that asks for the background.
const DAEMON: &str = "daemon";
/// What it does.
const IN_BACKGROUND: &str = "Runs in the background; the command returns when the daemon serves. Do not use it with a service manager";

impl Form {
    /// What is allowed, where a value is something else.
    fn refuse(&self, text: &str) -> Option<String> {
        match self {
            Self::Switch => None,
            Self::OptionalNumber if text.is_empty() => None,
            Self::OptionalNumber => COUNT.refuse(text),
            Self::Value(kind) => kind.parse(text).err(),
            Self::Factor => {
                let above = text.parse::<f64>().is_ok_and(|factor| factor > 1.0 && factor.is_finite());
                (!above).then(|| "a number above 1".to_owned())
            }
            Self::Words(words) => (!words.contains(&text)).then(|| words.join(" or ")),
        }
    }

    fn is_switch(&self) -> bool {
        matches!(self, Self::Switch)
    }

    /// Whether `no_` before the word switches it off.
    fn has_opposite(&self) -> bool {
        matches!(self, Self::Switch | Self::OptionalNumber)
    }
}

impl Flag {
    fn why(&self) -> &'static str {
        match self.meaning {
            Meaning::None(why) | Meaning::Refused(why) => why,
            Meaning::Sets(setting, _) | Meaning::Maps(setting, _) => setting.help,
            Meaning::Background => IN_BACKGROUND,
        }
    }
}

/// Adds the flags to the command line.
pub(super) fn arguments(mut command: Command) -> Command {
    for flag in FLAGS {
        let argument = Arg::new(flag.long).short(flag.letter).long(flag.long);
        let argument = argument.help(sentence(flag)).help_heading(HEADING);
        // memcached calls it so in its help, and otherwise in what it takes.
        let argument = if flag.long == NAPI_IDS.0 { argument.alias(NAPI_IDS.1) } else { argument };
        command = command.arg(if flag.form.is_switch() {
            argument.action(ArgAction::Count)
        } else {
            argument.value_name("VALUE").allow_hyphen_values(true).overrides_with(flag.long)
        });
    }
    for setting in ALL.iter().filter(|setting| setting.opposite.is_some()) {
        let Some((letter, long)) = setting.opposite else { continue };
        let argument = Arg::new(long).short(letter).long(long).action(ArgAction::Count);
        let help = format!("The same as --{}=off.", setting.flag());
        command = command.arg(argument.help(help).help_heading(setting.section.title()));
    }
    let extended = Arg::new("extended").short('o').long("extended").action(ArgAction::Append);
    command.arg(extended.value_name("OPTIONS").help_heading(HEADING).help(
        "memcached's extended options, separated by commas. idle_timeout=SECONDS and those that begin with ssl_ have an effect; the others tune memcached's internals.",
    ))
}

fn sentence(flag: &Flag) -> String {
    let before = match flag.meaning {
        Meaning::Refused(_) => "Refused: ",
        Meaning::None(_) => "No effect: ",
        Meaning::Background | Meaning::Sets(..) | Meaning::Maps(..) => "",
    };
    format!("{before}{}.", flag.why())
}

/// Whether the daemon is to go to the background.
pub(super) fn wants_background(matches: &ArgMatches) -> bool {
    matches.get_count(DAEMON) > 0
}

/// Turns memcached's flags into settings. Returns a sentence for each flag without a meaning, or why a flag is refused.
pub(super) fn take(matches: &ArgMatches, given: &mut Given) -> Result<Vec<String>, String> {
    let mut ignored = Vec::new();
    for flag in FLAGS {
        let value = if flag.form.is_switch() {
            (matches.get_count(flag.long) > 0).then_some("")
        } else {
            matches.get_one::<String>(flag.long).map(String::as_str)
        };
        if let Some(value) = value {
            let name = format!("-{}", flag.letter);
            ignored.extend(settle(&name, (flag.form, flag.meaning), value, given)?);
        }
    }
    for setting in ALL {
        if let Some((letter, long)) = setting.opposite
            && matches.get_count(long) > 0
        {
            given.insert(setting.name, ("off".to_owned(), format!("the flag -{letter}, --{long}")));
        }
    }
    let options = matches.get_many::<String>("extended").into_iter().flatten();
    for option in options.flat_map(|options| options.split(',')).filter(|option| !option.is_empty()) {
        ignored.extend(extended(option, given)?);
    }
    Ok(ignored)
}

/// One of the words behind `-o`.
fn extended(option: &str, given: &mut Given) -> Result<Option<String>, String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let positive = |name: &str| EXTENDED.iter().find(|word| word.name == name);
    let known = positive(name)
        .or_else(|| name.strip_prefix("no_").and_then(positive).filter(|word| word.form.has_opposite()));
    let Some(word) = known else {
        let near = nearest(name, EXTENDED.iter().map(|word| (word.name, word.name)));
        let advice =
            near.map_or_else(|| "see docs/settings.md".to_owned(), |near| format!("did you mean {near}?"));
        return Err(format!("-o {name}: memcached has no such option; {advice}"));
    };
    settle(&format!("-o {name}"), (word.form, word.meaning), value, given)
}

/// The effect of a flag with its value: a setting, a sentence for the log, or a refusal.
fn settle(
    name: &str,
    (form, meaning): (Form, Meaning),
    value: &str,
    given: &mut Given,
) -> Result<Option<String>, String> {
    if let Meaning::Refused(why) = meaning {
        return Err(format!("{name}: {why}"));
    }
    if let Some(allowed) = form.refuse(value) {
        return Err(format!("{name}: '{value}' is not allowed; allowed is {allowed}"));
    }
    match meaning {
        Meaning::Sets(setting, unit) => {
            given.insert(setting.name, (format!("{value}{unit}"), format!("the flag {name}")));
            Ok(None)
        }
        Meaning::Maps(setting, pairs) => {
            let mapped = pairs.iter().find(|(from, _)| *from == value).map_or(value, |(_, to)| *to);
            given.insert(setting.name, (mapped.to_owned(), format!("the flag {name}")));
            Ok(None)
        }
        Meaning::Background => Ok(None),
        Meaning::None(why) | Meaning::Refused(why) => Ok(Some(format!("{name}: {why}"))),
    }
}

/// The tables for `docs/settings.md`.
#[cfg(test)]
pub(super) fn reference() -> String {
    use std::fmt::Write;
    let mut text = String::from(
        "\n## memcached's other flags\n\n\
         sqlcached accepts every flag of memcached 1.6. So memcached's units, containers and scripts can start it \
         unchanged: `memcached` may be a link to `sqlcached`. The log reports a flag without a meaning here. A wrong \
         value is an error, as in memcached.\n\n\
         | Flag | Effect |\n|---|---|\n",
    );
    for flag in FLAGS {
        let value = if flag.form.is_switch() { "" } else { " VALUE" };
        let _ = writeln!(text, "| `-{}`, `--{}`{value} | {} |", flag.letter, flag.long, sentence(flag));
    }
    text.push_str("\n| Word after `-o` | Effect |\n|---|---|\n");
    for word in EXTENDED {
        let value = match word.form {
            Form::Switch => "",
            Form::OptionalNumber => "[=]",
            _ => "=",
        };
        let does = match word.meaning {
            Meaning::Sets(setting, "s") => format!("Sets `{}`, in seconds.", setting.name),
            Meaning::Sets(setting, _) | Meaning::Maps(setting, _) => format!("Sets `{}`.", setting.name),
            Meaning::Background => format!("{IN_BACKGROUND}."),
            Meaning::None(why) => format!("No effect: {why}."),
            Meaning::Refused(why) => format!("Refused: {why}."),
        };
        let _ = writeln!(text, "| `{}{value}` | {does} |", word.name);
    }
    text
}
