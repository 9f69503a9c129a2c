//! Where commands come from when nobody types them: the command line and standard input.

use crate::command::{Repeat, Runner};
use crate::listen::Keys;
use crate::options::Options;
use crate::out::{Failure, Outcome, complain, from_terminal, put};
use crate::{help, words};
use rustyline::config::{ColorMode, Config};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::MemHistory;
use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// The command of the command line, with what it takes from standard input.
pub fn arguments(options: &Options) -> Result<Vec<Vec<u8>>, Failure> {
    let mut words = options.words();
    if options.last_from_stdin && options.tag_from_stdin.is_some() {
        return Err(Failure::Line(
            "Options -x and -X are mutually exclusive.".to_owned(),
        ));
    }
    if options.quoted_input {
        for word in &mut words {
            let Some(plain) = words::unquote(word) else {
                put("Invalid quoted string\n");
                return Err(Failure::Said);
            };
            *word = plain;
        }
    }
    if options.last_from_stdin {
        words.push(all_of_stdin()?);
    }
    if let Some(tag) = &options.tag_from_stdin {
        let tag = tag.clone().into_vec();
        let Some(word) = words.iter_mut().find(|word| **word == tag) else {
            return Err(Failure::Line(
                "Using -X option but stdin tag not match.".to_owned(),
            ));
        };
        *word = all_of_stdin()?;
    }
    Ok(words)
}

fn all_of_stdin() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::Line(format!("Error reading input: {error}"))),
    }
}

/// Runs the lines of standard input as commands. One that fails does not keep the next from
/// running, over a new connection if need be.
pub fn commands(runner: &mut Runner) -> Outcome {
    if let Err(line) = runner.session.connect() {
        complain(line);
    }
    // There is no one command whose failure the exit status could tell.
    runner.style.fail_on_error = false;
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdin.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(Failure::Line(format!("Error reading input: {error}"))),
        }
        match Line::read(&line) {
            Line::Empty => {}
            Line::Quit => return Ok(()),
            Line::Invalid => put("Invalid argument(s)\n"),
            Line::Clear => put("\x1b[H\x1b[2J"),
            Line::Connect(host, port) => {
                runner.session.move_to(&host, &port);
                if let Err(line) = runner.session.connect() {
                    complain(line);
                }
            }
            Line::Help(topic) => put(help::page(&runner.docs(), &topic, runner.style.colour)),
            Line::Restart => put("Use 'restart' only in Lua debugging mode.\n"),
            Line::Times => put("Invalid tidemill-cli repeat command option value.\n"),
            Line::Setting(words) => {
                // What can be set is the prompt's.
                if words.first().is_none_or(|word| word != ":set") {
                    put(unknown_internal(&words));
                }
            }
            Line::Command(times, words) => run(runner, times, &words),
        }
    }
}

/// The complaint about a word that begins with a colon.
pub fn unknown_internal(words: &[String]) -> String {
    let word = words.first().map_or("", String::as_str);
    format!("unknown tidemill-cli internal command '{word}'\n")
}

/// Runs a line's command so many times; failures are said.
pub fn run(runner: &mut Runner, times: u64, words: &[Vec<u8>]) {
    let repeat = Repeat {
        times: Some(times),
        interval: Duration::ZERO,
    };
    match runner.repeat(words, repeat) {
        Ok(()) | Err(Failure::Said) => {}
        Err(Failure::Line(line)) => complain(line),
    }
}

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Empty,
    /// Its quotes are wrong.
    Invalid,
    Quit,
    Clear,
    Connect(String, String),
    Restart,
    /// A page about these words.
    Help(Vec<String>),
    /// A number of times that cannot be.
    Times,
    /// Something about the tool itself: its first word begins with a colon.
    Setting(Vec<String>),
    /// How often, and what.
    Command(u64, Vec<Vec<u8>>),
}

impl Line {
    pub fn read(line: &[u8]) -> Self {
        let Some(mut words) = words::split(line) else {
            return Self::Invalid;
        };
        let Some(first) = words.first() else {
            return Self::Empty;
        };
        let times: Option<i64> = std::str::from_utf8(first).ok().and_then(|t| t.parse().ok());
        let name = first.to_ascii_lowercase();
        match (name.as_slice(), words.len()) {
            (b"quit" | b"exit", 1) => Self::Quit,
            (b"clear", 1) => Self::Clear,
            (b"help" | b"?", _) => {
                let words = words[1..].iter();
                Self::Help(
                    words
                        .map(|w| String::from_utf8_lossy(w).into_owned())
                        .collect(),
                )
            }
            (b"connect", 3) => {
                let text = |at: usize| String::from_utf8_lossy(&words[at]).into_owned();
                Self::Connect(text(1), text(2))
            }
            (b"restart", 1) => Self::Restart,
            ([b':', ..], _) => {
                let words = words.iter();
                Self::Setting(
                    words
                        .map(|w| String::from_utf8_lossy(w).into_owned())
                        .collect(),
                )
            }
            (_, length) if length > 1 && times.is_some() => {
                words.remove(0);
                match times.and_then(|times| u64::try_from(times).ok()) {
                    Some(times) if times > 0 => Self::Command(times, words),
                    _ => Self::Times,
                }
            }
            _ => Self::Command(1, words),
        }
    }
}

/// Asks for a password, which shows as stars; where input is no terminal it is the first line.
pub fn password(prompt: &str) -> Result<String, Failure> {
    let read = if from_terminal() {
        masked(prompt).map_err(|error| error.to_string())
    } else {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map(|_| line).map_err(|error| error.to_string())
    };
    match read {
        Ok(line) => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => Err(Failure::Line(format!(
            "Error reading the password: {error}"
        ))),
    }
}

fn masked(prompt: &str) -> rustyline::Result<String> {
    // Where the editor does not know the terminal, nothing shows at all.
    let _silent = Keys::watch();
    // The stars are a colour to the editor: without colours it would show the password.
    let config = Config::builder().color_mode(ColorMode::Forced);
    let config = config.auto_add_history(false).build();
    let mut editor =
        rustyline::Editor::<Mask, MemHistory>::with_history(config, MemHistory::new())?;
    editor.set_helper(Some(Mask));
    editor.readline(prompt)
}

/// Shows stars for what is typed.
struct Mask;

impl rustyline::Helper for Mask {}

impl rustyline::validate::Validator for Mask {}

impl rustyline::hint::Hinter for Mask {
    type Hint = String;
}

impl rustyline::completion::Completer for Mask {
    type Candidate = String;
}

impl Highlighter for Mask {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned("*".repeat(line.chars().count()))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_for_the_tool_itself() {
        let words = |text: &str| {
            text.split(' ')
                .map(|word| word.into())
                .collect::<Vec<Vec<u8>>>()
        };
        assert_eq!(Line::read(b" \n"), Line::Empty);
        assert_eq!(Line::read(b"QUIT\n"), Line::Quit);
        assert_eq!(Line::read(b"get \"a\n"), Line::Invalid);
        assert_eq!(Line::read(b"3 incr n"), Line::Command(3, words("incr n")));
        assert_eq!(Line::read(b"3"), Line::Command(1, words("3")));
        assert_eq!(
            Line::read(b"connect a 1"),
            Line::Connect("a".into(), "1".into())
        );
        assert_eq!(
            Line::read(b"connect a"),
            Line::Command(1, words("connect a"))
        );
    }
}
