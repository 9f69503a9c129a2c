//! Reading the configuration at start: the command line, files, and standard input.
//!
//! `[FILE] [--directive value...]... [-]`; the `-` may stand in the file's place, too. The file is
//! read first, then standard input, then the options; what comes later wins, but for `save`, whose
//! pairs add up until `save ""` clears them.
//! An option takes the argument after it even where that starts with two dashes (`--save` does
//! not), and further arguments until one does.
//!
//! # Invariants
//! - Nothing is started on a mistake: the first one ends the reading with one line that says
//!   where, which directive, and why.
//! - Files nest at most `DEPTH_MAX` deep, `FILES_MAX` in all, each of `BYTES_MAX` at most, so a
//!   file that includes itself ends with an error.
//!
//! # Why by hand?
//! Every directive is an option with any number of values; parsers of declared options fit badly.

use super::directive::Effect;
use super::renames::Renames;
use super::value::{Value, system_text};
use super::{Config, agree, glob, line, row, supported, system, table};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The version of Redis whose behaviour is offered.
pub const REDIS_VERSION: &str = "8.10.2";

const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 1024;
const BYTES_MAX: u64 = 16 << 20;
/// Characters of a directive that an error message shows.
const SHOWN_MAX: usize = 80;

/// What the command line asks for.
#[derive(Debug)]
pub enum Startup {
    /// Run a server.
    Run(Box<Loaded>),
    /// Print this to standard output and end with this status.
    Print { text: String, status: u8 },
}

/// A configuration to run with.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// The users that it declares.
    pub users: Vec<UserLine>,
    /// The commands that it names otherwise.
    pub renames: Renames,
    /// Lines to log as warnings: what was accepted and does less than it says.
    pub warnings: Vec<String>,
}

/// A user as the configuration declares it: its rules are read once the commands are known.
#[derive(Debug, PartialEq, Eq)]
pub struct UserLine {
    /// Where it stands, as in [`LoadError`].
    pub place: String,
    pub name: Vec<u8>,
    pub rules: Vec<Vec<u8>>,
}

