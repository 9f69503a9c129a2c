//! `--lru-test`: the server as a cache, some keys of which are asked for much more often.

use super::distribution::{all_at_once, percent};
use crate::command::{Repeat, refused};
use crate::options::{Options, leading_integer};
use crate::out::{Failure, Outcome, put};
use crate::session::Session;
use crate::wait;
use client::Reply;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

/// GETs that are sent at once.
const AT_ONCE: u64 = 250;
/// What a miss is filled with.
const VALUE: &[u8] = b"val:0123456789012345678901234567";
/// Of all requests, 80% go to 20% of the keys, of those again, and so on.
const EXPONENT: f64 = 7.21;

/// Asks, fills what is missing, and prints a line a second.
pub fn run(session: &mut Session, options: &Options) -> Outcome {
    let keys = options.lru_test.as_deref().map_or(0, leading_integer);
    let keys = u64::try_from(keys).ok().filter(|keys| *keys > 0);
    let keys = keys.ok_or_else(|| Failure::Line("--lru-test wants a number of keys".to_owned()))?;
    let times = options.repeat.as_ref().and(Repeat::new(options).times);
    let mut random = RandomState::new().build_hasher().finish() | 1;
    let mut lines = 0;
    while times.is_none_or(|times| lines < times) {
        let (mut hits, mut misses) = (0_u64, 0_u64);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(1) {
            let names: Vec<String> = (0..AT_ONCE)
                .map(|_| format!("lru:{}", skewed(&mut random, keys)))
                .collect();
            let gets: Vec<Vec<&[u8]>> = names
                .iter()
                .map(|name| vec![b"GET".as_slice(), name.as_bytes()])
                .collect();
            let replies = all_at_once(session, &gets)?;
            let mut sets: Vec<Vec<&[u8]>> = Vec::new();
            for (name, reply) in names.iter().zip(&replies) {
                match reply {
                    Reply::Error(_) => return Err(refused(reply)),
                    reply if reply.is_null() => {
                        misses += 1;
                        sets.push(vec![b"SET", name.as_bytes(), VALUE]);
                    }
                    _ => hits += 1,
                }
            }
            for reply in all_at_once(session, &sets)? {
                if reply.is_error() {
                    return Err(refused(&reply));
                }
            }
            if wait::interrupted() {
                return Ok(());
            }
        }
        let total = hits + misses;
        put(format!(
            "{total} Gets/sec | Hits: {hits} ({:.2}%) | Misses: {misses} ({:.2}%)\n",
            percent(hits, total),
            percent(misses, total),
        ));
        lines += 1;
    }
    Ok(())
}

/// A key below `keys`, small ones much more often.
fn skewed(state: &mut u64, keys: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let uniform = (*state >> 11) as f64 / (1_u64 << 53) as f64;
    let place = uniform.powf(EXPONENT) * keys as f64;
    (place as u64).min(keys - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_keys_gets_most_of_the_requests() {
        let mut state = 0x1234_5678_9abc_def1;
        let first = (0..10_000)
            .filter(|_| skewed(&mut state, 1000) < 200)
            .count();
        assert!((7_000..9_000).contains(&first), "{first}");
    }
}
