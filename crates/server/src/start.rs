//! From arguments to a running server, and to its end.

use std::ffi::OsString;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::Table;
use engine::acl::Bounds;
use engine::keyspace::Keyspace;
use structure::hash::Seed;
use structure::stripes::{Lock, NoLock, RawLock};

use crate::config::{self, Config, Loaded, LogLevel, Renames, Startup, UserLine};
use crate::event_loop::EventLoop;
use crate::listener::{self, Listener};
use crate::persistence::{Loading, log_thread};
use crate::shared::Shared;
use crate::sys::{self, Signals};
use crate::{commands, log, metrics, notice, supervisor, warning};

/// Descriptors beside those of clients: files, listeners, epoll.
const RESERVED_FILES: u64 = 64;

/// Runs the server program with these arguments, its name not among them.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let is_bare = args.is_empty();
    let loaded = match config::start(args, &mut std::io::stdin().lock()) {
        Ok(Startup::Run(loaded)) => loaded,
        Ok(Startup::Print { text, status }) => {
            print!("{text}");
            return ExitCode::from(status);
        }
        Err(error) => return fail(&error.to_string()),
    };
    match start(*loaded, is_bare) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &str) -> ExitCode {
    eprintln!("tidemill-server: {error}");
    ExitCode::FAILURE
}

/// Starts with a configuration; returns when the server has stopped.
fn start(loaded: Loaded, is_bare: bool) -> Result<(), String> {
    let (config, warnings) = (loaded.config, loaded.warnings);
    let commands = (&loaded.users[..], &loaded.renames);
    log::set_level(config.loglevel);
    log::set_format(config.log_format);
    log::set_file(config.logfile.as_deref()).map_err(|error| {
        let path = config.logfile.as_deref().unwrap_or(Path::new(""));
        format!("Can't open the log file {}: {error}", path.display())
    })?;
    if let Some((ident, facility)) = &config.syslog {
        log::set_syslog(ident, *facility);
    }
    let config = if is_bare {
        in_own_directory(config)?
    } else {
        config
    };
    std::env::set_current_dir(&config.dir)
        .map_err(|error| format!("Can't chdir to '{}': {error}", config.dir.display()))?;
    if config.daemonize {
        return Err("daemonize: run it under your init system, or with nohup and &".to_owned());
    }
    if let Some(path) = &config.pidfile {
        let pid = format!("{}\n", std::process::id());
        if let Err(error) = std::fs::write(path, pid) {
            warning!("Failed to write PID file {}: {error}", path.display());
        }
    }
    install_panic_hook();
    let signals = Signals::new().map_err(|error| format!("Can't take signals: {error}"))?;
    let config = within_file_limit(config)?;
    notice!(
        "Tidemill {} (as Redis {}), 64 bit, {} threads, pid {}, port {}",
        env!("CARGO_PKG_VERSION"),
        config::REDIS_VERSION,
        config.threads,
        std::process::id(),
        config.port
    );
    warnings.iter().for_each(|line| warning!("{line}"));
    supervisor::check(&config);
    // In the log too: launchers read it there.
    let listeners = listener::open(&config).inspect_err(|error| warning!("{error}"))?;
    let metrics = metrics::open(&config).inspect_err(|error| warning!("{error}"))?;
    let opened = Opened { listeners, metrics };
    let pidfile = config.pidfile.clone();
    if config.threads <= 1 {
        serve_alone(config, commands, opened, signals)?;
    } else {
        serve_together(config, commands, opened, signals)?;
    }
    if let Some(path) = pidfile {
        let _ = std::fs::remove_file(path);
    }
    notice!("Tidemill is now ready to exit, bye bye...");
    Ok(())
}

/// Without any argument the data goes to a directory of its own.
fn in_own_directory(config: Config) -> Result<Config, String> {
    let dir = config.dir.join("data");
    std::fs::create_dir_all(&dir)
        .map_err(|error| format!("Can't make the data directory '{}': {error}", dir.display()))?;
    let value = dir.as_os_str().as_encoded_bytes();
    let changes = config
        .set(&[(b"dir", value)], true)
        .map_err(|error| error.to_string())?;
    Ok(changes.config)
}

