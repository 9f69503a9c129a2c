//! Snapshots in the background: what they hold, what they cost, what happens when they fail.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

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
