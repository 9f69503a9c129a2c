//! One thread of the load: an epoll, its connections, its clock.
//!
//! The loop waits for sockets, or for the next due time; reads once from each readable socket into
//! a buffer that all connections share; counts the replies; and writes the next batch at once. So a
//! batch costs one read, one write and its share of one wait.

use super::batch::Source;
use super::connection::{Connection, Group, Wrote};
use super::random::Random;
use super::stats::{Class, Outcome};
use super::target::{Resolved, plain};
use super::{Limit, Pace, Plan, Shared};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes read at once, shared by the connections.
const READ_BYTES: usize = 256 << 10;
/// Events taken from one wait.
const EVENTS: usize = 256;
/// Between two looks at the flags that end a run.
const LOOK_NS: u64 = 50_000_000;
/// How long after its end a run waits for what it is owed.
const GRACE_NS: u64 = 10_000_000_000;
/// Attempts to connect again before a broken connection is given up.
const RECONNECTS_MAX: u64 = 1_000;
/// The longest pause before such an attempt, in milliseconds.
const PAUSE_MS_MAX: u64 = 100;
/// A request of an open loop that leaves later than this after it was due is late.
const LATE_NS: u64 = 1_000_000;

/// What one thread has measured.
#[derive(Debug)]
pub struct Part {
    pub outcome: Outcome,
}

/// Runs a thread's share of the plan.
pub fn run(
    plan: &Plan,
    at: &Resolved,
    number: usize,
    source: Box<dyn Source + '_>,
    shared: &Shared<'_>,
    interrupted: &AtomicBool,
) -> Part {
    let made = Thread::connect(plan, at, number, source, shared, interrupted);
    if let Err(why) = &made {
        shared.fail(why.clone());
    }
    // All start together, when the last connection stands; with a failure, nobody does.
    shared.ready.wait();
    let mut thread = match made {
        Ok(thread) => thread,
        Err(_) => {
            return Part {
                outcome: Outcome::default(),
            };
        }
    };
    let origin = *shared
        .started
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .get_or_insert_with(Instant::now);
    thread.origin = origin;
    let cpu = cpu_time();
    if let Err(why) = thread.go() {
        shared.fail(why);
    }
    let took = Duration::from_nanos(thread.last_reply);
    let cpu = cpu_time().saturating_sub(cpu);
    let wall = origin.elapsed().as_secs_f64();
    let mut outcome = thread.outcome;
    outcome.took = took;
    outcome.cpu = cpu;
    // The first moments of a short run say nothing.
    outcome.busiest = match wall > 0.05 {
        true => cpu.as_secs_f64() / wall,
        false => 0.0,
    };
    outcome.unanswered += thread.connections.iter().map(|c| c.in_flight).sum::<u64>();
    outcome.error = thread
        .connections
        .iter()
        .map(|c| c.scanner.error())
        .find(|text| !text.is_empty());
    Part { outcome }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The due times of an open loop, drawn as they are used.
#[derive(Debug)]
struct Schedule {
    next: f64,
    gap: f64,
    is_random: bool,
    random: Random,
}

impl Schedule {
    fn due(&self) -> u64 {
        // A run of a century is not foreseen.
        self.next as u64
    }

    fn advance(&mut self) {
        self.next += match self.is_random {
            true => self.random.exponential(self.gap),
            false => self.gap,
        };
    }
}

struct Thread<'a> {
    plan: &'a Plan,
    at: &'a Resolved,
    shared: &'a Shared<'a>,
    interrupted: &'a AtomicBool,
    source: Box<dyn Source + 'a>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    outcome: Outcome,
    origin: Instant,
    schedule: Option<Schedule>,
    /// Where the search for a free connection goes on.
    turn: usize,
    /// When a connection was last found free though nothing was due: what is late since then is not
    /// the server's fault.
    free_since: Option<u64>,
    last_reply: u64,
    /// Connections that broke since the last reply.
    broken_in_a_row: u64,
    /// No more requests: the stock is empty, time is up, or somebody said stop.
    is_over: bool,
    in_flight: u64,
}

