//! `tidemill-cli`: a command line tool for Tidemill and every other server that speaks RESP.
//!
//! It stands in for Redis's tool: its options, its modes, its output to the byte where that is
//! sensible, its exit statuses. What it adds is for people: colours, a pager, views that are kept
//! fresh. All of that is at a terminal only; into a pipe goes plain text.
//!
//! # Reading order
//! [`options`] says what can be asked for, [`session`] keeps a connection, [`command`] runs a
//! command over it and [`render`] writes the reply; [`modes`] are what is no single command.
#![forbid(unsafe_code)]

mod command;
mod docs;
mod help;
mod highlight;
mod input;
mod listen;
mod modes;
mod options;
mod out;
mod pager;
mod prompt;
mod render;
mod session;
mod uri;
mod views;
mod wait;
mod words;

use command::{Repeat, Runner, Style};
use options::{Instead, Options, leading_integer};
use out::{Failure, Outcome, complain, put};
use session::Session;
use std::process::ExitCode;

const PASSWORD_WARNING: &str = "Warning: Using a password with '-a' or '-u' option on the command \
    line interface may not be safe.";

fn main() -> ExitCode {
    let mut options = match Options::read(std::env::args_os()) {
        Ok(options) => options,
        Err(Instead::Print(text)) => {
            put(text);
            return ExitCode::SUCCESS;
        }
        Err(Instead::Refuse(text)) => {
            complain(text.trim_end());
            return ExitCode::FAILURE;
        }
    };
    match run(&mut options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Said) => ExitCode::FAILURE,
        Err(Failure::Line(line)) => {
            complain(line);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &mut Options) -> Outcome {
    options.apply_uri()?;
    if options.resp2 && options.resp3 {
        return Err(Failure::Line(
            "Options -2 and -3 are mutually exclusive.".to_owned(),
        ));
    }
    if options.cluster.is_some() {
        return Err(Failure::Line(
            "Managing clusters (--cluster) is not there yet. Redis's own tool does it.".to_owned(),
        ));
    }
    if options.ldb || options.ldb_sync_mode {
        return Err(Failure::Line(
            "The debugger of Lua scripts (--ldb) is not there. Redis's own tool has one."
                .to_owned(),
        ));
    }
    if options.askpass {
        options.password = Some(input::password("Please input password: ")?);
    } else if options.password.is_some() && !options.no_auth_warning {
        complain(PASSWORD_WARNING);
    }
    if options.intrinsic_latency.is_some() {
        return modes::latency::intrinsic(options);
    }
    let mut session = Session::new(options)?;
    let style = Style::new(options);
    if let Some(mode) = Mode::asked(options) {
        session.connect()?;
        return mode.run(&mut session, options, &style);
    }
    let mut runner = Runner::new(session, style);
    if let Some(file) = options.eval.clone() {
        runner.session.connect()?;
        return modes::script::run(&mut runner, options, &file);
    }
    let words = input::arguments(options)?;
    if options.watch {
        runner.session.connect()?;
        return views::watch::run(&mut runner, &words, options.interval());
    }
    if options.streams {
        runner.session.connect()?;
        return views::streams::run(&mut runner, None, Some((words, options)));
    }
    if let Some(delimiter) = &options.tree {
        runner.session.connect()?;
        return views::tree::run(&mut runner, options, delimiter);
    }
    if words.is_empty() {
        return match out::from_terminal() {
            true => prompt::run(runner, options),
            false => input::commands(&mut runner),
        };
    }
    if words[0].eq_ignore_ascii_case(b"help") || words[0] == b"?" {
        // Without a server there is still our own copy.
        let _ = runner.session.connect();
        let topic: Vec<String> = words[1..]
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        put(help::page(&runner.docs(), &topic, runner.style.colour));
        return Ok(());
    }
    runner.repeat(&words, Repeat::new(options))
}

/// What runs over a connection instead of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Latency,
    LatencyHistory,
    LatencyDist,
    Replica,
    Rdb,
    FunctionsRdb,
    Pipe,
    Stat,
    BigKeys,
    MemKeys,
    KeyStats,
    HotKeys,
    Scan,
    LruTest,
}

impl Mode {
    fn asked(options: &Options) -> Option<Self> {
        let modes = [
            (options.latency, Self::Latency),
            (options.latency_history, Self::LatencyHistory),
            (options.latency_dist, Self::LatencyDist),
            (options.replica, Self::Replica),
            (options.rdb.is_some(), Self::Rdb),
            (options.functions_rdb.is_some(), Self::FunctionsRdb),
            (options.pipe, Self::Pipe),
            (options.bigkeys, Self::BigKeys),
            (
                options.memkeys || options.memkeys_samples.is_some(),
                Self::MemKeys,
            ),
            (
                options.keystats || options.keystats_samples.is_some(),
                Self::KeyStats,
            ),
            (options.hotkeys, Self::HotKeys),
            (options.stat, Self::Stat),
            (options.scan, Self::Scan),
            (options.lru_test.is_some(), Self::LruTest),
        ];
        modes
            .iter()
            .find(|(asked, _)| *asked)
            .map(|(_, mode)| *mode)
    }

    fn run(self, session: &mut Session, options: &Options, style: &Style) -> Outcome {
        use modes::keys::Measure;
        let samples = |text: &Option<String>| text.as_deref().map(leading_integer);
        match self {
            Self::Latency => modes::latency::run(session, options, style.format, false),
            Self::LatencyHistory => modes::latency::run(session, options, style.format, true),
            Self::LatencyDist => modes::latency::spectrum(session, options),
            Self::Replica => modes::replica::run(session),
            Self::Rdb | Self::FunctionsRdb => {
                let functions = self == Self::FunctionsRdb;
                let file = if functions {
                    &options.functions_rdb
                } else {
                    &options.rdb
                };
                let file = file.as_deref().unwrap_or_else(|| "-".as_ref());
                modes::snapshot::run(session, file, functions)
            }
            Self::Pipe => modes::pipe::run(session, options),
            Self::Stat => modes::stat::run(session, options),
            Self::BigKeys => modes::keys::run(session, options, Measure::Elements),
            Self::MemKeys => {
                let measure = Measure::Memory(samples(&options.memkeys_samples));
                modes::keys::run(session, options, measure)
            }
            Self::KeyStats => {
                modes::keystats::run(session, options, samples(&options.keystats_samples))
            }
            Self::HotKeys => modes::hotkeys::run(session, options),
            Self::Scan => modes::scan::run(session, options, style),
            Self::LruTest => modes::cache::run(session, options),
        }
    }
}
