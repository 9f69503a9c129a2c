//! The sorted set against a sorted `Vec`.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use structure::hash::{Seed, hash};
use structure::zset::{LexBound, ScoreBound, SortedSet};

/// Few scores, so that members meet, and the odd ones among them.
fn score(input: &mut Input<'_>) -> f64 {
    match input.byte() {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => -0.0,
        3 => 5e-324,
        4..64 => input.integer() as f64,
        small => f64::from(small % 8) / 2.0,
    }
}

fn order(a: &(f64, Vec<u8>), b: &(f64, Vec<u8>)) -> std::cmp::Ordering {
    a.0.partial_cmp(&b.0)
        .expect("no score is NaN")
        .then_with(|| a.1.cmp(&b.1))
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let seed = Seed::new([5, 6]);
    let hasher = |member: &[u8]| hash(&seed, member);
    let mut set = SortedSet::new();
    let mut twin: Vec<(f64, Vec<u8>)> = Vec::new();
    while let Some(operation) = input.operation() {
        let member = input.word();
        let at = hasher(&member);
        let place = twin.iter().position(|(_, other)| *other == member);
        match operation % 8 {
            0..3 => {
                let score = score(&mut input);
                let old = place.map(|place| twin.remove(place).0);
                assert_eq!(set.insert(at, &member, score, &hasher), old);
                let entry = (score, member);
                let at = twin.partition_point(|other| order(other, &entry).is_lt());
                twin.insert(at, entry);
            }
            3 => {
                let old = place.map(|place| twin.remove(place).0);
                assert_eq!(set.remove(at, &member, &hasher), old);
            }
            4 => {
                assert_eq!(
                    set.rank(at, &member),
                    place.map(|place| (place, twin[place].0))
                );
                let rank = input.below(twin.len() + 1);
                let expected = twin
                    .get(rank)
                    .map(|(score, member)| (member.as_slice(), *score));
                assert_eq!(set.by_rank(rank), expected);
            }
            5 => {
                let (low, high) = (score(&mut input), score(&mut input));
                let from = twin.partition_point(|(score, _)| *score < low);
                let to = twin.partition_point(|(score, _)| *score < high).max(from);
                let ranks = set.ranks_by_score(ScoreBound::Incl(low), ScoreBound::Excl(high));
                assert_eq!(ranks.len(), to - from);
                if !ranks.is_empty() {
                    assert_eq!(ranks, from..to);
                }
            }
            6 => {
                let popped = set.pop_first(&hasher, |member, score| (score, member.to_vec()));
                assert_eq!(popped, (!twin.is_empty()).then(|| twin.remove(0)));
                let popped = set.pop_last(&hasher, |member, score| (score, member.to_vec()));
                assert_eq!(popped, twin.pop());
            }
            _ => {
                for number in 0..operation {
                    let member = [member.as_slice(), &[number]].concat();
                    set.insert(hasher(&member), &member, f64::from(number % 16), &hasher);
                    twin.retain(|(_, other)| *other != member);
                    twin.push((f64::from(number % 16), member));
                }
                twin.sort_by(order);
            }
        }
        assert_eq!(set.len(), twin.len());
    }
    let all: Vec<_> = set
        .iter()
        .map(|(member, score)| (score, member.to_vec()))
        .collect();
    assert_eq!(all, twin);
    let start = input.below(twin.len() + 1);
    let back: Vec<_> = set
        .range(start..twin.len(), true)
        .map(|(member, _)| member)
        .collect();
    assert!(
        back.iter()
            .eq(twin[start..].iter().rev().map(|(_, member)| member))
    );
    let _ = set.ranks_by_lex(LexBound::Min, LexBound::Max);
});
