//! A network of the test's own: machines in namespaces, each on a cable to a switch. It needs root.

use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::daemon::run;

/// See the module.
pub(super) struct Network {
    name: String,
    machines: usize,
}

impl Network {
    /// So many machines. None: this user may not make them.
    pub(super) fn of(machines: usize) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only different numbers matter.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("sqlcached-{}-{number}", std::process::id());
        if run(Command::new("ip").args(["netns", "add", &format!("{name}-switch")])).0 != Some(0) {
            return None;
        }
        // It goes, whatever fails from here on.
        let own = Self { name, machines };
        // The second switch is where the one half is when the network is cut in two.
        for switch in ["whole", "half"] {
            own.at_switch(&format!("link add {switch} type bridge"));
            own.at_switch(&format!("link set {switch} up"));
        }
        (0..machines).for_each(|machine| own.plug_in(machine));
        Some(own)
    }

    fn plug_in(&self, machine: usize) {
        let own = self.namespace(machine);
        ip(&format!("netns add {own}"));
        self.at_switch(&format!("link add port{machine} type veth peer name cable netns {own}"));
        self.at_switch(&format!("link set port{machine} master whole up"));
        ip(&format!("-n {own} link set lo up"));
        ip(&format!("-n {own} address add {}/24 dev cable", self.address(machine)));
        ip(&format!("-n {own} link set cable up"));
    }

    fn namespace(&self, machine: usize) -> String {
        format!("{}-{machine}", self.name)
    }

    fn at_switch(&self, what: &str) {
        ip(&format!("-n {}-switch {what}", self.name));
    }

    #[expect(clippy::unused_self, reason = "each network has its own")]
    pub(super) fn address(&self, machine: usize) -> String {
        format!("10.77.0.{}", machine + 1)
    }

    /// Does something on a machine: what is started there stays there, and connections begin there.
    pub(super) fn on<T: Send>(&self, machine: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = format!("/run/netns/{}", self.namespace(machine));
        thread::scope(|scope| {
            let done = scope.spawn(move || {
                let namespace = File::open(namespace).unwrap();
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Pulls a machine's cable, or puts it in again.
    pub(super) fn plug(&self, machine: usize, up: bool) {
        self.at_switch(&format!("link set port{machine} {}", if up { "up" } else { "down" }));
    }

    /// Has these machines reach one another, and nobody else; none: all are together again.
    pub(super) fn split(&self, half: &[usize]) {
        for machine in 0..self.machines {
            let switch = if half.contains(&machine) { "half" } else { "whole" };
            self.at_switch(&format!("link set port{machine} master {switch}"));
        }
    }

    /// Of what comes to a machine this part is lost: 1.0 is all of it. Nobody is told.
    pub(super) fn lose(&self, machine: usize, part: f64) {
        let chance = format!("-m statistic --mode random --probability {part}");
        self.filter(machine, "-F INPUT");
        if part > 0.0 {
            self.filter(machine, &format!("-A INPUT -i cable {chance} -j DROP"));
        }
    }

    fn filter(&self, machine: usize, rule: &str) {
        let all = format!("netns exec {} iptables -w {rule}", self.namespace(machine));
        ip(&all);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let machines = (0..self.machines).map(|machine| self.namespace(machine));
        for namespace in machines.chain([format!("{}-switch", self.name)]) {
            let _gone = run(Command::new("ip").args(["netns", "delete", &namespace]));
        }
    }
}

fn ip(words: &str) {
    let (code, out, error) = run(Command::new("ip").args(words.split(' ')));
    assert_eq!(
        code,
        Some(0),
        "ip {words}\n{out}{error}; cargo xtask ci tools installs iproute2 and iptables"
    );
}
