//! Traces: which object a web application asked its ORM cache for, access by access.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::{Context, Failure, Result};

/// Where traces lie beside this project, if at all.
pub(crate) const SIBLINGS: &str = "../shared/traces";
/// The demo's among them.
const SIBLING: &str = "../shared/traces/orm-busy.be32.zst";

/// Accesses in the generated trace.
const ACCESSES: usize = 5_000_000;
/// Popularity in the generated trace: accesses of the object of a rank, a straight line between two points on
/// logarithmic axes. The points are those of a web shop's ORM cache on a busy day.
const POPULARITY: [(f64, f64); 9] = [
    (1.0, 27_000.0),
    (10.0, 10_600.0),
    (100.0, 2_840.0),
    (1_000.0, 737.0),
    (5_000.0, 204.0),
    (10_000.0, 79.0),
    (30_000.0, 16.0),
    (60_000.0, 8.0),
    (84_000.0, 4.0),
];
/// Share of accesses in the generated trace that repeat one of the last [`AGAIN_REACH`].
const AGAIN_SHARE: f64 = 0.72;
/// How far back they reach.
const AGAIN_REACH: f64 = 4_000.0;
/// Objects that the generated trace draws from; some of the rarest are never drawn.
const UNIVERSE: u32 = 84_000;
/// Object types in the generated trace.
const TYPES: u32 = 30;
/// Seed of the generated trace: it is the same everywhere.
const SEED: u64 = 20_160_419;

/// The accesses in order, and where they come from.
#[derive(Debug)]
pub(crate) struct Trace {
    /// One key for each access.
    pub(crate) keys: Vec<u64>,
    /// For the report.
    pub(crate) origin: String,
}

/// What a key of the ORM trace means: type in the upper 5 of 32 bits, then 18 bits of id, then 9 of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    /// Object type.
    pub(crate) kind: u64,
    /// Object id within the type.
    pub(crate) id: u64,
    /// Part of the object.
    pub(crate) index: u64,
}

impl From<u64> for Object {
    fn from(key: u64) -> Self {
        Self { kind: key >> 27 & 31, id: key >> 9 & 0x3_ffff, index: key & 511 }
    }
}

impl Trace {
    /// The named file, or the sibling folder's, or a generated trace of the same shape.
    pub(crate) fn find(named: Option<&PathBuf>) -> Result<Self> {
        match named {
            Some(path) => Self::read(path),
            None if Path::new(SIBLING).exists() => Self::read(Path::new(SIBLING)),
            None => Ok(Self::generate(ACCESSES)),
        }
    }

    /// Reads `*.be32` or `*.be64`, big-endian numbers without anything between, as they are or as `.zst`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = path.to_string_lossy().into_owned();
        let bytes = fs::read(path).context(|| name.clone())?;
        let (plain, bytes) = match name.strip_suffix(".zst") {
            Some(plain) => (plain, decompress(&bytes).context(|| name.clone())?),
            None => (name.as_str(), bytes),
        };
        let keys = match plain.rsplit('.').next() {
            Some("be32") => {
                bytes.as_chunks().0.iter().map(|&word| u64::from(u32::from_be_bytes(word))).collect()
            }
            Some("be64") => bytes.as_chunks().0.iter().map(|&word| u64::from_be_bytes(word)).collect(),
            _ => {
                return Err(Failure::new(format!(
                    "{name}: a trace is named *.be32 or *.be64, *.zst if compressed"
                )));
            }
        };
        Ok(Self { keys, origin: name })
    }

    /// Accesses drawn at random, some by popularity and some from what was asked for a moment ago.
    pub(crate) fn generate(accesses: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut keys: Vec<u64> = (0..UNIVERSE).map(generated_key).collect();
        random.shuffle(&mut keys);
        let mut reach = Vec::with_capacity(keys.len());
        let mut total = 0.0;
        for rank in 1..=UNIVERSE {
            total += popularity(f64::from(rank));
            reach.push(total);
        }
        let mut trace: Vec<u64> = Vec::with_capacity(accesses);
        while trace.len() < accesses {
            let point = random.f64() * total;
            let rank = reach.partition_point(|&up_to| up_to < point);
            let popular = keys.get(rank).copied().unwrap_or(0);
            trace.push(again(&trace, &mut random).unwrap_or(popular));
        }
        Self { keys: trace, origin: "generated".into() }
    }

    /// How many different keys there are.
    pub(crate) fn distinct(&self) -> usize {
        self.keys.iter().copied().collect::<hashbrown::HashSet<u64>>().len()
    }
}

/// With a fixed chance, one of the last accesses; the last few more likely than those long ago.
fn again(trace: &[u64], random: &mut fastrand::Rng) -> Option<u64> {
    if random.f64() >= AGAIN_SHARE {
        return None;
    }
    let distance = AGAIN_REACH.powf(random.f64());
    trace.get(trace.len().checked_sub(rounded(distance))?).copied()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and AGAIN_REACH")]
fn rounded(number: f64) -> usize {
    number as usize
}

/// Accesses of a rank by [`POPULARITY`].
fn popularity(rank: f64) -> f64 {
    for points in POPULARITY.windows(2) {
        if let [(from, high), (to, low)] = *points
            && rank <= to
        {
            let way = (rank / from).ln() / (to / from).ln();
            return high * (low / high).powf(way);
        }
    }
    0.0
}

/// Consecutive ids, spread over the types; every fifth object has two parts.
fn generated_key(number: u32) -> u64 {
    let kind = number % TYPES;
    let part = number / TYPES;
    let id = part / 6 * 5 + (part % 6).min(4);
    let index = part % 6 / 5;
    u64::from(kind << 27 | id << 9 | index)
}

fn decompress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(std::io::Error::other)?;
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain)?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::{Object, Trace};

    #[test]
    fn a_key_falls_into_its_parts() {
        assert_eq!(Object::from(29 << 27 | 1_234 << 9 | 7), Object { kind: 29, id: 1_234, index: 7 });
    }

    #[test]
    fn the_generated_trace_is_the_same_each_time_and_has_30_types() {
        let trace = Trace::generate(100_000);
        assert_eq!(trace.keys, Trace::generate(100_000).keys);
        let kinds: hashbrown::HashSet<u64> = trace.keys.iter().map(|&key| Object::from(key).kind).collect();
        assert_eq!(kinds.len(), 30);
    }
}
