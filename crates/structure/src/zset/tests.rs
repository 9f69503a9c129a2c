//! `SortedSet` against a `BTreeSet` and a `HashMap`.

use super::*;
use crate::hash::{Seed, hash};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SEED: Seed = Seed::new([3, 5]);

fn good(member: &[u8]) -> u64 {
    hash(&SEED, member)
}

fn broken(member: &[u8]) -> u64 {
    u64::from(member.last().copied().unwrap_or(0) & 3) << 62
}

#[derive(Default)]
struct Model {
    scores: BTreeMap<Vec<u8>, f64>,
    order: BTreeSet<(u64, Vec<u8>)>,
}

impl Model {
    fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let old = self.scores.insert(member.to_vec(), score);
        if let Some(old) = old {
            self.order.remove(&(order_key(old), member.to_vec()));
        }
        self.order.insert((order_key(score), member.to_vec()));
        old
    }

    fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let old = self.scores.remove(member)?;
        self.order.remove(&(order_key(old), member.to_vec()));
        Some(old)
    }
}

fn check(set: &SortedSet, model: &Model, hasher: &impl Fn(&[u8]) -> u64) {
    set.tree.check(&set.store);
    assert_eq!(set.len(), model.scores.len());
    let want: Vec<(&[u8], u64)> = model
        .order
        .iter()
        .map(|(_, m)| (&m[..], model.scores[m].to_bits()))
        .collect();
    let mut got: Vec<_> = set.iter().map(|(m, s)| (m, s.to_bits())).collect();
    assert_eq!(got, want);
    got = set
        .range(0..usize::MAX, true)
        .map(|(m, s)| (m, s.to_bits()))
        .collect();
    got.reverse();
    assert_eq!(got, want);
    let step = want.len() / 200 + 1;
    for (rank, &(member, bits)) in want.iter().enumerate().step_by(step) {
        let (got, score) = set.rank(hasher(member), member).unwrap();
        assert_eq!((got, score.to_bits()), (rank, bits));
        assert_eq!(set.by_rank(rank).unwrap().0, member);
        let forward = set.iter_from_rank(rank, false).take(3).map(|e| e.0);
        assert!(forward.eq(want[rank..].iter().take(3).map(|e| e.0)));
        let back = set.iter_from_rank(rank, true).take(3).map(|e| e.0);
        assert!(back.eq(want[..=rank].iter().rev().take(3).map(|e| e.0)));
        let score = f64::from_bits(bits);
        let below = want.partition_point(|e| f64::from_bits(e.1) < score);
        let up_to = want.partition_point(|e| f64::from_bits(e.1) <= score);
        let (incl, excl) = (ScoreBound::Incl(score), ScoreBound::Excl(score));
        let all = ScoreBound::Incl(f64::INFINITY);
        assert_eq!(set.ranks_by_score(incl, incl), below..up_to);
        assert_eq!(set.ranks_by_score(excl, all), up_to..want.len());
        assert_eq!(set.ranks_by_score(excl, excl).len(), 0);
        let least = ScoreBound::Incl(f64::NEG_INFINITY);
        assert_eq!(set.ranks_by_score(least, excl), 0..below);
    }
    assert_eq!(set.by_rank(want.len()), None);
    let (mut cursor, mut scanned) = (0, BTreeSet::new());
    loop {
        cursor = set.scan(cursor, 10, |m, s| {
            assert!(scanned.insert(m.to_vec()));
            assert_eq!(model.scores[m].to_bits(), s.to_bits());
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned.len(), want.len());
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u16, f64),
    Remove(u16),
    Pop(bool),
    PopMany(u8),
    Freeze,
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (0u32..20).prop_map(f64::from),
        4 => 0.0..1.0f64,
        2 => any::<f64>().prop_filter("a score", |s| !s.is_nan()),
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY)],
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (any::<u16>(), score()).prop_map(|(m, s)| Op::Insert(m, s)),
        8 => any::<u16>().prop_map(Op::Remove),
        2 => any::<bool>().prop_map(Op::Pop),
        1 => any::<u8>().prop_map(Op::PopMany),
        1 => Just(Op::Freeze),
    ]
}

fn member_of(n: u16) -> Vec<u8> {
    let mut member = format!("m{n}").into_bytes();
    if n.is_multiple_of(31) {
        member.resize(200 + usize::from(n % 90), b'x');
        member.extend_from_slice(&n.to_le_bytes());
    }
    member
}

