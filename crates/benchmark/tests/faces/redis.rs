//! The face of redis-benchmark.

use crate::tool::{ask, calls, command, printed, program, run, server, wait};
use std::process::{Command, Stdio};

/// The text with every number replaced, and without what a terminal would overwrite.
fn skeleton(text: &str) -> Vec<String> {
    let shown = text
        .lines()
        .map(|line| line.rsplit('\r').next().unwrap_or(line));
    // How many lines the distributions have depends on the times.
    let lines = shown.filter(|line| !line.contains("(cumulative count"));
    let lines = lines.map(|line| {
        let mut out = String::new();
        let mut in_number = false;
        for word in line.split_inclusive(' ') {
            let bare = word.trim_end_matches([' ', ',']).trim_matches('"');
            let number = bare.trim_start_matches("p50=");
            in_number = number.parse::<f64>().is_ok();
            out.push_str(match in_number {
                true => "N ",
                false => word,
            });
        }
        let _ = in_number;
        let out = match line.starts_with('"') && line.contains("\",\"") {
            true => line
                .split(',')
                .map(|field| match field.trim_matches('"').parse::<f64>() {
                    Ok(_) => "N",
                    Err(_) => field,
                })
                .collect::<Vec<_>>()
                .join(","),
            false => out,
        };
        // Columns are padded to what the numbers need.
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}

#[test]
fn the_text_is_that_of_the_real_one() {
    let Some(real) = testkit::peer("redis-benchmark") else {
        return;
    };
    let server = server(&[]);
    let port = server.port.to_string();
    for line in [
        "-n 2000 -t set,lpush -d 5",
        "-n 2000 -t set,get --threads 2 -P 3",
        "-n 2000 -t ping,get -q",
        "-n 2000 -t lrange_100,mset -q -r 100",
        "-n 2000 -t set,hset,zadd,spop --csv -r 50",
        "-n 2000 -q set key:__rand_int__ value",
        "-n 2000 set key value",
        "-n 2000 --csv set key value",
        "-n 100 -t nosuch -q",
    ] {
        let words: Vec<&str> = ["-p", &port].into_iter().chain(line.split(' ')).collect();
        let theirs = Command::new(&real).args(&words).output().expect("it runs");
        let ours = Command::new(program())
            .args(&words)
            .output()
            .expect("it runs");
        let text = |output: &[u8]| skeleton(&String::from_utf8_lossy(output));
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{line}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{line}");
    }
    // The real one needs two lines for some errors.
    for line in [
        "-n 10 nosuchcommand",
        "-n 10 -q get a b c",
        "-a wrong -n 10",
    ] {
        let words: Vec<&str> = ["-p", &port].into_iter().chain(line.split(' ')).collect();
        let theirs = Command::new(&real).args(&words).output().expect("it runs");
        let ours = Command::new(program())
            .args(&words)
            .output()
            .expect("it runs");
        let joined = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(joined(&ours.stderr), joined(&theirs.stderr), "{line}");
        assert_eq!(
            ours.stderr.iter().filter(|&&byte| byte == b'\n').count(),
            1,
            "{line}"
        );
        assert_eq!(ours.status.code(), theirs.status.code(), "{line}");
    }
}

#[test]
fn as_many_requests_are_sent_as_were_asked_for() {
    let server = server(&[]);
    let port = server.port;
    for (requests, options) in [
        (7, "-P 5"),
        (7, "-P 5 --threads 2"),
        (101, "-c 3 -k 0"),
        (10, "-P 100 -c 1"),
        (1000, "-P 16 -c 50 -3 --dbnum 2"),
        (20, "--rate 1000 -k 0 -c 2"),
    ] {
        ask(&server, &["CONFIG", "RESETSTAT"]);
        let text = printed(&format!("-p {port} -n {requests} {options} -t incr"));
        assert!(
            text.contains(&format!("\n  {requests} requests completed")),
            "{text}"
        );
        assert_eq!(calls(&server, "incr"), requests, "{options}");
    }
    assert_eq!(
        ask(&server, &["GET", "counter:__rand_int__"])
            .text()
            .as_deref(),
        Some("145")
    );
}

#[test]
fn every_test_has_real_figures_and_a_pipe_gets_text_only() {
    let server = server(&[]);
    let port = server.port;
    let text = printed(&format!("-p {port} -n 30 -q -r 10"));
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("requests per second"))
            .count(),
        21
    );
    assert!(text.contains("\nXADD: "), "{text}");
    assert_eq!(ask(&server, &["XLEN", "mystream"]).integer(), Some(30));
    let more = printed(&format!("-p {port} -n 1 -t publish,xadd"));
    assert!(
        more.contains("====== PUBLISH ======\n  1 requests completed"),
        "{more}"
    );
    for (command, expected) in [("publish", 1), ("ping", 60), ("zadd", 30), ("lpush", 60)] {
        // The server was asked PING until it was up.
        assert!(calls(&server, command) >= expected, "{command}");
    }
    for text in [&text, &more] {
        for wrong in ["inf ", "nan", "\r", "\u{1b}"] {
            assert!(!text.contains(wrong), "{wrong:?} in {text}");
        }
    }
}

