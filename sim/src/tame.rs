//! Random calls on keys whose contents are known: every element there is unique.
//!
//! Elements of lists, sets, sorted sets and streams are numbered (`e17`) and pushed once, so that
//! [`crate::ledger`] can say of each where it is and who popped it. Only commands that move, pop or
//! remove elements in ways the ledger understands touch these keys.

use crate::ledger::Ledger;
use crate::random::Random;

/// Databases that are used.
pub const DATABASES: usize = 4;
/// The keys: their names begin with their type.
pub const KEYS: [&str; 14] = [
    "m:l:0", "m:l:1", "m:l:2", "m:l:3", "m:l:4", "m:z:0", "m:z:1", "m:z:2", "m:s:0", "m:s:1",
    "m:x:0", "m:x:1", "m:x:2", "m:l:5",
];
const LISTS: [&str; 6] = ["m:l:0", "m:l:1", "m:l:2", "m:l:3", "m:l:4", "m:l:5"];
const SORTED: [&str; 3] = ["m:z:0", "m:z:1", "m:z:2"];
const SETS: [&str; 2] = ["m:s:0", "m:s:1"];
const STREAMS: [&str; 3] = ["m:x:0", "m:x:1", "m:x:2"];
/// Above so many elements more is popped than pushed.
const ELEMENTS_MAX: usize = 60;

/// Draws calls.
pub struct Tame<'r> {
    /// Where chance comes from.
    pub random: &'r mut Random,
    /// Where elements come from.
    pub ledger: &'r mut Ledger,
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

