//! Configuration: every directive with its value, CONFIG GET and SET, files and the command line.
//!
//! A [`Config`] is a value, not a place: it is made at start, shared behind an `Arc`, and CONFIG
//! SET makes a new one. Whoever holds a snapshot reads plain fields and never sees half a change.
//! The caller applies the effects of a change (listening elsewhere, a new limit of open files)
//! before it publishes the new snapshot, and drops it where they fail, so that CONFIG SET does
//! everything or nothing.
//!
//! # Invariants
//! - There is one value for each row of the table, of that row's kind and within its range.
//! - `settings` is what [`Settings::read`] makes of the values.
//!
//! # Why not a global?
//! Two servers in one process (tests, simulation) then share one, and a reader in the middle of
//! a command can see a value change under it.

mod compound;
mod directive;
mod document;
mod glob;
mod line;
mod renames;
mod rewrite;
mod settings;
mod start;
mod system;
mod table;
mod value;

#[cfg(test)]
mod tests;

pub use compound::{OutputLimit, SavePoint, event};
pub use document::{document, table as document_table};
pub use line::in_line;
pub use renames::Renames;
pub use rewrite::{RewriteError, replace as replace_file};
pub use settings::{
    Access, AppendFsync, BindAddress, LogFormat, LogLevel, MaxmemoryPolicy, OutputLimits, Settings,
    ShutdownFlags, Supervisor,
};
pub use start::{LoadError, Loaded, REDIS_VERSION, Startup, UserLine, start};
pub use value::system_text;

use directive::{Change, Directive, Effect, Kind};
use engine::error::shown;
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use value::{Reason, Value};

/// Everything that is configured. Its [`Settings`] are reached by dereferencing.
#[derive(Debug, Clone)]
pub struct Config {
    values: Box<[Value]>,
    settings: Settings,
    /// The file it came from, absolute; CONFIG REWRITE writes there.
    file: Option<PathBuf>,
}

/// What CONFIG SET would change.
#[derive(Debug)]
pub struct Changes {
    /// The configuration with the new values, for the caller to publish.
    pub config: Config,
    /// Names of the directives whose value is another now, without repetition.
    pub changed: Vec<&'static str>,
}

/// Why CONFIG SET changed nothing. Shown, it is the text of the error reply.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No directive has this name.
    Unknown { name: Vec<u8> },
    /// The value was refused, or the change could not be carried out.
    Failed {
        name: Vec<u8>,
        reason: Cow<'static, str>,
    },
}

impl Default for Config {
    fn default() -> Config {
        Config::of(table::all().map(default_value).collect(), None)
    }
}

impl Config {
    fn of(values: Box<[Value]>, file: Option<PathBuf>) -> Config {
        let settings = Settings::read(&values);
        Config {
            values,
            settings,
            file,
        }
    }

    /// The values that the server reads on its paths.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The file that this came from, if any.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What CONFIG GET answers: each name that one of the patterns matches, once, with its value.
    /// A name that was asked for literally comes back in the letters it was asked in.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let names = || {
            table::all().zip(&self.values).flat_map(|(one, value)| {
                std::iter::once(one.name)
                    .chain(one.alias)
                    .map(move |name| (name, one, value))
            })
        };
        let wanted = |name: &str| {
            let hit = patterns.iter().find(|pattern| glob_or_name(pattern, name));
            hit.map(|pattern| match glob::is_pattern(pattern) {
                true => name.as_bytes().to_vec(),
                false => pattern.to_vec(),
            })
        };
        names()
            .filter_map(|(name, one, value)| Some((wanted(name)?, value.show(one.kind))))
            .collect()
    }

    /// Works out CONFIG SET, for a client that may change protected directives or not. Nothing is
    /// changed here: see [`Changes`].
    pub fn set(
        &self,
        pairs: &[(&[u8], &[u8])],
        protected_allowed: bool,
    ) -> Result<Changes, ConfigError> {
        let failed = |name: &[u8], reason: Reason| ConfigError::Failed {
            name: name.to_vec(),
            reason,
        };
        let mut places = Vec::with_capacity(pairs.len());
        for (name, _) in pairs {
            let unknown = || ConfigError::Unknown {
                name: name.to_vec(),
            };
            let (place, one) = row(name).ok_or_else(unknown)?;
            match one.change {
                Change::Startup => return Err(failed(name, "can't set immutable config".into())),
                Change::Protected if !protected_allowed => {
                    return Err(failed(name, "can't set protected config".into()));
                }
                _ => {}
            }
            if places.contains(&place) {
                return Err(failed(name, "duplicate parameter".into()));
            }
            places.push(place);
        }
        let mut values = self.values.clone();
        for ((name, text), place) in pairs.iter().zip(&places) {
            let (_, one) = row(name).expect("found above");
            let new = Value::parse(one, &[text], &values[*place])
                .and_then(|new| supported(one, new))
                .and_then(|new| in_time(one, &values[*place], new))
                .map_err(|reason| failed(name, reason))?;
            values[*place] = new;
        }
        if let Err((name, reason)) = agree(&values, &places) {
            return Err(failed(name.as_bytes(), reason));
        }
        let changed = table::all()
            .zip(self.values.iter().zip(&values))
            .filter(|(_, (old, new))| old != new)
            .map(|(one, _)| one.name)
            .collect();
        Ok(Changes {
            config: Config::of(values, self.file.clone()),
            changed,
        })
    }

    /// Whether the argument after this name must be kept out of logs, as SLOWLOG and MONITOR do.
    pub fn is_secret(name: &[u8]) -> bool {
        row(name).is_some_and(|(_, one)| one.secret)
    }
}

