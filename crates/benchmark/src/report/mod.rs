//! Reports: a matrix of targets, workloads, pipelines and repeats, measured in turn, and the page
//! that shows it.
//!
//! Every repeat goes through all rows, and in every row through all targets, beginning with another
//! one each time: what drifts on the machine drifts for all of them. A target that is given as a
//! command is started here, is emptied before each measurement and filled with what the row needs,
//! and its own processor time is measured too. Ctrl-C ends the measuring; what there is is written.

mod chart;
mod compare;
mod matrix;
mod numbers;
mod page;
mod results;

use crate::capacity::{Rise, Step, cpu};
use crate::doctor;
use crate::instance::Instance;
use crate::interrupt;
use crate::load::{Address, Outcome, Pace, Target, histogram};
use crate::workload::{Length, Workload};
use clap::Parser;
use client::Reply;
use hdrhistogram::Histogram;
use matrix::{Case, Matrix, PRESETS, TargetSpec};
use results::{Cell, PERCENTILES, Results, Run, TargetResult};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use compare::main as compare;

/// Notes that a report keeps at most.
const NOTES_MAX: usize = 200;
/// Elements that LRANGE reads from, and more.
const LIST_ELEMENTS: u64 = 1_000;
/// Writes before a GET at most.
const FILL_MAX: u64 = 2_000_000;

#[derive(Debug, Parser)]
#[command(disable_help_flag = true, args_override_self = true)]
struct Line {
    /// The matrix in TOML, or the preset's name
    what: String,
    /// NAME=COMMAND with {port} and {dir}, or NAME=HOST:PORT; may be repeated
    #[arg(long = "target", value_name = "NAME=...")]
    targets: Vec<TargetSpec>,
    /// NAME=PRICE of the target's machine for an hour
    #[arg(long = "price", value_name = "NAME=PRICE")]
    prices: Vec<String>,
    /// Makes requests, seconds, keys, repeats, threads and instances so many times as large
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// The folder to write index.html, results.json and results.csv into
    #[arg(long, default_value = "tidemill-report")]
    out: PathBuf,
    /// This text
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn parsed(args: &[String], name: &'static str) -> Result<Line, ExitCode> {
    use clap::{CommandFactory, FromArgMatches};
    let command = Line::command().bin_name(format!("tidemill-benchmark {name}"));
    let matches = command.try_get_matches_from(args);
    matches
        .and_then(|matches| Line::from_arg_matches(&matches))
        .map_err(|error| {
            let _ = error.print();
            ExitCode::from(u8::from(error.use_stderr()))
        })
}

/// Measures the matrix of a file.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    let line = match parsed(args, "report") {
        Ok(line) => line,
        Err(code) => return Ok(code),
    };
    let text =
        std::fs::read_to_string(&line.what).map_err(|error| format!("{}: {error}", line.what))?;
    let matrix = Matrix::parse(&text).map_err(|why| format!("{}: {why}", line.what))?;
    measure(&line, matrix)
}

