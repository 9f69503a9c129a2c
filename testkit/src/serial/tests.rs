use super::*;

fn op(client: usize, sent: u64, answered: u64, did: Vec<Did>) -> Op {
    Op {
        client,
        sent,
        answered,
        name: "forged",
        did,
    }
}

fn swap(key: u32, old: u64, new: u64) -> Did {
    Did::Swap { key, old, new }
}

fn seen(key: u32, value: u64) -> Did {
    Did::Seen { key, value }
}

#[track_caller]
fn refused(ops: &[Op], why: &str) {
    let problem = check(ops).expect_err("it is wrong");
    assert!(problem.contains(why), "{problem}");
}

#[test]
fn a_history_in_order_is_accepted() {
    let pass = |stage| Did::Pass {
        line: 0,
        stage,
        element: 7,
    };
    let ops = [
        op(0, 0, 9, vec![swap(0, 0, 1), swap(1, 0, 2)]),
        op(1, 1, 8, vec![seen(0, 1), seen(1, 2)]),
        op(2, 2, 3, vec![seen(0, 0)]),
        op(0, 10, 12, vec![swap(0, 1, 3)]),
        op(1, 11, 14, vec![seen(0, 1)]),
        op(
            2,
            11,
            15,
            vec![Did::Enter {
                line: 0,
                element: 7,
                number: 1,
            }],
        ),
        op(2, 16, 17, vec![pass(1)]),
        op(1, 16, 19, vec![pass(2)]),
        op(0, 16, 18, vec![pass(3)]),
        op(
            0,
            20,
            21,
            vec![Did::Push {
                queue: 0,
                element: 8,
            }],
        ),
        op(
            1,
            20,
            24,
            vec![Did::Pop {
                queue: 0,
                element: None,
            }],
        ),
        op(
            1,
            25,
            26,
            vec![Did::Pop {
                queue: 0,
                element: Some(8),
            }],
        ),
        op(
            0,
            30,
            31,
            vec![Did::Add {
                stream: 0,
                element: 9,
                id: (1, 0),
            }],
        ),
        op(
            1,
            30,
            32,
            vec![Did::Take {
                stream: 0,
                elements: vec![9],
                all: true,
            }],
        ),
    ];
    check(&ops).expect("it is right");
}

#[test]
fn a_lost_update_is_found() {
    let count = |to| vec![Did::Count { key: 0, to }];
    refused(
        &[
            op(0, 0, 1, count(1)),
            op(1, 2, 4, count(2)),
            op(2, 3, 5, count(2)),
        ],
        "twice",
    );
    let swap = |old, new| vec![swap(0, old, new)];
    refused(
        &[
            op(0, 0, 1, swap(0, 1)),
            op(1, 2, 4, swap(1, 2)),
            op(2, 3, 5, swap(1, 3)),
        ],
        "replaced twice",
    );
}

#[test]
fn a_stale_read_after_a_finished_write_is_found() {
    refused(
        &[
            op(0, 0, 1, vec![swap(0, 0, 1)]),
            op(1, 2, 3, vec![seen(0, 0)]),
        ],
        "these 2 operations",
    );
    // Two readers may not see two writes come in two orders.
    refused(
        &[
            op(0, 0, 9, vec![swap(0, 0, 1)]),
            op(1, 1, 2, vec![seen(0, 1)]),
            op(2, 3, 4, vec![seen(0, 0)]),
        ],
        "no order",
    );
}

#[test]
fn a_split_transaction_is_found() {
    refused(
        &[
            op(0, 0, 9, vec![swap(0, 0, 1), swap(1, 0, 2)]),
            op(1, 1, 8, vec![seen(0, 1), seen(1, 0)]),
        ],
        "these 2 operations",
    );
    // Each of two transactions missed the other's write.
    refused(
        &[
            op(0, 0, 9, vec![seen(0, 0), swap(1, 0, 2)]),
            op(1, 1, 8, vec![seen(1, 0), swap(0, 0, 1)]),
        ],
        "these 2 operations",
    );
}

