//! The load: connections that do what [`super::check`] can judge, as fast as they are answered.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use client::{Client, Reply, encode};

use super::{Did, Op, STAGES};
use crate::Server;

/// Keys of each kind: few, so that connections meet.
const KEYS: u64 = 3;
const LINES: u64 = 2;
const QUEUES: u64 = 2;
const STREAMS: u64 = 2;
/// The counters that number the elements of lines.
const NUMBERS: u32 = 1000;
/// Entries that are taken at most at a time.
const TAKEN_MAX: usize = 5;
/// Seconds after which a client that waits looks for other work.
const WAIT: &str = "0.02";

/// Runs `connections` connections for so long on an empty server, then takes out what is left: a
/// complete history.
///
/// # Errors
/// An answer that none of them expects.
pub fn round(
    server: &Server,
    connections: usize,
    time: Duration,
    seed: u64,
) -> Result<Vec<Op>, String> {
    let clock = Instant::now();
    let open = |number: usize| {
        let client = server.client().map_err(|e| e.to_string())?;
        Ok(Worker::new(client, number, clock, seed))
    };
    let mut last: Worker = open(connections)?;
    last.call(&["FLUSHALL"])?;
    for stream in 0..STREAMS {
        let key = format!("x{stream}");
        last.call(&["XGROUP", "CREATE", &key, "g", "0", "MKSTREAM"])?;
    }
    let workers: Vec<Worker> = (0..connections).map(open).collect::<Result<_, String>>()?;
    let start = Barrier::new(connections);
    let end = clock + time;
    let parts: Vec<Result<Vec<Op>, String>> = std::thread::scope(|scope| {
        let run = |mut worker: Worker| {
            start.wait();
            while Instant::now() < end {
                worker.act()?;
            }
            Ok(worker.ops)
        };
        let threads: Vec<_> = workers
            .into_iter()
            .map(|worker| scope.spawn(move || run(worker)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let result = thread.join();
            result.unwrap_or_else(|_| Err("a connection's thread panicked".to_owned()))
        });
        ended.collect()
    });
    let mut ops = Vec::new();
    for part in parts {
        ops.extend(part?);
    }
    last.drain()?;
    ops.extend(last.ops);
    Ok(ops)
}

struct Worker {
    client: Client,
    number: usize,
    clock: Instant,
    random: u64,
    made: u64,
    ops: Vec<Op>,
}

/// A command of a transaction, and what its answer says.
type Part = (Vec<String>, Box<dyn Fn(&Reply) -> Result<Vec<Did>, String>>);

