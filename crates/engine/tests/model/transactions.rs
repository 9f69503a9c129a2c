//! MULTI and EXEC: what is queued happens at once, and only if nothing watched changed.

use shuttle::thread;

use crate::check;
use crate::program::{Client, Thread, World};

const TOTAL: i64 = 10;
/// Attempts at one transfer: enough that a writer that keeps losing gives up.
const ATTEMPTS: usize = 4;

fn number(thread: &mut Thread<'_>, client: &mut Client, command: &str) -> i64 {
    let reply = thread.call(client, command);
    reply[0].trim_start_matches(':').parse().expect("a number")
}

/// Moves one from `from` to `to` after having read both; true where it came about.
fn transfer(thread: &mut Thread<'_>, client: &mut Client, from: &str, to: &str) -> bool {
    for _ in 0..ATTEMPTS {
        thread.call(client, &format!("WATCH {from} {to}"));
        let has = number(thread, client, &format!("GET {from}"));
        let gets = number(thread, client, &format!("GET {to}"));
        thread.call(client, "MULTI");
        thread.call(client, &format!("SET {from} {}", has - 1));
        thread.call(client, &format!("SET {to} {}", gets + 1));
        let reply = thread.call(client, "EXEC");
        if reply != ["*-1"] {
            assert_eq!(reply, ["+OK", "+OK"]);
            return true;
        }
    }
    false
}

#[test]
fn transfers_between_two_keys_keep_their_sum() {
    check(300, || {
        let world = World::new();
        let keys = world.keys();
        let (from, to) = (keys[3].clone(), keys[0].clone());
        let mut main = Thread::new(&world, 0);
        let mut client = main.client();
        main.call(&mut client, &format!("MSET {from} {TOTAL} {to} 0"));
        let watcher = |number: u16, from: String, to: String| {
            let world = world.clone();
            thread::spawn(move || {
                let mut thread = Thread::new(&world, number);
                let mut client = thread.client();
                i64::from(transfer(&mut thread, &mut client, &from, &to))
            })
        };
        let there = watcher(1, from.clone(), to.clone());
        let back = watcher(2, to.clone(), from.clone());
        let blind = {
            let (world, from, to) = (world.clone(), from.clone(), to.clone());
            thread::spawn(move || {
                let mut thread = Thread::new(&world, 3);
                let mut client = thread.client();
                thread.call(&mut client, "MULTI");
                thread.call(&mut client, &format!("DECRBY {from} 3"));
                thread.call(&mut client, &format!("INCRBY {to} 3"));
                assert_eq!(thread.call(&mut client, "EXEC").len(), 2);
                let both = thread.call(&mut client, &format!("MGET {to} {from}"));
                let sum: i64 = both
                    .iter()
                    .map(|n| n.parse::<i64>().expect("a number"))
                    .sum();
                assert_eq!(sum, TOTAL, "a reader sees half of a transfer");
            })
        };
        let moved = there.join().expect("it ends") - back.join().expect("it ends");
        blind.join().expect("it ends");
        assert_eq!(
            number(&mut main, &mut client, &format!("GET {to}")),
            3 + moved
        );
        let left = number(&mut main, &mut client, &format!("GET {from}"));
        assert_eq!(left, TOTAL - 3 - moved, "a transfer is lost");
        let mut guard = world.keyspace.stripes.acquire(world.keyspace.stripes.all());
        let held = guard.held();
        assert!((0..held.count()).all(|index| held.get(index).watchers.is_empty()));
    });
}