/// A mistake in the configuration. Shown, it is one line.
#[derive(Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The file with the line, `standard input` with the line, or `command line`.
    pub place: String,
    /// The directive as it was written, without secrets. Empty where no directive is at fault.
    pub directive: String,
    pub reason: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadError {
            place,
            directive,
            reason,
        } = self;
        match directive.is_empty() {
            true => write!(f, "{place}: {reason}"),
            false => write!(f, "{place}: '{directive}': {reason}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads the configuration. `args` are the arguments after the program's name; `input` is read
/// only where the first or the last of them is `-`.
pub fn start(
    args: impl IntoIterator<Item = OsString>,
    input: &mut dyn Read,
) -> Result<Startup, LoadError> {
    let mut args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_vec).collect();
    if let [only] = args.as_slice() {
        match only.as_slice() {
            b"-v" | b"--version" => {
                return Ok(Startup::Print {
                    text: version(),
                    status: 0,
                });
            }
            b"-h" | b"--help" => {
                return Ok(Startup::Print {
                    text: HELP.into(),
                    status: 0,
                });
            }
            b"--check-system" => {
                let (text, sound) = system::check();
                return Ok(Startup::Print {
                    text,
                    status: u8::from(!sound),
                });
            }
            _ => {}
        }
    }
    let is_input = |arg: Option<&Vec<u8>>| arg.is_some_and(|arg| arg == b"-");
    let from_input = is_input(args.last()) || is_input(args.first());
    if is_input(args.last()) {
        args.pop();
    } else if from_input {
        args.remove(0);
    }
    let mut loader = Loader::new();
    let mut file = None;
    let mut options = args.as_slice();
    if let [first, rest @ ..] = options
        && !first.starts_with(b"-")
    {
        let path = PathBuf::from(OsStr::from_bytes(first));
        loader
            .file(&path, 0)
            .map_err(|problem| problem.or_at(&path))?;
        file = Some(std::path::absolute(&path).unwrap_or(path));
        options = rest;
    }
    if from_input {
        let place = |number| format!("standard input:{number}");
        let text = read_all(input).map_err(|reason| LoadError {
            place: "standard input".into(),
            directive: String::new(),
            reason,
        })?;
        loader.text(&text, &place, 0)?;
    }
    loader.options(options)?;
    loader
        .finish(file)
        .map(|loaded| Startup::Run(Box::new(loaded)))
}

/// A file that could not be read, or a mistake inside of it.
enum Problem {
    Unreadable(String),
    Inside(LoadError),
}

impl Problem {
    fn or_at(self, path: &Path) -> LoadError {
        match self {
            Problem::Inside(error) => error,
            Problem::Unreadable(reason) => LoadError {
                place: printable(path.as_os_str().as_bytes()),
                directive: String::new(),
                reason,
            },
        }
    }
}

struct Loader {
    values: Box<[Value]>,
    /// Places in the table of the directives that were set.
    set: Vec<usize>,
    users: Vec<UserLine>,
    renames: Renames,
    warnings: Vec<String>,
    files: usize,
}

impl Loader {
    fn new() -> Loader {
        Loader {
            values: Config::default().values,
            set: Vec::new(),
            users: Vec::new(),
            renames: Renames::default(),
            warnings: Vec::new(),
            files: 0,
        }
    }

    fn file(&mut self, path: &Path, depth: usize) -> Result<(), Problem> {
        self.files += 1;
        if depth > DEPTH_MAX || self.files > FILES_MAX {
            return Err(Problem::Unreadable(
                "files include each other too often".into(),
            ));
        }
        let text = std::fs::File::open(path)
            .map_err(|error| system_text(&error).into_owned())
            .and_then(|mut file| read_all(&mut file))
            .map_err(Problem::Unreadable)?;
        let shown = printable(path.as_os_str().as_bytes());
        let place = |number| format!("{shown}:{number}");
        self.text(&text, &place, depth).map_err(Problem::Inside)
    }

    fn text(
        &mut self,
        text: &[u8],
        place: &dyn Fn(usize) -> String,
        depth: usize,
    ) -> Result<(), LoadError> {
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let words = line::split(line);
            let reason = match &words {
                Some(words) => self.apply(words, &|| place(at + 1), depth).err(),
                None => Some("unbalanced quotes".into()),
            };
            if let Some(reason) = reason {
                let directive = match &words {
                    Some(words) => shown(words),
                    // The value may be a secret that only lacks its closing quote.
                    None => printable(line.split(u8::is_ascii_whitespace).next().unwrap_or(&[])),
                };
                return Err(reason.at(place(at + 1), directive));
            }
        }
        Ok(())
    }

    fn options(&mut self, args: &[Vec<u8>]) -> Result<(), LoadError> {
        let place = || "command line".to_string();
        let mut rest = args;
        while let [option, after @ ..] = rest {
            let fail = |reason: &str, directive: String| {
                Mistake::Here(reason.to_string()).at(place(), directive)
            };
            let Some(name) = option.strip_prefix(b"--") else {
                return Err(fail("an option starts with two dashes", printable(option)));
            };
            let Some(mut words) = line::split(name) else {
                return Err(fail("unbalanced quotes", printable(option)));
            };
            let is_option = |arg: &Vec<u8>| arg.starts_with(b"--");
            let save = words
                .first()
                .is_some_and(|name| name.eq_ignore_ascii_case(b"save"));
            let first = usize::from(words.len() == 1 && !save && !after.is_empty());
            let more = after[first..]
                .iter()
                .take_while(|arg| !is_option(arg))
                .count();
            words.extend_from_slice(&after[..first + more]);
            rest = &after[first + more..];
            if words.is_empty() {
                return Err(fail("an option has a name", printable(option)));
            }
            self.apply(&words, &place, 0)
                .map_err(|reason| reason.at(place(), format!("--{}", shown(&words))))?;
        }
        Ok(())
    }

    /// Applies one directive: its name and its words.
    fn apply(
        &mut self,
        words: &[Vec<u8>],
        place: &dyn Fn() -> String,
        depth: usize,
    ) -> Result<(), Mistake> {
        let [name, arguments @ ..] = words else {
            return Ok(());
        };
        let arguments: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        match name.to_ascii_lowercase().as_slice() {
            b"include" => match arguments.as_slice() {
                [path] => return self.include(path, depth),
                _ => return Err("wrong number of arguments".into()),
            },
            b"user" => {
                let [name, rules @ ..] = arguments.as_slice() else {
                    return Err("wrong number of arguments".into());
                };
                self.users.push(UserLine {
                    place: place(),
                    name: name.to_vec(),
                    rules: rules.iter().map(|rule| rule.to_vec()).collect(),
                });
                return Ok(());
            }
            b"loadmodule" | b"loadmodule-ex" => return Err("modules are not supported".into()),
            b"rename-command" => {
                let [old, new] = arguments.as_slice() else {
                    return Err("wrong number of arguments".into());
                };
                return self.renames.add(old, new).map_err(Mistake::from);
            }
            b"sentinel" => return Err("Sentinel mode is not supported yet".into()),
            b"help" | b"version" | b"check-system" | b"test-memory" => {
                return Err("must stand alone on the command line".into());
            }
            _ => {}
        }
        let (at, directive) = match row(name) {
            Some(found) => found,
            None => match foreign(name).ok_or("unknown directive")? {
                Some(ours) => row(ours.as_bytes()).expect("means one of ours"),
                None => {
                    let name = printable(name);
                    let text = "is a directive of another server and does nothing here";
                    self.warnings.push(format!("{}: '{name}' {text}", place()));
                    return Ok(());
                }
            },
        };
        let value = Value::parse(directive, &arguments, &self.values[at])
            .and_then(|value| supported(directive, value))
            .map_err(|reason| Mistake::Here(reason.into_owned()))?;
        self.values[at] = match (value, &self.values[at]) {
            (Value::SavePoints(new), Value::SavePoints(old))
                if !new.is_empty() && self.set.contains(&at) =>
            {
                Value::SavePoints(old.iter().chain(&new).copied().collect())
            }
            (value, _) => value,
        };
        if !self.set.contains(&at) {
            self.set.push(at);
        }
        Ok(())
    }

    fn include(&mut self, path: &[u8], depth: usize) -> Result<(), Mistake> {
        let base = match &self.values[table::find(b"dir").expect("in the table")] {
            Value::Text(dir) => PathBuf::from(OsStr::from_bytes(dir)),
            _ => PathBuf::new(),
        };
        let path = Path::new(OsStr::from_bytes(path));
        let paths = if glob::is_pattern(path.as_os_str().as_bytes()) {
            expand(&base.join(path))
        } else if base == Path::new(".") {
            vec![path.to_path_buf()]
        } else {
            vec![base.join(path)]
        };
        for path in paths {
            self.file(&path, depth + 1)
                .map_err(|problem| match problem {
                    Problem::Unreadable(reason) => Mistake::Here(reason),
                    Problem::Inside(error) => Mistake::Elsewhere(error),
                })?;
        }
        Ok(())
    }

    fn finish(mut self, file: Option<PathBuf>) -> Result<Loaded, LoadError> {
        agree(&self.values, &self.set).map_err(|(name, reason)| LoadError {
            place: file.as_ref().map_or("command line".into(), |file| {
                printable(file.as_os_str().as_bytes())
            }),
            directive: name.to_string(),
            reason: reason.into_owned(),
        })?;
        let defaults = Config::default().values;
        for (at, directive) in table::all().enumerate() {
            if !self.set.contains(&at) || directive.effect != Effect::Later {
                continue;
            }
            let name = directive.name;
            match (&self.values[at], name) {
                (Value::SavePoints(points), _) if points.is_empty() => {}
                (Value::SavePoints(_), _) | (Value::Switch(true), "appendonly") => {
                    self.warnings.push(format!(
                        "'{name}' is set, but persistence isn't there yet: nothing is written to \
                         disk, and all data is lost when the server stops"
                    ));
                }
                (value, _) if *value != defaults[at] => {
                    self.warnings
                        .push(format!("'{name}' is accepted, but does nothing yet"));
                }
                _ => {}
            }
        }
        let dir = table::find(b"dir").expect("in the table");
        if !self.set.contains(&dir)
            && let Ok(here) = std::env::current_dir()
        {
            self.values[dir] = Value::Text(here.into_os_string().into_vec().into());
        }
        Ok(Loaded {
            config: Config::of(self.values, file),
            users: self.users,
            renames: self.renames,
            warnings: self.warnings,
        })
    }
}

