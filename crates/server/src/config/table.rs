//! Every configuration directive, declared once and grouped as `tidemill.conf` shows them.
//!
//! Names, ranges and defaults are those of Redis 8.10, so that files, clients and tools carry
//! over. `threads` and those of metrics are our own, `log-format` is Valkey's with one form more.
//! Directives that other servers know and that change nothing here stand in [`FOREIGN`].

use super::directive::{
    Directive, Kind, TextCheck, checked, choice, flags, integer, memory, special, switch, text,
};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A section of `tidemill.conf`.
pub struct Group {
    pub title: &'static str,
    pub directives: &'static [Directive],
}

/// All directives in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Directive> {
    GROUPS.iter().flat_map(|group| group.directives)
}

/// The place in the table of a name or an alias, whatever its case.
pub fn find(name: &[u8]) -> Option<usize> {
    static INDEX: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let names = |(at, one): (usize, &'static Directive)| {
            std::iter::once(one.name)
                .chain(one.alias)
                .map(move |name| (name, at))
        };
        all().enumerate().flat_map(names).collect()
    });
    let name = std::str::from_utf8(name).ok()?;
    index
        .get(name)
        .or_else(|| index.get(name.to_ascii_lowercase().as_str()))
        .copied()
}

/// A directive of another server or an older version, and the one of ours that it means.
pub const FOREIGN: &[(&str, Option<&str>)] = &[
    (
        "commandlog-execution-slower-than",
        Some("slowlog-log-slower-than"),
    ),
    ("commandlog-slow-execution-max-len", Some("slowlog-max-len")),
    ("primaryauth", Some("masterauth")),
    ("primaryuser", Some("masteruser")),
    ("active-defrag-cycle-us", None),
    ("availability-zone", None),
    ("cluster-announce-client-ipv4", None),
    ("cluster-announce-client-ipv6", None),
    ("cluster-announce-client-port", None),
    ("cluster-announce-client-tls-port", None),
    ("cluster-blacklist-ttl", None),
    ("cluster-config-save-behavior", None),
    ("cluster-databases", None),
    ("cluster-manual-failover-timeout", None),
    ("cluster-slot-migration-log-max-len", None),
    ("commandlog-large-reply-max-len", None),
    ("commandlog-large-request-max-len", None),
    ("commandlog-reply-larger-than", None),
    ("commandlog-request-larger-than", None),
    ("dual-channel-replication-enabled", None),
    ("extended-redis-compatibility", None),
    ("hash-seed", None),
    ("io-threads-do-reads", None),
    ("list-max-ziplist-entries", None),
    ("list-max-ziplist-value", None),
    ("log-timestamp-format", None),
    ("mptcp", None),
    ("prefetch-batch-max-size", None),
    ("rdb-version-check", None),
    ("repl-mptcp", None),
    ("slot-migration-max-failover-repl-bytes", None),
    ("tls-auto-reload-interval", None),
    ("unixsocketgroup", None),
];

const I32: i64 = i32::MAX as i64;
const I64: i64 = i64::MAX;
const U63: u64 = i64::MAX as u64;
const MIB: u64 = 1 << 20;
const CLUSTER: &str = "cluster mode";

const ACCESS: &[(&str, u8)] = &[("no", 0), ("yes", 1), ("local", 2)];
const SHUTDOWN: &[(&str, u32)] = &[
    ("default", 0),
    ("save", 1),
    ("nosave", 2),
    ("now", 4),
    ("force", 8),
];

pub const GROUPS: &[Group] = &[
    NETWORK,
    GENERAL,
    LOGGING,
    SECURITY,
    CLIENTS,
    MEMORY,
    ENCODINGS,
    LAZY,
    SLOW,
    EVENTS,
    SAVING,
    APPENDING,
    REPLICATION,
    CLUSTERING,
    TLS_GROUP,
    SCRIPTS,
    SYSTEM,
];

