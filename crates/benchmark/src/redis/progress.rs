//! The line that a terminal shows while a test runs.

use crate::load::Watch;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Between two lines.
pub const EVERY: Duration = Duration::from_millis(250);

/// Runs `work` and meanwhile, where wanted, shows how far it is; the line is wiped at the end.
pub fn beside<T>(shows: bool, title: &str, watch: &Watch, work: impl FnOnce() -> T) -> T {
    if !shows {
        return work();
    }
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || show(title, watch, &ended));
        let result = work();
        drop(done);
        result
    })
}

fn show(title: &str, watch: &Watch, ended: &std::sync::mpsc::Receiver<()>) {
    let started = Instant::now();
    let mut last = (Duration::ZERO, 0, 0);
    let mut width = 1;
    while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = (
            started.elapsed(),
            watch.replies.load(Ordering::Relaxed),
            watch.latency_us.load(Ordering::Relaxed),
        );
        let line = line(title, last, now);
        put(&format!("{:width$}\r{line}\r", ""));
        width = line.len();
        last = now;
    }
    put(&format!("{:width$}\r", ""));
}

fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

type Moment = (Duration, u64, u64);

fn line(title: &str, last: Moment, now: Moment) -> String {
    let ratio = |above: f64, below: f64| if below > 0.0 { above / below } else { 0.0 };
    let replies = (now.1 - last.1) as f64;
    format!(
        "{title}: rps={:.1} (overall: {:.1}) avg_msec={:.3} (overall: {:.3})",
        ratio(replies, (now.0 - last.0).as_secs_f64()),
        ratio(now.1 as f64, now.0.as_secs_f64()),
        ratio((now.2 - last.2) as f64 / 1e3, replies),
        ratio(now.2 as f64 / 1e3, now.1 as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_figure_is_ever_no_number() {
        let nothing = (Duration::ZERO, 0, 0);
        assert_eq!(
            line("SET", nothing, nothing),
            "SET: rps=0.0 (overall: 0.0) avg_msec=0.000 (overall: 0.000)"
        );
        let later = (Duration::from_millis(250), 1000, 500_000);
        assert_eq!(
            line("SET", nothing, later),
            "SET: rps=4000.0 (overall: 4000.0) avg_msec=0.500 (overall: 0.500)"
        );
    }
}
