//! Words for arguments: what a value is called in the facts decides what it looks like.
//!
//! Most values come from small vocabularies, so that keys, members and ids meet; some are at the
//! edges of numbers or wrong. Nothing here makes a server allocate more than a few megabytes, and
//! no deadline falls due while a sequence is played.

use crate::random::Random;
use crate::sequence::{Seen, Word};

const MEMBERS: &[&str] = &["a", "b", "c", "d", "1", "2", "3", "10"];
const RARE_MEMBERS: &[&str] = &[
    "e",
    "f",
    "g",
    "h",
    "foo",
    "hello",
    "-5",
    "3.5",
    "0",
    "01",
    " x",
    "",
    "A",
    "abc",
    "a\0b",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "65536",
    "-0",
    "1e3",
    "a much longer member than the sixty-four bytes that a listpack takes by default",
];
const VALUES: &[&str] = &["1", "5", "10", "a", "hello", "foobar", "3.0", "v1", "abc"];
const RARE_VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1.5",
    "1e2",
    "nan",
    "inf",
    " 1",
    "1 ",
    "9223372036854775807",
    "0x10",
    "-9223372036854775808",
    "9223372036854775808",
    "170141183460469231731687303715884105727",
    "\x00\x01\x02",
    "a\r\nb",
    "1.7976931348623157e308",
    "012",
    "+1",
    "the same text again and again \
     and again, longer than an embedded string may be",
    "ohmytext",
    "mynewtext",
];
const INTEGER_EDGES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "",
    "abc",
    " 1",
    "1 ",
    "+1",
    "01",
    "-0",
    "0x1",
    "1.0",
    "1e2",
    "nan",
    "1\0",
];
const DOUBLE_EDGES: &[&str] = &[
    "0",
    "-0",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "+inf",
    "infinity",
    "Inf",
    "1e309",
    "-1e309",
    "1e308",
    "1e-320",
    "5e-324",
    "0x10",
    "0x1p3",
    "",
    "abc",
    " 1",
    "1 ",
    "1.",
    ".5",
    "+1",
    "1e",
    "1\0",
    "3.141592653589793238",
    "9007199254740993",
    "0.1",
    "1e21",
    "1e17",
    "123456789012345678",
    "1.5e300",
    "(1",
    "1,5",
];
const SCORES: &[&str] = &[
    "0", "1", "2", "3", "-1", "1.5", "2", "10", "100", "inf", "-inf",
];
const PATTERNS: &[&str] = &[
    "*", "a*", "*a*", "?", "[ab]*", "[^a]*", "[a-c]", "h?llo", "s*", "\\*", "[", "a[", "*1", "k*",
    "", "**", "[a-", "foo", "__key*",
];
const CHANNELS: &[&str] = &["ch1", "ch2", "news.a", "news.b"];
const CHANNEL_PATTERNS: &[&str] = &["ch*", "news.*", "*", "ch1", "news.[ab]"];
const GROUPS: &[&str] = &["g1", "g1", "g1", "g2", "g3"];
const CONSUMERS: &[&str] = &["c1", "c1", "c2", "c3"];
/// Stream ids that are small enough to meet each other.
const IDS: &[&str] = &[
    "0-1", "1-1", "1-2", "1-3", "2-1", "2-2", "3-0", "5-0", "5-5", "7-0", "8-1", "9-9",
];
const ID_EDGES: &[&str] = &[
    "0",
    "0-0",
    "1",
    "5",
    "-",
    "+",
    "$",
    "*",
    "1-*",
    "5-*",
    "(1-1",
    "(5",
    "18446744073709551615",
    "18446744073709551615-18446744073709551615",
    "18446744073709551616",
    "1-18446744073709551615",
    "1-18446744073709551616",
    "1-",
    "-1",
    "a",
    "",
    "1-1-1",
    "1-a",
    "(+",
    "(-",
    ">",
    "01-01",
    " 1-1",
    "(18446744073709551615-18446744073709551615",
    "99999999999999-0",
];
/// Far enough that nothing dies on the way.
const SECONDS: &[&str] = &["100", "1000", "5000", "100000"];
const MILLISECONDS: &[&str] = &["100000", "1000000", "5000000", "1234567"];
/// Lifetimes at the edges: none of them ends while a sequence is played.
const LIFETIME_EDGES: &[&str] = &[
    "0",
    "-1",
    "abc",
    "",
    "1.5",
    " 100",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "9223372036854775",
    "9223372036854776",
    "2147483648",
    "-2147483649",
    "18446744073709551616",
    "9223370000000000000",
];
/// In the years 2100 and later, and long past.
const UNIX_SECONDS: &[&str] = &["4102444800", "4102444801", "5000000000", "4200000000", "1"];
const UNIX_MS: &[&str] = &[
    "4102444800000",
    "4102444800001",
    "4102444800999",
    "5000000000123",
    "1000",
];
const ENCODINGS: &[&str] = &[
    "u1", "u2", "u4", "u8", "i8", "i16", "u16", "u32", "i32", "u63", "i64", "i5", "i1", "U8",
];
const ENCODING_EDGES: &[&str] = &["u64", "i65", "u0", "i0", "8", "", "u", "x8", "u8 ", "u-1"];

