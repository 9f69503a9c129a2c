//! One command: sent, answered, shown, and what it changes about the session.

use crate::docs::Docs;
use crate::listen::{self, End};
use crate::options::{Options, leading_integer, seconds};
use crate::out::{Failure, Outcome, complain, put, to_terminal};
use crate::render::{Delimiters, Format, formatted, render, render_text};
use crate::session::{Credentials, Lost, Session};
use crate::{highlight, modes, pager, wait};
use client::{Error, Reply};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// How replies are shown.
#[derive(Clone, Debug)]
pub struct Style {
    pub format: Format,
    pub delimiters: Delimiters,
    pub show_pushes: bool,
    pub fail_on_error: bool,
    pub colour: bool,
    /// A screen at a time: at the prompt.
    pub page: bool,
}

impl Style {
    /// From the command line.
    pub fn new(options: &Options) -> Self {
        let format = match options {
            _ if options.quoted_json => Format::QuotedJson,
            _ if options.json => Format::Json,
            _ if options.csv => Format::Csv,
            _ if options.raw => Format::Raw,
            _ if options.no_raw || to_terminal() => Format::Formatted,
            _ => Format::Raw,
        };
        let mut delimiters = Delimiters::default();
        for (ours, theirs) in [
            (&mut delimiters.element, &options.element_delimiter),
            (&mut delimiters.reply, &options.reply_delimiter),
        ] {
            if let Some(text) = theirs {
                *ours = text.clone().into_vec();
            }
        }
        let plain = options.no_color || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            format,
            delimiters,
            show_pushes: shows_pushes(options),
            fail_on_error: options.fail_on_error,
            colour: to_terminal() && !plain && format == Format::Formatted,
            page: false,
        }
    }

    /// Shows a reply; `as_text` is for those that are a text of their own in every format.
    pub fn show(&self, reply: &Reply, as_text: bool) {
        let bytes = match as_text {
            true => render_text(reply, self.format, &self.delimiters),
            false if self.colour => highlight::reply(reply),
            false => render(reply, self.format, &self.delimiters),
        };
        match self.page {
            true => pager::show(&bytes),
            false => put(bytes),
        }
    }

    /// Shows a message that came by itself.
    pub fn show_push(&self, push: &Reply) {
        let keys = push.elements().and_then(|elements| match elements {
            [kind, keys] if kind.bytes() == Some(b"invalidate") => keys.elements(),
            _ => None,
        });
        match keys {
            Some(keys) if self.format == Format::Formatted => {
                let mut line = b"-> invalidate: ".to_vec();
                for (at, key) in keys.iter().enumerate() {
                    let comma: &[u8] = if at > 0 { b", '" } else { b"'" };
                    line.extend(comma);
                    line.extend(key.bytes().unwrap_or_default());
                    line.push(b'\'');
                }
                line.push(b'\n');
                put(line);
            }
            _ => put(render(push, self.format, &self.delimiters)),
        }
    }
}

fn shows_pushes(options: &Options) -> bool {
    match options.show_pushes.as_deref() {
        Some(text) if text.starts_with(['y', 'Y']) => true,
        Some(text) if text.starts_with(['n', 'N']) => false,
        Some(text) => {
            complain(format!(
                "Unknown --show-pushes value '{text}' (valid: '[y]es', '[n]o')"
            ));
            false
        }
        None => to_terminal(),
    }
}

/// How often a command runs.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// `None` is for ever.
    pub times: Option<u64>,
    pub interval: Duration,
}

impl Repeat {
    /// From the command line: once, unless it says otherwise.
    pub fn new(options: &Options) -> Self {
        let times = options.repeat.as_deref().map_or(1, leading_integer);
        Self {
            times: u64::try_from(times).ok(),
            interval: options.interval.as_deref().map_or(Duration::ZERO, seconds),
        }
    }
}

/// Which replies the server keeps to itself, as CLIENT REPLY told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mute {
    No,
    /// The next command has none.
    Next,
    Off,
}

/// Runs commands over a session.
pub struct Runner {
    pub session: Session,
    pub style: Style,
    /// A person at a prompt: Ctrl-C ends the command and not the program.
    pub interactive: bool,
    /// Channels and patterns are listened to.
    pub subscribed: bool,
    mute: Mute,
}

impl Runner {
    pub fn new(session: Session, style: Style) -> Self {
        Self {
            session,
            style,
            interactive: false,
            subscribed: false,
            mute: Mute::No,
        }
    }

