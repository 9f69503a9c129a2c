//! `rename-command`: other names for commands, or none.
//!
//! Only what clients call a command changes. Rights, statistics and the log go by its own name, so
//! a log can be read under other names than it was written under.

use std::collections::BTreeMap;

/// The commands that answer to other names than their own.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Renames(BTreeMap<&'static str, Option<String>>);

impl Renames {
    /// Gives the command that is called `old` at present another name, or none where `new` is
    /// empty.
    pub(super) fn add(&mut self, old: &[u8], new: &[u8]) -> Result<(), &'static str> {
        let is = |own: &str, name: &[u8]| {
            let present = self.name(own);
            present.is_some_and(|present| present.as_bytes().eq_ignore_ascii_case(name))
        };
        let command = own_names().find(|own| is(own, old));
        let command = command.ok_or("No such command in rename-command")?;
        let new = std::str::from_utf8(new).map_err(|_| "the new name is no text")?;
        if own_names().any(|own| own != command && is(own, new.as_bytes())) {
            return Err("Target command name already exists");
        }
        let new = (!new.is_empty()).then(|| new.to_owned());
        self.0.insert(command, new);
        Ok(())
    }

    /// What clients call a command; `None` where they cannot.
    pub fn name<'n>(&'n self, own: &'n str) -> Option<&'n str> {
        match self.0.get(own) {
            Some(other) => other.as_deref(),
            None => Some(own),
        }
    }
}

fn own_names() -> impl Iterator<Item = &'static str> {
    let families = engine::commands::FAMILIES.iter();
    let families = families.chain(crate::commands::FAMILIES);
    families.flat_map(|family| family.iter().map(|command| command.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_and_vanish_one_after_the_other() {
        let mut renames = Renames::default();
        let mut add = |old: &str, new: &str| renames.add(old.as_bytes(), new.as_bytes());
        assert_eq!(add("GET", "x"), Ok(()));
        assert_eq!(add("x", "y"), Ok(()));
        assert_eq!(add("set", "Get"), Ok(()));
        assert_eq!(add("get", "get"), Ok(()));
        assert_eq!(add("flushall", ""), Ok(()));
        let missing = Err("No such command in rename-command");
        assert_eq!(add("flushall", "z"), missing);
        assert_eq!(add("x", "z"), missing);
        assert_eq!(add("config|get", "z"), missing);
        let taken = Err("Target command name already exists");
        assert_eq!(add("del", "Y"), taken);
        assert_eq!(add("del", "\u{6c}push"), taken);
        let shown = ["get", "set", "flushall", "del"].map(|own| renames.name(own));
        assert_eq!(shown, [Some("y"), Some("get"), None, Some("del")]);
    }
}
