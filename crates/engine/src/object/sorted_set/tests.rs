use super::*;
use crate::settings::Settings;
use std::collections::BTreeMap;

use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Insert(u8, f64),
    Remove(u8),
    Pop(bool),
    RemoveRanks(u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    let score = prop_oneof![
        (-3i32..3).prop_map(f64::from),
        (-8i32..8).prop_map(|n| f64::from(n) / 8.0),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(1e300),
        Just(-0.0),
    ];
    prop_oneof![
        6 => (any::<u8>(), score).prop_map(|(m, s)| Op::Insert(m % 40, s)),
        2 => any::<u8>().prop_map(|m| Op::Remove(m % 40)),
        1 => any::<bool>().prop_map(Op::Pop),
        1 => any::<(u8, u8)>().prop_map(|(a, b)| Op::RemoveRanks(a % 20, b % 4)),
    ]
}

fn name(n: u8) -> Vec<u8> {
    if n.is_multiple_of(2) {
        n.to_string().into_bytes()
    } else {
        format!("member:{n}").into_bytes()
    }
}

fn sorted(model: &BTreeMap<Vec<u8>, f64>) -> Vec<(Vec<u8>, f64)> {
    let mut all: Vec<_> = model.iter().map(|(m, s)| (m.clone(), *s)).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn members(set: &SortedSet, ranks: Range<usize>, rev: bool) -> Vec<(Vec<u8>, f64)> {
    let mut all = Vec::new();
    set.each(ranks, rev, |member, score| {
        all.push((member.to_vec(), score))
    });
    all
}

proptest! {
    // Each case looks at everything after every step.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn behaves_as_a_sorted_map(
        ops in proptest::collection::vec(op(), 1..200),
        entries in 0usize..40,
        low in -3i32..3,
        high in -3i32..3,
    ) {
        let seed = Seed::new([1, 2]);
        let settings = Settings { zset_listpack_entries: entries, ..Settings::default() };
        let terms = Terms { seed: &seed, settings: &settings, now_ms: 0 };
        let mut set = SortedSet::default();
        let mut model = BTreeMap::new();
        for op in ops {
            match op {
                Op::Insert(member, score) => {
                    let member = name(member);
                    prop_assert_eq!(
                        set.insert(terms, &member, score),
                        model.insert(member, score + 0.0)
                    );
                }
                Op::Remove(member) => {
                    let member = name(member);
                    prop_assert_eq!(set.remove(terms, &member), model.remove(&member));
                }
                Op::Pop(rev) => {
                    let all = sorted(&model);
                    let want = if rev { all.last() } else { all.first() };
                    let got = set.pop(terms, rev, |member, score| (member.to_vec(), score));
                    prop_assert_eq!(got.as_ref(), want);
                    got.map(|(member, _)| model.remove(&member));
                }
                Op::RemoveRanks(start, count) => {
                    let ranks = usize::from(start)..usize::from(start) + usize::from(count);
                    let all = sorted(&model);
                    let gone: Vec<_> = all.iter().skip(ranks.start).take(ranks.len()).collect();
                    prop_assert_eq!(set.remove_ranks(terms, ranks), gone.len());
                    for (member, _) in &gone {
                        model.remove(member);
                    }
                }
            }
            let all = sorted(&model);
            prop_assert_eq!(set.len(), all.len());
            prop_assert_eq!(&members(&set, 0..set.len(), false), &all);
            let mut back = members(&set, 0..set.len(), true);
            back.reverse();
            prop_assert_eq!(&back, &all);
            for (rank, (member, score)) in all.iter().enumerate() {
                prop_assert_eq!(set.score(terms, member), Some(*score));
                prop_assert_eq!(set.rank(terms, member), Some((rank, *score)));
                let (found, score) = set.by_rank(rank).expect("it is there");
                prop_assert_eq!((found.to_vec(), score), all[rank].clone());
            }
            let (low, high) = (f64::from(low), f64::from(high));
            let ranks = set.ranks_by_score(ScoreBound::Excl(low), ScoreBound::Incl(high));
            let want: Vec<_> =
                all.iter().filter(|(_, s)| *s > low && *s <= high).cloned().collect();
            prop_assert_eq!(members(&set, ranks, false), want);
            let copy = set.duplicate(terms);
            prop_assert_eq!(members(&copy, 0..copy.len(), false), all);
        }
    }
}
