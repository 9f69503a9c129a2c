//! What `--check-system` looks at: settings of the machine that cost latency or lose data.
//!
//! Each check reads one file of the kernel. A file that is not there (another kernel, a
//! container) is no finding.

use std::fmt::Write;

/// Runs all checks: the report, and whether nothing was found.
pub fn check() -> (String, bool) {
    let mut report = String::new();
    let mut sound = true;
    for (name, path, judge) in CHECKS {
        let finding = std::fs::read_to_string(path)
            .ok()
            .and_then(|text| judge(text.trim()));
        sound &= finding.is_none();
        let _ = match finding {
            None => writeln!(report, "[{name}]...OK"),
            Some(advice) => writeln!(report, "[{name}]...WARNING:\n{advice}"),
        };
    }
    (report, sound)
}

/// Gives advice where a file's text calls for it.
type Judge = fn(&str) -> Option<&'static str>;

const CHECKS: &[(&str, &str, Judge)] = &[
    (
        "clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        |text| {
            matches!(text, "hpet" | "acpi_pm" | "xen").then_some(
                "Reading the time needs a system call with this clock source. Choose a faster \
                 one, such as tsc or kvm-clock, in that file.",
            )
        },
    ),
    ("overcommit", "/proc/sys/vm/overcommit_memory", |text| {
        (text == "2").then_some(
            "The kernel refuses memory that might not be used. Set vm.overcommit_memory to 0 or \
             1 so that the server does not fail while memory is free.",
        )
    }),
    (
        "THP",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        |text| {
            text.contains("[always]").then_some(
                "Huge pages are forced on every program, which costs latency and memory. Write \
             madvise to that file.",
            )
        },
    ),
    ("somaxconn", "/proc/sys/net/core/somaxconn", |text| {
        text.parse::<u32>().is_ok_and(|most| most < 511).then_some(
            "Fewer connections can wait to be accepted than the default tcp-backlog asks for. \
             Raise net.core.somaxconn to 511 or more.",
        )
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_come_from_the_text() {
        let judge = |name: &str, text: &str| {
            let (_, _, judge) = CHECKS
                .iter()
                .find(|(each, ..)| *each == name)
                .expect("a check");
            judge(text).is_some()
        };
        assert!(judge("clocksource", "hpet"));
        assert!(!judge("clocksource", "tsc"));
        assert!(judge("overcommit", "2"));
        assert!(!judge("overcommit", "0"));
        assert!(judge("THP", "[always] madvise never"));
        assert!(!judge("THP", "always [madvise] never"));
        assert!(judge("somaxconn", "128"));
        assert!(!judge("somaxconn", "4096"));
        assert!(!judge("somaxconn", "many"));
    }

    #[test]
    fn every_check_is_reported() {
        let (report, sound) = check();
        assert_eq!(report.matches("]...").count(), CHECKS.len());
        assert_eq!(sound, !report.contains("WARNING"));
    }
}
