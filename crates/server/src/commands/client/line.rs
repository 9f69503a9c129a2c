//! One client as CLIENT LIST and CLIENT INFO describe it.
//!
//! Names and order are Redis's. Its fixed reply buffer (`rbs`, `rbp`, `obl`) has no counterpart:
//! what waits to be sent is one chain of segments, `oll` of them with `omem` bytes.

use std::io::Write;
use std::sync::atomic::Ordering;

use engine::keyspace::Shared as Keys;

use super::shown_part;
use crate::shared::{Client, flag};

/// The letters of a client's state, in Redis's order.
const LETTERS: &[(u32, char)] = &[
    (flag::MONITOR, 'O'),
    (flag::PUBSUB, 'P'),
    (flag::MULTI, 'x'),
    (flag::BLOCKED, 'b'),
    (flag::TRACKING, 't'),
    (flag::BROKEN_REDIRECT, 'R'),
    (flag::BROADCAST, 'B'),
    (flag::DIRTY, 'd'),
    (flag::CLOSING, 'c'),
    (flag::UNIX, 'U'),
    (flag::NO_EVICT, 'e'),
    (flag::NO_TOUCH, 'T'),
];

/// The line, its line break included.
pub(super) fn of(client: &Client, now_ms: u64, keys: &Keys) -> Vec<u8> {
    let relaxed = Ordering::Relaxed;
    let flags = client.flags.load(relaxed);
    let mut letters: String = LETTERS
        .iter()
        .filter(|&&(bit, _)| flags & bit != 0)
        .map(|&(_, letter)| letter)
        .collect();
    if letters.is_empty() {
        letters.push('N');
    }
    let command = usize::from(client.last_command.load(relaxed));
    let command = keys.table.entries().get(command);
    let seconds_since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    let [channels, patterns, shard_channels] =
        [0, 1, 2].map(|index| client.subscriptions[index].load(relaxed));
    let (query, query_free) = (
        client.query_bytes.load(relaxed),
        client.query_free.load(relaxed),
    );
    let output = client.output_bytes.load(relaxed);
    let shared = client.output_shared.load(relaxed).min(output);
    let multi_bytes = client.multi_bytes.load(relaxed);
    let argv_bytes = client.argv_bytes.load(relaxed);
    let total = client.memory_bytes();
    let names = client.names.lock().clone();
    let mut line = Vec::with_capacity(512);
    // Writing to a vector cannot fail.
    let _ = write!(
        line,
        "id={} addr={} laddr={} fd={} name=",
        client.id.number, client.peer.address, client.peer.local_address, client.fd
    );
    line.extend_from_slice(shown_part(&names.name));
    let _ = write!(
        line,
        " age={} idle={} flags={letters} db={} sub={channels} psub={patterns} \
         ssub={shard_channels} multi={} watch={} qbuf={query} qbuf-free={query_free} \
         argv-mem={argv_bytes} multi-mem={multi_bytes} rbs=0 rbp=0 obl=0 oll={} omem={output} \
         omem-shared={shared} omem-unshared={} tot-mem={total} events={} cmd={} user=",
        seconds_since(client.created_ms),
        seconds_since(client.active_ms.load(relaxed)),
        client.db.load(relaxed),
        client.multi.load(relaxed),
        client.watches.load(relaxed),
        client.output_segments.load(relaxed) + usize::from(output > shared),
        output - shared,
        if output > 0 { "rw" } else { "r" },
        command.map_or("NULL", |entry| &entry.full_name),
    );
    line.extend_from_slice(&names.user);
    let _ = write!(
        line,
        " redir={} resp={} lib-name=",
        client.redirect.load(relaxed),
        client.protocol.load(relaxed)
    );
    line.extend_from_slice(shown_part(&names.library));
    line.extend_from_slice(b" lib-ver=");
    line.extend_from_slice(shown_part(&names.library_version));
    let _ = writeln!(
        line,
        " io-thread={} tot-net-in={} tot-net-out={} tot-cmds={} read-events={} \
         avg-pipeline-len-sum={} avg-pipeline-len-cnt={}",
        client.id.thread,
        client.total_in.load(relaxed),
        client.total_out.load(relaxed),
        client.commands.load(relaxed),
        client.reads.load(relaxed),
        client.commands.load(relaxed),
        client.batches.load(relaxed),
    );
    line
}
