//! What one configuration directive is: its names, the kind of its value, and what it does here.
//!
//! A directive is declared once, as one row of `table`. The parser, CONFIG GET, CONFIG SET,
//! CONFIG REWRITE and `tidemill.conf` all read that row; none of them knows a directive by itself.
//!
//! # Invariants
//! - `default` parses under `kind` (a test holds it), except where [`Directive::threads`] is set.
//! - Names and aliases are unique over the whole table, compared without regard to case.
//!
//! # Why not a field per directive with a derive?
//! Most directives are only stored and reported. Rows of plain data need no macro, and the few
//! values that the server reads on its paths are collected in `Settings`.

/// One configuration directive.
#[derive(Debug)]
pub struct Directive {
    /// The name that CONFIG GET reports.
    pub name: &'static str,
    /// A second name for the same value; CONFIG GET reports it too.
    pub alias: Option<&'static str>,
    /// How its value is written.
    pub kind: Kind,
    /// The value it has when nothing sets it, as text.
    pub default: &'static str,
    /// When it may be changed.
    pub change: Change,
    /// Whether its value must stay out of logs and messages.
    pub secret: bool,
    /// Numbers outside of this range are accepted and pulled into it.
    pub clamp: Option<(i64, i64)>,
    /// What Tidemill does with it.
    pub effect: Effect,
    /// One or two sentences for `tidemill.conf`.
    pub doc: &'static str,
}

/// How a directive's value is written, and what is allowed.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `yes` or `no`.
    Switch,
    /// A whole number, both ends included.
    Integer { min: i64, max: i64 },
    /// The same, where only powers of two are taken.
    PowerOfTwo { min: i64, max: i64 },
    /// File permissions in octal, up to 777.
    Octal,
    /// Bytes, with an optional unit: `1k` is 1000, `1kb` is 1024.
    Memory { min: u64, max: u64 },
    /// Bytes, or a share of `maxmemory` written `5%`.
    MemoryOrPercent,
    /// One word of a list. The first word with a number is the one that is reported.
    Choice(&'static [(&'static str, u8)]),
    /// Several words of a list, each a set of bits.
    Flags(&'static [(&'static str, u32)]),
    /// Any bytes that pass the check.
    Text(TextCheck),
    /// Addresses to listen on.
    Addresses,
    /// Pairs of seconds and changes.
    SavePoints,
    /// Class, hard bytes, soft bytes, soft seconds; any number of them.
    OutputLimits,
    /// Numbers from 0 to 100.
    Percentiles,
    /// Three numbers from -2000 to 2000.
    OomScores,
    /// Letters of keyspace events.
    Events,
    /// An existing directory, kept as an absolute path.
    Directory,
    /// `host port`, or `no one`.
    Primary,
}

/// What a text value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCheck {
    /// Anything.
    Any,
    /// A file name without a slash; may be empty.
    FileName,
    /// A file name without a slash, never empty.
    FileNameNonEmpty,
    /// The name of a directory without a slash, never empty.
    DirNameNonEmpty,
    /// Letters, digits, hyphens and dots, fewer than 256.
    HostName,
    /// The same with fewer than 46, or an address.
    HostAddress,
    /// Names with spaces between them.
    PeerNames,
    /// No blanks, controls or punctuation that would upset the nodes file.
    NodeName,
    /// Known `{variables}` between other text.
    TitleTemplate,
    /// A collation that this program has: only bytewise.
    Locale,
    /// `aof:NAME` or `rdb:NAME`, or nothing.
    Preload,
}

/// When a directive may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// At any time, with CONFIG SET.
    AnyTime,
    /// With CONFIG SET only where `enable-protected-configs` allows it.
    Protected,
    /// Only at start.
    Startup,
}

/// What Tidemill does with a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The value is used.
    Acts,
    /// The value is kept and reported; there is nothing here that it would tune.
    Accepted,
    /// The value is kept and reported; what it steers does not exist yet. Setting it warns.
    Later,
    /// Only the default is taken, because running without it would mislead. Holds what is missing.
    Refused(&'static str),
}

const fn directive(name: &'static str, default: &'static str, kind: Kind) -> Directive {
    Directive {
        name,
        alias: None,
        kind,
        default,
        change: Change::AnyTime,
        secret: false,
        clamp: None,
        effect: Effect::Accepted,
        doc: "",
    }
}

pub(super) const fn switch(name: &'static str, default: &'static str) -> Directive {
    directive(name, default, Kind::Switch)
}

pub(super) const fn integer(
    name: &'static str,
    default: &'static str,
    min: i64,
    max: i64,
) -> Directive {
    directive(name, default, Kind::Integer { min, max })
}

pub(super) const fn memory(
    name: &'static str,
    default: &'static str,
    min: u64,
    max: u64,
) -> Directive {
    directive(name, default, Kind::Memory { min, max })
}

pub(super) const fn choice(
    name: &'static str,
    default: &'static str,
    words: &'static [(&'static str, u8)],
) -> Directive {
    directive(name, default, Kind::Choice(words))
}

pub(super) const fn flags(
    name: &'static str,
    default: &'static str,
    words: &'static [(&'static str, u32)],
) -> Directive {
    directive(name, default, Kind::Flags(words))
}

pub(super) const fn text(name: &'static str, default: &'static str) -> Directive {
    directive(name, default, Kind::Text(TextCheck::Any))
}

pub(super) const fn checked(
    name: &'static str,
    default: &'static str,
    check: TextCheck,
) -> Directive {
    directive(name, default, Kind::Text(check))
}

pub(super) const fn special(name: &'static str, default: &'static str, kind: Kind) -> Directive {
    directive(name, default, kind)
}

impl Directive {
    /// Whether this is the thread count, whose default is the number of cores.
    pub fn threads(&self) -> bool {
        self.name == "threads"
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Directive {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn startup(mut self) -> Directive {
        self.change = Change::Startup;
        self
    }

    pub(super) const fn protected(mut self) -> Directive {
        self.change = Change::Protected;
        self
    }

    pub(super) const fn secret(mut self) -> Directive {
        self.secret = true;
        self
    }

    pub(super) const fn clamp(mut self, min: i64, max: i64) -> Directive {
        self.clamp = Some((min, max));
        self
    }

    pub(super) const fn acts(mut self, doc: &'static str) -> Directive {
        self.effect = Effect::Acts;
        self.doc = doc;
        self
    }

    pub(super) const fn accepted(mut self, doc: &'static str) -> Directive {
        self.effect = Effect::Accepted;
        self.doc = doc;
        self
    }

    pub(super) const fn later(mut self, doc: &'static str) -> Directive {
        self.effect = Effect::Later;
        self.doc = doc;
        self
    }

    pub(super) const fn refused(mut self, missing: &'static str, doc: &'static str) -> Directive {
        self.effect = Effect::Refused(missing);
        self.doc = doc;
        self
    }
}
