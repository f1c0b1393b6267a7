//! A standby that holds commits back.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::daemon::signal;
use crate::forwarding::Shop;
use crate::sources::{psql, until};

/// A standby that confirms commits, and stalls now and then. Commits wait for it: their changes were streamed before.
pub(super) struct Standby {
    child: Child,
}

impl Standby {
    /// `beside`: another one that confirms commits, too.
    pub(super) fn of(shop: &Shop, beside: Option<&str>) -> Self {
        let folder = shop.daemon.daemon.folder.0.join("standby");
        std::fs::create_dir_all(&folder).unwrap();
        let mut receiver: Command = shop.direct.program("pg_receivewal");
        receiver.env("PGAPPNAME", "slow").arg("-D").arg(&folder).args(["--synchronous"]);
        receiver.env_remove("PGDATABASE").stdout(Stdio::null()).stderr(Stdio::null());
        let child = receiver.spawn().unwrap();
        until("the standby follows", || {
            psql(&shop.direct, "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'slow'")
                == "1"
        });
        shop.set_standbys(&beside.map_or_else(|| "slow".to_owned(), |beside| format!("2 (slow, {beside})")));
        Self { child }
    }

    /// Nobody waits for it from now on.
    pub(super) fn end(self, shop: &Shop) {
        drop(self);
        shop.set_standbys("");
    }

    /// Stalls again and again, each time for some milliseconds.
    pub(super) fn stall(&self, random: &mut fastrand::Rng, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            signal(self.child.id(), "STOP");
            thread::sleep(Duration::from_millis(random.u64(0..20)));
            signal(self.child.id(), "CONT");
            thread::sleep(Duration::from_millis(random.u64(0..40)));
        }
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
