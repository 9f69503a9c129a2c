use resp::{Output, OwnedArgs, Protocol};

use super::*;
use crate::arg::*;
use crate::{Arity, Group, KeySpec, Shape, Special};

const BASE: Command<u8> = Command::runs(0);
const COMMANDS: &[Command<u8>] = &[
    Command {
        name: "get",
        group: Group::String,
        since: "1.0.0",
        summary: "Returns a string.",
        complexity: "O(1)",
        arity: Arity::exactly(2),
        flags: Flags::READONLY.with(Flags::FAST),
        acl: Acl::STRING,
        keys: &[KeySpec::at(1).ro().access()],
        args: &[
            key("key"),
            one_of("when", &[flag("NX").since("2.0.0")])
                .optional()
                .multiple(),
        ],
        reply: &[Shape::Bulk],
        tips: &["nondeterministic_output"],
        ..BASE
    },
    Command {
        name: "set",
        arity: Arity::at_least(3),
        flags: Flags::WRITE,
        keys: &[KeySpec::at(1)
            .rw()
            .access()
            .update()
            .variable()
            .note("Why.")],
        special: Special::Set,
        ..BASE
    },
    Command {
        name: "eval",
        arity: Arity::at_least(3),
        flags: Flags::NO_MANDATORY_KEYS,
        keys: &[KeySpec::at(2).rw().counted()],
        ..BASE
    },
    Command {
        name: "lmpop",
        arity: Arity::at_least(4),
        keys: &[KeySpec::at(1).rw().counted()],
        ..BASE
    },
    Command {
        name: "ping",
        arity: Arity::at_least(1),
        acl: Acl::CONNECTION,
        ..BASE
    },
    Command {
        name: "client",
        ..Command::container(&[Command {
            name: "kill",
            arity: Arity::at_least(3),
            flags: Flags::ADMIN,
            acl: Acl::CONNECTION,
            deprecated: Some(("6.2.0", "nothing")),
            history: &[("2.8.12", "Takes filters.")],
            ..BASE
        }])
    },
];

fn words(line: &str) -> OwnedArgs {
    OwnedArgs::from_words(line.split_ascii_whitespace().map(str::as_bytes))
}

