//! Snapshots go from each real server to us and from us to each, and hold the same.

use std::path::PathBuf;

use super::data::{Level, fill, walk};
use super::{Folder, ask, connect, ours, start};

/// The real servers, what they know, and the format that they read.
pub const PEERS: [(&str, Level, &str); 4] = [
    ("redis-8.10", Level::Everything, "redis-8.10"),
    ("redis-8.2", Level::TimedFields, "redis-7.0"),
    ("redis-7.0", Level::Plain, "redis-7.0"),
    ("valkey-9.1", Level::TimedFields, "valkey-9.1"),
];

pub fn peer(name: &str) -> Option<PathBuf> {
    let found = testkit::peer(name);
    if found.is_none() {
        eprintln!("skipped: there is no {name} here (shared/peers/install puts it)");
    }
    found
}

pub fn same(one: &[String], other: &[String], what: &str) {
    for (a, b) in one.iter().zip(other) {
        assert_eq!(a, b, "{what}");
    }
    assert_eq!(one.len(), other.len(), "{what}: as many keys");
}

#[test]
fn what_a_real_server_saved_is_loaded() {
    for (name, level, _) in PEERS {
        let Some(program) = peer(name) else { continue };
        let folder = Folder::new();
        let theirs = {
            let server = start(&program, &folder, &[]);
            let mut client = connect(&server);
            fill(&mut client, level);
            ask(&mut client, "SAVE");
            walk(&mut client, level)
        };
        for threads in super::THREADS {
            let server = start(ours(), &folder, &["--threads", threads]);
            let mut client = connect(&server);
            same(&walk(&mut client, level), &theirs, name);
        }
    }
}

#[test]
fn what_we_saved_is_loaded_by_a_real_server() {
    for (name, level, format) in PEERS {
        let Some(program) = peer(name) else { continue };
        // What the format cannot say is not there.
        let level = match format {
            "redis-7.0" => Level::Plain,
            _ => level,
        };
        let folder = Folder::new();
        let theirs = {
            let server = start(ours(), &folder, &["--tidemill-rdb-format", format]);
            let mut client = connect(&server);
            fill(&mut client, level);
            ask(&mut client, "SAVE");
            walk(&mut client, level)
        };
        let server = start(&program, &folder, &["--sanitize-dump-payload", "yes"]);
        let mut client = connect(&server);
        same(&walk(&mut client, level), &theirs, name);
    }
}

#[test]
fn our_own_snapshots_hold_everything() {
    for (format, level) in [
        ("redis-8.10", Level::Everything),
        ("valkey-9.1", Level::TimedFields),
        ("redis-7.0", Level::Plain),
    ] {
        for compression in ["yes", "no"] {
            let folder = Folder::new();
            let options = [
                "--tidemill-rdb-format",
                format,
                "--rdbcompression",
                compression,
            ];
            let before = {
                let server = start(ours(), &folder, &options);
                let mut client = connect(&server);
                fill(&mut client, level);
                ask(&mut client, "SAVE");
                walk(&mut client, level)
            };
            let server = start(ours(), &folder, &options);
            let mut client = connect(&server);
            same(&walk(&mut client, level), &before, format);
        }
    }
}
