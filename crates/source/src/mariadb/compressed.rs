//! What MariaDB compressed in its log (`log_bin_compress`).

use std::io::Read as _;

use flate2::read::ZlibDecoder;

use super::cursor::{Cursor, big, cut};
use crate::error::Error;
use crate::limits::MESSAGE_BYTES_MAX;

/// Its first byte: it is compressed, by which way, and of how many bytes its length is told.
const IS_COMPRESSED: u8 = 0x80;
const WAY: u8 = 0x70;
const LENGTH_BYTES: u8 = 0x07;

/// The bytes before they were compressed, which are as many as they say.
pub(super) fn inflated(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut rest = Cursor(bytes);
    let first = rest.byte()?;
    if first & IS_COMPRESSED == 0 || first & WAY != 0 {
        return Err(Error::connection("the binary log is compressed in a way that is not known"));
    }
    let length = usize::try_from(big(rest.take(usize::from(first & LENGTH_BYTES))?)).map_err(|_| cut())?;
    if length > MESSAGE_BYTES_MAX {
        return Err(Error::connection("an event of the binary log is larger than 1 GiB"));
    }
    // Memory grows with what comes, not with what is announced.
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(rest.0).take(length as u64 + 1).read_to_end(&mut plain);
    if read.is_err() || plain.len() != length {
        return Err(Error::connection("a compressed event of the binary log cannot be read"));
    }
    Ok(plain)
}
