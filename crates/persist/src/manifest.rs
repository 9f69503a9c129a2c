//! The manifest of the append-only log: which files it is made of, in the order of playing.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.7.incr.aof seq 7 type i
//! ```
//!
//! One line a file: pairs of a key and a value in any order. Types are `b` (the base: a snapshot or
//! commands), `i` (an increment, commands since) and `h` (a file no longer needed, which may be
//! removed). Lines that begin with `#` are remarks; keys that are not known are passed over, as
//! newer servers add some (`startoffset`). A name with odd bytes stands in quotes.
//!
//! # Invariants
//! - The file changes in one step: a temporary file is written, forced to the disk and renamed,
//!   then the directory is forced to the disk.
//! - A file stays in the manifest, as history, until it is removed: what a crash leaves behind is
//!   removed at the next start.

use std::fmt;
use std::io::{self, Read, Write};

use crate::storage::{Storage, StorageFile};

/// Bytes of a line, its end counted, as Redis has it.
const LINE_BYTES_MAX: usize = 1024;
/// Bytes of a manifest; a thousand files take a tenth.
const BYTES_MAX: u64 = 1024 * 1024;

/// What a file of the log is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All data up to some moment.
    Base,
    /// What changed since.
    Increment,
    /// Not needed any more.
    History,
}

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, inside the log's directory.
    pub name: String,
    /// Its number among those of its kind.
    pub seq: u64,
    /// What it is for.
    pub kind: Kind,
}

/// The files of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The base, if there is one.
    pub base: Option<Entry>,
    /// Increments in the order of playing; their numbers ascend.
    pub increments: Vec<Entry>,
    /// Files that may be removed.
    pub history: Vec<Entry>,
}

/// Where the files of the log are, and what they are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The directory (`appenddirname`).
    pub directory: String,
    /// The first part of all names (`appendfilename`).
    pub file: String,
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The line, 1 the first; 0 where it is no line's fault.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Why there is no manifest to be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum ManifestError {
    /// The system says no.
    Io(String, io::Error),
    /// The file is not a manifest.
    Malformed(String, Malformed),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(self.reason),
            line => write!(f, "line {line}, '{}': {}", self.text, self.reason),
        }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(name, error) => write!(f, "{name}: {error}"),
            Self::Malformed(name, malformed) => write!(f, "manifest {name}: {malformed}"),
        }
    }
}

impl std::error::Error for ManifestError {}

impl Layout {
    /// The manifest's name.
    pub fn manifest(&self) -> String {
        self.path(&format!("{}.manifest", self.file))
    }

    /// The name of a file of the log as the storage knows it.
    pub fn path(&self, name: &str) -> String {
        match self.directory.as_str() {
            "" => name.to_owned(),
            directory => format!("{directory}/{name}"),
        }
    }

    /// What base number `seq` is called; a snapshot, or commands.
    pub fn base(&self, seq: u64, is_snapshot: bool) -> String {
        let form = if is_snapshot { "rdb" } else { "aof" };
        format!("{}.{seq}.base.{form}", self.file)
    }

    /// What increment number `seq` is called.
    pub fn increment(&self, seq: u64) -> String {
        format!("{}.{seq}.incr.aof", self.file)
    }
}

impl Manifest {
    /// Whether it names no file that holds data.
    pub fn is_empty(&self) -> bool {
        self.base.is_none() && self.increments.is_empty()
    }

    /// The highest number of an increment, or of a file of the past; 0 where there was none.
    pub fn last_seq(&self) -> u64 {
        let all = self.increments.iter().chain(&self.history);
        all.map(|entry| entry.seq).max().unwrap_or(0)
    }

