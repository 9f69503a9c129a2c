//! The values that the server reads on its paths, as plain typed fields.
//!
//! They are copied out of the table's values once, when a configuration is made; a reader then
//! pays a field access. The table stays the only place that knows defaults and ranges, so every
//! number here is already within its range.
//!
//! # Invariant
//! [`Settings::read`] is total: each name it asks for exists and has the kind it expects. It runs
//! for every configuration that is made, the default one first, so a mistake cannot hide.

use super::Config;
use super::compound::OutputLimit;
use super::value::Value;
use crate::tls;
use engine::dump::Format;
use std::path::PathBuf;

/// What the server reads. Units stand last in the names; 0 means what the directive's text says.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    // Network
    pub bind: Vec<BindAddress>,
    pub port: u16,
    pub unixsocket: Option<PathBuf>,
    /// `None` leaves what the umask gives.
    pub unixsocketperm: Option<u32>,
    pub tcp_backlog: u32,
    pub tcp_keepalive_s: u32,
    pub timeout_s: u32,
    pub max_new_connections_per_cycle: u32,
    /// 0 is none.
    pub metrics_port: u16,
    pub metrics_bind: String,
    // General
    pub threads: usize,
    pub daemonize: bool,
    pub supervised: Supervisor,
    pub pidfile: Option<PathBuf>,
    pub databases: u32,
    pub dir: PathBuf,
    pub hz: u32,
    pub shutdown_on_sigint: ShutdownFlags,
    pub shutdown_on_sigterm: ShutdownFlags,
    pub shutdown_timeout_s: u32,
    // Logging
    pub loglevel: LogLevel,
    pub logfile: Option<PathBuf>,
    pub log_format: LogFormat,
    /// The name and the facility's number, where lines go there too.
    pub syslog: Option<(String, u8)>,
    // Security
    /// `None` is no password.
    pub requirepass: Option<Box<[u8]>>,
    /// `None` keeps users in the configuration.
    pub aclfile: Option<PathBuf>,
    pub acllog_max_len: u64,
    /// `tracking-table-max-keys`.
    pub tracking_table_max_keys: u64,
    /// Whether a new user may use every channel.
    pub acl_pubsub_default: bool,
    pub protected_mode: bool,
    pub enable_debug_command: Access,
    pub enable_protected_configs: Access,
    // Clients
    pub maxclients: u32,
    pub client_query_buffer_limit_bytes: u64,
    pub output_limits: OutputLimits,
    pub proto_max_bulk_len_bytes: u64,
    /// A share of `maxmemory` worked out; 0 is no limit.
    pub maxmemory_clients_bytes: u64,
    // Memory
    pub maxmemory_bytes: u64,
    pub maxmemory_policy: MaxmemoryPolicy,
    pub maxmemory_samples: u32,
    pub maxmemory_eviction_tenacity: u32,
    pub lfu_log_factor: u32,
    pub lfu_decay_time_min: u32,
    pub active_expire_effort: u32,
    // Encodings
    pub hash_max_listpack_entries: u64,
    pub hash_max_listpack_value_bytes: u64,
    pub list_max_listpack_size: i32,
    pub list_compress_depth: u32,
    pub set_max_intset_entries: u64,
    pub set_max_listpack_entries: u64,
    pub set_max_listpack_value_bytes: u64,
    pub zset_max_listpack_entries: u64,
    pub zset_max_listpack_value_bytes: u64,
    pub hll_sparse_max_bytes: u64,
    pub stream_node_max_bytes: u64,
    pub stream_node_max_entries: u64,
    pub stream_idmp_duration_s: u32,
    pub stream_idmp_maxsize: u32,
    pub array_slice_size: u32,
    pub array_sparse_kmax: u32,
    // Freeing memory
    pub lazyfree_lazy_eviction: bool,
    pub lazyfree_lazy_expire: bool,
    pub lazyfree_lazy_server_del: bool,
    pub lazyfree_lazy_user_del: bool,
    pub lazyfree_lazy_user_flush: bool,
    // Slow log and latency
    /// -1 logs nothing.
    pub slowlog_log_slower_than_us: i64,
    pub slowlog_max_len: u64,
    pub slowlog_entry_max_argc: u32,
    pub slowlog_entry_max_string_len_bytes: u64,
    pub latency_monitor_threshold_ms: u64,
    pub latency_tracking: bool,
    pub latency_percentiles: Box<[f64]>,
    // Keyspace events
    /// Bits of [`super::event`].
    pub notify_keyspace_events: u32,
    // Files
    pub save: Box<[super::SavePoint]>,
    pub dbfilename: Box<[u8]>,
    pub rdbcompression: bool,
    pub rdbchecksum: bool,
    pub rdb_save_incremental_fsync: bool,
    pub stop_writes_on_bgsave_error: bool,
    /// The server that must understand snapshots.
    pub rdb_format: Format,
    /// Whether what has no place here is left out of a snapshot that is loaded.
    pub rdb_skip_unsupported: bool,
    pub appendonly: bool,
    pub appendfsync: AppendFsync,
    pub appendfilename: Box<[u8]>,
    pub appenddirname: Box<[u8]>,
    pub backupdirname: Box<[u8]>,
    /// `rdb:PATH`, `aof:PATH` or nothing.
    pub preload_file: Box<[u8]>,
    /// 0 is for ever.
    pub backup_sealed_ttl_s: u64,
    /// 0 is never.
    pub auto_aof_rewrite_percentage: u32,
    pub auto_aof_rewrite_min_size_bytes: u64,
    pub aof_load_truncated: bool,
    pub aof_load_corrupt_tail_max_size_bytes: u64,
    pub aof_timestamp_enabled: bool,
    pub aof_use_rdb_preamble: bool,
    pub aof_rewrite_incremental_fsync: bool,
    // TLS
    pub tls: tls::Settings,
    // Scripts
    pub busy_reply_threshold_ms: u64,
}

