//! Forwarded sessions: a client names a foreign server as its database, its statements go to that database, and answers
//! of reads are kept byte for byte until the database's stream of changes drops them.
//!
//! | module | what it has |
//! |---|---|
//! | `session` | one client and its source, without I/O: what is answered here, what is forwarded, what is kept |
//! | `hub` | what all sessions of a server share with the stream of its changes |
//! | `gate` | no old answer is kept |
//! | `choice`, `named`, `freshness` | which reads are kept, and how fresh their answers are |
//! | `misses` | of many that miss one answer, one asks |
//! | `places` | who wrote does not read what is older than that |
//! | `text`, `state` | statements, and what their answers depend on beside tables |
//! | `answers` | the table that has them |
//! | `frame`, `group` | messages of the protocol |
//!
//! What a statement depends on is found out by [`inspect`]. The connections are those of the crates `server` (the
//! clients') and `source` (the databases').
#![forbid(unsafe_code)]

mod answers;
mod choice;
mod facts;
mod forwards;
mod frame;
mod freshness;
mod gate;
mod group;
mod hub;
mod limits;
mod misses;
mod named;
mod places;
mod session;
mod state;
mod text;

pub use answers::{Answers, TagColumns, definition_of, table_of};
pub use forwards::{Forwards, Gateway, Opened, Start, keeps_answers};
pub use gate::Touched;
pub use hub::{Hub, Touches};
pub use limits::CHECK_PATIENCE;
pub use places::Ticket;
pub use session::{Hands, Out, Session};
pub use state::State;
pub use text::Statement;