    /// What the server says of its commands, or our copy of it.
    pub fn docs(&mut self) -> Docs {
        let free = self.session.as_fd().is_some() && self.is_heard() && !self.session.in_multi;
        let live = match free {
            true => self.session.call(&["COMMAND", "DOCS"]).ok(),
            false => None,
        };
        live.as_ref()
            .and_then(Docs::read)
            .unwrap_or_else(Docs::offline)
    }

    /// Whether the server answers.
    pub fn is_heard(&self) -> bool {
        self.mute == Mute::No
    }

    /// Runs a command as often as asked for.
    pub fn repeat(&mut self, args: &[Vec<u8>], repeat: Repeat) -> Outcome {
        let mut done = 0;
        while repeat.times.is_none_or(|times| done < times) {
            self.session.connect().map_err(Failure::Line)?;
            self.run(args)?;
            done += 1;
            let more = repeat.times.is_none_or(|times| done < times);
            if more && !repeat.interval.is_zero() && !wait::pause(repeat.interval) {
                return Err(Failure::Said);
            }
        }
        Ok(())
    }

    /// Runs a command once, over a connection that is there.
    pub fn run(&mut self, args: &[Vec<u8>]) -> Outcome {
        let result = self.attempt(args);
        match result {
            Err(Failure::Line(_)) => {
                self.session.disconnect();
                self.subscribed = false;
                self.mute = Mute::No;
            }
            Err(Failure::Said) | Ok(()) => {}
        }
        result
    }

    fn attempt(&mut self, args: &[Vec<u8>]) -> Outcome {
        let name = args[0].to_ascii_lowercase();
        match name.as_slice() {
            b"subscribe" | b"psubscribe" | b"ssubscribe" | b"unsubscribe" | b"punsubscribe"
            | b"sunsubscribe"
                if !self.session.in_multi =>
            {
                return self.subscribe(&name, args);
            }
            b"monitor" if !self.session.in_multi => return self.monitor(args),
            b"sync" | b"psync" => {
                self.session.send(args)?;
                put("Entering replica output mode...  (press Ctrl-C to quit)\n");
                return modes::replica::follow(&mut self.session);
            }
            _ => {}
        }
        if let Some(()) = self.without_reply(args)? {
            return Ok(());
        }
        let answer = match self.subscribed && !self.session.resp3 {
            true => self.answer_among_messages(args),
            false => self.session.call(args),
        };
        let reply = match answer {
            Ok(reply) => reply,
            Err(Lost::Connection(Error::Closed)) if name == b"shutdown" => {
                self.session.disconnect();
                return Ok(());
            }
            Err(Lost::Interrupted) => {
                // The reply would be taken for the next command's.
                self.session.disconnect();
                put("\n");
                return Err(Failure::Said);
            }
            Err(Lost::Connection(error)) => return Err(error.into()),
        };
        self.show_pushes();
        if let Some((slot, place)) = &self.session.redirected
            && self.interactive
        {
            put(format!(
                "-> Redirected to slot [{slot}] located at {place}\n"
            ));
        }
        self.follow_state(&name, args, &reply);
        if self.style.fail_on_error
            && let Reply::Error(text) = &reply
        {
            complain(String::from_utf8_lossy(text));
            return Err(Failure::Said);
        }
        self.style.show(&reply, is_text(&name, args));
        match self.subscribed {
            true => self.listen(None),
            false => Ok(()),
        }
    }

    /// The reply to a command where RESP2 mixes it with messages, which are shown.
    fn answer_among_messages(&mut self, args: &[Vec<u8>]) -> Result<Reply, Lost> {
        self.session.send(args)?;
        loop {
            let reply = self.session.reply()?;
            let kind = reply
                .elements()
                .and_then(|elements| elements.first()?.bytes());
            match kind {
                Some(b"message" | b"pmessage" | b"smessage") => self.style.show(&reply, false),
                _ => return Ok(reply),
            }
        }
    }

    /// Sends a command that the server does not answer, if this is one.
    fn without_reply(&mut self, args: &[Vec<u8>]) -> Result<Option<()>, Failure> {
        let is = |at: usize, word: &str| {
            args.get(at)
                .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
        };
        let asked = match () {
            () if !(is(0, "client") && is(1, "reply") && args.len() == 3) => None,
            () if is(2, "off") => Some(Mute::Off),
            () if is(2, "skip") => Some(Mute::Next),
            () if is(2, "on") => Some(Mute::No),
            () => None,
        };
        match (asked, self.mute) {
            (Some(Mute::No), _) => {
                self.mute = Mute::No;
                return Ok(None);
            }
            (Some(mute), _) => self.mute = mute,
            (None, Mute::No) => return Ok(None),
            (None, Mute::Next) => self.mute = Mute::No,
            (None, Mute::Off) => {}
        }
        self.session.send(args)?;
        Ok(Some(()))
    }

