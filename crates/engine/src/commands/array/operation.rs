//! AROP: one value from the elements of a range.
//!
//! # Invariants
//! - Elements that are no numbers are passed over, and so is `nan`.
//! - Sums have 64 significant bits, as those of Redis; only infinities of two signs make a `nan`.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::array::Array;
use structure::decimal::TEXT_MAX;
use structure::listpack::Entry;

use super::{index, read};
use crate::extended::Extended;
use crate::handler::runs;
use crate::{Command, CommandError, Context};

pub(super) const AROP: Command = Command {
    name: "arop",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the sum, the least or the like of the elements of a range.",
    complexity: "O(P)",
    arity: Arity::at_least(5),
    flags: Flags::READONLY,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("start"),
        int("end"),
        one_of(
            "operation",
            &[
                flag("SUM"),
                flag("MIN"),
                flag("MAX"),
                flag("AND"),
                flag("OR"),
                flag("XOR"),
                block("match", &[flag("MATCH"), string("value")]),
                flag("USED"),
            ],
        ),
    ],
    reply: &[Shape::Bulk, Shape::Int, Shape::Null],
    ..runs(arop)
};

#[derive(Clone, Copy)]
enum Operation<'a> {
    Sum,
    Least,
    Greatest,
    And,
    Or,
    Xor,
    /// How many elements are this.
    Match(&'a [u8]),
    /// How many elements there are.
    Used,
}

impl<'a> Operation<'a> {
    fn parse(cx: &Context<'_>, args: Args<'a>) -> Result<Self, CommandError> {
        let operation = match args.at(4).to_ascii_uppercase().as_slice() {
            b"SUM" => Self::Sum,
            b"MIN" => Self::Least,
            b"MAX" => Self::Greatest,
            b"AND" => Self::And,
            b"OR" => Self::Or,
            b"XOR" => Self::Xor,
            b"USED" => Self::Used,
            b"MATCH" if args.len() == 6 => return Ok(Self::Match(args.at(5))),
            b"MATCH" => return Err("ERR MATCH requires a value argument".into()),
            _ => return Err("ERR unknown operation".into()),
        };
        if args.len() > 5 {
            return Err(cx.arity_error());
        }
        Ok(operation)
    }
}

fn arop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (from, to) = (index(args.at(2))?, index(args.at(3))?);
    let operation = Operation::parse(cx, args)?;
    let array = read(cx, args.at(1))?;
    let elements = Elements { array, from, to };
    match operation {
        Operation::Used => out.count(elements.iter().count()),
        Operation::Match(value) => {
            let same = elements.iter().filter(|element| element.is(value));
            out.count(same.count());
        }
        Operation::Sum => write_extended(out, elements.sum()),
        Operation::Least => {
            let least = elements.numbers().reduce(|a, b| if b < a { b } else { a });
            write_extended(out, least.map(Some));
        }
        Operation::Greatest => {
            let greatest = elements.numbers().reduce(|a, b| if b > a { b } else { a });
            write_extended(out, greatest.map(Some));
        }
        Operation::And => write_bits(out, elements.bits().reduce(|a, b| a & b)),
        Operation::Or => write_bits(out, elements.bits().reduce(|a, b| a | b)),
        Operation::Xor => write_bits(out, elements.bits().reduce(|a, b| a ^ b)),
    }
    Ok(())
}

/// The elements of a range of an array that may not be there.
#[derive(Clone, Copy)]
struct Elements<'a> {
    array: Option<&'a Array>,
    from: u64,
    to: u64,
}

impl<'a> Elements<'a> {
    fn iter(self) -> impl Iterator<Item = Entry<'a>> {
        let range = self.array.map(|array| array.range(self.from, self.to));
        range.into_iter().flatten().map(|(_, element)| element)
    }

    /// Those that are numbers.
    fn numbers(self) -> impl Iterator<Item = Extended> {
        let mut text = [0; TEXT_MAX];
        self.iter().filter_map(move |element| match element {
            Entry::Int(int) => Some(Extended::from(int)),
            Entry::Bytes(_) => Extended::parse(element.bytes(&mut text)),
        })
    }

    /// Those that are numbers of 64 bits, less what stands behind their point.
    fn bits(self) -> impl Iterator<Item = i64> {
        self.iter().filter_map(|element| match element {
            Entry::Int(int) => Some(int),
            Entry::Bytes(text) => Extended::parse(text)?.truncated(),
        })
    }

    /// The sum; nothing where there is no number, and nothing inside where it is none.
    fn sum(self) -> Option<Option<Extended>> {
        self.numbers().fold(None, |sum, number| {
            let Some(sum) = sum else {
                return Some(Some(number));
            };
            Some(sum.and_then(|sum: Extended| {
                let undefined = sum.is_infinite()
                    && number.is_infinite()
                    && sum.is_negative() != number.is_negative();
                (!undefined).then(|| sum.plus(number))
            }))
        })
    }
}

fn write_extended(out: &mut Writer<'_>, number: Option<Option<Extended>>) {
    match number {
        None => out.null(),
        Some(None) => out.bulk(b"nan"),
        Some(Some(number)) => out.text(&number.format_general()),
    }
}

fn write_bits(out: &mut Writer<'_>, bits: Option<i64>) {
    match bits {
        None => out.null(),
        Some(bits) => out.int(bits),
    }
}
