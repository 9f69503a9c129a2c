//! One more instance of a server each time, all loaded at once, until the objective breaks.

use super::Objective;
use crate::instance::Instance;
use crate::interrupt;
use crate::load::{Outcome, Pace, Target, histogram};
use crate::workload::{Length, Workload};
use hdrhistogram::Histogram;
use std::time::Duration;

/// A search over instances.
#[derive(Debug, Clone, Copy)]
pub struct Rise<'a> {
    /// The command that starts one.
    pub server: &'a str,
    pub instances_max: usize,
    pub objective: Objective,
}

/// So many instances at once.
#[derive(Debug, Clone)]
pub struct Step {
    pub instances: usize,
    /// Requests a second of all.
    pub rate: f64,
    /// The objective's figure of the worst of them, in milliseconds.
    pub figure_ms: f64,
    pub holds: bool,
    /// Latencies of all.
    pub latency: Histogram<u64>,
    /// Processor time of all a request, in microseconds.
    pub server_us: Option<f64>,
    /// What to tell of the generator.
    pub note: Option<String>,
}

impl Rise<'_> {
    /// Every step, the one that broke last; `prepare` fills a new instance, `tell` sees each step.
    pub fn run(
        &self,
        workload: &Workload,
        time: Length,
        seed: u64,
        prepare: impl Fn(&Target) -> Result<(), String>,
        tell: impl Fn(&Step),
    ) -> Result<Vec<Step>, String> {
        let mut instances: Vec<Instance> = Vec::new();
        let mut steps = Vec::new();
        for count in 1..=self.instances_max {
            if interrupt::is_set() {
                break;
            }
            let instance = Instance::start(self.server)?;
            prepare(&instance.target())?;
            instances.push(instance);
            let targets: Vec<Target> = instances.iter().map(Instance::target).collect();
            let before = cpu(&instances);
            let outcomes = workload.run_on_all(&targets, Pace::Batches, time, seed)?;
            let used = cpu(&instances)
                .zip(before)
                .map(|(after, before)| after - before);
            let step = self.sum(count, &outcomes, used);
            tell(&step);
            let is_last = !step.holds;
            steps.push(step);
            if is_last {
                break;
            }
        }
        Ok(steps)
    }

    fn sum(&self, instances: usize, outcomes: &[Outcome], cpu: Option<Duration>) -> Step {
        let mut sum = Step {
            instances,
            rate: 0.0,
            figure_ms: 0.0,
            holds: true,
            latency: histogram(),
            server_us: None,
            note: None,
        };
        let mut count = 0;
        for outcome in outcomes {
            let latency = outcome.total().latency;
            sum.rate += outcome.rate();
            count += outcome.count();
            // The worst of them decides.
            sum.figure_ms = sum.figure_ms.max(self.objective.measure(&latency) / 1000.0);
            sum.holds &= self.objective.holds(&latency) && outcome.unanswered == 0;
            sum.latency
                .add(&latency)
                .expect("the same bounds everywhere");
            sum.note = sum.note.or(outcome.generator_note());
        }
        sum.server_us = cpu
            .filter(|_| count > 0)
            .map(|cpu| cpu.as_secs_f64() * 1e6 / count as f64);
        sum
    }
}

/// Processor time of all instances so far.
pub fn cpu(instances: &[Instance]) -> Option<Duration> {
    instances.iter().map(Instance::cpu).sum()
}
