//! Messages between clients on different threads, and monitors.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::*;

fn message(channel: &str, text: &str) -> Reply {
    Reply::Array(vec![bulk("message"), bulk(channel), bulk(text)])
}

#[test]
fn every_subscriber_gets_every_message_in_order() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut subscribers: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
        for subscriber in &mut subscribers {
            call(subscriber, "SUBSCRIBE c");
        }
        let mut publisher = connect(&server);
        let mut bytes = Vec::new();
        // Short messages are copied for each receiver, long ones shared: both kinds, mixed.
        let text = |index: usize| format!("{index}:{}", "x".repeat(index % 3 * 200));
        for index in 0..1000 {
            client::encode(&["PUBLISH", "c", &text(index)], &mut bytes);
        }
        publisher.send_bytes(&bytes).expect("it is read");
        for _ in 0..1000 {
            assert_eq!(publisher.receive().expect("a reply"), Reply::Integer(16));
        }
        for subscriber in &mut subscribers {
            for index in 0..1000 {
                let got = subscriber.receive().expect("a message");
                assert_eq!(got, message("c", &text(index)));
            }
        }
    }
}

#[test]
fn nothing_comes_after_unsubscribe_was_confirmed() {
    let server = server(&["--threads", "8"]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // However this ends, or the publishers never would.
        let _stopper = Stopper(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                let mut publisher = connect(&server);
                while !stop.load(Relaxed) {
                    call(&mut publisher, "PUBLISH c hi");
                }
            });
        }
        let mut subscribers: Vec<Client> = (0..4).map(|_| connect(&server)).collect();
        for _ in 0..25 {
            for subscriber in &mut subscribers {
                subscriber
                    .send_bytes(b"SUBSCRIBE c\r\n")
                    .expect("it is read");
                // At least one message, so that some are on their way.
                until("a message comes", || {
                    subscriber.receive().expect("a message") == message("c", "hi")
                });
                subscriber
                    .send_bytes(b"UNSUBSCRIBE c\r\n")
                    .expect("it is read");
                let confirmed =
                    Reply::Array(vec![bulk("unsubscribe"), bulk("c"), Reply::Integer(0)]);
                until("it is confirmed", || {
                    subscriber.receive().expect("a reply") == confirmed
                });
                assert_eq!(call(subscriber, "PING"), status("PONG"));
            }
        }
    });
}

/// Sets a flag when it goes, a panic or not.
struct Stopper<'a>(&'a AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_killed_subscriber_is_none_any_more() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut other = connect(&server);
        let mut subscribers: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
        for subscriber in &mut subscribers {
            call(subscriber, "SUBSCRIBE c");
        }
        let killed = call(&mut other, "CLIENT KILL TYPE pubsub");
        assert_eq!(killed, Reply::Integer(16));
        subscribers.iter_mut().for_each(expect_closed);
        until("nobody listens", || {
            call(&mut other, "PUBLISH c x") == Reply::Integer(0)
        });
    }
}

#[test]
fn a_client_may_kill_itself_and_is_told() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut client = connect(&server);
        let kill = format!("CLIENT KILL ID {} SKIPME no", id(&mut client));
        client
            .send_bytes(format!("{kill}\r\nSET k v\r\n").as_bytes())
            .expect("it is read");
        assert_eq!(client.receive().expect("a reply"), Reply::Integer(1));
        assert!(matches!(client.receive(), Err(Error::Closed)));
        assert!(call(&mut connect(&server), "GET k").is_null());
    }
}

#[test]
fn a_monitor_sees_the_commands_of_all_threads() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut monitor = connect(&server);
        assert_eq!(call(&mut monitor, "MONITOR"), status("OK"));
        let mut clients: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            call(client, &format!("ECHO from-{index}"));
        }
        let mut missing: Vec<String> = (0..16).map(|i| format!("\"from-{i}\"")).collect();
        until("all are seen", || {
            let line = monitor.receive().expect("a line").text().expect("text");
            missing.retain(|word| !line.contains(word.as_str()));
            missing.is_empty()
        });
    }
}
