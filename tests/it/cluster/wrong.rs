//! Streams, servers and publishers that are not as they must be: each is named with what to do, and nothing is believed
//! that may be wrong.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use super::nats::Nats;
use super::{PATIENT, cache, cache_on, define, figure, fill, hear, options, pages, until_noted, wait};
use crate::daemon::{Folder, free_port, run};
use crate::drivers::place::SqlDaemon;
use crate::sources::{psql, until};

/// A cache on a bus that it cannot use.
fn stranded(servers: &str) -> SqlDaemon {
    let daemon = SqlDaemon::start(&[]);
    define(&daemon, &options(servers, PATIENT));
    daemon
}

fn until_said(daemon: &SqlDaemon, words: &str) {
    let said = || psql(&daemon.place, "SELECT coalesce(last_error, '') FROM sqlcached_buses");
    until(&format!("it says: {words}; it says: {}", said()), || said().contains(words));
}

#[test]
fn servers_without_jetstream_are_named() {
    let nats = Nats::start_in(Folder::new(), &[]);
    let daemon = stranded(&nats.url());
    until_said(&daemon, "start the NATS servers with JetStream");
}

/// A server of another age, as far as it comes to that: it says its version, and answers.
#[test]
fn old_servers_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut to = &socket;
            let info =
                r#"{"server_id":"old","version":"2.9.25","proto":1,"headers":true,"max_payload":1048576}"#;
            if write!(to, "INFO {info}\r\n").is_err() {
                continue;
            }
            for line in BufReader::new(&socket).lines().map_while(Result::ok) {
                if line.starts_with("PING") && to.write_all(b"PONG\r\n").is_err() {
                    break;
                }
            }
        }
    });
    let daemon = stranded(&format!("nats://127.0.0.1:{port}"));
    until_said(&daemon, "the NATS server is version 2.9.25; install 2.14 or later");
}