const NETWORK: Group = Group {
    title: "Network",
    directives: &[
        special("bind", "* -::*", Kind::Addresses).acts(
            "Addresses to listen on, at most 16. A leading minus means that it is no error where \
             the address does not exist; * is every IPv4 address and ::* every IPv6 one.",
        ),
        integer("port", "6379", 0, 65535)
            .acts("TCP port for clients. With 0, nothing listens on TCP."),
        text("unixsocket", "")
            .startup()
            .acts("Path of a Unix socket to listen on beside TCP. Empty means none."),
        special("unixsocketperm", "0", Kind::Octal)
            .startup()
            .acts("Permissions of that socket in octal. 0 leaves what the umask gives."),
        integer("tcp-backlog", "511", 0, I32)
            .startup()
            .acts("Connections that may wait to be accepted; the kernel's somaxconn caps it."),
        integer("tcp-keepalive", "300", 0, I32)
            .acts("Seconds between probes of silent connections; 0 sends none."),
        integer("timeout", "0", 0, I32)
            .acts("Seconds after which an idle client is closed; 0 keeps it forever."),
        text("bind-source-addr", "")
            .later("Local address from which connections to a primary are opened."),
        integer("socket-mark-id", "0", 0, u32::MAX as i64)
            .startup()
            .later("Mark for the sockets, for packet filters; 0 sets none."),
        integer("max-new-connections-per-cycle", "10", 1, 1000)
            .acts("Connections accepted in one turn of the event loop."),
        integer("max-new-tls-connections-per-cycle", "1", 1, 1000)
            .acts("TLS handshakes that one turn of an event loop carries on."),
        integer("metrics-port", "0", 0, 65535).startup().acts(
            "TCP port for HTTP: /metrics for Prometheus, /healthz and /readyz for probes. It asks \
             for no password and gives no data. With 0, nothing listens.",
        ),
        text("metrics-bind", "127.0.0.1")
            .startup()
            .acts("The address to listen on for them."),
    ],
};

const GENERAL: Group = Group {
    title: "General",
    directives: &[
        integer("threads", "", 1, 128)
            .alias("io-threads")
            .startup()
            .acts(
                "Event loops, each of which reads, executes and answers. The default is the number \
             of cores; io-threads means the same.",
            ),
        switch("daemonize", "no")
            .startup()
            .acts("Whether to run in the background, detached from the terminal."),
        choice(
            "supervised",
            "no",
            &[("upstart", 1), ("systemd", 2), ("auto", 3), ("no", 0)],
        )
        .startup()
        .acts(
            "Who is told that the server is ready, how loading goes, and that it stops: systemd, \
             or with auto systemd where it asks. upstart does nothing.",
        ),
        text("pidfile", "")
            .startup()
            .acts("File that holds the process id while the server runs."),
        integer("databases", "16", 1, I32)
            .startup()
            .acts("Number of databases that SELECT can choose from."),
        special("dir", ".", Kind::Directory)
            .protected()
            .acts("Directory to work in: files that are named without a path stand there."),
        integer("hz", "10", 0, I32)
            .clamp(1, 500)
            .acts("Rounds of background work a second, from 1 to 500."),
        switch("dynamic-hz", "yes")
            .accepted("Redis works more often with many clients; here the load itself decides."),
        switch("always-show-logo", "no")
            .startup()
            .accepted("Whether a banner is logged at start."),
        switch("set-proc-title", "yes")
            .startup()
            .later("Whether the process list shows the address and the mode."),
        checked(
            "proc-title-template",
            "{title} {listen-addr} {server-mode}",
            TextCheck::TitleTemplate,
        )
        .later("What the process list shows, with variables in braces."),
        flags("shutdown-on-sigint", "default", SHUTDOWN)
            .acts("How SIGINT stops the server: default, or save, nosave, now and force."),
        flags("shutdown-on-sigterm", "default", SHUTDOWN)
            .acts("How SIGTERM stops the server, with the same words."),
        integer("shutdown-timeout", "10", 0, I32)
            .later("Seconds that a shutdown waits for replicas to catch up."),
        checked("locale-collate", "", TextCheck::Locale)
            .accepted("How SORT with ALPHA compares. Only the bytewise C order exists here."),
        text("ignore-warnings", "")
            .accepted("Warnings about the machine that must not stop the start."),
        integer("lookahead", "16", 1, I32)
            .accepted("Commands parsed ahead a client; here all that have arrived are."),
    ],
};

const LOGGING: Group = Group {
    title: "Logging",
    directives: &[
        choice(
            "loglevel",
            "notice",
            &[
                ("debug", 0),
                ("verbose", 1),
                ("notice", 2),
                ("warning", 3),
                ("nothing", 4),
            ],
        )
        .acts("The least important lines that are still logged."),
        text("logfile", "")
            .startup()
            .acts("File to log to. Empty means standard output."),
        choice(
            "log-format",
            "legacy",
            &[("legacy", 0), ("logfmt", 1), ("json", 2)],
        )
        .acts("The form of a line: Redis's, or pairs or a JSON object for collectors."),
        switch("syslog-enabled", "no")
            .startup()
            .acts("Whether to log to syslog (/dev/log) too."),
        text("syslog-ident", "redis")
            .startup()
            .acts("Name under which syslog shows us."),
        choice(
            "syslog-facility",
            "local0",
            &[
                ("user", 0),
                ("local0", 1),
                ("local1", 2),
                ("local2", 3),
                ("local3", 4),
                ("local4", 5),
                ("local5", 6),
                ("local6", 7),
                ("local7", 8),
            ],
        )
        .startup()
        .acts("Facility of the lines sent to syslog."),
        switch("hide-user-data-from-log", "no")
            .accepted("Keys and values are never logged here, whatever this says."),
        switch("crash-log-enabled", "yes").accepted("Whether a crash logs a report."),
        switch("crash-memcheck-enabled", "yes").accepted("Whether a crash tests the memory."),
    ],
};

