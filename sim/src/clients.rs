//! The clients of a run: what each sent and has not been answered, and what the answers mean.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::blocking::Waiter;
use testkit::Reply;

use crate::ledger::Event;

/// A client.
pub struct Client {
    /// Its connection.
    pub connection: usize,
    /// What it sent and has no reply to.
    pub sent: VecDeque<Vec<Vec<u8>>>,
    /// What it queued since MULTI.
    pub queued: Option<Vec<Vec<Vec<u8>>>>,
    /// Keys that it watches, with what they held then.
    pub watched: Vec<(usize, Vec<u8>, Vec<u8>)>,
    /// Why its next EXEC must fail.
    pub must_fail: Option<String>,
    /// What it waits for, and since which step.
    pub wait: Option<(Arc<Waiter>, usize)>,
}

/// What a client was told.
pub enum Heard {
    /// A message, or that it is subscribed.
    Push(Reply),
    /// Replies of commands that ran: several where it was an EXEC.
    Ran(Vec<Event>),
}

impl Client {
    /// A client that has done nothing yet.
    pub fn new(connection: usize) -> Self {
        Self {
            connection,
            sent: VecDeque::new(),
            queued: None,
            watched: Vec::new(),
            must_fail: None,
            wait: None,
        }
    }

    /// Takes a reply. `client` is its number.
    ///
    /// # Errors
    /// Where it is one that nobody awaits.
    pub fn hear(&mut self, client: usize, reply: Reply) -> Result<Heard, String> {
        if is_push(&reply) {
            return Ok(Heard::Push(reply));
        }
        let words = self.sent.pop_front();
        let words = words.ok_or_else(|| format!("client {client} got {reply:?} for nothing"))?;
        let mut events = Vec::new();
        let name = words[0].clone();
        match (&name[..], &mut self.queued) {
            (b"MULTI", queued @ None) if !reply.is_error() => *queued = Some(Vec::new()),
            (b"EXEC" | b"DISCARD", queued) => {
                let queued = queued.take().unwrap_or_default();
                if let Some(replies) = reply.elements()
                    && &name[..] == b"EXEC"
                {
                    if replies.len() != queued.len() {
                        return Err(format!(
                            "EXEC of {} commands has {} replies",
                            queued.len(),
                            replies.len()
                        ));
                    }
                    let each = queued.into_iter().zip(replies.iter().cloned());
                    events.extend(each.map(|(words, reply)| Event {
                        client,
                        words,
                        reply,
                    }));
                }
            }
            (_, Some(queued)) if reply.bytes() == Some(b"QUEUED") => {
                queued.push(words);
                return Ok(Heard::Ran(events));
            }
            _ => {}
        }
        events.push(Event {
            client,
            words,
            reply,
        });
        Ok(Heard::Ran(events))
    }
}

/// Whether a reply came unasked, or confirms a subscription.
fn is_push(reply: &Reply) -> bool {
    const KINDS: [&[u8]; 9] = [
        b"message",
        b"pmessage",
        b"smessage",
        b"subscribe",
        b"unsubscribe",
        b"psubscribe",
        b"punsubscribe",
        b"ssubscribe",
        b"sunsubscribe",
    ];
    let kind = || reply.elements()?.first()?.bytes();
    matches!(reply, Reply::Push(_)) || kind().is_some_and(|kind| KINDS.contains(&kind))
}

/// Whether each message of this step reached as many clients as its publisher was told.
///
/// # Errors
/// Where it did not.
pub fn check_messages(events: &[Event], pushes: &[Reply]) -> Result<(), String> {
    for event in events {
        if !matches!(event.word(0), "PUBLISH" | "SPUBLISH") || event.reply.is_error() {
            continue;
        }
        let payload = &event.words[2];
        let is_it = |push: &&Reply| {
            let last = push.elements().and_then(<[Reply]>::last);
            last.and_then(Reply::bytes) == Some(payload)
        };
        let heard = pushes.iter().filter(is_it).count();
        if event.reply.integer() != i64::try_from(heard).ok() {
            return Err(format!(
                "{} says {:?}, {heard} heard it",
                String::from_utf8_lossy(payload),
                event.reply
            ));
        }
    }
    Ok(())
}

/// Adds a reply to a digest of replies.
pub fn digest(so_far: u64, reply: &Reply) -> u64 {
    let text = format!("{reply:?}");
    let bytes = text
        .bytes()
        .fold(so_far ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    bytes.rotate_left(7)
}

/// A command on one line.
pub fn quoted(words: &[Vec<u8>]) -> String {
    let words = words.iter().map(|word| match word.is_empty() {
        true => "\"\"".to_owned(),
        false => word.escape_ascii().to_string().replace(' ', "\\x20"),
    });
    words.collect::<Vec<_>>().join(" ")
}
