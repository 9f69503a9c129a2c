//! The differences that are wanted, or that nobody can see: `allowed.txt`, each with its reason.
//!
//! ```text
//! == why the replies may differ, in one line
//! command OBJECT REFCOUNT *
//! ours (integer) 1
//! theirs *
//! against redis-8.10
//! ```
//!
//! A star stands for any text. `command` compares without case; several such lines are
//! alternatives. `after` asks for a command that was played before. `against` is left out where the
//! difference is the same for every server.

/// One allowed difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub reason: String,
    commands: Vec<String>,
    ours: String,
    theirs: String,
    after: Option<String>,
    against: Option<String>,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    pub rules: Vec<Rule>,
}

impl Allowed {
    /// Reads a file's text and keeps what is for this server. An error names the line.
    pub fn parse(text: &str, server: &str) -> Result<Self, String> {
        let mut rules: Vec<Rule> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if word == "==" {
                rules.push(Rule {
                    reason: rest.to_owned(),
                    commands: Vec::new(),
                    ours: "*".to_owned(),
                    theirs: "*".to_owned(),
                    after: None,
                    against: None,
                });
                continue;
            }
            let rule = rules
                .last_mut()
                .ok_or_else(|| format!("line {}: no `==` above", at + 1))?;
            match word {
                "command" => rule.commands.push(rest.to_lowercase()),
                "ours" => rest.clone_into(&mut rule.ours),
                "theirs" => rest.clone_into(&mut rule.theirs),
                "after" => rule.after = Some(rest.to_lowercase()),
                "against" => rule.against = Some(rest.to_owned()),
                _ => return Err(format!("line {}: {word}?", at + 1)),
            }
        }
        if let Some(rule) = rules
            .iter()
            .find(|rule| rule.reason.is_empty() || rule.commands.is_empty())
        {
            return Err(format!("no reason or no command: {rule:?}"));
        }
        rules.retain(|rule| rule.against.as_deref().is_none_or(|name| name == server));
        Ok(Self { rules })
    }

    /// The number of the rule that allows this, after these commands.
    pub fn find(&self, command: &str, ours: &str, theirs: &str, played: &[&str]) -> Option<usize> {
        let command = command.to_lowercase();
        let was_played =
            |pattern: &String| played.iter().any(|one| fits(pattern, &one.to_lowercase()));
        self.rules.iter().position(|rule| {
            let is_after = rule.after.as_ref().is_none_or(was_played);
            is_after
                && rule.commands.iter().any(|pattern| fits(pattern, &command))
                && fits(&rule.ours, ours)
                && fits(&rule.theirs, theirs)
        })
    }
}

/// Whether a text is as the pattern says, in which a star stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        assert!(fits("a*c", "abc") && fits("*", "") && fits("a", "a") && fits("*b*", "abc"));
        assert!(!fits("a*c", "abd") && !fits("a", "ab") && !fits("ab*ba", "aba"));
    }

    #[test]
    fn rules_are_read_and_found() {
        let text = "# x\n== because\ncommand OBJECT REFCOUNT *\nours (integer) 1\n\
                    == other\ncommand GET *\nagainst valkey-9.1\n";
        let allowed = Allowed::parse(text, "redis-8.10").expect("rules");
        assert_eq!(allowed.rules.len(), 1);
        assert_eq!(
            allowed.find("object refcount s1", "(integer) 1", "(integer) 5", &[]),
            Some(0)
        );
        assert_eq!(
            allowed.find("object refcount s1", "(integer) 2", "(integer) 5", &[]),
            None
        );
        let text = "== because\ncommand OBJECT *\nafter sort*\n";
        let allowed = Allowed::parse(text, "").expect("rules");
        assert_eq!(allowed.find("OBJECT ENCODING z", "", "", &["GET a"]), None);
        assert_eq!(
            allowed.find("OBJECT ENCODING z", "", "", &["SORT z"]),
            Some(0)
        );
        assert!(Allowed::parse("command x", "").is_err());
        assert!(Allowed::parse("== x", "").is_err());
    }

    #[test]
    fn the_committed_list_is_readable() {
        for server in ["redis-8.10", "valkey-9.1"] {
            Allowed::parse(include_str!("../allowed.txt"), server).expect("rules");
        }
    }
}