fn written(protocol: Protocol, write: impl FnOnce(&Table<u8>, &mut Writer<'_>)) -> String {
    let mut out = Output::default();
    write(
        &Table::new(&[COMMANDS]),
        &mut Writer::new(&mut out, protocol),
    );
    String::from_utf8_lossy(out.since(0))
        .replace("\r\n", " ")
        .trim_end()
        .to_owned()
}

#[test]
fn a_command_is_described_in_both_protocols() {
    let info_of = |names: &str, protocol| {
        written(protocol, |table, out| info(table, words(names).view(), out))
    };
    assert_eq!(
        info_of("GET nope", Protocol::Resp2),
        "*2 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast \
         *1 $23 nondeterministic_output *1 *6 $5 flags *2 +RO +access $12 begin_search *4 $4 type \
         $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 $7 lastkey :0 \
         $7 keystep :1 $5 limit :0 *0 $-1"
    );
    assert_eq!(
        info_of("client|KILL", Protocol::Resp3),
        "*1 *10 $11 client|kill :-3 ~1 +admin :0 :0 :0 ~4 +@admin +@slow +@dangerous +@connection \
         ~0 ~0 ~0"
    );
    let all = info_of("", Protocol::Resp3);
    assert!(all.starts_with("*6 *10 $3 get "));
    assert!(all.contains("~1 %4 $5 notes $4 Why. $5 flags ~4 +RW"));
    assert!(all.contains("~1 +movablekeys"));
    assert!(all.ends_with(
        "*1 *10 $11 client|kill :-3 ~1 +admin :0 :0 :0 \
         ~4 +@admin +@slow +@dangerous +@connection ~0 ~0 ~0"
    ));
}

#[test]
fn documents_nest_and_leave_unknown_names_out() {
    let docs_of = |names: &str, protocol| {
        written(protocol, |table, out| docs(table, words(names).view(), out))
    };
    assert_eq!(
        docs_of("nope Get", Protocol::Resp3),
        "%1 $3 get %5 $7 summary $17 Returns a string. $5 since $5 1.0.0 $5 group $6 string \
         $10 complexity $4 O(1) $9 arguments *2 %4 $4 name $3 key $4 type $3 key $12 display_text \
         $3 key $14 key_spec_index :0 %4 $4 name $4 when $4 type $5 oneof $5 flags ~2 +optional \
         +multiple $9 arguments *1 %5 $4 name $2 nx $4 type $10 pure-token $12 display_text $2 nx \
         $5 token $2 NX $5 since $5 2.0.0"
    );
    assert_eq!(
        docs_of("client", Protocol::Resp2),
        "*2 $6 client *8 $7 summary $0  $5 since $0  $5 group $7 generic $11 subcommands *2 \
         $11 client|kill *14 $7 summary $0  $5 since $0  $5 group $7 generic $9 doc_flags *1 \
         +deprecated $16 deprecated_since $5 6.2.0 $11 replaced_by $7 nothing $7 history *1 \
         *2 $6 2.8.12 $14 Takes filters."
    );
    assert_eq!(docs_of("nope", Protocol::Resp2), "*0");
}

#[test]
fn lists_take_one_filter() {
    let starts_with = |pattern: &[u8], name: &[u8]| name.starts_with(pattern);
    let list_of = |filter: &str| {
        let mut result = Ok(());
        let text = written(Protocol::Resp2, |table, out| {
            result = list(table, words(filter).view(), starts_with, out);
        });
        result.map(|()| text)
    };
    let all = "*7 $3 get $3 set $4 eval $5 lmpop $4 ping $6 client $11 client|kill";
    assert_eq!(list_of("").as_deref(), Ok(all));
    assert_eq!(
        list_of("filterby PATTERN CLIENT|").as_deref(),
        Ok("*1 $11 client|kill")
    );
    assert_eq!(
        list_of("filterby aclcat Connection").as_deref(),
        Ok("*2 $4 ping $11 client|kill")
    );
    assert_eq!(list_of("filterby aclcat nope").as_deref(), Ok("*0"));
    assert_eq!(list_of("filterby module json").as_deref(), Ok("*0"));
    for bad in ["filterby", "filterby pattern", "filterby what x", "x y z"] {
        assert_eq!(list_of(bad), Err(NotAFilter), "{bad}");
    }
}

#[test]
fn keys_are_shown_or_the_reason_there_are_none() {
    let keys_of = |line: &str| {
        let mut result = Ok(());
        let line = words(line);
        let text = written(Protocol::Resp3, |table, out| {
            result = keys_and_flags(table, line.view(), out);
        });
        result.map(|()| text)
    };
    assert_eq!(
        keys_of("set a b").as_deref(),
        Ok("*1 *2 $1 a ~2 +OW +update")
    );
    assert_eq!(
        keys_of("set a b GET").as_deref(),
        Ok("*1 *2 $1 a ~3 +RW +access +update")
    );
    assert_eq!(keys_of("eval s 0").as_deref(), Ok("*0"));
    assert_eq!(keys_of("eval s 7 a").as_deref(), Ok("*0"));
    assert_eq!(keys_of("lmpop x a LEFT"), Err(NoKeys::Unparsable));
    assert_eq!(keys_of("get"), Err(NoKeys::Arity));
    assert_eq!(keys_of("ping"), Err(NoKeys::HasNone));
    assert_eq!(keys_of("client"), Err(NoKeys::HasNone));
    assert_eq!(keys_of("client nope"), Err(NoKeys::UnknownCommand));
    assert_eq!(keys_of("nope"), Err(NoKeys::UnknownCommand));
    assert_eq!(keys_of(""), Err(NoKeys::UnknownCommand));
}
