//! Limits: what a client may hold, and how many there may be.

use super::*;

/// Many keys are counted in slices, for whoever asks later.
#[test]
fn the_sizes_of_many_keys_are_counted_between_requests() {
    for threads in THREADS {
        let server = server(&["--threads", threads, "--enable-debug-command", "yes"]);
        let mut client = connect(&server);
        let sizes = |client: &mut Client| call(client, "INFO keysizes").text().expect("text");
        call(&mut client, "DEBUG POPULATE 30000 k 100");
        call(&mut client, "SADD s a b c");
        let expected = "# Keysizes\r\ndb0_distrib_strings_sizes:64=30000\r\n\
                        db0_distrib_sets_items:2=1\r\n";
        until("all are counted", || sizes(&mut client) == expected);
        call(&mut client, "FLUSHALL");
        assert_eq!(sizes(&mut client), "# Keysizes\r\n");
    }
}

#[test]
fn a_slow_subscriber_is_dropped_at_its_limit() {
    for threads in THREADS {
        let server = server(&[
            "--threads",
            threads,
            "--client-output-buffer-limit",
            "pubsub 1mb 0 0",
        ]);
        let mut subscriber = connect(&server);
        let id = id(&mut subscriber);
        call(&mut subscriber, "SUBSCRIBE c");
        let mut publisher = connect(&server);
        let waiting = |publisher: &mut Client| {
            let bytes = field(publisher, id, "omem");
            bytes.and_then(|n| n.parse().ok()).unwrap_or(0)
        };
        // Little by little, so that it is seen to be slow long before it is at its limit.
        let (short, long) = ("x".repeat(1000), "x".repeat(100_000));
        until("it is slow", || {
            for _ in 0..20 {
                publisher.call(&["PUBLISH", "c", &short]).expect("a reply");
            }
            waiting(&mut publisher) > 0
        });
        let mut most = 0;
        until("it is dropped", || {
            most = waiting(&mut publisher).max(most);
            publisher.call(&["PUBLISH", "c", &long]).expect("a reply") == Reply::Integer(0)
        });
        assert!(most < 2 << 20, "{most} bytes waited for it");
        expect_closed(&mut subscriber);
    }
}

#[test]
fn a_reader_that_is_only_slow_gets_everything() {
    let server = server(&["--threads", "2"]);
    let mut client = connect(&server);
    let long = "x".repeat(1 << 20);
    client.call(&["SET", "k", &long]).expect("a reply");
    for _ in 0..32 {
        client.send(&["GET", "k"]).expect("it is read");
    }
    for _ in 0..32 {
        assert_eq!(client.receive().expect("a reply"), bulk(&long));
    }
}

/// A short pipeline may ask for far more than its client is ready to take.
#[test]
fn replies_are_made_as_they_are_taken() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut client = connect(&server);
        let mut other = connect(&server);
        let number = id(&mut client);
        let long = "x".repeat(1 << 20);
        client.call(&["SET", "k", &long]).expect("a reply");
        let mut pipeline = Vec::new();
        for _ in 0..100 {
            client::encode(&["GET", "k"], &mut pipeline);
            client::encode(&["INCR", "n"], &mut pipeline);
        }
        client.send_bytes(&pipeline).expect("it is read");
        until("some is made and the rest waits", || {
            field(&mut other, number, "qbuf").is_some_and(|bytes| bytes != "0")
        });
        let held = field(&mut other, number, "omem").and_then(|bytes| bytes.parse().ok());
        assert!(held.is_none_or(|bytes: usize| bytes < 4 << 20), "{held:?}");
        for round in 1..=100 {
            assert_eq!(client.receive().expect("a reply"), bulk(&long));
            assert_eq!(client.receive().expect("a reply"), Reply::Integer(round));
        }
    }
}

/// Whoever does not care for replies may go as soon as all is sent.
#[test]
fn what_was_sent_is_run_though_nobody_takes_the_replies() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut other = connect(&server);
        let long = "x".repeat(1 << 20);
        other.call(&["SET", "k", &long]).expect("a reply");
        let mut client = connect(&server);
        let number = id(&mut client);
        let mut pipeline = Vec::new();
        for _ in 0..100 {
            client::encode(&["GET", "k"], &mut pipeline);
            client::encode(&["INCR", "n"], &mut pipeline);
        }
        client.send_bytes(&pipeline).expect("it is read");
        until("some is made and the rest waits", || {
            field(&mut other, number, "qbuf").is_some_and(|bytes| bytes != "0")
        });
        drop(client);
        until("all is run", || call(&mut other, "GET n") == bulk("100"));
    }
}

#[test]
fn a_query_past_its_limit_closes_the_connection() {
    let server = server(&["--client-query-buffer-limit", "1mb"]);
    let mut client = connect(&server);
    client
        .send_bytes(b"*2\r\n$3\r\nGET\r\n$3000000\r\n")
        .expect("it is read");
    let chunk = vec![b'x'; 100_000];
    let mut sent = 0;
    until("it is closed", || {
        sent += chunk.len();
        client.send_bytes(&chunk).is_err() || sent > 20_000_000
    });
    assert!(sent <= 20_000_000, "it took {sent} bytes");
    assert_eq!(call(&mut connect(&server), "PING"), status("PONG"));
}

