//! A selector: commands, and the keys, channels and databases that they may be used on.
//!
//! Every user has one of its own and may have more, in parentheses. A call is allowed where one of
//! them allows all of it.

use command::keys::KeyFlags;
use resp::Args;

use super::{Bounds, CommandSet, Denial, Reason, RuleError};
use crate::glob;
use crate::handler::Entry;

/// One set of rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub(super) commands: CommandSet,
    /// Every key may be read and written.
    all_keys: bool,
    keys: Vec<KeyPattern>,
    all_channels: bool,
    channels: Vec<Box<[u8]>>,
    /// The databases; `None` is every one.
    databases: Option<Vec<u32>>,
}

/// Keys, and what may be done with them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPattern {
    reads: bool,
    writes: bool,
    pattern: Box<[u8]>,
}

/// What a call does with a key, as far as rights tell it apart. Some commands do neither: whoever
/// has any right to the key may ask whether it exists.
#[derive(Clone, Copy)]
struct Use {
    reads: bool,
    writes: bool,
}

impl Use {
    fn of(flags: KeyFlags) -> Self {
        let changes = [KeyFlags::INSERT, KeyFlags::UPDATE, KeyFlags::DELETE];
        Self {
            reads: flags.has(KeyFlags::ACCESS),
            writes: changes.into_iter().any(|change| flags.has(change)),
        }
    }
}

impl KeyPattern {
    fn allows(&self, wanted: Use) -> bool {
        (self.reads || !wanted.reads) && (self.writes || !wanted.writes)
    }
}

impl Selector {
    /// One that allows nothing, but for channels where those are for everybody.
    pub fn none(all_channels: bool) -> Self {
        Self {
            commands: CommandSet::none(),
            all_keys: false,
            keys: Vec::new(),
            all_channels,
            channels: Vec::new(),
            databases: None,
        }
    }

    /// One that allows everything.
    pub fn everything() -> Self {
        Self {
            commands: CommandSet::all(),
            all_keys: true,
            ..Self::none(true)
        }
    }

    /// Whether it allows everything.
    pub fn is_everything(&self) -> bool {
        self.commands.is_all() && self.all_keys && self.all_channels && self.databases.is_none()
    }

    /// Whether the call is allowed, all of it.
    pub(super) fn check(&self, db: u32, entry: &Entry, args: Args<'_>) -> Result<(), Denial> {
        let deny = |reason, at| Err(Denial { reason, at });
        if !self.commands.allows(entry, args) {
            return deny(Reason::Command, 0);
        }
        if let Some(at) = self.forbidden_database(db, entry, args) {
            return deny(Reason::Database, at);
        }
        if let Some(at) = self.forbidden_key(entry, args) {
            return deny(Reason::Key, at);
        }
        match self.forbidden_channel(entry, args) {
            Some(at) => deny(Reason::Channel, at),
            None => Ok(()),
        }
    }

    /// The position of the first key that the call may not use so.
    fn forbidden_key(&self, entry: &Entry, args: Args<'_>) -> Option<usize> {
        if self.all_keys {
            return None;
        }
        let mut forbidden = None;
        let found = entry.command.each_key(&args, &mut |key| {
            if forbidden.is_none() && !self.allows_key(args.at(key.index), Use::of(key.flags)) {
                forbidden = Some(key.index);
            }
        });
        // The command will find fault with its words as well. Should it not, no key must be open.
        forbidden.or(found.is_err().then_some(0))
    }

    fn allows_key(&self, key: &[u8], wanted: Use) -> bool {
        let mut patterns = self.keys.iter();
        patterns.any(|known| known.allows(wanted) && glob::matches(&known.pattern, key))
    }

    /// Whether every key may be read.
    pub(super) fn reads_every_key(&self) -> bool {
        self.all_keys
            || self
                .keys
                .iter()
                .any(|known| known.reads && *known.pattern == *b"*")
    }

    /// The position of the first channel that the call may not use.
    fn forbidden_channel(&self, entry: &Entry, args: Args<'_>) -> Option<usize> {
        if self.all_channels {
            return None;
        }
        let (count, is_pattern) = match entry.command.name {
            "publish" | "spublish" => (1, false),
            "subscribe" | "ssubscribe" => (usize::MAX, false),
            "psubscribe" => (usize::MAX, true),
            _ => return None,
        };
        let mut positions = (1..args.len()).take(count);
        positions.find(|&at| !self.allows_channel(args.at(at), is_pattern))
    }

