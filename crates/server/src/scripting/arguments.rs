//! Arguments of library functions: checked as Lua's own libraries check theirs, and told in the
//! same words.

use mlua::{Lua, MultiValue, Value};

use super::number;

/// What a function of a library answers.
pub type Answer = mlua::Result<MultiValue>;

/// One result.
///
/// # Errors
/// Never: it is an answer.
pub fn result(value: Value) -> Answer {
    Ok(MultiValue::from_iter([value]))
}

/// Several results.
///
/// # Errors
/// Never: it is an answer.
pub fn results(values: Vec<Value>) -> Answer {
    Ok(MultiValue::from_vec(values))
}

/// An error of the script, which says where it is, as Lua's own do.
///
/// # Errors
/// Always.
pub fn failure<T>(lua: &Lua, text: &str) -> mlua::Result<T> {
    let place = lua.inspect_stack(1, |debug| {
        let source = debug.source().short_src?.into_owned();
        Some(format!("{source}:{}: ", debug.current_line()?))
    });
    let text = format!("{}{text}", place.flatten().unwrap_or_default());
    Err(Raised::text(text.into_bytes()))
}

/// An error that a script can catch.
#[derive(Clone, Debug)]
pub struct Raised {
    /// The text.
    pub text: Vec<u8>,
    /// Whether scripts see it as a table `{err=text}`, as errors of commands are.
    pub is_table: bool,
}

impl Raised {
    /// An error that is a string.
    pub fn text(text: Vec<u8>) -> mlua::Error {
        mlua::Error::external(Self {
            text,
            is_table: false,
        })
    }

    /// An error that is a table.
    pub fn table(text: Vec<u8>) -> mlua::Error {
        mlua::Error::external(Self {
            text,
            is_table: true,
        })
    }

    /// What was raised, where it is one of these.
    pub fn of(error: &mlua::Error) -> Option<&Self> {
        match error {
            mlua::Error::CallbackError { cause, .. } => Self::of(cause),
            mlua::Error::ExternalError(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        String::from_utf8_lossy(&self.text).fmt(f)
    }
}

impl std::error::Error for Raised {}

/// The name of a value's type.
pub fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Nil) => "nil",
        Some(Value::Boolean(_)) => "boolean",
        Some(Value::Integer(_) | Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Table(_)) => "table",
        Some(Value::Function(_)) => "function",
        Some(Value::Thread(_)) => "thread",
        Some(_) => "userdata",
    }
}

/// The words for an argument that is wrong; the first is number 1.
pub fn wrong(at: usize, function: &str, why: &str) -> String {
    format!("bad argument #{at} to '{function}' ({why})")
}

fn expected(at: usize, function: &str, what: &str, got: Option<&Value>) -> String {
    wrong(
        at,
        function,
        &format!("{what} expected, got {}", type_name(got)),
    )
}

/// A number, or a string that is one.
///
/// # Errors
/// The words for anything else.
pub fn number(args: &MultiValue, at: usize, function: &str) -> Result<f64, String> {
    let arg = args.get(at - 1);
    let found = match arg {
        #[allow(clippy::cast_precision_loss)] // Lua's numbers are doubles.
        Some(Value::Integer(value)) => Some(*value as f64),
        Some(Value::Number(value)) => Some(*value),
        Some(Value::String(text)) => std::str::from_utf8(&text.as_bytes())
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        _ => None,
    };
    found.ok_or_else(|| expected(at, function, "number", arg))
}

/// An integer: a number, cut off.
///
/// # Errors
/// The words for anything else.
pub fn int(args: &MultiValue, at: usize, function: &str) -> Result<i64, String> {
    number(args, at, function).map(number::to_int)
}

/// A string, or a number as one.
///
/// # Errors
/// The words for anything else.
pub fn text(args: &MultiValue, at: usize, function: &str) -> Result<Vec<u8>, String> {
    let arg = args.get(at - 1);
    match arg {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Integer(value)) => Ok(super::number::of_int(*value)),
        Some(Value::Number(value)) => {
            let mut text = Vec::new();
            number::push_general(*value, 14, &mut text);
            Ok(text)
        }
        _ => Err(expected(at, function, "string", arg)),
    }
}
