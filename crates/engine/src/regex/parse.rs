//! From a pattern to a tree.
//!
//! # Invariants
//! - Nodes stand behind their parts, and the last one is the whole.

use std::fmt;

use super::DEPTH_MAX;
use super::program::{Assertion, Set};

/// Times that a part can be repeated.
const REPEAT_MAX: u32 = 255;

/// Why a pattern is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A group of a kind that there is not.
    Group,
    /// A collating element.
    Collating,
    /// A class that has no such name.
    Class,
    /// A backslash at the end.
    Backslash,
    /// A reference to a group that is not there.
    Reference,
    /// A reference to a group that is there, which is no regular thing.
    Unsupported,
    /// A bracket that is never closed.
    Bracket,
    /// A group that is never closed.
    Parenthesis,
    /// Repetitions that are never closed.
    Brace,
    /// Repetitions that make no sense.
    Repetitions,
    /// More repetitions than there can be.
    RepetitionsMax,
    /// A range whose end is below its beginning.
    Range,
    /// A repetition of a repetition.
    Repeated,
    /// More than can be held.
    TooBig,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => {
                return f.write_str("regular expression backreferences are not supported");
            }
            Self::Group => "invalid regular expression: Invalid regexp",
            Self::Collating => "invalid regular expression: Unknown collating element",
            Self::Class => "invalid regular expression: Unknown character class name",
            Self::Backslash => "invalid regular expression: Trailing backslash",
            Self::Reference => "invalid regular expression: Invalid back reference",
            Self::Bracket => "invalid regular expression: Missing ']'",
            Self::Parenthesis => "invalid regular expression: Missing ')'",
            Self::Brace => "invalid regular expression: Missing '}'",
            Self::Repetitions => "invalid regular expression: Invalid contents of {}",
            Self::RepetitionsMax => {
                "invalid regular expression: Maximum repetition in {} larger than 255"
            }
            Self::Range => "invalid regular expression: Invalid character range",
            Self::Repeated => "invalid regular expression: Invalid use of repetition operators",
            Self::TooBig => "invalid regular expression: Out of memory",
        })
    }
}

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Nothing.
    Empty,
    Byte(Box<Set>),
    Assert(Assertion),
    /// One behind the other.
    Sequence(Vec<usize>),
    /// One of several.
    Choice(Vec<usize>),
    /// A part so many times; without an upper bound where there is none.
    Repeat(usize, u32, Option<u32>),
}

/// What letters in parentheses change.
#[derive(Clone, Copy)]
struct Modes {
    fold: bool,
    /// A new line is no byte that `.` takes.
    lines: bool,
}

struct Parser<'a> {
    rest: &'a [u8],
    nodes: Vec<Node>,
    modes: Modes,
    depth: usize,
    groups: u32,
    /// The greatest group that is referred to.
    reference: Option<u32>,
    quoted: bool,
}

/// The nodes of a pattern, the whole last.
pub(super) fn parse(pattern: &[u8], fold: bool) -> Result<Vec<Node>, Invalid> {
    let mut parser = Parser {
        rest: pattern,
        nodes: Vec::new(),
        modes: Modes { fold, lines: false },
        depth: 0,
        groups: 0,
        reference: None,
        quoted: false,
    };
    parser.choice()?;
    match parser.reference {
        Some(group) if group > parser.groups => Err(Invalid::Reference),
        Some(_) => Err(Invalid::Unsupported),
        None => Ok(parser.nodes),
    }
}

