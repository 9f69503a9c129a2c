//! The text of a script file, read into steps.
//!
//! A file holds several scripts; `== title` begins one. Inside it a line is told by how it begins:
//!
//! | line | meaning |
//! |---|---|
//! | `# ...` | a comment |
//! | `config NAME VALUE` | a directive, set before the script and set back after it |
//! | `only TARGET...: reason`, `not TARGET...: reason` | where the script is played |
//! | `> COMMAND` or `a> COMMAND` | sent on a connection; the reply is expected below |
//! | `<` or `a<` | awaits one more reply or push on that connection |
//! | `~ TARGET...: reason` | below it stands what that target answers instead |
//! | `+100ms` | time passes |
//! | `a!` | the connection is closed by the client |
//! | anything else | a line of the expected reply |

use crate::quote;

/// One behaviour: a title and its steps.
#[derive(Debug, Clone)]
pub struct Script {
    /// The file it came from.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The line of its title.
    pub line: usize,
    pub(crate) config: Vec<(String, String)>,
    only: Option<Vec<String>>,
    not: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// Whether the script says anything about a target of this name.
    pub fn plays_on(&self, target: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == target);
        self.only.as_deref().is_none_or(named) && !named(&self.not)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub line: usize,
    pub action: Action,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Send on a connection, then expect.
    Send {
        connection: String,
        text: String,
        args: Vec<Vec<u8>>,
        expected: Expected,
    },
    /// Expect one more reply on a connection.
    Await {
        connection: String,
        expected: Expected,
    },
    /// Let time pass.
    Advance { ms: u64 },
    /// Close a connection.
    Close { connection: String },
}

/// What must come back: lines, and other lines for some targets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub lines: Vec<String>,
    pub instead: Vec<(Vec<String>, Vec<String>)>,
}

impl Expected {
    pub fn on(&self, target: &str) -> &[String] {
        let other = self
            .instead
            .iter()
            .find(|(names, _)| names.iter().any(|name| name == target));
        other.map_or(&self.lines, |(_, lines)| lines)
    }

    fn push(&mut self, line: &str) {
        let lines = self
            .instead
            .last_mut()
            .map_or(&mut self.lines, |(_, lines)| lines);
        lines.push(line.to_owned());
    }
}

/// Reads the scripts of a file. An error names the file and the line.
pub fn parse(file: &str, text: &str) -> Result<Vec<Script>, String> {
    let margin = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    let mut scripts: Vec<Script> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.get(margin..).unwrap_or("").trim_end();
        let number = at + 1;
        if line.is_empty() || line == "#" || line.starts_with("# ") {
            continue;
        }
        let title = line.strip_prefix("== ");
        if title.is_some() || scripts.is_empty() {
            scripts.push(Script {
                file: file.to_owned(),
                title: title.unwrap_or("untitled").to_owned(),
                line: number,
                config: Vec::new(),
                only: None,
                not: Vec::new(),
                steps: Vec::new(),
            });
        }
        if title.is_none() {
            let script = scripts.last_mut().expect("one was pushed above");
            read_line(script, line, number).map_err(|why| format!("{file}:{number}: {why}"))?;
        }
    }
    Ok(scripts)
}

fn read_line(script: &mut Script, line: &str, number: usize) -> Result<(), String> {
    if let Some((connection, text)) = on_connection(line, '>') {
        let text = text.trim();
        let args = quote::split(text)?;
        if args.is_empty() {
            return Err("no command".to_owned());
        }
        let expected = Expected::default();
        let action = Action::Send {
            connection,
            text: text.to_owned(),
            args,
            expected,
        };
        script.steps.push(Step {
            line: number,
            action,
        });
        return Ok(());
    }
    if let Some((connection, "")) = on_connection(line, '<') {
        let action = Action::Await {
            connection,
            expected: Expected::default(),
        };
        script.steps.push(Step {
            line: number,
            action,
        });
        return Ok(());
    }
    if let Some((connection, "")) = on_connection(line, '!') {
        script.steps.push(Step {
            line: number,
            action: Action::Close { connection },
        });
        return Ok(());
    }
    let ms = line
        .strip_prefix('+')
        .and_then(|line| line.strip_suffix("ms"));
    if let Some(ms) = ms.and_then(|ms| ms.parse().ok()) {
        script.steps.push(Step {
            line: number,
            action: Action::Advance { ms },
        });
        return Ok(());
    }
    if script.steps.is_empty() {
        return read_condition(script, line);
    }
    let expected = match &mut script.steps.last_mut().expect("not empty").action {
        Action::Send { expected, .. } | Action::Await { expected, .. } => expected,
        _ => return Err("a reply is expected, but nothing was sent".to_owned()),
    };
    match line.strip_prefix("~ ") {
        Some(marker) => expected
            .instead
            .push((names_with_reason(marker)?, Vec::new())),
        None => expected.push(line),
    }
    Ok(())
}