/// Measures a matrix of ours; without a name, says which there are.
pub fn preset(args: &[String]) -> Result<ExitCode, String> {
    if args.len() < 2 {
        println!("tidemill-benchmark preset NAME [--scale 0.01] [--target ...]\n");
        for (name, text) in PRESETS {
            println!("{name:<16} {}", Matrix::parse(text)?.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let line = match parsed(args, "preset") {
        Ok(line) => line,
        Err(code) => return Ok(code),
    };
    let text = PRESETS
        .iter()
        .find(|(name, _)| *name == line.what)
        .map(|(_, text)| text);
    let text = text.ok_or_else(|| format!("{}: no such preset", line.what))?;
    measure(&line, Matrix::parse(text)?)
}

fn measure(line: &Line, mut matrix: Matrix) -> Result<ExitCode, String> {
    if !(line.scale > 0.0 && line.scale <= 1000.0) {
        return Err("--scale is above 0 and at most 1000".to_owned());
    }
    matrix.scale(line.scale);
    if !line.targets.is_empty() {
        matrix.targets.clone_from(&line.targets);
    }
    if matrix.targets.is_empty() {
        matrix.targets = vec!["127.0.0.1:6379=127.0.0.1:6379".parse()?];
    }
    for price in &line.prices {
        let wrong = || format!("{price}: --price is NAME=PRICE of a target");
        let (name, number) = price.split_once('=').ok_or_else(wrong)?;
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let target = matrix.targets.iter_mut().find(|target| target.name == name);
        target.ok_or_else(wrong)?.price_per_hour = Some(number);
    }
    let cases = matrix.cases()?;
    // What cannot be written afterwards need not be measured.
    std::fs::create_dir_all(&line.out).map_err(|e| format!("{}: {e}", line.out.display()))?;
    interrupt::flag();
    let mut groups = Vec::new();
    for spec in &matrix.targets {
        groups.push(Group::start(spec, &cases)?);
    }
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let mut results = Results {
        title: matrix.title.clone(),
        about: matrix.about.clone(),
        started,
        is_interrupted: false,
        machine: doctor::examine(Path::new("/")),
        targets: groups.iter().map(Group::result).collect(),
        cells: empty_cells(&cases, &groups),
        notes: Vec::new(),
    };
    if line.scale != 1.0 {
        results
            .notes
            .push(format!("The matrix was scaled by {}.", line.scale));
    }
    run(&matrix, &cases, &groups, &mut results);
    drop(groups);
    results.is_interrupted = interrupt::is_set();
    write(&line.out, &results)?;
    println!("{}", line.out.join("index.html").display());
    Ok(match results.is_interrupted {
        true => ExitCode::from(130),
        false => ExitCode::SUCCESS,
    })
}

fn empty_cells(cases: &[Case], groups: &[Group]) -> Vec<Cell> {
    let of_case = |case: &Case| {
        let cell = |group: &Group| Cell {
            target: group.spec.name.clone(),
            workload: case.workload_name.clone(),
            pipeline: case.pipeline,
            runs: Vec::new(),
        };
        groups.iter().map(cell).collect::<Vec<_>>()
    };
    cases.iter().flat_map(of_case).collect()
}

fn write(dir: &Path, results: &Results) -> Result<(), String> {
    let json = serde_json::to_string_pretty(results).expect("plain values");
    for (name, text) in [
        ("index.html", page::render(results)),
        ("results.json", json),
        ("results.csv", results.csv()),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// All repeats of all cells, interleaved.
fn run(matrix: &Matrix, cases: &[Case], groups: &[Group], results: &mut Results) {
    let all = matrix.repeats * cases.len() * groups.len();
    let mut done = 0;
    for repeat in 0..matrix.repeats {
        for (row, case) in cases.iter().enumerate() {
            for turn in 0..groups.len() {
                if interrupt::is_set() {
                    return;
                }
                // Another one begins each time.
                let at = (turn + repeat) % groups.len();
                let group = &groups[at];
                done += 1;
                let name = format!(
                    "{}: {}, pipeline {}",
                    group.spec.name, case.workload_name, case.pipeline
                );
                match group.measure(case, repeat as u64 + 1) {
                    Ok((measured, note)) => {
                        eprintln!(
                            "[{done}/{all}] {name}: {:.0} requests per second",
                            measured.rate
                        );
                        // What Ctrl-C cut short is no measurement.
                        if !interrupt::is_set() {
                            results.cells[row * groups.len() + at].runs.push(measured);
                        }
                        if let Some(note) = note {
                            tell(results, format!("{name}: {note}"));
                        }
                    }
                    Err(why) => {
                        eprintln!("[{done}/{all}] {name}: {why}");
                        tell(results, format!("{name}: {why}"));
                    }
                }
            }
        }
    }
}

/// One note about a cell is enough.
fn tell(results: &mut Results, note: String) {
    let about = |note: &str| note.split(": ").take(2).collect::<Vec<_>>().join(": ");
    let is_new = !results.notes.iter().any(|old| about(old) == about(&note));
    if is_new && results.notes.len() < NOTES_MAX {
        results.notes.push(note);
    }
}

/// A target with the servers that stand for it.
struct Group {
    spec: TargetSpec,
    /// Empty where it runs already.
    instances: Vec<Instance>,
    targets: Vec<Target>,
    version: String,
}

impl Group {
    fn start(spec: &TargetSpec, cases: &[Case]) -> Result<Self, String> {
        let plain = cases.iter().filter(|case| case.objective.is_none());
        let count = plain.map(|case| case.instances).max().unwrap_or(1);
        let (instances, targets) = match (&spec.command, &spec.address) {
            (Some(command), None) => {
                let started = (0..count).map(|_| Instance::start(command));
                let instances = started.collect::<Result<Vec<_>, _>>()?;
                let targets = instances.iter().map(Instance::target).collect();
                (instances, targets)
            }
            (None, Some(address)) => {
                if count > 1 || cases.iter().any(|case| case.objective.is_some()) {
                    return Err(format!(
                        "target {}: several instances need a command that starts them",
                        spec.name
                    ));
                }
                let mut target = Target::at(Address::Tcp("127.0.0.1".to_owned(), 6379));
                match address.contains("://") {
                    true => target.apply_uri(address)?,
                    false => target.apply_uri(&format!("redis://{address}"))?,
                }
                (Vec::new(), vec![target])
            }
            _ => return Err(format!("target {}: has a command or an address", spec.name)),
        };
        let version = targets[0].client().map(|mut client| version(&mut client))?;
        Ok(Self {
            spec: spec.clone(),
            instances,
            targets,
            version,
        })
    }

    fn result(&self) -> TargetResult {
        let how = self.spec.command.as_ref().or(self.spec.address.as_ref());
        TargetResult {
            name: self.spec.name.clone(),
            how: how.cloned().unwrap_or_default(),
            version: self.version.clone(),
            price_per_hour: self.spec.price_per_hour,
        }
    }

    /// One measurement, and what must be known about it.
    fn measure(&self, case: &Case, seed: u64) -> Result<(Run, Option<String>), String> {
        let length = match case.seconds {
            Some(seconds) => Length::Time(Duration::from_secs_f64(seconds)),
            None => Length::Requests(case.requests),
        };
        if let (Some(objective), Some(server)) = (case.objective, &self.spec.command) {
            let rise = Rise {
                server,
                instances_max: case.instances,
                objective,
            };
            let prepare = |target: &Target| prepare(case, target, false);
            let steps = rise.run(&case.workload, length, seed, prepare, |_| ())?;
            return best(&steps, case.instances);
        }
        let count = case.instances.min(self.targets.len());
        let targets = &self.targets[..count];
        for target in targets {
            prepare(case, target, self.spec.command.is_some())?;
        }
        // None, not no time, of a server that was not started here.
        let of_servers = || match self.instances.get(..count) {
            Some(instances) => cpu(instances),
            None => None,
        };
        let before = of_servers();
        let outcomes = case
            .workload
            .run_on_all(targets, Pace::Batches, length, seed)?;
        let used = of_servers()
            .zip(before)
            .map(|(after, before)| after - before);
        let mut latency = histogram();
        for outcome in &outcomes {
            latency
                .add(&outcome.total().latency)
                .expect("the same bounds everywhere");
        }
        let requests: u64 = outcomes.iter().map(Outcome::count).sum();
        let server_us = used.filter(|_| requests > 0);
        let server_us = server_us.map(|used| used.as_secs_f64() * 1e6 / requests as f64);
        let rate = outcomes.iter().map(Outcome::rate).sum();
        let note = outcomes.iter().find_map(Outcome::generator_note);
        Ok((figures(rate, &latency, server_us, count), note))
    }
}

/// The most that held; nothing held is zeros, and said.
fn best(steps: &[Step], instances_max: usize) -> Result<(Run, Option<String>), String> {
    let held = steps.iter().filter(|step| step.holds);
    let Some(best) = held.max_by(|a, b| a.rate.total_cmp(&b.rate)) else {
        // The times are those under which it broke.
        let run = match steps.first() {
            Some(first) => figures(0.0, &first.latency, first.server_us, 0),
            None => return Err("nothing was measured".to_owned()),
        };
        return Ok((
            run,
            Some("a single instance did not hold the objective".to_owned()),
        ));
    };
    let is_all = steps.len() == instances_max && steps.iter().all(|step| step.holds);
    let note =
        is_all.then(|| format!("all {instances_max} instances held the objective: more may"));
    let run = figures(best.rate, &best.latency, best.server_us, best.instances);
    Ok((run, note.or(best.note.clone())))
}

fn figures(rate: f64, latency: &Histogram<u64>, server_us: Option<f64>, instances: usize) -> Run {
    let at = |percentile: f64| match latency.is_empty() {
        true => 0.0,
        false => latency.value_at_percentile(percentile) as f64 / 1000.0,
    };
    Run {
        rate,
        avg_ms: if latency.is_empty() {
            0.0
        } else {
            latency.mean() / 1000.0
        },
        p50_ms: at(50.0),
        p99_ms: at(99.0),
        max_ms: at(100.0),
        percentiles_ms: PERCENTILES
            .iter()
            .map(|&percentile| at(percentile))
            .collect(),
        server_us,
        instances,
    }
}

/// Empties a server that is ours and puts there what the case reads.
fn prepare(case: &Case, target: &Target, is_ours: bool) -> Result<(), String> {
    if is_ours {
        let mut client = target.client()?;
        if let Ok(Reply::Error(text)) = client.call(&["FLUSHALL"]) {
            return Err(format!("FLUSHALL: {}", String::from_utf8_lossy(&text)));
        }
    }
    let Some(test) = &case.test else {
        return Workload::write_all(target, case.keys, case.data_bytes);
    };
    let (first, requests) = match test.to_ascii_lowercase().as_str() {
        "get" => ("set", (case.keys * 2).min(FILL_MAX)),
        "lpop" | "rpop" => ("lpush", case.requests.min(FILL_MAX)),
        "spop" => ("sadd", case.requests.min(FILL_MAX)),
        "zpopmin" => ("zadd", case.requests.min(FILL_MAX)),
        test if test.starts_with("lrange") => ("lpush", LIST_ELEMENTS),
        _ => return Ok(()),
    };
    let fill = Workload::test(first, case.keys, case.data_bytes)?.over(1, 10, 100);
    fill.run(target, Pace::Window, Length::Requests(requests), 7)
        .map(drop)
}

/// What a server says it is.
fn version(client: &mut client::Client) -> String {
    let info = match client.call(&["INFO", "server"]) {
        Ok(reply) => reply.text().unwrap_or_default(),
        Err(_) => String::new(),
    };
    let field = |name: &str| {
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned())
    };
    let name = field("server_name").unwrap_or_else(|| "redis".to_owned());
    let own = field(&format!("{name}_version")).or_else(|| field("redis_version"));
    own.map(|own| format!("{name} {own}")).unwrap_or_default()
}
