//! The command line of `redis-benchmark`.

use crate::load::{Address, Target};
use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, Parser};
use client::{Tls, TlsOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Requests of a test when nothing is said.
pub const REQUESTS: u64 = 100_000;
/// More connections than a process can have files.
const CLIENTS_MAX: usize = 1_000_000;
/// Deeper pipelines than this only fill buffers.
const PIPELINE_MAX: usize = 1_000_000;
/// The longest payload: the longest string that servers take.
const DATA_BYTES_MAX: usize = 512 << 20;
/// What is not there yet; said instead of being left out in silence.
const NO_CLUSTER: &str = "cluster mode is not supported yet";

#[derive(Debug, Parser)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true
)]
struct Line {
    #[arg(short = 'h', default_value = "127.0.0.1")]
    host: String,
    #[arg(short = 'p', default_value_t = 6379)]
    port: u16,
    #[arg(short = 's')]
    socket: Option<PathBuf>,
    #[arg(short = 'a')]
    password: Option<String>,
    #[arg(long)]
    user: Option<String>,
    #[arg(short = 'u')]
    uri: Option<String>,
    #[arg(short = 'c', default_value_t = 50)]
    clients: usize,
    #[arg(short = 'n')]
    requests: Option<u64>,
    #[arg(short = 'd', default_value_t = 3)]
    data_bytes: usize,
    #[arg(long, default_value_t = 0)]
    dbnum: u32,
    #[arg(short = '3')]
    resp3: bool,
    #[arg(long)]
    threads: Option<usize>,
    #[arg(long)]
    cluster: bool,
    #[arg(long)]
    enable_tracking: bool,
    #[arg(short = 'k', default_value_t = 1)]
    keep_alive: i64,
    #[arg(short = 'r')]
    range: Option<u64>,
    #[arg(short = 'P', default_value_t = 1)]
    pipeline: usize,
    #[arg(short = 'q')]
    quiet: bool,
    #[arg(long)]
    precision: Option<u8>,
    #[arg(long)]
    csv: bool,
    #[arg(short = 'l')]
    loops: bool,
    #[arg(short = 't')]
    tests: Option<String>,
    #[arg(short = 'I')]
    idle: bool,
    #[arg(short = 'x')]
    stdin: bool,
    #[arg(long)]
    seed: Option<u64>,
    #[arg(long)]
    rate: Option<f64>,
    #[arg(long)]
    poisson: bool,
    #[arg(long)]
    duration: Option<f64>,
    #[arg(long)]
    tls: bool,
    #[arg(long)]
    insecure: bool,
    #[arg(long)]
    sni: Option<String>,
    #[arg(long)]
    cacert: Option<String>,
    #[arg(long)]
    cacertdir: Option<String>,
    #[arg(long)]
    cert: Option<String>,
    #[arg(long)]
    key: Option<String>,
    #[arg(long)]
    tls_ciphers: Option<String>,
    #[arg(long)]
    tls_ciphersuites: Option<String>,
    #[arg(long, action = ArgAction::SetTrue)]
    help: bool,
    #[arg(long, short = 'v', action = ArgAction::SetTrue)]
    version: bool,
    #[arg(trailing_var_arg = true)]
    command: Vec<String>,
}

/// What the command line asks for, within what is possible.
#[derive(Debug)]
pub struct Options {
    pub target: Target,
    pub clients: usize,
    /// Given with `-n`.
    pub requests: Option<u64>,
    pub data_bytes: usize,
    pub threads: Option<usize>,
    pub keep_alive: bool,
    pub range: Option<u64>,
    pub pipeline: usize,
    pub is_quiet: bool,
    /// Digits that the report's histograms keep.
    pub precision: u8,
    pub is_csv: bool,
    pub loops: bool,
    /// Lower case names.
    pub tests: Option<Vec<String>>,
    pub is_idle: bool,
    pub reads_stdin: bool,
    pub seed: u64,
    pub rate: Option<f64>,
    pub is_poisson: bool,
    pub duration: Option<f64>,
    pub command: Vec<String>,
}

impl Options {
    /// In `-q` and `--csv` people want the figures and nothing else.
    pub fn is_quiet_about_itself(&self) -> bool {
        self.is_quiet || self.is_csv
    }
}

/// Reads the command line; `Err` when all is said already: help, version, or what is wrong.
pub fn parse(args: &[String]) -> Result<Options, ExitCode> {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            let culprit = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(text)) => text.split(' ').next().unwrap_or(text),
                _ => "",
            };
            let why = match error.kind() {
                clap::error::ErrorKind::ValueValidation => "Invalid value of option",
                _ => "Invalid option",
            };
            eprintln!("{why} \"{culprit}\" or option argument missing\n");
            eprint!("{HELP}");
            return Err(ExitCode::FAILURE);
        }
    };
    if line.help {
        print!("{HELP}");
        return Err(ExitCode::SUCCESS);
    }
    if line.version {
        println!("tidemill-benchmark {}", env!("CARGO_PKG_VERSION"));
        return Err(ExitCode::SUCCESS);
    }
    checked(line).map_err(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}

