//! How much load a server, or a machine, carries within an objective.
//!
//! Over **rate**: an open loop is driven at rates between nothing and what a closed loop reaches,
//! halving the distance each time; latency counts from when requests were due. Over
//! **connections**: a closed loop with ever more of them. Over **instances**: the server's command
//! is started once, twice, three times, each loaded at once, until one of them breaks the
//! objective; the sum before that is the machine's capacity, as vendors of processors publish it.
//! Each search is repeated, and the spread is told.

mod rise;
mod slo;

use crate::instance::Instance;
use crate::interrupt;
use crate::load::{Address, Outcome, Pace, Target};
use crate::workload::{Length, Workload};
use clap::{Parser, ValueEnum};
pub use rise::{Rise, Step, cpu};
use serde_json::{Value, json};
pub use slo::Objective;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Steps of the search between two loads.
const STEPS: usize = 7;
/// A rate counts as reached with this part of it.
const REACHED: f64 = 0.99;
/// Connections are not raised beyond this.
const CONNECTIONS_MAX: usize = 20_000;

/// What is raised until the objective breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Over {
    /// Requests a second
    Rate,
    /// Connections of a closed loop
    Connections,
    /// Instances of --server
    Instances,
}

#[derive(Debug, Parser)]
#[command(
    bin_name = "tidemill-benchmark capacity",
    about = "The highest load that holds an objective",
    disable_help_flag = true,
    args_override_self = true
)]
struct Line {
    /// The objective: avg, max or a percentile, below a time
    #[arg(long, default_value = "p99<1ms")]
    slo: Objective,
    /// What is raised until it breaks
    #[arg(long, value_enum, default_value = "rate")]
    over: Over,
    /// The server's host
    #[arg(short = 'h', long, default_value = "127.0.0.1")]
    host: String,
    /// The server's port
    #[arg(short, long, default_value_t = 6379)]
    port: u16,
    /// The server as redis://user:password@host:port/db
    #[arg(short, long)]
    uri: Option<String>,
    /// Log in with this password
    #[arg(short = 'a', long)]
    password: Option<String>,
    /// A command that starts a server, with {port} and {dir}, instead of one that runs
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Instances at most
    #[arg(long, default_value_t = 64)]
    instances: usize,
    /// SETs to GETs
    #[arg(long, default_value = "1:10")]
    ratio: String,
    /// Requests of a connection that are in flight at once
    #[arg(short = 'P', long, default_value_t = 1)]
    pipeline: usize,
    /// Threads of the generator, for each instance
    #[arg(short, long, default_value_t = 1)]
    threads: usize,
    /// Connections of each thread
    #[arg(short, long, default_value_t = 50)]
    clients: usize,
    /// Keys; all are written before
    #[arg(short = 'r', long, default_value_t = 100_000)]
    keys: u64,
    /// Bytes of a value
    #[arg(short, long, default_value_t = 32)]
    data_size: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often the search is repeated
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Arrivals at random distances
    #[arg(long)]
    poisson: bool,
    /// Write the figures here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// This text
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// A load and whether the objective held under it.
#[derive(Debug, Clone)]
struct Probe {
    /// What was raised: requests a second, connections or instances.
    level: f64,
    /// Requests a second that were answered.
    rate: f64,
    /// The objective's figure in milliseconds.
    figure_ms: f64,
    holds: bool,
}

struct Search<'a> {
    line: &'a Line,
    workload: Workload,
    seed: u64,
    /// What to tell of the generator.
    note: Option<String>,
}

/// Runs it; `args` begins with the word that chose this face.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            let _ = error.print();
            return Ok(ExitCode::from(u8::from(error.use_stderr())));
        }
    };
    if !(line.seconds > 0.0 && line.seconds <= 86_400.0) || line.repeats == 0 {
        return Err("--seconds and --repeats are above 0".to_owned());
    }
    if line.over == Over::Instances && line.server.is_none() {
        return Err("instances need --server, a command with {port} and {dir}".to_owned());
    }
    interrupt::flag();
    let workload = Workload::mix(&line.ratio, line.keys, line.data_size)?;
    let mut search = Search {
        line: &line,
        workload: workload.over(line.threads, line.clients, line.pipeline),
        seed: 0,
        note: None,
    };
    say(&format!(
        "====== capacity within {} ======\n  SET:GET {}, pipeline {}, {} threads with {} \
         connections each, {} keys, values of {} bytes\n",
        line.slo, line.ratio, line.pipeline, line.threads, line.clients, line.keys, line.data_size
    ));
    let mut results = Vec::new();
    let mut all = Vec::new();
    for number in 1..=line.repeats {
        say(&format!("search {number}\n"));
        let probes = search.once()?;
        let best = probes
            .iter()
            .filter(|probe| probe.holds)
            .map(|probe| probe.rate);
        results.push(best.fold(0.0, f64::max));
        all.push(probes);
        if interrupt::is_set() {
            break;
        }
    }
    let mean = results.iter().sum::<f64>() / results.len() as f64;
    let lowest = results.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = results.iter().copied().fold(0.0, f64::max);
    say(&format!(
        "\ncapacity: {mean:.0} requests per second within {} (lowest {lowest:.0}, highest \
         {highest:.0} of {} searches)\n",
        line.slo,
        results.len()
    ));
    if let Some(note) = &search.note {
        eprintln!("note: {note}");
    }
    if let Some(path) = &line.json {
        let of_probe = |probe: &Probe| {
            json!({
                "level": probe.level,
                "requests_per_second": probe.rate,
                "figure_ms": probe.figure_ms,
                "holds": probe.holds,
            })
        };
        let searches = all
            .iter()
            .map(|probes| probes.iter().map(of_probe).collect::<Vec<Value>>());
        let text = json!({
            "objective": line.slo.to_string(),
            "capacity": mean,
            "lowest": lowest,
            "highest": highest,
            "searches": searches.collect::<Vec<_>>(),
        });
        let text = serde_json::to_string_pretty(&text).expect("plain values");
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(match interrupt::is_set() {
        true => ExitCode::from(130),
        false => ExitCode::SUCCESS,
    })
}

