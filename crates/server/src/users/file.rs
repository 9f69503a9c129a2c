//! Users in files: `aclfile`, and `user` lines of the configuration.
//!
//! # Invariant
//! - A file is taken whole or not at all, and the errors say every line that is wrong.

use std::collections::BTreeMap;
use std::path::Path;

use engine::acl::{Account, Bounds, join_selectors};
use engine::error::shown;

use super::{DEFAULT, Mistake, Users, apply, check_name};
use crate::config::{UserLine, replace_file, system_text};

/// Bytes that a file of users may have.
const BYTES_MAX: u64 = 64 << 20;

/// Why users were not loaded. Shown, it is one line.
#[derive(Debug)]
pub struct LoadError(String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

const UNCHANGED: &str =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

impl Users {
    /// Puts the users of a file in the place of all there are; returns the names of those who are
    /// gone.
    ///
    /// # Errors
    /// Where the file cannot be read, or a line of it is wrong: then nothing was changed.
    pub fn load(&self, path: &Path, bounds: &Bounds<'_>) -> Result<Vec<Box<[u8]>>, LoadError> {
        let text = read(path).map_err(|error| {
            let (path, error) = (path.display(), system_text(&error));
            LoadError(format!(
                "Error loading ACLs, opening file '{path}': {error}"
            ))
        })?;
        let accounts = parse(&text, &path.display().to_string(), bounds)?;
        Ok(self.replace(accounts))
    }

    /// Writes every user into a file, in one step.
    ///
    /// # Errors
    /// As the file system says.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let mut text = self.lines().join(&b'\n');
        text.push(b'\n');
        // A link is followed, so that it stays a link.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let path = std::path::absolute(path)?;
        replace_file(&path, &text)
    }

    /// Takes the users that the configuration declares, at start.
    ///
    /// # Errors
    /// What is wrong with the first line that is.
    pub fn declare(&self, lines: &[UserLine], bounds: &Bounds<'_>) -> Result<(), LoadError> {
        let mut seen: Vec<&[u8]> = Vec::new();
        for UserLine { place, name, rules } in lines {
            let wrong = |reason: &str| {
                let name = shown(name);
                LoadError(format!(
                    "{place}: in the declaration of user '{name}': {reason}"
                ))
            };
            if seen.contains(&name.as_slice()) {
                return Err(wrong("a user can only be declared once"));
            }
            seen.push(name);
            let rules: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
            // The default user begins as any other.
            let begin: &[&[u8]] = if name == DEFAULT { &[b"reset"] } else { &[] };
            self.set(name, begin, bounds)
                .and_then(|()| self.set(name, &rules, bounds))
                .map_err(|mistake| wrong(&reason_of(&mistake)))?;
        }
        Ok(())
    }
}

/// What is wrong, without the rule itself where that may be a password.
fn reason_of(mistake: &Mistake) -> String {
    match mistake {
        Mistake::Rule(rule, error) if matches!(rule.first(), Some(b'+' | b'-' | b'~' | b'&')) => {
            format!("'{}': {error}", shown(rule))
        }
        Mistake::Rule(_, error) => error.to_string(),
        other => other.to_string().trim_start_matches("ERR ").to_owned(),
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    let mut file = std::fs::File::open(path)?.take(BYTES_MAX + 1);
    file.read_to_end(&mut text)?;
    match text.len() as u64 > BYTES_MAX {
        true => Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge)),
        false => Ok(text),
    }
}

fn parse(
    text: &[u8],
    path: &str,
    bounds: &Bounds<'_>,
) -> Result<BTreeMap<Box<[u8]>, Account>, LoadError> {
    let mut accounts = BTreeMap::new();
    let mut errors = String::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let (Some(b"user"), Some(name)) = (words.next(), words.next()) else {
            errors += &format!(
                "{path}:{number} should start with user keyword followed by the username. "
            );
            continue;
        };
        if accounts.contains_key(name) {
            errors += &format!(
                "WARNING: Duplicate user '{}' found on line {number}. ",
                shown(name)
            );
            continue;
        }
        let mut account = Account::new(bounds);
        let mut result = check_name(name);
        let rules = join_selectors(words);
        match rules {
            // Every rule is tried, so that all mistakes are said.
            Ok(rules) => {
                for rule in rules {
                    let one = apply(&mut account, std::slice::from_ref(&rule), bounds);
                    if let Err(Mistake::Rule(rule, error)) = one {
                        errors += &match rule.first() {
                            Some(b'+' | b'-') => {
                                let rule = shown(&rule);
                                format!(
                                    "{path}:{number}: Error in applying operation '{rule}': \
                                     {error}. "
                                )
                            }
                            _ => format!("{path}:{number}: {error}. "),
                        };
                    }
                }
            }
            Err(first) => result = Err(Mistake::Unmatched(first.to_vec())),
        }
        if let Err(mistake) = result {
            errors += &format!("{path}:{number}: {}. ", reason_of(&mistake));
        }
        accounts.insert(name.into(), account);
    }
    if !errors.is_empty() {
        return Err(LoadError(errors + UNCHANGED));
    }
    accounts
        .entry(DEFAULT.into())
        .or_insert_with(|| Account::default_user(None));
    Ok(accounts)
}