fn checked(line: Line) -> Result<Options, String> {
    if line.cluster {
        return Err(NO_CLUSTER.to_owned());
    }
    let limit = |name: &str, value: usize, max: usize| match value <= max {
        true => Ok(value),
        false => Err(format!("{name} is {max} at most")),
    };
    let positive = |name: &str, value: Option<f64>| match value {
        Some(number) if !(number > 0.0 && number <= 1e9) => Err(format!(
            "{name} must be above 0 and at most a thousand million"
        )),
        _ => Ok(value),
    };
    let address = match line.socket {
        Some(path) => Address::Unix(path),
        None => Address::Tcp(line.host, line.port),
    };
    let mut target = Target {
        user: line.user,
        password: line.password,
        db: line.dbnum,
        is_resp3: line.resp3,
        tracking: line.enable_tracking,
        ..Target::at(address)
    };
    if let Some(uri) = &line.uri {
        target.apply_uri(uri)?;
    }
    if line.tls {
        target.tls = Some(Tls::new(&TlsOptions {
            insecure: line.insecure,
            sni: line.sni,
            cacert: line.cacert,
            cacertdir: line.cacertdir,
            cert: line.cert,
            key: line.key,
            ciphers: line.tls_ciphers,
            ciphersuites: line.tls_ciphersuites,
        })?);
    }
    let lower = |tests: String| tests.split(',').map(str::to_ascii_lowercase).collect();
    Ok(Options {
        target,
        clients: limit("-c", line.clients, CLIENTS_MAX)?.max(1),
        requests: line.requests,
        data_bytes: limit("-d", line.data_bytes, DATA_BYTES_MAX)?.max(1),
        threads: line.threads.filter(|&threads| threads > 0),
        keep_alive: line.keep_alive != 0,
        range: line.range,
        pipeline: limit("-P", line.pipeline, PIPELINE_MAX)?.max(1),
        is_quiet: line.quiet,
        precision: line.precision.unwrap_or(3).clamp(1, 5),
        is_csv: line.csv,
        loops: line.loops,
        tests: line.tests.map(lower),
        is_idle: line.idle,
        reads_stdin: line.stdin,
        seed: line.seed.unwrap_or(0x0074_6964_656d_696c),
        rate: positive("--rate", line.rate)?,
        is_poisson: line.poisson,
        duration: positive("--duration", line.duration)?,
        command: line.command,
    })
}

/// What `--help` says, and what follows the complaint about a wrong option.
const HELP: &str = "\
Usage: tidemill-benchmark [OPTIONS] [COMMAND ARGS...]

Without a COMMAND, a series of tests is run, or those that -t names.

Options:
 -h <hostname>      The server's host (default 127.0.0.1)
 -p <port>          The server's port (default 6379)
 -s <socket>        The server's Unix socket, instead of host and port
 -a <password>      Log in with this password
 --user <username>  Log in as this user; needs -a
 -u <uri>           The server as redis://user:password@host:port/db
 -c <clients>       Connections (default 50)
 -n <requests>      Requests in all, exactly (default 100000)
 -d <size>          Bytes of a value (default 3)
 --dbnum <db>       Database to SELECT (default 0)
 -3                 Speak RESP3
 --threads <num>    Threads of the load generator (default 1)
 --enable-tracking  Send CLIENT TRACKING on first
 -k <boolean>       1 keeps connections, 0 makes a new one for each batch (default 1)
 -r <keyspacelen>   Put a random number of 12 digits below <keyspacelen> in place of each
                    __rand_int__, in the tests' keys, members and scores as in a COMMAND
 -P <numreq>        Requests of a connection that are in flight at once (default 1)
 -q                 One line a test
 --precision <num>  Digits that latencies are kept to, 1 to 5 (default 3)
 --csv              Lines of comma separated values
 -l                 Run for ever
 -t <tests>         Comma separated names of tests, such as set,lrange_100,xadd,publish
 -I                 Only open connections, and hold them
 -x                 Read the last argument of COMMAND from standard input
 --seed <num>       Seed of the random numbers
 --tls              Encrypt connections; with it go --cacert <file>, --cacertdir <dir> (else the
                    system's certificates), --cert <file> and --key <file>, --sni <host>,
                    --insecure, --tls-ciphers <list> and --tls-ciphersuites <list>
 --cluster          Not supported yet: said, and nothing is run
 --help             This text
 --version          The version

Beyond redis-benchmark:
 --rate <num>       An open loop: so many requests a second, whatever the server does. Latency
                    counts from when a request was due, also while it waits for a connection
 --poisson          With --rate: at random distances instead of equal ones
 --duration <sec>   So long, instead of so many requests
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Options {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words).expect("right options")
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let options = parsed("x -n 7 -P 5 -3 -r 10 set -n __rand_int__ -q");
        assert_eq!(options.command, ["set", "-n", "__rand_int__", "-q"]);
        assert_eq!(options.requests, Some(7));
        assert!(options.target.is_resp3 && !options.is_quiet);
    }

    #[test]
    fn odd_numbers_are_what_the_real_one_makes_of_them() {
        let options = parsed("x -c 0 -P 0 -d 0");
        let seen = (options.clients, options.pipeline, options.data_bytes);
        assert_eq!(seen, (1, 1, 1));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for line in ["x --nosuch", "x -n", "x -n x", "x --cluster", "x --rate 0"] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert!(parse(&words).is_err(), "{line}");
        }
    }
}
