use super::*;
use crate::KeySpec;

const BASE: Command<u8> = Command::runs(0);
const COMMANDS: &[Command<u8>] = &[
    Command {
        name: "get",
        keys: &[KeySpec::at(1).ro()],
        ..BASE
    },
    Command {
        name: "mset",
        keys: &[KeySpec::at(1).ow().last(-1).step(2)],
        ..BASE
    },
    Command {
        name: "rename",
        keys: &[KeySpec::at(1).rw(), KeySpec::at(2).ow()],
        ..BASE
    },
    Command {
        name: "zunion",
        keys: &[KeySpec::at(1).ro().counted()],
        ..BASE
    },
    Command {
        name: "spublish",
        keys: &[KeySpec::at(1).not_key()],
        ..BASE
    },
    Command {
        name: "sort_ro",
        ..BASE
    },
    Command {
        name: "georadiusbymember_ro",
        ..BASE
    },
    Command {
        name: "zrevrangebyscore",
        ..BASE
    },
    Command {
        name: "client",
        ..Command::container(&[
            Command {
                name: "kill",
                ..BASE
            },
            Command { name: "id", ..BASE },
        ])
    },
    Command {
        name: "hscan",
        ..BASE
    },
];

fn table() -> Table<u8> {
    Table::new(&[COMMANDS])
}

fn found(table: &Table<u8>, name: &str) -> Option<String> {
    table
        .find(name.as_bytes())
        .map(|entry| entry.full_name.to_string())
}

#[test]
fn every_name_is_found_in_any_case() {
    let table = table();
    for command in COMMANDS {
        assert_eq!(found(&table, command.name).as_deref(), Some(command.name));
        assert_eq!(
            found(&table, &command.name.to_uppercase()).as_deref(),
            Some(command.name)
        );
    }
}

#[test]
fn near_misses_are_not_found() {
    let table = table();
    let misses = [
        "",
        "g",
        "ge",
        "gett",
        "sort\x7fro",
        "georadiusbynember_ro",
        "client|kill",
        "kill",
    ];
    for name in misses {
        assert_eq!(found(&table, name), None, "{name:?}");
    }
    assert!(table.find(b"\xc7et").is_none());
    assert!(table.find(&[b'g'; 100_000]).is_none());
}

#[test]
fn subcommands_follow_their_container() {
    let table = table();
    let kill = table
        .resolve([b"CLIENT".as_slice(), b"Kill"].as_slice())
        .expect("known");
    assert_eq!(&*kill.full_name, "client|kill");
    let client = table.find(b"client").expect("known");
    assert_eq!((kill.parent, kill.id), (Some(client.id), client.id + 1));
    assert!(matches!(
        table.resolve([b"client".as_slice(), b"nope"].as_slice()),
        Err(Unresolved::Subcommand(entry)) if entry.id == client.id
    ));
    assert!(matches!(
        table.resolve([b"nope"].as_slice()),
        Err(Unresolved::Command)
    ));
    assert_eq!(
        table.find_full(b"CLIENT|ID").map(|e| e.id),
        Some(client.id + 2)
    );
    for (at, entry) in table.entries().iter().enumerate() {
        assert_eq!(usize::from(entry.id), at);
    }
}

#[test]
fn key_plans_agree_with_the_search() {
    let table = table();
    for call in [
        "get a",
        "mset a 1 b 2",
        "rename a b",
        "zunion 2 a b WEIGHTS 1 2",
        "spublish c m",
    ] {
        let words: Vec<&str> = call.split(' ').collect();
        let entry = table.resolve(words.as_slice()).expect("known");
        let (mut planned, mut searched) = (Vec::new(), Vec::new());
        entry
            .each_key_index(words.as_slice(), &mut |at| planned.push(at))
            .expect("parsable");
        let mut search = |key: KeyAt| searched.push(key.index);
        entry
            .command
            .each_key(words.as_slice(), &mut search)
            .expect("parsable");
        assert_eq!(planned, searched, "{call}");
    }
    assert_eq!(
        table.find(b"get").map(|e| e.key_plan),
        Some(KeyPlan::One(1))
    );
    assert_eq!(
        table.find(b"zunion").map(|e| e.key_plan),
        Some(KeyPlan::Search)
    );
    assert_eq!(
        table.find(b"spublish").map(|e| e.key_plan),
        Some(KeyPlan::None)
    );
}

#[test]
fn a_renamed_command_answers_to_its_new_name_only() {
    let table = Table::renamed(&[COMMANDS], |name| match name {
        "get" => Some("fetch".to_owned()),
        "mset" => None,
        other => Some(other.to_owned()),
    });
    assert_eq!(found(&table, "FETCH").as_deref(), Some("get"));
    assert_eq!(found(&table, "get"), None);
    assert_eq!(found(&table, "mset"), None);
    assert_eq!(table.len(), 12);
}

#[test]
#[should_panic(expected = "two commands have one name")]
fn two_commands_of_one_name_are_a_mistake() {
    Table::new(&[
        COMMANDS,
        &[Command {
            name: "GET",
            ..BASE
        }],
    ]);
}
