//! Playing a script against a target, and saying clearly what differed.
//!
//! Expected lines are compared with the rendered reply. The first expected line may instead be a
//! word for the whole reply:
//!
//! | word | accepts |
//! |---|---|
//! | `(any)` | any one reply |
//! | `(blocked)` | no reply yet: the command waits, and the target says so |
//! | `(no reply)` | nothing, now or later |
//! | `(any order)` | the elements below it, in any order |
//! | `(nil)` | any null; `(null)`, `(nil bulk)` and `(nil array)` accept that one only |

use crate::pattern::matches;
use crate::quote::{Captured, fill};
use crate::render::{null_name, render};
use crate::script::{Action, Expected, Script, Step};
use client::Reply;
use std::collections::BTreeMap;

/// Something that answers commands. Connections are numbers that the target hands out.
pub trait Target {
    /// The name that scripts call it by: `engine`, `tidemill`, `redis-8.10`.
    fn name(&self) -> &str;

    /// Forgets all data and all connections, as if new.
    fn reset(&mut self) -> Result<(), String>;

    /// Sets a configuration directive and hands back the value it had.
    fn configure(&mut self, name: &str, value: &str) -> Result<String, String>;

    /// Opens a connection.
    fn connect(&mut self) -> Result<usize, String>;

    /// Sends a command.
    fn send(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<(), String>;

    /// The next reply or push on a connection, waited for as long as is sensible.
    fn receive(&mut self, connection: usize) -> Result<Reply, String>;

    /// A reply or push that is there without waiting.
    fn pending(&mut self, connection: usize) -> Result<Option<Reply>, String>;

    /// Returns once the target has this many blocked clients; an error if it never does.
    fn await_blocked(&mut self, clients: usize) -> Result<(), String>;

    /// Closes a connection and returns once the target has noticed.
    fn close(&mut self, connection: usize) -> Result<(), String>;

    /// Lets time pass.
    fn advance(&mut self, ms: u64);
}

/// What differed, with where in which script.
#[derive(Debug)]
pub struct Failure {
    script: String,
    target: String,
    place: String,
    what: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} on {}", self.script, self.target)?;
        writeln!(f, "  at {}", self.place)?;
        for line in self.what.lines() {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// Plays one script from an empty target. Directives are set back whatever happens.
pub fn play(script: &Script, target: &mut dyn Target) -> Result<(), Failure> {
    let mut player = Player {
        name: target.name().to_owned(),
        target,
        connections: BTreeMap::new(),
        blocked: Vec::new(),
        captured: Captured::new(),
    };
    let place = format!("{}:{}", script.file, script.line);
    let name = player.name.clone();
    let failure = |place: String, what: String| Failure {
        script: format!("script {:?}", script.title),
        target: name.clone(),
        place,
        what,
    };
    player
        .target
        .reset()
        .map_err(|what| failure(place.clone(), what))?;
    let mut before = Vec::new();
    let mut result = Ok(());
    for (directive, value) in &script.config {
        match player.target.configure(directive, value) {
            Ok(old) => before.push((directive, old)),
            Err(what) => {
                result = Err(failure(
                    place.clone(),
                    format!("config {directive}: {what}"),
                ))
            }
        }
    }
    if result.is_ok() {
        result = player
            .steps(&script.steps)
            .map_err(|(line, what)| failure(format!("{}:{line}", script.file), what));
    }
    for (directive, old) in before.into_iter().rev() {
        let back = player.target.configure(directive, &old);
        result = result.and(back.map(drop).map_err(|what| failure(place.clone(), what)));
    }
    result
}

struct Player<'a> {
    target: &'a mut dyn Target,
    name: String,
    /// Connections by the names that the script gives them.
    connections: BTreeMap<String, usize>,
    /// Names of the connections whose command waits.
    blocked: Vec<String>,
    captured: Captured,
}

type Problem = (usize, String);

impl Player<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), Problem> {
        for step in steps {
            self.step(step).map_err(|what| (step.line, what))?;
        }
        let last = steps.last().map_or(0, |step| step.line);
        for (name, connection) in &self.connections {
            // An error means that the server closed it after its last reply, as the script knows.
            if let Ok(Some(reply)) = self.target.pending(*connection) {
                let got = render(&reply);
                return Err((
                    last,
                    format!("connection {name:?} got more at the end:\n{got}"),
                ));
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Send {
                connection,
                text,
                args,
                expected,
            } => {
                let id = self.connection(connection)?;
                if let Some(reply) = self.target.pending(id).unwrap_or(None) {
                    return Err(format!("before {text}, unexpected:\n{}", render(&reply)));
                }
                let args: Result<Vec<_>, _> =
                    args.iter().map(|a| fill(a, &self.captured)).collect();
                self.target.send(id, &args?)?;
                self.expect(connection, id, &format!("> {text}"), expected)
            }
            Action::Await {
                connection,
                expected,
            } => {
                let id = self.connection(connection)?;
                self.blocked.retain(|name| name != connection);
                self.expect(connection, id, "awaited", expected)
            }
            Action::Advance { ms } => {
                self.target.advance(*ms);
                Ok(())
            }
            Action::Close { connection } => {
                self.blocked.retain(|name| name != connection);
                match self.connections.remove(connection) {
                    Some(id) => self.target.close(id),
                    None => Err(format!("no connection {connection:?} is open")),
                }
            }
        }
    }

