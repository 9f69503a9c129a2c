//! The latency monitor: events that took longer than `latency-monitor-threshold`.
//!
//! For each kind of event the worst duration of each second in which one happened is kept, the
//! latest [`SAMPLES_MAX`] of them.

use std::collections::{BTreeMap, VecDeque};

/// Samples kept of an event.
const SAMPLES_MAX: usize = 160;

/// All events.
#[derive(Debug, Default)]
pub struct Latency(BTreeMap<&'static str, Series>);

/// What is kept of one event.
#[derive(Debug, Default)]
pub struct Series {
    /// Unix seconds and the worst milliseconds in that second, the oldest first.
    pub samples: VecDeque<(u64, u64)>,
    /// The worst of all time.
    pub worst_ms: u64,
}

impl Latency {
    /// Notes that `event` took `took_ms` at `now_s`.
    pub fn note(&mut self, event: &'static str, now_s: u64, took_ms: u64) {
        let series = self.0.entry(event).or_default();
        series.worst_ms = series.worst_ms.max(took_ms);
        if let Some((at, ms)) = series.samples.back_mut()
            && *at == now_s
        {
            *ms = took_ms.max(*ms);
            return;
        }
        if series.samples.len() == SAMPLES_MAX {
            series.samples.pop_front();
        }
        series.samples.push_back((now_s, took_ms));
    }

    /// The events that happened, by name.
    pub fn events(&self) -> impl ExactSizeIterator<Item = (&'static str, &Series)> {
        self.0.iter().map(|(name, series)| (*name, series))
    }

    /// What is kept of an event; its name in any case.
    pub fn event(&self, name: &[u8]) -> Option<&Series> {
        let mut events = self.events();
        let found = events.find(|(event, _)| event.as_bytes().eq_ignore_ascii_case(name));
        found.map(|(_, series)| series)
    }

    /// Forgets one event, or all; returns how many were there.
    pub fn reset(&mut self, name: Option<&[u8]>) -> usize {
        let before = self.0.len();
        match name {
            None => self.0.clear(),
            Some(name) => self
                .0
                .retain(|event, _| !event.as_bytes().eq_ignore_ascii_case(name)),
        }
        before - self.0.len()
    }
}

impl Series {
    /// The latest samples as columns of text, the newest at the right.
    pub fn graph(&self) -> String {
        const ROWS: u64 = 4;
        const MARKS: [char; 3] = ['_', 'o', '#'];
        let ms = || self.samples.iter().map(|(_, ms)| *ms);
        let (low, high) = (ms().min().unwrap_or(0), ms().max().unwrap_or(0));
        let steps = ROWS * MARKS.len() as u64;
        let span = (high - low).max(1);
        let mut text = String::new();
        for row in (0..ROWS).rev() {
            let mut line = String::new();
            for value in ms() {
                let height = (value - low) * (steps - 1) / span;
                let within = height.checked_sub(row * MARKS.len() as u64);
                line.push(match within.and_then(|step| usize::try_from(step).ok()) {
                    None => ' ',
                    Some(step) if step < MARKS.len() => MARKS[step],
                    Some(_) => '|',
                });
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_worst() {
        let mut latency = Latency::default();
        latency.note("command", 7, 3);
        latency.note("command", 7, 9);
        latency.note("command", 7, 5);
        latency.note("command", 8, 1);
        let series = latency.event(b"COMMAND").expect("it happened");
        assert_eq!(Vec::from(series.samples.clone()), [(7, 9), (8, 1)]);
        assert_eq!(series.worst_ms, 9);
        assert_eq!(latency.reset(Some(b"other")), 0);
        assert_eq!(latency.reset(None), 1);
    }

    #[test]
    fn old_samples_go() {
        let mut latency = Latency::default();
        (0..1000).for_each(|second| latency.note("command", second, second));
        let series = latency.event(b"command").expect("it happened");
        assert_eq!(series.samples.len(), SAMPLES_MAX);
        assert_eq!(series.samples.back(), Some(&(999, 999)));
        assert_eq!(series.graph().lines().count(), 4);
    }
}
