//! INFO in Prometheus's text format, with the names that dashboards made for redis_exporter know.
//!
//! # Sources
//! - Prometheus, "Exposition formats", text format 0.0.4.
//! - The metrics that redis_exporter documents; those of replication and of modules are left out
//!   until there is something to tell.

use std::fmt::Write;

/// How a value is told.
#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
    /// A gauge of bytes, seconds or the like that INFO has in thousandths.
    Thousandths,
    /// `ok` is 1.
    Ok,
}
use Kind::{Counter, Gauge, Ok, Thousandths};

/// INFO's fields that are metrics by themselves: the field, the metric, its kind, what it says.
const FIELDS: &[(&str, &str, Kind, &str)] = &[
    (
        "uptime_in_seconds",
        "uptime_in_seconds",
        Gauge,
        "Seconds since the start.",
    ),
    ("process_id", "process_id", Gauge, "The process's id."),
    (
        "connected_clients",
        "connected_clients",
        Gauge,
        "Clients connected.",
    ),
    (
        "maxclients",
        "max_clients",
        Gauge,
        "Clients that may connect.",
    ),
    (
        "blocked_clients",
        "blocked_clients",
        Gauge,
        "Clients that wait for a key.",
    ),
    (
        "tracking_clients",
        "tracking_clients",
        Gauge,
        "Clients whose caches are kept valid.",
    ),
    (
        "pubsub_clients",
        "pubsub_clients",
        Gauge,
        "Clients that are subscribed.",
    ),
    (
        "watching_clients",
        "watching_clients",
        Gauge,
        "Clients that watch keys.",
    ),
    (
        "total_watched_keys",
        "total_watched_keys",
        Gauge,
        "Keys that are watched.",
    ),
    (
        "total_blocking_keys",
        "total_blocking_keys",
        Gauge,
        "Keys that clients wait for.",
    ),
    (
        "client_recent_max_input_buffer",
        "client_recent_max_input_buffer_bytes",
        Gauge,
        "The largest input buffer of late.",
    ),
    (
        "client_recent_max_output_buffer",
        "client_recent_max_output_buffer_bytes",
        Gauge,
        "The largest output buffer of late.",
    ),
    (
        "used_memory",
        "memory_used_bytes",
        Gauge,
        "Bytes allocated.",
    ),
    (
        "used_memory_rss",
        "memory_used_rss_bytes",
        Gauge,
        "Bytes resident.",
    ),
    (
        "used_memory_peak",
        "memory_used_peak_bytes",
        Gauge,
        "The most bytes allocated so far.",
    ),
    (
        "used_memory_overhead",
        "memory_used_overhead_bytes",
        Gauge,
        "Bytes beside the data.",
    ),
    (
        "used_memory_startup",
        "memory_used_startup_bytes",
        Gauge,
        "Bytes allocated at the start.",
    ),
    (
        "used_memory_dataset",
        "memory_used_dataset_bytes",
        Gauge,
        "Bytes of the data.",
    ),
    (
        "used_memory_lua",
        "memory_used_lua_bytes",
        Gauge,
        "Bytes of scripts' states.",
    ),
    (
        "used_memory_scripts",
        "memory_used_scripts_bytes",
        Gauge,
        "Bytes of scripts kept.",
    ),
    (
        "maxmemory",
        "memory_max_bytes",
        Gauge,
        "The limit of memory; 0 is none.",
    ),
    (
        "total_system_memory",
        "total_system_memory_bytes",
        Gauge,
        "Bytes that the machine has.",
    ),
    (
        "mem_fragmentation_ratio",
        "mem_fragmentation_ratio",
        Gauge,
        "Resident to allocated bytes.",
    ),
    (
        "mem_fragmentation_bytes",
        "mem_fragmentation_bytes",
        Gauge,
        "Resident less allocated bytes.",
    ),
    (
        "mem_clients_normal",
        "mem_clients_normal",
        Gauge,
        "Bytes of clients' buffers.",
    ),
    (
        "mem_not_counted_for_evict",
        "mem_not_counted_for_eviction_bytes",
        Gauge,
        "Bytes that the limit of memory does not count.",
    ),
    (
        "allocator_active",
        "allocator_active_bytes",
        Gauge,
        "Bytes of the allocator's pages.",
    ),
    (
        "allocator_allocated",
        "allocator_allocated_bytes",
        Gauge,
        "Bytes that it handed out.",
    ),
    (
        "allocator_resident",
        "allocator_resident_bytes",
        Gauge,
        "Bytes of it that are resident.",
    ),
    (
        "lazyfree_pending_objects",
        "lazyfree_pending_objects",
        Gauge,
        "Objects still to be freed.",
    ),
    (
        "lazyfreed_objects",
        "lazyfreed_objects_total",
        Counter,
        "Objects freed in the background.",
    ),
    (
        "loading",
        "loading_dump_file",
        Gauge,
        "1 while data is loaded.",
    ),
    (
        "async_loading",
        "async_loading",
        Gauge,
        "1 while data is loaded beside serving.",
    ),
    (
        "rdb_changes_since_last_save",
        "rdb_changes_since_last_save",
        Gauge,
        "Changes since the last snapshot.",
    ),
    (
        "rdb_bgsave_in_progress",
        "rdb_bgsave_in_progress",
        Gauge,
        "1 while a snapshot is made.",
    ),
    (
        "rdb_last_save_time",
        "rdb_last_save_timestamp_seconds",
        Gauge,
        "When the last snapshot was made: Unix seconds.",
    ),
    (
        "rdb_last_bgsave_status",
        "rdb_last_bgsave_status",
        Ok,
        "1 where the last snapshot is good.",
    ),
    (
        "rdb_last_bgsave_time_sec",
        "rdb_last_bgsave_duration_sec",
        Gauge,
        "Seconds that the last snapshot took.",
    ),
    (
        "rdb_current_bgsave_time_sec",
        "rdb_current_bgsave_duration_sec",
        Gauge,
        "Seconds that the snapshot under way takes so far.",
    ),
    ("rdb_saves", "rdb_saves_total", Counter, "Snapshots made."),
    (
        "rdb_last_cow_size",
        "rdb_last_cow_size_bytes",
        Gauge,
        "What the last snapshot held back.",
    ),
    (
        "aof_enabled",
        "aof_enabled",
        Gauge,
        "1 where a log is written.",
    ),
    (
        "aof_rewrite_in_progress",
        "aof_rewrite_in_progress",
        Gauge,
        "1 while the log is rewritten.",
    ),
    (
        "aof_rewrite_scheduled",
        "aof_rewrite_scheduled",
        Gauge,
        "1 where a rewrite is to follow.",
    ),
    (
        "aof_last_rewrite_time_sec",
        "aof_last_rewrite_duration_sec",
        Gauge,
        "Seconds that the last rewrite took.",
    ),
    (
        "aof_current_rewrite_time_sec",
        "aof_current_rewrite_duration_sec",
        Gauge,
        "Seconds that the rewrite under way takes so far.",
    ),
    (
        "aof_last_bgrewrite_status",
        "aof_last_bgrewrite_status",
        Ok,
        "1 where the last rewrite is good.",
    ),
    (
        "aof_last_write_status",
        "aof_last_write_status",
        Ok,
        "1 where the log can be written.",
    ),
    (
        "aof_last_cow_size",
        "aof_last_cow_size_bytes",
        Gauge,
        "What the last rewrite held back.",
    ),
    (
        "aof_current_size",
        "aof_current_size_bytes",
        Gauge,
        "Bytes of the log.",
    ),
    (
        "aof_base_size",
        "aof_base_size_bytes",
        Gauge,
        "Bytes of the log after its last rewrite.",
    ),
    (
        "aof_buffer_length",
        "aof_buffer_length",
        Gauge,
        "Bytes that wait to be written.",
    ),
    (
        "aof_pending_bio_fsync",
        "aof_pending_bio_fsync",
        Gauge,
        "Syncs that wait.",
    ),
    (
        "aof_delayed_fsync",
        "aof_delayed_fsync",
        Counter,
        "Syncs that took too long.",
    ),
    (
        "total_connections_received",
        "connections_received_total",
        Counter,
        "Connections accepted.",
    ),
    (
        "total_commands_processed",
        "commands_processed_total",
        Counter,
        "Commands run.",
    ),
    (
        "instantaneous_ops_per_sec",
        "instantaneous_ops_per_sec",
        Gauge,
        "Commands a second of late.",
    ),
    (
        "total_net_input_bytes",
        "net_input_bytes_total",
        Counter,
        "Bytes received.",
    ),
    (
        "total_net_output_bytes",
        "net_output_bytes_total",
        Counter,
        "Bytes sent.",
    ),
    (
        "instantaneous_input_kbps",
        "instantaneous_input_kbps",
        Gauge,
        "KiB a second received.",
    ),
    (
        "instantaneous_output_kbps",
        "instantaneous_output_kbps",
        Gauge,
        "KiB a second sent.",
    ),
    (
        "total_reads_processed",
        "total_reads_processed",
        Counter,
        "Reads from sockets.",
    ),
    (
        "total_writes_processed",
        "total_writes_processed",
        Counter,
        "Writes to sockets.",
    ),
    (
        "rejected_connections",
        "rejected_connections_total",
        Counter,
        "Connections refused.",
    ),
    (
        "expired_keys",
        "expired_keys_total",
        Counter,
        "Keys whose time was up.",
    ),
    (
        "expired_subkeys",
        "expired_subkeys_total",
        Counter,
        "Fields whose time was up.",
    ),
    (
        "expired_stale_perc",
        "expired_stale_percentage",
        Gauge,
        "Keys that are dead, in percent.",
    ),
    (
        "expired_time_cap_reached_count",
        "expired_time_cap_reached_total",
        Counter,
        "Turns of expiry that ended early.",
    ),
    (
        "expire_cycle_cpu_milliseconds",
        "expire_cycle_cpu_time_ms_total",
        Counter,
        "Milliseconds spent on expiry.",
    ),
    (
        "evicted_keys",
        "evicted_keys_total",
        Counter,
        "Keys that made room.",
    ),
    (
        "evicted_clients",
        "evicted_clients_total",
        Counter,
        "Clients closed to make room.",
    ),
    (
        "evicted_scripts",
        "evicted_scripts_total",
        Counter,
        "Scripts forgotten to make room.",
    ),
    (
        "keyspace_hits",
        "keyspace_hits_total",
        Counter,
        "Reads that found their key.",
    ),
    (
        "keyspace_misses",
        "keyspace_misses_total",
        Counter,
        "Reads that did not.",
    ),
    (
        "pubsub_channels",
        "pubsub_channels",
        Gauge,
        "Channels with subscribers.",
    ),
    (
        "pubsub_patterns",
        "pubsub_patterns",
        Gauge,
        "Patterns with subscribers.",
    ),
    (
        "pubsubshard_channels",
        "pubsubshard_channels",
        Gauge,
        "Shard channels with subscribers.",
    ),
    (
        "tracking_total_keys",
        "tracking_total_keys",
        Gauge,
        "Keys in clients' caches.",
    ),
    (
        "tracking_total_items",
        "tracking_total_items",
        Gauge,
        "Entries of clients' caches.",
    ),
    (
        "tracking_total_prefixes",
        "tracking_total_prefixes",
        Gauge,
        "Prefixes that are tracked.",
    ),
    (
        "total_error_replies",
        "total_error_replies",
        Counter,
        "Replies that were errors.",
    ),
    (
        "unexpected_error_replies",
        "unexpected_error_replies",
        Counter,
        "Errors where none was to be.",
    ),
    (
        "client_query_buffer_limit_disconnections",
        "client_query_buffer_limit_disconnections_total",
        Counter,
        "Clients closed for what they sent.",
    ),
    (
        "client_output_buffer_limit_disconnections",
        "client_output_buffer_limit_disconnections_total",
        Counter,
        "Clients closed for what they did not take.",
    ),
    (
        "acl_access_denied_auth",
        "acl_access_denied_auth_total",
        Counter,
        "Logins refused.",
    ),
    (
        "acl_access_denied_cmd",
        "acl_access_denied_cmd_total",
        Counter,
        "Commands refused.",
    ),
    (
        "acl_access_denied_key",
        "acl_access_denied_key_total",
        Counter,
        "Keys refused.",
    ),
    (
        "acl_access_denied_channel",
        "acl_access_denied_channel_total",
        Counter,
        "Channels refused.",
    ),
    (
        "latest_fork_usec",
        "latest_fork_usec",
        Gauge,
        "Always 0: nothing is forked.",
    ),
    (
        "connected_slaves",
        "connected_slaves",
        Gauge,
        "Replicas connected.",
    ),
    (
        "master_repl_offset",
        "master_repl_offset",
        Gauge,
        "How far replication is.",
    ),
    (
        "repl_backlog_size",
        "replication_backlog_bytes",
        Gauge,
        "Room for replicas that were away.",
    ),
    (
        "used_cpu_sys",
        "cpu_sys_seconds_total",
        Counter,
        "Seconds of the system.",
    ),
    (
        "used_cpu_user",
        "cpu_user_seconds_total",
        Counter,
        "Seconds of the process.",
    ),
    (
        "used_cpu_sys_children",
        "cpu_sys_children_seconds_total",
        Counter,
        "Always 0: there are none.",
    ),
    (
        "used_cpu_user_children",
        "cpu_user_children_seconds_total",
        Counter,
        "Always 0: there are none.",
    ),
    (
        "used_cpu_sys_main_thread",
        "cpu_sys_main_thread_seconds_total",
        Counter,
        "Seconds of the system for the first loop.",
    ),
    (
        "used_cpu_user_main_thread",
        "cpu_user_main_thread_seconds_total",
        Counter,
        "Seconds of the first loop.",
    ),
    (
        "eventloop_cycles",
        "eventloop_cycles_total",
        Counter,
        "Turns of all loops.",
    ),
    (
        "slowlog_commands_time_ms_sum",
        "slowlog_commands_duration_seconds_total",
        Thousandths,
        "Seconds of commands in the slow log.",
    ),
    (
        "cluster_enabled",
        "cluster_enabled",
        Gauge,
        "Always 0: it is no cluster.",
    ),
];

