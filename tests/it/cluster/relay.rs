//! A way to a server that is slow, or cut while nobody hears of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Forwards bytes to a port of this machine, as long as the test lives.
pub(super) struct Relay {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Milliseconds that each read waits before it goes on.
    delay: AtomicU64,
    /// Nothing goes on, and nothing is closed: as when a cable is out.
    cut: AtomicBool,
    over: AtomicBool,
}

/// How often a cut way looks whether it is healed.
const LOOK: Duration = Duration::from_millis(20);

impl Relay {
    pub(super) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = Self { port: listener.local_addr().unwrap().port(), shared: Arc::default() };
        let shared = Arc::clone(&own.shared);
        thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                if shared.is_over() {
                    return;
                }
                let Ok(to) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                forward(from.try_clone().unwrap(), to.try_clone().unwrap(), &shared);
                forward(to, from, &shared);
            }
        });
        own
    }

    pub(super) fn delay(&self, milliseconds: u64) {
        self.shared.delay.store(milliseconds, Ordering::Relaxed);
    }

    pub(super) fn cut(&self, cut: bool) {
        self.shared.cut.store(cut, Ordering::Relaxed);
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Its listener looks.
        let _woken = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            thread::sleep(Duration::from_millis(shared.delay.load(Ordering::Relaxed)));
            while shared.cut.load(Ordering::Relaxed) && !shared.is_over() {
                thread::sleep(LOOK);
            }
            if shared.is_over() || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        // The other direction ends, too.
        let _closed = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
    });
}