const SECURITY: Group = Group {
    title: "Security",
    directives: &[
        text("requirepass", "")
            .secret()
            .acts("Password that clients must give with AUTH or HELLO. Empty means none."),
        switch("protected-mode", "yes").acts(
            "Without a password, serve only clients of this machine and tell others why they are \
             turned away.",
        ),
        choice("enable-debug-command", "no", ACCESS)
            .startup()
            .acts("Who may use DEBUG: nobody, everybody, or local connections."),
        choice("enable-protected-configs", "no", ACCESS)
            .startup()
            .acts("Who may change dir and dbfilename with CONFIG SET; the same choices."),
        choice("enable-module-command", "no", ACCESS)
            .startup()
            .accepted("Who may use MODULE. There are no modules here."),
        text("aclfile", "").startup().acts(
            "File with the users and their rights, which ACL LOAD reads and ACL SAVE writes: a \
             line each, `user NAME` and rules. Empty means that they stand here, as `user` lines.",
        ),
        integer("acllog-max-len", "128", 0, I64).acts("Refused accesses that ACL LOG remembers."),
        choice(
            "acl-pubsub-default",
            "resetchannels",
            &[("allchannels", 1), ("resetchannels", 0)],
        )
        .acts("Whether a new user may use every channel or none."),
    ],
};

const CLIENTS: Group = Group {
    title: "Clients",
    directives: &[
        integer("maxclients", "10000", 1, u32::MAX as i64)
            .acts("Connections served at the same time; more are told so and closed."),
        memory("client-query-buffer-limit", "1073741824", MIB, U63)
            .acts("Bytes of unfinished requests after which a client is closed."),
        special(
            "client-output-buffer-limit",
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
            Kind::OutputLimits,
        )
        .acts(
            "Per class (normal, replica, pubsub): bytes of waiting output at which a client is \
             closed at once, bytes at which it is closed once the given seconds have passed. 0 is \
             no limit.",
        ),
        memory("proto-max-bulk-len", "536870912", MIB, U63)
            .acts("Longest argument and longest string value, in bytes."),
        special("maxmemory-clients", "0", Kind::MemoryOrPercent).acts(
            "Memory for all clients together, above which the biggest are closed; 5% is that \
             share of maxmemory, 0 is no limit. CLIENT NO-EVICT keeps a client.",
        ),
        integer("tracking-table-max-keys", "1000000", 0, I64)
            .acts("Keys remembered for client-side caching; 0 is no limit."),
    ],
};

