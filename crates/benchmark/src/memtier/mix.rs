//! The mix of requests: commands in turns, keys by pattern, values by size.

use super::keys::Keys;
use super::options::{Line, Pattern};
use crate::load::random::Random;
use crate::load::{Batch, Source};
use crate::words;
use std::io::Write;

/// One kind of request.
#[derive(Debug, Clone)]
pub struct Kind {
    /// What the table calls it: `Sets`.
    pub title: String,
    /// The command: `SET`.
    pub name: String,
    /// How often it is sent in a turn.
    ratio: u32,
    pattern: Pattern,
    pieces: Vec<Piece>,
    /// Replies are hits or misses.
    pub has_hits: bool,
}

#[derive(Debug, Clone)]
enum Piece {
    /// Bytes as they go over the wire.
    Fixed(Vec<u8>),
    /// An argument that holds the key.
    Key(Vec<u8>, Vec<u8>),
    /// An argument that holds a value.
    Data(Vec<u8>, Vec<u8>),
    /// The seconds that a key is to live.
    Expiry,
}

/// What stands for these in `--command`.
const KEY: &str = "__key__";
const DATA: &str = "__data__";
const EXPIRY: &str = "__expiry__";

impl Kind {
    fn new(words: &[String], title: String, ratio: u32, pattern: Pattern) -> Self {
        let mut pieces = Vec::new();
        let mut fixed = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let parts = |mark: &str| {
                let (before, after) = word.split_once(mark)?;
                Some((before.as_bytes().to_vec(), after.as_bytes().to_vec()))
            };
            let piece = if word == EXPIRY {
                Some(Piece::Expiry)
            } else if let Some((before, after)) = parts(KEY) {
                Some(Piece::Key(before, after))
            } else if let Some((before, after)) = parts(DATA) {
                Some(Piece::Data(before, after))
            } else {
                None
            };
            match piece {
                Some(piece) => {
                    pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
                    pieces.push(piece);
                }
                None => {
                    fixed.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
                }
            }
        }
        pieces.push(Piece::Fixed(fixed));
        pieces.retain(|piece| !matches!(piece, Piece::Fixed(bytes) if bytes.is_empty()));
        let name = words
            .first()
            .map(|word| word.to_ascii_uppercase())
            .unwrap_or_default();
        Self {
            has_hits: name == "GET",
            title,
            name,
            ratio,
            pattern,
            pieces,
        }
    }
}

/// The kinds that the options ask for: SETs and GETs, or the commands given.
pub fn kinds(line: &Line, patterns: [Pattern; 2]) -> Result<Vec<Kind>, String> {
    if line.command.is_empty() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let set = match line.expiry_range {
            Some(_) => "SETEX __key__ __expiry__ __data__",
            None => "SET __key__ __data__",
        };
        let sets = Kind::new(&words(set), "Sets".to_owned(), line.ratio.0, patterns[0]);
        let gets = Kind::new(
            &words("GET __key__"),
            "Gets".to_owned(),
            line.ratio.1,
            patterns[1],
        );
        return Ok(vec![sets, gets]);
    }
    let mut kinds = Vec::new();
    for (at, text) in line.command.iter().enumerate() {
        let words = words::split(text)
            .ok_or_else(|| format!("error: --command has a quote without end: {text}"))?;
        let Some(first) = words.first() else {
            return Err("error: --command is empty".to_owned());
        };
        let mut title = first.to_ascii_lowercase();
        title.push('s');
        if let Some(letter) = title.get_mut(..1) {
            letter.make_ascii_uppercase();
        }
        let ratio = line.command_ratio.get(at).copied().unwrap_or(1);
        let pattern = line
            .command_key_pattern
            .get(at)
            .copied()
            .unwrap_or(Pattern::Random);
        kinds.push(Kind::new(&words, title, ratio, pattern));
    }
    if kinds.iter().all(|kind| kind.ratio == 0) {
        return Err("error: every --command-ratio is 0".to_owned());
    }
    Ok(kinds)
}

/// How large values are.
#[derive(Debug, Clone)]
enum Size {
    Fixed(usize),
    Range(u64, u64),
    /// The same, growing with the number of the key.
    ByKey(u64, u64),
    /// Sizes with the sum of the weights up to them.
    List(Vec<(usize, u64)>),
}

