//! PFDEBUG and PFSELFTEST.

use std::fmt::Write;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::{bytes_of, write};
use crate::handler::runs;
use crate::hyperloglog::{self, Form, HEADER_BYTES, REGISTERS, selftest, sparse};
use crate::{Command, CommandError, Context};

pub(super) const PFDEBUG: Command = Command {
    name: "pfdebug",
    group: Group::Hyperloglog,
    since: "2.8.9",
    summary: "Shows what a HyperLogLog is made of.",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::ADMIN),
    acl: Acl::HYPERLOGLOG,
    keys: &[KeySpec::at(2).rw().access()],
    args: &[string("subcommand"), key("key")],
    reply: &[Shape::Array, Shape::Bulk, Shape::Simple, Shape::Int],
    system: true,
    ..runs(pfdebug)
};

fn pfdebug(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.is(1, "SIMD") {
        return simd(args.at(2), out);
    }
    let key = args.at(2);
    let Some(record) = cx.read(key) else {
        return Err("ERR The specified key does not exist".into());
    };
    let (bytes, form) = bytes_of(record.value())?;
    if args.is(1, "ENCODING") {
        out.simple(match form {
            Form::Dense => "dense",
            Form::Sparse => "sparse",
        });
    } else if args.is(1, "DECODE") {
        if form == Form::Dense {
            return Err("ERR HLL encoding is not sparse".into());
        }
        out.text(&described(&bytes[HEADER_BYTES..]));
    } else if args.is(1, "TODENSE") {
        let changed = make_dense(cx, key)?;
        out.int(i64::from(changed));
    } else if args.is(1, "GETREG") {
        make_dense(cx, key)?;
        let mut registers = Box::new([0; REGISTERS]);
        if let Some(record) = cx.peek(key) {
            hyperloglog::merge(bytes_of(record.value())?.0, &mut registers)?;
        }
        out.array(REGISTERS);
        registers
            .iter()
            .for_each(|value| out.int(i64::from(*value)));
    } else {
        let shown = String::from_utf8_lossy(args.at(1));
        return Err(CommandError::err(format!(
            "Unknown PFDEBUG subcommand '{shown}'"
        )));
    }
    Ok(())
}

/// Allows or forbids vector instructions. There is one way of counting here, which the compiler
/// chose the instructions for, so nothing depends on it.
fn simd(word: &[u8], out: &mut Writer<'_>) -> Result<(), CommandError> {
    match word.to_ascii_uppercase().as_slice() {
        b"ON" => out.simple("enabled"),
        b"OFF" => out.simple("disabled"),
        _ => return Err("ERR Argument must be ON or OFF".into()),
    }
    Ok(())
}

fn make_dense(cx: &mut Context<'_>, key: &[u8]) -> Result<bool, CommandError> {
    let Some(record) = cx.peek(key) else {
        return Ok(false);
    };
    let (bytes, form) = bytes_of(record.value())?;
    if form == Form::Dense {
        return Ok(false);
    }
    let mut bytes = bytes.to_vec();
    hyperloglog::make_dense(&mut bytes)?;
    write(cx, key, &bytes);
    cx.touch(key);
    Ok(true)
}

/// The runs of a sparse one as text.
fn described(body: &[u8]) -> String {
    let mut text = String::new();
    for run in sparse::runs(body) {
        let _ = match (run.value, run.bytes) {
            (0, 1) => write!(text, "z:{} ", run.len),
            (0, _) => write!(text, "Z:{} ", run.len),
            (value, _) => write!(text, "v:{value},{} ", run.len),
        };
    }
    text.truncate(text.trim_end().len());
    text
}

pub(super) const PFSELFTEST: Command = Command {
    name: "pfselftest",
    group: Group::Hyperloglog,
    since: "2.8.9",
    summary: "Checks that registers are kept and that estimates are good.",
    arity: Arity::exactly(1),
    flags: Flags::ADMIN,
    acl: Acl::HYPERLOGLOG,
    reply: &[Shape::Ok],
    system: true,
    ..runs(pfselftest)
};

fn pfselftest(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    selftest::run()
        .map_err(|problem| CommandError::Text(format!("TESTFAILED {problem}").into()))?;
    out.ok();
    Ok(())
}
