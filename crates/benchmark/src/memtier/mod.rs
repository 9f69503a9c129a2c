//! The face of `memtier_benchmark`: its options, its mixes, its table and its JSON.
//!
//! Connections keep their pipelines full, each sends an exact number of requests or for an exact
//! time, and keys and values are drawn by its patterns. Latency is from sending to receiving, also
//! where a rate is given: that is what its figures mean everywhere. `--rate` of the main face is an
//! open loop that counts from when a request was due.

mod json;
mod keys;
pub mod mix;
pub mod options;
mod table;

use crate::interrupt;
use crate::load::{Class, Limit, Outcome, Pace, Plan, Source, Watch, run};
use clap::Parser;
use hdrhistogram::Histogram;
use mix::{Kind, Mix};
use options::Line;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Requests of a connection when nothing is said.
const REQUESTS: u64 = 10_000;

/// One run's figures.
#[derive(Debug, Clone)]
pub struct Run {
    outcome: Outcome,
    started_ms: u64,
    /// SETs and GETs, not commands of the user's.
    is_standard: bool,
    /// Times are those of the service, because the load had a rate.
    has_rate: bool,
}

impl Run {
    fn took(&self) -> Duration {
        self.outcome.took
    }

    fn times<'a>(&self, class: &'a Class) -> &'a Histogram<u64> {
        match self.has_rate {
            true => &class.service,
            false => &class.latency,
        }
    }

    /// All kinds in one; hits and misses of those only that have them.
    fn total(&self, kinds: &[Kind]) -> Class {
        let mut total = self.outcome.total();
        let with_hits = || {
            kinds
                .iter()
                .zip(&self.outcome.classes)
                .filter(|(kind, _)| kind.has_hits)
        };
        total.hits = with_hits().map(|(_, class)| class.hits).sum();
        total.misses = with_hits().map(|(_, class)| class.misses).sum();
        total
    }
}

/// Runs it; `args` begins with the word that chose this face.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            let _ = error.print();
            return Ok(match error.use_stderr() {
                true => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            });
        }
    };
    let (target, patterns) = line.checked()?;
    let kinds = mix::kinds(&line, patterns)?;
    interrupt::flag();
    drop(target.client()?);
    let configuration = json::configuration(&line);
    if let (true, Value::Object(map)) = (line.show_config, &configuration) {
        for (name, value) in map {
            eprintln!("{name} = {value}");
        }
    }
    let mut plan = Plan::new(
        target,
        line.threads * line.clients,
        line.pipeline,
        match line.test_time {
            Some(_) => Limit::None,
            None => Limit::PerConnection(line.requests_per_connection()),
        },
    );
    plan.threads = line.threads;
    plan.duration = line.test_time.map(Duration::from_secs);
    plan.pace = match line.rate_limiting {
        Some(rate) => Pace::Fixed(f64::from(rate) * (line.threads * line.clients) as f64),
        None => Pace::Window,
    };
    plan.reconnect_after = line.reconnect_interval;
    plan.survives = line.reconnect_on_error;
    plan.classes = kinds.len();
    plan.series = line.json_out_file.is_some();
    let mut runs = Vec::new();
    for number in 1..=line.run_count {
        eprintln!("[RUN #{number}] Launching threads now...");
        runs.push(one(&line, &plan, &kinds, number)?);
        if interrupt::is_set() {
            break;
        }
    }
    let percentiles = &line.print_percentiles;
    let named = named_runs(&line, &kinds, &runs);
    let mut text = format!(
        "{:<9} Threads\n{:<9} Connections per thread\n{}\n",
        line.threads,
        line.clients,
        match line.test_time {
            Some(seconds) => format!("{seconds:<9} Seconds"),
            None => format!("{:<9} Requests per client", line.requests_per_connection()),
        }
    );
    for (title, run) in &named {
        text += &table::render(title, run, &kinds, percentiles);
        if !line.hide_histogram {
            text += &table::distributions(run, &kinds);
        }
    }
    match &line.out_file {
        Some(path) => write_file(path, text.as_bytes())?,
        None => {
            // That nobody reads it is no reason to fail after the work is done.
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
    }
    if let Some(path) = &line.json_out_file {
        let mut map = Map::new();
        map.insert("configuration".to_owned(), configuration);
        map.insert("run information".to_owned(), json::information(&line));
        for (title, run) in &named {
            map.insert(title.clone(), json::stats(run, &kinds, percentiles));
        }
        let text = serde_json::to_string_pretty(&Value::Object(map)).expect("plain values");
        write_file(path, text.as_bytes())?;
    }
    notes(&runs);
    Ok(match interrupt::is_set() {
        true => ExitCode::from(130),
        false => ExitCode::SUCCESS,
    })
}

