//! Libraries of functions: what FUNCTION LOAD brought, shared by all threads.
//!
//! The sources are shared; each thread runs a library's body once, when it first calls one of its
//! functions, and keeps the Lua functions that the body registers. So what a library keeps in
//! variables of its own is kept a thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use engine::CommandError;
use engine::error::shown;
use mlua::{Function, Lua, MultiValue, Value};
use parking_lot::RwLock;

use super::current::{self, Calls};
use super::header::{self, BAD_NAME, ScriptFlags};
use super::state::{Failure, Kind, State, with_state};

/// Milliseconds that the body of a library may take.
const LOAD_MS_MAX: u128 = 500;

/// A function of a library.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    pub name: Box<[u8]>,
    pub description: Option<Box<[u8]>>,
    pub flags: ScriptFlags,
}

/// A library.
#[derive(Debug)]
pub struct Library {
    pub name: Box<[u8]>,
    pub source: Box<[u8]>,
    pub functions: Vec<FunctionInfo>,
}

/// All libraries at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub libraries: BTreeMap<Box<[u8]>, Arc<Library>>,
    /// Where each function is: its library, and its place in it.
    functions: HashMap<Box<[u8]>, (Arc<Library>, usize)>,
    /// Which change brought it.
    pub version: u64,
}

impl Snapshot {
    /// The library of a function, and what is known of the function.
    pub fn find(&self, function: &[u8]) -> Option<(&Arc<Library>, &FunctionInfo)> {
        let (library, at) = self.functions.get(function)?;
        Some((library, library.functions.get(*at)?))
    }

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    /// Bytes of all libraries.
    pub fn bytes(&self) -> usize {
        let bytes = |library: &Arc<Library>| {
            library.source.len() + library.name.len() + size_of::<Library>()
        };
        self.libraries.values().map(bytes).sum()
    }

    fn add(&mut self, library: Library, may_replace: bool) -> Result<(), CommandError> {
        if let Some(old) = self.libraries.get(&library.name) {
            if !may_replace {
                return Err(exists(&library.name));
            }
            let old = old.clone();
            self.remove(&old);
        }
        for function in &library.functions {
            if self.functions.contains_key(&function.name) {
                let name = shown(&function.name);
                return Err(CommandError::err(format!("Function {name} already exists")));
            }
        }
        let library = Arc::new(library);
        for (at, function) in library.functions.iter().enumerate() {
            self.functions
                .insert(function.name.clone(), (library.clone(), at));
        }
        self.libraries.insert(library.name.clone(), library);
        Ok(())
    }

    fn remove(&mut self, library: &Library) {
        self.libraries.remove(&library.name);
        for function in &library.functions {
            self.functions.remove(&function.name);
        }
    }
}

fn exists(name: &[u8]) -> CommandError {
    CommandError::err(format!("Library '{}' already exists", shown(name)))
}

/// What FUNCTION RESTORE does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Flush,
    Append,
    Replace,
}

/// The libraries.
#[derive(Default)]
pub struct Libraries(RwLock<Arc<Snapshot>>);

impl Libraries {
    /// The libraries now.
    pub fn now(&self) -> Arc<Snapshot> {
        self.0.read().clone()
    }

    fn change<R>(
        &self,
        change: impl FnOnce(&mut Snapshot) -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        let mut slot = self.0.write();
        let mut next = Snapshot::clone(&slot);
        next.version += 1;
        let result = change(&mut next)?;
        *slot = Arc::new(next);
        Ok(result)
    }

