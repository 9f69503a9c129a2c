//! `--tree` and `:tree`: keys by the parts of their names, with how many there are below each part
//! and what they take.
//!
//! A branch is what stands before a delimiter; keys themselves are counted, not shown. Branches are
//! kept down to the depth that is shown and up to a limit, beyond which keys count for the branch
//! above.

use crate::command::Runner;
use crate::highlight::{BOLD, DIM, RESET};
use crate::modes::distribution::{human, memory, percent, progress};
use crate::modes::scan::{Walk, keys_total};
use crate::options::{Options, leading_integer};
use crate::out::{Failure, Outcome, put};
use crate::words::quoted;
use crate::{pager, wait};
use std::collections::HashMap;

/// Levels that are shown, unless said otherwise.
const DEPTH: usize = 3;
/// Branches that are kept.
const BRANCHES_MAX: usize = 200_000;
/// Branches that are shown below one.
const SHOWN_MAX: usize = 20;

#[derive(Default)]
struct Branch {
    keys: u64,
    bytes: u64,
    below: HashMap<Vec<u8>, Branch>,
}

/// Walks over the keys and shows the tree. Ctrl-C ends the walk, and what was met is shown.
pub fn run(runner: &mut Runner, options: &Options, delimiter: &str) -> Outcome {
    wait::catch();
    runner.session.patient = true;
    let outcome = grow(runner, options, delimiter);
    runner.session.patient = false;
    outcome
}

fn grow(runner: &mut Runner, options: &Options, delimiter: &str) -> Outcome {
    if delimiter.is_empty() {
        return Err(Failure::Line("A tree wants a delimiter.".to_owned()));
    }
    let depth = options.depth.as_deref().map(leading_integer);
    let depth = depth.and_then(|depth| usize::try_from(depth).ok());
    let depth = depth.filter(|depth| *depth > 0).unwrap_or(DEPTH);
    let mut walk = Walk::new(options)?;
    let session = &mut runner.session;
    let bar = progress(keys_total(session)?, "keys");
    let mut root = Branch::default();
    let mut branches = 0;
    while !wait::interrupted()
        && let Some(keys) = walk.next(session)?
    {
        let names: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let sizes = memory(session, &names, None)?;
        for (key, bytes) in names.into_iter().zip(sizes) {
            root.add(key, bytes, delimiter.as_bytes(), depth, &mut branches);
        }
        bar.set_position(root.keys);
    }
    bar.finish_and_clear();
    let mut text = format!("{} keys, {}\n", root.keys, human(root.bytes));
    root.show(1, delimiter, root.bytes, runner.style.colour, &mut text);
    match runner.style.page {
        true => pager::show(text.as_bytes()),
        false => put(text),
    }
    Ok(())
}

impl Branch {
    fn add(&mut self, key: &[u8], bytes: u64, delimiter: &[u8], depth: usize, all: &mut usize) {
        self.keys += 1;
        self.bytes += bytes;
        let (mut branch, mut rest) = (self, key);
        for _ in 0..depth {
            let end = rest
                .windows(delimiter.len())
                .position(|part| part == delimiter);
            let Some(end) = end else { return };
            let part = &rest[..end];
            if !branch.below.contains_key(part) {
                if *all == BRANCHES_MAX {
                    return;
                }
                *all += 1;
            }
            branch = branch.below.entry(part.to_vec()).or_default();
            branch.keys += 1;
            branch.bytes += bytes;
            rest = &rest[end + delimiter.len()..];
        }
    }

    /// The branches below, the biggest first. `add` bounds how deep they are.
    fn show(&self, level: usize, delimiter: &str, total: u64, colour: bool, text: &mut String) {
        let (bold, dim, reset) = if colour {
            (BOLD, DIM, RESET)
        } else {
            ("", "", "")
        };
        let mut below: Vec<(&Vec<u8>, &Branch)> = self.below.iter().collect();
        below.sort_by(|(a, x), (b, y)| y.bytes.cmp(&x.bytes).then(a.cmp(b)));
        let indent = "  ".repeat(level);
        for (name, branch) in below.iter().take(SHOWN_MAX) {
            let name = quoted(name);
            let name = &name[1..name.len() - 1];
            *text += &format!(
                "{indent}{bold}{name}{delimiter}{reset} {} keys, {} {dim}({:.1}%){reset}\n",
                branch.keys,
                human(branch.bytes),
                percent(branch.bytes, total),
            );
            branch.show(level + 1, delimiter, total, colour, text);
        }
        if below.len() > SHOWN_MAX {
            let more = &below[SHOWN_MAX..];
            let keys: u64 = more.iter().map(|(_, branch)| branch.keys).sum();
            let bytes: u64 = more.iter().map(|(_, branch)| branch.bytes).sum();
            *text += &format!(
                "{indent}{dim}... {} more branches: {keys} keys, {}{reset}\n",
                more.len(),
                human(bytes)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_count_for_every_branch_above_them() {
        let mut root = Branch::default();
        let mut branches = 0;
        for key in [
            "user:1:name",
            "user:1:mail",
            "user:2:name",
            "order:7",
            "plain",
            "a:b:c:d:e",
        ] {
            root.add(key.as_bytes(), 100, b":", 2, &mut branches);
        }
        let mut text = String::new();
        root.show(1, ":", root.bytes, false, &mut text);
        assert_eq!(
            text,
            "  user: 3 keys, 300B (50.0%)\n    1: 2 keys, 200B (33.3%)\n    \
             2: 1 keys, 100B (16.7%)\n  a: 1 keys, 100B (16.7%)\n    b: 1 keys, 100B (16.7%)\n  \
             order: 1 keys, 100B (16.7%)\n"
        );
        assert_eq!((root.keys, branches), (6, 6));
    }

    #[test]
    fn branches_are_bounded() {
        let mut root = Branch::default();
        let mut branches = BRANCHES_MAX - 1;
        for key in ["a:1", "b:1", "a:2"] {
            root.add(key.as_bytes(), 1, b":", 3, &mut branches);
        }
        assert_eq!((root.keys, root.below.len()), (3, 1));
    }
}
