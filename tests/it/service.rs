//! Under a service manager: what the daemon tells it, and the unit of the Debian package.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::daemon::{Folder, free_port, program};
use crate::skipped;

const ALIVE: &str = "WATCHDOG=1\n";

/// A period in which it is said twice.
const WATCHDOG_USEC: &str = "200000";

const PATIENCE: Duration = Duration::from_secs(20);

/// What `systemd-analyze security` may say of the unit at most, in tenths; memcached's has 48, redis's 12.
const EXPOSURE_MAX: u32 = 12;

/// systemd's end of the socket that `NOTIFY_SOCKET` names.
struct Manager(UnixDatagram);

impl Manager {
    /// The next message that is none of the watchdog's, and none about sockets.
    fn hears(&self) -> String {
        let is_other = |said: &String| said != ALIVE && !said.starts_with("FDSTORE");
        std::iter::repeat_with(|| self.next()).find(is_other).unwrap()
    }

    fn next(&self) -> String {
        let mut buffer = [0; 4_096];
        let length = self.0.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

#[test]
fn the_service_manager_is_told() {
    let folder = Folder::new();
    let manager = Manager(UnixDatagram::bind(folder.0.join("notify")).unwrap());
    manager.0.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = program();
    command.env("NOTIFY_SOCKET", folder.0.join("notify")).env("WATCHDOG_USEC", WATCHDOG_USEC);
    command.arg("-p").arg(free_port().to_string()).arg("-s").arg(folder.0.join("sock"));
    command.arg("--arena").arg(folder.0.join("arena"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let signal =
        |name: &str| Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    // First it has those sockets kept that it listens on, at two places at least.
    let kept: Vec<String> = std::iter::repeat_with(|| manager.next()).take(2).collect();
    assert!(kept.iter().all(|said| said.starts_with("FDSTORE=1\nFDNAME=listener")), "{kept:?}");
    assert_eq!(manager.hears(), "READY=1\nSTATUS=serving\n");
    // Who was told so finds it serving.
    std::os::unix::net::UnixStream::connect(folder.0.join("sock")).unwrap();
    // It goes on saying that it works.
    for _ in 0..3 {
        assert_eq!(manager.next(), ALIVE);
    }
    signal("HUP");
    let said = manager.hears();
    assert!(said.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{said}");
    assert_eq!(manager.hears(), "READY=1\nSTATUS=serving\n");
    signal("TERM");
    let said = manager.hears();
    assert!(said.starts_with("STOPPING=1\n"), "{said}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_unit_exposes_little() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/debian/sqlcached.service");
    let Ok(said) = Command::new("systemd-analyze").args(["security", "--offline=true", unit]).output() else {
        return skipped("systemd-analyze is not installed");
    };
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let level = said.rsplit("exposure level for").next().and_then(|rest| rest.split(' ').nth(2)).unwrap();
    let tenths: u32 = level.replace('.', "").parse().unwrap_or_else(|_| panic!("{said}"));
    assert!(tenths <= EXPOSURE_MAX, "{said}");
    // These delete the arena at a stop, or hide who a client of the Unix socket is.
    let unit = std::fs::read_to_string(unit).unwrap();
    for line in ["RemoveIPC=yes", "DynamicUser=yes", "PrivateUsers=yes"] {
        assert!(!unit.contains(line), "{line}");
    }
}
