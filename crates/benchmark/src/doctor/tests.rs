use super::*;

/// A machine made of files, gone at the end.
struct Root(PathBuf);

impl Root {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let name = format!("tidemill-doctor-{}-{name}", std::process::id());
        let root = Self(std::env::temp_dir().join(name));
        for (path, text) in files {
            let path = root.0.join(path);
            let folder = path.parent().expect("files are in folders");
            std::fs::create_dir_all(folder).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        root
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn advised(facts: &[Fact]) -> Vec<&str> {
    let with = facts.iter().filter(|fact| fact.advice.is_some());
    with.map(|fact| fact.name.as_str()).collect()
}

#[test]
fn what_costs_performance_is_advised_on() {
    let root = Root::new(
        "bad",
        &[
            (
                "proc/cpuinfo",
                "processor : 0\nmodel name : Slow\nflags : fpu hypervisor\nprocessor : 1\n",
            ),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet\n",
            ),
            ("proc/loadavg", "3.10 1.00 1.00 1/2 3\n"),
            ("proc/meminfo", "MemTotal:  1000 kB\nSwapTotal:  500 kB\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never\n",
            ),
            ("proc/sys/net/core/somaxconn", "128\n"),
            (
                "proc/self/limits",
                "Max open files            1024                 4096   files\n",
            ),
            ("sys/class/net/lo/queues/rx-0/rps_cpus", "00\n"),
            ("sys/class/net/eth0/device/vendor", "0x1af4\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00\n"),
            ("sys/class/net/eth0/queues/tx-0/xps_cpus", "03\n"),
        ],
    );
    let facts = examine(&root.0);
    assert_eq!(
        advised(&facts),
        [
            "cores",
            "virtual",
            "governor",
            "clock",
            "load",
            "swap",
            "huge pages",
            "open files",
            "backlog",
            "network eth0"
        ]
    );
    let network = facts.last().expect("the network");
    assert_eq!(
        network.value,
        "1 receive and 1 transmit queues, receive steering (RPS) not set, transmit steering (XPS) \
         set"
    );
}

#[test]
fn a_good_machine_is_left_alone() {
    let cpuinfo = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd49\n\nprocessor : 1\n\
                   processor : 2\nprocessor : 3\n";
    let root = Root::new(
        "good",
        &[
            ("proc/cpuinfo", cpuinfo),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance\n",
            ),
            ("proc/loadavg", "0.01 0.00 0.00 1/2 3\n"),
            ("proc/sys/net/core/somaxconn", "4096\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
        ],
    );
    let facts = examine(&root.0);
    assert_eq!(advised(&facts), Vec::<&str>::new());
    assert_eq!(facts[0].value, "Arm, implementer 0x41, part 0xd49");
    assert!(examine(&root.0.join("nowhere")).is_empty());
}
