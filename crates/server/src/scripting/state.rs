//! A thread's Lua state: the sandbox, and the scripts that were compiled in it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{
    Function, HookTriggers, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, VmState,
};

use super::arguments::Raised;
use super::convert::{Names, before_nul};
use super::random::Random;
use super::registry::{Script, Sha};
use super::run::{BAD_ARGUMENT, NO_ARGUMENT};
use super::{api, bits, cjson, cmsgpack, current, structs};

/// Bytes that one state may take. What is past that is an error of the script.
pub const STATE_BYTES_MAX: usize = 1 << 30;
/// Bytes of a text that a library makes of tables: the same table may be in it many times.
pub const TEXT_BYTES_MAX: usize = 512 << 20;
/// Instructions between looks at the clock.
const LOOK_INSTRUCTIONS: u32 = 100_000;
/// Compiled scripts of which some may be forgotten already, before these are looked for.
const COMPILED_MAX: usize = 1024;

/// The chunk of the sandbox, of which no error of a script is to speak.
const PRELUDE: &str = "=prelude";
const PRELUDE_PLACE: &[u8] = b"prelude:";

/// What went wrong in a script, and where.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// The text, its code first.
    pub text: Vec<u8>,
    /// The chunk and the line.
    pub place: Option<(String, usize)>,
}

/// What a state is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Eval,
    Functions,
}

/// A Lua state.
pub struct State {
    pub lua: Lua,
    pub names: Names,
    /// What stands behind them.
    real: Table,
    run: Function,
    load_only: Function,
    keys_name: LuaString,
    argv_name: LuaString,
    failure: Rc<RefCell<Option<Failure>>>,
    compiled: HashMap<Sha, (Arc<Script>, Function)>,
    /// Functions of libraries by their names, and which change of the libraries they are of.
    pub functions: HashMap<Box<[u8]>, Function>,
    pub functions_version: u64,
}

impl State {
    /// A fresh state.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn new(kind: Kind) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::OS | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        let names = Names::new(&lua)?;
        let failure: Rc<RefCell<Option<Failure>>> = Rc::default();
        let natives = natives(&lua, &failure)?;
        let prelude = lua
            .load(include_str!("prelude.lua"))
            .set_name(PRELUDE)
            .into_function()?;
        let (globals, real, run, load_only): (Table, Table, Function, Function) =
            prelude.call((natives, kind == Kind::Functions))?;
        lua.set_globals(globals)?;
        let triggers = HookTriggers::new().every_nth_instruction(LOOK_INSTRUCTIONS);
        lua.set_global_hook(triggers, |lua, _| {
            current::calls(|calls| calls.look(lua)).transpose()?;
            Ok(VmState::Continue)
        })?;
        lua.set_memory_limit(STATE_BYTES_MAX)?;
        Ok(Self {
            names,
            real,
            run,
            load_only,
            keys_name: lua.create_string("KEYS")?,
            argv_name: lua.create_string("ARGV")?,
            failure,
            compiled: HashMap::new(),
            functions: HashMap::new(),
            functions_version: 0,
            lua,
        })
    }

    /// Compiles a chunk.
    ///
    /// # Errors
    /// The compiler's words.
    pub fn compile(&self, source: &[u8], name: &str) -> Result<Function, Vec<u8>> {
        // Bytecode could do anything.
        if source.first() == Some(&27) {
            let place = name.trim_start_matches('@');
            return Err(format!("{place}:1: unexpected symbol near 'char(27)'").into_bytes());
        }
        let chunk = self.lua.load(source).set_name(name);
        chunk.into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => message.into_bytes(),
            other => other.to_string().into_bytes(),
        })
    }

    /// The compiled form of a script that is kept.
    pub fn compiled(&self, sha: &Sha) -> Option<&(Arc<Script>, Function)> {
        self.compiled
            .get(sha)
            .filter(|(script, _)| script.is_kept())
    }

    /// Keeps the compiled form of a script.
    pub fn keep(&mut self, script: Arc<Script>, function: Function) {
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.retain(|_, (script, _)| script.is_kept());
        }
        self.compiled.insert(script.sha, (script, function));
    }

    /// Sets KEYS and ARGV.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn set_arguments(&self, keys: &Table, args: &Table) -> mlua::Result<()> {
        self.real.raw_set(&self.keys_name, keys)?;
        self.real.raw_set(&self.argv_name, args)
    }

    /// A table of words.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn list<'w>(&self, words: impl ExactSizeIterator<Item = &'w [u8]>) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(words.len(), 0)?;
        for (index, word) in words.enumerate() {
            table.raw_seti(index + 1, self.lua.create_string(word)?)?;
        }
        Ok(table)
    }

    /// Runs a compiled script.
    ///
    /// # Errors
    /// What it raised.
    pub fn run(
        &self,
        function: &Function,
        arguments: Option<(Table, Table)>,
    ) -> Result<Value, Failure> {
        self.failure.borrow_mut().take();
        let result = match arguments {
            None => self.run.call::<(bool, Value)>(function),
            Some((keys, args)) => self.run.call((function, keys, args)),
        };
        match result {
            Ok((true, value)) => Ok(value),
            Ok((false, value)) => {
                Err(self.failure.borrow_mut().take().unwrap_or_else(|| Failure {
                    text: text_of(&value),
                    ..Failure::default()
                }))
            }
            Err(error) => Err(Failure {
                text: format!("ERR {error}").into_bytes(),
                ..Failure::default()
            }),
        }
    }

    /// Whether a library is being loaded: its globals are few then.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn load_only(&self, on: bool) -> mlua::Result<()> {
        self.load_only.call(on)
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.lua.used_memory()
    }
}

