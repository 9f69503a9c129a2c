//! What all searches share: reading the options, finding, ordering, replying and storing.
//!
//! # Invariants
//! - The source is looked up, and its type checked, before any other word is read.
//! - Where no order is asked for, members come in the order of the cells that were searched; equal
//!   distances keep that order.
//! - With COUNT those come that are first in the order, by default the nearest; with ANY the first
//!   that are found.

use std::ops::ControlFlow;

use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::listpack::Entry;

use super::{place, unit, write_distance, write_place};
use crate::commands::sorted_set::{read, score, store};
use crate::geo::Place;
use crate::geo::search::{Search, Shape};
use crate::number;
use crate::object::{SortedSet, Terms, write_entry};
use crate::{CommandError, Context};

/// What a command's name says about the search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// GEORADIUS: centre and radius come first. It may store the result.
    Radius { may_store: bool },
    /// GEORADIUSBYMEMBER: a member and the radius come first.
    RadiusByMember { may_store: bool },
    /// GEOSEARCH: all comes as options.
    Search,
    /// GEOSEARCHSTORE: the destination stands before the source.
    SearchStore,
}

impl Kind {
    fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::SearchStore)
    }

    fn may_name_store(self) -> bool {
        let may_store = true;
        self == Self::Radius { may_store } || self == Self::RadiusByMember { may_store }
    }

    /// Where the source's key stands.
    fn source_at(self) -> usize {
        if self == Self::SearchStore { 2 } else { 1 }
    }

    fn event(self) -> &'static str {
        if self == Self::SearchStore {
            "geosearchstore"
        } else {
            "georadiusstore"
        }
    }
}

/// Where distances are from, as far as it is known.
#[derive(Clone, Copy)]
enum Centre {
    /// Not said yet.
    None,
    /// A member, and its place unless there is no such key.
    Member(Option<Place>),
    Place(Place),
}

/// A shape with the metres of its unit.
type Measured = (Shape, f64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    Nearest,
    Farthest,
}

/// All that a call asks for.
struct Query<'a> {
    centre: Centre,
    shape: Option<Measured>,
    order: Order,
    /// The most members that are wanted.
    count: Option<usize>,
    any: bool,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    destination: Option<&'a [u8]>,
    store_distance: bool,
}

/// A member that was found, and its distance in metres.
struct Hit<'c> {
    member: Entry<'c>,
    score: f64,
    distance: f64,
    /// How many were found before.
    found: usize,
}

/// A command of this family, whole.
pub(super) fn run(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    kind: Kind,
) -> Result<(), CommandError> {
    let terms = cx.terms();
    let source = read(cx, args.at(kind.source_at()))?;
    let query = Query::parse(args, kind, source, terms)?;
    let (Some(set), Some(search)) = (source, query.search()) else {
        match query.destination {
            Some(key) => store(cx, key, SortedSet::default(), kind.event(), out),
            None => out.array(0),
        }
        return Ok(());
    };
    let hits = query.find(set, &search);
    match query.destination {
        Some(key) => {
            let result = query.collect(&hits, &search, terms);
            drop(hits);
            store(cx, key, result, kind.event(), out);
        }
        None => query.reply(&hits, &search, out),
    }
    Ok(())
}

impl<'a> Query<'a> {
    fn parse(
        args: Args<'a>,
        kind: Kind,
        source: Option<&SortedSet>,
        terms: Terms<'_>,
    ) -> Result<Self, CommandError> {
        let mut query = Self {
            centre: Centre::None,
            shape: None,
            order: Order::None,
            count: None,
            any: false,
            with_distance: false,
            with_hash: false,
            with_place: false,
            destination: (kind == Kind::SearchStore).then(|| args.at(1)),
            store_distance: false,
        };
        let mut at = match kind {
            Kind::Radius { .. } => {
                query.centre = Centre::Place(place(args.at(2), args.at(3))?);
                query.shape = Some(circle(args.at(4), args.at(5))?);
                6
            }
            Kind::RadiusByMember { .. } => {
                query.centre = Centre::Member(place_of(source, args.at(2), terms)?);
                if source.is_some() {
                    query.shape = Some(circle(args.at(3), args.at(4))?);
                }
                5
            }
            Kind::Search => 2,
            Kind::SearchStore => 3,
        };
        while at < args.len() {
            at += match query.flag(args, at, kind) {
                Some(taken) => taken,
                None if kind.is_search() => query.area(args, at, source, terms),
                None => return Err(CommandError::Syntax),
            }?;
        }
        query.check(args, kind)?;
        Ok(query)
    }

