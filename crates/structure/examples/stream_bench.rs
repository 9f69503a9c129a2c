//! Measures a stream: bytes an entry, and nanoseconds to append, read, deliver and acknowledge.
//!
//! `cargo run --profile dist -p structure --example stream_bench [entries]`

use std::hint::black_box;
use std::time::Instant;

use structure::stream::{BlockLimits, References, Stream, StreamId, Threshold};

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse::<u64>().ok())
        .unwrap_or(0);
    pages * 4096
}

struct Report {
    entries: u64,
}

impl Report {
    fn time(&self, what: &str, ops: u64, work: impl FnOnce()) {
        let start = Instant::now();
        work();
        let ns = start.elapsed().as_nanos() as f64 / ops as f64;
        println!("{what:<44} {ns:>8.1} ns");
    }

    fn bytes(&self, what: &str, bytes: u64) {
        println!("{what:<44} {:>8.1} B", bytes as f64 / self.entries as f64);
    }
}

fn append(stream: &mut Stream, n: u64) {
    let id = StreamId::new(1_700_000_000_000 + n / 10, n % 10);
    let sensor = format_sensor(n);
    let fields = [&b"sensor"[..], &sensor, b"temp", b"21.5"];
    assert!(stream.append(id, fields.into_iter(), BlockLimits::default()));
}

fn format_sensor(mut n: u64) -> [u8; 7] {
    let mut text = *b"0000000";
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
    text
}

fn main() {
    let entries = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    let report = Report { entries };
    let before = resident_bytes();
    let mut stream = Stream::default();
    report.time("append {sensor:0000001,temp:21.5}", entries, || {
        for n in 0..entries {
            append(&mut stream, n);
        }
    });
    report.bytes("resident an entry", resident_bytes() - before);
    report.bytes("accounted an entry", stream.memory_bytes() as u64);
    report.time("read an entry, in order", entries, || {
        let mut sum = 0;
        for entry in stream.range(StreamId::MIN, StreamId::MAX) {
            sum += entry
                .fields
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
        }
        black_box(sum);
    });
    report.time("read an entry, backwards", entries, || {
        black_box(stream.range_back(StreamId::MIN, StreamId::MAX).count());
    });
    report.time("find an entry by id, at random", entries, || {
        let mut n = 1;
        for _ in 0..entries {
            n = (n * 7_919 + 13) % entries;
            assert!(
                stream
                    .get(StreamId::new(1_700_000_000_000 + n / 10, n % 10))
                    .is_some()
            );
        }
    });
    groups(&report, &mut stream);
    report.time("append and trim to a length (MAXLEN =)", entries, || {
        let length = stream.len();
        for n in entries..entries * 2 {
            append(&mut stream, n);
            stream.trim(Threshold::Length(length), false, 0, References::Keep);
        }
    });
}

fn groups(report: &Report, stream: &mut Stream) {
    let entries = report.entries;
    stream.create_group(b"g", StreamId::MIN, None);
    let before = resident_bytes();
    report.time("deliver an entry (XREADGROUP COUNT 1)", entries, || {
        for n in 0..entries {
            let (group, view) = stream.group_and_entries(b"g").expect("created above");
            let (consumer, _) = group.add_consumer(b"c", n);
            let mut unread = view.unread(group);
            let entry = unread.next().expect("an entry is left");
            group.hold(entry.id, consumer, 1_700_000_000_000 + n / 10, 1);
            group.advance(entry.id, &view.progress);
            view.bookmark(group, &unread);
        }
    });
    report.bytes("resident a pending entry", resident_bytes() - before);
    let group = stream.group_mut(b"g").expect("created above");
    report.time("claimable, ten oldest of all pending", 10_000, || {
        for _ in 0..10_000 {
            black_box(group.claimable(Some(u64::MAX), 10, |_| true));
        }
    });
    let ids: Vec<StreamId> = group
        .pending_range(StreamId::MIN, StreamId::MAX, None)
        .map(|entry| entry.id)
        .collect();
    report.time("acknowledge, oldest first", entries / 2, || {
        for id in &ids[..ids.len() / 2] {
            assert!(group.acknowledge(*id).is_some());
        }
    });
    report.time("acknowledge, at random", entries / 2, || {
        let rest = &ids[ids.len() / 2..];
        let mut n = 1;
        for _ in 0..rest.len() {
            n = (n * 7_919 + 13) % rest.len();
            black_box(group.acknowledge(rest[n]));
        }
    });
}
