//! GEORADIUS and its relatives, which GEOSEARCH has replaced.

use command::arg::*;
use command::{Acl, Arg, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};

use super::UNIT;
use super::area::{self, Kind};
use super::search::{COUNT, ORDER};
use crate::handler::runs;
use crate::{Command, CommandError, Context};

const HISTORY: &[(&str, &str)] = &[
    ("6.2.0", "Takes `ANY` with `COUNT`."),
    ("7.0.0", "Takes upper-case units."),
];
/// About the keys behind STORE and STOREDIST.
const LAST: &str = "The last of several counts.";

/// As [`COUNT`], but it says when ANY came.
const COUNT_SINCE: Arg = block(
    "count-block",
    &[
        int("count").token("COUNT"),
        flag("ANY").since("6.2.0").optional(),
    ],
)
.optional();
/// Where the result goes.
const STORE: Arg = one_of(
    "store",
    &[
        key("storekey").shown("key").spec(1).token("STORE"),
        key("storedistkey").shown("key").spec(2).token("STOREDIST"),
    ],
)
.optional();

pub(super) const GEORADIUS: Command = Command {
    name: "georadius",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Returns or stores the members within a distance of a place.",
    complexity: "O(N+log(M))",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::GEO,
    keys: &[
        KeySpec::at(1).ro().access(),
        KeySpec::after("STORE", 6)
            .ow()
            .update()
            .incomplete()
            .note(LAST),
        KeySpec::after("STOREDIST", 6)
            .ow()
            .update()
            .incomplete()
            .note(LAST),
    ],
    special: Special::Georadius(5),
    args: &[
        key("key"),
        double("longitude"),
        double("latitude"),
        double("radius"),
        UNIT,
        flag("WITHCOORD").optional(),
        flag("WITHDIST").optional(),
        flag("WITHHASH").optional(),
        COUNT_SINCE,
        ORDER,
        STORE,
    ],
    reply: &[Shape::Array, Shape::Int],
    history: HISTORY,
    deprecated: Some((
        "6.2.0",
        "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
    )),
    ..runs(georadius)
};

fn georadius(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let may_store = true;
    area::run(cx, args, out, Kind::Radius { may_store })
}

pub(super) const GEORADIUS_RO: Command = Command {
    name: "georadius_ro",
    group: Group::Geo,
    since: "3.2.10",
    summary: "Returns the members within a distance of a place.",
    complexity: "O(N+log(M))",
    arity: Arity::at_least(6),
    flags: Flags::READONLY,
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        double("longitude"),
        double("latitude"),
        double("radius"),
        UNIT,
        flag("WITHCOORD").optional(),
        flag("WITHDIST").optional(),
        flag("WITHHASH").optional(),
        COUNT_SINCE,
        ORDER,
    ],
    reply: &[Shape::Array],
    history: HISTORY,
    deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")),
    ..runs(georadius_ro)
};

fn georadius_ro(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let may_store = false;
    area::run(cx, args, out, Kind::Radius { may_store })
}

pub(super) const GEORADIUSBYMEMBER: Command = Command {
    name: "georadiusbymember",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Returns or stores the members within a distance of a member.",
    complexity: "O(N+log(M))",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::GEO,
    keys: &[
        KeySpec::at(1).ro().access(),
        KeySpec::after("STORE", 5)
            .ow()
            .update()
            .incomplete()
            .note(LAST),
        KeySpec::after("STOREDIST", 5)
            .ow()
            .update()
            .incomplete()
            .note(LAST),
    ],
    special: Special::Georadius(5),
    args: &[
        key("key"),
        string("member"),
        double("radius"),
        UNIT,
        flag("WITHCOORD").optional(),
        flag("WITHDIST").optional(),
        flag("WITHHASH").optional(),
        COUNT,
        ORDER,
        STORE,
    ],
    reply: &[Shape::Array, Shape::Int],
    history: HISTORY,
    deprecated: Some((
        "6.2.0",
        "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
    )),
    ..runs(georadiusbymember)
};

fn georadiusbymember(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let may_store = true;
    area::run(cx, args, out, Kind::RadiusByMember { may_store })
}

pub(super) const GEORADIUSBYMEMBER_RO: Command = Command {
    name: "georadiusbymember_ro",
    group: Group::Geo,
    since: "3.2.10",
    summary: "Returns the members within a distance of a member.",
    complexity: "O(N+log(M))",
    arity: Arity::at_least(5),
    flags: Flags::READONLY,
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("member"),
        double("radius"),
        UNIT,
        flag("WITHCOORD").optional(),
        flag("WITHDIST").optional(),
        flag("WITHHASH").optional(),
        COUNT,
        ORDER,
    ],
    reply: &[Shape::Array],
    history: HISTORY,
    deprecated: Some((
        "6.2.0",
        "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
    )),
    ..runs(georadiusbymember_ro)
};

fn georadiusbymember_ro(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let may_store = false;
    area::run(cx, args, out, Kind::RadiusByMember { may_store })
}
