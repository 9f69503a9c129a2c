//! A history of our server at four threads, and the proof that it is strictly serializable.
//!
//! `SERIAL_SECONDS=60 SERIAL_THREADS=8 SERIAL_SEED=3` make it longer or other: that is what
//! `cargo xtask serial` does.

use std::str::FromStr;
use std::time::{Duration, Instant};

use testkit::{Server, our_server, serial};

/// Connections at a time.
const CONNECTIONS: usize = 16;
/// Seconds of one history, which is checked before the next begins.
const ROUND_SECONDS: u64 = 5;

fn asked<T: FromStr>(name: &str, otherwise: T) -> T {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn our_server_is_strictly_serializable() {
    let Some(program) = our_server() else {
        println!("no server here: `cargo build --release` makes it");
        return;
    };
    let seconds: u64 = asked("SERIAL_SECONDS", 10);
    let threads: String = asked("SERIAL_THREADS", "4".to_owned());
    let seed: u64 = asked("SERIAL_SEED", 1);
    let server = Server::start(&program, &["--threads", &threads])
        .unwrap_or_else(|problem| panic!("{problem}"));
    let (mut ops, mut checking) = (0, Duration::ZERO);
    for round in 0..seconds.div_ceil(ROUND_SECONDS) {
        let time = Duration::from_secs(ROUND_SECONDS.min(seconds - round * ROUND_SECONDS));
        let history = serial::round(&server, CONNECTIONS, time, seed + round)
            .unwrap_or_else(|problem| panic!("{problem}"));
        let began = Instant::now();
        if let Err(problem) = serial::check(&history) {
            panic!("\nround {round}, seed {seed}, threads {threads}: {problem}");
        }
        checking += began.elapsed();
        ops += history.len();
    }
    println!(
        "{ops} operations of {CONNECTIONS} connections in {seconds} s at {threads} threads: one \
         order explains them; checked in {} ms",
        checking.as_millis()
    );
}
