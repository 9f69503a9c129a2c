//! What `tidemill-check-aof` does: it says what Redis's tool says of the files of a log, with its
//! exit codes.
//!
//! It takes a manifest, or one file. What it is, the file itself says; only regular files are read,
//! so that a pipe in a directory's place makes nobody wait.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::Path;

use engine::dump::{Build, Dialect};
use engine::settings::Settings;
use structure::hash::Seed;

use crate::aof::{self, Reason, Scan};
use crate::manifest::Manifest;
use crate::rdb;

const USAGE: &str = "Usage: tidemill-check-aof [--fix|--truncate-to-timestamp $timestamp] \
    <file.manifest|file.aof>";

/// What was asked for.
#[derive(Clone, Copy)]
struct Wanted {
    fixes: bool,
    until_s: Option<u64>,
}

/// What came of one file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It is whole, or is now.
    Fine,
    /// It was cut back to the time asked for: what follows it is too late.
    CutToTime,
}

/// Why it ends with an error: what is to be said last.
struct Stop(String);

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self(crate::log::plain(&error))
    }
}

/// Runs the tool; returns its exit code.
pub fn run(args: &[OsString], input: &mut dyn BufRead, out: &mut dyn Write) -> u8 {
    let text: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let words: Vec<&str> = text.iter().map(AsRef::as_ref).collect();
    let mut wanted = Wanted {
        fixes: false,
        until_s: None,
    };
    let name = match words.as_slice() {
        ["-v" | "--version"] => {
            let _ = writeln!(out, "tidemill-check-aof v={}", env!("CARGO_PKG_VERSION"));
            return 0;
        }
        [_] => &args[0],
        ["--fix", _] => {
            wanted.fixes = true;
            &args[1]
        }
        ["--truncate-to-timestamp", time, _] => match time.parse() {
            Ok(until_s) => {
                wanted.until_s = Some(until_s);
                &args[2]
            }
            Err(_) => {
                let _ = writeln!(out, "Invalid timestamp, aborting...");
                return 1;
            }
        },
        _ => {
            let _ = writeln!(out, "{USAGE}");
            return 1;
        }
    };
    match check(Path::new(name), wanted, input, out) {
        Ok(()) => 0,
        Err(Stop(text)) => {
            let _ = writeln!(out, "{text}");
            1
        }
    }
}

fn check(
    path: &Path,
    wanted: Wanted,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let shown = path.display().to_string();
    let mut file = open(path)?;
    let mut head = Vec::new();
    (&mut file).take(1024 * 1024).read_to_end(&mut head)?;
    if !head.starts_with(b"*")
        && let Ok(manifest) = Manifest::parse(&head)
        && !manifest.is_empty()
    {
        return check_all(path, &manifest, wanted, input, out);
    }
    writeln!(out, "Start checking Old-Style AOF")?;
    check_file(path, &shown, "AOF", true, wanted, input, out).map(drop)
}

fn open(path: &Path) -> Result<File, Stop> {
    let shown = path.display();
    let cannot = |error| {
        Stop(format!(
            "Cannot open file {shown}: {}",
            crate::log::plain(&error)
        ))
    };
    // Opening a pipe would wait for somebody to write into it.
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(Stop(format!("Cannot read file: {shown}")));
    }
    File::open(path).map_err(cannot)
}

fn check_all(
    path: &Path,
    manifest: &Manifest,
    wanted: Wanted,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let directory = path.parent().unwrap_or(Path::new(""));
    writeln!(out, "Start checking Multi Part AOF")?;
    let count = manifest.files().count();
    let mut is_past = false;
    if let Some(base) = &manifest.base {
        let at = directory.join(&base.name);
        let form = if is_snapshot(&at)? { "RDB" } else { "AOF" };
        writeln!(out, "Start to check BASE AOF ({form} format).")?;
        let outcome = check_file(&at, &base.name, "BASE AOF", count == 1, wanted, input, out)?;
        is_past = outcome == Outcome::CutToTime;
    }
    if !manifest.increments.is_empty() {
        writeln!(out, "Start to check INCR files.")?;
    }
    for (number, entry) in (1..).zip(&manifest.increments) {
        let is_last = number == manifest.increments.len();
        let at = directory.join(&entry.name);
        if is_past {
            return Err(Stop(format!(
                "Failed to truncate AOF {} to timestamp: a file follows that is later. Remove it \
                 from the manifest.",
                entry.name
            )));
        }
        let outcome = check_file(&at, &entry.name, "INCR AOF", is_last, wanted, input, out)?;
        is_past = outcome == Outcome::CutToTime;
    }
    writeln!(out, "All AOF files and manifest are valid")?;
    Ok(())
}

fn is_snapshot(path: &Path) -> Result<bool, Stop> {
    let mut head = Vec::new();
    open(path)?.take(6).read_to_end(&mut head)?;
    Ok(head.starts_with(b"REDIS") || head.starts_with(b"VALKEY"))
}

