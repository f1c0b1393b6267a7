//! Rows whose value comes in pieces.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::{Rig, TABLE, Value, seeded, warm};
use crate::in_place::InPlace;
use crate::{Arena, RowParts};

/// Begins a row whose payload begins with `before`; its segment keeps a writer.
pub(super) fn begin(rig: &mut Rig, key: &[u8], before: &[u8], value: &Value) -> InPlace {
    let parts = RowParts {
        table: TABLE,
        multi: false,
        stale: false,
        lease: None,
        expiry: value.expiry,
        client_flags: value.client_flags,
        cas: value.cas,
        key,
        payload: &[before],
    };
    let coming = value.payload.len() - before.len();
    let location = rig.reserve(parts.total_bytes_before(coming)).expect("room");
    rig.arena.begin_in_place(location, &parts, coming)
}

/// Brings the value in pieces, from memory and from a socket, with something else behind it.
pub(super) fn bring(random: &mut fastrand::Rng, arena: &Arena, in_place: &mut InPlace, value: &[u8]) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    let mut rest = value;
    let mut spill = [0; 64];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(1..=rest.len().min(5_000)));
        rest = after;
        if random.bool() {
            arena.append(in_place, piece);
            continue;
        }
        there.write_all(piece).expect("room in the socket");
        let last = rest.is_empty();
        if last {
            there.write_all(b"behind").expect("room in the socket");
        }
        let (mut left, mut spilled) = (piece.len(), 0);
        while left > 0 || (last && spilled < 6) {
            let most = random.usize(1..=6_000);
            let got = arena.receive(in_place, here.as_fd(), most, &mut spill[spilled..]).expect("bytes");
            left -= got.received;
            spilled += got.spilled;
        }
        assert_eq!(&spill[..spilled], if last { &b"behind"[..] } else { b"" });
    }
    assert_eq!(in_place.missing(), 0);
}

/// Publishes a row whose value is whole.
pub(super) fn publish(rig: &mut Rig, key: &[u8], in_place: &InPlace) {
    rig.arena.finish_in_place(in_place);
    let location = in_place.location();
    rig.arena.stamp_row(location, rig.arena.next_stamp());
    let hash = rig.arena.hash(TABLE, key);
    let bytes = rig.arena.row(location).expect("a row").head().total_bytes;
    let token = &mut rig.tokens[Arena::shard_of(hash)];
    rig.arena.insert(token, hash, TABLE, location).expect("a slot");
    let segment = rig.arena.head_of(location);
    rig.arena.add_live(segment, bytes);
    rig.arena.release(segment);
}

fn random_value(random: &mut fastrand::Rng) -> Value {
    let bytes = *random.choice(&[0, 1, 7, 8, 9, 100, 4_000, 70_000]).unwrap_or(&0) + random.usize(..9) + 9;
    Value {
        payload: (0..bytes).map(|_| random.u8(..)).collect(),
        expiry: random.u32(..3),
        client_flags: random.u32(..2),
        cas: random.bool().then(|| random.u64(..)),
    }
}

#[test]
fn a_row_that_comes_in_pieces_is_the_row_written_at_once() {
    let mut random = seeded("in_place");
    let mut rig = Rig::new(4 << 20);
    // Bytes of earlier rows lie where the new ones come to lie.
    let noise = Value::plain(&[0xa5; 1_000]);
    (0..1_000).for_each(|n: u32| assert!(rig.put(TABLE, &n.to_le_bytes(), &noise)));
    while !rig.arena.segments().is_empty() {
        rig.evict();
    }
    for round in 0..40_u32 {
        let value = random_value(&mut random);
        let key = format!("{round}{}", "k".repeat(random.usize(..20)));
        let before = random.usize(..9);
        let mut in_place = begin(&mut rig, key.as_bytes(), &value.payload[..before], &value);
        bring(&mut random, &rig.arena, &mut in_place, &value.payload[before..]);
        publish(&mut rig, key.as_bytes(), &in_place);
        assert_eq!(rig.get(TABLE, key.as_bytes()).as_ref(), Some(&value));
        // The padding is zeros, as in a row written at once.
        let location = in_place.location();
        let head = *rig.arena.row(location).expect("a row").head();
        let words = &rig.arena.map.words()[rig.arena.layout.at(location) as usize..][..head.total_bytes / 8];
        let last = words[words.len() - 1].load(std::sync::atomic::Ordering::Relaxed).to_le_bytes();
        let tail = (value.payload.len() + 7) % 8 + 1;
        assert_eq!(last[tail..], [0; 8][tail..]);
        // Another process proves it by its check.
        if round % 10 == 9 {
            let (arena, recovery) = warm(&rig.arena.image());
            assert_eq!((recovery.rows, recovery.dropped), (u64::from(round) + 1, 0));
            assert_eq!(Rig::over(arena).get(TABLE, key.as_bytes()).as_ref(), Some(&value));
        }
    }
}

#[test]
fn a_row_that_never_became_whole_is_no_row_after_a_death() {
    let mut random = seeded("in_place");
    for _ in 0..20 {
        let mut rig = Rig::new(2 << 20);
        let neighbours: Vec<String> = (0..20).map(|n| format!("neighbour {n}")).collect();
        let value = Value { payload: (0..20_000).map(|_| random.u8(..)).collect(), ..Value::plain(b"") };
        let (first, second) = neighbours.split_at(random.usize(..20));
        for key in first {
            assert!(rig.put(TABLE, key.as_bytes(), &Value::plain(key.as_bytes())));
        }
        let mut in_place = begin(&mut rig, b"coming", b"", &value);
        rig.arena.append(&mut in_place, &value.payload[..random.usize(..=value.payload.len())]);
        if in_place.missing() == 0 {
            rig.arena.finish_in_place(&in_place);
        }
        for key in second {
            assert!(rig.put(TABLE, key.as_bytes(), &Value::plain(key.as_bytes())));
        }
        let (arena, recovery) = warm(&rig.arena.image());
        assert_eq!((recovery.rows, recovery.dropped), (20, 0));
        let after = Rig::over(arena);
        assert_eq!(after.get(TABLE, b"coming"), None);
        for key in &neighbours {
            assert_eq!(after.get(TABLE, key.as_bytes()), Some(Value::plain(key.as_bytes())));
        }
        // Of a run of its own nothing is left.
        assert_eq!(after.arena.usage().segments_bytes, crate::UNIT_BYTES as u64);
    }
}
