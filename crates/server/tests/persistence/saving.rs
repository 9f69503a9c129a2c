//! When snapshots are written and loaded, and what clients see of it.

use std::os::unix::fs::FileTypeExt;
use std::process::Command;

use client::Reply;
use testkit::Server;

use super::{Folder, THREADS, ask, call, connect, ours, start};

/// A field of INFO.
fn info(client: &mut client::Client, field: &str) -> String {
    let text = ask(client, "INFO persistence").text().expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in {text}"))
        .to_owned()
}

#[test]
fn saving_counts_and_is_told() {
    for threads in THREADS {
        let folder = Folder::new();
        let server = start(ours(), &folder, &["--threads", threads]);
        let mut client = connect(&server);
        ask(&mut client, "MSET a 1 b 2");
        assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "2");
        let before = ask(&mut client, "LASTSAVE").integer().unwrap();
        assert_eq!(ask(&mut client, "SAVE"), Reply::Status(b"OK".to_vec()));
        assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
        assert_eq!(info(&mut client, "rdb_saves"), "1");
        assert!(ask(&mut client, "LASTSAVE").integer().unwrap() >= before);
        drop(server);
        let server = start(ours(), &folder, &["--threads", threads]);
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, "GET b").text().unwrap(), "2");
        assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
        assert_eq!(info(&mut client, "rdb_last_load_keys_loaded"), "2");
    }
}

#[test]
fn dead_keys_are_not_loaded() {
    let folder = Folder::new();
    let server = start(ours(), &folder, &["--enable-debug-command", "yes"]);
    let mut client = connect(&server);
    ask(&mut client, "DEBUG SET-ACTIVE-EXPIRE 0");
    ask(&mut client, "SET dead 1 PXAT 1000000000000");
    ask(&mut client, "SET living 1 PXAT 4102444800000");
    ask(&mut client, "SET soon 1 PX 1");
    ask(&mut client, "SAVE");
    while ask(&mut client, "PTTL soon") != Reply::Integer(-2) {}
    drop(server);
    let server = start(ours(), &folder, &[]);
    let mut client = connect(&server);
    assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(1));
    assert_eq!(
        ask(&mut client, "PEXPIRETIME living"),
        Reply::Integer(4_102_444_800_000)
    );
    assert_eq!(info(&mut client, "rdb_last_load_keys_expired"), "1");
}

#[test]
fn the_end_saves_where_it_should() {
    for threads in THREADS {
        for (points, command, is_saved) in [
            ("", "SHUTDOWN", false),
            ("3600 1", "SHUTDOWN", true),
            ("3600 1", "SHUTDOWN NOSAVE", false),
            ("", "SHUTDOWN SAVE", true),
            ("3600 1", "SIGTERM", true),
            ("", "SIGTERM", false),
        ] {
            let folder = Folder::new();
            let options = ["--threads", threads, "--save", points];
            let mut server = start(ours(), &folder, &options);
            let mut client = connect(&server);
            ask(&mut client, "SET k v");
            if command == "SIGTERM" {
                let id = server.process_id().to_string();
                let sent = Command::new("kill").args(["-TERM", &id]).status();
                assert!(sent.expect("kill runs").success());
            } else {
                let words: Vec<&str> = command.split(' ').collect();
                client.send(&words).expect("sent");
            }
            let status = server.await_end().unwrap_or_else(|why| panic!("{why}"));
            assert!(status.success(), "{command}: {}", server.log());
            let saved = folder.file("dump.rdb").exists();
            assert_eq!(
                saved,
                is_saved,
                "{command} with '{points}': {}",
                server.log()
            );
        }
    }
}

#[test]
fn where_nothing_can_be_written_the_server_goes_on() {
    let folder = Folder::new();
    // A folder stands where the file should be.
    std::fs::create_dir(folder.file("dump.rdb")).unwrap();
    let options = ["--dbfilename", "other.rdb"];
    let server = start(
        ours(),
        &folder,
        &[&options[..], &["--save", "3600 1"]].concat(),
    );
    let mut client = connect(&server);
    ask(&mut client, "SET k v");
    ask(&mut client, "SAVE");
    ask(&mut client, "CONFIG SET tidemill-rdb-format redis-7.0");
    ask(&mut client, "ARSET array 0 x");
    let reply = call(&mut client, &[b"SAVE"]);
    assert!(reply.is_error(), "{reply:?}");
    assert!(server.log().contains("key 'array'"), "{}", server.log());
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    let reply = call(&mut client, &[b"SHUTDOWN"]);
    assert_eq!(
        reply,
        Reply::Error(b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec())
    );
    assert_eq!(ask(&mut client, "GET k").text().unwrap(), "v");
    let names: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "no half file is left: {names:?}");
}

#[test]
fn debug_reload_keeps_everything() {
    for threads in THREADS {
        let folder = Folder::new();
        let options = ["--enable-debug-command", "yes", "--threads", threads];
        let server = start(ours(), &folder, &options);
        let mut client = connect(&server);
        super::data::fill(&mut client, super::data::Level::Everything);
        let before = ask(&mut client, "DEBUG DIGEST");
        ask(&mut client, "DEBUG RELOAD");
        assert_eq!(ask(&mut client, "DEBUG DIGEST"), before);
        ask(&mut client, "SET int:0 changed");
        ask(&mut client, "DEBUG RELOAD NOSAVE");
        assert_eq!(ask(&mut client, "DEBUG DIGEST"), before);
        ask(&mut client, "SET int:0 changed");
        ask(&mut client, "SET more 1");
        ask(&mut client, "DEBUG RELOAD NOSAVE NOFLUSH MERGE");
        assert_eq!(ask(&mut client, "GET int:0").text().unwrap(), "0");
        assert_eq!(ask(&mut client, "GET more").text().unwrap(), "1");
        let tide = ask(&mut client, "FCALL tide 0 flow");
        assert_eq!(tide.text().unwrap(), "ebb and flow");
        let reply = call(&mut client, &[b"DEBUG", b"RELOAD", b"NOSAVE", b"NOFLUSH"]);
        assert_eq!(
            reply,
            Reply::Error(b"ERR Error trying to load the RDB dump, check server logs.".to_vec())
        );
    }
}