/// What a reader of the figures must know, on standard error.
fn notes(runs: &[Run]) {
    let errors: u64 = runs.iter().map(|run| run.outcome.total().errors).sum();
    if errors > 0 {
        let first = runs.iter().find_map(|run| run.outcome.error.as_deref());
        eprintln!(
            "note: {errors} replies were errors; the first: {}",
            first.unwrap_or_default()
        );
    }
    if let Some(note) = runs.iter().find_map(|run| run.outcome.generator_note()) {
        eprintln!("note: {note}");
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn one(line: &Line, plan: &Plan, kinds: &[Kind], number: u32) -> Result<Run, String> {
    let started_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0));
    let seed = match line.randomize {
        true => started_ms,
        false => u64::from(number),
    };
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for thread in 0..line.threads {
        sources.push(Box::new(Mix::new(line, kinds, thread, seed)?));
    }
    let outcome = run(plan, sources, &Watch::default(), interrupt::flag());
    let run = Run {
        outcome: outcome.map_err(|failure| failure.why)?,
        started_ms,
        is_standard: line.command.is_empty(),
        has_rate: plan.pace.is_open(),
    };
    if let Some(prefix) = &line.hdr_file_prefix {
        let total = run.total(kinds);
        write_percentiles(
            &format!("{prefix}_FULL_RUN_{number}.txt"),
            run.times(&total),
        )?;
        for (kind, class) in kinds.iter().zip(&run.outcome.classes) {
            let path = format!("{prefix}_{}_command_run_{number}.txt", kind.name);
            write_percentiles(&path, run.times(class))?;
        }
    }
    Ok(run)
}

/// The table that HdrHistogram's own plotting page reads.
fn write_percentiles(path: &str, times: &Histogram<u64>) -> Result<(), String> {
    use std::fmt::Write;
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for step in times.iter_quantiles(5) {
        let quantile = step.quantile_iterated_to();
        let ms = step.value_iterated_to() as f64 / 1000.0;
        let count = times.count_between(0, step.value_iterated_to());
        let _ = match quantile < 1.0 {
            true => writeln!(
                text,
                "{ms:>12.3} {quantile:>14.12} {count:>10} {:>14.2}",
                1.0 / (1.0 - quantile)
            ),
            false => writeln!(text, "{ms:>12.3} {quantile:>14.12} {count:>10}"),
        };
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]",
        times.mean() / 1000.0,
        times.stdev() / 1000.0,
        times.max() as f64 / 1000.0,
        times.len()
    );
    write_file(Path::new(path), text.as_bytes())
}

/// The runs that are told, under their titles.
fn named_runs(line: &Line, kinds: &[Kind], runs: &[Run]) -> Vec<(String, Run)> {
    let mut named = Vec::new();
    if let [only] = runs {
        return vec![("ALL STATS".to_owned(), only.clone())];
    }
    if line.print_all_runs {
        for (at, run) in runs.iter().enumerate() {
            named.push((format!("RUN #{} RESULTS", at + 1), run.clone()));
        }
    }
    let by_rate = |a: &&Run, b: &&Run| a.outcome.rate().total_cmp(&b.outcome.rate());
    if let (Some(best), Some(worst)) = (runs.iter().max_by(by_rate), runs.iter().min_by(by_rate)) {
        named.push(("BEST RUN RESULTS".to_owned(), best.clone()));
        named.push(("WORST RUN RESULTS".to_owned(), worst.clone()));
        let mut sum = runs[0].clone();
        for run in &runs[1..] {
            for (class, other) in sum.outcome.classes.iter_mut().zip(&run.outcome.classes) {
                class.add(other);
            }
            // Rates over all runs are then the average.
            sum.outcome.took += run.outcome.took;
            sum.outcome.connection_errors += run.outcome.connection_errors;
        }
        debug_assert_eq!(sum.outcome.classes.len(), kinds.len());
        let title = format!("AGGREGATED AVERAGE RESULTS ({} runs)", runs.len());
        named.push((title, sum));
    }
    named
}