    /// Whether a channel, or a pattern of channels, may be used: a pattern only as it stands in a
    /// rule, since nobody can say whether one covers another.
    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|known| match is_pattern {
                true => **known == *channel,
                false => glob::matches(known, channel),
            })
    }

    /// The position of the word that names a database which is not allowed; 0 where it is the one
    /// that the command works in.
    fn forbidden_database(&self, db: u32, entry: &Entry, args: Args<'_>) -> Option<usize> {
        let allowed = self.databases.as_ref()?;
        if works_in_database(entry) && !allowed.contains(&db) || &*entry.full_name == "flushall" {
            return Some(0);
        }
        // What is no number is for the command to refuse.
        let is_forbidden = |at: &usize| {
            let number = args.get(*at).and_then(parse_db);
            number.is_some_and(|number| !allowed.contains(&number))
        };
        match &*entry.full_name {
            "select" => Some(1).filter(is_forbidden),
            "move" => Some(2).filter(is_forbidden),
            "swapdb" => [1, 2].into_iter().find(is_forbidden),
            "copy" => (4..args.len()).find(|at| args.is(at - 1, "DB") && is_forbidden(at)),
            _ => None,
        }
    }

    /// Applies a rule about commands, keys, channels or databases. False where it is none.
    pub(super) fn apply(&mut self, rule: &[u8], bounds: &Bounds<'_>) -> Result<bool, RuleError> {
        let word = rule.to_ascii_lowercase();
        match word.as_slice() {
            b"allkeys" | b"~*" => {
                self.all_keys = true;
                self.keys.clear();
            }
            b"resetkeys" => {
                self.all_keys = false;
                self.keys.clear();
            }
            b"allchannels" | b"&*" => {
                self.all_channels = true;
                self.channels.clear();
            }
            b"resetchannels" => {
                self.all_channels = false;
                self.channels.clear();
            }
            b"allcommands" => self.commands = CommandSet::all(),
            b"nocommands" => self.commands = CommandSet::none(),
            b"alldbs" => self.databases = None,
            b"resetdbs" => self.databases = Some(Vec::new()),
            [b'd', b'b', b'=', list @ ..] => self.databases = Some(parse_databases(list)?),
            [b'+' | b'-', ..] => self.commands.apply(rule, bounds.table)?,
            [b'~', ..] => self.add_keys(true, true, &rule[1..])?,
            [b'%', ..] => {
                let bar = rule.iter().position(|byte| *byte == b'~');
                let (letters, pattern) = rule.split_at(bar.unwrap_or(rule.len()));
                let (reads, writes) = match letters.to_ascii_lowercase().as_slice() {
                    b"%r" => (true, false),
                    b"%w" => (false, true),
                    b"%rw" | b"%wr" => (true, true),
                    _ => (false, false),
                };
                if self.all_keys {
                    return Err(RuleError::AfterAllKeys);
                }
                if !reads && !writes {
                    return Err(RuleError::Syntax);
                }
                self.add_keys(reads, writes, pattern.get(1..).unwrap_or_default())?;
            }
            [b'&', ..] => {
                let channel = &rule[1..];
                if self.all_channels {
                    return Err(RuleError::AfterAllChannels);
                }
                check_pattern(channel)?;
                if !self.channels.iter().any(|known| **known == *channel) {
                    self.channels.push(channel.into());
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_keys(&mut self, reads: bool, writes: bool, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AfterAllKeys);
        }
        check_pattern(pattern)?;
        match self
            .keys
            .iter_mut()
            .find(|known| *known.pattern == *pattern)
        {
            Some(known) => {
                known.reads |= reads;
                known.writes |= writes;
            }
            None => self.keys.push(KeyPattern {
                reads,
                writes,
                pattern: pattern.into(),
            }),
        }
        Ok(())
    }

    /// The rules for commands.
    pub fn show_commands(&self) -> Vec<u8> {
        self.commands.show()
    }

    /// The rules for keys; empty where none is allowed.
    pub fn show_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let show = |known: &KeyPattern| {
            let letters: &[u8] = match (known.reads, known.writes) {
                (true, false) => b"%R~",
                (false, true) => b"%W~",
                _ => b"~",
            };
            [letters, &known.pattern].concat()
        };
        let shown: Vec<_> = self.keys.iter().map(show).collect();
        shown.join(&b' ')
    }

    /// The rules for channels; empty where none is allowed.
    pub fn show_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let show = |channel: &[u8]| [b"&", channel].concat();
        let shown: Vec<_> = self.channels.iter().map(|one| show(one)).collect();
        shown.join(&b' ')
    }

    /// The rule for databases; `None` where every one is allowed.
    pub fn show_databases(&self) -> Option<Vec<u8>> {
        let numbers: Vec<_> = self
            .databases
            .as_ref()?
            .iter()
            .map(u32::to_string)
            .collect();
        Some(match numbers.is_empty() {
            true => b"resetdbs".to_vec(),
            false => format!("db={}", numbers.join(",")).into_bytes(),
        })
    }

    /// All rules, so that applying them to one that allows nothing gives this one.
    pub(super) fn show(&self) -> Vec<u8> {
        let mut rules = Vec::new();
        let keys = self.show_keys();
        if !keys.is_empty() {
            rules.push(keys);
        }
        if !self.all_channels {
            rules.push(b"resetchannels".to_vec());
        }
        let channels = self.show_channels();
        if !channels.is_empty() {
            rules.push(channels);
        }
        rules.extend(self.show_databases());
        rules.push(self.show_commands());
        rules.join(&b' ')
    }
}

/// Whether a command reads or changes the database that its client chose.
fn works_in_database(entry: &Entry) -> bool {
    use command::{Acl, KeyPlan};
    // These name the databases that they change.
    if &*entry.full_name == "swapdb" {
        return false;
    }
    let categories = [Acl::KEYSPACE, Acl::READ, Acl::WRITE];
    entry.key_plan != KeyPlan::None || categories.into_iter().any(|one| entry.acl.has(one))
}

fn parse_db(word: &[u8]) -> Option<u32> {
    crate::number::int(word).ok()?.try_into().ok()
}

fn parse_databases(list: &[u8]) -> Result<Vec<u32>, RuleError> {
    let mut databases = Vec::new();
    for word in list.split(|byte| *byte == b',') {
        let number = crate::number::int(word).map_err(|_| RuleError::Syntax)?;
        let number = i32::try_from(number)
            .ok()
            .and_then(|n| u32::try_from(n).ok());
        databases.push(number.ok_or(RuleError::DatabaseRange)?);
    }
    databases.sort_unstable();
    databases.dedup();
    Ok(databases)
}

/// Refuses what could not be written as one word of a file.
fn check_pattern(pattern: &[u8]) -> Result<(), RuleError> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    match pattern.iter().any(is_blank) {
        true => Err(RuleError::Syntax),
        false => Ok(()),
    }
}