fn check_file(
    path: &Path,
    name: &str,
    what: &str,
    is_last: bool,
    wanted: Wanted,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<Outcome, Stop> {
    let size = open(path)?.metadata()?.len();
    if size == 0 {
        writeln!(out, "{what} {name} is empty")?;
        return Ok(Outcome::Fine);
    }
    let origin = match is_snapshot(path)? {
        true => check_snapshot(path, out)?,
        false => 0,
    };
    let from = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(origin))?;
        Ok(file)
    };
    let found = aof::scan(from, origin, size, wanted.until_s)?;
    if let Some(past) = found.past {
        return cut_to_time(path, name, what, is_last, past, wanted, out);
    }
    say_fault(&found, name, out)?;
    if let Some(until_s) = wanted.until_s.filter(|_| found.fault.is_none()) {
        writeln!(out, "Truncate nothing in AOF {name} to timestamp {until_s}")?;
        writeln!(out, "{what} {name} is valid")?;
        return Ok(Outcome::Fine);
    }
    let (valid, lines) = (found.valid, found.lines);
    let diff = size - valid;
    writeln!(
        out,
        "AOF analyzed: filename={name}, size={size}, ok_up_to={valid}, ok_up_to_line={lines}, \
         diff={diff}"
    )?;
    if found.fault.is_none() {
        writeln!(out, "{what} {name} is valid")?;
        return Ok(Outcome::Fine);
    }
    if !wanted.fixes {
        return Err(Stop(format!(
            "{what} {name} is not valid. Use the --fix option to try fixing it."
        )));
    }
    if !is_last {
        return Err(Stop(format!(
            "Failed to truncate AOF {name} because it is not the last file"
        )));
    }
    write!(
        out,
        "This will shrink the AOF {name} from {size} bytes, with {diff} bytes, to {valid} bytes\n\
         Continue? [y/N]: "
    )?;
    out.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    if !answer.starts_with(['y', 'Y']) {
        return Err(Stop("Aborting...".to_owned()));
    }
    truncate(path, valid)?;
    writeln!(out, "Successfully truncated AOF {name}")?;
    Ok(Outcome::Fine)
}

fn cut_to_time(
    path: &Path,
    name: &str,
    what: &str,
    is_last: bool,
    past: u64,
    wanted: Wanted,
    out: &mut dyn Write,
) -> Result<Outcome, Stop> {
    let until_s = wanted.until_s.unwrap_or(0);
    if past == 0 {
        return Err(Stop(format!(
            "{what} {name} has nothing before timestamp {until_s}, aborting..."
        )));
    }
    if !is_last {
        return Err(Stop(format!(
            "Failed to truncate AOF {name} to timestamp {until_s} to offset {past} because it is \
             not the last file.\nIf you insist, please delete all files after this file according \
             to the manifest file and delete the corresponding records in manifest file manually. \
             Then re-run tidemill-check-aof."
        )));
    }
    truncate(path, past)?;
    writeln!(
        out,
        "Successfully truncated AOF {name} to timestamp {until_s}"
    )?;
    Ok(Outcome::CutToTime)
}

fn truncate(path: &Path, len: u64) -> Result<(), Stop> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(len)?;
    file.sync_all()?;
    Ok(())
}

fn say_fault(found: &Scan, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(fault) = &found.fault else {
        return Ok(());
    };
    let at = fault.at;
    match &fault.reason {
        Reason::Format | Reason::Zeros => writeln!(out, "AOF {name} format error"),
        Reason::EndInCommand => Ok(()),
        Reason::Multi | Reason::Exec => {
            writeln!(out, "0x{at:16x}: {} in AOF {name}", fault.reason)
        }
        reason => writeln!(out, "0x{at:16x}: {reason}"),
    }
}

/// Looks through the snapshot that a file begins with; returns where it ends.
fn check_snapshot(path: &Path, out: &mut dyn Write) -> Result<u64, Stop> {
    writeln!(out, "[offset 0] Checking RDB file {}", path.display())?;
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let build = Build {
        settings: &settings,
        seed: &seed,
        dialect: Dialect::Redis,
    };
    let options = rdb::Options {
        checksum: true,
        skip_unsupported: true,
    };
    let bad = |error: rdb::Error| {
        Stop(format!(
            "{error}\nRDB preamble of AOF file is not sane, aborting."
        ))
    };
    let mut reader = rdb::Reader::new(open(path)?, build, options).map_err(bad)?;
    let mut keys = 0;
    loop {
        match reader.next_part().map_err(bad)? {
            rdb::Part::End => break,
            rdb::Part::Key(_) => keys += 1,
            _ => {}
        }
    }
    let end = reader.offset();
    writeln!(out, "[offset {end}] \\o/ RDB looks OK! \\o/")?;
    writeln!(out, "[info] {keys} keys read")?;
    writeln!(out, "RDB preamble is OK, proceeding with AOF tail...")?;
    Ok(end)
}
