//! The parts of a file, as bytes.

use engine::Object;
use engine::access::{self, aged};
use engine::dump::{Format, Forms, Sink, Unwritable, VERSION, write_number, write_value};
use structure::record::{RecordRef, ValueRef};

use super::{VALKEY_VERSION, opcode};

/// What is written of when a key was used last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uses {
    /// Nothing: no policy of eviction needs it.
    #[default]
    None,
    /// For how many seconds it was not.
    Idle {
        /// The time: Unix seconds.
        now_s: u64,
    },
    /// How often.
    Frequency {
        /// The time: Unix seconds.
        now_s: u64,
        /// `lfu-decay-time`.
        decay_minutes: u32,
    },
}

/// One key to be written.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its deadline: Unix milliseconds.
    pub deadline: Option<u64>,
    /// The record's access bits.
    pub access: u32,
    /// Its value.
    pub value: ValueRef<'a, Object>,
}

impl<'a> From<RecordRef<'a, Object>> for Entry<'a> {
    fn from(record: RecordRef<'a, Object>) -> Self {
        Self {
            key: record.key(),
            deadline: record.deadline(),
            access: record.access(),
            value: record.value(),
        }
    }
}

/// What a file says about itself.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The version of the server, as clients see it.
    pub version: &'a str,
    /// When: Unix seconds.
    pub created_s: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Whether it is the base of an append-only log.
    pub is_base: bool,
}

/// Turns parts into bytes. Only how they look is decided here, not where they go.
pub struct Encoder {
    forms: Forms,
    uses: Uses,
}

impl Encoder {
    /// Parts for `format`, long strings compressed or not.
    pub fn new(format: Format, compress: bool, uses: Uses) -> Self {
        Self {
            forms: Forms::new(format, compress),
            uses,
        }
    }

    /// As [`Encoder::new`], but where strings are to be compressed it only notes where they are.
    pub fn marking(format: Format, compress: bool, uses: Uses) -> Self {
        let forms = if compress {
            Forms::marking(format)
        } else {
            Forms::new(format, false)
        };
        Self { forms, uses }
    }

    /// How values are written.
    pub fn forms(&mut self) -> &mut Forms {
        &mut self.forms
    }

    /// The beginning of a file.
    pub fn begin(&mut self, out: &mut impl Sink, about: &About<'_>) {
        let (magic, name) = match self.forms.format() {
            Format::Redis8_10 => (format!("REDIS{VERSION:04}"), "redis-ver"),
            Format::Redis7_0 => ("REDIS0010".to_owned(), "redis-ver"),
            Format::Valkey9_1 => (format!("VALKEY{VALKEY_VERSION:03}"), "valkey-ver"),
        };
        out.buf().extend_from_slice(magic.as_bytes());
        let version = match self.forms.format() {
            Format::Redis8_10 => about.version,
            Format::Redis7_0 => "7.0.0",
            Format::Valkey9_1 => "9.1.0",
        };
        self.aux(out, name, version.as_bytes());
        self.aux(out, "redis-bits", b"64");
        self.aux(out, "ctime", about.created_s.to_string().as_bytes());
        self.aux(out, "used-mem", about.used_bytes.to_string().as_bytes());
        self.aux(out, "aof-base", if about.is_base { b"1" } else { b"0" });
    }

    /// A fact about the file.
    pub fn aux(&mut self, out: &mut impl Sink, name: &str, value: &[u8]) {
        let buf = out.buf();
        buf.push(opcode::AUX);
        engine::dump::write_string(buf, &mut self.forms, name.as_bytes());
        engine::dump::write_string(buf, &mut self.forms, value);
    }

    /// A library of functions.
    pub fn library(&mut self, out: &mut impl Sink, source: &[u8]) {
        let buf = out.buf();
        buf.push(opcode::FUNCTION);
        engine::dump::write_string(buf, &mut self.forms, source);
    }

    /// The keys that follow belong to database `db`, until the next such part.
    pub fn db(&mut self, out: &mut impl Sink, db: u32) {
        let buf = out.buf();
        buf.push(opcode::DB);
        write_number(buf, db.into());
    }

    /// The database will have about so many keys, and so many of them with a deadline.
    pub fn sizes(&mut self, out: &mut impl Sink, keys: u64, timed: u64) {
        let buf = out.buf();
        buf.push(opcode::SIZES);
        write_number(buf, keys);
        write_number(buf, timed);
    }

    /// A key with its value, piece by piece. Where it fails, a part may have been written.
    ///
    /// # Errors
    /// Where the format has no such value.
    #[inline]
    pub fn entry(&mut self, out: &mut impl Sink, entry: Entry<'_>) -> Result<(), Unwritable> {
        self.entry_facts(out.buf(), entry.deadline, entry.access);
        write_value(out, &mut self.forms, Some(entry.key), entry.value)
    }

    /// What stands before the type of a key's value: its deadline, and when it was used.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // Access bits are 24.
    pub fn entry_facts(&mut self, buf: &mut Vec<u8>, deadline: Option<u64>, access: u32) {
        if let Some(at) = deadline {
            buf.push(opcode::DEADLINE_MS);
            buf.extend(at.to_le_bytes());
        }
        match self.uses {
            Uses::None => {}
            Uses::Idle { now_s } => {
                let idle = access::seconds(now_s * 1000).wrapping_sub(access) & 0xff_ffff;
                buf.push(opcode::IDLE);
                write_number(buf, idle.into());
            }
            Uses::Frequency {
                now_s,
                decay_minutes,
            } => {
                let minute = access::minute(now_s * 1000);
                buf.push(opcode::FREQUENCY);
                buf.push(aged(access, minute, decay_minutes) as u8);
            }
        }
    }

    /// The end of a file, but for its checksum.
    pub fn end(&mut self, out: &mut impl Sink) {
        out.buf().push(opcode::END);
    }
}
