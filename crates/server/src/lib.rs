//! Listeners, connections, threads, backpressure; the only crate with sockets.
