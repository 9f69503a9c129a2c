//! The house rules that a program can check.
//!
//! Run by `cargo xtask tidy` and, as a test, by every `cargo test`. A remark that a reviewer makes
//! twice belongs here. Each rule is a function from the files of the checkout to complaints; the
//! complaints name the file, the line and what to do.

use crate::tool::{Tool, root};
use crate::{deny, pages};

/// Which crate may use which: the arrows of ARCHITECTURE.md. Anything may use `proptest`-like test
/// helpers; these are the workspace's own crates. An edge left out is forbidden.
const EDGES: &[(&str, &[&str])] = &[
    ("resp", &[]),
    ("structure", &[]),
    ("command", &["resp"]),
    ("engine", &["resp", "structure", "command"]),
    ("persist", &["resp", "structure", "command", "engine"]),
    (
        "server",
        &["resp", "structure", "command", "engine", "persist"],
    ),
    ("client", &[]),
    ("cli", &["client"]),
    ("benchmark", &["client"]),
    ("testkit", &["client", "resp", "structure", "engine"]),
    (
        "sim",
        &["resp", "structure", "command", "engine", "testkit"],
    ),
    ("diff", &["client", "testkit"]),
    ("xtask", &["command", "engine", "server", "persist"]),
];
/// What a crate's tests may use beyond that.
const TEST_EDGES: &[(&str, &[&str])] = &[
    ("client", &["resp"]),
    ("cli", &["client", "testkit"]),
    ("benchmark", &["testkit"]),
    ("engine", &["testkit", "client"]),
    ("server", &["testkit", "client"]),
];

/// Lines a source file may have before it must be looked at again: two ideas?
const LINES_MAX: usize = 1_500;
const WIDTH_RUST: usize = 100;
const WIDTH_MARKDOWN: usize = 120;

/// One file that git knows or would take.
struct File {
    path: String,
    text: String,
}

impl File {
    fn ends(&self, suffix: &str) -> bool {
        self.path.ends_with(suffix)
    }
}

/// Checks every rule.
pub fn check() -> Result<(), String> {
    let files = files()?;
    let mut problems = Vec::new();
    for file in &files {
        problems.extend(header(file));
        problems.extend(width(file));
        problems.extend(leftovers(file));
        problems.extend(one_sided(file));
    }
    problems.extend(edges()?);
    problems.extend(written_down()?);
    problems.extend(
        pages::stale()
            .iter()
            .map(|path| format!("{path}: stale, `cargo xtask gen`")),
    );
    for file in files.iter().filter(|file| file.ends(".rs")) {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            println!("warning: {} has {lines} lines: two ideas?", file.path);
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n")),
    }
}

/// Text files, without those that others wrote or programs make.
fn files() -> Result<Vec<File>, String> {
    let list = Tool::new("git ls-files --cached --others --exclude-standard").output()?;
    let skipped = |path: &str| path.starts_with("LICENSE") || path.ends_with(".lock");
    let files = list
        .lines()
        .filter(|path| !skipped(path))
        .filter_map(|path| {
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            Some(File {
                path: path.to_owned(),
                text,
            })
        });
    Ok(files.collect())
}

/// Every Rust file opens with its idea; a `tests.rs` is the end of the file it tests.
fn header(file: &File) -> Option<String> {
    let source = file.ends(".rs") && !file.ends("/tests.rs");
    let missing = source && !file.text.starts_with("//!");
    missing.then(|| format!("{}:1: does not open with a `//!` header", file.path))
}

fn width(file: &File) -> Vec<String> {
    let limit = match file {
        _ if file.ends(".rs") => WIDTH_RUST,
        _ if file.ends(".md") => WIDTH_MARKDOWN,
        _ => return Vec::new(),
    };
    let long = file
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.chars().count() > limit);
    // A table's row or a bare link cannot be broken.
    let long = long.filter(|(_, line)| !(file.ends(".md") && line.starts_with('|')));
    long.map(|(at, _)| format!("{}:{}: longer than {limit} columns", file.path, at + 1))
        .collect()
}

