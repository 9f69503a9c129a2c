//! CONFIG SET of where the server listens.

use std::net::{TcpListener, TcpStream};

use client::{Client, Reply};

use super::{PATIENCE, THREADS, call, connect, server, until};

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("its address").port()
}

fn answers(at: &str) -> bool {
    let Ok(mut client) = Client::connect(at) else {
        return false;
    };
    client.set_timeout(PATIENCE);
    call(&mut client, "PING").text().as_deref() == Some("PONG")
}

fn ok(client: &mut Client, command: &str) {
    assert_eq!(call(client, command).text().as_deref(), Some("OK"));
}

fn error(client: &mut Client, command: &str) -> String {
    match call(client, command) {
        Reply::Error(text) => String::from_utf8(text).expect("text"),
        other => panic!("{command}: {other:?}"),
    }
}

fn setting(client: &mut Client, name: &str) -> String {
    let pair = call(client, &format!("CONFIG GET {name}"));
    let value = pair.elements().and_then(|pair| pair.get(1)?.text());
    value.expect("a value")
}

#[test]
fn it_moves_to_another_port_and_keeps_its_clients() {
    for threads in THREADS {
        let server = server(&["--threads", threads, "--bind", "127.0.0.1"]);
        let mut client = connect(&server);
        let old = format!("127.0.0.1:{}", setting(&mut client, "port"));
        let new = free_port();
        ok(&mut client, &format!("CONFIG SET port {new}"));
        let at = format!("127.0.0.1:{new}");
        until("it answers there", || answers(&at));
        until("nobody is there", || TcpStream::connect(&old).is_err());
        assert!(!call(&mut client, "PING").is_error());
        ok(&mut client, "CONFIG SET port 0");
        until("nobody is there", || TcpStream::connect(&at).is_err());
        ok(&mut client, &format!("CONFIG SET port {new}"));
        until("it answers again", || answers(&at));
    }
}

#[test]
fn it_stays_where_it_is_if_it_cannot_move() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("its address").port();
    let server = server(&[]);
    let mut client = connect(&server);
    let before = setting(&mut client, "port");
    assert_eq!(
        error(&mut client, &format!("CONFIG SET port {port}")),
        "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this \
         port. Check server logs."
    );
    assert_eq!(setting(&mut client, "port"), before);
    assert!(answers(&format!("127.0.0.1:{before}")));
}

#[test]
fn it_takes_other_addresses() {
    let server = server(&[]);
    let mut client = connect(&server);
    let port = setting(&mut client, "port");
    let here = format!("127.0.0.1:{port}");
    let beside = format!("127.0.0.2:{port}");
    assert!(answers(&here) && !answers(&beside));
    // An address and one that holds it, both ways.
    for (bind, is_beside) in [("*", true), ("127.0.0.1", false), ("127.0.0.2", true)] {
        ok(&mut client, &format!("CONFIG SET bind {bind}"));
        until("it listens there", || answers(&beside) == is_beside);
        until("and here", || answers(&here) == (bind != "127.0.0.2"));
    }
    assert_eq!(
        error(&mut client, "CONFIG SET bind 203.0.113.1"),
        "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified \
         addresses."
    );
    assert!(answers(&beside));
    assert_eq!(setting(&mut client, "bind"), "127.0.0.2");
}
