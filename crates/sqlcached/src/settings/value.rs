//! What a setting's value looks like, and the message when it looks otherwise.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use server::Transport;
use store::definition::units;

/// The form of a setting's values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A whole number.
    Number { min: u64, max: u64 },
    /// A TCP port; 0 is none, -1 is any.
    Port,
    /// A whole number that the flag counts: `-vv` is 2.
    Count { max: u64 },
    /// Bytes: `1048576`, `512k`, `1 MB`, `64 MiB`.
    Size { min: u64, max: u64 },
    /// Memory in MiB: `64`, or with a unit `64 MB`, `1 GB`; memcached counts so.
    Mebibytes { min: u64, max: u64 },
    /// A span of time: `500ms`, `30s`, `5 min`, `1.5 h`; a plain number is milliseconds, as in PostgreSQL.
    Time { min: u64, max: u64 },
    /// The same, where -1 is no time at all.
    TimeOrNever { max: u64 },
    /// IP addresses or `localhost`, each with a port or without, separated by commas.
    Addresses,
    /// A path, or one of these words.
    Path { words: &'static [&'static str] },
    /// A user's name, or the word `none`.
    User,
    /// Names of hosts, separated by commas, or the word `none`.
    Names,
    /// `on` or `off`; the flag alone means on.
    Switch,
    /// A file's permissions in octal.
    Permissions,
    /// One character, or the word `none`.
    Character,
    /// One of these words.
    Word { words: &'static [&'static str] },
}

/// A value that has the form its setting asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number, a count, bytes, milliseconds, permissions, or a character.
    Number(u64),
    /// Where to listen.
    Addresses(Vec<Address>),
    /// A path or a word.
    Path(PathBuf),
    /// On is true.
    Switch(bool),
    /// The word as the setting has it.
    Word(&'static str),
}

/// Where to listen: an address, its own port where it names one, and how it speaks where there is TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) ip: IpAddr,
    pub(crate) port: Option<u16>,
    pub(crate) transport: Transport,
}

/// What may stand before an address, as in memcached. Both of its protocols are served everywhere.
const TRANSPORTS: &[(&str, Transport)] = &[
    ("notls:", Transport::Plain),
    ("btls:", Transport::Basic),
    ("mtls:", Transport::Mutual),
    ("proto[ascii]:", Transport::Usual),
    ("proto[binary]:", Transport::Usual),
    ("proto[negotiating]:", Transport::Usual),
];

/// What a time of -1 is as a number.
pub(crate) const NEVER: u64 = u64::MAX;

/// What a port of -1 is as a number.
pub(crate) const ANY_PORT: u64 = 1 << 16;

/// A setting that cannot be used: its name, where its value came from, the value, and what is allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingError {
    /// The setting, or the unknown name.
    pub(crate) name: String,
    /// The flag, the variable, or the file and its line.
    pub(crate) place: String,
    /// What was given.
    pub(crate) given: String,
    /// What would be accepted.
    pub(crate) allowed: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, place, given, allowed } = self;
        write!(out, "{name}: '{given}' (from {place}) is not allowed; {allowed}")
    }
}

