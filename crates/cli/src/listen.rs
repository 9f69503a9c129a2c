//! Messages as they come: what SUBSCRIBE and its kin lead to.
//!
//! At a prompt a key ends the listening and the subscription stays; Ctrl-C ends both. Elsewhere
//! only the end of the connection, or of the last subscription, ends it.

use crate::command::Runner;
use crate::out::{from_terminal, put, to_terminal};
use crate::session::Lost;
use crate::wait::{self, Woken};
use client::{Error, Reply};
use nix::sys::termios::{self, LocalFlags, SetArg, Termios};

/// Why listening ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is listened to any more.
    Over,
    /// A key was pressed; it has not been read.
    Key,
    Interrupted,
}

/// Shows messages. `leaving` is how many confirmations a command that ends subscriptions gets.
pub fn messages(runner: &mut Runner, leaving: Option<usize>) -> Result<End, Lost> {
    let at_prompt = runner.interactive && from_terminal();
    let keys = at_prompt.then(Keys::watch).flatten();
    let notice = Notice::new(at_prompt, to_terminal());
    let mut confirmed = 0;
    notice.show();
    let end = loop {
        while let Some(message) = runner.session.receive_now()? {
            notice.hide();
            match runner.style.format {
                crate::render::Format::Formatted => runner.style.show_push(&message),
                _ => runner.style.show(&message, false),
            }
            if let Some(left) = confirmation(&message) {
                confirmed += 1;
                if left == 0 && leaving.is_some_and(|expected| confirmed >= expected) {
                    return Ok(End::Over);
                }
            } else if message.is_error() {
                return Ok(End::Over);
            }
            notice.show();
        }
        let Some(server) = runner.session.as_fd() else {
            return Err(Lost::Connection(Error::Closed));
        };
        let stdin = std::io::stdin();
        let mut fds = vec![server];
        if keys.is_some() {
            use std::os::fd::AsFd;
            fds.push(stdin.as_fd());
        }
        match wait::readable(&fds, None).map_err(Error::from)? {
            Woken::Ready(1) => break End::Key,
            Woken::Interrupted => {
                wait::interrupted();
                break End::Interrupted;
            }
            Woken::Ready(_) | Woken::Timeout => {}
        }
    };
    notice.hide();
    Ok(end)
}

/// The subscriptions left, if this tells of one that began or ended.
fn confirmation(message: &Reply) -> Option<i64> {
    let [kind, _, left] = message.elements()? else {
        return None;
    };
    let kind = kind.bytes()?;
    kind.ends_with(b"subscribe").then(|| left.integer())?
}

/// The line under the messages that says what to press.
struct Notice(Option<&'static str>);

impl Notice {
    fn new(at_prompt: bool, to_terminal: bool) -> Self {
        Self(to_terminal.then_some(match at_prompt {
            true => "Reading messages... (press Ctrl-C to quit or any key to type command)",
            false => "Reading messages... (press Ctrl-C to quit)",
        }))
    }

    fn show(&self) {
        if let Some(text) = self.0 {
            put(format!("{text}\r"));
        }
    }

    fn hide(&self) {
        if self.0.is_some() {
            put("\x1b[K");
        }
    }
}

/// The terminal without lines and echo, so that a key is seen at once; as it was when dropped.
pub struct Keys(Termios);

impl Keys {
    pub fn watch() -> Option<Self> {
        let before = termios::tcgetattr(std::io::stdin()).ok()?;
        let mut now = before.clone();
        now.local_flags &= !(LocalFlags::ICANON | LocalFlags::ECHO);
        termios::tcsetattr(std::io::stdin(), SetArg::TCSANOW, &now).ok()?;
        Some(Self(before))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // There is nothing to be done where the terminal is gone.
        let _ = termios::tcsetattr(std::io::stdin(), SetArg::TCSANOW, &self.0);
    }
}
