//! The limit of memory holds whatever is stored.

use crate::daemon::Daemon;
use crate::seed;

/// What the daemon has beside `-m`: its code, threads, buffers, SQLite, the hints of the hash index.
const BESIDE: u64 = 48 << 20;

#[test]
fn rows_of_all_sizes_never_take_more_than_they_may() {
    const LIMIT: u64 = 32 << 20;
    let daemon = Daemon::start(&["-m", "32"]);
    let mut random = fastrand::Rng::with_seed(seed());
    let mut client = daemon.connect();
    client.change("CREATE TABLE doc (id INT PRIMARY KEY, kind INT, body TEXT)");
    client.change("CREATE INDEX doc_kind ON doc (kind)");
    let mut stored = 0;
    for round in 0..6 {
        // Each round another mix: tiny, middling, near the largest.
        let largest = [100, 5_000, 900_000][round % 3];
        let mut bytes = 0;
        while bytes < 3 * LIMIT / 2 / if largest == 100 { 6 } else { 1 } {
            let value = vec![b'x'; random.usize(largest / 2..largest)];
            let answer = client.set(&format!("key-{}", random.u32(..200_000)), &value);
            assert_eq!(answer, "STORED", "after {stored} bytes");
            bytes += value.len() as u64;
            if random.u8(..) < 3 {
                let (id, size) = (random.u32(..1_000_000), random.usize(..largest));
                client
                    .change(&format!("REPLACE INTO doc VALUES ({id}, {}, printf('%{size}c', 'y'))", id % 50));
            }
        }
        stored += bytes;
        let used = client.stat("bytes");
        assert!(used <= LIMIT, "round {round}: {used} of {LIMIT} bytes");
        let resident = daemon.resident_bytes();
        assert!(resident <= LIMIT + BESIDE, "round {round}: {resident} bytes resident");
        let file = std::fs::metadata(daemon.folder.0.join("arena")).unwrap();
        let committed = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        assert!(committed <= LIMIT, "round {round}: the arena has {committed} bytes");
    }
    assert!(client.stat("evictions") > 0);
    client.change("DELETE FROM doc");
}
