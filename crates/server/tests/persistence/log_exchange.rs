//! Append-only logs go from each real server to us and from us to each, and hold the same.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::data::{Level, fill, walk};
use super::exchange::{PEERS, peer, same};
use super::{Folder, THREADS, ask, connect, ours, start, until_rewritten};

/// How a log is made: whether it is rewritten, and whether to a snapshot.
const WAYS: [(&str, &str); 3] = [("", "yes"), ("BGREWRITEAOF", "yes"), ("BGREWRITEAOF", "no")];

/// What a crash may leave behind the last change.
const TAILS: [&[u8]; 4] = [
    b"",
    b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$4\r\ntorn\r\n$1\r\n1\r\n",
    b"*3\r\n$3\r\nSET\r\n$4\r\ntorn\r\n$300\r\nabc",
    &[0; 3000],
];

fn last_increment(folder: &Path) -> std::path::PathBuf {
    let folder = folder.join("appendonlydir");
    let manifest = std::fs::read_to_string(folder.join("appendonly.aof.manifest"));
    let manifest = manifest.expect("a manifest");
    let last = manifest.lines().rfind(|line| line.contains(" type i"));
    let name = last.and_then(|line| line.split(' ').nth(1));
    folder.join(name.expect("an increment"))
}

#[test]
fn the_log_of_a_real_server_is_loaded() {
    for (name, level, _) in PEERS {
        let Some(program) = peer(name) else { continue };
        for (rewrite, preamble) in WAYS {
            let what = format!("{name} {rewrite} {preamble}");
            let folder = Folder::new();
            let options = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
            {
                let server = start(&program, &folder, &options);
                let mut client = connect(&server);
                fill(&mut client, level);
                if !rewrite.is_empty() {
                    ask(&mut client, rewrite);
                    until_rewritten(&mut client);
                    ask(&mut client, "SET after 1");
                    ask(&mut client, "XADD stream:trimmed 9-1 a 9");
                }
            }
            // Not all that it had can be said in commands: what it makes of its own log counts.
            let theirs = {
                let server = start(&program, &folder, &options);
                walk(&mut connect(&server), level)
            };
            for tail in TAILS {
                let path = last_increment(&folder.0);
                let mut file = OpenOptions::new().append(true).open(path).expect("there");
                file.write_all(tail).expect("it is written");
                for threads in THREADS {
                    let server = start(
                        ours(),
                        &folder,
                        &["--appendonly", "yes", "--threads", threads],
                    );
                    same(&walk(&mut connect(&server), level), &theirs, &what);
                }
            }
        }
    }
}

#[test]
fn our_log_is_loaded_by_a_real_server() {
    for (name, level, format) in PEERS {
        let Some(program) = peer(name) else { continue };
        // What the format cannot say is not there.
        let level = match format {
            "redis-7.0" => Level::Plain,
            _ => level,
        };
        for (rewrite, preamble) in WAYS {
            let what = format!("{name} {rewrite} {preamble}");
            let folder = Folder::new();
            let ours_before = {
                let options = [
                    "--appendonly",
                    "yes",
                    "--appendfsync",
                    "always",
                    "--aof-timestamp-enabled",
                    "yes",
                    "--aof-use-rdb-preamble",
                    preamble,
                    "--tidemill-rdb-format",
                    format,
                ];
                let server = start(ours(), &folder, &options);
                let mut client = connect(&server);
                fill(&mut client, level);
                if !rewrite.is_empty() {
                    ask(&mut client, rewrite);
                    until_rewritten(&mut client);
                    ask(&mut client, "SET after 1");
                    ask(&mut client, "XADD stream:trimmed 9-1 a 9");
                }
                walk(&mut client, level)
            };
            let server = start(&program, &folder, &["--appendonly", "yes"]);
            let theirs = walk(&mut connect(&server), level);
            same(&theirs, &ours_before, &what);
            drop(server);
            // And back, with what the real server adds to it.
            let server = start(ours(), &folder, &["--appendonly", "yes"]);
            same(&walk(&mut connect(&server), level), &theirs, &what);
        }
    }
}
