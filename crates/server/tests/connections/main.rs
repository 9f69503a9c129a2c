//! What scripts cannot say: bytes in pieces, many clients at once, clients that misbehave.
//!
//! Every test has a server process of its own. Nothing sleeps to let something happen: what another
//! client or thread must have done first is asked for until it is so.

mod ahead;
mod blocking;
mod busy;
mod client_memory;
mod hostile;
mod limits;
mod listening;
mod messages;
mod metrics;
mod protocol;
mod snapshots;
mod stress;
mod supervisor;

use std::path::Path;
use std::time::{Duration, Instant};

use client::{Client, Error, Reply};
use testkit::Server;

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Threads that a server is tried with.
const THREADS: [&str; 3] = ["1", "2", "8"];

/// Our server with these options.
fn server(options: &[&str]) -> Server {
    let program = Path::new(env!("CARGO_BIN_EXE_tidemill-server"));
    Server::start(program, options).unwrap_or_else(|problem| panic!("{problem}"))
}

fn connect(server: &Server) -> Client {
    let mut client = server.client().expect("the server accepts");
    client.set_timeout(PATIENCE);
    client
}

/// One command, given as words with blanks between, and its reply.
fn call(client: &mut Client, command: &str) -> Reply {
    let words: Vec<&str> = command.split(' ').collect();
    client
        .call(&words)
        .unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn id(client: &mut Client) -> i64 {
    call(client, "CLIENT ID").integer().expect("a number")
}

/// Asks until it is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// A field of a client's line in CLIENT LIST; `None` when there is no such client.
fn field(asker: &mut Client, id: i64, name: &str) -> Option<String> {
    let line = call(asker, &format!("CLIENT LIST ID {id}")).text()?;
    line.split_whitespace().find_map(|pair| {
        pair.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_owned)
    })
}

/// Waits until a client is told that it is no more; what it is sent before does not matter.
#[track_caller]
fn expect_closed(client: &mut Client) {
    loop {
        match client.receive() {
            Ok(_) => {}
            Err(Error::Closed) => return,
            Err(error) => panic!("not closed: {error}"),
        }
    }
}

fn status(text: &str) -> Reply {
    Reply::Status(text.into())
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}
