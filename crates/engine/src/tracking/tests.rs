use std::any::Any;
use std::sync::Arc;

use resp::Protocol;

use super::*;
use crate::handler::Entry;
use crate::session::Session;

/// Notes who is told what.
#[derive(Default)]
struct Notes(Vec<(u64, u64, String)>);

impl Notes {
    fn take(&mut self) -> Vec<(u64, u64, String)> {
        let mut told = std::mem::take(&mut self.0);
        told.sort();
        told
    }
}

impl Host for Notes {
    fn push(&mut self, _: ClientId, _: &Arc<Push>) {}

    fn invalidate(&mut self, to: ClientId, about: ClientId, push: &Arc<Push>) {
        let text = String::from_utf8_lossy(push.encoded(Protocol::Resp3)).replace("\r\n", " ");
        let keys = text.trim().replace(">2 $10 invalidate ", "");
        self.0.push((to.number, about.number, keys));
    }

    fn serve(&mut self, _: ClientId, _: &[u8]) {}

    fn random(&mut self) -> u64 {
        0
    }

    fn ticks(&mut self) -> u64 {
        0
    }

    fn ticks_per_us(&self) -> f64 {
        1.0
    }

    fn monitor(&mut self, _: &Session, _: &Entry, _: resp::Args<'_>) {}

    fn is_monitored(&self) -> bool {
        false
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

fn client(number: u64) -> ClientId {
    ClientId { thread: 0, number }
}

fn with(mode: Mode, redirect: Option<u64>) -> Tracking {
    Tracking {
        mode,
        redirect: redirect.map(client),
        ..Tracking::default()
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("k{number}").into_bytes()
}

#[test]
fn each_reader_is_told_once() {
    let (registry, mut notes) = (Registry::default(), Notes::default());
    registry.set(client(1), &with(Mode::All, None), &[]);
    registry.set(client(2), &with(Mode::All, Some(9)), &[]);
    for number in [1, 2, 1] {
        registry.remember(5, b"k", client(number), 0, &mut notes);
    }
    assert_eq!((registry.keys(), registry.items()), (1, 2));
    registry.changed(5, b"other", None, &mut notes);
    assert_eq!(notes.take(), []);
    registry.changed(5, b"k", None, &mut notes);
    let told = |to, about| (to, about, "*1 $1 k".to_owned());
    assert_eq!(notes.take(), [told(1, 1), told(9, 2)]);
    registry.changed(5, b"k", None, &mut notes);
    assert_eq!(notes.take(), []);
    assert_eq!((registry.keys(), registry.items()), (0, 0));
}

#[test]
fn who_is_gone_is_passed_over_and_leaves_nothing() {
    let (registry, mut notes) = (Registry::default(), Notes::default());
    let tracking = with(Mode::All, None);
    registry.set(client(1), &tracking, &[]);
    for number in 2..=10_000 {
        registry.set(client(number), &tracking, &[]);
        registry.remember(7, b"hot", client(number), 0, &mut notes);
        registry.forget(client(number), &tracking);
    }
    assert!(
        registry.items() <= 2 * READERS_PRUNED_FROM,
        "{}",
        registry.items()
    );
    registry.changed(7, b"hot", None, &mut notes);
    assert_eq!(notes.take(), []);
    registry.remember(7, b"hot", client(1), 0, &mut notes);
    registry.forget(client(1), &tracking);
    assert!(!registry.is_on());
    assert_eq!((registry.keys(), registry.items()), (0, 0));
}

#[test]
fn keys_past_the_limit_go_and_are_reported() {
    let (registry, mut notes) = (Registry::default(), Notes::default());
    registry.set(client(1), &with(Mode::All, None), &[]);
    for number in 0..1000 {
        registry.remember(number, &key(number), client(1), 100, &mut notes);
        assert!(registry.keys() <= 100);
    }
    assert_eq!(registry.keys(), 100);
    assert_eq!(notes.take().len(), 900);
    registry.changed_all(&mut notes);
    assert_eq!(notes.take(), [(1, 1, "_".to_owned())]);
    assert_eq!((registry.keys(), registry.items()), (0, 0));
}

#[test]
fn changes_are_gathered_by_prefix() {
    let (registry, mut notes) = (Registry::default(), Notes::default());
    let mut broadcast = with(Mode::Broadcast, None);
    broadcast.prefixes = vec![b"a".as_slice().into(), b"b".as_slice().into()];
    registry.set(client(1), &broadcast, &broadcast.prefixes);
    let mut all = with(Mode::Broadcast, None);
    all.prefixes = vec![Box::default()];
    all.is_noloop = true;
    registry.set(client(2), &all, &all.prefixes);
    assert_eq!(registry.prefixes(), 3);
    let mut changes = Changes::new();
    for (name, by) in [("a2", None), ("a1", Some(2)), ("c", Some(1))] {
        changes.insert(name.as_bytes().into(), by.map(client));
    }
    registry.broadcast(&changes, &mut notes);
    let told = |to, text: &str| (to, to, text.to_owned());
    assert_eq!(
        notes.take(),
        [told(1, "*2 $2 a1 $2 a2"), told(2, "*2 $2 a2 $1 c")]
    );
    registry.forget(client(2), &all);
    assert_eq!(registry.prefixes(), 2);
    registry.forget(client(1), &broadcast);
    assert_eq!(registry.prefixes(), 0);
    registry.broadcast(&changes, &mut notes);
    assert_eq!(notes.take(), []);
}

#[test]
fn exceptions_hold_for_their_own_mode() {
    for (mode, plain, excepted) in [
        (Mode::All, true, true),
        (Mode::OptIn, false, true),
        (Mode::OptOut, true, false),
        (Mode::Broadcast, false, false),
    ] {
        let mut tracking = with(mode, None);
        assert_eq!(tracking.remembers(), plain, "{mode:?}");
        tracking.is_excepted = true;
        assert_eq!(tracking.remembers(), excepted, "{mode:?}");
    }
    assert_eq!(Tracking::told(None), -1);
    assert_eq!(Tracking::told(Some(&with(Mode::All, None))), 0);
    assert_eq!(Tracking::told(Some(&with(Mode::All, Some(3)))), 3);
}