impl Kind {
    /// Reads a value; the error says what is allowed.
    pub(crate) fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let parsed = match *self {
            Self::Number { min, max } => number(text).filter(|n| (min..=max).contains(n)).map(Value::Number),
            Self::Port if text == "-1" => Some(Value::Number(ANY_PORT)),
            Self::Port => number(text).filter(|port| *port < ANY_PORT).map(Value::Number),
            Self::Count { max } => number(text).filter(|n| *n <= max).map(Value::Number),
            Self::Size { min, max } => {
                units::size_bytes(text).filter(|n| (min..=max).contains(n)).map(Value::Number)
            }
            Self::Mebibytes { min, max } => {
                mebibytes(text).filter(|n| (min..=max).contains(n)).map(Value::Number)
            }
            Self::Time { min, max } => {
                units::time_ms(text, 1).filter(|n| (min..=max).contains(n)).map(Value::Number)
            }
            Self::TimeOrNever { .. } if text == "-1" => Some(Value::Number(NEVER)),
            Self::TimeOrNever { max } => units::time_ms(text, 1).filter(|n| *n <= max).map(Value::Number),
            Self::Addresses => addresses(text).map(Value::Addresses),
            Self::Names => names(text).map(Value::Path),
            Self::Path { .. } | Self::User => (!text.is_empty()).then(|| Value::Path(PathBuf::from(text))),
            Self::Switch => switch(text).map(Value::Switch),
            Self::Permissions => permissions(text).map(Value::Number),
            Self::Character => character(text).map(Value::Number),
            Self::Word { words } => word(text, words).map(Value::Word),
        };
        parsed.ok_or_else(|| self.allowed())
    }

    /// What is allowed, as the end of a sentence.
    pub(crate) fn allowed(&self) -> String {
        match self {
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Port => "a whole number from 0 to 65535, or -1".to_owned(),
            Self::Count { max } => format!("a whole number from 0 to {max}"),
            Self::Size { min, max } => {
                format!("a size from {} to {}, in bytes or as 512 kB, 64 MB, 1 GB", size(*min), size(*max))
            }
            Self::Mebibytes { min, max } => {
                format!("a number of MiB from {min} to {max}, or a size of whole MiB as 64 MB, 1 GB")
            }
            Self::Time { max, .. } => {
                format!("a time up to {}, in milliseconds or as 30 s, 5 min, 1.5 h", time(*max))
            }
            Self::TimeOrNever { max } => {
                format!("-1, or a time up to {}, in milliseconds or as 30 s, 5 min, 1.5 h", time(*max))
            }
            Self::Addresses => {
                "IP addresses or localhost, each with :port or without, separated by commas".to_owned()
            }
            Self::Path { words: [] } => "a path".to_owned(),
            Self::Path { words } => format!("a path, or {}", words.join(" or ")),
            Self::User => "a user's name, or none".to_owned(),
            Self::Names => "names of hosts, separated by commas, or none".to_owned(),
            Self::Switch => "on or off".to_owned(),
            Self::Permissions => "an octal number from 0600 to 0777".to_owned(),
            Self::Character => "one visible ASCII character, or none".to_owned(),
            Self::Word { words } => words.join(" or "),
        }
    }

    /// The word for a value in `--help`.
    pub(crate) fn placeholder(&self) -> &'static str {
        match self {
            Self::Number { .. } | Self::Count { .. } | Self::Port => "NUMBER",
            Self::Size { .. } | Self::Mebibytes { .. } => "SIZE",
            Self::Time { .. } | Self::TimeOrNever { .. } => "TIME",
            Self::Addresses => "ADDRESSES",
            Self::Path { .. } => "PATH",
            Self::User => "NAME",
            Self::Names => "NAMES",
            Self::Switch => "SWITCH",
            Self::Permissions => "OCTAL",
            Self::Character => "CHARACTER",
            Self::Word { .. } => "WORD",
        }
    }

    /// Whether the file writes the value without quotes.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(
            self,
            Self::Number { .. } | Self::Mebibytes { .. } | Self::Count { .. } | Self::Port | Self::Switch
        )
    }
}

impl Value {
    /// The number of a number, count, size or time.
    pub(crate) fn number(&self) -> u64 {
        if let Self::Number(number) = self { *number } else { 0 }
    }

    /// The span of a time.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_millis(self.number())
    }
}

/// Digits only: no sign, no blank, so that `-5` is never read as something large.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A number without a unit counts MiB.
fn mebibytes(text: &str) -> Option<u64> {
    number(text).or_else(|| {
        let has_unit = text.contains(|letter: char| letter.is_ascii_alphabetic());
        let bytes = units::size_bytes(text).filter(|bytes| has_unit && bytes.is_multiple_of(1 << 20))?;
        Some(bytes >> 20)
    })
}

fn addresses(text: &str) -> Option<Vec<Address>> {
    let mut found = Vec::new();
    for word in text.split(',').map(str::trim) {
        let before = TRANSPORTS.iter().find(|(prefix, _)| word.starts_with(prefix));
        let (prefix, transport) = before.copied().unwrap_or_default();
        let (ip, port) = address(word.strip_prefix(prefix)?)?;
        let address = Address { ip, port, transport };
        if !found.contains(&address) {
            found.push(address);
        }
    }
    Some(found)
}

/// `127.0.0.1`, `localhost:11212`, `::1`, `[::1]`, `[::1]:11212`.
fn address(word: &str) -> Option<(IpAddr, Option<u16>)> {
    let host = |host: &str| match host {
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        host => host.trim_start_matches('[').trim_end_matches(']').parse().ok(),
    };
    if let Some(address) = host(word) {
        return Some((address, None));
    }
    let (before, port) = word.rsplit_once(':')?;
    let port = number(port).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)?;
    // An address of version 6 that has a port is in brackets.
    (!before.contains(':') || before.starts_with('[')).then_some(())?;
    Some((host(before)?, Some(port)))
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A list of names as it was given, if each could be one.
fn names(text: &str) -> Option<PathBuf> {
    let may_be_one = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    text.split(',').map(str::trim).all(may_be_one).then(|| PathBuf::from(text))
}

