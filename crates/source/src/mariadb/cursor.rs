//! Bytes that are read from the front. What ends too early is an error, and never a panic.

use std::fmt::Write as _;

use crate::error::Error;

/// What was not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'b>(pub(super) &'b [u8]);

impl<'b> Cursor<'b> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(cut)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    /// A number of up to eight bytes, the lowest first.
    pub(super) fn number(&mut self, bytes: usize) -> Result<u64, Error> {
        Ok(little(self.take(bytes)?))
    }

    /// A number by which a size is told.
    pub(super) fn size(&mut self, bytes: usize) -> Result<usize, Error> {
        usize::try_from(self.number(bytes)?).map_err(|_| cut())
    }

    /// A number whose first byte tells its length.
    pub(super) fn packed(&mut self) -> Result<u64, Error> {
        match self.byte()? {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            0xfb | 0xff => Err(cut()),
            small => Ok(u64::from(small)),
        }
    }

    /// The same for a size.
    pub(super) fn packed_size(&mut self) -> Result<usize, Error> {
        usize::try_from(self.packed()?).map_err(|_| cut())
    }

    /// Bytes up to a zero, which is taken, too.
    pub(super) fn until_zero(&mut self) -> Result<&'b [u8], Error> {
        let at = self.0.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        let taken = self.take(at)?;
        self.byte()?;
        Ok(taken)
    }
}

/// A number, the lowest byte first.
pub(super) fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A number, the highest byte first.
pub(super) fn big(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Bytes as pairs of hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes end where more were announced.
pub(super) fn cut() -> Error {
    Error::connection("a message of the source is cut")
}