/// The text of an error.
fn text_of(value: &Value) -> Vec<u8> {
    let plain = match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Nil => b"nil".to_vec(),
        Value::Error(error) => match Raised::of(error) {
            Some(raised) if raised.is_table => return raised.text.clone(),
            Some(raised) => raised.text.clone(),
            None => cause(error).into_bytes(),
        },
        Value::Integer(value) => super::number::of_int(*value),
        Value::Number(value) => {
            let mut text = Vec::new();
            super::number::push_general(*value, 14, &mut text);
            text
        }
        Value::Boolean(value) => value.to_string().into_bytes(),
        other => format!("({} error object)", other.type_name()).into_bytes(),
    };
    [b"ERR ", &plain[..]].concat()
}

/// A text without its place in the sandbox.
fn without_prelude(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(PRELUDE_PLACE)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b": ")
}

/// The innermost cause of an error of the host, without a trace of calls.
fn cause(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause: inner, .. } => cause(inner),
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a script that catches an error sees of it; nothing of one that it must not catch.
fn unwrapped(lua: &Lua, names: &LuaString, value: Value) -> mlua::Result<Value> {
    match &value {
        Value::Error(error) => match Raised::of(error) {
            Some(raised) => {
                let text = Value::String(lua.create_string(&raised.text)?);
                if !raised.is_table {
                    return Ok(text);
                }
                let table = lua.create_table_with_capacity(0, 1)?;
                table.raw_set(names, text)?;
                Ok(Value::Table(table))
            }
            None => Ok(Value::Nil),
        },
        Value::String(text) => match without_prelude(&text.as_bytes()) {
            Some(rest) => Ok(Value::String(lua.create_string(rest)?)),
            None => Ok(value),
        },
        _ => Ok(value),
    }
}

/// Levels of the stack that are searched for a script's own line.
const LEVELS_MAX: usize = 12;

/// The chunk and line of the script that is nearest to the error.
fn place(lua: &Lua) -> Option<(String, usize)> {
    for level in 1..LEVELS_MAX {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let line = debug.current_line()?;
            let source = source.source?;
            (source != PRELUDE).then(|| (source.into_owned(), line))
        })?;
        if found.is_some() {
            return found;
        }
    }
    None
}

fn handler(lua: &Lua, value: &Value, failure: &RefCell<Option<Failure>>) -> mlua::Result<Value> {
    let text = match value {
        Value::Table(table) => match table.raw_get::<Value>("err")? {
            Value::String(text) => text.as_bytes().to_vec(),
            number @ (Value::Number(_) | Value::Integer(_)) => {
                let text = text_of(&number);
                text.strip_prefix(b"ERR ").unwrap_or(&text).to_vec()
            }
            _ => b"ERR unknown error".to_vec(),
        },
        other => text_of(other),
    };
    let text = before_nul(&text).to_vec();
    let place = place(lua);
    let inner = text.strip_prefix(b"ERR ").and_then(without_prelude);
    let text = match (inner, &place) {
        (Some(inner), Some((source, line))) => {
            let source = source.trim_start_matches('@');
            [format!("ERR {source}:{line}: ").as_bytes(), inner].concat()
        }
        (Some(inner), None) => [b"ERR ", inner].concat(),
        (None, _) => text,
    };
    *failure.borrow_mut() = Some(Failure { text, place });
    Ok(Value::Nil)
}

