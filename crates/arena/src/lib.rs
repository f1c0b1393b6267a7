//! The shared-memory file: layout, segments, hash index, the read protocol, recovery.
