//! SQL through the memcached door.
