//! `tidemill.conf`: every directive with what it does, made from the table.
//!
//! Defaults are commented out, so that the file as it is changes nothing. A test compares the
//! committed file with what this makes.

use super::directive::{Change, Directive, Effect, Kind};
use super::table::GROUPS;
use std::fmt::Write;

/// Characters in a line of the file.
const WIDTH: usize = 96;

/// The text of `tidemill.conf`.
pub fn document() -> String {
    let mut out = String::from(PREFACE);
    for group in GROUPS {
        let rule = "#".repeat(WIDTH - group.title.len() - 5);
        let _ = write!(out, "\n### {} {rule}\n", group.title);
        for directive in group.directives {
            describe(&mut out, directive);
        }
    }
    out
}

/// The text of `docs/configuration.md`: every directive in a table, and whether it does anything.
pub fn table() -> String {
    let mut out = String::from(TABLE_PREFACE);
    for group in GROUPS {
        let _ = write!(out, "\n## {}\n\n", group.title);
        out.push_str(
            "| directive | default | set | effect | what it says |\n|---|---|---|---|---|\n",
        );
        for one in group.directives {
            let set = match one.change {
                Change::AnyTime => "any time",
                Change::Protected => "protected",
                Change::Startup => "at start",
            };
            let effect = match one.effect {
                Effect::Acts => "acts",
                Effect::Accepted => "accepted",
                Effect::Later => "later",
                Effect::Refused(_) => "default only",
            };
            let default = match one.threads() {
                true => "the cores".to_owned(),
                false => format!("`{}`", one.default),
            };
            let default = if default == "``" { "" } else { &default };
            let alias = one.alias.map(|alias| format!(", `{alias}`"));
            let (name, alias) = (one.name, alias.unwrap_or_default());
            let range = range(one.kind).map(|range| format!(" {range}"));
            let text = format!("{}{}", one.doc, range.unwrap_or_default());
            let text = text.replace('|', "\\|");
            let _ = writeln!(
                out,
                "| `{name}`{alias} | {default} | {set} | {effect} | {text} |"
            );
        }
    }
    out
}

const TABLE_PREFACE: &str = "\
# Configuration

Every directive, as `tidemill.conf` has them too. Made from the table that the server reads
(`cargo xtask gen`).

Directives come from a file, from the command line (`--port 7000`), from standard input, and from
CONFIG SET; CONFIG REWRITE writes them back. The columns:

- **set**: with CONFIG SET at any time; only where `enable-protected-configs` allows it (protected);
  or only at start.
- **effect**: it acts; it is accepted and there is nothing here that it would tune; what it steers
  comes later; or only its default is taken, because running without it would mislead.

Beside them stand `include FILE`, `user NAME RULES` and `rename-command NAME OTHER`, which gives a
command another name, or none where OTHER is empty.

## TLS in short

```
tls-port 6380
tls-cert-file server.crt
tls-key-file server.key
tls-ca-cert-file ca.crt
```

With `port 0` beside it nothing listens without TLS. `tls-auth-clients` is yes unless told
otherwise: clients show a certificate for which an authority of `tls-ca-cert-file` or
`tls-ca-cert-dir` vouches.
`CONFIG SET tls-cert-file` with the same name reads all files again, as after a renewal; where they
are wrong, or do not belong together, everything stays as it was. Versions 1.2 and 1.3 are spoken;
keys are not encrypted (`openssl pkey -in old.key -out new.key`). [security.md](security.md) says
what is bounded.
";

fn describe(out: &mut String, one: &Directive) {
    let mut text = one.doc.to_string();
    if let Some(range) = range(one.kind) {
        let _ = write!(text, " {range}");
    }
    match one.change {
        Change::AnyTime => {}
        Change::Protected => text.push_str(" Changing it while running is protected."),
        Change::Startup => text.push_str(" Only at start."),
    }
    match one.effect {
        Effect::Acts => {}
        Effect::Accepted => text.push_str(" [accepted, without effect]"),
        Effect::Later => text.push_str(" [accepted, no effect yet]"),
        Effect::Refused(_) => text.push_str(" [only this default is taken yet]"),
    }
    if let Some(alias) = one.alias.filter(|_| !one.threads()) {
        let _ = write!(text, " Also: {alias}.");
    }
    out.push('\n');
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = String::from("#");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(out, "{line}");
    for value in shown_default(one) {
        let _ = writeln!(out, "# {} {value}", one.name);
    }
}

/// The default as a file would set it.
fn shown_default(one: &Directive) -> Vec<String> {
    if one.threads() {
        return vec!["4".into()];
    }
    match one.kind {
        Kind::Primary => vec!["no one".into()],
        Kind::Text(_) | Kind::Directory | Kind::Events if one.default.is_empty() => {
            vec!["\"\"".into()]
        }
        Kind::Text(_) if one.default.contains(' ') => vec![format!("\"{}\"", one.default)],
        Kind::Memory { .. } => {
            let bytes = one.default.parse().unwrap_or(0);
            vec![super::value::show_unit(bytes)]
        }
        Kind::OutputLimits => {
            let words: Vec<&str> = one.default.split(' ').collect();
            let unit = |text: &str| super::value::show_unit(text.parse().unwrap_or(0));
            let line = |part: &[&str]| {
                let class = if part[0] == "slave" {
                    "replica"
                } else {
                    part[0]
                };
                format!("{class} {} {} {}", unit(part[1]), unit(part[2]), part[3])
            };
            words.chunks_exact(4).map(line).collect()
        }
        _ => vec![one.default.to_string()],
    }
}

fn range(kind: Kind) -> Option<String> {
    match kind {
        Kind::Choice(words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Some(format!("One of {}.", words.join(", ")))
        }
        Kind::Integer { min, max } | Kind::PowerOfTwo { min, max } if max < i64::from(i32::MAX) => {
            Some(format!("From {min} to {max}."))
        }
        Kind::Memory { min, .. } if min > 1 => {
            Some(format!("At least {}.", super::value::show_unit(min)))
        }
        _ => None,
    }
}

const PREFACE: &str = "\
# Configuration of tidemill-server. Made from the table of directives: `cargo xtask gen`.
#
#   tidemill-server tidemill.conf
#
# One directive a line: a name and its values, separated by blanks. A value with blanks stands in
# quotes; double quotes take \\n, \\xHH and the like. A line that starts with # is a comment. Each
# line below that looks like `# name value` shows a default; take the # away to change it.
#
# Sizes take a unit: 1k is 1000, 1kb is 1024, 1m, 1mb, 1g and 1gb accordingly, in any case.
#
# `include FILE` reads another file at that place; FILE may be a pattern such as conf.d/*.conf.
# What stands later wins, and options on the command line win over files.
#
# CONFIG SET changes a directive while the server runs, CONFIG REWRITE saves that here.
";
