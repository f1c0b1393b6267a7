//! Expiry times at their boundaries, through every command that takes one, on a clock that the test moves: nothing is
//! served late, nothing goes a tick early, and neither does the wall clock's being set change that.

use std::net::TcpStream;
use std::time::Duration;

use crate::harness::{Client, Daemon, UNIX_SECONDS, daemon};

/// The wall clock when the keys are written; the harness moves it so far.
const WRITTEN: u64 = UNIX_SECONDS + 5;
const DAY: u64 = 86_400;
const MONTH: u64 = 30 * DAY;

/// How long a key is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    /// Longer than the test.
    Long,
    /// So many seconds.
    Seconds(u64),
    /// Not at all.
    Gone,
    /// Not at all where it comes with a value; of a row that is there it is no expiry time.
    GoneOrRefused,
    /// Longer than the test where it comes with a value; of a row that is there it is no expiry time.
    LongOrRefused,
    /// The number is no expiry time, and nothing is changed.
    Refused,
}

/// Each expiry time with the life that memcached's documentation gives it.
fn boundaries() -> Vec<(String, Life)> {
    let absolute = |seconds: u64| seconds.to_string();
    vec![
        ("0".into(), Life::Long),
        ("-0".into(), Life::Long),
        ("-1".into(), Life::Gone),
        ("-2147483648".into(), Life::Gone),
        ("-9223372036854775807".into(), Life::GoneOrRefused),
        ("1".into(), Life::Seconds(1)),
        ("100".into(), Life::Seconds(100)),
        (absolute(MONTH), Life::Seconds(MONTH)),
        // A second more is a day of 1970.
        (absolute(MONTH + 1), Life::Gone),
        (absolute(WRITTEN - 1), Life::Gone),
        (absolute(WRITTEN), Life::Gone),
        (absolute(WRITTEN + 1), Life::Seconds(1)),
        (absolute(WRITTEN + 100), Life::Seconds(100)),
        (absolute(WRITTEN + MONTH + 1), Life::Seconds(MONTH + 1)),
        ("2147483647".into(), Life::Long),
        ("+100".into(), Life::Seconds(100)),
        // A negative number of 32 bits, as clients in C send it.
        ("2147483648".into(), Life::GoneOrRefused),
        ("4294967295".into(), Life::GoneOrRefused),
        ("4294967296".into(), Life::LongOrRefused),
        ("9223372036854775807".into(), Life::GoneOrRefused),
        ("9223372036854775808".into(), Life::Refused),
        ("18446744073709551616".into(), Life::Refused),
        ("1.5".into(), Life::Refused),
        ("soon".into(), Life::Refused),
    ]
}

/// A command that gives a key an expiry time.
struct Giver {
    name: &'static str,
    /// Whether the key has to be there; it then has no end of its own.
    exists: bool,
    /// The bytes, with the CAS of the row that is there.
    bytes: fn(key: &str, exptime: &str, cas: &str) -> String,
    /// How the answer begins when it did.
    done: &'static str,
    /// How it begins where the expiry time is none.
    refused: &'static str,
    /// Whether the expiry time is that of a storage command of the classic protocol.
    classic: bool,
}

impl Giver {
    /// What becomes of a key that is given this life.
    fn life(&self, life: Life) -> Life {
        self::life(life, self.classic)
    }
}

/// memcached reads the expiry time of a storage command by its lowest 32 bits, and refuses a longer one elsewhere.
fn life(life: Life, classic: bool) -> Life {
    match life {
        Life::GoneOrRefused if classic => Life::Gone,
        Life::LongOrRefused if classic => Life::Long,
        Life::GoneOrRefused | Life::LongOrRefused => Life::Refused,
        other => other,
    }
}

const LINE: &str = "CLIENT_ERROR bad command line format";
const EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
const TOKEN: &str = "CLIENT_ERROR bad token in command line format";
const FLAG: &str = "CLIENT_ERROR invalid or duplicate flag";

