//! The checker: from answers to edges, and from edges to a circle.
//!
//! # Invariants
//! - An edge is a fact: its first operation took effect before its second, or the answers are
//!   wrong.
//! - Real time costs one node an answer: an operation is behind the last answer before it was
//!   sent, and answers are behind each other.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Did, Op, STAGES};

/// Operations of a circle from which shorter ones are sought.
const STARTS_MAX: usize = 500;

/// Something with versions 1, 2, 3, ..., each made by one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Thing {
    Counter(u32),
    Register(u32),
    Stage(u32, u32),
    Stream(u32),
    Group(u32),
}

#[derive(Default)]
struct Versions {
    writers: BTreeMap<u64, usize>,
    readers: Vec<(u64, usize)>,
}

/// All that the answers say.
struct Facts<'o> {
    ops: &'o [Op],
    things: BTreeMap<Thing, Versions>,
    edges: Vec<(usize, usize)>,
}

/// Whether there is an order of all operations that explains their answers and keeps to real time.
/// The history is complete: whatever was pushed or added is popped or given out at its end.
///
/// # Errors
/// The smallest contradiction.
pub fn check(ops: &[Op]) -> Result<(), String> {
    let mut facts = Facts {
        ops,
        things: BTreeMap::new(),
        edges: Vec::new(),
    };
    facts.counters()?;
    facts.registers()?;
    facts.lines()?;
    facts.streams()?;
    facts.queues()?;
    facts.order_versions()?;
    match facts.circle() {
        None => Ok(()),
        Some(circle) => Err(format!(
            "no order explains these {} operations:\n{}",
            circle.len(),
            facts.show(&circle)
        )),
    }
}