/// One address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress {
    /// A host name or an address; `*` is all of IPv4 and `::*` all of IPv6.
    pub host: String,
    /// Whether it is fine where the address does not exist.
    pub optional: bool,
}

/// Limits on waiting output by class of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    pub normal: OutputLimit,
    pub replica: OutputLimit,
    pub pubsub: OutputLimit,
}

/// How a signal stops the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutdownFlags {
    pub save: bool,
    pub nosave: bool,
    pub now: bool,
    pub force: bool,
}

/// The least important level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

/// Who may use a protected part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Nobody,
    Everybody,
    /// Connections from this machine.
    Local,
}

impl Access {
    /// Whether a client may, given whether it is connected from this machine.
    pub fn allows(self, local: bool) -> bool {
        match self {
            Access::Nobody => false,
            Access::Everybody => true,
            Access::Local => local,
        }
    }
}

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LogFormat {
    /// Redis's.
    Legacy,
    /// Pairs.
    Logfmt,
    /// A JSON object.
    Json,
}

/// Who is told that the server is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supervisor {
    None,
    Upstart,
    Systemd,
    Auto,
}

/// When writes to the append-only file are forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendFsync {
    No,
    Always,
    EverySecond,
}

/// Which keys are evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxmemoryPolicy {
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
    VolatileLrm,
    AllkeysLru,
    AllkeysLfu,
    AllkeysRandom,
    AllkeysLrm,
    NoEviction,
}