const MEMORY: Group = Group {
    title: "Memory",
    directives: &[
        memory("maxmemory", "0", 0, u64::MAX)
            .acts("Bytes that the data may take before keys are evicted; 0 is no limit."),
        choice(
            "maxmemory-policy",
            "noeviction",
            &[
                ("volatile-lru", 0),
                ("volatile-lfu", 1),
                ("volatile-random", 2),
                ("volatile-ttl", 3),
                ("volatile-lrm", 4),
                ("allkeys-lru", 5),
                ("allkeys-lfu", 6),
                ("allkeys-random", 7),
                ("allkeys-lrm", 8),
                ("noeviction", 9),
            ],
        )
        .acts("Which keys go first when maxmemory is reached, or none: writes then fail."),
        integer("maxmemory-samples", "5", 1, 64)
            .acts("Keys compared to find one to evict; more is nearer to exact and slower."),
        integer("maxmemory-eviction-tenacity", "10", 0, 100)
            .acts("How long one command may evict: 0 briefly, 100 until it is enough."),
        integer("lfu-log-factor", "10", 0, I32)
            .acts("How many hits it takes to raise a key's frequency counter."),
        integer("lfu-decay-time", "1", 0, I32)
            .acts("Minutes after which an untouched key's frequency counter falls by one."),
        integer("active-expire-effort", "1", 1, 10)
            .acts("Work spent on removing expired keys that nobody reads, from 1 to 10."),
        switch("activerehashing", "yes")
            .accepted("Tables here grow in small steps and need no rehashing."),
        switch("activedefrag", "no").accepted("Whether memory is compacted while running."),
        memory("active-defrag-ignore-bytes", "104857600", 1, U63)
            .accepted("Waste below which nothing is compacted."),
        integer("active-defrag-threshold-lower", "10", 0, 1000)
            .accepted("Percentage of waste at which compacting starts."),
        integer("active-defrag-threshold-upper", "100", 0, 1000)
            .accepted("Percentage of waste at which compacting does its most."),
        integer("active-defrag-cycle-min", "1", 1, 99)
            .accepted("Least percentage of a core for compacting."),
        integer("active-defrag-cycle-max", "25", 1, 99)
            .accepted("Greatest percentage of a core for compacting."),
        integer("active-defrag-max-scan-fields", "1000", 1, I64)
            .accepted("Elements of a collection that compacting treats in one go."),
        switch("jemalloc-bg-thread", "yes")
            .accepted("Whether the allocator returns memory in a thread of its own."),
        switch("key-memory-histograms", "no")
            .later("Whether INFO keysizes shows the bytes of collections beside their elements."),
    ],
};

const ENCODINGS: Group = Group {
    title: "Encodings of small collections",
    directives: &[
        integer("hash-max-listpack-entries", "512", 0, I64)
            .alias("hash-max-ziplist-entries")
            .acts("Fields up to which a hash stays one packed block."),
        memory("hash-max-listpack-value", "64", 0, U63)
            .alias("hash-max-ziplist-value")
            .acts("Longest field or value of such a hash, in bytes."),
        integer("hash-min-template-entries", "0", 0, I64)
            .accepted("Fewest fields of hashes that share their field names."),
        integer("hash-max-template-entries", "0", 0, I64)
            .accepted("Most fields of hashes that share their field names; 0 shares none."),
        integer("hash-rdb-load-min-template-entries", "0", 0, I64)
            .accepted("The same lower bound while a snapshot is loaded."),
        integer("hash-rdb-load-max-template-entries", "0", 0, I64)
            .accepted("The same upper bound while a snapshot is loaded."),
        integer("hash-rdb-load-template-disassembly-threshold", "0", 0, I64)
            .accepted("Shared field names used less than this are given up after a load."),
        integer("list-max-listpack-size", "-2", i32::MIN as i64, I32)
            .alias("list-max-ziplist-size")
            .acts("Size of a list's blocks: elements, or -1 to -5 for 4 to 64 KiB."),
        integer("list-compress-depth", "0", 0, I32)
            .accepted("Blocks at both ends of a list that stay uncompressed; 0 compresses none."),
        integer("set-max-intset-entries", "512", 0, I64)
            .acts("Members up to which a set of integers stays a sorted array."),
        integer("set-max-listpack-entries", "128", 0, I64)
            .acts("Members up to which another set stays one packed block."),
        integer("set-max-listpack-value", "64", 0, I64)
            .acts("Longest member of such a set, in bytes."),
        integer("zset-max-listpack-entries", "128", 0, I64)
            .alias("zset-max-ziplist-entries")
            .acts("Members up to which a sorted set stays one packed block."),
        memory("zset-max-listpack-value", "64", 0, U63)
            .alias("zset-max-ziplist-value")
            .acts("Longest member of such a sorted set, in bytes."),
        memory("hll-sparse-max-bytes", "3000", 0, U63)
            .acts("Size up to which a HyperLogLog stays in its sparse form."),
        memory("stream-node-max-bytes", "4096", 0, U63)
            .acts("Bytes in one block of a stream; 0 is no limit."),
        integer("stream-node-max-entries", "100", 0, I64)
            .acts("Entries in one block of a stream; 0 is no limit."),
        integer("stream-idmp-duration", "100", 1, 86400)
            .acts("Seconds for which a stream remembers a producer's message ids."),
        integer("stream-idmp-maxsize", "100", 1, 10000)
            .acts("Message ids that a stream remembers a producer."),
        special(
            "array-slice-size",
            "4096",
            Kind::PowerOfTwo {
                min: 256,
                max: 65536,
            },
        )
        .acts("Indexes in one slice of an array, as ARINFO counts them."),
        integer("array-sparse-kmax", "10", 0, 256)
            .acts("Elements up to which ARINFO counts a slice of an array as sparse."),
        integer("array-sparse-kmin", "5", 0, 256)
            .accepted("Filled elements below which a slice is stored sparsely again."),
        switch("vset-force-single-threaded-execution", "no")
            .accepted("Whether vector searches stay on the thread that runs commands."),
    ],
};