#[test]
fn a_damaged_file_is_not_loaded_in_part() {
    let folder = Folder::new();
    let server = start(ours(), &folder, &[]);
    let mut client = connect(&server);
    ask(&mut client, "SET k v");
    ask(&mut client, "SAVE");
    drop(server);
    let good = std::fs::read(folder.file("dump.rdb")).unwrap();
    let mut bad = good.clone();
    let at = bad.len() - 12;
    bad[at] ^= 1;
    for file in [&bad[..], &good[..good.len() - 3], &good[..4], b""] {
        std::fs::write(folder.file("dump.rdb"), file).unwrap();
        for threads in THREADS {
            let options = ["--dir", folder.text(), "--threads", threads];
            let error = Server::start(ours(), &options).expect_err("it does not start");
            assert!(error.contains("Can't load the snapshot"), "{error}");
            assert!(error.contains("dump.rdb"), "{error}");
            assert!(error.contains("at offset"), "{error}");
        }
        assert_eq!(std::fs::read(folder.file("dump.rdb")).unwrap(), file);
    }
}

#[test]
fn while_it_loads_the_server_answers() {
    for threads in THREADS {
        let folder = Folder::new();
        // The file comes through a pipe, so it takes as long as we like.
        let server = start(ours(), &folder, &[]);
        let mut client = connect(&server);
        ask(&mut client, "SET k v");
        ask(&mut client, "SAVE");
        drop(server);
        let file = std::fs::read(folder.file("dump.rdb")).unwrap();
        std::fs::remove_file(folder.file("dump.rdb")).unwrap();
        let pipe = folder.file("dump.rdb");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
        let (half, rest) = file.split_at(file.len() / 2);
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (half, rest, to) = (half.to_vec(), rest.to_vec(), pipe.clone());
        let writer = std::thread::spawn(move || {
            use std::io::Write;
            let mut out = std::fs::OpenOptions::new().write(true).open(to).unwrap();
            out.write_all(&half).unwrap();
            wait.recv().unwrap();
            out.write_all(&rest).unwrap();
        });
        let options = ["--dir", folder.text(), "--threads", threads];
        let server = Server::start_loading(ours(), &options).unwrap_or_else(|why| panic!("{why}"));
        let mut client = connect(&server);
        let loading = Reply::Error(b"LOADING Redis is loading the dataset in memory".to_vec());
        for words in [
            &[&b"GET"[..], b"k"][..],
            &[b"SET", b"k", b"w"],
            &[b"PING"],
            &[b"SAVE"],
        ] {
            assert_eq!(call(&mut client, words), loading);
        }
        assert_eq!(info(&mut client, "loading"), "1");
        info(&mut client, "loading_loaded_perc");
        ask(&mut client, "MULTI");
        assert_eq!(call(&mut client, &[b"SET", b"k", b"w"]), loading);
        let aborted = "EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(
            call(&mut client, &[b"EXEC"]),
            Reply::Error(aborted.as_bytes().to_vec())
        );
        go.send(()).unwrap();
        writer.join().unwrap();
        while call(&mut client, &[b"PING"]) == loading {}
        assert_eq!(ask(&mut client, "GET k").text().unwrap(), "v");
        assert_eq!(info(&mut client, "loading"), "0");
    }
}

#[test]
fn the_checker_says_what_is_wrong() {
    let folder = Folder::new();
    let server = start(ours(), &folder, &[]);
    let mut client = connect(&server);
    ask(&mut client, "SET k v PXAT 4102444800000");
    ask(&mut client, "HSET h f v");
    ask(&mut client, "HPEXPIREAT h 4102444800000 FIELDS 1 f");
    ask(&mut client, "SAVE");
    drop(server);
    let check = |path: &std::path::Path| {
        let tool = env!("CARGO_BIN_EXE_tidemill-check-rdb");
        let ran = Command::new(tool).arg(path).output().expect("it runs");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        (ran.status.code(), text)
    };
    let good = std::fs::read(folder.file("dump.rdb")).unwrap();
    let (code, text) = check(&folder.file("dump.rdb"));
    assert_eq!(code, Some(0), "{text}");
    for line in [
        "AUX FIELD redis-ver = '",
        "] Selecting DB ID 0",
        "] Checksum OK",
        "] \\o/ RDB looks OK! \\o/",
        "[info] 2 keys read",
        "[info] 1 expires",
        "[info] 0 already expired",
        "[info] 1 subexpires",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let mut bad = good.clone();
    let at = bad.len() - 1;
    bad[at] ^= 1;
    for (file, line) in [
        (&bad[..], "RDB CRC error"),
        (&good[..good.len() - 9], "Unexpected EOF"),
        (b"REDIS9999", "Can't handle RDB format version REDIS9999"),
        (b"hello, world", "Wrong signature"),
    ] {
        std::fs::write(folder.file("file"), file).unwrap();
        let (code, text) = check(&folder.file("file"));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("--- RDB ERROR DETECTED ---"), "{text}");
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(check(&folder.file("nothing")).0, Some(1));
    assert_eq!(check(&folder.0).0, Some(1), "a folder");
}