fn word(text: &str, words: &[&'static str]) -> Option<&'static str> {
    words.iter().copied().find(|word| text.eq_ignore_ascii_case(word))
}

/// The character's number, 0 for the word.
fn character(text: &str) -> Option<u64> {
    match text.as_bytes() {
        b"none" => Some(0),
        [byte] if byte.is_ascii_graphic() => Some(u64::from(*byte)),
        _ => None,
    }
}

/// The owner can always use the socket; who else can is the setting.
fn permissions(text: &str) -> Option<u64> {
    let bits = number(text).and_then(|_| u64::from_str_radix(text, 8).ok())?;
    (0o600..=0o777).contains(&bits).then_some(bits)
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{}g", bytes >> 30),
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

fn time(milliseconds: u64) -> String {
    match milliseconds {
        ms if ms >= 86_400_000 => format!("{}d", ms / 86_400_000),
        ms if ms >= 3_600_000 => format!("{}h", ms / 3_600_000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    const PORT: Kind = Kind::Port;
    const SIZE: Kind = Kind::Size { min: 1024, max: 128 << 20 };
    const TIME: Kind = Kind::Time { min: 0, max: 3_600_000 };
    const MEMORY: Kind = Kind::Mebibytes { min: 1, max: 1 << 24 };

    #[test]
    fn numbers_sizes_and_times() {
        for (kind, text, expected) in [
            (PORT, "11211", Some(11_211)),
            (PORT, " 0 ", Some(0)),
            (PORT, "65536", None),
            (PORT, "-1", Some(65_536)),
            (PORT, "-2", None),
            (PORT, "+1", None),
            (PORT, "", None),
            (PORT, "99999999999999999999", None),
            (SIZE, "1m", Some(1 << 20)),
            (SIZE, "512K", Some(512 << 10)),
            (SIZE, "2 MB", Some(2 << 20)),
            (SIZE, "4096", Some(4096)),
            (SIZE, "1g", None),
            (SIZE, "17179869184g", None),
            (SIZE, "m", None),
            (TIME, "500", Some(500)),
            (TIME, "500ms", Some(500)),
            (TIME, "30s", Some(30_000)),
            (TIME, "5 min", Some(300_000)),
            (TIME, "1h", Some(3_600_000)),
            (TIME, "2h", None),
            (TIME, "1.5s", Some(1_500)),
            (TIME, "10 mins", Some(600_000)),
            (TIME, "1 day", None),
            (SIZE, "64 MiB", Some(64 << 20)),
            (MEMORY, "64", Some(64)),
            (MEMORY, "256MB", Some(256)),
            (MEMORY, "1.5 GiB", Some(1_536)),
            (MEMORY, "64m", Some(64)),
            (MEMORY, "1000 kB", None),
            (MEMORY, "64.0", None),
            (MEMORY, "0", None),
            (MEMORY, "-5", None),
        ] {
            assert_eq!(kind.parse(text).ok().map(|value| value.number()), expected, "{text:?}");
        }
    }

    #[test]
    fn addresses_with_and_without_ports() {
        for (text, count) in [
            ("127.0.0.1", Some(1)),
            ("localhost", Some(1)),
            ("127.0.0.1, ::1", Some(2)),
            ("[::1],127.0.0.9,127.0.0.9", Some(2)),
            ("127.0.0.1:11211,127.0.0.1:11212,127.0.0.1", Some(3)),
            ("[::1]:11211,localhost:11212", Some(2)),
            ("127.0.0.1:0", None),
            ("127.0.0.1:65536", None),
            ("127.0.0.1:", None),
            ("10.0.0.1:11211", Some(1)),
            ("0.0.0.0", Some(1)),
            ("::", Some(1)),
            ("192.168.1", None),
            ("127.0.0.1,10.0.0.1", Some(2)),
            ("notls:127.0.0.1,btls:127.0.0.1:1,mtls:[::1]:2,proto[ascii]:10.0.0.1", Some(4)),
            ("tls:127.0.0.1", None),
            ("notls:", None),
            ("*", None),
            ("", None),
        ] {
            let parsed = Kind::Addresses.parse(text).ok();
            let found =
                parsed.map(|value| if let super::Value::Addresses(list) = value { list.len() } else { 0 });
            assert_eq!(found, count, "{text:?}");
        }
    }
}
