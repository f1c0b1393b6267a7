//! The paths and what each answers: one table, beside that of the console's files (`assets.rs`).

use std::net::IpAddr;
use std::sync::Arc;

use engine::Session;
use engine::auth::Authenticated;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Method, Request, StatusCode};

use super::answer::{Answer, Refusal, body, guarded, text};
use super::assets::Asset;
use super::exposition::{Format, Page};
use super::{Door, From, access, guard, memcached_names, statement};

/// A path.
struct Route {
    path: &'static str,
    method: &'static Method,
    take: Take,
}

/// Who answers it.
#[derive(Clone, Copy)]
enum Take {
    /// Anybody is answered, and nothing is said of what the server holds: for those who restart it.
    Health(fn(&Door) -> Answer),
    /// Who is let in is answered.
    Known(fn(&Door, &Asked<'_>) -> Result<Answer, Refusal>),
    /// Who is let in has a statement run.
    Statement,
}

/// A request whose peer is known.
struct Asked<'r> {
    headers: &'r HeaderMap,
    session: Session,
}

const ROUTES: &[Route] = &[
    Route { path: "/sql", method: &Method::POST, take: Take::Statement },
    Route { path: "/metrics", method: &Method::GET, take: Take::Known(metrics) },
    Route { path: "/metrics/memcached", method: &Method::GET, take: Take::Known(memcached_metrics) },
    Route { path: "/livez", method: &Method::GET, take: Take::Health(live) },
    Route { path: "/readyz", method: &Method::GET, take: Take::Health(ready) },
];

/// The answer to a request, whatever it is.
pub(super) async fn answer(door: &Door, request: Request<Incoming>, from: From) -> Answer {
    guarded(respond(door, request, from).await.unwrap_or_else(Refusal::answer))
}

async fn respond(door: &Door, request: Request<Incoming>, from: From) -> Result<Answer, Refusal> {
    guard::check_host(request.headers(), &door.names)?;
    let found = find(door, &request)?;
    if *request.method() == Method::POST {
        guard::check_sender(request.headers())?;
    }
    if let Found::Route(Take::Health(take)) = found {
        return Ok(take(door));
    }
    let who = access::admit(door, request.headers(), from).await?;
    let address = from.address;
    match found {
        Found::Asset(asset) => Ok(asset.answer(request.headers())),
        Found::Route(Take::Health(take)) => Ok(take(door)),
        Found::Route(Take::Known(take)) => {
            take(door, &Asked { headers: request.headers(), session: session_of(door, &who, address) })
        }
        Found::Route(Take::Statement) => {
            let body = statement::read(request.into_body()).await?;
            statement::answer(door, &who, address, &body).await
        }
    }
}

fn session_of(door: &Door, who: &Authenticated, address: IpAddr) -> Session {
    Session::of(who, &door.shared.engine.access, Some(address), access::HTTP)
}

/// What a request is for.
enum Found<'d> {
    Asset(&'d Asset),
    Route(Take),
}

/// The file or the line of the table that a request is for.
fn find<'d>(door: &'d Door, request: &Request<Incoming>) -> Result<Found<'d>, Refusal> {
    let path = request.uri().path();
    let route =
        ROUTES.iter().find(|route| route.path == path).map(|route| (route.method, Found::Route(route.take)));
    let asset = || door.assets.find(path).map(|asset| (&Method::GET, Found::Asset(asset)));
    let (method, found) = route.or_else(asset).ok_or(Refusal::NotFound)?;
    let asked = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    if asked == method { Ok(found) } else { Err(Refusal::Method(method)) }
}

fn metrics(door: &Door, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    let mut page = Page::new(Format::wanted(asked.headers.get(ACCEPT)));
    let engine = &door.shared.engine;
    let given = asked.session.metrics(engine, &mut |metric, labels, value| page.add(metric, labels, value));
    given.map_err(|_| Refusal::Privilege)?;
    Ok(page.answer())
}

fn memcached_metrics(door: &Door, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    let mut context = door.context.borrow_mut();
    context.begin_batch();
    let mut page = Page::new(Format::wanted(asked.headers.get(ACCEPT)));
    memcached_names::write(&asked.session, &mut context, &mut page).map_err(|_| Refusal::Privilege)?;
    Ok(page.answer())
}

fn live(door: &Door) -> Answer {
    healthy(door.shared.engine.is_alive(), "the housekeeping thread has not had its turn for two seconds\n")
}

fn ready(door: &Door) -> Answer {
    let shared = Arc::clone(&door.shared);
    let why = if shared.is_draining() { "stopping\n" } else { "starting\n" };
    healthy(shared.is_ready(), why)
}

fn healthy(is_well: bool, why_not: &'static str) -> Answer {
    if is_well { text(StatusCode::OK, "ok\n") } else { text(StatusCode::SERVICE_UNAVAILABLE, why_not) }
}

impl Page {
    fn answer(self) -> Answer {
        let content_type = self.format().content_type();
        body(StatusCode::OK, content_type, self.finish())
    }
}