impl<'a> Thread<'a> {
    fn connect(
        plan: &'a Plan,
        at: &'a Resolved,
        number: usize,
        source: Box<dyn Source + 'a>,
        shared: &'a Shared<'a>,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, String> {
        let share =
            |whole: usize| whole / plan.threads + usize::from(number < whole % plan.threads);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| format!("epoll: {error}"))?;
        let left = match plan.limit {
            Limit::PerConnection(requests) => requests,
            _ => u64::MAX,
        };
        let mut connections = Vec::with_capacity(share(plan.connections));
        for index in 0..share(plan.connections) {
            if shared.watch.stop.load(Ordering::Relaxed) || interrupted.load(Ordering::Relaxed) {
                break;
            }
            let socket = plan.target.connect(at)?;
            epoll::add(
                &epoll,
                &socket,
                EventData::new_u64(index as u64),
                EventFlags::IN,
            )
            .map_err(|error| format!("epoll: {error}"))?;
            connections.push(Connection::new(socket, left));
        }
        let rate = match plan.pace {
            Pace::Fixed(rate) | Pace::Poisson(rate) => Some(rate / plan.threads as f64),
            Pace::Batches | Pace::Window => None,
        };
        let schedule = rate.map(|rate| {
            let gap = 1e9 / rate;
            let mut random = Random::new(0x5eed ^ number as u64);
            Schedule {
                // Threads do not all send at the same moments.
                next: gap * random.unit(),
                gap,
                is_random: matches!(plan.pace, Pace::Poisson(_)),
                random,
            }
        });
        if schedule.is_some() {
            // The system may otherwise wake a sleeper 50 microseconds late.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        Ok(Self {
            plan,
            at,
            shared,
            interrupted,
            source,
            epoll,
            connections,
            outcome: Outcome {
                classes: vec![Class::default(); plan.classes],
                ..Outcome::default()
            },
            origin: Instant::now(),
            schedule,
            turn: 0,
            free_since: Some(0),
            last_reply: 0,
            broken_in_a_row: 0,
            is_over: false,
            in_flight: 0,
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn go(&mut self) -> Result<(), String> {
        let end = self.plan.duration.map(|time| time.as_nanos() as u64);
        let mut buf = vec![0; READ_BYTES];
        let mut events = [epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }; EVENTS];
        if self.schedule.is_none() {
            for index in 0..self.connections.len() {
                self.refill(index, self.now())?;
            }
        }
        let mut over_since = None;
        loop {
            let now = self.now();
            if self.shared.watch.stop.load(Ordering::Relaxed)
                || self.interrupted.load(Ordering::Relaxed)
            {
                // Nobody wants the rest: not even what is owed.
                return Ok(());
            }
            if end.is_some_and(|end| now >= end) {
                self.is_over = true;
            }
            if self.schedule.is_some() && !self.is_over {
                self.send_due(now)?;
            }
            if self.in_flight == 0 && (self.is_over || self.schedule.is_none()) {
                break;
            }
            if self.is_over {
                let since = *over_since.get_or_insert(now);
                if now - since > GRACE_NS {
                    break;
                }
            }
            let mut wait = LOOK_NS;
            if let (Some(schedule), false) = (&self.schedule, self.is_over) {
                // With every connection busy, a reply is what to wait for.
                if self.free_since.is_some() {
                    wait = wait.min(schedule.due().saturating_sub(now));
                }
            }
            if let (Some(end), false) = (end, self.is_over) {
                wait = wait.min(end.saturating_sub(now));
            }
            let count = match self.wait(wait, &mut events) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => 0,
                Err(error) => return Err(format!("epoll: {error}")),
            };
            for event in events.iter().take(count) {
                let index = usize::try_from(event.data.u64()).expect("an index of ours");
                self.serve(index, event.flags, &mut buf)?;
            }
        }
        self.count_missed(end);
        Ok(())
    }

