//! The order of a start, and what signals do afterwards.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Engine, EngineOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{Config, Drained, Reload, Server};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use store::{Clock, Opened, Start, Store, StoreError, StoreOptions};
use tracing::{error, info, warn};

use crate::access;
use crate::background;
use crate::greeting;
use crate::history;
use crate::init_file;
use crate::log::{Log, NOTICE};
use crate::place::{self, Places};
use crate::process::{self, PidFile, become_user};
use crate::replace::{PUBLIC, replace};
use crate::service;
use crate::settings::{
    ANY_PORT, AUTHENTICATION_TIMEOUT, Address, COLD, Chosen, DEAD_MEMORY_PERCENT, DUMP_ENABLED, EVICTIONS,
    FLUSH_ENABLED, HTTP_HOSTS, HTTP_LISTEN_ADDRESSES, HTTP_PORT, HUGE_PAGES, IDLE_TIMEOUT, INIT_FILE,
    LISTEN_ADDRESSES, LISTEN_BACKLOG, LOG_MIN_DURATION_STATEMENT, LOG_PARAMETER_MAX_LENGTH, MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_ADDRESS, MAX_ITEM_SIZE, MAX_RESULT_SIZE, MEMORY_MB, MEMORY_MB_MIN, NATIVE_EXECUTION,
    NEVER, PID_FILE, SHUTDOWN_ENABLED, SQL_PORT, SQL_SOCKET_DIR, SQL_THREADS, STAT_DELIMITER,
    STATEMENT_TIMEOUT, Setting, THREADS, UNIX_SOCKET_PATH, UNIX_SOCKET_PERMISSIONS, USER, VERBOSITY,
    WATCH_ENABLED,
};
use crate::span::span;
use crate::tls;
use crate::warnings;

/// The environment variable that names the file for the ports.
const PORTS_VARIABLE: &str = "MEMCACHED_PORT_FILENAME";

/// What `systemctl status` shows while it serves.
const SERVES: &str = "serving";

/// How long a stop waits for replies that are being sent. Service managers kill after 10 seconds or more.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

/// How often a start looks again for the arena's file, and how long it waits in between: five seconds in all. A process
/// that was killed leaves its port first and its files a moment later. A start between the two need not fail.
const HAND_OVER_LOOKS: usize = 250;
const HAND_OVER_PAUSE: Duration = Duration::from_millis(20);

/// Descriptors beside the connections: arena, listeners, epolls, log, and room for `accept` to say no.
const DESCRIPTORS_BESIDE: u64 = 64;

/// Bytes of a row beyond its value: key, header, and other columns that fit beside the largest value.
const ROW_BYTES_BESIDE: usize = 64 << 10;

