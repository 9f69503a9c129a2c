//! Scripts: a small grammar of Lua, with calls of made-up commands, conversions of every kind of
//! value to a reply, and round trips through the libraries.
//!
//! # Invariants
//! - What a script returns is decided by the data alone: no addresses, no order of a table's names
//!   (tables with names have one), no commands whose replies need a closer look.
//! - A loop ends after a few rounds.

use crate::random::Random;
use crate::sequence::{Seen, Word};

/// How deep values and blocks are nested.
const DEPTH_MAX: usize = 3;

/// Names of functions in the libraries that sequences load.
const FUNCTIONS: &[&str] = &["f1", "f2", "f3"];

const LITERALS: &[&str] = &[
    "1",
    "0",
    "-1",
    "3.7",
    "-3.7",
    "-0",
    "1e15",
    "9007199254740993",
    "1e100/1e90",
    "'a'",
    "'10'",
    "''",
    "'a\\0b'",
    "'OK'",
    "true",
    "false",
    "nil",
    "{}",
    "{1,2,3}",
    "{1,nil,3}",
    "{nil,1}",
    "{ok='fine'}",
    "{ok='a\\r\\nb'}",
    "{err='ERR bad'}",
    "{err='bad'}",
    "{err='-X y'}",
    "{double=3.5}",
    "{double=1}",
    "{double='a'}",
    "{map={a=1}}",
    "{map={}}",
    "{set={a=true}}",
    "{set={}}",
    "{big_number='12345678901234567890'}",
    "{big_number='1\\r\\n2'}",
    "{verbatim_string={format='txt',string='hi'}}",
    "{verbatim_string={format='txt'}}",
    "{a=1}",
    "{1,a=2}",
    "{ok=1}",
    "{err=1}",
    "{err={}}",
    "{{ok='x'},{err='y'}}",
    "KEYS[1]",
    "ARGV[1]",
    "#KEYS",
    "#ARGV",
    "KEYS",
    "ARGV",
    "KEYS[9]",
    "redis.LOG_NOTICE",
    "redis.REPL_ALL",
    "type(redis)",
    "type(nosuch)",
    "nosuch",
    "_VERSION",
    "math.pi",
];

const UNARY: &[&str] = &[
    "type({})",
    "tostring({k})",
    "tonumber({})",
    "cjson.encode({})",
    "cjson.decode({s})",
    "cjson.decode(cjson.encode({}))",
    "cmsgpack.unpack(cmsgpack.pack({}))",
    "cmsgpack.pack({})",
    "cmsgpack.unpack({s})",
    "cmsgpack.unpack(cmsgpack.pack({},{}))",
    "{cmsgpack.unpack_one(cmsgpack.pack({},{}),{k})}",
    "{cmsgpack.unpack_limit(cmsgpack.pack({},1,2),{k},{k})}",
    "struct.pack({f},{},{})",
    "{struct.unpack({f},{s})}",
    "{struct.unpack({f},struct.pack({f},{n},{n}))}",
    "struct.size({f})",
    "bit.band({n},{n})",
    "bit.bor({n},{n})",
    "bit.bxor({n},7)",
    "bit.bnot({n})",
    "bit.lshift({n},{k})",
    "bit.rshift({n},{k})",
    "bit.arshift({n},{k})",
    "bit.tobit({n})",
    "bit.tohex({n},{k})",
    "bit.bswap({n})",
    "bit.rol({n},{k})",
    "redis.sha1hex({s})",
    "#({s})",
    "redis.error_reply({})",
    "redis.status_reply({})",
    "redis.error_reply({s})",
    "redis.status_reply({s})",
    "({s}):rep({k})",
    "({s}):sub({k})",
    "({s}):upper()",
    "string.format('%d %s %5.2f',{n},{s},{n})",
    "string.format('%q',{s})",
    "{{}}",
    "{{},{}}",
    "{{},{},{}}",
    "({n})+({n})",
    "({n})/2",
    "({n})%3",
    "({s})..({n})",
    "not ({})",
    "({}) and ({})",
    "({}) or ({})",
    "({})==({})",
    "({n})<({n})",
    "math.floor({n})",
    "math.max({n},{n})",
    "select('#',{},{})",
    "{pcall(error,{})}",
    "{pcall(error,{s},0)}",
    "select(2,pcall(function() error({}) end))",
    "table.concat({{s},{n}},',')",
    "{redis.pcall('nosuch',{})}",
    "{redis.pcall({})}",
    "redis.setresp({n})",
    "redis.setresp(3)",
    "redis.setresp(2)",
    "redis.acl_check_cmd({s},'a')",
    "redis.acl_check_cmd('get',{s})",
    "redis.set_repl({n})",
    "redis.log({n})",
    "redis.log({n},{s})",
    "redis.replicate_commands()",
    "redis.breakpoint()",
    "({s}):find({s})",
    "({s}):gsub('a',{s})",
    "{unpack({1,2,{}})}",
    "cjson.encode({{},{}})",
    "cjson.encode({a={}})",
    "{next({})}",
    "setmetatable({},{})",
    "rawget({1},{n})",
    "type(loadstring({s}))",
    "(loadstring('return 1') or type)(1)",
    "tostring({s})",
    "{ok={}}",
    "{err={}}",
    "{map={x={}}}",
    "{double={n}}",
];

