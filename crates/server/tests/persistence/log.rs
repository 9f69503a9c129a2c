//! The append-only log while the server runs: turned on and off, rewritten, loaded again, waited
//! for.

use client::{Client, Reply};
use testkit::Server;

use super::data::{Level, fill, walk};
use super::exchange::same;
use super::{
    Folder, THREADS, ask, call, connect, ours, persistence, start, until, until_rewritten,
};

fn field(client: &mut Client, name: &str) -> String {
    persistence(client, name).unwrap_or_else(|| panic!("no {name}"))
}

fn counts(reply: &Reply) -> (i64, i64) {
    let two = reply.elements().expect("two numbers");
    let number = |at: usize| two[at].integer().expect("a number");
    (number(0), number(1))
}

fn error(reply: &Reply) -> String {
    match reply {
        Reply::Error(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("no error: {other:?}"),
    }
}

fn server(folder: &Folder, options: &[&str]) -> Server {
    let all = [&["--enable-debug-command", "yes"], options].concat();
    start(ours(), folder, &all)
}

const LIBRARY: &[u8] =
    b"#!lua name=one\nredis.register_function('first', function() return 'here' end)";

#[test]
fn a_log_that_is_turned_on_holds_what_was_there_and_what_comes() {
    for threads in THREADS {
        for preamble in ["yes", "no"] {
            let options = ["--threads", threads, "--aof-use-rdb-preamble", preamble];
            let folder = Folder::new();
            let before = {
                let server = server(&folder, &options);
                let mut client = connect(&server);
                fill(&mut client, Level::Everything);
                ask(&mut client, "CONFIG SET appendonly yes");
                assert_eq!(field(&mut client, "aof_enabled"), "1");
                ask(&mut client, "SET meanwhile 1");
                ask(&mut client, "WAITAOF 1 0 0");
                until_rewritten(&mut client);
                ask(&mut client, "SET after 2");
                ask(&mut client, "WAITAOF 1 0 0");
                walk(&mut client, Level::Everything)
            };
            let options = [&options[..], &["--appendonly", "yes"]].concat();
            let server = server(&folder, &options);
            let now = walk(&mut connect(&server), Level::Everything);
            same(&now, &before, preamble);
        }
    }
}

#[test]
fn the_log_goes_on_and_off_in_one_breath() {
    for threads in THREADS {
        let folder = Folder::new();
        let server = server(&folder, &["--threads", threads]);
        let mut client = connect(&server);
        let mut others: Vec<Client> = (0..3).map(|_| connect(&server)).collect();
        for round in 0..30 {
            let line = format!(
                "SET k {round}\r\nCONFIG SET appendonly yes\r\nSET k {round}\r\n\
                 CONFIG SET appendonly no\r\nCONFIG SET appendonly yes\r\nINCR n\r\n"
            );
            client.send_bytes(line.as_bytes()).expect("it is sent");
            for other in &mut others {
                other.send_bytes(b"INCR all\r\nINCR all\r\n").expect("sent");
            }
            for other in &mut others {
                assert!(!other.receive().expect("a reply").is_error());
                assert!(!other.receive().expect("a reply").is_error());
            }
            for _ in 0..6 {
                let reply = client.receive().expect("a reply");
                assert!(!reply.is_error(), "{reply:?}");
            }
        }
        ask(&mut client, "WAITAOF 1 0 0");
        until_rewritten(&mut client);
        ask(&mut client, "DEBUG LOADAOF");
        assert_eq!(ask(&mut client, "GET n").text().as_deref(), Some("30"));
        assert_eq!(ask(&mut client, "GET all").text().as_deref(), Some("180"));
        ask(&mut client, "CONFIG SET appendonly no");
        assert_eq!(field(&mut client, "aof_enabled"), "0");
    }
}

#[test]
fn a_log_without_a_base_leaves_the_one_before() {
    let folder = Folder::new();
    {
        let server = server(&folder, &["--appendonly", "yes", "--appendfsync", "always"]);
        let mut client = connect(&server);
        ask(&mut client, "SET old 1");
        ask(&mut client, "CONFIG SET appendonly no");
        ask(&mut client, "SET new 1");
        // A snapshot that cannot end soon holds the rewrite back.
        ask(&mut client, "DEBUG POPULATE 20000");
        let sent = "BGSAVE\r\nCONFIG SET appendonly yes\r\nINFO persistence\r\n";
        client.send_bytes(sent.as_bytes()).expect("it is sent");
        for _ in 0..2 {
            assert!(!client.receive().expect("a reply").is_error());
        }
        let info = client.receive().expect("a reply").text().expect("a text");
        assert!(info.contains("aof_rewrite_scheduled:1"), "{info}");
        // Killed here, or a little later.
    }
    let server = server(&folder, &["--appendonly", "yes"]);
    let mut client = connect(&server);
    let is_old = ask(&mut client, "EXISTS old new");
    assert!(matches!(is_old, Reply::Integer(1 | 2)), "{is_old:?}");
    assert_eq!(ask(&mut client, "EXISTS old"), Reply::Integer(1));
}

#[test]
fn the_log_is_loaded_again() {
    for threads in THREADS {
        let folder = Folder::new();
        let server = server(&folder, &["--threads", threads]);
        let mut client = connect(&server);
        let none = "ERR Error trying to load the AOF files, check server logs.";
        ask(&mut client, "SET gone 1");
        assert_eq!(error(&call(&mut client, &[b"DEBUG", b"LOADAOF"])), none);
        assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(0));
        ask(&mut client, "CONFIG SET appendonly yes");
        fill(&mut client, Level::Everything);
        let before = walk(&mut client, Level::Everything);
        until_rewritten(&mut client);
        ask(&mut client, "DEBUG LOADAOF");
        same(&walk(&mut client, Level::Everything), &before, "once");
        ask(&mut client, "BGREWRITEAOF");
        until_rewritten(&mut client);
        ask(&mut client, "DEBUG LOADAOF");
        same(&walk(&mut client, Level::Everything), &before, "rewritten");
        ask(&mut client, "DEBUG RELOAD");
        same(&walk(&mut client, Level::Everything), &before, "saved");
        ask(&mut client, "DEBUG LOADAOF");
        same(&walk(&mut client, Level::Everything), &before, "both");
        ask(&mut client, "MULTI");
        ask(&mut client, "DEBUG LOADAOF");
        let replies = ask(&mut client, "EXEC");
        assert!(replies.elements().expect("one")[0].is_error());
    }
}

