//! `cjson`: JSON.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{Answer, failure, int, result, results, text, type_name, wrong};

mod decode;
mod encode;

/// Nesting that no setting goes beyond: it is bounded by the stack.
const DEPTH_MAX: i64 = 1000;

/// What is done with numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    Refused,
    Kept,
    Null,
}

/// The settings of one instance of the library.
struct Config {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: i64,
    decode_depth: i64,
    precision: i64,
    keeps_buffer: bool,
    encode_invalid: Invalid,
    decode_invalid: bool,
    arrays_marked: bool,
    /// The metatable of lists that were decoded while `arrays_marked`.
    array_mark: Table,
}

type Shared = Rc<RefCell<Config>>;

/// A setting between two bounds: sets it where it is given, and returns it.
fn bounded(
    args: &MultiValue,
    at: usize,
    name: &str,
    bounds: (i64, i64),
    slot: &mut i64,
) -> Result<(), String> {
    if let None | Some(Value::Nil) = args.get(at - 1) {
        return Ok(());
    }
    let value = int(args, at, name)?;
    if value < bounds.0 || value > bounds.1 {
        let why = format!("expected integer between {} and {}", bounds.0, bounds.1);
        return Err(wrong(at, name, &why));
    }
    *slot = value;
    Ok(())
}

/// A setting that is on or off.
fn switch(args: &MultiValue, at: usize, name: &str, slot: &mut bool) -> Result<(), String> {
    match args.get(at - 1) {
        None | Some(Value::Nil) => Ok(()),
        Some(Value::Boolean(on)) => {
            *slot = *on;
            Ok(())
        }
        Some(Value::String(word)) => {
            match &*word.as_bytes() {
                b"on" => *slot = true,
                b"off" => *slot = false,
                word => return Err(bad_option(at, name, &String::from_utf8_lossy(word))),
            }
            Ok(())
        }
        Some(other) => match text(args, at, name) {
            Ok(word) => Err(bad_option(at, name, &String::from_utf8_lossy(&word))),
            Err(_) => Err(wrong(
                at,
                name,
                &format!("string expected, got {}", type_name(Some(other))),
            )),
        },
    }
}

fn bad_option(at: usize, name: &str, word: &str) -> String {
    wrong(at, name, &format!("invalid option '{word}'"))
}

fn at_most(args: &MultiValue, count: usize, name: &str) -> Result<(), String> {
    if args.len() > count {
        return Err(wrong(count + 1, name, "found too many arguments"));
    }
    Ok(())
}

fn one_argument(args: &MultiValue, name: &str) -> Result<(), String> {
    if args.len() == 1 {
        Ok(())
    } else {
        Err(wrong(1, name, "expected 1 argument"))
    }
}

/// A function that reads or changes settings.
type Setting = fn(&mut Config, &MultiValue) -> Result<Vec<Value>, String>;

fn encode_sparse_array(config: &mut Config, args: &MultiValue) -> Result<Vec<Value>, String> {
    const NAME: &str = "encode_sparse_array";
    at_most(args, 3, NAME)?;
    switch(args, 1, NAME, &mut config.sparse_convert)?;
    bounded(
        args,
        2,
        NAME,
        (0, i32::MAX.into()),
        &mut config.sparse_ratio,
    )?;
    bounded(args, 3, NAME, (0, i32::MAX.into()), &mut config.sparse_safe)?;
    Ok(vec![
        Value::Boolean(config.sparse_convert),
        Value::Integer(config.sparse_ratio),
        Value::Integer(config.sparse_safe),
    ])
}

fn encode_max_depth(config: &mut Config, args: &MultiValue) -> Result<Vec<Value>, String> {
    const NAME: &str = "encode_max_depth";
    at_most(args, 1, NAME)?;
    bounded(
        args,
        1,
        NAME,
        (1, i32::MAX.into()),
        &mut config.encode_depth,
    )?;
    Ok(vec![Value::Integer(config.encode_depth)])
}

fn decode_max_depth(config: &mut Config, args: &MultiValue) -> Result<Vec<Value>, String> {
    const NAME: &str = "decode_max_depth";
    at_most(args, 1, NAME)?;
    bounded(
        args,
        1,
        NAME,
        (1, i32::MAX.into()),
        &mut config.decode_depth,
    )?;
    Ok(vec![Value::Integer(config.decode_depth)])
}

fn encode_number_precision(config: &mut Config, args: &MultiValue) -> Result<Vec<Value>, String> {
    const NAME: &str = "encode_number_precision";
    at_most(args, 1, NAME)?;
    bounded(args, 1, NAME, (1, 14), &mut config.precision)?;
    Ok(vec![Value::Integer(config.precision)])
}

