//! HIMPORT: many hashes of the same fields, which the client names once.
//!
//! # Invariants
//! - A list of fields belongs to one session: RESET and the connection's end forget it.
//! - What is logged names the fields, so that whoever reads the log needs no lists.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, OwnedArgs, Writer};

use super::expiry::check_kind;
use crate::handler::runs;
use crate::notify::Class;
use crate::object::hash::Ttl;
use crate::object::{Hash, Object};
use crate::session::Fieldset;
use crate::{Command, CommandError, Context};

pub(super) const HIMPORT: Command = Command {
    name: "himport",
    group: Group::Hash,
    since: "8.10.0",
    summary: "Stores hashes whose fields were named before.",
    arity: Arity::at_least(2),
    acl: Acl::HASH,
    ..Command::container(&[DISCARD, DISCARDALL, PREPARE, SET])
};

const PREPARE: Command = Command {
    name: "prepare",
    group: Group::Hash,
    since: "8.10.0",
    summary: "Names a list of fields for this session.",
    complexity: "O(N*log(N))",
    arity: Arity::at_least(4),
    flags: Flags::DENYOOM,
    acl: Acl::HASH,
    args: &[string("fieldset-name"), string("field").multiple()],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards"],
    ..runs(prepare)
};

fn prepare(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let words = args.from(3);
    let mut fields: Vec<(&[u8], u32)> = words.iter().zip(0..).collect();
    fields.sort_unstable_by_key(|&(field, _)| (field.len(), field));
    if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("ERR duplicate field name in fieldset".into());
    }
    let fieldset = Fieldset {
        fields: OwnedArgs::from_words(fields.iter().map(|(field, _)| *field)),
        places: fields.iter().map(|(_, place)| *place).collect(),
    };
    let fieldsets = cx.session.fieldsets.get_or_insert_default();
    fieldsets.insert(args.at(2).into(), fieldset);
    out.ok();
    Ok(())
}

const SET: Command = Command {
    name: "set",
    group: Group::Hash,
    since: "8.10.0",
    summary: "Stores a hash of the values of a list of fields; what the key held is gone.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::HASH,
    keys: &[KeySpec::at(2).ow().update()],
    args: &[
        key("key"),
        string("fieldset-name"),
        string("value").multiple(),
    ],
    reply: &[Shape::Ok],
    ..runs(set)
};

fn set(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, values, terms) = (args.at(2), args.from(4), cx.terms());
    check_kind(cx, key)?;
    // Taken out and put back: the rest needs the context as a whole.
    let fieldsets = cx.session.fieldsets.take();
    let fieldset = fieldsets.as_ref().and_then(|all| all.get(args.at(3)));
    let outcome = match fieldset {
        None => Err("ERR no such fieldset".into()),
        Some(fieldset) if fieldset.places.len() != values.len() => {
            Err("ERR value count does not match fieldset field count".into())
        }
        Some(fieldset) => {
            let mut hash = Hash::default();
            let fields = fieldset.fields.view();
            let value = |place: &u32| values.at(*place as usize);
            for (field, place) in fields.iter().zip(&fieldset.places) {
                hash.set(terms, field, value(place), Ttl::Clear);
            }
            cx.put_object(key, Object::Hash(hash));
            cx.changed(key, Class::HASH, "hset");
            cx.notify_fields("hset", key, fields.iter());
            if cx.is_logged() {
                let mut words: Vec<&[u8]> = vec![b"HSET", key];
                for (field, place) in fields.iter().zip(&fieldset.places) {
                    words.extend([field, value(place)]);
                }
                cx.rewrite(&[b"DEL", key]);
                cx.rewrite(&words);
            }
            out.ok();
            Ok(())
        }
    };
    cx.session.fieldsets = fieldsets;
    outcome
}

const DISCARD: Command = Command {
    name: "discard",
    group: Group::Hash,
    since: "8.10.0",
    summary: "Forgets a list of fields of this session.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    acl: Acl::HASH,
    args: &[string("fieldset-name")],
    reply: &[Shape::Int],
    tips: &["request_policy:all_shards"],
    ..runs(discard)
};

fn discard(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let fieldsets = cx.session.fieldsets.as_mut();
    let gone = fieldsets.and_then(|all| all.remove(args.at(2)));
    out.int(gone.is_some().into());
    Ok(())
}

const DISCARDALL: Command = Command {
    name: "discardall",
    group: Group::Hash,
    since: "8.10.0",
    summary: "Forgets all lists of fields of this session.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    acl: Acl::HASH,
    reply: &[Shape::Int],
    tips: &["request_policy:all_shards"],
    ..runs(discard_all)
};

fn discard_all(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let gone = cx.session.fieldsets.take();
    out.count(gone.map_or(0, |all| all.len()));
    Ok(())
}
