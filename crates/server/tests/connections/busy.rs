//! Who comes to end a script that runs for too long.

use super::*;

/// A server whose only thread runs a script without end, the client that waits for it, and
/// another that came before.
fn busy() -> (Server, Client, Client) {
    let options = ["--threads", "1", "--busy-reply-threshold", "50"];
    let server = server(&[&options[..], &["--requirepass", "secret"]].concat());
    let (mut owner, mut before) = (connect(&server), connect(&server));
    for client in [&mut owner, &mut before] {
        assert_eq!(call(client, "AUTH secret"), status("OK"));
    }
    call(&mut owner, "ACL SETUSER weak on >weak ~* +get +acl|whoami");
    call(&mut before, "HELLO 3");
    owner
        .send(&["EVAL", "while true do end", "0"])
        .expect("it is read");
    until("it is busy", || {
        error(&mut before, "PING").starts_with("BUSY")
    });
    (server, owner, before)
}

fn error(client: &mut Client, command: &str) -> String {
    match call(client, command) {
        Reply::Error(text) => String::from_utf8(text).expect("text"),
        other => format!("{other:?}"),
    }
}

#[test]
fn whoever_may_ends_a_script_from_a_new_connection() {
    let (server, mut owner, _before) = busy();
    let mut operator = connect(&server);
    for command in ["PING", "SCRIPT KILL", "SHUTDOWN NOSAVE"] {
        assert!(error(&mut operator, command).starts_with("NOAUTH"));
    }
    assert!(error(&mut operator, "AUTH wrong").starts_with("WRONGPASS"));
    assert!(error(&mut operator, "HELLO 3").starts_with("NOAUTH"));
    assert!(error(&mut operator, "HELLO 4").starts_with("NOPROTO"));
    assert!(error(&mut operator, "AUTH").starts_with("ERR wrong number"));
    let hello = call(
        &mut operator,
        "HELLO 3 AUTH default secret SETNAME operator",
    );
    assert!(matches!(hello, Reply::Map(_)), "{hello:?}");
    assert!(error(&mut operator, "GET key").starts_with("BUSY"));
    assert_eq!(call(&mut operator, "SCRIPT KILL"), status("OK"));
    let ended = owner.receive().expect("a reply");
    assert!(ended.is_error(), "{ended:?}");
    // What it said then holds from now on.
    assert_eq!(call(&mut operator, "CLIENT GETNAME"), bulk("operator"));
    let own = id(&mut operator);
    assert_eq!(field(&mut operator, own, "resp").as_deref(), Some("3"));
    let Reply::Map(hello) = hello else { return };
    let told = hello.iter().find(|(name, _)| *name == bulk("id"));
    assert_eq!(told.map(|(_, id)| id), Some(&Reply::Integer(own)));
}

#[test]
fn rights_hold_while_a_script_runs() {
    let (server, mut owner, mut before) = busy();
    let mut weak = connect(&server);
    assert_eq!(call(&mut weak, "AUTH weak weak"), status("OK"));
    for command in ["SCRIPT KILL", "FUNCTION KILL", "SHUTDOWN NOSAVE"] {
        let refused = error(&mut weak, command);
        assert!(refused.starts_with("NOPERM User weak"), "{refused}");
    }
    assert!(error(&mut weak, "GET key").starts_with("BUSY"));
    // A client of before becomes another one.
    assert_eq!(call(&mut before, "AUTH weak weak"), status("OK"));
    assert!(error(&mut before, "SCRIPT KILL").starts_with("NOPERM"));
    assert_eq!(call(&mut before, "RESET"), status("RESET"));
    assert!(error(&mut before, "SCRIPT KILL").starts_with("NOAUTH"));
    let mut leaving = connect(&server);
    assert_eq!(call(&mut leaving, "QUIT"), status("OK"));
    let mut operator = connect(&server);
    assert_eq!(call(&mut operator, "AUTH secret"), status("OK"));
    assert_eq!(call(&mut operator, "SCRIPT KILL"), status("OK"));
    assert!(owner.receive().expect("a reply").is_error());
    expect_closed(&mut leaving);
    assert_eq!(call(&mut weak, "ACL WHOAMI"), bulk("weak"));
    assert_eq!(call(&mut operator, "ACL WHOAMI"), bulk("default"));
    assert!(error(&mut before, "PING").starts_with("NOAUTH"));
    assert_eq!(call(&mut before, "AUTH secret"), status("OK"));
    let own = id(&mut before);
    assert_eq!(field(&mut operator, own, "resp").as_deref(), Some("2"));
}

/// Requests that come in the same turn as the script are answered like those that come later.
#[test]
fn what_came_with_the_script_is_answered() {
    let options = ["--threads", "1", "--busy-reply-threshold", "50"];
    let server = server(&[&options[..], &["--enable-debug-command", "yes"]].concat());
    for (script, words) in [
        ("EVAL", &["EVAL", "while true do end", "0"][..]),
        ("EXEC", &["EXEC"]),
    ] {
        let (mut sleeper, mut owner) = (connect(&server), connect(&server));
        let mut others: Vec<Client> = (0..4).map(|_| connect(&server)).collect();
        if script == "EXEC" {
            call(&mut owner, "MULTI");
            let queued = owner.call(&["EVAL", "while true do end", "0"]);
            assert_eq!(queued.expect("a reply"), status("QUEUED"));
        }
        // All of these are ready once the server has slept.
        sleeper
            .send(&["DEBUG", "SLEEP", "0.2"])
            .expect("it is read");
        owner.send(words).expect("it is read");
        for other in &mut others {
            other.send(&["PING"]).expect("it is read");
        }
        for other in &mut others {
            let reply = other.receive().expect("a reply");
            let is_before = reply == status("PONG");
            assert!(is_before || reply.is_error(), "{script}: {reply:?}");
        }
        assert_eq!(call(&mut others[0], "SCRIPT KILL"), status("OK"));
        owner.receive().expect("a reply");
        sleeper.receive().expect("a reply");
    }
}