const TEXTS: &[&str] = &[
    "'a'",
    "'abc'",
    "''",
    "'10'",
    "'{\"a\":[1,2,null]}'",
    "'[1,2.5,true,\"x\"]'",
    "'[1'",
    "'nul'",
    "'[[[[]]]]'",
    "'\\147\\1\\2\\3'",
    "'\\129\\161a\\1'",
    "'\\203\\63\\248\\0\\0\\0\\0\\0\\0'",
    "'\\221\\0\\0\\0\\9'",
    "'\\193'",
    "'\\0\\0\\0\\1\\2\\3\\4\\5'",
    "'ERR x'",
    "'-ERR x'",
    "'a\\r\\nb'",
    "'get'",
    "'1e3'",
    "'0x10'",
    "'\"\\\\u00e9\"'",
    "'{\"a\":1} x'",
    "ARGV[1]",
    "KEYS[1]",
    "(ARGV[2] or '')",
];
const NUMBERS: &[&str] = &[
    "1",
    "0",
    "-1",
    "2.5",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "-2147483649",
    "1e15",
    "7",
    "'12'",
    "#KEYS",
    "(tonumber(ARGV[1]) or 4)",
    "{}",
    "nil",
];
const FORMATS: &[&str] = &[
    "'b'", "'>I4'", "'<i2'", "'HH'", "'l'", "'d'", "'f'", "'s'", "'c3'", "'c0'", "'bc0'", "'>I8'",
    "'x'", "'i33'", "'z'", "'!4 i'", "'=b'", "'B'", "'i3'", "'I16'", "' < b '", "''", "'c99999'",
];

/// Calls of commands that a script may make, each whole.
pub type Calls<'a> = dyn FnMut(&mut Random) -> Option<Vec<Vec<u8>>> + 'a;

/// A script with the keys and arguments that it is called with.
pub struct Script {
    pub body: String,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
}

