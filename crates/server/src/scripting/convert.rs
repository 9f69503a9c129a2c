//! Replies to Lua values, and Lua values to replies.
//!
//! | reply | Lua |
//! |---|---|
//! | integer | number |
//! | bulk | string |
//! | array | table |
//! | status, error | `{ok=...}`, `{err=...}` |
//! | null | `false` (RESP2), `nil` (RESP3) |
//! | map, set | `{map={...}}`, `{set={member=true}}` |
//! | double, big number | `{double=...}`, `{big_number=...}` |
//! | verbatim | `{verbatim_string={string=..., format=...}}` |
//! | boolean | boolean |

use mlua::{Lua, LuaString, Table, Value};
use resp::Writer;

use super::number;

/// Bytes that wait to be sent, after which no more of a reply is made: the same table may be in it
/// many times.
const REPLY_BYTES_MAX: usize = 1 << 30;
/// How deep tables may be nested in a reply.
const DEPTH_MAX: usize = 1000;

/// Keys of tables that stand for replies.
pub struct Names {
    pub ok: LuaString,
    pub err: LuaString,
    pub double: LuaString,
    pub map: LuaString,
    pub set: LuaString,
    pub big_number: LuaString,
    pub verbatim: LuaString,
    pub format: LuaString,
    pub string: LuaString,
}

impl Names {
    /// The keys, made in `lua`.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn new(lua: &Lua) -> mlua::Result<Self> {
        let name = |text: &str| lua.create_string(text);
        Ok(Self {
            ok: name("ok")?,
            err: name("err")?,
            double: name("double")?,
            map: name("map")?,
            set: name("set")?,
            big_number: name("big_number")?,
            verbatim: name("verbatim_string")?,
            format: name("format")?,
            string: name("string")?,
        })
    }
}

/// A reply of ours, from its first byte on.
pub struct Reply<'a> {
    bytes: &'a [u8],
    at: usize,
    lua: &'a Lua,
    names: &'a Names,
}

impl<'a> Reply<'a> {
    /// The reply in `bytes`.
    pub fn new(bytes: &'a [u8], lua: &'a Lua, names: &'a Names) -> Self {
        Self {
            bytes,
            at: 0,
            lua,
            names,
        }
    }

    /// The rest of the line, and goes behind it.
    fn line(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        // Most lines are a few bytes.
        let end = rest.iter().position(|&byte| byte == b'\r');
        let end = end.unwrap_or(rest.len());
        self.at += end + 2;
        &rest[..end]
    }

    fn count(&mut self) -> i64 {
        let line = self.line();
        let (negative, digits) = match line.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, line),
        };
        let value = digits.iter().fold(0i64, |value, &digit| {
            value
                .wrapping_mul(10)
                .wrapping_add(i64::from(digit.wrapping_sub(b'0')))
        });
        if negative {
            value.wrapping_neg()
        } else {
            value
        }
    }

    fn body(&mut self, count: i64) -> &'a [u8] {
        let len = usize::try_from(count).unwrap_or(0);
        let body = self.bytes.get(self.at..self.at + len).unwrap_or_default();
        self.at += len + 2;
        body
    }

    fn wrapped(&self, name: &LuaString, value: Value) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }

    fn string(&self, bytes: &[u8]) -> mlua::Result<Value> {
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    /// The only value, or an error's text.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn whole(&mut self) -> mlua::Result<Result<Value, Vec<u8>>> {
        if let Some((b'-', rest)) = self.bytes.split_first() {
            let end = rest.iter().position(|&byte| byte == b'\r');
            return Ok(Err(rest[..end.unwrap_or(rest.len())].to_vec()));
        }
        self.value().map(Ok)
    }

    /// The next value.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn value(&mut self) -> mlua::Result<Value> {
        let Some(&kind) = self.bytes.get(self.at) else {
            return Ok(Value::Nil);
        };
        self.at += 1;
        match kind {
            b'$' => match self.count() {
                -1 => Ok(Value::Boolean(false)),
                count => {
                    let body = self.body(count);
                    self.string(body)
                }
            },
            #[allow(clippy::cast_precision_loss)] // Lua's numbers are doubles.
            b':' => Ok(Value::Number(self.count() as f64)),
            b'*' | b'>' => match self.count() {
                -1 => Ok(Value::Boolean(false)),
                count => {
                    let count = usize::try_from(count).unwrap_or(0);
                    let table = self.lua.create_table_with_capacity(count, 0)?;
                    for index in 1..=count {
                        let value = self.value()?;
                        table.raw_seti(index, value)?;
                    }
                    Ok(Value::Table(table))
                }
            },
            b'+' => {
                let line = self.string_line()?;
                self.wrapped(&self.names.ok, line)
            }
            b'-' => {
                let line = self.string_line()?;
                self.wrapped(&self.names.err, line)
            }
            _ => self.rare(kind),
        }
    }

    fn string_line(&mut self) -> mlua::Result<Value> {
        let line = self.line();
        self.string(line)
    }

    /// The types of RESP3.
    fn rare(&mut self, kind: u8) -> mlua::Result<Value> {
        match kind {
            b'_' => {
                self.line();
                Ok(Value::Nil)
            }
            b'#' => Ok(Value::Boolean(self.line() == b"t")),
            b',' => {
                let line = std::str::from_utf8(self.line()).unwrap_or_default();
                let value = line.parse().unwrap_or(f64::NAN);
                self.wrapped(&self.names.double, Value::Number(value))
            }
            b'(' => {
                let line = self.string_line()?;
                self.wrapped(&self.names.big_number, line)
            }
            b'=' => {
                let count = self.count();
                let body = self.body(count);
                let (format, text) = body.split_at(body.len().min(4));
                let table = self.lua.create_table_with_capacity(0, 2)?;
                table.raw_set(&self.names.string, self.string(text)?)?;
                let format = format.strip_suffix(b":").unwrap_or(format);
                table.raw_set(&self.names.format, self.string(format)?)?;
                self.wrapped(&self.names.verbatim, Value::Table(table))
            }
            b'%' => {
                let pairs = self.count();
                let table = self.lua.create_table()?;
                for _ in 0..pairs {
                    let (key, value) = (self.value()?, self.value()?);
                    if !key.is_nil() {
                        table.raw_set(key, value)?;
                    }
                }
                self.wrapped(&self.names.map, Value::Table(table))
            }
            b'~' => {
                let members = self.count();
                let table = self.lua.create_table()?;
                for _ in 0..members {
                    let member = self.value()?;
                    if !member.is_nil() {
                        table.raw_set(member, true)?;
                    }
                }
                self.wrapped(&self.names.set, Value::Table(table))
            }
            b'|' => {
                for _ in 0..self.count() * 2 {
                    self.value()?;
                }
                self.value()
            }
            _ => Ok(Value::Nil),
        }
    }
}

