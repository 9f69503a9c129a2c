//! `rename-command`: what clients call commands, and logs that do not depend on it.

use super::{Folder, ask, call, connect, ours, start};

const OPTIONS: [&str; 14] = [
    "--rename-command",
    "SET",
    "put",
    "--rename-command",
    "del",
    "",
    "--rename-command",
    "CONFIG",
    "guc",
    "--rename-command",
    "xgroup",
    "groups",
    "--appendonly",
    "yes",
];

#[test]
fn renamed_commands_answer_to_their_new_names_alone() {
    let folder = Folder::new();
    let server = start(ours(), &folder, &OPTIONS);
    let mut client = connect(&server);
    let mut error = |words: &[&[u8]]| {
        let reply = call(&mut client, words);
        assert!(reply.is_error(), "{reply:?}");
    };
    error(&[b"SET", b"k", b"v"]);
    error(&[b"DEL", b"k"]);
    error(&[b"CONFIG", b"GET", b"port"]);
    error(&[b"ACL", b"SETUSER", b"u", b"+put"]);
    error(&[b"EVAL", b"return redis.call('SET', 'k', 'v')", b"0"]);
    let unknown = call(&mut client, &[b"guc", b"nope"]);
    let expected = b"ERR unknown subcommand 'nope'. Try GUC HELP.".to_vec();
    assert_eq!(unknown, client::Reply::Error(expected));
    ask(&mut client, "PUT k v");
    ask(&mut client, "guc SET slowlog-max-len 5");
    ask(&mut client, "ACL SETUSER u on nopass ~* +set +config|get");
    let dryrun = ask(&mut client, "ACL DRYRUN u put k v");
    assert_eq!(dryrun.text().as_deref(), Some("OK"));
    let words: [&[u8]; 3] = [b"EVAL", b"return redis.call('put', 'j', 'w')", b"0"];
    assert!(!call(&mut client, &words).is_error());
    assert_eq!(ask(&mut client, "GET j").text().as_deref(), Some("w"));
}

#[test]
fn a_log_is_read_whatever_commands_are_called() {
    let folder = Folder::new();
    let plain = ["--appendonly", "yes"];
    let check = |options: &[&str], more: &str| {
        let server = start(ours(), &folder, options);
        let mut client = connect(&server);
        let get =
            |client: &mut client::Client, key: &str| ask(client, &format!("GET {key}")).text();
        assert_eq!(get(&mut client, "k").as_deref(), Some("v"), "{options:?}");
        assert_eq!(get(&mut client, "j").as_deref(), Some("w"), "{options:?}");
        assert!(ask(&mut client, "GET gone").is_null());
        assert_eq!(
            ask(&mut client, "XINFO GROUPS s")
                .elements()
                .map(<[_]>::len),
            Some(1)
        );
        assert_eq!(get(&mut client, "copy").as_deref(), Some("v"));
        if !more.is_empty() {
            ask(&mut client, more);
            ask(&mut client, "WAITAOF 1 0 0");
        }
    };
    {
        let server = start(ours(), &folder, &OPTIONS);
        let mut client = connect(&server);
        for command in [
            "PUT k v",
            "put gone x PX 1",
            "MULTI",
            "Put j x",
            "put j w",
            "EXEC",
            "XADD s * f v",
            "groups CREATE s g 0",
        ] {
            ask(&mut client, command);
        }
        let dump = ask(&mut client, "DUMP k");
        let dump = dump.bytes().expect("a dump").to_vec();
        let restored = call(&mut client, &[b"RESTORE", b"copy", b"100000", &dump]);
        assert!(!restored.is_error());
        // A read finds it dead, and says so in the log.
        super::until("it is gone", || ask(&mut client, "GET gone").is_null());
        ask(&mut client, "WAITAOF 1 0 0");
    }
    check(&plain, "SET k v");
    check(&OPTIONS, "put k v");
    check(
        &["--rename-command", "set", "append2", "--appendonly", "yes"],
        "",
    );
}