const GIVERS: [Giver; 14] = [
    Giver {
        name: "set",
        exists: false,
        bytes: |key, e, _| format!("set {key} 0 {e} 1\r\n7\r\n"),
        done: "STORED",
        refused: LINE,
        classic: true,
    },
    Giver {
        name: "set-over",
        exists: true,
        bytes: |key, e, _| format!("set {key} 0 {e} 1\r\n7\r\n"),
        done: "STORED",
        refused: LINE,
        classic: true,
    },
    Giver {
        name: "add",
        exists: false,
        bytes: |key, e, _| format!("add {key} 0 {e} 1\r\n7\r\n"),
        done: "STORED",
        refused: LINE,
        classic: true,
    },
    Giver {
        name: "replace",
        exists: true,
        bytes: |key, e, _| format!("replace {key} 0 {e} 1\r\n7\r\n"),
        done: "STORED",
        refused: LINE,
        classic: true,
    },
    Giver {
        name: "cas",
        exists: true,
        bytes: |key, e, cas| format!("cas {key} 0 {e} 1 {cas}\r\n7\r\n"),
        done: "STORED",
        refused: LINE,
        classic: true,
    },
    Giver {
        name: "touch",
        exists: true,
        bytes: |key, e, _| format!("touch {key} {e}\r\n"),
        done: "TOUCHED",
        refused: EXPTIME,
        classic: false,
    },
    Giver {
        name: "gat",
        exists: true,
        bytes: |key, e, _| format!("gat {e} {key}\r\n"),
        done: "VALUE",
        refused: EXPTIME,
        classic: false,
    },
    Giver {
        name: "gats",
        exists: true,
        bytes: |key, e, _| format!("gats {e} {key}\r\n"),
        done: "VALUE",
        refused: EXPTIME,
        classic: false,
    },
    Giver {
        name: "ms",
        exists: false,
        bytes: |key, e, _| format!("ms {key} 1 T{e}\r\n7\r\n"),
        done: "HD",
        refused: TOKEN,
        classic: false,
    },
    Giver {
        name: "mg",
        exists: true,
        bytes: |key, e, _| format!("mg {key} T{e}\r\n"),
        done: "HD",
        refused: TOKEN,
        classic: false,
    },
    Giver {
        name: "mg-vivify",
        exists: false,
        bytes: |key, e, _| format!("mg {key} N{e} v\r\n"),
        done: "VA 0 W",
        refused: TOKEN,
        classic: false,
    },
    Giver {
        name: "ma",
        exists: true,
        bytes: |key, e, _| format!("ma {key} T{e}\r\n"),
        done: "HD",
        refused: FLAG,
        classic: false,
    },
    Giver {
        name: "ma-vivify",
        exists: false,
        bytes: |key, e, _| format!("ma {key} N{e}\r\n"),
        done: "HD",
        refused: FLAG,
        classic: false,
    },
    Giver {
        name: "md-stale",
        exists: true,
        bytes: |key, e, _| format!("md {key} I T{e}\r\n"),
        done: "HD",
        refused: FLAG,
        classic: false,
    },
];

/// Sends a request and reads what it is answered with.
fn answer(client: &mut Client<TcpStream>, request: &str) -> String {
    client.send(request.as_bytes());
    client.send(b"mn\r\n");
    let mut lines = Vec::new();
    loop {
        let line = client.line();
        if line == "MN" {
            return lines.join("\n");
        }
        lines.push(line);
    }
}

/// Seconds that a key has left, `None` if it is not there, -1 without an end.
fn left(client: &mut Client<TcpStream>, key: &str) -> Option<i64> {
    let said = answer(client, &format!("mg {key} t\r\n"));
    let seconds = said.split(' ').find_map(|word| word.strip_prefix('t'));
    if seconds.is_none() {
        assert_eq!(said, "EN", "{key}");
    }
    seconds.map(|seconds| seconds.parse().unwrap())
}

/// A key, what gave it its expiry time, and what is to become of it.
struct Given {
    key: String,
    life: Life,
    /// It was there before, without an end, and stays so where the expiry time is refused.
    stays: bool,
}