    /// Reads an option that says what to do with what is found: how many words it takes.
    fn flag(
        &mut self,
        args: Args<'a>,
        at: usize,
        kind: Kind,
    ) -> Option<Result<usize, CommandError>> {
        let is = |word| args.is(at, word);
        let next = args.get(at + 1);
        match () {
            () if is("WITHDIST") => self.with_distance = true,
            () if is("WITHHASH") => self.with_hash = true,
            () if is("WITHCOORD") => self.with_place = true,
            () if is("ANY") => self.any = true,
            () if is("ASC") => self.order = Order::Nearest,
            () if is("DESC") => self.order = Order::Farthest,
            () if is("STOREDIST") && kind == Kind::SearchStore => self.store_distance = true,
            () if is("COUNT") => {
                let count = number::int(next?);
                return Some(count.and_then(|count| {
                    let count = usize::try_from(count).ok().filter(|count| *count > 0);
                    self.count = Some(count.ok_or("ERR COUNT must be > 0")?);
                    Ok(2)
                }));
            }
            () if kind.may_name_store() && (is("STORE") || is("STOREDIST")) => {
                self.destination = Some(next?);
                self.store_distance = is("STOREDIST");
                return Some(Ok(2));
            }
            () => return None,
        }
        Some(Ok(1))
    }
    /// Reads an option that says where to search: how many words it takes.
    fn area(
        &mut self,
        args: Args<'a>,
        at: usize,
        source: Option<&SortedSet>,
        terms: Terms<'_>,
    ) -> Result<usize, CommandError> {
        let is = |word, more| args.is(at, word) && at + more < args.len();
        let is_polygon = matches!(self.shape, Some((Shape::Polygon(_), _)));
        let may_be =
            |other: fn(&Shape) -> bool| self.shape.as_ref().is_none_or(|(shape, _)| other(shape));
        match self.centre {
            Centre::None | Centre::Member(_) if is("FROMMEMBER", 1) && !is_polygon => {
                self.centre = Centre::Member(place_of(source, args.at(at + 1), terms)?);
                Ok(2)
            }
            Centre::None | Centre::Place(_) if is("FROMLONLAT", 2) && !is_polygon => {
                self.centre = Centre::Place(place(args.at(at + 1), args.at(at + 2))?);
                Ok(3)
            }
            _ if is("BYRADIUS", 2) && may_be(|shape| matches!(shape, Shape::Circle { .. })) => {
                self.shape = Some(circle(args.at(at + 1), args.at(at + 2))?);
                Ok(3)
            }
            _ if is("BYBOX", 3) && may_be(|shape| matches!(shape, Shape::Rectangle { .. })) => {
                self.shape = Some(rectangle(
                    args.at(at + 1),
                    args.at(at + 2),
                    args.at(at + 3),
                )?);
                Ok(4)
            }
            Centre::None
                if is("BYPOLYGON", 2) && may_be(|shape| matches!(shape, Shape::Polygon(_))) =>
            {
                let corners = polygon(args, at + 1)?;
                let taken = 2 + 2 * corners.len();
                self.shape = Some((Shape::Polygon(corners), 1.0));
                Ok(taken)
            }
            _ => Err(CommandError::Syntax),
        }
    }