#[test]
fn no_more_clients_than_allowed() {
    let server = server(&["--maxclients", "3", "--threads", "2"]);
    let mut clients: Vec<Client> = Vec::new();
    // The one that asked whether the server is ready may not be gone yet.
    until("three are in", || {
        let mut client = connect(&server);
        if client.call(&["PING"]).is_ok_and(|reply| !reply.is_error()) {
            clients.push(client);
        }
        clients.len() == 3
    });
    let mut fourth = connect(&server);
    let refused = fourth.receive().expect("an error");
    assert_eq!(
        refused,
        Reply::Error(b"ERR max number of clients reached".to_vec())
    );
    expect_closed(&mut fourth);
    clients.pop();
    until("there is room again", || {
        connect(&server)
            .call(&["PING"])
            .is_ok_and(|reply| !reply.is_error())
    });
}

#[test]
fn idle_clients_go_and_subscribers_stay() {
    let server = server(&["--timeout", "1", "--threads", "2"]);
    let mut subscriber = connect(&server);
    call(&mut subscriber, "SUBSCRIBE c");
    let mut waiter = connect(&server);
    waiter.send(&["BLPOP", "list", "0"]).expect("it is read");
    let mut idle = connect(&server);
    call(&mut idle, "PING");
    assert!(matches!(idle.receive(), Err(Error::Closed)));
    let mut other = connect(&server);
    assert_eq!(call(&mut other, "PUBLISH c hi"), Reply::Integer(1));
    assert_eq!(call(&mut other, "RPUSH list x"), Reply::Integer(1));
    assert!(!waiter.receive().expect("what it waited for").is_error());
}

#[test]
fn little_is_taken_before_the_password() {
    let server = server(&["--requirepass", "secret", "--threads", "2"]);
    let wrong: &[(&[u8], &str)] = &[
        (b"*11\r\n", "unauthenticated multibulk length"),
        (b"*2\r\n$16385\r\n", "unauthenticated bulk length"),
    ];
    for (bytes, reason) in wrong {
        let mut client = connect(&server);
        client.send_bytes(bytes).expect("it is read");
        let want = Reply::Error(format!("ERR Protocol error: {reason}").into_bytes());
        assert_eq!(client.receive().expect("an error"), want);
        expect_closed(&mut client);
    }
    let mut client = connect(&server);
    for command in [
        "PING",
        "GET k",
        "MULTI",
        "CLIENT ID",
        "SUBSCRIBE c",
        "HELLO 3",
    ] {
        let reply = call(&mut client, command);
        let Reply::Error(text) = &reply else {
            panic!("{command}: {reply:?}");
        };
        assert!(text.starts_with(b"NOAUTH"), "{command}: {reply:?}");
    }
    for login in ["AUTH wrong", "AUTH default wrong", "AUTH nobody secret"] {
        let Reply::Error(text) = call(&mut client, login) else {
            panic!("{login} went through");
        };
        assert!(text.starts_with(b"WRONGPASS"));
    }
    // Once it is in, in the same breath too, everything is allowed.
    let mut bytes = Vec::new();
    client::encode(&["AUTH", "secret"], &mut bytes);
    client::encode(&["ECHO", &"x".repeat(100_000)], &mut bytes);
    client.send_bytes(&bytes).expect("it is read");
    assert_eq!(client.receive().expect("a reply"), status("OK"));
    assert_eq!(
        client.receive().expect("a reply"),
        bulk(&"x".repeat(100_000))
    );
    assert_eq!(call(&mut client, "RESET"), status("RESET"));
    assert!(call(&mut client, "PING").is_error());
    let hello = call(&mut client, "HELLO 3 AUTH default secret SETNAME me");
    assert_eq!(hello.field("proto"), Some(&Reply::Integer(3)));
    assert_eq!(call(&mut client, "CLIENT GETNAME"), bulk("me"));
}

#[test]
fn memory_goes_back_to_the_system_after_a_flush() {
    for threads in ["1", "2"] {
        let server = server(&["--threads", threads, "--enable-debug-command", "yes"]);
        let mut client = connect(&server);
        let mut resident = || {
            let info = call(&mut client, "INFO memory").text().expect("text");
            let line = info
                .lines()
                .find_map(|l| l.strip_prefix("used_memory_rss:"));
            line.and_then(|bytes| bytes.parse::<u64>().ok())
                .expect("a number")
        };
        let before = resident();
        let mut filler = connect(&server);
        call(&mut filler, "DEBUG POPULATE 400000 key 100");
        let full = resident();
        assert!(full > before + 40_000_000, "{before} to {full}");
        call(&mut filler, "FLUSHALL");
        until("most of it is given back", || {
            resident() < before + (full - before) / 2
        });
    }
}

/// What a long value takes on its way in is little more than itself.
#[test]
fn a_long_value_fits_where_it_and_its_request_fit() {
    for threads in THREADS {
        let options = ["--threads", threads, "--maxmemory-policy", "allkeys-lru"];
        let server = server(&[&options[..], &["--maxmemory", "30mb"]].concat());
        let mut client = connect(&server);
        let long = "x".repeat(25 << 20);
        for key in ["a", "b", "c", "a"] {
            let reply = client.call(&["SET", key, &long]).expect("a reply");
            assert_eq!(reply, status("OK"), "key {key}, {threads} threads");
        }
    }
}