#[test]
fn a_server_that_cannot_be_used_is_one_line() {
    let server = server(&["--requirepass", "secret"]);
    let port = server.port;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let free = nobody.local_addr().expect("it is bound").port();
    drop(nobody);
    for (line, expected) in [
        (format!("-p {free}"), "Connection refused"),
        (format!("memtier -p {free}"), "Connection refused"),
        ("-s /nowhere/socket".to_owned(), "No such file or directory"),
        (format!("-p {port} -a wrong"), "WRONGPASS"),
        (format!("memtier -p {port} -a wrong"), "WRONGPASS"),
        (format!("-p {port} -n 10 -t get"), "NOAUTH"),
        (
            format!("-p {port} --cluster"),
            "cluster mode is not supported yet",
        ),
    ] {
        let output = run(&line);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {text}");
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("WARN"))
            .collect();
        assert_eq!(lines.len(), 1, "{line}: {text}");
        assert!(text.contains(expected), "{line}: {text}");
    }
    let right = printed(&format!(
        "-u redis://default:secret@127.0.0.1:{port}/1 -n 9 -t set -q"
    ));
    assert!(right.starts_with("SET: "), "{right}");
    assert_eq!(calls_with_password(port), 9);
}

fn calls_with_password(port: u16) -> u64 {
    let mut client = client::Client::connect(("127.0.0.1", port)).expect("it listens");
    client.call(&["AUTH", "secret"]).expect("a reply");
    let info = client.call(&["INFO", "commandstats"]).expect("a reply");
    let info = info.text().unwrap_or_default();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_set:calls="));
    let number = line.and_then(|line| line.split(',').next()).unwrap_or("0");
    number.parse().expect("a number")
}

#[test]
fn the_last_argument_comes_from_standard_input() {
    let server = server(&[]);
    let mut child = command(&format!("-p {} -n 3 -q -x set foo", server.port))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    use std::io::Write;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"from a pipe").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.stdout.starts_with(b"set foo: "));
    assert_eq!(
        ask(&server, &["GET", "foo"]).text().as_deref(),
        Some("from a pipe")
    );
}

#[test]
fn a_terminal_is_shown_progress() {
    let server = server(&[]);
    let line = format!(
        "{} -p {} --duration 0.7 -t set -q",
        program().display(),
        server.port
    );
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("util-linux is everywhere");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\rSET: rps="), "{text}");
    assert!(text.contains(" (overall: "), "{text}");
    assert!(text.contains("requests per second, p50="), "{text}");
    assert!(!text.contains("nan") && !text.contains("inf"), "{text}");
}

#[test]
fn ctrl_c_still_reports() {
    let server = server(&[]);
    for line in ["--duration 600 -t set", "memtier -t 1 -c 2 --test-time 600"] {
        ask(&server, &["CONFIG", "RESETSTAT"]);
        let mut child = command(line);
        let line = line.to_owned();
        let port = server.port.to_string();
        let child = child
            .args(["-p", &port])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        wait("the load", || calls(&server, "set") > 100);
        let interrupt = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(interrupt.expect("kill is everywhere").success());
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(130), "{line}: {text}");
        assert!(
            text.contains("throughput summary: ") || text.contains("Totals "),
            "{text}"
        );
    }
}
