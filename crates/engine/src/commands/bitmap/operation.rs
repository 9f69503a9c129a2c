//! BITOP: strings combined bit by bit.
//!
//! Sources are copied in turn into the result, a word at a time; shorter ones count as if zeros
//! followed.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::record::{Value, ValueRef};

use crate::commands::string::bytes_of;
use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

pub(super) const BITOP: Command = Command {
    name: "bitop",
    group: Group::Bitmap,
    since: "2.6.0",
    summary: "Combines strings bit by bit and stores the result.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::BITMAP,
    keys: &[
        KeySpec::at(2).ow().update(),
        KeySpec::at(3).last(-1).ro().access(),
    ],
    args: &[
        one_of(
            "operation",
            &[
                flag("AND"),
                flag("OR"),
                flag("XOR"),
                flag("NOT"),
                flag("DIFF"),
                flag("DIFF1"),
                flag("ANDOR"),
                flag("ONE"),
            ],
        ),
        key("destkey"),
        key("key").spec(1).multiple(),
    ],
    reply: &[Shape::Int],
    ..runs(bitop)
};

fn bitop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let operation = Operation::parse(args.at(1))?;
    let (target, sources) = (args.at(2), args.from(3));
    match operation {
        Operation::Not if sources.len() != 1 => {
            return Err("ERR BITOP NOT must be called with a single source key.".into());
        }
        Operation::Diff | Operation::Diff1 | Operation::AndOr if sources.len() < 2 => {
            let name = String::from_utf8_lossy(args.at(1)).to_uppercase();
            return Err(CommandError::err(format!(
                "BITOP {name} must be called with at least two source keys."
            )));
        }
        _ => {}
    }
    let mut len = 0;
    for key in sources.iter() {
        if let Some(record) = cx.read(key) {
            len = len.max(bytes_of(record.value(), &mut [0; TEXT_MAX])?.len());
        }
    }
    if len == 0 {
        if cx.displace(target) {
            cx.changed(target, Class::GENERIC, "del");
        }
        out.int(0);
        return Ok(());
    }
    let mut result = vec![0; len];
    // Bits that stood in more than one source, for ONE.
    let mut twice = vec![0; if operation == Operation::One { len } else { 0 }];
    for (index, key) in sources.iter().enumerate() {
        let mut digits = [0; TEXT_MAX];
        let source = match cx.peek(key).map(|record| record.value()) {
            None | Some(ValueRef::Object(_)) => &[],
            Some(value) => bytes_of(value, &mut digits)?,
        };
        operation.fold(&mut result, &mut twice, source, index);
    }
    operation.finish(cx, sources.at(0), &mut result, &twice)?;
    if len <= structure::record::INLINE_BYTES_MAX {
        cx.put(target, Value::Bytes(&result), Deadline::Clear);
    } else {
        cx.put(target, Value::Long(Box::new(result)), Deadline::Clear);
    }
    cx.changed(target, Class::STRING, "set");
    out.count(len);
    Ok(())
}

/// How bits are combined. The last four were added by Redis 8.2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    /// In the first source and in no other.
    Diff,
    /// In some other source but not in the first.
    Diff1,
    /// In the first source and in some other.
    AndOr,
    /// In exactly one source.
    One,
}

impl Operation {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        let known: &[(&str, Self)] = &[
            ("AND", Self::And),
            ("OR", Self::Or),
            ("XOR", Self::Xor),
            ("NOT", Self::Not),
            ("DIFF", Self::Diff),
            ("DIFF1", Self::Diff1),
            ("ANDOR", Self::AndOr),
            ("ONE", Self::One),
        ];
        known
            .iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, operation)| *operation)
            .ok_or(CommandError::Syntax)
    }

    /// Takes source number `index` into the result.
    fn fold(self, result: &mut [u8], twice: &mut [u8], source: &[u8], index: usize) {
        let part = source.len().min(result.len());
        let (head, tail) = result.split_at_mut(part);
        let pairs = head.iter_mut().zip(source);
        match (self, index) {
            // The first source is looked at last: here the others are united.
            (Self::Diff | Self::Diff1 | Self::AndOr, 0) => {}
            (Self::And, 1..) => {
                pairs.for_each(|(bits, source)| *bits &= source);
                tail.fill(0);
            }
            (Self::Xor, _) => pairs.for_each(|(bits, source)| *bits ^= source),
            (Self::Not, _) => {
                pairs.for_each(|(bits, source)| *bits = !source);
            }
            (Self::One, _) => {
                for ((bits, source), twice) in pairs.zip(twice) {
                    *twice |= *bits & source;
                    *bits |= source;
                }
            }
            _ => pairs.for_each(|(bits, source)| *bits |= source),
        }
    }

    /// What is left to do when all sources are in.
    fn finish(
        self,
        cx: &mut Context<'_>,
        first: &[u8],
        result: &mut [u8],
        twice: &[u8],
    ) -> Result<(), CommandError> {
        if self == Self::One {
            let pairs = result.iter_mut().zip(twice);
            pairs.for_each(|(bits, twice)| *bits &= !twice);
        }
        if !matches!(self, Self::Diff | Self::Diff1 | Self::AndOr) {
            return Ok(());
        }
        let mut digits = [0; TEXT_MAX];
        let source = match cx.peek(first) {
            None => &[],
            Some(record) => bytes_of(record.value(), &mut digits)?,
        };
        let padded = source.iter().copied().chain(std::iter::repeat(0));
        for (bits, source) in result.iter_mut().zip(padded) {
            *bits = match self {
                Self::Diff => source & !*bits,
                Self::Diff1 => *bits & !source,
                _ => *bits & source,
            };
        }
        Ok(())
    }
}
