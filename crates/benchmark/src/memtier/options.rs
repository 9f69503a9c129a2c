//! The command line of `memtier_benchmark`, as far as it is served here.
//!
//! An option that is not served is an error that names it: a benchmark that ignores what it is told
//! measures something else.

use crate::load::{Address, Target};
use clap::{ArgAction, Parser};
use client::{Tls, TlsOptions};
use std::path::PathBuf;
use std::str::FromStr;

/// The longest value.
const DATA_BYTES_MAX: usize = 512 << 20;

#[derive(Debug, Clone, Parser)]
#[command(
    name = "tidemill-benchmark memtier",
    bin_name = "tidemill-benchmark memtier",
    about = "The face of memtier_benchmark: SETs and GETs, or your commands, in a table and JSON",
    disable_help_flag = true,
    args_override_self = true,
    version
)]
pub struct Line {
    /// The server's host
    #[arg(
        short = 'h',
        long,
        short_alias = 's',
        alias = "server",
        default_value = "127.0.0.1",
        value_name = "ADDR"
    )]
    pub host: String,
    /// The server's port
    #[arg(short, long, default_value_t = 6379)]
    pub port: u16,
    /// The server's Unix socket, instead of host and port
    #[arg(short = 'S', long, value_name = "SOCKET")]
    pub unix_socket: Option<PathBuf>,
    /// redis, resp2 or resp3
    #[arg(short = 'P', long, default_value = "redis", value_parser = ["redis", "resp2", "resp3"])]
    pub protocol: String,
    /// PASSWORD or USER:PASSWORD
    #[arg(short, long, value_name = "CREDENTIALS")]
    pub authenticate: Option<String>,
    /// The server as redis://user:password@host:port/db
    #[arg(short, long)]
    pub uri: Option<String>,
    /// Runs; the best, the worst and the average are told
    #[arg(short = 'x', long, default_value_t = 1, value_name = "NUMBER")]
    pub run_count: u32,
    /// Write the tables here
    #[arg(short, long, value_name = "FILE")]
    pub out_file: Option<PathBuf>,
    /// Write the results as JSON here
    #[arg(long, value_name = "FILE")]
    pub json_out_file: Option<PathBuf>,
    /// Write percentile files whose names begin so
    #[arg(long, value_name = "FILE")]
    pub hdr_file_prefix: Option<String>,
    /// Print the configuration first
    #[arg(long)]
    pub show_config: bool,
    /// No distributions after the table
    #[arg(long)]
    pub hide_histogram: bool,
    /// Percentiles of the table
    #[arg(long, default_value = "50,99,99.9", value_delimiter = ',')]
    pub print_percentiles: Vec<f64>,
    /// The table of every run, not only of the best, the worst and the average
    #[arg(long)]
    pub print_all_runs: bool,
    /// Requests of a connection, or `allkeys`
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub requests: Option<Requests>,
    /// Requests a second of each connection
    #[arg(long, value_name = "NUMBER")]
    pub rate_limiting: Option<u32>,
    /// Connections of each thread
    #[arg(short, long, default_value_t = 50)]
    pub clients: usize,
    /// Threads
    #[arg(short, long, default_value_t = 4)]
    pub threads: usize,
    /// Seconds to run, instead of a number of requests
    #[arg(long, value_name = "SECS")]
    pub test_time: Option<u64>,
    /// SETs to GETs
    #[arg(long, default_value = "1:10")]
    pub ratio: Ratio,
    /// Requests of a connection that are in flight at once
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub pipeline: usize,
    /// Make the connection anew after this many requests
    #[arg(long, value_name = "NUM")]
    pub reconnect_interval: Option<u64>,
    /// Go on with a new connection when one breaks
    #[arg(long)]
    pub reconnect_on_error: bool,
    /// Database to SELECT
    #[arg(long, default_value_t = 0, value_name = "DB")]
    pub select_db: u32,
    /// Each connection draws numbers of its own
    #[arg(long)]
    pub distinct_client_seed: bool,
    /// Other numbers in every run of the program
    #[arg(long)]
    pub randomize: bool,
    /// A command instead of SET and GET, with __key__ and __data__; may be repeated
    #[arg(long)]
    pub command: Vec<String>,
    /// How often the last --command is sent in a turn
    #[arg(long, value_name = "NUMBER")]
    pub command_ratio: Vec<u32>,
    /// The key pattern of the last --command
    #[arg(long, value_name = "PATTERN")]
    pub command_key_pattern: Vec<Pattern>,
    /// Bytes of a value
    #[arg(short, long, default_value_t = 32, value_name = "SIZE")]
    pub data_size: usize,
    /// Random values
    #[arg(short = 'R', long)]
    pub random_data: bool,
    /// Bytes of a value, drawn from MIN-MAX
    #[arg(long, value_name = "RANGE")]
    pub data_size_range: Option<Range>,
    /// Bytes of a value, drawn from SIZE:WEIGHT,...
    #[arg(long, value_name = "LIST")]
    pub data_size_list: Option<String>,
    /// R: random; S: growing with the key's number, with --data-size-range
    #[arg(long, default_value = "R", value_parser = ["R", "S"])]
    pub data_size_pattern: String,
    /// Seconds to live, drawn from MIN-MAX
    #[arg(long, value_name = "RANGE")]
    pub expiry_range: Option<Range>,
    /// What keys begin with
    #[arg(long, default_value = "memtier-", value_name = "PREFIX")]
    pub key_prefix: String,
    /// The smallest number of a key
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub key_minimum: u64,
    /// The largest
    #[arg(long, default_value_t = 10_000_000, value_name = "NUMBER")]
    pub key_maximum: u64,
    /// Of SETs and GETs: R random, G Gaussian, S sequential, P sequential in parts, Z Zipf
    #[arg(long, default_value = "R:R", value_name = "PATTERN")]
    pub key_pattern: String,
    /// Deviation of G; a sixth of the range if not given
    #[arg(long)]
    pub key_stddev: Option<f64>,
    /// Median of G; the middle of the range if not given
    #[arg(long)]
    pub key_median: Option<f64>,
    /// Exponent of Z
    #[arg(long, default_value_t = 1.0)]
    pub key_zipf_exp: f64,
    /// Encrypt connections
    #[arg(long)]
    pub tls: bool,
    /// Our certificate, with --key
    #[arg(long, value_name = "FILE")]
    pub cert: Option<String>,
    /// The private key of --cert
    #[arg(long, value_name = "FILE")]
    pub key: Option<String>,
    /// Trusted certificates; the system's if not given
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<String>,
    /// Trust every server
    #[arg(long)]
    pub tls_skip_verify: bool,
    /// The name that the server's certificate must be for
    #[arg(long, value_name = "STRING")]
    pub sni: Option<String>,
    /// This text
    #[arg(long, action = ArgAction::Help)]
    pub help: Option<bool>,
}