/// Lowers `maxclients` to what the limit of open files leaves, as far as that cannot be raised: a
/// client beyond it is refused with a reason, rather than left waiting to be accepted.
fn within_file_limit(config: Config) -> Result<Config, String> {
    let wanted = u64::from(config.maxclients) + RESERVED_FILES;
    let files = sys::raise_file_limit(wanted);
    if files >= wanted {
        return Ok(config);
    }
    let clients = files.saturating_sub(RESERVED_FILES);
    if clients == 0 {
        return Err(format!(
            "The limit of open files is {files}, which leaves none for clients: raise it to more \
             than {RESERVED_FILES} (ulimit -n)"
        ));
    }
    warning!(
        "The limit of open files is {files}: at most {clients} clients can connect, not {}. \
         maxclients is lowered; raise the limit (ulimit -n) to change that",
        config.maxclients
    );
    let changes = config
        .set(&[(b"maxclients", clients.to_string().as_bytes())], true)
        .map_err(|error| error.to_string())?;
    Ok(changes.config)
}

/// A panic anywhere is a bug: say where, and end the process rather than one thread.
fn install_panic_hook() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        log::write(
            LogLevel::Warning,
            format_args!(
                "=== TIDEMILL BUG REPORT: {info} (version {}) ===",
                env!("CARGO_PKG_VERSION")
            ),
        );
        report(info);
        std::process::abort();
    }));
}

/// 64 random bits from the system.
fn system_random() -> Result<u64, String> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| format!("Can't read random bytes: {error}"))?;
    Ok(u64::from_ne_bytes(bytes))
}

fn keyspace<L: RawLock>(threads: usize, renames: &Renames) -> Result<Keyspace<L>, String> {
    let seed = Seed::new([system_random()?, system_random()?]);
    let families: Vec<_> = engine::commands::FAMILIES
        .iter()
        .chain(commands::FAMILIES)
        .copied()
        .collect();
    Ok(Keyspace::new(
        Table::renamed(&families, |own| renames.name(own).map(str::to_owned)),
        Keyspace::<L>::stripes_for(threads),
        seed,
    ))
}

fn shared<L: RawLock>(
    keyspace: &Keyspace<L>,
    config: Config,
    users: &[UserLine],
) -> Result<Arc<Shared>, String> {
    let threads = config.threads.max(1);
    let mut run_id = String::new();
    while run_id.len() < 40 {
        run_id += &format!("{:016x}", system_random()?);
    }
    run_id.truncate(40);
    let shared = Shared::new(keyspace.shared.clone(), config, threads, run_id);
    let shared = shared.map_err(|error| format!("Can't set up the threads: {error}"))?;
    let tls = shared.tls.apply(&shared.config().tls);
    tls.map_err(|error| {
        warning!("{error}");
        warning!("Failed to configure TLS. Check logs for more info.");
        format!("Failed to configure TLS: {error}")
    })?;
    take_users(&shared, users).inspect_err(|error| warning!("{error}"))?;
    Ok(Arc::new(shared))
}

/// Takes the users from where the configuration says, declared there or in a file.
fn take_users(shared: &Shared, declared: &[UserLine]) -> Result<(), String> {
    let config = shared.config();
    shared
        .users
        .set_default_password(config.requirepass.as_deref());
    let bounds = Bounds {
        table: &shared.keys.table,
        all_channels: config.acl_pubsub_default,
    };
    match &config.aclfile {
        None => shared.users.declare(declared, &bounds),
        Some(_) if !declared.is_empty() => {
            return Err(
                "Users are declared in the configuration, and aclfile names a file with users: \
                 have them in one place only"
                    .to_owned(),
            );
        }
        Some(file) => shared.users.load(file, &bounds).map(drop),
    }
    .map_err(|error| error.to_string())
}

/// Says that the server is ready.
pub fn announce(config: &Config) {
    notice!("Server initialized");
    if config.port != 0 {
        notice!("Ready to accept connections tcp");
    }
    if config.unixsocket.is_some() {
        notice!("Ready to accept connections unix");
    }
    if config.tls.port != 0 {
        notice!("Ready to accept connections tls");
    }
    let (option, port) = match config.port {
        0 if config.tls.port != 0 => ("--tls -p", config.tls.port),
        port => ("-p", port),
    };
    notice!(
        "Data directory: {}. Connect: redis-cli {option} {port}. Stop: Ctrl-C, SIGTERM or \
         SHUTDOWN.",
        config.dir.display()
    );
    supervisor::ready(config);
}

fn note_startup(shared: &Shared) {
    let used = shared.used_bytes() as u64;
    shared.startup_bytes.store(used, Ordering::Relaxed);
}

/// Bytes of a thread's stack: scripts may nest what they call and return.
const STACK_BYTES: usize = 8 << 20;

/// What was opened before anything else, so that a port in use ends the start.
struct Opened {
    listeners: Vec<Listener>,
    metrics: Option<TcpListener>,
}

