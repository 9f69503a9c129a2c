//! Grids of cells, each grid twice as fine as the one before, and the scores in a cell.

use std::ops::Range;

use super::{LONGITUDE_MAX, Place};

/// The finest grid has 2^26 rows and columns.
pub const STEPS_MAX: u32 = 26;

/// One cell of the grid with `2^steps` rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// From the west; one past the last column for what lies on the eastern edge.
    column: u32,
    /// From the south; one past the last row for what lies on the northern edge.
    row: u32,
    steps: u32,
}

/// A rectangle of degrees.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub west: f64,
    pub east: f64,
    pub south: f64,
    pub north: f64,
}

impl Area {
    /// Its middle.
    pub fn middle(self) -> Place {
        Place {
            longitude: (self.west + self.east) / 2.0,
            latitude: (self.south + self.north) / 2.0,
        }
    }
}

impl Cell {
    /// The cell that a place lies in, on a map that ends at `latitude_max`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 2^26.
    pub fn of(place: Place, latitude_max: f64, steps: u32) -> Self {
        let count = f64::from(1u32 << steps);
        let part = |degrees: f64, max: f64| ((degrees + max) / (max + max) * count) as u32;
        Self {
            column: part(place.longitude, LONGITUDE_MAX),
            row: part(place.latitude, latitude_max),
            steps,
        }
    }

    /// The cell of the finest grid that has these bits.
    pub fn from_bits(bits: u64) -> Self {
        Self {
            column: gather(bits >> 1),
            row: gather(bits),
            steps: STEPS_MAX,
        }
    }

    /// Rows and columns in alternating bits, the row's first.
    pub fn bits(self) -> u64 {
        spread(self.row) | spread(self.column) << 1
    }

    /// The scores in the cell, the last one not included.
    #[allow(clippy::cast_precision_loss)] // Exact: the lowest bits are zero.
    pub fn scores(self) -> Range<f64> {
        let shift = 2 * (STEPS_MAX - self.steps);
        let bits = self.bits();
        (bits << shift) as f64..((bits + 1) << shift) as f64
    }

    /// The degrees that it covers, on a map that ends at `latitude_max`.
    pub fn area(self, latitude_max: f64) -> Area {
        let count = f64::from(1u32 << self.steps);
        let edge = |index: f64, max: f64| -max + (index / count) * (max + max);
        let (column, row) = (f64::from(self.column), f64::from(self.row));
        Area {
            west: edge(column, LONGITUDE_MAX),
            east: edge(column + 1.0, LONGITUDE_MAX),
            south: edge(row, latitude_max),
            north: edge(row + 1.0, latitude_max),
        }
    }

    /// The cell so many columns to the east and rows to the north, each -1, 0 or 1. Behind the
    /// last one comes the first.
    pub fn neighbour(self, east: i32, north: i32) -> Self {
        let mask = (1u32 << self.steps) - 1;
        let moved = |index: u32, by: i32| match by {
            0 => index,
            by => index.wrapping_add_signed(by) & mask,
        };
        Self {
            column: moved(self.column, east),
            row: moved(self.row, north),
            steps: self.steps,
        }
    }
}

/// Puts a zero in front of each bit.
fn spread(value: u32) -> u64 {
    let mut bits = u64::from(value);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}

/// Takes every second bit, from the lowest on.
#[allow(clippy::cast_possible_truncation)] // 32 bits are left.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}
