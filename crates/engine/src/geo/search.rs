//! Searching for places in a shape: which cells to look at, and which places are inside.
//!
//! The grid is chosen so that a cell is about as wide as the shape: the shape then lies in the cell
//! of its centre and the eight around it, of which those that it cannot reach are left out. Where
//! the map's distortion makes that untrue, the grid is one step coarser.
//!
//! # Invariants
//! - The cells come in a fixed order, which clients see where they ask for none.
//! - A cell is never looked at twice, though on the coarsest grids neighbours coincide.

use super::cell::{Area, Cell, STEPS_MAX};
use super::{EARTH_RADIUS, LATITUDE_MAX, Place, degrees, latitude_distance, radians};

/// Metres from the equator to where the map ends, near enough.
const MAP_METRES: f64 = 20_037_726.37;
/// Nearer to a pole than these degrees, cells become narrow.
const NARROW_FROM: f64 = 66.0;
const VERY_NARROW_FROM: f64 = 80.0;
/// A little more than 1: far more than arithmetic is off, far less than anyone minds.
const LOOSELY: f64 = 1.000_000_1;
/// East and north, in the order of the search.
const AROUND: [(i32, i32); 8] = [
    (0, 1),
    (0, -1),
    (1, 0),
    (-1, 0),
    (1, 1),
    (-1, 1),
    (1, -1),
    (-1, -1),
];

/// What places must lie in.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Everything up to a distance.
    Circle { radius: f64 },
    /// A rectangle that has the centre in its middle.
    Rectangle { width: f64, height: f64 },
    /// A polygon on the map, straight lines between its corners; at least three.
    Polygon(Vec<Place>),
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The middle of the shape; distances are from here.
    pub centre: Place,
    pub shape: Shape,
    /// Metres of the unit in which the shape's lengths are given.
    pub unit: f64,
}

impl Search {
    /// A search in a polygon: its centre is that of its corners on the globe.
    pub fn polygon(corners: Vec<Place>) -> Self {
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        for corner in &corners {
            let (longitude, latitude) = (radians(corner.longitude), radians(corner.latitude));
            x += latitude.cos() * longitude.cos();
            y += latitude.cos() * longitude.sin();
            z += latitude.sin();
        }
        let centre = Place {
            longitude: degrees(y.atan2(x)),
            latitude: degrees(z.atan2((x * x + y * y).sqrt())),
        };
        Self {
            centre,
            shape: Shape::Polygon(corners),
            unit: 1.0,
        }
    }

    /// Metres from the centre to a place, if it is inside.
    #[inline]
    pub fn distance(&self, place: Place) -> Option<f64> {
        match &self.shape {
            Shape::Circle { radius } => {
                let reach = radius * self.unit;
                // Most that are too far are so to the north or the south alone: a cheaper look,
                // which leaves what is near the edge to the exact one.
                let north = latitude_distance(place.latitude, self.centre.latitude);
                if north > reach * LOOSELY {
                    return None;
                }
                let distance = self.centre.distance(place);
                (distance <= reach).then_some(distance)
            }
            Shape::Rectangle { width, height } => {
                let north = latitude_distance(place.latitude, self.centre.latitude);
                if north > height * self.unit / 2.0 {
                    return None;
                }
                let foot = Place {
                    longitude: self.centre.longitude,
                    latitude: place.latitude,
                };
                let east = place.distance(foot);
                (east <= width * self.unit / 2.0).then(|| self.centre.distance(place))
            }
            Shape::Polygon(corners) => {
                is_within(corners, place).then(|| self.centre.distance(place))
            }
        }
    }