    /// FUNCTION LOAD: returns the library's name.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    pub fn load(&self, source: &[u8], may_replace: bool) -> Result<Box<[u8]>, CommandError> {
        let (name, _) = header::library(source)?;
        if !may_replace && self.now().libraries.contains_key(name) {
            return Err(exists(name));
        }
        let library = examine(source)?;
        self.change(|next| {
            let name = library.name.clone();
            next.add(library, may_replace)?;
            Ok(name)
        })
    }

    /// FUNCTION RESTORE: all of the libraries, or none.
    ///
    /// # Errors
    /// Where one cannot be loaded.
    pub fn restore(&self, sources: &[Vec<u8>], policy: Policy) -> Result<(), CommandError> {
        let mut libraries = Vec::new();
        for source in sources {
            libraries.push(examine(source)?);
        }
        self.change(|next| {
            if policy == Policy::Flush {
                next.libraries.clear();
                next.functions.clear();
            }
            for library in libraries {
                next.add(library, policy == Policy::Replace)?;
            }
            Ok(())
        })
    }

    /// FUNCTION DELETE.
    ///
    /// # Errors
    /// Where there is no such library.
    pub fn delete(&self, name: &[u8]) -> Result<(), CommandError> {
        self.change(|next| match next.libraries.get(name).cloned() {
            Some(library) => {
                next.remove(&library);
                Ok(())
            }
            None => Err(CommandError::text("ERR Library not found")),
        })
    }

    /// FUNCTION FLUSH.
    pub fn flush(&self) {
        // Nothing is refused here.
        let _ = self.change(|next| {
            next.libraries.clear();
            next.functions.clear();
            Ok(())
        });
    }
}

/// Runs a library's body to learn its functions.
fn examine(source: &[u8]) -> Result<Library, CommandError> {
    let (name, _) = header::library(source)?;
    let registered = with_state(Kind::Functions, |state| run_body(state, source))??;
    Ok(Library {
        name: name.into(),
        source: source.into(),
        functions: registered.into_iter().map(|(info, _)| info).collect(),
    })
}

/// Runs a library's body in a state: what it registers.
fn run_body(
    state: &mut State,
    source: &[u8],
) -> Result<Vec<(FunctionInfo, Function)>, CommandError> {
    let (_, body) = header::library(source)?;
    let latin = |text: &[u8]| -> String { text.iter().map(|&byte| char::from(byte)).collect() };
    let function = state
        .compile(body, "@user_function")
        .map_err(|text| CommandError::err(format!("Error compiling function: {}", latin(&text))))?;
    let mut loader = Loader {
        registered: Vec::new(),
        began: std::time::Instant::now(),
    };
    let failed = |failure: Failure| {
        let text = latin(&failure.text);
        CommandError::err(format!("Error registering functions: {text}"))
    };
    let memory = |error: mlua::Error| CommandError::err(error.to_string());
    state.load_only(true).map_err(memory)?;
    let result = current::with_calls(&mut loader, || state.run(&function, None));
    state.load_only(false).map_err(memory)?;
    result.map_err(failed)?;
    if loader.registered.is_empty() {
        return Err(CommandError::err("No functions registered"));
    }
    Ok(loader.registered)
}

/// The Lua function of a name, out of a library that may have to be loaded in this state first.
///
/// # Errors
/// Where loading it fails here, as where memory is short.
pub fn function_in(
    state: &mut State,
    snapshot: &Snapshot,
    library: &Library,
    name: &[u8],
) -> Result<Function, CommandError> {
    if state.functions_version != snapshot.version {
        state.functions.clear();
        state.functions_version = snapshot.version;
    }
    if let Some(function) = state.functions.get(name) {
        return Ok(function.clone());
    }
    for (info, function) in run_body(state, &library.source)? {
        state.functions.insert(info.name, function);
    }
    match state.functions.get(name) {
        Some(function) => Ok(function.clone()),
        None => Err(CommandError::text("ERR Function not found")),
    }
}

/// What a library's body reaches while it is loaded.
struct Loader {
    registered: Vec<(FunctionInfo, Function)>,
    began: std::time::Instant,
}

impl Calls for Loader {
    fn call(&mut self, _: &Lua, _: &MultiValue) -> mlua::Result<Result<Value, Vec<u8>>> {
        Ok(Err(b"ERR no command can be called now".to_vec()))
    }

    fn set_resp3(&mut self, _: bool) {}

