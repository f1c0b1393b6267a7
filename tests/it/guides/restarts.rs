//! The programs of every guide live through a restart of the cache: it ends and starts again while they talk to it, at
//! each of their first requests in turn.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::{Place, all, fences, guide, start};
use crate::daemon::{Daemon, free_port, run};
use crate::seed;

/// Requests at which the cache restarts: one of the first ones of a program, where it connects and asks.
const REQUESTS: std::ops::RangeInclusive<usize> = 1..=4;

/// What runs the programs of guides.
const PROGRAMS: [&str; 4] = ["node ", "python3 ", "php ", "ruby "];

/// Hands on what clients and the cache say, and restarts the cache at the request that is asked for.
struct Cut {
    daemon: Mutex<Daemon>,
    /// Requests until then; 0: none.
    left: AtomicUsize,
}

impl Cut {
    /// Listens on a port for clients of another.
    fn listen(self: &Arc<Self>, to: u16) -> u16 {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let cut = Arc::clone(self);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let (asking, answering) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let cut = Arc::clone(&cut);
                std::thread::spawn(move || hand_on(asking, answering, || cut.is_now()));
                std::thread::spawn(move || hand_on(server, client, || false));
            }
        });
        port
    }

    /// Whether the request that has come is the one; then the cache has restarted.
    fn is_now(&self) -> bool {
        let mut daemon = self.daemon.lock().unwrap();
        let counted = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, counted) != Ok(1) {
            return false;
        }
        daemon.terminate();
        daemon.restart();
        true
    }
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, ends: impl Fn() -> bool) {
    let mut bytes = [0; 16_384];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || ends() || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// The lines of a block that run a program to its end.
fn programs(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| PROGRAMS.iter().any(|name| line.starts_with(name)) && !line.contains('&'))
}

/// A program of Node ended with `Unhandled 'error' event`, those of Python and PHP with an exception. A program that
/// lives prints something, whatever it had to do twice. `RESTARTS=9` restarts at each of the first nine requests.
#[test]
fn programs_of_guides_live_through_a_restart() {
    let given = std::env::var("RESTARTS").ok().map(|count| count.parse().expect("RESTARTS is a number"));
    let mut random = fastrand::Rng::with_seed(seed());
    let mut cuts = 0;
    for name in all() {
        let (path, text) = guide(&name);
        let fences = fences(&text);
        if !fences.iter().any(|fence| programs(&fence.text).next().is_some()) {
            continue;
        }
        let (mut place, daemon, _main) = start(&text);
        let ports = [daemon.port, place.ports[1].parse().unwrap()];
        let cut = Arc::new(Cut { daemon: Mutex::new(daemon), left: AtomicUsize::new(0) });
        for (at, port) in ports.into_iter().enumerate() {
            place.ports[at] = cut.listen(port).to_string();
        }
        let mut tried = BTreeSet::new();
        for fence in &fences {
            let at = format!("{}:{}", path.display(), fence.line);
            place.follow(fence, &at);
            for line in programs(&fence.text).filter(|line| tried.insert(file_of(line))) {
                let one = random.usize(REQUESTS);
                let mut requests = given.map_or(one..=one, |count| 1..=count);
                cuts += usize::from(requests.all(|request| survives(&place, &cut, line, request, &at)));
            }
        }
    }
    assert!(given.is_some() || cuts >= 6, "{cuts} programs were cut");
}

/// The file of a program: with other arguments it is the same one.
fn file_of(line: &str) -> Option<&str> {
    line.split(' ').find(|word| word.contains('.') && !word.contains('='))
}

/// Runs a program, and restarts the cache at a request of its. False: it has not so many.
fn survives(place: &Place, cut: &Cut, line: &str, request: usize, at: &str) -> bool {
    let runs = || run(&mut place.shell(&place.here(line)));
    cut.left.store(request, Ordering::Release);
    let (code, out, error) = runs();
    let is_cut = {
        // A program may end before the cache is there again, which the next one needs.
        let _restarted = cut.daemon.lock().unwrap();
        cut.left.swap(0, Ordering::AcqRel) == 0
    };
    let what = format!("{at}: {line}, restart at request {request}");
    assert_eq!(code, Some(0), "{what}\n{out}{error}");
    // One that ends early, as Node's do where nothing is left to wait for, prints nothing.
    assert!(!out.is_empty() || runs().1.is_empty(), "{what}\n{error}");
    is_cut
}
