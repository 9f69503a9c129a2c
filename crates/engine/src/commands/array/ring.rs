//! An array as a ring of a given size.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::array::Array;

use super::cursor::{newest, next_index};
use super::{change, write_number};
use crate::handler::runs;
use crate::{Command, CommandError, Context};

pub(super) const ARRING: Command = Command {
    name: "arring",
    group: Group::Array,
    since: "8.8.0",
    summary: "Appends elements to an array that is a ring of a given size.",
    complexity: "O(M)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), int("size"), string("value").multiple()],
    reply: &[Shape::Int],
    ..runs(arring)
};

fn arring(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let size = structure::decimal::parse(args.at(2)).ok_or("ERR invalid size")?;
    if size <= 0 {
        return Err("ERR size must be positive".into());
    }
    let (size, values) = (size.unsigned_abs(), args.from(3));
    let last = change(cx, args.at(1), "arring", |array| {
        resize(array, size);
        let mut last = 0;
        for value in values.iter() {
            last = next_index(array) % size;
            array.set(last, value);
            array.set_cursor(Some(last));
        }
        Ok(last)
    })?;
    write_number(out, last);
    Ok(())
}

/// Lays the newest elements out from index 0 on, where the ring had another size.
///
/// It had if there are elements beyond the new size, or if it had begun again at 0 before it
/// reached that.
fn resize(array: &mut Array, size: u64) {
    let len = array.len();
    let began_again = array.cursor().is_some_and(|last| last + 1 < len);
    if len <= size && !(len < size && began_again) {
        return;
    }
    let newest = newest(array, size);
    *array = Array::new(array.slice_size());
    for (index, value) in (0..).zip(newest.iter().rev()) {
        array.set(index, value);
    }
    array.set_cursor((newest.len() as u64).checked_sub(1));
}
