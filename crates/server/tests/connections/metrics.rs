//! The endpoint for Prometheus and for probes.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::listening::free_port;
use super::*;

/// A server with its endpoint, and the endpoint's port.
fn with_metrics(options: &[&str]) -> (Server, u16) {
    let port = free_port();
    let text = port.to_string();
    let options = [&["--metrics-port", &text], options].concat();
    (server(&options), port)
}

fn open(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// The status line and the body.
fn ask(port: u16, request: &str) -> (String, String) {
    let mut stream = open(port);
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    // What is left of a request that was refused may reset the connection.
    let _ = stream.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.lines().next().unwrap_or_default();
    (status.to_owned(), body.to_owned())
}

fn get(port: u16, path: &str) -> (String, String) {
    ask(port, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// The value of a sample.
fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
    line.trim().parse().ok()
}

#[test]
fn figures_are_those_of_the_server() {
    for threads in THREADS {
        let (server, port) =
            with_metrics(&["--threads", threads, "--rename-command", "INFO", "tell"]);
        let mut client = connect(&server);
        call(&mut client, "SET key value");
        call(&mut client, "SET other value EX 1000");
        call(&mut client, "GET key");
        call(&mut client, "GET nosuch");
        call(&mut client, "NOSUCH");
        call(&mut client, "SELECT 3");
        call(&mut client, "SET key value");
        until("who looked whether the server is up has left", || {
            value(&get(port, "/metrics").1, "redis_connected_clients") == Some(1.0)
        });
        let (status, text) = get(port, "/metrics");
        assert_eq!(status, "HTTP/1.1 200 OK");
        for (sample, wanted) in [
            ("redis_up", 1.0),
            ("redis_connected_clients", 1.0),
            ("redis_keyspace_hits_total", 1.0),
            ("redis_keyspace_misses_total", 1.0),
            ("redis_commands_total{cmd=\"set\"}", 3.0),
            ("redis_commands_total{cmd=\"get\"}", 2.0),
            ("redis_errors_total{err=\"ERR\"}", 1.0),
            ("redis_db_keys{db=\"db0\"}", 2.0),
            ("redis_db_keys_expiring{db=\"db0\"}", 1.0),
            ("redis_db_keys{db=\"db3\"}", 1.0),
            ("redis_slowlog_length", 0.0),
        ] {
            assert_eq!(value(&text, sample), Some(wanted), "{sample} in\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, figure) = line.rsplit_once(' ').expect("a sample");
            assert!(name.starts_with("redis_"), "{line}");
            assert!(figure.parse::<f64>().is_ok(), "{line}");
        }
        assert_eq!(get(port, "/healthz").0, "HTTP/1.1 200 OK");
        assert_eq!(get(port, "/readyz").0, "HTTP/1.1 200 OK");
        assert_eq!(get(port, "/nosuch").0, "HTTP/1.1 404 Not Found");
        let (status, body) = ask(port, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert_eq!((&*status, &*body), ("HTTP/1.1 200 OK", ""));
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let (_server, port) = with_metrics(&[]);
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(9000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(100));
    for (request, status) in [
        ("PING\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        ("\0\0\0\0", "HTTP/1.1 400 Bad Request"),
        (
            "DELETE /metrics HTTP/1.1\r\n\r\n",
            "HTTP/1.1 405 Method Not Allowed",
        ),
        (&long, "HTTP/1.1 431 Request Header Fields Too Large"),
        (&many, "HTTP/1.1 431 Request Header Fields Too Large"),
    ] {
        assert_eq!(ask(port, request).0, status);
    }
}

#[test]
fn only_so_many_are_served_at_once() {
    let (_server, port) = with_metrics(&[]);
    let mut idle: Vec<TcpStream> = (0..8).map(|_| open(port)).collect();
    for stream in &mut idle {
        stream.write_all(b"GET").expect("it is sent");
    }
    until("nobody more is served", || {
        get(port, "/healthz").0.is_empty()
    });
    for stream in &mut idle {
        stream
            .write_all(b" /healthz HTTP/1.1\r\n\r\n")
            .expect("it is sent");
    }
    until("all are served", || {
        get(port, "/healthz").0 == "HTTP/1.1 200 OK"
    });
    for mut stream in idle {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

#[test]
fn it_is_not_ready_while_writes_are_refused() {
    let (server, port) = with_metrics(&["--save", "3600 1"]);
    let mut client = connect(&server);
    call(&mut client, "SET key value");
    let dir = call(&mut client, "CONFIG GET dir");
    let dir = dir.elements().and_then(|pair| pair.get(1)?.text());
    let dir = dir.expect("a directory");
    // A directory stands where the snapshot is to be.
    std::fs::create_dir_all(format!("{dir}/dump.rdb/x")).expect("it is made");
    call(&mut client, "BGSAVE");
    let refused = "HTTP/1.1 503 Service Unavailable";
    until("it is not ready", || get(port, "/readyz").0 == refused);
    assert_eq!(get(port, "/readyz").1, "the last snapshot failed\n");
    assert_eq!(get(port, "/healthz").0, "HTTP/1.1 200 OK");
    std::fs::remove_dir_all(format!("{dir}/dump.rdb")).expect("it is removed");
    assert_eq!(call(&mut client, "SAVE"), status("OK"));
    assert_eq!(get(port, "/readyz").0, "HTTP/1.1 200 OK");
}
