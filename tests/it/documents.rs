//! The commands in the documents work as they stand.
//!
//! Every block fenced as `sh` in README.md and docs/ is run, in the order of its file, against a daemon of the file's
//! own; where a block fenced as `text` follows at once, it is the output. Blocks that build or serve are fenced as
//! `console` and are not run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::daemon::{Daemon, PROGRAM, free_port, run};
use crate::drivers::mariadb::MariaDb;
use crate::drivers::postgresql::PostgreSql;

/// The ports that documents name, for memcached, PostgreSQL and HTTP clients; the test's daemon has others.
const PORT: &str = "11211";
const SQL_PORT: &str = "5433";
const HTTP_PORT: &str = "11280";

/// The ports of the databases behind the cache, which are real ones.
const SOURCE_PORT: &str = "5432";
const MARIADB_PORT: &str = "3306";

/// A command and the output that the document promises.
#[derive(Clone)]
struct Block {
    line: usize,
    script: String,
    output: Option<String>,
}

#[test]
fn commands_in_the_documents_work() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("ARCHITECTURE.md")];
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    files.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    let mut count = 0;
    for file in files.iter().filter(|file| file.exists()) {
        let blocks = blocks(&fs::read_to_string(file).unwrap());
        if !blocks.is_empty() {
            count += blocks.len();
            check(file, &blocks);
        }
    }
    println!("{count} blocks");
    assert!(count > 0);
}

/// So often is looked again at what a document waits for, so long one after the other.
const LOOKS: usize = 200;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

fn check(file: &Path, blocks: &[Block]) {
    let sql_port = free_port().to_string();
    let http_port = free_port().to_string();
    let daemon =
        Daemon::start(&["--sql-port", &sql_port, "--sql-socket-dir", "none", "--http-port", &http_port]);
    let path = format!(
        "{}:{}",
        Path::new(PROGRAM).parent().unwrap().display(),
        std::env::var_os("PATH").unwrap_or_default().to_string_lossy()
    );
    daemon.wait_until_ready();
    let ports = (daemon.port, &*sql_port);
    let source = blocks.iter().any(|block| block.script.contains(SOURCE_PORT));
    let source = source.then(|| PostgreSql::start_with(&["wal_level=logical"]));
    let source_port = source.as_ref().map_or_else(String::new, |source| source.place.port.to_string());
    let mariadb = blocks.iter().any(|block| block.script.contains(MARIADB_PORT)).then(|| MariaDb::start(&[]));
    let mariadb_port = mariadb.as_ref().map_or_else(String::new, |mariadb| mariadb.port.to_string());
    let own = |script: &str| {
        let script = script.replace(HTTP_PORT, &http_port).replace(SOURCE_PORT, &source_port);
        script.replace(MARIADB_PORT, &mariadb_port)
    };
    let blocks: Vec<Block> =
        blocks.iter().map(|block| Block { script: own(&block.script), ..block.clone() }).collect();
    run_blocks(file, &blocks, ports, |command| command.env("PATH", &path).current_dir(&daemon.folder.0));
}

/// Runs the commands of a document beside a program that has another environment than ours.
pub(crate) fn run_document(
    file: &Path,
    ports: (u16, &str),
    prepare: impl Fn(&mut Command) -> &mut Command,
) -> usize {
    let blocks = blocks(&fs::read_to_string(file).unwrap());
    run_blocks(file, &blocks, ports, prepare);
    blocks.len()
}

/// Runs blocks in their order, at a daemon with these ports for memcached's and PostgreSQL's clients.
fn run_blocks(
    file: &Path,
    blocks: &[Block],
    (port, sql_port): (u16, &str),
    prepare: impl Fn(&mut Command) -> &mut Command,
) {
    for block in blocks {
        let script = block.script.replace(PORT, &port.to_string()).replace(SQL_PORT, sql_port);
        let place = format!("{}:{}", file.display(), block.line);
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            let (code, out, error) = run(prepare(command.args(["-ec", script])));
            assert_eq!(code, Some(0), "{place}\n{out}{error}");
            out.replace('\r', "").replace(&port.to_string(), PORT)
        };
        let (first, last) = at_last_sleep(&script);
        let begin = shell(first);
        let mut out = format!("{begin}{}", shell(last));
        let Some(expected) = &block.output else { continue };
        for _ in 0..LOOKS {
            if first.is_empty() || out.trim_end() == expected.trim_end() {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
            out = format!("{begin}{}", shell(last));
        }
        assert_eq!(out.trim_end(), expected.trim_end(), "{place}");
    }
}

/// A script in two: up to the last line that waits, and behind it. A reader waits two seconds and then looks; a busy
/// machine may need longer, so what comes last is done again until it says what it should.
fn at_last_sleep(script: &str) -> (&str, &str) {
    let sleep = script.rfind("\nsleep ");
    let end = sleep.and_then(|at| script[at + 1..].find('\n').map(|length| at + 1 + length + 1));
    script.split_at(end.unwrap_or(0))
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut follows = false;
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.trim_start().strip_prefix("```") else {
            follows &= line.trim().is_empty();
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim_start() != "```");
        // A block of a list is indented as its item is, and a reader sees it without.
        let indent = line.len() - line.trim_start().len();
        let blanks = |line: &str| line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
        let body: String = body.flat_map(|line| [&line[blanks(line)..], "\n"]).collect();
        match (kind, found.last_mut()) {
            ("sh", _) => found.push(Block { line: number + 1, script: body, output: None }),
            ("text", Some(last)) if follows => last.output = Some(body),
            _ => {}
        }
        follows = kind == "sh";
    }
    found
}

#[test]
fn scripts_are_cut_at_their_last_sleep() {
    assert_eq!(at_last_sleep("a\nsleep 1\nb\nsleep 2\nc\nd"), ("a\nsleep 1\nb\nsleep 2\n", "c\nd"));
    assert_eq!(at_last_sleep("a\nb"), ("", "a\nb"));
    assert_eq!(at_last_sleep("a\nsleep 1"), ("", "a\nsleep 1"));
}

#[test]
fn blocks_are_found() {
    let text = "a\n```sh\necho 1\n```\n\n```text\n1\n```\nb\n```text\nno\n```\n```sh\necho 2\n```\nwords\n```text\nno\n```\n";
    let found = blocks(text);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].line, found[0].output.as_deref()), (2, Some("1\n")));
    assert_eq!(found[1].output, None);
    let listed = blocks("1. a\n\n   ```sh\n   cat <<E\n    b\n   E\n   ```\n");
    assert_eq!(listed[0].script, "cat <<E\n b\nE\n");
}
