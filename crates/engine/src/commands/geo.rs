//! Places: sorted sets whose scores are places on the Earth.
//!
//! What a score means is told in [`crate::geo`]; every command on sorted sets works on these too.
//! Searching has files of its own in this folder.

mod area;
mod radius;
mod search;

use command::arg::*;
use command::{Acl, Arg, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::sorted_set::{self, read};
use crate::geo::{self, Place};
use crate::handler::runs;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    GEOADD,
    GEODIST,
    GEOHASH,
    GEOPOS,
    radius::GEORADIUS,
    radius::GEORADIUS_RO,
    radius::GEORADIUSBYMEMBER,
    radius::GEORADIUSBYMEMBER_RO,
    search::GEOSEARCH,
    search::GEOSEARCHSTORE,
];

/// Words that say what lengths are given in.
const UNIT: Arg = one_of("unit", &[flag("M"), flag("KM"), flag("FT"), flag("MI")]);

/// A place from two words: longitude and latitude.
fn place(longitude: &[u8], latitude: &[u8]) -> Result<Place, CommandError> {
    let number = |text| sorted_set::score(text).ok_or(CommandError::NotFloat);
    let (longitude, latitude) = (number(longitude)?, number(latitude)?);
    Place::new(longitude, latitude).ok_or_else(|| {
        CommandError::err(format!(
            "invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
        ))
    })
}

fn unit(word: &[u8]) -> Result<f64, CommandError> {
    geo::unit(word).ok_or(CommandError::text(
        "ERR unsupported unit provided. please use M, KM, FT, MI",
    ))
}

/// A length with four digits behind the point.
fn write_distance(out: &mut Writer<'_>, distance: f64) {
    if !distance.is_finite() {
        return out.text("nan");
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Half the globe at most.
    let parts = (distance * 10_000.0).round_ties_even() as u64;
    out.text(&format!("{}.{:04}", parts / 10_000, parts % 10_000));
}

fn write_place(out: &mut Writer<'_>, place: Place) {
    out.array(2);
    out.double(place.longitude);
    out.double(place.latitude);
}

const GEOADD: Command = Command {
    name: "geoadd",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Adds members with their places, or moves them.",
    complexity: "O(log(N))",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        one_of("condition", &[flag("NX"), flag("XX")])
            .since("6.2.0")
            .optional(),
        flag("CH").named("change").since("6.2.0").optional(),
        block(
            "data",
            &[double("longitude"), double("latitude"), string("member")],
        )
        .multiple(),
    ],
    reply: &[Shape::Int],
    history: &[("6.2.0", "Takes `CH`, `NX` and `XX`.")],
    ..runs(geoadd)
};

fn geoadd(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let mut options = sorted_set::Options::default();
    let mut first = 2;
    while first < args.len() {
        match () {
            () if args.is(first, "NX") => options.nx = true,
            () if args.is(first, "XX") => options.xx = true,
            () if args.is(first, "CH") => options.ch = true,
            () => break,
        }
        first += 1;
    }
    let words = args.len() - first;
    if !words.is_multiple_of(3) || options.nx && options.xx {
        return Err(CommandError::Syntax);
    }
    let score = |index| {
        let at = first + 3 * index;
        place(args.at(at), args.at(at + 1)).map(Place::score)
    };
    let member = |index| args.at(first + 2 + 3 * index);
    let tally = if words == 3 {
        sorted_set::put(cx, args.at(1), options, &[score(0)?], member)?
    } else {
        let scores = (0..words / 3).map(score).collect::<Result<Vec<_>, _>>()?;
        sorted_set::put(cx, args.at(1), options, &scores, member)?
    };
    out.count(tally.count(options));
    Ok(())
}

const GEODIST: Command = Command {
    name: "geodist",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Returns the distance between two members.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("member1"),
        string("member2"),
        UNIT.optional(),
    ],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(geodist)
};

fn geodist(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let unit = match args.len() {
        4 => 1.0,
        5 => unit(args.at(4))?,
        _ => return Err(CommandError::Syntax),
    };
    let terms = cx.terms();
    let distance = read(cx, args.at(1))?.and_then(|set| {
        let from = Place::from_score(set.score(terms, args.at(2))?);
        let to = Place::from_score(set.score(terms, args.at(3))?);
        Some(from.distance(to) / unit)
    });
    match distance {
        Some(distance) => write_distance(out, distance),
        None => out.null(),
    }
    Ok(())
}

const GEOHASH: Command = Command {
    name: "geohash",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Returns the places of members as geohashes.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member").optional().multiple()],
    reply: &[Shape::Array],
    ..runs(geohash)
};

fn geohash(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let set = read(cx, args.at(1))?;
    out.array(args.len() - 2);
    for member in args.from(2).iter() {
        match set.and_then(|set| set.score(terms, member)) {
            Some(score) => out.bulk(&Place::from_score(score).geohash()),
            None => out.null(),
        }
    }
    Ok(())
}

const GEOPOS: Command = Command {
    name: "geopos",
    group: Group::Geo,
    since: "3.2.0",
    summary: "Returns the longitudes and latitudes of members.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::GEO,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member").optional().multiple()],
    reply: &[Shape::Array],
    ..runs(geopos)
};

fn geopos(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let set = read(cx, args.at(1))?;
    out.array(args.len() - 2);
    for member in args.from(2).iter() {
        match set.and_then(|set| set.score(terms, member)) {
            Some(score) => write_place(out, Place::from_score(score)),
            None => out.null_array(),
        }
    }
    Ok(())
}
