//! Long replies at a terminal, a screen at a time.
//!
//! `$PAGER` shows them, or `less`; where neither starts they are written as they are. What fits on
//! the screen is written as it is too.

use crate::out::put;
use console::Term;
use std::io::Write;
use std::process::{Command, Stdio};

/// Rows kept for the prompt and the command above it.
const ROWS_KEPT: usize = 2;

/// Shows a text, paged if it is longer than the screen.
pub fn show(text: &[u8]) {
    let rows = rows();
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    if rows == 0 || lines + ROWS_KEPT <= rows || !through_pager(text) {
        put(text);
    }
}

fn through_pager(text: &[u8]) -> bool {
    let line = std::env::var("PAGER").unwrap_or_default();
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or("less");
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Colours stay colours, the text stays on the screen, one that fits after all just passes.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    if let Some(mut stdin) = child.stdin.take() {
        // Who leaves the pager early has read enough.
        let _ = stdin.write_all(text);
    }
    child.wait().is_ok()
}

fn rows() -> usize {
    Term::stdout()
        .size_checked()
        .map_or(0, |(rows, _)| usize::from(rows))
}
