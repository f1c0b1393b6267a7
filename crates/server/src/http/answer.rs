//! What a request is answered with.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Response, StatusCode};

/// A whole answer: none is made piece by piece.
pub(super) type Answer = Response<Full<Bytes>>;

/// Why there is no other answer than a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The peer calls the server by a name that is not its own.
    Misdirected,
    /// Another page of the browser has sent it.
    CrossSite,
    /// No rule lets the peer in.
    Rule,
    /// It must show a password, or has shown a wrong one.
    Proof,
    /// Its role may not.
    Privilege,
    /// There is no such path.
    NotFound,
    /// The path takes another method.
    Method(&'static Method),
    /// The body is longer than the limit...
    TooLarge,
    /// ...or did not come in time...
    Slow,
    /// ...or was cut off.
    Body,
    /// There are too many statements, or the server stops.
    Busy,
}

impl Refusal {
    fn status(self) -> StatusCode {
        match self {
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::CrossSite | Self::Rule | Self::Privilege => StatusCode::FORBIDDEN,
            Self::Proof => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Body => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Misdirected => {
                "this server does not go by that name; use an address, localhost, or a name listed in http_hosts\n"
            }
            Self::CrossSite => "requests from other pages are refused\n",
            Self::Rule => "no rule lets you in by http (hba_file)\n",
            Self::Proof => "a role and its password are needed\n",
            Self::Privilege => "permission denied; the role must be a member of pg_monitor\n",
            Self::NotFound => "there is no such page\n",
            Self::Method(_) => "this page takes another method\n",
            Self::TooLarge => "the request is longer than 1 MiB\n",
            Self::Slow => "the request did not come in time\n",
            Self::Body => "the request was cut off\n",
            Self::Busy => "too many statements run; try again later\n",
        }
    }

    pub(super) fn answer(self) -> Answer {
        let mut answer = text(self.status(), self.words());
        let extra = match self {
            Self::Proof => Some((WWW_AUTHENTICATE, "Basic realm=\"sqlcached\", charset=\"UTF-8\"")),
            Self::Method(method) => Some((ALLOW, if method == Method::POST { "POST" } else { "GET, HEAD" })),
            _ => None,
        };
        answer.headers_mut().extend(extra.map(|(name, value)| (name, HeaderValue::from_static(value))));
        answer
    }
}

/// An answer of one line or more of plain text.
pub(super) fn text(status: StatusCode, words: impl Into<Bytes>) -> Answer {
    body(status, "text/plain; charset=utf-8", words)
}

/// An answer of this type.
pub(super) fn body(status: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(bytes.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// What every answer says to browsers: nothing of it is run elsewhere, framed, guessed at, or kept.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds [`HEADERS`].
pub(super) fn guarded(mut answer: Answer) -> Answer {
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}
