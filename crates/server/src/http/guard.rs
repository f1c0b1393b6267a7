//! What keeps other web pages out. A browser on this machine can send requests to loopback for any page that it shows;
//! so a request must call the server by its own name, and one that a page sends must be of the server's own page.

use std::net::IpAddr;

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};

use super::answer::Refusal;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The first header of this name, as text. A second one, or one that is no text, is an empty text: it equals nothing.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    Some(first.to_str().ok().filter(|_| all.next().is_none()).unwrap_or_default())
}

/// Refuses a request to a name that is not the server's. Somebody else's name can be made to lead to this machine (DNS
/// rebinding), and a page of that name may then read what it asks for. An address belongs to nobody's page.
pub(super) fn check_host(headers: &HeaderMap, names: &[String]) -> Result<(), Refusal> {
    let host = only(headers, &HOST).ok_or(Refusal::Misdirected)?;
    let name = host_name(host).ok_or(Refusal::Misdirected)?;
    let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let is_ours = |own: &str| own.eq_ignore_ascii_case(name);
    if is_address || is_ours("localhost") || names.iter().any(|own| is_ours(own)) {
        Ok(())
    } else {
        Err(Refusal::Misdirected)
    }
}

/// `name:port` without the port. `None` where the port is none.
fn host_name(host: &str) -> Option<&str> {
    let end_of_address = host.rfind(']').map_or(0, |at| at + 1);
    match host[end_of_address..].split_once(':') {
        None => Some(host).filter(|host| !host.is_empty()),
        Some((name, port)) => {
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            Some(&host[..end_of_address + name.len()]).filter(|name| digits && !name.is_empty())
        }
    }
}

/// Refuses what a page of another site sends. Such a page cannot send JSON without asking first, and nobody who asks is
/// allowed anything (there is no CORS).
pub(super) fn check_sender(headers: &HeaderMap) -> Result<(), Refusal> {
    let site = only(headers, &FETCH_SITE);
    let of_own_page = |origin: &str| {
        let (_, authority) = origin.split_once("://").unwrap_or_default();
        only(headers, &HOST).is_some_and(|host| host.eq_ignore_ascii_case(authority))
    };
    let same_site = site.is_none_or(|site| site == "same-origin" || site == "none");
    let same_origin = only(headers, &ORIGIN).is_none_or(of_own_page);
    if same_site && same_origin && is_json(headers) { Ok(()) } else { Err(Refusal::CrossSite) }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = only(headers, &CONTENT_TYPE).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn hosts() {
        let names = ["cache1.example.org".to_owned()];
        for (host, is_ours) in [
            ("127.0.0.1:11280", true),
            ("127.0.0.1", true),
            ("10.1.2.3:80", true),
            ("[::1]:11280", true),
            ("[::1]", true),
            ("localhost:11280", true),
            ("LOCALHOST", true),
            ("cache1.example.org", true),
            ("Cache1.Example.org:11280", true),
            ("evil.example:11280", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("127.0.0.1:80@evil.example", false),
            ("evil.example:", false),
            ("", false),
            (":80", false),
        ] {
            assert_eq!(check_host(&headers(&[("host", host)]), &names).is_ok(), is_ours, "{host}");
        }
        assert!(check_host(&headers(&[]), &names).is_err());
        assert!(check_host(&headers(&[("host", "localhost"), ("host", "localhost")]), &names).is_err());
    }

    #[test]
    fn senders() {
        let json = ("content-type", "application/json; charset=utf-8");
        let host = ("host", "localhost:11280");
        for (rest, allowed) in [
            (vec![json], true),
            (vec![json, ("sec-fetch-site", "same-origin")], true),
            (vec![json, ("sec-fetch-site", "none")], true),
            (vec![json, ("sec-fetch-site", "same-site")], false),
            (vec![json, ("sec-fetch-site", "cross-site")], false),
            (vec![json, ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")], false),
            (vec![json, ("origin", "http://localhost:11280")], true),
            (vec![json, ("origin", "http://evil.example")], false),
            (vec![json, ("origin", "null")], false),
            (vec![], false),
            (vec![("content-type", "application/x-www-form-urlencoded")], false),
            (vec![("content-type", "text/plain")], false),
            (vec![("content-type", "application/json-seq")], false),
        ] {
            let all: Vec<_> = rest.iter().copied().chain([host]).collect();
            assert_eq!(check_sender(&headers(&all)).is_ok(), allowed, "{rest:?}");
        }
    }
}
