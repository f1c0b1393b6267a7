//! memcached's operators at home: their commands, their tools, their command lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::client::Client;
use crate::daemon::{Daemon, Folder, PROGRAM, free_port, program, run};
use crate::memcached::Memcached;
use crate::skipped;

/// Lines up to the one that ends an answer.
fn lines(client: &mut Client, request: &str, last: &str) -> Vec<String> {
    client.send(format!("{request}\r\n").as_bytes());
    let mut lines = Vec::new();
    loop {
        let line = client.line();
        if line == last {
            return lines;
        }
        assert!(!line.is_empty(), "closed after {lines:?}");
        lines.push(line);
    }
}

/// The words `name=value` of a line.
fn words(line: &str) -> BTreeMap<String, String> {
    let words = line.split(' ').filter_map(|word| word.split_once('='));
    words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// How many events a line says were lost.
fn skipped_of(line: &str) -> u64 {
    line.strip_prefix("skipped=").map_or(0, |count| count.parse().unwrap())
}

/// A Unix second that is no seconds from now to memcached.
fn in_some_months() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() + 10_000_000
}

/// Stores keys `<prefix>0` and so on, without waiting for each.
fn fill(client: &mut Client, prefix: &str, count: usize, value: &[u8]) {
    let mut request = Vec::new();
    for number in 0..count {
        request.extend_from_slice(format!("set {prefix}{number} 0 0 {} noreply\r\n", value.len()).as_bytes());
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"mn\r\n");
    client.send(&request);
    assert_eq!(client.line(), "MN");
}

/// Every key once, those of tables with their prefix, no matter how slowly the list is read.
#[test]
fn dumps_list_every_key_once() {
    const KEYS: usize = 20_000;
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    client.change(
        "CREATE TABLE frag (key TEXT PRIMARY KEY, body TEXT) WITH (prefix = 'frag:', value = 'body')",
    );
    fill(&mut client, "plain-", KEYS, b"value");
    fill(&mut client, "frag:", 1_000, b"body");
    client.send(b"ms YSBi 6 b\r\nspaced\r\n");
    assert_eq!(client.line(), "HD");
    assert_eq!(client.set("gone", b"x"), "STORED");
    assert_eq!(client.ask("delete gone"), "DELETED");
    let expected: BTreeSet<String> = (0..KEYS)
        .map(|number| format!("plain-{number}"))
        .chain((0..1_000).map(|number| format!("frag%3A{number}")))
        .chain(["a%20b".to_owned()])
        .collect();
    for dump in ["lru_crawler metadump all", "lru_crawler metadump hash", "lru_crawler metadump 1,2"] {
        let listed = lines(&mut client, dump, "END");
        let keys: BTreeSet<String> = listed.iter().map(|line| words(line)["key"].clone()).collect();
        assert_eq!(listed.len(), expected.len(), "{dump}");
        assert_eq!(keys, expected, "{dump}");
    }
    assert_eq!(lines(&mut client, "lru_crawler metadump 2,3", "END"), Vec::<String>::new());
    let fetches = lines(&mut client, "lru_crawler mgdump all", "EN");
    assert_eq!(fetches.len(), expected.len());
    assert!(fetches.contains(&"mg YSBi b".to_owned()) && fetches.contains(&"mg frag:7".to_owned()));
    // Two lists at once on one connection, with something behind them: the answers keep their order.
    client.send(b"lru_crawler mgdump all\r\nstats cachedump 1 3\r\nmn\r\n");
    let mut answers = Vec::new();
    while answers.last().is_none_or(|line| line != "MN") {
        answers.push(client.line());
    }
    assert_eq!(answers.len(), expected.len() + 1 + 3 + 1 + 1);
    assert!(answers[expected.len() + 1].starts_with("ITEM "), "{:?}", &answers[expected.len()..]);
}

