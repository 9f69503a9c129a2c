//! The prompt, at a terminal.

use crate::terminal::Terminal;
use crate::{ours, reference, servers};
use std::path::PathBuf;

/// A file of this test's own, gone before.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tidemill-cli-{}-{name}", std::process::id()));
    // It may not be there.
    let _ = std::fs::remove_file(&path);
    path
}

/// Types a line and gives what is printed up to the next prompt, which begins so.
#[track_caller]
fn type_line(terminal: &mut Terminal, line: &str, prompt: &str) -> String {
    terminal.press(&format!("{line}\r"));
    // The line itself, as it was typed and redrawn, ends at the first line break.
    terminal.await_text("\n");
    let printed = terminal.await_text(&format!("\r{prompt}"));
    printed.replace('\r', "")
}

#[test]
fn lines_run_and_the_prompt_tells_where() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let at = format!("127.0.0.1:{port}");
        let mut t = Terminal::ours(&["-p", &port], &[]);
        t.await_text(&format!("{at}> "));
        let lines = [
            ("set a 1", "OK\n", "> "),
            ("select 3", "OK\n", "[3]> "),
            ("multi", "OK\n", "[3](TX)> "),
            ("get a", "QUEUED\n", "[3](TX)> "),
            ("exec", "1) (nil)\n", "[3]> "),
            ("2 ping", "PONG\nPONG\n", "[3]> "),
            ("get \"x", "Invalid argument(s)\n", "[3]> "),
            ("nosuch", "(error) ERR unknown command 'nosuch'\n", "[3]> "),
            (
                ":nosuch",
                "unknown tidemill-cli internal command ':nosuch'\n",
                "[3]> ",
            ),
            (
                ":set nosuch",
                "unknown tidemill-cli preference 'nosuch'\n",
                "[3]> ",
            ),
            (
                "restart",
                "Use 'restart' only in Lua debugging mode.\n",
                "[3]> ",
            ),
            ("xadd s 1-1 f v", "\"1-1\"\n", "[3]> "),
            (
                "xread streams s 0",
                "1) 1) \"s\"\n   2) 1) 1) \"1-1\"\n         2) 1) \"f\"\n            2) \"v\"\n",
                "[3]> ",
            ),
        ];
        for (line, printed, prompt) in lines {
            let seen = type_line(&mut t, line, &format!("{at}{prompt}"));
            assert!(seen.ends_with(printed), "{line}: {seen:?}");
        }
        t.press("quit\r");
        assert_eq!(t.end().1, Some(0));
    }
}

#[test]
fn a_new_connection_has_the_database_and_the_protocol_of_the_last() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let prompt = format!("127.0.0.1:{port}[2]> ");
        let mut t = Terminal::ours(&["-p", &port, "-3", "-n", "2"], &[]);
        t.await_text(&prompt);
        type_line(&mut t, "hset h f v", &prompt);
        ours(
            &[
                "-p", &port, "client", "kill", "type", "normal", "skipme", "yes",
            ],
            "",
        );
        let seen = type_line(&mut t, "ping", &prompt);
        assert!(
            seen.contains("Error: Server closed the connection\n"),
            "{seen:?}"
        );
        let seen = type_line(&mut t, "hgetall h", &prompt);
        assert!(seen.ends_with("1# \"f\" => \"v\"\n"), "{seen:?}");
        t.press("\x04");
        assert_eq!(t.end().1, Some(0));
    }
}

#[test]
fn secrets_are_not_in_the_history() {
    for server in servers(&["--requirepass", "hunter2"]) {
        let port = server.port.to_string();
        let prompt = format!("127.0.0.1:{port}> ");
        let history = scratch("history");
        let env = [(
            "TIDEMILLCLI_HISTFILE",
            history.to_str().expect("a plain path"),
        )];
        let mut t = Terminal::ours(&["-p", &port], &env);
        t.await_text(&prompt);
        for line in [
            "auth hunter2",
            "hello 2 auth default hunter2",
            "acl setuser alice on >hunter2",
            "config set requirepass hunter2",
            "migrate h 1 k 0 1 auth hunter2",
            "auth \"hunter2",
            "get kept",
        ] {
            type_line(&mut t, line, &prompt);
        }
        // The line before the last one is not there to go back to either.
        t.press("\x1b[A");
        t.await_text("get kept");
        t.press("\x03");
        t.await_text(&prompt);
        t.press("quit\r");
        assert_eq!(t.end().1, Some(0));
        let kept = std::fs::read_to_string(&history).expect("it was written");
        assert!(kept.contains("get kept\n"), "{kept}");
        assert!(!kept.contains("hunter2"), "{kept}");
        // The password is still known to a new connection.
        let mut t = Terminal::ours(&["-p", &port], &env);
        t.await_text(&prompt);
        type_line(&mut t, "auth hunter2", &prompt);
        ours(
            &[
                "-p", &port, "-a", "hunter2", "client", "kill", "type", "normal", "skipme", "yes",
            ],
            "",
        );
        type_line(&mut t, "ping", &prompt);
        let seen = type_line(&mut t, "ping", &prompt);
        assert!(seen.ends_with("PONG\n"), "{seen:?}");
        // And the history is there again.
        t.press("\x1b[A\x1b[A\x1b[A");
        t.await_text("get kept");
        std::fs::remove_file(&history).expect("it is ours");
    }
}

