//! Handshakes: in pieces, unfinished, too long, and none at all.

use std::io::ErrorKind;

use super::*;

/// Whether the other end closes, whatever it says before.
fn is_closed(socket: &mut TcpStream) -> bool {
    let mut chunk = [0; 1024];
    loop {
        match socket.read(&mut chunk) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// What a client says first.
fn hello(setup: &Setup) -> Vec<u8> {
    let mut client = setup.tls(None);
    let mut bytes = Vec::new();
    client.tls.write_tls(&mut bytes).expect("into memory");
    bytes
}

fn connected(plain: &mut Client) -> i64 {
    let info = plain.call(&["INFO", "clients"]).expect("an answer");
    let text = info.text().expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("connected_clients:"));
    line.and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn who_speaks_no_tls_is_closed_with_a_line() {
    let setup = Setup::new(&[]);
    let mut socket = setup.socket();
    socket.write_all(b"PING\r\n").expect("the server reads");
    let mut said = Vec::new();
    let _ = socket.read_to_end(&mut said);
    assert_eq!(said, b"");
    until("a line", || {
        let log = setup.server.log();
        log.contains("Error accepting a client connection: wrong version number")
    });
}

#[test]
fn unfinished_handshakes_hold_nobody_up() {
    for threads in ["1", "2"] {
        let setup = Setup::new(&["--tls-auth-clients", "no", "--threads", threads]);
        let hello = hello(&setup);
        let mut plain = setup.plain();
        let before = connected(&mut plain);
        let mut half: Vec<TcpStream> = (0..200).map(|_| setup.socket()).collect();
        for (index, socket) in half.iter_mut().enumerate() {
            let part = hello.len() * (index % 4) / 4;
            socket.write_all(&hello[..part]).expect("the server reads");
        }
        until("all are there", || connected(&mut plain) == before + 200);
        let mut tls = setup.tls(None);
        assert_status(&tls.call("SET k v"), "OK");
        let text = plain.call(&["GET", "k"]).expect("an answer").text();
        assert_eq!(text.as_deref(), Some("v"));
        // Some go on where they were, and are answered.
        for (index, socket) in half.iter_mut().enumerate().take(40) {
            let part = hello.len() * (index % 4) / 4;
            socket.write_all(&hello[part..]).expect("the server reads");
        }
        for socket in half.iter_mut().take(40) {
            let mut first = [0];
            socket.read_exact(&mut first).expect("an answer");
            assert_eq!(first, [0x16]);
        }
        drop(half);
        until("all are gone", || connected(&mut plain) == before + 1);
        assert_status(&tls.call("PING"), "PONG");
    }
}

#[test]
fn what_comes_byte_by_byte_is_understood() {
    let setup = Setup::new(&["--tls-auth-clients", "no"]);
    let mut client = setup.tls(None);
    let mut waiting = Vec::new();
    encode(&["PING"], &mut waiting);
    client
        .tls
        .writer()
        .write_all(&waiting)
        .expect("into memory");
    while client.tls.is_handshaking() || client.tls.wants_write() {
        let mut bytes = Vec::new();
        while client.tls.wants_write() {
            client.tls.write_tls(&mut bytes).expect("into memory");
        }
        for byte in bytes.chunks(1) {
            client.socket.write_all(byte).expect("the server reads");
        }
        if client.tls.is_handshaking() {
            let got = client.tls.read_tls(&mut client.socket).expect("an answer");
            assert!(got > 0, "closed");
            client.tls.process_new_packets().expect("TLS");
        }
    }
    assert_status(&client.receive(), "PONG");
}

#[test]
fn nonsense_and_endless_handshakes_end_the_connection() {
    let setup = Setup::new(&["--tls-auth-clients", "no"]);
    let hello = hello(&setup);
    // A message that says it is 60000 bytes long, in records of a handshake.
    let mut endless = vec![0x16, 3, 1, 0x40, 0, 1, 0, 0xea, 0x60];
    endless.resize(5 + 0x4000, 0);
    for _ in 0..3 {
        endless.extend_from_slice(&[0x16, 3, 1, 0x40, 0]);
        endless.resize(endless.len() + 0x4000, 0);
    }
    let mut socket = setup.socket();
    // It may be closed before all was sent.
    let _ = socket.write_all(&endless);
    assert!(is_closed(&mut socket));
    for at in (5..hello.len()).step_by(7) {
        let mut damaged = hello.clone();
        damaged[at] ^= 0xff;
        let mut socket = setup.socket();
        socket.write_all(&damaged).expect("the server reads");
        // It is refused, or the client would have to go on.
        let mut first = [0];
        assert!(socket.read(&mut first).is_ok());
    }
    let mut socket = setup.socket();
    socket
        .write_all(&[0x16, 3, 1, 0xff, 0xff, 0])
        .expect("the server reads");
    assert!(is_closed(&mut socket));
    assert_status(&setup.tls(None).call("PING"), "PONG");
}

#[test]
fn versions_and_ciphers_are_those_that_are_named() {
    let setup = Setup::new(&["--tls-auth-clients", "no", "--tls-protocols", "TLSv1.3"]);
    let ping = |version| setup.tls_with(None, &[version]).try_call(&["PING"]);
    let (old, new) = (&rustls::version::TLS12, &rustls::version::TLS13);
    assert!(ping(new).is_ok());
    assert!(ping(old).is_err());
    assert_status(&setup.set("tls-protocols", "TLSv1.2 TLSv1.3"), "OK");
    assert!(ping(old).is_ok());
    let words = [
        "CONFIG",
        "SET",
        "tls-prefer-server-ciphers",
        "yes",
        "tls-ciphersuites",
        "TLS_CHACHA20_POLY1305_SHA256",
    ];
    assert_status(&setup.plain().call(&words).expect("an answer"), "OK");
    let mut client = setup.tls_with(None, &[new]);
    assert_status(&client.call("PING"), "PONG");
    let suite = client.tls.negotiated_cipher_suite().expect("a suite");
    assert_eq!(
        suite.suite(),
        rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
    );
    for (directive, value) in [("tls-ciphersuites", "FOO"), ("tls-protocols", "TLSv1.1")] {
        assert!(setup.set(directive, value).is_error());
    }
}

#[test]
fn a_server_without_its_files_does_not_start() {
    let port = free_port().to_string();
    let program = Path::new(env!("CARGO_BIN_EXE_tidemill-server"));
    let options = ["--tls-port", &port];
    let Err(problem) = Server::start(program, &options) else {
        panic!("it started");
    };
    assert!(
        problem.contains("No tls-cert-file configured!"),
        "{problem}"
    );
}
