//! How much one chunk of a list may hold: Redis's `list-max-listpack-size`.

use super::chunk::{Chunk, Room};
use crate::listpack::FRAME;

/// The most bytes of a chunk whose limit is a number of items.
const SAFETY_BYTES: u32 = 8192;

/// The limit of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The most bytes, as a listpack.
    bytes: u32,
    /// The most items, where the setting tells a number of items.
    items: Option<u16>,
}

impl Limit {
    /// The limit that a `list-max-listpack-size` means: -1 to -5 are 4, 8, 16, 32 and 64 KiB, what
    /// lies below counts as -5, a positive number is one of items, and 0 counts as 1.
    pub const fn new(setting: i64) -> Limit {
        match setting {
            1.. => {
                let most = i16::MAX as i64;
                let items = if setting < most { setting } else { most };
                Limit {
                    bytes: SAFETY_BYTES,
                    items: Some(items as u16),
                }
            }
            0 => Limit {
                bytes: SAFETY_BYTES,
                items: Some(1),
            },
            -4..=-1 => Limit {
                bytes: 2048 << -setting,
                items: None,
            },
            _ => Limit {
                bytes: 65536,
                items: None,
            },
        }
    }

    /// Whether a chunk may hold so much.
    #[inline]
    pub(super) fn fits(self, bytes: usize, items: usize) -> bool {
        bytes <= self.bytes as usize && self.items.is_none_or(|most| items <= usize::from(most))
    }

    /// Whether a chunk holds so little that a list of it alone takes the small form again. Redis
    /// looks at the number of items only, where that is the limit.
    #[inline]
    pub(super) fn fits_half(self, bytes: usize, items: usize) -> bool {
        match self.items {
            Some(most) => items <= usize::from(most / 2),
            None => bytes <= self.bytes as usize / 2,
        }
    }

    /// Whether an item of `len` bytes gets a chunk of its own.
    #[inline]
    pub(super) fn is_plain(self, len: usize) -> bool {
        len > self.bytes as usize
    }

    /// Whether `chunk` can take another entry of `len` bytes.
    #[inline]
    pub(super) fn takes(self, chunk: &Chunk, len: usize) -> bool {
        !chunk.is_plain() && self.fits(chunk.byte_len() + len, chunk.count() + 1)
    }

    /// Whether one chunk can hold what both hold.
    #[inline]
    pub(super) fn takes_all(self, left: &Chunk, right: &Chunk) -> bool {
        let bytes = left.byte_len() + right.byte_len() - FRAME;
        !left.is_plain() && !right.is_plain() && self.fits(bytes, left.count() + right.count())
    }

    /// The room to make in a chunk at an end of a long list.
    #[inline]
    pub(super) fn room(self) -> Room {
        Room::Wide(self.bytes as usize - FRAME)
    }
}

impl Default for Limit {
    /// Redis's default, -2.
    fn default() -> Limit {
        Limit::new(-2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_mean_what_redis_means() {
        for (setting, bytes, items) in [
            (-1, 4096, None),
            (-2, 8192, None),
            (-3, 16384, None),
            (-4, 32768, None),
            (-5, 65536, None),
            (-6, 65536, None),
            (i64::MIN, 65536, None),
            (0, 8192, Some(1)),
            (1, 8192, Some(1)),
            (128, 8192, Some(128)),
            (i64::MAX, 8192, Some(32767)),
        ] {
            assert_eq!(Limit::new(setting), Limit { bytes, items }, "{setting}");
        }
    }
}
