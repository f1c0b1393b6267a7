//! The server over real sockets: bytes in, bytes out, against a server in this process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod advisory;
mod answers;
mod binary;
mod bounds;
mod cells;
mod consoles;
mod dialogue;
mod exptime;
mod gate;
mod generated;
mod grants;
mod harness;
mod hostile;
mod in_place;
mod lifecycle;
mod moments;
mod narrow;
mod ownership;
mod pg;
mod postgres;
mod random_postgresql;
mod routines;
mod sasl;
mod scram;
mod stampede;
mod statements;
mod tags;
mod timed;
mod tls;
mod unproved;
