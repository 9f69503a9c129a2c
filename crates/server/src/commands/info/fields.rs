//! INFO's fields, each declared once: its section, its name, and how its value is found.
//!
//! Order and names are Redis's, so that whatever reads INFO finds what it knows; `server_name` and
//! `tidemill_version` say who really answers. What does not exist here, such as forks, is 0.
//!
//! # Invariants
//! - A field's value has no line end.
//! - Sections stand in Redis's order. Those that list things (commands, errors, databases) have
//!   lines instead of fields.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::keyspace::Phase;

use super::facts::{Facts, system_bytes};
use super::lines;
use crate::config::REDIS_VERSION;
use crate::persistence::Status;
use crate::persistence::log_thread::LogThread;
use crate::persistence::snapshot::{Busy, Job};
use crate::sys::{CpuOf, cpu_time};

/// A section of INFO.
pub struct Section {
    /// As its header shows it.
    pub name: &'static str,
    /// Whether INFO without arguments shows it.
    pub in_default: bool,
    /// Its fields.
    pub fields: &'static [Field],
    /// What stands behind the fields: one line for each of something.
    pub lines: Option<fn(&Facts, &mut String)>,
}

/// A field: its name and its value.
pub type Field = (&'static str, fn(&Facts) -> String);

/// Every section.
pub const SECTIONS: &[Section] = &[
    Section {
        name: "Server",
        in_default: true,
        fields: SERVER,
        lines: Some(lines::listeners),
    },
    section("Clients", CLIENTS),
    section("Memory", MEMORY),
    Section {
        lines: Some(lines::persistence),
        ..section("Persistence", PERSISTENCE)
    },
    listing("Threads", lines::threads),
    section("Stats", STATS),
    section("Replication", REPLICATION),
    section("CPU", CPU),
    listing("Hotkeys", lines::hotkeys),
    section("Modules", &[]),
    Section {
        in_default: false,
        ..listing("Commandstats", lines::commands)
    },
    listing("Errorstats", lines::errors),
    Section {
        in_default: false,
        ..listing("Latencystats", lines::latencies)
    },
    section("Cluster", &[("cluster_enabled", zero)]),
    listing("Keyspace", lines::keyspace),
    listing("Keysizes", lines::keysizes),
];

const fn section(name: &'static str, fields: &'static [Field]) -> Section {
    Section {
        name,
        in_default: true,
        fields,
        lines: None,
    }
}

const fn listing(name: &'static str, lines: fn(&Facts, &mut String)) -> Section {
    Section {
        name,
        in_default: true,
        fields: &[],
        lines: Some(lines),
    }
}

fn zero(_: &Facts) -> String {
    "0".into()
}

fn zero_percent(_: &Facts) -> String {
    "0.00".into()
}

fn unknown(_: &Facts) -> String {
    "-1".into()
}

fn show(value: impl ToString) -> String {
    value.to_string()
}

/// Bytes as people read them: two decimals and a unit.
#[allow(clippy::cast_precision_loss)] // Two decimals are shown.
pub fn human(bytes: u64) -> String {
    let units = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

/// A part of a whole, or 0 where there is no whole.
#[allow(clippy::cast_precision_loss)] // Two decimals are shown.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.2}%", 100.0 * ratio(part, whole))
}

const SERVER: &[Field] = &[
    ("redis_version", |_| show(REDIS_VERSION)),
    ("server_name", |_| show("tidemill")),
    ("tidemill_version", |_| show(env!("CARGO_PKG_VERSION"))),
    ("redis_git_sha1", |_| show("00000000")),
    ("redis_git_dirty", zero),
    ("redis_build_id", |_| show("0000000000000000")),
    ("redis_mode", |_| show("standalone")),
    ("os", |_| {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let arch = std::env::consts::ARCH;
        format!("Linux {} {arch}", release.trim())
    }),
    ("arch_bits", |_| show(usize::BITS)),
    ("monotonic_clock", |facts| {
        let clock = match std::env::consts::ARCH {
            "x86_64" => "X86 TSC",
            "aarch64" => "ARM CNTVCT",
            _ => "POSIX clock_gettime",
        };
        format!("{clock} @ {:.0} ticks/us", facts.ticks_per_us)
    }),
    ("multiplexing_api", |_| show("epoll")),
    ("atomicvar_api", |_| show("rust-std")),
    ("gcc_version", |_| show("0.0.0")),
    ("process_id", |_| show(std::process::id())),
    ("process_supervised", |facts| {
        show(crate::supervisor::shown(&facts.config))
    }),
    ("run_id", |facts| facts.shared.run_id.clone()),
    ("tcp_port", |facts| match facts.config.port {
        0 => show(facts.config.tls.port),
        port => show(port),
    }),
    ("server_time_usec", |facts| show(facts.now_us)),
    ("uptime_in_seconds", |facts| show(facts.uptime_s())),
    ("uptime_in_days", |facts| show(facts.uptime_s() / 86_400)),
    ("hz", |facts| show(facts.config.hz)),
    ("configured_hz", |facts| show(facts.config.hz)),
    ("lru_clock", |facts| {
        show((facts.now_us / 1_000_000) & 0xff_ffff)
    }),
    ("executable", |_| {
        let path = std::env::current_exe().unwrap_or_default();
        path.display().to_string()
    }),
    ("config_file", |facts| {
        let file = facts.config.file();
        file.map_or_else(String::new, |file| file.display().to_string())
    }),
    ("io_threads_active", |facts| {
        show(u8::from(facts.shared.inboxes.len() > 1))
    }),
];

const CLIENTS: &[Field] = &[
    ("connected_clients", |facts| {
        show(facts.shared.client_count.load(Ordering::Relaxed))
    }),
    ("cluster_connections", zero),
    ("maxclients", |facts| show(facts.config.maxclients)),
    ("client_recent_max_input_buffer", |facts| {
        show(facts.clients.input_bytes_max)
    }),
    ("client_recent_max_output_buffer", |facts| {
        show(facts.clients.output_bytes_max)
    }),
    ("blocked_clients", |facts| {
        show(facts.shared.keys.blocked_clients.load(Ordering::Relaxed))
    }),
    ("tracking_clients", |facts| {
        show(facts.shared.keys.tracking.clients())
    }),
    ("pubsub_clients", |facts| show(facts.clients.pubsub)),
    ("watching_clients", |facts| show(facts.clients.watching)),
    ("clients_in_timeout_table", zero),
    ("active_clients", |facts| {
        show(facts.shared.client_count.load(Ordering::Relaxed))
    }),
    ("total_watched_keys", |facts| show(facts.watched_keys)),
    ("total_blocking_keys", |facts| show(facts.blocking_keys)),
    ("total_blocking_keys_on_nokey", |facts| {
        show(facts.blocking_on_nokey)
    }),
];

fn startup_bytes(facts: &Facts) -> u64 {
    facts.shared.startup_bytes.load(Ordering::Relaxed)
}

const MEMORY: &[Field] = &[
    ("used_memory", |facts| show(facts.used_bytes)),
    ("used_memory_human", |facts| human(facts.used_bytes as u64)),
    ("used_memory_rss", |facts| show(facts.rss_bytes)),
    ("used_memory_rss_human", |facts| human(facts.rss_bytes)),
    ("used_memory_peak", |facts| show(facts.peak().0)),
    ("used_memory_peak_human", |facts| {
        human(facts.peak().0 as u64)
    }),
    ("used_memory_peak_time", |facts| show(facts.peak().1)),
    ("used_memory_peak_perc", |facts| {
        percent(facts.used_bytes as u64, facts.peak().0 as u64)
    }),
    ("used_memory_overhead", |facts| show(facts.overhead_bytes())),
    ("used_memory_startup", |facts| show(startup_bytes(facts))),
    ("used_memory_dataset", |facts| show(facts.dataset_bytes())),
    ("used_memory_dataset_perc", |facts| {
        let net = (facts.used_bytes as u64).saturating_sub(startup_bytes(facts));
        percent(facts.dataset_bytes() as u64, net)
    }),
    ("allocator_allocated", |facts| show(facts.used_bytes)),
    ("allocator_active", |facts| show(facts.rss_bytes)),
    ("allocator_resident", |facts| show(facts.rss_bytes)),
    ("allocator_muzzy", zero),
    ("total_system_memory", |_| show(system_bytes())),
    ("total_system_memory_human", |_| human(system_bytes())),
    ("used_memory_lua", |facts| show(facts.scripts.vm_eval)),
    ("used_memory_vm_eval", |facts| show(facts.scripts.vm_eval)),
    ("used_memory_lua_human", |facts| {
        human(facts.scripts.vm_eval as u64)
    }),
    ("used_memory_scripts_eval", |facts| {
        show(facts.scripts.eval_bytes)
    }),
    ("number_of_cached_scripts", |facts| {
        show(facts.scripts.cached)
    }),
    ("number_of_functions", |facts| show(facts.scripts.functions)),
    ("number_of_libraries", |facts| show(facts.scripts.libraries)),
    ("used_memory_vm_functions", |facts| {
        show(facts.scripts.vm_functions)
    }),
    ("used_memory_vm_total", |facts| {
        show(facts.scripts.vm_total())
    }),
    ("used_memory_vm_total_human", |facts| {
        human(facts.scripts.vm_total() as u64)
    }),
    ("used_memory_functions", |facts| {
        show(facts.scripts.function_bytes)
    }),
    ("used_memory_hash_templates", zero),
    ("used_memory_scripts", |facts| {
        show(facts.scripts.eval_bytes + facts.scripts.function_bytes)
    }),
    ("used_memory_scripts_human", |facts| {
        human((facts.scripts.eval_bytes + facts.scripts.function_bytes) as u64)
    }),
    ("maxmemory", |facts| show(facts.config.maxmemory_bytes)),
    ("maxmemory_human", |facts| {
        human(facts.config.maxmemory_bytes)
    }),
    ("maxmemory_policy", |facts| {
        let shown = facts.config.get(&[b"maxmemory-policy"]);
        let value = shown
            .first()
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        value.unwrap_or_default()
    }),
    ("allocator_frag_ratio", |facts| {
        format!("{:.2}", ratio(facts.rss_bytes, facts.used_bytes as u64))
    }),
    ("allocator_frag_bytes", |facts| {
        show(facts.rss_bytes.saturating_sub(facts.used_bytes as u64))
    }),
    ("allocator_rss_ratio", |_| show("1.00")),
    ("allocator_rss_bytes", zero),
    ("rss_overhead_ratio", |_| show("1.00")),
    ("rss_overhead_bytes", zero),
    ("mem_fragmentation_ratio", |facts| {
        format!("{:.2}", ratio(facts.rss_bytes, facts.used_bytes as u64))
    }),
    ("mem_fragmentation_bytes", |facts| {
        show(facts.rss_bytes.saturating_sub(facts.used_bytes as u64))
    }),
    ("mem_not_counted_for_evict", zero),
    ("mem_replication_backlog", zero),
    ("mem_total_replication_buffers", zero),
    ("mem_replica_full_sync_buffer", zero),
    ("mem_clients_slaves", zero),
    ("mem_clients_normal", |facts| {
        show(facts.clients.buffer_bytes)
    }),
    ("mem_clients_normal_shared", zero),
    ("mem_clients_normal_unshared", zero),
    ("mem_cluster_slot_migration_output_buffer", zero),
    ("mem_cluster_slot_migration_input_buffer", zero),
    ("mem_cluster_slot_migration_input_buffer_peak", zero),
    ("mem_cluster_links", zero),
    ("mem_aof_buffer", |facts| {
        show(of_log(facts, |log| &log.pending_bytes))
    }),
    ("mem_allocator", |_| show("mimalloc")),
    ("mem_overhead_db_hashtable_rehashing", zero),
    ("active_defrag_running", zero),
    ("lazyfree_pending_objects", |facts| {
        let pending = facts.shared.lazyfree_pending.iter();
        show(
            pending
                .map(|count| count.load(Ordering::Relaxed))
                .sum::<u64>(),
        )
    }),
    ("lazyfreed_objects", |facts| {
        let freed = facts.shared.lazyfreed.iter();
        show(
            freed
                .map(|count| count.load(Ordering::Relaxed))
                .sum::<u64>(),
        )
    }),
];

/// A number of the snapshot under way; 0 where there is none.
fn of_job(facts: &Facts, number: impl Fn(&Job) -> u64) -> u64 {
    facts.shared.snapshots.job().map_or(0, |job| number(&job))
}

const PERSISTENCE: &[Field] = &[
    ("loading", |facts| show(u8::from(is_loading(facts)))),
    ("async_loading", zero),
    // Nothing is copied when written to: these are bytes that a snapshot holds beside the data.
    ("current_cow_peak", |facts| {
        show(of_job(facts, |job| {
            job.progress.held_bytes_max.load(Ordering::Relaxed)
        }))
    }),
    ("current_cow_size", |facts| {
        show(of_job(facts, Job::memory_bytes))
    }),
    ("current_cow_size_age", zero),
    ("current_fork_perc", |facts| {
        let done = of_job(facts, |job| job.progress.keys.load(Ordering::Relaxed));
        let all = of_job(facts, |job| job.cut.keys).max(1);
        format!("{:.2}", ratio(done * 100, all))
    }),
    ("current_save_keys_processed", |facts| {
        show(of_job(facts, |job| {
            job.progress.keys.load(Ordering::Relaxed)
        }))
    }),
    ("current_save_keys_total", |facts| {
        show(of_job(facts, |job| job.cut.keys))
    }),
    ("rdb_changes_since_last_save", |facts| {
        let saved = of_persistence(facts, |status| &status.changes_saved);
        show(facts.keyspace.changes.saturating_sub(saved))
    }),
    ("rdb_bgsave_in_progress", |facts| {
        let busy = facts.shared.snapshots.busy();
        show(u8::from(busy == Some(Busy::Snapshot)))
    }),
    ("rdb_last_save_time", |facts| {
        show(of_persistence(facts, |status| &status.last_save_s))
    }),
    ("rdb_last_bgsave_status", |facts| {
        let failed = &facts.shared.persistence.last_save_failed;
        let failed = failed.load(Ordering::Relaxed);
        if failed { "err" } else { "ok" }.to_owned()
    }),
    ("rdb_last_bgsave_time_sec", |facts| {
        let took_s = &facts.shared.persistence.last_took_s;
        show(took_s.load(Ordering::Relaxed))
    }),
    ("rdb_current_bgsave_time_sec", |facts| {
        match facts.shared.snapshots.job() {
            Some(job) => show(facts.now_us.saturating_sub(job.began_us) / 1_000_000),
            None => unknown(facts),
        }
    }),
    ("rdb_saves", |facts| {
        show(of_persistence(facts, |status| &status.saves))
    }),
    ("rdb_saves_consecutive_failures", |facts| {
        show(of_persistence(facts, |status| &status.failures))
    }),
    ("rdb_last_cow_size", |facts| {
        show(of_persistence(facts, |status| &status.last_held_bytes))
    }),
    ("rdb_last_load_keys_expired", |facts| {
        show(of_persistence(facts, |status| &status.keys_expired))
    }),
    ("rdb_last_load_keys_loaded", |facts| {
        show(of_persistence(facts, |status| &status.keys_loaded))
    }),
    ("aof_enabled", |facts| {
        let is_for_backup = facts.shared.backup.owns_log.load(Ordering::Relaxed);
        show(u8::from(facts.config.appendonly || is_for_backup))
    }),
    ("aof_rewrite_in_progress", |facts| {
        show(u8::from(of_log(facts, |log| &log.rewrite_since_s) != 0))
    }),
    ("aof_rewrite_scheduled", |facts| {
        let scheduled = &facts.shared.log.is_scheduled;
        show(u8::from(scheduled.load(Ordering::Relaxed)))
    }),
    ("aof_last_rewrite_time_sec", |facts| {
        show(facts.shared.log.rewrite_took_s.load(Ordering::Relaxed) - 1)
    }),
    ("aof_current_rewrite_time_sec", |facts| {
        match of_log(facts, |log| &log.rewrite_since_s) {
            0 => "-1".to_owned(),
            since_s => show((facts.now_us / 1_000_000).saturating_sub(since_s)),
        }
    }),
    ("aof_last_bgrewrite_status", |facts| {
        status(of_log(facts, |log| &log.rewrite_failures) == 0)
    }),
    ("aof_rewrites", |facts| {
        show(of_log(facts, |log| &log.rewrites))
    }),
    ("aof_rewrites_consecutive_failures", |facts| {
        show(of_log(facts, |log| &log.rewrite_failures))
    }),
    ("aof_last_write_status", |facts| {
        status(!facts.shared.log.has_failed())
    }),
    ("aof_last_cow_size", zero),
    ("backup_in_progress", |facts| {
        show(u8::from(facts.shared.backup.state().is_under_way()))
    }),
    ("module_fork_in_progress", zero),
    ("module_fork_last_cow_size", zero),
];

fn is_loading(facts: &Facts) -> bool {
    facts.shared.keys.phase() == Phase::Loading
}

fn of_log(facts: &Facts, number: impl Fn(&LogThread) -> &AtomicU64) -> u64 {
    number(&facts.shared.log).load(Ordering::Relaxed)
}

fn status(is_ok: bool) -> String {
    if is_ok { "ok" } else { "err" }.to_owned()
}

fn of_persistence(facts: &Facts, number: impl Fn(&Status) -> &AtomicU64) -> u64 {
    number(&facts.shared.persistence).load(Ordering::Relaxed)
}

fn kilobytes(bytes_a_second: f64) -> String {
    format!("{:.2}", bytes_a_second / 1024.0)
}

/// What threads beside the first one did.
fn beside_first(facts: &Facts, counter: fn(&crate::shared::Network) -> u64) -> String {
    show(
        facts
            .shared
            .network
            .iter()
            .skip(1)
            .map(counter)
            .sum::<u64>(),
    )
}

const STATS: &[Field] = &[
    ("total_connections_received", |facts| {
        show(facts.network(|network| &network.connections))
    }),
    ("total_commands_processed", |facts| {
        show(facts.shared.commands_processed())
    }),
    ("instantaneous_ops_per_sec", |facts| {
        show(facts.rates.commands)
    }),
    ("total_net_input_bytes", |facts| {
        show(facts.network(|network| &network.input_bytes))
    }),
    ("total_net_output_bytes", |facts| {
        show(facts.network(|network| &network.output_bytes))
    }),
    ("total_net_repl_input_bytes", zero),
    ("total_net_repl_output_bytes", zero),
    ("instantaneous_input_kbps", |facts| {
        kilobytes(facts.rates.input_bytes)
    }),
    ("instantaneous_output_kbps", |facts| {
        kilobytes(facts.rates.output_bytes)
    }),
    ("instantaneous_input_repl_kbps", zero_percent),
    ("instantaneous_output_repl_kbps", zero_percent),
    ("rejected_connections", |facts| {
        show(facts.network(|network| &network.rejected))
    }),
    ("sync_full", zero),
    ("sync_partial_ok", zero),
    ("sync_partial_err", zero),
    ("expired_subkeys", |facts| {
        show(facts.keyspace.expired_fields)
    }),
    ("expired_subkeys_active", |facts| {
        show(facts.keyspace.expired_fields_active)
    }),
    ("expired_keys", |facts| show(facts.keyspace.expired)),
    ("expired_keys_active", |facts| {
        show(facts.keyspace.expired_active)
    }),
    ("expired_stale_perc", zero_percent),
    ("expired_time_cap_reached_count", zero),
    ("expire_cycle_cpu_milliseconds", zero),
    ("evicted_keys", |facts| show(facts.keyspace.evicted)),
    ("evicted_clients", |facts| {
        show(facts.network(|network| &network.evicted))
    }),
    ("evicted_scripts", |facts| show(facts.scripts.evicted)),
    ("total_eviction_exceeded_time", zero),
    ("current_eviction_exceeded_time", zero),
    ("keyspace_hits", |facts| show(facts.keyspace.hits)),
    ("keyspace_misses", |facts| show(facts.keyspace.misses)),
    ("pubsub_channels", |facts| show(facts.channels[0])),
    ("pubsub_patterns", |facts| show(facts.channels[1])),
    ("pubsubshard_channels", |facts| show(facts.channels[2])),
    ("latest_fork_usec", zero),
    ("total_forks", zero),
    ("migrate_cached_sockets", zero),
    ("slave_expires_tracked_keys", zero),
    ("active_defrag_hits", zero),
    ("active_defrag_misses", zero),
    ("active_defrag_key_hits", zero),
    ("active_defrag_key_misses", zero),
    ("total_active_defrag_time", zero),
    ("current_active_defrag_time", zero),
    ("tracking_total_keys", |facts| {
        show(facts.shared.keys.tracking.keys())
    }),
    ("tracking_total_items", |facts| {
        show(facts.shared.keys.tracking.items())
    }),
    ("tracking_total_prefixes", |facts| {
        show(facts.shared.keys.tracking.prefixes())
    }),
    ("unexpected_error_replies", zero),
    ("total_error_replies", |facts| {
        let stats = facts.shared.stats.iter();
        show(stats.map(|stats| stats.error_replies.get()).sum::<u64>())
    }),
    ("dump_payload_sanitizations", zero),
    ("total_reads_processed", |facts| {
        show(facts.network(|network| &network.reads))
    }),
    ("total_writes_processed", |facts| {
        show(facts.network(|network| &network.writes))
    }),
    ("io_threaded_reads_processed", |facts| {
        beside_first(facts, |network| network.reads.get())
    }),
    ("io_threaded_writes_processed", |facts| {
        beside_first(facts, |network| network.writes.get())
    }),
    ("io_threaded_total_prefetch_batches", |facts| {
        show(facts.network(|network| &network.prefetch_batches))
    }),
    ("io_threaded_total_prefetch_entries", |facts| {
        show(facts.network(|network| &network.prefetch_entries))
    }),
    ("client_query_buffer_limit_disconnections", |facts| {
        show(facts.network(|network| &network.query_limit_drops))
    }),
    ("client_output_buffer_limit_disconnections", |facts| {
        show(facts.network(|network| &network.output_limit_drops))
    }),
    ("reply_buffer_shrinks", zero),
    ("reply_buffer_expands", zero),
    ("eventloop_cycles", |facts| {
        show(facts.network(|network| &network.cycles))
    }),
    ("eventloop_duration_sum", |facts| {
        format!(
            "{:.0}",
            facts.us(facts.network(|network| &network.busy_ticks))
        )
    }),
    ("eventloop_duration_cmd_sum", |facts| {
        let commands = facts.shared.stats.iter().flat_map(|stats| &stats.commands);
        format!(
            "{:.0}",
            facts.us(commands.map(|command| command.ticks.get()).sum())
        )
    }),
    ("instantaneous_eventloop_cycles_per_sec", |facts| {
        show(facts.rates.cycles)
    }),
    ("instantaneous_eventloop_duration_usec", |facts| {
        show(facts.rates.cycle_us)
    }),
    ("eventloop_cycles_with_clients_processing", |facts| {
        show(facts.network(|network| &network.busy_cycles))
    }),
    ("total_client_processing_events", |facts| {
        show(facts.network(|network| &network.reads))
    }),
    ("avg_pipeline_length_sum", |facts| {
        show(facts.shared.commands_processed())
    }),
    ("avg_pipeline_length_cnt", |facts| {
        show(facts.network(|network| &network.reads))
    }),
    ("avg_pipeline_length", |facts| {
        let reads = facts.network(|network| &network.reads);
        format!("{:.2}", ratio(facts.shared.commands_processed(), reads))
    }),
    ("slowlog_commands_count", |facts| {
        show(facts.shared.slowlog.lock().next)
    }),
    ("slowlog_commands_time_ms_max", |facts| {
        milliseconds(facts.shared.slowlog.lock().took_us_max)
    }),
    ("slowlog_commands_time_ms_sum", |facts| {
        milliseconds(facts.shared.slowlog.lock().took_us_sum)
    }),
    ("hash_templates", zero),
    ("hash_template_keys", zero),
    ("acl_access_denied_auth", |facts| {
        show(facts.shared.users.log.lock().counts.auth)
    }),
    ("acl_access_denied_cmd", |facts| {
        show(facts.shared.users.log.lock().counts.command)
    }),
    ("acl_access_denied_key", |facts| {
        show(facts.shared.users.log.lock().counts.key)
    }),
    ("acl_access_denied_channel", |facts| {
        show(facts.shared.users.log.lock().counts.channel)
    }),
    ("acl_access_denied_tls_cert", |facts| {
        show(facts.shared.users.log.lock().counts.certificate)
    }),
];

fn milliseconds(us: u64) -> String {
    format!("{:.2}", ratio(us, 1000))
}

const REPLICATION: &[Field] = &[
    ("role", |_| show("master")),
    ("connected_slaves", zero),
    ("master_failover_state", |_| show("no-failover")),
    ("master_replid", |facts| {
        facts.shared.replication_id.lock().clone()
    }),
    ("master_replid2", |_| "0".repeat(40)),
    ("master_repl_offset", zero),
    ("second_repl_offset", unknown),
    ("repl_backlog_active", zero),
    ("repl_backlog_size", |facts| {
        let shown = facts.config.get(&[b"repl-backlog-size"]);
        let value = shown
            .first()
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        value.unwrap_or_else(|| "0".into())
    }),
    ("repl_backlog_first_byte_offset", zero),
    ("repl_backlog_histlen", zero),
];

fn seconds(value: f64) -> String {
    format!("{value:.6}")
}

const CPU: &[Field] = &[
    ("used_cpu_sys", |_| {
        seconds(cpu_time(CpuOf::Process).system_s)
    }),
    ("used_cpu_user", |_| {
        seconds(cpu_time(CpuOf::Process).user_s)
    }),
    ("used_cpu_sys_children", |_| {
        seconds(cpu_time(CpuOf::Children).system_s)
    }),
    ("used_cpu_user_children", |_| {
        seconds(cpu_time(CpuOf::Children).user_s)
    }),
    ("used_cpu_sys_main_thread", |facts| {
        seconds(facts.thread_cpu.system_s)
    }),
    ("used_cpu_user_main_thread", |facts| {
        seconds(facts.thread_cpu.user_s)
    }),
];

/// A section as INFO shows it, its header first.
pub fn render(section: &Section, facts: &Facts, text: &mut String) {
    let _ = write!(text, "# {}\r\n", section.name);
    for (name, value) in section.fields {
        let _ = write!(text, "{name}:{}\r\n", value(facts));
    }
    if let Some(lines) = section.lines {
        lines(facts, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What INFO of the real server lists.
    const FACTS: &str = include_str!("../../../../../testkit/compat/redis-8.10.json");
    /// Fields that say who answers.
    const OURS: [&str; 2] = ["server_name", "tidemill_version"];
    /// Sections whose lines depend on what happened.
    const LISTS: [&str; 6] = [
        "Threads",
        "Commandstats",
        "Errorstats",
        "Latencystats",
        "Keyspace",
        "Modules",
    ];

    #[test]
    fn sections_and_fields_are_those_of_redis_in_its_order() {
        let json: serde_json::Value = serde_json::from_str(FACTS).expect("the facts are JSON");
        let theirs = json["info"].as_object().expect("sections");
        let names: std::collections::BTreeSet<_> = SECTIONS.iter().map(|one| one.name).collect();
        assert_eq!(names, theirs.keys().map(String::as_str).collect());
        for section in SECTIONS {
            if LISTS.contains(&section.name) {
                continue;
            }
            let ours = section.fields.iter().map(|(name, _)| *name);
            let ours: Vec<_> = ours.filter(|name| !OURS.contains(name)).collect();
            let theirs = theirs[section.name].as_array().expect("fields").iter();
            let theirs = theirs.filter_map(|name| name.as_str());
            let theirs: Vec<_> = theirs.filter(|name| *name != "listener0").collect();
            assert_eq!(ours, theirs, "{}", section.name);
        }
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(human(0), "0B");
        assert_eq!(human(1023), "1023B");
        assert_eq!(human(693_768), "677.51K");
        assert_eq!(human(25_276_063_744), "23.54G");
        assert_eq!(human(u64::MAX), "16384.00P");
    }
}
