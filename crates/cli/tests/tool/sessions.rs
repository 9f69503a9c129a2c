//! Connecting, passwords, input, exit statuses.

use crate::fake::Fake;
use crate::{nobody, ours, same, same_with, servers};

#[test]
fn a_server_that_is_not_there_is_said() {
    let port = nobody();
    same(&["-p", &port, "ping"]);
    same(&["-p", &port, "--scan"]);
    same(&["-h", "nosuch.invalid", "ping"]);
    same(&["-s", "/nosuch", "ping"]);
    same_with(&["-p", &port], "ping\nping\n", &[]);
    let ran = same_with(&["-s", "/nosuch"], "ping\n", &[]);
    assert_eq!(ran.status, Some(0));
}

#[test]
fn odd_options_are_refused() {
    for args in [
        &["--nosuch"][..],
        &["-z"],
        &["-p"],
        &["--pattern"],
        &["-r"],
        &["--show-pushes"],
    ] {
        let ran = same(args);
        assert_eq!(ran.status, Some(1));
    }
    same(&["-u", "http://x", "ping"]);
    same(&["-2", "-3", "ping"]);
    same_with(&["-X", "t", "-x", "set", "k", "t"], "1", &[]);
    same_with(&["-X", "tag", "set", "k", "tog"], "1", &[]);
    same(&["--quoted-input", "get", "\"abc"]);
    same(&["--quoted-input", "get", "ab\"c"]);
}

#[test]
fn help_and_version_are_ours() {
    let help = ours(&["--help"], "");
    assert_eq!((help.status, help.err.as_str()), (Some(0), ""));
    for option in [
        "--bigkeys",
        "--quoted-json",
        "--tls-ciphersuites",
        "--keystats-samples",
    ] {
        assert!(help.out.contains(option), "{option}");
    }
    let version = format!("tidemill-cli {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ours(&["--version"], "").out, version);
}

#[test]
fn what_is_not_there_says_so() {
    for args in [
        &["--cluster", "info", "127.0.0.1:7000"][..],
        &["--ldb", "--eval", "x.lua"],
    ] {
        let ran = ours(args, "");
        assert_eq!(ran.status, Some(1));
        assert!(ran.err.contains("not there"), "{ran:?}");
    }
}

#[test]
fn passwords_are_given_in_many_ways() {
    for server in servers(&["--requirepass", "sec"]) {
        let port = server.port.to_string();
        let p = ["-p", port.as_str()];
        let with = |more: &[&'static str]| {
            let mut args: Vec<&str> = p.to_vec();
            args.extend(more);
            same(&args)
        };
        with(&["ping"]);
        with(&["-e", "ping"]);
        with(&["-3", "ping"]);
        with(&["-n", "3", "ping"]);
        with(&["-a", "bad", "ping"]);
        with(&["-a", "bad", "--no-auth-warning", "ping"]);
        with(&["--user", "default", "--pass", "sec", "ping"]);
        with(&["--user", "nobody", "--pass", "sec", "ping"]);
        let ran = with(&["-3", "-a", "sec", "--no-auth-warning", "ping"]);
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("PONG\n", ""));
        for password in ["sec", "bad"] {
            same_with(&["-p", &port, "ping"], "", &[("REDISCLI_AUTH", password)]);
        }
        same_with(&["-p", &port, "--askpass", "ping"], "sec\n", &[]);
        for uri in ["sec@", "default:sec@", "default:se%63@", "nobody:sec@"] {
            let uri = format!("redis://{uri}127.0.0.1:{port}/3");
            same(&["-u", &uri, "ping"]);
        }
        let bare = format!("redis://:sec@127.0.0.1:{port}");
        assert_eq!(ours(&["-u", &bare, "ping"], "").out, "PONG\n");
    }
}

#[test]
fn a_connection_is_set_up_in_order() {
    let fake = Fake::new("+OK\r\n");
    same(&[
        "-p",
        &fake.port,
        "-3",
        "-n",
        "2",
        "-a",
        "x",
        "--no-auth-warning",
        "ping",
    ]);
    let said = fake.take_said();
    assert_eq!(said[..4], ["AUTH x", "SELECT 2", "HELLO 3", "ping"]);
    assert!(said.len() == 4 || said[..4] == said[4..], "{said:?}");
}