/// `mgdump` printed commands that the server refused: the base64 of a key of 188 bytes is longer than 250 letters. And
/// rows that SQL gave a key which no client of memcached's can name stood in every list.
#[test]
fn every_line_of_a_dump_can_be_sent_back() {
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    let mut binary = daemon.connect_tcp();
    let mut random = fastrand::Rng::with_seed(7);
    let mut expected = BTreeSet::new();
    for length in (1..=250).step_by(3).chain([187, 188, 249, 250]) {
        let key: Vec<u8> = std::iter::once(b' ').chain((1..length).map(|_| random.u8(..))).collect();
        let mut frame = vec![0x80, 0x11, 0, u8::try_from(length).unwrap(), 8, 0, 0, 0];
        frame.extend(u32::try_from(length + 9).unwrap().to_be_bytes());
        frame.extend([0; 20]);
        binary.send(&[&frame[..], &key[..], b"v"].concat());
        expected.insert(key);
    }
    // A noop: all of them were stored.
    binary.send(&[&[0x80, 0x0a][..], &[0; 22]].concat());
    assert_eq!(binary.bytes(24).unwrap()[..2], [0x81, 0x0a]);
    client.change(&format!(
        "INSERT INTO memcached (key, value) VALUES ('{}', 'x'), ('', 'y')",
        "k".repeat(251)
    ));
    let listed = lines(&mut client, "lru_crawler mgdump all", "EN");
    assert_eq!(listed.len(), expected.len());
    for line in &listed {
        assert_eq!(client.ask(line), "HD", "{line}");
        if let Some(key) = line.strip_suffix(" b") {
            let key = key.strip_prefix("mg ").unwrap();
            assert_eq!(client.ask(&format!("md {key} b")), "HD", "{line}");
            assert_eq!(client.ask(&format!("ms {key} 1 b\r\nv")), "HD", "{line}");
        }
    }
    let keys = lines(&mut client, "lru_crawler metadump all", "END");
    let keys: BTreeSet<Vec<u8>> = keys.iter().map(|line| url_decoded(&words(line)["key"])).collect();
    assert_eq!(keys, expected);
    for line in lines(&mut client, "stats cachedump 1 0", "END") {
        let key = line.split(' ').nth(1).unwrap().to_owned();
        assert_eq!(client.ask(&format!("mg {key}")), "HD", "{line}");
    }
    // One byte more is no key, in whatever form.
    let long = format!("{}=", "A".repeat(335));
    assert_eq!(client.ask(&format!("mg {long} b")), "CLIENT_ERROR error decoding key");
    assert_eq!(client.ask(&format!("mg {}", "A".repeat(251))), "CLIENT_ERROR bad command line format");
}

fn url_decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut key = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        key.push(u8::from_str_radix(&part[..2], 16).unwrap());
        key.extend_from_slice(&part.as_bytes()[2..]);
    }
    key
}

/// A list whose reader does not read takes neither the worker nor memory.
#[test]
fn a_dump_that_nobody_reads_holds_up_nobody() {
    let daemon = Daemon::start(&["-t", "1", "-m", "256"]);
    let mut client = daemon.connect();
    fill(&mut client, "a-key-of-some-length-that-fills-the-answer-", 200_000, b"");
    let before = daemon.resident_bytes();
    let mut lazy: Vec<Client> = (0..8).map(|_| daemon.connect()).collect();
    for reader in &mut lazy {
        reader.send(b"lru_crawler metadump all\r\n");
    }
    for number in 0..1_000 {
        assert_eq!(client.set("other", number.to_string().as_bytes()), "STORED");
    }
    let grown = daemon.resident_bytes().saturating_sub(before);
    assert!(grown < 8 * (9 << 20), "{grown} bytes for eight readers");
    for reader in &mut lazy {
        let mut count = 0;
        while reader.line() != "END" {
            count += 1;
        }
        assert!((200_000..=200_001).contains(&count), "{count}");
    }
}

