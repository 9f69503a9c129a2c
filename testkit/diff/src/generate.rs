//! From a command's tree of arguments to one call of it.
//!
//! Counts (`numkeys`, `numfields`) are filled in from what follows them, options now and then come
//! in another order, and a few calls are spoilt on purpose: a word lost, doubled, swapped or
//! replaced. Values come from [`Values`].

use crate::facts::{Arg, Command, Kind};
use crate::sequence::Word;
use crate::values::{About, RangeStyle, Values};

/// Chance in a hundred that an optional argument is there.
const OPTION_PERCENT: usize = 30;
/// Chance in a hundred that a call is spoilt.
const SPOIL_PERCENT: usize = 4;

/// One call of a command.
pub fn call(command: &Command, values: &mut Values) -> Vec<Word> {
    let name = command.words.join("|");
    let has_random_reply = matches!(
        name.as_str(),
        "srandmember" | "hrandfield" | "zrandmember" | "spop"
    );
    let style = match name.as_str() {
        "zcount" => RangeStyle::Score,
        name if name.contains("byscore") => RangeStyle::Score,
        name if name.contains("lex") => RangeStyle::Lex,
        "zrange" | "zrangestore" => {
            *values
                .random
                .pick(&[RangeStyle::Rank, RangeStyle::Score, RangeStyle::Lex])
        }
        _ => RangeStyle::Rank,
    };
    let mut maker = Maker {
        about: About {
            command: &name,
            group: &command.group,
            style,
            is_reversed: false,
            has_random_reply,
            kind_is_number: false,
        },
        words: command
            .words
            .iter()
            .map(|word| Word::from(word.as_str()))
            .collect(),
        values,
        repeated: None,
    };
    if style != RangeStyle::Rank && matches!(name.as_str(), "zrange" | "zrangestore") {
        maker.about.is_reversed = maker.values.random.percent(30);
    }
    match command.has_args {
        true => maker.list(&command.args),
        false => maker.unknown(command),
    }
    let mut words = maker.words;
    let rest = command.words.len();
    if values.random.percent(SPOIL_PERCENT) {
        spoil(&mut words, rest, values);
    }
    words
}

struct Maker<'a> {
    about: About<'a>,
    words: Vec<Word>,
    values: &'a mut Values,
    /// How often the last repeated argument was said.
    repeated: Option<usize>,
}

impl Maker<'_> {
    /// All of these, in their order; neighbouring options sometimes in another.
    fn list(&mut self, args: &[Arg]) {
        let mut order: Vec<&Arg> = args.iter().collect();
        if self.values.random.percent(20) {
            for run in order.chunk_by_mut(|a, b| is_option(a) && is_option(b)) {
                self.values.random.shuffle(run);
            }
        }
        for (at, arg) in order.iter().enumerate() {
            let rest = &order[at + 1..];
            if is_count(arg) && rest.iter().any(|next| is_counted(next)) {
                self.counted(arg, rest);
                return;
            }
            self.one(arg);
        }
    }

    /// A count, what it counts, and what follows.
    fn counted(&mut self, count: &Arg, rest: &[&Arg]) {
        if let Some(token) = &count.token {
            self.token(token);
        }
        let place = self.words.len();
        self.words.push(Word::from("1"));
        let mut is_open = true;
        for arg in rest {
            self.one(arg);
            if is_open && is_counted(arg) {
                is_open = false;
                let times = i64::try_from(self.repeated.unwrap_or(1)).unwrap_or(1);
                let times = match self.values.random.below(60) {
                    0 => times + 1,
                    1 => times - 1,
                    2 => -times,
                    _ => times,
                };
                self.words[place] = times.to_string().into();
            }
        }
    }

    fn one(&mut self, arg: &Arg) {
        if arg.optional && !self.is_wanted(arg) {
            return;
        }
        if let (Some(token), false) = (&arg.token, arg.multiple_token || arg.kind == Kind::Token) {
            self.token(token);
        }
        let times = match arg.multiple {
            true => self.times(arg),
            false => 1,
        };
        for _ in 0..times {
            if let (Some(token), true) = (&arg.token, arg.multiple_token) {
                self.token(token);
            }
            self.plain(arg);
        }
        if arg.multiple {
            self.repeated = Some(times);
        }
    }

    fn times(&mut self, arg: &Arg) -> usize {
        // One weight and one stream id belong to each key.
        let is_tied =
            arg.name == "weight" || (arg.name == "id" && self.about.command.starts_with("xread"));
        if let (true, Some(times)) = (is_tied, self.repeated) {
            return match self.values.random.below(50) {
                0 => times + 1,
                _ => times,
            };
        }
        if arg.name == "vertices" {
            return [3, 3, 4, 4, 5, 6, 2, 1][self.values.random.below(8)];
        }
        [1, 1, 1, 2, 2, 3, 4, 7][self.values.random.below(8)]
    }

    fn is_wanted(&mut self, arg: &Arg) -> bool {
        let by = arg
            .children
            .iter()
            .any(|child| matches!(child.token.as_deref(), Some("BYSCORE" | "BYLEX")));
        if by && self.about.style != RangeStyle::Rank {
            return self.values.random.percent(97);
        }
        if arg.token.as_deref() == Some("REV") && self.about.command.starts_with("zrange") {
            return self.about.is_reversed || self.values.random.percent(15);
        }
        // Only a polygon does without.
        if arg.name == "from" {
            return self.values.random.percent(65);
        }
        self.values.random.percent(OPTION_PERCENT)
    }

    /// The argument itself, once, without what its flags add.
    fn plain(&mut self, arg: &Arg) {
        match arg.kind {
            Kind::Token => self.token(arg.token.as_deref().unwrap_or(&arg.name)),
            Kind::Block if arg.name == "vertices" => {
                let [longitude, latitude] = self.values.vertex();
                self.words.extend([longitude, latitude]);
            }
            Kind::Block => self.list(&arg.children),
            Kind::OneOf => {
                let wanted = match self.about.style {
                    RangeStyle::Score => "BYSCORE",
                    RangeStyle::Lex => "BYLEX",
                    RangeStyle::Rank => "",
                };
                let by = arg
                    .children
                    .iter()
                    .find(|child| child.token.as_deref() == Some(wanted));
                if let Some(child) = by {
                    return self.one(child);
                }
                let at = self.values.random.below(arg.children.len().max(1));
                if let Some(child) = arg.children.get(at) {
                    self.one(child);
                }
            }
            Kind::Key => {
                let key = self.values.key(self.about.group);
                self.words.push(key);
            }
            Kind::String | Kind::Integer | Kind::Double | Kind::Pattern | Kind::UnixTime => {
                self.about.kind_is_number = !matches!(arg.kind, Kind::String | Kind::Pattern);
                let word = self.values.word(&self.about, &arg.name);
                self.words.push(word);
            }
        }
    }

    fn token(&mut self, token: &str) {
        let token = match self.values.random.percent(3) {
            true => token.to_lowercase(),
            false => token.to_owned(),
        };
        self.words.push(token.into());
    }

    /// A call of a command whose arguments nobody has described: a key where one is due, and as
    /// many words as it wants.
    fn unknown(&mut self, command: &Command) {
        let least = usize::try_from(command.arity.unsigned_abs()).unwrap_or(1);
        let more = match command.arity < 0 {
            true => self.values.random.below(3),
            false => 0,
        };
        while self.words.len() < least + more {
            let at = i64::try_from(self.words.len()).unwrap_or(0);
            let word = match at == command.first_key {
                true => self.values.key(self.about.group),
                false => self.values.member(),
            };
            self.words.push(word);
        }
    }
}