/// Starts with the first settings, serves until SIGTERM or SIGINT. `read_again` reads all settings again for SIGHUP.
/// `ignored`: flags of memcached's that mean nothing here. `background`: somebody waits to hear that it serves.
pub(crate) fn run(
    chosen: &Chosen,
    ignored: &[String],
    background: bool,
    read_again: impl Fn() -> Result<Chosen, String>,
) -> Result<(), String> {
    let sockets = service::Sockets::of_manager();
    // Root may raise the limit, and there is one thread only so far: a user belongs to each thread.
    allow_descriptors(chosen)?;
    become_user(chosen.path(&USER))?;
    #[expect(clippy::disallowed_methods, reason = "how long the process ran is no time of a row")]
    let began = Instant::now();
    let log = Arc::new(Log::start(chosen.number(&VERBOSITY)));
    if chosen.number(&MEMORY_MB) < MEMORY_MB_MIN {
        warn!("memory_mb: less than {MEMORY_MB_MIN} MiB is not enough; using {MEMORY_MB_MIN} MiB");
    }
    for flag in ignored {
        warn!("this memcached flag has no effect: {flag}");
    }
    // Registered first: a SIGTERM during a long start is kept and obeyed at its end.
    let signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(|error| format!("cannot take signals: {error}"))?;
    let mut places = Places::prepare(chosen)?;
    warnings::warn_of(&places, memory_mb(chosen));
    let Opened { store, start } = open_store(chosen, &mut places)?;
    let mut unfinished = Unfinished::of(&start, &places);
    store.set_evictions(chosen.is_on(&EVICTIONS));
    store.set_dead_memory_percent(chosen.number(&DEAD_MEMORY_PERCENT));
    store.set_huge_pages(chosen.is_word(&HUGE_PAGES, "try"));
    let engine = Engine::new(Arc::clone(&store), engine_options(chosen));
    access::start(chosen, &engine)?;
    let made = make_tables(chosen, &engine)?;
    let config = Config { tls: tls::material(chosen)?, ..server_config(chosen, &places) };
    engine.describe_settings(chosen.facts());
    set_slow_log(chosen, &engine);
    let own_log = Arc::clone(&log);
    engine.on_verbosity(chosen.number(&VERBOSITY), Box::new(move |level| own_log.set(level)));
    // Before anybody is served: what a source may have changed meanwhile is gone.
    let forwards = Arc::new(forward::Forwards::default());
    engine.sources.attach_forwarding(Arc::<forward::Forwards>::clone(&forwards));
    let sources = source::Sources::start(&engine, &forwards).map_err(|error| format!("sources: {error}"))?;
    // The same of what other caches have told.
    let buses = cluster::Buses::start(&engine).map_err(|error| format!("buses: {error}"))?;
    // It is this process's own signal, which no worker waits for.
    engine.on_refresh(Box::new(process::ask_to_reload));
    if let Some(sockets) = &sockets {
        let addresses = [&config.listen_addresses, &config.sql_addresses, &config.http_addresses];
        let paths = [&config.unix_socket, &config.sql_socket];
        let paths: Vec<&Path> = paths.into_iter().filter_map(Option::as_deref).collect();
        sockets.let_others_go(&addresses.map(Vec::as_slice).concat(), &paths);
    }
    let handover = sockets.as_ref().map(|sockets| &sockets.handover);
    let server = Server::start(&config, Arc::clone(&engine), Arc::clone(&forwards), handover)
        .map_err(|error| explained(&error.to_string()))?;
    unfinished.serves();
    history::keep(&engine, places.arena.as_deref(), &start);
    greeting::print(&greeting::Facts {
        start: &start,
        tables_made: made,
        addresses: server.addresses(),
        sql_addresses: server.sql_addresses(),
        sql_socket: server.serves_sql_socket().then_some(places.sql_socket.as_deref()).flatten(),
        http_addresses: server.http_addresses(),
        socket: server.serves_socket().then_some(places.socket.as_deref()).flatten(),
        places: &places,
        memory_mb: memory_mb(chosen),
        tls: config.tls.is_some(),
    });
    let pid_file = PidFile::write(chosen.path(&PID_FILE));
    write_ports(server.addresses());
    if background {
        background::say_ready();
    }
    if let Some(sockets) = sockets {
        sockets.keep();
    }
    service::say_ready(SERVES);
    service::begin_watchdog(&engine);
    let signal = serve(&server, &engine, &log, chosen.clone(), signals, read_again);
    let stopped = format!("stopped by {} after {}", name_of(signal), span(began.elapsed()));
    service::say_stopping();
    drop(pid_file);
    match server.drain(DRAIN_PATIENCE) {
        Drained::Whole => info!(target: NOTICE, "{stopped}; every reply was sent"),
        Drained::Cut(connections) => {
            warn!("{stopped}; {connections} connections were closed in the middle of a reply");
        }
    }
    drop(sources);
    drop(buses);
    drop(engine);
    drop(store);
    Ok(())
}

/// Says in a file which ports it has, as memcached does where the environment names one: so a test that lets it take
/// any finds it.
#[allow(clippy::disallowed_methods, reason = "memcached's variable, which is no setting")]
fn write_ports(addresses: &[SocketAddr]) {
    let Some(path) = std::env::var_os(PORTS_VARIABLE) else { return };
    let line = |address: &SocketAddr| {
        format!("TCP {}: {}\n", if address.is_ipv4() { "INET" } else { "INET6" }, address.port())
    };
    let text: String = addresses.iter().map(line).collect();
    // Whoever waits for the file finds it whole.
    if let Err(error) = replace(path.as_ref(), &text, PUBLIC) {
        warn!("{PORTS_VARIABLE}: {}: {error}", path.display());
    }
}

fn name_of(signal: i32) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("a signal")
}

/// Waits for signals. Returns the one that asks to stop.
fn serve(
    server: &Server,
    engine: &Engine,
    log: &Log,
    mut chosen: Chosen,
    mut signals: Signals,
    read_again: impl Fn() -> Result<Chosen, String>,
) -> i32 {
    for signal in signals.forever() {
        if signal != SIGHUP {
            return signal;
        }
        service::say_reloading();
        match read_again() {
            Ok(new) => {
                let changed = reload(server, log, &chosen, &new);
                access::reload(&new, engine);
                tls::reload(&new, server);
                set_slow_log(&new, engine);
                engine.store().set_dead_memory_percent(new.number(&DEAD_MEMORY_PERCENT));
                engine.describe_settings(new.facts());
                chosen = new;
                // Last, when all of it is in force.
                info!(target: NOTICE, "settings read again: {changed} changed");
            }
            Err(why) => error!("the settings were not changed: {why}"),
        }
        service::say_ready(SERVES);
    }
    SIGTERM
}

