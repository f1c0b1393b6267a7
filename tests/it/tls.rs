//! TLS with real clients: libpq 18 (psycopg) and psql, the suites of psycopg, pgjdbc and pgx, node-postgres,
//! pymemcache, Dalli and openssl.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::daemon::{Daemon, Folder, free_port, program, run};
use crate::drivers::place::SqlDaemon;
use crate::drivers::suite::{SUITES, fetched, node};
use crate::drivers::{expected, missing, report};

/// Makes an authority, the server's certificate and one for the role `app`, as docs/security.md shows.
const CERTIFICATES: &str = "
subject() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -subj $2 -out $1.csr; }
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ours -keyout ca.key -out ca.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ours -keyout ca2.key -out ca2.pem
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > names
printf 'basicConstraints=CA:FALSE' > client
for server in server second; do
  subject $server /CN=localhost
  openssl x509 -req -in $server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out $server.pem
done
subject app /CN=app
openssl x509 -req -in app.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile client -out app.pem
subject foreign /CN=app
openssl x509 -req -in foreign.csr -CA ca2.pem -CAkey ca2.key -CAcreateserial -days 2 -extfile client -out foreign.pem
chmod 600 *.key
";

/// A directory with certificates.
fn certificates() -> Folder {
    let folder = Folder::new();
    let (code, out, error) = run(Command::new("sh").args(["-ec", CERTIFICATES]).current_dir(&folder.0));
    assert_eq!(code, Some(0), "{out}{error}");
    folder
}

/// The flags of TLS.
fn flags(folder: &Folder) -> Vec<String> {
    let path = |name: &str| folder.0.join(name).display().to_string();
    [
        "--ssl",
        "--ssl-cert-file",
        &path("server.pem"),
        "--ssl-key-file",
        &path("server.key"),
        "--ssl-ca-file",
        &path("ca.pem"),
    ]
    .map(str::to_owned)
    .to_vec()
}

const RULES: &str = "local all all trust
host all all 127.0.0.1/32 trust protocol=memcached
hostssl all app 127.0.0.1/32 cert
hostssl all bound 127.0.0.1/32 scram-sha-256
hostssl all shown 127.0.0.1/32 password
hostssl all both 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
";

const ROLES: &str = "CREATE ROLE chief SUPERUSER LOGIN;
CREATE ROLE app LOGIN;
CREATE ROLE bound LOGIN PASSWORD 'pw';
CREATE ROLE shown LOGIN PASSWORD 'pw';
CREATE ROLE both LOGIN PASSWORD 'pw';
CREATE ROLE writer LOGIN PASSWORD 'pw';
GRANT pg_read_all_data TO writer;
GRANT pg_write_all_data TO writer;
";

/// A daemon with certificates, roles and rules.
struct Guarded {
    daemon: Daemon,
    certificates: Folder,
    sql_port: u16,
}

impl Guarded {
    fn start(rules: &str, more: &[&str]) -> Self {
        let (certificates, folder, sql_port) = (certificates(), Folder::new(), free_port());
        let (rules, roles) = (folder.write("rules", rules), folder.write("roles", ROLES));
        fs::set_permissions(&roles, fs::Permissions::from_mode(0o600)).unwrap();
        let text = |path: &PathBuf| path.display().to_string();
        let mut flags = flags(&certificates);
        flags.extend(["--hba-file".into(), text(&rules), "--roles-file".into(), text(&roles)]);
        flags.extend(["--sql-port".into(), sql_port.to_string()]);
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Self { daemon: Daemon::start_in(folder, &flags), certificates, sql_port }
    }

    fn path(&self, name: &str) -> String {
        self.certificates.0.join(name).display().to_string()
    }

    /// What a script of Python printed that knows the ports and where the certificates are.
    fn python(&self, script: &str) -> String {
        let folder = self.certificates.0.display();
        let given = format!("PORT, SQL, HERE = {}, {}, '{folder}/'\n", self.daemon.port, self.sql_port);
        let mut command = Command::new(fetched("python/bin/python"));
        let (_, out, error) = run(command.args(["-B", "-c", &(given + script)]));
        out + &error
    }

