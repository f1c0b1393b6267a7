//! `sqlcached top`: the console's strip and tables in a terminal, for who has a shell only.
//!
//! It is a client of PostgreSQL's protocol like any other ([`source`]): a thread asks once in an interval and goes on
//! asking while nobody answers. What is shown is text of a given width and height ([`frame`]), so that a pipe gets the
//! same as a terminal.

mod frame;
mod source;
mod terminal;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use frame::{Order, Size, View};
use source::{News, Place};

/// The subcommand's name.
pub(crate) const NAME: &str = "top";

/// What it does, in a line.
pub(crate) const ABOUT: &str =
    "Shows hit ratio, operations, memory and tables of a running server, each second.";

/// Columns of a frame that goes to a pipe.
const PIPE_WIDTH: u16 = 120;

/// Seconds between two questions: more often than the server's own ring of seconds says nothing new.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=3_600;

/// Its flags. Where the server is is said as to psql.
pub(crate) fn command() -> Command {
    let text = |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help);
    Command::new(NAME)
        .about(ABOUT)
        .disable_version_flag(true)
        .after_help(
            "Keys: h hits, o operations, r rows, b bytes, e evictions, n name sort the tables; q quits. A password is \
             taken from PGPASSWORD.",
        )
        .arg(
            text("host", "Address of the server, or the directory of its Unix socket; also PGHOST.")
                .short('H')
                .value_name("HOST")
                .default_value("127.0.0.1")
                .env_of("PGHOST"),
        )
        .arg(
            text("port", "Its port for PostgreSQL clients; also PGPORT.")
                .short('p')
                .value_name("PORT")
                .value_parser(value_parser!(u16))
                .default_value("5433")
                .env_of("PGPORT"),
        )
        .arg(text("user", "The role to connect as; also PGUSER, and then the name of the user.").short('U').value_name("ROLE"))
        .arg(
            text("sort", "The order of the tables.")
                .short('s')
                .value_name("KEY")
                .value_parser(Order::NAMES.map(|(name, ..)| name))
                .default_value("operations"),
        )
        .arg(
            text("interval", "Seconds between two looks.")
                .short('i')
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(INTERVALS))
                .default_value("1"),
        )
        .arg(text("once", "Prints one interval as text and ends.").action(ArgAction::SetTrue))
        .arg(text("batch", "Prints each interval as text, for pipes.").action(ArgAction::SetTrue).conflicts_with("once"))
}

/// A default from the environment, which the help does not show.
trait EnvOf {
    fn env_of(self, variable: &'static str) -> Self;
}

impl EnvOf for Arg {
    #[allow(clippy::disallowed_methods, reason = "psql's variables, which are no settings")]
    fn env_of(self, variable: &'static str) -> Self {
        match std::env::var(variable) {
            Ok(value) if !cfg!(test) => self.default_value(value),
            _ => self,
        }
    }
}

/// Runs it. Status 1: the server could not be reached.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let interval = Duration::from_secs(matches.get_one::<u64>("interval").copied().unwrap_or(1));
    let place = Place {
        host: text("host").unwrap_or_default(),
        port: matches.get_one::<u16>("port").copied().unwrap_or_default(),
        role: text("user").or_else(|| variable("PGUSER")).or_else(|| variable("USER")),
        password: variable("PGPASSWORD"),
    };
    let order = Order::named(&text("sort").unwrap_or_default());
    let (once, batch) = (matches.get_flag("once"), matches.get_flag("batch"));
    // One frame waits at most: the thread asks no faster than somebody looks.
    let (sender, news) = mpsc::sync_channel(1);
    let title = place.to_string();
    let begun = source::begin(place, interval, sender);
    match begun {
        Err(why) => complain(&why),
        Ok(()) if once || batch => print(&news, &title, order, once),
        Ok(()) => terminal::show(&news, &title, order)
            .map_or_else(|why| complain(&why.to_string()), |()| ExitCode::SUCCESS),
    }
}

#[allow(clippy::disallowed_methods, reason = "psql's variables, which are no settings")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Frames as text, one below the other.
fn print(news: &mpsc::Receiver<News>, title: &str, order: Order, once: bool) -> ExitCode {
    let mut view = View::new(title, order);
    for news in news {
        let failed = news.as_ref().err().cloned();
        let whole = view.take(news);
        match failed {
            Some(why) if once => return complain(&why),
            Some(why) => {
                let _code = complain(&why);
            }
            // The first look has nothing to compare with.
            None if whole => {
                let text = view.lines(Size { width: PIPE_WIDTH, height: u16::MAX }).join("\n");
                let mut out = std::io::stdout().lock();
                // Who reads no more wants no more.
                if writeln!(out, "{text}\n").and_then(|()| out.flush()).is_err() || once {
                    return ExitCode::SUCCESS;
                }
            }
            None => {}
        }
    }
    ExitCode::SUCCESS
}

#[allow(clippy::print_stderr, reason = "for the person who started it")]
fn complain(why: &str) -> ExitCode {
    eprintln!("sqlcached top: {why}");
    ExitCode::FAILURE
}