/// Lines of INFO that list things: how they begin, the label for what follows that, and for each
/// part of them its metric, its kind, what its figure is divided by, and what it says.
type Part = (&'static str, &'static str, Kind, f64, &'static str);
const LISTS: &[(&str, &str, &[Part])] = &[
    (
        "cmdstat_",
        "cmd",
        &[
            (
                "calls",
                "commands_total",
                Counter,
                1.0,
                "Calls of a command.",
            ),
            (
                "usec",
                "commands_duration_seconds_total",
                Counter,
                1e6,
                "Seconds that a command took.",
            ),
            (
                "rejected_calls",
                "commands_rejected_calls_total",
                Counter,
                1.0,
                "Calls refused before they ran.",
            ),
            (
                "failed_calls",
                "commands_failed_calls_total",
                Counter,
                1.0,
                "Calls that ended in an error.",
            ),
        ],
    ),
    (
        "errorstat_",
        "err",
        &[(
            "count",
            "errors_total",
            Counter,
            1.0,
            "Replies with an error.",
        )],
    ),
    (
        "db",
        "db",
        &[
            ("keys", "db_keys", Gauge, 1.0, "Keys of a database."),
            (
                "expires",
                "db_keys_expiring",
                Gauge,
                1.0,
                "Keys of it with a deadline.",
            ),
            (
                "avg_ttl",
                "db_avg_ttl_seconds",
                Gauge,
                1e3,
                "Seconds that they have on average.",
            ),
        ],
    ),
];

/// Fields that say what the server is.
const INSTANCE: &[(&str, &str)] = &[
    ("role", "role"),
    ("redis_version", "redis_version"),
    ("tidemill_version", "tidemill_version"),
    ("redis_build_id", "redis_build_id"),
    ("redis_mode", "redis_mode"),
    ("os", "os"),
    ("maxmemory_policy", "maxmemory_policy"),
    ("tcp_port", "tcp_port"),
    ("run_id", "run_id"),
    ("process_id", "process_id"),
    ("master_replid", "master_replid"),
];

/// What INFO does not say of the slow log.
pub struct SlowLog {
    /// Entries.
    pub len: usize,
    /// The number of the newest.
    pub last_id: Option<u64>,
    /// Microseconds that it took.
    pub last_took_us: u64,
}

/// The text for Prometheus.
pub fn of(info: &str, slow_log: &SlowLog) -> String {
    let lines: Vec<(&str, &str)> = info
        .lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .collect();
    let field = |name: &str| lines.iter().find(|line| line.0 == name).map(|line| line.1);
    let mut out = Page::default();
    out.metric("up", Gauge, "1 where the server answers.");
    out.sample("up", &[], "1");
    let labels: Vec<(&str, &str)> = INSTANCE
        .iter()
        .filter_map(|(name, label)| Some((*label, field(name)?)))
        .collect();
    out.metric("instance_info", Gauge, "What the server is.");
    out.sample("instance_info", &labels, "1");
    for (name, metric, kind, help) in FIELDS {
        let Some(value) = field(name) else { continue };
        let value = match kind {
            Ok => i32::from(value == "ok").to_string(),
            Thousandths => part(value, 1e3),
            Gauge | Counter => value.to_owned(),
        };
        out.metric(metric, *kind, help);
        out.sample(metric, &[], &value);
    }
    if let Some(started) = started(&field) {
        let name = "start_time_seconds";
        out.metric(name, Gauge, "When the server was started: Unix seconds.");
        out.sample(name, &[], &started.to_string());
    }
    out.metric("slowlog_length", Gauge, "Entries of the slow log.");
    out.sample("slowlog_length", &[], &slow_log.len.to_string());
    if let Some(id) = slow_log.last_id {
        out.metric("slowlog_last_id", Gauge, "The number of its newest entry.");
        out.sample("slowlog_last_id", &[], &id.to_string());
    }
    let name = "last_slow_execution_duration_seconds";
    out.metric(name, Gauge, "Seconds that its command took.");
    out.sample(name, &[], &part(&slow_log.last_took_us.to_string(), 1e6));
    for (prefix, label, parts) in LISTS {
        let listed: Vec<(&str, Vec<(&str, &str)>)> = lines
            .iter()
            .filter_map(|(name, values)| Some((name.strip_prefix(prefix)?, values)))
            .filter(|(name, _)| *label != "db" || name.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(name, values)| (name, pairs(values)))
            .collect();
        for (part_name, metric, kind, divisor, help) in *parts {
            if listed.is_empty() {
                break;
            }
            out.metric(metric, *kind, help);
            for (name, values) in &listed {
                let shown = match *label {
                    "db" => format!("db{name}"),
                    _ => (*name).to_owned(),
                };
                if let Some((_, value)) = values.iter().find(|pair| pair.0 == *part_name) {
                    out.sample(metric, &[(label, &shown)], &part(value, *divisor));
                }
            }
        }
    }
    latencies(&mut out, &lines);
    out.text
}

/// The percentiles that Latencystats lists.
fn latencies(out: &mut Page, lines: &[(&str, &str)]) {
    let prefix = "latency_percentiles_usec_";
    let mut listed = lines
        .iter()
        .filter_map(|(name, values)| Some((name.strip_prefix(prefix)?, pairs(values))))
        .peekable();
    if listed.peek().is_none() {
        return;
    }
    let metric = "latency_percentiles_usec";
    out.metric(metric, Gauge, "Microseconds that a command takes.");
    for (command, values) in listed {
        for (percentile, us) in values {
            let percentile = percentile.strip_prefix('p').unwrap_or(percentile);
            let labels = [("cmd", command), ("quantile", &part(percentile, 100.0))];
            out.sample(metric, &labels, us);
        }
    }
}

/// Unix seconds of the start.
fn started<'i>(field: &impl Fn(&str) -> Option<&'i str>) -> Option<u64> {
    let now_us: u64 = field("server_time_usec")?.parse().ok()?;
    let uptime_s: u64 = field("uptime_in_seconds")?.parse().ok()?;
    Some((now_us / 1_000_000).saturating_sub(uptime_s))
}