/// The same keys in both: the lists have the same words, and the same values where they are the keys'.
#[test]
fn dumps_are_those_of_memcached() {
    let Some(memcached) = Memcached::start() else {
        skipped("memcached is not installed, so its lists cannot be compared");
        return;
    };
    let daemon = Daemon::start(&[]);
    let mut sides = [memcached.connect(), daemon.connect()];
    let end = in_some_months();
    for client in &mut sides {
        let odd = format!("set with%:odd~chars 0 {end}");
        for command in ["set plain 7 0", odd.as_str(), "set read 0 0"] {
            assert_eq!(client.store(command, b"abc"), "STORED");
        }
        assert_eq!(client.get("read").as_deref(), Some(&b"abc"[..]));
    }
    let [theirs, ours] = sides.each_mut().map(|client| {
        let lines = lines(client, "lru_crawler metadump hash", "END");
        let by_key = lines.iter().map(|line| (words(line)["key"].clone(), words(line)));
        by_key.collect::<BTreeMap<_, _>>()
    });
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>());
    for (key, theirs) in &theirs {
        let ours = &ours[key];
        assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{key}");
        for word in ["key", "exp", "fetch", "cls"] {
            assert_eq!(theirs[word], ours[word], "{word} of {key}");
        }
    }
    let [theirs, ours] = sides.each_mut().map(|client| {
        let items = lines(client, "stats cachedump 1 0", "END");
        items.into_iter().collect::<BTreeSet<String>>()
    });
    // A deadline of none is 0 here; 1.6.18 gives the moment of its own start.
    let ends = |lines: &BTreeSet<String>| -> Vec<String> {
        lines.iter().filter(|line| line.contains(&end.to_string())).cloned().collect()
    };
    assert_eq!((ends(&theirs).len(), ends(&theirs)), (1, ends(&ours)));
    assert_eq!(theirs.len(), ours.len());
}

/// Whatever name memcached's statistics have, ours have it, too.
#[test]
fn statistics_have_all_names_of_memcached() {
    let Some(memcached) = Memcached::start() else {
        skipped("memcached is not installed, so its statistics cannot be compared");
        return;
    };
    let daemon = Daemon::start(&[]);
    let mut sides = [memcached.connect(), daemon.connect()];
    for client in &mut sides {
        assert_eq!(client.set("k", b"v"), "STORED");
    }
    for subject in ["stats", "stats settings", "stats items", "stats slabs", "stats sizes"] {
        let [theirs, ours] = sides.each_mut().map(|client| {
            let found = lines(client, subject, "END");
            let names = found.iter().filter_map(|line| line.split(' ').nth(1).map(str::to_owned));
            names.collect::<BTreeSet<_>>()
        });
        // Its store on disk is another program to us, and a file for memory is the arena.
        let missing: Vec<_> = theirs
            .difference(&ours)
            .filter(|name| !name.starts_with("ext_") && *name != "memory_file")
            .collect();
        assert!(missing.is_empty(), "{subject}: {missing:?}");
    }
}

/// memcached's own tool reads what it asks for.
#[test]
fn memcached_tool() {
    let tool = "/usr/share/memcached/scripts/memcached-tool";
    if !std::path::Path::new(tool).exists() {
        skipped("memcached-tool is not installed; make tools does it");
        return;
    }
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    let end = in_some_months();
    for command in ["set one 5 0", &format!("set two%20words 0 {end}")] {
        assert_eq!(client.store(command, b"abc"), "STORED");
    }
    let address = format!("127.0.0.1:{}", daemon.port);
    let asked = |mode: &str| run(Command::new(tool).args([&address, mode]));
    let (code, keys, _) = asked("keys");
    assert_eq!((code, keys.lines().count()), (Some(0), 2), "{keys}");
    let (_, dump, _) = asked("dump");
    assert!(
        dump.contains("add one 5 0 3\r\nabc") && dump.contains(&format!("add two%20words 0 {end} 3\r\nabc")),
        "{dump}"
    );
    let (_, display, _) = asked("display");
    assert!(display.lines().nth(1).is_some_and(|line| line.trim().starts_with("1 ")), "{display}");
    for (mode, word) in [("stats", "curr_items"), ("settings", "maxbytes")] {
        let (code, shown, _) = asked(mode);
        assert!(code == Some(0) && shown.contains(word), "{mode}: {shown}");
    }
}

