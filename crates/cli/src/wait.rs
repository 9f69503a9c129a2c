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

static CTRL_C: OnceLock<CtrlC> = OnceLock::new();

struct CtrlC {
    pressed: Arc<AtomicBool>,
    /// Whether the next one ends the program.
    armed: Arc<AtomicBool>,
}

/// The exit status of a program that Ctrl-C ends.
const INTERRUPTED: i32 = 130;

/// Takes Ctrl-C for ourselves from here on.
pub fn catch() {
    use signal_hook::consts::SIGINT;
    use signal_hook::flag;
    CTRL_C.get_or_init(|| {
        let (pressed, armed) = (Arc::default(), Arc::default());
        // Where these fail Ctrl-C ends the program, which is what it did before.
        let _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&armed));
        let _ = flag::register(SIGINT, Arc::clone(&pressed));
        CtrlC { pressed, armed }
    });
}

/// Whether Ctrl-C is for us; where it is not, nothing has to be asked while waiting.
pub fn catches() -> bool {
    CTRL_C.get().is_some()
}

/// Whether Ctrl-C was pressed since it was asked last.
pub fn interrupted() -> bool {
    CTRL_C.get().is_some_and(|ctrl_c| {
        ctrl_c.armed.store(false, Ordering::Relaxed);
        ctrl_c.pressed.swap(false, Ordering::Relaxed)
    })
}

fn pressed() -> bool {
    CTRL_C
        .get()
        .is_some_and(|ctrl_c| ctrl_c.pressed.load(Ordering::Relaxed))
}

/// Waits until this can be read, Ctrl-C or not: what is under way is worth finishing. Who presses
/// it again is taken at their word.
pub fn patiently(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    loop {
        if let Some(ctrl_c) = CTRL_C.get() {
            ctrl_c.armed.store(pressed(), Ordering::Relaxed);
        }
        let slice = PollTimeout::from(200_u8);
        match nix::poll::poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], slice) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
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
