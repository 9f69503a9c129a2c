//! A data set of every type, in every form that it is kept in, and what is asked to compare it.

use client::{Client, Reply};

use super::{ask, call};

/// What a server knows beside what all of them do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As Redis 7.0.
    Plain,
    /// Deadlines of a hash's fields.
    TimedFields,
    /// As Redis 8.10.
    Everything,
}

/// Deadlines are this one, in the year 2100, or a little later.
const LATER_MS: u64 = 4_102_444_800_000;

type Words = Vec<Vec<u8>>;

fn words(text: &str) -> Words {
    text.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// Bytes that no compression makes shorter.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

fn strings(into: &mut Vec<Words>) {
    let ints = "0 -1 12 127 128 -128 -129 255 32767 32768 -32769 2147483647 2147483648 -2147483649 \
                9223372036854775807 -9223372036854775808 007 +1 -0 1.5";
    for (index, text) in ints.split(' ').enumerate() {
        into.push(words(&format!("SET int:{index} {text}")));
    }
    let key = |name: &str| name.as_bytes().to_vec();
    let mut set = |name: &[u8], value: Vec<u8>| {
        into.push(vec![key("SET"), name.to_vec(), value]);
    };
    set(b"", key("the empty key"));
    set(b"empty", Vec::new());
    set(b"12345", key("a key that is a number"));
    set(b"\x00\xff\r\n key", b"\x00\xff\r\n".to_vec());
    set(&[b'k'; 300], key("a long key"));
    for len in [
        20, 21, 44, 45, 63, 64, 512, 513, 4096, 4097, 16383, 16384, 300_000,
    ] {
        set(format!("same:{len}").as_bytes(), vec![b'a'; len]);
        set(format!("noise:{len}").as_bytes(), noise(len));
    }
    into.push(words("SETBIT bits 70000 1"));
    into.push(words("APPEND raw abc"));
    into.push(words("APPEND raw def"));
}

/// The numbers from 0 to `count`, each as `each` makes it, behind the words of `begin`.
fn many(begin: &str, count: usize, mut each: impl FnMut(usize) -> Vec<String>) -> Words {
    let mut all = words(begin);
    for number in 0..count {
        all.extend(each(number).into_iter().map(String::into_bytes));
    }
    all
}

fn collections(into: &mut Vec<Words>) {
    let key = |name: &str| name.as_bytes().to_vec();
    into.push(words("RPUSH list:small a 1 -1 300 70000 5000000000 bb"));
    into.push(many("RPUSH list:long", 3000, |n| {
        vec![format!("element {n}")]
    }));
    into.push(vec![
        key("RPUSH"),
        key("list:wide"),
        noise(50_000),
        vec![b'x'; 9000],
        key("end"),
    ]);
    into.push(words("SADD set:ints 1 2 -3"));
    into.push(words("SADD set:ints32 1 100000 -3"));
    into.push(words("SADD set:ints64 1 10000000000 -3"));
    into.push(words("SADD set:small a 1 bb"));
    into.push(many("SADD set:large", 600, |n| vec![format!("member {n}")]));
    into.push(many("SADD set:largeints", 700, |n| vec![n.to_string()]));
    into.push(vec![
        key("SADD"),
        key("set:wide"),
        noise(200),
        vec![b'x'; 300],
    ]);
    into.push(words(
        "ZADD zset:small 1 a -inf b inf c 0.1 d -1.5e300 e 3 4",
    ));
    into.push(many("ZADD zset:large", 400, |n| {
        vec![format!("{}.25", n * 7 % 100), format!("member {n}")]
    }));
    into.push(vec![key("ZADD"), key("zset:wide"), key("2"), noise(100)]);
    into.push(words(
        "GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
    ));
    into.push(words("HSET hash:small f v n 12 big -9223372036854775808"));
    into.push(vec![key("HSET"), key("hash:wide"), key("f"), noise(100)]);
    into.push(many("HSET hash:large", 700, |n| {
        vec![format!("field {n}"), format!("value {}", n * n)]
    }));
    into.push(many("PFADD hll", 300, |n| vec![n.to_string()]));
    into.push(many("PFADD hll:dense", 5000, |n| vec![n.to_string()]));
}

fn streams(into: &mut Vec<Words>) {
    for n in 1..=350 {
        into.push(words(&format!(
            "XADD stream:long {n}-{} sensor {n} value x{n}",
            n % 3
        )));
    }
    into.push(words("XDEL stream:long 5-2 6-0 350-2"));
    for line in [
        "XADD stream 5-1 a 1 b 2",
        "XADD stream 5-2 c 3",
        "XADD stream 6-0 a 1 b 2 c 3",
        "XADD stream 18446744073709551615-5 a last",
        "XGROUP CREATE stream g 0",
        "XGROUP CREATE stream unknown 5-2",
        "XGROUP CREATE stream 42 $",
        "XREADGROUP GROUP g 7 COUNT 2 STREAMS stream >",
        "XREADGROUP GROUP g bob COUNT 1 STREAMS stream >",
        "XGROUP CREATECONSUMER stream g idle",
        "XACK stream g 5-1",
        "XADD stream:empty 1-1 a 1",
        "XGROUP CREATE stream:empty g 0",
        "XDEL stream:empty 1-1",
        "XADD stream:trimmed 1-1 a 1",
        "XADD stream:trimmed 2-1 a 2",
        "XADD stream:trimmed 3-1 a 3",
        "XTRIM stream:trimmed MAXLEN 1",
    ] {
        into.push(words(line));
    }
}

fn beyond_plain(level: Level, into: &mut Vec<Words>) {
    if level >= Level::TimedFields {
        into.push(words("HSET hash:timed a 1 b 2 c 3"));
        into.push(words(&format!(
            "HPEXPIREAT hash:timed {LATER_MS} FIELDS 1 a"
        )));
        into.push(words(&format!(
            "HPEXPIREAT hash:timed {} FIELDS 1 c",
            LATER_MS + 5
        )));
        into.push(many("HSET hash:timed:large", 600, |n| {
            vec![format!("field {n}"), format!("value {n}")]
        }));
        for n in (0..600).step_by(7) {
            let at = LATER_MS + 1000 * (600 - n);
            let mut line = words(&format!("HPEXPIREAT hash:timed:large {at} FIELDS 1"));
            line.push(format!("field {n}").into_bytes());
            into.push(line);
        }
    }
    if level == Level::Everything {
        into.push(words("ARSET array 0 a"));
        into.push(words("ARSET array 1 12 34 1.5 text-that-is-long-enough"));
        into.push(words("ARSET array 1000000 far"));
        into.push(words("ARSET array 18446744073709551614 last"));
        into.push(words("ARINSERT array:ring x y z"));
        into.push(words("HIMPORT PREPARE fields c a bb"));
        into.push(words("HIMPORT SET hash:template:small fields 1 two 3"));
        into.push(words(&format!(
            "HIMPORT SET hash:template fields 1 {} 3",
            "x".repeat(70)
        )));
    }
}

/// Puts everything into a server, in several databases.
pub fn fill(client: &mut Client, level: Level) {
    let library: &[u8] = b"#!lua name=tides\n\
        redis.register_function('tide', function(keys, args) return 'ebb and ' .. args[1] end)";
    let loaded = call(client, &[b"FUNCTION", b"LOAD", library]);
    assert_eq!(loaded.text().as_deref(), Some("tides"), "{loaded:?}");
    let mut commands = Vec::new();
    strings(&mut commands);
    collections(&mut commands);
    streams(&mut commands);
    beyond_plain(level, &mut commands);
    for line in [
        format!("PEXPIREAT int:1 {LATER_MS}"),
        format!("PEXPIREAT list:small {}", LATER_MS + 1),
        format!("PEXPIREAT hash:large {}", LATER_MS + 999),
        "SELECT 1".to_owned(),
        "SET k one".to_owned(),
        "SELECT 15".to_owned(),
        "SET k fifteen".to_owned(),
        "SADD s 1 2 3".to_owned(),
        "SELECT 0".to_owned(),
    ] {
        commands.push(words(&line));
    }
    for command in &commands {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let reply = call(client, &words);
        let shown: Vec<String> = command.iter().take(3).map(|word| shown(word)).collect();
        assert!(!reply.is_error(), "{shown:?}: {reply:?}");
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(60)].escape_ascii().to_string()
}

/// A digest of bytes that are too long to be shown.
fn brief(bytes: &[u8]) -> String {
    if bytes.len() <= 60 {
        return shown(bytes);
    }
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{} bytes {sum:016x}", bytes.len())
}

fn flat(reply: &Reply) -> String {
    match reply {
        Reply::Array(list) | Reply::Set(list) => {
            let parts: Vec<String> = list.iter().map(flat).collect();
            format!("[{}]", parts.join(", "))
        }
        Reply::Integer(number) => number.to_string(),
        other => match other.bytes() {
            Some(bytes) => brief(bytes),
            None => format!("{other:?}"),
        },
    }
}

fn sorted(reply: &Reply, each: usize) -> String {
    let items = reply.elements().unwrap_or_default();
    let mut parts: Vec<String> = items
        .chunks(each)
        .map(|chunk| chunk.iter().map(flat).collect::<Vec<_>>().join("="))
        .collect();
    parts.sort();
    parts.join(", ")
}

/// What a server holds, line by line, in an order of its own.
pub fn walk(client: &mut Client, level: Level) -> Vec<String> {
    let mut lines = Vec::new();
    for db in [0, 1, 2, 15] {
        ask(client, &format!("SELECT {db}"));
        let keys = ask(client, "KEYS *");
        for key in keys.elements().unwrap_or_default() {
            let key = key.bytes().expect("a key");
            let mut line = format!("{db} {}", shown(key));
            line += &format!(" at {}", flat(&call(client, &[b"PEXPIRETIME", key])));
            line += &format!(": {}", value(client, key, level));
            lines.push(line);
        }
    }
    ask(client, "SELECT 0");
    lines.push(format!("tide: {}", flat(&ask(client, "FCALL tide 0 flow"))));
    lines.sort();
    lines
}

fn value(client: &mut Client, key: &[u8], level: Level) -> String {
    let kind = flat(&call(client, &[b"TYPE", key]));
    let mut get = |words: &[&[u8]]| call(client, words);
    let found = match kind.as_str() {
        "string" => flat(&get(&[b"GET", key])),
        "list" => flat(&get(&[b"LRANGE", key, b"0", b"-1"])),
        "set" => sorted(&get(&[b"SMEMBERS", key]), 1),
        "zset" => {
            let all = get(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]);
            let pairs = all.elements().unwrap_or_default().chunks(2);
            // Versions print the same number with more digits or fewer.
            let each = |pair: &[Reply]| format!("{} {:?}", flat(&pair[0]), pair[1].double());
            pairs.map(each).collect::<Vec<_>>().join(", ")
        }
        "hash" => {
            let all = get(&[b"HGETALL", key]);
            let mut text = sorted(&all, 2);
            if level >= Level::TimedFields {
                let fields = all.elements().unwrap_or_default();
                let mut times: Vec<String> = fields
                    .iter()
                    .step_by(2)
                    .map(|field| {
                        let field = field.bytes().expect("a field");
                        let at = get(&[b"HPEXPIRETIME", key, b"FIELDS", b"1", field]);
                        format!("{} {}", shown(field), flat(&at))
                    })
                    .collect();
                times.sort();
                text += &times.join(", ");
            }
            text
        }
        "stream" => stream(&mut get, key),
        "array" => {
            let count = flat(&get(&[b"ARCOUNT", key]));
            let len = flat(&get(&[b"ARLEN", key]));
            let next = flat(&get(&[b"ARNEXT", key]));
            let all = flat(&get(&[b"ARSCAN", key, b"0", b"18446744073709551614"]));
            format!("{count} {len} {next} {all}")
        }
        _ => panic!("{}: {kind}", shown(key)),
    };
    format!("{kind} {found}")
}

