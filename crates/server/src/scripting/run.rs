//! Running a script: EVAL, EVALSHA, FCALL and their read-only forms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use command::Flags;
use engine::acl::{self, Place};
use engine::host::Host;
use engine::session::Session;
use engine::stats::ThreadStats;
use engine::{CommandError, Context, number};
use mlua::{Lua, MultiValue, Value};
use parking_lot::Mutex;
use resp::{Args, Output, Protocol, Range, Writer};

use super::api::push_word;
use super::busy::{self, Guests};
use super::convert::{Names, Reply, Results};
use super::current::{self, Calls};
use super::functions;
use super::header::{self, ScriptFlags};
use super::registry::{Script, Sha, hex, parse_sha, sha_of};
use super::state::{Failure, Kind, State, with_state};
use crate::host::ThreadHost;

/// Bytes of a reply's buffer that are kept from one script to the next.
const KEPT_BYTES: usize = 64 * 1024;

/// How often a thread that waits for a script looks whether it is over.
const WAIT: Duration = Duration::from_millis(1);

/// What scripts are running for so long that others are told.
#[derive(Default)]
pub struct Running {
    /// The script that has run for longer than `busy-reply-threshold`.
    pub slow: Mutex<Option<Slow>>,
    /// Whether there is one.
    pub is_slow: AtomicBool,
    /// Whether a script runs for so long that threads had better not wait for its stripes.
    pub is_long: AtomicBool,
    /// Set by SCRIPT KILL and FUNCTION KILL.
    pub kill: AtomicBool,
}

impl Running {
    /// Waits for a long script to end. True where it became slow instead: others are told BUSY.
    #[cold]
    pub fn wait_out(&self) -> bool {
        while self.is_long.load(Ordering::Acquire) {
            if self.is_slow.load(Ordering::Acquire) {
                return true;
            }
            std::thread::sleep(WAIT);
        }
        false
    }

    /// What others are told while a script is slow.
    pub fn busy(&self) -> &'static str {
        let slow = self.slow.lock();
        match &*slow {
            Some(slow) if slow.is_function => BUSY_FUNCTION,
            _ => BUSY_SCRIPT,
        }
    }

    /// Ends the script that has run for too long, at its next instruction.
    ///
    /// # Errors
    /// Where there is none, or it must not be ended.
    pub fn end(&self, is_function: bool) -> Result<(), CommandError> {
        let slow = self.slow.lock();
        let Some(slow) = &*slow else {
            return Err(CommandError::text(
                "NOTBUSY No scripts in execution right now.",
            ));
        };
        if slow.is_function != is_function {
            return Err(CommandError::text(if slow.is_function {
                BUSY_FUNCTION
            } else {
                BUSY_SCRIPT
            }));
        }
        if slow.has_written {
            return Err(CommandError::text(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way \
                 using the SHUTDOWN NOSAVE command.",
            ));
        }
        self.kill.store(true, Ordering::Release);
        Ok(())
    }
}

/// What others are told while a script runs for too long.
pub const BUSY_SCRIPT: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL \
                               or SHUTDOWN NOSAVE.";
/// The same for a function.
pub const BUSY_FUNCTION: &str = "BUSY Redis is busy running a script. You can only call FUNCTION \
                                 KILL or SHUTDOWN NOSAVE.";

/// A script that runs for long.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Whether it is a function rather than a script of EVAL.
    pub is_function: bool,
    /// The function's name, or the script's SHA1.
    pub name: Box<[u8]>,
    /// The words of the command that runs it.
    pub words: Vec<Vec<u8>>,
    /// When it began: Unix microseconds.
    pub began_us: u64,
    /// Whether it changed anything already.
    pub has_written: bool,
}

/// Which script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Its text.
    Source,
    /// Its SHA1.
    Sha,
}

/// Where keys and arguments are among the words.
fn count_keys(args: Args<'_>) -> Result<usize, CommandError> {
    let count = number::int(args.at(2))?;
    if count > i64::try_from(args.len()).unwrap_or(i64::MAX) - 3 {
        return Err(CommandError::err(
            "Number of keys can't be greater than number of args",
        ));
    }
    usize::try_from(count).map_err(|_| CommandError::err("Number of keys can't be negative"))
}

