//! Who a request is of: the rules let a peer in as it is, or it shows a role's password (Basic, RFC 7617).

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::auth::{Authenticated, Origin, Peer, Protocol};
use hyper::header::{AUTHORIZATION, HeaderMap};

use super::answer::Refusal;
use super::{Door, From};
use crate::origin::{Place, failed};
use crate::pace::milliseconds;

/// What sessions and the list of refusals call this protocol.
pub(super) const HTTP: &str = "http";

/// The role that a request acts by.
pub(super) async fn admit(door: &Door, headers: &HeaderMap, from: From) -> Result<Authenticated, Refusal> {
    let address = from.address;
    let origin = Origin::Network(address, from.is_encrypted);
    let peer = Peer { origin: &origin, protocol: Protocol::Http, database: None, certificate: None };
    let access = &door.shared.engine.access;
    let shown = headers.get(AUTHORIZATION).and_then(|header| basic(header.to_str().ok()?));
    match (access.current().admit_by_http(peer), shown) {
        (Some(Err(_)), _) => {
            access.note_failure(failed(None, Some(address), HTTP, "refused by the rules"));
            Err(Refusal::Rule)
        }
        (Some(Ok(who)), None) => Ok(who),
        (None, None) => Err(Refusal::Proof),
        (_, Some((role, password))) => {
            let checked = access.check_by_http(peer, &role, &password);
            if checked.is_ok() {
                access.forget_failures(Some(address));
            } else {
                turn_away(door, &role, address).await;
            }
            checked.map_err(|_| Refusal::Proof)
        }
    }
}

/// Takes note of a wrong proof. The answer waits, longer each time.
async fn turn_away(door: &Door, role: &str, address: std::net::IpAddr) {
    let engine = &door.shared.engine;
    tracing::warn!(address = %Place(Some(address)), role, "HTTP client refused: authentication failure");
    engine.access.note_failure(failed(Some(role), Some(address), HTTP, "authentication failure"));
    let wait = engine.access.count_failure(Some(address), milliseconds(engine.store().now()));
    tokio::time::sleep(Duration::from_millis(wait)).await;
}

/// The role and the password of a header.
fn basic(header: &str) -> Option<(String, String)> {
    let (scheme, shown) = header.split_once(' ')?;
    let bytes = BASE64_STANDARD.decode(shown.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(bytes).ok()?;
    let (role, password) = text.split_once(':')?;
    Some((role.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::basic;

    #[test]
    fn headers() {
        let pair = |role: &str, password: &str| Some((role.to_owned(), password.to_owned()));
        assert_eq!(basic("Basic YTpiOmM="), pair("a", "b:c"));
        assert_eq!(basic("basic  Og=="), pair("", ""));
        for wrong in ["", "Basic", "Basic !", "Basic YQ==", "Bearer YTpi", "Basic /zph"] {
            assert_eq!(basic(wrong), None, "{wrong}");
        }
    }
}