    /// Files that hold data, in the order of playing.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.base.iter().chain(&self.increments)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let whole = |reason| Malformed {
            line: 0,
            text: String::new(),
            reason,
        };
        if bytes.is_empty() {
            return Err(whole("Found an empty AOF manifest"));
        }
        let mut manifest = Self::default();
        for (number, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
            let wrong = |reason| Malformed {
                line: number,
                text: String::from_utf8_lossy(line).trim_end().to_owned(),
                reason,
            };
            if line.len() >= LINE_BYTES_MAX || !line.ends_with(b"\n") {
                return Err(wrong("The AOF manifest file contains too long line"));
            }
            if line.starts_with(b"#") {
                continue;
            }
            let entry = parse_line(line.trim_ascii()).map_err(wrong)?;
            manifest.add(entry).map_err(wrong)?;
        }
        Ok(manifest)
    }

    fn add(&mut self, entry: Entry) -> Result<(), &'static str> {
        match entry.kind {
            Kind::Base if self.base.is_some() => {
                return Err("Found duplicate base file information");
            }
            Kind::Base => self.base = Some(entry),
            Kind::Increment => {
                let last = self.increments.last();
                if last.is_some_and(|last| last.seq >= entry.seq) {
                    return Err("Found a non-monotonic sequence number");
                }
                self.increments.push(entry);
            }
            Kind::History => self.history.push(entry),
        }
        Ok(())
    }

    /// What the file holds.
    pub fn render(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let all = self.base.iter().chain(&self.history);
        for entry in all.chain(&self.increments) {
            let kind = match entry.kind {
                Kind::Base => 'b',
                Kind::Increment => 'i',
                Kind::History => 'h',
            };
            text.extend_from_slice(b"file ");
            quote(&entry.name, &mut text);
            text.extend_from_slice(format!(" seq {} type {kind}\n", entry.seq).as_bytes());
        }
        text
    }

    /// Makes a base and increments that a rewrite replaced history.
    pub fn retire(&mut self, replaced: impl IntoIterator<Item = Entry>) {
        self.history.extend(replaced.into_iter().map(|entry| Entry {
            kind: Kind::History,
            ..entry
        }));
    }

    /// Reads the manifest of a log; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub fn load<S: Storage>(storage: &S, layout: &Layout) -> Result<Option<Self>, ManifestError> {
        let name = layout.manifest();
        let io = |error| ManifestError::Io(name.clone(), error);
        let file = match storage.open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(io)?;
        Self::parse(&bytes)
            .map(Some)
            .map_err(|malformed| ManifestError::Malformed(name.clone(), malformed))
    }

    /// Writes the manifest, so that after a crash the old one or this one is there, and after
    /// success this one.
    ///
    /// # Errors
    /// What the system says.
    pub fn store<S: Storage>(&self, storage: &S, layout: &Layout) -> io::Result<()> {
        let temporary = layout.path(&format!("temp-{}.manifest", layout.file));
        let mut file = storage.create(&temporary)?;
        file.write_all(&self.render())?;
        file.sync()?;
        drop(file);
        storage.rename(&temporary, &layout.manifest())?;
        storage.sync_directory(&layout.directory)
    }

    /// Removes the files of the past, then forgets them. Returns the names of those removed.
    ///
    /// # Errors
    /// Where the manifest cannot be written; a file that cannot be removed stays history.
    pub fn sweep<S: Storage>(&mut self, storage: &S, layout: &Layout) -> io::Result<Vec<String>> {
        if self.history.is_empty() {
            return Ok(Vec::new());
        }
        let mut removed = Vec::new();
        self.history
            .retain(|entry| match storage.remove(&layout.path(&entry.name)) {
                Ok(()) => {
                    removed.push(entry.name.clone());
                    false
                }
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            });
        self.store(storage, layout)?;
        Ok(removed)
    }
}

fn parse_line(line: &[u8]) -> Result<Entry, &'static str> {
    const FORMAT: &str = "Invalid AOF manifest file format";
    let words = words(line).ok_or(FORMAT)?;
    if words.len() < 6 || words.len() % 2 != 0 {
        return Err(FORMAT);
    }
    let (mut name, mut seq, mut kind) = (None, None, None);
    for pair in words.chunks_exact(2) {
        let value = &pair[1];
        if pair[0].eq_ignore_ascii_case(b"file") {
            if value.contains(&b'/') {
                return Err("File can't be a path, just a filename");
            }
            let text = String::from_utf8(value.clone());
            name = Some(text.map_err(|_| "the name of a file is not UTF-8")?);
        } else if pair[0].eq_ignore_ascii_case(b"seq") {
            let text = std::str::from_utf8(value).ok();
            seq = Some(text.and_then(|text| text.parse().ok()).ok_or(FORMAT)?);
        } else if pair[0].eq_ignore_ascii_case(b"type") {
            kind = Some(match value.as_slice() {
                [b'b', ..] => Kind::Base,
                [b'i', ..] => Kind::Increment,
                [b'h', ..] => Kind::History,
                _ => return Err("Unknown AOF file type"),
            });
        }
    }
    match (name, seq, kind) {
        (Some(name), Some(seq @ 1..), Some(kind)) if !name.is_empty() && name != ".." => {
            Ok(Entry { name, seq, kind })
        }
        _ => Err(FORMAT),
    }
}

