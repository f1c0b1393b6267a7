//! What starts the server elsewhere: `ops/compose.yml` and the manifests of Kubernetes. Their schemas are checked, and
//! the program is started with the arguments and files that they give it, then asked as their probes and clients do,
//! from an address that is not loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;
use crate::daemon::{Folder, PROGRAM, free_port, program, run};
use crate::skipped;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// For a program to serve that has just been started, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);
/// The folders that are mounted into the containers.
const MOUNTED: [&str; 3] = ["/run/access", "/run/sqlcached", "/arena"];
/// What compose.yml has from the environment, and the Secret of Kubernetes as it stands.
const PASSWORDS: [(&str, &str); 2] =
    [("CACHE_PASSWORD", "change-me-app"), ("METRICS_PASSWORD", "change-me-metrics")];

/// The program as a container runs it, with the container's folders in one of ours.
struct Container {
    child: Child,
    folder: Folder,
    address: String,
    port: u16,
    sql_port: u16,
    http_port: u16,
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- it said:\n{}", self.said());
        }
    }
}

impl Container {
    fn start(manifest: &Value, address: &str) -> Self {
        let folder = Folder::new();
        let here = |text: &str| {
            MOUNTED.iter().fold(text.to_owned(), |text, place| {
                text.replace(place, &folder.0.join(&place[1..]).display().to_string())
            })
        };
        for place in MOUNTED {
            fs::create_dir_all(folder.0.join(&place[1..])).unwrap();
        }
        for (path, text) in manifest["files"].as_object().unwrap() {
            let file = PathBuf::from(here(path));
            fs::write(&file, text.as_str().unwrap()).unwrap();
            // The mode that both engines are told to give it.
            fs::set_permissions(file, fs::Permissions::from_mode(0o440)).unwrap();
        }
        let arguments =
            manifest["arguments"].as_array().unwrap().iter().map(|flag| here(flag.as_str().unwrap()));
        let (port, sql_port, http_port) = (free_port(), free_port(), free_port());
        let mut command = program();
        // The image's own environment.
        command.env("SQLCACHED_ARENA", "none").env("SQLCACHED_UNIX_SOCKET_PATH", "none");
        command.env("SQLCACHED_SQL_SOCKET_DIR", "none").args(arguments);
        for (flag, port) in [("-p", port), ("--sql-port", sql_port), ("--http-port", http_port)] {
            command.arg(flag).arg(port.to_string());
        }
        let log = |name: &str| fs::File::create(folder.0.join(name)).unwrap();
        let child = command.stdin(Stdio::null()).stdout(log("out")).stderr(log("err")).spawn().unwrap();
        Self { child, folder, address: address.to_owned(), port, sql_port, http_port }
    }

    fn said(&self) -> String {
        ["out", "err"].map(|name| fs::read_to_string(self.folder.0.join(name)).unwrap_or_default()).concat()
    }

    /// The status of an answer to curl, from where other machines are, and its body.
    fn http(&mut self, path: &str, user: &str) -> (String, String) {
        let mut curl = Command::new("curl");
        curl.args(["-s", "--max-time", "5", "-w", "\n%{http_code}", "-u", user]);
        let (_, out, _) = run(curl.arg(format!("http://{}:{}{path}", self.address, self.http_port)));
        assert_eq!(self.child.try_wait().unwrap(), None, "{}", self.said());
        let (body, status) = out.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    }

    fn wait_until_ready(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.http("/readyz", ":").0 != "200" {
            assert!(Instant::now() < end, "{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn psql(&self, password: &str, statement: &str) -> (Option<i32>, String, String) {
        let mut psql = Command::new("psql");
        psql.args(["-h", &self.address, "-p", &self.sql_port.to_string(), "-U", "app", "-wAtXqc", statement]);
        run(psql.env("PGPASSWORD", password))
    }

    fn login(&self, password: &str) -> (Client, String) {
        let mut client = Client::try_at(&self.address, self.port).unwrap();
        let answer = client.set("login", format!("app {password}").as_bytes());
        (client, answer)
    }
}

/// An address of this machine by which another one would reach it.
fn own_address() -> Option<String> {
    let (_, addresses, _) = run(Command::new("hostname").arg("-I"));
    addresses.split_whitespace().find(|address| address.contains('.')).map(ToOwned::to_owned)
}

#[test]
fn the_server_starts_and_serves_as_the_manifests_say() {
    let root = Path::new(ROOT);
    let (python, schema) = (
        root.join("target/drivers/manifests/bin/python"),
        root.join("target/drivers/compose/compose-spec.json"),
    );
    if !python.exists() || !schema.exists() {
        return skipped("the schemas of manifests are not installed; make tools does it");
    }
    let Some(address) = own_address() else {
        return skipped("this machine has no address but loopback, from which probes and clients could come");
    };
    let mut reader = Command::new(python);
    reader.arg(root.join("tests/drivers/manifests/manifests.py")).args([root.join("ops"), schema]);
    let (code, out, error) = run(reader.envs(PASSWORDS));
    assert_eq!(code, Some(0), "{error}");
    let manifests: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(manifests.len(), 3);
    for manifest in &manifests {
        assert_eq!(manifest["image"], format!("sqlcached:{}", env!("CARGO_PKG_VERSION")));
        serves(manifest, &address);
    }
}

fn serves(manifest: &Value, address: &str) {
    let mut container = Container::start(manifest, address);
    container.wait_until_ready();
    for probe in manifest["probes"].as_array().unwrap() {
        assert_eq!(container.http(probe.as_str().unwrap(), ":").0, "200", "{probe}");
    }
    if let [_, flags @ ..] = &manifest["health"].as_array().unwrap()[..] {
        let mut health = Command::new(PROGRAM);
        health.args(flags.iter().map(|flag| flag.as_str().unwrap()));
        let (code, out, error) = run(health.args(["--port", &container.sql_port.to_string()]));
        assert_eq!(code, Some(0), "{out}{error}");
    }
    let metrics = format!("metrics:{}", PASSWORDS[1].1);
    let (status, page) = container.http("/metrics", &metrics);
    assert!(status == "200" && page.contains("sqlcached_info"), "{status} {page}");
    assert_eq!(container.http("/metrics", "metrics:wrong").0, "401");
    by_socket_or_network(manifest, &container);
}

/// Clients come in by a password, or by the socket of the node.
fn by_socket_or_network(manifest: &Value, container: &Container) {
    let socket = container.folder.0.join("run/sqlcached/cache.sock");
    let listens =
        manifest["arguments"].as_array().unwrap().iter().any(|flag| flag == "--listen-addresses=0.0.0.0");
    if !listens {
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o770);
        assert_eq!(Client::unix(&socket).set("k", b"v"), "STORED");
        assert!(container.folder.0.join("arena/rows").exists());
        assert!(Client::try_at(&container.address, container.port).is_err());
        return;
    }
    let (mut client, answer) = container.login(PASSWORDS[0].1);
    assert_eq!(answer, "STORED");
    assert_eq!(client.set("k", b"v"), "STORED");
    assert_eq!(container.login("wrong").1, "CLIENT_ERROR authentication failure");
    let rows = container.psql(PASSWORDS[0].1, "SELECT key, value FROM memcached");
    assert_eq!((rows.0, &*rows.1), (Some(0), "k|v\n"), "{}", rows.2);
    assert_eq!(container.psql("wrong", "SELECT 1").0, Some(2));
}