#[test]
fn waitaof_waits_for_the_disk() {
    for threads in THREADS {
        for policy in ["always", "everysec", "no"] {
            let folder = Folder::new();
            let options = ["--threads", threads, "--appendonly", "yes"];
            let server = server(
                &folder,
                &[&options[..], &["--appendfsync", policy]].concat(),
            );
            let mut client = connect(&server);
            assert_eq!(counts(&ask(&mut client, "WAITAOF 1 0 0")), (1, 0));
            ask(&mut client, "SET k v");
            assert_eq!(
                counts(&ask(&mut client, "WAITAOF 1 0 0")),
                (1, 0),
                "{policy}"
            );
            assert_eq!(counts(&ask(&mut client, "WAITAOF 0 0 0")), (1, 0));
            assert_eq!(counts(&ask(&mut client, "WAITAOF 1 1 30")), (1, 0));
            drop(server);
            let server = self::server(&folder, &options);
            let mut client = connect(&server);
            assert_eq!(ask(&mut client, "GET k").text().as_deref(), Some("v"));
        }
    }
}

#[test]
fn a_wait_for_the_disk_ends_with_the_log_or_by_hand() {
    let folder = Folder::new();
    let server = server(&folder, &["--appendonly", "yes"]);
    let (mut client, mut other) = (connect(&server), connect(&server));
    let id = ask(&mut client, "CLIENT ID").integer().expect("a number");
    let waits = |other: &mut Client| {
        let line = call(
            other,
            &[b"CLIENT", b"LIST", b"ID", id.to_string().as_bytes()],
        );
        line.text().is_some_and(|line| line.contains(" flags=b "))
    };
    let wait = |client: &mut Client, other: &mut Client| {
        client
            .send(&["WAITAOF", "1", "1", "0"])
            .expect("it is sent");
        until("it waits", || waits(other));
    };
    ask(&mut client, "SET k v");
    ask(&mut client, "WAITAOF 1 0 0");
    wait(&mut client, &mut other);
    let ended = ask(&mut other, &format!("CLIENT UNBLOCK {id}"));
    assert_eq!(ended, Reply::Integer(1));
    assert_eq!(counts(&client.receive().expect("a reply")), (1, 0));
    wait(&mut client, &mut other);
    ask(&mut other, &format!("CLIENT UNBLOCK {id} ERROR"));
    let text = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    assert_eq!(error(&client.receive().expect("a reply")), text);
    wait(&mut client, &mut other);
    ask(&mut other, "CONFIG SET appendonly no");
    let text = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert_eq!(error(&client.receive().expect("a reply")), text);
    assert_eq!(
        error(&call(&mut client, &[b"WAITAOF", b"1", b"0", b"0"])),
        text
    );
    client
        .send(&["WAITAOF", "0", "1", "0"])
        .expect("it is sent");
    until("it waits", || waits(&mut other));
    ask(&mut other, &format!("CLIENT KILL ID {id}"));
    until("nobody waits", || {
        let info = ask(&mut other, "INFO clients").text().expect("a text");
        info.contains("blocked_clients:0")
    });
}

