//! Rules and roles together: who comes in, as whom.

use std::net::IpAddr;

use crate::known::KnownPasswords;
use crate::roles::Roles;
use crate::rules::{Method, Origin, Peer, Protocol, Rules, WrongCertificate};
use crate::scram::{Exchange, ScramError, name_of};
use crate::users::Users;
use crate::verifier::Verifier;

use sqltext::role::RoleFlag;

/// What is in force at a moment.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Who may connect.
    pub rules: Rules,
    /// The roles; `None`: none are kept. Then every name is that of a superuser, and nothing can be proved.
    pub roles: Option<Roles>,
    /// The users of memcached's own authentication. Where there are some, memcached's clients must be one of them, and
    /// roles and rules are for PostgreSQL's.
    pub users: Option<Users>,
    /// Memcached's clients must prove who they are even where a rule believes them (`-S`).
    pub always: bool,
}

/// Somebody who was let in. Only this module makes one, so no protocol can let anybody in without a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    role: Option<Box<str>>,
}

impl Authenticated {
    /// Its role; `None`: no roles are kept, or a rule believes everybody on this machine.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No rule, or one that says so.
    Rule,
    /// There is no such role. Only a peer that needs no proof gets this answer.
    UnknownRole,
    /// The role may not connect.
    NoLogin,
    /// The process at the other end belongs to another user of the system.
    Peer,
    /// The proof is wrong, or there is nothing that could be proved.
    Proof,
    /// The rule demands another certificate, or any.
    Certificate,
}

/// What becomes of a peer that names a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is let in.
    In(Authenticated),
    /// It must prove its role: by [`Method::Scram`] or [`Method::Password`].
    Proof(Method),
    /// It is not let in.
    Out(Refusal),
}

/// A SCRAM exchange for a role.
#[derive(Debug)]
pub struct Proving {
    role: Box<str>,
    exchange: Exchange,
}

impl Proving {
    /// The role that is to be proved.
    pub fn role(&self) -> &str {
        &self.role
    }
}

impl Access {
    /// What the rules say of a peer for a role.
    pub fn admit(&self, peer: Peer<'_>, role: &str) -> Admission {
        let none = Roles::default;
        let method = match &self.roles {
            Some(roles) => self.rules.decide(peer, role, roles),
            None => self.rules.decide(peer, role, &none()),
        };
        let method = match method {
            Ok(method) => method,
            Err(WrongCertificate) => return Admission::Out(Refusal::Certificate),
        };
        let admitted = match method {
            Method::Reject => Err(Refusal::Rule),
            Method::Trust | Method::Cert | Method::Peer => self.named(role),
            Method::OtherPeer => Err(Refusal::Peer),
            Method::Scram | Method::Password => return Admission::Proof(method),
        };
        admitted.map_or_else(Admission::Out, Admission::In)
    }

    /// What the rules say of a peer that has named no role: memcached's protocol has none at first. `None`: it must
    /// prove one.
    pub fn admit_nameless(&self, peer: Peer<'_>) -> Option<Result<Authenticated, Refusal>> {
        if self.users.is_some() || self.always {
            return None;
        }
        if let Some(who) = self.certified(peer) {
            return Some(Ok(who));
        }
        match self.rules.at_first(peer) {
            Method::Trust => Some(Ok(Authenticated { role: None })),
            Method::Reject => Some(Err(Refusal::Rule)),
            _ => None,
        }
    }

    /// What the rules say of a peer by HTTP that shows no password. `None`: it must show one.
    pub fn admit_by_http(&self, peer: Peer<'_>) -> Option<Result<Authenticated, Refusal>> {
        match self.rules.at_first(peer) {
            Method::Trust => Some(Ok(Authenticated { role: None })),
            Method::Reject => Some(Err(Refusal::Rule)),
            _ => None,
        }
    }

