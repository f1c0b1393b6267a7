//! Words of a command line, separated by spaces and by nothing else.

/// The first word of `line` and what follows it; an empty word when there is none.
#[inline]
pub(crate) fn next(line: &[u8]) -> (&[u8], &[u8]) {
    let start = line.iter().position(|byte| *byte != b' ').unwrap_or(line.len());
    let (_, line) = line.split_at_checked(start).unwrap_or((line, &[]));
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    line.split_at_checked(end).unwrap_or((line, &[]))
}
