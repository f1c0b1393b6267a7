//! Random queries, at a PostgreSQL 15 and at a daemon: the same rows of the same types, or both fail.
//!
//! The queries are of texts, numbers, decimals, truths, dates, moments, arrays and `jsonb`, of patterns, functions
//! that return rows, and `LATERAL`. What is known to differ is not among them: division, the digits of a decimal
//! that a subquery gives, JSON of type `json` (which has other blanks), `-> 0` of a JSON value that is no array,
//! `to_jsonb` of a bare text, the blanks of what `->>` gives of an object or array, `= ANY` of an array that is
//! NULL. `STATEMENTS` says how many; `SEED` replays a run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fastrand::Rng;
use server::Config;

use crate::harness::{config, daemon_with, seed};
use crate::pg::{packet, query};

/// Where Debian puts the programs of PostgreSQL.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Making a cluster and starting it takes a few seconds on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Looks whether it does, 50 ms apart.
const TRIES: u32 = 1_200;
/// Statements of a short run.
const STATEMENTS: u64 = 600;

/// Its seed.
const SHORT_RUN: u64 = 15;

#[expect(clippy::disallowed_methods, reason = "the environment says which run to replay")]
fn seed_given() -> bool {
    std::env::var("SEED").is_ok()
}

/// A PostgreSQL of the test's own. It ends with its owner.
struct PostgreSql {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl PostgreSql {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = PathBuf::from(format!("/dev/shm/sqlcached-random-{port}"));
        std::fs::create_dir(&folder).unwrap();
        if rustix::process::getuid().is_root() {
            assert!(Command::new("chown").arg("postgres").arg(&folder).status().unwrap().success());
        }
        let mut initdb = unprivileged("initdb");
        initdb.args(["--no-sync", "-A", "trust", "-U", "me", "-E", "UTF8", "--locale=C.UTF-8", "-D"]);
        let made = initdb.arg(folder.join("data")).stdout(Stdio::null()).status().unwrap();
        assert!(made.success(), "initdb, of the package postgresql-15");
        let mut server = unprivileged("postgres");
        server.arg("-D").arg(folder.join("data")).args(["-p", &port.to_string()]).arg("-k").arg(&folder);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "timezone=UTC"]);
        let child = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, port, folder }
    }

    fn connect(&self) -> Session {
        for _ in 0..TRIES {
            let connected = TcpStream::connect(("127.0.0.1", self.port)).ok();
            if let Some(session) = connected.and_then(|stream| Session::begin(stream, b"postgres")) {
                return session;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not answer");
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        // SIGQUIT: at once, with its own children.
        let _ = Command::new("kill").args(["-s", "QUIT", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A program of PostgreSQL, which does not run as root.
fn unprivileged(program: &str) -> Command {
    let path = format!("{PROGRAMS}/{program}");
    if !rustix::process::getuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT"]).arg(path);
    command
}

/// What a statement was answered.
#[derive(Debug, PartialEq)]
enum Answer {
    Failed,
    /// The types of the columns, and the rows as texts.
    Rows(Vec<u32>, Vec<Vec<Option<String>>>),
}

struct Session {
    stream: TcpStream,
}

impl Session {
    /// None where the server does not take it yet.
    fn begin(stream: TcpStream, database: &[u8]) -> Option<Self> {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut session = Self { stream };
        let parameters = [b"user\0me\0database\0", database, b"\0client_encoding\0UTF8\0\0"].concat();
        session.stream.write_all(&packet(3 << 16, &parameters)).ok()?;
        loop {
            match session.message()? {
                (b'Z', _) => return Some(session),
                (b'E', _) => return None,
                _ => {}
            }
        }
    }

    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    fn ask(&mut self, sql: &str) -> Answer {
        self.stream.write_all(&query(sql)).unwrap();
        let (mut types, mut rows, mut failed) = (Vec::new(), Vec::new(), false);
        loop {
            match self.message().expect("the server stays") {
                (b'T', body) => types = types_of(&body),
                (b'D', body) => rows.push(values_of(&body)),
                (b'E', _) => failed = true,
                (b'Z', _) if failed => return Answer::Failed,
                (b'Z', _) => return Answer::Rows(types, rows),
                _ => {}
            }
        }
    }
}

fn types_of(mut body: &[u8]) -> Vec<u32> {
    let mut types = Vec::new();
    body = &body[2..];
    while let Some(end) = body.iter().position(|byte| *byte == 0) {
        let field = &body[end + 1..];
        types.push(u32::from_be_bytes(field[6..10].try_into().unwrap()));
        body = &field[18..];
    }
    types
}

fn values_of(mut body: &[u8]) -> Vec<Option<String>> {
    let mut values = Vec::new();
    body = &body[2..];
    while !body.is_empty() {
        let length = i32::from_be_bytes(body[..4].try_into().unwrap());
        body = &body[4..];
        let Ok(length) = usize::try_from(length) else {
            values.push(None);
            continue;
        };
        values.push(Some(String::from_utf8_lossy(&body[..length]).into_owned()));
        body = &body[length..];
    }
    values
}

/// What an expression is of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Integer,
    Decimal,
    Text,
    Truth,
    Integers,
    Texts,
    Json,
    Moment,
    Date,
}

use Kind::{Date, Decimal, Integer, Integers, Json, Moment, Text, Texts, Truth};

const KINDS: &[Kind] = &[Integer, Decimal, Text, Truth, Integers, Texts, Json, Moment, Date];

const WORDS: &[&str] =
    &["a", "ab", "Ab", "b_c", "100%", "a\\b", "\u{c9}", "\u{e9}", "", "x y", "\u{e9}a", "ABC"];
const PATTERNS: &[&str] = &["a%", "%b%", "_b", "A%", "%\\%%", "a\\\\b", "", "%", "\u{c9}%", "%a_%", "ab"];

impl Kind {
    fn column(self) -> &'static str {
        match self {
            Integer => "d.i",
            Decimal => "d.n",
            Text => "d.s",
            Truth => "d.b",
            Integers => "d.a",
            Texts => "d.t",
            Json => "d.j",
            Moment => "d.at",
            Date => "d.dy",
        }
    }

    /// What may make one of it: `$i` is an expression of integers, and so on; `#i` a literal; `$?` of any plain kind.
    fn forms(self) -> &'static [&'static str] {
        match self {
            Integer => &[
                "($i + $i)",
                "($i - $i)",
                "($i * $i)",
                "length($s)",
                "coalesce($i, #i)",
                "cardinality($a)",
                "abs($i)",
                "($a)[1]",
                "CASE WHEN $b THEN $i ELSE $i END",
                "strpos($s, #s)",
                "array_length($a, 1)",
                "array_position($a, #i)",
                "greatest($i, $i)",
                "($d - $d)",
            ],
            Decimal => &["($n + $n)", "($n - $n)", "($n * $n)", "round($n, 1)", "abs($n)", "($n + $i)"],
            Text => &[
                "upper($s)",
                "lower($s)",
                "($s || $s)",
                "($i)::text",
                "($b)::text",
                "($j)::text",
                "($d)::text",
                "left($s, 2)",
                "replace($s, 'a', #s)",
                "reverse($s)",
                "concat($s, $?)",
                "array_to_string($t, ',')",
                "substr($s, 2)",
                "initcap($s)",
                "split_part($s, 'a', 1)",
                "jsonb_typeof($j)",
            ],
            Truth => &[
                "($i < $i)",
                "($i = $i)",
                "($i <> $i)",
                "($s LIKE #p)",
                "($s ILIKE #p)",
                "($s NOT LIKE #p)",
                "($a @> $a)",
                "($a && $a)",
                "($t && $t)",
                "($j ? 'a')",
                "($j ?| ARRAY['a', 'cc'])",
                "($j ?& ARRAY['a', 'b'])",
                "($j @> $j)",
                "($j = $j)",
                "($s IS NULL)",
                "($i = ANY (#a))",
                "($i IN (SELECT unnest(#a)))",
                "($b AND $b)",
                "(NOT $b)",
                "($n < $n)",
                "($m <= $m)",
                "($s = $s)",
                "(coalesce($s, 'x') LIKE ANY (ARRAY['a%', '_b%']))",
                "EXISTS (SELECT 1 FROM unnest($a) u WHERE u > #i)",
                "($i IS DISTINCT FROM $i)",
            ],
            Integers => &[
                "array_append($a, #i)",
                "array_remove($a, #i)",
                "($a || $a)",
                "($a)[1:2]",
                "array_prepend(#i, $a)",
                "array_replace($a, #i, #i)",
                "ARRAY(SELECT u + 1 FROM unnest($a) u ORDER BY 1)",
            ],
            Texts => &["string_to_array($s, 'a')", "regexp_match($s, '(a)(.)')", "($t || #t)", "($t)[1:1]"],
            Json => &[
                "($j -> 'a')",
                "jsonb_build_object('k', $?, 'a', $j)",
                "jsonb_build_array($?, $j)",
                "to_jsonb($c)",
                "($j || '{\"z\": 1}'::jsonb)",
                "($j #> '{a}')",
                "jsonb_strip_nulls($j)",
            ],
            Moment => &[
                "($m + #v)",
                "($m - #v)",
                "date_trunc('month', $m)",
                "date_trunc('hour', $m)",
                "($d)::timestamp",
            ],
            Date => &["($d + #i)", "($m)::date"],
        }
    }
}

/// The kind that a letter stands for.
fn kind_of(letter: char) -> Kind {
    match letter {
        'i' => Integer,
        'n' => Decimal,
        's' => Text,
        'b' => Truth,
        'a' => Integers,
        't' => Texts,
        'j' => Json,
        'm' => Moment,
        _ => Date,
    }
}

struct World {
    rng: Rng,
}

impl World {
    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.rng.usize(0..from.len())]
    }

    fn one_of(&mut self, kinds: &[Kind]) -> Kind {
        kinds[self.rng.usize(0..kinds.len())]
    }

    fn list(&mut self, letter: char) -> String {
        let items: Vec<String> = (0..self.rng.usize(0..4)).map(|_| self.literal(letter)).collect();
        items.join(", ")
    }

    fn json(&mut self, depth: u32) -> String {
        match self.rng.u32(0..if depth > 0 { 7 } else { 5 }) {
            0 => self.pick(&["0", "1", "-2", "1.50", "2.0", "1e2"]).to_owned(),
            1 => self.pick(&["\"a\"", "\"b\"", "\"x y\"", "\"q\""]).to_owned(),
            2 => "null".to_owned(),
            3 | 4 => self.pick(&["true", "false"]).to_owned(),
            5 => {
                let items: Vec<String> = (0..self.rng.usize(0..4)).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", items.join(", "))
            }
            _ => {
                let members = (0..self.rng.usize(0..4))
                    .map(|_| format!("\"{}\": {}", self.pick(&["a", "b", "cc", "d"]), self.json(depth - 1)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn literal(&mut self, letter: char) -> String {
        match letter {
            'i' => self.pick(&["0", "1", "2", "3", "-1", "7", "10", "100"]).to_owned(),
            'n' => format!("'{}'::numeric", self.pick(&["0", "1.50", "2.25", "-3.10", "100", "0.01"])),
            's' => format!("'{}'", self.pick(WORDS)),
            'p' => format!("'{}'", self.pick(PATTERNS)),
            'b' => self.pick(&["true", "false"]).to_owned(),
            'a' => format!("ARRAY[{}]::int[]", self.list('i')),
            't' => format!("ARRAY[{}]::text[]", self.list('s')),
            'j' => format!("'{}'::jsonb", self.json(2)),
            'm' => {
                let (month, day, hour) = (self.rng.u32(1..13), self.rng.u32(1..29), self.rng.u32(0..24));
                format!("'2024-{month:02}-{day:02} {hour:02}:00:00'::timestamp")
            }
            'v' => {
                format!("interval '{}'", self.pick(&["1 day", "2 hours", "1 month", "90 minutes"]))
            }
            _ => format!("'2024-{:02}-{:02}'::date", self.rng.u32(1..13), self.rng.u32(1..29)),
        }
    }

    fn expression(&mut self, kind: Kind, depth: u32) -> String {
        if depth == 0 || self.rng.u32(0..4) == 0 {
            let letters = "insbatjmd".chars();
            let letter = letters.into_iter().find(|letter| kind_of(*letter) == kind).unwrap_or('d');
            return if self.rng.bool() { kind.column().to_owned() } else { self.literal(letter) };
        }
        let form = self.pick(kind.forms());
        let mut out = String::new();
        let mut letters = form.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, letters.peek().copied()) {
                ('$', Some(of)) if of.is_ascii_lowercase() || of == '?' => {
                    letters.next();
                    let kind = match of {
                        '?' => [Integer, Truth, Text][self.rng.usize(0..3)],
                        // Of a column, for a bare literal is of no type.
                        'c' => {
                            out.push_str(KINDS[self.rng.usize(0..KINDS.len() - 2)].column());
                            continue;
                        }
                        of => kind_of(of),
                    };
                    out.push_str(&self.expression(kind, depth - 1));
                }
                ('#', Some(of)) if of.is_ascii_lowercase() => {
                    letters.next();
                    out.push_str(&self.literal(of));
                }
                _ => out.push(letter),
            }
        }
        out
    }

    fn any(&mut self) -> String {
        let (kind, depth) = (KINDS[self.rng.usize(0..KINDS.len())], self.rng.u32(0..4));
        self.expression(kind, depth)
    }

    fn row(&mut self, id: u32) -> String {
        let values: Vec<String> = "insbatjmd"
            .chars()
            .map(|letter| if self.rng.u32(0..7) == 0 { "NULL".to_owned() } else { self.literal(letter) })
            .collect();
        format!("INSERT INTO d VALUES ({id}, {})", values.join(", "))
    }

    fn query(&mut self) -> String {
        match self.rng.u32(0..10) {
            0..=4 => {
                let (one, other) = (self.any(), self.any());
                let condition = if self.rng.bool() { "true".to_owned() } else { self.expression(Truth, 2) };
                format!("SELECT d.id, {one}, {other} FROM d WHERE {condition} ORDER BY d.id")
            }
            5 => {
                let kind = self.one_of(&[Integers, Texts]);
                let array = self.expression(kind, 2);
                format!("SELECT d.id, u.x, u.n FROM d, unnest({array}) WITH ORDINALITY u(x, n) ORDER BY 1, 3")
            }
            6 => {
                let kind = self.one_of(&[Integer, Text, Truth, Date]);
                let value = self.expression(kind, 2);
                format!(
                    "SELECT d.id, x.v, x.w FROM d CROSS JOIN LATERAL (SELECT {value} AS v, e.s AS w FROM e \
                     WHERE e.d = d.id ORDER BY e.id LIMIT 2) x ORDER BY d.id, x.w NULLS FIRST, x.v NULLS FIRST"
                )
            }
            7 => {
                let last = self.pick(&["d.id % 3", "coalesce(d.i, 2) % 4", "2"]);
                format!("SELECT d.id, g FROM d, generate_series(1, {last}) g ORDER BY 1, 2")
            }
            8 => {
                let kind = self.one_of(&[Truth, Integer]);
                let key = self.expression(kind, 1);
                let (one, other) = (self.expression(Integer, 1), self.expression(Date, 1));
                format!(
                    "SELECT {key} AS k, count(*), count(DISTINCT {one}), min({one}), max({other}) FROM d GROUP BY 1 \
                     ORDER BY 1 NULLS FIRST"
                )
            }
            _ => format!(
                "SELECT x.k, jsonb_typeof(x.v) FROM d, jsonb_each(CASE WHEN jsonb_typeof(d.j) = 'object' THEN d.j END) \
                 x(k, v) WHERE d.id = {} ORDER BY 1",
                self.rng.u32(0..12)
            ),
        }
    }
}

#[test]
fn random_queries_answer_as_postgresql_does() {
    #[expect(clippy::disallowed_methods, reason = "a test may be told how much to do")]
    let asked = std::env::var("STATEMENTS").ok().map(|count| count.parse().expect("a number"));
    let addresses = vec!["127.0.0.1:0".parse().unwrap()];
    let daemon = daemon_with(&Config { sql_addresses: addresses, ..config() });
    let server = PostgreSql::start();
    let mut theirs = server.connect();
    let ours = TcpStream::connect(daemon.server.sql_addresses()[0]).unwrap();
    let mut ours = Session::begin(ours, b"sqlcached").expect("a session");
    // A long run begins anywhere. The short one repeats itself, for a difference may be left.
    let replayed = asked.is_some() || seed_given();
    let mut world = World { rng: Rng::with_seed(if replayed { seed() } else { SHORT_RUN }) };
    let mut setup = vec![
        "CREATE TABLE d (id int PRIMARY KEY, i int, n numeric(8,2), s text, b bool, a int[], t text[], j jsonb, \
         at timestamp, dy date)"
            .to_owned(),
        "CREATE TABLE e (id int PRIMARY KEY, d int, s text)".to_owned(),
    ];
    setup.extend((0..12).map(|id| world.row(id)));
    for id in 0..8 {
        let (of, word) = (world.rng.u32(0..12), world.literal('s'));
        setup.push(format!("INSERT INTO e VALUES ({id}, {of}, {word})"));
    }
    for statement in setup {
        for session in [&mut theirs, &mut ours] {
            assert!(session.ask(&statement) != Answer::Failed, "{statement}");
        }
    }
    for _ in 0..asked.unwrap_or(STATEMENTS) {
        let sql = world.query();
        let (expected, found) = (theirs.ask(&sql), ours.ask(&sql));
        assert!(expected == found, "{sql}\n  PostgreSQL: {expected:?}\n  here:       {found:?}");
    }
}
