//! What is sent, for the faces that compare and search: a test of redis-benchmark's, or a mix of
//! memtier's, on so many connections.

use crate::interrupt;
use crate::load::{Limit, Outcome, Pace, Plan, Source, Target, Template, Watch, run};
use crate::memtier::mix::{Kind, Mix, kinds};
use crate::memtier::options::Line;
use crate::redis::rows;
use clap::Parser;
use std::time::Duration;

/// The requests of a workload.
#[derive(Debug, Clone)]
enum Traffic {
    /// A test by its name: one request, with keys drawn below so many.
    Test(Vec<u8>, u64),
    /// SETs and GETs.
    Mix(Box<Line>, Vec<Kind>),
}

/// Requests and the connections that they go over.
#[derive(Debug, Clone)]
pub struct Workload {
    traffic: Traffic,
    /// Threads of the generator.
    pub threads: usize,
    /// Connections of each thread.
    pub clients: usize,
    /// Requests in flight on a connection.
    pub pipeline: usize,
}

/// How long a run is.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// So many requests in all.
    Requests(u64),
    /// So many on each connection.
    Each(u64),
    /// So long.
    Time(Duration),
}

impl Workload {
    /// A test of redis-benchmark's, with keys below `keys` and values of so many bytes.
    pub fn test(name: &str, keys: u64, data_bytes: usize) -> Result<Self, String> {
        let request = rows::request_of(name, data_bytes)
            .ok_or_else(|| format!("{name}: no such test; -t of the main face names them"))?;
        Ok(Self::of(Traffic::Test(request, keys.max(1))))
    }

    /// SETs to GETs in this ratio, with random keys below `keys`.
    pub fn mix(ratio: &str, keys: u64, data_bytes: usize) -> Result<Self, String> {
        Self::memtier(&[
            "--ratio",
            ratio,
            "--key-maximum",
            &keys.max(1).to_string(),
            "--key-minimum",
            "1",
            "--data-size",
            &data_bytes.to_string(),
        ])
    }

    /// Writes every key below `keys`, so that a mix finds them all.
    pub fn write_all(target: &Target, keys: u64, data_bytes: usize) -> Result<(), String> {
        /// The keys are cut into as many parts; the last has some more.
        const CLIENTS: usize = 10;
        let keys = keys.max(1);
        let writes = Self::memtier(&[
            "--ratio",
            "1:0",
            "--key-pattern",
            "P:P",
            "--key-maximum",
            &keys.to_string(),
            "--key-minimum",
            "1",
            "--data-size",
            &data_bytes.to_string(),
        ])?;
        let each = Length::Each(keys / CLIENTS as u64 + CLIENTS as u64);
        writes
            .over(1, CLIENTS, 100)
            .run(target, Pace::Window, each, 1)
            .map(drop)
    }

    fn memtier(options: &[&str]) -> Result<Self, String> {
        let words = ["memtier"].iter().chain(options);
        let line = Line::try_parse_from(words).map_err(|error| {
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        })?;
        let (_, patterns) = line.checked()?;
        let kinds = kinds(&line, patterns)?;
        Ok(Self::of(Traffic::Mix(Box::new(line), kinds)))
    }

    fn of(traffic: Traffic) -> Self {
        Self {
            traffic,
            threads: 1,
            clients: 50,
            pipeline: 1,
        }
    }

    /// The same on other connections.
    pub fn over(mut self, threads: usize, clients: usize, pipeline: usize) -> Self {
        self.threads = threads.max(1);
        self.clients = clients.max(1);
        self.pipeline = pipeline.max(1);
        self
    }

    /// Runs it on several servers at once, each with its own threads and connections.
    pub fn run_on_all(
        &self,
        targets: &[Target],
        pace: Pace,
        length: Length,
        seed: u64,
    ) -> Result<Vec<Outcome>, String> {
        std::thread::scope(|scope| {
            let runs: Vec<_> = targets
                .iter()
                .map(|target| scope.spawn(move || self.run(target, pace, length, seed)))
                .collect();
            let joined = runs.into_iter().map(|run| run.join());
            joined
                .map(|run| run.expect("a thread of the load panicked"))
                .collect()
        })
    }

    /// Runs it once.
    pub fn run(
        &self,
        target: &Target,
        pace: Pace,
        length: Length,
        seed: u64,
    ) -> Result<Outcome, String> {
        let connections = self.threads * self.clients;
        let limit = match length {
            Length::Requests(requests) => Limit::Total(requests),
            Length::Each(requests) => Limit::PerConnection(requests),
            Length::Time(_) => Limit::None,
        };
        let mut plan = Plan::new(target.clone(), connections, self.pipeline, limit);
        plan.threads = self.threads;
        plan.pace = pace;
        if let Length::Time(time) = length {
            plan.duration = Some(time);
        }
        plan.stops_at_error = true;
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for number in 0..self.threads {
            let own = seed.wrapping_add(number as u64);
            match &self.traffic {
                Traffic::Test(request, keys) => {
                    sources.push(Box::new(Template::new(request.clone(), Some(*keys), own)));
                }
                Traffic::Mix(line, kinds) => {
                    plan.classes = kinds.len();
                    let mut line = line.clone();
                    line.threads = self.threads;
                    line.clients = self.clients;
                    line.distinct_client_seed = true;
                    sources.push(Box::new(Mix::new(&line, kinds, number, seed)?));
                }
            }
        }
        let outcome = run(&plan, sources, &Watch::default(), interrupt::flag());
        outcome.map_err(|failure| failure.why)
    }
}