    /// Checks a password that a peer shows by HTTP. Takes about a millisecond, unless it was right before. A rule that
    /// asks for SCRAM means that nobody on the way may hear the password: on this machine nobody does.
    pub fn check_by_http(
        &self,
        known: &KnownPasswords,
        peer: Peer<'_>,
        role: &str,
        password: &str,
    ) -> Result<Authenticated, Refusal> {
        let proved = self.check_password(known, role, password)?;
        let local = matches!(peer.origin, Origin::Network(address, _) if address.is_loopback());
        match self.roles.as_ref().map(|roles| self.rules.method(peer, role, roles)) {
            Some(Method::Password | Method::Trust) => Ok(proved),
            Some(Method::Scram) if local => Ok(proved),
            _ => Err(Refusal::Rule),
        }
    }

    /// Whom a peer's certificate proves it to be, where the rules go by that.
    fn certified(&self, peer: Peer<'_>) -> Option<Authenticated> {
        let (certificate, roles) = (peer.certificate?, self.roles.as_ref()?);
        let names = [certificate.common_name.as_deref(), Some(certificate.subject.as_str())];
        let proved = |role: &&str| self.rules.method(peer, role, roles) == Method::Cert;
        let named = names.into_iter().flatten().flat_map(|name| self.rules.roles_of(name));
        named.into_iter().find(proved).and_then(|role| self.named(role).ok())
    }

    /// Begins an exchange: the client's first message, and the answer to it.
    pub fn begin_scram(
        &self,
        role: &str,
        mechanism: &str,
        message: &[u8],
        endpoint: Option<&[u8]>,
    ) -> Result<(Proving, String), ScramError> {
        let none = Roles::default();
        let (verifier, real) = self.roles.as_ref().unwrap_or(&none).verifier_of(role);
        let (exchange, answer) = Exchange::begin(mechanism, message, verifier, real, endpoint)?;
        Ok((Proving { role: role.into(), exchange }, answer))
    }

    /// Ends an exchange: the client's proof, and the server's.
    pub fn finish_scram(&self, proving: Proving, message: &[u8]) -> Result<(String, Authenticated), Refusal> {
        let Proving { role, exchange } = proving;
        let answer = exchange.finish(message).map_err(|_| Refusal::Proof)?;
        Ok((answer, self.named(&role)?))
    }

    /// Begins an exchange with a client of memcached's, which names its role in its first message.
    pub fn begin_memcached_scram(
        &self,
        mechanism: &str,
        message: &[u8],
        endpoint: Option<&[u8]>,
    ) -> Result<(Proving, String), ScramError> {
        let role = name_of(message)?;
        let (verifier, real) = self.memcached_verifier_of(&role);
        let (exchange, answer) = Exchange::begin(mechanism, message, verifier, real, endpoint)?;
        Ok((Proving { role: role.into(), exchange }, answer))
    }

    /// Ends it: the client's proof, and the server's.
    pub fn finish_memcached_scram(
        &self,
        peer: Peer<'_>,
        proving: Proving,
        message: &[u8],
    ) -> Result<(String, Authenticated), Refusal> {
        let Proving { role, exchange } = proving;
        let answer = exchange.finish(message).map_err(|_| Refusal::Proof)?;
        Ok((answer, self.proved_memcached(peer, &role, &[Method::Password, Method::Scram])?))
    }

    /// Somebody who has proved a role over memcached's protocol, if the rules take such a proof.
    fn proved_memcached(&self, peer: Peer<'_>, role: &str, by: &[Method]) -> Result<Authenticated, Refusal> {
        if self.users.is_some() {
            return Ok(Authenticated { role: None });
        }
        let proved = self.named(role)?;
        let asked = self.roles.as_ref().map(|roles| self.rules.method(peer, role, roles));
        let enough = |asked| by.contains(&asked) || self.always && asked == Method::Trust;
        if asked.is_some_and(enough) { Ok(proved) } else { Err(Refusal::Rule) }
    }

    /// Checks a password that is shown. Takes about a millisecond, unless it was right before.
    pub fn check_password(
        &self,
        known: &KnownPasswords,
        role: &str,
        password: &str,
    ) -> Result<Authenticated, Refusal> {
        let none = Roles::default();
        let (verifier, real) = self.roles.as_ref().unwrap_or(&none).verifier_of(role);
        check(known, role, password, &verifier, real)?;
        self.named(role)
    }

