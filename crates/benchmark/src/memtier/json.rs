//! The results as JSON, in the layout that readers of `memtier_benchmark`'s know.

use super::mix::Kind;
use super::options::Line;
use super::table::{mean_ms, percentile_ms};
use super::{REQUESTS, Run};
use crate::load::{Class, per_second};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde_json::{Map, Value, json};

/// What the layout calls its version.
const FORMAT_VERSION: u32 = 2;

/// The configuration as the layout spells it.
pub fn configuration(line: &Line) -> Value {
    let path = |path: &Option<std::path::PathBuf>| match path {
        Some(path) => json!(path.display().to_string()),
        None => Value::Null,
    };
    let range = |range: &Option<super::options::Range>| match range {
        Some(range) => format!("{}-{}", range.0, range.1),
        None => "0-0".to_owned(),
    };
    // In two pieces: the macro counts its entries against the compiler's limit of recursion.
    let first = json!({
        "server": line.host,
        "port": line.port,
        "uri": line.uri.clone().unwrap_or_default(),
        "unix socket": path(&line.unix_socket),
        "address family": "Unspecified",
        "protocol": line.protocol,
        "out_file": path(&line.out_file),
        "tls": if line.tls { "yes" } else { "no" },
        "cert": line.cert,
        "key": line.key,
        "cacert": line.cacert,
        "tls_skip_verify": if line.tls_skip_verify { "yes" } else { "no" },
        "sni": line.sni,
        "client_stats": null,
        "run_count": line.run_count,
        "debug": 0,
        "requests": match line.test_time { Some(_) => 0, None => line.requests_per_connection() },
        "rate_limit": line.rate_limiting.unwrap_or(0),
        "clients": line.clients,
        "threads": line.threads,
        "test_time": line.test_time.unwrap_or(0),
        "ratio": format!("{}:{}", line.ratio.0, line.ratio.1),
        "pipeline": line.pipeline,
        "data_size": line.data_size,
        "data_offset": 0,
        "random_data": line.random_data.to_string(),
        "data_size_range": range(&line.data_size_range),
        "data_size_list": line.data_size_list.clone().unwrap_or_default(),
        "data_size_pattern": line.data_size_pattern,
        "expiry_range": range(&line.expiry_range),
    });
    let rest = json!({
        "data_import": null,
        "data_verify": "false",
        "verify_only": "false",
        "generate_keys": "false",
        "key_prefix": line.key_prefix,
        "key_minimum": line.key_minimum,
        "key_maximum": line.key_maximum,
        "key_pattern": line.key_pattern,
        "key_stddev": line.key_stddev.unwrap_or(0.0),
        "key_median": line.key_median.unwrap_or(0.0),
        "key_zipf_exp": line.key_zipf_exp,
        "reconnect_interval": line.reconnect_interval.unwrap_or(0),
        "connection_timeout": 0,
        "thread_conn_start_min_jitter_micros": 0,
        "thread_conn_start_max_jitter_micros": 0,
        "multi_key_get": 0,
        // That there is a password, not which.
        "authenticate": if line.authenticate.is_some() { "***" } else { "" },
        "select-db": line.select_db,
        "no-expiry": "false",
        "wait-ratio": "0:0",
        "num-slaves": "0:0",
        "wait-timeout": "0-0",
        "print-all-runs": line.print_all_runs.to_string(),
    });
    match (first, rest) {
        (Value::Object(mut first), Value::Object(rest)) => {
            first.extend(rest);
            Value::Object(first)
        }
        _ => unreachable!("both are objects"),
    }
}

/// How the run was laid out.
pub fn information(line: &Line) -> Value {
    let length = match line.test_time {
        Some(seconds) => ("Seconds", seconds),
        None => ("Requests per client", line.requests_per_connection()),
    };
    json!({
        "Threads": line.threads,
        "Connections per thread": line.clients,
        length.0: length.1,
        "Format version": FORMAT_VERSION,
    })
}

