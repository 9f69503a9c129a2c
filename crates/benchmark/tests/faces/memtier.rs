//! The face of memtier_benchmark.

use crate::tool::{ask, calls, command, printed, server, wait};
use std::process::Stdio;

#[test]
fn the_table_and_the_json_have_their_layout() {
    let server = server(&[]);
    let path = server.dir().join("results.json");
    let prefix = server.dir().join("percentiles");
    let text = printed(&format!(
        "memtier -p {} -t 2 -c 5 -n 200 --ratio 1:10 --pipeline 4 --hide-histogram \
         --json-out-file {} --hdr-file-prefix {}",
        server.port,
        path.display(),
        prefix.display()
    ));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "2         Threads",
            "5         Connections per thread",
            "200       Requests per client",
            "",
            ""
        ]
    );
    assert_eq!(lines[5], "ALL STATS");
    assert_eq!(lines[6], "=".repeat(124));
    assert_eq!(
        lines[7],
        "Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     \
         p99 Latency   p99.9 Latency       KB/sec "
    );
    assert_eq!(lines[8], "-".repeat(124));
    let names: Vec<&str> = lines[9..]
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["Sets", "Gets", "Waits", "Totals"]);
    assert!(lines[9..].iter().all(|line| line.len() == 124), "{text}");

    let json = std::fs::read_to_string(&path).expect("it was written");
    let json: serde_json::Value = serde_json::from_str(&json).expect("strict JSON");
    let stats = &json["ALL STATS"];
    assert_eq!(json["configuration"]["key_pattern"], "R:R");
    assert_eq!(json["run information"]["Threads"], 2);
    assert_eq!(stats["Totals"]["Count"], 2000);
    // Each connection sends whole turns of eleven, and what is left.
    assert_eq!(stats["Sets"]["Count"], 190);
    assert_eq!(stats["Gets"]["Count"], 1810);
    let (gets, hits) = (&stats["Gets"]["Misses/sec"], &stats["Gets"]["Hits/sec"]);
    assert!(gets.as_f64() > Some(0.0) && hits.as_f64() >= Some(0.0));
    let percentiles = &stats["Totals"]["Percentile Latencies"];
    for name in ["p50.00", "p99.00", "p99.90"] {
        assert!(percentiles[name].as_f64() > Some(0.0), "{name}");
    }
    let histogram = &percentiles["Histogram log format"]["Compressed Histogram"];
    assert!(
        histogram
            .as_str()
            .is_some_and(|text| text.starts_with("HIST"))
    );
    let seconds = stats["Totals"]["Time-Serie"]
        .as_object()
        .expect("by the second");
    let count: u64 = seconds
        .values()
        .filter_map(|second| second["Count"].as_u64())
        .sum();
    assert_eq!(count, 2000);
    assert_eq!(calls(&server, "set") + calls(&server, "get"), 2000);
    for name in ["FULL_RUN_1", "SET_command_run_1", "GET_command_run_1"] {
        let text = std::fs::read_to_string(format!("{}_{name}.txt", prefix.display()));
        assert!(text.expect("it was written").contains("#[Mean"), "{name}");
    }
}

#[test]
fn patterns_sizes_and_expiry_reach_the_server() {
    let server = server(&[]);
    let port = server.port;
    printed(&format!(
        "memtier -p {port} -t 2 -c 3 -n allkeys --ratio 1:0 --key-pattern P:P --key-minimum 1 \
         --key-maximum 600 --key-prefix k: --data-size-range 5-9 --hide-histogram"
    ));
    assert_eq!(ask(&server, &["DBSIZE"]).integer(), Some(600));
    for key in ["k:1", "k:300", "k:600"] {
        let bytes = ask(&server, &["STRLEN", key]).integer().expect("a length");
        assert!((5..=9).contains(&bytes), "{key}: {bytes}");
    }
    printed(&format!(
        "memtier -p {port} -t 1 -c 1 -n 10 --ratio 1:0 --key-pattern S:S --expiry-range 100-200 \
         --select-db 3 --protocol resp3 --reconnect-interval 3 --hide-histogram"
    ));
    let mut client = server.client().expect("a connection");
    client.call(&["SELECT", "3"]).expect("a reply");
    assert_eq!(
        client.call(&["DBSIZE"]).expect("a reply").integer(),
        Some(10)
    );
    let left = client
        .call(&["TTL", "memtier-0"])
        .expect("a reply")
        .integer();
    assert!(
        left.is_some_and(|left| (90..=200).contains(&left)),
        "{left:?}"
    );
}

#[test]
fn several_runs_are_told_by_the_best_the_worst_and_the_average() {
    let server = server(&[]);
    let text = printed(&format!(
        "memtier -p {} -t 1 -c 2 -n 50 -x 3 --command LPUSH_does_not_matter --hide-histogram",
        server.port
    ));
    for title in [
        "BEST RUN RESULTS",
        "WORST RUN RESULTS",
        "AGGREGATED AVERAGE RESULTS (3 runs)",
    ] {
        assert!(text.contains(title), "{text}");
    }
    assert!(text.contains("\nLpush_does_not_matters"), "{text}");
}

#[test]
fn a_broken_connection_ends_the_run_or_is_made_anew() {
    let server = server(&[]);
    let path = server.dir().join("results.json");
    for survives in [true, false] {
        ask(&server, &["CONFIG", "RESETSTAT"]);
        let mut command = command("memtier -t 1 -c 3 --test-time 2 --hide-histogram");
        command
            .args(["-p", &server.port.to_string(), "--json-out-file"])
            .arg(&path);
        if survives {
            command.arg("--reconnect-on-error");
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it can be started");
        wait("the load", || calls(&server, "get") > 100);
        ask(
            &server,
            &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
        );
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.success(), survives);
        if survives {
            let json = std::fs::read_to_string(&path).expect("it was written");
            let json: serde_json::Value = serde_json::from_str(&json).expect("strict JSON");
            assert_eq!(json["ALL STATS"]["Totals"]["Connection Errors"], 3);
        } else {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                text.lines().any(|line| line.starts_with("Error: ")),
                "{text}"
            );
        }
    }
}
