//! Where text goes: standard output and error, terminals or not.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Why a run ends early.
#[derive(Debug)]
pub enum Failure {
    /// It has been said; only the exit status is left.
    Said,
    /// A line for standard error.
    Line(String),
}

impl From<String> for Failure {
    fn from(line: String) -> Self {
        Self::Line(line)
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        Self::Line(format!("Error: {}", error_text(&error)))
    }
}

/// What a run comes to.
pub type Outcome = Result<(), Failure>;

/// A failure of the connection in Redis's words, where it has any.
pub fn error_text(error: &client::Error) -> String {
    match error {
        client::Error::Closed => "Server closed the connection".to_owned(),
        client::Error::Protocol(error) => format!("Protocol error, {}", error.0),
        client::Error::Io(error) => io_text(error),
        other => other.to_string(),
    }
}

/// The system's words for an error, without what Rust puts around them.
pub fn io_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text
        .strip_prefix("failed to lookup address information: ")
        .unwrap_or(&text);
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// Writes to standard output at once. Where nobody reads any more the program ends, as it does by
/// signal where programs do not look.
pub fn put(bytes: impl AsRef<[u8]>) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes.as_ref()).and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(1);
    }
}

/// A line to standard error.
pub fn complain(line: impl AsRef<str>) {
    // Nobody is left to be told where this fails.
    let _ = writeln!(std::io::stderr(), "{}", line.as_ref());
}

/// Whether standard output is a terminal. FAKETTY in the environment says so too, as in Redis.
pub fn to_terminal() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| std::io::stdout().is_terminal() || std::env::var_os("FAKETTY").is_some())
}

/// Whether standard input is a terminal.
pub fn from_terminal() -> bool {
    std::io::stdin().is_terminal()
}
