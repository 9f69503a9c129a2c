use super::*;
use crate::settings::Settings;
use std::collections::BTreeMap;

use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Set(u8, u8, u8),
    Remove(u8),
    Deadline(u8, u8),
    Pass(u8),
    Expire,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (any::<u8>(), any::<u8>(), 0u8..4).prop_map(|(f, v, t)| Op::Set(f % 40, v, t)),
        2 => any::<u8>().prop_map(|f| Op::Remove(f % 40)),
        2 => any::<(u8, u8)>().prop_map(|(f, t)| Op::Deadline(f % 40, t)),
        1 => any::<u8>().prop_map(|t| Op::Pass(t % 40)),
        1 => Just(Op::Expire),
    ]
}

/// Fields that look like integers and fields that do not.
fn name(n: u8) -> Vec<u8> {
    if n.is_multiple_of(2) {
        n.to_string().into_bytes()
    } else {
        format!("field:{n}").into_bytes()
    }
}

proptest! {
    // Each case looks at everything after every step.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn behaves_as_a_map_of_deadlines(
        ops in proptest::collection::vec(op(), 1..200),
        entries in 0usize..40,
    ) {
        let seed = Seed::new([1, 2]);
        let settings = Settings { hash_listpack_entries: entries, ..Settings::default() };
        let mut hash = Hash::default();
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)> = BTreeMap::new();
        let mut now_ms = 1000;
        for op in ops {
            let terms = Terms { seed: &seed, settings: &settings, now_ms };
            let alive = |found: &(Vec<u8>, Option<u64>)| found.1.is_none_or(|at| at > now_ms);
            match op {
                Op::Set(field, value, ttl) => {
                    let (field, value) = (name(field), vec![value; usize::from(value % 80)]);
                    let old = model.get(&field).filter(|found| alive(found)).cloned();
                    let (ttl, deadline) = match ttl {
                        0 => (Ttl::At(now_ms + 20), Some(now_ms + 20)),
                        1 => (Ttl::Keep, old.as_ref().and_then(|old| old.1)),
                        _ => (Ttl::Clear, None),
                    };
                    prop_assert_eq!(hash.set(terms, &field, &value, ttl), old.is_some());
                    model.insert(field, (value, deadline));
                }
                Op::Remove(field) => {
                    let field = name(field);
                    let old = model.remove(&field).filter(alive);
                    prop_assert_eq!(hash.remove(terms, &field), old.is_some());
                }
                Op::Deadline(field, at) => {
                    let field = name(field);
                    let deadline = (at % 3 != 0).then(|| now_ms + 1 + u64::from(at));
                    let found = model.get_mut(&field).filter(|found| alive(found));
                    prop_assert_eq!(hash.set_deadline(terms, &field, deadline), found.is_some());
                    if let Some(found) = found {
                        found.1 = deadline;
                    }
                }
                Op::Pass(ms) => now_ms += u64::from(ms),
                Op::Expire => {
                    hash.expire_due(now_ms, usize::MAX, |_| {});
                    model.retain(|_, found| found.1.is_none_or(|at| at > now_ms));
                    prop_assert_eq!(hash.len(), model.len());
                }
            }
            let terms = Terms { seed: &seed, settings: &settings, now_ms };
            let mut seen = BTreeMap::new();
            hash.each(now_ms, |field, found| {
                seen.insert(field.to_vec(), (found.value.to_vec(), found.deadline));
            });
            let living: BTreeMap<_, _> = model
                .iter()
                .filter(|(_, found)| found.1.is_none_or(|at| at > now_ms))
                .map(|(field, found)| (field.clone(), found.clone()))
                .collect();
            prop_assert_eq!(&seen, &living);
            prop_assert_eq!(hash.living(now_ms), living.len());
            for (field, found) in &living {
                let got = hash.get(terms, field).expect("it lives");
                prop_assert_eq!((got.value.to_vec(), got.deadline), found.clone());
                prop_assert!(hash.due_hint().is_some() || found.1.is_none());
            }
            let drawn = hash.random(now_ms, |n| n / 2);
            prop_assert_eq!(drawn.is_some(), !living.is_empty());
            let copy = hash.duplicate(terms);
            prop_assert_eq!(copy.living(now_ms), living.len());
        }
    }
}