/// The pairs of a table, one at a time: Lua's stack has no room for all of a big one.
fn pairs(table: &Table) -> impl Iterator<Item = (Value, Value)> {
    table.pairs().filter_map(Result::ok)
}

fn count(table: &Table) -> usize {
    pairs(table).count()
}

/// A table is nested too deep, or is too big, to be a reply.
pub struct TooDeep;

/// What C reads of a text.
pub fn before_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Writes a script's result.
pub struct Results<'w, 'o> {
    pub out: &'w mut Writer<'o>,
    pub names: &'w Names,
    /// Whether the script chose RESP3 with `redis.setresp`.
    pub is_resp3: bool,
}

impl Results<'_, '_> {
    /// Writes one value.
    ///
    /// # Errors
    /// Where it is nested too deep or is too big.
    pub fn write(&mut self, value: &Value, depth: usize) -> Result<(), TooDeep> {
        if self.out.output().len() > REPLY_BYTES_MAX {
            return Err(TooDeep);
        }
        match value {
            Value::String(text) => self.out.bulk(&text.as_bytes()),
            Value::Integer(value) => self.out.int(*value),
            Value::Number(value) => self.out.int(number::to_int(*value)),
            Value::Boolean(value) if self.is_resp3 => self.out.boolean(*value),
            Value::Boolean(true) => self.out.int(1),
            Value::Table(table) => return self.table(table, depth),
            _ => self.out.null(),
        }
        Ok(())
    }

    fn line(&mut self, kind: u8, text: &LuaString) {
        let text = text.as_bytes();
        let mut line = Vec::with_capacity(text.len() + 3);
        line.push(kind);
        // A line's end inside would end the reply early.
        let text = text.iter().take_while(|&&byte| byte != 0);
        line.extend(text.map(|&byte| match byte {
            b'\r' | b'\n' => b' ',
            byte => byte,
        }));
        line.extend_from_slice(b"\r\n");
        self.out.raw(&line);
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), TooDeep> {
        if depth >= DEPTH_MAX {
            return Err(TooDeep);
        }
        let names = self.names;
        let get = |name: &LuaString| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
        // Most tables are lists, which have none of the names.
        let first = table.raw_get::<Value>(1).unwrap_or(Value::Nil);
        if let Value::String(text) = get(&names.err) {
            let bytes = text.as_bytes();
            let text: String = engine::error::shown(before_nul(&bytes));
            self.out.error(text.trim_end_matches(['\r', '\n']));
            return Ok(());
        }
        if let Value::String(text) = get(&names.ok) {
            self.line(b'+', &text);
            return Ok(());
        }
        match get(&names.double) {
            Value::Number(value) => {
                self.out.double(value);
                return Ok(());
            }
            #[allow(clippy::cast_precision_loss)] // It was a double.
            Value::Integer(value) => {
                self.out.double(value as f64);
                return Ok(());
            }
            _ => {}
        }
        if let Value::Table(map) = get(&names.map) {
            self.out.map(count(&map));
            for (key, value) in pairs(&map) {
                self.write(&key, depth + 1)?;
                self.write(&value, depth + 1)?;
            }
            return Ok(());
        }
        if let Value::Table(set) = get(&names.set) {
            self.out.set(count(&set));
            for (member, _) in pairs(&set) {
                self.write(&member, depth + 1)?;
            }
            return Ok(());
        }
        if let Value::String(digits) = get(&names.big_number) {
            let digits = digits.to_string_lossy().replace(['\r', '\n'], " ");
            self.out.big_number(&digits);
            return Ok(());
        }
        if let Value::Table(verbatim) = get(&names.verbatim) {
            let part = |name: &LuaString| verbatim.raw_get::<Value>(name).unwrap_or(Value::Nil);
            if let (Value::String(format), Value::String(text)) =
                (part(&names.format), part(&names.string))
            {
                let mut format: Vec<u8> = format.as_bytes().iter().take(3).copied().collect();
                format.resize(3, b' ');
                let format = String::from_utf8_lossy(&format).into_owned();
                self.out.verbatim(&format, &text.as_bytes());
                return Ok(());
            }
        }
        self.list(table, first, depth)
    }

    fn list(&mut self, table: &Table, first: Value, depth: usize) -> Result<(), TooDeep> {
        let mark = self.out.begin_array();
        let (mut value, mut count) = (first, 0);
        while !value.is_nil() {
            self.write(&value, depth + 1)?;
            count += 1;
            value = table.raw_get(count + 1).unwrap_or(Value::Nil);
        }
        self.out.end_array(mark, count);
        Ok(())
    }
}
