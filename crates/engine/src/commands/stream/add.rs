//! XADD.
//!
//! The common call, `XADD key * name value …`, takes one look at its options, one lookup of the key
//! and one write into the last block.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{BlockLimits, Stream, StreamId, content_name};

use super::id::{IdText, write_id};
use super::options::{Trim, references_word};
use super::{block_limits, edit_stream, id, new_stream, producer};
use crate::handler::runs;
use crate::notify::Class;
use crate::object::Object;
use crate::{Command, CommandError, Context};

pub(super) const XADD: Command = Command {
    name: "xadd",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Adds an entry to a stream.",
    complexity: "O(1)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1)
        .rw()
        .update()
        .note("Trimming may delete entries.")],
    args: &[
        key("key"),
        flag("NOMKSTREAM").since("6.2.0").optional(),
        one_of(
            "condition",
            &[flag("KEEPREF"), flag("DELREF"), flag("ACKED")],
        )
        .optional(),
        one_of(
            "idmp",
            &[
                string("pid").token("IDMPAUTO"),
                block("idmp", &[string("pid"), string("iid")]).token("IDMP"),
            ],
        )
        .since("8.6.0")
        .optional(),
        block(
            "trim",
            &[
                one_of("strategy", &[flag("MAXLEN"), flag("MINID").since("6.2.0")]),
                one_of(
                    "operator",
                    &[flag("=").named("equal"), flag("~").named("approximately")],
                )
                .optional(),
                string("threshold"),
                int("count").token("LIMIT").since("6.2.0").optional(),
            ],
        )
        .optional(),
        one_of("id-selector", &[flag("*").named("auto-id"), string("id")]),
        block("data", &[string("field"), string("value")]).multiple(),
    ],
    reply: &[Shape::Bulk, Shape::Null],
    tips: &["nondeterministic_output"],
    history: &[
        ("6.2.0", "Takes `NOMKSTREAM`, `MINID` and `LIMIT`."),
        ("7.0.0", "Takes an ID whose second half is `*`."),
        ("8.2.0", "Takes `KEEPREF`, `DELREF` and `ACKED`."),
    ],
    ..runs(xadd)
};

fn xadd(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let addition = Addition::parse(cx, args)?;
    let key = args.at(1);
    let (limits, times) = (block_limits(cx), (cx.now_ms, cx.dead_ms));
    let trim_limit = Trim::limit_default(cx);
    let known = match edit_stream(cx, key)? {
        Some(stream) => Some(addition.apply(stream, limits, trim_limit, times)?),
        None => None,
    };
    let added = match known {
        Some(added) => added,
        None if addition.needs_key => {
            out.null();
            return Ok(());
        }
        None => {
            let mut stream = new_stream(cx);
            let added = addition.apply(&mut stream, limits, trim_limit, times)?;
            cx.put_object(key, Object::Stream(Box::new(stream)));
            added
        }
    };
    write_id(out, added.id);
    if added.is_duplicate {
        cx.changed_unwatched(key);
        addition.log(cx, added);
        return Ok(());
    }
    cx.changed(key, Class::STREAM, "xadd");
    if added.trimmed > 0 {
        cx.notify(Class::STREAM, "xtrim", key);
    }
    cx.ready(key);
    addition.log(cx, added);
    Ok(())
}

/// What the words of an XADD ask for.
struct Addition<'a> {
    args: Args<'a>,
    /// NOMKSTREAM.
    needs_key: bool,
    message: Option<Message<'a>>,
    trim: Trim,
    id: Wanted,
    /// Where the names and values begin.
    fields_at: usize,
}

/// The id that an entry is to have.
#[derive(Clone, Copy)]
enum Wanted {
    /// `*`.
    Any,
    /// `ms-*`.
    Within(u64),
    /// This one.
    Exact(StreamId),
}

/// How a producer names its message.
struct Message<'a> {
    producer: &'a [u8],
    /// IDMP's name; none with IDMPAUTO, where the content names it.
    name: Option<&'a [u8]>,
}

/// What became of it.
#[derive(Clone, Copy)]
struct Added {
    id: StreamId,
    is_duplicate: bool,
    trimmed: u64,
    length: u64,
}

impl<'a> Addition<'a> {
    #[inline]
    fn parse(cx: &Context<'_>, args: Args<'a>) -> Result<Self, CommandError> {
        let mut addition = Self {
            args,
            needs_key: false,
            message: None,
            trim: Trim::default(),
            id: Wanted::Any,
            fields_at: 3,
        };
        if args.at(2) != b"*" {
            addition.parse_options(cx.is_replaying())?;
        }
        let words = args.len().saturating_sub(addition.fields_at);
        if words < 2 || !words.is_multiple_of(2) {
            return Err(cx.arity_error());
        }
        if let Wanted::Exact(StreamId::MIN) = addition.id {
            return Err("ERR The ID specified in XADD must be greater than 0-0".into());
        }
        Ok(addition)
    }

