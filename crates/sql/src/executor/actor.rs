//! As whom the body of a function runs: as its caller, or with the rights of its owner (`SECURITY DEFINER`), and in
//! which schemas its names are looked for.
//!
//! The session is somebody else for as long as the body runs, so that everything that asks who speaks is answered so:
//! the gate, `current_user`, sequences. It is its caller again however the body ends.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use pgcatalog::sequence;
use pgcatalog::session::{Holder, Identity};
use store::Table;
use store::definition::RoutineDef;

use super::Executor;
use crate::error::{SqlError, state};
use crate::session::{Actor, Session};

/// A session that acts as somebody else until this ends.
struct Acting<'s> {
    session: &'s mut Session,
    caller: Actor,
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        self.session.act_as(mem::take(&mut self.caller));
    }
}

impl Deref for Acting<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session
    }
}

impl DerefMut for Acting<'_> {
    fn deref_mut(&mut self) -> &mut Session {
        self.session
    }
}

impl Executor {
    /// Runs something as the body of a function is run.
    pub(crate) fn acting<T>(
        &mut self,
        session: &mut Session,
        routine: &Arc<RoutineDef>,
        run: impl FnOnce(&mut Self, &mut Session) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if routine.is_of_caller() {
            return run(self, session);
        }
        let actor = self.actor(session, routine)?;
        let result = {
            let caller = session.act_as(actor);
            let mut acting = Acting { session, caller };
            self.meet(&acting);
            run(self, &mut acting)
        };
        self.meet(session);
        result
    }

    /// Who runs the body of a function that says so. The owner's rights are those of now.
    fn actor(&self, session: &Session, routine: &Arc<RoutineDef>) -> Result<Actor, SqlError> {
        let mut actor = session.actor();
        actor.body = Some(Arc::clone(routine));
        if routine.definer {
            let system = &self.core.system;
            let (role, holder) = match &routine.access.owner {
                Some(owner) => (owner.clone(), system.server().holder(owner)),
                None => (system.owner(), Some(Holder::superuser())),
            };
            let Some(Holder { rights, roles }) = holder else {
                let message = format!("role \"{role}\" does not exist, who owns function {}", routine.name);
                return Err(SqlError::new(state::UNKNOWN_OBJECT, message));
            };
            actor.identity = Arc::new(Identity { role, rights, roles, ..Identity::clone(&actor.identity) });
            // What a caller puts in the way of a name is not found with the owner's rights.
            (actor.path, actor.own_path) = (None, None);
        }
        if let Some(path) = &routine.path {
            actor.path = Some(looked_in(path));
        }
        Ok(actor)
    }

    /// Who looks for the rows of a materialized view: its owner, with the rights of now.
    pub(super) fn owner_of(&self, view: &Table) -> Result<Identity, SqlError> {
        let Some(owner) = &view.def().access.owner else { return Ok(Identity::default()) };
        let Some(Holder { rights, roles }) = self.core.system.server().holder(owner) else {
            let message = format!("role \"{owner}\" does not exist, who owns the view {}", view.name());
            return Err(SqlError::new(state::UNKNOWN_OBJECT, message));
        };
        Ok(Identity { role: owner.clone(), rights, roles, ..Identity::default() })
    }

    /// Takes over who speaks in a session, and where it looks for names.
    pub(super) fn meet(&mut self, session: &Session) {
        self.look_in(session.path(&self.core.catalog).cloned());
        let identity = session.asker().identity;
        self.core.system.act_as(&self.core.catalog, identity);
        sequence::act_as(identity);
    }

    /// Does something while names are looked for where the body of a function does that.
    pub(super) fn looking_in<T>(
        &mut self,
        (definer, path): (bool, Option<&[String]>),
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.path.clone();
        match path {
            Some(path) => self.look_in(Some(looked_in(path))),
            None if definer => self.look_in(None),
            None => {}
        }
        let result = run(self);
        self.look_in(before);
        result
    }
}

/// The schemas of a path; an empty one finds nothing, as that of a session.
fn looked_in(path: &[String]) -> Arc<[String]> {
    if path.is_empty() { [String::new()].into() } else { path.into() }
}
