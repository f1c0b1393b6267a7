//! Places in a binary log: the number of the file above the position in it, so that they compare as numbers.

/// A file of the log and a position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `mariadb-bin.000012`
    pub(super) file: String,
    pub(super) offset: u64,
}

impl Place {
    /// The name of the log, and the number of this file.
    fn parts(&self) -> Option<(&str, u32)> {
        let (name, number) = self.file.rsplit_once('.')?;
        Some((name, number.parse().ok()?))
    }

    /// Whether its file's name is one of a log.
    pub(super) fn is_sound(&self) -> bool {
        self.parts().is_some()
    }

    /// The name of the log without the number.
    pub(super) fn log(&self) -> &str {
        self.parts().map_or("", |(name, _)| name)
    }

    /// As a number. Positions that 32 bits do not hold stand for the end of their file.
    pub(super) fn number(&self) -> u64 {
        let file = self.parts().map_or(0, |(_, number)| number);
        u64::from(file) << 32 | self.offset.min(u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_compare_as_numbers() {
        let place = |file: &str, offset| Place { file: file.to_owned(), offset };
        assert_eq!(place("my.own-bin.000002", 7).number(), (2 << 32) + 7);
        assert_eq!(place("bin.1000001", 0).log(), "bin");
        assert!(place("bin.000009", u64::MAX).number() < place("bin.000010", 4).number());
        assert!(!place("bin", 4).is_sound() && !place("bin.x", 4).is_sound());
    }
}
