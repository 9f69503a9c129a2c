//! GEOSEARCH and GEOSEARCHSTORE.
//!
//! Both take Valkey's BYPOLYGON too, which Redis lacks; their grammar is Redis's.

use command::arg::*;
use command::{Acl, Arg, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::UNIT;
use super::area::{self, Kind};
use crate::handler::runs;
use crate::{Command, CommandError, Context};

/// Where distances are from.
const FROM: Arg = one_of(
    "from",
    &[
        string("member").token("FROMMEMBER"),
        block("fromlonlat", &[double("longitude"), double("latitude")]).token("FROMLONLAT"),
    ],
);
/// What members must be in.
const BY: Arg = one_of(
    "by",
    &[
        block("circle", &[double("radius").token("BYRADIUS"), UNIT]),
        block(
            "box",
            &[double("width").token("BYBOX"), double("height"), UNIT],
        ),
    ],
);
/// In which order they come.
pub(super) const ORDER: Arg = one_of("order", &[flag("ASC"), flag("DESC")]).optional();
/// How many there are at most.
pub(super) const COUNT: Arg = block(
    "count-block",
    &[int("count").token("COUNT"), flag("ANY").optional()],
)
.optional();

pub(super) const GEOSEARCH: Command = Command {
    name: "geosearch",
    group: Group::Geo,
    since: "6.2.0",
    summary: "Returns the members inside a circle, a rectangle or a polygon.",
    complexity: "O(N+log(M))",
    arity: Arity::at_least(7),
    flags: Flags::READONLY,
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        FROM,
        BY,
        ORDER,
        COUNT,
        flag("WITHCOORD").optional(),
        flag("WITHDIST").optional(),
        flag("WITHHASH").optional(),
    ],
    reply: &[Shape::Array],
    history: &[("7.0.0", "Takes upper-case units.")],
    ..runs(geosearch)
};

fn geosearch(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    area::run(cx, args, out, Kind::Search)
}

pub(super) const GEOSEARCHSTORE: Command = Command {
    name: "geosearchstore",
    group: Group::Geo,
    since: "6.2.0",
    summary: "Stores the members inside a circle, a rectangle or a polygon.",
    complexity: "O(N+log(M))",
    arity: Arity::at_least(8),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ow().update(), KeySpec::at(2).ro().access()],
    args: &[
        key("destination"),
        key("source").spec(1),
        FROM,
        BY,
        ORDER,
        COUNT,
        flag("STOREDIST").optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes upper-case units.")],
    ..runs(geosearchstore)
};

fn geosearchstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    area::run(cx, args, out, Kind::SearchStore)
}
