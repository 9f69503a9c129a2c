//! What a report measures: targets, workloads, pipelines and repeats, from a TOML file.
//!
//! A preset is such a file in the program. `scale` makes any of them smaller by one number, so that
//! what a vendor has run for days on a big machine can be run here in minutes.

use crate::capacity::Objective;
use crate::workload::Workload;
use serde::Deserialize;
use std::str::FromStr;

/// Repeats, and cells of the matrix, at most.
const REPEATS_MAX: usize = 10_000;
const CELLS_MAX: usize = 10_000;

/// The presets by name.
pub const PRESETS: [(&str, &str); 4] = [
    ("azure-cobalt", include_str!("presets/azure-cobalt.toml")),
    ("aws-graviton", include_str!("presets/aws-graviton.toml")),
    (
        "alibaba-yitian",
        include_str!("presets/alibaba-yitian.toml"),
    ),
    ("azure-altra", include_str!("presets/azure-altra.toml")),
];

/// The whole matrix.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// What the page is called.
    pub title: String,
    /// A paragraph under it.
    #[serde(default)]
    pub about: String,
    /// How often each cell is measured.
    #[serde(default = "five")]
    pub repeats: usize,
    /// What holds for every workload that does not say otherwise.
    #[serde(flatten)]
    pub common: Settings,
    /// Who is measured.
    #[serde(default, rename = "target")]
    pub targets: Vec<TargetSpec>,
    /// What is sent.
    #[serde(rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
}

fn five() -> usize {
    5
}

/// Settings that a workload may have of its own.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Settings {
    /// Requests of each instance in all; or
    pub requests: Option<u64>,
    /// seconds.
    pub seconds: Option<f64>,
    /// Threads of the generator for each instance.
    pub threads: Option<usize>,
    /// Connections of each thread.
    pub clients: Option<usize>,
    /// Requests in flight on a connection.
    pub pipelines: Option<Vec<usize>>,
    /// Keys that are drawn from.
    pub keys: Option<u64>,
    /// Bytes of a value.
    pub data_bytes: Option<usize>,
    /// Instances of each target that are loaded at once; with an objective, at most.
    pub instances: Option<usize>,
    /// Raise the instances until this breaks, and report the sum before.
    pub objective: Option<String>,
}

/// Who is measured: a command that starts it, or where it listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    pub name: String,
    /// With `{port}` and `{dir}`.
    pub command: Option<String>,
    /// As `host:port` or a URI.
    pub address: Option<String>,
    /// What the machine costs.
    pub price_per_hour: Option<f64>,
}

impl FromStr for TargetSpec {
    type Err = String;

    /// `NAME=COMMAND` or `NAME=HOST:PORT`; what has a `{port}` is a command.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or("NAME=COMMAND or NAME=HOST:PORT")?;
        let is_command = value.contains("{port}");
        Ok(Self {
            name: name.to_owned(),
            command: is_command.then(|| value.to_owned()),
            address: (!is_command).then(|| value.to_owned()),
            price_per_hour: None,
        })
    }
}

/// What is sent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    pub name: String,
    /// A test of redis-benchmark's; or
    pub test: Option<String>,
    /// SETs to GETs.
    pub ratio: Option<String>,
    #[serde(flatten)]
    pub own: Settings,
}

/// One row of the matrix: a workload at a pipeline.
#[derive(Debug, Clone)]
pub struct Case {
    pub workload_name: String,
    pub test: Option<String>,
    pub pipeline: usize,
    pub workload: Workload,
    pub keys: u64,
    pub data_bytes: usize,
    /// Requests in all, unless there is a time.
    pub requests: u64,
    pub seconds: Option<f64>,
    pub instances: usize,
    pub objective: Option<Objective>,
}