const LAZY: Group = Group {
    title: "Freeing memory",
    directives: &[
        switch("lazyfree-lazy-eviction", "no")
            .accepted("Big values are always freed in slices, evicted ones too."),
        switch("lazyfree-lazy-expire", "no").accepted("The same for expired keys."),
        switch("lazyfree-lazy-server-del", "no").accepted("The same for overwritten values."),
        switch("lazyfree-lazy-user-del", "no").accepted("Whether DEL does what UNLINK does."),
        switch("lazyfree-lazy-user-flush", "no")
            .acts("Whether FLUSHALL and FLUSHDB without a word mean ASYNC."),
        switch("replica-lazy-flush", "no")
            .alias("slave-lazy-flush")
            .accepted("Whether a replica frees its old data after it has loaded the new."),
    ],
};

const SLOW: Group = Group {
    title: "Slow log and latency",
    directives: &[
        integer("slowlog-log-slower-than", "10000", -1, I64)
            .acts("Microseconds from which a command is logged as slow; -1 logs none, 0 all."),
        integer("slowlog-max-len", "128", 0, I64).acts("Commands that the slow log remembers."),
        integer("slowlog-entry-max-argc", "32", 2, I32)
            .acts("Arguments kept of a command in the slow log."),
        integer("slowlog-entry-max-string-len", "128", 1, I64)
            .acts("Bytes kept of an argument in the slow log."),
        integer("latency-monitor-threshold", "0", 0, I64)
            .acts("Milliseconds from which LATENCY remembers an event; 0 remembers none."),
        switch("latency-tracking", "yes").acts("Whether the latency of each command is counted."),
        special(
            "latency-tracking-info-percentiles",
            "50 99 99.9",
            Kind::Percentiles,
        )
        .acts("Percentiles that INFO latencystats shows."),
    ],
};

const EVENTS: Group = Group {
    title: "Keyspace events",
    directives: &[special("notify-keyspace-events", "", Kind::Events).acts(
        "Events to publish. K and E choose the channels, by key and by event; g $ l s h z t d a \
         are the types, x expired, e evicted, A all of those, m misses, n new keys, o \
         overwritten, c type changed, S T I V the events of hash fields. Empty publishes none.",
    )],
};

const SAVING: Group = Group {
    title: "Snapshots",
    directives: &[
        special("save", "3600 1 300 100 60 10000", Kind::SavePoints).acts(
            "Write a snapshot once this many seconds have passed and this many changes were \
             made; several pairs may stand in a line, \"\" is never.",
        ),
        checked("dbfilename", "dump.rdb", TextCheck::FileName)
            .protected()
            .acts("Name of the snapshot in dir."),
        switch("rdbcompression", "yes").acts("Whether strings in a snapshot are compressed."),
        switch("rdbchecksum", "yes").startup().acts(
            "Whether a snapshot ends with a checksum, and whether that of one that is loaded is \
             compared.",
        ),
        choice(
            "tidemill-rdb-format",
            "redis-8.10",
            &[("redis-8.10", 0), ("redis-7.0", 1), ("valkey-9.1", 2)],
        )
        .acts(
            "The oldest server that must be able to load our snapshots. What it does not know (in \
             redis-7.0 and valkey-9.1 arrays, and in redis-7.0 deadlines of a hash's fields) makes \
             saving fail and say so.",
        ),
        switch("tidemill-rdb-skip-unsupported", "no").acts(
            "Whether parts of a snapshot that have no place here (what modules keep, functions \
             that fail) are left out when it is loaded; otherwise the server does not start with \
             it.",
        ),
        switch("stop-writes-on-bgsave-error", "yes")
            .acts("Whether writes fail after a snapshot could not be written."),
        switch("rdb-save-incremental-fsync", "yes")
            .acts("Whether a snapshot is synced every 4 MiB, and not at its end alone."),
        switch("rdb-del-sync-files", "no")
            .accepted("Whether snapshots made only for replicas are deleted."),
        choice(
            "sanitize-dump-payload",
            "no",
            &[("no", 0), ("yes", 1), ("clients", 2)],
        )
        .accepted("Which snapshots and payloads are checked fully; here all of them are."),
        checked("preload-file", "", TextCheck::Preload)
            .startup()
            .acts(
                "File to load at start in place of what is in dir: rdb:PATH or aof:PATH, of a \
                 manifest or one file. A log begins with it.",
            ),
        checked("backupdirname", "backupdir", TextCheck::DirNameNonEmpty)
            .startup()
            .acts("Directory of backups (BACKUP), inside dir; CLEANUP removes all files in it."),
        integer("backup-sealed-ttl", "0", 0, I64)
            .acts("Seconds for which a finished backup is kept; 0 is until CLEANUP."),
    ],
};

