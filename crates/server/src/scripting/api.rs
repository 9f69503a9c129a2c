//! The functions of `redis` that are not calls of commands.
//!
//! Their errors are tables, as those of commands are.

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::arguments::{Answer, Raised, result};
use super::registry::{hex, sha_of};
use super::run::{BAD_ARGUMENT, NO_ARGUMENT};
use super::{current, number};
use crate::config::LogLevel;
use crate::log;

/// The version of Redis whose behaviour is kept, and the same as a number.
pub const REDIS_VERSION: &str = crate::config::REDIS_VERSION;

/// Levels of `redis.log`.
const LEVELS: [(&str, i64); 4] = [
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
];

/// The constants.
///
/// # Errors
/// Where memory is short.
pub fn constants(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, level) in LEVELS {
        table.raw_set(name, level)?;
    }
    let replication = [
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_REPLICA", 2),
        ("REPL_SLAVE", 2),
        ("REPL_ALL", 3),
    ];
    for (name, value) in replication {
        table.raw_set(name, value)?;
    }
    table.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    let number = REDIS_VERSION
        .split('.')
        .fold(0u32, |number, part| number << 8 | part.parse().unwrap_or(0));
    table.raw_set("REDIS_VERSION_NUM", number)?;
    Ok(table)
}

fn done() -> Answer {
    Ok(MultiValue::new())
}

fn failure(text: &str) -> Answer {
    Err(Raised::table(text.as_bytes().to_vec()))
}

/// A word of a call: a string, or a number as its text.
pub fn push_word(value: &Value, out: &mut Vec<u8>) -> bool {
    match value {
        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
        Value::Integer(value) => push_int(*value, out),
        Value::Number(value) => push_number(*value, out),
        _ => return false,
    }
    true
}

fn push_int(value: i64, out: &mut Vec<u8>) {
    // Lua has doubles only: what is past 2^53 comes as the double that it is.
    out.extend_from_slice(value.to_string().as_bytes());
}

#[allow(clippy::cast_precision_loss, clippy::float_cmp)] // Whether nothing is lost is the question.
fn push_number(value: f64, out: &mut Vec<u8>) {
    let int = number::to_int(value);
    if int as f64 == value && int.unsigned_abs() < 1 << 62 {
        push_int(int, out);
    } else if value.is_nan() && value.is_sign_negative() {
        out.extend_from_slice(b"-nan");
    } else {
        resp::format_double(value, out);
    }
}

/// A string as Lua's own functions take it.
fn text_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(value) => Some(number::of_int(*value)),
        Value::Number(value) => {
            let mut text = Vec::new();
            number::push_general(*value, 14, &mut text);
            Some(text)
        }
        _ => None,
    }
}

fn int_of(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Integer(value) => Some(*value),
        Value::Number(value) => Some(number::to_int(*value)),
        Value::String(text) => {
            let value: f64 = std::str::from_utf8(&text.as_bytes())
                .ok()?
                .trim()
                .parse()
                .ok()?;
            Some(number::to_int(value))
        }
        _ => None,
    }
}

/// The functions.
///
/// # Errors
/// Where memory is short.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let add = |name: &str, function: Function| table.raw_set(name, function);
    add(
        "sha1hex",
        lua.create_function(|lua, args: MultiValue| sha1hex(lua, &args))?,
    )?;
    add(
        "error_reply",
        lua.create_function(|lua, args: MultiValue| one_field(lua, &args, "err"))?,
    )?;
    add(
        "status_reply",
        lua.create_function(|lua, args: MultiValue| one_field(lua, &args, "ok"))?,
    )?;
    add(
        "log",
        lua.create_function(|_, args: MultiValue| write_log(&args))?,
    )?;
    add(
        "setresp",
        lua.create_function(|_, args: MultiValue| setresp(&args))?,
    )?;
    add(
        "set_repl",
        lua.create_function(|_, args: MultiValue| set_repl(&args))?,
    )?;
    add(
        "acl_check_cmd",
        lua.create_function(|_, args: MultiValue| acl_check_cmd(&args))?,
    )?;
    // Effects are always what is replicated.
    add(
        "replicate_commands",
        lua.create_function(|_, _: MultiValue| result(Value::Boolean(true)))?,
    )?;
    // There is no debugger: nothing stops, and nothing is shown.
    add(
        "breakpoint",
        lua.create_function(|_, _: MultiValue| result(Value::Boolean(false)))?,
    )?;
    add("debug", lua.create_function(|_, _: MultiValue| done())?)?;
    Ok(table)
}