/// What must not be left behind. The words are cut in two so that this file passes.
fn leftovers(file: &File) -> Vec<String> {
    const EVERYWHERE: &[(&str, &str)] = &[
        (concat!("FIX", "ME"), "open an issue instead"),
        (concat!("XX", "X:"), "open an issue instead"),
        (concat!("/ro", "ot/"), "a path of one machine"),
        (concat!("/wo", "rk/"), "a path of one machine"),
        (concat!("crates", ".io/api"), "a registry's host"),
        (concat!("static.", "crates.io"), "a registry's host"),
        (concat!("pypi", ".org"), "a registry's host"),
        (concat!("deb.", "debian.org"), "a registry's host"),
        (concat!("<<<<", "<<< "), "a merge conflict"),
        (concat!(">>>>", ">>> "), "a merge conflict"),
    ];
    const RUST: &[(&str, &str)] = &[
        (concat!("todo", "!("), "unfinished"),
        (concat!("unimplemented", "!("), "unfinished"),
        (concat!("dbg", "!("), "a debugging aid"),
        (concat!("#[ign", "ore"), "tests run or do not exist"),
        (concat!("TO", "DO"), "open an issue instead"),
    ];
    let rules = EVERYWHERE
        .iter()
        .chain(if file.ends(".rs") { RUST } else { &[] });
    let mut problems = Vec::new();
    for (word, why) in rules {
        for (at, line) in file.text.lines().enumerate() {
            if line.contains(word) {
                problems.push(format!("{}:{}: {word} ({why})", file.path, at + 1));
            }
        }
    }
    problems
}

/// What is written for one processor is written for the other: both are first-class. A file that
/// names x86 in a condition or an import names Arm as well.
fn one_sided(file: &File) -> Option<String> {
    const X86: [&str; 4] = [
        concat!("\"x86", "_64\""),
        concat!("arch::x86", "_64"),
        concat!("is_x86_", "feature_detected"),
        concat!("target_feature(enable = \"", "avx"),
    ];
    let names = |words: &[&str]| words.iter().any(|word| file.text.contains(word));
    let alone = file.ends(".rs") && names(&X86) && !names(&["\"aarch64\""]);
    alone.then(|| format!("{}: has a form for x86-64 but none for aarch64", file.path))
}

fn edges() -> Result<Vec<String>, String> {
    let allowed = |list: &[(&str, &[&str])], from: &str, to: &str| {
        list.iter()
            .any(|(name, ends)| *name == from && ends.contains(&to))
    };
    let mut problems = Vec::new();
    for (from, to, tests) in deny::edges()? {
        if !(allowed(EDGES, &from, &to) || tests && allowed(TEST_EDGES, &from, &to)) {
            problems.push(format!(
                "crate {from} may not use {to}: see EDGES in xtask/src/tidy.rs"
            ));
        }
    }
    Ok(problems)
}

/// Every dependency that a crate of ours names has its line in docs/dependencies.md.
fn written_down() -> Result<Vec<String>, String> {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md"))
        .map_err(|e| format!("docs/dependencies.md: {e}"))?;
    let missing = deny::direct()?
        .into_iter()
        .filter(|name| !page.contains(&format!("`{name}`")));
    Ok(missing
        .map(|name| format!("docs/dependencies.md: no line about `{name}`"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_tidy() {
        if let Err(problems) = check() {
            panic!("\n{problems}");
        }
    }

    #[test]
    fn rules_catch_what_they_are_for() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        assert!(header(&file("a.rs", "fn main() {}")).is_some());
        assert!(header(&file("a.md", "words")).is_none());
        assert_eq!(width(&file("a.rs", &"x".repeat(101))).len(), 1);
        assert_eq!(width(&file("a.rs", &"x".repeat(100))).len(), 0);
        assert_eq!(width(&file("a.md", &"x".repeat(121))).len(), 1);
        assert_eq!(leftovers(&file("a.rs", concat!("dbg", "!(x)"))).len(), 1);
        assert_eq!(leftovers(&file("a.md", concat!("TO", "DO"))).len(), 0);
        assert_eq!(leftovers(&file("a.md", concat!("FIX", "ME"))).len(), 1);
    }
}
