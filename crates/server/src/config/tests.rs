//! Tests of the configuration as a whole: the table against the real servers' facts, CONFIG GET
//! and SET, loading, rewriting, and the generated `tidemill.conf`.

use super::directive::Kind;
use super::start::parse_text;
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

fn set(config: &Config, pairs: &[(&str, &str)]) -> Result<Changes, String> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(a, b)| (a.as_bytes(), b.as_bytes()))
        .collect();
    config.set(&pairs, false).map_err(|error| error.to_string())
}

fn get(config: &Config, name: &str) -> String {
    let found = config.get(&[name.as_bytes()]);
    assert_eq!(found.len(), 1, "{name}");
    String::from_utf8(found[0].1.clone()).expect("text")
}

/// Sets one value and gives what CONFIG GET then shows, or the error without its first part.
fn after(name: &str, value: &str) -> String {
    match set(&Config::default(), &[(name, value)]) {
        Ok(changes) => get(&changes.config, name),
        Err(error) => {
            let start = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - ");
            let reason = error
                .strip_prefix(&start)
                .expect("a failure of this argument");
            format!("! {reason}")
        }
    }
}

fn run(args: &[&str], input: &str) -> Result<Startup, String> {
    start(args.iter().map(OsString::from), &mut input.as_bytes()).map_err(|error| error.to_string())
}

fn load(args: &[&str]) -> Loaded {
    match run(args, "") {
        Ok(Startup::Run(loaded)) => *loaded,
        other => panic!("{args:?} gave {other:?}"),
    }
}

fn refused(args: &[&str]) -> String {
    run(args, "").expect_err("must be refused")
}

/// A directory that goes away with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scratch() -> Scratch {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tidemill-config-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir(&path).expect("a scratch directory");
    Scratch(path)
}

fn file(dir: &Scratch, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("text").to_string()
}

#[test]
fn the_table_is_sound() {
    let mut names = BTreeSet::new();
    for one in table::all() {
        for name in std::iter::once(one.name).chain(one.alias) {
            assert!(names.insert(name), "{name} stands twice");
            assert_eq!(name, name.to_ascii_lowercase());
        }
        assert!(one.doc.ends_with('.'), "{}: doc is a sentence", one.name);
        let value = default_value(one);
        if !matches!(one.kind, Kind::Directory) {
            let shown = value.show(one.kind);
            if matches!(one.kind, Kind::Primary) {
                continue;
            }
            let again = Value::parse(one, &[&shown], &value).expect("shown values parse");
            assert_eq!(again, value, "{}", one.name);
        }
    }
    for (name, ours) in table::FOREIGN {
        assert!(row(name.as_bytes()).is_none(), "{name} is ours");
        assert!(
            ours.is_none_or(|ours| row(ours.as_bytes()).is_some()),
            "{name}"
        );
    }
}

/// Facts that differ on purpose or come from how the facts were gathered.
const OTHER_DEFAULTS: &[&str] = &[
    // Threads: ours is the number of cores.
    "io-threads",
    // The server that was asked ran without saving.
    "save",
];

#[test]
fn names_and_defaults_are_those_of_redis() {
    let facts = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testkit/compat/redis-8.10.json"
    ));
    let facts: serde_json::Value = serde_json::from_str(facts).expect("JSON");
    let theirs: BTreeMap<String, String> = facts["config"]
        .as_object()
        .expect("a map")
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().expect("text").to_string()))
        .collect();
    let ours: BTreeMap<String, String> = Config::default()
        .get(&[b"*"])
        .into_iter()
        .map(|(name, value)| (String::from_utf8(name), String::from_utf8(value)))
        .map(|(name, value)| (name.expect("text"), value.expect("text")))
        .collect();
    for (name, value) in &theirs {
        let our = ours
            .get(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        if !OTHER_DEFAULTS.contains(&name.as_str()) {
            assert_eq!(our, value, "{name}");
        }
    }
    let more: Vec<_> = ours
        .keys()
        .filter(|name| !theirs.contains_key(*name))
        .collect();
    let own = [
        "log-format",
        "metrics-bind",
        "metrics-port",
        "threads",
        "tidemill-rdb-format",
        "tidemill-rdb-skip-unsupported",
    ];
    assert_eq!(more, own);
}

