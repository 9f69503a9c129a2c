//! A user who may read `a:*` alone must reach no other key, whatever command it sends: every
//! command of the table is called many times with words made up from its grammar.

use client::{Client, Reply};
use command::ArgKind;
use command::arg::Arg;
use engine::{Command, Table};
use testkit::Server;

/// Calls made up for each command.
const CALLS: usize = 60;
/// Stands in every value that must not be seen.
const SECRET: &str = "classified";

/// Commands that are for whole databases or for the connection itself: rights to keys say nothing
/// about them, as in Redis, and whoever is to be kept to some keys is not given them.
fn is_about_keys(name: &str, entry: &engine::Entry) -> bool {
    use command::Acl;
    let apart = [Acl::ADMIN, Acl::CONNECTION, Acl::TRANSACTION, Acl::PUBSUB];
    let whole = [
        "keys",
        "scan",
        "randomkey",
        "dbsize",
        "flushall",
        "flushdb",
        "swapdb",
        "debug",
        "cluster",
        "info",
        "replicaof",
        "role",
        "shutdown",
        "function",
        "script",
        "trimslots",
    ];
    let first = name.split('|').next().unwrap_or(name);
    !apart.into_iter().any(|one| entry.acl.has(one)) && !whole.contains(&first)
}

/// xorshift: the same calls each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const KINDS: [&str; 7] = ["str", "num", "list", "set", "zset", "hash", "stream"];

/// Words for a call, and whether one of them is a key that is out of reach.
struct Call {
    words: Vec<String>,
    is_forbidden: bool,
}

impl Call {
    fn key(&mut self, draw: &mut Draw) {
        let kind = draw.of(&KINDS);
        let is_own = draw.below(3) == 0;
        self.is_forbidden |= !is_own;
        self.words
            .push(format!("{}:{kind}", if is_own { 'a' } else { 'b' }));
    }

    fn add(&mut self, arg: &Arg, draw: &mut Draw) {
        if arg.is_optional && draw.below(3) > 0 {
            return;
        }
        let times = if arg.is_multiple {
            1 + draw.below(2)
        } else {
            1
        };
        for time in 0..times {
            if let Some(token) = arg.token
                && (time == 0 || arg.is_token_repeated)
            {
                self.words.push(token.to_owned());
            }
            match arg.kind {
                ArgKind::Flag => {}
                ArgKind::Key => self.key(draw),
                ArgKind::Pattern => self.words.push(draw.of(&["b:*", "*", "#"]).to_owned()),
                ArgKind::String => {
                    let word = draw.of(&["b:str", "field", "0-0", "2", "1", "a", ">", "b:list"]);
                    self.words.push(word.to_owned());
                }
                ArgKind::Int => self.words.push(draw.of(&["1", "2", "0", "3"]).to_owned()),
                ArgKind::Double => self.words.push(draw.of(&["1", "0.01"]).to_owned()),
                ArgKind::UnixTime => self.words.push("4102444800".to_owned()),
                ArgKind::OneOf => self.add(&draw.of(arg.args), draw),
                ArgKind::Block => arg.args.iter().for_each(|part| self.add(part, draw)),
            }
        }
    }
}

fn call(client: &mut Client, words: &[&str]) -> Reply {
    client.call(words).expect("the server answers")
}

