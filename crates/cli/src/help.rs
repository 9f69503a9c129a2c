//! `help` at the prompt: pages about commands and groups of them.

use crate::docs::{Doc, Docs};
use crate::highlight::{BOLD, DIM, RESET, YELLOW};

/// The page for what follows `help`. Coloured pages are those at a terminal.
pub fn page(docs: &Docs, topic: &[String], colour: bool) -> String {
    let paint = |colour_name: &'static str| if colour { colour_name } else { "" };
    let shown = |doc: &Doc, with_group: bool| {
        let (bold, dim, yellow, reset) = (paint(BOLD), paint(DIM), paint(YELLOW), paint(RESET));
        let mut text = format!("\n  {bold}{}{reset} {dim}{}{reset}\n", doc.name, doc.syntax);
        text += &format!("  {yellow}summary:{reset} {}\n", doc.summary);
        text += &format!("  {yellow}since:{reset} {}\n", doc.since);
        if with_group {
            text += &format!("  {yellow}group:{reset} {}\n", doc.group);
        }
        text
    };
    let Some(first) = topic.first() else {
        return overview();
    };
    let mut text = String::new();
    if let Some(group) = first.strip_prefix('@') {
        let of_group = |doc: &&Doc| is_group(&doc.group, group);
        let docs = docs.all().iter().filter(of_group);
        docs.for_each(|doc| text += &shown(doc, false));
    } else {
        let name = topic.join(" ").to_ascii_uppercase();
        let behind = format!("{name} ");
        let found = |doc: &&Doc| doc.name == name || doc.name.starts_with(&behind);
        let docs = docs.all().iter().filter(found);
        docs.for_each(|doc| text += &shown(doc, true));
    }
    text + "\n"
}

/// Servers name groups with hyphens or underscores.
fn is_group(name: &str, wanted: &str) -> bool {
    name.replace('_', "-")
        .eq_ignore_ascii_case(&wanted.replace('_', "-"))
}

/// The groups, each once.
pub fn groups(docs: &Docs) -> Vec<&str> {
    let mut groups: Vec<&str> = docs.all().iter().map(|doc| doc.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.retain(|group| !group.is_empty());
    groups
}

fn overview() -> String {
    let version = crate::options::version();
    format!(
        "{version}\n\
         To get help about commands type:\n      \
         \"help @<group>\" to get a list of commands in <group>\n      \
         \"help <command>\" for help on <command>\n      \
         \"help <tab>\" to get a list of possible help topics\n      \
         \"quit\" to exit\n\n\
         To set preferences, here or in ~/.tidemillclirc:\n      \
         \":set hints\" shows what may follow as you type\n      \
         \":set nohints\" does not\n      \
         \":set pager\" shows long replies a screen at a time\n      \
         \":set nopager\" does not\n\n\
         Views:\n      \
         \":watch [seconds] <command>\" runs it again and again\n      \
         \":streams [pattern]\" shows groups, consumers, pending entries and lag\n      \
         \":tree [delimiter]\" shows keys with counts and memory\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_name_and_by_group() {
        let docs = Docs::offline();
        let topic = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let get = page(&docs, &topic("get"), false);
        assert!(get.starts_with("\n  GET key\n  summary: "), "{get}");
        assert!(get.contains("  group: string\n"));
        let config = page(&docs, &topic("config"), false);
        assert!(config.contains("\n  CONFIG GET parameter [parameter ...]\n"));
        let sorted = page(&docs, &topic("@sorted_set"), true);
        assert!(sorted.contains("\x1b[1mZADD\x1b[0m"), "{sorted}");
        assert_eq!(page(&docs, &topic("nosuch"), false), "\n");
        assert!(groups(&docs).contains(&"stream"));
    }
}
