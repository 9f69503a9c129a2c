//! One consumer: receives, writes down, acknowledges; is slow or crashes where that is asked for.

use super::ledger::Ledger;
use super::{Over, Shared};
use client::{Client, Error, Reply};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long one wait for messages lasts.
const BLOCK_MS: &str = "50";
const BLOCK: Duration = Duration::from_millis(50);

/// A consumer that belongs to a reader.
pub struct Consumer<'a> {
    pub shared: &'a Shared<'a>,
    pub ledger: &'a Mutex<Ledger>,
    /// The group's name, over streams.
    pub group: String,
    pub name: String,
    /// Works slowly.
    pub is_slow: bool,
    /// Tells that it is ready to receive.
    pub ready: &'a std::sync::Barrier,
}

impl Consumer<'_> {
    /// Receives until the run is over.
    pub fn run(self) -> Result<(), String> {
        let connected = self.shared.plan.target.client().and_then(|mut client| {
            self.subscribe(&mut client)?;
            Ok(client)
        });
        self.ready.wait();
        let mut client = connected?;
        let mut newest = vec![None; self.shared.plan.producers];
        let mut reads = 0u64;
        let mut claimed = Instant::now();
        let idle = Duration::from_millis(self.shared.plan.claim_idle_ms);
        while !self.shared.is_over() {
            let crashes = self.shared.plan.crash_every;
            let is_crash = crashes > 0 && reads % crashes == crashes - 1;
            if is_crash {
                reads += 1;
            }
            let got = match self.shared.plan.over {
                Over::Streams if claimed.elapsed() >= idle && crashes > 0 => {
                    claimed = Instant::now();
                    self.claim(&mut client)
                }
                Over::Streams => self.read_group(&mut client),
                Over::Lists => self.pop(&mut client),
                Over::Pubsub | Over::Sharded => self.hear(&mut client),
            };
            let batch = match got {
                Ok(batch) => batch,
                Err(Error::Closed) if self.shared.plan.over.is_pubsub() => {
                    // The server has dropped a subscriber that was too slow.
                    self.shared.disconnects.fetch_add(1, Ordering::Relaxed);
                    client = self.shared.plan.target.client()?;
                    self.subscribe(&mut client)?;
                    continue;
                }
                Err(error) => return Err(format!("consumer {}: {error}", self.name)),
            };
            if batch.is_empty() {
                continue;
            }
            reads += u64::from(!is_crash);
            // Who crashes has worked on a half of what it took and acknowledged none of it.
            let worked = if is_crash {
                batch.len() / 2
            } else {
                batch.len()
            };
            self.work(&batch[..worked], &mut newest);
            if is_crash {
                self.shared.crashes.fetch_add(1, Ordering::Relaxed);
                drop(client);
                client = self.shared.plan.target.client()?;
                self.subscribe(&mut client)?;
            } else if self.shared.plan.over == Over::Streams {
                self.acknowledge(&mut client, &batch)?;
            }
        }
        Ok(())
    }

    fn subscribe(&self, client: &mut Client) -> Result<(), String> {
        let word = match self.shared.plan.over {
            Over::Pubsub => "SUBSCRIBE",
            Over::Sharded => "SSUBSCRIBE",
            Over::Streams | Over::Lists => return Ok(()),
        };
        match client.call(&[word, &self.shared.key]) {
            Ok(Reply::Error(text)) => Err(String::from_utf8_lossy(&text).into_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{word}: {error}")),
        }
    }

    fn work(&self, batch: &[Message], newest: &mut [Option<usize>]) {
        for message in batch {
            if self.is_slow {
                std::thread::sleep(Duration::from_millis(self.shared.plan.slow_ms));
            }
            let now = self.shared.elapsed();
            let mut ledger = self.ledger.lock().unwrap_or_else(|e| e.into_inner());
            ledger.receive(&message.bytes, now, newest);
        }
    }

    fn read_group(&self, client: &mut Client) -> Result<Vec<Message>, Error> {
        let count = self.shared.plan.batch.to_string();
        let reply = client.call(&[
            "XREADGROUP",
            "GROUP",
            &self.group,
            &self.name,
            "COUNT",
            &count,
            "BLOCK",
            BLOCK_MS,
            "STREAMS",
            &self.shared.key,
            ">",
        ])?;
        // A list of streams with their entries, or a map of them in RESP3.
        let entries = match &reply {
            Reply::Map(pairs) => pairs.first().map(|(_, entries)| entries),
            _ => reply
                .elements()
                .and_then(|streams| streams.first()?.elements()?.get(1)),
        };
        Ok(entries.map(messages_of).unwrap_or_default())
    }

    /// Takes over what others, or this one before a crash, took and never acknowledged.
    fn claim(&self, client: &mut Client) -> Result<Vec<Message>, Error> {
        let (idle, count) = (
            self.shared.plan.claim_idle_ms.to_string(),
            self.shared.plan.batch.to_string(),
        );
        let reply = client.call(&[
            "XAUTOCLAIM",
            &self.shared.key,
            &self.group,
            &self.name,
            &idle,
            "0",
            "COUNT",
            &count,
        ])?;
        let entries = reply.elements().and_then(|fields| fields.get(1));
        let messages = entries.map(messages_of).unwrap_or_default();
        self.shared
            .claimed
            .fetch_add(messages.len() as u64, Ordering::Relaxed);
        Ok(messages)
    }

    fn acknowledge(&self, client: &mut Client, batch: &[Message]) -> Result<(), String> {
        let mut words: Vec<&[u8]> =
            vec![b"XACK", self.shared.key.as_bytes(), self.group.as_bytes()];
        words.extend(batch.iter().map(|message| message.id.as_slice()));
        match client.call(&words) {
            Ok(Reply::Error(text)) => Err(String::from_utf8_lossy(&text).into_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("XACK: {error}")),
        }
    }

    fn pop(&self, client: &mut Client) -> Result<Vec<Message>, Error> {
        let count = self.shared.plan.batch.to_string();
        let words = [
            "BLMPOP",
            "0.05",
            "1",
            &self.shared.key,
            "LEFT",
            "COUNT",
            &count,
        ];
        let reply = client.call(&words)?;
        let elements = reply
            .elements()
            .and_then(|fields| fields.get(1)?.elements());
        let bytes = elements.unwrap_or_default().iter().filter_map(Reply::bytes);
        let messages = bytes.map(|bytes| Message {
            id: Vec::new(),
            bytes: bytes.to_vec(),
        });
        Ok(messages.collect())
    }

    fn hear(&self, client: &mut Client) -> Result<Vec<Message>, Error> {
        let reply = match client.receive_within(BLOCK) {
            Ok(reply) => reply,
            Err(Error::Timeout) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let bytes = reply.elements().and_then(|fields| fields.get(2)?.bytes());
        let message = bytes.map(|bytes| Message {
            id: Vec::new(),
            bytes: bytes.to_vec(),
        });
        Ok(message.into_iter().collect())
    }
}

/// Something received.
struct Message {
    /// A stream entry's.
    id: Vec<u8>,
    bytes: Vec<u8>,
}

/// The messages in a list of stream entries; entries that were deleted are skipped.
fn messages_of(entries: &Reply) -> Vec<Message> {
    let entries = entries.elements().unwrap_or_default();
    let message = |entry: &Reply| {
        let parts = entry.elements()?;
        Some(Message {
            id: parts.first()?.bytes()?.to_vec(),
            bytes: parts.get(1)?.elements()?.get(1)?.bytes()?.to_vec(),
        })
    };
    entries.iter().filter_map(message).collect()
}
