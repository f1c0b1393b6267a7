//! What everybody may see of the caches on a bus.

use engine::{Bus, NodeFacts};

use crate::limits::NAME_BYTES_MAX;
use crate::member::Member;

/// How this cache calls itself: the machine, and the process, for two may be on one machine.
pub(crate) fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().take(NAME_BYTES_MAX / 8).collect();
    format!("{host}:{}", std::process::id())
}

/// The caches that are heard.
pub(crate) fn nodes(bus: &Bus, member: &Member, now_ns: u64) -> Vec<NodeFacts> {
    let follower = member.follower();
    let own = follower.nodes().get(member.node());
    let mut all: Vec<NodeFacts> = follower
        .nodes()
        .alive(now_ns)
        .map(|(node, known)| NodeFacts {
            bus: bus.name().to_owned(),
            node,
            name: known.said.name.clone(),
            own: node == member.node(),
            namesake: node != member.node() && own.is_some_and(|own| known.is_namesake_of(own)),
            applied: known.applied,
            lag_ms: known.said.lag_ms,
            outbox: known.said.outbox,
            heard_ms: now_ns.saturating_sub(known.heard_ns) / 1_000_000,
        })
        .collect();
    all.sort_by(|one, other| (&one.name, one.node).cmp(&(&other.name, other.node)));
    all
}
