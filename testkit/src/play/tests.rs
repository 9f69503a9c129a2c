//! The player against a target that repeats what it is told.

use super::*;
use crate::parse;

/// Answers `SAY kind text`, holds back `WAIT`, and answers what waits on `WAKE`.
#[derive(Default)]
struct Parrot {
    waiting: Vec<usize>,
    replies: Vec<(usize, Reply)>,
    connections: usize,
    directives: Vec<(String, String)>,
    advanced: u64,
}

impl Target for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn reset(&mut self) -> Result<(), String> {
        self.replies.clear();
        Ok(())
    }

    fn configure(&mut self, name: &str, value: &str) -> Result<String, String> {
        self.directives.push((name.to_owned(), value.to_owned()));
        Ok("old".to_owned())
    }

    fn connect(&mut self) -> Result<usize, String> {
        self.connections += 1;
        Ok(self.connections)
    }

    fn send(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<(), String> {
        let mut rest = args.iter().skip(1).cloned();
        match args[0].as_slice() {
            b"SAY" => self
                .replies
                .push((connection, Reply::Bulk(rest.next().expect("a text")))),
            b"LIST" => self
                .replies
                .push((connection, Reply::Array(rest.map(Reply::Bulk).collect()))),
            b"NONE" => self.replies.push((connection, Reply::NullArray)),
            b"WAIT" => self.waiting.push(connection),
            b"WAKE" => {
                let woken = self.waiting.drain(..).map(|id| (id, Reply::Integer(1)));
                self.replies.extend(woken);
                self.replies.push((connection, Reply::Status("OK".into())));
            }
            _ => return Err("no such command".to_owned()),
        }
        Ok(())
    }

    fn receive(&mut self, connection: usize) -> Result<Reply, String> {
        self.pending(connection)?
            .ok_or_else(|| "silence".to_owned())
    }

    fn pending(&mut self, connection: usize) -> Result<Option<Reply>, String> {
        let at = self.replies.iter().position(|(id, _)| *id == connection);
        Ok(at.map(|at| self.replies.remove(at).1))
    }

    fn await_blocked(&mut self, clients: usize) -> Result<(), String> {
        (self.waiting.len() == clients)
            .then_some(())
            .ok_or_else(|| "not blocked".to_owned())
    }

    fn close(&mut self, connection: usize) -> Result<(), String> {
        self.waiting.retain(|id| *id != connection);
        Ok(())
    }

    fn advance(&mut self, ms: u64) {
        self.advanced += ms;
    }
}

fn played(text: &str) -> Result<Parrot, String> {
    let mut parrot = Parrot::default();
    for script in parse("f", text)? {
        play(&script, &mut parrot).map_err(|failure| failure.to_string())?;
    }
    Ok(parrot)
}

#[test]
fn a_script_that_holds_passes() {
    let parrot = played(
        "config a b\n> SAY hello\n\"hello\"\na> WAIT\n(blocked)\n+5ms\nb> WAKE\nOK\na<\n\
         (integer) 1\n\
         > SAY 7-1\n\"{id=id}\"\n> SAY {$id}\n\"7-1\"\n> SAY x{ab*3}\n\"xababab\"\n\
         > LIST a b c\n(any order)\n1) \"c\"\n2) \"a\"\n3) \"b\"\n> NONE\n(nil)\n\
         > NONE\n(nil array)\n\
         > SAY x\n\"y\"\n~ parrot: repeats\n\"x\"\na> WAIT\n(blocked)\na!\n> SAY x\n(any)\n",
    );
    let parrot = parrot.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(parrot.advanced, 5);
    let directives: Vec<_> = parrot.directives.iter().map(|(_, v)| v.as_str()).collect();
    assert_eq!(directives, ["b", "old"]);
}

#[test]
fn what_does_not_hold_fails_with_its_line() {
    for (text, parts) in [
        (
            "== t\n> SAY a\n\"b\"",
            &["f:2", "expected:\n  \"b\"", "got:\n  \"a\""][..],
        ),
        (
            "== t\n> LIST a b\n(any order)\n1) \"a\"\n2) \"a\"",
            &["f:2"],
        ),
        ("== t\n> LIST a\n1) \"a\"\n2) \"a\"", &["f:2"]),
        ("== t\n> NONE\n(nil bulk)", &["got:\n  (nil array)"]),
        (
            "== t\n> SAY a\n(blocked)",
            &["expected it to block", "\"a\""],
        ),
        ("== t\na> WAIT\n(blocked)\n> WAKE\nOK", &["more at the end"]),
        ("== t\na> WAIT\n\"x\"", &["got no reply: silence"]),
        ("== t\n> SAY {$x}\n\"x\"", &["nothing captured as x"]),
    ] {
        let failure = played(text).map(|_| ()).expect_err(text);
        for part in parts {
            assert!(failure.contains(part), "{part:?} not in:\n{failure}");
        }
    }
}

#[test]
fn elements_keep_their_inner_lines() {
    let lines: Vec<String> = owned("1) 1) \"a\"\n   2) \"b\"\n2) \"c\"");
    assert_eq!(
        elements(&lines),
        [vec!["1) \"a\"", "2) \"b\""], vec!["\"c\""]]
    );
}