const NO_SCRIPT: CommandError = CommandError::text("NOSCRIPT No matching script. Please use EVAL.");

/// EVAL and EVALSHA, and their read-only forms.
///
/// # Errors
/// The script's own, among others.
pub fn eval(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    by: By,
    is_read_only: bool,
) -> Result<(), CommandError> {
    show(cx, args);
    // What is too short for a digest is no script, whatever else is said.
    if matches!(by, By::Sha) && args.at(1).len() != 2 * size_of::<Sha>() {
        return Err(NO_SCRIPT);
    }
    let keys = count_keys(args)?;
    with_state(Kind::Eval, |state| {
        let (script, function) = find(cx, state, args.at(1), by)?;
        let mut flags = script.flags;
        check(cx, flags, is_read_only)?;
        if is_read_only {
            flags = flags.with(ScriptFlags::NO_WRITES);
        }
        let memory = |error: mlua::Error| CommandError::err(error.to_string());
        let words = (3..args.len()).map(|at| args.at(at));
        let key_table = state.list(words.clone().take(keys)).map_err(memory)?;
        let arg_table = state.list(words.skip(keys)).map_err(memory)?;
        state
            .set_arguments(&key_table, &arg_table)
            .map_err(memory)?;
        let name = || hex(&script.sha);
        run(cx, state, args, flags, &function, None, &name, out)
    })?
}

/// FCALL and FCALL_RO.
///
/// # Errors
/// The function's own, among others.
pub fn fcall(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    is_read_only: bool,
) -> Result<(), CommandError> {
    show(cx, args);
    let shared = ThreadHost::of(cx).shared.clone();
    let snapshot = shared.scripts.libraries.now();
    let Some((library, info)) = snapshot.find(args.at(1)) else {
        return Err(CommandError::text("ERR Function not found"));
    };
    let keys = match number::int(args.at(2)) {
        Ok(_) => count_keys(args)?,
        Err(_) => return Err(CommandError::text("ERR Bad number of keys provided")),
    };
    check(cx, info.flags, is_read_only)?;
    with_state(Kind::Functions, |state| {
        let function = functions::function_in(state, &snapshot, library, args.at(1))?;
        let memory = |error: mlua::Error| CommandError::err(error.to_string());
        let words = (3..args.len()).map(|at| args.at(at));
        let key_table = state.list(words.clone().take(keys)).map_err(memory)?;
        let arg_table = state.list(words.skip(keys)).map_err(memory)?;
        let name = || String::from_utf8_lossy(&info.name).into_owned();
        let arguments = Some((key_table, arg_table));
        run(
            cx, state, args, info.flags, &function, arguments, &name, out,
        )
    })?
}

/// Shows a script's command to those who monitor, before what it calls.
fn show(cx: &mut Context<'_>, args: Args<'_>) {
    if cx.host.is_monitored() {
        cx.host.monitor(cx.session, cx.entry, args);
    }
}

/// The script that a command names, compiled.
fn find(
    cx: &mut Context<'_>,
    state: &mut State,
    word: &[u8],
    by: By,
) -> Result<(Arc<Script>, mlua::Function), CommandError> {
    let registry = &ThreadHost::of(cx).shared.scripts;
    let sha = match by {
        By::Source => Some(sha_of(word)),
        By::Sha => parse_sha(word),
    };
    let sha = sha.ok_or(NO_SCRIPT)?;
    if let Some((script, function)) = state.compiled(&sha) {
        registry.note_use(script);
        return Ok((script.clone(), function.clone()));
    }
    let script = match (registry.find(&sha), by) {
        (Some(script), _) => script,
        (None, By::Sha) => return Err(NO_SCRIPT),
        (None, By::Source) => {
            let function = compile(state, word)?;
            let script = registry.keep(sha, word, false)?;
            state.keep(script.clone(), function.clone());
            return Ok((script, function));
        }
    };
    registry.note_use(&script);
    let function = compile(state, &script.source)?;
    state.keep(script.clone(), function.clone());
    Ok((script, function))
}

fn compile(state: &State, source: &[u8]) -> Result<mlua::Function, CommandError> {
    let (_, body) = header::script(source)?;
    state.compile(body, "@user_script").map_err(|text| {
        let text: String = text.iter().map(|&byte| char::from(byte)).collect();
        CommandError::err(format!("Error compiling script (new function): {text}"))
    })
}

