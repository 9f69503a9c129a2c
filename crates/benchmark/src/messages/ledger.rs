//! Who has received what: loss, duplicates and order, by sequence numbers.
//!
//! Every message carries its producer, its number and the time at which it was due. A reader, which
//! is a group of consumers that share the messages or one subscriber that gets them all, has one
//! [`Ledger`]; each consumer writes into it what it has received.

use crate::load::histogram;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// What a message carries, as `producer:number:nanoseconds:` and padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub producer: usize,
    pub number: usize,
    /// When it was due, in nanoseconds of the run.
    pub due_ns: u64,
}

impl Stamp {
    /// The message, at least of its size.
    pub fn encode(self, bytes: usize) -> Vec<u8> {
        let mut text = format!("{}:{}:{}:", self.producer, self.number, self.due_ns).into_bytes();
        if text.len() < bytes {
            text.resize(bytes, b'x');
        }
        text
    }

    /// Reads a message; `None` when it is not one of ours.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.split(|&byte| byte == b':');
        let mut number = || {
            std::str::from_utf8(fields.next()?)
                .ok()?
                .parse::<u64>()
                .ok()
        };
        let (producer, sequence, due_ns) = (number()?, number()?, number()?);
        Some(Self {
            producer: usize::try_from(producer).ok()?,
            number: usize::try_from(sequence).ok()?,
            due_ns,
        })
    }
}

/// What one reader has received.
#[derive(Debug)]
pub struct Ledger {
    /// How often each message came, by producer and number.
    seen: Vec<Vec<u8>>,
    /// Different messages received.
    pub received: u64,
    /// Messages received again.
    pub duplicates: u64,
    /// Messages that a consumer received after a later one of the same producer.
    pub out_of_order: u64,
    /// What was no message of this run.
    pub strange: u64,
    /// From when a message was due to its first receipt, in microseconds.
    pub latency: Histogram<u64>,
    /// When the last message came.
    pub last: Instant,
}

impl Ledger {
    /// Nothing yet, of so many messages from each producer.
    pub fn new(messages: &[usize]) -> Self {
        Self {
            seen: messages.iter().map(|&count| vec![0; count]).collect(),
            received: 0,
            duplicates: 0,
            out_of_order: 0,
            strange: 0,
            latency: histogram(),
            last: Instant::now(),
        }
    }

    /// A consumer, which remembers in `newest` what it had last from each producer, has received
    /// this `now` into the run. `true` the first time.
    pub fn receive(&mut self, bytes: &[u8], now: Duration, newest: &mut [Option<usize>]) -> bool {
        self.last = Instant::now();
        let stamp = Stamp::decode(bytes);
        let place =
            stamp.and_then(|stamp| self.seen.get_mut(stamp.producer)?.get_mut(stamp.number));
        let (Some(stamp), Some(times)) = (stamp, place) else {
            self.strange += 1;
            return false;
        };
        *times = times.saturating_add(1);
        let is_first = *times == 1;
        let before = &mut newest[stamp.producer];
        // What is delivered again comes late by its nature: it is a duplicate, not a disorder.
        self.out_of_order +=
            u64::from(is_first && before.is_some_and(|before| before > stamp.number));
        *before = (*before).max(Some(stamp.number));
        if is_first {
            self.received += 1;
            let due = Duration::from_nanos(stamp.due_ns);
            let us = u64::try_from(now.saturating_sub(due).as_micros()).unwrap_or(u64::MAX);
            self.latency.saturating_record(us);
        } else {
            self.duplicates += 1;
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_tells_duplicates_disorder_and_strangers() {
        let mut ledger = Ledger::new(&[3, 1]);
        let mut newest = [None; 2];
        let message = |producer, number| {
            let stamp = Stamp {
                producer,
                number,
                due_ns: 1_000,
            };
            assert_eq!(Stamp::decode(&stamp.encode(40)), Some(stamp));
            stamp.encode(40)
        };
        let now = Duration::from_micros(501);
        for (producer, number) in [(0, 0), (0, 2), (0, 1), (0, 2), (1, 0)] {
            ledger.receive(&message(producer, number), now, &mut newest);
        }
        ledger.receive(b"something else", now, &mut newest);
        ledger.receive(&message(0, 3), now, &mut newest);
        let told = (
            ledger.received,
            ledger.duplicates,
            ledger.out_of_order,
            ledger.strange,
        );
        assert_eq!(told, (4, 1, 1, 2));
        assert_eq!(ledger.latency.max(), 500);
    }
}