/// A line before the first command.
fn read_condition(script: &mut Script, line: &str) -> Result<(), String> {
    if let Some(directive) = line.strip_prefix("config ") {
        let (name, value) = directive
            .trim()
            .split_once(' ')
            .unwrap_or((directive.trim(), ""));
        let value = value.trim().trim_matches('"');
        script.config.push((name.to_owned(), value.to_owned()));
    } else if let Some(names) = line.strip_prefix("only ") {
        script.only = Some(names_with_reason(names)?);
    } else if let Some(names) = line.strip_prefix("not ") {
        script.not = names_with_reason(names)?;
    } else {
        return Err(format!("neither a command nor a condition: {line}"));
    }
    Ok(())
}

/// `a> ...`: the connection's name, maybe empty, and what follows the mark.
fn on_connection(line: &str, mark: char) -> Option<(String, &str)> {
    let (name, rest) = line.split_once(mark)?;
    let starts = name
        .bytes()
        .next()
        .is_none_or(|byte| byte.is_ascii_lowercase());
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (starts && plain && (rest.is_empty() || rest.starts_with(' '))).then(|| (name.to_owned(), rest))
}

fn names_with_reason(text: &str) -> Result<Vec<String>, String> {
    let (names, reason) = text.split_once(':').ok_or("`: reason` is missing")?;
    if reason.trim().is_empty() {
        return Err("the reason is missing".to_owned());
    }
    let split = |c: char| c == ',' || c.is_whitespace();
    Ok(names
        .split(split)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_becomes_scripts() {
        let text = "# about\n== one\nconfig maxmemory 0\nonly redis-8.10: of old\n> SET k \"v w\"\n\
                    OK\n~ tidemill: why\nKO\n\n== two\na> BLPOP k 0\n(blocked)\n\
                    +50ms\na<\n1) \"k\"\na!\n";
        let scripts = parse("f.txt", text).expect("a good file");
        assert_eq!(scripts.len(), 2);
        assert_eq!(
            scripts[0].config,
            [("maxmemory".to_owned(), "0".to_owned())]
        );
        assert!(scripts[0].plays_on("redis-8.10") && !scripts[0].plays_on("tidemill"));
        let Action::Send { args, expected, .. } = &scripts[0].steps[0].action else {
            panic!()
        };
        assert_eq!(args[2], b"v w");
        assert_eq!(
            (expected.on("x"), expected.on("tidemill")),
            (&["OK".into()][..], &["KO".into()][..])
        );
        assert_eq!(scripts[1].steps.len(), 4);
        assert_eq!(scripts[1].steps[3].line, 16);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, part) in [
            ("== t\nhello", "f:2: neither"),
            ("== t\n> SET \"k", "f:2: a quote"),
            ("== t\n> GET k\n~ redis-8.10", "f:3: `: reason`"),
            ("== t\n> ", "f:2: no command"),
            ("== t\n+5ms\nOK", "f:3: a reply"),
        ] {
            let error = parse("f", text).expect_err(text);
            assert!(error.starts_with(part), "{error}");
        }
    }

    #[test]
    fn a_shared_margin_is_dropped() {
        let scripts = parse("f", "\n    > GET k\n    1) \"a\"\n       2) x\n").expect("good");
        let Action::Send { expected, .. } = &scripts[0].steps[0].action else {
            panic!()
        };
        assert_eq!(expected.lines, ["1) \"a\"", "   2) x"]);
    }
}
