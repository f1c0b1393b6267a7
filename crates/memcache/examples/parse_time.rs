//! Prints how long parsing and composing take, in nanoseconds a request, the best of several rounds.
//!
//! `cargo run --release -p memcache --example parse_time`
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures and prints")]

use memcache::{Parsed, Parser, Request, compose};
use std::hint::black_box;
use std::time::Instant;

/// Requests a round; long enough that the clock's own cost does not show.
const REQUESTS: u32 = 200_000;

/// Rounds; the best one is the one that was disturbed least.
const ROUNDS: usize = 15;

fn best(mut request: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..REQUESTS {
                request();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(REQUESTS)
        })
        .fold(f64::INFINITY, f64::min)
}

fn parse(name: &str, input: &[u8]) {
    let parser = Parser::default();
    let time = best(|| match parser.parse(black_box(input)) {
        Parsed::Complete { request: Request::Get { keys, .. }, .. } => {
            black_box(keys.map(<[u8]>::len).sum::<usize>());
        }
        other => {
            black_box(other);
        }
    });
    println!("{name:28} {time:7.1} ns");
}

fn main() {
    parse("get, 10-byte key", b"get key:123456\r\n");
    parse("get, 30-byte key", b"get page:fragment:user:1234567890:1\r\n");
    parse(
        "get, 10 keys of 30 bytes",
        format!("get{}\r\n", " page:fragment:user:1234567890:1".repeat(10)).as_bytes(),
    );
    parse(
        "set, 32-byte value",
        b"set page:fragment:user:1234567890:1 0 3600 32\r\n01234567890123456789012345678901\r\n",
    );
    let mut large = b"set page:fragment:user:1234567890:1 0 3600 1024\r\n".to_vec();
    large.extend([b'x'; 1024]);
    large.extend(b"\r\n");
    parse("set, 1 KiB value", &large);
    parse("incr", b"incr counter:123456 1\r\n");
    let mut out = Vec::with_capacity(256);
    let header = best(|| {
        out.clear();
        compose::value_header(
            black_box(b"page:fragment:user:1234567890:1"),
            0,
            black_box(1024),
            None,
            &mut out,
        );
        black_box(&out);
    });
    println!("{:28} {header:7.1} ns", "compose VALUE header");
    let with_cas = best(|| {
        out.clear();
        compose::value_header(
            black_box(b"page:fragment:user:1234567890:1"),
            0,
            1024,
            Some(black_box(123_456_789_012)),
            &mut out,
        );
        black_box(&out);
    });
    println!("{:28} {with_cas:7.1} ns", "compose VALUE header, cas");
}
