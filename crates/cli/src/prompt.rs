//! The prompt: lines with history, completion and hints, run as commands.

mod helper;
mod secrets;

use crate::command::Runner;
use crate::input::{self, Line, unknown_internal};
use crate::options::Options;
use crate::out::{Failure, Outcome, complain, put};
use crate::session::Place;
use crate::{help, pager, views, wait};
use helper::PromptHelper;
use rustyline::Editor;
use rustyline::config::{ColorMode, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

/// Lines of history that are kept.
const HISTORY_MAX: usize = 10_000;

type LineEditor = Editor<PromptHelper, FileHistory>;

/// Reads and runs lines until `quit`.
pub fn run(mut runner: Runner, options: &Options) -> Outcome {
    // Ctrl-C ends a command that runs, not the program.
    wait::catch();
    runner.interactive = true;
    runner.style.page = !options.no_pager && crate::out::to_terminal();
    runner.style.fail_on_error = false;
    if let Err(line) = runner.session.connect() {
        complain(line);
    }
    let docs = runner.docs();
    let colour = runner.style.colour;
    let runner = Rc::new(RefCell::new(runner));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .color_mode(if colour {
            ColorMode::Enabled
        } else {
            ColorMode::Disabled
        })
        .auto_add_history(false)
        .max_history_size(HISTORY_MAX)
        .map_err(failure)?
        .build();
    let mut editor = LineEditor::with_config(config).map_err(failure)?;
    editor.set_helper(Some(PromptHelper {
        docs,
        hints: Cell::new(true),
        runner: Rc::clone(&runner),
        prompt_width: Cell::default(),
        line: RefCell::default(),
    }));
    let history = history_file();
    if let Some(file) = &history {
        // The first time there is none.
        let _ = editor.load_history(file);
    }
    let mut prompt = Prompt {
        editor,
        runner,
        history,
        options,
    };
    prompt.preferences();
    prompt.lines()
}

fn failure(error: ReadlineError) -> Failure {
    Failure::Line(format!("Error reading input: {error}"))
}

/// The file of the history: named by the environment, or in the home folder. `/dev/null` is none.
fn history_file() -> Option<PathBuf> {
    own_file("HISTFILE", ".tidemillcli_history")
}

fn own_file(variable: &str, name: &str) -> Option<PathBuf> {
    let named = |prefix: &str| std::env::var_os(format!("{prefix}_{variable}"));
    let path = match named("TIDEMILLCLI").or_else(|| named("REDISCLI")) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME")?).join(name),
    };
    (path.as_os_str() != "/dev/null" && !path.as_os_str().is_empty()).then_some(path)
}

struct Prompt<'a> {
    editor: LineEditor,
    runner: Rc<RefCell<Runner>>,
    history: Option<PathBuf>,
    options: &'a Options,
}

