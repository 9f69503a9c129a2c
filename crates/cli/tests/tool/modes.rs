//! What is no single command.

use crate::{ours, same, same_with, servers};
use testkit::Server;

/// A server with some keys of all kinds.
fn filled() -> Vec<(String, Server)> {
    let servers = servers(&["--maxmemory-policy", "allkeys-lfu"]).into_iter();
    let filled = servers.map(|server| {
        let port = server.port.to_string();
        let mut text = String::new();
        for n in 0..25 {
            text += &format!("set k{n} {}\n", "x".repeat(n + 1));
        }
        text += "rpush \"l\\n\\\"x\" 1 2\nhset h a 1 b 2\nsadd s 1\nzadd z 1 1\nxadd x * a 1\n";
        text += &"get k3\n".repeat(50);
        let ran = ours(&["-p", &port], &text);
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
        (port, server)
    });
    filled.collect()
}

#[test]
fn scans_are_those_of_redis() {
    for (port, _server) in filled() {
        let p = ["-p", port.as_str()];
        for more in [
            &["--scan"][..],
            &["--scan", "--pattern", "k1?"],
            &["--scan", "--pattern", "l*"],
            &["--scan", "--no-raw", "--pattern", "l*"],
            &["--scan", "--quoted-pattern", "\"l\\n*\""],
            &["--scan", "--csv", "--pattern", "k1"],
            &["--scan", "--pattern", "k1", "-i", "0.001"],
        ] {
            same(&[&p, more].concat());
        }
        let ran = ours(
            &["-p", &port, "--scan", "--type", "zset", "--count", "100"],
            "",
        );
        assert_eq!(ran.out, "z\n");
    }
}

/// The order of the kinds at the end is ours: Redis's is that of a hash table.
#[test]
fn the_biggest_and_the_hottest_are_found() {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for (port, server) in filled() {
        for mode in [
            &["--bigkeys"][..],
            &["--memkeys", "--memkeys-samples", "0"],
            &["--hotkeys"],
        ] {
            let args = [&["-p", port.as_str()], mode].concat();
            let ran = ours(&args, "");
            assert_eq!(ran.status, Some(0), "{ran:?}");
            if let Some(program) = crate::reference() {
                let theirs = crate::run(program, &args, "", &[]);
                assert_eq!(sorted(&ran.out), sorted(&theirs.out), "{mode:?}");
            }
        }
        let stats = ours(&["-p", &port, "--keystats", "--top", "3"], "").out;
        assert!(stats.contains("Keys sampled: 30\n"), "{stats}");
        assert!(stats.contains("--- Top 3 key sizes ---\n"), "{stats}");
        assert!(
            stats.contains("string     \"k24\" has 25 bytes\n"),
            "{stats}"
        );
        let mut client = server.client().expect("the server accepts");
        let set = ["CONFIG", "SET", "maxmemory-policy", "noeviction"];
        client.call(&set).expect("a reply");
        assert_eq!(same(&["-p", &port, "--hotkeys"]).status, Some(1));
    }
}

#[test]
fn pipes_count_replies_and_errors() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let pipe = |text: &str| same_with(&["-p", &port, "--pipe"], text, &[]);
        pipe("");
        pipe("*1\r\n$4\r\nPING\r\n");
        assert_eq!(pipe("set a 1\r\nset b 2\r\nnosuch\r\n").status, Some(1));
        let many: String = (0..50_000)
            .map(|n| format!("set key:{n} {n}\r\n"))
            .collect();
        let ran = ours(&["-p", &port, "--pipe"], &many);
        assert!(ran.out.ends_with("errors: 0, replies: 50000\n"), "{ran:?}");
    }
}

#[test]
fn a_pipe_gives_up_when_nothing_answers() {
    for server in servers(&[]).into_iter().take(1) {
        let port = server.port.to_string();
        let args = ["-p", &port, "--pipe", "--pipe-timeout", "1"];
        same_with(&args, "blpop none 0\r\n", &[]);
    }
}