#[test]
fn watchers_see_what_others_do() {
    let daemon = Daemon::start(&["-t", "2"]);
    // What came and went before is not to be told.
    let mut watcher = daemon.connect_alone();
    assert_eq!(watcher.ask("watch fetchers mutations deletions connevents"), "OK");
    let mut client = daemon.connect_tcp();
    let connected = watcher.line();
    assert!(connected.contains(" type=conn_new rip=127.0.0.1 rport="), "{connected}");
    assert_eq!(client.set("a key".replace(' ', "%").as_str(), b"abc"), "STORED");
    assert_eq!(client.get("a%key").as_deref(), Some(&b"abc"[..]));
    assert_eq!(client.get("nothing"), None);
    assert_eq!(client.store("add a%key 0 60", b"x"), "NOT_STORED");
    client.send(b"ms meta 2 T30\r\nxy\r\n");
    assert_eq!(client.line(), "HD");
    assert_eq!(client.ask("delete a%key"), "DELETED");
    assert_eq!(client.ask("delete a%key"), "NOT_FOUND");
    assert_eq!(client.ask("md meta"), "HD");
    drop(client);
    let mut number = words(&connected)["gid"].parse::<u64>().unwrap();
    for expected in [
        "type=item_store key=a%25key status=stored cmd=set ttl=0 clsid=1 size=3",
        "type=item_get key=a%25key status=found clsid=1 size=3",
        "type=item_get key=nothing status=not_found clsid=0 size=0",
        "type=item_store key=a%25key status=not_stored cmd=add ttl=60 clsid=1 size=1",
        "type=item_store key=meta status=stored cmd=set ttl=30 clsid=1 size=2",
        "type=deleted key=a%25key cmd=delete clsid=1 size=3",
        "type=deleted key=meta cmd=md clsid=1 size=2",
    ] {
        let line = watcher.line();
        let found = words(&line);
        for (name, value) in words(expected) {
            assert_eq!(found.get(&name), Some(&value), "{line}");
        }
        number += 1;
        assert_eq!(found["gid"], number.to_string(), "{line}");
    }
    let closed = watcher.line();
    assert!(closed.contains(" type=conn_close ") && closed.contains(" reason=normal "), "{closed}");
}

/// A watcher that does not read loses events: they are counted, and told when it reads again.
#[test]
fn a_watcher_that_is_too_slow_is_told_what_it_missed() {
    const EVENTS: u64 = 300_000;
    let daemon = Daemon::start(&["-t", "2"]);
    let mut watcher = daemon.connect();
    assert_eq!(watcher.ask("watch fetchers"), "OK");
    let mut client = daemon.connect();
    let request = "mg a-key-that-is-not-there\r\n".repeat(1_000);
    for _ in 0..EVENTS / 1_000 {
        client.send(request.as_bytes());
        client.send(b"mn\r\n");
        while client.line() != "MN" {}
    }
    let (lost, sent) = (client.stat("log_watcher_skipped"), client.stat("log_watcher_sent"));
    assert!(lost > 0, "the watcher lost nothing");
    assert_eq!(lost + sent, EVENTS);
    let (mut seen, mut missed) = (0, 0);
    while seen < sent {
        let line = watcher.line();
        seen += u64::from(line.contains(" type=item_get "));
        missed += skipped_of(&line);
        assert!(!line.is_empty());
    }
    // The last loss is told with the next event.
    assert_eq!(client.get("later"), None);
    loop {
        let line = watcher.line();
        missed += skipped_of(&line);
        if line.contains("key=later") {
            break;
        }
        assert!(!line.is_empty());
    }
    assert_eq!(missed, lost);
    assert_eq!(client.stat("log_watchers"), 1);
}