/// What is wrong with a directive, or with one in a file that it includes.
enum Mistake {
    Here(String),
    Elsewhere(LoadError),
}

impl From<&str> for Mistake {
    fn from(reason: &str) -> Mistake {
        Mistake::Here(reason.to_string())
    }
}

impl Mistake {
    fn at(self, place: String, directive: String) -> LoadError {
        match self {
            Mistake::Here(reason) => LoadError {
                place,
                directive,
                reason,
            },
            Mistake::Elsewhere(error) => error,
        }
    }
}

fn foreign(name: &[u8]) -> Option<Option<&'static str>> {
    let same = |each: &str| name.eq_ignore_ascii_case(each.as_bytes());
    table::FOREIGN
        .iter()
        .find(|(each, _)| same(each))
        .map(|(_, ours)| *ours)
}

fn read_all(input: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    input
        .take(BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| system_text(&error).into_owned())?;
    match u64::try_from(text.len()) {
        Ok(length) if length <= BYTES_MAX => Ok(text),
        _ => Err("more than 16 MiB of configuration".into()),
    }
}

/// Paths that match a pattern, sorted. A pattern may stand in any part of the path.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let part = part.as_os_str();
        if !glob::is_pattern(part.as_bytes()) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for path in &found {
            let names = std::fs::read_dir(path).into_iter().flatten().flatten();
            let mut names: Vec<OsString> = names
                .map(|entry| entry.file_name())
                .filter(|name| {
                    let hidden = name.as_bytes().starts_with(b".");
                    (!hidden || part.as_bytes().starts_with(b"."))
                        && glob::matches(part.as_bytes(), name.as_bytes(), false)
                })
                .collect();
            names.sort();
            next.extend(names.into_iter().map(|name| path.join(name)));
            next.truncate(FILES_MAX + 1);
        }
        found = next;
    }
    found.retain(|path| path.exists());
    found
}

