//! The paths and what each answers: one table.

use std::net::IpAddr;
use std::sync::Arc;

use engine::Session;
use engine::auth::Authenticated;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Method, Request, StatusCode};

use super::answer::{Answer, Refusal, body, guarded, text};
use super::assets::File;
use super::exposition::{Format, Page};
use super::{Door, From, access, guard, memcached_names, statement};

/// A path.
struct Route {
    path: &'static str,
    method: &'static Method,
    take: Take,
}

/// Who answers it.
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
    Route { path: "/", method: &Method::GET, take: Take::Known(page) },
    Route { path: "/console.css", method: &Method::GET, take: Take::Known(style) },
    Route { path: "/console.js", method: &Method::GET, take: Take::Known(script) },
    Route { path: "/icon.svg", method: &Method::GET, take: Take::Known(icon) },
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
    let route = find(&request)?;
    if route.method == Method::POST {
        guard::check_sender(request.headers())?;
    }
    if let Take::Health(take) = route.take {
        return Ok(take(door));
    }
    let who = access::admit(door, request.headers(), from).await?;
    let address = from.address;
    match route.take {
        Take::Health(take) => Ok(take(door)),
        Take::Known(take) => {
            take(door, &Asked { headers: request.headers(), session: session_of(door, &who, address) })
        }
        Take::Statement => {
            let body = statement::read(request.into_body()).await?;
            statement::answer(door, &who, address, &body).await
        }
    }
}

fn session_of(door: &Door, who: &Authenticated, address: IpAddr) -> Session {
    Session::of(who, &door.shared.engine.access, Some(address), access::HTTP)
}

/// The line of the table that a request is for.
fn find(request: &Request<Incoming>) -> Result<&'static Route, Refusal> {
    let path = request.uri().path();
    let route = ROUTES.iter().find(|route| route.path == path).ok_or(Refusal::NotFound)?;
    let asked = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    if asked == route.method { Ok(route) } else { Err(Refusal::Method(route.method)) }
}

#[expect(clippy::unnecessary_wraps, reason = "one of a table")]
fn page(door: &Door, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    Ok(door.assets.answer(File::Page, asked.headers))
}

#[expect(clippy::unnecessary_wraps, reason = "one of a table")]
fn style(door: &Door, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    Ok(door.assets.answer(File::Style, asked.headers))
}

#[expect(clippy::unnecessary_wraps, reason = "one of a table")]
fn script(door: &Door, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    Ok(door.assets.answer(File::Script, asked.headers))
}

#[expect(clippy::unnecessary_wraps, reason = "one of a table")]
fn icon(door: &Door, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    Ok(door.assets.answer(File::Icon, asked.headers))
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
