use super::*;
use crate::{Arity, Special};

type Spec = Command<()>;

const BASE: Spec = Command::runs(());

fn keys_of(command: &Spec, call: &str) -> Result<Vec<String>, Unparsable> {
    let words: Vec<&str> = call
        .split(' ')
        .map(|w| if w == "''" { "" } else { w })
        .collect();
    let mut found = Vec::new();
    command.each_key(words.as_slice(), &mut |key: KeyAt| {
        let flags: Vec<_> = key.flags.names().collect();
        found.push(format!("{}:{}", words[key.index], flags.join("+")));
    })?;
    Ok(found)
}

fn ok(command: &Spec, call: &str, expected: &[&str]) {
    assert_eq!(
        keys_of(command, call).as_deref(),
        Ok(&*expected.iter().map(|s| s.to_string()).collect::<Vec<_>>()),
        "{call}"
    );
}

fn unparsable(command: &Spec, call: &str) {
    assert_eq!(keys_of(command, call), Err(Unparsable), "{call}");
}

#[test]
fn ranges_reach_from_a_position_to_the_end() {
    const MSET: Spec = Spec {
        keys: &[KeySpec::at(1).ow().update().last(-1).step(2)],
        ..BASE
    };
    ok(&MSET, "mset a 1 b 2", &["a:OW+update", "b:OW+update"]);
    const BLPOP: Spec = Spec {
        keys: &[KeySpec::at(1).rw().last(-2)],
        ..BASE
    };
    ok(&BLPOP, "blpop a b 0", &["a:RW", "b:RW"]);
    ok(&BLPOP, "blpop a", &[]);
    assert_eq!(MSET.key_range(), (1, -1, 2));
    assert!(!MSET.is_movable());
}

#[test]
fn counted_keys_must_fit_the_words() {
    const ZUNION: Spec = Spec {
        keys: &[KeySpec::at(1).ro().counted()],
        ..BASE
    };
    ok(&ZUNION, "zunion 2 a b WEIGHTS 1 2", &["a:RO", "b:RO"]);
    for call in [
        "zunion 3 a b",
        "zunion 0 a",
        "zunion -1 a",
        "zunion x a",
        "zunion",
    ] {
        unparsable(&ZUNION, call);
    }
    unparsable(&ZUNION, "zunion 99999999999999999999 a");
    const EVAL: Spec = Spec {
        flags: Flags::NO_MANDATORY_KEYS,
        keys: &[KeySpec::at(2).rw().counted()],
        ..BASE
    };
    ok(&EVAL, "eval s 0 a", &[]);
    ok(&EVAL, "eval s 3 a", &[]);
    ok(&EVAL, "eval s 1 a", &["a:RW"]);
    const MSETEX: Spec = Spec {
        keys: &[KeySpec::at(1).ow().counted().step(2)],
        ..BASE
    };
    ok(&MSETEX, "msetex 2 a 1 b 2 EX 5", &["a:OW", "b:OW"]);
    assert!(MSETEX.is_movable());
    assert_eq!(MSETEX.key_range(), (0, 0, 0));
}

#[test]
fn a_keyword_is_searched_forwards_and_backwards() {
    const FORWARDS: Spec = Spec {
        keys: &[KeySpec::after("KEYS", 1).ro().last(-1)],
        ..BASE
    };
    ok(&FORWARDS, "x y keys a b", &["a:RO", "b:RO"]);
    ok(&FORWARDS, "x y", &[]);
    ok(&FORWARDS, "x y keys", &[]);
    const BACKWARDS: Spec = Spec {
        keys: &[KeySpec::after("KEYS", -2).ro().last(-1)],
        ..BASE
    };
    ok(&BACKWARDS, "x keys keys a b", &["a:RO", "b:RO"]);
    ok(&BACKWARDS, "x a keys", &[]);
    const HALVES: Spec = Spec {
        keys: &[KeySpec::after("STREAMS", 1).ro().last(-1).limit(2)],
        ..BASE
    };
    ok(&HALVES, "x streams a b 1 2", &["a:RO", "b:RO"]);
}