fn run(ops: &[Op], members: u16, hasher: &impl Fn(&[u8]) -> u64) {
    let (mut set, mut model) = (SortedSet::new(), Model::default());
    let mut frozen = Vec::new();
    for op in ops {
        match *op {
            Op::Freeze => {
                // A few at a time: some are let go before the set changes, and some after.
                if frozen.len() > 2 {
                    let (members, scores) = frozen.swap_remove(0);
                    check_members(members, &scores);
                }
                frozen.push((set.freeze(), model.scores.clone()));
            }
            Op::Insert(n, score) => {
                let member = member_of(n % members);
                let want = model.insert(&member, score);
                let got = set.insert(hasher(&member), &member, score, hasher);
                assert_eq!(got.map(f64::to_bits), want.map(f64::to_bits));
            }
            Op::Remove(n) => {
                let member = member_of(n % members);
                let got = set.remove(hasher(&member), &member, hasher);
                assert_eq!(got, model.remove(&member));
                assert_eq!(set.score(hasher(&member), &member), None);
            }
            Op::Pop(first) => {
                let want = if first {
                    model.order.first()
                } else {
                    model.order.last()
                };
                let want = want.map(|e| e.1.clone());
                let take = |m: &[u8], _: f64| m.to_vec();
                let got = if first {
                    set.pop_first(hasher, take)
                } else {
                    set.pop_last(hasher, take)
                };
                assert_eq!(got, want);
                want.map(|m| model.remove(&m));
            }
            Op::PopMany(count) => {
                for _ in 0..count {
                    let Some(m) = set.pop_first(hasher, |m, _| m.to_vec()) else {
                        break;
                    };
                    assert_eq!(model.order.first().unwrap().1, m);
                    model.remove(&m);
                }
            }
        }
    }
    check(&set, &model, hasher);
    drop(set);
    for (members, scores) in frozen {
        check_members(members, &scores);
    }
}

fn check_members(members: Members, scores: &BTreeMap<Vec<u8>, f64>) {
    assert_eq!(members.len(), scores.len());
    let mut got = Vec::new();
    members.each(|member, score| got.push((member.to_vec(), score.to_bits())));
    got.sort();
    let want = scores
        .iter()
        .map(|(member, score)| (member.clone(), score.to_bits()));
    assert!(got.into_iter().eq(want));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_a_sorted_set_of_pairs(
        ops in proptest::collection::vec(op(), 1..4000), members in 1u16..3000
    ) {
        run(&ops, members, &good);
    }

    #[test]
    fn stays_right_under_a_broken_hash(
        ops in proptest::collection::vec(op(), 1..1500), members in 1u16..3000
    ) {
        run(&ops, members, &broken);
    }
}

/// Scores in several patterns; grow, update, shrink, and memory comes back.
#[test]
fn grows_and_shrinks_under_every_pattern_of_scores() {
    let mut state = 7u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 20
    };
    for pattern in 0..6 {
        let mut score = |n: u32| match pattern {
            0 => f64::from(n),
            1 => -f64::from(n),
            2 => 7.0,
            3 => draw() as f64 / 3.0,
            4 => f64::from(n % 10) * 1e9 + f64::from(n),
            _ => 1.0 + (draw() % 3) as f64 * f64::EPSILON,
        };
        let (mut set, mut model) = (SortedSet::new(), Model::default());
        let member = |n: u32| format!("member:{:08}", n.wrapping_mul(2654435761) >> 4);
        for n in 0..12_000 {
            let (member, score) = (member(n), score(n));
            model.insert(member.as_bytes(), score);
            set.insert(good(member.as_bytes()), member.as_bytes(), score, &good);
        }
        check(&set, &model, &good);
        for n in (0..12_000).step_by(2) {
            let (member, score) = (member(n), score(n) + 0.5);
            let want = model.insert(member.as_bytes(), score);
            let got = set.insert(good(member.as_bytes()), member.as_bytes(), score, &good);
            assert_eq!(got, want);
        }
        check(&set, &model, &good);
        let full = set.memory_bytes();
        for n in (0..12_000).filter(|n| n % 50 != 1) {
            let member = member(n);
            let want = model.remove(member.as_bytes());
            assert_eq!(
                set.remove(good(member.as_bytes()), member.as_bytes(), &good),
                want
            );
        }
        check(&set, &model, &good);
        assert!(
            set.memory_bytes() < full / 6,
            "{} of {full}",
            set.memory_bytes()
        );
        let mut calls = 0;
        while !set.free_some(1) {
            calls += 1;
        }
        assert!(calls > 1 && set.is_empty());
    }
}

