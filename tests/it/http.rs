//! The HTTP port as those meet it who watch the server: curl, Prometheus, a web page that should not, and bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Folder, free_port, program, run};
use crate::skipped;

/// A daemon with an HTTP port.
struct Watched {
    daemon: Daemon,
    port: u16,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Watched {
    fn start(flags: &[&str]) -> Self {
        let port = free_port();
        let daemon = Daemon::start(&[&["--http-port", &port.to_string()], flags].concat());
        Self { daemon, port }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n",
            self.port
        ))
    }

    /// Sends bytes and reads to the end.
    fn ask(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut stream)
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// The sample of this name and these labels, as they are written.
    fn metric(&self, sample: &str) -> u64 {
        let page = self.get("/metrics").body;
        let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {sample} in\n{page}"))
    }
}

fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection that was reset has said what it had to say.
    let _reset = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

#[test]
fn the_greeting_names_the_port_and_its_paths_answer() {
    let watched = Watched::start(&[]);
    watched
        .daemon
        .wait_until_it_says(&format!("console, metrics and health on http://127.0.0.1:{}/", watched.port));
    for (path, status) in [
        ("/sql", 405),
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/metrics/memcached", 200),
        ("/x", 404),
    ] {
        let answer = watched.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.head.contains("content-type: text/plain"), "{path}: {answer:?}");
        for header in ["nosniff", "frame-ancestors 'none'", "default-src 'none'"] {
            assert!(answer.head.contains(header), "{path}: {answer:?}");
        }
        assert!(!answer.head.contains("access-control"), "{path}: {answer:?}");
    }
}

