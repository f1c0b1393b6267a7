//! Arenas in files of their own.

use std::path::{Path, PathBuf};

use super::{Rig, TABLE, Value};
use crate::recovery::{lock_own, open_at, open_own};
use crate::{Arena, ArenaError, Attach, Geometry, Recovery, UNIT_BYTES};

const GEOMETRY: Geometry = Geometry { memory_bytes: 1 << 20 };

/// A path that no other test uses, removed in the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("arena-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    /// As [`Scratch::new`], where the memory files are.
    pub(super) fn in_memory(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            return Self::new(name);
        }
        let path = memory.join(format!("arena-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Attaches; a test that forks beside this one holds the lock until its child has become another program.
pub(super) fn try_attach(path: &Path, geometry: &Geometry) -> Result<Attach, ArenaError> {
    for _ in 0..10_000 {
        match Arena::attach(path, geometry) {
            Err(ArenaError::Locked(_)) => std::thread::yield_now(),
            other => return other,
        }
    }
    panic!("the lock is never free")
}

fn attach(path: &Path, geometry: &Geometry) -> (Arena, Recovery) {
    match try_attach(path, geometry) {
        Ok(Attach::Warm(mut arena)) => {
            let recovery = arena.recover();
            (arena, recovery)
        }
        other => panic!("usable, not {other:?}"),
    }
}

#[test]
fn a_file_is_created_once_held_by_one_and_attached_by_the_next() {
    let path = Scratch::new("attach");
    assert!(matches!(Arena::attach(&path.0, &GEOMETRY), Err(ArenaError::NotFound(_))));
    let mut rig = Rig::over(Arena::create(Some(&path.0), &GEOMETRY, 42).unwrap());
    assert!(matches!(Arena::create(Some(&path.0), &GEOMETRY, 1), Err(ArenaError::Exists(_))));
    assert!(matches!(Arena::attach(&path.0, &GEOMETRY), Err(ArenaError::Locked(_))));
    rig.put(TABLE, b"key", &Value::plain(b"value"));
    drop(rig);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path.0).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let (arena, recovery) = attach(&path.0, &GEOMETRY);
    assert_eq!((recovery.rows, arena.epoch_ns()), (1, 42));
    assert_eq!(Rig::over(arena).get(TABLE, b"key"), Some(Value::plain(b"value")));
    let larger = Geometry { memory_bytes: 2 << 30 };
    assert!(matches!(try_attach(&path.0, &larger), Ok(Attach::Unusable(_))));
}

#[test]
fn a_link_is_not_followed_and_other_files_are_refused() {
    let path = Scratch::new("foreign");
    std::fs::write(&path.0, b"not an arena").unwrap();
    assert!(matches!(Arena::attach(&path.0, &GEOMETRY), Ok(Attach::Unusable(_))));
    let link = Scratch::new("link");
    std::os::unix::fs::symlink(&path.0, &link.0).unwrap();
    assert!(matches!(Arena::attach(&link.0, &GEOMETRY), Err(ArenaError::Io { .. })));
    assert!(matches!(Arena::create(Some(&link.0), &GEOMETRY, 1), Err(ArenaError::Exists(_))));
    assert!(matches!(Arena::attach(&std::env::temp_dir(), &GEOMETRY), Err(_) | Ok(Attach::Unusable(_))));
}

/// Two starts found the same unusable file. The second one had it open when the first one replaced it, took the lock of
/// what the first had removed, and removed by the path what the first served from. The next start found nothing.
#[test]
fn a_start_that_opened_a_file_which_another_replaced_looks_again() {
    let path = Scratch::new("replaced");
    std::fs::write(&path.0, b"of another layout").unwrap();
    let late = open_at(&path.0).unwrap();
    let Ok(Attach::Unusable(unusable)) = try_attach(&path.0, &GEOMETRY) else { panic!("it is unusable") };
    // Nobody else takes the file in hand until it is replaced.
    assert!(matches!(Arena::attach(&path.0, &GEOMETRY), Err(ArenaError::Locked(_))));
    unusable.remove(&path.0).unwrap();
    assert!(matches!(Arena::attach(&path.0, &GEOMETRY), Err(ArenaError::NotFound(_))));
    let arena = Arena::create(Some(&path.0), &GEOMETRY, 1).unwrap();
    assert!(lock_own(late, &path.0).unwrap().is_none(), "the path leads to another file");
    assert!(matches!(open_own(&path.0), Err(ArenaError::Locked(_))));
    drop(arena);
    assert!(matches!(try_attach(&path.0, &GEOMETRY), Ok(Attach::Warm(_))));
}

/// What is no file is not removed: only a lock says that nobody uses it.
#[test]
fn what_cannot_be_locked_is_not_removed() {
    let path = Scratch::new("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path.0).status().unwrap();
    assert!(made.success());
    let Ok(Attach::Unusable(unusable)) = try_attach(&path.0, &GEOMETRY) else { panic!("it is unusable") };
    assert!(matches!(unusable.remove(&path.0), Err(ArenaError::InTheWay { .. })));
    assert!(path.0.exists());
}

#[test]
fn nonsense_sizes_are_refused() {
    for memory_bytes in [0, u64::MAX, 2 << 40] {
        assert!(matches!(Arena::create(None, &Geometry { memory_bytes }, 1), Err(ArenaError::Geometry(_))));
    }
}

/// Leaves nothing to take for anybody, and forgets what was learned of that.
fn fill_up(rig: &Rig, geometry: &Geometry) {
    std::fs::write("/mnt/ballast", vec![1; 6 << 20]).unwrap_err();
    rig.arena.set_limit(geometry.memory_bytes);
}

/// Refused once, and with it the write of whoever was there: a chain of buckets takes its pages from free units, and
/// where there are none, one that was kept.
fn index_grows_where_the_file_system_is_full(rig: &mut Rig, geometry: &Geometry) {
    rig.arena.trim();
    fill_up(rig, geometry);
    let before = rig.arena.index_bytes();
    while rig.arena.index_bytes() == before {
        assert!(rig.arena.take_overflow().is_some());
        if rig.arena.limit_bytes() < geometry.memory_bytes {
            // It was asked for in vain: whoever appends to a segment makes room now.
            rig.evict();
            rig.arena.set_limit(geometry.memory_bytes);
        }
    }
    rig.evict();
    rig.arena.set_catalogue(&[7; 5_000]).unwrap();
    rig.arena.trim();
    fill_up(rig, geometry);
}

/// Runs in a process of its own, in which a file system of 6 MiB is mounted at `/mnt`. An arena begins where its
/// headers find pages only with its units.
#[test]
#[ignore = "run by `a_full_file_system_is_a_refusal_not_a_fault`"]
fn headers_inside_a_small_file_system() {
    let large = Geometry { memory_bytes: 1 << 30 };
    let mut rig = Rig::over(Arena::create(Some(Path::new("/mnt/arena")), &large, 1).unwrap());
    fill_up(&rig, &large);
    assert!(rig.put(TABLE, b"key", &Value::plain(b"value")));
    assert_eq!(rig.get(TABLE, b"key"), Some(Value::plain(b"value")));
    // All that is left is taken but what is left to readers, each page once, and no unit that has none.
    let mut units = 1;
    while rig.arena.allocate(1, &Rig::tag()).is_some() {
        units += 1;
    }
    let full = rig.arena.usage();
    assert_eq!([full.segments_bytes, full.committed_bytes], [units * UNIT_BYTES as u64; 2]);
    assert!(units > 28 && rig.arena.free_bytes() == 0, "{units} units, {} bytes", rig.arena.free_bytes());
    // Nobody gives up what cannot be enough.
    (0..3).for_each(|_| drop(rig.evict()));
    rig.arena.set_limit(large.memory_bytes);
    assert!(rig.arena.allocate(4, &Rig::tag()).is_none());
    assert_eq!(rig.arena.usage().committed_bytes, full.committed_bytes);
    assert!(rig.arena.allocate(3, &Rig::tag()).is_some());
}

/// Runs in a process of its own, in which a file system of 6 MiB is mounted at `/mnt`.
#[test]
#[ignore = "run by `a_full_file_system_is_a_refusal_not_a_fault`"]
fn inside_a_small_file_system() {
    let path = PathBuf::from("/mnt/arena");
    let large = Geometry { memory_bytes: 1 << 30 };
    let mut rig = Rig::over(Arena::create(Some(&path), &large, 1).unwrap());
    let mut evicted = 0;
    for i in 0..200_000u32 {
        while !rig.put(TABLE, &i.to_le_bytes(), &Value::plain(&[7; 100])) {
            evicted += rig.evict().len();
        }
        // The index finds no page to grow into, so its chains grow longer.
        while let Some(shard) = rig.arena.split_due() {
            if !rig.arena.split(&mut rig.tokens[shard]) {
                break;
            }
        }
    }
    assert!(evicted > 0);
    index_grows_where_the_file_system_is_full(&mut rig, &large);
    let rows = rig.arena.usage().rows;
    drop(rig);
    // Full as it is: what has pages is enough to go on with.
    let (arena, recovery) = attach(&path, &large);
    assert_eq!((recovery.rows, recovery.dropped), (rows, 0));
    assert_eq!(arena.catalogue().as_deref(), Some(&[7; 5_000][..]));
    drop(arena);
    std::fs::write("/mnt/ballast", vec![1; 6 << 20]).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    std::fs::write("/mnt/ballast", vec![1; 5 << 20]).unwrap();
    let refused = Arena::create(Some(&path), &large, 1);
    assert!(matches!(refused, Err(ArenaError::NoSpace { .. })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("--shm-size"));
    assert!(!path.exists());
}

#[test]
fn a_full_file_system_is_a_refusal_not_a_fault() {
    let own = std::env::current_exe().unwrap();
    let script = "mount -t tmpfs -o size=6m tmpfs /mnt || exit 99
        \"$0\" --ignored --exact tests::files::inside_a_small_file_system || exit
        rm /mnt/*
        \"$0\" --ignored --exact tests::files::headers_inside_a_small_file_system || exit
        rm /mnt/*
        \"$0\" --ignored --exact tests::pages::a_reader_inside_a_small_file_system";
    let run = std::process::Command::new("unshare").args(["-rm", "sh", "-c", script]).arg(own).output();
    match run {
        // A machine without user namespaces cannot mount; elsewhere this runs.
        Err(_) => println!("skipped: no unshare"),
        Ok(output)
            if output.status.code() == Some(99) || !output.stderr.is_empty() && output.stdout.is_empty() =>
        {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
    }
}
