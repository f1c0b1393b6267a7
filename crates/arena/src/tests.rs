//! What the unit tests share.

use crate::{Arena, Attach, Geometry, Image, Recovery};

/// An arena in anonymous memory.
pub(crate) fn tiny(memory_bytes: u64) -> Arena {
    Arena::create(None, &Geometry { memory_bytes }, 1).unwrap()
}

/// Recovers an image that must be usable.
pub(crate) fn warm(image: &Image) -> (Arena, Recovery) {
    match Arena::attach_image(image, &Geometry { memory_bytes: 1 << 20 }) {
        Attach::Warm(arena, recovery) => (arena, recovery),
        Attach::Unusable(reason) => panic!("unusable: {reason}"),
    }
}
