//! Looking inside an array: its sizes, and how Redis would keep it.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::array::{Array, INDEX_MAX};

use super::cursor::next_index;
use super::{read, write_number};
use crate::handler::runs;
use crate::{Command, CommandError, Context};

pub(super) const ARCOUNT: Command = Command {
    name: "arcount",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns how many elements an array has.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(arcount)
};

fn arcount(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let count = read(cx, args.at(1))?.map_or(0, Array::count);
    out.int(count.cast_signed());
    Ok(())
}

pub(super) const ARLEN: Command = Command {
    name: "arlen",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns one more than the greatest index of an array.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int, Shape::Bulk, Shape::Any],
    ..runs(arlen)
};

fn arlen(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    write_number(out, read(cx, args.at(1))?.map_or(0, Array::len));
    Ok(())
}

pub(super) const ARINFO: Command = Command {
    name: "arinfo",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the sizes of an array and of what Redis would keep it in.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), flag("FULL").optional()],
    reply: &[Shape::Map],
    ..runs(arinfo)
};

fn arinfo(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let full = args.len() > 2;
    if full && (args.len() > 3 || !args.is(2, "FULL")) {
        return Err(CommandError::Syntax);
    }
    let sparse_max = u64::from(cx.settings.array_sparse_kmax);
    let array = read(cx, args.at(1))?.ok_or(CommandError::NoSuchKey)?;
    out.map(if full { 12 } else { 7 });
    let next = next_index(array);
    for (name, value) in [
        ("count", array.count()),
        ("len", array.len()),
        ("next-insert-index", if next > INDEX_MAX { 0 } else { next }),
        ("slices", array.slices()),
        ("directory-size", array.directory_size()),
        ("super-dir-entries", array.directory_blocks()),
        ("slice-size", array.slice_size().into()),
    ] {
        out.text(name);
        write_number(out, value);
    }
    if full {
        let slices = Slices::of(array, sparse_max);
        for (name, count) in [
            ("dense-slices", slices.dense),
            ("sparse-slices", slices.sparse),
        ] {
            out.text(name);
            write_number(out, count);
        }
        for (name, over, under) in [
            ("avg-dense-size", slices.dense_places, slices.dense),
            ("avg-dense-fill", slices.dense_elements, slices.dense_places),
            ("avg-sparse-size", slices.sparse_places, slices.sparse),
        ] {
            out.text(name);
            #[allow(clippy::cast_precision_loss)] // An average to be looked at.
            out.double(over as f64 / under.max(1) as f64);
        }
    }
    Ok(())
}

/// The slices that Redis would keep an array in, had it been built in one go.
#[derive(Default)]
struct Slices {
    dense: u64,
    dense_places: u64,
    dense_elements: u64,
    sparse: u64,
    sparse_places: u64,
}

/// Places that Redis makes at first in a slice of each kind.
const DENSE_PLACES_MIN: u64 = 8;
const SPARSE_PLACES_MIN: u64 = 4;

impl Slices {
    /// A slice of more than `sparse_max` elements is a window over its indexes; one of fewer is a
    /// list.
    fn of(array: &Array, sparse_max: u64) -> Self {
        let (mut slices, size) = (Self::default(), u64::from(array.slice_size()));
        let mut open: Option<(u64, u64, u64)> = None;
        for (index, _) in array.iter() {
            open = Some(match open {
                Some((first, _, count)) if first / size == index / size => {
                    (first, index, count + 1)
                }
                done => {
                    slices.close(done, sparse_max);
                    (index, index, 1)
                }
            });
        }
        slices.close(open, sparse_max);
        slices
    }

    fn close(&mut self, slice: Option<(u64, u64, u64)>, sparse_max: u64) {
        let Some((first, last, count)) = slice else {
            return;
        };
        if count > sparse_max {
            self.dense += 1;
            self.dense_places += (last - first + 1).next_power_of_two().max(DENSE_PLACES_MIN);
            self.dense_elements += count;
        } else {
            self.sparse += 1;
            let places = count.next_power_of_two().max(SPARSE_PLACES_MIN);
            self.sparse_places += places.min(sparse_max);
        }
    }
}