impl Facts<'_> {
    fn all(&self) -> impl Iterator<Item = (usize, &Did)> {
        let ops = self.ops.iter().enumerate();
        ops.flat_map(|(at, op)| op.did.iter().map(move |did| (at, did)))
    }

    fn show(&self, ops: &[usize]) -> String {
        let line = |&at: &usize| {
            let op = &self.ops[at];
            format!(
                "  {} to {} ns, connection {}: {} {:?}",
                op.sent, op.answered, op.client, op.name, op.did
            )
        };
        ops.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn wrong(&self, what: &str, ops: &[usize]) -> String {
        format!("{what}:\n{}", self.show(ops))
    }

    fn write(&mut self, thing: Thing, version: u64, op: usize) -> Result<(), String> {
        let versions = self.things.entry(thing).or_default();
        match versions.writers.insert(version, op) {
            Some(other) if other != op => {
                let what = format!("{thing:?} was brought to {version} twice");
                Err(self.wrong(&what, &[other, op]))
            }
            Some(_) => Err(self.wrong(&format!("{thing:?}: {version} twice at once"), &[op])),
            None => Ok(()),
        }
    }

    fn read(&mut self, thing: Thing, version: u64, op: usize) {
        let versions = self.things.entry(thing).or_default();
        versions.readers.push((version, op));
    }

    fn counters(&mut self) -> Result<(), String> {
        for at in 0..self.ops.len() {
            for did in &self.ops[at].did {
                match *did {
                    Did::Count { key, to } => self.write(Thing::Counter(key), to, at)?,
                    Did::CountSeen { key, at: seen } => self.read(Thing::Counter(key), seen, at),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Follows each register from value to value.
    fn registers(&mut self) -> Result<(), String> {
        let mut next: HashMap<(u32, u64), (u64, usize)> = HashMap::new();
        for (at, did) in self.all() {
            if let Did::Swap { key, old, new } = *did
                && let Some((_, other)) = next.insert((key, old), (new, at))
            {
                return Err(self.wrong("one value of a register was replaced twice", &[other, at]));
            }
        }
        let mut keys: Vec<u32> = next.keys().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut numbers: HashMap<(u32, u64), u64> = HashMap::new();
        for key in keys {
            let (mut value, mut version) = (0, 0);
            while let Some((new, at)) = next.remove(&(key, value)) {
                version += 1;
                numbers.insert((key, new), version);
                self.write(Thing::Register(key), version, at)?;
                value = new;
            }
        }
        if let Some((_, (_, at))) = next.into_iter().min_by_key(|(_, (_, at))| *at) {
            return Err(self.wrong("a register held what it was not brought to", &[at]));
        }
        for at in 0..self.ops.len() {
            for did in &self.ops[at].did {
                let Did::Seen { key, value } = *did else {
                    continue;
                };
                match numbers.get(&(key, value)) {
                    Some(&version) => self.read(Thing::Register(key), version, at),
                    None if value == 0 => self.read(Thing::Register(key), 0, at),
                    None => return Err(self.wrong("a register held what nobody wrote", &[at])),
                }
            }
        }
        Ok(())
    }

    /// Elements pass all stages, each once, in the order of their numbers.
    fn lines(&mut self) -> Result<(), String> {
        let mut numbers: HashMap<(u32, u64), (u64, usize)> = HashMap::new();
        for (at, did) in self.all() {
            if let Did::Enter {
                line,
                element,
                number,
            } = *did
            {
                numbers.insert((line, element), (number, at));
            }
        }
        let mut passed: HashMap<(u32, u64, u32), usize> = HashMap::new();
        for at in 0..self.ops.len() {
            for did in &self.ops[at].did {
                let Did::Pass {
                    line,
                    stage,
                    element,
                } = *did
                else {
                    continue;
                };
                let Some(&(number, _)) = numbers.get(&(line, element)) else {
                    return Err(self.wrong("an element was popped that nobody pushed", &[at]));
                };
                if let Some(other) = passed.insert((line, element, stage), at) {
                    return Err(self.wrong("an element was popped twice", &[other, at]));
                }
                self.write(Thing::Stage(line, stage), number, at)?;
            }
        }
        for ((line, element), (_, entered)) in numbers {
            let mut before = entered;
            for stage in 1..=STAGES {
                let Some(&at) = passed.get(&(line, element, stage)) else {
                    let what = format!("an element was lost before stage {stage}");
                    return Err(self.wrong(&what, &[before]));
                };
                self.edges.push((before, at));
                before = at;
            }
        }
        Ok(())
    }

    /// Entries are given out once, in the order of their ids.
    fn streams(&mut self) -> Result<(), String> {
        let mut ids: BTreeMap<(u32, u64, u64), (u64, usize)> = BTreeMap::new();
        for (at, did) in self.all() {
            if let Did::Add {
                stream,
                element,
                id,
            } = *did
                && let Some((_, other)) = ids.insert((stream, id.0, id.1), (element, at))
            {
                return Err(self.wrong("two entries have one id", &[other, at]));
            }
        }
        let mut places: HashMap<(u32, u64), (u64, usize)> = HashMap::new();
        let mut adders: HashMap<(u32, u64), usize> = HashMap::new();
        let (mut current, mut rank) = (None, 0);
        for ((stream, ..), (element, at)) in ids {
            rank = if current == Some(stream) { rank + 1 } else { 1 };
            current = Some(stream);
            places.insert((stream, element), (rank, at));
            adders.insert((stream, rank), at);
            self.write(Thing::Stream(stream), rank, at)?;
        }
        let mut taken = 0;
        for at in 0..self.ops.len() {
            for did in &self.ops[at].did {
                let Did::Take {
                    stream,
                    elements,
                    all,
                } = did
                else {
                    continue;
                };
                let mut last = None;
                for element in elements {
                    let Some(&(rank, added)) = places.get(&(*stream, *element)) else {
                        return Err(self.wrong("an entry was given out that nobody added", &[at]));
                    };
                    self.write(Thing::Group(*stream), rank, at)?;
                    self.edges.push((added, at));
                    last = Some(rank);
                    taken += 1;
                }
                // It saw all there was: what follows was added later.
                if let (true, Some(last)) = (*all, last)
                    && let Some(&next) = adders.get(&(*stream, last + 1))
                {
                    self.edges.push((at, next));
                }
            }
        }
        match taken == places.len() {
            true => Ok(()),
            false => Err(format!(
                "{} entries were added, {taken} given out",
                places.len()
            )),
        }
    }

    /// Queues of single commands, whose answers say no order: it is judged by time alone.
    fn queues(&mut self) -> Result<(), String> {
        let mut pushes: HashMap<(u32, u64), usize> = HashMap::new();
        let mut pops: HashMap<(u32, u64), usize> = HashMap::new();
        let mut empty = Vec::new();
        for (at, did) in self.all() {
            match *did {
                Did::Push { queue, element } => {
                    pushes.insert((queue, element), at);
                }
                Did::Pop {
                    queue,
                    element: Some(element),
                } => {
                    if let Some(other) = pops.insert((queue, element), at) {
                        return Err(self.wrong("an element was popped twice", &[other, at]));
                    }
                }
                Did::Pop {
                    queue,
                    element: None,
                } => empty.push((queue, at)),
                _ => {}
            }
        }
        if let Some((_, &at)) = pops
            .iter()
            .find(|(element, _)| !pushes.contains_key(element))
        {
            return Err(self.wrong("an element was popped that nobody pushed", &[at]));
        }
        let mut queues: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
        for (element, &pushed) in &pushes {
            let Some(&popped) = pops.get(element) else {
                return Err(self.wrong("an element was lost", &[pushed]));
            };
            self.edges.push((pushed, popped));
            queues.entry(element.0).or_default().push((pushed, popped));
        }
        for (queue, mut elements) in queues {
            elements.sort_unstable_by_key(|(pushed, _)| self.ops[*pushed].answered);
            // Of those pushed first, the one popped last.
            let mut latest = Vec::with_capacity(elements.len());
            let mut last: Option<(usize, usize)> = None;
            for &(pushed, popped) in &elements {
                let is_later =
                    |(_, other): (usize, usize)| self.ops[other].sent < self.ops[popped].sent;
                if last.is_none_or(is_later) {
                    last = Some((pushed, popped));
                }
                latest.push(last.unwrap_or((pushed, popped)));
            }
            let before = |time: u64| {
                let count =
                    elements.partition_point(|(pushed, _)| self.ops[*pushed].answered < time);
                count.checked_sub(1).map(|at| latest[at])
            };
            for &(pushed, popped) in &elements {
                if let Some((first, overtaken)) = before(self.ops[pushed].sent)
                    && self.ops[overtaken].sent > self.ops[popped].answered
                {
                    let ops = [first, pushed, popped, overtaken];
                    return Err(self.wrong("an element was overtaken", &ops));
                }
            }
            for &(_, at) in empty.iter().filter(|(other, _)| *other == queue) {
                if let Some((pushed, popped)) = before(self.ops[at].sent)
                    && self.ops[popped].sent > self.ops[at].answered
                {
                    return Err(self.wrong("a queue was not empty", &[pushed, at, popped]));
                }
            }
        }
        Ok(())
    }

    /// Versions follow each other; who read one came after its writer and before the next.
    fn order_versions(&mut self) -> Result<(), String> {
        for (thing, versions) in std::mem::take(&mut self.things) {
            for ((&version, &at), expected) in versions.writers.iter().zip(1..) {
                if version != expected {
                    let what = format!("{thing:?} was brought to {version} past {expected}");
                    return Err(self.wrong(&what, &[at]));
                }
                if let Some(&next) = versions.writers.get(&(version + 1)) {
                    self.edge(at, next);
                }
            }
            for (version, at) in versions.readers {
                match versions.writers.get(&version) {
                    Some(&writer) => self.edge(writer, at),
                    None if version == 0 => {}
                    None => {
                        let what = format!("{thing:?} was never brought to {version}");
                        return Err(self.wrong(&what, &[at]));
                    }
                }
                if let Some(&next) = versions.writers.get(&(version + 1)) {
                    self.edge(at, next);
                }
            }
        }
        Ok(())
    }

    fn edge(&mut self, from: usize, to: usize) {
        if from != to {
            self.edges.push((from, to));
        }
    }

    /// The graph of operations and, behind them, answers in the order of time.
    fn graph(&self) -> Vec<Vec<usize>> {
        let count = self.ops.len();
        let mut graph = vec![Vec::new(); 2 * count];
        for &(from, to) in self.edges.iter().filter(|(from, to)| from != to) {
            graph[from].push(to);
        }
        let mut answers: Vec<usize> = (0..count).collect();
        answers.sort_unstable_by_key(|at| self.ops[*at].answered);
        for (place, &at) in answers.iter().enumerate() {
            graph[at].push(count + place);
            if place + 1 < count {
                graph[count + place].push(count + place + 1);
            }
        }
        for (at, op) in self.ops.iter().enumerate() {
            let before = answers.partition_point(|other| self.ops[*other].answered < op.sent);
            if let Some(last) = before.checked_sub(1) {
                graph[count + last].push(at);
            }
        }
        graph
    }

    /// The operations of the smallest circle that was found, in order; `None` where there is none.
    fn circle(&self) -> Option<Vec<usize>> {
        let graph = self.graph();
        let mut incoming = vec![0u32; graph.len()];
        graph.iter().flatten().for_each(|&to| incoming[to] += 1);
        let mut free: Vec<usize> = (0..graph.len()).filter(|&at| incoming[at] == 0).collect();
        let mut left = graph.len();
        while let Some(at) = free.pop() {
            left -= 1;
            for &to in &graph[at] {
                incoming[to] -= 1;
                if incoming[to] == 0 {
                    free.push(to);
                }
            }
        }
        if left == 0 {
            return None;
        }
        // What is only behind a circle goes too.
        let mut back = vec![Vec::new(); graph.len()];
        let mut outgoing = vec![0u32; graph.len()];
        let mut in_circle: Vec<bool> = incoming.iter().map(|&count| count > 0).collect();
        for (from, to) in graph
            .iter()
            .enumerate()
            .flat_map(|(f, to)| to.iter().map(move |&t| (f, t)))
        {
            if in_circle[from] && in_circle[to] {
                back[to].push(from);
                outgoing[from] += 1;
            }
        }
        let ends = |at: &usize| in_circle[*at] && outgoing[*at] == 0;
        free = (0..graph.len()).filter(ends).collect();
        while let Some(at) = free.pop() {
            in_circle[at] = false;
            for &from in &back[at] {
                outgoing[from] -= 1;
                if outgoing[from] == 0 {
                    free.push(from);
                }
            }
        }
        let is_left = |at: usize| in_circle[at];
        let starts = (0..self.ops.len()).filter(|&at| is_left(at));
        let circles = starts
            .take(STARTS_MAX)
            .filter_map(|start| shortest(&graph, (start, self.ops.len()), &is_left));
        let only_ops = |circle: Vec<usize>| -> Vec<usize> {
            let ops = circle.into_iter().filter(|&at| at < self.ops.len());
            ops.collect()
        };
        // One is there behind some start; more starts only make it smaller.
        let smallest = circles.map(only_ops).min_by_key(Vec::len);
        Some(smallest.unwrap_or_else(|| {
            let ops = (0..self.ops.len()).filter(|&at| is_left(at));
            ops.take(STARTS_MAX).collect()
        }))
    }
}

/// The circle through `start` with the fewest operations; answers in between cost nothing.
fn shortest(
    graph: &[Vec<usize>],
    (start, ops): (usize, usize),
    is_left: &impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let mut found: HashMap<usize, (usize, usize)> = HashMap::new();
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((at, steps)) = queue.pop_front() {
        if at != start && found.get(&at).is_none_or(|(best, _)| *best < steps) {
            continue;
        }
        for &to in graph[at].iter().filter(|&&to| is_left(to)) {
            let more = steps + usize::from(to < ops);
            if found.get(&to).is_some_and(|(best, _)| *best <= more) {
                continue;
            }
            found.insert(to, (more, at));
            match to {
                _ if to == start => {}
                _ if to < ops => queue.push_back((to, more)),
                _ => queue.push_front((to, more)),
            }
        }
    }
    let mut circle = vec![start];
    let mut at = found.get(&start)?.1;
    while at != start {
        circle.push(at);
        at = found.get(&at)?.1;
    }
    circle.reverse();
    Some(circle)
}
