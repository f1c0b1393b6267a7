//! The rules of who may connect, in the form of PostgreSQL's `pg_hba.conf`.
//!
//! ```text
//! # connection  database  role      address       method
//! local         all       all                     peer
//! host          all       all       127.0.0.1/32  trust
//! hostssl       all       +writers  10.0.0.0/8    scram-sha-256  clientcert=verify-ca
//! hostssl       all       batch     10.0.0.0/8    cert
//! host          all       app       10.1.2.3/32   scram-sha-256  protocol=memcached
//! ```
//!
//! The first rule that matches decides; if none does, the connection is refused.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::certificate::Certificate;
use crate::file::FileError;
use crate::limits::{FILE_BYTES_MAX, RULES_MAX};
use crate::maps::Maps;
use crate::roles::Roles;
use crate::words::{Word, words};

/// Where a peer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Unix socket, from a process of this user of the system, where he has a name.
    Unix(Option<String>),
    /// A network address, by an encrypted connection or a plain one.
    Network(IpAddr, bool),
}

/// A protocol that rules tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's.
    Sql,
    /// memcached's, text and binary.
    Memcached,
    /// HTTP: metrics, health, the console.
    Http,
}

/// The protocols' names, as rules have them.
const PROTOCOLS: &[(&str, Protocol)] =
    &[("memcached", Protocol::Memcached), ("sql", Protocol::Sql), ("http", Protocol::Http)];

/// How a peer proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It is believed. Only this machine's peers are.
    Trust,
    /// It is not let in.
    Reject,
    /// It is the user of the system whose process connects.
    Peer,
    /// It had to be another user of the system.
    OtherPeer,
    /// It has the role's password and does not show it.
    Scram,
    /// It shows the role's password, where nobody listens.
    Password,
    /// It has a certificate with the role's name.
    Cert,
}

/// The methods' names, as rules have them.
const METHODS: &[(&str, Method)] = &[
    ("trust", Method::Trust),
    ("reject", Method::Reject),
    ("peer", Method::Peer),
    ("scram-sha-256", Method::Scram),
    ("password", Method::Password),
    ("cert", Method::Cert),
];

/// Methods of PostgreSQL's that are not there, so that the message can say so.
const MISSING: &[&str] = &["md5", "gss", "sspi", "ident", "ldap", "radius", "pam", "bsd", "oauth"];

/// The connections that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
}

const KINDS: &[(&str, Kind)] = &[
    ("local", Kind::Local),
    ("host", Kind::Host),
    ("hostssl", Kind::HostSsl),
    ("hostnossl", Kind::HostNoSsl),
];

/// What a list of names holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Listed {
    All,
    Name(String),
    /// `+name`: each member of the role.
    Members(String),
    /// `sameuser`: the database is called like the role.
    SameUser,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Addresses {
    All,
    Net(IpNet),
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    kind: Kind,
    databases: Vec<Listed>,
    roles: Vec<Listed>,
    addresses: Addresses,
    method: Method,
    options: Options,
}

/// What stands behind the method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    protocol: Option<Protocol>,
    certificate: Option<Demanded>,
    name: NameIn,
    /// Names that were proved are not those of roles, but lead to them by this map.
    map: Option<String>,
}

/// What is demanded of a client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demanded {
    /// There is one, which a trusted authority has signed.
    Trusted,
    /// It has the role's name, too.
    OfRole,
}

/// Which name of a certificate is the role's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NameIn {
    /// The common name.
    #[default]
    Cn,
    /// The whole name.
    Dn,
}

/// All rules, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
    maps: Maps,
}

/// The rules where there is no file: who is on this machine is believed.
const DEFAULT: &str = "local all all trust\nhost all all 127.0.0.0/8 trust\nhost all all ::1/128 trust\n";

impl Default for Rules {
    fn default() -> Self {
        Self::parse(DEFAULT).unwrap_or_else(|_| Self { rules: Vec::new(), maps: Maps::default() })
    }
}

/// The rule demands another certificate, or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongCertificate;