#[test]
fn foreign_names_cover_valkey() {
    let facts = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testkit/compat/valkey-9.1.json"
    ));
    let facts: serde_json::Value = serde_json::from_str(facts).expect("JSON");
    for name in facts["config"].as_object().expect("a map").keys() {
        let known = row(name.as_bytes()).is_some();
        let foreign = table::FOREIGN.iter().any(|(each, _)| each == name);
        // RDMA and import mode change what a server does; they are refused as unknown.
        let refused = name.starts_with("rdma-") || name == "import-mode";
        assert!(known || foreign || refused, "{name}");
    }
}

#[test]
fn tidemill_conf_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tidemill.conf");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let made = document();
    let differs = committed
        .lines()
        .zip(made.lines())
        .position(|(old, new)| old != new);
    let at = differs.unwrap_or(committed.lines().count().min(made.lines().count()));
    assert!(
        committed == made,
        "tidemill.conf is stale from line {}; run `cargo xtask gen`\n- {}\n+ {}",
        at + 1,
        committed.lines().nth(at).unwrap_or("(end)"),
        made.lines().nth(at).unwrap_or("(end)"),
    );
}

#[test]
fn tidemill_conf_sets_the_defaults() {
    let bare = |line: &str| {
        let directive = line.strip_prefix("# ")?;
        let name = directive.split(' ').next()?;
        let known = row(name.as_bytes()).is_some_and(|(_, one)| one.name == name);
        let skip = matches!(name, "dir" | "threads");
        (known && !skip).then(|| directive.to_string())
    };
    // Sentences of the descriptions may start like a directive; none does.
    let text: Vec<String> = document().lines().filter_map(bare).collect();
    let loaded = parse_text(text.join("\n").as_bytes()).expect("loads");
    let mut ours = loaded.config.get(&[b"*"]);
    let mut defaults = Config::default().get(&[b"*"]);
    for list in [&mut ours, &mut defaults] {
        list.retain(|(name, _)| name != b"dir");
    }
    assert_eq!(ours, defaults);
}

#[test]
fn get_matches_patterns_and_names() {
    let config = Config::default();
    let names = |patterns: &[&str]| -> Vec<String> {
        let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
        let found = config.get(&patterns);
        found
            .into_iter()
            .map(|(name, _)| String::from_utf8(name).expect("text"))
            .collect()
    };
    assert_eq!(names(&["nosuch"]), [""; 0]);
    assert_eq!(
        names(&["d[bi]*", "port"]),
        ["port", "dir", "dbfilename", "disable-thp"]
    );
    assert_eq!(names(&["MAXMEMORY"]), ["MAXMEMORY"]);
    assert_eq!(names(&["hash-max-zip*", "hash-max-ziplist-value"]).len(), 2);
    assert_eq!(names(&["*"]).len(), 234);
}

#[test]
fn set_answers_as_redis_does() {
    let config = Config::default();
    let error = |pairs: &[(&str, &str)]| set(&config, pairs).expect_err("refused");
    let unknown = "ERR Unknown option or number of arguments for CONFIG SET - ";
    let failed = "ERR CONFIG SET failed (possibly related to argument ";
    assert_eq!(error(&[("nosuch", "1")]), format!("{unknown}'nosuch'"));
    assert_eq!(error(&[("a\0b", "1")]), format!("{unknown}'a'"));
    assert_eq!(
        error(&[("timeout", "abc"), ("nosuch", "1")]),
        format!("{unknown}'nosuch'")
    );
    assert_eq!(
        error(&[("daemonize", "yes"), ("nosuch", "1")]),
        format!("{failed}'daemonize') - can't set immutable config")
    );
    assert_eq!(
        error(&[("dir", "/tmp")]),
        format!("{failed}'dir') - can't set protected config")
    );
    assert_eq!(
        error(&[
            ("hash-max-listpack-entries", "1"),
            ("hash-max-ziplist-entries", "2")
        ]),
        format!("{failed}'hash-max-ziplist-entries') - duplicate parameter")
    );
    assert_eq!(
        error(&[("maxmemory", "1mb"), ("timeout", "abc")]),
        format!("{failed}'timeout') - argument couldn't be parsed into an integer")
    );
    assert_eq!(
        error(&[("TIMEOUT", "abc")]),
        format!("{failed}'TIMEOUT') - argument couldn't be parsed into an integer")
    );
}