    /// What psql printed.
    fn psql(&self, options: &str) -> String {
        let connection = format!(
            "host=localhost port={} dbname=x sslrootcert={} {options}",
            self.sql_port,
            self.path("ca.pem")
        );
        let mut command = Command::new("psql");
        command.args(["-X", "-w", "-At", &connection, "-c", "SELECT ssl, version FROM pg_stat_ssl"]);
        let (_, out, error) = run(command.env("PGPASSWORD", "pw").env("LC_ALL", "C.UTF-8"));
        out + &error
    }
}

/// Connects by libpq 18, says what became of it, and what pg_stat_ssl says of it.
const LIBPQ: &str = "
import psycopg
base = dict(host='localhost', port=SQL, dbname='x', sslrootcert=HERE + 'ca.pem', sslcert='', sslkey='', connect_timeout=20)
def attempt(**more):
    try:
        with psycopg.connect(**{**base, **more}) as connection:
            row = connection.execute('SELECT ssl, version, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()').fetchone()
            print(*row, 'binary' if connection.pgconn.ssl_in_use else 'plain')
    except psycopg.OperationalError as error:
        print(str(error).strip().splitlines()[-1])
app = dict(user='app', sslcert=HERE + 'app.pem', sslkey=HERE + 'app.key')
foreign = dict(user='app', sslcert=HERE + 'foreign.pem', sslkey=HERE + 'foreign.key')
";

