//! The few commands whose options decide where, or what, their keys are.
//!
//! Each reader here walks the words as the command's own parser does, as far as keys need it. A
//! mistake that hides no key is left to the command.

use super::{KeyAt, KeyFlags, KeySpec, Unparsable, Words};

/// How to find keys where key specs are not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// The key specs say it all.
    #[default]
    None,
    /// SET reads the old value only for GET or a condition on it.
    Set,
    /// BITFIELD only reads unless it has a SET or an INCRBY.
    Bitfield,
    /// DELEX reads the value only for a condition.
    Delex,
    /// SORT's last STORE names its destination.
    Sort,
    /// The last STORE or STOREDIST from this position on names the destination.
    Georadius(u8),
    /// MIGRATE's key is at position 3, or, if empty, all words after KEYS.
    Migrate,
    /// Half of the words after the option STREAMS.
    Streams,
}

impl Special {
    /// Reports the keys; None if key specs do it.
    pub(super) fn each<W: Words + ?Sized>(
        self,
        specs: &[KeySpec],
        words: &W,
        out: &mut impl FnMut(KeyAt),
    ) -> Option<Result<(), Unparsable>> {
        let flags_of = |spec: usize| {
            specs
                .get(spec)
                .map_or(KeyFlags::NONE, |s| s.flags.of_call())
        };
        let found = match self {
            Self::None => return None,
            Self::Set => {
                let flags = if find_option(words, 3, &["GET"]) {
                    flags_of(0)
                } else if find_option(words, 3, CONDITIONS) {
                    COMPARED
                } else {
                    OVERWRITTEN
                };
                out(KeyAt { index: 1, flags });
                Ok(())
            }
            Self::Bitfield => {
                let flags = if only_reads(words) { READ } else { flags_of(0) };
                out(KeyAt { index: 1, flags });
                Ok(())
            }
            Self::Delex => {
                let is_conditional = find_option(words, 2, CONDITIONS);
                let flags = if is_conditional { flags_of(0) } else { REMOVED };
                out(KeyAt { index: 1, flags });
                Ok(())
            }
            Self::Sort => {
                out(KeyAt {
                    index: 1,
                    flags: flags_of(0),
                });
                if let Some(index) = sort_destination(words) {
                    out(KeyAt {
                        index,
                        flags: flags_of(2),
                    });
                }
                Ok(())
            }
            Self::Georadius(from) => {
                out(KeyAt {
                    index: 1,
                    flags: flags_of(0),
                });
                if let Some(index) = georadius_destination(words, usize::from(from)) {
                    out(KeyAt {
                        index,
                        flags: flags_of(1),
                    });
                }
                Ok(())
            }
            Self::Migrate => migrate(words, flags_of(0), out),
            Self::Streams => streams(words, flags_of(0), out),
        };
        Some(found)
    }
}

const READ: KeyFlags = KeyFlags::RO.with(KeyFlags::ACCESS);
const COMPARED: KeyFlags = KeyFlags::RW.with(KeyFlags::UPDATE);
const OVERWRITTEN: KeyFlags = KeyFlags::OW.with(KeyFlags::UPDATE);
const REMOVED: KeyFlags = KeyFlags::RM.with(KeyFlags::DELETE);

const CONDITIONS: &[&str] = &["IFEQ", "IFNE", "IFDEQ", "IFDNE"];

/// Whether a BITFIELD has nothing but GETs.
fn only_reads<W: Words + ?Sized>(words: &W) -> bool {
    (2..words.count())
        .step_by(3)
        .all(|at| is(words.word(at), "GET") && at + 2 < words.count())
}

/// Whether any word from `from` on is one of `options`.
fn find_option<W: Words + ?Sized>(words: &W, from: usize, options: &[&str]) -> bool {
    (from..words.count()).any(|at| options.iter().any(|o| is(words.word(at), o)))
}

fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

fn sort_destination<W: Words + ?Sized>(words: &W) -> Option<usize> {
    let mut destination = None;
    let mut at = 2;
    while at < words.count() {
        let word = words.word(at);
        at += if is(word, "LIMIT") {
            3
        } else if is(word, "GET") || is(word, "BY") {
            2
        } else if is(word, "STORE") && at + 1 < words.count() {
            destination = Some(at + 1);
            2
        } else {
            1
        };
    }
    destination
}

fn georadius_destination<W: Words + ?Sized>(words: &W, from: usize) -> Option<usize> {
    let mut destination = None;
    let mut at = from;
    while at + 1 < words.count() {
        if is(words.word(at), "STORE") || is(words.word(at), "STOREDIST") {
            destination = Some(at + 1);
            at += 1;
        }
        at += 1;
    }
    destination
}

fn migrate<W: Words + ?Sized>(
    words: &W,
    flags: KeyFlags,
    out: &mut impl FnMut(KeyAt),
) -> Result<(), Unparsable> {
    let mut at = 6;
    while at < words.count() {
        let word = words.word(at);
        if is(word, "KEYS") && at + 1 < words.count() {
            if !words.word(3).is_empty() {
                return Err(Unparsable);
            }
            (at + 1..words.count()).for_each(|index| out(KeyAt { index, flags }));
            return Ok(());
        }
        at += if is(word, "AUTH") {
            2
        } else if is(word, "AUTH2") {
            3
        } else {
            1
        };
    }
    if words.count() > 3 {
        out(KeyAt { index: 3, flags });
    }
    Ok(())
}

fn streams<W: Words + ?Sized>(
    words: &W,
    flags: KeyFlags,
    out: &mut impl FnMut(KeyAt),
) -> Result<(), Unparsable> {
    let mut at = 1;
    while at < words.count() {
        let word = words.word(at);
        at += 1;
        if is(word, "STREAMS") {
            let left = words.count() - at;
            if left == 0 || !left.is_multiple_of(2) {
                return Err(Unparsable);
            }
            (at..at + left / 2).for_each(|index| out(KeyAt { index, flags }));
            return Ok(());
        }
        let takes_one = ["BLOCK", "COUNT", "MAXCOUNT", "MAXSIZE", "CLAIM"];
        if takes_one.iter().any(|o| is(word, o)) {
            at += 1;
        } else if is(word, "GROUP") {
            at += 2;
        } else if !is(word, "NOACK") {
            return Err(Unparsable);
        }
    }
    Err(Unparsable)
}
