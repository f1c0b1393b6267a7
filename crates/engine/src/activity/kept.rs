//! The history in a file beside the arena, so that it outlives the process, as rows do.
//!
//! Each point has a place of its own in the file, with a checksum, and is written when it is taken. So a process that
//! is killed loses no point, and a point that was half written is not believed. The file has the size of the rings.
//!
//! ```text
//!   header (magic, words of a point, places of each ring) | places of the seconds | places of the minutes
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rapidhash::v3::rapidhash_v3;
use sql::Counts;
use store::TableId;

use super::history::{Levels, Point};
use crate::limits::{MINUTES_KEPT, SECONDS_KEPT, TABLES_IN_POINT};

/// Words of a point: its end, its length, the counts, five levels, the tables, the checksum.
const WORDS: usize = 2 + Counts::NUMBER + 5 + 2 * TABLES_IN_POINT + 1;
const PLACE_BYTES: usize = 8 * WORDS;
/// Places of each ring.
const PLACES: [usize; 2] = [SECONDS_KEPT, MINUTES_KEPT];
/// What begins a file that this program reads. A file of another shape begins from nothing.
const HEADER: [u64; 4] =
    [u64::from_le_bytes(*b"sqlhist1"), WORDS as u64, SECONDS_KEPT as u64, MINUTES_KEPT as u64];
const HEADER_BYTES: usize = 8 * HEADER.len();

/// The file, and where the next point of each ring goes.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    next: [usize; 2],
}

impl Kept {
    /// Takes a file over, with the points that it has, the oldest of each ring first.
    pub(super) fn open(file: File) -> io::Result<(Self, [Vec<Point>; 2])> {
        if !has_header(&file)? {
            file.set_len(0)?;
            file.write_all_at(&bytes_of(&HEADER), 0)?;
        }
        // Places that nobody wrote yet are zeros, which are no point.
        file.set_len((HEADER_BYTES + PLACE_BYTES * (PLACES[0] + PLACES[1])) as u64)?;
        let mut kept = Self { file, next: [0; 2] };
        let mut rings = [Vec::new(), Vec::new()];
        for (ring, points) in rings.iter_mut().enumerate() {
            let mut found = kept.read(ring)?;
            found.sort_by_key(|(_, point)| point.at_ms);
            kept.next[ring] = found.last().map_or(0, |(place, _)| (place + 1) % PLACES[ring]);
            points.extend(found.into_iter().map(|(_, point)| point));
        }
        Ok((kept, rings))
    }

    /// The points of a ring with their places.
    fn read(&self, ring: usize) -> io::Result<Vec<(usize, Point)>> {
        let mut bytes = vec![0; PLACE_BYTES * PLACES[ring]];
        self.file.read_exact_at(&mut bytes, offset(ring, 0))?;
        let places = bytes.chunks_exact(PLACE_BYTES).enumerate();
        Ok(places.filter_map(|(place, bytes)| Some((place, decode(bytes)?))).collect())
    }

    /// Writes a point in the place of the oldest.
    pub(super) fn write(&mut self, ring: usize, point: &Point) -> io::Result<()> {
        self.file.write_all_at(&encode(point), offset(ring, self.next[ring]))?;
        self.next[ring] = (self.next[ring] + 1) % PLACES[ring];
        Ok(())
    }
}

/// Where a place begins.
fn offset(ring: usize, place: usize) -> u64 {
    let before: usize = PLACES[..ring].iter().sum();
    (HEADER_BYTES + PLACE_BYTES * (before + place)) as u64
}