struct Maker<'a, 'b> {
    random: &'a mut Random,
    calls: &'a mut Calls<'b>,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

/// A script made up of statements and, mostly, something that it returns.
pub fn script(random: &mut Random, calls: &mut Calls<'_>) -> Script {
    let mut maker = Maker {
        random,
        calls,
        keys: Vec::new(),
        args: Vec::new(),
    };
    let mut body = String::new();
    if maker.random.percent(8) {
        body.push_str(maker.random.word(&[
            "#!lua\n",
            "#!lua flags=no-writes\n",
            "#!lua flags=allow-oom\n",
            "#!lua flags=allow-stale,no-cluster\n",
            "#!lua flags=nosuch\n",
            "#!lua name=x\n",
            "#!python\n",
            "#!lua",
        ]));
    }
    if maker.random.percent(25) {
        body.push_str("redis.setresp(3) ");
    }
    for _ in 0..maker.random.below(4) {
        let statement = maker.statement(0);
        body.push_str(&statement);
        body.push(' ');
    }
    if maker.random.percent(95) {
        body.push_str("return ");
        let value = maker.value(0);
        body.push_str(&value);
    }
    if maker.random.percent(2) {
        let length = body.len();
        body.truncate(maker.random.below(length + 1));
    }
    let Maker { keys, args, .. } = maker;
    Script { body, keys, args }
}

/// A library with some of the functions, as FUNCTION LOAD takes it.
pub fn library(random: &mut Random, calls: &mut Calls<'_>) -> String {
    let name = random.word(&["lib1", "lib1", "lib2", "l-b", ""]);
    let mut text = format!("#!lua name={name}\n");
    for function in FUNCTIONS {
        if random.percent(40) {
            continue;
        }
        let body = script(random, calls).body;
        let body = body.trim_start_matches(|c| c != '\n').trim_start();
        let body = if body.is_empty() { "return 1" } else { body };
        let body = format!("function(KEYS,ARGV) {body} end");
        text.push_str(&match random.below(4) {
            0 => format!(
                "redis.register_function{{function_name='{function}',callback={body},\
                 flags={{'{}'}}}}\n",
                random.word(&["no-writes", "allow-oom", "allow-stale", "nosuch"])
            ),
            _ => format!("redis.register_function('{function}',{body})\n"),
        });
    }
    text
}

/// The words of one call that runs, loads or asks for scripts.
pub fn call(random: &mut Random, calls: &mut Calls<'_>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let kind = random.below(20);
    match kind {
        0 => {
            let made = script(random, calls);
            words.extend(["SCRIPT", "LOAD"].map(Word::from));
            words.push(made.body.into());
            return words;
        }
        1 => {
            let text = library(random, calls);
            words.extend(["FUNCTION", "LOAD"].map(Word::from));
            if random.percent(80) {
                words.push("REPLACE".into());
            }
            words.push(text.into());
            return words;
        }
        2 => {
            let asked: &[&str] = match random.below(7) {
                0 => &["FUNCTION", "DELETE", "lib1"],
                1 => &["FUNCTION", "LIST", "LIBRARYNAME", "lib1"],
                2 => &["SCRIPT", "FLUSH"],
                3 => &["FUNCTION", "FLUSH"],
                4 => &["SCRIPT", "KILL"],
                5 => &["FUNCTION", "KILL"],
                _ => &[
                    "SCRIPT",
                    "EXISTS",
                    "ffffffffffffffffffffffffffffffffffffffff",
                ],
            };
            words.extend(asked.iter().map(|word| Word::from(*word)));
            return words;
        }
        _ => {}
    }
    let Script { body, keys, args } = script(random, calls);
    match kind {
        3..=5 => {
            words.push(random.word(&["EVALSHA", "EVALSHA", "EVALSHA_RO"]).into());
            words.push(Word::Reply(Seen::Script, random.below(8)));
        }
        6..=7 => {
            words.push(random.word(&["FCALL", "FCALL", "FCALL_RO"]).into());
            words.push(random.word(FUNCTIONS).into());
        }
        8..=9 => words.extend([Word::from("EVAL_RO"), body.into()]),
        _ => words.extend([Word::from("EVAL"), body.into()]),
    }
    let count = match random.below(40) {
        0 => "-1".to_owned(),
        1 => (keys.len() + 1).to_string(),
        2 => "x".to_owned(),
        _ => keys.len().to_string(),
    };
    words.push(count.into());
    words.extend(keys.into_iter().chain(args).map(Word::Plain));
    words
}

impl Maker<'_, '_> {
    fn statement(&mut self, depth: usize) -> String {
        if depth >= DEPTH_MAX {
            return self.invocation();
        }
        match self.random.below(12) {
            0..=3 => self.invocation(),
            4 => format!("local x = {}", self.value(1)),
            5 => {
                let (what, then) = (self.value(2), self.statement(depth + 1));
                let other = self.statement(depth + 1);
                format!("if {what} then {then} else {other} end")
            }
            6 => {
                let rounds = self.random.below(4);
                let inner = self.statement(depth + 1);
                format!("for i=1,{rounds} do {inner} end")
            }
            7 => {
                let inner = self.statement(depth + 1);
                format!("local n = 0 while n < 2 do n = n + 1 {inner} end")
            }
            8 => format!(
                "local ok, e = pcall(function() {} end)",
                self.statement(depth + 1)
            ),
            9 => match self.random.percent(30) {
                true => {
                    let value = self.value(1);
                    let how = self.random.word(&[
                        "error(V)",
                        "error(V,0)",
                        "error(V,2)",
                        "assert(nil,V)",
                    ]);
                    format!("if true then {} end", how.replace('V', &value))
                }
                false => format!("local y = {}", self.value(1)),
            },
            10 => match self.random.percent(30) {
                true => format!("if true then return {} end", self.value(1)),
                false => self.invocation(),
            },
            _ => match self.random.percent(20) {
                true => format!("g = {}", self.value(2)),
                false => "local t = {} t[1] = 2".to_owned(),
            },
        }
    }