/// `-n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// So many on each connection.
    Count(u64),
    /// All keys of the range, shared out.
    AllKeys,
}

impl FromStr for Requests {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "allkeys" => Ok(Self::AllKeys),
            _ => text
                .parse()
                .map(Self::Count)
                .map_err(|_| "a number, or allkeys".to_owned()),
        }
    }
}

/// Two numbers with a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(pub u32, pub u32);

impl FromStr for Ratio {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text
            .split_once(':')
            .and_then(|(sets, gets)| Some(Self(sets.parse().ok()?, gets.parse().ok()?)));
        pair.filter(|&Self(sets, gets)| sets > 0 || gets > 0)
            .ok_or_else(|| "two numbers with a colon, not both 0".to_owned())
    }
}

/// Two numbers with a dash, the first no larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range(pub u64, pub u64);

impl FromStr for Range {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text
            .split_once('-')
            .and_then(|(low, high)| Some(Self(low.parse().ok()?, high.parse().ok()?)));
        pair.filter(|&Self(low, high)| 0 < low && low <= high)
            .ok_or_else(|| "two numbers above 0 with a dash, the smaller first".to_owned())
    }
}

/// How keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Any, alike.
    Random,
    /// Around a median.
    Gaussian,
    /// One after the other.
    Sequential,
    /// The same, each connection in its own part.
    Parallel,
    /// Few of them most of the time.
    Zipf,
}