const APPENDING: Group = Group {
    title: "Append-only file",
    directives: &[
        switch("appendonly", "no").acts("Whether every write goes to the append-only file."),
        checked(
            "appendfilename",
            "appendonly.aof",
            TextCheck::FileNameNonEmpty,
        )
        .startup()
        .acts("First part of the names of the append-only files."),
        checked("appenddirname", "appendonlydir", TextCheck::DirNameNonEmpty)
            .startup()
            .acts("Directory of the append-only files, inside dir."),
        choice(
            "appendfsync",
            "everysec",
            &[("everysec", 2), ("always", 1), ("no", 0)],
        )
        .acts("When writes are forced to the disk: always before the reply, or every second."),
        switch("no-appendfsync-on-rewrite", "no")
            .accepted("Whether forcing pauses while a snapshot is written."),
        integer("auto-aof-rewrite-percentage", "100", 0, I32)
            .acts("Growth of the file, in percent, after which it is rewritten; 0 is never."),
        memory("auto-aof-rewrite-min-size", "67108864", 0, U63)
            .acts("Size below which it is not rewritten by itself."),
        switch("aof-load-truncated", "yes")
            .acts("Whether a file with a torn end is loaded up to there."),
        integer("aof-load-corrupt-tail-max-size", "0", 0, I64)
            .acts("Bytes of damage at the end that are cut off when loading."),
        switch("aof-use-rdb-preamble", "yes")
            .acts("Whether a rewritten file is a snapshot; commands otherwise."),
        switch("aof-rewrite-incremental-fsync", "yes")
            .acts("Whether a rewritten file is synced every 4 MiB, and not at its end alone."),
        switch("aof-timestamp-enabled", "no")
            .acts("Whether the file holds times, for going back to one."),
    ],
};

const REPLICATION: Group = Group {
    title: "Replication",
    directives: &[
        special("replicaof", "", Kind::Primary)
            .alias("slaveof")
            .startup()
            .refused("replication", "Host and port of the primary to copy from."),
        text("masterauth", "")
            .secret()
            .later("Password for the primary."),
        text("masteruser", "").later("User name for the primary."),
        switch("replica-serve-stale-data", "yes")
            .alias("slave-serve-stale-data")
            .accepted("Whether a replica answers while it has no link to its primary."),
        switch("replica-read-only", "yes")
            .alias("slave-read-only")
            .accepted("Whether a replica refuses writes of clients."),
        switch("repl-diskless-sync", "yes")
            .accepted("Whether a full copy goes straight to the socket."),
        integer("repl-diskless-sync-delay", "5", 0, I32)
            .accepted("Seconds to wait for more replicas before such a copy."),
        integer("repl-diskless-sync-max-replicas", "0", 0, I32)
            .accepted("Replicas after which it starts at once; 0 waits always."),
        choice(
            "repl-diskless-load",
            "disabled",
            &[
                ("disabled", 0),
                ("on-empty-db", 1),
                ("swapdb", 2),
                ("flushdb", 3),
            ],
        )
        .accepted("How a replica loads a full copy without a file."),
        integer("repl-ping-replica-period", "10", 1, I32)
            .alias("repl-ping-slave-period")
            .accepted("Seconds between pings to replicas."),
        integer("repl-timeout", "60", 1, I32).accepted("Seconds of silence that end a link."),
        switch("repl-disable-tcp-nodelay", "no")
            .accepted("Whether small packets to replicas are gathered."),
        memory("repl-backlog-size", "1048576", 1, U63)
            .clamp(16384, I64)
            .accepted("Bytes of history kept for replicas that come back; at least 16 KiB."),
        integer("repl-backlog-ttl", "3600", 0, I64)
            .accepted("Seconds after the last replica until that history is freed; 0 keeps it."),
        memory("replica-full-sync-buffer-limit", "0", 0, U63)
            .accepted("Bytes that a replica holds back while it loads a copy; 0 is no limit."),
        integer("replica-priority", "100", 0, I32)
            .alias("slave-priority")
            .accepted("Rank for Sentinel; the lowest is promoted first, 0 never."),
        switch("replica-announced", "yes").accepted("Whether Sentinel tells of this replica."),
        text("replica-announce-ip", "")
            .alias("slave-announce-ip")
            .accepted("Address that the primary reports for this replica."),
        integer("replica-announce-port", "0", 0, 65535)
            .alias("slave-announce-port")
            .accepted("Port that the primary reports for this replica."),
        integer("min-replicas-to-write", "0", 0, I32)
            .alias("min-slaves-to-write")
            .later("Replicas that must be in touch for writes to be taken; 0 asks for none."),
        integer("min-replicas-max-lag", "10", 0, I32)
            .alias("min-slaves-max-lag")
            .accepted("Seconds of silence after which a replica no longer counts for that."),
        switch("replica-ignore-maxmemory", "yes")
            .alias("slave-ignore-maxmemory")
            .accepted("Whether a replica leaves eviction to its primary."),
        switch("replica-ignore-disk-write-errors", "no")
            .accepted("Whether a replica goes on where it cannot write its files."),
        choice(
            "propagation-error-behavior",
            "ignore",
            &[("ignore", 0), ("panic", 1), ("panic-on-replicas", 2)],
        )
        .accepted("What happens where a replicated command fails."),
    ],
};

