//! A file, part by part.
//!
//! # Invariants
//! - A key is given out whole, with all that belongs to it, or not at all.
//! - What is held at one time is the window of [`Input`], one key and one value.

use std::collections::HashMap;
use std::io::{self, Read};

use engine::Object;
use engine::dump::{
    Build, Cursor, Damaged, Dialect, Loaded, VERSION, kind, read_templated, read_value,
};
use engine::object::Kind;

use super::input::Input;
use super::{SUMMED_VERSION, VALKEY_VERSION, opcode};

/// Bytes of a name or value about the file.
const FACT_BYTES_MAX: u64 = 1 << 30;

/// Longer strings are given out as they are kept, so that they are not copied twice.
const SHARED_BYTES_MAX: usize = 4096;

/// How a file is read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether the checksum is compared, where the file has one.
    pub checksum: bool,
    /// Whether what we have no place for (what modules keep) is left out; an error
    /// otherwise.
    pub skip_unsupported: bool,
}

/// When a key was used last, as the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// So many seconds before.
    Idle(u64),
    /// So often.
    Frequency(u8),
}

/// One key.
#[derive(Debug)]
pub struct Key<'r> {
    /// Its database.
    pub db: u32,
    /// The key.
    pub key: &'r [u8],
    /// Its deadline: Unix milliseconds.
    pub deadline: Option<u64>,
    /// When it was used.
    pub used: Option<Use>,
    /// The number of its type.
    pub kind: u8,
    /// Its value.
    pub value: Value<'r>,
}

/// A value.
#[derive(Debug)]
pub enum Value<'r> {
    /// A string that is a canonical integer.
    Int(i64),
    /// A string that may be one.
    Bytes(&'r [u8]),
    /// A long string.
    Long(Vec<u8>),
    /// Anything else.
    Object(Box<Object>),
}

/// A part of a file.
#[derive(Debug)]
pub enum Part<'r> {
    /// A fact about the file.
    Aux {
        /// Its name.
        name: &'r [u8],
        /// What it is.
        value: &'r [u8],
    },
    /// The keys that follow belong to this database.
    Db(u32),
    /// How many keys the database has, and how many of them with a deadline. Only a hint.
    Sizes {
        /// Keys.
        keys: u64,
        /// Those with a deadline.
        timed: u64,
    },
    /// A key.
    Key(Key<'r>),
    /// A library of functions: its source.
    Library(&'r [u8]),
    /// Something that was left out: what it is.
    Skipped(String),
    /// The end; the checksum was right, where one was compared.
    End,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The system.
    Io(io::Error),
    /// The file ends too early.
    Short,
    /// It does not begin as such a file.
    Signature,
    /// A version that we do not know.
    Version(String),
    /// Something that cannot stand there.
    Damaged,
    /// Something that we have no place for.
    Unsupported(String),
    /// The checksum of the file, and that of what was read.
    Checksum {
        /// As the file says.
        stored: u64,
        /// As it should be.
        computed: u64,
    },
}

/// Why reading ended, and where.
#[derive(Debug)]
pub struct Error {
    /// How far it was read: bytes from the beginning.
    pub offset: u64,
    /// What was being read.
    pub doing: &'static str,
    /// The database and the key, where it was one.
    pub key: Option<(u32, Vec<u8>)>,
    /// The number of the type being read.
    pub kind: Option<u8>,
    /// What is wrong.
    pub problem: Problem,
}

impl std::error::Error for Error {}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "can't read on: {error}"),
            Self::Short => f.write_str("the file ends too early: it was cut off"),
            Self::Signature => f.write_str("it does not begin as a snapshot does"),
            Self::Version(text) => write!(
                f,
                "version {text} is not known: convert it with the server that wrote it, or take a \
                 newer version of this one"
            ),
            Self::Damaged => f.write_str("it is damaged, or newer than this server knows"),
            Self::Unsupported(what) => write!(
                f,
                "it has {what}, which this server cannot keep: take it out with the server that \
                 wrote the file, or set tidemill-rdb-skip-unsupported to yes to leave it out"
            ),
            Self::Checksum { stored, computed } => write!(
                f,
                "wrong checksum: the file says {stored:016x} and its content {computed:016x}; \
                 it is damaged (with rdbchecksum no it is loaded as it is)"
            ),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at offset {}, while reading {}", self.offset, self.doing)?;
        if let Some((db, key)) = &self.key {
            write!(f, " of key '{}' of database {db}", key.escape_ascii())?;
        }
        if let Some(kind) = self.kind {
            write!(f, " (type {kind})")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// A file that is being read.
pub struct Reader<'b, R> {
    from: Cursor<Input<R>>,
    build: Build<'b>,
    options: Options,
    version: u32,
    db: u32,
    key: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
    /// What is being read, and whether `key` and `kind` are of it.
    doing: &'static str,
    kind: Option<u8>,
    has_key: bool,
    empty_keys: u64,
    /// Keys of which something was left out.
    left_out: u64,
    /// Fields of hashes, by number.
    templates: HashMap<u64, Vec<Vec<u8>>>,
    /// The file's checksum, once it was read.
    stored: Option<u64>,
}

