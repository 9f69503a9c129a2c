//! Snapshots in the background: what they hold, what they cost, what happens when they fail.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// A directory that is gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidemill-snapshots-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn server(&self, options: &[&str]) -> Server {
        let path = self.0.to_str().expect("text");
        server(&[&["--dir", path, "--enable-debug-command", "yes"], options].concat())
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the folder");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn info(client: &mut Client, field: &str) -> String {
    let text = call(client, "INFO persistence").text().expect("text");
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field}")).to_owned()
}

fn is_saving(client: &mut Client) -> bool {
    info(client, "rdb_bgsave_in_progress") == "1"
}

/// Values of every type, small ones and big ones.
fn fill(client: &mut Client) {
    call(client, "DEBUG POPULATE 20000 key 40");
    for n in 0..3000 {
        for command in [
            format!("HSET hash f{n} {n}"),
            format!("SADD set m{n}"),
            format!("ZADD zset {n} m{n}"),
            format!("RPUSH list e{n}"),
            format!("XADD stream {}-1 f {n}", n + 1),
            format!("SET timed:{n} {n} PX 100000000"),
        ] {
            client
                .send(&command.split(' ').collect::<Vec<_>>())
                .expect("sent");
        }
        for _ in 0..6 {
            client.receive().expect("a reply");
        }
    }
    for command in ["SELECT 3", "SET there 1", "SELECT 0"] {
        call(client, command);
    }
}

#[test]
fn a_snapshot_holds_the_moment_whatever_happens_meanwhile() {
    for threads in THREADS {
        let folder = Folder::new();
        let first = folder.server(&["--threads", threads]);
        let (mut client, mut other) = (connect(&first), connect(&first));
        fill(&mut client);
        let digest = call(&mut client, "DEBUG DIGEST");
        // In one transaction, so that nothing is saved before it is changed.
        for command in [
            "MULTI",
            "BGSAVE",
            "HSET hash f1 changed",
            "ZREM zset m2",
            "DEL list",
        ] {
            call(&mut other, command);
        }
        for n in 0..200 {
            call(&mut other, &format!("SET key:{n} changed"));
        }
        for command in [
            "SREM set m3",
            "XADD stream * f v",
            "SWAPDB 0 3",
            "FLUSHALL",
            "SET k v",
        ] {
            call(&mut other, command);
        }
        let replies = call(&mut other, "EXEC");
        let Reply::Array(replies) = replies else {
            panic!("{replies:?}");
        };
        assert_eq!(
            replies[0].text().as_deref(),
            Some("Background saving started")
        );
        until("the snapshot is there", || !is_saving(&mut client));
        assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
        assert_ne!(info(&mut client, "rdb_changes_since_last_save"), "0");
        assert_eq!(folder.names(), ["dump.rdb"]);
        let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
        drop(first);
        let second = folder.server(&["--threads", "1"]);
        let mut client = connect(&second);
        until("it is loaded", || info(&mut client, "loading") == "0");
        assert_eq!(
            call(&mut client, "DEBUG DIGEST"),
            digest,
            "{threads} threads"
        );
    }
}

/// Changes big values all over, until told to stop.
fn change_big_values(mut client: Client, stop: &AtomicBool) {
    let mut n = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..10 {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (which, value) = (n >> 33, n >> 50);
            let at = which % 4000;
            let commands = [
                format!("HSET hash f{at} {value}"),
                format!("HDEL hash f{}", which % 3999),
                format!("HPEXPIRE hash 100000000 FIELDS 1 f{}", which % 3998),
                format!("SADD set m{at}"),
                format!("SREM set m{}", which % 3997),
                format!("ZADD zset {value} m{at}"),
                format!("ZREM zset m{}", which % 3996),
                format!("LSET list {} e{value}", which % 3000),
                "RPOPLPUSH list list".to_owned(),
                format!("XADD stream * f {value}"),
                format!("XDEL stream {}-1", which % 3000),
            ];
            for command in &commands {
                let words = command.split(' ').collect::<Vec<_>>();
                client.send(&words).expect("sent");
            }
            for _ in &commands {
                client.receive().expect("a reply");
            }
        }
    }
}

#[test]
fn big_values_are_saved_as_they_were_while_others_change_them() {
    for threads in THREADS {
        let folder = Folder::new();
        let server = folder.server(&["--threads", threads]);
        let mut client = connect(&server);
        fill(&mut client);
        let stop = AtomicBool::new(false);
        let writers = [connect(&server), connect(&server)];
        let digest = std::thread::scope(|scope| {
            for writer in writers {
                scope.spawn(|| change_big_values(writer, &stop));
            }
            let mut digest = None;
            for _ in 0..3 {
                for command in ["MULTI", "DEBUG DIGEST", "BGSAVE"] {
                    call(&mut client, command);
                }
                let Reply::Array(mut replies) = call(&mut client, "EXEC") else {
                    panic!("no transaction");
                };
                digest = Some(replies.swap_remove(0));
                until("the snapshot is there", || !is_saving(&mut client));
            }
            stop.store(true, Ordering::Relaxed);
            digest
        });
        assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
        let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
        drop(server);
        let second = folder.server(&["--threads", "1"]);
        let mut client = connect(&second);
        until("it is loaded", || info(&mut client, "loading") == "0");
        let loaded = call(&mut client, "DEBUG DIGEST");
        assert_eq!(Some(loaded), digest, "{threads} threads");
    }
}

#[test]
fn a_failed_snapshot_refuses_writes_until_one_succeeds() {
    let folder = Folder::new();
    let server = folder.server(&["--save", "3600 1"]);
    let mut client = connect(&server);
    call(&mut client, "SET k v");
    std::fs::remove_dir_all(&folder.0).expect("the folder goes");
    call(&mut client, "BGSAVE");
    until("it failed", || !is_saving(&mut client));
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(info(&mut client, "rdb_saves_consecutive_failures"), "1");
    let refused = call(&mut client, "SET k w");
    assert!(
        matches!(&refused, Reply::Error(text) if text.starts_with(b"MISCONF")),
        "{refused:?}"
    );
    assert_eq!(call(&mut client, "GET k").text().as_deref(), Some("v"));
    std::fs::create_dir_all(&folder.0).expect("the folder comes");
    call(&mut client, "BGSAVE");
    until("it succeeded", || !is_saving(&mut client));
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
    call(&mut client, "SET k w");
    assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "1");
}

#[test]
fn a_save_point_saves() {
    let folder = Folder::new();
    let server = folder.server(&["--save", "1 2"]);
    let mut client = connect(&server);
    call(&mut client, "SET k v");
    call(&mut client, "SET l v");
    until("it was saved", || {
        info(&mut client, "rdb_changes_since_last_save") == "0"
    });
    assert_eq!(folder.names(), ["dump.rdb"]);
}