const CLUSTERING: Group = Group {
    title: "Cluster",
    directives: &[
        switch("cluster-enabled", "no")
            .startup()
            .refused(CLUSTER, "Whether this server is a node of a cluster."),
        text("cluster-config-file", "nodes.conf")
            .startup()
            .accepted("File in which the node keeps its view of the cluster."),
        integer("cluster-node-timeout", "15000", 0, I64)
            .accepted("Milliseconds of silence after which a node counts as failing."),
        integer("cluster-port", "0", 0, 65535)
            .startup()
            .accepted("Port of the cluster bus; 0 is the client port plus 10000."),
        integer("cluster-replica-validity-factor", "10", 0, I32)
            .alias("cluster-slave-validity-factor")
            .accepted("How old a replica's data may be for it to take over; 0 is any age."),
        integer("cluster-migration-barrier", "1", 0, I32)
            .accepted("Replicas that a primary must keep before one moves to another."),
        switch("cluster-allow-replica-migration", "yes")
            .accepted("Whether replicas move to primaries that have none."),
        switch("cluster-require-full-coverage", "yes")
            .accepted("Whether the cluster stops where a slot has no owner."),
        switch("cluster-replica-no-failover", "no")
            .alias("cluster-slave-no-failover")
            .accepted("Whether this replica never takes over by itself."),
        switch("cluster-allow-reads-when-down", "no")
            .accepted("Whether reads go on while the cluster is down."),
        switch("cluster-allow-pubsubshard-when-down", "yes")
            .accepted("Whether sharded channels go on while the cluster is down."),
        memory("cluster-link-sendbuf-limit", "0", 0, u64::MAX)
            .accepted("Bytes waiting for another node after which its link is dropped."),
        checked("cluster-announce-hostname", "", TextCheck::HostName)
            .accepted("Host name that other nodes tell clients."),
        checked("cluster-announce-human-nodename", "", TextCheck::NodeName)
            .accepted("Name of this node in logs."),
        checked("cluster-announce-ip", "", TextCheck::HostAddress)
            .accepted("Address that other nodes use."),
        integer("cluster-announce-port", "0", 0, 65535).accepted("Port that other nodes tell."),
        integer("cluster-announce-tls-port", "0", 0, 65535)
            .accepted("TLS port that other nodes tell."),
        integer("cluster-announce-bus-port", "0", 0, 65535)
            .accepted("Bus port that other nodes use."),
        choice(
            "cluster-preferred-endpoint-type",
            "ip",
            &[("ip", 0), ("hostname", 1), ("unknown-endpoint", 2)],
        )
        .accepted("How clients are told where a slot is."),
        switch("cluster-bus-port-protected-mode", "no")
            .accepted("Whether the bus takes only addresses of known nodes."),
        integer("cluster-compatibility-sample-ratio", "0", 0, 100)
            .accepted("Percentage of commands checked for what a cluster would refuse."),
        memory(
            "cluster-slot-migration-handoff-max-lag-bytes",
            "1048576",
            0,
            U63,
        )
        .accepted("Lag below which a moving slot is handed over."),
        integer(
            "cluster-slot-migration-write-pause-timeout",
            "10000",
            0,
            I64,
        )
        .accepted("Milliseconds for which writes pause at most during the handover."),
        flags(
            "cluster-slot-stats-enabled",
            "no",
            &[("no", 0), ("yes", 7), ("cpu", 1), ("net", 2), ("mem", 4)],
        )
        .accepted("What is counted for each slot: cpu, net, mem, or all with yes."),
    ],
};