fn set_slow_log(chosen: &Chosen, engine: &Engine) {
    let from_ms = Some(chosen.number(&LOG_MIN_DURATION_STATEMENT)).filter(|ms| *ms != NEVER);
    engine.set_slow_log(from_ms, chosen.count(&LOG_PARAMETER_MAX_LENGTH));
}

/// Takes what the server needs. Returns the names of the settings that changed and are in force.
fn reload(server: &Server, log: &Log, old: &Chosen, new: &Chosen) -> String {
    log.set(new.number(&VERBOSITY));
    let changed = old.changed(new);
    let (now, later): (Vec<&Setting>, Vec<&Setting>) = changed.iter().partition(|setting| setting.reloadable);
    for setting in later {
        warn!("{} changes at the next start", setting.name);
    }
    if let Err(why) = allow_descriptors(new) {
        error!("{why}");
    }
    server.reload(&Reload {
        max_connections: new.count(&MAX_CONNECTIONS),
        max_connections_per_address: new.count(&MAX_CONNECTIONS_PER_ADDRESS),
        statement_timeout: new.time(&STATEMENT_TIMEOUT),
        native_execution: new.is_on(&NATIVE_EXECUTION),
        idle_timeout: new.time(&IDLE_TIMEOUT),
        authentication_timeout: new.value(&AUTHENTICATION_TIMEOUT).time(),
    });
    let now: Vec<&str> = now.iter().map(|setting| setting.name).collect();
    if now.is_empty() { "none".to_owned() } else { now.join(", ") }
}

/// Opens the arena. One that was not asked for, and belongs to a daemon in another network namespace, is left to it:
/// then rows are in memory of this process's own, as with `--arena none`.
fn open_store(chosen: &Chosen, places: &mut Places) -> Result<Opened, String> {
    let open = |places: &Places| Store::open_with(&store_options(chosen, places), places.shared.clone());
    let opened = match open_patiently(|| open(places)) {
        Err(error) if error.is_locked() && places.are_of_another_namespace(chosen) => {
            warn!(
                "{error}; rows are kept in memory that ends with this process (choose a file with --arena)"
            );
            (places.arena, places.shared) = (None, None);
            open(places)
        }
        opened => opened,
    };
    opened.map_err(|error| explained(&error.to_string()))
}

/// Opens the arena, also where the process before is about to let go of it.
fn open_patiently(open: impl Fn() -> Result<Opened, StoreError>) -> Result<Opened, StoreError> {
    for _ in 0..HAND_OVER_LOOKS {
        match open() {
            Err(error) if error.is_locked() => thread::sleep(HAND_OVER_PAUSE),
            opened => return opened,
        }
    }
    open()
}

fn store_options(chosen: &Chosen, places: &Places) -> StoreOptions {
    StoreOptions {
        path: places.arena.clone(),
        memory_bytes: memory_mb(chosen) << 20,
        cold: chosen.is_on(&COLD),
        clock: Clock::of_process(),
        row_bytes_max: chosen.count(&MAX_ITEM_SIZE) + ROW_BYTES_BESIDE,
    }
}

fn engine_options(chosen: &Chosen) -> EngineOptions {
    EngineOptions {
        item_size_max: chosen.count(&MAX_ITEM_SIZE),
        result_size_max: chosen.count(&MAX_RESULT_SIZE),
        flush_enabled: chosen.is_on(&FLUSH_ENABLED),
        dump_enabled: chosen.is_on(&DUMP_ENABLED),
        watch_enabled: chosen.is_on(&WATCH_ENABLED),
        shutdown_enabled: chosen.is_on(&SHUTDOWN_ENABLED),
        stat_delimiter: u8::try_from(chosen.number(&STAT_DELIMITER)).ok().filter(|byte| *byte != 0),
        ..EngineOptions::default()
    }
}

/// Runs the init file where there are no tables yet, and compares it with the tables where there are some. There a file
/// that cannot be run is no reason not to serve their rows.
fn make_tables(chosen: &Chosen, engine: &Arc<Engine>) -> Result<usize, String> {
    let path = chosen.path(&INIT_FILE);
    if path.as_os_str() == "none" {
        return Ok(0);
    }
    if engine.store().catalog().tables().count() == 1 {
        return init_file::run(path, engine);
    }
    let applied = init_file::apply(path, engine, chosen.count(&MAX_ITEM_SIZE) + ROW_BYTES_BESIDE);
    Ok(applied.unwrap_or_else(|why| {
        error!("{why}; the tables of the arena are served as they are");
        0
    }))
}

/// Files of a start that did not come to serve. They held nothing a moment ago, and half an init file would pass for a
/// finished one at the next start, so they go.
struct Unfinished<'p>(Option<&'p Places>);

impl<'p> Unfinished<'p> {
    fn of(start: &Start, places: &'p Places) -> Self {
        Self(matches!(start, Start::Cold { .. }).then_some(places))
    }