/// SCRIPT LOAD: compiles a script and keeps it.
///
/// # Errors
/// Where it does not compile.
pub fn load(cx: &mut Context<'_>, source: &[u8]) -> Result<Arc<Script>, CommandError> {
    let registry = &ThreadHost::of(cx).shared.scripts;
    let sha = sha_of(source);
    if registry.find(&sha).is_some() {
        return registry.keep(sha, source, true);
    }
    with_state(Kind::Eval, |state| {
        let function = compile(state, source)?;
        let script = registry.keep(sha, source, true)?;
        state.keep(script.clone(), function);
        Ok(script)
    })?
}

/// Whether a script may run at all.
fn check(cx: &Context<'_>, flags: ScriptFlags, is_read_only: bool) -> Result<(), CommandError> {
    if flags.has(ScriptFlags::UNDECLARED) {
        return Ok(());
    }
    let writes = !flags.has(ScriptFlags::NO_WRITES);
    if writes && let Some(error) = cx.writes_refused() {
        return Err(error);
    }
    if is_read_only && writes {
        return Err(CommandError::err(
            "Can not execute a script with write flag using *_ro command.",
        ));
    }
    if cx.effects.is_full && writes && !flags.has(ScriptFlags::ALLOW_OOM) {
        return Err(CommandError::text(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > \
             'maxmemory'",
        ));
    }
    Ok(())
}

fn run(
    cx: &mut Context<'_>,
    state: &State,
    args: Args<'_>,
    flags: ScriptFlags,
    function: &mlua::Function,
    arguments: Option<(mlua::Table, mlua::Table)>,
    name: &dyn Fn() -> String,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut session = Session::new(cx.session.id, true);
    session.db = cx.session.db;
    session.no_touch = cx.session.no_touch;
    session.tracking.clone_from(&cx.session.tracking);
    session.set_user(cx.session.user().clone());
    let host = ThreadHost::of(cx);
    let stats = host.shared.stats[usize::from(host.thread)].clone();
    let mut script = Call {
        stats,
        flags,
        is_full: cx.effects.is_full,
        began_ticks: cx.host.ticks(),
        cx,
        session,
        names: &state.names,
        reply: Output::default(),
        words: Vec::new(),
        ranges: Vec::new(),
        args,
        name,
        is_function: arguments.is_some(),
        has_written: false,
        is_noted: false,
        is_long: false,
        guests: Guests::default(),
    };
    let result = current::with_calls(&mut script, || state.run(function, arguments));
    let is_resp3 = script.session.protocol == Protocol::Resp3;
    script.end();
    match result {
        Ok(value) => {
            let mut results = Results {
                out,
                names: &state.names,
                is_resp3,
            };
            results
                .write(&value, 0)
                .map_err(|_| CommandError::err("reached lua stack limit"))
        }
        Err(failure) => Err(error_of(&failure, &name())),
    }
}

/// The error that a client gets for a script that failed.
fn error_of(failure: &Failure, name: &str) -> CommandError {
    let mut text: String = failure.text.iter().map(|&byte| char::from(byte)).collect();
    text += &format!(" script: {name}");
    if let Some((source, line)) = &failure.place {
        text += &format!(", on {source}:{line}.");
    }
    CommandError::Text(text.into())
}

/// A script that runs.
struct Call<'r, 'c, 'n> {
    cx: &'r mut Context<'c>,
    session: Session,
    stats: Arc<ThreadStats>,
    names: &'n Names,
    flags: ScriptFlags,
    /// Whether memory was full when it began.
    is_full: bool,
    has_written: bool,
    /// Replies of what it calls, one at a time.
    reply: Output,
    /// The words of a call.
    words: Vec<u8>,
    ranges: Vec<Range>,
    /// The words of the command that runs it.
    args: Args<'n>,
    name: &'n dyn Fn() -> String,
    is_function: bool,
    began_ticks: u64,
    /// Whether it is past `busy-reply-threshold`.
    is_noted: bool,
    /// Whether it has been looked at before.
    is_long: bool,
    /// Who connected since it is slow.
    guests: Guests,
}