    /// Whether [`Self::check_password`] takes a microsecond, because the password was right before.
    pub fn knows_password(&self, known: &KnownPasswords, role: &str, password: &str) -> bool {
        let none = Roles::default();
        let (verifier, real) = self.roles.as_ref().unwrap_or(&none).verifier_of(role);
        real && known.has(role, &verifier, password)
    }

    /// The same for a client of memcached's, which shows its password before it is known what the rules ask.
    pub fn check_memcached(
        &self,
        known: &KnownPasswords,
        peer: Peer<'_>,
        role: &str,
        password: &str,
    ) -> Result<Authenticated, Refusal> {
        if self.users.is_some() {
            let (verifier, real) = self.memcached_verifier_of(role);
            check(known, role, password, &verifier, real)?;
        } else {
            // Checked whatever the rules say, so that the answer takes as long for every role.
            self.check_password(known, role, password)?;
        }
        self.proved_memcached(peer, role, &[Method::Password])
    }

    /// Whether [`Self::check_memcached`] takes a microsecond, because the password was right before.
    pub fn knows_memcached(&self, known: &KnownPasswords, role: &str, password: &str) -> bool {
        let (verifier, real) = self.memcached_verifier_of(role);
        real && known.has(role, &verifier, password)
    }

    /// The verifier of a user or role of memcached's clients, or one that no password has.
    fn memcached_verifier_of(&self, role: &str) -> (Verifier, bool) {
        match (&self.users, &self.roles) {
            (Some(users), _) => {
                let real = users.verifier_of(role);
                (real.cloned().unwrap_or_else(|| users.mock(role)), real.is_some())
            }
            (None, Some(roles)) => roles.verifier_of(role),
            (None, None) => Roles::default().verifier_of(role),
        }
    }

    /// Whether peers of an address that others than this machine's can have must prove who they are.
    pub fn asks_for_proof(&self, protocol: Protocol, address: IpAddr) -> bool {
        let by_user = protocol == Protocol::Memcached && self.users.is_some();
        by_user || self.roles.is_some() && self.rules.asks_for_proof(protocol, address)
    }

    /// Somebody whose name is known to be right.
    fn named(&self, role: &str) -> Result<Authenticated, Refusal> {
        let Some(roles) = &self.roles else { return Ok(Authenticated { role: None }) };
        match roles.get(role) {
            None => Err(Refusal::UnknownRole),
            Some(found) if !found.is(RoleFlag::Login) => Err(Refusal::NoLogin),
            Some(_) => Ok(Authenticated { role: Some(role.into()) }),
        }
    }
}

