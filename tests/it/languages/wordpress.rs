//! A real WordPress with the drop-in `object-cache.php`, over a MariaDB: each command is a request of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{client, fetched, succeed};
use crate::daemon::free_port;
use crate::drivers::mariadb::MariaDb;
use crate::drivers::place::SqlDaemon;
use crate::sources::psql;

/// Until PHP's web server answers: milliseconds, and more on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

struct WordPress {
    daemon: SqlDaemon,
    database: MariaDb,
    site: PathBuf,
    port: u16,
}

impl WordPress {
    /// Puts one into a folder of the test's own, and asks for nothing yet.
    fn new() -> Self {
        let (daemon, database) = (SqlDaemon::start(&[]), MariaDb::start(&[]));
        database.ask("CREATE DATABASE wp; CREATE USER wp IDENTIFIED BY 'wp'; GRANT ALL ON wp.* TO wp");
        let site = daemon.daemon.folder.0.join("site");
        let copy = |from: PathBuf, to: &str| {
            succeed(Command::new("cp").arg("-rP").arg(from).arg(site.join(to)));
        };
        copy(fetched("wordpress/usr/share/wordpress"), "");
        copy(client("php/wordpress/object-cache.php"), "wp-content");
        copy(client("php/tests/wordpress/wp-config.php"), "");
        copy(client("php/tests/wordpress/theme"), "wp-content/themes/plain");
        Self { daemon, database, site, port: free_port() }
    }

    fn php(&self) -> Command {
        let mut php = Command::new("php");
        php.args(["-d", "display_errors=0", "-d", "log_errors=1"]);
        php.env("WORDPRESS", &self.site).env("WORDPRESS_URL", format!("http://127.0.0.1:{}", self.port));
        php.env("WORDPRESS_DATABASE", self.database.port.to_string()).env("WORDPRESS_PACKAGE", client("php"));
        php.env("SQLCACHED_PORT", self.daemon.daemon.port.to_string())
            .env("TMPDIR", &self.daemon.daemon.folder.0);
        php
    }

    /// What a step of `run.php` prints.
    fn run(&self, arguments: &[&str]) -> String {
        let mut php = self.php();
        php.arg(client("php/tests/wordpress/run.php")).args(arguments);
        succeed(&php).0.trim_end().to_owned()
    }

    fn serve(&self) -> Served {
        let mut php = self.php();
        php.args(["-S", &format!("127.0.0.1:{}", self.port), "-t"]).arg(&self.site);
        let child = php.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let served = Served { child, port: self.port };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "PHP's web server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        served
    }

    fn rows(&self) -> usize {
        psql(&self.daemon.place, "SELECT count(*) FROM wordpress").parse().unwrap()
    }
}

struct Served {
    child: Child,
    port: u16,
}

impl Served {
    /// The first page.
    fn page(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET / HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.0 200 "), "{answer}");
        body.trim_end().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// A page is made of the cache alone, and shows what was changed by other requests.
#[test]
fn wordpress_with_the_drop_in() {
    let mut wordpress = WordPress::new();
    let id = wordpress.run(&["install"]);
    let read = |wordpress: &WordPress| wordpress.run(&["read", &id]);
    assert!(read(&wordpress).starts_with("Lamp new "));
    assert_eq!(read(&wordpress), "Lamp new 0");
    wordpress.run(&["rename", &id, "Chair"]);
    wordpress.run(&["mark", &id, "sold"]);
    assert!(read(&wordpress).starts_with("Chair sold "));
    assert_eq!(read(&wordpress), "Chair sold 0");

    assert_eq!(wordpress.run(&["see", "colour"]), "none");
    wordpress.run(&["option", "colour", "red"]);
    assert_eq!(wordpress.run(&["see", "colour"]), "red");
    assert_eq!(wordpress.run(&["remember", "recalled", "a value"]), "true");
    assert_eq!(wordpress.run(&["recall", "recalled"]), "a value");
    assert_eq!(wordpress.run(&["transients"]), "0", "transients in the database");
    assert_eq!(wordpress.run(&["log in", "wrong"]), "no");
    assert_eq!(wordpress.run(&["log in", "lamp oil"]), "ann");

    let site = wordpress.serve();
    assert!(site.page().starts_with("<h1>Chair</h1><p>sold</p>"));
    assert_eq!(site.page(), "<h1>Chair</h1><p>sold</p>\n<i>0</i>");
    wordpress.run(&["rename", &id, "Sofa"]);
    assert!(site.page().starts_with("<h1>Sofa</h1>"));
    assert_eq!(site.page(), "<h1>Sofa</h1><p>sold</p>\n<i>0</i>");

    // Without the cache it works, and what was changed meanwhile is not old when the cache is back with its rows.
    wordpress.daemon.daemon.kill();
    assert!(site.page().starts_with("<h1>Sofa</h1><p>sold</p>"));
    wordpress.run(&["rename", &id, "Bench"]);
    assert!(site.page().starts_with("<h1>Bench</h1>"));
    wordpress.daemon.daemon.restart();
    assert!(site.page().starts_with("<h1>Bench</h1>"));
    let end = Instant::now() + PATIENCE;
    while !site.page().ends_with("<i>0</i>") {
        assert!(Instant::now() < end, "the cache is not used again");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(site.page().starts_with("<h1>Bench</h1>"));

    assert!(wordpress.rows() > 20);
    assert_eq!(wordpress.run(&["flush"]), "true");
    assert!(site.page().starts_with("<h1>Bench</h1>"));
}
