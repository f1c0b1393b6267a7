//! `stats`: counters, gauges and settings under the names that memcached's clients parse.

use std::sync::atomic::Ordering;

use crate::answer::Answer;
use crate::command::VERSION;
use crate::counters::{COUNTERS, Counter, Totals};
use crate::engine::Engine;
use crate::limits::WATCHER_BYTES_MAX;
use crate::privilege::Command;
use crate::process::processor_ticks;
use crate::session::Session;
use crate::thread_context::ThreadContext;
use crate::watch::Watched;

/// What `stats` is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The whole server.
    General,
    /// Settings.
    Settings,
    /// Rows by slab class; there is one class.
    Items,
    /// Memory by slab class.
    Slabs,
    /// Rows by size, which memcached answers only when told to at start.
    Sizes,
    /// Connections.
    Connections,
}

/// The slab class under which everything is reported. Tools sum over the classes that they find.
const CLASS: u32 = 1;

/// Keys that memcached has and clients may ask for, for machinery that does not exist here: always 0.
const ALWAYS_ZERO: &[&str] = &[
    "listen_disabled_num",
    "time_in_listen_disabled_us",
    "response_obj_oom",
    "response_obj_count",
    "response_obj_bytes",
    "read_buf_count",
    "read_buf_bytes",
    "read_buf_bytes_free",
    "read_buf_oom",
    "reserved_fds",
    "hash_is_expanding",
    "slab_reassign_rescues",
    "slab_reassign_chunk_rescues",
    "slab_reassign_evictions_nomem",
    "slab_reassign_inline_reclaim",
    "slab_reassign_busy_items",
    "slab_reassign_busy_deletes",
    "slab_reassign_running",
    "slabs_moved",
    "slab_global_page_pool",
    "lru_crawler_running",
    "lru_crawler_starts",
    "lru_maintainer_juggles",
    "lru_bumps_dropped",
    "lrutail_reflocked",
    "crawler_reclaimed",
    "crawler_items_checked",
    "moves_to_cold",
    "moves_to_warm",
    "moves_within_lru",
    "direct_reclaims",
    "malloc_fails",
    "log_worker_dropped",
    "log_worker_written",
    "unexpected_napi_ids",
    "round_robin_fallback",
];

/// Lines of `stats settings` for machinery that does not exist here, with what stands for "not there" in memcached's
/// own answers: tools read the page as a whole.
const SETTINGS_OF_OTHERS: &[(&str, &str)] = &[
    ("udpport", "0"),
    ("oldest", "0"),
    ("growth_factor", "1.00"),
    ("chunk_size", "0"),
    ("num_threads_per_udp", "0"),
    ("reqs_per_event", "1024"),
    ("cas_enabled", "yes"),
    ("client_flags_size", "4"),
    ("binding_protocol", "auto-negotiate"),
    ("maxconns_fast", "yes"),
    ("hashpower_init", "0"),
    ("slab_reassign", "no"),
    ("slab_automove", "0"),
    ("slab_automove_ratio", "0.00"),
    ("slab_automove_window", "0"),
    ("slab_automove_freeratio", "0.000"),
    ("slab_chunk_max", "0"),
    ("lru_crawler", "no"),
    ("lru_crawler_sleep", "0"),
    ("lru_crawler_tocrawl", "0"),
    ("tail_repair_time", "0"),
    ("hash_algorithm", "own"),
    ("lru_maintainer_thread", "no"),
    ("lru_segmented", "no"),
    ("hot_lru_pct", "0"),
    ("warm_lru_pct", "0"),
    ("hot_max_factor", "0.00"),
    ("warm_max_factor", "0.00"),
    ("temp_lru", "no"),
    ("temporary_ttl", "0"),
    ("worker_logbuf_size", "0"),
    ("read_buf_mem_limit", "0"),
    ("track_sizes", "no"),
    ("inline_ascii_response", "no"),
    ("ssl_keyformat", "0"),
    ("ssl_ciphers", "NULL"),
    ("ssl_wbuf_size", "0"),
    ("ssl_session_cache", "no"),
    ("ssl_kernel_tls", "no"),
    ("num_napi_ids", "NULL"),
];

impl Session {
    /// Gives each statistic of the subject as name and value.
    pub fn stats(
        &self,
        context: &mut ThreadContext,
        subject: Subject,
        give: &mut dyn FnMut(&str, &str),
    ) -> Result<(), Answer> {
        self.allow(Command::Stats)?;
        let engine = context.engine();
        match subject {
            Subject::General => general(engine, give),
            Subject::Settings => settings(engine, give),
            Subject::Items => items(engine, give),
            Subject::Slabs => slabs(engine, give),
            Subject::Sizes => give("sizes_status", "disabled"),
            Subject::Connections => connections(engine, give),
        }
        Ok(())
    }