/// Who asks to come in.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// Where from.
    pub origin: &'a Origin,
    /// By which protocol.
    pub protocol: Protocol,
    /// Which database it names; memcached's protocol has none.
    pub database: Option<&'a str>,
    /// Its certificate, if it has shown one that a trusted authority has signed.
    pub certificate: Option<&'a Certificate>,
}

impl Rules {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first mistake. `trust` for others than this machine's peers is one.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(FileError { line: 1, message: format!("longer than {FILE_BYTES_MAX} bytes") });
        }
        let mut rules = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let fails = |message| FileError { line, message };
            let words = words(text).map_err(fails)?;
            if !words.is_empty() {
                rules.push(rule(&words).map_err(fails)?);
            }
            if rules.len() > RULES_MAX {
                return Err(fails(format!("more than {RULES_MAX} rules")));
            }
        }
        Ok(Self { rules, maps: Maps::default() })
    }

    /// The same with these maps of names.
    ///
    /// # Errors
    ///
    /// A rule uses another map, whose name is returned.
    pub fn with_maps(self, maps: Maps) -> Result<Self, String> {
        let used = self.rules.iter().filter_map(|rule| rule.options.map.as_deref());
        match used.into_iter().find(|map| !maps.has(map)) {
            Some(missing) => Err(missing.to_owned()),
            None => Ok(Self { maps, ..self }),
        }
    }

    /// The roles that a name of a certificate may lead to.
    pub(crate) fn roles_of<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m str> {
        std::iter::once(name).chain(self.maps.roles_of(name))
    }

    /// What the first rule that matches asks of a peer for a role; [`Method::Reject`] if none does, or if the rule
    /// demands another certificate.
    pub fn method(&self, peer: Peer<'_>, role: &str, roles: &Roles) -> Method {
        self.decide(peer, role, roles).unwrap_or(Method::Reject)
    }

    /// The same, where it matters why a peer is refused.
    pub(crate) fn decide(
        &self,
        peer: Peer<'_>,
        role: &str,
        roles: &Roles,
    ) -> Result<Method, WrongCertificate> {
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.is_for(peer) && rule.has_role(role, roles) && rule.has_database(peer, role));
        match rule {
            None => Ok(Method::Reject),
            Some(rule) if !rule.takes_certificate(peer.certificate, role, &self.maps) => {
                Err(WrongCertificate)
            }
            Some(rule) if rule.method == Method::Peer && !rule.takes_user(peer.origin, role, &self.maps) => {
                Ok(Method::OtherPeer)
            }
            Some(rule) => Ok(rule.method),
        }
    }

    /// Whether a rule looks at clients' certificates.
    pub fn ask_for_certificates(&self) -> bool {
        self.rules.iter().any(|rule| rule.options.certificate.is_some())
    }

    /// Whether a rule is for encrypted connections only.
    pub fn ask_for_encryption(&self) -> bool {
        self.rules.iter().any(|rule| rule.kind == Kind::HostSsl)
    }

    /// What is asked of a peer that has named no role yet: [`Method::Trust`] if the first rule for it believes
    /// everybody.
    pub fn at_first(&self, peer: Peer<'_>) -> Method {
        let mut for_it = self.rules.iter().filter(|rule| rule.is_for(peer));
        match for_it.next() {
            Some(Rule { method: Method::Trust, roles, .. }) if roles.contains(&Listed::All) => Method::Trust,
            Some(first)
                if first.method != Method::Reject || for_it.any(|rule| rule.method != Method::Reject) =>
            {
                Method::Password
            }
            _ => Method::Reject,
        }
    }

    /// Whether a peer of this address can come in at all by a proof. Over HTTP a role can be proved by its password
    /// alone.
    pub fn asks_for_proof(&self, protocol: Protocol, address: IpAddr) -> bool {
        let by_http = protocol == Protocol::Http;
        let proves = |method| match method {
            Method::Password => true,
            Method::Scram | Method::Cert => !by_http,
            _ => false,
        };
        self.rules.iter().any(|rule| {
            let covers = rule.addresses.holds(address) || address.is_unspecified();
            rule.kind != Kind::Local && covers && rule.is_of(protocol) && proves(rule.method)
        })
    }
}