#[test]
fn evictions_are_watched() {
    let daemon = Daemon::start(&["-m", "8"]);
    let mut watcher = daemon.connect();
    assert_eq!(watcher.ask("watch evictions"), "OK");
    let mut client = daemon.connect();
    fill(&mut client, "large-", 4_000, &[b'x'; 10_000]);
    let line = watcher.line();
    let found = words(&line);
    assert!(found["key"].starts_with("large-"), "{line}");
    assert_eq!((found["type"].as_str(), found["ttl"].as_str()), ("eviction", "-1"), "{line}");
    assert!(found["size"].parse::<u64>().unwrap() > 10_000, "{line}");
}

#[test]
fn prefixes_are_counted() {
    let daemon = Daemon::start(&["-D", "/"]);
    let mut client = daemon.connect();
    assert_eq!(client.set("abc/1", b"x"), "STORED");
    assert_eq!(client.get("abc/1").as_deref(), Some(&b"x"[..]));
    assert_eq!(client.get("abc/2"), None);
    assert_eq!(client.ask("delete abc/1"), "DELETED");
    assert_eq!(client.get("without"), None);
    assert_eq!(lines(&mut client, "stats detail dump", "END"), ["PREFIX abc get 2 hit 1 set 1 del 1"]);
    assert_eq!(client.ask("stats detail off"), "OK");
    // What a thread asks for with its next requests.
    assert_eq!(client.get("abc/1"), None);
    assert_eq!(lines(&mut client, "stats detail dump", "END"), ["PREFIX abc get 2 hit 1 set 1 del 1"]);
}

#[test]
fn connections_are_listed() {
    let daemon = Daemon::start(&["-t", "3"]);
    let mut client = daemon.connect_alone();
    let mut others: Vec<Client> = (0..5).map(|_| daemon.connect_tcp()).collect();
    for other in &mut others {
        assert_eq!(other.ask("mn"), "MN");
    }
    let listed = lines(&mut client, "stats conns", "END");
    let addresses = listed.iter().filter(|line| line.contains(":addr "));
    let of = |kind: &str| listed.iter().filter(|line| line.contains(kind)).count();
    assert_eq!(addresses.clone().count(), 6, "{listed:?}");
    assert_eq!(addresses.filter(|line| line.contains(":addr tcp:127.0.0.1:")).count(), 5, "{listed:?}");
    assert_eq!((of(":listen_addr "), of(":state conn_"), of(":secs_since_last_cmd ")), (6, 6, 6));
    assert_eq!(client.ask("mn"), "MN");
    drop(others);
}

#[test]
fn the_memory_limit_changes_while_it_runs() {
    let daemon = Daemon::start(&["-m", "64"]);
    let mut client = daemon.connect();
    fill(&mut client, "large-", 4_000, &[b'x'; 10_000]);
    assert_eq!(client.stat("evictions"), 0);
    assert_eq!(client.ask("cache_memlimit 16"), "OK");
    assert_eq!(client.stat("limit_maxbytes"), 16 << 20);
    fill(&mut client, "more-", 1_000, &[b'x'; 10_000]);
    assert!(client.stat("evictions") > 2_000);
    assert!(client.stat("bytes") < 16 << 20);
    assert_eq!(client.ask("cache_memlimit 128"), "OK");
    let before = client.stat("evictions");
    fill(&mut client, "again-", 5_000, &[b'x'; 10_000]);
    assert_eq!(client.stat("evictions"), before);
    assert!(client.ask("cache_memlimit 900000000").starts_with("MEMLIMIT_ADJUST_FAILED"));
    assert_eq!(client.ask("cache_memlimit 7"), "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m");
    assert_eq!(client.stat("limit_maxbytes"), 128 << 20);
}