#[test]
fn functions_are_in_the_base_and_behind_it() {
    for preamble in ["yes", "no"] {
        let folder = Folder::new();
        let options = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
        let server = server(&folder, &options);
        let mut client = connect(&server);
        call(&mut client, &[b"FUNCTION", b"LOAD", LIBRARY]);
        for _ in 0..2 {
            ask(&mut client, "DEBUG LOADAOF");
            let here = ask(&mut client, "FCALL first 0");
            assert_eq!(here.text().as_deref(), Some("here"));
            ask(&mut client, "BGREWRITEAOF");
            until_rewritten(&mut client);
        }
        ask(&mut client, "FUNCTION DELETE one");
        ask(&mut client, "DEBUG LOADAOF");
        assert!(call(&mut client, &[b"FCALL", b"first", b"0"]).is_error());
    }
}

#[test]
fn a_snapshot_in_the_foreground_does_not_stop_the_rewriting() {
    let folder = Folder::new();
    let server = server(&folder, &["--appendonly", "yes"]);
    let mut client = connect(&server);
    ask(&mut client, "DEBUG POPULATE 20000");
    let sent = "BGREWRITEAOF\r\nSAVE\r\n";
    client.send_bytes(sent.as_bytes()).expect("it is sent");
    for _ in 0..2 {
        let reply = client.receive().expect("a reply");
        assert!(!reply.is_error(), "{reply:?}");
    }
    until_rewritten(&mut client);
    until("there is a new base", || {
        let path = folder.file("appendonlydir/appendonly.aof.manifest");
        let manifest = std::fs::read_to_string(path).expect("it is there");
        !manifest.contains(".1.base.")
    });
    ask(&mut client, "DEBUG LOADAOF");
    assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(20_000));
}

