//! Places on the Earth as scores of a sorted set.
//!
//! Longitude and latitude are cut into 2^26 steps each, and the bits of the two numbers alternate:
//! 52 bits, which a double holds exactly. The cells of a coarser grid are then ranges of scores, so
//! that a search is a few ranges of the set's tree. [`cell`] has the grid, [`search`] the shapes.
//!
//! Everything here is arithmetic whose last bit clients can see, in scores and in distances. It is
//! therefore written in the order in which Redis computes.
//!
//! # Invariants
//! - A place is within the bounds below: what clients send is checked, what scores say is clamped.

pub mod cell;
pub mod search;

use cell::{Cell, STEPS_MAX};

/// Metres from the centre of the Earth to its surface.
const EARTH_RADIUS: f64 = 6_372_797.560_856;
/// Degrees to either side of Greenwich.
const LONGITUDE_MAX: f64 = 180.0;
/// Degrees to either side of the equator: where the Web Mercator map is a square.
const LATITUDE_MAX: f64 = 85.051_128_78;
/// Digits of a geohash.
const DIGITS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// A place, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Positive in the east.
    pub longitude: f64,
    /// Positive in the north.
    pub latitude: f64,
}

impl Place {
    /// A place, if it is within the bounds.
    pub fn new(longitude: f64, latitude: f64) -> Option<Self> {
        let is_in = longitude.abs() <= LONGITUDE_MAX && latitude.abs() <= LATITUDE_MAX;
        is_in.then_some(Self {
            longitude,
            latitude,
        })
    }

    /// The middle of the cell that a score names. Any score names one.
    pub fn from_score(score: f64) -> Self {
        let middle = Cell::from_bits(bits_of(score)).area(LATITUDE_MAX).middle();
        Self {
            longitude: middle.longitude.clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
            latitude: middle.latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
        }
    }

    /// The score under which it is kept.
    #[allow(clippy::cast_precision_loss)] // At most 54 bits, the lowest of which are zero then.
    pub fn score(self) -> f64 {
        Cell::of(self, LATITUDE_MAX, STEPS_MAX).bits() as f64
    }

    /// The common geohash: eleven digits, on a grid up to the poles. Its last digit would need
    /// three bits more than there are, and is always zero.
    pub fn geohash(self) -> [u8; 11] {
        let bits = Cell::of(self, 90.0, STEPS_MAX).bits();
        let mut text = [DIGITS[0]; 11];
        for (index, digit) in text.iter_mut().take(10).enumerate() {
            *digit = DIGITS[(bits >> (47 - 5 * index) & 31) as usize];
        }
        text
    }

    /// Metres along the surface, by the haversine formula.
    pub fn distance(self, other: Self) -> f64 {
        let half = (radians(other.longitude) - radians(self.longitude)) / 2.0;
        let v = half.sin();
        if v == 0.0 {
            return latitude_distance(self.latitude, other.latitude);
        }
        let (from, to) = (radians(self.latitude), radians(other.latitude));
        let u = ((to - from) / 2.0).sin();
        let a = u * u + from.cos() * to.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }
}

/// A unit of length, as its metres.
pub fn unit(word: &[u8]) -> Option<f64> {
    match word.to_ascii_lowercase().as_slice() {
        b"m" => Some(1.0),
        b"km" => Some(1000.0),
        b"ft" => Some(0.3048),
        b"mi" => Some(1609.34),
        _ => None,
    }
}

fn latitude_distance(from: f64, to: f64) -> f64 {
    EARTH_RADIUS * (radians(to) - radians(from)).abs()
}

fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

/// The bits of a score. Scores that no place has are converted as x86-64 does it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // As said.
fn bits_of(score: f64) -> u64 {
    /// What does not fit becomes this.
    const NONE: u64 = 1 << 63;
    const NONE_AS_DOUBLE: f64 = 9_223_372_036_854_775_808.0;
    let signed = |value: f64| {
        if (-NONE_AS_DOUBLE..NONE_AS_DOUBLE).contains(&value) {
            (value as i64).cast_unsigned()
        } else {
            NONE
        }
    };
    if score < NONE_AS_DOUBLE {
        signed(score)
    } else {
        signed(score - NONE_AS_DOUBLE) ^ NONE
    }
}

#[cfg(test)]
mod tests;
