//! While a script runs for too long: the thread that runs it looks at its sockets from within.
//!
//! It reads requests that are whole in the socket's buffer, one a client at a time, and answers
//! them: BUSY, or what SCRIPT KILL, FUNCTION KILL and SHUTDOWN say. Bytes are looked at where the
//! kernel keeps them and taken only with their request, so that a client goes on as if nothing had
//! been read once the script is over. New connections are accepted, answered the same way, and
//! served after the script.
//!
//! A client with a request that is half read, or with replies that wait, is left alone.
//!
//! # Invariants
//! - Nothing here touches the keyspace, of which the script holds the locks.
//! - One look is bounded: `PEEK_BYTES` and one request a client.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use resp::{Args, Batch, Decoder, Limits};
use socket2::Socket;

use super::run::{BUSY_FUNCTION, BUSY_SCRIPT};
use crate::host::ThreadHost;
use crate::inbox::{Message, Peer};
use crate::shared::{Client, Shared, flag};
use crate::sys;

/// Bytes of a socket that one look sees.
const PEEK_BYTES: usize = 16 * 1024;
/// Connections that are accepted while one script runs.
const ACCEPTED_MAX: usize = 1024;

/// Connections that came while a script ran.
#[derive(Default)]
pub struct Newcomers(Vec<(Socket, Peer)>);

/// Answers what came to this thread's clients, and to whoever connects now.
pub fn look(host: &ThreadHost, newcomers: &mut Newcomers) {
    let shared = &host.shared;
    let own = host.client.as_ref().map(|client| client.id.number);
    let clients: Vec<Arc<Client>> = shared
        .clients
        .lock()
        .values()
        .filter(|client| client.id.thread == host.thread && Some(client.id.number) != own)
        .cloned()
        .collect();
    for client in clients {
        let relaxed = Ordering::Relaxed;
        let is_idle = client.query_bytes.load(relaxed) == 0
            && client.output_bytes.load(relaxed) == 0
            && client.flags.load(relaxed) & (flag::BLOCKED | flag::CLOSING) == 0;
        if is_idle {
            let is_known = client.flags.load(relaxed) & flag::UNAUTHENTICATED == 0;
            serve(client.fd, shared, is_known);
        }
    }
    while newcomers.0.len() < ACCEPTED_MAX {
        let listeners = shared.listening.now();
        let mut accepted = listeners
            .iter()
            .filter_map(|listener| listener.accept(host.config.tcp_keepalive_s).ok());
        match accepted.next() {
            Some((socket, peer)) => newcomers.0.push((socket, peer)),
            None => break,
        }
    }
    for (socket, peer) in &newcomers.0 {
        let is_known =
            host.config.requirepass.is_none() && (peer.is_local || !host.config.protected_mode);
        serve(socket.as_raw_fd(), shared, is_known);
    }
}

/// Hands those who came to the loop: the script is over.
pub fn hand_over(host: &ThreadHost, newcomers: &mut Newcomers) {
    for (socket, peer) in newcomers.0.drain(..) {
        host.shared.client_count.fetch_add(1, Ordering::Relaxed);
        host.shared.inboxes[usize::from(host.thread)].send(Message::Accept(socket, peer));
    }
}

/// Answers the first whole request in a socket's buffer.
fn serve(fd: RawFd, shared: &Shared, is_known: bool) {
    let mut buf = Vec::with_capacity(PEEK_BYTES);
    match sys::peek(fd, &mut buf) {
        Ok(1..) => {}
        _ => return,
    }
    let limits = Limits {
        bulk_bytes_max: PEEK_BYTES as u64,
        authenticated: is_known,
    };
    let mut batch = Batch::default();
    let Ok(used) = Decoder::default().decode(&buf, limits, 1, &mut batch) else {
        return;
    };
    if batch.is_empty() {
        return;
    }
    let reply = answer(batch.args(0, &buf), shared, is_known);
    let mut taken = Vec::with_capacity(used);
    taken.reserve_exact(used);
    if sys::read_up_to(fd, &mut taken, used).is_ok() {
        // A client that does not take a line has bigger worries.
        let _ = sys::write(fd, &[reply.as_bytes()]);
    }
}

fn answer(args: Args<'_>, shared: &Shared, is_known: bool) -> String {
    let running = &shared.scripts.running;
    if !is_known {
        return "-NOAUTH Authentication required.\r\n".to_owned();
    }
    let is_kill = args.len() == 2 && args.is(1, "KILL");
    if is_kill && (args.is(0, "SCRIPT") || args.is(0, "FUNCTION")) {
        return match running.end(args.is(0, "FUNCTION")) {
            Ok(()) => "+OK\r\n".to_owned(),
            Err(error) => format!("-{error}\r\n"),
        };
    }
    if args.is(0, "SHUTDOWN") && args.len() == 2 && args.is(1, "NOSAVE") {
        shared.shut_down();
        return String::new();
    }
    let is_function = running
        .slow
        .lock()
        .as_ref()
        .is_some_and(|slow| slow.is_function);
    let text = if is_function {
        BUSY_FUNCTION
    } else {
        BUSY_SCRIPT
    };
    format!("-{text}\r\n")
}