#[test]
fn redirections_are_followed_in_cluster_mode() {
    let there = Fake::new("+HERE\r\n");
    for kind in ["MOVED", "ASK"] {
        let fake = Fake::new(format!("-{kind} 5 127.0.0.1:{}\r\n", there.port));
        let ran = same(&["-p", &fake.port, "-c", "get", "x"]);
        assert_eq!(ran.out, "HERE\n");
        let asked = there.take_said().contains(&"ASKING".to_owned());
        assert_eq!(asked, kind == "ASK");
        same(&["-p", &fake.port, "get", "x"]);
    }
    // A server that only ever sends elsewhere is not followed for ever.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let circle = Fake::new(format!("-MOVED 5 127.0.0.1:{port}\r\n"));
    assert_eq!(
        ours(&["-p", &circle.port, "-c", "get", "x"], "").status,
        Some(1)
    );
}

#[test]
fn input_is_commands_or_arguments() {
    for server in servers(&[]) {
        let port = server.port.to_string();
        let input = |more: &[&'static str], text: &str| {
            let mut args = vec!["-p", port.as_str()];
            args.extend(more);
            same_with(&args, text, &[])
        };
        input(
            &[],
            "set a \"b c\"\nget a\n\n# comment\nget \"x\n3 ping\n  get a  \nnosuch\nget 'a'\n\
             get a\"b\n2 \nquit\nget a\n",
        );
        for text in [
            "get a",
            "",
            "\n",
            "multi\nset a 1\nexec\n",
            "multi\nget a\nbad\nexec\ndiscard\n",
            "exit\nget a\n",
            "clear\nget a\nrestart\n",
            "select 5\nset five 1\nselect 0\nget five\n",
        ] {
            input(&[], text);
        }
        input(&["-e"], "nosuch\nget a\n");
        ours(&["-p", &port, "hset", "h", "a", "1"], "");
        input(&["-3", "--no-raw"], "hset h a 1\nhgetall h\n");
        input(&["-x", "set", "k"], "a\nb\n");
        input(&["get", "k"], "");
        input(&["-x"], "nosuch");
        input(&["-X", "tag", "set", "k", "tag"], "xyz");
        input(&["--quoted-input", "set", "\"a\\x00b\"", "v"], "");
        input(&["-r", "3", "ping"], "");
        input(&["-r", "3", "-i", "0.01", "ping"], "");
        input(&["-r", "0", "ping"], "");
        input(&["-r", "x", "ping"], "");
        input(&["-d", "\\t", "mget", "a", "k"], "");
        input(&["-d", "", "mget", "a", "k"], "");
        input(&["-D", "|", "-r", "3", "ping"], "");
        input(&["-n", "99", "ping"], "");
        input(&["-n", "x", "ping"], "");
        input(&["--show-pushes", "maybe", "ping"], "");
        input(&["quit"], "");
        input(&["--raw", "--no-raw", "mget", "a", "k"], "");
        input(&["--no-raw", "--raw", "mget", "a", "k"], "");
        input(&["--csv", "--json", "mget", "a", "k"], "");
        input(&[""], "");
        input(&[], "\"\"\n");
        input(&["-i", "x", "-r", "2", "ping"], "");
        input(&["-a", "", "ping"], "");
        input(&["--user", "x", "ping"], "");
        input(&["-c", "cluster", "slots"], "");
        let said = ours(&["-p", &port, "--verbose", "-t", "5", "-4", "ping"], "");
        assert_eq!(said.out, "PONG\n");
        assert_eq!(said.err, format!("Connected to 127.0.0.1:{port}\n"));
        let muted = ours(
            &["-p", &port],
            "client reply off\nping\nclient reply on\nping\n",
        );
        assert_eq!(muted.out, "OK\nPONG\n");
    }
}
