//! Bytes: in pieces, in masses, and wrong ones.

use super::*;

/// What is sent, and what must come back.
const CONVERSATION: &[(&[u8], &[u8])] = &[
    (
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\na\r\nb\x00c\r\n",
        b"OK",
    ),
    (b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", b"a\r\nb\x00c"),
    (b"PING\r\n", b"PONG"),
    (b"\r\nPING  'x y'\n", b"x y"),
    (b"*0\r\n*1\r\n$4\r\nPING\r\n", b"PONG"),
];

#[test]
fn requests_may_be_cut_at_every_byte() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut asker = connect(&server);
        let mut client = connect(&server);
        let id = id(&mut client);
        let mut sent: usize = field(&mut asker, id, "tot-net-in")
            .and_then(|number| number.parse().ok())
            .expect("bytes so far");
        for &(request, reply) in CONVERSATION {
            for byte in request {
                client.send_bytes(&[*byte]).expect("it is read");
                sent += 1;
                // Only when this byte was read alone does the next one go.
                until("the byte is read", || {
                    field(&mut asker, id, "tot-net-in") == Some(sent.to_string())
                });
            }
            let got = client.receive().expect("a reply");
            assert_eq!(got.bytes(), Some(reply), "{got:?}");
        }
        let whole: Vec<u8> = CONVERSATION.iter().flat_map(|(r, _)| *r).copied().collect();
        for cut in 0..=whole.len() {
            client.send_bytes(&whole[..cut]).expect("it is read");
            client.send_bytes(&whole[cut..]).expect("it is read");
            for (_, reply) in CONVERSATION {
                let got = client.receive().expect("a reply");
                assert_eq!(got.bytes(), Some(*reply), "cut at {cut}: {got:?}");
            }
        }
    }
}

#[test]
fn a_pipeline_may_be_as_deep_as_it_likes() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut client = connect(&server);
        let mut bytes = Vec::new();
        for _ in 0..30_000 {
            client::encode(&["INCR", "n"], &mut bytes);
        }
        client.send_bytes(&bytes).expect("all of it is taken");
        for number in 1..=30_000 {
            assert_eq!(client.receive().expect("a reply"), Reply::Integer(number));
        }
        // And one that arrives in another order of sizes: long values between short ones.
        let long = "x".repeat(1 << 20);
        let mut bytes = Vec::new();
        for _ in 0..8 {
            client::encode(&["SET", "long", &long], &mut bytes);
            client::encode(&["GET", "long"], &mut bytes);
            client::encode(&["PING"], &mut bytes);
        }
        client.send_bytes(&bytes).expect("all of it is taken");
        for _ in 0..8 {
            assert_eq!(client.receive().expect("a reply"), status("OK"));
            assert_eq!(client.receive().expect("a reply"), bulk(&long));
            assert_eq!(client.receive().expect("a reply"), status("PONG"));
        }
    }
}

#[test]
fn what_is_no_request_is_answered_and_the_connection_closed() {
    let server = server(&["--threads", "2"]);
    let many = |byte: &str| byte.repeat(70_000).into_bytes();
    let wrong: &[(&[u8], &str)] = &[
        (b"*1\r\n$5000000000\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$abc\r\n", "invalid bulk length"),
        (b"*1\r\n$ 4\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$-5\r\n",
            "invalid bulk length",
        ),
        (b"*1\r\n+a\r\n", "expected '$', got '+'"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*99999999999\r\n", "invalid multibulk length"),
        (b"*abc\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"\"unbalanced\r\n", "unbalanced quotes in request"),
        (&many("a"), "too big inline request"),
        (
            &[b"*", &many("1")[..]].concat(),
            "too big mbulk count string",
        ),
        (
            &[b"*1\r\n$", &many("1")[..]].concat(),
            "too big bulk count string",
        ),
    ];
    for (bytes, reason) in wrong {
        let mut client = connect(&server);
        // What came before is answered; what comes after is not even looked at.
        client.send_bytes(b"PING\r\n").expect("it is read");
        assert_eq!(client.receive().expect("a reply"), status("PONG"));
        client.send_bytes(bytes).expect("it is read");
        let want = Reply::Error(format!("ERR Protocol error: {reason}").into_bytes());
        assert_eq!(client.receive().expect("an error"), want);
        expect_closed(&mut client);
    }
    for browser in ["POST / HTTP/1.1\r\n", "Host: a\r\n"] {
        let mut client = connect(&server);
        client.send_bytes(browser.as_bytes()).expect("it is read");
        assert!(matches!(client.receive(), Err(Error::Closed)));
    }
    assert_eq!(call(&mut connect(&server), "PING"), status("PONG"));
}

#[test]
fn announced_lengths_take_no_memory() {
    let server = server(&["--threads", "2"]);
    let mut asker = connect(&server);
    let before = server.resident_bytes().expect("the system counts");
    let mut clients: Vec<Client> = (0..50).map(|_| connect(&server)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        let announced: &[u8] = match index % 3 {
            0 => b"*2147483647\r\n$3\r\nSET\r\n",
            1 => b"*1048576\r\n$1\r\na\r\n",
            _ => b"*2\r\n$3\r\nGET\r\n$536870912\r\nabc",
        };
        let id = id(client);
        let read = field(&mut asker, id, "tot-net-in").and_then(|n| n.parse::<usize>().ok());
        client.send_bytes(announced).expect("it is read");
        let want = (read.expect("a number") + announced.len()).to_string();
        until("it is read", || {
            field(&mut asker, id, "tot-net-in").as_ref() == Some(&want)
        });
    }
    let after = server.resident_bytes().expect("the system counts");
    let grown = after.saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for 50 announcements");
    assert_eq!(call(&mut asker, "PING"), status("PONG"));
}

#[test]
fn nothing_is_heard_after_quit() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut client = connect(&server);
        client
            .send_bytes(b"SET k 1\r\nQUIT\r\nSET k 2\r\n")
            .expect("it is read");
        assert_eq!(client.receive().expect("a reply"), status("OK"));
        assert_eq!(client.receive().expect("a reply"), status("OK"));
        expect_closed(&mut client);
        assert_eq!(call(&mut connect(&server), "GET k"), bulk("1"));
    }
}