impl Worker {
    fn new(client: Client, number: usize, clock: Instant, seed: u64) -> Self {
        let random = seed ^ (number as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95);
        Self {
            client,
            number,
            clock,
            random,
            made: 0,
            ops: Vec::new(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }

    fn index(&mut self, end: u64) -> u32 {
        u32::try_from(self.below(end)).unwrap_or(0)
    }

    /// A value that nobody else uses.
    fn fresh(&mut self) -> u64 {
        self.made += 1;
        ((self.number as u64 + 1) << 40) | self.made
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn call(&mut self, words: &[&str]) -> Result<Reply, String> {
        match self.client.call(words) {
            Ok(Reply::Error(text)) => {
                let text = String::from_utf8_lossy(&text);
                Err(format!("{}: {text}", words.join(" ")))
            }
            Ok(reply) => Ok(reply),
            Err(error) => Err(format!("{}: {error}", words.join(" "))),
        }
    }

    fn note(&mut self, sent: u64, name: &'static str, did: Vec<Did>) {
        if did.is_empty() {
            return;
        }
        let answered = self.now();
        self.ops.push(Op {
            client: self.number,
            sent,
            answered,
            name,
            did,
        });
    }

    /// Runs one command as an operation.
    fn single(&mut self, name: &'static str, (words, read): Part) -> Result<bool, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let sent = self.now();
        let reply = self.call(&words)?;
        let did = read(&reply)?;
        let is_something = !matches!(did[..], [] | [Did::Pop { element: None, .. }]);
        self.note(sent, name, did);
        Ok(is_something)
    }

    /// Runs several as one transaction, sent at once.
    fn together(&mut self, name: &'static str, parts: Vec<Part>) -> Result<(), String> {
        let mut bytes = Vec::new();
        encode(&["MULTI"], &mut bytes);
        parts
            .iter()
            .for_each(|(words, _)| encode(words, &mut bytes));
        encode(&["EXEC"], &mut bytes);
        let sent = self.now();
        self.client.send_bytes(&bytes).map_err(|e| e.to_string())?;
        for _ in 0..=parts.len() {
            self.client.receive().map_err(|e| e.to_string())?;
        }
        let reply = self.client.receive().map_err(|e| e.to_string())?;
        let replies = reply.elements().unwrap_or_default();
        if replies.len() != parts.len() {
            return Err(format!("EXEC of {name}: {reply:?}"));
        }
        let mut did = Vec::new();
        for ((_, read), reply) in parts.iter().zip(replies) {
            did.extend(read(reply)?);
        }
        self.note(sent, name, did);
        Ok(())
    }

    fn act(&mut self) -> Result<(), String> {
        let (key, other) = (self.index(KEYS), self.index(KEYS));
        match self.below(20) {
            0 => self.single("INCR", count(key)).map(drop),
            1 | 2 => {
                let value = self.fresh();
                self.single("GETSET", swap(key, value)).map(drop)
            }
            3 => self.single("GET", seen(key)).map(drop),
            4 | 5 => {
                let parts = vec![seen(0), count_seen(0), seen(1), count_seen(1), seen(2)];
                self.together("MULTI GET", parts)
            }
            6 | 7 => {
                let mut parts = vec![swap(key, self.fresh()), count(other)];
                if key != other {
                    parts.push(swap(other, self.fresh()));
                }
                self.together("MULTI GETSET", parts)
            }
            8 | 9 => self.watched(key),
            10 => self.enter(),
            11..14 => {
                let line = self.index(LINES);
                let stage = 1 + self.index(u64::from(STAGES));
                let how = self.below(4);
                self.single("a stage", pass(line, stage, how)).map(drop)
            }
            14 => {
                let parts = vec![pass(0, 2, 0), pass(1, 1, 0), pass(0, 3, 0), seen(key)];
                self.together("MULTI RPOPLPUSH", parts)
            }
            15 => {
                let queue = self.index(QUEUES);
                let element = self.fresh();
                self.single("LPUSH", push(queue, element)).map(drop)
            }
            16 => {
                let (queue, waits) = (self.index(QUEUES), self.below(2) == 0);
                self.single("a pop", pop(queue, waits)).map(drop)
            }
            17 => {
                let stream = self.index(STREAMS);
                let element = self.fresh();
                self.single("XADD", add(stream, element)).map(drop)
            }
            _ => {
                let (stream, waits) = (self.index(STREAMS), self.below(3) > 0);
                let part = take(stream, self.number, waits);
                self.single("XREADGROUP", part).map(drop)
            }
        }
    }

    /// Reads a counter and adds one to it, if nobody else did meanwhile.
    fn watched(&mut self, key: u32) -> Result<(), String> {
        let name = format!("c{key}");
        self.call(&["WATCH", &name])?;
        let sent = self.now();
        let reply = self.call(&["GET", &name])?;
        let at = number(&reply)?;
        self.note(sent, "GET", vec![Did::CountSeen { key, at }]);
        let mut bytes = Vec::new();
        encode(&["MULTI"], &mut bytes);
        encode(&["SET", &name, &(at + 1).to_string()], &mut bytes);
        encode(&["EXEC"], &mut bytes);
        let sent = self.now();
        self.client.send_bytes(&bytes).map_err(|e| e.to_string())?;
        for _ in 0..2 {
            self.client.receive().map_err(|e| e.to_string())?;
        }
        let reply = self.client.receive().map_err(|e| e.to_string())?;
        match reply {
            Reply::Array(_) => {
                self.note(sent, "WATCH", vec![Did::Count { key, to: at + 1 }]);
                Ok(())
            }
            reply if reply.is_null() => Ok(()),
            reply => Err(format!("EXEC after WATCH: {reply:?}")),
        }
    }

    /// Pushes an element to a line together with its number.
    fn enter(&mut self) -> Result<(), String> {
        let (line, element) = (self.index(LINES), self.fresh());
        let mut bytes = Vec::new();
        encode(&["MULTI"], &mut bytes);
        encode(&["INCR", &format!("n{line}")], &mut bytes);
        encode(&["LPUSH", &list(line, 1), &element.to_string()], &mut bytes);
        encode(&["EXEC"], &mut bytes);
        let sent = self.now();
        self.client.send_bytes(&bytes).map_err(|e| e.to_string())?;
        for _ in 0..3 {
            self.client.receive().map_err(|e| e.to_string())?;
        }
        let reply = self.client.receive().map_err(|e| e.to_string())?;
        let number = reply.elements().and_then(|all| all.first()?.integer());
        let number = number.and_then(|number| u64::try_from(number).ok());
        let number = number.ok_or_else(|| format!("EXEC of LPUSH: {reply:?}"))?;
        let key = NUMBERS + line;
        let did = vec![
            Did::Count { key, to: number },
            Did::Enter {
                line,
                element,
                number,
            },
        ];
        self.note(sent, "MULTI LPUSH", did);
        Ok(())
    }

    /// Takes out what is left.
    fn drain(&mut self) -> Result<(), String> {
        for line in 0..u32::try_from(LINES).unwrap_or(0) {
            for stage in 1..=STAGES {
                while self.single("a stage", pass(line, stage, 0))? {}
            }
        }
        for queue in 0..u32::try_from(QUEUES).unwrap_or(0) {
            while self.single("a pop", pop(queue, false))? {}
        }
        for stream in 0..u32::try_from(STREAMS).unwrap_or(0) {
            while self.single("XREADGROUP", take(stream, self.number, false))? {}
        }
        Ok(())
    }
}

fn list(line: u32, stage: u32) -> String {
    format!("l{line}:{stage}")
}

/// A reply as a number; nothing is 0.
fn number(reply: &Reply) -> Result<u64, String> {
    let found = match reply {
        reply if reply.is_null() => Some(0),
        Reply::Integer(number) => u64::try_from(*number).ok(),
        reply => reply.text().and_then(|text| text.parse().ok()),
    };
    found.ok_or_else(|| format!("not a number: {reply:?}"))
}

fn part(line: &str, read: impl Fn(&Reply) -> Result<Vec<Did>, String> + 'static) -> Part {
    let words = line.split(' ').map(str::to_owned);
    (words.collect(), Box::new(read))
}

fn count(key: u32) -> Part {
    part(&format!("INCR c{key}"), move |reply| {
        let to = number(reply)?;
        Ok(vec![Did::Count { key, to }])
    })
}

fn count_seen(key: u32) -> Part {
    part(&format!("GET c{key}"), move |reply| {
        let at = number(reply)?;
        Ok(vec![Did::CountSeen { key, at }])
    })
}

fn swap(key: u32, new: u64) -> Part {
    part(&format!("GETSET r{key} {new}"), move |reply| {
        let old = number(reply)?;
        Ok(vec![Did::Swap { key, old, new }])
    })
}

fn seen(key: u32) -> Part {
    part(&format!("GET r{key}"), move |reply| {
        let value = number(reply)?;
        Ok(vec![Did::Seen { key, value }])
    })
}

/// Moves an element on, from the list before stage `stage`; out of the last.
fn pass(line: u32, stage: u32, how: u64) -> Part {
    let (from, to) = (list(line, stage), list(line, stage + 1));
    let text = match (stage == STAGES, how) {
        (false, 0) => format!("RPOPLPUSH {from} {to}"),
        (false, 1) => format!("LMOVE {from} {to} RIGHT LEFT"),
        (false, 2) => format!("BRPOPLPUSH {from} {to} {WAIT}"),
        (false, _) => format!("BLMOVE {from} {to} RIGHT LEFT {WAIT}"),
        (true, 0 | 1) => format!("RPOP {from}"),
        (true, _) => format!("BRPOP {from} {WAIT}"),
    };
    part(&text, move |reply| {
        let last = reply.elements().and_then(<[Reply]>::last);
        Ok(match number(last.unwrap_or(reply))? {
            0 => Vec::new(),
            element => vec![Did::Pass {
                line,
                stage,
                element,
            }],
        })
    })
}

fn push(queue: u32, element: u64) -> Part {
    part(&format!("LPUSH q{queue} {element}"), move |_| {
        Ok(vec![Did::Push { queue, element }])
    })
}

fn pop(queue: u32, waits: bool) -> Part {
    let text = match waits {
        true => format!("BRPOP q{queue} {WAIT}"),
        false => format!("RPOP q{queue}"),
    };
    part(&text, move |reply| {
        let last = reply.elements().and_then(<[Reply]>::last);
        let element = Some(number(last.unwrap_or(reply))?).filter(|element| *element > 0);
        // A wait that ended had its last look at a time that nobody knows.
        match element {
            None if waits => Ok(Vec::new()),
            element => Ok(vec![Did::Pop { queue, element }]),
        }
    })
}

fn add(stream: u32, element: u64) -> Part {
    part(&format!("XADD x{stream} * e {element}"), move |reply| {
        let text = reply.text().unwrap_or_default();
        let id = text
            .split_once('-')
            .and_then(|(ms, seq)| Some((ms.parse().ok()?, seq.parse().ok()?)));
        let id = id.ok_or_else(|| format!("not an id: {reply:?}"))?;
        Ok(vec![Did::Add {
            stream,
            element,
            id,
        }])
    })
}

fn take(stream: u32, consumer: usize, waits: bool) -> Part {
    let block = if waits { "BLOCK 20 " } else { "" };
    let text =
        format!("XREADGROUP GROUP g c{consumer} COUNT {TAKEN_MAX} {block}STREAMS x{stream} >");
    part(&text, move |reply| {
        let first = |reply: &Reply| reply.elements().and_then(|all| all.last().cloned());
        let entries = first(reply).and_then(|stream| first(&stream));
        let entries = entries
            .as_ref()
            .and_then(Reply::elements)
            .unwrap_or_default();
        let mut elements = Vec::new();
        for entry in entries {
            let value = first(entry).and_then(|fields| first(&fields));
            elements.push(number(&value.ok_or("an entry without fields")?)?);
        }
        let all = elements.len() < TAKEN_MAX;
        match elements.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(vec![Did::Take {
                stream,
                elements,
                all,
            }]),
        }
    })
}