fn give_all(client: &mut Client<TcpStream>) -> Vec<Given> {
    let mut given = Vec::new();
    for giver in &GIVERS {
        for (number, (exptime, life)) in boundaries().into_iter().enumerate() {
            let key = format!("{}-{number}", giver.name);
            let life = giver.life(life);
            let cas = if giver.exists {
                assert_eq!(answer(client, &format!("set {key} 0 0 1\r\n7\r\n")), "STORED");
                answer(client, &format!("mg {key} c\r\n"))["HD c".len()..].to_owned()
            } else {
                String::new()
            };
            let said = answer(client, &(giver.bytes)(&key, &exptime, &cas));
            let expected = if life == Life::Refused { giver.refused } else { giver.done };
            assert!(said.starts_with(expected), "{} with {exptime}: {said}", giver.name);
            given.push(Given { key, life, stays: giver.exists });
        }
    }
    given
}

/// Asks for every key; `passed` milliseconds after it was written.
fn check_all(client: &mut Client<TcpStream>, given: &[Given], passed: u64) {
    for Given { key, life, stays } in given {
        let found = left(client, key);
        let expected = match life {
            Life::Long => true,
            Life::Seconds(seconds) => passed < seconds * 1_000,
            Life::Gone => false,
            Life::Refused | Life::GoneOrRefused | Life::LongOrRefused => *stays,
        };
        assert_eq!(found.is_some(), expected, "{key} ({life:?}) after {passed} ms: {found:?}");
        if let (Life::Seconds(seconds), Some(left)) = (life, found) {
            let precise = seconds.saturating_sub(passed / 1_000).cast_signed();
            assert!((precise - 1..=precise + 1).contains(&left), "{key} after {passed} ms: {left} s left");
        }
    }
}

/// Moves the clock and the cleaner.
fn go_to(daemon: &Daemon, at: &mut u64, to: u64) {
    daemon.advance(Duration::from_millis(to - *at));
    *at = to;
}

#[test]
fn boundaries_through_every_command() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let given = give_all(&mut client);
    let mut at = 0;
    check_all(&mut client, &given, at);
    let month = MONTH * 1_000;
    for moment in
        [900, 1_000, 99_900, 100_000, month - 100, month, month + 900, month + 1_000, 365 * DAY * 1_000]
    {
        go_to(&daemon, &mut at, moment);
        check_all(&mut client, &given, at);
    }
}

/// Deadlines were cut 8.5 years after the start; memcached keeps those up to January 2038.
#[test]
fn the_last_moment_of_32_bits_is_kept() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let expected = (i64::from(i32::MAX)) - WRITTEN.cast_signed();
    for request in ["set k 0 2147483647 1\r\n7\r\n", "touch k 2147483647\r\n", "ms k 1 T2147483647\r\n7\r\n"]
    {
        answer(&mut client, request);
        let left = left(&mut client, "k").unwrap();
        assert!((expected - 1..=expected).contains(&left), "{request}: {left} of {expected}");
    }
}

/// Everything at once, by the same numbers.
#[test]
fn boundaries_of_flush_all() {
    for (exptime, life) in boundaries() {
        let daemon = daemon();
        let mut client = daemon.connect();
        let there = |client: &mut Client<TcpStream>| left(client, "k").is_some();
        assert_eq!(answer(&mut client, "set k 0 0 1\r\n7\r\n"), "STORED");
        let said = answer(&mut client, &format!("flush_all {exptime}\r\n"));
        let mut at = 0;
        match life {
            Life::Refused | Life::GoneOrRefused | Life::LongOrRefused => {
                assert_eq!(said, EXPTIME, "{exptime}");
                assert!(there(&mut client), "{exptime}");
            }
            Life::Seconds(seconds) => {
                assert_eq!(said, "OK", "{exptime}");
                go_to(&daemon, &mut at, seconds * 1_000 - 100);
                assert!(there(&mut client), "{exptime}");
                go_to(&daemon, &mut at, seconds * 1_000);
                assert!(!there(&mut client), "{exptime}");
            }
            // `flush_all 0` is now; a moment that has passed was meant for now, too.
            Life::Gone => assert!(said == "OK" && !there(&mut client), "{exptime}: {said}"),
            Life::Long if exptime.trim_start_matches('-') == "0" => {
                assert!(said == "OK" && !there(&mut client), "{exptime}: {said}");
            }
            Life::Long => {
                assert_eq!(said, "OK", "{exptime}");
                go_to(&daemon, &mut at, 365 * DAY * 1_000);
                assert!(there(&mut client), "{exptime}");
            }
        }
    }
}

