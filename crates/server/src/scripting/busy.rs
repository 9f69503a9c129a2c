//! While a script runs for too long: the thread that runs it looks at its sockets from within.
//!
//! It reads requests that are whole in the socket's buffer, one a client at a time, and answers
//! them: BUSY, or what SCRIPT KILL, FUNCTION KILL and SHUTDOWN say to whoever may use them. Bytes
//! are looked at where the kernel keeps them and taken only with their request, so that a client
//! goes on as if nothing had been read once the script is over. New connections are accepted,
//! answered the same way, and served after the script.
//!
//! Who connects now to end the script has to say who it is first: AUTH, HELLO, RESET and QUIT are
//! answered too. What they change is kept for the script's time in a session of its own
//! ([`Guest`]), and the requests are run again, their replies dropped, when the script is over and
//! before anything else of that client.
//!
//! A client with a request that is half read, or with replies that wait, is left alone, and so is
//! one with TLS: what its socket has means nothing here.
//!
//! # Invariants
//! - Nothing here touches the keyspace, of which the script holds the locks.
//! - One look is bounded: `PEEK_BYTES` and one request a client. What is kept of a client is, too:
//!   `KEPT_BYTES`.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::host::ClientId;
use engine::session::Session;
use engine::{CommandError, acl};
use resp::{Args, Batch, Decoder, Limits, Output, Protocol, Writer};
use socket2::Socket;

use super::run::{BUSY_FUNCTION, BUSY_SCRIPT};
use crate::commands::connection::{HELLO_UNKNOWN, Hello, WRONG_PASSWORD, login_of};
use crate::host::ThreadHost;
use crate::inbox::{Early, Message, Peer};
use crate::shared::{Client, Shared, flag};
use crate::sys;
use crate::users::DEFAULT;

/// Bytes of a socket that one look sees.
const PEEK_BYTES: usize = 16 * 1024;
/// Connections that are accepted while one script runs.
const ACCEPTED_MAX: usize = 1024;

/// Bytes of requests that are kept of one client.
const KEPT_BYTES: usize = 64 * 1024;

/// Those whom a script keeps waiting, as far as they have said something.
#[derive(Default)]
pub struct Guests {
    newcomers: Vec<Newcomer>,
    /// Clients of before, by their numbers.
    known: HashMap<u64, Guest>,
}

/// A connection that came while a script ran.
struct Newcomer {
    socket: Socket,
    peer: Peer,
    guest: Guest,
}

/// A client for the time of a script.
struct Guest {
    /// Who it is now, and what it may do.
    session: Session,
    /// Whether it may say who it is: not where nobody may without a password.
    is_welcome: bool,
    /// The requests that are to be run again.
    kept: Vec<u8>,
}

impl Guest {
    fn new(host: &ThreadHost, number: u64, authenticated: bool, user: &[u8]) -> Self {
        let thread = host.thread;
        let mut session = Session::new(ClientId { thread, number }, authenticated);
        let users = &host.shared.users;
        session.set_user(users.user(user).unwrap_or_else(|| users.default_user()));
        Self {
            session,
            is_welcome: true,
            kept: Vec::new(),
        }
    }

    /// A client that is there.
    fn of(host: &ThreadHost, client: &Client) -> Self {
        let relaxed = Ordering::Relaxed;
        let authenticated = client.flags.load(relaxed) & flag::UNAUTHENTICATED == 0;
        let user = client.names.lock().user.clone();
        let mut guest = Self::new(host, client.id.number, authenticated, &user);
        if client.protocol.load(relaxed) == 3 {
            guest.session.protocol = Protocol::Resp3;
        }
        guest
    }
}

/// Answers what came to this thread's clients, and to whoever connects now.
pub fn look(host: &ThreadHost, guests: &mut Guests) {
    let shared = &host.shared;
    let own = host.client.as_ref().map(|client| client.id.number);
    let clients: Vec<Arc<Client>> = shared
        .clients
        .lock()
        .values()
        .filter(|client| client.id.thread == host.thread && Some(client.id.number) != own)
        .filter(|client| !client.peer.is_tls)
        .cloned()
        .collect();
    let mut buf = Vec::with_capacity(PEEK_BYTES);
    for client in clients {
        let relaxed = Ordering::Relaxed;
        let is_idle = client.query_bytes.load(relaxed) == 0
            && client.output_bytes.load(relaxed) == 0
            && client.flags.load(relaxed) & (flag::BLOCKED | flag::CLOSING) == 0;
        if is_idle && has_said(client.fd, &mut buf) {
            let guest = guests.known.entry(client.id.number);
            let guest = guest.or_insert_with(|| Guest::of(host, &client));
            serve(client.fd, &buf, shared, guest);
        }
    }
    while guests.newcomers.len() < ACCEPTED_MAX {
        let listeners = shared.listening.now();
        let mut accepted = listeners
            .iter()
            .filter_map(|listener| listener.accept(host.config.tcp_keepalive_s).ok());
        let Some((socket, peer)) = accepted.next() else {
            break;
        };
        let users = &shared.users;
        let number = shared.next_client.fetch_add(1, Ordering::Relaxed);
        let mut guest = Guest::new(host, number, users.is_open(), DEFAULT);
        let is_open = users.default_has_no_password();
        guest.is_welcome = peer.is_local || !host.config.protected_mode || !is_open;
        guests.newcomers.push(Newcomer {
            socket,
            peer,
            guest,
        });
    }
    for newcomer in &mut guests.newcomers {
        let fd = newcomer.socket.as_raw_fd();
        if !newcomer.peer.is_tls && has_said(fd, &mut buf) {
            serve(fd, &buf, shared, &mut newcomer.guest);
        }
    }
}