impl Settings {
    /// Copies the values that the server reads. Its names are checked by every test that makes a
    /// configuration.
    pub(super) fn read(values: &[Value]) -> Settings {
        let from = Source(values);
        Settings {
            bind: from.addresses("bind"),
            port: from.number("port"),
            unixsocket: from.path("unixsocket"),
            unixsocketperm: Some(from.number("unixsocketperm")).filter(|mode| *mode != 0),
            tcp_backlog: from.number("tcp-backlog"),
            tcp_keepalive_s: from.number("tcp-keepalive"),
            timeout_s: from.number("timeout"),
            max_new_connections_per_cycle: from.number("max-new-connections-per-cycle"),
            metrics_port: from.number("metrics-port"),
            metrics_bind: String::from_utf8_lossy(&from.text("metrics-bind")).into_owned(),
            threads: from.number("threads"),
            daemonize: from.on("daemonize"),
            supervised: match from.choice("supervised") {
                1 => Supervisor::Upstart,
                2 => Supervisor::Systemd,
                3 => Supervisor::Auto,
                _ => Supervisor::None,
            },
            pidfile: from.path("pidfile"),
            databases: from.number("databases"),
            dir: from.path("dir").unwrap_or_default(),
            hz: from.number("hz"),
            shutdown_on_sigint: from.shutdown("shutdown-on-sigint"),
            shutdown_on_sigterm: from.shutdown("shutdown-on-sigterm"),
            shutdown_timeout_s: from.number("shutdown-timeout"),
            loglevel: match from.choice("loglevel") {
                0 => LogLevel::Debug,
                1 => LogLevel::Verbose,
                2 => LogLevel::Notice,
                3 => LogLevel::Warning,
                _ => LogLevel::Nothing,
            },
            logfile: from.path("logfile"),
            log_format: match from.choice("log-format") {
                1 => LogFormat::Logfmt,
                2 => LogFormat::Json,
                _ => LogFormat::Legacy,
            },
            syslog: from.on("syslog-enabled").then(|| {
                let ident = String::from_utf8_lossy(&from.text("syslog-ident")).into_owned();
                let facility = match from.choice("syslog-facility") {
                    0 => 1,
                    local => 15 + local,
                };
                (ident, facility)
            }),
            requirepass: Some(from.text("requirepass")).filter(|text| !text.is_empty()),
            aclfile: from.path("aclfile"),
            acllog_max_len: from.number("acllog-max-len"),
            tracking_table_max_keys: from.number("tracking-table-max-keys"),
            acl_pubsub_default: from.choice("acl-pubsub-default") != 0,
            protected_mode: from.on("protected-mode"),
            enable_debug_command: from.access("enable-debug-command"),
            enable_protected_configs: from.access("enable-protected-configs"),
            maxclients: from.number("maxclients"),
            client_query_buffer_limit_bytes: from.bytes("client-query-buffer-limit"),
            output_limits: from.output_limits("client-output-buffer-limit"),
            proto_max_bulk_len_bytes: from.bytes("proto-max-bulk-len"),
            maxmemory_clients_bytes: match *from.value("maxmemory-clients") {
                Value::Percent(percent) => from.bytes("maxmemory") / 100 * u64::from(percent),
                _ => from.bytes("maxmemory-clients"),
            },
            maxmemory_bytes: from.bytes("maxmemory"),
            maxmemory_policy: from.policy("maxmemory-policy"),
            maxmemory_samples: from.number("maxmemory-samples"),
            maxmemory_eviction_tenacity: from.number("maxmemory-eviction-tenacity"),
            lfu_log_factor: from.number("lfu-log-factor"),
            lfu_decay_time_min: from.number("lfu-decay-time"),
            active_expire_effort: from.number("active-expire-effort"),
            hash_max_listpack_entries: from.number("hash-max-listpack-entries"),
            hash_max_listpack_value_bytes: from.bytes("hash-max-listpack-value"),
            list_max_listpack_size: from.number("list-max-listpack-size"),
            list_compress_depth: from.number("list-compress-depth"),
            set_max_intset_entries: from.number("set-max-intset-entries"),
            set_max_listpack_entries: from.number("set-max-listpack-entries"),
            set_max_listpack_value_bytes: from.number("set-max-listpack-value"),
            zset_max_listpack_entries: from.number("zset-max-listpack-entries"),
            zset_max_listpack_value_bytes: from.bytes("zset-max-listpack-value"),
            hll_sparse_max_bytes: from.bytes("hll-sparse-max-bytes"),
            stream_node_max_bytes: from.bytes("stream-node-max-bytes"),
            stream_node_max_entries: from.number("stream-node-max-entries"),
            stream_idmp_duration_s: from.number("stream-idmp-duration"),
            stream_idmp_maxsize: from.number("stream-idmp-maxsize"),
            array_slice_size: from.number("array-slice-size"),
            array_sparse_kmax: from.number("array-sparse-kmax"),
            lazyfree_lazy_eviction: from.on("lazyfree-lazy-eviction"),
            lazyfree_lazy_expire: from.on("lazyfree-lazy-expire"),
            lazyfree_lazy_server_del: from.on("lazyfree-lazy-server-del"),
            lazyfree_lazy_user_del: from.on("lazyfree-lazy-user-del"),
            lazyfree_lazy_user_flush: from.on("lazyfree-lazy-user-flush"),
            slowlog_log_slower_than_us: from.number("slowlog-log-slower-than"),
            slowlog_max_len: from.number("slowlog-max-len"),
            slowlog_entry_max_argc: from.number("slowlog-entry-max-argc"),
            slowlog_entry_max_string_len_bytes: from.number("slowlog-entry-max-string-len"),
            latency_monitor_threshold_ms: from.number("latency-monitor-threshold"),
            latency_tracking: from.on("latency-tracking"),
            latency_percentiles: from.percentiles("latency-tracking-info-percentiles"),
            notify_keyspace_events: from.events("notify-keyspace-events"),
            save: from.save_points("save"),
            dbfilename: from.text("dbfilename"),
            rdbcompression: from.on("rdbcompression"),
            rdbchecksum: from.on("rdbchecksum"),
            rdb_save_incremental_fsync: from.on("rdb-save-incremental-fsync"),
            stop_writes_on_bgsave_error: from.on("stop-writes-on-bgsave-error"),
            rdb_format: match from.choice("tidemill-rdb-format") {
                1 => Format::Redis7_0,
                2 => Format::Valkey9_1,
                _ => Format::Redis8_10,
            },
            rdb_skip_unsupported: from.on("tidemill-rdb-skip-unsupported"),
            appendonly: from.on("appendonly"),
            appendfsync: match from.choice("appendfsync") {
                0 => AppendFsync::No,
                1 => AppendFsync::Always,
                _ => AppendFsync::EverySecond,
            },
            appendfilename: from.text("appendfilename"),
            appenddirname: from.text("appenddirname"),
            preload_file: from.text("preload-file"),
            backupdirname: from.text("backupdirname"),
            backup_sealed_ttl_s: from.number("backup-sealed-ttl"),
            auto_aof_rewrite_percentage: from.number("auto-aof-rewrite-percentage"),
            auto_aof_rewrite_min_size_bytes: from.bytes("auto-aof-rewrite-min-size"),
            aof_load_truncated: from.on("aof-load-truncated"),
            aof_load_corrupt_tail_max_size_bytes: from.number("aof-load-corrupt-tail-max-size"),
            aof_timestamp_enabled: from.on("aof-timestamp-enabled"),
            aof_use_rdb_preamble: from.on("aof-use-rdb-preamble"),
            aof_rewrite_incremental_fsync: from.on("aof-rewrite-incremental-fsync"),
            tls: from.tls(),
            busy_reply_threshold_ms: from.number("busy-reply-threshold"),
        }
    }
}

