//! `bit`: operations on 32 bits.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{Answer, failure, int, number, result};

/// Added to a double, it leaves the double's integer part in the lowest bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;

#[allow(clippy::cast_possible_truncation)] // The lowest 32 bits are what is asked for.
fn to_bits(value: f64) -> u32 {
    (value + MAGIC).to_bits() as u32
}

fn signed(lua: &Lua, bits: Result<u32, String>) -> Answer {
    match bits {
        Ok(bits) => result(Value::Integer(bits.cast_signed().into())),
        Err(text) => failure(lua, &text),
    }
}

fn one(args: &MultiValue, name: &str, op: fn(u32) -> u32) -> Result<u32, String> {
    number(args, 1, name).map(|value| op(to_bits(value)))
}

fn fold(args: &MultiValue, name: &str, op: fn(u32, u32) -> u32) -> Result<u32, String> {
    let mut bits = to_bits(number(args, 1, name)?);
    for at in 2..=args.len() {
        bits = op(bits, to_bits(number(args, at, name)?));
    }
    Ok(bits)
}

fn shift(args: &MultiValue, name: &str, op: fn(u32, u32) -> u32) -> Result<u32, String> {
    let bits = to_bits(number(args, 1, name)?);
    Ok(op(bits, to_bits(number(args, 2, name)?) & 31))
}

fn tohex(args: &MultiValue) -> Result<String, String> {
    let bits = to_bits(number(args, 1, "tohex")?);
    let digits = match args.len() {
        0 | 1 => 8,
        _ => int(args, 2, "tohex")?,
    };
    let text = if digits < 0 {
        format!("{bits:08X}")
    } else {
        format!("{bits:08x}")
    };
    let count = usize::try_from(digits.unsigned_abs()).unwrap_or(8).min(8);
    Ok(text[8 - count..].to_owned())
}

/// The library.
///
/// # Errors
/// Where memory is short.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    type One = (&'static str, fn(u32) -> u32);
    type Two = (&'static str, fn(u32, u32) -> u32);
    const ONES: [One; 3] = [
        ("tobit", |a| a),
        ("bnot", |a| !a),
        ("bswap", u32::swap_bytes),
    ];
    const FOLDS: [Two; 3] = [
        ("band", |a, b| a & b),
        ("bor", |a, b| a | b),
        ("bxor", |a, b| a ^ b),
    ];
    const SHIFTS: [Two; 5] = [
        ("lshift", |a, b| a << b),
        ("rshift", |a, b| a >> b),
        ("arshift", |a, b| (a.cast_signed() >> b).cast_unsigned()),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    let table = lua.create_table()?;
    for (name, op) in ONES {
        let function = move |lua: &Lua, args: MultiValue| signed(lua, one(&args, name, op));
        table.raw_set(name, lua.create_function(function)?)?;
    }
    for (name, op) in FOLDS {
        let function = move |lua: &Lua, args: MultiValue| signed(lua, fold(&args, name, op));
        table.raw_set(name, lua.create_function(function)?)?;
    }
    for (name, op) in SHIFTS {
        let function = move |lua: &Lua, args: MultiValue| signed(lua, shift(&args, name, op));
        table.raw_set(name, lua.create_function(function)?)?;
    }
    let function = |lua: &Lua, args: MultiValue| match tohex(&args) {
        Ok(text) => result(Value::String(lua.create_string(text)?)),
        Err(text) => failure(lua, &text),
    };
    table.raw_set("tohex", lua.create_function(function)?)?;
    Ok(table)
}