#[test]
fn scripts_come_from_files() {
    let dir = std::env::temp_dir().join(format!("tidemill-cli-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let good = file("good.lua", "return {KEYS[1], ARGV[1], ARGV[2]}");
    let bad = file("bad.lua", "return redis.call(\"x\"");
    for server in servers(&[]) {
        let port = server.port.to_string();
        for more in [
            &[good.as_str(), "k", ",", "x", "y"][..],
            &[&good],
            &[&good, "k"],
            &[&good, ",", "k"],
            &["/nosuch", "k"],
            &[&bad],
        ] {
            same(&[&["-p", &port, "--eval"], more].concat());
        }
        same(&["-p", &port, "-e", "--eval", &bad]);
    }
    std::fs::remove_dir_all(&dir).expect("it is ours");
}

#[test]
fn snapshots_are_fetched_and_replicas_follow() {
    let Some(program) = testkit::oracle() else {
        return;
    };
    let server = crate::start(&program, &["--repl-diskless-sync-delay", "0"]);
    let port = server.port.to_string();
    ours(&["-p", &port, "set", "somekey", "somevalue"], "");
    for (option, has_keys) in [("--rdb", true), ("--functions-rdb", false)] {
        let path = server.dir().join("fetched.rdb");
        let path = path.to_str().expect("a plain path");
        let ran = same(&["-p", &port, option, path]);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        let bytes = std::fs::read(path).expect("it was written");
        assert!(bytes.starts_with(b"REDIS"));
        let found = bytes.windows(7).any(|bytes| bytes == b"somekey");
        assert_eq!(found, has_keys, "{option}");
    }
    same(&["-p", &port, "--rdb", "/nosuch/x"]);
    let mut replica = crate::terminal::Terminal::ours(&["-p", &port, "--replica"], &[]);
    replica.await_text("Logging commands from master.");
    replica.await_text("sending REPLCONF ACK 0");
    ours(&["-p", &port, "set", "later", "1"], "");
    replica.await_text("\"set\",\"later\",\"1\"");
    replica.press("\x03");
    replica.end();
}

#[test]
fn measuring_ends_by_itself_into_a_pipe() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let run = |more: &[&'static str]| ours(&[&["-p", port.as_str()], more].concat(), "").out;
        let fields = |line: &str| line.trim_end().split(' ').count();
        assert_eq!(fields(&run(&["--latency", "-i", "0.05"])), 4);
        let json = run(&["--latency", "--json", "-i", "0.05"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert!(json["count"].as_u64().is_some_and(|count| count > 0));
        let spectrum = run(&["--latency-dist", "-i", "0.05", "-r", "1"]);
        assert!(
            spectrum.contains(':') && !spectrum.contains('\x1b'),
            "{spectrum}"
        );
        let stat = run(&["--stat", "-i", "0.01", "-r", "2"]);
        assert_eq!(stat.lines().count(), 4, "{stat}");
        let cache = run(&["--lru-test", "100", "-r", "1"]);
        assert!(cache.contains(" Gets/sec | Hits: "), "{cache}");
        for text in [spectrum, stat, cache] {
            assert!(!text.contains('\r'), "{text}");
        }
    }
    let ran = ours(&["--intrinsic-latency", "0.05"], "");
    assert!(ran.out.contains(" total runs (avg latency: "), "{ran:?}");
}

#[test]
fn ctrl_c_ends_a_walk_with_its_summary() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let keys: String = (0..300).map(|n| format!("set key:{n} {n}\n")).collect();
        ours(&["-p", &port], &keys);
        for mode in ["--bigkeys", "--keystats"] {
            // It pauses after a hundred calls.
            let args = ["-p", &port, mode, "--count", "1", "-i", "600"];
            let mut t = crate::terminal::Terminal::ours(&args, &[]);
            let found = if mode == "--bigkeys" {
                "found so far"
            } else {
                "Ctrl-C"
            };
            t.await_text(found);
            t.press("\x03");
            let (seen, status) = t.end();
            assert_eq!(status, Some(0), "{seen}");
            assert!(seen.contains("ampled"), "{seen}");
        }
    }
}
