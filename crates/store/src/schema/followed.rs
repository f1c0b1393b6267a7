//! How far the change stream of a source was applied, for the process that goes on with it.
//!
//! It lies with the definitions: both are gone with the rows, and what is written is complete or not there. A position
//! is written when all changes before it were applied. So it is never ahead of the rows, whenever this process ends.

use serde::{Deserialize, Serialize};

use crate::error::DdlError;
use crate::schema::Schema;
use crate::table::catalog::Catalog;

/// Which stream of changes the rows of some tables have followed, and how far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followed {
    /// The foreign server.
    pub server: String,
    /// The slot there.
    pub slot: String,
    /// The cluster, by the number that it was given when it was made.
    pub system: String,
    /// Changes with each promotion.
    pub timeline: u32,
    /// Changes when the source recovers from a crash.
    #[serde(default)]
    pub life: String,
    /// All changes before this place in the log were applied.
    pub lsn: u64,
    /// What the source publishes, as far as it matters here: another text is another stream.
    pub published: String,
    /// What followed: tables here with the tables there that they depend on.
    pub targets: Vec<String>,
}

/// Those of all servers.
#[derive(Debug, Default)]
pub(crate) struct AllFollowed(pub(crate) Vec<Followed>);

impl AllFollowed {
    /// Those whose server there still is.
    pub(crate) fn written(&self, catalog: &Catalog) -> Vec<Followed> {
        self.0.iter().filter(|own| catalog.server(&own.server).is_some()).cloned().collect()
    }

    fn of(&self, server: &str) -> Option<usize> {
        self.0.iter().position(|own| own.server.eq_ignore_ascii_case(server))
    }
}

impl Schema {
    /// How far a source was followed, by this process or the one before.
    pub fn followed(&self, server: &str) -> Option<Followed> {
        let all = self.followed.lock();
        all.of(server).map(|at| all.0[at].clone())
    }

    /// The server goes; one of the same name is another one.
    pub(crate) fn forget_followed(&self, server: &str) {
        let mut all = self.followed.lock();
        if let Some(at) = all.of(server) {
            all.0.swap_remove(at);
        }
    }

    /// Writes how far a source was followed; `None`: what rows here have followed is not known any more.
    ///
    /// # Errors
    ///
    /// There is no room for the definitions. What was written before holds.
    pub fn note_followed(&self, server: &str, now: Option<Followed>) -> Result<(), DdlError> {
        let _one = self.definitions.lock();
        let before = {
            let mut all = self.followed.lock();
            let before = all.of(server).map(|at| all.0.swap_remove(at));
            if before.is_none() && now.is_none() {
                return Ok(());
            }
            all.0.extend(now);
            before
        };
        self.save_private(&self.catalog()).inspect_err(|_| {
            self.forget_followed(server);
            self.followed.lock().0.extend(before);
        })
    }
}
