//! CONFIG: reading and changing the configuration of the running server.
//!
//! SET works out the new configuration, carries its effects out, and only then publishes it: all
//! of it or nothing. One change at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use command::arg::*;
use command::{Arity, Flags, Group, Shape};
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::config::{Config, ConfigError};
use crate::host::ThreadHost;
use crate::persistence::{backup, log_thread};
use crate::shared::Shared;
use crate::{log, sys, warning};

/// The family.
pub const COMMANDS: &[Command] = &[CONFIG];

/// Descriptors beside those of clients.
const RESERVED_FILES: u64 = 64;

const CONFIG: Command = Command {
    name: "config",
    group: Group::Server,
    since: "2.0.0",
    summary: "Reads and changes the configuration.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        CONFIG_GET,
        CONFIG_HELP,
        CONFIG_RESETSTAT,
        CONFIG_REWRITE,
        CONFIG_SET,
    ])
};

const CONFIG_GET: Command = Command {
    name: "get",
    group: Group::Server,
    since: "2.0.0",
    summary: "Returns the settings whose names match patterns.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("parameter").multiple()],
    reply: &[Shape::Map],
    history: &[("7.0.0", "Takes several patterns.")],
    ..runs(config_get)
};

fn config_get(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let patterns: Vec<&[u8]> = args.from(2).iter().collect();
    let found = ThreadHost::of(cx).shared.config().get(&patterns);
    out.map(found.len());
    for (name, value) in found {
        out.bulk(&name);
        out.bulk(&value);
    }
    Ok(())
}

const CONFIG_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(config_help)
};

fn config_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "CONFIG <subcommand> [<argument> ...]:",
        "GET <pattern> [<pattern> ...]",
        "    The settings whose names match, with their values.",
        "SET <name> <value> [<name> <value> ...]",
        "    Changes settings: all that are given, or none.",
        "REWRITE",
        "    Writes the settings to the file that the server was started with.",
        "RESETSTAT",
        "    Starts the counters of INFO again.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const CONFIG_RESETSTAT: Command = Command {
    name: "resetstat",
    group: Group::Server,
    since: "2.0.0",
    summary: "Sets the counters of INFO back to zero.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    ..runs_on_all(config_resetstat)
};

fn config_resetstat(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    for index in 0..cx.keyspace.count() {
        let stats = &mut cx.keyspace.get_mut(index).stats;
        let changes = stats.changes;
        *stats = engine::stats::KeyspaceStats::default();
        stats.changes = changes;
    }
    let shared = &ThreadHost::of(cx).shared;
    shared.reset_stats();
    crate::alloc::reset_peak();
    *shared.memory_peak.lock() = (0, 0);
    shared.used_bytes();
    out.ok();
    Ok(())
}

const CONFIG_REWRITE: Command = Command {
    name: "rewrite",
    group: Group::Server,
    since: "2.8.0",
    summary: "Writes the present settings to the configuration file.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    ..runs(config_rewrite)
};

fn config_rewrite(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let shared = &ThreadHost::of(cx).shared;
    let _one_at_a_time = shared.config_change.lock();
    let config = shared.config();
    // A file of their own keeps the users out of this one.
    let users = match config.aclfile {
        Some(_) => Vec::new(),
        None => shared.users.lines_to_rewrite(config.requirepass.as_deref()),
    };
    if let Err(error) = config.rewrite(&users) {
        warning!("CONFIG REWRITE failed: {error}");
        return Err(CommandError::Text(error.to_string().into()));
    }
    out.ok();
    Ok(())
}

const CONFIG_SET: Command = Command {
    name: "set",
    group: Group::Server,
    since: "2.0.0",
    summary: "Changes settings of the running server.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[block("data", &[string("parameter"), string("value")]).multiple()],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    history: &[("7.0.0", "Takes several settings.")],
    ..runs_on_all(config_set)
};

