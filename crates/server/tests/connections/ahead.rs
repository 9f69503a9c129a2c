//! Connections that are ready in the same turn of one loop: the next is read before the present one
//! is run.

use super::*;

/// Has a client keep the loop busy while each of the others sends its bytes, in this order: all of
/// them are ready in one turn.
fn in_one_turn(busy: &mut Client, others: &mut [(&mut Client, &[u8])]) {
    busy.send(&["DEBUG", "SLEEP", "0.2"]).expect("it is read");
    for (client, bytes) in others.iter_mut() {
        client.send_bytes(bytes).expect("it is taken");
    }
    assert_eq!(busy.receive().expect("a reply"), status("OK"));
}

#[test]
fn each_has_the_replies_to_what_it_sent() {
    let server = server(&["--threads", "1", "--enable-debug-command", "yes"]);
    let mut busy = connect(&server);
    let mut clients: Vec<Client> = (0..20).map(|_| connect(&server)).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        assert_eq!(
            call(client, &format!("SET key{at} value{at}")),
            status("OK")
        );
    }
    for round in 0..3 {
        // Whole requests, some of them cut off in the middle.
        let requests: Vec<Vec<u8>> = (0..clients.len())
            .map(|at| {
                format!(
                    "*2\r\n$3\r\nGET\r\n${}\r\nkey{at}\r\n",
                    3 + at.to_string().len()
                )
            })
            .map(String::into_bytes)
            .collect();
        let cut = |at: usize| match (at + round) % 3 {
            0 => requests[at].len() / 2,
            _ => requests[at].len(),
        };
        let mut sent: Vec<(&mut Client, &[u8])> = clients
            .iter_mut()
            .enumerate()
            .map(|(at, client)| (client, &requests[at][..cut(at)]))
            .collect();
        in_one_turn(&mut busy, &mut sent);
        for (at, client) in clients.iter_mut().enumerate() {
            let rest = &requests[at][cut(at)..];
            if !rest.is_empty() {
                client.send_bytes(rest).expect("it is read");
            }
            let reply = client.receive().expect("a reply");
            assert_eq!(reply, bulk(&format!("value{at}")));
        }
    }
}

#[test]
fn what_one_does_before_holds_for_what_the_next_sent() {
    let server = server(&["--threads", "1", "--enable-debug-command", "yes"]);
    let (mut busy, mut first, mut second) = (connect(&server), connect(&server), connect(&server));
    let victim = id(&mut second);
    let kill = format!("CLIENT KILL ID {victim}\r\n");
    let mut sent: [(&mut Client, &[u8]); 2] = [
        (&mut first, kill.as_bytes()),
        (&mut second, b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n"),
    ];
    in_one_turn(&mut busy, &mut sent);
    assert_eq!(first.receive().expect("a reply"), Reply::Integer(1));
    expect_closed(&mut second);
    call(&mut busy, "DEL counter");

    let mut second = connect(&server);
    let mut sent: [(&mut Client, &[u8]); 2] = [
        (&mut first, b"CLIENT PAUSE 60000 WRITE\r\n"),
        (&mut second, b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n"),
    ];
    in_one_turn(&mut busy, &mut sent);
    assert_eq!(first.receive().expect("a reply"), status("OK"));
    assert!(call(&mut busy, "GET counter").is_null());
    assert_eq!(call(&mut busy, "CLIENT UNPAUSE"), status("OK"));
    assert_eq!(second.receive().expect("a reply"), Reply::Integer(1));
}