impl Rule {
    fn is_of(&self, protocol: Protocol) -> bool {
        self.options.protocol.is_none_or(|own| own == protocol)
    }

    /// Whether a peer's certificate, or that it has none, is enough for this rule.
    fn takes_certificate(&self, certificate: Option<&Certificate>, role: &str, maps: &Maps) -> bool {
        match (self.options.certificate, certificate) {
            (None, _) | (Some(Demanded::Trusted), Some(_)) => true,
            (Some(_), None) => false,
            (Some(Demanded::OfRole), Some(certificate)) => match self.options.name {
                NameIn::Cn => {
                    certificate.common_name.as_deref().is_some_and(|name| self.leads(name, role, maps))
                }
                NameIn::Dn => self.leads(&certificate.subject, role, maps),
            },
        }
    }

    /// Whether the user of the system at the other end may have a role.
    fn takes_user(&self, origin: &Origin, role: &str, maps: &Maps) -> bool {
        matches!(origin, Origin::Unix(Some(user)) if self.leads(user, role, maps))
    }

    /// Whether a name that was proved is that of a role, or leads to it.
    fn leads(&self, name: &str, role: &str, maps: &Maps) -> bool {
        self.options.map.as_deref().map_or(name == role, |map| maps.allows(map, name, role))
    }

    fn is_for(&self, peer: Peer<'_>) -> bool {
        let from = match (peer.origin, self.kind) {
            (Origin::Unix(_), Kind::Local) => true,
            (Origin::Network(address, encrypted), kind) => {
                let kind = match kind {
                    Kind::Local => false,
                    Kind::Host => true,
                    Kind::HostSsl => *encrypted,
                    Kind::HostNoSsl => !encrypted,
                };
                kind && self.addresses.holds(*address)
            }
            _ => false,
        };
        from && self.is_of(peer.protocol)
    }

    fn has_role(&self, role: &str, roles: &Roles) -> bool {
        self.roles.iter().any(|listed| match listed {
            Listed::All => true,
            Listed::Name(name) => name == role,
            Listed::Members(of) => roles.is_member(role, of),
            Listed::SameUser => false,
        })
    }

    fn has_database(&self, peer: Peer<'_>, role: &str) -> bool {
        let Some(database) = peer.database else { return true };
        self.databases.iter().any(|listed| match listed {
            Listed::All => true,
            Listed::Name(name) => name == database,
            Listed::SameUser => database == role,
            Listed::Members(_) => false,
        })
    }
}

impl Addresses {
    fn holds(&self, address: IpAddr) -> bool {
        match self {
            Self::All => true,
            // A listener on `::` hears IPv4 peers by such addresses.
            Self::Net(net) => net.contains(&address.to_canonical()),
        }
    }

    /// Whether only peers on this machine can have these addresses.
    fn is_loopback(&self) -> bool {
        match self {
            Self::All => false,
            Self::Net(IpNet::V4(net)) => net.network().is_loopback() && net.prefix_len() >= 8,
            Self::Net(IpNet::V6(net)) => net.network().is_loopback() && net.prefix_len() == 128,
        }
    }
}

fn rule(words: &[Option<Word>]) -> Result<Rule, String> {
    let mut fields = Fields { words };
    let kind = fields.word("a kind of connection")?;
    let kind = KINDS.iter().find(|(name, _)| *name == kind.text).map(|(_, kind)| *kind);
    let kind = kind.ok_or("a rule begins with local, host, hostssl or hostnossl")?;
    let databases = fields.list("databases")?;
    let roles = fields.list("roles")?;
    let addresses = if kind == Kind::Local { Addresses::All } else { fields.addresses()? };
    let method = method(&fields.word("a method")?.text)?;
    let mut options = fields.options()?;
    if method == Method::Cert {
        options.certificate = Some(Demanded::OfRole);
    }
    if options.certificate.is_some() && kind != Kind::HostSsl {
        return Err("certificates are shown on encrypted connections only; use hostssl".into());
    }
    if method == Method::Trust && kind != Kind::Local && !addresses.is_loopback() {
        return Err("trust is for Unix sockets and loopback addresses only; use scram-sha-256".into());
    }
    if method == Method::Peer && kind != Kind::Local {
        return Err("peer is for Unix sockets only".into());
    }
    if options.map.is_some() && method != Method::Peer && options.certificate != Some(Demanded::OfRole) {
        return Err("map= is for peer, cert and clientcert=verify-full only".into());
    }
    let plain = matches!(kind, Kind::Host | Kind::HostNoSsl) && !addresses.is_loopback();
    // memcached's text protocol and browsers have no other way to prove a role.
    let shows = matches!(options.protocol, Some(Protocol::Memcached | Protocol::Http));
    if method == Method::Password && plain && !shows {
        return Err(
            "password shows the password to everybody on the way; use hostssl, or scram-sha-256".into()
        );
    }
    Ok(Rule { kind, databases, roles, addresses, method, options })
}

