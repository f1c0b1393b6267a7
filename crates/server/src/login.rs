//! A memcached client that must prove its role before it may do anything else.
//!
//! Its password is checked on a SQL thread, for that takes a millisecond, which no worker has. The answer to a wrong
//! one waits, longer each time, and so does the connection.

use std::ops::ControlFlow;

use memcache::login::{self, Form, Login, MECHANISM};
use memcache::{Then, binary};

use crate::connection::{Connection, Protocol};
use crate::dialogue::{RequestLoop, Run};
use crate::origin::{address_of, origin_of};
use crate::password::{Shown, fail};
use crate::sql_threads::Work;

impl RequestLoop {
    /// Reads what a peer says that has not proved its role.
    #[cold]
    pub(crate) fn run_login(&mut self, connection: &mut Connection, input: &[u8]) -> Run {
        let mut run = Run { end: input.len(), ..Run::default() };
        connection.stalled = false;
        connection.needed = 0;
        let protocol = connection.protocol(input);
        while run.consumed < input.len() && !connection.closing {
            let rest = &input[run.consumed..];
            let said = match protocol {
                Protocol::Text => login::text(rest),
                Protocol::Binary => login::frame(rest),
            };
            let then = match said {
                Login::Incomplete => {
                    run.waits_for_peer = true;
                    break;
                }
                Login::Nothing => Then::Close,
                Login::Refused { consumed, answer, then } => {
                    run.consumed += consumed;
                    self.out.extend_from_slice(answer.as_bytes());
                    then
                }
                Login::RefusedFrame { consumed, id, status, then } => {
                    run.consumed += consumed;
                    id.refuse(status, &mut self.out);
                    then
                }
                Login::Mechanisms { consumed, id } => {
                    run.consumed += consumed;
                    let value = MECHANISM.as_bytes();
                    id.answer(&binary::Answer { value, ..binary::Answer::default() }, &mut self.out);
                    Then::Continue
                }
                Login::Version { consumed, id } => {
                    run.consumed += consumed;
                    let value = connection.session.version().as_bytes();
                    id.answer(&binary::Answer { value, ..binary::Answer::default() }, &mut self.out);
                    Then::Continue
                }
                Login::Password { consumed, user, password, form } => {
                    run.consumed += consumed;
                    run.progress = true;
                    if self.check(connection, user, password, form).is_continue() {
                        connection.stalled = run.consumed < input.len();
                        break;
                    }
                    Then::Close
                }
            };
            connection.closing |= then == Then::Close;
        }
        self.whole = self.out.len();
        run
    }

    /// Hands a password over to be checked; `Break`: there is no room, and the peer was told.
    fn check(
        &mut self,
        connection: &mut Connection,
        user: &[u8],
        password: &[u8],
        form: Form,
    ) -> ControlFlow<()> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let address = address_of(&connection.socket);
        let origin = origin_of(&connection.socket);
        let work = Shown { role: text(user), password: text(password), form, address, origin };
        self.submit(connection, Work::Login(work)).map_break(|()| fail(form, &mut self.out))
    }
}
