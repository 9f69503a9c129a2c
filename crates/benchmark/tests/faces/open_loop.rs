//! The clock of an open loop.

use crate::tool::{ask, calls, command, server, wait};
use std::process::Stdio;

/// While the server sleeps for a second, a thousand requests fall due. A generator that waits with
/// them would show a handful of slow ones; all of them have waited, though, half a second on
/// average, and they are a tenth of the run.
#[test]
fn who_would_have_come_while_the_server_slept_is_counted() {
    let server = server(&[]);
    let child = command(&format!(
        "-p {} -c 20 --rate 1000 --duration 10 --csv -t get",
        server.port
    ))
    .stdout(Stdio::piped())
    .spawn()
    .expect("it can be started");
    wait("the load", || calls(&server, "get") > 1000);
    ask(&server, &["DEBUG", "SLEEP", "1"]);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = text.lines().nth(1).expect("a row");
    let fields: Vec<f64> = row
        .split(',')
        .filter_map(|field| field.trim_matches('"').parse().ok())
        .collect();
    // rps, then average, least, p50, p95, p99 and most in milliseconds.
    assert!(fields[4] >= 300.0, "p95: {text}");
    assert!(fields[5] >= 700.0, "p99: {text}");
}
