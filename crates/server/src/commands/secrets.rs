//! Which words of a command are secret: passwords, which neither monitors nor the slow log may
//! show.

use engine::Entry;
use resp::Args;

use crate::config::Config;

/// What stands in a secret's place.
pub(super) const SHOWN: &[u8] = b"(redacted)";

/// The positions of a command's secret words.
pub(super) fn positions(entry: &Entry, args: Args<'_>) -> Vec<usize> {
    match &*entry.full_name {
        "auth" => (1..args.len()).collect(),
        "acl|setuser" | "acl|deluser" | "acl|getuser" => (2..args.len()).collect(),
        "hello" => after(args, 2, &[("AUTH", 2)]),
        "migrate" => after(args, 6, &[("AUTH", 1), ("AUTH2", 2)]),
        "config|set" => (2..args.len())
            .step_by(2)
            .filter(|&index| Config::is_secret(args.at(index)))
            .map(|index| index + 1)
            .collect(),
        _ => Vec::new(),
    }
}

/// The words after each of these options, so many.
fn after(args: Args<'_>, from: usize, options: &[(&str, usize)]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = from;
    while at < args.len() {
        let count = options
            .iter()
            .find(|(option, _)| args.is(at, option))
            .map_or(0, |&(_, count)| count);
        found.extend(at + 1..=at + count);
        at += 1 + count;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(words: &[&str]) -> Vec<usize> {
        let families: Vec<_> = engine::commands::FAMILIES
            .iter()
            .chain(crate::commands::FAMILIES)
            .copied()
            .collect();
        let table = engine::Table::new(&families);
        let owned = resp::OwnedArgs::from_words(words.iter().map(|word| word.as_bytes()));
        let entry = table.resolve(&owned.view()).expect("a command");
        positions(entry, owned.view())
    }

    #[test]
    fn passwords_are_found_and_nothing_else() {
        assert_eq!(hidden(&["AUTH", "x"]), [1]);
        assert_eq!(hidden(&["auth", "default", "x"]), [1, 2]);
        assert_eq!(hidden(&["HELLO", "3", "SETNAME", "a"]), [0; 0]);
        assert_eq!(
            hidden(&["HELLO", "3", "SETNAME", "a", "auth", "u", "p"]),
            [5, 6]
        );
        assert_eq!(hidden(&["SET", "auth", "x"]), [0; 0]);
    }
}
