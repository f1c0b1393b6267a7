//! The data set of the SQLcached paper: fragments of pages, made for users.

use std::fmt::Write as _;

/// Rows of the data set.
pub(crate) const ROWS: u64 = 100_000;
/// Pages: 3.3 rows each.
pub(crate) const PAGES: u64 = 30_000;
/// Users: 100 rows each.
pub(crate) const USERS: u64 = 1_000;

/// The table and both indexes.
pub(crate) const DEFINITIONS: [&str; 3] = [
    "CREATE TABLE fragments \
     (key TEXT PRIMARY KEY, page_id INTEGER NOT NULL, user_id INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE INDEX fragments_page ON fragments (page_id)",
    "CREATE INDEX fragments_user ON fragments (user_id)",
];
/// Takes the table away again.
pub(crate) const DROP: &str = "DROP TABLE fragments";
/// Expires one page.
pub(crate) const EXPIRE_PAGE: &str = "DELETE FROM fragments WHERE page_id = ?";
/// Expires one user.
pub(crate) const EXPIRE_USER: &str = "DELETE FROM fragments WHERE user_id = ?";

/// Rows that one statement inserts.
const BATCH: usize = 100;
/// Bytes of a fragment.
const BODY_BYTES: usize = 100;

/// One row's place in the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Its number.
    pub(crate) number: u64,
    /// Its page.
    pub(crate) page: u64,
    /// Its user.
    pub(crate) user: u64,
}

impl Fragment {
    /// Its key, in a table and in memcached.
    pub(crate) fn key(&self) -> String {
        format!("f:{}:{}", self.page, self.number)
    }

    /// Its text.
    pub(crate) fn body(&self) -> String {
        format!("{:-<BODY_BYTES$}", self.number)
    }
}

/// All rows; a page's rows belong to different users.
pub(crate) fn fragments() -> Vec<Fragment> {
    (0..ROWS).map(|number| Fragment { number, page: number % PAGES, user: spread(number) % USERS }).collect()
}

/// The rows of one page or user, which come back after their expiry.
pub(crate) fn chosen(all: &[Fragment], wanted: impl Fn(&Fragment) -> bool) -> Vec<Fragment> {
    all.iter().copied().filter(|fragment| wanted(fragment)).collect()
}

/// `INSERT` statements for rows, many rows each.
pub(crate) fn inserts(rows: &[Fragment]) -> Vec<String> {
    rows.chunks(BATCH).map(insert).collect()
}

fn insert(rows: &[Fragment]) -> String {
    let mut text = String::from("INSERT INTO fragments (key, page_id, user_id, body) VALUES ");
    for (index, row) in rows.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let Fragment { page, user, .. } = row;
        // A write to a string cannot fail.
        let _ = write!(text, "{comma}('{}',{page},{user},'{}')", row.key(), row.body());
    }
    text
}

/// Scatters the users over the pages, each user getting his share.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(7_919) % ROWS
}

#[cfg(test)]
mod tests {
    use super::{PAGES, USERS, chosen, fragments, inserts};

    #[test]
    fn pages_have_three_rows_and_users_a_hundred() {
        let all = fragments();
        for user in [0, 17, USERS - 1] {
            assert_eq!(chosen(&all, |fragment| fragment.user == user).len(), 100);
        }
        for page in [0, PAGES - 1] {
            assert!(matches!(chosen(&all, |fragment| fragment.page == page).len(), 3 | 4));
        }
        assert_eq!(inserts(&all).len(), 1_000);
    }
}