fn sha1hex(lua: &Lua, args: &MultiValue) -> Answer {
    if args.len() != 1 {
        return failure("ERR wrong number of arguments");
    }
    let text = args.front().and_then(text_of).unwrap_or_default();
    let hex = lua.create_string(hex(&sha_of(&text)))?;
    result(Value::String(hex))
}

/// `{err=...}` or `{ok=...}`.
fn one_field(lua: &Lua, args: &MultiValue, field: &str) -> Answer {
    let table = lua.create_table_with_capacity(0, 1)?;
    let (1, Some(Value::String(text))) = (args.len(), args.front()) else {
        table.raw_set("err", "ERR wrong number or type of arguments")?;
        return result(Value::Table(table));
    };
    if field == "ok" {
        table.raw_set("ok", text)?;
        return result(Value::Table(table));
    }
    let bytes = text.as_bytes();
    let text = bytes.strip_prefix(b"-").unwrap_or(&bytes);
    // A text of one word has no code.
    let text = if text.contains(&b' ') {
        text.to_vec()
    } else {
        [b"ERR ", text].concat()
    };
    table.raw_set("err", lua.create_string(text)?)?;
    result(Value::Table(table))
}

fn write_log(args: &MultiValue) -> Answer {
    if args.len() < 2 {
        return failure("ERR redis.log() requires two arguments or more.");
    }
    let Some(level) = int_of(args.front()) else {
        return failure("ERR First argument must be a number (log level).");
    };
    let level @ 0..=3 = level else {
        return failure("ERR Invalid log level.");
    };
    let words: Vec<Vec<u8>> = args.iter().skip(1).filter_map(text_of).collect();
    let text = words.join(&b' ');
    let text = String::from_utf8_lossy(&text);
    match level {
        0 => log::write(LogLevel::Debug, format_args!("{text}")),
        1 => log::write(LogLevel::Verbose, format_args!("{text}")),
        2 => log::write(LogLevel::Notice, format_args!("{text}")),
        _ => log::write(LogLevel::Warning, format_args!("{text}")),
    }
    done()
}

fn setresp(args: &MultiValue) -> Answer {
    if args.len() != 1 {
        return failure("ERR redis.setresp() requires one argument.");
    }
    match int_of(args.front()) {
        Some(version @ (2 | 3)) => {
            current::calls(|calls| calls.set_resp3(version == 3));
            done()
        }
        _ => failure("ERR RESP version must be 2 or 3."),
    }
}

fn set_repl(args: &MultiValue) -> Answer {
    if args.len() != 1 {
        return failure("ERR redis.set_repl() requires one argument.");
    }
    // What is no number counts as none of the flags.
    match int_of(args.front()).unwrap_or(0) {
        0..=3 => done(),
        _ => failure(
            "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ),
    }
}

fn acl_check_cmd(args: &MultiValue) -> Answer {
    if args.is_empty() {
        return failure(NO_ARGUMENT);
    }
    let mut words = Vec::new();
    for arg in args {
        let mut word = Vec::new();
        if !push_word(arg, &mut word) {
            return failure(BAD_ARGUMENT);
        }
        words.push(word);
    }
    match current::calls(|calls| calls.may_call(&words)) {
        Some(Ok(may)) => result(Value::Boolean(may)),
        Some(Err(text)) => failure(text),
        None => done(),
    }
}
