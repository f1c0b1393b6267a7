//! The guides of `docs/guides`: each is followed in an empty folder, with nothing of our environment, at a daemon of
//! its own, and prints what it promises.
//!
//! | Block | What the test does with it |
//! |---|---|
//! | `sh` | runs it |
//! | `sql` | sends it to the cache with psql |
//! | `text` behind one of these | compares it with what was printed |
//! | any other language | writes it to the file that its first line names: `# a.py`, `// a.js`, `<?php // a.php` |
//! | `console` | nothing: what installs and serves is not run |

mod restarts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::client::Client;
use crate::daemon::{Daemon, Folder, PROGRAM, free_port, run};
use crate::drivers::postgresql::PostgreSql;
use crate::{seed, skipped};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The ports that guides name, for memcached, PostgreSQL and HTTP clients, and for the main database. Then those of a
/// bus and of three caches that a guide starts itself.
const PORTS: [&str; 11] =
    ["11211", "5433", "11280", "5432", "4222", "11221", "11222", "11223", "5441", "5442", "5443"];

/// Packages that guides install with pip, Composer and npm, as `cargo xtask tools` fetched them.
const PROGRAMS: [&str; 2] = ["target/drivers/python/bin", "target/drivers/nats/bin"];
const PHP_PACKAGES: &str = "clients/php/tests/guides";
const MODULES: [&str; 3] = [
    "target/drivers/memjs/node_modules",
    "target/drivers/node/node_modules",
    "target/drivers/clients-node-cache/node_modules",
];

/// What a block of commands may take: the longest, a build by Maven, takes half a minute of a processor that others
/// use, too.
const SHELL_SECONDS: &str = "600";

/// Our own package of Node, by the name that programs ask for.
const OWN_MODULE: (&str, &str) = ("sqlcached", "clients/node-cache");

/// A fenced block: where it begins, whether it follows another at once, its language, its text.
#[derive(Debug, PartialEq, Eq)]
struct Fence {
    line: usize,
    follows: bool,
    language: String,
    text: String,
}

/// Where a guide is followed, and with which ports for [`PORTS`].
struct Place {
    folder: Folder,
    ports: [String; PORTS.len()],
}

fn fences(text: &str) -> Vec<Fence> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut follows = false;
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            follows &= line.trim().is_empty();
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let text: String = body.flat_map(|line| [line, "\n"]).collect();
        found.push(Fence { line: number + 1, follows, language: language.to_owned(), text });
        follows = true;
    }
    found
}

/// The file that the first line of a block names.
fn named(text: &str) -> Option<&str> {
    let first = text.lines().next()?;
    let marks = [("# ", ""), ("// ", ""), ("<?php // ", ""), ("<!-- ", " -->")];
    let name = marks.iter().find_map(|(begin, end)| first.strip_prefix(begin)?.strip_suffix(end))?;
    (!name.contains([' ', '/']) && name.contains('.')).then_some(name)
}

impl Place {
    /// A text of the guide with the ports of this place.
    fn here(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        // In one go: the digits of a port that was put in may be those of another one.
        while let Some((at, which)) =
            (0..PORTS.len()).filter_map(|it| Some((rest.find(PORTS[it])?, it))).min()
        {
            out += &rest[..at];
            out += &self.ports[which];
            rest = &rest[at + PORTS[which].len()..];
        }
        out + rest
    }

