//! The differential fuzzer: sequences of commands made up from the facts about real servers,
//! played on ours and on a real one at once, every reply compared.
//!
//! `cargo xtask diff --seed 1 --minutes 5` builds and runs it. The same seed makes the same
//! sequences; `--sequence N` plays one of them alone. A difference is shrunk to the shortest
//! sequence that shows it and printed as a behaviour script; those that are wanted stand in
//! `allowed.txt` with their reasons.
//!
//! # Invariants
//! - A sequence is fixed before it is played, so it can be played again, whole or in part.
//! - Both servers are on free ports with folders of their own and are ended by their process ids.
//! - A crash, a hang or a closed connection of ours is a difference like any other; one of the real
//!   server is counted and named, and it is started again.
//!
//! # Why not mutate recorded traffic?
//! Recordings hold what people do; the facts hold what they may do. New commands are tried as soon
//! as they stand in the facts and our server has them.
#![forbid(unsafe_code)]

mod allow;
mod arbiter;
mod compare;
mod examine;
mod facts;
mod generate;
mod lua;
mod plan;
mod play;
mod random;
mod report;
mod scan;
mod sequence;
mod shrink;
mod side;
mod users;
mod values;
mod walk;

use allow::Allowed;
use arbiter::Arbiter;
use clap::Parser;
use client::Reply;
use facts::Command;
use plan::{CONNECTIONS, Planner};
use play::{Arena, Facts};
use report::Findings;
use side::Side;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Plays made-up commands on our server and a real one and compares every reply.
#[derive(Parser)]
#[command(name = "diff")]
struct Cli {
    /// Where the sequences come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long to play.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The real server: redis-8.10 or valkey-9.1.
    #[arg(long, default_value = "redis-8.10")]
    against: String,
    /// Who decides where ours and another server than this differ; `none` for nobody.
    #[arg(long, default_value = "redis-8.10")]
    arbiter: String,
    /// Our server's program, where it is not the one cargo built.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Threads of our server.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Play only these groups or commands (and generic ones).
    #[arg(long)]
    only: Vec<String>,
    /// Run made-up scripts in some sequences, too.
    #[arg(long)]
    scripts: bool,
    /// Make users with made-up rules in some sequences, and be one of them.
    #[arg(long)]
    users: bool,
    /// Play this one sequence.
    #[arg(long)]
    sequence: Option<u64>,
    /// Play so many sequences, if the time lasts: the same ones on a fast machine and a slow one.
    #[arg(long)]
    sequences: Option<u64>,
    /// Another list of allowed differences.
    #[arg(long)]
    ignore: Option<PathBuf>,
    /// Stop after so many findings.
    #[arg(long, default_value_t = 50)]
    findings: usize,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Plays until the time is over; true when nothing was found.
fn run(cli: &Cli) -> Result<bool, String> {
    let (mut arena, planner) = prepare(cli)?;
    let mut findings = Findings::new(cli.seed, &cli.against);
    let end = Instant::now() + Duration::from_secs_f64(cli.minutes.max(0.0) * 60.0);
    let mut number = cli.sequence.unwrap_or(0);
    loop {
        let sequence = planner.sequence(cli.seed, number);
        let examined = examine::examine(&mut arena, sequence)?;
        findings.count(number, &examined);
        if let Some((sequence, difference)) = examined.open
            && findings.is_new(&difference.kind)
        {
            match examine::shortest(&mut arena, sequence, &difference)? {
                Some((short, difference)) => findings.show(number, &short, &difference),
                None => findings.fleeting(number, &difference),
            }
        }
        number += 1;
        let is_over = cli.sequence.is_some()
            || cli.sequences.is_some_and(|many| number >= many)
            || Instant::now() > end;
        if is_over || findings.kinds() >= cli.findings {
            break;
        }
    }
    findings.summary(&planner, &arena);
    Ok(findings.kinds() == 0)
}

/// The servers, and the planner of what both have.
fn prepare(cli: &Cli) -> Result<(Arena, Planner), String> {
    let (mut arena, commands) = arena(cli, &cli.against)?;
    if cli.arbiter != cli.against && cli.arbiter != "none" {
        let (mut other, _) = self::arena(cli, &cli.arbiter)?;
        other.is_arbitrated = true;
        arena.is_arbitrated = true;
        arena.arbiter = Some(Box::new(Arbiter::new(other)));
    }
    Ok((
        arena,
        Planner::new(commands, &cli.only).with(cli.scripts, cli.users),
    ))
}

/// A server of ours and this real one, and the commands that both have.
fn arena(cli: &Cli, against: &str) -> Result<(Arena, Vec<Command>), String> {
    let peer = testkit::peer(against)
        .ok_or_else(|| format!("no {against} here: `cargo xtask test peers` installs it"))?;
    let program = cli.server.clone().or_else(testkit::our_server);
    let program = program.ok_or("no server of ours here: `cargo build --release`")?;
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let known = facts::parse(&read(base.join(format!("../compat/{against}.json")))?)?;
    let mut rules = read(base.join("allowed.txt"))?;
    if let Some(more) = &cli.ignore {
        rules.push('\n');
        rules.push_str(&read(more.clone())?);
    }
    let allowed = Allowed::parse(&rules, against)?;

    let debug = ["--enable-debug-command".to_owned(), "yes".to_owned()];
    let threads = ["--threads".to_owned(), cli.threads.to_string()];
    let mut ours = Side::start(
        "tidemill",
        program,
        [debug.clone(), threads].concat(),
        CONNECTIONS,
    )?;
    let mut theirs = Side::start(against, peer, debug.to_vec(), CONNECTIONS)?;
    let (our_names, their_names) = (names(&mut ours)?, names(&mut theirs)?);
    let facts = Facts::of(&known);
    let both = known
        .into_iter()
        .filter(|command| {
            our_names.contains(&command.name()) && their_names.contains(&command.name())
        })
        .collect();
    let mut arena = Arena::new(ours, theirs, allowed, facts, CONNECTIONS);
    for name in plan::directives() {
        let sides = [&mut arena.ours, &mut arena.theirs];
        for (side, kept) in sides.into_iter().zip(&mut arena.directives) {
            let reply = side
                .ask(&["CONFIG", "GET", name])
                .map_err(|e| format!("{}: {e}", side.name))?;
            if let Some(value) = reply.field(name).and_then(Reply::text) {
                kept.insert(name, value);
            }
        }
    }
    Ok((arena, both))
}

/// The commands and subcommands that a server says it has.
fn names(side: &mut Side) -> Result<BTreeSet<String>, String> {
    let reply = side
        .ask(&["COMMAND"])
        .map_err(|e| format!("COMMAND: {e}"))?;
    let mut names = BTreeSet::new();
    let mut left: Vec<&Reply> = reply.elements().unwrap_or_default().iter().collect();
    while let Some(entry) = left.pop() {
        let parts = entry.elements().unwrap_or_default();
        names.extend(
            parts
                .first()
                .and_then(Reply::text)
                .map(|name| name.to_lowercase()),
        );
        left.extend(parts.get(9).and_then(Reply::elements).unwrap_or_default());
    }
    Ok(names)
}