    /// A command, its words partly among the keys and arguments.
    fn invocation(&mut self) -> String {
        let Some(words) = (self.calls)(self.random) else {
            return "redis.call('PING')".to_owned();
        };
        let how = self.random.word(&["call", "call", "pcall"]);
        let mut text = format!("redis.{how}(");
        for (at, word) in words.into_iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            let place = self.random.below(10);
            match (at, place) {
                (1, 0..=6) => {
                    self.keys.push(word);
                    text.push_str(&format!("KEYS[{}]", self.keys.len()));
                }
                (2.., 0..=2) => {
                    self.args.push(word);
                    text.push_str(&format!("ARGV[{}]", self.args.len()));
                }
                _ => match std::str::from_utf8(&word)
                    .ok()
                    .and_then(|w| w.parse::<u16>().ok())
                {
                    Some(number) if place < 5 && number.to_string().as_bytes() == word => {
                        text.push_str(&number.to_string());
                    }
                    _ => quote(&word, &mut text),
                },
            }
        }
        text.push(')');
        text
    }

    fn value(&mut self, depth: usize) -> String {
        if depth < DEPTH_MAX && self.random.percent(35) {
            return self.invocation();
        }
        if depth >= DEPTH_MAX || self.random.percent(35) {
            return self.random.word(LITERALS).to_owned();
        }
        let template = self.random.word(UNARY);
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let marks: &[(&str, &[&str])] = &[
                ("{s}", TEXTS),
                ("{n}", NUMBERS),
                ("{k}", &["0", "1", "2", "-1", "9", "40"]),
                ("{f}", FORMATS),
            ];
            if let Some((mark, from)) = marks.iter().find(|(mark, _)| rest.starts_with(mark)) {
                text.push_str(self.random.word(from));
                rest = &rest[mark.len()..];
            } else if let Some(after) = rest.strip_prefix("{}") {
                let inner = self.value(depth + 1);
                text.push_str(&inner);
                rest = after;
            } else {
                text.push('{');
                rest = &rest[1..];
            }
        }
        text.push_str(rest);
        text
    }
}

/// A text as Lua reads it.
fn quote(word: &[u8], out: &mut String) {
    out.push('\'');
    for byte in word {
        match byte {
            b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\{byte:03}")),
        }
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_script_again() {
        let made = |seed| {
            let mut random = Random::new(seed, 1);
            script(&mut random, &mut |_| {
                Some(vec![b"GET".to_vec(), b"k".to_vec()])
            })
            .body
        };
        assert_eq!(made(3), made(3));
        assert!(
            (0..50)
                .map(made)
                .any(|body| body.contains("redis.call('GET'"))
        );
    }

    #[test]
    fn texts_are_quoted() {
        let mut text = String::new();
        quote(b"a'\\\0\xff", &mut text);
        assert_eq!(text, "'a\\'\\\\\\000\\255'");
    }
}
