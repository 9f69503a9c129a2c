//! Publish and subscribe.
//!
//! A subscription stands in two places: in the session, which is the client's own view, and in the
//! registry, which publishers read. Both change together, here and where a client goes away.
//!
//! # Invariants
//! - A session without any subscription has none at all: `subscriptions` is `None`.
//! - Each channel named gets an answer of its own, a push in RESP3, even one that changes nothing.

use std::collections::BTreeSet;

use command::arg::*;
use command::{Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::pubsub::ChannelKind;
use crate::session::{Session, Subscriptions};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    PSUBSCRIBE,
    PUBLISH,
    PUBSUB,
    PUNSUBSCRIBE,
    SPUBLISH,
    SSUBSCRIBE,
    SUBSCRIBE,
    SUNSUBSCRIBE,
    UNSUBSCRIBE,
];

const PSUBSCRIBE: Command = Command {
    name: "psubscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Listens to every channel whose name matches a pattern.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::DENYOOM
        .with(Flags::PUBSUB)
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[pattern("pattern").multiple()],
    reply: &[Shape::Push],
    ..runs(psubscribe)
};

fn psubscribe(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    subscribe_to(cx, Topic::Pattern, args, out)
}

const PUBLISH: Command = Command {
    name: "publish",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Sends a message to a channel.",
    complexity: "O(N+M)",
    arity: Arity::exactly(3),
    flags: Flags::PUBSUB
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST),
    args: &[string("channel"), string("message")],
    reply: &[Shape::Int],
    ..runs(publish)
};

fn publish(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let receivers = cx.publish(ChannelKind::Global, args.at(1), args.at(2));
    out.count(receivers);
    Ok(())
}

const PUBSUB: Command = Command {
    name: "pubsub",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "Describes channels and their subscribers.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        PUBSUB_CHANNELS,
        PUBSUB_HELP,
        PUBSUB_NUMPAT,
        PUBSUB_NUMSUB,
        PUBSUB_SHARDCHANNELS,
        PUBSUB_SHARDNUMSUB,
    ])
};

const PUBSUB_CHANNELS: Command = Command {
    name: "channels",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "Lists the channels that have subscribers.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE),
    args: &[pattern("pattern").optional()],
    reply: &[Shape::Array],
    ..runs(pubsub_channels)
};

fn pubsub_channels(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    channels(cx, ChannelKind::Global, args, out)
}

const PUBSUB_HELP: Command = Command {
    name: "help",
    group: Group::Pubsub,
    since: "6.2.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(pubsub_help)
};

fn pubsub_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    cx.help(
        out,
        &[
            "PUBSUB <subcommand> [<arg> ...]. The subcommands are:",
            "CHANNELS [<pattern>]",
            "    Lists the channels that have subscribers, or those of them that match.",
            "NUMPAT",
            "    Counts the patterns that clients listen to.",
            "NUMSUB [<channel> ...]",
            "    Counts the subscribers of each channel; those by pattern do not count.",
            "SHARDCHANNELS [<pattern>]",
            "    Lists the shard channels that have subscribers, or those of them that match.",
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Counts the subscribers of each shard channel.",
            "HELP",
            "    Lists the subcommands.",
        ],
    );
    Ok(())
}

const PUBSUB_NUMPAT: Command = Command {
    name: "numpat",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "Counts the patterns that clients listen to.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE),
    reply: &[Shape::Int],
    ..runs(pubsub_numpat)
};

fn pubsub_numpat(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    out.count(cx.shared.pubsub.pattern_count());
    Ok(())
}

const PUBSUB_NUMSUB: Command = Command {
    name: "numsub",
    group: Group::Pubsub,
    since: "2.8.0",
    summary: "Counts the subscribers of channels.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE),
    args: &[string("channel").optional().multiple()],
    reply: &[Shape::Array],
    ..runs(pubsub_numsub)
};

