//! `-d`: the daemon in the background, as memcached goes there.
//!
//! The process that somebody started starts the program once more, passes on what it says, and ends when that one
//! serves or has given up: so whoever started it is told which, and may connect at once.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

/// Tells the second process that it is the one. Its value means nothing.
pub(crate) const MARK: &str = "SQLCACHED_IN_BACKGROUND";

/// The last line that the second process says, before its number.
const SERVES: &str = "  in the background as process ";

/// Whether this is the second process. It has no terminal from then on.
pub(crate) fn is_here() -> bool {
    let here = std::env::var_os(MARK).is_some();
    if here {
        // It is refused to the leader of a group, which a process that was started by another is not.
        let _leader = rustix::process::setsid();
    }
    here
}

/// Starts the second process; what becomes of this one.
pub(crate) fn start(verbose: bool) -> Result<ExitCode, String> {
    let explain = |error: io::Error| format!("-d: cannot start in the background: {error}");
    let program = std::env::current_exe().map_err(explain)?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env(MARK, "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // Who asked for a log gets it; nobody else waits for a stream that never ends.
    command.stderr(if verbose { Stdio::inherit() } else { Stdio::piped() });
    let mut child = command.spawn().map_err(explain)?;
    let errors = child.stderr.take().map(|errors| thread::spawn(move || pass_on_errors(errors)));
    if serves(&mut child) {
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().map_err(explain)?;
    if let Some(errors) = errors {
        let _done = errors.join();
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.filter(|code| *code != 0).unwrap_or(1)))
}

/// Says that the second process serves. The first ends, and nobody hears what is printed later.
pub(crate) fn say_ready() {
    let mut out = io::stdout().lock();
    let _closed = writeln!(out, "{SERVES}{}", std::process::id()).and_then(|()| out.flush());
}

/// Passes on what the second process prints until it serves. False: it has ended.
fn serves(child: &mut Child) -> bool {
    let Some(out) = child.stdout.take() else { return false };
    let mut own = io::stdout().lock();
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let _closed = writeln!(own, "{line}");
        if line.starts_with(SERVES) {
            let _closed = own.flush();
            return true;
        }
    }
    false
}

fn pass_on_errors(mut errors: impl Read) {
    let _closed = io::copy(&mut errors, &mut io::stderr());
}