    /// What must hold when all words are read.
    fn check(&self, args: Args<'_>, kind: Kind) -> Result<(), CommandError> {
        if self.destination.is_some() && (self.with_distance || self.with_hash || self.with_place) {
            let what = match kind {
                Kind::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(CommandError::err(format!(
                "{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let is_polygon = matches!(self.shape, Some((Shape::Polygon(_), _)));
        let missing = if !kind.is_search() {
            None
        } else if matches!(self.centre, Centre::None) && !is_polygon {
            Some("FROMMEMBER or FROMLONLAT")
        } else if self.shape.is_none() {
            Some("BYRADIUS and BYBOX")
        } else {
            None
        };
        if let Some(missing) = missing {
            let name = String::from_utf8_lossy(args.at(0));
            return Err(CommandError::err(format!(
                "exactly one of {missing} can be specified for {name}"
            )));
        }
        if self.any && self.count.is_none() {
            return Err("ERR the ANY argument requires COUNT argument".into());
        }
        Ok(())
    }

    /// The search, if there is something to search in.
    fn search(&self) -> Option<Search> {
        match (self.shape.clone()?, self.centre) {
            ((Shape::Polygon(corners), _), _) => Some(Search::polygon(corners)),
            ((shape, unit), Centre::Place(centre) | Centre::Member(Some(centre))) => Some(Search {
                centre,
                shape,
                unit,
            }),
            _ => None,
        }
    }

    fn find<'c>(&self, set: &'c SortedSet, search: &Search) -> Vec<Hit<'c>> {
        let enough = if self.any { self.count } else { None };
        let mut hits: Vec<Hit<'c>> = Vec::new();
        for cell in search.cells() {
            let flow = set.each_by_score(cell.scores(), |member, score| {
                if let Some(distance) = search.distance(Place::from_score(score)) {
                    let found = hits.len();
                    hits.push(Hit {
                        member,
                        score,
                        distance,
                        found,
                    });
                }
                if enough == Some(hits.len()) {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            if flow.is_break() {
                break;
            }
        }
        self.sort(&mut hits);
        hits
    }

    fn sort(&self, hits: &mut Vec<Hit<'_>>) {
        let order = match self.order {
            Order::None if self.count.is_some() && !self.any => Order::Nearest,
            order => order,
        };
        let compare = |a: &Hit<'_>, b: &Hit<'_>| {
            let by_distance = match order {
                Order::None => std::cmp::Ordering::Equal,
                Order::Nearest => a.distance.total_cmp(&b.distance),
                Order::Farthest => b.distance.total_cmp(&a.distance),
            };
            by_distance.then(a.found.cmp(&b.found))
        };
        if let Some(count) = self.count.filter(|count| *count < hits.len()) {
            hits.select_nth_unstable_by(count, compare);
            hits.truncate(count);
        }
        if order != Order::None {
            hits.sort_unstable_by(compare);
        }
    }

    /// What is stored: the members' own scores, or their distances.
    fn collect(&self, hits: &[Hit<'_>], search: &Search, terms: Terms<'_>) -> SortedSet {
        let mut result = SortedSet::default();
        for hit in hits {
            let score = if self.store_distance {
                hit.distance / search.unit
            } else {
                hit.score
            };
            result.insert(terms, hit.member.bytes(&mut [0; TEXT_MAX]), score);
        }
        result
    }

    fn reply(&self, hits: &[Hit<'_>], search: &Search, out: &mut Writer<'_>) {
        let wanted = [self.with_distance, self.with_hash, self.with_place];
        let more = wanted.iter().filter(|with| **with).count();
        out.array(hits.len());
        for hit in hits {
            if more > 0 {
                out.array(1 + more);
            }
            write_entry(out, hit.member);
            if self.with_distance {
                write_distance(out, hit.distance / search.unit);
            }
            if self.with_hash {
                #[allow(clippy::cast_possible_truncation)] // Within the cells: below 2^54.
                out.int(hit.score as i64);
            }
            if self.with_place {
                write_place(out, Place::from_score(hit.score));
            }
        }
    }
}

/// The place of a member; `None` where there is no such key.
fn place_of(
    source: Option<&SortedSet>,
    member: &[u8],
    terms: Terms<'_>,
) -> Result<Option<Place>, CommandError> {
    let Some(set) = source else {
        return Ok(None);
    };
    match set.score(terms, member) {
        Some(score) => Ok(Some(Place::from_score(score))),
        None => Err("ERR could not decode requested zset member".into()),
    }
}

fn circle(radius: &[u8], unit_word: &[u8]) -> Result<Measured, CommandError> {
    let radius = score(radius).ok_or(CommandError::text("ERR need numeric radius"))?;
    if radius < 0.0 {
        return Err("ERR radius cannot be negative".into());
    }
    Ok((Shape::Circle { radius }, unit(unit_word)?))
}

fn rectangle(width: &[u8], height: &[u8], unit_word: &[u8]) -> Result<Measured, CommandError> {
    let width = score(width).ok_or(CommandError::text("ERR need numeric width"))?;
    let height = score(height).ok_or(CommandError::text("ERR need numeric height"))?;
    if width < 0.0 || height < 0.0 {
        return Err("ERR height or width cannot be negative".into());
    }
    Ok((Shape::Rectangle { width, height }, unit(unit_word)?))
}

/// The corners whose number stands at word `at`.
fn polygon(args: Args<'_>, at: usize) -> Result<Vec<Place>, CommandError> {
    let count = number::int(args.at(at))
        .ok()
        .and_then(|count| i32::try_from(count).ok());
    let count = count.ok_or(CommandError::text("ERR invalid number of vertices"))?;
    let count = usize::try_from(count).unwrap_or(0);
    if count < 3 || count > (args.len() - at - 1) / 2 {
        return Err("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices".into());
    }
    let corner = |index| place(args.at(at + 1 + 2 * index), args.at(at + 2 + 2 * index));
    (0..count).map(corner).collect()
}