impl Prompt<'_> {
    fn lines(&mut self) -> Outcome {
        loop {
            let text = self.text();
            if let Some(helper) = self.editor.helper() {
                helper.prompt_width.set(text.chars().count());
            }
            match self.editor.readline(&text) {
                Ok(line) => {
                    self.remember(&line);
                    if self.obey(&line).is_break() {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {
                    // On an empty line it ends the tool, otherwise the line.
                    let helper = self.editor.helper();
                    if helper.is_none_or(|helper| helper.line.borrow().trim().is_empty()) {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(failure(error)),
            }
            if let Some(helper) = self.editor.helper() {
                helper.line.borrow_mut().clear();
            }
            // Ctrl-C that came too late for a command is not for the next one.
            wait::interrupted();
        }
    }

    fn text(&self) -> String {
        let runner = self.runner.borrow();
        let session = &runner.session;
        if session.as_fd().is_none() {
            return "not connected> ".to_owned();
        }
        let mut text = match &session.place {
            Place::Unix(path) => format!("redis {path}"),
            place => place.to_string(),
        };
        if session.db != 0 {
            text += &format!("[{}]", session.db);
        }
        if session.in_multi {
            text += "(TX)";
        }
        if runner.subscribed {
            text += "(subscribed mode)";
        }
        text + "> "
    }

    fn remember(&mut self, line: &str) {
        if line.trim().is_empty() || secrets::holds_secret(line) {
            return;
        }
        // Without a place to write to there is no history, and that is all.
        let _ = self.editor.add_history_entry(line);
        if let Some(file) = &self.history {
            let _ = self.editor.append_history(file);
        }
    }

    fn obey(&mut self, line: &str) -> std::ops::ControlFlow<()> {
        match Line::read(line.as_bytes()) {
            Line::Empty => {}
            Line::Invalid => put("Invalid argument(s)\n"),
            Line::Quit => return std::ops::ControlFlow::Break(()),
            Line::Clear => put("\x1b[H\x1b[2J"),
            Line::Restart => put("Use 'restart' only in Lua debugging mode.\n"),
            Line::Times => put("Invalid tidemill-cli repeat command option value.\n"),
            Line::Help(topic) => self.help(&topic),
            Line::Setting(words) => self.internal(&words, line),
            Line::Connect(host, port) => {
                let mut runner = self.runner.borrow_mut();
                runner.session.move_to(&host, &port);
                runner.subscribed = false;
                if let Err(line) = runner.session.connect() {
                    complain(line);
                }
            }
            Line::Command(times, words) => {
                let mut runner = self.runner.borrow_mut();
                input::run(&mut runner, times, &words);
                // A server that went away may be back, or another may take its place.
                if runner.session.as_fd().is_none()
                    && let Err(line) = runner.session.connect()
                {
                    complain(line);
                }
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    fn help(&self, topic: &[String]) {
        if let Some(helper) = self.editor.helper() {
            let runner = self.runner.borrow();
            let page = help::page(&helper.docs, topic, runner.style.colour);
            match runner.style.page {
                true => pager::show(page.as_bytes()),
                false => put(page),
            }
        }
    }

    /// Lines of the file of preferences, which are settings.
    fn preferences(&mut self) {
        let file = own_file("RCFILE", ".tidemillclirc");
        let text = file.and_then(|file| std::fs::read_to_string(file).ok());
        for line in text.unwrap_or_default().lines() {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            if !words.is_empty() {
                self.internal(&words, line);
            }
        }
    }

    /// What begins with a colon is for the tool.
    fn internal(&mut self, words: &[String], line: &str) {
        let rest = &words[1..];
        match words[0].to_ascii_lowercase().as_str() {
            ":set" => self.set(rest),
            ":watch" => {
                let (interval, command) = views::watch::arguments(line);
                self.view(|runner| views::watch::run(runner, &command, interval));
            }
            ":streams" => {
                let pattern = rest.first().map(|text| text.clone().into_bytes());
                self.view(|runner| views::streams::run(runner, pattern, None));
            }
            ":tree" => {
                let delimiter = rest.first().map_or(":", String::as_str).to_owned();
                let options = self.options;
                self.view(|runner| views::tree::run(runner, options, &delimiter));
            }
            _ => put(unknown_internal(words)),
        }
    }

    fn view(&self, show: impl FnOnce(&mut Runner) -> Outcome) {
        let mut runner = self.runner.borrow_mut();
        let shown = match runner.session.connect() {
            Ok(()) => show(&mut runner),
            Err(line) => Err(Failure::Line(line)),
        };
        if let Err(Failure::Line(line)) = shown {
            complain(line);
        }
    }

    fn set(&mut self, words: &[String]) {
        let Some(word) = words.first() else { return };
        match word.to_ascii_lowercase().as_str() {
            setting @ ("hints" | "nohints") => {
                if let Some(helper) = self.editor.helper() {
                    helper.hints.set(setting == "hints");
                }
            }
            setting @ ("pager" | "nopager") => {
                self.runner.borrow_mut().style.page = setting == "pager";
            }
            _ => put(format!("unknown tidemill-cli preference '{word}'\n")),
        }
    }
}