#[test]
fn streams_of_others_are_named() {
    let nats = Nats::start(&[]);
    let own = r#""name":"sqlc","subjects":["sqlc.told"],"retention":"limits""#;
    for (config, words) in [
        (
            r#""name":"sqlc","subjects":["orders.>"],"storage":"file""#.to_owned(),
            "is used for something else",
        ),
        (format!(r#"{own},"storage":"memory""#), "keeps its messages in memory"),
        (format!(r#"{own},"storage":"file","max_msgs_per_subject":1"#), "removes messages before their time"),
        (format!(r#"{own},"storage":"file","discard":"new""#), "takes no message when it is full"),
    ] {
        nats.command("CREATE.sqlc", &format!("{{{config}}}"));
        let daemon = stranded(&nats.url());
        until_said(&daemon, words);
        until_said(&daemon, "remove it (nats stream rm sqlc)");
        nats.remove_stream();
        wait(&daemon, "streaming");
        nats.remove_stream();
    }
}

/// What a cache that is away would have to hear is not there any more, for whatever reason: it starts with nothing.
#[test]
fn who_misses_what_has_expired_believes_nothing() {
    let nats = Nats::start(&[]);
    let [a, mut b] = [cache(&nats), cache(&nats)];
    let mut client = a.daemon.connect();
    for how in ["purged", "full"] {
        fill(&a);
        fill(&b);
        until_noted(&b);
        let breaks = figure(&a, "breaks");
        b.daemon.kill();
        assert_eq!(client.ask("delete page:1"), "DELETED");
        if how == "purged" {
            nats.command("PURGE.sqlc", "");
        } else {
            let config = r#"{"name":"sqlc","subjects":["sqlc.told"],"storage":"file",
                "max_bytes":2000,"max_age":600000000000,"duplicate_window":120000000000}"#;
            nats.command("UPDATE.sqlc", config);
            // A message is some hundred bytes, so few are kept.
            for _ in 0..50 {
                assert_eq!(client.ask("delete page:1"), "NOT_FOUND");
            }
        }
        b.daemon.restart();
        wait(&b, "streaming");
        assert_eq!(pages(&b), "", "{how}");
        assert_eq!((figure(&b, "breaks"), figure(&a, "breaks")), (1, breaks), "{how}");
        let said = psql(&b.place, "SELECT last_break FROM sqlcached_buses");
        assert!(said.contains("it expired or was removed"), "{said}");
        // Who was there has lost nothing.
        assert_eq!(pages(&a), "2 3 4 5 6 7 8 9 10", "{how}");
    }
}

/// Somebody tells for a cache, with a number that is not its next: all caches distrust what they have, and go on.
#[test]
fn a_publisher_that_lies_is_found() {
    let nats = Nats::start(&[]);
    let [a, b] = [cache(&nats), cache(&nats)];
    until("they have a history", || psql(&b.place, "SELECT epoch IS NOT NULL FROM sqlcached_buses") == "t");
    fill(&a);
    fill(&b);
    let node = u64::from_str_radix(&psql(&a.place, "SELECT node FROM sqlcached_buses"), 16).unwrap();
    // Version, node, counter; it has heard nothing, and tells nothing.
    let lie = [&[1][..], &node.to_le_bytes(), &[0xff, 0x7f], &[0, 1, 0]].concat();
    nats.publish("sqlc.told", &lie, true);
    until("it is noticed", || figure(&a, "breaks") > 0 && figure(&b, "breaks") > 0);
    until("nothing is believed", || pages(&a).is_empty() && pages(&b).is_empty());
    wait(&a, "streaming");
    wait(&b, "streaming");
    fill(&b);
    assert_eq!(a.daemon.connect().ask("delete page:1"), "NOT_FOUND");
    hear(&a, &b);
    until("it is told", || pages(&b) == "2 3 4 5 6 7 8 9 10");
}

/// A certificate of nobody whom the cache knows, and then of somebody.
#[test]
fn certificates_are_checked() {
    let folder = Folder::new();
    let script = "
        key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
        openssl req -x509 $key -days 2 -subj /CN=ours -keyout ca.key -out ca.pem
        openssl req -x509 $key -days 2 -subj /CN=ours -keyout ca2.key -out ca2.pem
        openssl req $key -keyout nats.key -subj /CN=nats -out nats.csr
        echo subjectAltName=IP:127.0.0.1 > names
        openssl x509 -req -in nats.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out nats.pem";
    let (code, _, error) = run(Command::new("sh").args(["-ec", script]).current_dir(&folder.0));
    assert_eq!(code, Some(0), "{error}");
    let file = |name: &str| folder.0.join(name).display().to_string();
    let (certificate, key) = (file("nats.pem"), file("nats.key"));
    let nats = Nats::start(&["--tls", "--tlscert", &certificate, "--tlskey", &key]);
    let servers = format!("tls://127.0.0.1:{}", nats.port);
    let daemon = stranded(&servers);
    until_said(&daemon, "sslrootcert names the file of the authority");
    psql(&daemon.place, &format!("ALTER SERVER bus OPTIONS (ADD sslrootcert '{}')", file("ca2.pem")));
    until_said(&daemon, "sslrootcert names the file of the authority");
    psql(&daemon.place, &format!("ALTER SERVER bus OPTIONS (SET sslrootcert '{}')", file("ca.pem")));
    wait(&daemon, "streaming");
}

/// Nobody listens there.
#[test]
fn servers_that_are_not_there_are_named() {
    let daemon = stranded(&format!("nats://127.0.0.1:{}", free_port()));
    until_said(&daemon, "no server of the bus can be reached");
}

/// Of many servers one is there, and a cache finds it before it pauses.
#[test]
fn servers_that_are_not_there_are_passed_over() {
    let nats = Nats::start(&[]);
    let away = [(); 9].map(|()| format!("nats://127.0.0.1:{}", free_port())).join(",");
    let daemon = cache_on(&options(&format!("{away},{}", nats.url()), PATIENT));
    assert_eq!(psql(&daemon.place, "SELECT last_error IS NULL FROM sqlcached_buses"), "t");
}