/// `a=1,b=2`.
fn pairs(values: &str) -> Vec<(&str, &str)> {
    let pairs = values.trim_end().split(',');
    pairs.filter_map(|pair| pair.split_once('=')).collect()
}

/// A figure divided.
fn part(value: &str, divisor: f64) -> String {
    match value.parse::<f64>() {
        Err(_) => "NaN".to_owned(),
        Result::Ok(_) if divisor == 1.0 => value.to_owned(),
        Result::Ok(number) => {
            let shown = format!("{:.9}", number / divisor);
            shown.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Says what the samples after it are.
    fn metric(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Gauge | Ok => "gauge",
            Counter | Thousandths => "counter",
        };
        let _ = write!(
            self.text,
            "# HELP redis_{name} {help}\n# TYPE redis_{name} {kind}\n"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &str) {
        let _ = write!(self.text, "redis_{name}");
        for (at, (label, of)) in labels.iter().enumerate() {
            let begin = if at == 0 { '{' } else { ',' };
            let of = of
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{begin}{label}=\"{of}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SLOW_LOG: SlowLog = SlowLog {
        len: 0,
        last_id: None,
        last_took_us: 0,
    };

    #[test]
    fn fields_and_lists_become_samples() {
        let info = "# Server\r\nredis_version:8.10.2\r\nos:a \"b\"\\c\r\nused_memory:77\r\n\
                    rdb_last_bgsave_status:err\r\nserver_time_usec:1700000000000000\r\n\
                    uptime_in_seconds:100\r\n\r\n# Commandstats\r\n\
                    cmdstat_client|list:calls=2,usec=1500000,usec_per_call=1,rejected_calls=0,\
                    failed_calls=1\r\nerrorstat_ERR:count=3\r\n\
                    latency_percentiles_usec_get:p50=1.003,p99.9=2.5\r\n\
                    db3:keys=5,expires=1,avg_ttl=2500,subexpiry=0\r\n\
                    db3_distrib_strings_sizes:1=1\r\n";
        let slow_log = SlowLog {
            len: 4,
            last_id: Some(9),
            last_took_us: 25_000,
        };
        let text = of(info, &slow_log);
        for line in [
            "redis_up 1",
            "redis_instance_info{redis_version=\"8.10.2\",os=\"a \\\"b\\\"\\\\c\"} 1",
            "# TYPE redis_memory_used_bytes gauge",
            "redis_memory_used_bytes 77",
            "redis_rdb_last_bgsave_status 0",
            "redis_start_time_seconds 1699999900",
            "redis_slowlog_length 4",
            "redis_slowlog_last_id 9",
            "redis_last_slow_execution_duration_seconds 0.025",
            "# TYPE redis_commands_total counter",
            "redis_commands_total{cmd=\"client|list\"} 2",
            "redis_commands_duration_seconds_total{cmd=\"client|list\"} 1.5",
            "redis_commands_failed_calls_total{cmd=\"client|list\"} 1",
            "redis_errors_total{err=\"ERR\"} 3",
            "redis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.5\"} 1.003",
            "redis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.999\"} 2.5",
            "redis_db_keys{db=\"db3\"} 5",
            "redis_db_avg_ttl_seconds{db=\"db3\"} 2.5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
        assert!(!text.contains("distrib"));
    }

    #[test]
    fn each_metric_is_declared_once_and_before_its_samples() {
        let info = FIELDS.iter().map(|field| format!("{}:1\r\n", field.0));
        let text = of(&info.collect::<String>(), &NO_SLOW_LOG);
        let mut declared = std::collections::HashSet::new();
        for line in text.lines() {
            let mut words = line.split([' ', '{']);
            match words.next() {
                Some("#") => {
                    let name = words.nth(1).expect("a name");
                    assert_eq!(
                        declared.contains(name),
                        line.starts_with("# TYPE"),
                        "{line}"
                    );
                    declared.insert(name);
                }
                Some(name) => assert!(declared.contains(name), "{line}"),
                None => unreachable!("no line is empty"),
            }
        }
    }
}