fn protocol(name: &str) -> Option<Protocol> {
    PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, protocol)| *protocol)
}

fn method(name: &str) -> Result<Method, String> {
    let known = METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| *method);
    known.ok_or_else(|| {
        let names: Vec<_> = METHODS.iter().map(|(name, _)| *name).collect();
        let problem = if MISSING.contains(&name) { "is not supported" } else { "is no method" };
        format!("'{name}' {problem}; the methods are {}", names.join(", "))
    })
}

/// What is left of a line.
struct Fields<'w> {
    words: &'w [Option<Word>],
}

impl<'w> Fields<'w> {
    fn word(&mut self, what: &str) -> Result<&'w Word, String> {
        match self.words {
            [Some(word), rest @ ..] => {
                self.words = rest;
                Ok(word)
            }
            _ => Err(format!("{what} is missing")),
        }
    }

    /// Names with commas between.
    fn list(&mut self, what: &str) -> Result<Vec<Listed>, String> {
        let mut list = Vec::new();
        loop {
            let word = self.word(what)?;
            list.push(match (word.text.as_str(), word.quoted) {
                ("all", false) => Listed::All,
                ("sameuser", false) if what == "databases" => Listed::SameUser,
                (text, false) if text.starts_with('/') || text.starts_with('@') => {
                    return Err(format!("'{text}': regular expressions and other files are not supported"));
                }
                (text, false) if text.starts_with('+') => Listed::Members(text[1..].to_owned()),
                (text, _) => Listed::Name(text.to_owned()),
            });
            match self.words {
                [None, rest @ ..] => self.words = rest,
                _ => return Ok(list),
            }
        }
    }

    /// `all`, an address with the length of its prefix, or with a mask behind it.
    fn addresses(&mut self) -> Result<Addresses, String> {
        let text = &self.word("an address")?.text;
        if text == "all" {
            return Ok(Addresses::All);
        }
        if let Ok(net) = text.parse::<IpNet>() {
            return Ok(Addresses::Net(net.trunc()));
        }
        let wrong = || format!("'{text}' is not all, and no address with a prefix such as 10.0.0.0/8");
        let address: IpAddr = text.parse().map_err(|_| wrong())?;
        let [Some(mask), rest @ ..] = self.words else { return Err(wrong()) };
        let mask: IpAddr = mask.text.parse().map_err(|_| wrong())?;
        self.words = rest;
        let net = IpNet::with_netmask(address, mask).map_err(|_| wrong())?;
        Ok(Addresses::Net(net.trunc()))
    }

    /// `name=value` each.
    fn options(&mut self) -> Result<Options, String> {
        let mut options = Options::default();
        while !self.words.is_empty() {
            let word = &self.word("an option")?.text;
            match word.split_once('=') {
                Some(("protocol", name)) if protocol(name).is_some() => options.protocol = protocol(name),
                Some(("clientcert", "verify-ca")) => options.certificate = Some(Demanded::Trusted),
                Some(("clientcert", "verify-full")) => options.certificate = Some(Demanded::OfRole),
                Some(("clientname", "CN")) => options.name = NameIn::Cn,
                Some(("clientname", "DN")) => options.name = NameIn::Dn,
                Some(("map", map)) if !map.is_empty() => options.map = Some(map.to_owned()),
                _ => {
                    return Err(format!(
                        "'{word}' is no option; there are protocol=memcached, sql or http, clientcert=verify-ca or verify-full, \
                         clientname=CN or DN, map=name"
                    ));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, encrypted: bool) -> Origin {
        Origin::Network(address.parse().unwrap(), encrypted)
    }

    const RULES: &str = "
# comment
local  all      all                            peer
host   all      all        127.0.0.1/32        trust           # only here
hostssl sales,all +writers 10.0.0.0 255.0.0.0  scram-sha-256   protocol=sql
host   sameuser \"all\",b  10.0.0.0/8          scram-sha-256
host   all      evil       all                 reject
host   all      all        ::/0                scram-sha-256   protocol=memcached
";

    fn roles() -> Roles {
        Roles::parse("CREATE ROLE writers; CREATE USER w IN ROLE writers; CREATE USER b;").unwrap()
    }

    #[test]
    fn the_first_rule_that_matches() {
        let (rules, roles) = (Rules::parse(RULES).unwrap(), roles());
        for (origin, protocol, database, role, expected) in [
            (Origin::Unix(Some("w".into())), Protocol::Sql, "x", "w", Method::Peer),
            (Origin::Unix(None), Protocol::Sql, "x", "w", Method::OtherPeer),
            (network("127.0.0.1", false), Protocol::Memcached, "x", "w", Method::Trust),
            (network("::ffff:127.0.0.1", false), Protocol::Sql, "x", "w", Method::Trust),
            (network("127.0.0.2", false), Protocol::Sql, "x", "w", Method::Reject),
            (network("10.1.1.1", true), Protocol::Sql, "x", "w", Method::Scram),
            (network("10.1.1.1", false), Protocol::Sql, "x", "w", Method::Reject),
            (network("10.1.1.1", true), Protocol::Sql, "b", "b", Method::Scram),
            (network("10.1.1.1", true), Protocol::Sql, "x", "b", Method::Reject),
            (network("10.1.1.1", false), Protocol::Sql, "all", "all", Method::Scram),
            (network("fd00::1", false), Protocol::Memcached, "x", "w", Method::Scram),
            (network("fd00::1", false), Protocol::Memcached, "x", "evil", Method::Reject),
        ] {
            let peer = Peer { origin: &origin, protocol, database: Some(database), certificate: None };
            assert_eq!(rules.method(peer, role, &roles), expected, "{origin:?} {role} {database}");
        }
    }

    #[test]
    fn certificates() {
        let certificate = Certificate {
            common_name: Some("app".into()),
            subject: "CN=app,O=Shop".into(),
            ..Certificate::default()
        };
        let (far, roles) = (network("10.0.0.1", true), Roles::new());
        for (rule, shown, role, expected) in [
            ("cert", true, "app", Ok(Method::Cert)),
            ("cert", true, "chief", Err(WrongCertificate)),
            ("cert", false, "app", Err(WrongCertificate)),
            ("cert clientname=DN", true, "app", Err(WrongCertificate)),
            ("cert clientname=DN", true, "CN=app,O=Shop", Ok(Method::Cert)),
            ("cert clientcert=verify-ca", true, "chief", Err(WrongCertificate)),
            ("scram-sha-256 clientcert=verify-ca", true, "chief", Ok(Method::Scram)),
            ("scram-sha-256 clientcert=verify-ca", false, "chief", Err(WrongCertificate)),
            ("scram-sha-256 clientcert=verify-full", true, "chief", Err(WrongCertificate)),
            ("scram-sha-256 clientcert=verify-full", true, "app", Ok(Method::Scram)),
        ] {
            let rules = Rules::parse(&format!("hostssl all all all {rule}")).unwrap();
            assert!(rules.ask_for_certificates() && rules.ask_for_encryption());
            let certificate = shown.then_some(&certificate);
            let peer = Peer { origin: &far, protocol: Protocol::Sql, database: None, certificate };
            assert_eq!(rules.decide(peer, role, &roles), expected, "{rule} {role}");
        }
    }

    #[test]
    fn maps_of_names() {
        let text = "local all all peer map=m\nhostssl all all all cert map=c clientname=DN";
        assert_eq!(Rules::parse(text).unwrap().with_maps(Maps::default()), Err("m".into()));
        // A comma is no part of a name without quotes.
        assert!(Maps::parse("c CN=web,O=Shop app").is_err());
        let maps = Maps::parse("m alice chief\nc \"CN=web,O=Shop\" app\n").unwrap();
        let rules = Rules::parse(text).unwrap().with_maps(maps).unwrap();
        let shown = Certificate {
            common_name: Some("app".into()),
            subject: "CN=web,O=Shop".into(),
            ..Certificate::default()
        };
        let (unix, far, roles) =
            (Origin::Unix(Some("alice".into())), network("10.0.0.1", true), Roles::new());
        for (origin, role, expected) in [
            (&unix, "chief", Ok(Method::Peer)),
            (&unix, "alice", Ok(Method::OtherPeer)),
            (&unix, "app", Ok(Method::OtherPeer)),
            (&far, "app", Ok(Method::Cert)),
            (&far, "chief", Err(WrongCertificate)),
            (&far, "CN=web,O=Shop", Err(WrongCertificate)),
        ] {
            let peer = Peer { origin, protocol: Protocol::Sql, database: None, certificate: Some(&shown) };
            assert_eq!(rules.decide(peer, role, &roles), expected, "{origin:?} {role}");
        }
        assert_eq!(rules.roles_of("CN=web,O=Shop").collect::<Vec<_>>(), ["CN=web,O=Shop", "app"]);
    }

    #[test]
    fn before_a_role_is_named() {
        let rules = Rules::parse(RULES).unwrap();
        let at_first = |address: &str| {
            let origin = network(address, false);
            let protocol = Protocol::Memcached;
            rules.at_first(Peer { origin: &origin, protocol, database: None, certificate: None })
        };
        assert_eq!(at_first("127.0.0.1"), Method::Trust);
        assert_eq!(at_first("fd00::1"), Method::Password);
        assert_eq!(at_first("192.168.0.1"), Method::Reject);
        assert!(rules.asks_for_proof(Protocol::Memcached, "::".parse().unwrap()));
        assert!(!Rules::default().asks_for_proof(Protocol::Sql, "0.0.0.0".parse().unwrap()));
        let far = "10.0.0.1".parse().unwrap();
        let by_http = |rule: &str| Rules::parse(rule).unwrap().asks_for_proof(Protocol::Http, far);
        assert!(!by_http("host all all 10.0.0.0/8 scram-sha-256"), "a browser knows no such exchange");
        assert!(by_http("host all all 10.0.0.0/8 password protocol=http"));
        assert!(!by_http("host all all 10.0.0.0/8 password protocol=memcached"));
        assert_eq!(Rules::parse("").unwrap().rules.len(), 0);
    }

    #[test]
    fn mistakes_are_named_by_line() {
        for wrong in [
            "host all all 0.0.0.0/0 trust",
            "host all all all trust",
            "host all all 127.0.0.0/7 trust",
            "host all all 10.0.0.0/8 password",
            "host all all 127.0.0.1/32 peer",
            "host all all 127.0.0.1/32 md5",
            "host all all 127.0.0.1/32 scram",
            "host all all 127.0.0.1 scram-sha-256",
            "host all all example.org scram-sha-256",
            "host all all 10.0.0.0/33 scram-sha-256",
            "host all all",
            "host all, 10.0.0.0/8 scram-sha-256",
            "local all /re peer",
            "local all \"a peer",
            "local all all trust map=x",
            "local all all cert",
            "host all all 127.0.0.1/32 cert",
            "host all all 127.0.0.1/32 trust clientcert=verify-ca",
            "hostssl all all all cert map=",
            "hostssl all all all scram-sha-256 clientcert=verify-ca map=x",
            "local all all scram-sha-256 map=x",
            "hostssl all all all cert clientname=OU",
            "hostssl all all all trust",
            "remote all all trust",
        ] {
            let error = Rules::parse(&format!("# one\n{wrong}\n")).unwrap_err();
            assert_eq!(error.line, 2, "{wrong}: {error}");
        }
        assert!(Rules::parse(&"local all all peer\n".repeat(RULES_MAX + 1)).is_err());
    }
}
