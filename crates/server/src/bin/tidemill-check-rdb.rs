//! Reads a snapshot whole and says whether anything is wrong with it, and where.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [path] = &args[..] else {
        println!("Usage: tidemill-check-rdb <rdb-file-name>");
        return ExitCode::FAILURE;
    };
    if path == "-v" || path == "--version" {
        println!("tidemill-check-rdb v={}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    match check(path) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

fn check(path: &OsString) -> io::Result<bool> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |since| since.as_millis());
    let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
    let mut out = io::BufWriter::new(io::stdout().lock());
    // Whatever it is (a pipe, too), it is read from front to back once.
    let file = File::open(path)?;
    let good = persist::rdb::check(file, &path.to_string_lossy(), now_ms, &mut out)?;
    out.flush()?;
    Ok(good)
}