#[test]
fn what_was_answered_outlives_a_process_that_is_killed() {
    for threads in THREADS {
        for policy in ["everysec", "no"] {
            let folder = Folder::new();
            let options = [
                "--threads",
                threads,
                "--appendonly",
                "yes",
                "--appendfsync",
                policy,
            ];
            let mut pushed = 0;
            for round in 0..8 {
                let server = server(&folder, &options);
                let mut client = connect(&server);
                let here = ask(&mut client, "LLEN list").integer();
                assert_eq!(here, Some(pushed), "{policy}, round {round}");
                for _ in 0..=round * 3 {
                    ask(&mut client, "RPUSH list element");
                    pushed += 1;
                }
                // Kills it.
                drop(server);
            }
        }
    }
}

fn manifest(folder: &Folder) -> String {
    let path = folder.file("appendonlydir/appendonly.aof.manifest");
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_base_is_written_where_no_log_is() {
    for threads in THREADS {
        let folder = Folder::new();
        let options = ["--threads", threads];
        {
            let server = server(&folder, &options);
            let mut client = connect(&server);
            for (value, seq) in [("1", 1), ("2", 2)] {
                ask(&mut client, &format!("SET k {value}"));
                let started = b"Background append only file rewriting started";
                let reply = ask(&mut client, "BGREWRITEAOF");
                assert_eq!(reply, Reply::Status(started.to_vec()));
                until_rewritten(&mut client);
                let named = format!("file appendonly.aof.{seq}.base.rdb seq {seq} type b\n");
                until("the base is named", || manifest(&folder) == named);
            }
            assert_eq!(field(&mut client, "aof_enabled"), "0");
            assert_eq!(field(&mut client, "aof_rewrites"), "2");
            ask(&mut client, "SET k 3");
            ask(&mut client, "CONFIG SET appendonly yes");
            ask(&mut client, "SET l 4");
            ask(&mut client, "WAITAOF 1 0 0");
            until_rewritten(&mut client);
            assert!(manifest(&folder).contains("base.rdb seq 3 type b"));
        }
        let options = [&options[..], &["--appendonly", "yes"]].concat();
        let server = server(&folder, &options);
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, "GET k"), Reply::Bulk(b"3".to_vec()));
        assert_eq!(ask(&mut client, "GET l"), Reply::Bulk(b"4".to_vec()));
    }
}

#[test]
fn a_rewrite_takes_the_log_to_a_new_directory() {
    for threads in THREADS {
        let (first, second) = (Folder::new(), Folder::new());
        let options = ["--threads", threads, "--appendonly", "yes"];
        {
            let protected = ["--enable-protected-configs", "yes"];
            let server = server(&first, &[&options[..], &protected].concat());
            let mut client = connect(&server);
            ask(&mut client, "SET k 1");
            ask(&mut client, &format!("CONFIG SET dir {}", second.text()));
            ask(&mut client, "SET k 2");
            ask(&mut client, "BGREWRITEAOF");
            until("the log is there", || manifest(&second).contains("type i"));
            ask(&mut client, "SET l 3");
            ask(&mut client, "WAITAOF 1 0 0");
        }
        for (folder, want) in [(&first, None), (&second, Some(b"3".as_slice()))] {
            let server = server(folder, &options);
            let mut client = connect(&server);
            assert_eq!(ask(&mut client, "GET k"), Reply::Bulk(b"2".to_vec()));
            let last = want.map_or(Reply::NullBulk, |value| Reply::Bulk(value.to_vec()));
            assert_eq!(ask(&mut client, "GET l"), last);
        }
    }
}

