//! What clients hear that did not ask just now: messages, and the replies they waited for.
//!
//! A subscriber is sent a PING after each command; all that comes before its answer belongs to the
//! command. Who waits is asked of the server, which counts its blocked clients.

use super::{Arena, HEARD, Line, Step_, Stop, is_subscribe, ours, theirs};
use crate::compare::bag;
use crate::sequence::letter;
use crate::side::{PATIENCE, Side, Silence};
use client::Reply;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testkit::render;

impl Arena {
    /// Drops what a subscriber hears of the equalising, keeps what it heard of SPOP.
    pub(super) fn hear_of_spop(&mut self, connection: usize) -> Step_<()> {
        let token = self.token();
        let mut theirs_heard = self.theirs.fence(connection, &token).map_err(theirs)?;
        theirs_heard.retain(|message| {
            let text = render(message);
            !(text.contains("sadd") || text.contains("srem"))
        });
        let ours_heard = self.ours.fence(connection, &token).map_err(ours)?;
        self.messages(&ours_heard, &theirs_heard, "spop")
    }

    pub(super) fn token(&mut self) -> String {
        self.fences += 1;
        format!("fence-{}", self.fences)
    }

    /// A command of a subscriber, or one that makes one: everything up to the PING after it.
    pub(super) fn subscriber(
        &mut self,
        connection: usize,
        name: &str,
        our_args: &[Vec<u8>],
        their_args: &[Vec<u8>],
        shown: String,
    ) -> Step_<()> {
        let token = self.token();
        self.ours.send(connection, our_args).map_err(ours)?;
        self.theirs.send(connection, their_args).map_err(theirs)?;
        let theirs_heard = self.theirs.fence(connection, &token).map_err(theirs)?;
        self.show(connection, shown, theirs_heard.iter().map(render).collect());
        let ours_heard = self.ours.fence(connection, &token).map_err(ours)?;
        if is_subscribe(name) {
            let state = &mut self.connections[connection];
            let is_error = theirs_heard.first().is_some_and(Reply::is_error);
            state.is_subscribed |= !name.contains("unsubscribe") && !is_error;
            if !is_error {
                self.succeeded.insert(name.to_owned());
            }
        }
        // Which of its channels a client leaves first is nobody's business.
        if name.contains("unsubscribe") && their_args.len() == 1 {
            let names = |heard: &[Reply]| -> Vec<Reply> {
                heard
                    .iter()
                    .filter_map(|message| message.elements()?.get(1).cloned())
                    .collect()
            };
            if bag(&names(&ours_heard), &names(&theirs_heard), &self.ids) {
                return Ok(());
            }
        }
        if ours_heard.len() == 1 && theirs_heard.len() == 1 {
            return self.judge(their_args, &ours_heard[0], &theirs_heard[0]);
        }
        // A client of RESP3 is told in between what it asked; that may have no order.
        let mut heard = [ours_heard, theirs_heard];
        let at = heard.each_ref().map(|heard| {
            let mut replies = heard.iter();
            replies.position(|message| !matches!(message, Reply::Push(_)))
        });
        if let ([Some(at), Some(other)], false) = (at, is_subscribe(name))
            && at == other
        {
            let [a, b] = heard.each_mut().map(|heard| heard.remove(at));
            self.judge(their_args, &a, &b)?;
        }
        let [ours_heard, theirs_heard] = heard;
        self.messages(&ours_heard, &theirs_heard, name)
    }

    fn messages(&mut self, ours_heard: &[Reply], theirs_heard: &[Reply], name: &str) -> Step_<()> {
        if by_message(ours_heard) == by_message(theirs_heard) {
            return Ok(());
        }
        let text = |heard: &[Reply]| render(&Reply::Array(heard.to_vec()));
        Err(Stop::Difference {
            kind: format!("{HEARD}{name}"),
            ours: text(ours_heard),
            theirs: text(theirs_heard),
        })
    }