    /// `stats reset`.
    pub fn reset_stats(&self, context: &mut ThreadContext) -> Answer {
        if let Err(refusal) = self.allow(Command::StatsReset) {
            return refusal;
        }
        context.engine().reset_counters();
        Answer::Reset
    }
}

type Give<'g> = &'g mut dyn FnMut(&str, &str);

fn number(give: Give<'_>, name: &str, value: u64) {
    give(name, &value.to_string());
}

fn general(engine: &Engine, give: Give<'_>) {
    let totals = engine.totals();
    let usage = engine.store.usage();
    process(engine, give);
    // Relaxed throughout: gauges for people to look at.
    number(give, "max_connections", engine.connections_max.load(Ordering::Relaxed) as u64);
    number(give, "curr_connections", engine.connections.load(Ordering::Relaxed) as u64);
    number(give, "total_connections", engine.connections_total.load(Ordering::Relaxed));
    number(give, "rejected_connections", engine.connections_rejected.load(Ordering::Relaxed));
    number(give, "connection_structures", engine.connections.load(Ordering::Relaxed) as u64);
    number(give, "threads", engine.workers.load(Ordering::Relaxed) as u64);
    let below_limit =
        engine.connections.load(Ordering::Relaxed) < engine.connections_max.load(Ordering::Relaxed);
    number(give, "accepting_conns", u64::from(below_limit));
    for (counter, name) in COUNTERS {
        number(give, name, totals.of(*counter));
    }
    let refused = engine.access.refusals.totals();
    number(give, "auth_cmds", refused.passwords.load(Ordering::Relaxed));
    number(give, "auth_errors", refused.wrong_passwords.load(Ordering::Relaxed));
    number(give, "permission_denied", refused.refusals.load(Ordering::Relaxed));
    for name in ALWAYS_ZERO {
        number(give, name, 0);
    }
    let (watchers, skipped, sent) = engine.watchers.facts();
    number(give, "log_watchers", watchers as u64);
    number(give, "log_watcher_skipped", skipped);
    number(give, "log_watcher_sent", sent);
    number(give, "limit_maxbytes", usage.memory_bytes);
    number(give, "hash_bytes", usage.index_bytes);
    number(give, "hash_power_level", u64::from(usage.rows.max(1).ilog2()));
    number(give, "huge_page_bytes", usage.huge_bytes);
    number(give, "bytes", usage.row_bytes);
    number(give, "curr_items", usage.rows);
    number(give, "total_items", stored(&totals));
    let recovered = engine.store.recovered();
    number(give, "recovery_complete", u64::from(recovered.complete));
    number(give, "recovery_rows", recovered.rows);
    number(give, "recovery_dropped", recovered.dropped);
    number(give, "evictions", usage.evicted);
    number(give, "reclaimed", usage.expired);
    number(give, "expired_unfetched", 0);
    number(give, "evicted_unfetched", 0);
    number(give, "evicted_active", 0);
}

/// Values that were stored: sets that were not refused. An approximation that only grows, as memcached's is.
fn stored(totals: &Totals) -> u64 {
    let refused = totals.of(Counter::StoreTooLarge) + totals.of(Counter::StoreNoMemory);
    totals.of(Counter::CmdSet).saturating_sub(refused)
}

fn process(engine: &Engine, give: Give<'_>) {
    number(give, "pid", u64::from(std::process::id()));
    number(give, "uptime", engine.uptime_seconds());
    number(give, "time", engine.store.clock().unix_seconds());
    give("version", VERSION);
    give("sqlcached_version", env!("CARGO_PKG_VERSION"));
    give("libevent", "none");
    give("pointer_size", "64");
    let [user, system] = processor_times();
    give("rusage_user", &user);
    give("rusage_system", &system);
}

/// Seconds of processor time in user and system mode.
fn processor_times() -> [String; 2] {
    processor_ticks().map(|ticks| format!("{}.{:02}0000", ticks / 100, ticks % 100))
}

fn settings(engine: &Engine, give: Give<'_>) {
    number(give, "maxbytes", engine.store.usage().memory_bytes);
    number(give, "maxconns", engine.connections_max.load(Ordering::Relaxed) as u64);
    number(give, "num_threads", engine.workers.load(Ordering::Relaxed) as u64);
    number(give, "item_size_max", engine.options.item_size_max as u64);
    for (name, value) in engine.settings() {
        give(name, &value);
    }
    number(give, "verbosity", engine.verbosity());
    number(give, "watcher_logbuf_size", WATCHER_BYTES_MAX as u64);
    let yes_no = |on: bool| if on { "yes" } else { "no" };
    give("evictions", if engine.store.evicts() { "on" } else { "off" });
    give("detail_enabled", yes_no(engine.watchers.wanted().has(Watched::PREFIXES)));
    give("stat_key_prefix", &char::from(engine.prefixes.delimiter()).to_string());
    give("flush_enabled", yes_no(engine.options.flush_enabled));
    give("dump_enabled", yes_no(engine.options.dump_enabled));
    give("watch_enabled", yes_no(engine.options.watch_enabled));
    give("shutdown_command", yes_no(engine.options.shutdown_enabled));
    for (name, value) in SETTINGS_OF_OTHERS {
        give(name, value);
    }
    security(engine, give);
}

