//! `maxmemory-clients`: the biggest clients go, the others stay.

use super::*;

fn evicted(asker: &mut Client) -> u64 {
    let info = call(asker, "INFO stats").text().expect("text");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("evicted_clients:"));
    line.and_then(|count| count.parse().ok()).expect("a number")
}

/// A client that holds the beginning of a long request.
fn holding(server: &Server, bytes: usize) -> Client {
    let mut client = connect(server);
    let head = b"*2\r\n$3\r\nGET\r\n$50000000\r\n";
    client.send_bytes(head).expect("the server reads");
    let piece = vec![b'x'; bytes];
    client.send_bytes(&piece).expect("the server reads");
    client
}

#[test]
fn the_biggest_clients_are_closed_and_nobody_else() {
    for threads in THREADS {
        let server = server(&["--threads", threads, "--maxmemory-clients", "8mb"]);
        let mut asker = connect(&server);
        let mut idle = connect(&server);
        let mut small = holding(&server, 100_000);
        call(&mut idle, "PING");
        // Kept, whatever it takes.
        let mut kept = connect(&server);
        call(&mut kept, "CLIENT NO-EVICT ON");
        let kept_id = id(&mut kept);
        let head = b"*2\r\n$3\r\nGET\r\n$3000000\r\n";
        kept.send_bytes(head).expect("the server reads");
        kept.send_bytes(&vec![b'x'; 2_999_000])
            .expect("the server reads");
        let big = |asker: &mut Client| {
            field(asker, kept_id, "qbuf").is_some_and(|bytes| bytes.len() >= 7)
        };
        until("it holds much", || big(&mut asker));
        assert_eq!(evicted(&mut asker), 0);
        let mut first = holding(&server, 500_000);
        let piece = vec![b'x'; 100_000];
        until("it is closed", || first.send_bytes(&piece).is_err());
        assert_eq!(evicted(&mut asker), 1);
        let log = server.log();
        assert!(log.contains("Evicting client: id="), "{log}");
        // All that the others asked for is answered.
        kept.send_bytes(&vec![b'x'; 1000])
            .expect("the server reads");
        kept.send_bytes(b"\r\n").expect("the server reads");
        assert!(kept.receive().expect("an answer").is_null());
        call(&mut idle, "PING");
        small.send_bytes(b"").expect("the server reads");
        assert_eq!(evicted(&mut asker), 1);
    }
}

#[test]
fn replies_that_nobody_takes_count_and_a_share_of_maxmemory_is_a_limit() {
    let server = server(&["--threads", "2", "--maxmemory", "200mb"]);
    let mut asker = connect(&server);
    let value = "v".repeat(1_000_000);
    asker.call(&["SET", "big", &value]).expect("an answer");
    call(&mut asker, "CONFIG SET maxmemory-clients 5%");
    let mut slow = connect(&server);
    for _ in 0..40 {
        slow.send(&["GET", "big"]).expect("the server reads");
    }
    let mut subscriber = connect(&server);
    call(&mut subscriber, "SUBSCRIBE news");
    until("somebody is closed", || {
        asker.call(&["PUBLISH", "news", &value]).expect("an answer");
        evicted(&mut asker) > 0
    });
    call(&mut asker, "PING");
    // Without a limit all may stay.
    call(&mut asker, "CONFIG SET maxmemory-clients 0");
    let _held = holding(&server, 12_000_000);
    let before = evicted(&mut asker);
    until("it holds much", || {
        let list = call(&mut asker, "CLIENT LIST").text().expect("text");
        list.lines().any(|line| {
            let bytes = line
                .split(" qbuf=")
                .nth(1)
                .and_then(|rest| rest.split(' ').next());
            bytes.is_some_and(|bytes| bytes.len() >= 8)
        })
    });
    assert_eq!(evicted(&mut asker), before);
}
