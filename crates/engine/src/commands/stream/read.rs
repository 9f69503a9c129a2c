//! XREAD, and what XREADGROUP shares with it: the options, and the shape of the reply.
//!
//! # Why is the reply written before every stream was looked at?
//! A later stream may be an error, and then what was written is taken back. Looking at all of them
//! first would cost each read a second lookup.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, ArrayMark, Writer};
use structure::stream::{Entry, Stream, StreamId};

use super::id::{self, IdText, write_entry};
use super::read_stream;
use crate::blocking::{Awaits, Block};
use crate::handler::runs;
use crate::object::Kind;
use crate::{Command, CommandError, Context, number};

pub(super) const XREAD: Command = Command {
    name: "xread",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Returns the entries newer than given IDs from several streams, \
              waiting if there are none.",
    arity: Arity::at_least(4),
    flags: Flags::READONLY.with(Flags::BLOCKING),
    acl: Acl::STREAM,
    keys: &[KeySpec::after("STREAMS", 1)
        .last(-1)
        .limit(2)
        .ro()
        .access()
        .incomplete()
        .note("A word before the option may be STREAMS too.")],
    special: Special::Streams,
    args: &[
        int("count").token("COUNT").optional(),
        int("maxcount").token("MAXCOUNT").since("8.10.0").optional(),
        int("maxsize").token("MAXSIZE").since("8.10.0").optional(),
        int("milliseconds").token("BLOCK").optional(),
        block("streams", &[key("key").multiple(), string("id").multiple()]).token("STREAMS"),
    ],
    reply: &[Shape::Map, Shape::Null],
    history: &[("8.10.0", "Takes `MAXCOUNT` and `MAXSIZE`.")],
    ..runs(xread)
};

fn xread(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let options = Options::parse(cx, args, false)?;
    let mut reply = Reply::begin(&options, out);
    // The streams up to the one with which the reply is full.
    let mut wanted = options.streams;
    for index in 0..options.streams {
        let (key, word) = options.stream(args, index);
        let stream = read_stream(cx, key)?;
        let Some(start) = start_of(stream, word)? else {
            continue;
        };
        let Some(stream) = stream.filter(|_| reply.has_room(out)) else {
            continue;
        };
        let mut entries = stream.range(start, StreamId::MAX);
        let Some(first) = entries.next() else {
            continue;
        };
        let mark = reply.begin_stream(key, out);
        let (mut count, mut next) = (0, Some(first));
        while reply.takes(count, out)
            && let Some(entry) = next
        {
            reply.entry(entry, out);
            count += 1;
            next = entries.next();
        }
        reply.end_stream(mark, count, out);
        if !reply.has_room(out) {
            wanted = wanted.min(index + 1);
        }
    }
    // Redis looks every key up for the ids, and those that it needs for the entries.
    for index in 0..wanted {
        cx.tell_if_missing(options.stream(args, index).0);
    }
    if !reply.is_empty() {
        reply.end(out);
    } else if let Some(deadline_ms) = options.block.filter(|_| cx.may_block) {
        let replace = resolved(cx, args, &options)?;
        cx.block(options.waiting(deadline_ms, false, replace));
    } else {
        out.null_array();
    }
    Ok(())
}

/// The first id that a word of XREAD asks for; none where nothing there can be newer.
fn start_of(stream: Option<&Stream>, word: &[u8]) -> Result<Option<StreamId>, CommandError> {
    match word {
        b"$" => Ok(None),
        b"+" => Ok(stream.and_then(|stream| stream.last()).map(|last| last.id)),
        b">" => Err(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option."
                .into(),
        ),
        _ => Ok(id::parse(word, 0)?.next()),
    }
}

/// What each `$` stands for at the time when the client begins to wait.
fn resolved(
    cx: &mut Context<'_>,
    args: Args<'_>,
    options: &Options<'_>,
) -> Result<Vec<(usize, Vec<u8>)>, CommandError> {
    let mut replace = Vec::new();
    for index in 0..options.streams {
        let (key, word) = options.stream(args, index);
        if word == b"$" {
            let stream = match cx.view_object(key)? {
                Some(crate::Object::Stream(stream)) => Some(stream),
                _ => None,
            };
            let last = stream.map_or(StreamId::MIN, |stream| stream.last_id());
            let at = options.first + options.streams + index;
            replace.push((at, IdText::new(last).as_bytes().to_vec()));
        }
    }
    Ok(replace)
}

