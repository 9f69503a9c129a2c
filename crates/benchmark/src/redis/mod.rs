//! The face of `redis-benchmark`: what it is told, what it sends and what it prints.
//!
//! Its options, the names of its tests, the requests that they send and the text of its reports are
//! those of the real one (7.0 and 8.x). Beyond it there is an open loop (`--rate`, `--poisson`,
//! `--duration`), and a note on standard error where the generator itself was the limit.
//!
//! # Differences from the real one
//! - `-n` is exact: `-n 7 -P 5` sends seven requests.
//! - Each reply of a pipeline has the latency that it had, not that of the first.
//! - Connecting is over before the clock starts.

mod options;
mod progress;
mod report;
pub mod rows;

use crate::interrupt;
use crate::load::{Limit, Outcome, Pace, Plan, Source, Template, Watch, run};
use client::Reply;
use options::Options;
use rows::Row;
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Exit code of a program that was ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs it; `Err` is the one line for standard error.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    let options = match options::parse(args) {
        Ok(options) => options,
        Err(code) => return Ok(code),
    };
    interrupt::flag();
    // A server that is down, or does not let us in, is told before anything else.
    let mut client = options.target.client()?;
    let host = HostConfig::ask(&mut client);
    drop(client);
    if !options.keep_alive {
        eprintln!(
            "WARNING: keepalive is off: with many requests the system may run out of ports \
             (/proc/sys/net/ipv4/tcp_tw_reuse set to 1 helps)"
        );
    }
    if options.is_idle {
        return idle(&options);
    }
    if options.is_csv {
        print(report::CSV_HEADER);
    }
    loop {
        match rows::of_command(&options, &mut std::io::stdin())? {
            Some(row) => measure(&options, &row, &host)?,
            None => {
                for row in rows::selected(&options) {
                    measure(&options, &row, &host)?;
                    if interrupt::is_set() {
                        break;
                    }
                }
                if !options.is_csv {
                    print("\n");
                }
            }
        }
        if interrupt::is_set() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if !options.loops {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Writes to standard output; that nobody reads it any more is the end.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out
        .write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        interrupt::flag().store(true, Ordering::Relaxed);
    }
}

/// What the report says of the server.
#[derive(Debug, Default)]
pub struct HostConfig {
    save: Option<String>,
    appendonly: Option<String>,
}

impl HostConfig {
    fn ask(client: &mut client::Client) -> Self {
        let mut value = |name: &str| match client.call(&["CONFIG", "GET", name]) {
            Ok(reply @ (Reply::Array(_) | Reply::Map(_))) => {
                reply.field(name).and_then(Reply::text)
            }
            _ => None,
        };
        let config = Self {
            save: value("save"),
            appendonly: value("appendonly"),
        };
        if config.save.is_none() {
            eprintln!("WARNING: Could not fetch server CONFIG");
        }
        config
    }
}

/// Runs one row and prints what came out.
fn measure(options: &Options, row: &Row, host: &HostConfig) -> Result<(), String> {
    let outcome = load(options, row)?;
    print(&report::render(options, &row.title, &outcome, host));
    if let Some(note) = outcome
        .generator_note()
        .filter(|_| !options.is_quiet_about_itself())
    {
        eprintln!("note: {note}");
    }
    Ok(())
}

fn load(options: &Options, row: &Row) -> Result<Outcome, String> {
    let threads = options.threads.unwrap_or(1).clamp(1, options.clients);
    let limit = match (options.requests, options.duration) {
        (Some(requests), _) => Limit::Total(requests),
        (None, Some(_)) => Limit::None,
        (None, None) => Limit::Total(options::REQUESTS),
    };
    let mut plan = Plan::new(
        options.target.clone(),
        options.clients,
        options.pipeline,
        limit,
    );
    plan.threads = threads;
    plan.duration = options.duration.map(Duration::from_secs_f64);
    plan.pace = match options.rate {
        Some(rate) if options.is_poisson => Pace::Poisson(rate),
        Some(rate) => Pace::Fixed(rate),
        None => Pace::Batches,
    };
    plan.reconnect_after = (!options.keep_alive).then_some(options.pipeline as u64);
    plan.stops_at_error = true;
    let seeds = options.seed;
    let sources = (0..threads).map(|number| {
        let seed = seeds.wrapping_add(number as u64 * 0x9e37_79b9);
        Box::new(Template::new(row.bytes.clone(), options.range, seed)) as Box<dyn Source>
    });
    let watch = Watch::default();
    let sources = sources.collect();
    let shows = !options.is_csv && std::io::stdout().is_terminal();
    let outcome = progress::beside(shows, &row.title, &watch, || {
        run(&plan, sources, &watch, interrupt::flag())
    });
    outcome.map_err(|failure| failure.why)
}

/// Opens connections and holds them until Ctrl-C.
fn idle(options: &Options) -> Result<ExitCode, String> {
    print(&format!(
        "Creating {} idle connections and waiting forever (Ctrl+C when done)\n",
        options.clients
    ));
    let at = options.target.resolve()?;
    let mut sockets = Vec::with_capacity(options.clients);
    for _ in 0..options.clients {
        sockets.push(options.target.connect(&at)?);
    }
    let shows = std::io::stdout().is_terminal();
    while !interrupt::is_set() {
        if shows {
            print(&format!("clients: {}\r", sockets.len()));
        }
        // A connection that the server closed is readable: it is no longer held.
        sockets.retain_mut(|socket| !matches!(socket.read(&mut [0; 64]), Ok(0)));
        std::thread::sleep(progress::EVERY);
    }
    Ok(ExitCode::from(INTERRUPTED))
}
