use super::*;

#[test]
fn short_runs_hold_and_repeat_exactly() {
    for seed in 1..=3 {
        let first = run(seed, 6_000).unwrap_or_else(|problem| panic!("\n{problem}"));
        let again = run(seed, 6_000).unwrap_or_else(|problem| panic!("\n{problem}"));
        assert_eq!(first, again);
        assert!(
            first.served > 0 && first.transactions > 0 && first.broken > 0,
            "{first:?}"
        );
    }
}