/// Derived for a role that does not exist, too: the answer takes as long.
fn check(
    known: &KnownPasswords,
    role: &str,
    password: &str,
    verifier: &Verifier,
    real: bool,
) -> Result<(), Refusal> {
    if known.has(role, verifier, password) {
        return Ok(());
    }
    if !(verifier.is_of(password) && real) {
        return Err(Refusal::Proof);
    }
    known.add(role, verifier, password);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(rules: &str) -> Access {
        let roles = "CREATE USER app PASSWORD 'x'; CREATE ROLE team PASSWORD 'x'; CREATE USER old PASSWORD 'x' VALID UNTIL '2001-01-01';";
        Access {
            rules: Rules::parse(rules).unwrap(),
            roles: Some(Roles::parse(roles).unwrap()),
            ..Access::default()
        }
    }

    #[test]
    fn who_comes_in() {
        let access =
            access("local all all peer\nhost all all 127.0.0.1/32 trust\nhost all all all scram-sha-256");
        let admitted = |origin: &Origin, role| {
            let protocol = Protocol::Sql;
            access.admit(Peer { origin, protocol, database: Some("x"), certificate: None }, role)
        };
        let unix = Origin::Unix(Some("app".into()));
        let here = Origin::Network("127.0.0.1".parse().unwrap(), false);
        let app = Admission::In(Authenticated { role: Some("app".into()) });
        assert_eq!(admitted(&unix, "app"), app);
        assert_eq!(admitted(&unix, "team"), Admission::Out(Refusal::Peer));
        assert_eq!(admitted(&here, "app"), app);
        assert_eq!(admitted(&here, "team"), Admission::Out(Refusal::NoLogin));
        assert_eq!(admitted(&here, "nobody"), Admission::Out(Refusal::UnknownRole));
        let far = Origin::Network("10.0.0.1".parse().unwrap(), false);
        assert_eq!(admitted(&far, "nobody"), Admission::Proof(Method::Scram));
    }

    #[test]
    fn passwords() {
        let (access, known) = (access(""), KnownPasswords::default());
        for _ in 0..2 {
            assert_eq!(access.check_password(&known, "app", "x").unwrap().role(), Some("app"));
            assert_eq!(access.check_password(&known, "app", "y"), Err(Refusal::Proof));
            assert_eq!(access.check_password(&known, "team", "x"), Err(Refusal::NoLogin));
            assert_eq!(access.check_password(&known, "old", "x"), Err(Refusal::Proof));
            assert_eq!(access.check_password(&known, "nobody", "x"), Err(Refusal::Proof));
        }
        assert_eq!(Access::default().check_password(&known, "app", "x"), Err(Refusal::Proof));
    }

    #[test]
    fn by_http() {
        let access = access(
            "host all all 127.0.0.1/32 scram-sha-256\nhost all all 10.0.0.0/8 password protocol=http\n\
             host all all 10.0.0.0/8 scram-sha-256\nhost all all ::1/128 trust",
        );
        let known = KnownPasswords::default();
        let from = |address: &str| Origin::Network(address.parse().unwrap(), false);
        let by = |origin, protocol| Peer { origin, protocol, database: None, certificate: None };
        let (here, far, other) = (from("127.0.0.1"), from("10.1.1.1"), from("192.168.1.1"));
        let trusted = from("::1");
        assert!(matches!(access.admit_by_http(by(&trusted, Protocol::Http)), Some(Ok(_))));
        assert_eq!(access.admit_by_http(by(&here, Protocol::Http)), None);
        assert_eq!(access.admit_by_http(by(&far, Protocol::Http)), None);
        assert_eq!(access.admit_by_http(by(&other, Protocol::Http)), Some(Err(Refusal::Rule)));
        let checked = |origin, password| {
            let who = access.check_by_http(&known, by(origin, Protocol::Http), "app", password);
            who.map(|who| who.role().map(ToOwned::to_owned))
        };
        assert_eq!(checked(&here, "x"), Ok(Some("app".into())), "nobody hears it on this machine");
        assert_eq!(checked(&far, "x"), Ok(Some("app".into())));
        assert_eq!(checked(&far, "y"), Err(Refusal::Proof));
        assert_eq!(checked(&other, "x"), Err(Refusal::Rule));
    }

    /// A wrong password, an unknown role, one without a password and one whose password ended are answered alike, and
    /// take as long on the processor, which is offered to other programs meanwhile: the shortest of several times of
    /// each.
    #[test]
    fn refusals_take_as_long() {
        let access = Access {
            roles: Some(
                Roles::parse(
                    "CREATE USER app PASSWORD 'x'; CREATE USER old PASSWORD 'x' VALID UNTIL '2001-01-01'; CREATE USER bare;",
                )
                .unwrap(),
            ),
            ..Access::default()
        };
        let known = KnownPasswords::default();
        let processor_time = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            std::time::Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
        };
        let mut shortest = [std::time::Duration::MAX; 4];
        for _ in 0..30 {
            for (role, shortest) in ["app", "old", "bare", "nobody"].iter().zip(&mut shortest) {
                let begin = processor_time();
                assert_eq!(access.check_password(&known, role, "y"), Err(Refusal::Proof));
                *shortest = processor_time().checked_sub(begin).unwrap().min(*shortest);
            }
        }
        let [least, greatest] = [shortest.iter().min().unwrap(), shortest.iter().max().unwrap()];
        println!("wrong, ended, none, unknown: {shortest:?}");
        assert!(greatest.as_secs_f64() < least.as_secs_f64() * 1.25, "{shortest:?}");
    }
}