fn encode_keep_buffer(config: &mut Config, args: &MultiValue) -> Result<Vec<Value>, String> {
    const NAME: &str = "encode_keep_buffer";
    at_most(args, 1, NAME)?;
    switch(args, 1, NAME, &mut config.keeps_buffer)?;
    Ok(vec![Value::Boolean(config.keeps_buffer)])
}

fn decode_invalid_numbers(config: &mut Config, args: &MultiValue) -> Result<Vec<Value>, String> {
    const NAME: &str = "decode_invalid_numbers";
    at_most(args, 1, NAME)?;
    switch(args, 1, NAME, &mut config.decode_invalid)?;
    Ok(vec![Value::Boolean(config.decode_invalid)])
}

fn decode_array_with_array_mt(
    config: &mut Config,
    args: &MultiValue,
) -> Result<Vec<Value>, String> {
    const NAME: &str = "decode_array_with_array_mt";
    at_most(args, 1, NAME)?;
    switch(args, 1, NAME, &mut config.arrays_marked)?;
    Ok(vec![Value::Boolean(config.arrays_marked)])
}

fn encode_invalid_numbers(lua: &Lua, config: &mut Config, args: &MultiValue) -> Answer {
    const NAME: &str = "encode_invalid_numbers";
    let is_null = matches!(args.front(), Some(Value::String(word)) if *word.as_bytes() == *b"null");
    let mut is_kept = config.encode_invalid == Invalid::Kept;
    let changed = at_most(args, 1, NAME).and_then(|()| {
        if is_null {
            config.encode_invalid = Invalid::Null;
        } else if !matches!(args.front(), None | Some(Value::Nil)) {
            switch(args, 1, NAME, &mut is_kept)?;
            config.encode_invalid = if is_kept {
                Invalid::Kept
            } else {
                Invalid::Refused
            };
        }
        Ok(())
    });
    if let Err(text) = changed {
        return failure(lua, &text);
    }
    result(match config.encode_invalid {
        Invalid::Refused => Value::Boolean(false),
        Invalid::Kept => Value::Boolean(true),
        Invalid::Null => Value::String(lua.create_string("null")?),
    })
}

/// An instance of the library, with settings of its own.
///
/// # Errors
/// Where memory is short.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let config: Shared = Rc::new(RefCell::new(Config {
        sparse_convert: false,
        sparse_ratio: 2,
        sparse_safe: 10,
        encode_depth: 1000,
        decode_depth: 1000,
        precision: 14,
        keeps_buffer: true,
        encode_invalid: Invalid::Refused,
        decode_invalid: true,
        arrays_marked: false,
        array_mark: lua.create_table()?,
    }));
    const SETTINGS: [(&str, Setting); 7] = [
        ("encode_sparse_array", encode_sparse_array),
        ("encode_max_depth", encode_max_depth),
        ("decode_max_depth", decode_max_depth),
        ("encode_number_precision", encode_number_precision),
        ("encode_keep_buffer", encode_keep_buffer),
        ("decode_invalid_numbers", decode_invalid_numbers),
        ("decode_array_with_array_mt", decode_array_with_array_mt),
    ];
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Value::NULL)?;
    for (name, setting) in SETTINGS {
        let config = config.clone();
        let function = move |lua: &Lua, args: MultiValue| -> Answer {
            match setting(&mut config.borrow_mut(), &args) {
                Ok(mut values) if values.len() == 1 => result(values.remove(0)),
                Ok(values) => results(values),
                Err(text) => failure(lua, &text),
            }
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let shared = config.clone();
    let function = move |lua: &Lua, args: MultiValue| {
        encode_invalid_numbers(lua, &mut shared.borrow_mut(), &args)
    };
    table.raw_set("encode_invalid_numbers", lua.create_function(function)?)?;
    let shared = config.clone();
    let function = move |lua: &Lua, args: MultiValue| -> Answer {
        if let Err(text) = one_argument(&args, "encode") {
            return failure(lua, &text);
        }
        match encode::encode(&shared.borrow(), args.front().unwrap_or(&Value::Nil))? {
            Ok(text) => result(Value::String(lua.create_string(text)?)),
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("encode", lua.create_function(function)?)?;
    let shared = config.clone();
    let function = move |lua: &Lua, args: MultiValue| -> Answer {
        let source = one_argument(&args, "decode").and_then(|()| text(&args, 1, "decode"));
        match source {
            Ok(source) => match decode::decode(lua, &shared.borrow(), &source)? {
                Ok(value) => result(value),
                Err(text) => failure(lua, &text),
            },
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("decode", lua.create_function(function)?)?;
    let function = |lua: &Lua, _: MultiValue| -> Answer { result(Value::Table(functions(lua)?)) };
    table.raw_set("new", lua.create_function(function)?)?;
    Ok(table)
}