#[test]
fn lex_ranges_are_by_bytes() {
    let mut set = SortedSet::new();
    let members: Vec<String> = (0..1000).map(|n| format!("{n:04}")).collect();
    for member in &members {
        set.insert(good(member.as_bytes()), member.as_bytes(), 1.0, &good);
    }
    let incl = LexBound::Incl(b"0100");
    assert_eq!(set.ranks_by_lex(incl, LexBound::Excl(b"0200")), 100..200);
    assert_eq!(
        set.ranks_by_lex(LexBound::Excl(b"0100"), LexBound::Incl(b"0200")),
        101..201
    );
    assert_eq!(
        set.ranks_by_lex(LexBound::Min, LexBound::Incl(b"00015")),
        0..2
    );
    assert_eq!(
        set.ranks_by_lex(LexBound::Incl(b""), LexBound::Max),
        0..1000
    );
    assert_eq!(set.ranks_by_lex(LexBound::Max, LexBound::Min).len(), 0);
    assert_eq!(set.ranks_by_lex(incl, incl), 100..101);
    assert_eq!(
        SortedSet::new().ranks_by_lex(LexBound::Min, LexBound::Max),
        0..0
    );
}

#[test]
fn a_zero_changes_its_sign_in_place() {
    let mut set = SortedSet::new();
    set.insert(good(b"b"), b"b", 0.0, &good);
    set.insert(good(b"a"), b"a", -0.0, &good);
    set.insert(good(b"c"), b"c", -0.0, &good);
    assert!(set.iter().map(|e| e.0).eq([&b"a"[..], b"b", b"c"]));
    assert_eq!(
        set.insert(good(b"b"), b"b", -0.0, &good).map(f64::to_bits),
        Some(0)
    );
    assert!(set.score(good(b"b"), b"b").unwrap().is_sign_negative());
    let zero = ScoreBound::Incl(0.0);
    assert_eq!(set.ranks_by_score(zero, zero), 0..3);
}

#[test]
fn a_scan_gives_all_that_stay_while_the_set_grows_and_shrinks() {
    let mut set = SortedSet::new();
    for n in 0..3_000u32 {
        set.insert(
            good(&n.to_le_bytes()),
            &n.to_le_bytes(),
            f64::from(n),
            &good,
        );
    }
    let (mut seen, mut cursor, mut step) = (BTreeSet::new(), 0, 0u32);
    loop {
        cursor = set.scan(cursor, 10, |m, _| {
            seen.insert(m.to_vec());
        });
        if cursor == 0 {
            break;
        }
        for n in 0..200 {
            let member = (3_000 + (step % 30) * 200 + n).to_le_bytes();
            if (step / 30) % 2 == 0 {
                set.insert(good(&member), &member, f64::from(n), &good);
            } else {
                set.remove(good(&member), &member, &good);
            }
        }
        step += 1;
    }
    assert!((0..3_000u32).all(|n| seen.contains(&n.to_le_bytes()[..])));
}

#[test]
fn draws_are_uniform() {
    let mut set = SortedSet::new();
    for n in 0..900u32 {
        set.insert(
            good(&n.to_le_bytes()),
            &n.to_le_bytes(),
            f64::from(n % 7),
            &good,
        );
    }
    let mut state = 88172645463325252u64;
    let mut rng = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((u128::from(state) * u128::from(n)) >> 64) as u64
    };
    let mut counts = [0u32; 900];
    for _ in 0..90_000 {
        let (member, _) = set.random(&mut rng).unwrap();
        counts[u32::from_le_bytes(member.try_into().unwrap()) as usize] += 1;
    }
    let chi: f64 = counts
        .iter()
        .map(|&c| (f64::from(c) - 100.0).powi(2) / 100.0)
        .sum();
    assert!(
        chi < 899.0 + 5.0 * (2.0f64 * 899.0).sqrt(),
        "chi-square {chi}"
    );
}
