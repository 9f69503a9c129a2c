//! What systemd is told: `supervised`.
//!
//! With `systemd`, or with `auto` where systemd asks for it, the service manager hears when the
//! server is ready, how loading goes meanwhile, and when it stops: the protocol of sd_notify(3).
//! Upstart is gone; its value is accepted and does nothing.

use sd_notify::NotifyState;

use crate::config::{Config, Supervisor};
use crate::warning;

/// Where systemd says whom to tell.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Whether systemd is to be told.
fn is_told(config: &Config) -> bool {
    let wanted = matches!(config.supervised, Supervisor::Systemd | Supervisor::Auto);
    wanted && std::env::var_os(SOCKET).is_some()
}

/// What INFO shows.
pub fn shown(config: &Config) -> &'static str {
    match config.supervised {
        _ if is_told(config) => "systemd",
        Supervisor::Systemd => "unknown",
        _ => "no",
    }
}

/// Says at the start if nobody is there to be told.
pub fn check(config: &Config) {
    match config.supervised {
        Supervisor::Systemd if !is_told(config) => {
            warning!("supervised is systemd, but {SOCKET} is not set: the unit needs Type=notify")
        }
        Supervisor::Upstart => warning!("supervised upstart has no effect"),
        _ => {}
    }
}

fn tell(config: &Config, states: &[NotifyState<'_>]) {
    if is_told(config)
        && let Err(error) = sd_notify::notify(states)
    {
        warning!("systemd can't be told: {error}");
    }
}

/// Commands are served.
pub fn ready(config: &Config) {
    let status = NotifyState::Status("Ready to accept connections");
    tell(config, &[NotifyState::Ready, status]);
}

/// Loading is so far.
pub fn loading(config: &Config, progress: &str) {
    tell(config, &[NotifyState::Status(progress)]);
}

/// The server stops.
pub fn stopping(config: &Config) {
    let status = NotifyState::Status("Saving and stopping");
    tell(config, &[NotifyState::Stopping, status]);
}