    fn may_call(&mut self, _: &[Vec<u8>]) -> Result<bool, &'static str> {
        Ok(false)
    }

    fn register(&mut self, _: &Lua, args: &MultiValue) -> mlua::Result<Option<&'static str>> {
        let (info, function) = match registration(args) {
            Ok(found) => found,
            Err(text) => return Ok(Some(text)),
        };
        if !header::is_name(&info.name) {
            return Ok(Some(BAD_NAME));
        }
        if self
            .registered
            .iter()
            .any(|(known, _)| known.name == info.name)
        {
            return Ok(Some("ERR Function already exists in the library"));
        }
        self.registered.push((info, function));
        Ok(None)
    }

    fn look(&mut self, _: &Lua) -> mlua::Result<()> {
        if self.began.elapsed().as_millis() > LOAD_MS_MAX {
            return Err(mlua::Error::runtime("FUNCTION LOAD timeout"));
        }
        Ok(())
    }
}

/// The arguments of `redis.register_function`: a name and a function, or a table of them.
fn registration(args: &MultiValue) -> Result<(FunctionInfo, Function), &'static str> {
    const COUNT: &str = "ERR wrong number of arguments to redis.register_function";
    let mut given = args.iter();
    match (given.next(), given.next(), given.next()) {
        (Some(name), Some(function), None) => {
            let Value::String(name) = name else {
                return Err("ERR first argument to redis.register_function must be a string");
            };
            let Value::Function(function) = function else {
                return Err("ERR second argument to redis.register_function must be a function");
            };
            let info = FunctionInfo {
                name: (*name.as_bytes()).into(),
                description: None,
                flags: ScriptFlags::default(),
            };
            Ok((info, function.clone()))
        }
        (Some(Value::Table(table)), None, None) => named_registration(table),
        (Some(_), None, None) => Err(
            "ERR calling redis.register_function with a single argument is only applicable to Lua \
             table (representing named arguments).",
        ),
        _ => Err(COUNT),
    }
}

fn named_registration(table: &mlua::Table) -> Result<(FunctionInfo, Function), &'static str> {
    let (mut name, mut description, mut callback) = (None, None, None);
    let mut flags = ScriptFlags::default();
    for pair in table.pairs::<Value, Value>() {
        let Ok((Value::String(key), value)) = pair else {
            return Err("ERR named argument key given to redis.register_function is not a string");
        };
        match (&*key.as_bytes(), value) {
            (b"function_name", Value::String(text)) => name = Some(text),
            (b"function_name", _) => {
                return Err(
                    "ERR function_name argument given to redis.register_function must be \
                            a string",
                );
            }
            (b"description", Value::String(text)) => description = Some(text),
            (b"description", _) => {
                return Err(
                    "ERR description argument given to redis.register_function must be a string",
                );
            }
            (b"callback", Value::Function(function)) => callback = Some(function),
            (b"callback", _) => {
                return Err(
                    "ERR callback argument given to redis.register_function must be a function",
                );
            }
            (b"flags", Value::Table(list)) => {
                for flag in list.sequence_values::<Value>() {
                    let Ok(Value::String(flag)) = flag else {
                        return Err("ERR unknown flag given");
                    };
                    let flag = ScriptFlags::named(&flag.as_bytes());
                    flags = flags.with(flag.ok_or("ERR unknown flag given")?);
                }
            }
            (b"flags", _) => {
                return Err(
                    "ERR flags argument to redis.register_function must be a table \
                            representing function flags",
                );
            }
            _ => return Err("ERR unknown argument given to redis.register_function"),
        }
    }
    let Some(name) = name else {
        return Err("ERR redis.register_function must get a function name argument");
    };
    let Some(callback) = callback else {
        return Err("ERR redis.register_function must get a callback argument");
    };
    let info = FunctionInfo {
        name: (*name.as_bytes()).into(),
        description: description.map(|text| (*text.as_bytes()).into()),
        flags,
    };
    Ok((info, callback))
}