fn has_header(file: &File) -> io::Result<bool> {
    let mut bytes = [0; HEADER_BYTES];
    let long_enough = file.metadata()?.len() >= HEADER_BYTES as u64;
    if long_enough {
        file.read_exact_at(&mut bytes, 0)?;
    }
    Ok(long_enough && bytes[..] == bytes_of(&HEADER)[..])
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn encode(point: &Point) -> Vec<u8> {
    let Point { at_ms, ns, counts, levels } = point;
    let Levels { connections, rows, row_bytes, segment_bytes, index_bytes, tables } = levels;
    let mut words = vec![at_ms.cast_unsigned(), *ns];
    words.extend(counts.each().map(|(_, count)| count));
    words.extend([connections, rows, row_bytes, segment_bytes, index_bytes]);
    words.extend(tables.iter().flat_map(|(table, bytes)| [table.0.into(), *bytes]));
    let mut bytes = bytes_of(&words);
    bytes.extend(rapidhash_v3(&bytes).to_le_bytes());
    bytes
}

/// The point of a place; none where none was written, or not whole.
fn decode(bytes: &[u8]) -> Option<Point> {
    let (words, checksum) = bytes.split_last_chunk::<8>()?;
    if rapidhash_v3(words) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut next = || words.next().unwrap_or_default();
    let (at_ms, ns) = (next().cast_signed(), next());
    let counts = Counts::from_each(&mut next);
    let [connections, rows, row_bytes, segment_bytes, index_bytes] = std::array::from_fn(|_| next());
    let tables = std::array::from_fn(|_| (TableId(u16::try_from(next()).unwrap_or_default()), next()));
    let levels = Levels { connections, rows, row_bytes, segment_bytes, index_bytes, tables };
    (ns > 0).then_some(Point { at_ms, ns, counts, levels })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that goes with the test.
    fn file(name: &str) -> impl Fn() -> File {
        let path = std::env::temp_dir().join(format!("history-{name}-{}", std::process::id()));
        let first = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        move || first.try_clone().unwrap()
    }

    fn point(at_ms: i64) -> Point {
        let mut point = Point { at_ms, ns: 7, counts: Counts::default(), levels: Levels::default() };
        (point.counts.hits, point.counts.cpu_ms, point.levels.rows) = (at_ms.cast_unsigned(), 3, 9);
        point.levels.tables[1] = (TableId(4), 65_536);
        point
    }

    #[test]
    fn points_come_back_as_they_were_the_oldest_first() {
        let file = file("back");
        let (mut kept, rings) = Kept::open(file()).unwrap();
        assert!(rings.iter().all(Vec::is_empty));
        let last = i64::try_from(SECONDS_KEPT).unwrap() + 20;
        for second in 1..=last {
            kept.write(0, &point(second)).unwrap();
        }
        kept.write(1, &point(60)).unwrap();
        let (mut kept, [seconds, minutes]) = Kept::open(file()).unwrap();
        assert_eq!((seconds.len(), minutes.len()), (SECONDS_KEPT, 1));
        assert_eq!((seconds[0].at_ms, seconds[SECONDS_KEPT - 1].at_ms), (21, last));
        assert_eq!(format!("{:?}", seconds[0]), format!("{:?}", point(21)));
        // The next one takes the place of the oldest.
        kept.write(0, &point(last + 1)).unwrap();
        let (_, [seconds, _]) = Kept::open(file()).unwrap();
        assert_eq!((seconds[0].at_ms, seconds.len()), (22, SECONDS_KEPT));
    }

    #[test]
    fn what_is_not_whole_is_no_point() {
        let file = file("torn");
        let (mut kept, _) = Kept::open(file()).unwrap();
        (1..=3).for_each(|second| kept.write(0, &point(second)).unwrap());
        file().write_all_at(&[0xff; 8], offset(0, 1) + 16).unwrap();
        let (_, [seconds, _]) = Kept::open(file()).unwrap();
        assert_eq!(seconds.iter().map(|point| point.at_ms).collect::<Vec<_>>(), [1, 3]);
        // A file of another shape is nobody's history.
        file().write_all_at(b"sqlhist0", 0).unwrap();
        let (_, rings) = Kept::open(file()).unwrap();
        assert!(rings.iter().all(Vec::is_empty));
        for length in [0, 5, HEADER_BYTES as u64] {
            file().set_len(length).unwrap();
            assert!(Kept::open(file()).is_ok(), "{length} bytes");
        }
    }
}
