//! ARGREP: the elements of a range that some predicates hold for.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use memchr::memmem::Finder;
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;

use super::range::limit;
use super::{index, read, write_number, write_pair};
use crate::handler::runs;
use crate::regex::{Regex, Scratch};
use crate::{Command, CommandError, Context, glob};

/// Predicates of one command.
const PREDICATES_MAX: usize = 250;
/// Bytes of a regular expression.
const REGEX_BYTES_MAX: usize = 2048;

pub(super) const ARGREP: Command = Command {
    name: "argrep",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the indexes of elements of a range whose text matches.",
    complexity: "O(P * C)",
    arity: Arity::at_least(6),
    flags: Flags::READONLY,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("start"),
        string("end"),
        one_of(
            "predicate",
            &[
                block("exact", &[flag("EXACT"), string("string")]),
                block("match", &[flag("MATCH"), string("string")]),
                block("glob", &[flag("GLOB"), string("pattern")]),
                block("re", &[flag("RE"), string("pattern")]),
            ],
        )
        .multiple(),
        one_of(
            "options",
            &[
                flag("AND"),
                flag("OR"),
                int("limit").token("LIMIT"),
                flag("WITHVALUES"),
                flag("NOCASE"),
            ],
        )
        .optional()
        .multiple(),
    ],
    reply: &[Shape::Array],
    ..runs(argrep)
};

/// An end of a range: an index, or what depends on the array.
#[derive(Clone, Copy)]
enum End {
    At(u64),
    /// `-`: index 0.
    First,
    /// `+`: the array's last index.
    Last,
}

impl End {
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        match word {
            b"-" => Ok(Self::First),
            b"+" => Ok(Self::Last),
            _ => index(word).map(Self::At),
        }
    }

    fn of(self, len: u64) -> u64 {
        match self {
            Self::At(index) => index,
            Self::First => 0,
            Self::Last => len.saturating_sub(1),
        }
    }
}

/// What the words behind the range say.
#[derive(Default)]
struct Options<'a> {
    words: Vec<(Word, &'a [u8])>,
    all: bool,
    fold: bool,
    values: bool,
    limit: Option<usize>,
}

/// The word of a predicate.
#[derive(Clone, Copy)]
enum Word {
    Exact,
    Match,
    Glob,
    Re,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let (mut options, mut at) = (Self::default(), 0);
        while at < args.len() {
            let word = match args.at(at).to_ascii_uppercase().as_slice() {
                b"AND" => {
                    options.all = true;
                    at += 1;
                    continue;
                }
                b"OR" => {
                    options.all = false;
                    at += 1;
                    continue;
                }
                b"WITHVALUES" => {
                    options.values = true;
                    at += 1;
                    continue;
                }
                b"NOCASE" => {
                    options.fold = true;
                    at += 1;
                    continue;
                }
                b"LIMIT" => {
                    let word = args.get(at + 1).ok_or(CommandError::Syntax)?;
                    options.limit = Some(limit(word)?);
                    at += 2;
                    continue;
                }
                b"EXACT" => Word::Exact,
                b"MATCH" => Word::Match,
                b"GLOB" => Word::Glob,
                b"RE" => Word::Re,
                _ => return Err(CommandError::Syntax),
            };
            let text = args.get(at + 1).ok_or(CommandError::Syntax)?;
            if options.words.len() == PREDICATES_MAX {
                return Err(CommandError::err(format_args!(
                    "too many predicates, maximum is {PREDICATES_MAX}"
                )));
            }
            options.words.push((word, text));
            at += 2;
        }
        if options.words.is_empty() {
            return Err(CommandError::Syntax);
        }
        Ok(options)
    }
}

/// A question to an element's text.
enum Predicate<'a> {
    Exact(&'a [u8]),
    Match(Finder<'a>),
    /// The finder looks for lower-case letters in a text that is made so.
    MatchFolded(Finder<'static>),
    Glob(&'a [u8]),
    Regex(Box<(Regex, Scratch)>),
}

impl<'a> Predicate<'a> {
    fn new((word, text): (Word, &'a [u8]), fold: bool) -> Result<Self, CommandError> {
        Ok(match word {
            Word::Exact => Self::Exact(text),
            Word::Match if fold => {
                Self::MatchFolded(Finder::new(&text.to_ascii_lowercase()).into_owned())
            }
            Word::Match => Self::Match(Finder::new(text)),
            Word::Glob => Self::Glob(text),
            Word::Re => {
                if text.is_empty() {
                    return Err("ERR regular expression is empty".into());
                }
                if text.len() > REGEX_BYTES_MAX {
                    return Err(CommandError::err(format_args!(
                        "regular expression is too long, maximum is {REGEX_BYTES_MAX} bytes"
                    )));
                }
                let regex = Regex::new(text, fold).map_err(CommandError::err)?;
                let scratch = regex.scratch();
                Self::Regex(Box::new((regex, scratch)))
            }
        })
    }

    fn holds(&mut self, text: &[u8], fold: bool) -> bool {
        match self {
            Self::Exact(other) if fold => text.eq_ignore_ascii_case(other),
            Self::Exact(other) => text == *other,
            Self::Match(finder) => finder.find(text).is_some(),
            Self::MatchFolded(finder) => finder.find(&text.to_ascii_lowercase()).is_some(),
            // As in Redis, no star stands for an empty text.
            Self::Glob(pattern) if text.is_empty() => pattern.is_empty(),
            Self::Glob(pattern) => glob::matches_folded(pattern, text, fold),
            Self::Regex(regex) => regex.0.matches(text, &mut regex.1),
        }
    }
}

fn argrep(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (from, to) = (End::parse(args.at(2))?, End::parse(args.at(3))?);
    let options = Options::parse(args.from(4))?;
    let fold = options.fold;
    let predicates = options.words.iter();
    let mut predicates = predicates
        .map(|&word| Predicate::new(word, fold))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(array) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    let (from, to) = (from.of(array.len()), to.of(array.len()));
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut digits = [0; TEXT_MAX];
    let found = array.range(from, to).filter(|(_, element)| {
        let text = element.bytes(&mut digits);
        let mut hold = predicates.iter_mut().map(|p| p.holds(text, fold));
        if options.all {
            hold.all(|holds| holds)
        } else {
            hold.any(|holds| holds)
        }
    });
    let (mark, mut count) = (out.begin_array(), 0);
    for (index, element) in found.take(limit) {
        if options.values {
            write_pair(out, index, element);
        } else {
            write_number(out, index);
        }
        count += 1;
    }
    out.end_array(mark, count);
    Ok(())
}