/// The wall clock is set while rows live: what was said of them was said in time that passes.
#[test]
fn setting_the_wall_clock_ends_nothing_and_brings_nothing_back() {
    for jump in [3_600, -3_600, 400 * DAY.cast_signed(), -400 * DAY.cast_signed()] {
        let daemon = daemon();
        let mut client = daemon.connect();
        let table =
            "CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 't:', value = 'v', ttl = '100 s')";
        assert_eq!(answer(&mut client, &format!("sql {}\r\n{table}\r\n", table.len())), "OK 0");
        assert_eq!(answer(&mut client, "set gone 0 1 1\r\n7\r\n"), "STORED");
        daemon.advance(Duration::from_secs(2));
        let absolute = WRITTEN + 2 + 100;
        for (key, exptime) in
            [("relative", 100), ("absolute", absolute), ("later", absolute + 100), ("t:row", 0)]
        {
            assert_eq!(answer(&mut client, &format!("set {key} 0 {exptime} 1\r\n7\r\n")), "STORED");
        }
        daemon.clock.set_wall_clock(jump);
        daemon.advance(Duration::from_secs(99));
        for key in ["relative", "absolute", "later", "t:row"] {
            assert!(left(&mut client, key).is_some(), "{key} went when the clock was set by {jump} s");
        }
        assert_eq!(left(&mut client, "gone"), None, "after {jump} s");
        // A moment that is named now is one of the clock as it stands now.
        let named = (WRITTEN + 2 + 99 + 50).saturating_add_signed(jump);
        assert_eq!(answer(&mut client, &format!("set named 0 {named} 1\r\n7\r\n")), "STORED");
        daemon.advance(Duration::from_millis(1_200));
        for key in ["relative", "absolute", "t:row"] {
            assert_eq!(
                left(&mut client, key),
                None,
                "{key} outlived its time when the clock was set by {jump} s"
            );
        }
        daemon.clock.set_wall_clock(-jump);
        daemon.advance(Duration::from_millis(48_500));
        assert!(left(&mut client, "named").is_some() && left(&mut client, "later").is_some());
        daemon.advance(Duration::from_millis(500));
        assert_eq!(left(&mut client, "named"), None);
        for key in ["relative", "absolute", "t:row", "gone"] {
            assert_eq!(
                left(&mut client, key),
                None,
                "{key} came back when the clock was set back by {jump} s"
            );
        }
    }
}

/// They were 0 whatever happened.
#[test]
fn gets_of_rows_that_have_ended_are_counted() {
    let daemon = daemon();
    let mut client = daemon.connect();
    let counted = |client: &mut Client<TcpStream>| {
        let all = answer(client, "stats\r\n");
        ["get_expired", "get_flushed", "get_misses"].map(|name| {
            let line = format!("STAT {name} ");
            all.lines().find_map(|found| found.strip_prefix(&line)).unwrap().parse::<u64>().unwrap()
        })
    };
    assert_eq!(answer(&mut client, "set a 0 1 1\r\nx\r\nset b 0 0 1\r\nx\r\n"), "STORED\nSTORED");
    // The clock alone: the memory of what has ended is given back by the cleaner.
    daemon.clock.advance(Duration::from_secs(1));
    assert_eq!(answer(&mut client, "get a\r\n"), "END");
    assert_eq!(counted(&mut client), [1, 0, 1]);
    assert_eq!(answer(&mut client, "flush_all\r\nget b\r\nget c\r\n"), "OK\nEND\nEND");
    assert_eq!(counted(&mut client), [1, 1, 3]);
}