impl FromStr for Pattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "R" => Ok(Self::Random),
            "G" => Ok(Self::Gaussian),
            "S" => Ok(Self::Sequential),
            "P" => Ok(Self::Parallel),
            "Z" => Ok(Self::Zipf),
            _ => Err("one of R, G, S, P and Z".to_owned()),
        }
    }
}

impl Line {
    /// Checks what the types do not; the target, and the patterns of SETs and GETs.
    pub fn checked(&self) -> Result<(Target, [Pattern; 2]), String> {
        let wrong = |what: &str| Err(format!("error: {what}"));
        if self.threads == 0 || self.clients == 0 || self.pipeline == 0 || self.run_count == 0 {
            return wrong("threads, clients, pipeline and run-count must be at least 1");
        }
        if self.threads > 1024 || self.clients > 1_000_000 || self.pipeline > 1_000_000 {
            return wrong("more threads, clients or pipeline than is possible");
        }
        if self.test_time.is_some() && self.requests.is_some() {
            return wrong("--test-time and --requests are mutually exclusive.");
        }
        if self.key_maximum < self.key_minimum || self.key_maximum == u64::MAX {
            return wrong("key-maximum must be no smaller than key-minimum.");
        }
        let percentile = |p: &f64| (0.0..=100.0).contains(p);
        if !self.print_percentiles.iter().all(percentile) {
            return wrong("print-percentiles are between 0 and 100");
        }
        if !(self.key_zipf_exp > 0.0 && self.key_zipf_exp <= 5.0) {
            return wrong("key-zipf-exp must be above 0 and at most 5");
        }
        if self
            .key_stddev
            .is_some_and(|deviation| !(deviation > 0.0 && deviation.is_finite()))
            || self.key_median.is_some_and(|median| !median.is_finite())
        {
            return wrong("key-stddev and key-median must be positive numbers");
        }
        let largest = self.data_size_range.map_or(0, |range| range.1);
        if self
            .data_size
            .max(usize::try_from(largest).unwrap_or(usize::MAX))
            > DATA_BYTES_MAX
        {
            return wrong("values have 512 MiB at most");
        }
        if self.rate_limiting == Some(0) || self.reconnect_interval == Some(0) {
            return wrong("rate-limiting and reconnect-interval must be above 0");
        }
        let commands = self.command.len();
        if self.command_ratio.len() > commands || self.command_key_pattern.len() > commands {
            return wrong("--command-ratio and --command-key-pattern follow a --command");
        }
        let patterns: Option<Vec<Pattern>> = self
            .key_pattern
            .split(':')
            .map(|text| text.parse().ok())
            .collect();
        let patterns = patterns.and_then(|patterns| patterns.try_into().ok());
        let Some(patterns) = patterns else {
            return wrong("key-pattern must be in the format of \"S:R\".");
        };
        let mut target = Target::at(match &self.unix_socket {
            Some(path) => Address::Unix(path.clone()),
            None => Address::Tcp(self.host.clone(), self.port),
        });
        target.db = self.select_db;
        target.is_resp3 = self.protocol == "resp3";
        if let Some(credentials) = &self.authenticate {
            match credentials.split_once(':') {
                Some((user, password)) => {
                    target.user = Some(user.to_owned()).filter(|user| !user.is_empty());
                    target.password = Some(password.to_owned());
                }
                None => target.password = Some(credentials.clone()),
            }
        }
        if let Some(uri) = &self.uri {
            target.apply_uri(uri)?;
        }
        if self.tls {
            target.tls = Some(Tls::new(&TlsOptions {
                insecure: self.tls_skip_verify,
                sni: self.sni.clone(),
                cacert: self.cacert.clone(),
                cert: self.cert.clone(),
                key: self.key.clone(),
                ..TlsOptions::default()
            })?);
        }
        Ok((target, patterns))
    }
}
