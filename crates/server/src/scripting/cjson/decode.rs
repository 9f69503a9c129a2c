//! JSON to Lua values.

use mlua::{Lua, Value};

use super::{Config, DEPTH_MAX};

/// Why a text is not decoded.
enum Bad {
    Script(String),
    Lua(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// The value of a text, or what is wrong with it.
///
/// # Errors
/// Where memory is short.
pub(super) fn decode(
    lua: &Lua,
    config: &Config,
    text: &[u8],
) -> mlua::Result<Result<Value, String>> {
    if let [0, _, ..] | [_, 0, ..] = text {
        return Ok(Err(
            "JSON parser does not support UTF-16 or UTF-32".to_owned()
        ));
    }
    let mut decoder = Decoder {
        lua,
        config,
        text,
        at: 0,
    };
    let whole = decoder.token().and_then(|first| {
        let value = decoder.value(first, 0)?;
        let end = decoder.token()?;
        match end.kind {
            Kind::End => Ok(value),
            _ => Err(unexpected("the end", &end)),
        }
    });
    match whole {
        Ok(value) => Ok(Ok(value)),
        Err(Bad::Script(text)) => Ok(Err(text)),
        Err(Bad::Lua(error)) => Err(error),
    }
}

/// A piece of the text.
enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// What is none, and why.
    Error(&'static str),
}

struct Token {
    kind: Kind,
    /// Where it begins, from 0.
    at: usize,
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(why) => why,
        }
    }
}

fn unexpected(expected: &str, token: &Token) -> Bad {
    let (found, at) = (token.kind.name(), token.at + 1);
    Bad::Script(format!(
        "Expected {expected} but found {found} at character {at}"
    ))
}

struct Decoder<'a> {
    lua: &'a Lua,
    config: &'a Config,
    text: &'a [u8],
    at: usize,
}