#[test]
fn the_smallest_circle_is_shown() {
    let mut ops = vec![
        op(0, 0, 1, vec![swap(0, 0, 1)]),
        op(1, 1000, 1001, vec![seen(0, 0)]),
    ];
    ops.extend((1..100).map(|n| op(2, n * 4, n * 4 + 1, vec![Did::Count { key: 0, to: n }])));
    refused(&ops, "these 2 operations");
}

#[test]
fn an_element_popped_twice_or_lost_or_overtaken_is_found() {
    let push = |element| vec![Did::Push { queue: 0, element }];
    let pop = |element| vec![Did::Pop { queue: 0, element }];
    let pushed = op(0, 0, 1, push(1));
    refused(std::slice::from_ref(&pushed), "lost");
    let twice = [
        pushed.clone(),
        op(1, 2, 3, pop(Some(1))),
        op(2, 2, 4, pop(Some(1))),
    ];
    refused(&twice, "popped twice");
    refused(&[op(1, 2, 3, pop(Some(1)))], "nobody pushed");
    let empty = [
        pushed.clone(),
        op(1, 2, 3, pop(None)),
        op(1, 4, 5, pop(Some(1))),
    ];
    refused(&empty, "not empty");
    let overtaken = [
        pushed,
        op(0, 2, 3, push(2)),
        op(1, 4, 5, pop(Some(2))),
        op(1, 6, 7, pop(Some(1))),
    ];
    refused(&overtaken, "overtaken");
}

#[test]
fn an_element_that_leaves_a_line_twice_or_never_is_found() {
    let enter = |element, number| Did::Enter {
        line: 0,
        element,
        number,
    };
    let pass = |stage, element| Did::Pass {
        line: 0,
        stage,
        element,
    };
    let ops = |last: Vec<Did>| {
        [
            op(0, 0, 1, vec![enter(1, 1)]),
            op(0, 2, 3, vec![pass(1, 1), pass(2, 1)]),
            op(0, 4, 5, last),
        ]
    };
    refused(&ops(vec![]), "lost before stage 3");
    refused(&ops(vec![pass(3, 1), pass(2, 1)]), "popped twice");
    check(&ops(vec![pass(3, 1)])).expect("it is right");
    // The second came out first.
    let mut swapped = vec![
        op(0, 0, 1, vec![enter(1, 1)]),
        op(0, 2, 3, vec![enter(2, 2)]),
    ];
    swapped.push(op(0, 4, 5, vec![pass(1, 2), pass(2, 2), pass(3, 2)]));
    swapped.push(op(0, 6, 7, vec![pass(1, 1), pass(2, 1), pass(3, 1)]));
    refused(&swapped, "these 2 operations");
}

#[test]
fn entries_given_out_twice_or_late_are_found() {
    let add = |element, seq| {
        vec![Did::Add {
            stream: 0,
            element,
            id: (1, seq),
        }]
    };
    let take = |elements: &[u64], all| {
        vec![Did::Take {
            stream: 0,
            elements: elements.to_vec(),
            all,
        }]
    };
    let added = [op(0, 0, 1, add(1, 0)), op(0, 2, 3, add(2, 1))];
    let with = |more: &[Op]| [&added[..], more].concat();
    check(&with(&[op(1, 4, 5, take(&[1, 2], true))])).expect("it is right");
    refused(&with(&[op(1, 4, 5, take(&[1], false))]), "1 given out");
    let twice = [
        op(1, 4, 5, take(&[1, 2], true)),
        op(1, 6, 7, take(&[2], true)),
    ];
    refused(&with(&twice), "twice");
    // It says that there was no more, but there was.
    let blind = [op(1, 4, 5, take(&[1], true)), op(1, 6, 7, take(&[2], true))];
    refused(&with(&blind), "no order");
}
