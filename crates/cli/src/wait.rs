//! Waiting that Ctrl-C ends.
//!
//! A run that says nothing is ended by Ctrl-C as any program. One that has something to tidy up or
//! to print calls [`catch`] first: from then on every wait here ends when it is pressed, and who
//! waited asks [`interrupted`].

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The longest single sleep: a signal that comes just before one is seen this much later at most.
const SLICE: Duration = Duration::from_millis(200);

static PRESSED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Takes Ctrl-C for ourselves from here on.
pub fn catch() {
    PRESSED.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        // Where this fails Ctrl-C ends the program, which is what it did before.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag));
        flag
    });
}

/// Whether Ctrl-C was pressed since it was asked last.
pub fn interrupted() -> bool {
    PRESSED
        .get()
        .is_some_and(|flag| flag.swap(false, Ordering::Relaxed))
}

fn pressed() -> bool {
    PRESSED
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The first of the descriptors that is ready.
    Ready(usize),
    Timeout,
    Interrupted,
}

/// Waits until one of these can be read; `None` is for ever.
pub fn readable(fds: &[BorrowedFd<'_>], wait: Option<Duration>) -> std::io::Result<Woken> {
    let fds: Vec<(BorrowedFd<'_>, PollFlags)> =
        fds.iter().map(|fd| (*fd, PollFlags::POLLIN)).collect();
    ready(&fds, wait)
}

/// The same for whatever each is asked for.
pub fn ready(
    fds: &[(BorrowedFd<'_>, PollFlags)],
    wait: Option<Duration>,
) -> std::io::Result<Woken> {
    let end = wait.map(|wait| Instant::now() + wait);
    loop {
        if pressed() {
            return Ok(Woken::Interrupted);
        }
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
        let slice = left.min(SLICE);
        // A fraction of a millisecond is rounded up, or short waits would spin.
        let millis = slice.as_nanos().div_ceil(1_000_000);
        let timeout = PollTimeout::from(u16::try_from(millis).unwrap_or(u16::MAX));
        let mut polled: Vec<PollFd<'_>> = fds.iter().map(|(fd, f)| PollFd::new(*fd, *f)).collect();
        match nix::poll::poll(&mut polled, timeout) {
            Ok(0) if left.is_zero() => return Ok(Woken::Timeout),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => {
                let first = polled.iter().position(|fd| fd.any().unwrap_or(false));
                return Ok(Woken::Ready(first.unwrap_or(0)));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Does nothing for so long; false where Ctrl-C ended it.
pub fn pause(time: Duration) -> bool {
    matches!(readable(&[], Some(time)), Ok(Woken::Timeout))
}