impl Size {
    fn new(line: &Line) -> Result<Self, String> {
        if let Some(list) = &line.data_size_list {
            let mut sum = 0u64;
            let sizes = list.split(',').map(|item| {
                let (size, weight) = item.split_once(':')?;
                sum = sum.checked_add(weight.parse().ok()?)?;
                let size = size
                    .parse()
                    .ok()
                    .filter(|&size: &usize| size <= 512 << 20)?;
                Some((size, sum))
            });
            let sizes: Option<Vec<_>> = sizes.collect();
            let sizes = sizes.filter(|sizes| sizes.last().is_some_and(|last| last.1 > 0));
            return sizes.map(Self::List).ok_or_else(|| {
                "error: data-size-list must be in the format of \"size1:weight1,...\".".to_owned()
            });
        }
        Ok(match line.data_size_range {
            Some(range) if line.data_size_pattern == "S" => Self::ByKey(range.0, range.1),
            Some(range) => Self::Range(range.0, range.1),
            None => Self::Fixed(line.data_size),
        })
    }

    fn largest(&self) -> usize {
        match self {
            Self::Fixed(size) => *size,
            Self::Range(_, high) | Self::ByKey(_, high) => {
                usize::try_from(*high).expect("checked with the options")
            }
            Self::List(sizes) => sizes.iter().map(|&(size, _)| size).max().unwrap_or(0),
        }
    }
}

/// What a connection remembers from request to request.
#[derive(Debug, Clone)]
struct State {
    random: Random,
    keys: Vec<Keys>,
    kind: usize,
    /// Requests of this kind that the turn still has.
    left: u32,
}

/// The requests of one thread.
#[derive(Debug, Clone)]
pub struct Mix {
    kinds: Vec<Kind>,
    states: Vec<State>,
    prefix: String,
    size: Size,
    random_data: bool,
    /// Values are cut from this.
    data: Vec<u8>,
    expiry: (u64, u64),
    first_key: u64,
    keys: u64,
    key: Vec<u8>,
}

impl Mix {
    /// The mix of thread `number`; `seed` is the run's.
    pub fn new(line: &Line, kinds: &[Kind], number: usize, seed: u64) -> Result<Self, String> {
        let size = Size::new(line)?;
        let mut random = Random::new(seed);
        let all = (line.threads * line.clients) as u64;
        let states = (0..line.clients).map(|index| {
            let connection = (number * line.clients + index) as u64;
            let keys = kinds.iter().map(|kind| {
                Keys::new(
                    line.key_minimum,
                    line.key_maximum,
                    kind.pattern,
                    line.key_median,
                    line.key_stddev,
                    line.key_zipf_exp,
                    (connection, all),
                )
            });
            let own = if line.distinct_client_seed {
                connection + 1
            } else {
                0
            };
            State {
                random: Random::new(seed.wrapping_add(own.wrapping_mul(0x2545_f491_4f6c_dd1d))),
                keys: keys.collect(),
                kind: 0,
                left: kinds[0].ratio,
            }
        });
        let states = states.collect();
        // Twice the largest, so that random ones begin anywhere in the first half.
        let bytes = match line.random_data {
            true => (0..size.largest() * 2)
                .map(|_| (random.bits() >> 40) as u8)
                .collect(),
            false => vec![b'x'; size.largest()],
        };
        Ok(Self {
            kinds: kinds.to_vec(),
            states,
            prefix: line.key_prefix.clone(),
            size,
            random_data: line.random_data,
            data: bytes,
            expiry: line.expiry_range.map_or((1, 1), |range| (range.0, range.1)),
            first_key: line.key_minimum,
            keys: line.key_maximum - line.key_minimum + 1,
            key: Vec::new(),
        })
    }

