//! The log: plain lines in Redis's form, so that what launchers and collectors look for is there.
//!
//! ```text
//! 4711:M 30 Nov 2026 15:28:26.123 * Ready to accept connections tcp
//! pid:role  date (UTC)             level: . debug, - verbose, * notice, # warning
//! ```

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::config::LogLevel;

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Notice as u8);
static FILE: Mutex<Option<File>> = Mutex::new(None);

/// Which lines are written from now on.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
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
    let mark = match level {
        LogLevel::Debug => '.',
        LogLevel::Verbose => '-',
        LogLevel::Notice => '*',
        LogLevel::Warning | LogLevel::Nothing => '#',
    };
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let line = format!("{}:M {} {mark} {text}\n", std::process::id(), date(now));
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

/// `30 Nov 2026 15:28:26.123`, in UTC. Days to dates: the proleptic Gregorian calendar, counted in
/// eras of 400 years that begin on 1 March.
fn date(since_epoch: Duration) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = since_epoch.as_secs();
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    let name = MONTHS[usize::try_from(month).unwrap_or(0)];
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let ms = since_epoch.subsec_millis();
    format!("{day:02} {name} {year} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