#[test]
fn channels_are_no_keys() {
    const SPUBLISH: Spec = Spec {
        keys: &[KeySpec::at(1).not_key()],
        ..BASE
    };
    ok(&SPUBLISH, "spublish c m", &[]);
}

#[test]
fn options_decide_what_happens_to_a_key() {
    const SET: Spec = Spec {
        special: Special::Set,
        keys: &[KeySpec::at(1).rw().access().update().variable()],
        ..BASE
    };
    ok(&SET, "set get v", &["get:OW+update"]);
    ok(&SET, "set k v ifeq w", &["k:RW+update"]);
    ok(&SET, "set k v EX 1 get", &["k:RW+access+update"]);
    const BITFIELD: Spec = Spec {
        special: Special::Bitfield,
        ..SET
    };
    ok(&BITFIELD, "bitfield k get u8 0", &["k:RO+access"]);
    ok(
        &BITFIELD,
        "bitfield k incrby u8 0 1",
        &["k:RW+access+update"],
    );
    const DELEX: Spec = Spec {
        special: Special::Delex,
        keys: &[KeySpec::at(1).rw().delete().variable()],
        ..BASE
    };
    ok(&DELEX, "delex k", &["k:RM+delete"]);
    ok(&DELEX, "delex k w", &["k:RM+delete"]);
    ok(&DELEX, "delex k IFEQ v", &["k:RW+delete"]);
}

#[test]
fn the_last_destination_wins() {
    const SORT: Spec = Spec {
        special: Special::Sort,
        keys: &[
            KeySpec::at(1).ro(),
            KeySpec::unknown().ro(),
            KeySpec::unknown().ow(),
        ],
        ..BASE
    };
    ok(
        &SORT,
        "sort a BY store GET store STORE d store e",
        &["a:RO", "e:OW"],
    );
    ok(&SORT, "sort a STORE", &["a:RO"]);
    const GEORADIUS: Spec = Spec {
        special: Special::Georadius(6),
        keys: &[
            KeySpec::at(1).ro(),
            KeySpec::after("STORE", 6).ow().incomplete(),
        ],
        ..BASE
    };
    ok(
        &GEORADIUS,
        "georadius a 1 2 3 m store b storedist c",
        &["a:RO", "c:OW"],
    );
    assert!(GEORADIUS.is_movable());
    assert_eq!(GEORADIUS.key_range(), (1, 1, 1));
}

#[test]
fn migrate_has_one_key_or_a_list() {
    const MIGRATE: Spec = Spec {
        special: Special::Migrate,
        arity: Arity::at_least(6),
        keys: &[
            KeySpec::at(3).rw(),
            KeySpec::after("KEYS", -2).rw().last(-1).incomplete(),
        ],
        ..BASE
    };
    ok(&MIGRATE, "migrate h 1 k 0 10 copy auth keys", &["k:RW"]);
    ok(&MIGRATE, "migrate h 1 '' 0 10 keys a b", &["a:RW", "b:RW"]);
    unparsable(&MIGRATE, "migrate h 1 k 0 10 keys a");
}

#[test]
fn streams_are_found_behind_the_option() {
    const XREAD: Spec = Spec {
        special: Special::Streams,
        keys: &[KeySpec::after("STREAMS", 1)
            .ro()
            .last(-1)
            .limit(2)
            .incomplete()],
        ..BASE
    };
    ok(&XREAD, "xread count 1 streams streams 0", &["streams:RO"]);
    ok(
        &XREAD,
        "xreadgroup group g streams noack streams a b > >",
        &["a:RO", "b:RO"],
    );
    for call in [
        "xread streams",
        "xread streams a b 1",
        "xread what streams a 1",
        "xread count",
    ] {
        unparsable(&XREAD, call);
    }
}