impl ConfigError {
    /// For a change that was right in itself but could not be carried out.
    pub fn failed(name: &str, reason: impl Into<Cow<'static, str>>) -> ConfigError {
        ConfigError::Failed {
            name: name.as_bytes().to_vec(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unknown { name } => {
                let name = shown(name);
                write!(
                    f,
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                )
            }
            ConfigError::Failed { name, reason } => {
                let name = shown(name);
                write!(
                    f,
                    "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}

fn glob_or_name(pattern: &[u8], name: &str) -> bool {
    if glob::is_pattern(pattern) {
        glob::matches(pattern, name.as_bytes(), true)
    } else {
        pattern.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The row of a name, with its place.
fn row(name: &[u8]) -> Option<(usize, &'static Directive)> {
    let place = table::find(name)?;
    Some((
        place,
        table::all().nth(place).expect("places are of the table"),
    ))
}

fn default_value(one: &Directive) -> Value {
    if one.threads() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        return Value::Integer(i64::try_from(cores.min(128)).expect("at most 128"));
    }
    if matches!(one.kind, Kind::Directory) {
        return Value::Text(one.default.as_bytes().into());
    }
    if matches!(one.kind, Kind::Primary) {
        return Value::Text(Box::default());
    }
    Value::parse(one, &[one.default.as_bytes()], &Value::Switch(false))
        .unwrap_or_else(|reason| panic!("default of '{}': {reason}", one.name))
}

/// Lets a value pass unless it asks for what does not exist yet.
fn supported(one: &Directive, value: Value) -> Result<Value, Reason> {
    match one.effect {
        Effect::Refused(missing) if value != default_value(one) => {
            Err(format!("{missing} is not supported yet").into())
        }
        _ => Ok(value),
    }
}

/// Lets a value pass unless it turns on what must count from the start to be right.
fn in_time(one: &Directive, old: &Value, new: Value) -> Result<Value, Reason> {
    const MEMORY: u32 = 4;
    let late = match (one.name, old, &new) {
        ("key-memory-histograms", Value::Switch(old), Value::Switch(new)) => *new && !old,
        ("cluster-slot-stats-enabled", Value::Flags(old), Value::Flags(new)) => {
            new & !old & MEMORY != 0
        }
        _ => false,
    };
    match late {
        true => Err("memory tracking cannot be enabled at runtime".into()),
        false => Ok(new),
    }
}

/// Checks what must hold between directives; `set` are the places that were given values.
fn agree(values: &[Value], set: &[usize]) -> Result<(), (&'static str, Reason)> {
    let place = |name: &str| table::find(name.as_bytes()).expect("in the table");
    let number = |name: &str| match &values[place(name)] {
        Value::Integer(number) => *number,
        other => panic!("configuration '{name}' holds {other:?}"),
    };
    let (kmin, kmax) = (number("array-sparse-kmin"), number("array-sparse-kmax"));
    if kmax != 0 && kmin >= kmax {
        return Err(match set.contains(&place("array-sparse-kmin")) {
            true => (
                "array-sparse-kmin",
                "array-sparse-kmin must be less than array-sparse-kmax".into(),
            ),
            false => (
                "array-sparse-kmax",
                "array-sparse-kmax must be greater than array-sparse-kmin when non-zero".into(),
            ),
        });
    }
    for name in ["shutdown-on-sigint", "shutdown-on-sigterm"] {
        if matches!(values[place(name)], Value::Flags(bits) if bits & 3 == 3) {
            let reason = "shutdown options SAVE and NOSAVE can't be used simultaneously";
            return Err((name, reason.into()));
        }
    }
    Ok(())
}