    /// A folder of modules in which our package is found by its name.
    fn own_modules(&self, root: &Path) -> PathBuf {
        let (name, source) = OWN_MODULE;
        let modules = self.folder.0.join("modules");
        let package = modules.join(name);
        if !package.exists() {
            fs::create_dir_all(package.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(root.join(source), package).unwrap();
        }
        modules
    }

    /// Commands of the shell. Where one waits for ever, it is ended with all that it started, and the test fails.
    fn shell(&self, text: &str) -> Command {
        let mut command = self.command("timeout", &[SHELL_SECONDS, "sh", "-ec", text]);
        if text.contains("mvn ") {
            // Java takes the home of the machine's user, whatever HOME says.
            let home = crate::languages::java_quarkus::home();
            command.env("MAVEN_OPTS", format!("-Duser.home={}", home.display()));
        }
        command
    }

    /// A program that knows nothing but this place.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let root = Path::new(ROOT).canonicalize().unwrap();
        let own = Path::new(PROGRAM).parent().unwrap().to_path_buf();
        let [first, second] = PROGRAMS.map(|programs| root.join(programs));
        let folders = [own, first, second, PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
        command.args(arguments).env_clear().current_dir(&self.folder.0).env("HOME", &self.folder.0);
        command
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("PGUSER", "app")
            .env("LANG", "C.UTF-8");
        let modules = MODULES.iter().map(|modules| root.join(modules)).chain([self.own_modules(&root)]);
        command.env("NODE_PATH", std::env::join_paths(modules).unwrap());
        command.env("SQLCACHED_ARENA", "none").env("TMPDIR", &self.folder.0);
        // The jars that a project of Maven would have.
        command.env("CLASSPATH", crate::languages::java::hibernate());
        command.env("SPRING", crate::languages::java::spring());
        command.env("MICRONAUT", crate::languages::java::micronaut());
        command.env("RUBYLIB", root.join("clients/ruby/lib"));
        // What Composer would install is found on the path of includes. The colon stands for PHP's own settings.
        let php = root.join(PHP_PACKAGES);
        command.env("SQLCACHED_PHP_GUIDES", &php).env("PHP_INI_SCAN_DIR", format!(":{}", php.display()));
        command
    }

    /// Does what a block says. What it printed, if it is run.
    fn follow(&self, fence: &Fence, place: &str) -> Option<String> {
        let text = self.here(&fence.text);
        let mut command = match &*fence.language {
            "sh" => self.shell(&text),
            "sql" => {
                let psql = ["-X", "-q", "-h", "127.0.0.1", "-p", &self.ports[1], "-v", "ON_ERROR_STOP=1"];
                let file = self.folder.write("statements.sql", &text);
                let mut command = self.command("psql", &psql);
                command.arg("-f").arg(file);
                command
            }
            "text" | "console" => return None,
            _ => {
                let name = named(&text).unwrap_or_else(|| panic!("{place}: the block names no file"));
                fs::write(self.folder.0.join(name), &text).unwrap();
                return None;
            }
        };
        let (code, out, error) = run(&mut command);
        assert_eq!(code, Some(0), "{place}\n{out}{error}{}", self.logs());
        Some(out.replace('\r', ""))
    }

    /// What the servers of the guide said.
    fn logs(&self) -> String {
        let files = fs::read_dir(&self.folder.0).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|end| end == "log"));
        let said =
            |path: PathBuf| format!("{}:\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default());
        logs.map(said).collect()
    }
}

