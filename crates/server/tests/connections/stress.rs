//! Many clients at once, of which some go away in the middle: what was produced is counted in the
//! end, wherever it is.
//!
//! An element that a server popped for a client may be lost with the client's connection: each
//! connection that is dropped while it waits accounts for at most one. Nothing else may be missing,
//! and nothing may be there twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const LISTS: usize = 4;
const PRODUCERS: usize = 4;
const CONSUMERS: usize = 12;
/// Of each producer; every one goes to a list, and another to the stream.
const ELEMENTS: usize = 2500;

/// What the consumers of one kind got, and how many waits were dropped.
#[derive(Default)]
struct Got {
    popped: Vec<String>,
    moved: Vec<String>,
    read: Vec<String>,
    dropped_pops: usize,
}

/// A step of a 64-bit xorshift: a test needs no better numbers.
fn below(state: &mut u64, n: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state % n as u64).expect("it was one")
}

fn texts(reply: &Reply) -> Vec<String> {
    let elements = reply.elements().unwrap_or_default().iter();
    elements.filter_map(Reply::text).collect()
}

/// The ids of the entries in a reply of XREADGROUP.
fn ids(reply: &Reply) -> Vec<String> {
    let streams = reply.elements().unwrap_or_default().iter();
    let entries = streams.filter_map(|stream| stream.elements()?.get(1)?.elements());
    entries
        .flatten()
        .filter_map(|entry| entry.elements()?.first()?.text())
        .collect()
}

fn produce(server: &Server, number: usize) {
    let mut client = connect(server);
    let mut random = 0x9e37_79b9 + number as u64;
    let mut at = 0;
    while at < ELEMENTS {
        // A pipeline of a few, which may wake clients of every thread.
        let few = (1 + below(&mut random, 8)).min(ELEMENTS - at);
        for element in at..at + few {
            let list = format!("list{}", below(&mut random, LISTS));
            let element = format!("{number}.{element}");
            client
                .send(&["RPUSH", &list, &element])
                .expect("it is read");
            client
                .send(&["XADD", "stream", "*", "element", &element])
                .expect("it is read");
        }
        for _ in 0..2 * few {
            assert!(!client.receive().expect("a reply").is_error());
        }
        at += few;
    }
}

fn consume(server: &Server, number: usize, is_over: &AtomicBool) -> Got {
    let mut got = Got::default();
    let mut random = 0xdead_beef + number as u64;
    let consumer = format!("consumer{number}");
    let mut client = connect(server);
    while !is_over.load(Ordering::Acquire) {
        let from = format!("list{}", below(&mut random, LISTS));
        let other = format!("list{}", below(&mut random, LISTS));
        let kind = below(&mut random, 3);
        let command: Vec<&str> = match kind {
            0 => vec!["BLPOP", &from, &other, "0.02"],
            1 => vec!["BLMOVE", &from, "done", "LEFT", "RIGHT", "0.02"],
            _ => vec![
                "XREADGROUP",
                "GROUP",
                "group",
                &consumer,
                "COUNT",
                "3",
                "BLOCK",
                "20",
                "STREAMS",
                "stream",
                ">",
            ],
        };
        client.send(&command).expect("it is read");
        if below(&mut random, 4) == 0 {
            // It hangs up while it waits, or while it is served.
            client = connect(server);
            got.dropped_pops += usize::from(kind == 0);
            continue;
        }
        let reply = client.receive().expect("a reply");
        assert!(!reply.is_error(), "{command:?}: {reply:?}");
        match kind {
            0 => got.popped.extend(texts(&reply).into_iter().nth(1)),
            1 => got.moved.extend(reply.text()),
            _ => got.read.extend(ids(&reply)),
        }
    }
    got
}