fn stream(get: &mut dyn FnMut(&[&[u8]]) -> Reply, key: &[u8]) -> String {
    let mut text = flat(&get(&[b"XRANGE", key, b"-", b"+"]));
    let about = get(&[b"XINFO", b"STREAM", key]);
    for name in [
        "length",
        "last-generated-id",
        "max-deleted-entry-id",
        "entries-added",
        "recorded-first-entry-id",
        "groups",
    ] {
        text += &format!(
            " {name} {}",
            about.field(name).map(flat).unwrap_or_default()
        );
    }
    let groups = get(&[b"XINFO", b"GROUPS", key]);
    for group in groups.elements().unwrap_or_default() {
        let name = group.field("name").and_then(Reply::bytes).expect("a name");
        text += &format!(" group {}", flat(group));
        let pending = get(&[b"XPENDING", key, name, b"-", b"+", b"1000"]);
        for entry in pending.elements().unwrap_or_default() {
            let entry = entry.elements().expect("id, consumer, idle, deliveries");
            // How long ago it was delivered changes.
            text += &format!(
                " {} {} {}",
                flat(&entry[0]),
                flat(&entry[1]),
                flat(&entry[3])
            );
        }
        let consumers = get(&[b"XINFO", b"CONSUMERS", key, name]);
        for consumer in consumers.elements().unwrap_or_default() {
            let name = consumer.field("name").map(flat).unwrap_or_default();
            let pending = consumer.field("pending").map(flat).unwrap_or_default();
            text += &format!(" consumer {name} {pending}");
        }
    }
    text
}