impl Decoder<'_> {
    #[allow(clippy::unnecessary_wraps)] // Reads better where it is used.
    fn token(&mut self) -> Result<Token, Bad> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
        let at = self.at;
        let mut one = |kind| {
            self.at += 1;
            kind
        };
        let kind = match self.text.get(at) {
            None | Some(0) => Kind::End,
            Some(b'{') => one(Kind::ObjectBegin),
            Some(b'}') => one(Kind::ObjectEnd),
            Some(b'[') => one(Kind::ArrayBegin),
            Some(b']') => one(Kind::ArrayEnd),
            Some(b':') => one(Kind::Colon),
            Some(b',') => one(Kind::Comma),
            Some(b'"') => return Ok(self.string()),
            Some(b'-' | b'+' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
        };
        Ok(Token { kind, at })
    }

    fn word(&mut self) -> Kind {
        let rest = &self.text[self.at..];
        for (word, kind) in [
            (&b"true"[..], Kind::Boolean(true)),
            (b"false", Kind::Boolean(false)),
            (b"null", Kind::Null),
        ] {
            if rest.starts_with(word) {
                self.at += word.len();
                return kind;
            }
        }
        match rest.first() {
            Some(b'n' | b'N' | b'i' | b'I') => match self.number() {
                Kind::Error(_) => Kind::Error("invalid token"),
                number => number,
            },
            _ => Kind::Error("invalid token"),
        }
    }

    /// A number as C reads it, which is more than JSON has.
    fn number(&mut self) -> Kind {
        let rest = &self.text[self.at..];
        let sign = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
        let negative = rest.first() == Some(&b'-');
        let body = &rest[sign..];
        let signed = |value: f64| if negative { -value } else { value };
        let is_word = |word: &[u8]| {
            body.get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let is_hex = matches!(body, [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit());
        let (value, len) = if is_word(b"infinity") {
            (f64::INFINITY, 8)
        } else if is_word(b"inf") {
            (f64::INFINITY, 3)
        } else if is_word(b"nan") {
            (f64::NAN, 3)
        } else if is_hex {
            let digits = body[2..].iter().take_while(|byte| byte.is_ascii_hexdigit());
            let (mut value, mut len) = (0.0, 2);
            for &digit in digits {
                value = value * 16.0 + f64::from(char::from(digit).to_digit(16).unwrap_or(0));
                len += 1;
            }
            (value, len)
        } else {
            let len = decimal_len(body);
            let text = std::str::from_utf8(&body[..len]).unwrap_or_default();
            match text.parse() {
                Ok(value) => (value, len),
                Err(_) => return Kind::Error("invalid number"),
            }
        };
        let is_plain = !is_hex && value.is_finite() && rest.first() != Some(&b'+');
        let has_zeros = body.len() > 1 && body[0] == b'0' && body[1].is_ascii_digit();
        if !self.config.decode_invalid && (!is_plain || has_zeros) {
            return Kind::Error("invalid number");
        }
        self.at += sign + len;
        Kind::Number(signed(value))
    }

    fn string(&mut self) -> Token {
        let begin = self.at;
        let mut out = Vec::new();
        self.at += 1;
        let error = |why, at| Token {
            kind: Kind::Error(why),
            at,
        };
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|&byte| byte == b'"' || byte == b'\\')
                .unwrap_or(rest.len());
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.text.get(self.at) {
                None => return error("unexpected end of string", self.at),
                Some(b'"') => break,
                Some(_) => {}
            }
            let escape = self.at;
            match self.text.get(escape + 1) {
                Some(b'u') => match self.unicode(&mut out) {
                    Some(()) => continue,
                    None => return error("invalid unicode escape code", escape),
                },
                Some(byte @ (b'"' | b'\\' | b'/')) => out.push(*byte),
                Some(b'b') => out.push(8),
                Some(b'f') => out.push(12),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(_) => return error("invalid escape code", escape),
                None => return error("unexpected end of string", self.text.len()),
            }
            self.at += 2;
        }
        self.at += 1;
        Token {
            kind: Kind::String(out),
            at: begin,
        }
    }

    /// Four hexadecimal digits at `at`.
    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        let digit =
            |value: Option<u32>, byte: &u8| Some(value? << 4 | char::from(*byte).to_digit(16)?);
        digits.iter().fold(Some(0), digit)
    }

    /// `\uXXXX`, or a pair of them, at the current place.
    fn unicode(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let first = self.hex4(self.at + 2)?;
        self.at += 6;
        let mut code = first;
        if first & 0xf800 == 0xd800 {
            if first & 0x400 != 0 || self.text.get(self.at..self.at + 2)? != b"\\u" {
                return None;
            }
            let second = self.hex4(self.at + 2)?;
            if second & 0xfc00 != 0xdc00 {
                return None;
            }
            self.at += 6;
            code = 0x10000 + ((first & 0x3ff) << 10 | second & 0x3ff);
        }
        let letter = char::from_u32(code)?;
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Some(())
    }

    fn value(&mut self, token: Token, depth: i64) -> Result<Value, Bad> {
        match token.kind {
            Kind::String(text) => Ok(Value::String(self.lua.create_string(text)?)),
            Kind::Number(value) => Ok(Value::Number(value)),
            Kind::Boolean(value) => Ok(Value::Boolean(value)),
            Kind::Null => Ok(Value::NULL),
            Kind::ObjectBegin => self.object(depth + 1),
            Kind::ArrayBegin => self.array(depth + 1),
            _ => Err(unexpected("value", &token)),
        }
    }

    fn check_depth(&self, depth: i64) -> Result<(), Bad> {
        if depth > self.config.decode_depth.min(DEPTH_MAX) {
            return Err(Bad::Script(format!(
                "Found too many nested data structures ({depth}) at character {}",
                self.at
            )));
        }
        Ok(())
    }

    fn object(&mut self, depth: i64) -> Result<Value, Bad> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if let Kind::ObjectEnd = token.kind {
            return Ok(Value::Table(table));
        }
        loop {
            let Kind::String(key) = token.kind else {
                return Err(unexpected("object key string", &token));
            };
            let colon = self.token()?;
            let Kind::Colon = colon.kind else {
                return Err(unexpected("colon", &colon));
            };
            let first = self.token()?;
            let value = self.value(first, depth)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            token = self.token()?;
            match token.kind {
                Kind::ObjectEnd => return Ok(Value::Table(table)),
                Kind::Comma => token = self.token()?,
                _ => return Err(unexpected("comma or object end", &token)),
            }
        }
    }

    fn array(&mut self, depth: i64) -> Result<Value, Bad> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        if self.config.arrays_marked {
            table.set_metatable(Some(self.config.array_mark.clone()))?;
        }
        let mut token = self.token()?;
        if let Kind::ArrayEnd = token.kind {
            return Ok(Value::Table(table));
        }
        for index in 1.. {
            let value = self.value(token, depth)?;
            table.raw_seti(index, value)?;
            token = self.token()?;
            match token.kind {
                Kind::ArrayEnd => break,
                Kind::Comma => token = self.token()?,
                _ => return Err(unexpected("comma or array end", &token)),
            }
        }
        Ok(Value::Table(table))
    }
}

/// How many bytes of `text` are a decimal number: digits, a fraction, an exponent.
fn decimal_len(text: &[u8]) -> usize {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut len = digits(0);
    if len > 0 && text.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if len > 0
        && let Some(b'e' | b'E') = text.get(len)
    {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    len
}
