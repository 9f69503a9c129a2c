//! DEBUG: what test suites need, behind `enable-debug-command`.
//!
//! # Invariants
//! - Nothing here is needed in normal use, so nothing here is fast: every stripe is locked.

use std::sync::atomic::Ordering;
use std::time::Duration;

use command::{Arity, Flags, Group, Shape};
use engine::blocking::{Awaits, Block};
use engine::error::{SHOWN_BYTES_MAX, shown, shown_up_to};
use engine::handler::runs_on_all;
use engine::keyspace::{Deadline, Phase};
use engine::notify::Class;
use engine::object::{Object, transfer};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};
use structure::hash::{Seed, hash};
use structure::record::{RecordRef, Value, ValueRef};

use crate::host::ThreadHost;
use crate::persistence;
use crate::{notice, warning};

/// The family.
pub const COMMANDS: &[Command] = &[DEBUG];

/// Bytes of a value that DEBUG POPULATE makes at most.
const POPULATED_BYTES_MAX: i64 = 512 << 20;

const REFUSED: CommandError = CommandError::text(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
     can run it from a local connection, otherwise you need to set this option in the \
     configuration file, and then restart the server.",
);

const DEBUG: Command = Command {
    name: "debug",
    group: Group::Server,
    since: "1.0.0",
    summary: "Does things that only tests and developers need.",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Any],
    system: true,
    ..runs_on_all(debug)
};

fn debug(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let host = ThreadHost::of(cx);
    let is_local = host
        .client
        .as_ref()
        .is_none_or(|client| client.peer.is_local);
    if !host.config.enable_debug_command.allows(is_local) {
        return Err(REFUSED);
    }
    let word = args.at(1).to_ascii_lowercase();
    match (word.as_slice(), args.len()) {
        (b"change-repl-id", 2) => change_replication_id(cx),
        (b"dict-resizing" | b"set-disable-deny-scripts", 3) | (b"replybuffer", 4) => {}
        (b"quicklist-packed-threshold", 3) => {}
        (b"digest", 2) => {
            let digest = digest_of_all(cx);
            out.simple(&show(digest));
            return Ok(());
        }
        (b"digest-value", 3..) => return digest_values(cx, args, out),
        (b"error", 3) => {
            let text = shown(args.at(2));
            return Err(CommandError::Text(text.into()));
        }
        (b"help", 2) => {
            cx.help(out, HELP);
            return Ok(());
        }
        (b"listpack", 3) => return listpack(cx, args, out),
        (b"log", 3) => warning!("DEBUG LOG: {}", String::from_utf8_lossy(args.at(2))),
        (b"object", 3 | 4) => return object(cx, args, out),
        (b"panic" | b"segfault", 2) => panic!("asked for by DEBUG PANIC"),
        (b"pause-cron", 3) => {
            let paused = args.at(2) != b"0";
            let shared = &ThreadHost::of(cx).shared;
            shared.cron_paused.store(paused, Ordering::Relaxed);
        }
        (b"populate", 3..=5) => populate(cx, args)?,
        (b"protocol", 3) => return protocol(args, out),
        (b"reload", _) => reload(cx, args)?,
        (b"loadaof", 2) => return load_log(cx),
        (b"restart" | b"crash-and-recover", _) => {
            return Err(CommandError::text("ERR this server does not start itself"));
        }
        (b"set-active-expire", 3) => {
            let active = args.at(2) != b"0" && engine::number::int(args.at(2)).is_ok();
            let shared = &ThreadHost::of(cx).shared;
            shared.active_expire.store(active, Ordering::Relaxed);
        }
        (b"sleep", 3) => {
            let seconds = engine::number::double(args.at(2)).unwrap_or(0.0);
            if let Ok(time) = Duration::try_from_secs_f64(seconds) {
                std::thread::sleep(time);
            }
        }
        _ => {
            let shown = shown_up_to(args.at(1), SHOWN_BYTES_MAX);
            return Err(CommandError::err(format!(
                "unknown subcommand or wrong number of arguments for '{shown}'. Try DEBUG HELP."
            )));
        }
    }
    out.ok();
    Ok(())
}

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<argument> ...]:",
    "CHANGE-REPL-ID",
    "    Takes a new name for the data set.",
    "DIGEST",
    "    A digest of all data: the same for the same data, in whatever order it came.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    A digest of each value.",
    "ERROR <text>",
    "    Answers with that error.",
    "LISTPACK <key>",
    "    Writes to the log how a small collection is stored.",
    "LOADAOF",
    "    Writes the append-only log to its end, forgets all data and loads it again.",
    "LOG <text>",
    "    Writes to the log.",
    "OBJECT <key>",
    "    How a value is stored and when it was used.",
    "PANIC",
    "    Ends the server as a bug would.",
    "PAUSE-CRON <0|1>",
    "    Stops what happens by the clock, or lets it go on.",
    "POPULATE <count> [<prefix>] [<bytes>]",
    "    Makes keys <prefix>:0, <prefix>:1 and so on, where they are not there.",
    "PROTOCOL <type>",
    "    A reply of that type.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Saves all data, forgets it and loads it again. NOSAVE loads what was saved before,",
    "    NOFLUSH forgets nothing, MERGE lets keys of the file take the place of others.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether keys past their deadline are removed before somebody asks for them.",
    "SLEEP <seconds>",
    "    Stops the server for that long.",
    "HELP",
    "    This text.",
];