/// A second daemon finds the default port taken, and serves all the same; who asks for the port is refused.
#[test]
fn a_port_in_use_is_a_warning_where_nobody_asked_for_it() {
    let first = Watched::start(&[]);
    let (code, _, error) = run(program().args(["-p", "0", "-s", "none", "--arena", "none"]).args([
        "--sql-port",
        &free_port().to_string(),
        "--sql-socket-dir",
        "none",
        "--http-port",
        &first.port.to_string(),
    ]));
    assert_eq!(code, Some(1));
    assert!(error.contains("Address already in use") && error.contains("--http-port"), "{error}");
    // Held by this test, or by somebody else on this machine.
    let _held = std::net::TcpListener::bind("127.0.0.1:11280");
    let folder = Folder::new();
    let mut command = program();
    command.env_remove("SQLCACHED_HTTP_PORT").args(["-p", "0", "--arena", "none"]);
    command.arg("-s").arg(folder.0.join("sock")).stdout(Stdio::null());
    let errors = fs::File::create(folder.0.join("err")).unwrap();
    let mut child = command.stderr(errors).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while crate::client::Client::try_unix(&folder.0.join("sock")).is_err() {
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = fs::read_to_string(folder.0.join("err")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("there is no HTTP there"), "{said}");
}

/// What a page of another site could send through a browser on this machine.
#[test]
fn other_web_pages_are_refused() {
    let watched = Watched::start(&["--http-hosts", "cache1.example.org, cache1"]);
    let status = |head: &str| watched.ask(&format!("{head}\r\nConnection: close\r\n\r\n")).status;
    for host in ["localhost", "127.0.0.1:80", "[::1]", "cache1", "CACHE1.example.org:11280"] {
        assert_eq!(status(&format!("GET /metrics HTTP/1.1\r\nHost: {host}")), 200, "{host}");
    }
    for host in ["evil.example", "cache1.example.org.evil.example", "localhost\r\nHost: evil.example", ""] {
        assert_eq!(status(&format!("GET /metrics HTTP/1.1\r\nHost: {host}")), 421, "{host}");
    }
    assert_eq!(status("GET /metrics HTTP/1.1"), 421);
    assert_eq!(status("GET http://evil.example/metrics HTTP/1.1\r\nHost: evil.example"), 421);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = watched.ask(&format!(
            "{method} /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: get, head"), "{answer:?}");
    }
    let answer = watched.ask("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!((answer.status, &*answer.body), (200, ""));
}

impl Watched {
    /// Posts a statement, or anything else.
    fn post(&self, headers: &str, body: &str) -> Answer {
        let length = body.len();
        self.ask(&format!(
            "POST /sql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    /// The answer to a statement, whole.
    fn sql(&self, request: &Value) -> (u16, Value) {
        let answer = self.post(JSON, &request.to_string());
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        (answer.status, serde_json::from_str(&answer.body).unwrap())
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn statements_are_answered_as_json() {
    let watched = Watched::start(&[]);
    let (status, answer) = watched.sql(&json!({
        "statement": "SELECT $1::int8 AS a, 'x' AS b, true AS c, 1.50::numeric AS d, NULL AS e, '\\x00ff'::bytea AS f",
        "parameters": [9_007_199_254_740_993_i64],
    }));
    assert_eq!(status, 200, "{answer}");
    let names: Vec<_> = answer["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(answer["columns"][0]["type"], "bigint");
    let row = json!([9_007_199_254_740_993_i64, "x", true, 1.5, null, {"base64": "AP8="}]);
    assert_eq!(answer["rows"], json!([row]));
    assert_eq!((&answer["tag"], &answer["count"]), (&json!("SELECT"), &json!(1)));
    // It may only read, unless it says that it writes.
    let create = "CREATE TABLE t (k INT PRIMARY KEY)";
    for (request, status, state) in [
        (json!({"statement": create}), 400, "25006"),
        (json!({"statement": "INSERT INTO memcached (key) VALUES ('a')"}), 400, "25006"),
        (json!({"statement": "SELECT nothing FROM memcached"}), 400, "42703"),
        (json!({"statement": "SELECT 1; SELECT 2"}), 400, "42601"),
        (json!({"statement": "SELECT $1"}), 400, "08P01"),
        (json!({"statement": "COPY memcached TO STDOUT"}), 400, "0A000"),
        (json!({"statement": "COPY memcached (key, value) FROM STDIN", "write": true}), 400, "0A000"),
        (json!({"sql": "SELECT 1"}), 400, "08P01"),
        (json!([]), 400, "08P01"),
    ] {
        let (found, answer) = watched.sql(&request);
        assert_eq!((found, &answer["error"]["sqlstate"]), (status, &json!(state)), "{request}: {answer}");
    }
    let (_, answer) = watched.sql(&json!({"statement": "SELECT nothing FROM memcached"}));
    assert_eq!(answer["error"]["position"], 8, "{answer}");
    for statement in [create, "INSERT INTO t VALUES (1), (2)"] {
        assert_eq!(watched.sql(&json!({"statement": statement, "write": true})).0, 200, "{statement}");
    }
    let (_, answer) = watched.sql(&json!({"statement": "SELECT k FROM t WHERE k > 7"}));
    assert_eq!((&answer["rows"], &answer["columns"][0]["name"]), (&json!([]), &json!("k")));
    let (_, answer) = watched.sql(&json!({"statement": "SELECT protocol FROM sqlcached_sessions"}));
    assert_eq!(answer["rows"], json!([["http"]]));
}

/// What a page of another site, or a script that means no good, could post.
#[test]
fn posts_of_others_are_refused() {
    let watched = Watched::start(&["--statement-timeout", "500ms"]);
    let statement = json!({"statement": "SELECT 1"}).to_string();
    for (headers, status) in [
        (JSON.to_owned(), 200),
        (format!("{JSON}Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n"), 200),
        (format!("{JSON}Sec-Fetch-Site: cross-site\r\n"), 403),
        (format!("{JSON}Origin: http://evil.example\r\n"), 403),
        ("Content-Type: text/plain\r\n".to_owned(), 403),
        ("Content-Type: application/x-www-form-urlencoded\r\n".to_owned(), 403),
        (String::new(), 403),
    ] {
        assert_eq!(watched.post(&headers, &statement).status, status, "{headers}");
    }
    assert_eq!(watched.post(JSON, &"x".repeat((1 << 20) + 1)).status, 413);
    let chunked = format!(
        "POST /sql HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{statement}\r\n0\r\n\r\n",
        statement.len()
    );
    assert_eq!(watched.ask(&chunked).status, 200);
    // A length that is two lengths could hide a second request.
    let lengths = format!("{JSON}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n");
    assert_eq!(watched.post(&lengths, &statement).status, 400);
    let one = format!(
        "POST /sql HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: {}\r\n\r\n{statement}",
        statement.len()
    );
    let last = one.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    let answers = watched.ask(&format!("{one}{one}{last}"));
    assert_eq!(answers.body.matches("HTTP/1.1 200 OK").count(), 2, "{answers:?}");
    let cut =
        format!("POST /sql HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: 999\r\n\r\n{statement}");
    let mut stream = watched.connect();
    stream.write_all(cut.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!([400, 0].contains(&read_answer(&mut stream).status));
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let (status, answer) = watched.sql(&json!({"statement": endless}));
    assert_eq!((status, &answer["error"]["sqlstate"]), (400, &json!("57014")), "{answer}");
}

/// Whoever closes the page stops its statement.
#[test]
fn a_statement_ends_with_its_client() {
    let watched = Watched::start(&[]);
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let body = json!({"statement": endless}).to_string();
    let mut stream = watched.connect();
    write!(
        stream,
        "POST /sql HTTP/1.1\r\nHost: localhost\r\n{JSON}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let active = || {
        let statement = "SELECT count(*) FROM sqlcached_sessions WHERE query LIKE '%recursive%' AND pid <> pg_backend_pid()";
        watched.sql(&json!({"statement": statement})).1["rows"][0][0].as_u64().unwrap()
    };
    let end = Instant::now() + Duration::from_secs(5);
    while active() == 0 {
        assert!(Instant::now() < end, "it has not begun");
    }
    drop(stream);
    while active() > 0 {
        assert!(Instant::now() < end, "it goes on without its client");
    }
}

/// Ten thousand connections come, as many at once as this process may have. Those beyond the places get an error,
/// nobody who comes for the cache waits, and afterwards every place is there again.
#[test]
fn ten_thousand_connections_delay_nobody() {
    const ALL: usize = 10_000;
    const AT_ONCE: usize = 500;
    let watched = Watched::start(&[]);
    let mut client = watched.daemon.connect();
    client.set("k", b"v");
    let mut open: Vec<TcpStream> = Vec::new();
    let (mut refused, mut longest) = (0, Duration::ZERO);
    for number in 0..ALL {
        if open.len() >= AT_ONCE {
            for mut stream in open.drain(..) {
                stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
                refused += usize::from(read_answer(&mut stream).status == 503);
            }
        }
        open.push(watched.connect());
        if number % 100 == 0 {
            let begin = Instant::now();
            assert!(client.get("k").is_some());
            longest = longest.max(begin.elapsed());
        }
    }
    drop(open);
    assert!(refused > ALL / 2, "{refused} of {ALL} were told");
    assert!(longest < Duration::from_secs(1), "a client of the cache waited {longest:?}");
    let end = Instant::now() + Duration::from_secs(15);
    while watched.get("/livez").status != 200 {
        assert!(Instant::now() < end, "the places do not come back");
    }
}

/// The page is small, is asked for again at no cost, and says who may look at it.
#[test]
fn the_page_is_compressed_and_has_a_mark() {
    let watched = Watched::start(&[]);
    let ask = |path: &str, headers: &str| {
        let mut stream = watched.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
            .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (String::from_utf8_lossy(&bytes[..head]).to_lowercase(), bytes.len() - head - 4)
    };
    // The page names all of its files.
    let page = watched.get("/").body;
    let named = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let paths: Vec<&str> = named.chain(["/"]).collect();
    assert!(paths.len() > 15 && paths.contains(&"/console/console.js"), "{paths:?}");
    let mut all = 0;
    for path in paths {
        let (plain, length) = ask(path, "");
        assert!(plain.starts_with("http/1.1 200") && !plain.contains("content-encoding"), "{plain}");
        let (packed, packed_length) = ask(path, "Accept-Encoding: br, gzip\r\n");
        assert!(packed.contains("content-encoding: gzip") && packed_length < length, "{packed}");
        let mark = packed.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
        let (same, nothing) = ask(path, &format!("If-None-Match: {mark}\r\n"));
        assert!(same.starts_with("http/1.1 304") && nothing == 0, "{same}");
        all += packed_length;
    }
    assert!(all < 60 << 10, "{all} bytes");
}

/// The history lay in the process's memory, and an operator who looked for what was before a crash found nothing.
#[test]
fn the_history_outlives_the_process() {
    let mut watched = Watched::start(&[]);
    let count = |watched: &Watched, condition: &str| {
        let asked =
            format!("SELECT count(*) AS n FROM sqlcached_history WHERE resolution = 1 AND {condition}");
        watched.daemon.connect().rows(&asked)[0]["n"].as_u64().unwrap()
    };
    assert_eq!(watched.daemon.connect().set("key", b"value"), "STORED");
    let end = Instant::now() + Duration::from_mins(1);
    while count(&watched, "sets = 1") == 0 {
        assert!(Instant::now() < end, "no second has the set");
        std::thread::sleep(Duration::from_millis(100));
    }
    watched.daemon.kill();
    watched.daemon.restart();
    assert_eq!(count(&watched, "sets = 1"), 1);
    // The tables of the arena have their numbers, so they are known in points from before.
    assert!(count(&watched, "at < pg_postmaster_start_time() AND tables ? 'memcached'") > 0);
}

/// What watches the server is not what the server does.
#[test]
fn statements_that_are_not_listed_are_in_no_list() {
    let watched = Watched::start(&["--log-min-duration-statement", "0"]);
    let ask = |body: &str| {
        watched.ask(&format!(
            "POST /sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    assert_eq!(ask(r#"{"statement": "SELECT 'watched'", "listed": false}"#).status, 200);
    assert_eq!(ask(r#"{"statement": "SELECT 'asked', 2"}"#).status, 200);
    let mut client = watched.daemon.connect();
    for (table, column) in [("sqlcached_statements", "query"), ("sqlcached_slow", "statement")] {
        let listed =
            client.rows(&format!("SELECT {column} AS s FROM {table} WHERE {column} LIKE 'select ?%'"));
        assert_eq!(listed, [json!({"s": "select ?, ..."})], "{table}");
    }
    assert_eq!(watched.metric("sqlcached_commands_total{command=\"sql\",status=\"ok\"}"), 3);
    let refused = ask(r#"{"statement": "DELETE FROM memcached", "write": true, "listed": false}"#);
    assert!(refused.status == 400 && refused.body.contains("what writes is listed"), "{refused:?}");
}

/// Bytes that are no request, a head that never ends, and more connections than there are places: each is answered as
/// HTTP has it or closed, and nobody else waits for it.
#[test]
fn bad_input_is_bounded() {
    let watched = Watched::start(&[]);
    let long = "x".repeat(9 << 10);
    for (request, statuses) in [
        ("\r\n\r\nnonsense\r\n\r\n".to_owned(), &[400, 0][..]),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), &[400, 505, 0][..]),
        ("\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), &[400, 0][..]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), &[431][..]),
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), &[431, 414][..]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(100)), &[431][..]),
    ] {
        let answer = watched.ask(&request);
        assert!(statuses.contains(&answer.status), "{request:.40}: {answer:?}");
    }
    // Who sends 1 MiB of head is closed before all of it came.
    let mut stream = watched.connect();
    let _closed = stream.write_all(&b"A: b\r\n".repeat((1 << 20) / 6));
    assert!([431, 400, 0].contains(&read_answer(&mut stream).status));
    // Two requests at once are answered one behind the other.
    let both = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = watched.ask(both);
    assert_eq!(answer.body.matches("200 OK").count() + 1, 2, "{answer:?}");
    // Slow heads take all places; after some seconds they are closed, and the places are there again.
    let mut slow: Vec<TcpStream> = (0..64).map(|_| watched.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HT").unwrap();
    }
    let begin = Instant::now();
    let refused = loop {
        let answer = watched.get("/livez");
        if answer.status == 503 {
            break answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "{answer:?}");
    };
    assert_eq!(refused.body, "too many connections\n");
    // Those who come for the cache notice nothing.
    assert_eq!(watched.daemon.connect().set("k", b"v"), "STORED");
    while watched.get("/livez").status != 200 {
        assert!(begin.elapsed() < Duration::from_secs(30), "slow heads keep their places");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Hits and misses of each table, as every protocol makes them.
#[test]
fn lookups_are_counted_by_table() {
    let watched = Watched::start(&[]);
    let mut client = watched.daemon.connect_tcp();
    client.change("CREATE TABLE a (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'a:', value = 'v')");
    client.change(
        "CREATE TABLE b (x INT, y TEXT, v TEXT, PRIMARY KEY (x, y)) WITH (prefix = 'b:', value = 'v')",
    );
    let mut counts = |table: &str| {
        let rows =
            client.rows(&format!("SELECT hits, misses FROM sqlcached_tables WHERE table_name = '{table}'"));
        (rows[0]["hits"].as_u64().unwrap(), rows[0]["misses"].as_u64().unwrap())
    };
    let mut other = watched.daemon.connect_tcp();
    assert_eq!(other.set("a:1", b"x"), "STORED");
    assert_eq!(other.set("b:7:z", b"x"), "STORED");
    assert_eq!((counts("a"), counts("b")), ((0, 0), (0, 0)), "writes are no lookups");
    // memcached, text: two keys of one table, one of another, one that is no key of its table.
    other.send(b"get a:1 a:2 b:7:z b:text\r\n");
    while other.line() != "END" {}
    assert_eq!((counts("a"), counts("b")), ((1, 1), (1, 1)));
    assert_eq!(other.ask("mg a:1 v"), "VA 1");
    other.line();
    assert_eq!(other.ask("mg a:9 v"), "EN");
    other.send(b"gat 0 a:1\r\n");
    while other.line() != "END" {}
    assert_eq!(counts("a"), (3, 2));
    assert_eq!(other.ask("delete a:9"), "NOT_FOUND");
    assert_eq!(counts("a"), (3, 2), "a removal is no lookup");
    // SQL, natively and by SQLite: one key, several, by a join, and by a scan.
    for (statement, hits, misses) in [
        ("SELECT v FROM a WHERE k = '1'", 1, 0),
        ("SELECT v FROM a WHERE k = 'none'", 0, 1),
        ("SELECT v FROM a WHERE k IN ('1', '2', '3')", 1, 2),
        ("SELECT upper(v) || random() FROM a WHERE k = '1'", 1, 0),
        ("SELECT v FROM a", 0, 0),
        ("SELECT v FROM a WHERE v = 'x'", 0, 0),
        ("UPDATE a SET v = 'y' WHERE k = '1'", 0, 0),
        ("DELETE FROM a WHERE k = 'none'", 0, 0),
    ] {
        let before = counts("a");
        other.sql(statement);
        assert_eq!(counts("a"), (before.0 + hits, before.1 + misses), "{statement}");
    }
    let (hits, misses) = counts("a");
    assert_eq!(watched.metric("sqlcached_table_hits_total{table=\"a\"}"), hits);
    assert_eq!(watched.metric("sqlcached_table_misses_total{table=\"a\"}"), misses);
    assert_eq!(watched.metric("sqlcached_commands_total{command=\"set\",status=\"hit\"}"), 2);
    // A table that takes the place of a dropped one begins with nothing.
    other.change("DROP TABLE a");
    other.change("CREATE TABLE a (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'a:', value = 'v')");
    assert_eq!(counts("a"), (0, 0));
}

/// Both pages, in both formats, as Prometheus' own checker reads them. A table's name may be anything.
#[test]
fn promtool_is_content() {
    let watched = Watched::start(&[]);
    watched.daemon.connect().change("CREATE TABLE \"<script> \\ \"\"x\" (k TEXT PRIMARY KEY)");
    let page = watched.get("/metrics").body;
    assert!(page.contains("sqlcached_table_rows{table=\"<script> \\\\ \\\"x\"} 0"), "{page}");
    let open = watched.ask(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\
         Connection: close\r\n\r\n",
    );
    assert!(open.head.contains("application/openmetrics-text; version=1.0.0"), "{open:?}");
    assert!(open.body.ends_with("# EOF\n") && open.body.contains("# TYPE sqlcached_commands counter\n"));
    for path in ["/metrics", "/metrics/memcached"] {
        if !is_content(&watched.get(path).body) {
            return skipped("promtool is not installed");
        }
    }
}

/// Has promtool check a page; false: it is not there.
pub(crate) fn is_content(page: &str) -> bool {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut promtool) = command.spawn() else { return false };
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{page}: {output:?}");
    true
}

/// The page of this path.
pub(crate) fn page(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let asked = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(asked.as_bytes()).unwrap();
    read_answer(&mut stream).body
}

/// Ends with its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Debian's Prometheus scrapes both pages, and answers queries with what was counted.
#[test]
fn prometheus_scrapes() {
    let watched = Watched::start(&[]);
    let mut client = watched.daemon.connect();
    assert_eq!(client.set("k", b"v"), "STORED");
    assert!(client.get("k").is_some() && client.get("missing").is_none());
    let (folder, port) = (Folder::new(), free_port());
    let config = folder.write(
        "prometheus.yml",
        &format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n\
             - job_name: own\n  static_configs: [{{targets: ['127.0.0.1:{0}']}}]\n\
             - job_name: memcached\n  metrics_path: /metrics/memcached\n  static_configs: [{{targets: ['127.0.0.1:{0}']}}]\n",
            watched.port
        ),
    );
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.0.join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let log = fs::File::create(folder.0.join("log")).unwrap();
    command.current_dir(&folder.0).stdout(Stdio::null()).stderr(log);
    let Ok(child) = command.spawn() else { return skipped("prometheus is not installed") };
    let _prometheus = Killed(child);
    let query = |query: &str| -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        let path = format!("/api/v1/query?query={query}");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let answer: Value = serde_json::from_str(&read_answer(&mut stream).body).ok()?;
        Some(answer["data"]["result"][0]["value"][1].as_str()?.to_owned())
    };
    let end = Instant::now() + Duration::from_secs(40);
    for (name, expected) in [
        ("sqlcached_table_hits_total%7Btable%3D%22memcached%22%7D", "1"),
        ("sqlcached_table_misses_total%7Btable%3D%22memcached%22%7D", "1"),
        ("memcached_commands_total%7Bcommand%3D%22get%22%2Cstatus%3D%22hit%22%7D", "1"),
        ("memcached_current_items", "1"),
        ("memcached_up", "1"),
        ("sum(up)", "2"),
    ] {
        while query(name).as_deref() != Some(expected) {
            let log = || fs::read_to_string(folder.0.join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "{name}: {:?}\n{}", query(name), log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The names of memcached_exporter that its own board and alerts ask for.
#[test]
fn memcached_names_are_the_exporters() {
    let watched = Watched::start(&["-m", "64"]);
    let mut client = watched.daemon.connect();
    client.set("n", b"1");
    client.ask("incr n 1");
    client.ask("delete n");
    client.set("k", b"v");
    let page = watched.get("/metrics/memcached").body;
    for sample in [
        "memcached_up 1",
        "memcached_version{version=\"1.6.45\"} 1",
        "memcached_limit_bytes 67108864",
        "memcached_max_connections 1024",
        "memcached_current_items 1",
        "memcached_items_total 2",
        "memcached_items_evicted_total 0",
        "memcached_commands_total{command=\"incr\",status=\"hit\"} 1",
        "memcached_commands_total{command=\"delete\",status=\"hit\"} 1",
        "memcached_commands_total{command=\"set\",status=\"hit\"} 2",
        "memcached_commands_total{command=\"cas\",status=\"badval\"} 0",
        "memcached_slab_current_items{slab=\"1\"} 1",
    ] {
        assert!(page.lines().any(|line| line == sample), "no {sample} in\n{page}");
    }
    for name in [
        "uptime_seconds",
        "time_seconds",
        "current_bytes",
        "current_connections",
        "connections_total",
        "read_bytes_total",
        "written_bytes_total",
        "malloced_bytes",
    ] {
        assert!(
            page.lines().any(|line| line.starts_with(&format!("memcached_{name} "))),
            "no {name} in\n{page}"
        );
    }
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
const BEGIN: &str = "<!-- begin metrics -->\n";
const END: &str = "<!-- end metrics -->\n";

/// The table of metrics as the document has it. `UPDATE=1` writes it again.
#[test]
fn the_document_lists_the_metrics() {
    let mut table = String::from("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for metric in engine::METRICS {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, help) = (metric.name, metric.kind.name(), metric.help);
        let line = format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", "));
        table.push_str(&line);
    }
    let page = fs::read_to_string(PAGE).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (found, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PAGE, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
    } else {
        assert_eq!(found, table, "run with UPDATE=1");
    }
}

/// The board asks for metrics that there are.
#[test]
fn the_board_knows_the_metrics() {
    let board = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/grafana.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let mut asked = 0;
    for target in
        board["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap())
    {
        let query = target["expr"].as_str().unwrap();
        for name in query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            if name.starts_with("sqlcached_") {
                let name = name.strip_suffix("_bucket").unwrap_or(name);
                assert!(engine::METRICS.iter().any(|metric| metric.name == name), "{name} in {query}");
                asked += 1;
            }
        }
    }
    assert!(asked > 20, "{asked}");
}

/// Each metric of the table is there, with its labels (those of sources: `sources::metrics`, of buses:
/// `cluster::figures_of_a_bus_are_metrics`); of many tables and views 200 are named, and the others are one.
#[test]
fn labels_are_bounded() {
    let watched = Watched::start(&[]);
    let mut client = watched.daemon.connect();
    for number in 0..230 {
        client.change(&format!(
            "CREATE TABLE t{number} (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 't{number}:', value = 'v')"
        ));
        client.set(&format!("t{number}:a"), b"x");
    }
    for number in 0..203 {
        client.change(&format!("CREATE MATERIALIZED VIEW v{number} AS SELECT k FROM t0"));
    }
    let page = watched.get("/metrics").body;
    let elsewhere = [Some(&"source"), Some(&"bus")];
    for metric in engine::METRICS.iter().filter(|metric| !elsewhere.contains(&metric.labels.first())) {
        let opens = metric.labels.first().map_or_else(|| " ".to_owned(), |label| format!("{{{label}="));
        let part = if metric.kind == engine::MetricKind::Histogram { "_bucket" } else { "" };
        let sample = format!("{}{part}{opens}", metric.name);
        assert!(page.lines().any(|line| line.starts_with(&sample)), "no {sample} in\n{page}");
        assert!(page.contains(&format!("# TYPE {} {}\n", metric.name, metric.kind.name())), "{page}");
    }
    let tables: Vec<_> = page.lines().filter(|line| line.starts_with("sqlcached_table_rows{")).collect();
    assert_eq!(tables.len(), 201);
    // The built-in table is the oldest, and empty.
    assert_eq!(tables[0], "sqlcached_table_rows{table=\"memcached\"} 0");
    assert_eq!(tables[1], "sqlcached_table_rows{table=\"t0\"} 1");
    assert_eq!(tables[200], "sqlcached_table_rows{table=\"other\"} 234");
    let views: Vec<_> =
        page.lines().filter(|line| line.starts_with("sqlcached_view_refreshes_total{")).collect();
    assert_eq!(views.len(), 201);
    assert_eq!(views[0], "sqlcached_view_refreshes_total{view=\"v0\"} 1");
    assert_eq!(views[200], "sqlcached_view_refreshes_total{view=\"other\"} 3");
}

const RULES: &str =
    "host all all 127.0.0.1/32 scram-sha-256\nhost all all 0.0.0.0/0 password protocol=http\n";
const ROLES: &str = "CREATE ROLE chief SUPERUSER LOGIN PASSWORD 'c';\n\
    CREATE ROLE eye LOGIN PASSWORD 'see';\nGRANT pg_monitor TO eye;\nCREATE ROLE app LOGIN PASSWORD 'app';\n";

/// Roles prove themselves by Basic authentication, and see what `stats` would show them.
#[test]
fn roles_and_passwords() {
    let folder = Folder::new();
    let (rules, roles) = (folder.write("rules", RULES), folder.write("roles", ROLES));
    fs::set_permissions(&roles, fs::Permissions::from_mode(0o600)).unwrap();
    let port = free_port();
    let (rules, roles) = (rules.display().to_string(), roles.display().to_string());
    let flags = [
        "--hba-file",
        &rules,
        "--roles-file",
        &roles,
        "--http-port",
        &port.to_string(),
        "--http-listen-addresses",
        "0.0.0.0",
    ];
    let watched = Watched { daemon: Daemon::start_in(folder, &flags), port };
    let status = |path: &str, shown: &str| {
        let shown = if shown.is_empty() { String::new() } else { format!("Authorization: {shown}\r\n") };
        watched.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{shown}Connection: close\r\n\r\n"))
    };
    let refused = status("/metrics", "");
    assert_eq!(refused.status, 401);
    assert!(refused.head.contains("www-authenticate: basic realm=\"sqlcached\""), "{refused:?}");
    // base64 of chief:c, eye:see, app:app, eye:wrong, nobody:see
    for (shown, expected) in [
        ("Basic Y2hpZWY6Yw==", 200),
        ("Basic ZXllOnNlZQ==", 200),
        ("Basic YXBwOmFwcA==", 403),
        ("Basic ZXllOndyb25n", 401),
        ("Basic bm9ib2R5OnNlZQ==", 401),
        ("Basic !", 401),
        ("Bearer ZXllOnNlZQ==", 401),
    ] {
        assert_eq!(status("/metrics", shown).status, expected, "{shown}");
        assert_eq!(status("/livez", shown).status, 200, "{shown}");
    }
    assert_eq!(status("/readyz", "").status, 200);
    // A statement has the rights of its role, and a cancel those of the one who asks for it.
    let run = |shown: &str, statement: &str| {
        let body = json!({"statement": statement, "write": true}).to_string();
        watched.post(&format!("{JSON}Authorization: Basic {shown}\r\n"), &body)
    };
    let app = run("YXBwOmFwcA==", "SELECT current_user, session_user");
    assert!(app.status == 200 && app.body.contains(r#"["app","app"]"#), "{app:?}");
    for statement in
        ["SELECT key FROM memcached", "DELETE FROM memcached", "CREATE TABLE t (k INT PRIMARY KEY)"]
    {
        let answer = run("YXBwOmFwcA==", statement);
        assert!(answer.status == 403 && answer.body.contains("\"42501\""), "{statement}: {answer:?}");
    }
    assert_eq!(run("Y2hpZWY6Yw==", "DELETE FROM memcached").status, 200);
    assert_eq!(run("ZXllOndyb25n", "SELECT 1").status, 401);
    assert_eq!(watched.post(JSON, &json!({"statement": "SELECT 1"}).to_string()).status, 401);
}

#[test]
fn an_address_of_others_needs_a_rule() {
    let (code, _, error) = run(program()
        .args(["-p", "0", "-s", "/dev/shm/sqlcached-test-none", "--arena", "none"])
        .args(["--http-port", &free_port().to_string(), "--http-listen-addresses", "0.0.0.0"]));
    assert_eq!(code, Some(1));
    assert!(error.contains("refusing to listen on 0.0.0.0") && error.contains("protocol=http"), "{error}");
}

/// A server that was asked to stop finishes a statement that runs, and says meanwhile that nobody should come.
#[test]
fn readiness_ends_before_the_server() {
    let mut watched = Watched::start(&[]);
    let mut client = watched.daemon.connect_tcp();
    let statement = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000) SELECT count(*) FROM c";
    client.send(format!("sql {}\r\n{statement}\r\n", statement.len()).as_bytes());
    std::thread::sleep(Duration::from_millis(200));
    watched.daemon.signal("TERM");
    let begin = Instant::now();
    loop {
        let answer = watched.get("/readyz");
        if answer.status == 503 {
            assert_eq!(answer.body, "stopping\n");
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(4), "{answer:?}");
    }
    assert_eq!(watched.get("/livez").status, 200);
    assert_eq!(watched.daemon.wait().code(), Some(0));
}
