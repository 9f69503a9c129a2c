//! `cargo xtask sim`: runs seeds one after the other until one fails.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [seed, steps, runs] = ["--seed", "--steps", "--runs"].map(|name| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)?.parse::<u64>().ok()
    });
    let seed = seed.unwrap_or(1);
    let steps = usize::try_from(steps.unwrap_or(200_000)).unwrap_or(usize::MAX);
    for seed in seed..seed.saturating_add(runs.unwrap_or(1)) {
        println!("seed {seed}, {steps} steps");
        match sim::run(seed, steps) {
            Ok(summary) => println!("{summary:?}"),
            Err(problem) => {
                eprintln!("{problem}\nto repeat it: cargo xtask sim --seed {seed} --steps {steps}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