fn listen(shared: &Arc<Shared>, opened: Opened) -> Result<(), String> {
    let listeners = opened.listeners.into_iter().map(Arc::new);
    shared.listening.set(listeners.collect());
    match opened.metrics {
        Some(listener) => metrics::serve(listener, shared.clone()),
        None => Ok(()),
    }
}

/// One thread, no locks.
fn serve_alone(
    config: Config,
    (users, renames): (&[UserLine], &Renames),
    opened: Opened,
    signals: Signals,
) -> Result<(), String> {
    let keyspace = keyspace::<NoLock>(1, renames)?;
    let shared = shared(&keyspace, config, users)?;
    listen(&shared, opened)?;
    let seed = system_random()?;
    let mut event_loop = EventLoop::new(&keyspace, shared.clone(), 0, Some(signals), seed)
        .map_err(|error| format!("Can't set up the event loop: {error}"))?;
    note_startup(&shared);
    begin(&mut event_loop, &shared)?;
    event_loop.run();
    // The process ends: what it holds goes back to the system whole.
    std::mem::forget(event_loop);
    std::mem::forget(keyspace);
    ended(&shared)
}

/// Several threads; the first one accepts.
fn serve_together(
    config: Config,
    (users, renames): (&[UserLine], &Renames),
    opened: Opened,
    signals: Signals,
) -> Result<(), String> {
    let threads = u16::try_from(config.threads).map_err(|_| "too many threads".to_owned())?;
    let keyspace = keyspace::<Lock>(config.threads, renames)?;
    let shared = shared(&keyspace, config, users)?;
    listen(&shared, opened)?;
    let setup = |error| format!("Can't set up the event loop: {error}");
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let (keyspace, shared, seed) = (&keyspace, shared.clone(), system_random()?);
            let body = move || match EventLoop::new(keyspace, shared, thread, None, seed) {
                Ok(mut event_loop) => event_loop.run(),
                Err(error) => panic!("thread {thread}: {error}"),
            };
            std::thread::Builder::new()
                .name(format!("loop-{thread}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, body)
                .map_err(|error| format!("Can't start thread {thread}: {error}"))?;
        }
        let seed = system_random()?;
        let mut event_loop =
            EventLoop::new(&keyspace, shared.clone(), 0, Some(signals), seed).map_err(setup)?;
        note_startup(&shared);
        if let Err(error) = begin(&mut event_loop, &shared) {
            shared.fail(error);
        }
        event_loop.run();
        Ok::<(), String>(())
    })?;
    std::mem::forget(keyspace);
    ended(&shared)
}

/// Begins to load what was kept, the log before the snapshot, or to serve.
fn begin<L: RawLock>(
    event_loop: &mut EventLoop<'_, L>,
    shared: &Arc<Shared>,
) -> Result<(), String> {
    if !shared.config().preload_file.is_empty() {
        return preload(event_loop, shared);
    }
    if shared.config().appendonly && event_loop.begin_replaying()? {
        return Ok(());
    }
    match Loading::begin(shared)? {
        Some(loading) => event_loop.begin_loading(loading),
        None => event_loop.begin_empty()?,
    }
    Ok(())
}

/// Begins to load what `preload-file` names, in place of what was kept. Where a log is written, it
/// begins with that.
fn preload<L: RawLock>(
    event_loop: &mut EventLoop<'_, L>,
    shared: &Arc<Shared>,
) -> Result<(), String> {
    let named = String::from_utf8_lossy(&shared.config().preload_file).into_owned();
    let (kind, path) = named.split_once(':').unwrap_or_default();
    let at = Path::new(path);
    notice!("Pre-loading {named}");
    if kind == "rdb" {
        let loading = Loading::begin_with(shared, at)?;
        let missing = || format!("pre-loading RDB failed! ({path}): No such file or directory");
        event_loop.begin_loading(loading.ok_or_else(missing)?);
        return Ok(());
    }
    if !path.ends_with(".aof") && !path.ends_with(".manifest") {
        return Err(format!(
            "Invalid preload-file configuration (not .aof or .manifest): {named}"
        ));
    }
    event_loop
        .begin_preloading(at)
        .map_err(|error| format!("pre-load from AOF failed! ({path}) {error}"))
}

/// How the server ended.
fn ended(shared: &Shared) -> Result<(), String> {
    log_thread::join(shared);
    match shared.persistence.fatal.lock().take() {
        None => Ok(()),
        Some(error) => Err(error),
    }
}
