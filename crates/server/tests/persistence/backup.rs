//! BACKUP: what it makes is a log as of its end, whatever happens meanwhile and afterwards.

use std::path::Path;

use client::{Client, Reply};

use super::data::{Level, fill, walk};
use super::exchange::{PEERS, peer, same};
use super::{Folder, THREADS, ask, call, connect, ours, start, until, until_rewritten};

fn state(client: &mut Client) -> (String, String) {
    let status = ask(client, "BACKUP STATUS");
    let words: Vec<String> = status
        .elements()
        .expect("pairs")
        .iter()
        .map(|word| word.text().unwrap_or_default())
        .collect();
    (words[1].clone(), words[3].clone())
}

#[track_caller]
fn until_state(client: &mut Client, wanted: &str) {
    until(wanted, || state(client).0 == wanted);
}

#[track_caller]
fn refused(client: &mut Client, words: &[&[u8]]) -> String {
    match call(client, words) {
        Reply::Error(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("no error: {other:?}"),
    }
}

fn files(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
}

/// A folder with the backup of another one as its log.
fn restored(from: &Folder) -> Folder {
    let folder = Folder::new();
    let to = folder.file("appendonlydir");
    std::fs::create_dir(&to).expect("it is made");
    for name in files(&from.file("backupdir")) {
        let source = from.file("backupdir").join(&name);
        std::fs::copy(source, to.join(name)).expect("it is copied");
    }
    folder
}

#[test]
fn a_backup_is_a_log_as_of_its_end() {
    for threads in THREADS {
        for log in ["yes", "no"] {
            let folder = Folder::new();
            let options = ["--threads", threads, "--appendonly", log];
            let server = start(ours(), &folder, &options);
            let mut client = connect(&server);
            fill(&mut client, Level::Plain);
            ask(&mut client, "BACKUP START");
            until_state(&mut client, "incrementing");
            ask(&mut client, "SET during 1");
            if log == "yes" {
                ask(&mut client, "BGREWRITEAOF");
                ask(&mut client, "SET during 2");
            }
            ask(&mut client, "DEL int:0");
            let wanted = walk(&mut client, Level::Plain);
            ask(&mut client, "BACKUP SEAL");
            assert_eq!(state(&mut client).0, "sealed");
            ask(&mut client, "SET after 1");
            ask(&mut client, "FLUSHALL");
            if log == "yes" {
                until_rewritten(&mut client);
            } else {
                until("the log is gone", || {
                    files(&folder.file("appendonlydir")).is_empty()
                });
            }
            let listed = ask(&mut client, "BACKUP LIST");
            assert_eq!(listed.elements().expect("paths").len(), 3);
            let copy = restored(&folder);
            let again = start(ours(), &copy, &["--appendonly", "yes"]);
            same(&walk(&mut connect(&again), Level::Plain), &wanted, log);
            ask(&mut client, "BACKUP CLEANUP");
            assert!(files(&folder.file("backupdir")).is_empty());
        }
    }
}

#[test]
fn backups_go_from_server_to_server() {
    for (name, level, format) in PEERS {
        let Some(program) = peer(name) else { continue };
        let level = match format {
            "redis-7.0" => Level::Plain,
            _ => level,
        };
        let folder = Folder::new();
        let server = start(ours(), &folder, &["--tidemill-rdb-format", format]);
        let mut client = connect(&server);
        fill(&mut client, level);
        ask(&mut client, "BACKUP START");
        until_state(&mut client, "incrementing");
        ask(&mut client, "SET during 1");
        ask(&mut client, "BACKUP SEAL");
        let wanted = walk(&mut client, level);
        let theirs = start(&program, &restored(&folder), &["--appendonly", "yes"]);
        same(&walk(&mut connect(&theirs), level), &wanted, name);
        if name == "redis-8.10" {
            let folder = Folder::new();
            let theirs = start(&program, &folder, &[]);
            let mut client = connect(&theirs);
            fill(&mut client, level);
            ask(&mut client, "BACKUP START");
            until_state(&mut client, "incrementing");
            ask(&mut client, "SET during 1");
            ask(&mut client, "BACKUP SEAL");
            let wanted = walk(&mut client, level);
            let copy = restored(&folder);
            let again = start(ours(), &copy, &["--appendonly", "yes"]);
            same(&walk(&mut connect(&again), level), &wanted, name);
        }
    }
}

#[test]
fn a_backup_goes_one_way() {
    for threads in THREADS {
        let folder = Folder::new();
        let options = ["--threads", threads, "--appendonly", "yes"];
        let server = start(ours(), &folder, &options);
        let mut client = connect(&server);
        ask(&mut client, "BACKUP START");
        until_state(&mut client, "incrementing");
        let started = refused(&mut client, &[b"BACKUP", b"START"]);
        assert_eq!(
            started,
            "ERR A backup is already in progress, ABORT it first"
        );
        let cleaned = refused(&mut client, &[b"BACKUP", b"CLEANUP"]);
        assert_eq!(cleaned, "ERR Backup is in progress");
        ask(&mut client, "BACKUP ABORT");
        let failed = ("failed".to_owned(), "aborted by user".to_owned());
        assert_eq!(state(&mut client), failed);
        assert!(files(&folder.file("backupdir")).is_empty());
        std::fs::write(folder.file("backupdir/other"), "x").expect("it is written");
        let started = refused(&mut client, &[b"BACKUP", b"START"]);
        let full = "ERR Backup directory backupdir is not empty, CLEANUP it first";
        assert_eq!(started, full);
        ask(&mut client, "BACKUP CLEANUP");
        ask(&mut client, "BACKUP START");
        until_state(&mut client, "incrementing");
        ask(&mut client, "CONFIG SET appendonly no");
        let failed = ("failed".to_owned(), "appendonly is stopped".to_owned());
        assert_eq!(state(&mut client), failed);
        until("the files are gone", || {
            files(&folder.file("backupdir")).is_empty()
        });
        // Without a log, one is written for the backup; turned on meanwhile, it stays.
        ask(&mut client, "BACKUP START");
        until_state(&mut client, "incrementing");
        ask(&mut client, "CONFIG SET appendonly yes");
        ask(&mut client, "BACKUP SEAL");
        let started = refused(&mut client, &[b"BACKUP", b"START"]);
        assert_eq!(started, "ERR A sealed backup exists, CLEANUP it first");
        ask(&mut client, "SET k v");
        assert_eq!(
            ask(&mut client, "WAITAOF 1 0 0").elements().expect("two")[0],
            Reply::Integer(1)
        );
        ask(&mut client, "CONFIG SET backup-sealed-ttl 1");
        until_state(&mut client, "idle");
        assert!(files(&folder.file("backupdir")).is_empty());
    }
}