impl std::ops::Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        self.settings()
    }
}

/// Looks values up by name. A name that is not in the table, a kind that is another, or a field
/// too narrow for its range is a mistake in this file, so it panics.
struct Source<'a>(&'a [Value]);

macro_rules! reader {
    ($name:ident, $pattern:pat => $result:expr, $type:ty) => {
        fn $name(&self, name: &str) -> $type {
            match self.value(name) {
                $pattern => $result,
                other => panic!("configuration '{name}' holds {other:?}"),
            }
        }
    };
}

impl Source<'_> {
    fn value(&self, name: &str) -> &Value {
        &self.0[super::table::find(name.as_bytes()).expect("every setting is in the table")]
    }

    reader!(on, Value::Switch(on) => *on, bool);
    reader!(integer, Value::Integer(number) => *number, i64);
    reader!(bytes, Value::Bytes(bytes) => *bytes, u64);
    reader!(choice, Value::Choice(number) => *number, u8);
    reader!(text, Value::Text(text) => text.clone(), Box<[u8]>);
    reader!(events, Value::Events(bits) => *bits, u32);
    reader!(percentiles, Value::Percentiles(list) => list.clone(), Box<[f64]>);
    reader!(save_points, Value::SavePoints(list) => list.clone(), Box<[super::SavePoint]>);

    fn number<N: TryFrom<i64>>(&self, name: &str) -> N {
        let Ok(number) = N::try_from(self.integer(name)) else {
            panic!("configuration '{name}' is out of the range of its setting");
        };
        number
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let text = self.text(name).into_vec();
        (!text.is_empty()).then(|| std::ffi::OsString::from_vec(text).into())
    }

    fn tls(&self) -> tls::Settings {
        tls::Settings {
            port: self.number("tls-port"),
            certificates: self.path("tls-cert-file"),
            key: self.path("tls-key-file"),
            authorities: self.path("tls-ca-cert-file"),
            authorities_dir: self.path("tls-ca-cert-dir"),
            clients: match self.choice("tls-auth-clients") {
                0 => tls::Clients::No,
                2 => tls::Clients::Optional,
                _ => tls::Clients::Yes,
            },
            logs_in: self.choice("tls-auth-clients-user") != 0,
            protocols: self.text("tls-protocols"),
            ciphers: self.text("tls-ciphers"),
            ciphersuites: self.text("tls-ciphersuites"),
            prefers_own_order: self.on("tls-prefer-server-ciphers"),
            sessions: self
                .on("tls-session-caching")
                .then(|| self.number("tls-session-cache-size")),
            handshakes_a_turn: self.number("max-new-tls-connections-per-cycle"),
        }
    }

    fn access(&self, name: &str) -> Access {
        match self.choice(name) {
            0 => Access::Nobody,
            1 => Access::Everybody,
            _ => Access::Local,
        }
    }

    fn policy(&self, name: &str) -> MaxmemoryPolicy {
        match self.choice(name) {
            0 => MaxmemoryPolicy::VolatileLru,
            1 => MaxmemoryPolicy::VolatileLfu,
            2 => MaxmemoryPolicy::VolatileRandom,
            3 => MaxmemoryPolicy::VolatileTtl,
            4 => MaxmemoryPolicy::VolatileLrm,
            5 => MaxmemoryPolicy::AllkeysLru,
            6 => MaxmemoryPolicy::AllkeysLfu,
            7 => MaxmemoryPolicy::AllkeysRandom,
            8 => MaxmemoryPolicy::AllkeysLrm,
            _ => MaxmemoryPolicy::NoEviction,
        }
    }

    fn shutdown(&self, name: &str) -> ShutdownFlags {
        let Value::Flags(bits) = *self.value(name) else {
            panic!("configuration '{name}' is not made of flags");
        };
        let set = |bit: u32| bits & bit != 0;
        ShutdownFlags {
            save: set(1),
            nosave: set(2),
            now: set(4),
            force: set(8),
        }
    }

    fn output_limits(&self, name: &str) -> OutputLimits {
        let Value::OutputLimits([normal, replica, pubsub]) = *self.value(name) else {
            panic!("configuration '{name}' does not hold limits");
        };
        OutputLimits {
            normal,
            replica,
            pubsub,
        }
    }

    fn addresses(&self, name: &str) -> Vec<BindAddress> {
        let Value::Addresses(list) = self.value(name) else {
            panic!("configuration '{name}' does not hold addresses");
        };
        let address = |word: &[u8]| {
            let host = word.strip_prefix(b"-");
            BindAddress {
                host: String::from_utf8_lossy(host.unwrap_or(word)).into_owned(),
                optional: host.is_some(),
            }
        };
        list.iter().map(|word| address(word)).collect()
    }
}
