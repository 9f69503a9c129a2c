//! SORT and SORT_RO.
//!
//! Weights and answers may come from keys whose names are made from the elements, so both commands
//! need every stripe.
//!
//! # Invariants
//! - Weights are read once for each element, before the sort: the comparison cannot fail.
//! - Elements of equal numeric weight are ordered by their bytes; of equal text they stay in order.

use std::cmp::Ordering;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};
use structure::list::List;
use structure::record::ValueRef;

use crate::handler::runs_on_all;
use crate::notify::Class;
use crate::object::{Kind, Object, transfer};
use crate::{Command, CommandError, Context};

pub(super) const SORT: Command = Command {
    name: "sort",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Returns or stores the sorted elements of a list, set or sorted set.",
    complexity: "O(N+M*log(M))",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SET
        .with(Acl::SORTEDSET)
        .with(Acl::LIST)
        .with(Acl::DANGEROUS),
    keys: &[
        KeySpec::at(1).ro().access(),
        KeySpec::unknown()
            .ro()
            .access()
            .note("Names made from the elements after BY and GET."),
        KeySpec::unknown()
            .ow()
            .update()
            .note("STORE may stand anywhere among the options."),
    ],
    special: Special::Sort,
    args: &[
        key("key"),
        pattern("by-pattern")
            .token("BY")
            .shown("pattern")
            .spec(1)
            .optional(),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
        pattern("get-pattern")
            .token("GET")
            .shown("pattern")
            .spec(1)
            .optional()
            .multiple_token(),
        one_of("order", &[flag("ASC"), flag("DESC")]).optional(),
        flag("ALPHA").named("sorting").optional(),
        key("destination").token("STORE").spec(2).optional(),
    ],
    reply: &[Shape::Array, Shape::Int],
    ..runs_on_all(sort)
};

fn sort(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    run(cx, args, out, true)
}

pub(super) const SORT_RO: Command = Command {
    name: "sort_ro",
    group: Group::Generic,
    since: "7.0.0",
    summary: "Returns the sorted elements of a list, set or sorted set.",
    complexity: "O(N+M*log(M))",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::SET
        .with(Acl::SORTEDSET)
        .with(Acl::LIST)
        .with(Acl::DANGEROUS),
    keys: &[
        KeySpec::at(1).ro().access(),
        KeySpec::unknown()
            .ro()
            .access()
            .note("Names made from the elements after BY and GET."),
    ],
    args: &[
        key("key"),
        pattern("by-pattern")
            .token("BY")
            .shown("pattern")
            .spec(1)
            .optional(),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
        pattern("get-pattern")
            .token("GET")
            .shown("pattern")
            .spec(1)
            .optional()
            .multiple_token(),
        one_of("order", &[flag("ASC"), flag("DESC")]).optional(),
        flag("ALPHA").named("sorting").optional(),
    ],
    reply: &[Shape::Array],
    ..runs_on_all(sort_ro)
};

fn sort_ro(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    run(cx, args, out, false)
}

/// The options.
#[derive(Default)]
struct Options<'a> {
    descending: bool,
    alpha: bool,
    offset: i64,
    /// Negative: no limit.
    count: i64,
    by: Option<&'a [u8]>,
    /// A BY that names no element: the order stays as it is.
    unsorted: bool,
    gets: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Reads the words. `reads_all` says whether the client may read whatever key a pattern names.
    fn parse(args: Args<'a>, may_store: bool, reads_all: bool) -> Result<Self, CommandError> {
        let denied = |option: &str| {
            CommandError::err(format!(
                "{option} option of SORT denied due to insufficient ACL permissions."
            ))
        };
        let mut options = Self {
            count: -1,
            ..Self::default()
        };
        let mut index = 2;
        while index < args.len() {
            let more = args.len() - index - 1;
            if args.is(index, "ASC") {
                options.descending = false;
            } else if args.is(index, "DESC") {
                options.descending = true;
            } else if args.is(index, "ALPHA") {
                options.alpha = true;
            } else if args.is(index, "LIMIT") && more >= 2 {
                options.offset = crate::number::int(args.at(index + 1))?;
                options.count = crate::number::int(args.at(index + 2))?;
                index += 2;
            } else if args.is(index, "STORE") && may_store && more >= 1 {
                options.store = Some(args.at(index + 1));
                index += 1;
            } else if args.is(index, "BY") && more >= 1 {
                let by = args.at(index + 1);
                options.by = Some(by);
                options.unsorted |= !by.contains(&b'*');
                if by.contains(&b'*') && !reads_all {
                    return Err(denied("BY"));
                }
                index += 1;
            } else if args.is(index, "GET") && more >= 1 {
                if !reads_all {
                    return Err(denied("GET"));
                }
                options.gets.push(args.at(index + 1));
                index += 1;
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        Ok(options)
    }

    /// Which of `len` elements are wanted.
    fn window(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.offset).unwrap_or(0).min(len);
        let end = match usize::try_from(self.count) {
            Ok(count) => start.saturating_add(count).min(len),
            Err(_) => len,
        };
        start..end
    }
}

/// What an element is ordered by.
enum Weight {
    Number(f64),
    /// `None` where its key is not there: before everything.
    Text(Option<Vec<u8>>),
}

