use resp::OwnedArgs;

use super::*;
use crate::acl::{Denial, Reason};

fn table() -> Table {
    Table::new(crate::commands::FAMILIES)
}

fn account(table: &Table, rules: &str) -> Account {
    let bounds = Bounds {
        table,
        all_channels: false,
    };
    let words = rules.split(' ').map(str::as_bytes);
    let mut account = Account::new(&bounds);
    for rule in join_selectors(words).expect("closed selectors") {
        account.apply(&rule, &bounds).expect("a rule");
    }
    account
}

/// What is refused of a call, by its word.
fn refused(table: &Table, rules: &str, call: &str) -> Option<(Reason, String)> {
    let args = OwnedArgs::from_words(call.split(' ').map(str::as_bytes));
    let args = args.view();
    let entry = table.resolve(&args).expect("a command");
    let Denial { reason, at } = account(table, rules).rights().check(0, entry, args).err()?;
    Some((reason, String::from_utf8_lossy(args.at(at)).into_owned()))
}

#[test]
fn what_an_account_shows_makes_the_same_account() {
    let table = table();
    for rules in [
        "on nopass ~* &* +@all",
        "on >secret %R~a:* %W~b:* ~c &news:* +@read -get +set",
        "skip-sanitize-payload +@all -@dangerous +keys -xinfo +xinfo|help",
        "+get|a +select|0 -@read (+set ~x) (~* resetchannels db=3,1 +@all -set)",
        "resetdbs +@all allchannels",
    ] {
        let first = account(&table, rules);
        let shown = String::from_utf8(first.show(b"u")).expect("text");
        let rules = shown.strip_prefix("user u ").expect("a line");
        let again = account(&table, rules);
        assert_eq!(again.show(b"u"), first.show(b"u"), "{shown}");
        assert_eq!(again.rights(), first.rights(), "{shown}");
    }
}

#[test]
fn a_key_is_allowed_by_what_is_done_with_it() {
    let table = table();
    let rules = "%R~r* %W~w* +@all";
    for (call, key) in [
        ("get r1", None),
        ("get w1", Some("w1")),
        ("set w1 v", None),
        ("set w1 v get", Some("w1")),
        ("set r1 v", Some("r1")),
        ("exists w1", None),
        ("exists x", Some("x")),
        ("copy r1 w1", None),
        ("copy w1 r1", Some("w1")),
        ("mget r1 r2 x r3", Some("x")),
        ("sort r1 store r2", Some("r2")),
        ("xread count 1 streams r1 w1 0 0", Some("w1")),
        ("xread streams r1 w1 0", Some("xread")),
        ("zunionstore w1 2 r1 x", Some("x")),
        ("ping", None),
    ] {
        let want = key.map(|key| (Reason::Key, key.to_owned()));
        assert_eq!(refused(&table, rules, call), want, "{call}");
    }
}

#[test]
fn one_selector_must_allow_all_of_a_call() {
    let table = table();
    let rules = "+get ~a (+set ~b) (+@all ~c &ch db=0)";
    for (call, want) in [
        ("get a", None),
        ("set b v", None),
        ("set c v", None),
        ("set a v", Some((Reason::Key, "a"))),
        // Only the last selector has the command, and it has neither key.
        ("rename a b", Some((Reason::Key, "a"))),
        ("publish ch v", None),
        ("publish other v", Some((Reason::Channel, "other"))),
        ("psubscribe c*", Some((Reason::Channel, "c*"))),
        ("select 1", Some((Reason::Database, "1"))),
        ("copy c c2 db 7", Some((Reason::Database, "7"))),
    ] {
        let want = want.map(|(reason, word)| (reason, word.to_owned()));
        assert_eq!(refused(&table, rules, call), want, "{call}");
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_said() {
    let table = table();
    let bounds = Bounds {
        table: &table,
        all_channels: false,
    };
    for (rule, want) in [
        ("foo", RuleError::Syntax),
        ("(on)", RuleError::Syntax),
        ("%~x", RuleError::Syntax),
        ("%RR~x", RuleError::Syntax),
        ("~a b", RuleError::Syntax),
        ("+get|", RuleError::Syntax),
        ("+nosuch", RuleError::Unknown),
        ("+xinfo|nosuch", RuleError::Unknown),
        ("-get|x", RuleError::Unknown),
        ("+xinfo|help|x", RuleError::FirstWordOfSubcommand),
        ("#abc", RuleError::BadDigest),
        ("<x", RuleError::NoSuchPassword),
        ("db=1,", RuleError::Syntax),
        ("db=-1", RuleError::DatabaseRange),
    ] {
        let mut account = Account::new(&bounds);
        assert_eq!(account.apply(rule.as_bytes(), &bounds), Err(want), "{rule}");
    }
    let mut account = account(&table, "~* &*");
    let after = account.apply(b"~x", &bounds);
    assert_eq!(after, Err(RuleError::AfterAllKeys));
    let after = account.apply(b"&x", &bounds);
    assert_eq!(after, Err(RuleError::AfterAllChannels));
}

#[test]
fn a_password_is_right_only_where_the_account_is_on() {
    let table = table();
    let admits =
        |rules: &str, given: &str| account(&table, rules).admits(&Digest::of(given.as_bytes()));
    assert!(admits("on >a >b", "b"));
    assert!(!admits("on >a >b <b", "b"));
    assert!(!admits("off >a", "a"));
    assert!(admits("on nopass", "anything"));
    assert!(!admits("on nopass >a", "anything"));
    assert!(!admits("on", ""));
    assert!(!admits("off nopass", ""));
}
