//! The log: plain lines in Redis's form, so that what launchers and collectors look for is there.
//!
//! ```text
//! 4711:M 30 Nov 2026 15:28:26.123 * Ready to accept connections tcp
//! pid:role  date (UTC)             level: . debug, - verbose, * notice, # warning
//! ```
//!
//! With `log-format` pairs (logfmt) or JSON objects, one a line. With `syslog-enabled` what is said
//! goes to the system's log too, as RFC 3164 has it; a line that it does not take at once is lost
//! to it, as nobody waits for it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::config::{LogFormat, LogLevel};

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Notice as u8);
static FORMAT: AtomicU8 = AtomicU8::new(LogFormat::Legacy as u8);
static FILE: Mutex<Option<File>> = Mutex::new(None);
static SYSLOG: Mutex<Option<Syslog>> = Mutex::new(None);

/// Where the system takes lines.
const SYSLOG_PATH: &str = "/dev/log";

/// The system's log.
struct Syslog {
    ident: String,
    facility: u8,
    /// Connected again after an error.
    socket: Option<UnixDatagram>,
}

impl Syslog {
    fn write(&mut self, severity: u8, text: &fmt::Arguments<'_>) {
        if self.socket.is_none() {
            self.socket = UnixDatagram::unbound()
                .and_then(|socket| {
                    socket.set_nonblocking(true)?;
                    socket.connect(SYSLOG_PATH)?;
                    Ok(socket)
                })
                .ok();
        }
        let Some(socket) = &self.socket else { return };
        let line = syslog_line(self.facility, severity, &self.ident, text);
        match socket.send(line.as_bytes()) {
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => self.socket = None,
            _ => {}
        }
    }
}

fn syslog_line(facility: u8, severity: u8, ident: &str, text: &fmt::Arguments<'_>) -> String {
    let priority = facility * 8 + severity;
    format!("<{priority}>{ident}[{}]: {text}", std::process::id())
}

/// Which lines are written from now on.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// In which form lines are written from now on.
pub fn set_format(format: LogFormat) {
    FORMAT.store(format as u8, Ordering::Relaxed);
}

/// Writes to the system's log too from now on.
pub fn set_syslog(ident: &str, facility: u8) {
    *SYSLOG.lock() = Some(Syslog {
        ident: ident.to_owned(),
        facility,
        socket: None,
    });
}

/// Writes to `path` from now on, or to standard output.
///
/// # Errors
/// Where the file cannot be opened; the log stays as it was.
pub fn set_file(path: Option<&Path>) -> std::io::Result<()> {
    let file = match path {
        Some(path) => Some(OpenOptions::new().create(true).append(true).open(path)?),
        None => None,
    };
    *FILE.lock() = file;
    Ok(())
}

/// Whether lines of this level are written.
pub fn is_on(level: LogLevel) -> bool {
    level as u8 >= LEVEL.load(Ordering::Relaxed)
}

/// Writes one line.
pub fn write(level: LogLevel, text: fmt::Arguments<'_>) {
    if !is_on(level) {
        return;
    }
    let (mark, name, severity) = match level {
        LogLevel::Debug => ('.', "debug", 7),
        LogLevel::Verbose => ('-', "verbose", 6),
        LogLevel::Notice => ('*', "notice", 5),
        LogLevel::Warning | LogLevel::Nothing => ('#', "warning", 4),
    };
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let pid = std::process::id();
    let line = match FORMAT.load(Ordering::Relaxed) {
        format if format == LogFormat::Json as u8 => {
            let line = serde_json::json!({
                "pid": pid,
                "role": "primary",
                "timestamp": iso_date(now),
                "level": name,
                "message": text.to_string(),
            });
            format!("{line}\n")
        }
        format if format == LogFormat::Logfmt as u8 => {
            let date = iso_date(now);
            let text = serde_json::Value::from(text.to_string());
            format!("pid={pid} role=primary timestamp={date} level={name} message={text}\n")
        }
        _ => format!("{pid}:M {} {mark} {text}\n", date(now)),
    };
    if let Some(syslog) = &mut *SYSLOG.lock() {
        syslog.write(severity, &text);
    }
    let mut file = FILE.lock();
    // A log that cannot be written has nowhere to say so.
    let _ = match &mut *file {
        Some(file) => file.write_all(line.as_bytes()),
        None => std::io::stdout().write_all(line.as_bytes()),
    };
}

/// A warning line.
#[macro_export]
macro_rules! warning {
    ($($text:tt)*) => {
        $crate::log::write($crate::config::LogLevel::Warning, format_args!($($text)*))
    };
}

/// A notice line.
#[macro_export]
macro_rules! notice {
    ($($text:tt)*) => {
        $crate::log::write($crate::config::LogLevel::Notice, format_args!($($text)*))
    };
}

/// A verbose line.
#[macro_export]
macro_rules! verbose {
    ($($text:tt)*) => {
        $crate::log::write($crate::config::LogLevel::Verbose, format_args!($($text)*))
    };
}

/// `30 Nov 2026 15:28:26.123`, in UTC.
fn date(since_epoch: Duration) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (year, month, day) = day_of(since_epoch);
    let name = MONTHS[usize::try_from(month).unwrap_or(0)];
    format!("{day:02} {name} {year} {}", time_of(since_epoch))
}

/// `2026-11-30T15:28:26.123Z`.
fn iso_date(since_epoch: Duration) -> String {
    let (year, month, day) = day_of(since_epoch);
    let time = time_of(since_epoch);
    format!("{year}-{:02}-{day:02}T{time}Z", month + 1)
}

fn time_of(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let ms = since_epoch.subsec_millis();
    format!("{hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// The year, the month from 0 on, and the day. Days to dates: the proleptic Gregorian calendar,
/// counted in eras of 400 years that begin on 1 March.
fn day_of(since_epoch: Duration) -> (u64, u64, u64) {
    let days = since_epoch.as_secs() / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12;
    (year_of_era + era * 400 + u64::from(month < 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_syslog_have_their_priority() {
        let pid = std::process::id();
        let line = syslog_line(16, 5, "redis", &format_args!("x {}", 1));
        assert_eq!(line, format!("<133>redis[{pid}]: x 1"));
    }

    #[test]
    fn dates_are_right() {
        for (seconds, want) in [
            (0, "01 Jan 1970 00:00:00.000"),
            (951_782_400, "29 Feb 2000 00:00:00.000"),
            (951_868_800, "01 Mar 2000 00:00:00.000"),
            (1_796_052_506, "30 Nov 2026 15:28:26.000"),
            (4_102_444_799, "31 Dec 2099 23:59:59.000"),
        ] {
            assert_eq!(date(Duration::from_secs(seconds)), want);
        }
        let at = Duration::from_millis(1_796_052_506_007);
        assert_eq!(iso_date(at), "2026-11-30T15:28:26.007Z");
    }
}