impl Matrix {
    /// Reads a matrix; the error names the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        let matrix: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if matrix.repeats == 0 || matrix.repeats > REPEATS_MAX {
            return Err(format!("repeats are 1 to {REPEATS_MAX}"));
        }
        if matrix.workloads.is_empty() {
            return Err("there is no [[workload]]".to_owned());
        }
        Ok(matrix)
    }

    /// Makes it smaller, or larger: requests, seconds, keys, repeats, threads and instances.
    pub fn scale(&mut self, scale: f64) {
        if self.repeats > 1 {
            // One run has no spread to tell.
            self.repeats = (times(self.repeats as u64, scale) as usize).clamp(2, REPEATS_MAX);
        }
        self.common.scale(scale);
        for workload in &mut self.workloads {
            workload.own.scale(scale);
        }
    }

    /// The rows, checked.
    pub fn cases(&self) -> Result<Vec<Case>, String> {
        let mut cases = Vec::new();
        for spec in &self.workloads {
            let own = &spec.own;
            let common = &self.common;
            let keys = own.keys.or(common.keys).unwrap_or(100_000);
            let data_bytes = own.data_bytes.or(common.data_bytes).unwrap_or(3);
            let failed = |why: String| format!("workload {}: {why}", spec.name);
            let workload = match (&spec.test, &spec.ratio) {
                (Some(test), None) => Workload::test(test, keys, data_bytes),
                (None, Some(ratio)) => Workload::mix(ratio, keys, data_bytes),
                _ => Err("has either a test or a ratio".to_owned()),
            };
            let workload = workload.map_err(failed)?;
            let threads = own.threads.or(common.threads).unwrap_or(1);
            let clients = own.clients.or(common.clients).unwrap_or(50);
            let seconds = own.seconds.or(common.seconds);
            if seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds <= 86_400.0)) {
                return Err(failed("seconds are above 0 and at most a day".to_owned()));
            }
            let objective = own.objective.as_ref().or(common.objective.as_ref());
            let objective = objective
                .map(|text| text.parse())
                .transpose()
                .map_err(failed)?;
            if objective.is_some() && seconds.is_none() {
                return Err(failed(
                    "an objective is searched by seconds, not requests".to_owned(),
                ));
            }
            let pipelines = own.pipelines.clone().or(common.pipelines.clone());
            for pipeline in pipelines.unwrap_or_else(|| vec![1]) {
                cases.push(Case {
                    workload_name: spec.name.clone(),
                    test: spec.test.clone(),
                    pipeline,
                    workload: workload.clone().over(threads, clients, pipeline),
                    keys,
                    data_bytes,
                    requests: own.requests.or(common.requests).unwrap_or(100_000),
                    seconds,
                    instances: own.instances.or(common.instances).unwrap_or(1).max(1),
                    objective,
                });
            }
        }
        if cases.len() * self.targets.len() > CELLS_MAX {
            return Err(format!("the matrix has more than {CELLS_MAX} cells"));
        }
        Ok(cases)
    }
}

impl Settings {
    fn scale(&mut self, scale: f64) {
        self.requests = self.requests.map(|requests| times(requests, scale));
        self.seconds = self.seconds.map(|seconds| (seconds * scale).max(0.1));
        self.keys = self.keys.map(|keys| times(keys, scale));
        self.threads = self
            .threads
            .map(|threads| times(threads as u64, scale) as usize);
        self.instances = self
            .instances
            .map(|count| times(count as u64, scale) as usize);
    }
}

/// Rounded up, at least 1.
fn times(number: u64, scale: f64) -> u64 {
    ((number as f64 * scale).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_right_and_scale() {
        for (name, text) in PRESETS {
            let mut matrix = Matrix::parse(text).unwrap_or_else(|why| panic!("{name}: {why}"));
            let before = matrix.cases().unwrap_or_else(|why| panic!("{name}: {why}"));
            matrix.scale(0.01);
            let after = matrix.cases().expect("as right as before");
            assert_eq!(before.len(), after.len());
            assert!(matrix.repeats <= 2, "{name}");
            for (before, after) in before.iter().zip(&after) {
                assert!(after.requests < before.requests || after.seconds < before.seconds);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| match Matrix::parse(text) {
            Ok(matrix) => matrix.cases().map(drop).unwrap_err(),
            Err(why) => why,
        };
        assert!(wrong("title = 'x'\nrepeats = 0\n[[workload]]\nname = 'a'").contains("repeats"));
        assert!(wrong("title = 'x'\n[[workload]]\nname = 'a'").contains("either a test"));
        let test = "title = 'x'\n[[workload]]\nname = 'a'\ntest = 'nosuch'";
        assert!(wrong(test).contains("nosuch"));
        assert!(wrong("title = 'x'").contains("workload"));
        let workload = "[[workload]]\nname = 'a'\ntest = 'get'\n";
        for unknown in [
            format!("title = 'x'\nrequest = 5\n{workload}"),
            format!("title = 'x'\n{workload}pipeline = 5"),
            format!("title = 'x'\n{workload}[[target]]\nname = 'a'\nport = 1"),
        ] {
            assert!(wrong(&unknown).contains("unknown field"), "{unknown}");
        }
    }
}
