//! What machine this is, and what of it costs performance.
//!
//! Everything is read from `/proc`, `/sys` and `/etc` below a root, so that tests can have machines
//! of their own. A fact that cannot be read is left out; nothing is changed.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Network interfaces and queues that are looked at.
const INTERFACES_MAX: usize = 64;
/// Fewer open files than this do not carry many clients.
const FILES_MIN: u64 = 10_000;
/// A shorter queue of connections than this drops them when many come at once.
const BACKLOG_MIN: u64 = 511;

/// Something known of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    pub name: String,
    pub value: String,
    /// What to do about it, where it costs performance.
    pub advice: Option<String>,
}

/// Prints the facts of this machine.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    if let Some(arg) = args.get(1) {
        let help = "Usage: tidemill-benchmark doctor\n\nTells what machine this is, and what of it \
                    costs performance.";
        return match arg.as_str() {
            "--help" => {
                println!("{help}");
                Ok(ExitCode::SUCCESS)
            }
            _ => Err(format!("doctor takes no {arg}\n{help}")),
        };
    }
    let facts = examine(Path::new("/"));
    let width = facts.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    for fact in &facts {
        println!("{:width$}  {}", fact.name, fact.value);
    }
    let advised: Vec<&Fact> = facts.iter().filter(|fact| fact.advice.is_some()).collect();
    println!();
    match advised.len() {
        0 => println!("Nothing here is known to cost performance."),
        count => println!("{count} things may cost performance:"),
    }
    for fact in advised {
        println!(
            "- {}: {}",
            fact.name,
            fact.advice.as_deref().unwrap_or_default()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine below a root, `/` for this one.
pub fn examine(root: &Path) -> Vec<Fact> {
    let mut machine = Machine {
        root: root.to_owned(),
        facts: Vec::new(),
    };
    machine.processor();
    machine.system();
    machine.memory();
    machine.limits();
    machine.network();
    machine.facts
}

struct Machine {
    root: PathBuf,
    facts: Vec<Fact>,
}

impl Machine {
    fn read(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    fn tell(&mut self, name: &str, value: Option<String>, advice: Option<&str>) {
        if let Some(value) = value {
            self.facts.push(Fact {
                name: name.to_owned(),
                value,
                advice: advice.map(str::to_owned),
            });
        }
    }

    /// A file whose value is advised on.
    fn judge(&mut self, name: &str, path: &str, advice: impl Fn(&str) -> Option<&'static str>) {
        if let Some(value) = self.read(path) {
            let advice = advice(&value);
            self.tell(name, Some(value), advice);
        }
    }

    /// What stands after a name and a colon, the first time.
    fn field(&self, path: &str, name: &str) -> Option<String> {
        let text = self.read(path)?;
        let line = text
            .lines()
            .find(|line| line.split(':').next().map(str::trim) == Some(name))?;
        line.split_once(':')
            .map(|(_, value)| value.trim().to_owned())
    }

    fn processor(&mut self) {
        // Arm's file has numbers instead of a name.
        let model = self.field("proc/cpuinfo", "model name").or_else(|| {
            let part = self.field("proc/cpuinfo", "CPU part")?;
            let maker = self.field("proc/cpuinfo", "CPU implementer")?;
            Some(format!("Arm, implementer {maker}, part {part}"))
        });
        self.tell("processor", model, None);
        let cpuinfo = self.read("proc/cpuinfo").unwrap_or_default();
        let cores = cpuinfo
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count();
        let few = "server and load share them: figures of a second machine are the server's own";
        let advice = (cores < 4).then_some(few);
        self.tell("cores", (cores > 0).then(|| cores.to_string()), advice);
        if self
            .field("proc/cpuinfo", "flags")
            .is_some_and(|flags| flags.contains("hypervisor"))
        {
            let advice = "neighbours on the same machine make figures vary: repeat, and compare \
                          within one report";
            self.tell("virtual", Some("yes".to_owned()), Some(advice));
        }
        self.judge(
            "governor",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            |value| (value != "performance").then_some("set it to performance while measuring"),
        );
        self.judge(
            "clock",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            |value| {
                let is_quick = [
                    "tsc",
                    "kvm-clock",
                    "arch_sys_counter",
                    "hyperv_clocksource_tsc_page",
                ];
                (!is_quick.contains(&value))
                    .then_some("reading it is a system call: choose a quicker one")
            },
        );
        let nodes = std::fs::read_dir(self.root.join("sys/devices/system/node")).map_or(0, |dir| {
            let names = dir.flatten().map(|entry| entry.file_name());
            names
                .filter(|name| name.to_string_lossy().starts_with("node"))
                .count()
        });
        let far = "memory of the other node is slower: bind the server to one (numactl)";
        let value = (nodes > 0).then(|| nodes.to_string());
        self.tell("memory nodes", value, (nodes > 1).then_some(far));
        let load = self.read("proc/loadavg");
        let now: Option<f64> = load
            .as_ref()
            .and_then(|load| load.split(' ').next()?.parse().ok());
        let busy = "something else runs here: the figures are not the server's alone";
        let advice = now
            .is_some_and(|now| now > 0.3 * cores.max(1) as f64)
            .then_some(busy);
        self.tell("load", load, advice);
    }

    fn system(&mut self) {
        self.tell("kernel", self.read("proc/sys/kernel/osrelease"), None);
        let release = self.read("etc/os-release").unwrap_or_default();
        let name = release
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="));
        self.tell(
            "system",
            name.map(|name| name.trim_matches('"').to_owned()),
            None,
        );
    }

    fn memory(&mut self) {
        self.tell("memory", self.field("proc/meminfo", "MemTotal"), None);
        let swap = self.field("proc/meminfo", "SwapTotal");
        let slow =
            "a page that was swapped out stalls everybody: switch it off, or swappiness to 1";
        let has_swap = swap.as_deref().is_some_and(|swap| swap != "0 kB");
        self.tell("swap", swap, has_swap.then_some(slow));
        self.judge(
            "huge pages",
            "sys/kernel/mm/transparent_hugepage/enabled",
            |value| {
                value.contains("[always]").then_some(
                    "always makes servers that fork copy 2 MiB for a byte: set madvise or never",
                )
            },
        );
        self.judge("overcommit", "proc/sys/vm/overcommit_memory", |value| {
            (value == "2").then_some("2 refuses memory that would never be used: set 1")
        });
    }

    fn limits(&mut self) {
        let limits = self.read("proc/self/limits").unwrap_or_default();
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let soft = line
            .and_then(|line| line.split_whitespace().next())
            .map(str::to_owned);
        let few = soft
            .as_ref()
            .and_then(|soft| soft.parse::<u64>().ok())
            .is_some_and(|n| n < FILES_MIN);
        let advice = few.then_some("each connection is a file: raise it (ulimit -n)");
        self.tell("open files", soft, advice);
        self.judge("backlog", "proc/sys/net/core/somaxconn", |value| {
            let is_short = value
                .parse::<u64>()
                .is_ok_and(|length| length < BACKLOG_MIN);
            is_short
                .then_some("many clients at once are turned away: set net.core.somaxconn to 4096")
        });
        self.judge("ports", "proc/sys/net/ipv4/ip_local_port_range", |value| {
            let mut ends = value
                .split_whitespace()
                .filter_map(|end| end.parse::<u64>().ok());
            let count = match (ends.next(), ends.next()) {
                (Some(low), Some(high)) => high.saturating_sub(low),
                _ => return None,
            };
            (count < 28_000).then_some("few ports for connections that come and go: widen it")
        });
        self.judge("port reuse", "proc/sys/net/ipv4/tcp_tw_reuse", |value| {
            (value == "0").then_some("a load of short connections runs out of ports: set 1")
        });
    }

    fn network(&mut self) {
        let Ok(dir) = std::fs::read_dir(self.root.join("sys/class/net")) else {
            return;
        };
        let mut names: Vec<String> = dir
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            // What has no device is no card.
            .filter(|name| {
                self.root
                    .join(format!("sys/class/net/{name}/device"))
                    .exists()
            })
            .collect();
        names.sort();
        for name in names.into_iter().take(INTERFACES_MAX) {
            let base = format!("sys/class/net/{name}/queues");
            let queues = |kind: &str| {
                let Ok(dir) = std::fs::read_dir(self.root.join(&base)) else {
                    return Vec::new();
                };
                let names = dir
                    .flatten()
                    .map(|e| e.file_name().to_string_lossy().into_owned());
                let mut names: Vec<String> = names.filter(|name| name.starts_with(kind)).collect();
                names.sort();
                names
            };
            let (receive, transmit) = (queues("rx-"), queues("tx-"));
            if receive.is_empty() {
                continue;
            }
            let mask = |queue: &str, file: &str| self.read(&format!("{base}/{queue}/{file}"));
            let set = |mask: &Option<String>| {
                mask.as_deref().is_some_and(|mask| {
                    mask.bytes()
                        .any(|byte| byte.is_ascii_hexdigit() && byte != b'0')
                })
            };
            let spread = receive.iter().any(|queue| set(&mask(queue, "rps_cpus")));
            let steered = transmit.iter().any(|queue| set(&mask(queue, "xps_cpus")));
            let yes = |on: bool| if on { "set" } else { "not set" };
            let value = format!(
                "{} receive and {} transmit queues, receive steering (RPS) {}, transmit steering \
                 (XPS) {}",
                receive.len(),
                transmit.len(),
                yes(spread),
                yes(steered)
            );
            let cores: usize = self
                .facts
                .iter()
                .find(|fact| fact.name == "cores")
                .and_then(|fact| fact.value.parse().ok())
                .unwrap_or(1);
            let one = "one core takes all packets: give the card more queues, or set rps_cpus";
            let advice = (receive.len() == 1 && cores > 1 && !spread).then_some(one);
            self.tell(&format!("network {name}"), Some(value), advice);
        }
    }
}

#[cfg(test)]
mod tests;