    /// Waits for sockets, at most so many nanoseconds. An epoll waits whole milliseconds, which is
    /// too coarse for due times; a poll of the epoll is not, and costs an open loop one call more.
    fn wait(&self, ns: u64, events: &mut [epoll::Event]) -> rustix::io::Result<usize> {
        let mut timeout = Timespec {
            tv_sec: 0,
            tv_nsec: ns as _,
        };
        if self.schedule.is_some() {
            let mut epoll = [PollFd::new(&self.epoll, PollFlags::IN)];
            if poll(&mut epoll, Some(&timeout))? == 0 {
                return Ok(0);
            }
            timeout.tv_nsec = 0;
        }
        epoll::wait(&self.epoll, events, Some(&timeout))
    }

    /// What was due before the end and never left.
    fn count_missed(&mut self, end: Option<u64>) {
        let (Some(schedule), Some(end)) = (&self.schedule, end) else {
            return;
        };
        if self.plan.limit != Limit::None {
            return;
        }
        // Counted, not drawn: at a high rate there may be thousands of millions.
        let left = end as f64 - schedule.next;
        if left > 0.0 {
            self.outcome.missed += (left / schedule.gap).ceil() as u64;
        }
    }

    /// Sends every request that is due and finds a free connection.
    fn send_due(&mut self, now: u64) -> Result<(), String> {
        loop {
            let due = self.schedule.as_ref().map_or(u64::MAX, Schedule::due);
            if due > now {
                break;
            }
            let Some(index) = self.free_connection() else {
                self.free_since = None;
                return Ok(());
            };
            if self.take(index, 1) == 0 {
                self.is_over = true;
                return Ok(());
            }
            if now - due > LATE_NS {
                self.outcome.late += 1;
                let was_free = self.free_since.is_some_and(|since| since < due);
                self.outcome.late_by_generator += u64::from(was_free);
            }
            if let Some(schedule) = &mut self.schedule {
                schedule.advance();
            }
            let connection = &self.connections[index];
            let used_up = |after| connection.since_connect >= after && connection.in_flight == 0;
            if self.plan.reconnect_after.is_some_and(used_up) {
                self.reconnect(index)?;
            }
            self.send(index, 1, due, now)?;
        }
        if self.free_since.is_none() && self.free_connection().is_some() {
            self.free_since = Some(now);
        }
        Ok(())
    }

    fn free_connection(&mut self) -> Option<usize> {
        let count = self.connections.len();
        let depth = self.plan.pipeline as u64;
        for step in 0..count {
            let index = (self.turn + step) % count;
            let connection = &self.connections[index];
            if connection.in_flight < depth && connection.is_flushed() && connection.left > 0 {
                self.turn = (index + 1) % count;
                return Some(index);
            }
        }
        None
    }

    /// Takes requests from the common stock and the connection's own.
    fn take(&mut self, index: usize, wanted: u64) -> u64 {
        let connection = &mut self.connections[index];
        let wanted = wanted.min(connection.left);
        let taken = match self.plan.limit {
            Limit::Total(_) => self.shared.take(wanted),
            _ => wanted,
        };
        connection.left -= taken;
        taken
    }

    /// A connection of a closed loop may send: what its pace says.
    fn refill(&mut self, index: usize, now: u64) -> Result<(), String> {
        let connection = &mut self.connections[index];
        if self.is_over || !connection.is_flushed() {
            return Ok(());
        }
        let depth = self.plan.pipeline as u64;
        let mut room = match self.plan.pace {
            Pace::Batches if connection.in_flight > 0 => 0,
            _ => depth - connection.in_flight,
        };
        if let Some(after) = self.plan.reconnect_after {
            if connection.since_connect >= after && connection.in_flight == 0 {
                self.reconnect(index)?;
            }
            let connection = &self.connections[index];
            room = room.min(after.saturating_sub(connection.since_connect));
        }
        if room == 0 {
            return Ok(());
        }
        match self.take(index, room) {
            0 => Ok(()),
            count => self.send(index, count, now, now),
        }
    }