/// The options of XREAD and XREADGROUP.
pub(super) struct Options<'a> {
    /// Where the keys begin.
    pub(super) first: usize,
    /// How many streams there are.
    pub(super) streams: usize,
    /// The group and the consumer.
    pub(super) group: Option<(&'a [u8], &'a [u8])>,
    /// The most entries of one stream.
    pub(super) count: usize,
    /// The most entries of all streams.
    count_max: usize,
    /// The bytes of the reply after which no further entry is begun.
    bytes_max: usize,
    /// With BLOCK: when to give up, if ever.
    pub(super) block: Option<Option<u64>>,
    /// CLAIM's idle time.
    pub(super) claim_ms: Option<u64>,
    /// NOACK.
    pub(super) no_ack: bool,
}

impl<'a> Options<'a> {
    pub(super) fn parse(
        cx: &Context<'_>,
        args: Args<'a>,
        is_group: bool,
    ) -> Result<Self, CommandError> {
        let mut options = Self {
            first: 0,
            streams: 0,
            group: None,
            count: usize::MAX,
            count_max: usize::MAX,
            bytes_max: usize::MAX,
            block: None,
            claim_ms: None,
            no_ack: false,
        };
        let mut at = 1;
        while options.first == 0 {
            if at >= args.len() {
                return Err(CommandError::Syntax);
            }
            at += options.option(cx, args, at, is_group)?;
        }
        if is_group && options.group.is_none() {
            return Err("ERR Missing GROUP option for XREADGROUP".into());
        }
        if options.count != usize::MAX && options.count_max < options.count {
            return Err("ERR MAXCOUNT must be greater than or equal to COUNT".into());
        }
        Ok(options)
    }

    /// Reads one option: how many words it has.
    #[inline]
    fn option(
        &mut self,
        cx: &Context<'_>,
        args: Args<'a>,
        at: usize,
        is_group: bool,
    ) -> Result<usize, CommandError> {
        let word = args.at(at);
        let is = |option: &str| word.eq_ignore_ascii_case(option.as_bytes());
        let more = args.len() - at - 1;
        if more == 0 && !is("NOACK") {
            return Err(CommandError::Syntax);
        }
        let value = args.at(at + 1);
        let no_limit = |value| usize::try_from(value).ok().filter(|n| *n > 0);
        // The lengths tell nearly all of them apart.
        match word.len() {
            7 if is("STREAMS") => {
                if !more.is_multiple_of(2) {
                    return Err(unbalanced(is_group));
                }
                self.first = at + 1;
                self.streams = more / 2;
                Ok(1)
            }
            5 if is("GROUP") && more > 1 => {
                require_group(is_group, "GROUP")?;
                self.group = Some((value, args.at(at + 2)));
                Ok(3)
            }
            5 if is("COUNT") => {
                self.count = no_limit(number::int(value)?).unwrap_or(usize::MAX);
                Ok(2)
            }
            5 if is("BLOCK") => {
                self.block = Some(number::timeout_block_ms(value, cx.now_ms)?);
                Ok(2)
            }
            5 if is("NOACK") => {
                require_group(is_group, "NOACK")?;
                self.no_ack = true;
                Ok(1)
            }
            5 if is("CLAIM") => {
                require_group(is_group, "CLAIM")?;
                let idle_ms = number::int(value).map_err(|_| {
                    CommandError::text("ERR min-idle-time is not an integer or out of range")
                })?;
                let idle_ms = u64::try_from(idle_ms);
                self.claim_ms =
                    Some(idle_ms.map_err(|_| "ERR min-idle-time must be a positive integer")?);
                Ok(2)
            }
            8 if is("MAXCOUNT") => {
                let error = "ERR MAXCOUNT must be a positive integer";
                self.count_max = no_limit(number::int(value)?).ok_or(error)?;
                Ok(2)
            }
            7 if is("MAXSIZE") => {
                let error = "ERR MAXSIZE must be a positive integer";
                self.bytes_max = no_limit(number::int(value)?).ok_or(error)?;
                Ok(2)
            }
            _ => Err(CommandError::Syntax),
        }
    }