fn is_option(arg: &Arg) -> bool {
    arg.optional && (arg.token.is_some() || matches!(arg.kind, Kind::OneOf | Kind::Block))
}

fn is_count(arg: &Arg) -> bool {
    arg.kind == Kind::Integer
        && matches!(
            arg.name.as_str(),
            "numkeys" | "numfields" | "numids" | "numranges" | "num-vertices"
        )
}

fn is_counted(arg: &Arg) -> bool {
    arg.multiple
}

/// Makes a call probably wrong. The first `fixed` words stay.
fn spoil(words: &mut Vec<Word>, fixed: usize, values: &mut Values) {
    let count = words.len() - fixed;
    if count == 0 {
        words.push(values.member());
        return;
    }
    let at = fixed + values.random.below(count);
    // Where lifetimes stand, a number out of its place could let a key die on the way.
    let has_lifetime = words.iter().any(|word| {
        let text = word.plain().unwrap_or_default().to_ascii_lowercase();
        matches!(
            text.as_slice(),
            b"ex" | b"px" | b"setex" | b"psetex" | b"restore"
        ) || text.ends_with(b"expire")
    });
    let kinds = if has_lifetime { 2 } else { 6 };
    match values.random.below(kinds) {
        0 => words.truncate(at),
        1 => words.push(values.member()),
        2 => drop(words.remove(at)),
        3 => {
            let word = words[at].clone();
            words.insert(at, word);
        }
        4 => {
            let other = fixed + values.random.below(count);
            words.swap(at, other);
        }
        _ => words[at] = values.small(-2, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;
    use crate::random::Random;

    fn calls(name: &str, count: usize) -> Vec<Vec<String>> {
        let commands = facts::parse(include_str!("../../compat/redis-8.10.json")).expect("facts");
        let command = commands
            .iter()
            .find(|c| c.name() == name)
            .expect("a command");
        let mut values = Values::new(Random::new(5, 0));
        values.edge_percent = 0;
        let text = |word: &Word| match word.plain() {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None => "*reply*".to_owned(),
        };
        (0..count)
            .map(|_| call(command, &mut values).iter().map(text).collect())
            .collect()
    }

    #[test]
    fn counts_agree_with_what_they_count() {
        let made = calls("zdiff", 300);
        let right = made.iter().filter(|words| {
            let keys = words.get(1).and_then(|count| count.parse::<usize>().ok());
            let scores = usize::from(
                words
                    .last()
                    .is_some_and(|word| word.eq_ignore_ascii_case("WITHSCORES")),
            );
            keys.is_some_and(|keys| words.len() == 2 + keys + scores)
        });
        assert!(right.count() > 250);
    }

    #[test]
    fn each_stream_has_an_id() {
        let made = calls("xread", 300);
        let right = made.iter().filter(|words| {
            let streams = words
                .iter()
                .position(|word| word.eq_ignore_ascii_case("STREAMS"));
            streams.is_some_and(|at| (words.len() - at - 1) % 2 == 0)
        });
        assert!(right.count() > 240);
    }

    #[test]
    fn every_command_can_be_called() {
        for text in [
            include_str!("../../compat/redis-8.10.json"),
            include_str!("../../compat/valkey-9.1.json"),
        ] {
            let mut values = Values::new(Random::new(6, 0));
            for command in facts::parse(text).expect("facts") {
                for _ in 0..50 {
                    let words = call(&command, &mut values);
                    assert!(words.len() >= command.words.len());
                    let bytes: usize = words.iter().filter_map(Word::plain).map(<[u8]>::len).sum();
                    assert!(bytes < 1 << 20, "{}", command.name());
                }
            }
        }
    }
}