impl Tame<'_> {
    /// A random call.
    pub fn call(&mut self) -> Vec<Vec<u8>> {
        let text = match self.random.below(100) {
            0..55 => self.list(),
            55..68 => self.sorted(),
            68..74 => self.set(),
            74..92 => self.stream(),
            _ => self.any(),
        };
        words(&text)
    }

    fn some(&mut self, of: &[&str], most: u64) -> String {
        let count = self.random.between(1, most);
        let keys: Vec<&str> = (0..count).map(|_| self.random.one(of)).collect();
        keys.join(" ")
    }

    fn pushes(&mut self) -> bool {
        let chance = if self.ledger.held() > ELEMENTS_MAX {
            12
        } else {
            40
        };
        self.random.percent(chance)
    }

    fn element(&mut self) -> String {
        format!("e{}", self.ledger.fresh())
    }

    fn elements(&mut self) -> String {
        let most = if self.random.percent(5) { 40 } else { 4 };
        let count = self.random.between(1, most);
        let all: Vec<String> = (0..count).map(|_| self.element()).collect();
        all.join(" ")
    }

    fn timeout(&mut self) -> &'static str {
        self.random.one(&["0", "0.02", "0.3", "2", "60"])
    }

    fn end(&mut self) -> &'static str {
        self.random.one(&["LEFT", "RIGHT"])
    }

    fn list(&mut self) -> String {
        let key = self.random.one(&LISTS);
        let other = self.random.one(&LISTS);
        let (end, other_end) = (self.end(), self.end());
        if self.pushes() {
            let name = self
                .random
                .one(&["LPUSH", "RPUSH", "RPUSH", "LPUSHX", "RPUSHX"]);
            return format!("{name} {key} {}", self.elements());
        }
        let timeout = self.timeout();
        let count = self.random.between(1, 6);
        match self.random.below(16) {
            0 => format!("LPOP {key}"),
            1 => format!("RPOP {key} {count}"),
            2..5 => format!("BLPOP {} {timeout}", self.some(&LISTS, 3)),
            5 => format!("BRPOP {} {timeout}", self.some(&LISTS, 2)),
            6 => format!("LMPOP 2 {key} {other} {end} COUNT {count}"),
            7 => format!("BLMPOP {timeout} 2 {key} {other} {end} COUNT {count}"),
            8 => format!("LMOVE {key} {other} {end} {other_end}"),
            9 | 10 => format!("BLMOVE {key} {other} {end} {other_end} {timeout}"),
            11 => format!("BRPOPLPUSH {key} {other} {timeout}"),
            12 => format!("LMOVEM {key} {other} {end} {other_end} COUNT {count} BULK"),
            13 => format!("BLMOVEM {key} {other} {end} {other_end} {timeout} COUNT {count} OBO"),
            14 => format!("LTRIM {key} 0 {}", self.random.between(2, 30)),
            _ => format!("LSET {key} {} {}", self.random.below(4), self.element()),
        }
    }

    fn sorted(&mut self) -> String {
        let key = self.random.one(&SORTED);
        let other = self.random.one(&SORTED);
        if self.pushes() {
            let mut text = format!("ZADD {key}");
            for _ in 0..self.random.between(1, 4) {
                text += &format!(" {} {}", self.random.below(9), self.element());
            }
            return text;
        }
        let timeout = self.timeout();
        let end = self.random.one(&["MIN", "MAX"]);
        let count = self.random.between(1, 4);
        match self.random.below(7) {
            0 => format!("ZPOP{end} {key} {count}"),
            1..4 => format!("BZPOP{end} {} {timeout}", self.some(&SORTED, 3)),
            4 => format!("ZMPOP 2 {key} {other} {end} COUNT {count}"),
            5 => format!("BZMPOP {timeout} 2 {key} {other} {end} COUNT {count}"),
            _ => format!("ZREMRANGEBYRANK {key} 8 -1"),
        }
    }

    fn set(&mut self) -> String {
        let key = self.random.one(&SETS);
        let other = self.random.one(&SETS);
        if self.pushes() {
            return format!("SADD {key} {}", self.elements());
        }
        match self.random.below(3) {
            0 => format!("SPOP {key}"),
            1 => format!("SPOP {key} {}", self.random.between(1, 5)),
            _ => {
                let any = self.ledger.any(self.random);
                format!("SMOVE {key} {other} e{any}")
            }
        }
    }

    fn stream(&mut self) -> String {
        let key = self.random.one(&STREAMS);
        if self.random.percent(45) {
            let trim = match self.random.below(5) {
                0 => "MAXLEN 30 ",
                _ => "",
            };
            return format!("XADD {key} {trim}* e {}", self.element());
        }
        let consumer = self.random.below(3);
        let ms = self.random.one(&["0", "30", "700", "20000"]);
        let count = self.random.between(1, 4);
        let Some(group) = self.ledger.groups.of(key, self.random) else {
            return self.new_group(key);
        };
        match self.random.below(14) {
            0..3 => format!("XREADGROUP GROUP {group} c{consumer} COUNT {count} STREAMS {key} >"),
            3..7 => format!("XREADGROUP GROUP {group} c{consumer} BLOCK {ms} STREAMS {key} >"),
            7 => format!("XREADGROUP GROUP {group} c{consumer} NOACK BLOCK {ms} STREAMS {key} >"),
            8 | 9 => format!(
                "XREAD BLOCK {ms} STREAMS {key} {} $ $",
                self.random.one(&STREAMS)
            ),
            10 => format!("XAUTOCLAIM {key} {group} c{consumer} 0 0 COUNT {count}"),
            11 => format!("XGROUP DELCONSUMER {key} {group} c{consumer}"),
            12 if self.random.percent(30) => format!("XGROUP DESTROY {key} {group}"),
            12 => format!("XTRIM {key} MAXLEN {}", self.random.between(5, 40)),
            _ => self.new_group(key),
        }
    }

    fn new_group(&mut self, key: &str) -> String {
        let group = self.ledger.groups.fresh(key);
        format!("XGROUP CREATE {key} {group} 0 MKSTREAM")
    }

    /// What befalls keys of any type.
    fn any(&mut self) -> String {
        let key = self.random.one(&KEYS);
        let alike: Vec<&str> = KEYS.into_iter().filter(|k| k[..4] == key[..4]).collect();
        let other = self.random.one(&alike);
        match self.random.below(20) {
            0 => format!("DEL {key} {other}"),
            1 => format!("UNLINK {key}"),
            2 => format!("SET {key} text"),
            3..7 => format!("RENAME {key} {other}"),
            7 => format!("RENAMENX {key} {other}"),
            8..12 => format!("MOVE {key} {}", self.random.below(DATABASES)),
            12 | 13 => format!("EXPIRE {key} {}", self.random.between(1, 5)),
            14 | 15 => format!("PEXPIRE {key} {}", self.random.between(1, 400)),
            16 => format!("PERSIST {key}"),
            17 if self.random.percent(30) => "FLUSHALL".to_owned(),
            18 if self.random.percent(30) => "FLUSHDB".to_owned(),
            _ => {
                let dbs = (self.random.below(DATABASES), self.random.below(DATABASES));
                format!("SWAPDB {} {}", dbs.0, dbs.1)
            }
        }
    }
}
