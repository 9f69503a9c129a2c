//! Requests and replies through TLS: many, large, and those that nobody asked for.

use super::*;

#[test]
fn clients_are_served_beside_plain_ones() {
    for threads in ["1", "2"] {
        let setup = Setup::new(&["--tls-auth-clients", "no", "--threads", threads]);
        let mut plain = setup.plain();
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let mut tls = setup.tls_with(None, &[version]);
            assert_status(&tls.call("CLIENT SETNAME me"), "OK");
            // A pipeline in one go, in both protocols.
            let mut bytes = Vec::new();
            for number in 0..2000 {
                encode(
                    &["SET", &format!("k{number}"), &number.to_string()],
                    &mut bytes,
                );
                encode(&["GET", &format!("k{number}")], &mut bytes);
            }
            tls.send_bytes(&bytes);
            for number in 0..2000 {
                assert_status(&tls.receive(), "OK");
                assert_eq!(tls.receive().text(), Some(number.to_string()));
            }
            let hello = tls.call("HELLO 3");
            assert_eq!(hello.field("proto").and_then(Reply::integer), Some(3));
            let list = plain.call(&["CLIENT", "LIST"]).expect("an answer");
            let list = list.text().expect("text");
            let line = list.lines().find(|line| line.contains(" name=me "));
            let line = line.expect("it is listed");
            let port = setup.port;
            assert!(
                line.contains(&format!(" laddr=127.0.0.1:{port} ")),
                "{line}"
            );
        }
        let info = plain.call(&["INFO", "server"]).expect("an answer");
        let info = info.text().expect("text");
        let listens = format!("listener2:name=tls,bind=127.0.0.1,port={}\r\n", setup.port);
        assert!(info.contains(&listens), "{info}");
    }
}

#[test]
fn large_requests_and_replies_arrive_whole_however_slowly_they_are_read() {
    let setup = Setup::new(&["--tls-auth-clients", "no", "--threads", "2"]);
    let mut tls = setup.tls(None);
    let value: Vec<u8> = (0..8_000_000u32).map(|n| (n * 7 / 5 % 251) as u8).collect();
    let mut bytes = b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$8000000\r\n".to_vec();
    bytes.extend_from_slice(&value);
    bytes.extend_from_slice(b"\r\n");
    tls.send_bytes(&bytes);
    assert_status(&tls.receive(), "OK");
    let mut plain = setup.plain();
    let got = plain.call(&["GET", "big"]).expect("an answer");
    assert!(got.bytes() == Some(&value));
    for _ in 0..8 {
        tls.send(&["GET", "big"]);
    }
    // It reads nothing, and the server does not encrypt ahead: its memory stays in bounds.
    let id = tls_client_id(&mut plain, setup.port);
    until("its output waits", || field(&mut plain, &id, "omem") > 0);
    for _ in 0..1000 {
        assert_status(&plain.call(&["PING"]).expect("an answer"), "PONG");
    }
    assert!(field(&mut plain, &id, "omem") < 20_000_000);
    for _ in 0..8 {
        assert!(tls.receive().bytes() == Some(&value));
    }
    assert_status(&tls.call("PING"), "PONG");
    assert_eq!(field(&mut plain, &id, "omem"), 0);
}

#[test]
fn messages_and_what_blocked_clients_wait_for_come_through() {
    let setup = Setup::new(&["--tls-auth-clients", "no", "--threads", "2"]);
    let mut subscriber = setup.tls(None);
    subscriber.call("HELLO 3");
    subscriber.call("SUBSCRIBE news");
    let mut waiting = setup.tls(None);
    waiting.send(&["BLPOP", "queue", "0"]);
    let mut plain = setup.plain();
    until("it waits", || {
        let info = plain.call(&["INFO", "clients"]).expect("an answer");
        info.text()
            .is_some_and(|text| text.contains("blocked_clients:1"))
    });
    let long = "x".repeat(1000);
    for number in 0..500 {
        let text = format!("{number}{long}");
        plain.call(&["PUBLISH", "news", &text]).expect("an answer");
    }
    plain.call(&["RPUSH", "queue", "task"]).expect("an answer");
    for number in 0..500 {
        let push = subscriber.receive();
        let text = push.elements().and_then(|words| words[2].text());
        assert_eq!(text, Some(format!("{number}{long}")));
    }
    let served = waiting.receive();
    let task = served.elements().and_then(|words| words[1].text());
    assert_eq!(task.as_deref(), Some("task"));
    // One that hangs up while it waits takes nothing with it.
    waiting.send(&["BLPOP", "queue", "0"]);
    until("it waits", || {
        let info = plain.call(&["INFO", "clients"]).expect("an answer");
        info.text()
            .is_some_and(|text| text.contains("blocked_clients:1"))
    });
    drop(waiting);
    until("it is gone", || {
        let info = plain.call(&["INFO", "clients"]).expect("an answer");
        info.text()
            .is_some_and(|text| text.contains("blocked_clients:0"))
    });
    let len = plain.call(&["RPUSH", "queue", "task"]).expect("an answer");
    assert_eq!(len.integer(), Some(1));
}

#[test]
fn quit_and_kill_end_with_a_goodbye() {
    let setup = Setup::new(&["--tls-auth-clients", "no"]);
    let mut tls = setup.tls(None);
    assert_status(&tls.call("QUIT"), "OK");
    // Without TLS's goodbye this is an error about an unexpected end.
    assert_eq!(tls.try_receive(), Err("closed".to_owned()));
    let mut tls = setup.tls(None);
    let id = tls
        .call("CLIENT ID")
        .integer()
        .expect("a number")
        .to_string();
    let killed = setup.plain().call(&["CLIENT", "KILL", "ID", &id]);
    assert_eq!(killed.expect("an answer").integer(), Some(1));
    assert_eq!(tls.try_receive(), Err("closed".to_owned()));
}

/// The number of the one client that came over this port.
fn tls_client_id(plain: &mut Client, port: u16) -> String {
    let list = plain.call(&["CLIENT", "LIST"]).expect("an answer");
    let list = list.text().expect("text");
    let laddr = format!(" laddr=127.0.0.1:{port} ");
    let line = list.lines().find(|line| line.contains(&laddr));
    let id = line.and_then(|line| line.strip_prefix("id=")?.split(' ').next());
    id.expect("it is listed").to_owned()
}

/// A number of a client's line.
fn field(plain: &mut Client, id: &str, name: &str) -> u64 {
    let line = plain
        .call(&["CLIENT", "LIST", "ID", id])
        .expect("an answer");
    let line = line.text().expect("text");
    let value = line
        .split_whitespace()
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value
        .and_then(|value| value.parse().ok())
        .expect("a number")
}