fn guide(name: &str) -> (PathBuf, String) {
    let path = Path::new(ROOT).join("docs/guides").join(name);
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Where a guide is followed, with the servers that it names.
fn start(text: &str) -> (Place, Daemon, Option<PostgreSql>) {
    let (sql, http) = (free_port().to_string(), free_port().to_string());
    let daemon = Daemon::start(&["--sql-port", &sql, "--sql-socket-dir", "none", "--http-port", &http]);
    daemon.wait_until_ready();
    let main = text.contains("5432").then(|| PostgreSql::start_with(&["wal_level=logical"]));
    let main_port = main.as_ref().map_or_else(String::new, |main| main.place.port.to_string());
    let given = [daemon.port.to_string(), sql, http, main_port];
    let ports = std::array::from_fn(|at| given.get(at).cloned().unwrap_or_else(|| free_port().to_string()));
    let place = Place { folder: Folder::new(), ports };
    (place, daemon, main)
}

/// The escape that sets the colours of a terminal back.
const COLOURS_BACK: &str = "\u{1b}[0m";

/// Follows a guide from its first line to its last, at these servers. How many blocks were run.
fn walk(place: &Place, path: &Path, text: &str) -> usize {
    let (mut count, mut printed) = (0, None);
    for fence in fences(text) {
        let at = format!("{}:{}", path.display(), fence.line);
        if let ("text", true, Some(printed)) = (&*fence.language, fence.follows, printed.take()) {
            let printed: String = printed;
            // Maven ends with what sets a terminal's colours back, and a terminal does not show.
            let printed = printed.replace(COLOURS_BACK, "");
            assert_eq!(printed.trim_end(), place.here(&fence.text).trim_end(), "{at}");
        }
        printed = place.follow(&fence, &at);
        count += usize::from(printed.is_some());
    }
    count
}

/// Follows a guide at servers of its own. There must be so many blocks that are run.
fn follow(name: &str, least: usize) -> (Place, Daemon) {
    let (path, text) = guide(name);
    let (place, daemon, _main) = start(&text);
    let count = walk(&place, &path, &text);
    assert!(count >= least, "{count} blocks of {} were run", path.display());
    (place, daemon)
}

/// The names of all guides.
fn all() -> Vec<String> {
    let guides = fs::read_dir(Path::new(ROOT).join("docs/guides")).unwrap();
    let mut names: Vec<String> =
        guides.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Somebody who has tried the README and one guide tries the next one at the same server. It failed with `table "frag"
/// already exists`, or printed something else.
#[test]
fn guides_follow_each_other_in_any_order() {
    let mut names = all();
    fastrand::Rng::with_seed(seed()).shuffle(&mut names);
    let (mut place, _daemon, _main) = start("5432");
    let readme = Path::new(ROOT).join("README.md");
    walk(&place, &readme, &fs::read_to_string(&readme).unwrap());
    for name in names {
        println!("{name}");
        place.folder = Folder::new();
        let (path, text) = guide(&name);
        walk(&place, &path, &text);
    }
}

#[test]
fn invalidate_correctly() {
    follow("invalidate.md", 11);
}

#[test]
fn design_your_keys_and_tables() {
    follow("keys.md", 11);
}

#[test]
fn start_with_django() {
    follow("django.md", 2);
}

#[test]
fn start_with_php() {
    follow("php.md", 7);
}

#[test]
fn start_with_symfony() {
    follow("symfony.md", 3);
}

#[test]
fn start_with_laravel() {
    follow("laravel.md", 4);
}

#[test]
fn start_with_wordpress() {
    follow("wordpress.md", 3);
}

#[test]
fn what_fits_drupal() {
    follow("drupal.md", 2);
}

#[test]
fn start_with_node() {
    follow("node.md", 6);
}

#[test]
fn start_with_java() {
    follow("java.md", 4);
}

#[test]
fn hibernate_s_second_level_cache() {
    follow("hibernate.md", 3);
}

#[test]
fn caches_of_micronaut() {
    follow("micronaut.md", 1);
}

#[test]
fn a_cache_of_quarkus() {
    follow("quarkus.md", 1);
}

#[test]
fn caches_and_sessions_of_spring() {
    follow("spring.md", 2);
}

#[test]
fn start_with_rails() {
    follow("rails.md", 5);
}

#[test]
fn from_memcached() {
    follow("from-memcached.md", 4);
}

/// A Redis of the test's own.
struct Redis {
    child: Child,
    port: String,
}

impl Redis {
    /// None where Redis is not installed.
    fn start(folder: &Path) -> Option<Self> {
        let port = free_port().to_string();
        let mut server = Command::new("redis-server");
        server.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]).current_dir(folder);
        let redis = Self { child: server.stdout(Stdio::null()).spawn().ok()?, port };
        let mut tries = 0..2_000;
        while redis.answer("PING") != "PONG\n" {
            tries.next().expect("redis-server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(redis)
    }

    fn answer(&self, code: &str) -> String {
        run(Command::new("redis-cli").args(["-p", &self.port]).args(code.split(' '))).1
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands as code in a cell of a table.
fn codes(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Statements whose answer is to be that of Redis: those that read or return, but for figures of the server itself.
fn is_compared(ours: &[&str]) -> bool {
    let own = ["sqlcached_tables", "_hits", "INTO lock", "INTO hit"];
    matches!(ours, [one] if (one.starts_with("SELECT") || one.contains("RETURNING")) && !own.iter().any(|word| one.contains(word)))
}

/// Its table, too: each statement runs, each command of memcached's is answered without an error, and where both sides
/// answer with data these are the same.
#[test]
fn from_redis() {
    let (place, daemon) = follow("from-redis.md", 1);
    let mut client = daemon.connect_tcp();
    let redis = Redis::start(&place.folder.0);
    let (_, text) = guide("from-redis.md");
    let lines = text.lines().skip_while(|line| *line != "| Redis | sqlcached |").skip(2);
    let (mut tried, mut compared) = (0, 0);
    for line in lines.take_while(|line| line.starts_with('|')) {
        let (theirs, ours) = line.split_once(" | ").unwrap();
        let (theirs, ours) = (codes(theirs), codes(ours));
        let said: Vec<String> = ours.iter().map(|code| answered(&place, &mut client, code)).collect();
        tried += said.len();
        // Who subscribes waits for ever.
        let theirs = theirs.iter().filter(|code| !code.starts_with("SUBSCRIBE"));
        let expected: String =
            redis.iter().flat_map(|redis| theirs.clone().map(|code| redis.answer(code))).collect();
        if redis.is_some() && is_compared(&ours) {
            let said = said[0].replace('|', "\n");
            assert!(is_same(said.trim(), expected.trim(), ours[0]), "{line}: {said}, Redis: {expected}");
            compared += 1;
        }
    }
    assert!(tried >= 40, "{tried} lines of the table were tried");
    match redis {
        Some(_) => assert!(compared >= 9, "{compared} answers were compared"),
        None => skipped("redis-server is not installed; make tools does it"),
    }
}

/// What the cache answers to a statement or to a command of memcached's, without an error.
/// Whether two answers are the same; of seconds that are left, one may have asked a little later.
fn is_same(ours: &str, theirs: &str, statement: &str) -> bool {
    let seconds = |text: &str| text.parse::<i64>().ok();
    match (seconds(ours), seconds(theirs)) {
        (Some(ours), Some(theirs)) if statement.contains("_ttl") => (ours - theirs).abs() <= 10,
        _ => ours == theirs,
    }
}

fn answered(place: &Place, client: &mut Client, code: &str) -> String {
    if code.starts_with(char::is_uppercase) {
        let psql = ["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", &place.ports[1], "-c", code];
        let (status, out, error) = run(&mut place.command("psql", &psql));
        assert_eq!(status, Some(0), "{code}: {error}");
        return out;
    }
    client.send(spoken(code).as_bytes());
    let answer: Vec<String> =
        std::iter::repeat_with(|| client.line()).take_while(|line| line != "MN").collect();
    assert!(!answer.is_empty() && !answer.concat().contains("ERROR"), "{code}: {answer:?}");
    answer.concat()
}

/// A command of memcached's as it is sent: with a value, where it stores one, and a mark where its answer ends.
fn spoken(code: &str) -> String {
    let stores = ["set ", "add ", "append "].iter().any(|verb| code.starts_with(verb));
    let bytes = code.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let value = if stores { format!("{}\r\n", "7".repeat(bytes)) } else { String::new() };
    format!("{code}\r\n{value}mn\r\n")
}

/// It starts NATS and three caches, and ends them.
#[test]
fn three_caches_in_ten_minutes() {
    follow("cluster.md", 9);
}

/// It prepares the database, starts two caches, and ends them.
#[test]
fn two_caches_on_your_postgresql() {
    follow("cluster-postgresql.md", 8);
}

#[test]
fn in_front_of_django_s_database() {
    follow("forwarding.md", 5);
}

#[test]
fn operate_it() {
    follow("operate.md", 5);
}

/// Each of its ten symptoms is brought about and looked at.
#[test]
fn at_three_in_the_morning() {
    follow("night.md", 12);
}

/// Prometheus understands the rules, and each alert is on the page that says what to do.
#[test]
fn alerts_are_rules_and_explained() {
    let path = Path::new(ROOT).join("ops/alerts.yml");
    let (code, out, error) = run(Command::new("promtool").args(["check", "rules"]).arg(&path));
    assert_eq!(code, Some(0), "promtool, of the package prometheus\n{out}{error}");
    let (rules, (_, page)) = (fs::read_to_string(path).unwrap(), guide("operate.md"));
    let names: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("\n| {name} | ")), "{name} is not on the page");
    }
}

/// Every metric that a rule asks for is one of the daemon's.
#[test]
fn alerts_ask_for_metrics_that_exist() {
    let rules = fs::read_to_string(Path::new(ROOT).join("ops/alerts.yml")).unwrap();
    let table = fs::read_to_string(Path::new(ROOT).join("docs/operations.md")).unwrap();
    let word = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let metrics: Vec<&str> =
        rules.split(|letter| !word(letter)).filter(|name| name.starts_with("sqlcached_")).collect();
    assert!(metrics.len() >= 8, "{metrics:?}");
    for name in metrics {
        assert!(table.contains(&format!("| `{name}` |")), "{name} is no metric");
    }
}

/// No guide is left out of the tests.
#[test]
fn every_guide_is_followed() {
    let tests = include_str!("mod.rs");
    for name in all() {
        assert!(tests.contains(&format!("follow(\"{name}\", ")), "{name} has no test");
    }
}

#[test]
fn blocks_have_languages_and_names() {
    let found = fences("a\n```sh\nls\n```\n\n```text\nb\n```\nc\n```js\n// a.js\n```\n");
    let seen: Vec<_> = found.iter().map(|fence| (fence.line, fence.follows, &*fence.language)).collect();
    assert_eq!(seen, [(2, false, "sh"), (6, true, "text"), (10, false, "js")]);
    assert_eq!(named(&found[2].text), Some("a.js"));
    assert_eq!(named("<?php // b.php\nx"), Some("b.php"));
    assert_eq!((named("# a comment\n"), named("x = 1\n"), named("")), (None, None, None));
}
