//! Rates: what INFO calls `instantaneous_*`.
//!
//! One thread's tick notes the totals ten times a second; a rate is what was counted between the
//! oldest and the newest note, over the time between them.

use std::collections::VecDeque;

use crate::shared::Shared;

/// Microseconds between notes.
const EVERY_US: u64 = 100_000;
/// Notes kept: a second and a half.
const KEPT: usize = 16;

/// Totals at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    at_us: u64,
    commands: u64,
    input_bytes: u64,
    output_bytes: u64,
    cycles: u64,
    busy_ticks: u64,
    busy_cycles: u64,
}

/// The notes.
#[derive(Debug, Default)]
pub struct Samples(VecDeque<Totals>);

/// What happens a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Commands.
    pub commands: u64,
    /// Bytes read.
    pub input_bytes: f64,
    /// Bytes sent.
    pub output_bytes: f64,
    /// Turns of the event loops.
    pub cycles: u64,
    /// Microseconds that a turn takes in which something came.
    pub cycle_us: u64,
}

impl Samples {
    /// Notes the totals, where it is time.
    pub fn note(&mut self, shared: &Shared, now_us: u64) {
        if self
            .0
            .back()
            .is_some_and(|last| now_us < last.at_us + EVERY_US)
        {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        // A look at memory now and then, so that its peak is known.
        shared.used_bytes();
        self.0.push_back(Totals {
            at_us: now_us,
            commands: shared.commands_processed(),
            input_bytes: shared.network_sum(|network| &network.input_bytes),
            output_bytes: shared.network_sum(|network| &network.output_bytes),
            cycles: shared.network_sum(|network| &network.cycles),
            busy_ticks: shared.network_sum(|network| &network.busy_ticks),
            busy_cycles: shared.network_sum(|network| &network.busy_cycles),
        });
    }

    /// Forgets all notes: the totals start again at 0.
    pub fn reset(&mut self) {
        self.0.clear();
    }

    /// The rates between the oldest and the newest note.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    #[allow(clippy::cast_sign_loss)] // Counts of a second and a half, none below zero.
    pub fn rates(&self, ticks_per_us: f64) -> Rates {
        let (Some(old), Some(new)) = (self.0.front(), self.0.back()) else {
            return Rates::default();
        };
        let seconds = new.at_us.saturating_sub(old.at_us) as f64 / 1e6;
        if seconds <= 0.0 {
            return Rates::default();
        }
        let rate =
            |field: fn(&Totals) -> u64| field(new).saturating_sub(field(old)) as f64 / seconds;
        let cycles = rate(|totals| totals.cycles);
        Rates {
            commands: rate(|totals| totals.commands) as u64,
            input_bytes: rate(|totals| totals.input_bytes),
            output_bytes: rate(|totals| totals.output_bytes),
            cycles: cycles as u64,
            cycle_us: (rate(|totals| totals.busy_ticks)
                / rate(|totals| totals.busy_cycles).max(1.0)
                / ticks_per_us) as u64,
        }
    }
}
