//! Every kind of reply in every format.

use crate::fake::Fake;
use crate::{ours, same, terminal};

const REPLIES: &[&str] = &[
    "+OK\r\n",
    "-ERR bad thing\r\n",
    ":5\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "_\r\n",
    "*0\r\n",
    "%0\r\n",
    "~0\r\n",
    "#t\r\n",
    "#f\r\n",
    ",1.5\r\n",
    ",-inf\r\n",
    "$5\r\nh\u{e9}\"\n\r\n",
    "$9\r\n\0\x01\x7f\\/\x08\x0c\r\t\r\n",
    "=9\r\ntxt:a\nb\"c\r\n",
    "*2\r\n*2\r\n:1\r\n*1\r\n$1\r\na\r\n*11\r\n\
     :1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:2\r\n",
    "*3\r\n-ERR a\r\n$-1\r\n*0\r\n",
    "%2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n:5\r\n_\r\n",
    "~10\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n*2\r\n:1\r\n:2\r\n",
    "%1\r\n+a\r\n=7\r\ntxt:x\ny\r\n",
    "%1\r\n+a\r\n*1\r\n*1\r\n:1\r\n",
    "%2\r\n+a\r\n*0\r\n+b\r\n%1\r\n+k\r\n~2\r\n:1\r\n%1\r\n+x\r\n+y\r\n",
    ">2\r\n+a\r\n:1\r\n+OK\r\n",
    ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n",
    ">2\r\n$10\r\ninvalidate\r\n_\r\n+OK\r\n",
];

const FORMATS: &[&[&str]] = &[
    &[],
    &["--no-raw"],
    &["--csv"],
    &["-d", "|", "-D", "#"],
    &["-3", "--show-pushes", "yes", "--no-raw"],
    &["-3", "--show-pushes", "yes"],
    &["-e"],
];

#[test]
fn replies_are_written_as_redis_writes_them() {
    for reply in REPLIES {
        let fake = Fake::new(*reply);
        for format in FORMATS {
            let mut args = vec!["-p", &fake.port];
            args.extend(*format);
            args.extend(["get", "x"]);
            same(&args);
        }
    }
}

#[test]
fn replies_at_a_terminal_are_for_people() {
    for reply in REPLIES {
        let fake = Fake::new(*reply);
        terminal::same(&["-p", &fake.port, "get", "x"]);
        terminal::same(&["-p", &fake.port, "--raw", "get", "x"]);
    }
}

#[test]
fn texts_are_shown_as_they_are() {
    for reply in [
        "$7\r\nab\r\ncd\n\r\n",
        "$2\r\nab\r\n",
        "=6\r\ntxt:ab\r\n",
        "-ERR x\r\n",
    ] {
        let fake = Fake::new(reply);
        for command in [
            &["info"][..],
            &["lolwut"],
            &["client", "list"],
            &["memory", "doctor"],
            &["latency", "doctor"],
            &["cluster", "nodes"],
            &["--csv", "info"],
            &["--no-raw", "info"],
        ] {
            let mut args = vec!["-p", &fake.port];
            args.extend(command);
            same(&args);
        }
    }
}

/// Redis's is not: of errors, of infinities, of bytes that are no UTF-8, of quotes when quoted.
#[test]
fn json_is_valid_and_otherwise_that_of_redis() {
    for reply in REPLIES {
        let fake = Fake::new(*reply);
        for format in ["--json", "--quoted-json"] {
            for command in ["get", "info"] {
                let args = ["-p", &fake.port, format, command];
                let ran = ours(&args, "");
                let parsed: Result<serde_json::Value, _> = serde_json::from_str(&ran.out);
                assert!(parsed.is_ok(), "{reply:?} {args:?}: {ran:?}");
            }
        }
        let differs = ["ERR", "inf", "\""].iter().any(|odd| reply.contains(odd));
        if !differs {
            same(&["-p", &fake.port, "--json", "get", "x"]);
            same(&["-p", &fake.port, "--quoted-json", "get", "x"]);
        }
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    let fake = Fake::new("garbage\r\n");
    let ran = ours(&["-p", &fake.port, "ping"], "");
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.starts_with("Error: Protocol error, "), "{ran:?}");
}
