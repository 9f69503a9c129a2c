//! Lua values to JSON.

use mlua::{Table, Value};

use super::{Config, DEPTH_MAX, Invalid, type_name};
use crate::scripting::number::push_general;
use crate::scripting::state::TEXT_BYTES_MAX;

/// The greatest place in a list.
const KEY_MAX: i64 = i32::MAX as i64;

/// Why a value is not encoded.
enum Bad {
    Script(String),
    Lua(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// The JSON of a value, or what is wrong with it.
///
/// # Errors
/// Where memory is short.
pub(super) fn encode(config: &Config, value: &Value) -> mlua::Result<Result<Vec<u8>, String>> {
    let mut encoder = Encoder {
        config,
        out: Vec::new(),
    };
    match encoder.value(value, 0) {
        Ok(()) => Ok(Ok(encoder.out)),
        Err(Bad::Script(text)) => Ok(Err(text)),
        Err(Bad::Lua(error)) => Err(error),
    }
}

struct Encoder<'c> {
    config: &'c Config,
    out: Vec<u8>,
}

fn refused<T>(what: &str, why: &str) -> Result<T, Bad> {
    Err(Bad::Script(format!("Cannot serialise {what}: {why}")))
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: i64) -> Result<(), Bad> {
        if self.out.len() > TEXT_BYTES_MAX {
            let error = mlua::Error::MemoryError("not enough memory".to_owned());
            return Err(Bad::Lua(error));
        }
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(data) if data.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            #[allow(clippy::cast_precision_loss)] // It was a double.
            Value::Integer(value) => return self.number(*value as f64),
            Value::Number(value) => return self.number(*value),
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Table(table) => return self.table(table, depth + 1),
            other => return refused(type_name(Some(other)), "type not supported"),
        }
        Ok(())
    }

    fn digits(&mut self, value: f64) {
        let precision = usize::try_from(self.config.precision).unwrap_or(14);
        push_general(value, precision, &mut self.out);
    }

    fn number(&mut self, value: f64) -> Result<(), Bad> {
        if value.is_finite() {
            self.digits(value);
            return Ok(());
        }
        match self.config.encode_invalid {
            Invalid::Refused => return refused("number", "must not be NaN or Inf"),
            Invalid::Null => self.out.extend_from_slice(b"null"),
            Invalid::Kept if value.is_nan() => self.out.extend_from_slice(b"nan"),
            Invalid::Kept => self.digits(value),
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.reserve(text.len() + 2);
        self.out.push(b'"');
        for &byte in text {
            let escaped = match byte {
                b'"' => b'"',
                b'\\' => b'\\',
                b'/' => b'/',
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0..0x20 | 0x7f => {
                    let text = format!("\\u{byte:04x}");
                    self.out.extend_from_slice(text.as_bytes());
                    continue;
                }
                _ => {
                    self.out.push(byte);
                    continue;
                }
            };
            self.out.extend_from_slice(&[b'\\', escaped]);
        }
        self.out.push(b'"');
    }

    fn table(&mut self, table: &Table, depth: i64) -> Result<(), Bad> {
        if depth > self.config.encode_depth.min(DEPTH_MAX) {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(Bad::Script(text));
        }
        // Lua's stack has no room for all pairs of a big table at once.
        let (mut count, mut greatest) = (0, Some(0));
        table.for_each(|key: Value, _: Value| {
            greatest = match (&key, greatest) {
                (Value::Integer(key @ 1..=KEY_MAX), Some(greatest)) => Some((*key).max(greatest)),
                _ => None,
            };
            count += 1;
            Ok(())
        })?;
        let is_marked = table
            .metatable()
            .is_some_and(|mark| mark == self.config.array_mark);
        match greatest {
            Some(0) if !is_marked => self.out.extend_from_slice(b"{}"),
            Some(last) if self.is_dense(last, count)? => self.list(table, last, depth)?,
            _ => self.object(table, depth)?,
        }
        Ok(())
    }

    /// Whether a list with `count` values up to place `last` is written as one.
    fn is_dense(&self, last: i64, count: i64) -> Result<bool, Bad> {
        let config = self.config;
        let is_sparse = config.sparse_ratio > 0
            && last > count.saturating_mul(config.sparse_ratio)
            && last > config.sparse_safe;
        if is_sparse && !config.sparse_convert {
            return refused("table", "excessively sparse array");
        }
        Ok(!is_sparse)
    }

    fn list(&mut self, table: &Table, last: i64, depth: i64) -> Result<(), Bad> {
        self.out.push(b'[');
        for index in 1..=last {
            if index > 1 {
                self.out.push(b',');
            }
            self.value(&table.raw_get(index)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> Result<(), Bad> {
        self.out.push(b'{');
        for (index, pair) in table.pairs().enumerate() {
            let (key, value): (Value, Value) = pair?;
            if index > 0 {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => self.string(&text.as_bytes()),
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.value(&key, depth)?;
                    self.out.push(b'"');
                }
                other => {
                    let what = type_name(Some(other));
                    return refused(what, "table key must be a number or string");
                }
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}
