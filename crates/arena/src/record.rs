//! For tests: a log of every store to the file, and images of it to start from.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Bytes of a page of an image.
const PAGE_BYTES: usize = 4096;
const PAGE_WORDS: u64 = (PAGE_BYTES / 8) as u64;

/// Keeps the stores in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    on: AtomicBool,
    log: Mutex<Vec<(u64, u64)>>,
}

impl Recorder {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self, word: u64, value: u64, store: impl FnOnce()) {
        let mut log = self.log.lock();
        store();
        log.push((word, value));
    }

    pub(crate) fn exchange(&self, word: u64, value: u64, exchange: impl FnOnce() -> bool) -> bool {
        let mut log = self.log.lock();
        let done = exchange();
        if done {
            log.push((word, value));
        }
        done
    }
}

impl crate::Arena {
    /// Begins to record every store to the file.
    pub fn start_recording(&self) {
        self.map.recorder().log.lock().clear();
        self.map.recorder().on.store(true, Ordering::SeqCst);
    }

    /// Ends recording: each store made since as (word of the file, value), in order.
    pub fn stop_recording(&self) -> Vec<(u64, u64)> {
        self.map.recorder().on.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.map.recorder().log.lock())
    }

    /// The bytes of the file as they are now.
    pub fn image(&self) -> Image {
        Image::read(self.map.file(), self.layout.total_bytes)
    }
}

/// The bytes of an arena's file; pages of zeros are left out.
#[derive(Clone, Debug)]
pub struct Image {
    pages: BTreeMap<u64, Box<[u64]>>,
    bytes: u64,
}

impl Image {
    fn read(file: &std::os::fd::OwnedFd, bytes: u64) -> Self {
        use rustix::fs::SeekFrom;
        let mut pages = BTreeMap::new();
        let mut at = 0;
        while let Ok(data) = rustix::fs::seek(file, SeekFrom::Data(at)) {
            let hole = rustix::fs::seek(file, SeekFrom::Hole(data)).unwrap_or(bytes);
            for page in data / PAGE_BYTES as u64..hole.div_ceil(PAGE_BYTES as u64) {
                let mut buffer = [0; PAGE_BYTES];
                let read = rustix::io::pread(file, &mut buffer, page * PAGE_BYTES as u64).unwrap_or(0);
                if buffer[..read].iter().any(|byte| *byte != 0) {
                    let words = buffer.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
                    pages.insert(page, words);
                }
            }
            at = hole;
        }
        Self { pages, bytes }
    }

    /// Makes one store in the image.
    pub fn store(&mut self, word: u64, value: u64) {
        let page = self.pages.entry(word / PAGE_WORDS).or_insert_with(|| vec![0; PAGE_WORDS as usize].into());
        page[(word % PAGE_WORDS) as usize] = value;
    }

    /// The word as it is.
    pub fn load(&self, word: u64) -> u64 {
        self.pages.get(&(word / PAGE_WORDS)).map_or(0, |page| page[(word % PAGE_WORDS) as usize])
    }

    /// The words of every page that is not all zeros: where a bit can be flipped with effect.
    pub fn occupied_words(&self) -> Vec<u64> {
        self.pages.keys().flat_map(|page| page * PAGE_WORDS..(page + 1) * PAGE_WORDS).collect()
    }

    /// Length of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Cuts the file, or makes it longer.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.pages.retain(|page, _| (page + 1) * PAGE_BYTES as u64 <= bytes);
    }

    /// A file in anonymous memory with these bytes.
    pub(crate) fn to_file(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        let file = rustix::fs::memfd_create("arena", rustix::fs::MemfdFlags::CLOEXEC)?;
        self.write_to(&file)?;
        Ok(file)
    }

    /// Writes these bytes to an empty file.
    pub fn write_to(&self, file: impl std::os::fd::AsFd) -> std::io::Result<()> {
        rustix::fs::ftruncate(&file, self.bytes)?;
        for (page, words) in &self.pages {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            rustix::io::pwrite(&file, &bytes, page * PAGE_BYTES as u64)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Image {
    /// A file of zeros.
    pub(crate) fn empty(bytes: u64) -> Self {
        Self { pages: BTreeMap::new(), bytes }
    }
}
