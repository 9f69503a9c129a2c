//! Looking through a file without playing it: is it whole, and if not, up to where?
//!
//! The last file of a log is looked through before it is played, so that nothing is played that
//! must be cut off again. `tidemill-check-aof` is this and little else.

use std::io::{self, Read};

use super::{Fault, Item, Reader, Reason};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Bytes of the line of a checksum.
const SUM_LINE_BYTES: u64 = 23;

/// What a file is like.
#[derive(Debug)]
pub struct Scan {
    /// Bytes of the file.
    pub size: u64,
    /// Up to where it is whole.
    pub valid: u64,
    /// Lines up to there or to the fault, from 1.
    pub lines: u64,
    /// Why it is not whole to its end.
    pub fault: Option<Fault>,
    /// Where the first item begins that was written after the time asked for.
    pub past: Option<u64>,
    /// Where the last batch begins that says its length.
    pub last_batch: Option<u64>,
}

/// Looks through a file of `size` bytes whose commands begin at `origin`; `open` opens it there.
/// With `until_s`, stops at the first mark of a later time.
///
/// # Errors
/// Where the file cannot be opened; what is wrong inside is part of what was found.
pub fn scan<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    origin: u64,
    size: u64,
    until_s: Option<u64>,
) -> io::Result<Scan> {
    let (mut found, reader) = look(Reader::new(open()?, origin), size, until_s);
    // A batch of ours never got its checksum: it was never forced to the disk whole, and what of
    // it looks whole may have holes.
    if let Some((from, end)) = reader.open_batch()
        && found.past.is_none()
    {
        let is_last = size <= end.saturating_add(SUM_LINE_BYTES);
        let limit = match &found.fault {
            _ if is_last => size,
            Some(fault) => fault.at,
            None => from,
        };
        let mut tail = open()?;
        io::copy(&mut (&mut tail).take(from - origin), &mut io::sink())?;
        if let Some(hole) = first_hole(tail.take(limit.saturating_sub(from)), from)? {
            let part = open()?.take(hole - origin);
            let (before, _) = look(Reader::new(part, origin), size, until_s);
            found.valid = before.valid;
            let reason = match found.fault.take() {
                Some(fault) if !is_last => fault.reason,
                _ => Reason::Holes,
            };
            found.fault = Some(Fault {
                valid: before.valid,
                at: hole,
                reason,
            });
            return Ok(found);
        }
    }
    let Some(fault) = &mut found.fault else {
        return Ok(found);
    };
    if let Reason::Checksum = fault.reason {
        // Only a torn last batch has holes and nothing after it.
        if is_torn(reader, fault.valid)? {
            fault.reason = Reason::Holes;
        }
    } else if !fault.is_cut() && !matches!(fault.reason, Reason::Io(_)) {
        let from = reader.offset();
        if is_zero(reader, from, fault.at)? {
            fault.reason = Reason::Zeros;
        }
    }
    Ok(found)
}

fn look<R: Read>(mut reader: Reader<R>, size: u64, until_s: Option<u64>) -> (Scan, Reader<R>) {
    let mut found = Scan {
        size,
        valid: reader.offset(),
        lines: 1,
        fault: None,
        past: None,
        last_batch: None,
    };
    loop {
        let before = reader.offset();
        match reader.next_item() {
            Ok(None) => {
                found.valid = reader.offset();
                break;
            }
            Ok(Some(Item::Timestamp(at_s))) if until_s.is_some_and(|until_s| at_s > until_s) => {
                found.past = Some(before);
                break;
            }
            Ok(Some(_)) => found.valid = reader.offset(),
            Err(fault) => {
                found.valid = fault.valid;
                found.fault = Some(fault);
                break;
            }
        }
    }
    found.lines = reader.lines();
    found.last_batch = reader.last_batch();
    (found, reader)
}

/// Where zeros begin that reach the end of a sector, as a sector looks that never came to the disk
/// or came in part. `from` says where the reader stands in the file.
fn first_hole(mut from: impl Read, at: u64) -> io::Result<Option<u64>> {
    let mut buf = vec![0; 64 * 1024];
    let (mut at, mut zeros) = (at, 0);
    loop {
        let got = from.read(&mut buf)?;
        if got == 0 {
            return Ok((zeros > 0).then(|| at - zeros));
        }
        for &byte in &buf[..got] {
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            at += 1;
            if zeros > 0 && at % SECTOR_BYTES == 0 {
                return Ok(Some(at - zeros));
            }
        }
    }
}

/// Whether all bytes from `at` on are zero; `reader` gives out from `from` on.
fn is_zero<R: Read>(reader: Reader<R>, from: u64, at: u64) -> io::Result<bool> {
    let (first, mut rest) = reader.into_rest();
    let skip = usize::try_from(at - from).unwrap_or(usize::MAX);
    let known = first.get(skip..).unwrap_or_default();
    let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    if known.is_empty() || !is_zero(known) {
        return Ok(false);
    }
    let mut buf = vec![0; 64 * 1024];
    loop {
        match rest.read(&mut buf)? {
            0 => return Ok(true),
            got if !is_zero(&buf[..got]) => return Ok(false),
            _ => {}
        }
    }
}

/// Whether the batch from `from` on, whose checksum is wrong, is the last of its file and has a
/// sector of zeros. The reader stands at the checksum.
fn is_torn<R: Read>(reader: Reader<R>, from: u64) -> io::Result<bool> {
    let Some(batch) = reader.batch(from) else {
        return Ok(false);
    };
    if first_hole(batch, from)?.is_none() {
        return Ok(false);
    }
    let (first, mut rest) = reader.into_rest();
    let line = first.iter().position(|&byte| byte == b'\n');
    let is_last = line.is_some_and(|end| end + 1 == first.len());
    Ok(is_last && rest.read(&mut [0])? == 0)
}

impl<R> Reader<R> {
    /// The bytes since `from`, as far as they are still at hand.
    fn batch(&self, from: u64) -> Option<&[u8]> {
        let place = usize::try_from(from.checked_sub(self.origin)?).ok()?;
        self.buf.get(place..self.done)
    }
}