fn run(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    may_store: bool,
) -> Result<(), CommandError> {
    let session = &cx.session;
    let reads_all = !session.is_restricted() || session.rights().reads_every_key(cx.entry, args);
    let mut options = Options::parse(args, may_store, reads_all)?;
    let object = cx.read_object(args.at(1))?;
    let is_set = object.is_some_and(|object| object.kind() == Kind::Set);
    let mut elements = object.map_or(Ok(Vec::new()), elements)?;
    if options.unsorted && is_set && options.store.is_some() {
        // A set has no order of its own, and what is stored must be the same everywhere.
        (options.unsorted, options.alpha, options.by) = (false, true, None);
    }
    if is_set && options.store.is_some() {
        // Elements of the same weight stay in this order.
        elements.sort_unstable();
    }
    if options.unsorted {
        if options.descending {
            elements.reverse();
        }
    } else {
        elements = sorted(cx, elements, &options)?;
    }
    let window = options.window(elements.len());
    let elements = &elements[window];
    let answers = answers(cx, elements, &options.gets);
    match options.store {
        Some(to) => {
            let count = store(cx, to, &answers);
            out.count(count);
        }
        None => {
            out.array(answers.len());
            for answer in &answers {
                match answer {
                    Some(answer) => out.bulk(answer),
                    None => out.null(),
                }
            }
        }
    }
    Ok(())
}

/// The elements, in their own order.
fn elements(object: &Object) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut elements = Vec::with_capacity(object.len());
    match object {
        Object::List(list) => elements.extend(list.iter().map(|entry| entry.to_vec())),
        Object::Set(set) => transfer::each_member(set, |member| elements.push(member.to_vec())),
        Object::SortedSet(sorted) => {
            transfer::each_scored(sorted, |member, _| elements.push(member.to_vec()))
        }
        Object::Hash(_) | Object::Stream(_) | Object::Array(_) => {
            return Err(CommandError::WrongType);
        }
    }
    Ok(elements)
}

fn sorted(
    cx: &mut Context<'_>,
    elements: Vec<Vec<u8>>,
    options: &Options<'_>,
) -> Result<Vec<Vec<u8>>, CommandError> {
    let mut weighted = Vec::with_capacity(elements.len());
    // All keys are looked at whatever the first weighs: who asks to be told of misses is.
    let mut are_numbers = true;
    for element in elements {
        let text = match options.by {
            Some(by) => look_up(cx, by, &element),
            None => Some(element.clone()),
        };
        let weight = if options.alpha {
            Weight::Text(text.map(|text| match options.store {
                // What is stored is the same everywhere; else a text is compared as one of C is.
                Some(_) => text,
                None => until_nul(text),
            }))
        } else {
            let number = text.map_or(Some(0.0), |text| crate::number::double(&text));
            are_numbers &= number.is_some();
            Weight::Number(number.unwrap_or(0.0))
        };
        weighted.push((weight, element));
    }
    if !are_numbers {
        return Err("ERR One or more scores can't be converted into double".into());
    }
    weighted.sort_by(|(weight, element), (other, other_element)| {
        let order = match (weight, other) {
            (Weight::Number(a), Weight::Number(b)) => a
                .partial_cmp(b)
                .unwrap_or(Ordering::Equal)
                .then_with(|| element.cmp(other_element)),
            (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
            _ => Ordering::Equal,
        };
        if options.descending {
            order.reverse()
        } else {
            order
        }
    });
    Ok(weighted.into_iter().map(|(_, element)| element).collect())
}

/// A text up to its first byte that is zero.
fn until_nul(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(end) = text.iter().position(|byte| *byte == 0) {
        text.truncate(end);
    }
    text
}

fn answers(cx: &mut Context<'_>, elements: &[Vec<u8>], gets: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    if gets.is_empty() {
        return elements.iter().cloned().map(Some).collect();
    }
    let mut answers = Vec::with_capacity(elements.len().saturating_mul(gets.len()));
    for element in elements {
        for pattern in gets {
            answers.push(look_up(cx, pattern, element));
        }
    }
    answers
}

/// What a pattern finds for an element: `#` is the element itself, `key_*` a string's value,
/// `key_*->field` a hash's field.
fn look_up(cx: &mut Context<'_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let arrow = pattern[star..].windows(2).position(|pair| pair == b"->");
    let (end, field) = match arrow {
        Some(at) if star + at + 2 < pattern.len() => (star + at, Some(&pattern[star + at + 2..])),
        _ => (pattern.len(), None),
    };
    let key = [&pattern[..star], element, &pattern[star + 1..end]].concat();
    let (seed, dead_ms) = (cx.shared.seed, cx.dead_ms);
    if let Some(field) = field
        && cx.is_logged()
    {
        // Whoever plays a SORT with STORE again must find the same.
        cx.expire_field(&key, field);
    }
    match (cx.look(&key)?.value(), field) {
        (ValueRef::Bytes(bytes), None) => Some(bytes.to_vec()),
        (ValueRef::Int(int), None) => Some(int.to_string().into_bytes()),
        (ValueRef::Object(Object::Hash(hash)), Some(field)) => {
            transfer::field_value(hash, field, &seed, dead_ms)
        }
        _ => None,
    }
}

/// Makes a list of the answers; an empty one removes the key.
fn store(cx: &mut Context<'_>, to: &[u8], answers: &[Option<Vec<u8>>]) -> usize {
    if answers.is_empty() {
        if cx.displace(to) {
            cx.changed(to, Class::GENERIC, "del");
        }
        return 0;
    }
    let mut list = List::new();
    for answer in answers {
        list.push_back(
            answer.as_deref().unwrap_or_default(),
            cx.settings.list_limit,
        );
    }
    cx.put_object(to, Object::List(list));
    cx.changed(to, Class::LIST, "sortstore");
    cx.of_elements(to, answers.len());
    cx.ready(to);
    answers.len()
}