/// The figures of one run.
pub fn stats(run: &Run, kinds: &[Kind], percentiles: &[f64]) -> Value {
    let mut map = Map::new();
    map.insert(
        "Runtime".to_owned(),
        json!({
            "Start time": run.started_ms,
            "Finish time": run.started_ms + run.took().as_millis() as u64,
            "Total duration": run.took().as_millis() as u64,
            "Time unit": "MILLISECONDS",
            "Interrupted": run.outcome.is_interrupted.to_string(),
        }),
    );
    for (kind, class) in kinds.iter().zip(&run.outcome.classes) {
        map.insert(
            kind.title.clone(),
            of_class(class, kind.has_hits, run, percentiles),
        );
    }
    if run.is_standard {
        map.insert(
            "Waits".to_owned(),
            of_class(&Class::default(), false, run, percentiles),
        );
    }
    let has_hits = kinds.iter().any(|kind| kind.has_hits);
    map.insert(
        "Totals".to_owned(),
        of_class(&run.total(kinds), has_hits, run, percentiles),
    );
    Value::Object(map)
}

fn of_class(class: &Class, has_hits: bool, run: &Run, percentiles: &[f64]) -> Value {
    let rate = |count: u64| per_second(count as f64, run.took());
    let kb = |bytes: u64| per_second(bytes as f64 / 1024.0, run.took());
    let times = run.times(class);
    let mut seconds = Map::new();
    for (at, second) in class.seconds.iter().enumerate() {
        let mut map = times_of(&second.latency, second.count);
        map.insert("Bytes RX".to_owned(), json!(second.bytes_in));
        map.insert("Bytes TX".to_owned(), json!(second.bytes_out));
        map.extend(percentiles_of(&second.latency, percentiles));
        seconds.insert(at.to_string(), Value::Object(map));
    }
    let mut quantiles = percentiles_of(times, percentiles);
    quantiles.insert(
        "Histogram log format".to_owned(),
        json!({ "Compressed Histogram": compressed(times) }),
    );
    let hits = |count: u64| if has_hits { rate(count) } else { 0.0 };
    let mut map = times_of(times, class.count);
    map.extend([
        ("Ops/sec".to_owned(), json!(rate(class.count))),
        ("Hits/sec".to_owned(), json!(hits(class.hits))),
        ("Misses/sec".to_owned(), json!(hits(class.misses))),
        (
            "Connection Errors/sec".to_owned(),
            json!(rate(run.outcome.connection_errors)),
        ),
        (
            "Connection Errors".to_owned(),
            json!(run.outcome.connection_errors),
        ),
        ("Latency".to_owned(), json!(mean_ms(times))),
        (
            "KB/sec".to_owned(),
            json!(kb(class.bytes_in + class.bytes_out)),
        ),
        (
            "KB/sec RX/TX".to_owned(),
            json!(kb(class.bytes_in + class.bytes_out)),
        ),
        ("KB/sec RX".to_owned(), json!(kb(class.bytes_in))),
        ("KB/sec TX".to_owned(), json!(kb(class.bytes_out))),
        ("Time-Serie".to_owned(), Value::Object(seconds)),
        ("Percentile Latencies".to_owned(), Value::Object(quantiles)),
    ]);
    Value::Object(map)
}

fn times_of(times: &Histogram<u64>, count: u64) -> Map<String, Value> {
    let ms = |us: u64| us as f64 / 1000.0;
    let sum = (mean_ms(times) * times.len() as f64).round() as u64;
    let (least, most) = match times.is_empty() {
        true => (0.0, 0.0),
        false => (ms(times.min()), ms(times.max())),
    };
    Map::from_iter([
        ("Count".to_owned(), json!(count)),
        ("Average Latency".to_owned(), json!(mean_ms(times))),
        ("Accumulated Latency".to_owned(), json!(sum)),
        ("Min Latency".to_owned(), json!(least)),
        ("Max Latency".to_owned(), json!(most)),
    ])
}

fn percentiles_of(times: &Histogram<u64>, percentiles: &[f64]) -> Map<String, Value> {
    let one = |&percentile: &f64| {
        let ms = json!(percentile_ms(times, percentile));
        (format!("p{percentile:.2}"), ms)
    };
    percentiles.iter().map(one).collect()
}

/// The whole histogram as other tools of its kind read it.
fn compressed(times: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(times, &mut bytes) {
        Ok(_) => BASE64.encode(&bytes),
        Err(_) => String::new(),
    }
}

impl Line {
    /// Requests that each connection sends where no time is given.
    pub fn requests_per_connection(&self) -> u64 {
        use super::options::Requests;
        match self.requests {
            Some(Requests::Count(requests)) => requests,
            Some(Requests::AllKeys) => {
                let keys = self.key_maximum - self.key_minimum + 1;
                keys.div_ceil((self.threads * self.clients) as u64)
            }
            None => REQUESTS,
        }
    }
}