    /// A stream's key, and the word that says from where.
    #[inline]
    pub(super) fn stream(&self, args: Args<'a>, index: usize) -> (&'a [u8], &'a [u8]) {
        let at = self.first + index;
        (args.at(at), args.at(at + self.streams))
    }

    /// How the client is to wait.
    pub(super) fn waiting(
        &self,
        deadline_ms: Option<u64>,
        on_missing: bool,
        replace: Vec<(usize, Vec<u8>)>,
    ) -> Block {
        Block {
            deadline_ms,
            kind: Kind::Stream,
            on_missing,
            keys: (self.first..self.first + self.streams).collect(),
            replace,
            awaits: Awaits::Keys,
        }
    }
}

fn require_group(is_group: bool, option: &str) -> Result<(), CommandError> {
    if is_group {
        return Ok(());
    }
    Err(CommandError::err(format!(
        "The {option} option is only supported by XREADGROUP. You called XREAD instead."
    )))
}

fn unbalanced(is_group: bool) -> CommandError {
    CommandError::text(if is_group {
        "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be \
         specified."
    } else {
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be \
         specified."
    })
}

/// The reply of a read: the streams that had something, each with its entries.
pub(super) struct Reply {
    outer: ArrayMark,
    /// Where the reply begins, in bytes.
    from: usize,
    streams: usize,
    entries: usize,
    count: usize,
    count_max: usize,
    bytes_max: usize,
}

impl Reply {
    pub(super) fn begin(options: &Options<'_>, out: &mut Writer<'_>) -> Self {
        Self {
            outer: out.begin_array(),
            from: out.output().mark(),
            streams: 0,
            entries: 0,
            count: options.count,
            count_max: options.count_max,
            bytes_max: options.bytes_max,
        }
    }

    /// Whether no stream had anything.
    pub(super) fn is_empty(&self) -> bool {
        self.streams == 0
    }

    /// Whether MAXCOUNT and MAXSIZE allow one more entry. The first one they always allow.
    #[inline]
    pub(super) fn has_room(&self, out: &mut Writer<'_>) -> bool {
        self.entries == 0
            || (self.entries < self.count_max
                && (self.bytes_max == usize::MAX
                    || out.output().mark() - self.from < self.bytes_max))
    }

    /// Whether one more entry of a stream that gave `count` may follow.
    #[inline]
    pub(super) fn takes(&self, count: usize, out: &mut Writer<'_>) -> bool {
        count < self.count && self.has_room(out)
    }

    /// How many more entries a stream that gave `count` may give, bytes aside.
    pub(super) fn left(&self, count: usize) -> usize {
        (self.count - count).min(self.count_max.saturating_sub(self.entries))
    }

    #[inline]
    pub(super) fn begin_stream(&mut self, key: &[u8], out: &mut Writer<'_>) -> ArrayMark {
        self.streams += 1;
        if !out.is_resp3() {
            out.array(2);
        }
        out.bulk(key);
        out.begin_array()
    }

    #[inline]
    pub(super) fn entry(&mut self, entry: Entry<'_>, out: &mut Writer<'_>) {
        self.entries += 1;
        write_entry(out, entry);
    }

    /// Counts an entry that the caller writes.
    pub(super) fn counted(&mut self) {
        self.entries += 1;
    }

    #[inline]
    pub(super) fn end_stream(&self, mark: ArrayMark, count: usize, out: &mut Writer<'_>) {
        out.end_array(mark, count);
    }

    #[inline]
    pub(super) fn end(self, out: &mut Writer<'_>) {
        if out.is_resp3() {
            out.end_map(self.outer, self.streams);
        } else {
            out.end_array(self.outer, self.streams);
        }
    }
}