    /// Shows the pushes that have come, if they are to be shown.
    pub fn show_pushes(&mut self) {
        for push in self.session.take_pushes() {
            if self.style.show_pushes {
                self.style.show_push(&push);
            }
        }
    }

    fn subscribe(&mut self, name: &[u8], args: &[Vec<u8>]) -> Outcome {
        self.session.send(args)?;
        let ends = name.starts_with(b"un") || name[1..].starts_with(b"un");
        let expected = (args.len() - 1).max(1);
        self.listen(ends.then_some(expected))
    }

    fn listen(&mut self, leaving: Option<usize>) -> Outcome {
        let end = listen::messages(self, leaving)?;
        self.subscribed = end == End::Key;
        match end {
            End::Interrupted if self.interactive => {
                put("Closing current connection. Ready to reconnect to Redis server... \n");
                self.session.disconnect();
                Ok(())
            }
            End::Interrupted => Err(Failure::Said),
            End::Key | End::Over => Ok(()),
        }
    }

    fn monitor(&mut self, args: &[Vec<u8>]) -> Outcome {
        let reply = self.session.call(args)?;
        let refused = reply.is_error();
        self.style.show(&reply, false);
        if refused {
            return Ok(());
        }
        loop {
            match self.session.receive() {
                Ok(reply) => self.style.show(&reply, false),
                Err(Lost::Interrupted) => {
                    self.session.disconnect();
                    return match self.interactive {
                        true => Ok(()),
                        false => Err(Failure::Said),
                    };
                }
                Err(Lost::Connection(error)) => return Err(error.into()),
            }
        }
    }

    /// Keeps what a new connection would have to be told.
    fn follow_state(&mut self, name: &[u8], args: &[Vec<u8>], reply: &Reply) {
        let session = &mut self.session;
        let queued = matches!(reply, Reply::Status(text) if text == b"QUEUED");
        match name {
            b"exec" | b"discard" => {
                let outside =
                    matches!(reply, Reply::Error(text) if text.ends_with(b"without MULTI"));
                session.in_multi &= outside;
            }
            _ if reply.is_error() || queued => {}
            b"multi" => session.in_multi = true,
            b"select" if args.len() == 2 => {
                session.db = leading_integer(&String::from_utf8_lossy(&args[1]));
            }
            b"auth" if args.len() >= 2 => {
                session.set_credentials(Credentials {
                    user: (args.len() == 3).then(|| args[1].clone()),
                    password: args[args.len() - 1].clone(),
                });
            }
            b"hello" if args.len() > 1 => {
                session.resp3 = args[1] == b"3";
                let auth = args
                    .iter()
                    .position(|arg| arg.eq_ignore_ascii_case(b"auth"));
                if let Some([user, password]) = auth.and_then(|at| args.get(at + 1..at + 3)) {
                    session.set_credentials(Credentials {
                        user: Some(user.clone()),
                        password: password.clone(),
                    });
                }
            }
            b"reset" => {
                session.resp3 = false;
                session.db = 0;
                session.in_multi = false;
                self.subscribed = false;
            }
            _ => {}
        }
    }
}

/// Commands whose reply is a text to be read, whatever the format.
pub fn is_text(name: &[u8], args: &[Vec<u8>]) -> bool {
    let second = args.get(1).map(|arg| arg.to_ascii_lowercase());
    let one_of = |words: &[&str]| {
        second
            .as_deref()
            .is_some_and(|second| words.iter().any(|word| word.as_bytes() == second))
    };
    match name {
        b"info" | b"lolwut" => true,
        b"debug" => one_of(&["htstats", "htstats-key"]),
        b"memory" => one_of(&["malloc-stats", "doctor"]),
        b"cluster" => one_of(&["nodes", "info"]) && args.len() == 2,
        b"client" => one_of(&["list", "info"]),
        b"latency" => one_of(&["graph", "doctor"]),
        b"proxy" => one_of(&["info"]),
        _ => false,
    }
}

/// An error of the server as a line for people, for modes that cannot go on.
pub fn refused(reply: &Reply) -> Failure {
    let mut text = Vec::new();
    match reply {
        Reply::Error(error) => text.extend(error),
        other => formatted(other, "", &mut text),
    }
    let text = String::from_utf8_lossy(&text);
    Failure::Line(format!("Error: {}", text.trim_end()))
}
