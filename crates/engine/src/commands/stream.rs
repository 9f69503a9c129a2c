//! Streams: logs of entries, and groups of consumers that share the reading of them.
//!
//! What a stream is and how its parts change stands in `structure::stream`; here is what commands
//! say about it: words in, replies out, whom to tell. Each file below is one question asked of a
//! stream.
//!
//! # Invariants
//! - Watchers hear of a change to the entries only: adding, deleting, trimming. What happens to
//!   groups is counted and logged, but breaks no transaction.
//! - Adding and reading allocate nothing an entry: replies go straight into the writer.
//! - An empty stream is a value and stays.
//!
//! # Why is a read command that finds nothing run again, rather than kept half done?
//! A waiting client's command may meet another world when it is woken: no key, another type, no
//! group. Running it again from its words gives each of these the answer that it always has.

mod add;
mod claim;
mod delete;
mod group;
mod id;
mod info;
mod options;
mod pending;
mod producer;
mod range;
mod read;
mod read_group;

use structure::stream::{BlockLimits, IdempotencyLimits, Stream};

use crate::error::shown;
use crate::object::Object;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    pending::XACK,
    delete::XACKDEL,
    add::XADD,
    claim::XAUTOCLAIM,
    producer::XCFGSET,
    claim::XCLAIM,
    delete::XDEL,
    delete::XDELEX,
    group::XGROUP,
    producer::XIDMPRECORD,
    info::XINFO,
    range::XLEN,
    pending::XNACK,
    pending::XPENDING,
    range::XRANGE,
    read::XREAD,
    read_group::XREADGROUP,
    range::XREVRANGE,
    range::XSETID,
    delete::XTRIM,
];

/// The stream under a key, to be read.
fn read_stream<'c>(
    cx: &'c mut Context<'_>,
    key: &[u8],
) -> Result<Option<&'c Stream>, CommandError> {
    match cx.read_object(key)? {
        None => Ok(None),
        Some(Object::Stream(stream)) => Ok(Some(stream)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The stream under a key, to be changed.
#[inline]
fn edit_stream<'c>(
    cx: &'c mut Context<'_>,
    key: &[u8],
) -> Result<Option<&'c mut Stream>, CommandError> {
    match cx.edit_object(key)? {
        None => Ok(None),
        Some(Object::Stream(stream)) => Ok(Some(stream)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// What bounds the blocks of a stream.
#[inline]
fn block_limits(cx: &Context<'_>) -> BlockLimits {
    BlockLimits {
        bytes: cx.settings.stream_node_bytes,
        entries: cx.settings.stream_node_entries,
    }
}

/// A new stream. It keeps the bounds of its memory of producers as configured now.
fn new_stream(cx: &Context<'_>) -> Stream {
    let bound = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Stream::new(IdempotencyLimits {
        duration_s: bound(cx.settings.stream_idmp_duration),
        entries_max: bound(cx.settings.stream_idmp_maxsize),
    })
}

/// The error of commands that need a group.
fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(format!("NOGROUP No such key '{key}' or consumer group '{group}'").into())
}

/// The error of commands that know the key is there.
fn no_group_of_key(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(
        format!("NOGROUP No such consumer group '{group}' for key name '{key}'").into(),
    )
}

/// The error of subcommands with options that are none.
fn bad_subcommand(cx: &Context<'_>, word: &[u8]) -> CommandError {
    let name = cx.entry.full_name.split('|').next().unwrap_or_default();
    let (word, name) = (shown(word), name.to_uppercase());
    CommandError::err(format!(
        "unknown subcommand or wrong number of arguments for '{word}'. Try {name} HELP."
    ))
}