impl Call<'_, '_, '_> {
    /// Puts a call's words in a row. False where one is neither text nor a number.
    fn collect(&mut self, args: &MultiValue) -> bool {
        self.words.clear();
        self.ranges.clear();
        for arg in args {
            let start = self.words.len();
            if !push_word(arg, &mut self.words) {
                return false;
            }
            let (Ok(from), Ok(len)) = (
                u32::try_from(start),
                u32::try_from(self.words.len() - start),
            ) else {
                return false;
            };
            self.ranges.push((from, len));
        }
        true
    }

    /// Runs the command in `words` and leaves its reply in `reply`.
    fn dispatch(&mut self) -> Result<(), CommandError> {
        let text = CommandError::text;
        let args = Args::new(&self.words, &self.ranges);
        let shared = self.cx.shared;
        let Ok(entry) = shared.table.resolve(&args) else {
            return Err(text("ERR Unknown Redis command called from script"));
        };
        if !entry.arity_allows(args.len()) || entry.run.is_none() {
            return Err(text(
                "ERR Wrong number of args calling Redis command from script",
            ));
        }
        if entry.flags.has(Flags::NOSCRIPT) {
            return Err(text("ERR This Redis command is not allowed from script"));
        }
        let host = &mut *self.cx.host;
        if let Err(error) = acl::permit(&self.session, entry, args, Place::Script, host) {
            let text = error.to_string();
            let why = text.strip_prefix("NOPERM ").unwrap_or(&text);
            return Err(CommandError::err(format!("ACL failure in script: {why}")));
        }
        // These may write, too: a counter kept beside the registers, a message for replicas.
        let may_write = entry.flags.has(Flags::WRITE)
            || matches!(entry.command.name, "pfcount" | "publish" | "spublish");
        if may_write && self.flags.has(ScriptFlags::NO_WRITES) {
            return Err(text(
                "ERR Write commands are not allowed from read-only scripts.",
            ));
        }
        if entry.flags.has(Flags::WRITE)
            && let Some(error) = self.cx.writes_refused()
        {
            return Err(error);
        }
        if self.is_full
            && entry.flags.has(Flags::DENYOOM)
            && !self.flags.has(ScriptFlags::ALLOW_OOM)
            && !self.has_written
        {
            return Err(CommandError::OutOfMemory);
        }
        if !self.cx.holds_all_of(entry, args) {
            return Err(text(
                "ERR Script attempted to access keys that it did not declare",
            ));
        }
        let before = self.cx.host.ticks();
        let result = self
            .cx
            .run_within(&mut self.session, entry, args, &mut self.reply);
        let ticks = self.cx.host.ticks().saturating_sub(before);
        let command = &self.stats.commands[usize::from(entry.id)];
        command.ran(ticks);
        let host = ThreadHost::of(self.cx);
        if host.is_monitored() && !entry.flags.any(Flags::SKIP_MONITOR.with(Flags::ADMIN)) {
            let client = host.client.take();
            host.monitor(&self.session, entry, args);
            host.client = client;
        }
        match result {
            Ok(changed) => {
                self.has_written |= changed;
                Ok(())
            }
            Err(error) => {
                command.failed.add(1);
                Err(error)
            }
        }
    }

    /// The script is over.
    fn end(&mut self) {
        if !self.is_long {
            return;
        }
        if let Some(host) = self.cx.host.as_any().downcast_mut::<ThreadHost>() {
            busy::hand_over(host, &mut self.guests);
        }
        let host = ThreadHost::of(self.cx);
        let running = &host.shared.scripts.running;
        running.is_long.store(false, Ordering::Release);
        if self.is_noted {
            running.is_slow.store(false, Ordering::Release);
            *running.slow.lock() = None;
            running.kill.store(false, Ordering::Release);
        }
    }
}

/// A text of ours as bytes: a character up to U+00FF is one byte.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut utf8 = [0; 4];
    for letter in text.chars() {
        match u8::try_from(letter) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(letter.encode_utf8(&mut utf8).as_bytes()),
        }
    }
    bytes
}