/// A directive for a message: its words, without the value of a secret.
fn shown(words: &[Vec<u8>]) -> String {
    let secret = words.first().is_some_and(|name| {
        let ours = foreign(name).flatten().map(str::as_bytes);
        Config::is_secret(ours.unwrap_or(name)) || name.eq_ignore_ascii_case(b"user")
    });
    printable(&words[..if secret { 1 } else { words.len() }].join(&b' '))
}

/// Text from outside for a message of one line: bounded, without control characters.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out: String = text
        .chars()
        .take(SHOWN_MAX)
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        out.push_str("...");
    }
    out
}

fn version() -> String {
    format!(
        "Tidemill server v={REDIS_VERSION} tidemill={} bits={}\n",
        env!("CARGO_PKG_VERSION"),
        usize::BITS
    )
}

const HELP: &str = "\
Usage: tidemill-server [FILE] [--DIRECTIVE VALUE...]... [-]
       tidemill-server --version | -v
       tidemill-server --help | -h
       tidemill-server --check-system

Reads FILE, then standard input where the last argument is -, then the options;
what comes later wins. Every directive of tidemill.conf is also an option.

Examples:
       tidemill-server                                 all defaults, port 6379
       tidemill-server /etc/tidemill.conf              a file
       tidemill-server --port 7000 --threads 2         options
       tidemill-server tidemill.conf --loglevel debug  a file, one value replaced
       echo 'maxmemory 1gb' | tidemill-server -        standard input
";

#[cfg(test)]
pub(super) fn parse_text(text: &[u8]) -> Result<Loaded, LoadError> {
    let mut input = text;
    match start([OsString::from("-")], &mut input)? {
        Startup::Run(loaded) => Ok(*loaded),
        Startup::Print { .. } => unreachable!("a dash alone runs"),
    }
}
