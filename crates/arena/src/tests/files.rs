//! Arenas in files of their own.

use std::path::PathBuf;

use super::{Rig, TABLE, Value};
use crate::{Arena, ArenaError, Attach, Geometry};

const GEOMETRY: Geometry = Geometry { memory_bytes: 1 << 20 };

/// A path that no other test uses, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("arena-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
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
    let Ok(Attach::Warm(arena, recovery)) = Arena::attach(&path.0, &GEOMETRY) else { panic!("usable") };
    assert_eq!((recovery.rows, arena.epoch_ns()), (1, 42));
    assert_eq!(Rig::over(arena).get(TABLE, b"key"), Some(Value::plain(b"value")));
    let larger = Geometry { memory_bytes: 2 << 30 };
    assert!(matches!(Arena::attach(&path.0, &larger), Ok(Attach::Unusable(_))));
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

#[test]
fn nonsense_sizes_are_refused() {
    for memory_bytes in [0, u64::MAX, 2 << 40] {
        assert!(matches!(Arena::create(None, &Geometry { memory_bytes }, 1), Err(ArenaError::Geometry(_))));
    }
}