impl Parser<'_> {
    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn skip(&mut self, word: &[u8]) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn choice(&mut self) -> Result<usize, Invalid> {
        let mut choices = vec![self.sequence()?];
        while !self.quoted && self.skip(b"|") {
            choices.push(self.sequence()?);
        }
        Ok(match choices.len() {
            1 => choices[0],
            _ => self.add(Node::Choice(choices)),
        })
    }

    fn sequence(&mut self) -> Result<usize, Invalid> {
        let mut parts = Vec::new();
        loop {
            match self.rest.first() {
                None => break,
                Some(b'|') if !self.quoted => break,
                Some(b')') if !self.quoted && self.depth > 0 => break,
                Some(_) => {
                    let part = self.part()?;
                    parts.push(self.repeats(part)?);
                }
            }
        }
        Ok(self.add(match parts.len() {
            0 => Node::Empty,
            _ => Node::Sequence(parts),
        }))
    }

    /// What follows a part and says how often it stands there.
    fn repeats(&mut self, mut part: usize) -> Result<usize, Invalid> {
        while !self.quoted {
            let (least, most) = match self.rest.first() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') => (0, None),
                _ => break,
            };
            let (least, most) = match self.next() {
                Some(b'{') => self.bounds()?,
                _ => (least, most),
            };
            // As few as can be, or as many: a match is a match.
            if !self.skip(b"?") && matches!(self.rest.first(), Some(b'*' | b'+')) {
                return Err(Invalid::Repeated);
            }
            part = self.add(Node::Repeat(part, least, most));
        }
        Ok(part)
    }

    fn digits(&mut self) -> Option<u32> {
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        (count > 0).then(|| {
            digits.iter().fold(0u32, |sum, byte| {
                sum.saturating_mul(10)
                    .saturating_add(u32::from(byte - b'0'))
            })
        })
    }

    /// `2}`, `2,}`, `,3}` or `2,3}`.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), Invalid> {
        let least = self.digits();
        let (least, most) = match (least, self.skip(b",")) {
            (Some(count), false) => (count, Some(count)),
            (None, false) if self.rest.is_empty() => return Err(Invalid::Brace),
            (None, false) => return Err(Invalid::Repetitions),
            (least, true) => (least.unwrap_or(0), self.digits()),
        };
        if most.unwrap_or(least).max(least) > REPEAT_MAX {
            return Err(Invalid::RepetitionsMax);
        }
        if most.is_some_and(|most| most < least) {
            return Err(Invalid::Repetitions);
        }
        match self.next() {
            Some(b'}') => Ok((least, most)),
            None => Err(Invalid::Brace),
            Some(_) => Err(Invalid::Repetitions),
        }
    }

    /// One byte, set, group or assertion.
    fn part(&mut self) -> Result<usize, Invalid> {
        if self.quoted {
            if self.skip(b"\\E") {
                self.quoted = false;
                return Ok(self.add(Node::Empty));
            }
            let byte = self.next().ok_or(Invalid::Backslash)?;
            return Ok(self.byte(byte));
        }
        // A repetition of nothing is one of the empty text.
        if matches!(self.rest.first(), Some(b'*' | b'+' | b'?' | b'{')) {
            return Ok(self.add(Node::Empty));
        }
        let node = match self.next() {
            None => Node::Empty,
            Some(b'(') => return self.group(),
            Some(b'[') => {
                let set = self.bracket()?;
                Node::Byte(Box::new(set))
            }
            Some(b'.') => {
                let mut set = Set::ALL;
                if self.modes.lines {
                    set.remove(b'\n');
                }
                Node::Byte(Box::new(set))
            }
            Some(b'^') => Node::Assert(Assertion::Start),
            Some(b'$') => Node::Assert(Assertion::End),
            Some(b'\\') => return self.escape(),
            Some(byte) => return Ok(self.byte(byte)),
        };
        Ok(self.add(node))
    }

    fn byte(&mut self, byte: u8) -> usize {
        let mut set = Set::default();
        set.add(byte);
        if self.modes.fold {
            set.fold();
        }
        self.add(Node::Byte(Box::new(set)))
    }

    fn named(&mut self, mut set: Set, negated: bool) -> usize {
        if negated {
            set.negate();
        }
        self.add(Node::Byte(Box::new(set)))
    }

    fn escape(&mut self) -> Result<usize, Invalid> {
        let byte = self.next().ok_or(Invalid::Backslash)?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let assertion = match byte {
            b'b' => Assertion::WordEdge,
            b'B' => Assertion::NoWordEdge,
            b'<' => Assertion::WordStart,
            b'>' => Assertion::WordEnd,
            b'w' | b'W' => return Ok(self.named(Set::of(is_word), byte == b'W')),
            b'd' | b'D' => {
                return Ok(self.named(Set::of(|b| b.is_ascii_digit()), byte == b'D'));
            }
            b's' | b'S' => return Ok(self.named(Set::of(is_space), byte == b'S')),
            b'Q' => {
                self.quoted = true;
                return Ok(self.add(Node::Empty));
            }
            b'0'..=b'9' => {
                let group = u32::from(byte - b'0');
                self.reference = self.reference.max(Some(group));
                return Ok(self.add(Node::Empty));
            }
            b'a' => return Ok(self.byte(7)),
            b'e' => return Ok(self.byte(27)),
            b'f' => return Ok(self.byte(12)),
            b'n' => return Ok(self.byte(b'\n')),
            b'r' => return Ok(self.byte(b'\r')),
            b't' => return Ok(self.byte(b'\t')),
            b'x' => {
                let code = self.hexadecimal()?;
                return Ok(match u8::try_from(code) {
                    Ok(byte) => self.byte(byte),
                    // No byte is that.
                    Err(_) => self.add(Node::Byte(Box::default())),
                });
            }
            other => return Ok(self.byte(other)),
        };
        Ok(self.add(Node::Assert(assertion)))
    }

    /// `41`, `4`, nothing, or `{41}`.
    fn hexadecimal(&mut self) -> Result<u32, Invalid> {
        let braced = self.skip(b"{");
        let digits = self.rest.iter().take(if braced { 8 } else { 2 });
        let count = digits.take_while(|b| b.is_ascii_hexdigit()).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        if braced && !self.skip(b"}") {
            return Err(Invalid::Brace);
        }
        Ok(digits.iter().fold(0, |sum, &byte| {
            sum << 4 | char::from(byte).to_digit(16).unwrap_or(0)
        }))
    }

    /// What stands behind an opening parenthesis.
    fn group(&mut self) -> Result<usize, Invalid> {
        let outer = self.modes;
        if self.skip(b"?") {
            if self.skip(b"#") {
                while self.next().ok_or(Invalid::Group)? != b')' {}
                return Ok(self.add(Node::Empty));
            }
            let mut on = true;
            loop {
                match self.next().ok_or(Invalid::Group)? {
                    b'i' => self.modes.fold = on,
                    b'n' => self.modes.lines = on,
                    // The side that a group leans to, and how much it takes: all the same here.
                    b'r' | b'U' => {}
                    b'-' => on = false,
                    b':' => break,
                    // From here to the end of the group around it.
                    b')' => return Ok(self.add(Node::Empty)),
                    _ => return Err(Invalid::Group),
                }
            }
        } else {
            self.groups += 1;
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Invalid::TooBig);
        }
        let inside = self.choice()?;
        self.depth -= 1;
        if !self.skip(b")") {
            return Err(Invalid::Parenthesis);
        }
        self.modes = outer;
        Ok(inside)
    }

    /// A set in brackets, behind the opening one.
    fn bracket(&mut self) -> Result<Set, Invalid> {
        let negated = self.skip(b"^");
        let mut set = Set::default();
        let mut first = true;
        loop {
            let low = match self.next().ok_or(Invalid::Bracket)? {
                b']' if !first => break,
                b'[' if matches!(self.rest.first(), Some(b'.' | b'=')) => {
                    return Err(Invalid::Collating);
                }
                b'[' if self.skip(b":") => {
                    set.merge(&self.class()?);
                    first = false;
                    if self.is_range() {
                        return Err(Invalid::Range);
                    }
                    continue;
                }
                byte => byte,
            };
            first = false;
            if self.is_range() {
                self.next();
                let high = self.next().ok_or(Invalid::Bracket)?;
                if low > high {
                    return Err(Invalid::Range);
                }
                (low..=high).for_each(|byte| set.add(byte));
                // A range does not begin where another one ended.
                if self.is_range() {
                    return Err(Invalid::Range);
                }
            } else {
                set.add(low);
            }
        }
        if self.modes.fold {
            set.fold();
        }
        if negated {
            set.negate();
        }
        Ok(set)
    }

    /// Whether a dash follows that stands between two ends.
    fn is_range(&self) -> bool {
        self.rest.first() == Some(&b'-') && self.rest.get(1).is_some_and(|&next| next != b']')
    }

    /// A named class, behind `[:`.
    fn class(&mut self) -> Result<Set, Invalid> {
        let end = self.rest.iter().position(|&byte| byte == b':');
        let (name, rest) = self.rest.split_at(end.ok_or(Invalid::Class)?);
        let is_class: fn(u8) -> bool = match name {
            b"alnum" => |b| b.is_ascii_alphanumeric(),
            b"alpha" => |b| b.is_ascii_alphabetic(),
            b"cntrl" => |b| b.is_ascii_control(),
            b"digit" => |b| b.is_ascii_digit(),
            b"graph" => |b| b.is_ascii_graphic(),
            b"lower" => |b| b.is_ascii_lowercase(),
            b"print" => |b| b.is_ascii_graphic() || b == b' ',
            b"punct" => |b| b.is_ascii_punctuation(),
            b"space" => is_space,
            b"upper" => |b| b.is_ascii_uppercase(),
            b"xdigit" => |b| b.is_ascii_hexdigit(),
            _ => return Err(Invalid::Class),
        };
        self.rest = rest;
        if !self.skip(b":]") {
            return Err(Invalid::Class);
        }
        Ok(Set::of(is_class))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}