    fn send(&mut self, index: usize, count: u64, due: u64, now: u64) -> Result<(), String> {
        let connection = &mut self.connections[index];
        connection.batch.used = 0;
        connection.batch.groups.clear();
        connection.written = 0;
        let requests = usize::try_from(count).expect("no more than the pipeline is deep");
        self.source.fill(index, requests, &mut connection.batch);
        let bytes = connection.batch.used as u64;
        let mut spread = 0;
        for &(class, requests) in &connection.batch.groups {
            connection.groups.push_back(Group {
                class,
                left: requests as u64,
                due,
                sent: now,
            });
            // The last class pays what the division leaves.
            let part = bytes * requests as u64 / count;
            spread += part;
            self.outcome.classes[class].bytes_out += part;
            if self.plan.series {
                let second = now / 1_000_000_000;
                self.outcome.classes[class].record_second(second, 0, 0);
                if let Some(second) = self.outcome.classes[class].seconds.last_mut() {
                    second.bytes_out += part;
                }
            }
        }
        if let Some(&(class, _)) = connection.batch.groups.last() {
            self.outcome.classes[class].bytes_out += bytes - spread;
        }
        connection.in_flight += count;
        connection.since_connect += count;
        self.in_flight += count;
        self.flush(index)
    }

    fn flush(&mut self, index: usize) -> Result<(), String> {
        let connection = &mut self.connections[index];
        if connection.is_connecting {
            return Ok(());
        }
        let wants_room = match connection.flush() {
            Ok(Wrote::All) => false,
            Ok(Wrote::Part) => true,
            Err(error) => return self.broken(index, &plain(&error)),
        };
        if wants_room != connection.awaits_room {
            connection.awaits_room = wants_room;
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, wants_room);
            epoll::modify(
                &self.epoll,
                &connection.socket,
                EventData::new_u64(index as u64),
                flags,
            )
            .map_err(|error| format!("epoll: {error}"))?;
        }
        Ok(())
    }

    fn serve(&mut self, index: usize, flags: EventFlags, buf: &mut [u8]) -> Result<(), String> {
        let connection = &mut self.connections[index];
        if connection.is_connecting && flags.intersects(EventFlags::OUT | EventFlags::ERR) {
            connection.is_connecting = false;
        }
        if flags.contains(EventFlags::OUT) {
            self.flush(index)?;
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return Ok(());
        }
        loop {
            let connection = &mut self.connections[index];
            let count = match connection.socket.read(buf) {
                Ok(0) => return self.broken(index, "Server closed the connection"),
                Ok(count) => count,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    return Ok(());
                }
                Err(error) => return self.broken(index, &plain(&error)),
            };
            let now = self.now();
            self.account(index, &buf[..count], now)?;
            if self.schedule.is_none() {
                self.refill(index, now)?;
            }
            if !self.connections[index].socket.keeps_read() || self.is_over {
                return Ok(());
            }
        }
    }

    /// Counts the replies in what was read.
    fn account(&mut self, index: usize, bytes: &[u8], now: u64) -> Result<(), String> {
        let is_open = self.schedule.is_some();
        let series = self.plan.series;
        let connection = &mut self.connections[index];
        let classes = &mut self.outcome.classes;
        let groups = &mut connection.groups;
        let greetings_left = &mut connection.greetings_left;
        let mut tally = Tally::default();
        let mut replies = 0;
        let mut latency_sum = 0;
        let mut errors = 0;
        let mut is_too_many = false;
        let scanned = connection.scanner.feed(bytes, |reply| {
            if reply.kind == b'>' {
                return;
            }
            if *greetings_left > 0 {
                *greetings_left -= 1;
                return;
            }
            let Some(group) = groups.front_mut() else {
                is_too_many = true;
                return;
            };
            tally.count += 1;
            tally.bytes += reply.bytes;
            tally.nulls += u64::from(reply.is_null);
            errors += u64::from(reply.kind == b'-' || reply.kind == b'!');
            tally.errors += u64::from(reply.kind == b'-' || reply.kind == b'!');
            group.left -= 1;
            if group.left == 0 {
                let group = *group;
                groups.pop_front();
                replies += tally.count;
                latency_sum += tally.settle(group, now, is_open, series, classes);
            }
        });
        if tally.count > 0 {
            let group = *groups.front().expect("it is not at its end");
            replies += tally.count;
            latency_sum += tally.settle(group, now, is_open, series, classes);
        }
        if scanned.is_err() || is_too_many {
            return Err("the server's reply is not what the protocol allows".to_owned());
        }
        connection.in_flight -= replies;
        self.in_flight -= replies;
        if replies > 0 {
            self.last_reply = now;
            self.broken_in_a_row = 0;
            self.shared
                .watch
                .replies
                .fetch_add(replies, Ordering::Relaxed);
            self.shared
                .watch
                .latency_us
                .fetch_add(latency_sum, Ordering::Relaxed);
        }
        if errors > 0 && self.plan.stops_at_error {
            return Err(format!("Error from server: {}", connection.scanner.error()));
        }
        Ok(())
    }

    /// Closes a connection and begins a new one in its place.
    fn reconnect(&mut self, index: usize) -> Result<(), String> {
        let target = &self.plan.target;
        let socket =
            (target.begin_connect(self.at)).map_err(|error| target.unreachable(&plain(&error)))?;
        let (greeting, replies) = target.greeting_bytes();
        epoll::add(
            &self.epoll,
            &socket,
            EventData::new_u64(index as u64),
            EventFlags::IN | EventFlags::OUT,
        )
        .map_err(|error| format!("epoll: {error}"))?;
        let connection = &mut self.connections[index];
        // Closing the old socket takes it out of the poll.
        connection.socket = socket;
        connection.is_connecting = true;
        connection.awaits_room = true;
        connection.greeting = greeting;
        connection.greetings_left = replies;
        connection.since_connect = 0;
        connection.written = connection.batch.used;
        connection.scanner = super::scan::Scanner::default();
        Ok(())
    }

    /// A connection is no more: the end of the run, or the start of a new one.
    fn broken(&mut self, index: usize, why: &str) -> Result<(), String> {
        self.outcome.connection_errors += 1;
        if !self.plan.survives || self.outcome.connection_errors > RECONNECTS_MAX {
            return Err(format!("Error: {why}"));
        }
        // A server that is being restarted must not use up the attempts in a moment.
        self.broken_in_a_row += 1;
        let pause = self.broken_in_a_row.min(PAUSE_MS_MAX);
        std::thread::sleep(Duration::from_millis(pause));
        let connection = &mut self.connections[index];
        let lost = connection.in_flight;
        connection.groups.clear();
        connection.in_flight = 0;
        self.in_flight -= lost;
        self.outcome.unanswered += lost;
        self.reconnect(index)?;
        if self.schedule.is_none() {
            // `refill` waits for the connection to stand; a batch can already be made.
            let now = self.now();
            let depth = self.plan.pipeline as u64;
            if !self.is_over {
                let count = self.take(index, depth);
                if count > 0 {
                    self.send(index, count, now, now)?;
                }
            }
        }
        Ok(())
    }
}

/// Replies of one group in one read.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    nulls: u64,
    errors: u64,
    bytes: u64,
}

impl Tally {
    /// Writes them down and starts anew; the sum of their latencies in microseconds.
    fn settle(
        &mut self,
        group: Group,
        now: u64,
        is_open: bool,
        series: bool,
        classes: &mut [Class],
    ) -> u64 {
        let latency_us = now.saturating_sub(group.due) / 1000;
        let service_us = is_open.then(|| now.saturating_sub(group.sent) / 1000);
        let class = &mut classes[group.class];
        class.count += self.count;
        class.misses += self.nulls;
        class.errors += self.errors;
        class.hits += self.count - self.nulls;
        class.bytes_in += self.bytes;
        class.record(latency_us, service_us, self.count);
        if series {
            class.record_second(now / 1_000_000_000, latency_us, self.count);
            if let Some(second) = class.seconds.last_mut() {
                second.bytes_in += self.bytes;
            }
        }
        let sum = latency_us * self.count;
        *self = Self::default();
        sum
    }
}
