//! Both arenas of an earlier process, opened together.

use std::path::Path;

use crate::arenas::Arenas;
use crate::error::ArenaError;
use crate::recovery::shared_file::{Role, SharedFile, discard};
use crate::recovery::{Attach, Unusable};
use crate::{Arena, Geometry};

/// What a start found in a private and a shared file.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one, for a moment, at start-up")]
pub enum AttachBoth {
    /// Usable arenas.
    Warm(Arenas),
    /// The private file cannot be used: see [`Attach::Unusable`].
    Unusable(Unusable),
}

impl Arenas {
    /// Opens the arenas that another process left, and recovers them. A shared file that is not the private one's, or
    /// cannot be used, is put out of use.
    pub fn attach(
        private: &Path,
        shared: Option<&Path>,
        geometry: &Geometry,
    ) -> Result<AttachBoth, ArenaError> {
        let mut file = SharedFile {
            path: shared.map(Path::to_owned),
            geometry: Some(*geometry),
            ..SharedFile::default()
        };
        let attached = Arena::attach_as(private, geometry, &mut Role::Private(&mut file))?;
        if let Some(error) = file.failed {
            return Err(error);
        }
        let Attach::Warm(arena) = attached else {
            let Attach::Unusable(unusable) = attached else { unreachable!("there are two cases") };
            return Ok(AttachBoth::Unusable(unusable));
        };
        Ok(AttachBoth::Warm(Self::new(arena, file.found)))
    }

    /// Puts a shared file of an earlier owner out of use, where there is one: the arenas start again.
    pub fn discard_shared(path: &Path) -> Result<(), ArenaError> {
        discard(path)
    }
}