    /// After a command: clients that waited and were served, and what subscribers hear. What they
    /// hear changes nothing, so the sequence goes on where it may differ.
    pub(super) fn settle(&mut self, acting: usize, name: &str, command: &str) -> Step_<()> {
        if self
            .connections
            .iter()
            .enumerate()
            .any(|(at, c)| at != acting && c.waiting.is_some())
        {
            self.served()?;
        }
        for at in 0..self.connections.len() {
            if !self.connections[at].is_subscribed || at == acting {
                continue;
            }
            let token = self.token();
            let theirs_heard = self.theirs.fence(at, &token).map_err(theirs)?;
            let mut ours_heard = self.ours.fence(at, &token).map_err(ours)?;
            // Another thread's message may still be on its way.
            while ours_heard.len() < theirs_heard.len()
                && let Ok(message) = self.ours.receive(at, Duration::from_millis(200))
            {
                ours_heard.push(message);
            }
            if !theirs_heard.is_empty() {
                let text = format!("{}<", letter(at));
                self.shown.push(Line {
                    text,
                    theirs: theirs_heard.iter().map(render).collect(),
                });
            }
            match self.messages(&ours_heard, &theirs_heard, name) {
                Err(Stop::Difference { ours, theirs, .. })
                    if self.is_allowed(command, &ours, &theirs) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Hears those who are no longer waiting.
    fn served(&mut self) -> Step_<()> {
        let waiting: Vec<usize> = (0..self.connections.len())
            .filter(|at| self.connections[*at].waiting.is_some())
            .collect();
        let theirs_heard = hear_served(&mut self.theirs, &waiting).map_err(theirs)?;
        let ours_heard = hear_served(&mut self.ours, &waiting).map_err(ours)?;
        for at in waiting {
            let (a, b) = (ours_heard.get(&at), theirs_heard.get(&at));
            if let Some(reply) = b {
                let text = format!("{}<", letter(at));
                self.shown.push(Line {
                    text,
                    theirs: vec![render(reply)],
                });
            }
            match (a, b) {
                (None, None) => {}
                (Some(a), Some(b)) => {
                    let args = self.connections[at].waiting.take().unwrap_or_default();
                    self.judge(&args, a, b).map_err(|stop| match stop {
                        Stop::Difference { kind, ours, theirs } => Stop::Difference {
                            kind: format!("served {kind}"),
                            ours,
                            theirs,
                        },
                        silent @ Stop::Silent { .. } => silent,
                    })?;
                }
                (a, b) => {
                    let args = self.connections[at].waiting.clone().unwrap_or_default();
                    let said =
                        |reply: Option<&Reply>| reply.map_or("(still waits)".to_owned(), render);
                    return Err(Stop::Difference {
                        kind: format!("served {}", self.name(&args)),
                        ours: said(a),
                        theirs: said(b),
                    });
                }
            }
        }
        Ok(())
    }
}

/// The replies of those who were served, by their connections.
fn hear_served(side: &mut Side, waiting: &[usize]) -> Result<BTreeMap<usize, Reply>, Silence> {
    let end = Instant::now() + PATIENCE;
    let mut heard = BTreeMap::new();
    while side.waiting()? + heard.len() != waiting.len() {
        for at in waiting {
            if heard.contains_key(at) {
                continue;
            }
            match side.receive(*at, Duration::from_micros(200)) {
                Ok(reply) => drop(heard.insert(*at, reply)),
                Err(Silence::Hangs) => {}
                Err(silence) => return Err(silence),
            }
        }
        if Instant::now() > end {
            return Err(Silence::Hangs);
        }
    }
    Ok(heard)
}

/// What was heard, with the copies of one message for several patterns in the patterns' order:
/// which pattern is looked at first is nobody's business.
fn by_message(heard: &[Reply]) -> Vec<Reply> {
    let mut heard = heard.to_vec();
    let content = |message: &Reply| match message.elements() {
        Some([kind, _, rest @ ..]) if kind.bytes() == Some(b"pmessage") => Some(rest.to_vec()),
        _ => None,
    };
    let is_same = |a: &Reply, b: &Reply| content(a).is_some_and(|a| Some(a) == content(b));
    for copies in heard.chunk_by_mut(is_same) {
        copies.sort_by_key(render);
    }
    heard
}
