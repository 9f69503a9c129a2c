//! Requests that are bytes made before the run, of which only the random parts change.
//!
//! A connection keeps as many copies of the command as its pipeline is deep. Before a batch is sent
//! the twelve digits of each random part are overwritten in place; without random parts nothing is
//! touched at all.

use super::batch::{Batch, Source};
use super::random::Random;

/// What stands for a random number in an argument.
pub const PLACEHOLDER: &[u8] = b"__rand_int__";

/// Two digits a number, so that twelve digits are six copies.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// One command as bytes, and where its random parts are.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    /// Offsets of twelve digits each.
    holes: Vec<usize>,
    /// Numbers drawn are below this; 0 leaves the placeholders as they are.
    range: u64,
    random: Random,
}

impl Template {
    /// Bytes as they go over the wire. With a `range`, every [`PLACEHOLDER`] in them becomes twelve
    /// digits of a number below it, another one each time.
    pub fn new(bytes: Vec<u8>, range: Option<u64>, seed: u64) -> Self {
        let holes = match range {
            None => Vec::new(),
            Some(_) => {
                let mut holes = Vec::new();
                let mut at = 0;
                while at + PLACEHOLDER.len() <= bytes.len() {
                    if bytes[at..].starts_with(PLACEHOLDER) {
                        holes.push(at);
                        at += PLACEHOLDER.len();
                    } else {
                        at += 1;
                    }
                }
                holes
            }
        };
        Self {
            bytes,
            holes,
            range: range.unwrap_or(0),
            random: Random::new(seed),
        }
    }
}

/// Writes the last twelve decimal digits of a number.
fn write_digits(number: u64, out: &mut [u8]) {
    let mut rest = number;
    for pair in out.chunks_exact_mut(2).rev() {
        let two = usize::try_from(rest % 100).expect("below a hundred");
        pair.copy_from_slice(&PAIRS[two]);
        rest /= 100;
    }
}

impl Source for Template {
    fn fill(&mut self, _connection: usize, count: usize, batch: &mut Batch) {
        let size = self.bytes.len();
        while batch.bytes.len() < size * count {
            batch.bytes.extend_from_slice(&self.bytes);
        }
        batch.used = size * count;
        if !self.holes.is_empty() {
            for copy in batch.bytes.chunks_exact_mut(size).take(count) {
                for &hole in &self.holes {
                    let number = self.random.below(self.range);
                    write_digits(number, &mut copy[hole..hole + PLACEHOLDER.len()]);
                }
            }
        }
        batch.push(0, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_random_digits_change() {
        let mut bytes = Vec::new();
        client::encode(&["GET", "k:__rand_int__"], &mut bytes);
        let mut template = Template::new(bytes.clone(), Some(1000), 1);
        let mut batch = Batch::default();
        template.fill(0, 2, &mut batch);
        let first = String::from_utf8(batch.bytes[..batch.used].to_vec()).expect("text");
        assert!(
            first.starts_with("*2\r\n$3\r\nGET\r\n$14\r\nk:000000000"),
            "{first}"
        );
        batch.groups.clear();
        template.fill(0, 1, &mut batch);
        assert_eq!(batch.used * 2, first.len());
        assert_eq!(batch.groups, [(0, 1)]);
        let mut plain = Template::new(bytes, None, 1);
        plain.fill(0, 1, &mut batch);
        let text = String::from_utf8_lossy(&batch.bytes[..batch.used]).into_owned();
        assert!(text.contains("k:"), "{text}");
    }

    #[test]
    fn digits_are_the_number() {
        let mut out = *b"xxxxxxxxxxxx";
        write_digits(1_234_567, &mut out);
        assert_eq!(&out, b"000001234567");
    }
}