/// Whether there is anything in a socket's buffer, which is shown and stays there.
fn has_said(fd: RawFd, buf: &mut Vec<u8>) -> bool {
    buf.clear();
    matches!(sys::peek(fd, buf), Ok(1..))
}

/// The script is over: hands those who came to the loop, and to all what they said.
pub fn hand_over(host: &mut ThreadHost, guests: &mut Guests) {
    for newcomer in guests.newcomers.drain(..) {
        if !newcomer.guest.is_welcome {
            continue;
        }
        host.shared.client_count.fetch_add(1, Ordering::Relaxed);
        let early = Early {
            number: newcomer.guest.session.id.number,
            requests: newcomer.guest.kept,
        };
        let accept = Message::Accept(newcomer.socket, newcomer.peer, Some(early));
        host.shared.inboxes[usize::from(host.thread)].send(accept);
    }
    let kept = guests
        .known
        .drain()
        .filter(|(_, guest)| !guest.kept.is_empty());
    host.said_early
        .extend(kept.map(|(number, guest)| (number, guest.kept)));
}

/// Answers the first whole request of `buf`, which is what a socket's buffer has.
fn serve(fd: RawFd, buf: &[u8], shared: &Shared, guest: &mut Guest) {
    if guest.session.closing {
        return;
    }
    let limits = Limits {
        bulk_bytes_max: PEEK_BYTES as u64,
        authenticated: guest.session.authenticated,
    };
    let mut batch = Batch::default();
    let Ok(used) = Decoder::default().decode(buf, limits, 1, &mut batch) else {
        return;
    };
    if batch.is_empty() {
        return;
    }
    let mut out = Output::default();
    let is_kept = answer(batch.args(0, buf), shared, guest, &mut out);
    let mut taken = Vec::with_capacity(used);
    taken.reserve_exact(used);
    if sys::read_up_to(fd, &mut taken, used).is_ok() {
        if is_kept {
            guest.kept.extend_from_slice(&buf[..used]);
        }
        // A client that does not take a line has bigger worries.
        let _ = sys::write(fd, &[out.since(0)]);
    }
}

/// Answers a request. True where it is to be run again.
fn answer(args: Args<'_>, shared: &Shared, guest: &mut Guest, out: &mut Output) -> bool {
    let session = &mut guest.session;
    let mut out = Writer::new(out, session.protocol);
    let entry = shared.keys.table.resolve(&args).ok();
    let name = entry.map_or("", |entry| entry.command.name);
    let speaks = matches!(name, "auth" | "hello" | "reset" | "quit");
    if speaks && guest.is_welcome && guest.kept.len() < KEPT_BYTES {
        if let Some(entry) = entry.filter(|entry| !entry.arity_allows(args.len())) {
            let name = &entry.full_name;
            out.error(&format!(
                "ERR wrong number of arguments for '{name}' command"
            ));
            return false;
        }
        let said = introduce(name, args, shared, session, &mut out);
        if let Err(error) = &said {
            out.error(&error.to_string());
        }
        return said.is_ok();
    }
    if !session.authenticated || !guest.is_welcome {
        out.error("NOAUTH Authentication required.");
        return false;
    }
    let running = &shared.scripts.running;
    let full_name = entry.map_or("", |entry| &*entry.full_name);
    let ends_function = match full_name.split_once('|') {
        Some((_, "kill")) if args.len() == 2 => container(shared, args),
        _ => None,
    };
    let is_shutdown = name == "shutdown" && args.len() == 2 && args.is(1, "NOSAVE");
    if let Some(entry) = entry.filter(|_| ends_function.is_some() || is_shutdown)
        && let Err(denial) = acl::check(session, entry, args)
    {
        let denied = denial.error(session.user().name(), entry);
        out.error(&denied.to_string());
        return false;
    }
    if is_shutdown {
        shared.shut_down();
        return false;
    }
    if let Some(is_function) = ends_function {
        match running.end(is_function) {
            Ok(()) => out.ok(),
            Err(error) => out.error(&error.to_string()),
        }
        return false;
    }
    let is_function = running
        .slow
        .lock()
        .as_ref()
        .is_some_and(|slow| slow.is_function);
    out.error(if is_function {
        BUSY_FUNCTION
    } else {
        BUSY_SCRIPT
    });
    false
}

/// Whether the first word is FUNCTION's, rather than SCRIPT's; nothing where it is neither.
fn container(shared: &Shared, args: Args<'_>) -> Option<bool> {
    match shared.keys.table.find(args.at(0))?.command.name {
        "function" => Some(true),
        "script" => Some(false),
        _ => None,
    }
}

/// AUTH, HELLO, RESET and QUIT, in a session that lasts as long as the script does.
fn introduce(
    name: &str,
    args: Args<'_>,
    shared: &Shared,
    session: &mut Session,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let users = &shared.users;
    let log_in = |session: &mut Session, user: &[u8], password: &[u8]| {
        let known = users.authenticate(user, password).ok_or(WRONG_PASSWORD)?;
        session.authenticated = true;
        session.set_user(known);
        Ok::<(), CommandError>(())
    };
    match name {
        "auth" => {
            let (user, password) = login_of(args, users)?;
            log_in(session, user, password)?;
            out.ok();
        }
        "hello" => {
            let hello = Hello::parse(args, session.protocol)?;
            if let Some((user, password)) = hello.login {
                log_in(session, user, password)?;
            }
            if !session.authenticated {
                return Err(HELLO_UNKNOWN);
            }
            session.protocol = hello.protocol;
            hello.welcome(session.id.number, out);
        }
        "reset" => {
            session.authenticated = users.is_open();
            session.set_user(users.default_user());
            session.protocol = Protocol::Resp2;
            out.simple("RESET");
        }
        _ => {
            session.closing = true;
            out.ok();
        }
    }
    Ok(())
}
