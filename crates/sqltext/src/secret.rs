//! Statements whose texts tell secrets. The log, and the lists of statements that were slow or made rows invalid, ask
//! here before they show a text as it came.

use crate::token::Tokens;

/// What has passwords and keys among its options, by the words behind `CREATE` and `ALTER`.
const HAVE_OPTIONS: &[&str] = &["SERVER", "MAPPING", "ROLE", "USER"];

/// What passwords stand behind, in whatever text: in a statement, in a function's body, in a text that a block
/// executes.
const PASSWORD: &[u8] = b"password";

/// Whether a statement's text, or the values of its parameters, may tell a password: then it is shown without any
/// literal. Who uses the word for something else loses a literal in a log, and no secret.
pub fn may_tell_secret(sql: &str) -> bool {
    mentions_password(sql) || defines_account(sql)
}

fn mentions_password(sql: &str) -> bool {
    sql.as_bytes().windows(PASSWORD.len()).any(|part| part.eq_ignore_ascii_case(PASSWORD))
}

/// Whether it makes or changes a role, a server or who one is there.
fn defines_account(sql: &str) -> bool {
    let mut words = Tokens::new(sql);
    let first = words.next();
    first.is_some_and(|first| first.is_any(&["CREATE", "ALTER"]))
        && words.take(2).any(|word| word.is_any(HAVE_OPTIONS))
}

/// Whether a word says that what stands behind it is a password.
pub fn is_password_word(text: &str) -> bool {
    text.trim_matches('"').as_bytes().eq_ignore_ascii_case(PASSWORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_passwords_are_known_in_every_spelling() {
        for sql in [
            "CREATE USER MAPPING FOR app SERVER s OPTIONS (user 'a', password 'x')",
            "alter user mapping for app server s options (set PassWord 'x')",
            "ALTER USER /* c */ MAPPING FOR app SERVER s OPTIONS (SET \"password\" 'x')",
            "CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (sslkey 'x')",
            "CREATE ROLE a ENCRYPTED PASSWORD 'x'",
            "ALTER USER a WITH PASSWORD E'x'",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD ''x'' '; END $$",
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $f$ ALTER ROLE a PASSWORD 'x' $f$",
            "EXECUTE set_password('x')",
            "SELECT set_config('my.password', $1, false)",
        ] {
            assert!(may_tell_secret(sql), "{sql}");
        }
        for sql in
            ["SELECT 'pass' || 'word'", "CREATE TABLE users (id INT PRIMARY KEY)", "SELECT role FROM t"]
        {
            assert!(!may_tell_secret(sql), "{sql}");
        }
    }
}