const TLS_GROUP: Group = Group {
    title: "TLS",
    directives: &[
        integer("tls-port", "0", 0, 65535)
            .acts("Port for TLS clients; 0 is none. With port 0 beside it, TCP clients need TLS."),
        switch("tls-replication", "no")
            .refused("replication", "Whether links to a primary use TLS."),
        switch("tls-cluster", "no").refused(CLUSTER, "Whether the cluster bus uses TLS."),
        text("tls-cert-file", "").acts(
            "Certificate of the server in PEM, with those of the authorities between. Setting any \
             of these files again reads all of them; connections that are there stay as they are.",
        ),
        text("tls-key-file", "").acts("Its private key in PEM, not encrypted."),
        text("tls-key-file-pass", "")
            .secret()
            .refused("an encrypted key", "Password of that key."),
        text("tls-client-cert-file", "").accepted("Certificate for links to other servers."),
        text("tls-client-key-file", "").accepted("Its private key."),
        text("tls-client-key-file-pass", "")
            .secret()
            .accepted("Password of that key."),
        text("tls-dh-params-file", "")
            .accepted("Parameters for old key exchanges, which are not spoken here."),
        text("tls-ca-cert-file", "")
            .acts("Authorities that may vouch for clients, in one PEM file."),
        text("tls-ca-cert-dir", "")
            .acts("Authorities that may vouch for clients: every PEM file of a directory."),
        checked("tls-expected-peer-name", "", TextCheck::PeerNames)
            .accepted("Name that the certificate of another server must hold."),
        choice(
            "tls-auth-clients",
            "yes",
            &[("no", 0), ("yes", 1), ("optional", 2)],
        )
        .acts("Whether clients must show a certificate (yes), may (optional), or are not asked."),
        choice("tls-auth-clients-user", "off", &[("CN", 1), ("off", 0)]).acts(
            "With CN, a client whose certificate's common name is that of an enabled user is \
             logged in as it.",
        ),
        text("tls-protocols", "").acts(
            "Versions that are spoken, of TLSv1.2 and TLSv1.3; empty is both. Older ones are not \
             there.",
        ),
        text("tls-ciphers", "").acts(
            "Ciphers of version 1.2 by OpenSSL's names, the best first; empty, or groups such as \
             DEFAULT, are all.",
        ),
        text("tls-ciphersuites", "")
            .acts("Ciphers of version 1.3 by their names, the best first; empty is all."),
        switch("tls-prefer-server-ciphers", "no")
            .acts("Whether the server's order of ciphers counts, not the client's."),
        switch("tls-session-caching", "yes").acts(
            "Whether clients may take up an earlier session, which saves most of a handshake.",
        ),
        integer("tls-session-cache-size", "20480", 0, I32)
            .acts("Sessions that are remembered; 0 is no limit but a million."),
        integer("tls-session-cache-timeout", "300", 0, I32).accepted(
            "Seconds for which a session may be taken up; here new ones push old ones out.",
        ),
    ],
};

const SCRIPTS: Group = Group {
    title: "Scripts",
    directives: &[integer("busy-reply-threshold", "5000", 0, I64)
        .alias("lua-time-limit")
        .acts("Milliseconds after which a running script makes others get BUSY.")],
};

const SYSTEM: Group = Group {
    title: "Machine",
    directives: &[
        choice(
            "oom-score-adj",
            "no",
            &[("no", 0), ("yes", 1), ("relative", 1), ("absolute", 2)],
        )
        .later("Whether the kernel is told whom to end first where memory runs out."),
        special("oom-score-adj-values", "0 200 800", Kind::OomScores)
            .accepted("The values for a primary, a replica and a background process."),
        switch("disable-thp", "yes")
            .startup()
            .later("Whether huge pages, which cost latency, are turned off for the process."),
        text("server-cpulist", "")
            .alias("server_cpulist")
            .startup()
            .later("Cores for the event loops, such as 0-7:2."),
        text("bio-cpulist", "")
            .alias("bio_cpulist")
            .startup()
            .accepted("Cores for background threads."),
        text("aof-rewrite-cpulist", "")
            .alias("aof_rewrite_cpulist")
            .startup()
            .accepted("Cores for rewriting the append-only file."),
        text("bgsave-cpulist", "")
            .alias("bgsave_cpulist")
            .startup()
            .accepted("Cores for writing snapshots."),
    ],
};
