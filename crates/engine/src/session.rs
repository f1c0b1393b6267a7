//! One connection's identity, and the gate that every command passes.

use crate::answer::Answer;
use crate::privilege::{Command, Role};

/// Who speaks on a connection and what they may do. Authentication will give a session another role; until then
/// everybody whom the listener lets in is trusted.
#[derive(Clone, Debug)]
pub struct Session {
    role: Role,
}

impl Session {
    /// A session of somebody on this machine.
    pub fn local() -> Self {
        Self { role: Role::LOCAL }
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The gate: the only place where a command is allowed or refused.
    #[inline]
    pub(crate) fn allow(&self, command: Command) -> Result<(), Answer> {
        if self.role.may(command) { Ok(()) } else { Err(refused()) }
    }
}

#[cold]
fn refused() -> Answer {
    Answer::NotAllowed("unauthenticated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_refuses() {
        let nobody = Session { role: Role::NOBODY };
        assert_eq!(nobody.allow(Command::Get), Err(Answer::NotAllowed("unauthenticated")));
        assert_eq!(Session::local().allow(Command::Sql), Ok(()));
    }
}
