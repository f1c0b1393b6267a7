//! The kernel's account of this process.

/// Processor time in user and in system mode, from the kernel's account of this process, in 1/100 s; zero where `/proc`
/// is not mounted.
pub(crate) fn processor_ticks() -> [u64; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name in brackets, which may hold anything; after it come single words.
    let words: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    [11, 12].map(|field: usize| words.get(field).and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// Resident memory of this process, the part of the arena that it has touched included; zero where `/proc` is not
/// mounted.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib =
        line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
