//! The daemon: settings, start-up order, signals.
//!
//! ```text
//!   flags, environment, file --> settings --> arena: attach or create --> init file --> listeners --> greeting
//!                                    ^                                                                    |
//!                                  SIGHUP                                 drain <-- SIGTERM, SIGINT <-- serve
//! ```
//!
//! Exit status: 0 stopped as asked, 1 could not start, 2 a setting is wrong.

#![forbid(unsafe_code)]

mod access;
mod background;
mod daemon;
mod greeting;
mod history;
mod init_file;
mod log;
mod place;
mod process;
mod replace;
mod service;
mod settings;
mod span;
mod tls;
mod top;
mod warnings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use settings::chosen::{self, Given};
use settings::flags::{self, Request};
use settings::{Chosen, VERBOSITY, documents, file};

/// A setting is wrong; the number that command-line programs use for it.
const WRONG_SETTING: u8 = 2;

/// Names the configuration file when the flag does not.
const CONFIG_VARIABLE: &str = "SQLCACHED_CONFIG";

/// Names the socket to clients; tests and shells that start the daemon may have it.
const SOCKET_VARIABLE: &str = "SQLCACHED_SOCKET";

/// What `-i` prints.
const LICENSE: &str = include_str!("../../../LICENSE-MIT");

fn main() -> ExitCode {
    let (given, config, ignored, background) = match flags::parse(std::env::args_os()) {
        Ok(Request::Serve { given, config, ignored, background }) => (given, config, ignored, background),
        Ok(Request::PrintConfig) => return print(&documents::configuration_file()),
        Ok(Request::PrintLicense) => return print(LICENSE),
        Ok(Request::Top(asked)) => return top::run(&asked),
        Err(error) => {
            // Prints help and version to standard output, mistakes to standard error.
            let _closed = error.print();
            return if error.use_stderr() { ExitCode::from(WRONG_SETTING) } else { ExitCode::SUCCESS };
        }
    };
    let config = config.or_else(|| variable(CONFIG_VARIABLE).map(PathBuf::from));
    let read = || read_settings(&given, config.as_deref());
    let chosen = match read() {
        Ok(chosen) => chosen,
        Err(why) => return complain(&why, WRONG_SETTING),
    };
    if background && !background::is_here() {
        return background::start(chosen.number(&VERBOSITY) > 0).unwrap_or_else(|why| complain(&why, 1));
    }
    match daemon::run(&chosen, &ignored, background, read) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain(&why, 1),
    }
}

/// Reads the file and the environment, and lays the flags over them.
fn read_settings(flags: &Given, config: Option<&Path>) -> Result<Chosen, String> {
    let from_file = match config {
        Some(path) => {
            let name = path.display().to_string();
            let text = fs::read_to_string(path).map_err(|error| format!("config: {name}: {error}"))?;
            file::parse(&name, &text).map_err(|error| error.to_string())?
        }
        None => Given::new(),
    };
    let environment = chosen::from_environment(variable);
    Chosen::new(&[flags, &environment, &from_file]).map_err(|error| error.to_string())
}

#[allow(clippy::disallowed_methods, reason = "this is where the settings table reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[allow(clippy::print_stdout, reason = "somebody asked to see it")]
fn print(text: &str) -> ExitCode {
    print!("{text}");
    ExitCode::SUCCESS
}

#[allow(
    clippy::print_stderr,
    reason = "the log may not have started, and this is for the person who starts us"
)]
fn complain(why: &str, code: u8) -> ExitCode {
    eprintln!("sqlcached: {why}");
    ExitCode::from(code)
}