    fn request(&mut self, connection: usize, out: &mut Vec<u8>) -> usize {
        let state = &mut self.states[connection];
        while state.left == 0 {
            state.kind = (state.kind + 1) % self.kinds.len();
            state.left = self.kinds[state.kind].ratio;
        }
        state.left -= 1;
        let kind = &self.kinds[state.kind];
        let number = state.keys[state.kind].draw(&mut state.random);
        for piece in &kind.pieces {
            match piece {
                Piece::Fixed(bytes) => out.extend_from_slice(bytes),
                Piece::Key(before, after) => {
                    self.key.clear();
                    self.key.extend_from_slice(before);
                    self.key.extend_from_slice(self.prefix.as_bytes());
                    write_number(number, &mut self.key);
                    self.key.extend_from_slice(after);
                    write_argument(&[&self.key], out);
                }
                Piece::Data(before, after) => {
                    let random = &mut state.random;
                    let bytes = match &self.size {
                        Size::Fixed(size) => *size as u64,
                        Size::Range(low, high) => random.between(*low, *high),
                        Size::ByKey(low, high) => {
                            let part = (number - self.first_key) as f64 / self.keys as f64;
                            low + (part * (high - low + 1) as f64) as u64
                        }
                        Size::List(sizes) => {
                            let all = sizes.last().map_or(0, |last| last.1);
                            let drawn = random.below(all);
                            let found = sizes.iter().find(|&&(_, sum)| drawn < sum);
                            found.map_or(0, |&(size, _)| size as u64)
                        }
                    };
                    let bytes = usize::try_from(bytes).expect("checked with the options");
                    let begin = match self.random_data {
                        true => random.below((self.data.len() - bytes) as u64 + 1) as usize,
                        false => 0,
                    };
                    write_argument(&[before, &self.data[begin..begin + bytes], after], out);
                }
                Piece::Expiry => {
                    self.key.clear();
                    let seconds = state.random.between(self.expiry.0, self.expiry.1);
                    write_number(seconds, &mut self.key);
                    write_argument(&[&self.key], out);
                }
            }
        }
        state.kind
    }
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    write!(out, "{number}").expect("memory takes all");
}

fn write_argument(parts: &[&[u8]], out: &mut Vec<u8>) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    write!(out, "${bytes}\r\n").expect("memory takes all");
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

impl Source for Mix {
    fn fill(&mut self, connection: usize, count: usize, batch: &mut Batch) {
        batch.bytes.clear();
        for _ in 0..count {
            let class = self.request(connection, &mut batch.bytes);
            batch.push(class, 1);
        }
        batch.used = batch.bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn sent(options: &str, count: usize) -> String {
        let line = Line::try_parse_from(options.split(' ')).expect("options");
        let (_, patterns) = line.checked().expect("right ones");
        let kinds = kinds(&line, patterns).expect("kinds");
        let mut mix = Mix::new(&line, &kinds, 0, 1).expect("a mix");
        let mut batch = Batch::default();
        mix.fill(0, count, &mut batch);
        let text = String::from_utf8_lossy(&batch.bytes).into_owned();
        text.split("\r\n")
            .filter(|word| !word.starts_with(['*', '$']))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn sets_and_gets_come_in_turns() {
        assert_eq!(
            sent("x --ratio 1:2 --key-pattern S:S -d 2", 4),
            "SET memtier-0 xx GET memtier-0 GET memtier-1 SET memtier-1 xx "
        );
        assert_eq!(
            sent(
                "x --ratio 1:0 --key-pattern P:P -d 1 -t 1 -c 1 --expiry-range 7-7",
                1
            ),
            "SETEX memtier-0 7 x "
        );
    }

    #[test]
    fn commands_have_keys_and_values_in_them() {
        let line = [
            "x",
            "--command",
            "lpush l:__key__ '__data__' 'a b'",
            "--command-key-pattern",
            "S",
            "--data-size-range",
            "3-3",
            "--command-ratio",
            "2",
            "--key-prefix",
            "k",
        ];
        let line = Line::try_parse_from(line).expect("options");
        let (_, patterns) = line.checked().expect("right ones");
        let kinds = kinds(&line, patterns).expect("kinds");
        assert_eq!(
            (kinds[0].title.as_str(), kinds[0].name.as_str()),
            ("Lpushs", "LPUSH")
        );
        let mut mix = Mix::new(&line, &kinds, 0, 1).expect("a mix");
        let mut batch = Batch::default();
        mix.fill(0, 1, &mut batch);
        assert_eq!(
            String::from_utf8_lossy(&batch.bytes),
            "*4\r\n$5\r\nlpush\r\n$4\r\nl:k0\r\n$3\r\nxxx\r\n$3\r\na b\r\n"
        );
    }
}