    /// The cells to look at, in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + use<> {
        let bounds = self.bounds();
        // A polygon around a pole may have its centre behind the end of the map.
        let centre = Place {
            latitude: self.centre.latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
            ..self.centre
        };
        let mut steps = steps_for(self.reach(), centre.latitude);
        let mut middle = Cell::of(centre, LATITUDE_MAX, steps);
        let edge = |middle: Cell, (east, north)| middle.neighbour(east, north).area(LATITUDE_MAX);
        let too_small = edge(middle, (0, 1)).north < bounds.north
            || edge(middle, (0, -1)).south > bounds.south
            || edge(middle, (1, 0)).east < bounds.east
            || edge(middle, (-1, 0)).west > bounds.west;
        if steps > 1 && too_small {
            steps -= 1;
            middle = Cell::of(centre, LATITUDE_MAX, steps);
        }
        let area = middle.area(LATITUDE_MAX);
        let reaches = move |(east, north): (i32, i32)| {
            let south_is_out = area.south < bounds.south && north < 0;
            let north_is_out = area.north > bounds.north && north > 0;
            let west_is_out = area.west < bounds.west && east < 0;
            let east_is_out = area.east > bounds.east && east > 0;
            steps < 2 || !(south_is_out || north_is_out || west_is_out || east_is_out)
        };
        let around = AROUND.into_iter().filter(move |side| reaches(*side));
        let around = around.map(move |(east, north)| middle.neighbour(east, north));
        let mut last = None;
        std::iter::once(middle)
            .chain(around)
            .filter(move |cell| last.replace(*cell) != Some(*cell))
    }

    /// About how many metres the shape reaches from its centre.
    fn reach(&self) -> f64 {
        match &self.shape {
            Shape::Circle { radius } => radius * self.unit,
            Shape::Rectangle { width, height } => {
                (width / 2.0 * (width / 2.0) + height / 2.0 * (height / 2.0)).sqrt() * self.unit
            }
            Shape::Polygon(corners) => {
                let bounds = bounds_of(corners);
                let ends = [
                    (bounds.west, bounds.south),
                    (bounds.west, bounds.north),
                    (bounds.east, bounds.south),
                    (bounds.east, bounds.north),
                ];
                let far = ends.map(|(longitude, latitude)| {
                    self.centre.distance(Place {
                        longitude,
                        latitude,
                    })
                });
                far.into_iter().fold(0.0, f64::max)
            }
        }
    }

    /// The degrees within which the shape lies.
    fn bounds(&self) -> Area {
        let (width, height) = match &self.shape {
            Shape::Circle { radius } => (self.unit * radius, self.unit * radius),
            Shape::Rectangle { width, height } => {
                (self.unit * (width / 2.0), self.unit * (height / 2.0))
            }
            Shape::Polygon(corners) => return bounds_of(corners),
        };
        let Place {
            longitude,
            latitude,
        } = self.centre;
        let up = degrees(height / EARTH_RADIUS);
        // The side nearer to a pole spans more degrees.
        let nearer = if latitude < 0.0 {
            latitude - up
        } else {
            latitude + up
        };
        let aside = degrees(width / EARTH_RADIUS / radians(nearer).cos());
        Area {
            west: longitude - aside,
            east: longitude + aside,
            south: latitude - up,
            north: latitude + up,
        }
    }
}

/// The steps of the grid whose cells are about `reach` metres wide.
fn steps_for(reach: f64, latitude: f64) -> u32 {
    if reach == 0.0 {
        return STEPS_MAX;
    }
    let (mut steps, mut reach) = (1i32, reach);
    while reach < MAP_METRES {
        reach *= 2.0;
        steps += 1;
    }
    steps -= 2;
    steps -= i32::from(latitude.abs() > NARROW_FROM);
    steps -= i32::from(latitude.abs() > VERY_NARROW_FROM);
    steps.clamp(1, 26).unsigned_abs()
}

fn bounds_of(corners: &[Place]) -> Area {
    let start = Area {
        west: f64::INFINITY,
        east: f64::NEG_INFINITY,
        south: f64::INFINITY,
        north: f64::NEG_INFINITY,
    };
    corners.iter().fold(start, |area, corner| Area {
        west: area.west.min(corner.longitude),
        east: area.east.max(corner.longitude),
        south: area.south.min(corner.latitude),
        north: area.north.max(corner.latitude),
    })
}

/// Whether a ray from the place to the east crosses the polygon's sides an odd number of times.
fn is_within(corners: &[Place], place: Place) -> bool {
    let mut inside = false;
    let Some(mut from) = corners.last() else {
        return false;
    };
    for to in corners {
        let crosses = (to.latitude > place.latitude) != (from.latitude > place.latitude);
        if crosses {
            let part = (place.latitude - to.latitude) / (from.latitude - to.latitude);
            let at = (from.longitude - to.longitude) * part + to.longitude;
            inside ^= place.longitude < at;
        }
        from = to;
    }
    inside
}
