//! The list against a `VecDeque`, with small chunks so that it has many.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use structure::list::{Limit, List, Side};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let limit = match input.byte() % 8 {
        0 => Limit::new(-2),
        1 => Limit::new(-1),
        items => Limit::new(i64::from(items)),
    };
    let mut list = List::new();
    let mut twin: VecDeque<Vec<u8>> = VecDeque::new();
    while let Some(operation) = input.operation() {
        let word = input.word();
        let index = input.below(twin.len() + 1);
        match operation % 12 {
            0 | 1 => {
                list.push_back(&word, limit);
                twin.push_back(word);
            }
            2 => {
                list.push_front(&word, limit);
                twin.push_front(word);
            }
            3 => assert_eq!(list.pop_front(limit), twin.pop_front()),
            4 => assert_eq!(list.pop_back(limit), twin.pop_back()),
            5 => {
                let there = index < twin.len();
                assert_eq!(list.set(index, &word, limit), there);
                if there {
                    twin[index] = word;
                }
            }
            6 => {
                let pivot = twin.get(index).cloned().unwrap_or_default();
                let side = if operation & 16 == 0 {
                    Side::Before
                } else {
                    Side::After
                };
                let found = twin.iter().position(|other| *other == pivot);
                assert_eq!(list.insert(side, &pivot, &word, limit), found.is_some());
                if let Some(found) = found {
                    twin.insert(found + usize::from(side == Side::After), word);
                }
            }
            7 => {
                let value = twin.get(index).cloned().unwrap_or(word);
                let count = i64::from(operation as i8 / 12) / 4;
                let mut left = if count == 0 {
                    usize::MAX
                } else {
                    count.unsigned_abs() as usize
                };
                let before = twin.len();
                let mut keep = |other: &Vec<u8>| {
                    let goes = *other == value && left > 0;
                    left -= usize::from(goes);
                    !goes
                };
                if count < 0 {
                    let kept: Vec<_> = twin.drain(..).rev().filter(&mut keep).collect();
                    twin = kept.into_iter().rev().collect();
                } else {
                    twin.retain(keep);
                }
                assert_eq!(list.remove(count, &value, limit), before - twin.len());
            }
            8 => {
                let back = usize::from(operation >> 6);
                let rest = list.trim(index, back, limit);
                if let Some(mut rest) = rest {
                    while !rest.free_some(1) {}
                }
                twin.drain(..index);
                twin.truncate(twin.len().saturating_sub(back));
            }
            9 => {
                let got = list.get(index).map(|entry| entry.to_vec());
                assert_eq!(got.as_ref(), twin.get(index));
                assert_eq!(
                    list.find(&word),
                    twin.iter().position(|other| *other == word)
                );
            }
            10 => {
                list.drop_front(index, limit);
                twin.drain(..index);
            }
            _ => {
                for number in 0..operation {
                    list.push_back(&[number; 3], limit);
                    twin.push_back(vec![number; 3]);
                }
            }
        }
        assert_eq!(list.len(), twin.len());
    }
    assert!(
        list.iter()
            .map(|entry| entry.to_vec())
            .eq(twin.iter().cloned())
    );
    assert!(
        list.iter_rev()
            .map(|entry| entry.to_vec())
            .eq(twin.iter().rev().cloned())
    );
});
