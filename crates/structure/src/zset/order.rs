//! The order of a sorted set: by score, then by the member's bytes.

use super::store::MemberStore;

/// An integer that orders as `score` does. The two zeros are equal; NaN has no place.
#[inline]
pub(crate) fn order_key(score: f64) -> u64 {
    debug_assert!(!score.is_nan());
    if score == 0.0 {
        return 1 << 63;
    }
    let bits = score.to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

/// A place between two neighbours of the order. What stands before it is "below" it.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) key: u64,
    pub(crate) edge: Edge<'a>,
}

/// Where a [`Probe`] stands among the members of its score.
#[derive(Clone, Copy)]
pub(crate) enum Edge<'a> {
    /// Before them all.
    Start,
    Before(&'a [u8]),
    After(&'a [u8]),
    /// After them all.
    End,
}

impl Probe<'_> {
    /// Whether the record `at`, whose key is the probe's, is below it.
    #[inline]
    pub(crate) fn above_equal(&self, store: &MemberStore, at: u32) -> bool {
        match self.edge {
            Edge::Start => false,
            Edge::Before(member) => store.member(at) < member,
            Edge::After(member) => store.member(at) <= member,
            Edge::End => true,
        }
    }

    /// Whether the record `at` is below the probe.
    #[inline]
    pub(crate) fn above(&self, store: &MemberStore, at: u32) -> bool {
        let key = order_key(store.score(at));
        key < self.key || (key == self.key && self.above_equal(store, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_scores_do() {
        let scores = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -1.0,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            f64::MIN_POSITIVE,
            1.0,
            1.0 + f64::EPSILON,
            f64::MAX,
            f64::INFINITY,
        ];
        assert!(scores.is_sorted_by(|a, b| order_key(*a) < order_key(*b)));
        assert_eq!(order_key(0.0), order_key(-0.0));
    }
}
