//! A relay between clients and a daemon, which restarts the daemon at random requests.
//!
//! Such a request is not handed on, and its client hears the end of the connection in the place of an answer. So only
//! requests are chosen that the client sends again. What it would not send twice it must see before it sends it: all
//! other connections have ended, too, before the request's own ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::daemon::{Daemon, free_port};

/// From one restart to the next. Clients send a request once again: opening a connection and that request take a
/// few, so that a call meets one restart at most.
const REQUESTS: RangeInclusive<usize> = 10..=200;

/// What a client sent before in one connection was answered, so that this is a new request: a value of many bytes comes
/// in several pieces.
type Answered = Arc<AtomicBool>;

pub(crate) struct Relay {
    daemon: Mutex<Daemon>,
    turns: Mutex<Turns>,
    /// Whether the client sends a request again that was not answered.
    is_repeated: fn(&[u8]) -> bool,
    pub(crate) port: u16,
}

struct Turns {
    random: fastrand::Rng,
    /// Requests until the next restart.
    left: usize,
    restarts: usize,
    /// Seconds by which a test has moved the daemon's clock. A daemon that starts has the machine's time.
    moved: u64,
    clients: Vec<TcpStream>,
}

impl Relay {
    pub(crate) fn start(daemon: Daemon, seed: u64, is_repeated: fn(&[u8]) -> bool) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(seed);
        let left = random.usize(REQUESTS);
        let turns = Turns { random, left, restarts: 0, moved: 0, clients: Vec::new() };
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let relay =
            Arc::new(Self { daemon: Mutex::new(daemon), turns: Mutex::new(turns), is_repeated, port });
        let accepting = Arc::clone(&relay);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let relay = Arc::clone(&accepting);
                std::thread::spawn(move || relay.serve(client));
            }
        });
        relay
    }

    pub(crate) fn restarts(&self) -> usize {
        self.turns.lock().unwrap().restarts
    }

    fn serve(&self, mut client: TcpStream) {
        let mut server = {
            // Who comes while it restarts waits.
            let daemon = self.daemon.lock().unwrap();
            self.turns.lock().unwrap().clients.push(client.try_clone().unwrap());
            TcpStream::connect(("127.0.0.1", daemon.port)).unwrap()
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let answered = Answered::new(AtomicBool::new(true));
        let answers = (server.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(&answered));
        std::thread::spawn(move || hand_back(answers));
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            let request = &bytes[..count];
            if answered.swap(false, Ordering::AcqRel) && self.is_now(request) {
                self.restart(&client);
                break;
            }
            if server.write_all(request).is_err() {
                break;
            }
        }
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    }

    /// Whether the daemon restarts at this request.
    fn is_now(&self, request: &[u8]) -> bool {
        let mut turns = self.turns.lock().unwrap();
        let text = String::from_utf8_lossy(request);
        if let Some(seconds) =
            text.strip_prefix("debugtime ").and_then(|rest| rest.trim_end().parse::<u64>().ok())
        {
            turns.moved += seconds;
        }
        if !(self.is_repeated)(request) {
            return false;
        }
        turns.left -= 1;
        if turns.left > 0 {
            return false;
        }
        turns.left = turns.random.usize(REQUESTS);
        true
    }

    /// Restarts the daemon. All other connections than this one have ended then.
    fn restart(&self, own: &TcpStream) {
        let mut daemon = self.daemon.lock().unwrap();
        let (is_killed, moved) = {
            let mut turns = self.turns.lock().unwrap();
            turns.restarts += 1;
            (turns.random.bool(), turns.moved)
        };
        if is_killed {
            daemon.kill();
        } else {
            daemon.terminate();
        }
        daemon.restart();
        if moved > 0 {
            move_clock(&daemon, moved);
        }
        let own = own.peer_addr().ok();
        let others = self.turns.lock().unwrap().clients.split_off(0);
        for client in others.iter().filter(|client| client.peer_addr().ok() != own) {
            end(client);
        }
    }
}

fn hand_back((mut server, mut client, answered): (TcpStream, TcpStream, Answered)) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        answered.store(true, Ordering::Release);
        if client.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

/// Moves the clock of a daemon that has just started. It sees that with its next tick.
pub(crate) fn move_clock(daemon: &Daemon, seconds: u64) {
    let mut client = daemon.connect();
    client.send(format!("ms moved 1 T{seconds}\r\nx\r\n").as_bytes());
    assert_eq!(client.line(), "HD");
    assert_eq!(client.ask(&format!("debugtime {seconds}")), "OK");
    while client.ask("mg moved") != "EN" {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a connection, and returns when the client's kernel knows: a client that looks before it sends sees it.
fn end(client: &TcpStream) {
    let (Ok(own), Ok(peer)) = (client.local_addr(), client.peer_addr()) else { return };
    let _ = client.shutdown(Shutdown::Both);
    // State 4: our end was sent, and not received.
    let unheard = format!("0100007F:{:04X} 0100007F:{:04X} 04 ", own.port(), peer.port());
    while std::fs::read_to_string("/proc/net/tcp").is_ok_and(|sockets| sockets.contains(&unheard)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