    #[cold]
    #[inline(never)]
    fn parse_options(&mut self, is_replaying: bool) -> Result<(), CommandError> {
        let args = self.args;
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.at(at) == b"*" {
                break;
            } else if args.is(at, "NOMKSTREAM") {
                self.needs_key = true;
                at += 1;
            } else if more > 1 && args.is(at, "IDMP") {
                self.named_once()?;
                let (producer, name) = (args.at(at + 1), args.at(at + 2));
                if producer.is_empty() {
                    return Err("ERR syntax error, IDMP requires a non-empty producer ID".into());
                }
                if name.is_empty() {
                    return Err("ERR syntax error, IDMP requires a non-empty idempotent ID".into());
                }
                let name = Some(name);
                self.message = Some(Message { producer, name });
                at += 3;
            } else if more > 0 && args.is(at, "IDMPAUTO") {
                self.named_once()?;
                let producer = args.at(at + 1);
                if producer.is_empty() {
                    return Err(
                        "ERR syntax error, IDMPAUTO requires a non-empty producer ID".into(),
                    );
                }
                let name = None;
                self.message = Some(Message { producer, name });
                at += 2;
            } else {
                match self.trim.parse(args, at)? {
                    0 => {
                        self.id = match id::parse_open(args.at(at)) {
                            Some(ms) => Wanted::Within(ms),
                            None => Wanted::Exact(id::parse(args.at(at), 0)?),
                        };
                        break;
                    }
                    words => at += words,
                }
            }
        }
        // In a log its id is known.
        if self.message.is_some() && !matches!(self.id, Wanted::Any) && !is_replaying {
            return Err(
                "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs".into(),
            );
        }
        self.trim.check()?;
        self.fields_at = at + 1;
        Ok(())
    }

    fn named_once(&self) -> Result<(), CommandError> {
        match self.message {
            Some(_) => Err("ERR syntax error, IDMP/IDMPAUTO specified multiple times".into()),
            None => Ok(()),
        }
    }

    #[inline]
    fn fields(&self) -> Words<'a> {
        Words {
            args: self.args,
            at: self.fields_at,
        }
    }

    /// Adds the entry. `times` are now, and when names that a producer used are forgotten.
    #[inline]
    fn apply(
        &self,
        stream: &mut Stream,
        limits: BlockLimits,
        trim_limit: u64,
        (now_ms, dead_ms): (u64, u64),
    ) -> Result<Added, CommandError> {
        let name = match &self.message {
            None => None,
            Some(message) => {
                let name = self.message_name(message);
                if let Some(id) = producer::find_duplicate(stream, message.producer, &name, dead_ms)
                {
                    return Ok(Added {
                        id,
                        is_duplicate: true,
                        trimmed: 0,
                        length: stream.len(),
                    });
                }
                Some((message.producer, name))
            }
        };
        let id = self.id_in(stream, now_ms)?;
        if !stream.append(id, self.fields(), limits) {
            return Err(NOT_GREATER);
        }
        if let Some((producer, name)) = name {
            producer::record(stream, producer, &name, id, dead_ms);
        }
        let trimmed = match self.trim.is_asked() {
            true => self.trim.apply(stream, trim_limit),
            false => 0,
        };
        Ok(Added {
            id,
            is_duplicate: false,
            trimmed,
            length: stream.len(),
        })
    }

    fn message_name(&self, message: &Message<'a>) -> Vec<u8> {
        match message.name {
            Some(name) => name.to_vec(),
            None => {
                let pairs = self
                    .fields()
                    .step_by(2)
                    .zip(self.fields().skip(1).step_by(2));
                content_name(pairs).to_vec()
            }
        }
    }

    /// The id that the entry gets.
    #[inline]
    fn id_in(&self, stream: &Stream, now_ms: u64) -> Result<StreamId, CommandError> {
        let last = stream.last_id();
        if last == StreamId::MAX {
            return Err(
                "ERR The stream has exhausted the last possible ID, unable to add more items"
                    .into(),
            );
        }
        match self.id {
            Wanted::Any => stream.next_id(now_ms).ok_or(NOT_GREATER),
            Wanted::Exact(id) if id > last => Ok(id),
            Wanted::Exact(_) => Err(NOT_GREATER),
            Wanted::Within(ms) if ms > last.ms => Ok(StreamId { ms, seq: 0 }),
            Wanted::Within(ms) if ms == last.ms => match last.seq.checked_add(1) {
                Some(seq) => Ok(StreamId { ms, seq }),
                None => Err(NOT_GREATER),
            },
            Wanted::Within(_) => Err(NOT_GREATER),
        }
    }

    /// Logs the addition with its id in place of `*`, and what trimming came to.
    #[inline]
    fn log(&self, cx: &mut Context<'_>, added: Added) {
        if cx.is_logged() {
            self.rewrite(cx, added);
        }
    }

    #[cold]
    fn rewrite(&self, cx: &mut Context<'_>, added: Added) {
        let id = IdText::new(added.id);
        let length = added.length.to_string();
        let mut words: Vec<&[u8]> = vec![b"XADD", self.args.at(1)];
        match &self.message {
            None => {}
            Some(Message {
                producer,
                name: Some(name),
            }) => words.extend([b"IDMP", *producer, *name]),
            Some(Message { producer, .. }) => words.extend([&b"IDMPAUTO"[..], *producer]),
        }
        if added.trimmed > 0 {
            words.extend([&b"MAXLEN"[..], b"=", length.as_bytes()]);
            words.extend(references_word(self.trim.references()));
        }
        words.push(id.as_bytes());
        words.extend(self.fields());
        cx.rewrite(&words);
    }
}

/// The error for an id that does not go on from the last one.
const NOT_GREATER: CommandError = CommandError::text(
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
);

/// The words from one on.
#[derive(Clone)]
struct Words<'a> {
    args: Args<'a>,
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let word = self.args.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.args.len().saturating_sub(self.at);
        (left, Some(left))
    }
}
