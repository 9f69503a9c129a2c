//! The 24 bits in which each record keeps how it is used: what eviction goes by, OBJECT IDLETIME
//! and OBJECT FREQ tell, and files hold.
//!
//! With most policies they are the second of the last use. With an LFU policy they are Redis's: the
//! minute in which the counter was aged last (16 bits), and a logarithmic counter (8 bits).
//!
//! # Invariants
//! - Seconds and minutes each count round their own bits: neither is made from what is left of the
//!   other, which would jump.

/// All bits of a second.
const SECONDS: u32 = 0xff_ffff;
/// A new key's counter, so that it is not evicted at once.
const FREQUENCY_START: u32 = 5;

/// The second, as access bits hold it.
#[allow(clippy::cast_possible_truncation)] // 24 bits are kept.
#[inline]
pub fn seconds(now_ms: u64) -> u32 {
    (now_ms / 1000) as u32 & SECONDS
}

/// The minute, as access bits hold it.
#[allow(clippy::cast_possible_truncation)] // 16 bits are kept.
#[inline]
pub fn minute(now_ms: u64) -> u32 {
    (now_ms / 60_000) as u32 & 0xffff
}

/// How a use changes a record's access bits.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Not at all.
    Leave,
    /// They hold the seconds of the last use.
    Last(u32),
    /// They hold the minute of the last ageing (16 bits) and a logarithmic counter (8 bits).
    Frequency {
        /// The minute now.
        minute: u32,
        /// Random bits.
        draw: u64,
        /// `lfu-log-factor`.
        log_factor: u32,
        /// `lfu-decay-time`.
        decay_minutes: u32,
    },
}

impl Access {
    /// The bits of a key of which nothing is known, where frequencies are counted.
    pub const fn fresh_frequency(minute: u32) -> u32 {
        minute << 8 | FREQUENCY_START
    }

    /// The new bits.
    #[inline]
    pub fn apply(self, old: u32) -> u32 {
        match self {
            Self::Leave => old,
            Self::Last(seconds) => seconds,
            Self::Frequency {
                minute,
                draw,
                log_factor,
                decay_minutes,
            } => {
                let counter = aged(old, minute, decay_minutes);
                let base = counter.saturating_sub(FREQUENCY_START);
                let odds = u64::from(base) * u64::from(log_factor) + 1;
                let more = counter < 255 && draw % odds == 0;
                minute << 8 | (counter + u32::from(more))
            }
        }
    }
}

/// The bits of a key that was used `idle_s` seconds ago, where times of use are kept. What is
/// longer ago than they can say is as long ago as they can say.
pub fn idle(now_ms: u64, idle_s: u64) -> u32 {
    #[allow(clippy::cast_possible_truncation)] // It has 24 bits.
    let idle_s = idle_s.min(u64::from(SECONDS)) as u32;
    seconds(now_ms).wrapping_sub(idle_s) & SECONDS
}

/// The counter of an LFU record as it stands at `minute`.
pub fn aged(bits: u32, minute: u32, decay_minutes: u32) -> u32 {
    let (then, counter) = (bits >> 8, bits & 0xff);
    let passed = minute.wrapping_sub(then) & 0xffff;
    match passed.checked_div(decay_minutes) {
        Some(periods) => counter.saturating_sub(periods),
        None => counter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_lasts_over_the_wrap_of_the_seconds() {
        // The last second that 24 bits can say, and the minute after it.
        let before_ms = (1 << 24) * 106 * 1000 - 1000;
        let bits = minute(before_ms) << 8 | 200;
        let after_ms = before_ms + 60_000;
        assert!(seconds(after_ms) < seconds(before_ms));
        assert_eq!(aged(bits, minute(before_ms), 1), 200);
        assert_eq!(aged(bits, minute(after_ms), 1), 199);
    }

    #[test]
    fn idle_times_are_kept_as_far_as_they_fit() {
        let now_ms = 1_790_000_000_000;
        for (idle_s, kept) in [
            (0, 0),
            (1000, 1000),
            (1 << 24, SECONDS),
            (u64::MAX, SECONDS),
        ] {
            let bits = idle(now_ms, idle_s);
            assert_eq!(seconds(now_ms).wrapping_sub(bits) & SECONDS, kept);
        }
    }
}