/// What stands before a key.
#[derive(Default)]
struct Before {
    deadline: Option<u64>,
    used: Option<Use>,
}

/// Ends with an error where something is wrong.
macro_rules! check {
    ($self:ident, $result:expr) => {
        match $result {
            Ok(found) => found,
            Err(Damaged) => return Err($self.failed()),
        }
    };
}

impl<'b, R: Read> Reader<'b, R> {
    /// Reads the beginning of a file.
    ///
    /// # Errors
    /// Where it is no such file, or one of a version that we do not know.
    pub fn new(from: R, build: Build<'b>, options: Options) -> Result<Self, Error> {
        let mut input = Input::new(from, 0);
        if options.checksum {
            input.sum();
        }
        let string_bytes_max = build.settings.string_bytes_max.max(FACT_BYTES_MAX);
        let mut reader = Self {
            from: Cursor::new(input, string_bytes_max),
            build,
            options,
            version: 0,
            db: 0,
            key: Vec::new(),
            name: Vec::new(),
            value: Vec::new(),
            doing: "the beginning",
            kind: None,
            has_key: false,
            empty_keys: 0,
            left_out: 0,
            templates: HashMap::new(),
            stored: None,
        };
        reader.begin()?;
        Ok(reader)
    }

    fn begin(&mut self) -> Result<(), Error> {
        let mut magic = [0; 9];
        magic.copy_from_slice(check!(self, self.from.bytes(9)));
        let number = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            text.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| text.parse::<u32>().ok())?
        };
        let known = if let Some(digits) = magic.strip_prefix(b"REDIS") {
            self.build.dialect = Dialect::Redis;
            number(digits).map(|version| (version, 1..=u32::from(VERSION)))
        } else if let Some(digits) = magic.strip_prefix(b"VALKEY") {
            self.build.dialect = Dialect::Valkey;
            number(digits).map(|version| (version, VALKEY_VERSION..=VALKEY_VERSION))
        } else {
            None
        };
        let Some((version, versions)) = known else {
            return Err(self.error(Problem::Signature));
        };
        if !versions.contains(&version) {
            let text = String::from_utf8_lossy(&magic).into_owned();
            return Err(self.error(Problem::Version(text)));
        }
        self.version = version;
        Ok(())
    }

    /// The version of the file's format, and whose it is.
    pub fn version(&self) -> (Dialect, u32) {
        (self.build.dialect, self.version)
    }

    /// How far it was read: bytes from the beginning.
    pub fn offset(&self) -> u64 {
        self.from.source().offset()
    }

    /// How many keys with nothing in them were passed over: old versions kept such.
    pub fn empty_keys(&self) -> u64 {
        self.empty_keys
    }

    /// Of how many keys something was left out that modules kept with them.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The checksum that the file ends with, once it was read; 0 where it has none.
    pub fn checksum(&self) -> Option<u64> {
        self.stored
    }

    /// What follows the end: bytes that were read already, and the rest.
    pub fn into_rest(self) -> (Vec<u8>, R) {
        self.from.into_source().into_rest()
    }

    fn error(&self, problem: Problem) -> Error {
        Error {
            offset: self.offset(),
            doing: self.doing,
            key: self.has_key.then(|| (self.db, self.key.clone())),
            kind: self.kind,
            problem,
        }
    }

    /// The error after something could not be read.
    #[cold]
    fn failed(&mut self) -> Error {
        let input = self.from.source_mut();
        let problem = match input.take_error() {
            Some(error) => Problem::Io(error),
            None if input.is_short() => Problem::Short,
            None => Problem::Damaged,
        };
        self.error(problem)
    }

    /// The next part.
    ///
    /// # Errors
    /// Where it cannot be read; there is no next part then.
    pub fn next_part(&mut self) -> Result<Part<'_>, Error> {
        let mut before = Before::default();
        let object = loop {
            self.doing = "the type of what follows";
            (self.kind, self.has_key) = (None, false);
            let first = check!(self, self.from.byte());
            match first {
                opcode::DEADLINE_MS => {
                    self.doing = "a deadline";
                    let at = check!(self, self.from.word());
                    // What is before 1970 is past, too.
                    before.deadline = Some(u64::try_from(at.cast_signed()).unwrap_or(0));
                    continue;
                }
                opcode::DEADLINE_S => {
                    self.doing = "a deadline";
                    let at = check!(self, self.from.half_word());
                    let at = u64::try_from(at.cast_signed()).unwrap_or(0);
                    before.deadline = Some(at * 1000);
                    continue;
                }
                opcode::IDLE => {
                    self.doing = "when a key was used";
                    before.used = Some(Use::Idle(check!(self, self.from.number())));
                    continue;
                }
                opcode::FREQUENCY => {
                    self.doing = "how often a key was used";
                    before.used = Some(Use::Frequency(check!(self, self.from.byte())));
                    continue;
                }
                opcode::TEMPLATE => {
                    check!(self, self.template());
                    continue;
                }
                opcode::KEY_META if self.build.dialect == Dialect::Redis => {
                    self.key_meta()?;
                    continue;
                }
                opcode::KEY_META.. => return self.other(first),
                _ => {}
            }
            self.doing = "a key";
            self.kind = Some(first);
            self.key.clear();
            check!(self, self.from.string_to(&mut self.key));
            self.has_key = true;
            self.doing = "the value";
            match first {
                kind::STRING => break None,
                kind::HASH_TEMPLATE | kind::HASH_TEMPLATE_LISTPACK => {
                    let fields = |number| self.templates.get(&number).map(Vec::as_slice);
                    let read = read_templated(&mut self.from, first, fields, self.build);
                    break Some(check!(self, read));
                }
                kind::MODULE_EARLY | kind::MODULE => return self.module_value(first),
                _ => {}
            }
            let read = read_value(&mut self.from, first, self.build);
            let Loaded::Object(object) = check!(self, read) else {
                return Err(self.error(Problem::Damaged));
            };
            if !object.is_empty() || object.kind() == Kind::Stream {
                break Some(object);
            }
            self.empty_keys += 1;
            before = Before::default();
        };
        let value = match object {
            Some(object) => Value::Object(object),
            None => {
                let plain = self.string_value()?;
                plain.unwrap_or(Value::Bytes(&self.value))
            }
        };
        Ok(Part::Key(Key {
            db: self.db,
            key: &self.key,
            deadline: before.deadline,
            used: before.used,
            kind: self.kind.unwrap_or(kind::STRING),
            value,
        }))
    }

    /// A string; `None` where it now stands in `value`.
    #[inline]
    fn string_value(&mut self) -> Result<Option<Value<'static>>, Error> {
        self.value.clear();
        match read_value(&mut self.from, kind::STRING, self.build) {
            Ok(Loaded::Int(int)) => return Ok(Some(Value::Int(int))),
            Ok(Loaded::Bytes(bytes)) if bytes.len() <= SHARED_BYTES_MAX => {
                self.value.extend_from_slice(bytes);
            }
            Ok(Loaded::Bytes(bytes)) => return Ok(Some(Value::Long(bytes.to_vec()))),
            Ok(Loaded::Object(_)) => return Err(self.error(Problem::Damaged)),
            Err(Damaged) => return Err(self.failed()),
        }
        Ok(None)
    }

    /// A part that is no key.
    #[cold]
    fn other(&mut self, first: u8) -> Result<Part<'_>, Error> {
        match first {
            opcode::DB => {
                self.doing = "the number of a database";
                let db = check!(self, self.from.number());
                self.db = match u32::try_from(db) {
                    Ok(db) => db,
                    Err(_) => return Err(self.error(Problem::Damaged)),
                };
                Ok(Part::Db(self.db))
            }
            opcode::SIZES => {
                self.doing = "how many keys come";
                let keys = check!(self, self.from.number());
                let timed = check!(self, self.from.number());
                Ok(Part::Sizes { keys, timed })
            }
            opcode::SLOT_INFO => {
                self.doing = "how many keys of a slot come";
                check!(self, self.from.number());
                let keys = check!(self, self.from.number());
                let timed = check!(self, self.from.number());
                Ok(Part::Sizes { keys, timed })
            }
            opcode::AUX => {
                self.doing = "a fact about the file";
                self.name.clear();
                self.value.clear();
                check!(self, self.from.string_to(&mut self.name));
                check!(self, self.from.string_to(&mut self.value));
                Ok(Part::Aux {
                    name: &self.name,
                    value: &self.value,
                })
            }
            opcode::FUNCTION => {
                self.doing = "a library of functions";
                self.value.clear();
                check!(self, self.from.string_to(&mut self.value));
                Ok(Part::Library(&self.value))
            }
            opcode::FUNCTION_EARLY => {
                self.doing = "a library of functions";
                Err(self.error(Problem::Unsupported(
                    "functions of a pre-release of Redis 7.0".to_owned(),
                )))
            }
            opcode::MODULE_AUX => {
                self.doing = "what a module keeps";
                let module = check!(self, self.from.number());
                let name = module_name(module);
                if !self.options.skip_unsupported {
                    return self.unsupported(format!("data of the module '{name}'"));
                }
                // When it is to be read: a number in the module's own form.
                check!(self, self.from.number());
                check!(self, self.from.number());
                check!(self, self.skip_module_parts());
                self.unsupported(format!("data of the module '{name}'"))
            }
            opcode::KEY_META => {
                self.doing = "slots that are being imported";
                check!(self, self.from.string());
                for _ in 0..check!(self, self.from.number()) {
                    check!(self, self.from.number());
                    check!(self, self.from.number());
                }
                Ok(Part::Skipped("an import of slots".to_owned()))
            }
            _ => self.end(),
        }
    }

    /// Reads the fields that hashes which follow have in common.
    #[cold]
    fn template(&mut self) -> Result<(), Damaged> {
        self.doing = "the fields of hashes";
        let number = self.from.number()?;
        let mut fields = Vec::new();
        for _ in 0..self.from.number()? {
            fields.push(self.from.string_owned()?);
        }
        if fields.is_empty() || self.templates.insert(number, fields).is_some() {
            return Err(Damaged);
        }
        Ok(())
    }

    /// Passes over what modules keep with the key that follows.
    #[cold]
    fn key_meta(&mut self) -> Result<(), Error> {
        self.doing = "what modules keep with a key";
        if !self.options.skip_unsupported {
            let what = "what modules keep with a key".to_owned();
            return Err(self.error(Problem::Unsupported(what)));
        }
        for _ in 0..check!(self, self.from.number()) {
            check!(self, self.from.half_word());
            check!(self, self.skip_module_parts());
        }
        self.left_out += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<Part<'_>, Error> {
        self.doing = "the end";
        if self.version < SUMMED_VERSION {
            // Nothing follows. Where something does, it is a checksum, and the version is wrong.
            return match self.from.byte() {
                Err(Damaged) if self.from.source().is_short() => Ok(Part::End),
                Err(Damaged) => Err(self.failed()),
                Ok(_) => Err(self.error(Problem::Damaged)),
            };
        }
        let computed = self.from.source_mut().checksum();
        let stored = check!(self, self.from.word());
        self.stored = Some(stored);
        if self.options.checksum && stored != 0 && stored != computed {
            return Err(self.error(Problem::Checksum { stored, computed }));
        }
        Ok(Part::End)
    }

    fn unsupported(&mut self, what: String) -> Result<Part<'_>, Error> {
        if self.options.skip_unsupported {
            Ok(Part::Skipped(what))
        } else {
            Err(self.error(Problem::Unsupported(what)))
        }
    }

    /// The value of a module, behind its key.
    #[cold]
    fn module_value(&mut self, kind: u8) -> Result<Part<'_>, Error> {
        let module = check!(self, self.from.number());
        let what = format!("a value of the module '{}'", module_name(module));
        if kind == kind::MODULE_EARLY {
            // Only the module knows where it ends.
            return Err(self.error(Problem::Unsupported(what)));
        }
        if self.options.skip_unsupported {
            check!(self, self.skip_module_parts());
        }
        self.unsupported(what)
    }

    /// Passes over the parts of something that a module wrote.
    fn skip_module_parts(&mut self) -> Result<(), Damaged> {
        loop {
            match self.from.number()? {
                module::END => return Ok(()),
                module::SIGNED | module::UNSIGNED => {
                    self.from.number()?;
                }
                module::FLOAT => {
                    self.from.half_word()?;
                }
                module::DOUBLE => {
                    self.from.word()?;
                }
                module::STRING => {
                    self.from.string()?;
                }
                _ => return Err(Damaged),
            }
        }
    }
}

/// What a module writes, before each part.
mod module {
    pub const END: u64 = 0;
    pub const SIGNED: u64 = 1;
    pub const UNSIGNED: u64 = 2;
    pub const FLOAT: u64 = 3;
    pub const DOUBLE: u64 = 4;
    pub const STRING: u64 = 5;
}

/// The name of a module: nine letters of six bits before a version of ten.
fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letter = |index: u32| {
        let six = (id >> (58 - 6 * index)) & 63;
        char::from(LETTERS[usize::try_from(six).unwrap_or(0)])
    };
    (0..9).map(letter).collect()
}