/// `-M`: what does not fit is refused, and nothing that is there goes.
#[test]
fn without_evictions_a_full_cache_refuses() {
    let daemon = Daemon::start(&["-m", "8", "-M"]);
    let mut client = daemon.connect();
    let mut stored = 0;
    let refusal = loop {
        match client.set(&format!("k{stored}"), &[b'x'; 10_000]).as_str() {
            "STORED" => stored += 1,
            refusal => break refusal.to_owned(),
        }
        assert!(stored < 2_000, "more than fits was stored");
    };
    assert_eq!(refusal, "SERVER_ERROR out of memory storing object");
    assert!(stored > 300, "{stored}");
    for number in 0..stored {
        assert!(client.get(&format!("k{number}")).is_some(), "k{number}");
    }
    assert_eq!(client.stat("evictions"), 0);
    // Room that somebody gives back is room again.
    for number in 0..stored {
        assert_eq!(client.ask(&format!("delete k{number}")), "DELETED");
    }
    assert_eq!(client.set("again", &[b'x'; 10_000]), "STORED");
    assert!(lines(&mut client, "stats settings", "END").contains(&"STAT evictions off".to_owned()));
}

#[test]
fn shutdown_stops_where_it_is_allowed() {
    let daemon = Daemon::start(&[]);
    assert_eq!(daemon.connect().ask("shutdown"), "SERVER_ERROR: shutdown not enabled");
    drop(daemon);
    for word in ["shutdown", "shutdown graceful"] {
        let mut daemon = Daemon::start(&["-A"]);
        let mut client = daemon.connect();
        assert_eq!(client.set("k", b"v"), "STORED");
        assert_eq!(client.ask(word), "");
        assert_eq!(daemon.wait().code(), Some(0));
        // Graceful is the only way it stops: the rows are there again.
        daemon.restart();
        assert_eq!(daemon.connect().get("k").as_deref(), Some(&b"v"[..]));
    }
}

#[test]
fn what_is_switched_off_says_so() {
    let daemon = Daemon::start(&["-F", "-X", "-W"]);
    let mut client = daemon.connect();
    for (request, answer) in [
        ("flush_all", "CLIENT_ERROR flush_all not allowed"),
        ("lru_crawler metadump all", "ERROR metadump not allowed"),
        ("lru_crawler mgdump all", "ERROR key dump not allowed"),
        ("stats cachedump 1 0", "CLIENT_ERROR stats cachedump not allowed"),
        ("watch fetchers", "CLIENT_ERROR watch commands not allowed"),
    ] {
        assert_eq!(client.ask(request), answer);
    }
}

#[test]
fn verbosity_changes_the_log() {
    let mut daemon = Daemon::start(&["-o", "hashpower=20", "-R", "20"]);
    daemon.wait_until_it_says("this memcached flag has no effect: -o hashpower: the index grows");
    daemon.wait_until_it_says("has no effect: -R:");
    let mut client = daemon.connect();
    assert_eq!(client.ask("verbosity 1"), "OK");
    assert!(lines(&mut client, "stats settings", "END").contains(&"STAT verbosity 1".to_owned()));
    assert_eq!(daemon.terminate().code(), Some(0));
    daemon.wait_until_it_says("; every reply was sent");
}