/// A command as it stands in a log.
fn logged(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Up to Redis 6.2 scripts stand in a log themselves, and one that failed half-way does, too.
#[test]
fn scripts_in_an_old_log_are_run() {
    let folder = Folder::new();
    let half = b"redis.call('set',KEYS[1],ARGV[1]) redis.call('incr','n') return {err='no'}";
    let digest = b"cfbfeb8bef8f7e9c3a7a31a2e13aee6e1e4d4a5d";
    let log = [
        logged(&[b"SELECT", b"0"]),
        logged(&[b"EVAL", half, b"1", b"k", b"v"]),
        logged(&[b"MULTI"]),
        logged(&[b"EVAL", b"return redis.call('rpush','l',1,2)", b"0"]),
        logged(&[b"EXEC"]),
    ];
    std::fs::write(folder.file("appendonly.aof"), log.concat()).expect("written");
    {
        let server = server(&folder, &["--appendonly", "yes"]);
        let mut client = connect(&server);
        assert_eq!(ask(&mut client, "GET k").text().unwrap(), "v");
        assert_eq!(ask(&mut client, "GET n").text().unwrap(), "1");
        assert_eq!(ask(&mut client, "LLEN l"), Reply::Integer(2));
    }
    // A script that nobody has is no reason to go on without what it did.
    let folder = Folder::new();
    let log = logged(&[b"EVALSHA", digest, b"0"]);
    std::fs::write(folder.file("appendonly.aof"), log).expect("written");
    let options = ["--dir", folder.text(), "--appendonly", "yes"];
    match Server::start(ours(), &options) {
        Ok(_) => panic!("it starts"),
        Err(problem) => assert!(problem.to_string().contains("NOSCRIPT"), "{problem}"),
    }
}

/// What `save` points wait for are elements, as Redis counts them.
#[test]
fn changes_are_counted_by_elements() {
    let folder = Folder::new();
    let server = server(&folder, &[]);
    let mut client = connect(&server);
    let mut before = 0;
    for (command, want) in [
        ("SET k 1", 1),
        ("MSET k 1 l 2", 2),
        ("RPUSH list 1 2 3", 3),
        ("LPOP list 2", 2),
        ("RPUSH list 4 5 6", 3),
        ("LTRIM list 0 0", 3),
        ("SADD set a b c", 3),
        ("SADD set c d", 1),
        ("SREM set a b x", 2),
        ("SPOP set 2", 2),
        ("HSET hash f 1 g 2", 2),
        ("HDEL hash f g", 2),
        ("ZADD zset 1 a 2 b 3 c", 3),
        ("ZREM zset a b", 2),
        ("XADD stream 1-1 f v", 1),
        ("DEL k l", 2),
        ("GET k", 0),
    ] {
        ask(&mut client, command);
        let now = field(&mut client, "rdb_changes_since_last_save");
        let now: u64 = now.parse().expect("a number");
        assert_eq!(now - before, want, "{command}");
        before = now;
    }
    call(&mut client, &[b"FUNCTION", b"LOAD", LIBRARY]);
    let now = field(&mut client, "rdb_changes_since_last_save");
    assert_eq!(now, (before + 1).to_string());
}

/// What ran before the server ended is answered: who heard nothing may try again.
#[test]
fn the_end_answers_what_was_carried_out() {
    for threads in THREADS {
        let folder = Folder::new();
        let options = [
            "--threads",
            threads,
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
        ];
        let answered: i64 = {
            let server = server(&folder, &options);
            let clients: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
            std::thread::scope(|scope| {
                let writers: Vec<_> = clients
                    .into_iter()
                    .map(|mut client| {
                        scope.spawn(move || {
                            let mut count = 0;
                            while let Ok(Reply::Integer(_)) = client.call(&[&b"INCR"[..], b"n"]) {
                                count += 1;
                            }
                            count
                        })
                    })
                    .collect();
                let mut last = connect(&server);
                until("they write", || {
                    ask(&mut last, "GET n").text().is_some_and(|n| n.len() > 2)
                });
                // The connection ends in place of an answer.
                let _ = last.call(&[&b"SHUTDOWN"[..]]);
                writers
                    .into_iter()
                    .map(|writer| writer.join().expect("it counts"))
                    .sum()
            })
        };
        let server = server(&folder, &options);
        let kept = ask(&mut connect(&server), "GET n").text().unwrap().parse();
        assert_eq!(kept, Ok(answered), "{threads} threads");
    }
}