/// How the ends of a command's range are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeStyle {
    Rank,
    Score,
    Lex,
}

/// Draws words; holds what must agree between the words of a sequence.
#[derive(Debug)]
pub struct Values {
    pub random: Random,
    /// The greatest id that was offered to XADD: most of them grow.
    last_id: (u64, u64),
    /// Chance in a hundred that a value is at an edge or wrong.
    pub edge_percent: usize,
    /// Members of sorted sets have mostly one score, as ranges by their letters want it.
    pub has_flat_scores: bool,
}

impl Values {
    pub fn new(random: Random) -> Self {
        Self {
            random,
            last_id: (0, 0),
            edge_percent: 5,
            has_flat_scores: false,
        }
    }

    fn edge(&mut self) -> bool {
        self.random.percent(self.edge_percent)
    }

    /// A key, most often one that commands of this group use: types meet, but not too often.
    pub fn key(&mut self, group: &str) -> Word {
        let groups = [
            "string",
            "list",
            "set",
            "hash",
            "sorted-set",
            "stream",
            "array",
        ];
        let group = match group {
            "generic" => self.random.word(&groups),
            "transactions" => self.random.word(&groups[..4]),
            other => other,
        };
        let prefix = match group {
            "string" => "s",
            "bitmap" => "s",
            "hyperloglog" => "p",
            "list" => "l",
            "set" => "e",
            "hash" => "h",
            "sorted-set" => "z",
            "geo" => "o",
            "stream" => "x",
            "array" => "r",
            _ => "k",
        };
        match self.random.below(100) {
            0..=87 => format!("{prefix}{}", self.random.between(1, 3)).into(),
            88..=92 => format!("k{}", self.random.between(1, 2)).into(),
            93..=96 => {
                let other = self
                    .random
                    .word(&["s", "l", "e", "h", "z", "x", "o", "p", "r"]);
                format!("{other}{}", self.random.between(1, 3)).into()
            }
            97..=98 => "none".into(),
            _ => match self.edge() {
                true => self
                    .random
                    .word(&["", "a\0b", "\u{ff}", "key with blanks"])
                    .into(),
                false => "none".into(),
            },
        }
    }

    /// A member, element or field.
    pub fn member(&mut self) -> Word {
        match self.random.percent(85) {
            true => self.random.word(MEMBERS).into(),
            false => self.random.word(RARE_MEMBERS).into(),
        }
    }

    /// What is stored.
    pub fn value(&mut self) -> Word {
        match self.random.below(100) {
            0..=69 => self.random.word(VALUES).into(),
            70..=94 => self.random.word(RARE_VALUES).into(),
            _ => self
                .random
                .pick(&["x".repeat(100), "ab".repeat(3000), "7".repeat(45)])
                .as_str()
                .into(),
        }
    }