#[test]
fn set_gives_a_new_configuration_and_what_changed() {
    let config = Config::default();
    let changes = set(
        &config,
        &[("MaxMemory", "1KB"), ("timeout", "0"), ("port", "7000")],
    )
    .expect("accepted");
    assert_eq!(changes.changed, ["port", "maxmemory"]);
    assert_eq!(changes.config.maxmemory_bytes, 1024);
    assert_eq!(changes.config.port, 7000);
    assert_eq!(config.maxmemory_bytes, 0);
}

#[test]
fn protected_directives_open_up() {
    let dir = scratch();
    let path = dir.path().canonicalize().expect("exists");
    let path = path.to_str().expect("text");
    let changes = Config::default()
        .set(&[(b"dir", path.as_bytes())], true)
        .expect("accepted");
    assert_eq!(get(&changes.config, "dir"), path);
    let error = Config::default()
        .set(&[(b"dir", b"/nosuch")], true)
        .expect_err("refused");
    assert!(
        error
            .to_string()
            .ends_with("'dir') - No such file or directory")
    );
}

#[test]
fn values_are_read_and_shown_as_redis_does() {
    let not_integer = "! argument couldn't be parsed into an integer";
    let not_memory = "! argument must be a memory value";
    let range = "! argument must be between";
    let limits = "slave 268435456 67108864 60 pubsub 33554432 8388608 60";
    for (name, value, shown) in [
        ("timeout", "1", "1"),
        ("timeout", "+1", not_integer),
        ("timeout", "01", not_integer),
        ("timeout", " 1", not_integer),
        ("timeout", "", not_integer),
        (
            "timeout",
            "-1",
            &format!("{range} 0 and 2147483647 inclusive"),
        ),
        ("timeout", "9223372036854775808", not_integer),
        ("slowlog-log-slower-than", "-1", "-1"),
        ("hz", "0", "1"),
        ("hz", "501", "500"),
        (
            "maxclients",
            "0",
            &format!("{range} 1 and 4294967295 inclusive"),
        ),
        ("maxmemory", "1k", "1000"),
        ("maxmemory", "1KB", "1024"),
        ("maxmemory", "1g", "1000000000"),
        ("maxmemory", "", "0"),
        ("maxmemory", "k", "0"),
        ("maxmemory", "007", "7"),
        ("maxmemory", "-1", not_memory),
        ("maxmemory", "1 kb", not_memory),
        ("maxmemory", "1.5gb", not_memory),
        ("maxmemory", "5%", not_memory),
        ("maxmemory", "17179869184gb", "18446744073709551615"),
        ("maxmemory-clients", "5%", "5%"),
        (
            "maxmemory-clients",
            "%",
            "! argument must be a memory or percent value",
        ),
        (
            "maxmemory-clients",
            "101%",
            "! percentage argument must be less or equal to 100",
        ),
        (
            "proto-max-bulk-len",
            "1k",
            &format!("{range} 1048576 and 9223372036854775807 inclusive"),
        ),
        ("repl-backlog-size", "1", "16384"),
        (
            "appendfsync",
            "x",
            "! argument(s) must be one of the following: everysec, always, no",
        ),
        ("loglevel", "DEBUG", "debug"),
        ("oom-score-adj", "relative", "yes"),
        (
            "shutdown-on-sigterm",
            "force now nosave",
            "nosave now force",
        ),
        ("shutdown-on-sigterm", "default now", "now"),
        (
            "shutdown-on-sigterm",
            "save nosave",
            "! shutdown options SAVE and NOSAVE can't be used simultaneously",
        ),
        (
            "shutdown-on-sigterm",
            "",
            "! argument(s) must be one of the following: default, save, nosave, now, force",
        ),
        ("activerehashing", "YES", "yes"),
        ("activerehashing", "1", "! argument must be 'yes' or 'no'"),
        ("save", "", ""),
        ("save", "3600 1 60 10", "3600 1 60 10"),
        ("save", "3600 1 60", "! Invalid save parameters"),
        ("save", "3600  1", "! Invalid save parameters"),
        ("save", "0 1", "! Invalid save parameters"),
        ("save", " ", "! Invalid save parameters"),
        (
            "client-output-buffer-limit",
            "",
            &format!("normal 0 0 0 {limits}"),
        ),
        (
            "client-output-buffer-limit",
            "NORMAL 1kb 2 3",
            &format!("normal 1024 2 3 {limits}"),
        ),
        (
            "client-output-buffer-limit",
            "normal 1 1",
            "! Wrong number of arguments in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "master 1 1 1",
            "! Invalid client class specified in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "pubsub -1 1 1",
            "! Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
        ("latency-tracking-info-percentiles", "", ""),
        (
            "latency-tracking-info-percentiles",
            "1e1 99.99 100.0",
            "10 99.99 100",
        ),
        (
            "latency-tracking-info-percentiles",
            "33.33333333333333",
            "33.333333",
        ),
        (
            "latency-tracking-info-percentiles",
            "101",
            "! latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
        ),
        (
            "latency-tracking-info-percentiles",
            "abc",
            "! Invalid latency-tracking-info-percentiles parameters",
        ),
        ("oom-score-adj-values", "1 2 3", "1 2 3"),
        ("oom-score-adj-values", "1 2", "! wrong number of arguments"),
        (
            "oom-score-adj-values",
            "a b c",
            "! Invalid oom-score-adj-values, elements must be between -2000 and 2000.",
        ),
        ("notify-keyspace-events", "KEA", "AKE"),
        ("notify-keyspace-events", "mKn", "nKm"),
        ("notify-keyspace-events", "zhls$gK", "g$lshzK"),
        ("notify-keyspace-events", "g$lszhxetda", "A"),
        ("notify-keyspace-events", "gSTIVc", "gcSTIV"),
        ("notify-keyspace-events", "AKEn", "AKE"),
        (
            "notify-keyspace-events",
            "q",
            "! Invalid event class character. Use 'Ag$lshzxeKEtmdnocaSTIV'.",
        ),
        ("bind", "127.0.0.1 -::1", "127.0.0.1 -::1"),
        ("bind", "", ""),
        (
            "proc-title-template",
            "{nosuch}",
            "! template format is invalid or contains unknown variables",
        ),
        (
            "cluster-announce-hostname",
            "a b",
            "! Hostnames may only contain alphanumeric characters, hyphens or dots",
        ),
        ("locale-collate", "nosuch", "! Invalid locale name"),
        (
            "array-sparse-kmin",
            "10",
            "! array-sparse-kmin must be less than array-sparse-kmax",
        ),
        (
            "array-sparse-kmax",
            "5",
            "! array-sparse-kmax must be greater than array-sparse-kmin when non-zero",
        ),
        (
            "tls-replication",
            "yes",
            "! replication is not supported yet",
        ),
    ] {
        assert_eq!(after(name, value), shown, "{name} {value:?}");
    }
}

#[test]
fn later_sources_win() {
    let dir = scratch();
    let path = file(
        &dir,
        "a.conf",
        "# first\n\n timeout 1\r\nPORT 7001\nhz 20\n",
    );
    let args = [
        path.as_str(),
        "--timeout",
        "2",
        "--bind",
        "127.0.0.1",
        "::1",
        "-",
    ];
    let Ok(Startup::Run(loaded)) = run(&args, "timeout 3\nport 7003\n") else {
        panic!("must run");
    };
    let config = &loaded.config;
    assert_eq!((config.timeout_s, config.port, config.hz), (2, 7003, 20));
    assert_eq!(get(config, "bind"), "127.0.0.1 ::1");
    assert_eq!(config.file(), Some(std::path::Path::new(&path)));
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn options_take_their_values() {
    let config = load(&["--threads", "3", "--timeout 5", "--requirepass", "--port"]).config;
    assert_eq!((config.threads, config.timeout_s), (3, 5));
    assert_eq!(config.requirepass.as_deref(), Some(&b"--port"[..]));
    assert_eq!(get(&config, "io-threads"), "3");
    assert_eq!(load(&["--io-threads", "2"]).config.threads, 2);
    assert_eq!(
        load(&["--shutdown-on-sigterm", "now", "force"])
            .config
            .shutdown_on_sigterm,
        {
            ShutdownFlags {
                save: false,
                nosave: false,
                now: true,
                force: true,
            }
        }
    );
    assert!(load(&["--bind", ""]).config.bind.is_empty());
}

#[test]
fn save_pairs_add_up() {
    let save = |args: &[&str]| get(&load(args).config, "save");
    assert_eq!(save(&[]), "3600 1 300 100 60 10000");
    assert_eq!(
        save(&["--save", "3600", "1", "300", "100"]),
        "3600 1 300 100"
    );
    assert_eq!(save(&["--save", "60 1", "--save", "70", "1"]), "60 1 70 1");
    assert_eq!(save(&["--save", ""]), "");
    assert_eq!(save(&["--save", "--timeout", "4"]), "");
    let loaded = parse_text(b"save 3600 1\nsave 70 1\nsave \"\"\nsave 5 5").expect("loads");
    assert_eq!(get(&loaded.config, "save"), "5 5");
}

#[test]
fn mistakes_are_named_in_one_line() {
    let dir = scratch();
    let path = file(&dir, "a.conf", "port 7000\n\nmaxmemory lots\n");
    assert_eq!(
        refused(&[&path]),
        format!("{path}:3: 'maxmemory lots': argument must be a memory value")
    );
    let outer = file(&dir, "b.conf", &format!("include {path}\n"));
    assert_eq!(refused(&[&outer]), refused(&[&path]));
    let path = file(&dir, "c.conf", "requirepass \"a b\n");
    assert_eq!(
        refused(&[&path]),
        format!("{path}:1: 'requirepass': unbalanced quotes")
    );
    let path = file(&dir, "d.conf", "requirepass a b\n");
    assert_eq!(
        refused(&[&path]),
        format!("{path}:1: 'requirepass': wrong number of arguments")
    );
    let path = file(&dir, "e.conf", "include nosuch.conf\n");
    assert_eq!(
        refused(&[&path]),
        format!("{path}:1: 'include nosuch.conf': No such file or directory")
    );
    assert_eq!(
        refused(&["/nosuch.conf"]),
        "/nosuch.conf: No such file or directory"
    );
    assert_eq!(
        refused(&["--nosuch", "1"]),
        "command line: '--nosuch 1': unknown directive"
    );
    assert_eq!(
        refused(&["--port", "1", "2"]),
        "command line: '--port 1 2': wrong number of arguments"
    );
    assert_eq!(
        refused(&["-port", "1"]),
        "command line: '-port': an option starts with two dashes"
    );
    assert_eq!(refused(&["--"]), "command line: '--': an option has a name");
    assert_eq!(
        refused(&["--timeout"]),
        "command line: '--timeout': wrong number of arguments"
    );
    for args in [["-", "--timeout", "5"], ["--timeout", "5", "-"]] {
        let error = run(&args, "\n\nhz x\n").expect_err("refused");
        assert!(error.starts_with("standard input:3: 'hz x': "), "{error}");
    }
    let error = run(&["-"], "\nhz x\n").expect_err("refused");
    assert!(error.starts_with("standard input:2: 'hz x': "), "{error}");
    let error = run(&["-"], &format!("hz {}\r\x07\n", "x".repeat(500))).expect_err("refused");
    assert!(
        error.len() < 200 && !error.contains(char::is_control),
        "{error}"
    );
}

#[test]
fn what_is_not_there_yet_is_refused_or_warned_about() {
    for (text, missing) in [
        ("cluster-enabled yes", "cluster mode is not supported yet"),
        (
            "replicaof 127.0.0.1 6379",
            "replication is not supported yet",
        ),
        ("slaveof 127.0.0.1 6379", "replication is not supported yet"),
        ("tls-cluster yes", "cluster mode is not supported yet"),
        (
            "tls-key-file-pass x",
            "an encrypted key is not supported yet",
        ),
        ("user", "wrong number of arguments"),
        ("rename-command NOPE X", "No such command in rename-command"),
        (
            "rename-command GET DEL",
            "Target command name already exists",
        ),
        ("rename-command GET", "wrong number of arguments"),
        ("loadmodule x.so", "modules are not supported"),
        (
            "sentinel monitor a b 1 1",
            "Sentinel mode is not supported yet",
        ),
    ] {
        let error = parse_text(text.as_bytes()).expect_err(text).to_string();
        assert!(error.ends_with(missing), "{error}");
    }
    let fine = b"cluster-enabled no\nreplicaof no one\ntls-port 0\nactivedefrag yes\n\
        user default on nopass sanitize-payload ~* &* +@all\nsave \"\"\nappendonly no";
    assert_eq!(parse_text(fine).expect("loads").warnings, [""; 0]);
    let warned = b"appendonly yes\nmptcp yes\nproc-title-template {title}";
    let warnings = parse_text(warned).expect("loads").warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for name in ["mptcp", "proc-title-template"] {
        assert!(
            warnings.iter().any(|line| line.contains(name)),
            "{warnings:?}"
        );
    }
}

#[test]
fn valkey_names_mean_ours() {
    let text = b"commandlog-slow-execution-max-len 5\nprimaryauth secret";
    let config = parse_text(text).expect("loads").config;
    assert_eq!(config.slowlog_max_len, 5);
    assert_eq!(get(&config, "masterauth"), "secret");
}

#[test]
fn includes_take_patterns_and_end() {
    let dir = scratch();
    file(&dir, "i2.conf", "timeout 2\n");
    file(&dir, "i1.conf", "timeout 1\nhz 30\n");
    let at = dir.path().display();
    let path = file(
        &dir,
        "a.conf",
        &format!("include {at}/i*.conf\ninclude {at}/no*\n"),
    );
    let config = load(&[&path]).config;
    assert_eq!((config.timeout_s, config.hz), (2, 30));
    let path = file(&dir, "b.conf", &format!("dir {at}\ninclude i1.conf\n"));
    assert_eq!(load(&[&path]).config.timeout_s, 1);
    let path = file(&dir, "loop.conf", &format!("include {at}/loop.conf\n"));
    assert!(refused(&[&path]).ends_with("files include each other too often"));
    let path = file(
        &dir,
        "fork.conf",
        &format!("include {at}/fork.con?\n").repeat(2),
    );
    assert!(refused(&[&path]).ends_with("files include each other too often"));
}

#[test]
fn informational_options_print() {
    for (arg, word) in [
        ("--version", "Tidemill server v=8.10"),
        ("-v", "tidemill="),
        ("--help", "Usage"),
        ("-h", "--check-system"),
        ("--check-system", "[overcommit]"),
    ] {
        match run(&[arg], "") {
            Ok(Startup::Print { text, .. }) => assert!(text.contains(word), "{text}"),
            other => panic!("{arg} gave {other:?}"),
        }
    }
    assert!(refused(&["--port", "1", "--help"]).contains("must stand alone"));
}

#[test]
fn rewriting_keeps_comments_and_order() {
    let old = "# hello\n\nport 7000\nmaxmemory 1gb\n# c\nmaxmemory 2gb\ntimeout 5\n  \
        Hash-Max-Ziplist-Entries 7\nsave 3600 1\nsave 300 100\nbind 127.0.0.1  ::1\n\
        include /dev/null\nmptcp x\n";
    let config = parse_text(old.as_bytes()).expect("loads").config;
    let config = set(
        &config,
        &[
            ("maxmemory", "1048576"),
            ("timeout", "0"),
            ("save", "60 1 70 2 80 3"),
            ("masterauth", "x\"\n\u{1} y"),
            ("notify-keyspace-events", "KEAn"),
            ("client-output-buffer-limit", "replica 1mb 2mb 3"),
            ("maxmemory-clients", "5%"),
            ("proto-max-bulk-len", "1073741824"),
        ],
    )
    .expect("accepted")
    .config;
    let new = String::from_utf8(config.rewritten(old.as_bytes(), &[])).expect("text");
    assert_eq!(
        new,
        "# hello\n\nport 7000\nmaxmemory 1mb\n# c\ntimeout 0\nhash-max-listpack-entries 7\n\
         save 60 1\nsave 70 2\nsave 80 3\nbind 127.0.0.1 ::1\ninclude /dev/null\nmptcp x\n\
         \n# Generated by CONFIG REWRITE\n\
         client-output-buffer-limit replica 1mb 2mb 3\nproto-max-bulk-len 1gb\n\
         maxmemory-clients 5%\nnotify-keyspace-events \"AnKE\"\n\
         masterauth \"x\\\"\\n\\x01 y\"\n"
    );
    let again = parse_text(new.as_bytes()).expect("loads").config;
    assert_eq!(again.values, config.values);
    assert_eq!(config.rewritten(new.as_bytes(), &[]), new.as_bytes());
}

#[test]
fn rewriting_clears_lists() {
    let old = "save 10 20\nsave 30 40\nlatency-tracking-info-percentiles 10\nbind ::1\n\
        client-output-buffer-limit normal 1 1 1\n# Generated by CONFIG REWRITE\nhz 20\n";
    let config = parse_text(old.as_bytes()).expect("loads").config;
    let config = set(
        &config,
        &[
            ("save", ""),
            ("latency-tracking-info-percentiles", ""),
            ("bind", ""),
            ("client-output-buffer-limit", "normal 0 0 0"),
            ("timeout", "9"),
        ],
    )
    .expect("accepted")
    .config;
    let new = config.rewritten(old.as_bytes(), &[]);
    let again = parse_text(&new).expect("loads").config;
    assert_eq!(again.values, config.values);
    let text = String::from_utf8(new).expect("text");
    assert_eq!(text.matches("Generated").count(), 1);
    assert!(text.ends_with("hz 20\ntimeout 9\n"), "{text}");
}

#[test]
fn rewriting_replaces_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch();
    let path = file(&dir, "a.conf", "port 7000\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
    let link = dir.path().join("link.conf");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    let config = load(&[link.to_str().expect("text"), "--hz", "20"]).config;
    config.rewrite(&[]).expect("written");
    let text = std::fs::read_to_string(&path).expect("read");
    assert_eq!(text, "port 7000\n\n# Generated by CONFIG REWRITE\nhz 20\n");
    let mode = std::fs::metadata(&path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(
        std::fs::symlink_metadata(&link)
            .expect("there")
            .is_symlink()
    );
    assert_eq!(std::fs::read_dir(dir.path()).expect("read").count(), 2);

    std::fs::remove_file(&path).expect("removed");
    std::fs::remove_file(&link).expect("removed");
    let error = Config::default()
        .rewrite(&[])
        .expect_err("no file")
        .to_string();
    assert_eq!(error, "ERR The server is running without a config file");
    let gone = file(&dir, "b.conf", "");
    let config = load(&[&gone, "--hz", "20"]).config;
    drop(dir);
    let error = config.rewrite(&[]).expect_err("no directory").to_string();
    assert_eq!(
        error,
        "ERR Rewriting config file: No such file or directory"
    );
}

#[test]
fn secrets_are_known() {
    assert!(Config::is_secret(b"requirepass"));
    assert!(Config::is_secret(b"MASTERAUTH"));
    assert!(!Config::is_secret(b"port"));
}

/// Lines that look like configuration more often than not.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&'static str> = table::all()
        .map(|one| one.name)
        .filter(|name| !matches!(*name, "dir" | "replicaof"))
        .chain(["user", "sentinel", "nosuch", "io-threads"])
        .collect();
    let word = prop_oneof![
        "[0-9]{1,20}(k|kb|%)?",
        "-?[0-9]{1,3}",
        "(yes|no|now|force|local|always|\"\"|normal|KEA|60 1)",
        "\\PC{0,12}",
    ];
    let line = (
        proptest::sample::select(names),
        proptest::collection::vec(word, 0..5),
    )
        .prop_map(|(name, words)| format!("{name} {}\n", words.join(" ")).into_bytes());
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn any_text_is_loaded_or_refused(text: Vec<u8>) {
        if let Err(error) = parse_text(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn likely_text_loads_and_rewrites_to_itself(text in lines()) {
        if let Ok(loaded) = parse_text(&text) {
            let new = loaded.config.rewritten(&text, &[]);
            let again = parse_text(&new);
            prop_assert!(again.is_ok(), "{:?}", again);
            let again = again.expect("tested").config;
            prop_assert_eq!(&again.values, &loaded.config.values);
            prop_assert_eq!(again.rewritten(&new, &[]), new);
        }
    }

    #[test]
    fn any_pair_is_set_or_refused(at in 0usize..300, value: Vec<u8>, allowed: bool) {
        let names: Vec<&str> = table::all().map(|one| one.name).collect();
        let name = names.get(at).copied().unwrap_or("nosuch").as_bytes();
        match Config::default().set(&[(name, &value)], allowed) {
            Ok(changes) => prop_assert_eq!(changes.config.get(&[name]).len(), 1),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_arguments_are_read_or_refused(args in proptest::collection::vec("\\PC{0,9}", 0..6)) {
        let args: Vec<OsString> =
            args.iter().map(|arg| format!("--{arg}")).map(OsString::from).collect();
        let _ = start(args, &mut &b""[..]);
    }
}