fn pubsub_numsub(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    subscriber_counts(cx, ChannelKind::Global, args, out)
}

const PUBSUB_SHARDCHANNELS: Command = Command {
    name: "shardchannels",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Lists the shard channels that have subscribers.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE),
    args: &[pattern("pattern").optional()],
    reply: &[Shape::Array],
    ..runs(pubsub_shardchannels)
};

fn pubsub_shardchannels(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    channels(cx, ChannelKind::Shard, args, out)
}

const PUBSUB_SHARDNUMSUB: Command = Command {
    name: "shardnumsub",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Counts the subscribers of shard channels.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE),
    args: &[string("shardchannel").optional().multiple()],
    reply: &[Shape::Array],
    ..runs(pubsub_shardnumsub)
};

fn pubsub_shardnumsub(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    subscriber_counts(cx, ChannelKind::Shard, args, out)
}

const PUNSUBSCRIBE: Command = Command {
    name: "punsubscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Stops listening to patterns.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::PUBSUB
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[pattern("pattern").optional().multiple()],
    reply: &[Shape::Push],
    ..runs(punsubscribe)
};

fn punsubscribe(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    unsubscribe_from(cx, Topic::Pattern, args, out)
}

const SPUBLISH: Command = Command {
    name: "spublish",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Sends a message to a shard channel.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::PUBSUB
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST),
    keys: &[KeySpec::at(1).not_key()],
    args: &[string("shardchannel"), string("message")],
    reply: &[Shape::Int],
    ..runs(spublish)
};

fn spublish(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let receivers = cx.publish(ChannelKind::Shard, args.at(1), args.at(2));
    out.count(receivers);
    Ok(())
}

const SSUBSCRIBE: Command = Command {
    name: "ssubscribe",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Listens to shard channels.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::DENYOOM
        .with(Flags::PUBSUB)
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    keys: &[KeySpec::at(1).last(-1).not_key()],
    args: &[string("shardchannel").multiple()],
    reply: &[Shape::Push],
    ..runs(ssubscribe)
};

fn ssubscribe(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    subscribe_to(cx, Topic::ShardChannel, args, out)
}

const SUBSCRIBE: Command = Command {
    name: "subscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Listens to channels.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::DENYOOM
        .with(Flags::PUBSUB)
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("channel").multiple()],
    reply: &[Shape::Push],
    ..runs(subscribe)
};

fn subscribe(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    subscribe_to(cx, Topic::Channel, args, out)
}

const SUNSUBSCRIBE: Command = Command {
    name: "sunsubscribe",
    group: Group::Pubsub,
    since: "7.0.0",
    summary: "Stops listening to shard channels.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::PUBSUB
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    keys: &[KeySpec::at(1).last(-1).not_key()],
    args: &[string("shardchannel").optional().multiple()],
    reply: &[Shape::Push],
    ..runs(sunsubscribe)
};

fn sunsubscribe(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    unsubscribe_from(cx, Topic::ShardChannel, args, out)
}

const UNSUBSCRIBE: Command = Command {
    name: "unsubscribe",
    group: Group::Pubsub,
    since: "2.0.0",
    summary: "Stops listening to channels.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::PUBSUB
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("channel").optional().multiple()],
    reply: &[Shape::Push],
    ..runs(unsubscribe)
};

fn unsubscribe(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    unsubscribe_from(cx, Topic::Channel, args, out)
}

/// What a subscription is to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topic {
    Channel,
    Pattern,
    ShardChannel,
}

