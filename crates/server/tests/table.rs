//! The whole table of commands, the engine's families and the server's, against the rules of the
//! house and against the facts of the real Redis.

use engine::{Command, Table};

/// COMMAND and COMMAND DOCS of the real server, without their sentences.
const FACTS: &str = include_str!("../../../testkit/compat/redis-8.10.json");

fn families() -> Vec<&'static [Command]> {
    let ours = engine::commands::FAMILIES.iter();
    ours.chain(server::commands::FAMILIES).copied().collect()
}

#[test]
fn declarations_keep_the_rules() {
    let complaints = command::check::all(&families());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn declarations_say_what_redis_says() {
    let table = Table::new(&families());
    let differences = command::facts::differences(&table, FACTS).expect("the facts are JSON");
    let differences: Vec<_> = differences
        .into_iter()
        .filter(|line| !is_cut(line) && !takes_more(line))
        .collect();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// The facts end some complexities at the first closing bracket.
fn is_cut(line: &str) -> bool {
    let values = line
        .split_once(".complexity: ours \"")
        .map(|(_, values)| values);
    let values = values.and_then(|values| values.split_once("\", theirs \""));
    values.is_some_and(|(ours, theirs)| ours.starts_with(theirs.trim_end_matches('"')))
}

/// Commands that take Valkey's own words too.
fn takes_more(line: &str) -> bool {
    const MORE: &[&str] = &["hsetex", "zscan"];
    let name = line
        .strip_suffix(']')
        .and_then(|_| line.split_once(".docs.arguments: "));
    name.is_some_and(|(name, _)| MORE.contains(&name))
}