/// Settings of TLS and of proofs under memcached's names.
fn security(engine: &Engine, give: Give<'_>) {
    let all = engine.activity.settings();
    let of =
        |name: &str| all.iter().find(|known| known.name == name).map_or("", |known| known.setting.as_str());
    let yes_no = |on: bool| if on { "yes" } else { "no" };
    let path = |name: &str, none: &'static str| match of(name) {
        "" | "none" => none.to_owned(),
        path => path.to_owned(),
    };
    let encrypts = of("ssl") == "on";
    give("auth_enabled_sasl", yes_no(of("enable_sasl") == "on"));
    give("auth_enabled_ascii", &path("auth_file", "no"));
    give("ssl_enabled", yes_no(encrypts));
    for (name, setting) in
        [("ssl_chain_cert", "ssl_cert_file"), ("ssl_key", "ssl_key_file"), ("ssl_ca_cert", "ssl_ca_file")]
    {
        give(name, &path(setting, "NULL"));
    }
    give("ssl_verify_mode", of("ssl_verify_mode"));
    let oldest = of("ssl_min_protocol_version").to_ascii_lowercase();
    give("ssl_min_version", if encrypts { &oldest } else { "none" });
}

fn items(engine: &Engine, give: Give<'_>) {
    let usage = engine.store.usage();
    if usage.rows == 0 {
        return;
    }
    for (name, value) in [
        ("number", usage.rows),
        ("age", engine.uptime_seconds()),
        ("mem_requested", usage.row_bytes),
        ("evicted", usage.evicted),
        ("evicted_nonzero", 0),
        ("evicted_time", 0),
        ("outofmemory", engine.totals().of(Counter::StoreNoMemory)),
        ("tailrepairs", 0),
        ("number_hot", 0),
        ("number_warm", 0),
        ("number_cold", usage.rows),
        ("age_hot", 0),
        ("age_warm", 0),
        ("evicted_active", 0),
        ("crawler_reclaimed", 0),
        ("crawler_items_checked", 0),
        ("lrutail_reflocked", 0),
        ("moves_to_cold", 0),
        ("moves_to_warm", 0),
        ("moves_within_lru", 0),
        ("direct_reclaims", 0),
        ("hits_to_hot", 0),
        ("hits_to_warm", 0),
        ("hits_to_cold", engine.totals().of(Counter::GetHits)),
        ("hits_to_temp", 0),
        ("reclaimed", usage.expired),
        ("expired_unfetched", 0),
        ("evicted_unfetched", 0),
    ] {
        number(give, &format!("items:{CLASS}:{name}"), value);
    }
}

fn slabs(engine: &Engine, give: Give<'_>) {
    let usage = engine.store.usage();
    let totals = engine.totals();
    if usage.rows > 0 {
        for (name, value) in [
            ("chunk_size", usage.row_bytes.div_ceil(usage.rows)),
            ("chunks_per_page", 1),
            ("total_pages", usage.segment_bytes / SEGMENT_BYTES),
            ("total_chunks", usage.rows),
            ("used_chunks", usage.rows),
            ("free_chunks", 0),
            ("free_chunks_end", 0),
            ("mem_requested", usage.row_bytes),
            ("get_hits", totals.of(Counter::GetHits)),
            ("cmd_set", totals.of(Counter::CmdSet)),
            ("delete_hits", totals.of(Counter::DeleteHits)),
            ("incr_hits", totals.of(Counter::IncrHits)),
            ("decr_hits", totals.of(Counter::DecrHits)),
            ("cas_hits", totals.of(Counter::CasHits)),
            ("cas_badval", totals.of(Counter::CasBadval)),
            ("touch_hits", totals.of(Counter::TouchHits)),
        ] {
            number(give, &format!("{CLASS}:{name}"), value);
        }
    }
    number(give, "active_slabs", u64::from(usage.rows > 0));
    number(give, "total_malloced", usage.segment_bytes);
}

/// Bytes of a segment, which memcached's tools would call a page.
const SEGMENT_BYTES: u64 = 64 << 10;

fn connections(engine: &Engine, give: Give<'_>) {
    number(give, "curr_connections", engine.connections.load(Ordering::Relaxed) as u64);
    number(give, "max_connections", engine.connections_max.load(Ordering::Relaxed) as u64);
}
