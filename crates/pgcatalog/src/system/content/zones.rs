//! `pg_timezone_names`

use super::super::System;
use super::super::rows::{Rows, flag, text};
use crate::zone;

pub(super) fn names(_: &System, rows: &mut Rows) {
    for zone in zone::listed() {
        rows.add([
            ("name", text(&zone.name)),
            ("abbrev", text(&zone.abbreviation)),
            ("utc_offset", text(&span(zone.seconds))),
            ("is_dst", flag(zone.summer)),
        ]);
    }
}

/// Seconds as an interval.
fn span(seconds: i32) -> String {
    let (sign, seconds) = (if seconds < 0 { "-" } else { "" }, seconds.unsigned_abs());
    format!("{sign}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
