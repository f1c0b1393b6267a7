//! Ends the trust in rows when nothing was heard for `max_lag`, by this cache's own clock and on a thread of its own:
//! whatever the bus's thread waits for or works at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Bus, Engine, Lag, LagVerdict};
use store::definition::ServerDef;

use crate::apply::Applier;
use crate::limits::{LOOK_INTERVAL, MAX_LAG, MAX_LAG_MIN, START_WAIT};

/// How old what others told may be when it is applied.
pub(crate) fn max_lag(server: &ServerDef) -> Duration {
    let said = server.option("max_lag").and_then(|text| store::definition::parse_span(text).ok().flatten());
    said.map_or(MAX_LAG, Duration::from_millis).max(MAX_LAG_MIN)
}

/// See the module.
pub(crate) struct Guard {
    bus: Arc<Bus>,
    applier: Applier,
    lag: Lag,
    /// Set when rows may be served: they are fresh, or distrusted.
    ready: Arc<AtomicBool>,
    began: Instant,
    /// The freshness that was judged last.
    judged_ns: Option<u64>,
}

impl Guard {
    /// Of a bus whose thread begins now. What is known of its rows is older if another thread had it before.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        bus: &Arc<Bus>,
        max_lag: Duration,
        ready: &Arc<AtomicBool>,
    ) -> Self {
        let began = now();
        let lag = bus.take_lag().map_or_else(|| Lag::new(max_lag, began), |lag| lag.with_max(max_lag));
        let applier = Applier::new(engine, bus);
        Self { bus: Arc::clone(bus), applier, lag, ready: Arc::clone(ready), began, judged_ns: None }
    }

    /// Until there is nothing more to guard.
    pub(crate) fn run(mut self, is_over: impl Fn() -> bool) {
        while !is_over() {
            self.look();
            thread::park_timeout(LOOK_INTERVAL);
        }
        self.bus.keep_lag(self.lag);
    }

    fn look(&mut self) {
        let (now, now_ns) = (now(), self.bus.now_ns());
        let fresh_ns = self.bus.fresh_ns();
        let since = fresh_ns
            .filter(|_| fresh_ns != self.judged_ns)
            .map(|fresh_ns| Duration::from_nanos(now_ns.saturating_sub(fresh_ns)))
            .filter(|lag| *lag <= self.lag.max())
            .and_then(|lag| now.checked_sub(lag));
        self.judged_ns = fresh_ns;
        let verdict = match since {
            Some(since) => self.lag.judge(since, true, || false),
            None => self.lag.judge(now, false, || false),
        };
        match verdict {
            LagVerdict::Wait => {}
            LagVerdict::Recovered => self.applier.tell_tables(false),
            LagVerdict::Behind | LagVerdict::Distrust => self.distrust(),
        }
        self.say_ready(now);
    }

    fn distrust(&mut self) {
        tracing::warn!(bus = %self.bus.name(), "all tables of the bus are distrusted: nothing was heard for max_lag");
        self.applier.tell_tables(true);
        self.applier.distrust_all(false);
    }

    /// The bus's thread says that rows may be served when they are fresh. A cache must not be away because its bus is,
    /// so after a while they are distrusted instead.
    fn say_ready(&mut self, now: Instant) {
        // Acquire: pairs with the Release of the bus's thread, whose changes of the rows came before.
        if self.ready.load(Ordering::Acquire) || now.saturating_duration_since(self.began) < START_WAIT {
            return;
        }
        self.distrust();
        self.lag.note_distrusted(now);
        // Release: pairs with the Acquire of who waits for it to serve.
        self.ready.store(true, Ordering::Release);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what waits for others waits in real time, whatever clock the rows have"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::thread::{Scope, ScopedJoinHandle};

    use engine::{
        ClientSink, ColumnDescription, CopyOptions, EngineOptions, RowSink, SqlError, SqlSession,
        SqlThreadContext, ValueRef,
    };
    use store::{Clock, Store, StoreOptions};

    use super::*;

    const SHORT_LAG: Duration = Duration::from_millis(200);
    /// What has not come by then does not come.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// A cache with a table on a bus, of which nothing speaks with NATS.
    struct Cache {
        engine: Arc<Engine>,
        bus: Arc<Bus>,
        is_over: AtomicBool,
    }

    struct Sink;

    impl RowSink for Sink {
        fn columns(&mut self, _: &[ColumnDescription]) {}

        fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
            Ok(())
        }
    }

    impl ClientSink for Sink {
        fn begin_copy(&mut self, _: &CopyOptions, _: &engine::Cancel) {}
    }

    impl Cache {
        fn new(on_lag: &str) -> Self {
            let options = StoreOptions {
                path: None,
                memory_bytes: 64 << 20,
                cold: true,
                clock: Clock::System,
                row_bytes_max: 2 << 20,
            };
            let engine = Engine::new(Store::open(&options).unwrap().store, EngineOptions::default());
            let bus = engine.buses.named("bus", engine.store().clock());
            let own = Self { engine, bus, is_over: AtomicBool::new(false) };
            own.run("CREATE SERVER bus FOREIGN DATA WRAPPER nats OPTIONS (servers 'nats://127.0.0.1:1')");
            own.run(&format!(
                "CREATE TABLE page (id INT PRIMARY KEY)
                     WITH (bus = 'bus', replicated = 'invalidate', on_lag = '{on_lag}')"
            ));
            own.run("INSERT INTO page VALUES (1)");
            own
        }

        fn run(&self, sql: &str) {
            let mut session = SqlSession::local(Arc::clone(&self.engine));
            let mut context = SqlThreadContext::new(self.engine.context());
            session.run_text(&mut context, sql, true, &mut Sink).unwrap();
        }

        fn guard<'s>(
            &'s self,
            scope: &'s Scope<'s, '_>,
            ready: bool,
        ) -> ScopedJoinHandle<'s, Arc<AtomicBool>> {
            self.is_over.store(false, Ordering::Relaxed);
            let ready = Arc::new(AtomicBool::new(ready));
            scope.spawn(move || {
                let guard = Guard::new(&self.engine, &self.bus, SHORT_LAG, &ready);
                guard.run(|| self.is_over.load(Ordering::Relaxed));
                ready
            })
        }

        fn end(&self) {
            self.is_over.store(true, Ordering::Relaxed);
        }

        fn emptied(&self) -> u64 {
            self.bus.facts().emptied
        }

        fn is_behind(&self) -> bool {
            self.engine.store().catalog().table("page").unwrap().is_behind()
        }

        fn until(&self, what: &str, is_so: impl Fn() -> bool) {
            let end = now() + PATIENCE;
            while !is_so() {
                if now() >= end {
                    // Else the test waits for the guard, and does not fail.
                    self.end();
                    panic!("it never came to this: {what}");
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The bus's thread waits for something for ever, or does not get through with its work.
    #[test]
    fn rows_are_distrusted_in_time_whatever_the_thread_of_the_bus_does() {
        let cache = Cache::new("empty");
        thread::scope(|scope| {
            let began = now();
            cache.bus.set_fresh(Some(cache.bus.now_ns()));
            let guard = cache.guard(scope, true);
            cache.until("the table is emptied", || cache.emptied() > 0);
            let took = began.elapsed();
            // It goes on, and each time that `max_lag` has passed nothing is believed.
            cache.until("it is emptied once more", || cache.emptied() > 1);
            // What was fresh long ago is not fresh now, though nobody has said so before.
            cache.bus.set_fresh(Some(cache.bus.now_ns() - 10 * u64::try_from(SHORT_LAG.as_nanos()).unwrap()));
            let before = cache.emptied();
            cache.until("it is emptied again", || cache.emptied() > before);
            cache.end();
            guard.join().unwrap();
            assert!(took >= SHORT_LAG, "{took:?}");
        });
    }

    /// Another thread takes the bus over, because its definition has changed: rows are no younger for that, and tables
    /// that fail while the bus is away work again when it is there.
    #[test]
    fn another_thread_of_the_bus_begins_with_rows_as_old_as_they_are() {
        let cache = Cache::new("fail");
        thread::scope(|scope| {
            let first = cache.guard(scope, true);
            cache.until("the bus is away", || cache.is_behind());
            cache.end();
            first.join().unwrap();
            let second = cache.guard(scope, true);
            cache.until("the bus is there", || {
                cache.bus.set_fresh(Some(cache.bus.now_ns()));
                !cache.is_behind()
            });
            cache.end();
            second.join().unwrap();
            let lag = cache.bus.take_lag().unwrap();
            let since = lag.since();
            cache.bus.keep_lag(lag);
            let ready = Arc::new(AtomicBool::new(true));
            let third = Guard::new(&cache.engine, &cache.bus, SHORT_LAG, &ready);
            assert_eq!(third.lag.since(), since);
        });
    }

    /// A cache must not be away because its bus is.
    #[test]
    fn rows_are_served_when_they_are_distrusted() {
        let cache = Cache::new("empty");
        let ready = Arc::new(AtomicBool::new(false));
        let mut guard = Guard::new(&cache.engine, &cache.bus, PATIENCE, &ready);
        guard.look();
        assert!(!ready.load(Ordering::Relaxed) && cache.emptied() == 0);
        guard.began = guard.began.checked_sub(START_WAIT).unwrap();
        guard.look();
        assert!(ready.load(Ordering::Relaxed) && cache.emptied() == 1);
    }
}
