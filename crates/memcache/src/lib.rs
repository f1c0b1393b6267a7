//! The memcached protocol: bytes to requests, responses to bytes, no I/O.