#[test]
fn completion_knows_commands_tokens_and_keys() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let prompt = format!("127.0.0.1:{port}> ");
        ours(&["-p", &port, "set", "some:long:key", "found"], "");
        let mut t = Terminal::ours(&["-p", &port], &[]);
        t.await_text(&prompt);
        t.press("get some:\t");
        t.await_text("get some:long:key ");
        let seen = type_line(&mut t, "", &prompt);
        assert!(seen.ends_with("\"found\"\n"), "{seen:?}");
        t.press("config resets\t");
        t.await_text("config resetstat ");
        type_line(&mut t, "", &prompt);
        t.press("set k v keept\t");
        t.await_text("set k v keepttl ");
        type_line(&mut t, "", &prompt);
        t.press("help @hyper\t");
        t.await_text("help @hyperloglog ");
    }
}

#[test]
fn hints_say_what_may_follow() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let prompt = format!("127.0.0.1:{port}> ");
        let mut t = Terminal::ours(&["-p", &port], &[]);
        t.await_text(&prompt);
        t.press("lpush q");
        t.await_text("lpush q element [element ...]");
        t.press("\x15");
        type_line(&mut t, ":set nohints", &prompt);
        t.press("lpush r 1 2");
        let seen = t.await_text("lpush r 1 2");
        assert!(!seen.contains("element"), "{seen:?}");
    }
    // Without a server, from our own copy.
    let mut t = Terminal::ours(&["-p", &crate::nobody()], &[]);
    t.await_text("not connected> ");
    t.press("lpush q");
    t.await_text("lpush q element [element ...]");
}

#[test]
fn ctrl_c_ends_what_runs_and_not_the_tool() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let prompt = format!("127.0.0.1:{port}> ");
        let mut t = Terminal::ours(&["-p", &port], &[]);
        t.await_text(&prompt);
        t.press("blpop none 0\r");
        let mut client = server.client().expect("the server accepts");
        let blocked = |client: &mut client::Client| {
            let info = client.call(&["INFO", "clients"]).expect("a reply");
            info.text().expect("a text").contains("blocked_clients:1")
        };
        while !blocked(&mut client) {
            std::thread::yield_now();
        }
        t.press("\x03");
        t.await_text(&prompt);
        t.press("monitor\r");
        t.await_text("OK");
        client.call(&["ECHO", "seen"]).expect("a reply");
        t.await_text("\"ECHO\" \"seen\"");
        t.press("\x03");
        t.await_text(&prompt);
        let seen = type_line(&mut t, "ping", &prompt);
        assert!(seen.ends_with("PONG\n"), "{seen:?}");
        // A line that is begun is dropped, an empty one ends the tool.
        t.press("abc");
        t.await_text("abc");
        t.press("\x03");
        t.await_text(&prompt);
        t.press("\x03");
        assert_eq!(t.end().1, Some(0));
    }
}

#[test]
fn messages_come_until_a_key_is_pressed() {
    for server in servers(&[]) {
        for protocol in ["-2", "-3"] {
            let port = server.port.to_string();
            let prompt = format!("127.0.0.1:{port}> ");
            let subscribed = format!("127.0.0.1:{port}(subscribed mode)> ");
            let mut t = Terminal::ours(&["-p", &port, protocol], &[]);
            t.await_text(&prompt);
            t.press("subscribe news\r");
            t.await_text("3) (integer) 1");
            t.await_text("any key to type command");
            ours(&["-p", &port, "publish", "news", "hello"], "");
            t.await_text("3) \"hello\"");
            t.press("x");
            t.await_text(&subscribed);
            t.press("\x7fping\r");
            t.await_text(if protocol == "-2" {
                "1) \"pong\""
            } else {
                "PONG"
            });
            t.await_text("any key to type command");
            t.press("u");
            t.await_text(&subscribed);
            t.press("nsubscribe\r");
            t.await_text("3) (integer) 0");
            t.await_text(&prompt);
            t.press("psubscribe n*\r");
            t.await_text("any key to type command");
            t.press("\x03");
            t.await_text("Ready to reconnect");
            t.await_text(&prompt);
            let seen = type_line(&mut t, "ping", &prompt);
            assert!(seen.ends_with("PONG\n"), "{seen:?}");
        }
    }
}

/// Redis's has colours and carriage returns even into a pipe.
#[test]
fn help_is_that_of_redis_without_its_colours() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        for topic in ["get", "config get", "@set", "nosuch"] {
            let mut args = vec!["-p", port.as_str(), "help"];
            args.extend(topic.split(' '));
            let seen = ours(&args, "").out;
            assert!(!seen.contains(['\r', '\x1b']), "{seen:?}");
            let Some(program) = reference() else { continue };
            let theirs = crate::run(program, &args, "", &[]).out;
            let theirs = crate::terminal::plain(theirs.as_bytes()).replace('\r', "");
            let names = |text: &str| {
                let lines = text.lines().filter(|line| !line.contains("summary:"));
                // What may follow has a form of its own.
                let words = lines.filter_map(|line| line.split_whitespace().next());
                words.map(str::to_owned).collect::<Vec<_>>()
            };
            let mut theirs = names(&theirs);
            let mut ours = names(&seen);
            theirs.sort();
            ours.sort();
            assert_eq!(ours, theirs, "{topic}");
        }
    }
}

#[test]
fn a_password_that_is_asked_for_shows_as_stars() {
    for server in servers(&["--requirepass", "hunter2"]) {
        let port = server.port.to_string();
        let mut t = Terminal::ours(&["-p", &port, "--askpass", "ping"], &[]);
        t.await_text("Please input password: ");
        t.press("hunter2\r");
        let (seen, status) = t.end();
        assert_eq!(status, Some(0));
        assert!(seen.contains("*******"), "{seen:?}");
        assert!(
            seen.ends_with("PONG\r\n") && !seen.contains("hunter2"),
            "{seen:?}"
        );
    }
}