/// What a call without arguments is answered.
pub const NO_ARGUMENT: &str = "ERR Please specify at least one argument for this redis lib call";
/// What a call is answered whose arguments have no text.
pub const BAD_ARGUMENT: &str = "ERR Lua redis lib command arguments must be strings or integers";

impl Calls for Call<'_, '_, '_> {
    fn call(&mut self, lua: &Lua, args: &MultiValue) -> mlua::Result<Result<Value, Vec<u8>>> {
        if args.is_empty() {
            return Ok(Err(NO_ARGUMENT.into()));
        }
        if !self.collect(args) {
            return Ok(Err(BAD_ARGUMENT.into()));
        }
        if let Err(error) = self.dispatch() {
            return Ok(Err(bytes_of(&error.to_string())));
        }
        // The reply is in memory already: its copy may go past the limit, which the script's next
        // allocation then meets.
        let limit = lua.set_memory_limit(0)?;
        let result = match self.reply.only() {
            Some(bytes) => Reply::new(bytes, lua, self.names).whole(),
            None => {
                let mut bytes = Vec::with_capacity(self.reply.len());
                self.reply.slices(|piece| {
                    bytes.extend_from_slice(piece);
                    true
                });
                Reply::new(&bytes, lua, self.names).whole()
            }
        };
        lua.set_memory_limit(limit)?;
        self.reply.clear();
        self.reply.shrink(KEPT_BYTES);
        result
    }

    fn set_resp3(&mut self, on: bool) {
        self.session.protocol = if on { Protocol::Resp3 } else { Protocol::Resp2 };
    }

    fn may_call(&mut self, words: &[Vec<u8>]) -> Result<bool, &'static str> {
        let words = resp::OwnedArgs::from_words(words.iter().map(Vec::as_slice));
        let args = words.view();
        let Ok(entry) = self.cx.shared.table.resolve(&args) else {
            return Err("ERR Invalid command passed to redis.acl_check_cmd()");
        };
        if !entry.arity_allows(args.len()) {
            return Err("ERR Wrong number of args for redis.acl_check_cmd()");
        }
        Ok(acl::check(&self.session, entry, args).is_ok())
    }

    fn register(&mut self, _: &Lua, _: &MultiValue) -> mlua::Result<Option<&'static str>> {
        Ok(Some(
            "ERR redis.register_function can only be called on FUNCTION LOAD command",
        ))
    }

    fn look(&mut self, _: &Lua) -> mlua::Result<()> {
        let ticks = self.cx.host.ticks().saturating_sub(self.began_ticks);
        #[allow(clippy::cast_precision_loss)] // Milliseconds.
        let took_ms = ticks as f64 / self.cx.host.ticks_per_us() / 1000.0;
        let args = self.args;
        let host = ThreadHost::of(self.cx);
        let running = &host.shared.scripts.running;
        if !self.is_long {
            self.is_long = true;
            running.is_long.store(true, Ordering::Release);
        }
        if host.shared.shutdown.load(Ordering::Acquire) {
            return Err(mlua::Error::runtime("The server stops"));
        }
        let limit_ms = host.config.busy_reply_threshold_ms;
        #[allow(clippy::cast_precision_loss)] // As above.
        if limit_ms == 0 || took_ms < limit_ms as f64 {
            return Ok(());
        }
        if !self.is_noted {
            self.is_noted = true;
            running.kill.store(false, Ordering::Release);
            *running.slow.lock() = Some(Slow {
                is_function: self.is_function,
                name: (self.name)().into_bytes().into(),
                words: args.iter().map(<[u8]>::to_vec).collect(),
                began_us: host.now_us,
                has_written: self.has_written,
            });
            running.is_slow.store(true, Ordering::Release);
            crate::warning!(
                "Slow script detected: still in execution after {limit_ms} milliseconds. You can \
                 try killing the script using the SCRIPT KILL command."
            );
        }
        if let Some(slow) = &mut *running.slow.lock() {
            slow.has_written = self.has_written;
        }
        busy::look(host, &mut self.guests);
        if running.kill.load(Ordering::Acquire) && !self.has_written {
            let kind = if self.is_function {
                "FUNCTION"
            } else {
                "SCRIPT"
            };
            return Err(mlua::Error::runtime(format!(
                "Script killed by user with {kind} KILL..."
            )));
        }
        Ok(())
    }
}
