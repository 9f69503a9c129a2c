//! Clients that wait: what they send meanwhile, and how their wait ends.

use super::*;

fn await_blocked(asker: &mut Client, id: i64) {
    until("it waits", || {
        field(asker, id, "flags").as_deref() == Some("b")
    });
}

#[test]
fn what_a_waiting_client_sends_runs_when_it_goes_on() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let (mut waiter, mut other) = (connect(&server), connect(&server));
        let id = id(&mut waiter);
        waiter
            .send_bytes(b"BLPOP list 0\r\nSET together yes\r\n")
            .expect("it is read");
        await_blocked(&mut other, id);
        let read = |other: &mut Client| {
            let bytes = field(other, id, "tot-net-in");
            bytes.and_then(|number| number.parse::<usize>().ok())
        };
        let before = read(&mut other).expect("a number");
        waiter
            .send_bytes(b"SET later yes\r\n*1\r\n$4\r\nPI")
            .expect("it is read");
        until("it is read", || {
            read(&mut other) == Some(before + b"SET later yes\r\n*1\r\n$4\r\nPI".len())
        });
        assert!(call(&mut other, "GET together").is_null());
        assert!(call(&mut other, "GET later").is_null());
        assert_eq!(call(&mut other, "RPUSH list x"), Reply::Integer(1));
        let popped = waiter.receive().expect("what it waited for");
        assert_eq!(popped, Reply::Array(vec![bulk("list"), bulk("x")]));
        assert_eq!(waiter.receive().expect("a reply"), status("OK"));
        assert_eq!(waiter.receive().expect("a reply"), status("OK"));
        assert_eq!(call(&mut other, "GET later"), bulk("yes"));
        waiter.send_bytes(b"NG\r\n").expect("it is read");
        assert_eq!(waiter.receive().expect("a reply"), status("PONG"));
    }
}

#[test]
fn a_client_that_goes_away_takes_nothing_along() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut other = connect(&server);
        for _ in 0..20 {
            let mut waiters: Vec<Client> = (0..3).map(|_| connect(&server)).collect();
            let ids: Vec<i64> = waiters.iter_mut().map(id).collect();
            for (waiter, &id) in waiters.iter_mut().zip(&ids) {
                waiter.send(&["BLPOP", "list", "0"]).expect("it is read");
                await_blocked(&mut other, id);
            }
            // The first in the line goes; the second gets the element.
            drop(waiters.remove(0));
            until("it is gone", || field(&mut other, ids[0], "id").is_none());
            assert_eq!(call(&mut other, "RPUSH list x"), Reply::Integer(1));
            let popped = waiters[0].receive().expect("what it waited for");
            assert_eq!(popped, Reply::Array(vec![bulk("list"), bulk("x")]));
            waiters.clear();
            until("all are gone", || field(&mut other, ids[2], "id").is_none());
            assert_eq!(call(&mut other, "RPUSH list y"), Reply::Integer(1));
            assert_eq!(call(&mut other, "LPOP list"), bulk("y"));
        }
    }
}

#[test]
fn a_wait_ends_when_its_time_is_up() {
    let server = server(&["--threads", "2"]);
    let mut client = connect(&server);
    for (timeout, least) in [("0.02", 20), ("0.1", 100)] {
        let begin = Instant::now();
        assert!(call(&mut client, &format!("BLPOP list {timeout}")).is_null());
        let took = begin.elapsed();
        assert!(took >= Duration::from_millis(least), "{took:?}");
        assert!(took < Duration::from_millis(least + 2000), "{took:?}");
    }
}

#[test]
fn a_waiting_client_can_be_killed_and_unblocked_from_any_thread() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut other = connect(&server);
        let mut waiters: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
        let ids: Vec<i64> = waiters.iter_mut().map(id).collect();
        for (waiter, &id) in waiters.iter_mut().zip(&ids) {
            waiter.send(&["BLPOP", "list", "0"]).expect("it is read");
            await_blocked(&mut other, id);
        }
        for (index, (waiter, id)) in waiters.iter_mut().zip(&ids).enumerate() {
            if index % 2 == 0 {
                let killed = call(&mut other, &format!("CLIENT KILL ID {id}"));
                assert_eq!(killed, Reply::Integer(1));
                assert!(matches!(waiter.receive(), Err(Error::Closed)));
            } else {
                let woken = call(&mut other, &format!("CLIENT UNBLOCK {id} ERROR"));
                assert_eq!(woken, Reply::Integer(1));
                assert!(waiter.receive().expect("an answer").is_error());
                assert_eq!(call(waiter, "PING"), status("PONG"));
            }
        }
        assert_eq!(call(&mut other, "RPUSH list x"), Reply::Integer(1));
        assert_eq!(call(&mut other, "LLEN list"), Reply::Integer(1));
    }
}

#[test]
fn a_pause_holds_all_threads_and_ends_for_all() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let mut other = connect(&server);
        let mut writers: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
        assert_eq!(call(&mut other, "CLIENT PAUSE 100000 WRITE"), status("OK"));
        for writer in &mut writers {
            writer.send(&["INCR", "n"]).expect("it is read");
            writer.send(&["PING"]).expect("it is read");
        }
        let mut readers: Vec<Client> = (0..8).map(|_| connect(&server)).collect();
        for reader in &mut readers {
            assert!(call(reader, "GET n").is_null());
        }
        assert_eq!(call(&mut other, "CLIENT UNPAUSE"), status("OK"));
        for writer in &mut writers {
            assert!(writer.receive().expect("a reply").integer().is_some());
            assert_eq!(writer.receive().expect("a reply"), status("PONG"));
        }
        assert_eq!(call(&mut other, "GET n"), bulk("16"));
    }
}

#[test]
fn a_pause_holds_what_was_sent_together_with_it() {
    for threads in THREADS {
        let server = server(&["--threads", threads]);
        let (mut client, mut other) = (connect(&server), connect(&server));
        for pause in [
            "CLIENT PAUSE 1000000 WRITE\r\n",
            "MULTI\r\nCLIENT PAUSE 1000000 WRITE\r\nEXEC\r\n",
        ] {
            call(&mut other, "DEL k");
            let pipeline = format!("{pause}GET k\r\nSET k v\r\nGET k\r\n");
            client.send_bytes(pipeline.as_bytes()).expect("it is sent");
            for _ in 0..pause.lines().count() {
                client.receive().expect("the pause begins");
            }
            assert!(client.receive().expect("reads go on").is_null());
            assert!(call(&mut other, "GET k").is_null());
            call(&mut other, "CLIENT UNPAUSE");
            assert_eq!(client.receive().expect("a reply"), status("OK"));
            assert_eq!(client.receive().expect("a reply"), bulk("v"));
        }
    }
}
