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
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}
