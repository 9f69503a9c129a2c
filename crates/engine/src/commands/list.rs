//! Lists.
//!
//! What is done at the ends stands in `ends`, what is done at positions in `inside`, and what moves
//! elements from one list to another in `moving`; the blocking commands stand beside those that
//! they wait for.
//!
//! # Invariants
//! - An empty list is no value: whoever takes the last element removes the key.
//! - Whoever adds to a list says so with `Context::ready`, whether or not it was there before: a
//!   client may wait for more elements than it had.
//! - What a blocking command did is logged as its sibling that does not wait.

mod ends;
mod inside;
mod moving;

use resp::Args;
use structure::list::{Limit, List};
use structure::listpack::Entry;
use structure::record::Displaced;

use crate::blocking::{Awaits, Block};
use crate::notify::Class;
use crate::object::{Kind, Object};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    moving::BLMOVE,
    moving::BLMOVEM,
    ends::BLMPOP,
    ends::BLPOP,
    ends::BRPOP,
    moving::BRPOPLPUSH,
    inside::LINDEX,
    inside::LINSERT,
    inside::LLEN,
    moving::LMOVE,
    moving::LMOVEM,
    ends::LMPOP,
    ends::LPOP,
    inside::LPOS,
    ends::LPUSH,
    ends::LPUSHX,
    inside::LRANGE,
    inside::LREM,
    inside::LSET,
    inside::LTRIM,
    ends::RPOP,
    moving::RPOPLPUSH,
    ends::RPUSH,
    ends::RPUSHX,
];

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

impl End {
    /// Reads LEFT or RIGHT.
    fn parse(args: Args<'_>, at: usize) -> Result<Self, CommandError> {
        if args.is(at, "LEFT") {
            Ok(Self::Left)
        } else if args.is(at, "RIGHT") {
            Ok(Self::Right)
        } else {
            Err(CommandError::Syntax)
        }
    }

    /// The event of adding at this end.
    fn push_event(self) -> &'static str {
        match self {
            Self::Left => "lpush",
            Self::Right => "rpush",
        }
    }

    /// The event of taking at this end.
    fn pop_event(self) -> &'static str {
        match self {
            Self::Left => "lpop",
            Self::Right => "rpop",
        }
    }

    /// The command that takes at this end, for the log.
    fn pop_command(self) -> &'static [u8] {
        match self {
            Self::Left => b"LPOP",
            Self::Right => b"RPOP",
        }
    }

    /// As it is written in a command.
    fn word(self) -> &'static [u8] {
        match self {
            Self::Left => b"LEFT",
            Self::Right => b"RIGHT",
        }
    }

    /// Adds one element.
    fn push(self, list: &mut List, item: &[u8], limit: Limit) {
        match self {
            Self::Left => list.push_front(item, limit),
            Self::Right => list.push_back(item, limit),
        }
    }

    /// The element at this end.
    fn of(self, list: &List) -> Option<Entry<'_>> {
        match self {
            Self::Left => list.front(),
            Self::Right => list.back(),
        }
    }

    /// Removes one element.
    fn drop_one(self, list: &mut List, limit: Limit) {
        match self {
            Self::Left => list.drop_front(1, limit),
            Self::Right => list.drop_back(1, limit),
        }
    }

    /// Gives the `count` elements from this end on to `each`, the outermost first.
    fn each(self, list: &List, count: usize, each: impl FnMut(Entry<'_>)) {
        match self {
            Self::Left => list.range(0, count).for_each(each),
            Self::Right => list
                .range_rev(list.len().saturating_sub(1), count)
                .for_each(each),
        }
    }

    /// Removes `count` elements; what is large of them comes back, to be freed later.
    #[must_use]
    fn cut(self, list: &mut List, count: usize, limit: Limit) -> Option<List> {
        match self {
            Self::Left => list.trim(count, 0, limit),
            Self::Right => list.trim(0, count, limit),
        }
    }
}

/// The list under a key, to be read.
fn read<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c List>, CommandError> {
    match cx.read_object(key)? {
        None => Ok(None),
        Some(Object::List(list)) => Ok(Some(list)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The list under a key, to be changed.
#[inline]
fn edit<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c mut List>, CommandError> {
    match cx.edit_object(key)? {
        None => Ok(None),
        Some(Object::List(list)) => Ok(Some(list)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Frees later what was cut from a list.
fn bury(cx: &mut Context<'_>, garbage: Option<List>) {
    if let Some(list) = garbage {
        cx.bury(Displaced::Object(Box::new(Object::List(list))));
    }
}

/// Reports that elements were taken, and removes the key where that were all.
fn taken(cx: &mut Context<'_>, key: &[u8], event: &str, empty: bool) {
    cx.changed(key, Class::LIST, event);
    if empty {
        cx.remove_empty(key);
    }
}

/// Waits for a list under one of the keys at `positions`.
fn wait(cx: &mut Context<'_>, positions: std::ops::Range<usize>, deadline_ms: Option<u64>) {
    cx.block(Block {
        deadline_ms,
        kind: Kind::List,
        on_missing: false,
        keys: positions.collect(),
        replace: Vec::new(),
        awaits: Awaits::Keys,
    });
}

/// A count that must be above zero.
fn count_above_zero(text: &[u8]) -> Result<usize, CommandError> {
    let error = CommandError::text("ERR count should be greater than 0");
    match crate::number::count(text, error.clone())? {
        0 => Err(error),
        count => Ok(count),
    }
}

/// The elements from `start` to `stop`, both of which count from the end where they are negative,
/// in a list of `len`: the first one and how many, where there is any.
fn range_of(start: i64, stop: i64, len: usize) -> Option<(usize, usize)> {
    let from_end = |index: i64| match index {
        0.. => usize::try_from(index).unwrap_or(usize::MAX),
        _ => len.saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    // A stop before the first element is no stop at it.
    let before = stop < 0 && stop.unsigned_abs() > len as u64;
    let (first, last) = (from_end(start), from_end(stop));
    if before || first > last || first >= len {
        return None;
    }
    Some((first, last.min(len - 1) - first + 1))
}

/// The position of `index`, which counts from the end where it is negative.
fn index_of(index: i64, len: usize) -> Option<usize> {
    let position = match index {
        0.. => usize::try_from(index).ok()?,
        _ => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
    };
    (position < len).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_list() {
        for (start, stop, want) in [
            (0, -1, Some((0, 5))),
            (-100, 100, Some((0, 5))),
            (1, 1, Some((1, 1))),
            (-2, -1, Some((3, 2))),
            (3, 1, None),
            (5, 9, None),
            (0, -6, None),
            (0, -5, Some((0, 1))),
            (i64::MIN, i64::MAX, Some((0, 5))),
            (i64::MAX, i64::MIN, None),
        ] {
            assert_eq!(range_of(start, stop, 5), want, "{start} {stop}");
        }
        assert_eq!(range_of(0, -1, 0), None);
    }

    #[test]
    fn positions_count_from_both_ends() {
        for (index, want) in [
            (0, Some(0)),
            (4, Some(4)),
            (5, None),
            (-1, Some(4)),
            (-5, Some(0)),
            (-6, None),
            (i64::MIN, None),
            (i64::MAX, None),
        ] {
            assert_eq!(index_of(index, 5), want, "{index}");
        }
    }
}