fn change_replication_id(cx: &mut Context<'_>) {
    let words: Vec<String> = (0..3)
        .map(|_| format!("{:016x}", cx.host.random()))
        .collect();
    let id = words.concat()[..40].to_owned();
    notice!("The name of the data set is now {id}");
    *ThreadHost::of(cx).shared.replication_id.lock() = id;
}

fn reload(cx: &mut Context<'_>, args: Args<'_>) -> Result<(), CommandError> {
    let (mut save, mut flush, mut merge) = (true, true, false);
    for index in 2..args.len() {
        match () {
            () if args.is(index, "MERGE") => merge = true,
            () if args.is(index, "NOFLUSH") => flush = false,
            () if args.is(index, "NOSAVE") => save = false,
            () => {
                return Err(CommandError::text(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    let host = ThreadHost::of(cx);
    let (shared, config) = (host.shared.clone(), host.config.clone());
    if save && persistence::save(&shared, &config, &cx.keyspace).is_err() {
        return Err(CommandError::text("ERR"));
    }
    if flush {
        for index in 0..cx.keyspace.count() {
            for db in 0..cx.keyspace.get(index).db_count() {
                engine::commands::database::flush(cx, index, db);
            }
        }
    }
    let loaded = persistence::load_at_once(&shared, &config, &mut cx.keyspace, merge);
    loaded.map_err(|error| {
        warning!("{error}");
        CommandError::text("ERR Error trying to load the RDB dump, check server logs.")
    })?;
    notice!("DB reloaded by DEBUG RELOAD");
    Ok(())
}

/// Empties everything and has the first thread load the log, as at start; the client waits, the
/// others are told that the server is loading.
fn load_log(cx: &mut Context<'_>) -> Result<(), CommandError> {
    if !cx.may_block {
        return Err(CommandError::text(
            "ERR DEBUG LOADAOF cannot be part of a transaction",
        ));
    }
    let shared = ThreadHost::of(cx).shared.clone();
    if !shared.keys.is_serving() {
        return Err(CommandError::text("ERR the server is loading already"));
    }
    if shared.log.has_failed() {
        return Err(CommandError::text(
            "ERR the append-only file cannot be written at present: what it lacks would be lost",
        ));
    }
    persistence::backup::fail_aside(&shared, "the log is loaded again");
    persistence::log_thread::stop(&shared);
    shared.keys.set_phase(Phase::Loading);
    for index in 0..cx.keyspace.count() {
        for db in 0..cx.keyspace.get(index).db_count() {
            engine::commands::database::flush(cx, index, db);
        }
    }
    shared.scripts.libraries.flush();
    *shared.persistence.reloads_log_for.lock() = Some(cx.session.id);
    cx.block(Block::without_keys(Awaits::Host, None));
    shared.wake_all();
    Ok(())
}

fn populate(cx: &mut Context<'_>, args: Args<'_>) -> Result<(), CommandError> {
    let positive = CommandError::text("ERR value is out of range, must be positive");
    let count = engine::number::count(args.at(2), positive.clone())?;
    let prefix = args.get(3).unwrap_or(b"key");
    let bytes = match args.get(4) {
        None => None,
        Some(word) => match engine::number::int(word) {
            Ok(bytes @ 0..=POPULATED_BYTES_MAX) => usize::try_from(bytes).ok(),
            _ => return Err(positive),
        },
    };
    for number in 0..count {
        let key = [prefix, b":", number.to_string().as_bytes()].concat();
        if cx.exists(&key) {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
            value.resize(bytes, 0);
        }
        cx.put(&key, Value::Bytes(&value), Deadline::Clear);
        cx.changed(&key, Class::STRING, "set");
    }
    Ok(())
}

fn object(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let is_lfu = cx.settings.lfu;
    let Some(record) = cx.peek(args.at(2)) else {
        return Err(CommandError::NoSuchKey);
    };
    let access = record.access();
    let encoding = engine::commands::generic::encoding(record);
    let serialized = engine::dump::dump(record.value());
    // A dump ends in a version of two bytes and a checksum of eight, and begins with the type.
    let length = serialized.map_or(0, |bytes| bytes.len().saturating_sub(11));
    let at = record.key().as_ptr();
    let idle = match is_lfu {
        true => 0,
        false => engine::access::seconds(now_ms).wrapping_sub(access) & 0xff_ffff,
    };
    out.simple(&format!(
        "Value at:{at:p} refcount:1 encoding:{encoding} serializedlength:{length} lru:{access} \
         lru_seconds_idle:{idle}"
    ));
    Ok(())
}

fn listpack(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let Some(record) = cx.peek(args.at(2)) else {
        return Err(CommandError::NoSuchKey);
    };
    match record.value() {
        ValueRef::Object(object) if object.encoding() == "listpack" => {
            notice!("Listpack of {} elements", object.len());
            out.simple("Listpack structure printed on stdout");
            Ok(())
        }
        _ => Err(CommandError::text("ERR Not a listpack encoded object.")),
    }
}

fn protocol(args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    match args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => out.text("Hello World"),
        b"integer" => out.int(12345),
        #[allow(clippy::approx_constant)] // What the real server answers.
        b"double" => out.double(3.141),
        b"null" => out.null(),
        b"array" => {
            out.array(3);
            (0..3).for_each(|number| out.int(number));
        }
        b"set" => {
            out.set(3);
            (0..3).for_each(|number| out.int(number));
        }
        b"map" => {
            out.map(3);
            for number in 0..3 {
                out.int(number);
                out.boolean(number == 1);
            }
        }
        b"attrib" => {
            if out.is_resp3() {
                out.attribute(1);
                out.text("key-popularity");
                out.array(2);
                out.text("key:123");
                out.int(90);
            }
            out.text("Some real reply following the attribute");
        }
        b"push" => {
            if !out.is_resp3() {
                return Err(CommandError::text(
                    "ERR RESP2 is not supported by this command",
                ));
            }
            // As the real server has it: the reply stands before what follows it.
            out.text("Some real reply following the push reply");
            out.push(2);
            out.text("server-cpu-usage");
            out.int(42);
        }
        b"bignum" => out.big_number("1234567999999999999999999999999999999"),
        b"true" => out.boolean(true),
        b"false" => out.boolean(false),
        b"verbatim" => out.verbatim("txt", b"This is a verbatim\nstring"),
        _ => {
            return Err(CommandError::text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

/// 160 bits that depend on data and on nothing else.
type Digest = [u64; 3];

fn show(digest: Digest) -> String {
    let words: Vec<String> = digest.iter().map(|word| format!("{word:016x}")).collect();
    words.concat()[..40].to_owned()
}

/// Digests bytes. The seeds are constants, so that two servers say the same.
fn digest_bytes(bytes: &[u8]) -> Digest {
    let seed = |number: u64| Seed::new([number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number]);
    [1, 2, 3].map(|number| hash(&seed(number), bytes))
}

/// Adds a part whose place does not matter.
fn mix(digest: &mut Digest, part: Digest) {
    for (word, more) in digest.iter_mut().zip(part) {
        *word ^= more;
    }
}

/// Bytes and their lengths, so that no two lists of parts look the same.
fn framed(into: &mut Vec<u8>, part: &[u8]) {
    into.extend_from_slice(&(part.len() as u64).to_le_bytes());
    into.extend_from_slice(part);
}

fn digest_value(record: RecordRef<'_, Object>) -> Digest {
    let mut bytes = Vec::new();
    let mut unordered = Digest::default();
    match record.value() {
        ValueRef::Int(number) => framed(&mut bytes, number.to_string().as_bytes()),
        ValueRef::Bytes(text) => framed(&mut bytes, text),
        ValueRef::Object(Object::Set(set)) => {
            transfer::each_member(set, |member| mix(&mut unordered, digest_bytes(member)));
        }
        ValueRef::Object(Object::SortedSet(sorted)) => {
            transfer::each_scored(sorted, |member, score| {
                let mut part = score.to_bits().to_le_bytes().to_vec();
                framed(&mut part, member);
                mix(&mut unordered, digest_bytes(&part));
            });
        }
        ValueRef::Object(Object::Hash(fields)) => {
            transfer::each_field(fields, |field, value, deadline| {
                let mut part = Vec::new();
                framed(&mut part, field);
                framed(&mut part, value);
                part.push(u8::from(deadline.is_some()));
                mix(&mut unordered, digest_bytes(&part));
            });
        }
        ValueRef::Object(Object::List(list)) => {
            let mut text = [0; structure::decimal::TEXT_MAX];
            list.iter()
                .for_each(|entry| framed(&mut bytes, entry.bytes(&mut text)));
        }
        ValueRef::Object(whole @ (Object::Stream(_) | Object::Array(_))) => {
            let dump = engine::dump::dump(ValueRef::Object(whole));
            framed(&mut bytes, &dump.unwrap_or_default());
        }
    }
    let mut digest = digest_bytes(&bytes);
    mix(&mut digest, unordered);
    digest
}

fn digest_values(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let keys = args.from(2);
    out.array(keys.len());
    for key in keys.iter() {
        let digest = cx.peek(key).map_or(Digest::default(), digest_value);
        out.simple(&show(digest));
    }
    Ok(())
}

fn digest_of_all(cx: &mut Context<'_>) -> Digest {
    let mut all = Digest::default();
    for index in 0..cx.keyspace.count() {
        let stripe = cx.keyspace.get(index);
        for number in 0..stripe.db_count() {
            let Some(db) = stripe.db(number) else {
                continue;
            };
            for record in db.table.iter() {
                let mut part = number.to_le_bytes().to_vec();
                framed(&mut part, record.key());
                part.push(u8::from(record.deadline().is_some()));
                for word in digest_value(record) {
                    part.extend_from_slice(&word.to_le_bytes());
                }
                mix(&mut all, digest_bytes(&part));
            }
        }
    }
    all
}
