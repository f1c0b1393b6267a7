//! What a peer may ask for. Each request borrows from the bytes it was parsed from.

use crate::meta::Meta;
use crate::token::Words;

/// One parsed request. Keys are within the limit, never empty, and hold neither spaces nor control characters;
/// values have the length that was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request<'a> {
    /// `get` and `gets`: the values of all keys that are there, in the order asked for, repeated if repeated.
    Get {
        /// At least one key.
        keys: Keys<'a>,
        /// `gets`: each value with its CAS.
        cas: bool,
    },
    /// `gat` and `gats`: as `get`, and each hit gets a new expiry time.
    GetAndTouch {
        /// The new expiry time, as the peer wrote it; see [`Request::Store`].
        exptime: i64,
        /// At least one key.
        keys: Keys<'a>,
        /// `gats`: each value with its CAS.
        cas: bool,
    },
    /// `set`, `add`, `replace`, `append`, `prepend` and `cas`.
    Store {
        /// Under which condition the value is stored.
        verb: Verb,
        /// The key.
        key: &'a [u8],
        /// The peer's own 32 bits, given back with the value.
        flags: u32,
        /// 0 is never; negative is expired at once; up to 2,592,000 is seconds from now; above is a Unix time.
        exptime: i64,
        /// The value, without the line end that follows it.
        value: &'a [u8],
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `incr` and `decr`.
    Arithmetic {
        /// `incr`; otherwise `decr`.
        incr: bool,
        /// The key.
        key: &'a [u8],
        /// How much to add or take away.
        delta: u64,
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `touch`: a new expiry time, the value is not sent.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The new expiry time; see [`Request::Store`].
        exptime: i64,
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `flush_all`: everything stored until now, or until a moment to come, is gone.
    FlushAll {
        /// When, written as an exptime; `None` is now.
        delay: Option<i64>,
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `version`.
    Version,
    /// `verbosity`: how much is logged.
    Verbosity {
        /// From 0, the least.
        level: u32,
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `quit`: the connection is closed without an answer.
    Quit,
    /// `stats` with its subject.
    Stats(Stats),
    /// `cache_memlimit`: the memory limit, in MiB.
    CacheMemlimit {
        /// The new limit in MiB.
        mebibytes: u64,
        /// The peer wants no answer.
        noreply: bool,
    },
    /// `shutdown`.
    Shutdown {
        /// `shutdown graceful`: finish first what has begun.
        graceful: bool,
    },
    /// `mg`.
    MetaGet(Meta<'a>),
    /// `ms`.
    MetaSet {
        /// Key and flags.
        meta: Meta<'a>,
        /// The value, without the line end that follows it.
        value: &'a [u8],
    },
    /// `md`.
    MetaDelete(Meta<'a>),
    /// `ma`.
    MetaArithmetic(Meta<'a>),
    /// `me`: what is known of an item, for people.
    MetaDebug(Meta<'a>),
    /// `mn`: answered `MN`. Clients send it to learn that everything before it has been answered.
    MetaNoop,
    /// A command for memcached's own machinery that has no meaning here and is answered `OK`, so that the
    /// scripts that send it go on.
    Operator {
        /// Which one.
        command: Operator,
    },
    /// `lru_crawler metadump` and `mgdump`. A server that does not offer the stream answers
    /// [`Reply::NotAllowed`](crate::Reply::NotAllowed), as a memcached does where it is switched off.
    Dump {
        /// Which stream.
        dump: Dump,
        /// Of which slab classes, by their bits.
        classes: Classes,
    },
    /// `watch`: a stream of what happens, or [`Reply::NotAllowed`](crate::Reply::NotAllowed).
    Watch(Watch),
    /// `lru_crawler crawl`: look for expired rows now.
    Crawl,
    /// `debugtime`: the server's clock is stopped, goes on, or is moved. Not in builds for use.
    #[cfg(debug_assertions)]
    DebugTime(DebugTime),
    /// `sql`: a statement.
    Sql {
        /// The text of the statement; the engine says what is wrong with it if it is not UTF-8.
        statement: &'a [u8],
    },
    /// `sqlp`: a statement and its parameters.
    SqlParams {
        /// The text of the statement.
        statement: &'a [u8],
        /// A JSON array.
        parameters: &'a [u8],
    },
    /// `call`: a function or procedure and its arguments.
    Call {
        /// Its name, with a schema or without.
        name: &'a [u8],
        /// A JSON array.
        arguments: &'a [u8],
    },
}

/// What `debugtime` does with the clock.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugTime {
    /// `p`: it stands still.
    Pause,
    /// `r`: it goes on from where it stands.
    Resume,
    /// So many seconds are added.
    Add(i64),
}

/// Under which condition a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Always.
    Set,
    /// If the key is not there.
    Add,
    /// If the key is there.
    Replace,
    /// Behind the value that is there; flags and expiry time stay as they are.
    Append,
    /// Before the value that is there; flags and expiry time stay as they are.
    Prepend,
    /// If nobody has changed it since the peer saw this CAS.
    Cas(u64),
}

/// The subject of `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stats {
    /// `stats` alone: the counters of the whole server.
    General,
    /// `stats settings`.
    Settings,
    /// `stats items`.
    Items,
    /// `stats slabs`.
    Slabs,
    /// `stats sizes`.
    Sizes,
    /// `stats conns`.
    Connections,
    /// `stats reset`: counters begin again at 0, answered `RESET`.
    Reset,
    /// `stats detail on` and `stats detail off`: counting by key prefix.
    Detail {
        /// `on`.
        on: bool,
    },
    /// `stats detail dump`.
    DetailDump,
    /// `stats cachedump`: some keys of one slab class.
    CacheDump {
        /// The slab class.
        class: u32,
        /// How many keys at most; 0 is no limit.
        limit: u32,
    },
}

/// A command for memcached's own machinery, answered `OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `slabs`.
    Slabs,
    /// `lru`.
    Lru,
    /// `lru_crawler`.
    LruCrawler,
    /// `extstore`.
    Extstore,
    /// `refresh_certs`.
    RefreshCerts,
}

/// Slab classes that a command names, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(pub(crate) u64);

impl Classes {
    /// Every class.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether a class is among them.
    pub fn contains(self, class: u32) -> bool {
        class < u64::BITS && self.0 >> class & 1 == 1
    }
}

/// What a watcher asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// `fetchers`: keys that are looked up.
    pub fetchers: bool,
    /// `mutations`: keys that are stored.
    pub mutations: bool,
    /// `evictions`: keys that make room for others.
    pub evictions: bool,
    /// `connevents`: connections that come and go.
    pub connevents: bool,
    /// `deletions`: keys that are removed.
    pub deletions: bool,
}

/// A stream of keys or events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// `lru_crawler metadump`.
    Metadump,
    /// `lru_crawler mgdump`.
    Mgdump,
    /// `watch`.
    Watch,
}

/// The keys of one line, in the order they were written. All of them have been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    words: Words<'a>,
}

impl<'a> Keys<'a> {
    /// `rest` holds keys with spaces between and around them.
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { words: Words::new(rest) }
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.words.next_key()
    }
}