/// All bytes of a reply as text.
fn text(reply: &Reply) -> String {
    match reply {
        Reply::Status(bytes) | Reply::Error(bytes) | Reply::Bulk(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Reply::Verbatim(_, bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Array(all) | Reply::Set(all) | Reply::Push(all) => {
            let all: Vec<_> = all.iter().map(text).collect();
            all.join(" ")
        }
        other => format!("{other:?}"),
    }
}

fn fill(admin: &mut Client, prefix: &str, value: &str) {
    for line in [
        "SET {p}:str {v}",
        "SET {p}:num 12",
        "RPUSH {p}:list {v} 1",
        "SADD {p}:set {v} field",
        "ZADD {p}:zset 1 {v} 2 field",
        "HSET {p}:hash field {v} a 1",
        "XADD {p}:stream 1-1 field {v}",
        "XGROUP CREATE {p}:stream a 0",
    ] {
        let line = line.replace("{p}", prefix).replace("{v}", value);
        let words: Vec<&str> = line.split(' ').collect();
        let reply = call(admin, &words);
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
}

fn digests(admin: &mut Client) -> Reply {
    let keys: Vec<String> = KINDS.iter().map(|kind| format!("b:{kind}")).collect();
    let mut words = vec!["DEBUG", "DIGEST-VALUE"];
    words.extend(keys.iter().map(String::as_str));
    call(admin, &words)
}

fn walk(threads: &str, rules: &str) {
    let options = ["--threads", threads, "--enable-debug-command", "yes"];
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tidemill-server"));
    let server = Server::start(program, &options).expect("it starts");
    let mut admin = server.client().expect("it accepts");
    fill(&mut admin, "b", SECRET);
    let before = digests(&mut admin);
    let mut words = vec!["ACL", "SETUSER", "reader", "on", "nopass"];
    words.extend(rules.split(' '));
    assert!(matches!(call(&mut admin, &words), Reply::Status(_)));
    let mut reader = server.client().expect("it accepts");
    assert!(matches!(
        call(&mut reader, &["AUTH", "reader", "x"]),
        Reply::Status(_)
    ));

    let ours = engine::commands::FAMILIES.iter();
    let families: Vec<&'static [Command]> =
        ours.chain(server::commands::FAMILIES).copied().collect();
    let table = Table::new(&families);
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let (mut calls, mut refused) = (0, 0);
    for entry in table.entries() {
        let name = &*entry.full_name;
        if entry.run.is_none() || !is_about_keys(name, entry) {
            continue;
        }
        // Half of its own keys are changed on the way.
        call(&mut admin, &["DEL", "a:list", "a:set", "a:str", "a:zset"]);
        for _ in 0..CALLS {
            let mut made = Call {
                words: name.split('|').map(str::to_owned).collect(),
                is_forbidden: false,
            };
            for arg in entry.command.args {
                made.add(arg, &mut draw);
            }
            let words: Vec<&str> = made.words.iter().map(String::as_str).collect();
            // Inside MULTI nothing waits.
            let waits = entry.flags.has(command::Flags::BLOCKING);
            if waits {
                call(&mut reader, &["MULTI"]);
            }
            let mut reply = call(&mut reader, &words);
            if waits {
                let all = call(&mut reader, &["EXEC"]);
                if let (Reply::Status(_), Reply::Array(mut ran)) = (&reply, all) {
                    reply = ran.pop().expect("one command was queued");
                }
            }
            calls += 1;
            let shown = text(&reply);
            assert!(
                !shown.contains(SECRET),
                "{words:?} shows what must not be seen: {shown}"
            );
            // Made up words may be wrong in themselves, but what is said about a key was looked at.
            let looked = ["WRONGTYPE", "NOGROUP", "BUSYGROUP", "no such key"];
            let is_refused =
                matches!(reply, Reply::Error(_)) && !looked.iter().any(|why| shown.contains(why));
            refused += usize::from(shown.contains("NOPERM"));
            assert!(is_refused || !made.is_forbidden, "{words:?} ran: {shown}");
        }
    }
    assert_eq!(
        digests(&mut admin),
        before,
        "a key out of reach was changed"
    );
    assert!(refused * 3 > calls, "{refused} of {calls} were refused");
}

#[test]
fn a_reader_reaches_no_other_key() {
    walk("1", "+@all &* %R~a:*");
}

#[test]
fn who_may_write_some_keys_reaches_no_other() {
    walk("2", "+@all &* ~a:* (+@all %R~c:*)");
}
