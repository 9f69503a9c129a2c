//! The one hash function of the project: seeded rapidhash.
//!
//! Every table takes hashes from its caller and never computes the first one itself, so a key is
//! hashed once a request. What hashes is here, so that the keyspace and the collections agree.
//!
//! # Invariants
//! - A [`Seed`] never changes while a table built with it lives.
//! - Both the seed and the secrets of the function are drawn from the 128 bits given to
//!   [`Seed::new`]: with the published secrets, colliding keys can be made for any seed.
//!
//! # Why not SipHash?
//! It is the conservative answer to hash flooding, and costs three times as much on the 16-byte
//! keys that we serve most. Tables here also bound their own damage: however bad the hash, a
//! lookup stays correct, and only the keys that collide are slow.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// The secret state that makes hashes unpredictable to a client.
#[derive(Clone, Copy)]
pub struct Seed(RapidSecrets);

impl Seed {
    /// Derives seed and secrets from 128 random bits.
    #[must_use]
    pub const fn new(random: [u64; 2]) -> Self {
        let mut secrets = RapidSecrets::seed(random[0]);
        secrets.seed = RapidSecrets::seed(random[1] ^ secrets.seed).seed;
        Self(secrets)
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// The hash of `bytes`: all 64 bits are usable, the high ones as much as the low ones.
#[inline]
#[must_use]
pub fn hash(seed: &Seed, bytes: &[u8]) -> u64 {
    rapidhash_v3_inline::<true, false, false>(bytes, &seed.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_the_seed_changes_the_hash() {
        let key = b"user:1000";
        let base = hash(&Seed::new([1, 2]), key);
        assert_eq!(base, hash(&Seed::new([1, 2]), key));
        assert_ne!(base, hash(&Seed::new([2, 2]), key));
        assert_ne!(base, hash(&Seed::new([1, 3]), key));
    }

    #[test]
    fn high_and_low_bits_are_spread_evenly() {
        let seed = Seed::new([7, 11]);
        let (mut high, mut low) = ([0u32; 256], [0u32; 256]);
        for i in 0..65_536u32 {
            let h = hash(&seed, &i.to_le_bytes());
            high[(h >> 56) as usize] += 1;
            low[(h & 255) as usize] += 1;
        }
        for counts in [high, low] {
            let chi: f64 = counts
                .iter()
                .map(|&c| (f64::from(c) - 256.0).powi(2) / 256.0)
                .sum();
            assert!(chi < 350.0, "chi-square {chi} for 255 degrees of freedom");
        }
    }
}