/// As Debian's wrapper starts memcached, from its own configuration file; as root it becomes the user that it names.
#[test]
fn debian_starts_it_as_it_starts_memcached() {
    let folder = Folder::new();
    let (pid_file, port) = (folder.0.join("pid"), free_port());
    let line = format!("-m 64 -p {port} -u nobody -l 127.0.0.1 -P {}", pid_file.display());
    fs::set_permissions(&folder.0, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    // The wrapper hands the lines of the file on as one command line.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {PROGRAM} {line} -s none --arena none --sql-port 0")]);
    let mut child = command.spawn().unwrap();
    for _ in 0..4_000 {
        if fs::read_to_string(&pid_file).is_ok_and(|text| text.ends_with('\n')) {
            break;
        }
        // The daemon tells nobody when it is ready.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let pid = fs::read_to_string(&pid_file).unwrap_or_default();
    let version = Client::tcp(port).ask("version");
    let stopped = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    child.wait().unwrap();
    assert!(stopped.unwrap().success());
    assert!(version.starts_with("VERSION 1.6."), "{version}");
    assert_eq!(pid.trim(), child.id().to_string());
    assert!(!pid_file.exists());
    if own_uid() == "0" {
        let uids = status.lines().find(|line| line.starts_with("Uid:")).unwrap_or_default();
        let nobody =
            String::from_utf8(Command::new("id").args(["-u", "nobody"]).output().unwrap().stdout).unwrap();
        assert!(uids.split_whitespace().skip(1).all(|uid| uid == nobody.trim()), "{uids}");
    }
    let (code, _, error) = run(program().args(["-u", "nobody-at-all", "-p", "0", "--arena", "none"]));
    assert!(own_uid() != "0" || (code == Some(1) && error.contains("there is no user")), "{error}");
}

fn own_uid() -> String {
    let output = Command::new("id").arg("-u").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// `-d` returns when the daemon serves, or says why it does not.
#[test]
fn a_daemon_in_the_background() {
    let folder = Folder::new();
    let port = free_port();
    let (pid_file, socket) = (folder.0.join("pid"), folder.0.join("sock"));
    let flags = |command: &mut Command| {
        command.arg("-d").arg("-p").arg(port.to_string()).arg("-s").arg(&socket);
        command.arg("--arena").arg(folder.0.join("arena")).arg("-P").arg(&pid_file);
    };
    let mut command = program();
    flags(&mut command);
    let (code, out, errors) = run(&mut command);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{out}");
    // It serves already, and its number is written.
    let mut client = Client::tcp(port);
    let pid = client.stat("pid").to_string();
    assert!(out.contains(&format!("in the background as process {pid}")), "{out}");
    assert_eq!(fs::read_to_string(&pid_file).unwrap().trim(), pid);
    assert_eq!(client.set("k", b"v"), "STORED");
    // A second one has no port to listen on.
    let mut again = program();
    flags(&mut again);
    let (code, out, errors) = run(again.arg("--arena").arg(folder.0.join("another")));
    assert_ne!(code, Some(0), "{out}");
    assert!(errors.contains(&port.to_string()) || errors.contains("sock"), "{errors}");
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(client.rest(), b"");
}

/// In a build for tests an operator moves the clock, as with memcached's own.
#[cfg(debug_assertions)]
#[test]
fn the_clock_of_a_build_for_tests_is_moved() {
    let daemon = Daemon::start(&[]);
    let mut client = daemon.connect();
    assert_eq!(client.ask("debugtime p"), "OK");
    let unix = client.stat("time");
    assert_eq!(client.store("set short 0 10", b"v"), "STORED");
    assert_eq!(client.store(&format!("set named 0 {}", unix + 100), b"v"), "STORED");
    assert_eq!(client.store("set day 0 86400", b"v"), "STORED");
    assert_eq!(client.ask("debugtime 9"), "OK");
    assert!(client.get("short").is_some());
    assert_eq!(client.ask("debugtime 2"), "OK");
    assert!(client.get("short").is_none());
    assert_eq!(client.stat("time"), unix + 11);
    // A row ends with a tick, up to 1/16 s before the second that was named. The clock stands anywhere in its second.
    assert_eq!(client.ask("debugtime 87"), "OK");
    assert!(client.get("named").is_some());
    assert_eq!(client.ask("debugtime 2"), "OK");
    assert!(client.get("named").is_none());
    assert_eq!(client.ask("debugtime 86001"), "OK");
    assert!(client.get("day").is_some());
    assert_eq!(client.ask("debugtime r"), "OK");
    assert_eq!(client.ask("debugtime 400"), "OK");
    assert!(client.get("day").is_none());
    assert_eq!(client.ask("debugtime -1"), "CLIENT_ERROR debugtime takes p, r, or seconds to move forward");
    for wrong in ["debugtime", "debugtime soon"] {
        assert_eq!(client.ask(wrong), "ERROR");
    }
}
