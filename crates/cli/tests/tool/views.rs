//! What is made for people to look at.

use crate::terminal::Terminal;
use crate::{ours, servers};

#[test]
fn a_watched_command_runs_again_and_again() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let mut t = Terminal::ours(&["-p", &port, "--watch", "-i", "0.01", "incr", "n"], &[]);
        t.await_text("Every 0.0s: incr n");
        t.await_text("(integer) 5");
        t.press("\x03");
        assert_eq!(t.end().1, Some(0));
        let prompt = format!("127.0.0.1:{port}> ");
        let mut t = Terminal::ours(&["-p", &port], &[]);
        t.await_text(&prompt);
        t.press(":watch 0.01 incr m\r");
        t.await_text("(integer) 5");
        t.press("\x03");
        t.await_text(&prompt);
    }
}

#[test]
fn streams_show_what_waits_in_them() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let p = ["-p", port.as_str()];
        assert_eq!(
            ours(&[&p[..], &["--streams"]].concat(), "").out,
            "no streams\n"
        );
        let commands = "xadd orders 1-1 a 1\nxadd orders 2-1 a 2\nxadd orders 3-1 a 3\n\
            xgroup create orders billing 0\nxreadgroup group billing one count 2 streams orders >\n\
            set other 1\n";
        ours(&p, commands);
        for protocol in ["-2", "-3"] {
            let seen = ours(&[&p[..], &[protocol, "--streams"]].concat(), "").out;
            let start = "orders: 3 entries, last 3-1\n  \
                group billing: 1 consumers, pending 2, lag 1, at 2-1\n    \
                oldest unacknowledged 1-1: one has had it for ";
            assert!(seen.starts_with(start), "{seen}");
            assert!(
                seen.contains("\n    consumer one: pending 2, idle "),
                "{seen}"
            );
        }
        assert_eq!(
            ours(&[&p[..], &["--streams", "nosuch"]].concat(), "").out,
            ""
        );
    }
}

#[test]
fn a_tree_counts_keys_by_their_parts() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let p = ["-p", port.as_str()];
        ours(
            &p,
            "mset user:1:name a user:1:mail b user:2:name c order/7 d plain e\n",
        );
        let seen = ours(&[&p[..], &["--tree"]].concat(), "").out;
        assert!(seen.starts_with("5 keys, "), "{seen}");
        assert!(seen.contains("\n  user: 3 keys, "), "{seen}");
        assert!(seen.contains("\n    1: 2 keys, "), "{seen}");
        let seen = ours(&[&p[..], &["--tree=/", "--pattern", "order*"]].concat(), "").out;
        assert!(seen.starts_with("1 keys, "), "{seen}");
        assert!(seen.contains("\n  order/ 1 keys, "), "{seen}");
    }
}