    /// An integer near zero, or an edge.
    pub fn small(&mut self, low: i64, high: i64) -> Word {
        match self.edge() {
            true => self.random.word(INTEGER_EDGES).into(),
            false => self.random.between(low, high).to_string().into(),
        }
    }

    /// An integer that is small in every case, because a big one is answered with as much.
    fn bounded(&mut self, low: i64, high: i64) -> Word {
        match self.edge() {
            true => self
                .random
                .word(&["", "abc", "1.5", "-1", " 1", "0x1", "9223372036854775808"])
                .into(),
            false => self.random.between(low, high).to_string().into(),
        }
    }

    pub fn score(&mut self) -> Word {
        if self.has_flat_scores && !self.random.percent(3) {
            return "0".into();
        }
        match self.edge() {
            true => self.random.word(DOUBLE_EDGES).into(),
            false => self.random.word(SCORES).into(),
        }
    }

    fn double(&mut self, from: &[&'static str]) -> Word {
        match self.edge() {
            true => self.random.word(DOUBLE_EDGES).into(),
            false => self.random.word(from).into(),
        }
    }

    fn or_edge(&mut self, from: &[&'static str], edges: &[&'static str]) -> Word {
        match self.edge() {
            true => self.random.word(edges).into(),
            false => self.random.word(from).into(),
        }
    }

    /// An end of a range of a sorted set.
    pub fn range_end(&mut self, style: RangeStyle, is_low: bool) -> Word {
        if self.random.percent(3) {
            let style = *self
                .random
                .pick(&[RangeStyle::Rank, RangeStyle::Score, RangeStyle::Lex]);
            return self.plain_range_end(style, is_low);
        }
        self.plain_range_end(style, is_low)
    }

    fn plain_range_end(&mut self, style: RangeStyle, is_low: bool) -> Word {
        match style {
            RangeStyle::Rank => self.small(-4, 6),
            RangeStyle::Score => {
                let whole = ["-inf", "+inf"][usize::from(!is_low)];
                let mark = ["", "", "", "("][self.random.below(4)];
                match self.random.below(10) {
                    0..=3 => whole.into(),
                    4 if self.edge() => self
                        .random
                        .word(&["(", "((1", "(nan", "(inf", "(-inf", "", "( 1", "1)", "[1"])
                        .into(),
                    _ => {
                        let score = self.score();
                        let text =
                            String::from_utf8_lossy(score.plain().unwrap_or_default()).into_owned();
                        format!("{mark}{text}").into()
                    }
                }
            }
            RangeStyle::Lex => {
                let whole = ["-", "+"][usize::from(!is_low)];
                match self.random.below(10) {
                    0..=3 => whole.into(),
                    4 if self.edge() => self
                        .random
                        .word(&["", "a", "[", "(", "+", "-", "++", "-a", "((a"])
                        .into(),
                    _ => {
                        let mark = self.random.word(&["[", "("]);
                        let member = self.random.word(MEMBERS);
                        format!("{mark}{member}").into()
                    }
                }
            }
        }
    }

    /// An id for a new stream entry: most are greater than those before.
    pub fn new_id(&mut self) -> Word {
        if self.edge() {
            return self.random.word(ID_EDGES).into();
        }
        match self.random.below(10) {
            0..=6 => {
                let (ms, number) = self.last_id;
                self.last_id = match self.random.percent(50) {
                    true => (ms.max(1), number + 1),
                    false => (ms + 1, self.random.below(3) as u64),
                };
                format!("{}-{}", self.last_id.0, self.last_id.1).into()
            }
            7 => self.random.word(IDS).into(),
            _ => "*".into(),
        }
    }

    /// An id that may stand for an entry.
    pub fn id(&mut self) -> Word {
        if self.edge() {
            return self.random.word(ID_EDGES).into();
        }
        match self.random.below(20) {
            0..=3 => Word::Reply(Seen::Id, self.random.below(8)),
            4..=9 => {
                let ms = self
                    .random
                    .below(usize::try_from(self.last_id.0).unwrap_or(0) + 2);
                let number = self.random.below(4);
                format!("{ms}-{number}").into()
            }
            _ => self.random.word(IDS).into(),
        }
    }

    /// An end of a range of ids.
    fn id_end(&mut self, is_low: bool) -> Word {
        match self.random.below(10) {
            0..=5 => ["-", "+"][usize::from(!is_low)].into(),
            6 => {
                let ms = self.random.below(6);
                format!("({ms}").into()
            }
            _ => self.id(),
        }
    }

    /// The timeout of a command that waits, and whether it is short enough to be waited for.
    fn timeout(&mut self) -> Word {
        match self.edge() {
            true => {
                let edges = [
                    "-1",
                    "-0.1",
                    "nan",
                    "inf",
                    "1e309",
                    "abc",
                    "",
                    "0x0",
                    "1e400",
                    "9223372036854775807",
                    "-0",
                ];
                self.random.word(&edges).into()
            }
            false => self
                .random
                .word(&["0", "0", "0", "1000", "1000", BRIEF_SECONDS])
                .into(),
        }
    }

    /// A word for an argument of this name. `number` is its repetition.
    pub fn word(&mut self, about: &About<'_>, name: &str) -> Word {
        match about.group {
            "stream" => self.stream_word(about, name),
            "sorted-set" | "geo" => self.sorted_word(about, name),
            "pubsub" => self.channel_word(name),
            "array" => self.array_word(about, name),
            _ => self.plain_word(about, name),
        }
    }

    fn stream_word(&mut self, about: &About<'_>, name: &str) -> Word {
        match name {
            "id" if about.command == "xadd" => self.new_id(),
            "id" if about.command == "xreadgroup" && self.random.percent(70) => ">".into(),
            "id" if about.command == "xread" => match self.random.below(4) {
                0 => "0".into(),
                1 => "$".into(),
                2 => "+".into(),
                _ => self.id(),
            },
            "id" | "lastid" | "last-id" | "max-deleted-id" | "stream-id" => self.id(),
            "start" if about.command == "xautoclaim" => match self.random.percent(60) {
                true => "0-0".into(),
                false => self.id(),
            },
            "start" => self.id_end(true),
            "end" => self.id_end(false),
            "group" => self.random.word(GROUPS).into(),
            "consumer" => self.random.word(CONSUMERS).into(),
            "pid" => self.random.word(&["p1", "p1", "p2", ""]).into(),
            "iid" => self.random.word(&["i1", "i2", "i3", ""]).into(),
            "threshold" => match self.random.percent(70) {
                true => self.small(0, 6),
                false => self.id(),
            },
            // What Redis refuses for memory depends on the machine: it sets 16 bytes aside each.
            "count" if about.command == "xautoclaim" => self.or_edge(
                &["1", "2", "3", "0", "5", "100"],
                &[
                    "9223372036854775807",
                    "-9223372036854775808",
                    "9223372036854775808",
                    "-1",
                    "abc",
                    "",
                    "1.5",
                ],
            ),
            "min-idle-time" => self.or_edge(&["0", "0", "0", "100000000"], INTEGER_EDGES),
            // Far from what passes while a sequence is played.
            "ms" => self.or_edge(&["0", "50000000", "500000000"], &["-1", "abc", "", "0"]),
            "unix-time-milliseconds" => self.or_edge(&["1000", "1", "0"], &["-1", "abc", ""]),
            "field" => self.random.word(&["f", "g", "name", ""]).into(),
            "value" => self.random.word(&["v", "1", "", "text"]).into(),
            "milliseconds" => {
                self.or_edge(&["0", "0", "100000", BRIEF_MS], &["-1", "abc", "", "1.5"])
            }
            "entriesread" | "entries-added" => self.small(-2, 10),
            _ => self.plain_word(about, name),
        }
    }

    fn sorted_word(&mut self, about: &About<'_>, name: &str) -> Word {
        match name {
            "min" | "start" => self.range_end(about.style, !about.is_reversed),
            "max" | "stop" => self.range_end(about.style, about.is_reversed),
            "score" => self.score(),
            "weight" => self.double(&["1", "2", "0", "-1", "0.5", "inf", "-inf"]),
            "increment" => self.score(),
            "longitude" => self.double(&[
                "0",
                "13.361389",
                "15.087269",
                "-122.4",
                "179.9",
                "-180",
                "180.1",
            ]),
            "latitude" => self.double(&[
                "0",
                "38.115556",
                "37.502669",
                "37.7",
                "85.05112878",
                "-85.06",
                "10",
            ]),
            "radius" | "width" | "height" => {
                self.double(&["0", "1", "100", "200", "5000", "20000000", "-1"])
            }
            _ => self.plain_word(about, name),
        }
    }

    /// A corner of a polygon: most of them lie around the places that are stored.
    pub fn vertex(&mut self) -> [Word; 2] {
        let longitudes = ["-10", "20", "30", "14", "0", "2", "-122.5", "179"];
        let latitudes = ["30", "60", "45", "37", "38.05", "52", "0", "-80"];
        match self.random.percent(6) {
            true => [self.double(&longitudes), self.double(&["37.7", "85.06"])],
            false => [self.double(&longitudes[..6]), self.double(&latitudes[..6])],
        }
    }

    fn channel_word(&mut self, name: &str) -> Word {
        match name {
            "channel" | "shardchannel" => self.random.word(CHANNELS).into(),
            "pattern" => self.random.word(CHANNEL_PATTERNS).into(),
            _ => self.value(),
        }
    }

    fn array_word(&mut self, about: &About<'_>, name: &str) -> Word {
        match name {
            "index" => match self.random.percent(90) {
                true => self.bounded(0, 12),
                false => self
                    .random
                    .word(&["100", "4095", "4096", "1000000", "18446744073709551614"])
                    .into(),
            },
            "start" | "end" if about.command == "argetrange" => self.bounded(0, 20),
            "start" => self.random.word(&["0", "0", "1", "5", "-", "20"]).into(),
            "end" => self
                .random
                .word(&["10", "20", "3", "+", "0", "1000000"])
                .into(),
            "size" => self.bounded(1, 8),
            "limit" | "count" => self.small(0, 8),
            _ => self.plain_word(about, name),
        }
    }

    fn plain_word(&mut self, about: &About<'_>, name: &str) -> Word {
        match name {
            "member" | "member1" | "member2" | "element" | "field" | "pivot" => self.member(),
            "value" if about.command == "setbit" => self.or_edge(&["0", "1", "1"], INTEGER_EDGES),
            "value" if about.command.starts_with("bitfield") => self.small(-300, 300),
            "bit" => self.or_edge(&["0", "1"], INTEGER_EDGES),
            "encoding" => self.or_edge(ENCODINGS, ENCODING_EDGES),
            "offset" if about.command.starts_with("bitfield") => match self.random.percent(25) {
                true => format!("#{}", self.random.below(20)).into(),
                false => self.bounded(0, 200),
            },
            "offset" if about.command == "setbit" || about.command == "setrange" => {
                self.bounded(0, 300)
            }
            "offset" if about.command == "getbit" => self.small(0, 300),
            "offset" => self.small(-1, 4),
            "count" if about.has_random_reply => self.or_edge(
                &["1", "2", "3", "-1", "-3", "0", "100", "-8"],
                &[
                    "9223372036854775807",
                    "-9223372036854775808",
                    "abc",
                    "",
                    "1.5",
                ],
            ),
            "count" | "num-matches" | "limit" | "maxcount" | "maxsize" => self.small(0, 5),
            "exactly" | "rank" | "len" | "min-match-len" => self.small(-3, 4),
            "index" if about.command == "select" => self.or_edge(&["0", "1"], INTEGER_EDGES),
            "index" => self.small(-5, 6),
            "index1" | "index2" | "db" | "destination-db" => {
                self.or_edge(&["0", "1", "2"], INTEGER_EDGES)
            }
            "start" | "end" | "stop" => self.small(-6, 10),
            "cursor" => self.or_edge(
                &["0"],
                &[
                    "1",
                    "5",
                    "abc",
                    "-1",
                    "18446744073709551615",
                    "18446744073709551616",
                    "",
                    " 0",
                    "00",
                ],
            ),
            "seconds" => self.or_edge(SECONDS, LIFETIME_EDGES),
            "ttl" => self.or_edge(MILLISECONDS, &["0", "-1", "abc", "", "1.5", " 100"]),
            "milliseconds" => self.or_edge(MILLISECONDS, LIFETIME_EDGES),
            "unix-time-seconds" => self.or_edge(UNIX_SECONDS, INTEGER_EDGES),
            "unix-time-milliseconds" => self.or_edge(UNIX_MS, INTEGER_EDGES),
            "increment" | "decrement" | "integer" => self.small(-20, 20),
            "float" => self.score(),
            "lowerbound" | "upperbound" => self.small(-30, 30),
            "timeout" => self.timeout(),
            "ifdeq-digest" | "ifdne-digest" => match self.random.percent(70) {
                true => Word::Reply(Seen::Digest, self.random.below(4)),
                false => self
                    .random
                    .word(&[
                        "",
                        "0000000000000000",
                        "abc",
                        "zzzzzzzzzzzzzzzz",
                        "ABCDEF0123456789",
                    ])
                    .into(),
            },
            "serialized-value" => match self.random.percent(85) {
                true => Word::Reply(Seen::Payload, self.random.below(8)),
                false => self
                    .random
                    .word(&["", "abc", "\0\0\0\0\0\0\0\0\0\0\0\0"])
                    .into(),
            },
            "type" => self
                .random
                .word(&[
                    "string", "list", "set", "zset", "hash", "stream", "STRING", "foo", "array",
                ])
                .into(),
            "by-pattern" => self
                .random
                .word(&["s*", "h*->a", "nosort", "h*->b", "*", "none*", "h*->"])
                .into(),
            "get-pattern" => self
                .random
                .word(&["#", "s*", "h*->a", "h*->b", "none", "*"])
                .into(),
            "pattern" => self.random.word(PATTERNS).into(),
            "protover" => self.random.word(&["2", "3", "3", "4", "abc"]).into(),
            "fieldset-name" => self.random.word(&["fs1", "fs1", "fs2"]).into(),
            "message" | "arg" => self.value(),
            _ => match about.kind_is_number {
                true => self.small(-3, 10),
                false => self.value(),
            },
        }
    }
}

/// Seconds after which a client that waits gives up while it is looked at.
pub const BRIEF_SECONDS: &str = "0.01";
/// The same in milliseconds.
pub const BRIEF_MS: &str = "11";

/// What a value's look depends on besides its name.
#[derive(Debug)]
pub struct About<'a> {
    pub command: &'a str,
    pub group: &'a str,
    pub style: RangeStyle,
    /// The greater end comes first.
    pub is_reversed: bool,
    pub has_random_reply: bool,
    pub kind_is_number: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_meet_and_stay_few() {
        let mut values = Values::new(Random::new(1, 1));
        let keys: std::collections::HashSet<Word> = (0..2000).map(|_| values.key("hash")).collect();
        assert!(
            keys.contains(&Word::from("h1")) && keys.len() < 50,
            "{}",
            keys.len()
        );
    }

    #[test]
    fn new_ids_mostly_grow() {
        let mut values = Values::new(Random::new(3, 1));
        values.edge_percent = 0;
        let ids: Vec<Word> = (0..100).map(|_| values.new_id()).collect();
        assert!(ids.contains(&Word::from("*")));
        assert!(values.last_id > (10, 0));
    }

    #[test]
    fn ends_follow_the_style() {
        let mut values = Values::new(Random::new(4, 1));
        values.edge_percent = 0;
        for _ in 0..200 {
            let end = values.plain_range_end(RangeStyle::Lex, true);
            let text = String::from_utf8_lossy(end.plain().expect("plain")).into_owned();
            assert!(text == "-" || text.starts_with(['[', '(']), "{text}");
        }
    }
}
