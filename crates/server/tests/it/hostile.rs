//! Generated logins, records of TLS, and files of rules and roles: nobody is let in, nothing is executed that was not
//! sent, nobody else is hurt.
#![allow(unreachable_pub, dead_code, clippy::print_stdout, reason = "the modules are fuzz targets too")]

#[path = "../../../../fuzz/src/login.rs"]
mod login;
#[path = "../../../../fuzz/src/rules.rs"]
mod rules;
#[path = "../../../../fuzz/src/tls.rs"]
mod tls;

use login::Target;
use tls::Daemon;

use crate::generated::harness::{Random, Run, fails};

/// More than fit into a run's seconds.
const INPUTS: u64 = 50_000;

/// Pieces of logins by the text protocol.
const LINES: &[&[u8]] = &[
    b"set x 0 0 10\r\n",
    b"app secret\r\n",
    b"ms x 10\r\n",
    b"get abc\r\n",
    b"set x 0 0 3\r\n",
    b"\r\n",
    b"app",
];

/// Messages of SASL.
const MESSAGES: &[&[u8]] = &[
    b"\0app\0secret",
    b"app\0app\0secret",
    b"n,,n=app,r=x",
    b"c=biws,r=x,p=AAAA",
    b"",
    b"y,,n=app,r=",
    b"\0",
];

/// Names of mechanisms.
const MECHANISMS: &[&[u8]] = &[b"PLAIN", b"SCRAM-SHA-256", b"SCRAM-SHA-256-PLUS", b"", b"plain"];

fn pick<'a>(random: &mut Random, from: &[&'a [u8]]) -> &'a [u8] {
    from[random.below(from.len())]
}

fn logins(random: &mut Random) -> Vec<u8> {
    let mut stream = vec![random.byte()];
    let binary = stream[0] & 1 == 1;
    for _ in 0..=random.below(6) {
        if binary {
            let (key, value) = (pick(random, MECHANISMS), pick(random, MESSAGES));
            let bare = random.below(4) == 0;
            let opcode = if bare { [0x0b, 0x20][random.below(2)] } else { [0x21, 0x22][random.below(2)] };
            let (key, value) = if bare { (&b""[..], &b""[..]) } else { (key, value) };
            let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
            stream.extend([0x80, opcode, 0, length(key), 0, 0, 0, 0, 0, 0, 0, length(key) + length(value)]);
            stream.extend([0; 12]);
            stream.extend([key, value].concat());
        } else {
            stream.extend(pick(random, LINES));
        }
    }
    if random.below(3) == 0 {
        let at = random.below(stream.len());
        stream[at] ^= 1 << random.below(8);
    }
    stream.truncate(stream.len() - random.below(4).min(stream.len() - 1));
    stream
}

#[test]
fn generated_logins() {
    let target = || {
        let target = Target::new();
        move |data: &[u8]| target.check(data)
    };
    Run::new(INPUTS).of(target, logins);
}

/// A target that takes a right password of the binary protocol for a mistake.
#[test]
fn a_planted_way_in_is_noticed() {
    let planted = || {
        let target = Target::new();
        move |data: &[u8]| {
            let Some((1, stream)) = data.split_first().map(|(choice, stream)| (choice & 1, stream)) else {
                return;
            };
            assert!(!target.transcript(true, [stream]).contains(&"in".to_owned()));
        }
    };
    assert!(fails(Run::new(INPUTS), planted, logins));
}

#[test]
fn generated_records() {
    let target = || {
        let mut daemon = Daemon::new();
        move |data: &[u8]| daemon.check(data)
    };
    Run::new(INPUTS).of(target, |random| random.bytes(12));
}

#[test]
fn a_planted_panic_within_tls_is_noticed() {
    let planted = |armed: bool| {
        move || {
            let mut daemon = Daemon::asked_for("sealed");
            if armed {
                engine::testing::arm("get", b"sealed");
            }
            move |_: &[u8]| daemon.check(b"")
        }
    };
    assert!(!fails(Run::new(1), planted(false), |_| Vec::new()));
    assert!(fails(Run::new(1), planted(true), |_| Vec::new()));
}

/// Words of rules, maps and roles.
const WORDS: &[&[u8]] = &[
    b"local",
    b"host",
    b"hostssl",
    b"hostnossl",
    b"all",
    b"sameuser",
    b"app",
    b"+team",
    b"127.0.0.1/32",
    b"10.0.0.0/8",
    b"10.0.0.0 255.0.0.0",
    b"::1/128",
    b"0.0.0.0/0",
    b"trust",
    b"reject",
    b"peer",
    b"scram-sha-256",
    b"password",
    b"cert",
    b"md5",
    b"protocol=memcached",
    b"protocol=sql",
    b"clientcert=verify-ca",
    b"clientcert=verify-full",
    b"clientname=DN",
    b"map=m",
    b"\"",
    b",",
    b"#",
    b"/re",
    b"@file",
    b"\n",
    b"\n",
    b"\n",
    b"CREATE ROLE a",
    b"CREATE USER b",
    b"GRANT a TO b",
    b"PASSWORD 'x'",
    b"SUPERUSER",
    b"LOGIN",
    b";",
    b";\n",
    b"VALID UNTIL '2030-01-01'",
    b"CONNECTION LIMIT 5",
    b"GRANT CREATE ON SCHEMA public TO a;\n",
    b"ALTER DEFAULT PRIVILEGES FOR ROLE a IN SCHEMA s GRANT SELECT ON TABLES TO b;\n",
    b"--",
    b"m alice a",
];

fn files(random: &mut Random) -> Vec<u8> {
    let mut file = vec![random.byte()];
    for _ in 0..random.below(24) {
        file.extend_from_slice(pick(random, WORDS));
        if random.below(8) > 0 {
            file.push(b' ');
        }
    }
    if random.below(6) == 0 {
        let at = random.below(file.len());
        file[at] ^= 1 << random.below(8);
    }
    file
}

#[test]
fn generated_files_of_rules_and_roles() {
    Run::new(INPUTS).of(|| rules::check, files);
}

/// A parser that passes over lines with a mistake: the rule that was meant is not there, and the next one decides.
#[test]
fn a_planted_tolerance_of_mistakes_is_noticed() {
    let planted = || {
        |data: &[u8]| {
            let tolerant: rules::Parser = |text| {
                let right = |line: &&str| engine::auth::Rules::parse(line).is_ok();
                engine::auth::Rules::parse(&text.lines().filter(right).collect::<Vec<_>>().join("\n"))
            };
            rules::check_rules(data, tolerant);
        }
    };
    assert!(fails(Run::new(INPUTS), planted, files));
}