#[test]
fn what_is_produced_is_received_or_there_whoever_hangs_up() {
    let server = server(&["--threads", "8"]);
    let mut main = connect(&server);
    let created = call(&mut main, "XGROUP CREATE stream group 0 MKSTREAM");
    assert_eq!(created, status("OK"));
    let is_over = AtomicBool::new(false);
    let mut got = Got::default();
    std::thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        let consumers: Vec<_> = (0..CONSUMERS)
            .map(|number| scope.spawn(move || consume(server, number, is_over)))
            .collect();
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|number| scope.spawn(move || produce(server, number)))
            .collect();
        let produced: Vec<_> = producers.into_iter().map(|p| p.join()).collect();
        // Even where one failed: nobody else ends the consumers.
        is_over.store(true, Ordering::Release);
        assert!(produced.iter().all(Result::is_ok), "a producer failed");
        for consumer in consumers {
            let more = consumer.join().expect("it ends");
            got.popped.extend(more.popped);
            got.moved.extend(more.moved);
            got.read.extend(more.read);
            got.dropped_pops += more.dropped_pops;
        }
    });
    until("all others are gone", || {
        let clients = call(&mut main, "INFO clients").text().expect("a text");
        clients.contains("connected_clients:1\r\n") && clients.contains("blocked_clients:0\r\n")
    });
    check_lists(&mut main, &got);
    check_stream(&mut main, &got);
    // Whoever is gone waits for nothing any more.
    for list in 0..LISTS {
        let before = call(&mut main, &format!("LLEN list{list}")).integer();
        let after = call(&mut main, &format!("RPUSH list{list} last")).integer();
        assert_eq!(after, before.map(|len| len + 1));
        assert_eq!(call(&mut main, &format!("RPOP list{list}")), bulk("last"));
    }
}

fn check_lists(main: &mut Client, got: &Got) {
    let done = texts(&call(main, "LRANGE done 0 -1"));
    let mut found: Vec<String> = got.popped.iter().chain(&done).cloned().collect();
    for list in 0..LISTS {
        found.extend(texts(&call(main, &format!("LRANGE list{list} 0 -1"))));
    }
    let distinct: BTreeSet<&String> = found.iter().collect();
    assert_eq!(distinct.len(), found.len(), "an element is there twice");
    let produced = PRODUCERS * ELEMENTS;
    let missing = produced
        .checked_sub(found.len())
        .expect("none from nowhere");
    assert!(
        missing <= got.dropped_pops,
        "{missing} of {produced} are missing, and {} waits were dropped",
        got.dropped_pops
    );
    // What moved was not on its way to anybody: it is there whether its client heard of it or not.
    let done: BTreeSet<String> = done.into_iter().collect();
    let moved: BTreeSet<String> = got.moved.iter().cloned().collect();
    assert_eq!(moved.len(), got.moved.len(), "an element moved twice");
    assert!(
        moved.is_subset(&done),
        "what moved is not where it moved to"
    );
}

fn check_stream(main: &mut Client, got: &Got) {
    let produced = PRODUCERS * ELEMENTS;
    let read: BTreeSet<String> = got.read.iter().cloned().collect();
    assert_eq!(read.len(), got.read.len(), "an entry is delivered twice");
    let rest = call(main, "XREADGROUP GROUP group main STREAMS stream >");
    let rest: BTreeSet<String> = ids(&rest).into_iter().collect();
    assert!(read.is_disjoint(&rest), "an entry is delivered twice");
    // All are delivered now, and none is acknowledged: each is in somebody's hands, even where its
    // reply went down with a connection.
    let pending = call(main, &format!("XPENDING stream group - + {}", 2 * produced));
    let owned: Vec<(String, String)> = pending
        .elements()
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| {
            let words = texts(entry);
            Some((words.first()?.clone(), words.get(1)?.clone()))
        })
        .collect();
    assert_eq!(owned.len(), produced);
    let to_main = owned.iter().filter(|(_, owner)| owner == "main").count();
    assert_eq!(to_main, rest.len());
    let all: BTreeSet<&String> = owned.iter().map(|(id, _)| id).collect();
    assert!(read.iter().all(|id| all.contains(id)), "an entry is lost");
}