impl Topic {
    /// The words that confirm a subscription and its end.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Channel => ("subscribe", "unsubscribe"),
            Self::Pattern => ("psubscribe", "punsubscribe"),
            Self::ShardChannel => ("ssubscribe", "sunsubscribe"),
        }
    }

    fn names(self, subscriptions: &mut Subscriptions) -> &mut BTreeSet<Box<[u8]>> {
        match self {
            Self::Channel => &mut subscriptions.channels,
            Self::Pattern => &mut subscriptions.patterns,
            Self::ShardChannel => &mut subscriptions.shard_channels,
        }
    }

    /// How many subscriptions a confirmation reports: channels and patterns count together.
    fn count(self, session: &Session) -> usize {
        session.subscriptions.as_ref().map_or(0, |all| match self {
            Self::Channel | Self::Pattern => all.channels.len() + all.patterns.len(),
            Self::ShardChannel => all.shard_channels.len(),
        })
    }
}

fn subscribe_to(
    cx: &mut Context<'_>,
    topic: Topic,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    for name in args.from(1).iter() {
        let id = cx.session.id;
        let subscriptions = cx.session.subscriptions.get_or_insert_default();
        if topic.names(subscriptions).insert(name.into()) {
            let pubsub = &cx.shared.pubsub;
            let hash = cx.shared.hash(name);
            match topic {
                Topic::Channel => pubsub.subscribe(ChannelKind::Global, hash, name, id),
                Topic::Pattern => pubsub.subscribe_pattern(name, id),
                Topic::ShardChannel => pubsub.subscribe(ChannelKind::Shard, hash, name, id),
            }
        }
        out.push(3);
        out.text(topic.words().0);
        out.bulk(name);
        out.count(topic.count(cx.session));
    }
    Ok(())
}

fn unsubscribe_from(
    cx: &mut Context<'_>,
    topic: Topic,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 1 {
        for name in args.from(1).iter() {
            unsubscribe_one(cx, topic, name, out);
        }
        return Ok(());
    }
    let names = match cx.session.subscriptions.as_mut() {
        Some(subscriptions) => topic.names(subscriptions).clone(),
        None => BTreeSet::new(),
    };
    if names.is_empty() {
        out.push(3);
        out.text(topic.words().1);
        out.null();
        out.count(topic.count(cx.session));
    }
    for name in names {
        unsubscribe_one(cx, topic, &name, out);
    }
    Ok(())
}

fn unsubscribe_one(cx: &mut Context<'_>, topic: Topic, name: &[u8], out: &mut Writer<'_>) {
    if let Some(subscriptions) = &mut cx.session.subscriptions {
        if topic.names(subscriptions).remove(name) {
            let (pubsub, id) = (&cx.shared.pubsub, cx.session.id);
            let hash = cx.shared.hash(name);
            match topic {
                Topic::Channel => pubsub.unsubscribe(ChannelKind::Global, hash, name, id),
                Topic::Pattern => pubsub.unsubscribe_pattern(name, id),
                Topic::ShardChannel => pubsub.unsubscribe(ChannelKind::Shard, hash, name, id),
            }
        }
        if subscriptions.is_empty() {
            cx.session.subscriptions = None;
        }
    }
    out.push(3);
    out.text(topic.words().1);
    out.bulk(name);
    out.count(topic.count(cx.session));
}

/// Ends every subscription of the client, without a word to it.
pub fn forget_subscriptions(cx: &mut Context<'_>) {
    let Some(subscriptions) = cx.session.subscriptions.take() else {
        return;
    };
    cx.shared
        .forget_subscriptions(cx.session.id, &subscriptions);
}

fn channels(
    cx: &mut Context<'_>,
    kind: ChannelKind,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(cx.subcommand_error(args));
    }
    let found = cx.shared.pubsub.channels(kind, args.get(2));
    out.array(found.len());
    found.iter().for_each(|channel| out.bulk(channel));
    Ok(())
}

fn subscriber_counts(
    cx: &mut Context<'_>,
    kind: ChannelKind,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let names = args.from(2);
    // A map in spirit, but an array in both protocols.
    out.array(names.len() * 2);
    for name in names.iter() {
        out.bulk(name);
        out.count(cx.shared.pubsub.count(kind, cx.shared.hash(name), name));
    }
    Ok(())
}
