//! Caches whose machines are not set up as they should be: they have one name, or clocks that are far apart. Rows are
//! right all the same.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use super::nats::Nats;
use super::{PATIENT, cache, define_at, figure, fill, hear, options, pages};
use crate::client::Client;
use crate::daemon::{Folder, PROGRAM, free_port};
use crate::drivers::place::Place;
use crate::relay::move_clock;
use crate::skipped;
use crate::sources::{psql, until};

/// How far clocks are apart.
const APART_S: u64 = 600;

/// A daemon in a space of processes of its own, where it is number 1, as in a container.
struct Contained {
    child: Child,
    place: Place,
    folder: Folder,
}

impl Contained {
    fn start() -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let in_folder = |name: &str| folder.0.join(name);
        let mut command = contained();
        command.arg(PROGRAM).args(["-p", "0", "--http-port", "0", "--sql-port", &port.to_string()]);
        command.arg("--sql-socket-dir").arg(&folder.0).arg("-s").arg(in_folder("sock"));
        command.arg("--arena").arg(in_folder("arena")).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(File::create(in_folder("err")).unwrap()).spawn().unwrap();
        let sockets = folder.0.clone();
        let place = Place { port, sockets, user: "app", database: "sqlcached", memcached: None };
        let own = Self { child, place, folder };
        until("it serves", || own.folder.0.join(format!(".s.PGSQL.{port}")).exists());
        own
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(self.folder.0.join("err")).unwrap()
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// What runs a program as the first process of its own space, and ends it when it ends.
fn contained() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child"]);
    command
}

/// As containers that were made alike, on machines of one name.
#[test]
fn caches_of_one_name_are_named() {
    if !contained().arg("true").status().is_ok_and(|status| status.success()) {
        return skipped("unshare cannot make a space of processes for a user");
    }
    let nats = Nats::start(&[]);
    let all = [Contained::start(), Contained::start()];
    for one in &all {
        define_at(&one.place, &options(&nats.url(), PATIENT));
    }
    for one in &all {
        let says = |sql: &str| psql(&one.place, sql);
        until("both are warned", || says("SELECT namesakes FROM sqlcached_buses") == "1");
        until("the other one is named", || {
            says("SELECT count(*) FROM sqlcached_nodes WHERE namesake AND NOT own") == "1"
        });
        assert_eq!(says("SELECT count(*), count(DISTINCT name) FROM sqlcached_nodes"), "2|1");
        let printed = one.printed();
        assert_eq!(printed.matches("has the name of this one").count(), 1, "{printed}");
        assert!(printed.contains("give its machine or container a host name of its own"), "{printed}");
    }
    // It harms nothing else.
    let [a, b] = &all;
    psql(&b.place, "INSERT INTO page VALUES (1, 1, 'old'), (2, 1, 'old')");
    psql(&a.place, "DELETE FROM page WHERE id = 1");
    until("it is heard", || psql(&b.place, "SELECT string_agg(id::text, ' ') FROM page") == "2");
    assert_eq!(psql(&a.place, "SELECT breaks FROM sqlcached_buses"), "0");
}

/// A process that takes the place of another one is no namesake of it, and its own is none of another name.
#[test]
fn caches_of_other_names_are_not_warned_of() {
    let nats = Nats::start(&[]);
    let [a, mut b] = [cache(&nats), cache(&nats)];
    b.daemon.kill();
    b.daemon.restart();
    let nodes = "SELECT count(*) FROM sqlcached_nodes";
    until("each process is seen", || psql(&a.place, nodes) == "3");
    hear(&a, &b);
    assert_eq!((figure(&a, "namesakes"), figure(&b, "namesakes")), (0, 0));
}

/// A clock that is ten minutes ahead of the others', from the start or from now on: all is as if they were alike.
#[test]
fn clocks_that_are_apart_change_nothing() {
    let nats = Nats::start(&[]);
    let [a, mut b] = [cache(&nats), cache(&nats)];
    move_clock(&b.daemon, APART_S);
    // Its own clock has jumped, so for one heartbeat it does not know how fresh it is.
    until("it is fresh", || psql(&b.place, "SELECT lag_ms < 60000 FROM sqlcached_buses") == "t");
    let mut clients: [Client; 2] = [fill(&a), fill(&b)];
    assert_eq!(clients[0].ask("delete page:1"), "DELETED");
    hear(&a, &b);
    assert_eq!(pages(&b), "2 3 4 5 6 7 8 9 10");
    assert_eq!(clients[1].ask("delete page:2"), "DELETED");
    hear(&b, &a);
    assert_eq!(pages(&a), "3 4 5 6 7 8 9 10");
    super::until_noted(&b);
    b.daemon.kill();
    assert_eq!(clients[0].ask("delete page:3"), "DELETED");
    b.daemon.restart();
    move_clock(&b.daemon, APART_S);
    hear(&a, &b);
    assert_eq!(pages(&b), "4 5 6 7 8 9 10");
    assert_eq!(figure(&a, "breaks") + figure(&b, "breaks"), 0);
    assert_eq!(psql(&a.place, "SELECT lag_ms < 60000 FROM sqlcached_buses"), "t");
}