/// Words between blanks, in double quotes with escapes, or in single quotes; `None` where a quote
/// is not closed.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = match rest[0] {
            b'"' => quoted(&rest[1..], &mut word)?,
            b'\'' => {
                let end = rest[1..].iter().position(|&byte| byte == b'\'')?;
                word.extend_from_slice(&rest[1..=end]);
                &rest[end + 2..]
            }
            _ => {
                let blank = rest.iter().position(u8::is_ascii_whitespace);
                let (plain, after) = rest.split_at(blank.unwrap_or(rest.len()));
                word.extend_from_slice(plain);
                after
            }
        };
        if !rest.is_empty() && !rest[0].is_ascii_whitespace() {
            return None;
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// Takes a word up to its closing quote; returns what follows that.
fn quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (&first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => return Some(rest),
            b'\\' => {
                let hex = |at: usize| char::from(*rest.get(at)?).to_digit(16);
                if let (Some(b'x'), Some(high), Some(low)) = (rest.first(), hex(1), hex(2)) {
                    word.push(u8::try_from(high * 16 + low).ok()?);
                    rest = &rest[3..];
                    continue;
                }
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
            }
            other => word.push(other),
        }
    }
}

/// A name as it stands in the file: in quotes where it has bytes that would not survive bare.
fn quote(name: &str, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if name.bytes().all(|byte| is_plain(&byte)) && !name.is_empty() {
        return out.extend_from_slice(name.as_bytes());
    }
    out.push(b'"');
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            other => out.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> (usize, &'static str) {
        let malformed = Manifest::parse(text.as_bytes()).expect_err("it is malformed");
        (malformed.line, malformed.reason)
    }

    #[test]
    fn a_manifest_of_the_real_server_is_read() {
        let text = b"file appendonly.aof.2.base.rdb seq 2 type b\n#remark\n\
            file appendonly.aof.1.incr.aof seq 1 type h\n\
            seq 2 type i startoffset 6 file \"appendonly.aof.2.incr.aof\" endoffset 9\n";
        let manifest = Manifest::parse(text).expect("it is well-formed");
        assert_eq!(
            manifest.base.as_ref().map(|base| base.name.as_str()),
            Some("appendonly.aof.2.base.rdb")
        );
        assert_eq!(manifest.last_seq(), 2);
        assert_eq!(manifest.history.len(), 1);
        assert_eq!(Manifest::parse(&manifest.render()), Ok(manifest));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(reason(""), (0, "Found an empty AOF manifest"));
        let format = "Invalid AOF manifest file format";
        for line in [
            "file x seq 1",
            "",
            "file x seq 1 type b odd",
            "file x seq y type b",
            "file x seq 0 type b",
            "file \"x seq 1 type b",
        ] {
            assert_eq!(reason(&format!("{line}\n")), (1, format), "{line}");
        }
        assert_eq!(
            reason("file x seq 1 type q\n"),
            (1, "Unknown AOF file type")
        );
        let long = "The AOF manifest file contains too long line";
        assert_eq!(reason("file x seq 1 type b"), (1, long));
        let path = "File can't be a path, just a filename";
        assert_eq!(reason("file a/b seq 1 type b\n"), (1, path));
        let twice = "file x seq 2 type b\nfile y seq 3 type b\n";
        assert_eq!(reason(twice), (2, "Found duplicate base file information"));
        let order = "file x seq 2 type i\nfile y seq 2 type i\n";
        assert_eq!(reason(order), (2, "Found a non-monotonic sequence number"));
    }

    #[test]
    fn odd_names_survive() {
        for name in ["a b", "quo\"te", "back\\slash", "né", "tab\there", "it's"] {
            let entry = Entry {
                name: name.to_owned(),
                seq: 1,
                kind: Kind::Base,
            };
            let manifest = Manifest {
                base: Some(entry),
                ..Manifest::default()
            };
            assert_eq!(Manifest::parse(&manifest.render()), Ok(manifest), "{name}");
        }
    }
}