/// The functions of the host that the prelude builds the sandbox with.
fn natives(lua: &Lua, failure: &Rc<RefCell<Option<Failure>>>) -> mlua::Result<Table> {
    let n = lua.create_table()?;
    let failure = failure.clone();
    n.raw_set(
        "handler",
        lua.create_function(move |lua, value: Value| handler(lua, &value, &failure))?,
    )?;
    let err = lua.create_string("err")?;
    n.raw_set(
        "unwrapped",
        lua.create_function(move |lua, value: Value| unwrapped(lua, &err, value))?,
    )?;
    let idle = || mlua::Error::runtime("no script runs");
    n.raw_set(
        "call",
        lua.create_function(move |lua, args: MultiValue| {
            let result = current::calls(|calls| calls.call(lua, &args));
            result.ok_or_else(idle)??.map_err(Raised::table)
        })?,
    )?;
    let err = lua.create_string("err")?;
    n.raw_set(
        "pcall",
        lua.create_function(move |lua, args: MultiValue| {
            let result = current::calls(|calls| calls.call(lua, &args));
            match result.ok_or_else(idle)?? {
                Ok(value) => Ok(value),
                Err(text) => {
                    let table = lua.create_table_with_capacity(0, 2)?;
                    table.raw_set(&err, lua.create_string(&text)?)?;
                    if [NO_ARGUMENT, BAD_ARGUMENT]
                        .iter()
                        .all(|own| text != own.as_bytes())
                    {
                        table.raw_set("ignore_error_stats_update", true)?;
                    }
                    Ok(Value::Table(table))
                }
            }
        })?,
    )?;
    let random = Rc::new(Cell::new(Random::unseeded()));
    let draws = random.clone();
    n.raw_set(
        "random",
        lua.create_function(move |lua, args: MultiValue| {
            let mut random = draws.get();
            let drawn = random.draw();
            draws.set(random);
            super::random::between(lua, &args, drawn)
        })?,
    )?;
    n.raw_set(
        "seed",
        lua.create_function(move |_, seed: Option<f64>| {
            let seed = super::number::to_int(seed.unwrap_or(0.0));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // As C does.
            random.set(Random::new(seed as u32));
            Ok(())
        })?,
    )?;
    n.raw_set("constants", api::constants(lua)?)?;
    n.raw_set("api", api::functions(lua)?)?;
    n.raw_set(
        "register_function",
        lua.create_function(|lua, args: MultiValue| {
            let failure = current::calls(|calls| calls.register(lua, &args));
            match failure.transpose()?.flatten() {
                Some(text) => Err(Raised::table(text.into())),
                None => Ok(()),
            }
        })?,
    )?;
    let libraries = lua.create_table()?;
    libraries.raw_set("cjson", cjson::functions(lua)?)?;
    libraries.raw_set("cmsgpack", cmsgpack::functions(lua)?)?;
    libraries.raw_set("struct", structs::functions(lua)?)?;
    libraries.raw_set("bit", bits::functions(lua)?)?;
    n.raw_set("libraries", libraries)?;
    Ok(n)
}

thread_local! {
    static STATES: RefCell<[Option<Box<State>>; 2]> = const { RefCell::new([None, None]) };
}

fn slot(kind: Kind) -> usize {
    match kind {
        Kind::Eval => 0,
        Kind::Functions => 1,
    }
}

/// Uses this thread's state, which is made where there is none.
///
/// # Errors
/// Where memory is short, or the state is in use: a script runs.
pub fn with_state<R>(
    kind: Kind,
    body: impl FnOnce(&mut State) -> R,
) -> Result<R, engine::CommandError> {
    let at = slot(kind);
    let taken = STATES.with_borrow_mut(|states| states[at].take());
    let mut state = match taken {
        Some(state) => state,
        None if current::calls(|_| ()).is_some() => {
            return Err(engine::CommandError::text("ERR a script runs already"));
        }
        None => Box::new(State::new(kind).map_err(|error| {
            crate::warning!("Making a Lua state: {error}");
            engine::CommandError::text("ERR the Lua state could not be made")
        })?),
    };
    let result = body(&mut state);
    // Lua 5.1 does not look for garbage when an allocation fails: what one script left behind would
    // leave no room for the next.
    if state.bytes() > STATE_BYTES_MAX / 2
        && let Err(error) = state.lua.gc_collect()
    {
        crate::warning!("Collecting the garbage of scripts: {error}");
    }
    STATES.with_borrow_mut(|states| states[at] = Some(state));
    Ok(result)
}

/// Gives this thread's state back.
pub fn drop_state(kind: Kind) {
    STATES.with_borrow_mut(|states| states[slot(kind)] = None);
}

/// Bytes of this thread's states.
pub fn bytes() -> [usize; 2] {
    STATES.with_borrow(|states| {
        let bytes = |state: &Option<Box<State>>| state.as_ref().map_or(0, |state| state.bytes());
        [bytes(&states[0]), bytes(&states[1])]
    })
}