    fn serves(&mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(places) = self.0 else { return };
        let hits = places.shared.as_deref().map(store::hits_path);
        for path in places.arena.iter().chain(&places.shared).chain(&hits) {
            // Those of shared memory are made for its first table only.
            let _absent = fs::remove_file(path);
        }
    }
}

fn server_config(chosen: &Chosen, places: &Places) -> Config {
    let listen = chosen.addresses(&LISTEN_ADDRESSES);
    let common = tcp_port(place::port(chosen));
    let own = |address: &Address| Some(SocketAddr::new(address.ip, address.port.or(common)?));
    let transport = |address: &Address| Some((own(address)?, address.transport));
    let mut sql_addresses = Vec::new();
    for Address { ip, .. } in listen {
        let address = tcp_port(place::sql_port(chosen)).map(|port| SocketAddr::new(*ip, port));
        // An address with several ports for memcached has one for SQL.
        sql_addresses.extend(address.filter(|address| !sql_addresses.contains(address)));
    }
    let mut http_addresses = Vec::new();
    for address in chosen.addresses(&HTTP_LISTEN_ADDRESSES) {
        let own = tcp_port(place::http_port(chosen)).map(|port| address.port.unwrap_or(port));
        http_addresses.extend(own.map(|port| SocketAddr::new(address.ip, port)));
    }
    Config {
        listen_addresses: listen.iter().filter_map(own).collect(),
        transports: listen.iter().filter_map(transport).collect(),
        unix_socket: places.socket.clone(),
        unix_optional: !chosen.is_given(&UNIX_SOCKET_PATH),
        sql_addresses,
        sql_optional: !chosen.is_given(&SQL_PORT) && !chosen.is_given(&SQL_SOCKET_DIR),
        sql_socket: places.sql_socket.clone(),
        sql_socket_optional: !chosen.is_given(&SQL_SOCKET_DIR),
        http_addresses,
        http_optional: !chosen.is_given(&HTTP_PORT) && !chosen.is_given(&HTTP_LISTEN_ADDRESSES),
        http_hosts: host_names(chosen),
        unix_socket_mode: u32::try_from(chosen.number(&UNIX_SOCKET_PERMISSIONS)).unwrap_or(0o700),
        threads: chosen.count(&THREADS),
        max_connections: chosen.count(&MAX_CONNECTIONS),
        max_connections_per_address: chosen.count(&MAX_CONNECTIONS_PER_ADDRESS),
        sql_threads: chosen.count(&SQL_THREADS),
        statement_timeout: chosen.time(&STATEMENT_TIMEOUT),
        native_execution: chosen.is_on(&NATIVE_EXECUTION),
        idle_timeout: chosen.time(&IDLE_TIMEOUT),
        authentication_timeout: chosen.value(&AUTHENTICATION_TIMEOUT).time(),
        backlog: i32::try_from(chosen.number(&LISTEN_BACKLOG)).unwrap_or(i32::MAX),
        ..Config::default()
    }
}

/// The names by which HTTP clients may call the server.
fn host_names(chosen: &Chosen) -> Vec<String> {
    match chosen.path(&HTTP_HOSTS).to_str() {
        None | Some("none") => Vec::new(),
        Some(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
    }
}

/// A port as the system takes it, where 0 is any; none where there is to be none.
fn tcp_port(chosen: u64) -> Option<u16> {
    match chosen {
        0 => None,
        ANY_PORT => Some(0),
        port => u16::try_from(port).ok(),
    }
}

/// Bytes of memory for rows.
fn memory_mb(chosen: &Chosen) -> u64 {
    chosen.number(&MEMORY_MB).max(MEMORY_MB_MIN)
}

/// Raises the soft limit of open files as far as the connections ask for.
fn allow_descriptors(chosen: &Chosen) -> Result<(), String> {
    let wanted = chosen.number(&MAX_CONNECTIONS) + DESCRIPTORS_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = limit.maximum.map_or(wanted, |maximum| maximum.max(wanted));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|_| maximum) };
    setrlimit(Resource::Nofile, raised).map_err(|error| {
        format!(
            "max_connections needs {wanted} open files, and the system allows {}: {error}; \
             raise it (ulimit -n) or lower max_connections (-c)",
            limit.maximum.unwrap_or(0)
        )
    })
}

/// Adds what to do to the two refusals that everybody meets once.
fn explained(message: &str) -> String {
    if message.contains("in use by another process") {
        return format!(
            "{message}; a daemon is running already, or choose another file (--arena) and port (-p)"
        );
    }
    if message.contains("Address already in use") {
        return format!(
            "{message}; choose another port (-p, --sql-port, --http-port), or 0 to switch it off"
        );
    }
    message.to_owned()
}
