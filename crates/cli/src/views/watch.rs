//! `--watch` and `:watch`: a command that is run again and again, its reply redrawn.

use crate::command::{Runner, is_text};
use crate::options::seconds;
use crate::out::{Failure, Outcome, put, to_terminal};
use crate::render::{render, render_text};
use crate::{highlight, wait, words};
use console::Term;
use std::time::Duration;

/// Between two runs, unless said otherwise.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command until Ctrl-C. Where output is no terminal, replies follow one another.
pub fn run(runner: &mut Runner, command: &[Vec<u8>], interval: Option<Duration>) -> Outcome {
    if command.is_empty() {
        return Err(Failure::Line("What is to be watched?".to_owned()));
    }
    wait::catch();
    let interval = interval.filter(|wait| !wait.is_zero()).unwrap_or(INTERVAL);
    let title: Vec<String> = command.iter().map(|word| shown(word)).collect();
    let title = format!("Every {:.1}s: {}", interval.as_secs_f64(), title.join(" "));
    loop {
        runner.session.connect().map_err(Failure::Line)?;
        let reply = runner.session.call(command)?;
        let style = &runner.style;
        let text = match is_text(&command[0].to_ascii_lowercase(), command) {
            true => render_text(&reply, style.format, &style.delimiters),
            false if style.colour => highlight::reply(&reply),
            false => render(&reply, style.format, &style.delimiters),
        };
        match to_terminal() {
            true => put(screen(&title, &text, runner.style.colour)),
            false => put(text),
        }
        if !wait::pause(interval) {
            wait::interrupted();
            return Ok(());
        }
    }
}

/// A whole screen: what does not fit is left out, and said to be.
fn screen(title: &str, text: &[u8], colour: bool) -> Vec<u8> {
    let (rows, _) = Term::stdout().size();
    let room = usize::from(rows).saturating_sub(3).max(1);
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    // To the corner; each line is cleared as it is drawn, and what is below the last.
    let mut out = b"\x1b[H".to_vec();
    let (dim, reset) = match colour {
        true => (highlight::DIM, highlight::RESET),
        false => ("", ""),
    };
    out.extend(format!("{dim}{title}{reset}\x1b[K\n\x1b[K\n").bytes());
    for line in lines.iter().take(room) {
        out.extend(line.strip_suffix(b"\n").unwrap_or(line));
        out.extend(b"\x1b[K\n");
    }
    if lines.len() > room {
        out.extend(format!("{dim}... {} more lines{reset}\x1b[K", lines.len() - room).bytes());
    }
    out.extend(b"\x1b[J");
    out
}

fn shown(word: &[u8]) -> String {
    match !word.is_empty() && word.iter().all(u8::is_ascii_graphic) {
        true => String::from_utf8_lossy(word).into_owned(),
        false => words::quoted(word),
    }
}

/// The interval and the command of a line that begins with `:watch`.
pub fn arguments(line: &str) -> (Option<Duration>, Vec<Vec<u8>>) {
    let mut words = words::split(line.as_bytes()).unwrap_or_default();
    if !words.is_empty() {
        words.remove(0);
    }
    let first = words
        .first()
        .and_then(|word| std::str::from_utf8(word).ok());
    let interval = first
        .filter(|text| text.parse::<f64>().is_ok())
        .map(seconds);
    if interval.is_some() {
        words.remove(0);
    }
    (interval, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_may_come_before_the_command() {
        let words = |text: &str| {
            text.split(' ')
                .map(|word| word.into())
                .collect::<Vec<Vec<u8>>>()
        };
        assert_eq!(
            arguments(":watch 0.5 llen q"),
            (Some(Duration::from_millis(500)), words("llen q"))
        );
        assert_eq!(arguments(":watch llen q"), (None, words("llen q")));
        assert_eq!(arguments(":watch"), (None, vec![]));
    }
}