#[test]
fn libpq_18() {
    let guarded = Guarded::start(RULES, &[]);
    for (attempt, said) in [
        (
            "user='bound', password='pw', sslmode='verify-full', channel_binding='require', require_auth='scram-sha-256'",
            "True TLSv1.3 None",
        ),
        ("user='bound', password='pw', sslmode='require', channel_binding='disable'", "True TLSv1.3 None"),
        ("user='bound', password='pw', sslmode='verify-full', sslnegotiation='direct'", "True TLSv1.3 None"),
        (
            "user='bound', password='pw', ssl_max_protocol_version='TLSv1.2', channel_binding='require'",
            "True TLSv1.2 None",
        ),
        ("user='bound', password='wrong', sslmode='require'", "password authentication failed"),
        ("user='bound', password='pw', sslmode='disable'", "no encryption"),
        (
            "user='bound', password='pw', sslmode='verify-full', sslrootcert=HERE + 'ca2.pem'",
            "certificate verify failed",
        ),
        ("user='shown', password='pw', sslmode='require', require_auth='password'", "True TLSv1.3 None"),
        (
            "user='shown', password='pw', sslmode='require', require_auth='scram-sha-256'",
            "authentication method requirement",
        ),
        ("**app, sslmode='verify-full', sslcertmode='require'", "True TLSv1.3 CN=app"),
        ("**{**app, 'user': 'bound'}, password='pw', sslmode='verify-full'", "True TLSv1.3 CN=app"),
        ("**foreign, sslmode='require'", "SSL error"),
        ("user='app', sslmode='require'", "certificate authentication failed"),
        ("**{**app, 'user': 'both'}, password='pw', sslmode='require'", "True TLSv1.3 CN=app"),
        ("user='both', password='pw', sslmode='require'", "certificate authentication failed"),
        ("user='chief', sslmode='require'", "SSL encryption"),
    ] {
        let told = guarded.python(&format!("{LIBPQ}attempt({attempt})\n"));
        assert!(told.contains(said), "{attempt}: {told}");
    }
    // A statement is cancelled over TLS, and large results come whole.
    let told = guarded.python(&format!(
        "{LIBPQ}
import threading, time
connection = psycopg.connect(**{{**base, 'user': 'bound', 'password': 'pw', 'sslmode': 'require'}})
print(len(connection.execute(\"SELECT repeat('x', 3000000)\").fetchone()[0]))
threading.Timer(0.2, connection.cancel_safe).start()
try:
    connection.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n')
except psycopg.errors.QueryCanceled:
    print('canceled')
"
    ));
    assert_eq!(told, "3000000\ncanceled\n");
}

#[test]
fn psql() {
    let guarded = Guarded::start(RULES, &[]);
    assert_eq!(guarded.psql("user=bound sslmode=verify-full channel_binding=require"), "t|TLSv1.3\n");
    let (cert, key) = (guarded.path("app.pem"), guarded.path("app.key"));
    assert_eq!(guarded.psql(&format!("user=app sslmode=require sslcert={cert} sslkey={key}")), "t|TLSv1.3\n");
    assert!(guarded.psql("user=bound sslmode=disable").contains("no encryption"));
}

/// The drivers' own suites, where nothing else than TLS is let in. Their memcached clients speak without it.
#[test]
fn suites_of_drivers() {
    let folder = certificates();
    let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 trust protocol=memcached\n";
    let rules = folder.write("rules", rules).display().to_string();
    let mut all = flags(&folder);
    all.extend(["-l", "notls:127.0.0.1", "--hba-file", &rules].map(str::to_owned));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for name in ["psycopg", "pgjdbc", "pgx"] {
        let daemon = SqlDaemon::start(&all);
        let suite = SUITES.iter().find(|suite| suite.name == name).unwrap();
        report(name, &expected(missing(), name, suite.run(&daemon.place)));
    }
}

/// What openssl's client heard within TLS.
fn openssl(port: u16, options: &[&str], says: &str) -> (String, String) {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{port}")]).args(options);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A server that has refused reads nothing.
    let _closed = child.stdin.take().unwrap().write_all(says.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn memcached_clients() {
    let rules = "hostssl all app 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 password protocol=memcached\nlocal all all trust\n";
    let guarded = Guarded::start(rules, &[]);
    let told = guarded.python(
        "
import ssl
from pymemcache.client.base import Client
trusting = ssl.create_default_context(cafile=HERE + 'ca.pem')
client = Client(('localhost', PORT), tls_context=trusting)
print(client.set('login', 'shown pw', noreply=False))
try:
    client.get('a')
except Exception as error:
    print(error)
trusting.load_cert_chain(HERE + 'app.pem', HERE + 'app.key')
client = Client(('localhost', PORT), tls_context=trusting)
try:
    client.set('a', 'b', noreply=False)
except Exception as error:
    print(error)
print(client.version())
",
    );
    assert_eq!(told, "True\nb'permission denied'\nb'permission denied'\nb'1.6.45'\n");
    let port = guarded.daemon.port;
    let ca = guarded.path("ca.pem");
    let known = ["-CAfile", ca.as_str(), "-verify_return_error"];
    assert_eq!(openssl(port, &known, "get abc\r\nquit\r\n").0, "CLIENT_ERROR unauthenticated\n");
    for version in ["-tls1_2", "-tls1_3"] {
        let (said, error) =
            openssl(port, &[&known[..], &[version]].concat(), "set x 0 0 8\r\nshown pw\r\nquit\r\n");
        assert_eq!(said, "STORED\n", "{error}");
    }
    for version in ["-tls1", "-tls1_1"] {
        assert_eq!(openssl(port, &[version], "quit\r\n").0, "");
    }
    // Asking for another round of the handshake ends the connection of a client, and nobody else's.
    let (_, error) = openssl(port, &["-tls1_2", "-legacy_renegotiation"], "R\n");
    assert!(!error.contains("panic"), "{error}");
    assert_eq!(openssl(port, &known, "get abc\r\nquit\r\n").0, "CLIENT_ERROR unauthenticated\n");
}

#[test]
fn memcached_flags() {
    let folder = certificates();
    let path = |name: &str| folder.0.join(name).display().to_string();
    let options = format!(
        "ssl_chain_cert={},ssl_key={},ssl_ca_cert={},ssl_verify_mode=2,ssl_min_version=3,ssl_session_cache",
        path("server.pem"),
        path("server.key"),
        path("ca.pem")
    );
    let other = free_port();
    let daemon = Daemon::start(&["-Z", "-o", &options, "-l", &format!("127.0.0.1,notls:127.0.0.1:{other}")]);
    let says = "set a 0 0 1\r\na\r\nquit\r\n";
    let (app, key, foreign) = (path("app.pem"), path("app.key"), path("foreign.pem"));
    assert_eq!(openssl(daemon.port, &["-cert", &app, "-key", &key], says).0, "STORED\n");
    assert_eq!(openssl(daemon.port, &["-cert", &app, "-key", &key, "-tls1_2"], says).0, "");
    assert_eq!(openssl(daemon.port, &[], says).0, "");
    assert_eq!(openssl(daemon.port, &["-cert", &foreign, "-key", &path("foreign.key")], says).0, "");
    daemon.wait_until_it_says("memcached client refused: TLS: invalid peer certificate");
    let mut plain = crate::client::Client::tcp(other);
    plain.send(b"get a\r\n");
    assert_eq!(plain.line(), "VALUE a 0 1");
    let mut plain = crate::client::Client::tcp(daemon.port);
    plain.send(b"get a\r\n");
    plain.rest();
    daemon.wait_until_it_says("a client does not speak TLS on a port for memcached with TLS");
}

/// The serial number of the certificate that a server shows.
fn shown(port: u16) -> String {
    let script = format!(
        "openssl s_client -connect 127.0.0.1:{port} < /dev/null 2> /dev/null | openssl x509 -noout -serial"
    );
    let (code, out, error) = run(Command::new("sh").args(["-ec", &script]));
    assert_eq!(code, Some(0), "{error}");
    out
}

#[test]
fn certificates_change_without_a_restart() {
    let folder = certificates();
    let flags = flags(&folder);
    let daemon = Daemon::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let first = shown(daemon.port);
    let replace = |from: &str| {
        for kind in ["pem", "key"] {
            fs::copy(folder.0.join(format!("{from}.{kind}")), folder.0.join(format!("server.{kind}")))
                .unwrap();
        }
    };
    // A key of another certificate.
    fs::copy(folder.0.join("app.key"), folder.0.join("server.key")).unwrap();
    daemon.signal("HUP");
    daemon.wait_until_it_says("TLS was not changed: ssl_key_file");
    assert_eq!(shown(daemon.port), first);
    replace("second");
    let mut client = daemon.connect();
    client.send(b"refresh_certs\r\n");
    assert_eq!(client.line(), "OK");
    while shown(daemon.port) == first {}
    fs::write(folder.0.join("server.pem"), "nothing").unwrap();
    daemon.signal("HUP");
    daemon.wait_until_it_says("TLS was not changed: ssl_cert_file: no certificate in PEM");
}

/// What curl prints of a request to the HTTP port: its answer, or its error.
fn curl(guarded: &Guarded, port: u16, url: &str, more: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-w", "%{http_code}", "--max-time", "20", "--cacert", &guarded.path("ca.pem")])
        .args(more);
    let (_, out, error) = run(curl.arg(url.replace("PORT", &port.to_string())));
    out + &error
}

/// Before, a password for this port went over the network as it is.
#[test]
fn the_http_port_speaks_tls() {
    let port = free_port();
    let rules = "local all all trust
hostssl all shown 127.0.0.1/32 password protocol=http
hostssl all all 127.0.0.1/32 trust protocol=memcached
";
    let guarded = Guarded::start(rules, &["--http-port", &port.to_string()]);
    let ask = |url: &str, more: &[&str]| curl(&guarded, port, url, more);
    let statement =
        &["-H", "Content-Type: application/json", "-d", r#"{"statement": "SELECT 'by TLS' AS how"}"#][..];
    let known = [statement, &["-u", "shown:pw"]].concat();
    assert_eq!(ask("https://localhost:PORT/livez", &[]), "ok\n200");
    assert!(ask("https://localhost:PORT/sql", &known).contains("by TLS"));
    assert!(ask("https://localhost:PORT/sql", &[statement, &["-u", "shown:wrong"]].concat()).contains("401"));
    // Health is told without TLS, too, and nothing else is: the rules demand it.
    assert_eq!(ask("http://localhost:PORT/livez", &[]), "ok\n200");
    let refused = ask("http://localhost:PORT/sql", &known);
    assert!(!refused.contains("by TLS") && refused.contains("403"), "{refused}");
    assert!(
        ask("https://localhost:PORT/livez", &["--cacert", &guarded.path("ca2.pem")]).contains("certificate")
    );
    assert_eq!(ask("https://localhost:PORT/livez", &["--tls-max", "1.2"]), "ok\n200");
    // Half a handshake, and what is none, cost their own connection.
    for bytes in [&b"\x16"[..], b"\x16\x03\x01\x02\x00\x01", b"\x16GET / HTTP/1.1\r\n\r\n"] {
        let mut half = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        half.write_all(bytes).unwrap();
        assert_eq!(ask("https://localhost:PORT/livez", &[]), "ok\n200");
    }
}

/// Makes lists of what the authority has revoked: nothing, and the certificate of `app`; and one of another authority.
const LISTS: &str = "
printf '[ca]\ndefault_ca=own\n[own]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\ndefault_crl_days=2\n' > ca.cnf
touch index; printf 01 > number
openssl ca -config ca.cnf -keyfile ca.key -cert ca.pem -gencrl -out nothing.crl
openssl ca -config ca.cnf -keyfile ca.key -cert ca.pem -revoke app.pem
openssl ca -config ca.cnf -keyfile ca.key -cert ca.pem -gencrl -out app.crl
openssl ca -config ca.cnf -keyfile ca2.key -cert ca2.pem -gencrl -out other.crl
cp nothing.crl revoked.crl
";

/// Before, a certificate that was stolen let its thief in until its time was over.
#[test]
fn revoked_certificates_are_refused() {
    let certificates = certificates();
    let (code, out, error) = run(Command::new("sh").args(["-ec", LISTS]).current_dir(&certificates.0));
    assert_eq!(code, Some(0), "{out}{error}");
    let (folder, sql_port) = (Folder::new(), free_port());
    let (rules, roles) = (folder.write("rules", RULES), folder.write("roles", ROLES));
    fs::set_permissions(&roles, fs::Permissions::from_mode(0o600)).unwrap();
    let text = |path: PathBuf| path.display().to_string();
    let list = text(certificates.0.join("revoked.crl"));
    let mut flags = flags(&certificates);
    flags.extend(["--ssl-crl-file".to_owned(), list, "--sql-port".to_owned(), sql_port.to_string()]);
    flags.extend(["--hba-file".to_owned(), text(rules), "--roles-file".to_owned(), text(roles)]);
    let daemon = Daemon::start_in(folder, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let guarded = Guarded { daemon, certificates, sql_port };
    let by_certificate =
        format!("user=app sslcert={} sslkey={}", guarded.path("app.pem"), guarded.path("app.key"));
    assert_eq!(guarded.psql(&by_certificate), "t|TLSv1.3\n");
    let read_again = |from: &str| {
        fs::copy(guarded.path(from), guarded.path("revoked.crl")).unwrap();
        guarded.daemon.signal("HUP");
    };
    read_again("app.crl");
    crate::sources::until("it is refused", || guarded.psql(&by_certificate).contains("certificate revoked"));
    // Who shows none is not concerned.
    assert_eq!(guarded.psql("user=bound sslcert=none"), "t|TLSv1.3\n");
    // A list of another authority says nothing of this one's: nobody knows what that has revoked.
    read_again("nothing.crl");
    crate::sources::until("it is let in again", || guarded.psql(&by_certificate) == "t|TLSv1.3\n");
    read_again("other.crl");
    crate::sources::until("it is refused", || guarded.psql(&by_certificate).contains("SSL error"));
    read_again("server.pem");
    guarded
        .daemon
        .wait_until_it_says("TLS was not changed: ssl_crl_file: no list of revoked certificates in PEM");
}

#[test]
fn mistakes_stop_the_start() {
    let folder = certificates();
    let all = flags(&folder);
    let with = |at: usize, value: &Path| {
        let mut changed = all.clone();
        changed[at] = value.display().to_string();
        changed
    };
    let open = folder.0.join("open.key");
    fs::copy(folder.0.join("server.key"), &open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    // By memcached's own flag it is only a warning, as there.
    let by_memcached = |key: &Path| -> Vec<String> {
        let certificate = folder.0.join("server.pem");
        let words = format!("ssl_chain_cert={},ssl_key={}", certificate.display(), key.display());
        ["-Z", "-o", &words, "-l", "mtls:127.0.0.1"].map(str::to_owned).into()
    };
    let rules = folder.write("rules", "hostssl all all all cert\n").display().to_string();
    let plus =
        |more: &[&str]| all.iter().cloned().chain(more.iter().map(|flag| (*flag).to_owned())).collect();
    for (flags, said) in [
        (vec!["--ssl".to_owned()], "ssl (-Z) needs ssl_cert_file"),
        (with(4, &open), "others than its owner can read the private key; run chmod 600 on it"),
        (by_memcached(&open), "mtls: also ssl_ca_file"),
        (with(2, &folder.0.join("no.pem")), "ssl_cert_file: "),
        (with(4, &folder.0.join("app.key")), "ssl_key_file: "),
        (with(6, &folder.0.join("rules")), "ssl_ca_file: no certificate in PEM"),
        (vec!["--hba-file".into(), rules], "a rule looks at certificates"),
        (vec!["-l".into(), "mtls:127.0.0.1".into()], "mtls: also ssl_ca_file"),
        (plus(&["--enable-sasl"]), "enable_sasl (-S) needs roles_file or auth_file"),
    ] {
        let (code, _, error) =
            run(program().args(["-p", "-1", "-s", "none", "--arena", "none"]).args(&flags));
        assert!(code == Some(1) && error.contains(said), "{flags:?}: {error}");
    }
}

/// `-S`: nobody is believed, whatever the rules say.
#[test]
fn sasl_for_everybody() {
    let folder = Folder::new();
    let users = folder.write("users", "me:pw\n");
    let roles =
        folder.write("roles", "CREATE ROLE chief SUPERUSER LOGIN;\nCREATE ROLE me LOGIN PASSWORD 'pw';\n");
    for file in [&users, &roles] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    for (flag, path, then) in
        [("-Y", &users, "END"), ("--roles-file", &roles, "CLIENT_ERROR permission denied")]
    {
        let daemon = Daemon::start(&["-S", flag, &path.display().to_string()]);
        for mut client in [daemon.connect(), daemon.connect_tcp()] {
            for (line, answer) in [
                ("get abc", "CLIENT_ERROR unauthenticated"),
                ("set x 0 0 5\r\nme no", "CLIENT_ERROR authentication failure"),
                ("set x 0 0 5\r\nme pw", "STORED"),
                ("get abc", then),
            ] {
                client.send(format!("{line}\r\n").as_bytes());
                assert_eq!(client.line(), answer, "{flag} {line}");
            }
        }
    }
}

/// Connects by node-postgres and says what became of it.
const NODE: &str = "
const { Client } = require('pg');
const fs = require('fs');
const read = (name) => fs.readFileSync(HERE + name);
const base = { host: 'localhost', port: SQL, database: 'x', user: 'bound', password: 'pw' };
const attempt = async (more) => {
  const client = new Client({ ...base, ssl: { ca: read('ca.pem') }, ...more });
  client.on('error', () => {});
  try {
    await client.connect();
    const said = await client.query('SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
    console.log(said.rows[0].ssl, said.rows[0].version);
  } catch (error) {
    console.log(error.message);
  }
  await client.end().catch(() => {});
};
const certificate = (name) => ({ ca: read('ca.pem'), cert: read(name + '.pem'), key: read(name + '.key') });
";

#[test]
fn node_postgres() {
    let guarded = Guarded::start(RULES, &[]);
    let script = guarded.certificates.0.join("attempt.js");
    for (attempt, said) in [
        ("{}", "true TLSv1.3"),
        ("{ enableChannelBinding: true }", "true TLSv1.3"),
        ("{ user: 'app', password: undefined, ssl: certificate('app') }", "true TLSv1.3"),
        ("{ user: 'app', password: undefined }", "certificate authentication failed"),
        ("{ password: 'wrong' }", "password authentication failed"),
        ("{ ssl: { ca: read('ca2.pem') } }", "certificate"),
        ("{ ssl: false }", "no encryption"),
    ] {
        let given =
            format!("const SQL = {}, HERE = '{}/';", guarded.sql_port, guarded.certificates.0.display());
        fs::write(&script, format!("{given}{NODE}attempt({attempt});\n")).unwrap();
        let (_, out, error) = run(&mut node(&script));
        assert!(out.contains(said), "{attempt}: {out}{error}");
    }
}

/// Connects by pgjdbc with a URL's parameters.
const JAVA: &str = "
import java.sql.*;
class Attempt {
    public static void main(String[] given) {
        for (String one : given) {
            try (Connection connection = DriverManager.getConnection(one);
                 Statement statement = connection.createStatement();
                 ResultSet said = statement.executeQuery(
                     \"SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()\")) {
                said.next();
                System.out.println(said.getBoolean(1) + \" \" + said.getString(2));
            } catch (SQLException error) {
                System.out.println(error.getMessage().replace('\\n', ' '));
            }
        }
    }
}
";

#[test]
fn pgjdbc_verifies_the_server() {
    let guarded = Guarded::start(RULES, &[]);
    let script = guarded.certificates.0.join("Attempt.java");
    fs::write(&script, JAVA).unwrap();
    let (ca, other) = (guarded.path("ca.pem"), guarded.path("ca2.pem"));
    let attempts = [
        (format!("user=bound&password=pw&sslmode=verify-full&sslrootcert={ca}"), "true TLSv1.3"),
        (
            format!("user=bound&password=pw&sslmode=verify-full&sslrootcert={ca}&channelBinding=require"),
            "true TLSv1.3",
        ),
        (format!("user=bound&password=pw&sslmode=verify-full&sslrootcert={other}"), "SSL error"),
        (
            format!("user=bound&password=wrong&sslmode=verify-ca&sslrootcert={ca}"),
            "password authentication failed",
        ),
        ("user=bound&password=pw&sslmode=disable".to_owned(), "no encryption"),
    ];
    let mut java = Command::new("java");
    java.arg("-XX:TieredStopAtLevel=1").arg("-cp").arg(fetched("java").join("*")).arg(&script);
    for (attempt, _) in &attempts {
        java.arg(format!("jdbc:postgresql://localhost:{}/x?{attempt}", guarded.sql_port));
    }
    let (_, out, error) = run(&mut java);
    assert_eq!(out.lines().count(), attempts.len(), "{out}{error}");
    for ((attempt, said), line) in attempts.iter().zip(out.lines()) {
        assert!(line.contains(said), "{attempt}: {line}");
    }
}

/// Dalli speaks the binary protocol within TLS, with SASL and without.
#[test]
fn dalli() {
    let rules = "local all all trust\nhostssl all app 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 password protocol=memcached\n";
    let guarded = Guarded::start(rules, &[]);
    let script = "
require 'dalli'
require 'openssl'
Dalli.logger.level = Logger::FATAL
def attempt(authority, certificate = nil, **more)
  context = OpenSSL::SSL::SSLContext.new
  context.ca_file = HERE + authority
  context.verify_mode = OpenSSL::SSL::VERIFY_PEER
  if certificate
    context.cert = OpenSSL::X509::Certificate.new(File.read(HERE + certificate + '.pem'))
    context.key = OpenSSL::PKey.read(File.read(HERE + certificate + '.key'))
  end
  client = Dalli::Client.new(\"localhost:#{PORT}\", ssl_context: context, socket_timeout: 20, **more)
  client.set('a', 'b' * 100_000)
  puts client.get('a').length
rescue StandardError => error
  puts error.class
end
attempt('ca.pem', username: 'writer', password: 'pw')
attempt('ca.pem', username: 'writer', password: 'wrong')
attempt('ca2.pem', username: 'writer', password: 'pw')
attempt('ca.pem', 'app')
attempt('ca.pem')
";
    let given = format!("PORT, HERE = {}, '{}/'\n", guarded.daemon.port, guarded.certificates.0.display());
    let (_, out, error) = run(Command::new("ruby").args(["-e", &(given + script)]));
    let said: Vec<&str> = out.lines().collect();
    assert_eq!(said.first(), Some(&"100000"), "{out}{error}");
    assert_eq!(said.len(), 5, "{out}{error}");
    assert!(
        said[1..].iter().all(|one| one.starts_with("Dalli::") || one.starts_with("OpenSSL::")),
        "{out}{error}"
    );
}
