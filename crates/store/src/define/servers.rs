//! Foreign servers come, change and go, with their user mappings.

use std::sync::Arc;

use crate::definition::ServerDef;
use crate::error::{DdlError, ddl};
use crate::limits::SERVERS_MAX;
use crate::schema::open::Open;
use crate::store::Store;

/// Says what a server is from what it was; none: there is none.
pub type ServerChange<'a> = dyn FnMut(Option<&ServerDef>) -> Result<Option<ServerDef>, DdlError> + 'a;

impl Store {
    /// Makes, changes or removes the server of this name, in one step. A new one is given its number.
    pub fn change_server(&self, name: &str, change: &mut ServerChange<'_>) -> Result<(), DdlError> {
        let _one = self.lock_definitions();
        let catalog = self.catalog();
        let known = catalog.server(name);
        let changed = change(known.map(|known| &**known))?;
        let mut apart = catalog.apart();
        if let Some(known) = known {
            apart.servers.retain(|other| other.id != known.id);
        }
        if let Some(mut made) = changed {
            made.validate()?;
            if let Some(taken) =
                apart.servers.iter().find(|other| other.name.eq_ignore_ascii_case(&made.name))
            {
                return Err(ddl("42710", format!("server \"{}\" already exists", taken.name)));
            }
            if apart.servers.len() >= SERVERS_MAX {
                return Err(ddl("54000", format!("there are {SERVERS_MAX} servers, which is the limit")));
            }
            let taken = |id: u16| apart.servers.iter().any(|other| other.id == id);
            made.id = self.free_number(made.id, taken, Open::has_server);
            apart.servers.push(Arc::new(made));
        } else {
            self.forget_followed(name);
        }
        self.install_all(catalog.tables().cloned().collect(), apart)
    }
}
