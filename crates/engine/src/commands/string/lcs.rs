//! LCS: the longest common subsequence of two strings.
//!
//! The textbook table of (one more than) both lengths, walked back from its end. It may take as
//! much memory as a string may.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;

use super::bytes_of;
use crate::handler::runs;
use crate::{Command, CommandError, Context};

pub(super) const LCS: Command = Command {
    name: "lcs",
    group: Group::String,
    since: "7.0.0",
    summary: "Finds the longest common subsequence of two strings.",
    complexity: "O(N*M)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).last(1).ro().access()],
    args: &[
        key("key1"),
        key("key2"),
        flag("LEN").optional(),
        flag("IDX").optional(),
        int("min-match-len").token("MINMATCHLEN").optional(),
        flag("WITHMATCHLEN").optional(),
    ],
    reply: &[Shape::Bulk, Shape::Int, Shape::Map],
    ..runs(lcs)
};

fn lcs(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let lens = (len_of(cx, args.at(1)), len_of(cx, args.at(2)));
    let lens = (lens.0?, lens.1?);
    let (mut len_only, mut indexes, mut with_len, mut len_min) = (false, false, false, 0);
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "IDX") {
            indexes = true;
        } else if args.is(at, "LEN") {
            len_only = true;
        } else if args.is(at, "WITHMATCHLEN") {
            with_len = true;
        } else if args.is(at, "MINMATCHLEN") && at + 1 < args.len() {
            at += 1;
            len_min = usize::try_from(crate::number::int(args.at(at))?).unwrap_or(0);
        } else {
            return Err(CommandError::Syntax);
        }
        at += 1;
    }
    if indexes && len_only {
        return Err("ERR If you want both the length and indexes, please just use IDX.".into());
    }
    let cells = cells(lens, cx.settings.string_bytes_max)?;
    let (a, b) = (string_of(cx, args.at(1)), string_of(cx, args.at(2)));
    let lengths = Lengths::new(&a, &b, cells);
    let total = lengths.at(a.len(), b.len());
    if len_only {
        out.int(i64::from(total));
    } else if indexes {
        out.map(2);
        out.text("matches");
        let mark = out.begin_array();
        let mut count = 0;
        lengths.walk(&a, &b, |a_start, b_start, len| {
            if len >= len_min {
                count += 1;
                out.array(2 + usize::from(with_len));
                for start in [a_start, b_start] {
                    out.array(2);
                    out.count(start);
                    out.count(start + len - 1);
                }
                if with_len {
                    out.count(len);
                }
            }
        });
        out.end_array(mark, count);
        out.text("len");
        out.int(i64::from(total));
    } else {
        let mut common = vec![0; total as usize];
        let mut end = common.len();
        lengths.walk(&a, &b, |a_start, _, len| {
            common[end - len..end].copy_from_slice(&a[a_start..a_start + len]);
            end -= len;
        });
        out.bulk(&common);
    }
    Ok(())
}

/// The length of a key's string; none is empty.
fn len_of(cx: &mut Context<'_>, key: &[u8]) -> Result<usize, CommandError> {
    match cx.read(key) {
        None => Ok(0),
        Some(record) => bytes_of(record.value(), &mut [0; TEXT_MAX])
            .map(<[u8]>::len)
            .map_err(|_| "ERR The specified keys must contain string values".into()),
    }
}

/// A copy of a key's string.
fn string_of(cx: &mut Context<'_>, key: &[u8]) -> Vec<u8> {
    let record = cx.peek(key);
    record.map_or_else(Vec::new, |record| {
        bytes_of(record.value(), &mut [0; TEXT_MAX]).map_or_else(|_| Vec::new(), <[u8]>::to_vec)
    })
}

/// How many cells the table for strings of these lengths has: looked at before anything is copied.
fn cells(lens: (usize, usize), bytes_max: u64) -> Result<usize, CommandError> {
    (lens.0 + 1)
        .checked_mul(lens.1 + 1)
        .filter(|&cells| cells as u64 <= bytes_max / size_of::<u32>() as u64)
        .filter(|_| u32::try_from(lens.0.max(lens.1)).is_ok())
        .ok_or(CommandError::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ))
}

/// The lengths of the longest common subsequences of all beginnings of two strings.
struct Lengths {
    cells: Vec<u32>,
    width: usize,
}

impl Lengths {
    fn new(a: &[u8], b: &[u8], cells: usize) -> Self {
        let width = b.len() + 1;
        let mut lengths = Self {
            cells: vec![0; cells],
            width,
        };
        for (i, x) in a.iter().enumerate() {
            let (above, row) = lengths.cells[i * width..(i + 2) * width].split_at_mut(width);
            for (j, y) in b.iter().enumerate() {
                row[j + 1] = if x == y {
                    above[j] + 1
                } else {
                    above[j + 1].max(row[j])
                };
            }
        }
        lengths
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * self.width + j]
    }

    /// Calls `found` with the runs that both strings share, the last one first: where it starts in
    /// each, and its length.
    fn walk(&self, a: &[u8], b: &[u8], mut found: impl FnMut(usize, usize, usize)) {
        let (mut i, mut j, mut len) = (a.len(), b.len(), 0);
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j, len) = (i - 1, j - 1, len + 1);
                continue;
            }
            if len > 0 {
                found(i, j, len);
                len = 0;
            }
            if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        if len > 0 {
            found(i, j, len);
        }
    }
}