fn config_set(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let host = ThreadHost::of(cx);
    let is_local = host
        .client
        .as_ref()
        .is_none_or(|client| client.peer.is_local);
    let shared: Arc<Shared> = host.shared.clone();
    let _one_at_a_time = shared.config_change.lock();
    let words: Vec<&[u8]> = args.from(2).iter().collect();
    let pairs: Vec<(&[u8], &[u8])> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let config = shared.config();
    let protected_allowed = config.enable_protected_configs.allows(is_local);
    let refused = |error: ConfigError| CommandError::Text(error.to_string().into());
    let changes = config.set(&pairs, protected_allowed).map_err(refused)?;
    for name in &changes.changed {
        carry_out(name, &changes.config).map_err(refused)?;
    }
    let is_password_new = changes.changed.contains(&"requirepass");
    let password = changes.config.requirepass.clone();
    let changed = |name| changes.changed.contains(&name);
    let is_logged = changes.config.appendonly;
    if changed("appendonly") && !shared.keys.is_serving() {
        return Err(refused(ConfigError::failed(
            "appendonly",
            "the server is loading",
        )));
    }
    if pairs.iter().any(|(name, _)| is_of_tls(name)) {
        apply_tls(&shared, &changes.config.tls, pairs[0].0).map_err(refused)?;
    }
    if let Some(name) = changes.changed.iter().find(|name| WHERE.contains(name)) {
        listen_there(&shared, &changes.config, name).map_err(refused)?;
    }
    let before = changed("appendonly").then(|| shared.config());
    shared.set_config(changes.config);
    if let Some(before) = before {
        let switched = match is_logged {
            true => {
                // One that is written for a backup stays.
                shared.backup.owns_log.store(false, Ordering::Relaxed);
                log_thread::begin(&shared, cx.shared, &mut cx.keyspace)
            }
            false => {
                backup::fail_aside(&shared, "appendonly is stopped");
                log_thread::stop(&shared);
                Ok(())
            }
        };
        if let Err(error) = switched {
            warning!("CONFIG SET appendonly: {error}");
            // They were right before.
            let _ = shared.tls.apply(&before.tls);
            let _ = shared.listening.move_to(&before);
            shared.set_config((*before).clone());
            let reason = "Unable to turn on AOF. Check server logs.";
            return Err(refused(ConfigError::failed("appendonly", reason)));
        }
    }
    if is_password_new {
        shared.users.set_default_password(password.as_deref());
        shared.users_changed();
    }
    if shared.log.is_on.load(Ordering::Relaxed) {
        shared.log.configure(&shared.config());
        // What replies wait for may have changed.
        shared.wake_all();
    }
    out.ok();
    Ok(())
}

fn is_of_tls(name: &[u8]) -> bool {
    name.get(..4)
        .is_some_and(|front| front.eq_ignore_ascii_case(b"tls-"))
}

/// Serves new TLS connections by these settings. The files are read again even where no name of
/// theirs is new.
fn apply_tls(
    shared: &Shared,
    settings: &crate::tls::Settings,
    name: &[u8],
) -> Result<(), ConfigError> {
    shared.tls.apply(settings).map_err(|error| {
        warning!("{error}");
        ConfigError::Failed {
            name: name.to_vec(),
            reason: "Unable to update TLS configuration. Check server logs.".into(),
        }
    })
}

/// What says where the server listens.
const WHERE: [&str; 4] = ["bind", "port", "tls-port", "tcp-backlog"];

/// Listens where the new configuration says, or goes on where it did.
fn listen_there(shared: &Shared, config: &Config, name: &'static str) -> Result<(), ConfigError> {
    shared.listening.move_to(config).map_err(|error| {
        warning!("{error}");
        let reason = match name {
            "bind" => "Failed to bind to specified addresses.",
            _ => "Unable to listen on this port. Check server logs.",
        };
        ConfigError::failed(name, reason)
    })
}

/// Carries out what a change means beside the new value: threads look that up by themselves.
fn carry_out(name: &'static str, config: &Config) -> Result<(), ConfigError> {
    match name {
        "loglevel" => log::set_level(config.loglevel),
        "log-format" => log::set_format(config.log_format),
        "maxclients" => {
            let wanted = u64::from(config.maxclients) + RESERVED_FILES;
            let files = sys::raise_file_limit(wanted);
            if files < wanted {
                let most = files.saturating_sub(RESERVED_FILES);
                let reason = format!(
                    "The operating system is not able to handle the specified number of clients, \
                     try with {most}"
                );
                return Err(ConfigError::failed(name, reason));
            }
        }
        "dir" => {
            if let Err(error) = std::env::set_current_dir(&config.dir) {
                return Err(ConfigError::failed(name, error.to_string()));
            }
        }
        "maxmemory" => {
            let used = crate::alloc::used_bytes() as u64;
            if config.maxmemory_bytes > 0 && used > config.maxmemory_bytes {
                warning!(
                    "The new maxmemory value set via CONFIG SET ({}) is smaller than the current \
                     memory usage ({used}): keys are evicted, or new data is refused, depending \
                     on maxmemory-policy",
                    config.maxmemory_bytes
                );
            }
        }
        _ => {}
    }
    Ok(())
}