fn say(text: &str) {
    // That nobody reads it is no reason to stop.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

impl Search<'_> {
    fn once(&mut self) -> Result<Vec<Probe>, String> {
        if self.line.over == Over::Instances {
            return self.over_instances();
        }
        let started = match &self.line.server {
            Some(server) => Some(Instance::start(server)?),
            None => None,
        };
        let target = match &started {
            Some(instance) => instance.target(),
            None => self.target()?,
        };
        drop(target.client()?);
        self.fill(&target)?;
        match self.line.over {
            Over::Rate => self.over_rate(&target),
            _ => self.over_connections(&target),
        }
    }

    fn target(&self) -> Result<Target, String> {
        let mut target = Target::at(Address::Tcp(self.line.host.clone(), self.line.port));
        target.password.clone_from(&self.line.password);
        if let Some(uri) = &self.line.uri {
            target.apply_uri(uri)?;
        }
        Ok(target)
    }

    fn fill(&self, target: &Target) -> Result<(), String> {
        Workload::write_all(target, self.line.keys, self.line.data_size)
    }

    fn load(&mut self, target: &Target, pace: Pace) -> Result<Outcome, String> {
        self.seed += 1;
        let time = Length::Time(Duration::from_secs_f64(self.line.seconds));
        let outcome = self.workload.run(target, pace, time, self.seed)?;
        if let Some(note) = outcome.generator_note() {
            self.note = Some(note);
        }
        Ok(outcome)
    }

    fn probe(&self, level: f64, outcome: &Outcome, is_reached: bool) -> Probe {
        let latency = outcome.total().latency;
        let probe = Probe {
            level,
            rate: outcome.rate(),
            figure_ms: self.line.slo.measure(&latency) / 1000.0,
            holds: is_reached && self.line.slo.holds(&latency) && outcome.unanswered == 0,
        };
        self.tell(&probe);
        probe
    }

    fn tell(&self, probe: &Probe) {
        let what = match self.line.over {
            Over::Rate => "asked for",
            Over::Connections => "connections",
            Over::Instances => "instances",
        };
        let verdict = if probe.holds {
            "holds"
        } else {
            "does not hold"
        };
        say(&format!(
            "  {:>9.0} {what}: {:>9.0} requests per second, {} {:.3} ms, {verdict}\n",
            probe.level,
            probe.rate,
            self.line.slo.figure(),
            probe.figure_ms
        ));
    }

    /// Halves the distance between a rate that holds and one that does not.
    fn over_rate(&mut self, target: &Target) -> Result<Vec<Probe>, String> {
        let closed = self.load(target, Pace::Batches)?;
        let mut high = closed.rate() * 1.05;
        let mut low = 0.0;
        let mut probes = Vec::new();
        say(&format!(
            "  a closed loop reaches {:.0} requests per second\n",
            closed.rate()
        ));
        for _ in 0..STEPS {
            if interrupt::is_set() || high - low < 1.0 {
                break;
            }
            let rate = (low + high) / 2.0;
            let pace = match self.line.poisson {
                true => Pace::Poisson(rate),
                false => Pace::Fixed(rate),
            };
            let outcome = self.load(target, pace)?;
            let probe = self.probe(rate, &outcome, outcome.rate() >= rate * REACHED);
            match probe.holds {
                true => low = rate,
                false => high = rate,
            }
            probes.push(probe);
        }
        Ok(probes)
    }

    /// Doubles the connections until the objective breaks, then halves the distance.
    fn over_connections(&mut self, target: &Target) -> Result<Vec<Probe>, String> {
        let mut probes: Vec<Probe> = Vec::new();
        let (mut low, mut high) = (0, None);
        let mut clients = 1;
        for _ in 0..2 * STEPS {
            if interrupt::is_set() || clients * self.workload.threads > CONNECTIONS_MAX {
                break;
            }
            self.workload.clients = clients;
            let outcome = self.load(target, Pace::Batches)?;
            let level = (clients * self.workload.threads) as f64;
            let probe = self.probe(level, &outcome, true);
            match probe.holds {
                true => low = clients,
                false => high = Some(clients),
            }
            probes.push(probe);
            clients = match high {
                None => clients * 2,
                Some(high) if high - low > (low / 16).max(1) => (low + high) / 2,
                Some(_) => break,
            };
        }
        Ok(probes)
    }

    fn over_instances(&mut self) -> Result<Vec<Probe>, String> {
        let server = self.line.server.as_deref().unwrap_or_default();
        let time = Length::Time(Duration::from_secs_f64(self.line.seconds));
        let mut probes = Vec::new();
        self.seed += 1;
        let rise = Rise {
            server,
            instances_max: self.line.instances,
            objective: self.line.slo,
        };
        let steps = rise.run(
            &self.workload,
            time,
            self.seed,
            |target| self.fill(target),
            |step| {
                self.tell(&Probe {
                    level: step.instances as f64,
                    rate: step.rate,
                    figure_ms: step.figure_ms,
                    holds: step.holds,
                });
            },
        )?;
        for step in steps {
            self.note = step.note.or(self.note.take());
            probes.push(Probe {
                level: step.instances as f64,
                rate: step.rate,
                figure_ms: step.figure_ms,
                holds: step.holds,
            });
        }
        Ok(probes)
    }
}
