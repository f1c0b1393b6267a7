//! Carries out what a statement's functions asked for: `pg_notify()` and `set_config()`.

use sql::{Effect, SqlError};

use super::SqlSession;
use super::prepared::check_name;
use super::utility::Utility;
use crate::limits::PAYLOAD_BYTES_MAX;

impl SqlSession {
    /// Does what the statement that has just worked asked for. Only a transaction that announces too much refuses,
    /// and fails with that.
    #[inline]
    pub(super) fn carry_out(&mut self) -> Result<(), SqlError> {
        for effect in self.sql.take_effects() {
            self.carry_out_one(effect).inspect_err(|_| self.sql.fail())?;
        }
        Ok(())
    }

    #[cold]
    fn carry_out_one(&mut self, effect: Effect) -> Result<(), SqlError> {
        match effect {
            Effect::Notify { channel, payload } => {
                self.channel(&Utility::Notify { channel, payload })?;
            }
            Effect::Warn { state, message } => self.sql.warn(state, message),
            Effect::Set { name, value, local } => {
                self.set(&name, value.as_deref(), local)?;
            }
        }
        Ok(())
    }
}

/// Whether this can be announced.
pub(crate) fn check_notification(channel: &str, payload: &str) -> Result<(), SqlError> {
    check_name(channel)?;
    if payload.len() >= PAYLOAD_BYTES_MAX {
        return Err(SqlError::new("22023", "payload string too long"));
    }
    Ok(())
}
