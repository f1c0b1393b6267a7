//! What must hold for every file of rules, maps and roles: a mistake is named by its line and makes the whole file
//! wrong, nobody beyond this machine is believed, and roles are written as they are read.
//!
//! The functions here are run by libFuzzer through `fuzz_targets/rules.rs`, and on the stable toolchain by the tests of
//! the `server` crate, which include this file.

use engine::auth::{FileError, Maps, Method, Origin, Peer, Protocol, Roles, Rules};

/// What reads rules: the real thing, or one with a planted mistake.
pub type Parser = fn(&str) -> Result<Rules, FileError>;

/// A file of rules.
pub fn check_rules(data: &[u8], parse: Parser) {
    let text = String::from_utf8_lossy(data);
    let lines: Vec<&str> = text.lines().collect();
    let wrong = lines.iter().position(|line| parse_line(line).is_err());
    let rules = match (parse(&text), wrong) {
        (Err(error), Some(at)) => {
            assert_eq!(error.line, at + 1, "the first mistake: {error}");
            return;
        }
        (Ok(rules), None) => rules,
        (parsed, wrong) => panic!("{parsed:?} of a file whose first mistake is in {wrong:?}"),
    };
    assert_eq!(parse(&format!("# more\n\n{text}\n# more")).as_ref(), Ok(&rules), "comments say nothing");
    let roles = Roles::parse("CREATE ROLE app LOGIN; CREATE ROLE team; GRANT team TO app").expect("roles");
    for (address, encrypted) in [("203.0.113.9", false), ("203.0.113.9", true), ("2001:db8::1", false)] {
        let origin = Origin::Network(address.parse().expect("an address"), encrypted);
        for (protocol, role) in [(Protocol::Sql, "app"), (Protocol::Memcached, "team")] {
            let peer = Peer { origin: &origin, protocol, database: Some("app"), certificate: None };
            let method = rules.method(peer, role, &roles);
            assert!(
                !matches!(method, Method::Trust | Method::Peer | Method::Cert),
                "{method:?} of a stranger"
            );
            let shown = method == Method::Password && protocol == Protocol::Sql;
            assert!(!shown || encrypted, "a password that everybody on the way reads");
        }
    }
}

/// A line by itself.
fn parse_line(line: &str) -> Result<Rules, FileError> {
    Rules::parse(line)
}

/// A file of maps.
pub fn check_maps(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let wrong = text.lines().position(|line| Maps::parse(line).is_err());
    assert_eq!(Maps::parse(&text).err().map(|error| error.line), wrong.map(|at| at + 1), "the first mistake");
}

/// A file of roles.
pub fn check_roles(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Roles::parse(&text) {
        Err(error) => assert!((1..=text.lines().count().max(1)).contains(&error.line), "{error}"),
        Ok(roles) => {
            let written = roles.to_file();
            let again = Roles::parse(&written).expect("what was written");
            assert_eq!(again.to_file(), written, "roles are written as they are read");
        }
    }
}

/// The first byte says which file it is.
pub fn check(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    match kind % 3 {
        0 => check_rules(text, Rules::parse),
        1 => check_maps(text),
        _ => check_roles(text),
    }
}
