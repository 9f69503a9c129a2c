//! What `tidemill-check-rdb` says of a file: line for line as Redis's tool, so that scripts which
//! read its output go on.

use std::io::{self, Read, Write};

use engine::dump::{Build, Dialect};
use engine::settings::Settings;
use structure::hash::Seed;

use super::read::{Error, Options, Part, Problem, Reader, Value};

/// Longer strings than this are no strings of any server.
const STRING_BYTES_MAX: u64 = 1 << 40;

/// What is counted.
#[derive(Default)]
struct Counts {
    keys: u64,
    timed: u64,
    dead: u64,
    timed_hashes: u64,
}

/// Reads all of a file called `name` and says what is in it, `now_ms` being the time. True where
/// nothing is wrong.
///
/// # Errors
/// Where it could not be said.
pub fn check(file: impl Read, name: &str, now_ms: u64, out: &mut impl Write) -> io::Result<bool> {
    writeln!(out, "[offset 0] Checking RDB file {name}")?;
    let mut counts = Counts::default();
    let checked = check_parts(file, now_ms, &mut counts, out)?;
    if let Err(error) = &checked {
        say_error(error, out)?;
    }
    writeln!(out, "[info] {} keys read", counts.keys)?;
    writeln!(out, "[info] {} expires", counts.timed)?;
    writeln!(out, "[info] {} already expired", counts.dead)?;
    writeln!(out, "[info] {} subexpires", counts.timed_hashes)?;
    Ok(checked.is_ok())
}

fn check_parts(
    file: impl Read,
    now_ms: u64,
    counts: &mut Counts,
    out: &mut impl Write,
) -> io::Result<Result<(), Error>> {
    let settings = Settings {
        string_bytes_max: STRING_BYTES_MAX,
        ..Settings::default()
    };
    let seed = Seed::new([0, 0]);
    let build = Build {
        settings: &settings,
        seed: &seed,
        dialect: Dialect::Redis,
    };
    let options = Options {
        checksum: true,
        skip_unsupported: true,
    };
    let mut reader = match Reader::new(file, build, options) {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        let line = match reader.next_part() {
            Err(error) => return Ok(Err(error)),
            Ok(Part::Aux { name, value }) => {
                let (name, value) = (name.escape_ascii(), value.escape_ascii());
                format!("AUX FIELD {name} = '{value}'")
            }
            Ok(Part::Db(db)) => format!("Selecting DB ID {db}"),
            Ok(Part::Key(key)) => {
                counts.keys += 1;
                counts.timed += u64::from(key.deadline.is_some());
                counts.dead += u64::from(key.deadline.is_some_and(|at| at < now_ms));
                if let Value::Object(object) = &key.value {
                    counts.timed_hashes += u64::from(object.has_field_deadlines());
                }
                continue;
            }
            Ok(Part::Library(source)) => {
                let line = source
                    .split(|&byte| byte == b'\n')
                    .next()
                    .unwrap_or_default();
                let line = &line[..line.len().min(128)];
                format!("FUNCTION LIBRARY '{}'", line.escape_ascii())
            }
            Ok(Part::Skipped(what)) => format!("Passing over {what}"),
            Ok(Part::Sizes { .. }) => continue,
            Ok(Part::End) => break,
        };
        writeln!(out, "[offset {}] {line}", reader.offset())?;
    }
    let offset = reader.offset();
    match reader.checksum() {
        None => {}
        Some(0) => writeln!(
            out,
            "[offset {offset}] RDB file was saved with checksum disabled: no check performed."
        )?,
        Some(_) => writeln!(out, "[offset {offset}] Checksum OK")?,
    }
    writeln!(out, "[offset {offset}] \\o/ RDB looks OK! \\o/")?;
    Ok(Ok(()))
}

fn say_error(error: &Error, out: &mut impl Write) -> io::Result<()> {
    let what = match &error.problem {
        Problem::Short => "Unexpected EOF reading RDB file".to_owned(),
        Problem::Signature => "Wrong signature trying to load DB from file".to_owned(),
        Problem::Version(version) => format!("Can't handle RDB format version {version}"),
        Problem::Checksum { .. } => "RDB CRC error".to_owned(),
        other => other.to_string(),
    };
    writeln!(out, "--- RDB ERROR DETECTED ---")?;
    writeln!(out, "[offset {}] {what}", error.offset)?;
    let doing = match &error.problem {
        Problem::Checksum { .. } => "the checksum",
        _ => error.doing,
    };
    writeln!(out, "[additional info] While doing: reading {doing}")?;
    if let Some((db, key)) = &error.key {
        let key = key.escape_ascii();
        writeln!(out, "[additional info] Reading key '{key}'")?;
        writeln!(out, "[additional info] In DB ID {db}")?;
    }
    if let Some(kind) = error.kind {
        writeln!(out, "[additional info] Reading type {kind}")?;
    }
    Ok(())
}