    fn connection(&mut self, name: &str) -> Result<usize, String> {
        if let Some(id) = self.connections.get(name) {
            return Ok(*id);
        }
        let id = self.target.connect()?;
        self.connections.insert(name.to_owned(), id);
        Ok(id)
    }

    fn expect(
        &mut self,
        name: &str,
        id: usize,
        did: &str,
        expected: &Expected,
    ) -> Result<(), String> {
        let lines = expected.on(&self.name);
        match lines.first().map(String::as_str) {
            Some("(no reply)") | None => return self.nothing(id, did),
            Some("(blocked)") => {
                self.blocked.push(name.to_owned());
                if let Err(problem) = self.target.await_blocked(self.blocked.len()) {
                    let reply = self.target.pending(id)?.as_ref().map(render);
                    let got = reply.map_or(problem, |text| format!("got:\n{text}"));
                    return Err(format!("{did}\nexpected it to block; {got}"));
                }
                return self.nothing(id, did);
            }
            _ => {}
        }
        let wanted = lines.join("\n");
        let reply = self
            .target
            .receive(id)
            .map_err(|problem| format!("{did}\nexpected:\n{wanted}\ngot no reply: {problem}"))?;
        match agrees(lines, &reply, &mut self.captured) {
            true => Ok(()),
            false => Err(format!(
                "{did}\nexpected:\n{wanted}\ngot:\n{}",
                exact(&reply)
            )),
        }
    }

    fn nothing(&mut self, id: usize, did: &str) -> Result<(), String> {
        match self.target.pending(id)? {
            None => Ok(()),
            Some(reply) => Err(format!(
                "{did}\nexpected no reply\ngot:\n{}",
                render(&reply)
            )),
        }
    }
}

/// The reply as shown on a failure: a null by its own name.
fn exact(reply: &Reply) -> String {
    null_name(reply).map_or_else(|| render(reply), str::to_owned)
}

fn agrees(lines: &[String], reply: &Reply, captured: &mut Captured) -> bool {
    let text = render(reply);
    match lines {
        [word] if word == "(any)" => true,
        [word] if matches!(word.as_str(), "(null)" | "(nil bulk)" | "(nil array)") => {
            null_name(reply) == Some(word.as_str())
        }
        [word, rest @ ..] if word == "(any order)" => {
            let (mut want, mut got) = (elements(rest), elements(&owned(&text)));
            want.len() == got.len()
                && want.drain(..).all(|want| {
                    let at = got.iter().position(|got| all_match(&want, got, captured));
                    at.map(|at| got.swap_remove(at)).is_some()
                })
        }
        _ => all_match(lines, &owned(&text), captured),
    }
}

fn owned(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn all_match(want: &[String], got: &[String], captured: &mut Captured) -> bool {
    let mut tried = captured.clone();
    let matched =
        want.len() == got.len() && want.iter().zip(got).all(|(w, g)| matches(w, g, &mut tried));
    if matched {
        *captured = tried;
    }
    matched
}

/// The elements of a rendered container, without their numbers. The first line says where the
/// marks of the outermost level stand; what is indented past them belongs to the element above.
fn elements(lines: &[String]) -> Vec<Vec<String>> {
    let mark_of = |line: &str| {
        let at = line.find(|c: char| !(c == ' ' || c.is_ascii_digit()))?;
        let mark = line[at..].chars().next()?;
        (at > 0 && matches!(mark, ')' | '~' | '>' | '#')).then_some((at, mark))
    };
    let Some(outer) = lines.first().and_then(|line| mark_of(line)) else {
        return lines.iter().map(|line| vec![line.clone()]).collect();
    };
    let mut found: Vec<Vec<String>> = Vec::new();
    for line in lines {
        let content = line.get(outer.0 + 2..).unwrap_or("").to_owned();
        match found.last_mut() {
            Some(element) if mark_of(line) != Some(outer) => element.push(content),
            _ => found.push(vec![content]),
        }
    }
    found
}

#[cfg(test)]
mod tests;
