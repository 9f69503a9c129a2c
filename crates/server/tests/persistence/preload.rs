//! `preload-file`: another file in place of what is in `dir`, which stays as it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use client::Reply;

use super::data::{Level, fill, walk};
use super::exchange::same;
use super::{Folder, THREADS, ask, connect, ours, start};

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("it is read");
        (path.display().to_string(), bytes)
    };
    entries.map(read).collect()
}

#[test]
fn another_file_is_loaded_and_stays_as_it_is() {
    let source = Folder::new();
    let wanted = {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = start(ours(), &source, &options);
        let mut client = connect(&server);
        fill(&mut client, Level::Everything);
        ask(&mut client, "SAVE");
        walk(&mut client, Level::Everything)
    };
    let log = source.file("appendonlydir");
    // A torn end is not loaded, and not cut off either.
    let increment = log.join("appendonly.aof.1.incr.aof");
    let mut bytes = std::fs::read(&increment).expect("it is there");
    bytes.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$4\r\ntorn");
    std::fs::write(&increment, &bytes).expect("it is written");
    let before = contents(&log);
    let manifest = format!("aof:{}/appendonly.aof.manifest", log.display());
    let single = format!("aof:{}", increment.display());
    let snapshot = format!("rdb:{}", source.file("dump.rdb").display());
    for threads in THREADS {
        for file in [&manifest, &single, &snapshot] {
            for log in ["yes", "no"] {
                let folder = Folder::new();
                let options = ["--threads", threads, "--appendonly", log];
                {
                    let server = start(ours(), &folder, &options);
                    let mut client = connect(&server);
                    ask(&mut client, "SET local 1");
                    ask(&mut client, "SAVE");
                }
                let preload = [&options[..], &["--preload-file", file]].concat();
                {
                    let server = start(ours(), &folder, &preload);
                    let mut client = connect(&server);
                    same(&walk(&mut client, Level::Everything), &wanted, file);
                    ask(&mut client, "SET later 1");
                    if log == "yes" {
                        ask(&mut client, "WAITAOF 1 0 0");
                    }
                }
                let server = start(ours(), &folder, &options);
                let mut client = connect(&server);
                let counted = ask(&mut client, "EXISTS local later int:1");
                let wanted = if log == "yes" { 2 } else { 1 };
                assert_eq!(counted, Reply::Integer(wanted), "{file} {log}");
            }
        }
    }
    assert_eq!(contents(&source.file("appendonlydir")), before);
}

#[test]
fn a_file_that_is_not_there_ends_the_start() {
    let folder = Folder::new();
    for (file, wanted) in [
        ("rdb:/nonexistent/dump.rdb", "No such file or directory"),
        ("aof:/nonexistent/a.manifest", "No such file or directory"),
        ("aof:/nonexistent/a.aof", "No such file or directory"),
        ("aof:/nonexistent/a.rdb", "not .aof or .manifest"),
        (
            "rdb:/nonexistent",
            "preload-file must end with an extension",
        ),
        (
            "rdb:dump.rdb",
            "argument must be in the format '[aof|rdb]:[filename]'",
        ),
    ] {
        let run = Command::new(ours())
            .args([
                "--port",
                "0",
                "--dir",
                folder.text(),
                "--preload-file",
                file,
            ])
            .output()
            .expect("it runs");
        assert!(!run.status.success(), "{file}");
        let said = [run.stdout, run.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains(wanted), "{file}: {said}");
    }
}
